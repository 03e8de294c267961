//! Check: what is wrong with the repository of the self, and mending it where that is safe.
//!
//! It reads the folder with eyes of its own, so it also works where the repository cannot be opened. Nothing is thrown
//! away: what is mended is kept first, files under `.git/lisa/rescue/<time>/`, commits under `refs/lisa/rescue/<time>`.
//! What cannot be mended is said with what to do, and reading still works.

mod objects;
mod refs;

use std::path::{Path, PathBuf};

use git2::{Repository as Git, RepositoryState};
pub(crate) use ipc::contract::soul::Finding as Found;
use ipc::{contract::soul::Severity, digest::sha256_hex};
use jiff::Timestamp;

use crate::{
    repository::{Anchor, short, workfile::look},
    rollback, seal,
};

/// A finding that stays as it is.
pub(crate) fn found(severity: Severity, place: &str, what: &str, remedy: &str) -> Found {
    let (place, what, remedy) = (place.to_owned(), what.to_owned(), remedy.to_owned());
    Found { severity, place, what, mended: false, remedy }
}

/// A finding that was mended.
pub(crate) fn mended(severity: Severity, place: &str, what: &str, done: &str) -> Found {
    Found { mended: true, ..found(severity, place, what, done) }
}

/// The texts that do not fit their seal.
pub(crate) fn unsealed(root: &Path) -> Vec<String> {
    let seal = look(root, seal::PATH).ok().flatten().unwrap_or_default();
    let differs = |(path, hash): (String, String)| {
        let bytes = look(root, &path).ok().flatten()?;
        (sha256_hex(&bytes) != hash).then_some(path)
    };
    seal::sealed(&seal).into_iter().filter(|(path, _)| seal::is_sealed(path)).filter_map(differs).collect()
}

/// What is said of a document that does not fit its seal.
pub(crate) fn unsealed_sentence(path: &str) -> String {
    format!(
        "`{path}` does not fit its seal: it was changed by something else than Lisa; `lisa soul diff {path}` shows how, `lisa soul check --repair` accepts it"
    )
}

/// What is said of a document that somebody else changed by a commit.
pub(crate) fn stranger_sentence(path: &str, commit: &str) -> String {
    format!(
        "`{path}` was changed by a commit that Lisa did not make (`{}`); `lisa soul diff {path}` shows how, `lisa soul check --repair` accepts it",
        short(commit)
    )
}

/// What is said of a history that does not go on from ours.
pub(crate) fn foreign(root: &Path, known: &str) -> String {
    let (root, short) = (root.display(), short(known));
    format!(
        "the history is another one: `{short}`, the newest commit known to be hers, is not part of it; to go back to hers: `git -C {root} reset --hard {short}`; to go on from what is there: `lisa soul check --repair`, which keeps hers under `refs/lisa/rescue/`"
    )
}

/// One look at a repository.
struct Checkup<'a> {
    root: &'a Path,
    git_dir: PathBuf,
    /// Where her history is known to be.
    anchor: Option<Anchor>,
    /// That was changed.
    is_moved: bool,
    repair: bool,
    stamp: String,
    findings: Vec<Found>,
}

/// Looks at the repository in `root`, whose history was last seen at `anchor`; mends with `repair`. Gives what was found,
/// and where her history is from now on if that was mended.
pub(crate) fn repository(
    root: &Path,
    anchor: Option<Anchor>,
    repair: bool,
    now: Timestamp,
) -> (Vec<Found>, Option<Anchor>) {
    let git_dir = root.join(".git");
    let stamp = now.strftime("%Y%m%dT%H%M%SZ").to_string();
    let mut checkup = Checkup { root, git_dir, anchor, is_moved: false, repair, stamp, findings: Vec::new() };
    checkup.run();
    (checkup.findings, checkup.anchor.filter(|_| checkup.is_moved))
}

