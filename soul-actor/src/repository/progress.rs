//! How far what was accepted has come: what the two threads of the repository know of each other.

use std::{
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// The steps of a write, after each of which a test may kill it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing is in the log.
    #[cfg_attr(not(test), expect(dead_code, reason = "only tests cut a write"))]
    Accepted,
    /// The log has it, git does not.
    Logged,
    /// The objects are written, the reference has not moved.
    Objects,
    /// The reference has moved, the work files are old.
    Reference,
    /// The work files are new, the index is old.
    Files,
    /// All is done, and the log still has it.
    Indexed,
}

/// How far it has come.
#[derive(Default)]
pub(super) struct Progress {
    applied: AtomicU64,
    /// How many wait for something.
    awaited: AtomicU64,
    state: Mutex<State>,
    changed: Condvar,
}

/// What is not as it should be, and what comes after the files.
#[derive(Debug, Clone, Default)]
pub(super) struct State {
    /// The last record that is in git and in the files.
    pub(super) applied: u64,
    /// The last record that is in the side index.
    pub(super) indexed: u64,
    /// The last record that is below where the owner has put the anchor.
    pub(super) anchored: u64,
    /// Why it does not go on; it is tried again.
    pub(super) trouble: Option<String>,
    /// Why the last write could not be made durable, and so was refused; what is looked at again until it works.
    pub(super) refusing: Option<String>,
    /// Somebody else has moved the branch, and it is for the owner to say what now.
    pub(super) moved: bool,
    /// The thread has ended.
    pub(super) ended: bool,
    #[cfg(test)]
    pub(super) cut: Option<Step>,
}

impl Progress {
    /// The last record that is in git and in the files.
    pub(super) fn applied(&self) -> u64 {
        self.applied.load(Ordering::Acquire)
    }

    /// Everything is applied up to this record, so nothing is in the way.
    pub(super) fn set_applied(&self, position: u64) {
        // before anybody is woken, who then looks at it
        self.applied.store(position, Ordering::Release);
        self.change(|state| {
            state.applied = position;
            state.trouble = None;
        });
    }

    /// Changes the state, and wakes who waits for that.
    pub(super) fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// The state as it is.
    pub(super) fn now(&self) -> State {
        self.lock().clone()
    }

    /// Waits until the state is as it is wanted, for so long at most; gives it as it is then.
    pub(super) fn wait(&self, longest: Duration, is_wanted: impl Fn(&State) -> bool) -> State {
        let end = Instant::now() + longest;
        let mut state = self.lock();
        if is_wanted(&state) {
            return state.clone();
        }
        self.awaited.fetch_add(1, Ordering::AcqRel);
        self.changed.notify_all();
        while !is_wanted(&state) {
            let Some(left) = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) else {
                break;
            };
            (state, _) = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
        }
        self.awaited.fetch_sub(1, Ordering::AcqRel);
        state.clone()
    }

    /// Waits for so long at most, and not while somebody else waits for it to go on.
    pub(super) fn wait_for_somebody(&self, longest: Duration) {
        let is_alone = |_: &mut State| self.awaited.load(Ordering::Acquire) == 0;
        // whoever starts to wait holds the lock while it says so, and so is never missed
        drop(self.changed.wait_timeout_while(self.lock(), longest, is_alone));
    }

    /// From now on nobody gathers: it is waited for to the end.
    pub(super) fn hurry(&self) {
        let _state = self.lock();
        self.awaited.fetch_add(1, Ordering::AcqRel);
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
