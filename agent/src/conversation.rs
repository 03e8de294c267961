//! One session as an actor: its turns run one after another, whoever asks for them.
//!
//! ```text
//!  Prompt ─▶ waiting ─▶ running (a task of its own, so that a cancel is heard meanwhile) ─▶ Over ─▶ answered, next
//!                          ▲                                                                 └─▶ nothing waits: quiet for
//!                          └── looking back, by itself or asked for (`/reflect`) ◀── Quiet, Retire ◀── a while
//! ```
//!
//! Looking back takes its turn like a prompt, so two of them never run at once. One that came by itself gives way to a
//! person, who should not wait for what nobody asked for; it goes on when the session rests again. One that was asked
//! for is waited for, or cancelled like a turn.

use std::{collections::VecDeque, sync::Arc};

use ipc::{
    acp,
    contract::agent::Reply,
    exit::chain,
    id::RequestId,
    wire::{RpcError, code},
};
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::{
    birth,
    mind::Mind,
    provider::Message,
    reflect::{BY_ITSELF, Due, ON_REQUEST, ReflectError, due, look_back},
    session::{SessionError, Transcript, TurnState},
    think::{self, Ended, TurnError, Work},
    turn::ROUNDS_MAX,
    voice::Voice,
};

/// How many prompts may wait for the one under way.
const WAITING_MAX: usize = 8;
/// The message that asks for looking back; it is a command, and not a part of the conversation.
const LOOK_BACK: &str = "/reflect";

/// What a conversation is asked and told.
#[derive(Debug)]
pub(crate) enum ConversationMsg {
    /// A person says something.
    Prompt(Prompt),
    /// Whatever is under way should end.
    Cancel,
    /// The turn under way is over; nothing comes back when its task failed.
    Over { transcript: Option<Box<Transcript>>, reply: Reply },
    /// The session is over, or nobody has asked for long: look back, and end.
    Retire,
    /// Another life may have left something to look back on.
    Wake,
    /// Nobody has said anything for a while, if no turn came since this one.
    Quiet { turn: u64 },
}

/// What is asked for.
#[derive(Debug, Clone)]
pub(crate) enum Asked {
    /// An answer to what a person says.
    Say(String),
    /// Looking back.
    LookBack,
}

impl Asked {
    /// What a message asks for.
    pub(crate) fn of(text: String) -> Self {
        if text.trim() == LOOK_BACK { Self::LookBack } else { Self::Say(text) }
    }
}

/// One thing a person says.
#[derive(Debug)]
pub(crate) struct Prompt {
    pub(crate) request: RequestId,
    pub(crate) what: Asked,
    pub(crate) answer: RpcReplyPort<Reply>,
}

/// What never changes.
#[derive(Debug)]
pub(crate) struct Conversation {
    pub(crate) mind: Arc<Mind>,
    pub(crate) session: String,
}

/// What does.
#[derive(Debug, Default)]
pub(crate) struct ConversationState {
    /// Read when needed; away while a turn runs.
    transcript: Option<Box<Transcript>>,
    waiting: VecDeque<Prompt>,
    running: Option<Running>,
    /// How many turns began.
    turns: u64,
    /// Whether this ends when nothing is left to do.
    ending: bool,
}

#[derive(Debug)]
struct Running {
    /// Who waits for it; nobody for what came by itself.
    answer: Option<RpcReplyPort<Reply>>,
    cancel: CancellationToken,
}

impl Actor for Conversation {
    type Msg = ConversationMsg;
    type State = ConversationState;
    type Arguments = ();

    async fn pre_start(
        &self,
        _: ActorRef<ConversationMsg>,
        (): (),
    ) -> Result<ConversationState, ActorProcessingErr> {
        Ok(ConversationState::default())
    }

