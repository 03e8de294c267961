//! The door of a child process: the brief it is born with, the lifeline it hangs on, the report it gives.
//!
//! ```text
//!  fd 0  ◀── the brief, one line; then nothing, until the end of the supervisor is the end of the stream
//!  fd 1  ──▶ reports, one a line: ready, and what is to be known
//!  fd 2  ──▶ the log
//! ```
//!
//! The brief holds the secrets of the handshake. A pipe is read once and by one process alone, so nothing that the
//! child starts can find them in its environment, its arguments or a file. The same pipe tells the child that its
//! supervisor is gone, however it died (B5); no signal has to arrive for that.

use std::{
    io::{BufRead as _, Read as _, Write as _},
    process::ExitCode,
    time::Duration,
};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::{
    client::Credentials,
    config::{Config, Sandbox},
    confine,
    exit::{Exit, Fault},
    hello::{Keyring, Role, Secret},
    home::{Home, Run},
    server::Door,
};

/// How long a child may take to end in order once its supervisor is gone.
const ORPHAN_PATIENCE: Duration = Duration::from_millis(1500);

/// What a child is told at its birth.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Brief {
    /// Who it is.
    pub role: Role,
    /// Which life of it this is, counted from 1 by each supervisor.
    pub life: u64,
    /// The home.
    pub home: std::path::PathBuf,
    /// Where the sockets are.
    pub run: std::path::PathBuf,
    /// What proves its role to others; the same in every life under one supervisor.
    pub secret: Secret,
    /// Who may call it.
    pub keyring: Keyring,
    /// What the person has set.
    pub config: Config,
}

impl Brief {
    /// The home.
    pub fn home(&self) -> Home {
        Home::at(&self.home)
    }

    /// Where the sockets are.
    pub fn run(&self) -> Run {
        Run::at(&self.run)
    }

    /// How it presents itself when it dials others.
    pub fn credentials(&self, notices: bool) -> Credentials {
        Credentials {
            role: self.role,
            secret: self.secret.clone(),
            build: crate::BUILD.to_owned(),
            life: self.life,
            notices,
        }
    }

    /// How it presents itself to those who call.
    pub fn door(&self) -> Door {
        Door { keyring: self.keyring.clone(), build: crate::BUILD.to_owned(), life: self.life }
    }
}

/// What a child says on its standard output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    /// It serves.
    Ready {
        /// Its build.
        build: String,
    },
    /// Things to be known about it, which replace what was said before under the same names: `model`, `notice`.
    Facts(Map<String, Value>),
}

/// Gives a report. When nobody listens any more the lifeline ends this process soon enough.
pub fn report(report: &Report) {
    let mut line = serde_json::to_vec(report).expect("a report is JSON");
    line.push(b'\n');
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(&line).and_then(|()| out.flush());
}

/// Says that this process serves.
pub fn report_ready() {
    report(&Report::Ready { build: crate::BUILD.to_owned() });
}

/// Runs a child process: signals first (B12), then the brief, then `work` on a current-thread runtime, until it is done
/// or told to stop through the token it is given.
pub fn main<W, F>(role: Role, work: W) -> ExitCode
where
    W: FnOnce(Brief, CancellationToken) -> F,
    F: Future<Output = Result<(), Fault>>,
{
    crate::log::start();
    // before the runtime that may get stuck
    crate::standing::arm();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("the system gives a process its event queue");
    let stop = CancellationToken::new();
    let ended = runtime.block_on(async {
        stop_on_signals(&stop)?;
        // a thread that ends with it: one of the runtime's own would stay, and be outside of what is given up below
        let (told, hears) = tokio::sync::oneshot::channel();
        std::thread::spawn(move || {
            // nobody hears of it when a signal came first
            let _ = told.send(receive(role));
        });
        let brief = tokio::select! {
            brief = hears => brief.expect("reading does not panic")?,
            () = stop.cancelled() => return Ok(()),
        };
        info!(life = brief.life, build = crate::BUILD, "{role} starts");
        give_up(&brief)?;
        hang_on(stop.clone());
        work(brief, stop.clone()).await
    });
    // a blocking read of the lifeline must not hold the process back
    runtime.shutdown_background();
    match ended {
        Ok(()) => Exit::Asked.into(),
        Err(fault) => {
            error!("{role} ends: {fault}");
            fault.exit.into()
        }
    }
}

/// Gives up, for good, what this process has no business with. Every thread but those that are older than this is bound.
fn give_up(brief: &Brief) -> Result<(), Fault> {
    if !matches!(brief.role, Role::Agent | Role::Heartbeat) || brief.config.tools.sandbox == Sandbox::Off {
        return Ok(());
    }
    match confine::child(brief.role, &brief.home(), &brief.run()).map_err(Fault::again)? {
        Ok(landlock) => info!(%landlock, "confined to what is ours"),
        Err(error) => warn!(error = crate::exit::chain(&error), "not confined"),
    }
    Ok(())
}

fn stop_on_signals(stop: &CancellationToken) -> Result<(), Fault> {
    use tokio::signal::unix::{SignalKind, signal};
    // a file that may grow no further is an error of that write, not the end of the process; a handler stays once it is set
    drop(signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw())).map_err(Fault::again)?);
    for kind in [SignalKind::terminate(), SignalKind::interrupt()] {
        let mut signals = signal(kind).map_err(Fault::again)?;
        let stop = stop.clone();
        tokio::spawn(async move {
            signals.recv().await;
            stop.cancel();
        });
    }
    Ok(())
}

fn receive(role: Role) -> Result<Brief, Fault> {
    use std::io::IsTerminal as _;
    let usage = |why: String| Fault {
        exit: Exit::Usage,
        source: format!(
            "lisa-{role} is started by `lisa up`, which hands it a brief on standard input; {why}"
        )
        .into(),
    };
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Err(usage("a terminal is none".to_owned()));
    }
    let mut line = String::new();
    stdin.lock().read_line(&mut line).map_err(|error| usage(format!("reading it failed: {error}")))?;
    let brief: Brief =
        serde_json::from_str(&line).map_err(|error| usage(format!("this is none: {error}")))?;
    if brief.role != role {
        return Err(usage(format!("this one is for the {}", brief.role)));
    }
    Ok(brief)
}

/// Stops the process in order when the supervisor is gone, and not so orderly when that takes too long.
fn hang_on(stop: CancellationToken) {
    std::thread::spawn(move || {
        let mut rest = [0; 64];
        while matches!(std::io::stdin().lock().read(&mut rest), Ok(read) if read > 0) {}
        info!("the supervisor is gone");
        stop.cancel();
        std::thread::park_timeout(ORPHAN_PATIENCE);
        std::process::exit(Exit::Again as i32);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_json_is_pinned() {
        assert_eq!(
            serde_json::to_value(Report::Ready { build: "b".into() }).unwrap(),
            json!({"ready": {"build": "b"}})
        );
        let facts = Report::Facts(Map::from_iter([("model".to_owned(), json!("offline"))]));
        assert_eq!(serde_json::to_value(facts).unwrap(), json!({"facts": {"model": "offline"}}));
        let brief = json!({"role": "soul", "life": 1, "home": "/h", "run": "/h/run", "secret": "s",
            "keyring": {"agent": "a"}, "config": {}});
        let brief: Brief = serde_json::from_value(brief).unwrap();
        assert_eq!((brief.role, brief.config == Config::default()), (Role::Soul, true));
    }
}
