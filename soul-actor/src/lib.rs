//! The soul: the process that holds the self, and the only one that writes it, one git commit a write.
//!
//! ```text
//!  service, keeper   the socket, and the actor before the thread        repository   git, work files, history
//!  desk              every question, answered one after the other       grant        who may do what
//!  tools, input      what a model may ask for, and how it is read       message      what a commit says
//!  document, slug    which documents there are, and their budgets       answered     what was asked before
//!  sheet, entries    the forms of the files; injective                  held         values, opinions, desires
//!  emotions, members what she feels, in a file kept byte for byte       desires      desires revised, closed, condensed
//!  dynamics          how strong a desire is now, and which is first
//!  seed, birth       the first documents                                seal         the original's tamper hashes
//!  migrate           an older form of the files, brought to ours     neighbour    a running original, and its locks
//!  once_a_session    how often a reflection changes who she is
//!  portrait, reading what a prompt shows, what a model is read          plan         what a wish comes to
//!  objections        her "no": the journal's entry and the ledger
//!  topic, candidates what she noticed again and again                   dreams       what of it becomes part of her
//! ```
//!
//! An answered write is one commit that stands, with the caller that the soul itself found out. What is absent on
//! purpose: nobody is trusted about who they are, and nothing but this process's own files is waited for.

mod answered;
mod birth;
mod blame;
mod candidates;
mod changelog;
mod check;
mod desires;
mod desk;
mod document;
mod dreams;
mod dynamics;
mod emotions;
mod entries;
mod fields;
mod gate;
mod grant;
mod held;
mod hits;
mod input;
mod keeper;
mod kept;
mod members;
mod message;
mod migrate;
mod neighbour;
mod notes;
mod objections;
mod once_a_session;
mod outside;
mod plan;
mod portrait;
mod ratings;
mod reading;
mod recall;
mod repository;
mod rollback;
mod seal;
mod seed;
mod service;
mod sheet;
mod slug;
mod tools;
mod topic;

use std::{
    ffi::OsString, fs::File, io::Write as _, path::Path, process::ExitCode, sync::Arc, time::Duration,
};

use ipc::{
    child::{Brief, Report, report, report_ready},
    config::Config,
    contract::soul::{Reply, Soul},
    endpoint::{Endpoint, EndpointError, lock_file, private_folder},
    exit::{Exit, Fault},
    hello::{Role, Secret},
    home::{Home, Run},
    server::{Notices, serve},
};
use jiff::{Timestamp, tz::TimeZone};
use ractor::{Actor, ActorRef};
use serde_json::{Map, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::{
    desk::{Clock, Desk},
    grant::{Grant, RunKey},
    keeper::{Beginning, InHand, Keeper, KeeperMsg},
    outside::Bell,
    repository::{Repository, RepositoryError, cause},
    service::Front,
};

/// How long a predecessor on its way out is waited for.
const LOCK_PATIENCE: Duration = Duration::from_secs(3);

/// Serves the soul of a home until it is told to stop; a write in hand is finished first.
///
/// The fault says what a person must mend (the repository is broken, something lies in the way), or that the same
/// start may work later (another process still holds the soul).
pub async fn run(brief: Brief, stop: CancellationToken) -> Result<(), Fault> {
    let mut soul = Serving::start(&brief, Box::new(now)).await?;
    let tell = |notices: &[String]| {
        report(&Report::Facts(Map::from_iter([("notice".to_owned(), json!(notices.join("; ")))])));
    };
    if !soul.notices.is_empty() {
        tell(&soul.notices);
    }
    outside::watch(brief.home().soul(), soul.keeper.clone(), soul.bell.take(), tell);
    report_ready();
    tokio::select! {
        () = stop.cancelled() => {}
        _ = &mut soul.desk => {
            return Err(Fault { exit: Exit::Bug, source: "the thread that owns the repository has died".into() });
        }
    }
    soul.stop().await;
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "the edge of this process, where the clock is read")]
fn now() -> Timestamp {
    Timestamp::now()
}

