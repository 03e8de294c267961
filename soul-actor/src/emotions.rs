//! Emotions: what she feels, how it fades, and why it changed, in the original's `emotions.json`.
//!
//! ```text
//!  {"values": {"curiosity": 0.6, …}, "decay": {"curiosity": 0.05, …},
//!   "events": [{"ts", "emotion", "delta", "trigger"}, …], "updatedAt": "2026-11-30T12:00:00.000Z"}
//! ```
//!
//! A value fades by v·e^(−rate·days) since `updatedAt`; a change fades all of them to now before it adds. Every change has
//! a trigger in the first person. A change touches the values, the events and the stamp; whatever else is in the file
//! stays byte for byte. A file that cannot be read is not written over: it may hold a trail.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ipc::{contract::soul::Feeling, text::is_blank};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::{
    document::Record,
    dynamics::{days_between, instant},
    held::iso,
    members,
};

/// How fast what names no rate fades, a day.
const RATE_DEFAULT: f64 = 0.1;
/// The fastest rate that may be given, a day: nothing is left of it by the next morning.
pub(crate) const RATE_MAX: f64 = 10.0;
/// How many events are kept; the oldest leave, and history has them.
const EVENTS_MAX: usize = 50;
/// How many emotions there are at most: more is a list of words, not how somebody feels.
const EMOTIONS_MAX: usize = 32;
/// The longest name of one, in characters.
pub(crate) const NAME_CHARS_MAX: usize = 40;
/// The longest trigger, in characters.
pub(crate) const TRIGGER_CHARS_MAX: usize = 300;
/// What is weaker than this is not shown in a prompt.
const SHOWN_MIN: f64 = 0.05;
/// What is weaker than this is nothing, and is not written with hundreds of digits.
const NOTHING: f64 = 1e-12;
/// How many events are read aloud.
const EVENTS_READ: usize = 12;

/// The values and the decay a day that emotions begin with, as in the original.
const DEFAULTS: [(&str, f64, f64); 7] = [
    ("curiosity", 0.6, 0.05),
    ("contentment", 0.5, 0.1),
    ("weariness", 0.0, 0.5),
    ("affection", 0.3, 0.02),
    ("pride", 0.0, 0.3),
    ("frustration", 0.0, 0.4),
    ("awe", 0.2, 0.2),
];

/// Words that say that somebody speaks of themselves.
const FIRST_PERSON: [&str; 12] =
    ["i", "me", "my", "mine", "myself", "we", "us", "our", "ours", "ourselves", "im", "ive"];
/// The same in scripts that put no blanks between words.
const FIRST_PERSON_WITHIN: [&str; 8] = ["我", "咱", "俺", "吾", "本人", "私", "僕", "わたし"];

/// A change of what she feels.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Feel {
    /// What: as [`name`] gives it.
    pub(crate) emotion: String,
    /// How much more, -1 to 1.
    pub(crate) delta: f64,
    /// Why, as [`trigger`] gives it.
    pub(crate) trigger: String,
    /// How fast it fades from now on, a day.
    pub(crate) decay: Option<f64>,
}

/// What a change comes to.
pub(crate) struct Felt {
    /// The file as it will be.
    pub(crate) bytes: Vec<u8>,
    /// How it is called in it.
    pub(crate) emotion: String,
    /// The value before, faded to now.
    pub(crate) before: f64,
    /// The value after.
    pub(crate) after: f64,
}

/// One change that was made.
#[derive(Debug, Clone, PartialEq)]
struct Event {
    at: String,
    emotion: String,
    delta: f64,
    trigger: String,
}

/// What a file says.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Emotions {
    /// In the order of the file.
    values: Vec<(String, f64)>,
    rates: BTreeMap<String, f64>,
    /// The oldest first.
    events: Vec<Event>,
    updated: Option<Timestamp>,
}

/// The name of an emotion as it is kept, or why it is none.
pub(crate) fn name(given: &str) -> Result<String, String> {
    let name = given.trim().to_lowercase();
    let shown = ipc::text::one_line(given, NAME_CHARS_MAX);
    let refuse = |why: &str| Err(format!("`{shown}` is no name of an emotion: {why}"));
    let hidden = |c: char| c != ' ' && is_blank(c.encode_utf8(&mut [0; 4]));
    match name.as_str() {
        "" => refuse("it is empty; give one word, such as `curiosity`"),
        _ if ipc::text::chars(&name) > NAME_CHARS_MAX => {
            refuse("it is longer than 40 characters; give one word, such as `curiosity`")
        }
        _ if is_blank(&name) || name.contains(hidden) => {
            refuse("it has a line break, a control character or one that cannot be seen; leave that out")
        }
        _ => Ok(name),
    }
}

