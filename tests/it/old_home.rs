//! A home of the original LISA opens as it is, and is left as it was when nothing is changed in it.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use ipc::digest::sha256_hex;
use serde_json::{Value, json};

use crate::stage::{World, kill_outright};

fn put(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A home as the original leaves one behind, after its documented formats.
fn original(world: &World, with_git: bool) {
    let home = world.home();
    put(home, "config.env", "export LISA_THEME=\"dark\" # a comment\n");
    put(
        home,
        "soul/seed.json",
        "{\n  \"bornAt\": \"2026-03-01T10:00:00.000Z\",\n  \"bornOn\": \"ab\",\n  \"randomness\": \"00\",\n  \"bigFive\": {\n    \"openness\": 0.8,\n    \"conscientiousness\": 0.5,\n    \"extraversion\": 0.3,\n    \"agreeableness\": 0.7,\n    \"neuroticism\": 0.2\n  }\n}",
    );
    put(home, "soul/name.md", "Lisa\n");
    put(home, "soul/identity.md", "I am the keeper of an old lighthouse.\n");
    put(home, "soul/purpose.md", "To keep the light.\n");
    put(home, "soul/constitution.md", "I do not lie.\n");
    put(
        home,
        "soul/values/patience.md",
        "# Patience\n\nbirthed: 2026-03-02T10:00:00.000Z\n\nFog lifts by itself.\n",
    );
    put(
        home,
        "soul/opinions/tea.md",
        "# Tea is better than coffee\n\nconfidence: 0.7\nborn: 2026-03-02T10:00:00.000Z\nupdated: 2026-03-02T10:00:00.000Z\n\n## evidence\n\n- it steams longer\n",
    );
    put(
        home,
        "soul/desires/learn-rust.md",
        "# Learn Rust\n\nactionable: yes\nborn: 2026-03-02T10:00:00.000Z\nupdated: 2026-03-02T10:00:00.000Z\nintensity: 0.600\nhorizon: season\nmood: bright\n\n## why\n\nIt is said to last.\n\n## heartbeat\n\nRead one chapter.\n",
    );
    put(
        home,
        "soul/desires/learn-rust.progress.md",
        "# progress: learn-rust\n\n## 2026-05-10T14:32:11Z\n\nRead chapter 1.\n",
    );
    put(home, "soul/desires/._junk.md", "\u{0}\u{1}");
    put(
        home,
        "soul/emotions.json",
        "{\"values\":{\"curiosity\":0.6},\"decay\":{\"curiosity\":0.05},\"updatedAt\":\"2026-03-01T10:00:00.000Z\",\"extra\":1}",
    );
    put(home, "soul/journal/2026-03-02.md", "## 10:00:00\n\nFirst light.\n");
    put(
        home,
        "soul/soul.lock.json",
        "{\"hashes\":{\"name.md\":\"x\"},\"savedAt\":\"2026-03-01T10:00:00.000Z\"}",
    );
    put(home, "soul/.gitignore", "*.tmp\n*.swp\n.DS_Store\n.write.lock\n.git-write.lock\n");
    put(home, "memory/MEMORY.md", "- likes tea\n");
    put(
        home,
        "sessions/20260302-100000-abcdef.jsonl",
        "{\"type\":\"session\",\"id\":\"20260302-100000-abcdef\",\"version\":2,\"startedAt\":\"2026-03-02T10:00:00.000Z\",\"cwd\":\"/\",\"model\":\"m\",\"sandboxMode\":\"off\"}\n{\"type\":\"message\",\"ts\":\"2026-03-02T10:00:01.000Z\",\"message\":{\"role\":\"user\",\"content\":\"hello\"}}\n",
    );
    put(home, "heartbeat.json", "{\"tasks\":[]}");
    put(home, "heartbeat-state.json", "{\"lastRunAt\":{}}");
    put(home, "kb/index.md", "unknown to us\n");
    if with_git {
        for arguments in [
            &["init", "-q", "-b", "main"][..],
            &["config", "user.email", "lisa@self"],
            &["config", "user.name", "Lisa"],
            &["config", "commit.gpgsign", "false"],
            &["config", "core.hooksPath", "/dev/null"],
            &["add", "-A"],
            &["commit", "-q", "-m", "birth: initial soul snapshot @ 2026-03-01T10:00:00.000Z"],
        ] {
            world.git(arguments);
        }
        // the original never commits its lock again after the birth, so this is how its homes look
        put(
            home,
            "soul/soul.lock.json",
            "{\"hashes\":{\"name.md\":\"y\"},\"savedAt\":\"2026-04-01T10:00:00.000Z\"}",
        );
    }
}

/// Every file below a folder with its bytes.
fn files(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                found.insert(entry.path(), std::fs::read(entry.path()).unwrap());
            }
        }
    }
    found
}

