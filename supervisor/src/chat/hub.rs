//! The hub: who is attached to what, and what each of them is sent, in order.
//!
//! It never waits for a client. One whose queue is full does not read; it is let go, and finds everything again by
//! coming back: sessions are on disk, events are numbered (B19).

use std::collections::{BTreeMap, BTreeSet};

use ipc::{
    contract::{
        agent::Audience,
        approval::Ask,
        chat::{self, Event, kind},
    },
    id::RequestId,
    wire::{Id, Message, Response, RpcError, code},
};
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::{
    asks::{Act, Asks},
    clerk::ClerkMsg,
    lifeline::{Restart, Sight, sight, update},
};
use crate::{board::fields, house::HouseMsg};

/// How many sessions one client may be attached to; the one it attached to first gives way.
const SESSIONS_MAX: usize = 64;

/// Which connection.
pub(crate) type ClientId = u64;

/// What the hub is told and asked.
#[derive(Debug)]
pub(crate) enum HubMsg {
    /// The house stands, who writes events down, and the clerk, who tells the agent what was decided.
    Meet { house: ActorRef<HouseMsg>, clerk: mpsc::Sender<ClerkMsg> },
    /// Somebody came; `person` may decide, and `gone` ends the connection.
    Joined { client: ClientId, person: bool, queue: mpsc::Sender<Message>, gone: CancellationToken },
    /// Somebody left.
    Left { client: ClientId },
    /// A client wants to hear events.
    Follow { client: ClientId },
    /// A client wants to hear a session.
    Attach { client: ClientId, session: String },
    /// It no longer does.
    Detach { client: ClientId, session: String },
    /// A turn is under way.
    Prompted { client: ClientId, request: RequestId, session: String },
    /// News of a session.
    Update { session: String, audience: Audience, turn: Option<RequestId>, method: String, params: Value },
    /// The answer to a client's request, in its place behind the updates before it.
    Answer { client: ClientId, request: RequestId, message: Message },
    /// A call waits for a person's word, perhaps told again.
    Asked(Box<Ask>),
    /// It does no longer.
    Settled { ask: RequestId },
    /// A client answers something it was asked.
    Answered { client: ClientId, response: Response, done: RpcReplyPort<()> },
    /// Something happened.
    Event(Event),
    /// How many are attached.
    Count { answer: RpcReplyPort<u64> },
}

/// Stateless; everything is in [`HubState`].
#[derive(Debug)]
pub(crate) struct Hub;

/// Who is attached, and what is under way.
#[derive(Debug, Default)]
pub(crate) struct HubState {
    clients: BTreeMap<ClientId, Client>,
    prompts: BTreeMap<RequestId, Prompt>,
    restarts: BTreeSet<(Restart, String)>,
    asks: Asks,
    house: Option<ActorRef<HouseMsg>>,
    clerk: Option<mpsc::Sender<ClerkMsg>>,
}

#[derive(Debug)]
struct Client {
    queue: mpsc::Sender<Message>,
    gone: CancellationToken,
    person: bool,
    follows: bool,
    sessions: Vec<String>,
}

#[derive(Debug)]
struct Prompt {
    client: ClientId,
    session: String,
}

impl Actor for Hub {
    type Msg = HubMsg;
    type State = HubState;
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<HubMsg>, (): ()) -> Result<HubState, ActorProcessingErr> {
        Ok(HubState::default())
    }

    async fn handle(
        &self,
        _: ActorRef<HubMsg>,
        msg: HubMsg,
        state: &mut HubState,
    ) -> Result<(), ActorProcessingErr> {
        match msg {
            HubMsg::Meet { house, clerk } => (state.house, state.clerk) = (Some(house), Some(clerk)),
            HubMsg::Joined { client, person, queue, gone } => state.joined(client, person, queue, gone),
            HubMsg::Left { client } => state.left(client),
            HubMsg::Follow { client } => state.follow(client),
            HubMsg::Attach { client, session } => state.attach(client, &session),
            HubMsg::Detach { client, session } => state.detach(client, &session),
            HubMsg::Prompted { client, request, session } => state.prompted(client, request, session),
            HubMsg::Update { session, audience, turn, method, params } => {
                state.update(&session, &audience, turn.as_ref(), &method, params);
            }
            HubMsg::Answer { client, request, message } => state.answer(client, &request, message),
            HubMsg::Asked(ask) => state.asked(*ask),
            HubMsg::Settled { ask } => {
                let acts = state.asks.settled(&ask);
                state.act(acts);
            }
            HubMsg::Answered { client, response, done } => {
                state.answered(client, response);
                let _ = done.send(());
            }
            HubMsg::Event(event) => state.event(&event),
            HubMsg::Count { answer } => {
                let _ = answer.send(state.clients.len() as u64);
            }
        }
        Ok(())
    }
}

