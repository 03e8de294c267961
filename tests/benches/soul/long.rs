//! Long histories: the same questions at three lengths, and what a commit takes on the disk.
//!
//! The documents are changed in turn, one of them in every fifth commit, so that its first line is as old as the history
//! and its third as young as the last change. Each number is printed beside that of the shortest history: what is flat has
//! a ratio near one. A roll-back to the middle lists up to fifty commits that it undoes, of which the shortest history has
//! ten, so it is to be compared between the longer two.

use std::{
    fs,
    io::Write as _,
    os::unix::fs::MetadataExt as _,
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};

use ipc::contract::soul::{Reply, Request, Rollback};

use super::{House, PATIENCE, Series, WIDE, WRITES, command, git};

/// How many commits the histories have.
const LENGTHS: [usize; 3] = [100, 10_000, 100_000];
/// How often each question is asked.
const ASKED: usize = 100;
/// What is quick, while something is made that has to be waited for.
const QUICK: Duration = Duration::from_millis(2);
/// When the first commit of a history was made, in seconds; one follows each second.
const BEGINNING: i64 = 1_700_000_000;
/// How many writes there are between two looks at the room, until the upkeep has packed.
const WRITES_AT_ONCE: usize = 100;
/// How far back a roll-back goes, in changes of the document: as far as the shortest history allows.
const CHANGES_BACK: usize = 15;

/// The same questions at three lengths of history.
pub(super) async fn histories(folder: &Path) {
    let mut shortest = Vec::new();
    for length in LENGTHS {
        let home = folder.join(format!("long-{length}"));
        let house = House::born(&home).await;
        house.end();
        import(&home.join("soul"), length);
        let began = Instant::now();
        let house = House::start(&home).await;
        let start = began.elapsed();
        let began = Instant::now();
        house.write(0, 0).await;
        let first = began.elapsed();
        house.soul.ask(&Request::Status, PATIENCE).await.unwrap();
        // both are made once
        until_quick(&house, &history("values/v-3")).await;
        let indexed = began.elapsed();
        until_quick(&house, &why("identity", 1)).await;
        until_quick(&house, &why("values/v-49", 1)).await;
        println!(
            "{length} commits: first start {start:.0?}, first write {first:.1?}, index after {indexed:.1?}, lines after {:.1?}",
            began.elapsed()
        );
        let imported = Room::of(&home.join("soul/.git/objects"));
        let mut series = vec![written(&house).await];
        until_quick(&house, &why("values/v-0", 1)).await;
        series.extend(asked(&house, length).await);
        for (n, series) in series.iter().enumerate() {
            if shortest.len() == n {
                shortest.push(series.p(50));
            }
            series.print(shortest.get(n).copied().unwrap_or_default());
        }
        room(house, &home, length, imported).await;
    }
}

