//! Each protocol on the real binaries, a model that stands in for another, and a change of model in mid-conversation.

use serde_json::{Value, json};

use crate::stage::{Answer, Dialect, Model, Reply, World};

fn world(config: &str) -> World {
    let world = World::configured(&format!("[model]\n{config}"));
    world.up_and_born();
    world
}

/// Asks once.
fn ask(world: &World) -> Reply {
    let mut chat = world.chat();
    let session = chat.new_session();
    chat.say(&session, "hello")
}

fn why(reply: &Reply) -> String {
    reply.outcome.as_ref().expect_err("it is an error")["message"].as_str().unwrap().to_owned()
}

fn last<'a>(request: &'a Value, role: &str) -> &'a Value {
    request["messages"].as_array().unwrap().iter().rfind(|message| message["role"] == role).unwrap()
}

/// A thought, a hidden one, words and two calls, as Anthropic streams them.
fn thoughtful_calls() -> Vec<Value> {
    let start = |index: u32, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let delta =
        |index: u32, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let stop = |index: u32| json!({"type": "content_block_stop", "index": index});
    let call = |index: u32, name: &str, input: &str| {
        [
            start(
                index,
                json!({"type": "tool_use", "id": format!("toolu_{index}"), "name": name, "input": {}}),
            ),
            delta(index, json!({"type": "input_json_delta", "partial_json": input})),
            stop(index),
        ]
    };
    let before = [
        json!({"type": "message_start", "message": {"content": [], "usage": {"input_tokens": 1}}}),
        start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "Shall I? 好"})),
        delta(0, json!({"type": "signature_delta", "signature": "Eq0B+/=="})),
        stop(0),
        start(1, json!({"type": "redacted_thinking", "data": "EmwKAhgB"})),
        stop(1),
        start(2, json!({"type": "text", "text": ""})),
        delta(2, json!({"type": "text_delta", "text": "I will."})),
        stop(2),
    ];
    let end = [
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}}),
        json!({"type": "message_stop"}),
    ];
    let patch = call(3, "soul_patch", r#"{"field":"identity","content":"a keeper who hums","why":"asked"}"#);
    let journal = call(4, "soul_journal", r#"{"entry":"I changed."}"#);
    [&before[..], &patch, &journal, &end].concat()
}

#[test]
fn c7_04_c7_25_anthropic_thinks_calls_two_tools_and_is_sent_its_thoughts_word_for_word() {
    let model = Model::start(|_, number| match number {
        0 => Answer::Events(thoughtful_calls()),
        _ => Answer::Says("I hum now.".into()),
    });
    let world = world(&format!("{}thinking = 2048\n", model.link(Dialect::Messages, "claude")));
    assert_eq!(
        (&world.status()["model"], &world.status()["soul"]["name"]),
        (&json!("anthropic/claude"), &json!("Mira"))
    );
    let mut chat = world.chat();
    let session = chat.new_session();
    let reply = chat.say(&session, "hello");
    assert!(reply.text.ends_with("I hum now."), "{reply:?}");
    assert_eq!(reply.tools(), ["soul_patch identity", "soul_journal"]);
    let message = world.git(&["log", "-1", "--format=%b", "--", "identity.md"]);
    assert!(message.contains("Model: anthropic/claude"), "{message}");

    // another life of the agent reads them back from the session
    let pid = world.kill("agent");
    world.back("agent", pid);
    assert_eq!(chat.say(&session, "and now?").text, "I hum now.");
    let requests = model.requests();
    assert_eq!(requests.len(), 3);
    let thoughts = json!([
        {"type": "thinking", "thinking": "Shall I? 好", "signature": "Eq0B+/=="},
        {"type": "redacted_thinking", "data": "EmwKAhgB"},
        {"type": "text", "text": "I will."},
    ]);
    for request in &requests[1..] {
        assert_eq!(request["messages"][1]["content"].as_array().unwrap()[..3], *thoughts.as_array().unwrap());
        let results = request["messages"][2]["content"].as_array().unwrap();
        let kinds: Vec<_> = results.iter().map(|block| block["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["tool_result", "tool_result"], "{request}");
        assert_eq!(request["thinking"], json!({"type": "enabled", "budget_tokens": 2048}));
        assert!(
            request["system"][0]["text"].as_str().unwrap().contains("a keeper who hums"),
            "the rebuilt prompt"
        );
    }
    for request in &requests {
        assert!((3..=4).contains(&request.to_string().matches("\"cache_control\"").count()), "{request}");
    }
}

#[test]
fn c7_17_c7_18_anthropic_behaving_badly_is_asked_again_or_said() {
    let overloaded =
        || json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    let words =
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "well"}});
    let model = Model::start(move |_, number| match number {
        0 => Answer::Status { code: 529, retry_after: Some(0), said: "Overloaded" },
        1 => Answer::Events(vec![json!({"type": "ping"}), overloaded()]),
        2 => Answer::Says("hello".into()),
        3 => Answer::Events(vec![words.clone(), overloaded()]),
        4 => Answer::DiesAfter("I will now tell you the".into()),
        _ => Answer::Status { code: 401, retry_after: None, said: "invalid x-api-key" },
    });
    let world = world(&model.link(Dialect::Messages, "claude"));
    assert_eq!(ask(&world).text, "hello");
    assert_eq!(model.requests().len(), 3);
    for named in ["Overloaded", "not an answer", "ANTHROPIC_API_KEY"] {
        let said = why(&ask(&world));
        assert!(said.contains("anthropic/claude") && said.contains(named), "{said}");
    }
    assert_eq!(model.requests().len(), 6, "what was shown in part, or refused, is not asked again");
    let kept = world.sessions().into_iter().flatten().filter(|line| line["message"]["role"] == "assistant");
    assert_eq!(kept.count(), 1, "half an answer is none");
}

