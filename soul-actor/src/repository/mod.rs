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

use std::{
    cell::{Cell, RefCell},
    collections::{HashMap, HashSet, VecDeque},
    fs::DirBuilder,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io,
    os::unix::fs::DirBuilderExt as _,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use git2::{Commit, ErrorCode, ObjectType, Oid, Repository as Git, Tree};
use jiff::{Timestamp, tz::TimeZone};
use serde_json::Value;

use accepted::{Accepted, Head, When};
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
use workfile::look;

use crate::{
    birth,
    message::{Message, Origin},
    seal, seed,
};

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
        let durable = || {
            let disk = std::fs::File::open(git.path())?;
            setup::flush_all(&disk, &self.root)
        };
        durable().map_err(workfile::failed("make durable", git.path()))?;
        let subject = text.lines().next().unwrap_or_default();
        git.reference(&branch, id, false, subject).map_err(RepositoryError::git(attempt))?;
        durable().map_err(workfile::failed("make durable", git.path()))?;
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

    /// Ends a batch whose answers have been given: what was looked at for it is looked at anew for the next.
    pub(crate) fn end_batch(&mut self) {
        self.unflushed.clear();
        self.is_looked = false;
        self.root.read_anew();
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
        self.progress.change(|state| state.refusing = None);
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
        writer.applier.send(Batch {
            writes: batch,
            branch: branch.clone(),
            instead: false,
            is_start: false,
            is_hers,
        });
        self.forget_applied();
        if self.unapplied.len() > UNAPPLIED_MAX {
            let far = self.position - UNAPPLIED_MAX as u64 / 2;
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

    /// The id under which a commit stands that was answered with this one.
    pub(crate) fn standing(&self, answered: Oid) -> Oid {
        let mut id = answered;
        while let Some(next) = self.standing.get(&id) {
            id = *next;
        }
        id
    }

    /// What is known of a request of an earlier process, or of long ago.
    pub(crate) fn asked(&self, request: &str) -> Asked {
        if let Some((commit, answer)) = self.early.get(request) {
            return Asked::Answered(commit.to_string(), answer.clone());
        }
        if self.head.id.is_none() || self.is_new(request) {
            return Asked::Never;
        }
        self.with_index(|index| index.first(request)).map_or(Asked::Unknown, |first| match first {
            Some(first) => {
                let answer = first.answer.and_then(|answer| serde_json::from_str(&answer).ok());
                Asked::Answered(first.commit.to_string(), answer)
            }
            None => Asked::Never,
        })
    }

    /// Whether nothing is known of a request for certain, without asking the side index: nearly all are.
    fn is_new(&self, request: &str) -> bool {
        let mut requests = self.requests.borrow_mut();
        if requests.as_ref().is_none_or(|known| known.len() > 2 * index::REQUESTS_MAX) {
            *requests = self.with_index(Index::requests).map(|indexed| {
                let coming = self.unapplied.iter().map(|write| &write.record);
                let coming = coming.chain(self.batch.iter().map(|write| &write.record));
                let coming = coming.filter_map(|record| record.about.request.as_deref());
                indexed.iter().map(String::as_str).chain(coming).map(digest).collect()
            });
        }
        requests.as_ref().is_some_and(|known| !known.contains(&digest(request)))
    }

    /// Waits until what was flushed is in git, as far as that works.
    fn wait_applied(&self) {
        let flushed = self.position - self.batch.len() as u64;
        self.progress.wait(SETTLING, |state| {
            state.applied >= flushed || state.trouble.is_some() || state.moved || state.ended
        });
    }

    /// Asks the side index, if it is of a commit of the chain that is on its way to git, or of git's newest.
    fn with_index<T>(&self, ask: impl FnOnce(&Index) -> rusqlite::Result<T>) -> Option<T> {
        let git = self.git.as_ref()?;
        self.ask_index(|open| {
            let Some((head, _)) = open.head()? else { return Ok(None) };
            // what is on its way is in memory besides; anything else than the chain of ours is not for the index to say
            let is_current = Some(head)
                == self.branch.as_ref().and_then(|branch| git.refname_to_id(branch).ok())
                || self
                    .unapplied
                    .iter()
                    .any(|write| write.record.id == head || write.record.parent == Some(head));
            is_current.then(|| ask(open)).transpose()
        })?
    }

    /// Asks the side index, whatever it is of.
    fn ask_index<T>(&self, ask: impl FnOnce(&Index) -> rusqlite::Result<T>) -> Option<T> {
        let git = self.git.as_ref()?;
        self.writer.as_ref()?;
        let mut index = self.index.borrow_mut();
        if index.is_none() {
            *index = Index::read(git.path());
        }
        ask(index.as_ref()?).ok()
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

fn digest(request: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    request.hash(&mut hasher);
    hasher.finish()
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

/// Makes the folder of the self, where there is none.
fn make_root(root: &Path) -> Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(root);
    made.map_err(workfile::failed("make the folder", root))
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod seek_tests;

#[cfg(test)]
mod traps;
