//! Upkeep: many small packs and loose objects become one pack, in a thread of its own, never in the way of a write.
//!
//! ```text
//!  counted: too many ─▶ one pack of the loose ones and the small packs ─▶ flushed ─▶ put in place ─▶ the old ones go
//! ```
//!
//! Packs that hold more than everything smaller together stay as they are, so each object is packed again a handful of
//! times in its life, and the number of packs grows with the logarithm of the history. What is removed is exactly what
//! was listed and found in the new pack; what is written meanwhile is not touched.

use std::{
    collections::HashSet,
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
};

use git2::{Oid, Repository as Git};
use tracing::{info, warn};

use super::{RepositoryError, Result, pack, setup, workfile};

/// From how many packs on every opening of the repository is felt.
const PACKS_MAX: usize = 50;
/// How many packs are bearable while there is no quiet.
const PACKS_BUSY_MAX: usize = 200;
/// How many loose objects there may be: five hundred writes, half a second of packing.
const LOOSE_MAX: usize = 2000;
/// How many loose objects are bearable while there is no quiet.
const LOOSE_BUSY_MAX: usize = 20_000;
/// How many looks pass between two counts while there is no quiet: counting is reading a few hundred folders.
const LOOKS: u32 = 64;

/// The upkeep of one repository.
#[derive(Default)]
pub(super) struct Upkeep {
    thread: Option<JoinHandle<()>>,
    looks: u32,
    stop: Arc<AtomicBool>,
}

impl Upkeep {
    /// Looks whether there is something to do, and begins to do it; says whether it is being done.
    pub(super) fn look(&mut self, git_dir: &Path, is_quiet: bool) -> bool {
        if self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return true;
        }
        self.looks = self.looks.wrapping_add(1);
        if !is_quiet && !self.looks.is_multiple_of(LOOKS) {
            return false;
        }
        let (packs_max, loose_max) =
            if is_quiet { (PACKS_MAX, LOOSE_MAX) } else { (PACKS_BUSY_MAX, LOOSE_BUSY_MAX) };
        let found = Found::in_folder(&git_dir.join("objects"));
        if found.packs.len() <= packs_max && found.loose.len() <= loose_max {
            return false;
        }
        let (git_dir, stop) = (git_dir.to_owned(), self.stop.clone());
        let spawned = std::thread::Builder::new().name("upkeep".to_owned()).spawn(move || {
            match tidy(&git_dir, found, &stop) {
                Ok(()) => {}
                Err(error) => {
                    warn!(error = ipc::exit::chain(&error), "the objects could not be packed; they will be");
                }
            }
        });
        self.thread = spawned.ok();
        false
    }

    /// Lets the work in hand come to its end, or to the next place where it can be left.
    pub(super) fn finish(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // it has said what went wrong
            let _ = thread.join();
        }
    }
}

/// What lies in the folder of the objects.
struct Found {
    loose: Vec<(Oid, PathBuf)>,
    packs: Vec<PathBuf>,
}

impl Found {
    fn in_folder(objects: &Path) -> Self {
        let read = |folder: PathBuf| std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut loose = Vec::new();
        for folder in read(objects.to_owned()).filter(|folder| folder.file_name().len() == 2) {
            let first = folder.file_name();
            for file in read(folder.path()) {
                let name = file.file_name();
                let id = first.to_str().zip(name.to_str()).map(|(first, rest)| format!("{first}{rest}"));
                let id = id.filter(|id| id.len() == 40).and_then(|id| Oid::from_str(&id).ok());
                loose.extend(id.map(|id| (id, file.path())));
            }
        }
        let packs = read(objects.join("pack")).map(|file| file.path());
        let packs = packs.filter(|path| {
            // one that somebody wants kept is kept
            path.extension().is_some_and(|ending| ending == "idx")
                && path.with_extension("pack").exists()
                && !path.with_extension("keep").exists()
        });
        Self { loose, packs: packs.collect() }
    }
}

