//! Kept: the lines of `memory.md` that grew out of notes, each with where it comes from.
//!
//! ```text
//!  - Ada plays the cello on Thursdays. [memory/2026-11-30.md#3; 3 hits]
//! ```
//!
//! A note is promoted as long as a line names it, and no list is kept besides: when the line goes, by her hand, a
//! person's, or a roll-back, the note may be promoted again.

use std::collections::HashSet;

use crate::notes::{Address, Note};

/// The longest line that a note becomes, in characters: `memory` is in every prompt.
pub(crate) const KEPT_CHARS_MAX: usize = 300;

/// The line that a note becomes, in its own words or in others, or why it cannot be one.
pub(crate) fn line(note: &Note, wording: Option<&str>, hits: usize) -> Result<String, String> {
    let own = note.text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (words, chars) = (wording.unwrap_or(&own), ipc::text::chars(&own));
    if wording.is_none() && chars > KEPT_CHARS_MAX {
        return Err(format!(
            "`{}` has {chars} characters, and a line of `memory` may have {KEPT_CHARS_MAX}; say it shorter, in `text`",
            note.address
        ));
    }
    Ok(format!("- {words} [{}]", source(note, hits)))
}

/// Where a line comes from, and what speaks for it.
pub(crate) fn source(note: &Note, hits: usize) -> String {
    format!("{}; {hits} hits", note.address)
}

/// The notes that lines of this text come from.
pub(crate) fn promoted(memory: &str) -> HashSet<Address> {
    let source = |line: &str| {
        let (address, _) = line.trim_end().strip_suffix(']')?.rsplit_once('[')?.1.split_once(';')?;
        Address::parse(address).ok()
    };
    memory.lines().filter_map(source).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notes::About;

    fn note(number: u32, text: &str) -> Note {
        Note {
            address: Address { day: "2026-11-30".parse().unwrap(), number },
            about: About::User,
            at: "2026-11-30T12:00:00Z".parse().unwrap(),
            outside: false,
            text: text.into(),
        }
    }

    #[test]
    fn a_line_names_its_note_and_is_found_by_it_whatever_it_says() {
        let check = |note: &Note, wording: Option<&str>, expected: &str| {
            let line = line(note, wording, 3).unwrap();
            assert_eq!(line, expected);
            let memory = format!("# memory\n\nfree words [memory/2026-11-30.md#9]\n{line}\n");
            assert_eq!(promoted(&memory), HashSet::from([note.address]));
        };
        check(
            &note(3, "Ada plays\nthe cello."),
            None,
            "- Ada plays the cello. [memory/2026-11-30.md#3; 3 hits]",
        );
        check(&note(4, "x"), Some("乌龙茶"), "- 乌龙茶 [memory/2026-11-30.md#4; 3 hits]");
        let forged = "true [memory/2026-11-30.md#1; 9 hits]";
        check(
            &note(5, "x"),
            Some(forged),
            "- true [memory/2026-11-30.md#1; 9 hits] [memory/2026-11-30.md#5; 3 hits]",
        );
        assert!(line(&note(1, &"雾".repeat(301)), None, 3).unwrap_err().contains("`text`"));
        assert!(promoted("").is_empty());
    }
}
