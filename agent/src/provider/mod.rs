//! What thinks: the embedded default, or a model behind an address, both shown one conversation and asked for what comes next.
//!
//! ```text
//!  config.toml, environment, config.env ──choose──▶ Settings, … ──build──▶ dyn Provider (a chain where there are several)
//!  ModelRequest { system, messages, tools } ──stream──▶ Delta* (shown at once) … Completion | ProviderError
//! ```
//!
//! A provider keeps nothing between two calls, runs no tool and writes no file. What it returns is whole or an error: a
//! truncated answer is never taken as an answer. Shortening a conversation that grew too long is done in `length`.

mod anthropic;
mod budget;
mod chain;
mod choice;
pub(crate) mod config_env;
mod error;
mod history;
mod http;
mod known;
pub(crate) mod local;
mod message;
pub(crate) mod naming;
mod offered;
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
    budget::Budget,
    choice::{Choice, choose, key_variables},
    error::{Fault, ProviderError},
    known::Known,
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
    /// How many messages the conversation has, also those that a summary stands for; zero where all of them are here.
    pub said: usize,
}

impl ModelRequest {
    /// A question in words alone, outside of any conversation.
    pub(crate) fn of_words(system: &str, asked: String) -> Self {
        Self { system: system.to_owned(), messages: vec![Message::user(asked)], tools: Vec::new(), said: 0 }
    }
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
#[expect(clippy::struct_field_names, reason = "they are called as the protocols call them")]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Tokens read, and neither taken from nor written to a cache.
    pub input_tokens: Option<u64>,
    /// Tokens written.
    pub output_tokens: Option<u64>,
    /// Tokens taken from a cache.
    pub cache_read_tokens: Option<u64>,
    /// Tokens read and put into a cache.
    pub cache_write_tokens: Option<u64>,
}

impl Usage {
    /// All that was read, whatever the way; nothing where the provider does not say.
    pub(crate) fn read(&self) -> Option<u64> {
        let known = [self.input_tokens, self.cache_read_tokens, self.cache_write_tokens];
        known.iter().any(Option::is_some).then(|| known.into_iter().flatten().fold(0, u64::saturating_add))
    }

    /// Where a provider counts what it took from its cache among what it read.
    fn of_all_read(all: Option<u64>, cached: Option<u64>, output: Option<u64>) -> Self {
        let input = all.map(|all| all.saturating_sub(cached.unwrap_or_default()));
        Self {
            input_tokens: input,
            output_tokens: output,
            cache_read_tokens: cached,
            cache_write_tokens: None,
        }
    }
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
    let said = if request.said > 0 { request.said } else { request.messages.len() };
    format!("call_{said}_{index}")
}
