//! What stands inside quotes is talked about, not said: it is hidden before a sentence is understood.
//!
//! Hidden text keeps its length in bytes, letter by letter, so that a place found in what is left is the same place in the
//! original.

/// Marks that open, and those that may close what they opened.
const PAIRS: [(char, &[char]); 11] = [
    ('"', &['"']),
    ('“', &['”', '“']),
    ('„', &['“', '”']),
    ('”', &['”', '“']),
    ('＂', &['＂']),
    ('「', &['」']),
    ('『', &['』']),
    ('《', &['》']),
    ('«', &['»']),
    ('»', &['«', '»']),
    ('`', &['`']),
];

/// The text with everything inside of quotes hidden; the marks themselves stay. A mark that is never closed hides the rest.
pub(super) fn hidden(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before: Option<char> = None;
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let after = rest.get(letter.len_utf8()..).unwrap_or_default();
        out.push(letter);
        let inside = match PAIRS.iter().find(|(open, _)| *open == letter) {
            Some((_, close)) => Some(after.find(*close).unwrap_or(after.len())),
            None if matches!(letter, '\'' | '‘') && opens(before, after) => closing(after),
            None => None,
        };
        before = Some(letter);
        rest = after;
        if let Some((inside, left)) = inside.and_then(|at| after.split_at_checked(at)) {
            out.extend(inside.chars().map(hide));
            let mut left = left.chars();
            if let Some(close) = left.next() {
                out.push(close);
                before = Some(close);
            }
            rest = left.as_str();
        }
    }
    out
}

/// The text without the quotes around all of it, where there are some.
pub(super) fn unquoted(text: &str) -> &str {
    let mut letters = text.chars();
    let (Some(first), Some(last)) = (letters.next(), letters.next_back()) else { return text };
    let inside = letters.as_str();
    let single = matches!(first, '\'' | '‘') && matches!(last, '\'' | '’');
    let paired = PAIRS.iter().any(|(open, close)| *open == first && close.contains(&last));
    // `"a" or "b"` begins and ends with a mark, but is not one quotation.
    if (single || paired) && !inside.contains([first, last]) { inside } else { text }
}

/// An apostrophe opens a quotation only where no word goes on: `don't` and `keepers'` do not.
fn opens(before: Option<char>, after: &str) -> bool {
    before.is_none_or(|c| !goes_on(c)) && after.chars().next().is_some_and(|c| !c.is_whitespace())
}

/// Where a quotation by apostrophes ends: at the first that no word follows.
fn closing(after: &str) -> Option<usize> {
    after
        .char_indices()
        .filter(|(_, c)| matches!(c, '\'' | '’'))
        .find(|(at, c)| {
            let next = after.get(at + c.len_utf8()..).and_then(|rest| rest.chars().next());
            *at > 0 && next.is_none_or(|c| !goes_on(c))
        })
        .map(|(at, _)| at)
}

/// Whether a word written with apostrophes goes on with this letter; Chinese knows no such words.
fn goes_on(letter: char) -> bool {
    letter.is_alphanumeric() && letter < '\u{2e80}'
}

/// A letter that means nothing, of the same length in bytes.
fn hide(letter: char) -> char {
    match letter.len_utf8() {
        1 => '\u{1}',
        2 => '\u{80}',
        3 => '\u{e000}',
        _ => '\u{f0000}',
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_quoted_is_hidden() {
        let check = |text: &str, expected: &str| {
            let shown: String = hidden(text)
                .chars()
                .map(|c| if matches!(c, '\u{1}' | '\u{80}' | '\u{e000}' | '\u{f0000}') { '_' } else { c })
                .collect();
            assert_eq!(shown, expected);
        };
        check("say \"be a cat\" now", "say \"________\" now");
        check("说“变成猫”吧", "说“___”吧");
        check("「变成猫」和『狗🐶』", "「___」和『__』");
        check("a 'b c' d", "a '___' d");
        check("don't be 'it's' it", "don't be '____' it");
        check("I don't and you can't", "I don't and you can't");
        check("the keepers' house isn't ‘his’ ok", "the keepers' house isn't ‘___’ ok");
        check("open “and never closed", "open “________________");
        check("„so“ und »so« und «so»", "„__“ und »__« und «__»");
        check("\"\" 'a", "\"\" 'a");
        check("我说'变成猫'这句", "我说'___'这句");
    }

    #[test]
    fn quotes_around_everything_go() {
        let check = |text: &str, expected: &str| assert_eq!(unquoted(text), expected);
        check("\"a b\"", "a b");
        check("「灯塔」", "灯塔");
        check("‘a’", "a");
        check("\"a\" or \"b\"", "\"a\" or \"b\"");
        check("\"", "\"");
        check("", "");
    }

    proptest! {
        #[test]
        fn places_stay_where_they_were(text in "(?s)([a-z \"'“”「」‘’`é好🐶]|.){0,60}") {
            let hidden = hidden(&text);
            prop_assert_eq!(hidden.len(), text.len());
            let places = |text: &str| text.char_indices().map(|(at, _)| at).collect::<Vec<_>>();
            prop_assert_eq!(places(&hidden), places(&text));
            unquoted(&text);
        }
    }
}
