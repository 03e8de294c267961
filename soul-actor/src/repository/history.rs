//! History: which commits touched what, newest first, and what they changed.
//!
//! The side index says which commits touched a path. Where there is none (a home that nobody has written to) a walk along
//! the first parents compares one tree entry a commit. It is bounded: history is looked at, and what a person wants of
//! ten thousand commits ago they ask git for.

use std::{fmt::Write as _, path::Path};

use git2::{Commit, DiffFormat, DiffOptions, Oid, Tree};
use ipc::contract::soul::Entry;
use jiff::Timestamp;

use super::{Repository, RepositoryError, Result, index::differing};
use crate::{
    held::iso,
    message::{Said, WHY_CHARS_MAX},
};

/// How many commits a walk looks at.
const WALK_MAX: usize = 20_000;
/// How many commits older than asked for end a walk: clocks go back a little, not for long.
const OLDER_MAX: usize = 64;
/// How many of the newest commits are searched for the ids of requests that may be asked again.
const REQUESTS_MAX: usize = 1000;

/// Which commits are wanted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    /// Those that touch this file or folder; all without.
    pub(crate) path: Option<&'a str>,
    /// At most so many.
    pub(crate) limit: usize,
    /// Nothing older.
    pub(crate) since: Option<Timestamp>,
}

impl Repository {
    /// The commits that are wanted, newest first.
    pub(crate) fn history(&self, wanted: Wanted<'_>) -> Result<Vec<Entry>> {
        let commits = self.find(wanted).map_err(RepositoryError::git("walk the history"))?;
        Ok(commits.iter().map(entry).collect())
    }

    /// What the wanted commits changed: unified diffs, each under a line about its commit.
    pub(crate) fn diff(&self, wanted: Wanted<'_>) -> Result<String> {
        let read = || {
            let mut text = String::new();
            for commit in self.find(wanted)? {
                let told = entry(&commit);
                let (short, time) = (short(&told.commit), iso(told.time));
                if !text.is_empty() {
                    text.push('\n');
                }
                let _ = writeln!(text, "commit {short} {time} {}", subject(&told));
                if !told.why.is_empty() {
                    let _ = writeln!(text, "why: {}", ipc::text::one_line(&told.why, 300));
                }
                self.print_diff(&commit, wanted.path, &mut text)?;
            }
            Ok(text)
        };
        read().map_err(RepositoryError::git("read the changes"))
    }

    fn print_diff(
        &self,
        commit: &Commit<'_>,
        path: Option<&str>,
        text: &mut String,
    ) -> std::result::Result<(), git2::Error> {
        let Some(git) = &self.git else { return Ok(()) };
        let old = commit.parents().next().map(|parent| parent.tree()).transpose()?;
        let mut options = DiffOptions::new();
        options.force_text(true).disable_pathspec_match(true);
        if let Some(path) = path {
            options.pathspec(path);
        }
        let diff = git.diff_tree_to_tree(old.as_ref(), Some(&commit.tree()?), Some(&mut options))?;
        diff.print(DiffFormat::Patch, |_, _, line| {
            let shown = String::from_utf8_lossy(line.content());
            match line.origin() {
                // what git says about itself (modes, blob ids) tells a reader nothing here
                'F' => {
                    for line in shown.lines().filter(|l| l.starts_with("--- ") || l.starts_with("+++ ")) {
                        let _ = writeln!(text, "{line}");
                    }
                }
                mark @ ('+' | '-' | ' ') => {
                    text.push(mark);
                    text.push_str(&shown);
                }
                _ => text.push_str(&shown),
            }
            true
        })
    }

    /// What one commit changed against its first parent.
    pub(crate) fn paths_of(&self, commit: &str) -> Result<Vec<String>> {
        let read = || {
            let Some(git) = &self.git else { return Ok(vec![]) };
            let commit = git.find_commit(self.standing(Oid::from_str(commit)?))?;
            let old = commit.parents().next().map(|parent| parent.tree()).transpose()?;
            differing(git, old.as_ref(), Some(&commit.tree()?))
        };
        read().map_err(RepositoryError::git("read a commit"))
    }

    /// The newest requests that made a commit, with it.
    pub(crate) fn requests(&self) -> Result<Vec<(String, Entry)>> {
        let wanted = Wanted { path: None, limit: REQUESTS_MAX, since: None };
        let commits = self.walk(wanted).map_err(RepositoryError::git("walk the history"))?;
        let request = |commit: &Commit<'_>| {
            let said = said(commit);
            Some((said.request()?.to_owned(), entry(commit)))
        };
        Ok(commits.iter().filter_map(request).collect())
    }

    /// The wanted commits by the side index, which costs what it finds; by a walk where that is not of HEAD yet.
    fn find(&self, wanted: Wanted<'_>) -> std::result::Result<Vec<Commit<'_>>, git2::Error> {
        let Some(git) = &self.git else { return Ok(vec![]) };
        let since = wanted.since.map(Timestamp::as_second);
        match self.indexed(|index| index.commits(wanted.path, wanted.limit, since)) {
            Some(found) => found.into_iter().map(|id| git.find_commit(id)).collect(),
            None => self.walk(wanted),
        }
    }

    pub(super) fn walk(&self, wanted: Wanted<'_>) -> std::result::Result<Vec<Commit<'_>>, git2::Error> {
        let mut found = Vec::new();
        let Ok(Some(head)) = self.head() else { return Ok(found) };
        let mut here = at(&head.tree()?, wanted.path);
        let (mut next, mut older) = (Some(head), 0);
        for _ in 0..WALK_MAX {
            let Some(commit) = next.take() else { break };
            if found.len() >= wanted.limit || older >= OLDER_MAX {
                break;
            }
            let parent = commit.parents().next();
            let before = match &parent {
                Some(parent) => at(&parent.tree()?, wanted.path),
                None => None,
            };
            let is_older = wanted.since.is_some_and(|since| commit.time().seconds() < since.as_second());
            older += usize::from(is_older);
            if !is_older && (wanted.path.is_none() || before != here) {
                found.push(commit);
            }
            (next, here) = (parent, before);
        }
        Ok(found)
    }
}

fn at(tree: &Tree<'_>, path: Option<&str>) -> Option<Oid> {
    let path = path?;
    tree.get_path(Path::new(path)).ok().map(|entry| entry.id())
}

fn said(commit: &Commit<'_>) -> Said {
    Said::parse(&String::from_utf8_lossy(commit.message_bytes()))
}

pub(super) fn entry(commit: &Commit<'_>) -> Entry {
    let Said { op, path, caller, origin, why, evidence, trailers } = said(commit);
    let time = Timestamp::from_second(commit.time().seconds()).unwrap_or(Timestamp::UNIX_EPOCH);
    // ours are shorter; what others write into a message is bounded here
    let why = ipc::text::prefix(&why, 2 * WHY_CHARS_MAX).to_owned();
    Entry { commit: commit.id().to_string(), time, op, path, caller, origin, why, evidence, trailers }
}

/// The subject of a commit, put together again.
pub(crate) fn subject(entry: &Entry) -> String {
    if entry.path.is_empty() {
        return entry.op.clone();
    }
    format!("{}: {} via {}", entry.op, entry.path, entry.caller)
}

/// The beginning of a commit's id, as people say it.
pub(crate) fn short(commit: &str) -> &str {
    commit.get(..10).unwrap_or(commit)
}
