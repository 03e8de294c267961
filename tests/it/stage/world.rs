//! A world: a home, the binaries beside each other under their own names, and whatever was started in it.

use std::{
    fmt::Write as _,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;

use super::Chat;

/// A number of seconds.
pub(crate) fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// Waits for a state; the sentence is what failed when it does not come.
pub(crate) fn eventually<T>(longest: Duration, sentence: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + longest;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "not within {longest:?}: {sentence}");
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

/// What a command said and how it ended.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Output {
    /// The output of a command that must have worked.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        self.stdout
    }

    /// The JSON of a command that must have worked.
    #[track_caller]
    pub(crate) fn json(self) -> Value {
        let stdout = self.ok();
        serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}"))
    }

    /// The JSON lines of a command that must have worked.
    #[track_caller]
    pub(crate) fn json_lines(self) -> Vec<Value> {
        let stdout = self.ok();
        stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// A home and the binaries; what runs in it ends with it.
pub(crate) struct World {
    folder: tempfile::TempDir,
    home: PathBuf,
    /// Who everything runs as, where that is somebody else than who runs the tests.
    user: Option<u32>,
}

/// Whom permissions bind.
const NOBODY: u32 = 65534;

const BINARIES: [(&str, &str); 7] = [
    ("lisa", env!("CARGO_BIN_EXE_it-lisa")),
    ("lisa-supervisor", env!("CARGO_BIN_EXE_it-supervisor")),
    ("lisa-soul", env!("CARGO_BIN_EXE_it-soul")),
    ("lisa-agent", env!("CARGO_BIN_EXE_it-agent")),
    ("lisa-heartbeat", env!("CARGO_BIN_EXE_it-heartbeat")),
    ("misbehave", env!("CARGO_BIN_EXE_misbehave")),
    ("mcp-double", env!("CARGO_BIN_EXE_mcp-double")),
];

impl World {
    /// A world whose home does not exist yet.
    pub(crate) fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("w").tempdir().unwrap();
        let home = folder.path().join("home");
        let world = Self { folder, home, user: None };
        std::fs::create_dir(world.bin()).unwrap();
        for (name, built) in BINARIES {
            place(Path::new(built), &world.bin().join(name));
        }
        world
    }

    /// A world in which permissions bind, whoever runs the tests.
    pub(crate) fn of_nobody() -> Self {
        let mut world = Self::new();
        if nix::unistd::geteuid().is_root() {
            // the binaries are links to what was built, and stay whose they are
            let owner = Some(nix::unistd::Uid::from_raw(NOBODY));
            nix::unistd::chown(world.folder.path(), owner, None).unwrap();
            world.user = Some(NOBODY);
        }
        world
    }

    /// Gives a command of somebody else the environment of this world, with its binaries in `PATH`.
    pub(crate) fn dress(&self, mut command: Command) -> Command {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(self.bin()).chain(std::env::split_paths(&path));
        command
            .env_clear()
            .env("PATH", std::env::join_paths(folders).unwrap())
            .env("HOME", self.folder.path())
            .env("LISA_HOME", &self.home)
            .env("TZ", "UTC")
            .stdin(Stdio::null());
        command
    }

    fn as_user(&self, mut command: Command) -> Command {
        use std::os::unix::process::CommandExt as _;
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        command
    }

    /// The same world with another place for the home; what was left behind stays running.
    pub(crate) fn with_home(mut self, home: PathBuf) -> Self {
        self.home = home;
        self
    }

    /// A world whose configuration says this.
    pub(crate) fn configured(config: &str) -> Self {
        let world = Self::new();
        world.configure(config);
        world
    }

    /// From now on, or from the next reading on, the configuration says this.
    pub(crate) fn configure(&self, config: &str) {
        std::fs::create_dir_all(&self.home).unwrap();
        std::fs::write(self.home.join("config.toml"), config).unwrap();
    }

    /// A folder that is this test's alone.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The home.
    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    /// Where the binaries of this world lie.
    pub(crate) fn bin(&self) -> PathBuf {
        self.folder.path().join("bin")
    }

    /// Puts the double in the place of a child; `script` says how it misbehaves.
    pub(crate) fn misbehave(&self, instead_of: &str, script: &str) {
        let place_of = self.bin().join(instead_of);
        std::fs::remove_file(&place_of).unwrap();
        place(&self.bin().join("misbehave"), &place_of);
        std::fs::write(self.bin().join("misbehave.txt"), script).unwrap();
    }

    /// A command of this world: no variable of the machine but `PATH`, no network it could know of.
    pub(crate) fn command(&self, binary: &str, arguments: &[&str]) -> Command {
        #[expect(clippy::disallowed_methods, reason = "the one place of the tests that runs the binaries")]
        let mut command = Command::new(self.bin().join(binary));
        command
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.folder.path())
            .env("LISA_HOME", &self.home)
            .env("TZ", "UTC")
            .stdin(Stdio::null());
        self.as_user(command)
    }

    /// Runs `lisa` and waits for its end, which must come.
    pub(crate) fn lisa(&self, arguments: &[&str]) -> Output {
        self.run(self.command("lisa", arguments), "")
    }

    /// Runs `lisa` with something on its standard input.
    pub(crate) fn lisa_told(&self, arguments: &[&str], stdin: &str) -> Output {
        self.run(self.command("lisa", arguments), stdin)
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, mut command: Command, stdin: &str) -> Output {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // a command that ends without reading is not wrong
        let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
        let pid = child.id();
        let (done, over) = std::sync::mpsc::channel();
        std::thread::spawn(move || done.send(child.wait_with_output()));
        let Ok(output) = over.recv_timeout(secs(90)) else {
            signal(pid, Signal::SIGKILL);
            panic!("{command:?} does not end\n{}", self.logs());
        };
        let output = output.unwrap();
        Output {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Runs `git` on the soul, as a person would. What was answered is in git some milliseconds later, and a question to
    /// the soul waits for that.
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        if ipc::home::Run::find(&ipc::home::Home::at(&self.home)).chat_socket().exists() {
            self.lisa(&["soul", "show", "name"]);
        }
        #[expect(clippy::disallowed_methods, reason = "the ordinary git looks at the repository")]
        let mut command = Command::new("git");
        command.arg("-C").arg(self.home.join("soul")).args(arguments).stdin(Stdio::null());
        self.run(self.as_user(command), "").ok()
    }

    /// Starts Lisa, and returns when everything is ready.
    #[track_caller]
    pub(crate) fn up(&self) {
        let up = self.lisa(&["up", "--detach"]);
        assert_eq!(up.code, 0, "{up:?}\n{}", self.logs());
    }

    /// Starts Lisa, and returns when she is born as well.
    #[track_caller]
    pub(crate) fn up_and_born(&self) {
        self.up();
        eventually(secs(20), "she is born", || {
            let name = self.status()["soul"]["name"].as_str().unwrap_or_default().to_owned();
            (!name.is_empty()).then_some(())
        });
    }

    /// `lisa status --json`.
    #[track_caller]
    pub(crate) fn status(&self) -> Value {
        self.lisa(&["status", "--json"]).json()
    }

    /// What the tools of the agent are kept from, as the status says once it is known.
    #[track_caller]
    pub(crate) fn sandbox(&self) -> String {
        eventually(secs(20), "it is known what is enforced", || {
            let said = self.status()["sandbox"].as_str().unwrap_or_default().to_owned();
            (!said.is_empty()).then_some(said)
        })
    }

    /// The part of the status about one process.
    #[track_caller]
    pub(crate) fn process(&self, name: &str) -> Value {
        let status = self.status();
        let processes = status["processes"].as_array().unwrap();
        processes.iter().find(|process| process["name"] == name).unwrap().clone()
    }

    /// The pid of a process that runs.
    #[track_caller]
    pub(crate) fn pid(&self, name: &str) -> u32 {
        let process = self.process(name);
        u32::try_from(process["pid"].as_u64().unwrap_or_else(|| panic!("{name} runs: {process}"))).unwrap()
    }

    /// Kills a process of this world outright.
    #[track_caller]
    pub(crate) fn kill(&self, name: &str) -> u32 {
        let pid = self.pid(name);
        signal(pid, Signal::SIGKILL);
        pid
    }

    /// Kills the supervisor outright.
    #[track_caller]
    pub(crate) fn kill_supervisor(&self) {
        self.kill("supervisor");
    }

    /// Waits until a process is ready again under another pid.
    #[track_caller]
    pub(crate) fn back(&self, name: &str, pid_before: u32) {
        eventually(secs(20), &format!("the {name} is back"), || {
            let process = self.process(name);
            let back = process["state"] == "ready" && process["pid"].as_u64() != Some(pid_before.into());
            back.then_some(())
        });
    }

    /// A client of the chat socket.
    #[track_caller]
    pub(crate) fn chat(&self) -> Chat {
        Chat::attach(&ipc::home::Run::find(&ipc::home::Home::at(&self.home)).chat_socket())
    }

    /// What one process logged.
    pub(crate) fn log(&self, process: &str) -> String {
        std::fs::read_to_string(self.home.join(format!("logs/{process}.log"))).unwrap_or_default()
    }

    /// What everybody logged, for the message of a failure.
    pub(crate) fn logs(&self) -> String {
        ["supervisor", "soul", "agent", "heartbeat"].iter().fold(String::new(), |mut all, process| {
            let _ = write!(all, "== {process}\n{}", self.log(process));
            all
        })
    }

    /// The last lines of every session's file, parsed.
    pub(crate) fn sessions(&self) -> Vec<Vec<Value>> {
        let folder = std::fs::read_dir(self.home.join("sessions")).into_iter().flatten().flatten();
        let mut files: Vec<_> = folder.map(|entry| entry.path()).collect();
        files.sort();
        let read = |path: &PathBuf| {
            let text = std::fs::read_to_string(path).unwrap();
            text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
        };
        files.iter().map(read).collect()
    }

    /// Whether the soul's repository is whole.
    #[track_caller]
    pub(crate) fn soul_is_whole(&self) {
        self.git(&["fsck", "--strict"]);
        // the index of git follows when nothing more comes
        eventually(secs(20), "files and HEAD agree", || {
            self.git(&["status", "--porcelain"]).is_empty().then_some(())
        });
    }

    /// The pids of everything that was started from this world's binaries and still runs.
    pub(crate) fn alive(&self) -> Vec<u32> {
        let bin = self.bin();
        let ours =
            |pid: &u32| std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe.starts_with(&bin));
        let pids = std::fs::read_dir("/proc").unwrap().flatten();
        pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(ours).collect()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for pid in self.alive() {
            signal(pid, Signal::SIGKILL);
        }
        if std::thread::panicking() {
            eprintln!("{}", self.logs());
        }
    }
}

