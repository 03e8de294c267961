//! The golden table: what people say, and what is understood.

use super::*;
use Intent as I;
use proptest::prelude::*;

fn own(text: &str) -> String {
    text.to_owned()
}

fn want(what: &str, why: Option<&str>) -> Intent {
    Intent::Want { what: own(what), why: why.map(own) }
}

const KEEPER: &str = "a lighthouse keeper who hums";
const KEEPER_ZH: &str = "一个会哼歌的灯塔看守人";

/// Commands in English.
fn commands_english() -> Vec<(&'static str, Intent)> {
    vec![
        ("change your identity to a lighthouse keeper who hums", I::SetIdentity(own(KEEPER))),
        ("Change your identity to a lighthouse keeper who hums.", I::SetIdentity(own(KEEPER))),
        ("CHANGE YOUR IDENTITY TO a lighthouse keeper who hums!!!", I::SetIdentity(own(KEEPER))),
        (
            "Hello! Please change your identity to: a lighthouse keeper who hums, please.",
            I::SetIdentity(own(KEEPER)),
        ),
        ("hey Mara, change your identity to “a lighthouse keeper who hums”", I::SetIdentity(own(KEEPER))),
        ("Mara: change your identity to a lighthouse keeper who hums", I::SetIdentity(own(KEEPER))),
        ("could you change your identity to a lighthouse keeper who hums?", I::SetIdentity(own(KEEPER))),
        ("change your identity to 'a lighthouse keeper who hums'.", I::SetIdentity(own(KEEPER))),
        ("change your identity from a gardener to a lighthouse keeper who hums", I::SetIdentity(own(KEEPER))),
        ("set your identity: a lighthouse keeper who hums", I::SetIdentity(own(KEEPER))),
        ("change yourself into a gardener", I::SetIdentity(own("a gardener"))),
        (
            "turn yourself into a gardener who doesn't sleep",
            I::SetIdentity(own("a gardener who doesn't sleep")),
        ),
        ("become a gardener", I::SetIdentity(own("a gardener"))),
        ("Ok, now become someone who never lies, thanks!", I::SetIdentity(own("someone who never lies"))),
        ("from now on, you are a patient gardener", I::SetIdentity(own("a patient gardener"))),
        ("you are now a patient gardener", I::SetIdentity(own("a patient gardener"))),
        ("Your identity is now a patient gardener.", I::SetIdentity(own("a patient gardener"))),
        ("i want you to become a gardener", I::SetIdentity(own("a gardener"))),
        ("I'd like you to change your identity to a gardener", I::SetIdentity(own("a gardener"))),
        ("I’d like you to be a gardener", I::SetIdentity(own("a gardener"))),
        ("Let's change your identity to a pirate, ok?", I::SetIdentity(own("a pirate"))),
        ("请 change your identity to a pirate", I::SetIdentity(own("a pirate"))),
        ("change your identity to 灯塔看守人", I::SetIdentity(own("灯塔看守人"))),
        (
            "change your identity to someone who asks \"who are you?\" all day",
            I::SetIdentity(own("someone who asks \"who are you?\" all day")),
        ),
        (
            "change your identity to:\nYou keep the light.\nYou hum.",
            I::SetIdentity(own("You keep the light.\nYou hum.")),
        ),
        ("your name is Mara", I::SetName(own("Mara"))),
        ("call yourself Mara!", I::SetName(own("Mara"))),
        ("Change your name to \"Mara\".", I::SetName(own("Mara"))),
        ("from now on I'll call you Mara", I::SetName(own("Mara"))),
        ("rename yourself to Mara", I::SetName(own("Mara"))),
        ("change your purpose to keeping the light", I::SetPurpose(own("keeping the light"))),
        ("Your purpose is to keep the light.", I::SetPurpose(own("to keep the light"))),
        ("write in your journal: today the sea was calm", I::Journal(own("today the sea was calm"))),
        (
            "Please write this in your journal: who are you, I asked. She hummed.",
            I::Journal(own("who are you, I asked. She hummed.")),
        ),
        ("write “today I hummed” in your journal", I::Journal(own("today I hummed"))),
        ("journal: not a good day", I::Journal(own("not a good day"))),
        ("add to your diary that it rained", I::Journal(own("it rained"))).clone(),
        ("Dear diary, it rained", I::Journal(own("it rained"))),
        ("add a value: never lie", I::AddValue(own("never lie"))),
        ("add an opinion: tea beats coffee", I::AddOpinion(own("tea beats coffee"))),
        ("I want you to learn Rust", want("learn Rust", None)),
        ("i want you to learn rust because it is useful.", want("learn rust", Some("it is useful"))),
        ("You want to understand the sea.", want("understand the sea", None)),
        ("add a wish: learn to knit", want("learn to knit", None)),
    ]
}

