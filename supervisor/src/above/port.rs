//! The socket on which a process manager hears how we are (`sd_notify(3)`): one datagram, one message.
//!
//! Nothing here waits. A datagram that finds no room is lost and said so once, and what it said is said again with the
//! next change or sign of life.

use std::{
    io::IoSlice,
    os::{
        fd::{AsFd as _, AsRawFd as _, RawFd},
        unix::net::UnixDatagram,
    },
    time::Duration,
};

use nix::sys::socket::{ControlMessage, MsgFlags, UnixAddr, sendmsg};
use tokio::{io::AsyncReadExt as _, net::unix::pipe, time::timeout};
use tracing::{debug, warn};

use super::{
    invitation::Address,
    words::{Word, datagram},
};

/// What we say to it goes here.
#[derive(Debug)]
pub(crate) struct Port {
    socket: UnixDatagram,
    address: UnixAddr,
    /// Whether the last message was lost; only the first of several is said.
    lost: bool,
}

impl Port {
    /// A port to a manager that listens there; nothing where there cannot be one.
    pub(crate) fn to(address: &Address) -> Option<Self> {
        let opened = unix(address).and_then(|address| {
            let socket = UnixDatagram::unbound()?;
            socket.set_nonblocking(true)?;
            Ok(Self { socket, address, lost: false })
        });
        opened
            .inspect_err(|error| warn!(%error, ?address, "the process manager cannot be told how we are"))
            .ok()
    }

    /// Says this, in one datagram.
    pub(crate) fn say(&mut self, words: &[Word]) {
        if words.is_empty() {
            return;
        }
        let said = self.send(&datagram(words), &[]);
        match said {
            Ok(()) => self.lost = false,
            Err(error) if self.lost => debug!(%error, "the process manager does not listen"),
            Err(error) => {
                warn!(%error, "the process manager does not listen");
                self.lost = true;
            }
        }
    }

    /// Waits until the manager has worked through what was said before: it closes the descriptor that it is sent here.
    pub(crate) async fn barrier(&mut self, patience: Duration) {
        let Ok((ours, mut until)) = pipe::pipe() else { return };
        let sent = self.send(&datagram(&[Word::Barrier]), &[ours.as_fd().as_raw_fd()]);
        drop(ours);
        if sent.is_ok() && timeout(patience, until.read(&mut [0])).await.is_err() {
            debug!("the process manager has not worked through what it was told");
        }
    }

    fn send(&self, text: &str, descriptors: &[RawFd]) -> nix::Result<()> {
        let rights = [ControlMessage::ScmRights(descriptors)];
        let rights = if descriptors.is_empty() { &[][..] } else { &rights };
        let text = [IoSlice::new(text.as_bytes())];
        let to = Some(&self.address);
        sendmsg(self.socket.as_raw_fd(), &text, rights, MsgFlags::empty(), to).map(drop)
    }
}

fn unix(address: &Address) -> std::io::Result<UnixAddr> {
    Ok(match address {
        Address::Path(path) => UnixAddr::new(path)?,
        #[cfg(target_os = "linux")]
        Address::Abstract(name) => UnixAddr::new_abstract(name)?,
        #[cfg(not(target_os = "linux"))]
        Address::Abstract(_) => return Err(std::io::ErrorKind::Unsupported.into()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manager_that_does_not_read_costs_us_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let manager = UnixDatagram::bind(&path).unwrap();
        let mut port = Port::to(&Address::Path(path)).unwrap();
        for _ in 0..100_000 {
            port.say(&[Word::Watchdog]);
            if port.lost {
                break;
            }
        }
        assert!(port.lost, "its queue is full, and we are here");
        let mut room = [0; 64];
        let read = manager.recv(&mut room).unwrap();
        assert_eq!(&room[..read], b"WATCHDOG=1");
        port.say(&[Word::Watchdog]);
        assert!(!port.lost, "it listens again");
    }

    #[test]
    fn one_that_is_not_there_costs_nothing_either() {
        let folder = tempfile::tempdir().unwrap();
        let mut port = Port::to(&Address::Path(folder.path().join("gone"))).unwrap();
        port.say(&[Word::Ready]);
        assert!(port.lost);
        assert!(Port::to(&Address::Path(format!("/{}", "x".repeat(200)).into())).is_none());
    }
}
