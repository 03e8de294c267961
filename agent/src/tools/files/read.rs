//! `read`: lines of a text, numbered, a window of them at a time.

use std::{
    fmt::Write as _,
    fs::{File, OpenOptions},
    io::{BufRead, BufReader, Read as _, Seek as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use ipc::text::{chars, prefix};
use serde::{Deserialize, Serialize};

use super::{Ground, failed, readable, shown};

/// How many lines are shown unless another number is asked for.
const LINES: usize = 2000;
/// The most characters of one line.
const LINE_CHARS_MAX: usize = 2000;
/// The most bytes kept of one line: as many characters, and some of the longest.
const LINE_BYTES_MAX: usize = LINE_CHARS_MAX * 4;
/// The most characters of one answer; more is cut out of its middle elsewhere, where lines are no matter.
const CHARS_MAX: usize = 28_000;
/// How much of the beginning tells whether it is text.
const LOOKED_AT: u64 = 8 * 1024;
/// How far the number of all lines is looked for.
const COUNTED_MAX: u64 = 64 * 1024 * 1024;

/// What to read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Read {
    path: String,
    /// The first line, from 1 on.
    #[serde(default)]
    offset: Option<usize>,
    /// How many lines.
    #[serde(default)]
    limit: Option<usize>,
}

/// Reads.
pub(crate) fn read(ground: &Ground, deed: &Read) -> Result<String, String> {
    let path = readable(ground, &deed.path)?;
    let failed = failed("read", &path);
    let mut file = open(&path)?;
    let mut beginning = Vec::new();
    (&mut file).take(LOOKED_AT).read_to_end(&mut beginning).map_err(&failed)?;
    let bytes = file.metadata().map_err(&failed)?.len();
    if let Some(kind) = binary(&beginning) {
        return Ok(format!("{} is no text but {kind}, {bytes} bytes", shown(&path)));
    }
    file.rewind().map_err(&failed)?;
    let window =
        window(&mut BufReader::new(file), deed.offset.unwrap_or(1).max(1), deed.limit.unwrap_or(LINES));
    match window.map_err(&failed)? {
        Some(window) => window.told(&path),
        None => Ok(format!("{} is empty", shown(&path))),
    }
}

/// Opens what is an ordinary file, and waits for nothing.
pub(super) fn open(path: &Path) -> Result<File, String> {
    let failed = failed("read", path);
    let nonblock = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).expect("a flag is a small number");
    let file = OpenOptions::new().read(true).custom_flags(nonblock).open(path).map_err(&failed)?;
    let kind = file.metadata().map_err(&failed)?.file_type();
    if kind.is_dir() {
        return Err(format!("{} is a folder; `ls` shows what is in it", shown(path)));
    }
    if !kind.is_file() {
        return Err(format!("{} is no ordinary file", shown(path)));
    }
    Ok(file)
}

/// What a file is that is no text.
pub(super) fn binary(beginning: &[u8]) -> Option<&'static str> {
    const MAGIC: [(&[u8], &str); 11] = [
        (b"\x89PNG", "an image (PNG)"),
        (b"\xff\xd8\xff", "an image (JPEG)"),
        (b"GIF8", "an image (GIF)"),
        (b"%PDF", "a PDF"),
        (b"PK\x03\x04", "an archive (ZIP)"),
        (b"\x1f\x8b", "compressed (gzip)"),
        (b"\x28\xb5\x2f\xfd", "compressed (zstd)"),
        (b"\x7fELF", "a program (ELF)"),
        (b"SQLite format 3\0", "a database (SQLite)"),
        (b"\xff\xfe", "UTF-16; convert it with `iconv -f UTF-16`"),
        (b"\xfe\xff", "UTF-16; convert it with `iconv -f UTF-16`"),
    ];
    let known = MAGIC.iter().find(|(magic, _)| beginning.starts_with(magic)).map(|(_, kind)| *kind);
    known.or_else(|| beginning.contains(&0).then_some("binary"))
}

/// Some lines of a text.
#[derive(Debug, PartialEq, Eq)]
struct Window {
    first: usize,
    lines: Vec<String>,
    /// How many lines there are; not known of the longest files.
    total: Option<usize>,
    /// Whether anything of the lines is no UTF-8.
    is_strange: bool,
}

/// Reads `limit` lines from the `first` on; nothing of a text without any.
fn window(from: &mut impl BufRead, first: usize, limit: usize) -> std::io::Result<Option<Window>> {
    let mut window = Window { first, lines: Vec::new(), total: None, is_strange: false };
    let (mut number, mut counted, mut room, mut is_full) = (0, 0, CHARS_MAX, false);
    loop {
        let (line, bytes) = line(from)?;
        if bytes == 0 {
            window.total = Some(number);
            return Ok((number > 0).then_some(window));
        }
        number += 1;
        counted += bytes;
        is_full |= window.lines.len() >= limit;
        if number >= first && !is_full {
            let mut text = String::from_utf8_lossy(&line);
            // a character that was cut is the reader's doing, not the file's
            if bytes <= LINE_BYTES_MAX as u64 {
                window.is_strange |= matches!(text, std::borrow::Cow::Owned(_));
            }
            let whole = chars(&text);
            if whole > LINE_CHARS_MAX || bytes > LINE_BYTES_MAX as u64 {
                text = format!("{} [… this line has {bytes} bytes]", prefix(&text, LINE_CHARS_MAX)).into();
            }
            let taken = chars(&text) + 8;
            if taken > room && !window.lines.is_empty() {
                is_full = true;
            } else {
                room = room.saturating_sub(taken);
                window.lines.push(text.into_owned());
            }
        }
        if is_full && counted > COUNTED_MAX {
            return Ok(Some(window));
        }
    }
}

