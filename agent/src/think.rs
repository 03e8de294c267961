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

use std::{sync::Arc, time::Duration};

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
    conversation::stop_reason,
    length::{self, Front, TooLong},
    mind::Mind,
    objection::{self, Pending},
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

/// What is said where a turn has used up what it may.
const SPENT_NOTE: &str = "\n[the turn was ended because it used as many tokens as one may have]\n";

/// What a turn is for.
#[derive(Debug, Clone)]
pub(crate) struct Work {
    /// The request that asked for it.
    pub(crate) request: RequestId,
    /// The run of her own time it belongs to.
    pub(crate) run: Option<RunToken>,
    /// The tools it may use; all without.
    pub(crate) tools: Option<Vec<String>>,
    /// How often the model may be asked.
    pub(crate) rounds_max: u32,
    /// How many tokens its answers may cost; the one that goes beyond is the last.
    pub(crate) tokens_max: Option<u64>,
    /// What was said elsewhere that it is about, and from where on: what came from outside there counts here as it did in
    /// its own turns, and before that where it is repeated.
    pub(crate) looks_back_on: Arc<[Message]>,
    pub(crate) looks_back_from: usize,
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
    /// Her objections, until they are settled.
    pub(crate) pending: Pending,
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
    #[error(transparent)]
    TooLong(#[from] TooLong),
}

/// Runs the turn at the end of `transcript` until it is over. However it ends, no objection of hers stays unsaid.
pub(crate) async fn run(
    mind: &Mind,
    transcript: &mut Transcript,
    work: &Work,
    voice: &Voice,
    cancel: &CancellationToken,
) -> Result<Ended, TurnError> {
    let pending = objection::begin(mind, transcript, work, voice).await;
    let model = mind.provider.model().to_owned();
    let mut ended =
        Ended { stop: StopReason::EndTurn, model, text: String::new(), tools: Vec::new(), pending };
    let went = rounds(mind, transcript, work, voice, cancel, &mut ended).await;
    let outcome = went.as_ref().map_or_else(|_| "error".to_owned(), |()| stop_reason(ended.stop));
    let pending = std::mem::take(&mut ended.pending);
    let added = objection::settle(mind, transcript, work, voice, pending, &outcome).await;
    if !added.is_empty() {
        let between = if ended.text.is_empty() { "" } else { "\n\n" };
        ended.text = format!("{}{between}{added}", ended.text);
    }
    went.map(|()| ended)
}

async fn rounds(
    mind: &Mind,
    transcript: &mut Transcript,
    work: &Work,
    voice: &Voice,
    cancel: &CancellationToken,
    ended: &mut Ended,
) -> Result<(), TurnError> {
    let person = mind.person_in(&transcript.header).map(str::to_owned);
    let left_over = turn::calls(&transcript.dangling());
    if !left_over.is_empty() {
        info!(request = %work.request, calls = left_over.len(), "taking up calls of an earlier life");
        let held = mind.portrait.current(&mind.soul, person.as_deref()).await?;
        let tools = allowed(&held.tools, work);
        use_tools(mind, transcript, work, voice, &tools, left_over, ended).await?;
    }
    for round in 1.. {
        let held = mind.portrait.current(&mind.soul, person.as_deref()).await?;
        let system = ended.pending.prompt(&held.prompt);
        transcript.prompted(&system, mind.now()).await?;
        let tools = allowed(&held.tools, work);
        let front = Front { system, tools: &tools };
        let Some(answer) = length::answer(mind, transcript, front, work, voice, cancel).await? else {
            ended.stop = StopReason::Cancelled;
            return Ok(());
        };
        transcript.spend(&mind.known.cost(&answer.model, &answer.usage));
        let is_spent = work.tokens_max.is_some_and(|max| transcript.turn_cost().tokens() >= max);
        transcript.answered_by(&answer.model, mind.now()).await?;
        let next = turn::after(&answer, round, work.rounds_max);
        let last_calls = turn::last_calls(&answer, round, work.rounds_max);
        ended.model = answer.model;
        let said: Vec<_> = answer.blocks.iter().filter_map(Block::as_text).collect();
        if !said.is_empty() {
            ended.text = said.join("\n");
            ended.pending.hear(&ended.text);
        }
        if !answer.blocks.is_empty() {
            let message = Message { role: Role::Assistant, content: answer.blocks };
            transcript.say(message, None, mind.now()).await?;
        }
        match next {
            Step::Run(calls) => {
                use_tools(mind, transcript, work, voice, &tools, calls, ended).await?;
                // behind the results, so that whatever goes on with it finds every call answered
                if is_spent {
                    voice.note(SPENT_NOTE);
                    ended.stop = StopReason::MaxTurnRequests;
                    return Ok(());
                }
            }
            Step::End(StopReason::EndTurn, _) if !is_spent && ended.pending.force(round) => {
                voice.note(objection::FORCED_NOTE);
                transcript.say_ours(Message::user(objection::FORCED), mind.now()).await?;
            }
            Step::End(stop, note) => {
                if !last_calls.is_empty() {
                    use_tools(mind, transcript, work, voice, &tools, last_calls, ended).await?;
                }
                if let Some(note) = note {
                    voice.note(&format!("\n[{note}]\n"));
                }
                ended.stop = stop;
                return Ok(());
            }
        }
    }
    unreachable!("a turn has a last round")
}

/// Asks the model, and shows its answer while it comes in.
pub(crate) async fn ask(
    mind: &Mind,
    request: &ModelRequest,
    voice: &Voice,
) -> Result<Completion, ProviderError> {
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
    // a turn whose beginning is not known is all of the conversation: too much is marked then, and nothing too little
    let begin = transcript.begin(&work.request).unwrap_or(0);
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
                let elsewhere = &work.looks_back_on;
                let outside = tool.writes
                    && (outside::stems(&transcript.messages, begin, &input)
                        || outside::stems(elsewhere, work.looks_back_from, &input));
                let call = soul::Call {
                    tool: name.clone(),
                    outside,
                    input,
                    run: work.run.clone(),
                    session: Some(transcript.header.id.clone()),
                    model: ended.model.clone(),
                };
                use_tool(mind, call_id(work.request.as_str(), &id), call).await
            }
        };
        if let Some(written) = &called.written {
            mind.portrait.told(written.prompt_version);
        }
        // what is in her documents may be anybody's who had a hand on the files
        let output = reveal(&called.output).into_owned();
        if let Some(raised) = &called.objection {
            let pending = &mut ended.pending;
            objection::raise(transcript, &work.request, voice, pending, raised, mind.now()).await?;
        }
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
pub(crate) fn call_id(turn: &str, call: &str) -> RequestId {
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
        assert_eq!(call_id("abc", "call_1_0"), call_id("abc", "call_1_0"));
        assert_ne!(call_id("abc", "call_1_0"), call_id("abc", "call_1_1"));
        assert_ne!(call_id("abc", "call_1_0"), call_id(RequestId::fresh().as_str(), "call_1_0"));
    }

    #[test]
    fn a_title_names_the_tool_and_what_it_is_about() {
        assert_eq!(title("soul_patch", &json!({"field": "identity", "content": "x"})), "soul_patch identity");
        assert_eq!(title("soul_journal", &json!({"entry": "x"})), "soul_journal");
    }
}
