//! The repository of the self: the one place that moves a branch, and the order in which it does.
//!
//! ```text
//!  blobs, trees ─▶ commit id known ─▶ intent ─▶ commit object ─▶ reference ─▶ work files ─▶ intent removed ─▶ answer
//!                                        └──── a start after a kill finishes from here, or forgets ────┘
//! ```
//!
//! - A commit is built from HEAD's tree, never from the index: what a person staged, or a killed writer left there, is
//!   in no commit of hers.
//! - The commit object is written and the reference moved by comparison, each reported by itself. libgit2's own
//!   `commit` answers Ok when the object could not be written.
//! - The reference is read back before anybody is told.
//! - The intent names commit and paths, so a start knows stale work files from edits of a person.
//! - Nothing is written before the first write: a home that is only looked at stays as it is, byte for byte.
//!
//! All calls come from one thread, under a kernel lock. What replaces the flushes by a log comes in behind
//! [`Repository::write`], which takes changes and a message and gives a receipt.

mod adopt;
mod commit;
mod error;
mod history;
mod read;
mod setup;
mod versions;
pub(crate) mod workfile;

use std::{
    fs::DirBuilder,
    io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use git2::{Commit, ErrorCode, FileMode, Oid, Repository as Git, Tree, build::TreeUpdateBuilder};
use jiff::{Timestamp, tz::TimeZone};

#[cfg(test)]
pub(crate) use commit::Step;
pub(crate) use error::RepositoryError;
pub(crate) use history::{Wanted, short, subject};
pub(crate) use versions::Versions;
use workfile::{look, put};

use crate::{
    birth,
    message::{Message, Origin},
    seal, seed,
};

type Result<T, E = RepositoryError> = std::result::Result<T, E>;

/// One file as it will be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    /// Where, relative to the soul.
    pub(crate) path: String,
    /// What it will hold; nothing removes it.
    pub(crate) bytes: Option<Vec<u8>>,
}

/// A commit that stands.
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

/// The repository, or the folder where one will be.
pub(crate) struct Repository {
    root: PathBuf,
    zone: TimeZone,
    git: Option<Git>,
    /// The work files of the last commit could not all be written.
    is_behind: bool,
    /// The local configuration was looked through.
    is_configured: bool,
    /// The versions, and the commit they are of.
    versions: Option<(Option<Oid>, Versions)>,
    #[cfg(test)]
    pub(crate) cut: Option<Step>,
}

impl Repository {
    /// Opens what is in `root`, under a lock that the caller holds: clears what a dead writer left, and finishes what
    /// it had begun. In a folder without a repository nothing is done.
    pub(crate) fn open(root: &Path, zone: TimeZone) -> Result<Self> {
        if let Ok(metadata) = root.metadata()
            && !metadata.is_dir()
        {
            return Err(RepositoryError::InTheWay { path: root.to_owned(), what: "no folder" });
        }
        let mut repository = Self {
            root: root.to_owned(),
            zone,
            git: setup::open(root)?,
            is_behind: false,
            is_configured: false,
            versions: None,
            #[cfg(test)]
            cut: None,
        };
        for folder in [".", ".git/lisa", "values", "opinions", "desires", "journal"] {
            workfile::sweep(&root.join(folder));
        }
        if let Some(git) = &repository.git {
            setup::clear_locks(git);
            repository.head()?;
            repository.is_behind = true;
            repository.settle()?;
        }
        Ok(repository)
    }

    /// A repository that cannot be opened: the documents are read, and there is no history.
    pub(crate) fn closed(root: &Path, zone: TimeZone) -> Self {
        Self {
            root: root.to_owned(),
            zone,
            git: None,
            is_behind: false,
            is_configured: false,
            versions: None,
            #[cfg(test)]
            cut: None,
        }
    }

    /// The folder of the self.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The newest commit's id; none before the first.
    pub(crate) fn commit(&self) -> Result<Option<String>> {
        Ok(self.head()?.map(|head| head.id().to_string()))
    }

    /// Whether there is a self: the newest commit has her seed, or a home that was never under git has.
    pub(crate) fn is_born(&self) -> Result<bool> {
        let committed = match self.head()? {
            Some(head) => tree(&head)?.get_name(seed::PATH).is_some(),
            None => false,
        };
        Ok(committed || self.root.join(seed::PATH).symlink_metadata().is_ok())
    }

