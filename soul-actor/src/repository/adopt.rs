//! Adoption: the files of a home that was never under git, as a tree, byte for byte.
//!
//! git's own way of adding files applies attributes, filters and line endings; here nothing comes between a file and
//! what is kept of it. Links and other things that are no files stay where they are and are not taken.

use std::{io, path::Path};

use git2::{FileMode, Oid, Repository as Git, build::TreeUpdateBuilder};

use super::{RepositoryError, Result, empty_tree, workfile::failed};

/// The tree of all files below `root` that `.gitignore` does not name.
pub(super) fn tree(git: &Git, root: &Path) -> Result<Oid> {
    let attempt = "take the home under git";
    let mut update = TreeUpdateBuilder::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        let place = root.join(&folder);
        let entries = std::fs::read_dir(&place).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        for entry in entries.map_err(failed("look into", &place))? {
            // a name that is no text is no name of ours
            let Ok(name) = entry.file_name().into_string() else { continue };
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            let kind = entry.file_type().map_err(failed("look at", &entry.path()))?;
            if name == ".git" || git.is_path_ignored(&path).map_err(RepositoryError::git(attempt))? {
                continue;
            }
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() {
                let bytes = std::fs::read(entry.path()).map_err(failed("read", &entry.path()))?;
                let blob = git.blob(&bytes).map_err(RepositoryError::git(attempt))?;
                update.upsert(path, blob, FileMode::Blob);
            }
        }
    }
    let base = empty_tree(git).map_err(RepositoryError::git(attempt))?;
    update.create_updated(git, &base).map_err(RepositoryError::git(attempt))
}
