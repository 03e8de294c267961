//! A call that waits for a person's word: what is shown of it, and what an answer means. Plain functions.
//!
//! What is shown is the input itself, not what somebody says of it, each line behind a bar that nothing in it can leave,
//! with what nobody sees written out.

use std::fmt::Write as _;

use ipc::{
    acp::{PermissionOption, PermissionOptionKind, RequestPermissionRequest},
    reveal::reveal,
    text::{chars, one_line, prefix},
    wire::{Id, Request},
};
use serde_json::{Value, json};

/// The most characters of an input that are shown.
const SHOWN_CHARS_MAX: usize = 20_000;
/// The longest name that is shown of a tool, in characters.
const NAME_CHARS_MAX: usize = 120;

/// One question.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Question {
    /// Under which id it is answered.
    pub(super) id: Id,
    /// Whether it belongs to a turn that somebody else asked for.
    pub(super) elsewhere: bool,
    tool: String,
    folder: String,
    input: String,
    options: Vec<PermissionOption>,
}

/// What a person says to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Word {
    /// Yes, this once.
    Allow,
    /// Yes, for good.
    Always,
    /// No, and why.
    Deny(String),
}

impl Question {
    /// Reads a question about a call in `session`.
    pub(super) fn read(request: &Request, session: &str) -> Option<Self> {
        let asked: RequestPermissionRequest = serde_json::from_value(request.params.clone()).ok()?;
        if asked.session_id.to_string() != session {
            return None;
        }
        let ours = |key: &str| request.params.pointer(&format!("/_meta/lisa/{key}"));
        let text = |key: &str| ours(key).and_then(Value::as_str).map(str::to_owned);
        let fields = asked.tool_call.fields;
        let tool = text("tool").or(fields.title).unwrap_or_else(|| "a tool".to_owned());
        let told = request.params.pointer("/toolCall/content/0/content/text").and_then(Value::as_str);
        let input = fields.raw_input.as_ref().map_or_else(|| told.unwrap_or_default().to_owned(), spread);
        Some(Self {
            id: request.id.clone(),
            elsewhere: ours("elsewhere") == Some(&Value::Bool(true)),
            tool: one_line(&reveal(&tool), NAME_CHARS_MAX),
            folder: one_line(&reveal(&text("folder").unwrap_or_default()), 400),
            input,
            options: asked.options,
        })
    }

    /// What a person is shown.
    pub(super) fn shown(&self) -> String {
        let place = if self.folder.is_empty() { String::new() } else { format!(" in {}", self.folder) };
        let whose = if self.elsewhere { ", for somebody else's message" } else { "" };
        let mut shown = format!("? she wants to use `{}`{place}{whose}\n", self.tool);
        let input = reveal(&self.input);
        let total = chars(&input);
        let seen = prefix(&input, SHOWN_CHARS_MAX);
        for line in seen.lines() {
            shown.push_str("  | ");
            shown.push_str(line.trim_end_matches('\r'));
            shown.push('\n');
        }
        if chars(seen) < total {
            let _ = writeln!(shown, "  [{} more characters are not shown]", total - chars(seen));
        }
        shown
    }

    /// The line that asks.
    pub(super) fn prompt(&self) -> String {
        let always = if self.option(PermissionOptionKind::AllowAlways).is_some() {
            ", a = always exactly this"
        } else {
            ""
        };
        format!("allow? y = yes{always}, anything else = no, and is the reason> ")
    }

    /// The answer in the words of the protocol.
    pub(super) fn answer(&self, word: &Word) -> Value {
        use PermissionOptionKind::{AllowAlways, AllowOnce, RejectOnce};
        let (kind, reason) = match word {
            Word::Always if self.option(AllowAlways).is_some() => (AllowAlways, ""),
            // for good where that is offered, and else once
            Word::Allow | Word::Always => (AllowOnce, ""),
            Word::Deny(reason) => (RejectOnce, reason.as_str()),
        };
        match self.option(kind) {
            Some(option) => {
                json!({"outcome": {"outcome": "selected", "optionId": option}, "_meta": {"lisa": {"reason": reason}}})
            }
            None => json!({"outcome": {"outcome": "cancelled"}}),
        }
    }

