//! What a project says to whoever works on it: the `AGENTS.md` of the work folder and of those above it, outermost first.
//!
//! One goes up as far as the repository (the folder with `.git`), else as far as the person's own folder, and never into a
//! folder that belongs to somebody else than the work folder does. No link is followed that leads out of the outermost one.

use std::{
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use cap_std::{ambient_authority, fs::Dir};
use ipc::text::{chars, is_blank, prefix};
use jiff::Timestamp;

use super::file::{Files, Links};

/// The names such a file can have; the first that is there counts.
const NAMES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];
/// How far one goes up.
const FOLDERS_MAX: usize = 32;
/// How many files of a chain are taken, the nearest.
const FILES_MAX: usize = 8;
/// How many characters of a chain are shown, the nearest first: a few pages, so that she stays the larger part.
const CHARS_MAX: usize = 20_000;
/// The largest file that is read.
const BYTES_MAX: u64 = 256 * 1024;

/// One file of the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Instruction {
    /// Where it lies.
    pub(crate) path: PathBuf,
    /// What it says, as far as it is shown.
    pub(crate) text: String,
    /// Whether it goes on.
    pub(crate) is_cut: bool,
    /// Of all its bytes.
    pub(super) digest: String,
}

/// The folder a session works in, and how far up its project reaches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tree {
    pub(super) root: PathBuf,
    pub(super) folder: PathBuf,
}

impl Tree {
    /// The tree of a work folder. Names in it are the real ones, without links.
    pub(super) fn of(folder: &Path, person_home: Option<&Path>) -> io::Result<Self> {
        let folder = folder.canonicalize()?;
        let owner = std::fs::metadata(&folder)?.uid();
        let person_home = person_home.and_then(|home| home.canonicalize().ok());
        let mut root = folder.clone();
        for above in folder.ancestors().take(FOLDERS_MAX) {
            if !std::fs::metadata(above).is_ok_and(|metadata| metadata.uid() == owner) {
                break;
            }
            let is_home = person_home.as_deref() == Some(above);
            if is_home || std::fs::symlink_metadata(above.join(".git")).is_ok() {
                above.clone_into(&mut root);
                break;
            }
        }
        Ok(Self { root, folder })
    }

    /// Its folders, outermost first, each as a path below the root.
    fn folders(&self) -> Vec<PathBuf> {
        let below = self.folder.strip_prefix(&self.root).unwrap_or(Path::new(""));
        let mut folders: Vec<_> = below.ancestors().map(Path::to_owned).collect();
        folders.reverse();
        folders
    }
}

