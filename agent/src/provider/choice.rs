//! Which provider is used: what the configuration says, then what the environment and `config.env` offer, then the embedded default.
//!
//! Nothing is looked for on the network, no key and no model is made up, and a server that happens to run is never adopted
//! silently. What is asked after the first model is only what the configuration lists.

use std::{sync::Arc, time::Duration};

use ipc::config::{Model, ProviderName};
use reqwest::Url;

use super::{
    Budget, Known, Provider, ProviderError,
    chain::Chain,
    local::address_of,
    settings::{Key, RemoteSettings, Settings, Speaks, is_loopback, without_query},
};

/// How long a model may stay silent where nothing else is set: slow local models read a long prompt for a minute or more.
const SILENCE_MAX: Duration = Duration::from_mins(2);

/// Where Ollama answers where nothing else is set.
const OLLAMA: &str = "http://127.0.0.1:11434";

/// Why it is the one that a person named.
const CONFIGURED: &str = "`provider` under `[model]` in config.toml says so";

/// Somebody who answers those with a key.
struct Vendor {
    variable: &'static str,
    name: &'static str,
    speaks: Speaks,
    address: &'static str,
}

const OPENAI: Vendor = Vendor {
    variable: "OPENAI_API_KEY",
    name: "OpenAI",
    speaks: Speaks::OpenAi,
    address: "https://api.openai.com/v1",
};

const ANTHROPIC: Vendor = Vendor {
    variable: "ANTHROPIC_API_KEY",
    name: "Anthropic",
    speaks: Speaks::Anthropic,
    address: "https://api.anthropic.com/v1",
};

/// In the order in which a key of theirs counts where no provider is set.
const VENDORS: [Vendor; 4] = [
    ANTHROPIC,
    OPENAI,
    Vendor {
        variable: "DEEPSEEK_API_KEY",
        name: "DeepSeek",
        speaks: Speaks::OpenAi,
        address: "https://api.deepseek.com/v1",
    },
    Vendor {
        variable: "GEMINI_API_KEY",
        name: "Gemini",
        speaks: Speaks::OpenAi,
        address: "https://generativelanguage.googleapis.com/v1beta/openai",
    },
];

/// What was chosen.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Choice {
    /// The provider to ask.
    pub settings: Settings,
    /// Those to ask, in order, when it cannot answer.
    pub fallback: Vec<Settings>,
    /// What a person may want to know about the choice, as a sentence with what to do.
    pub notice: Option<String>,
    /// Why it is this one, as the end of a sentence.
    pub because: String,
}

/// Why what is set cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ChoiceError {
    /// A provider is set, but not which of its models.
    #[error(
        "`provider = \"{provider}\"` needs to know which model: add `name = \"…\"` under `[model]` in config.toml, or \
         `LISA_MODEL=…` to config.env"
    )]
    NoName {
        /// As the configuration calls it.
        provider: &'static str,
    },
    /// The vendor answers nobody without a key.
    #[error(
        "`{address}` answers nobody without a key: add `{variable}=…` to config.env, or set `base_url` under `[model]` in \
         config.toml to a server that needs none"
    )]
    NoKey {
        /// Who.
        address: &'static str,
        /// What is looked for.
        variable: &'static str,
    },
    /// A variable is named that is not set.
    #[error(
        "`key_variable` under `[model]` in config.toml names `{variable}`, which is not set: add `{variable}=…` to config.env"
    )]
    NoVariable {
        /// The one named.
        variable: String,
    },
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
        "the key in `{variable}` contains a character that no key has; look for a stray quote, blank or line break in \
         config.env"
    )]
    Key {
        /// Where it is.
        variable: String,
    },
    /// One of those to fall back to cannot be used.
    #[error("number {number} of `fallback` under `[model]` in config.toml is not usable")]
    Link {
        /// Which, counted from 1.
        number: usize,
        /// Why.
        source: Box<ChoiceError>,
    },
}

