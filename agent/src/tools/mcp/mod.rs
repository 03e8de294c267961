//! Servers of tools (the Model Context Protocol): started beside everything else, their tools in the toolbox while they stand.
//!
//! ```text
//!  mcp.json ─▶ config ─▶ keeper (one a server) ─▶ link ─▶ process | HTTP     the protocol is `rmcp`'s
//!                          │   └─▶ shelf: what of its list is offered, as `mcp__server__tool`
//!                          ├─▶ toolbox, group `mcp:server`, as a whole
//!                          └─▶ board ─▶ `lisa status`
//! ```
//!
//! It promises: no birth, start or turn waits for a server, but for a moment at the very beginning; what a server is or says
//! is somebody else's, and changes something unless a person says otherwise; it sees nothing of ours but what `mcp.json`
//! gives it, and nothing of that comes back out; no process of it outlives this one's.

mod answer;
mod board;
mod config;
mod keeper;
mod link;
mod naming;
mod process;
mod secrets;
mod shelf;

use std::{io, path::Path, path::PathBuf, sync::Arc, time::Duration};

use ipc::contract::agent::{ToolServer, ToolServerState};
use tokio::{task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use self::{board::Board, config::Read, keeper::Keeper};
use super::{Spawner, Toolbox};

/// The largest `mcp.json`.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// How long after the start of this process a turn may wait for servers that have not been tried yet.
const SETTLE_MAX: Duration = Duration::from_secs(3);
/// How long all of them may take to end.
const END_MAX: Duration = Duration::from_millis(1200);

/// The servers of one life.
pub(crate) struct Servers {
    board: Arc<Board>,
    keepers: tokio::sync::Mutex<JoinSet<()>>,
    stop: CancellationToken,
    begun: Instant,
}

impl Servers {
    /// Starts what the file asks for, beside everything else; `tell` hears how they are.
    pub(crate) fn start(
        file: &Path,
        toolbox: &Arc<Toolbox>,
        spawner: &Spawner,
        tell: fn(&[ToolServer]),
    ) -> Self {
        let person = std::env::var_os("HOME").map(PathBuf::from);
        let Read { servers, wrong } = match read(file) {
            Ok(None) => Read::default(),
            Ok(Some(text)) => config::read(&text, person.as_deref()),
            Err(why) => Read { wrong: vec![("mcp.json".to_owned(), why)], ..Read::default() },
        };
        for (server, why) in &wrong {
            warn!(server, why, "`mcp.json` has a mistake");
        }
        let entry = |server: &config::Server| ToolServer {
            name: config::shown(&server.name),
            state: if server.is_off { ToolServerState::Off } else { ToolServerState::Starting },
            tools: 0,
            why: None,
            notices: server.notices.clone(),
        };
        let is_wrong = |(name, why): (String, String)| {
            let why = Some(ipc::text::one_line(&why, 200));
            ToolServer { name, state: ToolServerState::Wrong, tools: 0, why, notices: Vec::new() }
        };
        let entries = servers.iter().map(entry).chain(wrong.into_iter().map(is_wrong)).collect();
        let (board, stop) = (Arc::new(Board::new(entries, tell)), CancellationToken::new());
        let mut keepers = JoinSet::new();
        for (at, server) in servers.into_iter().enumerate().filter(|(_, server)| !server.is_off) {
            let (toolbox, board, stop) = (toolbox.clone(), board.clone(), stop.clone());
            keepers.spawn(Keeper { server, at, toolbox, board, stop, spawner: spawner.clone() }.keep());
        }
        Self { board, keepers: tokio::sync::Mutex::new(keepers), stop, begun: Instant::now() }
    }

    /// How they are.
    pub(crate) fn states(&self) -> Vec<ToolServer> {
        self.board.servers()
    }

    /// Waits until each was tried once, but not beyond the first moments of this process.
    pub(crate) async fn settle(&self) {
        let _ = tokio::time::timeout_at(self.begun + SETTLE_MAX, self.board.all_tried()).await;
    }

    /// Ends them all, in order where they do so at once.
    pub(crate) async fn end(&self) {
        self.stop.cancel();
        let mut keepers = self.keepers.lock().await;
        let all = async { while keepers.join_next().await.is_some() {} };
        if tokio::time::timeout(END_MAX, all).await.is_err() {
            // dropping them ends what they hold
            keepers.shutdown().await;
        }
    }
}

/// The text of the file; nothing where there is none.
fn read(file: &Path) -> Result<Option<String>, String> {
    match std::fs::metadata(file) {
        Ok(found) if found.len() > FILE_BYTES_MAX => {
            return Err(format!(
                "it is larger than {} KiB; none of its servers is used",
                FILE_BYTES_MAX / 1024
            ));
        }
        // a pipe would be waited on for ever
        Ok(found) if !found.is_file() => return Err("it is no file; none of its servers is used".to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Ok(_) | Err(_) => {}
    }
    let bytes = std::fs::read(file).map_err(|error| format!("it could not be read: {error}"))?;
    String::from_utf8(bytes).map(Some).map_err(|_| "it is not UTF-8; none of its servers is used".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_that_is_not_there_is_no_server_and_one_that_cannot_be_read_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let (file, toolbox) = (folder.path().join("mcp.json"), Arc::new(Toolbox::default()));
        let start = || Servers::start(&file, &toolbox, &Spawner::start(), |_| {});
        let none = start();
        assert!(none.states().is_empty());
        none.settle().await;
        let check = |bytes: &[u8], why: &str| {
            std::fs::write(&file, bytes).unwrap();
            let states = start().states();
            assert_eq!((states[0].name.as_str(), states[0].state), ("mcp.json", ToolServerState::Wrong));
            assert!(states[0].why.as_deref().unwrap().contains(why), "{states:?}");
        };
        check(b"\xff", "not UTF-8");
        check(&vec![b' '; 2 << 20], "larger than 1024 KiB");
        check(b"{", "no JSON");
        std::fs::remove_file(&file).unwrap();
        std::fs::create_dir(&file).unwrap();
        assert!(start().states()[0].why.as_deref().unwrap().contains("it is no file"));
    }

    #[tokio::test]
    async fn one_that_cannot_be_started_waits_and_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mcp.json");
        std::fs::write(
            &file,
            r#"{"mcpServers": {"a": {"command": "/nowhere/x"}, "b": {"command": "y", "disabled": true}}}"#,
        )
        .unwrap();
        let servers = Servers::start(&file, &Arc::new(Toolbox::default()), &Spawner::start(), |_| {});
        servers.settle().await;
        let states = servers.states();
        assert_eq!((states[0].state, states[1].state), (ToolServerState::Waiting, ToolServerState::Off));
        assert!(states[0].why.as_deref().unwrap().contains("could not be started"), "{states:?}");
        servers.end().await;
    }
}
