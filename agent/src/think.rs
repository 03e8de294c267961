//! One turn: prompt, model, tools, again, until the model is done.
//!
//! ```text
//!   compare the prompt's version ─▶ ask the model (streamed) ─▶ write the answer down ─▶ tools? ─▶ write their results down ─┐
//!              ▲                                                                          │ none: the turn is over            │
//!              └──────────────────────────────────────────────────────────────────────────┴───────────────────────────────────┘
//! ```
//!
//! A call is written down before it runs. Its id in the soul is made of the turn's id and the call's, so that a life that
//! takes up a turn another one left can ask for the same call again and get the first outcome: nothing runs twice
//! (`tools`).

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU32, AtomicU64, Ordering},
};

use ipc::{
    acp::StopReason,
    contract::{agent::ToolRun, soul::RunToken},
    id::RequestId,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::{
    claim,
    conversation::stop_reason,
    length::{self, Front, TooLong},
    mind::Mind,
    models::Thinker,
    objection::{self, Pending},
    portrait::PortraitError,
    provider::{Block, Completion, Delta, Message, ModelRequest, Provider, ProviderError, Role},
    session::{SessionError, Transcript},
    tools::{Calling, is_delegate},
    turn::{self, Call, Step},
    voice::Voice,
};

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
    /// Whether it is a piece of another turn: nobody but that one reads what it says.
    pub(crate) is_part: bool,
    /// What was asked in pieces of it, which counts as if it had been asked here.
    pub(crate) in_parts: Arc<InParts>,
}

/// What the pieces of a turn used.
#[derive(Debug, Default)]
pub(crate) struct InParts {
    /// How often the model was asked.
    pub(crate) rounds: AtomicU32,
    /// How many tokens that cost.
    pub(crate) tokens: AtomicU64,
    /// What was done.
    pub(crate) runs: Mutex<Vec<ToolRun>>,
}

impl Work {
    /// Whether it may use the tool of that name.
    fn may(&self, tool: &str) -> bool {
        self.tools.as_ref().is_none_or(|tools| tools.iter().any(|name| name == tool))
    }

    /// How often the model may be asked here, with what its pieces have used.
    fn rounds(&self) -> u32 {
        self.rounds_max.saturating_sub(self.in_parts.rounds.load(Ordering::Relaxed))
    }

    /// How many tokens it and pieces of it may still cost, where it used so many itself; none where nothing bounds them.
    pub(crate) fn tokens_left(&self, used: u64) -> Option<u64> {
        let used = used.saturating_add(self.in_parts.tokens.load(Ordering::Relaxed));
        self.tokens_max.map(|max| max.saturating_sub(used))
    }

    /// Whether no person reads what is said in it, so that only the runtime can tell of an objection.
    pub(crate) fn is_unread(&self) -> bool {
        self.run.is_some() || self.is_part
    }
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
    let earlier = transcript.ran_in(&work.request);
    let pending = objection::begin(mind, transcript, work, voice).await;
    // one turn, one model: what is set meanwhile is for the next
    let thinker = mind.models.for_a_turn().await;
    let model = thinker.provider.model().to_owned();
    if let Some(before) = transcript.thinker.replace(model.clone()).filter(|before| *before != model) {
        voice.note(&format!("[model] `{model}` thinks from here on, after `{before}`\n"));
    }
    let mut ended =
        Ended { stop: StopReason::EndTurn, model, text: String::new(), tools: Vec::new(), pending };
    let went = rounds(mind, &thinker, transcript, work, voice, cancel, &mut ended).await;
    let outcome = went.as_ref().map_or_else(|_| "error".to_owned(), |()| stop_reason(ended.stop));
    let said = ended.text.clone();
    let pending = std::mem::take(&mut ended.pending);
    let added = objection::settle(mind, transcript, work, voice, pending, &outcome).await;
    if !added.is_empty() {
        let between = if ended.text.is_empty() { "" } else { "\n\n" };
        ended.text = format!("{}{between}{added}", ended.text);
    }
    if went.is_ok() && ended.stop == StopReason::EndTurn {
        let receipts = receipts(work, &ended.tools, earlier);
        let note = claim::check(mind, transcript, work, voice, (&said, &receipts)).await;
        // where nobody hears the note, whoever reads the reply finds it there
        if work.is_unread() && !note.is_empty() {
            ended.text = format!("{}\n\n{note}", ended.text);
        }
    }
    went.map(|()| ended)
}

