//! The one thread of the agent that starts tools, and the one that keeps the right to; what a person orders of a file
//! that is not the agent's to write is done there as well.
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

type Wish = Box<dyn FnOnce() + Send>;

impl Spawner {
    /// To be called before anything is given up.
    pub(crate) fn start() -> Self {
        let (sender, receiver) = mpsc::channel::<Wish>();
        std::thread::spawn(move || receiver.into_iter().for_each(|wish| wish()));
        Self(sender)
    }

    /// A process in that part, which waits for its order.
    pub(super) async fn spawn(&self, part: &'static str) -> io::Result<Child> {
        self.as_before(move || spawn(part)).await?
    }

    /// Does something with the rights the agent had before it gave them up: never what a model asks for.
    pub(crate) async fn as_before<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        let (answer, answered) = oneshot::channel();
        let gone = || io::Error::other("the thread that keeps the rights of the agent is gone");
        let wish = Box::new(move || {
            // whoever asked may be gone; then the pipes of a process close, and it ends of that
            let _ = answer.send(work());
        });
        self.0.send(wish).map_err(|_| gone())?;
        answered.await.map_err(|_| gone())
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
