//! The repository of the self: the one place that moves a branch, and the order in which it does.
//!
//! ```text
//!  accept: commit computed in memory ─▶ flush: one record each in the log, one flush a batch ─▶ answer
//!                                                    └─▶ behind: objects ─▶ reference ─▶ work files ─▶ side index
//!                                                        quiet: one flush of all ─▶ the log lets go ─▶ packs
//! ```
//!
//! - A commit is built from the newest one, never from the index: what a person staged is in no commit of hers.
//! - What is answered is in the log, durably. A start brings all of it into git, to the ids that were answered, before
//!   it looks for edits of a person; what was not answered is wholly there or wholly absent.
//! - Who reads through [`Root`] sees what was accepted. Who reads files or git calls [`Repository::settle`] before.
//! - A commit that a person makes meanwhile stays below ours: what was accepted goes on top of it, under new ids that the
//!   old ones lead to.
//! - While something cannot be brought into git nothing more is accepted, and it is tried again.
//! - Nothing is written before the first write: a home that is only looked at stays as it is, byte for byte.
//!
//! All calls come from one thread, under a kernel lock.

mod accepted;
mod adopt;
mod annotation;
mod applier;
mod asked;
pub(crate) mod cause;
mod clock;
mod error;
mod folder;
mod hands;
mod history;
mod index;
mod keep;
mod log;
mod mend;
mod object;
mod pack;
mod progress;
mod read;
mod refusal;
mod replay;
mod seek;
mod setup;
mod strangers;
mod upkeep;
mod versions;
mod view;
pub(crate) mod workfile;
mod write;

use std::{
    cell::{Cell, RefCell},
    collections::{HashMap, HashSet, VecDeque},
    io,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use git2::{Commit, ErrorCode, Oid, Repository as Git, Tree};
use jiff::tz::TimeZone;
use serde_json::Value;

use accepted::{Accepted, Head};
pub(crate) use annotation::Brought;
use applier::{Applier, Batch};
pub(crate) use error::RepositoryError;
use hands::Hands;
pub(crate) use history::{Wanted, short, subject};
use index::Index;
use log::Log;
pub(crate) use log::{Anchor, anchor_of};
use progress::Progress;
#[cfg(test)]
pub(crate) use progress::Step;
use strangers::Stranger;
pub(crate) use versions::Versions;
pub(crate) use view::Root;

use crate::{message::Origin, seed};

type Result<T, E = RepositoryError> = std::result::Result<T, E>;

/// How long is waited for what was accepted to be in git; it takes milliseconds, unless the disk is very busy.
const SETTLING: Duration = Duration::from_secs(30);
/// How many writes may be accepted and not yet applied: some tens of megabytes at the usual size.
const UNAPPLIED_MAX: usize = 16_384;

/// One file as it will be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    /// Where, relative to the soul.
    pub(crate) path: String,
    /// What it will hold; nothing removes it.
    pub(crate) bytes: Option<Vec<u8>>,
}

/// A commit that stands, once the batch it is in is flushed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Receipt {
    /// Its id, 40 hexadecimal digits.
    pub(crate) commit: String,
    /// The versions there are now.
    pub(crate) versions: Versions,
    /// What changed.
    pub(crate) paths: Vec<String>,
    /// What was done.
    pub(crate) op: &'static str,
    /// By whom.
    pub(crate) caller: String,
    /// From where.
    pub(crate) origin: Origin,
}

/// What is known of a request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Asked {
    /// It made a commit, and this was the answer where it is still known.
    Answered(String, Option<Value>),
    /// It made none.
    Never,
    /// The side index is not there yet: the trailers of the history say.
    Unknown,
}

/// The repository, or the folder where one will be.
pub(crate) struct Repository {
    root: Root,
    zone: TimeZone,
    git: Option<Git>,
    progress: Arc<Progress>,
    /// The log and the thread behind; none before the first write.
    writer: Option<Writer>,
    /// The branch that HEAD names; none when it names none.
    branch: Option<String>,
    /// The newest commit that was accepted.
    head: Head,
    /// What was accepted since the last flush, and the newest commit before that.
    batch: Vec<Accepted>,
    before: Option<Head>,
    /// What the log has and git may not have yet.
    unapplied: VecDeque<Arc<Accepted>>,
    /// The last record of the log.
    position: u64,
    /// The number of this batch, and why earlier ones were not flushed.
    ticket: u64,
    unflushed: HashMap<u64, String>,
    /// Whether it was looked in this batch for what others did to the branch.
    is_looked: bool,
    /// Where her history is known to be.
    anchor: Option<Anchor>,
    /// What is there does not go on from that.
    is_lost: bool,
    /// What others committed on top of hers, from the newest of hers to the newest of theirs.
    strange: Vec<(Oid, Oid)>,
    /// The documents that those changed.
    strangers: Vec<Stranger>,
    /// Under which ids commits stand that were answered with others.
    standing: HashMap<Oid, Oid>,
    /// What the requests came to that were in the log at the start.
    early: HashMap<String, (Oid, Option<Value>)>,
    index: RefCell<Option<Index>>,
    /// The digests of all requests that made a commit; two that share one cost a question to the index.
    requests: RefCell<Option<HashSet<u64>>>,
    /// The newest commit for which the side index was found to lack something.
    missed: Cell<Option<Oid>>,
    is_configured: bool,
    /// What the clock said at her newest write, in seconds.
    clock_said: Option<i64>,
    /// What a person should know about the start.
    notice: Option<String>,
}

struct Writer {
    log: Arc<Mutex<Log>>,
    applier: Applier,
}

