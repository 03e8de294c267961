//! The signals that mean something to us, heard from the first moment on (B12).

use std::io::{self, IsTerminal as _};

use tokio::signal::unix::{Signal, SignalKind, signal};

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    /// End, in order; asked again, soon.
    Stop { by: &'static str },
    /// Read the configuration anew.
    Reload,
}

/// The ears for them. A hang-up is the end while we belong to a terminal, and a wish to reload where we do not.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
    of_a_terminal: bool,
}

impl Signals {
    /// Listens from now on.
    pub(crate) fn install() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
            of_a_terminal: io::stderr().is_terminal(),
        })
    }

    /// Waits for the next wish. Nothing is lost when it is not waited for to the end.
    pub(crate) async fn next(&mut self) -> Wish {
        // whoever asks for both wants an end
        tokio::select! {
            biased;
            _ = self.terminate.recv() => Wish::Stop { by: "SIGTERM" },
            _ = self.interrupt.recv() => Wish::Stop { by: "SIGINT" },
            _ = self.hang_up.recv() => {
                if self.of_a_terminal { Wish::Stop { by: "SIGHUP" } } else { Wish::Reload }
            }
        }
    }
}