#[test]
fn c7_32_ollama_is_told_the_size_of_the_context_and_calls_tools() {
    let model = Model::start(|_, number| match number {
        0 => Answer::Calls(vec![("soul_journal", json!({"entry": "你好 🌍"}))]),
        _ => Answer::Says("written".into()),
    });
    let world = world(&format!("{}context = 16384\n", model.link(Dialect::Ollama, "qwen")));
    let reply = ask(&world);
    assert_eq!((reply.text.as_str(), world.status()["model"].as_str()), ("written", Some("ollama/qwen")));
    assert!(world.lisa(&["soul", "show", "journal"]).ok().contains("你好 🌍"));
    let requests = model.requests();
    assert!(requests.iter().all(|request| request["options"]["num_ctx"] == 16384), "{requests:?}");
    assert_eq!(last(&requests[1], "tool")["tool_name"], "soul_journal");
}

#[test]
fn c7_28_responses_sends_whole_thoughts_back_and_stores_nothing() {
    let reasoning = json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "gAAA",
        "summary": [{"type": "summary_text", "text": "Shall I?"}]});
    let call = json!({"type": "function_call", "call_id": "c", "name": "soul_journal", "arguments": "{\"entry\":\"你好\"}"});
    let done = |place: u32, item: &Value| json!({"type": "response.output_item.done", "output_index": place, "item": item});
    let end = json!({"type": "response.completed", "response": {"output": []}});
    let events = vec![done(0, &reasoning), done(1, &call), end];
    let model = Model::start(move |_, number| match number {
        0 => Answer::Events(events.clone()),
        _ => Answer::Says("written".into()),
    });
    let world = world(&format!("{}thinking = \"adaptive\"\n", model.link(Dialect::Responses, "gpt")));
    assert_eq!(
        (ask(&world).text.as_str(), world.status()["model"].as_str()),
        ("written", Some("responses/gpt"))
    );
    let requests = model.requests();
    assert!(requests.iter().all(|request| request["store"] == false), "{requests:?}");
    let kinds: Vec<_> =
        requests[1]["input"].as_array().unwrap().iter().map(|item| item["type"].clone()).collect();
    assert_eq!(kinds, ["message", "reasoning", "function_call", "function_call_output"]);
    assert_eq!(requests[1]["input"][1], reasoning);
}

#[test]
fn pr4_t10_another_model_stands_in_with_its_own_name_and_does_not_stay() {
    let journal = |_: &Value, number: usize| match number {
        0 => Answer::Calls(vec![("soul_journal", json!({"entry": "I stood in."}))]),
        _ => Answer::Says("second here".into()),
    };
    // the first is overloaded for one whole turn of two questions, each asked three times
    let first = Model::start(|_, number| match number {
        0..6 => Answer::Status { code: 529, retry_after: Some(0), said: "Overloaded" },
        _ => Answer::Says("first here".into()),
    });
    let second = Model::start(journal);
    let third = Model::start(|_, _| Answer::Says("never asked".into()));
    let world = world(&format!(
        "{}[[model.fallback]]\n{}[[model.fallback]]\n{}",
        first.link(Dialect::Messages, "claude"),
        second.link(Dialect::Chat, "stand-in"),
        third.link(Dialect::Ollama, "qwen"),
    ));
    assert_eq!(world.status()["model"], "anthropic/claude");
    let mut chat = world.chat();
    let session = chat.new_session();
    assert_eq!(chat.say(&session, "hello").text, "second here");
    assert_eq!((first.requests().len(), second.requests().len()), (6, 2));
    assert!(first.requests().iter().all(|request| request["model"] == "claude"));
    assert!(second.requests().iter().all(|request| request["model"] == "stand-in"));
    let message = world.git(&["log", "-1", "--format=%b"]);
    assert!(message.contains("Model: openai/stand-in"), "who wrote it is who answered: {message}");

    // the next turn begins with the first again, which is sent what the other one did in its own format
    assert_eq!(chat.say(&session, "and now?").text, "first here");
    assert_eq!((second.requests().len(), third.requests().len()), (2, 0));
    let request = first.requests().pop().unwrap();
    assert_eq!(request["messages"][1]["content"][0]["name"], "soul_journal");
    assert_eq!(request["messages"][2]["content"][0]["type"], "tool_result");
}

