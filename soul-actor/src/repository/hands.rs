//! What brings accepted writes into git: objects, reference, work files, index; then the log lets go.
//!
//! ```text
//!  objects ─▶ reference, by comparison ─▶ work files ─▶ applied ─▶ side index      …   idle: flush of all ─▶ log shorter
//! ```
//!
//! Nothing here is flushed by itself. The log keeps a record until one flush of the whole file system has returned that
//! began after all of these steps; a start takes them again from there. Each step may therefore be done twice.
//!
//! A work file is only written over what is known to be ours: anything else was put there by a person in the meantime,
//! and waits to be taken as an edit of theirs.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs::File,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use git2::{ErrorCode, ObjectType, Oid, Repository as Git};
use tracing::{debug, info, warn};

use super::{
    RepositoryError, Result,
    accepted::Accepted,
    index::{Index, Row},
    log::{Anchor, Log},
    object::{self, Kind, Object},
    pack,
    progress::{Progress, Step},
    setup,
    workfile::{self, look, put},
};
use crate::seal;

/// From how many new objects on they are one pack. Fewer are quicker as files, and do not add to the packs.
const LOOSE_MAX: usize = 40;

/// How often the log is kept until git's index is in step: some seconds, and it is not what the log is for.
const POSTPONED_MAX: u32 = 25;

/// What moves things in the repository: at a start the owner, afterwards the thread behind it.
pub(super) struct Hands {
    root: PathBuf,
    git: Git,
    index: Index,
    log: Arc<Mutex<Log>>,
    progress: Arc<Progress>,
    /// Keeps the errors of writing back, which a fresh descriptor would not be told of.
    disk: File,
    /// The commits that the side index does not have yet, oldest first.
    unindexed: Vec<Oid>,
    /// The answers of those among them that answered somebody, which git does not have.
    answers: HashMap<Oid, String>,
    /// The last record that was applied.
    last: u64,
    /// The newest commit of git when it was last looked whether somebody else has committed.
    followed: Option<Oid>,
    /// Where it is, as the log's next anchor; nothing while it stands on a history that is not known to be hers.
    anchor: Option<Anchor>,
    /// The last record that the log has let go of.
    released: u64,
    /// The index of git is not of HEAD.
    is_index_behind: bool,
    /// Whether that was said already.
    index_failed: bool,
    /// How often the log was kept because of that.
    postponed: u32,
}

impl Hands {
    /// Hands on a repository that has a log.
    pub(super) fn new(root: &Path, log: Arc<Mutex<Log>>, progress: Arc<Progress>) -> Result<Self> {
        let git = setup::open(root)?.ok_or_else(|| RepositoryError::File {
            attempt: "find the repository in",
            path: root.to_owned(),
            source: std::io::ErrorKind::NotFound.into(),
        })?;
        let index = Index::open(git.path())?;
        let disk = File::open(git.path()).map_err(workfile::failed("open", git.path()))?;
        Ok(Self {
            root: root.to_owned(),
            git,
            index,
            log,
            progress,
            disk,
            unindexed: Vec::new(),
            answers: HashMap::new(),
            last: 0,
            followed: None,
            anchor: None,
            released: 0,
            is_index_behind: false,
            index_failed: false,
            postponed: 0,
        })
    }

    /// The folder of git.
    pub(super) fn git_dir(&self) -> &Path {
        self.git.path()
    }

