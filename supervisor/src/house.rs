//! The house: starts the children, writes down what happens to them, stops them in order.
//!
//! ```text
//!            ┌── child soul                 Stop: heartbeat, then agent, then soul;
//!   house ───┼── child agent                each has ended before the next is asked to
//!            └── child heartbeat
//!     └──▶ board (what is so now) · event log (what happened) · hub (whoever is attached)
//! ```

use std::{collections::BTreeMap, time::Duration};

use ipc::{
    contract::{
        chat::{Event, Events, EventsSince, kind},
        soul::{Changed, Status as SoulState},
    },
    hello::Role,
};
use jiff::Timestamp;
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent, rpc::CallResult};
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tracing::{error, info, warn};

use crate::{
    board::{Board, CHILDREN, fields, soul_status},
    chat::hub::HubMsg,
    child::{Child, ChildMsg, View},
    events::EventLog,
    lifecycle::{Life, News},
    settings::{Changes, Reading, Settings, compare},
};

/// How long an actor of a child may take to hear of new settings; it only ever works on one message.
const CHILD_PATIENCE: Duration = Duration::from_secs(5);

/// What the house is asked and told.
#[derive(Debug)]
pub(crate) enum HouseMsg {
    /// Begin: these are the children, and this is what is set.
    Open { children: Vec<Child>, settings: Settings },
    /// A process was made.
    Spawned { role: Role, life: Life, pid: u32 },
    /// Something happened to a child.
    News { role: Role, news: News, build: String },
    /// A child looks different now.
    View { role: Role, view: View },
    /// The self changed.
    Changed(Changed),
    /// The soul is there, and this is how it is.
    Soul(SoulState),
    /// Something that is told as it is.
    Record { kind: &'static str, fields: Map<String, Value> },
    /// What happened after a cursor; with `follow`, the client hears the rest, with nothing lost or doubled in between.
    Events { client: u64, since: EventsSince, answer: RpcReplyPort<Events> },
    /// The configuration was read anew. Answered when whoever it concerns has been told.
    Configure { reading: Reading, answer: RpcReplyPort<()> },
    /// Answered at once: whether anybody is at work here.
    Ping { answer: RpcReplyPort<()> },
    /// Stop everything, in order.
    Stop { by: &'static str },
    /// Stop everything at once and without much patience: whoever asked to stop asks again.
    Hasten { by: &'static str },
}

/// What never changes.
#[derive(Debug)]
pub(crate) struct House {
    /// Where what is so now is shown.
    pub(crate) board: watch::Sender<Board>,
    /// Who is attached.
    pub(crate) hub: ActorRef<HubMsg>,
    /// The clock.
    pub(crate) now: fn() -> Timestamp,
}

/// What does.
#[derive(Debug)]
pub(crate) struct HouseState {
    log: EventLog,
    settings: Option<Settings>,
    children: BTreeMap<Role, ActorRef<ChildMsg>>,
    /// While stopping: who still has to end, the next one first.
    to_stop: Option<Vec<Role>>,
}

impl Actor for House {
    type Msg = HouseMsg;
    type State = HouseState;
    type Arguments = EventLog;

    async fn pre_start(
        &self,
        _: ActorRef<HouseMsg>,
        log: EventLog,
    ) -> Result<HouseState, ActorProcessingErr> {
        Ok(HouseState { log, settings: None, children: BTreeMap::new(), to_stop: None })
    }

    async fn handle(
        &self,
        myself: ActorRef<HouseMsg>,
        msg: HouseMsg,
        state: &mut HouseState,
    ) -> Result<(), ActorProcessingErr> {
        match msg {
            HouseMsg::Open { children, settings } => self.open(&myself, state, children, settings).await?,
            HouseMsg::Spawned { role, life, pid } => self.spawned(state, role, life, pid),
            HouseMsg::News { role, news, build } => self.news(&myself, state, role, news, &build),
            HouseMsg::View { role, view } => self.view(role, view),
            HouseMsg::Changed(changed) => self.changed(state, &changed),
            HouseMsg::Soul(soul) => self.soul(soul),
            HouseMsg::Record { kind, fields } => self.record(state, kind, fields),
            HouseMsg::Events { client, since, answer } => self.events(state, client, &since, answer),
            HouseMsg::Configure { reading, answer } => {
                self.configure(state, reading).await?;
                let _ = answer.send(());
            }
            HouseMsg::Ping { answer } => drop(answer.send(())),
            HouseMsg::Stop { by } => self.stop(&myself, state, by),
            HouseMsg::Hasten { by } => self.hasten(&myself, state, by),
        }
        Ok(())
    }

    /// A child *actor* ends only with us; if one fails, that is a bug of ours, and the honest end is our own.
    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<HouseMsg>,
        event: SupervisionEvent,
        _: &mut HouseState,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorFailed(actor, cause) => {
                error!(actor = %actor.get_id(), %cause, "an actor failed");
                Err(cause)
            }
            SupervisionEvent::ActorStarted(_)
            | SupervisionEvent::ActorTerminated(..)
            | SupervisionEvent::ProcessGroupChanged(_) => Ok(()),
        }
    }
}

impl House {
    async fn open(
        &self,
        myself: &ActorRef<HouseMsg>,
        state: &mut HouseState,
        children: Vec<Child>,
        settings: Settings,
    ) -> Result<(), ActorProcessingErr> {
        let home = self.board.borrow().home.clone();
        let started =
            fields([("pid", json!(std::process::id())), ("build", json!(ipc::BUILD)), ("home", json!(home))]);
        self.record(state, kind::SUPERVISOR_STARTED, started);
        for child in children {
            let role = child.role;
            let (actor, _) =
                Actor::spawn_linked(None, child, settings.config.clone(), myself.get_cell()).await?;
            // all at once: whoever needs another asks it again until it is there
            actor.cast(ChildMsg::Start)?;
            state.children.insert(role, actor);
        }
        state.settings = Some(settings);
        Ok(())
    }

