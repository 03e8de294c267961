//! What may be asked of the agent: the process that thinks.

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    Contract,
    approval::{Ask, Decision},
    model,
    soul::RunToken,
};
use crate::{id::RequestId, wire::RpcError};

/// The agent's contract.
#[derive(Debug)]
pub enum Agent {}

impl Contract for Agent {
    const NAME: &'static str = "agent";
    const VERSION: u32 = 1;
    type Request = Request;
    type Reply = Reply;
    type Notice = Notice;
}

/// A question to the agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "method", content = "params", rename_all = "snake_case")]
pub enum Request {
    /// One method of the Agent Client Protocol that belongs to a session, as the client sent it: answered by
    /// [`Reply::Relayed`], [`Reply::Replayed`] or [`Reply::Failed`].
    ///
    /// Asked twice with one request id, a prompt is one message and one turn: a turn under way is joined, one that an
    /// earlier life of the agent left unfinished is taken up where the session's file ends.
    Relay {
        /// `session/prompt`, `session/new`, …
        acp: String,
        /// Its parameters.
        params: Value,
    },
    /// Spend her own time on something: answered by [`Reply::Pursued`], or refused. Asked twice, it runs once a life.
    Pursue {
        /// The run the soul opened for it.
        run: RunToken,
        /// What it is: `desire:learn-rust`.
        task: String,
        /// What she is told.
        prompt: String,
        /// The tools she may use in it; no others.
        tools: Vec<String>,
        /// The longest it may take; what is not done by then is cut off (T08).
        turn_max: SignedDuration,
    },
    /// What came of a question it asked ([`Notice::Ask`]): answered by [`Reply::Decided`]. Only the supervisor's word
    /// counts. Asked twice, the first decision stands.
    Decide {
        /// Which question.
        ask: RequestId,
        /// What came of it.
        decision: Decision,
    },
    /// How it thinks: answered by [`Reply::Status`].
    Status,
    /// A question about which model thinks: answered by [`Reply::Model`], and taken from the supervisor alone.
    Model(model::Request),
    /// Come to rest at the boundary of a turn: those under way go on to their end, new ones wait. Answered by
    /// [`Reply::Drained`] when none is under way, or when the patience is at its end. From the supervisor alone; asked
    /// again, it waits again. The hold lapses by itself half a minute after the patience.
    Drain {
        /// How long turns may still take.
        patience: SignedDuration,
    },
    /// Begin turns again: it is to live on after all. Answered by [`Reply::Drained`].
    Resume,
}

/// An answer of the agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// The result for the client, as the protocol shapes it.
    Relayed(Value),
    /// The same, after these `session/update` parameters, which are for the asker alone: a session's past, when it is loaded.
    Replayed {
        /// Oldest first, bounded by the agent so that they fit into one frame.
        updates: Vec<Value>,
        /// The result.
        result: Value,
    },
    /// The error for the client.
    Failed(RpcError),
    /// How a run of her own ended.
    Pursued(Pursued),
    /// Whether somebody still waited for that decision; where nobody did, nothing follows from it.
    Decided {
        /// Whether it was waited for.
        waited: bool,
    },
    /// How it thinks.
    Status(Status),
    /// The answer to a question about the model.
    Model(model::Reply),
    /// How many turns are under way now.
    Drained {
        /// Nought where it is at rest.
        under_way: u32,
    },
    /// Not done, and why.
    Refused {
        /// The sentence.
        reason: String,
    },
}

/// How a run of her own ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pursued {
    /// Where it can be read: the session's id.
    pub session: String,
    /// What she said last.
    pub text: String,
    /// The tools that ran, in order, each with whether it failed.
    pub tools: Vec<ToolRun>,
    /// Why it ended, in the protocol's words: `end_turn`, `max_turn_requests`, `cancelled`.
    pub stop_reason: String,
    /// What went wrong, where something did: the model could not be reached, its answer was cut.
    pub error: Option<String>,
}

/// One tool that ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolRun {
    /// Its name.
    pub tool: String,
    /// Whether it failed or was refused.
    pub failed: bool,
    /// Whether it may change something; what is not known to change nothing does.
    #[serde(default = "yes")]
    pub writes: bool,
}

const fn yes() -> bool {
    true
}

