//! The question about one call, in the words of the protocol: what a person sees is what runs, and all of it.

use ipc::{
    acp::{
        PermissionOption, PermissionOptionKind, RequestPermissionRequest, ToolCallStatus, ToolCallUpdate,
        ToolCallUpdateFields, ToolKind,
    },
    contract::approval::{Ask, Exactly},
    digest::sha256_hex,
    id::RequestId,
    reveal::reveal,
    text::{chars, prefix},
};
use serde_json::{Map, Value, json};

/// The most characters of an input that a person is shown, about ten screens. Of a longer one both ends are shown, it is
/// said how much is left out, and it can be allowed this once alone.
const SHOWN_CHARS_MAX: usize = 20_000;
/// The longest input that is sent to clients a second time, in bytes: well inside one frame.
const INPUT_BYTES_MAX: usize = 512 * 1024;

/// Which call is asked about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) id: &'a str,
    pub(crate) tool: &'a str,
    pub(crate) title: &'a str,
    pub(crate) input: &'a Map<String, Value>,
    pub(crate) writes: bool,
}

/// The question about a call in `session`, whose folder is `folder`.
pub(crate) fn ask_for(
    id: RequestId,
    turn: &RequestId,
    (session, folder): (&str, &str),
    waits: bool,
    call: Asked<'_>,
) -> Ask {
    let input = Value::Object(call.input.clone());
    let whole = canonical(&input);
    let (shown, is_all) = shown(call.input);
    let exactly = Exactly {
        tool: call.tool.to_owned(),
        folder: folder.to_owned(),
        input: sha256_hex(whole.as_bytes()),
    };
    let kind = if call.writes { ToolKind::Edit } else { ToolKind::Read };
    let mut fields = ToolCallUpdateFields::new()
        .title(call.title.to_owned())
        .kind(kind)
        .status(ToolCallStatus::Pending)
        .content(vec![shown.into()]);
    let is_sent = whole.len() <= INPUT_BYTES_MAX;
    if is_sent {
        fields = fields.raw_input(input);
    }
    let meta = [("lisa".to_owned(), json!({"tool": call.tool, "folder": folder}))].into_iter().collect();
    let call = ToolCallUpdate::new(call.id.to_owned(), fields);
    let request = RequestPermissionRequest::new(session.to_owned(), call, options(is_all && is_sent))
        .meta(Some::<ipc::acp::Meta>(meta));
    let params = serde_json::to_value(request).expect("a question of the protocol is JSON");
    Ask { id, session: session.to_owned(), turn: turn.clone(), waits, call: exactly, params }
}

/// What may be answered. For good only what was seen as a whole.
fn options(for_good: bool) -> Vec<PermissionOption> {
    let option = |id: &'static str, name: &str, kind| PermissionOption::new(id, name.to_owned(), kind);
    let mut options = vec![
        option("allow_once", "Allow, this once", PermissionOptionKind::AllowOnce),
        option("reject_once", "No, not this time", PermissionOptionKind::RejectOnce),
    ];
    if for_good {
        options.insert(
            1,
            option(
                "allow_always",
                "Allow exactly this call in this folder, for good",
                PermissionOptionKind::AllowAlways,
            ),
        );
        options.push(option(
            "reject_always",
            "No to exactly this call in this folder, for good",
            PermissionOptionKind::RejectAlways,
        ));
    }
    options
}

/// An input for the eyes of a person, what nobody sees written out, and whether that is all of it.
fn shown(input: &Map<String, Value>) -> (String, bool) {
    let line = |(key, value): (&String, &Value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let between = if value.contains('\n') { "\n" } else { " " };
        format!("{}:{between}{}", reveal(key), reveal(&value))
    };
    let whole = input.iter().map(line).collect::<Vec<_>>().join("\n");
    let total = chars(&whole);
    if total <= SHOWN_CHARS_MAX {
        return (whole, true);
    }
    let begin = prefix(&whole, SHOWN_CHARS_MAX * 2 / 3);
    let tail = SHOWN_CHARS_MAX / 3;
    let rest: String = whole.chars().skip(total - tail).collect();
    let left_out = total - chars(begin) - tail;
    (
        format!(
            "{begin}\n[… {left_out} characters are not shown here, and would run all the same …]\n{rest}"
        ),
        false,
    )
}

/// One text for each input, however its keys are ordered.
fn canonical(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_by_key(|(key, _)| *key);
            let field = |(key, value): (&String, &Value)| format!("{}:{}", json!(key), canonical(value));
            format!("{{{}}}", sorted.into_iter().map(field).collect::<Vec<_>>().join(","))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(",")),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(folder: &str, tool: &str, input: &Value) -> Ask {
        let id = RequestId::fresh();
        let input = input.as_object().unwrap();
        let call = Asked { id: "c1", tool, title: "bash rm", input, writes: true };
        ask_for(id.clone(), &id, ("s1", folder), true, call)
    }

    #[test]
    fn what_is_remembered_is_exactly_this_call() {
        let one = ask("/w", "bash", &json!({"command": "ls", "env": {"a": 1, "b": [2]}})).call;
        let same = ask("/w", "bash", &json!({"env": {"b": [2], "a": 1}, "command": "ls"})).call;
        assert_eq!(one, same, "the order of keys means nothing");
        for other in [
            ask("/v", "bash", &json!({"command": "ls", "env": {"a": 1, "b": [2]}})),
            ask("/w", "sh", &json!({"command": "ls", "env": {"a": 1, "b": [2]}})),
            ask("/w", "bash", &json!({"command": "ls ", "env": {"a": 1, "b": [2]}})),
            ask("/w", "bash", &json!({"command": "ls", "env": {"a": "1", "b": [2]}})),
            ask("/w", "bash", &json!({"command": "ls"})),
        ] {
            assert_ne!(one, other.call);
        }
    }

    #[test]
    fn t32_what_is_shown_is_what_runs_and_what_nobody_sees_is_visible() {
        let hostile = json!({"command": "echo hi\u{200b}\u{1b}[8m; rm -rf /\u{202e}", "dry\u{feff}": true});
        let asked = ask("/w", "bash", &hostile);
        let shown = asked.params["toolCall"]["content"][0]["content"]["text"].as_str().unwrap().to_owned();
        assert_eq!(shown, "command: echo hi⟨U+200B⟩⟨U+001B⟩[8m; rm -rf /⟨U+202E⟩\ndry⟨U+FEFF⟩: true");
        assert_eq!(asked.params["toolCall"]["rawInput"], hostile, "a client may look for itself");
        assert_eq!(asked.params["toolCall"]["status"], "pending");
        let ids: Vec<_> =
            asked.params["options"].as_array().unwrap().iter().map(|o| o["optionId"].clone()).collect();
        assert_eq!(ids, ["allow_once", "allow_always", "reject_once", "reject_always"]);
    }

    #[test]
    fn what_is_not_seen_as_a_whole_is_never_allowed_for_good() {
        let asked = ask("/w", "write", &json!({"content": format!("头{}尾", "字".repeat(30_000))}));
        let shown = asked.params["toolCall"]["content"][0]["content"]["text"].as_str().unwrap().to_owned();
        assert!(shown.starts_with("content: 头字") && shown.ends_with("字尾"), "both ends are there");
        assert!(shown.contains("characters are not shown here") && chars(&shown) < SHOWN_CHARS_MAX + 100);
        assert_eq!(asked.params["options"].as_array().unwrap().len(), 2);
        let huge = ask("/w", "write", &json!({"content": "字".repeat(300_000)}));
        assert!(huge.params["toolCall"].get("rawInput").is_none(), "the frame stays small");
    }
}
