//! The guard of one command: starts it, waits for its end, and ends everything that came of it.
//!
//! It is not confined, and does nothing that the command could ask for. What is left alone below it comes to it
//! (`PR_SET_CHILD_SUBREAPER`), whatever sessions and groups it has made for itself.

use std::{
    io::{self, Read as _, Write as _},
    process::{Child, Command, ExitCode, Stdio},
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use ipc::exit::Exit;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process, kill_process_group, waitid, waitpid,
};

use super::{
    CONFINED,
    order::{self, Ended, Word},
    own_program, processes,
};

/// How long what is asked to end may take to do so.
const END_MAX: Duration = Duration::from_secs(1);
/// How long all that is left may take to be gone once it was killed.
const GONE_MAX: Duration = Duration::from_secs(3);
/// How often is looked whether there are too many, and while the end is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(250);
const LOOK_AT_THE_END_EVERY: Duration = Duration::from_millis(5);
/// How many processes a command may have at once.
const PROCESSES_MAX: usize = 512;

/// What the guard hears of.
enum Event {
    /// The command's own process ended; it is still there to be waited for.
    Ended,
    /// Nobody waits for the command any more.
    AskerGone,
}

/// Guards the command of the order on standard input.
pub(super) fn guard() -> ExitCode {
    let word = match guarded() {
        Ok(ended) => Word::Ended(ended),
        Err(error) => Word::Refused(format!("the command was not run: {error}")),
    };
    let _ = io::stderr().write_all(&word.line());
    Exit::Asked.into()
}

fn guarded() -> io::Result<Ended> {
    let (_, line) = order::read(&mut io::stdin().lock())?;
    // a session of its own, so that no terminal and no group reaches it
    rustix::process::setsid()?;
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    #[expect(clippy::disallowed_methods, reason = "the place where a command gets its process")]
    let mut command = Command::new(own_program()?);
    let group = std::os::unix::process::CommandExt::process_group(command.arg(CONFINED), 0);
    let mut child = group.stdin(Stdio::piped()).spawn()?;
    let pid = pid_of(&child)?;
    let (tell, events) = mpsc::channel();
    let gone = tell.clone();
    thread::spawn(move || {
        let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while waitid(WaitId::Pid(pid), how).is_err_and(|error| error == rustix::io::Errno::INTR) {}
        let _ = tell.send(Event::Ended);
    });
    thread::spawn(move || {
        let mut rest = [0; 64];
        while matches!(io::stdin().lock().read(&mut rest), Ok(read) if read > 0) {}
        let _ = gone.send(Event::AskerGone);
    });
    if let Some(mut stdin) = child.stdin.take() {
        // one that died already has an end to tell
        let _ = stdin.write_all(&line);
    }
    let too_many = wait(&events, pid);
    let left = end_all(pid);
    let status = child.wait()?;
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    Ok(Ended { code: status.code(), signal, left, too_many })
}

fn pid_of(child: &Child) -> io::Result<Pid> {
    let raw = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    raw.ok_or_else(|| io::Error::other("the system gave a pid that is none"))
}

/// Waits until the command has ended, by itself or because it had to. True when it had started too much.
fn wait(events: &Receiver<Event>, command: Pid) -> bool {
    let ours = rustix::process::getpid().as_raw_pid();
    let mut too_many = false;
    loop {
        match events.recv_timeout(LOOK_EVERY) {
            Ok(Event::Ended) | Err(RecvTimeoutError::Disconnected) => return false,
            Ok(Event::AskerGone) => break,
            Err(RecvTimeoutError::Timeout) => {
                too_many = processes::descendants(&processes::parents(), ours) > PROCESSES_MAX;
                if too_many {
                    // no time to end in order: every moment makes it more
                    return true;
                }
            }
        }
    }
    let _ = kill_process_group(command, Signal::TERM);
    let _ = events.recv_timeout(END_MAX);
    too_many
}

/// Ends whatever is left, and says how much that was besides the command itself.
fn end_all(command: Pid) -> usize {
    let ours = rustix::process::getpid().as_raw_pid();
    let end = Instant::now() + GONE_MAX;
    // a group is ended at once, so that nothing in it can start more; its number is still that of the command
    let mut ended = std::collections::BTreeSet::new();
    loop {
        let _ = kill_process_group(command, Signal::KILL);
        let parents = processes::parents();
        let left: Vec<Pid> = processes::children(&parents, ours)
            .into_iter()
            .filter_map(Pid::from_raw)
            .filter(|pid| *pid != command)
            .collect();
        for pid in &left {
            // ours to wait for, so that nobody else has the number
            let _ = kill_process(*pid, Signal::KILL);
            let _ = waitpid(Some(*pid), WaitOptions::NOHANG);
            ended.insert(pid.as_raw_pid());
        }
        if left.is_empty() || Instant::now() >= end {
            return ended.len();
        }
        // nothing tells of the end of many at once
        thread::park_timeout(LOOK_AT_THE_END_EVERY);
    }
}
