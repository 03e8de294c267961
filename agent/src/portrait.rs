//! The prompt as the agent holds it: rebuilt when the soul's prompt version moved, and only then.
//!
//! Before each model call one number is compared. It moves when the soul tells of a change, when one of our own writes
//! is answered, and when the connection was lost (anything may have happened then).

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use std::time::Duration;

use ipc::{
    client::{AskError, Client},
    contract::soul::{Reply, Request, Snapshot, Soul, ToolSpec},
};
use tokio::sync::Mutex;
use tracing::info;

use crate::prompt;

/// How long the soul may take to describe her. Longer than a restart of it, which the question outlives.
const PATIENCE: Duration = Duration::from_secs(15);
/// A version that no snapshot has.
const UNKNOWN: u64 = u64::MAX;

/// What a model call begins with.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    version: u64,
    /// The system prompt.
    pub(crate) prompt: Arc<str>,
    /// The tools the soul offers.
    pub(crate) tools: Arc<[ToolSpec]>,
}

/// Why there is no prompt.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PortraitError {
    /// The soul did not answer.
    #[error("who she is could not be read")]
    Soul(#[from] AskError),
    /// It answered something else.
    #[error("who she is could not be read: {0}")]
    Refused(String),
}

/// The prompt, and which version the soul was last heard to have.
#[derive(Debug)]
pub(crate) struct Portrait {
    told: AtomicU64,
    held: Mutex<Option<Held>>,
}

impl Portrait {
    /// Before anything is known.
    pub(crate) fn unknown() -> Self {
        Self { told: AtomicU64::new(UNKNOWN), held: Mutex::new(None) }
    }

    /// The soul has this version now.
    pub(crate) fn told(&self, version: u64) {
        self.told.store(version, Ordering::Release);
    }

    /// Anything may have changed.
    pub(crate) fn forget(&self) {
        self.told(UNKNOWN);
    }

    /// The prompt as of now.
    pub(crate) async fn current(&self, soul: &Client<Soul>) -> Result<Held, PortraitError> {
        let mut held = self.held.lock().await;
        let told = self.told.load(Ordering::Acquire);
        if let Some(current) = held.as_ref().filter(|held| held.version == told) {
            return Ok(current.clone());
        }
        // tools change with the soul's build alone, so with the connection
        let tools = match held.as_ref().filter(|_| told != UNKNOWN) {
            Some(held) => held.tools.clone(),
            None => tools(soul).await?,
        };
        let snapshot = snapshot(soul).await?;
        let built: Arc<str> = prompt::build(&snapshot).into();
        if let Some(before) = held.as_ref().filter(|before| before.prompt != built) {
            let bytes = prompt::bytes_diff(&before.prompt, &built);
            info!(version = snapshot.prompt_version, "[soul] system prompt rebuilt ({bytes} bytes diff)");
        }
        let current = Held { version: snapshot.prompt_version, prompt: built, tools };
        *held = Some(current.clone());
        // what was told meanwhile is newer than what was asked for, and stands
        let _ = self.told.compare_exchange(told, current.version, Ordering::AcqRel, Ordering::Acquire);
        Ok(current)
    }
}

async fn snapshot(soul: &Client<Soul>) -> Result<Box<Snapshot>, PortraitError> {
    match soul.ask(&Request::Snapshot, PATIENCE).await? {
        Reply::Snapshot(snapshot) => Ok(snapshot),
        other => Err(refused(other)),
    }
}

async fn tools(soul: &Client<Soul>) -> Result<Arc<[ToolSpec]>, PortraitError> {
    match soul.ask(&Request::Tools, PATIENCE).await? {
        Reply::Tools(tools) => Ok(tools.into()),
        other => Err(refused(other)),
    }
}

fn refused(reply: Reply) -> PortraitError {
    PortraitError::Refused(match reply {
        Reply::Refused { reason } => reason,
        _ => "the soul answered another question".to_owned(),
    })
}
