//! What stands around her in a prompt: her skills, and what the project a session works in brings along.
//!
//! ```text
//!  look (stat of a bounded list; read what moved) ─▶ skills · chain ─▶ two fingerprints ─▶ the prompt, where one moved
//! ```
//!
//! Nobody tells of changes there, so it is looked at before each model call. What a project brings is words from outside: it
//! is quoted as such wherever it is shown, and known again where it would go into the self. A folder that cannot be read, or
//! that does not answer, stops no turn: what cannot be used is named, and what was known before stands.

mod file;
mod project;
mod shown;
mod skill;
mod skills;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use ipc::digest::sha256_hex;
use jiff::Timestamp;
use tracing::warn;

use self::file::Files;
pub(crate) use self::{
    project::Instruction,
    shown::{of_home, of_project, told},
    skills::{Owner, Skill},
};

/// How long a look may take. A folder that does not answer (a lost network share) must not keep her silent.
const LOOK_MAX: Duration = Duration::from_secs(3);
/// Of how many folders the last look is kept; more than anybody works in at once.
const FOLDERS_MAX: usize = 32;

/// What stands around her.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Surroundings {
    /// By name, hers first.
    pub(crate) skills: Vec<Skill>,
    /// Outermost first.
    pub(crate) instructions: Vec<Instruction>,
    /// What is there and cannot be used, a sentence each.
    pub(crate) notices: Vec<String>,
    /// What all of it comes to.
    pub(crate) print: Print,
    /// What of it somebody else worded.
    pub(crate) foreign: Arc<[String]>,
}

/// The fingerprints of one look: equal where nothing moved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Print {
    /// Of the skills.
    skills: String,
    /// Of the project's instructions.
    project: String,
}

impl Surroundings {
    /// Looks. `folder` is where the session works.
    fn look(
        files: &mut Files,
        home: &Path,
        person_home: Option<&Path>,
        folder: Option<&Path>,
        now: Timestamp,
    ) -> Self {
        files.begin();
        let tree = folder.and_then(|folder| project::Tree::of(folder, person_home).ok());
        let places = skills::places(home, tree.as_ref().map(|tree| tree.folder.as_path()));
        let (skills, skill_notices) = skills::skills(files, &places, now);
        let (instructions, project_notices) =
            tree.map(|tree| project::chain(files, &tree, now)).unwrap_or_default();
        files.end();
        let of_skills = skills.iter().flat_map(|skill| [path(&skill.path), skill.digest.clone()]);
        let of_project = instructions.iter().flat_map(|one| [path(&one.path), one.digest.clone()]);
        let print = Print {
            skills: fingerprint(of_skills.chain(skill_notices.iter().cloned())),
            project: fingerprint(of_project.chain(project_notices.iter().cloned())),
        };
        let theirs = skills.iter().filter(|skill| skill.owner == Owner::Project);
        let foreign = theirs.map(|skill| skill.description.clone());
        let foreign = foreign.chain(instructions.iter().map(|one| one.text.clone())).collect();
        let notices = skill_notices.into_iter().chain(project_notices).collect();
        Self { skills, instructions, notices, print, foreign }
    }

    /// The skill of that name.
    pub(crate) fn skill(&self, name: &str) -> Option<&Skill> {
        self.skills.iter().find(|skill| skill.name == name)
    }
}

fn path(path: &Path) -> String {
    path.display().to_string()
}

fn fingerprint(parts: impl Iterator<Item = String>) -> String {
    // no part holds a zero, so none can be taken for two
    sha256_hex(parts.map(|part| part + "\0").collect::<String>().as_bytes())
}

/// What a look left behind, for the next one.
#[derive(Debug, Default)]
struct Seen {
    files: Files,
    last: Arc<Surroundings>,
}

/// The looks at one folder: one at a time, and what the last one saw for whoever cannot wait.
#[derive(Debug, Default)]
struct Folder {
    seen: Arc<tokio::sync::Mutex<Seen>>,
    last: Arc<Mutex<Arc<Surroundings>>>,
    used: u64,
}

/// Looks at what is around her, and remembers what it saw.
#[derive(Debug)]
pub(crate) struct Lookout {
    home: PathBuf,
    person_home: Option<PathBuf>,
    folders: Mutex<(u64, BTreeMap<Option<PathBuf>, Folder>)>,
}

impl Lookout {
    /// For the home of Lisa, and the folder of her person where that is known.
    pub(crate) fn new(home: impl Into<PathBuf>, person_home: Option<PathBuf>) -> Self {
        Self { home: home.into(), person_home, folders: Mutex::default() }
    }

