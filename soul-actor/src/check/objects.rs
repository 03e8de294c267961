//! Objects: those that are empty or torn, and those that are missing.

use std::path::PathBuf;

use git2::{ObjectType, Odb, Oid, Repository as Git, TreeWalkMode, TreeWalkResult};
use ipc::contract::soul::Severity;

use super::{Checkup, found};
use crate::repository::{short, workfile::look};

/// How many loose objects are read; idle-time packing keeps them far below.
const LOOSE_MAX: usize = 50_000;
/// How many commits are looked at behind the newest.
const HISTORY_MAX: usize = 20_000;

/// Whether a commit is there with every file of its tree; what is missing otherwise.
pub(super) fn is_whole(git: &Git, commit: Oid) -> Result<(), String> {
    let tree = git.find_commit(commit).and_then(|commit| commit.tree());
    let tree = tree.map_err(|_| "the commit or its tree is missing".to_owned())?;
    let odb = git.odb().map_err(|error| error.to_string())?;
    let mut missing = None;
    let walked = tree.walk(TreeWalkMode::PreOrder, |folder, entry| {
        if entry.kind() == Some(ObjectType::Blob) && odb.read(entry.id()).is_err() {
            missing = Some(format!("{folder}{}", String::from_utf8_lossy(entry.name_bytes())));
            return TreeWalkResult::Abort;
        }
        TreeWalkResult::Ok
    });
    match (missing, walked) {
        (Some(path), _) => Err(format!("the content of `{path}` is missing")),
        (None, Err(_)) => Err("a folder of it is missing".to_owned()),
        (None, Ok(())) => Ok(()),
    }
}

impl Checkup<'_> {
    /// Loose objects that cannot be read. They are moved away, because git takes a file that is there for an object that
    /// is; what a work file still holds is written anew.
    pub(super) fn objects(&mut self, git: &Git) {
        let Ok(odb) = git.odb() else { return };
        let broken = self.broken_objects(&odb);
        if broken.is_empty() {
            return;
        }
        let what = format!("{} of git's objects are empty or torn", broken.len());
        let (mut moved, mut written) = (0, 0);
        if self.repair {
            for (_, place) in &broken {
                moved += usize::from(self.keep_file(place) && std::fs::remove_file(place).is_ok());
            }
            written = self.write_again(&broken);
        }
        let said = format!(
            "moved to `.git/lisa/rescue/{}`; {written} of them were made anew from the documents",
            self.stamp
        );
        let remedy =
            "`lisa soul check --repair` moves them away and makes anew what the documents still hold";
        self.say(
            Severity::Broken,
            ".git/objects",
            &what,
            moved == broken.len() && self.repair,
            &said,
            remedy,
        );
    }

    fn broken_objects(&self, odb: &Odb<'_>) -> Vec<(Oid, PathBuf)> {
        let mut broken = Vec::new();
        let mut seen = 0;
        for folder in std::fs::read_dir(self.git_dir.join("objects")).into_iter().flatten().flatten() {
            let Some(prefix) = folder.file_name().to_str().filter(|name| name.len() == 2).map(str::to_owned)
            else {
                continue;
            };
            for file in std::fs::read_dir(folder.path()).into_iter().flatten().flatten() {
                let name = file.file_name();
                let id = name.to_str().and_then(|name| Oid::from_str(&format!("{prefix}{name}")).ok());
                let Some(id) = id.filter(|_| name.len() == 38) else { continue };
                seen += 1;
                let empty = file.metadata().is_ok_and(|metadata| metadata.len() == 0);
                if seen <= LOOSE_MAX && (empty || odb.read(id).is_err()) {
                    broken.push((id, file.path()));
                }
            }
        }
        broken
    }

    /// Writes the objects anew whose content is still in a document.
    fn write_again(&self, broken: &[(Oid, PathBuf)]) -> usize {
        let Ok(git) = Git::open(self.root) else { return 0 };
        let mut written = 0;
        let mut folders = vec![self.root.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = self.place(&entry.path());
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    if path != ".git" {
                        folders.push(entry.path());
                    }
                    continue;
                }
                let Ok(Some(bytes)) = look(self.root, &path) else { continue };
                let id = Oid::hash_object(ObjectType::Blob, &bytes).ok();
                if broken.iter().any(|(broken, _)| Some(*broken) == id) && git.blob(&bytes).ok() == id {
                    written += 1;
                }
            }
        }
        written
    }

    /// The commits behind the newest, and their trees.
    pub(super) fn history(&mut self, git: &Git) {
        let Ok(head) = git.head().and_then(|head| head.peel_to_commit()) else { return };
        let mut here = head;
        for _ in 0..HISTORY_MAX {
            let Ok(id) = here.parent_id(0) else { return };
            if let Ok(parent) = git.find_commit(id).and_then(|parent| parent.tree().map(|_| parent)) {
                here = parent;
                continue;
            }
            let (last, missing) = (here.id().to_string(), id.to_string());
            let what =
                format!("the history ends behind `{}`: `{}` is missing", short(&last), short(&missing));
            let remedy = format!(
                "she goes on from there; if you have a backup, copy its `.git/objects` over `{}/objects`",
                self.git_dir.display()
            );
            self.findings.push(found(Severity::Wrong, ".git/objects", &what, &remedy));
            return;
        }
    }
}