/// Asks until the answer is quick, or nobody can wait any longer.
async fn until_quick(house: &House, request: &Request) {
    let end = Instant::now() + PATIENCE;
    loop {
        let began = Instant::now();
        house.soul.ask(request, PATIENCE).await.unwrap();
        if began.elapsed() < QUICK || Instant::now() > end {
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

async fn written(house: &House) -> Series {
    let mut series = Series::new("  a write, acknowledged");
    for n in 1..WRITES {
        let began = Instant::now();
        house.write(0, n).await;
        series.add(began);
        if n % 3 == 0 {
            // somebody looks now and then
            house.soul.ask(&history("identity"), PATIENCE).await.unwrap();
        }
    }
    series
}

/// What looks back, each question a hundred times, and what a turn begins with.
async fn asked(house: &House, length: usize) -> Vec<Series> {
    let some_ago = match house.soul.ask(&history_of("identity", 40), PATIENCE).await.unwrap() {
        Reply::History { entries } => entries[CHANGES_BACK].commit.clone(),
        other => panic!("{other:?}"),
    };
    let middle = BEGINNING + i64::try_from(length / 2).unwrap();
    let middle = jiff::Timestamp::from_second(middle).unwrap();
    let back = |document: Option<&str>, commit: Option<&str>, to| {
        Request::Rollback(Rollback {
            document: document.map(str::to_owned),
            commit: commit.map(str::to_owned),
            to,
            ..Rollback::default()
        })
    };
    let diff = Request::Diff { document: "identity".into(), since: None, limit: 20 };
    let questions = [
        ("  history of a document that changes often, 20 entries", history("identity")),
        ("  history of a document that changes rarely", history("name")),
        ("  diff of a document, 20 changes", diff),
        ("  why: a line as old as the history, changed often since", why("identity", 1)),
        ("  why: the youngest line of that document", why("identity", 3)),
        ("  why: a line of a document that changes rarely", why("name", 1)),
        ("  why: a line of the document that was just written", why("values/v-0", 1)),
        ("  roll-back, preview: a document, 15 changes ago", back(Some("identity"), Some(&some_ago), None)),
        ("  roll-back, preview: a document, to the middle", back(Some("identity"), None, Some(middle))),
        ("  roll-back, preview: one commit undone", back(None, Some(&some_ago), None)),
        ("  roll-back, preview: everything, to the middle", back(None, None, Some(middle))),
        ("  the snapshot a prompt is built from", Request::Snapshot),
        ("  status", Request::Status),
    ];
    let mut all = Vec::new();
    for (name, request) in questions {
        let mut series = Series::new(name);
        for _ in 0..ASKED {
            let began = Instant::now();
            house.soul.ask(&request, PATIENCE).await.unwrap();
            series.add(began);
        }
        all.push(series);
    }
    all
}

fn history(document: &str) -> Request {
    history_of(document, 20)
}

fn history_of(document: &str, limit: u32) -> Request {
    Request::History { document: Some(document.to_owned()), limit, since: None }
}

fn why(document: &str, line: u32) -> Request {
    Request::Why { document: document.to_owned(), line }
}

/// A history as years would leave it: the documents changed in turn, with the grammar of our messages.
fn import(root: &Path, length: usize) {
    let head = git(root, &["rev-parse", "HEAD"]);
    let mut stream = Vec::new();
    for n in 0..length {
        let (path, op) = match n % 5 {
            0 => ("identity.md".to_owned(), "patch"),
            1 => (
                format!(
                    "journal/{:04}-{:02}-{:02}.md",
                    2020 + n / 100_000,
                    n / 2500 % 12 + 1,
                    n / 100 % 28 + 1
                ),
                "journal",
            ),
            _ => (format!("values/v-{}.md", n % 50), "value"),
        };
        let message = format!("{op}: {path} via soul_patch\n\nOrigin: chat\nRequest-Id: import-{n}\n");
        let text = format!(
            "# Title\n\nline {n}\n{}",
            "The light turns, and the fog comes in from the sea.\n".repeat(12)
        );
        write!(
            stream,
            "commit refs/heads/main\nmark :{}\ncommitter Lisa <lisa@self> {} +0000\ndata {}\n{message}",
            n + 1,
            BEGINNING + i64::try_from(n).unwrap(),
            message.len()
        )
        .unwrap();
        if n == 0 {
            writeln!(stream, "from {}", head.trim()).unwrap();
        }
        write!(stream, "M 100644 inline {path}\ndata {}\n{text}\n", text.len()).unwrap();
    }
    let mut child = command("git")
        .arg("-C")
        .arg(root)
        .args(["fast-import", "--quiet"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&stream).unwrap();
    assert!(child.wait().unwrap().success());
    git(root, &["reset", "-q", "--hard"]);
    // what the soul remembers of her own commits would make strangers of these, each document a notice
    fs::remove_dir_all(root.join(".git/lisa")).unwrap();
}

/// What a commit takes, as it was written and after the upkeep, which packs what is loose once there is enough of it.
async fn room(house: House, home: &Path, length: usize, imported: Room) {
    let objects = home.join("soul/.git/objects");
    let (mut writes, mut written) = (WRITES, Room::of(&objects));
    let end = Instant::now() + PATIENCE;
    let packed = loop {
        let most = written.files;
        for _ in 0..WRITES_AT_ONCE {
            house.write(0, writes).await;
            writes += 1;
        }
        let full = Room::of(&objects);
        // the upkeep looks when it is quiet, and then takes a moment
        let still = settled(&objects).await;
        if still.files < most || Instant::now() > end {
            break still;
        }
        written = full;
    };
    house.end();
    let began = Instant::now();
    House::start(home).await.end();
    println!("  {:<w$} {:>38.0?}", "a later start, and end", began.elapsed(), w = WIDE - 2);
    let all = Room::of(&home.join("soul/.git"));
    let hers = |room: &Room| room.bytes.saturating_sub(imported.bytes) / writes as u64;
    let says = |what: &str, bytes: u64, files: usize| {
        println!("  {what:<w$} {bytes:>31} bytes a commit, {files} files", w = WIDE - 2);
    };
    says("room of what she wrote, as written", hers(&written), written.files);
    says("room of what she wrote, after the upkeep", hers(&packed), packed.files);
    says("room of the whole repository with log and index", all.bytes / (length + writes) as u64, all.files);
}

/// What is in a folder once nothing has changed there for a moment.
async fn settled(folder: &Path) -> Room {
    let mut room = Room::of(folder);
    loop {
        tokio::time::sleep(Duration::from_millis(600)).await;
        let now = Room::of(folder);
        if now.files == room.files {
            return now;
        }
        room = now;
    }
}

/// What lies below a folder.
struct Room {
    /// The bytes that the disk gives it, which are whole blocks.
    bytes: u64,
    files: usize,
}

impl Room {
    fn of(folder: &Path) -> Self {
        let mut room = Self { bytes: 0, files: 0 };
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            // a file may go while it is looked at
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() {
                let inner = Self::of(&entry.path());
                (room.bytes, room.files) = (room.bytes + inner.bytes, room.files + inner.files);
            } else {
                (room.bytes, room.files) = (room.bytes + metadata.blocks() * 512, room.files + 1);
            }
        }
        room
    }
}
