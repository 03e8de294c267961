//! The prompt as the agent holds it: rebuilt when the soul's prompt version moved, and only then.
//!
//! Before each model call one number is compared. It moves when the soul tells of a change, when one of our own writes
//! is answered, and when the connection was lost (anything may have happened then).

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

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

/// How many people's prompts are kept; more than ever talk with one self at once.
const PEOPLE_MAX: usize = 32;

/// What a model call begins with.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    /// The system prompt.
    pub(crate) prompt: Arc<str>,
    /// The tools the soul offers.
    pub(crate) tools: Arc<[ToolSpec]>,
}

/// What the soul said at one version, and the prompts that were built from it.
#[derive(Debug)]
struct Known {
    version: u64,
    snapshot: Box<Snapshot>,
    tools: Arc<[ToolSpec]>,
    /// By whom she talks with, each with the version it was last built from.
    prompts: BTreeMap<Option<String>, (u64, Arc<str>)>,
    /// Whether it was said that this version made a prompt another.
    said: bool,
}

impl Known {
    /// The prompt for one person, built once a version.
    fn prompt(&mut self, person: Option<&str>) -> Arc<str> {
        let person = person.map(str::to_owned);
        let before = self.prompts.get(&person).cloned();
        if let Some((version, prompt)) = &before
            && *version == self.version
        {
            return prompt.clone();
        }
        let built: Arc<str> = prompt::build(&self.snapshot, person.as_deref()).into();
        // one text is kept once, so that whoever compares them compares an address
        let built = before
            .as_ref()
            .map(|(_, before)| before)
            .filter(|before| **before == built)
            .cloned()
            .unwrap_or(built);
        if let Some((_, before)) = before.filter(|(_, before)| *before != built && !self.said) {
            let bytes = prompt::bytes_diff(&before, &built);
            info!(version = self.version, "[soul] system prompt rebuilt ({bytes} bytes diff)");
            self.said = true;
        }
        if self.prompts.len() >= PEOPLE_MAX {
            self.prompts.clear();
        }
        self.prompts.insert(person, (self.version, built.clone()));
        built
    }
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
    known: Mutex<Option<Known>>,
}

impl Portrait {
    /// Before anything is known.
    pub(crate) fn unknown() -> Self {
        Self { told: AtomicU64::new(UNKNOWN), known: Mutex::new(None) }
    }

    /// The soul has this version now.
    pub(crate) fn told(&self, version: u64) {
        self.told.store(version, Ordering::Release);
    }

    /// Anything may have changed.
    pub(crate) fn forget(&self) {
        self.told(UNKNOWN);
    }

    /// The prompt as of now, in a conversation with `person` where that is known.
    pub(crate) async fn current(
        &self,
        soul: &Client<Soul>,
        person: Option<&str>,
    ) -> Result<Held, PortraitError> {
        let mut known = self.known.lock().await;
        let told = self.told.load(Ordering::Acquire);
        let mut now = match known.take() {
            Some(current) if current.version == told => current,
            before => match ask(soul, before.as_ref().filter(|_| told != UNKNOWN)).await {
                Ok((snapshot, tools)) => {
                    let version = snapshot.prompt_version;
                    let said = before.as_ref().is_some_and(|before| before.said && before.version == version);
                    // the same number is not the same self: a history may have been changed by hand meanwhile
                    let mut prompts = before.map(|before| before.prompts).unwrap_or_default();
                    for (of, _) in prompts.values_mut() {
                        *of = UNKNOWN;
                    }
                    Known { version, snapshot, tools, prompts, said }
                }
                Err(error) => {
                    // what it was before is what the next one is compared with
                    *known = before;
                    return Err(error);
                }
            },
        };
        let held = Held { prompt: now.prompt(person), tools: now.tools.clone() };
        // what was told meanwhile is newer than what was asked for, and stands
        let _ = self.told.compare_exchange(told, now.version, Ordering::AcqRel, Ordering::Acquire);
        *known = Some(now);
        Ok(held)
    }
}

/// What the soul shows now. Its tools change with its build alone, so with the connection.
async fn ask(
    soul: &Client<Soul>,
    before: Option<&Known>,
) -> Result<(Box<Snapshot>, Arc<[ToolSpec]>), PortraitError> {
    let tools = match before {
        Some(before) => before.tools.clone(),
        None => tools(soul).await?,
    };
    Ok((snapshot(soul).await?, tools))
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

#[cfg(test)]
mod tests {
    use super::*;
    use ipc::contract::soul::Held as Page;

    fn known(version: u64, page: &str) -> Known {
        let page = Page { slug: "anna".into(), title: "who".into(), body: page.into() };
        let snapshot = Snapshot { prompt_version: version, relationships: vec![page], ..Snapshot::default() };
        Known { version, snapshot: snapshot.into(), tools: [].into(), prompts: BTreeMap::new(), said: false }
    }

    #[test]
    fn t38_a_prompt_is_built_once_a_version_for_each_person_and_said_once() {
        let mut now = known(1, "hums");
        let (anna, nobody) = (now.prompt(Some("anna")), now.prompt(None));
        assert!(Arc::ptr_eq(&anna, &now.prompt(Some("anna"))) && Arc::ptr_eq(&nobody, &now.prompt(None)));
        assert!(anna.starts_with(&*nobody) && anna.contains("hums") && !now.said);
        let mut later = Known { prompts: now.prompts, ..known(2, "sings") };
        assert_eq!(later.prompt(None), nobody, "what is no part of it does not change it");
        assert!(!later.said);
        assert!(later.prompt(Some("anna")).contains("sings") && later.said);
        assert!(Arc::ptr_eq(&later.prompt(Some("anna")), &later.prompt(Some("anna"))));
    }

    #[test]
    fn the_prompts_that_are_kept_have_a_bound() {
        let mut now = known(1, "hums");
        for person in 0..200 {
            now.prompt(Some(&format!("p{person}")));
            assert!(now.prompts.len() <= PEOPLE_MAX);
        }
    }
}
