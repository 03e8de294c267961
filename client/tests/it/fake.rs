//! A supervisor that is not one: it answers each method as a test says, on the chat socket of a home of its own.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    os::unix::{
        fs::PermissionsExt as _,
        net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};

/// Held while a process is made and while a program is written: a child that is on its way inherits what is being
/// written for a moment, and what is being written cannot be run (B15).
static FORKS: Mutex<()> = Mutex::new(());

/// Starts a process.
pub(crate) fn spawn(command: &mut Command) -> Child {
    let _alone = FORKS.lock().unwrap();
    command.spawn().unwrap()
}

/// Presses Ctrl-C in the terminal of a process.
pub(crate) fn interrupt(pid: u32) {
    let status = spawn(made("/bin/sh".as_ref()).args(["-c", &format!("kill -INT {pid}")])).wait().unwrap();
    assert!(status.success());
}

fn made(program: &Path) -> Command {
    #[expect(clippy::disallowed_methods, reason = "the one place where these tests make a process")]
    Command::new(program)
}

/// What the fake does about one question.
pub(crate) enum Then {
    /// Answers, after some news.
    Answers(Vec<Value>, Value),
    /// Says that it cannot, in this sentence.
    Refuses(i64, &'static str),
    /// Sends some news, and answers when the session is cancelled.
    AnswersOnceCancelled(Vec<Value>, Value),
    /// Sends some news and dies in the middle of a line: nobody serves any more.
    Dies(Vec<Value>),
    /// Hangs up, and goes on to serve others.
    HangsUp,
}

/// A home with a fake in it.
pub(crate) struct World {
    folder: tempfile::TempDir,
    asked: Arc<Mutex<Vec<Value>>>,
}

impl World {
    /// A home in which nobody serves.
    pub(crate) fn empty() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), asked: Arc::default() }
    }

    /// A home whose supervisor answers `initialize`, `_lisa/status`, `_lisa/events` and `session/…` as everybody would,
    /// and the rest as `answer` says; `None` falls back to that.
    pub(crate) fn served(answer: impl Fn(&str, &Value) -> Option<Then> + Send + Sync + 'static) -> Self {
        let world = Self::empty();
        world.serve(answer);
        world
    }

    /// Begins to serve.
    pub(crate) fn serve(&self, answer: impl Fn(&str, &Value) -> Option<Then> + Send + Sync + 'static) {
        std::fs::create_dir_all(self.home().join("run")).unwrap();
        let socket = self.home().join("run/chat.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let (asked, answer) = (Arc::clone(&self.asked), Arc::new(answer));
        std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                let (asked, answer, socket) = (Arc::clone(&asked), Arc::clone(&answer), socket.clone());
                std::thread::spawn(move || converse(stream, &socket, &asked, answer.as_ref()));
            }
        });
    }

    /// The home.
    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// What was asked by this method, in order.
    pub(crate) fn asked(&self, method: &str) -> Vec<Value> {
        let asked = self.asked.lock().unwrap();
        asked.iter().filter(|message| message["method"] == method).map(|it| it["params"].clone()).collect()
    }

    /// Runs `lisa` with these arguments and this on stdin.
    pub(crate) fn lisa(&self, arguments: &[&str], stdin: &[u8]) -> Said {
        self.run(Path::new(env!("CARGO_BIN_EXE_lisa")), arguments, stdin)
    }

    /// Runs `lisa` from a folder in which `lisa-supervisor` is this shell script, or nothing.
    pub(crate) fn lisa_beside(&self, script: Option<&str>, arguments: &[&str], stdin: &[u8]) -> Said {
        let folder = self.folder.path().join("bin");
        std::fs::create_dir_all(&folder).unwrap();
        let lisa = folder.join("lisa");
        let alone = FORKS.lock().unwrap();
        std::fs::copy(env!("CARGO_BIN_EXE_lisa"), &lisa).unwrap();
        if let Some(script) = script {
            let supervisor = folder.join("lisa-supervisor");
            std::fs::write(&supervisor, format!("#!/bin/sh\n{script}\n")).unwrap();
            std::fs::set_permissions(&supervisor, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        drop(alone);
        self.run(&lisa, arguments, stdin)
    }

    /// `lisa` with these arguments, not yet started.
    pub(crate) fn command(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = made(program);
        command.args(arguments).env("LISA_HOME", self.home()).env("TZ", "UTC");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, program: &Path, arguments: &[&str], stdin: &[u8]) -> Said {
        let mut child = spawn(&mut self.command(program, arguments));
        // whoever does not read its stdin may be gone already
        let _ = child.stdin.take().unwrap().write_all(stdin);
        Said::from(child.wait_with_output().unwrap())
    }
}

/// What a run said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    /// Its stdout, each line a JSON value.
    pub(crate) fn json(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

fn converse(
    mut stream: UnixStream,
    socket: &Path,
    asked: &Mutex<Vec<Value>>,
    answer: &(dyn Fn(&str, &Value) -> Option<Then> + Send + Sync),
) {
    let mut waiting = None;
    for line in BufReader::new(stream.try_clone().unwrap()).lines() {
        let Ok(line) = line else { return };
        let question: Value = serde_json::from_str(&line).unwrap();
        asked.lock().unwrap().push(question.clone());
        let method = question["method"].as_str().unwrap_or_default();
        let mut say = |messages: &[Value]| {
            messages.iter().try_for_each(|message| stream.write_all(format!("{message}\n").as_bytes()))
        };
        let Some(id) = question.get("id") else {
            if method == "session/cancel"
                && let Some(answer) = waiting.take()
            {
                say(&[answer]).unwrap();
            }
            continue;
        };
        let result = |result| json!({"jsonrpc": "2.0", "id": id, "result": result});
        let said = match answer(method, &question["params"]).or_else(|| usual(method)) {
            Some(Then::Answers(news, answer)) => say(&news).and_then(|()| say(&[result(answer)])),
            Some(Then::AnswersOnceCancelled(news, answer)) => {
                waiting = Some(result(answer));
                say(&news)
            }
            Some(Then::Refuses(code, message)) => {
                say(&[json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})])
            }
            Some(Then::Dies(news)) => {
                let _ = say(&news).and_then(|()| stream.write_all(b"{\"jsonrpc\":\"2.0\",\"meth"));
                let _ = std::fs::remove_file(socket);
                let _ = stream.shutdown(std::net::Shutdown::Both);
                return;
            }
            Some(Then::HangsUp) => {
                let _ = stream.shutdown(std::net::Shutdown::Both);
                return;
            }
            None => panic!("nobody said how to answer {method}"),
        };
        if said.is_err() {
            return;
        }
    }
}

