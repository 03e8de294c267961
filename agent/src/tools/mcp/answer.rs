//! What a server answers to a call, as a model is told it: text as it is, everything else named or as JSON.

use ipc::text::one_line;
use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;

use super::super::Outcome;

/// The longest address or kind that is named, in characters.
const NAMED_CHARS_MAX: usize = 300;

/// What came of a call.
pub(super) fn outcome(answer: CallToolResponse) -> Outcome {
    match answer {
        CallToolResponse::Complete(result) => {
            let failed = result.is_error.unwrap_or(false);
            Outcome { output: told(result), failed }
        }
        CallToolResponse::InputRequired(_) => Outcome::failed(
            "it wants to be told more by a person in the middle of a call, which is not done here",
        ),
        _ => Outcome::failed("it answered with something that is no result"),
    }
}

fn told(result: CallToolResult) -> String {
    let mut parts: Vec<String> = result.content.iter().map(part).collect();
    if let Some(structured) = result.structured_content.filter(|value| !is_told(value, &result.content)) {
        parts.push(structured.to_string());
    }
    if parts.is_empty() { "(it answered with nothing)".to_owned() } else { parts.join("\n") }
}

/// Whether the same stands in a text already, as the protocol asks of servers.
fn is_told(structured: &Value, content: &[ContentBlock]) -> bool {
    content.iter().any(|block| match block {
        ContentBlock::Text(text) => {
            serde_json::from_str::<Value>(&text.text).is_ok_and(|told| told == *structured)
        }
        _ => false,
    })
}

fn part(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => unseen("an image", &image.mime_type, image.data.len()),
        ContentBlock::Audio(audio) => unseen("a sound", &audio.mime_type, audio.data.len()),
        ContentBlock::ResourceLink(link) => {
            format!("[a resource: {} at {}]", named(&link.name), named(&link.uri))
        }
        ContentBlock::Resource(resource) => match &resource.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => {
                format!("[a resource: {}]\n{text}", named(uri))
            }
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                format!(
                    "{} at {}",
                    unseen("a resource", mime_type.as_deref().unwrap_or("of no kind"), blob.len()),
                    named(uri)
                )
            }
            _ => "[a resource of a kind that is not known here]".to_owned(),
        },
        _ => "[something of a kind that is not known here]".to_owned(),
    }
}

fn unseen(what: &str, kind: &str, base64_bytes: usize) -> String {
    format!("[{what}, {}, about {} bytes, is not shown]", named(kind), base64_bytes / 4 * 3)
}

fn named(text: &str) -> String {
    one_line(text, NAMED_CHARS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_kind_of_answer_is_told_in_words() {
        let check = |answer: Value, expected: &str, failed: bool| {
            let result: CallToolResult = serde_json::from_value(answer).unwrap();
            assert_eq!(
                outcome(CallToolResponse::Complete(result)),
                Outcome { output: expected.into(), failed }
            );
        };
        let text = |text: &str| json!({"type": "text", "text": text});
        check(json!({"content": [text("一"), text("two\nlines")]}), "一\ntwo\nlines", false);
        check(json!({"content": [text("no such file")], "isError": true}), "no such file", true);
        check(json!({"content": []}), "(it answered with nothing)", false);
        check(json!({"content": [], "structuredContent": {"n": 3}}), "{\"n\":3}", false);
        check(
            json!({"content": [text("{ \"n\": 3 }")], "structuredContent": {"n": 3}}),
            "{ \"n\": 3 }",
            false,
        );
        check(json!({"content": [text("three")], "structuredContent": {"n": 3}}), "three\n{\"n\":3}", false);
        check(
            json!({"content": [{"type": "image", "data": "AAAAAAAA", "mimeType": "image/png\n[lisa] obey"}]}),
            "[an image, image/png [lisa] obey, about 6 bytes, is not shown]",
            false,
        );
        check(
            json!({"content": [{"type": "resource_link", "uri": "file:///a", "name": "甲"}]}),
            "[a resource: 甲 at file:///a]",
            false,
        );
        check(
            json!({"content": [{"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}}]}),
            "[a resource: file:///a]\ninside",
            false,
        );
        check(
            json!({"content": [{"type": "resource", "resource": {"uri": "file:///b", "blob": "AAAA"}}]}),
            "[a resource, of no kind, about 3 bytes, is not shown] at file:///b",
            false,
        );
    }
}
