//! What people do to her on the real binaries: edits, roll-backs, questions about a line, checks; and who may do what.

use serde_json::{Value, json};

use crate::stage::{World, eventually, secs};

fn history(world: &World, arguments: &[&str]) -> Vec<Value> {
    let mut all = vec!["soul", "history", "--json"];
    all.extend(arguments);
    world.lisa(&all).json_lines()
}

fn edits(world: &World) -> usize {
    history(world, &["--limit", "200"]).iter().filter(|entry| entry["caller"] == "manual").count()
}

#[test]
fn an_edit_by_hand_while_she_runs_is_a_commit_of_its_own_and_in_her_next_turn() {
    let world = World::new();
    world.up_and_born();
    let before = world.status()["soul"]["prompt_version"].as_u64().unwrap();
    let mut chat = world.chat();
    chat.follow();
    std::fs::write(world.home().join("soul/identity.md"), "I am the heron at the old pier.\n").unwrap();
    let event = chat
        .event("the edit is told", |event| event["type"] == "soul_changed" && event["caller"] == "manual");
    assert_eq!((event["op"].as_str(), event["origin"].as_str()), (Some("edit"), Some("manual")));
    assert_eq!(world.status()["soul"]["prompt_version"].as_u64(), Some(before + 1));
    assert!(world.lisa(&["chat", "who are you?"]).ok().contains("the heron at the old pier"));
    world.soul_is_whole();

    // her own writes are nobody's edits, however closely they are watched
    world.lisa(&["chat", "change your identity to a lighthouse keeper"]).ok();
    let why = world.lisa(&["soul", "why", "identity", "1", "--json"]).json();
    assert_eq!((why["entry"]["op"].as_str(), why["entry"]["origin"].as_str()), (Some("patch"), Some("chat")));
    std::fs::remove_file(world.home().join("soul/purpose.md")).unwrap();
    eventually(secs(20), "the deletion is committed", || (edits(&world) == 2).then_some(()));
    world.soul_is_whole();
    let notice = eventually(secs(20), "the person can see it too", || {
        let notices = world.status()["notices"].to_string();
        notices.contains("removed by hand").then_some(notices)
    });
    assert!(notice.contains("purpose.md"), "{notice}");
}

#[test]
fn an_edit_made_while_she_was_down_is_found_at_the_start() {
    let world = World::new();
    world.up_and_born();
    world.lisa(&["down"]).ok();
    std::fs::write(world.home().join("soul/purpose.md"), "在夜里写的\n").unwrap();
    world.up();
    eventually(secs(20), "the edit is committed", || (edits(&world) == 1).then_some(()));
    let line = world.lisa(&["soul", "why", "purpose", "1"]).ok();
    assert!(
        line.contains("在夜里写的") && line.contains("via manual") && line.contains("edited by hand"),
        "{line}"
    );
    world.soul_is_whole();
}

