//! What a confined process gives up besides: rights of the superuser, open files of others, and more than its share.

use std::io;

/// The largest file it may write.
const FILE_BYTES_MAX: u64 = 8 * 1024 * 1024 * 1024;
/// How many files it may have open.
const OPEN_MAX: u64 = 4096;
/// How many processes and threads more than there are of this user it may start. The kernel does not hold the superuser to
/// it; the guard counts as well.
const PROCESSES_MORE: u64 = 512;

/// Takes the limits.
#[cfg(target_os = "linux")]
pub(super) fn take() -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let lower = |resource, to: u64| {
        let to = getrlimit(resource).maximum.map_or(to, |hard| hard.min(to));
        setrlimit(resource, Rlimit { current: Some(to), maximum: Some(to) })
    };
    lower(Resource::Core, 0)?;
    lower(Resource::Fsize, FILE_BYTES_MAX)?;
    lower(Resource::Nofile, OPEN_MAX)?;
    lower(Resource::Nproc, super::processes::tasks_of_ours().saturating_add(PROCESSES_MORE))?;
    close_the_rest()?;
    drop_rights()
}

/// Nothing is taken where the system is another.
#[cfg(not(target_os = "linux"))]
pub(super) fn take() -> io::Result<()> {
    let _ = (FILE_BYTES_MAX, OPEN_MAX, PROCESSES_MORE);
    Ok(())
}

/// Whatever is open beside the three goes no further. All of ours closes by itself; what a shell had open when it started
/// the supervisor does not.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "there is no safe way to name a descriptor that somebody else opened")]
fn close_the_rest() -> io::Result<()> {
    use std::os::fd::BorrowedFd;
    for entry in std::fs::read_dir("/proc/self/fd")?.flatten() {
        let Some(number) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        if number > 2 {
            // SAFETY: the kernel has just named it as open, and no other thread runs that could close it
            let open = unsafe { BorrowedFd::borrow_raw(number) };
            rustix::io::fcntl_setfd(open, rustix::io::FdFlags::CLOEXEC)?;
        }
    }
    Ok(())
}

/// Of the superuser's rights those over files of one's own stay, which package tools need; with no new privileges no
/// program gets the others back.
#[cfg(target_os = "linux")]
fn drop_rights() -> io::Result<()> {
    use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_no_new_privs};
    set_no_new_privs(true)?;
    let kept = CapabilitySet::CHOWN
        | CapabilitySet::DAC_OVERRIDE
        | CapabilitySet::FOWNER
        | CapabilitySet::FSETID
        | CapabilitySet::SETGID
        | CapabilitySet::SETUID;
    let has = capabilities(None)?;
    let keep = CapabilitySets {
        effective: has.effective & kept,
        permitted: has.permitted & kept,
        inheritable: CapabilitySet::empty(),
    };
    Ok(set_capabilities(None, keep)?)
}
