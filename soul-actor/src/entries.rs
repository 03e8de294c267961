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
//! Before the first heading of a progress file stand its title and, where older entries were condensed, their summary.
//! Appending never changes a byte that is there. A line of text that looks like a heading gets one backslash in front,
//! which reading takes away, so an entry can neither end early nor forge another. Instants are UTC; which day a journal
//! file is of follows the person's time zone.
//!
//! What a journal entry is about stands directly below its heading, where no text begins: `topic: identity:name`. An
//! entry without a topic is what it always was.

use std::ops::Range;

use jiff::{Timestamp, civil::Date, tz::TimeZone};

use crate::{sheet::trimmed, topic::Topic};

/// The longest entry, in characters; with four bytes each that stays far below a frame.
pub(crate) const ENTRY_CHARS_MAX: usize = 8000;

/// How long a file may grow by ordinary entries, in bytes; what must be written (an objection, a desire's end) goes on
/// beyond it. Well below what is read at all.
const FULL_BYTES: usize = 1024 * 1024;

/// Why a file takes no more ordinary entries.
pub(crate) fn full(old: &[u8], path: &str) -> Result<(), String> {
    if old.len() < FULL_BYTES {
        return Ok(());
    }
    Err(format!("`{path}` is full, with {} KiB; write the rest tomorrow, or condense it", old.len() / 1024))
}

/// One entry as it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// What stands in its heading.
    pub(crate) at: String,
    /// What it is about, where that is said; journals alone say it.
    pub(crate) topic: Option<Topic>,
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
    /// The record of her dreams.
    Dreams,
}

/// What a line below a heading begins with that says what the entry is about.
const TOPIC: &str = "topic: ";

/// The file's new bytes: the old ones, and the entry behind them.
pub(crate) fn append(log: Log<'_>, old: &[u8], at: Timestamp, text: &str) -> Vec<u8> {
    append_about(log, old, at, (None, text))
}

/// [`append`] an entry that says what it is about.
pub(crate) fn append_about(
    log: Log<'_>,
    old: &[u8],
    at: Timestamp,
    (topic, text): (Option<&Topic>, &str),
) -> Vec<u8> {
    let mut bytes = old.to_vec();
    match log {
        Log::Progress(slug) if old.is_empty() => {
            bytes.extend_from_slice(format!("# progress: {slug}\n").as_bytes());
        }
        Log::Changelog if old.is_empty() => bytes.extend_from_slice(b"# changelog\n"),
        Log::Dreams if old.is_empty() => bytes.extend_from_slice(b"# dreams\n"),
        _ => {}
    }
    match bytes.last() {
        None => {}
        Some(b'\n') => bytes.push(b'\n'),
        Some(_) => bytes.extend_from_slice(b"\n\n"),
    }
    let at = match log {
        Log::Journal => at.to_zoned_datetime(TimeZone::UTC).strftime("%H:%M:%S").to_string(),
        Log::Progress(_) | Log::Changelog | Log::Dreams => format!("{at:.3}"),
    };
    let topic = topic.map(|topic| format!("{TOPIC}{topic}\n")).unwrap_or_default();
    bytes.extend_from_slice(format!("## {at}\n{topic}\n{}\n", escape(trimmed(text))).as_bytes());
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

/// What a line begins with under which a summary of older entries stands; behind it come a day and a bracket.
const CONDENSED: &str = "[…earlier entries condensed by reflect on ";

/// The longest that all summaries in one file may be together, in characters: they are in a prompt.
pub(crate) const SUMMARIES_CHARS_MAX: usize = 4000;

/// Why progress is not condensed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unfit {
    /// There are no more entries than stay: so many.
    Few(usize),
    /// The summaries that are there and the new one have so many characters together.
    Long(usize),
}

