//! The anchor: the branch and the newest commit that were known to be hers, kept beside the history.
//!
//! It lags behind a little and is never ahead: a history that does not contain it is another history.

use std::path::Path;

use serde::{Deserialize, Serialize};

/// What was known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Anchor {
    /// The branch, by its short name.
    pub(crate) branch: String,
    /// The commit.
    pub(crate) head: String,
}

impl Anchor {
    /// Reads it; a torn one says nothing.
    pub(crate) fn read(root: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(root.join(".git/lisa/anchor.json")).ok()?).ok()
    }

    /// Keeps it, where it says something else than before. Failing to is nothing: the next look keeps it.
    pub(crate) fn keep(&self, root: &Path, before: Option<&Self>) {
        if before == Some(self) {
            return;
        }
        let folder = root.join(".git/lisa");
        let bytes = serde_json::to_vec(self).expect("an anchor is JSON");
        let unfinished = folder.join("anchor.json.new");
        if std::fs::write(&unfinished, bytes).is_ok() {
            let _ = std::fs::rename(unfinished, folder.join("anchor.json"));
        }
    }
}
