//! The process that keeps the others alive, and holds the conversation while they restart.
//!
//! ```text
//!  lock ─▶ configuration ─▶ sockets ─▶ house (children) · hub (clients) · desk (relay)        ─▶ stop, in order
//!                                        └──▶ herald ──▶ the process manager, where one started us
//! ```
//!
//! It promises: one supervisor a home; every death of a child is seen, told and answered by the policy of
//! `lifecycle`; nothing it does waits for a child without a deadline; a client stays attached; nothing outlives it.
//!
//! How it ends is told by the exit code ([`Exit`]): 0 asked to stop, before or after it was ready · 1 another supervisor
//! has the home · 64 called wrongly · 70 a bug · 75 the system refused something, the same start may work later · 78 the
//! configuration, the home, a program or a socket that was handed over cannot be used: a person must change something.
//! A child that cannot be started is parked and does not end it: the rest serves, and says what is off.

mod above;
mod approvals;
mod board;
mod chat;
mod child;
mod drain;
mod events;
mod house;
mod lifecycle;
mod liveness;
mod orphans;
mod records;
mod settings;
mod signals;
mod spawn;

use std::{
    io::{self, Seek as _, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use ipc::{
    client::{Client, Credentials},
    endpoint::{Claim, EndpointError, Place, lock_file, our_uid, private_folder},
    exit::{Exit, Fault},
    hello::{Keyring, Role, Secret},
    home::{Home, Run},
};
use jiff::Timestamp;
use nix::sys::stat::{Mode, umask};
use ractor::{Actor, ActorRef, rpc::CallResult};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::{mpsc, watch},
};
use tracing::{info, warn};

pub use crate::above::Above;
use crate::{
    above::{Chat, Herald, Wants},
    board::{Board, CHILDREN},
    chat::{
        clerk::{self, Clerk},
        desk::{self, Desk},
        door::{self, Door},
        hub::{Hub, HubMsg},
    },
    child::{Child, Line},
    events::EventLog,
    house::{House, HouseMsg},
    records::Records,
    settings::{Settings, read_anew},
    signals::{Signals, Wish},
};

/// How long a predecessor that is on its way out is waited for.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);

/// How often it is looked whether the home is still where it was.
const HOME_LOOK_EVERY: Duration = Duration::from_secs(3);

/// How long house and hub may take to say that they are at work.
const PING_PATIENCE: Duration = Duration::from_secs(20);
/// How long the house may take to hand on new settings.
const CONFIGURE_PATIENCE: Duration = Duration::from_secs(20);

/// Keeps Lisa alive in `home` until asked to stop by a signal or a client, and tells whoever is `above` how she is.
pub async fn run(home: Home, above: Above) -> Result<(), Fault> {
    // first of all, so that a signal during the start ends it in order (B12)
    let mut signals = Signals::install().map_err(Fault::again)?;
    umask(Mode::from_bits_truncate(0o077));
    let Above { chat, ready, port, watchdog } = above;
    let mut reload = false;
    let by = async {
        loop {
            match signals.next().await {
                Wish::Stop { by } => break by,
                // what was read already may be older than the wish
                Wish::Reload => reload = true,
            }
        }
    };
    let ground = tokio::select! {
        biased;
        by = by => {
            info!(by, "asked to stop before anything was started");
            return Ok(());
        }
        ground = Ground::prepare(home, chat) => ground?,
    };
    live(ground, signals, Wants { port, ready, watchdog }, reload).await
}

/// What stands before anything is started.
struct Ground {
    home: Home,
    run: Run,
    settings: Settings,
    binaries: PathBuf,
    log: EventLog,
    door: Door,
    records: Records,
    _lock: std::fs::File,
}

impl Ground {
    async fn prepare(home: Home, handed: Option<Chat>) -> Result<Self, Fault> {
        let binaries = binaries()?;
        home.make().map_err(Fault::configuration)?;
        let lock = take_home(&home).await?;
        let settings = Settings::read(&home).map_err(Fault::configuration)?;
        let run = make_run(&home).map_err(Fault::configuration)?;
        // under the lock of the home, and before anybody of ours is there
        let records = Records::take_over(&run.path().join("children.jsonl")).await;
        let claim = Claim::hold(&run.chat_socket()).await.map_err(Fault::configuration)?;
        let door = Door::open(claim, handed).await.map_err(Fault::configuration)?;
        let events = home.logs().join("events.jsonl");
        let log = EventLog::open(&events).map_err(failed("open the event log at", &events))?;
        Ok(Self { home, run, settings, binaries, log, door, records, _lock: lock })
    }
}

#[derive(Debug, thiserror::Error)]
enum GroundError {
    #[error(
        "could not {attempt} `{path}`; see that it is a place we may write to, or choose another with `--home DIR`"
    )]
    Home { attempt: &'static str, path: PathBuf, source: io::Error },
    #[error(
        "could not find the program `{path}`, which belongs to this supervisor; build and install them all beside each other"
    )]
    Program { path: PathBuf },
    #[error(
        "another supervisor{pid} runs in the home `{home}`; attach with `lisa chat`, or stop it with `lisa down`"
    )]
    Taken { home: PathBuf, pid: String },
}

