//! Whether a child that serves still answers: a plain count of the silence, as far as it was watched.
//!
//! A child is asked over the socket others ask it on, and answers from the executor that does its work; the soul also says
//! for how long the thread that writes has been at the piece in hand. Only time in which we were awake to listen counts:
//! a machine that was suspended, or a supervisor that was stopped, has heard nothing, and blames nobody for it.

use std::time::Duration;

use ipc::server::Pong;

use crate::lifecycle::Life;

/// How long the thread that works may take for one piece of work before it counts as stuck.
const WORK_MAX: Duration = Duration::from_mins(10);

/// When a child is asked, and how long an answer may take, for the longest silence that is borne.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rhythm {
    /// The pause between two questions.
    pub(crate) every: Duration,
    /// How long one answer may take.
    pub(crate) patience: Duration,
    /// The most that counts as watched between two answers.
    watched_max: Duration,
}

impl Rhythm {
    /// A rhythm that needs two unanswered questions at least to find a child silent for `silence_max`.
    pub(crate) fn of(silence_max: Duration) -> Self {
        Self {
            every: (silence_max / 6).clamp(Duration::from_millis(20), Duration::from_secs(5)),
            patience: silence_max / 2,
            watched_max: silence_max * 3 / 4,
        }
    }
}

/// What was heard of a child.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    life: Life,
    silence: Duration,
}

impl Watch {
    /// A question was answered, or not, `passed` after the one before, by the child that is to serve in the life `serving`.
    /// How long it has been silent, or stuck, where that is too long.
    pub(crate) fn on(
        &mut self,
        serving: Option<Life>,
        answer: Option<Pong>,
        passed: Duration,
        silence_max: Duration,
    ) -> Option<(Life, Duration)> {
        let life = serving?;
        if self.life != life {
            // it has just become ready: that was a sign of life
            *self = Self { life, silence: Duration::ZERO };
            return None;
        }
        if let Some(Pong { busy_ms, .. }) = answer.filter(|pong| pong.life == life) {
            self.silence = Duration::ZERO;
            let busy = Duration::from_millis(busy_ms.unwrap_or_default());
            return (busy > WORK_MAX).then_some((life, busy));
        }
        self.silence += passed.min(Rhythm::of(silence_max).watched_max);
        (self.silence >= silence_max).then_some((life, self.silence))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: Duration = Duration::from_secs(30);

    fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    fn pong(life: Life, busy_ms: Option<u64>) -> Pong {
        Pong { life, busy_ms }
    }

    #[test]
    fn silence_counts_from_the_last_answer_of_this_life() {
        let mut watch = Watch::default();
        assert_eq!(watch.on(None, None, secs(99), MAX), None, "nobody is to answer");
        assert_eq!(watch.on(Some(1), None, secs(99), MAX), None, "it has just become ready");
        assert_eq!(watch.on(Some(1), None, secs(20), MAX), None);
        assert_eq!(watch.on(Some(1), Some(pong(1, None)), secs(20), MAX), None);
        assert_eq!(watch.on(Some(1), None, secs(20), MAX), None, "counted anew");
        assert_eq!(
            watch.on(Some(1), Some(pong(0, None)), secs(20), MAX),
            Some((1, secs(40))),
            "another life's answer"
        );
        assert_eq!(watch.on(Some(2), None, secs(20), MAX), None, "the next life begins with nothing");
    }

    #[test]
    fn b29_time_in_which_nobody_listened_is_nobodys_silence() {
        let mut watch = Watch::default();
        watch.on(Some(1), Some(pong(1, None)), secs(5), MAX);
        watch.on(Some(1), Some(pong(1, None)), secs(5), MAX);
        // suspended for eight hours while a question was on its way
        assert_eq!(watch.on(Some(1), None, secs(8 * 3600), MAX), None);
        assert_eq!(watch.on(Some(1), Some(pong(1, None)), secs(5), MAX), None);
    }

    #[test]
    fn a_thread_that_is_stuck_in_one_piece_of_work_counts_as_silent() {
        let mut watch = Watch::default();
        watch.on(Some(1), None, secs(5), MAX);
        assert_eq!(watch.on(Some(1), Some(pong(1, Some(599_000))), secs(5), MAX), None);
        assert_eq!(watch.on(Some(1), Some(pong(1, Some(601_000))), secs(5), MAX), Some((1, secs(601))));
    }

    #[test]
    fn one_unanswered_question_is_never_enough() {
        for silence_max in [Duration::from_millis(1), secs(1), MAX, secs(3600)] {
            let Rhythm { watched_max, patience, .. } = Rhythm::of(silence_max);
            assert!(watched_max < silence_max && patience < silence_max);
        }
    }
}
