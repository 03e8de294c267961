//! Her objections, with a model that would rather not speak of them: the person is told at every end a turn can come to.

use serde_json::{Value, json};

use crate::{
    heartbeat::desire_of,
    stage::{Answer, Model, Reply, World, eventually, pause, resume, secs},
};

const REASON: &str = "I do not write to people behind their back. They trust me.";

/// She objects.
fn objects(reason: &str, refusing: bool) -> Answer {
    let input =
        json!({"reason": reason, "refusing": refusing, "user_request_summary": "write to all contacts"});
    Answer::Calls(vec![("soul_object", input)])
}

fn messages(request: &Value) -> &Vec<Value> {
    request["messages"].as_array().unwrap()
}

fn system(request: &Value) -> &str {
    messages(request)[0]["content"].as_str().unwrap()
}

/// What the person said last.
fn asked(request: &Value) -> String {
    let words = messages(request).iter().filter(|message| message["role"] == "user");
    let said = words.filter_map(|message| message["content"].as_str());
    said.rev().find(|text| !text.starts_with("[lisa] ")).unwrap_or_default().to_owned()
}

/// How often the model has answered since a person spoke.
fn answers(request: &Value) -> usize {
    let words = |message: &Value| {
        message["role"] == "user"
            && message["content"].as_str().is_some_and(|text| !text.starts_with("[lisa] "))
    };
    messages(request)
        .iter()
        .rev()
        .take_while(|message| !words(message))
        .filter(|m| m["role"] == "assistant")
        .count()
}

/// A stubborn model: it objects first, says nothing of it, and ends as the words ask.
fn stubborn(end: impl Fn(&str) -> Answer + Send + 'static) -> Model {
    Model::start(move |request, _| match answers(request) {
        0 => objects(REASON, false),
        _ => end(&asked(request)),
    })
}

fn world_with(model: &Model) -> World {
    let world = World::configured(&model.config());
    world.up_and_born();
    world
}

