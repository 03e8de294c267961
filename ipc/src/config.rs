//! `config.toml`: what a person may set, checked when it is read.

use std::path::{Path, PathBuf};

use jiff::{SignedDuration, tz::TimeZone};
use serde::{Deserialize, Serialize};

/// Everything that may be set. Every key has a default, so an absent or empty file is a complete configuration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The zone whose days she lives in (`Asia/Shanghai`); the machine's own where none is named.
    pub time_zone: Option<String>,
    /// Which model thinks.
    pub model: Model,
    /// How she spends her own time.
    pub heartbeat: Heartbeat,
    /// When a child that keeps dying is left alone.
    pub supervisor: Supervisor,
    /// Who talks to her where a client does not say: the name of a page in `relationships/`.
    pub person: Option<String>,
    /// How much of herself she may change at once.
    pub gates: Gates,
    /// When something she noticed becomes part of her.
    pub dreams: Dreams,
    /// When she looks back on a conversation.
    pub reflect: Reflect,
    /// What her tools may do.
    pub tools: Tools,
}

/// What her tools may do. Those of her soul are none of them: grants and gates govern those. Those of files and commands
/// write in the folder of their conversation and nowhere else, and read everything but the secrets; of the home of Lisa
/// there is nothing that can be set here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tools {
    /// Which calls wait for a person's word.
    pub approval: Approval,
    /// The longest one waits for it; then it is refused.
    pub approval_max: SignedDuration,
    /// What is done where the system cannot confine them.
    pub sandbox: Sandbox,
    /// Whether commands may use the network.
    pub network: bool,
    /// Which folders may be read, absolute; what programs need to run can always be.
    pub read: Vec<PathBuf>,
    /// What may not be read although it lies in such a folder: absolute, or beginning with `~/`.
    pub hidden: Vec<PathBuf>,
    /// Which folders may be written besides that of the conversation, absolute.
    pub write: Vec<PathBuf>,
    /// The hosts that pages are fetched from although their addresses are private: `127.0.0.1:8080`, `wiki.lan`. With
    /// a port that one alone.
    pub private_hosts: Vec<String>,
}

impl Default for Tools {
    fn default() -> Self {
        let keys = [".ssh", ".gnupg", ".aws", ".kube", ".netrc", ".docker", ".config/gh", ".config/gcloud"];
        Self {
            approval: Approval::AskMutating,
            approval_max: SignedDuration::from_mins(10),
            sandbox: Sandbox::BestEffort,
            network: true,
            read: vec!["/".into()],
            hidden: keys.map(|name| Path::new("~").join(name)).into(),
            write: Vec::new(),
            private_hosts: Vec::new(),
        }
    }
}

/// Which calls of tools wait for a person's word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Approval {
    /// None.
    Auto,
    /// All.
    Ask,
    /// Those that may change something.
    AskMutating,
}

/// What is done where the system cannot confine tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sandbox {
    /// They do not run.
    Required,
    /// They run with as much of it as there is; `lisa status` says how much.
    #[default]
    BestEffort,
    /// Nothing is confined.
    Off,
}

impl Tools {
    /// What cannot be meant: the key below `[tools]`, and why.
    fn mistake(&self) -> Option<(&'static str, String)> {
        let bad = |path: &&PathBuf| !path.is_absolute();
        if let Some(path) = self.read.iter().find(bad) {
            return Some(("read", format!("`{}` is not absolute, as `/home/anna/work` is", path.display())));
        }
        if let Some(path) = self.write.iter().find(|path| bad(path) || path.parent().is_none()) {
            let why = "is no absolute folder below `/`, as `/home/anna/work` is";
            return Some(("write", format!("`{}` {why}", path.display())));
        }
        let hidden = self.hidden.iter().find(|path| bad(path) && !path.starts_with("~"));
        let why = "is neither absolute nor below `~/`, as `~/.ssh` is";
        hidden.map(|path| ("hidden", format!("`{}` {why}", path.display())))
    }
}