/// Looks a variable up: trimmed, and nothing where it is blank.
type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Decides which provider to use. `env` looks a variable up, in the process environment first and then in `config.env`.
///
/// Without `provider` in the configuration a model is used where a key or an address and a model's name are there; a key
/// alone leaves the embedded default in place and says which line is missing.
pub(crate) fn choose(config: &Model, env: Env<'_>) -> Result<Choice, ChoiceError> {
    let env = |key: &str| env(key).and_then(|value| filled(&value));
    let First { settings, notice, because } = first(config, &env)?;
    let links = config.fallback.iter().zip(1..).map(|(config, number)| {
        link(config, &env).map_err(|source| ChoiceError::Link { number, source: Box::new(source) })
    });
    Ok(Choice { settings, fallback: links.collect::<Result<_, _>>()?, notice, because })
}

impl Choice {
    /// All that are asked, in order.
    pub(crate) fn all(&self) -> Vec<Settings> {
        std::iter::once(&self.settings).chain(&self.fallback).cloned().collect()
    }

    /// What is known of the models in it.
    pub(crate) fn known(&self) -> Known {
        Known::of(std::iter::once(&self.settings).chain(&self.fallback))
    }

    /// Makes the provider, or the chain of them. Nothing is asked yet.
    pub(crate) fn build(&self, budget: &Budget) -> Result<Arc<dyn Provider>, ProviderError> {
        let first = self.settings.build(budget)?;
        if self.fallback.is_empty() {
            return Ok(first);
        }
        let others = self.fallback.iter().map(|link| link.build(budget)).collect::<Result<_, _>>()?;
        Ok(Arc::new(Chain::new(first, others)))
    }
}

