//! What may be asked of the heartbeat: the process that wakes her.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Contract, Nothing};

/// The heartbeat's contract.
#[derive(Debug)]
pub enum Heartbeat {}

impl Contract for Heartbeat {
    const NAME: &'static str = "heartbeat";
    const VERSION: u32 = 1;
    type Request = Request;
    type Reply = Reply;
    type Notice = Nothing;
}

/// A question to the heartbeat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "method", content = "params", rename_all = "snake_case")]
pub enum Request {
    /// Run one task now, or whatever is due: answered by [`Reply::Ran`] when it is over. Asked twice with one request id, it runs once.
    Run {
        /// Which: `desire:learn-rust`. Without one, whatever is due.
        task: Option<String>,
    },
    /// When it beats: answered by [`Reply::Status`].
    Status,
}

/// An answer of the heartbeat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// What ran, in order; empty when nothing was due.
    Ran {
        /// The runs.
        runs: Vec<RunReport>,
    },
    /// When it beats.
    Status(Status),
    /// Not done, and why.
    Refused {
        /// The sentence.
        reason: String,
    },
}

/// How one run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunReport {
    /// Which run: the id of its claim in the ledger.
    pub run: String,
    /// What it was: `desire:learn-rust`.
    pub task: String,
    /// How it ended.
    pub outcome: Outcome,
    /// The session in which it can be read.
    pub session: Option<String>,
    /// A sentence for a person.
    pub note: String,
    /// When it began.
    pub started: Timestamp,
    /// When it was over.
    pub ended: Timestamp,
}

/// How a run ended (T09: executed is not progressed).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// She did something and wrote down what.
    Progressed,
    /// It ran, she wrote nothing down, and a fallback entry says so.
    NoProgress,
    /// It failed; the note says why.
    Failed,
    /// The process died in the middle of it.
    Interrupted,
}

/// When it beats.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Whether anything happens by itself.
    pub on: bool,
    /// Why not, where it does not.
    pub off_because: Option<String>,
    /// When something is due next; nothing where there is nothing to do.
    pub next: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{from_frame, to_frame};
    use serde_json::{Value, json};

    #[test]
    fn the_json_is_pinned() {
        let check = |request: Request, method: &str, params: Value| {
            assert_eq!(to_frame(&request), (method.to_owned(), params.clone()));
            assert_eq!(from_frame::<Request>(method, params).unwrap(), request);
        };
        check(Request::Run { task: Some("desire:x".into()) }, "run", json!({"task": "desire:x"}));
        check(Request::Status, "status", Value::Null);
        assert_eq!(serde_json::to_value(Outcome::NoProgress).unwrap(), json!("no_progress"));
        assert_eq!(serde_json::to_value(Reply::Ran { runs: vec![] }).unwrap(), json!({"ran": {"runs": []}}));
    }
}