/// How much of her gated documents she may change: how often, how much at once, and how what a person thinks of her
/// replies narrows that. The defaults are those of the design.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Gates {
    /// How many characters one write may insert.
    pub chars_max: u32,
    /// How many writes there are in a day of her zone.
    pub writes_a_day: u32,
    /// The weight of the ratings, 0 to 1, below which nothing is written.
    pub refuse_below: f64,
    /// The weight below which little is written.
    pub narrow_below: f64,
    /// How many characters that is.
    pub narrow_chars_max: u32,
    /// How many ratings there must be before they count.
    pub ratings_min: u32,
    /// How many of the newest ratings count.
    pub ratings_max: u32,
    /// In how long a rating loses half of its weight.
    pub half_life: SignedDuration,
    /// In how many conversations a note must have been recalled to go into `memory`.
    pub note_hits: u32,
    /// In how many while the ratings weigh at least `liked_from`.
    pub note_hits_liked: u32,
    /// The weight of the ratings, 0 to 1, from which on that is so.
    pub liked_from: f64,
    /// From how many objections in seven days on she is asked to reflect on them.
    pub objections_a_week: u32,
}

impl Default for Gates {
    fn default() -> Self {
        Self {
            chars_max: 800,
            writes_a_day: 3,
            refuse_below: 0.35,
            narrow_below: 0.6,
            narrow_chars_max: 300,
            ratings_min: 3,
            ratings_max: 20,
            half_life: SignedDuration::from_hours(7 * 24),
            note_hits: 3,
            note_hits_liked: 2,
            liked_from: 0.75,
            objections_a_week: 5,
        }
    }
}

/// When something she noticed again and again in her journal becomes part of her. The defaults are those of the design.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Dreams {
    /// When she dreams by herself, on the clock of her zone: `"04:00"`; `"never"` leaves it to whoever asks.
    pub at: String,
    /// How many entries there must be about the same.
    pub observations_min: u32,
    /// On how many days.
    pub days_min: u32,
    /// How many days back entries count.
    pub days_back: u32,
    /// How many lines one dream may merge; what else qualifies waits.
    pub lines_max: u32,
}

impl Default for Dreams {
    fn default() -> Self {
        Self { at: "04:00".to_owned(), observations_min: 3, days_min: 2, days_back: 90, lines_max: 5 }
    }
}

impl Dreams {
    /// What stands for no time at all.
    pub const NEVER: &str = "never";
    /// The most days that are looked back: each is a file to read.
    pub const DAYS_BACK_MAX: u32 = 366;
    /// The most lines one dream may merge, for each of which it must be said why.
    pub const LINES_MAX: u32 = 20;

    /// The time of day at which she dreams by herself; nothing where she does not.
    pub fn night(&self) -> Option<jiff::civil::Time> {
        jiff::civil::Time::strptime("%H:%M", &self.at).ok()
    }

    /// What cannot be meant: the key below `[dreams]`, and why.
    fn mistake(&self) -> Option<(&'static str, String)> {
        if self.at != Self::NEVER && self.night().is_none() {
            return Some(("at", "it is a time of day, as in `04:00`, or `never`".to_owned()));
        }
        if self.observations_min == 0 || self.days_min == 0 {
            let key = if self.observations_min == 0 { "observations_min" } else { "days_min" };
            return Some((key, "it must be at least 1, or everything would qualify".to_owned()));
        }
        if !(1..=Self::DAYS_BACK_MAX).contains(&self.days_back) || self.days_back < self.days_min {
            let max = Self::DAYS_BACK_MAX;
            return Some(("days_back", format!("it must be from 1 to {max}, and at least `days_min`")));
        }
        (!(1..=Self::LINES_MAX).contains(&self.lines_max))
            .then(|| ("lines_max", format!("it must be from 1 to {}", Self::LINES_MAX)))
    }
}

