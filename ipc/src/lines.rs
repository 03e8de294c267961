//! Append-only files of one JSON object a line, readable after a kill at any byte.
//!
//! A torn last line is nobody's: it is passed over when reading, and never continued when appending.

use std::{
    fs::{File, OpenOptions},
    io::{self, BufRead, Read as _, Seek as _, SeekFrom, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use serde::{Serialize, de::DeserializeOwned};

/// The lines that are a `T`, in order; what is none (torn, or of a kind unknown here) is passed over.
pub fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Vec<T> {
    bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

/// The lines of `from` that are a `T`, one at a time, so that a file of any size needs the memory of its longest line. What
/// is none is passed over, and so is a line of more than `bytes_max`. It ends with the first error.
pub fn stream<T: DeserializeOwned>(
    mut from: impl BufRead,
    bytes_max: usize,
) -> impl Iterator<Item = io::Result<T>> {
    let mut line = Vec::new();
    let mut is_over = false;
    std::iter::from_fn(move || {
        while !is_over {
            match next(&mut from, &mut line, bytes_max) {
                Ok(false) => is_over = true,
                Ok(true) => {
                    if let Ok(read) = serde_json::from_slice(&line) {
                        return Some(Ok(read));
                    }
                }
                Err(error) => {
                    is_over = true;
                    return Some(Err(error));
                }
            }
        }
        None
    })
}

/// Reads the next line, or nothing of one that is too long; false at the end.
fn next(from: &mut impl BufRead, line: &mut Vec<u8>, bytes_max: usize) -> io::Result<bool> {
    line.clear();
    let bytes_max = u64::try_from(bytes_max).unwrap_or(u64::MAX);
    let read = from.by_ref().take(bytes_max).read_until(b'\n', line)?;
    if u64::try_from(read).unwrap_or(u64::MAX) == bytes_max && line.last() != Some(&b'\n') {
        line.clear();
        from.skip_until(b'\n')?;
    }
    Ok(read > 0)
}

/// Appends one line, making the file (for us alone) where there is none. When it returns and `durable` was asked for, the
/// line is on the disk.
pub fn append(path: &Path, line: &impl Serialize, durable: bool) -> io::Result<()> {
    let mut file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
    let mut bytes = if ends_torn(&mut file)? { vec![b'\n'] } else { Vec::new() };
    serde_json::to_writer(&mut bytes, line)?;
    bytes.push(b'\n');
    file.write_all(&bytes)?;
    if durable { file.sync_data() } else { Ok(()) }
}

/// The last `bytes_max` bytes of a file, and whether that is all of it; a file that is not there is empty.
pub fn tail(path: &Path, bytes_max: u64) -> io::Result<(Vec<u8>, bool)> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Vec::new(), true)),
        Err(error) => return Err(error),
    };
    let from = file.metadata()?.len().saturating_sub(bytes_max);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok((bytes, from == 0))
}

fn ends_torn(file: &mut File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last != [b'\n'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t27_a_line_appended_after_a_kill_never_continues_a_torn_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines.jsonl");
        append(&path, &("first", 1), true).unwrap();
        append(&path, &("你好", 2), true).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for cut in 0..whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            append(&path, &("after", 3), false).unwrap();
            let read: Vec<(String, u32)> = parse(&std::fs::read(&path).unwrap());
            assert_eq!(read.last(), Some(&("after".to_owned(), 3)), "cut at {cut}");
        }
    }

    #[test]
    fn lines_are_read_one_at_a_time_and_what_is_none_or_too_long_is_passed_over() {
        let check = |text: &str, expected: &[u32]| {
            // in pieces of every size, as a file may come
            for size in 1..9 {
                let from = io::BufReader::with_capacity(size, text.as_bytes());
                let read: Vec<u32> = stream(from, 8).map(Result::unwrap).collect();
                assert_eq!(read, expected, "{text:?} by {size}");
            }
        };
        check("", &[]);
        check("1\n2\n3", &[1, 2, 3]);
        check("1\n{\"torn\n\n\u{1f30d}\n2\n", &[1, 2]);
        check("1\n1234567\n12345678\n123456789\n         2\n3\n", &[1, 1_234_567, 3]);
        check("1\n           ", &[1]);
    }

    #[test]
    fn a_tail_says_whether_it_is_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines.jsonl");
        assert_eq!(tail(&path, 10).unwrap(), (vec![], true));
        std::fs::write(&path, "0123456789").unwrap();
        assert_eq!(tail(&path, 10).unwrap(), (b"0123456789".to_vec(), true));
        assert_eq!(tail(&path, 3).unwrap(), (b"789".to_vec(), false));
    }
}
