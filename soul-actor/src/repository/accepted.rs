//! Accepting a change: the commit it makes on top of the newest one, computed in memory.
//!
//! A commit's time is never before its parent's: a clock that went back is taken as standing still, because what walks a
//! history by time must not lose its way. The request is accepted all the same. What the clock really said is kept as the
//! time of the author, so that a clock that went back far is noticed before the next write.

use std::sync::Arc;

use git2::{Oid, Repository as Git};
use jiff::{Timestamp, tz::TimeZone};

use super::{
    Change, Versions,
    folder::Folder,
    log::{About, Record},
    object::{self, Kind, Object},
    setup,
};
use crate::message::Said;

/// What a prompt shows: files and folders in the root.
pub(super) const SHOWN: [&str; 13] = [
    "name.md",
    "identity.md",
    "purpose.md",
    "constitution.md",
    "soul.md",
    "user.md",
    "memory.md",
    "rules.md",
    "emotions.json",
    "values",
    "opinions",
    "desires",
    "relationships",
];

/// The newest commit, as far as the next one needs it.
#[derive(Debug, Clone)]
pub(super) struct Head {
    /// Its id; none before the first.
    pub(super) id: Option<Oid>,
    /// What it holds.
    pub(super) folder: Arc<Folder>,
    /// Its time, in seconds.
    pub(super) time: i64,
    /// What the clock said when it was made, in seconds, where it says that it is hers: other clocks are not this one.
    pub(super) clock: Option<i64>,
    /// Its versions.
    pub(super) versions: Versions,
}

/// The blob of a file before and after a change.
pub(super) type Blobs = (Option<Oid>, Option<Oid>);

/// An accepted change, on its way from the log to git.
#[derive(Debug, Clone)]
pub(super) struct Accepted {
    /// What the log has.
    pub(super) record: Record,
    /// The objects that are new.
    pub(super) objects: Vec<Object>,
    /// For each file its blob before and after.
    pub(super) blobs: Vec<Blobs>,
}

/// When something is committed.
#[derive(Debug, Clone, Copy)]
pub(super) struct When {
    seconds: i64,
    offset_minutes: i32,
}

impl When {
    /// An instant, in the time zone of the person.
    pub(super) fn of(now: Timestamp, zone: &TimeZone) -> Self {
        Self { seconds: now.as_second(), offset_minutes: zone.to_offset(now).seconds() / 60 }
    }

    fn not_before(self, seconds: i64) -> Self {
        Self { seconds: self.seconds.max(seconds).max(0), ..self }
    }

    fn render(self) -> String {
        let sign = if self.offset_minutes < 0 { '-' } else { '+' };
        let minutes = self.offset_minutes.abs();
        format!("{} {sign}{:02}{:02}", self.seconds, minutes / 60, minutes % 60)
    }
}

impl Head {
    /// Before the first commit.
    pub(super) fn unborn() -> Self {
        Self {
            id: None,
            folder: Arc::new(Folder::empty()),
            time: 0,
            clock: None,
            versions: Versions::default(),
        }
    }

    /// Reads a commit, of which the versions are known.
    pub(super) fn load(git: &Git, id: Oid, versions: Versions) -> Result<Self, git2::Error> {
        let commit = git.find_commit(id)?;
        let folder = Arc::new(Folder::load(git, commit.tree_id())?);
        let is_hers = commit.message().is_ok_and(|said| !Said::parse(said).origin.is_empty());
        let clock = is_hers.then(|| commit.author().when().seconds());
        let time = commit.time().seconds();
        Ok(Self { id: Some(id), folder, time, clock, versions })
    }

    /// The commit of `changes` on top of this one; none where nothing changes.
    pub(super) fn next(
        &self,
        changes: &[Change],
        text: &str,
        when: When,
        position: u64,
    ) -> Option<(Self, Accepted)> {
        let (folder, blobs, made) = self.changed(changes);
        if folder.id == self.folder.id {
            return None;
        }
        let (said, when) = (when.not_before(0).render(), when.not_before(self.time));
        let stamp = when.render();
        Some(self.commit(folder, blobs, made, changes.to_vec(), when.seconds, position, |tree, parent| {
            let who = format!("{} <{}>", setup::NAME, setup::EMAIL);
            object::commit(tree, parent, &who, [&said, &stamp], text)
        }))
    }

