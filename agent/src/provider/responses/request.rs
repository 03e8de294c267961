//! From a conversation to the JSON of a Responses request: pure.
//!
//! Items carry no ids of the vendor's, who would look for what it was told not to store (row C7.28). A thought goes back as the
//! whole item it came as, encrypted, and only in front of something that was said or done after it.

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
        "input": input(request, &settings.name),
        "stream": true,
        "store": false,
    });
    if !request.system.trim().is_empty() {
        body["instructions"] = json!(request.system);
    }
    if let Some(max) = settings.max_tokens {
        body["max_output_tokens"] = json!(max);
    }
    // Models that do not think refuse both.
    if settings.thinking.is_some() {
        body["reasoning"] = json!({"summary": "auto"});
        body["include"] = json!(["reasoning.encrypted_content"]);
    }
    let tool = |tool: &ipc::contract::soul::ToolSpec| {
        json!({"type": "function", "name": tool.name, "description": tool.description,
               "parameters": offered(&tool.input_schema), "strict": false})
    };
    let tools: Vec<Value> = request.tools.iter().map(tool).collect();
    if !tools.is_empty() {
        body["tools"] = Value::Array(tools);
    }
    body
}

fn input(request: &ModelRequest, model: &str) -> Vec<Value> {
    let mut items = Vec::new();
    for turn in history::turns(&request.messages, PROVIDER, model) {
        match turn {
            Turn::User(words) => {
                let words = words.iter().map(|text| json!({"type": "input_text", "text": text}));
                items.push(json!({"type": "message", "role": "user", "content": words.collect::<Vec<_>>()}));
            }
            Turn::Assistant(parts) => {
                // A thought at the end belongs to something that was cut off.
                let spoken = parts.iter().rposition(|part| !matches!(part, Part::Thought { .. }));
                items.extend(parts.iter().take(spoken.map_or(0, |last| last + 1)).filter_map(item));
                items.extend(parts.iter().filter_map(output));
            }
        }
    }
    items
}

fn item(part: &Part<'_>) -> Option<Value> {
    match part {
        Part::Words(text) => {
            let content = json!([{"type": "output_text", "text": text}]);
            Some(json!({"type": "message", "role": "assistant", "content": content}))
        }
        Part::Thought { state, .. } => state.get("item").filter(|item| item.is_object()).cloned(),
        Part::Call(call) => {
            let arguments = Value::Object(call.input.as_ref().clone()).to_string();
            Some(
                json!({"type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments}),
            )
        }
    }
}

fn output(part: &Part<'_>) -> Option<Value> {
    let Part::Call(call) = part else { return None };
    Some(json!({"type": "function_call_output", "call_id": call.id, "output": call.told()}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::{
        Block, Input, Message, Opaque, Role,
        history::arbitrary,
        settings::{RemoteSettings, Speaks},
    };
    use ipc::{
        config::{Adaptive, Thinking},
        contract::soul::ToolSpec,
    };
    use proptest::prelude::*;

    fn thought(json: Value) -> Block {
        let opaque = Opaque { provider: PROVIDER.into(), model: "m".into(), json };
        Block::Thinking { thinking: "hm".into(), opaque: Some(opaque) }
    }

    fn call(id: &str) -> Block {
        let input = json!({"x": 1}).as_object().unwrap().clone();
        Block::ToolUse { id: id.into(), name: "t".into(), input: Input::Object(input) }
    }

    #[test]
    fn c7_28_the_whole_body_with_thoughts_as_they_came() {
        let reasoning =
            json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"});
        let said = vec![thought(json!({"item": reasoning})), Block::text("wait"), call("x"), call("y")];
        let request = ModelRequest {
            said: 0,
            system: "You are.".into(),
            messages: vec![
                Message::user("hi"),
                Message { role: Role::Assistant, content: said },
                Message {
                    role: Role::User,
                    content: vec![Block::result("y", "no", true), Block::result("x", "ok", false)],
                },
            ],
            tools: vec![ToolSpec {
                name: "t".into(),
                description: "Does.".into(),
                input_schema: json!({"type": "object"}),
                writes: false,
            }],
        };
        let thinking = Some(Thinking::AsItLikes(Adaptive::Adaptive));
        let settings =
            RemoteSettings { thinking, max_tokens: Some(900), ..RemoteSettings::of_test(Speaks::Responses) };
        assert_eq!(
            body(&request, &settings),
            json!({
                "model": "m",
                "input": [
                    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
                    reasoning,
                    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "wait"}]},
                    {"type": "function_call", "call_id": "call00001", "name": "t", "arguments": "{\"x\":1}"},
                    {"type": "function_call", "call_id": "call00002", "name": "t", "arguments": "{\"x\":1}"},
                    {"type": "function_call_output", "call_id": "call00001", "output": "ok"},
                    {"type": "function_call_output", "call_id": "call00002", "output": "error: no"},
                ],
                "stream": true,
                "store": false,
                "instructions": "You are.",
                "max_output_tokens": 900,
                "reasoning": {"summary": "auto"},
                "include": ["reasoning.encrypted_content"],
                "tools": [{"type": "function", "name": "t", "description": "Does.", "parameters": {"type": "object"}, "strict": false}],
            })
        );
        let plain = body(&request, &RemoteSettings::of_test(Speaks::Responses));
        assert!(plain.get("include").is_none() && plain.get("reasoning").is_none(), "{plain}");
    }

    #[test]
    fn c7_28_a_thought_without_what_followed_it_stays_behind() {
        let reasoning = thought(json!({"item": {"type": "reasoning", "id": "rs_1"}}));
        let content = vec![Block::text("a"), reasoning];
        let messages = vec![Message { role: Role::Assistant, content }];
        let request = ModelRequest { said: 0, system: String::new(), messages, tools: vec![] };
        let input = body(&request, &RemoteSettings::of_test(Speaks::Responses))["input"].take();
        assert_eq!(input.as_array().unwrap().len(), 1, "{input}");
    }

    proptest! {
        #[test]
        fn c7_01_c7_04_c7_28_the_rules_of_the_format_hold_for_any_history(messages in arbitrary::messages()) {
            let request = ModelRequest { said: 0, system: String::new(), messages, tools: vec![] };
            let body = body(&request, &RemoteSettings::of_test(Speaks::Responses));
            let mut open: Vec<String> = Vec::new();
            let mut ever: Vec<String> = Vec::new();
            let mut thought = false;
            for item in body["input"].as_array().unwrap() {
                let id = item["call_id"].as_str().unwrap_or_default().to_owned();
                match item["type"].as_str().unwrap() {
                    "message" => {
                        prop_assert!(open.is_empty() || item["role"] == "assistant", "{body:#}");
                        prop_assert!(!item["content"][0]["text"].as_str().unwrap().trim().is_empty());
                    }
                    "function_call" => {
                        prop_assert!(!ever.contains(&id) && !id.is_empty() && id.len() <= 64);
                        ever.push(id.clone());
                        open.push(id);
                    }
                    "function_call_output" => {
                        prop_assert_eq!(open.first(), Some(&id));
                        open.remove(0);
                    }
                    kind => prop_assert_eq!(kind, "reasoning"),
                }
                prop_assert!(!thought || item["type"] != "function_call_output", "{body:#}");
                thought = item["type"] == "reasoning";
            }
            prop_assert!(open.is_empty() && !thought, "{body:#}");
        }
    }
}
