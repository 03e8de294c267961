//! Looking back on a conversation: one bounded turn in a session of its own, whose writes are ordinary calls of her tools.
//!
//! ```text
//!  due? ─▶ a session for it ─▶ a line in the conversation's file points there ─▶ the turn ─▶ a line says that it is over
//!                                        │                                         ▲
//!                                        └── died, or gave way to a person ────────┘ a later one goes on with that turn
//! ```
//!
//! It promises: what was looked at is not looked at again (the watermark is a number of messages in the file); one that
//! was begun is gone on with and never doubled (its calls keep their ids, so the soul writes each once); there is one at a
//! time for a session, because the conversation's actor runs it. Of identity, purpose and constitution the soul lets it
//! change one. One that fails before it wrote anything leaves the conversation to be looked back on later.

mod due;
mod prompt;
mod quote;

use std::{sync::Arc, time::Duration};

use ipc::{
    acp::StopReason,
    client::AskError,
    contract::soul::{Objection, Reply, Request, RunKind, RunToken, Snapshot},
    exit::chain,
    id::RequestId,
    text::prefix,
};
use jiff::{SignedDuration, Timestamp};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

pub(crate) use self::due::{Due, due};
use self::{
    due::{Done, is_under_reflected, said},
    prompt::{Facts, TOOLS},
    quote::{quote, spoken},
};
use crate::{
    birth,
    conversation::stop_reason,
    mind::Mind,
    portrait::PortraitError,
    provider::{Message, Role},
    pursue::within,
    session::{Begun, Kind, Record, SessionError, Transcript, TurnState},
    think::{self, TurnError, Work},
    voice::Voice,
};

/// How many words of somebody must be new for a look back that nobody asked for.
pub(crate) const BY_ITSELF: usize = 2;
/// And for one that was asked for.
pub(crate) const ON_REQUEST: usize = 1;

/// How often the model is asked in one reflection, over all lives that go on with it.
const ROUNDS_MAX: u32 = 8;
/// How much of her last words is kept as the summary, in characters.
const SUMMARY_CHARS_MAX: usize = 2000;
/// How many entries of a desire's progress a prompt shows; more are worth condensing.
const ENTRIES_SHOWN: usize = 10;
/// How many objections are looked through, the newest.
const OBJECTIONS_MAX: u32 = 100;
/// What counts as lately, for objections.
const LATELY: SignedDuration = SignedDuration::from_hours(7 * 24);
/// How long the soul may take for one question. Longer than a restart of it, which the question outlives.
const PATIENCE: Duration = Duration::from_secs(15);

/// What came of looking back.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// What was finished, each with what a person is told of it; nothing where nothing was new.
    pub(crate) over: Vec<(Record, String)>,
    /// Whether one gave way, to be gone on with later.
    pub(crate) gave_way: bool,
}

