//! One child process as an actor: it does what [`crate::lifecycle`] decides, and tells the house what it hears.
//!
//! ```text
//!  house ──Start, Stop──▶ child ──spawn, signal──▶ process
//!        ◀──── News ─────       ◀── Sign (with its life) ──
//! ```

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use ipc::{
    child::{Brief, Report},
    client::Client,
    config::Config,
    contract::{agent::Agent, heartbeat::Heartbeat, soul::Soul},
    hello::{Keyring, Role, Secret},
    server::Pong,
};
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort};
use serde_json::{Map, Value};
use tracing::{debug, info, warn};

use crate::{
    drain::drain,
    house::HouseMsg,
    lifecycle::{Action, Event, How, Life, Lifecycle, News, Phase, Policy, Then},
    liveness::{Rhythm, Watch},
    records::Records,
    spawn::{self, Running, Sign},
};

/// What a child actor is asked and told.
#[derive(Debug)]
pub(crate) enum ChildMsg {
    /// Run.
    Start,
    /// End.
    Stop,
    /// End, and soon.
    Hasten,
    /// These are the settings from now on. With `renew` it lives on with them at once. Answered with what that came to.
    Configure { config: Box<Config>, renew: bool, answer: RpcReplyPort<View> },
    /// A watched process gave a sign.
    Sign { life: Life, sign: Sign },
    /// It is at rest, or will not be: so many turns would be cut off.
    Drained { life: Life, cut: u32 },
    /// A sign of life was asked for: it came, or it did not in time.
    Pulse { answer: Option<Pong> },
    /// A time has come.
    Clock,
}

/// What never changes about a child.
#[derive(Debug, Clone)]
pub(crate) struct Child {
    /// Who it is.
    pub(crate) role: Role,
    /// What is executed.
    pub(crate) binary: PathBuf,
    /// Where its standard error goes.
    pub(crate) log: PathBuf,
    /// What proves its role, in every life.
    pub(crate) secret: Secret,
    /// Who may call it.
    pub(crate) keyring: Keyring,
    /// What it is told besides.
    pub(crate) home: PathBuf,
    /// Where the sockets are.
    pub(crate) run: PathBuf,
    /// How to ask the one that has turns in hand to end them before it is renewed.
    pub(crate) turns: Option<Client<Agent>>,
    /// How to ask for a sign of life.
    pub(crate) line: Line,
    /// What of us is left for the next supervisor to end, should we not come to it.
    pub(crate) records: Arc<Records>,
    /// Whom it tells.
    pub(crate) house: ActorRef<HouseMsg>,
}

/// A connection for signs of life alone.
#[derive(Debug, Clone)]
pub(crate) enum Line {
    Soul(Client<Soul>),
    Agent(Client<Agent>),
    Heartbeat(Client<Heartbeat>),
}

impl Line {
    async fn ping(&self, patience: Duration) -> Option<Pong> {
        let answer = match self {
            Self::Soul(client) => client.ping(patience).await,
            Self::Agent(client) => client.ping(patience).await,
            Self::Heartbeat(client) => client.ping(patience).await,
        };
        answer.inspect_err(|error| debug!(%error, "no sign of life")).ok()
    }
}

/// What does change.
#[derive(Debug)]
pub(crate) struct ChildState {
    lifecycle: Lifecycle,
    watch: Watch,
    /// When the last question for a sign of life was settled.
    asked: Instant,
    /// What the person has set, for this life or, where it was set since it began, for the next one.
    config: Config,
    running: Option<Running>,
    build: String,
    facts: Map<String, Value>,
}

/// A child as others see it.
#[derive(Debug, Clone)]
pub(crate) struct View {
    pub(crate) state: &'static str,
    pub(crate) pid: Option<u32>,
    pub(crate) build: String,
    pub(crate) restarts: u64,
    pub(crate) why: Option<String>,
    /// When a parked one is tried again.
    pub(crate) retry_at: Option<Instant>,
    pub(crate) facts: Map<String, Value>,
}

impl View {
    /// A child that was never started.
    pub(crate) fn never_started() -> Self {
        Self {
            state: "stopped",
            pid: None,
            build: String::new(),
            restarts: 0,
            why: None,
            retry_at: None,
            facts: Map::new(),
        }
    }
}

impl Actor for Child {
    type Msg = ChildMsg;
    type State = ChildState;
    type Arguments = Config;

    async fn pre_start(
        &self,
        myself: ActorRef<ChildMsg>,
        config: Config,
    ) -> Result<ChildState, ActorProcessingErr> {
        let seed = u64::from_str_radix(&ipc::id::random_hex::<8>(), 16).unwrap_or_default();
        let lifecycle = Lifecycle::new(self.policy(&config), seed);
        let state = ChildState {
            lifecycle,
            watch: Watch::default(),
            asked: Instant::now(),
            config,
            running: None,
            build: String::new(),
            facts: Map::new(),
        };
        self.ask_for_a_sign(&myself, &state);
        Ok(state)
    }

