//! Why the repository could not be used.

use std::{io, path::PathBuf};

/// Each says what to do where that is not plain.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RepositoryError {
    /// It is there and broken.
    #[error(
        "could not open the repository in `{path}`; see what `git -C {path} fsck` says, or move its `.git` away to begin a new history (the documents stay)"
    )]
    Open {
        /// The soul's folder.
        path: PathBuf,
        /// Why.
        source: git2::Error,
    },
    /// It is somebody else's.
    #[error(
        "the repository in `{path}` belongs to another user; give it to the user who runs Lisa (`chown -R`)"
    )]
    ForeignOwner {
        /// The soul's folder.
        path: PathBuf,
    },
    /// HEAD names no branch.
    #[error("the repository in `{path}` is on no branch; run `git -C {path} switch main`")]
    Detached {
        /// The soul's folder.
        path: PathBuf,
    },
    /// Somebody else commits.
    #[error("the branch of the soul moved while we wrote; nothing was changed, so ask again")]
    Moved,
    /// git refused.
    #[error("could not {attempt}")]
    Git {
        /// What was attempted.
        attempt: &'static str,
        /// Why not.
        source: git2::Error,
    },
    /// The system refused.
    #[error("could not {attempt} `{path}`")]
    File {
        /// What was attempted.
        attempt: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Something that is no document lies where one should be.
    #[error("`{path}` is {what}; put a regular file there or move it away")]
    InTheWay {
        /// The place.
        path: PathBuf,
        /// What is there.
        what: &'static str,
    },
    /// A file is too large to be a document.
    #[error("`{path}` has more than {} MiB; move part of it away", super::workfile::FILE_BYTES_MAX / 1024 / 1024)]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// The log refused.
    #[error("could not {attempt}")]
    Log {
        /// What was attempted.
        attempt: &'static str,
        /// Why not.
        source: rusqlite::Error,
    },
    /// The log does not lead to the commits it names.
    #[error("`{path}` {what}; move it away to go on from what git has (the writes in it are then lost)")]
    Replay {
        /// The log.
        path: PathBuf,
        /// What is wrong with it.
        what: &'static str,
    },
    /// What was accepted before cannot be brought into git, so nothing more is accepted.
    #[error("{why}; nothing that was accepted is lost, and writing goes on by itself once that is mended")]
    Stuck {
        /// What does not work.
        why: String,
    },
    /// The batch that a write was in could not be made durable.
    #[error("{why}")]
    Unlogged {
        /// Why not.
        why: String,
    },
    /// A test has killed the writer here.
    #[cfg(test)]
    #[error("cut")]
    Cut,
}

impl RepositoryError {
    /// Wraps an error of the log in what was attempted.
    pub(super) fn log(attempt: &'static str) -> impl FnOnce(rusqlite::Error) -> Self {
        move |source| Self::Log { attempt, source }
    }

    /// Wraps an error of git in what was attempted.
    pub(super) fn git(attempt: &'static str) -> impl FnOnce(git2::Error) -> Self {
        move |source| Self::Git { attempt, source }
    }
}
