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

use serde_json::Value;

use super::super::{
    Block, Completion, Delta, Fault, Opaque, Stop, Usage,
    http::Assemble,
    reading::{self, ANSWER_BYTES_MAX, PARTS_MAX, SAID_CHARS_MAX, filled, parse, reported},
    sse::Event,
    surrogate::Joiner,
};

/// The provider's name in opaque state, and before the model's where it is shown.
pub(super) const PROVIDER: &str = "openai";

/// An answer that is coming in.
#[derive(Debug, Default)]
pub(in crate::provider) struct Assembly {
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
    read: Option<u64>,
    written: Option<u64>,
    cached: Option<u64>,
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
    /// What the server wants to see again beside the call: Gemini's signature of the thought behind it (row C7.26).
    extra: Value,
}

impl Assemble for Assembly {
    fn take(&mut self, event: &Event) -> Result<Vec<Delta>, Fault> {
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
            let tokens = |key: &str| usage.pointer(key).and_then(Value::as_u64);
            self.read = tokens("/prompt_tokens").or(self.read);
            self.written = tokens("/completion_tokens").or(self.written);
            // the second is DeepSeek's name for it
            let cached =
                tokens("/prompt_tokens_details/cached_tokens").or(tokens("/prompt_cache_hit_tokens"));
            self.cached = cached.or(self.cached);
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

    fn is_done(&self) -> bool {
        self.done
    }

    fn is_whole(&self) -> bool {
        self.done || self.finish_reason.is_some()
    }

    fn finish(mut self, model: &str, call_id: impl Fn(usize) -> String) -> Result<Completion, Fault> {
        if !self.is_whole() {
            return Err(Fault::Incomplete);
        }
        self.text.extend(self.text_joiner.rest());
        self.thinking.extend(self.thinking_joiner.rest());
        self.calls.retain(|call| !(call.name.is_empty() && call.arguments.trim().is_empty()));
        let stop = self.stop()?;
        let mut blocks = Vec::new();
        let extras: Vec<Value> = match stop {
            Stop::ToolUse => self.calls.iter().map(|call| call.extra.clone()).collect(),
            Stop::EndTurn | Stop::MaxTokens | Stop::Refusal => Vec::new(),
        };
        let has_extras = extras.iter().any(|extra| !extra.is_null());
        if !self.thinking.trim().is_empty() || has_extras {
            let field = self.thinking_field.unwrap_or("reasoning_content");
            let mut json = serde_json::json!({"field": field});
            if has_extras {
                json["calls"] = Value::Array(extras);
            }
            let opaque = Opaque { provider: PROVIDER.to_owned(), model: model.to_owned(), json };
            blocks.push(Block::Thinking { thinking: self.thinking, opaque: Some(opaque) });
        }
        if !self.text.trim().is_empty() {
            blocks.push(Block::text(self.text));
        }
        if stop == Stop::ToolUse {
            blocks.extend(self.calls.into_iter().enumerate().map(|(at, mut call)| {
                call.arguments.extend(call.joiner.rest());
                reading::call(call_id(at), call.name, &call.arguments)
            }));
        }
        let usage = Usage::of_all_read(self.read, self.cached, self.written);
        Ok(Completion { model: format!("{PROVIDER}/{model}"), blocks, stop, usage })
    }
}

impl Assembly {
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
        let arguments: usize = self.calls.iter().map(|call| call.arguments.len() + bytes(&call.extra)).sum();
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
                if self.calls.len() == PARTS_MAX {
                    return Err(Fault::TooLarge { what: "the list of tool calls", bytes_max: PARTS_MAX });
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
        if let Some(extra @ Value::Object(_)) = piece.get("extra_content") {
            call.extra = extra.clone();
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

/// How long what is kept beside a call is.
fn bytes(extra: &Value) -> usize {
    if extra.is_null() { 0 } else { extra.to_string().len() }
}

#[cfg(test)]
mod tests;
