//! A server as a process of its own: made, heard, and ended with everything it started.
//!
//! It gets a process group of its own and an environment that is a list. A thread waits for it: it learns of the end
//! *before* the pid is given back (`WNOWAIT`), ends what is left of the group while the number is certainly ours, and only
//! then lets the pid go, so that no stranger is hit. Dropping a [`Process`] ends the group at once. If this process itself
//! is killed, the supervisor ends what it leaves behind.
//!
//! What the agent gave up (`ipc::confine`) it has not either: nothing in the home of Lisa is its to write, and nothing that
//! is made after the agent began in a folder on the way to that home; a folder that was there before is.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    io,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::{
    io::AsyncReadExt as _,
    process::{ChildStderr, ChildStdin, ChildStdout},
    sync::watch,
};

/// What a server may see of our environment: where things are, how to write dates and text. No key, no socket of ours.
const SEEN: [&str; 13] = [
    "HOME",
    "LANG",
    "LANGUAGE",
    "LOGNAME",
    "PATH",
    "SHELL",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TERM",
    "TMPDIR",
    "TZ",
    "TZDIR",
    "USER",
];
/// How much of the end of what it says on standard error is kept.
const LAST_WORDS_BYTES: usize = 4096;
/// How long its last words may take to come once it has ended.
const LAST_WORDS_MAX: Duration = Duration::from_millis(200);

/// Whether a server may see a variable of our environment.
fn may_see(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| SEEN.contains(&name) || name.starts_with("LC_"))
}

/// What is started.
pub(super) struct Program {
    pub(super) command: String,
    pub(super) args: Vec<String>,
    pub(super) env: BTreeMap<String, String>,
    pub(super) cwd: Option<PathBuf>,
}

/// A running server.
pub(super) struct Process {
    group: Arc<Group>,
    ended: watch::Receiver<Option<String>>,
    last_words: Arc<Mutex<Vec<u8>>>,
    /// Closed when nothing more comes on standard error.
    silent: watch::Receiver<()>,
}

/// What it is spoken to with.
pub(super) struct Pipes {
    pub(super) input: ChildStdin,
    pub(super) output: ChildStdout,
}

impl Process {
    /// Starts it.
    pub(super) fn start(
        program: &Program,
        environment: impl Iterator<Item = (OsString, OsString)>,
    ) -> io::Result<(Self, Pipes)> {
        let environment: BTreeMap<OsString, OsString> =
            environment.filter(|(name, _)| may_see(name)).collect();
        let folder = program.cwd.as_deref();
        // not in her home: what writes where it stands must not write there
        let home = environment.get(OsStr::new("HOME")).map(Path::new).filter(|home| home.is_dir());
        #[expect(
            clippy::disallowed_methods,
            reason = "the one place that makes the process of a server of tools"
        )]
        let mut command = Command::new(&program.command);
        command
            .args(&program.args)
            .env_clear()
            .envs(&environment)
            .envs(&program.env)
            .current_dir(folder.or(home).unwrap_or_else(|| Path::new("/")))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let mut child = command.spawn()?;
        let group = Arc::new(Group(Mutex::new(Pid::from_raw(i32::try_from(child.id()).unwrap_or_default()))));
        let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (told, ended) = watch::channel(None);
        let watched = group.clone();
        std::thread::spawn(move || {
            let how = watched.await_end(child);
            let _ = told.send(Some(how));
        });
        let (speaks, silent) = watch::channel(());
        let process = Self { group, ended, last_words: Arc::default(), silent };
        // from here on dropping it ends it
        let input = ChildStdin::from_std(input.expect("the pipe was asked for"))?;
        let output = ChildStdout::from_std(output.expect("the pipe was asked for"))?;
        let errors = ChildStderr::from_std(errors.expect("the pipe was asked for"))?;
        let words = process.last_words.clone();
        tokio::spawn(async move {
            keep_last_words(errors, &words).await;
            drop(speaks);
        });
        Ok((process, Pipes { input, output }))
    }

    /// Waits until it has ended, and says how, with its last words.
    pub(super) async fn ended(&self) -> String {
        let mut ended = self.ended.clone();
        let how = ended.wait_for(Option::is_some).await.ok().and_then(|how| how.clone());
        // they come through a pipe, beside the news of the end
        let mut silent = self.silent.clone();
        let _ = tokio::time::timeout(LAST_WORDS_MAX, silent.changed()).await;
        let how = how.unwrap_or_else(|| "it ended".to_owned());
        match self.last_line() {
            Some(line) => format!("{how}: {line}"),
            None => how,
        }
    }

    /// Waits until it has ended by itself, for `longest`; what is left of it then is ended when this is dropped.
    pub(super) async fn end(self, longest: Duration) {
        let mut ended = self.ended.clone();
        let _ = tokio::time::timeout(longest, ended.wait_for(Option::is_some)).await;
    }

    fn last_line(&self) -> Option<String> {
        let words = self.last_words.lock().unwrap_or_else(PoisonError::into_inner);
        let words = String::from_utf8_lossy(&words);
        words.lines().rfind(|line| !ipc::text::is_blank(line)).map(str::to_owned)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.group.kill();
    }
}

