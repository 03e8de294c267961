//! Ollama's own protocol, streamed: the only way to tell it how much of a conversation to take in (row C7.32).

mod assemble;
mod request;

use serde_json::Value;

use super::{ModelRequest, http::Dialect, settings::RemoteSettings, sse::Framing};

/// The dialect.
#[derive(Debug)]
pub(super) enum Ollama {}

impl Dialect for Ollama {
    const PROVIDER: &'static str = assemble::PROVIDER;
    const METHOD: &'static str = "/api/chat";
    const HEADERS: &'static [(&'static str, &'static str)] = &[];
    const FRAMING: Framing = Framing::Lines;

    type Assembly = assemble::Assembly;

    fn key_header(key: &str) -> (&'static str, String) {
        ("authorization", format!("Bearer {key}"))
    }

    fn body(request: &ModelRequest, settings: &RemoteSettings) -> Value {
        request::body(request, settings)
    }
}
