//! Tests of the assembly, each named after the row of the reports it answers.

use super::*;
use crate::provider::Input;
use proptest::prelude::*;
use serde_json::json;

fn event(said: &Value) -> Event {
    let name = said["type"].as_str().unwrap_or_default().to_owned();
    Event { name, data: said.to_string(), ended: true }
}

fn assemble(events: &[Value]) -> Result<(Vec<Delta>, Completion), Fault> {
    let mut assembly = Assembly::default();
    let mut deltas = Vec::new();
    for said in events {
        deltas.extend(assembly.take(&event(said))?);
    }
    Ok((deltas, assembly.finish("m", |at| format!("id{at}"))?))
}

fn start(index: u64, block: &Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: u64, delta: &Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn stop(index: u64) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn text(index: u64, text: &str) -> [Value; 3] {
    let begun = start(index, &json!({"type": "text", "text": ""}));
    [begun, delta(index, &json!({"type": "text_delta", "text": text})), stop(index)]
}

fn call(index: u64, pieces: &[&str]) -> Vec<Value> {
    let id = format!("toolu_{index}");
    let mut events = vec![start(index, &json!({"type": "tool_use", "id": id, "name": "t", "input": {}}))];
    events
        .extend(pieces.iter().map(|p| delta(index, &json!({"type": "input_json_delta", "partial_json": p}))));
    events.push(stop(index));
    events
}

/// The end of a message that ends for `reason`.
fn end(reason: &str) -> [Value; 2] {
    let delta = json!({"stop_reason": reason, "stop_sequence": null});
    [
        json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 15}}),
        json!({"type": "message_stop"}),
    ]
}

fn whole(events: &[&[Value]]) -> Completion {
    assemble(&events.concat()).unwrap().1
}

fn used(id: &str, input: &Value) -> Block {
    Block::ToolUse {
        id: id.into(),
        name: "t".into(),
        input: Input::Object(input.as_object().unwrap().clone()),
    }
}

fn kept(thinking: &str, state: Value) -> Block {
    let opaque = Opaque { provider: "anthropic".into(), model: "m".into(), json: state };
    Block::Thinking { thinking: thinking.into(), opaque: Some(opaque) }
}

#[test]
fn words_and_what_they_cost() {
    let usage = json!({"input_tokens": 7, "cache_creation_input_tokens": 100, "cache_read_input_tokens": 2000, "output_tokens": 1});
    let begun = json!({"type": "message_start", "message": {"content": [], "usage": usage}});
    let ping = json!({"type": "ping"});
    let news = json!({"type": "invented_later", "index": 0, "delta": {"type": "text_delta", "text": "?"}});
    let events = [&[begun, ping.clone()][..], &text(0, "你好"), &[news, ping], &end("end_turn")].concat();
    let (shown, completion) = assemble(&events).unwrap();
    assert_eq!(shown, [Delta::Text("你好".into())]);
    let usage = Usage {
        input_tokens: Some(7),
        output_tokens: Some(15),
        cache_read_tokens: Some(2000),
        cache_write_tokens: Some(100),
    };
    assert_eq!(usage.read(), Some(2107));
    let blocks = vec![Block::text("你好")];
    assert_eq!(completion, Completion { model: "anthropic/m".into(), blocks, stop: Stop::EndTurn, usage });
}

