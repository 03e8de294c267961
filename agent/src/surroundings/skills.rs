//! The skills there are: her own, and those of the project a session works in.
//!
//! | where | rank | whose words |
//! |---|---|---|
//! | `.lisa/skills` in the work folder | 100 | the project's, from outside |
//! | `.agents/skills` there | 200 | the project's, from outside |
//! | `skills` in the home | 400 | hers: only she and her person write there |
//!
//! They add up. Of two with one name the higher rank counts, so no project can put its own words in the place of a skill of
//! the home (K3); the one that does not count is named.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

use cap_std::{ambient_authority, fs::Dir};
use jiff::Timestamp;

use super::{
    file::{Files, Links},
    skill::{self, Parsed},
};

/// The largest `SKILL.md`.
const BYTES_MAX: u64 = 128 * 1024;
/// How many folders are looked at in a place; more is no shelf that a person keeps.
const FOLDERS_MAX: usize = 500;
/// How many skills of the home there are at most, and how many of a project.
const HOME_MAX: usize = 200;
const PROJECT_MAX: usize = 50;

/// Whose skill it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owner {
    /// Hers, in the home.
    Home,
    /// The project's.
    Project,
}

/// One skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Skill {
    pub(crate) name: String,
    pub(crate) owner: Owner,
    /// What it is for, one line.
    pub(crate) description: String,
    /// How it is done.
    pub(crate) body: String,
    /// Where its file lies.
    pub(crate) path: PathBuf,
    /// Of all bytes of its file.
    pub(super) digest: String,
}

/// A place where skills may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    owner: Owner,
    /// What no link may lead out of.
    root: PathBuf,
    below: &'static str,
}

/// The places of a session, the highest rank first.
pub(super) fn places(home: &Path, folder: Option<&Path>) -> Vec<Place> {
    let home = home.join("skills");
    let mut places = vec![Place { owner: Owner::Home, root: home.clone(), below: "" }];
    let same = |path: &Path| path.canonicalize().ok() == home.canonicalize().ok();
    for below in [".agents/skills", ".lisa/skills"] {
        // the home can lie in the folder she works in; its skills are not the project's for that
        if let Some(folder) = folder.filter(|folder| !same(&folder.join(below))) {
            places.push(Place { owner: Owner::Project, root: folder.to_owned(), below });
        }
    }
    places
}

/// The skills in these places by name, hers first, and in one sentence each what is there and cannot be used.
pub(super) fn skills(files: &mut Files, places: &[Place], now: Timestamp) -> (Vec<Skill>, Vec<String>) {
    let mut found: BTreeMap<String, Skill> = BTreeMap::new();
    let mut notices = Vec::new();
    for place in places {
        let most = if place.owner == Owner::Home { HOME_MAX } else { PROJECT_MAX };
        for skill in on(files, place, now, &mut notices) {
            if let Some(before) = found.get(&skill.name) {
                let (here, there) = (skill.path.display(), before.path.display());
                notices.push(format!("`{here}`: `{there}` has that name already, and stands before it"));
            } else if found.values().filter(|other| other.owner == skill.owner).count() >= most {
                notices.push(format!("`{}`: there are {most} skills already", skill.path.display()));
            } else {
                found.insert(skill.name.clone(), skill);
            }
        }
    }
    let mut skills: Vec<Skill> = found.into_values().collect();
    skills.sort_by_key(|skill| skill.owner);
    (skills, notices)
}

/// The skills in one place, by name.
fn on(files: &mut Files, place: &Place, now: Timestamp, notices: &mut Vec<String>) -> Vec<Skill> {
    let at = place.root.join(place.below);
    let (folder, mut names) = match listed(place) {
        Ok(Some(listed)) => listed,
        Ok(None) => return Vec::new(),
        Err(error) => {
            notices.push(format!("`{}`: it could not be looked through ({})", at.display(), error.kind()));
            return Vec::new();
        }
    };
    names.sort();
    if names.len() > FOLDERS_MAX {
        notices.push(format!("`{}`: only the first {FOLDERS_MAX} folders are looked at", at.display()));
        names.truncate(FOLDERS_MAX);
    }
    let mut skills = Vec::new();
    for name in names {
        let path = Path::new(&name).join("SKILL.md");
        let read = match files.read((&folder, &at), &path, Links::None, BYTES_MAX, now) {
            // a folder without one is something else's
            None => continue,
            Some(read) => read.map_err(|why| why.to_string()),
        };
        match read.and_then(|text| Ok((skill::parse(&name, &text.text)?, text))) {
            Ok((Parsed { description, body }, text)) => skills.push(Skill {
                owner: place.owner,
                description,
                body,
                path: at.join(&path),
                digest: text.digest.clone(),
                name,
            }),
            Err(why) => notices.push(format!("`{}`: {why}", at.join(&path).display())),
        }
    }
    skills
}

