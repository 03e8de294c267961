//! The pulse: an actor that looks what is due, lets one run go at a time, and answers whoever asked.
//!
//! ```text
//!  Look (a clock) ─┐                        ┌─▶ waiting askers
//!  Ask (a person) ─┴─▶ queue ─▶ one run ─▶ Over ─▶ ledger ─▶ next
//! ```

use std::{collections::VecDeque, time::Duration};

use ipc::{
    contract::{
        heartbeat::{Outcome, Reply, RunReport, Status},
        soul::Desire,
    },
    id::RequestId,
};
use jiff::{SignedDuration, Timestamp, civil::Time, tz::TimeZone};
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort};
use tracing::{info, warn};

use crate::{
    beat::{Beat, Reach},
    due,
    ledger::{Book, Ledger, LedgerError, Line},
    night,
    task::Task,
};

/// How often it is looked whether something is due; also how late a clock step is noticed (B29).
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// How many asked-for runs may wait.
const WAITING_MAX: usize = 16;

/// What the pulse is asked and told.
#[derive(Debug)]
pub(crate) enum PulseMsg {
    /// See what is due.
    Look,
    /// These are her desires now; what is due of them runs.
    Saw(Vec<Desire>),
    /// A person wants one task, or whatever is due, to run now.
    Ask { request: RequestId, task: Option<String>, answer: RpcReplyPort<Reply> },
    /// Her desires, for the one who asked.
    Prepared { asked: Asked, desires: Result<Vec<Desire>, String> },
    /// A run is over.
    Over { run: RequestId, beat: Beat },
    /// When does it beat?
    Status { answer: RpcReplyPort<Reply> },
}

/// A request for a run, and everybody who waits for it: asked again while it is under way, it has one more.
#[derive(Debug)]
pub(crate) struct Asked {
    request: RequestId,
    task: Option<String>,
    answers: Vec<RpcReplyPort<Reply>>,
}

impl Asked {
    fn answer(self, reply: &Reply) {
        for answer in self.answers {
            // whoever asked may have gone; the ledger has it
            let _ = answer.send(reply.clone());
        }
    }
}

/// What never changes.
#[derive(Debug)]
pub(crate) struct Pulse {
    pub(crate) reach: Reach,
    pub(crate) on: bool,
    pub(crate) rest: SignedDuration,
    /// At what time of day she dreams by herself, where she does.
    pub(crate) night: Option<Time>,
    pub(crate) zone: TimeZone,
    pub(crate) clock: fn() -> Timestamp,
}

/// What does.
#[derive(Debug)]
pub(crate) struct PulseState {
    book: Book,
    desires: Vec<Desire>,
    queue: VecDeque<Wanted>,
    running: Option<Wanted>,
    looking: bool,
}

/// A run that is to be, or is.
#[derive(Debug)]
struct Wanted {
    task: Task,
    asked: Option<Asked>,
}

impl Actor for Pulse {
    type Msg = PulseMsg;
    type State = PulseState;
    type Arguments = Book;

    async fn pre_start(
        &self,
        myself: ActorRef<PulseMsg>,
        book: Book,
    ) -> Result<PulseState, ActorProcessingErr> {
        let mut state =
            PulseState { book, desires: Vec::new(), queue: VecDeque::new(), running: None, looking: false };
        for run in state.book.ledger.open() {
            let note = "the process died in the middle of it".to_owned();
            let at = (self.clock)();
            state.book.write(Line::Ended { run, outcome: Outcome::Interrupted, session: None, note, at })?;
        }
        if self.on {
            let _clock = myself.send_interval(LOOK_EVERY, || PulseMsg::Look);
            myself.cast(PulseMsg::Look)?;
        }
        Ok(state)
    }

    async fn handle(
        &self,
        myself: ActorRef<PulseMsg>,
        msg: PulseMsg,
        state: &mut PulseState,
    ) -> Result<(), ActorProcessingErr> {
        match msg {
            PulseMsg::Look => self.look(&myself, state),
            PulseMsg::Saw(desires) => self.saw(&myself, state, desires),
            PulseMsg::Ask { request, task, answer } => {
                self.ask(&myself, state, Asked { request, task, answers: vec![answer] });
            }
            PulseMsg::Prepared { asked, desires } => self.prepared(&myself, state, asked, desires),
            PulseMsg::Over { run, beat } => self.over(&myself, state, &run, beat),
            PulseMsg::Status { answer } => self.status(state, answer),
        }
        Ok(())
    }
}

impl Pulse {
    fn look(&self, myself: &ActorRef<PulseMsg>, state: &mut PulseState) {
        if state.looking || state.running.is_some() {
            return;
        }
        state.looking = true;
        let (reach, told) = (self.reach.clone(), myself.clone());
        tokio::spawn(async move {
            let desires = reach.desires().await.unwrap_or_else(|why| {
                warn!(why, "her desires could not be read; looking again later");
                Vec::new()
            });
            let _ = told.cast(PulseMsg::Saw(desires));
        });
    }

    fn saw(&self, myself: &ActorRef<PulseMsg>, state: &mut PulseState, desires: Vec<Desire>) {
        state.looking = false;
        let now = (self.clock)();
        for desire in desires.iter().filter(|desire| due::is_pursued(desire)) {
            let task = due::task_of(&desire.slug);
            if state.book.ledger.anchor(&task).is_none() {
                keep(state.book.write(Line::Seen { task, at: now }));
            }
        }
        if self.night.is_some() && state.book.ledger.anchor(night::TASK).is_none() {
            keep(state.book.write(Line::Seen { task: night::TASK.to_owned(), at: now }));
        }
        if let Some(task) = self.due(&state.book.ledger, &desires, now) {
            state.queue.push_back(Wanted { task, asked: None });
        }
        state.desires = desires;
        self.next(myself, state);
    }

