//! Servers on this machine: where one is looked for, and what its answer says it is.
//!
//! Only loopback is looked at, without a proxy and for a moment; what answers has to say what it is, because the ports are
//! anybody's. Nothing found here is used by itself: it is shown, and offered when it has called a tool.

use ipc::config::ProviderName;
use reqwest::Url;
use serde_json::Value;

use super::{http::glance, settings::is_loopback};

/// How many models of one server are shown.
const MODELS_MAX: usize = 64;

/// The longest name of a model, in characters.
const NAME_CHARS_MAX: usize = 200;

/// A kind of server that people run on their own machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Ollama.
    Ollama,
    /// The server of llama.cpp.
    LlamaCpp,
    /// LM Studio.
    LmStudio,
    /// vLLM.
    Vllm,
}

impl Kind {
    /// All of them.
    pub(crate) const ALL: [Self; 4] = [Self::Ollama, Self::LlamaCpp, Self::LmStudio, Self::Vllm];

    /// What stands before the model's name where a person names it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Ollama => "ollama",
            Self::LlamaCpp => "llama.cpp",
            Self::LmStudio => "lmstudio",
            Self::Vllm => "vllm",
        }
    }

    /// Where it answers where nobody set anything, up to its version.
    pub(crate) fn usual(self) -> &'static str {
        match self {
            Self::Ollama => "http://127.0.0.1:11434",
            Self::LlamaCpp => "http://127.0.0.1:8080/v1",
            Self::LmStudio => "http://127.0.0.1:1234/v1",
            Self::Vllm => "http://127.0.0.1:8000/v1",
        }
    }

    /// What it speaks.
    pub(crate) fn provider(self) -> ProviderName {
        match self {
            Self::Ollama => ProviderName::Ollama,
            Self::LlamaCpp | Self::LmStudio | Self::Vllm => ProviderName::OpenAi,
        }
    }

    /// What is asked for its models, behind the address.
    fn list(self) -> &'static str {
        match self {
            Self::Ollama => "/api/tags",
            Self::LlamaCpp | Self::LmStudio | Self::Vllm => "/models",
        }
    }
}

/// A server that answered as what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    /// What it is.
    pub(crate) kind: Kind,
    /// Where it answers, up to its version.
    pub(crate) address: String,
    /// What it has, in its own order.
    pub(crate) models: Vec<Offered>,
}

/// A model of such a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Offered {
    /// As the server calls it.
    pub(crate) name: String,
    /// Whether the server only passes the conversation on to another machine.
    pub(crate) elsewhere: bool,
    /// Whether it is made for conversations, as far as its name says.
    pub(crate) talks: bool,
}

/// Looks for all of them at once; one that is not there within a second is not there.
pub(crate) async fn find(ollama_host: Option<&str>) -> Vec<Found> {
    let looks = spots(ollama_host).into_iter().map(|(kind, address)| async move {
        let said = glance(&format!("{address}{}", kind.list())).await?;
        Some(Found { kind, models: models(kind, &said)?, address })
    });
    futures_util::future::join_all(looks).await.into_iter().flatten().collect()
}

/// Where each is looked for. `OLLAMA_HOST` counts where it stays on this machine.
fn spots(ollama_host: Option<&str>) -> Vec<(Kind, String)> {
    let address = |kind: Kind| match (kind, ollama_host) {
        (Kind::Ollama, Some(host)) => address_of(host).filter(is_loopback).map(|url| shown(&url)),
        (Kind::Ollama, None) | (Kind::LlamaCpp | Kind::LmStudio | Kind::Vllm, _) => {
            Some(kind.usual().to_owned())
        }
    };
    Kind::ALL.into_iter().filter_map(|kind| Some((kind, address(kind)?))).collect()
}

/// The address in an `OLLAMA_HOST`, which may lack the scheme, the port or the host, as Ollama's own programs take it.
pub(crate) fn address_of(host: &str) -> Option<Url> {
    let host = host.trim().trim_matches(['"', '\'']);
    let has_scheme = host.contains("://");
    let rest = host.split_once("://").map_or(host, |(_, rest)| rest);
    let with_host = if rest.starts_with(':') { format!("127.0.0.1{rest}") } else { rest.to_owned() };
    if with_host.is_empty() {
        return None;
    }
    let scheme = host.split_once("://").map_or("http", |(scheme, _)| scheme);
    let mut url = Url::parse(&format!("{scheme}://{with_host}")).ok()?;
    if !matches!(url.scheme(), "http" | "https") || !url.username().is_empty() || url.password().is_some() {
        return None;
    }
    // with a scheme its own port counts where none is named, without one Ollama's
    if url.port().is_none() && !has_scheme {
        url.set_port(Some(11434)).ok()?;
    }
    // where a server listens on all addresses, a client asks the one of this machine
    match url.host_str() {
        Some("0.0.0.0") => url.set_host(Some("127.0.0.1")).ok()?,
        Some("[::]") => url.set_host(Some("[::1]")).ok()?,
        Some(_) => {}
        None => return None,
    }
    url.set_query(None);
    url.set_fragment(None);
    Some(url)
}

fn shown(url: &Url) -> String {
    url.as_str().trim_end_matches('/').to_owned()
}