    /// The bytes of a first commit of a tree that is there.
    pub(super) fn adopting(&self, tree: Oid, text: &str, when: When) -> Vec<u8> {
        let who = format!("{} <{}>", setup::NAME, setup::EMAIL);
        let stamp = when.not_before(self.time).render();
        object::commit(tree, self.id, &who, [&stamp, &stamp], text)
    }

    /// The same commit as a record of the log says, which must come to the same id.
    pub(super) fn replay(&self, record: &Record) -> Option<(Self, Accepted)> {
        if record.parent != self.id {
            return None;
        }
        let (folder, blobs, made) = self.changed(&record.files);
        let bytes = record.bytes.to_vec();
        let names_tree = bytes.starts_with(format!("tree {}\n", folder.id).as_bytes());
        let (head, mut accepted) = self.commit(
            folder,
            blobs,
            made,
            record.files.clone(),
            record.about.time,
            record.position,
            |_, _| bytes,
        );
        accepted.record.about.clone_from(&record.about);
        (names_tree && accepted.record.id == record.id)
            .then_some((Self { versions: record.about.versions, ..head }, accepted))
    }

    /// The same change on top of another commit than the one it was accepted on; its message says what it was answered
    /// as. It is a commit also where nothing is left to change: whoever asked was told that there is one.
    pub(super) fn rebase(&self, record: &Record) -> (Self, Accepted) {
        let (folder, blobs, made) = self.changed(&record.files);
        let text = String::from_utf8_lossy(&record.bytes).into_owned();
        let (headers, message) = text.split_once("\n\n").unwrap_or((&text, ""));
        let people: Vec<_> = headers
            .lines()
            .filter(|line| !line.starts_with("tree ") && !line.starts_with("parent "))
            .collect();
        let answered = format!("{}{}\n", ANSWERED, record.id);
        let (people, message) = (people.join("\n"), format!("{message}{answered}"));
        let (head, mut accepted) = self.commit(
            folder,
            blobs,
            made,
            record.files.clone(),
            record.about.time,
            record.position,
            |tree, parent| {
                let parent = parent.map(|parent| format!("parent {parent}\n")).unwrap_or_default();
                format!("tree {tree}\n{parent}{people}\n\n{message}").into_bytes()
            },
        );
        accepted.record.about = About { versions: head.versions, ..record.about.clone() };
        (head, accepted)
    }

    fn changed(&self, changes: &[Change]) -> (Folder, Vec<Blobs>, Vec<Object>) {
        let mut made = Vec::new();
        let mut blobs = Vec::new();
        for change in changes {
            let after = change.bytes.as_ref().map(|bytes| {
                let blob = Object::new(Kind::Blob, bytes.as_slice());
                let id = blob.id;
                made.push(blob);
                id
            });
            blobs.push((self.folder.file(&change.path), after));
        }
        let steps: Vec<_> =
            changes.iter().zip(&blobs).map(|(change, (_, after))| (change.path.as_str(), *after)).collect();
        let folder = self.folder.with(&steps, &mut made);
        (folder, blobs, made)
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "what a commit is made of, for the three ways to come to one"
    )]
    fn commit(
        &self,
        folder: Folder,
        blobs: Vec<Blobs>,
        mut objects: Vec<Object>,
        files: Vec<Change>,
        time: i64,
        position: u64,
        bytes: impl FnOnce(Oid, Option<Oid>) -> Vec<u8>,
    ) -> (Self, Accepted) {
        let commit = Object::new(Kind::Commit, bytes(folder.id, self.id));
        let (id, bytes) = (commit.id, commit.bytes.clone());
        objects.push(commit);
        let versions = self.versions.next(shown(&self.folder) != shown(&folder));
        let paths = files.iter().map(|file| file.path.clone()).collect();
        let about = About { versions, time, paths, ..About::default() };
        let clock = author_time(&bytes);
        let record = Record { position, id, parent: self.id, bytes, files, about };
        let head = Self { id: Some(id), folder: Arc::new(folder), time, clock, versions };
        (head, Accepted { record, objects, blobs })
    }
}

/// How the message of a commit begins the line that names the id it was answered as.
const ANSWERED: &str = "Answered-As: ";

/// The seconds of the author's line of a commit.
fn author_time(commit: &[u8]) -> Option<i64> {
    let line = commit.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"author "))?;
    std::str::from_utf8(line).ok()?.rsplit(' ').nth(1)?.parse().ok()
}

fn shown(folder: &Folder) -> [Option<Oid>; SHOWN.len()] {
    SHOWN.map(|name| folder.entry(name))
}
