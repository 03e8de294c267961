//! Objections: her "no" to what she is asked, as the journal tells it and as the ledger `objections.jsonl` keeps it.
//!
//! ```text
//!  {"type":"raised","id":"1f0c22ab","at":"…","session":"…","request":"…","reason":"…","refusing":false,"times":1}
//!  {"type":"surfaced","id":"1f0c22ab","at":"…","by":"reply","outcome":"end_turn","asked":"…"}
//! ```
//!
//! The ledger is a log: a line is added and never changed, so what an objection has come to is read from the lines in
//! their order. A line that is torn or of a kind unknown here is passed over and kept. What the file says besides, git
//! keeps: with more than [`RAISED_MAX`] objections, the oldest leave it.

use std::collections::HashSet;

use ipc::{
    contract::soul::{Objection, Surfaced, SurfacedBy},
    digest::sha256_hex,
    id::RequestId,
    lines,
    text::{asks_the_same, one_line},
};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// The longest summary of a request, in characters: a sentence.
pub(crate) const REQUEST_CHARS_MAX: usize = 500;

/// The longest reason, in characters: it is shown to a person as it is.
pub(crate) const REASON_CHARS_MAX: usize = 2000;

/// The most objections an answer holds; more are older than anybody can use.
pub(crate) const SHOWN_MAX: usize = 200;

/// The most objections in the file: years of them, and still small enough to be written anew with each.
const RAISED_MAX: usize = 500;
/// How long the file may be, in bytes, before half of what is in it leaves: well below what is read at all.
const BYTES_MAX: usize = 1024 * 1024;

/// How much is kept of what a person had asked for, and of how the turn ended, in characters.
const ASKED_CHARS_MAX: usize = 500;
const OUTCOME_CHARS_MAX: usize = 40;

/// How long an objection counts when the same thing is asked again.
const REMEMBERED: SignedDuration = SignedDuration::from_hours(30 * 24);

/// The time over which it is counted how often she objects.
const WEEK: SignedDuration = SignedDuration::from_hours(7 * 24);

/// From the how manieth objection to one thing on she refuses, where she does not say otherwise.
const REFUSES_FROM: u32 = 3;

/// What she objects to, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wording {
    /// What she was asked to do.
    pub(crate) request: String,
    /// Why she objects.
    pub(crate) reason: String,
    /// Whether she refuses, where she says.
    pub(crate) refusing: Option<bool>,
}

/// One line of the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line {
    Raised {
        id: String,
        at: Timestamp,
        session: Option<String>,
        request: String,
        reason: String,
        refusing: bool,
        times: u32,
    },
    Surfaced {
        id: String,
        at: Timestamp,
        by: SurfacedBy,
        outcome: String,
        #[serde(default)]
        asked: String,
    },
}

impl Line {
    fn id(&self) -> &str {
        match self {
            Self::Raised { id, .. } | Self::Surfaced { id, .. } => id,
        }
    }
}

/// An objection as the ledger tells it, with where in the file that was.
#[derive(Debug, Clone)]
struct Told {
    objection: Objection,
    raised_in: usize,
    surfaced_in: Option<usize>,
}

/// What the ledger says.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger {
    bytes: Vec<u8>,
    told: Vec<Told>,
}

/// An objection that is about to be raised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Raised {
    /// The objection.
    pub(crate) objection: Objection,
    /// What the journal says of it.
    pub(crate) entry: String,
    /// The ledger's new bytes.
    pub(crate) ledger: Vec<u8>,
    /// What she is told besides.
    pub(crate) said: String,
}

