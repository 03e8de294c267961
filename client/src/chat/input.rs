//! What is said: the whole of stdin as one turn, or its lines as they come.
//!
//! A terminal is read by a thread of its own: a blocking read cannot be given up, and a thread that is in one does not
//! hold the process back at its end.

use std::{
    collections::VecDeque,
    io::{BufRead, Read as _},
    time::Duration,
};

use ipc::exit::Fault;
use tokio::sync::mpsc;

/// The longest turn, in bytes: a long book. What is sent escaped must fit into one frame.
const TURN_BYTES_MAX: usize = 1024 * 1024;

/// How many lines are put aside before a question.
const AHEAD_MAX: usize = 64;
/// What comes from a terminal within this time was typed before.
const TYPED_BEFORE: Duration = Duration::from_millis(50);

/// Why something cannot be said.
#[derive(Debug, thiserror::Error)]
enum InputError {
    #[error("could not read standard input")]
    Read(#[source] std::io::Error),
    #[error("what stands on standard input is no text in UTF-8")]
    NoText,
    #[error("what stands on standard input is longer than {} KiB, too long for one turn", TURN_BYTES_MAX / 1024)]
    TooLong,
}

/// Reads the whole of stdin as one turn.
pub(super) fn whole() -> Result<String, Fault> {
    read_whole(std::io::stdin().lock()).map_err(Fault::failed)
}

fn read_whole(from: impl std::io::Read) -> Result<String, InputError> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(TURN_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
    from.take(limit).read_to_end(&mut bytes).map_err(InputError::Read)?;
    if bytes.len() > TURN_BYTES_MAX {
        return Err(InputError::TooLong);
    }
    String::from_utf8(bytes).map_err(|_| InputError::NoText)
}

/// One line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// What it says, without its end.
    Said(String),
    /// It cannot be said, and why.
    Unreadable(String),
}

/// The lines of stdin, as they come.
#[derive(Debug)]
pub(super) struct Lines {
    read: mpsc::Receiver<Line>,
    /// What was typed before a question was shown, and so does not answer it.
    ahead: VecDeque<Line>,
}

impl Lines {
    /// Begins to read.
    pub(super) fn read() -> Self {
        // one line ahead is enough: what is typed during a reply waits in the terminal
        let (send, lines) = mpsc::channel(1);
        std::thread::spawn(move || {
            let mut stdin = std::io::stdin().lock();
            while let Some(line) = read_line(&mut stdin) {
                if send.blocking_send(line).is_err() {
                    break;
                }
            }
        });
        Self { read: lines, ahead: VecDeque::new() }
    }

    /// The next line; nothing after the last one. Giving up the wait loses nothing.
    pub(super) async fn next(&mut self) -> Option<Line> {
        match self.ahead.pop_front() {
            Some(line) => Some(line),
            None => self.read.recv().await,
        }
    }

    /// Puts what was typed so far aside: a question is about to be shown.
    pub(super) async fn put_aside(&mut self) {
        while self.ahead.len() < AHEAD_MAX {
            match tokio::time::timeout(TYPED_BEFORE, self.read.recv()).await {
                Ok(Some(line)) => self.ahead.push_back(line),
                Ok(None) | Err(_) => return,
            }
        }
    }

    /// The next line that was typed after that; nothing after the last one. Giving up the wait loses nothing.
    pub(super) async fn answer(&mut self) -> Option<Line> {
        self.read.recv().await
    }
}

fn read_line(from: &mut impl BufRead) -> Option<Line> {
    let mut bytes = Vec::new();
    let mut too_long = false;
    loop {
        let buffer = match from.fill_buf() {
            Ok(buffer) => buffer,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            // a terminal that is gone has no more lines
            Err(_) => break,
        };
        if buffer.is_empty() {
            break;
        }
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(buffer.len(), |end| end + 1);
        // of a line that is too long only the length is of interest
        if bytes.len() + taken > TURN_BYTES_MAX {
            too_long = true;
        } else {
            bytes.extend(buffer.iter().take(taken));
        }
        from.consume(taken);
        if end.is_some() {
            break;
        }
    }
    if too_long {
        return Some(Line::Unreadable(InputError::TooLong.to_string()));
    }
    if bytes.is_empty() {
        return None;
    }
    Some(match String::from_utf8(bytes) {
        Ok(line) => Line::Said(line.trim_end_matches(['\r', '\n']).to_owned()),
        Err(_) => Line::Unreadable(InputError::NoText.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    #[test]
    fn lines_come_one_by_one_and_a_bad_one_is_named() {
        let mut bytes = "who are you?\r\n\n你是谁\n".as_bytes().to_vec();
        bytes.extend(b"\xff\xfe\n");
        bytes.extend(vec![b'x'; TURN_BYTES_MAX + 1]);
        bytes.extend(b"\nlast");
        let mut from = BufReader::with_capacity(7, bytes.as_slice());
        let mut next = || read_line(&mut from);
        let said = |text: &str| Some(Line::Said(text.to_owned()));
        assert_eq!(next(), said("who are you?"));
        assert_eq!(next(), said(""));
        assert_eq!(next(), said("你是谁"));
        assert!(matches!(next(), Some(Line::Unreadable(why)) if why.contains("UTF-8")));
        assert!(matches!(next(), Some(Line::Unreadable(why)) if why.contains("1024 KiB")));
        assert_eq!(next(), said("last"));
        assert_eq!(next(), None);
    }

    #[test]
    fn a_whole_text_is_one_turn_within_its_bounds() {
        assert_eq!(read_whole("a\n灯塔\n".as_bytes()).unwrap(), "a\n灯塔\n");
        assert!(matches!(read_whole(&b"\xff"[..]), Err(InputError::NoText)));
        let long = vec![b'x'; TURN_BYTES_MAX + 1];
        assert!(matches!(read_whole(long.as_slice()), Err(InputError::TooLong)));
        assert!(read_whole(long.get(1..).unwrap()).is_ok());
    }
}
