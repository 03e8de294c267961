//! What a model is called where a person names one, and what such a name means for the configuration.
//!
//! ```text
//!  offline · openai/gpt-5 · deepseek/deepseek-chat · ollama/qwen3:8b · llama.cpp/qwen2.5      who/which
//!  qwen3:8b                                                                                   which, where one server has it
//! ```
//!
//! A name leads to the keys below `[model]` that are to be set, and to those that were about the one before.

use ipc::config::{Model, ProviderName};

use super::{
    local::{Found, Kind},
    settings::{Settings, Speaks, without_query},
};

/// What a name is for the embedded default.
pub(crate) const OFFLINE: &str = "offline";

/// Somebody who can be named before the slash.
struct Who {
    word: &'static str,
    provider: ProviderName,
    /// Where it answers; nothing where that is the provider's usual place.
    address: Option<&'static str>,
}

/// Vendors and protocols; the servers on this machine are beside these.
const WHO: [Who; 6] = [
    Who { word: "anthropic", provider: ProviderName::Anthropic, address: None },
    Who { word: "openai", provider: ProviderName::OpenAi, address: None },
    Who { word: "responses", provider: ProviderName::Responses, address: None },
    Who { word: "ollama", provider: ProviderName::Ollama, address: None },
    Who { word: "deepseek", provider: ProviderName::OpenAi, address: Some("https://api.deepseek.com/v1") },
    Who {
        word: "gemini",
        provider: ProviderName::OpenAi,
        address: Some("https://generativelanguage.googleapis.com/v1beta/openai"),
    },
];

/// What a name means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The embedded default.
    Offline,
    /// The one that is asked first already.
    Same,
    /// Another model of the server that is asked first.
    Renamed(String),
    /// Another server.
    Other {
        /// What it speaks.
        provider: ProviderName,
        /// The model's name, as it calls it.
        name: String,
        /// Where it answers; nothing for the provider's usual place.
        address: Option<String>,
        /// The variable of its key, where that is not the usual one.
        key_variable: Option<String>,
    },
}

/// Why a name means nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NameError {
    /// Nobody has it.
    #[error(
        "no server on this machine has a model `{name}`{nearest}; name it with who answers for it, as in `ollama/qwen3:8b` or \
         `openai/gpt-5`, and see `lisa model list`"
    )]
    Unknown {
        /// As it was typed.
        name: String,
        /// The nearest that is known, as a part of the sentence.
        nearest: String,
    },
    /// Several have it.
    #[error("`{name}` is a model of several servers: name it as one of {these}")]
    Several {
        /// As it was typed.
        name: String,
        /// Those it may be.
        these: String,
    },
    /// Nobody is called so.
    #[error("nobody is called `{who}`{nearest}; before the slash stands one of {known}")]
    Who {
        /// As it was typed.
        who: String,
        /// The nearest that is known, as a part of the sentence.
        nearest: String,
        /// Those there are.
        known: String,
    },
    /// There is nothing behind the slash.
    #[error("`{who}/` does not say which model: name it as in `{who}/NAME`")]
    NoName {
        /// What stands before the slash.
        who: String,
    },
    /// It cannot be a name.
    #[error("a model's name has at most 200 characters and none that nobody can see")]
    Unusable,
}

