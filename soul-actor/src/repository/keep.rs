//! Keeping: a reference to the newest commit, durable before anything is built on that it is there.

use git2::ErrorCode;

use super::{Repository, RepositoryError, Result};

impl Repository {
    /// Keeps the newest commit under a name. Another commit that the name keeps already stays kept: where it is part of
    /// the history the name moves on, and where it is not the name gets a number.
    pub(crate) fn keep_newest_as(&mut self, name: &str) -> Result<()> {
        self.settle()?;
        let (git, Some(newest)) = (self.git()?, self.head.id) else { return Ok(()) };
        let mut free = name.to_owned();
        for number in 2.. {
            match git.refname_to_id(&free) {
                Ok(kept) if kept == newest => return Ok(()),
                Ok(kept) if git.graph_descendant_of(newest, kept).unwrap_or(false) => break,
                Ok(_) => free = format!("{name}.{number}"),
                Err(error) if error.code() == ErrorCode::NotFound => break,
                Err(source) => return Err(RepositoryError::Git { attempt: "read a reference", source }),
            }
        }
        let kept = git.reference(&free, newest, true, "lisa: kept before a migration");
        let kept = kept.map(drop).map_err(RepositoryError::git("keep the commit before the migration"));
        self.noting(kept.and_then(|()| self.make_durable()))
    }
}