impl HubState {
    fn joined(
        &mut self,
        client: ClientId,
        person: bool,
        queue: mpsc::Sender<Message>,
        gone: CancellationToken,
    ) {
        self.clients.insert(client, Client { queue, gone, person, follows: false, sessions: Vec::new() });
    }

    fn left(&mut self, client: ClientId) {
        self.asks.left(client, None);
        self.clients.remove(&client);
    }

    fn follow(&mut self, client: ClientId) {
        if let Some(client) = self.clients.get_mut(&client) {
            client.follows = true;
        }
    }

    fn attach(&mut self, id: ClientId, session: &str) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        client.sessions.retain(|attached| attached != session);
        if client.sessions.len() >= SESSIONS_MAX {
            client.sessions.remove(0);
        }
        client.sessions.push(session.to_owned());
        if client.person {
            let acts = self.asks.attached(id, session);
            self.act(acts);
        }
    }

    fn detach(&mut self, client: ClientId, session: &str) {
        self.asks.left(client, Some(session));
        if let Some(client) = self.clients.get_mut(&client) {
            client.sessions.retain(|attached| attached != session);
        }
    }

    fn prompted(&mut self, client: ClientId, request: RequestId, session: String) {
        self.attach(client, &session);
        self.prompts.insert(request, Prompt { client, session });
    }

    /// Sends an update to those it is for. Whoever did not ask for the turn it belongs to finds it marked as from
    /// elsewhere (`_meta.lisa.elsewhere`), since a session may have many attached and one prompt each.
    fn update(
        &mut self,
        session: &str,
        audience: &Audience,
        turn: Option<&RequestId>,
        method: &str,
        params: Value,
    ) {
        let asker = turn.and_then(|turn| self.prompts.get(turn)).map(|prompt| prompt.client);
        let spared = match audience {
            Audience::Everybody => None,
            Audience::Others(request) => self.prompts.get(request).map(|prompt| prompt.client),
        };
        let hearers: Vec<_> = self
            .clients
            .iter()
            .filter(|(id, client)| Some(**id) != spared && client.sessions.iter().any(|of| of == session))
            .map(|(id, _)| *id)
            .collect();
        let marked = Message::notification(method, from_elsewhere(params.clone()));
        let plain = Message::notification(method, params);
        for hearer in hearers {
            let elsewhere = turn.is_some() && asker != Some(hearer);
            self.send(hearer, if elsewhere { marked.clone() } else { plain.clone() });
        }
    }

    fn answer(&mut self, client: ClientId, request: &RequestId, message: Message) {
        self.prompts.remove(request);
        let acts = self.asks.turn_over(request);
        self.act(acts);
        self.send(client, message);
    }

    fn asked(&mut self, ask: Ask) {
        let may = |client: &Client| client.person && client.sessions.contains(&ask.session);
        let under_way = self.prompts.contains_key(&ask.turn);
        let clients = self.clients.iter().filter(|(_, client)| under_way && may(client));
        let persons: Vec<_> = clients.map(|(id, _)| *id).collect();
        let acts = self.asks.asked(ask, &persons);
        self.act(acts);
    }

    fn answered(&mut self, client: ClientId, response: Response) {
        let person = self.clients.get(&client).is_some_and(|client| client.person);
        let acts = self.asks.answered(client, person, response);
        self.act(acts);
    }

    fn act(&mut self, acts: Vec<Act>) {
        for act in acts {
            match act {
                Act::Put { client, ask } => {
                    let mut params = ask.params;
                    if self.prompts.get(&ask.turn).is_none_or(|prompt| prompt.client != client) {
                        params["_meta"]["lisa"]["elsewhere"] = Value::Bool(true);
                    }
                    let id = Id::Text(ask.id.to_string());
                    self.send(client, Message::request(id, "session/request_permission", params));
                }
                Act::Withdraw { client, ask } => {
                    let params = json!({"requestId": ask});
                    self.send(client, Message::notification("$/cancel_request", params));
                }
                Act::Decide { ask, decision, remember } => {
                    if let Some(clerk) = &self.clerk {
                        // one who has too much to do is told again, when the agent asks again
                        let _ = clerk.try_send(ClerkMsg::Decided { ask: Box::new(ask), decision, remember });
                    }
                }
                Act::Refuse { client, why } => {
                    let error = RpcError::new(code::INVALID_REQUEST, why);
                    self.send(client, Message::response(Id::Null, Err(error)));
                }
            }
        }
    }

    fn event(&mut self, event: &Event) {
        let followers: Vec<_> =
            self.clients.iter().filter(|(_, client)| client.follows).map(|(id, _)| *id).collect();
        let params = json!(event);
        for follower in followers {
            self.send(follower, Message::notification(chat::EVENT, params.clone()));
        }
        match sight(event) {
            Sight::Begins(restart, item) => {
                let attached = self.clients.values().flat_map(|client| &client.sessions);
                let sessions: BTreeSet<_> =
                    self.prompts.values().map(|prompt| &prompt.session).chain(attached).cloned().collect();
                for session in sessions {
                    let key = (restart.clone(), session);
                    let item = if self.restarts.contains(&key) { &restart.go_on(&item) } else { &*item };
                    self.show(&key.1, item);
                    self.restarts.insert(key);
                }
            }
            Sight::Ends { process, status, title } => {
                let (over, rest): (BTreeSet<_>, _) = std::mem::take(&mut self.restarts)
                    .into_iter()
                    .partition(|(restart, _)| restart.process == process);
                self.restarts = rest;
                for (restart, session) in over {
                    self.show(&session, &restart.end(status, &title));
                }
            }
            Sight::Nothing => {}
        }
    }

    fn show(&mut self, session: &str, item: &ipc::acp::SessionUpdate) {
        self.update(session, &Audience::Everybody, None, "session/update", update(session, item));
    }

    /// Puts a message into a client's queue; a client whose queue is full is let go.
    fn send(&mut self, to: ClientId, message: Message) {
        let Some(client) = self.clients.get(&to) else { return };
        if let Err(mpsc::error::TrySendError::Full(_)) = client.queue.try_send(message) {
            warn!(client = to, "client does not read; letting it go");
            client.gone.cancel();
            self.clients.remove(&to);
            self.asks.left(to, None);
            if let Some(house) = &self.house {
                let dropped =
                    HouseMsg::Record { kind: kind::CLIENT_DROPPED, fields: fields([("client", json!(to))]) };
                let _ = house.cast(dropped);
            }
        }
    }
}