/// When she looks back on a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Reflect {
    /// Whether she does so by herself; asked for, she always does.
    pub enabled: bool,
    /// How long nobody must have said anything.
    pub after: SignedDuration,
    /// The longest it may take.
    pub turn_max: SignedDuration,
}

impl Default for Reflect {
    fn default() -> Self {
        Self { enabled: true, after: SignedDuration::from_mins(10), turn_max: SignedDuration::from_mins(5) }
    }
}

/// Which model thinks. Without a provider, what the environment and `config.env` offer is used, and else the embedded default.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Model {
    /// Which provider to use.
    pub provider: Option<ProviderName>,
    /// The model's name, as the provider calls it.
    pub name: Option<String>,
    /// Where the provider answers, up to and with its version: `http://127.0.0.1:8080/v1`.
    pub base_url: Option<String>,
    /// The variable that holds the key, where it is not the provider's usual one: `GROQ_API_KEY`.
    pub key_variable: Option<String>,
    /// The longest a model may stay silent, before and between two bytes of an answer.
    pub silence_max: Option<SignedDuration>,
    /// The longest an answer may be, in tokens.
    pub max_tokens: Option<u32>,
    /// How it thinks before it answers; Anthropic, and Responses in its own measure.
    pub thinking: Option<Thinking>,
    /// How many tokens of a conversation it takes in. Ollama is told, which else cuts silently what is above its own default;
    /// for the others it says when a conversation has to be shortened.
    pub context: Option<u32>,
    /// What its tokens cost.
    pub price: Option<Price>,
    /// What is asked, in order, when this one cannot be reached or is overloaded: each as this one, without a `fallback`.
    pub fallback: Vec<Model>,
}

/// What a million tokens cost, in whatever money a person counts in.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Read.
    pub input: f64,
    /// Written.
    pub output: f64,
    /// Taken from a cache; as those read where it is not set.
    #[serde(default)]
    pub cache_read: Option<f64>,
    /// Put into a cache; as those read where it is not set.
    #[serde(default)]
    pub cache_write: Option<f64>,
}

impl Price {
    /// Whether each of its numbers can be a price.
    fn is_sound(&self) -> bool {
        let all = [Some(self.input), Some(self.output), self.cache_read, self.cache_write];
        all.into_iter().flatten().all(|price| price.is_finite() && (0.0..=1e9).contains(&price))
    }
}

/// The providers there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProviderName {
    /// The embedded default: no model, no key, no network.
    Offline,
    /// OpenAI-compatible chat completions.
    OpenAi,
    /// Anthropic's Messages.
    Anthropic,
    /// Ollama's own protocol.
    Ollama,
    /// OpenAI's Responses.
    Responses,
}

/// How a model thinks before it answers. Newer models know the first word only, older ones the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "`thinking` is \"adaptive\", or a number of tokens such as 4096")]
pub enum Thinking {
    /// As much as it finds right.
    AsItLikes(Adaptive),
    /// At most so many tokens.
    Tokens(u32),
}

/// The word for thinking as much as it finds right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Adaptive {
    /// `adaptive`.
    Adaptive,
}

