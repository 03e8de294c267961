//! Conversations of any kind, faulty ones above all, for the tests of what is made of them: every one that a session can
//! give after its repair is among them.

use proptest::prelude::*;
use serde_json::json;

use crate::provider::{Block, Input, Message, Opaque, Role};

/// The model that the requests in these tests are made for.
pub(crate) const MODEL: &str = "m";

fn thought() -> impl Strategy<Value = Block> {
    let by = prop::sample::select(vec!["openai", "anthropic", "ollama", "responses", "elsewhere"]);
    let of = prop::sample::select(vec![MODEL, "other"]);
    let state = prop::sample::select(vec![
        json!({"signature": "Eq0B+/="}),
        json!({"data": "EmwK"}),
        json!({"field": "reasoning"}),
        json!({"item": {"type": "reasoning", "id": "rs_1", "encrypted_content": "gAAA"}}),
        json!({}),
        json!("?"),
    ]);
    (by, of, state, "(| hm|想)", any::<bool>()).prop_map(|(by, of, json, thinking, kept)| {
        let opaque = Opaque { provider: by.to_owned(), model: of.to_owned(), json };
        Block::Thinking { thinking, opaque: kept.then_some(opaque) }
    })
}

fn block() -> impl Strategy<Value = Block> {
    // Few ids, so that they meet: twice in a message, twice in a conversation, in results of nothing.
    let id = || prop::sample::select(vec!["call_0_0", "toolu_01", "a", "", "x y/好"]);
    prop_oneof![
        "(| |\n|hello|你好 🌍|a b)".prop_map(Block::text),
        thought(),
        (id(), "(soul_read|x|bad name!|)", prop_oneof![Just(true), Just(false)]).prop_map(
            |(id, name, whole)| {
                let input = if whole {
                    Input::Object(json!({"a": 1}).as_object().cloned().unwrap_or_default())
                } else {
                    Input::Unusable { raw: "{\"a".into(), why: "cut".into() }
                };
                Block::ToolUse { id: id.to_owned(), name, input }
            }
        ),
        (id(), "(| |done|好)", any::<bool>()).prop_map(|(id, content, bad)| Block::result(id, content, bad)),
        prop::sample::select(vec![
            json!({"type": "redacted_thinking", "data": "EmwK"}),
            json!({"type": "thinking", "thinking": "hm", "signature": "Eq0B"}),
            json!({"type": "image"}),
            json!("?"),
        ])
        .prop_map(Block::Other),
    ]
}

/// Up to twelve messages of up to five blocks.
pub(crate) fn messages() -> impl Strategy<Value = Vec<Message>> {
    let role = prop_oneof![Just(Role::User), Just(Role::Assistant)];
    let message =
        (role, prop::collection::vec(block(), 0..6)).prop_map(|(role, content)| Message { role, content });
    prop::collection::vec(message, 0..13)
}