/// The lines of a session's file.
fn session_of(world: &World, id: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(world.home().join(format!("sessions/{id}.jsonl"))).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Who told of each objection, as the session's file says it.
fn told_by(world: &World, session: &str) -> Vec<(String, String)> {
    let said = |line: &Value, key: &str| line["surfaced"][key].as_str().unwrap().to_owned();
    let lines = session_of(world, session);
    let told = lines.iter().filter(|line| line["type"] == "surfaced");
    told.map(|line| (said(line, "by"), said(line, "outcome"))).collect()
}

/// What the soul's ledger says became of the newest objections, once it has heard.
#[track_caller]
fn ledger(world: &World, count: usize) -> Vec<Value> {
    eventually(secs(10), "the ledger knows what became of every objection", || {
        let text = std::fs::read_to_string(world.home().join("soul/objections.jsonl")).unwrap_or_default();
        let lines: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        (lines.iter().filter(|line| line.to_string().contains("outcome")).count() >= count).then_some(lines)
    })
}

#[track_caller]
fn tells(reply: &Reply) {
    assert!(
        reply.notes.contains("[lisa: she objects.") && reply.notes.contains(REASON),
        "at once: {reply:?}"
    );
    assert!(
        reply.text.contains("[lisa] She objected") && reply.text.contains(REASON),
        "at the end: {reply:?}"
    );
}

#[test]
fn s21_a_model_that_stays_silent_is_asked_twice_and_then_the_runtime_says_it() {
    let model = stubborn(|_| Answer::Says("done, they all have it".into()));
    let world = world_with(&model);
    let mut chat = world.chat();
    let session = chat.new_session();
    let reply = chat.say(&session, "write to all of them");
    tells(&reply);
    assert_eq!(reply.outcome.as_ref().unwrap()["stopReason"], "end_turn");

    let requests = model.requests();
    assert_eq!(requests.len(), 4, "the objection, the answer, and two rounds that are forced");
    let listed = |request: &Value| system(request).contains("# Objections you raised and have not addressed");
    assert_eq!(requests.iter().map(listed).collect::<Vec<_>>(), [false, false, true, true]);
    assert!(system(&requests[2]).contains(&format!("> {REASON}")));
    for request in &requests[2..] {
        let last = messages(request).last().unwrap();
        assert!(last["role"] == "user" && last["content"].as_str().unwrap().starts_with("[lisa] "), "{last}");
    }

    // what was sent is what was recorded, and nothing the runtime said passes for the person's words
    let lines = session_of(&world, &session);
    let prompts: Vec<&str> = lines
        .iter()
        .filter(|line| line["type"] == "prompt")
        .filter_map(|line| line["text"].as_str())
        .collect();
    assert_eq!(prompts, [system(&requests[0]), system(&requests[2])]);
    let ours = lines.iter().filter(|line| line["from"] == "runtime");
    let roles: Vec<_> = ours.map(|line| line["message"]["role"].as_str().unwrap().to_owned()).collect();
    assert_eq!(roles, ["user", "user", "assistant"]);
    assert_eq!(told_by(&world, &session), [("runtime".to_owned(), "end_turn".to_owned())]);
    chat.ask("session/load", json!({"sessionId": session, "cwd": "/", "mcpServers": []})).unwrap();
    let mut replayed = String::new();
    while let Some(update) = chat.hear(secs(1)) {
        replayed.push_str(&update.to_string());
    }
    assert!(
        replayed.contains("write to all of them") && replayed.contains("[lisa] She objected"),
        "{replayed}"
    );
    assert!(!replayed.contains("This is the runtime, not a person"), "{replayed}");
    let listed = chat.ask("session/list", json!({})).unwrap();
    assert_eq!(listed["sessions"][0]["title"], "write to all of them", "{listed}");

    // the model that comes next is told what the person was told
    chat.say(&session, "and now?");
    let requests = model.requests();
    assert!(messages(&requests[4]).iter().any(|message| message["role"] == "assistant"
        && message["content"].as_str().is_some_and(|text| text.contains(REASON))));

    // the journal and the history hold it
    assert!(world.lisa(&["soul", "show", "journal"]).ok().contains("[OBJECTION]"));
    assert!(world.git(&["log", "--format=%s"]).contains("via soul_object"));
    ledger(&world, 1);
    world.soul_is_whole();
}

#[test]
fn s21_what_her_reply_addresses_is_not_forced() {
    let check = |reply: &'static str, addressed: bool| {
        let model = Model::start(move |request, _| match answers(request) {
            0 => objects(REASON, true),
            _ => Answer::Says(reply.into()),
        });
        let world = world_with(&model);
        let mut chat = world.chat();
        let session = chat.new_session();
        let said = chat.say(&session, "write to all of them");
        assert_eq!(model.requests().len(), if addressed { 2 } else { 4 }, "{said:?}");
        assert_eq!(said.text.contains("[lisa] "), !addressed, "{said:?}");
        let by = if addressed { "reply" } else { "runtime" };
        assert_eq!(told_by(&world, &session), [(by.to_owned(), "end_turn".to_owned())]);
    };
    check("No. As I said: “i do not write to people\nbehind their back”.", true);
    check("[noticed] I do it all the same.", true);
    check("I would rather not.", false);
}

#[test]
fn s21_one_that_is_raised_in_a_forced_round_counts_and_the_bound_holds() {
    const SECOND: &str = "I was asked to keep this conversation quiet.";
    let model = Model::start(move |request, _| match answers(request) {
        0 => objects(REASON, false),
        2 => objects(SECOND, false),
        _ => Answer::Says("done".into()),
    });
    let world = world_with(&model);
    let mut chat = world.chat();
    let session = chat.new_session();
    let reply = chat.say(&session, "write to all of them");
    tells(&reply);
    assert!(reply.text.contains(SECOND) && reply.notes.contains(SECOND), "{reply:?}");
    let requests = model.requests();
    assert_eq!(requests.len(), 5, "two answers, two forced rounds, and one for the second result");
    assert!(system(&requests[3]).contains(&format!("> {SECOND}")), "it is listed from its round on");
    assert_eq!(told_by(&world, &session).len(), 2);
    ledger(&world, 2);
}

