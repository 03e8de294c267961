//! What a session's file says, folded into what a turn needs: the messages, whose turns are over, the last prompt.

use std::{collections::BTreeMap, path::PathBuf};

use ipc::id::RequestId;
use jiff::Timestamp;

use super::{
    aside::Asides,
    file::{self, Entry, Header, SessionError},
    reflection::{Begun, Record, Watermark},
};
use crate::provider::{Block, Message, Role};

/// What a tool call is told whose result was lost with the process that waited for it.
pub(crate) const INTERRUPTED: &str =
    "[interrupted] the process died while this ran; whether it took effect is unknown";

/// What one is told that was waiting for a person's word then.
pub(crate) const NEVER_RAN: &str =
    "[interrupted] the process died while this waited for a person's word; it did not run";

/// One session, as far as it was written.
#[derive(Debug)]
pub(crate) struct Transcript {
    path: PathBuf,
    /// The first line.
    pub(crate) header: Header,
    /// What was said, oldest first.
    pub(crate) messages: Vec<Message>,
    /// How far the looking back on it went.
    pub(crate) watermark: Watermark,
    turns: BTreeMap<String, TurnState>,
    last_reply: Option<String>,
    prompt: Option<String>,
    pub(super) asides: Asides,
}

/// How far the turn of a request has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TurnState {
    /// It began and never ended: the process died in the middle of it.
    Open,
    /// It ended.
    Ended {
        /// Why, in the protocol's words.
        stop_reason: String,
        /// What went wrong, where something did.
        error: Option<String>,
    },
}

impl Transcript {
    /// Reads the session at `path`.
    pub(crate) fn read(path: PathBuf, id: &str) -> Result<Self, SessionError> {
        let mut entries = file::read(&path, id)?.into_iter();
        let Some(Entry::Session(header)) = entries.next() else {
            return Err(SessionError::NoHeader { path });
        };
        let mut transcript = Self {
            path,
            header,
            messages: Vec::new(),
            watermark: Watermark::default(),
            turns: BTreeMap::new(),
            last_reply: None,
            prompt: None,
            asides: Asides::default(),
        };
        for entry in entries {
            transcript.fold(entry);
        }
        Ok(transcript)
    }

    fn fold(&mut self, entry: Entry) {
        match entry {
            Entry::Session(_) => {}
            Entry::Message { message, request, from, .. } => {
                self.asides.message(self.messages.len(), request.as_deref(), from);
                if let Some(request) = request {
                    self.turns.insert(request, TurnState::Open);
                }
                self.messages.push(message);
            }
            Entry::Reflecting(begun) => self.watermark.begin(begun),
            Entry::Reflection(record) => self.watermark.end(&record, self.messages.len()),
            Entry::Prompt { fingerprint, .. } => self.prompt = Some(fingerprint),
            Entry::Objection { request, objection, .. } => {
                self.asides.raised(self.messages.len(), request, *objection);
            }
            Entry::Approval { request, call, stand, .. } => self.asides.stands(request, call, stand),
            Entry::Surfaced { request, surfaced, .. } => self.asides.told(request, surfaced),
            Entry::TurnEnd { request, stop_reason, error, .. } => {
                // a look back that was asked for, or a turn that was stopped, is no reply
                if error.is_none() && stop_reason != "cancelled" && self.asides.begun(&request) {
                    self.last_reply = Some(request.clone());
                }
                self.turns.insert(request, TurnState::Ended { stop_reason, error });
            }
        }
    }

    /// How far the turn of a request has come; nothing when it never began.
    pub(crate) fn turn(&self, request: &RequestId) -> Option<&TurnState> {
        self.turns.get(request.as_str())
    }

    /// The request of the newest turn that ended with an answer: what its reply is called (`messageId`).
    pub(crate) fn last_reply(&self) -> Option<&str> {
        self.last_reply.as_deref()
    }

