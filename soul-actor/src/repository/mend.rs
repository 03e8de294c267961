//! What a dead writer left in the repository: unfinished files, and objects that a power cut has torn.
//!
//! What is torn here is nothing that is missed: the log had it, and the replay writes it again. But what exists is never
//! written again by git, so it has to go first.

use std::path::Path;

use tracing::warn;

use super::{pack, workfile};

/// Removes what was left unfinished, wherever we write.
pub(super) fn sweep(root: &Path) {
    workfile::sweep(root);
    workfile::sweep(&root.join(".git/lisa"));
    for folder in std::fs::read_dir(root).into_iter().flatten().flatten() {
        if folder.file_name() != ".git" && folder.file_type().is_ok_and(|kind| kind.is_dir()) {
            workfile::sweep(&folder.path());
        }
    }
}

/// Removes empty loose objects, and packs that do not end in their sum. It is done when the log has records, which is to
/// say after a kill or a power cut, and reads no object: what the log has is looked at by whoever writes it again, and
/// what it has not was flushed.
pub(super) fn remove_torn(git_dir: &Path) {
    let objects = git_dir.join("objects");
    let read = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten();
    for folder in read(&objects).filter(|folder| folder.file_name().len() == 2) {
        for file in read(&folder.path()) {
            if file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() == 0) {
                remove(&file.path());
            }
        }
    }
    for index in read(&objects.join("pack")).map(|file| file.path()) {
        let ending = index.extension().unwrap_or_default().to_string_lossy().into_owned();
        // a large pack was made in idle time and flushed before anything was removed for it
        let is_small =
            index.with_extension("pack").metadata().map_or(true, |pack| pack.len() <= CHECKED_BYTES_MAX);
        let is_torn = ending == "idx"
            && is_small
            && !(pack::is_whole(&index) && pack::is_whole(&index.with_extension("pack")));
        // a pack without its index is in nobody's way, but it is garbage of ours
        let is_half = ending == "pack" && !index.with_extension("idx").exists();
        if is_torn || is_half {
            remove(&index.with_extension("idx"));
            remove(&index.with_extension("pack"));
        }
    }
}

/// The largest pack that is read through at a start; the packs of batches are far smaller.
const CHECKED_BYTES_MAX: u64 = 8 * 1024 * 1024;

fn remove(place: &Path) {
    match std::fs::remove_file(place) {
        Ok(()) => warn!(place = %place.display(), "an object file that a power cut has torn was removed"),
        // it is then in the way of what replaces it, which says so
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            warn!(%error, place = %place.display(), "an object file that is torn could not be removed");
        }
        Err(_) => {}
    }
}
