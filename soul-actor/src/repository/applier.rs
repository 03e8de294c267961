//! The thread behind the owner: applies what was accepted, tries again what does not work, tidies when nothing is to do.
//!
//! ```text
//!  batches ─▶ taken together ─▶ applied ──▶ … quiet ─▶ index of git, flush, log shorter ─▶ packs, annotations
//!                  ▲               │ trouble: told, tried again with a growing pause
//!                  └───────────────┘ moved by somebody else: parked, until the owner sends what stands instead
//! ```

use std::{
    cell::RefCell,
    collections::VecDeque,
    sync::{
        Arc,
        mpsc::{self, RecvTimeoutError, TryRecvError},
    },
    thread,
    time::Duration,
};

use tracing::{info, warn};

use super::{
    RepositoryError, Result, accepted::Accepted, cause, hands::Hands, progress::Progress, upkeep::Upkeep,
};

/// How long nothing must come before it is tidied up: longer than the writes of one turn are apart.
const QUIET: Duration = Duration::from_millis(120);
/// The first and the longest pause before what did not work is tried again.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(2));
/// How many writes are applied at once at most; their objects are in memory twice while they are packed.
const TOGETHER_MAX: usize = 2048;
/// For how long writes are gathered: what changes often is then written once, and a file costs more than all else about a
/// write. It is out of the way of the next write besides, which follows on the last one closely or not at all. Nobody
/// waits for that who wants to read.
const GATHERING: Duration = Duration::from_millis(20);
/// How many applied records the log keeps before it is shortened though there is no quiet.
const UNRELEASED_MAX: u64 = 2048;

/// Accepted writes, and the branch they go to.
pub(super) struct Batch {
    /// The writes, in order.
    pub(super) writes: Vec<Arc<Accepted>>,
    /// The branch.
    pub(super) branch: String,
    /// They stand in the place of all that came before and was not applied.
    pub(super) instead: bool,
    /// They are of an earlier life, whose files may be torn.
    pub(super) is_start: bool,
    /// What they stand on is known to be hers.
    pub(super) is_hers: bool,
}

/// The thread, from outside.
pub(super) struct Applier {
    batches: Option<mpsc::Sender<Batch>>,
    /// Accepted, and not handed over yet.
    held: RefCell<Vec<Batch>>,
    progress: Arc<Progress>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Applier {
    /// Starts the thread.
    pub(super) fn start(hands: Hands, progress: Arc<Progress>) -> std::io::Result<Self> {
        let (batches, coming) = mpsc::channel();
        let known = progress.clone();
        let thread = thread::Builder::new().name("applier".to_owned()).spawn(move || {
            let _ended = TellWhenEnded(known.clone());
            Work { hands, progress: known, coming, waiting: VecDeque::new(), upkeep: Upkeep::default() }
                .run();
        })?;
        Ok(Self { batches: Some(batches), held: RefCell::default(), progress, thread: Some(thread) })
    }

    /// Keeps a batch until there is time for it: handing it over wakes a thread, and whoever waits for an answer is first.
    pub(super) fn hold(&self, batch: Batch) {
        self.held.borrow_mut().push(batch);
    }

    /// Hands over a batch, and before it what was held. A thread that has ended has said so in the progress; the log keeps
    /// what it does not take.
    pub(super) fn send(&self, batch: Batch) {
        self.hold(batch);
        self.hand_over();
    }

    /// Hands over what was held.
    pub(super) fn hand_over(&self) {
        let held = self.held.take();
        if let Some(batches) = &self.batches {
            for batch in held {
                let _ = batches.send(batch);
            }
        }
    }
}

impl Drop for Applier {
    /// Waits until all is applied that can be.
    fn drop(&mut self) {
        self.hand_over();
        self.batches = None;
        self.progress.hurry();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            warn!("what was accepted could not be applied to the end; the next start does it");
        }
    }
}

struct Work {
    hands: Hands,
    progress: Arc<Progress>,
    coming: mpsc::Receiver<Batch>,
    waiting: VecDeque<Batch>,
    upkeep: Upkeep,
}

/// Whether the thread goes on.
enum Next {
    GoOn,
    End,
}

