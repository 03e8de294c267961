//! From the events of a streamed chat completion to one answer: pure, and generous with what servers really send.
//!
//! ```text
//!  event ──take──▶ deltas to show …       finish_reason or [DONE] ──finish──▶ Completion
//!                                         neither ──finish──▶ Fault::Incomplete (row C7.17)
//! ```
//!
//! Calls are assembled by the rule that survives all servers seen: the slot is the index, or the position where there is
//! none; a new id that is not empty opens a new call; what is empty or null is absent; the first name stays. Arguments that
//! are not a JSON object are kept as unusable and never become an empty object, unless nothing at all was written.

use serde_json::{Map, Value};

use super::{
    super::{Block, Completion, Delta, Fault, Input, Opaque, Stop, Usage, error::passing_status},
    sse::Event,
    surrogate::{self, Joiner},
};

/// The provider's name in opaque state.
pub(super) const PROVIDER: &str = "openai";

/// How much of a provider's own words is shown.
pub(super) const SAID_CHARS_MAX: usize = 300;

/// How much of unusable arguments is kept: enough to see what went wrong.
const RAW_CHARS_MAX: usize = 2000;

/// No answer calls so many tools at once; a stream that does is broken.
const CALLS_MAX: usize = 128;

/// The longest answer, thoughts and arguments included: it becomes a line of the session and part of every later request.
const ANSWER_BYTES_MAX: usize = 4 << 20;

/// An answer that is coming in.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    text: String,
    text_joiner: Joiner,
    thinking: String,
    thinking_joiner: Joiner,
    thinking_field: Option<&'static str>,
    calls: Vec<Call>,
    /// Which call each slot of the stream fills at the moment.
    slots: Vec<(Slot, usize)>,
    refused: bool,
    finish_reason: Option<String>,
    done: bool,
    usage: Usage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slot {
    Index(u64),
    Position(usize),
}

#[derive(Debug, Default)]
struct Call {
    id: String,
    name: String,
    arguments: String,
    joiner: Joiner,
}

impl Assembly {
    /// Takes one event and returns what of it can be shown.
    pub(super) fn take(&mut self, event: &Event) -> Result<Vec<Delta>, Fault> {
        let data = event.data.trim();
        if self.done {
            return Ok(Vec::new());
        }
        if data == "[DONE]" {
            self.done = true;
            return Ok(Vec::new());
        }
        let chunk = match parse(data) {
            Some(chunk) => chunk,
            // The end of the stream cut it; whether the answer is whole is decided by what came before.
            None if !event.ended => return Ok(Vec::new()),
            None if event.name == "error" => return Err(reported(&Value::String(data.to_owned()))),
            None => return Err(Fault::Garbled { excerpt: ipc::text::one_line(data, SAID_CHARS_MAX) }),
        };
        match chunk.get("error") {
            None | Some(Value::Null) => {}
            Some(error) => return Err(reported(error)),
        }
        if event.name == "error" || chunk.get("object").and_then(Value::as_str) == Some("error") {
            return Err(reported(&chunk));
        }
        if let Some(usage) = chunk.get("usage") {
            let tokens = |key| usage.get(key).and_then(Value::as_u64);
            self.usage.input_tokens = tokens("prompt_tokens").or(self.usage.input_tokens);
            self.usage.output_tokens = tokens("completion_tokens").or(self.usage.output_tokens);
        }
        // An empty list is the usage, or a filter's report (row C7.11).
        let Some(choice) = chunk.get("choices").and_then(|choices| choices.get(0)) else {
            return Ok(Vec::new());
        };
        let mut deltas = Vec::new();
        if let Some(delta) = choice.get("delta").or_else(|| choice.get("message")) {
            self.take_delta(delta, &mut deltas)?;
        }
        if let Some(reason) = filled(choice.get("finish_reason")) {
            self.finish_reason = Some(reason.to_owned());
        }
        Ok(deltas)
    }