fn tidy(git_dir: &Path, found: Found, stop: &AtomicBool) -> Result<()> {
    let root = git_dir.parent().unwrap_or(git_dir);
    let Some(git) = setup::open(root)? else { return Ok(()) };
    let mut packs = Vec::new();
    for index in found.packs {
        let names = pack::names(&std::fs::read(&index).map_err(workfile::failed("read", &index))?);
        packs.push((index, names));
    }
    packs.sort_by_key(|(_, names)| names.len());
    let (mut together, mut chosen) = (found.loose.len(), Vec::new());
    for (index, names) in packs {
        if chosen.len() >= 2 && names.len() > together {
            break;
        }
        together += names.len();
        chosen.push((index, names));
    }
    let wanted: HashSet<Oid> = found
        .loose
        .iter()
        .map(|(id, _)| *id)
        .chain(chosen.iter().flat_map(|(_, names)| names.iter().copied()))
        .collect();
    let nursery = workfile::unfinished_folder(&git_dir.join("lisa"))?;
    let Some(made) = repack(&git, &wanted, nursery.path(), stop)? else { return Ok(()) };

    let held: HashSet<Oid> =
        pack::names(&std::fs::read(&made).map_err(workfile::failed("read", &made))?).into_iter().collect();
    let folder = git_dir.join("objects/pack");
    let in_place = folder.join(made.file_name().unwrap_or_default());
    for ending in ["pack", "idx"] {
        let (from, to) = (made.with_extension(ending), in_place.with_extension(ending));
        std::fs::rename(&from, &to).map_err(workfile::failed("put in place", &to))?;
    }
    // only what is durable elsewhere is removed
    let flushed = File::open(&folder).and_then(|disk| setup::flush_all(&disk, root));
    flushed.map_err(workfile::failed("make durable", &folder))?;
    let (mut loose, mut old) = (0_u32, 0_u32);
    for (id, place) in &found.loose {
        if held.contains(id) && removed(place)? {
            loose += 1;
        }
    }
    for (index, names) in chosen.iter().filter(|(index, _)| *index != in_place.with_extension("idx")) {
        if names.iter().all(|name| held.contains(name)) && removed(index)? {
            // a reader looks for the index first, so the pack goes last
            for ending in ["rev", "bitmap", "mtimes", "pack"] {
                removed(&index.with_extension(ending))?;
            }
            old += 1;
        }
    }
    info!(objects = held.len(), loose, packs = old, "the objects were packed");
    Ok(())
}

/// One pack of the objects that are wanted, in a folder of its own; its index, or nothing if it was told to stop.
fn repack(git: &Git, wanted: &HashSet<Oid>, into: &Path, stop: &AtomicBool) -> Result<Option<PathBuf>> {
    let stopped = || stop.load(Ordering::Relaxed);
    let pack = || -> std::result::Result<bool, git2::Error> {
        let mut builder = git.packbuilder()?;
        builder.set_threads(1);
        let mut left = wanted.clone();
        // newest first and with their names, so that what is alike lies together
        if let Some(head) = git.head().ok().and_then(|head| head.target()) {
            let mut walk = git.revwalk()?;
            walk.push(head)?;
            for id in walk {
                if stopped() {
                    return Ok(false);
                }
                let id = id?;
                if !left.remove(&id) {
                    // older ones are in the packs that stay, but for what was loose beside them, which follows below
                    continue;
                }
                builder.insert_object(id, None)?;
                let tree = git.find_commit(id)?.tree_id();
                insert_tree(git, &mut builder, &mut left, tree, "")?;
                if left.is_empty() {
                    break;
                }
            }
        }
        for id in left {
            builder.insert_object(id, None)?;
        }
        if stopped() {
            return Ok(false);
        }
        builder.write(into, 0)?;
        Ok(true)
    };
    if !pack().map_err(RepositoryError::git("pack the objects"))? {
        return Ok(None);
    }
    let files = std::fs::read_dir(into).map_err(workfile::failed("read", into))?;
    let index =
        files.flatten().map(|file| file.path()).find(|path| path.extension().is_some_and(|e| e == "idx"));
    Ok(index)
}

fn insert_tree(
    git: &Git,
    builder: &mut git2::PackBuilder<'_>,
    left: &mut HashSet<Oid>,
    id: Oid,
    name: &str,
) -> std::result::Result<(), git2::Error> {
    if !left.remove(&id) {
        return Ok(());
    }
    builder.insert_object(id, Some(name))?;
    for entry in &git.find_tree(id)? {
        let name = entry.name().ok();
        match entry.kind() {
            Some(git2::ObjectType::Tree) => {
                insert_tree(git, builder, left, entry.id(), name.unwrap_or_default())?;
            }
            Some(git2::ObjectType::Blob) if left.remove(&entry.id()) => {
                builder.insert_object(entry.id(), name)?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn removed(place: &Path) -> Result<bool> {
    match std::fs::remove_file(place) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(workfile::failed("remove", place)(error)),
    }
}
