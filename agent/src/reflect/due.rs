//! Whether there is something to look back on, and what came of it: plain functions of a session's messages.

use crate::{
    provider::{Block, Message, Role},
    session::{Begun, Kind, Record, Transcript},
};

use super::{
    prompt::{JOURNAL, TOOLS},
    quote::spoken,
};

/// From how many words of somebody on a conversation gives enough to change something.
const MUCH: usize = 6;

/// What there is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Due {
    /// Nothing was said since the last time, or it is nothing to look back on.
    Nothing,
    /// One was begun and is not over: that one goes on.
    Resume(Begun),
    /// A new one, of the messages between.
    Fresh { from: usize, up_to: usize },
}

/// Says what is due, where at least `spoken_min` words of somebody must be new.
pub(crate) fn due(session: &Transcript, spoken_min: usize) -> Due {
    // her own time and her own looking back are not looked back on
    if session.header.kind.is_some_and(|kind| kind != Kind::Chat) {
        return Due::Nothing;
    }
    if let Some(begun) = &session.watermark.unfinished {
        return Due::Resume(begun.clone());
    }
    let (from, up_to) = (session.watermark.up_to, session.messages.len());
    let new = spoken(&session.conversation(from, up_to));
    if new < spoken_min { Due::Nothing } else { Due::Fresh { from, up_to } }
}

/// What a reflection did, as its own session tells it, whichever life did it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Done {
    /// How many changes were made, the journal apart.
    pub(crate) operations: usize,
    /// How many journal entries were written.
    pub(crate) entries: usize,
    /// How often the model was asked.
    pub(crate) rounds: u32,
    /// What she said last.
    pub(crate) summary: String,
}

impl Done {
    /// Reads it from the messages of the reflection.
    pub(crate) fn read(messages: &[Message]) -> Self {
        let mut done = Self::default();
        for (at, message) in messages.iter().enumerate() {
            match message.role {
                Role::Assistant => {
                    done.rounds += 1;
                    let text = message.text();
                    if !text.trim().is_empty() {
                        done.summary = text;
                    }
                }
                Role::User => {
                    let calls = at.checked_sub(1).and_then(|before| messages.get(before));
                    for tool in message.content.iter().filter_map(|block| wrote(block, calls?)) {
                        if tool == JOURNAL { done.entries += 1 } else { done.operations += 1 }
                    }
                }
            }
        }
        done
    }
}

/// The tool whose result this is, where it wrote: a result that says so names its commit.
fn wrote<'a>(result: &Block, calls: &'a Message) -> Option<&'a str> {
    let Block::ToolResult { tool_use_id, content, is_error: false } = result else { return None };
    let tool = calls.content.iter().find_map(|block| match block {
        Block::ToolUse { id, name, .. } if id == tool_use_id => Some(name.as_str()),
        _ => None,
    })?;
    let writes = TOOLS.contains(&tool) && !["soul_read", "soul_recall"].contains(&tool);
    (writes && content.contains("commit `")).then_some(tool)
}

/// Whether a reflection on so many words changed less than it should have (a journal entry alone is no change).
pub(crate) fn is_under_reflected(spoken: usize, operations: usize) -> bool {
    spoken >= MUCH && operations == 0
}

