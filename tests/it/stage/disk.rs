//! Disks of a test's own: made where that is allowed, and gone with the test.

use std::path::{Path, PathBuf};

use super::said;

/// Says something that a person who runs the tests should see.
#[expect(clippy::print_stdout, reason = "a campaign that cannot be repeated by its seed proves little")]
pub(crate) fn say(line: &str) {
    println!("{line}");
}

/// A file system of its own, made for a test where that is allowed, and gone with it.
pub(crate) struct Mount {
    at: PathBuf,
    /// Kept until it is unmounted.
    folder: Option<tempfile::TempDir>,
}

impl Mount {
    /// Mounts, or says why that cannot be done here.
    pub(crate) fn new(arguments: &[&str]) -> Result<Self, String> {
        let folder = tempfile::Builder::new().prefix("mount-").tempdir().unwrap();
        let mut mount = Self::at(arguments, folder.path())?;
        mount.folder = Some(folder);
        Ok(mount)
    }

    /// Mounts in a folder that is there.
    pub(crate) fn at(arguments: &[&str], place: &Path) -> Result<Self, String> {
        said("mount", &[arguments, &[place.to_str().unwrap()]].concat())?;
        Ok(Self { at: place.to_owned(), folder: None })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.at
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let at = self.at.to_str().unwrap().to_owned();
        let unmounted = said("umount", &[&at]).or_else(|_| said("umount", &["-l", &at]));
        assert!(unmounted.is_ok() || std::thread::panicking(), "{unmounted:?}");
    }
}

/// A scratch ext4 on a loop device.
pub(crate) struct Scratch {
    _folder: tempfile::TempDir,
    image: String,
}

impl Scratch {
    pub(crate) fn new() -> Result<Self, String> {
        let folder = tempfile::tempdir().unwrap();
        let image = folder.path().join("disk.img");
        std::fs::File::create(&image).unwrap().set_len(256 << 20).unwrap();
        let image = image.to_str().unwrap().to_owned();
        said("mkfs.ext4", &["-q", "-F", &image])?;
        Ok(Self { _folder: folder, image })
    }

    pub(crate) fn mount(&self) -> Result<Mount, String> {
        Mount::new(&["-o", "loop", &self.image])
    }
}
