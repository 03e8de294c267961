//! `kill -9` of the agent at each line that a turn writes down: the next life ends the turn, does nothing twice, and the
//! session goes on.
//!
//! ```text
//!  what is said ─▶ prompt ─▶ calls: two pages side by side, a journal entry, a piece ─▶ results ─▶ answer ─▶ end
//!       ✕             ✕         ✕                    ✕ (seeded pauses)                    ✕          ✕       ✕
//! ```
//!
//! The points are not listed here: one turn is left alone, and each line it wrote is one. `LISA_TORTURE=<kills>` tries each
//! with so many pauses, `LISA_TORTURE_SEED` repeats them.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use serde_json::{Value, json};

use crate::stage::{Answer, Chat, Model, World, kill_outright, say};

/// How many deaths one house lives through here: the pause before the next life doubles with each.
const DEATHS_A_HOUSE: u64 = 4;
/// How long a model thinks about anything, and a page takes: a death is quicker than that.
const PACE: Duration = Duration::from_millis(25);
/// The longest pause between a line and the death.
const PAUSE_MAX_MS: u64 = 60;

/// Pages that take their time, on loopback.
fn pages() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut room = [0; 4096];
                let _ = stream.read(&mut room);
                std::thread::park_timeout(PACE);
                let body = "<p>灯 A page about lamps.</p>";
                // whoever asked may be dead
                let _ = write!(
                    stream,
                    "HTTP/1.1 200 OK\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                    body.len()
                );
            });
        }
    });
    address
}

/// What is said in the last place, and whether tools have answered since.
fn last_said(request: &Value) -> (String, bool) {
    let messages = request["messages"].as_array().unwrap();
    let at = messages.iter().rposition(|message| message["role"] == "user").unwrap();
    let answered = messages.iter().skip(at).any(|message| message["role"] == "tool");
    (messages[at]["content"].to_string(), answered)
}

fn house() -> (World, Model) {
    let pages = pages();
    let model = Model::start(move |request, _| {
        std::thread::park_timeout(PACE);
        let (said, answered) = last_said(request);
        let entry = said.split("write ").nth(1).and_then(|rest| rest.split('.').next()).map(str::to_owned);
        match entry {
            _ if said.contains("[task]") => Answer::Says("three lamps".into()),
            Some(entry) if !answered => Answer::Calls(vec![
                ("fetch", json!({"url": format!("http://{pages}/one")})),
                ("fetch", json!({"url": format!("http://{pages}/two")})),
                ("soul_journal", json!({"entry": entry})),
                ("task", json!({"prompt": "count the lamps", "tools": []})),
            ]),
            Some(_) => Answer::Says("written".into()),
            None => Answer::Says("yes".into()),
        }
    });
    let world = World::configured(&format!("{}\n[tools]\nprivate_hosts = [\"{pages}\"]\n", model.config()));
    world.up_and_born();
    (world, model)
}

/// Kills the agent when the file has so many lines, after a pause. What comes back is whether it came to that.
struct Killer {
    over: Arc<AtomicBool>,
    thread: JoinHandle<bool>,
}

