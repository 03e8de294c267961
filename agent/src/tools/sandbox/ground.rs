//! The ground a tool stands on: which folder it works in, what it may read, what it may write (pure, but for the disk
//! that is passed in).

use std::path::{Path, PathBuf};

use ipc::{
    confine::{self, Rules},
    home::Home,
};

use super::order::Order;

/// What programs need to run, whatever else may be read.
const SYSTEM: [&str; 13] = [
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/opt", "/nix", "/proc", "/sys", "/var/lib",
    "/run",
];
/// The devices that are nobody's. Of the others some are the disk itself, or somebody's terminal.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];
/// Where the devices are, and the memory of the machine.
const NEVER_READ: [&str; 2] = ["/dev", "/proc/kcore"];

/// What a deed may touch. All paths are as they really are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ground {
    /// The folder it works in.
    pub(crate) work: PathBuf,
    /// Why that is not the folder of the conversation, where it is not.
    pub(crate) why_not: Option<String>,
    /// Where it puts what is needed for a while.
    pub(crate) scratch: PathBuf,
    /// What it may write.
    pub(super) write: Vec<PathBuf>,
    /// What it may read.
    pub(super) read: Vec<PathBuf>,
    /// What is hidden from it, for the words of a refusal.
    forbidden: Vec<PathBuf>,
    /// Whether it may open connections.
    network: bool,
}

/// The disk, as far as rules depend on it.
pub(super) struct Disk<'a> {
    /// A path as it really is.
    pub(super) real: &'a dyn Fn(&Path) -> PathBuf,
    /// What is in a folder, links left out.
    pub(super) list: &'a dyn Fn(&Path) -> Vec<PathBuf>,
    /// Whether a folder is there.
    pub(super) is_folder: &'a dyn Fn(&Path) -> bool,
}

#[cfg(test)]
impl Ground {
    /// The ground of a conversation in the folder `cwd` of this disk.
    pub(crate) fn here(home: &Path, cwd: &Path, tools: ipc::config::Tools) -> Self {
        let (home, cwd) = (home.to_str().unwrap(), cwd.to_str().unwrap());
        let disk = Disk { real: &confine::real, list: &confine::listed, is_folder: &|path| path.is_dir() };
        Self::of(&super::order::tests::order(home, cwd, tools), &disk)
    }
}

impl Ground {
    /// The ground of an order.
    pub(super) fn of(order: &Order, disk: &Disk<'_>) -> Self {
        let home = Home::at(&order.home);
        let real = disk.real;
        let mut forbidden = confine::hers(&home);
        forbidden.push(real(&order.run));
        forbidden.extend(order.tools.hidden.iter().filter_map(|path| {
            let path = match (path.strip_prefix("~"), &order.person_home) {
                (Ok(below), Some(person)) => person.join(below),
                (Ok(_), None) => return None,
                (Err(_), _) => path.clone(),
            };
            Some(real(&path))
        }));
        let default = real(&home.work());
        let (work, why_not) = match unfit(&order.cwd, &default, &forbidden, disk) {
            None => (real(&order.cwd), None),
            Some(why) => (default.clone(), Some(why)),
        };
        let out_of_reach: Vec<PathBuf> =
            forbidden.iter().cloned().chain(NEVER_READ.map(PathBuf::from)).collect();
        let open = confine::beside(&out_of_reach, &|place| (disk.list)(place));
        let system = SYSTEM.iter().map(|path| real(Path::new(path)));
        let roots: Vec<PathBuf> = order.tools.read.iter().map(|path| real(path)).chain(system).collect();
        let mut write = vec![work.clone(), default.clone()];
        write.extend(order.tools.write.iter().flat_map(|root| within(&open, &real(root))));
        write.extend(DEVICES.map(PathBuf::from));
        let mut readable: Vec<PathBuf> = roots.iter().flat_map(|root| within(&open, root)).collect();
        readable.push(real(&home.skills()));
        for list in [&mut write, &mut readable] {
            list.sort();
            list.dedup();
        }
        let scratch = default.join("tmp");
        Self { work, why_not, scratch, write, read: readable, forbidden, network: order.tools.network }
    }

