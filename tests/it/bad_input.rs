//! Bad input: each a sentence that names the thing and the remedy, and nothing is lost.

use serde_json::{Value, json};

use crate::stage::{World, eventually, secs};

#[test]
fn s8_b3_a_second_supervisor_on_one_home_is_refused_by_name() {
    let world = World::new();
    world.up_and_born();
    let pid = world.pid("supervisor");
    let second = world.run(world.command("lisa-supervisor", &[]), "");
    assert_eq!(second.code, 1, "{second:?}");
    assert!(
        second.stderr.contains(&format!("pid {pid}")) && second.stderr.contains("lisa down"),
        "{second:?}"
    );
    let again = world.lisa(&["up", "--detach"]);
    assert!(again.code == 0 && again.stderr.contains("already running"), "{again:?}");
    // the lock is the truth: without any file of its own beside it, there is still one supervisor
    std::fs::write(world.home().join("supervisor.lock"), "").unwrap();
    assert_eq!(world.run(world.command("lisa-supervisor", &[]), "").code, 1);
    assert_eq!(world.pid("supervisor"), pid);
}

#[test]
fn b1_of_many_supervisors_started_at_once_one_serves() {
    let world = World::new();
    std::fs::create_dir_all(world.home().join("run")).unwrap();
    drop(std::os::unix::net::UnixListener::bind(world.home().join("run/chat.sock")).unwrap());
    let codes: Vec<i32> = std::thread::scope(|scope| {
        let started: Vec<_> = (0..6).map(|_| scope.spawn(|| world.lisa(&["up", "--detach"]).code)).collect();
        started.into_iter().map(|up| up.join().unwrap()).collect()
    });
    assert!(codes.iter().all(|code| *code == 0), "each is told that she runs: {codes:?}");
    eventually(secs(5), "the others have given up", || {
        let supervisors = world.alive().into_iter().filter(|pid| {
            std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe.ends_with("lisa-supervisor"))
        });
        (supervisors.count() == 1).then_some(())
    });
    assert_eq!(world.lisa(&["status"]).code, 0);
}

#[test]
fn s8_a_home_that_cannot_be_written_is_named() {
    let world = World::new();
    let file = world.folder().join("file");
    std::fs::write(&file, "").unwrap();
    let world = world.with_home(file.join("home"));
    for arguments in [&["up", "--detach"][..], &["up"]] {
        let up = world.lisa(arguments);
        assert!(matches!(up.code, 1 | 78), "{up:?}");
        assert!(up.stderr.contains("file/home") && up.stderr.contains("--home"), "{up:?}");
    }
}

#[test]
fn s8_t35_b27_a_home_too_long_for_sockets_works_all_the_same() {
    let world = World::new();
    let home = world.folder().join("x".repeat(120));
    let world = world.with_home(home);
    world.up_and_born();
    assert!(world.lisa(&["chat", "change your identity to a heron"]).ok().contains("heron"));
    let run = world.status()["run"].as_str().unwrap().to_owned();
    assert!(run.len() < 80, "{run}");
    assert_eq!(world.lisa(&["down"]).code, 0);
    let _ = std::fs::remove_dir_all(run);
}

#[test]
fn s8_a_configuration_that_does_not_parse_is_named_with_its_line_and_exits_78() {
    let check = |config: &str, named: &str| {
        let world = World::configured(config);
        for arguments in [&["up", "--detach"][..], &["up"]] {
            let up = world.lisa(arguments);
            assert_eq!(up.code, 78, "{up:?}");
            assert!(up.stderr.contains("config.toml") && up.stderr.contains(named), "{up:?}");
        }
        assert!(world.alive().is_empty());
    };
    check("[model\nname = 1", "line 1");
    check("[modle]\n", "modle");
    check("time_zone = \"Mars/Olympus\"", "time_zone");
}

#[test]
fn s8_a_model_that_is_set_wrongly_parks_the_agent_and_the_rest_serves() {
    let world = World::configured("[model]\nprovider = \"openai\"\n");
    let up = world.lisa(&["up", "--detach"]);
    assert_eq!(up.code, 1, "{up:?}");
    assert!(
        up.stderr.contains("agent is parked") && up.stderr.contains("name = "),
        "the missing line is named: {up:?}"
    );
    assert_eq!(world.process("soul")["state"], "ready");
    let chat = world.lisa(&["chat", "hello"]);
    assert!(chat.code == 1 && chat.stderr.contains("parked"), "{chat:?}");
}

