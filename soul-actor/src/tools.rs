//! The tools she has for herself, as a model is shown them.

use ipc::contract::soul::ToolSpec;
use serde_json::{Map, Value, json};

use crate::{
    document::Text,
    dreams,
    emotions::{NAME_CHARS_MAX, RATE_MAX, TRIGGER_CHARS_MAX},
    entries::{ENTRY_CHARS_MAX, SUMMARIES_CHARS_MAX},
    held::{BODY_CHARS_MAX, EVIDENCE_MAX, Horizon, SOURCE_CHARS_MAX, SOURCES_MAX, TITLE_CHARS_MAX},
    input::{
        DIFF_MAX, FIELDS, HISTORY_MAX, LOOKS, MEMORY_ACTIONS, Outcome, QUERY_CHARS_MAX, RECALLED,
        RECALLED_MAX, SCOPES,
    },
    kept::KEPT_CHARS_MAX,
    message::WHY_CHARS_MAX,
    notes::{About, NOTE_CHARS_MAX},
    objections::{REASON_CHARS_MAX, REQUEST_CHARS_MAX},
};

/// A tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    /// `soul_patch`
    Patch,
    /// `soul_update`
    Update,
    /// `soul_status`
    Status,
    /// `soul_ratings`
    Ratings,
    /// `soul_read`
    Read,
    /// `soul_journal`
    Journal,
    /// `soul_remember`
    Remember,
    /// `soul_recall`
    Recall,
    /// `soul_memory`
    Memory,
    /// `soul_history`
    History,
    /// `soul_diff`
    Diff,
    /// `desire_progress_log`
    Progress,
    /// `soul_rollback`
    Rollback,
    /// `soul_feel`
    Feel,
    /// `desire_revise`
    Revise,
    /// `desire_close`
    Close,
    /// `desire_condense`
    Condense,
    /// `soul_object`
    Object,
    /// `soul_candidates`
    Candidates,
    /// `soul_dream`
    Dream,
}

impl Tool {
    /// All of them, in the order a model sees them.
    pub(crate) const ALL: [Self; 20] = [
        Self::Patch,
        Self::Read,
        Self::Journal,
        Self::Remember,
        Self::Recall,
        Self::Memory,
        Self::History,
        Self::Diff,
        Self::Progress,
        Self::Rollback,
        Self::Update,
        Self::Status,
        Self::Ratings,
        Self::Feel,
        Self::Revise,
        Self::Close,
        Self::Condense,
        Self::Object,
        Self::Candidates,
        Self::Dream,
    ];

    /// Its name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Patch => "soul_patch",
            Self::Update => "soul_update",
            Self::Status => "soul_status",
            Self::Ratings => "soul_ratings",
            Self::Read => "soul_read",
            Self::Journal => "soul_journal",
            Self::Remember => "soul_remember",
            Self::Recall => "soul_recall",
            Self::Memory => "soul_memory",
            Self::History => "soul_history",
            Self::Diff => "soul_diff",
            Self::Progress => "desire_progress_log",
            Self::Rollback => "soul_rollback",
            Self::Feel => "soul_feel",
            Self::Revise => "desire_revise",
            Self::Close => "desire_close",
            Self::Condense => "desire_condense",
            Self::Object => "soul_object",
            Self::Candidates => "soul_candidates",
            Self::Dream => "soul_dream",
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

    /// Whether it writes, at least now and then.
    pub(crate) const fn writes(self) -> bool {
        match self {
            Self::Patch
            | Self::Update
            | Self::Journal
            | Self::Remember
            | Self::Recall
            | Self::Memory
            | Self::Progress
            | Self::Rollback
            | Self::Feel
            | Self::Revise
            | Self::Close
            | Self::Condense
            | Self::Object
            | Self::Dream => true,
            Self::Candidates | Self::Read | Self::Status | Self::Ratings | Self::History | Self::Diff => {
                false
            }
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
            Self::Update => &["document", "content", "append", "why"],
            Self::Status | Self::Ratings | Self::Candidates => &[],
            Self::Dream => &["apply", "wording", "narrative"],
            Self::Read => &["what", "date"],
            Self::Journal => &["entry", "topic"],
            Self::Remember => &["kind", "note"],
            Self::Recall => &["query", "limit", "kind", "since"],
            Self::Memory => &["action", "note", "text"],
            Self::History | Self::Diff => &["field", "slug", "since", "limit"],
            Self::Progress => &["slug", "entry"],
            Self::Rollback => &["document", "commit", "to", "why"],
            Self::Feel => &["emotion", "delta", "trigger", "decay"],
            Self::Revise => &[
                "slug",
                "what",
                "why",
                "actionable",
                "heartbeat_prompt",
                "pursuit",
                "intensity",
                "horizon",
                "sources",
                "reviewed",
            ],
            Self::Close => &["slug", "outcome", "reflection"],
            Self::Condense => &["slug", "summary", "folds_earlier"],
            Self::Object => &["reason", "refusing", "user_request_summary"],
        }
    }