#[test]
fn c7_25_thoughts_are_kept_word_for_word_and_in_order() {
    let thought = |index, thinking: &str, signature: &str| {
        [
            start(index, &json!({"type": "thinking", "thinking": "", "signature": ""})),
            delta(index, &json!({"type": "thinking_delta", "thinking": thinking})),
            delta(index, &json!({"type": "signature_delta", "signature": signature})),
            delta(index, &json!({"type": "signature_delta", "signature": "/=="})),
            stop(index),
        ]
    };
    let redacted = [start(1, &json!({"type": "redacted_thinking", "data": "EmwK+AhgB"})), stop(1)];
    // A newer model hides the thought and signs it all the same; the signature may stand in the start.
    let hidden = [start(3, &json!({"type": "thinking", "thinking": "", "signature": "hid"})), stop(3)];
    let completion = whole(&[
        &thought(0, " hm\n", "Eq0B"),
        &redacted,
        &thought(2, "and", "Zz"),
        &hidden,
        &text(4, "a"),
        &call(5, &["{\"x\"", ":1}"]),
        &call(6, &[]),
        &end("tool_use"),
    ]);
    assert_eq!(
        completion.blocks,
        [
            kept(" hm\n", json!({"signature": "Eq0B/=="})),
            kept("", json!({"data": "EmwK+AhgB"})),
            kept("and", json!({"signature": "Zz/=="})),
            kept("", json!({"signature": "hid"})),
            Block::text("a"),
            used("id0", &json!({"x": 1})),
            used("id1", &json!({})),
        ]
    );
    // They read back from a session as they were written.
    for block in &completion.blocks {
        let written = serde_json::to_string(block).unwrap();
        assert_eq!(serde_json::from_str::<Block>(&written).unwrap(), *block);
    }
}

#[test]
fn a_thought_without_a_signature_is_shown_and_never_sent_back() {
    let unsigned = [
        start(0, &json!({"type": "thinking", "thinking": ""})),
        delta(0, &json!({"type": "thinking_delta", "thinking": "hm"})),
    ];
    let (shown, completion) = assemble(&[&unsigned[..], &end("max_tokens")].concat()).unwrap();
    assert_eq!(shown, [Delta::Thinking("hm".into())]);
    assert_eq!(completion.blocks, [Block::Thinking { thinking: "hm".into(), opaque: None }]);
}

#[test]
fn parallel_calls_whose_blocks_overlap_and_end_together_are_told_apart() {
    // As llama.cpp streams them: no `input` in the start, and all ends at the end.
    let begin = |index| start(index, &json!({"type": "tool_use", "id": format!("c{index}"), "name": "t"}));
    let piece =
        |index, piece: &str| delta(index, &json!({"type": "input_json_delta", "partial_json": piece}));
    let events = [
        begin(0),
        piece(0, "{\"n\":"),
        begin(1),
        piece(1, "{\"n\":2"),
        piece(0, "1}"),
        piece(1, "}"),
        begin(2),
    ];
    let completion = whole(&[&events, &[stop(0), stop(1), stop(2)], &end("tool_use")]);
    let expected = [used("id0", &json!({"n": 1})), used("id1", &json!({"n": 2})), used("id2", &json!({}))];
    assert_eq!((completion.blocks.as_slice(), completion.stop), (&expected[..], Stop::ToolUse));
}

#[test]
fn c7_05_c7_06_bad_arguments_and_unfinished_calls_are_never_coerced() {
    for bad in ["{\"path\":", "{\"a\":1}{\"b\":2}", "nonsense", "null", "[1]"] {
        let completion = whole(&[&call(0, &[bad]), &end("tool_use")]);
        let [Block::ToolUse { input: Input::Unusable { raw, .. }, .. }] = completion.blocks.as_slice() else {
            panic!("{bad}: {completion:?}");
        };
        assert_eq!(raw, bad);
    }
    // Neither what looks whole nor what is blank runs before its block is closed.
    for unfinished in [&["{\"a\":1}"][..], &[]] {
        let mut events = call(0, unfinished);
        events.pop();
        let completion = whole(&[&events, &end("tool_use")]);
        let [Block::ToolUse { input: Input::Unusable { why, .. }, .. }] = completion.blocks.as_slice() else {
            panic!("{completion:?}");
        };
        assert!(why.contains("not finished"), "{why}");
    }
}

