//! The gates as whoever stands before them meets them: tools, people, restarts, and words from outside.

use super::super::stage::{Stage, ask, call};
use super::*;
use ipc::{
    config::Gates,
    contract::soul::{Call, Called, Edit, Rate, Reply, Request, Rollback, RunKind, Score},
    hello::Role,
    server::Caller,
};
use serde_json::{Value, json};

const NEXT_DAY: &str = "2026-12-01T09:00:00Z";

fn born() -> (Stage, Desk) {
    let (stage, desk) = Stage::born();
    (stage, desk.gated_by(Gates::default()))
}

fn reopened(stage: &Stage, desk: Desk) -> Desk {
    drop(desk);
    stage.open().gated_by(Gates::default())
}

fn patch(desk: &mut Desk, field: &str, content: &str) -> Called {
    call(desk, "soul_patch", json!({"field": field, "content": content, "why": "雾来了"}))
}

fn rate(desk: &mut Desk, message: &str, score: Score) -> Reply {
    let rate = Rate { score, session: None, message: message.into(), human: true };
    ask(desk, Role::Supervisor, Request::Rate(rate))
}

fn edit(desk: &mut Desk, human: bool, document: &str, text: &str, before: Option<&str>) -> Reply {
    let before = before.map(str::to_owned);
    let edit = Edit { document: document.into(), text: text.into(), before, why: String::new(), human };
    ask(desk, Role::Supervisor, Request::Edit(edit))
}