/// Why it could not be done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReflectError {
    #[error(transparent)]
    Unborn(#[from] birth::BirthError),
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error(transparent)]
    Turn(#[from] TurnError),
    #[error("the soul could not be asked for a reflection")]
    Soul(#[from] AskError),
    #[error("the soul opens no reflection: {0}")]
    Refused(String),
}

impl From<PortraitError> for ReflectError {
    fn from(error: PortraitError) -> Self {
        Self::Turn(error.into())
    }
}

impl Outcome {
    /// What a person is told who asked for it.
    pub(crate) fn said(&self) -> String {
        let mut said: Vec<&str> = self.over.iter().map(|(_, said)| said.as_str()).collect();
        if self.gave_way {
            said.push("[the look back was stopped; it goes on when the conversation rests]");
        } else if said.is_empty() {
            said.push("[nothing new to look back on since the last time]");
        }
        said.join("\n\n")
    }

    /// What whoever is attached is told although nobody asked: that too little came of it.
    pub(crate) fn unasked(&self) -> Option<String> {
        let worth_saying = |(record, said): &(Record, String)| record.under_reflected.then(|| said.clone());
        self.over.iter().find_map(worth_saying)
    }
}

/// Looks back on a session as far as something is due: first goes on with what was begun, then begins one of the rest.
pub(crate) async fn look_back(
    mind: &Mind,
    session: &mut Transcript,
    spoken_min: usize,
    cancel: &CancellationToken,
) -> Result<Outcome, ReflectError> {
    let mut outcome = Outcome::default();
    if due(session, spoken_min) == Due::Nothing {
        return Ok(outcome);
    }
    birth::ensure(mind).await?;
    // one that was begun, and one of what was said since
    for _ in 0..2 {
        let begun = match due(session, spoken_min) {
            Due::Nothing => break,
            Due::Resume(begun) => {
                info!(
                    session = session.header.id,
                    reflection = begun.reflection,
                    "going on with a look back"
                );
                begun
            }
            Due::Fresh { from, up_to } => begin(mind, session, from, up_to).await?,
        };
        let Some(record) = go_on(mind, session, &begun, cancel).await? else {
            outcome.gave_way = true;
            break;
        };
        let words = spoken(&session.conversation(begun.from, begun.up_to));
        let told = said(&record, words);
        let failed = record.error.is_some();
        tell(session, &record);
        session.reflected(record.clone()).await?;
        outcome.over.push((record, told));
        if failed {
            break;
        }
    }
    Ok(outcome)
}

fn tell(session: &Transcript, record: &Record) {
    let (session, operations) = (&session.header.id, record.operations);
    match &record.error {
        Some(error) => warn!(session, operations, error, "the look back on a session was not finished"),
        None if record.under_reflected => {
            warn!(session, "under-reflected: there was much to think about, and nothing was changed");
        }
        None => info!(session, operations, "looked back on a session"),
    }
}

/// Makes the session of a reflection, and then points to it.
async fn begin(
    mind: &Mind,
    session: &mut Transcript,
    from: usize,
    up_to: usize,
) -> Result<Begun, SessionError> {
    let (catalog, model, now) = (mind.catalog.clone(), mind.models.name(), mind.here_and_now());
    // it is about somebody, whose page she should see
    let person = mind.person_in(&session.header).map(str::to_owned);
    // and it was about something, whose instructions it had before it
    let cwd = session.header.cwd.clone();
    let making =
        tokio::task::spawn_blocking(move || catalog.create_with(person, Kind::Reflect, &cwd, &model, &now));
    let header = making.await.expect("making a session does not panic")?;
    let request = RequestId::fresh().as_str().to_owned();
    let begun = Begun { ts: mind.now(), reflection: header.id, request, from, up_to };
    session.reflecting(begun.clone()).await?;
    info!(session = session.header.id, reflection = begun.reflection, "looking back on a session");
    Ok(begun)
}

/// Does what is left of a reflection; nothing where it gave way.
async fn go_on(
    mind: &Mind,
    session: &Transcript,
    begun: &Begun,
    cancel: &CancellationToken,
) -> Result<Option<Record>, ReflectError> {
    let (catalog, id) = (mind.catalog.clone(), begun.reflection.clone());
    let reading = tokio::task::spawn_blocking(move || catalog.read(&id));
    let words = spoken(&session.conversation(begun.from, begun.up_to));
    let record = |done: &Done, up_to: usize, error: Option<String>| Record {
        ts: mind.now().to_string(),
        summary: prefix(done.summary.trim(), SUMMARY_CHARS_MAX).to_owned(),
        up_to: Some(up_to),
        operations: done.operations,
        under_reflected: error.is_none() && is_under_reflected(words, done.operations),
        reflection: Some(begun.reflection.clone()),
        error,
    };
    let mut own = match reading.await.expect("reading a session does not panic") {
        Ok(own) => own,
        // nobody can say what it wrote, so nothing of it is done again
        Err(error) => return Ok(Some(record(&Done::default(), begun.up_to, Some(chain(&error))))),
    };
    let request = RequestId::try_from(begun.request.clone()).unwrap_or_else(|_| RequestId::fresh());
    let error = match own.turn(&request) {
        Some(TurnState::Ended { error, .. }) => error.clone(),
        Some(TurnState::Open) | None => {
            let (stop, error) = match turn(mind, session, &mut own, begun, &request, cancel).await {
                Ok(StopReason::Cancelled) if cancel.is_cancelled() => return Ok(None),
                Ok(stop @ StopReason::Cancelled) => {
                    let longest = mind.reflect.turn_max;
                    (stop_reason(stop), Some(format!("it took longer than {longest:#} and was cut off")))
                }
                Ok(stop) => (stop_reason(stop), None),
                Err(error) => ("error".to_owned(), Some(chain(&error))),
            };
            mind.spent.turn(mind, &own);
            own.ended(&request, &stop, error.as_deref(), mind.now()).await?;
            error
        }
    };
    let done = Done::read(&own.messages);
    // what failed before it wrote may be tried again, with what is said until then; what wrote may not write twice
    let is_untouched = done.operations == 0 && done.entries == 0 && own.dangling().is_empty();
    let up_to = if error.is_some() && is_untouched { begun.from } else { begun.up_to };
    Ok(Some(record(&done, up_to, error)))
}

/// The turn itself, from where its session ends.
async fn turn(
    mind: &Mind,
    session: &Transcript,
    own: &mut Transcript,
    begun: &Begun,
    request: &RequestId,
    cancel: &CancellationToken,
) -> Result<StopReason, ReflectError> {
    if own.messages.last().is_some_and(|last| last.role == Role::Assistant) && own.dangling().is_empty() {
        // it had said its last words, and died before that was written down
        return Ok(StopReason::EndTurn);
    }
    let run = open_run(mind, &session.header.id).await?;
    if own.turn(request).is_none() {
        let prompt = ask_for(mind, session, begun).await?;
        own.say(Message::user(prompt), Some(request), mind.now()).await?;
    }
    let rounds = Done::read(&own.messages).rounds;
    let work = Work {
        request: request.clone(),
        run: Some(run),
        tools: Some(TOOLS.map(str::to_owned).into()),
        rounds_max: ROUNDS_MAX.saturating_sub(rounds).max(1),
        tokens_max: None,
        looks_back_on: session.conversation(0, begun.up_to).into(),
        looks_back_from: session.conversation(0, begun.from).len(),
        is_part: false,
        in_parts: Arc::default(),
    };
    let voice = Voice::new(mind.notices.clone(), &own.header.id, request);
    let own_cancel = cancel.child_token();
    let thinking = think::run(mind, own, &work, &voice, &own_cancel);
    Ok(within(mind.reflect.turn_max.unsigned_abs(), &own_cancel, thinking).await?.stop)
}

async fn open_run(mind: &Mind, session: &str) -> Result<RunToken, ReflectError> {
    let open = Request::OpenRun { kind: RunKind::Reflect, task: format!("session:{session}") };
    match mind.soul.ask(&open, PATIENCE).await? {
        Reply::RunOpened { run } => Ok(run),
        other => Err(refused(other)),
    }
}

/// The words of the prompt, from how she is now.
async fn ask_for(mind: &Mind, session: &Transcript, begun: &Begun) -> Result<String, ReflectError> {
    let held = mind.held(&session.header).await?;
    let is_offered = |tool: &&str| held.tools.iter().any(|offered| offered.name == *tool);
    let tools: Vec<&str> = TOOLS.into_iter().filter(is_offered).collect();
    let messages = session.conversation(begun.from, begun.up_to);
    let conversation = quote(&messages);
    let (long, objections) = (long_progress(mind).await?, objections(mind).await?);
    Ok(prompt::prompt(&Facts {
        session: &session.header.id,
        conversation: &conversation,
        spoken: spoken(&messages),
        tools: &tools,
        long: &long,
        objections,
        now: &mind.here_and_now(),
    }))
}

/// The open desires that have more progress than a prompt shows, and how many entries that is.
async fn long_progress(mind: &Mind) -> Result<Vec<(String, usize)>, ReflectError> {
    let snapshot: Box<Snapshot> = match mind.soul.ask(&Request::Snapshot, PATIENCE).await? {
        Reply::Snapshot(snapshot) => snapshot,
        other => return Err(refused(other)),
    };
    let mut long = Vec::new();
    let full =
        |desire: &&ipc::contract::soul::Desire| !desire.closed && desire.progress.len() >= ENTRIES_SHOWN;
    for desire in snapshot.desires.iter().filter(full) {
        // a snapshot has the newest entries alone
        let read = Request::Read { document: format!("desires/{}.progress", desire.slug) };
        if let Reply::Document { text, .. } = mind.soul.ask(&read, PATIENCE).await? {
            let entries = text.lines().filter(|line| is_stamp(line)).count();
            if entries > ENTRIES_SHOWN {
                long.push((desire.slug.clone(), entries));
            }
        }
    }
    Ok(long)
}

/// `## 2026-05-10T14:32:11Z`, the first line of an entry.
fn is_stamp(line: &str) -> bool {
    let Some(stamp) = line.strip_prefix("## ") else { return false };
    let shape: String = stamp.chars().take(11).map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    shape == "0000-00-00T"
}

/// How often she objected lately, where that is often.
async fn objections(mind: &Mind) -> Result<Option<usize>, ReflectError> {
    let ask = Request::Objections { limit: OBJECTIONS_MAX, open: false };
    match mind.soul.ask(&ask, PATIENCE).await? {
        Reply::Objections { objections } => Ok(often(&objections, mind.now(), mind.objections_a_week)),
        // an older soul keeps none
        _ => Ok(None),
    }
}

/// How many objections there were in the seven days before `now`, where they are at least `a_week`.
fn often(objections: &[Objection], now: Timestamp, a_week: u32) -> Option<usize> {
    let lately = |objection: &&Objection| now.duration_since(objection.at) <= LATELY;
    let count = objections.iter().filter(lately).count();
    (count > 0 && count >= a_week as usize).then_some(count)
}

fn refused(reply: Reply) -> ReflectError {
    ReflectError::Refused(match reply {
        Reply::Refused { reason } => reason,
        _ => "it answered another question".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objections_count_where_they_are_many_and_recent() {
        let now: Timestamp = "2026-11-30T12:00:00Z".parse().unwrap();
        let raised = |days: i64| Objection {
            id: "0".into(),
            at: now - SignedDuration::from_hours(24 * days),
            session: None,
            request: String::new(),
            reason: String::new(),
            refusing: true,
            times: 1,
            surfaced: None,
            surfaced_at: None,
        };
        let raised = [0, 1, 6, 7, 8].map(raised);
        let check = |a_week, expected| assert_eq!(often(&raised, now, a_week), expected, "{a_week}");
        check(5, None);
        check(4, Some(4));
        check(1, Some(4));
        assert_eq!(often(&[], now, 0), None);
    }

    #[test]
    fn an_entry_of_progress_is_known_by_its_stamp() {
        assert!(is_stamp("## 2026-05-10T14:32:11.123Z"));
        for line in ["## why", "### 2026-05-10T14:32:11Z", " ## 2026-05-10T14:32:11Z", "## 2026", ""] {
            assert!(!is_stamp(line), "{line}");
        }
    }

    #[test]
    fn a_person_is_told_what_came_of_it() {
        let check = |outcome: &Outcome, parts: &[&str]| {
            let said = outcome.said();
            assert!(parts.iter().all(|part| said.contains(part)), "{said}");
        };
        check(&Outcome::default(), &["nothing new"]);
        check(&Outcome { gave_way: true, ..Outcome::default() }, &["stopped; it goes on"]);
        let record = |operations, under_reflected, error: Option<&str>| Record {
            ts: "x".into(),
            summary: "We talked.".into(),
            up_to: Some(8),
            operations,
            under_reflected,
            reflection: None,
            error: error.map(str::to_owned),
        };
        let one = |record: Record| {
            let told = said(&record, 8);
            Outcome { over: vec![(record, told)], gave_way: false }
        };
        check(&one(record(1, false, None)), &["8 messages: 1 change was made", "We talked."]);
        let under = one(record(0, true, None));
        check(&under, &["nothing was changed", "under-reflected"]);
        assert!(under.unasked().is_some() && one(record(2, false, None)).unasked().is_none());
        check(&one(record(0, false, Some("no model"))), &["not finished", "no model"]);
    }
}
