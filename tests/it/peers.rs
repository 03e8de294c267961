//! Servers that others made, from packages, on loopback: llama-server, aimock, llmock. Where one is not installed its tests
//! say so and are skipped; `tests/peers/install.sh` installs them.

use serde_json::{Value, json};

use crate::stage::{Peer, Prompt, Prompter, Reply, World, answer_of, peer};

/// Somebody who was born without a model, since these models have no first words; they think from here on.
struct House {
    world: World,
}

impl House {
    fn new() -> Self {
        let world = World::new();
        world.up_and_born();
        Self { world }
    }

    fn thinks_with(&self, provider: &str, base_url: &str) {
        self.world.lisa(&["down"]).ok();
        let config = format!(
            "[model]\nprovider = \"{provider}\"\nname = \"play\"\nbase_url = \"{base_url}\"\nsilence_max = \"2s\"\n"
        );
        std::fs::write(self.world.home().join("config.toml"), config).unwrap();
        std::fs::write(self.world.home().join("config.env"), "ANTHROPIC_API_KEY=test\nOPENAI_API_KEY=test\n")
            .unwrap();
        self.world.up();
    }

    fn say(&self, text: &str) -> (String, Reply) {
        let mut chat = self.world.chat();
        let session = chat.new_session();
        let reply = chat.say(&session, text);
        (session, reply)
    }

