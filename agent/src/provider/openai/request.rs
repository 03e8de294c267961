//! From a conversation to the JSON of a chat completion: pure, and the last place where a faulty history is mended.
//!
//! ```text
//!  messages ──turns──▶ neighbours of one role joined ──▶ each call with exactly one result, right behind it ──▶ JSON
//! ```
//!
//! One orphan would make the provider refuse every later turn (rows C7.1–C7.4), so results without a call and second results
//! are dropped here, and a call without a result gets one that says so. Nothing is ever run again for it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    super::{Block, Input, Message, ModelRequest, Opaque, Role},
    assemble::PROVIDER,
};

/// What a model is told of a call whose result was lost.
const INTERRUPTED: &str = "interrupted, outcome unknown";

/// The longest tool name there may be, by OpenAI's documentation.
const NAME_CHARS_MAX: usize = 64;

/// The body of the request.
pub(super) fn body(request: &ModelRequest, model: &str) -> Value {
    let mut body = json!({
        "model": model,
        "messages": messages(request, model),
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    let tools: Vec<Value> = request.tools.iter().map(|tool| json!({
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": tool.input_schema},
    })).collect();
    if !tools.is_empty() {
        body["tools"] = Value::Array(tools);
    }
    body
}

fn messages(request: &ModelRequest, model: &str) -> Vec<Value> {
    let mut out = Vec::new();
    if !request.system.trim().is_empty() {
        out.push(json!({"role": "system", "content": request.system}));
    }
    let turns = turns(&request.messages);
    let mut ids = Ids::default();
    let mut at = 0;
    while let Some(turn) = turns.get(at) {
        at += 1;
        match turn.role {
            Role::User => {
                out.extend(words(&turn.blocks).map(|text| json!({"role": "user", "content": text})));
            }
            Role::Assistant => {
                let (message, calls) = assistant(&turn.blocks, model, &mut ids);
                out.extend(message);
                // The results stand in the next turn, before its words; all of them, before an orphan is looked for (C7.4).
                let answer = turns.get(at).map(|turn| turn.blocks.as_slice()).unwrap_or_default();
                out.extend(calls.into_iter().map(
                    |(id, sent)| json!({"role": "tool", "tool_call_id": sent, "content": result(answer, id)}),
                ));
            }
        }
    }
    out
}

/// Neighbouring messages of one role: many templates insist on turns.
struct Turn<'a> {
    role: Role,
    blocks: Vec<&'a Block>,
}

fn turns(messages: &[Message]) -> Vec<Turn<'_>> {
    let mut turns: Vec<Turn<'_>> = Vec::new();
    for message in messages {
        match turns.last_mut() {
            // A call ends its turn: what the assistant says next belongs behind the result, even one that is missing.
            Some(turn)
                if turn.role == message.role && !(turn.role == Role::Assistant && has_call(&turn.blocks)) =>
            {
                turn.blocks.extend(&message.content);
            }
            Some(_) | None => {
                turns.push(Turn { role: message.role, blocks: message.content.iter().collect() });
            }
        }
    }
    turns
}

fn has_call(blocks: &[&Block]) -> bool {
    blocks.iter().any(|block| matches!(block, Block::ToolUse { .. }))
}

