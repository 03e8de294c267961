//! Orphans: processes below us whose parents have died. They come to us and stay ours.
//!
//! Without that a process of hers could slip away (fork twice, let the first one end) and count as a person's program
//! (`chat/authority`), or outlive the supervisor. The kernel gives a *subreaper* whatever is left alone below it; so we
//! must also wait for it when it ends, or it would stay a zombie for ever.
//!
//! Children of our own are awaited by their own threads (`spawn`): which pids those are is kept here, under the lock that
//! is held while one is made, so that no end of a child is taken for that of an orphan.

use std::{
    collections::{BTreeMap, BTreeSet},
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
/// Since when each orphan is known to be one.
static SEEN: Mutex<BTreeMap<Pid, Instant>> = Mutex::new(BTreeMap::new());
/// How long an orphan may go on: it may be about to end by itself, as what a killed agent had started is.
const ALONE_MAX: Duration = Duration::from_secs(10);
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

/// Ends the orphans that have been left alone for long: whoever started them is gone, and nobody waits for what they do.
/// To be called now and then with the instant, since an orphan comes without a sign.
pub(crate) fn end_the_left(now: Instant) {
    // the first process of a container is given everybody's
    if std::process::id() == 1 {
        return;
    }
    let awaited = awaited();
    let orphans = orphans(&awaited);
    let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    for pid in over(&mut seen, &orphans, now) {
        info!(%pid, "a process was left alone below us and is ended");
        // ours, since nobody else waits for it
        let _ = kill(pid, Signal::SIGKILL);
    }
}

/// Which of the orphans there are have been so for long; `seen` is since when each is known.
fn over(seen: &mut BTreeMap<Pid, Instant>, orphans: &[Pid], now: Instant) -> Vec<Pid> {
    seen.retain(|pid, _| orphans.contains(pid));
    let mut since = |pid: &Pid| *seen.entry(*pid).or_insert(now);
    orphans.iter().copied().filter(|pid| now.duration_since(since(pid)) >= ALONE_MAX).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_orphan_is_ended_when_it_has_been_one_for_long_and_its_number_begins_anew() {
        let (begin, mut seen) = (Instant::now(), BTreeMap::new());
        let mut at = |secs: u64, orphans: &[i32]| {
            let orphans: Vec<Pid> = orphans.iter().copied().map(Pid::from_raw).collect();
            let over = over(&mut seen, &orphans, begin + Duration::from_secs(secs));
            over.into_iter().map(Pid::as_raw).collect::<Vec<_>>()
        };
        assert_eq!(at(0, &[7]), [0; 0]);
        assert_eq!(at(9, &[7, 8]), [0; 0]);
        assert_eq!(at(12, &[7, 8]), [7]);
        assert_eq!(at(15, &[8]), [0; 0]);
        assert_eq!(at(20, &[7, 8]), [8], "another with the number of one that is gone is new");
    }
}
