//! What may be asked about the conversations on disk: `_lisa/sessions` on the chat socket, answered by the agent.
//!
//! | question | answer |
//! |---|---|
//! | [`Request::List`] | [`Reply::Listed`] |
//! | [`Request::Search`] | [`Reply::Found`] |
//! | [`Request::Show`] | [`Reply::Page`] |
//! | [`Request::Replay`] | [`Reply::Replayed`] |
//!
//! Nothing here changes anything, and every answer is bounded so that it fits into one frame.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How much of the newest one question may ask for.
pub const LIMIT_MAX: u32 = 200;

/// A question about conversations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "method", content = "params", rename_all = "snake_case")]
pub enum Request {
    /// The conversations last written to, the newest first.
    List {
        /// At most so many; never more than [`LIMIT_MAX`].
        limit: u32,
    },
    /// What was said about something, the best match first.
    Search {
        /// A few words, in any language.
        query: String,
        /// At most so many places; never more than [`LIMIT_MAX`].
        limit: u32,
    },
    /// A page of what was said in one.
    Show {
        /// Its id.
        session: String,
        /// The newest message that is not wanted, by its number; the page ends with the newest of all without one.
        before: Option<u64>,
        /// At most so many messages; never more than [`LIMIT_MAX`].
        limit: u32,
    },
    /// What the model was sent for one answer.
    Replay {
        /// The session's id.
        session: String,
        /// Which of the model's answers, counted from 1; the newest without.
        answer: Option<u64>,
    },
}

/// The answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// The newest first.
    Listed(Vec<Session>),
    /// The best first.
    Found(Found),
    /// Oldest first within the page.
    Page(Page),
    /// What a model was sent.
    Replayed(Box<Replay>),
}

/// What answers of models cost, in tokens. Each token is counted in one place alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// How many answers these are.
    pub answers: u64,
    /// Read, and neither taken from nor written to a cache.
    pub input: u64,
    /// Written.
    pub output: u64,
    /// Taken from a cache.
    pub cache_read: u64,
    /// Read and put into a cache.
    pub cache_write: u64,
    /// In millionths of the money the prices under `[model.price]` are in; nothing where no price is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
}

impl Usage {
    /// All tokens of every class.
    pub fn tokens(&self) -> u64 {
        [self.input, self.output, self.cache_read, self.cache_write].into_iter().fold(0, u64::saturating_add)
    }

    /// Counts another in.
    pub fn add(&mut self, other: &Self) {
        let both = |one: u64, two: u64| one.saturating_add(two);
        *self = Self {
            answers: both(self.answers, other.answers),
            input: both(self.input, other.input),
            output: both(self.output, other.output),
            cache_read: both(self.cache_read, other.cache_read),
            cache_write: both(self.cache_write, other.cache_write),
            cost_micros: match (self.cost_micros, other.cost_micros) {
                (None, None) => None,
                (one, two) => Some(both(one.unwrap_or_default(), two.unwrap_or_default())),
            },
        };
    }
}

/// One conversation in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Its id.
    pub id: String,
    /// The first thing a person said in it, shortened.
    pub title: Option<String>,
    /// Whom she talks with in it.
    pub person: Option<String>,
    /// When something was last written to it.
    pub updated: Timestamp,
    /// How often a person said something.
    pub turns: u64,
    /// The model that answered last.
    pub model: String,
    /// What its turns cost, as far as that was written down.
    pub usage: Usage,
    /// Whether it was begun by this Lisa, and not by the original.
    pub own: bool,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// The best first.
    pub places: Vec<Place>,
    /// How many of the oldest conversations were not looked into, because there is more than one question may read.
    pub left: u64,
}

/// One place where something was said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// In which session.
    pub session: String,
    /// What that one is called.
    pub title: Option<String>,
    /// Which message, as [`Page`] numbers them.
    pub message: u64,
    /// When it was said.
    pub time: Timestamp,
    /// Who said it.
    pub by: Speaker,
    /// The words with what stands around them, on one line.
    pub excerpt: String,
}

