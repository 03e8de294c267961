//! Outside: what other programs and people do to the files, found by looking, and told once.
//!
//! ```text
//!  folders watched, and a slow poll behind it ─▶ look ─▶ differs from the newest commit? ─▶ the same at the next look ─▶ an edit
//! ```
//!
//! A file is compared with what the newest commit says of it, never with what we believe to have written: so a write of
//! ours is no edit of anybody's. One that is still being written is left until it looks the same twice.

use std::{
    collections::{BTreeSet, HashMap},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::mpsc,
    time::{Duration, Instant},
};

use git2::{ObjectType, Oid};
use ipc::{
    contract::soul::{Reply, Request},
    hello::Role,
    id::RequestId,
    server::Caller,
};
use notify::{
    EventKind, RecursiveMode, Watcher as _,
    event::{AccessKind, AccessMode},
};
use ractor::ActorRef;
use tokio::sync::oneshot;
use tracing::{info, warn};

use crate::{
    document::{Document, Folder},
    keeper::{KeeperMsg, Question},
    repository::{Repository, RepositoryError, workfile::look},
    rollback::parse,
    seal, seed,
};

/// How long a file must look the same before it is taken for finished.
const QUIET: Duration = Duration::from_millis(300);
/// How long a file that never rests may hold up the look at the others.
const RESTLESS_MAX: Duration = Duration::from_secs(2);
/// How often it is looked although nothing was told, and how often while a folder cannot be watched.
const POLL: Duration = Duration::from_secs(20);
const POLL_UNWATCHED: Duration = Duration::from_secs(1);
/// How many edits are kept for telling her; more are in her history.
const UNTOLD_MAX: usize = 8;

/// How a file looked without being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// What was seen so far.
#[derive(Debug, Default)]
pub(crate) struct Outside {
    /// Files that were the same as in that commit's tree.
    same: HashMap<String, (Option<Stamp>, Option<Oid>)>,
    /// Files that differed at the last look.
    differing: HashMap<String, Option<Stamp>>,
    /// What she was not told yet.
    untold: Vec<String>,
    /// What cannot be taken as it is.
    in_the_way: Vec<String>,
    /// Why nothing is written, where that is so.
    pub(crate) hindrance: Option<String>,
    /// What is odd and hinders nothing.
    pub(crate) oddity: Option<String>,
}

impl Outside {
    /// The files that somebody changed and has finished with, and whether others are still being written.
    pub(crate) fn find(&mut self, repository: &Repository) -> Result<(Vec<String>, bool), RepositoryError> {
        let root = repository.root();
        // a file is looked at first and read then, so that an edit in between shows at the next look
        root.read_anew();
        let committed: HashMap<_, _> = repository.committed_files()?.into_iter().collect();
        let mut paths: BTreeSet<String> = documents(root);
        paths.extend(committed.keys().filter(|path| is_watched(path)).cloned());
        self.in_the_way.clear();
        let before = std::mem::take(&mut self.differing);
        let mut finished = Vec::new();
        for path in paths {
            let stamp = stamp(&root.join(&path));
            let id = committed.get(&path).copied();
            if self.same.get(&path) == Some(&(stamp, id)) {
                continue;
            }
            let bytes = match look(root, &path) {
                Ok(bytes) => bytes,
                Err(error) => {
                    self.in_the_way.push(ipc::exit::chain(&error));
                    continue;
                }
            };
            let now = bytes.as_deref().and_then(|bytes| Oid::hash_object(ObjectType::Blob, bytes).ok());
            if now == id {
                self.same.insert(path, (stamp, id));
            } else if let Some(why) = unfit(root, &path, bytes.as_deref()) {
                self.in_the_way.push(why);
            } else if before.get(&path) == Some(&stamp) {
                finished.push(path);
            } else {
                self.differing.insert(path, stamp);
            }
        }
        Ok((finished, !self.differing.is_empty()))
    }

    /// Notes what she should hear of.
    pub(crate) fn note(&mut self, what: String) {
        info!(what, "an edit from outside");
        if self.untold.len() == UNTOLD_MAX {
            self.untold.remove(0);
        }
        self.untold.push(what);
    }

    /// What she was not told yet, said once behind the answer of a tool.
    pub(crate) fn tell_her(&mut self) -> Option<String> {
        let told = std::mem::take(&mut self.untold).iter().fold(String::new(), |mut told, what| {
            told.push_str("\n[noticed] ");
            told.push_str(what);
            told
        });
        (!told.is_empty()).then_some(told)
    }

