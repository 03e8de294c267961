//! Children that hang, machines that sleep, and what a killed supervisor leaves behind.

use std::process::{Command, Stdio};

use serde_json::json;

use crate::stage::{World, end, eventually, kill_outright, pause, resume, secs};

/// The processes of a group that have not ended.
fn members(of: u32) -> Vec<u32> {
    let group = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let fields: Vec<_> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        (fields.first() != Some(&"Z")).then(|| fields.get(2)?.parse::<u32>().ok())?
    };
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| group(pid) == Some(of))
        .collect()
}

#[test]
fn f3_a_child_that_hangs_says_where_it_stands_and_is_started_again_in_plain_sight() {
    let world = World::configured("[supervisor]\nsilence_max = \"2s\"\n");
    world.up_and_born();
    let mut chat = world.chat();
    chat.follow();
    let session = chat.new_session();
    for child in ["heartbeat", "agent", "soul"] {
        let pid = world.pid(child);
        pause(pid);
        let hung = chat.event("it hangs", |event| event["type"] == "child_hung" && event["process"] == child);
        assert!(hung["silent_ms"].as_u64().unwrap() >= 2000 && hung["pid"] == pid, "{hung}");
        chat.event("it is ended", |event| event["type"] == "child_died" && event["process"] == child);
        chat.event("it is back", |event| event["type"] == "child_ready" && event["process"] == child);
        let log = world.log(child);
        assert!(log.contains("asked where it stands") && log.contains("thread "), "{child}: {log}");
    }
    // an editor that knows of no events sees it too, though no turn is under way
    let reply = chat.say(&session, "who are you?");
    assert!(reply.outcome.is_ok(), "{reply:?}");
    world.soul_is_whole();
}

#[test]
fn a_restart_is_an_item_in_a_session_that_is_only_open() {
    let world = World::new();
    world.up_and_born();
    let mut chat = world.chat();
    chat.new_session();
    world.kill("heartbeat");
    let begun = chat.update("tool_call");
    assert!(begun["title"].as_str().unwrap().contains("heartbeat died"), "{begun}");
    let over = chat.update("tool_call_update");
    assert_eq!((&over["toolCallId"], &over["status"]), (&begun["toolCallId"], &json!("completed")));
}

#[test]
fn b29_a_machine_that_sleeps_is_no_child_that_hangs() {
    let world = World::configured("[supervisor]\nsilence_max = \"2s\"\n");
    world.up_and_born();
    let pids = ["supervisor", "soul", "agent", "heartbeat"].map(|name| world.pid(name));
    for pid in pids {
        pause(pid);
    }
    std::thread::park_timeout(secs(6));
    for pid in pids {
        resume(pid);
    }
    std::thread::park_timeout(secs(3));
    assert_eq!(["supervisor", "soul", "agent", "heartbeat"].map(|name| world.pid(name)), pids);
    let events = world.lisa(&["events", "--json"]).json_lines();
    assert!(!events.iter().any(|event| event["type"] == "child_hung"), "{events:?}");
}

#[test]
fn b4_b5_what_a_killed_supervisor_leaves_is_ended_by_the_next_and_a_stranger_is_not() {
    let world = World::new();
    // it heeds neither the wish to end nor the end of its supervisor, and neither does what it has started
    world.misbehave("lisa-heartbeat", "ignore-term");
    world.up_and_born();
    let (left, soul) = (world.pid("heartbeat"), world.pid("soul"));
    eventually(secs(5), "the child has a grandchild", || (members(left).len() >= 2).then_some(()));
    pause(soul);
    world.kill_supervisor();
    #[expect(clippy::disallowed_methods, reason = "a stranger, whom nobody of hers has started")]
    let mut stranger = Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().unwrap();
    let records = world.home().join("run/children.jsonl");
    let text = std::fs::read_to_string(&records).unwrap();
    let mut record: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    record["pid"] = json!(stranger.id());
    std::fs::write(&records, format!("{text}{record}\n")).unwrap();
    world.up();
    assert_eq!((members(left), members(soul)), (vec![], vec![]), "nothing of the one before is left");
    assert!(stranger.try_wait().unwrap().is_none(), "the stranger lives");
    end(stranger.id());
    kill_outright(stranger.id());
    stranger.wait().unwrap();
    // a child whose leader has ended leaves its group, which is known by its mark
    let again = world.pid("heartbeat");
    eventually(secs(5), "the child has a grandchild", || (members(again).len() >= 2).then_some(()));
    pause(world.pid("supervisor"));
    kill_outright(again);
    let supervisor = std::fs::read_to_string(world.home().join("supervisor.lock")).unwrap();
    kill_outright(supervisor.trim().parse().unwrap());
    eventually(secs(5), "a grandchild is left alone", || {
        let left = members(again);
        (!left.is_empty() && !left.contains(&again)).then_some(())
    });
    world.up();
    assert_eq!(members(again), Vec::<u32>::new());
}
