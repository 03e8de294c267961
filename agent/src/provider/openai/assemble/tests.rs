//! Tests of the assembly, each named after the row of the reports it answers.

use super::*;
use crate::provider::Input;
use serde_json::json;

fn event(data: &str) -> Event {
    Event { name: String::new(), data: data.to_owned(), ended: true }
}

fn assemble(events: &[&str]) -> Result<(Vec<Delta>, Completion), Fault> {
    let mut assembly = Assembly::default();
    let mut deltas = Vec::new();
    for data in events {
        deltas.extend(assembly.take(&event(data))?);
    }
    Ok((deltas, assembly.finish("m", |at| format!("id{at}"))?))
}

fn whole(events: &[&str]) -> Completion {
    assemble(events).unwrap().1
}

/// A stream of the given deltas, ended by `finish`.
fn deltas(deltas: &[Value], finish: &str) -> Completion {
    let mut events: Vec<String> =
        deltas.iter().map(|d| json!({"choices": [{"delta": d}]}).to_string()).collect();
    events.push(json!({"choices": [{"delta": {}, "finish_reason": finish}]}).to_string());
    whole(&events.iter().map(String::as_str).collect::<Vec<_>>())
}

fn calls(completion: &Completion) -> Vec<(String, String, Value)> {
    let call = |block: &Block| match block {
        Block::ToolUse { id, name, input: Input::Object(input) } => {
            Some((id.clone(), name.clone(), Value::Object(input.clone())))
        }
        Block::ToolUse { id, name, input: Input::Unusable { .. } } => {
            Some((id.clone(), name.clone(), json!("unusable")))
        }
        _ => None,
    };
    completion.blocks.iter().filter_map(call).collect()
}

#[track_caller]
fn check(completion: &Completion, expected: &[(&str, Value)]) {
    let expected: Vec<_> = expected
        .iter()
        .enumerate()
        .map(|(at, (name, input))| (format!("id{at}"), (*name).to_owned(), input.clone()))
        .collect();
    assert_eq!(calls(completion), expected);
    let stop = if expected.is_empty() { Stop::EndTurn } else { Stop::ToolUse };
    assert_eq!(completion.stop, stop);
}

#[test]
fn text_and_usage() {
    let (shown, completion) = assemble(&[
        r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"你"}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"好"},"finish_reason":null}]}"#,
        r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4}}}"#,
        "[DONE]",
    ])
    .unwrap();
    assert_eq!(shown, [Delta::Text("你".into()), Delta::Text("好".into())]);
    let usage = Usage {
        input_tokens: Some(3),
        output_tokens: Some(2),
        cache_read_tokens: Some(4),
        cache_write_tokens: None,
    };
    assert_eq!(
        completion,
        Completion {
            model: "openai/m".into(),
            blocks: vec![Block::text("你好")],
            stop: Stop::EndTurn,
            usage
        }
    );
}

#[test]
fn c7_05_c7_06_bad_arguments_are_never_coerced() {
    for bad in ["{\"path\":", "{\"a\":1}{\"b\":2}", "nonsense", "null", "[1]", "\"{}\"", "7"] {
        let completion = deltas(
            &[json!({"tool_calls": [{"index": 0, "function": {"name": "t", "arguments": bad}}]})],
            "tool_calls",
        );
        let [Block::ToolUse { name, input: Input::Unusable { raw, why }, .. }] = completion.blocks.as_slice()
        else {
            panic!("{bad}: {completion:?}");
        };
        assert_eq!((name.as_str(), raw.as_str()), ("t", bad));
        assert!(why.starts_with("the input is"), "{why}");
    }
}

#[test]
fn c7_07_blank_arguments_are_no_arguments() {
    for blank in [json!(""), json!("  \n"), json!(null), json!({})] {
        let completion = deltas(
            &[json!({"tool_calls": [{"index": 0, "function": {"name": "t", "arguments": blank}}]})],
            "stop",
        );
        check(&completion, &[("t", json!({}))]);
    }
}

#[test]
fn c7_08_empty_id_and_name_are_absent() {
    let completion = deltas(
        &[
            json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "soul_read", "arguments": ""}}]}),
            json!({"tool_calls": [{"index": 0, "id": "", "function": {"name": null, "arguments": "{\"x\""}}]}),
            json!({"tool_calls": [{"index": 0, "id": null, "function": {"name": "", "arguments": ":1}"}}]}),
        ],
        "tool_calls",
    );
    check(&completion, &[("soul_read", json!({"x": 1}))]);
}

#[test]
fn names_are_never_put_together() {
    let piece =
        json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "terminal", "arguments": ""}}]});
    check(&deltas(&[piece.clone(), piece], "stop"), &[("terminal", json!({}))]);
}

