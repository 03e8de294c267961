//! One session as an actor: its turns run one after another, whoever asks for them.
//!
//! ```text
//!  Prompt ─▶ waiting ─▶ running (a task of its own, so that a cancel is heard meanwhile) ─▶ Over ─▶ answered, next
//! ```

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
    session::{SessionError, Transcript, TurnState},
    think::{self, Ended, TurnError, Work},
    voice::Voice,
};

/// How many prompts may wait for the one under way.
const WAITING_MAX: usize = 8;

/// What a conversation is asked and told.
#[derive(Debug)]
pub(crate) enum ConversationMsg {
    /// A person says something.
    Prompt(Prompt),
    /// Whatever is under way should end.
    Cancel,
    /// The turn under way is over; nothing comes back when its task failed.
    Over { transcript: Option<Box<Transcript>>, reply: Reply },
    /// Nobody has asked for long: end, unless something is under way.
    Retire,
}

/// One thing a person says.
#[derive(Debug)]
pub(crate) struct Prompt {
    pub(crate) request: RequestId,
    pub(crate) text: String,
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
}

#[derive(Debug)]
struct Running {
    answer: RpcReplyPort<Reply>,
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
            ConversationMsg::Retire => Self::retire(&myself, state),
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
        if let Some(running) = state.running.take() {
            send(running.answer, reply);
        }
        self.next(myself, state).await;
    }

    fn retire(myself: &ActorRef<ConversationMsg>, state: &ConversationState) {
        if state.running.is_none() && state.waiting.is_empty() {
            myself.stop(None);
        }
    }

    /// Begins the next waiting turn, where none is under way.
    async fn next(&self, myself: &ActorRef<ConversationMsg>, state: &mut ConversationState) {
        while state.running.is_none() {
            let Some(prompt) = state.waiting.pop_front() else { return };
            let transcript = match state.transcript.take() {
                Some(transcript) => transcript,
                None => match self.read().await {
                    Ok(transcript) => Box::new(transcript),
                    Err(error) => {
                        send(prompt.answer, Reply::Failed(not_found_or_failed(&error)));
                        continue;
                    }
                },
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
                text: prompt.text,
                cancel: cancel.clone(),
            };
            state.running = Some(Running { answer: prompt.answer, cancel });
            let told = myself.clone();
            tokio::spawn(async move {
                let over = match tokio::spawn(task.run()).await {
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
    text: String,
    cancel: CancellationToken,
}

impl Task {
    async fn run(mut self) -> (Box<Transcript>, Reply) {
        let voice = Voice::new(self.mind.notices.clone(), &self.transcript.header.id, &self.request);
        let (stop, error) = match self.turn(&voice).await {
            Ok(ended) => (stop_reason(ended.stop), None),
            Err(error) => {
                let said = chain(&error);
                info!(request = %self.request, error = said, "turn failed");
                ("error".to_owned(), Some(said))
            }
        };
        let now = self.mind.now();
        if let Err(error) = self.transcript.ended(&self.request, &stop, error.as_deref(), now).await {
            // the answer was given; asked again after a death it would be given again
            warn!(request = %self.request, error = chain(&error), "the end of a turn could not be written down");
        }
        let reply = outcome(&self.request, &stop, error.as_deref());
        (self.transcript, reply)
    }

    async fn turn(&mut self, voice: &Voice) -> Result<Ended, TaskError> {
        if self.transcript.turn(&self.request).is_some() {
            info!(request = %self.request, "taking up a turn of an earlier life");
            voice.note("\n[the agent was restarted in the middle of this reply, and begins it again]\n");
        } else {
            let message = Message::user(&self.text);
            self.transcript
                .say(message, Some(&self.request), self.mind.now())
                .await
                .map_err(TurnError::from)?;
            voice.heard(&self.text);
        }
        birth::ensure(&self.mind).await?;
        let work = Work { request: self.request.clone(), run: None, tools: None };
        Ok(think::run(&self.mind, &mut self.transcript, &work, voice, &self.cancel).await?)
    }
}

#[derive(Debug, thiserror::Error)]
enum TaskError {
    #[error(transparent)]
    Unborn(#[from] birth::BirthError),
    #[error(transparent)]
    Turn(#[from] TurnError),
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
        SessionError::NoHeader { .. } | SessionError::Io { .. } => code::INTERNAL,
    };
    RpcError::new(code, chain(error))
}

fn send(answer: RpcReplyPort<Reply>, reply: Reply) {
    // whoever asked may have gone; the outcome is in the session
    let _ = answer.send(reply);
}
