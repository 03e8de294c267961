//! Children that misbehave, and a stop that ends everything.

use crate::stage::{World, eventually, secs};

#[test]
fn b10_a_child_that_keeps_dying_is_parked_and_the_rest_serves() {
    let world = World::new();
    world.misbehave("lisa-heartbeat", "crash-after 5");
    let up = world.lisa(&["up", "--detach"]);
    assert!(up.code == 0 || up.stderr.contains("heartbeat"), "{up:?}");
    eventually(secs(20), "the child is parked", || {
        (world.process("heartbeat")["state"] == "parked").then_some(())
    });
    let events = world.lisa(&["events", "--json"]).json_lines();
    let died = events
        .iter()
        .filter(|event| event["type"] == "child_died" && event["process"] == "heartbeat")
        .count();
    assert_eq!(died, 6, "five deaths are borne");
    let status = world.status();
    assert!(status["notices"].to_string().contains("heartbeat is parked"), "{status}");
    assert!(world.lisa(&["chat", "who are you?"]).ok().contains("Lisa"));
    let run = world.lisa(&["heartbeat", "run"]);
    assert!(run.code == 1 && run.stderr.contains("parked"), "{run:?}");
}

#[test]
fn b8_a_child_and_its_grandchild_that_ignore_the_wish_to_end_are_ended() {
    let world = World::new();
    world.misbehave("lisa-heartbeat", "ignore-term");
    world.up();
    let pid = world.pid("heartbeat");
    let group = |of: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{of}/stat")).ok()?;
        let fields: Vec<_> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        // a dead one that nobody has taken note of yet is dead
        (fields.first() != Some(&"Z")).then(|| fields.get(2)?.parse::<u32>().ok())?
    };
    let members = || {
        let pids = std::fs::read_dir("/proc").unwrap().flatten();
        pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
            .filter(|of| group(*of) == Some(pid))
            .count()
    };
    assert!(members() >= 2, "the child has a grandchild");
    assert_eq!(world.lisa(&["down"]).code, 0);
    assert_eq!(members(), 0, "nothing of the group is left");
    // `down` is done when the lock is free; the process that held it is gone a moment later
    eventually(secs(5), "nothing of hers is left", || world.alive().is_empty().then_some(()));
}

#[test]
fn a_child_that_is_never_ready_is_said_to_be_so() {
    let world = World::configured("[supervisor]\nready_max = \"200ms\"\n");
    world.misbehave("lisa-heartbeat", "never-ready");
    let up = world.lisa(&["up", "--detach"]);
    assert_eq!(up.code, 1, "{up:?}");
    assert!(up.stderr.contains("heartbeat is parked"), "{up:?}");
    assert_eq!(world.process("agent")["state"], "ready");
}

#[test]
fn b10_a_child_that_is_never_ready_is_parked_however_long_each_start_takes() {
    let config = "[supervisor]\nready_max = \"400ms\"\ndeaths_max = 2\ndeaths_window = \"500ms\"\n";
    let world = World::configured(config);
    world.misbehave("lisa-heartbeat", "never-ready");
    assert_eq!(world.lisa(&["up", "--detach"]).code, 1);
    let why = world.process("heartbeat")["why"].to_string();
    assert!(why.contains("started 3 times and never ready"), "{why}");
}

#[test]
fn b10_a_parked_child_is_tried_again_and_it_is_said_when() {
    let config = "[supervisor]\ndeaths_max = 1\nretry_first = \"3s\"\n";
    let world = World::configured(config);
    world.misbehave("lisa-heartbeat", "crash-after 5");
    world.lisa(&["up", "--detach"]);
    let parked = || world.process("heartbeat")["state"] == "parked";
    eventually(secs(20), "the child is parked", || parked().then_some(()));
    let status = world.lisa(&["status"]).ok();
    assert!(status.contains("it is tried again in"), "{status}");
    let events = world.lisa(&["events"]).ok();
    assert!(events.contains("heartbeat is parked (tried again in 3s)"), "{events}");
    // mended: `run` says that it is ready
    std::fs::write(world.bin().join("misbehave.txt"), "run true").unwrap();
    eventually(secs(20), "it serves", || (world.process("heartbeat")["state"] == "ready").then_some(()));
}

