//! The two versions: how many commits there are, and how many of them touched what a prompt shows.
//!
//! They are counted from the history and kept in the side index, with the commit they are of. What is kept is a cache: for
//! any other commit it is ignored, and the history counted again.

use git2::{Oid, Repository as Git, Tree};
use serde::{Deserialize, Serialize};

use super::{Repository, Result, accepted::SHOWN};

/// The versions of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Versions {
    /// How many commits there are.
    pub(crate) sequence: u64,
    /// How many of them touched what a prompt shows; at least one once she is born.
    pub(crate) prompt_version: u64,
}

impl Versions {
    /// After one more commit.
    pub(super) fn next(self, touches_prompt: bool) -> Self {
        if self.sequence == 0 {
            // whatever lay there uncommitted had the first version already
            return Self { sequence: 1, prompt_version: u64::from(touches_prompt) };
        }
        Self { sequence: self.sequence + 1, prompt_version: self.prompt_version + u64::from(touches_prompt) }
    }
}

/// What a prompt shows of a tree: equal values, equal prompts.
pub(super) fn shown(tree: Option<&Tree<'_>>) -> [Option<Oid>; SHOWN.len()] {
    SHOWN.map(|name| tree.and_then(|tree| tree.get_name(name)).map(|entry| entry.id()))
}

/// The names in the root of a tree.
pub(super) fn names(tree: &Tree<'_>) -> Vec<String> {
    tree.iter().map(|entry| String::from_utf8_lossy(entry.name_bytes()).into_owned()).collect()
}

impl Repository {
    /// The versions there are now.
    pub(crate) fn versions(&mut self) -> Result<Versions> {
        self.look_around()?;
        let born = u64::from(self.is_born()?);
        let versions = self.head.versions;
        Ok(Versions { prompt_version: versions.prompt_version.max(born), ..versions })
    }
}

/// Counts along the first parents, down to a commit whose versions are known, or to the first.
pub(super) fn count(
    git: &Git,
    head: Oid,
    known: Option<(Oid, Versions)>,
) -> std::result::Result<Versions, git2::Error> {
    let mut counted = Versions::default();
    let mut commit = git.find_commit(head)?;
    let mut seen = shown(Some(&commit.tree()?));
    loop {
        if let Some((id, versions)) = known
            && id == commit.id()
        {
            let prompt_version = versions.prompt_version + counted.prompt_version;
            return Ok(Versions { sequence: versions.sequence + counted.sequence, prompt_version });
        }
        counted.sequence += 1;
        let parent = commit.parents().next();
        let before = match &parent {
            Some(parent) => shown(Some(&parent.tree()?)),
            None => shown(None),
        };
        counted.prompt_version += u64::from(before != seen);
        let Some(parent) = parent else { return Ok(counted) };
        (commit, seen) = (parent, before);
    }
}
