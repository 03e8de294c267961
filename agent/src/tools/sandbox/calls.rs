//! The system calls that a confined process is refused: sockets that lead to other processes of the machine, and what
//! would lead around the rules for files.
//!
//! A list of what is denied, since one of what is allowed breaks with every new libc. What is denied answers `EPERM`;
//! `clone3` answers `ENOSYS`, because its flags cannot be seen here, and every libc then asks for `clone`.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

/// What has no place in a tool: other processes' memory, mounts and namespaces, the kernel's own interfaces, and ways to
/// ask for any of it without a system call of that name.
const DENIED: [libc::c_long; 54] = [
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_semget,
    libc::SYS_msgget,
    libc::SYS_shmget,
];
/// The namespaces that `clone` can make.
const NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];
/// The kinds of sockets there are where the network is open; netlink, because names are looked up with it.
const FAMILIES: [libc::c_int; 3] = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
/// On x86-64 every call has a second number, for programs with short pointers.
#[cfg(target_arch = "x86_64")]
const SHORT_POINTERS: i64 = 0x4000_0000;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// The filters for a process that may use the network, or may not, each to be applied.
pub(super) fn filters(network: bool) -> Result<Vec<BpfProgram>, BackendError> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let errno = |code: libc::c_int| SeccompAction::Errno(code.unsigned_abs());
    let filter = |rules, action| SeccompFilter::new(rules, SeccompAction::Allow, action, arch)?.try_into();
    let unseen: Rules = doubled([(libc::SYS_clone3, Vec::new())].into());
    Ok(vec![filter(doubled(denied(network)?), errno(libc::EPERM))?, filter(unseen, errno(libc::ENOSYS))?])
}

/// Makes the filters those of this thread and of whatever it starts.
pub(super) fn apply(network: bool) -> Result<(), String> {
    let said =
        |error: &dyn std::fmt::Display| format!("the kernel refused the filter of system calls: {error}");
    for filter in filters(network).map_err(|error| said(&error))? {
        seccompiler::apply_filter(&filter).map_err(|error| said(&error))?;
    }
    Ok(())
}

fn denied(network: bool) -> Result<Rules, BackendError> {
    let argument = |index, op, value| SeccompCondition::new(index, SeccompCmpArgLen::Dword, op, value);
    let number = |value: libc::c_int| u64::from(value.unsigned_abs());
    let mut rules: Rules = DENIED.map(|call| (call, Vec::new())).into();
    // a socket of a kind that is not among those allowed
    let families: &[libc::c_int] = if network { &FAMILIES } else { &[] };
    let other = families.iter().map(|family| argument(0, SeccompCmpOp::Ne, number(*family)));
    let other = other.collect::<Result<Vec<_>, _>>()?;
    let socket = if other.is_empty() { Vec::new() } else { vec![SeccompRule::new(other)?] };
    rules.insert(libc::SYS_socket, socket);
    // a pair reaches nobody, unless it is one of datagrams, which can be sent elsewhere
    let datagrams = argument(1, SeccompCmpOp::MaskedEq(0xf), number(libc::SOCK_DGRAM))?;
    rules.insert(libc::SYS_socketpair, vec![SeccompRule::new(vec![datagrams])?]);
    let namespaces = NAMESPACES.map(|flag| {
        let flag = number(flag);
        SeccompRule::new(vec![argument(0, SeccompCmpOp::MaskedEq(flag), flag)?])
    });
    rules.insert(libc::SYS_clone, namespaces.into_iter().collect::<Result<_, _>>()?);
    // typing into somebody's terminal
    let typing = argument(1, SeccompCmpOp::Eq, libc::TIOCSTI)?;
    rules.insert(libc::SYS_ioctl, vec![SeccompRule::new(vec![typing])?]);
    #[cfg(target_arch = "x86_64")]
    for call in [libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_modify_ldt, libc::SYS_kexec_file_load] {
        rules.insert(call, Vec::new());
    }
    Ok(rules)
}

#[cfg(target_arch = "x86_64")]
fn doubled(rules: Rules) -> Rules {
    // three of those denied have a number of their own there
    let own: &[i64] = if rules.contains_key(&libc::SYS_ptrace) { &[521, 539, 540] } else { &[] };
    let own: Rules = own.iter().map(|call| (call | SHORT_POINTERS, Vec::new())).collect();
    let second: Rules = rules.iter().map(|(call, rule)| (call | SHORT_POINTERS, rule.clone())).collect();
    rules.into_iter().chain(second).chain(own).collect()
}

#[cfg(not(target_arch = "x86_64"))]
fn doubled(rules: Rules) -> Rules {
    rules
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{io::ErrorKind, net::UdpSocket, os::unix::net::UnixStream};

    /// Each on a thread of its own, which keeps what it gave up.
    #[test]
    fn sockets_are_those_of_the_net_or_none() {
        let check = |network: bool| {
            let confined = std::thread::spawn(move || {
                apply(network).unwrap();
                let denied = |error: std::io::Error| assert_eq!(error.kind(), ErrorKind::PermissionDenied);
                denied(UnixStream::connect("/nowhere").unwrap_err());
                denied(std::os::unix::net::UnixDatagram::pair().unwrap_err());
                UnixStream::pair().expect("a pair of streams reaches nobody");
                match UdpSocket::bind("127.0.0.1:0") {
                    Ok(_) => assert!(network),
                    Err(error) => {
                        assert!(!network, "{error}");
                        denied(error);
                    }
                }
                std::thread::spawn(|| ()).join().expect("threads are made without `clone3`");
            });
            confined.join().unwrap();
        };
        check(true);
        check(false);
    }

    #[test]
    fn both_numbers_of_a_call_are_denied() {
        let rules = doubled(denied(true).unwrap());
        assert!(rules.contains_key(&libc::SYS_ptrace) && rules.contains_key(&libc::SYS_socket));
        #[cfg(target_arch = "x86_64")]
        assert!(
            rules.contains_key(&(libc::SYS_socket | SHORT_POINTERS))
                && rules.contains_key(&(0x209 | SHORT_POINTERS))
        );
    }
}
