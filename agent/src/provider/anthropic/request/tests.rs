//! Tests of the request: the whole body, the rules of the format for any history, the marks of the cache.

use super::*;
use crate::provider::{
    Block, Input, Message, Opaque, Role,
    history::arbitrary,
    settings::{RemoteSettings, Speaks},
};
use ipc::{config::Adaptive, contract::soul::ToolSpec};
use proptest::prelude::*;

const ADAPTIVE: Thinking = Thinking::AsItLikes(Adaptive::Adaptive);

fn settings(thinking: Option<Thinking>) -> RemoteSettings {
    RemoteSettings { thinking, ..RemoteSettings::of_test(Speaks::Anthropic) }
}

fn tool(name: &str) -> ToolSpec {
    let input_schema = json!({"type": "object"});
    ToolSpec { name: name.into(), description: "Reads.".into(), input_schema, writes: false }
}

fn call(id: &str) -> Block {
    let input = json!({"x": id}).as_object().unwrap().clone();
    Block::ToolUse { id: id.into(), name: "t".into(), input: Input::Object(input) }
}

fn thought(provider: &str, model: &str, json: Value) -> Block {
    let opaque = Opaque { provider: provider.into(), model: model.into(), json };
    Block::Thinking { thinking: "hm ".into(), opaque: Some(opaque) }
}

fn says(content: Vec<Block>) -> Message {
    Message { role: Role::Assistant, content }
}

fn user(content: Vec<Block>) -> Message {
    Message { role: Role::User, content }
}

fn request(messages: Vec<Message>) -> ModelRequest {
    ModelRequest { said: 0, system: "You are.".into(), messages, tools: vec![tool("a"), tool("b")] }
}

fn sent(messages: Vec<Message>) -> Value {
    body(&request(messages), &settings(None))["messages"].take()
}

#[test]
fn c7_04_the_whole_body_of_a_turn_with_two_parallel_tools() {
    let messages = vec![
        Message::user("hi"),
        says(vec![
            thought("anthropic", "m", json!({"signature": "Eq0B"})),
            thought("anthropic", "m", json!({"data": "EmwK"})),
            Block::text("wait"),
            call("toolu_1"),
            call("toolu_2"),
        ]),
        user(vec![Block::result("toolu_2", "no", true)]),
        user(vec![Block::text("and now?"), Block::result("toolu_1", "done", false)]),
    ];
    let mark = json!({"type": "ephemeral"});
    assert_eq!(
        body(&request(messages), &settings(Some(Thinking::Tokens(2048)))),
        json!({
            "model": "m",
            "max_tokens": 10240,
            "stream": true,
            "thinking": {"type": "enabled", "budget_tokens": 2048},
            "system": [{"type": "text", "text": "You are.", "cache_control": mark}],
            "tools": [
                {"name": "a", "description": "Reads.", "input_schema": {"type": "object"}},
                {"name": "b", "description": "Reads.", "input_schema": {"type": "object"}, "cache_control": mark},
            ],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": mark}]},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "hm ", "signature": "Eq0B"},
                    {"type": "redacted_thinking", "data": "EmwK"},
                    {"type": "text", "text": "wait"},
                    {"type": "tool_use", "id": "call00001", "name": "t", "input": {"x": "toolu_1"}},
                    {"type": "tool_use", "id": "call00002", "name": "t", "input": {"x": "toolu_2"}},
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "call00001", "content": "done"},
                    {"type": "tool_result", "tool_use_id": "call00002", "content": "no", "is_error": true},
                    {"type": "text", "text": "and now?", "cache_control": mark},
                ]},
            ],
        })
    );
}

#[test]
fn what_is_set_and_what_is_not() {
    let plain = body(&request(vec![Message::user("hi")]), &settings(None));
    assert_eq!((&plain["max_tokens"], plain.get("thinking")), (&json!(8192), None));
    let set = RemoteSettings { max_tokens: Some(100), ..settings(Some(ADAPTIVE)) };
    let body = body(&ModelRequest { said: 0, system: " ".into(), messages: vec![], tools: vec![] }, &set);
    assert_eq!((&body["max_tokens"], &body["thinking"]), (&json!(100), &json!({"type": "adaptive"})));
    assert!(body.get("system").is_none() && body.get("tools").is_none(), "{body}");
    assert_eq!(body["messages"].as_array().unwrap().len(), 1, "it is asked something: {body}");
}