    /// Brings a run of accepted writes into the repository. `is_start` says that the files may be what a power cut left,
    /// `is_hers` that what they stand on is known to be hers.
    pub(super) fn apply(
        &mut self,
        batch: &[Arc<Accepted>],
        branch: &str,
        is_start: bool,
        is_hers: bool,
    ) -> Result<()> {
        let Some(last) = batch.last() else { return Ok(()) };
        self.reached(Step::Logged)?;
        self.write_objects(batch, is_start)?;
        self.reached(Step::Objects)?;
        self.move_branch(batch, branch, is_start)?;
        self.reached(Step::Reference)?;
        self.write_files(batch, is_start)?;
        self.reached(Step::Files)?;
        self.last = last.record.position;
        self.anchor = is_hers.then(|| Anchor::at(branch, last.record.id));
        self.is_index_behind = true;
        if !is_start {
            self.progress.set_applied(self.last);
        }
        self.note(batch);
        if is_start {
            // before anything else is accepted: lives that end soon, one after the other, must not let the log grow
            if let Err(error) = self.release() {
                warn!(error = ipc::exit::chain(&error), "the log could not be shortened; it will be");
            }
            self.progress.set_applied(self.last);
        }
        self.reached(Step::Indexed)
    }

    fn write_objects(&self, batch: &[Arc<Accepted>], is_start: bool) -> Result<()> {
        let objects: BTreeMap<Oid, &Object> =
            batch.iter().flat_map(|write| &write.objects).map(|object| (object.id, object)).collect();
        let folder = self.git.path().join("objects");
        let nursery = self.git.path().join("lisa");
        let written = if objects.len() > LOOSE_MAX {
            // a power cut may have torn what was written one by one before
            let torn =
                objects.keys().filter(|_| is_start).try_for_each(|id| object::remove_torn(&folder, *id));
            torn.map_err(workfile::failed("remove a torn object in", &folder))?;
            pack::write(&folder.join("pack"), &nursery, objects.values().copied())
        } else {
            // the commits last, so that what a look from outside finds is whole
            let (commits, others): (Vec<_>, Vec<_>) =
                objects.values().partition(|object| object.kind == Kind::Commit);
            others
                .into_iter()
                .chain(commits)
                .try_for_each(|object| object::write_loose(&folder, &nursery, object).map(drop))
        };
        written.map_err(workfile::failed("write objects in", &folder))
    }

    /// Moves the branch to the last of the batch, from wherever in the batch it is; from anywhere else it is not ours to
    /// move.
    fn move_branch(&self, batch: &[Arc<Accepted>], branch: &str, is_start: bool) -> Result<()> {
        let (Some(first), Some(last)) = (batch.first(), batch.last()) else { return Ok(()) };
        let (base, target) = (first.record.parent, last.record.id);
        let subject = String::from_utf8_lossy(&last.record.bytes);
        let subject = subject.split_once("\n\n").map_or("", |(_, message)| message);
        let subject = subject.lines().next().unwrap_or_default();
        let moved = match self.git.refname_to_id(branch) {
            Ok(here) if here == target => return Ok(()),
            Ok(here) if Some(here) == base || batch.iter().any(|write| write.record.id == here) => {
                self.git.reference_matching(branch, target, true, here, subject).map(drop)
            }
            Ok(here) if !is_start || has_commit(&self.git, here) => return Err(RepositoryError::Moved),
            Ok(here) => {
                warn!(%here, branch, "the branch names a commit that is not there, and is put back");
                self.git.reference(branch, target, true, subject).map(drop)
            }
            // a branch that is torn while we run is somebody's who is writing it
            Err(source) if !is_start && source.code() != ErrorCode::NotFound => {
                return Err(RepositoryError::Git { attempt: "read the branch", source });
            }
            // a branch of which nothing is left, as after a power cut or somebody's accident, is put back
            Err(error) => {
                if base.is_some() {
                    warn!(%error, branch, "the branch cannot be read, and is put back");
                }
                if error.code() != ErrorCode::NotFound {
                    let place = self.git.path().join(branch);
                    std::fs::remove_file(&place).map_err(workfile::failed("remove", &place))?;
                }
                self.git.reference(branch, target, false, subject).map(drop)
            }
        };
        // what the branch says now decides, whatever moving it has answered
        match (self.git.refname_to_id(branch), moved) {
            (Ok(now), _) if now == target => Ok(()),
            (_, Err(error)) if !matches!(error.code(), ErrorCode::Modified | ErrorCode::Exists) => {
                Err(RepositoryError::Git { attempt: "move the branch", source: error })
            }
            _ => Err(RepositoryError::Moved),
        }
    }

