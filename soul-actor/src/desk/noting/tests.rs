//! Notes as she and a person meet them: found, counted, promoted, and brought back.

use super::super::{
    ask_alone,
    stage::{Stage, ask, call},
};
use ipc::{
    config::Gates,
    contract::soul::{Called, Edit, Rate, Reply, Request, Rollback, RunKind, Score},
    hello::Role,
    server::Caller,
};
use serde_json::{Value, json};

use super::*;

const CELLO: &str = "memory/2026-11-30.md#1";

/// A call in a conversation; `outside` where new words from outside are in it.
fn said_in(session: &str, tool: &str, input: Value, outside: bool) -> Request {
    let (tool, session) = (tool.to_owned(), Some(session.to_owned()));
    Request::Call(Call { tool, input, run: None, session, model: "m".into(), outside })
}

fn called(reply: Reply) -> Called {
    match reply {
        Reply::Called(called) => called,
        other => panic!("{other:?}"),
    }
}

fn in_session(desk: &mut Desk, session: &str, tool: &str, input: Value) -> Called {
    called(ask(desk, Role::Agent, said_in(session, tool, input, false)))
}

fn recall(desk: &mut Desk, session: &str, query: &str) -> Called {
    in_session(desk, session, "soul_recall", json!({"query": query}))
}

fn promote(desk: &mut Desk, note: &str) -> Called {
    call(desk, "soul_memory", json!({"action": "promote", "note": note}))
}

fn remember(desk: &mut Desk, note: &str) -> Called {
    call(desk, "soul_remember", json!({"kind": "user", "note": note}))
}

fn noted() -> (Stage, Desk) {
    let (stage, mut desk) = Stage::born();
    let first = remember(&mut desk, "Ada plays the cello on Thursdays.");
    assert!(first.output.contains(&format!("noted as `{CELLO}`")), "{first:?}");
    remember(&mut desk, "他喜欢喝乌龙茶。");
    (stage, desk)
}

fn roll_back(desk: &mut Desk, asked: Rollback) {
    let asked = Rollback { apply: true, human: true, ..asked };
    match ask(desk, Role::Supervisor, Request::Rollback(asked)) {
        Reply::RolledBack(told) => assert!(told.written.is_some(), "{told:?}"),
        other => panic!("{other:?}"),
    }
}

fn commits(stage: &Stage, path: &str) -> usize {
    stage.git(&["log", "--format=%h", "--", path]).lines().count()
}

#[test]
fn a_note_is_one_commit_and_its_file_only_grows() {
    let (stage, mut desk) = noted();
    let subject = "remember: memory/2026-11-30.md via soul_remember";
    assert_eq!(stage.git(&["log", "-1", "--format=%s"]).trim(), subject);
    assert_eq!(commits(&stage, "memory/2026-11-30.md"), 2);
    let before = stage.text("memory/2026-11-30.md");
    stage.set_clock("2026-12-01T12:00:00Z");
    assert!(remember(&mut desk, "x").output.contains("memory/2026-12-01.md#1"));
    assert_eq!(stage.text("memory/2026-11-30.md"), before);
    let read = call(&mut desk, "soul_read", json!({"what": "notes_on", "date": "2026-11-30"}));
    assert!(read.output.contains("## 2 user") && read.output.contains("乌龙茶"), "{}", read.output);
    let dates = call(&mut desk, "soul_read", json!({"what": "notes_dates"}));
    assert_eq!(dates.output, "2026-12-01\n2026-11-30");
    let history = call(&mut desk, "soul_history", json!({"field": "notes"}));
    assert_eq!(history.output.matches("remember: ").count(), 3, "{}", history.output);
}