/// The same update, marked as belonging to a turn that somebody else asked for.
fn from_elsewhere(mut params: Value) -> Value {
    if params.get("update").is_some_and(Value::is_object) {
        params["update"]["_meta"]["lisa"]["elsewhere"] = Value::Bool(true);
    }
    params
}

#[cfg(test)]
mod tests {
    use super::*;

    fn join(
        hub: &mut HubState,
        client: ClientId,
        room: usize,
    ) -> (mpsc::Receiver<Message>, CancellationToken) {
        let (queue, queued) = mpsc::channel(room);
        let gone = CancellationToken::new();
        hub.joined(client, true, queue, gone.clone());
        (queued, gone)
    }

    fn heard(queued: &mut mpsc::Receiver<Message>) -> Vec<String> {
        let mut heard = Vec::new();
        while let Ok(message) = queued.try_recv() {
            heard.push(match message {
                Message::Notification(note) => note.params["n"].to_string(),
                Message::Response(_) => "answer".to_owned(),
                Message::Request(_) => "request".to_owned(),
            });
        }
        heard
    }

    #[test]
    fn each_hears_the_sessions_it_is_attached_to_and_nobody_hears_himself() {
        let mut hub = HubState::default();
        let (mut anna, _) = join(&mut hub, 1, 8);
        let (mut ben, _) = join(&mut hub, 2, 8);
        let request = RequestId::fresh();
        hub.prompted(1, request.clone(), "s".into());
        hub.attach(2, "s");
        hub.attach(2, "t");
        hub.update("s", &Audience::Others(request.clone()), None, "session/update", json!({"n": 1}));
        hub.update("s", &Audience::Everybody, None, "session/update", json!({"n": 2}));
        hub.update("t", &Audience::Everybody, None, "session/update", json!({"n": 3}));
        hub.answer(1, &request, Message::response(ipc::wire::Id::Number(1), Ok(Value::Null)));
        hub.detach(2, "s");
        hub.update("s", &Audience::Everybody, None, "session/update", json!({"n": 4}));
        assert_eq!(heard(&mut anna), ["2", "answer", "4"]);
        assert_eq!(heard(&mut ben), ["1", "2", "3"]);
    }

