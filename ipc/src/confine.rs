//! What a process may still do to the disk and the net once it has given the rest up for good: Landlock, where there is one.
//!
//! ```text
//!  what must not be touched ─▶ everything beside it (pure) ─▶ Rules ─▶ enforce, once, for this thread and what it starts
//! ```
//!
//! Landlock knows what is allowed and nothing that is forbidden. So what must not be touched is taken out by allowing
//! what lies beside it, folder by folder on the way down to it. What is made *beside* such a way later on is not
//! allowed: rules that must know it are made anew for the process that needs them.
//!
//! A place is known by where it really is, so no link, `..` or `/proc/self/root` leads around a rule. Where an
//! administrator has mounted the same folder a second time, it is another place, which no rule here knows of. Modes,
//! owners and times of files are not governed.

use std::{
    collections::BTreeSet,
    fmt, io,
    path::{Path, PathBuf},
};

use crate::{
    hello::Role,
    home::{Home, Run},
};

/// What a process may do. Whatever is not named it may not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// What it may read and run, with all below; without, everything.
    pub read: Option<Vec<PathBuf>>,
    /// Where it may see what there is, with all below; of no meaning where everything may be read.
    pub list: Vec<PathBuf>,
    /// What it may read, write, make and remove, with all below.
    pub write: Vec<PathBuf>,
    /// Whether it may open connections of TCP, and wait for them.
    pub network: bool,
    /// Whether it is kept from signalling and from abstract sockets of processes that are not under these rules.
    pub alone: bool,
}

/// What the kernel does of what was asked of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Landlock {
    /// Which version of it is used: 1 files, 2 renames, 3 truncation, 4 TCP, 5 devices, 6 signals and abstract sockets.
    pub abi: u32,
}

impl fmt::Display for Landlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "landlock ABI {}", self.abi)
    }
}

/// Why rules could not be made those of the kernel.
#[derive(Debug, thiserror::Error)]
pub enum ConfineError {
    /// The kernel has no Landlock, or it is switched off.
    #[error(
        "the kernel offers no Landlock; boot one of 5.13 or later with `landlock` among its security modules"
    )]
    Absent,
    /// It has, and refused.
    #[error("the kernel refused the rules of Landlock: {said}")]
    Refused {
        /// In its words.
        said: String,
    },
}

/// Every place that is not below one of `forbidden`, in as few folders as there can be. `list` says what is in a folder,
/// links left out: what they lead to is allowed or not where it really is.
pub fn beside(forbidden: &[PathBuf], list: &impl Fn(&Path) -> Vec<PathBuf>) -> Vec<PathBuf> {
    let mut allowed = Vec::new();
    let mut open = vec![PathBuf::from("/")];
    while let Some(place) = open.pop() {
        if forbidden.iter().any(|forbidden| place.starts_with(forbidden)) {
            continue;
        }
        if forbidden.iter().any(|forbidden| forbidden.starts_with(&place)) {
            open.extend(list(&place));
        } else {
            allowed.push(place);
        }
    }
    allowed.sort();
    allowed
}

/// What is in a folder, links left out; nothing where it cannot be listed.
pub fn listed(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let real = entries.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()));
    real.map(|entry| entry.path()).collect()
}

/// A path as it really is, as far as it exists.
pub fn real(path: &Path) -> PathBuf {
    let mut missing = Vec::new();
    let mut there = path;
    loop {
        if let Ok(real) = there.canonicalize() {
            return missing.iter().rev().fold(real, |path, name| path.join(name));
        }
        let (Some(parent), Some(name)) = (there.parent(), there.file_name()) else { return path.to_owned() };
        missing.push(name.to_owned());
        there = parent;
    }
}

/// What nobody but the soul, the supervisor and a person writes: the home, and what of it lies elsewhere behind a link.
pub fn hers(home: &Home) -> Vec<PathBuf> {
    let apart =
        [home.soul(), home.approvals(), home.releases(), home.config(), home.config_env(), home.mcp()];
    let all: BTreeSet<PathBuf> =
        std::iter::once(home.path()).chain(apart.iter().map(PathBuf::as_path)).map(real).collect();
    all.into_iter().collect()
}

