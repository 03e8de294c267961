//! The real `lisa`, run against a fake supervisor: what goes to which stream, and which exit code follows.

#![expect(
    clippy::unwrap_used,
    reason = "these are tests, in which a broken assumption should say where it is"
)]

mod fake;
mod self_told;

use std::{io::Write as _, path::Path};

use serde_json::{Value, json};

use crate::fake::{Said, Then, World, chunk, event, happens, interrupt, spawn, status, update};

/// A world whose prompts are answered with this news and this result.
fn talking(news: impl Fn(&str) -> Vec<Value> + Send + Sync + 'static, result: Value) -> World {
    World::served(move |method, params| {
        let said = params["prompt"][0]["text"].as_str().unwrap_or_default();
        (method == "session/prompt").then(|| Then::Answers(news(said), result.clone()))
    })
}

fn whole() -> Value {
    json!({"stopReason": "end_turn", "_meta": {"lisa": {"messageId": "m1"}}})
}

fn check(said: &Said, code: i32, out: &str) {
    assert_eq!((said.code, said.out.as_str()), (Some(code), out), "{}", said.err);
}

#[test]
fn one_turn_puts_the_reply_and_nothing_else_on_stdout() {
    let world = talking(
        |_| {
            let died =
                json!({"type": "child_died", "process": "agent", "how": "signal 9", "restart_in_ms": 0});
            let back = json!({"type": "child_ready", "process": "agent", "took_ms": 12});
            let tool = json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "soul_patch"});
            vec![update(&tool), chunk("我是"), happens(died), happens(back), chunk("灯塔。")]
        },
        whole(),
    );
    let said = world.lisa(&["chat", "你是谁", "?"], b"");
    check(&said, 0, "我是灯塔。\n");
    assert_eq!(
        said.err,
        "· soul_patch\n· agent died (signal 9); back in a moment\n· agent is back (12 ms)\n"
    );
    assert_eq!(
        world.asked("session/resume"),
        [json!({"sessionId": "s2", "cwd": "/elsewhere", "mcpServers": []})]
    );
    assert_eq!(world.asked("_lisa/events"), [json!({"after": null, "follow": true})]);
    let prompt = json!({"sessionId": "s2", "prompt": [{"type": "text", "text": "你是谁 ?"}]});
    assert_eq!(world.asked("session/prompt"), [prompt]);
}

#[test]
fn the_last_line_of_json_is_the_end() {
    let world = talking(|_| vec![chunk("hm")], whole());
    let lines = world.lisa(&["chat", "--json", "hello"], b"").json();
    assert_eq!(lines.first(), Some(&json!({"type": "text", "text": "hm"})));
    assert_eq!(lines.last(), Some(&json!({"type": "end", "stop_reason": "end_turn", "message_id": "m1"})));

    let interrupted =
        json!({"stopReason": "end_turn", "_meta": {"lisa": {"messageId": "m1", "interrupted": true}}});
    let said = talking(|_| vec![], interrupted).lisa(&["chat", "--json", "hello"], b"");
    let end = json!({"type": "end", "stop_reason": "end_turn", "message_id": "m1", "interrupted": true});
    assert_eq!((said.code, said.json()), (Some(1), vec![end]));
}

#[test]
fn stdin_that_is_no_terminal_is_one_turn_as_a_whole() {
    let world = talking(|said| vec![chunk(&format!("{} lines", said.lines().count()))], whole());
    check(&world.lisa(&["chat"], "eins\n二\n".as_bytes()), 0, "2 lines\n");
    let said = world.lisa(&["chat"], b" \n");
    check(&said, 64, "");
    assert!(said.err.contains("nothing to say"), "{}", said.err);
    check(&world.lisa(&["chat", "\t"], b""), 64, "");
    check(&world.lisa(&["chat"], b"\xff\n"), 1, "");
}

