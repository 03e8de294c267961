//! Where words go: data to stdout, words about it to stderr, and nothing in them drives a terminal.
//!
//! A reader that has had enough (`lisa events | head`) ends the program quietly: a closed pipe becomes a fault that
//! exits with 0 and is not printed. What cannot be said on stderr is lost, since there is no other place to say it.

use std::{
    fmt::Write as _,
    io::{self, ErrorKind, IsTerminal as _, Write as _},
};

use ipc::{
    exit::{Exit, Fault},
    text::is_direction,
};
use serde::Serialize;

/// Whether data is read by eyes.
pub(crate) fn stdout_is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Whether words about the data are read by eyes.
pub(crate) fn stderr_is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Writes `text` to stdout at once, without adding anything; on a terminal its control characters become visible.
pub(crate) fn text(text: &str) -> Result<(), Fault> {
    let mut stdout = io::stdout().lock();
    let written = if stdout_is_terminal() {
        stdout.write_all(visible(text).as_bytes())
    } else {
        stdout.write_all(text.as_bytes())
    };
    written.and_then(|()| stdout.flush()).map_err(unwritten)
}

/// Writes `text` to stdout as lines: a line end follows where it has none of its own.
pub(crate) fn lines(said: &str) -> Result<(), Fault> {
    text(said)?;
    if said.is_empty() || said.ends_with('\n') { Ok(()) } else { text("\n") }
}

/// Writes one JSON document as a line to stdout.
pub(crate) fn json(value: &impl Serialize) -> Result<(), Fault> {
    text(&format!("{}\n", json_line(value)))
}

/// Writes a line about the data to stderr.
pub(crate) fn aside(line: &str) {
    aside_text(&format!("{line}\n"));
}

/// Writes to stderr without ending the line.
pub(crate) fn aside_text(text: &str) {
    let mut stderr = io::stderr().lock();
    let text = if stderr_is_terminal() { visible(text) } else { text.to_owned() };
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// One line of JSON, in which even the control characters that JSON allows bare (DEL and C1) are escaped.
pub(crate) fn json_line(value: &impl Serialize) -> String {
    let line = serde_json::to_string(value).expect("what we print is JSON");
    let mut escaped = String::with_capacity(line.len());
    for c in line.chars() {
        if c.is_control() {
            let _ = write!(escaped, "\\u{:04x}", u32::from(c));
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// `text` with every control character but line end and tab replaced by a picture of it, and so every one that turns the
/// direction of what stands behind it.
pub(crate) fn visible(text: &str) -> String {
    let picture = |c: char| match c {
        '\n' | '\t' => c,
        '\u{0}'..='\u{1f}' => char::from_u32(0x2400 + u32::from(c)).unwrap_or(char::REPLACEMENT_CHARACTER),
        '\u{7f}' => '\u{2421}',
        c if c.is_control() || is_direction(c) => char::REPLACEMENT_CHARACTER,
        c => c,
    };
    text.chars().map(picture).collect()
}

fn unwritten(error: io::Error) -> Fault {
    match error.kind() {
        ErrorKind::BrokenPipe => Fault { exit: Exit::Asked, source: error.into() },
        _ => Fault::failed(Unwritten(error)),
    }
}

/// Standard output failed.
#[derive(Debug, thiserror::Error)]
#[error("could not write to standard output")]
struct Unwritten(#[source] io::Error);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_does_not_drive_the_terminal() {
        let check = |text: &str, expected: &str| assert_eq!(visible(text), expected);
        check("灯塔\n\tshe hums", "灯塔\n\tshe hums");
        check("\u{1b}[2J\u{1b}]0;x\u{7}", "␛[2J␛]0;x␇");
        check("a\rb\u{8}\u{7f}\u{9b}31m", "a␍b␈␡\u{fffd}31m");
    }

    #[test]
    fn a_json_line_has_no_bare_control_characters() {
        let line = json_line(&"灯\u{1b}\u{7f}\u{9b}\n");
        assert!(!line.chars().any(char::is_control), "{line}");
        assert_eq!(serde_json::from_str::<String>(&line).unwrap(), "灯\u{1b}\u{7f}\u{9b}\n");
    }

    #[test]
    fn a_reader_that_has_had_enough_is_no_failure() {
        assert_eq!(unwritten(ErrorKind::BrokenPipe.into()).exit, Exit::Asked);
        assert_eq!(unwritten(ErrorKind::StorageFull.into()).exit, Exit::Failed);
    }
}
