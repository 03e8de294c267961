//! OpenAI-compatible chat completions, streamed: OpenAI, DeepSeek, Gemini's compatible address, Ollama, llama.cpp, vLLM …
//!
//! ```text
//!  ModelRequest ─request─▶ JSON ─http─▶ bytes ─sse─▶ events ─assemble─▶ deltas … Completion
//!                                  └─ fault ─retry─▶ again, if it passes and nothing was shown
//! ```

mod assemble;
mod http;
mod request;
mod retry;
mod sse;
mod surrogate;

pub(crate) use self::http::OpenAi;