    /// Sentences for a person.
    pub(crate) fn notices(&self) -> Vec<String> {
        let odd = self.hindrance.iter().chain(&self.oddity).chain(&self.in_the_way).chain(&self.untold);
        odd.cloned().collect()
    }
}

/// Why a content is not taken as an edit, if so.
pub(crate) fn unfit(root: &Path, path: &str, bytes: Option<&[u8]>) -> Option<String> {
    let root = root.display();
    if bytes.is_some_and(has_conflict_markers) {
        return Some(format!("`{path}` holds conflict markers; keep one side of each and save it"));
    }
    (path == seed::PATH && bytes.is_none_or(|bytes| serde_json::from_slice::<serde_json::Value>(bytes).is_err()))
        .then(|| {
            format!("`{path}`, without which there is no self, is gone or torn; `lisa soul check --repair` brings it back, or `git -C {root} checkout HEAD -- {path}`")
        })
}

/// Whether git's marks of a conflict stand at the beginning of lines, all three.
pub(crate) fn has_conflict_markers(bytes: &[u8]) -> bool {
    let begins = |mark: &[u8]| bytes.split(|byte| *byte == b'\n').any(|line| line.starts_with(mark));
    begins(b"<<<<<<< ") && begins(b"=======") && begins(b">>>>>>> ")
}

/// Whether a committed file is a person's to edit: all but what this process writes by itself and hidden files.
pub(crate) fn is_watched(path: &str) -> bool {
    path != seal::PATH && !path.split('/').any(|part| part.starts_with('.'))
}

/// The paths of everything that lies where a document could be.
fn documents(root: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let folders = std::iter::once("").chain(Folder::ALL.map(Folder::name));
    for folder in folders {
        for file in std::fs::read_dir(root.join(folder)).into_iter().flatten().flatten() {
            let name = file.file_name();
            let Some(name) = name.to_str() else { continue };
            let path = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
            // a folder that is called like an entry is a stray, one that is called like a text is in its way
            let stray = file.file_type().is_ok_and(|kind| kind.is_dir()) && !folder.is_empty();
            match parse(&path) {
                Some(Document::Progress(slug)) if !root.join(format!("desires/{slug}.md")).exists() => {}
                Some(_) if !stray => {
                    found.insert(path);
                }
                _ => {}
            }
        }
    }
    found
}

fn stamp(place: &Path) -> Option<Stamp> {
    let seen = place.symlink_metadata().ok()?;
    Some(Stamp {
        inode: seen.ino(),
        bytes: seen.len(),
        modified: (seen.mtime(), seen.mtime_nsec()),
        changed: (seen.ctime(), seen.ctime_nsec()),
    })
}

/// The bell that has the watcher look at once, and say what is different. It is rung by folders that changed and by a desk
/// that writes no more, or again.
pub(crate) struct Bell(mpsc::Sender<()>, Option<mpsc::Receiver<()>>);

impl Default for Bell {
    fn default() -> Self {
        let (ringer, heard) = mpsc::channel();
        Self(ringer, Some(heard))
    }
}

impl Bell {
    /// What rings it.
    pub(crate) fn ringer(&self) -> mpsc::Sender<()> {
        self.0.clone()
    }

    /// The bell itself, for the one who listens; whoever asks again is given one that nobody rings.
    pub(crate) fn take(&mut self) -> Self {
        Self(self.0.clone(), self.1.take())
    }
}

