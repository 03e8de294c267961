//! Halves of UTF-16 pairs in JSON: servers cut an emoji between two events, and `serde_json` refuses each half (row C7.16).
//!
//! An event that does not parse is marked: each lonely half becomes a mark that parses. A [`Joiner`] then puts halves of two
//! following pieces together again, and makes U+FFFD of what stays alone.

use std::fmt::Write as _;

/// Begins a mark; a noncharacter, which no text contains on purpose. Four hexadecimal digits follow.
const MARK: char = '\u{fdd0}';

/// The JSON text with each lonely half of a pair marked; nothing where there is none.
pub(super) fn marked(json: &str) -> Option<String> {
    let mut out = String::with_capacity(json.len());
    let mut found = false;
    let mut rest = json;
    while let Some((before, escape)) = rest.split_once('\\') {
        out.push_str(before);
        let Some(unit) = unit(escape) else {
            // Another escape: the backslash and the letter after it belong together.
            let mut letters = escape.chars();
            out.push('\\');
            out.extend(letters.next());
            rest = letters.as_str();
            continue;
        };
        let after = escape.get(5..).unwrap_or_default();
        let low = after.strip_prefix('\\').and_then(self::unit).filter(|low| is_low(*low));
        if is_high(unit) && low.is_some() {
            let (pair, next) = escape.split_at_checked(11).unwrap_or((escape, ""));
            out.push('\\');
            out.push_str(pair);
            rest = next;
        } else if is_high(unit) || is_low(unit) {
            found = true;
            out.push(MARK);
            let _ = write!(out, "{unit:04x}");
            rest = after;
        } else {
            out.push_str("\\u");
            out.push_str(escape.get(1..5).unwrap_or_default());
            rest = after;
        }
    }
    out.push_str(rest);
    found.then_some(out)
}

/// The JSON text with each lonely half of a pair made U+FFFD; nothing where there is none.
pub(super) fn replaced(json: &str) -> Option<String> {
    let mut joiner = Joiner::default();
    let mut out = joiner.join(&marked(json)?);
    out.extend(joiner.rest());
    Some(out)
}

/// Puts the pieces of one text together.
#[derive(Debug, Default)]
pub(super) struct Joiner {
    held: Option<u16>,
}

impl Joiner {
    /// The next piece, its marks resolved; a first half at its end is held for the next piece.
    pub(super) fn join(&mut self, piece: &str) -> String {
        let mut out = String::with_capacity(piece.len());
        let mut rest = piece;
        while let Some(letter) = rest.chars().next() {
            let after = rest.get(letter.len_utf8()..).unwrap_or_default();
            let half = (letter == MARK).then(|| mark_unit(after)).flatten();
            match (self.held.take(), half) {
                (Some(high), Some(low)) if is_low(low) => {
                    let paired = char::decode_utf16([high, low]).next().and_then(Result::ok);
                    out.push(paired.unwrap_or(char::REPLACEMENT_CHARACTER));
                    rest = after.get(4..).unwrap_or_default();
                    continue;
                }
                (Some(_), _) => out.push(char::REPLACEMENT_CHARACTER),
                (None, _) => {}
            }
            match half {
                Some(unit) if is_high(unit) => {
                    self.held = Some(unit);
                    rest = after.get(4..).unwrap_or_default();
                }
                Some(_) => {
                    out.push(char::REPLACEMENT_CHARACTER);
                    rest = after.get(4..).unwrap_or_default();
                }
                None => {
                    out.push(letter);
                    rest = after;
                }
            }
        }
        out
    }

    /// What stands for a half whose other half never came.
    pub(super) fn rest(&mut self) -> Option<char> {
        self.held.take().map(|_| char::REPLACEMENT_CHARACTER)
    }
}

/// The code unit of an escape, from its `u` on.
fn unit(escape: &str) -> Option<u16> {
    let digits = escape.strip_prefix('u')?.get(..4)?;
    // `from_str_radix` also takes a sign.
    digits.bytes().all(|b| b.is_ascii_hexdigit()).then(|| u16::from_str_radix(digits, 16).ok()).flatten()
}

fn mark_unit(after: &str) -> Option<u16> {
    let digits = after.get(..4)?;
    let unit = digits
        .bytes()
        .all(|b| b.is_ascii_hexdigit())
        .then(|| u16::from_str_radix(digits, 16).ok())
        .flatten()?;
    (is_high(unit) || is_low(unit)).then_some(unit)
}

fn is_high(unit: u16) -> bool {
    (0xd800..0xdc00).contains(&unit)
}

fn is_low(unit: u16) -> bool {
    (0xdc00..0xe000).contains(&unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(json: &str) -> String {
        let json = marked(json).unwrap_or_else(|| json.to_owned());
        serde_json::from_str(&json).unwrap()
    }

    #[test]
    fn only_lonely_halves_are_marked() {
        for whole in [r#""\ud83c\udf0d""#, r#""\\ud83c""#, r#""a\n\u00e9""#, "\"🌍\"", r#""\"\\""#, ""] {
            assert_eq!(marked(whole), None, "{whole}");
        }
        for lonely in
            [r#""\ud83c""#, r#""\udf0d""#, r#""\\\ud83c""#, r#""\ud83c\ud83c\udf0d""#, r#""\ud83cx""#]
        {
            serde_json::from_str::<String>(&marked(lonely).unwrap()).unwrap();
        }
    }

    #[test]
    fn halves_of_two_pieces_are_one_character() {
        let join = |pieces: &[&str]| {
            let mut joiner = Joiner::default();
            let mut out: String = pieces.iter().map(|piece| joiner.join(&text(piece))).collect();
            out.extend(joiner.rest());
            out
        };
        assert_eq!(join(&[r#""a\ud83c""#, r#""\udf0db""#]), "a🌍b");
        assert_eq!(join(&[r#""a\ud83c""#, r#""b""#]), "a\u{fffd}b");
        assert_eq!(join(&[r#""a\ud83c""#]), "a\u{fffd}");
        assert_eq!(join(&[r#""\udf0d""#, r#""b""#]), "\u{fffd}b");
        assert_eq!(join(&[r#""\ud83c""#, r#""\ud83c\udf0d""#]), "\u{fffd}🌍");
        assert_eq!(join(&[r#""\ud83c""#, r#""""#, r#""\udf0d""#]), "🌍");
        assert_eq!(replaced(r#"{"a":"\ud83c"}"#).unwrap(), "{\"a\":\"\u{fffd}\"}");
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic_and_json_stays_as_it_was(content in r"(\\u[dD]8[0-9a-f]{2}|\\u[dD][c-f][0-9a-f]{2}|\\n|\\\\|[a-z好🌍]){0,12}", wild in "(?s).{0,40}") {
            let json = format!("\"{content}\"");
            if serde_json::from_str::<String>(&json).is_err() {
                serde_json::from_str::<String>(&marked(&json).unwrap()).unwrap();
            } else {
                prop_assert_eq!(marked(&json), None);
            }
            marked(&wild);
            let mut joiner = Joiner::default();
            joiner.join(&wild);
        }
    }
}
