//! The turns under way, and a hold on new ones: how this process comes to rest at the boundary of a turn.
//!
//! Whoever is about to end it asks it to *drain*: what is under way goes on to its end, what is asked from then on waits.
//! A turn that waited has not begun; whoever asked for it asks the next life, by the same id. A hold that nobody ends
//! lapses, so that a supervisor that has thought better of it cannot leave her speechless.

use std::time::Duration;

use tokio::{
    sync::watch,
    time::{Instant, sleep_until, timeout},
};

/// How long a hold outlasts the patience it was asked with.
const HOLD_AFTER: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct State {
    under_way: u32,
    held_until: Option<Instant>,
}

impl State {
    fn is_held(&self, now: Instant) -> bool {
        self.held_until.is_some_and(|until| now < until)
    }
}

/// All turns of this life.
#[derive(Debug, Clone)]
pub(crate) struct Turns(watch::Sender<State>);

/// A turn, counted for as long as this is held.
#[derive(Debug)]
pub(crate) struct UnderWay(watch::Sender<State>);

impl Turns {
    /// None is under way, and any may begin.
    pub(crate) fn none() -> Self {
        Self(watch::Sender::new(State::default()))
    }

    /// Begins a turn, when nothing holds it back any more.
    pub(crate) async fn begin(&self) -> UnderWay {
        let mut seen = self.0.subscribe();
        loop {
            let begun = self.0.send_if_modified(|state| {
                let free = !state.is_held(Instant::now());
                state.under_way += u32::from(free);
                free
            });
            if begun {
                return UnderWay(self.0.clone());
            }
            let held_until = seen.borrow_and_update().held_until.unwrap_or_else(Instant::now);
            tokio::select! {
                // the sender is `self`
                _ = seen.changed() => {}
                () = sleep_until(held_until) => {}
            }
        }
    }

    /// How many are under way.
    pub(crate) fn count(&self) -> u32 {
        self.0.borrow().under_way
    }

    /// Lets no turn begin, and waits until none is under way, at most for `patience`; how many are then.
    pub(crate) async fn drain(&self, patience: Duration) -> u32 {
        self.0.send_modify(|state| state.held_until = Some(Instant::now() + patience + HOLD_AFTER));
        let mut seen = self.0.subscribe();
        // when it takes too long the number says so
        let _ = timeout(patience, seen.wait_for(|state| state.under_way == 0)).await;
        self.count()
    }

    /// Lets turns begin again.
    pub(crate) fn resume(&self) {
        self.0.send_modify(|state| state.held_until = None);
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.send_modify(|state| state.under_way = state.under_way.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    fn run(test: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(test);
    }

    #[test]
    fn what_is_under_way_ends_and_what_comes_waits() {
        run(async {
            let turns = Turns::none();
            let first = turns.begin().await;
            assert_eq!(turns.count(), 1);
            let drained = tokio::spawn({
                let turns = turns.clone();
                async move { turns.drain(Duration::from_secs(20)).await }
            });
            tokio::task::yield_now().await;
            assert!(turns.begin().now_or_never().is_none(), "a new one waits");
            assert_eq!(turns.count(), 1, "one that waits is not under way");
            let waiting = tokio::spawn({
                let turns = turns.clone();
                async move { turns.begin().await }
            });
            drop(first);
            assert_eq!(drained.await.unwrap(), 0);
            assert!(!waiting.is_finished());
            turns.resume();
            let _second = waiting.await.unwrap();
            assert_eq!(turns.count(), 1);
        });
    }

    #[test]
    fn one_that_takes_too_long_is_counted() {
        run(async {
            let turns = Turns::none();
            let _hung = turns.begin().await;
            assert_eq!(turns.drain(Duration::from_millis(10)).await, 1);
            assert!(turns.begin().now_or_never().is_none(), "the hold outlasts the patience");
        });
    }

    #[test]
    fn a_hold_lapses() {
        let now = Instant::now();
        let held = State { under_way: 0, held_until: Some(now + HOLD_AFTER) };
        assert!(held.is_held(now) && !held.is_held(now + HOLD_AFTER));
        assert!(!State::default().is_held(now));
    }
}