    fn take_delta(&mut self, delta: &Value, deltas: &mut Vec<Delta>) -> Result<(), Fault> {
        for field in ["reasoning_content", "reasoning"] {
            let Some(piece) = filled(delta.get(field)) else { continue };
            // A server that fills both says the same in both.
            if *self.thinking_field.get_or_insert(field) == field {
                let piece = self.thinking_joiner.join(piece);
                self.thinking.push_str(&piece);
                deltas.extend((!piece.is_empty()).then_some(Delta::Thinking(piece)));
            }
        }
        let refusal = filled(delta.get("refusal"));
        self.refused |= refusal.is_some();
        let content = match delta.get("content") {
            Some(Value::Array(parts)) => {
                parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str)).collect::<String>()
            }
            content => filled(content).unwrap_or_default().to_owned(),
        };
        for piece in [content.as_str(), refusal.unwrap_or_default()] {
            let piece = self.text_joiner.join(piece);
            self.text.push_str(&piece);
            deltas.extend((!piece.is_empty()).then_some(Delta::Text(piece)));
        }
        if let Some(Value::Array(calls)) = delta.get("tool_calls") {
            for (position, call) in calls.iter().enumerate() {
                self.take_call(position, call)?;
            }
        }
        let arguments: usize = self.calls.iter().map(|call| call.arguments.len()).sum();
        if self.text.len() + self.thinking.len() + arguments > ANSWER_BYTES_MAX {
            return Err(Fault::TooLarge { what: "the answer", bytes_max: ANSWER_BYTES_MAX });
        }
        Ok(())
    }

    fn take_call(&mut self, position: usize, piece: &Value) -> Result<(), Fault> {
        let slot = piece.get("index").and_then(Value::as_u64).map_or(Slot::Position(position), Slot::Index);
        let id = filled(piece.get("id")).unwrap_or_default();
        let known = self.slots.iter().position(|(known, _)| *known == slot);
        let call = match known.and_then(|at| self.slots.get(at)).map(|(_, call)| *call) {
            Some(call)
                if self.calls.get(call).is_some_and(|c| id.is_empty() || c.id.is_empty() || c.id == id) =>
            {
                call
            }
            Some(_) | None => {
                if self.calls.len() == CALLS_MAX {
                    return Err(Fault::TooLarge { what: "the list of tool calls", bytes_max: CALLS_MAX });
                }
                self.calls.push(Call::default());
                self.slots.retain(|(known, _)| *known != slot);
                self.slots.push((slot, self.calls.len() - 1));
                self.calls.len() - 1
            }
        };
        let Some(call) = self.calls.get_mut(call) else { return Ok(()) };
        if call.id.is_empty() {
            id.clone_into(&mut call.id);
        }
        let function = piece.get("function").unwrap_or(piece);
        if call.name.is_empty() {
            filled(function.get("name")).unwrap_or_default().clone_into(&mut call.name);
        }
        match function.get("arguments") {
            None | Some(Value::Null) => {}
            Some(Value::String(piece)) => call.arguments.push_str(&call.joiner.join(piece)),
            Some(whole) => call.arguments.push_str(&whole.to_string()),
        }
        Ok(())
    }

    /// Whether `[DONE]` came, after which nothing does.
    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    /// Whether something said that the answer is whole.
    pub(super) fn is_whole(&self) -> bool {
        self.done || self.finish_reason.is_some()
    }

    /// The answer. `call_id` gives a call its id by its place, `model` is whose opaque state it is.
    pub(super) fn finish(
        mut self,
        model: &str,
        call_id: impl Fn(usize) -> String,
    ) -> Result<Completion, Fault> {
        if !self.is_whole() {
            return Err(Fault::Incomplete);
        }
        self.text.extend(self.text_joiner.rest());
        self.thinking.extend(self.thinking_joiner.rest());
        self.calls.retain(|call| !(call.name.is_empty() && call.arguments.trim().is_empty()));
        let stop = self.stop()?;
        let mut blocks = Vec::new();
        if !self.thinking.trim().is_empty() {
            let field = self.thinking_field.unwrap_or("reasoning_content");
            let json = serde_json::json!({"field": field});
            let opaque = Opaque { provider: PROVIDER.to_owned(), model: model.to_owned(), json };
            blocks.push(Block::Thinking { thinking: self.thinking, opaque: Some(opaque) });
        }
        if !self.text.trim().is_empty() {
            blocks.push(Block::text(self.text));
        }
        if stop == Stop::ToolUse {
            blocks.extend(self.calls.into_iter().enumerate().map(|(at, call)| call.into_block(call_id(at))));
        }
        Ok(Completion { blocks, stop, usage: self.usage })
    }

    fn stop(&self) -> Result<Stop, Fault> {
        let reason = self.finish_reason.as_deref().unwrap_or("stop");
        let lower = reason.to_lowercase();
        if lower.contains("malformed_function_call") {
            // Row C7.27: an empty success otherwise.
            return Err(Fault::Reported { said: "it made a malformed tool call".to_owned(), passing: true });
        }
        Ok(match lower.as_str() {
            "length" | "max_tokens" | "model_length" | "model_context_window_exceeded" => Stop::MaxTokens,
            "content_filter" | "refusal" | "safety" | "recitation" | "sensitive" => Stop::Refusal,
            "error" | "network_error" | "insufficient_system_resource" => {
                return Err(Fault::Reported {
                    said: ipc::text::one_line(reason, SAID_CHARS_MAX),
                    passing: true,
                });
            }
            _ if self.refused => Stop::Refusal,
            // Some say `stop` and mean their calls.
            _ if !self.calls.is_empty() => Stop::ToolUse,
            _ => Stop::EndTurn,
        })
    }
}

impl Call {
    fn into_block(mut self, id: String) -> Block {
        self.arguments.extend(self.joiner.rest());
        let raw = ipc::text::prefix(&self.arguments, RAW_CHARS_MAX).to_owned();
        if self.name.is_empty() {
            let input = Input::Unusable { raw, why: "the call names no tool".to_owned() };
            return Block::ToolUse { id, name: "unnamed".to_owned(), input };
        }
        let input = match object(&self.arguments) {
            Ok(object) => Input::Object(object),
            Err(why) => Input::Unusable { raw, why },
        };
        Block::ToolUse { id, name: self.name, input }
    }
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

fn parse(data: &str) -> Option<Value> {
    let parsed = serde_json::from_str::<Value>(data);
    parsed
        .or_else(|error| surrogate::marked(data).map_or(Err(error), |data| serde_json::from_str(&data)))
        .ok()
        .filter(Value::is_object)
}

/// A string that is not empty; null, another type and nothing at all are the same.
fn filled(value: Option<&Value>) -> Option<&str> {
    value.and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// An error inside of a stream.
fn reported(error: &Value) -> Fault {
    let said = said(error).unwrap_or_else(|| ipc::text::one_line(&error.to_string(), SAID_CHARS_MAX));
    let words = ["code", "type", "status"].map(|key| error.get(key));
    let passing = words.into_iter().flatten().any(|word| match word {
        Value::Number(code) => {
            code.as_u64().and_then(|code| u16::try_from(code).ok()).is_some_and(passing_status)
        }
        Value::String(word) => {
            let word = word.to_lowercase();
            let known = ["overloaded", "rate_limit", "server_error", "unavailable", "timeout", "internal"];
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
            Some("insufficient_quota" | "billing_hard_limit_reached" | "insufficient_balance")
        )
    })
}

#[cfg(test)]
mod tests;