impl Killer {
    fn lie_in_wait(agent: u32, file: PathBuf, lines: usize, pause: Duration) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let is_over = over.clone();
        let thread = std::thread::spawn(move || {
            while count(&file) < lines {
                if is_over.load(Ordering::Relaxed) {
                    return false;
                }
                std::thread::park_timeout(Duration::from_micros(200));
            }
            std::thread::park_timeout(pause);
            kill_outright(agent);
            true
        });
        Self { over, thread }
    }

    fn come_back(self) -> bool {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

fn count(file: &Path) -> usize {
    std::fs::read(file).map_or(0, |bytes| bytes.split(|byte| *byte == b'\n').count() - 1)
}

fn file_of(world: &World, session: &str) -> PathBuf {
    world.home().join(format!("sessions/{session}.jsonl"))
}

fn lines(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn blocks<'a>(lines: &'a [Value], kind: &str) -> Vec<(usize, &'a Value)> {
    let all = lines.iter().enumerate().flat_map(|(at, line)| {
        line["message"]["content"].as_array().into_iter().flatten().map(move |block| (at, block))
    });
    all.filter(|(_, block)| block["type"] == kind).collect()
}

/// What must be so of a turn that ended, wherever a life of it was cut: everything once, each call with one result behind it.
fn is_whole(world: &World, session: &str, entry: &str, at: &str) {
    let lines = lines(&file_of(world, session));
    let said = |text: &str| lines.iter().filter(|line| line["message"].to_string().contains(text)).count();
    assert_eq!(said(&format!("write {entry}.")), 1, "{at}: what was said is written once: {lines:#?}");
    let (calls, results) = (blocks(&lines, "tool_use"), blocks(&lines, "tool_result"));
    let ids = |blocks: &[(usize, &Value)], id: &str| -> Vec<String> {
        blocks.iter().map(|(_, block)| block[id].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(calls.len(), 4, "{at}: {lines:#?}");
    assert_eq!(ids(&calls, "id"), ids(&results, "tool_use_id"), "{at}: {lines:#?}");
    assert_eq!(results[0].0, results[3].0, "{at}: all results are in one message: {lines:#?}");
    // what was cut is said to have been; what only looks is looked at again, what the soul did is answered from its ledger
    let shown = |at: usize| results[at].1["content"].to_string();
    assert!(shown(0).contains("lamps") && shown(1).contains("lamps"), "{at}: {lines:#?}");
    assert_ne!(results[2].1["is_error"], true, "{at}: {lines:#?}");
    let piece = shown(3);
    assert!(piece.contains("three lamps") || piece.contains("interrupted by a restart"), "{at}: {piece}");
    let ends: Vec<_> = lines.iter().filter(|line| line["type"] == "turn_end").collect();
    assert_eq!(ends.len(), 1, "{at}: {lines:#?}");
    assert_eq!(ends[0]["stop_reason"], "end_turn", "{at}");
    let pieces = world.sessions().into_iter().filter(|piece| piece[0]["parent"] == session).count();
    assert!(pieces <= 1, "{at}: a piece is not begun twice: {pieces}");
    let journal = world.lisa(&["soul", "show", "journal"]).ok();
    assert_eq!(journal.matches(entry).count(), 1, "{at}: {journal}");
    let commits = world.git(&["log", "--format=%H", &format!("-S{entry}")]);
    assert_eq!(commits.lines().count(), 1, "{at}: one commit: {commits}");
}

fn turn(world: &World, chat: &mut Chat, entry: &str, kill: Option<(usize, Duration)>) -> (String, bool) {
    let session = chat.new_session();
    let at = format!("{entry}, {kill:?}");
    let killer = kill.map(|(lines, pause)| {
        Killer::lie_in_wait(world.pid("agent"), file_of(world, &session), lines, pause)
    });
    let reply = chat.say(&session, &format!("write {entry}."));
    assert_eq!(reply.outcome.as_ref().unwrap()["stopReason"], "end_turn", "{at}: {reply:?}");
    assert!(reply.text.ends_with("written"), "{at}: {reply:?}");
    let has_died = killer.is_some_and(Killer::come_back);
    is_whole(world, &session, entry, &at);
    (session, has_died)
}

/// Tries those points, each with so many pauses, that are the `of`-th part of all.
fn campaign(part: usize, of: usize) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seed = number("LISA_TORTURE_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    let pauses = number("LISA_TORTURE").unwrap_or(2);
    let mut dice = seed;
    let mut throw = move |below: u64| {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (dice >> 33) % below
    };
    let (mut world, mut _model) = house();
    let mut chat = world.chat();
    // one turn is left alone: its lines are the points
    let (session, _) = turn(&world, &mut chat, "entry alone", None);
    let points = count(&file_of(&world, &session));
    assert!(points >= 6, "a turn is written down as it goes: {points} lines");
    let (mut deaths, mut here) = (0, 0);
    for point in (1..=points).filter(|point| point % of == part) {
        for n in 0..pauses {
            if here == DEATHS_A_HOUSE {
                world.soul_is_whole();
                (world, _model) = house();
                chat = world.chat();
                here = 0;
            }
            // the first death is as quick as it can be
            let pause = if n == 0 { 0 } else { throw(PAUSE_MAX_MS) };
            let before = world.pid("agent");
            let kill = Some((point, Duration::from_millis(pause)));
            let (session, killed) = turn(&world, &mut chat, &format!("entry {point}-{n}"), kill);
            if killed {
                deaths += 1;
                here += 1;
                world.back("agent", before);
            }
            let next = chat.say(&session, "still there?");
            assert_eq!(next.text, "yes", "line {point}, {pause} ms: the session goes on: {next:?}");
        }
    }
    world.soul_is_whole();
    say(&format!("persistence: seed {seed}, {points} lines a turn, {deaths} deaths, nothing twice"));
    assert!(deaths > 0, "nobody died");
}

#[test]
fn c7_01_killed_at_an_odd_line_of_a_turn_nothing_is_replayed_and_nothing_is_bricked() {
    campaign(1, 2);
}

#[test]
fn c7_01_killed_at_an_even_line_of_a_turn_nothing_is_replayed_and_nothing_is_bricked() {
    campaign(0, 2);
}
