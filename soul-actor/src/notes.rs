//! Notes: what she wants to find again, a file a day, each with a number that stays its own.
//!
//! ```text
//!  memory/2026-11-30.md
//!
//!  ## 1 user 2026-11-30T14:32:11Z
//!
//!  Ada plays the cello on Thursdays.
//!
//!  ## 2 lesson 2026-11-30T15:01:40Z outside
//!
//!  …
//! ```
//!
//! Appending never changes a byte that is there, and what was written reads back the same, as with every file of entries.
//! The number stands in the heading and not in the order, so a note that a person takes out renames no other. Which day a
//! file is of follows the person's zone; the instant is UTC. `outside` says that the words stem from outside.

use std::fmt;

use ipc::digest::sha256_hex;
use jiff::{Timestamp, civil::Date};

use crate::{
    document::{self, Document},
    entries::{escape, unescape},
    sheet::trimmed,
};

/// The longest note, in characters: a few sentences. What is longer is an entry of the journal.
pub(crate) const NOTE_CHARS_MAX: usize = 1000;

/// How the heading of a note ends whose words stem from outside.
const OUTSIDE: &str = " outside";

/// How many characters of a digest tell two wordings apart.
const WORDING_DIGITS: usize = 12;

/// What a note is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum About {
    /// Herself.
    Oneself,
    /// Her person.
    User,
    /// What was spoken of.
    Talk,
    /// What she learnt.
    Lesson,
    /// What somebody prefers.
    Pref,
}

impl About {
    /// All of them, as tools and files name them.
    pub(crate) const NAMES: [&str; 5] = ["self", "user", "talk", "lesson", "pref"];
    const ALL: [Self; 5] = [Self::Oneself, Self::User, Self::Talk, Self::Lesson, Self::Pref];

    /// As tools and files name it.
    pub(crate) const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// The one of that name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|about| about.name() == name)
    }
}

/// Which note: the day and its number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Address {
    /// The day.
    pub(crate) day: Date,
    /// The number, from 1.
    pub(crate) number: u32,
}

impl Address {
    /// Reads an address as it is shown, or as somebody shortens it: `memory/2026-11-30.md#3`, `2026-11-30#3`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{}` names no note; write it as `soul_recall` shows it: `memory/2026-11-30.md#3`",
                ipc::text::one_line(text, 60)
            )
        };
        let text = trimmed(text).trim_matches(['`', '[', ']']);
        let (file, number) = text.rsplit_once('#').ok_or_else(wrong)?;
        let file = ["memory/", "notes/"].iter().find_map(|folder| file.strip_prefix(folder)).unwrap_or(file);
        let day = document::day(file.strip_suffix(".md").unwrap_or(file)).map_err(|_| wrong())?;
        Ok(Self { day, number: number_of(number).ok_or_else(wrong)? })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", Document::Notes(self.day), self.number)
    }
}

/// A note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Note {
    /// Which.
    pub(crate) address: Address,
    /// What it is about.
    pub(crate) about: About,
    /// When it was written.
    pub(crate) at: Timestamp,
    /// Whether its words stem from outside.
    pub(crate) outside: bool,
    /// What it says.
    pub(crate) text: String,
}

impl Note {
    /// A name for this wording under this address: hits are of words, so one that is rewritten by hand begins anew.
    pub(crate) fn wording(&self) -> String {
        let said = format!("{}\n{}", self.about.name(), self.text);
        sha256_hex(said.as_bytes()).chars().take(WORDING_DIGITS).collect()
    }
}

/// The file's new bytes with one more note, and its number.
pub(crate) fn append(
    day: Date,
    old: &[u8],
    (about, outside): (About, bool),
    at: Timestamp,
    text: &str,
) -> (Vec<u8>, Address) {
    let known = String::from_utf8_lossy(old);
    let numbers = known.split('\n').filter_map(heading).map(|heading| heading.number);
    let number = numbers.max().unwrap_or(0).saturating_add(1);
    let mut bytes = old.to_vec();
    match bytes.last() {
        None => {}
        Some(b'\n') => bytes.push(b'\n'),
        Some(_) => bytes.extend_from_slice(b"\n\n"),
    }
    let mark = if outside { OUTSIDE } else { "" };
    let heading = format!("## {number} {} {at:.0}{mark}", about.name());
    bytes.extend_from_slice(format!("{heading}\n\n{}\n", escape(trimmed(text))).as_bytes());
    (bytes, Address { day, number })
}

