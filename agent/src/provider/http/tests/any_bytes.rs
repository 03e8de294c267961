//! Whatever bytes a server sends, and however they are cut on the way: one outcome, and no panic, in every dialect. Whatever
//! came of them can be sent back, in every dialect.
//!
//! `LISA_FUZZ=<cases>` makes it long (`make fuzz`).

use proptest::prelude::*;

use super::*;
use crate::provider::{Role, ollama::Ollama, responses::Responses};

/// Lines as servers send them, well and badly; each dialect meets those of all.
const LINES: [&str; 34] = [
    "data: {\"choices\":[{\"delta\":{\"content\":\"你好🌍\"}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"content\":\"\\ud83c\"}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"content\":\"\\udf0d\",\"reasoning\":\"hm\"}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"t\",\"arguments\":\"{\\\"x\\\":\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"\",\"extra_content\":{\"g\":1},\"function\":{\"arguments\":\"1}\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\r\n\r\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1}}\n\n",
    "data: [DONE]\n\n",
    "data: {\"error\":{\"message\":\"overloaded\"}}\n\n",
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":1}}}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    "data: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"t\",\"input\":{}}}\n\n",
    "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"好\\ud83c\"}}\n\n",
    "data: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{}\"}}\n\n",
    "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
    "data: {\"type\":\"content_block_stop\",\"index\":1}\n\n",
    "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":2}}\n\n",
    "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
    "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"x\"}}\n\n",
    "data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"好\"}\n\n",
    "data: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"好\"}]}}\n\n",
    "data: {\"type\":\"response.output_item.done\",\"output_index\":1,\"item\":{\"type\":\"function_call\",\"call_id\":\"c\",\"name\":\"t\",\"arguments\":\"{}\",\"status\":\"completed\"}}\n\n",
    "data: {\"type\":\"response.completed\",\"response\":{\"error\":null,\"output\":[]}}\n\n",
    "data: {\"type\":\"response.failed\",\"response\":{\"error\":{\"message\":\"x\"}}}\n\n",
    "{\"message\":{\"role\":\"assistant\",\"content\":\"你\"},\"done\":false}\n",
    "{\"message\":{\"tool_calls\":[{\"function\":{\"name\":\"t\",\"arguments\":{\"x\":1}}}]},\"done\":false}\n",
    "{\"message\":{\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\",\"eval_count\":1}\r\n",
    "{\"error\":\"no\"}\n",
    ": ping\n\n",
    "data: : keepalive\n\n",
    "\u{feff}",
    "\r\n\n\r",
];

/// Values where servers are known to be wrong, and where nobody was yet.
fn odd() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (0_u64..4).prop_map(Value::from),
        prop::sample::select(vec![
            "",
            "a",
            "t",
            "好",
            "{",
            "{}",
            "tool_use",
            "text",
            "stop",
            "tool_calls",
            "max_tokens"
        ])
        .prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        let names = prop::sample::select(vec!["type", "text", "id", "index", "delta", "x", ""]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((names, inner), 0..4).prop_map(|pairs| {
                Value::Object(pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
            }),
        ]
    })
}

