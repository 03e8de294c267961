//! Local sockets: claimed under a lock, in a folder that only we may enter, answered only to the same user.
//!
//! The rules, after what went wrong elsewhere:
//! - Probe, unlink and bind happen under an exclusive lock on `<socket>.lock`, which is held for life; without it
//!   nothing is ever unlinked (B1, B3).
//! - Nobody unlinks on the way out: the file may by then be another's (B2).
//! - The folder is ours, 0700, checked; the socket is 0600 from its first moment; the peer's user is asked of the
//!   kernel (B26).
//! - A path too long for a socket is refused by name before the kernel says `EINVAL` (B27, T35).
//! - A full backlog (`EAGAIN`) is waited out to a deadline (B25).

use std::{
    fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError},
    io,
    os::unix::fs::{
        DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
    },
    path::{Path, PathBuf},
    time::Duration,
};

use interprocess::{
    local_socket::{
        GenericFilePath, ListenerOptions, ToFsName as _,
        tokio::{Listener, Stream},
        traits::{StreamCommon as _, tokio::Listener as _, tokio::Stream as _},
    },
    os::unix::local_socket::ListenerOptionsExt as _,
};
use tokio::time::{Instant, sleep, timeout_at};

use crate::home::SOCKET_PATH_BYTES_MAX;

/// How long a claim waits for the lock of a predecessor that is on its way out.
const CLAIM_PATIENCE: Duration = Duration::from_secs(2);

/// Why a socket could not be claimed or reached. Each says what to do where that is not plain.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// The path does not fit into a socket address.
    #[error(
        "the socket path `{path}` has {bytes} bytes, {SOCKET_PATH_BYTES_MAX} at most; use a shorter home"
    )]
    PathTooLong {
        /// The path.
        path: PathBuf,
        /// Its length.
        bytes: usize,
    },
    /// The folder belongs to somebody else.
    #[error("the folder `{path}` belongs to user {owner}, not to us ({us}); remove it or use another home")]
    ForeignFolder {
        /// The folder.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
        /// Who we are.
        us: u32,
    },
    /// Something that is no socket lies where the socket should be.
    #[error("`{path}` is in the way and is no socket; move it away")]
    InTheWay {
        /// The path.
        path: PathBuf,
    },
    /// Another process serves here.
    #[error("another process holds `{path}`")]
    Held {
        /// The socket.
        path: PathBuf,
    },
    /// The peer is another user.
    #[error("the peer on `{path}` is user {peer}, not us ({us})")]
    ForeignPeer {
        /// The socket.
        path: PathBuf,
        /// Who called.
        peer: u32,
        /// Who we are.
        us: u32,
    },
    /// Nobody answers in time.
    #[error("nobody answers at `{path}`")]
    NobodyThere {
        /// The socket.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The system refused.
    #[error("could not {attempt} `{path}`")]
    Io {
        /// What was attempted.
        attempt: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

fn failed(attempt: &'static str, path: &Path) -> impl FnOnce(io::Error) -> EndpointError {
    let path = path.to_owned();
    move |source| EndpointError::Io { attempt, path, source }
}

/// The user this process acts as.
pub fn our_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Makes a folder that only we may enter, or makes sure that the one there is such.
pub fn private_folder(path: &Path) -> Result<(), EndpointError> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed("make the folder", path))?;
    let metadata = std::fs::metadata(path).map_err(failed("look at the folder", path))?;
    if metadata.uid() != our_uid() {
        return Err(EndpointError::ForeignFolder {
            path: path.to_owned(),
            owner: metadata.uid(),
            us: our_uid(),
        });
    }
    if metadata.mode() & 0o077 != 0 {
        std::fs::set_permissions(path, Permissions::from_mode(0o700))
            .map_err(failed("make private", path))?;
    }
    Ok(())
}

/// The right to serve on one socket path, held until it is dropped or the process dies.
#[derive(Debug)]
pub struct Claim {
    path: PathBuf,
    _lock: File,
}

impl Claim {
    /// Claims `path` as [`Claim::hold`] does, and removes what a dead one left behind.
    pub async fn take(path: &Path) -> Result<Self, EndpointError> {
        let claim = Self::hold(path).await?;
        claim.clear()?;
        Ok(claim)
    }

