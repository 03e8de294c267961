//! One run: claimed in the ledger, opened at the soul, thought by the agent, ended in the ledger with what came of it.

use std::time::Duration;

use ipc::{
    client::{AskError, Client, Patience},
    contract::{
        agent::{self, Agent, Pursued},
        heartbeat::Outcome,
        soul::{self, Call, Desire, RunKind, RunToken, Soul},
    },
    id::RequestId,
    text::one_line,
};
use jiff::{SignedDuration, ZonedDateTime};
use tracing::warn;

use crate::{
    due::{self, task_of},
    prompt::pursuit,
    task::Task,
};

/// The tools she has in her own time: an allow-list, never "all but".
const TOOLS: [&str; 13] = [
    "soul_read",
    "soul_history",
    "soul_diff",
    "soul_journal",
    "soul_remember",
    "soul_recall",
    "soul_patch",
    "soul_feel",
    "soul_object",
    "desire_progress_log",
    "desire_revise",
    "desire_close",
    "skill",
];
/// How the agent's runtime begins what it adds to her words.
const ADDED: &str = "[lisa] ";
/// How long the soul may take for one step.
pub(crate) const PATIENCE: Duration = Duration::from_secs(15);
/// How much longer than the turn itself its answer may take.
const GRACE: Duration = Duration::from_mins(1);

/// The processes a run needs.
#[derive(Debug, Clone)]
pub(crate) struct Reach {
    pub(crate) soul: Client<Soul>,
    pub(crate) agent: Client<Agent>,
    pub(crate) turn_max: SignedDuration,
}

/// What came of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Beat {
    pub(crate) outcome: Outcome,
    pub(crate) session: Option<String>,
    pub(crate) note: String,
}