    /// Writes a message down, and then counts it as said; a `request` marks the one that begins its turn.
    pub(crate) async fn say(
        &mut self,
        message: Message,
        request: Option<&RequestId>,
        ts: Timestamp,
    ) -> Result<(), SessionError> {
        // what a person said is on the disk before anything is done about it
        let durable = request.is_some();
        let request = request.map(|id| id.as_str().to_owned());
        self.write(Entry::Message { ts, message, request, from: None }, durable).await
    }

    /// Writes the system prompt down when it is not the one before.
    pub(crate) async fn prompted(&mut self, text: &str, ts: Timestamp) -> Result<(), SessionError> {
        let digest = ipc::digest::sha256_hex(text.as_bytes());
        let fingerprint = digest.get(..16).unwrap_or(&digest).to_owned();
        if self.prompt.as_ref() == Some(&fingerprint) {
            return Ok(());
        }
        let reason = if self.prompt.is_none() { "initial" } else { "rebuilt" }.to_owned();
        self.write(Entry::Prompt { ts, fingerprint, text: text.to_owned(), reason }, false).await
    }

    /// Writes down that a turn is over.
    pub(crate) async fn ended(
        &mut self,
        request: &RequestId,
        stop_reason: &str,
        error: Option<&str>,
        ts: Timestamp,
    ) -> Result<(), SessionError> {
        let entry = Entry::TurnEnd {
            ts,
            request: request.as_str().to_owned(),
            stop_reason: stop_reason.to_owned(),
            error: error.map(str::to_owned),
        };
        self.write(entry, true).await
    }

    /// Writes down that looking back on this session begins.
    pub(crate) async fn reflecting(&mut self, begun: Begun) -> Result<(), SessionError> {
        self.write(Entry::Reflecting(begun), true).await
    }

    /// Writes down that looking back on this session is over.
    pub(crate) async fn reflected(&mut self, record: Record) -> Result<(), SessionError> {
        self.write(Entry::Reflection(record), true).await
    }

    pub(super) async fn write(&mut self, entry: Entry, durable: bool) -> Result<(), SessionError> {
        let path = self.path.clone();
        let writing =
            tokio::task::spawn_blocking(move || file::append(&path, &entry, durable).map(|()| entry));
        let entry = writing.await.expect("appending a line does not panic")?;
        self.fold(entry);
        Ok(())
    }

    /// The calls at the end of the session that have no result: they were under way when the process died.
    pub(crate) fn dangling(&self) -> Vec<Block> {
        let Some(last) = self.messages.last().filter(|last| last.role == Role::Assistant) else {
            return Vec::new();
        };
        last.content.iter().filter(|block| matches!(block, Block::ToolUse { .. })).cloned().collect()
    }

    /// The messages as a model may be sent them: every call has exactly one result, right behind it (T28, C7.1–4).
    ///
    /// A file can lack results (a kill), hold one twice or hold one without a call (another program's edit); none of
    /// that may brick the session.
    pub(crate) fn repaired(&self) -> Vec<Message> {
        let mut repaired: Vec<Message> = Vec::new();
        let mut open: Vec<String> = Vec::new();
        for message in &self.messages {
            match message.role {
                Role::Assistant => {
                    self.answer(&mut repaired, &mut open);
                    open = message.content.iter().filter_map(call_id).collect();
                    repaired.push(message.clone());
                }
                Role::User => {
                    let mut content = Vec::new();
                    for block in &message.content {
                        match block {
                            Block::ToolResult { tool_use_id, .. } => {
                                // a second result, or one without a call, has nothing to belong to
                                if let Some(at) = open.iter().position(|id| id == tool_use_id) {
                                    open.remove(at);
                                    content.push(block.clone());
                                }
                            }
                            Block::Text { .. }
                            | Block::Thinking { .. }
                            | Block::ToolUse { .. }
                            | Block::Other(_) => {
                                content.push(block.clone());
                            }
                        }
                    }
                    let missing = open.drain(..).map(|id| self.lost(id));
                    let results =
                        content.iter().filter(|block| matches!(block, Block::ToolResult { .. })).count();
                    content.splice(results..results, missing);
                    if !content.is_empty() {
                        repaired.push(Message { role: Role::User, content });
                    }
                }
            }
        }
        self.answer(&mut repaired, &mut open);
        repaired
    }

