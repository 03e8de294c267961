//! The prompt as the agent holds it: rebuilt when the version of what it is made of moved, and only then.
//!
//! That version is the soul's prompt version and the fingerprints of the skills and of the project's instructions. The first
//! moves when the soul tells of a change, when one of our own writes is answered, and when the connection was lost
//! (anything may have happened then); the others when a look at the files before a model call finds them moved.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
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

use crate::{
    prompt,
    surroundings::{Print, Surroundings},
};

/// How long the soul may take to describe her. Longer than a restart of it, which the question outlives.
const PATIENCE: Duration = Duration::from_secs(15);
/// A version that no snapshot has.
const UNKNOWN: u64 = u64::MAX;

/// How many prompts are kept; more conversations than are ever held at once.
const PROMPTS_MAX: usize = 64;

/// What a model call begins with.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    /// The system prompt.
    pub(crate) prompt: Arc<str>,
    /// The tools the soul offers.
    pub(crate) tools: Arc<[ToolSpec]>,
    /// What it was built with beside the soul.
    pub(crate) around: Arc<Surroundings>,
}

/// Whose prompt it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    /// Whom she talks with, where that is known.
    pub(crate) person: Option<&'a str>,
    /// Where the session works.
    pub(crate) folder: Option<&'a Path>,
}

/// What a prompt was made of: equal where nothing moved.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Version {
    soul: u64,
    around: Print,
}

/// Whose prompt is kept: with whom she talks, and where.
type PromptOf = (Option<String>, Option<PathBuf>);

/// What the soul said at one version, and the prompts that were built from it.
#[derive(Debug)]
struct Known {
    version: u64,
    snapshot: Box<Snapshot>,
    tools: Arc<[ToolSpec]>,
    /// By whom she talks with and where, each with the version it was last built from.
    prompts: BTreeMap<PromptOf, (Version, Arc<str>)>,
    /// The version of which it was said that it made a prompt another.
    said: Option<Version>,
}

impl Known {
    /// The prompt for one reader, built once a version.
    fn prompt(&mut self, reader: Reader<'_>, around: &Surroundings) -> Arc<str> {
        let version = Version { soul: self.version, around: around.print.clone() };
        let of = (reader.person.map(str::to_owned), reader.folder.map(Path::to_owned));
        let before = self.prompts.get(&of).cloned();
        if let Some((built_from, prompt)) = &before
            && *built_from == version
        {
            return prompt.clone();
        }
        let built: Arc<str> = prompt::build(&self.snapshot, reader.person, around).into();
        // one text is kept once, so that whoever compares them compares an address
        let built = before
            .as_ref()
            .map(|(_, before)| before)
            .filter(|before| **before == built)
            .cloned()
            .unwrap_or(built);
        let is_said = self.said.as_ref() == Some(&version);
        if let Some((_, before)) = before.filter(|(_, before)| *before != built && !is_said) {
            let bytes = prompt::bytes_diff(&before, &built);
            info!(version = self.version, "[soul] system prompt rebuilt ({bytes} bytes diff)");
            self.said = Some(version.clone());
        }
        if self.prompts.len() >= PROMPTS_MAX {
            self.prompts.clear();
        }
        self.prompts.insert(of, (version, built.clone()));
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

    /// The prompt as of now, for one reader and with what is around her.
    pub(crate) async fn current(
        &self,
        soul: &Client<Soul>,
        reader: Reader<'_>,
        around: Arc<Surroundings>,
    ) -> Result<Held, PortraitError> {
        let mut known = self.known.lock().await;
        let told = self.told.load(Ordering::Acquire);
        let mut now = match known.take() {
            Some(current) if current.version == told => current,
            before => match ask(soul, before.as_ref().filter(|_| told != UNKNOWN)).await {
                Ok((snapshot, tools)) => {
                    let version = snapshot.prompt_version;
                    let said = before.as_ref().and_then(|before| before.said.clone());
                    let said = said.filter(|said| said.soul == version);
                    // the same number is not the same self: a history may have been changed by hand meanwhile
                    let mut prompts = before.map(|before| before.prompts).unwrap_or_default();
                    for (of, _) in prompts.values_mut() {
                        of.soul = UNKNOWN;
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
        let held = Held { prompt: now.prompt(reader, &around), tools: now.tools.clone(), around };
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

    const NOBODY: Reader<'static> = Reader { person: None, folder: None };
    const ANNA: Reader<'static> = Reader { person: Some("anna"), folder: None };

    fn known(version: u64, page: &str) -> Known {
        let page = Page { slug: "anna".into(), title: "who".into(), body: page.into() };
        let snapshot = Snapshot { prompt_version: version, relationships: vec![page], ..Snapshot::default() };
        let (snapshot, tools) = (snapshot.into(), [].into());
        Known { version, snapshot, tools, prompts: BTreeMap::new(), said: None }
    }

    #[test]
    fn t38_a_prompt_is_built_once_a_version_for_each_reader_and_said_once() {
        let none = Surroundings::default();
        let mut now = known(1, "hums");
        let (anna, nobody) = (now.prompt(ANNA, &none), now.prompt(NOBODY, &none));
        assert!(Arc::ptr_eq(&anna, &now.prompt(ANNA, &none)));
        assert!(Arc::ptr_eq(&nobody, &now.prompt(NOBODY, &none)));
        assert!(anna.starts_with(&*nobody) && anna.contains("hums") && now.said.is_none());
        let mut later = Known { prompts: now.prompts, ..known(2, "sings") };
        assert_eq!(later.prompt(NOBODY, &none), nobody, "what is no part of it does not change it");
        assert!(later.said.is_none());
        assert!(later.prompt(ANNA, &none).contains("sings") && later.said.is_some());
        assert!(Arc::ptr_eq(&later.prompt(ANNA, &none), &later.prompt(ANNA, &none)));
    }

    #[test]
    fn t38_what_moved_around_her_makes_another_version_and_only_another_text_another_prompt() {
        let folder = tempfile::tempdir().unwrap();
        let lookout = crate::surroundings::Lookout::new(folder.path().join("home"), None);
        let work = folder.path().join("work");
        std::fs::create_dir(&work).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let look = || runtime.block_on(lookout.look(Some(&work), jiff::Timestamp::MAX));
        let mut now = known(1, "hums");
        let reader = Reader { person: None, folder: Some(&work) };
        let first = now.prompt(reader, &look());
        std::fs::write(work.join("AGENTS.md"), "use tabs").unwrap();
        let second = now.prompt(reader, &look());
        assert!(second.starts_with(&*first) && second.contains("\n| use tabs\n"), "{second}");
        let said = now.said.clone();
        assert!(said.is_some());
        // what a prompt does not show moves the version, and not a byte of the prompt
        std::fs::write(work.join("AGENTS.md"), "use tabs\n\n").unwrap();
        assert!(Arc::ptr_eq(&second, &now.prompt(reader, &look())));
        assert_eq!(now.said, said);
        std::fs::remove_file(work.join("AGENTS.md")).unwrap();
        assert_eq!(now.prompt(reader, &look()), first, "as if it had never been there");
    }

    #[test]
    fn the_prompts_that_are_kept_have_a_bound() {
        let mut now = known(1, "hums");
        for person in 0..200 {
            let person = format!("p{person}");
            now.prompt(Reader { person: Some(&person), folder: None }, &Surroundings::default());
            assert!(now.prompts.len() <= PROMPTS_MAX);
        }
    }
}
