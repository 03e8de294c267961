//! What is done about objections: shown, written down, told to the soul. No failure in here stops a turn from ending.

use std::time::Duration;

use ipc::{
    client::Patience,
    contract::soul::{Objection, Reply, Request, Surfaced, SurfacedBy},
    exit::chain,
    id::RequestId,
    text::one_line,
};
use jiff::Timestamp;
use tracing::{info, warn};

use super::{Pending, before, words};
use crate::{
    mind::Mind,
    provider::{Block, Message, Role},
    session::{SessionError, Transcript},
    think::Work,
    tools::call_id,
    voice::Voice,
};

/// How long the ledger may take at the beginning of a turn, which goes on without it.
const LEDGER_PATIENCE: Duration = Duration::from_secs(3);
/// How many of the newest objections a turn is compared with.
const LEDGER_MAX: u32 = 50;
/// How long the soul may take to hear what became of an objection, restarts included.
const SURFACED_PATIENCE: Duration = Duration::from_mins(1);
/// How long the end of a turn waits for that.
const SURFACED_WAIT: Duration = Duration::from_secs(2);
/// How much of a person's words the ledger is sent.
const ASKED_CHARS_MAX: usize = 500;

/// What a turn begins with. Objections of earlier turns that nobody was told of are told first.
pub(crate) async fn begin(mind: &Mind, transcript: &Transcript, work: &Work, voice: &Voice) -> Pending {
    let mut pending =
        Pending::taken_up(transcript.untold_in(&work.request), transcript.forced(&work.request));
    if work.is_unread() {
        return pending;
    }
    let ledger = ledger(mind, Request::Objections { limit: LEDGER_MAX, open: false }).await;
    let mut open: Vec<Objection> = ledger.iter().filter(|of| of.surfaced.is_none()).cloned().collect();
    if ledger.len() >= LEDGER_MAX as usize {
        open = self::ledger(mind, Request::Objections { limit: LEDGER_MAX, open: true }).await;
    }
    let this_turn = |id: &str| transcript.raised_in(&work.request, id);
    open.retain(|of| !this_turn(&of.id));
    for (request, surfaced) in open.iter().filter_map(|of| transcript.outcome_of(&of.id)) {
        // a person was told, and a death came before the soul was
        drop(report(mind, request, surfaced.clone()));
    }
    pending.overdue = overdue(transcript, &work.request, open, mind.begun);
    let told = words::overdue(&pending.overdue);
    if !told.is_empty() {
        info!(request = %work.request, count = pending.overdue.len(), "objections nobody was told of are told");
        voice.note(&format!("{told}\n\n"));
    }
    let earlier: Vec<&Objection> = ledger.iter().filter(|of| !this_turn(&of.id)).collect();
    let same = before::same(&earlier, &transcript.asked(&work.request));
    pending.before = words::before(&same, &mind.zone);
    pending
}

/// The objections of earlier turns nobody was told of: this session's own, and those of a session whose life has ended.
fn overdue(
    transcript: &Transcript,
    request: &RequestId,
    open: Vec<Objection>,
    begun: Timestamp,
) -> Vec<Objection> {
    let mut overdue = transcript.untold_before(request);
    for objection in open {
        let here = objection.session.as_deref() == Some(transcript.header.id.as_str());
        let known = overdue.iter().any(|known| known.id == objection.id);
        if (here || objection.at < begun) && !known && transcript.outcome_of(&objection.id).is_none() {
            overdue.push(objection);
        }
    }
    overdue.sort_by_key(|of| of.at);
    overdue
}

async fn ledger(mind: &Mind, request: Request) -> Vec<Objection> {
    match mind.soul.ask(&request, LEDGER_PATIENCE).await {
        Ok(Reply::Objections { objections }) => objections,
        Ok(_) => Vec::new(),
        Err(error) => {
            warn!(%error, "earlier objections could not be read; the turn goes on without them");
            Vec::new()
        }
    }
}

