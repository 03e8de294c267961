//! OpenAI-compatible chat completions, streamed: OpenAI, DeepSeek, Gemini's compatible address, llama.cpp, vLLM …
//!
//! ```text
//!  ModelRequest ─request─▶ JSON ─http─▶ bytes ─sse─▶ events ─assemble─▶ deltas … Completion
//!                                  └─ fault ─retry─▶ again, if it passes and nothing was shown
//! ```

mod assemble;
mod request;

use serde_json::Value;

use super::{ModelRequest, http::Dialect, settings::RemoteSettings};

/// The dialect.
#[derive(Debug)]
pub(super) enum OpenAi {}

impl Dialect for OpenAi {
    const PROVIDER: &'static str = assemble::PROVIDER;
    const METHOD: &'static str = "/chat/completions";
    const HEADERS: &'static [(&'static str, &'static str)] = &[];

    type Assembly = assemble::Assembly;

    fn key_header(key: &str) -> (&'static str, String) {
        ("authorization", format!("Bearer {key}"))
    }

    fn body(request: &ModelRequest, settings: &RemoteSettings) -> Value {
        request::body(request, settings)
    }
}