    /// What is to run by itself now: a desire, or, where none waits, the dream of the night.
    fn due(&self, ledger: &Ledger, desires: &[Desire], now: Timestamp) -> Option<Task> {
        let here = now.to_zoned_datetime(self.zone.clone());
        let dreams = || self.night.is_some_and(|at| night::is_due(ledger.anchor(night::TASK), at, &here));
        Task::due(desires, ledger, self.rest, now).or_else(|| dreams().then_some(Task::Dream))
    }

    fn ask(&self, myself: &ActorRef<PulseMsg>, state: &mut PulseState, asked: Asked) {
        let before = state.book.ledger.of_request(asked.request.as_str());
        if !before.is_empty() {
            return asked.answer(&Reply::Ran { runs: before });
        }
        let under_way =
            state.running.iter_mut().chain(&mut state.queue).filter_map(|wanted| wanted.asked.as_mut());
        if let Some(same) = under_way.into_iter().find(|other| other.request == asked.request) {
            return same.answers.extend(asked.answers);
        }
        if state.queue.len() >= WAITING_MAX {
            let reason = format!("{WAITING_MAX} runs wait already; ask again later");
            return asked.answer(&Reply::Refused { reason });
        }
        let (reach, told) = (self.reach.clone(), myself.clone());
        tokio::spawn(async move {
            let desires = reach.desires().await;
            let _ = told.cast(PulseMsg::Prepared { asked, desires });
        });
    }

    fn prepared(
        &self,
        myself: &ActorRef<PulseMsg>,
        state: &mut PulseState,
        asked: Asked,
        desires: Result<Vec<Desire>, String>,
    ) {
        let desires = match desires {
            Ok(desires) => desires,
            Err(reason) => return asked.answer(&Reply::Refused { reason }),
        };
        let task = match &asked.task {
            Some(name) => match Task::named(name, &desires) {
                Ok(task) => task,
                Err(reason) => return asked.answer(&Reply::Refused { reason }),
            },
            None => match self.due(&state.book.ledger, &desires, (self.clock)()) {
                Some(task) => task,
                None => return asked.answer(&Reply::Ran { runs: Vec::new() }),
            },
        };
        state.queue.push_back(Wanted { task, asked: Some(asked) });
        self.next(myself, state);
    }

    /// Lets the next run go, where none is under way. It is claimed first; what cannot be claimed does not run.
    fn next(&self, myself: &ActorRef<PulseMsg>, state: &mut PulseState) {
        while state.running.is_none() {
            let Some(wanted) = state.queue.pop_front() else { return };
            let run = RequestId::fresh();
            let now = (self.clock)();
            let claim = Line::Claimed {
                run: run.to_string(),
                task: wanted.task.name(),
                request: wanted.asked.as_ref().map(|asked| asked.request.to_string()),
                at: now,
            };
            if let Err(error) = state.book.write(claim) {
                let reason = ipc::exit::chain(&error);
                warn!(reason, "a run could not be claimed, so it does not run");
                if let Some(asked) = wanted.asked {
                    asked.answer(&Reply::Refused { reason });
                }
                continue;
            }
            info!(run = %run, task = wanted.task.name(), "a run begins");
            let (reach, told, task) = (self.reach.clone(), myself.clone(), wanted.task.clone());
            let here = now.to_zoned_datetime(self.zone.clone());
            state.running = Some(wanted);
            tokio::spawn(async move {
                let beat = reach.run(&run, &task, &here).await;
                let _ = told.cast(PulseMsg::Over { run, beat });
            });
        }
    }

    fn over(&self, myself: &ActorRef<PulseMsg>, state: &mut PulseState, run: &RequestId, beat: Beat) {
        info!(run = %run, outcome = ?beat.outcome, note = beat.note, "a run is over");
        let now = (self.clock)();
        let Some(wanted) = state.running.take() else { return };
        let task = wanted.task.name();
        let started = state.book.ledger.anchor(&task).unwrap_or(now);
        let report = RunReport {
            run: run.to_string(),
            task,
            outcome: beat.outcome,
            session: beat.session.clone(),
            note: beat.note.clone(),
            started,
            ended: now,
        };
        let ended = Line::Ended {
            run: run.to_string(),
            outcome: beat.outcome,
            session: beat.session,
            note: beat.note,
            at: now,
        };
        keep(state.book.write(ended));
        if let Some(asked) = wanted.asked {
            asked.answer(&Reply::Ran { runs: vec![report] });
        }
        self.next(myself, state);
    }

    fn status(&self, state: &PulseState, answer: RpcReplyPort<Reply>) {
        let off = "the heartbeat is turned off in config.toml (`[heartbeat]`)";
        let here = (self.clock)().to_zoned_datetime(self.zone.clone());
        let dream = self.night.and_then(|at| night::next(state.book.ledger.anchor(night::TASK), at, &here));
        let next = due::next(&state.desires, &state.book.ledger, self.rest).into_iter().chain(dream).min();
        let status = Status {
            on: self.on,
            off_because: (!self.on).then(|| off.to_owned()),
            next: next.filter(|_| self.on),
        };
        let _ = answer.send(Reply::Status(status));
    }
}

/// A line that could not be written is missed at the next start at worst: a run that ended counts as interrupted then.
fn keep(written: Result<(), LedgerError>) {
    if let Err(error) = written {
        warn!(error = ipc::exit::chain(&error), "the ledger could not be written");
    }
}
