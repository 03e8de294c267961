//! From a conversation to the JSON of Ollama's `/api/chat`: pure.

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
    });
    let tools: Vec<Value> = request.tools.iter().map(|tool| json!({
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": offered(&tool.input_schema)},
    })).collect();
    if !tools.is_empty() {
        body["tools"] = Value::Array(tools);
    }
    if let Some(context) = settings.context {
        body["options"]["num_ctx"] = json!(context);
    }
    if let Some(max) = settings.max_tokens {
        body["options"]["num_predict"] = json!(max);
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

/// An assistant's message, and a message of its own for the result of each call. Calls have no ids here: results stand in the
/// order of their calls and name the tool.
fn assistant(parts: &[Part<'_>]) -> Vec<Value> {
    let mut texts = Vec::new();
    let mut thoughts = String::new();
    let mut calls = Vec::new();
    let mut results = Vec::new();
    for part in parts {
        match part {
            Part::Words(words) => texts.push(*words),
            Part::Thought { thinking, .. } => thoughts.push_str(thinking),
            Part::Call(call) => {
                calls.push(json!({"function": {"name": call.name, "arguments": call.input.as_ref()}}));
                results.push(json!({"role": "tool", "tool_name": call.name, "content": call.told()}));
            }
        }
    }
    let mut message = json!({"role": "assistant", "content": texts.join("\n\n")});
    if !thoughts.is_empty() {
        message["thinking"] = Value::String(thoughts);
    }
    if !calls.is_empty() {
        message["tool_calls"] = Value::Array(calls);
    }
    std::iter::once(message).chain(results).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::{
        Block, Input, Message, Role,
        history::arbitrary,
        settings::{RemoteSettings, Speaks},
    };
    use ipc::contract::soul::ToolSpec;
    use proptest::prelude::*;

    fn settings() -> RemoteSettings {
        RemoteSettings {
            context: Some(16_384),
            max_tokens: Some(900),
            ..RemoteSettings::of_test(Speaks::Ollama)
        }
    }

    #[test]
    fn c7_32_the_whole_body_with_the_size_of_the_context() {
        let input = json!({"field": "name"}).as_object().unwrap().clone();
        let call = Block::ToolUse { id: "x".into(), name: "soul_read".into(), input: Input::Object(input) };
        let request = ModelRequest {
            said: 0,
            system: "You are.".into(),
            messages: vec![
                Message::user("hi"),
                Message { role: Role::Assistant, content: vec![Block::text("wait"), call] },
                Message {
                    role: Role::User,
                    content: vec![Block::result("x", "no", true), Block::text("and?")],
                },
            ],
            tools: vec![ToolSpec {
                name: "soul_read".into(),
                description: "Reads.".into(),
                input_schema: json!({"type": "object"}),
                writes: false,
            }],
        };
        assert_eq!(
            body(&request, &settings()),
            json!({
                "model": "m",
                "messages": [
                    {"role": "system", "content": "You are."},
                    {"role": "user", "content": "hi"},
                    {"role": "assistant", "content": "wait",
                     "tool_calls": [{"function": {"name": "soul_read", "arguments": {"field": "name"}}}]},
                    {"role": "tool", "tool_name": "soul_read", "content": "error: no"},
                    {"role": "user", "content": "and?"},
                ],
                "stream": true,
                "tools": [{"type": "function", "function": {"name": "soul_read", "description": "Reads.",
                           "parameters": {"type": "object"}}}],
                "options": {"num_ctx": 16384, "num_predict": 900},
            })
        );
    }

    proptest! {
        #[test]
        fn c7_01_c7_04_each_call_has_its_result_behind_it_in_any_history(messages in arbitrary::messages()) {
            let request = ModelRequest { said: 0, system: String::new(), messages, tools: vec![] };
            let body = body(&request, &settings());
            let mut open: Vec<String> = Vec::new();
            for message in body["messages"].as_array().unwrap() {
                let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
                if message["role"] == "tool" {
                    let first = open.remove(0);
                    prop_assert_eq!(message["tool_name"].as_str(), Some(first.as_str()));
                } else {
                    prop_assert!(open.is_empty(), "{open:?} before {message}");
                    prop_assert!(!message["content"].as_str().unwrap().trim().is_empty() || !calls.is_empty());
                }
                open.extend(calls.iter().map(|call| call["function"]["name"].as_str().unwrap().to_owned()));
            }
            prop_assert!(open.is_empty());
        }
    }
}
