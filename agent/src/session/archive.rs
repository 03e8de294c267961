//! The conversations on disk as a person looks at them: what there are, and what was said, a page at a time.
//!
//! Files are read a line at a time, and of a page no more is held than is shown.

use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
    time::SystemTime,
};

use ipc::{
    contract::sessions::{LIMIT_MAX, Page, Said, Session, Speaker, Usage},
    text::{chars, one_line, prefix},
};
use jiff::Timestamp;

use super::{
    Catalog, Header,
    catalog::{Listed, listed},
    file::{self, Entry, SessionError, Speaker as From},
};
use crate::provider::{Block, Input, Message, Role};

/// The longest words of one message on a page, in characters; a page of these is well inside one frame.
const SAID_CHARS_MAX: usize = 4000;
/// The longest line about a tool, in characters.
const TOOL_CHARS_MAX: usize = 240;

impl Catalog {
    /// The conversations last written to, the newest first, each with what its whole file says.
    pub(crate) fn sessions(&self, limit: u32) -> Result<Vec<Session>, SessionError> {
        let conversations = self.conversations()?.take(limit.min(LIMIT_MAX) as usize);
        Ok(conversations.filter_map(|(listed, path)| session(listed, &path).ok()).collect())
    }

    /// The conversations and their files, the last written first.
    pub(super) fn conversations(&self) -> Result<impl Iterator<Item = (Listed, PathBuf)>, SessionError> {
        let files = self.files()?.into_iter();
        Ok(files.filter_map(|(modified, path)| Some((listed(modified, &path)?, path))))
    }

    /// The page of messages that ends right before the message with that number, or with the newest.
    pub(crate) fn page(&self, id: &str, before: Option<u64>, limit: u32) -> Result<Page, SessionError> {
        let limit = limit.min(LIMIT_MAX) as usize;
        let (header, entries) = file::read(&self.path(id)?, id)?;
        let (mut messages, mut more, mut total) = (VecDeque::with_capacity(limit), false, 0);
        for entry in entries {
            let Entry::Message { ts, message, from, .. } = entry? else { continue };
            total += 1;
            if before.is_some_and(|before| total >= before) || limit == 0 {
                continue;
            }
            if messages.len() == limit {
                messages.pop_front();
                more = true;
            }
            messages.push_back(Said {
                number: total,
                time: ts,
                by: by(&message, from),
                text: text(&message),
            });
        }
        Ok(Page { session: header.id, messages: messages.into(), more, total })
    }

    /// What each turn that ended since then cost, in every session.
    pub(crate) fn spent_since(
        &self,
        since: Timestamp,
        counts: &dyn Fn(Timestamp) -> bool,
        mut take: impl FnMut(&Header, Usage),
    ) -> Result<(), SessionError> {
        let recent = |modified: &SystemTime| Timestamp::try_from(*modified).is_ok_and(|at| at >= since);
        for (_, path) in self.files()?.into_iter().take_while(|(modified, _)| recent(modified)) {
            let Some(id) = path.file_stem().and_then(|stem| stem.to_str()) else { continue };
            // a file that cannot be read is a matter of whoever uses it
            let Ok((header, entries)) = file::read(&path, id) else { continue };
            for entry in entries.flatten() {
                if let Entry::TurnEnd { ts, usage: Some(usage), .. } = entry
                    && counts(ts)
                {
                    take(&header, usage);
                }
            }
        }
        Ok(())
    }
}

fn session(listed: Listed, path: &Path) -> Result<Session, SessionError> {
    let Listed { header, title, updated } = listed;
    let (_, entries) = file::read(path, &header.id)?;
    let own = header.kind.is_some();
    let Header { id, person, model, .. } = header;
    let mut session = Session { id, title, person, updated, turns: 0, model, usage: Usage::default(), own };
    for entry in entries {
        match entry? {
            Entry::Message { message, from, .. } if by(&message, from) == Speaker::Person => {
                session.turns += 1;
            }
            Entry::ModelChange { model, .. } => session.model = model,
            Entry::TurnEnd { usage: Some(usage), .. } => session.usage.add(&usage),
            Entry::Message { .. }
            | Entry::TurnEnd { .. }
            | Entry::Session(_)
            | Entry::Objection { .. }
            | Entry::Surfaced { .. }
            | Entry::Approval { .. }
            | Entry::Prompt { .. }
            | Entry::Reflecting(_)
            | Entry::Reflection(_)
            | Entry::Compaction(_) => {}
        }
    }
    Ok(session)
}

/// Who says a message.
pub(super) fn by(message: &Message, from: Option<From>) -> Speaker {
    match (message.role, from) {
        (_, Some(From::Runtime)) => Speaker::Runtime,
        (Role::Assistant, None) => Speaker::She,
        (Role::User, None) if message.content.iter().any(|block| block.as_text().is_some()) => {
            Speaker::Person
        }
        (Role::User, None) => Speaker::Tools,
    }
}