    /// Writes each file once, with what it has at last.
    fn write_files(&self, batch: &[Arc<Accepted>], is_start: bool) -> Result<()> {
        let mut known: BTreeMap<&str, BTreeSet<Option<Oid>>> = BTreeMap::new();
        let mut last: Vec<(&str, Option<&[u8]>)> = Vec::new();
        for write in batch {
            for (file, (before, after)) in write.record.files.iter().zip(&write.blobs) {
                known.entry(&file.path).or_default().extend([before, after]);
                last.retain(|(path, _)| *path != file.path);
                last.push((&file.path, file.bytes.as_deref()));
            }
        }
        for (path, bytes) in last {
            let held = look(self.root.as_path(), path)?;
            if held.as_deref() == bytes {
                continue;
            }
            let id = held.as_deref().map(|held| object::name(Kind::Blob, held));
            let is_torn = is_start && held.as_deref().is_some_and(|held| held.iter().all(|byte| *byte == 0));
            let is_ours =
                is_torn || path == seal::PATH || known.get(path).is_some_and(|known| known.contains(&id));
            if is_ours {
                put(&self.root, path, bytes)?;
            } else {
                info!(
                    path,
                    "somebody has edited a file while it was being written; their text stays, as an edit of theirs"
                );
            }
        }
        Ok(())
    }

    /// Takes a batch into the side index, or notes that it has to wait for what comes before it.
    fn note(&mut self, batch: &[Arc<Accepted>]) {
        let (Some(first), Some(last)) = (batch.first(), batch.last()) else { return };
        if !self.unindexed.is_empty() {
            self.keep_answers(batch);
            self.unindexed.extend(batch.iter().map(|write| write.record.id));
            return;
        }
        let head = self.index.head().ok().flatten().map(|(head, _)| head);
        let rows: Vec<_> = batch.iter().map(|write| row(write)).collect();
        let noted = if head == Some(last.record.id) {
            Ok(())
        } else if head == first.record.parent {
            self.index.add(&rows).map_err(RepositoryError::log("write the index"))
        } else {
            self.keep_answers(batch);
            self.catch_up(last.record.id)
        };
        match noted {
            Ok(()) if self.unindexed.is_empty() => self.progress.change(|state| state.indexed = self.last),
            Ok(()) => {}
            Err(error) => {
                let error = ipc::exit::chain(&error);
                warn!(error, "the side index could not be written; it will be");
            }
        }
    }

    fn keep_answers(&mut self, batch: &[Arc<Accepted>]) {
        let answer =
            |write: &Arc<Accepted>| Some((write.record.id, write.record.about.answer.as_ref()?.to_string()));
        self.answers.extend(batch.iter().filter_map(answer));
    }

    /// Finds what the side index lacks.
    fn catch_up(&mut self, head: Oid) -> Result<()> {
        self.unindexed = self.index.missing(&self.git, head)?;
        Ok(())
    }

    /// Looks whether somebody else has committed on top of ours, which no batch tells of. Another history is left alone: it
    /// is not hers until she goes on with it.
    pub(super) fn follow(&mut self) {
        let head = self.git.head().ok().and_then(|head| head.target());
        let Some(head) = head.filter(|head| self.unindexed.is_empty() && self.followed != Some(*head)) else {
            return;
        };
        self.followed = Some(head);
        match self.index.since(&self.git, head) {
            Ok((missing, true)) => self.unindexed = missing,
            Ok((_, false)) => {}
            Err(error) => {
                let error = ipc::exit::chain(&error);
                debug!(error, "the side index cannot follow; the history is walked instead");
            }
        }
    }

