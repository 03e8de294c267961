//! What the soul's history costs: a durable write, many writers, a long history, and the room they take.
//!
//! ```text
//!  one acknowledged write          beside `git add; git diff --cached --quiet; git commit`, and beside the floor of the disk
//!  writes a second                 with 1, 4, 16 and 64 writers
//!  write, and whatever looks back  at 100, 10 000 and 100 000 commits, beside the same at 100: `long`
//!  room                            bytes and files, as written and after the upkeep: `long`
//! ```
//!
//! Everything of one table is measured in one run on one disk. Nothing is asserted: machines differ, and a number that
//! fails a build is soon a number nobody believes.

#![expect(clippy::unwrap_used, reason = "a measurement that cannot be made ends the run, and says where")]
#![expect(clippy::print_stdout, reason = "the numbers are what this is for")]

mod long;

use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader, Write as _},
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use ipc::{
    child::Brief,
    client::{Client, Credentials},
    config::Config,
    contract::soul::{Birth, Call, Called, Reply, Request, Soul},
    hello::{Keyring, Role, Secret},
};
use serde_json::json;

/// How wide the names are printed.
const WIDE: usize = 66;
/// How often each single write is made.
const WRITES: usize = 300;
/// How often the seed's way is taken, which is slower.
const COMMITS: usize = 40;
/// For how long many writers write.
const BUSY: Duration = Duration::from_secs(3);
/// How long anything may take before the run is given up.
const PATIENCE: Duration = Duration::from_mins(2);

fn main() {
    let folder = tempfile::Builder::new().prefix("soul-").tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    println!("{:<WIDE$} {:>6} {:>11} {:>11} {:>8}", "", "n", "p50", "p99", "ratio");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        // `cargo bench --bench soul -- many` measures one part alone
        let wanted: Vec<String> = std::env::args().skip(1).filter(|part| !part.starts_with('-')).collect();
        let is_wanted = |part: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == part);
        if is_wanted("one") {
            one_write(folder.path()).await;
        }
        if is_wanted("many") {
            many_writers(folder.path()).await;
        }
        if is_wanted("long") {
            long::histories(folder.path()).await;
        }
    });
}

/// One durable write beside the floor and beside the seed's way, taken in turn.
async fn one_write(folder: &Path) {
    let home = folder.join("one");
    let house = House::born(&home).await;
    let seed = folder.join("seed");
    fs::create_dir(&seed).unwrap();
    git(&seed, &["init", "-q"]);
    let log = File::create(folder.join("log")).unwrap();
    log.write_all_at(&vec![0; 64 << 20], 0).unwrap();
    log.sync_all().unwrap();
    let mut append = Series::new("floor: 1 KiB into a preallocated file, fdatasync");
    let mut replace = Series::new("floor: a file replaced (write, fsync, rename, fsync of the folder)");
    let mut soul = Series::new("a write of the soul, over the socket, acknowledged");
    let mut status = Series::new("the same socket, a question that only looks (`tools`)");
    for n in 0..WRITES {
        let record = vec![u8::try_from(n % 251).unwrap(); 1024];
        append.time(|| {
            log.write_all_at(&record, n as u64 * 1024).unwrap();
            log.sync_data().unwrap();
        });
        replace.time(|| {
            let (new, old) = (folder.join("new"), folder.join("old"));
            let mut file = File::create(&new).unwrap();
            file.write_all(&record).unwrap();
            file.sync_all().unwrap();
            fs::rename(&new, &old).unwrap();
            File::open(folder).unwrap().sync_all().unwrap();
        });
        let began = Instant::now();
        house.write(0, n).await;
        soul.add(began);
        let began = Instant::now();
        house.soul.ask(&Request::Tools, PATIENCE).await.unwrap();
        status.add(began);
    }
    let mut git_way = Series::new("the seed's way: git add, git diff --cached --quiet, git commit");
    for n in 0..COMMITS {
        fs::write(seed.join("v.md"), format!("change {n}\n")).unwrap();
        git_way.time(|| {
            git(&seed, &["add", "-A"]);
            let _ = command("git").arg("-C").arg(&seed).args(["diff", "--cached", "--quiet"]).status();
            git(&seed, &["commit", "-qm", "x"]);
        });
    }
    let floor = append.p(50);
    for series in [&append, &replace, &soul, &status, &git_way] {
        series.print(floor);
    }
    println!(
        "{:<WIDE$} {:>38.1}x",
        "the seed's way to a write of the soul",
        ratio(git_way.p(50), soul.p(50))
    );
    let mut changed = Series::new("the snapshot a prompt is built from");
    for _ in 0..WRITES {
        let began = Instant::now();
        house.soul.ask(&Request::Snapshot, PATIENCE).await.unwrap();
        changed.add(began);
    }
    changed.print(floor);
    house.end();
    println!();
}