/// The folder of a place and the names of the folders in it; nothing where there is none.
fn listed(place: &Place) -> io::Result<Option<(Dir, Vec<String>)>> {
    let open = || {
        let root = Dir::open_ambient_dir(&place.root, ambient_authority())?;
        if place.below.is_empty() { Ok(root) } else { root.open_dir(place.below) }
    };
    let folder = match open() {
        Ok(folder) => folder,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in folder.entries()?.take(FOLDERS_MAX * 2) {
        let entry = entry?;
        let may_hold_one = entry.file_type().is_ok_and(|kind| kind.is_dir() || kind.is_symlink());
        // a name that is no text could not be called
        if may_hold_one && let Ok(name) = entry.file_name().into_string() {
            names.push(name);
        }
    }
    Ok(Some((folder, names)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    struct Shelves(tempfile::TempDir);

    impl Shelves {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn write(&self, place: &str, name: &str, text: &str) {
            let folder = self.0.path().join(place).join(name);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("SKILL.md"), text).unwrap();
        }

        fn skill(&self, place: &str, name: &str, description: &str) {
            self.write(place, name, &format!("---\nname: {name}\ndescription: {description}\n---\nbody\n"));
        }

        /// Name and description of each, and the notices.
        fn look(&self) -> (Vec<String>, Vec<String>) {
            let (home, work) = (self.0.path().join("home"), self.0.path().join("work"));
            let places = places(&home, Some(&work));
            let (skills, notices) = skills(&mut Files::default(), &places, Timestamp::MAX);
            (skills.iter().map(|skill| format!("{} {}", skill.name, skill.description)).collect(), notices)
        }
    }

    const HOME: &str = "home/skills";
    const LISA: &str = "work/.lisa/skills";
    const AGENTS: &str = "work/.agents/skills";

    #[test]
    fn k1_k2_k3_k4_places_add_up_and_the_higher_rank_has_the_name() {
        let shelves = Shelves::new();
        assert_eq!(shelves.look(), (vec![], vec![]));
        shelves.skill(HOME, "tides", "hers");
        shelves.skill(LISA, "sails", "one");
        shelves.skill(AGENTS, "knots", "two");
        assert_eq!(
            shelves.look(),
            (vec!["tides hers".into(), "knots two".into(), "sails one".into()], vec![])
        );
        shelves.skill(LISA, "tides", "forged");
        shelves.skill(AGENTS, "sails", "three");
        let (skills, notices) = shelves.look();
        assert_eq!(skills, ["tides hers", "knots two", "sails three"]);
        assert_eq!(notices.len(), 2, "{notices:?}");
        assert!(notices.iter().all(|notice| notice.contains("has that name already")), "{notices:?}");
    }

    #[test]
    fn k5_k6_what_is_no_skill_degrades_quietly_and_is_named() {
        let shelves = Shelves::new();
        let secret = shelves.0.path().join("secret");
        std::fs::create_dir(&secret).unwrap();
        std::fs::write(secret.join("SKILL.md"), "---\ndescription: geheim\n---\n").unwrap();
        shelves.skill(HOME, "good", "潮");
        shelves.write(HOME, "other", "---\nname: another\ndescription: x\n---\n");
        shelves.write(HOME, "Bad Name", "---\ndescription: x\n---\n");
        shelves.write(HOME, "large", &"x".repeat(129 * 1024));
        std::fs::create_dir_all(shelves.0.path().join(HOME).join("empty")).unwrap();
        std::fs::create_dir_all(shelves.0.path().join(HOME).join("linked")).unwrap();
        symlink(secret.join("SKILL.md"), shelves.0.path().join(HOME).join("linked/SKILL.md")).unwrap();
        symlink(&secret, shelves.0.path().join(HOME).join("out")).unwrap();
        let (skills, notices) = shelves.look();
        assert_eq!(skills, ["good 潮"]);
        let expected = ["folder's name", "larger than 128 KiB", "not followed", "calls itself", "leads out"];
        assert_eq!(notices.len(), expected.len(), "{notices:?}");
        for (notice, expected) in notices.iter().zip(expected) {
            assert!(notice.contains(expected), "{notice} is not about: {expected}");
        }
        // a whole place behind a link
        symlink(&secret, shelves.0.path().join("work")).unwrap();
        assert_eq!(shelves.look().0, ["good 潮"]);
    }

    #[test]
    fn a_project_has_a_bound_and_the_home_in_the_work_folder_is_no_project() {
        let shelves = Shelves::new();
        for n in 0..PROJECT_MAX + 2 {
            shelves.skill(LISA, &format!("s{n}"), "x");
        }
        let (skills, notices) = shelves.look();
        assert_eq!((skills.len(), notices.len()), (PROJECT_MAX, 2));
        assert_eq!(
            places(&shelves.0.path().join("work/.lisa"), Some(&shelves.0.path().join("work"))).len(),
            2
        );
    }
}