/// A trigger in which nobody speaks is refused: a feeling has a cause in her own words. Of scripts whose words are not
/// known here nothing is asked but words.
pub(crate) fn trigger(given: String) -> Result<String, String> {
    let lower = given.to_lowercase().replace('\u{2019}', "'");
    let words = lower.split(|c: char| !c.is_alphanumeric() && c != '\'');
    // `I'm`, `I've`, `me'll`
    let says = |word: &str| FIRST_PERSON.contains(&word.split('\'').next().unwrap_or_default());
    let speaks = words.into_iter().any(says) || FIRST_PERSON_WITHIN.iter().any(|word| lower.contains(word));
    let is_known =
        |c: char| c.is_ascii_alphabetic() || matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}');
    let is_foreign = !lower.contains(is_known) && lower.contains(char::is_alphabetic);
    if speaks || is_foreign {
        return Ok(given);
    }
    Err("`trigger` must say in the first person what moved you, as in `I read her letter twice and understood it` or `我读懂了她的信`".to_owned())
}

/// The file that emotions begin with.
pub(crate) fn defaults(now: Timestamp) -> Vec<u8> {
    let of = |what: fn(&(&str, f64, f64)) -> f64| -> Map<String, Value> {
        DEFAULTS.iter().map(|known| (known.0.to_owned(), whole(what(known)))).collect()
    };
    let (values, decay) = (of(|known| known.1), of(|known| known.2));
    let emotions = json!({"values": values, "decay": decay, "events": [], "updatedAt": iso(now)});
    format!("{emotions:#}").into_bytes()
}

/// The file after a change, or why it is refused. Where there is none, the change is the first of a new one.
pub(crate) fn feel(old: Option<&[u8]>, change: &Feel, now: Timestamp) -> Result<Felt, String> {
    let old = old.map_or_else(|| defaults(now), <[u8]>::to_vec);
    let there = Emotions::read(&old)?;
    let faded = there.faded(now);
    let known = faded.iter().find(|(name, _)| name.to_lowercase() == change.emotion);
    if known.is_none() && faded.len() >= EMOTIONS_MAX {
        let names: Vec<_> = faded.iter().map(|(name, _)| format!("`{name}`")).collect();
        return Err(format!(
            "there are {} emotions already, which is as many as there may be; use one of {}",
            faded.len(),
            names.join(", ")
        ));
    }
    let (emotion, before) = known.cloned().unwrap_or_else(|| (change.emotion.clone(), 0.0));
    let after = (before + change.delta).clamp(-1.0, 1.0);

    let object = |bytes: &[u8], name: &str| members::get(bytes, name).unwrap_or(b"{}").to_vec();
    let mut values = object(&old, "values");
    // what has not faded stays as somebody wrote it
    let moved = faded.iter().filter(|value| !there.values.contains(value));
    for (name, value) in moved.chain([&(emotion.clone(), after)]) {
        values = set(&values, name, &number(*value));
    }
    let mut bytes = set_in(&old, "values", &values);
    if let Some(rate) = change.decay {
        let decay = set(&object(&bytes, "decay"), &emotion, &number(rate));
        bytes = set_in(&bytes, "decay", &decay);
    }
    let event =
        json!({"ts": iso(now), "emotion": emotion, "delta": whole(change.delta), "trigger": change.trigger});
    let events = members::get(&bytes, "events").filter(|events| *events != b"null").unwrap_or(b"[]");
    let layout = members::layout(&bytes);
    let indent = layout.rsplit_once('\n').map(|(_, indent)| indent);
    let (lead, end) =
        indent.map(|indent| (format!("\n{indent}{indent}"), format!("\n{indent}"))).unwrap_or_default();
    let events = members::push(events, &event, EVENTS_MAX, (&lead, &end)).expect("the events are an array");
    bytes = set_in(&bytes, "events", &events);
    bytes = set(&bytes, "updatedAt", &Value::from(iso(now)).to_string());
    Ok(Felt { bytes, emotion, before, after })
}