/// What is called so. `configured` is the chain as it was chosen, the one that is asked first before the others, and
/// `links` what the configuration says of those others.
pub(crate) fn wanted(
    name: &str,
    configured: &[Settings],
    links: &[Model],
    found: &[Found],
) -> Result<Wanted, NameError> {
    let name = name.trim();
    let seen = |c: char| !c.is_control() && !ipc::text::is_direction(c);
    if ipc::text::is_blank(name) || ipc::text::chars(name) > 200 || !name.chars().all(seen) {
        return Err(NameError::Unusable);
    }
    let names: Vec<String> = configured.iter().map(called).collect();
    if names.first().is_some_and(|first| first == name) {
        return Ok(Wanted::Same);
    }
    if name == OFFLINE {
        return Ok(Wanted::Offline);
    }
    // the configuration says of a link what no name could
    if let Some(at) = names.iter().skip(1).position(|link| link == name)
        && let Some(link @ Model { provider: Some(provider), name: Some(model), .. }) = links.get(at)
    {
        return Ok(Wanted::Other {
            provider: *provider,
            name: model.clone(),
            address: link.base_url.clone(),
            key_variable: link.key_variable.clone(),
        });
    }
    let offered = found.iter().flat_map(|server| server.models.iter().map(move |model| (server, model)));
    let these: Vec<_> = offered
        .filter(|(server, model)| model.name == name || local_name(server.kind, &model.name) == name)
        .collect();
    match these.as_slice() {
        [(server, model)] => return Ok(local(server.kind, &server.address, &model.name)),
        [] => {}
        several => {
            let these: Vec<_> = several
                .iter()
                .map(|(server, model)| format!("`{}`", local_name(server.kind, &model.name)))
                .collect();
            return Err(NameError::Several { name: name.to_owned(), these: these.join(", ") });
        }
    }
    let Some((who, model)) = name.split_once('/') else {
        let known: Vec<_> =
            found.iter().flat_map(|server| &server.models).map(|model| model.name.as_str()).collect();
        let nearest = ipc::text::nearest(name, known).map(|near| format!(" (did you mean `{near}`?)"));
        return Err(NameError::Unknown { name: name.to_owned(), nearest: nearest.unwrap_or_default() });
    };
    if ipc::text::is_blank(model) {
        return Err(NameError::NoName { who: who.to_owned() });
    }
    if let (Some(Settings::Remote(first)), Some(first_name)) = (configured.first(), names.first())
        && first_name.strip_suffix(first.name.as_str()).and_then(|rest| rest.strip_suffix('/')) == Some(who)
    {
        return Ok(Wanted::Renamed(model.to_owned()));
    }
    if let Some(kind) = Kind::ALL.into_iter().find(|kind| kind.word() == who) {
        let address = found.iter().find(|server| server.kind == kind).map(|server| server.address.as_str());
        return Ok(local(kind, address.unwrap_or(kind.usual()), model));
    }
    if let Some(known) = WHO.iter().find(|known| known.word == who) {
        return Ok(Wanted::Other {
            provider: known.provider,
            name: model.to_owned(),
            address: known.address.map(str::to_owned),
            key_variable: None,
        });
    }
    let others = Kind::ALL.into_iter().map(Kind::word).filter(|word| *word != "ollama");
    let known: Vec<_> = WHO.iter().map(|known| known.word).chain(others).collect();
    let nearest = ipc::text::nearest(who, known.iter().copied());
    let nearest = nearest.map(|near| format!(" (did you mean `{near}/{model}`?)"));
    let list: Vec<_> = known.iter().map(|word| format!("`{word}`")).collect();
    Err(NameError::Who { who: who.to_owned(), nearest: nearest.unwrap_or_default(), known: list.join(", ") })
}

fn local(kind: Kind, address: &str, name: &str) -> Wanted {
    let is_usual = kind == Kind::Ollama && address == kind.usual();
    Wanted::Other {
        provider: kind.provider(),
        name: name.to_owned(),
        address: (!is_usual).then(|| address.to_owned()),
        key_variable: None,
    }
}

/// What a model of a server on this machine is called.
pub(crate) fn local_name(kind: Kind, model: &str) -> String {
    format!("{}/{model}", kind.word())
}

/// What a configured model is called: by who answers at its address where that is known, else by what it speaks.
pub(crate) fn called(settings: &Settings) -> String {
    let settings = match settings {
        Settings::Offline => return OFFLINE.to_owned(),
        Settings::Remote(settings) => settings,
    };
    let address = without_query(&settings.base_url);
    let speaks = |provider| speaks(provider) == Some(settings.speaks);
    let of_kind = Kind::ALL.into_iter().find(|kind| kind.usual() == address && speaks(kind.provider()));
    let of_vendor = WHO.iter().find(|who| who.address == Some(address.as_str()) && speaks(who.provider));
    let who = of_kind.map(Kind::word).or(of_vendor.map(|who| who.word)).unwrap_or(word(settings.speaks));
    format!("{who}/{}", settings.name)
}

