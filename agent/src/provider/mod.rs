//! What thinks: the embedded default, or a model behind an address, both shown one conversation and asked for what comes next.
//!
//! ```text
//!  config.toml, environment, config.env ──choose──▶ Settings, … ──build──▶ dyn Provider (a chain where there are several)
//!  ModelRequest { system, messages, tools } ──stream──▶ Delta* (shown at once) … Completion | ProviderError
//! ```
//!
//! A provider keeps nothing between two calls, runs no tool and writes no file. What it returns is whole or an error: a
//! truncated answer is never taken as an answer. Shortening a conversation that grew too long is not done here.

mod anthropic;
mod chain;
mod choice;
pub(crate) mod config_env;
mod error;
mod history;
mod http;
pub(crate) mod local;
mod message;
pub(crate) mod naming;
mod offline;
mod ollama;
mod openai;
mod proof;
mod reading;
mod responses;
mod retry;
mod settings;
mod sse;
mod surrogate;

use std::{future::Future, pin::Pin};

use ipc::contract::soul::ToolSpec;
use tokio::sync::mpsc;

pub(crate) use self::{
    choice::{Choice, choose, key_variables},
    error::{Fault, ProviderError},
    message::{Block, Input, Message, Opaque, Role},
    proof::prove,
    settings::{RemoteSettings, Settings, is_loopback, without_query},
};

/// One conversation as a provider is shown it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ModelRequest {
    /// Who she is, and how things are done here.
    pub system: String,
    /// What was said and done, oldest first. Faults in it (results without a call, calls without a result) are mended on the
    /// way out, not here.
    pub messages: Vec<Message>,
    /// The tools that may be called.
    pub tools: Vec<ToolSpec>,
}

/// A piece of an answer while it comes in, for showing only: what counts is the [`Completion`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Delta {
    /// More of the text.
    Text(String),
    /// More of the thinking.
    Thinking(String),
}

/// An answer, whole.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Completion {
    /// Which model gave it, as [`Provider::model`] names one; of a chain, the link that answered.
    pub model: String,
    /// What was said and which tools are called, in order; no block is empty, the list may be.
    pub blocks: Vec<Block>,
    /// Why it ends here.
    pub stop: Stop,
    /// What it cost, as far as the provider says.
    pub usage: Usage,
}

/// Why an answer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Everything is said.
    EndTurn,
    /// Tools are called; their results are waited for. Only with this one does `blocks` hold a [`Block::ToolUse`].
    ToolUse,
    /// The answer was cut at the model's limit. Calls that stood in it are dropped, because none of them is known to be whole.
    MaxTokens,
    /// The provider withheld the rest of the answer.
    Refusal,
}

/// What an answer cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Tokens read.
    pub input_tokens: Option<u64>,
    /// Tokens written.
    pub output_tokens: Option<u64>,
}

/// An answer that is under way. Dropping it cancels the request.
pub(crate) type Answer<'a> = Pin<Box<dyn Future<Output = Result<Completion, ProviderError>> + Send + 'a>>;

/// Something that answers.
pub(crate) trait Provider: Send + Sync {
    /// Which one, as commits and status show it: `offline`, `openai/gpt-5`.
    fn model(&self) -> &str;

    /// Asks for what comes next in `request`. Pieces go to `deltas` as they come; where nobody listens any more they are
    /// let go, and a full channel makes the provider read more slowly.
    fn stream<'a>(&'a self, request: &'a ModelRequest, deltas: mpsc::Sender<Delta>) -> Answer<'a>;
}

/// The id of the call at `index` in the answer to `request`: our own for every provider, unique in a conversation that only
/// grows, so that a vendor's ids (which some repeat in every answer) never meet in a session (row C7.31).
fn call_id(request: &ModelRequest, index: usize) -> String {
    format!("call_{}_{index}", request.messages.len())
}