#[test]
fn a_session_is_new_named_or_unknown() {
    let world = World::served(|method, params| match (method, params["sessionId"].as_str()) {
        ("session/prompt", _) => Some(Then::Answers(vec![], whole())),
        ("session/resume", Some("s9")) => Some(Then::Refuses(-32002, "no such session")),
        _ => None,
    });
    check(&world.lisa(&["chat", "--new", "x"], b""), 0, "");
    assert_eq!(world.asked("session/new")[0]["mcpServers"], json!([]));
    check(&world.lisa(&["chat", "--session", "s1", "x"], b""), 0, "");
    assert_eq!(world.asked("session/resume")[0]["sessionId"], "s1");
    check(&world.lisa(&["chat", "--session", "not-on-the-list", "x"], b""), 0, "");
    let said = world.lisa(&["chat", "--session", "s9", "x"], b"");
    check(&said, 1, "");
    assert!(said.err.contains("no session `s9`") && said.err.contains("`s1`"), "{}", said.err);
}

#[test]
fn a_supervisor_that_dies_in_mid_reply_is_said_to_be_gone() {
    let world =
        World::served(|method, _| (method == "session/prompt").then(|| Then::Dies(vec![chunk("half")])));
    let said = world.lisa(&["chat", "hello"], b"");
    check(&said, 69, "half\n");
    assert!(said.err.contains("gone") && said.err.contains("kept on disk") && said.err.contains("`lisa up`"));
}

#[test]
fn a_supervisor_that_lets_a_client_go_is_not_said_to_be_gone() {
    let world = World::served(|method, _| (method == "session/prompt").then_some(Then::HangsUp));
    let said = world.lisa(&["chat", "--json", "hello"], b"");
    assert!(said.err.contains("let this client go"), "{}", said.err);
    let end = said.json().pop().unwrap();
    assert_eq!((said.code, &end["type"], &end["interrupted"]), (Some(1), &json!("end"), &json!(true)));
}

#[test]
fn an_error_is_its_sentence() {
    let world = World::served(|method, _| {
        (method == "session/prompt")
            .then_some(Then::Refuses(-32603, "the model server answered 429; wait a minute"))
    });
    let said = world.lisa(&["chat", "hello"], b"");
    check(&said, 1, "");
    assert_eq!(said.err, "lisa: the model server answered 429; wait a minute\n");
}

#[test]
fn up_with_chat_takes_each_line_as_a_turn_where_she_runs_already() {
    let world = talking(|said| vec![chunk(&format!("echo {said}"))], whole());
    let said = world.lisa(&["up", "--chat"], "one\n\n二\n".as_bytes());
    check(&said, 0, "echo one\necho 二\n");
    for word in ["no language model", "session s2 (灯塔)", "keeps running", "lisa down"] {
        assert!(said.err.contains(word), "{word}: {}", said.err);
    }
    check(&world.lisa(&["up", "--chat"], b"one\n/quit\ntwo\n"), 0, "echo one\n");
}

#[test]
fn nobody_there_is_69() {
    let world = World::empty();
    for arguments in [
        &["status"][..],
        &["down"],
        &["chat", "x"],
        &["events", "-f"],
        &["soul"],
        &["soul", "show", "identity"],
        &["heartbeat", "run"],
    ] {
        let said = world.lisa(arguments, b"");
        check(&said, 69, "");
        assert!(
            said.err.contains("no supervisor is running") && said.err.contains("`lisa up`"),
            "{}",
            said.err
        );
    }
    assert!(!world.home().exists(), "asking leaves nothing behind");
}

#[test]
fn usage_is_64_with_a_suggestion_and_help_is_0() {
    let world = World::empty();
    let said = world.lisa(&["staus"], b"");
    check(&said, 64, "");
    assert!(said.err.contains("'status'"), "{}", said.err);
    let said = world.lisa(&["--help"], b"");
    assert!(said.code == Some(0) && said.err.is_empty() && said.out.contains("Examples:"));
}

