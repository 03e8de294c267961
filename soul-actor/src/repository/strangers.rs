//! Strangers: what was committed to her documents by somebody else, until a person says that it should stand.
//!
//! It is kept in the log, which knows exactly what was accepted here. So it covers every document, no trailer can pass
//! for one of hers, and no later write of hers makes it hers: only a person does, or bringing back what was there before.

use git2::Oid;

use super::{Repository, RepositoryError, Result, read::at, tree};
use crate::rollback::parse;

/// A document that somebody else changed by a commit of theirs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stranger {
    /// Where it lies.
    pub(crate) path: String,
    /// The newest of those commits when it was noticed.
    pub(crate) commit: Oid,
    /// What the document was before; nothing where it was not there.
    pub(crate) before: Option<Oid>,
}

impl Repository {
    /// The documents that are not as she left them, by somebody else's commit.
    pub(crate) fn strangers(&self) -> impl Iterator<Item = &Stranger> {
        self.strangers.iter().filter(|stranger| self.head.folder.file(&stranger.path) != stranger.before)
    }

    /// A person says that what others committed stands.
    pub(crate) fn welcome(&mut self) -> Result<()> {
        if !self.strangers.is_empty() {
            if let Some(writer) = &self.writer {
                writer.log().keep_strangers(&[])?;
            }
            self.strangers.clear();
        }
        Ok(())
    }

    /// Notes what somebody else changed between two commits.
    pub(super) fn notice_strangers(&mut self, known: Oid, here: Oid) -> Result<()> {
        let changed = self.changed_between(&known.to_string(), &here.to_string())?;
        let commit = self.git()?.find_commit(known).map_err(RepositoryError::git("read a commit"))?;
        let old = tree(&commit)?;
        // one that was noticed before is still compared with what she left
        let is_new = |path: &String| self.strangers.iter().all(|stranger| stranger.path != *path);
        let new: Vec<_> = changed
            .into_iter()
            .filter(|path| parse(path).is_some() && is_new(path))
            .map(|path| Stranger { before: at(Some(&old), &path), path, commit: here })
            .collect();
        drop((old, commit));
        self.strangers.extend(new);
        match &self.writer {
            Some(writer) => writer.log().keep_strangers(&self.strangers),
            None => Ok(()),
        }
    }
}
