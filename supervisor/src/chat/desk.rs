//! The desk: takes a client's request, asks whoever knows, and sees to it that an answer comes.
//!
//! A prompt is asked under one request id as often as it takes: when the agent dies with it, the next life finds the
//! message in the session and takes the turn up. After [`PROMPT_ATTEMPTS_MAX`] lives, or when the agent will not come
//! back, the prompt still ends, with a plain statement.

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use ipc::{
    acp,
    client::{AskError, Client, News, Patience},
    contract::{
        Contract,
        agent::{self, Agent},
        chat::{EventsSince, kind},
        from_frame,
        heartbeat::Heartbeat,
        model,
        soul::{self, Soul},
    },
    hello::Role,
    id::RequestId,
    wire::{Id, Message, Notification, Request, Response, RpcError, code},
};
use ractor::{ActorRef, call_t};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tracing::info;

use super::{
    clerk::ClerkMsg,
    hub::{ClientId, HubMsg},
    lifeline,
    route::{Relay, Route, route},
};
use crate::{
    board::{Board, fields, resident_bytes},
    house::HouseMsg,
};

/// On how many lives of the agent a prompt is asked before it is given up.
const PROMPT_ATTEMPTS_MAX: u32 = 3;
/// The longest a turn may take; what ends a turn sooner is the agent's business.
const PROMPT_PATIENCE: Duration = Duration::from_hours(24);
/// How long anything else may take.
const PATIENCE: Duration = Duration::from_secs(15);
/// How long a run of her own time may take, all its tasks together.
const RUN_PATIENCE: Duration = Duration::from_mins(30);
/// How long our own actors may take, in milliseconds.
const ACTOR_PATIENCE_MS: u64 = 5_000;

/// How long trying a chain of models may take: one that has to be loaded first takes minutes.
const MODEL_PATIENCE: Duration = Duration::from_mins(15);
/// How long a look through the whole repository may take.
const CHECK_PATIENCE: Duration = Duration::from_mins(1);

/// Who asks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer {
    /// Which connection.
    pub(crate) client: ClientId,
    /// Whether a person started it.
    pub(crate) person: bool,
}

/// Everything an answer may need.
#[derive(Debug)]
pub(crate) struct Desk {
    pub(crate) agent: Client<Agent>,
    pub(crate) soul: Client<Soul>,
    pub(crate) heartbeat: Client<Heartbeat>,
    pub(crate) board: watch::Receiver<Board>,
    pub(crate) house: ActorRef<HouseMsg>,
    pub(crate) hub: ActorRef<HubMsg>,
    /// Into the pump, behind the updates that came before.
    pub(crate) answers: mpsc::Sender<HubMsg>,
}

/// Carries what the agent tells to the hub, updates before the answers that came after them: an answer is put into its
/// channel only when everything the agent said before it is already in the other.
pub(crate) async fn pump(
    mut news: mpsc::Receiver<News<Agent>>,
    mut answers: mpsc::Receiver<HubMsg>,
    clerk: mpsc::Sender<ClerkMsg>,
    hub: ActorRef<HubMsg>,
) {
    loop {
        let msg = tokio::select! {
            biased;
            Some(told) = news.recv() => match told {
                News::Notice(agent::Notice::Update { session, audience, turn, acp, params }) => {
                    HubMsg::Update { session, audience, turn, method: acp, params }
                }
                // a clerk who has too much to do is told again
                News::Notice(agent::Notice::Ask(ask)) => {
                    let _ = clerk.try_send(ClerkMsg::Asked(Box::new(ask)));
                    continue;
                }
                News::Notice(agent::Notice::Settled { ask }) => {
                    let _ = clerk.try_send(ClerkMsg::Settled(ask));
                    continue;
                }
                News::Up(_) | News::Down => continue,
            },
            Some(answer) = answers.recv() => answer,
            else => return,
        };
        if hub.cast(msg).is_err() {
            return;
        }
    }
}

