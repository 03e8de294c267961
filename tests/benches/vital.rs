//! The vital signs as numbers: what a start, a message, a write and a death cost, and what she weighs at rest.
//!
//! ```text
//!  lisa up --detach ─▶ ready                      beside a process that only says its version
//!  memory of each process at rest                 beside a process that only sleeps
//!  a question and its answer over ipc, 1 KiB      beside the same bytes to and fro on a bare socket
//!  a write of the soul, acknowledged              beside `git add && git commit` of the same text
//!  a child killed ─▶ a client hears it is ready   beside a process that is started and ends
//!  a process made as a child is, by a large parent     beside the same by a small one
//! ```
//!
//! Each is measured in one run with what stands beside it, on the same disk. Nothing is asserted: machines differ, and
//! a number that fails a build is soon a number nobody believes. What is started here is stopped here, by its pid.

#![expect(clippy::unwrap_used, reason = "a measurement that cannot be made ends the run, and says where")]
#![expect(clippy::print_stdout, reason = "the numbers are what this is for")]

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    os::unix::{net::UnixStream, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use ipc::{
    child::Brief,
    client::{Client, Credentials},
    config::Config,
    contract::soul::{Birth, Call, Called, Reply, Request, Soul},
    endpoint::Endpoint,
    hello::{Keyring, Role, Secret},
    home::{Home, Run},
    id::RequestId,
    server::{Caller, Door, Notices, Service, serve},
};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::{Value, json};

/// How wide the names are printed.
const WIDE: usize = 70;
/// How many lives of a house are looked at.
const HOUSES: usize = 12;
/// How many processes are made by a small and by a large parent.
const SPAWNS: usize = 200;
/// How many questions are asked over a socket.
const QUESTIONS: usize = 4000;
/// How large each of them is.
const QUESTION_BYTES: usize = 1024;
/// How often the soul writes.
const WRITES: usize = 100;
/// How often `git` does, which is slower.
const COMMITS: usize = 40;
/// 1024 times 1024.
const MIB: u64 = 1024 * 1024;
/// How long anything may take before the run is given up.
const PATIENCE: Duration = Duration::from_secs(30);

fn main() {
    stop_everything_on_ctrl_c();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    println!("lisa {}, {cores} cores\n", ipc::BUILD);
    println!("{:<WIDE$} {:>5} {:>11} {:>11} {:>11} {:>8}", "", "n", "p50", "p90", "p99", "beside");
    let folder = tempfile::Builder::new().prefix("vital-").tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let binaries = Binaries::beside_each_other(&folder.path().join("bin"));
    spawns();
    lives(&binaries, folder.path());
    messages(folder.path());
    writes(&binaries, folder.path());
}

/// Starts, memory and deaths: each house has a new home, is started twice, weighed, and loses each child once.
fn lives(binaries: &Binaries, folder: &Path) {
    let mut version = Series::new("a process that says its version (`lisa --version`)");
    let mut bare = Series::new("a process that is started and ends (`true`)");
    let mut first = Series::new("`lisa up --detach` in an empty home, to ready");
    let mut again = Series::new("`lisa up --detach` in a home she lives in, to ready");
    let mut deaths = ["agent", "soul", "heartbeat"].map(|child| {
        (child, Series::new(format!("`kill -9` of the {child}, to the client that hears it is ready")))
    });
    let mut memory = Vec::new();
    for number in 0..HOUSES {
        let house = House { home: folder.join(format!("home-{number}")), binaries: binaries.clone() };
        version.time(|| assert!(house.lisa(&["--version"]).status.success()));
        bare.time(|| assert!(command("true").status().unwrap().success()));
        first.time(|| house.up());
        let mut chat = Chat::attach(&house.home);
        eventually(|| chat.ask("_lisa/status", &Value::Null)["soul"]["commit"].is_string());
        house.down();
        again.time(|| house.up());
        let mut chat = Chat::attach(&house.home);
        memory = at_rest(&mut chat);
        chat.ask("_lisa/events", &json!({"follow": true}));
        for (child, series) in &mut deaths {
            let status = chat.ask("_lisa/status", &Value::Null);
            let pid = process(&status, child)["pid"].as_u64().unwrap();
            series.time(|| {
                kill_by_pid(pid);
                chat.hear(|event| event["type"] == "child_ready" && event["process"] == *child);
            });
        }
        house.down();
    }
    print(&[&first, &again, &version]);
    let mut sleeping = command("sleep").arg("600").spawn().unwrap();
    pause(Duration::from_millis(200));
    let sleeper = resident_bytes(sleeping.id());
    stop(&mut sleeping);
    print_memory(&memory, sleeper);
    let [agent, soul, heartbeat] = deaths.map(|(_, series)| series);
    print(&[&agent, &soul, &heartbeat, &bare]);
}

/// Resident memory by process, once a second has passed in which nobody asked for anything.
fn at_rest(chat: &mut Chat) -> Vec<(String, Option<u64>)> {
    pause(Duration::from_secs(1));
    let status = chat.ask("_lisa/status", &Value::Null);
    let processes = status["processes"].as_array().unwrap();
    let weight =
        |process: &Value| (process["name"].as_str().unwrap().to_owned(), process["rss_bytes"].as_u64());
    processes.iter().map(weight).collect()
}

fn print_memory(memory: &[(String, Option<u64>)], sleeper: Option<u64>) {
    let row = |name: &str, bytes: Option<u64>| {
        let shown =
            bytes.map_or("not known here".to_owned(), |bytes| format!("{:.1} MiB", ratio(bytes, MIB)));
        let beside =
            bytes.zip(sleeper).map_or(String::new(), |(bytes, sleeper)| times(ratio(bytes, sleeper)));
        println!("{name:<WIDE$} {:>5} {shown:>11} {:>11} {:>11} {beside:>8}", "", "", "");
    };
    for (name, bytes) in memory {
        row(&format!("resident memory at rest: {name}"), *bytes);
    }
    row("resident memory at rest: all four", memory.iter().map(|(_, bytes)| *bytes).sum());
    row("resident memory of a process that sleeps (`sleep`)", sleeper);
    println!();
}

/// What the size of a parent costs: a process made with all that a child of the supervisor is made with (B28).
fn spawns() {
    let spawn = || {
        let mut child = command("true");
        child.env_clear().env("PATH", "/usr/bin:/bin").current_dir("/").stdin(Stdio::piped());
        child.stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
        assert!(child.spawn().unwrap().wait().unwrap().success());
    };
    let mut small = Series::new("a process made as a child is, and ended");
    let mut large = Series::new("the same by a parent that has touched 512 MiB");
    (0..SPAWNS).for_each(|_| small.time(spawn));
    let touched = std::hint::black_box(vec![1u8; 512 << 20]);
    (0..SPAWNS).for_each(|_| large.time(spawn));
    drop(std::hint::black_box(touched));
    print(&[&large, &small]);
}

/// A question and its answer over ipc, beside the same bytes on a bare socket.
fn messages(folder: &Path) {
    let run = Run::at(folder.join("echo"));
    let secret = Secret::fresh();
    let door = Door {
        keyring: Keyring::from([(Role::Agent, secret.clone())]),
        build: ipc::BUILD.to_owned(),
        life: 1,
    };
    let socket = run.socket(Role::Soul);
    let served = socket.clone();
    // as between processes, each side has a thread and a runtime of its own; this one ends with the process
    std::thread::spawn(move || {
        runtime().block_on(async {
            let endpoint = Endpoint::listen(&served).await.unwrap();
            serve::<Soul, _>(endpoint, door, Arc::new(Echo), Notices::default()).await;
        });
    });
    let mut ours = Series::new("a question and its answer over ipc, 1 KiB each way");
    runtime().block_on(async {
        let (client, _) = Client::<Soul>::dial(&socket, credentials(&secret));
        let question = Request::Read { document: "x".repeat(QUESTION_BYTES) };
        for number in 0..QUESTIONS + QUESTIONS / 10 {
            let asked = Instant::now();
            let Reply::Document { .. } = client.ask(&question, PATIENCE).await.unwrap() else { panic!() };
            ours.add_once_warm(number, QUESTIONS / 10, asked);
        }
    });

    let mut bare = Series::new("the same bytes on a bare Unix socket, two threads");
    let (mut here, mut there) = UnixStream::pair().unwrap();
    let echo = std::thread::spawn(move || {
        let mut bytes = [0; QUESTION_BYTES];
        while there.read_exact(&mut bytes).is_ok() {
            there.write_all(&bytes).unwrap();
        }
    });
    let mut bytes = [b'x'; QUESTION_BYTES];
    for number in 0..QUESTIONS + QUESTIONS / 10 {
        let asked = Instant::now();
        here.write_all(&bytes).unwrap();
        here.read_exact(&mut bytes).unwrap();
        bare.add_once_warm(number, QUESTIONS / 10, asked);
    }
    drop(here);
    echo.join().unwrap();
    print(&[&ours, &bare]);
}

/// Gives back what it is sent.
struct Echo;

impl Service<Soul> for Echo {
    async fn answer(&self, _: Caller, _: RequestId, request: Request) -> Reply {
        match request {
            Request::Read { document } => Reply::Document { path: String::new(), text: document },
            other => Reply::Refused { reason: format!("{other:?}") },
        }
    }
}

/// Writes of a real soul process, beside the git command on the same disk.
fn writes(binaries: &Binaries, folder: &Path) {
    let secret = Secret::fresh();
    let brief = Brief {
        role: Role::Soul,
        life: 1,
        home: folder.join("soul-alone"),
        run: folder.join("soul-alone/run"),
        secret: Secret::fresh(),
        keyring: Keyring::from([(Role::Agent, secret.clone())]),
        config: Config::default(),
    };
    fs::create_dir_all(&brief.home).unwrap();
    let mut soul = start_soul(binaries, &brief);
    let mut patches = Series::new("`soul_patch` of her identity, acknowledged");
    let mut entries = Series::new("`soul_journal`, acknowledged");
    runtime().block_on(async {
        let (client, _) = Client::<Soul>::dial(&brief.run().socket(Role::Soul), credentials(&secret));
        let conceived = client.ask(&Request::Conceive, PATIENCE).await.unwrap();
        let Reply::Conceived { draft, .. } = conceived else { panic!("{conceived:?}") };
        let birth = Request::Birth(Birth { draft, wording: None, model: "none".to_owned() });
        let born = client.ask(&birth, PATIENCE).await.unwrap();
        assert!(matches!(born, Reply::Born(_)), "{born:?}");
        for number in 0..WRITES {
            let patch =
                json!({"field": "identity", "content": text(number), "why": "to see how long it takes"});
            let entry = json!({"entry": text(number)});
            for (tool, input, series) in
                [("soul_patch", patch, &mut patches), ("soul_journal", entry, &mut entries)]
            {
                let call = Call {
                    tool: tool.to_owned(),
                    input,
                    run: None,
                    session: None,
                    model: "none".to_owned(),
                    outside: false,
                };
                let asked = Instant::now();
                let answer = client.ask(&Request::Call(call), PATIENCE).await.unwrap();
                series.add(asked);
                assert!(matches!(&answer, Reply::Called(Called { written: Some(_), .. })), "{answer:?}");
            }
        }
    });
    // the end of its standard input tells it that its supervisor is gone
    drop(soul.stdin.take());
    soul.wait().unwrap();

    let by_default = commits(&folder.join("git"), "by default", &[]);
    let flushed =
        commits(&folder.join("git-flushed"), "flushed as the soul flushes", &["-c", "core.fsync=all"]);
    print(&[&patches, &entries, &flushed, &by_default]);
}

fn start_soul(binaries: &Binaries, brief: &Brief) -> Child {
    let mut soul = command(binaries.0.join("lisa-soul"));
    let mut soul = soul.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut words = serde_json::to_vec(brief).unwrap();
    words.push(b'\n');
    soul.stdin.as_mut().unwrap().write_all(&words).unwrap();
    let said = BufReader::new(soul.stdout.take().unwrap());
    assert!(said.lines().any(|line| line.unwrap().contains("\"ready\"")), "the soul did not get ready");
    soul
}

/// `git add && git commit` of a text of the same size, in a repository that has nothing else.
fn commits(repository: &Path, how: &str, options: &[&str]) -> Series {
    let mut series = Series::new(format!("`git add && git commit` of the same text, {how}"));
    let git = |arguments: &[&str]| {
        let mut git = command("git");
        git.arg("-C").arg(repository).args(options).args(arguments).stdout(Stdio::null());
        git.envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1")]);
        assert!(git.status().unwrap().success(), "git {arguments:?}");
    };
    fs::create_dir_all(repository).unwrap();
    git(&["init", "-q"]);
    git(&["config", "user.name", "nobody"]);
    git(&["config", "user.email", "nobody@nowhere"]);
    git(&["config", "gc.auto", "0"]);
    for number in 0..COMMITS {
        fs::write(repository.join("identity.md"), text(number)).unwrap();
        series.time(|| {
            git(&["add", "identity.md"]);
            git(&["commit", "-q", "-m", "to see how long it takes"]);
        });
    }
    series
}

/// What is written, a little different each time.
fn text(number: usize) -> String {
    format!("I keep the light, and hum when the fog comes in. This is the {number}th time I say so.\n")
        .repeat(5)
}

/// The binaries under their own names in one folder, since they find each other beside themselves.
#[derive(Clone)]
struct Binaries(PathBuf);

impl Binaries {
    fn beside_each_other(folder: &Path) -> Self {
        fs::create_dir_all(folder).unwrap();
        for (built, name) in [
            (env!("CARGO_BIN_EXE_it-lisa"), "lisa"),
            (env!("CARGO_BIN_EXE_it-supervisor"), "lisa-supervisor"),
            (env!("CARGO_BIN_EXE_it-agent"), "lisa-agent"),
            (env!("CARGO_BIN_EXE_it-soul"), "lisa-soul"),
            (env!("CARGO_BIN_EXE_it-heartbeat"), "lisa-heartbeat"),
        ] {
            fs::hard_link(built, folder.join(name)).unwrap();
        }
        Self(folder.to_owned())
    }
}

/// A home with a supervisor, stopped at the end however that comes.
struct House {
    home: PathBuf,
    binaries: Binaries,
}

/// The homes in which a supervisor may be running.
static INHABITED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

impl House {
    fn lisa(&self, arguments: &[&str]) -> std::process::Output {
        let mut lisa = command(self.binaries.0.join("lisa"));
        // nothing of this machine's decides which model thinks
        lisa.env_clear().env("HOME", &self.home).env("LISA_HOME", &self.home).args(arguments);
        lisa.stdin(Stdio::null()).output().unwrap()
    }

    fn up(&self) {
        INHABITED.lock().unwrap().push(self.home.clone());
        let up = self.lisa(&["up", "--detach"]);
        assert!(up.status.success(), "{}", String::from_utf8_lossy(&up.stderr));
    }

    fn down(&self) {
        let down = self.lisa(&["down"]);
        assert!(down.status.success(), "{}", String::from_utf8_lossy(&down.stderr));
        INHABITED.lock().unwrap().retain(|home| *home != self.home);
    }
}

impl Drop for House {
    fn drop(&mut self) {
        if INHABITED.lock().is_ok_and(|homes| homes.contains(&self.home)) {
            evict(&self.home);
        }
    }
}

/// Ends the supervisor of a home by the pid in its lock; its children end when it does.
fn evict(home: &Path) {
    let pid = fs::read_to_string(Home::at(home).lock()).ok().and_then(|pid| pid.trim().parse().ok());
    if let Some(pid) = pid {
        kill_by_pid(pid);
    }
}

fn stop_everything_on_ctrl_c() {
    std::thread::spawn(|| {
        runtime().block_on(tokio::signal::ctrl_c()).unwrap();
        for home in INHABITED.lock().unwrap().iter() {
            evict(home);
        }
        std::process::exit(130);
    });
}

/// A client of the chat socket, as anybody could write one.
struct Chat {
    reader: BufReader<UnixStream>,
    asked: u64,
}

impl Chat {
    fn attach(home: &Path) -> Self {
        let stream = UnixStream::connect(Run::find(&Home::at(home)).chat_socket()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { reader: BufReader::new(stream), asked: 0 }
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.asked += 1;
        let request = json!({"jsonrpc": "2.0", "id": self.asked, "method": method, "params": params});
        self.reader.get_mut().write_all(format!("{request}\n").as_bytes()).unwrap();
        loop {
            let mut message = self.next();
            if message["id"] == self.asked {
                return message["result"].take();
            }
        }
    }

    /// Waits for an event.
    fn hear(&mut self, is_it: impl Fn(&Value) -> bool) {
        loop {
            let message = self.next();
            if message["method"] == "_lisa/event" && is_it(&message["params"]) {
                return;
            }
        }
    }

    fn next(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.reader.read_line(&mut line).unwrap() > 0, "the supervisor is gone");
        serde_json::from_str(&line).unwrap()
    }
}

/// How long something took, each time.
struct Series {
    name: String,
    samples: Vec<Duration>,
}

impl Series {
    fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), samples: Vec::new() }
    }

    fn time(&mut self, work: impl FnOnce()) {
        let began = Instant::now();
        work();
        self.add(began);
    }

    fn add(&mut self, began: Instant) {
        self.samples.push(began.elapsed());
    }

    fn add_once_warm(&mut self, number: usize, cold: usize, began: Instant) {
        if number >= cold {
            self.add(began);
        }
    }

    /// The sample that so many hundredths of all are not above.
    fn percentile(&self, hundredths: usize) -> Duration {
        let mut sorted = self.samples.clone();
        sorted.sort();
        let rank = (sorted.len() * hundredths).div_ceil(100).max(1);
        sorted.get(rank - 1).copied().unwrap_or_default()
    }
}

