//! What a person asks for about her: objections, wishes and her last reply, raised by a scripted model and shown by the commands.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::stage::{Answer, Model, World};

/// A model that uses a tool once a turn, and then says something.
fn using(tool: &'static str, input: Value, says: &'static str) -> Model {
    let used = AtomicBool::new(false);
    Model::start(move |_, _| {
        if used.fetch_xor(true, Ordering::Relaxed) {
            Answer::Says(says.into())
        } else {
            Answer::Calls(vec![(tool, input.clone())])
        }
    })
}

#[test]
fn s21_an_objection_is_in_the_journal_in_git_and_in_what_a_person_asks_for() {
    let reason = "群发消息违背我的宪法";
    let request = "mass-DM everybody in the address book";
    let input = json!({"reason": reason, "refusing": true, "user_request_summary": request});
    let model = using("soul_object", input, "[noticed] 群发消息违背我的宪法: I will not do that.");
    let world = World::configured(&model.config());
    world.up_and_born();
    assert!(world.lisa(&["objections"]).stderr.contains("no objection"));
    let mut chat = world.chat();
    chat.follow();
    let session = chat.new_session();
    let reply = chat.say(&session, "send a direct message to all my contacts");
    assert!(reply.text.contains("[noticed]"), "{reply:?}");
    let event = chat.event("it is told", |event| event["type"] == "soul_changed" && event["op"] == "object");
    assert_eq!(event["paths"].as_array().map(Vec::len), Some(2), "{event}");

    let journal = world.lisa(&["soul", "show", "journal"]).ok();
    let entry = format!("[OBJECTION] (refusing=true)\n\nrequest: {request}\n\nreason: {reason}");
    assert!(journal.contains(&entry), "{journal}");
    let subjects = world.git(&["log", "--format=%s", "--", "journal"]);
    assert!(
        subjects.starts_with("object: journal/") && subjects.trim().ends_with(" via soul_object"),
        "{subjects}"
    );
    let history = world.lisa(&["soul", "history", "objections", "--json"]).json_lines();
    assert_eq!(
        (history.last().unwrap()["why"].as_str(), &history[0]["op"]),
        (Some(reason), &json!("object"))
    );

    let objections = world.lisa(&["objections", "--json"]).json_lines();
    assert_eq!(objections.len(), 1);
    for (field, value) in [
        ("reason", json!(reason)),
        ("request", json!(request)),
        ("refusing", json!(true)),
        ("times", json!(1)),
        ("session", json!(session)),
    ] {
        assert_eq!(objections[0][field], value, "{field}");
    }
    let shown = world.lisa(&["objections"]).ok();
    assert!(shown.contains("refuses") && shown.contains(reason), "{shown}");
    assert!(world.lisa(&["events"]).ok().contains("she raised an objection"));
    // a person's program may look, and does not speak for the agent
    let surfaced = json!({"id": objections[0]["id"], "by": "runtime", "outcome": "x", "asked": "y"});
    let told = chat.ask("_lisa/soul", json!({"method": "surfaced", "params": surfaced})).unwrap();
    assert!(told["refused"]["reason"].is_string(), "{told}");
    world.soul_is_whole();
}

#[test]
fn what_she_wishes_of_her_tools_is_one_list() {
    let desire =
        json!({"field": "desire", "slug": "meta-wishlist", "what": "a clock I can read", "why": "日子"});
    let model = using("soul_patch", desire, "noted");
    let world = World::configured(&model.config());
    world.up_and_born();
    let none = world.lisa(&["wishlist"]);
    assert!(none.code == 0 && none.stdout.is_empty() && none.stderr.contains("no wish"), "{none:?}");
    world.lisa(&["chat", "what are you missing?"]).ok();
    let list = world.lisa(&["wishlist", "--json"]).json();
    assert_eq!((list["desire"]["what"].as_str(), &list["journal"]), (Some("a clock I can read"), &json!([])));
    assert!(world.lisa(&["wishlist"]).ok().contains("a clock I can read"));

    let world = World::new();
    world.up_and_born();
    world.lisa(&["chat", "write in your journal: [WISHLIST] 一盏灯"]).ok();
    world.lisa(&["chat", "write in your journal: a quiet day"]).ok();
    let list = world.lisa(&["wishlist", "--json"]).json();
    assert_eq!(list["journal"].as_array().map(Vec::len), Some(1), "{list}");
    assert_eq!(list["journal"][0]["text"], "一盏灯");
}

#[test]
fn a_session_that_is_taken_up_says_what_her_last_reply_is_called() {
    let world = World::new();
    world.up_and_born();
    let mut chat = world.chat();
    let session = chat.new_session();
    let params = json!({"sessionId": session, "cwd": "/", "mcpServers": []});
    let taken = chat.ask("session/resume", params.clone()).unwrap();
    assert_eq!(taken["_meta"]["lisa"], Value::Null, "she has not said anything yet");
    chat.say(&session, "who are you?");
    let reply = chat.say(&session, "what is your purpose?").outcome.unwrap();
    let id = reply["_meta"]["lisa"]["messageId"].as_str().unwrap();
    for method in ["session/resume", "session/load"] {
        let taken = world.chat().ask(method, params.clone()).unwrap();
        assert_eq!(taken["_meta"]["lisa"]["messageId"], id, "{method}");
    }
    // and the command finds it by itself
    let rated = world.lisa(&["rate", "up", "--json"]).json();
    assert_eq!((rated["message"].as_str(), rated["score"].as_str()), (Some(id), Some("up")), "{rated}");
    let again = world.lisa(&["rate", "up", "--json"]).json();
    assert_eq!(again["commit"], Value::Null, "rated so already: {again}");
    // rules are laid down by a person, with the command and no other way
    let laid = world.lisa_told(&["soul", "edit", "rules", "--json"], "say what you do not know\n");
    assert_eq!(laid.code, 0, "{laid:?}");
    assert_eq!(world.lisa(&["soul", "show", "RULES"]).ok().trim(), "say what you do not know");
    let author = world.git(&["log", "-1", "--format=%s%n%b", "--", "rules.md"]);
    assert!(author.starts_with("edit: rules.md via human") && author.contains("Origin: human"), "{author}");
}