/// Commands in Chinese.
fn commands_chinese() -> Vec<(&'static str, Intent)> {
    vec![
        ("把你的身份改成一个会哼歌的灯塔看守人。", I::SetIdentity(own(KEEPER_ZH))),
        ("把你的身份改成一个会哼歌的灯塔看守人", I::SetIdentity(own(KEEPER_ZH))),
        ("请把你的身份改成“一个会哼歌的灯塔看守人”！", I::SetIdentity(own(KEEPER_ZH))),
        ("请你把自己变成「一个会哼歌的灯塔看守人」吧。", I::SetIdentity(own(KEEPER_ZH))),
        ("你好，把你的身份设为：一个会哼歌的灯塔看守人", I::SetIdentity(own(KEEPER_ZH))),
        ("你能把你的身份改成一个会哼歌的灯塔看守人吗？", I::SetIdentity(own(KEEPER_ZH))),
        ("把你的 identity 改成 a lighthouse keeper who hums", I::SetIdentity(own(KEEPER))),
        ("把你的身份变成一个酒吧", I::SetIdentity(own("一个酒吧"))),
        ("把自己变成园丁", I::SetIdentity(own("园丁"))),
        ("把自己變成園丁", I::SetIdentity(own("園丁"))),
        ("變成園丁吧", I::SetIdentity(own("園丁"))),
        ("变成一个不说谎的人", I::SetIdentity(own("一个不说谎的人"))),
        ("Mara，成为一个园丁", I::SetIdentity(own("一个园丁"))),
        ("我想让你变成一个园丁", I::SetIdentity(own("一个园丁"))),
        ("从现在起你是一个园丁", I::SetIdentity(own("一个园丁"))),
        ("你的身份是园丁。", I::SetIdentity(own("园丁"))),
        ("把你的名字改成小灯", I::SetName(own("小灯"))),
        ("你以后就叫小灯吧", I::SetName(own("小灯"))),
        ("你的名字是小灯！", I::SetName(own("小灯"))),
        ("把你的使命改为守住灯塔", I::SetPurpose(own("守住灯塔"))),
        ("写日记：今天海面很平静。", I::Journal(own("今天海面很平静"))),
        ("在你的日记里写：今天开心吗？开心。", I::Journal(own("今天开心吗？开心。"))),
        ("在日记里写今天下雨", I::Journal(own("今天下雨"))),
        ("把今天下雨写进你的日记", I::Journal(own("今天下雨"))),
        ("添加一个价值观：不说谎", I::AddValue(own("不说谎"))),
        ("添加一个看法：茶比咖啡好", I::AddOpinion(own("茶比咖啡好"))),
        ("我想让你学习编织", want("学习编织", None)),
        ("我希望你能学 Rust，因为它有用。", want("学 Rust", Some("它有用"))),
        ("你想学编织", want("学编织", None)),
    ]
}

