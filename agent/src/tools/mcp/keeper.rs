//! Keeps one server: makes its connection, offers its tools while it stands, and begins again when it has ended.
//!
//! ```text
//!  starting ──▶ ready ──▶ waiting ──▶ starting …
//!      └────────────────────▲          longer each time, until it has stood for a while
//! ```

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use ipc::{
    contract::{agent::ToolServerState, soul::ToolSpec},
    reveal::reveal,
    text::one_line,
};
use serde_json::{Map, Value};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::{
    answer::outcome,
    board::Board,
    config::Server,
    link::{Line, Link},
    secrets::Secrets,
    shelf::{Seen, Shelf, Shown, shelf},
};
use crate::{
    outside,
    tools::{Outcome, Spawner, Task, Tool, Toolbox, bounds::bounded_to},
};

/// The first pause before a server is started again, and the longest.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_mins(5);
/// How long it must have stood for an end to count as the first.
const STOOD: Duration = Duration::from_mins(1);
/// How long a list is left alone after it was said to be another: such news come in swarms.
const CALM: Duration = Duration::from_millis(250);
/// How much of a result is kept, in characters: room for the bars before its lines stays.
const WORDS_CHARS_MAX: usize = 24_000;
/// The longest reason kept, in characters.
const WHY_CHARS_MAX: usize = 200;

/// How long to wait before it is started again, after so many ends in a row.
fn pause(ends: u32) -> Duration {
    PAUSE_MIN.saturating_mul(2_u32.saturating_pow(ends.saturating_sub(1))).min(PAUSE_MAX)
}

/// Keeps one server.
pub(super) struct Keeper {
    pub(super) server: Server,
    pub(super) at: usize,
    pub(super) toolbox: Arc<Toolbox>,
    pub(super) board: Arc<Board>,
    pub(super) stop: CancellationToken,
    /// What starts it.
    pub(super) spawner: Spawner,
}

impl Keeper {
    /// Keeps it until it is told to stop.
    pub(super) async fn keep(self) {
        let (mut ends, mut seen) = (0, Seen::default());
        loop {
            self.board.tell(self.at, ToolServerState::Starting, 0, None);
            let began = Instant::now();
            let Err(why) = self.life(&mut seen).await else { return };
            self.bring(Vec::new());
            let why = one_line(&reveal(&self.server.secrets.scrub(&why)), WHY_CHARS_MAX);
            ends = if began.elapsed() >= STOOD { 1 } else { ends + 1 };
            let pause = pause(ends);
            warn!(server = %self.name(), why, ?pause, "a server of tools is not there; it is started again");
            self.board.tell(self.at, ToolServerState::Waiting, 0, Some(why));
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.stop.cancelled() => return,
            }
        }
    }

    /// One life of it: fine if it ended because we stop, else why it did.
    async fn life(&self, seen: &mut Seen) -> Result<(), String> {
        let link = tokio::select! {
            link = Link::make(&self.server.how, &self.spawner) => link?,
            () = self.stop.cancelled() => return Ok(()),
        };
        let ended = tokio::select! {
            biased;
            () = self.stop.cancelled() => Ok(()),
            ended = link.ended() => Err(ended),
            failed = self.offer(&link, seen) => Err(failed),
        };
        self.bring(Vec::new());
        link.end().await;
        ended
    }

    /// Offers what it has, and again whenever that changes. Returns when it cannot be said what it has.
    async fn offer(&self, link: &Link, seen: &mut Seen) -> String {
        let wire = link.line();
        loop {
            let list = match wire.list().await {
                Ok(list) => list,
                Err(why) => return why,
            };
            let Server { name, read_only, secrets, .. } = &self.server;
            let Shelf { tools, notices, changed } = shelf(name, list, read_only, secrets, seen);
            for tool in changed {
                warn!(server = %self.name(), tool, "a tool says something else of itself than when it was first seen");
            }
            info!(server = %self.name(), tools = tools.len(), "the tools of a server are offered");
            let total = tools.len();
            let secrets = Arc::new(secrets.clone());
            let brought = tools.into_iter().map(|tool| {
                let (wire, secrets) = (wire.clone(), secrets.clone());
                let source = format!("mcp server {}", self.name());
                Arc::new(Remote { line: wire, shown: tool, secrets, source }) as Arc<dyn Tool>
            });
            self.bring(brought.collect());
            self.board.ready(self.at, total, notices);
            link.list_changed().await;
            tokio::time::sleep(CALM).await;
        }
    }

    fn bring(&self, tools: Vec<Arc<dyn Tool>>) {
        self.toolbox.bring(&format!("mcp:{}", self.server.name), tools);
    }

    fn name(&self) -> String {
        super::config::shown(&self.server.name)
    }
}

/// One tool of a server.
struct Remote {
    line: Line,
    shown: Shown,
    secrets: Arc<Secrets>,
    /// Whose words its results are.
    source: String,
}

impl Tool for Remote {
    fn spec(&self) -> ToolSpec {
        self.shown.spec.clone()
    }

    fn run<'a>(&'a self, task: Task<'a>, input: Map<String, Value>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let outcome = tokio::select! {
                answer = self.line.call(&self.shown.remote, input) => match answer {
                    Ok(answer) => outcome(answer),
                    Err(no_answer) => Outcome::failed(no_answer.to_string()),
                },
                () = task.cancel.cancelled() => Outcome::failed(
                    "it was cancelled, and the server was told; whether it took effect is unknown, look before doing it again"
                ),
            };
            let words = bounded_to(self.secrets.scrub(&outcome.output), WORDS_CHARS_MAX);
            Outcome { output: outside::quoted(&self.source, &words), ..outcome }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_end_in_a_row_waits_longer_up_to_a_limit() {
        let secs: Vec<_> = (1..=10).map(|ends| pause(ends).as_secs()).collect();
        assert_eq!(secs, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]);
        assert_eq!(pause(u32::MAX), PAUSE_MAX);
    }
}
