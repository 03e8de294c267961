//! Whatever bytes a server sends, and however they are cut on the way: one outcome, and no panic, in every dialect.

use proptest::prelude::*;

use super::*;
use crate::provider::{ollama::Ollama, responses::Responses};

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

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        8 => prop::sample::select(LINES.to_vec()).prop_map(|line| line.as_bytes().to_vec()),
        // cut anywhere, also inside of a character
        1 => (prop::sample::select(LINES.to_vec()), 0_usize..200)
            .prop_map(|(line, at)| line.as_bytes().iter().take(at).copied().collect()),
        1 => prop::collection::vec(any::<u8>(), 0..20),
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

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
}
