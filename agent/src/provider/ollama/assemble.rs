//! From the lines of Ollama's streamed answer to one answer: pure. The last line says `done`; calls come whole.

use serde_json::Value;

use super::super::{
    Block, Completion, Delta, Fault, Opaque, Stop, Usage,
    http::Assemble,
    reading::{self, ANSWER_BYTES_MAX, PARTS_MAX, SAID_CHARS_MAX, filled, parse, reported},
    sse::Event,
    surrogate::Joiner,
};

/// The provider's name in opaque state, and before the model's where it is shown.
pub(super) const PROVIDER: &str = "ollama";

/// An answer that is coming in.
#[derive(Debug, Default)]
pub(in crate::provider) struct Assembly {
    text: String,
    text_joiner: Joiner,
    thinking: String,
    thinking_joiner: Joiner,
    /// Name and arguments.
    calls: Vec<(String, String)>,
    done: bool,
    cut: bool,
    usage: Usage,
}

impl Assemble for Assembly {
    fn take(&mut self, event: &Event) -> Result<Vec<Delta>, Fault> {
        if self.done {
            return Ok(Vec::new());
        }
        let line = match parse(event.data.trim()) {
            Some(line) => line,
            // The end of the stream cut it.
            None if !event.ended => return Ok(Vec::new()),
            None => return Err(Fault::Garbled { excerpt: ipc::text::one_line(&event.data, SAID_CHARS_MAX) }),
        };
        if let Some(error) = line.get("error").filter(|error| !error.is_null()) {
            return Err(reported(error));
        }
        let mut deltas = Vec::new();
        let message = line.get("message").unwrap_or(&Value::Null);
        if let Some(piece) = filled(message.get("thinking")) {
            let piece = self.thinking_joiner.join(piece);
            self.thinking.push_str(&piece);
            deltas.extend((!piece.is_empty()).then_some(Delta::Thinking(piece)));
        }
        if let Some(piece) = filled(message.get("content")) {
            let piece = self.text_joiner.join(piece);
            self.text.push_str(&piece);
            deltas.extend((!piece.is_empty()).then_some(Delta::Text(piece)));
        }
        for call in message.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            let function = call.get("function").unwrap_or(call);
            let name = filled(function.get("name")).unwrap_or_default().to_owned();
            let arguments = match function.get("arguments") {
                None | Some(Value::Null) => String::new(),
                Some(Value::String(written)) => written.clone(),
                Some(whole) => whole.to_string(),
            };
            self.calls.push((name, arguments));
        }
        if line.get("done") == Some(&Value::Bool(true)) {
            self.done = true;
            self.cut = filled(line.get("done_reason")) == Some("length");
            let tokens = |key| line.get(key).and_then(Value::as_u64);
            self.usage = Usage::of_all_read(tokens("prompt_eval_count"), None, tokens("eval_count"));
        }
        if self.calls.len() > PARTS_MAX {
            return Err(Fault::TooLarge { what: "the list of tool calls", bytes_max: PARTS_MAX });
        }
        let arguments: usize = self.calls.iter().map(|(_, arguments)| arguments.len()).sum();
        if self.text.len() + self.thinking.len() + arguments > ANSWER_BYTES_MAX {
            return Err(Fault::TooLarge { what: "the answer", bytes_max: ANSWER_BYTES_MAX });
        }
        Ok(deltas)
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn is_whole(&self) -> bool {
        self.done
    }

