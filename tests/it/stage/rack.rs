//! A rack: a soul without a supervisor, started and killed by hand, and those who ask it.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    time::Duration,
};

use ipc::{
    child::Brief,
    client::{Client, Credentials},
    config::{Config, Gates},
    contract::soul::{Birth, Call, Reply, Request, RunKind, RunToken, Soul},
    hello::{Keyring, Role, Secret},
};

/// How long one question may take over all lives; a life takes a tenth of a second to begin.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// A soul that is started and killed by hand, and those who write to it.
pub(crate) struct Rack {
    home: PathBuf,
    run: tempfile::TempDir,
    /// What its environment holds besides this process's own.
    pub(crate) environment: Vec<(&'static str, PathBuf)>,
    secrets: Keyring,
    secret: Secret,
}

/// A running soul; it dies with the test.
pub(crate) struct Life {
    child: Child,
    _said: BufReader<ChildStdout>,
}

impl Life {
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends it as its supervisor does.
    pub(crate) fn end(mut self) {
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place that starts a soul by itself")]
fn command(program: &str) -> Command {
    Command::new(program)
}

pub(crate) fn said(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = command(program)
        .args(arguments)
        .envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1")])
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(text) } else { Err(format!("{program} {arguments:?}: {text}{errors}")) }
}

impl Rack {
    pub(crate) fn new(home: &Path) -> Self {
        let secrets = [Role::Agent, Role::Heartbeat].map(|role| (role, Secret::fresh())).into();
        let run = tempfile::Builder::new().prefix("rack-").tempdir().unwrap();
        Self { home: home.to_owned(), run, environment: vec![], secrets, secret: Secret::fresh() }
    }

    pub(crate) fn brief(&self) -> Brief {
        Brief {
            role: Role::Soul,
            life: 1,
            home: self.home.clone(),
            run: self.run.path().to_owned(),
            secret: self.secret.clone(),
            keyring: self.secrets.clone(),
            config: Config { gates: wide(), ..Config::default() },
        }
    }

    /// Starts the soul, and waits until it says that it is ready.
    pub(crate) fn start(&self) -> Life {
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.run.path().join("soul.log"))
            .unwrap();
        let mut child = command(env!("CARGO_BIN_EXE_it-soul"))
            .envs(self.environment.clone())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut brief = serde_json::to_vec(&self.brief()).unwrap();
        brief.push(b'\n');
        child.stdin.as_mut().unwrap().write_all(&brief).unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("\"ready\"") {
            line.clear();
            let read = said.read_line(&mut line).unwrap();
            assert!(read > 0, "the soul ended before it was ready\n{}", self.log());
        }
        Life { child, _said: said }
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.run.path().join("soul.log")).unwrap_or_default()
    }

    pub(crate) fn dial(&self, role: Role) -> Client<Soul> {
        let socket = self.brief().run().socket(Role::Soul);
        let secret = self.secrets[&role].clone();
        let credentials = Credentials { role, secret, build: "test".into(), life: 1, notices: false };
        Client::dial(&socket, credentials).0
    }

    pub(crate) fn soul(&self) -> PathBuf {
        self.home.join("soul")
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> Result<String, String> {
        let root = self.soul();
        said("git", &[&["-C", root.to_str().unwrap()], arguments].concat())
    }

    pub(crate) async fn give_birth(&self) {
        let soul = self.dial(Role::Agent);
        let Reply::Conceived { draft, .. } = soul.ask(&Request::Conceive, PATIENCE).await.unwrap() else {
            panic!()
        };
        let birth = Request::Birth(Birth { draft, wording: None, model: "offline".into() });
        assert!(matches!(soul.ask(&birth, PATIENCE).await.unwrap(), Reply::Born(_)));
    }

    /// A run of her own time, which writes under another caller.
    pub(crate) async fn open_run(&self) -> RunToken {
        let open = Request::OpenRun { kind: RunKind::Heartbeat, task: "torture".into() };
        match self.dial(Role::Heartbeat).ask(&open, PATIENCE).await.unwrap() {
            Reply::RunOpened { run } => run,
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) fn run<F: Future<Output = ()>>(test: F) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
}

/// The use of a tool.
pub(crate) fn call(tool: &str, input: serde_json::Value, run: Option<RunToken>) -> Request {
    Request::Call(Call {
        tool: tool.into(),
        input,
        run,
        session: None,
        model: "offline".into(),
        outside: false,
    })
}

/// Gates that are in nobody's way: what is tested on a rack is how much is written, not what may be.
fn wide() -> Gates {
    Gates { chars_max: u32::MAX, writes_a_day: u32::MAX, ..Gates::default() }
}
