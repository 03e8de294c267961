//! A conversation as any provider can be sent it: pure, and the last place where a faulty history is mended.
//!
//! ```text
//!  messages ──▶ neighbours of one role joined ──▶ each call with exactly one result ──▶ Turn, Turn, … ──request──▶ JSON
//! ```
//!
//! One orphan would make the provider refuse every later turn (rows C7.1–C7.4), so results without a call and second results
//! are dropped here, and a call without a result gets one that says so. Nothing is ever run again for it. What another
//! provider or model keeps in its blocks stays behind, and calls get ids that every server accepts (row C7.31), so that a
//! conversation can go on with another model at any point.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{Block, Input, Message, Opaque, Role};

/// What a model is told of a call whose result was lost.
const INTERRUPTED: &str = "interrupted, outcome unknown";

/// The longest tool name there may be, by OpenAI's documentation, which is the strictest.
const NAME_CHARS_MAX: usize = 64;

/// What one side says and does before the other does. Two of the same role follow each other only where calls stand between.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Turn<'a> {
    /// What the person says; never empty, no text of it blank.
    User(Vec<&'a str>),
    /// What the model says and does; never empty, never thoughts alone. Its calls carry their results.
    Assistant(Vec<Part<'a>>),
}

/// A part of what a model says and does.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Part<'a> {
    /// Words, not blank.
    Words(&'a str),
    /// A thought of the very model that is asked, with the state it came with.
    Thought { thinking: &'a str, state: &'a Value },
    /// A call, and what came of it.
    Call(Call<'a>),
}

/// A call, and what came of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call<'a> {
    /// Nine letters and digits, which every server seen accepts; unique in the whole conversation.
    pub id: String,
    /// As every server accepts it.
    pub name: String,
    /// What the tool was given. Arguments that were unusable are not sent back, since some servers then refuse the conversation
    /// for ever (row C7.34): the result says what was wrong.
    pub input: Cow<'a, Map<String, Value>>,
    /// What the model is told; never blank.
    pub result: &'a str,
    /// Whether it is bad news.
    pub is_error: bool,
}

impl Call<'_> {
    /// What the model is told, where the format has no word for bad news.
    pub(super) fn told(&self) -> Cow<'_, str> {
        if self.is_error { Cow::Owned(format!("error: {}", self.result)) } else { Cow::Borrowed(self.result) }
    }
}

/// The conversation for the model `model` of `provider`.
pub(super) fn turns<'a>(messages: &'a [Message], provider: &str, model: &str) -> Vec<Turn<'a>> {
    let joined = joined(messages);
    let mut turns: Vec<Turn<'a>> = Vec::new();
    let mut calls = 0;
    for (at, (role, blocks)) in joined.iter().enumerate() {
        match role {
            Role::User => {
                let words: Vec<&str> = blocks.iter().filter_map(|block| words(block)).collect();
                match turns.last_mut() {
                    _ if words.is_empty() => {}
                    Some(Turn::User(before)) => before.extend(words),
                    Some(Turn::Assistant(_)) | None => turns.push(Turn::User(words)),
                }
            }
            Role::Assistant => {
                // The results stand in the next turn, all of them, before an orphan is looked for (row C7.4).
                let answer = joined.get(at + 1).map(|(_, blocks)| blocks.as_slice()).unwrap_or_default();
                let parts = parts(blocks, answer, (provider, model), &mut calls);
                match turns.last_mut() {
                    _ if parts.iter().all(|part| matches!(part, Part::Thought { .. })) => {}
                    Some(Turn::Assistant(before))
                        if !before.iter().any(|part| matches!(part, Part::Call(_))) =>
                    {
                        before.extend(parts);
                    }
                    Some(_) | None => turns.push(Turn::Assistant(parts)),
                }
            }
        }
    }
    turns
}

/// Messages with neighbours of one role made one, since many servers insist on turns. A call ends its message all the same:
/// what the assistant says next belongs behind the result, even one that is missing.
fn joined(messages: &[Message]) -> Vec<(Role, Vec<&Block>)> {
    let mut joined: Vec<(Role, Vec<&Block>)> = Vec::new();
    for message in messages {
        let calls = |blocks: &[&Block]| blocks.iter().any(|block| matches!(block, Block::ToolUse { .. }));
        match joined.last_mut() {
            Some((role, blocks)) if *role == message.role && !(*role == Role::Assistant && calls(blocks)) => {
                blocks.extend(&message.content);
            }
            Some(_) | None => joined.push((message.role, message.content.iter().collect())),
        }
    }
    joined
}

/// Words that are not blank: empty text is refused, and once it is in the history it is refused for ever (row C7.29).
fn words(block: &Block) -> Option<&str> {
    block.as_text().filter(|text| !text.trim().is_empty())
}

fn parts<'a>(
    blocks: &[&'a Block],
    answer: &[&'a Block],
    (provider, model): (&str, &str),
    calls: &mut usize,
) -> Vec<Part<'a>> {
    let mut seen: Vec<&str> = Vec::new();
    let mut parts = Vec::new();
    for block in blocks {
        match block {
            Block::Text { .. } => parts.extend(words(block).map(Part::Words)),
            // Thinking goes back word for word to the model it came from (rows C7.24, C7.25) and to no other (row C7.31).
            Block::Thinking { thinking, opaque: Some(Opaque { provider: by, model: of, json }) }
                if by == provider && of == model =>
            {
                parts.push(Part::Thought { thinking, state: json });
            }
            Block::ToolUse { id, name, input } if !seen.contains(&id.as_str()) => {
                seen.push(id);
                *calls += 1;
                let (result, is_error) = result(answer, id);
                let input = match input {
                    Input::Object(input) => Cow::Borrowed(input),
                    Input::Unusable { .. } => Cow::Owned(Map::new()),
                };
                let id = format!("call{calls:05}");
                parts.push(Part::Call(Call { id, name: tool_name(name), input, result, is_error }));
            }
            Block::Thinking { .. } | Block::ToolUse { .. } | Block::ToolResult { .. } | Block::Other(_) => {}
        }
    }
    parts
}

/// The first result of the call `id`, and whether it is bad news. No server is sure to take a blank one.
fn result<'a>(answer: &[&'a Block], id: &str) -> (&'a str, bool) {
    let found = answer.iter().find_map(|block| match block {
        Block::ToolResult { tool_use_id, content, is_error } if tool_use_id == id => {
            Some((content.as_str(), *is_error))
        }
        _ => None,
    });
    match found {
        None => (INTERRUPTED, true),
        Some((content, false)) if content.trim().is_empty() => ("(no output)", false),
        Some((content, true)) if content.trim().is_empty() => ("it failed and said nothing", true),
        Some(found) => found,
    }
}

/// A name as every server accepts it; a model may have made one up that none would take back.
fn tool_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    let name: String = name.chars().take(NAME_CHARS_MAX).map(plain).collect();
    if name.is_empty() { "unnamed".to_owned() } else { name }
}

#[cfg(test)]
pub(super) mod arbitrary;
