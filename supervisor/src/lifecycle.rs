//! What to do with one child process: a plain function of its phase, what happened, and the time.
//!
//! ```text
//!            Start                 Ready                   Exited
//!   Idle ───────────▶ Starting ───────────▶ Ready ──────────────────▶ Waiting ──Clock──▶ Starting
//!    ▲                    │ too late: Kill    │                          │
//!    │                    ▼                   │ Stop                     │ too many deaths, or no use
//!    │                 Killing                ▼                          ▼
//!    └───────────────────────────────────  Stopping ──Clock: Kill     Parked
//!                     Exited
//! ```
//!
//! Every event of a process carries the *life* it belongs to; news of an earlier life is late and changes nothing (B7).
//! Deaths are counted in a window of time that a successful start does not reset, so a crash loop always ends in
//! `Parked` (B10); the pause between restarts grows and is reset by a stable run. The first restart is immediate.

use std::{
    collections::VecDeque,
    fmt,
    time::{Duration, Instant},
};

/// The numbers of the policy.
#[derive(Debug, Clone)]
pub(crate) struct Policy {
    /// More deaths than this within `deaths_window` park the child.
    pub(crate) deaths_max: usize,
    /// The window in which deaths are counted.
    pub(crate) deaths_window: Duration,
    /// How long a child may take until it says that it is ready.
    pub(crate) ready_max: Duration,
    /// How long it may take to end once it was asked to.
    pub(crate) stop_max: Duration,
    /// A run this long is stable: the next restart is immediate again.
    pub(crate) stable_after: Duration,
    /// The pause before the second restart in a row; it doubles from there.
    pub(crate) pause_first: Duration,
    /// The longest pause.
    pub(crate) pause_max: Duration,
}

impl Policy {
    /// The policy with the restart intensity a person has set.
    pub(crate) fn of(config: &ipc::config::Supervisor) -> Self {
        Self {
            deaths_max: usize::try_from(config.deaths_max).unwrap_or(usize::MAX),
            deaths_window: config.deaths_window.unsigned_abs(),
            ready_max: config.ready_max.unsigned_abs(),
            stop_max: Duration::from_secs(8),
            stable_after: Duration::from_secs(10),
            pause_first: Duration::from_millis(50),
            pause_max: Duration::from_secs(10),
        }
    }
}

/// One incarnation of a child process, counted from 1.
pub(crate) type Life = u64;

/// How a process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum How {
    /// By itself, with an exit code.
    Code(i32),
    /// By a signal.
    Signal(i32),
    /// It could not be started at all.
    NotStarted(String),
}

impl How {
    /// Whether starting it again cannot help: it was called wrongly (64), or the configuration is wrong (78).
    fn is_hopeless(&self) -> bool {
        matches!(self, Self::Code(64 | 78))
    }
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
            Self::NotStarted(why) => write!(f, "not started: {why}"),
        }
    }
}

/// Where a child stands.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Phase {
    /// Not running, and not meant to.
    Idle,
    /// Spawned; it has until `until` to say that it is ready.
    Starting { life: Life, since: Instant, until: Instant },
    /// It serves.
    Ready { life: Life, since: Instant },
    /// It died, and will be started again.
    Waiting { until: Instant, why: String },
    /// It was asked to end, and has until `until`.
    Stopping { life: Life, until: Instant },
    /// It took too long and was killed; its end is awaited.
    Killing { life: Life, since: Instant, asked: bool },
    /// It will not be started again.
    Parked { why: String },
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Event {
    /// Somebody wants it to run.
    Start,
    /// It says that it is ready.
    Ready { life: Life },
    /// It ended.
    Exited { life: Life, how: How },
    /// A time that was asked for has come.
    Clock,
    /// Somebody wants it to end.
    Stop,
}

/// What to do.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Action {
    /// Make the process.
    Spawn { life: Life },
    /// Ask it to end.
    Terminate { life: Life },
    /// End it and its whole group.
    Kill { life: Life },
    /// Come back with [`Event::Clock`] then.
    Wake { at: Instant },
    /// Tell everybody.
    Tell(News),
}

/// What others hear.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum News {
    /// It serves, after so long.
    Ready { life: Life, took: Duration },
    /// It died unasked; it will be started again after the pause, or is parked.
    Died { life: Life, how: How, restart_in: Option<Duration> },
    /// It ended as asked.
    Stopped { life: Option<Life>, how: Option<How> },
    /// It will not be started again.
    Parked { why: String },
}

/// One child's state, and what is remembered of its earlier lives.
#[derive(Debug)]
pub(crate) struct Lifecycle {
    policy: Policy,
    phase: Phase,
    life: Life,
    deaths: VecDeque<Instant>,
    /// Restarts since the last stable run.
    in_a_row: u32,
    jitter: Jitter,
}

