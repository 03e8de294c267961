//! What stands above us: the process manager that started us, where one did.
//!
//! ```text
//!  invitation   what the environment and the arguments say it wants      (pure)
//!  handed       the descriptors it handed over                           (the only place that takes one by its number)
//!  words        what it is told, and when                                (pure)
//!  port         the socket on which it listens
//!  herald       the task that tells it
//! ```
//!
//! It promises: nothing here waits for the manager; a manager that does not listen costs nothing but its own knowledge;
//! what it handed to us reaches no child, neither as a variable (`spawn` names what a child may see) nor as a descriptor.

mod handed;
mod herald;
mod invitation;
mod port;
mod words;

use std::{ffi::OsString, time::Duration};

use ipc::exit::{Exit, Fault};

use self::invitation::Invitation;
pub(crate) use self::{
    handed::{Chat, ReadyPipe},
    herald::{Herald, Wants},
    port::Port,
};

/// What the process manager wants and has handed over.
pub struct Above {
    pub(crate) chat: Option<Chat>,
    pub(crate) ready: Option<ReadyPipe>,
    pub(crate) port: Option<Port>,
    pub(crate) watchdog: Option<Duration>,
}

impl Above {
    /// Reads the environment, and takes what was handed over: sockets (`LISTEN_FDS`), and the descriptor on which a
    /// newline says that we are ready (`--ready-fd`). To be called once, before anything is opened: a descriptor that is
    /// open then was handed to us.
    pub fn take(ready: Option<i32>, variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, Fault> {
        let invitation = Invitation::read(variable, std::process::id());
        for ignored in &invitation.ignored {
            tracing::warn!("{ignored}");
        }
        let chat = handed::chat(&invitation.sockets).map_err(Fault::configuration)?;
        let taken = invitation.sockets.len();
        let ready = ready.map(|number| handed::ready(number, taken)).transpose();
        let ready = ready.map_err(|error| Fault { exit: Exit::Usage, source: error.into() })?;
        let port = invitation.notify.as_ref().and_then(Port::to);
        Ok(Self { chat, ready, port, watchdog: invitation.watchdog })
    }
}