    async fn handle(
        &self,
        myself: ActorRef<ConversationMsg>,
        msg: ConversationMsg,
        state: &mut ConversationState,
    ) -> Result<(), ActorProcessingErr> {
        match msg {
            ConversationMsg::Prompt(prompt) => self.prompt(&myself, state, prompt).await,
            ConversationMsg::Cancel => Self::cancel(state),
            ConversationMsg::Over { transcript, reply } => self.over(&myself, state, transcript, reply).await,
            ConversationMsg::Retire => self.retire(&myself, state).await,
            ConversationMsg::Wake => self.wake(&myself, state).await,
            ConversationMsg::Quiet { turn } => self.quiet(&myself, state, turn).await,
        }
        Ok(())
    }
}

impl Conversation {
    async fn prompt(
        &self,
        myself: &ActorRef<ConversationMsg>,
        state: &mut ConversationState,
        prompt: Prompt,
    ) {
        if state.waiting.len() >= WAITING_MAX {
            let said =
                format!("{WAITING_MAX} messages wait in this session already; wait for an answer first");
            send(prompt.answer, Reply::Failed(RpcError::new(code::OVERLOADED, said)));
            return;
        }
        state.ending = false;
        if let Some(Running { answer: None, cancel }) = &state.running {
            cancel.cancel();
        }
        state.waiting.push_back(prompt);
        self.next(myself, state).await;
    }

    fn cancel(state: &ConversationState) {
        if let Some(running) = &state.running {
            running.cancel.cancel();
        }
    }

    async fn over(
        &self,
        myself: &ActorRef<ConversationMsg>,
        state: &mut ConversationState,
        transcript: Option<Box<Transcript>>,
        reply: Reply,
    ) {
        state.transcript = transcript;
        let answer = state.running.take().and_then(|running| running.answer);
        let was_asked_for = answer.is_some();
        if let Some(answer) = answer {
            send(answer, reply);
        }
        self.next(myself, state).await;
        if state.running.is_none() {
            self.rest(myself, state, was_asked_for).await;
        }
    }

    async fn retire(&self, myself: &ActorRef<ConversationMsg>, state: &mut ConversationState) {
        state.ending = true;
        if state.running.is_none() {
            self.rest(myself, state, true).await;
        }
    }

    /// Nothing is under way and nothing waits. Where something was said since the last time, it is looked back on: now
    /// where the session ends, else after a quiet time. What just was looked back on is not, whatever came of it.
    async fn rest(&self, myself: &ActorRef<ConversationMsg>, state: &mut ConversationState, look: bool) {
        let is_due = look && self.due(state).await != Due::Nothing;
        match (is_due, state.ending) {
            (true, true) => self.look_back(myself, state),
            (true, false) => {
                let turn = state.turns;
                // one that comes too late names a turn that is not the last, and is passed over
                myself.send_after(self.mind.reflect.after.unsigned_abs(), move || ConversationMsg::Quiet {
                    turn,
                });
            }
            (false, true) => myself.stop(None),
            (false, false) => {}
        }
    }

    async fn wake(&self, myself: &ActorRef<ConversationMsg>, state: &mut ConversationState) {
        if state.running.is_some() {
            return;
        }
        match self.due(state).await {
            Due::Resume(_) => self.look_back(myself, state),
            Due::Fresh { .. } | Due::Nothing => self.rest(myself, state, true).await,
        }
    }

    async fn quiet(&self, myself: &ActorRef<ConversationMsg>, state: &mut ConversationState, turn: u64) {
        if turn == state.turns && state.running.is_none() && self.due(state).await != Due::Nothing {
            self.look_back(myself, state);
        }
    }

    /// What there is to look back on by itself, where that is wanted.
    async fn due(&self, state: &mut ConversationState) -> Due {
        if !self.mind.reflect.enabled {
            return Due::Nothing;
        }
        match self.transcript(state).await {
            Ok(transcript) => {
                let due = due(&transcript, BY_ITSELF);
                state.transcript = Some(transcript);
                due
            }
            // whoever uses the session next is told
            Err(_) => Due::Nothing,
        }
    }