#[test]
fn status_is_the_document_that_scripts_rely_on() {
    let world = World::served(|_, _| None);
    assert_eq!(world.lisa(&["status", "--json"], b"").json(), [status("ready")]);
    let said = world.lisa(&["status"], b"");
    assert!(said.out.contains("heartbeat   ready") && said.err.is_empty(), "{}", said.out);
}

#[test]
fn a_reader_that_has_had_enough_ends_it_quietly() {
    let world = World::served(|method, _| {
        let event = event(json!({"type": "child_died", "process": "x".repeat(200)}));
        let events = json!({"events": vec![event; 5000], "gap": true});
        (method == "_lisa/events").then(|| Then::Answers(vec![], events))
    });
    let mut command = world.command(Path::new(env!("CARGO_BIN_EXE_lisa")), &["events"]);
    let mut child = spawn(&mut command);
    drop(child.stdout.take());
    let said = child.wait_with_output().unwrap();
    let words = String::from_utf8(said.stderr).unwrap();
    assert_eq!(said.status.code(), Some(0), "{words}");
    assert_eq!(words, "· some events between the cursor and the first of these are no longer kept\n");
}

#[test]
fn events_that_are_kept_come_first_and_then_those_that_happen() {
    let world = World::served(|method, params| {
        let kept = event(json!({"type": "child_ready", "process": "soul", "took_ms": 3}));
        match method {
            "_lisa/events" if params["follow"] == true => Some(Then::Answers(
                vec![happens(json!({"type": "child_died", "process": "soul", "how": "signal 9"}))],
                json!({"events": [kept], "gap": false}),
            )),
            "_lisa/events" => Some(Then::Answers(vec![], json!({"events": [kept], "gap": false}))),
            _ => None,
        }
    });
    check(
        &world.lisa(&["events", "--since", "1:3"], b""),
        0,
        "1:7      2026-11-30 12:00:00  soul is ready (3 ms)\n",
    );
    assert_eq!(world.asked("_lisa/events")[0], json!({"after": {"epoch": 1, "seq": 3}, "follow": false}));
    assert_eq!(world.lisa(&["events", "--json"], b"").json()[0]["type"], "child_ready");

    let mut command = world.command(Path::new(env!("CARGO_BIN_EXE_lisa")), &["events", "-f"]);
    let mut child = spawn(&mut command);
    let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut line = || {
        let mut line = String::new();
        std::io::BufRead::read_line(&mut out, &mut line).unwrap();
        line
    };
    assert!(line().contains("soul is ready"));
    assert!(line().contains("soul died (signal 9)"));
    interrupt(child.id());
    assert_eq!(child.wait().unwrap().code(), Some(0), "Ctrl-C is how following ends");
}

#[test]
fn ctrl_c_stops_the_reply_and_not_the_conversation() {
    let world = World::served(|method, _| {
        let cancelled = json!({"stopReason": "cancelled", "_meta": {"lisa": {"messageId": "m1"}}});
        (method == "session/prompt").then(|| Then::AnswersOnceCancelled(vec![chunk("half")], cancelled))
    });
    let mut command = world.command(Path::new(env!("CARGO_BIN_EXE_lisa")), &["chat", "hello"]);
    let mut child = spawn(&mut command);
    let mut half = [0; 4];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut half).unwrap();
    interrupt(child.id());
    let said = Said::from(child.wait_with_output().unwrap());
    check(&said, 1, "\n");
    assert!(said.err.contains("stopping") && said.err.contains("the reply was stopped"), "{}", said.err);
    assert_eq!(world.asked("session/cancel"), [json!({"sessionId": "s2"})]);
}

