//! Which provider is used: what the configuration says, then what the environment and `config.env` offer, then the embedded default.
//!
//! Nothing is looked for on the network, no key is made up, and a server that happens to run is never adopted silently.

use std::{fmt, sync::Arc, time::Duration};

use ipc::config::{Model, ProviderName};
use reqwest::Url;

use super::{Provider, ProviderError, offline::Offline, openai::OpenAi};

/// Where OpenAI itself answers.
const OPENAI: &str = "https://api.openai.com/v1";

/// How long a model may stay silent where nothing else is set: slow local models read a long prompt for a minute or more.
const SILENCE_MAX: Duration = Duration::from_mins(2);

/// Keys of vendors whose own protocol this version does not speak, each with its OpenAI-compatible address where it has one.
const OTHER_VENDORS: [(&str, &str, &str); 3] = [
    ("ANTHROPIC_API_KEY", "Anthropic", "https://api.anthropic.com/v1"),
    ("DEEPSEEK_API_KEY", "DeepSeek", "https://api.deepseek.com/v1"),
    ("GEMINI_API_KEY", "Gemini", "https://generativelanguage.googleapis.com/v1beta/openai"),
];

/// What was chosen.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Choice {
    /// The provider to build.
    pub settings: Settings,
    /// What a person may want to know about the choice, as a sentence with what to do.
    pub notice: Option<String>,
}

/// What is needed to build a provider.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Settings {
    /// The embedded default.
    Offline,
    /// OpenAI-compatible chat completions.
    OpenAi(OpenAiSettings),
}

/// What is needed to ask an OpenAI-compatible server.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OpenAiSettings {
    /// The model's name, as the server calls it.
    pub name: String,
    /// Where the server answers, up to and with its version, without a slash at the end.
    pub base_url: Url,
    /// Without one, no `Authorization` header is sent.
    pub key: Option<Key>,
    /// The longest the model may stay silent.
    pub silence_max: Duration,
}

/// A secret. Showing it does not show it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Key(String);

impl Key {
    /// The secret itself, for the one header that carries it and for taking it out of what a server says.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

/// Why what is set cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ChoiceError {
    /// A provider is set, but not which of its models.
    #[error(
        "`provider = \"openai\"` needs to know which model: add `name = \"…\"` under `[model]` in config.toml, or `LISA_MODEL=…` \
         to config.env"
    )]
    NoName,
    /// OpenAI itself answers nobody without a key.
    #[error(
        "`{OPENAI}` answers nobody without a key: add `OPENAI_API_KEY=…` to config.env, or set `base_url` under `[model]` in \
         config.toml to a server that needs none"
    )]
    NoKey,
    /// The address is none.
    #[error("the address `{shown}` in {place} is not usable: {why}")]
    BaseUrl {
        /// The address, without anything secret.
        shown: String,
        /// Where it is set.
        place: &'static str,
        /// What is wrong and what would be right.
        why: String,
    },
    /// The key cannot travel in a header.
    #[error(
        "the key in `OPENAI_API_KEY` contains a character that no key has; look for a stray quote, blank or line break in \
         config.env"
    )]
    Key,
}

/// Decides which provider to use. `env` looks a variable up, in the process environment first and then in `config.env`.
///
/// Without `provider` in the configuration a model is used where a key or an address and a model's name are there; a key
/// alone leaves the embedded default in place and says which line is missing.
pub(crate) fn choose(config: &Model, env: &dyn Fn(&str) -> Option<String>) -> Result<Choice, ChoiceError> {
    if config.provider == Some(ProviderName::Offline) {
        return Ok(Choice { settings: Settings::Offline, notice: None });
    }
    let env = |key: &str| env(key).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
    let set =
        |value: &Option<String>| value.as_deref().map(str::trim).filter(|v| !v.is_empty()).map(str::to_owned);
    let name = set(&config.name).or_else(|| env("LISA_MODEL"));
    let address = set(&config.base_url)
        .map(|url| (url, "`base_url` under `[model]` in config.toml"))
        .or_else(|| env("LISA_BASE_URL").map(|url| (url, "`LISA_BASE_URL`")))
        .or_else(|| env("OPENAI_BASE_URL").map(|url| (url, "`OPENAI_BASE_URL`")));
    let key = env("OPENAI_API_KEY");

    let asked_for = config.provider == Some(ProviderName::OpenAi);
    if !asked_for && key.is_none() && address.is_none() {
        let notice = if name.is_some() {
            Some(
                "a model's name is set, but neither a key nor an address, so she runs offline; add `OPENAI_API_KEY=…` to \
                 config.env, or `base_url = \"…\"` under `[model]` in config.toml"
                    .to_owned(),
            )
        } else {
            other_vendor(&env)
        };
        return Ok(Choice { settings: Settings::Offline, notice });
    }
    let Some(name) = name else {
        if asked_for {
            return Err(ChoiceError::NoName);
        }
        let what = if key.is_some() { "a key (`OPENAI_API_KEY`)" } else { "a server's address" };
        let notice = format!(
            "{what} is set, but not which model to use, so she runs offline; add `name = \"…\"` under `[model]` in config.toml, \
             or `LISA_MODEL=…` to config.env"
        );
        return Ok(Choice { settings: Settings::Offline, notice: Some(notice) });
    };
    let base_url = match &address {
        Some((address, place)) => base_url(address, place)?,
        None if key.is_none() => return Err(ChoiceError::NoKey),
        None => Url::parse(OPENAI).expect("the address of OpenAI parses"),
    };
    if key.as_deref().is_some_and(|key| !key.chars().all(|c| c.is_ascii_graphic())) {
        return Err(ChoiceError::Key);
    }
    let notice = (key.is_some() && base_url.scheme() == "http" && !is_loopback(&base_url)).then(|| {
        format!(
            "the key travels to `{base_url}` without encryption; use an `https` address if the network between is not yours"
        )
    });
    let silence_max = config.silence_max.and_then(|silence| Duration::try_from(silence).ok());
    let settings = Settings::OpenAi(OpenAiSettings {
        name,
        base_url,
        key: key.map(Key),
        silence_max: silence_max.unwrap_or(SILENCE_MAX),
    });
    Ok(Choice { settings, notice })
}

