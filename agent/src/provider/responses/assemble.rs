//! From the events of a streamed response to one answer: pure.
//!
//! ```text
//!  …text.delta ─▶ shown       output_item.done ─▶ kept: what counts       response.completed | incomplete | failed ─▶ the end
//! ```

use serde_json::Value;

use super::super::{
    Block, Completion, Delta, Fault, Opaque, Stop, Usage,
    http::Assemble,
    reading::{self, ANSWER_BYTES_MAX, PARTS_MAX, SAID_CHARS_MAX, filled, parse, reported},
    sse::Event,
    surrogate::Joiner,
};

/// The provider's name in opaque state, and before the model's where it is shown.
pub(super) const PROVIDER: &str = "responses";

/// An answer that is coming in.
#[derive(Debug, Default)]
pub(in crate::provider) struct Assembly {
    /// Whole items, by their place.
    items: Vec<(u64, Value)>,
    bytes: usize,
    text_joiner: Joiner,
    thinking_joiner: Joiner,
    end: Option<End>,
    usage: Usage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Completed,
    Cut,
    Withheld,
}

impl Assemble for Assembly {
    fn take(&mut self, event: &Event) -> Result<Vec<Delta>, Fault> {
        let data = event.data.trim();
        if self.end.is_some() || data == "[DONE]" {
            return Ok(Vec::new());
        }
        let said = match parse(data) {
            Some(said) => said,
            // The end of the stream cut it; whether the answer is whole is decided by what came before.
            None if !event.ended => return Ok(Vec::new()),
            None if event.name == "error" => return Err(reported(&Value::String(data.to_owned()))),
            None => return Err(Fault::Garbled { excerpt: ipc::text::one_line(data, SAID_CHARS_MAX) }),
        };
        self.bytes += data.len();
        if self.bytes > ANSWER_BYTES_MAX * 4 {
            // Everything comes up to four times: in pieces, as a part, as an item, in the whole response.
            return Err(Fault::TooLarge { what: "the answer", bytes_max: ANSWER_BYTES_MAX });
        }
        let kind = filled(said.get("type")).unwrap_or(&event.name);
        let response = said.get("response").unwrap_or(&Value::Null);
        let error =
            [said.get("error"), response.get("error")].into_iter().flatten().find(|error| !error.is_null());
        match (error, kind) {
            (Some(error), _) => return Err(reported(error)),
            (None, "error" | "response.failed") => return Err(reported(&said)),
            (None, _) => {}
        }
        let piece = || filled(said.get("delta")).unwrap_or_default();
        let mut deltas = Vec::new();
        match kind {
            "response.output_text.delta" | "response.refusal.delta" => {
                let piece = self.text_joiner.join(piece());
                deltas.extend((!piece.is_empty()).then_some(Delta::Text(piece)));
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                let piece = self.thinking_joiner.join(piece());
                deltas.extend((!piece.is_empty()).then_some(Delta::Thinking(piece)));
            }
            "response.output_item.done" => {
                let place = said.get("output_index").and_then(Value::as_u64);
                self.keep(place, said.get("item").unwrap_or(&Value::Null))?;
            }
            "response.completed" => self.finished(response, End::Completed)?,
            "response.incomplete" => {
                let filtered = response.pointer("/incomplete_details/reason").and_then(Value::as_str);
                let end = if filtered == Some("content_filter") { End::Withheld } else { End::Cut };
                self.finished(response, end)?;
            }
            // Beginnings, parts and wholes of what comes in pieces, and whatever is invented later.
            _ => {}
        }
        Ok(deltas)
    }

    fn is_done(&self) -> bool {
        self.end.is_some()
    }

    fn is_whole(&self) -> bool {
        self.end.is_some()
    }

