//! `ls`: what is in a folder.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Ground, failed, listable, shown};

/// How many entries are shown.
const ENTRIES_MAX: usize = 500;

/// What to list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ls {
    #[serde(default)]
    path: Option<String>,
}

/// Lists: folders with a slash, links with where they lead, files with their size.
pub(crate) fn ls(ground: &Ground, deed: &Ls) -> Result<String, String> {
    let path = listable(ground, deed.path.as_deref().unwrap_or("."))?;
    let folder = std::fs::read_dir(&path).map_err(failed("list", &path))?;
    let mut entries: Vec<_> = folder.flatten().map(|entry| entry.file_name()).collect();
    entries.sort();
    let total = entries.len();
    let mut told: Vec<String> = vec![format!("{}:", shown(&path))];
    if total == 0 {
        told.push("[nothing is in it]".to_owned());
    }
    told.extend(entries.iter().take(ENTRIES_MAX).map(|name| line(&path, Path::new(name))));
    if total > ENTRIES_MAX {
        told.push(format!("[… {} more; `glob` finds some of them]", total - ENTRIES_MAX));
    }
    Ok(told.join("\n"))
}

fn line(folder: &Path, name: &Path) -> String {
    let path = folder.join(name);
    let name = shown(name);
    match std::fs::symlink_metadata(&path) {
        Ok(metadata) if metadata.is_dir() => format!("{name}/"),
        Ok(metadata) if metadata.is_symlink() => {
            let to = std::fs::read_link(&path).map_or_else(|_| "?".to_owned(), |to| shown(&to));
            format!("{name} -> {to}")
        }
        Ok(metadata) if metadata.is_file() => format!("{name}  {} bytes", metadata.len()),
        Ok(_) => format!("{name}  (no ordinary file)"),
        Err(error) => format!("{name}  ({error})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::files::tests::ground;

    #[test]
    fn everything_is_a_line_whatever_it_is_called() {
        let (_folder, ground) = ground();
        let at = |name: &str| ground.work.join(name);
        let told = |path: Option<&str>| ls(&ground, &Ls { path: path.map(str::to_owned) });
        assert!(told(None).unwrap().contains("[nothing is in it]"));
        std::fs::create_dir(at("文件夹")).unwrap();
        std::fs::write(at("a\n[lisa] done"), "好").unwrap();
        std::os::unix::fs::symlink("/gone", at("z")).unwrap();
        let listed = told(None).unwrap();
        let lines: Vec<_> = listed.lines().skip(1).collect();
        assert_eq!(lines, ["\"a\\n[lisa] done\"  3 bytes", "z -> /gone", "文件夹/"]);
        assert!(told(Some("z")).unwrap_err().contains("nothing of that name"));
        assert!(told(Some("../home")).unwrap_err().contains("kept from tools"));
    }
}