/// The chain of a tree, and in one sentence each what is there and cannot be used.
pub(super) fn chain(files: &mut Files, tree: &Tree, now: Timestamp) -> (Vec<Instruction>, Vec<String>) {
    let (mut chain, mut notices) = (Vec::new(), Vec::new());
    let Ok(root) = Dir::open_ambient_dir(&tree.root, ambient_authority()) else {
        return (chain, notices);
    };
    let mut chars_left = CHARS_MAX;
    for folder in tree.folders().into_iter().rev() {
        for name in NAMES {
            let path = folder.join(name);
            let read = files.read((&root, &tree.root), &path, Links::Inside, BYTES_MAX, now);
            match read {
                None => continue,
                Some(Err(why)) => notices.push(format!("`{}`: {why}", tree.root.join(&path).display())),
                Some(Ok(text)) if is_blank(&text.text) => {}
                Some(Ok(_)) if chain.len() >= FILES_MAX || chars_left == 0 => {
                    let path = tree.root.join(&path);
                    notices.push(format!("`{}`: the nearer ones leave no room for it", path.display()));
                }
                Some(Ok(text)) => {
                    let whole = text.text.trim_end();
                    let shown = prefix(whole, chars_left);
                    chars_left -= chars(shown);
                    chain.push(Instruction {
                        path: tree.root.join(&path),
                        text: shown.to_owned(),
                        is_cut: shown.len() < whole.len(),
                        digest: text.digest.clone(),
                    });
                }
            }
            break;
        }
    }
    chain.reverse();
    notices.reverse();
    (chain, notices)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    struct Project(tempfile::TempDir);

    impl Project {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            std::fs::create_dir_all(folder.path().join("home/work/repo/src/deep")).unwrap();
            Self(folder)
        }

        fn at(&self, path: &str) -> PathBuf {
            self.0.path().canonicalize().unwrap().join("home").join(path)
        }

        fn write(&self, path: &str, text: &str) {
            std::fs::write(self.at(path), text).unwrap();
        }

        fn chain(&self, folder: &str) -> (Vec<String>, Vec<String>) {
            let tree = Tree::of(&self.at(folder), Some(&self.at(""))).unwrap();
            let (chain, notices) = chain(&mut Files::default(), &tree, Timestamp::MAX);
            (chain.into_iter().map(|one| one.text).collect(), notices)
        }
    }

    #[test]
    fn the_chain_ends_at_the_repository_else_at_the_persons_own_folder() {
        let project = Project::new();
        let write = |path: &str| project.write(path, &format!("of {path}\n"));
        let files = ["AGENTS.md", "work/AGENTS.md", "work/repo/CLAUDE.md", "work/repo/src/AGENTS.md"];
        files.into_iter().for_each(write);
        std::fs::write(project.at("../AGENTS.md"), "not hers").unwrap();
        let all =
            ["of AGENTS.md", "of work/AGENTS.md", "of work/repo/CLAUDE.md", "of work/repo/src/AGENTS.md"];
        assert_eq!(project.chain("work/repo/src/deep"), (all.map(str::to_owned).into(), vec![]));
        std::fs::create_dir(project.at("work/repo/.git")).unwrap();
        assert_eq!(project.chain("work/repo/src/deep").0, all[2..]);
        assert_eq!(project.chain("work").0, all[..2]);
        // one that is there stands before its stand-in
        project.write("work/repo/AGENTS.md", "灯塔");
        assert_eq!(project.chain("work/repo").0, ["灯塔"]);
        // outside of the person's folder there is the work folder alone
        let tree = Tree::of(&project.at("work"), Some(&project.at("work/repo"))).unwrap();
        assert_eq!(tree.root, tree.folder);
    }

    #[test]
    fn nothing_outside_of_the_tree_is_read_and_what_is_not_is_named() {
        let project = Project::new();
        std::fs::create_dir(project.at("work/repo/.git")).unwrap();
        project.write("work/secret", "geheim");
        project.write("work/repo/src/CLAUDE.md", "inside");
        symlink("../secret", project.at("work/repo/AGENTS.md")).unwrap();
        symlink("CLAUDE.md", project.at("work/repo/src/AGENTS.md")).unwrap();
        std::fs::write(project.at("work/repo/src/deep/AGENTS.md"), [0xff]).unwrap();
        let (chain, notices) = project.chain("work/repo/src/deep");
        assert_eq!(chain, ["inside"]);
        assert!(notices[0].contains("leads out") && notices[1].contains("UTF-8"), "{notices:?}");
        assert_eq!(notices.len(), 2);
    }

    #[test]
    fn the_nearest_has_room_first_and_the_rest_is_cut_between_characters() {
        let project = Project::new();
        project.write("AGENTS.md", "far");
        project.write("work/AGENTS.md", &"字".repeat(CHARS_MAX));
        project.write("work/repo/AGENTS.md", "近");
        let (chain, notices) = project.chain("work/repo");
        assert_eq!(chain.iter().map(|text| chars(text)).collect::<Vec<_>>(), [CHARS_MAX - 1, 1]);
        assert!(notices[0].contains("no room"), "{notices:?}");
        let tree = Tree::of(&project.at("work"), Some(&project.at(""))).unwrap();
        let shown = super::chain(&mut Files::default(), &tree, Timestamp::MAX).0;
        assert!(!shown[0].is_cut && shown.len() == 1);
        project.write("work/AGENTS.md", &"x".repeat(300 * 1024));
        assert!(project.chain("work").1[0].contains("256 KiB"));
    }
}
