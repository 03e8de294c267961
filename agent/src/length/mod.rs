//! A conversation of any length with a model that takes in so much: it is asked, and what it is shown is shortened when that
//! is needed.
//!
//! ```text
//!  about 80 % of the window ─▶ shorten ─▶ ask ──▶ answer: what was counted corrects the estimate
//!                                          └─ "too long" ─▶ shorten, once ─▶ ask ─▶ answer, or the error
//! ```
//!
//! Who she is, her tools and the newest turn stay word for word; the rest becomes a summary, by the model, or by a rule where
//! there is none or it fails. The session's file keeps everything, and says what was summed up. What cannot be made short
//! enough is an error that says so: nothing is cut off silently.

pub(crate) mod estimate;
mod plan;
mod summary;

use std::time::Duration;

use ipc::contract::soul::ToolSpec;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use self::{
    plan::{Cut, Room, Whole, cut},
    summary::Older,
};
use crate::{
    mind::Mind,
    models::Thinker,
    provider::{Completion, Message, ModelRequest, Role, Stop},
    session::{By, Compaction, Transcript, as_sent},
    think::{TurnError, Work, ask},
    voice::Voice,
};

/// The model that needs neither key nor network; it sums up nothing.
const OFFLINE: &str = "offline";
/// How long a model may take to sum up; then the rule does.
const SUMMARY_PATIENCE: Duration = Duration::from_mins(2);
/// The longest summary, in tokens, and which part of the window it may have at most.
const SUMMARY_TOKENS_MAX: u64 = 1500;
const SUMMARY_PART: u64 = 8;

/// Something that does not fit, and cannot be made to.
#[derive(Debug, thiserror::Error)]
#[error(
    "the conversation does not fit into `{model}`, which takes in about {window} tokens: what cannot be left out (who she is, \
     her tools, what was said last) has about {needed}; say it in fewer words, set `context` under `[model]` in config.toml \
     if the model takes in more, or use a model that does"
)]
pub(crate) struct TooLong {
    model: String,
    window: u64,
    needed: u64,
}

/// What stands before a conversation.
#[derive(Debug)]
pub(crate) struct Front<'a> {
    pub(crate) system: String,
    pub(crate) tools: &'a [ToolSpec],
}

/// Asks the model for what comes next, with as much of the conversation as it takes in; nothing where that was cancelled.
pub(crate) async fn answer(
    thinker: &Thinker,
    transcript: &mut Transcript,
    front: Front<'_>,
    (mind, work, voice): (&Mind, &Work, &Voice),
    cancel: &CancellationToken,
) -> Result<Option<Completion>, TurnError> {
    let fixed = estimate::fixed(&front.system, front.tools);
    let known = thinker.known.window(thinker.provider.model());
    let turn = Turn { mind, thinker, work, voice, cancel, fixed };
    if let Some(window) = transcript.gauge.fits(known)
        && fixed + transcript.load() > eighty_percent(window)
    {
        let shortened = turn.shorten(transcript, window, &room(window, fixed)).await?;
        // an estimate that is only near the window is no reason to refuse what may fit
        if !shortened && !cancel.is_cancelled() && fixed + transcript.load() > window {
            return Err(turn.too_long(transcript, window).into());
        }
    }
    let mut request = ModelRequest {
        system: front.system,
        messages: transcript.sent(),
        tools: front.tools.to_vec(),
        said: transcript.messages.len(),
    };
    let load = fixed + transcript.load();
    let Some(mut answered) = unless(cancel, ask(thinker.provider.as_ref(), &request, voice)).await else {
        return Ok(None);
    };
    if let Err(error) = &answered
        && error.is_too_long()
    {
        warn!(request = %work.request, load, %error, "the conversation is too long for the model");
        transcript.gauge.overflowed(load);
        let window = transcript.gauge.fits(known).unwrap_or(load);
        let room = room_after_overflow(window, fixed, transcript.load());
        if turn.shorten(transcript, window, &room).await? {
            request.messages = transcript.sent();
            let Some(again) = unless(cancel, ask(thinker.provider.as_ref(), &request, voice)).await else {
                return Ok(None);
            };
            answered = again;
        }
    }
    let answered = answered?;
    if let Some(counted) = answered.usage.read() {
        transcript.gauge.heard(fixed + transcript.load(), counted);
    }
    Ok(Some(answered))
}

/// Does something that may be dropped at any time; nothing where it was cancelled first.
async fn unless<T>(cancel: &CancellationToken, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        done = work => Some(done),
        () = cancel.cancelled() => None,
    }
}

/// Above which load a conversation is shortened before it is sent: the answer needs room as well.
fn eighty_percent(window: u64) -> u64 {
    window / 5 * 4
}

/// How much room a conversation has in a window of which so much is taken before it begins.
fn room(window: u64, fixed: u64) -> Room {
    Room {
        summary: SUMMARY_TOKENS_MAX.min(window / SUMMARY_PART),
        good: (window / 2).saturating_sub(fixed),
        most: eighty_percent(window).saturating_sub(fixed),
    }
}

/// The same where a server said that it was too long. What it takes in is a guess then, and where most of what was sent
/// stands before the conversation the guess leaves no room at all; half of the conversation is worth trying before an error.
fn room_after_overflow(window: u64, fixed: u64, load: u64) -> Room {
    let Room { summary, good, most } = room(window, fixed);
    Room { summary: summary.min(load / 4), good: good.max(load / 4), most: most.max(load / 2) }
}

