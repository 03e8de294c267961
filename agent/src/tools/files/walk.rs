//! Walking through a folder: in order, without what `.gitignore` leaves out, without following links, and not for ever.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use ignore::WalkBuilder;

use super::Ground;

/// How many entries are looked at.
const LOOKED_AT_MAX: usize = 300_000;

/// What a walk came to beside what it found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Walked {
    /// How many places could not be looked into.
    closed: usize,
    /// Whether there is more than is looked at.
    is_cut: bool,
}

impl Walked {
    /// What is to be said of it.
    pub(super) fn told(&self) -> Vec<String> {
        let closed = (self.closed > 0).then(|| format!("[{} places could not be read]", self.closed));
        let cut = self.is_cut.then(|| {
            format!("[no more than {LOOKED_AT_MAX} entries are looked at; name a folder further down]")
        });
        closed.into_iter().chain(cut).collect()
    }
}

/// Visits the ordinary files below `from`, or `from` itself, until `visit` says that it has enough.
pub(super) fn files(ground: &Ground, from: &Path, mut visit: impl FnMut(&Path) -> bool) -> Walked {
    let mut walked = Walked::default();
    let mut walk = WalkBuilder::new(from);
    // what a person's own git leaves out is theirs; what the folder itself leaves out is the folder's
    walk.hidden(false).git_global(false).follow_links(false).sort_by_file_name(std::ffi::OsStr::cmp);
    let hers: Vec<PathBuf> = ground.forbidden().to_vec();
    walk.filter_entry(move |entry| {
        entry.file_name() != ".git" && !hers.iter().any(|hers| entry.path().starts_with(hers))
    });
    for (entry, number) in walk.build().zip(1..) {
        if number > LOOKED_AT_MAX {
            walked.is_cut = true;
            break;
        }
        match entry {
            Ok(entry) if entry.file_type().is_some_and(|kind| kind.is_file()) => {
                if !visit(entry.path()) {
                    break;
                }
            }
            Ok(_) => {}
            Err(_) => walked.closed += 1,
        }
    }
    walked
}

/// A pattern for paths below a folder; one without a slash is for names at any depth.
pub(super) fn pattern(pattern: &str) -> Result<GlobMatcher, String> {
    let deep = if pattern.contains('/') { pattern.to_owned() } else { format!("**/{pattern}") };
    let glob = GlobBuilder::new(&deep).literal_separator(true).build();
    Ok(glob.map_err(|error| format!("`{pattern}` is no pattern: {}", error.kind()))?.compile_matcher())
}