    fn finish(mut self, model: &str, call_id: impl Fn(usize) -> String) -> Result<Completion, Fault> {
        if !self.done {
            return Err(Fault::Incomplete);
        }
        self.text.extend(self.text_joiner.rest());
        self.thinking.extend(self.thinking_joiner.rest());
        let stop = match (self.cut, self.calls.is_empty()) {
            (true, _) => Stop::MaxTokens,
            (false, true) => Stop::EndTurn,
            (false, false) => Stop::ToolUse,
        };
        let mut blocks = Vec::new();
        if !self.thinking.trim().is_empty() {
            let json = serde_json::json!({"field": "thinking"});
            let opaque = Opaque { provider: PROVIDER.to_owned(), model: model.to_owned(), json };
            blocks.push(Block::Thinking { thinking: self.thinking, opaque: Some(opaque) });
        }
        if !self.text.trim().is_empty() {
            blocks.push(Block::text(self.text));
        }
        if stop == Stop::ToolUse {
            let calls = self.calls.into_iter().enumerate();
            blocks.extend(calls.map(|(at, (name, arguments))| reading::call(call_id(at), name, &arguments)));
        }
        Ok(Completion { model: format!("{PROVIDER}/{model}"), blocks, stop, usage: self.usage })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::Input;
    use serde_json::json;

    fn assemble(lines: &[&str]) -> Result<(Vec<Delta>, Completion), Fault> {
        let mut assembly = Assembly::default();
        let mut deltas = Vec::new();
        for line in lines {
            deltas.extend(assembly.take(&Event {
                name: String::new(),
                data: (*line).to_owned(),
                ended: true,
            })?);
        }
        Ok((deltas, assembly.finish("m", |at| format!("id{at}"))?))
    }

    #[test]
    fn words_thoughts_and_what_it_cost() {
        let (shown, completion) = assemble(&[
            r#"{"message":{"role":"assistant","content":"","thinking":"hm"},"done":false}"#,
            r#"{"message":{"role":"assistant","content":"你好\ud83c"},"done":false}"#,
            r#"{"message":{"role":"assistant","content":"\udf0d"},"done":false}"#,
            r#"{"message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","prompt_eval_count":26,"eval_count":9}"#,
        ])
        .unwrap();
        let [thought, first, second] = ["hm", "你好", "🌍"].map(str::to_owned);
        assert_eq!(shown, [Delta::Thinking(thought), Delta::Text(first), Delta::Text(second)]);
        assert_eq!(completion.blocks.last(), Some(&Block::text("你好🌍")));
        assert_eq!((completion.model.as_str(), completion.stop), ("ollama/m", Stop::EndTurn));
        assert_eq!(
            completion.usage,
            Usage { input_tokens: Some(26), output_tokens: Some(9), ..Usage::default() }
        );
    }

    #[test]
    fn c7_10_calls_come_whole_and_without_ids() {
        let (_, completion) = assemble(&[
            r#"{"message":{"tool_calls":[{"function":{"name":"t","arguments":{"n":1}}},{"function":{"name":"t","arguments":{}}}]},"done":false}"#,
            r#"{"message":{"tool_calls":[{"function":{"name":"t","arguments":[1]}}]},"done":false}"#,
            r#"{"done":true,"done_reason":"stop"}"#,
        ])
        .unwrap();
        let call = |id: &str, input: Value| Block::ToolUse {
            id: id.into(),
            name: "t".into(),
            input: Input::Object(input.as_object().unwrap().clone()),
        };
        assert_eq!(completion.blocks[..2], [call("id0", json!({"n": 1})), call("id1", json!({}))]);
        assert!(matches!(&completion.blocks[2], Block::ToolUse { input: Input::Unusable { .. }, .. }));
        assert_eq!(completion.stop, Stop::ToolUse);
    }

    #[test]
    fn c7_17_what_is_not_done_is_incomplete_and_what_was_cut_calls_nothing() {
        let call = r#"{"message":{"content":"a","tool_calls":[{"function":{"name":"t","arguments":{}}}]},"done":false}"#;
        assert_eq!(assemble(&[call]).unwrap_err(), Fault::Incomplete);
        let (_, cut) = assemble(&[call, r#"{"done":true,"done_reason":"length"}"#]).unwrap();
        assert_eq!((cut.stop, cut.blocks), (Stop::MaxTokens, vec![Block::text("a")]));
    }

    #[test]
    fn c7_18_an_error_line_is_a_failure() {
        let said = "model runner has unexpectedly stopped";
        let line = json!({"error": said}).to_string();
        assert_eq!(assemble(&[&line]).unwrap_err(), Fault::Reported { said: said.into(), passing: false });
        assert!(matches!(assemble(&["<html>"]).unwrap_err(), Fault::Garbled { .. }));
    }
}
