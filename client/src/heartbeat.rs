//! `lisa heartbeat run`: has her spend time of her own now, and says what came of it.

use std::time::Duration;

use ipc::{
    contract::{
        chat::HEARTBEAT,
        heartbeat::{Outcome, Reply, Request, RunReport},
    },
    exit::Fault,
    home::Home,
    text::one_line,
};
use serde_json::json;

use crate::{
    arguments::HeartbeatCommand,
    link::{Link, LinkError},
    output,
};

/// How long a run may take: a turn has ten minutes by default, and more than one task may be due.
const RUN_PATIENCE: Duration = Duration::from_mins(15);

/// The longest note shown, in characters.
const NOTE_CHARS_MAX: usize = 500;

/// Does what is asked of her own time.
pub(crate) async fn heartbeat(home: &Home, json: bool, command: HeartbeatCommand) -> Result<(), Fault> {
    let HeartbeatCommand::Run { task } = command;
    let mut link = Link::open(home).await?;
    if output::stderr_is_terminal() {
        output::aside(&format!("running {} …", task.as_deref().unwrap_or("whatever is due")));
    }
    let runs = match link.ask(HEARTBEAT, Request::Run { task }, RUN_PATIENCE).await? {
        Reply::Ran { runs } => runs,
        Reply::Refused { reason } => return Err(Fault::failed(reason)),
        other @ Reply::Status(_) => {
            return Err(LinkError::Unintelligible(format!("it answered a run with {other:?}")).into());
        }
    };
    if json {
        output::json(&json!({"runs": runs}))?;
    } else if runs.is_empty() {
        output::aside("nothing was due");
    }
    if !json {
        for run in &runs {
            output::lines(&report(run))?;
        }
    }
    match runs.iter().filter(|run| !went_well(run.outcome)).count() {
        0 => Ok(()),
        failed => Err(Fault::failed(format!("{failed} of {} runs failed", runs.len()))),
    }
}

fn went_well(outcome: Outcome) -> bool {
    match outcome {
        Outcome::Progressed | Outcome::NoProgress => true,
        Outcome::Failed | Outcome::Interrupted => false,
    }
}

fn report(run: &RunReport) -> String {
    let outcome = match run.outcome {
        Outcome::Progressed => "progressed",
        Outcome::NoProgress => "no progress",
        Outcome::Failed => "failed",
        Outcome::Interrupted => "interrupted",
    };
    let took = run.ended.duration_since(run.started).as_secs_f64();
    let session = run.session.as_deref().map(|session| format!(" · session {session}")).unwrap_or_default();
    let mut report = format!("{} · {outcome} · {took:.1} s{session}", run.task);
    let note = one_line(&run.note, NOTE_CHARS_MAX);
    if !note.is_empty() {
        report.push_str("\n  ");
        report.push_str(&note);
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_says_what_came_of_it() {
        let mut run = RunReport {
            run: "r1".into(),
            task: "desire:learn-rust".into(),
            outcome: Outcome::Progressed,
            session: Some("s1".into()),
            note: "写下了\n进展".into(),
            started: "2026-11-30T12:00:00Z".parse().unwrap(),
            ended: "2026-11-30T12:00:12.34Z".parse().unwrap(),
        };
        assert_eq!(report(&run), "desire:learn-rust · progressed · 12.3 s · session s1\n  写下了 进展");
        (run.outcome, run.session, run.note) = (Outcome::Interrupted, None, String::new());
        assert_eq!(report(&run), "desire:learn-rust · interrupted · 12.3 s");
        assert!(went_well(Outcome::NoProgress) && !went_well(Outcome::Failed));
    }
}