    fn session(&self, id: &str) -> Vec<Value> {
        let file = self.world.home().join(format!("sessions/{id}.jsonl"));
        let text = std::fs::read_to_string(file).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn log(&self) -> std::path::PathBuf {
        self.world.folder().join("peer.log")
    }
}

fn blocks(session: &[Value], kind: &str) -> Vec<Value> {
    let all = session.iter().flat_map(|line| line["message"]["content"].as_array().into_iter().flatten());
    all.filter(|block| block["type"] == kind).cloned().collect()
}

/// What llama-server says of an answer of its model in which it does not find the form of one.
const FORMLESS: &str = "does not match the expected";
/// How often somebody who knows nothing is asked for an answer that has a form.
const ASKED_MAX: usize = 10;

/// Asks until an answer has a form and is what is wanted: what a model of random weights says is chance. Now and then the
/// server finds no form in it, and now and then it calls a tool so often in one answer that it is cut.
fn say_until(house: &House, text: &str, is_wanted: impl Fn(&Reply) -> bool) -> (String, Reply) {
    for _ in 0..ASKED_MAX {
        let (id, reply) = house.say(text);
        match &reply.outcome {
            Ok(_) if is_wanted(&reply) => return (id, reply),
            Ok(outcome) => assert_eq!(outcome["stopReason"], "max_tokens", "{reply:?}"),
            Err(_) => assert!(why(&reply).contains(FORMLESS), "{reply:?}"),
        }
    }
    panic!("not one of {ASKED_MAX} answers had a form")
}

fn why(reply: &Reply) -> &str {
    reply.outcome.as_ref().expect_err("it is an error")["message"].as_str().unwrap()
}

#[test]
fn llama_server_calls_real_tools_and_takes_their_results_in_two_protocols() {
    let Some(folder) = peer("llama") else { return };
    let house = House::new();
    let llama = Peer::llama(&folder, &house.log(), 65_536);
    for provider in ["openai", "anthropic"] {
        let prompter = Prompter::before(llama.port(), Prompt::Call("soul_read"));
        house.thinks_with(provider, &format!("http://127.0.0.1:{}/v1", prompter.port()));
        let (id, reply) = say_until(&house, "who are you? 你好 🌍", |reply| !reply.tools().is_empty());
        // it knows no end, so that the words after the results end where they are cut
        let stop = reply.outcome.as_ref().unwrap()["stopReason"].clone();
        assert!(stop == "end_turn" || stop == "max_tokens", "{provider}: {reply:?}");
        assert!(reply.tools().iter().all(|tool| tool.starts_with("soul_read")), "{provider}: {reply:?}");
        assert!(!reply.text.is_empty(), "{provider}: it spoke after the results: {reply:?}");
        let session = house.session(&id);
        let (calls, results) = (blocks(&session, "tool_use"), blocks(&session, "tool_result"));
        assert_eq!(calls.len(), results.len(), "{provider}: {session:?}");
        // the grammar of the server keeps to our schema: what was asked for exists
        for call in &calls {
            assert!(call["input"]["what"].is_string(), "{provider}: {call}");
        }
        let sent = prompter.requests().pop().unwrap();
        let told = sent["messages"].as_array().unwrap().iter().flat_map(|message| {
            let blocks = message["content"].as_array().cloned().unwrap_or_default();
            let of_blocks = blocks.into_iter().filter(|block| block["type"] == "tool_result");
            of_blocks.chain((message["role"] == "tool").then(|| message.clone()))
        });
        assert_eq!(told.count(), calls.len(), "{provider}: each result went back: {sent}");
    }
}

#[test]
fn llama_server_streams_words_in_three_protocols() {
    let Some(folder) = peer("llama") else { return };
    let house = House::new();
    let llama = Peer::llama(&folder, &house.log(), 65_536);
    let prompter = Prompter::before(llama.port(), Prompt::Speak);
    for provider in ["openai", "anthropic", "responses"] {
        house.thinks_with(provider, &format!("http://127.0.0.1:{}/v1", prompter.port()));
        let (id, reply) = say_until(&house, "hello", |reply| !reply.text.is_empty());
        let chunks = reply.updates.iter().filter(|update| update["sessionUpdate"] == "agent_message_chunk");
        assert!(chunks.count() > 1, "{provider}: it came in pieces: {reply:?}");
        let spent = house.session(&id).last().unwrap()["usage"].clone();
        let read = spent["input"].as_u64().unwrap() + spent["cache_read"].as_u64().unwrap();
        assert!(
            read > 100 && spent["output"].as_u64() > Some(0),
            "{provider}: what it cost is told: {spent}"
        );
    }
}

#[test]
fn llama_server_takes_the_schemas_of_all_her_tools_in_three_protocols() {
    let Some(folder) = peer("llama") else { return };
    let house = House::new();
    let llama = Peer::llama(&folder, &house.log(), 65_536);
    let prompter = Prompter::before(llama.port(), Prompt::Anything);
    for provider in ["openai", "anthropic", "responses"] {
        house.thinks_with(provider, &format!("http://127.0.0.1:{}/v1", prompter.port()));
        let (_, reply) = house.say("hello");
        // it makes a grammar of them before it begins; how it then goes on is chance, and some of it is no format
        if reply.outcome.is_err() {
            assert!(why(&reply).contains(FORMLESS), "{provider}: {reply:?}");
        }
        let sent = prompter.requests().pop().unwrap();
        assert!(sent["tools"].as_array().unwrap().len() > 5, "{provider}: {sent}");
    }
}

#[test]
fn c7_34_llama_server_that_breaks_its_own_format_is_an_error_and_the_session_goes_on() {
    let Some(folder) = peer("llama") else { return };
    let house = House::new();
    let llama = Peer::llama(&folder, &house.log(), 65_536);
    let babbling = Prompter::before(llama.port(), Prompt::Babble("soul_read"));
    house.thinks_with("openai", &format!("http://127.0.0.1:{}/v1", babbling.port()));
    let (id, reply) = house.say("who are you?");
    assert!(why(&reply).contains("openai/play"), "{reply:?}");
    assert!(reply.tools().is_empty(), "what was cut is not run: {reply:?}");
    assert!(blocks(&house.session(&id), "tool_use").is_empty(), "what cannot be read is not kept");
    let speaking = Prompter::before(llama.port(), Prompt::Speak);
    house.thinks_with("openai", &format!("http://127.0.0.1:{}/v1", speaking.port()));
    let mut chat = house.world.chat();
    chat.ask("session/resume", json!({"sessionId": id, "cwd": "/", "mcpServers": []})).unwrap();
    let next = chat.say(&id, "and now?");
    assert!(next.outcome.is_ok() && !next.text.is_empty(), "{next:?}");
}

#[test]
fn c7_33_llama_server_with_too_little_room_is_told_to_the_person_after_a_few_questions() {
    let Some(folder) = peer("llama") else { return };
    let house = House::new();
    let llama = Peer::llama(&folder, &house.log(), 512);
    let prompter = Prompter::before(llama.port(), Prompt::Speak);
    house.thinks_with("openai", &format!("http://127.0.0.1:{}/v1", prompter.port()));
    let (_, reply) = house.say("hello");
    let said = why(&reply);
    assert!(said.contains("openai/play") || said.contains("context"), "{said}");
    assert!(prompter.requests().len() <= 3, "{} questions", prompter.requests().len());
}

#[test]
fn c7_04_c7_16_aimock_calls_two_tools_at_once_and_cuts_characters_in_two_in_four_protocols() {
    let Some(folder) = peer("aimock") else { return };
    let house = House::new();
    let call = |entry: &str| json!({"name": "soul_journal", "arguments": {"entry": entry}});
    let answers = ["openai", "anthropic", "responses", "ollama"].iter().flat_map(|provider| {
        let said = format!("write with {provider}");
        let calls = [call(&format!("🌍🌏 {provider} 灯一")), call(&format!("🌎 {provider} 灯二"))];
        [
            json!({"match": {"userMessage": said, "hasToolResult": false}, "response": {"toolCalls": calls}}),
            json!({"match": {"userMessage": said, "hasToolResult": true},
                "response": {"content": format!("{provider} 写好了 🌍🌏🌎👩‍👩‍👧 done")}}),
        ]
    });
    let fixtures = json!({"fixtures": answers.collect::<Vec<_>>()});
    let aimock = Peer::aimock(&folder, &house.log(), &fixtures);
    for (provider, version) in [("openai", "/v1"), ("anthropic", "/v1"), ("responses", "/v1"), ("ollama", "")]
    {
        house.thinks_with(provider, &format!("http://127.0.0.1:{}{version}", aimock.port()));
        let (id, reply) = house.say(&format!("write with {provider}"));
        assert_eq!(reply.outcome.as_ref().unwrap()["stopReason"], "end_turn", "{provider}: {reply:?}");
        assert_eq!(reply.tools(), ["soul_journal", "soul_journal"], "{provider}: {reply:?}");
        assert_eq!(reply.text, format!("{provider} 写好了 🌍🌏🌎👩‍👩‍👧 done"), "{reply:?}");
        let session = house.session(&id);
        let results = blocks(&session, "tool_result");
        assert_eq!(results.len(), 2, "{provider}: {session:?}");
        let journal = house.world.lisa(&["soul", "show", "journal"]).ok();
        for entry in [format!("🌍🌏 {provider} 灯一"), format!("🌎 {provider} 灯二")] {
            assert_eq!(journal.matches(&entry).count(), 1, "{provider}: {journal}");
        }
    }
}

/// What llmock says of whoever asked it.
fn verdict(port: u16) -> Value {
    let (status, body) = answer_of(port, "GET", "/_llmock/verdict", "").unwrap();
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).unwrap()
}

