//! Hits: in which conversations a note was recalled, which is all that lets it into `memory.md`.
//!
//! ```text
//!  {"at":"…","note":"memory/2026-11-30.md#3","of":"1f0c22ab90de","session":"20261130-143211-ab12cd"}     memory/hits.jsonl
//! ```
//!
//! A line is added and never changed. One conversation counts once for a note, however often it is recalled there, so that
//! asking three times in a row proves nothing; and a hit is of the words that were recalled (`of`), not of the place. It
//! is a file of the self like any other, so a roll-back takes it along. What is no line of ours is kept and counts for
//! nothing. With more than [`BYTES_MAX`], the older half leaves; git has it.

use std::collections::{HashMap, HashSet};

use ipc::{lines, text::one_line};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::notes::Note;

/// How long the file may be, in bytes, before half of it leaves: years of recalls, and well below what is read at all.
const BYTES_MAX: usize = 1024 * 1024;

/// The longest name of a session, in characters.
const SESSION_CHARS_MAX: usize = 120;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Line {
    at: Timestamp,
    note: String,
    of: String,
    session: String,
}

/// What the file says.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hits {
    bytes: Vec<u8>,
    /// By note and wording, the sessions.
    of: HashMap<(String, String), HashSet<String>>,
}

impl Hits {
    /// Reads the file.
    pub(crate) fn read(bytes: Vec<u8>) -> Self {
        let mut of: HashMap<_, HashSet<_>> = HashMap::new();
        for line in lines::parse::<Line>(&bytes) {
            of.entry((line.note, line.of)).or_default().insert(line.session);
        }
        Self { bytes, of }
    }

    /// In how many conversations a note was recalled.
    pub(crate) fn count(&self, note: &Note) -> usize {
        self.of.get(&key(note)).map_or(0, HashSet::len)
    }

    /// Counts that these notes were recalled in a session; whether that was new of any of them.
    pub(crate) fn add(&mut self, notes: &[&Note], session: &str, now: Timestamp) -> bool {
        let session = one_line(session, SESSION_CHARS_MAX);
        let mut is_new = false;
        for note in notes {
            let key = key(note);
            if !self.of.entry(key.clone()).or_default().insert(session.clone()) {
                continue;
            }
            is_new = true;
            // what stands there without an end is torn, and is not to be continued
            if self.bytes.last().is_some_and(|last| *last != b'\n') {
                self.bytes.push(b'\n');
            }
            let line = Line { at: now, note: key.0, of: key.1, session: session.clone() };
            serde_json::to_writer(&mut self.bytes, &line).expect("a line of ours is JSON");
            self.bytes.push(b'\n');
        }
        if is_new && self.bytes.len() > BYTES_MAX {
            let lines: Vec<&[u8]> = self.bytes.split_inclusive(|byte| *byte == b'\n').collect();
            *self = Self::read(lines[lines.len() / 2..].concat());
        }
        is_new
    }

    /// The file's bytes.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

fn key(note: &Note) -> (String, String) {
    (note.address.to_string(), note.wording())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notes::{About, Address};

    fn note(number: u32, text: &str) -> Note {
        Note {
            address: Address { day: "2026-11-30".parse().unwrap(), number },
            about: About::User,
            at: now(),
            outside: false,
            text: text.into(),
        }
    }

    fn now() -> Timestamp {
        "2026-11-30T12:00:00Z".parse().unwrap()
    }

    #[test]
    fn a_conversation_counts_once_for_a_note_and_for_its_words() {
        let (cello, tea) = (note(1, "cello"), note(2, "tea"));
        let mut hits = Hits::default();
        assert!(hits.add(&[&cello, &tea], "a", now()));
        assert!(!hits.add(&[&cello], "a", now()), "the same conversation");
        assert!(hits.add(&[&cello], "b\n", now()));
        let hits = Hits::read(hits.into_bytes());
        assert_eq!((hits.count(&cello), hits.count(&tea)), (2, 1));
        assert_eq!(hits.count(&note(1, "the cello")), 0, "other words");
        assert_eq!(hits.count(&note(3, "cello")), 0, "another note");
        assert_eq!(String::from_utf8(hits.into_bytes()).unwrap().lines().count(), 3);
    }

    #[test]
    fn what_is_torn_or_strange_is_kept_and_counts_for_nothing() {
        let mut hits = Hits::default();
        hits.add(&[&note(1, "cello")], "a", now());
        let whole = hits.into_bytes();
        let strange = b"{\"note\":\"memory/2026-11-30.md#1\"}\n\xff\xfe\n".to_vec();
        let torn = [strange.as_slice(), &whole, &whole[..whole.len() / 2]].concat();
        let mut hits = Hits::read(torn.clone());
        assert_eq!(hits.count(&note(1, "cello")), 1);
        assert!(hits.add(&[&note(1, "cello")], "b", now()));
        let bytes = hits.into_bytes();
        assert!(bytes.starts_with(&torn));
        assert_eq!(Hits::read(bytes).count(&note(1, "cello")), 2);
    }

    #[test]
    fn the_file_never_grows_beyond_its_bound() {
        let mut hits = Hits::read(b"\n".repeat(BYTES_MAX));
        assert!(hits.add(&[&note(1, "cello")], "a", now()));
        assert!(hits.bytes.len() < BYTES_MAX * 3 / 4 && hits.count(&note(1, "cello")) == 1);
    }
}
