//! Events in words: one sentence each, and which of them are worth interrupting a conversation for.

use ipc::{
    contract::chat::{Event, kind},
    text::one_line,
};
use jiff::{Timestamp, tz::TimeZone};
use serde_json::Value;

/// The longest sentence about an event, in characters: what a child says as it dies can be long.
const SENTENCE_CHARS_MAX: usize = 300;

/// A wait shorter than this is "a moment".
const MOMENT_MS: u64 = 1000;

/// An objection came into the soul, or what became of one: the ledger alone is written then.
fn objection(event: &Event) -> String {
    let what = if paths(event).contains("journal/") {
        "she raised an objection"
    } else {
        "what became of an objection was noted"
    };
    format!("{what}; `lisa objections` shows it{}", aside(&[event.text("caller").to_owned()]))
}

/// What happened, as a sentence without capital and full stop.
pub(crate) fn sentence(event: &Event) -> String {
    let process = event.text("process");
    let sentence = match event.kind.as_str() {
        kind::SUPERVISOR_STARTED => format!("the supervisor started{}", aside(&[pid(event), build(event)])),
        kind::SUPERVISOR_STOPPING => format!("the supervisor is stopping{}", aside(&[by(event)])),
        kind::CHILD_STARTED => format!("{process} started{}", aside(&[pid(event)])),
        kind::CHILD_READY => format!("{process} is ready{}", aside(&[took(event)])),
        kind::CHILD_DIED => {
            let back = match event.number("restart_in_ms") {
                Some(ms) if ms < MOMENT_MS => "; back in a moment".to_owned(),
                Some(ms) => format!("; back in {} s", ms.div_ceil(1000)),
                None => String::new(),
            };
            format!("{process} died{}{back}", aside(&[event.text("how").to_owned()]))
        }
        kind::CHILD_RENEWING => format!("{process} is started again with new settings"),
        kind::CHILD_STOPPED => format!("{process} stopped{}", aside(&[event.text("how").to_owned()])),
        kind::CHILD_DRAINING => {
            format!("{process} is to be started again with new settings, after the turns under way")
        }
        kind::CHILD_HUNG => format!("{process} does not answer and is ended{}", aside(&[silent(event)])),
        kind::CHILD_PARKED => {
            format!("{process} is parked{}: {}", aside(&[retry(event)]), event.text("why"))
        }
        kind::SOUL_CHANGED if event.text("op") == "object" => objection(event),
        kind::SOUL_CHANGED => {
            format!("soul changed: {}{}", paths(event), aside(&[event.text("caller").to_owned()]))
        }
        kind::CLIENT_DROPPED => {
            format!("client {} was dropped because it did not read", plain(event, "client"))
        }
        kind::CONFIGURATION_READ => match names(event, "changed").as_str() {
            "" => "the configuration was read again; nothing in it had changed".to_owned(),
            changed => format!("the configuration was read again; new: {changed}"),
        },
        kind::CONFIGURATION_REFUSED => {
            format!("the new configuration is not used, the one before still holds: {}", event.text("why"))
        }
        kind::PROMPT_INTERRUPTED => format!("a prompt was interrupted: {}", event.text("why")),
        other => {
            let fields = event.fields.iter().map(|(name, _)| format!(" {name}={}", plain(event, name)));
            format!("{other}{}", fields.collect::<String>())
        }
    };
    one_line(&sentence, SENTENCE_CHARS_MAX)
}

/// What a person who is talking should know of an event; nothing where it does not concern them, or where the
/// conversation says it itself, as it does of a prompt that was interrupted.
pub(crate) fn in_conversation(event: &Event) -> Option<String> {
    match event.kind.as_str() {
        // whoever is attached saw it go, or attached to something that was not there
        kind::CHILD_READY => {
            let back = format!("{} is back{}", event.text("process"), aside(&[took(event)]));
            Some(one_line(&back, SENTENCE_CHARS_MAX))
        }
        kind::CHILD_DIED
        | kind::CHILD_PARKED
        | kind::CHILD_HUNG
        | kind::CHILD_DRAINING
        | kind::CHILD_RENEWING
        | kind::CONFIGURATION_READ
        | kind::CONFIGURATION_REFUSED
        | kind::SOUL_CHANGED
        | kind::SUPERVISOR_STOPPING => Some(sentence(event)),
        _ => None,
    }
}

/// An event as one line of `lisa events`: where it stands, when it was, what it was.
pub(crate) fn line(event: &Event, zone: &TimeZone) -> String {
    let cursor = format!("{}:{}", event.epoch, event.seq);
    format!("{cursor:<8} {}  {}", local(event.time, zone), sentence(event))
}

