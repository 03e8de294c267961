//! What is said about a call that waits for a person's word: between the agent, which asks and obeys, and the
//! supervisor, which knows who may answer.
//!
//! ```text
//!  agent ── notice Ask, told again until it is decided ──▶ supervisor ── session/request_permission ──▶ each person's client
//!        ◀──────────── request Decide ────────────────────            ◀── the first answer that counts ──
//!        ── notice Settled, whatever settled it ──────────▶            ── $/cancel_request ──▶ the others
//! ```
//!
//! An [`Ask`] has one id in every life of the agent, so that a question outlives the process that asked it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::RequestId;

/// A call that must not run before somebody allows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ask {
    /// Which question: made of the turn and the call, the same in every life.
    pub id: RequestId,
    /// In which session.
    pub session: String,
    /// The request whose turn it belongs to.
    pub turn: RequestId,
    /// Whether somebody may come and answer. Nobody waits in her own time: only what was remembered counts there.
    pub waits: bool,
    /// What would be remembered.
    pub call: Exactly,
    /// The parameters of `session/request_permission`.
    pub params: Value,
}

/// One call and no other: this tool with this input, asked for in this folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Exactly {
    /// The tool.
    pub tool: String,
    /// The folder of the session it is asked for in.
    pub folder: String,
    /// The SHA-256 of the whole input, in hexadecimal digits.
    pub input: String,
}

/// What came of a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// It may run, now and once.
    Allowed {
        /// Who says so.
        by: By,
    },
    /// It may not.
    Refused {
        /// Who says so.
        by: By,
        /// Why, in their words; empty where they gave none.
        reason: String,
    },
}

/// Who decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// A person, just now.
    Person,
    /// A person, who wanted it remembered.
    Rule,
    /// Nobody could be asked, or nobody answered.
    Nobody,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_json_is_pinned() {
        let ask = Ask {
            id: RequestId::try_from("a".repeat(32)).unwrap(),
            session: "s".into(),
            turn: RequestId::try_from("b".repeat(32)).unwrap(),
            waits: true,
            call: Exactly { tool: "bash".into(), folder: "/w".into(), input: "00".into() },
            params: json!({}),
        };
        let line = json!({"id": "a".repeat(32), "session": "s", "turn": "b".repeat(32), "waits": true,
            "call": {"tool": "bash", "folder": "/w", "input": "00"}, "params": {}});
        assert_eq!(serde_json::to_value(&ask).unwrap(), line);
        assert_eq!(serde_json::from_value::<Ask>(line).unwrap(), ask);
        let check = |decision: Decision, line: Value| {
            assert_eq!(serde_json::to_value(&decision).unwrap(), line);
            assert_eq!(serde_json::from_value::<Decision>(line).unwrap(), decision);
        };
        check(Decision::Allowed { by: By::Rule }, json!({"allowed": {"by": "rule"}}));
        check(
            Decision::Refused { by: By::Person, reason: "不".into() },
            json!({"refused": {"by": "person", "reason": "不"}}),
        );
    }
}
