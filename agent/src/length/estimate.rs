//! About how many tokens a text has, by its characters; and how far that is from what a provider counts.
//!
//! A character of Chinese, Japanese or Korean is about one token, four of Latin are; everything else lies between. What
//! providers say of the answers so far corrects it within bounds: some servers say anything.

use ipc::{
    contract::soul::ToolSpec,
    text::{is_unspaced, prefix},
};

use crate::provider::{Block, Input, Message};

/// What a message costs besides its words.
const MESSAGE_TOKENS: u64 = 4;
/// Within which bounds a provider's numbers correct the estimate, in thousandths.
const SCALE: std::ops::RangeInclusive<u64> = 500..=4000;
const ONE: u64 = 1000;

/// How many quarters of a token a character is.
fn quarters(c: char) -> u64 {
    match c {
        c if c.is_ascii() => 1,
        c if is_unspaced(c) => 4,
        _ => 2,
    }
}

/// About how many tokens a text has.
pub(crate) fn text(text: &str) -> u64 {
    text.chars().map(quarters).sum::<u64>().div_ceil(4)
}

/// The longest beginning of a text that has at most so many tokens.
pub(crate) fn beginning(text: &str, tokens_max: u64) -> &str {
    let mut left = tokens_max.saturating_mul(4);
    let fits = |c: &char| {
        let rest = left.checked_sub(quarters(*c));
        left = rest.unwrap_or_default();
        rest.is_some()
    };
    prefix(text, text.chars().take_while(fits).count())
}

/// About how many tokens a message has.
pub(crate) fn message(message: &Message) -> u64 {
    message.content.iter().map(block).sum::<u64>() + MESSAGE_TOKENS
}

fn block(block: &Block) -> u64 {
    match block {
        Block::Text { text: words } => text(words),
        Block::Thinking { thinking, opaque } => {
            text(thinking) + opaque.as_ref().map_or(0, |opaque| text(&opaque.json.to_string()))
        }
        Block::ToolUse { name, input, .. } => {
            let input = match input {
                Input::Object(input) => serde_json::Value::Object(input.clone()).to_string(),
                Input::Unusable { raw, .. } => raw.clone(),
            };
            text(name) + text(&input)
        }
        Block::ToolResult { content, .. } => text(content),
        Block::Other(value) => text(&value.to_string()),
    }
}

/// About how many tokens stand before the conversation: who she is, and her tools.
pub(crate) fn fixed(system: &str, tools: &[ToolSpec]) -> u64 {
    let tool =
        |tool: &ToolSpec| text(&tool.name) + text(&tool.description) + text(&tool.input_schema.to_string());
    text(system) + tools.iter().map(tool).sum::<u64>()
}

/// How the estimate stands to what a session's models said so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Gauge {
    /// In thousandths.
    scale: u64,
    /// What was too much once.
    too_much: Option<u64>,
}

impl Default for Gauge {
    fn default() -> Self {
        Self { scale: ONE, too_much: None }
    }
}

impl Gauge {
    /// What was estimated so was counted so by a provider.
    pub(crate) fn heard(&mut self, estimated: u64, counted: u64) {
        if let Some(scale) = counted.saturating_mul(ONE).checked_div(estimated) {
            self.scale = scale.clamp(*SCALE.start(), *SCALE.end());
        }
    }

    /// What was estimated so was too much.
    pub(crate) fn overflowed(&mut self, estimated: u64) {
        self.too_much = Some(self.too_much.map_or(estimated, |known| known.min(estimated)));
    }

    /// How much fits, as it is estimated; nothing where neither the settings nor an overflow say.
    pub(crate) fn fits(&self, window: Option<u64>) -> Option<u64> {
        let window = window.map(|window| window.saturating_mul(ONE) / self.scale);
        window.into_iter().chain(self.too_much).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn chinese_is_a_token_a_character_and_latin_a_quarter() {
        let check = |words: &str, tokens: u64| assert_eq!(text(words), tokens, "{words}");
        check("", 0);
        check("灯塔看守人", 5);
        check("lighthouse!!", 3);
        check("灯塔 is lit", 4);
        check("привет", 3);
        check("a", 1);
    }

    #[test]
    fn what_a_provider_counts_corrects_within_bounds_and_an_overflow_is_remembered() {
        let mut gauge = Gauge::default();
        assert_eq!((gauge.fits(None), gauge.fits(Some(1000))), (None, Some(1000)));
        gauge.heard(100, 200);
        assert_eq!(gauge.fits(Some(1000)), Some(500));
        gauge.heard(100_000, 7);
        assert_eq!(gauge.fits(Some(1000)), Some(2000), "a server that says anything is not believed");
        gauge.heard(0, 7);
        gauge.overflowed(900);
        gauge.overflowed(1200);
        assert_eq!((gauge.fits(None), gauge.fits(Some(1000))), (Some(900), Some(900)));
    }

    #[test]
    fn calls_and_results_count() {
        let size = |content: serde_json::Value| {
            message(&serde_json::from_value(json!({"role": "user", "content": content})).unwrap())
        };
        let call = json!([{"type": "tool_use", "id": "a", "name": "t", "input": {"text": "x".repeat(400)}}]);
        let result = json!([{"type": "tool_result", "tool_use_id": "a", "content": "x".repeat(400)}]);
        assert!(size(call) > 100 && size(result) > 100 && size(json!([])) == MESSAGE_TOKENS);
    }

    proptest! {
        #[test]
        fn a_beginning_has_no_more_than_it_may(words in "\\PC{0,80}", max in 0_u64..40) {
            let cut = beginning(&words, max);
            prop_assert!(words.starts_with(cut) && text(cut) <= max);
            prop_assert!(cut == words || text(&words) >= max || max == 0 || words.chars().count() > 0);
        }
    }
}
