//! Who writes a session: one process at a time, under a lock of the kernel on its file, so that lines of two never mix.
//!
//! The lock is taken with the first line and held as long as the session is; it ends with the process that held it. A file
//! that was removed is not made again without its first line, and one that was put in its place is locked in its turn.

use std::{
    fs::{File, Metadata, OpenOptions, TryLockError},
    io,
    os::unix::fs::MetadataExt as _,
    path::Path,
};

use super::file::{self, Entry, SessionError};

/// The lock of one session, where it is held.
#[derive(Debug, Default)]
pub(super) struct Writer(Option<File>);

impl Writer {
    /// Appends one line to the session `id` at `path`; `durable` waits until it is on the disk.
    pub(super) fn append(
        &mut self,
        path: &Path,
        id: &str,
        entry: &Entry,
        durable: bool,
    ) -> Result<(), SessionError> {
        let gone = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => SessionError::Unknown { id: id.to_owned() },
            _ => SessionError::io("append to", path)(error),
        };
        let there = std::fs::metadata(path).map_err(gone)?;
        if !self.holds(&there) {
            self.0 = Some(locked(path, id)?);
        }
        file::append(path, entry, durable)
    }

    fn holds(&self, there: &Metadata) -> bool {
        let held = self.0.as_ref().and_then(|file| file.metadata().ok());
        held.is_some_and(|held| (held.dev(), held.ino()) == (there.dev(), there.ino()))
    }
}

fn locked(path: &Path, id: &str) -> Result<File, SessionError> {
    let file = OpenOptions::new().append(true).open(path).map_err(SessionError::io("append to", path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(SessionError::Busy { id: id.to_owned() }),
        Err(TryLockError::Error(error)) => Err(SessionError::io("lock", path)(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::Message;
    use jiff::Timestamp;

    fn message() -> Entry {
        Entry::Message { ts: Timestamp::UNIX_EPOCH, message: Message::user("灯"), request: None, from: None }
    }

    #[test]
    fn a_session_has_one_writer_until_that_one_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        std::fs::write(&path, "").unwrap();
        let (mut one, mut other) = (Writer::default(), Writer::default());
        one.append(&path, "s", &message(), false).unwrap();
        one.append(&path, "s", &message(), true).unwrap();
        let refused = other.append(&path, "s", &message(), false).unwrap_err();
        assert!(matches!(refused, SessionError::Busy { .. }), "{refused}");
        drop(one);
        other.append(&path, "s", &message(), false).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 3);
    }

    #[test]
    fn what_was_removed_is_not_made_again_and_what_was_put_in_its_place_is_locked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        std::fs::write(&path, "").unwrap();
        let (mut one, mut other) = (Writer::default(), Writer::default());
        one.append(&path, "s", &message(), false).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(one.append(&path, "s", &message(), false), Err(SessionError::Unknown { .. })));
        assert!(!path.exists());
        std::fs::write(&path, "").unwrap();
        one.append(&path, "s", &message(), false).unwrap();
        assert!(other.append(&path, "s", &message(), false).is_err());
    }
}
