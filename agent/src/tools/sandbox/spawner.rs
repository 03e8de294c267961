//! The one thread of the agent that starts tools, and the one that keeps the right to.
//!
//! It is older than the moment the agent gives up what it has no business with (`ipc::confine`), and what a thread gives
//! up goes to what it starts: started from anywhere else, a tool could not work in a folder that was made since. Each
//! tool gives up more than the agent does, and before it does anything.

use std::{
    io,
    process::{Child, Command, Stdio},
    sync::mpsc,
};

use tokio::sync::oneshot;

use super::own_program;

/// What a tool's process may see of our environment.
const SEEN: [&str; 5] = ["PATH", "LANG", "LANGUAGE", "TZ", "TZDIR"];

/// Starts this binary in one of its parts.
#[derive(Debug, Clone)]
pub(crate) struct Spawner(mpsc::Sender<Wish>);

struct Wish {
    part: &'static str,
    answer: oneshot::Sender<io::Result<Child>>,
}

impl Spawner {
    /// To be called before anything is given up.
    pub(crate) fn start() -> Self {
        let (sender, receiver) = mpsc::channel::<Wish>();
        std::thread::spawn(move || {
            for Wish { part, answer } in receiver {
                // whoever asked may be gone; then its pipes close, and the process ends of that
                let _ = answer.send(spawn(part));
            }
        });
        Self(sender)
    }

    /// A process in that part, which waits for its order.
    pub(super) async fn spawn(&self, part: &'static str) -> io::Result<Child> {
        let (answer, answered) = oneshot::channel();
        let gone = |_| io::Error::other("the thread that starts tools is gone");
        self.0
            .send(Wish { part, answer })
            .map_err(|_| io::Error::other("the thread that starts tools is gone"))?;
        answered.await.map_err(gone)?
    }
}

fn spawn(part: &str) -> io::Result<Child> {
    #[expect(clippy::disallowed_methods, reason = "the place where tools get their processes")]
    let mut command = Command::new(own_program()?);
    let seen = |name: &str| SEEN.contains(&name) || name.starts_with("LC_");
    command
        .arg(part)
        .env_clear()
        .envs(std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(seen)))
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
}