    /// Takes new settings: each child is told, those whose settings differ live on with them, and so does one that had
    /// been given up, since what it died of may be what was changed.
    async fn configure(&self, state: &mut HouseState, reading: Reading) -> Result<(), ActorProcessingErr> {
        let Some(before) = state.settings.as_ref().filter(|_| state.to_stop.is_none()) else { return Ok(()) };
        let settings = match reading {
            Ok(settings) => settings,
            Err(why) => {
                warn!(why, "the new configuration is not used; the one before still holds");
                self.board.send_modify(|board| board.refused = Some(why.clone()));
                self.record(state, kind::CONFIGURATION_REFUSED, fields([("why", json!(why))]));
                return Ok(());
            }
        };
        let Changes { parts, children } = compare(before, &settings);
        let renews = |role: &Role| {
            let board = self.board.borrow();
            children.contains(role) || board.children.get(role).is_some_and(|view| view.state == "parked")
        };
        let renewed: Vec<Role> = CHILDREN.into_iter().filter(renews).collect();
        info!(changed = ?parts, renewed = ?renewed, "the configuration was read anew");
        self.board.send_modify(|board| board.refused = None);
        let told = fields([("changed", json!(parts)), ("renewed", json!(renewed))]);
        self.record(state, kind::CONFIGURATION_READ, told);
        for (role, child) in &state.children {
            let (config, renew) = (Box::new(settings.config.clone()), renewed.contains(role));
            let asked = child
                .call(|answer| ChildMsg::Configure { config, renew, answer }, Some(CHILD_PATIENCE))
                .await?;
            // on the board before we answer, so that who asked sees whom it has to wait for
            if let CallResult::Success(view) = asked {
                self.view(*role, view);
            }
        }
        state.settings = Some(settings);
        Ok(())
    }

    fn record(&self, state: &mut HouseState, kind: &str, fields: Map<String, Value>) {
        let event = state.log.record(kind, fields, (self.now)());
        self.tell_hub(event);
    }

    fn tell_hub(&self, event: Event) {
        // the hub ends after the house; without one nobody is attached
        let _ = self.hub.cast(HubMsg::Event(event));
    }

    fn spawned(&self, state: &mut HouseState, role: Role, life: Life, pid: u32) {
        let fields = fields([("process", json!(role)), ("pid", json!(pid)), ("life", json!(life))]);
        self.record(state, kind::CHILD_STARTED, fields);
    }

