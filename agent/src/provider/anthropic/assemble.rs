//! From the events of a streamed Messages answer to one answer: pure.
//!
//! ```text
//!  message_start ─▶ (block_start ─▶ block_delta … ─▶ block_stop)* ─▶ message_delta: stop_reason ─▶ message_stop
//!        usage            ping, kinds of events and blocks that are not known: skipped
//!        an error anywhere ─▶ Fault::Reported            no stop_reason ─▶ Fault::Incomplete (row C7.17)
//! ```
//!
//! Blocks are told apart by their index, since some servers close all of them together at the end. A call whose block was
//! never closed is unusable, whatever stands in it: it may only look whole.

use serde_json::Value;

use super::super::{
    Block, Completion, Delta, Fault, Opaque, Stop, Usage,
    http::Assemble,
    reading::{self, ANSWER_BYTES_MAX, PARTS_MAX, SAID_CHARS_MAX, filled, parse, reported},
    sse::Event,
    surrogate::Joiner,
};

/// The provider's name in opaque state, and before the model's where it is shown.
pub(super) const PROVIDER: &str = "anthropic";

/// An answer that is coming in.
#[derive(Debug, Default)]
pub(in crate::provider) struct Assembly {
    parts: Vec<Part>,
    bytes: usize,
    stop_reason: Option<String>,
    done: bool,
    input_tokens: [Option<u64>; 3],
    output_tokens: Option<u64>,
}

/// One block.
#[derive(Debug)]
struct Part {
    index: u64,
    kind: Kind,
    /// Words, thoughts or arguments so far.
    text: String,
    joiner: Joiner,
    closed: bool,
}

#[derive(Debug)]
enum Kind {
    Text,
    Thinking {
        signature: String,
    },
    Redacted {
        data: String,
    },
    Call {
        name: String,
    },
    /// Of a kind this version does not know.
    Unknown,
}