#[test]
fn s9_t16_every_file_is_byte_identical_after_a_start_a_talk_that_changes_nothing_and_a_stop() {
    for with_git in [true, false] {
        let world = World::new();
        original(&world, with_git);
        let before = files(world.home());
        world.up_and_born();
        let told = world.lisa(&["chat", "who are you?"]).ok();
        assert!(told.contains("the keeper of an old lighthouse"), "{told}");
        let screen = world.lisa(&["soul"]).ok();
        for part in ["Learn Rust", "Patience", "Tea is better than coffee", "2026-03-01"] {
            assert!(screen.contains(part), "{part} is not in {screen}");
        }
        world.lisa(&["down"]).ok();
        let after = files(world.home());
        for (path, bytes) in &before {
            assert_eq!(after.get(path), Some(bytes), "{} is as it was (git: {with_git})", path.display());
        }
        let new_in_the_soul: Vec<_> = after
            .keys()
            .filter(|path| path.starts_with(world.home().join("soul")) && !before.contains_key(*path))
            .collect();
        assert!(new_in_the_soul.is_empty(), "{new_in_the_soul:?}");
    }
}

#[test]
fn the_first_write_into_an_old_home_keeps_what_was_there() {
    for with_git in [true, false] {
        let world = World::new();
        original(&world, with_git);
        world.up_and_born();
        world.lisa(&["chat", "change your identity to a heron"]).ok();
        let subjects = world.git(&["log", "--format=%s"]);
        assert_eq!(subjects.lines().next(), Some("patch: identity.md via soul_patch"), "{subjects}");
        assert_eq!(
            world.git(&["show", "HEAD~1:identity.md"]).trim(),
            "I am the keeper of an old lighthouse."
        );
        let lock: serde_json::Value =
            serde_json::from_str(&world.git(&["show", "HEAD:soul.lock.json"])).unwrap();
        assert_eq!(
            lock["hashes"]["identity.md"].as_str().map(str::len),
            Some(64),
            "the original sees no tampering: {lock}"
        );
        // a revision keeps the field nobody here knows, and the birth
        world.lisa(&["heartbeat", "run", "learn-rust"]).ok();
        let desire = world.lisa(&["soul", "show", "desires/learn-rust"]).ok();
        assert!(
            desire.contains("mood: bright") && desire.contains("born: 2026-03-02T10:00:00.000Z"),
            "{desire}"
        );
        let progress = world.lisa(&["soul", "show", "desires/learn-rust.progress"]).ok();
        assert!(
            progress.starts_with("# progress: learn-rust\n\n## 2026-05-10T14:32:11Z\n\nRead chapter 1.\n"),
            "{progress}"
        );
        world.git(&["fsck", "--strict"]);
    }
}