impl Work {
    fn run(mut self) {
        let (mut is_tidy, mut failures) = (false, 0_u32);
        loop {
            let longest = match (is_tidy, failures) {
                (true, _) => Duration::from_hours(1),
                (false, 0) => QUIET,
                (false, _) => PAUSES.1,
            };
            if self.waiting.is_empty() {
                match self.coming.recv_timeout(longest) {
                    Ok(batch) => self.waiting.push_back(batch),
                    Err(RecvTimeoutError::Timeout) => {
                        (is_tidy, failures) = match self.tidy() {
                            Ok(is_tidy) => (is_tidy, 0),
                            Err(error) => {
                                if failures == 0 {
                                    let error = ipc::exit::chain(&error);
                                    warn!(error, "the log could not be shortened; it will be");
                                }
                                (false, failures.saturating_add(1))
                            }
                        };
                        continue;
                    }
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
            self.gather();
            is_tidy = false;
            if matches!(self.apply(), Next::End) {
                return;
            }
            if self.hands.releasable() > UNRELEASED_MAX
                && let Err(error) = self.hands.release()
            {
                warn!(error = ipc::exit::chain(&error), "the log could not be shortened; it will be");
            }
            self.upkeep.look(self.hands.git_dir(), false);
        }
        if let Err(error) = self.hands.release() {
            warn!(error = ipc::exit::chain(&error), "the log could not be shortened; the next start does it");
        }
        self.upkeep.finish();
    }

    /// Takes what is there, and what comes in the next moment.
    fn gather(&mut self) {
        self.progress.wait_for_somebody(GATHERING);
        self.waiting.extend(self.coming.try_iter());
    }

    /// Applies what waits, as far as it goes to one branch, until that works.
    fn apply(&mut self) -> Next {
        let Some(first) = self.waiting.pop_front() else { return Next::GoOn };
        let Batch { mut writes, branch, is_start, is_hers, .. } = first;
        while writes.len() < TOGETHER_MAX
            && self.waiting.front().is_some_and(|next| {
                next.branch == branch && !next.instead && (next.is_start, next.is_hers) == (is_start, is_hers)
            })
            && let Some(next) = self.waiting.pop_front()
        {
            writes.extend(next.writes);
        }
        let mut pause = PAUSES.0;
        loop {
            let error = match self.hands.apply(&writes, &branch, is_start, is_hers) {
                Ok(()) => return Next::GoOn,
                #[cfg(test)]
                Err(RepositoryError::Cut) => return Next::End,
                Err(RepositoryError::Moved) => return self.park(),
                Err(error) => cause::sentence(&error),
            };
            if pause == PAUSES.0 {
                warn!(error, writes = writes.len(), "what was accepted could not be applied; trying again");
            }
            self.progress.change(|state| state.trouble = Some(error));
            match self.coming.recv_timeout(pause) {
                Ok(batch) if batch.instead => {
                    self.waiting = VecDeque::from([batch]);
                    return Next::GoOn;
                }
                Ok(batch) => self.waiting.push_back(batch),
                Err(RecvTimeoutError::Timeout) => {}
                // the log keeps it, and the next start applies it
                Err(RecvTimeoutError::Disconnected) => return Next::End,
            }
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    /// Waits for what stands instead of what was accepted on top of another commit.
    fn park(&mut self) -> Next {
        info!("somebody else has committed; what was accepted meanwhile goes on top of that");
        self.waiting.clear();
        self.progress.change(|state| (state.moved, state.trouble) = (true, None));
        while let Ok(batch) = self.coming.recv() {
            if batch.instead {
                self.progress.change(|state| state.moved = false);
                self.waiting = VecDeque::from([batch]);
                return Next::GoOn;
            }
        }
        Next::End
    }

    /// Does what waits for quiet; says whether nothing is left to do.
    fn tidy(&mut self) -> Result<bool> {
        self.hands.follow();
        if self.hands.index_more()? {
            return Ok(false);
        }
        self.hands.release()?;
        let is_busy = self.upkeep.look(self.hands.git_dir(), true);
        while self.hands.annotate_more() {
            match self.coming.try_recv() {
                Ok(batch) => {
                    self.waiting.push_back(batch);
                    return Ok(false);
                }
                Err(TryRecvError::Disconnected) => return Ok(false),
                Err(TryRecvError::Empty) => {}
            }
        }
        Ok(!is_busy && !self.hands.is_index_behind())
    }
}

/// Says so when the thread ends, also when it ends in a panic.
struct TellWhenEnded(Arc<Progress>);

impl Drop for TellWhenEnded {
    fn drop(&mut self) {
        self.0.change(|state| state.ended = true);
    }
}