impl Desk {
    /// Takes a request: what concerns the envelope is done before this returns, the answer comes from the future.
    pub(crate) fn take(
        self: Arc<Self>,
        peer: Peer,
        request: Request,
        queue: mpsc::Sender<Message>,
    ) -> BoxFuture<'static, ()> {
        let Request { id, method, params } = request;
        match route(&method, &params) {
            Route::Agent(relay) => self.relay(peer.client, id, method, params, relay, queue),
            route => Box::pin(async move {
                let outcome = self.answer(peer, route, &method, params).await;
                // the client may have left
                let _ = queue.send(Message::response(id, outcome)).await;
            }),
        }
    }

    /// Hears a notification; `session/cancel` is the one there is.
    pub(crate) fn hear(self: &Arc<Self>, client: ClientId, note: Notification) -> BoxFuture<'static, ()> {
        let desk = self.clone();
        Box::pin(async move {
            if let Route::Agent(_) = route(&note.method, &note.params) {
                let request = agent::Request::Relay { acp: note.method, params: note.params };
                if let Err(error) = desk.agent.ask(&request, PATIENCE).await {
                    info!(client, %error, "a notification did not arrive");
                }
            }
        })
    }

    /// Hears an answer of a client to something it was asked.
    pub(crate) async fn heard(self: Arc<Self>, client: ClientId, response: Response) {
        // waited for, so that whoever answers without end waits on the wire
        let _ = call_t!(self.hub, |done| HubMsg::Answered { client, response, done }, ACTOR_PATIENCE_MS);
    }

    async fn answer(&self, peer: Peer, route: Route, method: &str, params: Value) -> Result<Value, RpcError> {
        match route {
            Route::Initialize => initialize(params),
            Route::Status => self.status().await,
            Route::Events => self.events(peer.client, params).await,
            Route::Soul => {
                let request = lend(read::<Soul>(&params)?, peer.person);
                let patience =
                    if matches!(request, soul::Request::Check { .. }) { CHECK_PATIENCE } else { PATIENCE };
                self.ask(Role::Soul, &self.soul, request, patience).await
            }
            Route::Heartbeat => {
                self.ask(Role::Heartbeat, &self.heartbeat, read::<Heartbeat>(&params)?, RUN_PATIENCE).await
            }
            Route::Model => {
                let asked: model::Request = read_words(&params)?;
                let request = agent::Request::Model(lend_model(asked, peer.person));
                match self.ask_reply(Role::Agent, &self.agent, request, MODEL_PATIENCE).await? {
                    agent::Reply::Model(reply) => to_value(&reply),
                    agent::Reply::Refused { reason } => Err(RpcError::new(code::INVALID_PARAMS, reason)),
                    agent::Reply::Failed(error) => Err(error),
                    agent::Reply::Relayed(_)
                    | agent::Reply::Replayed { .. }
                    | agent::Reply::Pursued(_)
                    | agent::Reply::Decided { .. }
                    | agent::Reply::Drained { .. }
                    | agent::Reply::Status(_) => Err(internal("the agent answered another question")),
                }
            }
            Route::Stop => {
                self.house.cast(HouseMsg::Stop { by: "a client" }).map_err(internal)?;
                Ok(Value::Null)
            }
            Route::Agent(_) | Route::Nobody => {
                Err(RpcError::new(code::METHOD_NOT_FOUND, format!("nobody here answers `{method}`")))
            }
        }
    }

    async fn status(&self) -> Result<Value, RpcError> {
        let clients =
            call_t!(self.hub, |answer| HubMsg::Count { answer }, ACTOR_PATIENCE_MS).map_err(internal)?;
        let status = self.board.borrow().status(clients, std::time::Instant::now(), resident_bytes);
        to_value(&status)
    }

    async fn events(&self, client: ClientId, params: Value) -> Result<Value, RpcError> {
        let since: EventsSince = if params.is_null() { EventsSince::default() } else { from_params(params)? };
        let events =
            call_t!(self.house, |answer| HouseMsg::Events { client, since, answer }, ACTOR_PATIENCE_MS);
        to_value(&events.map_err(internal)?)
    }

    /// Asks a process in the words of its contract, as the client put them.
    async fn ask<C: Contract>(
        &self,
        role: Role,
        of: &Client<C>,
        request: C::Request,
        patience: Duration,
    ) -> Result<Value, RpcError> {
        to_value(&self.ask_reply(role, of, request, patience).await?)
    }

    async fn ask_reply<C: Contract>(
        &self,
        role: Role,
        of: &Client<C>,
        request: C::Request,
        patience: Duration,
    ) -> Result<C::Reply, RpcError> {
        tokio::select! {
            reply = of.ask(&request, patience) => reply.map_err(away),
            why = self.no_use_asking(role) => Err(RpcError::new(code::AWAY, why)),
        }
    }

    /// Waits until it is certain that a process will not answer, and says why.
    async fn no_use_asking(&self, role: Role) -> String {
        let mut board = self.board.clone();
        let told = board.wait_for(|board| board.no_use_asking(role).is_some()).await;
        told.ok().and_then(|board| board.no_use_asking(role)).unwrap_or_else(|| "Lisa has stopped".to_owned())
    }

    fn relay(
        self: Arc<Self>,
        client: ClientId,
        id: Id,
        method: String,
        params: Value,
        relay: Relay,
        queue: mpsc::Sender<Message>,
    ) -> BoxFuture<'static, ()> {
        let request_id = RequestId::fresh();
        let envelope = match &relay {
            Relay::New | Relay::Plain => None,
            Relay::Attach { session } => Some(HubMsg::Attach { client, session: session.clone() }),
            Relay::Detach { session } => Some(HubMsg::Detach { client, session: session.clone() }),
            Relay::Prompt { session } => {
                Some(HubMsg::Prompted { client, request: request_id.clone(), session: session.clone() })
            }
        };
        if let Some(envelope) = envelope {
            let _ = self.hub.cast(envelope);
        }
        let request = agent::Request::Relay { acp: method, params };
        Box::pin(async move {
            let patience = match relay {
                Relay::Prompt { .. } => {
                    Patience { deadline: PROMPT_PATIENCE, attempts_max: PROMPT_ATTEMPTS_MAX }
                }
                Relay::New | Relay::Plain | Relay::Attach { .. } | Relay::Detach { .. } => {
                    Patience::of(PATIENCE)
                }
            };
            let asked = tokio::select! {
                biased;
                reply = self.agent.ask_as(request_id.clone(), &request, patience) => reply.map_err(|error| error.to_string()),
                why = self.no_use_asking(Role::Agent) => Err(why),
                // a turn is built on who she is
                why = self.no_use_asking(Role::Soul), if matches!(relay, Relay::Prompt { .. }) => Err(why),
            };
            let outcome = match asked {
                Ok(agent::Reply::Relayed(result)) => Ok(result),
                Ok(agent::Reply::Replayed { updates, result }) => {
                    for update in updates {
                        // at the client's own pace: a long past must not look like a client that does not read
                        if queue.send(Message::notification("session/update", update)).await.is_err() {
                            return;
                        }
                    }
                    Ok(result)
                }
                Ok(agent::Reply::Failed(error)) => Err(error),
                Ok(agent::Reply::Refused { reason }) => Err(RpcError::new(code::INVALID_PARAMS, reason)),
                Ok(
                    agent::Reply::Pursued(_)
                    | agent::Reply::Status(_)
                    | agent::Reply::Model(_)
                    | agent::Reply::Decided { .. }
                    | agent::Reply::Drained { .. },
                ) => Err(RpcError::new(code::INTERNAL, "the agent answered another question")),
                Err(why) => match &relay {
                    Relay::Prompt { session } => Ok(self.interrupt(session, &request_id, &why).await),
                    Relay::New | Relay::Plain | Relay::Attach { .. } | Relay::Detach { .. } => {
                        Err(RpcError::new(code::AWAY, why))
                    }
                },
            };
            if let (Relay::New, Ok(result)) = (&relay, &outcome)
                && let Some(session) = result.get("sessionId").and_then(Value::as_str)
            {
                let attach = HubMsg::Attach { client, session: session.to_owned() };
                let _ = self.answers.send(attach).await;
            }
            let message = Message::response(id, outcome);
            let _ = self.answers.send(HubMsg::Answer { client, request: request_id, message }).await;
        })
    }

    /// Ends a prompt that nobody will answer: a statement in the session, and a stop reason every client knows.
    async fn interrupt(&self, session: &str, turn: &RequestId, why: &str) -> Value {
        let said = format!(
            "\n[interrupted: {why}. What you said is kept in the session; say it again when Lisa is back.]\n"
        );
        let update = HubMsg::Update {
            session: session.to_owned(),
            audience: agent::Audience::Everybody,
            turn: Some(turn.clone()),
            method: "session/update".to_owned(),
            params: lifeline::update(session, &lifeline::note(&said)),
        };
        let _ = self.answers.send(update).await;
        let fields = fields([("session", json!(session)), ("why", json!(why))]);
        let _ = self.house.cast(HouseMsg::Record { kind: kind::PROMPT_INTERRUPTED, fields });
        let meta: acp::Meta =
            [("lisa".to_owned(), json!({"interrupted": true, "why": why}))].into_iter().collect();
        json!(acp::PromptResponse::new(acp::StopReason::EndTurn).meta(meta))
    }
}

