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

#[test]
fn new_settings_wait_for_the_end_of_the_turn_under_way() {
    let model = Model::start(|_, number| match number {
        0 => Answer::SaysSlowly { text: "one two three four five six".into(), pause: secs(1) / 4 },
        _ => Answer::Says("and another".into()),
    });
    let world = World::configured(&model.config());
    world.up_and_born();
    let (mut chat, mut other) = (world.chat(), world.chat());
    let (session, another) = (chat.new_session(), other.new_session());
    let agent = world.pid("agent");
    let prompt = chat.begin(&session, "count");
    chat.update("agent_message_chunk");
    set(&world, &format!("person = \"anna\"\n{}", model.config()));
    reload(&world, "child_draining", 1);
    // what is said meanwhile is answered by the next life, and nobody is told of an error
    let waiting = other.begin(&another, "and you?");
    let reply = chat.finish(prompt);
    assert_eq!(reply.outcome.as_ref().unwrap()["stopReason"], "end_turn", "{reply:?}");
    assert_eq!((reply.text.as_str(), reply.notes.as_str()), ("one two three four five six", ""), "{reply:?}");
    let reply = other.finish(waiting);
    assert_eq!((reply.text.as_str(), reply.notes.as_str()), ("and another", ""), "{reply:?}");
    world.back("agent", agent);
    let events = world.lisa(&["events", "--json"]).json_lines();
    let renewing = events.iter().find(|event| event["type"] == "child_renewing").unwrap();
    assert!(renewing.get("turns_cut").is_none(), "{renewing}");
}

#[test]
fn a_turn_that_outlasts_the_patience_is_interrupted_in_plain_sight_and_taken_up_again() {
    let model = Model::start(|_, number| match number {
        0 => Answer::HangsAfter("well ".into()),
        _ => Answer::Says("here I am".into()),
    });
    let config =
        format!("{}\n[supervisor]\ndrain_max = \"500ms\"\n", model.config().replace("\"2s\"", "\"5m\""));
    let world = World::configured(&config);
    world.up_and_born();
    let mut chat = world.chat();
    let session = chat.new_session();
    let prompt = chat.begin(&session, "count");
    chat.update("agent_message_chunk");
    set(&world, &format!("person = \"anna\"\n{config}"));
    hang_up(world.pid("supervisor"));
    let reply = chat.finish(prompt);
    assert!(reply.text.ends_with("here I am"), "{reply:?}");
    assert!(reply.notes.contains("restarted in the middle"), "{reply:?}");
    let shown = |words: &str| reply.updates.iter().any(|update| update["title"].to_string().contains(words));
    assert!(shown("after the turns under way") && shown("is interrupted") && shown("is back"), "{reply:?}");
}