/// What shortening needs of the turn it happens in.
struct Turn<'a> {
    mind: &'a Mind,
    thinker: &'a Thinker,
    work: &'a Work,
    voice: &'a Voice,
    cancel: &'a CancellationToken,
    /// About how many tokens stand before the conversation.
    fixed: u64,
}

impl Turn<'_> {
    /// Sums up the older part of the conversation and writes that down; false where there is nothing to sum up, where that
    /// would not be enough, or where the turn was cancelled.
    async fn shorten(
        &self,
        transcript: &mut Transcript,
        window: u64,
        room: &Room,
    ) -> Result<bool, TurnError> {
        let (mind, fixed) = (self.mind, self.fixed);
        let begin = begin(transcript, self.work);
        let from = transcript.compaction.as_ref().map_or(0, |compaction| compaction.up_to);
        let load = transcript.load();
        let whole = Whole { messages: &transcript.messages, sizes: transcript.sizes(), from, begin, load };
        let Some(Cut { up_to, keep, .. }) = cut(&whole, room) else { return Ok(false) };
        self.voice.note("\n[this conversation has grown long; its older part is being summed up]\n");
        let older = Older {
            before: transcript.compaction.as_ref().map(|compaction| compaction.summary.as_str()),
            messages: transcript.messages.get(from..up_to).unwrap_or_default(),
        };
        let text_max = text_max(room.summary);
        let Some((summary, cost)) =
            unless(self.cancel, by_model(self.thinker, &older, window, text_max)).await
        else {
            return Ok(false);
        };
        let (summary, by) = match summary {
            Some(summary) => (summary, By::Model),
            None => (summary::by_rule(&older, text_max), By::Rule),
        };
        transcript.spend(&cost);
        let (request, before) = (self.work.request.as_str().to_owned(), fixed + load);
        let written = Compaction { ts: mind.now(), request, up_to, keep, summary, by, before, after: 0 };
        let after = fixed + transcript.load_with(&written);
        info!(session = transcript.header.id, up_to, before, after, ?by, "conversation shortened");
        transcript.compacted(Compaction { after, ..written }).await?;
        self.voice.note(&format!(
            "\n[its first {up_to} messages are summed up: about {before} tokens became {after}]\n"
        ));
        Ok(true)
    }

    fn too_long(&self, transcript: &Transcript, window: u64) -> TooLong {
        let newest: u64 = transcript.sizes().iter().skip(begin(transcript, self.work)).sum();
        TooLong { model: self.thinker.provider.model().to_owned(), window, needed: self.fixed + newest }
    }
}

/// How long the words of a summary may be, so that it is within its bound as it is sent, a bar before each of its lines.
fn text_max(summary_max: u64) -> u64 {
    let frame = estimate::message(&as_sent(""));
    summary_max.saturating_sub(frame) / 2
}

/// Where the newest turn begins.
fn begin(transcript: &Transcript, work: &Work) -> usize {
    let said = |message: &Message| message.role == Role::User && !message.text().is_empty();
    transcript.begin(&work.request).or_else(|| transcript.messages.iter().rposition(said)).unwrap_or_default()
}

/// A summary of the model's own, where it gives one, and what it cost.
async fn by_model(
    thinker: &Thinker,
    older: &Older<'_>,
    window: u64,
    tokens_max: u64,
) -> (Option<String>, ipc::contract::sessions::Usage) {
    let nothing = (None, ipc::contract::sessions::Usage::default());
    if thinker.provider.model() == OFFLINE {
        return nothing;
    }
    let question = summary::question(older, window / 2, tokens_max / 2);
    // nobody is shown a summary in the making
    let (deltas, _) = mpsc::channel(1);
    match tokio::time::timeout(SUMMARY_PATIENCE, thinker.provider.stream(&question, deltas)).await {
        Ok(Ok(answer)) => {
            let cost = thinker.known.cost(&answer.model, &answer.usage);
            let said = Message { role: Role::Assistant, content: answer.blocks }.text();
            let whole = answer.stop == Stop::EndTurn;
            (whole.then(|| summary::usable(&said, tokens_max)).flatten(), cost)
        }
        Ok(Err(error)) => {
            warn!(%error, "the model did not sum up; the rule does");
            nothing
        }
        Err(_) => {
            warn!("the model took too long to sum up; the rule does");
            nothing
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn after_an_overflow_there_is_room_for_half_of_the_conversation_whatever_stands_before_it() {
        assert_eq!(room_after_overflow(8000, 7600, 2000), Room { summary: 500, good: 500, most: 1000 });
        // where the window leaves more, that stands
        assert_eq!(room_after_overflow(8000, 500, 6000), Room { summary: 1000, good: 3500, most: 5900 });
        assert_eq!(room_after_overflow(0, 10, 0), Room { summary: 0, good: 0, most: 0 });
    }

    proptest! {
        #[test]
        fn a_summary_is_within_its_bound_as_it_is_sent(words in "(\\PC|\n){0,4000}", max in 100_u64..1500) {
            if let Some(summary) = summary::usable(&words, text_max(max)) {
                prop_assert!(estimate::message(&as_sent(&summary)) <= max);
            }
        }
    }
}
