//! Blame: which commit a line comes from.
//!
//! There are two ways to the same answer, because both compare the same pairs of versions in the same way: [`Trace`]
//! follows one line back through the versions of its file and costs as many as it passes; [`Annotation`] is kept for all
//! lines of the newest version, and is carried forward by one comparison a version.
//!
//! Lines end at a line feed, as for git and every editor; a carriage return before it belongs to the ending, so that a
//! change of line endings alone takes no line away from whoever wrote it.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

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

    /// Which line it is now, from 0.
    pub(crate) fn at(&self) -> usize {
        self.at
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
        let Some(at) = came_from(older, &self.version, self.at) else { return false };
        self.at = at;
        self.version = older.to_vec();
        true
    }
}

/// Where line `at` of a version was in an older one; nowhere if it is new.
pub(crate) fn came_from(older: &[u8], version: &[u8], at: usize) -> Option<usize> {
    compare(&lines(older), &lines(version)).into_iter().find_map(|op| match op {
        DiffOp::Equal { old_index, new_index, len } => {
            let into = at.checked_sub(new_index).filter(|into| *into < len)?;
            Some(old_index + into)
        }
        DiffOp::Delete { .. } | DiffOp::Insert { .. } | DiffOp::Replace { .. } => None,
    })
}

/// For each line of one version of a file the number of the commit that brought it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Annotation {
    lines: Vec<u64>,
}

impl Annotation {
    /// Goes on from the version it is of to the next one, which `commit` made.
    pub(crate) fn step(&mut self, version: &[u8], next: &[u8], commit: u64) {
        let next = lines(next);
        let mut brought = vec![commit; next.len()];
        for op in compare(&lines(version), &next) {
            if let DiffOp::Equal { old_index, new_index, len } = op {
                let known = self.lines.iter().skip(old_index).take(len);
                for (line, known) in brought.iter_mut().skip(new_index).zip(known) {
                    *line = *known;
                }
            }
        }
        self.lines = brought;
    }

    /// The commit that brought line `at`.
    pub(crate) fn commit(&self, at: usize) -> Option<u64> {
        self.lines.get(at).copied()
    }

    /// The commits that brought lines, each once.
    pub(crate) fn commits(&self) -> BTreeSet<u64> {
        self.lines.iter().copied().filter(|number| *number > 0).collect()
    }

    /// Whether it can be of that version, as far as the number of lines tells.
    pub(crate) fn fits(&self, version: &[u8]) -> bool {
        self.lines.len() == lines(version).len()
    }

    /// As bytes: runs of lines from one commit, each as two numbers, seven bits a byte.
    pub(crate) fn pack(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for run in self.lines.chunk_by(|one, other| one == other) {
            push_number(&mut bytes, run.len() as u64);
            push_number(&mut bytes, run.first().copied().unwrap_or_default());
        }
        bytes
    }

    /// From bytes, if they are an annotation of at most `lines_max` lines.
    pub(crate) fn unpack(mut bytes: &[u8], lines_max: usize) -> Option<Self> {
        let mut lines = Vec::new();
        while !bytes.is_empty() {
            let count = usize::try_from(take_number(&mut bytes)?).ok()?;
            let commit = take_number(&mut bytes)?;
            if count > lines_max - lines.len() {
                return None;
            }
            lines.resize(lines.len() + count, commit);
        }
        Some(Self { lines })
    }
}

fn push_number(bytes: &mut Vec<u8>, mut number: u64) {
    loop {
        let low = u8::try_from(number & 0x7f).expect("seven bits fit into a byte");
        number >>= 7;
        bytes.push(if number == 0 { low } else { low | 0x80 });
        if number == 0 {
            break;
        }
    }
}

fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for place in 0..10 {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f).checked_shl(7 * place)?;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
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

    #[test]
    fn what_is_no_annotation_is_not_read_as_one() {
        let annotation = Annotation { lines: vec![1, 1, u64::MAX, 300, 300] };
        let bytes = annotation.pack();
        assert_eq!(Annotation::unpack(&bytes, 5).as_ref(), Some(&annotation));
        assert_eq!(Annotation::unpack(&bytes, 4), None, "it has more lines than are wanted");
        assert_eq!(Annotation::unpack(bytes.split_last().unwrap().1, 5), None, "it is cut off");
        assert_eq!(Annotation::unpack(&[0xff; 12], 5), None, "no number is so long");
        assert_eq!(Annotation::unpack(&[], 5), Some(Annotation::default()));
        assert!(annotation.fits(b"a\nb\nc\nd\ne\n") && !annotation.fits(b"a\n"));
    }

    proptest! {
        #[test]
        fn carried_forward_or_followed_back_a_line_comes_from_the_same_commit(
            versions in prop::collection::vec(prop::collection::vec("[a-d]\r?", 0..12), 1..12)
        ) {
            let versions: Vec<_> = versions.iter().map(|lines| lines.join("\n")).collect();
            let (mut annotation, mut before) = (Annotation::default(), "");
            for (commit, version) in versions.iter().enumerate() {
                annotation.step(before.as_bytes(), version.as_bytes(), commit as u64);
                before = version;
            }
            prop_assert!(annotation.fits(before.as_bytes()));
            let newest_first: Vec<_> = versions.iter().rev().map(String::as_str).collect();
            for at in 0..lines(before.as_bytes()).len() {
                let back = versions.len() - 1 - born(&newest_first, at);
                prop_assert_eq!(annotation.commit(at), Some(back as u64), "line {}", at);
            }
            prop_assert_eq!(Annotation::unpack(&annotation.pack(), 12), Some(annotation));
        }

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
