//! What tools do with files, each in a process that can do no more than that (`sandbox`).
//!
//! A path is absolute, or goes from the work folder on. What is refused is refused in words before the kernel does it, and
//! by the kernel where something was changed in between. A name is shown so that it is one line and no mark of anybody's.

mod edit;
mod glob;
mod grep;
mod ls;
mod read;
mod walk;
mod write;

use std::{
    io,
    path::{Path, PathBuf},
};

use ipc::confine::real;

pub(crate) use self::{
    edit::{Edit, edit},
    glob::{Glob, glob},
    grep::{Grep, grep},
    ls::{Ls, ls},
    read::{Read, read},
    write::{Write, write},
};
use super::sandbox::Ground;

/// Where a path leads, if a tool may read there.
fn readable(ground: &Ground, named: &str) -> Result<PathBuf, String> {
    let path = real(&checked(ground, named)?);
    match ground.unreadable(&path) {
        None => Ok(path),
        Some(why) => Err(format!("could not read {}: {why}", shown(&path))),
    }
}

/// Where a path leads, if a tool may see what is there.
fn listable(ground: &Ground, named: &str) -> Result<PathBuf, String> {
    let path = real(&checked(ground, named)?);
    match ground.unlistable(&path) {
        None => Ok(path),
        Some(why) => Err(format!("could not look into {}: {why}", shown(&path))),
    }
}

/// Where a path leads, if a tool may write there.
fn writable(ground: &Ground, named: &str) -> Result<PathBuf, String> {
    let path = real(&checked(ground, named)?);
    match ground.unwritable(&path) {
        None => Ok(path),
        Some(why) => Err(format!("could not write {}: {why}", shown(&path))),
    }
}

fn checked(ground: &Ground, named: &str) -> Result<PathBuf, String> {
    if named.contains('\0') {
        return Err("no path holds a NUL".to_owned());
    }
    Ok(ground.path(named))
}

/// What went wrong with a file.
fn failed(attempt: &str, path: &Path) -> impl Fn(io::Error) -> String {
    let path = shown(path);
    let attempt = attempt.to_owned();
    move |error| match error.kind() {
        io::ErrorKind::NotFound => format!("could not {attempt} {path}: there is nothing of that name"),
        _ => format!("could not {attempt} {path}: {error}"),
    }
}

/// A path as it is shown: as it is, or in quotes and escaped where it holds what is no part of a line.
fn shown(path: &Path) -> String {
    match path.to_str() {
        Some(text) if !text.chars().any(char::is_control) && text.trim() == text => text.to_owned(),
        _ => quoted(path),
    }
}

#[expect(clippy::unnecessary_debug_formatting, reason = "what is no part of a line is to be seen")]
fn quoted(path: &Path) -> String {
    format!("{path:?}")
}

/// A path below a folder, as it is shown.
fn shown_below(path: &Path, folder: &Path) -> String {
    shown(path.strip_prefix(folder).unwrap_or(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ipc::{config::Tools, home::Home};
    use std::os::unix::ffi::OsStrExt as _;

    /// A folder to work in, on a ground where nothing is confined, and beside it a home of hers.
    pub(super) fn ground() -> (tempfile::TempDir, Ground) {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().canonicalize().unwrap().join(name);
        let home = Home::at(at("home"));
        for made in [home.soul(), home.work().join("tmp"), at("work")] {
            std::fs::create_dir_all(made).unwrap();
        }
        std::fs::write(home.config_env(), "KEY=secret").unwrap();
        let ground = Ground::here(home.path(), &at("work"), Tools::default());
        assert_eq!(ground.work, at("work"), "{ground:?}");
        (folder, ground)
    }

    #[test]
    fn a_name_is_one_line_whatever_it_holds() {
        assert_eq!(shown(Path::new("a/你好 b.md")), "a/你好 b.md");
        assert_eq!(shown(Path::new("a\n[lisa] b")), "\"a\\n[lisa] b\"");
        assert_eq!(shown(Path::new(" a")), "\" a\"");
        assert_eq!(shown(Path::new(std::ffi::OsStr::from_bytes(b"a\xff"))), "\"a\\xFF\"");
    }

    #[test]
    fn no_way_round_leads_to_what_is_hers() {
        let (folder, ground) = ground();
        let soul = folder.path().canonicalize().unwrap().join("home/soul");
        std::os::unix::fs::symlink(&soul, ground.work.join("link")).unwrap();
        std::os::unix::fs::symlink("../home/config.env", ground.work.join("keys")).unwrap();
        let absolute = soul.join("name.md").display().to_string();
        let root = format!("/proc/self/root{absolute}");
        for way in ["../home/soul/name.md", "link/name.md", "link/../config.env", "keys", &absolute, &root] {
            assert!(writable(&ground, way).unwrap_err().contains("work folder"), "{way}");
            assert!(readable(&ground, way).unwrap_err().contains("kept from tools"), "{way}");
        }
        assert!(readable(&ground, "a\0b").is_err());
        assert_eq!(writable(&ground, "new/a.md").unwrap(), ground.work.join("new/a.md"));
    }
}
