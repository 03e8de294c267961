//! A dream without a model: what qualifies is merged in the words it was noticed in, and nothing is made up about it.

use serde_json::{Value, json};

use super::phrases::{Language, language_of};

/// One dream, as its first message describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Dream {
    pub language: Language,
    /// Whether there is something to merge; notes are promoted by choice, and here nobody chooses.
    qualifies: bool,
}

/// Reads the message; nothing where it does not open a dream.
pub(super) fn read(text: &str) -> Option<Dream> {
    if text.lines().next()?.trim_end() != "[heartbeat] dream" {
        return None;
    }
    // the lines that would be merged begin so, and they are in her language
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("- ")).collect();
    let qualifies = text.lines().any(|line| line == "## what qualifies");
    Some(Dream { language: language_of(&lines.concat()), qualifies })
}

impl Dream {
    /// The input of `soul_dream`; nothing where there is nothing to merge.
    pub(super) fn input(&self) -> Option<Value> {
        let narrative = match self.language {
            Language::English => {
                "[offline] Merged without a language model, in the words in which it was noticed."
            }
            Language::Chinese => "[离线] 没有语言模型，按当时记下的原话合并。",
        };
        self.qualifies.then(|| json!({"apply": true, "narrative": narrative}))
    }

    /// The last words.
    pub(super) fn told(&self, receipt: &str, failed: bool) -> String {
        let receipt = ipc::text::one_line(receipt, 300);
        match (self.language, failed) {
            (Language::English, false) => format!("(offline) What qualified was merged. Receipt: {receipt}"),
            (Language::English, true) => format!("(offline) Nothing was merged: {receipt}"),
            (Language::Chinese, false) => format!("（离线）够格的都合并了。回执：{receipt}"),
            (Language::Chinese, true) => format!("（离线）什么也没有合并：{receipt}"),
        }
    }

    /// The last words where there was nothing to merge.
    pub(super) fn idle(&self) -> String {
        let why = match self.language {
            Language::English => "which notes to keep in mind is for a model to choose",
            Language::Chinese => "哪些笔记该常记在心，要由模型来选",
        };
        self.told(why, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_qualifies_is_merged_in_its_own_language_and_notes_are_left() {
        let message =
            |body: &str| format!("[heartbeat] dream\n\nThis is sleep.\n\n{body}\n## what there is to do\n");
        let dream =
            read(&message("## what qualifies\n\n1 line would be merged:\n- 声音:歌: 我紧张的时候会哼歌\n"))
                .unwrap();
        let input = dream.input().unwrap();
        assert!(
            input["apply"] == true && input["narrative"].as_str().unwrap().starts_with("[离线]"),
            "{input}"
        );
        assert!(dream.told("wrote `soul.md`, commit `ab`", false).contains("commit `ab`"));
        let notes =
            read(&message("## notes that you needed often enough\n\n- 2026-11-30#1 user: Ada plays\n"))
                .unwrap();
        assert_eq!(notes.input(), None);
        assert!(notes.idle().starts_with("(offline) Nothing was merged"), "{}", notes.idle());
        for other in ["", "[heartbeat] dreams", "[heartbeat] desire:dream", "dream"] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