    /// Gives the calls that are still open a result of their own.
    fn answer(&self, repaired: &mut Vec<Message>, open: &mut Vec<String>) {
        if !open.is_empty() {
            let content = open.drain(..).map(|id| self.lost(id)).collect();
            repaired.push(Message { role: Role::User, content });
        }
    }

    /// The result of a call that has none.
    fn lost(&self, id: String) -> Block {
        let said = if self.asides.never_ran(&id) { NEVER_RAN } else { INTERRUPTED };
        Block::result(id, said, true)
    }
}

fn call_id(block: &Block) -> Option<String> {
    match block {
        Block::ToolUse { id, .. } => Some(id.clone()),
        Block::Text { .. } | Block::Thinking { .. } | Block::ToolResult { .. } | Block::Other(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn transcript(messages: serde_json::Value) -> Transcript {
        Transcript {
            path: PathBuf::new(),
            header: serde_json::from_value(json!({"id": "s", "version": 2, "startedAt": "x"})).unwrap(),
            messages: serde_json::from_value(messages).unwrap(),
            watermark: Watermark::default(),
            turns: BTreeMap::new(),
            last_reply: None,
            prompt: None,
            asides: Asides::default(),
        }
    }

    fn call(id: &str) -> serde_json::Value {
        json!({"type": "tool_use", "id": id, "name": "soul_patch", "input": {}})
    }

    fn result(id: &str, content: &str) -> serde_json::Value {
        json!({"type": "tool_result", "tool_use_id": id, "content": content})
    }

    fn lost(id: &str) -> serde_json::Value {
        json!({"type": "tool_result", "tool_use_id": id, "content": INTERRUPTED, "is_error": true})
    }

    #[test]
    fn t28_a_session_that_was_cut_anywhere_can_be_sent() {
        let check = |messages: serde_json::Value, expected: serde_json::Value| {
            let repaired = transcript(messages.clone()).repaired();
            assert_eq!(json!(repaired), expected, "{messages}");
        };
        let user = json!({"role": "user", "content": [{"type": "text", "text": "go"}]});
        let two = json!({"role": "assistant", "content": [call("a"), call("b")]});
        // killed while the tools ran
        check(json!([user, two]), json!([user, two, {"role": "user", "content": [lost("a"), lost("b")]}]));
        // c7_1: one of two results is there, and the conversation went on
        check(
            json!([user, two, {"role": "user", "content": [result("a", "ok"), {"type": "text", "text": "and?"}]}]),
            json!([user, two, {"role": "user", "content": [result("a", "ok"), lost("b"), {"type": "text", "text": "and?"}]}]),
        );
        check(
            json!([user, two, user]),
            json!([user, two, {"role": "user", "content": [lost("a"), lost("b"), {"type": "text", "text": "go"}]}]),
        );
        // c7_2, c7_3: a result without a call, and a second one
        check(
            json!([user, {"role": "user", "content": [result("x", "?")]}, two,
                {"role": "user", "content": [result("a", "ok"), result("a", "again"), result("b", "ok")]}]),
            json!([user, two, {"role": "user", "content": [result("a", "ok"), result("b", "ok")]}]),
        );
        // nothing to mend
        check(json!([user]), json!([user]));
    }

    #[test]
    fn the_calls_under_way_are_those_at_the_end() {
        let user = json!({"role": "user", "content": "go"});
        let calls =
            json!({"role": "assistant", "content": [{"type": "text", "text": "well"}, call("a"), call("b")]});
        assert_eq!(transcript(json!([user, calls])).dangling().len(), 2);
        assert!(transcript(json!([user, calls, user])).dangling().is_empty());
        assert!(transcript(json!([])).dangling().is_empty());
    }
}
