//! Where a process stands, written to its log when it is asked by `SIGQUIT`: what a person gets to see of one that hangs.
//!
//! It says which requests are under way and for how long, and of each thread its name, its state, and in which function of
//! the kernel it waits. It cannot say where in our own code a thread is: that would need unsafe code in a signal handler,
//! or a debugger. A thread of its own with a runtime of its own answers, armed before anything else, so that it also
//! answers when everything else is stuck.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    io::Write as _,
    sync::Mutex,
    time::{Duration, Instant},
};

use tokio::signal::unix::{SignalKind, signal};

/// What is under way, by its number; bounded by the places of the connections (`server`).
static UNDER_WAY: Mutex<BTreeMap<u64, Work>> = Mutex::new(BTreeMap::new());
/// How many pieces of work and how many threads a report names.
const NAMED_MAX: usize = 64;

#[derive(Debug)]
struct Work {
    what: String,
    since: Instant,
}

/// A piece of work, under way for as long as this is held.
#[derive(Debug)]
pub(crate) struct UnderWay(u64);

/// Notes that something is under way.
pub(crate) fn under_way(what: String) -> UnderWay {
    let mut all = UNDER_WAY.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let number = all.keys().next_back().map_or(0, |last| last + 1);
    all.insert(number, Work { what, since: Instant::now() });
    UnderWay(number)
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        UNDER_WAY.lock().unwrap_or_else(std::sync::PoisonError::into_inner).remove(&self.0);
    }
}

/// Answers `SIGQUIT` from now on, for as long as the process lives.
pub(crate) fn arm() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
    let runtime = runtime.expect("the system gives a process its event queue");
    let asked = {
        let _inside = runtime.enter();
        signal(SignalKind::quit())
    };
    let Ok(mut asked) = asked else { return };
    let answering = move || {
        runtime.block_on(async {
            while asked.recv().await.is_some() {
                // past whoever holds the log: it may be what hangs. A log that cannot be written to says nothing anyway
                if let Ok(mut log) = fs::OpenOptions::new().append(true).open("/dev/stderr") {
                    let _ = log.write_all(report(Instant::now()).as_bytes());
                }
            }
        });
    };
    // without a thread to spare the signal does nothing, which is better than no process
    let _ = std::thread::Builder::new().name("standing".to_owned()).spawn(answering);
}

fn report(now: Instant) -> String {
    let mut said = String::from("asked where it stands:\n");
    match UNDER_WAY.try_lock() {
        Ok(all) => {
            let mut all: Vec<_> =
                all.values().map(|work| (now.saturating_duration_since(work.since), &work.what)).collect();
            all.sort_by(|a, b| b.cmp(a));
            if all.is_empty() {
                said.push_str("  no request is under way\n");
            }
            for (since, what) in all.into_iter().take(NAMED_MAX) {
                let since = Duration::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX));
                let _ = writeln!(said, "  under way for {since:?}: {what}");
            }
        }
        Err(_) => said.push_str("  what is under way cannot be said; whoever writes it down hangs\n"),
    }
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    for thread in threads.take(NAMED_MAX) {
        let read = |name: &str| fs::read_to_string(thread.path().join(name)).unwrap_or_default();
        let (name, stat, at) = (read("comm"), read("stat"), read("wchan"));
        let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next()).unwrap_or('?');
        let at = match at.trim() {
            "" | "0" => String::new(),
            at => format!(" in {at}"),
        };
        let number = thread.file_name();
        let _ = writeln!(said, "  thread {} `{}`: {}{at}", number.display(), name.trim(), word(state));
    }
    said
}

/// The kernel's letter for the state of a thread, as a word.
fn word(state: char) -> &'static str {
    match state {
        'R' => "runs",
        'S' => "waits",
        'D' => "waits for a device",
        'T' | 't' => "is stopped",
        'Z' | 'X' => "has ended",
        _ => "is in no state we know",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_what_is_under_way_for_how_long_and_where_each_thread_is() {
        let work = under_way("soul 寫 `r-1`".to_owned());
        let said = report(Instant::now() + Duration::from_secs(31));
        assert!(said.contains("under way for 31") && said.contains("soul 寫 `r-1`"), "{said}");
        if std::path::Path::new("/proc/self/task").exists() {
            assert!(said.contains("thread ") && said.contains(": runs"), "{said}");
        }
        drop(work);
        assert!(!report(Instant::now()).contains("寫"));
    }
}