#[test]
fn an_old_home_gets_its_form_in_one_commit_of_its_own_and_one_command_goes_back() {
    for with_git in [true, false] {
        let world = World::new();
        original(&world, with_git);
        let seed_place = world.home().join("soul/seed.json");
        let before = files(&world.home().join("soul"));
        world.up_and_born();
        world.lisa(&["chat", "change your identity to a heron"]).ok();
        // the commit before has the home as it was, byte for byte
        let kept = "refs/lisa/before-schema-1";
        for (path, bytes) in &before {
            let path = path.strip_prefix(world.home().join("soul")).unwrap().to_str().unwrap();
            let is_old = path == "soul.lock.json" && with_git;
            if path.starts_with(".git/") || is_old {
                continue;
            }
            let text = world.git(&["show", &format!("{kept}:{path}")]);
            assert_eq!(text.as_bytes(), bytes.as_slice(), "{path} (git: {with_git})");
        }
        let history = world.lisa(&["soul", "history", "--json"]).json_lines();
        let ops: Vec<_> = history.iter().map(|entry| entry["op"].as_str().unwrap()).collect();
        assert_eq!(ops.get(..2), Some(&["patch", "migrate"][..]), "{ops:?}");
        let migration = &history[1];
        assert_eq!((&migration["caller"], &migration["origin"]), (&json!("migration"), &json!("migration")));
        assert!(migration["why"].as_str().unwrap().contains(kept), "{migration}");

        // what the original reads of it is as it was, and what it does not know comes last
        let (old, new) = (&before[&seed_place], std::fs::read(&seed_place).unwrap());
        let mut expected: Value = serde_json::from_slice(old).unwrap();
        expected["soulSchemaVersion"] = json!(1);
        assert_eq!(serde_json::from_slice::<Value>(&new).unwrap().to_string(), expected.to_string());
        let stem = old.strip_suffix(b"\n}").unwrap();
        assert!(new.starts_with(stem), "no byte before it has changed");
        let checked = world.lisa(&["soul", "check", "--json"]);
        assert!(checked.stdout.contains(kept), "{checked:?}");

        let commit = migration["commit"].as_str().unwrap();
        let back = world.lisa(&["soul", "rollback", "--commit", commit, "--yes"]);
        assert_eq!(back.code, 0, "{back:?}");
        world.git(&["fsck", "--strict"]);
        assert_eq!(std::fs::read(&seed_place).unwrap(), *old, "as the original left it");
        let identity = world.lisa(&["soul", "show", "identity"]).ok();
        assert!(identity.contains("heron"), "and what came after stays: {identity}");
    }
}

#[test]
fn a_migration_that_is_killed_is_done_or_not_done_and_is_done_once() {
    for pause in [0, 3, 6, 10, 15, 25] {
        let world = World::new();
        original(&world, true);
        world.up_and_born();
        let soul = world.pid("soul");
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| world.lisa(&["chat", "change your identity to a heron"]));
            std::thread::park_timeout(Duration::from_millis(40 + pause));
            kill_outright(soul);
            asked.join().unwrap().ok();
        });
        let subjects = world.git(&["log", "--format=%s"]);
        assert_eq!(subjects.matches("migrate: soul via migration").count(), 1, "{subjects}");
        assert_eq!(subjects.matches("patch: identity.md").count(), 1, "{subjects}");
        let seed = std::fs::read_to_string(world.home().join("soul/seed.json")).unwrap();
        assert_eq!(seed.matches("soulSchemaVersion").count(), 1, "{seed}");
        world.git(&["fsck", "--strict"]);
    }
}

#[test]
fn the_locks_of_a_running_original_are_waited_for_also_after_the_migration() {
    let world = World::new();
    original(&world, true);
    let soul = world.home().join("soul");
    world.up_and_born();
    world.lisa(&["chat", "change your identity to a gull"]).ok();
    world.lisa(&["down"]).ok();
    world.up();
    for (name, waiter) in [(".write.lock", "tern"), (".git-write.lock", "plover")] {
        let lock = soul.join(name);
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        std::fs::write(&lock, json!({"pid": std::process::id(), "ts": now.as_millis()}).to_string()).unwrap();
        let began = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::park_timeout(Duration::from_millis(900));
                std::fs::remove_file(&lock).unwrap();
            });
            world.lisa(&["chat", &format!("change your identity to a {waiter}")]).ok();
        });
        assert!(began.elapsed() >= Duration::from_millis(850), "{name}: {:?}", began.elapsed());
        // the answer comes from the soul, which has brought it into the files by then
        assert!(world.lisa(&["soul", "show", "identity"]).ok().contains(waiter));
        world.git(&["fsck", "--strict"]);
        let identity = std::fs::read(soul.join("identity.md")).unwrap();
        let seal: Value =
            serde_json::from_slice(&std::fs::read(soul.join("soul.lock.json")).unwrap()).unwrap();
        assert_eq!(seal["hashes"]["identity.md"], sha256_hex(&identity));
        assert!(!lock.exists(), "and ours is gone");
    }
}