impl Lifecycle {
    /// A child that was never started. `seed` makes the jitter of its pauses.
    pub(crate) fn new(policy: Policy, seed: u64) -> Self {
        Self {
            policy,
            phase: Phase::Idle,
            life: 0,
            deaths: VecDeque::new(),
            in_a_row: 0,
            jitter: Jitter(seed),
        }
    }

    /// Where it stands.
    pub(crate) fn phase(&self) -> &Phase {
        &self.phase
    }

    /// How often it was started again.
    pub(crate) fn restarts(&self) -> u64 {
        self.life.saturating_sub(1)
    }

    /// Takes one step. Events that do not fit the phase are late news and change nothing.
    pub(crate) fn on(&mut self, event: Event, now: Instant) -> Vec<Action> {
        match (self.phase.clone(), event) {
            (Phase::Idle, Event::Start) => self.start(now),
            (Phase::Idle, Event::Stop) => vec![Action::Tell(News::Stopped { life: None, how: None })],

            (Phase::Starting { life, since, .. }, Event::Ready { life: of }) if life == of => {
                self.phase = Phase::Ready { life, since: now };
                vec![Action::Tell(News::Ready { life, took: now.saturating_duration_since(since) })]
            }
            (Phase::Starting { life, since, until }, Event::Clock) if now >= until => {
                self.phase = Phase::Killing { life, since, asked: false };
                vec![Action::Kill { life }]
            }
            (Phase::Starting { life, since, .. }, Event::Exited { life: of, how }) if life == of => {
                self.died(life, how, since, now)
            }
            (Phase::Starting { life, .. } | Phase::Ready { life, .. }, Event::Stop) => {
                let until = now + self.policy.stop_max;
                self.phase = Phase::Stopping { life, until };
                vec![Action::Terminate { life }, Action::Wake { at: until }]
            }

            (Phase::Ready { life, since }, Event::Exited { life: of, how }) if life == of => {
                self.died(life, how, since, now)
            }

            (Phase::Waiting { until, .. }, Event::Clock) if now >= until => self.start(now),
            (Phase::Waiting { .. } | Phase::Parked { .. }, Event::Stop) => {
                self.phase = Phase::Idle;
                vec![Action::Tell(News::Stopped { life: None, how: None })]
            }

            (Phase::Stopping { life, .. }, Event::Exited { life: of, how }) if life == of => {
                self.phase = Phase::Idle;
                vec![Action::Tell(News::Stopped { life: Some(life), how: Some(how) })]
            }
            (Phase::Stopping { life, until }, Event::Clock) if now >= until => {
                self.phase = Phase::Killing { life, since: now, asked: true };
                vec![Action::Kill { life }]
            }

            (Phase::Killing { life, asked: true, .. }, Event::Exited { life: of, how }) if life == of => {
                self.phase = Phase::Idle;
                vec![Action::Tell(News::Stopped { life: Some(life), how: Some(how) })]
            }
            (Phase::Killing { life, since, asked: false }, Event::Exited { life: of, how }) if life == of => {
                self.died(life, how, since, now)
            }
            (Phase::Killing { life, since, asked: false }, Event::Stop) => {
                self.phase = Phase::Killing { life, since, asked: true };
                vec![]
            }

            // late news, and wishes that are already on their way
            (Phase::Idle, Event::Ready { .. } | Event::Exited { .. } | Event::Clock)
            | (
                Phase::Starting { .. },
                Event::Start | Event::Ready { .. } | Event::Exited { .. } | Event::Clock,
            )
            | (
                Phase::Ready { .. },
                Event::Start | Event::Ready { .. } | Event::Exited { .. } | Event::Clock,
            )
            | (
                Phase::Waiting { .. },
                Event::Start | Event::Ready { .. } | Event::Exited { .. } | Event::Clock,
            )
            | (
                Phase::Stopping { .. },
                Event::Start | Event::Ready { .. } | Event::Exited { .. } | Event::Clock,
            )
            | (Phase::Stopping { .. } | Phase::Killing { asked: true, .. }, Event::Stop)
            | (
                Phase::Killing { .. },
                Event::Start | Event::Ready { .. } | Event::Exited { .. } | Event::Clock,
            )
            | (
                Phase::Parked { .. },
                Event::Start | Event::Ready { .. } | Event::Exited { .. } | Event::Clock,
            ) => {
                vec![]
            }
        }
    }

    fn start(&mut self, now: Instant) -> Vec<Action> {
        self.life += 1;
        let until = now + self.policy.ready_max;
        self.phase = Phase::Starting { life: self.life, since: now, until };
        vec![Action::Spawn { life: self.life }, Action::Wake { at: until }]
    }