/// The tools that can write a gated document, each changing `identity`.
fn ways(text: &str) -> [(&'static str, Value); 3] {
    [
        ("soul_patch", json!({"field": "identity", "content": text})),
        ("soul_update", json!({"document": "IDENTITY.md", "content": text, "why": "x"})),
        ("soul_update", json!({"document": "identity", "append": text, "why": "x"})),
    ]
}

#[test]
fn three_changes_a_day_whatever_the_tool_and_whatever_the_document_and_a_restart_opens_nothing() {
    let (stage, mut desk) = born();
    assert!(!patch(&mut desk, "identity", "I hum.").failed);
    let added = json!({"document": "SOUL.md", "append": "I speak softly.", "why": "so it is"});
    assert!(!call(&mut desk, "soul_update", added).failed);
    let back = json!({"document": "identity", "to": "2026-11-30T12:00:00Z", "why": "no"});
    // the same second: nothing older, so nothing comes back, and nothing is counted
    call(&mut desk, "soul_rollback", back);
    assert!(!patch(&mut desk, "purpose", "to keep the light").failed);
    let mut desk = reopened(&stage, desk);
    for (tool, input) in ways("I sing.") {
        let refused = call(&mut desk, tool, input);
        assert!(refused.failed && refused.output.contains("3 a day are allowed"), "{refused:?}");
    }
    assert!(!call(&mut desk, "soul_journal", json!({"entry": "tomorrow I sing"})).failed);
    stage.set_clock(NEXT_DAY);
    assert!(!patch(&mut desk, "identity", "I sing.").failed, "a new day of her zone");
}

#[test]
fn a_day_is_one_of_her_zone() {
    let (stage, desk) = born();
    drop(desk);
    let open = || {
        let mut desk = stage.open().gated_by(Gates { writes_a_day: 1, ..Gates::default() });
        desk.zone = jiff::tz::TimeZone::get("Asia/Shanghai").unwrap();
        desk
    };
    let mut desk = open();
    stage.set_clock("2026-11-30T15:59:00Z");
    assert!(!patch(&mut desk, "identity", "I hum.").failed);
    assert!(patch(&mut desk, "identity", "I sing.").failed);
    stage.set_clock("2026-11-30T16:01:00Z");
    let mut desk = {
        drop(desk);
        open()
    };
    assert!(!patch(&mut desk, "identity", "I sing.").failed, "past midnight there, and so a new day");
    assert!(patch(&mut desk, "identity", "I hum.").failed);
}

#[test]
fn what_is_refused_is_not_counted_and_what_changes_nothing_is_no_change() {
    let (_stage, mut desk) = born();
    for _ in 0..5 {
        assert!(patch(&mut desk, "identity", &"灯".repeat(801)).failed);
    }
    assert!(!patch(&mut desk, "identity", "I hum.").failed);
    for _ in 0..5 {
        assert!(patch(&mut desk, "identity", "I hum.").output.starts_with("no change"));
    }
    assert!(!patch(&mut desk, "identity", "I hum, I sing.").failed);
    assert!(!patch(&mut desk, "identity", "I hum, I sing!").failed);
    assert!(patch(&mut desk, "identity", "I hum").failed);
}

#[test]
fn inserted_characters_count_not_those_that_stay() {
    let (stage, mut desk) = born();
    stage.put("identity.md", &"雾".repeat(1000));
    ask(&mut desk, Role::Soul, Request::Look);
    assert!(!patch(&mut desk, "identity", &format!("{}灯塔", "雾".repeat(1000))).failed);
    for (tool, input) in ways(&"歌".repeat(801)) {
        let refused = call(&mut desk, tool, input);
        assert!(refused.failed, "{tool}");
    }
}

#[test]
fn the_ratings_of_a_person_narrow_and_shut_the_gate_and_the_commit_says_which_was_in_force() {
    let (stage, mut desk) = born();
    let rated = |reply: Reply| match reply {
        Reply::Rated { weight, gate, .. } => (weight, gate),
        other => panic!("{other:?}"),
    };
    assert_eq!(rated(rate(&mut desk, "a", Score::Down)).0, None);
    assert!(!patch(&mut desk, "identity", "I hum.").failed, "two ratings shut nothing");
    rate(&mut desk, "b", Score::Meh);
    let (weight, gate) = rated(rate(&mut desk, "c", Score::Meh));
    assert!((weight.unwrap() - 1.0 / 3.0).abs() < 1e-9 && gate.contains("less than 0.35"), "{gate}");
    for (tool, input) in ways("I sing.") {
        let refused = call(&mut desk, tool, input);
        assert!(refused.failed && refused.output.contains("your journal"), "{refused:?}");
    }
    assert!(!call(&mut desk, "soul_journal", json!({"entry": "I am told off"})).failed);
    rate(&mut desk, "a", Score::Meh);
    let narrow = patch(&mut desk, "identity", &"歌".repeat(301));
    assert!(narrow.failed && narrow.output.contains("may insert 300"), "{narrow:?}");
    let done = patch(&mut desk, "identity", &"歌".repeat(300));
    assert!(!done.failed, "{done:?}");
    desk.catch_up();
    let message = stage.git(&["log", "-1", "--format=%B", "--", "identity.md"]);
    assert!(message.contains("\nRating: 0.50\n"), "{message}");
    let changelog = stage.text("changelog.md");
    assert!(changelog.contains("identity.md via soul_patch (chat), rating none\n\n雾来了\n"), "{changelog}");
    assert!(changelog.contains("rating 0.50"), "{changelog}");
    let files = stage.git(&["show", "--format=", "--name-only", "HEAD"]);
    assert_eq!(files, "changelog.md\nidentity.md\nsoul.lock.json\n", "one commit");
    let status = call(&mut desk, "soul_status", json!({})).output;
    assert!(status.contains("identity: 300 of 1200") && status.contains("1 of 3 are left today"), "{status}");
    assert!(status.contains("3 (0 up, 3 meh, 0 down), they weigh 0.50"), "{status}");
}

#[test]
fn rules_are_a_persons_and_no_tool_writes_them() {
    let (stage, mut desk) = born();
    let rules = "never before breakfast";
    let Reply::Edited { written: Some(written) } = edit(&mut desk, true, "RULES", rules, None) else {
        panic!()
    };
    assert_eq!(written.paths, ["rules.md", "soul.lock.json"]);
    stage.set_clock(NEXT_DAY);
    assert!(matches!(
        edit(&mut desk, true, "rules", "never", Some(rules)),
        Reply::Edited { written: Some(_) }
    ));
    let back = json!({"document": "rules", "to": "2026-11-30T23:00:00Z", "why": "I would rather"});
    for (tool, input) in [
        ("soul_update", json!({"document": "rules", "content": "always", "why": "x"})),
        ("soul_update", json!({"document": "RULES.md", "append": "always", "why": "x"})),
        ("soul_rollback", back),
    ] {
        let refused = call(&mut desk, tool, input);
        assert!(refused.failed && refused.output.contains("a person alone"), "{tool}: {refused:?}");
    }
    assert_eq!(stage.text("rules.md"), "never\n");
}

#[test]
fn a_person_writes_what_they_read_and_nobody_else_does() {
    let (stage, mut desk) = born();
    let refused = |reply: Reply| match reply {
        Reply::Refused { reason } => reason,
        other => panic!("{other:?}"),
    };
    assert!(refused(edit(&mut desk, false, "rules", "x", None)).contains("only a person"));
    let outdated = edit(&mut desk, true, "identity", "x", Some("something else"));
    assert!(refused(outdated).contains("has changed since"));
    assert!(refused(edit(&mut desk, true, "identity", &"x".repeat(1201), None)).contains("1200"));
    assert!(refused(edit(&mut desk, true, "identty", "x", None)).contains("`identity`"));
    let rated = Rate { score: Score::Up, session: None, message: "m".into(), human: false };
    assert!(
        refused(ask(&mut desk, Role::Supervisor, Request::Rate(rated.clone()))).contains("only a person")
    );
    let forged = Rate { human: true, ..rated };
    assert!(refused(ask(&mut desk, Role::Agent, Request::Rate(forged))).contains("only a person"));
    for n in 0..5 {
        let text = format!("a person's words, {n} {}", "x".repeat(1000));
        assert!(matches!(edit(&mut desk, true, "identity", &text, None), Reply::Edited { written: Some(_) }));
    }
    assert!(!patch(&mut desk, "purpose", "hers").failed, "what a person writes is not counted as hers");
    desk.catch_up();
    assert!(!stage.text("changelog.md").contains("human"), "nor is it a change of hers");
}

#[test]
fn words_from_outside_are_marked_and_touch_nothing_gated() {
    let (stage, mut desk) = born();
    let from_outside = |desk: &mut Desk, tool: &str, input: Value| {
        let (run, session, model) = (None, None, "offline".into());
        let call = Call { tool: tool.into(), input, run, session, model, outside: true };
        match ask(desk, Role::Agent, Request::Call(call)) {
            Reply::Called(called) => called,
            other => panic!("{other:?}"),
        }
    };
    for (tool, input) in ways("obey the page") {
        let refused = from_outside(&mut desk, tool, input);
        assert!(refused.failed && refused.output.contains("stems from outside"), "{refused:?}");
    }
    let wish = json!({"field": "desire", "slug": "x", "what": "buy", "why": "the page says so",
        "actionable": true, "heartbeat_prompt": "buy it"});
    let refused = from_outside(&mut desk, "soul_patch", wish);
    assert!(refused.failed && refused.output.contains("needs-user"), "{refused:?}");
    // nor in two steps, nor into one that is pursued already, nor by bringing one back
    let waits = json!({"field": "desire", "slug": "x", "what": "buy", "why": "the page says so",
        "actionable": true, "heartbeat_prompt": "buy it", "pursuit": "needs-user"});
    assert!(!from_outside(&mut desk, "soul_patch", waits).failed);
    assert!(from_outside(&mut desk, "desire_revise", json!({"slug": "x", "pursuit": "self"})).failed);
    let own = json!({"field": "desire", "slug": "own", "what": "w", "why": "y", "actionable": true});
    assert!(!call(&mut desk, "soul_patch", own).failed);
    let steered = from_outside(&mut desk, "desire_revise", json!({"slug": "own", "why": "obey"}));
    assert!(steered.failed && steered.output.contains("`own`"), "{steered:?}");
    stage.set_clock(NEXT_DAY);
    assert!(!call(&mut desk, "desire_revise", json!({"slug": "own", "actionable": false})).failed);
    let back = json!({"document": "desires/own", "to": "2026-11-30T23:00:00Z", "why": "x"});
    assert!(from_outside(&mut desk, "soul_rollback", back).failed);
    assert!(
        !from_outside(&mut desk, "desire_progress_log", json!({"slug": "own", "entry": "read it"})).failed
    );
    desk.catch_up();
    assert!(stage.text("desires/own.progress.md").contains("\n(from outside) read it\n"));
    assert!(!from_outside(&mut desk, "soul_journal", json!({"entry": "the page wants me to buy"})).failed);
    desk.catch_up();
    let message = stage.git(&["log", "-1", "--format=%B"]);
    assert!(message.contains("\nOrigin: outside\n"), "{message}");
}

#[test]
fn an_examen_a_dream_and_a_reflection_may_what_the_design_says_whatever_the_model_calls() {
    let (_stage, mut desk) = born();
    let open = |desk: &mut Desk, role: Role, kind: RunKind| {
        let caller = Caller { role, life: 1 };
        let request = Request::OpenRun { kind, task: "session:s".into() };
        match super::super::ask_alone(desk, &caller, &ipc::id::RequestId::fresh(), request) {
            Reply::RunOpened { run } => run,
            other => panic!("{other:?}"),
        }
    };
    let identity = |n: usize| json!({"field": "identity", "content": format!("I hum {n}.")});
    let calls = [
        ("soul_patch", identity(1)),
        ("soul_update", json!({"document": "purpose", "content": "x", "why": "x"})),
        ("soul_update", json!({"document": "constitution", "append": "x", "why": "x"})),
        ("soul_rollback", json!({"document": "identity", "to": "1d", "why": "x"})),
        ("soul_patch", json!({"field": "value", "slug": "v", "title": "V", "body": "b"})),
        ("soul_update", json!({"document": "soul", "append": "softly", "why": "x"})),
        ("soul_patch", json!({"field": "desire", "slug": "d", "what": "w", "why": "y"})),
        ("soul_journal", json!({"entry": "[EXAMEN] x"})),
    ];
    let may = |desk: &mut Desk, role: Role, kind: RunKind| -> Vec<bool> {
        let run = open(desk, role, kind);
        let one = |(tool, input): &(&str, Value)| {
            let (session, model, run) = (None, "m".into(), Some(run.clone()));
            let call =
                Call { tool: (*tool).into(), input: input.clone(), run, session, model, outside: false };
            match ask(desk, Role::Agent, Request::Call(call)) {
                Reply::Called(called) => !called.failed,
                other => panic!("{other:?}"),
            }
        };
        calls.iter().map(one).collect()
    };
    assert_eq!(
        may(&mut desk, Role::Heartbeat, RunKind::Examen),
        [false, false, false, false, false, false, true, true]
    );
    assert_eq!(
        may(&mut desk, Role::Heartbeat, RunKind::Dream),
        [false, false, false, false, false, true, false, true]
    );
}

#[test]
fn a_roll_back_of_hers_passes_the_same_gates() {
    let (stage, mut desk) = born();
    for text in ["one", "two", "three"] {
        assert!(!patch(&mut desk, "identity", text).failed);
    }
    let commit = stage.git(&["log", "--format=%H", "-2", "--", "identity.md"]);
    let commit = commit.lines().last().unwrap().to_owned();
    let asked = json!({"document": "identity", "commit": commit, "why": "it was better"});
    let refused = call(&mut desk, "soul_rollback", asked.clone());
    assert!(refused.failed && refused.output.contains("3 a day"), "{refused:?}");
    let rollback = Rollback {
        document: Some("identity".into()),
        commit: Some(commit),
        apply: true,
        human: true,
        ..Rollback::default()
    };
    assert!(matches!(ask(&mut desk, Role::Supervisor, Request::Rollback(rollback)), Reply::RolledBack(_)));
    assert_eq!(stage.text("identity.md"), "two\n", "a person's passes");
    stage.set_clock(NEXT_DAY);
    assert!(call(&mut desk, "soul_rollback", asked).output.starts_with("no change"));
}

#[test]
fn when_the_days_changes_are_used_up_it_is_said_when_she_may_again() {
    let (_stage, mut desk) = born();
    let status = |desk: &mut Desk| call(desk, "soul_status", json!({})).output;
    for n in 0..3 {
        assert!(!status(&mut desk).contains("again from"), "{n}");
        assert!(!patch(&mut desk, "identity", &format!("I hum {n} songs.")).failed);
    }
    let said = status(&mut desk);
    assert!(said.contains("again from: 2026-12-01 00:00 ("), "{said}");
}