#[test]
fn pr2_pr4_nobody_stands_in_for_half_an_answer_and_the_last_error_is_told() {
    let first = Model::start(|_, number| match number {
        0 => Answer::DiesAfter("I will now".into()),
        _ => Answer::Status { code: 503, retry_after: Some(0), said: "first is away" },
    });
    let second =
        Model::start(|_, _| Answer::Status { code: 400, retry_after: None, said: "second does not like it" });
    let config = format!(
        "{}[[model.fallback]]\n{}",
        first.link(Dialect::Messages, "claude"),
        second.link(Dialect::Chat, "stand-in")
    );
    let world = world(&config);
    let said = why(&ask(&world));
    assert!(said.contains("anthropic/claude") && second.requests().is_empty(), "{said}");
    let said = why(&ask(&world));
    assert!(said.contains("openai/stand-in") && said.contains("second does not like it"), "{said}");
}

#[test]
fn c7_31_the_model_is_changed_in_mid_conversation_and_the_session_goes_on() {
    let model = Model::start(|request, _| {
        // each of them calls a tool first, and then says which it is
        let said = request.get("messages").or_else(|| request.get("input")).unwrap().as_array().unwrap();
        let last = said.last().unwrap();
        let answered = last["content"][0]["type"] == "tool_result"
            || last["role"] == "tool"
            || last["type"] == "function_call_output";
        if answered {
            return Answer::Says(request["model"].as_str().unwrap().to_owned());
        }
        Answer::Calls(vec![("soul_journal", json!({"entry": "again"}))])
    });
    let world = world(&model.link(Dialect::Chat, "one"));
    let session = {
        let mut chat = world.chat();
        let session = chat.new_session();
        assert_eq!(chat.say(&session, "hello").text, "one");
        session
    };
    let others = [
        (Dialect::Messages, "two"),
        (Dialect::Ollama, "three"),
        (Dialect::Responses, "four"),
        (Dialect::Chat, "five"),
    ];
    for (dialect, name) in others {
        world.lisa(&["down"]).ok();
        let config = format!("[model]\n{}", model.link(dialect, name));
        std::fs::write(world.home().join("config.toml"), config).unwrap();
        world.up();
        let mut chat = world.chat();
        chat.ask("session/resume", json!({"sessionId": session, "cwd": "/", "mcpServers": []})).unwrap();
        assert_eq!(chat.say(&session, "go on").text, name);
    }
    let sent = model.requests().pop().unwrap();
    let results =
        sent["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "tool").count();
    assert_eq!(results, 5, "each call of each model has its result: {sent}");
}

#[test]
fn b3_a_key_alone_leaves_her_offline_and_says_which_line_is_missing() {
    let world = World::configured("");
    std::fs::write(world.home().join("config.env"), "ANTHROPIC_API_KEY=sk-ant-geheim\n").unwrap();
    world.up_and_born();
    let status = world.status();
    assert_eq!(status["model"], "offline");
    let notices = status["notices"].to_string();
    assert!(notices.contains("ANTHROPIC_API_KEY") && notices.contains("name = "), "{status}");
    assert!(!world.logs().contains("geheim") && !status.to_string().contains("geheim"));
}

#[test]
fn s8_a_chain_that_is_set_wrongly_is_named_by_its_link() {
    let check = |link: &str, code: i32, named: &[&str]| {
        let config = format!(
            "[model]\nprovider = \"ollama\"\nname = \"q\"\n[[model.fallback]]\nprovider = \"offline\"\n[[model.fallback]]\n{link}"
        );
        let up = World::configured(&config).lisa(&["up", "--detach"]);
        assert!(up.code == code && named.iter().all(|word| up.stderr.contains(word)), "{up:?}");
    };
    check("name = \"m\"\n", 78, &["model.fallback, number 2", "provider"]);
    check("provider = \"openai\"\nname = \"m\"\n", 1, &["number 2 of `fallback`", "OPENAI_API_KEY"]);
}