/// A file under another name, without copying it where that can be helped.
fn place(from: &Path, to: &Path) {
    if std::fs::hard_link(from, to).is_err() {
        std::fs::copy(from, to).unwrap();
    }
}

/// Sends a signal; a process that is gone already needs none.
pub(crate) fn signal(pid: u32, signal: Signal) {
    let _ = kill(Pid::from_raw(i32::try_from(pid).unwrap()), signal);
}

/// Ends a process outright.
pub(crate) fn kill_outright(pid: u32) {
    signal(pid, Signal::SIGKILL);
}

/// Stops a process where it is.
pub(crate) fn pause(pid: u32) {
    signal(pid, Signal::SIGSTOP);
}

/// Lets it go on.
pub(crate) fn resume(pid: u32) {
    signal(pid, Signal::SIGCONT);
}

/// Asks a process to end.
pub(crate) fn end(pid: u32) {
    signal(pid, Signal::SIGTERM);
}

/// Interrupts a process, as Ctrl-C does.
pub(crate) fn interrupt(pid: u32) {
    signal(pid, Signal::SIGINT);
}

/// Hangs up on a process: where it belongs to no terminal, a wish to read its configuration anew.
pub(crate) fn hang_up(pid: u32) {
    signal(pid, Signal::SIGHUP);
}
