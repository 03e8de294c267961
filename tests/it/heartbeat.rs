//! Her own time: a desire is pursued, its progress is in the next prompt, and what she forgets is said.

use serde_json::{Value, json};

use crate::stage::{Answer, Model, World, eventually, secs};

const DESIRE: &str = "I want you to learn the names of the winds";

/// The slug of the one desire there is.
pub(crate) fn desire_of(world: &World) -> String {
    let snapshot = world.lisa(&["soul", "--json"]).json();
    let desires = snapshot["desires"].as_array().unwrap_or_else(|| panic!("{snapshot}"));
    desires[0]["slug"].as_str().unwrap().to_owned()
}

fn prompt_of(world: &World, session: &str) -> String {
    let path = world.home().join(format!("sessions/{session}.jsonl"));
    let text = std::fs::read_to_string(path).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let user = lines.iter().find(|line| line["message"]["role"] == "user").unwrap();
    user["message"]["content"][0]["text"].as_str().unwrap().to_owned()
}

#[test]
fn s13_the_first_run_finds_no_progress_and_leaves_an_entry_that_the_second_is_told() {
    let world = World::new();
    world.up_and_born();
    world.lisa(&["chat", DESIRE]).ok();
    let slug = desire_of(&world);
    let task = format!("desire:{slug}");
    let run = || {
        let ran = world.lisa(&["heartbeat", "run", &task, "--json"]).json();
        assert_eq!(ran["runs"].as_array().unwrap().len(), 1, "{ran}");
        ran["runs"][0].clone()
    };
    let first = run();
    assert_eq!(first["outcome"], "progressed", "{first}");
    let told = prompt_of(&world, first["session"].as_str().unwrap());
    assert!(told.starts_with(&format!("[heartbeat] {task}\n")) && told.contains("first heartbeat"), "{told}");
    let progress = world.lisa(&["soul", "show", &format!("desires/{slug}.progress")]).ok();
    let entry = progress.lines().rfind(|line| !line.trim().is_empty()).unwrap().to_owned();

    let second = run();
    let told = prompt_of(&world, second["session"].as_str().unwrap());
    assert!(told.contains("## progress so far") && told.contains(entry.trim()), "{entry} is not in {told}");

    let path = format!("desires/{slug}.progress.md");
    let log = world.git(&["log", "--format=%s%n%b", "--", &path]);
    assert_eq!(log.matches(&format!("progress: {path} via heartbeat")).count(), 2, "{log}");
    assert!(log.contains("Origin: heartbeat"), "{log}");
    // her own time is no conversation: the next chat does not fall into it
    let listed = world.chat().ask("session/list", json!({})).unwrap();
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1, "{listed}");
    world.soul_is_whole();
}

#[test]
fn t09_a_run_without_an_entry_leaves_one_that_says_so() {
    let model = Model::start(|_, _| Answer::Says("done!".into()));
    let world = World::new();
    world.up_and_born();
    world.lisa(&["chat", DESIRE]).ok();
    let slug = desire_of(&world);
    world.lisa(&["down"]).ok();
    std::fs::write(world.home().join("config.toml"), model.config()).unwrap();
    world.up();
    let ran = world.lisa(&["heartbeat", "run", &slug, "--json"]).json();
    assert_eq!(ran["runs"][0]["outcome"], "no_progress", "{ran}");
    let progress = world.lisa(&["soul", "show", &format!("desires/{slug}.progress")]).ok();
    assert!(progress.contains("[FALLBACK]"), "{progress}");
}

#[test]
fn s3_two_writers_of_one_file_at_once_make_two_commits_each_with_its_own_content_and_caller() {
    // one writes in a conversation, one in her own time, and both are let go at the same moment
    let both = std::sync::Barrier::new(2);
    let model = Model::start(move |request, _| {
        let messages = request["messages"].as_array().unwrap();
        if messages.iter().any(|message| message["role"] == "tool") {
            return Answer::Says("done".into());
        }
        let beat = messages
            .iter()
            .any(|m| m["content"].as_str().is_some_and(|text| text.starts_with("[heartbeat]")));
        let content = if beat { "a heron, in its own time" } else { "a heron, in talk" };
        Answer::Calls(vec![("soul_patch", json!({"field": "identity", "content": content, "why": "to see"}))])
    });
    let world = World::new();
    world.up_and_born();
    world.lisa(&["chat", DESIRE]).ok();
    let slug = desire_of(&world);
    world.lisa(&["down"]).ok();
    std::fs::write(world.home().join("config.toml"), model.config()).unwrap();
    world.up();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            both.wait();
            world.lisa(&["heartbeat", "run", &slug]).ok();
        });
        scope.spawn(|| {
            both.wait();
            world.lisa(&["chat", "--new", "be a heron"]).ok();
        });
    });
    let commits = world.git(&["log", "-2", "--format=%H %s", "--", "identity.md"]);
    let mut seen: Vec<(String, String)> = commits
        .lines()
        .map(|line| {
            let (commit, subject) = line.split_once(' ').unwrap();
            (subject.to_owned(), world.git(&["show", &format!("{commit}:identity.md")]).trim().to_owned())
        })
        .collect();
    seen.sort();
    assert_eq!(
        seen,
        [
            ("patch: identity.md via heartbeat".to_owned(), "a heron, in its own time".to_owned()),
            ("patch: identity.md via soul_patch".to_owned(), "a heron, in talk".to_owned()),
        ]
    );
    world.soul_is_whole();
}

