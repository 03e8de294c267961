//! The desk: where every question is answered, one after the other, on the thread that owns the repository.
//!
//! ```text
//!  question ─▶ grant ─▶ input read ─▶ asked before? ─▶ what would change? ─▶ edits from outside, alone ─▶ hers ─▶ receipt
//! ```
//!
//! It decides with the pure parts and writes with the repository. What was committed is kept for telling, in order. What
//! a person asks for (why, roll-back, check) and what a person did (edits from outside) is in `deeds`.

mod calls;
mod deeds;
mod dreaming;
mod gating;
mod looking_back;
#[cfg(test)]
mod matrix;
mod migrating;
mod noting;
mod objecting;
mod persons;
#[cfg(test)]
mod stage;
mod trouble;

use std::{collections::VecDeque, path::Path};

use ipc::{
    config::{Dreams, Gates},
    contract::soul::{Birth, Called, Changed, Reply, Request, RunKind, Status},
    id::{RequestId, random_hex},
    server::Caller,
};
use jiff::{Timestamp, civil::Date, tz::TimeZone};
use tracing::{error, info};

use crate::{
    answered::Answered,
    birth,
    document::{Document, Folder, Scope},
    dynamics,
    grant::{Deed, Grant, RunKey},
    input::{DIFF_MAX, HISTORY_MAX},
    message::{Message, Origin},
    neighbour::Neighbour,
    outside::Outside,
    plan::{NotWritten, no_such},
    portrait::{self, portrait},
    reading,
    recall::Shelf,
    repository::{Change, Repository, RepositoryError, Versions, Wanted, workfile::look},
    rollback::has_seed,
    seal,
    seed::{self, Seed},
    tools::Tool,
};
use calls::sealed;
use gating::Quota;

/// The clock, read where a question comes in.
pub(crate) type Clock = Box<dyn Fn() -> Timestamp + Send>;

/// What is said to whoever writes too early.
const UNBORN: &str = "she is not born yet, so there is nothing to write to; `lisa up` gives birth";

/// How many drafts of a self are kept; whoever needs more is not giving birth.
const DRAFTS_MAX: usize = 8;

/// Everything that is needed to answer.
pub(crate) struct Desk {
    repository: Repository,
    zone: TimeZone,
    key: RunKey,
    clock: Clock,
    /// How much she may change of herself, and what is much.
    gates: Gates,
    /// When something she noticed becomes part of her.
    dreams: Dreams,
    drafts: VecDeque<(String, Seed)>,
    answered: Answered,
    /// The requests that were answered in this batch.
    taken: Vec<RequestId>,
    /// The commits of this batch.
    coming: Vec<Changed>,
    news: Vec<Changed>,
    outside: Outside,
    neighbour: Neighbour,
    /// Why the repository cannot be used, where it cannot.
    broken: Option<String>,
    /// Whether it was looked in this batch that nothing is in the way of a write.
    is_clear: bool,
    /// Whether it was seen in this batch that the files have the newest form.
    is_newest_form: bool,
    /// How many gated writes there were today, as far as it was counted.
    quota: Option<Quota>,
    /// Her notes, as they were last read.
    shelf: Shelf,
}

impl Desk {
    /// A desk over an open repository.
    pub(crate) fn new(repository: Repository, zone: TimeZone, key: RunKey, clock: Clock) -> Self {
        Self {
            repository,
            zone,
            key,
            clock,
            gates: Gates::default(),
            dreams: Dreams::default(),
            drafts: VecDeque::new(),
            answered: Answered::default(),
            taken: Vec::new(),
            coming: Vec::new(),
            news: Vec::new(),
            outside: Outside::default(),
            neighbour: Neighbour::default(),
            broken: None,
            is_clear: false,
            is_newest_form: false,
            quota: None,
            shelf: Shelf::default(),
        }
    }

    /// With the gates that a person has set.
    pub(crate) fn gated_by(self, gates: Gates) -> Self {
        Self { gates, ..self }
    }

