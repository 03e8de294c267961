//! A model on loopback that streams, dies, babbles, hangs or says no: an answer, or a clear error; never a hang.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::stage::{Answer, Model, World, birth_words, secs};

/// Asks once and returns the reply, which must come in reasonable time.
#[track_caller]
fn ask(
    script: impl FnMut(&serde_json::Value, usize) -> Answer + Send + 'static,
) -> (crate::stage::Reply, Model, World) {
    let model = Model::start(script);
    let world = World::configured(&model.config());
    world.up_and_born();
    let mut chat = world.chat();
    let session = chat.new_session();
    let begun = Instant::now();
    let reply = chat.say(&session, "hello");
    assert!(begun.elapsed() < secs(45), "{:?}", begun.elapsed());
    (reply, model, world)
}

#[track_caller]
fn said(reply: &crate::stage::Reply) -> &str {
    reply.outcome.as_ref().expect_err("it is an error")["message"].as_str().unwrap()
}

#[test]
fn s7_g12_g14_a_model_that_streams_is_heard_and_calls_real_tools() {
    let (reply, model, world) = ask(|request, _| {
        if request["messages"].as_array().unwrap().iter().any(|message| message["role"] == "tool") {
            return Answer::Says("I hum now. 你好 🌍".into());
        }
        Answer::Calls(vec![
            ("soul_patch", json!({"field": "identity", "content": "a keeper who hums", "why": "asked"})),
            ("soul_journal", json!({"entry": "I changed."})),
        ])
    });
    assert_eq!(reply.text, "I hum now. 你好 🌍", "{reply:?}");
    assert_eq!(reply.tools(), ["soul_patch identity", "soul_journal"]);
    let requests = model.requests();
    assert_eq!(requests.len(), 2);
    // the model was sent the rebuilt prompt with the results: mid-turn edits reach the next call
    assert!(requests[1]["messages"][0]["content"].as_str().unwrap().contains("a keeper who hums"));
    assert_eq!(requests[1]["messages"].as_array().unwrap().iter().filter(|m| m["role"] == "tool").count(), 2);
    assert!(requests[0]["tools"].as_array().unwrap().len() >= 5);
    let message = world.git(&["log", "-1", "--format=%b", "--", "identity.md"]);
    assert!(message.contains("Origin: chat") && message.contains("Model: openai/play"), "{message}");
    assert_eq!(world.status()["model"], "openai/play");
}

#[test]
fn s7_birth_is_worded_by_the_model_when_there_is_one() {
    let (_, _, world) = ask(|_, _| Answer::Says("hi".into()));
    assert_eq!(world.status()["soul"]["name"], "Mira");
    assert_eq!(world.lisa(&["soul", "show", "identity"]).ok().trim(), "I am new.");
    assert_eq!(world.git(&["log", "--oneline"]).lines().count(), 1);
}

#[test]
fn birth_b1_b2_two_failures_leave_no_self_and_the_next_word_tries_again() {
    let words = || {
        let request = json!({"messages": [{"role": "system", "content": "You give words to a new self"}]});
        birth_words(&request).expect("these are the words")
    };
    // twice nonsense, and then as it should be; every birth asks at most twice
    let model = Model::start_unborn(move |_, number| match number {
        0 | 1 => Answer::Says("I would rather not.".into()),
        2 => words(),
        _ => Answer::Says("hello".into()),
    });
    let world = World::configured(&model.config());
    let up = world.lisa(&["up", "--detach"]);
    assert!(up.code == 0 && up.stderr.contains("not born yet") && up.stderr.contains("offline"), "{up:?}");
    assert_eq!(model.requests().len(), 2);
    assert!(!world.home().join("soul/seed.json").exists(), "no half-born self");
    assert!(world.status()["notices"].to_string().contains("not born yet"));
    let hello = world.lisa(&["chat", "hello"]);
    assert_eq!(hello.ok().trim(), "hello");
    assert_eq!((model.requests().len(), world.status()["soul"]["name"].as_str()), (4, Some("Mira")));
    assert_eq!(world.status()["notices"], json!([]));
    // b3: whoever is born is not born again
    world.lisa(&["down"]).ok();
    world.up();
    assert_eq!(world.git(&["log", "--oneline"]).lines().count(), 1);
}