#[test]
fn b12_a_wish_to_end_is_heard_at_any_moment_of_the_start() {
    for pause in [0, 1, 3, 10, 30, 100] {
        let world = World::new();
        let mut started = world.command("lisa", &["up"]).spawn().unwrap();
        std::thread::park_timeout(std::time::Duration::from_millis(pause));
        crate::stage::end(started.id());
        let ended = eventually(secs(10), "it ends", || started.try_wait().unwrap());
        // before the handlers stand, the signal itself ends it; either way nothing is left
        assert!(matches!(ended.code(), Some(0) | None), "{ended:?}");
        eventually(secs(2), "nothing is left", || world.alive().is_empty().then_some(()));
    }
}

#[test]
fn the_stop_is_in_order_and_leaves_nothing() {
    let world = World::new();
    world.up_and_born();
    let down = world.lisa(&["down"]);
    assert_eq!(down.code, 0, "{down:?}");
    assert!(world.alive().is_empty());
    let log = std::fs::read_to_string(world.home().join("logs/events.jsonl")).unwrap();
    let stopped: Vec<String> = log
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .filter(|event| event["type"] == "child_stopped")
        .map(|event| format!("{} {}", event["process"].as_str().unwrap(), event["how"].as_str().unwrap()))
        .collect();
    assert_eq!(stopped, ["heartbeat exit code 0", "agent exit code 0", "soul exit code 0"]);
}

#[test]
fn b23_a_child_has_nothing_open_but_what_it_was_given() {
    let world = World::new();
    world.up_and_born();
    let pid = world.pid("heartbeat");
    let chat = world.home().join("run/chat.sock");
    let sockets = |of: u32| {
        let open = std::fs::read_dir(format!("/proc/{of}/fd")).unwrap().flatten();
        open.filter_map(|fd| std::fs::read_link(fd.path()).ok())
            .map(|target| target.display().to_string())
            .collect::<Vec<_>>()
    };
    let of_supervisor = sockets(world.pid("supervisor"));
    let shared: Vec<_> = sockets(pid)
        .into_iter()
        .filter(|target| target.starts_with("socket:") && of_supervisor.contains(target))
        .collect();
    assert!(shared.is_empty(), "{shared:?} of {}", chat.display());
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
    let environment = String::from_utf8_lossy(&environment).into_owned();
    assert!(!environment.contains("secret") && !environment.contains("LISA_HOME"), "{environment}");
}

#[test]
fn b3_sockets_that_were_taken_away_are_there_again() {
    let world = World::new();
    world.up_and_born();
    let mut chat = world.chat();
    let session = chat.new_session();
    for socket in ["chat", "soul", "agent", "heartbeat"] {
        std::fs::remove_file(world.home().join(format!("run/{socket}.sock"))).unwrap();
    }
    assert!(chat.say(&session, "who are you?").outcome.is_ok(), "who is attached notices nothing");
    eventually(secs(10), "newcomers find her again", || (world.lisa(&["status"]).code == 0).then_some(()));
    let agent = world.kill("agent");
    world.back("agent", agent);
    assert!(chat.say(&session, "who are you?").outcome.is_ok(), "so do her own processes");
    assert_eq!(world.lisa(&["down"]).code, 0);
}

#[test]
fn a_home_that_is_moved_away_is_not_served_under_its_old_name() {
    let world = World::new();
    world.up_and_born();
    let elsewhere = world.folder().join("moved");
    std::fs::rename(world.home(), &elsewhere).unwrap();
    eventually(secs(15), "everything has ended", || world.alive().is_empty().then_some(()));
    assert!(!world.home().exists(), "nothing was made again at the old place");
    let world = world.with_home(elsewhere);
    world.up();
    assert!(world.lisa(&["chat", "who are you?"]).ok().contains("Lisa"));
}

#[test]
fn more_clients_than_there_are_places_are_told_so() {
    let world = World::new();
    world.up_and_born();
    let attached: Vec<_> = (0..256).map(|_| world.chat()).collect();
    let status = world.lisa(&["status"]);
    assert!(status.code == 1 && status.stderr.contains("256 clients"), "{status:?}");
    drop(attached);
    eventually(secs(10), "there is room again", || (world.lisa(&["status"]).code == 0).then_some(()));
}

#[test]
fn a_start_right_after_the_supervisor_was_killed_starts_another() {
    let world = World::new();
    world.up_and_born();
    for _ in 0..5 {
        world.kill_supervisor();
        world.up();
    }
}