impl Assemble for Assembly {
    fn take(&mut self, event: &Event) -> Result<Vec<Delta>, Fault> {
        let data = event.data.trim();
        if self.done || data == "[DONE]" {
            return Ok(Vec::new());
        }
        let said = match parse(data) {
            Some(said) => said,
            // The end of the stream cut it; whether the answer is whole is decided by what came before.
            None if !event.ended => return Ok(Vec::new()),
            None if event.name == "error" => return Err(reported(&Value::String(data.to_owned()))),
            None => return Err(Fault::Garbled { excerpt: ipc::text::one_line(data, SAID_CHARS_MAX) }),
        };
        let kind = filled(said.get("type")).unwrap_or(&event.name).to_owned();
        match said.get("error") {
            None | Some(Value::Null) if kind == "error" || event.name == "error" => {
                return Err(reported(&said));
            }
            None | Some(Value::Null) => {}
            Some(error) => return Err(reported(error)),
        }
        let index = said.get("index").and_then(Value::as_u64);
        let mut deltas = Vec::new();
        match kind.as_str() {
            "message_start" => self.count(said.pointer("/message/usage")),
            "content_block_start" => {
                self.start(index, said.get("content_block").unwrap_or(&Value::Null), &mut deltas)?;
            }
            "content_block_delta" => {
                self.grow(index, said.get("delta").unwrap_or(&Value::Null), &mut deltas)?;
            }
            "content_block_stop" => {
                let at = self.at(index);
                if let Some(part) = at.and_then(|at| self.parts.get_mut(at)) {
                    part.closed = true;
                }
            }
            "message_delta" => {
                self.count(said.get("usage"));
                if let Some(reason) = filled(said.pointer("/delta/stop_reason")) {
                    self.stop_reason = Some(reason.to_owned());
                }
            }
            "message_stop" => self.done = true,
            // `ping`, and whatever is invented later.
            _ => {}
        }
        Ok(deltas)
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn is_whole(&self) -> bool {
        self.done || self.stop_reason.is_some()
    }

    fn finish(self, model: &str, call_id: impl Fn(usize) -> String) -> Result<Completion, Fault> {
        if !self.is_whole() {
            return Err(Fault::Incomplete);
        }
        let stop = self.stop();
        let [input_tokens, cache_write_tokens, cache_read_tokens] = self.input_tokens;
        let output_tokens = self.output_tokens;
        let usage = Usage { input_tokens, output_tokens, cache_read_tokens, cache_write_tokens };
        let mut blocks = Vec::new();
        let mut calls = 0;
        for mut part in self.parts {
            part.text.extend(part.joiner.rest());
            let opaque = |key: &str, state: String| Opaque {
                provider: PROVIDER.to_owned(),
                model: model.to_owned(),
                json: serde_json::json!({ (key): state }),
            };
            match part.kind {
                Kind::Text if !part.text.trim().is_empty() => blocks.push(Block::text(part.text)),
                // A thought may be hidden and its signature there all the same; one that was cut has none and stays here.
                Kind::Thinking { signature } if !signature.is_empty() => blocks.push(Block::Thinking {
                    thinking: part.text,
                    opaque: Some(opaque("signature", signature)),
                }),
                Kind::Thinking { .. } if !part.text.trim().is_empty() => {
                    blocks.push(Block::Thinking { thinking: part.text, opaque: None });
                }
                Kind::Redacted { data } if !data.is_empty() => blocks
                    .push(Block::Thinking { thinking: String::new(), opaque: Some(opaque("data", data)) }),
                Kind::Call { name } if stop == Stop::ToolUse => {
                    let id = call_id(calls);
                    calls += 1;
                    blocks.push(if part.closed {
                        reading::call(id, name, &part.text)
                    } else {
                        reading::unusable(id, name, &part.text, "the call was not finished".to_owned())
                    });
                }
                Kind::Text
                | Kind::Thinking { .. }
                | Kind::Redacted { .. }
                | Kind::Call { .. }
                | Kind::Unknown => {}
            }
        }
        Ok(Completion { model: format!("{PROVIDER}/{model}"), blocks, stop, usage })
    }
}

impl Assembly {
    fn start(&mut self, index: Option<u64>, block: &Value, deltas: &mut Vec<Delta>) -> Result<(), Fault> {
        let text_of = |key: &str| filled(block.get(key)).unwrap_or_default().to_owned();
        let kind = match filled(block.get("type")).unwrap_or_default() {
            "text" => Kind::Text,
            "thinking" => Kind::Thinking { signature: text_of("signature") },
            "redacted_thinking" => Kind::Redacted { data: text_of("data") },
            "tool_use" => Kind::Call { name: text_of("name") },
            _ => Kind::Unknown,
        };
        let begun = match &kind {
            Kind::Text => text_of("text"),
            Kind::Thinking { .. } => text_of("thinking"),
            // Usually empty, or not there at all; the arguments come in pieces.
            Kind::Call { .. } => match block.get("input") {
                Some(Value::Object(input)) if !input.is_empty() => Value::Object(input.clone()).to_string(),
                Some(_) | None => String::new(),
            },
            Kind::Redacted { .. } | Kind::Unknown => String::new(),
        };
        if let Kind::Redacted { data: state } | Kind::Thinking { signature: state } = &kind {
            self.bytes += state.len();
        }
        let at = self.open(index, kind)?;
        self.append(at, &begun, deltas)
    }

