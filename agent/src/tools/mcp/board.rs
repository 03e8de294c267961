//! How each server is, for whoever asks and for `lisa status`; and whether all have been tried once.

use std::sync::{Mutex, PoisonError};

use ipc::{
    contract::agent::{ToolServer, ToolServerState},
    text::one_line,
};
use tokio::sync::watch;

/// The most that is said about one server beside its state, and the longest of it in characters: all of it travels in one
/// report of the agent.
const NOTICES_MAX: usize = 4;
const NOTICE_CHARS_MAX: usize = 200;

/// How all servers are.
pub(super) struct Board {
    servers: Mutex<Vec<Entry>>,
    tried: watch::Sender<bool>,
    tell: fn(&[ToolServer]),
}

struct Entry {
    shown: ToolServer,
    /// What is to be said of it whatever its state is.
    standing: Vec<String>,
    is_tried: bool,
}

impl Board {
    /// A board of these; `tell` hears of each change.
    pub(super) fn new(servers: Vec<ToolServer>, tell: fn(&[ToolServer])) -> Self {
        let entry = |mut shown: ToolServer| {
            bound(&mut shown.notices);
            let is_tried = shown.state != ToolServerState::Starting;
            Entry { standing: shown.notices.clone(), shown, is_tried }
        };
        let servers: Vec<Entry> = servers.into_iter().map(entry).collect();
        let tried = watch::Sender::new(servers.iter().all(|entry| entry.is_tried));
        let board = Self { servers: Mutex::new(servers), tried, tell };
        board.change(|_| {});
        board
    }

    /// A server is in another state.
    pub(super) fn tell(&self, at: usize, state: ToolServerState, tools: usize, why: Option<String>) {
        self.change(|servers| {
            let Some(entry) = servers.get_mut(at) else { return };
            entry.is_tried |= state != ToolServerState::Starting;
            entry.shown.state = state;
            entry.shown.tools = u32::try_from(tools).unwrap_or(u32::MAX);
            entry.shown.why = why;
        });
    }

    /// A server offers so many tools, and this is to be said of them.
    pub(super) fn ready(&self, at: usize, tools: usize, notices: Vec<String>) {
        self.change(|servers| {
            let Some(entry) = servers.get_mut(at) else { return };
            entry.shown.notices = entry.standing.iter().cloned().chain(notices).collect();
            bound(&mut entry.shown.notices);
        });
        self.tell(at, ToolServerState::Ready, tools, None);
    }

    /// How all are.
    pub(super) fn servers(&self) -> Vec<ToolServer> {
        let servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        servers.iter().map(|entry| entry.shown.clone()).collect()
    }

    /// Waits until each has been tried once, however that went.
    pub(super) async fn all_tried(&self) {
        let _ = self.tried.subscribe().wait_for(|tried| *tried).await;
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Entry>)) {
        let (all_tried, shown) = {
            let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
            change(&mut servers);
            let shown: Vec<ToolServer> = servers.iter().map(|entry| entry.shown.clone()).collect();
            (servers.iter().all(|entry| entry.is_tried), shown)
        };
        self.tried.send_if_modified(|tried| std::mem::replace(tried, all_tried) != all_tried);
        if !shown.is_empty() {
            (self.tell)(&shown);
        }
    }
}

fn bound(notices: &mut Vec<String>) {
    let more = notices.len().saturating_sub(NOTICES_MAX);
    notices.truncate(NOTICES_MAX);
    for notice in notices.iter_mut() {
        *notice = one_line(notice, NOTICE_CHARS_MAX);
    }
    if more > 0 {
        notices.push(format!("and {more} more like these"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_said_of_a_server_follows_its_state() {
        let server = |state| ToolServer {
            name: "灯塔".into(),
            state,
            tools: 0,
            why: None,
            notices: vec!["kept".into()],
        };
        let board = Board::new(vec![server(ToolServerState::Starting), server(ToolServerState::Off)], |_| {});
        assert!(!*board.tried.borrow());
        board.ready(0, 3, vec!["x".repeat(999); 9]);
        board.all_tried().await;
        let ready = board.servers().remove(0);
        assert_eq!(
            (ready.state, ready.tools, ready.notices.len()),
            (ToolServerState::Ready, 3, NOTICES_MAX + 1)
        );
        assert!(ready.notices[0] == "kept" && ready.notices[4].contains("6 more"), "{:?}", ready.notices);
        board.tell(0, ToolServerState::Waiting, 0, Some("it ended".into()));
        let waiting = board.servers().remove(0);
        assert_eq!((waiting.tools, waiting.why.as_deref()), (0, Some("it ended")));
        board.ready(0, 1, Vec::new());
        assert_eq!(board.servers()[0].notices, ["kept"]);
        assert!(*Board::new(Vec::new(), |_| {}).tried.borrow(), "no server keeps nobody waiting");
    }
}
