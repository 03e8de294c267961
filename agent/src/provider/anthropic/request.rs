//! From a conversation to the JSON of a Messages request: pure.
//!
//! ```text
//!  tools ▪ system ▪ user  assistant  user ▪ assistant  user ▪        ▪ a mark: everything up to here may be cached
//! ```
//!
//! The prefix is the same from one request to the next while a conversation grows, so that what was read once is not paid for
//! twice: nothing in it depends on the clock or on what comes later, and ids are counted from the beginning.

use ipc::config::Thinking;
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

/// The longest answer where nothing else is set; the protocol wants a number, and models of 2024 and later take this one.
const ANSWER_TOKENS_MAX: u32 = 8192;

/// How many turns of the person are marked: the newest, and the one before it, which the request before had marked.
const MARKED_TURNS: usize = 2;

/// What stands where the protocol needs the person to speak and the history has nothing.
const OPENING: &str = "(the beginning of this conversation is not shown)";
const GO_ON: &str = "(go on)";

/// The body of the request.
pub(super) fn body(request: &ModelRequest, settings: &RemoteSettings) -> Value {
    let turns = history::turns(&request.messages, PROVIDER, &settings.name);
    let thinking = settings.thinking.filter(|thinking| may_think(*thinking, &turns));
    let budget = match thinking {
        Some(Thinking::Tokens(tokens)) => tokens,
        Some(Thinking::AsItLikes(_)) | None => 0,
    };
    let mut body = json!({
        "model": settings.name,
        "max_tokens": settings.max_tokens.unwrap_or(ANSWER_TOKENS_MAX.saturating_add(budget)),
        "stream": true,
        "messages": messages(&turns),
    });
    match thinking {
        Some(Thinking::AsItLikes(_)) => body["thinking"] = json!({"type": "adaptive"}),
        Some(Thinking::Tokens(tokens)) => {
            body["thinking"] = json!({"type": "enabled", "budget_tokens": tokens});
        }
        None => {}
    }
    if !request.system.trim().is_empty() {
        body["system"] = json!([marked(json!({"type": "text", "text": request.system}))]);
    }
    let mut tools: Vec<Value> = request
        .tools
        .iter()
        .map(|tool| json!({"name": tool.name, "description": tool.description, "input_schema": offered(&tool.input_schema)}))
        .collect();
    if tools.is_empty() {
        // A history with calls is refused where no tool is defined, so those called are, and none may be used.
        tools = called(&turns)
            .into_iter()
            .map(|name| json!({"name": name, "input_schema": {"type": "object"}}))
            .collect();
        if !tools.is_empty() {
            body["tool_choice"] = json!({"type": "none"});
        }
    }
    if let Some(last) = tools.pop() {
        tools.push(marked(last));
        body["tools"] = Value::Array(tools);
    }
    body
}

/// Whether the model may be asked to think: with a budget, a turn whose calls began without a thought of its own (another
/// model's, before a switch) cannot go on with one.
fn may_think(thinking: Thinking, turns: &[Turn<'_>]) -> bool {
    if matches!(thinking, Thinking::AsItLikes(_)) {
        return true;
    }
    turns
        .iter()
        .rev()
        .map_while(|turn| match turn {
            Turn::Assistant(parts) => Some(parts),
            Turn::User(_) => None,
        })
        .all(|parts| matches!(parts.first(), Some(Part::Thought { .. })))
}

fn called(turns: &[Turn<'_>]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for turn in turns {
        let Turn::Assistant(parts) = turn else { continue };
        for part in parts {
            let Part::Call(call) = part else { continue };
            if !names.contains(&call.name) {
                names.push(call.name.clone());
            }
        }
    }
    names
}

/// The messages: turns that alternate and begin and end with the person, results first in the message behind their calls.
fn messages(turns: &[Turn<'_>]) -> Vec<Value> {
    let mut sides: Vec<(&str, Vec<Value>)> = Vec::new();
    let mut say = |role: &'static str, blocks: Vec<Value>| match sides.last_mut() {
        _ if blocks.is_empty() => {}
        Some((last, before)) if *last == role => before.extend(blocks),
        Some(_) | None => sides.push((role, blocks)),
    };
    let words = |text: &str| json!({"type": "text", "text": text});
    if !matches!(turns.first(), Some(Turn::User(_))) {
        say("user", vec![words(OPENING)]);
    }
    for turn in turns {
        match turn {
            Turn::User(texts) => say("user", texts.iter().map(|text| words(text)).collect()),
            Turn::Assistant(parts) => {
                say("assistant", parts.iter().filter_map(part).collect());
                say("user", parts.iter().filter_map(result).collect());
            }
        }
    }
    // An answer that the model would only have to continue is refused by newer models.
    let ends_with_the_person = match turns.last() {
        Some(Turn::User(_)) => true,
        Some(Turn::Assistant(parts)) => parts.iter().any(|part| matches!(part, Part::Call(_))),
        None => false,
    };
    if !ends_with_the_person {
        say("user", vec![words(GO_ON)]);
    }
    for (_, blocks) in sides.iter_mut().rev().filter(|(role, _)| *role == "user").take(MARKED_TURNS) {
        if let Some(last) = blocks.last_mut() {
            *last = marked(last.take());
        }
    }
    sides.into_iter().map(|(role, content)| json!({"role": role, "content": content})).collect()
}

fn part(part: &Part<'_>) -> Option<Value> {
    match part {
        Part::Words(text) => Some(json!({"type": "text", "text": text})),
        Part::Thought { thinking, state } => {
            let state_of = |key: &str| state.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
            match (state_of("signature"), state_of("data")) {
                (Some(signature), _) => {
                    Some(json!({"type": "thinking", "thinking": thinking, "signature": signature}))
                }
                (None, Some(data)) => Some(json!({"type": "redacted_thinking", "data": data})),
                // Without its signature a thought is refused.
                (None, None) => None,
            }
        }
        Part::Call(call) => {
            Some(json!({"type": "tool_use", "id": call.id, "name": call.name, "input": call.input.as_ref()}))
        }
    }
}

fn result(part: &Part<'_>) -> Option<Value> {
    let Part::Call(call) = part else { return None };
    let mut result = json!({"type": "tool_result", "tool_use_id": call.id, "content": call.result});
    if call.is_error {
        result["is_error"] = json!(true);
    }
    Some(result)
}

/// The block with the mark that everything up to and with it may be cached.
fn marked(mut block: Value) -> Value {
    block["cache_control"] = json!({"type": "ephemeral"});
    block
}

#[cfg(test)]
mod tests;
