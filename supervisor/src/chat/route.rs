//! Where a client's request goes: a plain function of its method.

use ipc::contract::chat;
use serde_json::Value;

/// Who answers, and what that means for the envelope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    /// The supervisor, by saying what it can do.
    Initialize,
    /// The supervisor, from the board.
    Status,
    /// The supervisor, from its log.
    Events,
    /// The supervisor, by stopping.
    Stop,
    /// The soul.
    Soul,
    /// The heartbeat.
    Heartbeat,
    /// The agent, about its model.
    Model,
    /// The agent.
    Agent(Relay),
    /// Nobody.
    Nobody,
}

/// What the envelope of a method of the agent's says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Relay {
    /// The client is attached to the session the answer names.
    New,
    /// The client is attached to this session.
    Attach { session: String },
    /// A turn in this session is under way until it is answered; the client is attached.
    Prompt { session: String },
    /// The client is no longer attached to this session.
    Detach { session: String },
    /// Nothing besides.
    Plain,
}

/// Routes a request or a notification.
pub(crate) fn route(method: &str, params: &Value) -> Route {
    let session = || params.get("sessionId").and_then(Value::as_str).map(str::to_owned);
    match (method, session()) {
        ("initialize", _) => Route::Initialize,
        (chat::STATUS, _) => Route::Status,
        (chat::EVENTS, _) => Route::Events,
        (chat::STOP, _) => Route::Stop,
        (chat::SOUL, _) => Route::Soul,
        (chat::HEARTBEAT, _) => Route::Heartbeat,
        (chat::MODEL, _) => Route::Model,
        (chat::SESSIONS, _) => Route::Agent(Relay::Plain),
        ("session/new", _) => Route::Agent(Relay::New),
        ("session/load" | "session/resume", Some(session)) => Route::Agent(Relay::Attach { session }),
        ("session/prompt" | chat::REFLECT, Some(session)) => Route::Agent(Relay::Prompt { session }),
        ("session/close", Some(session)) => Route::Agent(Relay::Detach { session }),
        (method, _) if method.starts_with("session/") => Route::Agent(Relay::Plain),
        _ => Route::Nobody,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_method_has_one_place() {
        let check = |method: &str, expected: Route| {
            assert_eq!(route(method, &json!({"sessionId": "s"})), expected, "{method}");
        };
        let session = || "s".to_owned();
        check("initialize", Route::Initialize);
        check("_lisa/status", Route::Status);
        check("_lisa/events", Route::Events);
        check("_lisa/soul", Route::Soul);
        check("_lisa/heartbeat", Route::Heartbeat);
        check("_lisa/model", Route::Model);
        check("_lisa/stop", Route::Stop);
        check("_lisa/sessions", Route::Agent(Relay::Plain));
        check("session/new", Route::Agent(Relay::New));
        check("session/load", Route::Agent(Relay::Attach { session: session() }));
        check("session/resume", Route::Agent(Relay::Attach { session: session() }));
        check("session/prompt", Route::Agent(Relay::Prompt { session: session() }));
        check("_lisa/reflect", Route::Agent(Relay::Prompt { session: session() }));
        check("session/close", Route::Agent(Relay::Detach { session: session() }));
        check("session/list", Route::Agent(Relay::Plain));
        check("session/cancel", Route::Agent(Relay::Plain));
        check("authenticate", Route::Nobody);
        check("_lisa/nonsense", Route::Nobody);
        assert_eq!(
            route("session/prompt", &json!(null)),
            Route::Agent(Relay::Plain),
            "the agent says what is missing"
        );
    }
}