    /// With what a person has set for dreams.
    pub(crate) fn dreaming_by(self, dreams: Dreams) -> Self {
        Self { dreams, ..self }
    }

    /// A desk over a repository that cannot be opened: the documents are read, and nothing is written.
    pub(crate) fn reading(root: &Path, zone: TimeZone, key: RunKey, clock: Clock, why: String) -> Self {
        Self { broken: Some(why), ..Self::new(Repository::closed(root, zone.clone()), zone, key, clock) }
    }

    /// The commits that were flushed since this was last asked, oldest first.
    pub(crate) fn take_news(&mut self) -> Vec<Changed> {
        std::mem::take(&mut self.news)
    }

    /// Answers one question.
    pub(crate) fn answer(&mut self, caller: &Caller, id: &RequestId, request: Request) -> Reply {
        let now = (self.clock)();
        let grant = |run| Grant::of(caller.role, run, &self.key, now);
        let answered = match request {
            Request::Status => Ok(Reply::Status(self.status())),
            Request::Snapshot => Ok(self.snapshot()),
            Request::Drives => Ok(self.drives(now)),
            Request::Tools => Ok(Reply::Tools(Tool::ALL.map(Tool::spec).into())),
            Request::Call(call) => match grant(call.run.as_ref()) {
                Ok(grant) => Ok(self.call(grant, id, &call, now)),
                Err(reason) => Err(NotWritten::Refused(reason)),
            },
            Request::Conceive => self.conceive(grant(None)),
            Request::Birth(birth) => self.birth(grant(None), id, &birth, now),
            Request::OpenRun { kind, task } => self.open_run(grant(None), kind, &task, now),
            Request::Read { document } => self.read(&document, now),
            Request::History { document, limit, since } => self.history(document.as_deref(), limit, since),
            Request::Diff { document, since, limit } => self.diff(&document, limit, since, now),
            Request::Why { document, line } => self.why(&document, line, now),
            Request::Rollback(asked) => {
                self.roll_back(Grant::of_person(caller.role, asked.human), id, &asked, now)
            }
            Request::Look => self.look_outside(Grant::of_person(caller.role, false), now),
            Request::Edit(edit) => self.edit(Grant::of_person(caller.role, edit.human), id, &edit, now),
            Request::Rate(rate) => self.rate(Grant::of_person(caller.role, rate.human), id, &rate, now),
            Request::Objections { limit, open } => self.objections(limit, open),
            Request::Candidates => self.candidates(now),
            Request::Notes { query, limit } => self.notes(query.as_deref(), limit, now),
            Request::Surfaced(surfaced) => self.surfaced(grant(None), id, &surfaced, now),
            Request::Check { repair, human } => self.check(Grant::of_person(caller.role, human), repair, now),
        };
        answered.unwrap_or_else(|why| Reply::Refused { reason: why.sentence() })
    }

    /// What a person should know about the soul.
    pub(crate) fn notices(&mut self) -> Vec<String> {
        self.status().notices
    }

    fn status(&mut self) -> Status {
        self.catch_up();
        let (versions, born, unread) = self.standing();
        let mut portrait = portrait(self.repository.root(), versions, born);
        portrait.notices.extend(unread);
        portrait.notices.extend(self.repository.notice());
        portrait.notices.extend(self.notices_besides());
        Status {
            born,
            name: if born { portrait.snapshot.name } else { String::new() },
            commit: self.repository.commit().ok().flatten(),
            sequence: versions.sequence,
            prompt_version: versions.prompt_version,
            notices: portrait.notices,
        }
    }

    fn snapshot(&mut self) -> Reply {
        self.catch_up();
        let (versions, born, _) = self.standing();
        Reply::Snapshot(Box::new(portrait(self.repository.root(), versions, born).snapshot))
    }

    fn drives(&mut self, now: Timestamp) -> Reply {
        self.catch_up();
        let (versions, born, _) = self.standing();
        let soul = portrait(self.repository.root(), versions, born).snapshot;
        Reply::Drives(dynamics::drives(&soul.desires, now))
    }

