//! The person's own words inside of a command: what they mean by it, without what only closes the sentence.

use std::sync::LazyLock;

use regex::Regex;

use super::{
    super::quotes,
    Language::{self, Chinese, English},
    pattern, sentences,
};

/// How strictly a person's words are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Care {
    /// Prose: anything may be said.
    Prose,
    /// What she holds: it may well begin with `never`, but courtesies are none of it.
    Held,
    /// What she becomes: words that ask or take back are none.
    Own,
}

/// The person's words without what closes a sentence; nothing where they say nothing, ask, or take it back.
pub(super) fn own_words(it: &str, it_hidden: &str, language: Language, care: Care) -> Option<String> {
    static COURTESY: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?:[\s,，.!。！]+(?:please|thanks|thank you|ok|okay|would you|will you|could you|can you|right)|[\s,，.!。！]*(?:好吗|好嗎|可以吗|可以嗎|行吗|行嗎|好不好|行不行|可不可以|谢谢|謝謝|吗|嗎)|[,，]吧)[\s.!?。！？~～]*$",
        )
    });
    static NOTHING: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"^(?:this|that|it|something|anything|an? (?:new )?(?:entry|note)|entry|一下|点什么|一点|吧|吗|呢|的)?$",
        )
    });
    static TAKEN_BACK: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"^(?:what|who|which|whom|how|not|never|don['’]t|no longer|anything but)\b|^(?:什么|什麼|谁|誰|啥|哪|怎么|怎麼|怎样|怎樣|不要|别|別|勿)",
        )
    });
    const CLOSING: [char; 16] =
        ['.', '!', '?', '。', '！', '？', '…', ';', '；', ',', '，', '、', '~', '～', ':', '：'];
    // Both are cut alike: outside of quotes they have the same letters, and everywhere the same places.
    let mut it = it.trim();
    let mut seen = it_hidden.trim();
    loop {
        let before = it.len();
        let closed = seen.trim_end_matches(|c: char| c.is_whitespace() || CLOSING.contains(&c));
        // The last mark of several sentences is a part of them.
        if sentences(closed).nth(1).is_none() {
            seen = closed;
        }
        if care != Care::Prose {
            if let Some(found) = COURTESY.find(seen) {
                seen = seen.get(..found.start()).unwrap_or(seen);
            }
            let bar = ["酒吧", "网吧", "網吧", "书吧", "書吧", "水吧"].iter().any(|bar| seen.ends_with(bar));
            if language == Chinese && !bar {
                seen = seen.strip_suffix('吧').unwrap_or(seen);
            }
        }
        it = it.get(..seen.len()).unwrap_or(it);
        let bare = quotes::unquoted(it);
        if bare.len() < it.len() {
            it = bare.trim();
            seen = it;
        }
        if it.len() == before {
            break;
        }
    }
    let nothing = NOTHING.is_match(it) || (care == Care::Own && TAKEN_BACK.is_match(it));
    (!nothing).then(|| it.to_owned())
}

/// A wish and its reason: `learn Rust because it is useful`.
pub(super) fn reason(wish: String, language: Language) -> (String, Option<String>) {
    let (because, drop): (&[&str], &[char]) = match language {
        English => (&[" because ", " since it ", ", so that "], &[',', ' ']),
        Chinese => (&["，因为", ",因为", "因为", "，因為", "因為"], &['，', ',', ' ']),
    };
    let found = because.iter().find_map(|word| wish.split_once(word));
    match found {
        Some((what, why)) if !what.trim().is_empty() && !why.trim().is_empty() => {
            (what.trim_end_matches(drop).to_owned(), Some(why.trim().to_owned()))
        }
        Some(_) | None => (wish, None),
    }
}
