//! Reading back: what a commit held, what it changed, and which commits touched a file.
//!
//! The side index says which commits touched a file, and costs what it finds. Where there is none (a home that nobody has
//! written to), or it is not of HEAD, the first parents are walked from there, comparing one tree entry a commit.

use std::{collections::BTreeMap, path::Path};

use git2::{Commit, ObjectType, Oid, Repository as Git, Tree, TreeWalkMode, TreeWalkResult};
use ipc::contract::soul::Entry;
use jiff::Timestamp;

use crate::{
    check::{foreign, under_way},
    rollback::is_shown,
};

use super::{
    Anchor, Repository, RepositoryError, Result, accepted::SHOWN, blob, history::entry, index::differing,
    tree,
};

/// The fewest digits that name a commit.
const DIGITS_MIN: usize = 4;
/// How many commits a walk looks at; more is a history of decades.
const WALK_MAX: usize = 200_000;

/// A commit that changed a file, and the file as it was after it.
pub(crate) struct Touch {
    /// The commit.
    pub(crate) entry: Entry,
    /// The file's bytes; nothing where the commit removed it.
    pub(crate) bytes: Option<Vec<u8>>,
}

/// One file that a commit changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Undone {
    /// Where it lies.
    pub(crate) path: String,
    /// Its bytes before the commit.
    pub(crate) before: Option<Vec<u8>>,
    /// Its bytes after it.
    pub(crate) after: Option<Vec<u8>>,
}