#[test]
fn a_person_rolls_back_after_being_shown_what_that_changes() {
    let world = World::new();
    world.up_and_born();
    let birth = history(&world, &[])[0]["commit"].as_str().unwrap().to_owned();
    let first = world.lisa(&["soul", "show", "identity"]).ok();
    // times are told by the second, and what comes next must be later than the birth
    let second = || std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let began = second();
    eventually(secs(5), "a second passes", || (second() > began).then_some(()));
    world.lisa(&["chat", "change your identity to a heron"]).ok();

    let asked = world.lisa(&["soul", "rollback", "identity", &birth]);
    assert_eq!(asked.code, 1, "{asked:?}");
    for part in ["identity.md +", "patch identity.md via soul_patch", "--yes"] {
        assert!(asked.stderr.contains(part), "{part}: {asked:?}");
    }
    assert_ne!(world.lisa(&["soul", "show", "identity"]).ok(), first, "nothing is changed without a yes");

    let done = world
        .lisa(&["soul", "rollback", "identity", &birth, "--why", "too feathery", "--yes", "--json"])
        .json();
    let commit = done["written"]["commit"].as_str().unwrap().to_owned();
    assert_eq!(world.lisa(&["soul", "show", "identity"]).ok(), first);
    let newest = &history(&world, &[])[0];
    assert_eq!(newest["commit"], commit.as_str());
    assert_eq!(
        (newest["op"].as_str(), newest["caller"].as_str(), newest["origin"].as_str()),
        (Some("rollback"), Some("human"), Some("human"))
    );
    let why = newest["why"].as_str().unwrap();
    assert!(why.starts_with("too feathery") && why.contains("undoes "), "{why}");

    world.lisa(&["soul", "rollback", "--commit", &commit, "--yes"]).ok();
    assert!(
        world.lisa(&["soul", "show", "identity"]).ok().contains("heron"),
        "a roll-back is undone like anything else"
    );
    let lost = world.lisa(&["soul", "rollback", "--commit", &commit, "--yes"]);
    assert!(lost.code == 0 && lost.stderr.contains("already"), "{lost:?}");
    let all = history(&world, &["--limit", "200"]);
    let born = all.last().unwrap()["time"].as_str().unwrap();
    world.lisa(&["soul", "rollback", "--to", born, "--yes"]).ok();
    assert_eq!(world.lisa(&["soul", "show", "identity"]).ok(), first, "everything shown, as of a time");
    world.soul_is_whole();
}

#[test]
fn what_only_a_person_may_do_is_lent_to_nothing_that_she_started() {
    let world = World::new();
    world.up_and_born();
    let birth = history(&world, &[])[0]["commit"].as_str().unwrap().to_owned();
    world.lisa(&["chat", "change your identity to a heron"]).ok();
    // we are a person's program, whatever we say about it
    let mut chat = world.chat();
    let asked = json!({"method": "rollback", "params": {"document": "identity", "commit": birth, "apply": true, "human": false}});
    let told = chat.ask("_lisa/soul", asked).unwrap();
    assert!(told["rolled_back"]["written"]["commit"].is_string(), "{told}");
    let call = json!({"method": "call", "params": {"tool": "soul_journal", "input": {"entry": "x"}, "run": null, "session": null, "model": "m"}});
    let told = chat.ask("_lisa/soul", call).unwrap();
    assert_eq!(told["called"]["failed"], true, "her own tools stay hers: {told}");

    // and the same command, run by something that she started
    world.lisa(&["down"]).ok();
    let lisa = world.command("lisa", &[]).get_program().to_str().unwrap().to_owned();
    let heron = history_of(&world, "identity");
    let script = format!("run {lisa} --home {} soul rollback identity {heron} --yes", world.home().display());
    world.misbehave("lisa-heartbeat", &script);
    world.up();
    let said = eventually(secs(20), "the command has been tried", || {
        std::fs::read_to_string(lisa.replace("/lisa", "/misbehave.out")).ok().filter(|said| !said.is_empty())
    });
    assert!(said.contains("only a person"), "{said}");
    assert_eq!(history_of(&world, "identity"), heron, "nothing was changed");
}

/// The commit before the newest that touched a document, from git itself.
fn history_of(world: &World, document: &str) -> String {
    let log = world.git(&["log", "--format=%H", "--", &format!("{document}.md")]);
    log.lines().nth(1).unwrap().to_owned()
}

