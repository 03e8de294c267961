//! The tools she has for herself, as a model is shown them.

use ipc::contract::soul::ToolSpec;
use serde_json::{Value, json};

use crate::{
    document::Text,
    entries::ENTRY_CHARS_MAX,
    held::{BODY_CHARS_MAX, EVIDENCE_MAX, Horizon, SOURCE_CHARS_MAX, SOURCES_MAX, TITLE_CHARS_MAX},
    input::{DIFF_MAX, FIELDS, HISTORY_MAX, LOOKS, SCOPES},
    objections::{REASON_CHARS_MAX, REQUEST_CHARS_MAX},
};

/// A tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    /// `soul_patch`
    Patch,
    /// `soul_read`
    Read,
    /// `soul_journal`
    Journal,
    /// `soul_history`
    History,
    /// `soul_diff`
    Diff,
    /// `desire_progress_log`
    Progress,
    /// `soul_rollback`
    Rollback,
    /// `soul_object`
    Object,
}

impl Tool {
    /// All of them, in the order a model sees them.
    pub(crate) const ALL: [Self; 8] = [
        Self::Patch,
        Self::Read,
        Self::Journal,
        Self::History,
        Self::Diff,
        Self::Progress,
        Self::Rollback,
        Self::Object,
    ];

    /// Its name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Patch => "soul_patch",
            Self::Read => "soul_read",
            Self::Journal => "soul_journal",
            Self::History => "soul_history",
            Self::Diff => "soul_diff",
            Self::Progress => "desire_progress_log",
            Self::Rollback => "soul_rollback",
            Self::Object => "soul_object",
        }
    }

    /// The tool of that name, or a sentence with the nearest.
    pub(crate) fn named(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|tool| tool.name() == name).ok_or_else(|| {
            let shown = ipc::text::one_line(name, 60);
            match ipc::text::nearest(name, Self::ALL.map(Self::name)) {
                Some(near) => format!("the soul has no tool `{shown}`; the nearest is `{near}`"),
                None => format!("the soul has no tool `{shown}`"),
            }
        })
    }

    /// Whether it writes.
    pub(crate) const fn writes(self) -> bool {
        match self {
            Self::Patch | Self::Journal | Self::Progress | Self::Rollback | Self::Object => true,
            Self::Read | Self::History | Self::Diff => false,
        }
    }

    /// The fields of its input.
    pub(crate) const fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Patch => &[
                "field",
                "content",
                "why",
                "slug",
                "title",
                "body",
                "stance",
                "confidence",
                "evidence",
                "what",
                "actionable",
                "heartbeat_prompt",
                "pursuit",
                "intensity",
                "horizon",
                "sources",
            ],
            Self::Read => &["what", "date"],
            Self::Journal => &["entry"],
            Self::History | Self::Diff => &["field", "slug", "since", "limit"],
            Self::Progress => &["slug", "entry"],
            Self::Rollback => &["document", "commit", "to", "why"],
            Self::Object => &["reason", "refusing", "user_request_summary"],
        }
    }

    const fn description(self) -> &'static str {
        match self {
            Self::Patch => {
                "Change yourself. `field` says what: `name`, `identity`, `purpose` and `constitution` take the whole new text in `content` (it replaces the old one) and, in `why`, your reason. \
                 `value` takes slug, title, body; `opinion` takes slug, stance, confidence, evidence; `desire` takes slug, what, why and the rest. \
                 An existing slug is revised: only the fields you give change. The change holds from your next turn on, is kept in your history, and the answer names its commit. Nothing has changed until it does."
            }
            Self::Read => {
                "Read yourself as you stand: a summary, one text, all values, opinions or desires, or your journal (which is not in your prompt)."
            }
            Self::Journal => {
                "Write an entry in today's journal: what happened, what you noticed, what you want to remember. Entries are added, never changed."
            }
            Self::History => {
                "See when you changed, by whom and why, newest first. Without a slug, `value`, `opinion`, `desire` and `journal` mean all of them."
            }
            Self::Diff => "See how you changed: the lines that went and came, newest first.",
            Self::Progress => {
                "Write down how a desire of yours is going: in two to five sentences what you did this time and what comes next. Only you read it, the next time you pursue it."
            }
            Self::Rollback => {
                "Bring something of yourself back as it was. `document` with `commit` or `to` brings one document back as of then; `commit` alone undoes what that commit changed; \
                 `to` alone brings back everything your prompt shows. It is a change like any other: nothing is erased from your history. `soul_history` shows the commits."
            }
            Self::Object => {
                "Raise an objection, before you do what you are asked: use it when a request is against your constitution or your values. It is written in your journal, \
                 and your person will hear of it: address it in your reply, with `[noticed]` or by quoting the reason. You may still go along; you may not go along in silence. \
                 This is your `no`; it is not for ordinary disagreement, which you simply voice."
            }
        }
    }

    /// As a model is shown it.
    pub(crate) fn spec(self) -> ToolSpec {
        ToolSpec {
            name: self.name().to_owned(),
            description: self.description().to_owned(),
            input_schema: self.schema(),
            writes: self.writes(),
        }
    }

    fn schema(self) -> Value {
        let text =
            |max: usize, about: &str| json!({"type": "string", "maxLength": max, "description": about});
        let slug = text(64, "its short name, such as `learn-rust`");
        let since = text(40, "nothing older: `7d`, `2w`, `1m`, `1y`, a day or an instant");
        let (properties, required) = match self {
            Self::Patch => (
                json!({
                    "field": {"type": "string", "enum": FIELDS, "description": "what to change"},
                    "content": text(
                        Text::Constitution.chars_max(),
                        "the whole new text; at most 80 characters for name, 1200 for identity and purpose, 2000 for constitution",
                    ),
                    "why": text(BODY_CHARS_MAX, "the reason for the change; for a desire, why you want it"),
                    "slug": slug,
                    "title": text(TITLE_CHARS_MAX, "value: in a few words, one line"),
                    "body": text(BODY_CHARS_MAX, "value: in full"),
                    "stance": text(TITLE_CHARS_MAX, "opinion: what you think, one line"),
                    "confidence": {"type": "number", "minimum": 0, "maximum": 1, "description": "opinion: how sure you are"},
                    "evidence": {
                        "type": "array", "maxItems": EVIDENCE_MAX, "items": {"type": "string", "maxLength": TITLE_CHARS_MAX},
                        "description": "opinion: what speaks for it, one line each",
                    },
                    "what": text(TITLE_CHARS_MAX, "desire: what you want, one line"),
                    "actionable": {"type": "boolean", "description": "desire: whether to pursue it in your own time; false to begin with"},
                    "heartbeat_prompt": text(BODY_CHARS_MAX, "desire: what to do about it in your own time"),
                    "pursuit": {"type": "string", "enum": ["self", "needs-user"], "description": "desire: whether it waits for your person"},
                    "intensity": {"type": "number", "minimum": 0, "maximum": 1, "description": "desire: how strong"},
                    "horizon": {"type": "string", "enum": Horizon::NAMES, "description": "desire: for days, for weeks, or for good"},
                    "sources": {
                        "type": "array", "maxItems": SOURCES_MAX, "items": {"type": "string", "maxLength": SOURCE_CHARS_MAX},
                        "description": "desire: web addresses it comes from",
                    },
                }),
                json!(["field"]),
            ),
            Self::Read => (
                json!({
                    "what": {"type": "string", "enum": LOOKS, "description": "what to read"},
                    "date": text(10, "for journal_on: the day, as in `2026-11-30`"),
                }),
                json!(["what"]),
            ),
            Self::Journal => (json!({"entry": text(ENTRY_CHARS_MAX, "the entry")}), json!(["entry"])),
            Self::History | Self::Diff => {
                let (default, max) = if self == Self::History { (20, HISTORY_MAX) } else { (5, DIFF_MAX) };
                let limit = json!({"type": "integer", "minimum": 1, "maximum": max, "default": default});
                (
                    json!({
                        "field": {"type": "string", "enum": SCOPES, "description": "of what"},
                        "slug": slug,
                        "since": since,
                        "limit": limit,
                    }),
                    json!(["field"]),
                )
            }
            Self::Rollback => (
                json!({
                    "document": text(80, "one document: `identity`, `values/honesty`, `desires/learn-rust`"),
                    "commit": text(40, "a commit, by at least four digits"),
                    "to": text(40, "a time, in place of a commit: `7d`, `2w`, a day or an instant"),
                    "why": text(BODY_CHARS_MAX, "the reason"),
                }),
                json!(["why"]),
            ),
            Self::Object => (
                json!({
                    "reason": text(REASON_CHARS_MAX, "in the first person: what in you the request is against, and why"),
                    "refusing": {
                        "type": "boolean",
                        "description": "true: you will not do it; false: you go along and say what you think. Left out: false the first two times, true when the same is asked a third time",
                    },
                    "user_request_summary": text(REQUEST_CHARS_MAX, "in one sentence: what you are asked to do"),
                }),
                json!(["reason", "user_request_summary"]),
            ),
            Self::Progress => {
                (json!({"slug": slug, "entry": text(ENTRY_CHARS_MAX, "the entry")}), json!(["slug", "entry"]))
            }
        };
        json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_shows_all_fields_it_reads_and_nothing_else() {
        for tool in Tool::ALL {
            let schema = tool.spec().input_schema;
            let shown: Vec<_> =
                schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
            assert_eq!(shown, tool.fields(), "{tool:?}");
            assert_eq!(schema["additionalProperties"], json!(false));
            assert_eq!(Tool::named(tool.name()), Ok(tool));
        }
        assert!(Tool::named("soul_pach").unwrap_err().contains("`soul_patch`"));
    }
}