    /// Brings some of what is missing into the side index; says whether there is more.
    pub(super) fn index_more(&mut self) -> Result<bool> {
        if self.unindexed.is_empty() {
            return Ok(false);
        }
        let brought = self.index.bring(&self.git, &self.unindexed, &self.answers)?;
        self.unindexed.drain(..brought);
        if self.unindexed.is_empty() {
            self.answers.clear();
            self.progress.change(|state| state.indexed = self.last);
        }
        Ok(!self.unindexed.is_empty())
    }

    /// Carries forward where the lines of documents come from, for a moment; says whether there is more.
    pub(super) fn annotate_more(&mut self) -> bool {
        self.unindexed.is_empty() && self.index.annotate(&self.git)
    }

    /// How many records the log could let go of.
    pub(super) fn releasable(&self) -> u64 {
        self.last - self.released.min(self.last)
    }

    /// Makes everything that was applied durable, and lets the log go of it.
    pub(super) fn release(&mut self) -> Result<()> {
        if self.is_index_behind {
            self.refresh_index();
        }
        if self.releasable() == 0 {
            return Ok(());
        }
        // somebody's own `git` holds the index for a moment; if it is flushed without what it lacks, and the power is cut
        // after that, nothing would ever bring it in step
        if self.is_index_behind && self.postponed < POSTPONED_MAX {
            self.postponed += 1;
            return Ok(());
        }
        self.postponed = 0;
        while self.index_more()? {}
        let is_indexed = self.progress.now().indexed >= self.last;
        if !is_indexed && let Some(head) = self.git.head().ok().and_then(|head| head.target()) {
            // it could not be written before, so it is looked at again from what it has
            self.catch_up(head)?;
            while self.index_more()? {}
            self.progress.change(|state| state.indexed = self.last);
        }
        setup::flush_all(&self.disk, &self.root).map_err(workfile::failed("make durable", &self.root))?;
        loop {
            let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
            let anchor = self.anchor.as_ref().filter(|_| self.progress.now().anchored < self.last);
            if !log.release(self.last, anchor)? {
                log.fold()?;
                break;
            }
        }
        self.index.fold();
        self.released = self.last;
        Ok(())
    }

    /// Keeps the index in step, for the eyes of a person who types `git status`; no write depends on it.
    pub(super) fn refresh_index(&mut self) {
        let refresh = || {
            let mut index = self.git.index()?;
            index.read_tree(&self.git.head()?.peel_to_tree()?)?;
            index.write()
        };
        match refresh() {
            Ok(()) => (self.is_index_behind, self.index_failed) = (false, false),
            Err(error) if !self.index_failed => {
                // a person's own `git status` holds its lock for a moment; it is tried again
                warn!(%error, "the index could not be brought in step; `git status` may show changes that are none");
                self.index_failed = true;
            }
            Err(_) => {}
        }
    }

    /// Whether `git status` still shows changes that are none.
    pub(super) fn is_index_behind(&self) -> bool {
        self.is_index_behind
    }

    #[cfg_attr(
        not(test),
        expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "only tests cut a write")
    )]
    fn reached(&self, step: Step) -> Result<()> {
        #[cfg(test)]
        if self.progress.now().cut == Some(step) {
            return Err(RepositoryError::Cut);
        }
        let _ = step;
        Ok(())
    }
}

fn row(write: &Accepted) -> Row {
    let about = &write.record.about;
    // what was accepted on top of another commit may find that some of it is so already
    let files = write.record.files.iter().zip(&write.blobs);
    let paths = files.filter(|(_, (before, after))| before != after).map(|(file, _)| file.path.clone());
    Row {
        id: write.record.id,
        versions: about.versions,
        time: about.time,
        paths: paths.collect(),
        request: about.request.clone(),
        answer: about.answer.as_ref().map(ToString::to_string),
    }
}

/// Whether a commit is there and whole.
pub(super) fn has_commit(git: &Git, id: Oid) -> bool {
    git.odb().is_ok_and(|odb| odb.read(id).is_ok_and(|object| object.kind() == ObjectType::Commit))
}
