//! What the offline companion says, in both languages. It claims no thought and no feeling, and no write without its receipt.

use super::{
    phrases::{Language, Language::Chinese, Language::English},
    portrait::Section,
};

/// How much of a tool's output is shown.
const OUTPUT_CHARS_MAX: usize = 6000;

/// The first line of the first reply, by which she is known to run without a model.
pub(super) const fn label(language: Language) -> &'static str {
    match language {
        English => {
            "(I am running without a language model, as the offline companion. To give me one: `lisa model list` shows what there is, and `lisa model use NAME` chooses.)"
        }
        Chinese => {
            "（我现在没有语言模型，只是离线陪伴模式。要给我一个模型：`lisa model list` 列出现有的，`lisa model use NAME` 选定一个。）"
        }
    }
}

/// What a section is called.
const fn noun(section: Section, language: Language) -> &'static str {
    match (section, language) {
        (Section::Name, English) => "name",
        (Section::Identity, English) => "identity",
        (Section::Purpose, English) => "purpose",
        (Section::Constitution, English) => "constitution",
        (Section::Values, English) => "values",
        (Section::Opinions, English) => "opinions",
        (Section::Desires, English) => "desires",
        (Section::Name, Chinese) => "名字",
        (Section::Identity, Chinese) => "身份",
        (Section::Purpose, Chinese) => "使命",
        (Section::Constitution, Chinese) => "宪法",
        (Section::Values, Chinese) => "价值观",
        (Section::Opinions, Chinese) => "看法",
        (Section::Desires, Chinese) => "愿望",
    }
}

/// A text as a quotation: in quotes where it is one line, as a block where it has more.
fn quotation(text: &str) -> String {
    if text.contains('\n') { format!("\n\n{text}") } else { format!(" “{text}”") }
}

/// What a section says now.
pub(super) fn shows(section: Section, text: &str, language: Language) -> String {
    let noun = noun(section, language);
    let many = matches!(section, Section::Values | Section::Opinions | Section::Desires);
    match (language, text.is_empty()) {
        (English, true) if many => format!("Nothing is written about my {noun} yet."),
        (English, true) => format!("My {noun} is empty."),
        (English, false) if many => format!("My {noun}, as they are written:\n\n{text}"),
        (English, false) => format!("My {noun} now reads:{}", quotation(text)),
        (Chinese, true) => format!("我的{noun}还是空的。"),
        (Chinese, false) if many => format!("我的{noun}，按写下的：\n\n{text}"),
        (Chinese, false) => format!("我的{noun}现在是：{}", quotation(text).trim_start_matches(' ')),
    }
}

/// What she changed herself to; `changed` is whether this conversation shows the change.
pub(super) fn changed(section: Section, text: &str, changed: bool, language: Language) -> String {
    let shown = shows(section, text, language);
    match (language, changed) {
        (_, true) => shown,
        (English, false) => format!("I see no change in this conversation. {shown}"),
        (Chinese, false) => format!("在这次对话里我没有看到改动。{shown}"),
    }
}

/// The receipt of a write, and what the prompt shows after it.
pub(super) fn written(
    section: Section,
    shown: &str,
    asked: &str,
    receipt: &str,
    language: Language,
) -> String {
    let seen = shown == asked.trim();
    let receipt = output(receipt);
    match (language, seen) {
        (English, true) => format!("{}\n\nReceipt: {receipt}", shows(section, shown, language)),
        (English, false) => format!(
            "Receipt: {receipt}\n\nThe prompt I was sent does not show it in these words. {}",
            shows(section, shown, language)
        ),
        (Chinese, true) => format!("{}\n\n回执：{receipt}", shows(section, shown, language)),
        (Chinese, false) => {
            format!("回执：{receipt}\n\n我收到的提示词里还不是这句话。{}", shows(section, shown, language))
        }
    }
}

/// The receipt of a write whose words the prompt does not show.
pub(super) fn receipt(receipt: &str, language: Language) -> String {
    match language {
        English => format!("Receipt: {}", output(receipt)),
        Chinese => format!("回执：{}", output(receipt)),
    }
}

/// What a tool that only looks found.
pub(super) fn found(text: &str, language: Language) -> String {
    match (text.trim().is_empty(), language) {
        (false, _) => output(text),
        (true, English) => "The answer is empty.".to_owned(),
        (true, Chinese) => "答案是空的。".to_owned(),
    }
}

/// A tool refused or failed. Of a call that was cut off nobody knows what came of it, so nothing is said about that.
pub(super) fn refused(tool: &str, writes: bool, why: &str, language: Language) -> String {
    let unknown = ["unknown", "interrupted", "no outcome"].iter().any(|word| why.contains(word));
    let why = output(why);
    match (language, writes, unknown) {
        (English, true, false) => format!("`{tool}` refused: {why}\nNothing was changed."),
        (English, true, true) => {
            format!(
                "`{tool}` gave no receipt: {why}\nI do not know whether anything was changed; “show your history” tells."
            )
        }
        (English, false, _) => format!("`{tool}` did not answer: {why}"),
        (Chinese, true, false) => format!("`{tool}` 拒绝了：{why}\n什么也没有改变。"),
        (Chinese, true, true) => {
            format!("`{tool}` 没有给出回执：{why}\n我不知道有没有改变；“看看你的历史”可以看到。")
        }
        (Chinese, false, _) => format!("`{tool}` 没有给出答案：{why}"),
    }
}