#[test]
fn t08_a_run_that_does_not_end_is_cut_off_and_the_next_one_runs() {
    let model = Model::start(|_, number| match number {
        0 => Answer::HangsAfter("hm".into()),
        _ => Answer::Says("done".into()),
    });
    let world = World::new();
    world.up_and_born();
    world.lisa(&["chat", DESIRE]).ok();
    let slug = desire_of(&world);
    world.lisa(&["down"]).ok();
    let config = model.config().replace("\"2s\"", "\"5m\"") + "[heartbeat]\nturn_max = \"1s\"\n";
    std::fs::write(world.home().join("config.toml"), config).unwrap();
    world.up();
    let cut = world.lisa(&["heartbeat", "run", &slug, "--json"]);
    assert_eq!(cut.code, 1, "{cut:?}");
    assert!(cut.stdout.contains("\"failed\"") && cut.stdout.contains("cut off"), "{cut:?}");
    let next = world.lisa(&["heartbeat", "run", &slug, "--json"]).json();
    assert_eq!(next["runs"][0]["outcome"], "no_progress", "{next}");
}

#[test]
fn t02_off_means_off_and_is_said() {
    let world = World::configured("[heartbeat]\ninterval = \"0m\"\n");
    world.up_and_born();
    world.lisa(&["chat", DESIRE]).ok();
    let notices = world.status()["notices"].to_string();
    assert!(notices.contains("heartbeat is off"), "{notices}");
    assert_eq!(world.lisa(&["heartbeat", "run", "--json"]).json()["runs"], json!([]));
}

#[test]
fn t14_a_run_that_was_claimed_by_a_process_that_died_is_interrupted_and_not_run_again() {
    let model = Model::start(|_, _| Answer::HangsAfter("hm".into()));
    let world = World::new();
    world.up_and_born();
    world.lisa(&["chat", DESIRE]).ok();
    let slug = desire_of(&world);
    world.lisa(&["down"]).ok();
    std::fs::write(world.home().join("config.toml"), model.config().replace("\"2s\"", "\"5m\"")).unwrap();
    world.up();
    let ledger = || std::fs::read_to_string(world.home().join("heartbeat/ledger.jsonl")).unwrap_or_default();
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| world.lisa(&["heartbeat", "run", &slug, "--json"]));
        eventually(secs(20), "the model is asked", || (!model.requests().is_empty()).then_some(()));
        let pid = world.kill("heartbeat");
        world.back("heartbeat", pid);
        let told = asked.join().unwrap();
        assert!(told.stdout.contains("\"interrupted\""), "whoever asked is told: {told:?}");
    });
    assert!(ledger().contains("\"outcome\":\"interrupted\""), "{}", ledger());
    assert_eq!(ledger().matches("\"claimed\"").count(), 1, "{}", ledger());
}

#[test]
fn p8_u2_of_what_is_due_the_strongest_is_pursued_first_and_what_waits_for_a_person_never() {
    let world = World::new();
    world.up_and_born();
    world.lisa(&["down"]).ok();
    let put = |slug: &str, fields: &str| {
        let folder = world.home().join("soul/desires");
        std::fs::create_dir_all(&folder).unwrap();
        let stamps = "born: 2020-01-01T00:00:00.000Z\nupdated: 2020-01-01T00:00:00.000Z";
        let text = format!(
            "# {slug}\n\nactionable: yes\n{fields}\n{stamps}\n\n## why\ncalm\n\n## heartbeat\nread on\n"
        );
        std::fs::write(folder.join(format!("{slug}.md")), text).unwrap();
    };
    // by name the spark would come first, and it began stronger; years later nothing is left of it
    put("a-spark", "intensity: 0.900\nhorizon: spark");
    put("b-enduring", "intensity: 0.600\nhorizon: enduring");
    put("c-person", "pursuit: needs-user\nintensity: 1.000\nhorizon: enduring");
    std::fs::write(world.home().join("config.toml"), "[heartbeat]\ninterval = \"15s\"\n").unwrap();
    world.up();
    let run = || {
        let ran = world.lisa(&["heartbeat", "run", "--json"]).json();
        ran["runs"][0]["task"].as_str().map(str::to_owned)
    };
    let first = eventually(secs(60), "something is due", run);
    assert_eq!((first.as_str(), run().as_deref()), ("desire:b-enduring", Some("desire:a-spark")));
    assert_eq!(run(), None, "what waits for a person is not due");
}