    async fn handle(
        &self,
        myself: ActorRef<ChildMsg>,
        msg: ChildMsg,
        state: &mut ChildState,
    ) -> Result<(), ActorProcessingErr> {
        match msg {
            ChildMsg::Start => self.step(&myself, state, Event::Start),
            ChildMsg::Stop => self.step(&myself, state, Event::Stop),
            ChildMsg::Hasten => self.step(&myself, state, Event::Hasten),
            ChildMsg::Configure { config, renew, answer } => {
                self.configure(&myself, state, *config, renew);
                let _ = answer.send(self.view(state));
            }
            ChildMsg::Drained { life, cut } => self.step(&myself, state, Event::Drained { life, cut }),
            ChildMsg::Pulse { answer } => {
                if !self.pulse(&myself, state, answer) {
                    return Ok(());
                }
            }
            ChildMsg::Clock => self.step(&myself, state, Event::Clock),
            ChildMsg::Sign { life, sign } => self.hear(&myself, state, life, sign),
        }
        self.house.cast(HouseMsg::View { role: self.role, view: self.view(state) })?;
        Ok(())
    }
}

impl Child {
    fn policy(&self, config: &Config) -> Policy {
        let policy = Policy::of(&config.supervisor);
        match self.turns {
            Some(_) => Policy { drain_max: config.supervisor.drain_max.unsigned_abs(), ..policy },
            None => policy,
        }
    }

    /// Lets it end its turns, while this actor goes on listening.
    fn drain(&self, myself: &ActorRef<ChildMsg>, life: Life, patience: Duration) {
        let Some(agent) = self.turns.clone() else { return };
        let (child, heard) = (self.role, myself.clone());
        tokio::spawn(async move {
            let drained = drain(&agent, patience).await;
            info!(%child, life, ?drained, "child was asked to end its work");
            // an actor that has ended needs no answer
            let _ = heard.cast(ChildMsg::Drained { life, cut: drained.turns_cut() });
        });
    }

    /// Takes an answer or its absence; whether anything came of it.
    fn pulse(&self, myself: &ActorRef<ChildMsg>, state: &mut ChildState, answer: Option<Pong>) -> bool {
        let now = Instant::now();
        let passed = now.saturating_duration_since(state.asked);
        state.asked = now;
        let silence_max = state.config.supervisor.silence_max.unsigned_abs();
        let silent = state.watch.on(state.lifecycle.serving(), answer, passed, silence_max);
        if let Some((life, silence)) = silent {
            self.step(myself, state, Event::Silent { life, silence });
        }
        self.ask_for_a_sign(myself, state);
        silent.is_some()
    }

    /// Asks for the next sign of life, where there is somebody who should give one.
    fn ask_for_a_sign(&self, myself: &ActorRef<ChildMsg>, state: &ChildState) {
        let Rhythm { every, patience, .. } = Rhythm::of(state.config.supervisor.silence_max.unsigned_abs());
        let serves = state.lifecycle.serving().is_some();
        let (line, heard) = (self.line.clone(), myself.clone());
        tokio::spawn(async move {
            tokio::time::sleep(every).await;
            let answer = if serves { line.ping(patience).await } else { None };
            // the actor is gone with the house
            let _ = heard.cast(ChildMsg::Pulse { answer });
        });
    }

    fn hear(&self, myself: &ActorRef<ChildMsg>, state: &mut ChildState, life: Life, sign: Sign) {
        let current = state.running.as_ref().is_some_and(|running| running.life == life);
        match sign {
            Sign::Said(Report::Ready { build }) => {
                if current {
                    state.build = build;
                }
                self.step(myself, state, Event::Ready { life });
            }
            Sign::Said(Report::Facts(facts)) => {
                if current {
                    state.facts.extend(facts);
                }
            }
            Sign::Ended(how) => {
                if let Some(running) = state.running.take_if(|running| running.life == life) {
                    self.records.forget(running.pid);
                }
                self.step(myself, state, Event::Exited { life, how });
            }
        }
    }

    fn configure(&self, myself: &ActorRef<ChildMsg>, state: &mut ChildState, config: Config, renew: bool) {
        state.lifecycle.judge_by(self.policy(&config));
        state.config = config;
        if renew {
            self.step(myself, state, Event::Renew);
        }
    }

