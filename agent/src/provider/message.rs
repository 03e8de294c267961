//! The messages of a conversation, in the shape session files keep them in: the one of Anthropic's `MessageParam`.
//!
//! Reading is generous, because files of the original LISA and of later versions are read too: content may be a plain
//! string, a tool's result may be a list of blocks, and a block of an unknown kind is kept word for word.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    /// The person, or the runtime that brings the results of tools.
    User,
    /// The model.
    Assistant,
}

/// One message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said and done.
    #[serde(deserialize_with = "content")]
    pub content: Vec<Block>,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Block {
    /// Words.
    Text {
        /// The words.
        text: String,
    },
    /// What a model thought before it spoke.
    Thinking {
        /// The thought, as far as it is shown.
        thinking: String,
        /// What the provider it came from wants to see again.
        opaque: Option<Opaque>,
    },
    /// A tool is called.
    ToolUse {
        /// Names the call; its result carries the same id.
        id: String,
        /// Which tool.
        name: String,
        /// What it is given.
        input: Input,
    },
    /// What came of a call.
    ToolResult {
        /// The call's id.
        tool_use_id: String,
        /// What the model is told.
        content: String,
        /// Whether it is bad news.
        is_error: bool,
    },
    /// A block of a kind this version does not know, word for word.
    Other(Value),
}

/// What a tool is given.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Input {
    /// A JSON object, as it should be.
    Object(Map<String, Value>),
    /// Something else. It must never run: the loop answers such a call with an error result that says `why`, and never puts
    /// an empty object in its place (rows C7.5, C7.6).
    Unusable {
        /// What the model wrote, bounded.
        raw: String,
        /// What is wrong with it, as half a sentence: `it is not valid JSON (…)`.
        why: String,
    },
}

/// State of a provider that is kept word for word with its block and sent back to the same provider and model only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Opaque {
    /// Whose it is: `openai`.
    pub provider: String,
    /// Which model's.
    pub model: String,
    /// The state.
    pub json: Value,
}

impl Message {
    /// A message of the person, in words.
    pub(crate) fn user(text: impl Into<String>) -> Self {
        Self { role: Role::User, content: vec![Block::text(text)] }
    }

    /// The words in it, one block a line.
    pub(crate) fn text(&self) -> String {
        let texts: Vec<&str> = self.content.iter().filter_map(Block::as_text).collect();
        texts.join("\n")
    }
}

impl Block {
    /// A block of words.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// What came of the call `id`.
    pub(crate) fn result(id: impl Into<String>, content: impl Into<String>, is_error: bool) -> Self {
        Self::ToolResult { tool_use_id: id.into(), content: content.into(), is_error }
    }

    /// The words, where it is a block of words.
    pub(crate) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text } => Some(text),
            Self::Thinking { .. } | Self::ToolUse { .. } | Self::ToolResult { .. } | Self::Other(_) => None,
        }
    }
}

/// Content is a list of blocks, or a string that stands for one block of words.
fn content<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Block>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::String(text) if text.is_empty() => Vec::new(),
        Value::String(text) => vec![Block::text(text)],
        Value::Array(blocks) => blocks.into_iter().map(Block::from_value).collect(),
        Value::Null => Vec::new(),
        other => {
            return Err(serde::de::Error::custom(format!("`content` is neither text nor blocks: {other}")));
        }
    })
}

impl Block {
    /// Reads a block; what does not have the shape of a known kind is kept as [`Block::Other`].
    fn from_value(value: Value) -> Self {
        Self::known(&value).unwrap_or(Self::Other(value))
    }

    fn known(value: &Value) -> Option<Self> {
        let text_of = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        match value.get("type")?.as_str()? {
            "text" => Some(Self::text(text_of("text")?)),
            "thinking" => {
                // A signature of another provider lives in fields of its own, which only `Other` keeps.
                let known = |key: &String| matches!(key.as_str(), "type" | "thinking" | "opaque");
                if !value.as_object()?.keys().all(known) {
                    return None;
                }
                let opaque = match value.get("opaque") {
                    None | Some(Value::Null) => None,
                    Some(opaque) => Some(Opaque::deserialize(opaque).ok()?),
                };
                Some(Self::Thinking { thinking: text_of("thinking")?, opaque })
            }
            "tool_use" => {
                let input = match (value.get("unusable"), value.get("input")?) {
                    (Some(unusable), _) => Input::Unusable {
                        raw: unusable.get("raw").and_then(Value::as_str).unwrap_or_default().to_owned(),
                        why: unusable.get("why").and_then(Value::as_str).unwrap_or_default().to_owned(),
                    },
                    (None, Value::Object(input)) => Input::Object(input.clone()),
                    (None, other) => {
                        Input::Unusable { raw: other.to_string(), why: "it is not a JSON object".to_owned() }
                    }
                };
                Some(Self::ToolUse { id: text_of("id")?, name: text_of("name")?, input })
            }
            "tool_result" => Some(Self::ToolResult {
                tool_use_id: text_of("tool_use_id")?,
                content: result_text(value.get("content")),
                is_error: value.get("is_error").and_then(Value::as_bool).unwrap_or(false),
            }),
            _ => None,
        }
    }

