//! The name a person is known by here: that of their page in `relationships/`.

use crate::text::{is_blank, is_direction, one_line};

/// The longest name in UTF-16 units, as slugs are counted.
const UNITS_MAX: usize = 64;

/// Whether `name` can be that of a page; else why not, as a sentence with what to do.
pub fn check(name: &str) -> Result<(), String> {
    let shown = one_line(name, 80);
    let refuse = |why: &str| Err(format!("`{shown}` cannot name a person: {why}"));
    if is_blank(name) || name.trim() != name {
        return refuse("it is empty, or begins or ends with a blank; give a short name such as `anna`");
    }
    if name.encode_utf16().count() > UNITS_MAX {
        return refuse("it is longer than 64 characters");
    }
    if name.contains(|c: char| c.is_control() || is_direction(c) || matches!(c, '\u{2028}' | '\u{2029}')) {
        return refuse("it holds a control character; a name is one line");
    }
    if name.contains(['/', '\\']) || name.starts_with('.') {
        return refuse("it holds a slash or begins with a dot; give a name, not a path");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sl1_sl2_a_name_is_one_line_and_no_path() {
        for name in ["anna", "Anna-Maria", "安娜", "a", "uncle bob", &"字".repeat(64)] {
            assert_eq!(check(name), Ok(()), "{name}");
        }
        for name in [
            "",
            " ",
            "\u{200b}",
            " anna",
            "../x",
            "a/b",
            "a\\b",
            ".hidden",
            "a\nb",
            "a\tb",
            "a\0",
            "\u{202e}a",
            &"字".repeat(65),
        ] {
            assert!(check(name).unwrap_err().contains("cannot name a person"), "{name:?}");
        }
    }
}
