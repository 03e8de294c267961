//! Where the agent has its tools do what they do: an order goes to a process, its answer comes back, and nothing goes on
//! when nobody waits any more.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use ipc::{
    config::Tools,
    home::{Home, Run},
    reveal::reveal,
    text::one_line,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::{ChildStderr, ChildStdin, ChildStdout},
    time::{Instant, sleep_until, timeout},
};
use tracing::warn;

use super::{
    CONFINED, GUARD, Spawner,
    order::{Deed, Ended, Order, Said, Word},
    tape::Tape,
};
use crate::tools::{Outcome, Task};

/// The longest answer of a deed on files, in bytes; it is bounded where it is made.
const ANSWER_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// The most a guard has to say, in bytes.
const WORDS_BYTES_MAX: u64 = 64 * 1024;
/// How long a guard may take for the end of what it guards.
const END_MAX: Duration = Duration::from_secs(6);
/// How often whoever watches is shown what a command prints, and how much of it, in bytes.
const SHOWN_EVERY: Duration = Duration::from_millis(500);
const SHOWN_BYTES: usize = 2000;

/// What every order has in common.
#[derive(Debug, Clone)]
pub(crate) struct Bench {
    spawner: Spawner,
    home: PathBuf,
    run: PathBuf,
    tools: Tools,
    person_home: Option<PathBuf>,
}

/// A command, and how long it may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) command: String,
    pub(crate) timeout: Duration,
}

/// A started process and its pipes. Dropped, its input closes, and it ends with all that it started.
struct Started {
    stdin: ChildStdin,
    stdout: ChildStdout,
    stderr: ChildStderr,
}

/// Why a command had to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    Late,
    Cancelled,
}

impl Bench {
    /// A bench in a home.
    pub(crate) fn new(
        spawner: Spawner,
        home: &Home,
        run: &Run,
        tools: &Tools,
        person_home: Option<PathBuf>,
    ) -> Self {
        Self {
            spawner,
            home: home.path().to_owned(),
            run: run.path().to_owned(),
            tools: tools.clone(),
            person_home,
        }
    }

    /// What is enforced here, found out by doing it.
    pub(crate) async fn probe(&self) -> Result<String, String> {
        let said = self.file_deed(None, Deed::Probe).await;
        if said.failed { Err(said.output) } else { Ok(said.output) }
    }

    /// Does something with files, in the folder of the conversation that the task is in.
    pub(crate) async fn deed(&self, task: Task<'_>, deed: Deed) -> Outcome {
        tokio::select! {
            said = self.file_deed(task.folder, deed) => Outcome { output: said.output, failed: said.failed },
            () = task.cancel.cancelled() => Outcome::failed("it was cancelled"),
        }
    }

    async fn file_deed(&self, folder: Option<&Path>, deed: Deed) -> Said {
        let failed = |why: String| Said { output: why, failed: true };
        let mut started = match self.start(CONFINED, folder, deed).await {
            Ok(started) => started,
            Err(why) => return failed(why),
        };
        let (mut answer, mut said) = (Vec::new(), Vec::new());
        let _ = (&mut started.stdout).take(ANSWER_BYTES_MAX).read_to_end(&mut answer).await;
        if let Ok(said) = serde_json::from_slice(&answer) {
            return said;
        }
        let _ = started.stderr.take(WORDS_BYTES_MAX).read_to_end(&mut said).await;
        let said = one_line(&String::from_utf8_lossy(&said), 300);
        warn!(said, "a process of a tool ended without an answer");
        failed(format!("the process that was to do it ended without an answer; it said: `{said}`"))
    }

    /// Runs a command to its end, which comes in any case, and shows meanwhile what it prints.
    pub(crate) async fn command(&self, task: Task<'_>, command: Command) -> Outcome {
        let Command { command, timeout: longest } = command;
        let Started { stdin, mut stdout, stderr } =
            match self.start(GUARD, task.folder, Deed::Bash { command }).await {
                Ok(started) => started,
                Err(why) => return Outcome::failed(why),
            };
        let mut lifeline = Some(stdin);
        let mut tape = Tape::default();
        let mut is_news = false;
        let words = tokio::spawn(heard(stderr));
        let mut deadline = Instant::now() + longest;
        let mut cut = None;
        let mut shown = Instant::now() + SHOWN_EVERY;
        let mut buffer = vec![0; 64 * 1024];
        loop {
            tokio::select! {
                read = stdout.read(&mut buffer) => match read {
                    Ok(read) if read > 0 => {
                        tape.take(buffer.get(..read).unwrap_or_default());
                        is_news = true;
                    }
                    Ok(_) | Err(_) => break,
                },
                () = sleep_until(shown), if is_news => {
                    task.voice.tool_prints(task.call, &reveal(&tape.last(SHOWN_BYTES)));
                    is_news = false;
                    shown = Instant::now() + SHOWN_EVERY;
                }
                () = sleep_until(deadline) => {
                    // the second time the guard itself has hung; its pipes are dropped, and its commands end of that
                    if cut.replace(cut.unwrap_or(Cut::Late)).is_some() && lifeline.is_none() {
                        break;
                    }
                    lifeline = None;
                    deadline = Instant::now() + END_MAX;
                }
                () = task.cancel.cancelled(), if cut.is_none() => {
                    cut = Some(Cut::Cancelled);
                    lifeline = None;
                    deadline = Instant::now() + END_MAX;
                }
            }
        }
        let words = timeout(END_MAX, words).await.ok().and_then(Result::ok).unwrap_or_default();
        drop(lifeline);
        told(&words, &tape, cut, longest)
    }

