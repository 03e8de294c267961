//! What a person's program may ask on the chat socket beyond the Agent Client Protocol: the `_lisa/…` methods.
//!
//! | method | parameters | answer |
//! |---|---|---|
//! | [`STATUS`] | none | [`Status`] |
//! | [`EVENTS`] | [`EventsSince`] | [`Events`]; with `follow`, an [`EVENT`] notification for each later one |
//! | [`SOUL`] | a [`super::soul::Request`] | a [`super::soul::Reply`] |
//! | [`HEARTBEAT`] | a [`super::heartbeat::Request`] | a [`super::heartbeat::Reply`] |
//! | [`MODEL`] | a [`super::model::Request`] | a [`super::model::Reply`] |
//! | [`SESSIONS`] | a [`super::sessions::Request`] | a [`super::sessions::Reply`] |
//! | [`REFLECT`] | `{sessionId}` | the answer of a prompt; what came of it is said in the session |
//! | [`STOP`] | none | `null`, and then the supervisor stops in order |

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{agent::ToolServer, sessions::Spent};

/// How everything is.
pub const STATUS: &str = "_lisa/status";
/// What happened, and what will.
pub const EVENTS: &str = "_lisa/events";
/// One event, to a client that follows them.
pub const EVENT: &str = "_lisa/event";
/// A question to the soul.
pub const SOUL: &str = "_lisa/soul";
/// A question to the heartbeat.
pub const HEARTBEAT: &str = "_lisa/heartbeat";
/// A question about which model thinks.
pub const MODEL: &str = "_lisa/model";
/// A question about the conversations on disk.
pub const SESSIONS: &str = "_lisa/sessions";
/// Look back on a session.
pub const REFLECT: &str = "_lisa/reflect";
/// Stop, in order, losing nothing.
pub const STOP: &str = "_lisa/stop";

/// How everything is. `lisa status --json` prints this.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The supervisor first, then soul, agent and heartbeat.
    pub processes: Vec<Process>,
    /// The home.
    pub home: String,
    /// Where the sockets are.
    pub run: String,
    /// Which supervisor this is, counted in the home.
    pub epoch: u64,
    /// The model in use; empty while the agent has not said.
    pub model: String,
    /// What tools are kept from, and what is missing of that; empty while the agent has not said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sandbox: String,
    /// A model on this machine that could think, where none does and one was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offer: Option<String>,
    /// The self.
    pub soul: SoulStatus,
    /// How many clients are attached.
    pub clients: u64,
    /// The servers of tools the agent has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<ToolServer>,
    /// What is not as it should be, each a sentence with what to do.
    pub notices: Vec<String>,
    /// What her thinking cost today; nothing while the agent has not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spent>,
}

/// One process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// `supervisor`, `soul`, `agent`, `heartbeat`.
    pub name: String,
    /// Its pid; nothing while it is not running.
    pub pid: Option<u32>,
    /// `starting`, `ready`, `draining` (it ends its turns, then gives way), `waiting` (for its restart), `stopping`, `stopped`, `parked`.
    pub state: String,
    /// The build it runs.
    pub build: String,
    /// How often it was restarted in this epoch.
    pub restarts: u64,
    /// Its resident memory.
    pub rss_bytes: Option<u64>,
    /// Why it is not ready, where it is not.
    pub why: Option<String>,
    /// In how long a parked one is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_in: Option<SignedDuration>,
}

/// The self, in short.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SoulStatus {
    /// What she is called; empty before birth.
    pub name: String,
    /// The newest commit.
    pub commit: Option<String>,
    /// The version of what the prompt shows.
    pub prompt_version: u64,
    /// Why there is no self yet, where giving birth was tried and failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unborn: Option<String>,
}

/// A place in the event log: `(epoch, seq)`, written `3:17`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cursor {
    /// Which supervisor.
    pub epoch: u64,
    /// Which of its events.
    pub seq: u64,
}

impl std::str::FromStr for Cursor {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parse = || {
            let (epoch, seq) = text.split_once(':')?;
            Some(Self { epoch: epoch.parse().ok()?, seq: seq.parse().ok()? })
        };
        parse().ok_or_else(|| format!("a cursor is `EPOCH:SEQ`, as in `3:17`, which `{text}` is not"))
    }
}

/// Asks for what happened after a cursor.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EventsSince {
    /// Nothing up to and with this one; without a cursor, everything that is still kept.
    pub after: Option<Cursor>,
    /// Whether later ones should be sent as they happen.
    pub follow: bool,
}

/// What happened.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Events {
    /// Oldest first.
    pub events: Vec<Event>,
    /// Whether events between the cursor and the first of these are no longer kept.
    pub gap: bool,
}