    /// What is around her now in a session that works in `folder`. The same `Arc` where nothing moved.
    pub(crate) async fn look(&self, folder: Option<&Path>, now: Timestamp) -> Arc<Surroundings> {
        let (seen, last) = self.folder(folder);
        let (home, person_home) = (self.home.clone(), self.person_home.clone());
        let (work, keep) = (folder.map(Path::to_owned), last.clone());
        let looking = async move {
            // held while it is looked, also when nobody waits any more: a folder that hangs holds one thread
            let mut seen = seen.lock_owned().await;
            let look = move || {
                let found =
                    Surroundings::look(&mut seen.files, &home, person_home.as_deref(), work.as_deref(), now);
                if *seen.last != found {
                    for notice in found.notices.iter().filter(|notice| !seen.last.notices.contains(notice)) {
                        warn!(notice, "a skill or an instruction of a project cannot be used");
                    }
                    seen.last = Arc::new(found);
                }
                *keep.lock().unwrap_or_else(PoisonError::into_inner) = seen.last.clone();
                seen.last.clone()
            };
            tokio::task::spawn_blocking(look).await.expect("looking at files does not panic")
        };
        if let Ok(found) = tokio::time::timeout(LOOK_MAX, looking).await {
            return found;
        }
        warn!(?folder, "the folder does not answer; what was seen there before stands");
        last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn folder(
        &self,
        folder: Option<&Path>,
    ) -> (Arc<tokio::sync::Mutex<Seen>>, Arc<Mutex<Arc<Surroundings>>>) {
        let mut folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        let (uses, folders) = &mut *folders;
        *uses += 1;
        let entry = folders.entry(folder.map(Path::to_owned)).or_default();
        entry.used = *uses;
        let found = (entry.seen.clone(), entry.last.clone());
        if folders.len() > FOLDERS_MAX {
            let oldest = folders.iter().min_by_key(|(_, of)| of.used).map(|(folder, _)| folder.clone());
            oldest.and_then(|oldest| folders.remove(&oldest));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block_on<T>(work: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
    }

    #[test]
    fn k7_k8_a_skill_that_is_added_or_edited_moves_the_fingerprint_and_nothing_else_does() {
        let folder = tempfile::tempdir().unwrap();
        let (home, work) = (folder.path().join("home"), folder.path().join("work"));
        std::fs::create_dir_all(home.join("skills/tides")).unwrap();
        std::fs::create_dir_all(work.join(".lisa/skills/knots")).unwrap();
        let tides = home.join("skills/tides/SKILL.md");
        std::fs::write(&tides, "---\ndescription: d\n---\nbody a").unwrap();
        let lookout = Lookout::new(&home, None);
        let look = || block_on(lookout.look(Some(&work), Timestamp::MAX));
        let first = look();
        assert!(Arc::ptr_eq(&first, &look()), "nothing moved");
        // k8: the same length, within one second by its stamp
        let at = std::fs::metadata(&tides).unwrap().modified().unwrap();
        std::fs::write(&tides, "---\ndescription: d\n---\nbody b").unwrap();
        std::fs::File::options().write(true).open(&tides).unwrap().set_modified(at).unwrap();
        let second = look();
        assert_ne!(first.print, second.print);
        // k7
        std::fs::write(work.join(".lisa/skills/knots/SKILL.md"), "---\ndescription: k\n---\n").unwrap();
        let third = look();
        assert_ne!(second.print, third.print);
        assert_eq!((third.skills.len(), &*third.foreign), (2, ["k".to_owned()].as_slice()));
        std::fs::write(work.join("AGENTS.md"), "use tabs").unwrap();
        let fourth = look();
        assert_eq!(fourth.print.skills, third.print.skills);
        assert_ne!(fourth.print.project, third.print.project);
        std::fs::write(work.join("README.md"), "hi").unwrap();
        assert!(Arc::ptr_eq(&fourth, &look()));
        // another folder, and her own time, have the home's alone
        assert_eq!(block_on(lookout.look(None, Timestamp::MAX)).skills.len(), 1);
        assert_eq!(block_on(lookout.look(Some(&folder.path().join("gone")), Timestamp::MAX)).skills.len(), 1);
    }

    #[test]
    fn the_folders_that_are_remembered_have_a_bound() {
        let folder = tempfile::tempdir().unwrap();
        let lookout = Lookout::new(folder.path(), None);
        for n in 0..100 {
            block_on(lookout.look(Some(&folder.path().join(n.to_string())), Timestamp::MAX));
            assert!(lookout.folders.lock().unwrap().1.len() <= FOLDERS_MAX);
        }
    }
}
