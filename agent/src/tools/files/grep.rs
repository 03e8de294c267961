//! `grep`: which lines of which files hold something.

use std::{io, path::Path};

use grep_matcher::Matcher as _;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use ipc::text::{chars, one_line, prefix};
use serde::{Deserialize, Serialize};

use super::{Ground, listable, read::open, shown, shown_below, walk};

/// How many lines are shown unless another number is asked for, and of how many characters all together.
const MATCHES: usize = 200;
const CHARS_MAX: usize = 26_000;
/// The most characters of one line.
const LINE_CHARS_MAX: usize = 400;
/// How much memory one search and one pattern may take, in bytes.
const HEAP_MAX: usize = 16 * 1024 * 1024;
const PATTERN_MAX: usize = 10 * 1024 * 1024;

/// What to look for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Grep {
    pattern: String,
    #[serde(default)]
    path: Option<String>,
    /// Which files to look into.
    #[serde(default)]
    glob: Option<String>,
    #[serde(default)]
    ignore_case: bool,
    /// How many lines around each are shown.
    #[serde(default)]
    context: usize,
    #[serde(default)]
    limit: Option<usize>,
}

/// Looks.
pub(crate) fn grep(ground: &Ground, deed: &Grep) -> Result<String, String> {
    let matcher = RegexMatcherBuilder::new()
        .case_insensitive(deed.ignore_case)
        .line_terminator(Some(b'\n'))
        .size_limit(PATTERN_MAX)
        .dfa_size_limit(PATTERN_MAX)
        .build(&deed.pattern)
        .map_err(|error| format!("the pattern cannot be used: {}", one_line(&error.to_string(), 400)))?;
    let files = deed.glob.as_deref().map(walk::pattern).transpose()?;
    let from = listable(ground, deed.path.as_deref().unwrap_or("."))?;
    if !from.exists() {
        return Err(format!("could not look into {}: there is nothing of that name", shown(&from)));
    }
    let folder = if from.is_dir() { from.as_path() } else { from.parent().unwrap_or(&from) };
    let mut searcher = SearcherBuilder::new()
        .binary_detection(BinaryDetection::quit(0))
        .line_number(true)
        .before_context(deed.context)
        .after_context(deed.context)
        .heap_limit(Some(HEAP_MAX))
        .build();
    let mut found = Found {
        lines: Vec::new(),
        matches: 0,
        max: deed.limit.unwrap_or(MATCHES).max(1),
        room: CHARS_MAX,
        is_full: false,
    };
    let mut strange = 0_usize;
    let walked = walk::files(ground, &from, |path| {
        let below = path.strip_prefix(folder).unwrap_or(path);
        if files.as_ref().is_none_or(|files| files.is_match(below)) {
            strange +=
                usize::from(!look(&mut searcher, &matcher, path, &shown_below(path, folder), &mut found));
        }
        !found.is_full
    });
    let mut told = found.lines;
    if found.matches == 0 {
        told.push(format!("[nothing below {} matches]", shown(&from)));
    }
    if found.is_full {
        told.push(format!(
            "[… there may be more than these {}; look for less, or in a folder further down]",
            found.matches
        ));
    }
    if strange > 0 {
        told.push(format!("[{strange} files could not be searched]"));
    }
    told.extend(walked.told());
    Ok(told.join("\n"))
}

/// Looks into one file; whether that was possible.
fn look(searcher: &mut Searcher, matcher: &RegexMatcher, path: &Path, name: &str, found: &mut Found) -> bool {
    let Ok(file) = open(path) else { return false };
    let mut lines = Lines { name, matcher, found };
    searcher.search_file(matcher, &file, &mut lines).is_ok()
}

/// What was found so far.
struct Found {
    lines: Vec<String>,
    matches: usize,
    max: usize,
    room: usize,
    is_full: bool,
}

/// Takes the lines of one file.
struct Lines<'a> {
    name: &'a str,
    matcher: &'a RegexMatcher,
    found: &'a mut Found,
}

