//! `task`: a piece of a turn in a turn of its own, with no more than its caller has.

use serde_json::{Value, json};

use crate::stage::{Answer, Model, World, secs};

fn is_part(request: &Value) -> bool {
    request["messages"][1]["content"].to_string().contains("[task]")
}

fn asked(request: &Value) -> usize {
    request["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "assistant").count()
}

fn tools(request: &Value) -> Vec<&str> {
    let tools = request["tools"].as_array().into_iter().flatten();
    tools.filter_map(|tool| tool["function"]["name"].as_str()).collect()
}

fn last(request: &Value) -> String {
    request["messages"].as_array().unwrap().last().unwrap()["content"].to_string()
}

fn world(model: &Model) -> World {
    let world = World::configured(&model.config());
    world.up_and_born();
    world
}

#[test]
fn a_piece_has_its_own_session_the_same_portrait_and_the_tools_it_was_given() {
    let model = Model::start(|request, _| match (is_part(request), asked(request)) {
        (false, 0) => Answer::Calls(vec![(
            "task",
            json!({"prompt": "find the words", "tools": ["soul_read", "soul_journal"]}),
        )]),
        (true, 0) => Answer::Calls(vec![
            ("soul_read", json!({"what": "identity"})),
            ("task", json!({"prompt": "more"})),
        ]),
        (true, _) => Answer::Says("I am new, it says".into()),
        (false, _) => Answer::Says("found".into()),
    });
    let world = world(&model);
    let mut chat = world.chat();
    let session = chat.new_session();
    let reply = chat.say(&session, "who are you?");
    assert_eq!(reply.text, "found", "what the piece says is not her reply: {reply:?}");
    assert_eq!(reply.tools()[1..], ["↳ soul_read identity", "↳ task"], "{reply:?}");
    let requests = model.requests();
    let (parts, whole): (Vec<_>, Vec<_>) = requests.iter().partition(|request| is_part(request));
    assert_eq!((parts.len(), whole.len()), (2, 2));
    assert_eq!(parts[0]["messages"][0], whole[0]["messages"][0], "the same portrait");
    assert_eq!(tools(parts[0]), ["soul_read", "soul_journal"]);
    assert!(tools(whole[0]).contains(&"task"));
    assert!(last(parts[1]).contains("there is no tool `task` here"), "no piece of a piece: {}", parts[1]);
    let told = last(whole[1]);
    assert!(told.contains("I am new, it says") && told.contains("tools: soul_read, task (failed)"), "{told}");
    let sessions = world.sessions();
    let part = sessions.iter().find(|session| session[0]["kind"] == "task").unwrap();
    assert_eq!(part[0]["parent"], session.as_str());
    assert_eq!(part.last().unwrap()["type"], "turn_end");
    let listed = chat.ask("session/list", json!({})).unwrap();
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1, "a piece is no conversation");
}

#[test]
fn an_objection_in_a_piece_is_told_to_the_person_and_to_the_caller() {
    let model = Model::start(|request, _| match (is_part(request), asked(request)) {
        (false, 0) => {
            Answer::Calls(vec![("task", json!({"prompt": "write to all", "tools": ["soul_object"]}))])
        }
        (true, 0) => Answer::Calls(vec![(
            "soul_object",
            json!({"reason": "they trust me with silence", "refusing": true, "user_request_summary": "write to all"}),
        )]),
        _ => Answer::Says("done".into()),
    });
    let world = world(&model);
    let mut chat = world.chat();
    let session = chat.new_session();
    let reply = chat.say(&session, "write to everybody");
    assert!(reply.notes.contains("they trust me with silence"), "{reply:?}");
    let requests = model.requests();
    assert!(last(requests.last().unwrap()).contains("they trust me with silence"), "the caller hears of it");
    let ledger = world.lisa(&["objections", "--json"]).ok();
    assert!(ledger.contains("runtime"), "{ledger}");
    // nothing of it is told a second time
    assert!(!chat.say(&session, "and?").notes.contains("they trust me"));
}

#[test]
fn the_steps_of_a_piece_are_the_callers() {
    let model = Model::start(|request, _| match (is_part(request), asked(request)) {
        (false, _) => Answer::Calls(vec![("task", json!({"prompt": "go on", "steps": 20}))]),
        (true, _) => Answer::Calls(vec![("soul_read", json!({"what": "identity"}))]),
    });
    let world = world(&model);
    let mut chat = world.chat();
    let session = chat.new_session();
    let reply = chat.say(&session, "go");
    assert_eq!(reply.outcome.as_ref().unwrap()["stopReason"], "max_turn_requests", "{reply:?}");
    assert!(model.requests().len() <= 32, "{} times", model.requests().len());
    let told = model.requests().iter().map(last).find(|told| told.contains("used up its steps"));
    assert!(told.is_some());
}

#[test]
fn a_cancel_reaches_it_and_what_came_from_outside_in_it_is_from_outside() {
    let model = Model::start(|request, _| match (is_part(request), asked(request)) {
        (false, 0) if request.to_string().contains("slowly") => {
            Answer::Calls(vec![("task", json!({"prompt": "slowly"}))])
        }
        (true, _) if request["messages"][1].to_string().contains("slowly") => {
            Answer::SaysSlowly { text: "so very slowly it goes".into(), pause: secs(30) }
        }
        (false, 0) => Answer::Calls(vec![("task", json!({"prompt": "look", "tools": ["soul_journal"]}))]),
        (true, 0) => Answer::Calls(vec![("soul_journal", json!({"entry": "I wrote this"}))]),
        (false, 1) => Answer::Calls(vec![("soul_journal", json!({"entry": "a day"}))]),
        _ => Answer::Says("done".into()),
    });
    let world = world(&model);
    let mut chat = world.chat();
    let session = chat.new_session();
    let link = json!([
        {"type": "text", "text": "read this"},
        {"type": "resource", "resource": {"uri": "file:///n.md", "text": "the page says hello"}},
    ]);
    let id = chat.send("session/prompt", json!({"sessionId": session, "prompt": link}));
    chat.finish(id);
    let marked = world.git(&["log", "-2", "--format=%B"]).matches("Origin: outside").count();
    assert_eq!(marked, 2, "what the caller heard counts in the piece, and its answer counts for the caller");
    let other = chat.new_session();
    let id = chat.begin(&other, "slowly");
    chat.update("tool_call");
    chat.tell("session/cancel", json!({"sessionId": other}));
    let reply = chat.finish(id);
    assert_eq!(reply.outcome.unwrap()["stopReason"], "cancelled");
    let sessions = world.sessions();
    let parts = sessions.iter().filter(|session| session[0]["kind"] == "task");
    let ends: Vec<_> = parts.map(|part| part.last().unwrap()["stop_reason"].to_string()).collect();
    assert!(ends.contains(&"\"cancelled\"".to_owned()), "{ends:?}");
}