    #[test]
    fn a_reply_is_marked_for_those_who_did_not_ask_for_it() {
        let mut hub = HubState::default();
        let (mut anna, _) = join(&mut hub, 1, 8);
        let (mut ben, _) = join(&mut hub, 2, 8);
        let request = RequestId::fresh();
        hub.prompted(1, request.clone(), "s".into());
        hub.attach(2, "s");
        let chunk = json!({"sessionId": "s", "update": {"sessionUpdate": "agent_message_chunk"}});
        hub.update("s", &Audience::Everybody, Some(&request), "session/update", chunk.clone());
        let params = |message: Message| match message {
            Message::Notification(note) => note.params,
            other => panic!("{other:?}"),
        };
        assert_eq!(params(anna.try_recv().unwrap()), chunk);
        assert_eq!(params(ben.try_recv().unwrap())["update"]["_meta"]["lisa"]["elsewhere"], true);
    }

    #[test]
    fn a_restart_is_an_item_in_every_session_that_somebody_is_attached_to() {
        let mut hub = HubState::default();
        let (mut anna, _) = join(&mut hub, 1, 8);
        let (mut ben, _) = join(&mut hub, 2, 8);
        hub.attach(1, "s");
        let event = |kind: &str| Event {
            epoch: 1,
            seq: 1,
            time: jiff::Timestamp::UNIX_EPOCH,
            kind: kind.to_owned(),
            fields: fields([("process", json!("agent")), ("life", json!(1)), ("how", json!("signal 9"))]),
        };
        hub.event(&event(kind::CHILD_DIED));
        hub.event(&event(kind::CHILD_RENEWING));
        hub.event(&event(kind::CHILD_READY));
        let mut shown = Vec::new();
        while let Ok(Message::Notification(note)) = anna.try_recv() {
            let update = &note.params["update"];
            shown.push(format!("{} {}", update["sessionUpdate"], update["status"]).replace('"', ""));
        }
        assert_eq!(
            shown,
            ["tool_call in_progress", "tool_call_update in_progress", "tool_call_update completed"]
        );
        assert!(ben.try_recv().is_err(), "nothing is shown to one who is in no session");
    }

    #[test]
    fn b19_one_who_does_not_read_is_let_go_and_slows_nobody() {
        let mut hub = HubState::default();
        let (_asleep, gone) = join(&mut hub, 1, 2);
        let (mut awake, alive) = join(&mut hub, 2, 8);
        for client in [1, 2] {
            hub.attach(client, "s");
        }
        for n in 0..5 {
            hub.update("s", &Audience::Everybody, None, "session/update", json!({"n": n}));
        }
        assert!(gone.is_cancelled() && !alive.is_cancelled());
        assert_eq!(heard(&mut awake), ["0", "1", "2", "3", "4"]);
    }
}
