//! Authority: whether a client is a person's program, or something that Lisa herself has started.
//!
//! What only a person may do is lent to a peer that we did not start: neither it nor any process above it is ours. Where
//! that cannot be found out nothing is lent.

/// How many processes may be above one; more is no honest tree.
const DEPTH_MAX: usize = 128;

/// Whether the peer of that pid was started by a person.
pub(crate) fn is_a_persons(peer: Option<i32>) -> bool {
    let ours = i32::try_from(std::process::id()).unwrap_or_default();
    peer.is_some_and(|peer| is_none_of(ours, peer, parent))
}

/// Whether neither `peer` nor anything above it is `ours`.
fn is_none_of(ours: i32, peer: i32, parent: impl Fn(i32) -> Option<i32>) -> bool {
    let mut pid = peer;
    for _ in 0..DEPTH_MAX {
        if pid == ours {
            return false;
        }
        match parent(pid) {
            // the top of the tree, or of the part of it that this container sees
            Some(0) => return true,
            Some(above) => pid = above,
            None => return false,
        }
    }
    false
}

/// The parent of a process, as the kernel names it: the second field behind the name, which may hold anything.
pub(crate) fn parent(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, behind) = stat.rsplit_once(')')?;
    behind.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_below_us_is_a_person() {
        // 1 ─ 10 (a shell) ─ 11 (its client) and 1 ─ 20 (us) ─ 21 (a child) ─ 22 (a tool of hers)
        let tree = |pid: i32| match pid {
            1 => Some(0),
            10 | 20 => Some(1),
            11 => Some(10),
            21 => Some(20),
            22 => Some(21),
            30 => Some(31),
            31 => Some(30),
            _ => None,
        };
        let check = |peer: i32, person: bool| assert_eq!(is_none_of(20, peer, tree), person, "{peer}");
        check(11, true);
        check(10, true);
        check(20, false);
        check(21, false);
        check(22, false);
        check(30, false);
        check(99, false);
        assert!(!is_a_persons(None));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_kernel_names_our_parent() {
        let pid = i32::try_from(std::process::id()).unwrap();
        let above = i32::try_from(std::os::unix::process::parent_id()).unwrap();
        assert_eq!(parent(pid), Some(above));
        assert!(!is_a_persons(Some(pid)));
    }
}
