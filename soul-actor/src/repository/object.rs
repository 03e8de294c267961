//! Objects of git, made in memory: their bytes, their names, and how one lies on the disk by itself.
//!
//! An object file that is there is not trusted: after a power cut it may be empty, and git's libraries never write again
//! what exists. So what does not read back equal is replaced.

use std::{
    fs::{DirBuilder, File},
    io::{self, Read as _, Write as _},
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use flate2::{Compression, read::ZlibDecoder, write::ZlibEncoder};
use git2::Oid;
use sha1::{Digest as _, Sha1};

use super::workfile;

/// What an object is; the numbers are those of a pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A commit.
    Commit = 1,
    /// A folder.
    Tree = 2,
    /// A file.
    Blob = 3,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Tree => "tree",
            Self::Blob => "blob",
        }
    }
}

/// An object, named after its bytes.
#[derive(Debug, Clone)]
pub(super) struct Object {
    /// Its name.
    pub(super) id: Oid,
    /// What it is.
    pub(super) kind: Kind,
    /// What it holds.
    pub(super) bytes: Arc<[u8]>,
}

impl Object {
    /// Makes the object that holds `bytes`.
    pub(super) fn new(kind: Kind, bytes: impl Into<Arc<[u8]>>) -> Self {
        let bytes = bytes.into();
        Self { id: name(kind, &bytes), kind, bytes }
    }
}

/// The name of an object of these bytes.
pub(super) fn name(kind: Kind, bytes: &[u8]) -> Oid {
    let mut hash = Sha1::new();
    hash.update(format!("{} {}\0", kind.name(), bytes.len()));
    hash.update(bytes);
    Oid::from_bytes(&hash.finalize()).expect("a SHA-1 has twenty bytes")
}

/// The bytes of a commit of ours: what the clock said is the time of the author, the other is that of the commit.
pub(super) fn commit(
    tree: Oid,
    parent: Option<Oid>,
    who: &str,
    [said, when]: [&str; 2],
    text: &str,
) -> Vec<u8> {
    let parent = parent.map(|parent| format!("parent {parent}\n")).unwrap_or_default();
    format!("tree {tree}\n{parent}author {who} {said}\ncommitter {who} {when}\n\n{text}").into_bytes()
}

/// Packs bytes as git does: fast, because idle time packs them again. Making one costs more than most objects do.
pub(super) struct Deflater(ZlibEncoder<Vec<u8>>);

impl Deflater {
    /// One that has packed nothing yet.
    pub(super) fn new() -> Self {
        Self(ZlibEncoder::new(Vec::new(), Compression::fast()))
    }

    /// Packs the parts as one, behind what is in `into`.
    pub(super) fn deflate(&mut self, into: Vec<u8>, parts: &[&[u8]]) -> io::Result<Vec<u8>> {
        *self.0.get_mut() = into;
        for part in parts {
            self.0.write_all(part)?;
        }
        self.0.reset(Vec::new())
    }
}

/// Writes an object as a file of its own, unless it is there and whole. Nothing is flushed.
/// It begins in `nursery`, where no `git fsck` takes it for an object that is broken.
pub(super) fn write_loose(objects: &Path, nursery: &Path, object: &Object) -> io::Result<bool> {
    let place = place(objects, object.id);
    let header = format!("{} {}\0", object.kind.name(), object.bytes.len());
    if holds(&place, header.as_bytes(), &object.bytes) {
        return Ok(false);
    }
    let folder = place.parent().expect("an object lies in a folder");
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let mut file = workfile::unfinished(nursery)?;
    let bytes = Deflater::new().deflate(Vec::new(), &[header.as_bytes(), &object.bytes])?;
    file.as_file_mut().write_all(&bytes)?;
    file.persist(&place).map_err(|error| error.error)?;
    Ok(true)
}

/// Removes the file of an object that is not what it is named, because the object goes into a pack.
pub(super) fn remove_torn(objects: &Path, id: Oid) -> io::Result<()> {
    let place = place(objects, id);
    if place.exists() && !is_whole(&place, id) {
        std::fs::remove_file(place)?;
    }
    Ok(())
}

/// Whether an object file reads as an object of some kind, under its own name.
fn is_whole(place: &Path, id: Oid) -> bool {
    let Ok(file) = File::open(place) else { return false };
    let mut hash = Sha1::new();
    let mut decoder = ZlibDecoder::new(file);
    let mut buffer = [0; 8192];
    loop {
        match decoder.read(&mut buffer) {
            Ok(0) => return hash.finalize().as_slice() == id.as_bytes(),
            Ok(read) => hash.update(buffer.get(..read).unwrap_or_default()),
            Err(_) => return false,
        }
    }
}

fn holds(place: &Path, header: &[u8], bytes: &[u8]) -> bool {
    let Ok(file) = File::open(place) else { return false };
    let mut held = Vec::new();
    let most = (header.len() + bytes.len() + 1) as u64;
    ZlibDecoder::new(file).take(most).read_to_end(&mut held).is_ok()
        && held.strip_prefix(header).is_some_and(|held| held == bytes)
}

fn place(objects: &Path, id: Oid) -> PathBuf {
    let id = id.to_string();
    let (folder, name) = id.split_at(2);
    objects.join(folder).join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_named_as_git_names_them() {
        assert_eq!(
            Object::new(Kind::Blob, *b"hello\n").id.to_string(),
            "ce013625030ba8dba906f756967f9e9ca394464a"
        );
        assert_eq!(Object::new(Kind::Tree, *b"").id.to_string(), "4b825dc642cb6eb9a060e54bf8d69288fbee4904");
    }

    #[test]
    fn trap_7_a_file_that_is_there_and_not_the_object_is_written_again() {
        let folder = tempfile::tempdir().unwrap();
        let object = Object::new(Kind::Blob, b"hello\n".repeat(100));
        assert!(write_loose(folder.path(), folder.path(), &object).unwrap());
        assert!(!write_loose(folder.path(), folder.path(), &object).unwrap(), "what is whole is left alone");
        let place = place(folder.path(), object.id);
        let whole = std::fs::read(&place).unwrap();
        for torn in [&b""[..], &[0; 64], whole.split_at(whole.len() / 2).0] {
            std::fs::write(&place, torn).unwrap();
            assert!(!is_whole(&place, object.id));
            assert!(write_loose(folder.path(), folder.path(), &object).unwrap());
            assert!(is_whole(&place, object.id));
        }
    }
}
