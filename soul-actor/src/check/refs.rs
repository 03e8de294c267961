//! HEAD and the branch: what they point to, and where they should point when they are broken.

use git2::{BranchType, Commit, Oid, Repository as Git};
use ipc::contract::soul::Severity;

use super::{Checkup, found, mended, objects::is_whole};
use crate::repository::{short, workfile};

/// How many commits are tried before a branch is given up.
const CANDIDATES_MAX: usize = 200;

impl Checkup<'_> {
    /// HEAD itself: empty, torn or gone, it makes git see no repository at all.
    pub(super) fn head(&mut self) {
        let place = self.git_dir.join("HEAD");
        let said = std::fs::read_to_string(&place).unwrap_or_default();
        let said = said.trim();
        let names_branch =
            said.strip_prefix("ref: ").is_some_and(|name| name.starts_with("refs/heads/") && name.len() > 11);
        let names_commit = said.len() == 40 && said.bytes().all(|b| b.is_ascii_hexdigit());
        if names_branch || names_commit {
            return;
        }
        let branch = self.likely_branch();
        let what = "HEAD is empty, torn or gone, so git sees no repository here";
        let done = self.repair
            && self.keep_file(&place)
            && std::fs::write(&place, format!("ref: refs/heads/{branch}\n")).is_ok();
        let said = format!("HEAD names the branch `{branch}` again");
        self.say(
            Severity::Broken,
            ".git/HEAD",
            what,
            done,
            &said,
            "`lisa soul check --repair` sets it to her branch",
        );
    }

    fn likely_branch(&self) -> String {
        if let Some(anchor) = &self.anchor {
            return anchor.branch.clone();
        }
        let heads = std::fs::read_dir(self.git_dir.join("refs/heads")).into_iter().flatten().flatten();
        let mut names: Vec<_> = heads.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        match names.as_slice() {
            [one] => one.clone(),
            _ => "main".to_owned(),
        }
    }

    /// The branch that HEAD names: whether its commit is there, with all files of it.
    pub(super) fn branch(&mut self, git: &Git) {
        let Ok(head) = git.find_reference("HEAD") else { return };
        let Some(name) = head.symbolic_target().ok().flatten().map(str::to_owned) else { return };
        let tip = git.refname_to_id(&name);
        let loose = self.git_dir.join(&name);
        let what = match &tip {
            Ok(tip) => match is_whole(git, *tip) {
                Ok(()) => return,
                Err(why) => format!("its newest commit `{}` is not whole: {why}", short(&tip.to_string())),
            },
            // before the first commit there is no branch, and that is right
            Err(_)
                if loose.symlink_metadata().is_err()
                    && self.anchor.is_none()
                    && !self.git_dir.join("logs").join(&name).exists() =>
            {
                return;
            }
            Err(_) => "the branch is empty, torn or gone".to_owned(),
        };
        let Some(better) = self.last_whole(git, &name) else {
            let remedy = format!(
                "no whole commit is left; copy `.git/objects` from a backup over `{git}/objects`, or move `{git}` away: the documents stay, and the next change begins a new history",
                git = self.git_dir.display()
            );
            self.findings.push(found(Severity::Broken, &format!(".git/{name}"), &what, &remedy));
            return;
        };
        let short = short(&better.to_string()).to_owned();
        let mut done = self.repair && self.keep_file(&loose);
        if done {
            let _ = std::fs::remove_file(&loose);
            self.forget_in_logs(git, &["HEAD", &name]);
            done = git.reference(&name, better, true, "lisa: mended").is_ok();
            if let (true, Some(branch)) = (done, name.strip_prefix("refs/heads/")) {
                self.settle_on(branch, better);
            }
        }
        let said = format!(
            "it stands at `{short}`, the newest commit that is whole; what the files say beyond it is committed as an edit by hand"
        );
        let remedy =
            format!("`lisa soul check --repair` sets it to `{short}`, the newest commit that is whole");
        self.say(Severity::Broken, &format!(".git/{name}"), &what, done, &said, &remedy);
    }

    /// Takes out of the logs of references what is no longer there, because git calls that an error for ever.
    fn forget_in_logs(&self, git: &Git, names: &[&str]) {
        let there = |id: &str| Oid::from_str(id).is_ok_and(|id| id.is_zero() || git.find_commit(id).is_ok());
        for name in names {
            let log = self.git_dir.join("logs").join(name);
            let Ok(text) = std::fs::read(&log) else { continue };
            let text = String::from_utf8_lossy(&text);
            let kept: String =
                text.split_inclusive('\n').filter(|line| line.split(' ').take(2).all(there)).collect();
            if kept != text && self.keep_file(&log) {
                let _ = std::fs::write(&log, kept);
            }
        }
    }

    /// The newest commit that is whole: of those that were known, that the reflog names, or that nothing points to.
    fn last_whole(&self, git: &Git, name: &str) -> Option<Oid> {
        let mut tried: Vec<Oid> = Vec::new();
        if let Ok(log) = git.reflog(name) {
            tried.extend(log.iter().take(CANDIDATES_MAX).map(|entry| entry.id_new()));
        }
        tried.extend(self.anchor.as_ref().map(|anchor| anchor.head));
        let mut tips: Vec<Commit<'_>> = Vec::new();
        let mut parents = std::collections::HashSet::new();
        if let Ok(odb) = git.odb() {
            let _ = odb.foreach(|id| {
                if let Ok(commit) = git.find_commit(*id) {
                    parents.extend(commit.parent_ids());
                    tips.push(commit);
                }
                true
            });
        }
        tips.retain(|commit| !parents.contains(&commit.id()));
        tips.sort_by_key(|commit| std::cmp::Reverse(commit.time().seconds()));
        tried.extend(tips.iter().map(Commit::id));
        // of those that are there, the one that has most behind it: a reflog may end before the newest
        let there = tried.into_iter().take(CANDIDATES_MAX).filter_map(|id| git.find_commit(id).ok());
        let mut there: Vec<_> = there.collect();
        there.sort_by_key(|commit| std::cmp::Reverse(commit.time().seconds()));
        there.into_iter().find_map(|commit| {
            let mut next = Some(commit);
            for _ in 0..CANDIDATES_MAX {
                let commit = next?;
                if is_whole(git, commit.id()).is_ok() {
                    return Some(commit.id());
                }
                next = commit.parents().next();
            }
            None
        })
    }

    /// A HEAD that names a commit and no branch: what was committed there is kept, and the branch is taken up again.
    pub(super) fn detached(&mut self, git: &Git) {
        if !git.head_detached().unwrap_or(false) {
            return;
        }
        let Ok(here) = git.head().and_then(|head| head.peel_to_commit()) else { return };
        let branch = self.likely_branch();
        let what = "the repository is on no branch, so nothing is written";
        let remedy =
            format!("`git -C {} switch {branch}`, or `lisa soul check --repair`", self.root.display());
        let Ok(tip) =
            git.find_branch(&branch, BranchType::Local).and_then(|branch| branch.get().peel_to_commit())
        else {
            self.findings.push(found(Severity::Broken, ".git/HEAD", what, &remedy));
            return;
        };
        if !self.repair {
            self.findings.push(found(Severity::Broken, ".git/HEAD", what, &remedy));
            return;
        }
        let ahead = git.graph_descendant_of(here.id(), tip.id()).unwrap_or(false);
        let behind = here.id() == tip.id() || git.graph_descendant_of(tip.id(), here.id()).unwrap_or(false);
        let kept = behind || self.keep_commit(git, here.id());
        let full = format!("refs/heads/{branch}");
        let to = if ahead { here.id() } else { tip.id() };
        let done = kept
            && (!ahead || git.reference(&full, here.id(), true, "lisa: taken up").is_ok())
            && git.set_head(&full).is_ok()
            && self.bring_files(git, &here, to);
        let said = match (ahead, behind) {
            (true, _) => format!("`{branch}` goes on with what was committed there"),
            (_, true) => format!("it is on `{branch}` again"),
            _ => format!(
                "it is on `{branch}` again; what was committed beside it is kept: `git merge refs/lisa/rescue/{}` brings it in",
                self.stamp
            ),
        };
        self.findings.push(if done {
            mended(Severity::Broken, ".git/HEAD", what, &said)
        } else {
            found(Severity::Broken, ".git/HEAD", what, &remedy)
        });
    }

    /// Brings the files that are still as the commit `here` has them to what `to` says: a checkout of something old is no
    /// edit of hers. Files that differ from both are somebody's, and stay.
    fn bring_files(&self, git: &Git, here: &Commit<'_>, to: Oid) -> bool {
        let bring = || -> Result<(), git2::Error> {
            let (old, new) = (here.tree()?, git.find_commit(to)?.tree()?);
            let diff = git.diff_tree_to_tree(Some(&old), Some(&new), None)?;
            for delta in diff.deltas() {
                let path =
                    delta.new_file().path_bytes().or(delta.old_file().path_bytes()).unwrap_or_default();
                let Ok(path) = std::str::from_utf8(path) else { continue };
                let bytes = |id: Oid| git.find_blob(id).ok().map(|blob| blob.content().to_vec());
                let then = if delta.old_file().exists() { bytes(delta.old_file().id()) } else { None };
                if workfile::look(self.root, path).is_ok_and(|now| now == then) {
                    let now = if delta.new_file().exists() { bytes(delta.new_file().id()) } else { None };
                    let put = match now {
                        Some(bytes) => workfile::restore(self.root, path, &bytes),
                        None => workfile::remove(self.root, path),
                    };
                    put.map_err(|error| git2::Error::from_str(&error.to_string()))?;
                }
            }
            Ok(())
        };
        bring().is_ok()
    }
}