/// The words of a turn; nothing where there are none, because empty text is refused for ever (row C7.29).
fn words(blocks: &[&Block]) -> Option<String> {
    let texts: Vec<&str> =
        blocks.iter().filter_map(|block| block.as_text()).filter(|text| !text.trim().is_empty()).collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

/// An assistant's message, and its calls: the id in the history and the id that is sent.
fn assistant<'a>(
    blocks: &[&'a Block],
    model: &str,
    ids: &mut Ids<'a>,
) -> (Option<Value>, Vec<(&'a str, String)>) {
    let mut calls = Vec::new();
    let mut seen = Vec::new();
    for block in blocks {
        let Block::ToolUse { id, name, input } = block else { continue };
        if seen.contains(&id.as_str()) {
            continue;
        }
        seen.push(id.as_str());
        // Unusable arguments are never sent as they are: some servers refuse the conversation for ever (row C7.34). The
        // result that stands behind the call says what was wrong.
        let arguments = match input {
            Input::Object(object) => Value::Object(object.clone()).to_string(),
            Input::Unusable { .. } => "{}".to_owned(),
        };
        let sent = ids.next(id);
        let function = json!({"name": tool_name(name), "arguments": arguments});
        calls.push((
            id.as_str(),
            sent.clone(),
            json!({"id": sent, "type": "function", "function": function}),
        ));
    }
    let text = words(blocks);
    if text.is_none() && calls.is_empty() {
        return (None, Vec::new());
    }
    let mut message = json!({"role": "assistant", "content": text});
    for (field, thinking) in thinking(blocks, model) {
        message[field] = Value::String(thinking);
    }
    let (ids, wire): (Vec<_>, Vec<_>) = calls.into_iter().map(|(id, sent, call)| ((id, sent), call)).unzip();
    if !wire.is_empty() {
        message["tool_calls"] = Value::Array(wire);
    }
    (Some(message), ids)
}

/// Thinking goes back word for word to the model it came from (row C7.24) and to no other (row C7.31).
fn thinking(blocks: &[&Block], model: &str) -> BTreeMap<&'static str, String> {
    let mut fields: BTreeMap<&'static str, String> = BTreeMap::new();
    for block in blocks {
        let Block::Thinking { thinking, opaque: Some(Opaque { provider, model: from, json }) } = block else {
            continue;
        };
        if provider != PROVIDER || from != model {
            continue;
        }
        let field = match json.get("field").and_then(Value::as_str) {
            Some("reasoning") => "reasoning",
            Some(_) | None => "reasoning_content",
        };
        fields.entry(field).or_default().push_str(thinking);
    }
    fields
}

/// The first result of the call `id`.
fn result(answer: &[&Block], id: &str) -> String {
    let found = answer.iter().find_map(|block| match block {
        Block::ToolResult { tool_use_id, content, is_error } if tool_use_id == id => {
            Some((content, *is_error))
        }
        _ => None,
    });
    match found {
        None => INTERRUPTED.to_owned(),
        // The format has no word for bad news, and a tool message may not be empty everywhere.
        Some((content, is_error)) => match (content.trim().is_empty(), is_error) {
            (true, false) => "(no output)".to_owned(),
            (true, true) => "error".to_owned(),
            (false, false) => content.clone(),
            (false, true) => format!("error: {content}"),
        },
    }
}

/// Ids as they are sent: nine letters and digits, which every server seen accepts, unique in the whole request.
#[derive(Default)]
struct Ids<'a> {
    given: Vec<&'a str>,
}

impl<'a> Ids<'a> {
    fn next(&mut self, id: &'a str) -> String {
        self.given.push(id);
        format!("call{:05}", self.given.len())
    }
}