/// One event. `lisa events --json` prints these, one a line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Which supervisor saw it.
    pub epoch: u64,
    /// Which of its events it is, from 1.
    pub seq: u64,
    /// When.
    pub time: Timestamp,
    /// What: one of [`kind`].
    #[serde(rename = "type")]
    pub kind: String,
    /// The rest, by kind.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

impl Event {
    /// A field that is text; empty where there is none.
    pub fn text(&self, field: &str) -> &str {
        self.fields.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    /// A field that is a number.
    pub fn number(&self, field: &str) -> Option<u64> {
        self.fields.get(field).and_then(Value::as_u64)
    }

    /// Where it stands in the log.
    pub fn cursor(&self) -> Cursor {
        Cursor { epoch: self.epoch, seq: self.seq }
    }
}

/// The kinds of events, with their fields.
pub mod kind {
    /// A supervisor began: `pid`, `build`, `home`.
    pub const SUPERVISOR_STARTED: &str = "supervisor_started";
    /// It was asked to stop: `by`.
    pub const SUPERVISOR_STOPPING: &str = "supervisor_stopping";
    /// A child was spawned: `process`, `pid`, `life`.
    pub const CHILD_STARTED: &str = "child_started";
    /// It said that it is ready: `process`, `pid`, `life`, `build`, `took_ms`.
    pub const CHILD_READY: &str = "child_ready";
    /// It died without having been asked to: `process`, `pid`, `life`, `how`, `restart_in_ms` where it will be restarted.
    pub const CHILD_DIED: &str = "child_died";
    /// It is to give way to a life with new settings, and ends its turns first: `process`, `pid`, `life`, `patience_ms`.
    pub const CHILD_DRAINING: &str = "child_draining";
    /// It was asked to give way to a life with new settings: `process`, `pid`, `life`, `turns_cut` where some were under way.
    pub const CHILD_RENEWING: &str = "child_renewing";
    /// It ended as asked: `process`, `pid`, `life`, `how`.
    pub const CHILD_STOPPED: &str = "child_stopped";
    /// It serves no more and does not answer, and is ended: `process`, `pid`, `life`, `silent_ms`.
    pub const CHILD_HUNG: &str = "child_hung";
    /// It was given up, and is tried again later: `process`, `why`, `retry_in_ms`.
    pub const CHILD_PARKED: &str = "child_parked";
    /// The self changed: `commit`, `op`, `paths`, `caller`, `origin`.
    pub const SOUL_CHANGED: &str = "soul_changed";
    /// A client was dropped because it did not read: `client`.
    pub const CLIENT_DROPPED: &str = "client_dropped";
    /// A prompt ended without an answer: `session`, `why`.
    pub const PROMPT_INTERRUPTED: &str = "prompt_interrupted";
    /// The configuration was read anew and holds from now on: `changed` (parts of it), `renewed` (processes that live on
    /// with it in a new life).
    pub const CONFIGURATION_READ: &str = "configuration_read";
    /// It was to be read anew and cannot be used; what was set before still holds: `why`.
    pub const CONFIGURATION_REFUSED: &str = "configuration_refused";
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_shapes_that_scripts_rely_on_are_pinned() {
        let event = Event {
            epoch: 1,
            seq: 2,
            time: "2026-11-30T12:00:00Z".parse().unwrap(),
            kind: kind::CHILD_DIED.into(),
            fields: Map::from_iter([("process".to_owned(), json!("soul"))]),
        };
        let line = json!({"epoch": 1, "seq": 2, "time": "2026-11-30T12:00:00Z", "type": "child_died", "process": "soul"});
        assert_eq!(serde_json::to_value(&event).unwrap(), line);
        assert_eq!(serde_json::from_value::<Event>(line).unwrap(), event);
        assert_eq!(event.text("process"), "soul");

        let process = Process {
            name: "soul".into(),
            pid: Some(7),
            state: "ready".into(),
            build: "0.1.0".into(),
            restarts: 0,
            rss_bytes: Some(1),
            why: None,
            retry_in: None,
        };
        assert_eq!(
            serde_json::to_value(&process).unwrap(),
            json!({"name": "soul", "pid": 7, "state": "ready", "build": "0.1.0", "restarts": 0, "rss_bytes": 1, "why": null})
        );
    }

    #[test]
    fn a_cursor_is_two_numbers() {
        assert_eq!("3:17".parse(), Ok(Cursor { epoch: 3, seq: 17 }));
        for bad in ["", "3", "3:", ":1", "a:b", "3:17:1"] {
            assert!(bad.parse::<Cursor>().is_err(), "{bad}");
        }
    }
}