fn usual(method: &str) -> Option<Then> {
    let result = match method {
        "initialize" => json!({"protocolVersion": 1, "agentCapabilities": {}}),
        "_lisa/status" => status("ready"),
        "_lisa/events" => json!({"events": [], "gap": false}),
        "_lisa/stop" => Value::Null,
        "session/list" => json!({"sessions": [
            {"sessionId": "s2", "cwd": "/elsewhere", "title": "灯塔"}, {"sessionId": "s1", "cwd": "/"}]}),
        "session/resume" => json!({}),
        "session/new" => json!({"sessionId": "s3"}),
        _ => return None,
    };
    Some(Then::Answers(Vec::new(), result))
}

/// A status in which the agent is in this state.
pub(crate) fn status(agent: &str) -> Value {
    let process = |name: &str, state: &str| {
        json!({"name": name, "pid": 4711, "state": state, "build": "0.1.0", "restarts": 0, "rss_bytes": 1,
            "why": null})
    };
    json!({
        "processes": [process("supervisor", "ready"), process("soul", "ready"), process("agent", agent),
            process("heartbeat", "ready")],
        "home": "/h", "run": "/h/run", "epoch": 1, "model": "offline",
        "soul": {"name": "Lisa", "commit": "0123456789abcdef", "prompt_version": 1}, "clients": 1, "notices": [],
    })
}

/// A notification with an update of session `s2`.
pub(crate) fn update(update: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s2", "update": update}})
}

/// A notification with a piece of her reply in session `s2`.
pub(crate) fn chunk(text: &str) -> Value {
    update(&json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}))
}

/// An event.
pub(crate) fn event(fields: Value) -> Value {
    let mut event = json!({"epoch": 1, "seq": 7, "time": "2026-11-30T12:00:00Z"});
    if let (Some(event), Value::Object(fields)) = (event.as_object_mut(), fields) {
        event.extend(fields);
    }
    event
}

/// A notification of an event.
pub(crate) fn happens(fields: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": "_lisa/event", "params": event(fields)})
}