fn behave(port: u16, behaviors: &Value) {
    answer_of(port, "POST", "/_llmock/reset", "").unwrap();
    let (status, body) =
        answer_of(port, "POST", "/_llmock/scenario", &json!({"behaviors": behaviors}).to_string()).unwrap();
    assert_eq!(status, 201, "{body}");
}

#[test]
fn llmock_fails_a_client_that_asks_again_too_early() {
    let Some(folder) = peer("llmock") else { return };
    let log = tempfile::tempdir().unwrap();
    let llmock = Peer::llmock(&folder, &log.path().join("peer.log"));
    behave(llmock.port(), &json!([{"type": "fail", "status": 429, "retry_after": 5}]));
    let question = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).to_string();
    for _ in 0..2 {
        answer_of(llmock.port(), "POST", "/v1/chat/completions", &question).unwrap();
    }
    assert_ne!(verdict(llmock.port())["passed"], true, "a judge who finds nothing judges nobody");
}

#[test]
fn c7_05_c7_17_c7_18_c7_19_c7_21_llmock_finds_nothing_to_fail_in_her() {
    let Some(folder) = peer("llmock") else { return };
    let house = House::new();
    let llmock = Peer::llmock(&folder, &house.log());
    let journal =
        json!({"type": "reply", "tool_calls": [{"name": "soul_journal", "arguments": {"entry": "灯"}}]});
    let fault = |kind: &str| json!([{"type": "stream_fault", "kind": kind, "after_chunks": 5}]);
    // what goes wrong, how many questions that makes, and whether an answer comes in the end
    let cases = [
        (json!([{"type": "fail", "status": 429, "retry_after": 1, "times": 2}]), 3, true),
        (json!([{"type": "fail", "status": 503}]), 2, true),
        (json!([{"type": "fail", "status": 529}]), 2, true),
        (json!([{"type": "fail", "status": 401}]), 1, false),
        (json!([{"type": "fail", "status": 400}]), 1, false),
        (fault("disconnect"), 1, false),
        (json!([{"type": "stream_fault", "kind": "truncate", "after_chunks": 0}]), 2, true),
        (fault("malformed"), 1, false),
        (
            json!([{"type": "stream_fault", "kind": "stall", "after_chunks": 5, "stall_seconds": 20}]),
            1,
            false,
        ),
        (json!([{"type": "slow_first_token", "seconds": 1}]), 1, true),
        (json!([journal, {"type": "tool_fault", "kind": "malformed_arguments"}]), 2, true),
        (json!([journal, {"type": "tool_fault", "kind": "unknown_tool"}]), 2, true),
    ];
    for (provider, base) in [("openai", "/v1"), ("anthropic", "/anthropic/v1")] {
        house.thinks_with(provider, &format!("http://127.0.0.1:{}{base}", llmock.port()));
        for (behaviors, questions, is_answered) in &cases {
            behave(llmock.port(), behaviors);
            let (id, reply) = house.say(&format!("tell me about {behaviors}"));
            let at = format!("{provider} {behaviors}: {reply:?}");
            assert_eq!(reply.outcome.is_ok(), *is_answered, "{at}");
            let verdict = verdict(llmock.port());
            assert_eq!(verdict["passed"], true, "{at} {verdict}");
            assert_eq!(verdict["attempts"], *questions, "{at} {verdict}");
            let said = house.session(&id).iter().any(|line| line["message"]["role"] == "assistant");
            assert_eq!(said, *is_answered, "{at}: half an answer is none");
        }
    }
    // what was shown in part is told to the person, who asks again, by which the judge knows that it was noticed
    let said = "tell me, and do not stop in the middle";
    behave(llmock.port(), &fault("truncate"));
    assert!(why(&house.say(said).1).contains("try again"));
    assert!(house.say(said).1.outcome.is_ok());
    let verdict = verdict(llmock.port());
    assert_eq!((&verdict["passed"], &verdict["attempts"]), (&json!(true), &json!(2)), "{verdict}");
    let journal = house.world.lisa(&["soul", "show", "journal"]);
    assert!(journal.stderr.contains("no entry"), "no broken call was run: {journal:?}");
}