#[test]
fn c7_01_c7_02_c7_03_each_call_has_exactly_one_result_right_behind_it() {
    let blocks = |message: &Value| message["content"].as_array().unwrap().clone();
    let lost = sent(vec![says(vec![call("1")]), says(vec![Block::text("b")]), Message::user("c")]);
    let roles: Vec<_> = lost.as_array().unwrap().iter().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant", "user"]);
    assert_eq!(blocks(&lost[2])[0]["is_error"], true, "{lost}");

    let orphan = sent(vec![user(vec![Block::result("gone", "x", false), Block::text("a")])]);
    assert_eq!(blocks(&orphan[0]).len(), 1, "{orphan}");

    let twice = user(vec![Block::result("1", "first", false), Block::result("1", "second", true)]);
    let twice = sent(vec![Message::user("a"), says(vec![call("1"), call("1")]), twice]);
    assert_eq!((blocks(&twice[1]).len(), blocks(&twice[2]).len()), (1, 1), "{twice}");
    assert_eq!(blocks(&twice[2])[0]["content"], "first");
}

#[test]
fn c7_25_c7_31_thoughts_go_back_to_their_own_model_only() {
    let messages = vec![
        Message::user("a"),
        says(vec![
            thought("anthropic", "other", json!({"signature": "x"})),
            thought("openai", "m", json!({"field": "reasoning"})),
            Block::Thinking { thinking: "nobody's".into(), opaque: None },
            Block::Other(json!({"type": "thinking", "thinking": "hm", "signature": "of the original"})),
            thought("anthropic", "m", json!({"signature": "mine"})),
            thought("anthropic", "m", json!({"signature": ""})),
            Block::text("b"),
        ]),
        says(vec![thought("anthropic", "other", json!({"signature": "x"}))]),
        Message::user("c"),
    ];
    let sent = sent(messages);
    assert_eq!(
        sent[1]["content"],
        json!([{"type": "thinking", "thinking": "hm ", "signature": "mine"}, {"type": "text", "text": "b"}])
    );
    assert_eq!(sent.as_array().unwrap().len(), 3, "{sent}");
}

#[test]
fn c7_31_with_a_budget_a_turn_that_another_model_began_is_ended_without_thinking() {
    let check = |messages: Vec<Message>, thinking: Thinking, expected: bool| {
        let body = body(&request(messages), &settings(Some(thinking)));
        assert_eq!(body.get("thinking").is_some(), expected, "{body}");
        assert_eq!(body["max_tokens"], if expected && thinking != ADAPTIVE { 12_288 } else { 8192 });
    };
    let budget = Thinking::Tokens(4096);
    let foreign =
        vec![Message::user("a"), says(vec![call("1")]), user(vec![Block::result("1", "ok", false)])];
    let mine = says(vec![thought("anthropic", "m", json!({"signature": "s"})), call("1")]);
    let own = vec![Message::user("a"), mine, user(vec![Block::result("1", "ok", false)])];
    check(foreign.clone(), budget, false);
    check(foreign.clone(), ADAPTIVE, true);
    check(own, budget, true);
    check([foreign, vec![Message::user("and?")]].concat(), budget, true);
}