    /// Looks back without being asked. The session was read to see that something is due.
    fn look_back(&self, myself: &ActorRef<ConversationMsg>, state: &mut ConversationState) {
        let Some(transcript) = state.transcript.take() else { return };
        let (mind, cancel) = (self.mind.clone(), CancellationToken::new());
        let task = looked_back_by_itself(mind, transcript, cancel.clone());
        Self::begin(myself, state, Running { answer: None, cancel }, task);
    }

    /// The session, held or read.
    async fn transcript(&self, state: &mut ConversationState) -> Result<Box<Transcript>, SessionError> {
        match state.transcript.take() {
            Some(transcript) => Ok(transcript),
            None => self.read().await.map(Box::new),
        }
    }

    /// Begins the next waiting turn, where none is under way.
    async fn next(&self, myself: &ActorRef<ConversationMsg>, state: &mut ConversationState) {
        while state.running.is_none() {
            let Some(prompt) = state.waiting.pop_front() else { return };
            let transcript = match self.transcript(state).await {
                Ok(transcript) => transcript,
                Err(error) => {
                    send(prompt.answer, Reply::Failed(not_found_or_failed(&error)));
                    continue;
                }
            };
            if let Some(TurnState::Ended { stop_reason, error }) = transcript.turn(&prompt.request) {
                let reply = outcome(&prompt.request, stop_reason, error.as_deref());
                state.transcript = Some(transcript);
                send(prompt.answer, reply);
                continue;
            }
            let cancel = CancellationToken::new();
            let task = Task {
                mind: self.mind.clone(),
                transcript,
                request: prompt.request,
                what: prompt.what,
                cancel: cancel.clone(),
            };
            Self::begin(myself, state, Running { answer: Some(prompt.answer), cancel }, task.run());
        }
    }

    /// Begins something in a task of its own, whose end is told to `myself`.
    fn begin(
        myself: &ActorRef<ConversationMsg>,
        state: &mut ConversationState,
        running: Running,
        task: impl Future<Output = (Box<Transcript>, Reply)> + Send + 'static,
    ) {
        state.turns += 1;
        state.running = Some(running);
        let told = myself.clone();
        tokio::spawn(async move {
            let over = match tokio::spawn(task).await {
                Ok((transcript, reply)) => ConversationMsg::Over { transcript: Some(transcript), reply },
                Err(error) => {
                    warn!(%error, "a turn failed in a way that is a bug");
                    let failed =
                        RpcError::new(code::INTERNAL, "the turn failed inside; the agent's log says how");
                    ConversationMsg::Over { transcript: None, reply: Reply::Failed(failed) }
                }
            };
            let _ = told.cast(over);
        });
    }

    async fn read(&self) -> Result<Transcript, SessionError> {
        let (catalog, session) = (self.mind.catalog.clone(), self.session.clone());
        let reading = tokio::task::spawn_blocking(move || catalog.read(&session));
        reading.await.expect("reading a session does not panic")
    }
}

/// One turn of a conversation, with everything it needs.
struct Task {
    mind: Arc<Mind>,
    transcript: Box<Transcript>,
    request: RequestId,
    what: Asked,
    cancel: CancellationToken,
}

impl Task {
    async fn run(mut self) -> (Box<Transcript>, Reply) {
        let voice = Voice::new(self.mind.notices.clone(), &self.transcript.header.id, &self.request);
        let done = match self.what.clone() {
            Asked::Say(text) => self.turn(&voice, &text).await.map(|ended| ended.stop),
            Asked::LookBack => self.look_back(&voice).await,
        };
        let (stop, error) = match done {
            Ok(stop) => (stop_reason(stop), None),
            Err(error) => {
                let said = chain(&error);
                info!(request = %self.request, error = said, "turn failed");
                ("error".to_owned(), Some(said))
            }
        };
        let now = self.mind.now();
        self.mind.spent.turn(&self.mind, &self.transcript);
        if let Err(error) = self.transcript.ended(&self.request, &stop, error.as_deref(), now).await {
            // the answer was given; asked again after a death it would be given again
            warn!(request = %self.request, error = chain(&error), "the end of a turn could not be written down");
        }
        let reply = outcome(&self.request, &stop, error.as_deref());
        (self.transcript, reply)
    }