#[test]
fn c7_17_g9_a_stream_that_ends_in_the_middle_is_an_error_and_no_answer() {
    let (reply, _, world) = ask(|_, _| Answer::DiesAfter("I will now tell you the".into()));
    let why = said(&reply).to_owned();
    assert!(why.contains("openai/play"), "{why}");
    let kept = world.sessions().into_iter().flatten().any(|line| line["message"]["role"] == "assistant");
    assert!(!kept, "a truncated reply is not taken as whole");
    // the session goes on when the model does
    assert_eq!(world.lisa(&["status"]).code, 0);
}

#[test]
fn s7_what_is_no_stream_is_said_to_be_none() {
    let (reply, _, _world) = ask(|_, _| Answer::Garbage);
    assert!(said(&reply).contains("text/html"), "{reply:?}");
}

#[test]
fn c7_19_a_429_is_waited_out_as_long_as_it_says() {
    let begun = Instant::now();
    let (reply, model, _world) = ask(|_, number| match number {
        0 => Answer::Status { code: 429, retry_after: Some(1), said: "slow down" },
        _ => Answer::Says("hello".into()),
    });
    assert_eq!(reply.text, "hello", "{reply:?}");
    assert_eq!(model.requests().len(), 2);
    assert!(begun.elapsed() >= Duration::from_secs(1));
}

#[test]
fn s7_a_refusal_that_waiting_does_not_mend_is_said_at_once() {
    let (reply, model, _world) = ask(|_, _| Answer::Status { code: 401, retry_after: None, said: "bad key" });
    let why = said(&reply);
    assert!(why.contains("401") && why.contains("bad key"), "{why}");
    assert_eq!(model.requests().len(), 1, "it is not asked again");
}

#[test]
fn c7_21_a_model_that_falls_silent_is_given_up() {
    let (reply, _, _world) = ask(|_, _| Answer::HangsAfter("well".into()));
    assert!(!said(&reply).is_empty());
}

#[test]
fn g15_a_tool_that_does_not_exist_and_input_that_does_not_fit_are_told_and_the_turn_goes_on() {
    let (reply, model, world) = ask(|_, number| match number {
        0 => Answer::Calls(vec![
            ("no_such_tool", json!({})),
            ("soul_patch", json!({"field": "identity", "content": "  \n "})),
        ]),
        _ => Answer::Says("I see.".into()),
    });
    assert_eq!(reply.text, "I see.", "{reply:?}");
    let results: Vec<_> = model.requests()[1]["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| message["content"].as_str().unwrap().to_owned())
        .collect();
    assert!(results[0].contains("no_such_tool") && results[1].contains("identity"), "{results:?}");
    assert_eq!(world.git(&["log", "--oneline"]).lines().count(), 1, "nothing was written");
}

#[test]
fn g8_a_cancel_ends_the_turn_and_the_session_goes_on() {
    let model = Model::start(|_, number| match number {
        0 => Answer::HangsAfter("well ".into()),
        _ => Answer::Says("yes".into()),
    });
    let world = World::configured(&model.config().replace("\"2s\"", "\"5m\""));
    world.up_and_born();
    let mut chat = world.chat();
    let session = chat.new_session();
    let prompt = chat.begin(&session, "hello");
    chat.update("agent_message_chunk");
    chat.tell("session/cancel", json!({"sessionId": session}));
    assert_eq!(chat.finish(prompt).outcome.unwrap()["stopReason"], "cancelled");
    assert_eq!(chat.say(&session, "hello?").text, "yes");
}

#[test]
fn g4_g5_g6_an_answer_of_nothing_is_said_and_not_kept_and_the_next_turn_is_in_order() {
    let model = Model::start(|_, number| match number {
        0 => Answer::Says(String::new()),
        _ => Answer::Says("yes".into()),
    });
    let world = World::configured(&model.config());
    world.up_and_born();
    let mut chat = world.chat();
    let session = chat.new_session();
    let nothing = chat.say(&session, "hello");
    assert!(nothing.outcome.is_ok() && nothing.notes.contains("answered nothing"), "{nothing:?}");
    let said = |world: &World| -> Vec<serde_json::Value> {
        let lines = world.sessions().into_iter().flatten();
        lines.filter(|line| line["message"]["role"] == "assistant").collect()
    };
    assert_eq!(said(&world), Vec::<serde_json::Value>::new());
    assert_eq!(chat.say(&session, "hello?").text, "yes");
    assert_eq!(said(&world).len(), 1);
    let last = model.requests().pop().unwrap();
    let roles: Vec<_> =
        last["messages"].as_array().unwrap().iter().filter_map(|m| m["role"].as_str()).collect();
    assert!(!roles.contains(&"assistant") && roles.last() == Some(&"user"), "{roles:?}");
}