/// `lisa-soul check --home DIR [--repair]`: looks whether everything is as it should be while no soul serves, and says
/// so as one line of JSON on standard output, the same [`Reply::Checked`] that a serving soul answers.
pub fn check(arguments: &[OsString]) -> ExitCode {
    ipc::log::start();
    let (mut home, mut repair, mut rest) = (None, false, arguments.iter());
    while let Some(argument) = rest.next() {
        match argument.to_str() {
            Some("--home") => home = rest.next().map(Home::at),
            Some("--repair") => repair = true,
            _ => return Exit::Usage.into(),
        }
    }
    let Some(home) = home else { return Exit::Usage.into() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("the system gives a process its event queue");
    match runtime.block_on(check_home(&home, repair)) {
        Ok(reply) => {
            let line = serde_json::to_string(&reply).expect("an answer is JSON");
            // whoever asked may have left
            let _ = writeln!(std::io::stdout().lock(), "{line}");
            Exit::Asked.into()
        }
        Err(fault) => {
            tracing::error!("the check ends: {fault}");
            fault.exit.into()
        }
    }
}

async fn check_home(home: &Home, repair: bool) -> Result<Reply, Fault> {
    let root = home.soul();
    if !root.is_dir() {
        return Ok(Reply::Checked { findings: vec![] });
    }
    let run = Run::find(home);
    private_folder(run.path()).map_err(Fault::configuration)?;
    let _lock = take_lock(&run).await?;
    let zone = Config::read(&home.config()).map_or(TimeZone::UTC, |config| config.zone());
    let key = RunKey::derive(&Secret::fresh());
    let mut desk = open(&root, zone, key, Box::new(now))?;
    // who runs this program has the files in hand already
    Ok(desk
        .check(Grant::Human, repair, now())
        .unwrap_or_else(|why| Reply::Refused { reason: why.sentence() }))
}

/// Takes the kernel's lock that makes one writer a soul.
async fn take_lock(run: &Run) -> Result<File, Fault> {
    let lock = run.path().join("soul.lock");
    lock_file(&lock, LOCK_PATIENCE).await.map_err(Fault::configuration)?.ok_or_else(|| {
        let lock = lock.display();
        Fault::again(format!(
            "another process holds the soul (`{lock}`); end it, with `lisa down` or by hand, and start again"
        ))
    })
}

/// The desk over a home's soul. A repository that cannot be opened leaves the documents to be read, and says so: a
/// process that ends instead would take her voice away as well.
fn open(root: &Path, zone: TimeZone, key: RunKey, clock: Clock) -> Result<Desk, Fault> {
    match Repository::open(root, zone.clone()) {
        Ok(repository) => Ok(Desk::new(repository, zone, key, clock)),
        Err(error @ RepositoryError::InTheWay { .. }) => Err(Fault::configuration(error)),
        Err(error) => {
            let why = cause::sentence(&error);
            tracing::error!(error = why, "the repository cannot be opened; she can be read, not changed");
            Ok(Desk::reading(root, zone, key, clock, why))
        }
    }
}

/// A soul that serves.
struct Serving {
    keeper: ActorRef<KeeperMsg>,
    desk: JoinHandle<()>,
    server: JoinHandle<()>,
    notices: Vec<String>,
    bell: Bell,
    _lock: File,
}

impl Serving {
    async fn start(brief: &Brief, clock: Clock) -> Result<Self, Fault> {
        let (root, run) = (brief.home().soul(), brief.run());
        private_folder(run.path()).map_err(Fault::configuration)?;
        let lock = take_lock(&run).await?;
        let (zone, key) = (brief.config.zone(), RunKey::derive(&brief.secret));
        let (gates, dreams) = (brief.config.gates.clone(), brief.config.dreams.clone());
        let opening = tokio::task::spawn_blocking(move || -> Result<_, Fault> {
            let mut desk = open(&root, zone, key, clock)?.gated_by(gates).dreaming_by(dreams);
            let notices = desk.notices();
            Ok((desk, notices))
        });
        let (desk, notices) =
            opening.await.map_err(|error| Fault { exit: Exit::Bug, source: error.into() })??;

        let listeners = Notices::<Soul>::default();
        let bell = Bell::default();
        let in_hand = InHand::default();
        let beginning =
            Beginning { desk, notices: listeners.clone(), bell: bell.ringer(), in_hand: in_hand.clone() };
        let (keeper, desk) = Actor::spawn(None, Keeper, beginning).await.map_err(Fault::again)?;
        let endpoint = Endpoint::listen(&run.socket(Role::Soul)).await.map_err(|error| match error {
            EndpointError::Held { .. } => Fault::again(error),
            _ => Fault::configuration(error),
        })?;
        let front = Arc::new(Front { keeper: keeper.clone(), in_hand });
        let server = tokio::spawn(serve::<Soul, _>(endpoint, brief.door(), front, listeners));
        info!(notices = notices.len(), "the soul serves");
        Ok(Self { keeper, desk, server, notices, bell, _lock: lock })
    }

    /// Takes no more questions, finishes those it has, and closes the repository before it lets go of the lock.
    async fn stop(self) {
        self.server.abort();
        self.keeper.stop(None);
        if let Err(error) = self.desk.await {
            tracing::error!(%error, "the keeper did not end in order");
        }
    }
}

#[cfg(test)]
mod hostile;
#[cfg(test)]
mod tests;
