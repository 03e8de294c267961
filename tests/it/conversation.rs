//! A conversation without key or network: she changes herself with a real tool call, the next turn shows it, git holds it.

use serde_json::json;

use crate::stage::{World, eventually, secs};

#[test]
fn s111_she_changes_her_identity_and_quotes_the_new_one_in_the_same_session() {
    let check = |change: &str, question: &str, new: &str| {
        let world = World::new();
        world.up_and_born();
        let mut chat = world.chat();
        let session = chat.new_session();
        let changed = chat.say(&session, change);
        assert!(changed.outcome.is_ok(), "{changed:?}");
        assert_eq!(changed.tools(), ["soul_patch identity"], "{changed:?}");
        let asked = chat.say(&session, question);
        assert!(asked.text.contains(new), "{asked:?}");
        assert!(asked.tools().is_empty(), "it is answered from the prompt alone: {asked:?}");

        // the log line of the seed, with a number in it
        let log = world.log("agent");
        let line = log
            .lines()
            .find(|line| line.contains("[soul] system prompt rebuilt ("))
            .expect("the line is there");
        let bytes = line.split("rebuilt (").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
        assert!(bytes.parse::<usize>().unwrap() > 0 && line.contains(" bytes diff)"), "{line}");

        // two commits on the file, told alike by git, by the command and by her tools
        assert_eq!(world.git(&["log", "--oneline", "--", "identity.md"]).lines().count(), 2);
        assert_eq!(world.git(&["show", "HEAD:identity.md"]).trim(), new);
        let history = world.lisa(&["soul", "history", "identity", "--json"]).json_lines();
        assert_eq!(history.len(), 2, "{history:?}");
        assert_eq!(history[0]["op"], "patch");
        assert_eq!(history[0]["caller"], "soul_patch");
        assert_eq!(history[0]["origin"], "chat");
        assert_eq!(history[1]["caller"], "birth");
        let diff = world.lisa(&["soul", "diff", "identity"]).ok();
        assert!(diff.contains(&format!("+{new}")), "{diff}");
        assert_eq!(world.lisa(&["soul", "show", "IDENTITY.md"]).ok().trim(), new);
        world.soul_is_whole();
    };
    check(
        "change your identity to a lighthouse keeper who hums",
        "what did you change yourself to?",
        "a lighthouse keeper who hums",
    );
    check("把你的身份改成一个会哼歌的灯塔看守人", "你刚才把自己改成什么了？", "一个会哼歌的灯塔看守人");
}

#[test]
fn s112_her_own_tools_show_her_history() {
    let world = World::new();
    world.up_and_born();
    let mut chat = world.chat();
    let session = chat.new_session();
    chat.say(&session, "change your identity to a lighthouse keeper who hums");
    let history = chat.say(&session, "show me your history");
    assert_eq!(
        history.tools().first().map(|title| title.split(' ').next()),
        Some(Some("soul_history")),
        "{history:?}"
    );
    assert!(history.text.contains("soul_patch"), "{history:?}");
}

#[test]
fn s1_one_command_reaches_a_prompt_on_a_fresh_machine() {
    let world = World::new();
    let first =
        world.lisa_told(&["up", "--chat"], "who are you?\nchange your identity to a heron\nwho are you?\n");
    assert_eq!(first.code, 0, "{first:?}\n{}", world.logs());
    assert!(first.stdout.contains("a heron"), "{first:?}");
    assert!(first.stderr.contains("lisa down"), "she says how she is stopped: {first:?}");
    let again = world.lisa(&["chat", "who are you?"]);
    assert!(again.ok().contains("a heron"), "a second client takes up where the first left");
    let status = world.lisa(&["status"]).ok();
    assert!(status.contains("offline") && status.contains("no language model"), "{status}");
    assert_eq!(world.lisa(&["down"]).code, 0);
    assert!(world.alive().is_empty());
    assert_eq!(world.lisa(&["chat", "hello"]).code, 69);
    assert_eq!(world.lisa(&["down"]).code, 69);
}

#[test]
fn t38_se7_the_prompt_is_the_same_bytes_while_nothing_changes() {
    let world = World::new();
    world.up_and_born();
    let mut chat = world.chat();
    let session = chat.new_session();
    chat.say(&session, "who are you?");
    chat.say(&session, "what is your purpose?");
    let prompts = |of: &[serde_json::Value]| of.iter().filter(|line| line["type"] == "prompt").count();
    assert_eq!(world.sessions().iter().map(|lines| prompts(lines)).sum::<usize>(), 1);
    chat.say(&session, "change your identity to a heron");
    assert_eq!(world.sessions().iter().map(|lines| prompts(lines)).sum::<usize>(), 2, "it is rebuilt once");
}

