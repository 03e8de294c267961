//! The two versions: how many commits there are, and how many of them touched what a prompt shows.
//!
//! They are counted from the history and kept beside it, in `.git/lisa/versions.json`, with the commit they are of. What
//! is kept is a cache: for any other commit it is ignored, and the history counted again.

use git2::{Oid, Repository as Git, Tree};
use serde::{Deserialize, Serialize};

use super::{Repository, RepositoryError, Result};

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

#[derive(Serialize, Deserialize)]
struct Kept {
    head: String,
    #[serde(flatten)]
    versions: Versions,
}

/// What a prompt shows of a tree: equal values, equal prompts.
pub(super) fn shown(tree: Option<&Tree<'_>>) -> [Option<Oid>; 7] {
    let names = ["name.md", "identity.md", "purpose.md", "constitution.md", "values", "opinions", "desires"];
    names.map(|name| tree.and_then(|tree| tree.get_name(name)).map(|entry| entry.id()))
}

/// The names in the root of a tree.
pub(super) fn names(tree: &Tree<'_>) -> Vec<String> {
    tree.iter().map(|entry| String::from_utf8_lossy(entry.name_bytes()).into_owned()).collect()
}

/// Keeps the versions of a commit for the next start. It is a cache: failing to is nothing.
pub(super) fn keep(git: &Git, head: Oid, versions: Versions) {
    let kept = Kept { head: head.to_string(), versions };
    let bytes = serde_json::to_vec(&kept).expect("versions are JSON");
    let _ = std::fs::write(git.path().join("lisa/versions.json"), bytes);
}

impl Repository {
    /// The versions there are now.
    pub(crate) fn versions(&mut self) -> Result<Versions> {
        let head = self.head()?.map(|head| head.id());
        if let Some((of, versions)) = self.versions
            && of == head
        {
            return Ok(versions);
        }
        let versions = match (&self.git, head) {
            (Some(git), Some(head)) => {
                let kept = std::fs::read(git.path().join("lisa/versions.json")).ok();
                let kept = kept.and_then(|bytes| serde_json::from_slice::<Kept>(&bytes).ok());
                match kept {
                    Some(kept) if kept.head == head.to_string() => kept.versions,
                    _ => count(git, head).map_err(RepositoryError::git("count the commits"))?,
                }
            }
            _ => Versions::default(),
        };
        let born = u64::from(self.is_born()?);
        let versions = Versions { prompt_version: versions.prompt_version.max(born), ..versions };
        self.versions = Some((head, versions));
        Ok(versions)
    }
}

/// Counts along the first parents.
fn count(git: &Git, head: Oid) -> std::result::Result<Versions, git2::Error> {
    let mut versions = Versions::default();
    let mut commit = git.find_commit(head)?;
    let mut seen = shown(Some(&commit.tree()?));
    loop {
        versions.sequence += 1;
        let parent = commit.parents().next();
        let before = match &parent {
            Some(parent) => shown(Some(&parent.tree()?)),
            None => shown(None),
        };
        versions.prompt_version += u64::from(before != seen);
        let Some(parent) = parent else { return Ok(versions) };
        (commit, seen) = (parent, before);
    }
}