#[test]
fn c7_07_arguments_that_come_whole_or_not_at_all() {
    let begun = start(0, &json!({"type": "tool_use", "id": "a", "name": "t", "input": {"x": "好"}}));
    let completion = whole(&[&[begun, stop(0)], &call(1, &["", "  "]), &end("tool_use")]);
    assert_eq!(completion.blocks, [used("id0", &json!({"x": "好"})), used("id1", &json!({}))]);
}

#[test]
fn each_reason_to_stop() {
    let check = |reason: &str, calls: bool, expected: Stop| {
        let call = if calls { call(1, &["{}"]) } else { vec![] };
        let completion = whole(&[&text(0, "a"), &call, &end(reason)]);
        let runs = completion.blocks.iter().any(|block| matches!(block, Block::ToolUse { .. }));
        assert_eq!((completion.stop, runs), (expected, expected == Stop::ToolUse), "{reason}");
        assert_eq!(completion.blocks.first(), Some(&Block::text("a")));
    };
    check("end_turn", false, Stop::EndTurn);
    check("stop_sequence", false, Stop::EndTurn);
    check("invented_later", false, Stop::EndTurn);
    check("tool_use", true, Stop::ToolUse);
    check("end_turn", true, Stop::ToolUse);
    check("tool_use", false, Stop::EndTurn);
    for cut in ["max_tokens", "model_context_window_exceeded", "pause_turn"] {
        check(cut, false, Stop::MaxTokens);
        check(cut, true, Stop::MaxTokens);
    }
    check("refusal", false, Stop::Refusal);
    check("refusal", true, Stop::Refusal);
}

#[test]
fn c7_16_half_an_emoji_waits_for_its_other_half() {
    let half = |data: &str| Event { name: "content_block_delta".into(), data: data.to_owned(), ended: true };
    let mut assembly = Assembly::default();
    assembly
        .take(&half(
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a\ud83c"}}"#,
        ))
        .unwrap();
    let shown = assembly
        .take(&half(
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\udf0d"}}"#,
        ))
        .unwrap();
    assert_eq!(shown, [Delta::Text("🌍".into())]);
    for said in end("end_turn") {
        assembly.take(&event(&said)).unwrap();
    }
    assert_eq!(assembly.finish("m", |_| String::new()).unwrap().blocks, [Block::text("a🌍")]);
}

#[test]
fn c7_17_a_clean_end_without_a_reason_is_incomplete() {
    let begun = json!({"type": "message_start", "message": {"usage": {"input_tokens": 1}}});
    for events in [vec![], vec![begun], text(0, "a").to_vec(), call(0, &["{}"])] {
        assert_eq!(assemble(&events).unwrap_err(), Fault::Incomplete, "{events:?}");
    }
    let mut assembly = Assembly::default();
    let cut = Event { name: String::new(), data: "{\"type\":\"mess".into(), ended: false };
    assert_eq!(assembly.take(&cut), Ok(vec![]));
    assert_eq!(assembly.finish("m", |_| String::new()), Err(Fault::Incomplete));
    // A reason without `message_stop` is enough, and so is `message_stop` alone.
    assert!(assemble(&end("end_turn")[..1]).is_ok() && assemble(&end("end_turn")[1..]).is_ok());
}

#[test]
fn c7_18_an_error_in_the_stream_is_a_failure_and_says_whether_it_passes() {
    let check = |error: Value, said: &str, passing: bool| {
        let events = [&text(0, "a")[..], &[error]].concat();
        assert_eq!(assemble(&events).unwrap_err(), Fault::Reported { said: said.into(), passing });
    };
    let error = |kind: &str, said: &str| json!({"type": "error", "error": {"type": kind, "message": said}, "request_id": "r"});
    check(error("overloaded_error", "Overloaded"), "Overloaded", true);
    check(error("api_error", "Internal server error"), "Internal server error", true);
    check(error("rate_limit_error", "slow"), "slow", true);
    check(error("invalid_request_error", "no"), "no", false);
    check(error("billing_error", "no money"), "no money", false);
    // c7_34: llama.cpp's errors have another shape.
    check(json!({"error": {"code": 500, "message": "no peg"}}), "no peg", true);
    check(json!({"type": "error", "message": "bare"}), "bare", false);
    let named = Event { name: "error".into(), data: "words without JSON".into(), ended: true };
    assert!(matches!(Assembly::default().take(&named), Err(Fault::Reported { passing: false, .. })));
    let html = Event { name: String::new(), data: "<html>".into(), ended: true };
    assert!(matches!(Assembly::default().take(&html), Err(Fault::Garbled { .. })));
}

