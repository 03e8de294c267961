//! How a restart looks in a session: an ordinary tool call of the protocol, so that every client shows it.
//!
//! Every session that somebody is attached to is told, and every one with a turn under way: a person who sees her silent
//! is to see why. `_meta.lisa.lifecycle` marks the item for clients that follow the events as well.

use ipc::{
    acp,
    contract::chat::{Event, kind},
};
use serde_json::{Value, json};

/// An item in a session about one death of one process.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Restart {
    /// Which process.
    pub(crate) process: String,
    id: String,
}

/// What an event means for the sessions that are open.
#[derive(Debug, PartialEq)]
pub(crate) enum Sight {
    /// A process died: show this item.
    Begins(Restart, Box<acp::SessionUpdate>),
    /// It is over for all items of this process: show this of each.
    Ends { process: String, status: acp::ToolCallStatus, title: String },
    /// Nothing to be seen.
    Nothing,
}

/// Reads an event.
pub(crate) fn sight(event: &Event) -> Sight {
    let process = event.text("process").to_owned();
    match event.kind.as_str() {
        kind::CHILD_DIED | kind::CHILD_DRAINING | kind::CHILD_RENEWING => {
            let life = event.number("life").unwrap_or_default();
            let id = format!("restart-{process}-{}-{life}", event.epoch);
            let title = match (event.kind.as_str(), event.number("turns_cut")) {
                (kind::CHILD_DIED, _) => {
                    format!("the {process} died ({}); restarting it", event.text("how"))
                }
                (kind::CHILD_DRAINING, _) => {
                    format!(
                        "the {process} is to be started again with new settings, after the turns under way"
                    )
                }
                (_, None) => format!("the {process} is started again with new settings"),
                (_, Some(_)) => format!(
                    "the {process} is started again with new settings; what was under way is interrupted, and taken up again"
                ),
            };
            let call = acp::ToolCall::new(id.clone(), title)
                .kind(acp::ToolKind::Other)
                .status(acp::ToolCallStatus::InProgress)
                .meta(meta());
            Sight::Begins(Restart { process, id }, Box::new(acp::SessionUpdate::ToolCall(call)))
        }
        kind::CHILD_READY => {
            let title = format!("the {process} is back");
            Sight::Ends { process, status: acp::ToolCallStatus::Completed, title }
        }
        kind::CHILD_PARKED => {
            let title = format!("the {process} was given up for now: {}", event.text("why"));
            Sight::Ends { process, status: acp::ToolCallStatus::Failed, title }
        }
        _ => Sight::Nothing,
    }
}

impl Restart {
    /// How an item that is shown already goes on.
    pub(crate) fn go_on(&self, item: &acp::SessionUpdate) -> acp::SessionUpdate {
        let title = if let acp::SessionUpdate::ToolCall(call) = item { call.title.as_str() } else { "" };
        self.end(acp::ToolCallStatus::InProgress, title)
    }

    /// How the item ends.
    pub(crate) fn end(&self, status: acp::ToolCallStatus, title: &str) -> acp::SessionUpdate {
        let fields = acp::ToolCallUpdateFields::new().status(status).title(title.to_owned());
        acp::SessionUpdate::ToolCallUpdate(acp::ToolCallUpdate::new(self.id.clone(), fields).meta(meta()))
    }
}

fn meta() -> acp::Meta {
    [("lisa".to_owned(), json!({"lifecycle": true}))].into_iter().collect()
}

/// Text that the runtime itself puts into a session, marked so that a client can tell it from her words.
pub(crate) fn note(text: &str) -> acp::SessionUpdate {
    let meta: acp::Meta = [("lisa".to_owned(), json!({"note": true}))].into_iter().collect();
    acp::SessionUpdate::AgentMessageChunk(acp::ContentChunk::new(text.into()).meta(meta))
}

/// The parameters of `session/update`.
pub(crate) fn update(session: &str, update: &acp::SessionUpdate) -> Value {
    json!({"sessionId": session, "update": update})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::fields;

    fn event(kind: &str) -> Event {
        Event {
            epoch: 2,
            seq: 1,
            time: jiff::Timestamp::UNIX_EPOCH,
            kind: kind.to_owned(),
            fields: fields([("process", json!("agent")), ("life", json!(3)), ("how", json!("signal 9"))]),
        }
    }

    #[test]
    fn a_death_and_a_return_are_one_tool_call_of_the_protocol() {
        let Sight::Begins(restart, item) = sight(&event(kind::CHILD_DIED)) else { panic!("a death is seen") };
        let begun = update("s", &item);
        assert_eq!(begun["sessionId"], "s");
        assert_eq!(begun["update"]["sessionUpdate"], "tool_call");
        assert_eq!(begun["update"]["toolCallId"], "restart-agent-2-3");
        assert_eq!(begun["update"]["status"], "in_progress");
        assert_eq!(begun["update"]["title"], "the agent died (signal 9); restarting it");
        assert_eq!(begun["update"]["_meta"]["lisa"]["lifecycle"], true);
        let Sight::Ends { process, status, title } = sight(&event(kind::CHILD_READY)) else {
            panic!("so is a return")
        };
        assert_eq!(process, restart.process);
        let ended = update("s", &restart.end(status, &title));
        assert_eq!(ended["update"]["sessionUpdate"], "tool_call_update");
        assert_eq!(ended["update"]["toolCallId"], "restart-agent-2-3");
        assert_eq!(ended["update"]["status"], "completed");
        let Sight::Begins(renewed, _) = sight(&event(kind::CHILD_RENEWING)) else {
            panic!("so are new settings")
        };
        assert_eq!(renewed, restart);
        let Sight::Begins(draining, item) = sight(&event(kind::CHILD_DRAINING)) else {
            panic!("so is the wait for the turn's end")
        };
        assert_eq!(draining, restart, "one item from the wait to the return");
        let goes_on = update("s", &draining.go_on(&item));
        assert_eq!(goes_on["update"]["sessionUpdate"], "tool_call_update");
        assert!(goes_on["update"]["title"].as_str().unwrap().contains("after the turns"), "{goes_on}");
        let mut cut = event(kind::CHILD_RENEWING);
        cut.fields.insert("turns_cut".into(), json!(1));
        let Sight::Begins(_, item) = sight(&cut) else { panic!("so is a cut") };
        assert!(update("s", &item)["update"]["title"].as_str().unwrap().contains("interrupted"));
        assert_eq!(sight(&event(kind::SOUL_CHANGED)), Sight::Nothing);
    }

    #[test]
    fn a_note_of_the_runtime_is_told_from_her_words() {
        let note = update("s", &note("[interrupted]"));
        assert_eq!(note["update"]["content"], json!({"type": "text", "text": "[interrupted]"}));
        assert_eq!(note["update"]["_meta"]["lisa"]["note"], true);
    }
}
