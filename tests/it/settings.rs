//! SIGHUP: what was set anew holds at once, reaches those it concerns and nobody else, and what cannot be used changes nothing.

use crate::stage::{Answer, Model, World, eventually, hang_up, secs};

fn kinds(world: &World) -> Vec<String> {
    let events = world.lisa(&["events", "--json"]).json_lines();
    events.iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
}

fn reload(world: &World, kind: &str, times: usize) {
    hang_up(world.pid("supervisor"));
    eventually(secs(20), kind, || {
        (kinds(world).iter().filter(|is| *is == kind).count() == times).then_some(())
    });
}

fn set(world: &World, config: &str) {
    std::fs::write(world.home().join("config.toml"), config).unwrap();
}

#[test]
fn a_change_reaches_whom_it_concerns_in_a_new_life_and_is_no_death() {
    let model = Model::start(|_, _| Answer::Says("I think now".into()));
    let world = World::new();
    world.up_and_born();
    let mut chat = world.chat();
    let session = chat.new_session();
    let (soul, agent) = (world.pid("soul"), world.pid("agent"));
    set(&world, &model.config());
    reload(&world, "configuration_read", 1);
    world.back("agent", agent);
    assert!(
        chat.say(&session, "hello").text.contains("I think now"),
        "who is attached stays, and hears the new model"
    );
    assert_eq!(world.pid("soul"), soul, "the soul has nothing to do with it");
    let events = world.lisa(&["events", "--json"]).json_lines();
    let read = events.iter().find(|event| event["type"] == "configuration_read").unwrap();
    assert_eq!(
        (&read["changed"], &read["renewed"]),
        (&serde_json::json!(["model"]), &serde_json::json!(["agent"]))
    );
    assert!(!kinds(&world).contains(&"child_died".to_owned()));
    // the same again: nobody gets a new life
    let agent = world.pid("agent");
    reload(&world, "configuration_read", 2);
    assert_eq!(world.pid("agent"), agent);
}

#[test]
fn a_file_that_cannot_be_used_changes_nothing_and_is_said() {
    let world = World::new();
    world.up_and_born();
    let pids = || ["supervisor", "soul", "agent", "heartbeat"].map(|name| world.pid(name));
    let before = pids();
    set(&world, "[modle]\n");
    reload(&world, "configuration_refused", 1);
    assert_eq!(pids(), before);
    let status = world.lisa(&["status"]).ok();
    assert!(status.contains("still holds"), "{status}");
    assert!(world.status()["notices"].to_string().contains("modle"));
    assert!(world.lisa(&["events"]).ok().contains("the one before still holds"));
    set(&world, "[supervisor]\ndeaths_max = 1\n");
    reload(&world, "configuration_read", 1);
    assert!(!world.status()["notices"].to_string().contains("still holds"), "mended");
    assert_eq!(pids(), before, "what is the supervisor's own is taken without a new life of anybody");
    let heartbeat = world.kill("heartbeat");
    world.back("heartbeat", heartbeat);
    world.kill("heartbeat");
    eventually(secs(10), "the new measure counts", || {
        (world.process("heartbeat")["state"] == "parked").then_some(())
    });
}

#[test]
fn t29_a_child_that_was_given_up_tries_what_was_mended() {
    let world = World::configured("[model]\nprovider = \"openai\"\n");
    assert_eq!(world.lisa(&["up", "--detach"]).code, 1, "the agent is parked");
    set(&world, "");
    reload(&world, "configuration_read", 1);
    eventually(secs(20), "the agent is there", || (world.process("agent")["state"] == "ready").then_some(()));
}
