//! Small text files below a folder: read within a bound, never by a link that leads out of it, and again only when they moved.
//!
//! What moved is known by the stamp of the file: where it lies, its size, and both of its times in nanoseconds. A file that
//! was changed just before it was looked at could change again without another stamp, so it is read again until it is older.

use std::{
    collections::BTreeMap,
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use cap_fs_ext::OpenOptionsSyncExt as _;
use cap_std::fs::{Dir, Metadata, MetadataExt as _, OpenOptions};
use ipc::digest::sha256_hex;
use jiff::{SignedDuration, Timestamp};

/// How old a change must be before its stamp is trusted: longer than the coarsest clock of a file system.
const SETTLED: SignedDuration = SignedDuration::from_secs(2);

/// What a file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Text {
    pub(super) text: String,
    /// Of its bytes.
    pub(super) digest: String,
}

/// Why a file that is there cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unusable {
    #[error("it is a link, and links are not followed here")]
    Link,
    #[error("it is a link that leads out of the folder, or nowhere")]
    LeadsOut,
    #[error("it is no ordinary file")]
    NoFile,
    #[error("it is larger than {} KiB", .0 / 1024)]
    TooLarge(u64),
    #[error("it is no UTF-8 text")]
    NoText,
    #[error("it could not be read ({0})")]
    Io(io::ErrorKind),
}

/// Whether a link may be followed, as long as it stays below the folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Links {
    Inside,
    None,
}

/// What tells one state of a file from another without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    place: (u64, u64),
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            place: (metadata.dev(), metadata.ino()),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Whether another change would have another stamp. A change in the future is none that a clock here made.
    fn is_settled(&self, now: Timestamp) -> bool {
        let changed = Timestamp::from_second(self.changed.0);
        changed.is_ok_and(|changed| now.duration_since(changed) > SETTLED)
    }
}

#[derive(Debug)]
struct Kept {
    stamp: Stamp,
    settled: bool,
    read: Result<Arc<Text>, Unusable>,
    /// Which look used it last.
    look: u64,
}

/// The files of one look after the other.
#[derive(Debug, Default)]
pub(super) struct Files {
    kept: BTreeMap<PathBuf, Kept>,
    look: u64,
    /// How many files were read, for the tests of what is not.
    #[cfg(test)]
    pub(super) reads: usize,
}

impl Files {
    /// Another look begins.
    pub(super) fn begin(&mut self) {
        self.look += 1;
    }

    /// The look is over: what it did not ask for is forgotten.
    pub(super) fn end(&mut self) {
        let look = self.look;
        self.kept.retain(|_, kept| kept.look == look);
    }

