//! Making a child process, and knowing for certain how and when it ended: the one place that does.
//!
//! A child gets a process group of its own, its brief and lifeline on standard input, its reports on standard output,
//! its log file as standard error, and an environment that names what it may see; nothing else of ours is open in it.
//! All of that is said in words that the standard library makes with `posix_spawn`: our memory is not copied, however
//! much we have (B28). So no code of ours runs between the two processes, and what a child must do at its start it does.
//!
//! A thread waits for each life. It learns of the end *before* the pid is given back (`WNOWAIT`), ends what is left of
//! the group while the number is certainly still ours, and only then lets the pid go: no stranger can be hit (B4, B8).

use std::{
    fs::OpenOptions,
    io::{self, BufRead as _, Read as _, Write as _},
    os::unix::{
        fs::OpenOptionsExt as _,
        process::{CommandExt as _, ExitStatusExt as _},
    },
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
};

use ipc::child::{Brief, Report};
use nix::{
    sys::{
        signal::{Signal, kill, killpg},
        wait::{Id, WaitPidFlag, waitid},
    },
    unistd::Pid,
};

use crate::{
    lifecycle::{How, Life},
    orphans, records,
};

/// A log larger than this is moved aside (to `.1`, over the one before) when the next life begins.
const LOG_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// The longest report taken; more is a child that does not know what standard output is for.
const REPORT_BYTES_MAX: u64 = 64 * 1024;

/// What every child may see of our environment: where things are, how to write dates and text, how much to log.
const SEEN_BY_ALL: [&str; 12] = [
    "HOME",
    "LANG",
    "LANGUAGE",
    "LISA_LOG",
    "LOGNAME",
    "PATH",
    "RUST_BACKTRACE",
    "TMPDIR",
    "TZ",
    "TZDIR",
    "USER",
    "XDG_RUNTIME_DIR",
];
/// What the agent may see besides: how to reach a model.
const SEEN_BY_AGENT: [&str; 9] = [
    "ALL_PROXY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "OLLAMA_HOST",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "http_proxy",
    "no_proxy",
];

/// Whether a child may see a variable of our environment. `NOTIFY_SOCKET` and all of `GIT_*` are among what it may not.
fn may_see(agent: bool, name: &str) -> bool {
    let of_a_model = |name: &str| {
        SEEN_BY_AGENT.contains(&name)
            || name.ends_with("_API_KEY")
            || name.ends_with("_BASE_URL")
            || name.starts_with("LISA_MODEL")
    };
    SEEN_BY_ALL.contains(&name) || name.starts_with("LC_") || (agent && of_a_model(name))
}

/// What is told about a life by the threads that watch it.
#[derive(Debug)]
pub(crate) enum Sign {
    /// It reported.
    Said(Report),
    /// It ended.
    Ended(How),
}

/// A running child.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) pid: u32,
    pub(crate) life: Life,
    /// Closing it tells the child that we are gone.
    _lifeline: ChildStdin,
}

/// Starts `binary` with its brief; `tell` hears of it from other threads.
pub(crate) fn spawn(
    binary: &Path,
    brief: &Brief,
    log: &Path,
    mark: &str,
    tell: impl Fn(Sign) + Send + Clone + 'static,
) -> io::Result<Running> {
    let agent = brief.role == ipc::hello::Role::Agent;
    #[expect(clippy::disallowed_methods, reason = "the one place of the supervisor that makes a process")]
    let mut command = Command::new(binary);
    command
        .env_clear()
        .envs(std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(|name| may_see(agent, name))))
        .env(records::MARK, mark)
        .current_dir(&brief.home)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(open_log(log)?)
        .process_group(0);
    let mut child = orphans::spawn_awaited(&mut command)?;
    let mut brief_pipe = child.stdin.take().expect("the pipe was asked for");
    let said = child.stdout.take().expect("the pipe was asked for");
    let mut words = serde_json::to_vec(brief).expect("a brief is JSON");
    words.push(b'\n');
    // the pipe is empty and a brief is smaller than it, so this does not wait; a child that died already has a death to tell
    let _ = brief_pipe.write_all(&words);
    let (pid, life) = (child.id(), brief.life);
    let reports = tell.clone();
    std::thread::spawn(move || read_reports(said, &reports));
    std::thread::spawn(move || {
        let how = await_end(child);
        if agent {
            // its tools have groups of their own, which it could not end if it was killed
            orphans::end();
        }
        tell(Sign::Ended(how));
    });
    Ok(Running { pid, life, _lifeline: brief_pipe })
}

impl Running {
    /// Asks the child to end.
    pub(crate) fn terminate(&self) {
        self.signal(Signal::SIGTERM);
    }