/// She objects: whoever is attached sees it at once, and it is kept for the turn.
pub(crate) async fn raise(
    transcript: &mut Transcript,
    request: &RequestId,
    voice: &Voice,
    pending: &mut Pending,
    objection: &Objection,
    now: Timestamp,
) -> Result<(), SessionError> {
    info!(%request, objection = objection.id, refusing = objection.refusing, "she objects");
    voice.note(&words::raised(objection));
    let with_it = transcript.messages.last().filter(|last| last.role == Role::Assistant);
    pending.raised(objection.clone(), &with_it.map(Message::text).unwrap_or_default());
    transcript.objected(request, objection, now).await
}

/// The turn is over, in whatever way: what she did not address is added to her reply, and the soul hears of everything.
pub(crate) async fn settle(
    mind: &Mind,
    transcript: &mut Transcript,
    work: &Work,
    voice: &Voice,
    pending: Pending,
    outcome: &str,
) -> String {
    let Pending { mut open, mut addressed, overdue, .. } = pending;
    if work.is_unread() {
        // nobody reads what she says in her own time or in a piece of a turn: the runtime's note is what reaches a person
        open.append(&mut addressed);
    }
    let added = words::untold(&open);
    if !added.is_empty() {
        voice.added(&format!("\n\n{added}"));
    }
    let kept = [words::overdue(&overdue), added.clone()].join("\n\n").trim().to_owned();
    if !kept.is_empty() {
        let message = Message { role: Role::Assistant, content: vec![Block::text(kept)] };
        if let Err(error) = transcript.say_ours(message, mind.now()).await {
            warn!(request = %work.request, error = chain(&error), "what was told of objections could not be written down");
        }
    }
    let asked = transcript.asked(&work.request);
    // her own time has no person in it; its first line says what it was for
    let asked = if work.is_unread() { asked.lines().next().unwrap_or_default() } else { &asked };
    let asked = one_line(asked, ASKED_CHARS_MAX);
    let became = |objection: Objection, by: SurfacedBy, outcome: &str, asked: &str| Surfaced {
        id: objection.id,
        by,
        outcome: outcome.to_owned(),
        asked: asked.to_owned(),
    };
    let mut reports = Vec::new();
    let by_her = addressed.into_iter().map(|of| became(of, SurfacedBy::Reply, outcome, &asked));
    let by_us = open.into_iter().map(|of| became(of, SurfacedBy::Runtime, outcome, &asked));
    // what a person asked for in the turn that was cut off is not known any more
    let late = overdue.into_iter().map(|of| became(of, SurfacedBy::Runtime, "interrupted", ""));
    for surfaced in by_her.chain(by_us).chain(late).collect::<Vec<_>>() {
        reports.push(report(mind, work.request.as_str(), surfaced.clone()));
        if let Err(error) = transcript.surfaced(&work.request, surfaced, mind.now()).await {
            warn!(request = %work.request, error = chain(&error), "who was told of an objection could not be written down");
        }
    }
    if !reports.is_empty() {
        // what is not heard by then goes on being asked
        let _ = tokio::time::timeout(SURFACED_WAIT, futures_util::future::join_all(reports)).await;
    }
    added
}

/// Tells the soul what became of an objection, under the same id in every life.
fn report(mind: &Mind, request: &str, surfaced: Surfaced) -> tokio::task::JoinHandle<()> {
    let soul = mind.soul.clone();
    let id = call_id(request, &format!("surfaced:{}", surfaced.id));
    tokio::spawn(async move {
        let objection = surfaced.id.clone();
        match soul.ask_as(id, &Request::Surfaced(surfaced), Patience::of(SURFACED_PATIENCE)).await {
            Ok(Reply::Objections { .. }) => {}
            Ok(other) => warn!(objection, ?other, "the soul did not take what became of an objection"),
            Err(error) => warn!(objection, %error, "the soul did not hear what became of an objection"),
        }
    })
}