/// The notes of a day's file, in its order. What stands before the first heading is none, and of two with one number the
/// first is the one that has it.
pub(crate) fn read(day: Date, text: &str) -> Vec<Note> {
    let mut found: Vec<(Heading, Vec<&str>)> = Vec::new();
    for line in text.split('\n') {
        match (heading(line), found.last_mut()) {
            (Some(heading), _) => found.push((heading, vec![])),
            (None, Some((_, lines))) => lines.push(line),
            (None, None) => {}
        }
    }
    let mut notes: Vec<Note> = Vec::new();
    for (heading, lines) in found {
        let Heading { number, about, at, outside } = heading;
        let address = Address { day, number };
        if notes.iter().all(|known| known.address != address) {
            let text = unescape(trimmed(&lines.join("\n")));
            notes.push(Note { address, about, at, outside, text });
        }
    }
    notes
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Heading {
    number: u32,
    about: About,
    at: Timestamp,
    outside: bool,
}

fn heading(line: &str) -> Option<Heading> {
    let line = line.strip_prefix("## ")?.trim_end_matches('\r');
    let (line, outside) = line.strip_suffix(OUTSIDE).map_or((line, false), |line| (line, true));
    let mut words = line.split(' ');
    let (number, about, at) = (words.next()?, words.next()?, words.next()?);
    let (number, about) = (number_of(number)?, About::named(about)?);
    words.next().is_none().then_some(Heading { number, about, at: at.parse().ok()?, outside })
}

/// A number as it is written, with nothing around it.
fn number_of(text: &str) -> Option<u32> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    text.parse().ok().filter(|_| plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn day() -> Date {
        "2026-11-30".parse().unwrap()
    }

    fn at() -> Timestamp {
        "2026-11-30T14:32:11.7Z".parse().unwrap()
    }

    #[test]
    fn the_form_is_pinned_and_numbers_go_on_from_the_highest() {
        let (bytes, first) = append(day(), b"", (About::User, false), at(), " Ada plays the cello.\n");
        assert_eq!(
            String::from_utf8(bytes.clone()).unwrap(),
            "## 1 user 2026-11-30T14:32:11Z\n\nAda plays the cello.\n"
        );
        let (bytes, second) = append(day(), &bytes, (About::Oneself, true), at(), "我喜欢雾。");
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.ends_with("\n\n## 2 self 2026-11-30T14:32:11Z outside\n\n我喜欢雾。\n"), "{text}");
        assert_eq!((first.to_string(), second.number), ("memory/2026-11-30.md#1".to_owned(), 2));
        let notes = read(day(), &text);
        assert_eq!((notes.len(), notes[0].outside, notes[1].outside), (2, false, true));
        // a person took the first one out, and the second is still the second
        let (_, rest) = text.split_once("cello.\n\n").unwrap();
        assert_eq!(read(day(), rest)[0].address.number, 2);
        let (_, third) = append(day(), rest.as_bytes(), (About::Talk, false), at(), "x");
        assert_eq!(third.number, 3);
    }

    #[test]
    fn an_address_is_read_as_it_is_shown_and_as_it_is_shortened() {
        let address = Address { day: day(), number: 3 };
        for text in [
            "memory/2026-11-30.md#3",
            " `2026-11-30#3` ",
            "notes/2026-11-30#3",
            "[memory/2026-11-30#3]",
            &address.to_string(),
        ] {
            assert_eq!(Address::parse(text), Ok(address), "{text}");
        }
        for wrong in [
            "",
            "3",
            "#3",
            "memory/2026-11-30.md",
            "2026-11-30#",
            "2026-11-30#0",
            "2026-11-30#03",
            "2026-11-30#+3",
            "../x#1",
        ] {
            assert!(Address::parse(wrong).unwrap_err().contains("soul_recall"), "{wrong}");
        }
    }

    #[test]
    fn another_wording_has_another_name() {
        let note = |about, text: &str| Note {
            address: Address { day: day(), number: 1 },
            about,
            at: at(),
            outside: false,
            text: text.into(),
        };
        assert_eq!(note(About::User, "x").wording(), note(About::User, "x").wording());
        assert_ne!(note(About::User, "x").wording(), note(About::User, "y").wording());
        assert_ne!(note(About::User, "x").wording(), note(About::Pref, "x").wording());
    }

    proptest! {
        #[test]
        fn what_was_there_stays_byte_for_byte_and_the_new_reads_back(
            old in prop::collection::vec(any::<u8>(), 0..60),
            pieces in prop::collection::vec(prop::collection::vec(prop_oneof![
                any::<String>(),
                prop::sample::select(&["\n", "\r", "\u{2028}", "## ", "##", "\\", "## 1 self 2026-11-30T14:32:11Z",
                    "## 7 user 2026-11-30T14:32:11Z outside\n", "## 11:11:11", "灯塔"][..]).prop_map(str::to_owned)], 1..8), 1..4),
            outside in any::<bool>(),
        ) {
            let mut bytes = old;
            let mut written = Vec::new();
            for pieces in pieces {
                let text = pieces.concat();
                let before = bytes.clone();
                let (after, address) = append(day(), &before, (About::Lesson, outside), at(), &text);
                prop_assert!(after.starts_with(&before));
                written.push((address, trimmed(&text).to_owned()));
                bytes = after;
            }
            let notes = read(day(), &String::from_utf8_lossy(&bytes));
            let new = &notes[notes.len() - written.len()..];
            for (note, (address, text)) in new.iter().zip(&written) {
                prop_assert_eq!((&note.address, &note.text, note.outside), (address, text, outside));
            }
        }
    }
}
