//! How often a server may be asked again, by all conversations together and by every life of this process.
//!
//! ```text
//!  a question failed ─▶ one token of the server's bucket? ─ yes ─▶ wait, ask again
//!                              ▲                            └ none ─▶ the fault is told now, or the next model is asked
//!       one comes back every few seconds
//! ```
//!
//! A server that is down is wanted by every turn there is, and a life that takes up a turn begins to count its attempts
//! anew. So what is left stands in a small file beside the sockets, one for each server, changed under a lock of the kernel.
//! It is a courtesy, and not a promise: a file that cannot be used is a full bucket, and whoever cannot get the lock asks.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{self, Read as _, Seek as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use ipc::digest::sha256_hex;
use jiff::Timestamp;
use reqwest::Url;
use serde::{Deserialize, Serialize};
use tracing::debug;

/// How many questions may be asked again one right after the other.
const RETRIES_MAX: u32 = 20;
/// How long it takes until one more may be.
const ONE_MORE_AFTER: Duration = Duration::from_secs(5);
/// How long a file of this may be.
const BYTES_MAX: u64 = 4096;

/// What may still be asked again of one server.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Bucket {
    left: f64,
    at: Timestamp,
}

impl Bucket {
    fn full(now: Timestamp) -> Self {
        Self { left: f64::from(RETRIES_MAX), at: now }
    }

    /// One less, if there is one. A clock that went back gives nothing back and takes nothing away.
    fn take(self, now: Timestamp) -> (Self, bool) {
        let passed = Duration::try_from(now.duration_since(self.at)).unwrap_or_default();
        let back = passed.as_secs_f64() / ONE_MORE_AFTER.as_secs_f64();
        let known = if self.left.is_finite() { self.left.max(0.0) } else { 0.0 };
        let left = (known + back).min(f64::from(RETRIES_MAX));
        if left < 1.0 { (Self { left, at: now }, false) } else { (Self { left: left - 1.0, at: now }, true) }
    }
}

/// The buckets of all servers.
#[derive(Debug, Clone)]
pub(crate) enum Budget {
    /// In a folder that other lives of this process have too.
    Shared(PathBuf),
    /// In memory: one for whatever is asked with it.
    Own(Arc<Mutex<Option<Bucket>>>),
}

impl Budget {
    /// The buckets in a folder, which must be there.
    pub(crate) fn shared(folder: &Path) -> Self {
        Self::Shared(folder.to_owned())
    }

    /// Takes one attempt more at a server; false where it has been asked again so often that it should be left alone.
    pub(super) fn take(&self, server: &Url, now: Timestamp) -> bool {
        match self {
            Self::Shared(folder) => {
                let path = folder.join(name(server));
                take_from(&path, now).unwrap_or_else(|error| {
                    debug!(path = %path.display(), %error, "the budget of retries was not read");
                    true
                })
            }
            Self::Own(bucket) => {
                let mut bucket = bucket.lock().unwrap_or_else(PoisonError::into_inner);
                let (left, may) = bucket.unwrap_or_else(|| Bucket::full(now)).take(now);
                *bucket = Some(left);
                may
            }
        }
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self::Own(Arc::default())
    }
}

/// The file of a server: its scheme, host and port, without what may be secret in an address.
fn name(server: &Url) -> String {
    let digest = sha256_hex(server.origin().ascii_serialization().as_bytes());
    format!("retries-{}.json", digest.chars().take(16).collect::<String>())
}

fn take_from(path: &Path, now: Timestamp) -> io::Result<bool> {
    let mut options = OpenOptions::new();
    let mut file = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
    match file.try_lock() {
        Ok(()) => {}
        // somebody else is counting at this moment
        Err(TryLockError::WouldBlock) => return Ok(true),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    let (left, may) = read(&mut file)?.unwrap_or_else(|| Bucket::full(now)).take(now);
    file.rewind()?;
    file.set_len(0)?;
    file.write_all(&serde_json::to_vec(&left)?)?;
    Ok(may)
}

/// What a file says; nothing where it is new, torn, or somebody else's words.
fn read(file: &mut File) -> io::Result<Option<Bucket>> {
    let mut bytes = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(serde_json::from_slice(&bytes).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + secs).unwrap()
    }

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn c7_19_a_bucket_runs_dry_and_fills_again() {
        let mut bucket = Bucket::full(at(0));
        let mut take = |secs: i64| {
            let (left, may) = bucket.take(at(secs));
            bucket = left;
            may
        };
        assert!((0..RETRIES_MAX).all(|_| take(0)));
        assert!(!take(0) && !take(4), "nothing is left");
        assert!(take(5) && !take(5), "one came back");
        assert!(!take(-1000), "a clock that goes back gives nothing");
        let full = (0..100).filter(|_| take(1_000_000)).count();
        assert_eq!(full, usize::try_from(RETRIES_MAX).unwrap(), "it holds no more than it holds");
    }

    #[test]
    fn c7_19_every_life_takes_from_the_same_bucket_and_each_server_has_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let (server, other) = (url("https://a.example/v1?key=x"), url("https://b.example/v1"));
        for _ in 0..RETRIES_MAX {
            // each of them is another life
            assert!(Budget::shared(folder.path()).take(&server, at(0)));
        }
        let next = Budget::shared(folder.path());
        assert!(!next.take(&server, at(1)) && next.take(&other, at(1)));
        assert!(!next.take(&url("https://a.example/v2"), at(1)), "the same server by another path");
        assert!(next.take(&server, at(10)));
        let files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().flatten().collect();
        assert_eq!(files.len(), 2);
    }

    #[test]
    fn what_cannot_be_read_or_written_stops_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let server = url("https://a.example");
        let path = folder.path().join(name(&server));
        for bytes in [&b""[..], b"{\"left\":", b"null", b"{\"left\":1e400,\"at\":0}", &[0xff; 9000]] {
            std::fs::write(&path, bytes).unwrap();
            assert!(Budget::shared(folder.path()).take(&server, at(0)), "{bytes:?}");
        }
        assert!(Budget::shared(&folder.path().join("nowhere")).take(&server, at(0)));
        // somebody holds the lock
        let held = File::open(&path).unwrap();
        held.lock().unwrap();
        for _ in 0..3 * RETRIES_MAX {
            assert!(Budget::shared(folder.path()).take(&server, at(0)));
        }
    }

    proptest! {
        #[test]
        fn no_series_of_moments_gives_more_than_what_came_back(moments in prop::collection::vec(0_i64..3000, 1..200)) {
            let mut moments = moments;
            moments.sort_unstable();
            let budget = Budget::default();
            let taken = moments.iter().filter(|secs| budget.take(&url("http://m"), at(**secs))).count();
            let passed = u64::try_from(*moments.last().unwrap()).unwrap();
            let most = u64::from(RETRIES_MAX) + passed / ONE_MORE_AFTER.as_secs();
            prop_assert!(u64::try_from(taken).unwrap() <= most, "{taken} of {most}");
        }
    }
}
