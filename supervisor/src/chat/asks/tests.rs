//! Every way a question may go.

use ipc::{contract::approval::Exactly, wire::RpcError};
use serde_json::{Value, json};

use super::*;

fn ask(session: &str) -> Ask {
    let options = json!([
        {"optionId": "allow_once", "name": "a", "kind": "allow_once"},
        {"optionId": "allow_always", "name": "b", "kind": "allow_always"},
        {"optionId": "reject_once", "name": "c", "kind": "reject_once"},
        {"optionId": "reject_always", "name": "d", "kind": "reject_always"},
    ]);
    Ask {
        id: RequestId::fresh(),
        session: session.into(),
        turn: RequestId::fresh(),
        waits: true,
        call: Exactly { tool: "bash".into(), folder: "/".into(), input: "0".into() },
        params: json!({"options": options}),
    }
}

fn said(ask: &Ask, outcome: Result<Value, RpcError>) -> Response {
    Response { id: Id::Text(ask.id.to_string()), outcome }
}

fn option(ask: &Ask, id: &str) -> Response {
    said(ask, Ok(json!({"outcome": {"outcome": "selected", "optionId": id}})))
}

fn put(client: ClientId, ask: &Ask) -> Act {
    Act::Put { client, ask: ask.clone() }
}

fn withdraw(client: ClientId, ask: &Ask) -> Act {
    Act::Withdraw { client, ask: ask.id.clone() }
}

fn decide(ask: &Ask, decision: Decision, remember: bool) -> Act {
    Act::Decide { ask: ask.clone(), decision, remember }
}

fn refused(acts: &[Act], part: &str) {
    assert!(matches!(acts, [Act::Refuse { why, .. }] if why.contains(part)), "{acts:?} says {part}");
}

const YES: Decision = Decision::Allowed { by: By::Person };

#[test]
fn the_first_answer_counts_and_the_others_are_told() {
    let (mut asks, one) = (Asks::default(), ask("s"));
    assert_eq!(asks.asked(one.clone(), &[1, 2, 3]), [put(1, &one), put(2, &one), put(3, &one)]);
    assert_eq!(asks.asked(one.clone(), &[1, 2, 3]), [], "asked again, nobody is asked twice");
    let acts = asks.answered(2, true, option(&one, "allow_once"));
    assert_eq!(acts, [decide(&one, YES, false), withdraw(1, &one), withdraw(3, &one)]);
    refused(&asks.answered(1, true, option(&one, "reject_once")), "already");
    refused(&asks.answered(2, true, option(&one, "reject_once")), "already");
    let cancelled = RpcError::new(-32800, "cancelled");
    assert_eq!(asks.answered(3, true, said(&one, Err(cancelled))), [], "as the protocol wants it");
    assert_eq!(asks.asked(one.clone(), &[1]), [decide(&one, YES, false)], "the agent had died meanwhile");
    assert_eq!(asks.settled(&one.id), []);
    refused(&asks.answered(1, true, option(&one, "allow_once")), "over");
}

#[test]
fn what_is_for_good_is_remembered_and_a_reason_is_kept() {
    let check = |id: &str, decision: Decision, remember: bool| {
        let (mut asks, one) = (Asks::default(), ask("s"));
        asks.asked(one.clone(), &[1]);
        let outcome = json!({"outcome": {"outcome": "selected", "optionId": id}, "_meta": {"lisa": {"reason": "用副本"}}});
        assert_eq!(asks.answered(1, true, said(&one, Ok(outcome))), [decide(&one, decision, remember)]);
    };
    let no = Decision::Refused { by: By::Person, reason: "用副本".into() };
    check("allow_once", YES, false);
    check("allow_always", YES, true);
    check("reject_once", no.clone(), false);
    check("reject_always", no, true);
}

#[test]
fn a_process_of_hers_decides_nothing_and_garbage_neither() {
    let (mut asks, one) = (Asks::default(), ask("s"));
    asks.asked(one.clone(), &[1]);
    refused(&asks.answered(7, false, option(&one, "allow_once")), "only a person");
    refused(&asks.answered(8, true, option(&one, "allow_once")), "of others");
    refused(&asks.answered(1, true, option(&ask("s"), "allow_once")), "nothing was asked");
    let stray = |id| Response { id, outcome: Ok(json!({})) };
    refused(&asks.answered(1, true, stray(Id::Number(1))), "nothing was asked");
    refused(&asks.answered(1, true, stray(Id::Null)), "nothing was asked");
    refused(&asks.answered(1, true, stray(Id::Text("../\u{202e}".into()))), "nothing was asked");
    for garbage in [
        json!(null),
        json!("yes"),
        json!({"outcome": "allow_once"}),
        json!({"outcome": {"outcome": "allowed"}}),
    ] {
        refused(&asks.answered(1, true, said(&one, Ok(garbage))), "again");
    }
    refused(&asks.answered(1, true, option(&one, "allow_everything")), "none of its options");
    assert_eq!(
        asks.answered(1, true, option(&one, "allow_once")),
        [decide(&one, YES, false)],
        "it stayed open"
    );
}

#[test]
fn with_nobody_attached_it_is_a_no_at_once_and_whoever_comes_meanwhile_is_asked() {
    let (mut asks, one) = (Asks::default(), ask("s"));
    let acts = asks.asked(one.clone(), &[]);
    assert!(
        matches!(&acts[..], [Act::Decide { decision: Decision::Refused { by: By::Nobody, .. }, .. }]),
        "{acts:?}"
    );
    let two = ask("s");
    asks.asked(two.clone(), &[1]);
    asks.left(1, None);
    assert_eq!(asks.asked(two.clone(), &[]), [], "somebody may come back");
    assert_eq!(asks.attached(2, "t"), []);
    assert_eq!(asks.attached(2, "s"), [put(2, &two)]);
    asks.left(2, Some("t"));
    assert_eq!(asks.answered(2, true, option(&two, "allow_once")), [decide(&two, YES, false)]);
}

#[test]
fn who_cannot_answer_says_so_and_the_last_of_them_is_a_no() {
    let (mut asks, one) = (Asks::default(), ask("s"));
    asks.asked(one.clone(), &[1, 2]);
    let cannot = || RpcError::new(-32601, "no terminal\nhere");
    assert_eq!(asks.answered(1, true, said(&one, Err(cannot()))), []);
    assert_eq!(asks.asked(one.clone(), &[1, 2]), [], "it is not asked again");
    let cancelled = json!({"outcome": {"outcome": "cancelled"}});
    let no = Decision::Refused { by: By::Nobody, reason: "no terminal here".into() };
    assert_eq!(asks.answered(2, true, said(&one, Err(cannot()))), [decide(&one, no, false)]);
    // one who has left may still come back, so the others' silence is no answer
    let two = ask("s");
    asks.asked(two.clone(), &[1, 2]);
    asks.left(1, None);
    assert_eq!(asks.answered(2, true, said(&two, Ok(cancelled))), []);
}

#[test]
fn a_question_ends_with_its_turn_and_there_are_never_too_many() {
    let (mut asks, one) = (Asks::default(), ask("s"));
    asks.asked(one.clone(), &[1]);
    assert_eq!(asks.turn_over(&RequestId::fresh()), []);
    assert_eq!(asks.turn_over(&one.turn), [withdraw(1, &one)]);
    for _ in 0..OPEN_MAX * 2 {
        asks.asked(ask("s"), &[1]);
    }
    assert_eq!((asks.open.len(), asks.over.len()), (OPEN_MAX, OVER_MAX));
}
