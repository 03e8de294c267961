//! What a person says about the self and asks of it: ratings, edits, objections, wishes.

use serde_json::{Value, json};

use crate::fake::{Then, World};

/// A world whose soul answers each of its methods so.
fn soul(answer: impl Fn(&str, &Value) -> Value + Send + Sync + 'static) -> World {
    World::served(move |method, params| match method {
        "_lisa/soul" => {
            let asked = params["method"].as_str().unwrap_or_default();
            Some(Then::Answers(vec![], answer(asked, &params["params"])))
        }
        // the newest session has not come to a reply
        "session/resume" if params["sessionId"] == "s1" => {
            Some(Then::Answers(vec![], json!({"_meta": {"lisa": {"messageId": "m7"}}})))
        }
        _ => None,
    })
}

fn written() -> Value {
    json!({"commit": "0123456789abcdef", "sequence": 2, "prompt_version": 1, "paths": []})
}

#[test]
fn a_rating_is_of_her_last_reply_or_of_the_one_that_is_named() {
    let world = soul(
        |_, _| json!({"rated": {"weight": 0.8, "gate": "she may insert 800 characters", "written": written()}}),
    );
    let said = world.lisa(&["rate", "up"], b"");
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(
        said.out,
        "`up` of reply `m7`, commit 01234567\nall ratings together: 0.80 of 1; she may insert 800 characters\n"
    );
    let said = world.lisa(&["rate", "down", "--message", "m1", "--json"], b"");
    assert_eq!(said.json()[0]["weight"], 0.8, "{said:?}");
    let asked = world.asked("_lisa/soul");
    let rated = |score: &str, session: Value, message: &str| json!({"method": "rate", "params": {"score": score, "session": session, "message": message, "human": false}});
    assert_eq!(asked, [rated("up", json!("s1"), "m7"), rated("down", Value::Null, "m1")]);
}

#[test]
fn a_rating_without_a_reply_says_so() {
    let world = World::served(|_, _| None);
    let said = world.lisa(&["rate", "meh"], b"");
    assert!(said.code == Some(1) && said.err.contains("`--message`"), "{said:?}");
    assert_eq!(World::empty().lisa(&["rate", "meh"], b"").code, Some(69));
}

#[test]
fn an_edit_is_offered_with_what_it_was_made_from() {
    let world = soul(|asked, _| match asked {
        "read" => json!({"document": {"path": "user.md", "text": "old"}}),
        _ => json!({"edited": {"written": written()}}),
    });
    let said = world.lisa(&["soul", "edit", "user", "--why", "搬家"], "Ada 住在里斯本。\n".as_bytes());
    assert_eq!(
        (said.code, said.out.as_str()),
        (Some(0), "wrote `user.md`, commit 01234567\n"),
        "{}",
        said.err
    );
    let edit = json!({"document": "user", "text": "Ada 住在里斯本。\n", "before": "old", "why": "搬家", "human": false});
    assert_eq!(world.asked("_lisa/soul")[1], json!({"method": "edit", "params": edit}));
    let said = world.lisa(&["soul", "edit", "user"], b"old\n");
    assert!(said.code == Some(0) && said.out.is_empty() && said.err.contains("unchanged"), "{said:?}");
    assert_eq!(world.asked("_lisa/soul").len(), 3, "what is unchanged is only read");
}

#[test]
fn an_edit_that_is_refused_loses_nothing() {
    let world = soul(|asked, _| match asked {
        "read" => json!({"document": {"path": "user.md", "text": "old"}}),
        _ => json!({"refused": {"reason": "`user.md` has changed since; look again"}}),
    });
    let said = world.lisa(&["soul", "edit", "user"], "新的\n".as_bytes());
    assert!(said.code == Some(1) && said.err.contains("has changed since"), "{said:?}");
    let kept = said.err.split('`').find(|part| part.ends_with("-user.md")).unwrap();
    assert_eq!(std::fs::read_to_string(kept).unwrap(), "新的\n");
    std::fs::remove_file(kept).unwrap();
    let said = world.lisa(&["soul", "edit", "user"], b"\xff");
    assert!(said.code == Some(1) && said.err.contains("UTF-8"), "{said:?}");
}

#[test]
fn a_document_that_is_not_there_yet_is_made_and_an_unknown_one_is_not() {
    let world = soul(|asked, params| match (asked, params["document"].as_str()) {
        ("read", Some("rules")) => json!({"refused": {"reason": "there is no `rules.md` yet"}}),
        ("history", Some("rules")) => json!({"history": {"entries": []}}),
        ("edit", Some("rules")) => json!({"edited": {"written": written()}}),
        _ => json!({"refused": {"reason": "there is no document `ruels`; the nearest is `rules`"}}),
    });
    let said = world.lisa(&["soul", "edit", "rules"], b"No mail.\n");
    assert!(said.code == Some(0) && said.err.contains("what you save makes it"), "{said:?}");
    assert_eq!(world.asked("_lisa/soul")[2]["params"]["before"], Value::Null);
    let said = world.lisa(&["soul", "edit", "ruels"], b"No mail.\n");
    assert!(said.code == Some(1) && said.err.contains("the nearest is `rules`"), "{said:?}");
}

#[test]
fn objections_and_wishes_are_listed_or_said_to_be_none() {
    let world = soul(|asked, _| match asked {
        "objections" => json!({"objections": {"objections": []}}),
        "snapshot" => {
            json!({"snapshot": {"sequence": 1, "prompt_version": 1, "born_at": null, "big_five": null, "name": "Lisa",
            "identity": {"text": "", "notice": null}, "purpose": {"text": "", "notice": null},
            "constitution": {"text": "", "notice": null}, "values": [], "opinions": [], "desires": []}})
        }
        _ => json!({"history": {"entries": []}}),
    });
    let said = world.lisa(&["objections", "--open", "--limit", "7"], b"");
    assert!(said.code == Some(0) && said.out.is_empty() && said.err.contains("no objection"), "{said:?}");
    assert_eq!(
        world.asked("_lisa/soul"),
        [json!({"method": "objections", "params": {"limit": 7, "open": true}})]
    );
    let said = world.lisa(&["wishlist"], b"");
    assert!(said.code == Some(0) && said.out.is_empty() && said.err.contains("`meta-wishlist`"), "{said:?}");
    assert_eq!(world.lisa(&["wishlist", "--json"], b"").json(), [json!({"desire": null, "journal": []})]);
}
