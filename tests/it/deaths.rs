//! Everything is killed: the children one by one and together, in mid-reply, and the supervisor itself.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::stage::{Answer, Model, World, eventually, pause, resume, secs};

const CHILDREN: [&str; 3] = ["soul", "agent", "heartbeat"];

#[test]
fn s5_each_child_that_is_killed_is_back_within_a_second_and_the_client_is_told() {
    let world = World::new();
    world.up_and_born();
    let mut chat = world.chat();
    chat.follow();
    let session = chat.new_session();
    for child in CHILDREN {
        let killed = Instant::now();
        let pid = world.kill(child);
        let died = chat.event("it died", |event| event["type"] == "child_died" && event["process"] == child);
        assert_eq!((died["pid"].as_u64(), died["how"].as_str()), (Some(pid.into()), Some("signal 9")));
        let ready =
            chat.event("it is back", |event| event["type"] == "child_ready" && event["process"] == child);
        assert_eq!(ready["life"], 2);
        assert!(killed.elapsed() < secs(1), "{child}: {:?}", killed.elapsed());
        let reply = chat.say(&session, "who are you?");
        assert!(reply.outcome.is_ok() && !reply.text.is_empty(), "{reply:?}");
    }
    world.soul_is_whole();
}

#[test]
fn s5_all_children_killed_at_once_are_back_and_nothing_acknowledged_is_lost() {
    let world = World::new();
    world.up_and_born();
    let mut chat = world.chat();
    let session = chat.new_session();
    for round in 0..3 {
        let reply = chat.say(&session, &format!("write in your journal: round {round}"));
        assert_eq!(reply.tools(), ["soul_journal"], "{reply:?}");
        let pids = CHILDREN.map(|child| (child, world.kill(child)));
        for (child, pid) in pids {
            world.back(child, pid);
        }
        let journal = world.lisa(&["soul", "show", "journal"]).ok();
        assert!(journal.contains(&format!("round {round}")), "{journal}");
    }
    assert!(chat.say(&session, "who are you?").outcome.is_ok(), "the same client goes on");
    world.soul_is_whole();
}

#[test]
fn s5_a_reply_that_is_cut_by_a_death_is_begun_again_and_ends() {
    let model = Model::start(|_, number| {
        let text = "one two three four five six seven eight nine ten".to_owned();
        let pause = Duration::from_millis(if number == 0 { 200 } else { 1 });
        Answer::SaysSlowly { text, pause }
    });
    let world = World::configured(&model.config());
    world.up_and_born();
    let mut chat = world.chat();
    let session = chat.new_session();
    let prompt = chat.begin(&session, "count");
    chat.update("agent_message_chunk");
    let pid = world.kill("agent");
    let reply = chat.finish(prompt);
    assert_eq!(reply.outcome.as_ref().unwrap()["stopReason"], "end_turn", "{reply:?}");
    assert!(reply.text.ends_with("one two three four five six seven eight nine ten"), "{reply:?}");
    assert!(reply.notes.contains("restarted in the middle"), "{reply:?}");
    // any client of the protocol sees the death and the return as a tool call
    let life = |status: &str| {
        let of = |update: &&serde_json::Value| {
            update["_meta"]["lisa"]["lifecycle"] == true && update["status"] == status
        };
        reply.updates.iter().find(of).cloned()
    };
    assert!(life("in_progress").unwrap()["title"].as_str().unwrap().contains("signal 9"), "{reply:?}");
    assert!(life("completed").is_some(), "{reply:?}");
    world.back("agent", pid);
    let said =
        world.sessions().into_iter().flatten().filter(|line| line["message"]["role"] == "user").count();
    assert_eq!(said, 1, "what was said once is written once");
}

#[test]
fn t28_a_call_under_way_at_a_death_is_not_made_twice() {
    let model = Model::start(|request, _| {
        let answered =
            request["messages"].as_array().unwrap().iter().any(|message| message["role"] == "tool");
        if answered {
            return Answer::Says("written".into());
        }
        Answer::Calls(vec![("soul_journal", json!({"entry": "only once"}))])
    });
    let world = World::configured(&model.config());
    world.up_and_born();
    let mut chat = world.chat();
    let first = chat.new_session();
    assert_eq!(chat.say(&first, "write it down").text, "written");
    // the soul is held still, so that the call has reached it and is unanswered when the agent dies
    let soul = world.pid("soul");
    pause(soul);
    let second = chat.new_session();
    let prompt = chat.begin(&second, "write it down");
    chat.update("tool_call");
    let agent = world.kill("agent");
    resume(soul);
    world.back("agent", agent);
    let reply = chat.finish(prompt);
    assert_eq!(reply.outcome.as_ref().unwrap()["stopReason"], "end_turn", "{reply:?}");
    let journal = world.lisa(&["soul", "show", "journal"]).ok();
    assert_eq!(journal.matches("only once").count(), 2, "once a turn: {journal}");
    world.soul_is_whole();
}

#[test]
fn a_prompt_that_outlives_three_agents_ends_with_a_plain_statement() {
    let model = Model::start(|_, number| match number {
        0..3 => Answer::HangsAfter("well ".into()),
        _ => Answer::Says("here I am".into()),
    });
    // a silence longer than the test, so that only the deaths can end the turn
    let world = World::configured(&model.config().replace("\"2s\"", "\"5m\""));
    world.up_and_born();
    let mut chat = world.chat();
    let session = chat.new_session();
    let prompt = chat.begin(&session, "count");
    for lives in 1..=3 {
        eventually(secs(20), "this life asks the model", || (model.requests().len() >= lives).then_some(()));
        let agent = world.kill("agent");
        world.back("agent", agent);
    }
    let reply = chat.finish(prompt);
    assert_eq!(reply.outcome.as_ref().unwrap()["_meta"]["lisa"]["interrupted"], true, "{reply:?}");
    assert!(reply.notes.contains("[interrupted:"), "{reply:?}");
    assert_eq!(chat.say(&session, "hello").text, "here I am", "the session goes on");
}

#[test]
fn s6_b5_a_killed_supervisor_leaves_no_process_and_the_next_goes_on_from_there() {
    let world = World::new();
    world.up_and_born();
    world.lisa(&["chat", "change your identity to a heron"]).ok();
    world.kill_supervisor();
    eventually(secs(2), "no process is left", || world.alive().is_empty().then_some(()));
    assert_eq!(world.lisa(&["status"]).code, 69);
    world.up();
    assert!(world.lisa(&["chat", "who are you?"]).ok().contains("a heron"));
    assert_eq!(world.status()["epoch"], 2);
    let kinds: Vec<_> = world.lisa(&["events", "--json"]).json_lines();
    assert!(kinds.iter().any(|event| event["epoch"] == 1) && kinds.iter().any(|event| event["epoch"] == 2));
    world.soul_is_whole();
}

#[test]
fn s6_a_supervisor_killed_in_mid_reply_loses_no_word_of_the_person() {
    let model = Model::start(|_, _| Answer::HangsAfter("well ".into()));
    let world = World::configured(&model.config());
    world.up_and_born();
    let mut chat = world.chat();
    let session = chat.new_session();
    chat.begin(&session, "remember the lighthouse");
    chat.update("agent_message_chunk");
    world.kill_supervisor();
    eventually(secs(2), "no process is left", || world.alive().is_empty().then_some(()));
    world.up();
    let mut chat = world.chat();
    chat.ask("session/load", json!({"sessionId": session, "cwd": "/", "mcpServers": []})).unwrap();
    assert_eq!(chat.update("user_message_chunk")["content"]["text"], "remember the lighthouse");
}
