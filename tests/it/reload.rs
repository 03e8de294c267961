//! Hot reload: whatever changed in what the prompt shows is in the next call of the model, and nothing else changes it.

use std::{
    path::Path,
    sync::{Arc, Mutex},
    time::SystemTime,
};

use serde_json::{Value, json};

use crate::{
    heartbeat::desire_of,
    stage::{Answer, Model, World, eventually, secs},
};

fn system(request: &Value) -> &str {
    request["messages"][0]["content"].as_str().unwrap()
}

/// The prompt of the newest request.
fn newest(model: &Model) -> String {
    system(model.requests().last().unwrap()).to_owned()
}

fn world_with(model: &Model) -> World {
    let world = World::configured(&model.config());
    world.up_and_born();
    world
}

fn rebuilds(world: &World) -> usize {
    world.log("agent").matches("[soul] system prompt rebuilt (").count()
}

/// Waits until an edit from outside is a commit.
#[track_caller]
fn taken_in(world: &World, path: &str, commits: usize) {
    eventually(secs(20), "the edit from outside is a commit", || {
        let log = world.git(&["log", "--format=%s", "--", path]);
        (log.lines().count() >= commits).then_some(())
    });
}

#[test]
fn s111_several_patches_in_one_turn_rebuild_once() {
    let model = Model::start(|request, _| {
        let done = request["messages"].as_array().unwrap().iter().any(|message| message["role"] == "tool");
        if done {
            return Answer::Says("done".into());
        }
        let patch = |field: &str, content: &str| {
            ("soul_patch", json!({"field": field, "content": content, "why": "to see"}))
        };
        Answer::Calls(vec![
            patch("identity", "a heron"),
            patch("purpose", "to stand still"),
            patch("name", "Ardea"),
        ])
    });
    let world = world_with(&model);
    let mut chat = world.chat();
    let session = chat.new_session();
    assert!(chat.say(&session, "be a heron").outcome.is_ok());
    assert_eq!(rebuilds(&world), 1, "{}", world.log("agent"));
    let prompt = newest(&model);
    for part in ["> a heron\n", "> to stand still\n", "> Ardea\n"] {
        assert!(prompt.contains(part), "{part} is not in {prompt}");
    }
    world.soul_is_whole();
}

#[test]
fn s111_an_edit_from_outside_in_mid_turn_reaches_the_next_call() {
    let home: Arc<Mutex<Option<std::path::PathBuf>>> = Arc::default();
    let edited = home.clone();
    let model = Model::start(move |request, _| {
        let calls = request["messages"].as_array().unwrap().iter().filter(|m| m["role"] == "tool").count();
        if system(request).contains("> a heron, from outside") || calls > 25 {
            return Answer::Says("seen".into());
        }
        if calls == 0 {
            let home = edited.lock().unwrap().clone().unwrap();
            std::fs::write(home.join("soul/identity.md"), "a heron, from outside\n").unwrap();
        }
        std::thread::park_timeout(secs(1) / 4);
        Answer::Calls(vec![("soul_read", json!({"what": "identity"}))])
    });
    let world = world_with(&model);
    *home.lock().unwrap() = Some(world.home().to_owned());
    let mut chat = world.chat();
    let session = chat.new_session();
    let reply = chat.say(&session, "who are you?");
    assert!(reply.text.ends_with("seen"), "{reply:?}");
    assert!(newest(&model).contains("> a heron, from outside\n"), "within the turn");
    assert!(model.requests().len() > 1);
}

#[test]
fn t38_shorter_deleted_and_same_second_edits_are_seen_and_without_one_the_bytes_stay() {
    let model = Model::start(|_, _| Answer::Says("yes".into()));
    let world = world_with(&model);
    let mut chat = world.chat();
    let session = chat.new_session();
    let mut prompt = |session: &str| {
        chat.say(session, "are you there?");
        newest(&model)
    };
    let first = prompt(&session);
    assert_eq!(prompt(&session), first, "the same bytes, turn after turn");
    let soul = world.home().join("soul");
    let write = |path: &Path, text: &str, at: SystemTime| {
        std::fs::write(path, text).unwrap();
        std::fs::File::options().write(true).open(path).unwrap().set_modified(at).unwrap();
    };
    let identity = soul.join("identity.md");
    let second = std::fs::metadata(&identity).unwrap().modified().unwrap();
    write(&identity, "I am new here, and long of word.\n", second);
    taken_in(&world, "identity.md", 2);
    assert!(prompt(&session).contains("> I am new here, and long of word.\n"));
    // shorter, and then another of the same length, all in one second by its stamp
    write(&identity, "I.\n", second);
    taken_in(&world, "identity.md", 3);
    assert!(prompt(&session).contains("# Identity\n\n> I.\n"));
    write(&identity, "U.\n", second);
    taken_in(&world, "identity.md", 4);
    let third = prompt(&session);
    assert!(third.contains("# Identity\n\n> U.\n"), "{third}");
    // deleted
    std::fs::create_dir_all(soul.join("values")).unwrap();
    std::fs::write(soul.join("values/calm.md"), "# calm\n\nI wait.\n").unwrap();
    taken_in(&world, "values/calm.md", 1);
    assert!(prompt(&session).contains("calm"));
    std::fs::remove_file(soul.join("values/calm.md")).unwrap();
    taken_in(&world, "values/calm.md", 2);
    assert_eq!(prompt(&session), third, "as if it had never been there, to the byte");
    // what the prompt does not show does not move it
    let before = rebuilds(&world);
    std::fs::create_dir_all(soul.join("journal")).unwrap();
    std::fs::write(soul.join("journal/2026-01-01.md"), "# 2026-01-01\n\n## 00:00:00\n\nhi\n").unwrap();
    taken_in(&world, "journal/2026-01-01.md", 1);
    assert_eq!(prompt(&session), third);
    assert_eq!(rebuilds(&world), before);
}