/// What a provider of the configuration speaks.
fn speaks(provider: ProviderName) -> Option<Speaks> {
    match provider {
        ProviderName::Offline => None,
        ProviderName::OpenAi => Some(Speaks::OpenAi),
        ProviderName::Anthropic => Some(Speaks::Anthropic),
        ProviderName::Ollama => Some(Speaks::Ollama),
        ProviderName::Responses => Some(Speaks::Responses),
    }
}

fn word(speaks: Speaks) -> &'static str {
    match speaks {
        Speaks::OpenAi => "openai",
        Speaks::Anthropic => "anthropic",
        Speaks::Ollama => "ollama",
        Speaks::Responses => "responses",
    }
}

/// The keys below `[model]` that a wish sets, and those that it takes out, where they are there.
pub(crate) fn keys(wanted: &Wanted, before: &Model) -> Vec<(&'static str, Option<String>)> {
    match wanted {
        Wanted::Same => Vec::new(),
        // what is about a model stays for the way back, but for what cannot stand beside `offline`
        Wanted::Offline => {
            vec![
                ("provider", Some(provider_word(ProviderName::Offline).to_owned())),
                ("thinking", None),
                ("context", None),
            ]
        }
        Wanted::Renamed(name) => vec![("name", Some(name.clone()))],
        Wanted::Other { provider, name, address, key_variable } => {
            let mut keys = vec![
                ("provider", Some(provider_word(*provider).to_owned())),
                ("name", Some(name.clone())),
                ("base_url", address.clone()),
                ("key_variable", key_variable.clone()),
            ];
            if before.provider != Some(*provider) {
                keys.extend([("thinking", None), ("context", None)]);
            }
            keys
        }
    }
}

