//! What a session's file says, folded into what a turn needs: the messages, whose turns are over, the last prompt.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use ipc::{
    contract::{agent::ToolRun, sessions::Usage},
    id::RequestId,
};
use jiff::Timestamp;

use super::{
    aside::Asides,
    compaction::{self, Compaction},
    file::{self, Entry, Header, SessionError},
    reflection::{Begun, Record, Watermark},
    writer::Writer,
};
use crate::{
    length::estimate::{self, Gauge},
    provider::{Block, Message, Role},
};

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
    writer: Writer,
    /// The first line.
    pub(crate) header: Header,
    /// What was said, oldest first.
    pub(crate) messages: Vec<Message>,
    /// How far the looking back on it went.
    pub(crate) watermark: Watermark,
    turns: BTreeMap<String, TurnState>,
    last_reply: Option<String>,
    /// The model of the last turn of this life.
    pub(crate) thinker: Option<String>,
    prompt: Option<String>,
    pub(super) asides: Asides,
    /// The model that answered last.
    model: String,
    /// About how many tokens each message has.
    sizes: Vec<u64>,
    /// How it was shortened last.
    pub(crate) compaction: Option<Compaction>,
    /// How the estimate stands to what was counted in this life.
    pub(crate) gauge: Gauge,
    /// What its turn under way cost so far, in this life.
    turn_cost: Usage,
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
        let (header, entries) = file::read(&path, id)?;
        let mut transcript = Self::of(path, header);
        for entry in entries {
            transcript.fold(entry?);
        }
        Ok(transcript)
    }

    fn of(path: PathBuf, header: Header) -> Self {
        Self {
            path,
            model: header.model.clone(),
            header,
            writer: Writer::default(),
            messages: Vec::new(),
            watermark: Watermark::default(),
            turns: BTreeMap::new(),
            last_reply: None,
            thinker: None,
            prompt: None,
            asides: Asides::default(),
            sizes: Vec::new(),
            compaction: None,
            gauge: Gauge::default(),
            turn_cost: Usage::default(),
        }
    }

    fn fold(&mut self, entry: Entry) {
        match entry {
            Entry::Session(_) => {}
            Entry::Message { message, request, from, .. } => {
                self.asides.message(self.messages.len(), request.as_deref(), from);
                if let Some(request) = request {
                    self.turns.insert(request, TurnState::Open);
                }
                self.sizes.push(estimate::message(&message));
                self.messages.push(message);
            }
            Entry::Compaction(compaction) => self.compaction = Some(compaction),
            Entry::ModelChange { model, .. } => self.model = model,
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
            usage: (self.turn_cost.answers > 0).then_some(self.turn_cost),
        };
        self.write(entry, true).await?;
        self.turn_cost = Usage::default();
        Ok(())
    }

    /// Counts what an answer cost into the turn under way.
    pub(crate) fn spend(&mut self, cost: &Usage) {
        self.turn_cost.add(cost);
    }

    /// What the turn under way cost so far, in this life.
    pub(crate) fn turn_cost(&self) -> Usage {
        self.turn_cost
    }

    /// Writes down which model answered, where it is another than before.
    pub(crate) async fn answered_by(&mut self, model: &str, ts: Timestamp) -> Result<(), SessionError> {
        if self.model == model {
            return Ok(());
        }
        self.write(Entry::ModelChange { ts, model: model.to_owned() }, false).await
    }

    /// Writes down that it is sent shortened from here on.
    pub(crate) async fn compacted(&mut self, compaction: Compaction) -> Result<(), SessionError> {
        self.write(Entry::Compaction(compaction), true).await
    }

    /// About how many tokens each message has.
    pub(crate) fn sizes(&self) -> &[u64] {
        &self.sizes
    }

    /// About how many tokens is sent of it.
    pub(crate) fn load(&self) -> u64 {
        match &self.compaction {
            None => self.sizes.iter().sum(),
            Some(compaction) => self.load_with(compaction),
        }
    }

    /// The same, shortened so.
    pub(crate) fn load_with(&self, compaction: &Compaction) -> u64 {
        let kept = compaction.keep.and_then(|keep| self.sizes.get(keep)).copied().unwrap_or_default();
        let newer: u64 = self.sizes.iter().skip(compaction.up_to).sum();
        estimate::message(&compaction::as_sent(&compaction.summary)) + kept + newer
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
        let (path, id) = (self.path.clone(), self.header.id.clone());
        let mut writer = std::mem::take(&mut self.writer);
        let writing = tokio::task::spawn_blocking(move || {
            let written = writer.append(&path, &id, &entry, durable);
            (writer, written.map(|()| entry))
        });
        let (writer, written) = writing.await.expect("appending a line does not panic");
        self.writer = writer;
        self.fold(written?);
        Ok(())
    }

    /// The tools that ended well in the turn of a request so far. Whether they wrote is not in the file; they may have.
    pub(crate) fn ran_in(&self, request: &RequestId) -> Vec<ToolRun> {
        let begin = self.begin(request).unwrap_or(self.messages.len());
        let blocks = self.messages.iter().skip(begin).flat_map(|message| &message.content);
        let ended_well: BTreeSet<&str> = blocks
            .clone()
            .filter_map(|block| match block {
                Block::ToolResult { tool_use_id, is_error: false, .. } => Some(tool_use_id.as_str()),
                _ => None,
            })
            .collect();
        let run = |block: &Block| match block {
            Block::ToolUse { id, name, .. } if ended_well.contains(id.as_str()) => {
                Some(ToolRun { tool: name.clone(), failed: false, writes: true })
            }
            _ => None,
        };
        blocks.filter_map(run).collect()
    }

    /// The calls at the end of the session that have no result: they were under way when the process died.
    pub(crate) fn dangling(&self) -> Vec<Block> {
        let Some(last) = self.messages.last().filter(|last| last.role == Role::Assistant) else {
            return Vec::new();
        };
        last.content.iter().filter(|block| matches!(block, Block::ToolUse { .. })).cloned().collect()
    }

    /// The messages as a model may be sent them: shortened where that was decided, and without faults.
    pub(crate) fn sent(&self) -> Vec<Message> {
        sent(&self.messages, self.compaction.as_ref(), &self.asides)
    }
}