/// Reads a question in the words of a contract.
fn read<C: Contract>(params: &Value) -> Result<C::Request, RpcError> {
    read_words(params)
}

fn read_words<T: serde::de::DeserializeOwned>(params: &Value) -> Result<T, RpcError> {
    let method = params.get("method").and_then(Value::as_str).unwrap_or_default();
    from_frame(method, params.get("params").cloned().unwrap_or_default())
}

/// Lends a person's authority to a question; what the client itself says about that counts for nothing.
fn lend(mut request: soul::Request, person: bool) -> soul::Request {
    match &mut request {
        soul::Request::Rollback(asked) => asked.human = person,
        soul::Request::Check { human, .. } => *human = person,
        soul::Request::Edit(edit) => edit.human = person,
        soul::Request::Rate(rate) => rate.human = person,
        soul::Request::Status
        | soul::Request::Snapshot
        | soul::Request::Drives
        | soul::Request::Tools
        | soul::Request::Call(_)
        | soul::Request::Conceive
        | soul::Request::Birth(_)
        | soul::Request::OpenRun { .. }
        | soul::Request::Read { .. }
        | soul::Request::History { .. }
        | soul::Request::Diff { .. }
        | soul::Request::Why { .. }
        | soul::Request::Objections { .. }
        | soul::Request::Candidates
        | soul::Request::Notes { .. }
        | soul::Request::Surfaced(_)
        | soul::Request::Look => {}
    }
    request
}