/// Who said something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Speaker {
    /// A person.
    Person,
    /// She.
    She,
    /// The runtime, in its own name.
    Runtime,
    /// Tools, with their results.
    Tools,
}

/// A page of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// The session's id.
    pub session: String,
    /// Oldest first; the newest of them is right before what was asked for.
    pub messages: Vec<Said>,
    /// Whether there are older ones.
    pub more: bool,
    /// How many there are in all.
    pub total: u64,
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// Its number, from 1.
    pub number: u64,
    /// When.
    pub time: Timestamp,
    /// Who.
    pub by: Speaker,
    /// The words, bounded; calls of tools and their results each on a line.
    pub text: String,
}

/// What a model was sent for one answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Replay {
    /// The session's id.
    pub session: String,
    /// Which answer, from 1.
    pub answer: u64,
    /// How many there are.
    pub answers: u64,
    /// Whether this file says which prompt was in force; those of version 1 do not.
    pub prompts_recorded: bool,
    /// The system prompt in force; nothing where none was written down before.
    pub prompt: Option<String>,
    /// Its fingerprint.
    pub fingerprint: Option<String>,
    /// The messages, oldest first, as they stand in the file; in place of what was shortened, its summary.
    pub messages: Vec<Value>,
    /// How many of the oldest are not shown here, because they do not fit into one frame.
    pub left: u64,
    /// Every prompt of the session, oldest first.
    pub prompts: Vec<Prompt>,
}

/// One prompt of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompt {
    /// When it was written down.
    pub time: Timestamp,
    /// The first digits of its SHA-256.
    pub fingerprint: String,
    /// `initial` or `rebuilt`.
    pub reason: String,
    /// The first answer that was given with it; nothing where there is none yet.
    pub first_answer: Option<u64>,
}

/// What her thinking cost today, in the status.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spent {
    /// The day, in her zone.
    pub day: String,
    /// All of it.
    pub total: Usage,
    /// By what it was for (`conversation`, `reflection`, `desire:learn-rust`), the dearest first.
    pub tasks: Vec<Spending>,
    /// By session, the dearest first.
    pub sessions: Vec<Spending>,
}

/// What one thing cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spending {
    /// What.
    pub name: String,
    /// How much.
    pub usage: Usage,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_json_is_pinned() {
        let check = |request: Request, line: Value| {
            assert_eq!(serde_json::to_value(&request).unwrap(), line);
            assert_eq!(serde_json::from_value::<Request>(line).unwrap(), request);
        };
        check(Request::List { limit: 20 }, json!({"method": "list", "params": {"limit": 20}}));
        check(
            Request::Search { query: "灯塔".into(), limit: 10 },
            json!({"method": "search", "params": {"query": "灯塔", "limit": 10}}),
        );
        check(
            Request::Show { session: "s".into(), before: None, limit: 5 },
            json!({"method": "show", "params": {"session": "s", "before": null, "limit": 5}}),
        );
        check(
            Request::Replay { session: "s".into(), answer: Some(3) },
            json!({"method": "replay", "params": {"session": "s", "answer": 3}}),
        );
        let usage =
            Usage { answers: 1, input: 2, output: 3, cache_read: 4, cache_write: 5, cost_micros: None };
        assert_eq!(
            serde_json::to_value(usage).unwrap(),
            json!({"answers": 1, "input": 2, "output": 3, "cache_read": 4, "cache_write": 5})
        );
    }

    #[test]
    fn what_is_counted_is_counted_once() {
        let mut sum =
            Usage { answers: 1, input: 2, output: 3, cache_read: 4, cache_write: 5, cost_micros: None };
        sum.add(&Usage { answers: 1, output: 1, cost_micros: Some(7), ..Usage::default() });
        assert_eq!((sum.answers, sum.tokens(), sum.cost_micros), (2, 15, Some(7)));
        sum.add(&Usage { input: u64::MAX, ..Usage::default() });
        assert_eq!((sum.tokens(), sum.cost_micros), (u64::MAX, Some(7)));
    }
}