    /// The versions, and whether she is born; where the history cannot be read, what the files say of that, and why.
    fn standing(&mut self) -> (Versions, bool, Option<String>) {
        let versions = self.repository.versions();
        match versions.and_then(|versions| Ok((versions, self.repository.is_born()?))) {
            Ok((versions, born)) => (versions, born, None),
            Err(error) => {
                let why = ipc::exit::chain(&error);
                let born = has_seed(self.repository.root());
                let versions = Versions { sequence: 0, prompt_version: u64::from(born) };
                (
                    versions,
                    born,
                    Some(format!("{why}; she can be read, not changed; `lisa soul check` says more")),
                )
            }
        }
    }

    /// Waits for the files of what was accepted, if they can be written; readers see the files.
    fn catch_up(&mut self) {
        self.flush();
        if let Err(error) = self.repository.settle() {
            error!(error = ipc::exit::chain(&error), "the files of the last changes still cannot be written");
        }
    }

    /// The batch that the last answer depends on, if it depends on one that is not durable yet.
    pub(crate) fn ticket(&self) -> Option<u64> {
        self.repository.ticket()
    }

    /// Makes durable what the answers so far depend on.
    pub(crate) fn flush(&mut self) {
        let answered = &self.answered;
        let flushed = self.repository.flush(|id| {
            let id = RequestId::try_from(id.to_owned()).ok()?;
            serde_json::to_value(answered.get(&id)?).ok()
        });
        let coming = std::mem::take(&mut self.coming);
        if flushed.is_ok() {
            self.news.extend(coming);
        } else {
            self.answered.forget(&std::mem::take(&mut self.taken));
            // what was refused does not count
            self.quota = None;
        }
        self.taken.clear();
    }

    /// The answer as it may be given, now that the batch it depends on is flushed or could not be.
    pub(crate) fn settled(&self, reply: Reply, ticket: Option<u64>) -> Reply {
        let Some(why) = ticket.and_then(|ticket| self.repository.why_not(ticket)) else { return reply };
        let why = RepositoryError::Unlogged { why: why.to_owned() };
        let reason = NotWritten::Failed(why).sentence();
        match reply {
            Reply::Called(_) => Reply::Called(Called::failed(reason)),
            _ => Reply::Refused { reason },
        }
    }

    /// Ends a batch whose answers have been given.
    pub(crate) fn end_batch(&mut self) {
        self.repository.end_batch();
        (self.is_clear, self.is_newest_form) = (false, false);
    }

    /// Whether something is on its way to git.
    pub(crate) fn is_unsettled(&self) -> bool {
        self.repository.is_unsettled() || self.repository.is_refusing()
    }

    /// Helps along what is on its way to git and needs the owner's word.
    pub(crate) fn tend(&mut self) {
        self.repository.try_again();
        if let Err(error) = self.repository.versions() {
            error!(
                error = ipc::exit::chain(&error),
                "what was accepted cannot go on top of what somebody committed"
            );
        }
        self.end_batch();
    }

    /// Remembers an answer, which counts once its batch is flushed.
    fn keep(&mut self, id: &RequestId, called: &Called) {
        self.answered.keep(id, called);
        self.taken.push(id.clone());
    }

    fn conceive(&mut self, grant: Result<Grant, String>) -> Result<Reply, NotWritten> {
        grant?.permits(Deed::Birth)?;
        self.unborn()?;
        let (draft, seed) = (random_hex::<8>(), Seed::draw());
        let big_five = seed.big_five();
        if self.drafts.len() == DRAFTS_MAX {
            self.drafts.pop_front();
        }
        self.drafts.push_back((draft.clone(), seed));
        Ok(Reply::Conceived { draft, big_five })
    }

