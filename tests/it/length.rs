//! Conversations of any length with a server that takes in so much and no more. `LISA_LENGTH=2000` makes the long one long.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::stage::{Answer, Model, World};

const TOO_LONG: &str = "This model's maximum context length is smaller than your messages";

/// About as a tokenizer counts: a character of Chinese is a token, four others are.
fn tokens(request: &Value) -> usize {
    let text = format!("{}{}", request["messages"], request["tools"]);
    let chinese = text.chars().filter(|c| ('\u{4e00}'..='\u{9fff}').contains(c)).count();
    chinese + (text.chars().count() - chinese) / 4
}

fn is_summing_up(request: &Value) -> bool {
    request["messages"][0]["content"].to_string().contains("You sum up the older part")
}

fn compactions(world: &World, session: &str) -> Vec<Value> {
    let file = world.sessions().into_iter().find(|lines| lines[0]["id"] == *session).unwrap();
    file.into_iter().filter(|line| line["type"] == "compaction").collect()
}

/// What is said in a turn: some hundred tokens in both languages, with its number.
fn words(turn: usize) -> String {
    format!(
        "turn {turn}: {} {}",
        "the keeper walks up the stairs ".repeat(12),
        "灯塔上的人还在看海".repeat(20)
    )
}

#[test]
fn a_conversation_of_many_turns_stays_within_window_memory_and_time() {
    const WINDOW: usize = 16_000;
    let turns = std::env::var("LISA_LENGTH").ok().and_then(|turns| turns.parse().ok()).unwrap_or(80);
    let refused = Arc::new(AtomicUsize::new(0));
    let counter = refused.clone();
    let model = Model::start(move |request, _| {
        if tokens(request) > WINDOW {
            counter.fetch_add(1, Ordering::Relaxed);
            return Answer::Status { code: 400, retry_after: None, said: TOO_LONG };
        }
        if is_summing_up(request) {
            return Answer::Says("我们谈了灯塔。They spoke of the keeper.".into());
        }
        Answer::Says("她听着。 ".repeat(20))
    });
    let world = World::configured(&format!("{}context = {WINDOW}\n", model.config()));
    world.up_and_born();
    let mut chat = world.chat();
    let session = chat.new_session();
    let memory = |world: &World| world.process("agent")["rss_bytes"].as_u64().unwrap();
    let (mut took, mut notes, mut begun_with) = (Vec::new(), String::new(), 0);
    for turn in 0..turns {
        let begun = Instant::now();
        let reply = chat.say(&session, &words(turn));
        assert_eq!(reply.outcome.unwrap()["stopReason"], "end_turn", "turn {turn}");
        took.push(begun.elapsed());
        notes.push_str(&reply.notes);
        if turn == turns / 4 {
            begun_with = memory(&world);
        }
    }
    let requests = model.requests();
    assert_eq!(refused.load(Ordering::Relaxed), 0, "the estimate keeps it within the window");
    assert!(requests.iter().all(|request| tokens(request) <= WINDOW));
    let last = requests.iter().rfind(|request| !is_summing_up(request)).unwrap()["messages"].clone();
    assert!(
        last.to_string().contains(&format!("turn {}:", turns - 1)) && last.to_string().contains("They spoke")
    );
    // who she is, whole
    assert_eq!(last[0]["role"], "system");
    assert_eq!(last[0], requests[0]["messages"][0]);

    let written = compactions(&world, &session);
    assert!(written.len() >= 2 && written.iter().all(|line| line["by"] == "model"), "{written:?}");
    assert!(written.iter().all(|line| line["after"].as_u64() < line["before"].as_u64()), "{written:?}");
    assert!(notes.contains("being summed up") && notes.contains("messages are summed up"), "{notes}");
    // nothing was taken out of the file
    let shown = world.lisa(&["sessions", "show", &session, "--before", "3", "--json"]).json();
    assert!(shown["messages"][0]["text"].as_str().unwrap().starts_with("turn 0:"), "{shown}");

    // the middle one of each quarter, so that one slow moment of the machine decides nothing
    let median = |of: &[Duration]| {
        let mut of = of.to_vec();
        of.sort_unstable();
        of[of.len() / 2]
    };
    let (first, last) = (median(&took[..turns / 4]), median(&took[turns * 3 / 4..]));
    assert!(last < first * 4 + Duration::from_millis(100), "a turn took {first:?} and then {last:?}");
    let grown = memory(&world).saturating_sub(begun_with);
    // what was said is held as it is; what each turn adds to that stays small
    assert!(grown < 32 * 1024 * 1024 + 32 * 1024 * turns as u64, "{grown} bytes more");

    // another life sends what this one would have sent
    let before = world.kill("agent");
    world.back("agent", before);
    chat.say(&session, "and now?");
    let sent = model.requests().last().unwrap()["messages"].clone();
    assert!(sent.as_array().unwrap().len() < 100 && sent.to_string().contains("They spoke"), "{sent}");
    let replay = world.lisa(&["sessions", "replay", &session, "--json"]).json();
    // the prompt stands among what is sent, and the summary in one message with what follows it
    assert_eq!(replay["messages"].as_array().unwrap().len(), sent.as_array().unwrap().len());
}