    /// What is kept from tools.
    pub(crate) fn forbidden(&self) -> &[PathBuf] {
        &self.forbidden
    }

    /// As the kernel takes it.
    pub(super) fn rules(&self) -> Rules {
        Rules {
            read: Some(self.read.clone()),
            list: vec!["/".into()],
            write: self.write.clone(),
            network: self.network,
            alone: true,
        }
    }

    /// A path as a model names it: absolute, or from the work folder on.
    pub(crate) fn path(&self, named: &str) -> PathBuf {
        self.work.join(named)
    }

    /// Why a place may not be read, where it may not.
    pub(crate) fn unreadable(&self, real: &Path) -> Option<String> {
        let below = |places: &[PathBuf]| places.iter().any(|place| real.starts_with(place));
        if below(&self.write) || below(&self.read) {
            return None;
        }
        let hidden = below(&self.forbidden);
        Some(if hidden { "it is kept from tools" } else { "no tool may read there" }.to_owned())
    }

    /// Why a folder may not be looked into, where it may not. One that holds what may be read may be.
    pub(crate) fn unlistable(&self, real: &Path) -> Option<String> {
        let why = self.unreadable(real)?;
        let is_kept = self.forbidden.iter().any(|forbidden| real.starts_with(forbidden));
        let is_above = self.read.iter().chain(&self.write).any(|place| place.starts_with(real));
        (is_kept || !is_above).then_some(why)
    }

    /// Why a place may not be written, where it may not.
    pub(crate) fn unwritable(&self, real: &Path) -> Option<String> {
        if self.write.iter().any(|place| real.starts_with(place)) {
            return None;
        }
        let because = self.why_not.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        Some(format!("tools write below the work folder alone, which is `{}`{because}", self.work.display()))
    }
}

/// Why a folder is none to work in: what is forbidden must neither hold it nor lie below it.
fn unfit(cwd: &Path, default: &Path, forbidden: &[PathBuf], disk: &Disk<'_>) -> Option<String> {
    if cwd.as_os_str().is_empty() {
        return Some("the conversation names no folder".to_owned());
    }
    let real = (disk.real)(cwd);
    if !cwd.is_absolute() || !(disk.is_folder)(&real) {
        return Some(format!("the folder of the conversation, `{}`, is not there", cwd.display()));
    }
    if real.starts_with(default) {
        return None;
    }
    if forbidden.iter().any(|forbidden| real.starts_with(forbidden)) {
        return Some(format!("the folder of the conversation, `{}`, is kept from tools", cwd.display()));
    }
    let below = forbidden.iter().find(|forbidden| forbidden.starts_with(&real))?;
    Some(format!("below the folder of the conversation, `{}`, lies `{}`", cwd.display(), below.display()))
}

