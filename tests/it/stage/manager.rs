//! What stands above: a process manager that listens on a notification socket, and real ones where they are installed.

use std::{
    io::IoSliceMut,
    os::{
        fd::{AsRawFd as _, OwnedFd},
        unix::net::UnixDatagram,
    },
    path::Path,
    process::Command,
    time::Instant,
};

use nix::sys::socket::{MsgFlags, UnixAddr, recvmsg};

use super::secs;

/// One who listens as systemd does.
pub(crate) struct Manager {
    socket: UnixDatagram,
    /// Everything heard so far, one message an entry.
    pub(crate) heard: Vec<String>,
}

impl Manager {
    /// Listens at a path.
    pub(crate) fn at(path: &Path) -> Self {
        Self::on(UnixDatagram::bind(path).unwrap())
    }

    /// Listens under an abstract name.
    pub(crate) fn named(name: &str) -> Self {
        use std::os::linux::net::SocketAddrExt as _;
        let address = std::os::unix::net::SocketAddr::from_abstract_name(name).unwrap();
        Self::on(UnixDatagram::bind_addr(&address).unwrap())
    }

    fn on(socket: UnixDatagram) -> Self {
        socket.set_read_timeout(Some(secs(1) / 50)).unwrap();
        Self { socket, heard: Vec::new() }
    }

    /// Takes one message, if there is one; a descriptor that comes with it is closed, which is what a barrier waits for.
    pub(crate) fn listen(&mut self) -> Option<String> {
        let mut room = [0; 4096];
        let mut descriptors = nix::cmsg_space!([OwnedFd; 4]);
        let message = {
            let mut slices = [IoSliceMut::new(&mut room)];
            let flags = MsgFlags::MSG_CMSG_CLOEXEC;
            let message =
                recvmsg::<UnixAddr>(self.socket.as_raw_fd(), &mut slices, Some(&mut descriptors), flags)
                    .ok()?;
            for control in message.cmsgs().unwrap() {
                if let nix::sys::socket::ControlMessageOwned::ScmRights(numbers) = control {
                    for number in numbers {
                        nix::unistd::close(number).unwrap();
                    }
                }
            }
            message.bytes
        };
        let said = String::from_utf8(room[..message].to_vec()).unwrap();
        self.heard.push(said.clone());
        Some(said)
    }

    /// Waits for a message that begins so.
    #[track_caller]
    pub(crate) fn hears(&mut self, beginning: &str) -> String {
        let end = Instant::now() + secs(20);
        loop {
            if let Some(said) = self.listen().filter(|said| said.starts_with(beginning)) {
                return said;
            }
            assert!(Instant::now() < end, "it is never told `{beginning}`, but {:?}", self.heard);
        }
    }

    /// Takes what is there.
    pub(crate) fn drain(&mut self) {
        while self.listen().is_some() {}
    }
}

/// A program that is not ours, where it is installed; else the reason why the test cannot be is printed.
pub(crate) fn installed(program: &str) -> Option<Command> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let found =
        std::env::split_paths(&folders).map(|folder| folder.join(program)).find(|path| path.is_file());
    if found.is_none() {
        eprintln!("skipped: `{program}` is not installed");
    }
    #[expect(clippy::disallowed_methods, reason = "what is not ours is run here")]
    found.map(Command::new)
}