#[test]
fn c7_09_without_an_index_the_position_counts() {
    let completion = deltas(
        &[
            json!({"tool_calls": [{"id": "a", "function": {"name": "one", "arguments": "{\"n\":"}},
                                  {"id": "b", "function": {"name": "two", "arguments": "{\"n\":"}}]}),
            json!({"tool_calls": [{"function": {"arguments": "1}"}}, {"function": {"arguments": "2}"}}]}),
        ],
        "tool_calls",
    );
    check(&completion, &[("one", json!({"n": 1})), ("two", json!({"n": 2}))]);
}

#[test]
fn c7_10_a_new_id_at_the_same_index_is_a_new_call() {
    let call = |id, n| {
        json!({"tool_calls": [{"index": 0, "id": id, "function": {"name": "terminal",
               "arguments": format!("{{\"n\":{n}}}")}}]})
    };
    check(
        &deltas(&[call("a", 1), call("b", 2)], "tool_calls"),
        &[("terminal", json!({"n": 1})), ("terminal", json!({"n": 2}))],
    );
}

#[test]
fn c7_11_chunks_without_a_choice_are_skipped_and_their_usage_read() {
    let completion = whole(&[
        r#"{"choices":[],"prompt_filter_results":[]}"#,
        r#"{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":3}}"#,
        r#"{"type":"ping"}"#,
    ]);
    assert_eq!(completion.blocks, [Block::text("a")]);
    assert_eq!(completion.usage, Usage { input_tokens: Some(3), ..Usage::default() });
}

#[test]
fn c7_16_half_an_emoji_waits_for_its_other_half() {
    let (shown, completion) = assemble(&[
        r#"{"choices":[{"delta":{"content":"a\ud83c"}}]}"#,
        r#"{"choices":[{"delta":{"content":"\udf0db"}}]}"#,
        r#"{"choices":[{"delta":{"content":"c\ud83c","tool_calls":[{"index":0,"function":{"name":"t","arguments":"{\"x\":\"\ud83c"}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\udf0d\"}"}}]},"finish_reason":"stop"}]}"#,
    ])
    .unwrap();
    assert_eq!(shown, [Delta::Text("a".into()), Delta::Text("🌍b".into()), Delta::Text("c".into())]);
    assert_eq!(completion.blocks.first(), Some(&Block::text("a🌍bc\u{fffd}")));
    check(&completion, &[("t", json!({"x": "🌍"}))]);

    let lonely =
        json!({"tool_calls": [{"index": 0, "function": {"name": "t", "arguments": "{\"x\":\"\\ud83c\"}"}}]});
    check(&deltas(&[lonely], "stop"), &[("t", json!({"x": "\u{fffd}"}))]);
}

