//! Blame: which commit a line comes from, found by following the line back through the versions of its file.
//!
//! Lines end at a line feed, as for git and every editor; a carriage return before it belongs to the ending, so that a
//! change of line endings alone takes no line away from whoever wrote it.

use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

/// How many versions of a file are compared; with a few kilobytes each that is well below a second.
pub(crate) const VERSIONS_MAX: usize = 5_000;

/// How long one comparison may take before it becomes approximate; only huge files of noise come near.
const COMPARISON_MAX: Duration = Duration::from_millis(500);

/// The lines of a text, without their endings.
pub(crate) fn lines(text: &[u8]) -> Vec<&[u8]> {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    if text.is_empty() {
        return vec![];
    }
    text.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line)).collect()
}

/// How many lines come and how many go between two versions.
pub(crate) fn counts(old: &[u8], new: &[u8]) -> (u32, u32) {
    let (mut added, mut removed) = (0, 0);
    for op in compare(&lines(old), &lines(new)) {
        if let DiffOp::Insert { .. } | DiffOp::Delete { .. } | DiffOp::Replace { .. } = op {
            added += op.new_range().len();
            removed += op.old_range().len();
        }
    }
    let small = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    (small(added), small(removed))
}

/// One line on its way back.
pub(crate) struct Trace {
    version: Vec<u8>,
    at: usize,
}

impl Trace {
    /// Begins at line `at` (from 0) of the newest version; nothing where there is no such line.
    pub(crate) fn new(version: Vec<u8>, at: usize) -> Option<Self> {
        (at < lines(&version).len()).then_some(Self { version, at })
    }

    /// What the line says.
    pub(crate) fn text(&self) -> String {
        lines(&self.version)
            .get(self.at)
            .map(|line| String::from_utf8_lossy(line).into_owned())
            .unwrap_or_default()
    }

    /// Goes back to an older version, if the line was there already.
    pub(crate) fn step(&mut self, older: &[u8]) -> bool {
        let (old, new) = (lines(older), lines(&self.version));
        let stayed = compare(&old, &new).into_iter().find_map(|op| match op {
            DiffOp::Equal { old_index, new_index, len } => {
                let into = self.at.checked_sub(new_index).filter(|into| *into < len)?;
                Some(old_index + into)
            }
            DiffOp::Delete { .. } | DiffOp::Insert { .. } | DiffOp::Replace { .. } => None,
        });
        let Some(at) = stayed else { return false };
        self.at = at;
        self.version = older.to_vec();
        true
    }
}

fn compare(old: &[&[u8]], new: &[&[u8]]) -> Vec<DiffOp> {
    capture_diff_slices_deadline(Algorithm::Myers, old, new, Some(Instant::now() + COMPARISON_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Follows a line through versions, newest first, and says in which of them it was born.
    fn born(versions: &[&str], at: usize) -> usize {
        let mut trace = Trace::new(versions[0].as_bytes().to_vec(), at).unwrap();
        versions[1..].iter().take_while(|older| trace.step(older.as_bytes())).count()
    }

    #[test]
    fn a_line_is_followed_to_where_it_was_born() {
        let versions = ["new\nI hum.\n我哼歌。\nlast\n", "I hum.\r\n我哼歌。\r\n", "我哼歌。\n", ""];
        let check = |at: usize, version: usize| assert_eq!(born(&versions, at), version, "line {at}");
        check(0, 0);
        check(1, 1);
        check(2, 2);
        check(3, 0);
        assert!(Trace::new(b"one\n".to_vec(), 1).is_none());
        assert!(Trace::new(vec![], 0).is_none());
    }

    #[test]
    fn lines_end_at_a_line_feed_whatever_else_is_in_them() {
        let check = |text: &str, expected: &[&str]| {
            let expected: Vec<_> = expected.iter().map(|line| line.as_bytes()).collect();
            assert_eq!(lines(text.as_bytes()), expected, "{text:?}");
        };
        check("", &[]);
        check("a", &["a"]);
        check("a\r\nb\n", &["a", "b"]);
        check("a\rb\u{2028}c\n\nd", &["a\rb\u{2028}c", "", "d"]);
        assert_eq!(counts(b"a\nb\n", b"a\r\nc\nd\n"), (2, 1));
        assert_eq!(counts("灯\n".as_bytes(), b""), (0, 1));
    }

    proptest! {
        #[test]
        fn a_line_that_is_there_from_the_first_version_on_is_the_firsts(
            before in prop::collection::vec("[a-c]", 0..5), after in prop::collection::vec("[a-c]", 0..5)
        ) {
            let first = "the line\n";
            let second = format!("{}\nthe line\n{}\n", before.join("\n"), after.join("\n"));
            let at = lines(second.as_bytes()).iter().position(|line| *line == b"the line").unwrap();
            prop_assert_eq!(born(&[&second, first], at), 1);
        }
    }
}
