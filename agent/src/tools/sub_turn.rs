//! `task`: a piece of work done in a turn of its own, of which the caller gets the answer and not the way to it.
//!
//! ```text
//!  task {prompt, tools} ─▶ a session of its own, with the caller's person and folder ─▶ think ─▶ its answer is the result
//! ```
//!
//! It promises: no tool that the caller does not have, and never this one; no more steps and no more tokens than the caller
//! has left, and what it used the caller has no more; it ends with the caller's turn. What the caller heard from outside is from
//! outside in it, and its answer is from outside for the caller. No objection raised in it stays unsaid: the runtime tells it in
//! the session the person is in, and it is part of the result.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    sync::{Arc, PoisonError, atomic::Ordering},
    time::Duration,
};

use futures_util::future::BoxFuture;
use ipc::{
    acp::StopReason,
    contract::{agent::ToolRun, soul::ToolSpec},
    exit::chain,
    text::one_line,
};
use serde_json::{Map, Value, json};
use tracing::info;

use super::{Outcome, Task, Tool, call_id};
use crate::{
    conversation::stop_reason,
    mind::Mind,
    provider::{Message, Role},
    pursue::within,
    session::{Header, SessionError, Transcript},
    think::{self, Ended, TurnError, Work},
};

/// Its name.
pub(super) const NAME: &str = "task";
/// How often the model is asked in one that says nothing else.
const STEPS: u32 = 12;
/// How long one may go on.
const LONGEST: Duration = Duration::from_mins(20);
/// How long it has to end once it is cancelled: its own tools first, a write that waits for a soul that restarts, and then
/// what is to be told.
const ENDS_WITHIN: Duration = Duration::from_secs(45);
/// What it begins with, before what is asked.
const INTRODUCTION: &str = "[task] A piece of your work, given by yourself in the middle of a conversation; the conversation \
    itself is not shown here. Do it, and answer with what came of it: your last words here are all that comes back.";

/// The tool.
pub(super) struct SubTurn;

impl Tool for SubTurn {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: NAME.to_owned(),
            description: "Have a piece of work done apart, with a prompt of its own: you get its answer, and none of the way to it. \
                 It knows nothing of this conversation, so say all it needs. Good for a long search; not for what you could do in \
                 one call."
                .to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "prompt": {"type": "string", "minLength": 1, "maxLength": 20_000, "description": "what to do, and what to answer"},
                    "tools": {
                        "type": "array", "maxItems": 100, "items": {"type": "string", "maxLength": 200},
                        "description": "the names of the tools it may use, of those you have; without, all that change nothing",
                    },
                    "steps": {"type": "integer", "minimum": 1, "maximum": 31, "description": format!("the most steps it may take; {STEPS} without")},
                },
                "required": ["prompt"],
                "additionalProperties": false,
            }),
            writes: true,
        }
    }

    fn changes(&self) -> bool {
        false
    }

    fn deadline(&self, _: &Map<String, Value>) -> Duration {
        LONGEST + ENDS_WITHIN
    }

    fn ends_within(&self) -> Duration {
        ENDS_WITHIN
    }

    fn run<'a>(&'a self, task: Task<'a>, input: Map<String, Value>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let prompt = input.get("prompt").and_then(Value::as_str).unwrap_or_default();
            let steps = input.get("steps").and_then(Value::as_u64);
            let allowed = allowed(task.offer.specs(), input.get("tools"));
            match (allowed, steps_of(steps, task.rounds_left)) {
                (Err(why), _) | (_, Err(why)) => Outcome::failed(format!("`{NAME}` was not begun: {why}")),
                (Ok(tools), Ok(steps)) => begin(task, prompt, tools, steps).await,
            }
        })
    }
}

