//! Her notes on the real binaries: noted and recalled in conversations, promoted when they were needed often enough, and
//! followed by a kill and a roll-back.

use serde_json::{Value, json};

use crate::stage::{Chat, Model, World, does, puppet};

/// Recalls in a session of its own.
#[track_caller]
fn recalled(chat: &mut Chat, query: &str) -> String {
    let session = chat.new_session();
    let (done, said) = does(chat, &session, "soul_recall", &json!({"query": query}));
    assert!(done, "{said}");
    said
}

/// Notes something, and gives the address of the note.
#[track_caller]
fn noted(chat: &mut Chat, session: &str, kind: &str, note: &str) -> String {
    let (done, said) = does(chat, session, "soul_remember", &json!({"kind": kind, "note": note}));
    assert!(done, "{said}");
    let (_, address) = said.rsplit_once("noted as `").unwrap_or_else(|| panic!("{said}"));
    address.trim_end_matches('`').to_owned()
}

fn promote(note: &str) -> Value {
    json!({"action": "promote", "note": note})
}

#[test]
fn a_note_graduates_after_three_conversations_and_the_line_says_why() {
    let model = Model::start(puppet);
    let world = World::configured(&model.config());
    world.up_and_born();
    let mut chat = world.chat();
    let session = chat.new_session();
    let cello = noted(&mut chat, &session, "user", "Ada plays the cello on Thursdays.");
    let tea = noted(&mut chat, &session, "pref", "他喜欢喝乌龙茶，不加糖。");
    let (file, _) = cello.split_once('#').unwrap();
    let shown = world.lisa(&["soul", "show", file.trim_end_matches(".md")]).ok();
    assert!(shown.contains("## 1 user 20") && shown.contains("乌龙茶"), "{shown}");
    assert_eq!(world.git(&["log", "--oneline", "--", file]).lines().count(), 2);
    let history = world.lisa(&["soul", "history", "notes"]).ok();
    assert_eq!(history.matches(&format!("remember {file} via soul_remember")).count(), 2, "{history}");

    // in one conversation, however often
    for _ in 0..3 {
        let (done, said) = does(&mut chat, &session, "soul_recall", &json!({"query": "the cello"}));
        assert!(done && said.contains(&format!("{cello} user")) && said.contains(", 1 hit\n"), "{said}");
        assert!(!said.contains("乌龙"), "{said}");
    }
    assert!(recalled(&mut chat, "乌龙").contains(&format!("{tea} pref")), "two characters are enough");
    assert!(recalled(&mut chat, "cello Ada").contains(", 2 hits\n"));
    let (done, said) = does(&mut chat, &session, "soul_memory", &promote(&cello));
    assert!(!done && said.contains("2 conversations, and 3 are needed"), "{said}");

    // another life of the soul knows the count
    let pid = world.kill("soul");
    world.back("soul", pid);
    assert!(recalled(&mut chat, "thursdays").contains(", 3 hits\n"));
    let (_, stands) = does(&mut chat, &session, "soul_memory", &json!({}));
    assert!(
        stands.contains(&format!("{cello} user, 3 of 3")) && stands.contains(&format!("{tea} pref, 1 of 3")),
        "{stands}"
    );
    let (done, said) = does(&mut chat, &session, "soul_memory", &promote(&cello));
    assert!(done && said.contains("commit `"), "{said}");
    let (done, said) = does(&mut chat, &session, "soul_memory", &promote(&cello));
    assert!(!done && said.contains("already"), "{said}");

    let memory = world.lisa(&["soul", "show", "memory"]).ok();
    let line = format!("- Ada plays the cello on Thursdays. [{cello}; 3 hits]");
    assert_eq!(memory.trim(), line);
    let why = world.lisa(&["soul", "why", "memory", "1"]).ok();
    assert!(
        why.contains("promote memory.md via soul_memory")
            && why.contains(&format!("\n  evidence: {cello}; 3 hits\n")),
        "{why}"
    );
    let why = world.lisa(&["--json", "soul", "why", "memory", "1"]).json();
    assert_eq!(why["entry"]["evidence"], json!([format!("{cello}; 3 hits")]));
    assert!(world.lisa(&["soul", "show", "changelog"]).ok().contains("memory.md via soul_memory (chat)"));
    // it is in the next prompt
    chat.say(&session, "what do you keep in mind?");
    let prompt = model.requests().pop().unwrap()["messages"][0]["content"].to_string();
    assert!(prompt.contains("Ada plays the cello on Thursdays."), "{prompt}");
    world.soul_is_whole();
}