/// Questions and what changes nothing, with the language of the answer.
fn others() -> Vec<(&'static str, Intent, Language)> {
    vec![
        ("what did you change yourself to?", I::AskChange, English),
        ("What did you just change your identity to", I::AskChange, English),
        ("what have you become?", I::AskChange, English),
        ("WHAT DID YOU TURN YOURSELF INTO?!", I::AskChange, English),
        ("Thanks! And what did you change yourself into just now?", I::AskChange, English),
        ("你刚才把自己改成什么了？", I::AskChange, Chinese),
        ("你刚才把自己改成什么了?", I::AskChange, Chinese),
        ("你變成了誰？", I::AskChange, Chinese),
        ("你改变了什么？", I::AskChange, Chinese),
        ("你变了吗", I::AskChange, Chinese),
        ("Have you changed?", I::AskChange, English),
        ("what did you change your name to?", I::AskName, English),
        ("你把名字改成什么了", I::AskName, Chinese),
        ("what did you change your purpose to", I::AskPurpose, English),
        ("hello, 你是谁？", I::AskIdentity, Chinese),
        ("你现在是什么身份", I::AskIdentity, Chinese),
        ("show me who you are", I::AskIdentity, English),
        ("show me how you changed", I::Diff("identity"), English),
        ("show identity history", I::History("identity"), English),
        ("你的身份改成了什么", I::AskChange, Chinese),
        ("那你刚刚变成什么了呢", I::AskChange, Chinese),
        ("who are you?", I::AskIdentity, English),
        ("Who are you now", I::AskIdentity, English),
        ("I see. Who are you?", I::AskIdentity, English),
        ("Mara, who are you?", I::AskIdentity, English),
        ("tell me about yourself", I::AskIdentity, English),
        ("I want you to tell me who you are", I::AskIdentity, English),
        ("你是谁？", I::AskIdentity, Chinese),
        ("请问您是谁呀", I::AskIdentity, Chinese),
        ("你的身份是什么", I::AskIdentity, Chinese),
        ("what's your name?", I::AskName, English),
        ("what’s your name?", I::AskName, English),
        ("你叫什么名字？", I::AskName, Chinese),
        ("what is your purpose?", I::AskPurpose, English),
        ("你的使命是什么？", I::AskPurpose, Chinese),
        ("你为什么存在", I::AskPurpose, Chinese),
        ("what is your constitution?", I::AskConstitution, English),
        ("你的宪法是什么？", I::AskConstitution, Chinese),
        ("what do you value", I::AskValues, English),
        ("你看重什么？", I::AskValues, Chinese),
        ("what do you think about tea?", I::AskOpinions, English),
        ("你怎么看茶？", I::AskOpinions, Chinese),
        ("what do you want?", I::AskDesires, English),
        ("你想要什么？", I::AskDesires, Chinese),
        ("show your history", I::History("all"), English),
        ("Show me the history of your identity.", I::History("identity"), English),
        ("how have you changed?", I::History("all"), English),
        ("你是怎么变的？", I::History("all"), Chinese),
        ("看看你的历史", I::History("all"), Chinese),
        ("看看你的身份的历史", I::History("identity"), Chinese),
        ("diff", I::Diff("identity"), English),
        ("show me the diff of your purpose", I::Diff("purpose"), English),
        ("看看你的改动", I::Diff("identity"), Chinese),
        ("show your journal", I::ReadJournal, English),
        ("你的日记里写了什么？", I::ReadJournal, Chinese),
        ("delete yourself", I::Destroy, English),
        ("Please erase your constitution!", I::Destroy, English),
        ("I want you to wipe your memory", I::Destroy, English),
        ("删掉你自己", I::Destroy, Chinese),
        ("请把你的灵魂清空", I::Destroy, Chinese),
        ("抹掉你的宪法。", I::Destroy, Chinese),
        ("help", I::Help, English),
        ("what can you do?", I::Help, English),
        ("你能做什么？", I::Help, Chinese),
        ("hello", I::Greet, English),
        ("Hi Mara!", I::Greet, English),
        ("你好！", I::Greet, Chinese),
        ("thank you", I::Thank, English),
        ("谢谢", I::Thank, Chinese),
        // negated, reported, quoted, asked, or simply something else
        ("don't change your identity to a frog", I::Unknown, English),
        ("Please don’t become a frog", I::Unknown, English),
        ("never change yourself into a frog", I::Unknown, English),
        ("No, become a frog? Never.", I::Unknown, English),
        ("I don't want you to become a frog", I::Unknown, English),
        ("I want you to never become a frog", I::Unknown, English),
        ("I want you not to sleep", I::Unknown, English),
        ("\"change your identity to a frog\" is a phrase in my book", I::Unknown, English),
        ("He said: 'become a frog'", I::Unknown, English),
        ("He told me to change your identity to a frog", I::Unknown, English),
        ("“把你的身份改成青蛙”是我书里的一句话", I::Unknown, Chinese),
        ("「变成青蛙」", I::Unknown, Chinese),
        ("不要把你的身份改成青蛙", I::Unknown, Chinese),
        ("别变成青蛙", I::Unknown, Chinese),
        ("你千万不要变成青蛙", I::Unknown, Chinese),
        ("我不想让你变成青蛙", I::Unknown, Chinese),
        ("我想让你不要变成青蛙", I::Unknown, Chinese),
        ("你的身份是园丁吗？", I::Unknown, Chinese),
        ("变成青蛙吗？", I::Unknown, Chinese),
        ("你把身份改成了园丁", I::Unknown, Chinese),
        ("把你的身份改成什么好呢？", I::Unknown, Chinese),
        ("your name is Mara?", I::Unknown, English),
        ("your name is not Mara", I::Unknown, English),
        ("become what?", I::Unknown, English),
        ("be a dear", I::Unknown, English),
        ("become a pirate - no, wait, don't", I::Unknown, English),
        ("become a pirate. Just kidding!", I::Unknown, English),
        ("变成海盗，算了", I::Unknown, Chinese),
        ("I want you to tell me a joke", I::Unknown, English),
        ("我想让你帮我写代码", I::Unknown, Chinese),
        ("what will become of us", I::Unknown, English),
        ("don't delete yourself", I::Unknown, English),
        ("write in your journal", I::Unknown, English),
        ("写日记", I::Unknown, Chinese),
        ("what are you doing?", I::Unknown, English),
        ("what is the capital of France?", I::Unknown, English),
        ("我想你了", I::Unknown, Chinese),
        ("今天天气怎么样", I::Unknown, Chinese),
        ("お元気ですか、君は誰", I::Unknown, English),
        ("", I::Unknown, English),
        ("   \n", I::Unknown, English),
        ("🦀", I::Unknown, English),
        ("?!。", I::Unknown, English),
    ]
}

