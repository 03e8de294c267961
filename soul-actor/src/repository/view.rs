//! The folder as it will be: the disk, and over it what was accepted and is on its way there.

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap},
    ops::Deref,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{Change, RepositoryError, progress::Progress, workfile::Place};

/// What a file will hold; nothing where it will be gone.
type Bytes = Option<Arc<[u8]>>;

/// The folder of the self, for whoever plans a change.
///
/// As a [`Path`] it is the disk alone, which is right once everything that was accepted has been applied.
pub(crate) struct Root {
    path: PathBuf,
    progress: Arc<Progress>,
    coming: BTreeMap<String, (u64, Bytes)>,
    /// What was read of the disk in this batch. A change to a file is planned in several steps, and all of them see the
    /// same; what somebody writes there meanwhile is noticed by whoever brings the change there.
    read: RefCell<HashMap<String, Option<Vec<u8>>>>,
}

impl Root {
    pub(super) fn new(path: &Path, progress: Arc<Progress>) -> Self {
        Self { path: path.to_owned(), progress, coming: BTreeMap::new(), read: RefCell::default() }
    }

    /// Adds files that come with the record at `position`.
    pub(super) fn expect(&mut self, position: u64, files: &[Change]) {
        for file in files {
            self.read.get_mut().remove(&file.path);
            let bytes = file.bytes.as_deref().map(Arc::from);
            self.coming.insert(file.path.clone(), (position, bytes));
        }
    }

    /// Forgets what has arrived on the disk.
    pub(super) fn forget_applied(&mut self) {
        if !self.coming.is_empty() {
            let applied = self.progress.applied();
            self.coming.retain(|_, (position, _)| *position > applied);
        }
    }

    /// Forgets all that is coming.
    pub(super) fn forget(&mut self) {
        self.coming.clear();
        self.read_anew();
    }

    /// Reads every file again when it is next wanted.
    pub(crate) fn read_anew(&self) {
        self.read.borrow_mut().clear();
    }

    /// Whether a file is on its way to the disk.
    pub(super) fn is_coming(&self, path: &str) -> bool {
        self.coming(path).is_some()
    }

    fn coming(&self, path: &str) -> Option<&Bytes> {
        let (position, bytes) = self.coming.get(path)?;
        (*position > self.progress.applied()).then_some(bytes)
    }
}

impl Deref for Root {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}

impl Place for Root {
    fn bytes(&self, path: &str) -> Result<Option<Vec<u8>>, RepositoryError> {
        if let Some(bytes) = self.coming(path) {
            return Ok(bytes.as_ref().map(|bytes| bytes.to_vec()));
        }
        if let Some(bytes) = self.read.borrow().get(path) {
            return Ok(bytes.clone());
        }
        let bytes = self.path.bytes(path)?;
        self.read.borrow_mut().insert(path.to_owned(), bytes.clone());
        Ok(bytes)
    }

    fn names(&self, folder: &str) -> Vec<String> {
        let mut names = self.path.names(folder);
        let prefix = format!("{folder}/");
        for (path, _) in self.coming.range(prefix.clone()..).take_while(|(path, _)| path.starts_with(&prefix))
        {
            let (Some(name), Some(bytes)) = (path.strip_prefix(&prefix), self.coming(path)) else { continue };
            let known = names.iter().position(|known| known == name);
            match (known, bytes) {
                (None, Some(_)) if !name.contains('/') => names.push(name.to_owned()),
                (Some(at), None) => {
                    names.swap_remove(at);
                }
                _ => {}
            }
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_coming_is_seen_until_it_is_there() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("values")).unwrap();
        for name in ["old.md", "gone.md"] {
            std::fs::write(folder.path().join("values").join(name), "disk").unwrap();
        }
        let progress = Arc::new(Progress::default());
        let mut root = Root::new(folder.path(), progress.clone());
        let change = |path: &str, text: Option<&str>| Change {
            path: path.to_owned(),
            bytes: text.map(|text| text.as_bytes().to_vec()),
        };
        root.expect(1, &[change("values/new.md", Some("n")), change("values/gone.md", None)]);
        root.expect(2, &[change("values/old.md", Some("o"))]);
        let mut names = root.names("values");
        names.sort();
        assert_eq!(names, ["new.md", "old.md"]);
        assert_eq!(root.bytes("values/gone.md").unwrap(), None);
        assert_eq!(root.bytes("values/old.md").unwrap(), Some(b"o".to_vec()));
        progress.set_applied(1);
        assert_eq!(root.bytes("values/gone.md").unwrap(), Some(b"disk".to_vec()), "the disk says");
        std::fs::write(folder.path().join("values/gone.md"), "edited").unwrap();
        assert_eq!(root.bytes("values/gone.md").unwrap(), Some(b"disk".to_vec()), "one batch, one look");
        root.read_anew();
        assert_eq!(root.bytes("values/gone.md").unwrap(), Some(b"edited".to_vec()));
        root.forget_applied();
        assert!(root.is_coming("values/old.md") && !root.is_coming("values/new.md"));
    }
}