#[test]
fn s8_an_unknown_document_suggests_the_nearest() {
    let world = World::new();
    world.up_and_born();
    let shown = world.lisa(&["soul", "show", "identiti"]);
    assert_eq!(shown.code, 1, "{shown:?}");
    assert!(shown.stderr.contains("identiti") && shown.stderr.contains("`identity`"), "{shown:?}");
    for bad in ["../config.toml", "values/../../x", "/etc/passwd"] {
        let shown = world.lisa(&["soul", "show", bad]);
        assert!(shown.code == 1 && shown.stdout.is_empty(), "{shown:?}");
    }
    assert_eq!(world.lisa(&["sool"]).code, 64);
    assert_eq!(world.lisa(&["--help"]).code, 0);
}

#[test]
fn s8_an_overlong_line_ends_that_connection_with_a_reason_and_no_other() {
    let world = World::new();
    world.up_and_born();
    let (mut rude, mut polite) = (world.chat(), world.chat());
    let chunk = vec![b'x'; 1024 * 1024];
    for _ in 0..9 {
        // the other end may have hung up already
        rude.send_some(&chunk);
    }
    let told = rude.hear(secs(10)).expect("it is told why");
    assert!(told["error"]["message"].as_str().unwrap().contains("8388608 bytes"), "{told}");
    assert!(rude.hear(secs(10)).is_none(), "and hung up on");
    assert!(polite.ask("_lisa/status", Value::Null).is_ok());
}

#[test]
fn a_bad_line_is_answered_and_the_next_one_is_served() {
    let world = World::new();
    world.up_and_born();
    let mut chat = world.chat();
    for (line, code) in [
        (&b"nonsense\n"[..], -32700),
        (b"\xff\xfe\n", -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":77}\n", -32600),
        (b"[1,2]\n", -32600),
    ] {
        chat.send_line(line);
        let told = chat.hear(secs(10)).unwrap();
        assert_eq!(told["error"]["code"], code, "{told}");
    }
    assert_eq!(chat.ask("no/such", json!({})).unwrap_err()["code"], -32601);
    assert_eq!(
        chat.ask("session/prompt", json!({"sessionId": "../x", "prompt": [{"type": "text", "text": "x"}]}))
            .unwrap_err()["code"],
        -32602
    );
    assert_eq!(
        chat.ask(
            "session/load",
            json!({"sessionId": "20200101-000000-000000", "cwd": "/", "mcpServers": []})
        )
        .unwrap_err()["code"],
        -32002
    );
    assert!(chat.ask("_lisa/status", Value::Null).is_ok());
}

#[test]
fn s8_an_identity_of_white_space_is_refused_and_the_old_one_stands() {
    let world = World::new();
    world.up_and_born();
    let before = world.lisa(&["soul", "show", "identity"]).ok();
    let model = crate::stage::Model::start(|_, number| match number {
        0 => crate::stage::Answer::Calls(vec![(
            "soul_patch",
            json!({"field": "identity", "content": " \n\t "}),
        )]),
        _ => crate::stage::Answer::Says("it was refused".into()),
    });
    world.lisa(&["down"]).ok();
    std::fs::write(world.home().join("config.toml"), model.config()).unwrap();
    world.up();
    let mut chat = world.chat();
    let session = chat.new_session();
    let reply = chat.say(&session, "be nothing");
    let failed = reply.updates.iter().find(|update| update["status"] == "failed").expect("the tool says no");
    let said = failed["content"][0]["content"]["text"].as_str().unwrap();
    assert!(said.contains("identity") && said.contains("blank") || said.contains("empty"), "{said}");
    assert_eq!(world.lisa(&["soul", "show", "identity"]).ok(), before);
}

#[test]
fn a_stranger_on_a_childs_socket_is_not_answered() {
    let world = World::new();
    world.up_and_born();
    let run = world.home().join("run");
    for child in ["soul", "agent", "heartbeat"] {
        use std::io::{Read as _, Write as _};
        let mut socket = std::os::unix::net::UnixStream::connect(run.join(format!("{child}.sock"))).unwrap();
        socket.set_read_timeout(Some(secs(10))).unwrap();
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "hello", "params": {"contract": child, "version": 1,
            "role": "supervisor", "build": "x", "life": 1, "secret": "guess", "notices": true}});
        let status = json!({"jsonrpc": "2.0", "id": "a", "method": "status"});
        // at once: the connection may end as soon as the first line is read
        socket.write_all(format!("{hello}\n{status}\n").as_bytes()).unwrap();
        let mut told = String::new();
        socket.read_to_string(&mut told).unwrap();
        assert!(told.contains("secret") && !told.contains("\"result\""), "{told}");
    }
}
