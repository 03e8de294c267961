//! `lisa up`: becomes the supervisor, or starts one in the background and waits until she is awake.
//!
//! In the foreground this process is replaced by `lisa-supervisor`, so that a process manager sees the supervisor
//! itself. Detached, the new process is in a group of its own, so that no Ctrl-C of this terminal reaches it.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom},
    os::unix::{
        fs::OpenOptionsExt as _,
        process::{CommandExt as _, ExitStatusExt as _},
    },
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use ipc::{
    contract::chat::Status,
    endpoint::{lock_file, private_folder},
    exit::{Exit, Fault},
    home::Home,
    text::one_line,
};
use tokio::time::sleep;

use crate::{
    arguments::Up,
    chat,
    link::{Link, LinkError},
    output, status,
};

/// The program beside this one that is the supervisor.
const SUPERVISOR: &str = "lisa-supervisor";

/// The program beside this one that is the soul.
const SOUL: &str = "lisa-soul";

/// How long a start may take; the first one gives birth, which a model may have to word.
const READY_PATIENCE: Duration = Duration::from_mins(1);

/// How often a start is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How much of the log of a start that failed is shown.
const LAST_WORDS_LINES: usize = 12;
const LAST_WORDS_BYTES_MAX: u64 = 16 * 1024;

/// Why there is no supervisor to start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UpError {
    #[error("could not find out where this program lies")]
    Whereabouts(#[source] io::Error),
    #[error("could not start `{program}`; it must lie beside `lisa`, so build and install the two together")]
    Start { program: PathBuf, source: io::Error },
    #[error("could not {attempt} `{path}`")]
    Place { attempt: &'static str, path: PathBuf, source: io::Error },
}

/// Replaces this process by the supervisor of `home`; returns only to say why that failed. What was handed to this process
/// is handed on: descriptors, and its pid, by which a process manager knows it.
pub(crate) fn become_the_supervisor(home: &Home, ready: Option<i32>) -> Fault {
    match supervisor(home) {
        Ok((program, mut command)) => {
            if let Some(number) = ready {
                command.args(["--ready-fd", &number.to_string()]);
            }
            let source = command.exec();
            Fault::failed(UpError::Start { program, source })
        }
        Err(error) => Fault::failed(error),
    }
}

/// Starts her in the background where none is running, waits until she is awake, and talks where that is asked for.
pub(crate) async fn detached(home: &Home, json: bool, asked: &Up) -> Result<(), Fault> {
    let status = match look(home).await? {
        Some(status) => {
            if !asked.chat {
                output::aside(&format!("already running, {}", pid(&status)));
            }
            status
        }
        // nobody is there, or was just on the way out
        None => start(home).await?,
    };
    if asked.chat {
        return chat::from_up(home, json).await;
    }
    if json { output::json(&status) } else { Ok(()) }
}

async fn start(home: &Home) -> Result<Status, Fault> {
    let (mut log, path) = open_log(home)?;
    let began_at = log.seek(SeekFrom::End(0)).map_err(|source| place("read", &path, source))?;
    let (program, mut command) = supervisor(home).map_err(Fault::failed)?;
    let says = || log.try_clone().map_err(|source| place("share", &path, source));
    command.stdin(Stdio::null()).stdout(says()?).stderr(says()?).current_dir(home.path()).process_group(0);
    let mut child = tokio::process::Command::from(command)
        .spawn()
        .map_err(|source| Fault::failed(UpError::Start { program, source }))?;
    let mut waking = Waking::begin();
    let mut ended = None;
    loop {
        tokio::select! {
            status = child.wait(), if ended.is_none() => ended = status.ok(),
            () = sleep(LOOK_EVERY) => {}
        }
        let answered = look(home).await?;
        if let (Some(ended), None) = (ended, &answered)
            && !another_has(home).await?
        {
            waking.break_line();
            let words = last_words(&path, began_at).unwrap_or_default();
            return Err(fallen(ended, &words, &path));
        }
        let waits_for = match answered.map(|status| (waking.look(&status), status)) {
            Some((Look::Awake, status)) => {
                waking.end();
                let pid = pid(&status);
                output::aside(&format!("running, {pid}; `lisa chat` talks to her, `lisa down` stops her"));
                if let Some(offer) = &status.offer {
                    output::aside(&one_line(offer, 400));
                }
                if let Some(unborn) = &status.soul.unborn {
                    output::aside(unborn);
                }
                return Ok(status);
            }
            Some((Look::Stuck(why), _)) => return Err(waking.failed(&format!("{why}; {STILL_THERE}"))),
            Some((Look::Waking(what), _)) => what,
            None => format!("the supervisor does not answer yet, and `{}` may say why", path.display()),
        };
        if waking.began.elapsed() > READY_PATIENCE {
            let after = READY_PATIENCE.as_secs();
            return Err(waking.failed(&format!("not ready after {after} s: {waits_for}; {STILL_THERE}")));
        }
    }
}

/// Whether another supervisor has the home: ours then ended because it lost a race, and what was asked for will be there.
async fn another_has(home: &Home) -> Result<bool, Fault> {
    Ok(lock_file(&home.lock(), Duration::ZERO).await.map_err(Fault::failed)?.is_none())
}

/// What a start that did not come to its end leaves behind.
const STILL_THERE: &str = "the supervisor keeps running: `lisa status` shows more, `lisa down` stops it";

/// Asks how everything is, where somebody answers yet.
async fn look(home: &Home) -> Result<Option<Status>, LinkError> {
    let asked = async { status::ask(&mut Link::open(home).await?).await };
    match asked.await {
        Ok(status) => Ok(Some(status)),
        Err(LinkError::NoSupervisor { .. } | LinkError::Gone) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The program that is the supervisor, and the command that runs it for `home`.
fn supervisor(home: &Home) -> Result<(PathBuf, Command), UpError> {
    let (program, mut command) = beside(SUPERVISOR)?;
    command.arg("--home").arg(home.path());
    Ok((program, command))
}

/// The command by which the soul's own program checks the soul of `home` while no supervisor runs.
pub(crate) fn soul_check(home: &Home, repair: bool) -> Result<Command, UpError> {
    let (_, mut command) = beside(SOUL)?;
    command.args(["check", "--home"]).arg(home.path()).env("LISA_LOG", "error");
    if repair {
        command.arg("--repair");
    }
    Ok(command)
}

fn beside(name: &str) -> Result<(PathBuf, Command), UpError> {
    // the path of a replaced binary ends in ` (deleted)`, its folder is still the right one (B14)
    let here = std::env::current_exe().map_err(UpError::Whereabouts)?;
    let program = here.with_file_name(name);
    #[expect(clippy::disallowed_methods, reason = "the one place where the client makes a process")]
    let command = Command::new(&program);
    Ok((program, command))
}

fn open_log(home: &Home) -> Result<(File, PathBuf), Fault> {
    let wrong = |error: Fault| Fault { exit: Exit::Configuration, ..error };
    home.make().map_err(Fault::configuration)?;
    private_folder(&home.logs()).map_err(Fault::configuration)?;
    let path = home.logs().join("supervisor.log");
    let mut options = OpenOptions::new();
    let log = options.create(true).append(true).mode(0o600).open(&path);
    Ok((log.map_err(|source| wrong(place("open the log", &path, source)))?, path))
}

fn place(attempt: &'static str, path: &Path, source: io::Error) -> Fault {
    Fault::failed(UpError::Place { attempt, path: path.to_owned(), source })
}

/// What the log says since this start, its last lines.
fn last_words(path: &Path, began_at: u64) -> io::Result<String> {
    let mut log = File::open(path)?;
    let end = log.seek(SeekFrom::End(0))?;
    log.seek(SeekFrom::Start(began_at.max(end.saturating_sub(LAST_WORDS_BYTES_MAX))))?;
    let mut bytes = Vec::new();
    log.take(LAST_WORDS_BYTES_MAX).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<_> = text.lines().collect();
    Ok(lines.get(lines.len().saturating_sub(LAST_WORDS_LINES)..).unwrap_or_default().join("\n"))
}

fn fallen(ended: ExitStatus, words: &str, log: &Path) -> Fault {
    let how = match (ended.code(), ended.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "no exit code".to_owned(),
    };
    let log = log.display();
    let said = if words.is_empty() {
        format!("the supervisor ended at once ({how}) without a word in `{log}`")
    } else {
        format!("the supervisor ended at once ({how}); the last it wrote to `{log}`:\n{words}")
    };
    let exit = match ended.code() {
        Some(64) => Exit::Usage,
        Some(69) => Exit::Unavailable,
        Some(70) => Exit::Bug,
        Some(75) => Exit::Again,
        Some(78) => Exit::Configuration,
        _ => Exit::Failed,
    };
    Fault { exit, source: said.into() }
}

fn pid(status: &Status) -> String {
    match status::supervisor_pid(status) {
        Some(pid) => format!("pid {pid}"),
        None => "pid unknown".to_owned(),
    }
}

/// A start, as it is told: one line on a terminal, one line at the end elsewhere.
struct Waking {
    began: Instant,
    live: bool,
    ready: Vec<String>,
}

impl Waking {
    fn begin() -> Self {
        let live = output::stderr_is_terminal();
        if live {
            output::aside_text("waking …");
        }
        Self { began: Instant::now(), live, ready: Vec::new() }
    }

    fn look(&mut self, status: &Status) -> Look {
        for name in ready(status) {
            if !self.ready.iter().any(|said| said == name) {
                if self.live {
                    let comma = if self.ready.is_empty() { "" } else { "," };
                    output::aside_text(&format!("{comma} {name} ready"));
                }
                self.ready.push(name.to_owned());
            }
        }
        judge(status)
    }

    fn end(self) {
        let took = self.began.elapsed().as_secs_f64();
        if self.live {
            output::aside(&format!(" ({took:.1} s)"));
        } else {
            output::aside(&format!("waking … {} ready ({took:.1} s)", self.ready.join(" ready, ")));
        }
    }

    fn break_line(&self) {
        if self.live {
            output::aside("");
        }
    }

    fn failed(&self, why: &str) -> Fault {
        self.break_line();
        Fault::failed(why.to_owned())
    }
}

/// What a look at a start comes to.
#[derive(Debug, PartialEq, Eq)]
enum Look {
    /// Everything is ready.
    Awake,
    /// Something will not get ready by itself.
    Stuck(String),
    /// Something is not ready yet.
    Waking(String),
}

fn children(status: &Status) -> impl Iterator<Item = &ipc::contract::chat::Process> {
    status.processes.iter().filter(|process| process.name != "supervisor")
}

fn ready(status: &Status) -> impl Iterator<Item = &str> {
    children(status).filter(|child| child.state == "ready").map(|child| child.name.as_str())
}

fn judge(status: &Status) -> Look {
    let say = |child: &ipc::contract::chat::Process| {
        let why = child.why.as_deref().map(|why| format!(" ({})", one_line(why, 300))).unwrap_or_default();
        format!("{} is {}{why}", child.name, child.state)
    };
    if let Some(parked) = children(status).find(|child| child.state == "parked") {
        return Look::Stuck(say(parked));
    }
    let waited: Vec<_> = children(status).filter(|child| child.state != "ready").map(say).collect();
    // a supervisor that has only just begun may not list its children yet
    match (waited.is_empty(), ready(status).count()) {
        (true, 3..) if status.soul.name.is_empty() && status.soul.unborn.is_none() => {
            Look::Waking("she is being born".to_owned())
        }
        // where the first words could not be had she is up all the same, and says what is missing
        (true, 3..) => Look::Awake,
        (true, _) => Look::Waking("not every process has been started".to_owned()),
        (false, _) => Look::Waking(waited.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::tests::{process, sample};
    use std::io::Write as _;

    #[test]
    fn she_is_awake_when_every_child_is_ready() {
        let check = |states: &[(&str, &str, Option<&str>)], expected: Look| {
            let processes = states.iter().map(|(name, state, why)| process(name, state, *why));
            assert_eq!(judge(&sample(processes.collect())), expected, "{states:?}");
        };
        let supervisor = ("supervisor", "ready", None);
        let (soul, agent) = (("soul", "ready", None), ("agent", "ready", None));
        check(&[supervisor], Look::Waking("not every process has been started".into()));
        check(
            &[
                supervisor,
                soul,
                ("agent", "starting", None),
                ("heartbeat", "waiting", Some("it died\n(signal 9)")),
            ],
            Look::Waking("agent is starting, heartbeat is waiting (it died (signal 9))".into()),
        );
        check(
            &[supervisor, soul, agent, ("heartbeat", "parked", Some("6 deaths in 60 s"))],
            Look::Stuck("heartbeat is parked (6 deaths in 60 s)".into()),
        );
        check(&[supervisor, soul, agent, ("heartbeat", "ready", None)], Look::Awake);
    }

    #[test]
    fn the_exit_code_of_a_start_that_failed_is_passed_on() {
        let check = |raw: i32, words: &str, exit: Exit, said: &str| {
            let fault = fallen(ExitStatus::from_raw(raw), words, Path::new("/h/logs/supervisor.log"));
            assert_eq!(fault.exit, exit);
            assert!(fault.to_string().contains(said), "{fault}");
        };
        check(78 << 8, "the configuration at `x` does not parse", Exit::Configuration, "does not parse");
        check(75 << 8, "", Exit::Again, "exit code 75");
        check(3 << 8, "", Exit::Failed, "without a word");
        check(9, "", Exit::Failed, "signal 9");
    }

    #[test]
    fn the_last_words_are_those_of_this_start() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("supervisor.log");
        let mut log = File::create(&path).unwrap();
        log.write_all("of an earlier start\n".as_bytes()).unwrap();
        let began = log.stream_position().unwrap();
        for line in 0..30 {
            writeln!(log, "line {line} 灯塔").unwrap();
        }
        let words = last_words(&path, began).unwrap();
        assert_eq!(words.lines().count(), LAST_WORDS_LINES);
        assert!(words.ends_with("line 29 灯塔") && !words.contains("earlier"), "{words}");
        assert_eq!(last_words(&path, log.stream_position().unwrap()).unwrap(), "");
    }
}