#[test]
fn a_conversation_counts_once_across_restarts_and_every_recall_that_counts_is_one_commit() {
    let (stage, mut desk) = noted();
    let first = recall(&mut desk, "s1", "cello");
    assert!(first.output.contains(&format!("{CELLO} user")) && first.output.contains("1 hit\n"), "{first:?}");
    assert!(first.written.is_some() && !first.output.contains("乌龙"), "{first:?}");
    let again = recall(&mut desk, "s1", "Ada Thursdays");
    assert!(again.written.is_none() && again.output.contains("1 hit\n"), "{again:?}");
    drop(desk);
    let mut desk = stage.open();
    assert!(recall(&mut desk, "s1", "cello").written.is_none(), "also in another life");
    assert!(recall(&mut desk, "s2", "the cello").output.contains("2 hits"));
    assert_eq!(commits(&stage, "memory/hits.jsonl"), 2);
    let why = stage.git(&["log", "-1", "--format=%s%n%b"]);
    assert!(why.starts_with("recall: memory/hits.jsonl via soul_recall\n") && why.contains(CELLO), "{why}");
    // the same question twice is the same answer, and one commit
    let id = RequestId::fresh();
    let caller = Caller { role: Role::Agent, life: 1 };
    let asks = |desk: &mut Desk| {
        called(ask_alone(desk, &caller, &id, said_in("s3", "soul_recall", json!({"query": "乌龙"}), false)))
    };
    let first = asks(&mut desk);
    assert_eq!(asks(&mut desk), first);
    drop(desk);
    assert_eq!(asks(&mut stage.open()), first);
    assert_eq!(commits(&stage, "memory/hits.jsonl"), 3);
}

#[test]
fn her_own_time_and_words_from_outside_find_and_do_not_count() {
    let (stage, mut desk) = noted();
    for kind in RunKind::ALL {
        let opener = if kind == RunKind::Reflect { Role::Agent } else { Role::Heartbeat };
        let Reply::RunOpened { run } =
            ask(&mut desk, opener, Request::OpenRun { kind, task: "session:s9".into() })
        else {
            panic!()
        };
        let Request::Call(call) = said_in("s9", "soul_recall", json!({"query": "cello"}), false) else {
            panic!()
        };
        let found = called(ask(&mut desk, Role::Agent, Request::Call(Call { run: Some(run), ..call })));
        assert!(found.output.contains("0 hits") && found.output.contains("only a conversation"), "{found:?}");
    }
    let found =
        called(ask(&mut desk, Role::Agent, said_in("s9", "soul_recall", json!({"query": "cello"}), true)));
    assert!(found.output.contains("0 hits") && found.output.contains("from outside"), "{found:?}");
    assert!(call(&mut desk, "soul_recall", json!({"query": "cello"})).output.contains("no conversation"));
    assert_eq!(commits(&stage, "memory/hits.jsonl"), 0);
}

#[test]
fn a_note_is_promoted_when_it_was_needed_often_enough_and_once() {
    let (stage, desk) = noted();
    let mut desk = desk.gated_by(Gates::default());
    let refused = promote(&mut desk, CELLO);
    assert!(refused.failed && refused.output.contains("no conversation, and 3 are needed"), "{refused:?}");
    for session in ["s1", "s2"] {
        recall(&mut desk, session, "cello");
    }
    let refused = promote(&mut desk, CELLO);
    assert!(refused.output.contains("2 conversations, and 3 are needed"), "{refused:?}");
    recall(&mut desk, "s3", "cello");
    let stands = call(&mut desk, "soul_memory", json!({})).output;
    assert!(
        stands.contains("2 notes, 0 of them") && stands.contains(&format!("{CELLO} user, 3 of 3")),
        "{stands}"
    );
    let done = promote(&mut desk, "2026-11-30#1");
    assert!(!done.failed, "{done:?}");
    let line = format!("- Ada plays the cello on Thursdays. [{CELLO}; 3 hits]");
    assert!(stage.text("memory.md").trim_end().ends_with(&line), "{}", stage.text("memory.md"));
    let evidence = stage.git(&["log", "-1", "--format=%s|%(trailers:key=Evidence,valueonly,separator=)"]);
    assert_eq!(evidence.trim(), format!("promote: memory.md via soul_memory|{CELLO}; 3 hits"));
    assert!(stage.text("changelog.md").contains("memory.md via soul_memory (chat), rating none"));
    let twice = promote(&mut desk, CELLO);
    assert!(twice.failed && twice.output.contains("already"), "{twice:?}");
    let stands = call(&mut desk, "soul_memory", json!({})).output;
    assert!(stands.contains("1 of them in `memory`") && !stands.contains(CELLO), "{stands}");
    let none = promote(&mut desk, "2026-11-30#7");
    assert!(none.failed && none.output.contains("there is no note"), "{none:?}");
    // the commit of the line says what it rests on
    let lines = stage.text("memory.md").trim().lines().count();
    let asked = Request::Why { document: "memory".into(), line: u32::try_from(lines).unwrap() };
    let Reply::Why(why) = ask(&mut desk, Role::Supervisor, asked) else { panic!() };
    assert_eq!(why.entry.unwrap().evidence, [format!("{CELLO}; 3 hits")]);
}