    fn step(&self, myself: &ActorRef<ChildMsg>, state: &mut ChildState, event: Event) {
        for action in state.lifecycle.on(event, Instant::now()) {
            match action {
                Action::Spawn { life } => self.spawn(myself, state, life),
                Action::Drain { life, patience } => self.drain(myself, life, patience),
                Action::Trace { life } => state.on_process_of(life, Running::trace),
                Action::Terminate { life } => state.on_process_of(life, Running::terminate),
                Action::Kill { life } => {
                    warn!(child = %self.role, life, "child takes too long; killing it");
                    state.on_process_of(life, Running::kill);
                }
                Action::Wake { at } => {
                    let _timer =
                        myself.send_after(at.saturating_duration_since(Instant::now()), || ChildMsg::Clock);
                }
                Action::Tell(news) => self.tell(state, news),
            }
        }
    }

    fn spawn(&self, myself: &ActorRef<ChildMsg>, state: &mut ChildState, life: Life) {
        let brief = Brief {
            role: self.role,
            life,
            home: self.home.clone(),
            run: self.run.clone(),
            secret: self.secret.clone(),
            keyring: self.keyring.clone(),
            config: state.config.clone(),
        };
        state.facts = Map::new();
        let heard = myself.clone();
        let tell = move |sign| {
            // after the actor has ended there is nobody to tell, and the process is being reaped with us
            let _ = heard.cast(ChildMsg::Sign { life, sign });
        };
        match spawn::spawn(&self.binary, &brief, &self.log, self.records.mark(), tell.clone()) {
            Ok(running) => {
                self.records.note(running.pid);
                let _ = self.house.cast(HouseMsg::Spawned { role: self.role, life, pid: running.pid });
                state.running = Some(running);
            }
            Err(error) => {
                tell(Sign::Ended(How::NotStarted(format!("`{}`: {error}", self.binary.display()))));
            }
        }
    }

    fn tell(&self, state: &ChildState, news: News) {
        let child = self.role;
        match &news {
            News::Ready { life, took } => info!(%child, life, ?took, build = state.build, "child is ready"),
            News::Died { life, how, restart_in: Some(pause) } => {
                warn!(%child, life, %how, ?pause, "child died; restart scheduled");
            }
            News::Died { life, how, restart_in: None } => warn!(%child, life, %how, "child died"),
            News::Draining { life, patience } => {
                info!(%child, life, ?patience, "child ends its work before it is renewed");
            }
            News::Renewing { life, cut } => info!(%child, life, cut, "child is renewed for new settings"),
            News::GaveWay { life, how } => info!(%child, life, %how, "child gave way"),
            News::Stopped { .. } => info!(%child, "child stopped"),
            News::Hung { life, silence } => {
                warn!(%child, life, ?silence, "child does not answer; it is asked where it stands, then ended");
            }
            News::Parked { why, retry_in } => warn!(%child, why, ?retry_in, "child is given up for now"),
        }
        let _ = self.house.cast(HouseMsg::News { role: self.role, news, build: state.build.clone() });
    }

    fn view(&self, state: &ChildState) -> View {
        let (name, why) = match state.lifecycle.phase() {
            Phase::Idle => ("stopped", None),
            Phase::Starting { .. } => ("starting", None),
            Phase::Ready { .. } => ("ready", None),
            Phase::Hung { .. } => ("starting", Some("it does not answer, and is ended".to_owned())),
            Phase::Draining { .. } => {
                ("draining", Some("it ends the turns under way, then lives on with new settings".to_owned()))
            }
            Phase::Waiting { why, .. } => ("waiting", Some(why.clone())),
            Phase::Stopping { then: Then::Renewal, .. } => {
                ("starting", Some("it gives way to a life with new settings".to_owned()))
            }
            Phase::Stopping { .. } => ("stopping", None),
            Phase::Killing { then: Then::Rest, .. } => {
                ("stopping", Some("it takes too long and was killed".to_owned()))
            }
            Phase::Killing { then: Then::Renewal, .. } => {
                ("starting", Some("it took too long to give way and was killed".to_owned()))
            }
            Phase::Killing { then: Then::Death, .. } => {
                ("starting", Some("it was not ready in time, or did not answer, and was killed".to_owned()))
            }
            Phase::Parked { why, .. } => {
                let said =
                    spawn::last_words(&self.log).map(|said| format!(", saying: {said}")).unwrap_or_default();
                ("parked", Some(format!("{why}{said}; `{}` has more", self.log.display())))
            }
        };
        View {
            state: name,
            pid: state.running.as_ref().map(|running| running.pid),
            build: state.build.clone(),
            restarts: state.lifecycle.restarts(),
            why,
            retry_at: match state.lifecycle.phase() {
                Phase::Parked { until, .. } => Some(*until),
                _ => None,
            },
            facts: state.facts.clone(),
        }
    }
}

impl ChildState {
    fn on_process_of(&self, life: Life, act: impl FnOnce(&Running)) {
        if let Some(running) = self.running.as_ref().filter(|running| running.life == life) {
            act(running);
        }
    }
}
