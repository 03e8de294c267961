//! What she says she has done, beside what was done: a reply that says saved, changed, sent or remembered is matched with
//! the tools that ended well in its turn.
//!
//! ```text
//!  reply ─▶ sentences, without what is quoted ─▶ deeds it claims (english, chinese) ─▶ no receipt that fits ─▶ a note
//! ```
//!
//! It never stands in a turn's way; a note is a remark of the runtime, kept in the session. Where it is not clear that she
//! claims something, nothing is said: what was done earlier, what she denies, asks, plans or quotes is no claim, and neither
//! is a change of words that stand in the reply itself.

mod chinese;
mod english;
mod sentences;

use ipc::{
    contract::agent::ToolRun,
    exit::chain,
    reveal::reveal,
    text::{chars, one_line},
};
use tracing::warn;

use self::sentences::sentences;
use crate::{
    mind::Mind,
    provider::{Block, Message, Role},
    session::Transcript,
    think::Work,
    tools::is_plan,
    voice::Voice,
};

/// The longest reply that is looked at, in characters; one that is longer is no report.
const REPLY_CHARS_MAX: usize = 50_000;
/// The longest sentence that is looked at, in characters.
const SENTENCE_CHARS_MAX: usize = 500;
/// How much of a sentence is repeated.
const SHOWN_CHARS_MAX: usize = 160;

/// What may be claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deed {
    /// Something was saved, written, changed, deleted, or remembered.
    Kept,
    /// Something was sent to somebody.
    Sent,
}

/// A claim that nothing in the turn bears out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mismatch {
    pub(crate) deed: Deed,
    /// The sentence that claims it.
    pub(crate) said: String,
}

/// The claims of a reply that no receipt bears out, at most one of each kind.
pub(crate) fn claims(reply: &str, receipts: &[ToolRun]) -> Vec<Mismatch> {
    let mut found: Vec<Mismatch> = Vec::new();
    if chars(reply) > REPLY_CHARS_MAX {
        return found;
    }
    for sentence in sentences(reply) {
        if sentence.is_question || chars(&sentence.bare) > SENTENCE_CHARS_MAX {
            continue;
        }
        let deeds = [english::deeds(&sentence.bare), chinese::deeds(&sentence.bare)].concat();
        for deed in deeds {
            let is_known = found.iter().any(|known| known.deed == deed);
            if !is_known && !receipts.iter().any(|run| bears_out(run, deed)) {
                found.push(Mismatch { deed, said: sentence.whole.trim().to_owned() });
            }
        }
    }
    found
}

/// Whether a run of a tool may be what is claimed. What is not known to change nothing may be anything, but what only
/// touches herself sends nothing.
fn bears_out(run: &ToolRun, deed: Deed) -> bool {
    let own = run.tool.starts_with("soul_") || run.tool.starts_with("desire_");
    match deed {
        Deed::Kept => !run.failed && (run.writes || is_plan(&run.tool)),
        Deed::Sent => !run.failed && run.writes && !own,
    }
}

/// What a person is told.
fn note(mismatch: &Mismatch) -> String {
    let said = one_line(&reveal(&mismatch.said), SHOWN_CHARS_MAX);
    let what = match mismatch.deed {
        Deed::Kept => "changed or kept anything",
        Deed::Sent => "could have sent anything",
    };
    format!(
        "[check] her reply says “{said}”, and no tool that {what} ended well in this turn; if it means something earlier, look whether that is there, else ask her to do it now"
    )
}

/// Looks at the reply that ended a turn, and says and writes down what it claims too much; returns what was said.
pub(crate) async fn check(
    mind: &Mind,
    transcript: &mut Transcript,
    work: &Work,
    voice: &Voice,
    (reply, receipts): (&str, &[ToolRun]),
) -> String {
    let notes: Vec<String> = claims(reply, receipts).iter().map(note).collect();
    if notes.is_empty() {
        return String::new();
    }
    let said = notes.join("\n");
    warn!(request = %work.request, count = notes.len(), "a reply claims what no tool of its turn did");
    voice.note(&format!("\n\n{said}\n"));
    let message = Message { role: Role::Assistant, content: vec![Block::text(said.clone())] };
    if let Err(error) = transcript.say_ours(message, mind.now()).await {
        warn!(request = %work.request, error = chain(&error), "what a reply claims too much could not be written down");
    }
    said
}

#[cfg(test)]
mod tests;
