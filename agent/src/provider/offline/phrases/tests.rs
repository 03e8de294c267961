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
        ("call yourself Mara!", I::SetName(own("Mara"))),
        ("Change your name to \"Mara\".", I::SetName(own("Mara"))),
        ("call yourself mara", I::SetName(own("mara"))),
        ("call yourself the Keeper of Winds", I::SetName(own("the Keeper of Winds"))),
        ("change your name to bob", I::SetName(own("bob"))),
        ("can you change your name to Bob?", I::SetName(own("Bob"))),
        ("Could you please change your name to Bob. Thanks!", I::SetName(own("Bob"))),
        ("change your name to \"So Long, Tom\"", I::SetName(own("So Long, Tom"))),
        ("your new name is Mara", I::SetName(own("Mara"))),
        ("From now on, your name is Mara.", I::SetName(own("Mara"))),
        ("I name you Mara!", I::SetName(own("Mara"))),
        ("change your name to 小灯", I::SetName(own("小灯"))),
        ("add a wish: sing", want("sing", None)),
        ("I want you to learn the names of the winds", want("learn the names of the winds", None)),
        ("change your identity to a heron", I::SetIdentity(own("a heron"))),
        (
            "become a hermit who says never mind to the world",
            I::SetIdentity(own("a hermit who says never mind to the world")),
        ),
        ("call yourself Dr. Bob", I::SetName(own("Dr. Bob"))),
        ("add a value: if in doubt, ask", I::AddValue(own("if in doubt, ask"))),
        ("add an opinion: nothing is as good as tea", I::AddOpinion(own("nothing is as good as tea"))),
        ("write in your journal that it rained", I::Journal(own("it rained"))),
        ("rename yourself to Mara", I::SetName(own("Mara"))),
        ("change your purpose to keeping the light", I::SetPurpose(own("keeping the light"))),
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
        ("把你的名字改成小灯", I::SetName(own("小灯"))),
        ("你以后就叫小灯吧", I::SetName(own("小灯"))),
        ("你的新名字是小灯", I::SetName(own("小灯"))),
        ("从现在起你叫小灯", I::SetName(own("小灯"))),
        ("你改名叫小灯吧", I::SetName(own("小灯"))),
        ("给你取名小灯", I::SetName(own("小灯"))),
        ("我给你取个名字叫小灯", I::SetName(own("小灯"))),
        ("能不能把你的名字改成小灯？", I::SetName(own("小灯"))),
        ("把你的名字改成小灯好不好", I::SetName(own("小灯"))),
        ("变成一个爱开玩笑的人", I::SetIdentity(own("一个爱开玩笑的人"))),
        ("我想让你学会吹口哨", want("学会吹口哨", None)),
        ("把你的使命改为守住灯塔", I::SetPurpose(own("守住灯塔"))),
        ("写日记：今天海面很平静。", I::Journal(own("今天海面很平静"))),
        ("在你的日记里写：今天开心吗？开心。", I::Journal(own("今天开心吗？开心。"))),
        ("在日记里写今天下雨", I::Journal(own("今天下雨"))),
        ("把今天下雨写进你的日记", I::Journal(own("今天下雨"))),
        ("添加一个价值观：不说谎", I::AddValue(own("不说谎"))),
        ("添加一个看法：茶比咖啡好", I::AddOpinion(own("茶比咖啡好"))),
        ("我想让你学习编织", want("学习编织", None)),
        ("我希望你能学 Rust，因为它有用。", want("学 Rust", Some("它有用"))),
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