    fn news(&self, myself: &ActorRef<HouseMsg>, state: &mut HouseState, role: Role, news: News, build: &str) {
        let pid = self.board.borrow().children.get(&role).and_then(|view| view.pid);
        let mut told = fields([("process", json!(role)), ("pid", json!(pid))]);
        let mut tell = |name: &str, value: Value| told.insert(name.to_owned(), value);
        let rests = matches!(news, News::Stopped { .. });
        let kind = match news {
            News::Ready { life, took } => {
                tell("life", json!(life));
                tell("build", json!(build));
                tell("took_ms", json!(took.as_millis()));
                kind::CHILD_READY
            }
            News::Died { life, how, restart_in } => {
                tell("life", json!(life));
                tell("how", json!(how.to_string()));
                if let Some(pause) = restart_in {
                    tell("restart_in_ms", json!(pause.as_millis()));
                }
                kind::CHILD_DIED
            }
            News::Draining { life, patience } => {
                tell("life", json!(life));
                tell("patience_ms", json!(patience.as_millis()));
                kind::CHILD_DRAINING
            }
            News::Renewing { life, cut } => {
                tell("life", json!(life));
                if cut > 0 {
                    tell("turns_cut", json!(cut));
                }
                kind::CHILD_RENEWING
            }
            News::GaveWay { life, how } => {
                tell("life", json!(life));
                tell("how", json!(how.to_string()));
                kind::CHILD_STOPPED
            }
            News::Stopped { life, how } => {
                tell("life", json!(life));
                tell("how", json!(how.map(|how| how.to_string())));
                kind::CHILD_STOPPED
            }
            News::Hung { life, silence } => {
                tell("life", json!(life));
                tell("silent_ms", json!(silence.as_millis()));
                kind::CHILD_HUNG
            }
            News::Parked { why, retry_in } => {
                tell("why", json!(why));
                tell("retry_in_ms", json!(retry_in.as_millis()));
                kind::CHILD_PARKED
            }
        };
        self.record(state, kind, told);
        if rests {
            // the last word about it, which its own view would come too late for
            self.board.send_modify(|board| {
                if let Some(view) = board.children.get_mut(&role) {
                    (view.state, view.pid) = ("stopped", None);
                }
            });
            Self::ended(myself, state, role);
        }
    }

    fn view(&self, role: Role, view: View) {
        self.board.send_modify(|board| {
            board.children.insert(role, view);
        });
    }

    fn changed(&self, state: &mut HouseState, changed: &Changed) {
        self.board.send_modify(|board| {
            board.soul = soul_status(&changed.name, Some(changed.commit.clone()), changed.prompt_version);
        });
        let fields = fields([
            ("commit", json!(changed.commit)),
            ("op", json!(changed.op)),
            ("paths", json!(changed.paths)),
            ("caller", json!(changed.caller)),
            ("origin", json!(changed.origin)),
        ]);
        self.record(state, kind::SOUL_CHANGED, fields);
    }

    fn soul(&self, soul: SoulState) {
        self.board.send_modify(|board| {
            board.soul = soul_status(&soul.name, soul.commit, soul.prompt_version);
        });
    }

    fn events(&self, state: &HouseState, client: u64, since: &EventsSince, answer: RpcReplyPort<Events>) {
        if since.follow {
            // told to the hub before any later event is, so that the client misses none and hears none twice
            let _ = self.hub.cast(HubMsg::Follow { client });
        }
        let _ = answer.send(state.log.after(since.after));
    }

    fn stop(&self, myself: &ActorRef<HouseMsg>, state: &mut HouseState, by: &str) {
        if state.to_stop.is_some() {
            return;
        }
        info!(by, "stopping, in order");
        self.board.send_modify(|board| board.stopping = true);
        self.record(state, kind::SUPERVISOR_STOPPING, fields([("by", json!(by))]));
        state.to_stop =
            Some(CHILDREN.iter().rev().copied().filter(|role| state.children.contains_key(role)).collect());
        Self::stop_next(myself, state);
    }

    fn hasten(&self, myself: &ActorRef<HouseMsg>, state: &mut HouseState, by: &str) {
        self.stop(myself, state, by);
        warn!(by, "asked again; stopping at once");
        let to_stop = state.to_stop.iter().flatten();
        for child in to_stop.filter_map(|role| state.children.get(role)) {
            // the actor lives as long as the house
            let _ = child.cast(ChildMsg::Hasten);
        }
    }

    fn ended(myself: &ActorRef<HouseMsg>, state: &mut HouseState, role: Role) {
        if let Some(to_stop) = &mut state.to_stop {
            to_stop.retain(|waiting| *waiting != role);
            Self::stop_next(myself, state);
        }
    }

    fn stop_next(myself: &ActorRef<HouseMsg>, state: &HouseState) {
        let next = state.to_stop.as_ref().and_then(|to_stop| to_stop.first());
        match next.and_then(|role| state.children.get(role)) {
            Some(child) => {
                // the actor lives as long as the house
                let _ = child.cast(ChildMsg::Stop);
            }
            None => myself.stop(None),
        }
    }
}