/// The same for a question about the model, of which a change is a person's.
fn lend_model(mut request: model::Request, person: bool) -> model::Request {
    match &mut request {
        model::Request::Use { human, .. } => *human = person,
        model::Request::List | model::Request::Test { .. } => {}
    }
    request
}

/// Says what the chat socket can do, whatever the processes behind it are doing.
fn initialize(params: Value) -> Result<Value, RpcError> {
    let _asked: acp::InitializeRequest = from_params(params)?;
    let capabilities = acp::AgentCapabilities::new().load_session(true).session_capabilities(
        acp::SessionCapabilities::new()
            .list(acp::SessionListCapabilities::new())
            .resume(acp::SessionResumeCapabilities::new())
            .close(acp::SessionCloseCapabilities::new()),
    );
    let response = acp::InitializeResponse::new(ipc::ACP_VERSION)
        .agent_capabilities(capabilities)
        .agent_info(acp::Implementation::new("lisa", ipc::BUILD).title("Lisa".to_owned()));
    to_value(&response)
}

fn from_params<T: serde::de::DeserializeOwned>(params: Value) -> Result<T, RpcError> {
    serde_json::from_value(params)
        .map_err(|error| RpcError::new(code::INVALID_PARAMS, format!("the parameters do not fit: {error}")))
}

fn to_value(answer: &impl Serialize) -> Result<Value, RpcError> {
    serde_json::to_value(answer).map_err(internal)
}

fn internal(error: impl std::fmt::Display) -> RpcError {
    RpcError::new(code::INTERNAL, error.to_string())
}

fn away(error: AskError) -> RpcError {
    match error {
        AskError::Failed { error, .. } => error,
        AskError::Overloaded { .. } => RpcError::new(code::OVERLOADED, error.to_string()),
        AskError::Late { .. } | AskError::Lost { .. } => RpcError::new(code::AWAY, error.to_string()),
    }
}

/// What the soul tells, to the house.
pub(crate) async fn hear_soul(
    mut news: mpsc::Receiver<News<Soul>>,
    soul: Client<Soul>,
    house: ActorRef<HouseMsg>,
) {
    while let Some(told) = news.recv().await {
        let msg = match told {
            News::Notice(soul::Notice::Changed(changed)) => HouseMsg::Changed(changed),
            News::Up(_) => match soul.ask(&soul::Request::Status, PATIENCE).await {
                Ok(soul::Reply::Status(status)) => HouseMsg::Soul(status),
                Ok(_) | Err(_) => continue,
            },
            News::Down => continue,
        };
        if house.cast(msg).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whether_a_person_asks_is_not_for_the_client_to_say() {
        for person in [true, false] {
            let asked = json!({"method": "check", "params": {"repair": true, "human": !person}});
            let lent = lend(read::<Soul>(&asked).unwrap(), person);
            assert_eq!(lent, soul::Request::Check { repair: true, human: person });
            let asked =
                json!({"method": "rollback", "params": {"commit": "abcd", "apply": true, "human": !person}});
            let soul::Request::Rollback(lent) = lend(read::<Soul>(&asked).unwrap(), person) else { panic!() };
            assert_eq!(lent.human, person);
            let asked = json!({"method": "use", "params": {"name": "m", "human": !person}});
            let lent = lend_model(read_words(&asked).unwrap(), person);
            assert_eq!(lent, model::Request::Use { name: "m".into(), untested: false, human: person });
        }
    }
}