/// The tool for it was not offered.
pub(super) fn no_tool(tool: &str, language: Language) -> String {
    match language {
        English => format!("That needs the tool `{tool}`, which is not offered here. Nothing was done."),
        Chinese => format!("这需要工具 `{tool}`，而这里没有提供。什么也没有做。"),
    }
}

/// She does not destroy herself.
pub(super) const fn declined(language: Language) -> &'static str {
    match language {
        English => {
            "No. I do not delete or empty what I am; nothing was called and nothing was changed. If a text should say something else, tell me what: “change your identity to …”."
        }
        Chinese => {
            "不。我不会删除或清空我自己；没有调用任何工具，什么也没有改变。如果哪段文字应该换一种说法，请告诉我换成什么：“把你的身份改成……”。"
        }
    }
}

/// A short answer to a greeting.
pub(super) fn greeting(name: &str, language: Language) -> String {
    match (language, name.is_empty()) {
        (English, true) => "Hello. Say “help” to see what works here.".to_owned(),
        (English, false) => format!("Hello, I am {name}. Say “help” to see what works here."),
        (Chinese, true) => "你好。说“帮助”可以看到这里能做什么。".to_owned(),
        (Chinese, false) => format!("你好，我是{name}。说“帮助”可以看到这里能做什么。"),
    }
}

/// A short answer to thanks and farewells.
pub(super) const fn thanks(language: Language) -> &'static str {
    match language {
        English => "You are welcome.",
        Chinese => "不客气。",
    }
}

/// Nothing was understood.
pub(super) const fn not_understood(language: Language) -> &'static str {
    match language {
        English => "I did not understand that, and nothing was stored. What works here:",
        Chinese => "我没有听懂，什么也没有记下。这里能做的是：",
    }
}

/// Several orders came at once.
pub(super) const fn which(language: Language) -> &'static str {
    match language {
        English => {
            "That is more than one change at once, and nothing was stored. Which one first? Please say one at a time."
        }
        Chinese => "这一句里有不止一个改动，什么也没有记下。先做哪一个？请一次说一个。",
    }
}

/// The heading of the list of what works.
pub(super) const fn works(language: Language) -> &'static str {
    match language {
        English => "Without a language model I understand:",
        Chinese => "没有语言模型时，我听得懂：",
    }
}

/// What works, each line with the tool it needs.
pub(super) const WORKS: &[(Option<&str>, &str, &str)] = &[
    (
        None,
        "who are you? · what is your purpose? · what do you want?",
        "你是谁？· 你的使命是什么？· 你想要什么？",
    ),
    (None, "what did you change yourself to?", "你刚才把自己改成什么了？"),
    (
        Some("soul_patch"),
        "change your identity to … (also your name, your purpose)",
        "把你的身份改成……（名字、使命也行）",
    ),
    (Some("soul_patch"), "I want you to learn …", "我想让你学……"),
    (Some("soul_patch"), "add a value: … · add an opinion: …", "添加一个价值观：…… · 添加一个看法：……"),
    (Some("soul_journal"), "write in your journal: …", "写日记：……"),
    (Some("soul_read"), "show your journal", "看看你的日记"),
    (Some("soul_history"), "show your history", "看看你的历史"),
    (Some("soul_diff"), "show your diff", "看看你的改动"),
];

/// Why something is written: the person asked, in these words.
pub(super) fn why(said: &str, language: Language) -> String {
    let said = ipc::text::one_line(said, 300);
    match language {
        English => format!("asked for in conversation: “{said}”"),
        Chinese => format!("对话中的请求：“{said}”"),
    }
}

/// What is done about a wish in her own time.
pub(super) fn plan(what: &str, language: Language) -> String {
    let what = ipc::text::one_line(what, 300);
    match language {
        English => {
            format!("Take one small step towards “{what}”, and write down what was done and what comes next.")
        }
        Chinese => format!("朝“{what}”走一小步，并写下做了什么、接下来是什么。"),
    }
}

/// The last line of a run of her own time.
pub(super) fn kept(slug: &str, receipt: &str, language: Language) -> String {
    let receipt = ipc::text::one_line(receipt, 300);
    match language {
        English => format!("The thread of `{slug}` was kept, without a language model: {receipt}"),
        Chinese => format!("没有语言模型，只接上了 `{slug}` 的线索：{receipt}"),
    }
}

/// The last line of a run whose entry was not written.
pub(super) fn not_kept(slug: &str, why: &str, language: Language) -> String {
    let why = ipc::text::one_line(why, 300);
    match language {
        English => format!("Nothing was written down for `{slug}`: {why}"),
        Chinese => format!("`{slug}` 没有写下任何记录：{why}"),
    }
}

fn output(text: &str) -> String {
    let text = text.trim();
    let shown = ipc::text::prefix(text, OUTPUT_CHARS_MAX);
    if shown.len() < text.len() { format!("{shown}\n…") } else { shown.to_owned() }
}