    fn grow(&mut self, index: Option<u64>, delta: &Value, deltas: &mut Vec<Delta>) -> Result<(), Fault> {
        let piece = |key: &str| filled(delta.get(key)).unwrap_or_default();
        match filled(delta.get("type")).unwrap_or_default() {
            "text_delta" => {
                let at = self.at_or_open(index, Kind::Text)?;
                self.append(at, piece("text"), deltas)
            }
            "thinking_delta" => {
                let at = self.at_or_open(index, Kind::Thinking { signature: String::new() })?;
                self.append(at, piece("thinking"), deltas)
            }
            "input_json_delta" => match self.at(index) {
                Some(at) => self.append(at, piece("partial_json"), deltas),
                // Arguments of nothing.
                None => Ok(()),
            },
            "signature_delta" => {
                let at = self.at_or_open(index, Kind::Thinking { signature: String::new() })?;
                if let Some(Part { kind: Kind::Thinking { signature }, .. }) = self.parts.get_mut(at) {
                    signature.push_str(piece("signature"));
                    self.bytes += piece("signature").len();
                }
                self.bounded()
            }
            // Citations, and whatever is invented later.
            _ => Ok(()),
        }
    }

    /// The block an event is about: the newest of its index, or the newest of all where it names none.
    fn at(&self, index: Option<u64>) -> Option<usize> {
        match index {
            Some(index) => self.parts.iter().rposition(|part| part.index == index),
            None => self.parts.len().checked_sub(1),
        }
    }

    fn at_or_open(&mut self, index: Option<u64>, kind: Kind) -> Result<usize, Fault> {
        match self.at(index) {
            Some(at) => Ok(at),
            None => self.open(index, kind),
        }
    }

    fn open(&mut self, index: Option<u64>, kind: Kind) -> Result<usize, Fault> {
        if self.parts.len() == PARTS_MAX {
            return Err(Fault::TooLarge { what: "the list of blocks", bytes_max: PARTS_MAX });
        }
        let index = index.unwrap_or(self.parts.len() as u64);
        let joiner = Joiner::default();
        self.parts.push(Part { index, kind, text: String::new(), joiner, closed: false });
        Ok(self.parts.len() - 1)
    }

    fn append(&mut self, at: usize, piece: &str, deltas: &mut Vec<Delta>) -> Result<(), Fault> {
        let Some(part) = self.parts.get_mut(at) else { return Ok(()) };
        let piece = part.joiner.join(piece);
        part.text.push_str(&piece);
        self.bytes += piece.len();
        if !piece.is_empty() {
            match part.kind {
                Kind::Text => deltas.push(Delta::Text(piece)),
                Kind::Thinking { .. } => deltas.push(Delta::Thinking(piece)),
                Kind::Redacted { .. } | Kind::Call { .. } | Kind::Unknown => {}
            }
        }
        self.bounded()
    }

    fn bounded(&self) -> Result<(), Fault> {
        if self.bytes > ANSWER_BYTES_MAX {
            return Err(Fault::TooLarge { what: "the answer", bytes_max: ANSWER_BYTES_MAX });
        }
        Ok(())
    }

    /// Tokens, each number of them the newest: what the protocol gives are sums so far, and what
    /// was read from or written to the cache is not among what was read.
    fn count(&mut self, usage: Option<&Value>) {
        let tokens = |key: &str| usage.and_then(|usage| usage.get(key)).and_then(Value::as_u64);
        let keys = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];
        for (count, key) in self.input_tokens.iter_mut().zip(keys) {
            *count = tokens(key).or(*count);
        }
        self.output_tokens = tokens("output_tokens").or(self.output_tokens);
    }

    fn stop(&self) -> Stop {
        match self.stop_reason.as_deref() {
            // `pause_turn` is an answer that goes on when it is asked to, as one that was cut does.
            Some("max_tokens" | "model_context_window_exceeded" | "pause_turn") => Stop::MaxTokens,
            Some("refusal") => Stop::Refusal,
            // `tool_use`, `end_turn`, `stop_sequence`, and servers that say one and mean the other.
            Some(_) | None if self.parts.iter().any(|part| matches!(part.kind, Kind::Call { .. })) => {
                Stop::ToolUse
            }
            Some(_) | None => Stop::EndTurn,
        }
    }
}

#[cfg(test)]
mod tests;