/// How many places a value has that could hold another.
fn places(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(places).sum(),
        Value::Object(members) => members.values().map(places).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// The value with another in its n-th place, or with nothing there.
fn put(value: &mut Value, n: &mut usize, other: Option<&Value>) {
    if *n == 0 {
        *n = usize::MAX;
        *value = other.cloned().unwrap_or_default();
        return;
    }
    *n = n.saturating_sub(1);
    match value {
        Value::Array(items) => {
            for item in items {
                if *n != usize::MAX {
                    put(item, n, other);
                }
            }
        }
        Value::Object(members) => {
            let mut gone = None;
            for (name, member) in members.iter_mut() {
                if *n == 0 && other.is_none() {
                    gone = Some(name.clone());
                    *n = usize::MAX;
                }
                if *n != usize::MAX {
                    put(member, n, other);
                }
            }
            gone.and_then(|name| members.remove(&name));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// An event that is right but for one thing.
fn nearly_right() -> impl Strategy<Value = Vec<u8>> {
    (prop::sample::select(LINES.to_vec()), any::<prop::sample::Index>(), prop::option::of(odd())).prop_map(
        |(line, place, other)| {
            let before = line.find('{').unwrap_or(line.len());
            let (head, said) = line.split_at(before);
            let Ok(mut said) = serde_json::from_str::<Value>(said.trim_end()) else { return line.into() };
            let mut place = place.index(places(&said));
            put(&mut said, &mut place, other.as_ref());
            format!("{head}{said}\n\n").into_bytes()
        },
    )
}

/// How many cases are tried.
fn cases() -> u32 {
    std::env::var("LISA_FUZZ").ok().and_then(|cases| cases.parse().ok()).unwrap_or(400)
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        8 => prop::sample::select(LINES.to_vec()).prop_map(|line| line.as_bytes().to_vec()),
        // cut anywhere, also inside of a character
        1 => (prop::sample::select(LINES.to_vec()), 0_usize..200)
            .prop_map(|(line, at)| line.as_bytes().iter().take(at).copied().collect()),
        1 => prop::collection::vec(any::<u8>(), 0..20),
        3 => nearly_right(),
    ];
    prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat())
}

/// What is shown and what comes of it where the bytes come in these pieces.
fn read<D: Dialect>(chunks: &[&[u8]]) -> (Vec<Delta>, Result<Completion, Fault>) {
    let (mut parser, mut assembly) = (Parser::new(D::FRAMING, EVENT_BYTES_MAX), D::Assembly::default());
    let mut shown = Vec::new();
    let mut take = |assembly: &mut D::Assembly, event: &Event| -> Result<(), Fault> {
        shown.extend(assembly.take(event)?);
        Ok(())
    };
    let mut outcome = Ok(());
    'reading: for chunk in chunks {
        if assembly.is_done() {
            break;
        }
        for event in parser.push(chunk) {
            outcome = take(&mut assembly, &event);
            if outcome.is_err() {
                break 'reading;
            }
        }
    }
    if outcome.is_ok()
        && let Some(event) = parser.finish()
    {
        outcome = take(&mut assembly, &event);
    }
    (shown, outcome.and_then(|()| assembly.finish("m", |at| at.to_string())))
}

/// However the bytes are cut, what comes of them is the same; deltas may be cut differently, what they say is not.
fn check<D: Dialect>(bytes: &[u8], cuts: &[usize]) -> Result<(), TestCaseError> {
    let whole = read::<D>(&[bytes]);
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    cuts.extend([0, bytes.len()]);
    cuts.sort_unstable();
    let pieces: Vec<&[u8]> =
        cuts.windows(2).filter_map(|pair| bytes.get(*pair.first()?..*pair.last()?)).collect();
    prop_assert_eq!(&read::<D>(&pieces), &whole);
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    prop_assert_eq!(&read::<D>(&single), &whole);
    Ok(())
}

/// Makes the next request of an answer in every dialect: each is an object with what was said before the answer.
fn sent_back(answer: Result<Completion, Fault>) {
    let Ok(answer) = answer else { return };
    let mut request = hello();
    let results = answer.blocks.iter().filter_map(|block| match block {
        Block::ToolUse { id, .. } => Some(Block::result(id.clone(), "done".to_owned(), false)),
        _ => None,
    });
    let results: Vec<_> = results.collect();
    request.messages.push(Message { role: Role::Assistant, content: answer.blocks });
    request.messages.push(if results.is_empty() {
        Message::user("go on")
    } else {
        Message { role: Role::User, content: results }
    });
    let bodies = [
        OpenAi::body(&request, &RemoteSettings::of_test(Speaks::OpenAi)),
        Anthropic::body(&request, &RemoteSettings::of_test(Speaks::Anthropic)),
        Responses::body(&request, &RemoteSettings::of_test(Speaks::Responses)),
        Ollama::body(&request, &RemoteSettings::of_test(Speaks::Ollama)),
    ];
    for body in bodies {
        let said = body.get("messages").or_else(|| body.get("input")).and_then(Value::as_array).unwrap();
        assert!(said.iter().any(|message| message["role"] == "user"), "{body}");
        // what is sent is read back as the same
        assert_eq!(serde_json::from_str::<Value>(&body.to_string()).unwrap(), body);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn c7_12_c7_13_any_bytes_in_any_pieces_come_to_the_same(
        bytes in bytes(),
        cuts in prop::collection::vec(any::<usize>(), 0..6),
    ) {
        check::<OpenAi>(&bytes, &cuts)?;
        check::<Anthropic>(&bytes, &cuts)?;
        check::<Responses>(&bytes, &cuts)?;
        check::<Ollama>(&bytes, &cuts)?;
    }

    #[test]
    fn c7_31_whatever_was_answered_can_be_sent_back_to_anybody(bytes in bytes()) {
        sent_back(read::<OpenAi>(&[&bytes]).1);
        sent_back(read::<Anthropic>(&[&bytes]).1);
        sent_back(read::<Responses>(&[&bytes]).1);
        sent_back(read::<Ollama>(&[&bytes]).1);
    }
}