/// Looks whenever something moved in the folders of the self, until the keeper is gone; `tell` hears the notices when
/// they change.
pub(crate) fn watch(
    root: PathBuf,
    keeper: ActorRef<KeeperMsg>,
    Bell(hints, heard): Bell,
    tell: impl Fn(&[String]) + Send + 'static,
) {
    let Some(heard) = heard else { return };
    let watching = move || {
        let hint = move |event: notify::Result<notify::Event>| {
            if event.map_or(true, |event| is_a_change(event.kind)) {
                // nobody listens any more when this process ends
                let _ = hints.send(());
            }
        };
        let mut watcher = notify::recommended_watcher(hint)
            .inspect_err(|error| warn!(%error, "folders cannot be watched; looking every second instead"))
            .ok();
        let mut under_watch: BTreeSet<PathBuf> = BTreeSet::new();
        let mut told: Vec<String> = Vec::new();
        loop {
            let folders =
                std::iter::once(root.clone()).chain(Folder::ALL.map(|folder| root.join(folder.name())));
            let mut all = true;
            for folder in folders {
                let there = folder.is_dir();
                if !there {
                    under_watch.remove(&folder);
                } else if !under_watch.contains(&folder) {
                    let begun =
                        watcher.as_mut().map(|watcher| watcher.watch(&folder, RecursiveMode::NonRecursive));
                    if matches!(begun, Some(Ok(()))) {
                        under_watch.insert(folder.clone());
                    }
                }
                all &= under_watch.contains(&folder) || (!there && folder != root);
            }
            let Some((notices, again)) = ask(&keeper) else { return };
            if notices != told {
                tell(&notices);
                told = notices;
            }
            let patience = match (again, all) {
                (true, _) => QUIET,
                (false, true) => POLL,
                (false, false) => POLL_UNWATCHED,
            };
            rest(&heard, patience);
        }
    };
    if let Err(error) = std::thread::Builder::new().name("outside".to_owned()).spawn(watching) {
        warn!(%error, "edits from outside are seen only when the soul starts or writes");
    }
}

/// Waits until something has moved and come to rest again, or for as long as `patience`.
fn rest(heard: &mpsc::Receiver<()>, patience: Duration) {
    match heard.recv_timeout(patience) {
        Ok(()) => {
            let end = Instant::now() + RESTLESS_MAX;
            while Instant::now() < end && heard.recv_timeout(QUIET).is_ok() {}
        }
        Err(mpsc::RecvTimeoutError::Timeout) => {}
        Err(mpsc::RecvTimeoutError::Disconnected) => std::thread::park_timeout(patience),
    }
}

/// Reading a file tells the watcher too, and we read what we look at.
fn is_a_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(access) => access == AccessKind::Close(AccessMode::Write),
        EventKind::Any
        | EventKind::Create(_)
        | EventKind::Modify(_)
        | EventKind::Remove(_)
        | EventKind::Other => true,
    }
}

fn ask(keeper: &ActorRef<KeeperMsg>) -> Option<(Vec<String>, bool)> {
    let (answer, answered) = oneshot::channel();
    // no connection can have this role: the keyring of the soul holds no secret for it
    let caller = Caller { role: Role::Soul, life: 0 };
    let question = Box::new(Question { caller, id: RequestId::fresh(), request: Request::Look, answer });
    keeper.cast(KeeperMsg::Ask(question)).ok()?;
    match answered.blocking_recv().ok()? {
        Reply::Looked { notices, again } => Some((notices, again)),
        Reply::Refused { reason } => Some((vec![reason], false)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conflict_markers_are_all_three_at_the_beginning_of_lines() {
        let check = |text: &str, is: bool| assert_eq!(has_conflict_markers(text.as_bytes()), is, "{text:?}");
        check("a\n<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> x\n", true);
        check("Title\n=======\n", false);
        check(" <<<<<<< HEAD\n=======\n>>>>>>> x\n", false);
    }

    #[test]
    fn reading_is_no_change() {
        use notify::event::{CreateKind, RemoveKind};
        let check = |kind: EventKind, is: bool| assert_eq!(is_a_change(kind), is, "{kind:?}");
        check(EventKind::Access(AccessKind::Open(AccessMode::Any)), false);
        check(EventKind::Access(AccessKind::Close(AccessMode::Read)), false);
        check(EventKind::Access(AccessKind::Close(AccessMode::Write)), true);
        check(EventKind::Create(CreateKind::File), true);
        check(EventKind::Remove(RemoveKind::File), true);
    }

    #[test]
    fn only_what_could_be_a_document_is_looked_at() {
        let root = tempfile::tempdir().unwrap();
        for path in [
            "name.md",
            "notes.txt",
            "values/x.md",
            "values/x.md~",
            "values/.x.md.swp",
            "desires/y.progress.md",
        ] {
            std::fs::create_dir_all(root.path().join(path).parent().unwrap()).unwrap();
            std::fs::write(root.path().join(path), "x").unwrap();
        }
        std::fs::create_dir(root.path().join("values/z.md")).unwrap();
        let found: Vec<_> = documents(root.path()).into_iter().collect();
        assert_eq!(found, ["name.md", "values/x.md"]);
    }
}