impl Settings {
    /// Makes the provider. Nothing is asked of it yet.
    pub(crate) fn build(&self) -> Result<Arc<dyn Provider>, ProviderError> {
        Ok(match self {
            Self::Offline => Arc::new(Offline),
            Self::OpenAi(settings) => Arc::new(OpenAi::new(settings)?),
        })
    }
}

/// A key of another vendor is there, but its protocol is not spoken here: says how that vendor is reached all the same.
fn other_vendor(env: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let (variable, vendor, address) =
        OTHER_VENDORS.into_iter().find(|(variable, ..)| env(variable).is_some())?;
    Some(format!(
        "`{variable}` is set, but this version speaks OpenAI-compatible chat completions only, so she runs offline; to use \
         {vendor} through its compatible address, set `base_url = \"{address}\"` and `name = \"…\"` under `[model]` in \
         config.toml, and put the key into config.env as `OPENAI_API_KEY=…`"
    ))
}

/// Checks an address and brings it into the form the client appends to.
fn base_url(address: &str, place: &'static str) -> Result<Url, ChoiceError> {
    let wrong = |shown: String, why: &str| Err(ChoiceError::BaseUrl { shown, place, why: why.to_owned() });
    let mut url = match Url::parse(address) {
        Ok(url) => url,
        // What does not parse may still hold a password, so nothing before an `@` is shown.
        Err(error) => {
            let shown = address.rsplit_once('@').map_or(address, |(_, host)| host);
            let why = format!("{error}; write it as in `http://127.0.0.1:8080/v1`");
            return wrong(ipc::text::one_line(shown, 80), &why);
        }
    };
    if !url.username().is_empty() || url.password().is_some() {
        let host = url.host_str().unwrap_or_default().to_owned();
        return wrong(
            host,
            "it contains a user name or password; put the key into config.env as `OPENAI_API_KEY=…`",
        );
    }
    url.set_fragment(None);
    let shown = without_query(&url);
    if !matches!(url.scheme(), "http" | "https") {
        return wrong(shown, "it begins neither with `http://` nor with `https://`");
    }
    if url.host_str().is_none_or(str::is_empty) {
        return wrong(shown, "it names no host; write it as in `http://127.0.0.1:8080/v1`");
    }
    // People copy the address of the method itself; what they mean is clear.
    let path = url.path().trim_end_matches('/');
    let path = path.strip_suffix("/chat/completions").unwrap_or(path).trim_end_matches('/').to_owned();
    url.set_path(&path);
    Ok(url)
}

/// An address as it may be shown: queries of some gateways carry a key.
pub(super) fn without_query(url: &Url) -> String {
    let mut shown = url.clone();
    shown.set_query(None);
    shown.to_string().trim_end_matches('/').to_owned()
}