/// Acknowledged writes a second, each its own commit, by writers that each wait for their answer.
async fn many_writers(folder: &Path) {
    for writers in [1, 4, 16, 64] {
        let home = folder.join(format!("many-{writers}"));
        let house = House::born(&home).await;
        let began = Instant::now();
        let tasks: Vec<_> = (0..writers)
            .map(|writer| {
                let soul = if writer % 16 == 0 { house.dial() } else { house.soul.clone() };
                tokio::spawn(async move {
                    let mut took = Vec::new();
                    while began.elapsed() < BUSY {
                        let start = Instant::now();
                        write(&soul, writer, took.len()).await;
                        took.push(start.elapsed());
                    }
                    took
                })
            })
            .collect();
        let mut series = Series::new(format!("an acknowledged write with {writers} writers"));
        for task in tasks {
            series.took.extend(task.await.unwrap());
        }
        let acknowledged = ratio_of(series.took.len(), began.elapsed());
        let before = Instant::now();
        house.soul.ask(&Request::Status, PATIENCE).await.unwrap();
        let behind = before.elapsed();
        series.print(Duration::ZERO);
        println!("{:<WIDE$} {acknowledged:>38.0} a second; in git {behind:.1?} after the last", "");
        let n = series.took.len();
        house.end();
        let commits: usize =
            git(&home.join("soul"), &["rev-list", "--count", "HEAD"]).trim().parse().unwrap();
        assert_eq!(commits, n + 1, "every answer is a commit");
    }
    println!();
}

/// A soul that runs, and whoever asks it.
struct House {
    child: Child,
    _said: BufReader<ChildStdout>,
    brief: Brief,
    soul: Client<Soul>,
}

impl House {
    async fn born(home: &Path) -> Self {
        let house = Self::start(home).await;
        let Reply::Conceived { draft, .. } = house.soul.ask(&Request::Conceive, PATIENCE).await.unwrap()
        else {
            panic!("not conceived")
        };
        let birth = Request::Birth(Birth { draft, wording: None, model: "offline".into() });
        assert!(matches!(house.soul.ask(&birth, PATIENCE).await.unwrap(), Reply::Born(_)));
        house
    }

    async fn start(home: &Path) -> Self {
        let brief = Brief {
            role: Role::Soul,
            life: 1,
            home: home.to_owned(),
            run: socket_folder(home),
            secret: Secret::fresh(),
            keyring: Keyring::from([(Role::Agent, Secret::fresh())]),
            config: Config::default(),
        };
        let mut child = command(env!("CARGO_BIN_EXE_it-soul"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = serde_json::to_vec(&brief).unwrap();
        line.push(b'\n');
        child.stdin.as_mut().unwrap().write_all(&line).unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("\"ready\"") {
            line.clear();
            assert!(said.read_line(&mut line).unwrap() > 0, "the soul ended before it was ready");
        }
        let soul = dial(&brief);
        soul.ask(&Request::Status, PATIENCE).await.unwrap();
        Self { child, _said: said, brief, soul }
    }

    fn dial(&self) -> Client<Soul> {
        dial(&self.brief)
    }

    async fn write(&self, slug: usize, n: usize) {
        write(&self.soul, slug, n).await;
    }

    fn end(mut self) {
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
    }
}

/// A short place for the socket, whose name has a bound.
fn socket_folder(home: &Path) -> PathBuf {
    std::env::temp_dir().join(format!(
        "b{}-{}",
        std::process::id(),
        home.file_name().unwrap().to_string_lossy()
    ))
}

fn dial(brief: &Brief) -> Client<Soul> {
    let secret = brief.keyring[&Role::Agent].clone();
    let credentials =
        Credentials { role: Role::Agent, secret, build: "bench".into(), life: 1, notices: false };
    Client::dial(&brief.run().socket(Role::Soul), credentials).0
}

async fn write(soul: &Client<Soul>, slug: usize, n: usize) {
    let body = format!("change {n} {}", "and the fog comes in from the sea ".repeat(8));
    let input = json!({"field": "value", "slug": format!("v-{slug}"), "title": "V", "body": body});
    let call = Call {
        tool: "soul_patch".into(),
        input,
        run: None,
        session: None,
        model: "offline".into(),
        outside: false,
    };
    match soul.ask(&Request::Call(call), PATIENCE).await.unwrap() {
        Reply::Called(Called { written: Some(_), .. }) => {}
        other => panic!("{other:?}"),
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place of this benchmark that makes processes")]
fn command(program: &str) -> Command {
    Command::new(program)
}

fn git(root: &Path, arguments: &[&str]) -> String {
    let identity = ["-c", "user.name=x", "-c", "user.email=x@y"];
    let output = command("git").arg("-C").arg(root).args(identity).args(arguments).output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// How long something took, many times.
struct Series {
    name: String,
    took: Vec<Duration>,
}

impl Series {
    fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), took: Vec::new() }
    }

    fn add(&mut self, began: Instant) {
        self.took.push(began.elapsed());
    }

    fn time(&mut self, what: impl FnOnce()) {
        let began = Instant::now();
        what();
        self.add(began);
    }

    fn p(&self, percent: usize) -> Duration {
        let mut sorted = self.took.clone();
        sorted.sort_unstable();
        sorted.get((sorted.len() * percent / 100).min(sorted.len() - 1)).copied().unwrap_or_default()
    }

    fn print(&self, floor: Duration) {
        let beside = if floor.is_zero() { String::new() } else { format!("{:.2}", ratio(self.p(50), floor)) };
        println!(
            "{:<WIDE$} {:>6} {:>11.1?} {:>11.1?} {beside:>8}",
            self.name,
            self.took.len(),
            self.p(50),
            self.p(99)
        );
    }
}

fn ratio(of: Duration, to: Duration) -> f64 {
    of.as_secs_f64() / to.as_secs_f64().max(f64::MIN_POSITIVE)
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below where it loses")]
fn ratio_of(count: usize, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64()
}