impl Lines<'_> {
    fn take(&mut self, number: Option<u64>, line: &[u8], mark: char, from: usize) -> bool {
        let shown = part(line, from);
        let line = format!("{}{mark}{}{mark} {shown}", self.name, number.unwrap_or_default());
        let Some(room) = self.found.room.checked_sub(chars(&line)) else {
            self.found.is_full = true;
            return false;
        };
        self.found.room = room;
        self.found.lines.push(line);
        true
    }
}

/// A line, or where it is too long the part around what was found.
fn part(line: &[u8], from: usize) -> String {
    let text = String::from_utf8_lossy(line);
    let text = text.trim_end_matches(['\n', '\r']);
    if chars(text) <= LINE_CHARS_MAX {
        return text.to_owned();
    }
    let before = chars(&String::from_utf8_lossy(line.get(..from).unwrap_or_default()));
    let skipped = before.saturating_sub(LINE_CHARS_MAX / 4);
    let rest: String = text.chars().skip(skipped).collect();
    let begin = if skipped > 0 { "…" } else { "" };
    format!("{begin}{}…", prefix(&rest, LINE_CHARS_MAX))
}

impl Sink for Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        if self.found.matches >= self.found.max {
            self.found.is_full = true;
            return Ok(false);
        }
        let from = self.matcher.find(found.bytes()).ok().flatten().map_or(0, |at| at.start());
        if !self.take(found.line_number(), found.bytes(), ':', from) {
            return Ok(false);
        }
        self.found.matches += 1;
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        Ok(self.take(context.line_number(), context.bytes(), '-', 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::files::tests::ground;

    fn looking(pattern: &str) -> Grep {
        Grep { pattern: pattern.into(), path: None, glob: None, ignore_case: false, context: 0, limit: None }
    }

    #[test]
    fn lines_are_found_with_file_and_number() {
        let (_folder, ground) = ground();
        let put = |name: &str, text: &[u8]| std::fs::write(ground.work.join(name), text).unwrap();
        put("a.md", "一\n天气 Good\n三\n".as_bytes());
        put("b.txt", "good\r\n".as_bytes());
        put("c\nd", b"good");
        put("bin", b"\0good");
        put("long", format!("{}good{}", "字".repeat(5000), "字".repeat(5000)).as_bytes());
        let told = |deed: Grep| grep(&ground, &deed);
        assert_eq!(told(looking("天气")).unwrap(), "a.md:2: 天气 Good");
        let all = told(Grep { ignore_case: true, ..looking("GOOD") }).unwrap();
        assert!(all.starts_with("a.md:2: 天气 Good\nb.txt:1: good\n\"c\\nd\":1: good\nlong:1: …字"), "{all}");
        assert!(!all.contains("bin:") && all.contains("字good字") && chars(&all) < 1000, "{all}");
        let around = told(Grep { context: 1, glob: Some("*.md".into()), ..looking("天气") }).unwrap();
        assert_eq!(around, "a.md-1- 一\na.md:2: 天气 Good\na.md-3- 三");
        assert_eq!(told(Grep { path: Some("b.txt".into()), ..looking("o+") }).unwrap(), "b.txt:1: good");
        assert!(
            told(Grep { limit: Some(1), ..looking("good|天气") })
                .unwrap()
                .contains("may be more than these 1")
        );
        assert!(told(looking("nothing here")).unwrap().contains("matches]"));
        assert!(told(looking("(")).unwrap_err().contains("cannot be used"));
        assert!(told(looking("(a{1000}){1000}")).unwrap_err().contains("cannot be used"));
        assert!(
            told(Grep { path: Some("../home/config.env".into()), ..looking("KEY") })
                .unwrap_err()
                .contains("kept")
        );
        assert!(!told(Grep { path: Some("..".into()), ..looking("secret") }).unwrap().contains("KEY"));
    }
}
