//! Anthropic's Messages, streamed; also of those who speak it too (llama.cpp, gateways).
//!
//! What a thought carries to be sent back (its signature, or all of it where it is redacted) is kept word for word with the
//! block and goes back to the same model only.

mod assemble;
mod request;

use serde_json::Value;

use super::{ModelRequest, http::Dialect, settings::RemoteSettings};

/// The dialect.
#[derive(Debug)]
pub(super) enum Anthropic {}

impl Dialect for Anthropic {
    const PROVIDER: &'static str = assemble::PROVIDER;
    const METHOD: &'static str = "/messages";
    const HEADERS: &'static [(&'static str, &'static str)] = &[("anthropic-version", "2023-06-01")];

    type Assembly = assemble::Assembly;

    fn key_header(key: &str) -> (&'static str, String) {
        ("x-api-key", key.to_owned())
    }

    fn body(request: &ModelRequest, settings: &RemoteSettings) -> Value {
        request::body(request, settings)
    }
}