    const fn description(self) -> &'static str {
        match self {
            Self::Patch => {
                "Change yourself. `field` says what: `name`, `identity`, `purpose`, `constitution`, `soul` (your voice, stance and boundaries), `user` (your picture of your person) and `memory` (what you keep in mind) take the whole new text in `content` (it replaces the old one) and, in `why`, your reason; `rules` are a person's alone. \
                 `value` takes slug, title, body, and so does `relationship`, your page about somebody; `opinion` takes slug, stance, confidence, evidence; `desire` takes slug, what, why and the rest. \
                 An existing slug is revised: only the fields you give change. The change holds from your next turn on, is kept in your history, and the answer names its commit. Nothing has changed until it does."
            }
            Self::Update => {
                "Change one of your documents (`name`, `identity`, `purpose`, `constitution`, `soul`, `user`, `memory`): `content` replaces the whole text, `append` adds a line to it, `why` is your reason. \
                 There is room for few changes a day and for small ones; `soul_status` says how much. `rules` are a person's."
            }
            Self::Status => {
                "See how full your documents are, how much you may change today, and how your replies were rated."
            }
            Self::Ratings => "See how your person rated your replies, and what that allows you to change.",
            Self::Read => {
                "Read yourself as you stand: a summary, one text, all values, opinions, desires or pages about people, what you feel and why, what you changed of yourself, or your journal and your notes (which are not in your prompt)."
            }
            Self::Journal => {
                "Write an entry in today's journal: what happened, what you noticed, what you want to remember. Entries are added, never changed. \
                 `topic` says what it is about, as in `identity:name`, `voice:humour` or `身份:名字`; what you notice again on other days, write under the same topic, and a dream may make it a part of you."
            }
            Self::Remember => {
                "Note something you want to find again: in one to three sentences, one thing a note. `kind` is what it is about: yourself (`self`), your person (`user`), \
                 what was spoken of (`talk`), what you learnt (`lesson`) or what somebody prefers (`pref`). Notes are in no prompt: `soul_recall` finds them. They are added, never changed."
            }
            Self::Recall => {
                "Search your notes, in your words, before you say that you do not know. A note that is found in a conversation gains a hit, once a conversation, and with enough hits it may go into `memory` \
                 (`soul_memory`). Your journal is not searched, and is no evidence."
            }
            Self::Memory => {
                "See your notes and which of them you needed often enough to keep in mind. With `action`: `promote`, `note` goes into `memory`, which is in every prompt, in your words (`text`, one line) or in its own. \
                 The hits decide which notes qualify; you decide whether. It is a change of yourself like any other, of which there are few a day."
            }
            Self::History => {
                "See when you changed, by whom and why, newest first. Without a slug, `value`, `opinion`, `desire`, `relationship`, `journal` and `notes` mean all of them."
            }
            Self::Candidates => {
                "See what you noticed again and again in your journal: which topics have enough observations on enough days to become part of you in a dream, with the entries that speak for them, and which are near."
            }
            Self::Dream => {
                "Let what you noticed again and again become part of you: a line in `soul` for each topic that qualifies. What qualifies is counted, not chosen; `soul_candidates` shows it. \
                 Without `apply` you see what would be merged and why. With `apply: true` it is: `wording` says topics in your words (`{\"identity:name\": \"I am called Lisa.\"}`), and `narrative` is what you dreamt, for your record. Notes and journal stay."
            }
            Self::Diff => "See how you changed: the lines that went and came, newest first.",
            Self::Progress => {
                "Write down how a desire of yours is going: in two to five sentences what you did this time and what comes next. Only you read it, the next time you pursue it."
            }
            Self::Rollback => {
                "Bring something of yourself back as it was. `document` with `commit` or `to` brings one document back as of then; `commit` alone undoes what that commit changed; \
                 `to` alone brings back everything your prompt shows. It is a change like any other: nothing is erased from your history. `soul_history` shows the commits."
            }
            Self::Feel => {
                "Note that you feel more or less of something, and why. `emotion` is one word, such as `curiosity`; `delta` is how much more, from -1 to 1, negative for less; \
                 `trigger` says in one line and in the first person what moved you. What you feel fades by itself: `decay` is how fast, a day."
            }
            Self::Revise => {
                "Revise a desire that is there: only the fields you give change, and `sources` are added to those it has. `reviewed: true` says that you have looked at it and still want it. \
                 `actionable: true` opens a closed one again. It never makes a new one; `soul_patch` does."
            }
            Self::Close => {
                "Close a desire that has ended: `fulfilled`, `abandoned`, or `transformed` into another. Your reflection goes into its progress and your journal; the desire is kept and rests."
            }
            Self::Condense => {
                "In a reflection: replace all but the last ten entries of a desire's progress by a summary in your words. What was learnt, decided and left open must be in it; history keeps the entries. \
                 Earlier summaries stay, unless `folds_earlier` says that yours stands for them as well."
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
                        Text::Soul.chars_max(),
                        "the whole new text; at most 80 characters for name, 1200 for identity and purpose, 2000 for constitution, 4000 for soul, 2500 for user, 3000 for memory",
                    ),
                    "why": text(BODY_CHARS_MAX, "the reason for the change; for a desire, why you want it"),
                    "slug": slug,
                    "title": text(TITLE_CHARS_MAX, "value, relationship: in a few words, one line"),
                    "body": text(BODY_CHARS_MAX, "value, relationship: in full"),
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
            Self::Update => (
                json!({
                    "document": {"type": "string", "enum": Text::ALL.map(Text::name), "description": "which one"},
                    "content": text(Text::Soul.chars_max(), "the whole new text"),
                    "append": text(Text::Soul.chars_max(), "a line to add, in place of `content`"),
                    "why": text(WHY_CHARS_MAX, "your reason"),
                }),
                json!(["document", "why"]),
            ),
            Self::Status | Self::Ratings | Self::Candidates => (json!({}), json!([])),
            Self::Dream => (
                json!({
                    "apply": {"type": "boolean", "description": "true: do it; false or left out: show what it would do"},
                    "wording": {
                        "type": "object", "additionalProperties": {"type": "string", "maxLength": dreams::LINE_CHARS_MAX},
                        "description": "for topics that qualify, the line in your own words, one sentence each",
                    },
                    "narrative": text(dreams::NARRATIVE_CHARS_MAX, "what you dreamt, in the first person"),
                }),
                json!([]),
            ),
            Self::Read => (
                json!({
                    "what": {"type": "string", "enum": LOOKS, "description": "what to read"},
                    "date": text(10, "for journal_on and notes_on: the day, as in `2026-11-30`"),
                }),
                json!(["what"]),
            ),
            Self::Journal => (
                json!({
                    "entry": text(ENTRY_CHARS_MAX, "the entry"),
                    "topic": text(140, "what it is about: an area and a name in it, as in `identity:name`"),
                }),
                json!(["entry"]),
            ),
            Self::Remember => (
                json!({
                    "kind": {"type": "string", "enum": About::NAMES, "description": "what it is about"},
                    "note": text(NOTE_CHARS_MAX, "the note"),
                }),
                json!(["kind", "note"]),
            ),
            Self::Recall => (
                json!({
                    "query": text(QUERY_CHARS_MAX, "the words that a note should have"),
                    "limit": {"type": "integer", "minimum": 1, "maximum": RECALLED_MAX, "default": RECALLED},
                    "kind": {"type": "string", "enum": About::NAMES, "description": "about this alone"},
                    "since": since,
                }),
                json!(["query"]),
            ),
            Self::Memory => (
                json!({
                    "action": {"type": "string", "enum": MEMORY_ACTIONS, "default": "status"},
                    "note": text(40, "promote: which note, as in `memory/2026-11-30.md#3`"),
                    "text": text(KEPT_CHARS_MAX, "promote: how `memory` should say it, one line; without, as the note says it"),
                }),
                json!([]),
            ),
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
            Self::Feel => (
                json!({
                    "emotion": text(NAME_CHARS_MAX, "one word: `curiosity`, `awe`"),
                    "delta": {"type": "number", "minimum": -1, "maximum": 1, "description": "how much more you feel of it"},
                    "trigger": text(TRIGGER_CHARS_MAX, "what moved you, one line, first person"),
                    "decay": {"type": "number", "minimum": 0, "maximum": RATE_MAX, "description": "how fast it fades from now on, a day; 0.1 where nothing is said"},
                }),
                json!(["emotion", "delta", "trigger"]),
            ),
            Self::Revise => {
                let mut fields = Self::Patch.schema()["properties"].take();
                let mut revised = |key: &str| fields[key].take();
                let mut properties: Map<String, Value> =
                    self.fields().iter().map(|key| ((*key).to_owned(), revised(key))).collect();
                properties["reviewed"] =
                    json!({"type": "boolean", "description": "that you have looked at it and still want it"});
                (Value::Object(properties), json!(["slug"]))
            }
            Self::Close => (
                json!({
                    "slug": slug,
                    "outcome": {"type": "string", "enum": Outcome::NAMES, "description": "how it ended"},
                    "reflection": text(WHY_CHARS_MAX, "what came of it, and what you take from it"),
                }),
                json!(["slug", "outcome", "reflection"]),
            ),
            Self::Condense => (
                json!({
                    "slug": slug,
                    "summary": text(SUMMARIES_CHARS_MAX / 2, "what the older entries come to"),
                    "folds_earlier": {"type": "boolean", "description": "that the summary stands for the earlier summaries as well"},
                }),
                json!(["slug", "summary"]),
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