/// The tools it may use, of those the caller has.
fn allowed(has: &[ToolSpec], asked: Option<&Value>) -> Result<Vec<String>, String> {
    let has: Vec<&ToolSpec> = has.iter().filter(|tool| tool.name != NAME).collect();
    let Some(asked) = asked.and_then(Value::as_array) else {
        return Ok(has.iter().filter(|tool| !tool.writes).map(|tool| tool.name.clone()).collect());
    };
    let asked: BTreeSet<&str> = asked.iter().filter_map(Value::as_str).collect();
    if asked.contains(NAME) {
        return Err(format!("it cannot have `{NAME}` itself; leave it out of `tools`"));
    }
    match asked.iter().find(|name| has.iter().all(|tool| tool.name != **name)) {
        Some(unknown) => {
            let names: Vec<&str> = has.iter().map(|tool| tool.name.as_str()).collect();
            let names = names.join(", ");
            Err(format!("you have no tool `{}` to give it; you have {names}", one_line(unknown, 80)))
        }
        None => Ok(asked.into_iter().map(str::to_owned).collect()),
    }
}

/// How many steps it gets: at least one stays for the caller, who has to answer with what came of it.
fn steps_of(asked: Option<u64>, left: u32) -> Result<u32, String> {
    let asked = asked.map_or(STEPS, |asked| u32::try_from(asked).unwrap_or(u32::MAX));
    match asked.min(left.saturating_sub(1)) {
        0 => Err("this turn has no steps left to give it; answer with what you have".to_owned()),
        steps => Ok(steps),
    }
}

async fn begin(task: Task<'_>, prompt: &str, tools: Vec<String>, steps: u32) -> Outcome {
    let mind = task.mind;
    let mut own = match session(mind, &task.transcript.header).await {
        Ok(own) => own,
        Err(error) => return Outcome::failed(format!("`{NAME}` was not begun: {}", chain(&error))),
    };
    let (looks_back_on, looks_back_from) = heard(&task);
    let work = Work {
        tokens_max: task.work.tokens_left(task.transcript.turn_cost().tokens()),
        request: call_id(task.request.as_str(), &format!("{NAME}:{}", task.call)),
        run: task.work.run.clone(),
        tools: Some(tools),
        rounds_max: steps,
        looks_back_on,
        looks_back_from,
        is_part: true,
        in_parts: Arc::default(),
    };
    info!(session = task.session, part = own.header.id, folder = ?task.folder, "a piece of a turn begins");
    let cancel = task.cancel.child_token();
    let ended = within(LONGEST, &cancel, turn(task, &mut own, prompt, &work, &cancel)).await;
    let used = own.messages.iter().filter(|message| message.role == Role::Assistant).count();
    let used = u32::try_from(used).unwrap_or(u32::MAX).min(steps);
    task.work.in_parts.rounds.fetch_add(used, Ordering::Relaxed);
    task.work.in_parts.tokens.fetch_add(own.turn_cost().tokens(), Ordering::Relaxed);
    // of one that failed it is not known here what it did
    let lost = || vec![ToolRun { tool: "?".to_owned(), failed: false, writes: true }];
    let runs = ended.as_ref().map_or_else(|_| lost(), |ended| ended.tools.clone());
    task.work.in_parts.runs.lock().unwrap_or_else(PoisonError::into_inner).extend(runs);
    let (stop, error) = match &ended {
        Ok(ended) => (stop_reason(ended.stop), None),
        Err(error) => ("error".to_owned(), Some(chain(error))),
    };
    if let Err(error) = own.ended(&work.request, &stop, error.as_deref(), mind.now()).await {
        return Outcome::failed(format!("the end of `{NAME}` could not be written down: {}", chain(&error)));
    }
    match ended {
        Ok(ended) => told(&own.header.id, &ended),
        // what was added about an objection is said also where nothing else came of it
        Err(error) => {
            let added = own.added(&work.request);
            Outcome::failed(format!("`{NAME}` failed: {}\n\n{added}", chain(&error)).trim_end().to_owned())
        }
    }
}

