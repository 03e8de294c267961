//! Work files: the documents as they lie in the folder, read without following anything, written whole or not at all.

use std::{
    fs::{DirBuilder, File},
    io::{self, Read as _, Write as _},
    os::unix::fs::DirBuilderExt as _,
    path::Path,
};

use super::RepositoryError;

/// The largest file that is read; a document beyond it was not written by us, and a prompt could not hold it.
pub(crate) const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// How the names of files begin and end that are not yet what they will be. `.gitignore` keeps them out of the history.
const UNFINISHED: (&str, &str) = (".lisa-", ".tmp");

/// Where documents are read: a folder of the disk, or one seen as it will be once all that was accepted is in it.
pub(crate) trait Place {
    /// The bytes of the file at `path`; nothing where there is none.
    fn bytes(&self, path: &str) -> Result<Option<Vec<u8>>, RepositoryError>;
    /// The names of the regular files in a folder, in no order.
    fn names(&self, folder: &str) -> Vec<String>;
}

impl Place for Path {
    fn bytes(&self, path: &str) -> Result<Option<Vec<u8>>, RepositoryError> {
        read(self, path)
    }

    fn names(&self, folder: &str) -> Vec<String> {
        let files = std::fs::read_dir(self.join(folder)).into_iter().flatten().flatten();
        let files = files.filter(|file| file.file_type().is_ok_and(|kind| kind.is_file()));
        files.filter_map(|file| file.file_name().into_string().ok()).collect()
    }
}

impl Place for std::path::PathBuf {
    fn bytes(&self, path: &str) -> Result<Option<Vec<u8>>, RepositoryError> {
        self.as_path().bytes(path)
    }

    fn names(&self, folder: &str) -> Vec<String> {
        self.as_path().names(folder)
    }
}

/// The bytes of the file at `path` below `root`; nothing where there is none. Anything else than a regular file in
/// regular folders is refused: a link could lead out of the soul, into it, or anywhere between two looks.
pub(crate) fn look<P: Place + ?Sized>(root: &P, path: &str) -> Result<Option<Vec<u8>>, RepositoryError> {
    root.bytes(path)
}

fn read(root: &Path, path: &str) -> Result<Option<Vec<u8>>, RepositoryError> {
    let mut place = root.to_owned();
    let mut parts = path.split('/').peekable();
    let mut length = 0;
    while let Some(part) = parts.next() {
        place.push(part);
        let is_last = parts.peek().is_none();
        let kind = match place.symlink_metadata() {
            Ok(metadata) => {
                length = metadata.len();
                metadata.file_type()
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed("look at", &place)(error)),
        };
        let what = match (is_last, kind.is_dir(), kind.is_file()) {
            (true, _, true) | (false, true, _) => continue,
            (true, true, _) => "a folder",
            _ if kind.is_symlink() => "a symbolic link",
            (true, ..) => "no regular file",
            (false, ..) => "no folder",
        };
        return Err(RepositoryError::InTheWay { path: place, what });
    }
    // room for the end of the file too, which is otherwise felt for in small steps
    let length = usize::try_from(length.min(FILE_BYTES_MAX)).unwrap_or_default();
    let mut bytes = Vec::with_capacity(length + 1);
    let file = File::open(&place).map_err(failed("open", &place))?;
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed("read", &place))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(RepositoryError::TooLarge { path: place });
    }
    Ok(Some(bytes))
}

/// Brings back what the history says of a file, for a check that mends.
pub(crate) fn restore(root: &Path, path: &str, bytes: &[u8]) -> Result<(), RepositoryError> {
    put(root, path, Some(bytes))
}

/// Removes a file that the history says is not there, for a check that mends.
pub(crate) fn remove(root: &Path, path: &str) -> Result<(), RepositoryError> {
    put(root, path, None)
}

/// Makes the file at `path` below `root` hold `bytes`, or be gone. A reader sees the old bytes or the new ones. Nothing
/// is flushed: the log holds what is in no file for certain.
pub(super) fn put(root: &Path, path: &str, bytes: Option<&[u8]>) -> Result<(), RepositoryError> {
    let place = root.join(path);
    let folder = place.parent().unwrap_or(root);
    match bytes {
        Some(bytes) => {
            make_folder(folder)?;
            let write = || -> io::Result<()> {
                let mut file = unfinished(folder)?;
                file.as_file_mut().write_all(bytes)?;
                file.persist(&place).map_err(|error| error.error)?;
                Ok(())
            };
            write().map_err(failed("write", &place))
        }
        None => match std::fs::remove_file(&place) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(failed("remove", &place)(error)),
        },
    }
}

