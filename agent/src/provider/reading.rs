//! What the answers of all servers have in common: JSON with halves of characters, arguments of calls, errors in words.
//!
//! Generous with the form and strict with the meaning: arguments that are not a JSON object are kept as unusable and never
//! become an empty object, unless nothing at all was written (rows C7.5–C7.7).

use serde_json::{Map, Value};

use super::{Block, Fault, Input, error::passing_status, surrogate};

/// How much of a provider's own words is shown.
pub(super) const SAID_CHARS_MAX: usize = 300;

/// How much of unusable arguments is kept: enough to see what went wrong.
const RAW_CHARS_MAX: usize = 2000;

/// No answer has so many parts, or calls so many tools at once; a stream that does is broken.
pub(super) const PARTS_MAX: usize = 128;

/// The longest answer, thoughts and arguments included: it becomes a line of the session and part of every later request.
pub(super) const ANSWER_BYTES_MAX: usize = 4 << 20;

/// A call whose arguments are whole.
pub(super) fn call(id: String, name: String, arguments: &str) -> Block {
    if name.is_empty() {
        return unusable(id, name, arguments, "the call names no tool".to_owned());
    }
    match object(arguments) {
        Ok(object) => Block::ToolUse { id, name, input: Input::Object(object) },
        Err(why) => unusable(id, name, arguments, why),
    }
}

/// A call that must never run, and `why`.
pub(super) fn unusable(id: String, name: String, arguments: &str, why: String) -> Block {
    let raw = ipc::text::prefix(arguments, RAW_CHARS_MAX).to_owned();
    let name = if name.is_empty() { "unnamed".to_owned() } else { name };
    Block::ToolUse { id, name, input: Input::Unusable { raw, why } }
}

/// What arguments say; only what is blank stands for no arguments (row C7.7).
fn object(arguments: &str) -> Result<Map<String, Value>, String> {
    if arguments.trim().is_empty() {
        return Ok(Map::new());
    }
    let value = serde_json::from_str(arguments).or_else(|error| match surrogate::replaced(arguments) {
        Some(mended) => serde_json::from_str(&mended),
        None => Err(error),
    });
    match value {
        Ok(Value::Object(object)) => Ok(object),
        Ok(other) => Err(format!("the input is {} where an object is needed", kind(&other))),
        Err(error) => Err(format!("the input is not valid JSON ({error})")),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// An event's JSON object; halves of characters in it are marked for a [`Joiner`](super::surrogate::Joiner).
pub(super) fn parse(data: &str) -> Option<Value> {
    let parsed = serde_json::from_str::<Value>(data);
    parsed
        .or_else(|error| surrogate::marked(data).map_or(Err(error), |data| serde_json::from_str(&data)))
        .ok()
        .filter(Value::is_object)
}

/// A string that is not empty; null, another type and nothing at all are the same.
pub(super) fn filled(value: Option<&Value>) -> Option<&str> {
    value.and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// An error inside of a stream.
pub(super) fn reported(error: &Value) -> Fault {
    let said = said(error).unwrap_or_else(|| ipc::text::one_line(&error.to_string(), SAID_CHARS_MAX));
    let words = ["code", "type", "status"].map(|key| error.get(key));
    let passing = words.into_iter().flatten().any(|word| match word {
        Value::Number(code) => {
            code.as_u64().and_then(|code| u16::try_from(code).ok()).is_some_and(passing_status)
        }
        Value::String(word) => {
            let word = word.to_lowercase();
            let known = [
                "overloaded",
                "rate_limit",
                "server_error",
                "api_error",
                "unavailable",
                "timeout",
                "internal",
            ];
            known.iter().any(|known| word.contains(known)) || word.parse().is_ok_and(passing_status)
        }
        _ => false,
    });
    Fault::Reported { said, passing: passing && !is_spent(error) }
}

/// What an error says in words, bounded: `{"message": …}`, or words alone.
pub(super) fn said(error: &Value) -> Option<String> {
    let words = match error {
        Value::String(words) => Some(words.as_str()),
        Value::Object(fields) => {
            ["message", "detail", "error", "msg"].iter().find_map(|key| filled(fields.get(*key)))
        }
        _ => None,
    };
    words.map(|words| ipc::text::one_line(words, SAID_CHARS_MAX)).filter(|words| !words.is_empty())
}

/// Whether an error means that the money ran out.
pub(super) fn is_spent(error: &Value) -> bool {
    ["code", "type"].iter().any(|key| {
        matches!(
            filled(error.get(*key)),
            Some(
                "insufficient_quota"
                    | "billing_hard_limit_reached"
                    | "insufficient_balance"
                    | "billing_error"
            )
        )
    })
}
