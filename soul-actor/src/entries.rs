//! Entries: the append-only form of the journal and of a desire's progress.
//!
//! ```text
//!  journal/2026-11-30.md            desires/learn-rust.progress.md
//!
//!  ## 14:32:11                      # progress: learn-rust
//!
//!  text                             ## 2026-11-30T14:32:11.000Z
//!
//!                                   text
//! ```
//!
//! Appending never changes a byte that is there. A line of text that looks like a heading gets one backslash in front,
//! which reading takes away, so an entry can neither end early nor forge another. Instants are UTC; which day a journal
//! file is of follows the person's time zone.

use jiff::{Timestamp, tz::TimeZone};

use crate::sheet::trimmed;

/// The longest entry, in characters; with four bytes each that stays far below a frame.
pub(crate) const ENTRY_CHARS_MAX: usize = 8000;

/// One entry as it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// What stands in its heading.
    pub(crate) at: String,
    /// What it says.
    pub(crate) text: String,
}

/// Which of the two files it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Log<'a> {
    /// A day's journal.
    Journal,
    /// The progress of the desire of that name.
    Progress(&'a str),
    /// The list of her changes.
    Changelog,
}

/// The file's new bytes: the old ones, and the entry behind them.
pub(crate) fn append(log: Log<'_>, old: &[u8], at: Timestamp, text: &str) -> Vec<u8> {
    let mut bytes = old.to_vec();
    match log {
        Log::Progress(slug) if old.is_empty() => {
            bytes.extend_from_slice(format!("# progress: {slug}\n").as_bytes());
        }
        Log::Changelog if old.is_empty() => bytes.extend_from_slice(b"# changelog\n"),
        _ => {}
    }
    match bytes.last() {
        None => {}
        Some(b'\n') => bytes.push(b'\n'),
        Some(_) => bytes.extend_from_slice(b"\n\n"),
    }
    let at = match log {
        Log::Journal => at.to_zoned_datetime(TimeZone::UTC).strftime("%H:%M:%S").to_string(),
        Log::Progress(_) | Log::Changelog => format!("{at:.3}"),
    };
    bytes.extend_from_slice(format!("## {at}\n\n{}\n", escape(trimmed(text))).as_bytes());
    bytes
}

/// The file without its oldest entries, once there are more than `max`: then the newest `kept` stay, under what stood
/// before the first, and a line says that there were others.
pub(crate) fn newest(log: Log<'_>, old: &[u8], max: usize, kept: usize) -> Vec<u8> {
    const EARLIER: &str = "[earlier entries are in the history]";
    let text = String::from_utf8_lossy(old);
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let is_heading = |line: &str| heading(log, line.trim_end_matches('\n')).is_some();
    let headings: Vec<usize> = (0..lines.len()).filter(|at| is_heading(lines[*at])).collect();
    // whoever adds one more has one more than the most then
    if headings.len() < max {
        return old.to_vec();
    }
    let (first, from) = (headings[0], headings[headings.len() - kept.min(headings.len())]);
    let before = lines[..first].concat();
    let before = trimmed(&before);
    let note = if before.ends_with(EARLIER) { String::new() } else { format!("{EARLIER}\n\n") };
    let gap = if before.is_empty() { "" } else { "\n\n" };
    format!("{before}{gap}{note}{}", lines[from..].concat()).into_bytes()
}

/// The entries of a file, oldest first. What stands before the first heading is no entry.
pub(crate) fn read(log: Log<'_>, text: &str) -> Vec<Entry> {
    let mut entries: Vec<(String, Vec<&str>)> = Vec::new();
    for line in text.split('\n') {
        match (heading(log, line), entries.last_mut()) {
            (Some(at), _) => entries.push((at.to_owned(), vec![])),
            (None, Some((_, lines))) => lines.push(line),
            (None, None) => {}
        }
    }
    entries.into_iter().map(|(at, lines)| Entry { at, text: unescape(trimmed(&lines.join("\n"))) }).collect()
}