    /// The file at `path` below `folder`, which lies at `at`; nothing where there is none.
    pub(super) fn read(
        &mut self,
        (folder, at): (&Dir, &Path),
        path: &Path,
        links: Links,
        bytes_max: u64,
        now: Timestamp,
    ) -> Option<Result<Arc<Text>, Unusable>> {
        let stamp = match stamp(folder, path, links) {
            Ok(stamp) => stamp?,
            Err(why) => return Some(Err(why)),
        };
        let key = at.join(path);
        if let Some(kept) = self.kept.get_mut(&key).filter(|kept| kept.settled && kept.stamp == stamp) {
            kept.look = self.look;
            return Some(kept.read.clone());
        }
        #[cfg(test)]
        {
            self.reads += 1;
        }
        let (stamp, read) = match read(folder, path, bytes_max) {
            Ok((stamp, read)) => (stamp, read.map(Arc::new)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => return Some(Err(Unusable::Io(error.kind()))),
        };
        let kept = Kept { stamp, settled: stamp.is_settled(now), read: read.clone(), look: self.look };
        self.kept.insert(key, kept);
        Some(read)
    }
}

fn stamp(folder: &Dir, path: &Path, links: Links) -> Result<Option<Stamp>, Unusable> {
    let is_link = match folder.symlink_metadata(path) {
        Ok(metadata) => metadata.is_symlink(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if is_out(&error) => return Err(Unusable::LeadsOut),
        Err(error) => return Err(Unusable::Io(error.kind())),
    };
    if is_link && links == Links::None {
        return Err(Unusable::Link);
    }
    match folder.metadata(path) {
        Ok(metadata) if metadata.is_file() => Ok(Some(Stamp::of(&metadata))),
        Ok(_) => Err(Unusable::NoFile),
        Err(_) if is_link => Err(Unusable::LeadsOut),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Unusable::Io(error.kind())),
    }
}

/// A way that leaves the folder has no error number: it was refused before the system was asked.
fn is_out(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none()
}

/// What the file says now, and its stamp as it was opened. Opening waits for nobody, also where a pipe was put there.
fn read(folder: &Dir, path: &Path, bytes_max: u64) -> io::Result<(Stamp, Result<Text, Unusable>)> {
    let mut options = OpenOptions::new();
    options.read(true).nonblock(true);
    let file = folder.open_with(path, &options)?;
    let metadata = file.metadata()?;
    let stamp = Stamp::of(&metadata);
    if !metadata.is_file() {
        return Ok((stamp, Err(Unusable::NoFile)));
    }
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Ok((stamp, Err(Unusable::TooLarge(bytes_max))));
    }
    let digest = sha256_hex(&bytes);
    let text = String::from_utf8(bytes).map_err(|_| Unusable::NoText);
    let text = text.map(|text| Text { text: text.trim_start_matches('\u{feff}').to_owned(), digest });
    Ok((stamp, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cap_std::ambient_authority;
    use std::os::unix::fs::symlink;

    fn dir(path: &Path) -> Dir {
        Dir::open_ambient_dir(path, ambient_authority()).unwrap()
    }

    #[test]
    fn what_cannot_be_used_is_named_and_nothing_outside_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let (root, secret) = (folder.path().join("root"), folder.path().join("secret"));
        std::fs::create_dir_all(root.join("sub")).unwrap();
        std::fs::create_dir(&secret).unwrap();
        std::fs::write(secret.join("key"), "geheim").unwrap();
        std::fs::write(root.join("sub/plain"), "\u{feff}灯塔\n").unwrap();
        std::fs::write(root.join("bytes"), [0xff, 0xfe]).unwrap();
        std::fs::write(root.join("large"), "x".repeat(101)).unwrap();
        symlink("sub/plain", root.join("inside")).unwrap();
        symlink(secret.join("key"), root.join("out")).unwrap();
        symlink("../secret", root.join("folder")).unwrap();
        symlink("nowhere", root.join("broken")).unwrap();
        let (at, root) = (root.clone(), dir(&root));
        let check = |path: &str, links: Links, expected: Option<Result<&str, Unusable>>| {
            let read = Files::default().read((&root, &at), path.as_ref(), links, 100, Timestamp::MAX);
            let read = read.map(|read| read.map(|text| text.text.clone()));
            assert_eq!(read, expected.map(|expected| expected.map(str::to_owned)), "{path}");
        };
        check("sub/plain", Links::None, Some(Ok("灯塔\n")));
        check("inside", Links::Inside, Some(Ok("灯塔\n")));
        check("inside", Links::None, Some(Err(Unusable::Link)));
        check("out", Links::Inside, Some(Err(Unusable::LeadsOut)));
        check("broken", Links::Inside, Some(Err(Unusable::LeadsOut)));
        check("folder/key", Links::Inside, Some(Err(Unusable::LeadsOut)));
        check("sub", Links::Inside, Some(Err(Unusable::NoFile)));
        check("bytes", Links::Inside, Some(Err(Unusable::NoText)));
        check("large", Links::Inside, Some(Err(Unusable::TooLarge(100))));
        check("missing", Links::Inside, None);
    }

    #[test]
    fn a_settled_file_is_read_once_and_a_fresh_one_until_it_is_old() {
        let folder = tempfile::tempdir().unwrap();
        let (at, root) = (folder.path(), dir(folder.path()));
        let mut files = Files::default();
        let path = at.join("a");
        let mut look = |now: Timestamp| {
            files.begin();
            let read = files.read((&root, at), "a".as_ref(), Links::None, 100, now);
            files.end();
            (read.map(|read| read.unwrap().text.clone()), files.reads)
        };
        std::fs::write(&path, "one").unwrap();
        let changed = std::fs::metadata(&path).unwrap().modified().unwrap();
        let fresh = Timestamp::try_from(changed).unwrap();
        let old = fresh + SignedDuration::from_secs(9);
        assert_eq!(look(fresh), (Some("one".into()), 1));
        assert_eq!(look(old), (Some("one".into()), 2), "it was fresh when it was read");
        assert_eq!(look(old), (Some("one".into()), 2));
        // another text of the same length and the same time
        std::fs::write(&path, "two").unwrap();
        std::fs::File::options().write(true).open(&path).unwrap().set_modified(changed).unwrap();
        assert_eq!(look(old), (Some("two".into()), 3));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(look(old), (None, 3));
        std::fs::write(&path, "one").unwrap();
        assert_eq!(look(old), (Some("one".into()), 4), "what was forgotten is read again");
    }
}
