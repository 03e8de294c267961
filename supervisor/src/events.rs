//! The event log: what happened to the processes and the self, numbered, kept on disk and for a while in memory.
//!
//! An event is named by `(epoch, seq)`: the epoch counts the supervisors of a home, the seq their events. The file is a
//! record for people and for clients that come back; losing its tail to a power cut loses no word of hers.

use std::{
    collections::VecDeque,
    io,
    path::{Path, PathBuf},
};

use ipc::{
    contract::chat::{Cursor, Event, Events},
    lines,
};
use jiff::Timestamp;
use serde_json::{Map, Value};
use tracing::warn;

use crate::spawn::older;

/// How many events are kept in memory, and can be asked for.
const KEPT_MAX: usize = 4096;
/// A file larger than this is moved aside (to `.1`, over the one before).
const FILE_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// How much of an old file is read at the start.
const TAIL_BYTES: u64 = 1024 * 1024;

/// The log of one supervisor.
#[derive(Debug)]
pub(crate) struct EventLog {
    path: PathBuf,
    epoch: u64,
    seq: u64,
    kept: VecDeque<Event>,
    /// Whether events before the first kept one existed.
    forgot: bool,
}

impl EventLog {
    /// Opens the log at `path` and begins the next epoch. It begins to count its events from 1.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let (tail, whole) = lines::tail(path, TAIL_BYTES)?;
        let mut kept: VecDeque<Event> = lines::parse(&tail).into();
        let forgot = !whole || kept.len() > KEPT_MAX;
        while kept.len() > KEPT_MAX {
            kept.pop_front();
        }
        let epoch = kept.back().map_or(0, |event| event.epoch) + 1;
        Ok(Self { path: path.to_owned(), epoch, seq: 0, kept, forgot })
    }

    /// Which supervisor of the home this is.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Writes an event down, and returns it numbered.
    pub(crate) fn record(&mut self, kind: &str, fields: Map<String, Value>, time: Timestamp) -> Event {
        self.seq += 1;
        let event = Event { epoch: self.epoch, seq: self.seq, time, kind: kind.to_owned(), fields };
        if let Err(error) = self.write(&event) {
            // a full disk must not stop the supervision; the event is still told to whoever is attached
            warn!(%error, path = %self.path.display(), "could not write the event log");
        }
        self.kept.push_back(event.clone());
        if self.kept.len() > KEPT_MAX {
            self.kept.pop_front();
            self.forgot = true;
        }
        event
    }

    /// What happened after a cursor.
    pub(crate) fn after(&self, cursor: Option<Cursor>) -> Events {
        let events: Vec<_> =
            self.kept.iter().filter(|event| cursor.is_none_or(|c| event.cursor() > c)).cloned().collect();
        let follows_on = |after: Cursor| {
            self.kept.front().map(Event::cursor).is_some_and(|first| {
                first <= after || (first.epoch == after.epoch && first.seq == after.seq + 1)
            })
        };
        let gap = self.forgot && !cursor.is_some_and(follows_on);
        Events { events, gap }
    }

    fn write(&self, event: &Event) -> io::Result<()> {
        if std::fs::metadata(&self.path).is_ok_and(|metadata| metadata.len() > FILE_BYTES_MAX) {
            std::fs::rename(&self.path, older(&self.path))?;
        }
        lines::append(&self.path, event, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn record(log: &mut EventLog, kind: &str) -> Event {
        log.record(kind, Map::new(), Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn epochs_count_on_over_restarts_and_a_torn_line_is_nobodys_event() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("logs/events.jsonl");
        let mut first = EventLog::open(&path).unwrap();
        assert_eq!(record(&mut first, "a").cursor(), Cursor { epoch: 1, seq: 1 });
        assert_eq!(record(&mut first, "b").cursor(), Cursor { epoch: 1, seq: 2 });
        drop(first);
        std::fs::OpenOptions::new()
            .append(true)
            .open(&path)
            .unwrap()
            .write_all(b"{\"epoch\":1,\"se")
            .unwrap();
        let mut second = EventLog::open(&path).unwrap();
        assert_eq!(record(&mut second, "c").cursor(), Cursor { epoch: 2, seq: 1 });
        let third = EventLog::open(&path).unwrap();
        assert_eq!(third.epoch(), 3);
        let kinds: Vec<_> = third.after(None).events.into_iter().map(|event| event.kind).collect();
        assert_eq!(kinds, ["a", "b", "c"]);
    }

    #[test]
    fn b20_what_is_no_longer_kept_is_said_to_be_missing() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = EventLog::open(&folder.path().join("events.jsonl")).unwrap();
        for _ in 0..KEPT_MAX {
            record(&mut log, "x");
        }
        assert!(!log.after(None).gap);
        record(&mut log, "x");
        assert!(log.after(None).gap);
        assert!(log.after(Some(Cursor { epoch: 1, seq: 0 })).gap);
        assert!(!log.after(Some(Cursor { epoch: 1, seq: 1 })).gap, "the next one is still kept");
        let last = log.after(Some(Cursor { epoch: 1, seq: KEPT_MAX as u64 }));
        assert_eq!((last.events.len(), last.gap), (1, false));
    }
}