    fn birth(
        &mut self,
        grant: Result<Grant, String>,
        id: &RequestId,
        asked: &Birth,
        now: Timestamp,
    ) -> Result<Reply, NotWritten> {
        grant?.permits(Deed::Birth)?;
        if let Some(first) = self.first_outcome(id)? {
            return Ok(first.written.map_or_else(|| Reply::Refused { reason: first.output }, Reply::Born));
        }
        self.flush();
        self.repository.settle()?;
        self.unborn()?;
        let seed = self.drafts.iter().find(|(draft, _)| *draft == asked.draft).map(|(_, seed)| seed.clone());
        let seed = seed.ok_or_else(|| {
            "the draft is unknown, as after a restart of the soul; conceive again".to_owned()
        })?;
        let wording = match &asked.wording {
            Some(wording) => birth::accept(wording)?,
            None => birth::wording(&seed),
        };
        let mut changes = Vec::new();
        for (path, bytes) in birth::files(&seed, &wording, now, &seed::whereabouts()) {
            // what a person has laid ready is hers already, and no template goes over it (T16)
            let ready = look(self.repository.root(), &path)?.filter(|bytes| !bytes.trim_ascii().is_empty());
            changes.push(Change { path, bytes: Some(ready.unwrap_or(bytes)) });
        }
        reseal(&mut changes, now);
        self.unhindered()?;
        let mut message = Message::of("birth", "initial soul snapshot", "birth", Origin::Birth);
        (message.model, message.request) = (Some(asked.model.clone()), Some(id.clone()));
        self.repository.prepare(now)?;
        let receipt =
            self.repository.accept(&changes, &message, now).inspect_err(|_| self.answered.doubt())?;
        let receipt = receipt.ok_or_else(|| "there was nothing to write".to_owned())?;
        info!(commit = receipt.commit, "she is born");
        self.drafts.clear();
        let written = self.tell(&receipt);
        self.keep(id, &Called::wrote(String::new(), written.clone()));
        Ok(Reply::Born(written))
    }

    fn unborn(&self) -> Result<(), NotWritten> {
        if self.repository.is_born()? {
            return Err("she is already born; a home has one self, so use another home for another"
                .to_owned()
                .into());
        }
        Ok(())
    }

    fn open_run(
        &self,
        grant: Result<Grant, String>,
        kind: RunKind,
        task: &str,
        now: Timestamp,
    ) -> Result<Reply, NotWritten> {
        grant?.permits(Deed::OpenRun(kind))?;
        Ok(Reply::RunOpened { run: self.key.open(kind, task, &random_hex::<8>(), now)? })
    }

    fn read(&mut self, name: &str, now: Timestamp) -> Result<Reply, NotWritten> {
        self.catch_up();
        let document = Document::parse(name, self.today(now))?;
        let path = document.path();
        let Some(bytes) = look(self.repository.root(), &path)? else {
            return Err(self.missing(&document).into());
        };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let text = match document {
            Document::Text(_) => crate::sheet::trimmed(&text).to_owned(),
            _ => text,
        };
        Ok(Reply::Document { path, text })
    }

    fn history(
        &self,
        document: Option<&str>,
        limit: u32,
        since: Option<Timestamp>,
    ) -> Result<Reply, NotWritten> {
        let path = document.map(Scope::parse).transpose()?.and_then(|scope| scope.path());
        let limit = limit.min(HISTORY_MAX) as usize;
        let entries = self.repository.history(Wanted { path: path.as_deref(), limit, since })?;
        Ok(Reply::History { entries })
    }

