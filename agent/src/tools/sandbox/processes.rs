//! The processes there are, as the kernel lists them.

use std::{collections::BTreeMap, fs};

/// The parents of all processes.
pub(super) fn parents() -> BTreeMap<i32, i32> {
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| Some((pid, parent(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?)))
        .collect()
}

/// The children of `of`.
pub(super) fn children(parents: &BTreeMap<i32, i32>, of: i32) -> Vec<i32> {
    parents.iter().filter(|(_, parent)| **parent == of).map(|(pid, _)| *pid).collect()
}

/// How many processes there are below `of`, at whatever depth.
pub(super) fn descendants(parents: &BTreeMap<i32, i32>, of: i32) -> usize {
    let is_below = |pid: &i32| {
        let mut pid = *pid;
        // as long as there are parents, and no longer than a circle would be, which a list read over time may hold
        for _ in 0..parents.len() {
            match parents.get(&pid) {
                Some(parent) if *parent == of => return true,
                Some(parent) => pid = *parent,
                None => return false,
            }
        }
        false
    };
    parents.keys().filter(|pid| is_below(pid)).count()
}

/// How many processes and threads this user has.
#[cfg(target_os = "linux")]
pub(super) fn tasks_of_ours() -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    let ours = rustix::process::getuid().as_raw();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let of_ours = entries.filter(|entry| {
        let is_pid = entry.file_name().to_str().is_some_and(|name| name.parse::<u32>().is_ok());
        is_pid && entry.metadata().is_ok_and(|metadata| metadata.uid() == ours)
    });
    let tasks = of_ours.map(|entry| fs::read_dir(entry.path().join("task")).map_or(0, Iterator::count));
    tasks.fold(0, |all, tasks| all.saturating_add(u64::try_from(tasks).unwrap_or(u64::MAX)))
}

/// The parent in a line of `stat`. A name may hold anything, so it is read from behind.
fn parent(stat: &str) -> Option<i32> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_spaces_hides_no_parent() {
        assert_eq!(parent("12 (a) 7 (b) c) S 34 12 12"), Some(34));
        assert_eq!(parent("12 (a"), None);
    }

    #[test]
    fn descendants_are_counted_at_every_depth_and_a_circle_ends() {
        let parents = BTreeMap::from([(2, 1), (3, 2), (4, 3), (5, 9), (6, 7), (7, 6)]);
        assert_eq!((descendants(&parents, 1), descendants(&parents, 3), descendants(&parents, 8)), (3, 1, 0));
        assert_eq!(children(&parents, 2), [3]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn we_are_among_them() {
        let ours = i32::try_from(std::process::id()).unwrap();
        assert!(parents().contains_key(&ours) && tasks_of_ours() > 1);
    }
}