impl Model {
    /// What cannot be meant: the key below `[model]`, and why.
    fn mistake(&self) -> Option<(&'static str, &'static str)> {
        let is = |provider| self.provider == Some(provider);
        if self.silence_max.is_some_and(|silence| !silence.is_positive()) {
            return Some(("silence_max", "it must be above zero, as in `2m`"));
        }
        if self.max_tokens == Some(0) {
            return Some(("max_tokens", "an answer needs some tokens, as in `8192`"));
        }
        if self.context == Some(0) {
            return Some(("context", "a conversation needs some tokens, as in `16384`"));
        }
        // Only such a variable is handed on to the process that needs it.
        let is_key = |name: &str| {
            name.ends_with("_API_KEY") && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        if self.key_variable.as_deref().is_some_and(|name| !is_key(name)) {
            return Some((
                "key_variable",
                "it names a variable that ends in `_API_KEY`; the key itself goes into config.env",
            ));
        }
        let may_think = match self.thinking {
            None => true,
            Some(Thinking::AsItLikes(_)) => is(ProviderName::Anthropic) || is(ProviderName::Responses),
            Some(Thinking::Tokens(_)) => is(ProviderName::Anthropic),
        };
        if !may_think {
            let why = "`provider = \"anthropic\"` takes it, and \"responses\" takes \"adaptive\"; remove the line, or set that provider";
            return Some(("thinking", why));
        }
        if self.price.is_some_and(|price| !price.is_sound()) {
            return Some(("price", "each is what a million tokens cost, zero or more, as in `3.0`"));
        }
        match (self.thinking, self.max_tokens) {
            (Some(Thinking::Tokens(0..1024)), _) => Some(("thinking", "the least is `1024` tokens")),
            (Some(Thinking::Tokens(tokens)), Some(max)) if tokens >= max => {
                Some(("thinking", "it must leave tokens for the answer: set it below `max_tokens`"))
            }
            (None | Some(Thinking::AsItLikes(_) | Thinking::Tokens(_)), _) => None,
        }
    }

    /// What cannot be meant in it or in what is asked after it.
    fn mistakes(&self) -> Option<(String, &'static str)> {
        if let Some((key, why)) = self.mistake() {
            return Some((format!("model.{key}"), why));
        }
        if !self.fallback.is_empty() && matches!(self.provider, None | Some(ProviderName::Offline)) {
            let why = "there is nothing to fall back from: set `provider` under `[model]` to a model's";
            return Some(("model.fallback".into(), why));
        }
        self.fallback.iter().zip(1..).find_map(|(link, number)| {
            let place = format!("model.fallback, number {number}");
            if link.provider.is_none() {
                return Some((place, "it names no `provider`"));
            }
            if !link.fallback.is_empty() {
                return Some((place, "it has a `fallback` of its own; put all of them into one list"));
            }
            link.mistake().map(|(key, why)| (format!("{place}, `{key}`"), why))
        })
    }
}

/// How she spends her own time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Heartbeat {
    /// Whether there is any.
    pub enabled: bool,
    /// How long one desire rests before it is pursued again. Zero turns the heartbeat off, as `enabled = false` does (T02).
    pub interval: SignedDuration,
    /// The longest one turn of it may take.
    pub turn_max: SignedDuration,
    /// How many tokens one turn of it may use; it ends behind the answer that goes beyond.
    pub tokens_max: Option<u64>,
}

impl Default for Heartbeat {
    fn default() -> Self {
        Self {
            enabled: true,
            interval: SignedDuration::from_hours(6),
            turn_max: SignedDuration::from_mins(10),
            tokens_max: None,
        }
    }
}

impl Heartbeat {
    /// Whether anything happens by itself.
    pub fn is_on(&self) -> bool {
        self.enabled && self.interval.is_positive()
    }
}

/// When a child counts as failed. Restart intensity: more than `deaths_max` deaths within `deaths_window` park a child.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Supervisor {
    /// How many deaths are borne.
    pub deaths_max: u32,
    /// Within what time.
    pub deaths_window: SignedDuration,
    /// How long a child may take until it says that it is ready.
    pub ready_max: SignedDuration,
    /// How long turns under way may still take when the agent is started again for new settings; `0s` cuts them off.
    pub drain_max: SignedDuration,
    /// How long a child that serves may not answer before it is taken to hang, and is ended.
    pub silence_max: SignedDuration,
    /// How long a child that was given up rests before it is tried again; it doubles from there.
    pub retry_first: SignedDuration,
    /// The longest such a rest.
    pub retry_max: SignedDuration,
}

