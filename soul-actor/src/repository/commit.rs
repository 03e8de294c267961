//! The steps of a commit, and how a start finishes them: the order that nothing may change.

use std::{fs::DirBuilder, io, os::unix::fs::DirBuilderExt as _, path::PathBuf};

use git2::{Commit, ErrorCode, ObjectType, Oid, Repository as Git, Signature, Time, Tree};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tracing::{info, warn};

use super::{
    Receipt, Repository, RepositoryError, Result, Versions, blob, setup, tree, versions,
    workfile::{self, look, put, replace},
};
use crate::{message::Message, seal};

/// What is about to be committed, on disk while it is.
#[derive(Debug, Serialize, Deserialize)]
struct Intent {
    commit: String,
    paths: Vec<String>,
}

/// Where a test may kill a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The intent is written, the commit is not.
    Intent,
    /// The commit is written, the reference has not moved.
    Object,
    /// The reference has moved, the work files are old.
    Reference,
    /// Some work files are new, and the intent still stands.
    Files,
}

impl Repository {
    /// Commits a tree, and remembers what of it is still to be done.
    pub(super) fn commit_tree(
        &mut self,
        tree_id: Oid,
        paths: &[String],
        message: &Message,
        now: Timestamp,
    ) -> Result<Receipt> {
        self.settle()?;
        let before = self.versions()?;
        let steps = self.take_steps(before, tree_id, paths, message, now);
        // whatever went wrong may have gone wrong behind the reference: the intent and HEAD will tell
        self.is_behind = steps.is_err();
        let (id, receipt, finished) = steps?;
        self.versions = Some((Some(id), receipt.versions));
        match finished {
            Ok(()) => {}
            #[cfg(test)]
            Err(RepositoryError::Cut) => return Err(RepositoryError::Cut),
            Err(error) => {
                let error = ipc::exit::chain(&error);
                warn!(commit = %id, error, "the commit stands, its files could not be written; they will be");
                self.is_behind = true;
            }
        }
        Ok(receipt)
    }

    /// The steps of a write, once its tree is known; the last result is of those behind the reference.
    fn take_steps(
        &self,
        before: Versions,
        tree_id: Oid,
        paths: &[String],
        message: &Message,
        now: Timestamp,
    ) -> Result<(Oid, Receipt, Result<()>)> {
        let git = self.git()?;
        let branch = self.branch(git)?;
        let head = self.head()?;
        let new_tree = git.find_tree(tree_id).map_err(RepositoryError::git("build the commit"))?;
        let old_tree = head.as_ref().map(tree).transpose()?;
        let after = before.next(versions::shown(old_tree.as_ref()) != versions::shown(Some(&new_tree)));

        let text = message.render();
        let offset = self.zone.to_offset(now).seconds() / 60;
        let signature = Signature::new(setup::NAME, setup::EMAIL, &Time::new(now.as_second(), offset));
        let signature = signature.map_err(RepositoryError::git("sign the commit"))?;
        let parents: Vec<&Commit<'_>> = head.iter().collect();
        let buffer = git
            .commit_create_buffer(&signature, &signature, &text, &new_tree, &parents)
            .map_err(RepositoryError::git("build the commit"))?;
        let id =
            Oid::hash_object(ObjectType::Commit, &buffer).map_err(RepositoryError::git("name the commit"))?;

        Self::write_intent(git, id, paths)?;
        self.reached(Step::Intent)?;
        let written = git.odb().and_then(|odb| odb.write(ObjectType::Commit, &buffer));
        let written = written.map_err(RepositoryError::git("write the commit"))?;
        debug_assert_eq!(written, id, "an object is named after its bytes");
        self.reached(Step::Object)?;

        let subject = text.lines().next().unwrap_or_default();
        let moved = match &head {
            Some(old) => git.reference_matching(&branch, id, true, old.id(), subject),
            None => git.reference(&branch, id, false, subject),
        };
        // what the branch says now decides, whatever moving it has answered
        match (git.refname_to_id(&branch), moved) {
            (Ok(now), _) if now == id => {}
            (_, Err(error)) if !matches!(error.code(), ErrorCode::Modified | ErrorCode::Exists) => {
                return Err(RepositoryError::Git { attempt: "move the branch", source: error });
            }
            _ => return Err(RepositoryError::Moved),
        }
        self.reached(Step::Reference)?;

        // from here on the commit stands, and a failure is something to make up for
        let finished =
            self.put_files(git, &new_tree, paths).and_then(|()| self.reached(Step::Files)).and_then(|()| {
                if let Ok(commit) = git.find_commit(id) {
                    refresh_index(git, &commit);
                }
                remove_intent(git)
            });
        versions::keep(git, id, after);
        let changed = if paths.is_empty() { versions::names(&new_tree) } else { paths.to_vec() };
        let receipt = Receipt {
            commit: id.to_string(),
            versions: after,
            paths: changed,
            op: message.op,
            caller: message.caller.clone(),
            origin: message.origin,
        };
        Ok((id, receipt, finished))
    }