impl Emotions {
    /// Reads a file, or says why it cannot be read; nothing may be written over one that cannot.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, String> {
        let broken = |why: &str| {
            let path = Record::Emotions.path();
            format!(
                "`{path}` cannot be read ({why}), and nothing is written over it, so that no trail is lost; `soul_rollback` or a person can bring back how it was"
            )
        };
        let file: Value = serde_json::from_slice(bytes).map_err(|error| broken(&error.to_string()))?;
        let file = file.as_object().ok_or_else(|| broken("it is no object"))?;
        let numbers = |member: &str| match file.get(member) {
            None => Ok(Vec::new()),
            Some(Value::Object(all)) => all
                .iter()
                .map(|(name, value)| Some((name.clone(), value.as_f64()?)))
                .collect::<Option<Vec<_>>>()
                .ok_or_else(|| broken(&format!("`{member}` holds something that is no number"))),
            Some(_) => Err(broken(&format!("`{member}` is no object"))),
        };
        let values = numbers("values")?.into_iter().map(|(name, value)| (name, value.clamp(-1.0, 1.0)));
        let values = values.collect();
        let rates = numbers("decay")?.into_iter().collect();
        let events = match file.get("events") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(events)) => events.iter().map(Event::read).collect(),
            Some(_) => return Err(broken("`events` is no list")),
        };
        let updated = file.get("updatedAt").and_then(Value::as_str).and_then(instant);
        Ok(Self { values, rates, events, updated })
    }

    /// The values as they are at `now`. A stamp of the future, or none, means that no time has passed.
    pub(crate) fn faded(&self, now: Timestamp) -> Vec<(String, f64)> {
        let days = days_between(self.updated.unwrap_or(now), now);
        let fade = |(name, value): &(String, f64)| {
            // what grows by itself is no decay
            let rate = self.rates.get(name).copied().unwrap_or(RATE_DEFAULT).max(0.0);
            let faded = value * (-rate * days).exp();
            (name.clone(), if faded.abs() < NOTHING { 0.0 } else { faded })
        };
        self.values.iter().map(fade).collect()
    }

    /// What a prompt shows: the values as of the last change, so that it moves with changes alone, the strongest first.
    pub(crate) fn shown(&self) -> Vec<Feeling> {
        let told = |(name, value): &(String, f64)| Feeling { name: name.clone(), value: *value };
        let mut shown: Vec<_> =
            self.values.iter().filter(|(_, value)| value.abs() >= SHOWN_MIN).map(told).collect();
        shown.sort_by(|a, b| b.value.abs().total_cmp(&a.value.abs()).then_with(|| a.name.cmp(&b.name)));
        shown
    }

    /// What she reads: the values now, and why they changed.
    pub(crate) fn told(&self, now: Timestamp) -> String {
        let mut text = "## what you feel now, from -1 to 1, faded since the last change\n".to_owned();
        if self.values.is_empty() {
            text.push_str("(nothing yet)\n");
        }
        for (name, value) in self.faded(now) {
            let _ = writeln!(text, "{} {value:+.2} {name}", bar(value));
        }
        text.push_str("\n## why, the last change first\n");
        if self.events.is_empty() {
            text.push_str("(no change yet)\n");
        }
        for event in self.events.iter().rev().take(EVENTS_READ) {
            let trigger = ipc::text::one_line(&event.trigger, TRIGGER_CHARS_MAX);
            let _ = writeln!(text, "- {} {} {:+}: {trigger}", event.at, event.emotion, event.delta);
        }
        text.trim_end().to_owned()
    }
}

impl Event {
    /// What an event says; what it does not say is left open, because it is shown and not counted with.
    fn read(event: &Value) -> Self {
        let text = |key: &str| event[key].as_str().unwrap_or("?").to_owned();
        Self {
            at: text("ts"),
            emotion: text("emotion"),
            delta: event["delta"].as_f64().unwrap_or_default(),
            trigger: text("trigger"),
        }
    }
}

fn bar(value: f64) -> String {
    let full = (0..10_u8).filter(|cell| value.abs() * 10.0 >= f64::from(*cell) + 0.5).count();
    "█".repeat(full) + &"·".repeat(10 - full)
}

/// Sets a member of what was read as an object.
fn set(object: &[u8], name: &str, value: &str) -> Vec<u8> {
    members::set(object, name, value).expect("it was read as an object")
}

/// [`set`], where the value is a part of a file already.
fn set_in(object: &[u8], name: &str, value: &[u8]) -> Vec<u8> {
    set(object, name, std::str::from_utf8(value).expect("JSON that was read is UTF-8"))
}

/// A number as JavaScript writes it: without a fraction where it has none.
fn whole(value: f64) -> Value {
    serde_json::from_str(&number(value)).expect("a number is JSON")
}

fn number(value: f64) -> String {
    // there is no negative nothing
    if value == 0.0 { "0".to_owned() } else { value.to_string() }
}

#[cfg(test)]
mod tests;