/// What a server has, when its answer is that of such a server.
fn models(kind: Kind, said: &Value) -> Option<Vec<Offered>> {
    let (list, id) = match kind {
        Kind::Ollama => (said.get("models")?.as_array()?, "name"),
        Kind::LlamaCpp | Kind::LmStudio | Kind::Vllm => (said.get("data")?.as_array()?, "id"),
    };
    let by = |name: &str| {
        !list.is_empty()
            && list.iter().all(|model| model.get("owned_by").and_then(Value::as_str) == Some(name))
    };
    let is_it = match kind {
        Kind::Ollama => list.iter().all(|model| model.get("name").is_some_and(Value::is_string)),
        Kind::LlamaCpp => by("llamacpp"),
        Kind::Vllm => by("vllm"),
        // it names the owners of its models, and nobody else has this port
        Kind::LmStudio => said.get("object").and_then(Value::as_str) == Some("list"),
    };
    if !is_it {
        return None;
    }
    let model = |model: &Value| {
        let name = model.get(id)?.as_str()?;
        let usable = !name.trim().is_empty()
            && ipc::text::chars(name) <= NAME_CHARS_MAX
            && !name.chars().any(|c| c.is_control() || ipc::text::is_direction(c));
        usable.then(|| Offered {
            name: name.to_owned(),
            elsewhere: kind == Kind::Ollama && is_elsewhere(name, model),
            talks: !name.to_lowercase().contains("embed"),
        })
    };
    Some(list.iter().filter_map(model).take(MODELS_MAX).collect())
}

/// Whether Ollama passes the conversation on: such models are tagged so, and name the other machine.
fn is_elsewhere(name: &str, model: &Value) -> bool {
    let tag = name.rsplit_once(':').map(|(_, tag)| tag).unwrap_or_default();
    let names_host = |key: &str| model.get(key).and_then(Value::as_str).is_some_and(|host| !host.is_empty());
    tag == "cloud" || tag.ends_with("-cloud") || names_host("remote_host")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ollama_at(host: &str) -> Option<String> {
        let spots = spots(Some(host));
        spots.into_iter().find(|(kind, _)| *kind == Kind::Ollama).map(|(_, address)| address)
    }

    #[test]
    fn b3_only_this_machine_is_looked_at() {
        for (_, address) in spots(None) {
            assert!(is_loopback(&Url::parse(&address).unwrap()), "{address}");
        }
        let check = |host: &str, expected: Option<&str>| {
            assert_eq!(ollama_at(host).as_deref(), expected, "{host}");
        };
        check("127.0.0.1:11500", Some("http://127.0.0.1:11500"));
        check("localhost", Some("http://localhost:11434"));
        check("http://localhost:1/", Some("http://localhost:1"));
        check(":11500", Some("http://127.0.0.1:11500"));
        check("0.0.0.0", Some("http://127.0.0.1:11434"));
        check("0.0.0.0:9", Some("http://127.0.0.1:9"));
        check("[::]:9", Some("http://[::1]:9"));
        check("[::1]:9", Some("http://[::1]:9"));
        check(" \"127.0.0.1\" ", Some("http://127.0.0.1:11434"));
        for other in [
            "10.0.0.7",
            "http://gpu.lan:11434",
            "ollama.com",
            "",
            "ftp://localhost",
            "a b",
            "http://u:p@localhost",
        ] {
            check(other, None);
        }
    }

    #[test]
    fn b3_a_server_has_to_say_what_it_is() {
        let names = |kind, said: &Value| {
            models(kind, said).map(|found| found.into_iter().map(|model| model.name).collect::<Vec<_>>())
        };
        let list = |owner: &str| json!({"object": "list", "data": [{"id": "千问", "owned_by": owner}]});
        assert_eq!(names(Kind::LlamaCpp, &list("llamacpp")), Some(vec!["千问".to_owned()]));
        assert_eq!(names(Kind::Vllm, &list("vllm")), Some(vec!["千问".to_owned()]));
        assert_eq!(names(Kind::LmStudio, &list("organization_owner")), Some(vec!["千问".to_owned()]));
        assert_eq!(names(Kind::Ollama, &json!({"models": []})), Some(vec![]));
        assert_eq!(names(Kind::LlamaCpp, &list("somebody")), None);
        assert_eq!(names(Kind::Vllm, &list("llamacpp")), None);
        for (kind, said) in Kind::ALL.into_iter().flat_map(|kind| {
            [json!(null), json!([]), json!({"models": 1, "data": {}}), json!("ok")].map(|said| (kind, said))
        }) {
            assert_eq!(names(kind, &said), None, "{kind:?} {said}");
        }
    }

    #[test]
    fn b3_what_leaves_the_machine_and_what_cannot_talk_are_told_apart() {
        let said = json!({"models": [
            {"name": "qwen3:8b"}, {"name": "gpt-oss:120b-cloud"}, {"name": "kimi:cloud"},
            {"name": "mine", "remote_host": "https://ollama.com:443"}, {"name": "nomic-embed-text:latest"},
            {"name": "bad\u{1b}[2J"}, {"name": " "},
        ]});
        let found = models(Kind::Ollama, &said).unwrap();
        let told: Vec<_> = found.iter().map(|m| (m.name.as_str(), m.elsewhere, m.talks)).collect();
        assert_eq!(
            told,
            [
                ("qwen3:8b", false, true),
                ("gpt-oss:120b-cloud", true, true),
                ("kimi:cloud", true, true),
                ("mine", true, true),
                ("nomic-embed-text:latest", false, false),
            ]
        );
    }

    proptest::proptest! {
        #[test]
        fn no_host_makes_it_panic_or_leads_elsewhere(host in "(?s).{0,60}|(http://)?[a-z0-9.:\\[\\]@/]{0,30}") {
            if let Some(address) = ollama_at(&host) {
                proptest::prop_assert!(is_loopback(&Url::parse(&address).unwrap()), "{address}");
            }
        }
    }
}
