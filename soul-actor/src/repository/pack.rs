//! A pack of new objects: one file and its index instead of a file an object, written in one go.
//!
//! Only zlib, no deltas: idle time makes one good pack of many quick ones.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read as _, Write as _},
    path::Path,
};

use flate2::Crc;
use git2::Oid;
use sha1::{Digest as _, Sha1};

use super::{
    object::{Deflater, Object},
    workfile,
};

/// Writes the objects as one pack into `folder`. The pack is there before its index is, which is what readers look
/// for. Nothing is flushed.
pub(super) fn write<'a>(
    folder: &Path,
    nursery: &Path,
    objects: impl IntoIterator<Item = &'a Object>,
) -> io::Result<()> {
    let objects: BTreeMap<Oid, &Object> = objects.into_iter().map(|object| (object.id, object)).collect();
    let count = u32::try_from(objects.len()).map_err(io::Error::other)?;
    let mut pack = Vec::new();
    pack.extend_from_slice(b"PACK\0\0\0\x02");
    pack.extend_from_slice(&count.to_be_bytes());
    let (mut crcs, mut offsets, mut deflater) = (Vec::new(), Vec::new(), Deflater::new());
    for object in objects.values() {
        let start = pack.len();
        push_header(&mut pack, object);
        pack = deflater.deflate(pack, &[&object.bytes])?;
        let mut crc = Crc::new();
        crc.update(pack.get(start..).unwrap_or_default());
        crcs.extend_from_slice(&crc.sum().to_be_bytes());
        // a batch is bounded far below the two gigabytes from which on offsets are written otherwise
        offsets.extend_from_slice(&u32::try_from(start).map_err(io::Error::other)?.to_be_bytes());
    }
    let pack_sum = Sha1::digest(&pack);
    pack.extend_from_slice(&pack_sum);

    let mut index = Vec::from(*b"\xfftOc\0\0\0\x02");
    let sorted: Vec<&Oid> = objects.keys().collect();
    for first in 0..=u8::MAX {
        let up_to = sorted.partition_point(|id| id.as_bytes().first().is_some_and(|b| *b <= first));
        index.extend_from_slice(&u32::try_from(up_to).map_err(io::Error::other)?.to_be_bytes());
    }
    let mut named = Sha1::new();
    for id in objects.keys() {
        index.extend_from_slice(id.as_bytes());
        named.update(id.as_bytes());
    }
    index.extend_from_slice(&crcs);
    index.extend_from_slice(&offsets);
    index.extend_from_slice(&pack_sum);
    let index_sum = Sha1::digest(&index);
    index.extend_from_slice(&index_sum);

    let named = Oid::from_bytes(&named.finalize()).expect("a SHA-1 has twenty bytes");
    for (bytes, extension) in [(pack, "pack"), (index, "idx")] {
        let mut file = workfile::unfinished(nursery)?;
        file.as_file_mut().write_all(&bytes)?;
        file.persist(folder.join(format!("pack-{named}.{extension}"))).map_err(|error| error.error)?;
    }
    Ok(())
}

/// Whether a pack, or its index, ends in the sum of what is before.
pub(super) fn is_whole(place: &Path) -> bool {
    let summed = || -> io::Result<bool> {
        let mut file = File::open(place)?;
        let Some(mut left) = file.metadata()?.len().checked_sub(20) else { return Ok(false) };
        let (mut hash, mut buffer) = (Sha1::new(), vec![0; 1 << 16]);
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
            let part = buffer.get_mut(..most).unwrap_or_default();
            file.read_exact(part)?;
            hash.update(part);
            left -= most as u64;
        }
        let mut sum = [0; 20];
        file.read_exact(&mut sum)?;
        Ok(hash.finalize().as_slice() == sum)
    };
    summed().unwrap_or(false)
}

/// The names of the objects in a pack, from its index.
pub(super) fn names(index: &[u8]) -> Vec<Oid> {
    let Some(count) = index.get(8 + 255 * 4..8 + 256 * 4).and_then(|n| n.try_into().ok()) else {
        return vec![];
    };
    let count = u32::from_be_bytes(count) as usize;
    let names = index.get(8 + 256 * 4..).unwrap_or_default();
    names.chunks_exact(20).take(count).filter_map(|name| Oid::from_bytes(name).ok()).collect()
}

/// The kind and the size, four bits and then seven at a time.
fn push_header(pack: &mut Vec<u8>, object: &Object) {
    let size = object.bytes.len();
    let low = u8::try_from(size & 0x0f).expect("four bits");
    let mut byte = ((object.kind as u8) << 4) | low;
    let mut left = size >> 4;
    while left > 0 {
        pack.push(byte | 0x80);
        byte = u8::try_from(left & 0x7f).expect("seven bits");
        left >>= 7;
    }
    pack.push(byte);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::object::Kind;

    #[test]
    fn a_pack_of_ours_is_read_by_gits_own_library() {
        let root = tempfile::tempdir().unwrap();
        let git = git2::Repository::init_bare(root.path()).unwrap();
        let folder = root.path().join("objects/pack");
        let sizes = [0, 1, 15, 16, 17, 2047, 2048, 100_000];
        let objects: Vec<_> = sizes.iter().map(|size| Object::new(Kind::Blob, vec![b'x'; *size])).collect();
        write(&folder, root.path(), objects.iter().chain(&objects)).unwrap();
        git.odb().unwrap().refresh().unwrap();
        for object in &objects {
            assert_eq!(git.find_blob(object.id).unwrap().content(), &*object.bytes);
        }
        for entry in std::fs::read_dir(&folder).unwrap().flatten() {
            assert!(is_whole(&entry.path()), "{entry:?}");
            let bytes = std::fs::read(entry.path()).unwrap();
            if entry.path().extension().unwrap() == "idx" {
                assert_eq!(names(&bytes).len(), objects.len());
            }
            std::fs::write(entry.path(), bytes.split_last().unwrap().1).unwrap();
            assert!(!is_whole(&entry.path()));
        }
    }
}
