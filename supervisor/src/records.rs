//! What is left for the next supervisor to end, should we be killed before we could: our children, written down so that
//! none of them is ever mistaken for a stranger (B4, B5).
//!
//! A child ends by itself when we are gone. One that hangs does not, nor does what it has started. So each is written down
//! with its pid, when it began as the kernel counts it, and the boot it began in; the next supervisor, under the lock of
//! the home and before it starts anybody, gives them a moment and then ends the child and its group. A group whose
//! leader is gone is known by a mark in the environment of its members. What left its group and emptied its environment is
//! not found again. Signals go to a descriptor of the process that was opened before it was looked at, so a pid that is
//! given to another in between costs nobody his life.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};
use tracing::{info, warn};

/// The variable that carries the mark to everything a child starts.
pub(crate) const MARK: &str = "LISA_KIN";
/// How long those of a dead supervisor may take to end by themselves; they need a moment to finish what is in hand.
const LEFT_PATIENCE: Duration = Duration::from_secs(2);
/// How long it is waited until those that were ended are gone.
const ENDING: Duration = Duration::from_secs(2);
const LOOKING: Duration = Duration::from_millis(10);
/// The most that is read of the records, and of an environment.
const BYTES_MAX: u64 = 1024 * 1024;

/// One child.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    pid: u32,
    /// When it began, in the kernel's ticks since the boot.
    began: u64,
    boot: String,
    mark: String,
}

/// What the kernel says of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    group: u32,
    began: u64,
    is_dead: bool,
}

/// Our children, as they stand in the file.
#[derive(Debug)]
pub(crate) struct Records {
    path: PathBuf,
    mark: String,
    boot: String,
    kept: Mutex<BTreeMap<u32, Record>>,
}

impl Records {
    /// Ends what a supervisor before us has left, and begins records of our own at `path`. Waits no longer than four
    /// seconds, and not at all where nothing was left. To be called under the lock of the home.
    pub(crate) async fn take_over(path: &Path) -> Self {
        let boot =
            fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned();
        let left = read(path);
        if !left.is_empty() {
            end(&left, &boot).await;
        }
        let records =
            Self { path: path.to_owned(), mark: ipc::id::random_hex::<8>(), boot, kept: Mutex::default() };
        records.write(&BTreeMap::new());
        records
    }

    /// What stands in the environment of each of our children.
    pub(crate) fn mark(&self) -> &str {
        &self.mark
    }

    /// A child was made.
    pub(crate) fn note(&self, pid: u32) {
        // one that has ended already leaves nothing to write down
        let Some(seen) = seen(pid) else { return };
        let record = Record { pid, began: seen.began, boot: self.boot.clone(), mark: self.mark.clone() };
        self.change(|kept| drop(kept.insert(pid, record)));
    }

    /// It was waited for, and its group was ended.
    pub(crate) fn forget(&self, pid: u32) {
        self.change(|kept| drop(kept.remove(&pid)));
    }

    fn change(&self, change: impl FnOnce(&mut BTreeMap<u32, Record>)) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut kept);
        self.write(&kept);
    }

    /// Nothing is flushed: what the file is for does not outlive the machine either.
    fn write(&self, kept: &BTreeMap<u32, Record>) {
        let lines: String = kept
            .values()
            .map(|record| serde_json::to_string(record).expect("a record is JSON") + "\n")
            .collect();
        let aside = self.path.with_added_extension("new");
        let written = fs::write(&aside, lines).and_then(|()| fs::rename(&aside, &self.path));
        if let Err(error) = written {
            warn!(%error, path = %self.path.display(), "could not write down our children; one that hangs may outlive us if we are killed");
        }
    }
}

/// The records of the supervisor before; a line that is none is nobody's.
fn read(path: &Path) -> Vec<Record> {
    let text = read_some(path).unwrap_or_default();
    String::from_utf8_lossy(&text).lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn read_some(path: &Path) -> io::Result<Vec<u8>> {
    use std::io::Read as _;
    let mut text = Vec::new();
    fs::File::open(path)?.take(BYTES_MAX).read_to_end(&mut text)?;
    Ok(text)
}

async fn end(left: &[Record], boot: &str) {
    let patient = Instant::now() + LEFT_PATIENCE;
    while !theirs(left, boot).is_empty() && Instant::now() < patient {
        tokio::time::sleep(LOOKING).await;
    }
    let over = Instant::now() + ENDING;
    loop {
        let still = theirs(left, boot);
        if still.is_empty() {
            return;
        }
        if Instant::now() >= over {
            warn!(left = ?still, "some processes of the supervisor before could not be ended");
            return;
        }
        for pid in still {
            info!(pid, "ending what the supervisor before has left");
            kill(pid, left, boot);
        }
        tokio::time::sleep(LOOKING).await;
    }
}

/// Those that are left of the children in the records, and of their groups.
fn theirs(left: &[Record], boot: &str) -> Vec<u32> {
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| is_theirs(*pid, left, boot))
        .collect()
}