fn provider_word(provider: ProviderName) -> &'static str {
    match provider {
        ProviderName::Offline => OFFLINE,
        ProviderName::OpenAi => "openai",
        ProviderName::Anthropic => "anthropic",
        ProviderName::Ollama => "ollama",
        ProviderName::Responses => "responses",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::local::Offered;
    use crate::provider::settings::RemoteSettings;

    fn at(speaks: Speaks, name: &str, address: &str) -> Settings {
        Settings::Remote(Box::new(RemoteSettings {
            name: name.into(),
            base_url: reqwest::Url::parse(address).unwrap(),
            ..RemoteSettings::of_test(speaks)
        }))
    }

    fn found() -> Vec<Found> {
        let model = |name: &str| Offered { name: name.into(), elsewhere: false, talks: true };
        vec![
            Found {
                kind: Kind::Ollama,
                address: "http://127.0.0.1:11500".into(),
                models: vec![model("千问:8b"), model("both")],
            },
            Found {
                kind: Kind::LlamaCpp,
                address: Kind::LlamaCpp.usual().into(),
                models: vec![model("a/b.gguf"), model("both")],
            },
        ]
    }

    fn other(provider: ProviderName, name: &str, address: Option<&str>) -> Wanted {
        Wanted::Other { provider, name: name.into(), address: address.map(Into::into), key_variable: None }
    }

    #[test]
    fn a_name_means_one_thing() {
        let check = |name: &str, expected: Wanted| {
            assert_eq!(wanted(name, &[Settings::Offline], &[], &found()), Ok(expected), "{name}");
        };
        check("offline", Wanted::Same);
        check("千问:8b", other(ProviderName::Ollama, "千问:8b", Some("http://127.0.0.1:11500")));
        check(" ollama/千问:8b ", other(ProviderName::Ollama, "千问:8b", Some("http://127.0.0.1:11500")));
        check("ollama/not-pulled", other(ProviderName::Ollama, "not-pulled", Some("http://127.0.0.1:11500")));
        check("a/b.gguf", other(ProviderName::OpenAi, "a/b.gguf", Some("http://127.0.0.1:8080/v1")));
        check(
            "llama.cpp/a/b.gguf",
            other(ProviderName::OpenAi, "a/b.gguf", Some("http://127.0.0.1:8080/v1")),
        );
        check("vllm/m", other(ProviderName::OpenAi, "m", Some("http://127.0.0.1:8000/v1")));
        check("openai/gpt-5", other(ProviderName::OpenAi, "gpt-5", None));
        check(
            "deepseek/deepseek-chat",
            other(ProviderName::OpenAi, "deepseek-chat", Some("https://api.deepseek.com/v1")),
        );
        check("anthropic/c", other(ProviderName::Anthropic, "c", None));
    }

    #[test]
    fn a_name_that_means_nothing_is_answered_with_what_to_type() {
        let check = |name: &str, named: &[&str]| {
            let error = wanted(name, &[Settings::Offline], &[], &found()).unwrap_err().to_string();
            assert!(named.iter().all(|word| error.contains(word)), "{error}");
        };
        check("both", &["several", "`ollama/both`", "`llama.cpp/both`"]);
        check("千问:7b", &["千问:7b", "did you mean `千问:8b`", "lisa model list"]);
        check("olama/x", &["`olama`", "did you mean `ollama/x`", "`lmstudio`"]);
        check("ollama/", &["ollama/NAME"]);
        check(" ", &["name"]);
        check("a\u{202e}b", &["nobody can see"]);
    }

    #[test]
    fn another_model_of_the_same_server_keeps_the_server() {
        let own = at(Speaks::OpenAi, "m", "http://gateway.lan/v1");
        assert_eq!(wanted("openai/n", std::slice::from_ref(&own), &[], &[]), Ok(Wanted::Renamed("n".into())));
        assert_eq!(wanted("openai/m", &[own], &[], &[]), Ok(Wanted::Same));
        // what runs on this machine is not OpenAI, though it speaks so
        let local = at(Speaks::OpenAi, "m", "http://127.0.0.1:8080/v1");
        assert_eq!(called(&local), "llama.cpp/m");
        let wants = wanted("openai/gpt-5", &[local], &[], &[]);
        assert_eq!(wants, Ok(other(ProviderName::OpenAi, "gpt-5", None)));
        assert_eq!(called(&at(Speaks::OpenAi, "d", "https://api.deepseek.com/v1")), "deepseek/d");
        assert_eq!(called(&at(Speaks::Ollama, "q", "http://127.0.0.1:11434")), "ollama/q");
    }

    #[test]
    fn what_was_about_the_one_before_goes_and_what_a_link_says_comes_along() {
        let before = Model { provider: Some(ProviderName::Anthropic), ..Model::default() };
        let set = keys(&other(ProviderName::Ollama, "q", None), &before);
        let names = |wanted: bool| -> Vec<&str> {
            set.iter().filter(|(_, value)| value.is_some() == wanted).map(|(key, _)| *key).collect()
        };
        assert_eq!(names(true), ["provider", "name"]);
        assert_eq!(names(false), ["base_url", "key_variable", "thinking", "context"]);

        let link = Model {
            provider: Some(ProviderName::OpenAi),
            name: Some("n".into()),
            base_url: Some("https://api.groq.com/openai/v1".into()),
            key_variable: Some("GROQ_API_KEY".into()),
            ..Model::default()
        };
        let chain = [
            at(Speaks::Anthropic, "c", "https://a/v1"),
            at(Speaks::OpenAi, "n", "https://api.groq.com/openai/v1"),
        ];
        let wants = wanted("openai/n", &chain, &[link], &[]).unwrap();
        let set = keys(&wants, &before);
        assert!(set.contains(&("key_variable", Some("GROQ_API_KEY".into()))), "{set:?}");
        assert!(set.contains(&("base_url", Some("https://api.groq.com/openai/v1".into()))), "{set:?}");
    }
}
