//! Orphans: processes below us whose parents have died. They come to us and stay ours.
//!
//! Without that a process of hers could slip away (fork twice, let the first one end) and count as a person's program
//! (`chat/authority`), or outlive the supervisor. The kernel gives a *subreaper* whatever is left alone below it; so we
//! must also wait for it when it ends, or it would stay a zombie for ever.
//!
//! Children of our own are awaited by their own threads (`spawn`): which pids those are is kept here, under the lock that
//! is held while one is made, so that no end of a child is taken for that of an orphan.

use std::{
    collections::BTreeSet,
    io,
    process::{Child, Command},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use nix::{
    sys::{
        signal::{Signal, kill},
        wait::{WaitPidFlag, WaitStatus, waitpid},
    },
    unistd::Pid,
};
use tracing::{info, warn};

use crate::chat::authority::parent;

/// The children that have a thread of their own.
static AWAITED: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());
/// How long the last orphans may take to be gone once they were ended.
const ENDING: Duration = Duration::from_secs(2);
const LOOKING: Duration = Duration::from_millis(10);

/// From now on what is left alone below us comes to us.
pub(crate) fn adopt() {
    #[cfg(target_os = "linux")]
    if let Err(error) = nix::sys::prctl::set_child_subreaper(true) {
        warn!(%error, "what is left alone below us cannot be adopted; it may outlive us, and pass for a person's program");
    }
}

/// Makes a child that somebody will wait for.
pub(crate) fn spawn_awaited(command: &mut Command) -> io::Result<Child> {
    let mut awaited = awaited();
    let child = command.spawn()?;
    awaited.insert(child.id());
    Ok(child)
}

/// The child was waited for, and its pid may be anybody's from now on.
pub(crate) fn no_longer_awaited(pid: u32) {
    awaited().remove(&pid);
}

/// Waits for the orphans that have ended. To be called when a child has.
pub(crate) fn reap() {
    let awaited = awaited();
    for pid in orphans(&awaited) {
        match waitpid(pid, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) | Err(_) => {}
            Ok(_) => info!(%pid, "an orphan below us has ended"),
        }
    }
}

/// Ends all orphans there are, and what they leave behind in turn.
pub(crate) fn end() {
    let end = Instant::now() + ENDING;
    loop {
        let left = {
            let awaited = awaited();
            let left = orphans(&awaited);
            for pid in &left {
                // ours, since nobody else waits for it: the number is not given to another before we have
                let _ = kill(*pid, Signal::SIGKILL);
                let _ = waitpid(*pid, Some(WaitPidFlag::WNOHANG));
            }
            left
        };
        if left.is_empty() {
            return;
        }
        if Instant::now() >= end {
            warn!(left = left.len(), "some orphans below us could not be ended");
            return;
        }
        // nothing tells of the end of many at once; it is looked again, until the deadline
        thread::park_timeout(LOOKING);
    }
}

/// The processes that are children of ours and nobody's to wait for.
fn orphans(awaited: &BTreeSet<u32>) -> Vec<Pid> {
    let ours = i32::try_from(std::process::id()).unwrap_or_default();
    let pids = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| !awaited.contains(pid))
        .filter_map(|pid| i32::try_from(pid).ok())
        .filter(|pid| parent(*pid) == Some(ours))
        .map(Pid::from_raw)
        .collect()
}

fn awaited() -> MutexGuard<'static, BTreeSet<u32>> {
    AWAITED.lock().unwrap_or_else(PoisonError::into_inner)
}
