//! Who may what, as a table: every grant, every tool, every document, asked of the desk itself.

use ipc::{
    contract::soul::{Call, Reply, Request, RunKind, RunToken},
    hello::Role,
    id::RequestId,
    server::Caller,
};
use serde_json::{Value, json};

use super::{
    Desk, ask_alone,
    stage::{Stage, call},
};
use crate::tools::Tool;

/// The columns.
const GRANTS: [(&str, Role, Option<RunKind>); 8] = [
    ("chat", Role::Agent, None),
    ("heartbeat", Role::Agent, Some(RunKind::Heartbeat)),
    ("examen", Role::Agent, Some(RunKind::Examen)),
    ("dream", Role::Agent, Some(RunKind::Dream)),
    ("reflect", Role::Agent, Some(RunKind::Reflect)),
    ("time", Role::Heartbeat, None),
    ("watch", Role::Supervisor, None),
    ("soul", Role::Soul, None),
];

fn ask(desk: &mut Desk, role: Role, request: Request) -> Reply {
    ask_alone(desk, &Caller { role, life: 1 }, &RequestId::fresh(), request)
}

fn token(desk: &mut Desk, kind: RunKind, row: usize) -> RunToken {
    let opener = if kind == RunKind::Reflect { Role::Agent } else { Role::Heartbeat };
    match ask(desk, opener, Request::OpenRun { kind, task: format!("session:s{row}") }) {
        Reply::RunOpened { run } => run,
        other => panic!("{other:?}"),
    }
}

/// A self with one of everything, eleven entries about the progress of its desire, and a note that was recalled in three
/// conversations.
fn lived_in() -> (Stage, Desk) {
    let (stage, mut desk) = Stage::born();
    let mut write = |tool: &str, input: Value| {
        let called = call(&mut desk, tool, input);
        assert!(!called.failed, "{tool}: {}", called.output);
    };
    write("soul_patch", json!({"field": "value", "slug": "v", "title": "V", "body": "b"}));
    write("soul_patch", json!({"field": "opinion", "slug": "o", "stance": "s"}));
    write("soul_patch", json!({"field": "desire", "slug": "d", "what": "w", "why": "y"}));
    for n in 0..11 {
        write("desire_progress_log", json!({"slug": "d", "entry": format!("entry {n}")}));
    }
    write("soul_remember", json!({"kind": "user", "note": "Ada plays the cello"}));
    for session in ["s1", "s2", "s3"] {
        let call = Call {
            tool: "soul_recall".into(),
            input: json!({"query": "cello"}),
            run: None,
            session: Some(session.into()),
            model: "m".into(),
            outside: false,
        };
        assert!(
            matches!(ask(&mut desk, Role::Agent, Request::Call(call)), Reply::Called(called) if !called.failed)
        );
    }
    (stage, desk)
}