impl Reach {
    /// Her desires as they are now, in the order that the soul puts them in.
    pub(crate) async fn desires(&self) -> Result<Vec<Desire>, String> {
        let desires = match self.soul.ask(&soul::Request::Snapshot, PATIENCE).await {
            Ok(soul::Reply::Snapshot(snapshot)) => snapshot.desires,
            Ok(soul::Reply::Refused { reason }) => return Err(reason),
            Ok(_) => return Err("the soul answered another question".to_owned()),
            Err(error) => return Err(error.to_string()),
        };
        match self.soul.ask(&soul::Request::Drives, PATIENCE).await {
            Ok(soul::Reply::Drives(drives)) => Ok(due::in_order(desires, &drives)),
            Ok(soul::Reply::Refused { reason }) => Err(reason),
            Ok(_) => Err("the soul answered another question".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Does what a run is for; it was claimed before.
    pub(crate) async fn run(&self, run: &RequestId, task: &Task, now: &ZonedDateTime) -> Beat {
        let done = match task {
            Task::Desire(desire) => self.pursue(run, desire, now).await,
            Task::Dream => self.dream(run, now).await,
        };
        match done {
            Ok(beat) => beat,
            Err(why) => Beat { outcome: Outcome::Failed, session: None, note: why },
        }
    }

    async fn pursue(&self, run: &RequestId, desire: &Desire, now: &ZonedDateTime) -> Result<Beat, String> {
        let task = task_of(&desire.slug);
        let token = self.open_run(RunKind::Heartbeat, &task).await?;
        let pursued = self.think(run, &token, task, pursuit(desire, now), &TOOLS).await?;
        Ok(self.conclude(desire, &token, pursued).await)
    }

    /// Has the agent spend one turn on a task, with these tools and no others.
    pub(crate) async fn think(
        &self,
        run: &RequestId,
        token: &RunToken,
        task: String,
        prompt: String,
        tools: &[&str],
    ) -> Result<Pursued, String> {
        let tools = tools.iter().map(|tool| (*tool).to_owned()).collect();
        let request =
            agent::Request::Pursue { run: token.clone(), task, prompt, tools, turn_max: self.turn_max };
        // asked of one life only: a run that died half-way is a run that failed, not one to do again from the start
        let patience = Patience { deadline: self.turn_max.unsigned_abs() + GRACE, attempts_max: 1 };
        match self.agent.ask_as(run.clone(), &request, patience).await {
            Ok(agent::Reply::Pursued(pursued)) => Ok(pursued),
            Ok(agent::Reply::Refused { reason }) => Err(reason),
            Ok(_) => Err("the agent answered another question".to_owned()),
            Err(AskError::Lost { .. }) => Err("the agent died in the middle of it".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    pub(crate) async fn open_run(&self, kind: RunKind, task: &str) -> Result<RunToken, String> {
        let open = soul::Request::OpenRun { kind, task: task.to_owned() };
        match self.soul.ask(&open, PATIENCE).await {
            Ok(soul::Reply::RunOpened { run }) => Ok(run),
            Ok(soul::Reply::Refused { reason }) => Err(reason),
            Ok(_) => Err("the soul answered another question".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Looks at what was really done: progress is what the soul was given, not what the turn says (T09, T39).
    async fn conclude(&self, desire: &Desire, token: &RunToken, pursued: Pursued) -> Beat {
        let session = Some(pursued.session.clone());
        if let Some(error) = pursued.error {
            let note = with_objection(one_line(&error, 300), &pursued.text);
            return Beat { outcome: Outcome::Failed, session, note };
        }
        if logged(&pursued) {
            return Beat { outcome: Outcome::Progressed, session, note: told(&pursued.text) };
        }
        let entry = format!(
            "[FALLBACK] This run ended ({}) without an entry. Tools used: {}. Session: {}.",
            pursued.stop_reason,
            names(&pursued),
            pursued.session
        );
        let note = match self.log(desire, token, &pursued.session, entry).await {
            Ok(()) => "she wrote nothing down; a fallback entry says so".to_owned(),
            Err(why) => {
                warn!(desire = desire.slug, why, "the fallback entry could not be written");
                format!("she wrote nothing down, and the fallback entry could not be written: {why}")
            }
        };
        Beat { outcome: Outcome::NoProgress, session, note: with_objection(note, &pursued.text) }
    }

    async fn log(
        &self,
        desire: &Desire,
        token: &RunToken,
        session: &str,
        entry: String,
    ) -> Result<(), String> {
        let call = soul::Request::Call(Call {
            tool: "desire_progress_log".to_owned(),
            input: serde_json::json!({"slug": desire.slug, "entry": entry}),
            run: Some(token.clone()),
            session: Some(session.to_owned()),
            model: "none".to_owned(),
            outside: false,
        });
        match self.soul.ask(&call, PATIENCE).await {
            Ok(soul::Reply::Called(called)) if !called.failed => Ok(()),
            Ok(soul::Reply::Called(called)) => Err(called.output),
            Ok(soul::Reply::Refused { reason }) => Err(reason),
            Ok(_) => Err("the soul answered another question".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// What she said, as a note; what the runtime added about an objection of hers is never cut off with the rest.
pub(crate) fn told(text: &str) -> String {
    match text.split_once(ADDED) {
        Some((hers, _)) => with_objection(one_line(hers, 300), text),
        None => one_line(text, 300),
    }
}

/// A note, with what the runtime added about an objection of hers, where it did.
pub(crate) fn with_objection(note: String, text: &str) -> String {
    match text.split_once(ADDED) {
        Some((_, objection)) => {
            format!("{note} {}", one_line(&format!("{ADDED}{objection}"), 1000)).trim().to_owned()
        }
        None => note,
    }
}

fn logged(pursued: &Pursued) -> bool {
    pursued.tools.iter().any(|run| run.tool == "desire_progress_log" && !run.failed)
}

fn names(pursued: &Pursued) -> String {
    if pursued.tools.is_empty() {
        return "none".to_owned();
    }
    let name =
        |run: &agent::ToolRun| if run.failed { format!("{} (failed)", run.tool) } else { run.tool.clone() };
    pursued.tools.iter().map(name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ipc::contract::agent::ToolRun;

    #[test]
    fn s21_what_she_objected_to_is_never_cut_off_a_note() {
        let long = format!("{}\n\n[lisa] She objected: 不行", "word ".repeat(200));
        assert!(told(&long).ends_with("… [lisa] She objected: 不行"), "{}", told(&long));
        assert_eq!(told("[lisa] She objected"), "[lisa] She objected");
        assert_eq!(told("done"), "done");
        assert_eq!(with_objection("it failed".into(), "x [lisa] y"), "it failed [lisa] y");
        assert_eq!(with_objection("it failed".into(), "x"), "it failed");
    }

    #[test]
    fn t09_progress_is_an_entry_that_was_taken_and_nothing_else() {
        let pursued = |tools: &[(&str, bool)]| Pursued {
            session: "s".into(),
            text: "done!".into(),
            tools: tools
                .iter()
                .map(|(tool, failed)| ToolRun { tool: (*tool).into(), failed: *failed, writes: true })
                .collect(),
            stop_reason: "end_turn".into(),
            error: None,
        };
        assert!(!logged(&pursued(&[])));
        assert!(!logged(&pursued(&[("soul_journal", false)])));
        assert!(!logged(&pursued(&[("desire_progress_log", true)])));
        assert!(logged(&pursued(&[("soul_read", false), ("desire_progress_log", false)])));
        assert_eq!(
            names(&pursued(&[("soul_read", false), ("soul_patch", true)])),
            "soul_read, soul_patch (failed)"
        );
        assert_eq!(names(&pursued(&[])), "none");
    }
}
