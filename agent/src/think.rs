//! One turn: prompt, model, tools, again, until the model is done.
//!
//! ```text
//!   compare the prompt's version ─▶ ask the model (streamed) ─▶ write the answer down ─▶ tools? ─▶ write their results down ─┐
//!              ▲                                                                          │ none: the turn is over            │
//!              └──────────────────────────────────────────────────────────────────────────┴───────────────────────────────────┘
//! ```
//!
//! A call is written down before it runs. Its id in the soul is made of the turn's id and the call's, so that a life that
//! takes up a turn another one left can ask for the same call again and get the first outcome: nothing runs twice.

use std::time::Duration;

use ipc::{
    acp::StopReason,
    client::{AskError, Patience},
    contract::{
        agent::ToolRun,
        soul::{self, Called, Reply, RunToken, ToolSpec},
    },
    digest::sha256_hex,
    id::RequestId,
    reveal::reveal,
    text::one_line,
};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::{
    mind::Mind,
    outside,
    portrait::PortraitError,
    provider::{Block, Completion, Delta, Input, Message, ModelRequest, ProviderError, Role},
    session::{SessionError, Transcript},
    turn::{self, Call, Step},
    voice::Voice,
};

/// How long one tool may take. Longer than a restart of the soul, which the question outlives.
const TOOL_PATIENCE: Duration = Duration::from_secs(30);
/// How many pieces of an answer may wait to be shown.
const DELTAS_MAX: usize = 64;