impl Writer {
    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Repository {
    /// Opens what is in `root`, under a lock that the caller holds: clears what a dead writer left, and brings into git
    /// what it had accepted. In a folder without a repository nothing is done.
    pub(crate) fn open(root: &Path, zone: TimeZone) -> Result<Self> {
        if let Ok(metadata) = root.metadata()
            && !metadata.is_dir()
        {
            return Err(RepositoryError::InTheWay { path: root.to_owned(), what: "no folder" });
        }
        let mut repository = Self::over(root, zone, setup::open(root)?);
        mend::sweep(root);
        if let Some(git) = &repository.git {
            setup::clear_locks(git);
            if Log::place(git.path()).exists() {
                repository.replay()?;
            } else {
                repository.load()?;
            }
        }
        repository.clock_said = repository.head.clock;
        Ok(repository)
    }

    /// A repository that cannot be opened: the documents are read, and of the history what can be read.
    pub(crate) fn closed(root: &Path, zone: TimeZone) -> Self {
        // what git has can be read where it is only the log that cannot be opened
        let mut repository = Self::over(root, zone, setup::open(root).ok().flatten());
        if repository.load().is_err() {
            repository.git = None;
        }
        repository
    }

    fn over(root: &Path, zone: TimeZone, git: Option<Git>) -> Self {
        let progress = Arc::new(Progress::default());
        Self {
            root: Root::new(root, progress.clone()),
            zone,
            git,
            progress,
            writer: None,
            branch: None,
            head: Head::unborn(),
            batch: Vec::new(),
            before: None,
            unapplied: VecDeque::new(),
            position: 0,
            ticket: 0,
            unflushed: HashMap::new(),
            is_looked: false,
            anchor: None,
            is_lost: false,
            strange: Vec::new(),
            strangers: Vec::new(),
            standing: HashMap::new(),
            early: HashMap::new(),
            index: RefCell::new(None),
            requests: RefCell::new(None),
            missed: Cell::new(None),
            is_configured: false,
            clock_said: None,
            notice: None,
        }
    }

    /// The folder of the self, for whoever plans a change or has called [`Self::settle`].
    pub(crate) fn root(&self) -> &Root {
        &self.root
    }

    /// The newest commit's id; none before the first.
    pub(crate) fn commit(&mut self) -> Result<Option<String>> {
        self.look_around()?;
        Ok(self.head.id.map(|id| id.to_string()))
    }

    /// Whether there is a self: the newest commit has her seed, or a home that was never under git has.
    pub(crate) fn is_born(&self) -> Result<bool> {
        if self.head.folder.file(seed::PATH).is_some() {
            return Ok(true);
        }
        let place = self.root.join(seed::PATH);
        match place.symlink_metadata() {
            Ok(_) => Ok(true),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Ok(false)
            }
            Err(error) => Err(workfile::failed("look at", &place)(error)),
        }
    }

    /// What a person should know: why what was accepted cannot be brought into git, or what was found at the start.
    pub(crate) fn notice(&self) -> Option<String> {
        self.trouble().or_else(|| self.notice.clone())
    }

    /// Opens the log and starts the thread behind it, where that is not done.
    fn start_writing(&mut self) -> Result<()> {
        if self.writer.is_some() {
            return Ok(());
        }
        let log = Log::open(self.git()?.path())?;
        self.begin(log)
    }

    fn begin(&mut self, log: Log) -> Result<()> {
        let log = Arc::new(Mutex::new(log));
        let hands = Hands::new(&self.root, log.clone(), self.progress.clone())?;
        let applier = Applier::start(hands, self.progress.clone());
        let applier = applier.map_err(workfile::failed("start the thread behind", &self.root))?;
        self.writer = Some(Writer { log, applier });
        Ok(())
    }

    fn forget_applied(&mut self) {
        let applied = self.progress.applied();
        while self.unapplied.front().is_some_and(|write| write.record.position <= applied) {
            self.unapplied.pop_front();
        }
        self.root.forget_applied();
    }

    fn git(&self) -> Result<&Git> {
        self.git.as_ref().ok_or_else(|| RepositoryError::File {
            attempt: "write without a repository in",
            path: self.root.to_path_buf(),
            source: io::ErrorKind::NotFound.into(),
        })
    }

    fn detached(&self) -> RepositoryError {
        RepositoryError::Detached { path: self.root.to_path_buf() }
    }

    /// The newest commit that is in git.
    fn head(&self) -> Result<Option<Commit<'_>>> {
        let Some(git) = &self.git else { return Ok(None) };
        self.wait_applied();
        let head = git.head().and_then(|head| head.peel_to_commit());
        match head {
            Ok(head) => Ok(Some(head)),
            Err(error) if error.code() == ErrorCode::UnbornBranch => Ok(None),
            Err(source) => Err(RepositoryError::Open { path: self.root.to_path_buf(), source }),
        }
    }
}

fn empty_tree(git: &Git) -> std::result::Result<Tree<'_>, git2::Error> {
    git.find_tree(git.treebuilder(None)?.write()?)
}

fn tree<'repo>(commit: &Commit<'repo>) -> Result<Tree<'repo>> {
    commit.tree().map_err(RepositoryError::git("read the newest commit"))
}

fn blob(git: &Git, tree: &Tree<'_>, path: &str) -> Result<Option<Vec<u8>>> {
    match tree.get_path(Path::new(path)) {
        Ok(entry) => match git.find_blob(entry.id()) {
            Ok(blob) => Ok(Some(blob.content().to_vec())),
            Err(source) => Err(RepositoryError::Git { attempt: "read a file of the newest commit", source }),
        },
        Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
        Err(source) => Err(RepositoryError::Git { attempt: "find a file in the newest commit", source }),
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod seek_tests;

#[cfg(test)]
mod traps;