/// What of the allowed places lies in `root`.
fn within(allowed: &[PathBuf], root: &Path) -> Vec<PathBuf> {
    let part = |place: &PathBuf| {
        if place.starts_with(root) {
            Some(place.clone())
        } else {
            root.starts_with(place).then(|| root.to_owned())
        }
    };
    allowed.iter().filter_map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::sandbox::order::tests::order;
    use ipc::config::Tools;

    /// A disk with a few folders, and one link: `/link` is the home of Lisa.
    fn ground(cwd: &str, tools: Tools) -> Ground {
        let real = |path: &Path| match path.strip_prefix("/link") {
            Ok(below) => Path::new("/home/anna/.lisa").join(below),
            Err(_) => path.to_owned(),
        };
        let list = |place: &Path| -> Vec<PathBuf> {
            let names: &[&str] = match place.to_str().unwrap() {
                "/" => &["bin", "dev", "etc", "home", "proc", "usr"],
                "/home" => &["anna", "bela"],
                "/home/anna" => &[".lisa", ".ssh", "项目"],
                "/proc" => &["kcore", "self"],
                _ => &[],
            };
            names.iter().map(|name| place.join(name)).collect()
        };
        let is_folder = |path: &Path| path != Path::new("/gone");
        Ground::of(
            &order("/home/anna/.lisa", cwd, tools),
            &Disk { real: &real, list: &list, is_folder: &is_folder },
        )
    }

    #[test]
    fn the_folder_of_a_conversation_is_the_work_folder_unless_something_forbidden_is_in_the_way() {
        let check = |cwd: &str, work: &str, why: Option<&str>| {
            let ground = ground(cwd, Tools::default());
            assert_eq!(ground.work, Path::new(work), "{cwd}");
            assert_eq!(ground.why_not.is_some(), why.is_some(), "{cwd}: {:?}", ground.why_not);
            assert!(ground.why_not.unwrap_or_default().contains(why.unwrap_or_default()), "{cwd}");
        };
        let default = "/home/anna/.lisa/work";
        check("/home/anna/项目", "/home/anna/项目", None);
        check("/home/anna/.lisa/work/a", "/home/anna/.lisa/work/a", None);
        check("", default, Some("no folder"));
        check("relative", default, Some("not there"));
        check("/gone", default, Some("not there"));
        check("/", default, Some("lies"));
        check("/home/anna", default, Some("lies"));
        check("/home/anna/.ssh/keys", default, Some("kept"));
        check("/home/anna/.lisa", default, Some("kept"));
        check("/link/soul", default, Some("kept"));
    }

    #[test]
    fn everything_is_read_but_secrets_and_nothing_written_but_the_work_folder() {
        let ground = ground("/home/anna/项目", Tools::default());
        let check = |path: &str, read: bool, write: bool| {
            let path = Path::new(path);
            let may = (ground.unreadable(path).is_none(), ground.unwritable(path).is_none());
            assert_eq!(may, (read, write), "{path:?}");
        };
        check("/home/anna/项目/a b\n.md", true, true);
        check("/home/anna/项目2", false, false);
        check("/home/bela/x", true, false);
        check("/usr/bin/git", true, false);
        check("/proc/self/status", true, false);
        check("/proc/kcore", false, false);
        check("/dev/null", true, true);
        check("/dev/sda", false, false);
        let listed = |path: &str| ground.unlistable(Path::new(path)).is_none();
        assert!(listed("/") && listed("/home/anna") && listed("/usr/bin"));
        assert!(
            !listed("/home/anna/.lisa") && !listed("/home/anna/.ssh") && !listed("/home/anna/.lisa/sessions")
        );
        check("/home/anna/.ssh/id", false, false);
        for hers in ["config.env", "soul/name.md", "sessions/a.jsonl", "run/soul.sock", "approvals/x"] {
            check(&format!("/home/anna/.lisa/{hers}"), false, false);
        }
        check("/home/anna/.lisa/work/tmp/x", true, true);
        check("/home/anna/.lisa/skills/x/SKILL.md", true, false);
        let rules = ground.rules();
        assert!(rules.alone && rules.network && !rules.write.contains(&"/".into()));
        let home = Path::new("/home/anna/.lisa/soul");
        let reach = rules.read.iter().flatten().chain(&rules.write).find(|place| home.starts_with(place));
        assert_eq!(reach, None, "no rule holds the self");
    }

    #[test]
    fn a_person_narrows_what_is_read_and_widens_what_is_written_but_never_to_what_is_hers() {
        let narrow = ground("/home/anna/项目", Tools { read: vec!["/home/bela".into()], ..Tools::default() });
        assert!(narrow.unreadable(Path::new("/home/bela/x")).is_none());
        assert!(narrow.unreadable(Path::new("/home/anna/other")).is_some());
        assert!(narrow.unreadable(Path::new("/usr/bin/env")).is_none(), "programs still run");
        assert!(narrow.unreadable(Path::new("/home/anna/项目/x")).is_none());
        let wide = ground("", Tools { write: vec!["/home".into(), "/link/soul".into()], ..Tools::default() });
        assert!(wide.unwritable(Path::new("/home/bela/x")).is_none());
        assert!(wide.unwritable(Path::new("/home/anna/项目/x")).is_none());
        assert!(wide.unwritable(Path::new("/home/anna/.lisa/soul/name.md")).is_some());
        assert!(wide.unwritable(Path::new("/home/anna/.ssh/authorized_keys")).is_some());
    }
}
