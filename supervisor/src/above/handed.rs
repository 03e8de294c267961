//! The descriptors that were handed to us, taken by their numbers: the one place where that is done.
//!
//! Each is closed to our children at once, also those we have no use for.

use std::{
    fs::File,
    io::{self, Write as _},
    os::{
        fd::{BorrowedFd, FromRawFd as _, OwnedFd},
        unix::net::UnixListener,
    },
    path::{Path, PathBuf},
};

use nix::{
    fcntl::{FcntlArg, FdFlag, OFlag, fcntl},
    sys::socket::{SockType, getsockopt, sockopt},
};
use tracing::warn;

/// Where handed-over sockets begin.
const FIRST: i32 = 3;
/// What the chat socket is called (`FileDescriptorName=`).
const CHAT: &str = "chat";

/// What was handed over cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HandedError {
    #[error(
        "{count} sockets were handed over and none is named `{CHAT}`; name one so (FileDescriptorName={CHAT}), or hand over one only"
    )]
    Unnamed { count: usize },
    #[error("the chat socket that was handed over (descriptor {number}) cannot be used: {why}")]
    Unfit { number: i32, why: String },
    #[error("`--ready-fd {number}` names a standard stream; name a descriptor from 3 on")]
    Standard { number: i32 },
    #[error("`--ready-fd {number}` names a socket that was handed over; name another descriptor")]
    Socket { number: i32 },
    #[error(
        "`--ready-fd {number}` names a descriptor that is not open; have the process manager hand it over (s6: a file `notification-fd` with that number)"
    )]
    NotOpen { number: i32, source: io::Error },
}

/// A chat socket that somebody else made, and where it lies.
#[derive(Debug)]
pub(crate) struct Chat {
    pub(crate) listener: UnixListener,
    pub(crate) path: PathBuf,
}

/// Takes the sockets with these names, and returns the one for the chat.
pub(crate) fn chat(names: &[String]) -> Result<Option<Chat>, HandedError> {
    let chosen = choose(names)?;
    let mut chat = None;
    for (index, number) in (0..names.len()).zip(FIRST..) {
        let taken = adopt(number);
        if Some(index) == chosen {
            let listener = taken.map(UnixListener::from).map_err(|error| error.to_string());
            let unfit = |why| HandedError::Unfit { number, why };
            chat = Some(listener.and_then(listening_somewhere).map_err(unfit)?);
        } else {
            warn!(
                number,
                name = names[index],
                "a descriptor was handed over that we have no use for; closing it"
            );
        }
    }
    Ok(chat)
}

/// Which of the sockets is the chat's: the one named so, or the only one.
fn choose(names: &[String]) -> Result<Option<usize>, HandedError> {
    match (names.iter().position(|name| name == CHAT), names.len()) {
        (Some(index), _) => Ok(Some(index)),
        (None, 0) => Ok(None),
        (None, 1) => Ok(Some(0)),
        (None, count) => Err(HandedError::Unnamed { count }),
    }
}

fn listening_somewhere(listener: UnixListener) -> Result<Chat, String> {
    let address = listener.local_addr().map_err(|error| format!("it is no Unix socket ({error})"))?;
    let stream = getsockopt(&listener, sockopt::SockType) == Ok(SockType::Stream);
    if !stream || getsockopt(&listener, sockopt::AcceptConn) != Ok(true) {
        return Err("it is no stream socket that listens (ListenStream=)".to_owned());
    }
    let Some(path) = address.as_pathname().map(Path::to_owned) else {
        return Err(
            "it lies at no path, by which clients could find it (ListenStream=%h/.lisa/run/chat.sock)"
                .to_owned(),
        );
    };
    listener.set_nonblocking(true).map_err(|error| error.to_string())?;
    Ok(Chat { listener, path })
}

/// A descriptor on which a newline says that we are ready (s6: `notification-fd`).
#[derive(Debug)]
pub(crate) struct ReadyPipe(File);

/// Takes the descriptor `number`, of which the first `sockets` from 3 on are taken already.
pub(crate) fn ready(number: i32, sockets: usize) -> Result<ReadyPipe, HandedError> {
    if number < FIRST {
        return Err(HandedError::Standard { number });
    }
    if usize::try_from(number - FIRST).is_ok_and(|index| index < sockets) {
        return Err(HandedError::Socket { number });
    }
    let taken = adopt(number).and_then(|descriptor| {
        let flags = OFlag::from_bits_retain(fcntl(&descriptor, FcntlArg::F_GETFL)?);
        fcntl(&descriptor, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
        Ok(ReadyPipe(descriptor.into()))
    });
    taken.map_err(|source| HandedError::NotOpen { number, source })
}

impl ReadyPipe {
    /// Says that we are ready; the descriptor is closed with that.
    pub(crate) fn say(self) {
        let Self(mut file) = self;
        if let Err(error) = file.write_all(b"\n") {
            warn!(%error, "whoever wanted to hear on --ready-fd that we are ready cannot be told");
        }
    }
}

/// Takes a descriptor that was open when we were started, and closes it to our children.
fn adopt(number: i32) -> io::Result<OwnedFd> {
    #[expect(
        unsafe_code,
        reason = "whether it is open is asked of the kernel in the next line, which is all it is used for"
    )]
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    fcntl(borrowed, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
    #[expect(
        unsafe_code,
        reason = "it is open; `Above::take` runs before anything of ours is opened, and takes each number once, so that nobody else owns it"
    )]
    let owned = unsafe { OwnedFd::from_raw_fd(number) };
    Ok(owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn the_chat_socket_is_the_one_named_so_or_the_only_one() {
        let chosen = |of: &[&str]| choose(&names(of)).map_err(|error| error.to_string());
        assert_eq!(chosen(&[]), Ok(None));
        assert_eq!(chosen(&["lisa.socket"]), Ok(Some(0)));
        assert_eq!(chosen(&["web", "chat"]), Ok(Some(1)));
        assert!(chosen(&["web", ""]).unwrap_err().contains("2 sockets"));
    }

    #[test]
    fn a_socket_that_nobody_could_reach_is_refused_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("chat.sock");
        let listener = UnixListener::bind(&path).unwrap();
        assert_eq!(listening_somewhere(listener).unwrap().path, path);
        let why = |descriptor: OwnedFd| listening_somewhere(descriptor.into()).unwrap_err();
        assert!(why(std::net::TcpListener::bind("127.0.0.1:0").unwrap().into()).contains("no Unix socket"));
        let (one, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(why(one.into()).contains("ListenStream"));
        let datagram = std::os::unix::net::UnixDatagram::bind(folder.path().join("d")).unwrap();
        assert!(why(datagram.into()).contains("ListenStream"));
    }

    #[test]
    fn a_number_that_cannot_be_meant_is_refused() {
        let said = |number, sockets| ready(number, sockets).unwrap_err().to_string();
        assert!(said(2, 0).contains("standard stream"));
        assert!(said(-1, 0).contains("standard stream"));
        assert!(said(4, 2).contains("handed over"));
        assert!(said(1_000_000, 0).contains("not open"));
    }
}
