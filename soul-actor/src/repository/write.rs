//! Writing: what is accepted, made durable and waited for.

use std::{
    fs::{DirBuilder, File},
    os::unix::fs::DirBuilderExt as _,
    path::Path,
    sync::Arc,
};

use git2::ObjectType;
use jiff::Timestamp;
use serde_json::Value;

#[cfg(test)]
use super::Step;
use super::{
    Anchor, Change, Receipt, Repository, RepositoryError, Result, SETTLING, UNAPPLIED_MAX, Writer,
    accepted::{Accepted, When},
    adopt,
    applier::Batch,
    asked::digest,
    blob, cause, object,
    progress::Progress,
    setup, tree, versions,
    workfile::{self, look},
};
use crate::{
    birth,
    message::{Message, Origin},
    seal, seed,
};

impl Repository {
    /// Whether anything that is in these files now would be changed.
    pub(crate) fn differs(&self, changes: &[Change]) -> Result<bool> {
        for change in changes {
            if look(&self.root, &change.path)? != change.bytes {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Makes ready for a write: a repository where there is none, a first commit where a self is that has none.
    /// Gives the receipt of that commit.
    pub(crate) fn prepare(&mut self, now: Timestamp) -> Result<Option<Receipt>> {
        let prepared = self.make_ready(now);
        self.noting(prepared)
    }

    fn make_ready(&mut self, now: Timestamp) -> Result<Option<Receipt>> {
        if self.git.is_none() {
            make_root(&self.root)?;
            self.git = Some(setup::init(&self.root)?);
            self.is_configured = true;
        }
        if !self.is_configured {
            setup::configure(self.git()?)?;
            self.is_configured = true;
        }
        self.look_around()?;
        if self.head.id.is_none() && self.batch.is_empty() && self.root.join(seed::PATH).exists() {
            return self.adopt(now).map(Some);
        }
        Ok(None)
    }

    /// The first commit of a home of the original that was never under git: its files as they are. There is nothing to
    /// be quick for, so it is flushed step by step and not by way of the log.
    fn adopt(&mut self, now: Timestamp) -> Result<Receipt> {
        if look(&self.root, ".gitignore")?.is_none() {
            workfile::put(&self.root, ".gitignore", Some(birth::IGNORED.as_bytes()))?;
        }
        let attempt = "take the home under git";
        let git = self.git()?;
        let tree = adopt::tree(git, &self.root)?;
        let branch = self.branch.clone().ok_or_else(|| self.detached())?;
        let message = Message::of("migration", "soul", "migration", Origin::Migration);
        let text = message.render();
        let take = || {
            let bytes = self.head.adopting(tree, &text, When::of(now, &self.zone));
            let id = git.odb()?.write(ObjectType::Commit, &bytes)?;
            let mut index = git.index()?;
            index.read_tree(&git.find_tree(tree)?)?;
            index.write()?;
            Ok(id)
        };
        let id = take().map_err(RepositoryError::git(attempt))?;
        self.make_durable()?;
        let subject = text.lines().next().unwrap_or_default();
        git.reference(&branch, id, false, subject).map_err(RepositoryError::git(attempt))?;
        self.make_durable()?;
        let paths = git.find_tree(tree).map(|tree| versions::names(&tree));
        let paths = paths.map_err(RepositoryError::git(attempt))?;
        self.load()?;
        Ok(Receipt {
            commit: id.to_string(),
            versions: self.head.versions,
            paths,
            op: message.op,
            caller: message.caller,
            origin: message.origin,
        })
    }

    /// Flushes everything that was written, without the log.
    pub(super) fn make_durable(&self) -> Result<()> {
        let git_dir = self.git()?.path();
        let flush = || setup::flush_all(&File::open(git_dir)?, &self.root);
        flush().map_err(workfile::failed("make durable", git_dir))
    }

    /// Whether a file is what it should be: as the newest commit has it, or on its way to that.
    pub(crate) fn is_as_committed(&mut self, path: &str, bytes: Option<&[u8]>) -> Result<bool> {
        self.look_around()?;
        // what the file says may not yet be what it will say; whoever writes it looks whether it is ours
        let blob = bytes.map(|bytes| object::name(object::Kind::Blob, bytes));
        Ok(self.root.is_coming(path) || blob == self.head.folder.file(path))
    }

    /// Accepts, as theirs and each by itself, what a person changed in these files, so that it is never mixed into hers.
    /// The seal is left out: the original rewrites it without a commit.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "the desk takes edits itself, and says what they changed")
    )]
    pub(crate) fn take_outside_edits(&mut self, paths: &[String], now: Timestamp) -> Result<Vec<Receipt>> {
        self.look_around()?;
        let mut receipts = Vec::new();
        for path in paths.iter().filter(|path| *path != seal::PATH) {
            if self.root.is_coming(path) {
                // what the file says is not yet what it will say; whoever writes it looks whether it is ours
                continue;
            }
            let bytes = look(&self.root, path)?;
            let blob = bytes.as_deref().map(|bytes| object::name(object::Kind::Blob, bytes));
            if blob == self.head.folder.file(path) {
                continue;
            }
            let message = Message::of("edit", path, "manual", Origin::Manual);
            receipts.extend(self.accept(&[Change { path: path.clone(), bytes }], &message, now)?);
        }
        Ok(receipts)
    }

    /// Accepts one commit of `changes`; nothing where nothing changes. It stands once [`Self::flush`] has worked.
    pub(crate) fn accept(
        &mut self,
        changes: &[Change],
        message: &Message,
        now: Timestamp,
    ) -> Result<Option<Receipt>> {
        let begun = self.start_writing();
        self.noting(begun)?;
        self.look_around()?;
        if let Some(why) = self.progress.now().trouble {
            return Err(RepositoryError::Stuck { why });
        }
        if self.branch.is_none() {
            return Err(self.detached());
        }
        let mut changes = changes.to_vec();
        // that the seed is there means that the rest is
        changes.sort_by_key(|change| change.path == seed::PATH);
        let when = When::of(now, &self.zone);
        let Some((head, mut accepted)) = self.head.next(&changes, &message.render(), when, self.position + 1)
        else {
            return Ok(None);
        };
        accepted.record.about.request = message.request.as_ref().map(ToString::to_string);
        if let (Some(known), Some(request)) = (self.requests.get_mut(), &accepted.record.about.request) {
            known.insert(digest(request));
        }
        self.position += 1;
        self.clock_said = head.clock;
        self.root.expect(self.position, &accepted.record.files);
        let receipt = Receipt {
            commit: accepted.record.id.to_string(),
            versions: head.versions,
            paths: accepted.record.about.paths.clone(),
            op: message.op,
            caller: message.caller.clone(),
            origin: message.origin,
        };
        let before = std::mem::replace(&mut self.head, head);
        self.before.get_or_insert(before);
        self.batch.push(accepted);
        Ok(Some(receipt))
    }

    /// Which batch is being filled; nothing when there is nothing to flush.
    pub(crate) fn ticket(&self) -> Option<u64> {
        (!self.batch.is_empty()).then_some(self.ticket)
    }

    /// Why a batch was not flushed.
    pub(crate) fn why_not(&self, ticket: u64) -> Option<&str> {
        self.unflushed.get(&ticket).map(String::as_str)
    }

    /// Ends a batch whose answers have been given: it goes to git now, and what was looked at for it is looked at anew for
    /// the next.
    pub(crate) fn end_batch(&mut self) {
        self.hand_over();
        self.unflushed.clear();
        self.is_looked = false;
        self.root.read_anew();
    }

    /// Hands to the thread behind what was flushed. Before anything waits for it.
    pub(super) fn hand_over(&self) {
        if let Some(writer) = &self.writer {
            writer.applier.hand_over();
        }
    }

    /// Makes durable what was accepted, all of it or nothing. `answer` gives the answer of a request, which is kept with
    /// it. If it does not work, the newest commit is again the one before.
    pub(crate) fn flush(&mut self, answer: impl Fn(&str) -> Option<Value>) -> Result<()> {
        self.root.read_anew();
        self.is_looked = false;
        let mut batch = std::mem::take(&mut self.batch);
        let (Some(before), Some(writer), Some(branch)) = (self.before.take(), &self.writer, &self.branch)
        else {
            return Ok(());
        };
        for accepted in &mut batch {
            let about = &mut accepted.record.about;
            about.branch.clone_from(branch);
            about.answer = about.request.as_deref().and_then(&answer);
        }
        self.ticket += 1;
        let appended = Self::append(writer, &batch, &self.progress);
        if let Err(error) = &appended {
            let why = cause::sentence(error);
            tracing::warn!(
                error = why,
                writes = batch.len(),
                "a batch could not be made durable, and is refused"
            );
            self.unflushed.insert(self.ticket - 1, why);
            self.head = before;
            self.position -= batch.len() as u64;
            self.root.forget();
            for accepted in &self.unapplied {
                self.root.expect(accepted.record.position, &accepted.record.files);
            }
            return self.noting(appended);
        }
        if self.progress.now().refusing.is_some() {
            self.progress.change(|state| state.refusing = None);
        }
        let batch: Vec<_> = batch.into_iter().map(Arc::new).collect();
        self.unapplied.extend(batch.iter().cloned());
        let is_hers = !self.is_lost;
        if let (true, Some(newest)) = (is_hers, batch.last()) {
            let head = newest.record.id;
            match &mut self.anchor {
                // the branch is hers as long as nobody has said that another one is
                Some(anchor) => anchor.head = head,
                none => *none = Some(Anchor::at(branch, head)),
            }
        }
        writer.applier.hold(Batch {
            writes: batch,
            branch: branch.clone(),
            instead: false,
            is_start: false,
            is_hers,
        });
        self.forget_applied();
        if self.unapplied.len() > UNAPPLIED_MAX {
            let far = self.position - UNAPPLIED_MAX as u64 / 2;
            self.hand_over();
            self.progress.wait(SETTLING, |state| {
                state.applied >= far || state.trouble.is_some() || state.moved || state.ended
            });
        }
        Ok(())
    }

    #[cfg_attr(not(test), expect(unused_variables, reason = "only tests cut a write"))]
    fn append(writer: &Writer, batch: &[Accepted], progress: &Progress) -> Result<()> {
        #[cfg(test)]
        if progress.now().cut == Some(Step::Accepted) {
            return Err(RepositoryError::Cut);
        }
        writer.log().append(batch.iter().map(|accepted| &accepted.record))
    }

    /// Accepts one commit, and returns when it stands and, if that works, is in the files.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests and single writes; the desk flushes a batch"))]
    pub(crate) fn write(
        &mut self,
        changes: &[Change],
        message: &Message,
        now: Timestamp,
    ) -> Result<Option<Receipt>> {
        let receipt = self.accept(changes, message, now)?;
        self.flush(|_| None)?;
        // it stands, whatever is still in the way of its files
        let _ = self.settle();
        Ok(receipt)
    }

    /// Flushes, and waits until all that was accepted is in git and in the files; says why if that does not work.
    pub(crate) fn settle(&mut self) -> Result<()> {
        // a batch that could not be flushed is refused where it was asked for; what is read is the state before it
        let _ = self.flush(|_| None);
        self.hand_over();
        for _ in 0..16 {
            let far = self.position;
            let state = self.progress.wait(SETTLING, |state| {
                state.applied >= far || state.trouble.is_some() || state.moved || state.ended
            });
            self.forget_applied();
            if state.applied >= far {
                return Ok(());
            }
            if let Some(why) = state.trouble {
                return Err(RepositoryError::Stuck { why });
            }
            if !state.moved {
                let why =
                    if state.ended { "the thread that applies has ended" } else { "the disk is too slow" };
                return Err(RepositoryError::Stuck { why: why.to_owned() });
            }
            self.rebase()?;
        }
        Err(RepositoryError::Moved)
    }

    /// Kills every write at this step from now on.
    #[cfg(test)]
    pub(crate) fn cut(&self, step: Option<Step>) {
        self.progress.change(|state| state.cut = step);
    }

    /// Whether something was accepted that is not in git yet.
    pub(crate) fn is_unsettled(&self) -> bool {
        self.writer.is_some() && self.progress.applied() < self.position
    }

    /// The bytes of a file in the newest commit.
    pub(crate) fn committed(&mut self, path: &str) -> Result<Option<Vec<u8>>> {
        self.settle()?;
        let (Some(git), Some(head)) = (&self.git, self.head()?) else { return Ok(None) };
        blob(git, &tree(&head)?, path)
    }
}

/// Makes the folder of the self, where there is none.
fn make_root(root: &Path) -> Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(root);
    made.map_err(workfile::failed("make the folder", root))
}