    /// Claims `path`: its folder is made private and its lock taken (a predecessor that is on its way out is waited for).
    /// What lies there stays: somebody may have made the socket for us.
    pub async fn hold(path: &Path) -> Result<Self, EndpointError> {
        let bytes = path.as_os_str().len();
        if bytes > SOCKET_PATH_BYTES_MAX {
            return Err(EndpointError::PathTooLong { path: path.to_owned(), bytes });
        }
        if let Some(folder) = path.parent() {
            private_folder(folder)?;
        }
        let lock = lock_file(&path.with_added_extension("lock"), CLAIM_PATIENCE)
            .await?
            .ok_or_else(|| EndpointError::Held { path: path.to_owned() })?;
        Ok(Self { path: path.to_owned(), _lock: lock })
    }

    /// Removes a socket that nobody serves any more, or a link to one; anything else that lies there is in the way.
    pub fn clear(&self) -> Result<(), EndpointError> {
        let path = &self.path;
        match std::fs::symlink_metadata(path) {
            Ok(metadata) if metadata.file_type().is_socket() || metadata.file_type().is_symlink() => {
                std::fs::remove_file(path).map_err(failed("remove the stale socket", path))
            }
            Ok(_) => Err(EndpointError::InTheWay { path: path.clone() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(failed("look at", path)(error)),
        }
    }

    /// What was claimed.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Takes the kernel lock of the file at `path`, making the file where there is none; `None` when somebody else still
/// holds it after `patience`. The lock lasts as long as the file is open, and dies with the process.
pub async fn lock_file(path: &Path, patience: Duration) -> Result<Option<File>, EndpointError> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map_err(failed("open the lock", path))?;
    let deadline = Instant::now() + patience;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                sleep(Duration::from_millis(10)).await;
            }
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(failed("lock", path)(error)),
        }
    }
}

/// A socket that is being served.
#[derive(Debug)]
pub struct Endpoint {
    listener: Listener,
    claim: Claim,
    place: Place,
}

/// Which file a socket is: another one of the same name is another socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    device: u64,
    inode: u64,
}

impl Place {
    /// What lies at `path` now.
    pub fn of(path: &Path) -> Option<Self> {
        let metadata = std::fs::symlink_metadata(path).ok()?;
        Some(Self { device: metadata.dev(), inode: metadata.ino() })
    }
}

fn bind(path: &Path) -> Result<(Listener, Place), EndpointError> {
    let name = path.to_fs_name::<GenericFilePath>().map_err(failed("name the socket", path))?;
    let options = ListenerOptions::new().name(name).reclaim_name(false).mode(0o600);
    let listener = options.create_tokio().map_err(failed("listen on", path))?;
    let gone = || failed("look at", path)(io::ErrorKind::NotFound.into());
    Ok((listener, Place::of(path).ok_or_else(gone)?))
}

/// What [`Endpoint::accept`] came to.
#[derive(Debug)]
pub enum Accepted {
    /// Somebody of our own user.
    Peer(Stream),
    /// Somebody who was turned away, and why.
    Refused(EndpointError),
}

impl Endpoint {
    /// Claims `path` and listens there.
    pub async fn listen(path: &Path) -> Result<Self, EndpointError> {
        let claim = Claim::take(path).await?;
        let (listener, place) = bind(path)?;
        Ok(Self { listener, claim, place })
    }

    /// Listens again where the socket's file was taken away by somebody; whether it had to. Who is connected stays so.
    ///
    /// The claim is still ours, so nobody else can be listening there by right.
    pub fn mend(&mut self) -> Result<bool, EndpointError> {
        let path = self.claim.path();
        if Place::of(path) == Some(self.place) {
            return Ok(false);
        }
        self.claim.clear()?;
        (self.listener, self.place) = bind(path)?;
        Ok(true)
    }

    /// Waits for a caller. An error is one of the system (descriptors have run out): back off and ask again (B24).
    pub async fn accept(&self) -> Result<Accepted, EndpointError> {
        let path = self.claim.path();
        let stream = self.listener.accept().await.map_err(failed("accept on", path))?;
        let peer = stream.peer_creds().map_err(failed("ask who calls on", path))?.euid();
        Ok(match peer {
            Some(peer) if peer == our_uid() => Accepted::Peer(stream),
            peer => Accepted::Refused(EndpointError::ForeignPeer {
                path: path.to_owned(),
                peer: peer.unwrap_or(u32::MAX),
                us: our_uid(),
            }),
        })
    }
}

