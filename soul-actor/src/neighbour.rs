//! The neighbour: an original LISA that may run on the same home, and the lock files by which it keeps order.
//!
//! Its locks (`.write.lock`, `.git-write.lock`: `{"pid", "ts"}`, made by linking a finished file) are honoured always: while
//! one is fresh and its process lives we wait, and then say who it is. Ours are made only in a home that the original
//! gave birth to, also after it was migrated, since nobody else looks for them.

use std::{
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::{migrate, repository::workfile::look, seed};

/// The order in which the original takes them.
const LOCKS: [&str; 2] = [".write.lock", ".git-write.lock"];
/// After this the original takes a lock for left behind.
const STALE: SignedDuration = SignedDuration::from_secs(30);
/// How long a living holder is waited for, as the original waits.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long between two looks.
const PAUSE: Duration = Duration::from_millis(50);

/// What is known of the home.
#[derive(Debug, Default)]
pub(crate) struct Neighbour {
    /// Whether the original gave birth here; unknown before the first write.
    born_by_original: Option<bool>,
}

/// Locks of ours, removed when this goes.
#[derive(Debug)]
pub(crate) struct Held(Vec<PathBuf>);

/// The time, which only the age of somebody else's lock is measured by.
#[expect(clippy::disallowed_methods, reason = "locks of other processes carry the system's time")]
pub(crate) fn now() -> Timestamp {
    Timestamp::now()
}

impl Neighbour {
    /// Waits until no living original holds a lock, and takes both where it would look for them.
    pub(crate) fn make_way(&mut self, root: &Path, now: Timestamp) -> Result<Held, String> {
        let deadline = Instant::now() + PATIENCE;
        let started = Instant::now();
        let shared = *self.born_by_original.get_or_insert_with(|| {
            let seed = look(root, seed::PATH).ok().flatten();
            seed.is_some_and(|bytes| seed::schema(&bytes).is_none()) || migrate::was_of_the_original(root)
        });
        let mut held = Held(Vec::new());
        for name in LOCKS {
            let place = root.join(name);
            loop {
                let passed = SignedDuration::try_from(started.elapsed()).unwrap_or(SignedDuration::ZERO);
                match holder(&place, now.saturating_add(passed).unwrap_or(now)) {
                    Some(pid) if Instant::now() >= deadline => {
                        return Err(format!(
                            "process {pid} of an original LISA is writing (it holds `{}`); end it, or try again when it is done",
                            place.display()
                        ));
                    }
                    Some(_) => std::thread::park_timeout(PAUSE),
                    None if !shared => break,
                    None => {
                        // what is left here is stale
                        let _ = std::fs::remove_file(&place);
                        match link(root, &place, now) {
                            Ok(()) => {
                                held.0.push(place);
                                break;
                            }
                            // it was faster, and is waited for
                            Err(error)
                                if error.kind() == io::ErrorKind::AlreadyExists
                                    && Instant::now() < deadline => {}
                            // a home we cannot lock in cannot be written in either, which the write will say
                            Err(_) => break,
                        }
                        std::thread::park_timeout(PAUSE);
                    }
                }
            }
        }
        Ok(held)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        for place in self.0.iter().rev() {
            if std::fs::read(place).is_ok_and(|bytes| pid(&bytes) == Some(std::process::id())) {
                let _ = std::fs::remove_file(place);
            }
        }
    }
}

/// The living process that holds a lock, if its lock is fresh.
fn holder(place: &Path, now: Timestamp) -> Option<u32> {
    let bytes = std::fs::read(place).ok()?;
    let pid = pid(&bytes)?;
    let lock: Value = serde_json::from_slice(&bytes).ok()?;
    let taken = Timestamp::from_millisecond(lock["ts"].as_i64()?).ok()?;
    let fresh = now.duration_since(taken) < STALE;
    let other = pid != std::process::id();
    (fresh && other && lives(pid)).then_some(pid)
}

fn pid(bytes: &[u8]) -> Option<u32> {
    let lock: Value = serde_json::from_slice(bytes).ok()?;
    u32::try_from(lock["pid"].as_u64()?).ok()
}

fn lives(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| {
        !matches!(rustix::process::test_kill_process(pid), Err(error) if error == rustix::io::Errno::SRCH)
    })
}

fn link(root: &Path, place: &Path, now: Timestamp) -> io::Result<()> {
    let mut made = tempfile::Builder::new().prefix(".lisa-").suffix(".tmp").tempfile_in(root)?;
    made.write_all(json!({"pid": std::process::id(), "ts": now.as_millisecond()}).to_string().as_bytes())?;
    std::fs::hard_link(made.path(), place)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home(seed: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("seed.json"), seed).unwrap();
        root
    }

    fn lock(root: &Path, pid: u32, at: Timestamp) {
        let body = json!({"pid": pid, "ts": at.as_millisecond()}).to_string();
        std::fs::write(root.join(".write.lock"), body).unwrap();
    }

    #[test]
    fn locks_of_ours_are_there_only_where_an_original_was_born_and_only_while_we_write() {
        let check = |seed: &str, ours: bool| {
            let root = home(seed);
            let held = Neighbour::default().make_way(root.path(), now()).unwrap();
            let pid = |name: &str| pid(&std::fs::read(root.path().join(name)).unwrap_or_default());
            let expected = ours.then(std::process::id);
            assert_eq!(LOCKS.map(pid), [expected, expected], "{seed}");
            drop(held);
            assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 1, "{seed}");
        };
        check("{}", true);
        check(r#"{"soulSchemaVersion": 1}"#, false);
    }

    #[test]
    fn a_lock_that_is_stale_or_of_the_dead_or_no_lock_at_all_holds_nobody_up() {
        let root = home("{}");
        let parent = std::os::unix::process::parent_id();
        lock(root.path(), parent, now() - SignedDuration::from_secs(31));
        assert!(Neighbour::default().make_way(root.path(), now()).is_ok());
        lock(root.path(), 4_000_000, now());
        assert!(Neighbour::default().make_way(root.path(), now()).is_ok());
        std::fs::write(root.path().join(".write.lock"), "torn").unwrap();
        assert!(Neighbour::default().make_way(root.path(), now()).is_ok());
    }

    #[test]
    fn a_living_original_is_waited_for_and_its_lock_is_left_alone() {
        let root = home("{}");
        let parent = std::os::unix::process::parent_id();
        lock(root.path(), parent, now());
        assert_eq!(holder(&root.path().join(".write.lock"), now()), Some(parent));
        let place = root.path().join(".write.lock");
        let released = std::thread::spawn(move || {
            std::thread::park_timeout(Duration::from_millis(200));
            std::fs::remove_file(place).unwrap();
        });
        let began = Instant::now();
        assert!(Neighbour::default().make_way(root.path(), now()).is_ok());
        assert!(began.elapsed() >= Duration::from_millis(150));
        released.join().unwrap();
    }
}
