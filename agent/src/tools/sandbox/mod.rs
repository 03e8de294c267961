//! Where tools touch files and run commands: small processes of this binary, which give up what they must not do before
//! they do anything.
//!
//! ```text
//!  agent ─ spawner ─▶ confined: one deed on files ─▶ its answer
//!             └─────▶ guard ─▶ confined ─▶ bash and what it starts      the guard ends all of it: at the end, at the
//!                                                                       deadline, and when the agent is gone
//! ```
//!
//! They are told what to do on standard input, which stays open behind the order: its end is the end of whoever asked,
//! however that came. The guard is outside of what it guards, so that no command can signal it, and what is left alone
//! below it comes to it; nothing slips away by forking twice or by a session of its own.
//!
//! What is enforced: Landlock (`ipc::confine`) for files, signals, and TCP where the network is closed; a filter of
//! system calls (`calls`) for sockets and everything that would lead around it; no capability but those over one's own
//! files; limits; an environment of a few names. What the kernel lacks is said in `lisa status`.

mod bench;
#[cfg(target_os = "linux")]
mod calls;
mod confined;
mod ground;
mod guard;
mod limits;
mod order;
mod processes;
mod spawner;
mod tape;

use std::{ffi::OsString, io, process::ExitCode};

pub(crate) use self::{bench::Bench, spawner::Spawner};
pub(super) use self::{bench::Command, ground::Ground, order::Deed};

/// The first argument that makes this binary the guard of a command.
const GUARD: &str = "--guard-of-a-command";
/// The first argument that makes it a process that confines itself.
const CONFINED: &str = "--confined";

/// Plays the part that the first argument names, where it names one.
pub(crate) fn part(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let first = arguments.into_iter().nth(1)?;
    match first.to_str()? {
        GUARD => Some(guard::guard()),
        CONFINED => Some(confined::confined()),
        _ => None,
    }
}

/// This very program, also when its file was replaced since it started (B14).
fn own_program() -> io::Result<std::path::PathBuf> {
    if cfg!(target_os = "linux") { Ok("/proc/self/exe".into()) } else { std::env::current_exe() }
}