#[test]
fn a_history_with_calls_is_never_sent_without_tools() {
    let messages = vec![Message::user("a"), says(vec![call("1"), call("2")])];
    let request = ModelRequest { said: 0, system: String::new(), messages, tools: vec![] };
    let body = body(&request, &settings(None));
    assert_eq!(body["tool_choice"], json!({"type": "none"}));
    let names: Vec<_> =
        body["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["t"]);
}

#[test]
fn what_is_cached_stays_the_same_while_a_conversation_grows() {
    let mut messages = Vec::new();
    let mut before: Option<Vec<Value>> = None;
    for turn in 0..6 {
        messages.push(Message::user(format!("turn {turn}")));
        messages.push(says(vec![call("call_0_0")]));
        messages.push(user(vec![Block::result("call_0_0", "ok", false)]));
        let mut sent = sent(messages.clone());
        let marks = |message: &Value| message.to_string().matches("cache_control").count();
        assert_eq!(sent.as_array().unwrap().iter().map(marks).sum::<usize>(), 2, "{sent}");
        // without the marks, what was sent before is a prefix of what is sent now
        for block in
            sent.as_array_mut().unwrap().iter_mut().flat_map(|m| m["content"].as_array_mut().unwrap())
        {
            block.as_object_mut().unwrap().remove("cache_control");
        }
        let now = sent.as_array().unwrap().clone();
        if let Some(before) = &before {
            assert_eq!(now[..before.len()], before[..]);
        }
        before = Some(now);
        messages.push(says(vec![Block::text(format!("done {turn}"))]));
    }
}

/// The rules of the format, as the vendor enforces them.
fn check_rules(body: &Value) -> Result<(), String> {
    let marks = body.to_string().matches("\"cache_control\"").count();
    if marks > 4 {
        return Err(format!("{marks} marks"));
    }
    let messages = body["messages"].as_array().ok_or("messages")?;
    let mut before = "assistant";
    let mut open: Vec<String> = Vec::new();
    let mut ever: Vec<String> = Vec::new();
    for message in messages {
        let role = message["role"].as_str().ok_or("a role")?;
        let blocks =
            message["content"].as_array().filter(|blocks| !blocks.is_empty()).ok_or("empty content")?;
        if role == before {
            return Err(format!("two of {role}"));
        }
        before = role;
        let mut only_results = role == "user";
        for block in blocks {
            let text =
                |key: &str| block[key].as_str().map(str::to_owned).ok_or(format!("no {key} in {block}"));
            let filled = |key: &str| {
                text(key).and_then(|t| if t.trim().is_empty() { Err(format!("blank {key}")) } else { Ok(t) })
            };
            match (role, text("type")?.as_str()) {
                (_, "text") => {
                    filled("text")?;
                    only_results = false;
                }
                ("user", "tool_result") => {
                    let id = filled("tool_use_id")?;
                    filled("content")?;
                    let at = open.iter().position(|open| *open == id).ok_or("a result of nothing")?;
                    open.remove(at);
                    if !only_results {
                        return Err("a result behind words".into());
                    }
                }
                ("assistant", "tool_use") => {
                    let (id, name) = (filled("id")?, filled("name")?);
                    let plain = |text: &str| {
                        text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
                    };
                    if !plain(&id)
                        || !plain(&name)
                        || name.len() > 64
                        || ever.contains(&id)
                        || !block["input"].is_object()
                    {
                        return Err(format!("a bad call {block}"));
                    }
                    ever.push(id.clone());
                    open.push(id);
                }
                ("assistant", "thinking") => drop((text("thinking")?, filled("signature")?)),
                ("assistant", "redacted_thinking") => drop(filled("data")?),
                (role, kind) => return Err(format!("{kind} of {role}")),
            }
        }
        if role == "user" && !open.is_empty() {
            return Err(format!("no result for {open:?}"));
        }
    }
    if before != "user" {
        return Err("it does not end with the person".into());
    }
    if !ever.is_empty() && body.get("tools").is_none() {
        return Err("calls without tools".into());
    }
    Ok(())
}

proptest! {
    #[test]
    fn c7_01_c7_04_c7_29_c7_30_c7_31_the_rules_of_the_format_hold_for_any_history(
        messages in arbitrary::messages(),
        system in "(| |You are.)",
        has_tools in any::<bool>(),
        thinking in prop::sample::select(vec![None, Some(ADAPTIVE), Some(Thinking::Tokens(2048))]),
    ) {
        let tools = if has_tools { vec![tool("a")] } else { vec![] };
        let body = body(&ModelRequest { said: 0, system, messages, tools }, &settings(thinking));
        let checked = check_rules(&body);
        prop_assert!(checked.is_ok(), "{checked:?}: {body:#}");
    }
}
