//! Counting and cutting text as a reader sees it: characters are Unicode scalar values, cuts fall between graphemes.

mod alike;
mod sought;

use unicode_segmentation::UnicodeSegmentation;

pub use alike::{asks_the_same, gist, is_unspaced, plain};
pub use sought::Sought;

/// How many characters (Unicode scalar values) `text` has; the unit of every budget.
pub fn chars(text: &str) -> usize {
    text.chars().count()
}

/// The longest beginning of `text` with at most `chars_max` characters that does not end inside a grapheme.
pub fn prefix(text: &str, chars_max: usize) -> &str {
    let mut kept = 0;
    let mut end = 0;
    for (start, grapheme) in text.grapheme_indices(true) {
        kept += chars(grapheme);
        if kept > chars_max {
            break;
        }
        end = start + grapheme.len();
    }
    text.get(..end).unwrap_or(text)
}

/// `text` on one line of at most `chars_max` characters: white space and control characters become one blank,
/// and an ellipsis says where it was cut.
pub fn one_line(text: &str, chars_max: usize) -> String {
    let spaced: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let line = spaced.split_whitespace().collect::<Vec<_>>().join(" ");
    if chars(&line) <= chars_max {
        return line;
    }
    format!("{}…", prefix(&line, chars_max.saturating_sub(1)))
}

/// Whether `text` shows nothing: white space, control characters, and characters that are there without being seen
/// (zero-width ones, direction marks, fillers).
pub fn is_blank(text: &str) -> bool {
    text.chars().all(|c| {
        c.is_whitespace()
            || c.is_control()
            || is_direction(c)
            || matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
                | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{206a}'..='\u{206f}'
                | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{e0000}'..='\u{e0fff}')
    })
}

/// Whether a character changes the direction of the text behind it, and so can make it look like another.
pub fn is_direction(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The nearest of `known` to what was typed, where one is near enough to be worth suggesting.
pub fn nearest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let typed = typed.to_lowercase();
    known
        .into_iter()
        .map(|name| (strsim::jaro_winkler(&typed, &name.to_lowercase()), name))
        .filter(|(similarity, _)| *similarity > 0.75)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_never_falls_inside_a_grapheme() {
        let check = |text: &str, max: usize, expected: &str| assert_eq!(prefix(text, max), expected);
        check("灯塔看守人", 2, "灯塔");
        check("e\u{301}a", 1, "");
        check("e\u{301}a", 2, "e\u{301}");
        check("👩‍👩‍👧 hums", 4, "");
        check("👩‍👩‍👧 hums", 6, "👩‍👩‍👧 ");
        check("short", 80, "short");
    }

    #[test]
    fn one_line_is_one_line() {
        assert_eq!(one_line("a\n\n b\tc\u{7}d", 80), "a b c d");
        assert_eq!(one_line("一二三四五", 3), "一二…");
    }

    #[test]
    fn what_shows_nothing_is_blank() {
        for blank in ["", " \n\t", "\u{200b}\u{3000}\n", "\u{202e}\u{feff}", "\0\u{1b}", "\u{3164}\u{ad}"] {
            assert!(is_blank(blank), "{blank:?}");
        }
        for seen in ["a", "灯", "\u{200d}👩", ".", "\u{202e}x"] {
            assert!(!is_blank(seen), "{seen:?}");
        }
    }

    #[test]
    fn a_slip_of_the_finger_finds_the_word_that_was_meant() {
        assert_eq!(nearest("identty", ["identity", "purpose"]), Some("identity"));
        assert_eq!(nearest("IDENTITY", ["identity", "purpose"]), Some("identity"));
        assert_eq!(nearest("zzz", ["identity", "purpose"]), None);
    }
}