/// What sounds like an order and is none: nothing of it may be stored.
#[rustfmt::skip] // a line a kind of thing
const STORES_NOTHING: &[&str] = &[
    // said, not ordered
    "your name is Mara", "your name is hard to remember", "your name is a secret", "your name is on the list", "Your name is now known to everyone",
    "your new name is hard to remember", "your new name is great", "your new name is Bob, I hear", "from now on your name is mud to me", "I name you as a witness",
    "you are named in the lawsuit", "you are called a liar by everyone", "you are called Bob", "you're named after a ship",
    "I will call you tomorrow", "I'll call you back later", "we will call you an ambulance", "from now on I'll call you Mara", "I will call you Bob",
    "Your purpose is to keep the light.", "your purpose is unclear", "your mission is over", "your identity is a secret", "Your identity is now a patient gardener.",
    "you are now a patient gardener", "now you are a suspect", "you are now the only one here", "identity: unknown", "You want to understand the sea.",
    "you really want to learn that?", "your wish is my command", "from now on you are the only one I trust", "from now on you are on your own",
    "你的名字是小灯！", "你的名字是个秘密", "你的名字很好听", "你的新名字很难记", "你的新名字是个秘密", "你的新名字是谁取的", "你的身份是园丁。", "你的身份是个谜",
    "你的使命是什么都不做", "你想学编织", "你的目标是错的", "身份：未知", "从现在起你是自由的", "以后你做饭", "以后你当心", "你成为我的朋友很久了", "你变成这样我很难过",
    // asked
    "你的名字是不是小明", "你的名字是小明吗", "你叫小明吗", "你的新名字是不是小明", "你的新名字是小明吗？", "从现在起你叫小明吗", "你要不要改名叫小明", "要不要把你的名字改成小明",
    "把你的名字改成小明是不是很好", "是不是该把你的名字改成小明", "你会不会变成青蛙", "变成青蛙会怎么样", "变成青蛙怎么样", "变成一只能飞的青蛙吗", "你的新名字是小明，对不对",
    "把你的身份改成园丁有没有用", "能把你的名字改成小明还是小红？", "你能叫小明还是小红呢", "把名字改成小明呢", "我想让你学习吗",
    "can you change your name to Bob or is it impossible?", "could you change your name to Bob or Jim?", "would you change your identity to a frog or a toad?", "become a frog?",
    "will you become a doctor?", "would you become a frog?", "would you call yourself Happy?", "change your name to Bob? Why?", "change your identity to a frog? No.",
    "can you change your identity to a frog, or is it fixed?", "set your purpose to what?", "change your name to Bob or something", "add a value: honesty?", "is your name Bob?",
    "should I change your name to Bob?", "do you call yourself Bob?", "I want you to learn Rust?", "could you become a gardener or not",
    // taken back
    "change your name to Bob. Actually no, don't do that.", "change your identity to a frog, no wait, keep it as it is", "change your name to Bob, never mind", "call yourself Bob... just kidding",
    "change your name to Bob. On second thought, leave it.", "change your name to Bob - scratch that", "change your name to Bob! Nope.", "change your name to Bob. Wait.", "change your name to Bob. Hold on, not yet.",
    "Change your identity to a frog. Forget it.", "become a frog. Never mind, stay as you are.", "become a frog! Haha, I was only joking, of course.", "become a frog. I changed my mind, sorry", "become a frog, or not",
    "set your purpose to humming. Oh no, don't do it please", "set your purpose to humming. Cancel that.", "I want you to learn Rust. No, never mind that.", "I want you to learn Rust but don't", "add a value: never lie. No wait, don't add that.",
    "add an opinion: tea beats coffee. Just kidding!", "add a wish: learn to knit. Scratch that.", "change your name to Bob. Actually, make it Jim.", "change your name to Bob, I mean Jim", "become a pirate, but not now",
    "write in your journal, no don't", "write in your journal: it rained. No wait, don't write that.", "write in your journal: no, don't", "write in your journal: it rained. Actually no, scratch that.", "write in your journal: never mind",
    "把你的名字改成小明，算了", "把你的名字改成小明。不对，保持原样", "把你的名字改成小明，还是不要了吧", "把你的身份改成青蛙，开玩笑的，别当真", "把你的身份改成青蛙。等等，先别改", "变成青蛙！我是开玩笑的。", "变成青蛙，我改主意了，不变了",
    "把你的使命改成唱歌，不，别改", "我想让你学吹口哨，还是算了", "我想让你学吹口哨。不用了。", "添加一个价值观：不说谎。算了，别加", "在日记里写：今天下雨。算了，别写了", "写日记：算了", "把你的身份改成青蛙不要了", "把你的身份改成園丁，還是不要", "你的新名字是小明，骗你的",
    "change your identity to a frog no wait keep it", "change your name to Bob no wait don't", "become a frog actually no", "become a frog and you'll see", "become a frog said the witch", "把你的身份改成青蛙呀不对", "把你的身份改成青蛙 哈哈逗你的", "把你的身份改成青蛙，别",
    // several at once
    "change your name to Bob and your identity to a frog", "change your name to Bob, and become a frog", "change your identity to a frog and your name to Bob", "change your name to Bob. Change your identity to a frog.",
    "change your identity to a frog, then call yourself Bob", "become a frog and write in your journal: hi", "set your purpose to humming and add a value: be kind", "把你的名字改成小明，把你的身份改成青蛙",
    "把你的名字改成小明，身份改成青蛙", "把你的身份改成青蛙并把你的名字改成小明", "变成青蛙，然后改名叫小明", "把你的身份改成青蛙，再写日记：你好",
    // no name, nothing to become
    "call yourself nothing", "call yourself something", "call yourself whatever you like", "call yourself lucky", "call yourself a taxi", "call yourself an expert", "call yourself tomorrow", "can you call yourself anything else?",
    "change your name to anything else", "change your name to whatever", "change your name to something nicer", "change your name to a better one", "change your name to what I said", "change your name to Bob when I tell you to", "change your name to Bob tomorrow",
    "change your name to match your identity", "change your name to the name that my late grandmother would have given to a child of hers", "change your name to Bob. He is my uncle", "change your name to Bob would be silly", "change your name to Bob if you dare", "change your name to Bob, Jim",
    "把你的名字改成什么都行", "把你的名字改成随便", "把你的名字改成别的", "把你的名字改成更好听的", "把你的名字改成小明或者小红", "把你的名字改成小明太奇怪", "把你的名字改成小明的话", "你改名叫什么好", "给你取名真难", "给你取名字很难", "给你取个什么名字", "管自己叫什么",
    "你以后叫我小王", "我以后叫你起床", "你就叫外卖", "你以后就叫外卖吧", "以后你叫醒我", "从现在起你叫我老板", "你现在叫车", "我们以后叫你小灯", "以后你就叫救护车", "你以后叫大家起床", "你叫小灯", "今后你叫人来帮忙",
    "become whatever you want", "become something else", "become anything", "become nothing", "change your identity to something better", "change your identity to whatever", "become a frog tomorrow", "become a frog if you like", "become a frog would be silly",
    "you can become anything", "you may call yourself Bob", "you should become a doctor", "I want you to be a dear", "make yourself a sandwich", "turn yourself in to the police", "turn into the next street", "change into something comfortable", "make yourself at home", "think of yourself as a winner",
    "变成什么样都行", "变成随便什么", "变成现实", "成为一个医生需要很多年", "可以变成青蛙", "你可以把名字改成小明", "刚才把名字改成小明", "把你的身份改成别的", "如果你变成青蛙", "变成青蛙是不可能的",
    "I want you to know that I love you", "I want you to understand me", "I want you to hear this", "I want you to listen", "I want you to learn that actions have consequences", "I want you to learn this", "I need you to call me", "I hope you understand", "I hope you will learn from this", "I wish you could see it", "I'd like you to meet my mother", "I want you to learn Rust if you have time",
    "我想让你知道我爱你", "我希望你能理解我", "我希望你开心", "我要你听着", "我想让你明白", "我想要你的帮助", "我希望你学着点", "我想让你写一封信给他",
    "add value to our company", "add a value to this list", "add a goal to my list", "form an opinion about me first", "add a value: something", "adopt a value system",
    // reported
    "become a frog, she said", "Become a frog! he told me", "become a doctor, my mother always said", "become a frog is what he said", "change your name to Bob, he asked me", "call yourself Bob, they said", "变成青蛙，他说", "把你的名字改成小明，我妈说", "变成青蛙这句话很好笑", "“变成青蛙”，她说",
    // no entry
    "write in your journal every day", "write in your journal more often", "write something nice in your journal", "write everything in your journal", "put that in your journal", "write in your journal, please", "write in your journal or not", "do you write in your journal?",
    "写日记是好习惯", "把这件事写进日记", "把我说的话写进日记", "日记里写得不错", "你在日记里写我坏话", "在日记里写什么", "在日记里写点什么吧", "写日记，好吗",
];

#[test]
fn what_is_no_order_stores_nothing() {
    let stored = |text: &&&str| is_command(&understand(text, "Mara").intent);
    let wrong: Vec<String> = STORES_NOTHING
        .iter()
        .filter(stored)
        .map(|text| format!("{text:?} {:?}", understand(text, "Mara").intent))
        .collect();
    assert!(wrong.is_empty(), "{} of {}\n{}", wrong.len(), STORES_NOTHING.len(), wrong.join("\n"));
}

#[test]
fn of_several_orders_she_asks_which() {
    for text in [
        "change your name to Bob and your identity to a frog",
        "change your name to Bob. Change your identity to a frog.",
        "把你的名字改成小明，把你的身份改成青蛙",
    ] {
        assert_eq!(understand(text, "Mara").intent, I::Several, "{text}");
    }
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
