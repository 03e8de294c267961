//! OpenAI's Responses, streamed; nothing of a conversation is left with the vendor (`store: false`).

mod assemble;
mod request;

use serde_json::Value;

use super::{ModelRequest, http::Dialect, settings::RemoteSettings};

/// The dialect.
#[derive(Debug)]
pub(super) enum Responses {}

impl Dialect for Responses {
    const PROVIDER: &'static str = assemble::PROVIDER;
    const METHOD: &'static str = "/responses";
    const HEADERS: &'static [(&'static str, &'static str)] = &[];

    type Assembly = assemble::Assembly;

    fn key_header(key: &str) -> (&'static str, String) {
        ("authorization", format!("Bearer {key}"))
    }

    fn body(request: &ModelRequest, settings: &RemoteSettings) -> Value {
        request::body(request, settings)
    }
}