/// An instant as a person reads it, to the second.
pub(crate) fn local(time: Timestamp, zone: &TimeZone) -> String {
    time.to_zoned_datetime(zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// What stands in brackets behind a sentence; nothing where there is nothing to say.
fn aside(parts: &[String]) -> String {
    let said: Vec<_> = parts.iter().filter(|part| !part.is_empty()).map(String::as_str).collect();
    if said.is_empty() { String::new() } else { format!(" ({})", said.join(", ")) }
}

fn pid(event: &Event) -> String {
    event.number("pid").map(|pid| format!("pid {pid}")).unwrap_or_default()
}

fn build(event: &Event) -> String {
    let build = event.text("build");
    if build.is_empty() { String::new() } else { format!("build {build}") }
}

fn by(event: &Event) -> String {
    let by = plain(event, "by");
    if by.is_empty() { by } else { format!("asked by {by}") }
}

fn took(event: &Event) -> String {
    event.number("took_ms").map(|ms| format!("{ms} ms")).unwrap_or_default()
}

fn silent(event: &Event) -> String {
    event.number("silent_ms").map(|ms| format!("silent for {} s", ms / 1000)).unwrap_or_default()
}

/// When one that was given up is tried again.
fn retry(event: &Event) -> String {
    let Some(ms) = event.number("retry_in_ms").and_then(|ms| i64::try_from(ms).ok()) else {
        return String::new();
    };
    format!("tried again in {:#}", jiff::SignedDuration::from_millis(ms))
}

fn paths(event: &Event) -> String {
    names(event, "paths")
}

fn names(event: &Event, field: &str) -> String {
    let names = event.fields.get(field).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
}

fn plain(event: &Event, field: &str) -> String {
    match event.fields.get(field) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn event(fields: &Value) -> Event {
        let mut event = json!({"epoch": 3, "seq": 17, "time": "2026-11-30T12:00:00Z"});
        event.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        serde_json::from_value(event).unwrap()
    }

    #[test]
    fn each_event_is_a_sentence() {
        let check = |fields: Value, expected: &str| assert_eq!(sentence(&event(&fields)), expected);
        check(
            json!({"type": "supervisor_started", "pid": 7, "build": "0.1.0", "home": "/h"}),
            "the supervisor started (pid 7, build 0.1.0)",
        );
        check(
            json!({"type": "supervisor_stopping", "by": "lisa down"}),
            "the supervisor is stopping (asked by lisa down)",
        );
        check(
            json!({"type": "child_started", "process": "soul", "pid": 8, "life": 2}),
            "soul started (pid 8)",
        );
        check(json!({"type": "child_ready", "process": "soul", "took_ms": 12}), "soul is ready (12 ms)");
        check(
            json!({"type": "child_died", "process": "agent", "how": "signal 9", "restart_in_ms": 0}),
            "agent died (signal 9); back in a moment",
        );
        check(
            json!({"type": "child_died", "process": "agent", "how": "exit code 70", "restart_in_ms": 1500}),
            "agent died (exit code 70); back in 2 s",
        );
        check(json!({"type": "child_died", "process": "agent", "how": "signal 9"}), "agent died (signal 9)");
        check(
            json!({"type": "child_hung", "process": "soul", "silent_ms": 31_500}),
            "soul does not answer and is ended (silent for 31 s)",
        );
        check(
            json!({"type": "child_parked", "process": "agent", "why": "6 deaths in 60 s", "retry_in_ms": 300_000}),
            "agent is parked (tried again in 5m): 6 deaths in 60 s",
        );
        check(
            json!({"type": "soul_changed", "paths": ["identity.md", "values/灯.md"], "caller": "soul_patch"}),
            "soul changed: identity.md, values/灯.md (soul_patch)",
        );
        check(
            json!({"type": "soul_changed", "op": "object", "paths": ["journal/2026-11-30.md", "objections.jsonl"],
                "caller": "soul_object"}),
            "she raised an objection; `lisa objections` shows it (soul_object)",
        );
        check(
            json!({"type": "soul_changed", "op": "object", "paths": ["objections.jsonl"], "caller": "agent"}),
            "what became of an objection was noted; `lisa objections` shows it (agent)",
        );
        check(json!({"type": "client_dropped", "client": 4}), "client 4 was dropped because it did not read");
        check(json!({"type": "child_died"}), " died".trim());
        check(json!({"type": "redeployed", "from": "1", "to": 2}), "redeployed from=1 to=2");
        check(
            json!({"type": "child_parked", "process": "soul", "why": "a\nb\u{1b}[2J"}),
            "soul is parked: a b [2J",
        );
    }

    #[test]
    fn a_conversation_is_interrupted_only_for_what_concerns_it() {
        let check = |fields: Value, expected: Option<&str>| {
            assert_eq!(in_conversation(&event(&fields)).as_deref(), expected);
        };
        check(
            json!({"type": "child_ready", "process": "agent", "took_ms": 12}),
            Some("agent is back (12 ms)"),
        );
        check(json!({"type": "child_started", "process": "agent"}), None);
        check(json!({"type": "client_dropped", "client": 4}), None);
        check(json!({"type": "prompt_interrupted", "session": "s1", "why": "x"}), None);
    }

    #[test]
    fn a_line_says_where_when_and_what() {
        let zone = TimeZone::get("Asia/Shanghai").unwrap();
        assert_eq!(
            line(&event(&json!({"type": "child_ready", "process": "soul", "took_ms": 3})), &zone),
            "3:17     2026-11-30 20:00:00  soul is ready (3 ms)"
        );
    }
}