/// How the agent thinks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// The model in use: `offline`, `openai/gpt-…`.
    pub model: String,
    /// What a person may want to know about it: why it is this one, what is missing for another.
    pub notice: Option<String>,
    /// Turns under way.
    pub turns: u32,
    /// The servers of tools, in the order of `mcp.json`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<ToolServer>,
}

/// A server of tools (the Model Context Protocol).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolServer {
    /// What the person calls it; `mcp.json` where what is wrong is the file.
    pub name: String,
    /// How it is.
    pub state: ToolServerState,
    /// How many tools it brings right now.
    pub tools: u32,
    /// Why it brings none, where it should.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// What else the person should know of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

/// How a server of tools is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolServerState {
    /// It is being started.
    Starting,
    /// Its tools are offered.
    Ready,
    /// It ended, or could not be started, and is started again.
    Waiting,
    /// The person has turned it off.
    Off,
    /// What is written about it cannot be used.
    Wrong,
}

impl ToolServerState {
    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Waiting => "waiting",
            Self::Off => "off",
            Self::Wrong => "wrong",
        }
    }
}

/// What the agent tells without being asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "method", content = "params", rename_all = "snake_case")]
pub enum Notice {
    /// A notification of the protocol for everybody attached to a session.
    Update {
        /// The session.
        session: String,
        /// Who of them.
        audience: Audience,
        /// The request whose turn it belongs to, so that whoever asked can tell its own reply from another's.
        turn: Option<RequestId>,
        /// `session/update`.
        acp: String,
        /// Its parameters.
        params: Value,
    },
    /// A call waits for a person's word. Told again, with the same id, until it is decided: notices may be lost.
    Ask(Ask),
    /// A question needs no answer any more: it was decided, cancelled, or waited for too long.
    Settled {
        /// Which question.
        ask: RequestId,
    },
}

/// Whom an update is for, told by the request it belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Audience {
    /// Everybody attached to the session.
    Everybody,
    /// Everybody but whoever asked this: what a person said, to those who did not say it.
    Others(RequestId),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{from_frame, to_frame};
    use serde_json::json;

    #[test]
    fn the_json_is_pinned() {
        let check = |request: Request, method: &str, params: Value| {
            assert_eq!(to_frame(&request), (method.to_owned(), params.clone()));
            assert_eq!(from_frame::<Request>(method, params).unwrap(), request);
        };
        check(
            Request::Relay { acp: "session/new".into(), params: json!({"cwd": "/"}) },
            "relay",
            json!({"acp": "session/new", "params": {"cwd": "/"}}),
        );
        check(
            Request::Pursue {
                run: RunToken("t".into()),
                task: "desire:x".into(),
                prompt: "p".into(),
                tools: vec!["soul_read".into()],
                turn_max: SignedDuration::from_mins(10),
            },
            "pursue",
            json!({"run": "t", "task": "desire:x", "prompt": "p", "tools": ["soul_read"], "turn_max": "PT10M"}),
        );
        check(
            Request::Drain { patience: SignedDuration::from_secs(30) },
            "drain",
            json!({"patience": "PT30S"}),
        );
        check(Request::Resume, "resume", Value::Null);
        assert_eq!(
            serde_json::to_value(Reply::Drained { under_way: 2 }).unwrap(),
            json!({"drained": {"under_way": 2}})
        );
        check(Request::Model(model::Request::List), "model", json!({"method": "list"}));
        assert_eq!(
            serde_json::to_value(Reply::Relayed(json!({"stopReason": "end_turn"}))).unwrap(),
            json!({"relayed": {"stopReason": "end_turn"}})
        );
        let server = ToolServer {
            name: "files".into(),
            state: ToolServerState::Waiting,
            tools: 0,
            why: Some("it ended".into()),
            notices: vec![],
        };
        let words = json!({"name": "files", "state": "waiting", "tools": 0, "why": "it ended"});
        assert_eq!(serde_json::to_value(&server).unwrap(), words);
        assert_eq!(serde_json::from_value::<ToolServer>(words).unwrap(), server);
        assert_eq!(server.state.as_str(), "waiting");
        let update = Notice::Update {
            session: "s".into(),
            audience: Audience::Everybody,
            turn: None,
            acp: "session/update".into(),
            params: json!({}),
        };
        assert_eq!(
            to_frame(&update),
            (
                "update".into(),
                json!({"session": "s", "audience": "everybody", "turn": null, "acp": "session/update", "params": {}})
            )
        );
    }
}
