//! A folder of the newest commit, held in memory: it shares what does not change, and says which trees are new.

use std::{collections::BTreeMap, sync::Arc};

use git2::{ObjectType, Oid, Repository as Git};

use super::object::{Kind, Object};

/// The mode of a document.
const FILE: u32 = 0o100_644;
/// The mode of a folder.
const FOLDER: u32 = 0o40_000;

/// A folder and everything below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Folder {
    /// The name of its tree.
    pub(super) id: Oid,
    /// What is in it. A folder's key ends in `/`, which makes the order of the keys that of git. A key is shared by all
    /// the states of a folder, of which there is one a commit.
    nodes: BTreeMap<Arc<[u8]>, Node>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Node {
    File { mode: u32, id: Oid },
    Folder(Arc<Folder>),
}

/// What one file will be: a blob, or gone.
type Change<'a> = (&'a str, Option<Oid>);

impl Folder {
    /// The folder with nothing in it.
    pub(super) fn empty() -> Self {
        Self { id: Object::new(Kind::Tree, Vec::new()).id, nodes: BTreeMap::new() }
    }

    /// Reads a tree with all below it.
    pub(super) fn load(git: &Git, id: Oid) -> Result<Self, git2::Error> {
        let mut nodes = BTreeMap::new();
        for entry in &git.find_tree(id)? {
            let mut name = entry.name_bytes().to_vec();
            let node = if entry.kind() == Some(ObjectType::Tree) {
                name.push(b'/');
                Node::Folder(Arc::new(Self::load(git, entry.id())?))
            } else {
                Node::File { mode: entry.filemode_raw().cast_unsigned(), id: entry.id() }
            };
            nodes.insert(name.into(), node);
        }
        Ok(Self { id, nodes })
    }

    /// The blob at a path; nothing where there is none.
    pub(super) fn file(&self, path: &str) -> Option<Oid> {
        match path.split_once('/') {
            None => match self.nodes.get(path.as_bytes()) {
                Some(Node::File { id, .. }) => Some(*id),
                _ => None,
            },
            Some((folder, rest)) => self.folder(folder)?.file(rest),
        }
    }

    /// The object that an entry of this folder names, a file or a folder.
    pub(super) fn entry(&self, name: &str) -> Option<Oid> {
        match self.nodes.get(name.as_bytes()) {
            Some(Node::File { id, .. }) => Some(*id),
            _ => self.folder(name).map(|folder| folder.id),
        }
    }

    fn folder(&self, name: &str) -> Option<&Arc<Self>> {
        match self.nodes.get(format!("{name}/").as_bytes()) {
            Some(Node::Folder(folder)) => Some(folder),
            _ => None,
        }
    }

    /// This folder after changes; the trees that are new are added to `made`.
    pub(super) fn with(&self, changes: &[Change<'_>], made: &mut Vec<Object>) -> Self {
        let mut nodes = self.nodes.clone();
        let mut is_same = true;
        let mut below: BTreeMap<&str, Vec<Change<'_>>> = BTreeMap::new();
        for (path, blob) in changes {
            match (path.split_once('/'), blob) {
                (Some((folder, rest)), _) => below.entry(folder).or_default().push((rest, *blob)),
                (None, Some(id)) => {
                    let node = Node::File { mode: FILE, id: *id };
                    if nodes.get(path.as_bytes()) != Some(&node) {
                        is_same = false;
                        nodes.remove(format!("{path}/").as_bytes());
                        nodes.insert(path.as_bytes().into(), node);
                    }
                }
                (None, None) => is_same &= nodes.remove(path.as_bytes()).is_none(),
            }
        }
        for (name, changes) in below {
            let key = format!("{name}/");
            let old = self.folder(name).map_or_else(|| Arc::new(Self::empty()), Arc::clone);
            let new = old.with(&changes, made);
            if new.id == old.id {
                continue;
            }
            is_same = false;
            if new.nodes.is_empty() {
                nodes.remove(key.as_bytes());
            } else {
                nodes.remove(name.as_bytes());
                nodes.insert(key.as_bytes().into(), Node::Folder(Arc::new(new)));
            }
        }
        if is_same {
            return self.clone();
        }
        let tree = Object::new(Kind::Tree, bytes(&nodes));
        let id = tree.id;
        made.push(tree);
        Self { id, nodes }
    }
}

fn bytes(nodes: &BTreeMap<Arc<[u8]>, Node>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(nodes.len() * 48);
    for (key, node) in nodes {
        let (mode, name, id) = match node {
            Node::File { mode, id } => (*mode, &**key, *id),
            Node::Folder(folder) => (FOLDER, key.strip_suffix(b"/").unwrap_or(key), folder.id),
        };
        bytes.extend_from_slice(format!("{mode:o} ").as_bytes());
        bytes.extend_from_slice(name);
        bytes.push(0);
        bytes.extend_from_slice(id.as_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::path::Path;

    fn blob(git: &Git, text: &str) -> Oid {
        git.blob(text.as_bytes()).unwrap()
    }

    /// The tree that git's own library makes of the same steps.
    fn by_git(git: &Git, steps: &[(String, Option<String>)]) -> Oid {
        let mut index = git2::Index::new().unwrap();
        for (path, text) in steps {
            match text {
                Some(text) => {
                    let entry = git2::IndexEntry {
                        ctime: git2::IndexTime::new(0, 0),
                        mtime: git2::IndexTime::new(0, 0),
                        dev: 0,
                        ino: 0,
                        mode: FILE,
                        uid: 0,
                        gid: 0,
                        file_size: 0,
                        id: blob(git, text),
                        flags: 0,
                        flags_extended: 0,
                        path: path.as_bytes().to_vec(),
                    };
                    index.add(&entry).unwrap();
                }
                None => {
                    let _ = index.remove(Path::new(path), 0);
                }
            }
        }
        index.write_tree_to(git).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn whatever_changes_the_trees_are_those_of_git(
            steps in proptest::collection::vec(("(a|b|ab|a-b|a\\.b|é)(/(x|y|x\\.md))?", proptest::option::of("[a-c]{0,2}")), 1..20)
        ) {
            // one name is a file or a folder, never both in one history: the library leaves the other one standing
            let steps: Vec<_> = steps
                .into_iter()
                .map(|(path, text)| (if path.contains('/') { format!("f{path}") } else { path }, text))
                .collect();
            let root = tempfile::tempdir().unwrap();
            let git = Git::init_bare(root.path()).unwrap();
            let mut folder = Folder::empty();
            for (path, text) in &steps {
                let id = text.as_ref().map(|text| blob(&git, text));
                let mut made = Vec::new();
                let next = folder.with(&[(path, id)], &mut made);
                prop_assert_eq!(next == folder, made.is_empty());
                prop_assert_eq!(next.file(path), id);
                folder = next;
            }
            let expected = by_git(&git, &steps);
            prop_assert_eq!(folder.id, expected);
            prop_assert_eq!(Folder::load(&git, expected).unwrap(), folder);
        }
    }
}