    async fn start(&self, part: &'static str, folder: Option<&Path>, deed: Deed) -> Result<Started, String> {
        let order = Order {
            home: self.home.clone(),
            run: self.run.clone(),
            tools: self.tools.clone(),
            person_home: self.person_home.clone(),
            cwd: folder.map(Path::to_owned).unwrap_or_default(),
            deed,
        };
        let failed = |what: &str, error: &dyn std::fmt::Display| {
            format!("could not {what} a process for the tool: {error}")
        };
        let mut child = self.spawner.spawn(part).await.map_err(|error| failed("start", &error))?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        // it is waited for wherever this ends, so that no dead process stays
        tokio::task::spawn_blocking(move || child.wait());
        let piped = |error: std::io::Error| failed("speak with", &error);
        let mut stdin = ChildStdin::from_std(stdin.expect("the pipe was asked for")).map_err(piped)?;
        let stdout = ChildStdout::from_std(stdout.expect("the pipe was asked for")).map_err(piped)?;
        let stderr = ChildStderr::from_std(stderr.expect("the pipe was asked for")).map_err(piped)?;
        let mut line = serde_json::to_vec(&order).expect("an order is JSON");
        line.push(b'\n');
        // one that died already has something to say about it
        let _ = stdin.write_all(&line).await;
        Ok(Started { stdin, stdout, stderr })
    }
}

/// What a guard and what it starts say, to the end.
async fn heard(stderr: ChildStderr) -> Vec<Word> {
    let mut said = Vec::new();
    let _ = stderr.take(WORDS_BYTES_MAX).read_to_end(&mut said).await;
    said.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

/// What a model is told of a command that is over.
fn told(words: &[Word], tape: &Tape, cut: Option<Cut>, longest: Duration) -> Outcome {
    let refused = words.iter().find_map(|word| match word {
        Word::Refused(why) => Some(why),
        Word::Ended(_) => None,
    });
    if let Some(why) = refused {
        return Outcome::failed(why.clone());
    }
    let ended = words.iter().find_map(|word| match word {
        Word::Ended(ended) => Some(ended.clone()),
        Word::Refused(_) => None,
    });
    let mut said = tape.text();
    if tape.bytes() == 0 {
        said.push_str("[it printed nothing]");
    }
    let mut note = |text: &str| {
        if !said.ends_with('\n') {
            said.push('\n');
        }
        said.push_str(text);
    };
    match cut {
        Some(Cut::Late) => {
            note(&format!(
                "[it took longer than {} s and was ended, with all that it had started]",
                longest.as_secs()
            ));
        }
        Some(Cut::Cancelled) => note("[it was cancelled, and ended with all that it had started]"),
        None => {}
    }
    let Some(Ended { code, signal, left, too_many }) = ended else {
        note("[how it ended is not known: its guard is gone]");
        return Outcome::failed(said);
    };
    if too_many {
        note("[it had started more processes than a command may have, and was ended]");
    } else if cut.is_none() {
        match (code, signal) {
            (Some(0), _) => {}
            (Some(code), _) => note(&format!("[exit status {code}]")),
            (None, Some(signal)) => note(&format!("[ended by signal {signal}]")),
            (None, None) => note("[how it ended is not known]"),
        }
    }
    if left > 0 && cut.is_none() {
        note(&format!(
            "[{left} of its processes were still running and were ended; nothing goes on behind a call]"
        ));
    }
    Outcome { output: said, failed: cut.is_some() || too_many || code != Some(0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(ended: Ended, printed: &str, cut: Option<Cut>) -> Outcome {
        let mut tape = Tape::default();
        tape.take(printed.as_bytes());
        told(&[Word::Ended(ended)], &tape, cut, Duration::from_secs(2))
    }

    #[test]
    fn a_model_is_told_how_a_command_ended() {
        let exit = |code| Ended { code: Some(code), ..Ended::default() };
        assert_eq!(ended(exit(0), "好\n", None), Outcome::done("好\n"));
        assert_eq!(ended(exit(0), "", None), Outcome::done("[it printed nothing]"));
        assert_eq!(ended(exit(3), "no", None), Outcome::failed("no\n[exit status 3]"));
        let killed = Ended { signal: Some(9), ..Ended::default() };
        assert_eq!(ended(killed, "x\n", None), Outcome::failed("x\n[ended by signal 9]"));
        let late = ended(exit(143), "half", Some(Cut::Late));
        assert!(late.failed && late.output.starts_with("half\n[it took longer than 2 s"), "{late:?}");
        assert!(ended(exit(0), "", Some(Cut::Cancelled)).failed);
        let left = ended(Ended { left: 2, ..exit(0) }, "a\n", None);
        assert!(!left.failed && left.output.contains("[2 of its processes"), "{left:?}");
        let many = ended(Ended { too_many: true, ..exit(137) }, "", None);
        assert!(many.failed && many.output.contains("more processes"), "{many:?}");
        let lost = told(&[], &Tape::default(), None, Duration::from_secs(1));
        assert!(lost.failed && lost.output.contains("guard"), "{lost:?}");
        let refused = told(&[Word::Refused("no".into())], &Tape::default(), None, Duration::from_secs(1));
        assert_eq!(refused, Outcome::failed("no"));
    }
}