/// What stands in the heading of an entry: `14:32:11`, or a whole instant without blanks.
fn heading<'a>(log: Log<'_>, line: &'a str) -> Option<&'a str> {
    let at = line.strip_prefix("## ")?.trim_end_matches('\r');
    let shaped = |shape: &str| {
        let mut chars = at.chars();
        shape
            .chars()
            .all(|s| chars.next().is_some_and(|c| if s == '0' { c.is_ascii_digit() } else { c == s }))
    };
    let fits = match log {
        Log::Journal => at.len() == 8 && shaped("00:00:00"),
        Log::Progress(_) | Log::Changelog => {
            shaped("0000-00-00T") && at.len() > 11 && !at.contains(char::is_whitespace)
        }
    };
    fits.then_some(at)
}

/// Whether some reader could take the beginning of this line for a heading.
fn misleads(line: &str) -> bool {
    line.strip_prefix("##").is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
}

/// What can begin a line for some reader: JavaScript's line terminators.
const LINE_ENDS: [char; 4] = ['\n', '\r', '\u{2028}', '\u{2029}'];

fn escape(text: &str) -> String {
    let escaped = text.split_inclusive(LINE_ENDS).map(|line| {
        if misleads(line.trim_start_matches('\\')) { format!("\\{line}") } else { line.to_owned() }
    });
    escaped.collect()
}

fn unescape(text: &str) -> String {
    let plain = text.split_inclusive(LINE_ENDS).map(|line| match line.strip_prefix('\\') {
        Some(rest) if misleads(rest.trim_start_matches('\\')) => rest,
        _ => line,
    });
    plain.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn the_form_is_the_originals() {
        let journal = append(Log::Journal, b"", at("2026-11-30T14:32:11.5Z"), " I hummed.\n");
        assert_eq!(String::from_utf8(journal.clone()).unwrap(), "## 14:32:11\n\nI hummed.\n");
        let journal = append(Log::Journal, &journal, at("2026-11-30T15:00:00Z"), "今天很安静。");
        assert_eq!(
            String::from_utf8(journal).unwrap(),
            "## 14:32:11\n\nI hummed.\n\n## 15:00:00\n\n今天很安静。\n"
        );
        let progress = append(Log::Progress("learn-rust"), b"", at("2026-11-30T14:32:11Z"), "Chapter 1.");
        assert_eq!(
            String::from_utf8(progress).unwrap(),
            "# progress: learn-rust\n\n## 2026-11-30T14:32:11.000Z\n\nChapter 1.\n"
        );
    }

    #[test]
    fn an_entry_cannot_forge_another() {
        let text = "a\n## 15:00:00\n\nforged\n\\## 16:00:00\r## 17:00:00";
        let bytes = append(Log::Journal, b"", at("2026-11-30T14:00:00Z"), text);
        let entries = read(Log::Journal, std::str::from_utf8(&bytes).unwrap());
        assert_eq!(entries, [Entry { at: "14:00:00".into(), text: text.into() }]);
    }

    #[test]
    fn headings_of_another_shape_are_text() {
        let text = "# progress: x\npreamble\n\n## 2026-05-10T14:32:11Z\n\none\n## 2026-05-11T14:32:11Z (heartbeat #2)\ntwo\n";
        let entries = read(Log::Progress("x"), text);
        assert_eq!(entries.len(), 1);
        assert!(entries[0].text.contains("(heartbeat #2)"));
    }

    proptest! {
        #[test]
        fn what_was_there_stays_byte_for_byte_and_the_new_reads_back(
            old in prop::collection::vec(any::<u8>(), 0..60),
            pieces in prop::collection::vec(prop_oneof![
                any::<String>(),
                prop::sample::select(&["\n", "\r", "\u{2028}", "## ", "\\", "## 11:11:11", "## 2026-01-01T00:00:00Z", "灯塔"][..])
                    .prop_map(str::to_owned)], 1..8),
        ) {
            let text = pieces.concat();
            let now = at("2026-11-30T14:32:11Z");
            for log in [Log::Journal, Log::Progress("x")] {
                let bytes = append(log, &old, now, &text);
                prop_assert!(bytes.starts_with(&old));
                let entries = read(log, &String::from_utf8_lossy(&bytes));
                prop_assert_eq!(&entries.last().unwrap().text, trimmed(&text));
            }
        }
    }
}
