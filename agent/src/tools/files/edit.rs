//! `edit`: a piece of a text replaced by another, where it is certain which piece is meant.
//!
//! Byte order mark and line ends stay as they are: a model writes `\n`, whatever the file has.

use std::{fmt::Write as _, io::Read as _};

use ipc::text::{chars, nearest, one_line, prefix};
use serde::{Deserialize, Serialize};

use super::{
    Ground, failed,
    read::{binary, open},
    shown, writable,
    write::replace,
};

/// The largest file that is changed a piece at a time.
const BYTES_MAX: u64 = 16 * 1024 * 1024;
/// How many lines are looked through for what is nearest, and how long one is.
const NEAREST_LINES_MAX: usize = 4000;
const NEAREST_CHARS_MAX: usize = 200;
/// How many places of several are named.
const NAMED_MAX: usize = 10;
const BOM: char = '\u{feff}';

/// What to replace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Edit {
    path: String,
    old: String,
    new: String,
    #[serde(default)]
    replace_all: bool,
}

/// Replaces.
pub(crate) fn edit(ground: &Ground, deed: &Edit) -> Result<String, String> {
    let path = writable(ground, &deed.path)?;
    let mut bytes = Vec::new();
    let file = open(&path)?;
    let size = file.metadata().map_err(failed("read", &path))?.len();
    if size > BYTES_MAX {
        return Err(format!("{} has {size} bytes; no more than {BYTES_MAX} are edited", shown(&path)));
    }
    file.take(BYTES_MAX).read_to_end(&mut bytes).map_err(failed("read", &path))?;
    if let Some(kind) = binary(&bytes) {
        return Err(format!("{} was not changed: it is no text but {kind}", shown(&path)));
    }
    let text = String::from_utf8(bytes).map_err(|_| {
        format!("{} was not changed: it is no UTF-8, and what is none would be lost", shown(&path))
    })?;
    let edited = edited(&text, deed).map_err(|why| format!("{} was not changed: {why}", shown(&path)))?;
    replace(&path, edited.text.as_bytes())?;
    let places = if edited.lines.len() == 1 { "place" } else { "places" };
    Ok(format!(
        "{} is changed in {} {places}, at line {}",
        shown(&path),
        edited.lines.len(),
        numbers(&edited.lines)
    ))
}

/// A text with a piece of it replaced.
#[derive(Debug, PartialEq, Eq)]
struct Edited {
    text: String,
    /// The lines at which that was done.
    lines: Vec<usize>,
}

/// What a text is with the piece replaced, or why it is not sure which is meant.
fn edited(text: &str, deed: &Edit) -> Result<Edited, String> {
    if deed.old.is_empty() {
        return Err("`old` is empty; `write` makes a whole file".to_owned());
    }
    if deed.old == deed.new {
        return Err("`old` and `new` are the same".to_owned());
    }
    let (mark, body) = match text.strip_prefix(BOM) {
        Some(body) => (BOM.to_string(), body),
        None => (String::new(), text),
    };
    // a piece as it stands, or with the line ends of the file, where those are of the other kind
    let crlf = |piece: &str| piece.replace("\r\n", "\n").replace('\n', "\r\n");
    let is_crlf = body.contains("\r\n");
    let is_as_given = body.contains(&deed.old);
    let old = if is_as_given || !is_crlf { deed.old.clone() } else { crlf(&deed.old) };
    // who gave line ends, and gave them right, knows what they write
    let knows = is_as_given && deed.old.contains('\n');
    let new = if is_crlf && !knows { crlf(&deed.new) } else { deed.new.clone() };
    let lines: Vec<usize> = places(body, &old);
    match lines.len() {
        0 => Err(missing(body, &deed.old)),
        1 => Ok(()),
        _ if deed.replace_all => Ok(()),
        many => Err(format!(
            "`old` is in it {many} times, at line {}; give more of what stands around the one that is meant, or set `replace_all`",
            numbers(&lines)
        )),
    }?;
    Ok(Edited { text: format!("{mark}{}", body.replace(&old, &new)), lines })
}

/// The line of each place at which `piece` is.
fn places(text: &str, piece: &str) -> Vec<usize> {
    let (mut line, mut from) = (1, 0);
    let mut places = Vec::new();
    for (at, _) in text.match_indices(piece) {
        line += text.get(from..at).unwrap_or_default().matches('\n').count();
        from = at;
        places.push(line);
    }
    places
}

fn numbers(lines: &[usize]) -> String {
    let named: Vec<String> = lines.iter().take(NAMED_MAX).map(usize::to_string).collect();
    let more = if lines.len() > NAMED_MAX { " and more" } else { "" };
    format!("{}{more}", named.join(", "))
}