#[test]
fn what_is_empty_or_unknown_is_not_stored() {
    let unknown = [
        start(1, &json!({"type": "invented_later", "text": "?"})),
        delta(1, &json!({"type": "x_delta", "x": 1})),
        stop(1),
    ];
    let lost = [delta(9, &json!({"type": "input_json_delta", "partial_json": "{}"})), stop(9)];
    let completion = whole(&[&text(0, " \n"), &unknown, &lost, &end("end_turn")]);
    assert_eq!((completion.blocks, completion.stop), (vec![], Stop::EndTurn));
}

#[test]
fn an_answer_has_a_bound() {
    let many: Vec<Value> = (0..200).map(|index| start(index, &json!({"type": "text"}))).collect();
    assert!(matches!(assemble(&many), Err(Fault::TooLarge { .. })));
    let large = "x".repeat(ANSWER_BYTES_MAX / 2 + 1);
    let signature = delta(0, &json!({"type": "signature_delta", "signature": large}));
    assert!(matches!(assemble(&[signature.clone(), signature]), Err(Fault::TooLarge { .. })));
}

/// Events of every kind, in any order and with any of their parts missing.
fn any_event() -> impl Strategy<Value = Value> {
    let kind = prop::sample::select(vec![
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "ping",
        "?",
    ]);
    let block = prop::sample::select(vec!["text", "thinking", "redacted_thinking", "tool_use", "?"]);
    let of = prop::sample::select(vec![
        "text_delta",
        "input_json_delta",
        "thinking_delta",
        "signature_delta",
        "?",
    ]);
    let reason =
        prop::sample::select(vec![Value::Null, json!("tool_use"), json!("end_turn"), json!("max_tokens")]);
    (kind, 0_u64..4, block, of, "(|a|\\{|\\}|\\{\\}|好)", reason).prop_map(|(kind, index, block, of, piece, reason)| {
        json!({"type": kind, "index": index,
               "content_block": {"type": block, "name": "t", "text": piece, "thinking": piece, "signature": piece, "data": piece},
               "delta": {"type": of, "text": piece, "thinking": piece, "partial_json": piece, "signature": piece, "stop_reason": reason}})
    })
}

proptest! {
    #[test]
    fn c7_06_whatever_comes_a_call_runs_only_closed_and_whole(events in prop::collection::vec(any_event(), 0..40)) {
        let Ok((_, completion)) = assemble(&events) else { return Ok(()) };
        for (at, block) in completion.blocks.iter().enumerate() {
            prop_assert!(block.as_text().is_none_or(|text| !text.trim().is_empty()));
            if let Block::ToolUse { id, .. } = block {
                prop_assert_eq!(completion.stop, Stop::ToolUse);
                let before = completion.blocks[..at].iter().filter(|b| matches!(b, Block::ToolUse { .. })).count();
                prop_assert_eq!(id, &format!("id{before}"));
            }
        }
    }

    #[test]
    fn no_event_makes_it_panic(data in r#"(\{|\}|\[|\]|"type"|"content_block_start"|"index"|"delta"|:|,|"\\ud83c"|1|null|"a"|.){0,30}"#) {
        let mut assembly = Assembly::default();
        let _ = assembly.take(&Event { name: String::new(), data, ended: true });
        let _ = assembly.finish("m", |at| at.to_string());
    }
}