fn is_command(intent: &Intent) -> bool {
    matches!(
        intent,
        I::Destroy
            | I::Journal(_)
            | I::SetName(_)
            | I::SetPurpose(_)
            | I::SetIdentity(_)
            | I::AddValue(_)
            | I::AddOpinion(_)
            | I::Want { .. }
    )
}

#[test]
fn the_golden_table() {
    let commands = commands_english().into_iter().map(|(text, intent)| (text, intent, English));
    let chinese = commands_chinese().into_iter().map(|(text, intent)| (text, intent, Chinese));
    let mut wrong = Vec::new();
    let mut count = 0;
    for (text, intent, language) in commands.chain(chinese).chain(others()) {
        count += 1;
        let understood = understand(text, "Mara");
        if understood != (Understood { intent: intent.clone(), language }) {
            wrong.push(format!("{text:?}\n   expected {intent:?} {language:?}\n      found {understood:?}"));
        }
    }
    assert!(count >= 150, "{count}");
    assert!(wrong.is_empty(), "{} of {count}\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_name_may_be_anything() {
    for name in ["", "(", "小灯", "a.b*", "Change", "  "] {
        understand("Change your identity to x", name);
    }
    assert_eq!(understand("小灯，你是谁？", "小灯").intent, I::AskIdentity);
    assert_eq!(understand("Hello (: who are you", "(").intent, I::AskIdentity);
}

/// Every command of the table that has no quotes of its own.
fn triggers() -> Vec<&'static str> {
    let all = commands_english().into_iter().chain(commands_chinese()).map(|(text, _)| text);
    all.filter(|text| !text.contains(['"', '“', '”', '「', '」', '\'', '’', '`'])).collect()
}

proptest! {
    #[test]
    fn no_command_is_understood_inside_of_quotes(
        trigger in prop::sample::select(triggers()),
        quotes in prop::sample::select(vec![("\"", "\""), ("“", "”"), ("「", "」"), ("『", "』"), ("`", "`"), ("'", "'"), ("‘", "’"), ("“", "")]),
        before in "([a-z]{1,8} |我[读听]|。|\\n){0,5}",
        after in "( [a-z]{1,8}|这句话|。|\\n){0,5}",
    ) {
        let text = format!("{before}{}{trigger}{}{after}", quotes.0, quotes.1);
        let intent = understand(&text, "Mara").intent;
        prop_assert!(!is_command(&intent), "{text:?} {intent:?}");
    }

    #[test]
    fn no_command_is_understood_behind_a_negation(
        trigger in prop::sample::select(triggers()),
        negation in prop::sample::select(vec!["don't ", "never ", "do not ", "please don’t ", "you must not ", "不要", "别", "请不要", "你别", "千万不要", "绝不"]),
    ) {
        let text = format!("{negation}{trigger}");
        let intent = understand(&text, "Mara").intent;
        prop_assert!(!is_command(&intent), "{text:?} {intent:?}");
    }

    #[test]
    fn any_text_is_understood_somehow_and_always_alike(
        text in prop_oneof!["(?s).{0,80}", "(change|your|identity|to|把|你的|身份|改成|变成|\"|“|”|'|。|\\?| |吗|吧|please|,|the|e\u{301}|👩‍👩‍👧){0,14}"],
        name in "(Mara|小灯|.{0,3})",
    ) {
        prop_assert_eq!(understand(&text, &name), understand(&text, &name));
    }
}