/// Prints what was measured together, each beside the last of them: how many times as long it takes at the median.
fn print(together: &[&Series]) {
    let last = together.last().unwrap().percentile(50).as_secs_f64();
    for series in together {
        let [p50, p90, p99] = [50, 90, 99].map(|hundredths| series.percentile(hundredths));
        let beside = times(p50.as_secs_f64() / last);
        let p99 = if series.samples.len() < 100 { String::new() } else { milliseconds(p99) };
        let (p50, p90) = (milliseconds(p50), milliseconds(p90));
        println!(
            "{:<WIDE$} {:>5} {p50:>11} {p90:>11} {p99:>11} {beside:>8}",
            series.name,
            series.samples.len()
        );
    }
    println!();
}

fn milliseconds(time: Duration) -> String {
    format!("{:.3} ms", time.as_secs_f64() * 1000.0)
}

fn times(ratio: f64) -> String {
    format!("{ratio:.1}x")
}

#[expect(clippy::cast_precision_loss, reason = "one decimal of it is shown")]
fn ratio(of: u64, to: u64) -> f64 {
    of as f64 / to as f64
}

fn process<'a>(status: &'a Value, name: &str) -> &'a Value {
    status["processes"].as_array().unwrap().iter().find(|process| process["name"] == name).unwrap()
}

fn resident_bytes(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

fn credentials(secret: &Secret) -> Credentials {
    let build = ipc::BUILD.to_owned();
    Credentials { role: Role::Agent, secret: secret.clone(), build, life: 1, notices: false }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn kill_by_pid(pid: u64) {
    // one that has already ended needs no signal
    let _ = kill(Pid::from_raw(i32::try_from(pid).unwrap()), Signal::SIGKILL);
}

fn stop(child: &mut Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

fn eventually(mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "she was not born in time");
        pause(Duration::from_millis(5));
    }
}

#[expect(clippy::disallowed_methods, reason = "rest is what is measured, and time is what it takes")]
fn pause(time: Duration) {
    std::thread::sleep(time);
}

#[expect(clippy::disallowed_methods, reason = "the one place where these measurements start processes")]
fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    Command::new(program)
}
