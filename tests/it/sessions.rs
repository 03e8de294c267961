//! Conversations on disk through the real binaries: listed, found, shown, replayed, taken up; and what they cost.

use serde_json::{Value, json};

use crate::{
    heartbeat::desire_of,
    stage::{Answer, Dialect, Model, World, eventually, puppet, secs},
};

const PRICE: &str = "price = {input = 3.0, output = 15.0}\n";

/// Words with a usage, as chat completions stream them.
fn counted(text: &str, read: u64, cached: u64, written: u64) -> Answer {
    let usage = json!({"prompt_tokens": read, "completion_tokens": written,
        "prompt_tokens_details": {"cached_tokens": cached}});
    Answer::Events(vec![
        json!({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": null}]}),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
        json!({"choices": [], "usage": usage}),
    ])
}

fn numbers(page: &Value) -> Vec<u64> {
    page["messages"].as_array().unwrap().iter().map(|said| said["number"].as_u64().unwrap()).collect()
}

#[test]
fn se5_se6_rp1_conversations_are_listed_found_shown_and_replayed() {
    let model = Model::start(puppet);
    let world = World::configured(&model.config());
    world.up_and_born();
    assert!(world.lisa(&["sessions"]).ok().is_empty());
    let mut chat = world.chat();
    let (first, second) = (chat.new_session(), chat.new_session());
    chat.say(&first, "Do you remember the old lighthouse?");
    chat.say(&second, "我想再去看那座灯塔");
    chat.say(&second, &json!({"tool": "soul_journal", "input": {"entry": "A day by the sea."}}).to_string());

    let listed = world.lisa(&["sessions", "--json"]).json_lines();
    let of = |id: &str| listed.iter().find(|one| one["id"] == id).unwrap();
    assert_eq!(listed.len(), 2, "{listed:?}");
    assert_eq!((&of(&second)["turns"], &of(&second)["model"]), (&json!(2), &json!("openai/play")));
    assert_eq!(of(&first)["title"], "Do you remember the old lighthouse?");
    assert!(world.lisa(&["sessions", "list"]).ok().contains("我想再去看那座灯塔"));

    let found = |query: &str| {
        let places = world.lisa(&["sessions", "search", query, "--json"]).json_lines();
        places.iter().map(|place| place["session"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(found("LIGHTHOUSE"), [first.as_str()]);
    assert_eq!(found("灯塔"), [second.as_str()]);
    let nothing = world.lisa(&["sessions", "search", "submarine"]);
    assert!(nothing.code == 1 && nothing.stderr.contains("nothing like that"), "{nothing:?}");
    let empty = world.lisa(&["sessions", "search", "?!"]);
    assert!(empty.code == 1 && empty.stderr.contains("letter"), "{empty:?}");

    let show =
        |more: &[&str]| world.lisa(&[&["sessions", "show", second.as_str(), "--json"], more].concat()).json();
    assert_eq!(numbers(&show(&[])), [1, 2, 3, 4, 5, 6]);
    assert_eq!(numbers(&show(&["--limit", "2"])), [5, 6]);
    assert_eq!(
        (numbers(&show(&["--before", "3"])), show(&["--before", "3"])["more"].clone()),
        (vec![1, 2], json!(false))
    );
    assert_eq!(numbers(&show(&["--before", "1"])), Vec::<u64>::new());
    let page = world.lisa(&["sessions", "show", &second]).ok();
    assert!(page.contains("person") && page.contains("[soul_journal") && !page.contains("# "), "{page}");

    // answer 2 called the tool, answer 3 saw its result: each was sent what the model really got
    let requests = model.requests();
    let replayed = |answer: &str| world.lisa(&["sessions", "replay", &second, answer, "--json"]).json();
    for (answer, request) in [("1", 1), ("2", 2), ("3", 3)] {
        let replay = replayed(answer);
        assert_eq!(replay["prompt"], requests[request]["messages"][0]["content"], "answer {answer}");
        let sent = requests[request]["messages"].as_array().unwrap().len() - 1;
        assert_eq!(replay["messages"].as_array().unwrap().len(), sent, "answer {answer}");
    }
    assert_eq!((&replayed("1")["answers"], &replayed("1")["prompts_recorded"]), (&json!(3), &json!(true)));
    assert!(world.lisa(&["sessions", "replay", &second]).ok().contains("system prompt"));
    for (arguments, said) in [
        (["sessions", "replay", second.as_str(), "9"].as_slice(), "no such answer"),
        (&["sessions", "show", "20200101-000000-000000"], "there is no session"),
        (&["sessions", "show", "../config"], "no session's name"),
    ] {
        let refused = world.lisa(arguments);
        assert!(refused.code == 1 && refused.stderr.contains(said), "{arguments:?}: {refused:?}");
    }

    // a session that is named is gone on with, by the command and by a client
    assert!(world.lisa(&["chat", "--session", &first, "and now?"]).ok().contains("done"));
    assert_eq!(numbers(&world.lisa(&["sessions", "show", &first, "--json"]).json()), [1, 2, 3, 4]);
    let loaded = json!({"sessionId": first, "cwd": "/", "mcpServers": []});
    assert!(chat.ask("session/load", loaded).is_ok());
}

#[test]
fn what_turns_cost_is_told_per_turn_session_and_task_and_found_again_after_a_death() {
    let model = Model::start(|_, _| counted("hi", 1200, 200, 100));
    let world = World::configured(&format!("{}{PRICE}", model.config()));
    world.up_and_born();
    let mut chat = world.chat();
    let session = chat.new_session();
    chat.say(&session, "one");
    chat.say(&session, "two");
    let usage = json!({"answers": 1, "input": 1000, "output": 100, "cache_read": 200, "cache_write": 0, "cost_micros": 5100});
    let file = world.sessions().into_iter().find(|lines| lines[0]["id"] == *session).unwrap();
    let ends: Vec<&Value> = file.iter().filter(|line| line["type"] == "turn_end").collect();
    assert_eq!(ends.iter().map(|end| &end["usage"]).collect::<Vec<_>>(), [&usage, &usage]);
    let twice = json!({"answers": 2, "input": 2000, "output": 200, "cache_read": 400, "cache_write": 0, "cost_micros": 10200});
    assert_eq!(world.lisa(&["sessions", "--json"]).json_lines()[0]["usage"], twice);
    let is_told = |world: &World| {
        eventually(secs(20), "the status says what it cost", || {
            let spent = world.status()["spent"].clone();
            let told = spent["total"] == twice
                && spent["tasks"] == json!([{"name": "conversation", "usage": twice}])
                && spent["sessions"] == json!([{"name": session, "usage": twice}]);
            told.then_some(())
        });
    };
    is_told(&world);
    assert!(world.lisa(&["status"]).ok().contains("task conversation: 2.6k (0.0102) tokens, 2 answers"));
    let before = world.kill("agent");
    world.back("agent", before);
    is_told(&world);
}

#[test]
fn g10_g11_her_own_time_ends_behind_the_results_when_its_tokens_are_used_up_and_a_conversation_goes_to_the_cap()
 {
    let model = Model::start(|_, _| {
        let arguments = json!({"document": "name"}).to_string();
        let call = json!({"index": 0, "id": "c", "type": "function", "function": {"name": "soul_read", "arguments": arguments}});
        Answer::Events(vec![
            json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": null}]}),
            json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}),
            json!({"choices": [], "usage": {"prompt_tokens": 400, "completion_tokens": 0}}),
        ])
    });
    let world = World::new();
    world.up_and_born();
    world.lisa(&["chat", "I want you to learn the names of the winds"]).ok();
    let slug = desire_of(&world);
    world.lisa(&["down"]).ok();
    let config = format!("[heartbeat]\ntokens_max = 1000\n{}", model.config());
    std::fs::write(world.home().join("config.toml"), config).unwrap();
    world.up();
    let ran = world.lisa(&["heartbeat", "run", &slug, "--json"]).json();
    assert_eq!(model.requests().len(), 3, "{ran}");
    let session = ran["runs"][0]["session"].as_str().unwrap();
    let file = world.sessions().into_iter().find(|lines| lines[0]["id"] == session).unwrap();
    let messages: Vec<&Value> = file.iter().filter(|line| line["type"] == "message").collect();
    assert_eq!(messages.last().unwrap()["message"]["content"][0]["type"], "tool_result");
    let end = file.iter().find(|line| line["type"] == "turn_end").unwrap();
    assert_eq!((&end["stop_reason"], &end["usage"]["input"]), (&json!("max_turn_requests"), &json!(1200)));
    let spent = &world.status()["spent"]["tasks"];
    assert!(spent.as_array().unwrap().iter().any(|task| task["name"] == format!("desire:{slug}")), "{spent}");

    let mut chat = world.chat();
    let session = chat.new_session();
    assert_eq!(chat.say(&session, "look").outcome.unwrap()["stopReason"], "max_turn_requests");
    assert_eq!(model.requests().len(), 3 + 32);
}

#[test]
fn g7_g9_where_the_first_call_fails_the_error_is_told_and_nothing_of_the_model_is_kept() {
    let model = Model::start(|_, number| match number {
        0 => Answer::Status { code: 400, retry_after: None, said: "tools are wrong" },
        _ => Answer::Says("hello".into()),
    });
    let world = World::configured(&model.config());
    world.up_and_born();
    let mut chat = world.chat();
    let session = chat.new_session();
    let error = chat.say(&session, "hi").outcome.unwrap_err();
    assert!(error["message"].as_str().unwrap().contains("tools are wrong"), "{error}");
    let shown = world.lisa(&["sessions", "show", &session, "--json"]).json();
    // what the person said is, and is sent with the next
    assert_eq!(numbers(&shown), [1]);
    chat.say(&session, "again");
    let sent = model.requests()[1]["messages"].to_string();
    assert!(sent.contains("hi") && sent.contains("again"), "{sent}");
}

#[test]
fn g16_a_tool_that_refuses_has_its_result_and_the_turn_goes_on() {
    let model = Model::start(puppet);
    let world = World::configured(&model.config());
    world.up_and_born();
    let mut chat = world.chat();
    let session = chat.new_session();
    let call = json!({"tool": "soul_read", "input": {"document": "../config.toml"}});
    let reply = chat.say(&session, &call.to_string());
    assert_eq!((reply.text.as_str(), reply.tools().len()), ("done", 1), "{reply:?}");
    let file = world.sessions().into_iter().find(|lines| lines[0]["id"] == *session).unwrap();
    let results = file.iter().filter_map(|line| line["message"]["content"].as_array()).flatten();
    let results: Vec<&Value> = results.filter(|block| block["type"] == "tool_result").collect();
    assert_eq!((results.len(), &results[0]["is_error"]), (1, &json!(true)), "{results:?}");
}

#[test]
fn a_session_that_another_process_writes_is_left_alone_and_that_is_said() {
    let model = Model::start(puppet);
    let world = World::configured(&model.config());
    world.up_and_born();
    let mut chat = world.chat();
    let session = chat.new_session();
    let path = world.home().join(format!("sessions/{session}.jsonl"));
    let held = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    held.try_lock().unwrap();
    let before = std::fs::read(&path).unwrap();
    let error = chat.say(&session, "hi").outcome.unwrap_err();
    assert!(error["message"].as_str().unwrap().contains("another process"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
    drop(held);
    assert_eq!(chat.say(&session, "hi").text, "done");
}

#[test]
fn rp7_t27_a_session_with_a_torn_tail_and_lines_of_others_goes_on() {
    let model = Model::start(|_, _| Answer::Says("hello".into()));
    let world = World::configured(&format!("[model]\n{}", model.link(Dialect::Chat, "play")));
    world.up_and_born();
    let folder = world.home().join("sessions");
    let _ = std::fs::create_dir(&folder);
    let message = |role: &str, content: Value| json!({"type": "message", "ts": "2026-01-01T00:00:00.000Z", "message": {"role": role, "content": content}});
    let call = json!([{"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {"command": "ls"}}]);
    let lines = [
        json!({"type": "session", "id": "20260101-000000-abcdef", "version": 2, "startedAt": "2026-01-01T00:00:00.000Z",
            "cwd": "/", "model": "claude", "sandboxMode": "workspace-write"}),
        json!({"type": "invented", "ts": 1}),
        message("user", json!("list the files")),
        message("assistant", call),
    ];
    let text = lines.map(|line| line.to_string()).join("\n") + "\n";
    let path = folder.join("20260101-000000-abcdef.jsonl");
    std::fs::write(&path, format!("{text}{{\"type\":\"message\",\"ts\":\"20")).unwrap();
    let said = world.lisa(&["chat", "--session", "20260101-000000-abcdef", "go on"]).ok();
    assert!(said.contains("hello"), "{said}");
    let kept = std::fs::read_to_string(&path).unwrap();
    // se3: what stood there stands there, sandbox mode and all, and what came is readable behind it
    assert!(kept.starts_with(&text));
    assert!(kept.lines().last().unwrap().contains("turn_end"));
    // the call nobody answered was answered with a statement
    assert!(model.requests()[0]["messages"].to_string().contains("interrupted"));
    let listed = world.lisa(&["sessions", "--json"]).json_lines();
    assert_eq!((&listed[0]["own"], &listed[0]["turns"]), (&json!(false), &json!(2)), "{listed:?}");
}
