//! The process that keeps the others alive, and holds the conversation while they restart.
//!
//! ```text
//!  lock ─▶ configuration ─▶ sockets ─▶ house (children) · hub (clients) · desk (relay)        ─▶ stop, in order
//! ```
//!
//! It promises: one supervisor a home; every death of a child is seen, told and answered by the policy of
//! `lifecycle`; nothing it does waits for a child without a deadline; a client stays attached; nothing outlives it.

mod approvals;
mod board;
mod chat;
mod child;
mod events;
mod house;
mod lifecycle;
mod orphans;
mod spawn;

use std::{
    io::{self, Seek as _, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use ipc::{
    client::{Client, Credentials},
    config::Config,
    endpoint::{Claim, EndpointError, Place, lock_file, our_uid, private_folder},
    exit::{Exit, Fault},
    hello::{Keyring, Role, Secret},
    home::{Home, Run},
};
use jiff::Timestamp;
use nix::sys::stat::{Mode, umask};
use ractor::Actor;
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::{mpsc, watch},
};
use tracing::{info, warn};

use crate::{
    board::Board,
    chat::{
        clerk::{self, Clerk},
        desk::{self, Desk},
        door::{self, Door},
        hub::{Hub, HubMsg},
    },
    child::Child,
    events::EventLog,
    house::{House, HouseMsg},
};

/// How long a predecessor that is on its way out is waited for.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);

/// How often it is looked whether the home is still where it was.
const HOME_LOOK_EVERY: Duration = Duration::from_secs(3);

/// Keeps Lisa alive in `home` until asked to stop by a signal or a client.
pub async fn run(home: Home) -> Result<(), Fault> {
    // first of all, so that a signal during the start ends it in order (B12)
    let mut signals = Signals::install().map_err(Fault::again)?;
    umask(Mode::from_bits_truncate(0o077));
    tokio::select! {
        by = signals.next() => {
            info!(by, "asked to stop before anything was started");
            Ok(())
        }
        ground = Ground::prepare(home) => live(ground?, signals).await,
    }
}

/// What stands before anything is started.
struct Ground {
    home: Home,
    run: Run,
    config: Config,
    log: EventLog,
    door: Door,
    _lock: std::fs::File,
}

impl Ground {
    async fn prepare(home: Home) -> Result<Self, Fault> {
        home.make().map_err(Fault::configuration)?;
        let lock = take_home(&home).await?;
        let config = Config::read(&home.config()).map_err(Fault::configuration)?;
        let run = make_run(&home).map_err(Fault::configuration)?;
        let socket = Claim::take(&run.chat_socket()).await.map_err(Fault::configuration)?;
        let path = socket.path().to_owned();
        let door = Door::open(socket).map_err(failed("listen on", &path))?;
        let events = home.logs().join("events.jsonl");
        let log = EventLog::open(&events).map_err(failed("open the event log at", &events))?;
        Ok(Self { home, run, config, log, door, _lock: lock })
    }
}

#[derive(Debug, thiserror::Error)]
enum GroundError {
    #[error(
        "could not {attempt} `{path}`; see that it is a place we may write to, or choose another with `--home DIR`"
    )]
    Home { attempt: &'static str, path: PathBuf, source: io::Error },
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

/// The signals that end us. A hang-up counts while we belong to a terminal.
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    hang_up: tokio::signal::unix::Signal,
    of_a_terminal: bool,
}

impl Signals {
    fn install() -> io::Result<Self> {
        use std::io::IsTerminal as _;
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
            of_a_terminal: io::stderr().is_terminal(),
        })
    }

    async fn next(&mut self) -> &'static str {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return "SIGTERM",
                _ = self.interrupt.recv() => return "SIGINT",
                _ = self.hang_up.recv() => if self.of_a_terminal { return "SIGHUP" },
            }
        }
    }
}

async fn live(ground: Ground, mut signals: Signals) -> Result<(), Fault> {
    let Ground { home, run, config, log, door, _lock } = ground;
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
    let desk =
        Desk { agent, soul, heartbeat, board: seen.clone(), house: house.clone(), hub: hub.clone(), answers };
    tokio::spawn(door::serve(door, Arc::new(desk), hub.clone()));

    let binaries = binaries()?;
    let child = |role: Role, binary: &str| Child {
        role,
        binary: binaries.join(binary),
        log: home.logs().join(format!("{role}.log")),
        secret: secrets.of(role),
        keyring: secrets.keyring_for(role),
        home: home.path().to_owned(),
        run: run.path().to_owned(),
        config: config.clone(),
        house: house.clone(),
    };
    let children = vec![
        child(Role::Soul, "lisa-soul"),
        child(Role::Agent, "lisa-agent"),
        child(Role::Heartbeat, "lisa-heartbeat"),
    ];
    house.cast(HouseMsg::Open { children }).map_err(Fault::again)?;
    info!(home = %home.path().display(), build = ipc::BUILD, "the supervisor is up");
    let place = Place::of(home.path());
    let mut look = tokio::time::interval(HOME_LOOK_EVERY);
    loop {
        tokio::select! {
            _ = look.tick() => {
                // a home under another name would be started a second time, with two processes on one self
                if Place::of(home.path()) != place {
                    warn!(home = %home.path().display(), "the home was moved or removed; stopping");
                    let _ = house.cast(HouseMsg::Stop { by: "the home is gone" });
                }
            }
            by = signals.next() => {
                // a second wish changes nothing: the order of stopping has deadlines of its own
                if house.cast(HouseMsg::Stop { by }).is_err() {
                    warn!("the house is gone");
                }
            }
            // none comes when the signal's stream has ended, which it does not
            Some(()) = ends.recv() => orphans::reap(),
            _ = &mut ended => break,
        }
    }
    orphans::end();
    // what is queued for clients, the news of the stop among it, is written in passing
    tokio::time::sleep(Duration::from_millis(50)).await;
    if seen.borrow().stopping {
        info!("everything has stopped");
        return Ok(());
    }
    Err(Fault { exit: Exit::Bug, source: "an actor of the supervisor failed; the log says which".into() })
}

/// Where the other binaries are: beside our own, as it was when we started (B14).
fn binaries() -> Result<PathBuf, Fault> {
    let own = std::env::current_exe().map_err(Fault::again)?;
    Ok(own.parent().map(Path::to_owned).unwrap_or_default())
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