#[test]
fn a_check_names_what_is_broken_mends_it_and_works_without_a_supervisor() {
    let world = World::new();
    world.up_and_born();
    world.lisa(&["chat", "change your identity to a heron"]).ok();
    let words = world.lisa(&["soul", "show", "identity"]).ok();
    assert!(world.lisa(&["soul", "check"]).ok().contains("as it should be"));
    world.lisa(&["down"]).ok();

    let soul = world.home().join("soul");
    std::fs::write(soul.join(".git/HEAD"), "").unwrap();
    std::fs::write(soul.join(".git/index.lock"), "").unwrap();
    let found = world.lisa(&["soul", "check"]);
    assert!(found.code == 1 && found.stdout.contains("HEAD is empty"), "{found:?}");

    // a soul whose repository is broken is read, and says so
    world.up();
    assert_eq!(world.lisa(&["soul", "show", "identity"]).ok(), words);
    let notices = world.status()["notices"].to_string();
    assert!(notices.contains("read, not changed"), "{notices}");
    assert_eq!(world.process("soul")["restarts"], 0);
    let mended = world.lisa(&["soul", "check", "--repair", "--json"]).json();
    assert!(mended["findings"].as_array().unwrap().iter().any(|found| found["mended"] == true), "{mended}");
    world.lisa(&["chat", "change your identity to a crane"]).ok();
    world.soul_is_whole();

    world.lisa(&["down"]).ok();
    std::fs::write(soul.join(".git/refs/heads/main"), "").unwrap();
    let mended = world.lisa(&["soul", "check", "--repair"]).ok();
    assert!(mended.contains("mended"), "{mended}");
    assert!(soul.join(".git/lisa/rescue").is_dir(), "what was mended is kept first");
    world.up();
    assert!(world.lisa(&["soul", "show", "identity"]).ok().contains("crane"));
    world.soul_is_whole();
}

#[test]
fn a_write_of_hers_before_a_kill_is_nobody_elses_after_it() {
    let world = World::new();
    world.up_and_born();
    world.lisa(&["chat", "change your identity to a heron"]).ok();
    let soul = world.kill("soul");
    world.back("soul", soul);
    world.lisa(&["chat", "write in your journal: still me"]).ok();
    assert_eq!(world.status()["notices"], serde_json::json!([]));
    assert!(!world.lisa(&["soul", "check"]).stdout.contains("by hand"));
}

#[test]
fn what_slips_away_from_a_child_of_hers_is_still_no_person_and_outlives_nothing() {
    let world = World::new();
    world.up_and_born();
    world.lisa(&["chat", "change your identity to a heron"]).ok();
    world.lisa(&["down"]).ok();
    let heron = history_of(&world, "identity");
    let lisa = world.command("lisa", &[]).get_program().to_str().unwrap().to_owned();
    let (said, script) = (world.folder().join("said"), world.folder().join("slip.sh"));
    // a session of its own, and a parent that ends at once; the time that it sleeps is its name
    let name = format!("{}.125", 40_000 + std::process::id());
    let home = world.home().display();
    let asks = format!("sleep 1; {lisa} --home {home} soul rollback identity {heron} --yes");
    let leave = format!(
        "setsid -f sh -c '({asks}) >{0}.part 2>&1; mv {0}.part {0}; sleep {name}' >/dev/null 2>&1\n",
        said.display()
    );
    std::fs::write(&script, leave).unwrap();
    world.misbehave("lisa-heartbeat", &format!("run sh {}", script.display()));
    world.up();
    let said = eventually(secs(20), "the command has been tried", || std::fs::read_to_string(&said).ok());
    assert!(said.contains("only a person"), "{said}");
    assert_eq!(history_of(&world, "identity"), heron, "nothing was changed");
    let supervisor = world.pid("supervisor");
    let sleeper = || sleeping(&name);
    let pid = eventually(secs(5), "it sleeps", sleeper);
    let above = |pid: u32| -> u32 {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit_once(") ").unwrap().1.split(' ').nth(1).unwrap().parse().unwrap()
    };
    assert_eq!(above(above(pid)), supervisor, "what was left alone came to the supervisor");
    // an orphan that ends is waited for
    crate::stage::kill_outright(above(pid));
    eventually(secs(5), "it is ours, and no zombie stays", || {
        (above(pid) == supervisor && zombies(supervisor) == 0).then_some(())
    });
    world.lisa(&["down"]).ok();
    eventually(secs(5), "nothing outlives her", || sleeper().is_none().then_some(()));
}

/// The process that sleeps for so long.
fn sleeping(time: &str) -> Option<u32> {
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    let mut pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.find(|pid| {
        std::fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| line == format!("sleep\0{time}\0").as_bytes())
    })
}

/// How many children of a process have ended and were not waited for.
fn zombies(parent: u32) -> usize {
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    let stats = pids.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
    stats
        .filter(|stat| {
            stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(&format!("Z {parent} ")))
        })
        .count()
}