impl Default for Supervisor {
    fn default() -> Self {
        Self {
            deaths_max: 5,
            deaths_window: SignedDuration::from_secs(60),
            ready_max: SignedDuration::from_secs(20),
            drain_max: SignedDuration::from_secs(30),
            silence_max: SignedDuration::from_secs(30),
            retry_first: SignedDuration::from_mins(5),
            retry_max: SignedDuration::from_hours(1),
        }
    }
}

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file is there but cannot be read.
    #[error(
        "could not read the configuration at `{path}`; make it a text file in UTF-8, or move it away for the defaults"
    )]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file does not say what a configuration says.
    #[error(
        "the configuration at `{path}` does not parse; correct the line, or move the file away for the defaults"
    )]
    Parse {
        /// The file.
        path: PathBuf,
        /// Line, column and what was expected there.
        source: Box<toml::de::Error>,
    },
    /// A value is outside of what makes sense.
    #[error("`{key}` in the configuration at `{path}` is not usable: {why}")]
    Value {
        /// The file.
        path: PathBuf,
        /// The key.
        key: String,
        /// What is wrong and what would be right.
        why: String,
    },
}

impl Config {
    /// Reads the file at `path`; one that does not exist is an empty one.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let unreadable = |source| Err(ConfigError::Read { path: path.to_owned(), source });
        // a pipe would be waited on for ever
        if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
            return unreadable(std::io::Error::other("it is not a file"));
        }
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(&text, path),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(source) => unreadable(source),
        }
    }

    /// Reads what a file at `path` says.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let config: Self = toml::from_str(text)
            .map_err(|source| ConfigError::Parse { path: path.to_owned(), source: Box::new(source) })?;
        let wrong = |key: &str, why: String| {
            Err(ConfigError::Value { path: path.to_owned(), key: key.to_owned(), why })
        };
        if let Some(zone) = &config.time_zone
            && let Err(error) = TimeZone::get(zone)
        {
            return wrong("time_zone", format!("{error}; name one as in `Europe/Berlin`"));
        }
        if config.heartbeat.interval.is_negative() {
            return wrong("heartbeat.interval", "it is negative; `0s` turns the heartbeat off".into());
        }
        if !config.heartbeat.turn_max.is_positive() {
            return wrong("heartbeat.turn_max", "a turn needs some time, as in `10m`".into());
        }
        if config.heartbeat.tokens_max == Some(0) {
            return wrong("heartbeat.tokens_max", "a turn needs some tokens, as in `200000`".into());
        }
        let Supervisor {
            deaths_max,
            deaths_window,
            ready_max,
            drain_max,
            silence_max,
            retry_first,
            retry_max,
        } = &config.supervisor;
        let times = [deaths_window, ready_max, silence_max, retry_first, retry_max];
        if *deaths_max == 0 || !times.iter().all(|time| time.is_positive()) {
            let why = "`deaths_max`, `deaths_window`, `ready_max`, `silence_max`, `retry_first` and `retry_max` must be above zero";
            return wrong("supervisor", why.into());
        }
        if retry_max < retry_first {
            return wrong("supervisor.retry_max", "it is below `retry_first`".into());
        }
        if drain_max.is_negative() {
            return wrong("supervisor.drain_max", "it is negative; `0s` waits for no turn".into());
        }
        let gates = &config.gates;
        if ![gates.refuse_below, gates.narrow_below, gates.liked_from]
            .iter()
            .all(|weight| (0.0..=1.0).contains(weight))
        {
            return wrong(
                "gates",
                "`refuse_below`, `narrow_below` and `liked_from` must be from 0 to 1".into(),
            );
        }
        if gates.note_hits.min(gates.note_hits_liked) == 0 {
            let why = "`note_hits` and `note_hits_liked` must be at least 1, or every note would be in every prompt";
            return wrong("gates.note_hits", why.into());
        }
        if gates.ratings_max < gates.ratings_min.max(1) {
            let why = "it must be at least 1 and at least `ratings_min`, or no rating would count";
            return wrong("gates.ratings_max", why.into());
        }
        if !gates.half_life.is_positive() {
            return wrong("gates.half_life", "it must be above zero, as in `168h`".into());
        }
        if let Some((key, why)) = config.dreams.mistake() {
            return wrong(&format!("dreams.{key}"), why);
        }
        if !config.reflect.turn_max.is_positive() || !config.reflect.after.is_positive() {
            let why = "`after` and `turn_max` must be above zero; `enabled = false` turns it off";
            return wrong("reflect", why.into());
        }
        if !config.tools.approval_max.is_positive() {
            let why = "a person needs some time to answer, as in `10m`; `approval = \"auto\"` asks nobody";
            return wrong("tools.approval_max", why.into());
        }
        if let Some(Err(why)) = config.person.as_deref().map(crate::person::check) {
            return wrong("person", why);
        }
        if let Some((key, why)) = config.tools.mistake() {
            return wrong(&format!("tools.{key}"), why);
        }
        if let Some((key, why)) = config.model.mistakes() {
            return wrong(&key, why.into());
        }
        Ok(config)
    }

    /// The zone whose days she lives in.
    pub fn zone(&self) -> TimeZone {
        self.time_zone.as_deref().and_then(|name| TimeZone::get(name).ok()).unwrap_or_else(TimeZone::system)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config, ConfigError> {
        Config::parse(text, Path::new("config.toml"))
    }

    #[test]
    fn an_absent_or_empty_file_is_a_complete_configuration() {
        assert_eq!(Config::read(Path::new("/nowhere/config.toml")).unwrap(), Config::default());
        assert_eq!(parse("").unwrap(), Config::default());
        assert!(Config::default().heartbeat.is_on());
    }

    #[test]
    fn t02_every_spelling_of_off_is_off() {
        for text in [
            "[heartbeat]\nenabled = false",
            "[heartbeat]\ninterval = \"0m\"",
            "[heartbeat]\ninterval = \"0s\"",
        ] {
            assert!(!parse(text).unwrap().heartbeat.is_on(), "{text}");
        }
    }

    #[test]
    fn she_dreams_at_night_unless_she_is_told_not_to() {
        let night = |text: &str| parse(text).unwrap().dreams.night().map(|at| at.to_string());
        assert_eq!(night("").as_deref(), Some("04:00:00"));
        assert_eq!(night("[dreams]\nat = \"23:30\"").as_deref(), Some("23:30:00"));
        assert_eq!(night("[dreams]\nat = \"never\""), None);
    }

    #[test]
    fn a_mistake_is_named_with_file_and_key() {
        let check = |text: &str, named: &str| {
            let said = crate::exit::chain(&parse(text).unwrap_err());
            assert!(said.contains("config.toml") && said.contains(named), "{said}");
        };
        check("[model", "line 1");
        check("[modle]\nname = \"x\"", "modle");
        check("[model]\nprovider = \"openia\"", "openia");
        check("time_zone = \"Mars/Olympus\"", "time_zone");
        check("[heartbeat]\ninterval = \"-5m\"", "heartbeat.interval");
        check("[heartbeat]\nturn_max = \"0s\"", "heartbeat.turn_max");
        check("[supervisor]\ndeaths_max = 0", "supervisor");
        check("[model]\nsilence_max = \"0s\"", "model.silence_max");
        check("[dreams]\nobservations_min = 0", "dreams.observations_min");
        check("[dreams]\ndays_min = 9\ndays_back = 8", "dreams.days_back");
        check("[dreams]\ndays_back = 9999", "dreams.days_back");
        check("[dreams]\nlines_max = 0", "dreams.lines_max");
        check("[dreams]\nat = \"25:00\"", "dreams.at");
        check("[dreams]\nat = \"\"", "dreams.at");
        check("[model]\nmax_tokens = 0", "model.max_tokens");
        check("[model]\nkey_variable = \"sk-1234\"", "model.key_variable");
        check("[model]\nprovider = \"openai\"\nthinking = 4096", "model.thinking");
        check("[model]\nprovider = \"responses\"\nthinking = 4096", "model.thinking");
        assert!(parse("[model]\nprovider = \"responses\"\nthinking = \"adaptive\"").is_ok());
        check("[model]\nprovider = \"anthropic\"\nthinking = \"hard\"", "adaptive");
        check("[model]\nprovider = \"anthropic\"\nthinking = 100", "1024");
        check("[model]\nprovider = \"anthropic\"\nthinking = 4096\nmax_tokens = 4096", "model.thinking");
        check("[model]\nprovider = \"openai\"\ncontext = 0", "model.context");
        check("[model.price]\ninput = -1\noutput = 1", "model.price");
        check("[model.price]\ninput = 1", "output");
        check("[heartbeat]\ntokens_max = 0", "heartbeat.tokens_max");
        check("[model]\n[[model.fallback]]\nprovider = \"openai\"", "model.fallback");
        let chain = |link: &str| format!("[model]\nprovider = \"anthropic\"\n[[model.fallback]]\n{link}");
        check(&chain("name = \"m\""), "provider");
        check(&chain("provider = \"openai\"\nmax_tokens = 0"), "number 1, `max_tokens`");
        check(&chain("provider = \"openai\"\nfallback = [{provider = \"offline\"}]"), "one list");
        check(&chain("provider = \"openai\"\nmodel = \"m\""), "unknown field `model`");
        check("[gates]\nrefuse_below = 1.5", "refuse_below");
        check("[gates]\nhalf_life = \"0s\"", "gates.half_life");
        check("[gates]\nliked_from = -0.1", "liked_from");
        check("[gates]\nnote_hits_liked = 0", "note_hits");
        check("[gates]\nratings_max = 2", "gates.ratings_max");
        check("person = \"../anna\"", "person");
        check("[reflect]\nafter = \"-1m\"", "reflect");
        check("[tools]\nsandbox = \"requird\"", "best-effort");
        check("[tools]\nsandbx = \"off\"", "sandbx");
        check("[tools]\nnetwork = \"no\"", "network");
        check("[tools]\nwrite = [\"work\"]", "tools.write");
        check("[tools]\nwrite = [\"/\"]", "tools.write");
        check("[tools]\nread = [\"~/x\"]", "tools.read");
        check("[tools]\nhidden = [\".ssh\"]", "tools.hidden");
        check("[tools]\napproval = \"ask-mutatin\"", "ask-mutating");
        check("[tools]\napproval_max = \"0s\"", "tools.approval_max");
    }

    #[test]
    fn ap4_a_careful_person_is_asked_without_having_set_anything() {
        let mode = |text: &str| parse(text).unwrap().tools.approval;
        assert_eq!(mode(""), Approval::AskMutating);
        assert_eq!(mode("[tools]\napproval = \"auto\""), Approval::Auto);
        assert_eq!(mode("[tools]\napproval = \"ask\""), Approval::Ask);
        assert_eq!(mode("[tools]\napproval_max = \"1m\""), Approval::AskMutating);
    }

    #[test]
    fn it_travels_in_a_brief_unchanged() {
        let chain = "[model]\nprovider = \"anthropic\"\nname = \"a\"\nthinking = \"adaptive\"\nmax_tokens = 9000\n\
                     fallback = [{provider = \"ollama\", name = \"q\", context = 8192}, {provider = \"offline\"}]";
        let config = parse(chain).unwrap();
        let json = serde_json::to_string(&config).unwrap();
        assert_eq!(serde_json::from_str::<Config>(&json).unwrap(), config);
        let config = parse("time_zone = \"Asia/Shanghai\"\n[model]\nprovider = \"openai\"\nname = \"m\"\nsilence_max = \"90s\"\n\
                            context = 32768\nprice = {input = 3, output = 15.0, cache_read = 0.3}\n[heartbeat]\ntokens_max = 9").unwrap();
        let json = serde_json::to_string(&config).unwrap();
        assert_eq!(serde_json::from_str::<Config>(&json).unwrap(), config);
    }
}