/// What the agent and the heartbeat may write: everything outside of the home, and in it what is theirs.
pub fn of_child(role: Role, home: &Home, run: &Run, list: &impl Fn(&Path) -> Vec<PathBuf>) -> Rules {
    let mut write = beside(&hers(home), list);
    let own: Vec<PathBuf> = match role {
        Role::Agent => vec![home.sessions(), home.work(), home.skills(), home.upgrades()],
        Role::Heartbeat => vec![home.heartbeat()],
        Role::Soul | Role::Supervisor => Vec::new(),
    };
    write.extend(own.iter().map(|path| real(path)));
    write.push(real(run.path()));
    Rules { read: None, list: Vec::new(), write, network: true, alone: false }
}

/// Makes the rules those of this thread and of every thread and process it starts from now on; they are never taken back.
#[cfg(target_os = "linux")]
pub fn enforce(rules: &Rules) -> Result<Landlock, ConfineError> {
    use landlock::{
        ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, LandlockStatus, Ruleset,
        RulesetAttr as _, RulesetCreatedAttr as _, Scope, path_beneath_rules,
    };
    let refused = |error: landlock::RulesetError| ConfineError::Refused { said: error.to_string() };
    // the newest whose rights are understood here; of an older kernel's there are as many as it has
    let newest = ABI::V6;
    let (reading, writing) = (AccessFs::from_read(newest), AccessFs::from_write(newest));
    // a device made in a folder of one's own would be the disk itself
    let devices = AccessFs::MakeBlock | AccessFs::MakeChar;
    let handled = if rules.read.is_some() { reading | writing } else { writing };
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(handled)
        .map_err(refused)?;
    if !rules.network {
        ruleset = ruleset.handle_access(AccessNet::from_all(newest)).map_err(refused)?;
    }
    if rules.alone {
        ruleset = ruleset.scope(Scope::from_all(newest)).map_err(refused)?;
    }
    let mut created = ruleset.create().map_err(refused)?;
    if let Some(read) = &rules.read {
        created = created.add_rules(path_beneath_rules(read, reading)).map_err(refused)?;
        created = created.add_rules(path_beneath_rules(&rules.list, AccessFs::ReadDir)).map_err(refused)?;
    }
    let may = handled & !devices;
    created = created.add_rules(path_beneath_rules(&rules.write, may)).map_err(refused)?;
    match created.restrict_self().map_err(refused)?.landlock {
        LandlockStatus::Available { effective_abi, kernel_abi } => {
            let abi = kernel_abi.unwrap_or(effective_abi as i32);
            Ok(Landlock { abi: u32::try_from(abi).unwrap_or_default() })
        }
        LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => Err(ConfineError::Absent),
    }
}

/// There is no Landlock on this system.
#[cfg(not(target_os = "linux"))]
pub fn enforce(rules: &Rules) -> Result<Landlock, ConfineError> {
    let _ = rules;
    Err(ConfineError::Absent)
}

/// Confines a child of the supervisor to what is its own. Its folders are made first, since a place that is not there
/// cannot be allowed.
pub(crate) fn child(role: Role, home: &Home, run: &Run) -> io::Result<Result<Landlock, ConfineError>> {
    match role {
        Role::Agent => make_private(&home.sessions())?,
        Role::Heartbeat => make_private(&home.heartbeat())?,
        Role::Soul | Role::Supervisor => {}
    }
    Ok(enforce(&of_child(role, home, run, &listed)))
}