/// Connects to `path` before `deadline`; a full backlog is waited out (B25), an absent server is not.
pub async fn connect(path: &Path, deadline: Instant) -> Result<Stream, EndpointError> {
    let bytes = path.as_os_str().len();
    if bytes > SOCKET_PATH_BYTES_MAX {
        return Err(EndpointError::PathTooLong { path: path.to_owned(), bytes });
    }
    let nobody = |source| EndpointError::NobodyThere { path: path.to_owned(), source };
    loop {
        let name = path.to_fs_name::<GenericFilePath>().map_err(failed("name the socket", path))?;
        match timeout_at(deadline, Stream::connect(name)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < deadline => {
                sleep(Duration::from_millis(5)).await;
            }
            Ok(Err(error)) => return Err(nobody(error)),
            Err(late) => return Err(nobody(late.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(5)
    }

    #[test]
    fn b1_one_of_many_claims_over_a_stale_socket_wins() {
        runtime().block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("run/soul.sock");
            private_folder(path.parent().unwrap()).unwrap();
            drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
            let first = Endpoint::listen(&path).await.unwrap();
            let second = Claim::take(&path).await.unwrap_err();
            assert!(matches!(second, EndpointError::Held { .. }), "{second}");
            assert!(connect(&path, soon()).await.is_ok(), "the loser left the winner's socket alone");
            drop(first);
            assert!(path.exists(), "b2: nobody unlinks on the way out");
            assert!(connect(&path, soon()).await.is_err());
            Endpoint::listen(&path).await.expect("the lock dies with its holder");
        });
    }

    #[test]
    fn b26_the_socket_and_its_folder_are_private_whatever_the_umask() {
        runtime().block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let run = folder.path().join("run");
            std::fs::create_dir(&run).unwrap();
            std::fs::set_permissions(&run, Permissions::from_mode(0o755)).unwrap();
            let path = run.join("soul.sock");
            let _endpoint = Endpoint::listen(&path).await.unwrap();
            let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o777;
            assert_eq!((mode(&run), mode(&path)), (0o700, 0o600));
        });
    }

    #[test]
    fn b27_a_path_too_long_is_named_with_the_remedy() {
        runtime().block_on(async {
            let path = PathBuf::from(format!("/tmp/{}/soul.sock", "x".repeat(120)));
            let said = Claim::take(&path).await.unwrap_err().to_string();
            assert!(said.contains("135 bytes") && said.contains("shorter home"), "{said}");
            assert!(matches!(connect(&path, soon()).await, Err(EndpointError::PathTooLong { .. })));
        });
    }

    #[test]
    fn a_file_in_the_way_is_not_removed() {
        runtime().block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("soul.sock");
            std::fs::write(&path, "somebody's").unwrap();
            assert!(matches!(Claim::take(&path).await, Err(EndpointError::InTheWay { .. })));
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "somebody's");
        });
    }

    #[test]
    fn b3_a_socket_that_was_taken_away_is_made_again() {
        runtime().block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("soul.sock");
            let mut endpoint = Endpoint::listen(&path).await.unwrap();
            assert!(!endpoint.mend().unwrap(), "nothing is wrong");
            std::fs::remove_file(&path).unwrap();
            assert!(connect(&path, soon()).await.is_err());
            assert!(endpoint.mend().unwrap());
            assert!(connect(&path, soon()).await.is_ok());
        });
    }

    #[test]
    fn what_is_said_arrives() {
        runtime().block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("soul.sock");
            let endpoint = Endpoint::listen(&path).await.unwrap();
            let mut dialled = connect(&path, soon()).await.unwrap();
            let Accepted::Peer(mut answered) = endpoint.accept().await.unwrap() else {
                panic!("we are ourselves")
            };
            dialled.write_all(b"hums\n").await.unwrap();
            let mut heard = [0; 5];
            answered.read_exact(&mut heard).await.unwrap();
            assert_eq!(&heard, b"hums\n");
        });
    }
}