/// A name as every server accepts it; a model may have made one up that none would take back.
fn tool_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    let name: String = name.chars().take(NAME_CHARS_MAX).map(plain).collect();
    if name.is_empty() { "unnamed".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ipc::contract::soul::ToolSpec;

    fn call(id: &str) -> Block {
        let input = json!({"x": id}).as_object().unwrap().clone();
        Block::ToolUse { id: id.into(), name: "t".into(), input: Input::Object(input) }
    }

    fn says(role: Role, content: Vec<Block>) -> Message {
        Message { role, content }
    }

    fn user(content: Vec<Block>) -> Message {
        says(Role::User, content)
    }

    fn assistant(content: Vec<Block>) -> Message {
        says(Role::Assistant, content)
    }

    fn sent(messages: Vec<Message>) -> Vec<Value> {
        let request = ModelRequest { system: String::new(), messages, tools: vec![] };
        body(&request, "m")["messages"].as_array().unwrap().clone()
    }

    /// The conversation in short: `user words`, `assistant words [ids]`, `tool id words`.
    fn short(messages: Vec<Message>) -> Vec<String> {
        let line = |m: &Value| {
            let ids: Vec<&str> =
                m["tool_calls"].as_array().into_iter().flatten().map(|c| c["id"].as_str().unwrap()).collect();
            let mut parts = vec![m["role"].as_str().unwrap().to_owned()];
            parts.extend(m["tool_call_id"].as_str().map(str::to_owned));
            parts.extend(m["content"].as_str().map(str::to_owned));
            parts.extend((!ids.is_empty()).then(|| format!("[{}]", ids.join(" "))));
            parts.join(" ")
        };
        sent(messages).iter().map(line).collect()
    }

    #[test]
    fn the_whole_body() {
        let tool = ToolSpec {
            name: "soul_read".into(),
            description: "Reads.".into(),
            input_schema: json!({"type": "object"}),
            writes: false,
        };
        let request = ModelRequest {
            system: "You are.".into(),
            messages: vec![
                Message::user("hi"),
                assistant(vec![Block::text("wait"), call("toolu_1")]),
                user(vec![Block::result("toolu_1", "done", false), Block::text("and now?")]),
            ],
            tools: vec![tool],
        };
        assert_eq!(
            body(&request, "m"),
            json!({
                "model": "m",
                "messages": [
                    {"role": "system", "content": "You are."},
                    {"role": "user", "content": "hi"},
                    {"role": "assistant", "content": "wait", "tool_calls": [
                        {"id": "call00001", "type": "function", "function": {"name": "t", "arguments": "{\"x\":\"toolu_1\"}"}}]},
                    {"role": "tool", "tool_call_id": "call00001", "content": "done"},
                    {"role": "user", "content": "and now?"},
                ],
                "stream": true,
                "stream_options": {"include_usage": true},
                "tools": [{"type": "function", "function": {"name": "soul_read", "description": "Reads.",
                           "parameters": {"type": "object"}}}],
            })
        );
    }

    #[test]
    fn c7_01_a_call_without_a_result_gets_one() {
        assert_eq!(
            short(vec![Message::user("a"), assistant(vec![call("1")]), Message::user("b")]),
            ["user a", "assistant [call00001]", "tool call00001 interrupted, outcome unknown", "user b"]
        );
        assert_eq!(
            short(vec![Message::user("a"), assistant(vec![call("1")])]),
            ["user a", "assistant [call00001]", "tool call00001 interrupted, outcome unknown"]
        );
        assert_eq!(
            short(vec![assistant(vec![call("1")]), assistant(vec![Block::text("b")])]),
            ["assistant [call00001]", "tool call00001 interrupted, outcome unknown", "assistant b"]
        );
    }

    #[test]
    fn c7_02_a_result_without_a_call_is_dropped() {
        assert_eq!(
            short(vec![
                user(vec![Block::result("gone", "x", false), Block::text("a")]),
                assistant(vec![Block::text("b")]),
                user(vec![Block::result("gone", "x", false)]),
            ]),
            ["user a", "assistant b"]
        );
    }

    #[test]
    fn c7_03_the_first_of_two_results_counts() {
        let twice = vec![Block::result("1", "first", false), Block::result("1", "second", true)];
        let expected = ["assistant [call00001]", "tool call00001 first"];
        assert_eq!(short(vec![assistant(vec![call("1"), call("1")]), user(twice.clone())]), expected);
        let [a, b] = [twice[..1].to_vec(), twice[1..].to_vec()];
        assert_eq!(short(vec![assistant(vec![call("1")]), user(a), user(b)]), expected);
    }

    #[test]
    fn c7_04_results_of_parallel_calls_in_messages_of_their_own_belong_together() {
        assert_eq!(
            short(vec![
                assistant(vec![call("1"), call("2")]),
                user(vec![Block::result("2", "two", false)]),
                user(vec![Block::result("1", "one", true), Block::text("go on")]),
            ]),
            [
                "assistant [call00001 call00002]",
                "tool call00001 error: one",
                "tool call00002 two",
                "user go on"
            ]
        );
    }

    #[test]
    fn c7_31_ids_that_repeat_in_every_turn_are_told_apart() {
        let turn =
            |text: &str| [assistant(vec![call("call_0")]), user(vec![Block::result("call_0", text, false)])];
        assert_eq!(
            short([turn("a"), turn("b")].concat()),
            ["assistant [call00001]", "tool call00001 a", "assistant [call00002]", "tool call00002 b"]
        );
    }

    #[test]
    fn c7_29_nothing_empty_is_sent() {
        assert_eq!(
            short(vec![
                user(vec![Block::text(" "), Block::text("a")]),
                assistant(vec![Block::text("")]),
                assistant(vec![]),
                user(vec![Block::text("b")]),
                assistant(vec![call("1")]),
                user(vec![Block::result("1", "", false)]),
            ]),
            ["user a", "user b", "assistant [call00001]", "tool call00001 (no output)"]
        );
        assert_eq!(sent(vec![assistant(vec![call("1")])])[0]["content"], Value::Null);
    }

    #[test]
    fn c7_24_c7_31_thinking_goes_back_to_its_own_model_only() {
        let thought = |provider: &str, model: &str, field: &str| Block::Thinking {
            thinking: format!("by {model}"),
            opaque: Some(Opaque {
                provider: provider.into(),
                model: model.into(),
                json: json!({"field": field}),
            }),
        };
        let message = assistant(vec![
            thought("openai", "m", "reasoning_content"),
            thought("openai", "other", "reasoning_content"),
            thought("anthropic", "m", "reasoning_content"),
            Block::Thinking { thinking: "nobody's".into(), opaque: None },
            Block::Other(json!({"type": "redacted_thinking"})),
            Block::text("a"),
        ]);
        assert_eq!(
            sent(vec![message])[0],
            json!({"role": "assistant", "content": "a", "reasoning_content": "by m"})
        );
        let message = assistant(vec![thought("openai", "m", "reasoning"), Block::text("a")]);
        assert_eq!(sent(vec![message])[0]["reasoning"], "by m");
        assert_eq!(sent(vec![assistant(vec![thought("openai", "m", "reasoning")])]), Vec::<Value>::new());
    }

    #[test]
    fn c7_34_unusable_arguments_and_names_are_not_sent_back() {
        let bad = Block::ToolUse {
            id: "1".into(),
            name: "soul patch<|x|>".into(),
            input: Input::Unusable { raw: "{\"a".into(), why: "cut".into() },
        };
        let function = &sent(vec![assistant(vec![bad])])[0]["tool_calls"][0]["function"];
        assert_eq!(*function, json!({"name": "soul_patch__x__", "arguments": "{}"}));
    }
}