/// What a message says, as it is read; thoughts are left out, and tools are a line each.
fn text(message: &Message) -> String {
    let part = |block: &Block| match block {
        Block::Text { text } => Some(text.clone()),
        Block::ToolUse { name, input, .. } => Some(match input {
            Input::Object(input) => {
                one_line(&format!("[{name} {}]", serde_json::Value::Object(input.clone())), TOOL_CHARS_MAX)
            }
            Input::Unusable { why, .. } => one_line(&format!("[{name}: {why}]"), TOOL_CHARS_MAX),
        }),
        Block::ToolResult { content, is_error, .. } => {
            let word = if *is_error { "failed" } else { "result" };
            Some(one_line(&format!("[{word}: {content}]"), TOOL_CHARS_MAX))
        }
        Block::Thinking { .. } | Block::Other(_) => None,
    };
    let text = message.content.iter().filter_map(part).collect::<Vec<_>>().join("\n");
    let left = chars(&text).saturating_sub(SAID_CHARS_MAX);
    if left == 0 {
        return text;
    }
    format!("{}\n[{left} more characters are in the file]", prefix(&text, SAID_CHARS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn catalog(lines: &[Value]) -> (tempfile::TempDir, Catalog) {
        let folder = tempfile::tempdir().unwrap();
        let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
        std::fs::write(folder.path().join("s.jsonl"), lines.join("\n")).unwrap();
        let catalog = Catalog::at(folder.path());
        (folder, catalog)
    }

    fn message(role: &str, content: impl Into<Value>) -> Value {
        let content: Value = content.into();
        json!({"type": "message", "ts": "2026-01-01T00:00:00Z", "message": {"role": role, "content": content}})
    }

    fn talk() -> Vec<Value> {
        let call =
            json!([{"type": "tool_use", "id": "a", "name": "soul_read", "input": {"document": "name"}}]);
        let result = json!([{"type": "tool_result", "tool_use_id": "a", "content": "Mira"}]);
        vec![
            json!({"type": "session", "id": "s", "version": 2, "startedAt": "x", "model": "m", "person": "anna"}),
            json!({"type": "prompt", "ts": "2026-01-01T00:00:00Z", "fingerprint": "f", "text": "You are.", "reason": "initial"}),
            message("user", json!("who are you?")),
            message("assistant", call),
            message("user", result),
            message("assistant", json!("I am Mira. 灯")),
            json!({"type": "reflection", "ts": "2026-01-01T00:00:00Z", "summary": "we met"}),
            json!({"type": "model_change", "ts": "2026-01-01T00:00:00Z", "model": "n"}),
            json!({"type": "turn_end", "ts": "2026-01-01T00:00:00Z", "request": "r", "stop_reason": "end_turn",
                "usage": {"answers": 2, "input": 10, "output": 5, "cost_micros": 7}}),
            message("user", json!("good")),
        ]
    }

    #[test]
    fn se5_a_page_has_what_was_said_and_neither_prompts_nor_reflections() {
        let (_folder, catalog) = catalog(&talk());
        let page = catalog.page("s", None, 20).unwrap();
        let said: Vec<_> =
            page.messages.iter().map(|said| (said.number, said.by, said.text.as_str())).collect();
        assert_eq!(
            said,
            [
                (1, Speaker::Person, "who are you?"),
                (2, Speaker::She, "[soul_read {\"document\":\"name\"}]"),
                (3, Speaker::Tools, "[result: Mira]"),
                (4, Speaker::She, "I am Mira. 灯"),
                (5, Speaker::Person, "good"),
            ]
        );
        assert_eq!((page.total, page.more), (5, false));
    }

    #[test]
    fn se6_pages_go_from_the_newest_back_and_past_the_end_there_is_nothing() {
        let (_folder, catalog) = catalog(&talk());
        let check = |before: Option<u64>, limit: u32, numbers: &[u64], more: bool| {
            let page = catalog.page("s", before, limit).unwrap();
            let found: Vec<u64> = page.messages.iter().map(|said| said.number).collect();
            assert_eq!((found.as_slice(), page.more, page.total), (numbers, more, 5), "{before:?} {limit}");
        };
        check(None, 2, &[4, 5], true);
        check(Some(4), 2, &[2, 3], true);
        check(Some(2), 2, &[1], false);
        check(Some(1), 2, &[], false);
        check(Some(99), 2, &[4, 5], true);
        check(None, 0, &[], false);
        assert!(matches!(catalog.page("t", None, 2), Err(SessionError::Unknown { .. })));
        assert!(matches!(catalog.page("../s", None, 2), Err(SessionError::BadName { .. })));
    }

    #[test]
    fn a_list_says_of_each_who_when_how_often_and_what_it_cost() {
        let (_folder, catalog) = catalog(&talk());
        let listed = catalog.sessions(20).unwrap();
        let [one] = listed.as_slice() else { panic!("{listed:?}") };
        assert_eq!((one.title.as_deref(), one.person.as_deref()), (Some("who are you?"), Some("anna")));
        assert_eq!((one.turns, one.model.as_str(), one.own), (2, "n", false));
        assert_eq!((one.usage.answers, one.usage.tokens(), one.usage.cost_micros), (2, 15, Some(7)));
    }

    #[test]
    fn words_without_end_are_cut_and_that_is_said() {
        let (_folder, catalog) = catalog(&[talk().remove(0), message("user", json!("灯".repeat(5000)))]);
        let text = catalog.page("s", None, 1).unwrap().messages.remove(0).text;
        assert!(text.ends_with("\n[1000 more characters are in the file]"), "{}", chars(&text));
    }
}