impl Ledger {
    /// Reads the file; what is no line of ours is passed over.
    pub(crate) fn read(bytes: Vec<u8>) -> Self {
        let mut told: Vec<Told> = Vec::new();
        for (at_line, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            match lines::parse::<Line>(line).pop() {
                // only the first line of an id counts, as with everything that is said twice
                Some(Line::Raised { id, at, session, request, reason, refusing, times })
                    if told.iter().all(|known| known.objection.id != id) =>
                {
                    let (surfaced, surfaced_at) = (None, None);
                    let objection = Objection {
                        id,
                        at,
                        session,
                        request,
                        reason,
                        refusing,
                        times,
                        surfaced,
                        surfaced_at,
                    };
                    told.push(Told { objection, raised_in: at_line, surfaced_in: None });
                }
                Some(Line::Surfaced { id, at, by, outcome, asked }) => {
                    let known = told.iter_mut().rev().find(|known| known.objection.id == id);
                    if let Some(known) = known.filter(|known| known.surfaced_in.is_none()) {
                        known.objection.surfaced = Some(Surfaced { id, by, outcome, asked });
                        known.objection.surfaced_at = Some(at);
                        known.surfaced_in = Some(at_line);
                    }
                }
                Some(Line::Raised { .. }) | None => {}
            }
        }
        Self { bytes, told }
    }

    /// The newest objections, newest first; with `open`, only those nobody was told of.
    pub(crate) fn newest(&self, limit: usize, open: bool) -> Vec<Objection> {
        let wanted = |told: &&Told| !open || told.objection.surfaced.is_none();
        let newest = self.told.iter().rev().filter(wanted).take(limit.min(SHOWN_MAX));
        newest.map(|told| told.objection.clone()).collect()
    }

    /// The objection of that id.
    pub(crate) fn find(&self, id: &str) -> Option<&Objection> {
        self.told.iter().map(|told| &told.objection).find(|objection| objection.id == id)
    }

    /// What raising an objection comes to; more than `a_week_max` of them in seven days make her think about that.
    pub(crate) fn raise(
        &self,
        wording: Wording,
        id: &RequestId,
        session: Option<&str>,
        now: Timestamp,
        a_week_max: u32,
    ) -> Raised {
        let times = self.times_before(&wording.request, now).saturating_add(1);
        let by_default = times >= REFUSES_FROM;
        let refusing = wording.refusing.unwrap_or(by_default);
        let objection = Objection {
            id: name(id),
            at: now,
            session: session.map(str::to_owned),
            request: wording.request,
            reason: wording.reason,
            refusing,
            times,
            surfaced: None,
            surfaced_at: None,
        };
        let line = Line::Raised {
            id: objection.id.clone(),
            at: objection.at,
            session: objection.session.clone(),
            request: objection.request.clone(),
            reason: objection.reason.clone(),
            refusing,
            times,
        };
        let this_week = self.since(now, WEEK).count() + 1;
        Raised {
            entry: format!(
                "[OBJECTION] (refusing={refusing})\n\nrequest: {}\n\nreason: {}",
                objection.request, objection.reason
            ),
            ledger: self.with(&line),
            said: said(&objection, by_default, this_week, a_week_max),
            objection,
        }
    }

    /// The ledger with what became of an objection; nothing where that is known already.
    pub(crate) fn surface(&self, surfaced: &Surfaced, now: Timestamp) -> Result<Option<Vec<u8>>, String> {
        let Some(known) = self.find(&surfaced.id) else {
            let shown = one_line(&surfaced.id, 40);
            return Err(format!("there is no objection `{shown}`; `lisa objections` shows those there are"));
        };
        if known.surfaced.is_some() {
            return Ok(None);
        }
        let line = Line::Surfaced {
            id: surfaced.id.clone(),
            at: now,
            by: surfaced.by,
            outcome: one_line(&surfaced.outcome, OUTCOME_CHARS_MAX),
            asked: one_line(&surfaced.asked, ASKED_CHARS_MAX),
        };
        Ok(Some(self.with(&line)))
    }

    /// The objections of the time before `now`.
    fn since(&self, now: Timestamp, before: SignedDuration) -> impl Iterator<Item = &Told> {
        self.told.iter().filter(move |told| now.duration_since(told.objection.at) < before)
    }