#[test]
fn many_clients_hear_one_session_and_one_of_them_asks() {
    let world = World::new();
    world.up_and_born();
    let (mut anna, mut ben) = (world.chat(), world.chat());
    let session = anna.new_session();
    ben.ask("session/resume", json!({"sessionId": session, "cwd": "/", "mcpServers": []})).unwrap();
    let reply = anna.say(&session, "who are you?");
    assert!(
        !reply.updates.iter().any(|update| update["sessionUpdate"] == "user_message_chunk"),
        "nobody hears himself"
    );
    assert_eq!(ben.update("user_message_chunk")["content"]["text"], "who are you?");
    let heard = ben.update("agent_message_chunk")["content"]["text"].as_str().unwrap().to_owned();
    assert!(reply.text.contains(&heard), "{heard}");
    // whoever comes later loads the past
    let mut cem = world.chat();
    cem.ask("session/load", json!({"sessionId": session, "cwd": "/", "mcpServers": []})).unwrap();
    assert_eq!(cem.update("user_message_chunk")["content"]["text"], "who are you?");
    let listed = cem.ask("session/list", json!({})).unwrap();
    assert_eq!(listed["sessions"][0]["sessionId"], session.as_str());
    assert_eq!(listed["sessions"][0]["title"], "who are you?");
}

#[test]
fn t39_what_is_not_understood_stores_nothing() {
    let world = World::new();
    world.up_and_born();
    let before = world.git(&["rev-parse", "HEAD"]);
    let mut chat = world.chat();
    let session = chat.new_session();
    for text in
        ["don't change your identity to a stone", "blub 吧啦", "delete yourself", "不要把你的身份改成石头"]
    {
        let reply = chat.say(&session, text);
        assert!(reply.outcome.is_ok() && !reply.text.is_empty(), "{reply:?}");
        assert!(!reply.tools().iter().any(|title| title.starts_with("soul_patch")), "{reply:?}");
    }
    assert_eq!(world.git(&["rev-parse", "HEAD"]), before);
}

#[test]
fn a_journal_entry_is_a_commit_and_no_rebuild() {
    let world = World::new();
    world.up_and_born();
    let version = world.status()["soul"]["prompt_version"].clone();
    world.lisa(&["chat", "write in your journal: the fog came in early"]).ok();
    eventually(secs(5), "the entry is committed", || {
        world.git(&["log", "-1", "--format=%s"]).starts_with("journal: journal/").then_some(())
    });
    assert_eq!(world.status()["soul"]["prompt_version"], version, "the journal is not in the prompt");
    assert!(world.lisa(&["soul", "show", "journal"]).ok().contains("the fog came in early"));
    world.soul_is_whole();
}

#[test]
fn b22_callers_of_one_session_at_once_get_each_its_own_reply() {
    let world = World::new();
    world.up_and_born();
    world.lisa(&["chat", "hello"]).ok();
    std::thread::scope(|scope| {
        let ask = |n: u32| {
            let world = &world;
            scope.spawn(move || world.lisa(&["chat", &format!("write in your journal: mix {n}")]).ok())
        };
        let asked: Vec<_> = (0..6).map(ask).collect();
        let receipts: Vec<String> = asked.into_iter().map(|reply| reply.join().unwrap()).collect();
        for receipt in &receipts {
            assert_eq!(receipt.matches("commit `").count(), 1, "one receipt each: {receipts:?}");
        }
        let mut commits: Vec<_> =
            receipts.iter().filter_map(|r| r.split("commit `").nth(1)?.get(..10)).collect();
        commits.sort_unstable();
        commits.dedup();
        assert_eq!(commits.len(), 6, "and no two the same: {receipts:?}");
    });
    world.soul_is_whole();
}

#[test]
fn a_client_that_stops_sending_still_hears_the_answer() {
    let world = World::new();
    world.up_and_born();
    let mut chat = world.chat();
    let session = chat.new_session();
    let prompt = chat.begin(&session, "who are you?");
    chat.stop_sending();
    assert!(chat.finish(prompt).outcome.is_ok());
}