/// The variables of keys that are set and would be looked at, by name: those of vendors, and those the configuration names.
pub(crate) fn key_variables(config: &Model, env: Env<'_>) -> Vec<String> {
    let links =
        std::iter::once(config).chain(&config.fallback).filter_map(|link| link.key_variable.as_deref());
    let mut names: Vec<&str> = VENDORS.iter().map(|vendor| vendor.variable).collect();
    for name in links {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let is_set = |name: &&str| env(name).and_then(|value| filled(&value)).is_some();
    names.into_iter().filter(is_set).map(str::to_owned).collect()
}

/// The one that is asked first, what a person may want to know about that, and why it is this one.
struct First {
    settings: Settings,
    notice: Option<String>,
    because: String,
}

impl First {
    fn offline(notice: Option<String>, because: &str) -> Self {
        Self { settings: Settings::Offline, notice, because: because.to_owned() }
    }
}

fn first(config: &Model, env: Env<'_>) -> Result<First, ChoiceError> {
    let name = config.name.as_deref().and_then(filled).or_else(|| env("LISA_MODEL"));
    let speaks = match config.provider {
        Some(ProviderName::Offline) => return Ok(First::offline(None, CONFIGURED)),
        Some(ProviderName::OpenAi) => Some(Speaks::OpenAi),
        Some(ProviderName::Anthropic) => Some(Speaks::Anthropic),
        Some(ProviderName::Ollama) => Some(Speaks::Ollama),
        Some(ProviderName::Responses) => Some(Speaks::Responses),
        None => None,
    };
    let address = address(config, speaks.unwrap_or(Speaks::OpenAi), env);
    if let Some(speaks) = speaks {
        let name = name.ok_or(ChoiceError::NoName { provider: word(speaks) })?;
        let (settings, notice) = in_use(remote(config, speaks, name, address.as_ref(), true, env)?);
        return Ok(First { settings, notice, because: CONFIGURED.to_owned() });
    }
    let keys: Vec<&Vendor> = VENDORS.iter().filter(|vendor| env(vendor.variable).is_some()).collect();
    let by_key = address.is_none();
    let (what, speaks, address) = match (address, keys.first()) {
        (Some(address), _) => ("a server's address".to_owned(), Speaks::OpenAi, address),
        (None, Some(vendor)) => {
            let address = (vendor.address.to_owned(), "the list of vendors");
            (format!("a key (`{}`)", vendor.variable), vendor.speaks, address)
        }
        (None, None) => {
            let notice = name.is_some().then(|| {
                "a model's name is set, but neither a key nor an address, so she runs offline; add `OPENAI_API_KEY=…` or \
                 `ANTHROPIC_API_KEY=…` to config.env, or `base_url = \"…\"` under `[model]` in config.toml"
                    .to_owned()
            });
            return Ok(First::offline(notice, "neither config.toml nor the environment names another"));
        }
    };
    let Some(name) = name else {
        let notice = format!(
            "{what} is set, but not which model to use, so she runs offline; add `name = \"…\"` under `[model]` in config.toml, \
             or `LISA_MODEL=…` to config.env"
        );
        return Ok(First::offline(Some(notice), "no model's name is set"));
    };
    let (settings, notice) = in_use(remote(config, speaks, name, Some(&address), true, env)?);
    let notice = match (keys.as_slice(), notice) {
        ([first, second, ..], None) if by_key => Some(format!(
            "`{}` and `{}` are both set, and she asks {}; name the one you mean as `provider` under `[model]` in config.toml",
            first.variable, second.variable, first.name
        )),
        (_, notice) => notice,
    };
    let because = match (by_key, keys.first()) {
        (true, Some(vendor)) => format!("`{}` is set", vendor.variable),
        (true, None) | (false, _) => format!("{} is set", address.1),
    };
    Ok(First { settings, notice, because })
}

/// One of those that are asked later. Nothing but its key is taken from the environment, because what stands there is about
/// the first.
fn link(config: &Model, env: Env<'_>) -> Result<Settings, ChoiceError> {
    let speaks = match config.provider {
        None | Some(ProviderName::Offline) => return Ok(Settings::Offline),
        Some(ProviderName::OpenAi) => Speaks::OpenAi,
        Some(ProviderName::Anthropic) => Speaks::Anthropic,
        Some(ProviderName::Ollama) => Speaks::Ollama,
        Some(ProviderName::Responses) => Speaks::Responses,
    };
    let name =
        config.name.as_deref().and_then(filled).ok_or(ChoiceError::NoName { provider: word(speaks) })?;
    let address = address(config, speaks, &|_| None);
    Ok(Settings::Remote(Box::new(remote(config, speaks, name, address.as_ref(), false, env)?)))
}

/// Where a server answers, and where that is said.
fn address(config: &Model, speaks: Speaks, env: Env<'_>) -> Option<(String, &'static str)> {
    let variables: &[(&str, &'static str)] = match speaks {
        Speaks::OpenAi => &[("LISA_BASE_URL", "`LISA_BASE_URL`"), ("OPENAI_BASE_URL", "`OPENAI_BASE_URL`")],
        Speaks::Responses => &[("OPENAI_BASE_URL", "`OPENAI_BASE_URL`")],
        Speaks::Anthropic => &[("ANTHROPIC_BASE_URL", "`ANTHROPIC_BASE_URL`")],
        Speaks::Ollama => &[("OLLAMA_BASE_URL", "`OLLAMA_BASE_URL`")],
    };
    let set = config.base_url.as_deref().and_then(filled);
    // what Ollama's own programs go by, often without a scheme or a port
    let host = || {
        let host = env("OLLAMA_HOST").filter(|_| speaks == Speaks::Ollama)?;
        Some((address_of(&host).map_or(host, |url| url.to_string()), "`OLLAMA_HOST`"))
    };
    set.map(|url| (url, "`base_url` under `[model]` in config.toml"))
        .or_else(|| variables.iter().find_map(|(variable, place)| Some((env(variable)?, *place))))
        .or_else(host)
}

/// What is needed to ask a server. `is_first` may use the variable of OpenAI's key at any address, as everybody does.
fn remote(
    config: &Model,
    speaks: Speaks,
    name: String,
    address: Option<&(String, &'static str)>,
    is_first: bool,
    env: Env<'_>,
) -> Result<RemoteSettings, ChoiceError> {
    let usual = match speaks {
        Speaks::OpenAi | Speaks::Responses => Some(OPENAI),
        Speaks::Anthropic => Some(ANTHROPIC),
        Speaks::Ollama => None,
    };
    let base_url = match (address, &usual) {
        (Some((address, place)), _) => base_url(address, place, speaks)?,
        (None, usual) => Url::parse(usual.as_ref().map_or(OLLAMA, |vendor| vendor.address))
            .expect("the address of a vendor parses"),
    };
    let at_home =
        |vendor: &Vendor| Url::parse(vendor.address).is_ok_and(|home| home.host_str() == base_url.host_str());
    let mut variables: Vec<&str> = VENDORS.iter().filter(|v| at_home(v)).map(|v| v.variable).collect();
    // A later one with an address of its own is sent no key that was not meant for it.
    variables.extend(usual.iter().filter(|_| is_first).map(|vendor| vendor.variable));
    let (key_variable, key) = if let Some(named) = &config.key_variable {
        let key = env(named).ok_or_else(|| ChoiceError::NoVariable { variable: named.clone() })?;
        (named.as_str(), Some(key))
    } else {
        let found = variables.iter().find_map(|name| Some((*name, Some(env(name)?))));
        found.unwrap_or((variables.first().copied().unwrap_or_default(), None))
    };
    if let Some(vendor) = usual.filter(|vendor| key.is_none() && at_home(vendor)) {
        return Err(ChoiceError::NoKey { address: vendor.address, variable: vendor.variable });
    }
    let key = match key {
        Some(key) => {
            Some(Key::new(key).ok_or_else(|| ChoiceError::Key { variable: key_variable.to_owned() })?)
        }
        None => None,
    };
    let silence_max = config.silence_max.and_then(|silence| Duration::try_from(silence).ok());
    Ok(RemoteSettings {
        speaks,
        name,
        base_url,
        key,
        key_variable: key_variable.to_owned(),
        silence_max: silence_max.unwrap_or(SILENCE_MAX),
        max_tokens: config.max_tokens,
        thinking: config.thinking,
        context: config.context,
        price: config.price,
    })
}

fn in_use(settings: RemoteSettings) -> (Settings, Option<String>) {
    let RemoteSettings { base_url, key, .. } = &settings;
    let notice = (key.is_some() && base_url.scheme() == "http" && !is_loopback(base_url)).then(|| {
        format!(
            "the key travels to `{}` without encryption; use an `https` address if the network between is not yours",
            without_query(base_url)
        )
    });
    (Settings::Remote(Box::new(settings)), notice)
}

fn word(speaks: Speaks) -> &'static str {
    match speaks {
        Speaks::OpenAi => "openai",
        Speaks::Anthropic => "anthropic",
        Speaks::Ollama => "ollama",
        Speaks::Responses => "responses",
    }
}

fn filled(value: &str) -> Option<String> {
    let value = value.trim();
    (!value.is_empty()).then(|| value.to_owned())
}

/// Checks an address and brings it into the form the client appends to.
fn base_url(address: &str, place: &'static str, speaks: Speaks) -> Result<Url, ChoiceError> {
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
            "it contains a user name or password; put the key into config.env, as in `OPENAI_API_KEY=…`",
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
    // People copy the address of the method itself, or leave the version out as this vendor's own programs do; what they mean
    // is clear.
    let cut = |path: &str, end: &str| path.strip_suffix(end).unwrap_or(path).trim_end_matches('/').to_owned();
    let path = url.path().trim_end_matches('/').to_owned();
    let path = match speaks {
        Speaks::OpenAi => cut(&path, "/chat/completions"),
        Speaks::Responses => cut(&path, "/responses"),
        Speaks::Anthropic => format!("{}/v1", cut(&cut(&path, "/messages"), "/v1")),
        Speaks::Ollama => cut(&cut(&cut(&path, "/chat"), "/api"), "/v1"),
    };
    url.set_path(&path);
    Ok(url)
}

#[cfg(test)]
mod tests;