/// The messages of a conversation as a model may be sent them.
pub(super) fn sent(messages: &[Message], compaction: Option<&Compaction>, asides: &Asides) -> Vec<Message> {
    repaired(&compaction::shown(messages, compaction), asides)
}

/// Messages in which every call has exactly one result, right behind it (T28, C7.1–4).
///
/// A file can lack results (a kill), hold one twice or hold one without a call (another program's edit); none of that may
/// brick the session.
fn repaired(messages: &[Message], asides: &Asides) -> Vec<Message> {
    let mut repaired: Vec<Message> = Vec::new();
    let mut open: Vec<String> = Vec::new();
    for message in messages {
        match message.role {
            Role::Assistant => {
                answer(&mut repaired, &mut open, asides);
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
                let missing = open.drain(..).map(|id| lost(id, asides));
                let results =
                    content.iter().filter(|block| matches!(block, Block::ToolResult { .. })).count();
                content.splice(results..results, missing);
                if !content.is_empty() {
                    repaired.push(Message { role: Role::User, content });
                }
            }
        }
    }
    answer(&mut repaired, &mut open, asides);
    repaired
}

/// Gives the calls that are still open a result of their own.
fn answer(repaired: &mut Vec<Message>, open: &mut Vec<String>, asides: &Asides) {
    if !open.is_empty() {
        let content = open.drain(..).map(|id| lost(id, asides)).collect();
        repaired.push(Message { role: Role::User, content });
    }
}

/// The result of a call that has none.
fn lost(id: String, asides: &Asides) -> Block {
    let said = if asides.never_ran(&id) { NEVER_RAN } else { INTERRUPTED };
    Block::result(id, said, true)
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
        let header = serde_json::from_value(json!({"id": "s", "version": 2, "startedAt": "x"})).unwrap();
        let messages = serde_json::from_value(messages).unwrap();
        Transcript { messages, ..Transcript::of(PathBuf::new(), header) }
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
            let repaired = transcript(messages.clone()).sent();
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

    fn kept(first: &serde_json::Value) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        std::fs::write(&path, format!("{first}\n")).unwrap();
        (folder, path)
    }

    fn block_on<T>(work: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
    }

    #[test]
    fn se7_se8_se9_the_prompt_is_written_whenever_it_is_another_and_a_resume_does_not_repeat_it() {
        let (_folder, path) = kept(&json!({"type": "session", "id": "s", "version": 2, "startedAt": "x"}));
        let now = Timestamp::UNIX_EPOCH;
        block_on(async {
            let mut session = Transcript::read(path.clone(), "s").unwrap();
            for prompt in ["甲", "甲", "b", "甲", "甲"] {
                session.prompted(prompt, now).await.unwrap();
            }
            drop(session);
            Transcript::read(path.clone(), "s").unwrap().prompted("甲", now).await.unwrap();
        });
        let lines = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<serde_json::Value> =
            lines.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
        let said: Vec<_> =
            lines.iter().map(|line| (line["text"].as_str(), line["reason"].as_str())).collect();
        let (first, rebuilt) = (Some("initial"), Some("rebuilt"));
        assert_eq!(said, [(Some("甲"), first), (Some("b"), rebuilt), (Some("甲"), rebuilt)]);
        // the first sixteen digits of the text's SHA-256, as the original has them
        assert_eq!(lines[1]["fingerprint"], "3e23e8160039594a");
    }

    #[test]
    fn se3_what_the_first_line_says_of_the_sandbox_survives_a_resume() {
        let first = json!({"type": "session", "id": "s", "version": 2, "startedAt": "x", "cwd": "/", "model": "m",
            "sandboxMode": "workspace-write"});
        let (_folder, path) = kept(&first);
        block_on(async {
            let mut session = Transcript::read(path.clone(), "s").unwrap();
            session.say(Message::user("hi"), Some(&RequestId::fresh()), Timestamp::UNIX_EPOCH).await.unwrap();
        });
        let again = Transcript::read(path.clone(), "s").unwrap();
        assert_eq!(again.header.rest["sandboxMode"], "workspace-write");
        assert!(std::fs::read_to_string(&path).unwrap().starts_with(&first.to_string()));
    }

    #[test]
    fn two_lives_never_write_into_one_session() {
        let (_folder, path) = kept(&json!({"type": "session", "id": "s", "version": 2, "startedAt": "x"}));
        block_on(async {
            let mut one = Transcript::read(path.clone(), "s").unwrap();
            let mut other = Transcript::read(path.clone(), "s").unwrap();
            one.prompted("a", Timestamp::UNIX_EPOCH).await.unwrap();
            let refused = other.prompted("b", Timestamp::UNIX_EPOCH).await.unwrap_err();
            assert!(refused.to_string().contains("another process"), "{refused}");
            one.prompted("b", Timestamp::UNIX_EPOCH).await.unwrap();
        });
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 3);
    }
}