    fn died(&mut self, life: Life, how: How, since: Instant, now: Instant) -> Vec<Action> {
        if now.saturating_duration_since(since) >= self.policy.stable_after {
            self.in_a_row = 0;
        }
        self.deaths.push_back(now);
        while self
            .deaths
            .front()
            .is_some_and(|d| now.saturating_duration_since(*d) > self.policy.deaths_window)
        {
            self.deaths.pop_front();
        }
        let why = if how.is_hopeless() {
            Some(format!("it ended with {how}, which starting it again will not mend"))
        } else if self.deaths.len() > self.policy.deaths_max {
            Some(format!(
                "it died {} times within {:?}, the last time by {how}",
                self.deaths.len(),
                self.policy.deaths_window
            ))
        } else {
            None
        };
        if let Some(why) = why {
            self.phase = Phase::Parked { why: why.clone() };
            return vec![
                Action::Tell(News::Died { life, how, restart_in: None }),
                Action::Tell(News::Parked { why }),
            ];
        }
        let pause = self.pause();
        self.in_a_row = self.in_a_row.saturating_add(1);
        let until = now + pause;
        self.phase = Phase::Waiting { until, why: format!("it died by {how}") };
        vec![Action::Tell(News::Died { life, how, restart_in: Some(pause) }), Action::Wake { at: until }]
    }

    /// Nothing before the first restart, then doubling, each a fifth longer or shorter than planned so that children
    /// that fell together do not get up together.
    fn pause(&mut self) -> Duration {
        let Some(doublings) = self.in_a_row.checked_sub(1) else { return Duration::ZERO };
        let planned = self.policy.pause_first.saturating_mul(2u32.saturating_pow(doublings));
        planned.min(self.policy.pause_max).mul_f64(0.8 + 0.4 * self.jitter.next())
    }
}

/// Evenly spread numbers from 0 to 1 (SplitMix64), so that the pauses are a function of the seed.
#[derive(Debug)]
struct Jitter(u64);

