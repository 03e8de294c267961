//! What a session's file says about the looking back on it: how far it went, and one that was begun and not finished.
//!
//! ```text
//!  {"type":"reflecting", ts, reflection, request, from, upTo}         one begins; the session it is done in
//!  {"type":"reflection", ts, summary, upTo, operations, …}            it is over: nothing up to there is looked at again
//! ```
//!
//! The original writes `reflection` with a summary alone, and passes over the rest of ours; there it is about everything
//! before it. What cannot be read in such a line is taken as *everything was looked at* (SW5): to look back twice would
//! write twice.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One that begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Begun {
    /// When.
    pub(crate) ts: Timestamp,
    /// The session it is done in.
    pub(crate) reflection: String,
    /// The request of its turn, so that every life asks the soul for the same calls.
    pub(crate) request: String,
    /// How many messages were looked at before.
    pub(crate) from: usize,
    /// How many there are now.
    pub(crate) up_to: usize,
}

/// One that is over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "Map<String, Value>", rename_all = "camelCase")]
pub(crate) struct Record {
    /// When; as the line says it, in lines of others.
    pub(crate) ts: String,
    /// What happened, and what was changed, in her words.
    pub(crate) summary: String,
    /// How many messages are looked at with it; nothing stands for all before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) up_to: Option<usize>,
    /// How many changes it made, the journal apart.
    pub(crate) operations: usize,
    /// Whether it changed nothing although there was much to think about.
    pub(crate) under_reflected: bool,
    /// The session it was done in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reflection: Option<String>,
    /// What went wrong, where something did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

impl From<Map<String, Value>> for Record {
    fn from(line: Map<String, Value>) -> Self {
        let text = |key: &str| line.get(key).and_then(Value::as_str).map(str::to_owned);
        let number = |key: &str| line.get(key).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
        Self {
            ts: text("ts").unwrap_or_default(),
            summary: text("summary").unwrap_or_default(),
            up_to: number("upTo"),
            operations: number("operations").unwrap_or_default(),
            under_reflected: line.get("underReflected").and_then(Value::as_bool).unwrap_or_default(),
            reflection: text("reflection"),
            error: text("error"),
        }
    }
}

/// How far the looking back on a session went.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Watermark {
    /// How many of its messages were looked at.
    pub(crate) up_to: usize,
    /// The one that was begun and is not over.
    pub(crate) unfinished: Option<Begun>,
}

impl Watermark {
    /// One begins.
    pub(super) fn begin(&mut self, begun: Begun) {
        self.unfinished = Some(begun);
    }

    /// One is over, where there are so many messages.
    pub(super) fn end(&mut self, record: &Record, messages: usize) {
        self.up_to = record.up_to.unwrap_or(messages).min(messages);
        self.unfinished = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn sw5_a_line_that_cannot_be_read_counts_everything_as_looked_at() {
        let check = |line: Value, messages: usize, up_to: usize| {
            let record: Record = serde_json::from_value(line.clone()).unwrap();
            let mut watermark = Watermark::default();
            watermark.end(&record, messages);
            assert_eq!(watermark.up_to, up_to, "{line}");
        };
        check(json!({"ts": "2026-11-30T00:00:00Z", "summary": "x", "upTo": 3}), 8, 3);
        // the original's line, and lines that were damaged
        check(json!({"ts": "2026-11-30T00:00:00Z", "summary": "x"}), 8, 8);
        check(json!({"ts": 1, "summary": null, "upTo": "three", "operations": -1}), 8, 8);
        check(json!({"upTo": 99}), 8, 8);
        check(json!({}), 8, 8);
    }

    #[test]
    fn the_lines_are_pinned() {
        let record = Record {
            ts: "2026-11-30T00:00:00Z".into(),
            summary: "we talked".into(),
            up_to: Some(8),
            operations: 0,
            under_reflected: true,
            reflection: Some("r".into()),
            error: None,
        };
        let line = json!({"ts": "2026-11-30T00:00:00Z", "summary": "we talked", "upTo": 8, "operations": 0,
            "underReflected": true, "reflection": "r"});
        assert_eq!(serde_json::to_value(&record).unwrap(), line);
        assert_eq!(serde_json::from_value::<Record>(line).unwrap(), record);
    }
}
