//! The soul under torture: killed at any instant while many write, on a disk that fills up, with the power cut.
//!
//! ```text
//!  writers ─▶ socket ─▶ soul ─┐
//!  seeded pause ─▶ kill -9 ───┴─▶ started again ─▶ each unanswered request asked again ─▶ history compared with answers
//! ```
//!
//! Each campaign prints its seed and, of what was acknowledged, how much was lost, doubled or given to the wrong caller:
//! `0 0 0`. `LISA_TORTURE=<kills>` makes the campaigns long (`make torture`), `LISA_TORTURE_SEED` repeats one.

use std::{
    collections::{BTreeMap, HashMap},
    io::Write as _,
    path::Path,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use ipc::{
    client::{Client, Patience},
    contract::soul::{Called, Reply, Request, RunToken, Soul},
    hello::Role,
    id::RequestId,
};
use serde_json::json;

use crate::stage::{Mount, PATIENCE, Rack, Scratch, call, run, said, say, secs};

/// How many writers write at once.
const WRITERS: usize = 8;
/// How many rounds one home lives through on a small disk, which a longer history would fill by itself.
const ROUNDS_A_HOME: u64 = 15;

/// A small generator of numbers: a campaign can be repeated by its seed.
struct Dice(u64);

impl Dice {
    fn throw(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

/// The seed of a campaign, which is printed, and how many kills or cuts it has.
fn campaign(name: &str, short: u64) -> (Dice, u64) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seed = number("LISA_TORTURE_SEED").unwrap_or_else(|| {
        RequestId::fresh().as_str().bytes().fold(7, |seed, byte| seed * 31 % 1_000_000_007 + u64::from(byte))
    });
    let rounds = number("LISA_TORTURE").unwrap_or(short);
    say(&format!("{name}: seed {seed}, {rounds} rounds"));
    (Dice(seed), rounds)
}

/// One write: what was asked, by which caller it must be signed, and what was answered.
#[derive(Debug, Clone)]
struct Asked {
    id: RequestId,
    request: Request,
    caller: &'static str,
    commit: Option<String>,
}

type Ledger = Arc<Mutex<Vec<Asked>>>;

fn journal(writer: usize, n: usize, run: Option<RunToken>) -> Request {
    call("soul_journal", json!({"entry": format!("writer {writer} entry {n}")}), run)
}

fn value(writer: usize, n: usize, run: Option<RunToken>) -> Request {
    let body = format!("writer {writer} change {n}");
    call(
        "soul_patch",
        json!({"field": "value", "slug": format!("v-{writer}"), "title": "V", "body": body}),
        run,
    )
}

/// Writes without end, every other time under the caller of her own time. What a life did not answer is asked of the
/// next one, by the same id, as everybody does.
async fn write(client: Client<Soul>, writer: usize, run: RunToken, ledger: Ledger) {
    for n in 0.. {
        let run = (n % 2 == 1).then(|| run.clone());
        // a journal grows with each entry, and so does every commit of it: one in eight is enough to look at
        let is_entry = n % 8 < 2;
        let caller = match (&run, is_entry) {
            (Some(_), _) => "heartbeat",
            (None, true) => "soul_journal",
            (None, false) => "soul_patch",
        };
        let request = if is_entry { journal(writer, n, run) } else { value(writer, n, run) };
        let mut asked = Asked { id: RequestId::fresh(), request, caller, commit: None };
        let place = {
            let mut ledger = ledger.lock().unwrap();
            ledger.push(asked.clone());
            ledger.len() - 1
        };
        loop {
            match client.ask_as(asked.id.clone(), &asked.request, Patience::of(PATIENCE)).await {
                Ok(Reply::Called(Called { written: Some(written), .. })) => {
                    asked.commit = Some(written.commit);
                    ledger.lock().unwrap()[place].commit.clone_from(&asked.commit);
                    break;
                }
                // a full disk refuses; a while later it is asked again
                Ok(_) => tokio::time::sleep(Duration::from_millis(20)).await,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// What came of a campaign.
#[derive(Debug, Default, PartialEq, Eq)]
struct Verdict {
    acknowledged: usize,
    lost: usize,
    doubled: usize,
    misattributed: usize,
}

impl Verdict {
    fn sentence(&self, took: Duration) -> String {
        let Self { acknowledged, lost, doubled, misattributed } = self;
        format!(
            "acknowledged {acknowledged}, lost {lost}, doubled {doubled}, misattributed {misattributed} ({took:.0?})"
        )
    }
}

impl std::ops::AddAssign for Verdict {
    fn add_assign(&mut self, other: Self) {
        self.acknowledged += other.acknowledged;
        self.lost += other.lost;
        self.doubled += other.doubled;
        self.misattributed += other.misattributed;
    }
}

impl Rack {
    /// Compares the history with what was answered.
    fn judge(&self, ledger: &[Asked]) -> Verdict {
        let format = "--format=%H%x09%s%x09%(trailers:key=Request-Id,valueonly,separator=%x2C)%x09%(trailers:key=Answered-As,valueonly,separator=%x2C)";
        let log = self.git(&["log", format]).unwrap();
        let mut by_request: HashMap<&str, Vec<(&str, &str, &str)>> = HashMap::new();
        for line in log.lines() {
            let parts: Vec<_> = line.split('\t').collect();
            let [commit, subject, request, answered] = parts[..] else { panic!("{line}") };
            by_request.entry(request).or_default().push((commit, subject, answered));
        }
        let mut verdict = Verdict::default();
        for asked in ledger {
            let commits = by_request.get(asked.id.as_str()).map(Vec::as_slice).unwrap_or_default();
            verdict.acknowledged += usize::from(asked.commit.is_some());
            verdict.doubled += usize::from(commits.len() > 1);
            if let Some(commit) = &asked.commit {
                let stands = commits
                    .iter()
                    .any(|(id, _, answered)| id == commit || answered.contains(commit.as_str()));
                verdict.lost += usize::from(!stands);
            }
            let wrong =
                |(_, subject, _): &&(&str, &str, &str)| !subject.ends_with(&format!(" via {}", asked.caller));
            verdict.misattributed += commits.iter().filter(wrong).count();
        }
        verdict
    }

    /// The repository is whole, files and HEAD agree, and no lock is left. The soul may still be running.
    fn is_whole(&self) {
        self.git(&["fsck", "--strict", "--no-dangling"]).unwrap();
        let end = std::time::Instant::now() + secs(20);
        let differing = || self.git(&["status", "--porcelain"]).unwrap();
        while !differing().is_empty() && std::time::Instant::now() < end {
            std::thread::park_timeout(std::time::Duration::from_millis(50));
        }
        assert_eq!(differing(), "", "files and HEAD agree\n{}", self.log());
        let locks = said("find", &[self.soul().to_str().unwrap(), "-name", "*.lock"]).unwrap();
        assert_eq!(locks, "", "no lock is left");
    }

    /// Every entry that is acknowledged is in the files, once and in the order of its writer.
    fn files_hold(&self, ledger: &[Asked]) {
        let read = |folder: &str| -> String {
            let files = std::fs::read_dir(self.soul().join(folder)).into_iter().flatten().flatten();
            let mut files: Vec<_> = files.map(|file| file.path()).collect();
            files.sort();
            files.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect()
        };
        let journal = read("journal");
        let mut entries: BTreeMap<&str, usize> = BTreeMap::new();
        for line in journal.lines().filter(|line| line.starts_with("writer ")) {
            *entries.entry(line).or_default() += 1;
        }
        for asked in ledger.iter().filter(|asked| asked.commit.is_some()) {
            let Request::Call(call) = &asked.request else { continue };
            if let Some(entry) = call.input["entry"].as_str() {
                assert_eq!(entries.get(entry), Some(&1), "{entry}");
            }
        }
    }
}

/// Kills the soul as often as it is said, at seeded instants, under all writers; gives the ledger, everything answered.
async fn kill_again_and_again(rack: &Rack, dice: &mut Dice, kills: u64) -> Vec<Asked> {
    let mut life = rack.start();
    if !rack.soul().join("seed.json").exists() {
        rack.give_birth().await;
    }
    let run = rack.open_run().await;
    let ledger = Ledger::default();
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| tokio::spawn(write(rack.dial(Role::Agent), writer, run.clone(), ledger.clone())))
        .collect();
    for _ in 0..kills {
        tokio::time::sleep(Duration::from_micros(500 + dice.throw(60_000))).await;
        life.kill();
        life = rack.start();
        assert!(writers.iter().all(|writer| !writer.is_finished()), "everybody still writes\n{}", rack.log());
    }
    for writer in writers {
        writer.abort();
    }
    // what was under way is asked again, and becomes one commit or is one
    let soul = rack.dial(Role::Agent);
    let mut asked = ledger.lock().unwrap().clone();
    for asked in asked.iter_mut().filter(|asked| asked.commit.is_none()) {
        let reply = soul.ask_as(asked.id.clone(), &asked.request, Patience::of(PATIENCE)).await.unwrap();
        let Reply::Called(Called { written: Some(written), .. }) = reply else {
            panic!("{reply:?}\n{}", rack.log())
        };
        asked.commit = Some(written.commit);
    }
    // and what was answered is answered again as it was
    for asked in asked.iter().rev().take(50) {
        let reply = soul.ask_as(asked.id.clone(), &asked.request, Patience::of(PATIENCE)).await.unwrap();
        let Reply::Called(Called { written: Some(written), .. }) = reply else { panic!("{reply:?}") };
        assert_eq!(Some(written.commit), asked.commit, "the first answer stands");
    }
    soul.ask(&Request::Status, PATIENCE).await.unwrap();
    rack.is_whole();
    life.end();
    rack.is_whole();
    asked
}

#[test]
fn killed_at_any_instant_under_eight_writers_nothing_is_lost_doubled_or_misattributed() {
    let (mut dice, kills) = campaign("kill -9", 40);
    run(async {
        let home = tempfile::tempdir().unwrap();
        let rack = Rack::new(home.path());
        let began = Instant::now();
        let ledger = kill_again_and_again(&rack, &mut dice, kills).await;
        let verdict = rack.judge(&ledger);
        println!(
            "acknowledged {}, lost {}, doubled {}, misattributed {} ({:.0?})",
            verdict.acknowledged,
            verdict.lost,
            verdict.doubled,
            verdict.misattributed,
            began.elapsed()
        );
        rack.files_hold(&ledger);
        assert!(verdict.acknowledged >= ledger.len().min(usize::try_from(kills).unwrap()));
        assert_eq!((verdict.lost, verdict.doubled, verdict.misattributed), (0, 0, 0));
    });
}

#[test]
fn b34_eight_writers_of_one_document_are_two_hundred_commits_and_two_hundred_right_callers() {
    run(async {
        let home = tempfile::tempdir().unwrap();
        let rack = Rack::new(home.path());
        let life = rack.start();
        rack.give_birth().await;
        let run = rack.open_run().await;
        let mut writers = Vec::new();
        for writer in 0..8 {
            let (client, run) = (rack.dial(Role::Agent), run.clone());
            writers.push(tokio::spawn(async move {
                let mut asked = Vec::new();
                for n in 0..25 {
                    let run = (writer % 2 == 1).then(|| run.clone());
                    let caller = if run.is_some() { "heartbeat" } else { "soul_journal" };
                    let (id, request) = (RequestId::fresh(), journal(writer, n, run));
                    let reply = client.ask_as(id.clone(), &request, Patience::of(PATIENCE)).await.unwrap();
                    let Reply::Called(Called { written: Some(written), .. }) = reply else {
                        panic!("{reply:?}")
                    };
                    asked.push(Asked { id, request, caller, commit: Some(written.commit) });
                }
                asked
            }));
        }
        let mut ledger = Vec::new();
        for writer in writers {
            ledger.extend(writer.await.unwrap());
        }
        life.end();
        let verdict = rack.judge(&ledger);
        assert_eq!(verdict, Verdict { acknowledged: 200, ..Verdict::default() });
        assert_eq!(rack.git(&["rev-list", "--count", "HEAD"]).unwrap().trim(), "201");
        rack.files_hold(&ledger);
        rack.is_whole();
    });
}

#[test]
fn killed_while_the_disk_fills_up_nothing_is_lost_and_it_goes_on_when_there_is_room() {
    let disk = match Mount::new(&["-t", "tmpfs", "-o", "size=128m", "tmpfs"]) {
        Ok(disk) => disk,
        Err(why) => return say(&format!("skipped: no tmpfs can be mounted here ({})", why.trim())),
    };
    let (mut dice, mut kills) = campaign("kill -9 on a disk that fills up", 15);
    run(async {
        let began = Instant::now();
        let mut verdict = Verdict::default();
        while kills > 0 {
            let rounds = kills.min(ROUNDS_A_HOME);
            kills -= rounds;
            verdict += fill_up(disk.path(), &mut dice, rounds).await;
        }
        say(&verdict.sentence(began.elapsed()));
        assert_eq!((verdict.lost, verdict.doubled, verdict.misattributed), (0, 0, 0));
    });
}

/// One home on a disk that is full every other time it is killed.
async fn fill_up(disk: &Path, dice: &mut Dice, kills: u64) -> Verdict {
    let home = disk.join("home");
    let rack = Rack::new(&home);
    let mut life = rack.start();
    rack.give_birth().await;
    let run = rack.open_run().await;
    let ledger = Ledger::default();
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| tokio::spawn(write(rack.dial(Role::Agent), writer, run.clone(), ledger.clone())))
        .collect();
    let ballast = disk.join("ballast");
    for round in 0..kills {
        // full, so that now and then a write is refused in its midst; then room again
        let is_full = round % 2 == 0;
        if is_full {
            let mut file = std::fs::File::create(&ballast).unwrap();
            while file.write_all(&[7; 16 * 1024]).is_ok() {}
        }
        tokio::time::sleep(Duration::from_micros(5_000 + dice.throw(150_000))).await;
        let _ = std::fs::remove_file(&ballast);
        if dice.throw(3) == 0 {
            tokio::time::sleep(Duration::from_micros(dice.throw(100_000))).await;
        }
        life.kill();
        life = rack.start();
    }
    for writer in &writers {
        writer.abort();
    }
    let soul = rack.dial(Role::Agent);
    let mut ledger = ledger.lock().unwrap().clone();
    for asked in ledger.iter_mut().filter(|asked| asked.commit.is_none()) {
        // what was refused is tried again by the soul itself, with pauses of up to two seconds
        let end = Instant::now() + PATIENCE;
        while asked.commit.is_none() {
            let reply = soul.ask_as(asked.id.clone(), &asked.request, Patience::of(PATIENCE)).await.unwrap();
            let Reply::Called(called) = reply else { panic!("{reply:?}") };
            assert!(called.written.is_some() || Instant::now() < end, "{called:?}\n{}", rack.log());
            asked.commit = called.written.map(|written| written.commit);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    soul.ask(&Request::Status, PATIENCE).await.unwrap();
    life.end();
    let verdict = rack.judge(&ledger);
    rack.files_hold(&ledger);
    rack.is_whole();
    std::fs::remove_dir_all(&home).unwrap();
    verdict
}

/// Cuts the power of a file system: nothing that is not on the device reaches it any more, the journal included.
fn cut_the_power(disk: &Path) -> Result<String, String> {
    // EXT4_IOC_SHUTDOWN is _IOR('X', 125, __u32); 2 is EXT4_GOING_FLAGS_NOLOGFLUSH
    let program = "import fcntl,os,struct,sys\nfd=os.open(sys.argv[1],os.O_RDONLY)\nfcntl.ioctl(fd,0x8004587d,struct.pack('I',2))";
    said("python3", &["-c", program, disk.to_str().unwrap()])
}

#[test]
fn with_the_power_cut_at_any_instant_nothing_that_was_acknowledged_is_lost() {
    let scratch = match Scratch::new() {
        Ok(scratch) => scratch,
        Err(why) => return say(&format!("skipped: no scratch disk can be made here ({})", why.trim())),
    };
    let mut disk = match scratch.mount() {
        Ok(disk) => disk,
        Err(why) => return say(&format!("skipped: no loop device can be mounted here ({})", why.trim())),
    };
    let (mut dice, cuts) = campaign("power cut", 6);
    let cuts = cuts.min(400);
    run(async {
        let began = Instant::now();
        let mut acknowledged: Vec<Asked> = Vec::new();
        let mut total = Verdict::default();
        for round in 0..cuts {
            let is_new = round % ROUNDS_A_HOME == 0;
            if is_new && round > 0 {
                std::fs::remove_dir_all(disk.path().join("home")).unwrap();
                acknowledged.clear();
            }
            let rack = Rack::new(&disk.path().join("home"));
            let life = rack.start();
            if is_new {
                rack.give_birth().await;
            }
            let run = rack.open_run().await;
            let ledger = Ledger::default();
            let base = usize::try_from(round).unwrap() * WRITERS;
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| {
                    tokio::spawn(write(rack.dial(Role::Agent), base + writer, run.clone(), ledger.clone()))
                })
                .collect();
            tokio::time::sleep(Duration::from_micros(20_000 + dice.throw(400_000))).await;
            if let Err(why) = cut_the_power(disk.path()) {
                return say(&format!(
                    "skipped: the power of a file system cannot be cut here ({})",
                    why.trim()
                ));
            }
            // what is answered after the cut was not in time; the log cannot flush, so there is no such answer
            tokio::time::sleep(Duration::from_millis(20)).await;
            for writer in &writers {
                writer.abort();
            }
            let known = acknowledged.len();
            acknowledged
                .extend(ledger.lock().unwrap().iter().filter(|asked| asked.commit.is_some()).cloned());
            total.acknowledged += acknowledged.len() - known;
            drop(life);
            drop(rack);
            drop(disk);
            disk = scratch.mount().unwrap();
            let rack = Rack::new(&disk.path().join("home"));
            let life = rack.start();
            rack.is_whole();
            let verdict = rack.judge(&acknowledged);
            assert_eq!(
                (verdict.lost, verdict.doubled, verdict.misattributed),
                (0, 0, 0),
                "cut {round}\n{}",
                rack.log()
            );
            rack.files_hold(&acknowledged);
            life.end();
        }
        say(&format!("{cuts} cuts: {}", total.sentence(began.elapsed())));
    });
}
