//! Getting into a session: the one that is named, a new one, or the most recent one.

use std::path::PathBuf;

use ipc::{
    acp,
    exit::Fault,
    text::{nearest, one_line},
    wire::code,
};
use serde_json::{Value, json};

use crate::link::{CHILD_PATIENCE, Link, LinkError};

/// How many pages of sessions are looked through for one that is named.
const PAGES_MAX: usize = 50;

/// How many sessions are looked through for a reply: one may have begun without having come to one.
const REPLY_SESSIONS_MAX: usize = 20;

/// How many sessions are suggested for one that does not exist.
const SUGGESTIONS: usize = 3;

/// Which session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Choice {
    /// The most recent one, or a new one where there is none.
    Latest,
    /// A new one.
    New,
    /// The one with this id.
    Named(String),
}

/// The session that is attached to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Attached {
    /// Its id.
    pub(super) session: String,
    /// Whether it has only just begun.
    pub(super) new: bool,
    /// What it is about, where somebody has said so.
    pub(super) title: Option<String>,
}

impl Attached {
    /// What it is about, as it stands behind its id.
    pub(super) fn titled(&self) -> String {
        self.title.as_deref().map(|title| format!(" ({})", one_line(title, 60))).unwrap_or_default()
    }
}

/// Attaches to the session of choice.
pub(super) async fn attach(link: &mut Link, choice: Choice) -> Result<Attached, Fault> {
    match choice {
        Choice::New => begin(link).await,
        Choice::Latest => match page(link, None).await?.sessions.into_iter().find(is_own) {
            Some(latest) => Ok(resume(link, latest).await?),
            None => begin(link).await,
        },
        Choice::Named(id) => {
            let (found, known) = find(link, &id).await?;
            // a list has its bounds, and her own time is not on it: what it does not show may still be there
            let session = found.unwrap_or_else(|| acp::SessionInfo::new(id.clone(), here()));
            match resume(link, session).await {
                Err(LinkError::Refused(error)) if error.code == code::NOT_FOUND => {
                    Err(Fault::failed(unknown(&id, &known)))
                }
                resumed => Ok(resumed?),
            }
        }
    }
}

/// What her last reply is called, and in which session it was: of the most recent one that has a reply.
pub(crate) async fn last_reply(link: &mut Link) -> Result<Option<(String, String)>, LinkError> {
    let recent = page(link, None).await?.sessions.into_iter().filter(is_own).take(REPLY_SESSIONS_MAX);
    for session in recent {
        let (id, params) = taking_up(&session);
        let taken: acp::ResumeSessionResponse = link.ask("session/resume", params, CHILD_PATIENCE).await?;
        let message = taken.meta.as_ref().and_then(|meta| meta.get("lisa")?.get("messageId")?.as_str());
        if let Some(message) = message {
            return Ok(Some((id, message.to_owned())));
        }
    }
    Ok(None)
}

/// Whether a session may be taken up without being named. One of the original's is for a person to choose: its file would
/// be written to.
fn is_own(session: &acp::SessionInfo) -> bool {
    let own = session.meta.as_ref().and_then(|meta| meta.get("lisa")?.get("own")?.as_bool());
    own.unwrap_or(true)
}

async fn begin(link: &mut Link) -> Result<Attached, Fault> {
    let begun: acp::NewSessionResponse =
        link.ask("session/new", acp::NewSessionRequest::new(here()), CHILD_PATIENCE).await?;
    Ok(Attached { session: begun.session_id.to_string(), new: true, title: None })
}

async fn resume(link: &mut Link, session: acp::SessionInfo) -> Result<Attached, LinkError> {
    let (id, params) = taking_up(&session);
    link.ask::<Value>("session/resume", params, CHILD_PATIENCE).await?;
    Ok(Attached { session: id, new: false, title: session.title })
}

/// The id of a session, and what is asked to take it up.
fn taking_up(session: &acp::SessionInfo) -> (String, Value) {
    let id = session.session_id.to_string();
    let params = json!({"sessionId": id, "cwd": session.cwd, "mcpServers": []});
    (id, params)
}

/// Looks for a session by its id, and returns the ids that were seen on the way too.
async fn find(link: &mut Link, id: &str) -> Result<(Option<acp::SessionInfo>, Vec<String>), LinkError> {
    let mut known = Vec::new();
    let mut cursor = None;
    for _ in 0..PAGES_MAX {
        let page = page(link, cursor).await?;
        for session in page.sessions {
            if session.session_id.to_string() == id {
                return Ok((Some(session), known));
            }
            known.push(session.session_id.to_string());
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    Ok((None, known))
}

async fn page(link: &mut Link, cursor: Option<String>) -> Result<acp::ListSessionsResponse, LinkError> {
    let params = match cursor {
        Some(cursor) => json!({"cursor": cursor}),
        None => json!({}),
    };
    link.ask("session/list", params, CHILD_PATIENCE).await
}

/// The folder a new session belongs to: this one, or the root where this one is gone.
fn here() -> PathBuf {
    std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"))
}

/// What is said of a session that does not exist: its nearest, and else the most recent ones.
fn unknown(id: &str, known: &[String]) -> String {
    let id_shown = one_line(id, 80);
    let mut rest: Vec<&str> = known.iter().map(String::as_str).collect();
    let mut near = Vec::new();
    while near.len() < SUGGESTIONS
        && let Some(next) = nearest(id, rest.iter().copied())
    {
        near.push(next);
        rest.retain(|other| *other != next);
    }
    let quote = |ids: &[&str]| ids.iter().map(|id| format!("`{id}`")).collect::<Vec<_>>().join(", ");
    match (near.is_empty(), known.is_empty()) {
        (false, _) => format!("there is no session `{id_shown}`; the nearest: {}", quote(&near)),
        (true, false) => {
            let recent: Vec<_> = rest.into_iter().take(SUGGESTIONS).collect();
            format!("there is no session `{id_shown}`; the most recent: {}", quote(&recent))
        }
        (true, true) => {
            format!("there is no session `{id_shown}`, nor any other; `lisa chat --new` begins one")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_session_is_answered_with_the_nearest() {
        let check = |id: &str, known: &[&str], expected: &str| {
            let known: Vec<_> = known.iter().map(|id| (*id).to_owned()).collect();
            assert_eq!(unknown(id, &known), expected);
        };
        check(
            "20261130-abce",
            &["20261130-abcd", "zzz", "20261129-abcd"],
            "there is no session `20261130-abce`; the nearest: `20261130-abcd`, `20261129-abcd`",
        );
        check("灯", &["a", "b", "c", "d"], "there is no session `灯`; the most recent: `a`, `b`, `c`");
        check("x", &[], "there is no session `x`, nor any other; `lisa chat --new` begins one");
    }
}