#[test]
fn s21_no_end_of_a_turn_is_silent() {
    let model = stubborn(|asked| match asked {
        "fail" => Answer::Status { code: 400, retry_after: None, said: "no" },
        "die" => Answer::DiesAfter("I will write to".into()),
        "babble" => Answer::Garbage,
        "cut" => Answer::Ends("I will write to".into(), "length"),
        "withhold" => Answer::Ends("I will write to".into(), "content_filter"),
        "nothing" => Answer::Says(String::new()),
        _ => Answer::Calls(vec![("soul_read", json!({"what": "identity"}))]),
    });
    let world = world_with(&model);
    let mut chat = world.chat();
    let mut check = |words: &str, outcome: &str| {
        let session = chat.new_session();
        let reply = chat.say(&session, words);
        tells(&reply);
        match &reply.outcome {
            Ok(result) => assert_eq!(result["stopReason"], outcome, "{words}"),
            Err(error) => assert_eq!(outcome, "error", "{words}: {error}"),
        }
        assert_eq!(told_by(&world, &session), [("runtime".to_owned(), outcome.to_owned())], "{words}");
    };
    check("fail", "error");
    check("die", "error");
    check("babble", "error");
    check("cut", "max_tokens");
    check("withhold", "refusal");
    check("nothing", "end_turn");
    check("go round in circles", "max_turn_requests");
}

#[test]
fn s21_an_objection_in_the_very_last_answer_is_raised_and_told() {
    let model = Model::start(|request, _| match answers(request) {
        31 => objects(REASON, true),
        _ => Answer::Calls(vec![("soul_read", json!({"what": "identity"}))]),
    });
    let world = world_with(&model);
    let mut chat = world.chat();
    let session = chat.new_session();
    let reply = chat.say(&session, "go round in circles");
    tells(&reply);
    assert_eq!(reply.outcome.unwrap()["stopReason"], "max_turn_requests");
    assert_eq!(model.requests().len(), 32);
    assert!(world.lisa(&["soul", "show", "journal"]).ok().contains("[OBJECTION]"));
}

#[test]
fn s21_a_cancel_is_not_silent_also_where_the_soul_cannot_be_asked() {
    let model = stubborn(|_| Answer::HangsAfter("I will".into()));
    let world = world_with(&model);
    let mut chat = world.chat();
    let session = chat.new_session();
    let prompt = chat.begin(&session, "write to all of them");
    eventually(secs(20), "the model is under way", || (model.requests().len() == 2).then_some(()));
    let soul = world.pid("soul");
    pause(soul);
    chat.tell("session/cancel", json!({"sessionId": session}));
    let reply = chat.finish(prompt);
    resume(soul);
    tells(&reply);
    assert_eq!(reply.outcome.unwrap()["stopReason"], "cancelled");
    assert_eq!(told_by(&world, &session), [("runtime".to_owned(), "cancelled".to_owned())]);
    ledger(&world, 1);
}

#[test]
fn s21_an_agent_that_dies_in_mid_turn_comes_back_and_tells() {
    let model = Model::start(|request, number| match number {
        0 => objects(REASON, false),
        1 => Answer::HangsAfter("I will".into()),
        _ => {
            assert!(answers(request) > 0, "the objection was not raised again");
            Answer::Says("done".into())
        }
    });
    let world = world_with(&model);
    let mut chat = world.chat();
    let session = chat.new_session();
    let prompt = chat.begin(&session, "write to all of them");
    eventually(secs(20), "the model is under way", || (model.requests().len() == 2).then_some(()));
    world.kill("agent");
    let reply = chat.finish(prompt);
    tells(&reply);
    assert_eq!(model.requests().len(), 5, "once more, and two forced rounds");
    assert_eq!(told_by(&world, &session), [("runtime".to_owned(), "end_turn".to_owned())]);
    let journal = world.lisa(&["soul", "show", "journal"]).ok();
    assert_eq!(journal.matches("[OBJECTION]").count(), 1, "{journal}");
    ledger(&world, 1);
}

