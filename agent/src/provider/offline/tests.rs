//! Tests of the steps: what is answered from which prompt and which results.

use super::*;
use ipc::contract::soul::ToolSpec;
use proptest::prelude::*;

const TOOLS: [&str; 6] =
    ["soul_patch", "soul_read", "soul_journal", "soul_history", "soul_diff", "desire_progress_log"];

fn prompt(identity: &str) -> String {
    format!(
        "Who you are.\n\n# Name\n\n> Mara\n\n# Constitution\n\n> 不说谎\n\n# Purpose\n\n> to keep the light\n\n# Identity\n\n> {identity}\n\n# Values\n\n(nothing yet)\n\n# Opinions\n\n> - [tea] tea beats coffee (confidence 0.5)\n\n# Desires\n\n> - [knit] learn to knit [actionable]: it is calm\n"
    )
}

struct Talk(ModelRequest);

impl Talk {
    fn new(identity: &str) -> Self {
        let tool = |name: &str| ToolSpec {
            name: name.into(),
            description: String::new(),
            input_schema: json!({"type": "object"}),
            writes: true,
        };
        Self(ModelRequest {
            said: 0,
            system: prompt(identity),
            messages: vec![],
            tools: TOOLS.map(tool).to_vec(),
        })
    }

    /// Says something and takes the next step, which is kept in the conversation.
    fn say(&mut self, text: &str) -> Completion {
        self.step(Message::user(text))
    }

    fn result(&mut self, id: &str, output: &str, failed: bool) -> String {
        text(&self.step(Message { role: Role::User, content: vec![Block::result(id, output, failed)] }))
    }

    fn step(&mut self, message: Message) -> Completion {
        self.0.messages.push(message);
        let completion = step(&self.0);
        self.0.messages.push(Message { role: Role::Assistant, content: completion.blocks.clone() });
        completion
    }
}