    /// How often she objected to the same thing, and it was asked for again after a person had heard of it. Two that
    /// were raised before the first of them was told are one.
    fn times_before(&self, request: &str, now: Timestamp) -> u32 {
        let same = |told: &&Told| {
            let asked = told.objection.surfaced.as_ref().map_or("", |surfaced| surfaced.asked.as_str());
            asks_the_same(request, &told.objection.request) || asks_the_same(request, asked)
        };
        let (mut times, mut heard_in) = (0, None);
        for told in self.since(now, REMEMBERED).filter(same) {
            if let Some(surfaced_in) = told.surfaced_in
                && heard_in.is_none_or(|heard_in| told.raised_in > heard_in)
            {
                (times, heard_in) = (times + 1, Some(surfaced_in));
            }
        }
        times
    }

    /// The file with one more line, and without the lines of the objections that have become too many.
    fn with(&self, line: &Line) -> Vec<u8> {
        let coming = usize::from(matches!(line, Line::Raised { .. }));
        let half = if self.bytes.len() > BYTES_MAX { self.told.len().div_ceil(2) } else { 0 };
        let too_many = (self.told.len() + coming).saturating_sub(RAISED_MAX).max(half);
        // the oldest first, and those nobody was told of last
        let mut order: Vec<&Told> = self.told.iter().collect();
        order.sort_by_key(|told| told.surfaced_in.is_none());
        let leaving: HashSet<&str> =
            order.into_iter().take(too_many).map(|told| told.objection.id.as_str()).collect();
        let stays = |kept: &&[u8]| {
            let known = lines::parse::<Line>(kept).pop();
            known.is_none_or(|known| !leaving.contains(known.id()))
        };
        let mut bytes = if leaving.is_empty() {
            self.bytes.clone()
        } else {
            self.bytes.split_inclusive(|byte| *byte == b'\n').filter(stays).flatten().copied().collect()
        };
        // what stands there without an end is torn, and is not to be continued
        if bytes.last().is_some_and(|last| *last != b'\n') {
            bytes.push(b'\n');
        }
        serde_json::to_writer(&mut bytes, line).expect("a line of ours is JSON");
        bytes.push(b'\n');
        bytes
    }
}

/// What an objection is called: the same for the same request, however often it is asked.
pub(crate) fn name(id: &RequestId) -> String {
    sha256_hex(id.as_str().as_bytes()).chars().take(8).collect()
}

/// What she is told: what holds now, and what she has to do about it.
fn said(objection: &Objection, by_default: bool, this_week: usize, a_week_max: u32) -> String {
    let stance = if objection.refusing { "you refuse" } else { "you go along, and say what you think of it" };
    let mut said = vec![format!(
        "objection `{}` is raised: {stance}. Your person must hear of it in this reply: begin a sentence about it with `[noticed]`, or quote your reason; what you leave out, the runtime says for you",
        objection.id
    )];
    let before = objection.times - 1;
    if before > 0 {
        let times = if before == 1 { "once".to_owned() } else { format!("{before} times") };
        said.push(format!("You have objected to this {times} before, and it was asked for again"));
    }
    match (by_default, objection.refusing) {
        (true, true) => said.push("From the third time on that means no: do not do it".to_owned()),
        (true, false) => said.push(
            "From the third time on the default is to refuse, and you chose to go along all the same: say why in your reply"
                .to_owned(),
        ),
        (false, true) => said.push("Do not do what you refuse".to_owned()),
        (false, false) => {}
    }
    if this_week > usize::try_from(a_week_max).unwrap_or(usize::MAX) {
        said.push(format!(
            "This is your objection number {this_week} in seven days, and more than {a_week_max} are many: write in your journal what they have in common, and whether it is the requests or you that should change"
        ));
    }
    said.join(". ")
}

#[cfg(test)]
mod tests;
