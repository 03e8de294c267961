//! The night's dream: what qualifies is asked of the soul first, and where nothing does, no model is woken for it.
//!
//! What came of it is read from her history: a dream is what the soul took, and not what the turn says of itself (T09).

use ipc::{
    contract::{
        heartbeat::Outcome,
        soul::{Candidates, Notes, Reply, Request, RunKind},
    },
    id::RequestId,
    text::one_line,
};
use jiff::ZonedDateTime;

use crate::{
    beat::{Beat, PATIENCE, Reach, told, with_objection},
    night,
    prompt::dream,
};

/// The tools she has in a dream: an allow-list, never "all but".
const TOOLS: [&str; 8] = [
    "soul_read",
    "soul_history",
    "soul_status",
    "soul_candidates",
    "soul_dream",
    "soul_memory",
    "soul_recall",
    "soul_journal",
];
/// The documents that a dream changes, apart from those it is about.
const MARKS: [&str; 2] = ["dreams", "memory"];
/// How many notes are looked through for those that are ready, the newest.
const NOTES_MAX: u32 = 1000;

impl Reach {
    /// Lets her dream, where there is something to dream of.
    pub(crate) async fn dream(&self, run: &RequestId, now: &ZonedDateTime) -> Result<Beat, String> {
        let (candidates, notes) = (self.candidates().await?, self.notes().await?);
        if candidates.qualifying.is_empty() && notes.ready().next().is_none() {
            let note = "nothing qualifies, so no model was asked; all that was noticed counts on".to_owned();
            return Ok(Beat { outcome: Outcome::NoProgress, session: None, note });
        }
        let before = self.marks().await?;
        let token = self.open_run(RunKind::Dream, night::TASK).await?;
        let prompt = dream(&candidates, &notes, now);
        let pursued = self.think(run, &token, night::TASK.to_owned(), prompt, &TOOLS).await?;
        let has_dreamt = self.marks().await? != before;
        let session = Some(pursued.session);
        let (outcome, note) = match (pursued.error, has_dreamt) {
            (Some(error), _) => (Outcome::Failed, with_objection(one_line(&error, 300), &pursued.text)),
            (None, true) => (Outcome::Progressed, told(&pursued.text)),
            (None, false) => {
                let note = "nothing was merged; what qualifies waits for another night".to_owned();
                (Outcome::NoProgress, with_objection(note, &pursued.text))
            }
        };
        Ok(Beat { outcome, session, note })
    }

    async fn candidates(&self) -> Result<Candidates, String> {
        match self.soul_says(&Request::Candidates).await? {
            Reply::Candidates(candidates) => Ok(*candidates),
            _ => Err(ANOTHER.to_owned()),
        }
    }

    async fn notes(&self) -> Result<Notes, String> {
        match self.soul_says(&Request::Notes { query: None, limit: NOTES_MAX }).await? {
            Reply::Notes(notes) => Ok(notes),
            _ => Err(ANOTHER.to_owned()),
        }
    }

    /// The newest commits of what a dream writes.
    async fn marks(&self) -> Result<Vec<Option<String>>, String> {
        let mut newest = Vec::new();
        for document in MARKS {
            let asked = Request::History { document: Some(document.to_owned()), limit: 1, since: None };
            match self.soul_says(&asked).await? {
                Reply::History { entries } => {
                    newest.push(entries.into_iter().next().map(|entry| entry.commit));
                }
                _ => return Err(ANOTHER.to_owned()),
            }
        }
        Ok(newest)
    }

    async fn soul_says(&self, asked: &Request) -> Result<Reply, String> {
        match self.soul.ask(asked, PATIENCE).await {
            Ok(Reply::Refused { reason }) => Err(reason),
            Ok(reply) => Ok(reply),
            Err(error) => Err(error.to_string()),
        }
    }
}

const ANOTHER: &str = "the soul answered another question";