#[test]
fn s111_her_own_time_sees_what_changed() {
    let model = Model::start(|_, _| Answer::Says("yes".into()));
    let world = World::new();
    world.up_and_born();
    world.lisa(&["chat", "I want you to learn the names of the winds"]).ok();
    world.lisa(&["down"]).ok();
    std::fs::write(world.home().join("config.toml"), model.config()).unwrap();
    world.up();
    world.lisa(&["chat", "hello"]).ok();
    let before = newest(&model);
    std::fs::write(world.home().join("soul/identity.md"), "a heron\n").unwrap();
    taken_in(&world, "identity.md", 2);
    let ran = world.lisa(&["heartbeat", "run", &desire_of(&world), "--json"]).json();
    let requests = model.requests();
    let beat = requests.iter().find(|request| request.to_string().contains("[heartbeat] desire:"));
    let beat = system(beat.unwrap_or_else(|| panic!("{ran}")));
    assert!(beat.contains("# Identity\n\n> a heron\n") && !before.contains("a heron"), "{beat}");
}

#[test]
fn a_conversation_has_the_page_of_the_person_in_it_and_no_other() {
    let model = Model::start(|_, _| Answer::Says("yes".into()));
    let world = world_with(&model);
    let pages = world.home().join("soul/relationships");
    std::fs::create_dir_all(&pages).unwrap();
    std::fs::write(pages.join("anna.md"), "# Anna\n\nShe hums when she thinks.\n").unwrap();
    std::fs::write(pages.join("bo.md"), "# 阿波\n\n他不爱说话。\n").unwrap();
    taken_in(&world, "relationships", 1);
    let mut chat = world.chat();
    let mut begin = |person: Value| {
        let begun = json!({"cwd": "/", "mcpServers": [], "_meta": {"lisa": {"person": person}}});
        let session = chat.ask("session/new", begun)?["sessionId"].as_str().unwrap().to_owned();
        chat.say(&session, "hello");
        chat.say(&session, "hello again");
        Ok::<_, Value>((session, newest(&model)))
    };
    let (session, anna) = begin(json!("anna")).unwrap();
    assert!(anna.contains("# The person here\n\n> - [anna] Anna\n") && anna.contains("hums"), "{anna}");
    assert!(!anna.contains("他不爱说话"), "{anna}");
    let (_, bo) = begin(json!("bo")).unwrap();
    assert!(bo.contains("他不爱说话") && !bo.contains("hums"), "{bo}");
    let (_, nobody) = begin(Value::Null).unwrap();
    assert!(!nobody.contains("# The person here"), "who it is is not guessed: {nobody}");
    for wrong in [json!("../anna"), json!("a\nb"), json!(""), json!(7), json!("字".repeat(65))] {
        let error = begin(wrong.clone()).unwrap_err();
        let said = error["message"].as_str().unwrap();
        assert!(said.contains("person"), "{wrong}: {error}");
    }
    // the session keeps it over a death
    let pid = world.kill("agent");
    world.back("agent", pid);
    chat.say(&session, "still there?");
    assert_eq!(newest(&model), anna);
}

#[test]
fn who_it_is_where_no_client_says_so_stands_in_the_configuration() {
    let model = Model::start(|_, _| Answer::Says("yes".into()));
    let world = World::configured(&format!("person = \"anna\"\n{}", model.config()));
    world.up_and_born();
    world.lisa(&["chat", "hello"]).ok();
    assert!(newest(&model).contains("# The person here\n\n(you have no page about `anna` yet)\n"));
    let sessions = world.sessions();
    assert_eq!(sessions[0][0]["person"], "anna", "{:?}", sessions[0][0]);
}
