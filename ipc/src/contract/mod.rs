//! What may be asked of each process: one module a process, typed, versioned, its JSON pinned by tests.
//!
//! | contract | spoken on | asked by | version |
//! |---|---|---|---|
//! | [`soul`] | `soul.sock` | agent, heartbeat, supervisor | 1 |
//! | [`agent`] | `agent.sock` | supervisor, heartbeat | 1 |
//! | [`heartbeat`] | `heartbeat.sock` | supervisor | 1 |
//! | [`chat`] | `chat.sock` | people's programs, in the Agent Client Protocol and its extensions | ACP 1 |
//!
//! [`approval`] holds what agent and supervisor say about a call that waits for a person's word, [`sessions`] are words
//! that travel on `chat.sock` and are answered by the agent.
//!
//! A refusal is an answer (`Refused`), never an error: the asker can read it and act. Errors are for what could not be
//! asked or answered at all.

pub mod agent;
pub mod approval;
pub mod chat;
pub mod heartbeat;
pub mod model;
pub mod sessions;
pub mod soul;

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::wire::{RpcError, code};

/// The words of one process.
pub trait Contract: Send + Sync + 'static {
    /// Its name in the handshake.
    const NAME: &'static str;
    /// Its version in the handshake; two sides speak only when both say the same.
    const VERSION: u32;
    /// What may be asked: an enum of `{"method", "params"}`.
    type Request: Serialize + DeserializeOwned + std::fmt::Debug + Send + Sync + 'static;
    /// How it is answered.
    type Reply: Serialize + DeserializeOwned + std::fmt::Debug + Send + Sync + 'static;
    /// What is told without being asked: an enum of `{"method", "params"}`.
    type Notice: Serialize + DeserializeOwned + std::fmt::Debug + Clone + Send + Sync + 'static;
}

/// A contract's notice type where there is nothing to tell.
#[derive(Debug, Clone, Serialize, serde::Deserialize)]
pub enum Nothing {}

/// Splits an adjacently tagged word into the method and the parameters of a frame.
pub fn to_frame(word: &impl Serialize) -> (String, Value) {
    let value = serde_json::to_value(word).expect("our own words are JSON");
    match value {
        Value::Object(mut fields) => {
            let params = fields.remove("params").unwrap_or(Value::Null);
            match fields.remove("method") {
                Some(Value::String(method)) => (method, params),
                _ => unreachable!("our own words have a method"),
            }
        }
        Value::String(method) => (method, Value::Null),
        _ => unreachable!("our own words are objects"),
    }
}

/// Reads a word back from a frame's method and parameters; the error says which of the two does not fit.
pub fn from_frame<T: DeserializeOwned>(method: &str, params: Value) -> Result<T, RpcError> {
    let mut fields = serde_json::Map::new();
    fields.insert("method".to_owned(), Value::String(method.to_owned()));
    if !params.is_null() {
        fields.insert("params".to_owned(), params);
    }
    serde_json::from_value(Value::Object(fields)).map_err(|error| {
        let said = error.to_string();
        let unknown = said.starts_with("unknown variant");
        let code = if unknown { code::METHOD_NOT_FOUND } else { code::INVALID_PARAMS };
        RpcError::new(code, format!("`{}` cannot be answered: {said}", crate::text::one_line(method, 80)))
    })
}