/// What bears out what she says she did in the turn: her tools, those of its pieces, and those another life has run.
fn receipts(work: &Work, tools: &[ToolRun], earlier: Vec<ToolRun>) -> Vec<ToolRun> {
    let here = tools.iter().filter(|run| !is_delegate(&run.tool)).cloned();
    let in_parts = work.in_parts.runs.lock().unwrap_or_else(PoisonError::into_inner).clone();
    here.chain(in_parts).chain(earlier).collect()
}

async fn rounds(
    mind: &Mind,
    thinker: &Thinker,
    transcript: &mut Transcript,
    work: &Work,
    voice: &Voice,
    cancel: &CancellationToken,
    ended: &mut Ended,
) -> Result<(), TurnError> {
    if work.tools.is_none() {
        mind.servers.settle().await;
    }
    let left_over = turn::calls(&transcript.dangling());
    if !left_over.is_empty() {
        info!(request = %work.request, calls = left_over.len(), "taking up calls of an earlier life");
        let held = mind.held(&transcript.header).await?;
        let offer = mind.toolbox.offer(&held.tools, |tool| work.may(tool));
        let model = ended.model.clone();
        let calling = Calling {
            mind,
            work,
            voice,
            cancel,
            offer: &offer,
            around: &held.around,
            model: &model,
            is_taken_up: true,
            rounds_left: work.rounds(),
        };
        use_tools(transcript, &calling, left_over, ended).await?;
    }
    for round in 1.. {
        let held = mind.held(&transcript.header).await?;
        let system = ended.pending.prompt(&held.prompt);
        transcript.prompted(&system, mind.now()).await?;
        let offer = mind.toolbox.offer(&held.tools, |tool| work.may(tool));
        let front = Front { system, tools: offer.specs() };
        let Some(answer) = length::answer(thinker, transcript, front, (mind, work, voice), cancel).await?
        else {
            ended.stop = StopReason::Cancelled;
            return Ok(());
        };
        transcript.spend(&thinker.known.cost(&answer.model, &answer.usage));
        let is_spent = work.tokens_left(transcript.turn_cost().tokens()) == Some(0);
        transcript.answered_by(&answer.model, mind.now()).await?;
        let next = turn::after(&answer, round, work.rounds());
        let last_calls = turn::last_calls(&answer, round, work.rounds());
        ended.model.clone_from(&answer.model);
        let calling = Calling {
            mind,
            work,
            voice,
            cancel,
            offer: &offer,
            around: &held.around,
            model: &answer.model,
            is_taken_up: false,
            rounds_left: work.rounds().saturating_sub(round),
        };
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
                use_tools(transcript, &calling, calls, ended).await?;
                // behind the results, so that whatever goes on with it finds every call answered
                if is_spent {
                    voice.note(SPENT_NOTE);
                    ended.stop = StopReason::MaxTurnRequests;
                    return Ok(());
                }
            }
            // a piece of a turn is not made to go on: its answer is read by no person, and the runtime tells of what is open
            Step::End(StopReason::EndTurn, _) if !is_spent && !work.is_part && ended.pending.force(round) => {
                voice.note(objection::FORCED_NOTE);
                transcript.say_ours(Message::user(objection::FORCED), mind.now()).await?;
            }
            Step::End(stop, note) => {
                if !last_calls.is_empty() {
                    use_tools(transcript, &calling, last_calls, ended).await?;
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
    provider: &dyn Provider,
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
    let (answer, ()) = tokio::join!(provider.stream(request, deltas), show);
    answer
}

/// Runs the calls of one answer, and writes down what came of them.
async fn use_tools(
    transcript: &mut Transcript,
    calling: &Calling<'_>,
    calls: Vec<Call>,
    ended: &mut Ended,
) -> Result<(), TurnError> {
    let (mind, work, voice) = (calling.mind, calling.work, calling.voice);
    let mut results = Vec::new();
    for stage in calling.stages(calls) {
        for done in calling.run(transcript, stage).await {
            if let Some(raised) = &done.objection {
                let pending = &mut ended.pending;
                objection::raise(transcript, &work.request, voice, pending, raised, mind.now()).await?;
            }
            ended.tools.push(done.run);
            results.push(done.block);
        }
    }
    transcript.say(Message { role: Role::User, content: results }, None, mind.now()).await?;
    Ok(())
}