/// What a turn is for.
#[derive(Debug, Clone)]
pub(crate) struct Work {
    /// The request that asked for it.
    pub(crate) request: RequestId,
    /// The run of her own time it belongs to.
    pub(crate) run: Option<RunToken>,
    /// The tools it may use; all without.
    pub(crate) tools: Option<Vec<String>>,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ended {
    pub(crate) stop: StopReason,
    /// Which model answered last: with a chain of them not always the same.
    pub(crate) model: String,
    /// What she said last.
    pub(crate) text: String,
    pub(crate) tools: Vec<ToolRun>,
}

/// Why a turn could not go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TurnError {
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error(transparent)]
    Portrait(#[from] PortraitError),
    #[error(transparent)]
    Model(#[from] ProviderError),
}

/// Runs the turn at the end of `transcript` until it is over.
pub(crate) async fn run(
    mind: &Mind,
    transcript: &mut Transcript,
    work: &Work,
    voice: &Voice,
    cancel: &CancellationToken,
) -> Result<Ended, TurnError> {
    let model = mind.provider.model().to_owned();
    let mut ended = Ended { stop: StopReason::EndTurn, model, text: String::new(), tools: Vec::new() };
    let left_over = turn::calls(&transcript.dangling());
    if !left_over.is_empty() {
        info!(request = %work.request, calls = left_over.len(), "taking up calls of an earlier life");
        let held = mind.portrait.current(&mind.soul).await?;
        let tools = allowed(&held.tools, work);
        use_tools(mind, transcript, work, voice, &tools, left_over, &mut ended).await?;
    }
    for round in 1.. {
        let held = mind.portrait.current(&mind.soul).await?;
        transcript.prompted(&held.prompt, mind.now()).await?;
        let tools = allowed(&held.tools, work);
        let request = ModelRequest {
            system: held.prompt.to_string(),
            messages: transcript.repaired(),
            tools: tools.clone(),
        };
        let answer = tokio::select! {
            answer = ask(mind, &request, voice) => answer?,
            () = cancel.cancelled() => {
                ended.stop = StopReason::Cancelled;
                return Ok(ended);
            }
        };
        let next = turn::after(&answer, round);
        ended.model = answer.model;
        let said: Vec<_> = answer.blocks.iter().filter_map(Block::as_text).collect();
        if !said.is_empty() {
            ended.text = said.join("\n");
        }
        if !answer.blocks.is_empty() {
            let message = Message { role: Role::Assistant, content: answer.blocks };
            transcript.say(message, None, mind.now()).await?;
        }
        match next {
            Step::Run(calls) => use_tools(mind, transcript, work, voice, &tools, calls, &mut ended).await?,
            Step::End(stop, note) => {
                if let Some(note) = note {
                    voice.note(&format!("\n[{note}]\n"));
                }
                ended.stop = stop;
                return Ok(ended);
            }
        }
    }
    unreachable!("a turn has a last round")
}

async fn ask(mind: &Mind, request: &ModelRequest, voice: &Voice) -> Result<Completion, ProviderError> {
    let (deltas, mut shown) = mpsc::channel(DELTAS_MAX);
    let show = async {
        while let Some(delta) = shown.recv().await {
            match delta {
                Delta::Text(text) => voice.text(&text),
                Delta::Thinking(text) => voice.thought(&text),
            }
        }
    };
    let (answer, ()) = tokio::join!(mind.provider.stream(request, deltas), show);
    answer
}

fn allowed(offered: &[ToolSpec], work: &Work) -> Vec<ToolSpec> {
    let may = |tool: &&ToolSpec| work.tools.as_ref().is_none_or(|tools| tools.contains(&tool.name));
    offered.iter().filter(may).cloned().collect()
}

async fn use_tools(
    mind: &Mind,
    transcript: &mut Transcript,
    work: &Work,
    voice: &Voice,
    tools: &[ToolSpec],
    calls: Vec<Call>,
    ended: &mut Ended,
) -> Result<(), TurnError> {
    let mut results = Vec::new();
    for call in calls {
        let Call { id, name, input } = call;
        let tool = tools.iter().find(|tool| tool.name == name);
        let shown = match &input {
            Input::Object(input) => Value::Object(input.clone()),
            Input::Unusable { raw, .. } => Value::String(raw.clone()),
        };
        voice.tool_begins(&id, &title(&name, &shown), tool.is_some_and(|tool| tool.writes), &shown);
        let called = match (tool, input) {
            (None, _) => bad_news(format!("there is no tool `{}` here", one_line(&name, 80))),
            (Some(_), Input::Unusable { why, .. }) => {
                bad_news(format!("`{name}` was not run: its input cannot be used, {why}"))
            }
            (Some(tool), Input::Object(input)) => {
                let input = Value::Object(input);
                let call = soul::Call {
                    tool: name.clone(),
                    outside: tool.writes && outside::stems(&transcript.messages, &input),
                    input,
                    run: work.run.clone(),
                    session: Some(transcript.header.id.clone()),
                    model: ended.model.clone(),
                };
                use_tool(mind, call_id(&work.request, &id), call).await
            }
        };
        if let Some(written) = &called.written {
            mind.portrait.told(written.prompt_version);
        }
        // what is in her documents may be anybody's who had a hand on the files
        let output = reveal(&called.output).into_owned();
        voice.tool_ends(&id, &output, called.failed);
        ended.tools.push(ToolRun { tool: name, failed: called.failed });
        results.push(Block::result(id, output, called.failed));
    }
    transcript.say(Message { role: Role::User, content: results }, None, mind.now()).await?;
    Ok(())
}

async fn use_tool(mind: &Mind, id: RequestId, call: soul::Call) -> Called {
    let tool = call.tool.clone();
    match mind.soul.ask_as(id.clone(), &soul::Request::Call(call), Patience::of(TOOL_PATIENCE)).await {
        Ok(Reply::Called(called)) => called,
        Ok(Reply::Refused { reason }) => bad_news(reason),
        Ok(_) => bad_news("the soul answered another question".to_owned()),
        Err(error) => {
            warn!(request = %id, tool, %error, "tool has no outcome");
            let lost = matches!(error, AskError::Late { .. } | AskError::Lost { .. });
            let rest =
                if lost { "; whether it took effect is unknown, look before doing it again" } else { "" };
            bad_news(format!("`{tool}` has no outcome: {error}{rest}"))
        }
    }
}

/// The id of a call in the soul, the same in every life that asks for it.
fn call_id(turn: &RequestId, call: &str) -> RequestId {
    let digest = sha256_hex(format!("{turn}:{call}").as_bytes());
    let short: String = digest.chars().take(32).collect();
    RequestId::try_from(short).expect("hexadecimal digits are an id")
}

fn bad_news(output: String) -> Called {
    Called::failed(output)
}

fn title(name: &str, input: &Value) -> String {
    let about = ["field", "slug", "what", "tool"].iter().find_map(|key| input.get(key)?.as_str());
    match about {
        Some(about) => format!("{name} {}", one_line(about, 60)),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_call_has_one_id_in_every_life() {
        let turn = RequestId::try_from("abc".to_owned()).unwrap();
        assert_eq!(call_id(&turn, "call_1_0"), call_id(&turn, "call_1_0"));
        assert_ne!(call_id(&turn, "call_1_0"), call_id(&turn, "call_1_1"));
        assert_ne!(call_id(&turn, "call_1_0"), call_id(&RequestId::fresh(), "call_1_0"));
    }

    #[test]
    fn a_title_names_the_tool_and_what_it_is_about() {
        assert_eq!(title("soul_patch", &json!({"field": "identity", "content": "x"})), "soul_patch identity");
        assert_eq!(title("soul_journal", &json!({"entry": "x"})), "soul_journal");
    }
}