/// What a person is told of one that is over.
pub(crate) fn said(record: &Record, spoken: usize) -> String {
    let changes = match record.operations {
        0 => "nothing was changed".to_owned(),
        1 => "1 change was made".to_owned(),
        changes => format!("{changes} changes were made"),
    };
    let mut said = match &record.error {
        Some(error) => format!("[the look back on this conversation was not finished, {changes}: {error}]"),
        None => format!("[looked back on {spoken} messages: {changes}]"),
    };
    if record.under_reflected {
        said.push_str(
            "\n[under-reflected: there was much to think about, and nothing came of it but the journal]",
        );
    }
    if !record.summary.is_empty() {
        said = format!("{said}\n\n{}", record.summary);
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::io::Write as _;

    fn session(kind: &str, lines: &[Value]) -> Transcript {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let first = json!({"type": "session", "id": "s", "version": 2, "startedAt": "x", "kind": kind});
        for line in std::iter::once(&first).chain(lines) {
            writeln!(file, "{line}").unwrap();
        }
        Transcript::read(file.path().to_owned(), "s").unwrap()
    }

    fn said_line(role: &str, text: &str) -> Value {
        json!({"type": "message", "ts": "2026-11-30T00:00:00Z", "message": {"role": role, "content": text}})
    }

    fn reflection(up_to: usize) -> Value {
        json!({"type": "reflection", "ts": "2026-11-30T00:00:00Z", "summary": "x", "upTo": up_to})
    }

    fn begun() -> Value {
        json!({"type": "reflecting", "ts": "2026-11-30T00:00:00Z", "reflection": "r", "request": "q", "from": 0, "upTo": 2})
    }

    #[test]
    fn sw1_sw2_sw3_what_was_looked_at_is_not_looked_at_again_and_what_is_new_is() {
        let check = |kind: &str, lines: &[Value], min: usize, expected: &str| {
            let due = match due(&session(kind, lines), min) {
                Due::Nothing => "nothing".to_owned(),
                Due::Resume(begun) => format!("resume {}", begun.reflection),
                Due::Fresh { from, up_to } => format!("{from}..{up_to}"),
            };
            assert_eq!(due, expected, "{kind} {lines:?}");
        };
        let (hi, hello) = (said_line("user", "hi"), said_line("assistant", "hello"));
        check("chat", &[], 1, "nothing");
        check("chat", std::slice::from_ref(&hi), 2, "nothing");
        check("chat", std::slice::from_ref(&hi), 1, "0..1");
        let two = [hi.clone(), hello.clone()];
        check("chat", &two, 2, "0..2");
        // her own time and her own looking back are no conversations
        check("heartbeat", &two, 1, "nothing");
        check("reflect", &two, 1, "nothing");
        check("chat", &[hi.clone(), hello.clone(), reflection(2)], 1, "nothing");
        check("chat", &[hi.clone(), hello.clone(), reflection(2), hi.clone(), hello.clone()], 2, "2..4");
        // a result of a tool is nobody's words
        let result = json!({"type": "message", "ts": "2026-11-30T00:00:00Z", "message":
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "ok"}]}});
        check("chat", &[hi.clone(), hello.clone(), reflection(2), result], 1, "nothing");
        // one under way is gone on with, and no second one is begun beside it
        check("chat", &[hi.clone(), hello.clone(), begun(), hi.clone(), hello.clone()], 2, "resume r");
        check("chat", &[hi, hello, begun(), reflection(2)], 1, "nothing");
    }

    #[test]
    fn r8_r9_r10_much_said_and_nothing_changed_is_under_reflected() {
        let check =
            |spoken, operations, expected| assert_eq!(is_under_reflected(spoken, operations), expected);
        check(6, 0, true);
        check(60, 0, true);
        check(6, 1, false);
        check(5, 0, false);
        check(0, 0, false);
    }

    #[test]
    fn operations_are_the_calls_that_made_a_commit() {
        let use_of = |id: &str, name: &str| json!({"type": "tool_use", "id": id, "name": name, "input": {}});
        let result = |id: &str, content: &str, bad: bool| json!({"type": "tool_result", "tool_use_id": id, "content": content, "is_error": bad});
        let messages: Vec<Message> = serde_json::from_value(json!([
            {"role": "user", "content": "[reflect] session:s"},
            {"role": "assistant", "content": [use_of("1", "soul_journal"), use_of("2", "soul_patch"), use_of("3", "soul_patch"),
                use_of("4", "soul_read"), use_of("5", "desire_close")]},
            {"role": "user", "content": [result("1", "wrote `journal/x.md`, commit `ab`", false),
                result("2", "no change: `values/x.md` says this already", false), result("3", "refused; commit `ab`", true),
                result("4", "… commit `ab`", false), result("5", "wrote `desires/x.md`, commit `ab`: closed", false)]},
            {"role": "assistant", "content": "We talked."},
        ]))
        .unwrap();
        let expected = Done { operations: 1, entries: 1, rounds: 2, summary: "We talked.".into() };
        assert_eq!(Done::read(&messages), expected);
        assert_eq!(Done::read(&[]), Done::default());
    }
}
