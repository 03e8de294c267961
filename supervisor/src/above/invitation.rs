//! What a process manager says to us in the environment, as `sd_notify(3)`, `sd_watchdog_enabled(3)` and `sd_listen_fds(3)` have it.
//!
//! What is meant for another process (`WATCHDOG_PID`, `LISTEN_PID`) is not meant for us. What makes no sense is ignored
//! and said: a start must not fail for a courtesy.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt as _,
    path::PathBuf,
    time::Duration,
};

/// More sockets than this are no socket activation of ours.
const SOCKETS_MAX: usize = 64;

/// Where a manager listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    /// A socket in the file system.
    Path(PathBuf),
    /// A name without a file, of Linux.
    Abstract(Vec<u8>),
}

/// What a manager wants.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Invitation {
    /// Where it wants to hear how we are.
    pub(crate) notify: Option<Address>,
    /// Within what time it wants a sign of life again.
    pub(crate) watchdog: Option<Duration>,
    /// The names of the sockets it handed over, the first of which is descriptor 3.
    pub(crate) sockets: Vec<String>,
    /// What was not understood.
    pub(crate) ignored: Vec<String>,
}

impl Invitation {
    /// Reads the variables, as the process `pid`.
    pub(crate) fn read(variable: impl Fn(&str) -> Option<OsString>, pid: u32) -> Self {
        let mut ignored = Vec::new();
        let mut ignore = |name: &str, value: &OsStr, why: &str| {
            ignored.push(format!("{name} is `{}`, {why}; ignoring it", value.to_string_lossy()));
        };
        let given = |name: &str| variable(name).filter(|value| !value.is_empty());
        let number = |name: &str| given(name).and_then(|value| value.to_str()?.parse::<u64>().ok());
        let for_us = |name: &str| number(name) == Some(pid.into());

        let notify = given("NOTIFY_SOCKET").and_then(|value| {
            let address = address(&value);
            if address.is_none() {
                ignore("NOTIFY_SOCKET", &value, "which is neither a path nor an abstract name");
            }
            address
        });
        let watchdog = given("WATCHDOG_USEC").and_then(|value| {
            let micros = number("WATCHDOG_USEC").filter(|micros| *micros > 0);
            if micros.is_none() {
                ignore("WATCHDOG_USEC", &value, "which is no number of microseconds");
            }
            micros.filter(|_| given("WATCHDOG_PID").is_none() || for_us("WATCHDOG_PID"))
        });
        let sockets = given("LISTEN_FDS").filter(|_| for_us("LISTEN_PID")).map(|value| {
            let count = number("LISTEN_FDS").and_then(|count| usize::try_from(count).ok());
            let Some(count) = count.filter(|count| *count <= SOCKETS_MAX) else {
                ignore("LISTEN_FDS", &value, "which is no number of sockets");
                return Vec::new();
            };
            let names = given("LISTEN_FDNAMES").unwrap_or_default();
            let mut names = names.to_str().unwrap_or_default().split(':').map(str::to_owned);
            (0..count).map(|_| names.next().unwrap_or_default()).collect()
        });
        Self {
            notify,
            watchdog: watchdog.map(Duration::from_micros),
            sockets: sockets.unwrap_or_default(),
            ignored,
        }
    }
}

fn address(value: &OsStr) -> Option<Address> {
    match value.as_bytes() {
        [b'/', ..] => Some(Address::Path(PathBuf::from(value))),
        [b'@', name @ ..] if !name.is_empty() => Some(Address::Abstract(name.to_vec())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Invitation {
        let given = |name: &str| variables.iter().find(|(is, _)| *is == name).map(|(_, value)| value.into());
        Invitation::read(given, 7)
    }

    #[test]
    fn without_a_manager_nothing_is_wanted() {
        assert_eq!(read(&[]), Invitation::default());
        assert_eq!(read(&[("NOTIFY_SOCKET", ""), ("LISTEN_FDS", "")]), Invitation::default());
    }

    #[test]
    fn a_manager_listens_on_a_path_or_under_an_abstract_name() {
        let check = |value: &str, expected: Option<Address>| {
            let read = read(&[("NOTIFY_SOCKET", value)]);
            assert_eq!(read.ignored.is_empty(), expected.is_some(), "{value}");
            assert_eq!(read.notify, expected, "{value}");
        };
        check("/run/灯 塔/notify", Some(Address::Path("/run/灯 塔/notify".into())));
        check("@/org/x", Some(Address::Abstract(b"/org/x".to_vec())));
        check("@", None);
        check("vsock:2:1234", None);
        check("relative", None);
    }

    #[test]
    fn a_watchdog_for_another_process_is_not_ours() {
        let check = |usec: &str, pid: &str, expected: Option<u64>| {
            let read = read(&[("WATCHDOG_USEC", usec), ("WATCHDOG_PID", pid)]);
            assert_eq!(read.watchdog, expected.map(Duration::from_micros), "{usec} {pid}");
        };
        check("30000000", "", Some(30_000_000));
        check("30000000", "7", Some(30_000_000));
        check("30000000", "8", None);
        check("30000000", "x", None);
        check("0", "", None);
        check("soon", "", None);
        assert!(read(&[("WATCHDOG_USEC", "soon")]).ignored[0].contains("`soon`"));
    }

    #[test]
    fn sockets_for_another_process_are_not_ours() {
        let check = |pid: &str, count: &str, names: &str, expected: &[&str]| {
            let read = read(&[("LISTEN_PID", pid), ("LISTEN_FDS", count), ("LISTEN_FDNAMES", names)]);
            assert_eq!(read.sockets, expected, "{pid} {count} {names}");
        };
        check("7", "1", "chat", &["chat"]);
        check("7", "2", "chat", &["chat", ""]);
        check("7", "1", "a:chat", &["a"]);
        check("8", "1", "chat", &[]);
        check("", "1", "chat", &[]);
        check("7", "-1", "", &[]);
        check("7", "4000000000", "", &[]);
    }
}