impl Jitter {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^= bits >> 31;
        f64::from(u32::try_from(bits >> 32).unwrap_or(u32::MAX)) / f64::from(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn policy() -> Policy {
        Policy::of(&ipc::config::Supervisor::default())
    }

    fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    fn exited(life: Life, code: i32) -> Event {
        Event::Exited { life, how: How::Code(code) }
    }

    fn died(life: Life, code: i32, restart_in: Option<Duration>) -> Action {
        Action::Tell(News::Died { life, how: How::Code(code), restart_in })
    }

    /// Runs events at given seconds, and checks what each one asks for.
    fn check(steps: &[(u64, Event, Vec<Action>)]) -> Lifecycle {
        let start = Instant::now();
        let mut child = Lifecycle::new(policy(), 1);
        for (at, event, expected) in steps {
            let said = child.on(event.clone(), start + secs(*at));
            let seen: Vec<_> =
                said.into_iter().filter(|action| !matches!(action, Action::Wake { .. })).collect();
            assert_eq!(&seen, expected, "at {at}: {event:?}, now {:?}", child.phase());
        }
        child
    }

    #[test]
    fn it_starts_serves_and_ends_as_asked() {
        let child = check(&[
            (0, Event::Start, vec![Action::Spawn { life: 1 }]),
            (1, Event::Ready { life: 1 }, vec![Action::Tell(News::Ready { life: 1, took: secs(1) })]),
            (2, Event::Stop, vec![Action::Terminate { life: 1 }]),
            (3, Event::Stop, vec![]),
            (3, exited(1, 0), vec![Action::Tell(News::Stopped { life: Some(1), how: Some(How::Code(0)) })]),
        ]);
        assert_eq!((child.phase(), child.restarts()), (&Phase::Idle, 0));
    }

    #[test]
    fn the_first_restart_is_at_once_whether_it_lived_long_or_not() {
        for lived in [1, 30] {
            check(&[
                (0, Event::Start, vec![Action::Spawn { life: 1 }]),
                (0, Event::Ready { life: 1 }, vec![Action::Tell(News::Ready { life: 1, took: secs(0) })]),
                (lived, exited(1, 0), vec![died(1, 0, Some(Duration::ZERO))]),
                (lived, Event::Clock, vec![Action::Spawn { life: 2 }]),
            ]);
        }
    }

    #[test]
    fn b7_news_of_an_earlier_life_changes_nothing() {
        check(&[
            (0, Event::Start, vec![Action::Spawn { life: 1 }]),
            (1, exited(1, 1), vec![died(1, 1, Some(Duration::ZERO))]),
            (1, Event::Clock, vec![Action::Spawn { life: 2 }]),
            (1, exited(1, 1), vec![]),
            (1, Event::Ready { life: 1 }, vec![]),
            (1, Event::Ready { life: 2 }, vec![Action::Tell(News::Ready { life: 2, took: secs(0) })]),
            (2, exited(1, 9), vec![]),
        ]);
    }

    #[test]
    fn b10_a_crash_loop_ends_parked_and_a_start_that_succeeds_does_not_reset_the_count() {
        let start = Instant::now();
        let mut child = Lifecycle::new(policy(), 1);
        let mut now = start;
        let mut lives = 0;
        let mut wakes = std::collections::BTreeSet::new();
        let mut todo = child.on(Event::Start, now);
        while !matches!(child.phase(), Phase::Parked { .. }) {
            match todo.pop() {
                Some(Action::Spawn { life }) => {
                    lives = life;
                    todo.extend(child.on(Event::Ready { life }, now));
                    todo.extend(child.on(exited(life, 70), now));
                }
                Some(Action::Wake { at }) => drop(wakes.insert(at)),
                Some(Action::Tell(_) | Action::Terminate { .. } | Action::Kill { .. }) => {}
                None => {
                    now = wakes.pop_first().expect("it waits for something");
                    todo.extend(child.on(Event::Clock, now));
                }
            }
            assert!(now < start + secs(5), "the pauses stay short while the count is low");
        }
        assert_eq!(lives, 6, "five deaths are borne, the sixth parks");
        assert!(
            matches!(child.phase(), Phase::Parked { why } if why.contains("6 times")),
            "{:?}",
            child.phase()
        );
        assert_eq!(child.on(Event::Start, now), vec![]);
    }

    #[test]
    fn t29_a_wrong_configuration_is_not_tried_again() {
        let child = check(&[
            (0, Event::Start, vec![Action::Spawn { life: 1 }]),
            (
                1,
                exited(1, 78),
                vec![
                    died(1, 78, None),
                    Action::Tell(News::Parked {
                        why: "it ended with exit code 78, which starting it again will not mend".into(),
                    }),
                ],
            ),
        ]);
        assert!(matches!(child.phase(), Phase::Parked { .. }));
    }

    #[test]
    fn a_child_that_is_never_ready_or_never_ends_is_killed() {
        check(&[
            (0, Event::Start, vec![Action::Spawn { life: 1 }]),
            (19, Event::Clock, vec![]),
            (20, Event::Clock, vec![Action::Kill { life: 1 }]),
            (
                20,
                Event::Exited { life: 1, how: How::Signal(9) },
                vec![Action::Tell(News::Died {
                    life: 1,
                    how: How::Signal(9),
                    restart_in: Some(Duration::ZERO),
                })],
            ),
            (20, Event::Clock, vec![Action::Spawn { life: 2 }]),
            (21, Event::Stop, vec![Action::Terminate { life: 2 }]),
            (25, Event::Clock, vec![]),
            (29, Event::Clock, vec![Action::Kill { life: 2 }]),
            (
                29,
                Event::Exited { life: 2, how: How::Signal(9) },
                vec![Action::Tell(News::Stopped { life: Some(2), how: Some(How::Signal(9)) })],
            ),
        ]);
    }

    proptest! {
        /// Whatever happens in whatever order: at most one life at a time, lives only grow, no action on a life that is over.
        #[test]
        fn two_lives_never_overlap(steps in proptest::collection::vec((0u8..6, 0u64..4, 0u64..30), 1..200)) {
            let start = Instant::now();
            let mut now = start;
            let mut child = Lifecycle::new(policy(), 7);
            let (mut alive, mut latest) = (None, 0);
            for (what, of, pause) in steps {
                now += secs(pause);
                let event = match what {
                    0 => Event::Start,
                    1 => Event::Ready { life: of },
                    // only a process that is alive can end
                    2 => match alive.take() {
                        Some(life) => Event::Exited { life, how: How::Code(1) },
                        None => Event::Exited { life: of.min(latest), how: How::Code(1) },
                    },
                    3 | 4 => Event::Clock,
                    _ => Event::Stop,
                };
                for action in child.on(event, now) {
                    match action {
                        Action::Spawn { life } => {
                            prop_assert!(alive.is_none(), "spawned {life} while {alive:?} lives");
                            prop_assert!(life > latest);
                            (alive, latest) = (Some(life), life);
                        }
                        Action::Terminate { life } | Action::Kill { life } => prop_assert_eq!(alive, Some(life)),
                        Action::Wake { at } => prop_assert!(at >= now),
                        Action::Tell(_) => {}
                    }
                }
            }
        }
    }
}