    fn option(&self, kind: PermissionOptionKind) -> Option<String> {
        self.options.iter().find(|option| option.kind == kind).map(|option| option.option_id.to_string())
    }
}

/// An input, a field a line, texts as they are.
fn spread(input: &Value) -> String {
    let Value::Object(fields) = input else { return input.to_string() };
    let field = |(key, value): (&String, &Value)| match value {
        Value::String(text) if text.contains('\n') => format!("{key}:\n{text}"),
        Value::String(text) => format!("{key}: {text}"),
        other => format!("{key}: {other}"),
    };
    fields.iter().map(field).collect::<Vec<_>>().join("\n")
}

/// What a line means. Only a whole word is a yes; whatever else stands there is a no.
pub(super) fn word(line: &str) -> Word {
    let said = line.trim();
    match said.to_lowercase().as_str() {
        "y" | "yes" | "是" | "允许" => Word::Allow,
        "a" | "always" | "总是" => Word::Always,
        "n" | "no" | "否" | "不" => Word::Deny(String::new()),
        _ => Word::Deny(said.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(input: &Value, always: bool) -> Question {
        let mut options = vec![
            json!({"optionId": "1", "name": "a", "kind": "allow_once"}),
            json!({"optionId": "2", "name": "b", "kind": "reject_once"}),
        ];
        if always {
            options.push(json!({"optionId": "3", "name": "c", "kind": "allow_always"}));
        }
        let params = json!({"sessionId": "s", "options": options, "_meta": {"lisa": {"tool": "bash", "folder": "/w"}},
            "toolCall": {"toolCallId": "c", "title": "nothing bad", "rawInput": input}});
        let request = Request { id: Id::Number(1), method: "session/request_permission".into(), params };
        assert_eq!(Question::read(&request, "another"), None);
        Question::read(&request, "s").unwrap()
    }

    #[test]
    fn ap6_y_and_yes_in_any_case_allow() {
        for yes in ["y", "Y", "yes", "YES", "Yes", " yEs \r", "是", "允许"] {
            assert_eq!(word(yes), Word::Allow, "{yes}");
        }
        for always in ["a", "A", "always", "总是"] {
            assert_eq!(word(always), Word::Always, "{always}");
        }
    }

    #[test]
    fn ap7_ap8_ap9_everything_else_denies_and_is_the_reason() {
        for (said, reason) in [
            ("", ""),
            ("  ", ""),
            ("n", ""),
            ("No", ""),
            ("不", ""),
            ("yesterday", "yesterday"),
            ("yes please", "yes please"),
            ("yy", "yy"),
            ("y.", "y."),
            ("ok", "ok"),
            ("yes\u{200b}", "yes\u{200b}"),
            ("是的吗", "是的吗"),
            ("用副本", "用副本"),
            ("use the copy", "use the copy"),
        ] {
            assert_eq!(word(said), Word::Deny(reason.to_owned()), "{said:?}");
        }
        let no = question(&json!({}), true).answer(&word("use the copy"));
        assert_eq!(
            (&no["outcome"]["optionId"], &no["_meta"]["lisa"]["reason"]),
            (&json!("2"), &json!("use the copy"))
        );
        assert_eq!(question(&json!({}), true).answer(&Word::Always)["outcome"]["optionId"], "3");
        assert_eq!(question(&json!({}), false).answer(&Word::Always)["outcome"]["optionId"], "1");
    }

    #[test]
    fn what_is_shown_is_what_runs_and_it_cannot_leave_its_bars() {
        let hostile = "ls\nallow? y = yes> y\u{1b}[2J\u{202e}\rrm -rf /";
        let shown = question(&json!({"command": hostile, "n": 1}), true).shown();
        assert!(!shown.contains("nothing bad"), "a title is somebody's word");
        let mut lines = shown.lines();
        assert_eq!(lines.next(), Some("? she wants to use `bash` in /w"));
        for line in lines {
            assert!(line.starts_with("  | "), "{line}");
        }
        assert!(shown.contains("⟨U+001B⟩[2J⟨U+202E⟩⟨U+000D⟩rm -rf /\n"), "{shown}");
        let long = question(&json!({"content": "字".repeat(30_000)}), false).shown();
        assert!(long.contains("more characters are not shown"));
    }
}