/// The file's new bytes: what stands before the last `kept` entries is a summary, and they stay byte for byte. The
/// summaries that are there stay as well, unless this one `folds` them in.
pub(crate) fn condense(
    slug: &str,
    old: &[u8],
    kept: usize,
    (summary, folds): (&str, bool),
    today: Date,
) -> Result<(Vec<u8>, usize), Unfit> {
    let starts = starts(Log::Progress(slug), old);
    let gone = starts.len().saturating_sub(kept);
    let (Some(first), Some(stays)) = (starts.first(), starts.get(gone).filter(|_| gone > 0)) else {
        return Err(Unfit::Few(starts.len()));
    };
    let (before, stays) = (old.get(..*first).unwrap_or_default(), old.get(*stays..).unwrap_or_default());
    let before = String::from_utf8_lossy(before);
    let is_summary = |line: &str| line.starts_with(CONDENSED);
    let lines = before.split_inclusive('\n').take_while(|line| !(folds && is_summary(line)));
    let before = lines.collect::<String>();
    let before = if trimmed(&before).is_empty() {
        format!("# progress: {slug}")
    } else {
        before.trim_end().to_owned()
    };
    let before = format!("{before}\n\n{CONDENSED}{today}]\n\n{}\n\n", escape(trimmed(summary)));
    let chars = earlier(&before).map_or(0, |earlier| ipc::text::chars(&earlier));
    if chars > SUMMARIES_CHARS_MAX {
        return Err(Unfit::Long(chars));
    }
    Ok(([before.as_bytes(), stays].concat(), gone))
}

/// What stands in a progress file before its first entry, without its title: the summaries of what was condensed.
pub(crate) fn earlier(text: &str) -> Option<String> {
    let first = starts(Log::Progress(""), text.as_bytes()).first().copied().unwrap_or(text.len());
    let before = text.get(..first).unwrap_or_default();
    let is_title = |line: &str| trimmed(line).starts_with("# progress:");
    let rest = before.split_once('\n').filter(|(line, _)| is_title(line)).map(|(_, rest)| rest);
    let rest = rest.unwrap_or(if is_title(before) { "" } else { before });
    Some(unescape(trimmed(rest))).filter(|rest| !rest.is_empty())
}

/// Where each entry begins.
fn starts(log: Log<'_>, bytes: &[u8]) -> Vec<usize> {
    let mut at = 0;
    let mut found = Vec::new();
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let text = std::str::from_utf8(line.strip_suffix(b"\n").unwrap_or(line));
        if text.is_ok_and(|line| heading(log, line).is_some()) {
            found.push(at);
        }
        at += line.len();
    }
    found
}

/// The entries of a file, oldest first. What stands before the first heading is no entry.
pub(crate) fn read(log: Log<'_>, text: &str) -> Vec<Entry> {
    placed(log, text).into_iter().map(|(_, entry)| entry).collect()
}

/// [`read`], and for each entry which lines are its own, counted from 0.
pub(crate) fn placed(log: Log<'_>, text: &str) -> Vec<(Range<usize>, Entry)> {
    let lines: Vec<&str> = text.split('\n').collect();
    let headings: Vec<usize> = (0..lines.len()).filter(|at| heading(log, lines[*at]).is_some()).collect();
    let ends = headings.iter().skip(1).copied().chain([lines.len()]);
    let entry = |(start, end): (usize, usize)| {
        let at = heading(log, lines[start]).unwrap_or_default().to_owned();
        let topic = lines.get(start + 1).filter(|_| start + 1 < end).and_then(|line| topic(log, line));
        let body = lines.get(start + 1 + usize::from(topic.is_some())..end).unwrap_or_default();
        (start..end, Entry { at, topic, text: unescape(trimmed(&body.join("\n"))) })
    };
    headings.iter().copied().zip(ends).map(entry).collect()
}

