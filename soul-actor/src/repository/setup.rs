//! How the repository is set up: isolated from whoever's git this machine has, and durable.
//!
//! No configuration outside of the repository is read, no environment, no template; no hook and no monitor of the local
//! configuration runs (libgit2 runs none, and the keys that make others run them are set here).

use std::{fs::File, io, path::Path, sync::Once};

use git2::{Config, ConfigLevel, ErrorCode, Repository as Git, RepositoryInitOptions};

use super::{
    RepositoryError,
    workfile::{failed, sync_folder, unfinished_folder},
};

/// Who commits.
pub(super) const NAME: &str = "Lisa";
/// Her address, which is nobody's.
pub(super) const EMAIL: &str = "lisa@self";

/// What the repository's own configuration says, so that the git command of her person does no harm either.
const CONFIG: [(&str, &str); 7] = [
    ("user.name", NAME),
    ("user.email", EMAIL),
    ("commit.gpgsign", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
];

/// Opens the repository in `root`; nothing where there is none.
pub(super) fn open(root: &Path) -> Result<Option<Git>, RepositoryError> {
    isolate();
    if let Err(error) = root.join(".git").symlink_metadata() {
        return match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(None),
            _ => Err(failed("look at", &root.join(".git"))(error)),
        };
    }
    let git = Git::open(root).map_err(|source| match source.code() {
        ErrorCode::Owner => RepositoryError::ForeignOwner { path: root.to_owned() },
        _ => RepositoryError::Open { path: root.to_owned(), source },
    })?;
    Ok(Some(git))
}

/// Makes the repository in `root`, in one step: a killed start leaves none, or a whole one without commits.
pub(super) fn init(root: &Path) -> Result<Git, RepositoryError> {
    isolate();
    let nursery = unfinished_folder(root)?;
    let mut options = RepositoryInitOptions::new();
    options.external_template(false).no_reinit(true).initial_head("main");
    let git =
        Git::init_opts(nursery.path(), &options).map_err(RepositoryError::git("make the repository"))?;
    configure(&git)?;
    drop(git);
    let (made, place) = (nursery.path().join(".git"), root.join(".git"));
    sync_all_below(&made).map_err(failed("make durable", &made))?;
    std::fs::rename(&made, &place).map_err(failed("put in place", &place))?;
    sync_folder(root)?;
    open(root)?.ok_or_else(|| RepositoryError::File {
        attempt: "find",
        path: place,
        source: io::ErrorKind::NotFound.into(),
    })
}

/// Sets what the local configuration must say, where it says otherwise.
pub(super) fn configure(git: &Git) -> Result<(), RepositoryError> {
    let set = || -> Result<(), git2::Error> {
        let mut config = Config::open(&git.path().join("config"))?;
        for (key, value) in CONFIG {
            if config.get_string(key).is_ok_and(|old| old == value) {
                continue;
            }
            config.set_str(key, value)?;
        }
        Ok(())
    };
    set().map_err(RepositoryError::git("write the repository's configuration"))
}

/// Removes the locks that a dead writer left; we hold the kernel's lock, so no living writer of ours has one.
pub(super) fn clear_locks(git: &Git) {
    let git_dir = git.path();
    let mut locks: Vec<_> =
        ["index.lock", "HEAD.lock", "packed-refs.lock", "config.lock"].map(|name| git_dir.join(name)).into();
    let mut folders = vec![git_dir.join("refs/heads")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                Ok(_) if entry.path().extension().is_some_and(|e| e == "lock") => locks.push(entry.path()),
                _ => {}
            }
        }
    }
    for lock in locks {
        if std::fs::remove_file(&lock).is_ok() {
            tracing::info!(lock = %lock.display(), "a lock that a dead writer left was removed");
        }
    }
}

/// Cuts libgit2 off from every configuration but the repository's own. It is done once a process, before any repository
/// is opened. Flushing is not left to libgit2, which would do it a dozen times a commit: see [`flush_all`].
#[expect(unsafe_code, reason = "git2 has no safe way to set the search paths")]
fn isolate() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for level in [ConfigLevel::System, ConfigLevel::Global, ConfigLevel::XDG, ConfigLevel::ProgramData] {
            // SAFETY: the options are global and unsynchronised; every repository is opened behind this `Once`.
            unsafe { git2::opts::set_search_path(level, "") }.expect("an empty search path can be set");
        }
    });
}

/// Makes everything that was written to the file system of the repository durable, in one flush.
#[cfg(target_os = "linux")]
pub(super) fn flush_all(disk: &File, _root: &Path) -> io::Result<()> {
    Ok(rustix::fs::syncfs(disk)?)
}

/// Makes everything in the folder of the self durable, file by file, where the system cannot do it in one flush.
#[cfg(not(target_os = "linux"))]
pub(super) fn flush_all(_disk: &File, root: &Path) -> io::Result<()> {
    sync_all_below(root)
}

fn sync_all_below(folder: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_all_below(&entry.path())?;
        } else {
            File::open(entry.path())?.sync_all()?;
        }
    }
    File::open(folder)?.sync_all()
}