/// What every row asks for, and whom it is granted, in the order of [`GRANTS`].
fn rows() -> Vec<(&'static str, Value, &'static str)> {
    let mut rows = vec![
        ("soul_read", json!({"what": "summary"}), "++++++++"),
        ("soul_read", json!({"what": "emotions"}), "++++++++"),
        ("soul_history", json!({"field": "all"}), "++++++++"),
        ("soul_diff", json!({"field": "identity"}), "++++++++"),
        ("soul_status", json!({}), "++++++++"),
        ("soul_ratings", json!({}), "++++++++"),
        ("soul_read", json!({"what": "dreams"}), "++++++++"),
        ("soul_candidates", json!({}), "++++++++"),
        ("soul_dream", json!({}), "++++++++"),
        ("soul_dream", json!({"apply": true}), "+--+----"),
        ("soul_read", json!({"what": "notes_dates"}), "++++++++"),
        ("soul_recall", json!({"query": "cello"}), "++++++++"),
        ("soul_memory", json!({}), "++++++++"),
        ("soul_memory", json!({"action": "promote", "note": "2026-11-30#1"}), "++-++---"),
        ("soul_remember", json!({"kind": "talk", "note": "x"}), "++--+---"),
        ("soul_journal", json!({"entry": "x"}), "+++++---"),
        ("desire_progress_log", json!({"slug": "d", "entry": "x"}), "+++-+---"),
        ("soul_patch", json!({"field": "desire", "slug": "new", "what": "w", "why": "y"}), "+++-+---"),
        ("soul_patch", json!({"field": "desire", "slug": "d", "what": "another"}), "++--+---"),
        ("desire_revise", json!({"slug": "d", "intensity": 0.9}), "++--+---"),
        ("desire_close", json!({"slug": "d", "outcome": "fulfilled", "reflection": "done"}), "++--+---"),
        ("desire_condense", json!({"slug": "d", "summary": "ten times x"}), "----+---"),
        ("soul_feel", json!({"emotion": "awe", "delta": 0.1, "trigger": "I saw the sea"}), "++--+---"),
        ("soul_patch", json!({"field": "value", "slug": "v", "body": "another"}), "++--+---"),
        ("soul_patch", json!({"field": "opinion", "slug": "o", "confidence": 0.9}), "++--+---"),
        (
            "soul_patch",
            json!({"field": "relationship", "slug": "ada", "title": "Ada", "body": "kind"}),
            "++--+---",
        ),
        (
            "soul_rollback",
            json!({"document": "values/v", "to": "2026-11-30T13:00:00Z", "why": "x"}),
            "++------",
        ),
        (
            "soul_rollback",
            json!({"document": "identity", "to": "2026-11-30T13:00:00Z", "why": "x"}),
            "++------",
        ),
    ];
    for (text, granted) in [
        ("name", "++--+---"),
        ("identity", "++--+---"),
        ("purpose", "++--+---"),
        ("constitution", "++--+---"),
        ("user", "++--+---"),
        ("soul", "++-++---"),
        ("memory", "++-++---"),
        ("rules", "--------"),
    ] {
        let upper = text.to_uppercase();
        rows.push(("soul_patch", json!({"field": text, "content": "words"}), granted));
        rows.push(("soul_update", json!({"document": text, "content": "other words", "why": "x"}), granted));
        if text != "name" {
            rows.push(("soul_update", json!({"document": upper, "append": "and more", "why": "x"}), granted));
        }
    }
    rows
}

#[test]
fn grant_by_document_by_tool_whatever_the_model_calls() {
    let rows = rows();
    for tool in Tool::ALL.map(Tool::name) {
        // objections have their own tests, for an objection wants a turn
        let asked = rows.iter().any(|(row, ..)| *row == tool) || tool == "soul_object";
        assert!(asked, "`{tool}` has no row");
    }
    let (stage, desk) = lived_in();
    drop(desk);
    for (column, (grant, role, kind)) in GRANTS.into_iter().enumerate() {
        let (stage, mut desk) = stage.copied();
        stage.set_clock("2026-12-02T12:00:00Z");
        for (row, (tool, input, granted)) in rows.iter().enumerate() {
            // each of another session: how many edits one may have is tested where that rule is
            let run = kind.map(|kind| token(&mut desk, kind, row));
            let (session, model) = (None, "m".to_owned());
            let tool = *tool;
            let call =
                Call { tool: tool.to_owned(), input: input.clone(), run, session, model, outside: false };
            let (done, said) = match ask(&mut desk, role, Request::Call(call)) {
                Reply::Called(called) => (!called.failed, called.output),
                Reply::Refused { reason } => (false, reason),
                other => panic!("{other:?}"),
            };
            assert_eq!(done, granted.as_bytes()[column] == b'+', "{grant}: {tool} {input}: {said}");
            assert!(
                done || said.chars().count() > 20,
                "{grant}: {tool}: the refusal says which rule: {said}"
            );
        }
    }
}