#[test]
fn the_soul_is_asked_in_its_own_words() {
    let world = World::served(|method, params| {
        let entry = json!({"commit": "0123456789abcdef", "time": "2026-11-30T12:00:00Z", "op": "patch",
            "path": "identity.md", "caller": "soul_patch", "origin": "chat", "why": "海"});
        let result = match (method, params["method"].as_str()) {
            ("_lisa/soul", Some("read")) if params["params"]["document"] == "identity" => {
                json!({"document": {"path": "identity.md", "text": "I hum.\n灯"}})
            }
            ("_lisa/soul", Some("read")) => {
                json!({"refused": {"reason": "there is no document `identty`; the nearest is `identity`"}})
            }
            ("_lisa/soul", Some("history")) => json!({"history": {"entries": [entry]}}),
            ("_lisa/soul", Some("diff")) => json!({"diff": {"path": "identity.md", "text": ""}}),
            _ => return None,
        };
        Some(Then::Answers(vec![], result))
    });
    check(&world.lisa(&["soul", "show", "identity"], b""), 0, "I hum.\n灯\n");
    let said = world.lisa(&["soul", "show", "identty"], b"");
    check(&said, 1, "");
    assert!(said.err.contains("the nearest is `identity`"));
    check(
        &world.lisa(&["soul", "history", "identity", "--limit", "5", "--since", "2026-11-30"], b""),
        0,
        "01234567 2026-11-30 12:00:00 patch identity.md via soul_patch — 海\n",
    );
    let asked = json!({"method": "history", "params":
        {"document": "identity", "limit": 5, "since": "2026-11-30T00:00:00Z"}});
    assert_eq!(world.asked("_lisa/soul").last(), Some(&asked));
    let line = world.lisa(&["soul", "history", "--json"], b"").json().remove(0);
    let keys: Vec<_> = line.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["commit", "time", "op", "path", "caller", "origin", "why"]);
    let said = world.lisa(&["soul", "diff", "identity"], b"");
    check(&said, 0, "");
    assert!(said.err.contains("never changed"), "{}", said.err);
}

#[test]
fn a_run_of_her_own_time_that_fails_is_a_failure() {
    let world = World::served(|method, params| {
        let run = |outcome: &str| {
            json!({"run": "r", "task": "desire:x", "outcome": outcome, "session": "s8", "note": "n",
                "started": "2026-11-30T12:00:00Z", "ended": "2026-11-30T12:00:01Z"})
        };
        let runs = match params["params"]["task"].as_str() {
            Some(outcome) => json!([run(outcome)]),
            None => json!([]),
        };
        (method == "_lisa/heartbeat").then(|| Then::Answers(vec![], json!({"ran": {"runs": runs}})))
    });
    let progressed = "desire:x · progressed · 1.0 s · session s8\n  n\n";
    check(&world.lisa(&["heartbeat", "run", "progressed"], b""), 0, progressed);
    assert_eq!(world.lisa(&["heartbeat", "run", "failed", "--json"], b"").code, Some(1));
    let said = world.lisa(&["heartbeat", "run"], b"");
    check(&said, 0, "");
    assert_eq!(said.err, "nothing was due\n");
}

#[test]
fn down_waits_for_the_kernel_to_say_that_it_is_over() {
    let world = World::served(|_, _| None);
    let said = world.lisa(&["down"], b"");
    check(&said, 0, "");
    assert!(said.err.starts_with("stopped"), "{}", said.err);
    let lock = std::fs::File::create(world.home().join("supervisor.lock")).unwrap();
    lock.lock().unwrap();
    let said = world.lisa(&["down", "--timeout", "100ms"], b"");
    check(&said, 1, "");
    assert!(said.err.contains("has not ended within 100ms"), "{}", said.err);
    drop(lock);
    assert_eq!(world.lisa(&["down", "--json"], b"").json()[0]["stopped"], json!(true));
}

#[test]
fn up_becomes_the_supervisor() {
    let world = World::empty();
    let said = world.lisa_beside(Some("echo \"$$ $@\"; exit 75"), &["up"], b"");
    assert_eq!(said.code, Some(75), "{}", said.err);
    assert!(said.out.ends_with(&format!(" --home {}\n", world.home().display())), "{}", said.out);
}

#[test]
fn up_without_a_supervisor_beside_it_says_what_is_missing() {
    let world = World::empty();
    for arguments in [&["up"][..], &["up", "--detach"]] {
        let said = world.lisa_beside(None, arguments, b"");
        check(&said, 1, "");
        assert!(said.err.contains("bin/lisa-supervisor`; it must lie beside `lisa`"), "{}", said.err);
    }
}