/// What the line below a heading says the entry is about.
fn topic(log: Log<'_>, line: &str) -> Option<Topic> {
    match log {
        Log::Journal => Topic::read(line.strip_prefix(TOPIC)?.trim_end_matches('\r')),
        Log::Progress(_) | Log::Changelog | Log::Dreams => None,
    }
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
        Log::Progress(_) | Log::Changelog | Log::Dreams => {
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

/// A text whose lines no reader takes for headings.
pub(crate) fn escape(text: &str) -> String {
    let escaped = text.split_inclusive(LINE_ENDS).map(|line| {
        if misleads(line.trim_start_matches('\\')) { format!("\\{line}") } else { line.to_owned() }
    });
    escaped.collect()
}

/// The text that was made so by [`escape`].
pub(crate) fn unescape(text: &str) -> String {
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
        assert_eq!(entries, [Entry { at: "14:00:00".into(), topic: None, text: text.into() }]);
    }

    #[test]
    fn a_topic_stands_below_its_heading_and_nowhere_else() {
        let topic = Topic::tidy("身份:名字").unwrap();
        let bytes = append_about(Log::Journal, b"", at("2026-11-30T14:00:00Z"), (Some(&topic), "我叫丽莎。"));
        assert_eq!(String::from_utf8(bytes).unwrap(), "## 14:00:00\ntopic: 身份:名字\n\n我叫丽莎。\n");
        let check = |text: &str, topic: Option<&str>, said: &str| {
            let read = read(Log::Journal, text);
            assert_eq!(read.len(), 1, "{text:?}");
            assert_eq!(
                (read[0].topic.as_ref().map(Topic::as_str), read[0].text.as_str()),
                (topic, said),
                "{text:?}"
            );
        };
        check("## 14:00:00\r\ntopic: a:b\r\n\r\nx\r\n", Some("a:b"), "x");
        check("## 14:00:00\n\ntopic: a:b\n", None, "topic: a:b");
        check("## 14:00:00\ntopic: a:b\ntopic: c:d\n", Some("a:b"), "topic: c:d");
        check("## 14:00:00\ntopic: of the day\n", None, "topic: of the day");
        check("## 14:00:00\ntopic: A:B\n", None, "topic: A:B");
        check("## 14:00:00", None, "");
        let progress = "## 2026-05-10T14:32:11Z\ntopic: a:b\n\nx\n";
        assert_eq!(read(Log::Progress("x"), progress)[0].topic, None);
    }

    #[test]
    fn headings_of_another_shape_are_text() {
        let text = "# progress: x\npreamble\n\n## 2026-05-10T14:32:11Z\n\none\n## 2026-05-11T14:32:11Z (heartbeat #2)\ntwo\n";
        let entries = read(Log::Progress("x"), text);
        assert_eq!(entries.len(), 1);
        assert!(entries[0].text.contains("(heartbeat #2)"));
    }

    fn grown(count: u32) -> Vec<u8> {
        (0..count).fold(Vec::new(), |old, n| {
            let now = at(&format!("2026-01-01T00:00:{n:02}Z"));
            append(Log::Progress("x"), &old, now, &format!("entry {n}"))
        })
    }

    fn day() -> Date {
        "2026-11-30".parse().unwrap()
    }

    #[test]
    fn what_is_older_than_the_last_entries_becomes_a_summary_and_they_stay() {
        let old = grown(12);
        let (new, gone) = condense("x", &old, 10, ("Two chapters.\n## read", false), day()).unwrap();
        let text = String::from_utf8(new.clone()).unwrap();
        let head = "# progress: x\n\n[…earlier entries condensed by reflect on 2026-11-30]\n\nTwo chapters.\n\\## read\n\n## 2026-01-01T00:00:02.000Z\n";
        assert!(text.starts_with(head) && gone == 2, "{text}");
        assert_eq!(read(Log::Progress("x"), &text).len(), 10);
        let earlier = earlier(&text).unwrap();
        assert!(earlier.starts_with("[…earlier") && earlier.ends_with("Two chapters.\n## read"), "{earlier}");
        assert_eq!(condense("x", &new, 10, ("again", false), day()), Err(Unfit::Few(10)));
        assert_eq!(condense("x", b"", 10, ("none", false), day()), Err(Unfit::Few(0)));
    }

    #[test]
    fn an_earlier_summary_stays_unless_it_is_folded_in() {
        let grow = |old: &[u8]| append(Log::Progress("x"), old, at("2026-02-01T00:00:00Z"), "more");
        let by_hand =
            [b"# progress: x\n\na note of a person\n".as_slice(), b"\n## 2025-01-01T00:00:00Z\n\nold\n"]
                .concat();
        let (once, _) = condense("x", &grow(&by_hand), 1, ("first", false), day()).unwrap();
        let (twice, _) = condense("x", &grow(&once), 1, ("second", false), day()).unwrap();
        let said = |bytes: &[u8]| earlier(std::str::from_utf8(bytes).unwrap()).unwrap();
        let kept = said(&twice);
        assert!(["a note of a person", "first", "second"].iter().all(|part| kept.contains(part)), "{kept}");
        let (folded, _) = condense("x", &grow(&twice), 1, ("all of it", true), day()).unwrap();
        assert_eq!(
            said(&folded),
            "a note of a person\n\n[…earlier entries condensed by reflect on 2026-11-30]\n\nall of it"
        );
        let long = "灯".repeat(2000);
        let (full, _) = condense("x", &grow(&folded), 1, (&long, true), day()).unwrap();
        assert!(
            matches!(condense("x", &grow(&full), 1, (&long, false), day()), Err(Unfit::Long(chars)) if chars > 4000)
        );
    }

    #[test]
    fn what_stands_before_the_first_entry_is_what_came_earlier() {
        let check =
            |text: &str, expected: Option<&str>| assert_eq!(earlier(text).as_deref(), expected, "{text:?}");
        check("", None);
        check("# progress: x\n", None);
        check("# progress: x", None);
        check(
            "# progress: x\n\n[…earlier entries truncated]\n\n## 2026-01-01T00:00:00Z\n\na\n",
            Some("[…earlier entries truncated]"),
        );
        check("just words\n", Some("just words"));
    }

    proptest! {
        #[test]
        fn condensing_leaves_the_last_entries_byte_for_byte_and_the_summary_reads_back(
            old in prop::collection::vec(any::<u8>(), 0..60),
            (count, kept) in (2..6_u32, 1..4_usize),
            pieces in prop::collection::vec(prop_oneof![
                any::<String>(),
                prop::sample::select(&["\n", "\r", "\u{2028}", "## ", "\\", "# progress: x\n", CONDENSED, "## 2026-01-01T00:00:00Z", "灯塔"][..])
                    .prop_map(str::to_owned)], 1..8),
            folds in any::<bool>(),
        ) {
            let summary = trimmed(&pieces.concat()).to_owned();
            prop_assume!(!summary.is_empty());
            let log = Log::Progress("x");
            let mut bytes = if old.is_empty() { Vec::new() } else { [b"# progress: x\n".as_slice(), &old].concat() };
            for n in 0..count {
                bytes = append(log, &bytes, at(&format!("2026-01-01T00:00:{n:02}Z")), &format!("entry {n}"));
            }
            let all = starts(log, &bytes);
            let Ok((new, gone)) = condense("x", &bytes, kept, (&summary, folds), day()) else {
                prop_assert!(all.len() <= kept);
                return Ok(());
            };
            prop_assert!(new.ends_with(&bytes[all[gone]..]));
            let now = starts(log, &new);
            prop_assert_eq!(now.len(), kept);
            prop_assert_eq!(&new[now[0]..], &bytes[all[gone]..]);
            let text = String::from_utf8_lossy(&new);
            prop_assert!(earlier(&text).unwrap().ends_with(&summary), "{:?}", text);
        }

        #[test]
        fn an_entry_with_a_topic_and_one_without_read_back_whatever_they_say(
            old in prop::collection::vec(any::<u8>(), 0..40),
            area in "[a-zA-Z身份 ]{1,6}", name in "\\PC{1,6}",
            pieces in prop::collection::vec(prop_oneof![
                any::<String>(),
                prop::sample::select(&["\n", "\r", "## ", "\\", "## 11:11:11\n", "topic: a:b", "topic: a:b\n", "灯塔"][..])
                    .prop_map(str::to_owned)], 0..8),
        ) {
            let (text, now) = (pieces.concat(), at("2026-11-30T14:32:11Z"));
            let topic = Topic::tidy(&format!("{area}:{name}")).ok();
            let before = placed(Log::Journal, &String::from_utf8_lossy(&append(Log::Journal, &old, now, "x"))).len();
            for topic in [topic.as_ref(), None] {
                let bytes = append_about(Log::Journal, &old, now, (topic, &text));
                prop_assert!(bytes.starts_with(&old));
                let shown = String::from_utf8_lossy(&bytes).into_owned();
                let read = placed(Log::Journal, &shown);
                prop_assert_eq!(read.len(), before);
                let (lines, last) = read.last().unwrap();
                prop_assert_eq!((last.topic.as_ref(), last.text.as_str()), (topic, trimmed(&text)));
                prop_assert_eq!(shown.split('\n').nth(lines.start), Some("## 14:32:11"));
                let again = append_about(Log::Journal, &bytes, now, (topic, "y"));
                let read = placed(Log::Journal, &String::from_utf8_lossy(&again));
                prop_assert_eq!(&read[read.len() - 2].1.text, trimmed(&text), "what comes behind changes nothing");
            }
        }

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
