//! Why the disk does not take a write, and what a person can do about it.
//!
//! SQLite says `disk I/O error` whatever the system said, and libgit2 has the system's words inside a sentence of its
//! own. So the system is asked again, beside the file that could not be written, and what to do is found by its words.

use std::{
    fs::File,
    io::{self, Seek as _, SeekFrom, Write as _},
    path::Path,
};

use rusqlite::ErrorCode;

use super::{RepositoryError, workfile};

/// What the system says, and what to do then.
const REMEDIES: [(&str, &str); 9] = [
    ("No space left on device", "make room on that disk"),
    ("Disk quota exceeded", "make room, or have the quota raised"),
    ("no storage space", "make room on that disk"),
    ("Read-only file system", "see why it was mounted read-only (`dmesg`), and mount it writable again"),
    ("Permission denied", "give the user who runs Lisa the right to write there"),
    ("Operation not permitted", "see whether the file is locked against changes (`lsattr`), and unlock it"),
    ("File too large", "raise the limit on the size of files (`ulimit -f`) for whoever starts Lisa"),
    ("Too many open files", "raise the limit on open files (`ulimit -n`) for whoever starts Lisa"),
    ("Input/output error", "the disk may be failing: copy the home elsewhere, and see what `dmesg` says"),
];

/// An error with its causes and what to do, as one sentence.
pub(crate) fn sentence(error: &RepositoryError) -> String {
    let chain = ipc::exit::chain(error);
    match REMEDIES.iter().find(|(words, _)| chain.contains(words)) {
        // what stands between two of our own threads has its remedy already
        Some((_, remedy)) if !chain.contains(remedy) => format!("{chain}; {remedy}"),
        _ => chain,
    }
}

/// Whether it is the disk that does not take a write, rather than something that lies there or somebody who was faster.
pub(super) fn is_of_the_disk(error: &RepositoryError) -> bool {
    matches!(error, RepositoryError::File { .. } | RepositoryError::Git { .. } | RepositoryError::Log { .. })
}

/// An error of the log at `place`, with the system's own reason where it is one of the disk.
pub(super) fn of_log(attempt: &'static str, place: &Path, source: rusqlite::Error) -> RepositoryError {
    let told = match source.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => Some(io::ErrorKind::StorageFull.into()),
        Some(
            ErrorCode::SystemIoFailure
            | ErrorCode::CannotOpen
            | ErrorCode::ReadOnly
            | ErrorCode::PermissionDenied,
        ) => refused_beside(place).err(),
        _ => None,
    };
    match told {
        Some(source) => RepositoryError::File { attempt, path: place.to_owned(), source },
        None => RepositoryError::log(attempt)(source),
    }
}

/// Does what the log does, without touching it: opening and closing one of its files would give up SQLite's lock on it.
fn refused_beside(place: &Path) -> io::Result<()> {
    use rustix::fs::{Access, access};
    let folder = place.parent().unwrap_or(place);
    let journal = place.with_extension("sqlite-wal");
    access(folder, Access::WRITE_OK | Access::EXEC_OK)?;
    for file in [place, &journal] {
        match access(file, Access::WRITE_OK) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
    }
    // as far in as the log goes: a limit on the size of files is one on where may be written
    let end = journal.metadata().map_or(0, |journal| journal.len());
    write_page(folder, end)
}

/// Whether a page can be written and made durable in a new file of `folder`, at an offset.
pub(super) fn write_page(folder: &Path, offset: u64) -> io::Result<()> {
    let mut file = workfile::unfinished(folder)?;
    let file: &mut File = file.as_file_mut();
    file.seek(SeekFrom::Start(offset))?;
    file.write_all(&[0; 4096])?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::{Error, ffi};

    #[test]
    fn what_the_system_says_is_said_with_what_to_do() {
        let check = |source: io::Error, remedy: &str| {
            let path = "/x".into();
            let said = sentence(&RepositoryError::File { attempt: "write", path, source });
            assert!(said.starts_with("could not write `/x`: ") && said.contains(remedy), "{said}");
            let stuck = sentence(&RepositoryError::Stuck { why: said.clone() });
            assert_eq!(stuck.matches(remedy).count(), 1, "{stuck}");
        };
        check(rustix::io::Errno::NOSPC.into(), "make room");
        check(rustix::io::Errno::ROFS.into(), "mount it writable");
        check(rustix::io::Errno::ACCESS.into(), "the right to write");
        check(rustix::io::Errno::FBIG.into(), "ulimit -f");
        check(io::ErrorKind::StorageFull.into(), "make room");
        let git = git2::Error::from_str("failed to create '/x/y.lock': Read-only file system");
        assert!(sentence(&RepositoryError::git("move the branch")(git)).ends_with("writable again"));
    }

    #[test]
    fn an_error_of_sqlite_has_the_systems_reason_where_there_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("log.sqlite");
        let said = |code| {
            let error = Error::SqliteFailure(ffi::Error::new(code), None);
            sentence(&of_log("write the log", &place, error))
        };
        assert!(said(ffi::SQLITE_FULL).contains("make room"));
        assert!(said(ffi::SQLITE_IOERR).contains("disk I/O error"), "the system takes a page now");
        assert!(said(ffi::SQLITE_CORRUPT).contains("malformed"));
        drop(folder);
        assert!(said(ffi::SQLITE_IOERR).contains("No such file"), "{}", said(ffi::SQLITE_IOERR));
    }
}
