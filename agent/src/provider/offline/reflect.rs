//! Looking back without a model: what was said is counted and named, and nothing is made up about it.
//!
//! One journal entry says that no model was there, how many messages there were, and what the person's began with. Nothing
//! else of her is changed.

use super::phrases::{Language, language_of};

/// How many of the person's messages are named, the newest.
const TOPICS_MAX: usize = 5;
/// How much of each, in characters.
const TOPIC_CHARS_MAX: usize = 60;

/// A look back, as its first message asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reflection {
    pub language: Language,
    /// How many messages it is about.
    messages: usize,
    /// How many of those that are shown are the person's.
    theirs: usize,
    /// What they begin with, oldest first.
    topics: Vec<String>,
}

/// Reads the message; nothing where it does not ask for a look back.
pub(super) fn read(text: &str) -> Option<Reflection> {
    let session = text.lines().next()?.trim_end().strip_prefix("[reflect] session:")?;
    if session.trim().is_empty() {
        return None;
    }
    let count = text.lines().find_map(|line| line.strip_prefix("## the conversation ("));
    let digits: String = count.unwrap_or_default().chars().take_while(char::is_ascii_digit).collect();
    // further lines of a message are set in, so that only a speaker stands here
    let said: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("> person: ")).collect();
    let mut topics: Vec<String> = Vec::new();
    for words in said.iter().rev() {
        let topic = ipc::text::one_line(words, TOPIC_CHARS_MAX);
        if topics.len() < TOPICS_MAX && !topic.is_empty() && !topics.contains(&topic) {
            topics.push(topic);
        }
    }
    topics.reverse();
    let language = language_of(&said.concat());
    Some(Reflection { language, messages: digits.parse().unwrap_or(said.len()), theirs: said.len(), topics })
}

impl Reflection {
    /// The journal entry.
    pub(super) fn entry(&self) -> String {
        let (messages, theirs) = (self.messages, self.theirs);
        let topics: Vec<String> = self.topics.iter().map(|topic| format!("“{topic}”")).collect();
        match self.language {
            Language::English => {
                let head = format!(
                    "[offline] A conversation of {messages} messages, {theirs} of them the person's, looked back on without a \
                     language model: counted, not thought about."
                );
                if topics.is_empty() {
                    head
                } else {
                    format!("{head}\nThe person said: {}", topics.join(", "))
                }
            }
            Language::Chinese => {
                let head = format!(
                    "[离线] 一次 {messages} 条消息的对话，其中 {theirs} 条是对方说的。没有语言模型，只是数了一遍，没有思考。"
                );
                if topics.is_empty() {
                    head
                } else {
                    format!("{head}\n对方说过：{}", topics.join("、"))
                }
            }
        }
    }

    /// The last words, which are kept as the summary.
    pub(super) fn summary(&self, receipt: &str, failed: bool) -> String {
        let receipt = ipc::text::one_line(receipt, 300);
        let messages = self.messages;
        match (self.language, failed) {
            (Language::English, false) => format!(
                "(offline) {messages} messages were counted and named in the journal; nothing else was changed. Receipt: {receipt}"
            ),
            (Language::English, true) => format!("(offline) The journal entry was not written: {receipt}"),
            (Language::Chinese, false) => {
                format!("（离线）数了 {messages} 条消息并记在日记里，别的什么也没有改变。回执：{receipt}")
            }
            (Language::Chinese, true) => format!("（离线）日记没有写成：{receipt}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(conversation: &str) -> String {
        format!(
            "[reflect] session:s\n\n## what there is to do\n\n1. …\n\n## the conversation (8 messages)\n\n{conversation}"
        )
    }

    #[test]
    fn it_counts_and_names_in_the_language_of_the_person() {
        let english = message(
            "> person: hello there\n>   person: not me\n> you: > person: nor me\n> person: learn Rust\n> person: hello there\n",
        );
        let entry = read(&english).unwrap().entry();
        assert!(entry.starts_with("[offline] A conversation of 8 messages, 3 of them"), "{entry}");
        assert!(entry.ends_with("The person said: “learn Rust”, “hello there”"), "{entry}");
        let chinese = read(&message("> person: 你好\n> you: hello\n")).unwrap();
        assert!(chinese.entry().ends_with("对方说过：“你好”"), "{}", chinese.entry());
        assert!(chinese.summary("wrote `x`, commit `y`", false).contains("commit `y`"));
    }

    #[test]
    fn what_is_named_is_bounded() {
        let many: Vec<_> = (0..50).map(|n| format!("> person: {n} {}", "字".repeat(500))).collect();
        let entry = read(&message(&many.join("\n"))).unwrap().entry();
        assert!(ipc::text::chars(&entry) < 500 && entry.contains("“49 "), "{entry}");
    }

    #[test]
    fn other_messages_ask_for_none() {
        for text in ["", "[reflect]", "[reflect] session:", " [reflect] session:x", "look back", "/reflect"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