async fn session(mind: &Mind, of: &Header) -> Result<Transcript, SessionError> {
    let person = mind.person_in(of).map(str::to_owned);
    let (catalog, of) = (mind.catalog.clone(), of.clone());
    let (model, now) = (mind.models.name(), mind.here_and_now());
    let making = tokio::task::spawn_blocking(move || {
        let header = catalog.create_part(&of, person, &model, &now)?;
        catalog.read(&header.id)
    });
    making.await.expect("making a session does not panic")
}

/// What the caller heard, and from where on it counts as heard in this very turn.
fn heard(task: &Task<'_>) -> (Arc<[Message]>, usize) {
    let (work, transcript) = (task.work, task.transcript);
    let before = work.looks_back_on.len();
    let begin = transcript.begin(&work.request).unwrap_or(0);
    // where the caller looks back itself, too much counts rather than too little
    let from = if before == 0 { begin } else { work.looks_back_from };
    (work.looks_back_on.iter().chain(&transcript.messages).cloned().collect(), from)
}

async fn turn(
    task: Task<'_>,
    own: &mut Transcript,
    prompt: &str,
    work: &Work,
    cancel: &tokio_util::sync::CancellationToken,
) -> Result<Ended, TurnError> {
    let message = Message::user(format!("{INTRODUCTION}\n\n{prompt}"));
    own.say(message, Some(&work.request), task.mind.now()).await?;
    think::run(task.mind, own, work, &task.voice.part(task.call), cancel).await
}

/// What the caller is told.
fn told(session: &str, ended: &Ended) -> Outcome {
    let mut text = match ended.text.trim() {
        "" => "(it said nothing)".to_owned(),
        said => said.to_owned(),
    };
    let why = match ended.stop {
        StopReason::EndTurn => None,
        StopReason::Cancelled => Some("it was cancelled before it was done"),
        StopReason::MaxTurnRequests => Some("it used up its steps before it was done"),
        StopReason::MaxTokens => Some("its answer was cut at the model's limit"),
        _ => Some("the provider withheld the rest of its answer"),
    };
    if let Some(why) = why {
        let _ = write!(text, "\n\n({why})");
    }
    let run = |run: &ToolRun| format!("{}{}", run.tool, if run.failed { " (failed)" } else { "" });
    let tools: Vec<String> = ended.tools.iter().map(run).collect();
    let tools = if tools.is_empty() { "none".to_owned() } else { tools.join(", ") };
    let _ = write!(text, "\n\n(session {session}; tools: {tools})");
    Outcome { output: text, failed: ended.stop == StopReason::Cancelled }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, writes: bool) -> ToolSpec {
        ToolSpec { name: name.into(), description: String::new(), input_schema: json!({}), writes }
    }

    #[test]
    fn it_has_no_tool_that_the_caller_has_not_and_never_itself() {
        let has = [tool("read", false), tool("bash", true), tool(NAME, true), tool("soul_object", true)];
        let check = |asked: Option<Value>, expected: Result<&[&str], &str>| match (
            allowed(&has, asked.as_ref()),
            expected,
        ) {
            (Ok(tools), Ok(expected)) => assert_eq!(tools, expected, "{asked:?}"),
            (Err(why), Err(part)) => assert!(why.contains(part), "{asked:?}: {why}"),
            (got, expected) => panic!("{got:?}, not {expected:?}"),
        };
        check(None, Ok(&["read"]));
        check(Some(json!(["bash", "read", "bash"])), Ok(&["bash", "read"]));
        check(Some(json!([])), Ok(&[]));
        check(Some(json!(["read", NAME])), Err("cannot have `task` itself"));
        check(Some(json!(["write"])), Err("no tool `write`"));
    }

    #[test]
    fn it_has_no_more_steps_than_are_left_and_one_stays() {
        let check = |asked: Option<u64>, left: u32, expected: Option<u32>| {
            assert_eq!(steps_of(asked, left).ok(), expected, "{asked:?} of {left}");
        };
        check(None, 31, Some(STEPS));
        check(Some(31), 31, Some(30));
        check(Some(3), 31, Some(3));
        check(None, 2, Some(1));
        check(Some(5), 1, None);
        check(None, 0, None);
    }
}