fn failed(attempt: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Fault {
    let path = path.to_owned();
    move |source| Fault::configuration(GroundError::Home { attempt, path, source })
}

/// Takes the kernel lock that makes one supervisor a home (B3), and leaves our pid in it for whoever comes second.
async fn take_home(home: &Home) -> Result<std::fs::File, Fault> {
    let path = home.lock();
    let lock = lock_file(&path, LOCK_PATIENCE).await.map_err(|error| match error {
        EndpointError::Io { attempt, path, source } => failed(attempt, &path)(source),
        other => Fault::configuration(other),
    })?;
    let Some(mut lock) = lock else {
        let pid = std::fs::read_to_string(&path).unwrap_or_default();
        let pid = pid.trim().parse::<u32>().map(|pid| format!(" (pid {pid})")).unwrap_or_default();
        return Err(Fault::failed(GroundError::Taken { home: home.path().to_owned(), pid }));
    };
    let mut leave_pid = || {
        lock.set_len(0)?;
        lock.rewind()?;
        write!(lock, "{}", std::process::id())
    };
    leave_pid().map_err(failed("write to", &path))?;
    Ok(lock)
}

/// Makes the folder of the sockets; a home too long for them gets a link to a short one.
fn make_run(home: &Home) -> Result<Run, EndpointError> {
    let xdg = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let run = Run::choose(home, xdg.as_deref(), our_uid());
    if let Some(parent) = run.path().parent().filter(|_| run.path() != home.run()) {
        private_folder(parent)?;
        private_folder(run.path())?;
        info!(run = %run.path().display(), "the home's path is too long for sockets; they are in a short folder");
    }
    let in_home = home.run();
    let io = |attempt| {
        let path = in_home.clone();
        move |source| EndpointError::Io { attempt, path, source }
    };
    match std::fs::read_link(&in_home) {
        Ok(target) if target == run.path() => return Ok(run),
        Ok(_) => std::fs::remove_file(&in_home).map_err(io("replace the link"))?,
        Err(_) => {}
    }
    if run.path() == in_home {
        private_folder(&in_home)?;
    } else {
        if in_home.is_dir() {
            // sockets of a time when the path was shorter; nothing else lives there
            std::fs::remove_dir_all(&in_home).map_err(io("replace the folder"))?;
        }
        std::os::unix::fs::symlink(run.path(), &in_home).map_err(io("make the link"))?;
    }
    Ok(run)
}

async fn live(ground: Ground, mut signals: Signals, wants: Wants, mut reload: bool) -> Result<(), Fault> {
    let Ground { home, run, settings, binaries, log, door, records, _lock } = ground;
    // before the first child, and with an ear for what ends, or it would stay a zombie
    let mut ends = signal(SignalKind::child()).map_err(Fault::again)?;
    orphans::adopt();
    let secrets = Secrets::fresh();
    let (board, seen) = watch::channel(Board::new(&home, &run, log.epoch()));
    let (hub, _) = Actor::spawn(None, Hub, ()).await.map_err(Fault::again)?;
    #[expect(clippy::disallowed_methods, reason = "the clock of the supervisor is read here, and passed in")]
    let house = House { board, hub: hub.clone(), now: Timestamp::now };
    let (house, mut ended) = Actor::spawn(None, house, log).await.map_err(Fault::again)?;
    let (clerk, told) = mpsc::channel(clerk::QUEUE_MAX);
    hub.cast(HubMsg::Meet { house: house.clone(), clerk: clerk.clone() }).map_err(Fault::again)?;

    let (agent, agent_news) = Client::dial(&run.socket(Role::Agent), secrets.ours(true));
    let (soul, soul_news) = Client::dial(&run.socket(Role::Soul), secrets.ours(true));
    let (heartbeat, _) = Client::dial(&run.socket(Role::Heartbeat), secrets.ours(false));
    let (answers, answered) = mpsc::channel(1024);
    tokio::spawn(desk::pump(agent_news, answered, clerk, hub.clone()));
    #[expect(clippy::disallowed_methods, reason = "the clock of the supervisor is read here, and passed in")]
    let clerk =
        Clerk { agent: agent.clone(), hub: hub.clone(), folder: home.approvals(), now: Timestamp::now };
    tokio::spawn(clerk.work(told));
    tokio::spawn(desk::hear_soul(soul_news, soul.clone(), house.clone()));
    let turns = agent.clone();
    let desk =
        Desk { agent, soul, heartbeat, board: seen.clone(), house: house.clone(), hub: hub.clone(), answers };
    tokio::spawn(door::serve(door, Arc::new(desk), hub.clone()));

    let records = Arc::new(records);
    let line = |role: Role| {
        let (socket, ours) = (run.socket(role), secrets.ours(false));
        match role {
            Role::Supervisor | Role::Soul => Line::Soul(Client::dial(&socket, ours).0),
            Role::Agent => Line::Agent(Client::dial(&socket, ours).0),
            Role::Heartbeat => Line::Heartbeat(Client::dial(&socket, ours).0),
        }
    };
    let child = |role: Role| Child {
        role,
        binary: binaries.join(program(role)),
        log: home.logs().join(format!("{role}.log")),
        secret: secrets.of(role),
        keyring: secrets.keyring_for(role),
        home: home.path().to_owned(),
        run: run.path().to_owned(),
        line: line(role),
        records: records.clone(),
        turns: (role == Role::Agent).then(|| turns.clone()),
        house: house.clone(),
    };
    let children = CHILDREN.map(child).into();
    house.cast(HouseMsg::Open { children, settings }).map_err(Fault::again)?;
    let herald = Herald::begin(wants, seen.clone(), {
        let (house, hub) = (house.clone(), hub.clone());
        move || all_at_work(house.clone(), hub.clone())
    });
    info!(home = %home.path().display(), build = ipc::BUILD, "the supervisor is up");
    let place = Place::of(home.path());
    let mut look = tokio::time::interval(HOME_LOOK_EVERY);
    let mut asked = false;
    loop {
        if std::mem::take(&mut reload) {
            take_settings(&home, &house, &herald).await;
        }
        tokio::select! {
            now = look.tick() => {
                orphans::end_the_left(now.into_std());
                // a home under another name would be started a second time, with two processes on one self
                if Place::of(home.path()) != place {
                    warn!(home = %home.path().display(), "the home was moved or removed; stopping");
                    let _ = house.cast(HouseMsg::Stop { by: "the home is gone" });
                }
            }
            wish = signals.next() => match wish {
                Wish::Reload => reload = true,
                Wish::Stop { by } => {
                    let stop = if asked { HouseMsg::Hasten { by } } else { HouseMsg::Stop { by } };
                    asked = true;
                    if house.cast(stop).is_err() {
                        warn!("the house is gone");
                    }
                }
            },
            // none comes when the signal's stream has ended, which it does not
            Some(()) = ends.recv() => orphans::reap(),
            _ = &mut ended => break,
        }
    }
    orphans::end();
    // what is queued for clients, the news of the stop among it, is written in passing
    tokio::time::sleep(Duration::from_millis(50)).await;
    herald.end().await;
    if seen.borrow().stopping {
        info!("everything has stopped");
        return Ok(());
    }
    Err(Fault { exit: Exit::Bug, source: "an actor of the supervisor failed; the log says which".into() })
}

/// Whether those who do the work answer.
async fn all_at_work(house: ActorRef<HouseMsg>, hub: ActorRef<HubMsg>) -> bool {
    let house = house.call(|answer| HouseMsg::Ping { answer }, Some(PING_PATIENCE)).await;
    let hub = hub.call(|answer| HubMsg::Count { answer }, Some(PING_PATIENCE)).await;
    matches!((house, hub), (Ok(CallResult::Success(())), Ok(CallResult::Success(_))))
}

/// Reads the configuration anew and hands it on, with the process manager told before and after.
async fn take_settings(home: &Home, house: &ActorRef<HouseMsg>, herald: &Herald) {
    herald.reloading().await;
    let reading = read_anew(home);
    let handed = house.call(|answer| HouseMsg::Configure { reading, answer }, Some(CONFIGURE_PATIENCE)).await;
    if !matches!(handed, Ok(CallResult::Success(()))) {
        warn!("the new configuration could not be handed on");
    }
    herald.reloaded().await;
}

/// What a child executes.
fn program(role: Role) -> String {
    format!("lisa-{role}")
}

/// Where the other binaries are: beside our own, as it was when we started (B14), and all of them there.
fn binaries() -> Result<PathBuf, Fault> {
    let own = std::env::current_exe().map_err(Fault::again)?;
    let folder = own.parent().map(Path::to_owned).unwrap_or_default();
    let mut programs = CHILDREN.iter().map(|role| folder.join(program(*role)));
    match programs.find(|path| !path.is_file()) {
        Some(path) => Err(Fault::configuration(GroundError::Program { path })),
        None => Ok(folder),
    }
}

/// The secrets of this supervisor's time.
struct Secrets {
    supervisor: Secret,
    soul: Secret,
    agent: Secret,
    heartbeat: Secret,
}

impl Secrets {
    fn fresh() -> Self {
        Self {
            supervisor: Secret::fresh(),
            soul: Secret::fresh(),
            agent: Secret::fresh(),
            heartbeat: Secret::fresh(),
        }
    }

    fn of(&self, role: Role) -> Secret {
        match role {
            Role::Supervisor => self.supervisor.clone(),
            Role::Soul => self.soul.clone(),
            Role::Agent => self.agent.clone(),
            Role::Heartbeat => self.heartbeat.clone(),
        }
    }

    /// Who may call whom: waiting goes one way, heartbeat to agent to soul, and the supervisor relays to all.
    fn keyring_for(&self, role: Role) -> Keyring {
        let callers: &[Role] = match role {
            Role::Supervisor => &[],
            Role::Soul => &[Role::Supervisor, Role::Agent, Role::Heartbeat],
            Role::Agent => &[Role::Supervisor, Role::Heartbeat],
            Role::Heartbeat => &[Role::Supervisor],
        };
        callers.iter().map(|role| (*role, self.of(*role))).collect()
    }

    fn ours(&self, notices: bool) -> Credentials {
        Credentials {
            role: Role::Supervisor,
            secret: self.supervisor.clone(),
            build: ipc::BUILD.to_owned(),
            life: 1,
            notices,
        }
    }
}
