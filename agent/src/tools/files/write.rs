//! `write`: a whole file, there at once or not at all.

use std::{
    fs::{self, File, Permissions},
    io::{self, Write as _},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::Path,
};

use serde::{Deserialize, Serialize};

use super::{Ground, failed, shown, writable};

/// What to write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Write {
    path: String,
    content: String,
}

/// Writes.
pub(crate) fn write(ground: &Ground, deed: &Write) -> Result<String, String> {
    let path = writable(ground, &deed.path)?;
    let was = replace(&path, deed.content.as_bytes())?;
    let (lines, bytes) = (deed.content.lines().count(), deed.content.len());
    let done = match was {
        None => "made".to_owned(),
        Some(before) => format!("replaced, which had {before} bytes"),
    };
    Ok(format!("{} is {done}: {lines} lines, {bytes} bytes", shown(&path)))
}

/// Puts `bytes` in the place of the file at `path`, whose mode stays; how large it was, where it was there. A reader, and
/// whoever looks after a kill, finds the one file or the other.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> Result<Option<u64>, String> {
    let failed = failed("write", path);
    let before = match fs::symlink_metadata(path) {
        Ok(before) if before.is_dir() => return Err(format!("{} is a folder", shown(path))),
        Ok(before) if !before.is_file() => return Err(format!("{} is no ordinary file", shown(path))),
        Ok(before) => Some(before),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(failed(error)),
    };
    let folder = path.parent().ok_or_else(|| format!("{} is no file", shown(path)))?;
    fs::create_dir_all(folder).map_err(&failed)?;
    let put = || -> io::Result<()> {
        let mut file = tempfile::Builder::new().prefix(".lisa-").tempfile_in(folder)?;
        file.write_all(bytes)?;
        let mode = before.as_ref().map_or_else(new_mode, |before| before.mode() & 0o7777);
        file.as_file().set_permissions(Permissions::from_mode(mode))?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        File::open(folder)?.sync_all()
    };
    put().map_err(&failed)?;
    Ok(before.map(|before| before.len()))
}

/// The mode of a new file: what this process may give.
fn new_mode() -> u32 {
    use rustix::{fs::Mode, process::umask};
    // there is no way to ask for it but to set it; nobody else makes files here meanwhile
    let mask = umask(Mode::empty());
    umask(mask);
    0o666 & !mask.bits()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::files::tests::ground;

    fn put(ground: &Ground, path: &str, content: &str) -> Result<String, String> {
        write(ground, &Write { path: path.into(), content: content.into() })
    }

    #[test]
    fn a_file_is_there_as_a_whole_keeps_its_mode_and_leaves_nothing_beside_it() {
        let (_folder, ground) = ground();
        let at = |name: &str| ground.work.join(name);
        assert!(put(&ground, "新/深/a.sh", "echo\n好\n").unwrap().contains("is made: 2 lines, 9 bytes"));
        assert_eq!(fs::read_to_string(at("新/深/a.sh")).unwrap(), "echo\n好\n");
        fs::set_permissions(at("新/深/a.sh"), Permissions::from_mode(0o750)).unwrap();
        assert!(put(&ground, "新/深/a.sh", "").unwrap().contains("had 9 bytes"));
        assert_eq!(fs::metadata(at("新/深/a.sh")).unwrap().mode() & 0o7777, 0o750);
        assert_eq!(fs::read_dir(at("新/深")).unwrap().count(), 1);
        assert!(put(&ground, "新", "x").unwrap_err().contains("is a folder"));
        assert!(put(&ground, "新/深/a.sh/b", "x").unwrap_err().contains("could not write"));
        assert!(put(&ground, "/dev/null", "x").unwrap_err().contains("no ordinary file"));
    }

    #[test]
    fn a_link_stays_one_and_another_name_of_the_file_keeps_what_it_had() {
        let (_folder, ground) = ground();
        let at = |name: &str| ground.work.join(name);
        fs::write(at("real"), "one").unwrap();
        std::os::unix::fs::symlink("real", at("link")).unwrap();
        fs::hard_link(at("real"), at("other")).unwrap();
        put(&ground, "link", "two").unwrap();
        assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(at("real")).unwrap(), "two");
        assert_eq!(fs::read_to_string(at("other")).unwrap(), "one");
    }
}