/// The group of a process that nobody has waited for yet.
struct Group(Mutex<Option<Pid>>);

impl Group {
    /// Ends everybody in it. Does nothing once the number may be somebody else's.
    fn kill(&self) {
        if let Some(pid) = *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }

    fn await_end(&self, mut child: Child) -> String {
        let pid = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pid) = pid {
            let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while waitid(WaitId::Pid(pid), look).is_err_and(|error| error == rustix::io::Errno::INTR) {}
        }
        self.kill();
        let mut pid = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let how = child.wait();
        *pid = None;
        how.map_or_else(|error| format!("its end could not be awaited: {error}"), in_words)
    }
}

fn in_words(how: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    match (how.code(), how.signal()) {
        (Some(code), _) => format!("it ended with exit code {code}"),
        (None, Some(signal)) => format!("it was ended by signal {signal}"),
        (None, None) => "it ended".to_owned(),
    }
}

async fn keep_last_words(mut errors: ChildStderr, words: &Mutex<Vec<u8>>) {
    let mut piece = [0; 1024];
    // read to the end, so that a server that says much is not held up
    while let Ok(read @ 1..) = errors.read(&mut piece).await {
        let mut words = words.lock().unwrap_or_else(PoisonError::into_inner);
        words.extend(piece.iter().take(read));
        let surplus = words.len().saturating_sub(LAST_WORDS_BYTES);
        words.drain(..surplus);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(script: &str, env: &[(&str, &str)]) -> (Process, Pipes) {
        let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let args = vec!["-c".to_owned(), script.to_owned()];
        let program = Program { command: "sh".to_owned(), args, env, cwd: None };
        let ours = [
            ("PATH", "/usr/bin:/bin"),
            ("HOME", "/"),
            ("LC_ALL", "C"),
            ("OPENAI_API_KEY", "sk"),
            ("XDG_RUNTIME_DIR", "/r"),
        ];
        Process::start(&program, ours.into_iter().map(|(name, value)| (name.into(), value.into()))).unwrap()
    }

    #[tokio::test]
    async fn it_sees_what_it_may_and_its_last_words_are_kept() {
        let (process, _pipes) = start(
            "echo first >&2; echo \"[$OPENAI_API_KEY$XDG_RUNTIME_DIR] $LC_ALL $TOKEN\" >&2; exit 3",
            &[("TOKEN", "t")],
        );
        assert_eq!(process.ended().await, "it ended with exit code 3: [] C t");
    }

    #[tokio::test]
    async fn whoever_it_started_ends_with_it_and_with_us() {
        for ends_by_itself in [true, false] {
            let rest = if ends_by_itself { "exit 0" } else { "wait" };
            let (process, mut pipes) = start(&format!("sleep 1000 & echo $!; {rest}"), &[]);
            let mut said = [0; 32];
            let read = pipes.output.read(&mut said).await.unwrap();
            let pid: i32 = String::from_utf8_lossy(&said[..read]).trim().parse().unwrap();
            if ends_by_itself {
                assert_eq!(process.ended().await, "it ended with exit code 0");
            } else {
                drop(process);
            }
            let gone = || {
                std::fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z"))
            };
            for _ in 0..500 {
                if gone() {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            assert!(gone(), "{pid} is left");
        }
    }
}