    /// Whether the work files are behind the newest commit, because they could not be written.
    pub(crate) fn is_behind(&self) -> bool {
        self.is_behind
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
        if self.git.is_none() {
            make_root(&self.root)?;
            self.git = Some(setup::init(&self.root)?);
            self.is_configured = true;
        }
        self.settle()?;
        if !self.is_configured {
            setup::configure(self.git()?)?;
            self.is_configured = true;
        }
        if self.head()?.is_none() && self.root.join(seed::PATH).exists() {
            return self.adopt(now).map(Some);
        }
        Ok(None)
    }

    /// The first commit of a home of the original that was never under git: its files as they are.
    fn adopt(&mut self, now: Timestamp) -> Result<Receipt> {
        if look(&self.root, ".gitignore")?.is_none() {
            put(&self.root, ".gitignore", Some(birth::IGNORED.as_bytes()))?;
        }
        let tree = adopt::tree(self.git()?, &self.root)?;
        let message = Message::of("migration", "soul", "migration", Origin::Migration);
        // the files are what is committed: none has to be written
        self.commit_tree(tree, &[], &message, now)
    }

    /// Commits what a person changed in these files, each by itself and as theirs, so that it is never mixed into
    /// hers. The seal is left out: the original rewrites it without a commit.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "the desk takes edits itself, and says what they changed")
    )]
    pub(crate) fn take_outside_edits(&mut self, paths: &[String], now: Timestamp) -> Result<Vec<Receipt>> {
        let mut receipts = Vec::new();
        for path in paths.iter().filter(|path| *path != seal::PATH) {
            let bytes = look(&self.root, path)?;
            if bytes == self.committed(path)? {
                continue;
            }
            let message = Message::of("edit", path, "manual", Origin::Manual);
            receipts.extend(self.write(&[Change { path: path.clone(), bytes }], &message, now)?);
        }
        Ok(receipts)
    }

    /// Makes one commit of `changes`, and the files what it says; nothing where nothing changes.
    pub(crate) fn write(
        &mut self,
        changes: &[Change],
        message: &Message,
        now: Timestamp,
    ) -> Result<Option<Receipt>> {
        let git = self.git()?;
        let attempt = "build the commit";
        let build = |base: &Tree<'_>| {
            let mut update = TreeUpdateBuilder::new();
            for change in changes {
                match &change.bytes {
                    Some(bytes) => {
                        update.upsert(change.path.as_str(), git.blob(bytes)?, FileMode::Blob);
                    }
                    None if base.get_path(Path::new(&change.path)).is_ok() => {
                        update.remove(change.path.as_str());
                    }
                    None => {}
                }
            }
            update.create_updated(git, base)
        };
        let base = match self.head()? {
            Some(head) => tree(&head)?,
            None => empty_tree(git).map_err(RepositoryError::git(attempt))?,
        };
        let tree = build(&base).map_err(RepositoryError::git(attempt))?;
        if tree == base.id() {
            return Ok(None);
        }
        drop(base);
        let mut paths: Vec<_> = changes.iter().map(|change| change.path.clone()).collect();
        // that the seed is there means that the rest is
        paths.sort_by_key(|path| path == seed::PATH);
        self.commit_tree(tree, &paths, message, now).map(Some)
    }

    /// The bytes of a file in the newest commit.
    pub(crate) fn committed(&self, path: &str) -> Result<Option<Vec<u8>>> {
        let (Some(git), Some(head)) = (&self.git, self.head()?) else { return Ok(None) };
        blob(git, &tree(&head)?, path)
    }

    fn git(&self) -> Result<&Git> {
        self.git.as_ref().ok_or_else(|| RepositoryError::File {
            attempt: "write without a repository in",
            path: self.root.clone(),
            source: io::ErrorKind::NotFound.into(),
        })
    }

    /// The branch HEAD names, also before its first commit.
    fn branch(&self, git: &Git) -> Result<String> {
        let head = git.find_reference("HEAD").map_err(RepositoryError::git("read HEAD"))?;
        let branch = head.symbolic_target().ok().flatten().map(str::to_owned);
        branch.ok_or_else(|| RepositoryError::Detached { path: self.root.clone() })
    }

    fn head(&self) -> Result<Option<Commit<'_>>> {
        let Some(git) = &self.git else { return Ok(None) };
        let head = git.head().and_then(|head| head.peel_to_commit());
        match head {
            Ok(head) => Ok(Some(head)),
            Err(error) if error.code() == ErrorCode::UnbornBranch => Ok(None),
            Err(source) => Err(RepositoryError::Open { path: self.root.clone(), source }),
        }
    }
}

fn empty_tree(git: &Git) -> Result<Tree<'_>, git2::Error> {
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