/// Whether an address stays on this machine.
pub(super) fn is_loopback(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = host.parse::<std::net::IpAddr>() {
        return address.is_loopback() || address.is_unspecified();
    }
    let host = host.trim_end_matches('.');
    host == "localhost" || host.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ipc::config::Config;
    use std::path::Path;

    fn decide(toml: &str, env: &[(&str, &str)]) -> Result<Choice, ChoiceError> {
        let config = Config::parse(&format!("[model]\n{toml}"), Path::new("config.toml")).unwrap();
        choose(&config.model, &|key| env.iter().find(|(k, _)| *k == key).map(|(_, v)| (*v).to_owned()))
    }

    fn openai(toml: &str, env: &[(&str, &str)]) -> OpenAiSettings {
        match decide(toml, env).unwrap().settings {
            Settings::OpenAi(settings) => settings,
            Settings::Offline => panic!("offline: {toml} {env:?}"),
        }
    }

    #[test]
    fn what_is_set_decides() {
        let found = openai("name = 'm'\nbase_url = 'http://127.0.0.1:8080/v1/'\nprovider = 'openai'", &[]);
        assert_eq!(found.base_url.as_str(), "http://127.0.0.1:8080/v1");
        assert_eq!((found.name.as_str(), &found.key, found.silence_max), ("m", &None, SILENCE_MAX));

        let env = [
            ("OPENAI_API_KEY", "sk"),
            ("LISA_MODEL", "env"),
            ("LISA_BASE_URL", "http://a/v1"),
            ("OPENAI_BASE_URL", "http://b"),
        ];
        let found = openai("", &env);
        assert_eq!((found.name.as_str(), found.base_url.as_str()), ("env", "http://a/v1"));
        let found =
            openai("name = 'mine'\nbase_url = 'https://c/x/chat/completions'\nsilence_max = '5s'", &env);
        assert_eq!((found.name.as_str(), found.base_url.as_str()), ("mine", "https://c/x"));
        assert_eq!(found.silence_max, Duration::from_secs(5));

        let found = openai("name = 'm'", &[("OPENAI_API_KEY", "sk")]);
        assert_eq!(found.base_url.as_str(), OPENAI);

        let offline = Choice { settings: Settings::Offline, notice: None };
        assert_eq!(decide("provider = 'offline'", &env).unwrap(), offline);
        assert_eq!(decide("", &[]).unwrap(), offline);
        assert_eq!(decide("", &[("OPENAI_API_KEY", " ")]).unwrap(), offline);
    }

    #[test]
    fn half_a_choice_stays_offline_and_names_the_missing_line() {
        let check = |toml: &str, env: &[(&str, &str)], named: &[&str]| {
            let choice = decide(toml, env).unwrap();
            assert_eq!(choice.settings, Settings::Offline);
            let notice = choice.notice.unwrap();
            assert!(named.iter().all(|word| notice.contains(word)), "{notice}");
        };
        check("", &[("OPENAI_API_KEY", "sk")], &["OPENAI_API_KEY", "name = ", "LISA_MODEL"]);
        check("", &[("LISA_BASE_URL", "http://127.0.0.1:1/v1")], &["address", "name = "]);
        check("name = 'm'", &[], &["OPENAI_API_KEY", "base_url"]);
        check("", &[("DEEPSEEK_API_KEY", "x")], &["DEEPSEEK_API_KEY", "https://api.deepseek.com/v1", "name"]);
        check("", &[("GEMINI_API_KEY", "x")], &["OpenAI-compatible", "/v1beta/openai"]);
        check("", &[("ANTHROPIC_API_KEY", "x")], &["Anthropic"]);
    }

    #[test]
    fn what_cannot_be_used_is_an_error_that_says_what_to_do() {
        let check = |toml: &str, env: &[(&str, &str)], named: &str| {
            let said = decide(toml, env).unwrap_err().to_string();
            assert!(said.contains(named), "{said}");
            assert!(!said.contains("geheim"), "{said}");
        };
        check("provider = 'openai'", &[], "name = ");
        check("provider = 'openai'\nname = 'm'", &[], "OPENAI_API_KEY");
        check("provider = 'openai'\nname = 'm'\nbase_url = '127.0.0.1:8080'", &[], "config.toml");
        check("name = 'm'\nbase_url = 'localhost:8080/v1'", &[], "http://");
        check("name = 'm'\nbase_url = 'ftp://x/v1'", &[], "ftp://x/v1");
        check("name = 'm'", &[("LISA_BASE_URL", "not an address")], "LISA_BASE_URL");
        check("name = 'm'\nbase_url = 'https://me:geheim@x/v1'", &[], "OPENAI_API_KEY");
        check("name = 'm'\nbase_url = 'https//me:geheim@x/v1'", &[], "config.toml");
        check("name = 'm'", &[("OPENAI_API_KEY", "ge\u{201c}heim")], "stray quote");
    }

    #[test]
    fn a_key_is_never_shown_and_a_key_in_the_clear_is_said() {
        let choice = decide(
            "name = 'm'",
            &[("OPENAI_API_KEY", "sk-geheim"), ("LISA_BASE_URL", "http://far.example/v1")],
        )
        .unwrap();
        assert!(!format!("{choice:?}").contains("geheim"));
        assert!(choice.notice.unwrap().contains("without encryption"));
    }

    #[test]
    fn c7_22_loopback_is_recognised() {
        let check =
            |url: &str, expected: bool| assert_eq!(is_loopback(&Url::parse(url).unwrap()), expected, "{url}");
        for url in [
            "http://127.0.0.1:1",
            "http://127.1.2.3",
            "http://[::1]:8",
            "http://localhost",
            "http://m.localhost:80",
        ] {
            check(url, true);
        }
        for url in
            ["http://10.0.0.1", "https://api.openai.com", "http://localhost.example", "http://[2001:db8::1]"]
        {
            check(url, false);
        }
    }
}