    fn finish(mut self, model: &str, call_id: impl Fn(usize) -> String) -> Result<Completion, Fault> {
        let end = self.end.ok_or(Fault::Incomplete)?;
        self.items.sort_by_key(|(place, _)| *place);
        let is_call = |item: &Value| item.get("type").and_then(Value::as_str) == Some("function_call");
        let refused = self.items.iter().any(|(_, item)| parts(item, "content", "refusal").next().is_some());
        let stop = match end {
            End::Cut => Stop::MaxTokens,
            End::Withheld => Stop::Refusal,
            End::Completed if refused => Stop::Refusal,
            End::Completed if self.items.iter().any(|(_, item)| is_call(item)) => Stop::ToolUse,
            End::Completed => Stop::EndTurn,
        };
        let mut blocks = Vec::new();
        let mut calls = 0;
        for (_, item) in self.items {
            match item.get("type").and_then(Value::as_str).unwrap_or_default() {
                "message" => {
                    let words = parts(&item, "content", "text").chain(parts(&item, "content", "refusal"));
                    blocks.extend(words.filter(|text| !text.trim().is_empty()).map(Block::text));
                }
                "reasoning" => {
                    let thinking = parts(&item, "summary", "text").collect::<Vec<_>>().join("\n\n");
                    // Without its encrypted content the vendor would look for what it did not store.
                    let opaque = filled(item.get("encrypted_content")).is_some().then(|| Opaque {
                        provider: PROVIDER.to_owned(),
                        model: model.to_owned(),
                        json: serde_json::json!({"item": item}),
                    });
                    if opaque.is_some() || !thinking.trim().is_empty() {
                        blocks.push(Block::Thinking { thinking, opaque });
                    }
                }
                "function_call" if stop == Stop::ToolUse => {
                    let name = filled(item.get("name")).unwrap_or_default().to_owned();
                    let arguments = joined(filled(item.get("arguments")).unwrap_or_default());
                    let id = call_id(calls);
                    calls += 1;
                    blocks.push(if filled(item.get("status")) == Some("incomplete") {
                        reading::unusable(id, name, &arguments, "the call was not finished".to_owned())
                    } else {
                        reading::call(id, name, &arguments)
                    });
                }
                _ => {}
            }
        }
        Ok(Completion { model: format!("{PROVIDER}/{model}"), blocks, stop, usage: self.usage })
    }
}

impl Assembly {
    fn keep(&mut self, place: Option<u64>, item: &Value) -> Result<(), Fault> {
        if self.items.len() == PARTS_MAX {
            return Err(Fault::TooLarge { what: "the list of items", bytes_max: PARTS_MAX });
        }
        self.items.push((place.unwrap_or(self.items.len() as u64), item.clone()));
        Ok(())
    }

    /// The end; where no item came by itself, the response holds them all.
    fn finished(&mut self, response: &Value, end: End) -> Result<(), Fault> {
        let tokens = |key: &str| response.pointer(key).and_then(Value::as_u64);
        self.usage = Usage::of_all_read(
            tokens("/usage/input_tokens"),
            tokens("/usage/input_tokens_details/cached_tokens"),
            tokens("/usage/output_tokens"),
        );
        self.end = Some(end);
        if self.items.is_empty() {
            for item in response.get("output").and_then(Value::as_array).into_iter().flatten() {
                self.keep(None, item)?;
            }
        }
        Ok(())
    }
}

/// The texts under `key` of the parts that an item lists under `list`.
fn parts<'a>(item: &'a Value, list: &str, key: &'static str) -> impl Iterator<Item = String> + 'a {
    let parts = item.get(list).and_then(Value::as_array).into_iter().flatten();
    parts.filter_map(move |part| filled(part.get(key)).map(joined))
}