fn make_private(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    // one that is there keeps its mode: it may be the original's
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn tree(folders: &[(&str, &[&str])]) -> impl Fn(&Path) -> Vec<PathBuf> {
        let of = |folder: &&str, names: &&[&str]| {
            (PathBuf::from(folder), names.iter().map(|name| Path::new(folder).join(name)).collect())
        };
        let tree: BTreeMap<PathBuf, Vec<PathBuf>> =
            folders.iter().map(|(folder, names)| of(folder, names)).collect();
        move |folder: &Path| tree.get(folder).cloned().unwrap_or_default()
    }

    #[test]
    fn everything_beside_what_is_forbidden_is_allowed_and_nothing_on_the_way_to_it() {
        let list = tree(&[
            ("/", &["usr", "home", "tmp"]),
            ("/home", &["anna", "bela"]),
            ("/home/anna", &[".lisa", ".ssh", "灯塔", "notes\n.md"]),
        ]);
        let check = |forbidden: &[&str], allowed: &[&str]| {
            let forbidden: Vec<_> = forbidden.iter().map(PathBuf::from).collect();
            let allowed: Vec<_> = allowed.iter().map(PathBuf::from).collect();
            assert_eq!(beside(&forbidden, &list), allowed, "{forbidden:?}");
        };
        check(&[], &["/"]);
        check(&["/"], &[]);
        check(
            &["/home/anna/.lisa"],
            &["/home/anna/.ssh", "/home/anna/notes\n.md", "/home/anna/灯塔", "/home/bela", "/tmp", "/usr"],
        );
        check(
            &["/home/anna/.lisa", "/home/anna/.ssh", "/home/anna/.lisa/soul"],
            &["/home/anna/notes\n.md", "/home/anna/灯塔", "/home/bela", "/tmp", "/usr"],
        );
        // a name that begins alike is another name
        check(&["/usr2"], &["/home", "/tmp", "/usr"]);
        check(&["/home"], &["/tmp", "/usr"]);
    }

    #[test]
    fn a_self_behind_a_link_is_forbidden_where_it_is_and_no_link_is_listed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().canonicalize().unwrap().join(path);
        for made in ["home", "disk/soul", "other"] {
            std::fs::create_dir_all(at(made)).unwrap();
        }
        std::os::unix::fs::symlink(at("disk/soul"), at("home/soul")).unwrap();
        std::os::unix::fs::symlink(at("disk/soul"), at("other/way")).unwrap();
        std::os::unix::fs::symlink(at("home"), at("again")).unwrap();
        let rules =
            of_child(Role::Agent, &Home::at(at("again")), &Run::at(at("again/run")), &|place: &Path| {
                if place.starts_with(folder.path().canonicalize().unwrap()) {
                    listed(place)
                } else {
                    Vec::new()
                }
            });
        // the test's folder hangs below places that were not listed, so nothing above it is allowed either
        assert_eq!(
            rules.write,
            [at("home/sessions"), at("home/work"), at("home/skills"), at("home/upgrades"), at("home/run")]
        );
        let below = |place: &Path| if place == Path::new("/") { vec![at("")] } else { listed(place) };
        let write = beside(&hers(&Home::at(at("again"))), &below);
        assert!(write.contains(&at("other")), "{write:?}");
        assert!(!write.iter().any(|place| at("disk/soul").starts_with(place)), "{write:?}");
        assert!(!write.iter().any(|place| place.starts_with(at("home"))), "{write:?}");
    }

    /// On a thread of its own, which keeps what it gave up.
    #[test]
    fn the_kernel_keeps_to_the_rules() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        std::fs::create_dir(at("ours")).unwrap();
        std::fs::create_dir(at("hers")).unwrap();
        std::fs::write(at("hers/name.md"), "Mira").unwrap();
        std::os::unix::fs::symlink(at("hers/name.md"), at("ours/link")).unwrap();
        let rules = Rules { write: vec![at("ours")], network: true, ..Rules::default() };
        let (ours, hers) = (at("ours"), at("hers"));
        let confined = std::thread::spawn(move || {
            let landlock = match enforce(&rules) {
                Ok(landlock) => landlock,
                Err(ConfineError::Absent) => return None,
                Err(error) => panic!("{error}"),
            };
            std::fs::write(ours.join("a"), "a").unwrap();
            assert_eq!(std::fs::read_to_string(hers.join("name.md")).unwrap(), "Mira");
            let denied = |what: io::Result<()>| {
                assert!(what.is_err_and(|error| {
                    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::CrossesDevices)
                }));
            };
            denied(std::fs::write(hers.join("name.md"), "Eve"));
            denied(std::fs::write(ours.join("link"), "Eve"));
            denied(std::fs::write(
                Path::new("/proc/self/root").join(hers.strip_prefix("/").unwrap()).join("name.md"),
                "Eve",
            ));
            denied(std::fs::rename(hers.join("name.md"), ours.join("name.md")));
            denied(std::fs::hard_link(hers.join("name.md"), ours.join("hard")));
            denied(std::fs::remove_file(hers.join("name.md")));
            Some(landlock)
        });
        match confined.join().unwrap() {
            Some(landlock) => assert!(landlock.abi >= 1, "{landlock}"),
            None => println!("skipped: the kernel offers no Landlock"),
        }
        assert_eq!(std::fs::read_to_string(at("hers/name.md")).unwrap(), "Mira");
    }
}