    /// Writes the work files that a killed or failed write left old.
    pub(crate) fn settle(&mut self) -> Result<()> {
        if self.is_behind {
            self.finish()?;
            self.is_behind = false;
        }
        Ok(())
    }

    fn finish(&self) -> Result<()> {
        let Some(git) = &self.git else { return Ok(()) };
        let place = intent_place(git);
        let intent = match std::fs::read(&place) {
            Ok(bytes) => serde_json::from_slice::<Intent>(&bytes).ok(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(workfile::failed("read", &place)(error)),
        };
        match (&intent, &self.head()?) {
            (Some(intent), Some(head)) if intent.commit == head.id().to_string() => {
                info!(commit = intent.commit, "finishing a write that was cut off");
                self.put_stale_files(git, head, &intent.paths)?;
                refresh_index(git, head);
            }
            (Some(intent), _) => info!(commit = intent.commit, "a write that never stood is forgotten"),
            (None, _) => {}
        }
        remove_intent(git)
    }

    /// Writes those files that are still as they were before the commit. Any other content is an edit of a person, made
    /// since, and waits to be taken as one. The seal is nobody's to edit.
    fn put_stale_files(&self, git: &Git, head: &Commit<'_>, paths: &[String]) -> Result<()> {
        let new = tree(head)?;
        let old = head.parents().next().as_ref().map(tree).transpose()?;
        for path in paths {
            let bytes = blob(git, &new, path)?;
            let is_stale = match &old {
                Some(old) => look(&self.root, path)? == blob(git, old, path)?,
                None => true,
            };
            if is_stale || path == seal::PATH {
                put(&self.root, path, bytes.as_deref())?;
            }
        }
        Ok(())
    }

    fn put_files(&self, git: &Git, tree: &Tree<'_>, paths: &[String]) -> Result<()> {
        for path in paths {
            put(&self.root, path, blob(git, tree, path)?.as_deref())?;
        }
        Ok(())
    }

    fn write_intent(git: &Git, commit: Oid, paths: &[String]) -> Result<()> {
        let place = intent_place(git);
        let folder = git.path().join("lisa");
        match DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => workfile::sync_folder(git.path())?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(workfile::failed("make the folder", &folder)(error)),
        }
        let intent = Intent { commit: commit.to_string(), paths: paths.to_vec() };
        replace(&place, &serde_json::to_vec(&intent).expect("an intent is JSON"))
    }

    #[cfg_attr(
        not(test),
        expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "only tests cut a write")
    )]
    fn reached(&self, step: Step) -> Result<()> {
        #[cfg(test)]
        if self.cut == Some(step) {
            return Err(RepositoryError::Cut);
        }
        let _ = step;
        Ok(())
    }
}

/// Keeps the index in step, for the eyes of a person who types `git status`; no write depends on it.
fn refresh_index(git: &Git, commit: &Commit<'_>) {
    let refresh = || {
        let mut index = git.index()?;
        index.read_tree(&commit.tree()?)?;
        index.write()
    };
    if let Err(error) = refresh() {
        warn!(%error, "the index could not be brought in step; `git status` may show changes that are none");
    }
}

fn intent_place(git: &Git) -> PathBuf {
    git.path().join("lisa/intent.json")
}

fn remove_intent(git: &Git) -> Result<()> {
    let place = intent_place(git);
    match std::fs::remove_file(&place) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(workfile::failed("remove", &place)(error)),
    }
}