/// A whole text, its lonely halves of characters made U+FFFD.
fn joined(text: &str) -> String {
    let mut joiner = Joiner::default();
    let mut whole = joiner.join(text);
    whole.extend(joiner.rest());
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::Input;
    use serde_json::json;

    fn assemble(events: &[Value]) -> Result<(Vec<Delta>, Completion), Fault> {
        let mut assembly = Assembly::default();
        let mut deltas = Vec::new();
        for said in events {
            let event = Event { name: String::new(), data: said.to_string(), ended: true };
            deltas.extend(assembly.take(&event)?);
        }
        Ok((deltas, assembly.finish("m", |at| format!("id{at}"))?))
    }

    fn done(place: u64, item: &Value) -> Value {
        json!({"type": "response.output_item.done", "output_index": place, "item": item})
    }

    fn completed() -> Value {
        json!({"type": "response.completed", "response": {"output": [], "usage": {"input_tokens": 7, "output_tokens": 2,
            "input_tokens_details": {"cached_tokens": 5}}}})
    }

    fn message(text: &str) -> Value {
        json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]})
    }

    fn call(arguments: &str, status: &str) -> Value {
        json!({"type": "function_call", "call_id": "c", "name": "t", "arguments": arguments, "status": status})
    }

    #[test]
    fn c7_28_items_count_and_pieces_are_shown() {
        let reasoning = json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "gAAA",
            "summary": [{"type": "summary_text", "text": "hm"}]});
        let (shown, completion) = assemble(&[
            json!({"type": "response.created", "response": {"error": null}}),
            json!({"type": "response.reasoning_summary_text.delta", "delta": "hm"}),
            json!({"type": "response.output_text.delta", "delta": "你好"}),
            json!({"type": "response.output_text.done", "text": "你好"}),
            done(1, &message("你好")),
            done(0, &reasoning),
            done(2, &call("{\"x\":1}", "completed")),
            done(3, &call("", "completed")),
            completed(),
        ])
        .unwrap();
        assert_eq!(shown, [Delta::Thinking("hm".into()), Delta::Text("你好".into())]);
        let opaque =
            Opaque { provider: PROVIDER.into(), model: "m".into(), json: json!({"item": reasoning}) };
        let used = |id: &str, input: Value| Block::ToolUse {
            id: id.into(),
            name: "t".into(),
            input: Input::Object(input.as_object().unwrap().clone()),
        };
        let thought = Block::Thinking { thinking: "hm".into(), opaque: Some(opaque) };
        let calls = [used("id0", json!({"x": 1})), used("id1", json!({}))];
        let blocks = [&[thought, Block::text("你好")][..], &calls].concat();
        let usage = Usage {
            input_tokens: Some(2),
            output_tokens: Some(2),
            cache_read_tokens: Some(5),
            cache_write_tokens: None,
        };
        assert_eq!(
            completion,
            Completion { model: "responses/m".into(), blocks, stop: Stop::ToolUse, usage }
        );
    }

    #[test]
    fn the_response_itself_stands_in_for_items_that_did_not_come() {
        let whole =
            json!({"type": "response.completed", "response": {"output": [message("a"), message(" ")]}});
        assert_eq!(assemble(&[whole]).unwrap().1.blocks, [Block::text("a")]);
        let unsent = json!({"type": "reasoning", "id": "rs_1", "summary": [{"text": "hm"}]});
        let kept = assemble(&[done(0, &unsent), completed()]).unwrap().1.blocks;
        assert_eq!(kept, [Block::Thinking { thinking: "hm".into(), opaque: None }]);
    }

    #[test]
    fn c7_05_c7_06_bad_and_unfinished_calls_never_run() {
        for item in [call("{\"a\":", "completed"), call("{\"a\":1}", "incomplete"), call("[1]", "completed")]
        {
            let blocks = assemble(&[done(0, &item), completed()]).unwrap().1.blocks;
            assert!(
                matches!(&blocks[..], [Block::ToolUse { input: Input::Unusable { .. }, .. }]),
                "{blocks:?}"
            );
        }
    }

    #[test]
    fn each_end_is_told_apart() {
        let incomplete = |reason: &str| json!({"type": "response.incomplete", "response": {"incomplete_details": {"reason": reason}}});
        let check = |end: Value, expected: Stop| {
            let completion =
                assemble(&[done(0, &message("a")), done(1, &call("{}", "completed")), end]).unwrap().1;
            assert_eq!(completion.stop, expected);
            assert_eq!(completion.blocks.len(), if expected == Stop::ToolUse { 2 } else { 1 });
        };
        check(completed(), Stop::ToolUse);
        check(incomplete("max_output_tokens"), Stop::MaxTokens);
        check(incomplete("content_filter"), Stop::Refusal);
        let refusal = json!({"type": "message", "content": [{"type": "refusal", "refusal": "I will not"}]});
        let refused = assemble(&[done(0, &refusal), completed()]).unwrap().1;
        assert_eq!((refused.stop, refused.blocks), (Stop::Refusal, vec![Block::text("I will not")]));
    }

    #[test]
    fn c7_17_c7_18_no_end_and_a_bad_end_are_failures() {
        assert_eq!(assemble(&[done(0, &message("a"))]).unwrap_err(), Fault::Incomplete);
        let failed = |code: &str| json!({"type": "response.failed", "response": {"error": {"code": code, "message": "no"}}});
        let check = |event: Value, passing: bool| {
            assert_eq!(assemble(&[event]).unwrap_err(), Fault::Reported { said: "no".into(), passing });
        };
        check(failed("server_error"), true);
        check(failed("rate_limit_exceeded"), true);
        check(failed("invalid_prompt"), false);
        check(json!({"type": "error", "code": "server_error", "message": "no"}), true);
        check(json!({"error": {"code": 500, "message": "no"}}), true);
    }

    proptest::proptest! {
        #[test]
        fn no_event_makes_it_panic(data in r#"(\{|\}|\[|\]|"type"|"response.output_item.done"|"response.completed"|"item"|"response"|:|,|"\\ud83c"|1|null|"a"|.){0,30}"#) {
            let mut assembly = Assembly::default();
            let _ = assembly.take(&Event { name: String::new(), data, ended: true });
            let _ = assembly.finish("m", |at| at.to_string());
        }
    }
}