    /// Asks the child alone to write down where it stands; one that was stopped has to go on for that.
    pub(crate) fn trace(&self) {
        // ours, for the reason below
        let _ = kill(group_of(self.pid), Signal::SIGQUIT);
        self.signal(Signal::SIGCONT);
    }

    /// Ends the child and all of its group.
    pub(crate) fn kill(&self) {
        self.signal(Signal::SIGKILL);
    }

    fn signal(&self, signal: Signal) {
        // ours until its watcher has told of the end, after which `Running` is dropped; one that just ended needs no signal
        let _ = killpg(group_of(self.pid), signal);
    }
}

fn group_of(pid: u32) -> Pid {
    Pid::from_raw(i32::try_from(pid).expect("a pid is a small number"))
}

fn await_end(mut child: Child) -> How {
    let pid = group_of(child.id());
    while waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT) == Err(nix::errno::Errno::EINTR) {
    }
    let _ = killpg(pid, Signal::SIGKILL);
    let ended = child.wait();
    orphans::no_longer_awaited(child.id());
    match ended {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => How::Code(code),
            (None, Some(signal)) => How::Signal(signal),
            (None, None) => How::Code(-1),
        },
        Err(error) => How::NotStarted(format!("its end could not be awaited: {error}")),
    }
}

fn read_reports(said: impl io::Read, tell: &impl Fn(Sign)) {
    let mut said = io::BufReader::new(said);
    loop {
        let mut line = Vec::new();
        match said.by_ref().take(REPORT_BYTES_MAX).read_until(b'\n', &mut line) {
            Ok(read) if read > 0 => {
                // what is no report is a stray print of a library; it says nothing to us
                if let Ok(report) = serde_json::from_slice(&line) {
                    tell(Sign::Said(report));
                }
            }
            Ok(_) | Err(_) => return,
        }
    }
}

/// Opens a log for appending, moved aside first when it has grown too large.
pub(crate) fn open_log(path: &Path) -> io::Result<std::fs::File> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    if std::fs::metadata(path).is_ok_and(|metadata| metadata.len() > LOG_BYTES_MAX) {
        std::fs::rename(path, older(path))?;
    }
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

/// The last line of a log, without the time and the place that stand before what is said.
pub(crate) fn last_words(path: &Path) -> Option<String> {
    let (tail, _) = ipc::lines::tail(path, 8 * 1024).ok()?;
    let tail = String::from_utf8_lossy(&tail).into_owned();
    let line = tail.lines().rfind(|line| !line.trim().is_empty())?;
    let said =
        ["ERROR", " WARN", " INFO"].iter().find_map(|level| Some(line.split_once(level)?.1)).unwrap_or(line);
    let said = said.split_once(": ").map_or(said, |(_, said)| said);
    Some(ipc::text::one_line(said, 400))
}

/// Where a log is moved aside to.
pub(crate) fn older(path: &Path) -> PathBuf {
    path.with_added_extension("1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b13_the_environment_of_a_child_is_a_list_of_what_it_may_see() {
        let check = |name: &str, soul: bool, agent: bool| {
            assert_eq!((may_see(false, name), may_see(true, name)), (soul, agent), "{name}");
        };
        check("PATH", true, true);
        check("LC_ALL", true, true);
        check("LISA_LOG", true, true);
        check("OPENAI_API_KEY", false, true);
        check("OPENAI_BASE_URL", false, true);
        check("OLLAMA_HOST", false, true);
        check("HTTPS_PROXY", false, true);
        check("NOTIFY_SOCKET", false, false);
        check("GIT_DIR", false, false);
        check("GIT_CONFIG_GLOBAL", false, false);
        check("LD_PRELOAD", false, false);
    }

    #[test]
    fn the_last_words_are_what_was_said_not_when_and_where() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.log");
        assert_eq!(last_words(&path), None);
        let line = "2026-11-30T21:06:52Z ERROR ipc::child: agent ends: `name` is missing: add it\n\n";
        std::fs::write(&path, format!("first\n{line}")).unwrap();
        assert_eq!(last_words(&path).as_deref(), Some("agent ends: `name` is missing: add it"));
        std::fs::write(&path, "thread 'main' panicked\n").unwrap();
        assert_eq!(last_words(&path).as_deref(), Some("thread 'main' panicked"));
    }

    #[test]
    fn a_log_that_has_grown_too_large_is_moved_aside() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("logs/soul.log");
        writeln!(open_log(&path).unwrap(), "first").unwrap();
        open_log(&path).unwrap().set_len(LOG_BYTES_MAX + 1).unwrap();
        writeln!(open_log(&path).unwrap(), "second").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "second\n");
        assert!(older(&path).exists());
    }
}