/// A fresh unfinished file in `folder`, removed unless it is put in its place.
pub(super) fn unfinished(folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    let (prefix, suffix) = UNFINISHED;
    tempfile::Builder::new().prefix(prefix).suffix(suffix).tempfile_in(folder).map_err(plain)
}

/// The system's own words, without the name of a file that is another one at every try.
fn plain(error: io::Error) -> io::Error {
    match error.to_string().split_once(" at path ") {
        Some((words, _)) => io::Error::new(error.kind(), words),
        None => error,
    }
}

/// Makes a folder that only we may enter, where there is none.
fn make_folder(folder: &Path) -> Result<(), RepositoryError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(failed("make the folder", folder))
}

/// Makes what was done to the names in a folder durable.
pub(super) fn sync_folder(folder: &Path) -> Result<(), RepositoryError> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed("make durable", folder))
}

/// Removes what a killed writer left unfinished in a folder.
pub(super) fn sweep(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        if name.starts_with(UNFINISHED.0) && name.ends_with(UNFINISHED.1) {
            let path = entry.path();
            // what cannot be removed is in nobody's way
            let _ = std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir_all(&path));
        }
    }
}

/// A fresh unfinished folder in `folder`, removed unless it is kept.
pub(super) fn unfinished_folder(folder: &Path) -> Result<tempfile::TempDir, RepositoryError> {
    let (prefix, suffix) = UNFINISHED;
    tempfile::Builder::new()
        .prefix(prefix)
        .suffix(suffix)
        .tempdir_in(folder)
        .map_err(plain)
        .map_err(failed("make a folder in", folder))
}

pub(super) fn failed(attempt: &'static str, path: &Path) -> impl FnOnce(io::Error) -> RepositoryError {
    let path = path.to_owned();
    move |source| RepositoryError::File { attempt, path, source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    #[test]
    fn a_file_is_replaced_whole_and_private() {
        let root = tempfile::tempdir().unwrap();
        put(root.path(), "values/x.md", Some(b"one")).unwrap();
        put(root.path(), "values/x.md", Some(b"two")).unwrap();
        assert_eq!(look(root.path(), "values/x.md").unwrap().unwrap(), b"two");
        let mode = |path: &str| root.path().join(path).metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("values"), mode("values/x.md")), (0o700, 0o600));
        assert_eq!(
            std::fs::read_dir(root.path().join("values")).unwrap().count(),
            1,
            "nothing unfinished stays"
        );
        put(root.path(), "values/x.md", None).unwrap();
        put(root.path(), "values/x.md", None).unwrap();
        assert_eq!(look(root.path(), "values/x.md").unwrap(), None);
    }

    #[test]
    fn t46_what_is_no_regular_file_is_refused_by_name() {
        let root = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        std::fs::write(elsewhere.path().join("x.md"), "secret").unwrap();
        symlink(elsewhere.path().join("x.md"), root.path().join("name.md")).unwrap();
        symlink(elsewhere.path(), root.path().join("values")).unwrap();
        std::fs::create_dir(root.path().join("identity.md")).unwrap();
        std::fs::write(root.path().join("desires"), "").unwrap();
        for (path, what) in [
            ("name.md", "a symbolic link"),
            ("values/x.md", "a symbolic link"),
            ("identity.md", "a folder"),
            ("desires/x.md", "no folder"),
        ] {
            let said = look(root.path(), path).unwrap_err().to_string();
            assert!(said.contains(what) && said.contains("move it away"), "{path}: {said}");
        }
        assert_eq!(look(root.path(), "opinions/x.md").unwrap(), None);
    }

    #[test]
    fn what_a_killed_writer_left_is_swept_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        for name in [".lisa-abc.tmp", "notes.tmp", ".lisa-notes.md"] {
            std::fs::write(root.path().join(name), "").unwrap();
        }
        std::fs::create_dir_all(root.path().join(".lisa-init.tmp/.git")).unwrap();
        sweep(root.path());
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 2);
    }
}