#[test]
fn c7_17_a_clean_end_without_finish_reason_is_incomplete() {
    let call = r#"{"choices":[{"delta":{"content":"a","tool_calls":[{"index":0,"id":"x","function":{"name":"t","arguments":"{}"}}]}}]}"#;
    assert_eq!(assemble(&[call]), Err(Fault::Incomplete));
    assert_eq!(assemble(&[]), Err(Fault::Incomplete));
    assert!(assemble(&[call, "[DONE]"]).is_ok());

    let mut assembly = Assembly::default();
    assembly.take(&event(call)).unwrap();
    let cut = Event { ended: false, ..event(r#"{"choices":[{"del"#) };
    assert_eq!(assembly.take(&cut), Ok(vec![]));
    assert_eq!(assembly.finish("m", |_| String::new()), Err(Fault::Incomplete));
}

#[test]
fn c7_18_an_error_in_the_stream_is_a_failure_and_says_whether_it_passes() {
    let check = |data: &str, said: &str, passing: bool| {
        let text = r#"{"choices":[{"delta":{"content":"a"}}]}"#;
        assert_eq!(assemble(&[text, data]), Err(Fault::Reported { said: said.into(), passing }), "{data}");
    };
    check(r#"{"error":{"type":"overloaded_error","message":"Overloaded"}}"#, "Overloaded", true);
    check(r#"{"error":{"code":529,"message":"busy"}}"#, "busy", true);
    check(r#"{"error":{"code":"503","message":"busy"}}"#, "busy", true);
    check(r#"{"error":{"code":400,"message":"no"}}"#, "no", false);
    check(r#"{"error":{"code":"insufficient_quota","type":"server_error","message":"no"}}"#, "no", false);
    check(r#"{"error":"plain words"}"#, "plain words", false);
    check(r#"{"object":"error","message":"old vllm","code":500}"#, "old vllm", true);
    check(r#"{"error":{"x":1}}"#, r#"{"x":1}"#, false);

    let named = Event { name: "error".into(), ..event("words without JSON") };
    let fault = Assembly::default().take(&named).unwrap_err();
    assert_eq!(fault, Fault::Reported { said: "words without JSON".into(), passing: false });
    assert!(assemble(&[r#"{"error":null,"choices":[{"delta":{},"finish_reason":"stop"}]}"#]).is_ok());
}

#[test]
fn c7_26_a_signature_beside_a_call_is_kept_word_for_word() {
    let call = |index: u32, extra: Value| {
        json!({"tool_calls": [{"index": index, "id": format!("i{index}"), "extra_content": extra,
               "function": {"name": "t", "arguments": "{}"}}]})
    };
    let extra = json!({"google": {"thought_signature": "Ab+/=="}});
    let completion = deltas(&[call(0, extra.clone()), call(1, Value::Null)], "tool_calls");
    let json = json!({"field": "reasoning_content", "calls": [extra, null]});
    let opaque = Opaque { provider: "openai".into(), model: "m".into(), json };
    assert_eq!(
        completion.blocks.first(),
        Some(&Block::Thinking { thinking: String::new(), opaque: Some(opaque) })
    );
    check(&completion, &[("t", json!({})), ("t", json!({}))]);
}

#[test]
fn c7_27_a_malformed_call_is_a_failure() {
    let done =
        r#"{"choices":[{"delta":{},"finish_reason":"function_call_filter: MALFORMED_FUNCTION_CALL"}]}"#;
    assert!(matches!(assemble(&[done]), Err(Fault::Reported { passing: true, .. })));
}

#[test]
fn an_answer_that_was_cut_or_withheld_calls_nothing() {
    let call = json!({"content": "a", "tool_calls": [{"index": 0, "id": "x", "function": {"name": "t", "arguments": "{}"}}]});
    for (finish, stop) in [("length", Stop::MaxTokens), ("content_filter", Stop::Refusal)] {
        let completion = deltas(std::slice::from_ref(&call), finish);
        assert_eq!((completion.stop, completion.blocks), (stop, vec![Block::text("a")]));
    }
    let refusal = deltas(&[json!({"refusal": "I will not"})], "stop");
    assert_eq!((refusal.stop, refusal.blocks), (Stop::Refusal, vec![Block::text("I will not")]));
}

#[test]
fn c7_24_thinking_is_kept_with_what_it_needs_to_be_sent_back() {
    for field in ["reasoning_content", "reasoning"] {
        let completion = deltas(
            &[json!({field: "h"}), json!({field: "m", "content": null}), json!({"content": "a"})],
            "stop",
        );
        let opaque = Opaque { provider: "openai".into(), model: "m".into(), json: json!({"field": field}) };
        let thinking = Block::Thinking { thinking: "hm".into(), opaque: Some(opaque) };
        assert_eq!(completion.blocks, [thinking, Block::text("a")]);
    }
    let both = deltas(&[json!({"reasoning": "hm", "reasoning_content": "hm"})], "stop");
    assert!(matches!(both.blocks.as_slice(), [Block::Thinking { thinking, .. }] if thinking == "hm"));
}

#[test]
fn what_is_empty_is_not_stored() {
    for completion in
        [deltas(&[json!({"content": "\n"}), json!({"reasoning": " "})], "stop"), whole(&["[DONE]"])]
    {
        assert_eq!((completion.blocks, completion.stop), (vec![], Stop::EndTurn));
    }
    let nothing = json!({"tool_calls": [{"index": 0}]});
    check(&deltas(&[nothing], "stop"), &[]);
}

#[test]
fn a_call_without_a_name_is_unusable() {
    let call = json!({"tool_calls": [{"index": 0, "id": "x", "function": {"arguments": "{\"a\":1}"}}]});
    check(&deltas(&[call], "stop"), &[("unnamed", json!("unusable"))]);
}

#[test]
fn what_is_no_chunk_is_garbled() {
    for garbage in ["<html>", "12", "[]", "{\"choices\":"] {
        assert!(matches!(assemble(&[garbage]), Err(Fault::Garbled { .. })), "{garbage}");
    }
}

#[test]
fn content_in_parts_is_read() {
    let parts = json!({"content": [{"type": "text", "text": "a"}, {"type": "thinking"}, {"type": "text", "text": "b"}]});
    assert_eq!(deltas(&[parts], "stop").blocks, [Block::text("ab")]);
}

proptest::proptest! {
    #[test]
    fn no_event_makes_it_panic(data in r#"(\{|\}|\[|\]|"choices"|"delta"|"tool_calls"|"index"|"content"|:|,|"\\ud83c"|1|null|"a"|.){0,30}"#) {
        let mut assembly = Assembly::default();
        let _ = assembly.take(&event(&data));
        let _ = assembly.finish("m", |at| at.to_string());
    }
}