    fn diff(
        &self,
        document: &str,
        limit: u32,
        since: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<Reply, NotWritten> {
        let path = Document::parse(document, self.today(now))?.path();
        let limit = limit.min(DIFF_MAX) as usize;
        let text = self.repository.diff(Wanted { path: Some(&path), limit, since })?;
        let text = if text.is_empty() { reading::NO_HISTORY.to_owned() } else { reading::head(&text) };
        Ok(Reply::Diff { path, text })
    }

    fn today(&self, now: Timestamp) -> Date {
        now.to_zoned_datetime(self.zone.clone()).date()
    }

    fn missing(&self, document: &Document) -> String {
        let root = self.repository.root();
        match document {
            Document::Text(text) => format!("there is no `{}` yet", text.path()),
            Document::Value(slug) => no_such("value", slug.as_str(), &portrait::slugs(root, Folder::Values)),
            Document::Opinion(slug) => {
                no_such("opinion", slug.as_str(), &portrait::slugs(root, Folder::Opinions))
            }
            Document::Desire(slug) => {
                no_such("desire", slug.as_str(), &portrait::slugs(root, Folder::Desires))
            }
            Document::Progress(slug) => format!("nothing is written about the progress of `{slug}` yet"),
            Document::Journal(day) => format!("the journal has no entry of {day}"),
            Document::Notes(day) => format!("there is no note of {day}"),
            Document::Relationship(slug) => {
                no_such("page about a person", slug.as_str(), &portrait::slugs(root, Folder::Relationships))
            }
            Document::Record(record) => format!("there is no `{}` yet", record.path()),
        }
    }
}

/// Seals the documents as they will be, where some of them were there before.
fn reseal(changes: &mut [Change], now: Timestamp) {
    let bytes = seal::renew(None, &sealed(changes), now);
    if let Some(seal) = changes.iter_mut().find(|change| change.path == seal::PATH) {
        seal.bytes = Some(bytes);
    }
}

/// Asks one question as if nobody else asked, and waits until what it wrote is in the files.
#[cfg(test)]
pub(crate) fn ask_alone(desk: &mut Desk, caller: &Caller, id: &RequestId, request: Request) -> Reply {
    let reply = desk.answer(caller, id, request);
    let ticket = desk.ticket();
    desk.catch_up();
    let reply = desk.settled(reply, ticket);
    desk.end_batch();
    reply
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::Step;
    use ipc::{
        contract::soul::Call,
        hello::{Role, Secret},
    };
    use serde_json::json;

    fn ask(desk: &mut Desk, id: &str, request: Request) -> Reply {
        let caller = Caller { role: Role::Agent, life: 1 };
        ask_alone(desk, &caller, &RequestId::try_from(id.to_owned()).unwrap(), request)
    }

    fn journal(desk: &mut Desk, id: &str) -> Called {
        let (tool, input) = ("soul_journal".to_owned(), json!({"entry": format!("entry {id}")}));
        let call =
            Call { tool, input, run: None, session: None, model: "offline".to_owned(), outside: false };
        match ask(desk, id, Request::Call(call)) {
            Reply::Called(called) => called,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_write_that_failed_behind_its_commit_loses_nothing_and_is_not_made_twice() {
        let home = tempfile::tempdir().unwrap();
        let repository = Repository::open(home.path(), TimeZone::UTC).unwrap();
        let key = RunKey::derive(&Secret::fresh());
        let now: Timestamp = "2026-11-30T12:00:00Z".parse().unwrap();
        let mut desk = Desk::new(repository, TimeZone::UTC, key, Box::new(move || now));
        let Reply::Conceived { draft, .. } = ask(&mut desk, "c", Request::Conceive) else { panic!() };
        let birth = Birth { draft, wording: None, model: "offline".to_owned() };
        assert!(matches!(ask(&mut desk, "b", Request::Birth(birth)), Reply::Born(_)));

        desk.repository.cut(Some(Step::Accepted));
        assert!(journal(&mut desk, "cut").failed);
        desk.repository.cut(None);
        assert!(!journal(&mut desk, "next").failed);
        let text = || std::fs::read_to_string(home.path().join("journal/2026-11-30.md")).unwrap();
        assert!(!text().contains("entry cut") && text().contains("entry next"), "{}", text());
        let first = journal(&mut desk, "cut");
        assert!(first.written.is_some(), "asked again, it is written");
        assert_eq!(journal(&mut desk, "cut"), first, "and once");
        assert_eq!(text().matches("entry cut").count(), 1, "{}", text());
    }
}
