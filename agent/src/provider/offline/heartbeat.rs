//! Her own time without a model: the thread of a desire is kept, and nothing is made up about it.
//!
//! The entry says what is true: that no model was there, how many entries came before, what the last one said, and what the
//! plan says comes next.

use super::phrases::{Language, language_of};

/// How much of an earlier entry or of the plan is quoted.
const QUOTED_CHARS_MAX: usize = 160;

/// One run of her own time, as its first message describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Heartbeat {
    /// Whose thread it is.
    pub slug: String,
    pub language: Language,
    plan: String,
    /// Her entries so far, oldest first.
    entries: Vec<String>,
}

/// Reads the message; nothing where it does not open a run.
pub(super) fn read(text: &str) -> Option<Heartbeat> {
    let mut lines = text.lines();
    let slug = lines.next()?.trim_end().strip_prefix("[heartbeat] desire:")?.trim();
    if slug.is_empty() {
        return None;
    }
    let section = |heading: &str| {
        let inside = text.lines().skip_while(|line| !line.starts_with(heading)).skip(1);
        let inside: Vec<&str> = inside.take_while(|line| !is_heading(line)).map(bare).collect();
        inside.join("\n").trim().to_owned()
    };
    let plan = section("## heartbeat plan");
    let language = language_of(&[section("## what you wanted"), section("## why"), plan.clone()].concat());
    let mut entries: Vec<String> = Vec::new();
    // The last section: what looks like a heading in it is a part of an entry.
    for line in text.lines().skip_while(|line| !line.starts_with("## progress so far")).skip(1) {
        if is_stamp(line) {
            entries.push(String::new());
        } else if let Some(entry) = entries.last_mut() {
            entry.push_str(bare(line));
            entry.push('\n');
        }
    }
    Some(Heartbeat { slug: slug.to_owned(), language, plan, entries })
}

impl Heartbeat {
    /// What is written down for this run.
    pub(super) fn entry(&self) -> String {
        let quoted = |text: &str| {
            let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
            ipc::text::one_line(line, QUOTED_CHARS_MAX)
        };
        let count = self.entries.len();
        let last = self.entries.last().map(|entry| quoted(entry)).filter(|line| !line.is_empty());
        // In brackets stands a remark of the runtime: that there is no plan.
        let next = Some(quoted(&self.plan)).filter(|plan| !plan.is_empty() && !plan.starts_with('('));
        let mut lines = Vec::new();
        match self.language {
            Language::English => {
                lines.push(
                    "A heartbeat without a language model: nothing was done beyond keeping this thread."
                        .to_owned(),
                );
                lines.push(match (count, last) {
                    (0, _) => "This is the first entry.".to_owned(),
                    (_, None) => format!("Earlier entries: {count}."),
                    (_, Some(last)) => format!("Earlier entries: {count}. Last time: “{last}”"),
                });
                lines.extend(next.map(|next| format!("Next, as the plan says: “{next}”")));
            }
            Language::Chinese => {
                lines.push("这是一次没有语言模型的心跳：除了把这条线索接上，什么也没有做。".to_owned());
                lines.push(match (count, last) {
                    (0, _) => "这是第一条记录。".to_owned(),
                    (_, None) => format!("之前的记录：{count} 条。"),
                    (_, Some(last)) => format!("之前的记录：{count} 条。上次：“{last}”"),
                });
                lines.extend(next.map(|next| format!("接下来，按计划：“{next}”")));
            }
        }
        lines.join("\n")
    }
}

/// A line of the message as it was written, where it is quoted.
fn bare(line: &str) -> &str {
    match line.strip_prefix('>') {
        Some(rest) => rest.strip_prefix(' ').unwrap_or(rest),
        None => line,
    }
}

fn is_heading(line: &str) -> bool {
    ["## what you wanted", "## why", "## heartbeat plan", "## progress so far"]
        .iter()
        .any(|heading| line.starts_with(heading))
}

/// `### 2026-05-10T14:32:11Z`
fn is_stamp(line: &str) -> bool {
    let Some(stamp) = line.strip_prefix("### ") else { return false };
    let shape: String = stamp.chars().take(11).map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    shape == "0000-00-00T"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(wanted: &str, plan: &str, progress: &str) -> String {
        format!(
            "[heartbeat] desire:learn-rust\n\n## what you wanted\n\n{wanted}\n\n## why\n\nbecause\n\n## heartbeat plan\n\n{plan}\n\n{progress}"
        )
    }

    #[test]
    fn the_first_run_says_that_it_is_the_first() {
        let beat =
            read(&message("learn Rust", "read a chapter", "This is the first heartbeat on this desire."))
                .unwrap();
        assert_eq!((beat.slug.as_str(), beat.language), ("learn-rust", Language::English));
        assert_eq!(
            beat.entry(),
            "A heartbeat without a language model: nothing was done beyond keeping this thread.\n\
             This is the first entry.\nNext, as the plan says: “read a chapter”"
        );
    }

    #[test]
    fn a_later_run_counts_and_quotes() {
        let progress = "## progress so far (your own past entries, oldest first)\n\n### 2026-05-10T14:32:11Z\n\nRead chapter 1.\nMore.\n\n### 2026-05-11T14:30:05Z\n\n> Re-read chapter 4.\n> ### not a stamp\n## why\n\nDo one step of it now.\n";
        let entry = read(&message("学 Rust", "> 读第四章", progress)).unwrap().entry();
        assert!(entry.contains("2 条。上次：“Re-read chapter 4.”"), "{entry}");
        assert!(entry.ends_with("按计划：“读第四章”"), "{entry}");
    }

    #[test]
    fn a_desire_without_a_plan_names_none() {
        let entry = read(&message("learn", "(you have written no plan yet)", "")).unwrap().entry();
        assert!(entry.ends_with("This is the first entry."), "{entry}");
    }

    #[test]
    fn entries_do_not_grow_by_quoting_each_other() {
        let mut last = "Begun.".to_owned();
        for _ in 0..5 {
            let progress = format!("## progress so far (x)\n\n### 2026-05-10T14:32:11Z\n\n{last}\n");
            last = read(&message("learn", "", &progress)).unwrap().entry();
        }
        assert!(ipc::text::chars(&last) < 250, "{last}");
    }

    #[test]
    fn other_messages_open_no_run() {
        for text in [
            "",
            "hello",
            "[heartbeat] desire:",
            "[heartbeat] chore:x",
            " [heartbeat] desire:x",
            "[heartbeat]",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
