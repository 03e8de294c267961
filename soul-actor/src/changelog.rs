//! `changelog.md`: what she changed of herself, why, and how her replies were rated then.
//!
//! ```text
//!  # changelog
//!
//!  ## 2026-12-01T14:32:11.000Z
//!
//!  identity.md via soul_patch (chat), rating 0.83
//!
//!  I hum when the fog comes in.
//! ```
//!
//! It is written in the commit of the change itself. It lists the gated documents, of which there are few changes a day;
//! values, opinions and desires have their *why* in their commits, and a file that grew with each of them would make
//! every write dearer than the one before. Of a long one the newest entries are kept; the history has the rest.

use jiff::Timestamp;

use crate::entries::{self, Log};

/// From how many entries on the oldest are let go of, and how many then stay: many at once, so that a file mostly grows.
const ENTRIES_MAX: usize = 400;
const ENTRIES_KEPT: usize = 300;

/// What is said of one change.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line<'a> {
    /// The documents that changed.
    pub(crate) paths: &'a [&'a str],
    /// By which tool or in which run, as the commit says it.
    pub(crate) caller: &'a str,
    /// From where, as the commit says it.
    pub(crate) origin: &'a str,
    /// The rating in force, as the commit says it.
    pub(crate) rating: &'a str,
    /// Why; may be empty.
    pub(crate) why: &'a str,
}

/// The file's new bytes.
pub(crate) fn add(old: &[u8], line: Line<'_>, now: Timestamp) -> Vec<u8> {
    let Line { paths, caller, origin, rating, why } = line;
    let head = format!("{} via {caller} ({origin}), rating {rating}", paths.join(", "));
    let why = if why.trim().is_empty() { "(no reason given)" } else { why };
    let kept = entries::newest(Log::Changelog, old, ENTRIES_MAX, ENTRIES_KEPT);
    entries::append(Log::Changelog, &kept, now, &format!("{head}\n\n{why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(why: &str) -> Line<'_> {
        Line { paths: &["identity.md"], caller: "soul_patch", origin: "chat", rating: "none", why }
    }

    #[test]
    fn an_entry_says_what_by_whom_and_why_and_cannot_forge_another() {
        let now = "2026-12-01T12:00:00Z".parse().unwrap();
        let bytes = add(b"", line("雾来了。\n## 2026-01-01T00:00:00Z\n\nforged"), now);
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.starts_with(
            "# changelog\n\n## 2026-12-01T12:00:00.000Z\n\nidentity.md via soul_patch (chat), rating none\n\n雾来了。\n"
        ));
        assert_eq!(entries::read(Log::Changelog, &text).len(), 1);
        let text = String::from_utf8(add(text.as_bytes(), line(" "), now)).unwrap();
        let read = entries::read(Log::Changelog, &text);
        assert!(read.len() == 2 && read[1].text.ends_with("(no reason given)"), "{text}");
    }

    #[test]
    fn a_long_one_keeps_its_newest_entries_and_says_that_there_were_others() {
        let now = "2026-12-01T12:00:00Z".parse().unwrap();
        let mut bytes = Vec::new();
        for n in 0..=ENTRIES_MAX {
            bytes = add(&bytes, line(&format!("why {n}")), now);
        }
        let text = String::from_utf8(bytes).unwrap();
        let read = entries::read(Log::Changelog, &text);
        assert_eq!(read.len(), ENTRIES_KEPT + 1);
        assert!(read[0].text.ends_with("why 100") && read[ENTRIES_KEPT].text.ends_with("why 400"));
        assert!(
            text.starts_with("# changelog\n\n[earlier entries are in the history]\n\n## "),
            "{}",
            &text.chars().take(80).collect::<String>()
        );
    }
}