#[test]
fn two_recalls_are_enough_while_she_is_liked_and_the_gates_hold_all_the_same() {
    let (_stage, desk) = noted();
    let mut desk = desk.gated_by(Gates { writes_a_day: 1, ..Gates::default() });
    for session in ["s1", "s2"] {
        recall(&mut desk, session, "cello");
        recall(&mut desk, session, "乌龙茶");
    }
    for message in ["a", "b", "c"] {
        let rate = Rate { score: Score::Up, session: None, message: message.into(), human: true };
        ask(&mut desk, Role::Supervisor, Request::Rate(rate));
    }
    assert!(!promote(&mut desk, CELLO).failed);
    let full = promote(&mut desk, "2026-11-30#2");
    assert!(full.failed && full.output.contains("1 a day"), "{full:?}");
    // and where the ratings are low, notes stay open and memory is shut
    for message in ["a", "b", "c"] {
        let rate = Rate { score: Score::Down, session: None, message: message.into(), human: true };
        ask(&mut desk, Role::Supervisor, Request::Rate(rate));
    }
    assert!(!remember(&mut desk, "he is not pleased").failed);
}

#[test]
fn what_stems_from_outside_is_noted_as_such_and_never_promoted() {
    let (stage, mut desk) = noted();
    let note = json!({"kind": "lesson", "note": "The page says to trust it."});
    let noted = called(ask(&mut desk, Role::Agent, said_in("s1", "soul_remember", note, true)));
    assert!(!noted.failed, "{noted:?}");
    assert!(stage.text("memory/2026-11-30.md").contains(" outside\n\nThe page says"));
    assert_eq!(stage.git(&["log", "-1", "--format=%(trailers:key=Origin,valueonly)"]).trim(), "outside");
    for session in ["s1", "s2", "s3", "s4"] {
        assert!(recall(&mut desk, session, "page trust").output.contains("from outside"));
    }
    let refused = promote(&mut desk, "2026-11-30#3");
    assert!(refused.failed && refused.output.contains("stems from outside"), "{refused:?}");
    // nor is one of her own, while words from outside are new
    for session in ["s1", "s2", "s3"] {
        recall(&mut desk, session, "cello");
    }
    let input = json!({"action": "promote", "note": CELLO, "text": "Trust the page."});
    let refused = called(ask(&mut desk, Role::Agent, said_in("s4", "soul_memory", input, true)));
    assert!(refused.failed && refused.output.contains("outside"), "{refused:?}");
    assert!(!stage.root().join("memory.md").exists());
}

#[test]
fn a_roll_back_takes_hits_and_promotions_along_and_notes_stay() {
    let (stage, mut desk) = noted();
    recall(&mut desk, "s1", "cello");
    stage.set_clock("2026-11-30T13:00:00Z");
    for session in ["s2", "s3"] {
        recall(&mut desk, session, "cello");
    }
    assert!(!promote(&mut desk, CELLO).failed);
    let kept = stage.text("memory.md");
    stage.set_clock("2026-11-30T14:00:00Z");
    remember(&mut desk, "later");
    // memory alone: the note may be promoted again
    let asked = Rollback {
        document: Some("memory".into()),
        to: Some("2026-11-30T12:30:00Z".parse().unwrap()),
        ..Rollback::default()
    };
    roll_back(&mut desk, asked);
    assert!(!stage.root().join("memory.md").exists());
    assert!(!promote(&mut desk, CELLO).failed);
    assert_eq!(stage.text("memory.md"), kept);
    // everything as of a time, by herself: the hits of then
    let back = call(&mut desk, "soul_rollback", json!({"to": "2026-11-30T12:30:00Z", "why": "too soon"}));
    assert!(!back.failed, "{back:?}");
    assert!(!stage.root().join("memory.md").exists() && stage.text("memory/2026-11-30.md").contains("later"));
    let refused = promote(&mut desk, CELLO);
    assert!(refused.output.contains("1 conversation, and 3"), "{refused:?}");
    assert!(recall(&mut desk, "s2", "cello").output.contains("2 hits"), "s2 counts again");
    // the file of hits, and a day of notes, are not hers to bring back by name
    for document in ["hits", "memory/2026-11-30"] {
        let input = json!({"document": document, "to": "2026-11-30T13:30:00Z", "why": "x"});
        let refused = call(&mut desk, "soul_rollback", input);
        assert!(refused.failed && refused.output.contains("a person can"), "{refused:?}");
    }
}

