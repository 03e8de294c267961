//! JSON-RPC 2.0 messages: requests, responses and notifications, told apart by what they carry.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Error codes: JSON-RPC's own, the Agent Client Protocol's, and ours from -32010 on.
pub mod code {
    /// The line is not JSON.
    pub const PARSE: i64 = -32700;
    /// The JSON is not a JSON-RPC 2.0 message.
    pub const INVALID_REQUEST: i64 = -32600;
    /// Nobody here answers this method.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The method is known, its parameters do not fit.
    pub const INVALID_PARAMS: i64 = -32602;
    /// It went wrong on our side.
    pub const INTERNAL: i64 = -32603;
    /// What was asked for (a session, a document) does not exist.
    pub const NOT_FOUND: i64 = -32002;
    /// Too much is in flight; ask again later.
    pub const OVERLOADED: i64 = -32005;
    /// The handshake was refused.
    pub const REFUSED: i64 = -32010;
    /// The process that would answer is not there.
    pub const AWAY: i64 = -32011;
}

/// The id of a request: a number or a text. `Null` answers a line in which no id could be read.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Id {
    /// A number, as most editors count.
    Number(i64),
    /// A text; our own processes use request ids.
    Text(String),
    /// Unknown.
    Null,
}

/// One question, answered by exactly one [`Response`] with its id.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Which question this is.
    pub id: Id,
    /// What is asked.
    pub method: String,
    /// With what; `Null` where there is nothing to add.
    pub params: Value,
}

/// The answer to one [`Request`].
#[derive(Debug, Clone, PartialEq)]
pub struct Response {
    /// The id of the question.
    pub id: Id,
    /// What came of it.
    pub outcome: Result<Value, RpcError>,
}

/// News that expects no answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Notification {
    /// What it is about.
    pub method: String,
    /// What happened; `Null` where there is nothing to add.
    pub params: Value,
}

/// A JSON-RPC error: a code of [`code`], a sentence, and data where that helps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct RpcError {
    /// What kind, for programs.
    pub code: i64,
    /// What and what to do, for people.
    pub message: String,
    /// More, for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl RpcError {
    /// An error with a code and a sentence.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }
}

/// Whatever one line may hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Raw", into = "Raw")]
pub enum Message {
    /// A question.
    Request(Request),
    /// An answer.
    Response(Response),
    /// News.
    Notification(Notification),
}

impl Message {
    /// A question.
    pub fn request(id: Id, method: impl Into<String>, params: Value) -> Self {
        Self::Request(Request { id, method: method.into(), params })
    }

    /// An answer.
    pub fn response(id: Id, outcome: Result<Value, RpcError>) -> Self {
        Self::Response(Response { id, outcome })
    }

    /// News.
    pub fn notification(method: impl Into<String>, params: Value) -> Self {
        Self::Notification(Notification { method: method.into(), params })
    }
}

/// The JSON object as it stands on the line.
#[derive(Serialize, Deserialize)]
struct Raw {
    jsonrpc: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<Id>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    method: Option<String>,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    params: Value,
    // an answer of `null` is an answer, so presence and value are kept apart
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<RpcError>,
}

fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl TryFrom<Raw> for Message {
    type Error = &'static str;

    fn try_from(raw: Raw) -> Result<Self, &'static str> {
        if raw.jsonrpc != "2.0" {
            return Err("`jsonrpc` must be \"2.0\"");
        }
        match (raw.method, raw.id, raw.result, raw.error) {
            (Some(method), Some(id @ (Id::Number(_) | Id::Text(_))), None, None) => {
                Ok(Self::request(id, method, raw.params))
            }
            (Some(method), None, None, None) => Ok(Self::notification(method, raw.params)),
            (None, id, Some(result), None) => Ok(Self::response(id.unwrap_or(Id::Null), Ok(result))),
            (None, id, None, Some(error)) => Ok(Self::response(id.unwrap_or(Id::Null), Err(error))),
            _ => Err("a message has a `method`, or else exactly one of `result` and `error`"),
        }
    }
}

impl From<Message> for Raw {
    fn from(message: Message) -> Self {
        let mut raw = Self {
            jsonrpc: "2.0".to_owned(),
            id: None,
            method: None,
            params: Value::Null,
            result: None,
            error: None,
        };
        match message {
            Message::Request(Request { id, method, params }) => {
                (raw.id, raw.method, raw.params) = (Some(id), Some(method), params);
            }
            Message::Notification(Notification { method, params }) => {
                (raw.method, raw.params) = (Some(method), params);
            }
            Message::Response(Response { id, outcome }) => {
                raw.id = Some(id);
                match outcome {
                    Ok(result) => raw.result = Some(result),
                    Err(error) => raw.error = Some(error),
                }
            }
        }
        raw
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_json_is_pinned() {
        let check = |message: Message, expected: Value| {
            assert_eq!(serde_json::to_value(message.clone()).unwrap(), expected);
            assert_eq!(serde_json::from_value::<Message>(expected).unwrap(), message);
        };
        check(
            Message::request(Id::Number(1), "session/prompt", json!({"sessionId": "s"})),
            json!({"jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": {"sessionId": "s"}}),
        );
        check(
            Message::notification("session/cancel", json!({"sessionId": "s"})),
            json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "s"}}),
        );
        check(
            Message::response(Id::Text("a".into()), Ok(Value::Null)),
            json!({"jsonrpc": "2.0", "id": "a", "result": null}),
        );
        check(
            Message::response(Id::Null, Err(RpcError::new(code::PARSE, "not JSON"))),
            json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "not JSON"}}),
        );
    }

    #[test]
    fn what_is_neither_question_answer_nor_news_is_refused() {
        for line in [
            json!({"id": 1, "method": "x"}),
            json!({"jsonrpc": "1.0", "id": 1, "method": "x"}),
            json!({"jsonrpc": "2.0", "id": 1}),
            json!({"jsonrpc": "2.0", "id": 1, "result": 1, "error": {"code": 1, "message": "x"}}),
            json!({"jsonrpc": "2.0", "id": 1, "method": "x", "result": 1}),
            json!([1]),
        ] {
            assert!(serde_json::from_value::<Message>(line.clone()).is_err(), "{line}");
        }
    }
}
