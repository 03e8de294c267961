//! From a conversation to the JSON of a chat completion: pure.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    super::{
        ModelRequest,
        history::{self, Part, Turn},
        offered::offered,
        settings::RemoteSettings,
    },
    assemble::PROVIDER,
};

/// The body of the request.
pub(super) fn body(request: &ModelRequest, settings: &RemoteSettings) -> Value {
    let mut body = json!({
        "model": settings.name,
        "messages": messages(request, &settings.name),
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    if let Some(max) = settings.max_tokens {
        // OpenAI's newer models refuse the old word, and most other servers know no other.
        let at_openai = settings.base_url.host_str() == Some("api.openai.com");
        body[if at_openai { "max_completion_tokens" } else { "max_tokens" }] = json!(max);
    }
    let tools: Vec<Value> = request.tools.iter().map(|tool| json!({
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": offered(&tool.input_schema)},
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
    for turn in history::turns(&request.messages, PROVIDER, model) {
        match turn {
            Turn::User(words) => out.push(json!({"role": "user", "content": words.join("\n\n")})),
            Turn::Assistant(parts) => out.extend(assistant(&parts)),
        }
    }
    out
}

/// An assistant's message, and a message of its own for the result of each call in it.
fn assistant(parts: &[Part<'_>]) -> Vec<Value> {
    let mut texts = Vec::new();
    let mut thinking: BTreeMap<&str, String> = BTreeMap::new();
    let mut calls = Vec::new();
    let mut extras: &[Value] = &[];
    let mut results = Vec::new();
    for part in parts {
        match part {
            Part::Words(words) => texts.push(*words),
            Part::Thought { thinking: thought, state } => {
                let field = match state.get("field").and_then(Value::as_str) {
                    Some("reasoning") => "reasoning",
                    Some(_) | None => "reasoning_content",
                };
                // one that is there for what stands beside its calls says nothing
                if !thought.trim().is_empty() {
                    thinking.entry(field).or_default().push_str(thought);
                }
                extras = state.get("calls").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            }
            Part::Call(call) => {
                let arguments = Value::Object(call.input.as_ref().clone()).to_string();
                let function = json!({"name": call.name, "arguments": arguments});
                let mut called = json!({"id": call.id, "type": "function", "function": function});
                if let Some((extra, rest)) = extras.split_first() {
                    extras = rest;
                    if extra.is_object() {
                        called["extra_content"] = extra.clone();
                    }
                }
                calls.push(called);
                results.push(json!({"role": "tool", "tool_call_id": call.id, "content": call.told()}));
            }
        }
    }
    let text = (!texts.is_empty()).then(|| texts.join("\n\n"));
    let mut message = json!({"role": "assistant", "content": text});
    for (field, thinking) in thinking {
        message[field] = Value::String(thinking);
    }
    if !calls.is_empty() {
        message["tool_calls"] = Value::Array(calls);
    }
    std::iter::once(message).chain(results).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::{Block, Input, Message, Opaque, Role, history::arbitrary, settings::Speaks};
    use ipc::contract::soul::ToolSpec;
    use proptest::prelude::*;

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
        let request = ModelRequest { said: 0, system: String::new(), messages, tools: vec![] };
        body(&request, &RemoteSettings::of_test(Speaks::OpenAi))["messages"].as_array().unwrap().clone()
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
            said: 0,
            system: "You are.".into(),
            messages: vec![
                Message::user("hi"),
                assistant(vec![Block::text("wait"), call("toolu_1")]),
                user(vec![Block::result("toolu_1", "done", false), Block::text("and now?")]),
            ],
            tools: vec![tool],
        };
        assert_eq!(
            body(&request, &RemoteSettings::of_test(Speaks::OpenAi)),
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
            [
                "user a",
                "assistant [call00001]",
                "tool call00001 error: interrupted, outcome unknown",
                "user b"
            ]
        );
        assert_eq!(
            short(vec![Message::user("a"), assistant(vec![call("1")])]),
            ["user a", "assistant [call00001]", "tool call00001 error: interrupted, outcome unknown"]
        );
        assert_eq!(
            short(vec![assistant(vec![call("1")]), assistant(vec![Block::text("b")])]),
            ["assistant [call00001]", "tool call00001 error: interrupted, outcome unknown", "assistant b"]
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
            ["user a\n\nb", "assistant [call00001]", "tool call00001 (no output)"]
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
    fn c7_26_a_signature_beside_a_call_goes_back_with_it_and_to_its_own_model_only() {
        let signed = |model: &str| Block::Thinking {
            thinking: String::new(),
            opaque: Some(Opaque {
                provider: "openai".into(),
                model: model.into(),
                json: json!({"field": "reasoning_content",
                             "calls": [{"google": {"thought_signature": "Ab+/=="}}, null]}),
            }),
        };
        let said = |model: &str| {
            let results = ["1", "2"].map(|id| Block::result(id, "done", false)).to_vec();
            sent(vec![assistant(vec![signed(model), call("1"), call("2")]), user(results)]).remove(0)
        };
        let own = said("m");
        assert_eq!(own["tool_calls"][0]["extra_content"], json!({"google": {"thought_signature": "Ab+/=="}}));
        assert_eq!(own["tool_calls"][1].get("extra_content"), None);
        assert_eq!(own.get("reasoning_content"), None);
        assert!(!said("other").to_string().contains("extra_content"));
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

    /// The rules of the format, as servers enforce them.
    fn check_rules(messages: &[Value]) -> Result<(), String> {
        let mut open: Vec<&str> = Vec::new();
        let mut ever: Vec<&str> = Vec::new();
        let mut before = "";
        for message in messages {
            let role = message["role"].as_str().ok_or("a role")?;
            if role == "tool" {
                let id = message["tool_call_id"].as_str().ok_or("an id")?;
                let at =
                    open.iter().position(|open| *open == id).ok_or(format!("result of nothing: {id}"))?;
                open.remove(at);
            } else if !open.is_empty() {
                return Err(format!("no result for {open:?}"));
            }
            let has_calls = message["tool_calls"].is_array();
            for call in message["tool_calls"].as_array().into_iter().flatten() {
                let id = call["id"].as_str().ok_or("an id")?;
                let name = call["function"]["name"].as_str().unwrap_or_default();
                let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
                if ever.contains(&id)
                    || name.is_empty()
                    || !serde_json::from_str::<Value>(arguments).is_ok_and(|a| a.is_object())
                {
                    return Err(format!("a bad call: {call}"));
                }
                open.push(id);
                ever.push(id);
            }
            let empty = message["content"].as_str().is_none_or(|text| text.trim().is_empty());
            if empty && !has_calls || role == "user" && before == "user" {
                return Err(format!("an empty or a second message: {message}"));
            }
            before = role;
        }
        if open.is_empty() { Ok(()) } else { Err(format!("no result for {open:?}")) }
    }

    proptest! {
        #[test]
        fn c7_01_c7_04_c7_31_the_rules_of_the_format_hold_for_any_history(messages in arbitrary::messages()) {
            let sent = sent(messages);
            prop_assert!(check_rules(&sent).is_ok(), "{:?}: {sent:#?}", check_rules(&sent));
        }
    }
}