#[test]
fn a_start_that_fails_is_told_with_its_last_words_and_its_exit_code() {
    let world = World::empty();
    let script = "echo 'the configuration at `config.toml` does not parse' >&2; exit 78";
    let said = world.lisa_beside(Some(script), &["up", "--detach"], b"");
    check(&said, 78, "");
    assert!(said.err.contains("exit code 78") && said.err.contains("does not parse"), "{}", said.err);
    let said = world.lisa_beside(Some("exit 75"), &["up", "--detach"], b"");
    check(&said, 75, "");
    assert!(
        !said.err.contains("does not parse"),
        "the words of an earlier start are not of this one: {}",
        said.err
    );
}

#[test]
fn a_home_that_cannot_be_made_is_the_configuration() {
    let world = World::empty();
    std::fs::write(world.home(), "a file").unwrap();
    let said = world.lisa_beside(Some("exit 0"), &["up", "--detach"], b"");
    check(&said, 78, "");
    assert!(said.err.contains(&world.home().display().to_string()), "{}", said.err);
}

/// A script that lives as long as the folder of the test does, and leads to the fake being served.
const LIVES: &str = "touch \"$2/started\"; while [ -e \"$2/started\" ]; do sleep 0.05; done";

/// Starts detached, with a fake that begins to serve once the script has run, and says `states` of the agent in turn.
fn detached(world: &World, arguments: &[&str], states: &'static [&'static str]) -> Said {
    std::fs::create_dir_all(world.home()).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
            while !world.home().join("started").exists() {
                assert!(std::time::Instant::now() < deadline, "the supervisor is started");
                std::thread::yield_now();
            }
            let looks = std::sync::atomic::AtomicUsize::new(0);
            world.serve(move |method, _| {
                let look = looks
                    .fetch_add(usize::from(method == "_lisa/status"), std::sync::atomic::Ordering::SeqCst);
                let state = states.get(look).or(states.last()).unwrap();
                (method == "_lisa/status").then(|| Then::Answers(vec![], status(state)))
            });
        });
        world.lisa_beside(Some(LIVES), arguments, b"")
    })
}

#[test]
fn detached_it_returns_when_she_is_awake() {
    let world = World::empty();
    let said = detached(&world, &["up", "--detach", "--json"], &["starting", "waiting", "ready"]);
    assert_eq!((said.code, said.json()), (Some(0), vec![status("ready")]), "{}", said.err);
    assert!(said.err.contains("waking … soul ready, heartbeat ready, agent ready"), "{}", said.err);
    let said = world.lisa(&["up", "--detach"], b"");
    check(&said, 0, "");
    assert!(said.err.contains("already running, pid 4711"), "{}", said.err);
}

#[test]
fn detached_it_says_which_child_is_parked() {
    let said = detached(&World::empty(), &["up", "--detach"], &["starting", "parked"]);
    check(&said, 1, "");
    assert!(said.err.contains("agent is parked") && said.err.contains("keeps running"), "{}", said.err);
}

#[test]
fn a_conversation_by_lines_goes_on_after_a_turn_that_failed() {
    let world = World::served(|method, params| {
        let bad = params["prompt"][0]["text"] == "bad";
        match method {
            "session/prompt" if bad => Some(Then::Refuses(-32603, "the model is away")),
            "session/prompt" => Some(Then::Answers(vec![chunk("good")], whole())),
            _ => None,
        }
    });
    let mut command = world.command(Path::new(env!("CARGO_BIN_EXE_lisa")), &["up", "--chat"]);
    let mut child = spawn(&mut command);
    child.stdin.take().unwrap().write_all(b"bad\ngood\n").unwrap();
    let said = Said::from(child.wait_with_output().unwrap());
    check(&said, 1, "good\n");
    assert!(said.err.contains("· the model is away") && said.err.contains("not every turn"), "{}", said.err);
}