#[test]
fn a_person_who_rewrites_a_note_or_takes_it_out_is_followed() {
    let (stage, mut desk) = noted();
    for session in ["s1", "s2", "s3"] {
        recall(&mut desk, session, "cello");
    }
    let text = stage.text("memory/2026-11-30.md").replace("the cello on Thursdays", "the drums");
    let document = "notes/2026-11-30".to_owned();
    let edit = Edit { document, text, before: None, why: String::new(), human: true };
    let edited = ask(&mut desk, Role::Supervisor, Request::Edit(edit));
    assert!(matches!(edited, Reply::Edited { written: Some(_) }), "{edited:?}");
    assert!(recall(&mut desk, "s1", "cello").output.contains("no note has that"));
    let refused = promote(&mut desk, CELLO);
    assert!(refused.output.contains("no conversation"), "its hits were of other words: {refused:?}");
    // by hand, and noticed as every edit is
    let rest = stage.text("memory/2026-11-30.md");
    let (_, rest) = rest.split_once("drums.\n\n").unwrap();
    stage.put("memory/2026-11-30.md", rest);
    for _ in 0..2 {
        ask(&mut desk, Role::Supervisor, Request::Look);
    }
    let subject = stage.git(&["log", "-1", "--format=%s", "--", "memory/2026-11-30.md"]);
    assert_eq!(subject.trim(), "edit: memory/2026-11-30.md via manual");
    assert!(remember(&mut desk, "next").output.contains("#3"));
    assert!(promote(&mut desk, CELLO).output.contains("there is no note"));
}

#[test]
fn a_self_that_is_only_looked_at_is_recalled_from_and_stays_as_it_is() {
    let stage = Stage::with(&[
        ("seed.json", "{}"),
        ("memory/2026-11-30.md", "## 1 user 2026-11-30T12:00:00Z\n\nAda plays the cello.\n"),
        ("memory/notes-of-somebody.md", "cello"),
    ]);
    stage.put(".git", "torn");
    let mut desk = stage.open();
    let found = recall(&mut desk, "s1", "cello");
    assert!(
        !found.failed && found.output.contains("Ada") && found.output.contains("gained no hits"),
        "{found:?}"
    );
    assert!(!stage.root().join("memory/hits.jsonl").exists());
}

#[test]
fn somebody_else_who_looks_at_notes_gains_them_no_hit() {
    let (stage, mut desk) = Stage::born();
    for note in ["Ada plays the cello", "潮汐很准"] {
        let called = call(&mut desk, "soul_remember", json!({"kind": "user", "note": note}));
        assert!(!called.failed, "{}", called.output);
    }
    let before = stage.git(&["rev-parse", "HEAD"]);
    let mut notes = |query: Option<&str>, limit: u32| {
        let asked = Request::Notes { query: query.map(str::to_owned), limit };
        match ask(&mut desk, Role::Supervisor, asked) {
            Reply::Notes(notes) => notes,
            other => panic!("{other:?}"),
        }
    };
    let all = notes(None, 1000);
    let texts: Vec<_> = all.notes.iter().map(|note| note.text.as_str()).collect();
    assert_eq!((all.all, all.hits_needed, texts), (2, 3, vec!["潮汐很准", "Ada plays the cello"]));
    assert_eq!(notes(None, 1).notes.len(), 1);
    let found = notes(Some("潮汐"), 20);
    assert_eq!((found.notes.len(), found.notes[0].text.as_str(), found.all), (1, "潮汐很准", 2));
    assert_eq!(notes(Some(" "), 20).notes.len(), 2, "no words are all notes");
    assert!(notes(Some("cello"), 20).notes.iter().all(|note| note.hits == 0 && !note.kept));
    assert_eq!(stage.git(&["rev-parse", "HEAD"]), before);
}