impl Repository {
    /// The commit of that id, or of that beginning of one, if it is part of her history; else a sentence.
    pub(crate) fn find_commit(&self, name: &str) -> Result<Result<String, String>> {
        let shown = ipc::text::one_line(name, 60);
        let name = name.trim().to_ascii_lowercase();
        if name.len() < DIGITS_MIN || name.len() > 40 || !name.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Ok(Err(format!(
                "`{shown}` names no commit; give at least {DIGITS_MIN} digits of one, as `lisa soul history` shows them"
            )));
        }
        let unknown = || {
            format!("there is no commit `{shown}` in her history; `lisa soul history` shows what there is")
        };
        let (Some(git), Some(head)) = (self.git_there(), self.head()?) else { return Ok(Err(unknown())) };
        let found = match git.find_commit_by_prefix(&name) {
            Ok(found) => found.id(),
            Err(error) if error.code() == git2::ErrorCode::Ambiguous => {
                return Ok(Err(format!("more than one commit begins with `{shown}`; give more digits")));
            }
            Err(_) => return Ok(Err(unknown())),
        };
        let ours = found == head.id()
            || self.is_indexed(git, found)
            || git.graph_descendant_of(head.id(), found).map_err(RepositoryError::git("walk the history"))?;
        Ok(if ours { Ok(found.to_string()) } else { Err(unknown()) })
    }

    /// What a commit says about itself.
    pub(crate) fn entry_of(&self, commit: &str) -> Result<Entry> {
        Ok(entry(&self.commit_of(commit)?))
    }

    /// The bytes a file had at a commit.
    pub(crate) fn file_at(&self, commit: &str, path: &str) -> Result<Option<Vec<u8>>> {
        let commit = self.commit_of(commit)?;
        blob(self.git()?, &tree(&commit)?, path)
    }

    /// The files of a commit that a prompt shows, each with the id of its content; of the newest one without a name.
    pub(crate) fn shown_at(&self, commit: Option<&str>) -> Result<BTreeMap<String, Oid>> {
        let commit = match commit {
            Some(commit) => Some(self.commit_of(commit)?),
            None => self.head()?,
        };
        let (Some(commit), git) = (commit, self.git()?) else { return Ok(BTreeMap::new()) };
        let tree = tree(&commit)?;
        let find = || -> std::result::Result<_, git2::Error> {
            let mut shown = BTreeMap::new();
            // the other folders are left unread: a journal is long
            for entry in SHOWN.iter().filter_map(|name| tree.get_name(name)) {
                let name = entry.name().unwrap_or_default();
                if entry.kind() == Some(ObjectType::Tree) {
                    let inner = files(&git.find_tree(entry.id())?)?;
                    shown.extend(inner.into_iter().map(|(path, id)| (format!("{name}/{path}"), id)));
                } else {
                    shown.insert(name.to_owned(), entry.id());
                }
            }
            shown.retain(|path, _| is_shown(path));
            Ok(shown)
        };
        find().map_err(RepositoryError::git("read a commit"))
    }

    /// The bytes of a file's content.
    pub(crate) fn content(&self, id: Oid) -> Result<Vec<u8>> {
        let blob = self.git()?.find_blob(id).map_err(RepositoryError::git("read a file of a commit"))?;
        Ok(blob.content().to_vec())
    }

    /// The paths of all files of the newest commit, each with the id of its content.
    pub(crate) fn committed_files(&self) -> Result<Vec<(String, Oid)>> {
        let Some(head) = self.head()? else { return Ok(vec![]) };
        files(&tree(&head)?).map_err(RepositoryError::git("read the newest commit"))
    }

    /// What one commit changed against its first parent; nothing for the first of all.
    pub(crate) fn changed_by(&self, commit: &str) -> Result<Option<Vec<Undone>>> {
        let (git, commit) = (self.git()?, self.commit_of(commit)?);
        let Some(parent) = commit.parents().next() else { return Ok(None) };
        let (old, new) = (tree(&parent)?, tree(&commit)?);
        let paths = differing(git, Some(&old), Some(&new));
        let paths = paths.map_err(RepositoryError::git("read what a commit changed"))?;
        let undone = |path: String| {
            let (before, after) = (blob(git, &old, &path)?, blob(git, &new, &path)?);
            Ok(Undone { path, before, after })
        };
        paths.into_iter().map(undone).collect::<Result<_>>().map(Some)
    }

    /// The newest commit that is not younger than `time`.
    pub(crate) fn newest_before(&self, time: Timestamp) -> Result<Option<String>> {
        let found = match self.indexed(|index| index.newest_before(time.as_second())) {
            Some(found) => found,
            None => self.walk_before(time)?,
        };
        Ok(found.map(|id| id.to_string()))
    }

    pub(super) fn walk_before(&self, time: Timestamp) -> Result<Option<Oid>> {
        let mut next = self.head()?;
        for _ in 0..WALK_MAX {
            let Some(commit) = next else { return Ok(None) };
            if commit.time().seconds() <= time.as_second() {
                return Ok(Some(commit.id()));
            }
            next = commit.parents().next();
        }
        Ok(None)
    }

    /// The commits that touched any of these paths after `commit`, newest first, at most `max`.
    pub(crate) fn touches_since(&self, paths: &[String], commit: &str, max: usize) -> Result<Vec<Entry>> {
        let since = self.commit_of(commit)?;
        let found = self.indexed(|index| {
            let Some(after) = index.sequence(since.id(), since.time().seconds())? else { return Ok(None) };
            index.touches_since(paths, after, max).map(Some)
        });
        match found.flatten() {
            Some(found) => found.into_iter().map(|id| Ok(entry(&self.read_commit(id)?))).collect(),
            None => self.walk_since(paths, since.id(), max),
        }
    }

    pub(super) fn walk_since(&self, paths: &[String], until: Oid, max: usize) -> Result<Vec<Entry>> {
        let mut next = self.head()?;
        let mut found = Vec::new();
        for _ in 0..WALK_MAX {
            let Some(commit) = next.filter(|commit| commit.id() != until && found.len() < max) else { break };
            let parent = commit.parents().next();
            let (new, old) = (tree(&commit)?, parent.as_ref().map(tree).transpose()?);
            if paths.iter().any(|path| at(Some(&new), path) != at(old.as_ref(), path)) {
                found.push(entry(&commit));
            }
            next = parent;
        }
        Ok(found)
    }

    /// The commits that touched a file, newest first, each with the file as it was after it; at most `max` of them. They
    /// are read as far as it is asked for them.
    pub(crate) fn commits_of<'a>(
        &'a self,
        path: &'a str,
        max: usize,
    ) -> Box<dyn Iterator<Item = Result<Touch>> + 'a> {
        let Some(found) = self.indexed(|index| index.touches(path, max)) else {
            return Box::new(self.walk_of(path).take(max));
        };
        Box::new(found.into_iter().map(move |id| {
            let commit = self.read_commit(id)?;
            Ok(Touch { entry: entry(&commit), bytes: blob(self.git()?, &tree(&commit)?, path)? })
        }))
    }

    pub(super) fn walk_of<'a>(&'a self, path: &'a str) -> impl Iterator<Item = Result<Touch>> + 'a {
        let mut next = self.head().transpose();
        let mut left = WALK_MAX;
        std::iter::from_fn(move || {
            loop {
                let commit = match next.take()? {
                    Ok(commit) => commit,
                    Err(error) => return Some(Err(error)),
                };
                left = left.checked_sub(1)?;
                let step = || -> Result<_> {
                    let parent = commit.parents().next();
                    let (new, old) = (tree(&commit)?, parent.as_ref().map(tree).transpose()?);
                    let (after, before) = (at(Some(&new), path), at(old.as_ref(), path));
                    let touch = if after == before {
                        None
                    } else {
                        Some(Touch { entry: entry(&commit), bytes: blob(self.git()?, &new, path)? })
                    };
                    Ok((touch, parent))
                };
                match step() {
                    Err(error) => return Some(Err(error)),
                    Ok((touch, parent)) => {
                        next = parent.map(Ok);
                        if let Some(touch) = touch {
                            return Some(Ok(touch));
                        }
                    }
                }
            }
        })
    }

    /// Why nothing may be written on what is there, if so: it is on no branch, it is not what her history goes on with,
    /// or git is in the middle of something.
    pub(crate) fn hindrance(&mut self) -> Option<String> {
        self.git_there()?;
        if let Err(error) = self.look_around() {
            return Some(ipc::exit::chain(&error));
        }
        if self.branch.is_none() {
            return Some(self.detached().to_string());
        }
        if let Some(anchor) = self.anchor.as_ref().filter(|_| self.is_lost) {
            return Some(foreign(self.root(), &anchor.head.to_string()));
        }
        under_way(self.git_there()?, self.root())
    }

    /// Where her history is known to be.
    pub(crate) fn anchor(&self) -> Option<&Anchor> {
        self.anchor.as_ref()
    }

    /// The branch she is on, if it is another one than her history was on.
    pub(crate) fn other_branch(&self) -> Option<&str> {
        let branch = self.branch.as_deref()?;
        let branch = branch.strip_prefix("refs/heads/").unwrap_or(branch);
        self.anchor.as_ref().is_some_and(|anchor| anchor.branch != branch).then_some(branch)
    }

    /// What others committed on top of hers since this was last asked: from the newest of hers to the newest of theirs.
    pub(crate) fn take_strange(&mut self) -> Vec<(String, String)> {
        let strange = std::mem::take(&mut self.strange);
        strange.into_iter().map(|(known, here)| (known.to_string(), here.to_string())).collect()
    }

    /// Her history is there from now on, because a person says so.
    pub(crate) fn settle_on(&mut self, anchor: Anchor) -> Result<()> {
        if let Some(writer) = &self.writer {
            writer.log().drop_anchor(&anchor)?;
        }
        (self.anchor, self.is_lost, self.is_looked) = (Some(anchor), false, false);
        self.strange.clear();
        self.look_around()
    }

    /// The paths that differ between two commits.
    pub(crate) fn changed_between(&self, old: &str, new: &str) -> Result<Vec<String>> {
        let (old, new) = (tree(&self.commit_of(old)?)?, tree(&self.commit_of(new)?)?);
        let changed = differing(self.git()?, Some(&old), Some(&new));
        changed.map_err(RepositoryError::git("read what commits changed"))
    }

    fn git_there(&self) -> Option<&Git> {
        self.git().ok()
    }

    /// Whether the side index knows a commit as one of hers; where it does not, git has the last word.
    fn is_indexed(&self, git: &Git, commit: Oid) -> bool {
        let Ok(found) = git.find_commit(commit) else { return false };
        let sequence = self.indexed(|index| index.sequence(commit, found.time().seconds()));
        sequence.flatten().is_some()
    }

    fn read_commit(&self, id: Oid) -> Result<Commit<'_>> {
        self.git()?.find_commit(id).map_err(RepositoryError::git("read a commit"))
    }

    fn commit_of(&self, commit: &str) -> Result<Commit<'_>> {
        let found = Oid::from_str(commit).and_then(|id| {
            self.git_there().map_or_else(
                || Err(git2::Error::from_str("there is no repository")),
                |git| git.find_commit(id),
            )
        });
        found.map_err(RepositoryError::git("read a commit"))
    }
}

pub(super) fn at(tree: Option<&Tree<'_>>, path: &str) -> Option<Oid> {
    tree?.get_path(Path::new(path)).ok().map(|entry| entry.id())
}

fn files(tree: &Tree<'_>) -> std::result::Result<Vec<(String, Oid)>, git2::Error> {
    let mut found = Vec::new();
    tree.walk(TreeWalkMode::PreOrder, |folder, entry| {
        if let (Ok(name), Some(ObjectType::Blob)) = (entry.name(), entry.kind()) {
            found.push((format!("{folder}{name}"), entry.id()));
        }
        TreeWalkResult::Ok
    })?;
    Ok(found)
}