    fn to_value(&self) -> Value {
        match self {
            Self::Text { text } => json!({"type": "text", "text": text}),
            Self::Thinking { thinking, opaque: None } => json!({"type": "thinking", "thinking": thinking}),
            Self::Thinking { thinking, opaque: Some(opaque) } => {
                json!({"type": "thinking", "thinking": thinking, "opaque": opaque})
            }
            Self::ToolUse { id, name, input: Input::Object(input) } => {
                json!({"type": "tool_use", "id": id, "name": name, "input": input})
            }
            // `input` stays an object for other readers of the file; what was really written stands beside it.
            Self::ToolUse { id, name, input: Input::Unusable { raw, why } } => {
                json!({"type": "tool_use", "id": id, "name": name, "input": {}, "unusable": {"raw": raw, "why": why}})
            }
            Self::ToolResult { tool_use_id, content, is_error: false } => {
                json!({"type": "tool_result", "tool_use_id": tool_use_id, "content": content})
            }
            Self::ToolResult { tool_use_id, content, is_error: true } => {
                json!({"type": "tool_result", "tool_use_id": tool_use_id, "content": content, "is_error": true})
            }
            Self::Other(value) => value.clone(),
        }
    }
}

/// A result is text, or blocks of which the words are kept and the rest is named.
fn result_text(content: Option<&Value>) -> String {
    match content {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(blocks)) => {
            let parts = blocks.iter().map(|block| match block.get("text").and_then(Value::as_str) {
                Some(text) => text.to_owned(),
                None => format!("[{}]", block.get("type").and_then(Value::as_str).unwrap_or("unknown block")),
            });
            parts.collect::<Vec<_>>().join("\n")
        }
        Some(other) => other.to_string(),
    }
}

impl Serialize for Block {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_value().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Block {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from_value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: Value) -> Message {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn what_is_written_reads_back_the_same() {
        let object = json!({"field": "identity"}).as_object().unwrap().clone();
        let opaque = Opaque {
            provider: "openai".into(),
            model: "m".into(),
            json: json!({"field": "reasoning_content"}),
        };
        let check = |block: Block, json: Value| {
            assert_eq!(serde_json::to_value(&block).unwrap(), json);
            assert_eq!(serde_json::from_value::<Block>(json).unwrap(), block);
        };
        check(Block::text("你好 \u{1f30d}"), json!({"type": "text", "text": "你好 \u{1f30d}"}));
        check(
            Block::Thinking { thinking: "hm".into(), opaque: None },
            json!({"type": "thinking", "thinking": "hm"}),
        );
        check(
            Block::Thinking { thinking: "hm".into(), opaque: Some(opaque) },
            json!({"type": "thinking", "thinking": "hm",
                   "opaque": {"provider": "openai", "model": "m", "json": {"field": "reasoning_content"}}}),
        );
        check(
            Block::ToolUse { id: "a".into(), name: "soul_patch".into(), input: Input::Object(object) },
            json!({"type": "tool_use", "id": "a", "name": "soul_patch", "input": {"field": "identity"}}),
        );
        check(
            Block::ToolUse {
                id: "a".into(),
                name: "soul_patch".into(),
                input: Input::Unusable { raw: "{\"fie".into(), why: "it is cut".into() },
            },
            json!({"type": "tool_use", "id": "a", "name": "soul_patch", "input": {},
                   "unusable": {"raw": "{\"fie", "why": "it is cut"}}),
        );
        check(
            Block::result("a", "done", false),
            json!({"type": "tool_result", "tool_use_id": "a", "content": "done"}),
        );
        check(
            Block::result("a", "refused", true),
            json!({"type": "tool_result", "tool_use_id": "a", "content": "refused", "is_error": true}),
        );
    }

    #[test]
    fn files_of_the_original_are_read() {
        assert_eq!(read(json!({"role": "user", "content": "hello"})), Message::user("hello"));
        assert_eq!(read(json!({"role": "assistant", "content": ""})).content, vec![]);
        let result = json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1",
            "content": [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]}]});
        assert_eq!(read(result).content, vec![Block::result("toolu_1", "a\n[image]\nb", false)]);
    }

    #[test]
    fn what_is_unknown_is_kept_word_for_word() {
        for block in [
            json!({"type": "redacted_thinking", "data": "EmwK"}),
            json!({"type": "thinking", "thinking": "hm", "signature": "Eq0B"}),
            json!({"type": "server_tool_use", "id": "x", "name": "web_search", "input": {}}),
            json!({"no": "type"}),
            json!("a bare string"),
        ] {
            let read: Block = serde_json::from_value(block.clone()).unwrap();
            assert_eq!(read, Block::Other(block.clone()));
            assert_eq!(serde_json::to_value(&read).unwrap(), block);
        }
    }

    #[test]
    fn an_input_that_is_no_object_is_not_made_one() {
        let block: Block =
            serde_json::from_value(json!({"type": "tool_use", "id": "a", "name": "t", "input": "{}"}))
                .unwrap();
        assert!(matches!(block, Block::ToolUse { input: Input::Unusable { .. }, .. }));
    }
}
