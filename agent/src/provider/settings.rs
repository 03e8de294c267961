//! What is needed to build a provider, and the building.

use std::{fmt, sync::Arc, time::Duration};

use ipc::config::{Price, Thinking};
use reqwest::Url;

use super::{
    Budget, Provider, ProviderError,
    anthropic::Anthropic,
    http::{Dialect, Remote},
    offline::Offline,
    ollama::Ollama,
    openai::OpenAi,
    responses::Responses,
};

/// A provider that can be built.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Settings {
    /// The embedded default.
    Offline,
    /// A server.
    Remote(Box<RemoteSettings>),
}

/// What a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speaks {
    /// OpenAI-compatible chat completions.
    OpenAi,
    /// Anthropic's Messages.
    Anthropic,
    /// Ollama's own protocol.
    Ollama,
    /// OpenAI's Responses.
    Responses,
}

/// What is needed to ask a server.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RemoteSettings {
    /// What it speaks.
    pub speaks: Speaks,
    /// The model's name, as the server calls it.
    pub name: String,
    /// Where the server answers, up to and with its version, without a slash at the end.
    pub base_url: Url,
    /// Without one, no header for it is sent.
    pub key: Option<Key>,
    /// The variable the key is, or would be, taken from; empty where none is known.
    pub key_variable: String,
    /// The longest the model may stay silent.
    pub silence_max: Duration,
    /// The longest an answer may be, in tokens.
    pub max_tokens: Option<u32>,
    /// How it thinks before it answers.
    pub thinking: Option<Thinking>,
    /// How many tokens of a conversation it takes in.
    pub context: Option<u32>,
    /// What its tokens cost.
    pub price: Option<Price>,
}

impl Settings {
    /// Makes the provider, which asks again as often as `budget` allows. Nothing is asked of it yet.
    pub(super) fn build(&self, budget: &Budget) -> Result<Arc<dyn Provider>, ProviderError> {
        Ok(match self {
            Self::Offline => Arc::new(Offline),
            Self::Remote(settings) => match settings.speaks {
                Speaks::OpenAi => Arc::new(Remote::<OpenAi>::new(settings, budget)?),
                Speaks::Anthropic => Arc::new(Remote::<Anthropic>::new(settings, budget)?),
                Speaks::Ollama => Arc::new(Remote::<Ollama>::new(settings, budget)?),
                Speaks::Responses => Arc::new(Remote::<Responses>::new(settings, budget)?),
            },
        })
    }
}

impl RemoteSettings {
    /// The model as [`Provider::model`] names it.
    pub(super) fn model(&self) -> String {
        let provider = match self.speaks {
            Speaks::OpenAi => OpenAi::PROVIDER,
            Speaks::Anthropic => Anthropic::PROVIDER,
            Speaks::Ollama => Ollama::PROVIDER,
            Speaks::Responses => Responses::PROVIDER,
        };
        format!("{provider}/{}", self.name)
    }
}

/// A secret. Showing it does not show it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Key(String);

impl Key {
    /// A secret that is to be kept; nothing where a character of it could not travel in a header.
    pub(super) fn new(key: String) -> Option<Self> {
        key.chars().all(|c| c.is_ascii_graphic()).then_some(Self(key))
    }

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

/// An address as it may be shown: queries of some gateways carry a key.
pub(crate) fn without_query(url: &Url) -> String {
    let mut shown = url.clone();
    shown.set_query(None);
    shown.to_string().trim_end_matches('/').to_owned()
}

/// Whether an address stays on this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = host.parse::<std::net::IpAddr>() {
        return address.is_loopback() || address.is_unspecified();
    }
    let host = host.trim_end_matches('.');
    host == "localhost" || host.ends_with(".localhost")
}

#[cfg(test)]
impl RemoteSettings {
    /// For the model `m` of a server that is never asked.
    pub(super) fn of_test(speaks: Speaks) -> Self {
        Self {
            speaks,
            name: "m".into(),
            base_url: Url::parse("http://127.0.0.1:9/v1").unwrap(),
            key: None,
            key_variable: "OPENAI_API_KEY".into(),
            silence_max: Duration::from_secs(1),
            max_tokens: None,
            thinking: None,
            context: None,
            price: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
