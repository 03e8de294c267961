//! What a person looks for, in a few words of any language: whether a text has it, how well, and where.
//!
//! Words are compared as [`super::asks_the_same`] compares them: by their beginnings, and Chinese, Japanese and Korean by
//! pairs of characters. A text that has the words as they were typed is above all that only have their parts.

use super::{
    alike::{Gist, narrow},
    one_line,
};

/// How much of what is looked for a text must have.
const COVERED_MIN: f64 = 0.6;
/// How well a text fits that has it word for word.
const VERBATIM: f64 = 2.0;

/// What is looked for.
#[derive(Debug, Clone)]
pub struct Sought {
    verbatim: Vec<char>,
    gist: Gist,
}

impl Sought {
    /// What a query asks for; nothing where it has neither letter nor digit.
    pub fn of(query: &str) -> Option<Self> {
        let verbatim: Vec<char> = folded(query.trim()).map(|(_, c)| c).collect();
        verbatim.iter().any(|c| c.is_alphanumeric()).then(|| Self { verbatim, gist: Gist::of(query) })
    }

    /// How well a text fits, above 0 and at most 2; nothing where it does not.
    pub fn fit(&self, text: &str) -> Option<f64> {
        if self.place(text).is_some() {
            return Some(VERBATIM);
        }
        let covered = self.gist.covered_by(&Gist::of(text));
        (covered >= COVERED_MIN).then_some(covered)
    }

    /// The part of `text` around what was found, on one line of about `chars_max` characters.
    pub fn excerpt(&self, text: &str, chars_max: usize) -> String {
        let at = self.place(text).or_else(|| self.first_token(text)).unwrap_or_default();
        let before = chars_max / 3;
        let skipped = at.saturating_sub(before);
        let part: String = text.chars().skip(skipped).take(chars_max).collect();
        let cut = text.chars().count() > skipped + chars_max;
        let line = one_line(&part, chars_max);
        format!("{}{line}{}", if skipped > 0 { "…" } else { "" }, if cut { "…" } else { "" })
    }

    /// Where the words stand as they were typed, in characters.
    fn place(&self, text: &str) -> Option<usize> {
        find(text, &self.verbatim)
    }

    fn first_token(&self, text: &str) -> Option<usize> {
        let tokens = self.gist.tokens();
        tokens.filter_map(|token| find(text, &token.chars().collect::<Vec<_>>())).min()
    }
}

/// The characters as they are compared, each with its place in the text.
fn folded(text: &str) -> impl Iterator<Item = (usize, char)> {
    text.chars().enumerate().flat_map(|(at, c)| narrow(c).to_lowercase().map(move |c| (at, c)))
}

fn find(text: &str, wanted: &[char]) -> Option<usize> {
    let first = wanted.first()?;
    let text: Vec<(usize, char)> = folded(text).collect();
    text.windows(wanted.len())
        .find(|window| window[0].1 == *first && window.iter().map(|(_, c)| c).eq(wanted))
        .map(|window| window[0].0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_is_found_in_english_and_in_chinese() {
        let check = |query: &str, text: &str, found: bool| {
            assert_eq!(Sought::of(query).unwrap().fit(text).is_some(), found, "{query:?} in {text:?}");
        };
        check("lighthouse", "She keeps the Lighthouse.", true);
        check("灯塔看守人", "她是那座灯塔的看守人", true);
        check("灯塔", "我想去看灯塔", true);
        check("我的灯塔", "我想去看灯塔", true);
        check("letters to Ada", "Ada got a letter", true);
        check("ＲＵＳＴ", "we learn rust", true);
        check("a", "a", true);
        check("42", "the answer is 42", true);
        check("lighthouse", "a house by the sea", false);
        // words are known by their beginnings; what has them whole stands above
        check("messages", "she is messaging", true);
        check("灯塔", "塔上的灯", false);
        check("delete my diary", "delete my photos", false);
    }

    #[test]
    fn word_for_word_is_above_its_parts_and_nothing_is_no_question() {
        let sought = Sought::of("the old lighthouse").unwrap();
        assert!(sought.fit("in THE OLD LIGHTHOUSE by night") > sought.fit("a lighthouse, and old"));
        for nothing in ["", "  ", "?!", "\u{200b}"] {
            assert!(Sought::of(nothing).is_none(), "{nothing:?}");
        }
    }

    #[test]
    fn an_excerpt_shows_what_was_found_and_never_more_than_it_may() {
        let long = format!("{}灯塔{}", "前".repeat(500), "后".repeat(500));
        let excerpt = Sought::of("灯塔").unwrap().excerpt(&long, 60);
        assert!(
            excerpt.contains("前灯塔后") && excerpt.starts_with('…') && excerpt.ends_with('…'),
            "{excerpt}"
        );
        assert!(excerpt.chars().count() <= 62);
        assert_eq!(Sought::of("a").unwrap().excerpt("a\nb", 60), "a b");
        // İ becomes two characters when it is made small
        assert!(Sought::of("x").unwrap().excerpt(&format!("{}x", "İ".repeat(90)), 30).contains('x'));
    }
}
