//! How a turn ended, and whether the reply is whole: what is not whole is never taken for it.

use ipc::{text::one_line, wire::RpcError};
use serde_json::{Value, json};

use crate::link::LinkError;

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ending {
    stop_reason: String,
    message_id: Option<String>,
    interrupted: bool,
    why: Option<String>,
    error: Option<String>,
}

impl Ending {
    /// Reads the answer to a prompt.
    pub(super) fn of(outcome: Result<Value, RpcError>) -> Self {
        let answer = match outcome {
            Ok(answer) => answer,
            Err(error) => return Self::failed("error", error.message),
        };
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        let ours = answer.get("_meta").and_then(|meta| meta.get("lisa"));
        let message_id = text(ours.and_then(|ours| ours.get("messageId")));
        let interrupted = ours.and_then(|ours| ours.get("interrupted")) == Some(&Value::Bool(true));
        let why = text(ours.and_then(|ours| ours.get("why")));
        match text(answer.get("stopReason")) {
            Some(stop_reason) => Self { stop_reason, message_id, interrupted, why, error: None },
            None => Self::failed("error", "the answer does not say why the turn ended".to_owned()),
        }
    }

    /// The connection ended before the turn did.
    pub(super) fn lost(error: &LinkError) -> Self {
        Self { interrupted: true, ..Self::failed("error", ipc::exit::chain(error)) }
    }

    fn failed(stop_reason: &str, error: String) -> Self {
        Self {
            stop_reason: stop_reason.to_owned(),
            message_id: None,
            interrupted: false,
            why: None,
            error: Some(error),
        }
    }

    /// Why the reply is not whole; nothing where it is.
    pub(super) fn shortfall(&self) -> Option<String> {
        if let Some(error) = &self.error {
            return Some(error.clone());
        }
        if self.interrupted {
            let why = self.why.as_deref().map(|why| format!(" ({})", one_line(why, 200))).unwrap_or_default();
            return Some(format!(
                "the turn was interrupted{why} and the reply is not whole; what was said is kept, so ask again"
            ));
        }
        let why = match self.stop_reason.as_str() {
            "end_turn" => return None,
            "cancelled" => "the reply was stopped".to_owned(),
            "refusal" => "she, or her model, refused to answer".to_owned(),
            "max_tokens" => "the reply ran into the model's limit and is not whole".to_owned(),
            "max_turn_requests" => {
                "the turn took more steps than it may, and the reply is not whole".to_owned()
            }
            other => format!("the turn ended with `{}`", one_line(other, 60)),
        };
        Some(why)
    }

    /// The last line of a turn in JSON.
    pub(super) fn json(&self) -> Value {
        let mut end = json!({"type": "end", "stop_reason": self.stop_reason, "message_id": self.message_id});
        if let Some(fields) = end.as_object_mut() {
            if self.interrupted {
                fields.insert("interrupted".to_owned(), Value::Bool(true));
            }
            if let Some(error) = &self.error {
                fields.insert("error".to_owned(), Value::String(error.clone()));
            }
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(reason: &str) -> Ending {
        Ending::of(Ok(json!({"stopReason": reason, "_meta": {"lisa": {"messageId": "m1"}}})))
    }

    #[test]
    fn an_ending_that_is_not_whole_says_why() {
        let check = |ending: Ending, said: Option<&str>, json: Value| {
            let shortfall = ending.shortfall();
            assert_eq!(shortfall.is_some(), said.is_some(), "{shortfall:?}");
            assert!(shortfall.unwrap_or_default().contains(said.unwrap_or_default()));
            assert_eq!(ending.json(), json);
        };
        check(ended("end_turn"), None, json!({"type": "end", "stop_reason": "end_turn", "message_id": "m1"}));
        check(
            ended("cancelled"),
            Some("stopped"),
            json!({"type": "end", "stop_reason": "cancelled", "message_id": "m1"}),
        );
        check(
            Ending::of(Ok(
                json!({"stopReason": "end_turn", "_meta": {"lisa": {"interrupted": true, "why": "the agent died"}}}),
            )),
            Some("interrupted (the agent died)"),
            json!({"type": "end", "stop_reason": "end_turn", "message_id": null, "interrupted": true}),
        );
        check(
            Ending::of(Err(RpcError::new(-32011, "the model answered 429"))),
            Some("429"),
            json!({"type": "end", "stop_reason": "error", "message_id": null, "error": "the model answered 429"}),
        );
        check(
            Ending::of(Ok(json!("what"))),
            Some("does not say"),
            json!({"type": "end", "stop_reason": "error", "message_id": null,
                "error": "the answer does not say why the turn ended"}),
        );
        check(
            Ending::of(Ok(json!({"stopReason": "of_the_future"}))),
            Some("of_the_future"),
            json!({"type": "end", "stop_reason": "of_the_future", "message_id": null}),
        );
        let lost = Ending::lost(&LinkError::Gone);
        assert_eq!(lost.json()["interrupted"], json!(true));
        assert!(lost.shortfall().unwrap().contains("lisa up"));
    }
}
