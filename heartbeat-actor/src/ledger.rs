//! The ledger of her own time: what was seen, claimed and ended, appended to a file before it counts.
//!
//! ```text
//!  {"type":"seen", task, at}                              its rest begins
//!  {"type":"claimed", run, task, request, at}             written, and on the disk, before it runs
//!  {"type":"ended", run, outcome, session?, note, at}     it is over
//! ```
//!
//! A claim without an end is a run the process died in: it ends as interrupted at the next start and is not run again by
//! itself; its next occurrence comes when it comes.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

use ipc::{
    contract::heartbeat::{Outcome, RunReport},
    lines,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// How many ended runs are remembered in memory, for repeated questions.
const REMEMBERED_MAX: usize = 256;

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Line {
    /// A task was first seen.
    Seen { task: String, at: Timestamp },
    /// A run is about to begin.
    Claimed {
        run: String,
        task: String,
        /// The request of a person that asked for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request: Option<String>,
        at: Timestamp,
    },
    /// A run is over.
    Ended { run: String, outcome: Outcome, session: Option<String>, note: String, at: Timestamp },
}

/// What the lines say.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    anchors: BTreeMap<String, Timestamp>,
    open: BTreeMap<String, Claim>,
    ended: Vec<(Option<String>, RunReport)>,
}

#[derive(Debug, Clone)]
struct Claim {
    task: String,
    request: Option<String>,
    at: Timestamp,
}

impl Ledger {
    /// From when a task rests: its last claim, or its first sight.
    pub(crate) fn anchor(&self, task: &str) -> Option<Timestamp> {
        self.anchors.get(task).copied()
    }

    /// The runs that were begun and never ended.
    pub(crate) fn open(&self) -> Vec<String> {
        self.open.keys().cloned().collect()
    }

    /// The runs a request led to, where it was heard before.
    pub(crate) fn of_request(&self, request: &str) -> Vec<RunReport> {
        let of = |(asked, report): &(Option<String>, RunReport)| {
            (asked.as_deref() == Some(request)).then(|| report.clone())
        };
        self.ended.iter().filter_map(of).collect()
    }

    /// Takes one line.
    pub(crate) fn fold(&mut self, line: Line) {
        match line {
            Line::Seen { task, at } => {
                self.anchors.entry(task).or_insert(at);
            }
            Line::Claimed { run, task, request, at } => {
                self.anchors.insert(task.clone(), at);
                self.open.insert(run, Claim { task, request, at });
            }
            Line::Ended { run, outcome, session, note, at } => {
                let Some(claim) = self.open.remove(&run) else { return };
                if self.ended.len() >= REMEMBERED_MAX {
                    self.ended.remove(0);
                }
                let report =
                    RunReport { run, task: claim.task, outcome, session, note, started: claim.at, ended: at };
                self.ended.push((claim.request, report));
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn saw(&mut self, task: &str, at: Timestamp) {
        self.fold(Line::Seen { task: task.to_owned(), at });
    }

    #[cfg(test)]
    pub(crate) fn claimed(&mut self, task: &str, at: Timestamp) {
        let run = format!("{task}@{at}");
        self.fold(Line::Claimed { run, task: task.to_owned(), request: None, at });
    }
}

/// Why the ledger cannot be kept.
#[derive(Debug, thiserror::Error)]
#[error("could not {attempt} the ledger `{path}`")]
pub(crate) struct LedgerError {
    attempt: &'static str,
    path: PathBuf,
    source: io::Error,
}

/// The ledger and its file.
#[derive(Debug)]
pub(crate) struct Book {
    path: PathBuf,
    /// What its lines say.
    pub(crate) ledger: Ledger,
}

impl Book {
    /// Reads the file at `path`, which need not be there. Torn and unknown lines are passed over.
    pub(crate) fn open(path: &Path) -> Result<Self, LedgerError> {
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(source) => return Err(LedgerError { attempt: "read", path: path.to_owned(), source }),
        };
        let mut ledger = Ledger::default();
        for line in lines::parse(&bytes) {
            ledger.fold(line);
        }
        Ok(Self { path: path.to_owned(), ledger })
    }

    /// Appends a line; when this returns it is on the disk, and counts.
    pub(crate) fn write(&mut self, line: Line) -> Result<(), LedgerError> {
        let write = || {
            if let Some(folder) = self.path.parent() {
                std::fs::create_dir_all(folder)?;
            }
            lines::append(&self.path, &line, true)
        };
        write().map_err(|source| LedgerError { attempt: "append to", path: self.path.clone(), source })?;
        self.ledger.fold(line);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn claim(run: &str, second: i64) -> Line {
        Line::Claimed { run: run.into(), task: "desire:a".into(), request: Some("r".into()), at: at(second) }
    }

    #[test]
    fn what_was_written_is_there_after_a_restart_and_a_torn_line_is_nobodys() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("heartbeat/ledger.jsonl");
        let mut book = Book::open(&path).unwrap();
        book.write(Line::Seen { task: "desire:a".into(), at: at(1) }).unwrap();
        book.write(Line::Seen { task: "desire:a".into(), at: at(9) }).unwrap();
        assert_eq!(book.ledger.anchor("desire:a"), Some(at(1)), "it is first seen once");
        book.write(claim("1", 20)).unwrap();
        std::fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"type\":\"en").unwrap();

        let mut book = Book::open(&path).unwrap();
        assert_eq!(
            (book.ledger.anchor("desire:a"), book.ledger.open()),
            (Some(at(20)), vec!["1".to_owned()])
        );
        let ended = Line::Ended {
            run: "1".into(),
            outcome: Outcome::Interrupted,
            session: None,
            note: "n".into(),
            at: at(30),
        };
        book.write(ended).unwrap();
        let book = Book::open(&path).unwrap();
        assert!(book.ledger.open().is_empty());
        let reports = book.ledger.of_request("r");
        assert_eq!(
            (reports.len(), reports[0].outcome, reports[0].started),
            (1, Outcome::Interrupted, at(20))
        );
        assert!(book.ledger.of_request("other").is_empty());
    }
}