    /// Looks back, and says what came of it. Asked for again after a death, what was begun goes on.
    async fn look_back(&mut self, voice: &Voice) -> Result<acp::StopReason, TaskError> {
        voice.heard(LOOK_BACK);
        let outcome = look_back(&self.mind, &mut self.transcript, ON_REQUEST, &self.cancel).await?;
        voice.note(&format!("{}\n", outcome.said()));
        Ok(if outcome.gave_way { acp::StopReason::Cancelled } else { acp::StopReason::EndTurn })
    }

    async fn turn(&mut self, voice: &Voice, text: &str) -> Result<Ended, TaskError> {
        if self.transcript.turn(&self.request).is_some() {
            info!(request = %self.request, "taking up a turn of an earlier life");
            voice.note("\n[the agent was restarted in the middle of this reply, and begins it again]\n");
        } else {
            let message = Message::user(text);
            self.transcript
                .say(message, Some(&self.request), self.mind.now())
                .await
                .map_err(TurnError::from)?;
            voice.heard(text);
        }
        birth::ensure(&self.mind).await?;
        let work = Work {
            request: self.request.clone(),
            run: None,
            tools: None,
            rounds_max: ROUNDS_MAX,
            tokens_max: None,
            looks_back_on: [].into(),
            looks_back_from: 0,
            is_part: false,
            in_parts: Arc::default(),
        };
        Ok(think::run(&self.mind, &mut self.transcript, &work, voice, &self.cancel).await?)
    }
}

#[derive(Debug, thiserror::Error)]
enum TaskError {
    #[error(transparent)]
    Unborn(#[from] birth::BirthError),
    #[error(transparent)]
    Turn(#[from] TurnError),
    #[error(transparent)]
    Reflect(#[from] ReflectError),
}

/// One look back that nobody asked for. Whoever is attached is told where too little came of it.
async fn looked_back_by_itself(
    mind: Arc<Mind>,
    mut transcript: Box<Transcript>,
    cancel: CancellationToken,
) -> (Box<Transcript>, Reply) {
    match look_back(&mind, &mut transcript, BY_ITSELF, &cancel).await {
        Ok(outcome) => {
            if let Some(said) = outcome.unasked() {
                let voice = Voice::new(mind.notices.clone(), &transcript.header.id, &RequestId::fresh());
                voice.note(&format!("\n{said}\n"));
            }
        }
        Err(error) => {
            warn!(session = transcript.header.id, error = chain(&error), "a session was not looked back on");
        }
    }
    (transcript, Reply::Relayed(serde_json::Value::Null))
}

/// The answer to a prompt whose turn is over, the same whenever it is asked for.
fn outcome(request: &RequestId, stop_reason: &str, error: Option<&str>) -> Reply {
    if let Some(error) = error {
        return Reply::Failed(RpcError::new(code::INTERNAL, error));
    }
    Reply::Relayed(json!({"stopReason": stop_reason, "_meta": {"lisa": {"messageId": request}}}))
}

/// A stop reason in the protocol's words.
pub(crate) fn stop_reason(stop: acp::StopReason) -> String {
    match json!(stop) {
        serde_json::Value::String(reason) => reason,
        _ => unreachable!("a stop reason is a word"),
    }
}

/// What a client is told about a session that cannot be used.
pub(crate) fn not_found_or_failed(error: &SessionError) -> RpcError {
    let code = match error {
        SessionError::Unknown { .. } => code::NOT_FOUND,
        SessionError::BadName { .. } => code::INVALID_PARAMS,
        SessionError::Busy { .. } => code::OVERLOADED,
        SessionError::NoHeader { .. } | SessionError::Io { .. } => code::INTERNAL,
    };
    RpcError::new(code, chain(error))
}

fn send(answer: RpcReplyPort<Reply>, reply: Reply) {
    // whoever asked may have gone; the outcome is in the session
    let _ = answer.send(reply);
}