fn is_theirs(pid: u32, left: &[Record], boot: &str) -> bool {
    let Some(seen) = seen(pid) else { return false };
    left.iter().any(|record| belongs(record, boot, pid, seen, || marks(pid, &record.mark)))
}

/// Whether a process is the child of a record or of its group. Pure, but for the look at its environment where it counts.
fn belongs(record: &Record, boot: &str, pid: u32, seen: Seen, is_marked: impl FnOnce() -> bool) -> bool {
    if seen.is_dead || boot.is_empty() || record.boot != boot || record.mark.is_empty() {
        return false;
    }
    if pid == record.pid {
        return seen.began == record.began;
    }
    seen.group == record.pid && seen.began >= record.began && is_marked()
}

/// Whether the environment a process began with carries the mark.
fn marks(pid: u32, mark: &str) -> bool {
    let wanted = format!("{MARK}={mark}");
    let environment = read_some(Path::new(&format!("/proc/{pid}/environ"))).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
}

fn seen(pid: u32) -> Option<Seen> {
    parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Reads `/proc/PID/stat`. The name stands in brackets and may hold anything, brackets too.
fn parse(stat: &str) -> Option<Seen> {
    let fields: Vec<_> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    Some(Seen {
        is_dead: matches!(*fields.first()?, "Z" | "X"),
        group: fields.get(2)?.parse().ok()?,
        began: fields.get(19)?.parse().ok()?,
    })
}

#[cfg(target_os = "linux")]
fn kill(pid: u32, left: &[Record], boot: &str) {
    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
    let Some(number) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return };
    let Ok(process) = pidfd_open(number, PidfdFlags::empty()) else { return };
    // looked at again now that the descriptor holds it
    if is_theirs(pid, left, boot) {
        let _ = pidfd_send_signal(process, Signal::KILL);
    }
}

/// Elsewhere nothing is known of a process that would tell it from a stranger, so none is ever found.
#[cfg(not(target_os = "linux"))]
fn kill(_: u32, _: &[Record], _: &str) {}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        Record { pid: 40, began: 900, boot: "b".into(), mark: "m".into() }
    }

    #[test]
    fn b4_a_pid_alone_makes_nobody_ours() {
        let check = |boot: &str, pid: u32, group: u32, began: u64, marked: bool, theirs: bool| {
            let seen = Seen { group, began, is_dead: false };
            assert_eq!(
                belongs(&record(), boot, pid, seen, || marked),
                theirs,
                "{boot} {pid} {seen:?} {marked}"
            );
        };
        check("b", 40, 40, 900, false, true);
        check("b", 40, 40, 901, true, false); // the number was given to another
        check("c", 40, 40, 900, true, false); // another boot
        check("", 40, 40, 900, true, false);
        check("b", 41, 40, 950, true, true); // what the child has started
        check("b", 41, 40, 950, false, false); // a group of a stranger that has the number
        check("b", 41, 40, 899, true, false);
        check("b", 41, 41, 950, true, false);
        let dead = Seen { group: 40, began: 900, is_dead: true };
        assert!(!belongs(&record(), "b", 40, dead, || true));
    }

    #[test]
    fn a_name_may_hold_anything() {
        let mut fields = vec!["0"; 30];
        (fields[0], fields[2], fields[19]) = ("S", "40", "900");
        let stat = format!("41 (a) S 1 (灯)) {}", fields.join(" "));
        assert_eq!(parse(&stat), Some(Seen { group: 40, began: 900, is_dead: false }));
        for bad in ["", "41", "41 (a)", "41 (a) S 1"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn what_is_written_down_is_read_again_and_what_is_none_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("children.jsonl");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let ours = std::process::id();
        let records = runtime.block_on(Records::take_over(&path));
        records.note(ours);
        records.note(u32::MAX);
        let read_again = read(&path);
        assert_eq!(read_again.iter().map(|record| record.pid).collect::<Vec<_>>(), [ours]);
        assert!(is_theirs(ours, &read_again, &records.boot), "it is known again");
        let earlier = Record { began: read_again[0].began - 1, ..read_again[0].clone() };
        fs::write(&path, format!("no record\n{}", serde_json::to_string(&earlier).unwrap())).unwrap();
        // we survive this: the record is of another process that had our pid
        drop(runtime.block_on(Records::take_over(&path)));
        assert_eq!(fs::read_to_string(&path).unwrap(), "");
        records.forget(ours);
        assert_eq!(read(&path), []);
    }
}