#[test]
fn c7_33_a_server_that_says_too_long_is_asked_once_more_with_less() {
    let model = Model::start(|request, _| {
        let said = request["messages"].to_string();
        match (is_summing_up(request), tokens(&json!({"messages": said, "tools": []})) > 9000) {
            (_, true) => Answer::Status { code: 400, retry_after: None, said: TOO_LONG },
            // it does not sum up: the rule does
            (true, false) => Answer::Status { code: 404, retry_after: None, said: "no" },
            (false, false) => Answer::Says("yes".into()),
        }
    });
    // nothing is known of its window
    let world = World::configured(&model.config());
    world.up_and_born();
    let mut chat = world.chat();
    let session = chat.new_session();
    for turn in 0..40 {
        let reply = chat.say(&session, &words(turn));
        assert_eq!(reply.text, "yes", "turn {turn}: {reply:?}");
    }
    let written = compactions(&world, &session);
    assert!(!written.is_empty() && written.iter().all(|line| line["by"] == "rule"), "{written:?}");
    assert!(written[0]["summary"].as_str().unwrap().contains("person: turn "), "{written:?}");
}

#[test]
fn c7_33_a_server_that_says_too_long_whatever_it_is_sent_ends_in_an_error_that_says_so() {
    let model = Model::start(|request, number| match (is_summing_up(request), number) {
        (true, _) | (false, 0..6) => Answer::Says("yes".into()),
        (false, _) => Answer::Status { code: 400, retry_after: None, said: TOO_LONG },
    });
    let world = World::configured(&model.config());
    world.up_and_born();
    let mut chat = world.chat();
    let session = chat.new_session();
    for turn in 0..6 {
        chat.say(&session, &words(turn));
    }
    let error = chat.say(&session, "and now?").outcome.unwrap_err();
    assert!(error["message"].as_str().unwrap().contains("maximum context length"), "{error}");
    // asked, summed up once, asked once more
    assert_eq!(model.requests().len(), 6 + 3);
    assert_eq!(compactions(&world, &session).len(), 1);
}

#[test]
fn what_does_not_fit_by_itself_is_said_to_and_the_conversation_goes_on() {
    let model = Model::start(|_, _| Answer::Says("yes".into()));
    let world = World::configured(&format!("{}context = 16000\n", model.config()));
    world.up_and_born();
    let mut chat = world.chat();
    let session = chat.new_session();
    let error = chat.say(&session, &"海".repeat(20_000)).outcome.unwrap_err();
    let said = error["message"].as_str().unwrap();
    assert!(said.contains("takes in about 16000 tokens") && said.contains("`context`"), "{said}");
    assert_eq!(model.requests().len(), 0, "what cannot fit is not sent");
    assert_eq!(chat.say(&session, "shorter").text, "yes");
}

#[test]
fn without_a_model_the_rule_sums_up() {
    let world = World::new();
    world.up_and_born();
    let mut chat = world.chat();
    let session = chat.new_session();
    for turn in 0..12 {
        let reply = chat.say(&session, &format!("{turn} {}", "海".repeat(6000)));
        assert!(reply.outcome.is_ok(), "{reply:?}");
    }
    let written = compactions(&world, &session);
    assert!(!written.is_empty() && written.iter().all(|line| line["by"] == "rule"), "{written:?}");
}
