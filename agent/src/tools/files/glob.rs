//! `glob`: which files there are of a name.

use serde::{Deserialize, Serialize};

use super::{Ground, listable, shown, shown_below, walk};

/// How many paths are shown.
const PATHS_MAX: usize = 500;

/// What to find.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Glob {
    pattern: String,
    #[serde(default)]
    path: Option<String>,
}

/// Finds.
pub(crate) fn glob(ground: &Ground, deed: &Glob) -> Result<String, String> {
    let pattern = walk::pattern(&deed.pattern)?;
    let folder = listable(ground, deed.path.as_deref().unwrap_or("."))?;
    if !folder.is_dir() {
        return Err(format!("{} is no folder", shown(&folder)));
    }
    let (mut found, mut more) = (Vec::new(), 0_usize);
    let walked = walk::files(ground, &folder, |path| {
        if pattern.is_match(path.strip_prefix(&folder).unwrap_or(path)) {
            if found.len() < PATHS_MAX {
                found.push(shown_below(path, &folder));
            } else {
                more += 1;
            }
        }
        true
    });
    if found.is_empty() {
        found.push(format!("[no file below {} is called `{}`]", shown(&folder), deed.pattern));
    }
    if more > 0 {
        found.push(format!("[… {more} more]"));
    }
    found.extend(walked.told());
    Ok(found.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::files::tests::ground;

    #[test]
    fn names_are_found_at_any_depth_and_what_is_ignored_is_not() {
        let (_folder, ground) = ground();
        for (name, text) in [
            ("a.rs", ""),
            ("源/b.rs", ""),
            ("源/.hidden.rs", ""),
            ("target/c.rs", ""),
            (".git/d.rs", ""),
            (".gitignore", "target/\n"),
        ] {
            let path = ground.work.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        std::os::unix::fs::symlink(ground.work.join("../home"), ground.work.join("link")).unwrap();
        let found = |pattern: &str, path: Option<&str>| {
            glob(&ground, &Glob { pattern: pattern.into(), path: path.map(str::to_owned) })
        };
        assert_eq!(found("*.rs", None).unwrap(), "a.rs\n源/.hidden.rs\n源/b.rs");
        assert_eq!(found("*/b.rs", None).unwrap(), "源/b.rs");
        assert_eq!(found("b*", Some("源")).unwrap(), "b.rs");
        assert!(found("*.env", None).unwrap().contains("no file"));
        assert!(found("[", None).unwrap_err().contains("no pattern"));
        assert!(found("*", Some("link")).unwrap_err().contains("kept from tools"));
        // a folder above the home is walked around it
        assert!(!found("*.env", Some("..")).unwrap().contains("config.env"));
    }
}