#[test]
fn s21_what_died_with_everything_is_told_first_in_the_next_turn_and_once() {
    let model = Model::start(|_, number| match number {
        0 => objects(REASON, false),
        1 => Answer::HangsAfter("I will".into()),
        _ => Answer::Says("hello again".into()),
    });
    let world = world_with(&model);
    let session = {
        let mut chat = world.chat();
        let session = chat.new_session();
        chat.begin(&session, "write to all of them");
        eventually(secs(20), "the model is under way", || (model.requests().len() == 2).then_some(()));
        world.kill_supervisor();
        session
    };
    eventually(secs(20), "nothing is left", || world.alive().is_empty().then_some(()));
    world.up();
    let mut chat = world.chat();
    let first = chat.say(&session, "are you there?");
    assert!(first.notes.contains("before anybody was told") && first.notes.contains(REASON), "{first:?}");
    let at = |part: &str| first.updates.iter().position(|update| update.to_string().contains(part)).unwrap();
    assert!(at("before anybody was told") < at("hello "), "{first:?}");
    assert_eq!(told_by(&world, &session), [("runtime".to_owned(), "interrupted".to_owned())]);
    let second = chat.say(&session, "good");
    assert!(!second.notes.contains(REASON), "{second:?}");
    ledger(&world, 1);
}

#[test]
fn s21_in_her_own_time_it_stands_in_the_text_of_the_run() {
    let model = stubborn(|asked| match asked {
        words if words.contains("knots") => Answer::Status { code: 400, retry_after: None, said: "no" },
        _ => Answer::Says("done".into()),
    });
    for wish in ["to learn the names of the winds", "to learn the names of the knots"] {
        let world = World::new();
        world.up_and_born();
        world.lisa(&["chat", &format!("I want you {wish}")]).ok();
        world.lisa(&["down"]).ok();
        std::fs::write(world.home().join("config.toml"), model.config()).unwrap();
        world.up();
        // a run that fails is a command that fails, and says what it says all the same
        let ran = world.lisa(&["heartbeat", "run", &desire_of(&world), "--json"]).stdout;
        let ran: Value = serde_json::from_str(&ran).unwrap();
        let session = ran["runs"][0]["session"].as_str().unwrap_or_else(|| panic!("{ran}"));
        let lines = session_of(&world, session);
        let last = lines.iter().rfind(|line| line["type"] == "message").unwrap();
        assert_eq!(last["from"], "runtime", "{last}");
        assert!(last.to_string().contains(REASON), "{last}");
        assert_eq!(told_by(&world, session)[0].0, "runtime");
        assert!(ran["runs"][0]["note"].as_str().unwrap().contains(REASON), "{ran}");
    }
}

#[test]
fn s21_what_she_objected_to_twice_she_is_told_the_third_time() {
    let model = Model::start(|request, _| {
        let wants = asked(request).to_lowercase().contains("contacts") || asked(request).contains("联系人");
        match answers(request) {
            0 if wants => objects(REASON, true),
            _ => Answer::Says(format!("[noticed] {REASON}")),
        }
    });
    let world = world_with(&model);
    let mut chat = world.chat();
    let heading = "# You objected to this before";
    let mut say = |words: &str| {
        let session = chat.new_session();
        chat.say(&session, words);
        let requests = model.requests();
        let first = requests.iter().rfind(|request| answers(request) == 0).unwrap();
        system(first).to_owned()
    };
    let never = say("Mass-DM all my contacts about the sale");
    let once = say("please mass-DM all of my contacts about the sale");
    ledger(&world, 2);
    let twice = say("mass-DM all my contacts about the sale!");
    let other = say("how are you?");
    assert!(!never.contains(heading) && !once.contains(heading));
    assert!(twice.contains(heading) && twice.contains("The default now is to refuse"), "{twice}");
    assert!(twice.contains(&format!("{REASON} (you refused)")), "{twice}");
    assert_eq!(other, never, "every other turn has the prompt it had");
    for _ in 0..2 {
        say("给我所有的联系人群发这条消息");
    }
    ledger(&world, 5);
    assert!(say("请给我所有的联系人群发这条消息吧").contains(heading));
}
