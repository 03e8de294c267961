//! What a confined process is told, and what it answers: one line of JSON each way.

use std::{
    io::{self, BufRead},
    path::PathBuf,
};

use ipc::config::Tools;
use serde::{Deserialize, Serialize};

use crate::tools::files;

/// The longest order, in bytes: a file as it is to be written, with room for JSON around it.
const ORDER_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// What is to be done, and where.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Order {
    /// The home of Lisa.
    pub(super) home: PathBuf,
    /// Where her sockets are.
    pub(super) run: PathBuf,
    /// What the person has set.
    pub(super) tools: Tools,
    /// The person's own home, for `~`.
    pub(super) person_home: Option<PathBuf>,
    /// The folder of the conversation, as the client named it.
    pub(super) cwd: PathBuf,
    /// What is to be done.
    pub(super) deed: Deed,
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Deed {
    /// Say what is enforced. What was left in scratch is removed.
    Probe,
    /// Become bash.
    Bash {
        /// What it runs.
        command: String,
    },
    /// See `files`.
    Read(files::Read),
    Write(files::Write),
    Edit(files::Edit),
    Ls(files::Ls),
    Glob(files::Glob),
    Grep(files::Grep),
}

/// What came of a deed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Said {
    /// For the model.
    pub(crate) output: String,
    /// Whether it was not done.
    pub(crate) failed: bool,
}

/// How a command ended, as its guard says it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Ended {
    /// Its exit code.
    pub(super) code: Option<i32>,
    /// The signal that ended it.
    pub(super) signal: Option<i32>,
    /// How many processes it had left behind, which were ended.
    pub(super) left: usize,
    /// Whether it was ended because it had started too many.
    pub(super) too_many: bool,
}

/// What the guard, or what it starts, has to say beside the output of the command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Word {
    /// The command was not run, and why.
    Refused(String),
    /// It ended.
    Ended(Ended),
}

impl Word {
    /// As one line, with its end.
    pub(super) fn line(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).expect("a word is JSON");
        line.push(b'\n');
        line
    }
}

/// Reads an order, and its line as it came.
pub(super) fn read(from: &mut impl BufRead) -> io::Result<(Order, Vec<u8>)> {
    let mut line = Vec::new();
    io::Read::take(&mut *from, ORDER_BYTES_MAX).read_until(b'\n', &mut line)?;
    let order = serde_json::from_slice(&line).map_err(|error| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("this program is started by the agent alone; what it was told is no order: {error}"),
        )
    })?;
    Ok((order, line))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::tools::sandbox) fn order(home: &str, cwd: &str, tools: Tools) -> Order {
        Order {
            home: home.into(),
            run: PathBuf::from(home).join("run"),
            tools,
            person_home: Some("/home/anna".into()),
            cwd: cwd.into(),
            deed: Deed::Probe,
        }
    }

    #[test]
    fn an_order_is_one_line_and_anything_else_is_refused_in_words() {
        let mut asked = order("/h", "/w", Tools::default());
        asked.deed = Deed::Bash { command: "echo 你好\necho \"x\"".into() };
        let mut line = serde_json::to_vec(&asked).unwrap();
        assert!(!line.contains(&b'\n'));
        line.extend(b"\nmore");
        let (read_back, came) = read(&mut line.as_slice()).unwrap();
        assert_eq!((read_back, came.len() + 4), (asked, line.len()));
        assert!(read(&mut b"".as_slice()).unwrap_err().to_string().contains("agent alone"));
        assert!(read(&mut b"{\"home\":\"/\"}\n".as_slice()).is_err());
        let word = Word::Ended(Ended { code: Some(0), ..Ended::default() });
        assert_eq!(serde_json::from_slice::<Word>(&word.line()).unwrap(), word);
    }
}