#[test]
fn killed_between_its_recalls_and_rolled_back_the_count_is_that_of_then() {
    let model = Model::start(puppet);
    let world = World::configured(&model.config());
    world.up_and_born();
    let mut chat = world.chat();
    let session = chat.new_session();
    let note = noted(&mut chat, &session, "lesson", "先问，再删除。");
    assert!(recalled(&mut chat, "删除").contains(", 1 hit\n"));
    let then = world.git(&["log", "-1", "--format=%cI", "--", "memory/hits.jsonl"]).trim().to_owned();
    // git counts in seconds, and what comes next is to be of a later one
    let until = std::time::Instant::now() + std::time::Duration::from_millis(1100);
    crate::stage::eventually(crate::stage::secs(10), "a second has passed", || {
        (std::time::Instant::now() > until).then_some(())
    });
    for n in 2..4 {
        let pid = world.kill("soul");
        assert!(
            recalled(&mut chat, "删除").contains(&format!(", {n} hits\n")),
            "asked while the soul is away"
        );
        world.back("soul", pid);
    }
    let (done, said) = does(&mut chat, &session, "soul_memory", &promote(&note));
    assert!(done, "{said}");
    assert_eq!(world.git(&["log", "--oneline", "--", "memory/hits.jsonl"]).lines().count(), 3);

    let back = json!({"to": then, "why": "too soon"});
    let (done, said) = does(&mut chat, &session, "soul_rollback", &back);
    assert!(done, "{said}");
    assert_ne!(world.lisa(&["soul", "show", "memory"]).code, 0, "the line is gone with the text");
    let (done, said) = does(&mut chat, &session, "soul_memory", &promote(&note));
    assert!(!done && said.contains("1 conversation, and 3"), "{said}");
    assert!(world.lisa(&["soul", "show", "notes"]).ok().contains("先问，再删除。"), "notes stay");
    assert!(recalled(&mut chat, "删除").contains(", 2 hits\n"), "and it goes on from there");
    world.soul_is_whole();
}

#[test]
fn a_reflection_notes_and_finds_and_counts_nothing() {
    let model = Model::start(|request, _| {
        let messages = request["messages"].as_array().unwrap();
        let reflects = messages.iter().any(|message| {
            message["content"].as_str().is_some_and(|text| text.starts_with("[reflect] session:"))
        });
        let round = messages.iter().filter(|message| message["role"] == "assistant").count();
        match (reflects, round) {
            (true, 0) => crate::stage::Answer::Calls(vec![
                ("soul_remember", json!({"kind": "talk", "note": "We spoke of the sea."})),
                ("soul_recall", json!({"query": "sea"})),
                ("soul_journal", json!({"entry": "We spoke of the sea."})),
            ]),
            (true, _) => crate::stage::Answer::Says("We spoke of the sea.".into()),
            (false, _) => puppet(request, 0),
        }
    });
    let world = World::configured(&model.config());
    world.up_and_born();
    let mut chat = world.chat();
    let session = chat.new_session();
    chat.say(&session, "let us speak of the sea");
    let looked = chat.say(&session, "/reflect");
    assert!(looked.outcome.is_ok(), "{looked:?}");
    assert!(world.lisa(&["soul", "show", "notes"]).ok().contains("We spoke of the sea."));
    assert!(world.git(&["log", "-1", "--format=%b", "--", "memory"]).contains("Origin: reflect"));
    assert_eq!(world.git(&["log", "--oneline", "--", "memory/hits.jsonl"]), "");
    let told: Vec<String> = model.requests().iter().map(Value::to_string).collect();
    assert!(told.iter().any(|request| request.contains("only a conversation counts")), "she is told so");
    world.soul_is_whole();
}