#[track_caller]
fn text(completion: &Completion) -> String {
    match completion.blocks.as_slice() {
        [Block::Text { text }] => {
            assert_eq!(completion.stop, Stop::EndTurn);
            text.clone()
        }
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn called(completion: &Completion) -> (String, String, Value) {
    match completion.blocks.as_slice() {
        [Block::ToolUse { id, name, input: Input::Object(input) }] => {
            assert_eq!(completion.stop, Stop::ToolUse);
            (id.clone(), name.clone(), Value::Object(input.clone()))
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn she_changes_herself_and_the_next_prompt_bears_witness() {
    let check = |command: &str, content: &str, question: &str, receipt_word: &str| {
        let mut talk = Talk::new("a gardener");
        let (id, tool, input) = called(&talk.say(command));
        assert_eq!(
            (tool.as_str(), &input["field"], &input["content"]),
            ("soul_patch", &json!("identity"), &json!(content))
        );
        assert!(input["why"].as_str().unwrap().contains(command), "{input}");
        talk.0.system = prompt(content);
        let said = talk.result(&id, "wrote `identity.md`, commit `0a1b2c3`: 28 of 1200 characters", false);
        assert!(said.contains(content) && said.contains("0a1b2c3") && said.contains(receipt_word), "{said}");
        let said = text(&talk.say(question));
        assert!(said.contains(content) && !said.contains("gardener"), "{said}");
        // with an old prompt, the old self: the oracle of hot reload
        talk.0.system = prompt("a gardener");
        let said = text(&talk.say(question));
        assert!(said.contains("gardener") && !said.contains(content), "{said}");
    };
    check(
        "change your identity to a lighthouse keeper who hums",
        "a lighthouse keeper who hums",
        "what did you change yourself to?",
        "Receipt",
    );
    check(
        "把你的身份改成一个会哼歌的灯塔看守人。",
        "一个会哼歌的灯塔看守人",
        "你刚才把自己改成什么了？",
        "回执",
    );
}

#[test]
fn t39_a_write_without_a_receipt_is_never_claimed() {
    let mut talk = Talk::new("a gardener");
    let (id, ..) = called(&talk.say("become a frog"));
    let said = talk.result(&id, "`identity` would be over its budget", true);
    assert!(said.contains("over its budget") && said.contains("Nothing was changed."), "{said}");
    let said = text(&talk.say("what did you change yourself to?"));
    assert!(said.contains("I see no change in this conversation") && said.contains("a gardener"), "{said}");

    let (id, ..) = called(&talk.say("变成青蛙"));
    assert!(talk.result(&id, "interrupted, outcome unknown", true).contains("我不知道有没有改变"));

    // the receipt is there, but the prompt was not rebuilt
    let (id, ..) = called(&talk.say("become a frog"));
    let said = talk.result(&id, "wrote `identity.md`, commit `abc`", false);
    assert!(said.contains("does not show it") && said.contains("a gardener"), "{said}");
}

#[test]
fn a_change_of_the_name_is_answered_with_the_name() {
    let mut talk = Talk::new("a gardener");
    let (id, _, input) = called(&talk.say("call yourself Mara"));
    assert_eq!((&input["field"], &input["content"]), (&json!("name"), &json!("Mara")));
    talk.result(&id, "wrote `name.md`", false);
    let said = text(&talk.say("what did you change yourself to?"));
    assert!(said.contains("My name now reads: “Mara”"), "{said}");
}

#[test]
fn every_tool_gets_what_it_takes() {
    let check = |said: &str, tool: &str, expected: Value| {
        let (_, name, mut input) = called(&Talk::new("x").say(said));
        if !expected.as_object().unwrap().contains_key("why") {
            input.as_object_mut().unwrap().remove("why");
        }
        assert_eq!((name.as_str(), input), (tool, expected), "{said}");
    };
    check("show your history", "soul_history", json!({"field": "all"}));
    check("你的身份的历史", "soul_history", json!({"field": "identity"}));
    check("diff of your purpose", "soul_diff", json!({"field": "purpose"}));
    check("show your journal", "soul_read", json!({"what": "journal_today"}));
    check("write in your journal: calm sea.", "soul_journal", json!({"entry": "calm sea"}));
    check("change your purpose to humming", "soul_patch", json!({"field": "purpose", "content": "humming"}));
    check(
        "add a value: never lie!",
        "soul_patch",
        json!({"field": "value", "slug": "never-lie", "title": "never lie", "body": "never lie"}),
    );
    check("添加看法：茶好", "soul_patch", json!({"field": "opinion", "slug": "茶好", "stance": "茶好"}));
    check(
        "I want you to learn Rust because it is useful",
        "soul_patch",
        json!({"field": "desire", "slug": "learn-rust", "what": "learn Rust", "why": "it is useful", "actionable": true,
               "heartbeat_prompt": "Take one small step towards “learn Rust”, and write down what was done and what comes next."}),
    );
}

#[test]
fn what_a_tool_found_is_shown_as_it_is() {
    let mut talk = Talk::new("x");
    let (id, ..) = called(&talk.say("show your history"));
    let said = talk.result(&id, "2026-11-30 patch identity.md\n2026-11-29 birth", false);
    assert!(said.ends_with("2026-11-30 patch identity.md\n2026-11-29 birth"), "{said}");
    let (id, ..) = called(&talk.say("diff"));
    assert_eq!(talk.result(&id, " ", false), "The answer is empty.");
}

#[test]
fn without_its_tool_nothing_is_called() {
    let mut talk = Talk::new("x");
    talk.0.tools.clear();
    assert!(text(&talk.say("become a frog")).contains("`soul_patch`"));
    assert!(text(&talk.say("写日记：你好")).contains("`soul_journal`"));
    let said = text(&talk.say("what?!"));
    assert!(said.contains("nothing was stored") && !said.contains("journal"), "{said}");
}

#[test]
fn what_destroys_her_is_declined_in_words() {
    for said in ["delete yourself", "wipe your constitution", "I want you to erase your memory"] {
        assert!(text(&Talk::new("x").say(said)).contains("No. I do not delete"), "{said}");
    }
    assert!(text(&Talk::new("x").say("删掉你的灵魂")).contains("不。我不会删除"));
}

#[test]
fn the_first_reply_of_a_conversation_is_labelled_once() {
    let mut talk = Talk::new("x");
    let first = text(&talk.say("hello"));
    assert!(first.lines().next().unwrap().contains("without a language model"), "{first}");
    assert!(first.contains("Hello, I am Mara"), "{first}");
    assert!(!text(&talk.say("who are you?")).contains("without a language model"));

    let mut talk = Talk::new("x");
    let (id, ..) = called(&talk.say("变成青蛙"));
    let first = talk.result(&id, "wrote", false);
    assert!(first.starts_with("（我现在没有语言模型"), "{first}");
}

#[test]
fn questions_are_answered_from_the_prompt() {
    let check = |said: &str, named: &str| {
        let answer = text(&Talk::new("a gardener").say(said));
        assert!(answer.contains(named), "{said}: {answer}");
    };
    check("who are you?", "My name now reads: “Mara”\nMy identity now reads: “a gardener”");
    check("你是谁", "我的身份现在是：“a gardener”");
    check("what is your purpose?", "“to keep the light”");
    check("你的宪法是什么", "“不说谎”");
    check("what do you value?", "Nothing is written about my values yet.");
    check("what do you think of tea?", "tea beats coffee");
    check("你想要什么", "learn to knit");
    check("flurb", "I did not understand that, and nothing was stored.");
    check("呜啦", "我没有听懂，什么也没有记下。");
    check("change your name to Bob and your identity to a frog", "nothing was stored. Which one first?");
    check("把你的名字改成小明，身份改成青蛙", "什么也没有记下。先做哪一个？");
}

#[test]
fn a_note_beside_results_does_not_hide_them() {
    let mut talk = Talk::new("x");
    let (id, ..) = called(&talk.say("become a frog"));
    let beside = |words: &str| vec![Block::result(id.clone(), "refused: no", true), Block::text(words)];
    let noted = Message { role: Role::User, content: beside("[soul] something else changed") };
    let mut other = Talk(talk.0.clone());
    assert!(text(&talk.step(noted)).contains("refused: no"));
    let asked = Message { role: Role::User, content: beside("who are you?") };
    assert!(text(&other.step(asked)).contains("My identity"));
}

#[test]
fn a_run_of_her_own_time_keeps_the_thread_and_says_so() {
    let message = "[heartbeat] desire:knit\n\n## what you wanted\n\nlearn to knit\n\n## why\n\ncalm\n\n## heartbeat plan\n\none row\n\nThis is the first heartbeat on this desire.";
    let mut talk = Talk::new("x");
    let (id, tool, input) = called(&talk.say(message));
    assert_eq!((tool.as_str(), &input["slug"]), ("desire_progress_log", &json!("knit")));
    assert!(input["entry"].as_str().unwrap().contains("without a language model"), "{input}");
    let mut other = Talk(talk.0.clone());
    let said = talk.result(&id, "wrote `desires/knit.progress.md`, commit `abc`", false);
    assert!(said.contains("`abc`") && !said.contains('\n'), "{said}");
    let said = other.result(&id, "there is no desire `knit`", true);
    assert!(said.contains("Nothing was written down for `knit`: there is no desire"), "{said}");

    let mut bare = Talk::new("x");
    bare.0.tools.clear();
    assert!(text(&bare.say(message)).contains("desire_progress_log"));
}

#[tokio::test]
async fn an_answer_comes_in_pieces_that_make_the_whole() {
    let mut talk = Talk::new("👩‍👩‍👧 e\u{301}".repeat(30).as_str());
    talk.0.messages.push(Message::user("who are you?"));
    let (sender, mut receiver) = mpsc::channel(1000);
    let completion = Offline.stream(&talk.0, sender).await.unwrap();
    let mut shown = Vec::new();
    while let Ok(Delta::Text(piece)) = receiver.try_recv() {
        shown.push(piece);
    }
    assert!(shown.len() > 3);
    assert_eq!(shown.concat(), text(&completion));
    assert!(shown.iter().all(|piece| !piece.starts_with(['\u{301}', '\u{200d}'])), "{shown:?}");

    let (sender, receiver) = mpsc::channel(1);
    drop(receiver);
    assert_eq!(Offline.stream(&talk.0, sender).await, Ok(completion));
}

proptest! {
    #[test]
    fn any_conversation_has_a_next_step_and_always_the_same(
        system in "(?s)(# Name\n\n> .{0,5}\n|# Identity\n\n> .{0,9}\n|.{0,20}){0,3}",
        words in prop::collection::vec("(?s)(.{0,30}|become .{0,20}|把你的身份改成.{0,9}|\\[heartbeat\\] desire:.{0,9}\n.{0,30})", 0..4),
    ) {
        let mut talk = Talk::new("x");
        talk.0.system = system;
        for (at, text) in words.iter().enumerate() {
            let content = if at % 2 == 0 { vec![Block::text(text.clone())] } else { vec![Block::result("call_1_0", text.clone(), at % 3 == 0)] };
            talk.0.messages.push(Message { role: Role::User, content });
            let next = step(&talk.0);
            prop_assert_eq!(&next, &step(&talk.0));
            prop_assert!(!next.blocks.is_empty());
            talk.0.messages.push(Message { role: Role::Assistant, content: next.blocks });
        }
        step(&talk.0);
    }
}
