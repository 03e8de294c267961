//! What is said aloud while a turn goes on: updates of the protocol for whoever is attached to the session.

use ipc::{
    acp::{self, SessionUpdate, ToolCallStatus, ToolKind},
    contract::agent::{Agent, Audience, Notice},
    id::RequestId,
    server::Notices,
};
use serde_json::{Value, json};

/// Speaks into one session.
#[derive(Debug, Clone)]
pub(crate) struct Voice {
    notices: Notices<Agent>,
    session: String,
    turn: RequestId,
    /// The call of which it is a part, where it speaks in a piece of a turn.
    part_of: Option<String>,
}

impl Voice {
    /// A voice for one turn in a session.
    pub(crate) fn new(notices: Notices<Agent>, session: &str, turn: &RequestId) -> Self {
        Self { notices, session: session.to_owned(), turn: turn.clone(), part_of: None }
    }

    /// The voice of a piece of the turn: heard in the same session, where what is said is not taken for her reply, and its
    /// tools are shown as parts of the call.
    pub(crate) fn part(&self, call: &str) -> Self {
        Self { part_of: Some(call.to_owned()), ..self.clone() }
    }

    /// The session it is heard in.
    pub(crate) fn session(&self) -> &str {
        &self.session
    }

    /// The request whose turn it speaks in; that of the whole turn in a piece of it.
    pub(crate) fn turn(&self) -> &RequestId {
        &self.turn
    }

    /// What the runtime adds to her reply.
    pub(crate) fn added(&self, text: &str) {
        if self.part_of.is_some() { self.note(text) } else { self.text(text) }
    }

    /// More of her reply.
    pub(crate) fn text(&self, text: &str) {
        if self.part_of.is_some() {
            return self.thought(text);
        }
        self.say(Audience::Everybody, &SessionUpdate::AgentMessageChunk(acp::ContentChunk::new(text.into())));
    }

    /// More of what a model thinks.
    pub(crate) fn thought(&self, text: &str) {
        self.say(Audience::Everybody, &SessionUpdate::AgentThoughtChunk(acp::ContentChunk::new(text.into())));
    }

    /// Something the runtime itself has to say, marked as such.
    pub(crate) fn note(&self, text: &str) {
        let meta: acp::Meta = [("lisa".to_owned(), json!({"note": true}))].into_iter().collect();
        let chunk = acp::ContentChunk::new(text.into()).meta(meta);
        self.say(Audience::Everybody, &SessionUpdate::AgentMessageChunk(chunk));
    }

    /// What a person said, to those who did not say it.
    pub(crate) fn heard(&self, text: &str) {
        let chunk = SessionUpdate::UserMessageChunk(acp::ContentChunk::new(text.into()));
        self.say(Audience::Others(self.turn.clone()), &chunk);
    }

    /// What she means to do, step by step.
    pub(crate) fn plan(&self, plan: acp::Plan) {
        // the plan that is shown is that of the whole turn
        if self.part_of.is_some() {
            return;
        }
        self.say(Audience::Everybody, &SessionUpdate::Plan(plan));
    }

    /// A tool begins.
    pub(crate) fn tool_begins(&self, id: &str, title: &str, writes: bool, input: &Value) {
        let kind = if writes { ToolKind::Edit } else { ToolKind::Read };
        let title = if self.part_of.is_some() { format!("↳ {title}") } else { title.to_owned() };
        let call = acp::ToolCall::new(self.call(id), title)
            .kind(kind)
            .status(ToolCallStatus::InProgress)
            .raw_input(input.clone());
        self.say(Audience::Everybody, &SessionUpdate::ToolCall(call));
    }

    /// What it prints so far.
    pub(crate) fn tool_prints(&self, id: &str, printed: &str) {
        let fields =
            acp::ToolCallUpdateFields::new().status(ToolCallStatus::InProgress).content(vec![printed.into()]);
        let update = acp::ToolCallUpdate::new(self.call(id), fields);
        self.say(Audience::Everybody, &SessionUpdate::ToolCallUpdate(update));
    }

    /// It waits for a person's word.
    pub(crate) fn tool_waits(&self, id: &str) {
        self.tool_is(id, ToolCallStatus::Pending);
    }

    /// It was allowed, and goes on.
    pub(crate) fn tool_goes_on(&self, id: &str) {
        self.tool_is(id, ToolCallStatus::InProgress);
    }

    fn tool_is(&self, id: &str, status: ToolCallStatus) {
        let fields = acp::ToolCallUpdateFields::new().status(status);
        let update = acp::ToolCallUpdate::new(self.call(id), fields);
        self.say(Audience::Everybody, &SessionUpdate::ToolCallUpdate(update));
    }

    /// It is over.
    pub(crate) fn tool_ends(&self, id: &str, output: &str, failed: bool) {
        let status = if failed { ToolCallStatus::Failed } else { ToolCallStatus::Completed };
        let fields = acp::ToolCallUpdateFields::new().status(status).content(vec![output.into()]);
        let update = acp::ToolCallUpdate::new(self.call(id), fields);
        self.say(Audience::Everybody, &SessionUpdate::ToolCallUpdate(update));
    }

    /// The id of a call, as clients know it: models number theirs anew in each piece.
    pub(crate) fn call(&self, id: &str) -> String {
        self.part_of.as_ref().map_or_else(|| id.to_owned(), |of| format!("{of}/{id}"))
    }

    fn say(&self, audience: Audience, update: &SessionUpdate) {
        self.notices.tell(&Notice::Update {
            session: self.session.clone(),
            audience,
            turn: Some(self.turn.clone()),
            acp: "session/update".to_owned(),
            params: update_params(&self.session, update),
        });
    }
}

/// The parameters of `session/update`.
pub(crate) fn update_params(session: &str, update: &SessionUpdate) -> Value {
    json!({"sessionId": session, "update": update})
}