/// The next line without its end, as much of it as is kept, and how many bytes it has with it.
fn line(from: &mut impl BufRead) -> std::io::Result<(Vec<u8>, u64)> {
    let (mut line, mut bytes) = (Vec::new(), 0);
    loop {
        let there = from.fill_buf()?;
        let end = there.iter().position(|byte| *byte == b'\n');
        let used = end.map_or(there.len(), |end| end + 1);
        let room = LINE_BYTES_MAX.saturating_sub(line.len());
        line.extend(there.iter().take(end.unwrap_or(there.len()).min(room)));
        bytes += used as u64;
        let is_over = end.is_some() || there.is_empty();
        from.consume(used);
        if is_over {
            return Ok((line, bytes));
        }
    }
}

impl Window {
    fn told(&self, path: &Path) -> Result<String, String> {
        let total = self.total.map_or_else(|| "more".to_owned(), |total| total.to_string());
        if self.lines.is_empty() {
            return Err(format!("{} has {total} lines; there is none from {} on", shown(path), self.first));
        }
        let last = self.first + self.lines.len() - 1;
        let lines = self.lines.iter().zip(self.first..).map(|(line, number)| {
            // what ends a line for a person is shown, or lines would be counted otherwise than here
            format!("{number:>6}\t{}", line.replace('\r', "␍"))
        });
        let mut told = lines.collect::<Vec<_>>().join("\n");
        if self.total != Some(last) {
            let (first, next) = (self.first, last + 1);
            let _ = write!(told, "\n[lines {first}–{last} of {total}; go on with `offset` {next}]");
        }
        if self.lines.iter().any(|line| line.ends_with('\r')) {
            told.push_str("\n[␍ is the carriage return of a line end (CRLF); `edit` keeps it by itself]");
        }
        if self.is_strange {
            told.push_str("\n[not all of this is UTF-8: what is none stands as \u{fffd}, and `edit` will not touch the file]");
        }
        Ok(told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::files::tests::ground;

    fn reading(path: &str, offset: Option<usize>, limit: Option<usize>) -> Read {
        Read { path: path.into(), offset, limit }
    }

    #[test]
    fn lines_are_numbered_and_a_window_says_how_to_go_on() {
        let (_folder, ground) = ground();
        let put = |name: &str, text: &[u8]| std::fs::write(ground.work.join(name), text).unwrap();
        let get = |name: &str, offset, limit| read(&ground, &reading(name, offset, limit));
        put("文件 a.md", "一\n二\n三".as_bytes());
        assert_eq!(get("文件 a.md", None, None).unwrap(), "     1\t一\n     2\t二\n     3\t三");
        let window = get("文件 a.md", Some(2), Some(1)).unwrap();
        assert_eq!(window, "     2\t二\n[lines 2–2 of 3; go on with `offset` 3]");
        assert!(get("文件 a.md", Some(4), None).unwrap_err().contains("has 3 lines"));
        put("empty", b"");
        assert!(get("empty", None, None).unwrap().ends_with("is empty"));
        put("dos", b"a\r\nb\r\n");
        assert!(get("dos", None, None).unwrap().contains("1\ta␍\n"));
        put("latin", b"caf\xe9\n");
        assert!(get("latin", None, None).unwrap().contains("not all of this is UTF-8"));
        put("bin", b"a\0b");
        assert!(get("bin", None, None).unwrap().contains("no text but binary, 3 bytes"));
        put("png", b"\x89PNG\r\n");
        assert!(get("png", None, None).unwrap().contains("PNG"));
        assert!(get("none", None, None).unwrap_err().contains("nothing of that name"));
        assert!(get(".", None, None).unwrap_err().contains("`ls`"));
        assert!(get("/dev/zero", None, None).unwrap_err().contains("no ordinary file"));
    }

    #[test]
    fn nothing_is_too_long() {
        let (_folder, ground) = ground();
        std::fs::write(ground.work.join("long"), "字".repeat(3_000_000)).unwrap();
        let told = read(&ground, &reading("long", None, None)).unwrap();
        assert!(
            chars(&told) < 2100 && told.contains("9000000 bytes") && !told.contains("UTF-8"),
            "{}",
            chars(&told)
        );
        std::fs::write(ground.work.join("many"), "一行\n".repeat(100_000)).unwrap();
        let told = read(&ground, &reading("many", None, Some(100_000))).unwrap();
        assert!(chars(&told) < 30_000 && told.contains("of 100000; go on with"), "{}", chars(&told));
    }
}