impl Checkup<'_> {
    fn run(&mut self) {
        match self.git_dir.symlink_metadata() {
            Err(_) => {
                if rollback::has_seed(self.root) {
                    let what = "she is not under git yet, so she has no history";
                    self.findings.push(found(
                        Severity::Note,
                        ".git",
                        what,
                        "the first change of her begins one",
                    ));
                }
                return;
            }
            Ok(metadata) if !metadata.is_dir() => {
                let what = "it is no folder, so this is no repository of ours";
                self.findings.push(found(
                    Severity::Broken,
                    ".git",
                    what,
                    "move it away; the documents stay, and the next change begins a history",
                ));
                return;
            }
            Ok(_) => {}
        }
        self.locks();
        self.config();
        self.head();
        let Ok(git) = Git::open(self.root) else {
            let remedy = format!(
                "see what `git -C {root} fsck` says; if it cannot be mended, move `{root}/.git` away (keep it): the documents stay, and the next change begins a new history",
                root = self.root.display()
            );
            self.findings.push(found(Severity::Broken, ".git", "the repository cannot be opened", &remedy));
            return;
        };
        self.objects(&git);
        self.branch(&git);
        // a handle that has seen the mended state from its beginning
        let Ok(git) = Git::open(self.root) else { return };
        self.detached(&git);
        self.under_way(&git);
        self.history(&git);
        self.foreign(&git);
        self.index(&git);
        self.kept(&git);
    }

    /// What was kept before the files were brought to another form.
    fn kept(&mut self, git: &Git) {
        let Ok(kept) = git.references_glob("refs/lisa/before-schema-*") else { return };
        for reference in kept.flatten() {
            let (Ok(name), Some(commit)) = (reference.name(), reference.target()) else { continue };
            let what = format!(
                "her files were brought to another form; as they were before, `{name}` keeps them (`{}`)",
                short(&commit.to_string())
            );
            let remedy = "nothing is to be done; `lisa soul rollback --commit` with the commit that `lisa soul history` calls `migrate` goes back";
            self.findings.push(found(Severity::Note, ".git", &what, remedy));
        }
    }

    /// Locks of git that nobody holds: we have the kernel's lock, and a git command takes a moment.
    fn locks(&mut self) {
        let mut folders = vec![self.git_dir.clone()];
        let mut locks = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                let path = entry.path();
                let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
                let below = path.strip_prefix(&self.git_dir).is_ok_and(|path| path.starts_with("refs"));
                if is_dir && (below || folder == self.git_dir && path.ends_with("refs")) {
                    folders.push(path);
                } else if !is_dir && path.extension().is_some_and(|extension| extension == "lock") {
                    locks.push(path);
                }
            }
        }
        for lock in locks {
            let what =
                "a lock is there that stops every git command, and whoever made it is most likely dead";
            let removed = self.repair && self.keep_file(&lock) && std::fs::remove_file(&lock).is_ok();
            let place = self.place(&lock);
            self.findings.push(if removed {
                mended(Severity::Wrong, &place, what, "removed")
            } else {
                found(
                    Severity::Wrong,
                    &place,
                    what,
                    "if no git command is running here, `lisa soul check --repair` removes it",
                )
            });
        }
    }

    fn config(&mut self) {
        let place = self.git_dir.join("config");
        let reads = git2::Config::open(&place)
            .and_then(|mut config| config.snapshot())
            .is_ok_and(|config| config.get_i32("core.repositoryformatversion").is_ok());
        if reads {
            return;
        }
        let what = "the repository's configuration is gone or cannot be read";
        let plain = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n";
        let done = self.repair && self.keep_file(&place) && std::fs::write(&place, plain).is_ok();
        self.say(
            Severity::Broken,
            ".git/config",
            what,
            done,
            "a plain one was written",
            "`lisa soul check --repair` writes a plain one",
        );
    }

    fn index(&mut self, git: &Git) {
        let place = self.git_dir.join("index");
        let rebuild = || -> Result<(), git2::Error> {
            let git = Git::open(self.root)?;
            let tree = git.head()?.peel_to_tree()?;
            let mut index = git.index()?;
            index.read_tree(&tree)?;
            index.write()
        };
        if git.index().and_then(|mut index| index.read(true)).is_ok() {
            if self.findings.iter().any(|finding| finding.mended) {
                // what HEAD is now is what `git status` should compare with; no document depends on it
                let _ = rebuild();
            }
            return;
        }
        let what = "git's index cannot be read; no document depends on it";
        let done = self.repair
            && self.keep_file(&place)
            && std::fs::remove_file(&place).is_ok()
            && rebuild().is_ok();
        self.say(
            Severity::Wrong,
            ".git/index",
            what,
            done,
            "made anew",
            "`lisa soul check --repair` makes it anew",
        );
    }

    fn under_way(&mut self, git: &Git) {
        if let Some(what) = under_way(git, self.root) {
            self.findings.push(found(Severity::Broken, ".git", &what, "nothing is written until then"));
        }
    }

    fn foreign(&mut self, git: &Git) {
        let Some(anchor) = self.anchor.clone() else { return };
        let Ok(head) = git.head().and_then(|head| head.peel_to_commit()) else { return };
        let known = anchor.head;
        let goes_on = known == head.id() || git.graph_descendant_of(head.id(), known).unwrap_or(false);
        let branch = git.head().ok().and_then(|head| head.shorthand().ok().map(str::to_owned));
        if goes_on {
            if let Some(branch) = branch.filter(|branch| *branch != anchor.branch) {
                let what = format!(
                    "the repository is on the branch `{branch}`, and her history was on `{}`",
                    anchor.branch
                );
                let remedy = format!(
                    "`git -C {} switch {}` goes back; `lisa soul check --repair` stays here",
                    self.root.display(),
                    anchor.branch
                );
                let done = self.repair;
                if done {
                    self.settle_on(&branch, head.id());
                }
                self.say(
                    Severity::Wrong,
                    ".git/HEAD",
                    &what,
                    done,
                    "this branch is hers from now on",
                    &remedy,
                );
            }
            return;
        }
        let what = foreign(self.root, &known.to_string());
        let kept = git.find_commit(known).is_ok() && self.repair && self.keep_commit(git, known);
        let done = self.repair && (kept || git.find_commit(known).is_err());
        if let (true, Some(branch)) = (done, branch) {
            self.settle_on(&branch, head.id());
        }
        let said = if kept {
            format!(
                "what is there is hers from now on; the earlier history is kept under `refs/lisa/rescue/{}`",
                self.stamp
            )
        } else {
            "what is there is hers from now on; of the earlier history git has nothing left to keep"
                .to_owned()
        };
        self.say(
            Severity::Broken,
            ".git",
            &what,
            done,
            &said,
            "one of the two, by hand: nothing of either is thrown away",
        );
    }

    /// Her history is there from now on.
    fn settle_on(&mut self, branch: &str, head: git2::Oid) {
        (self.anchor, self.is_moved) = (Some(Anchor::at(branch, head)), true);
    }

    fn say(&mut self, severity: Severity, place: &str, what: &str, done: bool, said: &str, remedy: &str) {
        self.findings.push(if done {
            mended(severity, place, what, said)
        } else {
            found(severity, place, what, remedy)
        });
    }

    /// Keeps a copy of a file that is about to be mended; what is not there needs none.
    fn keep_file(&self, path: &Path) -> bool {
        let folder = self.git_dir.join("lisa/rescue").join(&self.stamp);
        let Ok(below) = path.strip_prefix(&self.git_dir) else { return false };
        if path.symlink_metadata().is_err() {
            return true;
        }
        let to = folder.join(below);
        to.parent().is_some_and(|parent| std::fs::create_dir_all(parent).is_ok())
            && std::fs::copy(path, to).is_ok()
    }

    /// Keeps a commit from being forgotten.
    fn keep_commit(&self, git: &Git, commit: git2::Oid) -> bool {
        let name = format!("refs/lisa/rescue/{}", self.stamp);
        git.reference(&name, commit, true, "lisa: kept before mending").is_ok()
    }

    fn place(&self, path: &Path) -> String {
        path.strip_prefix(self.root).unwrap_or(path).display().to_string()
    }
}

/// What git itself is in the middle of, as a sentence with what to do.
pub(crate) fn under_way(git: &Git, root: &Path) -> Option<String> {
    let (what, end) = match git.state() {
        RepositoryState::Clean => return None,
        RepositoryState::Merge => ("merge", "merge --abort"),
        RepositoryState::Revert | RepositoryState::RevertSequence => ("revert", "revert --abort"),
        RepositoryState::CherryPick | RepositoryState::CherryPickSequence => {
            ("cherry-pick", "cherry-pick --abort")
        }
        RepositoryState::Bisect => ("bisect", "bisect reset"),
        RepositoryState::Rebase | RepositoryState::RebaseInteractive | RepositoryState::RebaseMerge => {
            ("rebase", "rebase --abort")
        }
        RepositoryState::ApplyMailbox | RepositoryState::ApplyMailboxOrRebase => ("am", "am --abort"),
    };
    let root = root.display();
    Some(format!(
        "a `git {what}` is under way in her repository, so nothing is written; finish it, or end it: `git -C {root} {end}`"
    ))
}

#[cfg(test)]
mod tests;
