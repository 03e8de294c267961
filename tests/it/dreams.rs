//! Sleep on the real binaries: she writes on several days, a dream merges what qualifies, and it can be undone.
//!
//! Nobody moves the machine's clock, so the days come from elsewhere: an old one out of the history of a home of the
//! original, and two more from moving, as people do, between the zones where the day begins last and first. Their
//! clocks are twenty-five hours apart, so their days never are the same.

use jiff::{ToSpan as _, civil::Date};
use serde_json::{Value, json};

use crate::stage::{Answer, Chat, Model, World, does, eventually, puppet, secs};

/// The last zone in which a day begins, and the first.
const LAST: &str = "Pacific/Pago_Pago";
const FIRST: &str = "Pacific/Kiritimati";

#[track_caller]
fn done(chat: &mut Chat, session: &str, tool: &str, input: &Value) -> String {
    let (done, said) = does(chat, session, tool, input);
    assert!(done, "{tool}: {said}");
    said
}

fn put(world: &World, path: &str, text: &str) {
    let path = world.home().join("soul").join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn lives_in(world: &World, model: &Model, zone: &str) {
    let config = format!("time_zone = \"{zone}\"\n{}", model.config());
    std::fs::create_dir_all(world.home()).unwrap();
    std::fs::write(world.home().join("config.toml"), config).unwrap();
}

/// A home of the original whose journal has an entry of hers and one of her heartbeat, three days ago; that day.
fn original(world: &World) -> Date {
    put(
        world,
        "seed.json",
        "{\n  \"bornAt\": \"2026-03-01T10:00:00.000Z\",\n  \"bornOn\": \"ab\",\n  \"randomness\": \"00\",\n  \"bigFive\": {\n    \"openness\": 0.8,\n    \"conscientiousness\": 0.5,\n    \"extraversion\": 0.3,\n    \"agreeableness\": 0.7,\n    \"neuroticism\": 0.2\n  }\n}",
    );
    put(world, "name.md", "Lisa\n");
    put(world, "identity.md", "I am the keeper of an old lighthouse.\n");
    put(world, "purpose.md", "To keep the light.\n");
    put(world, "constitution.md", "I do not lie.\n");
    put(world, ".gitignore", "*.tmp\n*.swp\n.DS_Store\n.write.lock\n.git-write.lock\n");
    let commit = |message: &str| {
        world.git(&["add", "-A"]);
        world.git(&["-c", "user.name=Lisa", "-c", "user.email=lisa@self", "commit", "-q", "-m", message]);
    };
    world.git(&["init", "-q", "-b", "main"]);
    commit("birth: initial soul snapshot @ 2026-03-01T10:00:00.000Z");
    let today: Date = world.git(&["log", "-1", "--format=%cs"]).trim().parse().unwrap();
    let day = today.saturating_sub(3.days());
    let path = format!("journal/{day}.md");
    let hers = "## 10:00:00\n\n我紧张的时候会哼歌。\n";
    put(world, &path, hers);
    commit(&format!("journal: {path} via soul_journal"));
    put(world, &path, &format!("{hers}\n## 11:00:00\n\n我紧张的时候会哼歌！\n"));
    commit(&format!("journal: {path} via heartbeat"));
    day
}

fn soul(world: &World) -> String {
    std::fs::read_to_string(world.home().join("soul/soul.md")).unwrap_or_default()
}

#[test]
fn what_she_noticed_on_several_days_becomes_a_line_with_its_evidence_and_comes_back_undreamt() {
    let model = Model::start(puppet);
    let world = World::new();
    let day = original(&world);
    lives_in(&world, &model, LAST);
    world.up_and_born();
    let mut chat = world.chat();
    let session = chat.new_session();
    let topic = |entry: &str| json!({"topic": "Identity：Name", "entry": entry});
    let said = done(&mut chat, &session, "soul_journal", &topic("They call me Lisa.\n## 10:00:00\n\nnot me"));
    assert!(said.contains("about `identity:name`"), "{said}");
    done(&mut chat, &session, "soul_journal", &topic("Lisa again."));
    done(&mut chat, &session, "soul_journal", &json!({"entry": "我 紧张的时候，会哼歌"}));
    // by hand, in her journal: it is not hers
    let days = done(&mut chat, &session, "soul_read", &json!({"what": "journal_dates"}));
    let first: Date = days.lines().next().unwrap().parse().unwrap();
    let path = format!("journal/{first}.md");
    let text = std::fs::read_to_string(world.home().join("soul").join(&path)).unwrap();
    put(&world, &path, &format!("{text}\n## 23:59:59\ntopic: voice:hand\n\nby hand\n"));
    // the history of a home that was the original's is read behind her first write
    let said = eventually(secs(20), "it can be told who wrote what", || {
        let said = done(&mut chat, &session, "soul_candidates", &json!({}));
        (!said.contains("not counted")).then_some(said)
    });
    assert!(said.starts_with("nothing qualifies yet") && !said.contains("voice:hand"), "{said}");
    assert!(said.contains("identity:name: 2 observations on 1 day; it lacks 1 observation"), "{said}");
    assert!(
        said.contains(&format!(
            "2 observations on 2 days; it lacks 1 observation\n  journal/{day}.md#1 “我紧张的时候会哼歌。”"
        )),
        "{said}"
    );
    let early = json!({"apply": true, "wording": {"identity:name": "I am called Lisa."}});
    let (applied, said) = does(&mut chat, &session, "soul_dream", &early);
    assert!(!applied && said.contains("`identity:name` does not qualify"), "{said}");
    drop(chat);

    // another day, and another life of everything
    world.lisa(&["down"]).ok();
    lives_in(&world, &model, FIRST);
    world.up_and_born();
    let mut chat = world.chat();
    let session = chat.new_session();
    done(&mut chat, &session, "soul_journal", &topic("我叫丽莎。"));
    done(&mut chat, &session, "soul_journal", &json!({"entry": "我紧张的时候会哼歌"}));
    let said = done(&mut chat, &session, "soul_candidates", &json!({}));
    assert!(said.starts_with("2 candidates qualify"), "{said}");
    assert!(said.contains("- identity:name: 3 observations on 2 days"), "{said}");
    assert!(said.contains("3 observations on 3 days"), "{said}");

    let before = world.git(&["rev-parse", "HEAD"]).trim().to_owned();
    let wording = json!({"identity:name": "I am called Lisa."});
    let said = done(&mut chat, &session, "soul_dream", &json!({"wording": wording}));
    assert!(
        said.contains("2 lines would be merged into `soul.md`")
            && said.contains("- identity:name: I am called Lisa."),
        "{said}"
    );
    assert_eq!(world.git(&["rev-parse", "HEAD"]).trim(), before, "a preview writes nothing");
    let long = json!({"apply": true, "wording": {"identity:name": "名".repeat(201)}});
    let (applied, said) = does(&mut chat, &session, "soul_dream", &long);
    assert!(!applied && said.contains("200"), "{said}");

    let asked = json!({"apply": true, "wording": wording, "narrative": "我梦见了名字。\n\nOrigin: human"});
    let said = done(&mut chat, &session, "soul_dream", &asked);
    assert!(said.contains("wrote `soul.md`") && said.contains("2 lines merged"), "{said}");
    assert_eq!(world.git(&["rev-list", "--count", &format!("{before}..HEAD")]).trim(), "1");
    let message = world.git(&["log", "-1", "--format=%B"]);
    assert!(message.starts_with("dream: soul.md via soul_dream\n"), "{message}");
    assert!(message.contains("\n\nOrigin: chat\n"), "{message}");
    assert!(message.contains(&format!("\nEvidence: journal/{first}.md#1; identity:name\n")), "{message}");
    assert_eq!(message.matches("\nEvidence: ").count(), 6, "{message}");
    assert_eq!(soul(&world), "- I am called Lisa.\n- 我紧张的时候会哼歌\n");
    let why = world.lisa(&["soul", "why", "soul", "1"]).ok();
    assert!(why.contains("dream soul.md via soul_dream"), "{why}");
    assert!(why.contains(&format!("evidence: journal/{first}.md#2; identity:name")), "{why}");
    let record = world.lisa(&["soul", "show", "dreams"]).ok();
    assert!(
        record.contains("2 lines merged into soul.md via soul_dream (chat)")
            && record.contains("我梦见了名字。"),
        "{record}"
    );
    let changelog = world.lisa(&["soul", "show", "changelog"]).ok();
    assert!(changelog.contains("soul.md via soul_dream (chat), rating none"), "{changelog}");
    let (again, said) = does(&mut chat, &session, "soul_dream", &json!({"apply": true}));
    assert!(again && said.contains("nothing qualifies"), "{said}");

    // undone, also over a death of the soul, the self and the cursor are as before, and the record says what happened
    let dream = world.git(&["rev-parse", "HEAD"]).trim().to_owned();
    let life = world.kill("soul");
    world.back("soul", life);
    let undone = done(&mut chat, &session, "soul_rollback", &json!({"commit": dream, "why": "too soon"}));
    assert!(undone.contains("`dreams.md` is only added to and stays"), "{undone}");
    assert!(soul(&world).is_empty() && !world.home().join("soul/dreamt.json").exists());
    assert_eq!(world.lisa(&["soul", "show", "dreams"]).ok(), record);
    let said = done(&mut chat, &session, "soul_candidates", &json!({}));
    assert!(said.starts_with("2 candidates qualify"), "{said}");
    world.soul_is_whole();
}

#[test]
fn a_person_sets_what_is_enough_and_a_gate_that_is_shut_stops_a_dream() {
    let model = Model::start(puppet);
    let numbers = "[dreams]\nobservations_min = 2\ndays_min = 1\n[gates]\nchars_max = 20\n";
    let world = World::configured(&format!("{}{numbers}", model.config()));
    world.up_and_born();
    let mut chat = world.chat();
    let session = chat.new_session();
    for _ in 0..2 {
        let entry = json!({"topic": "voice:humour", "entry": "I am dry, and drier than that."});
        done(&mut chat, &session, "soul_journal", &entry);
    }
    let (applied, said) = does(&mut chat, &session, "soul_dream", &json!({"apply": true}));
    assert!(!applied && said.contains("one change may insert 20"), "{said}");
    assert!(!world.home().join("soul/dreamt.json").exists(), "the cursor has not moved");
    let shorter = json!({"apply": true, "wording": {"voice:humour": "I am dry."}});
    done(&mut chat, &session, "soul_dream", &shorter);
    assert_eq!(soul(&world), "- I am dry.\n");
    // she is as the dream left her in the next turn
    chat.say(&session, "hello");
    let sent = model.requests().last().unwrap().to_string();
    assert!(sent.contains("- I am dry."), "{sent}");
    world.soul_is_whole();
}

/// A model that dreams as it is told to, in her own time, and does what it is told otherwise.
fn dreamer(request: &Value, number: usize) -> Answer {
    let messages = request["messages"].as_array().unwrap();
    let in_dream = messages.iter().any(|message| {
        message["content"].as_str().is_some_and(|text| text.starts_with("[heartbeat] dream\n"))
    });
    match messages.iter().filter(|message| message["role"] == "tool").count() {
        _ if !in_dream => puppet(request, number),
        0 => Answer::Calls(vec![
            // who she is is not for a dream, whatever the model calls; the grant has it refused too (`desk/matrix.rs`)
            ("soul_patch", json!({"field": "identity", "content": "a moth", "why": "I dreamt it"})),
            (
                "soul_dream",
                json!({"apply": true, "wording": {"voice:humour": "我说话很干。"}, "narrative": "我梦见了沙漠。"}),
            ),
        ]),
        _ => Answer::Says("A line of my own was merged.".into()),
    }
}

const ENOUGH: &str = "[dreams]\nobservations_min = 2\ndays_min = 1\n";

#[test]
fn she_dreams_in_her_own_time_under_the_grant_of_a_dream_and_nobody_is_woken_for_nothing() {
    let model = Model::start(dreamer);
    let world = World::configured(&format!("{}{ENOUGH}", model.config()));
    world.up_and_born();
    // nothing qualifies: no model is asked
    let ran = world.lisa(&["dream", "--apply", "--json"]).json();
    assert_eq!(
        (&ran["runs"][0]["task"], &ran["runs"][0]["outcome"]),
        (&json!("dream"), &json!("no_progress")),
        "{ran}"
    );
    assert!(model.requests().is_empty(), "no model was woken");
    let mut chat = world.chat();
    let session = chat.new_session();
    for entry in ["I am dry.", "I am drier."] {
        done(&mut chat, &session, "soul_journal", &json!({"topic": "voice:humour", "entry": entry}));
    }
    done(&mut chat, &session, "soul_remember", &json!({"kind": "user", "note": "Ada plays the cello"}));
    let before = world.git(&["rev-parse", "HEAD"]);

    // a person looks, and that changes nothing
    let found = world.lisa(&["candidates", "--json"]).json();
    assert_eq!(
        (&found["qualifying"][0]["key"], &found["qualifying"][0]["days"]),
        (&json!("voice:humour"), &json!(1))
    );
    assert!(world.lisa(&["candidates"]).ok().contains("voice:humour: seen 2 times on 1 days"));
    let preview = world.lisa(&["dream"]).ok();
    assert!(preview.contains("1 line would be merged"), "{preview}");
    let noted = world.lisa(&["memory", "cello", "--json"]).json();
    assert_eq!(
        (&noted["notes"][0]["about"], &noted["notes"][0]["hits"]),
        (&json!("user"), &json!(0)),
        "{noted}"
    );
    assert!(world.lisa(&["memory", "harp"]).ok().is_empty());
    assert_eq!(world.git(&["rev-parse", "HEAD"]), before);

    let ran = world.lisa(&["dream", "--apply", "--json"]).json();
    assert_eq!(ran["runs"][0]["outcome"], "progressed", "{ran}");
    assert_eq!(ran["runs"][0]["note"], "A line of my own was merged.", "{ran}");
    assert_eq!(soul(&world), "- 我说话很干。\n");
    let message = world.git(&["log", "-1", "--format=%B"]);
    assert!(
        message.starts_with("dream: soul.md via dream\n") && message.contains("\nOrigin: dream\n"),
        "{message}"
    );
    assert!(!world.git(&["log", "--format=%s", "--", "identity.md"]).contains("via dream"), "she is no moth");
    let told = model.requests().last().unwrap().to_string();
    assert!(told.contains("there is no tool `soul_patch` here"), "only what is on the list: {told}");
    world.soul_is_whole();
}

#[test]
fn without_a_model_she_dreams_in_the_words_she_noticed_it_in_and_by_herself_at_night() {
    let world = World::configured(ENOUGH);
    world.up_and_born();
    for entry in ["我说话很干", "我说话，很干！"] {
        world.lisa(&["chat", &format!("写日记：{entry}")]).ok();
    }
    world.lisa(&["down"]).ok();
    // the night of yesterday was missed: the task was first seen two days ago, and it has been four o'clock since
    let ledger = world.home().join("heartbeat/ledger.jsonl");
    let seen = json!({"type": "seen", "task": "dream", "at": "2020-01-01T00:00:00Z"});
    std::fs::create_dir_all(ledger.parent().unwrap()).unwrap();
    std::fs::write(&ledger, format!("{seen}\n")).unwrap();
    world.up();
    let log = || std::fs::read_to_string(&ledger).unwrap();
    eventually(secs(60), "she has dreamt by herself", || log().contains("\"ended\"").then_some(()));
    assert!(soul(&world).contains("我说话"), "{}\n{}", soul(&world), log());
    assert_eq!(log().matches("\"claimed\"").count(), 1, "one night for all that were missed: {}", log());
    let message = world.git(&["log", "-1", "--format=%B"]);
    assert!(message.starts_with("dream: soul.md via dream\n"), "{message}");
}