/// What is said of a piece that is nowhere: what is nearest to where it would begin.
fn missing(text: &str, old: &str) -> String {
    let mut said = "`old` is not in it".to_owned();
    let Some(wanted) = old.lines().find(|line| !line.trim().is_empty()) else { return said };
    let bare = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines = || text.lines().zip(1..).take(NEAREST_LINES_MAX);
    let cut = |line: &str| prefix(line, NEAREST_CHARS_MAX).to_owned();
    let spaced = lines().find(|(line, _)| bare(line) == bare(wanted));
    if let Some((line, number)) = spaced {
        let what = if line == wanted {
            "begins as it does and goes on otherwise"
        } else {
            "differs in spaces alone"
        };
        let _ = write!(said, "; line {number} {what}: `{}`", one_line(line, NEAREST_CHARS_MAX));
        return said;
    }
    let wanted = cut(wanted);
    let near: Vec<(String, usize)> = lines()
        .filter(|(line, _)| chars(line).abs_diff(chars(&wanted)) <= chars(&wanted) / 2 + 4)
        .map(|(line, number)| (cut(line), number))
        .collect();
    if let Some(found) = nearest(&wanted, near.iter().map(|(line, _)| line.as_str()))
        && let Some((line, number)) = near.iter().find(|(line, _)| line == found)
    {
        let _ = write!(said, "; nearest is line {number}: `{}`", one_line(line, NEAREST_CHARS_MAX));
    }
    said.push_str("; read the file, and give the piece as it stands there");
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::files::tests::ground;
    use proptest::prelude::*;

    fn with(old: &str, new: &str, replace_all: bool) -> Edit {
        Edit { path: "a".into(), old: old.into(), new: new.into(), replace_all }
    }

    #[test]
    fn one_place_is_replaced_and_everything_around_it_stays() {
        let check = |text: &str, old: &str, new: &str, after: &str| {
            assert_eq!(
                edited(text, &with(old, new, false)).map(|edited| edited.text).as_deref(),
                Ok(after),
                "{text:?}"
            );
        };
        check("一\n二\n三", "二", "贰", "一\n贰\n三");
        check("\u{feff}a\nb", "a", "x", "\u{feff}x\nb");
        check("a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", "x\r\ny\r\nz\r\nc\r\n");
        check("a\r\nb\r\n", "b", "x\ny", "a\r\nx\r\ny\r\n");
        check("a\r\nb\r\n", "a\r\nb", "x\r\ny", "x\r\ny\r\n");
        check("a\nb\n", "a\n", "", "b\n");
    }

    #[test]
    fn what_is_not_sure_is_refused_and_says_why() {
        let check = |text: &str, old: &str, said: &[&str]| {
            let why = edited(text, &with(old, "new", false)).unwrap_err();
            for said in said {
                assert!(why.contains(said), "{why}");
            }
        };
        check("a\nb\na\n", "a", &["2 times", "at line 1, 3", "replace_all"]);
        check("x", "", &["empty"]);
        check("new", "new", &["same"]);
        check("fn main() {\n    let x = 1;\n}\n", "let  x = 1;", &["line 2", "spaces"]);
        check(
            "fn main() {\n    let value = 1;\n}\n",
            "    let valve = 1;",
            &["nearest is line 2", "let value = 1;"],
        );
        check("今天天气很好\n", "今天天汽很好", &["nearest is line 1"]);
        check("abc", "完全不同的内容", &["not in it", "read the file"]);
        let all = edited("a\nb\na", &with("a", "c", true)).unwrap();
        assert_eq!((all.text.as_str(), all.lines), ("c\nb\nc", vec![1, 3]));
    }

    #[test]
    fn a_file_is_changed_or_left_alone() {
        let (_folder, ground) = ground();
        let put = |bytes: &[u8]| std::fs::write(ground.work.join("a"), bytes).unwrap();
        put("一\n二\n".as_bytes());
        assert!(edit(&ground, &with("二", "2", false)).unwrap().contains("changed in 1 place, at line 2"));
        assert_eq!(std::fs::read_to_string(ground.work.join("a")).unwrap(), "一\n2\n");
        put(b"caf\xe9");
        assert!(edit(&ground, &with("caf", "x", false)).unwrap_err().contains("no UTF-8"));
        put(b"a\0b");
        assert!(edit(&ground, &with("a", "x", false)).unwrap_err().contains("no text"));
        assert_eq!(std::fs::read(ground.work.join("a")).unwrap(), b"a\0b");
    }

    proptest! {
        #[test]
        fn nothing_panics_and_what_is_replaced_is_what_was_asked(text in "[a字\r\n\u{feff}]{0,40}", old in "[a字\r\n]{0,4}", new in "[b文\n]{0,4}") {
            if let Ok(edited) = edited(&text, &with(&old, &new, false)) {
                prop_assert_eq!(edited.lines.len(), 1);
                prop_assert!(edited.text.starts_with(BOM) || !text.starts_with(BOM));
            }
        }
    }
}
