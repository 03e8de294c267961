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
//! A child that is *renewed*, to take up new settings, goes through `Stopping` or `Killing` to `Starting`; that is no death.
//! One that has work of others in hand is `Draining` first: it ends that, within a limit.
//!
//! Every event of a process carries the *life* it belongs to; news of an earlier life is late and changes nothing (B7).
//! Deaths are counted in a window of time that a successful start does not reset, so a crash loop always ends in
//! `Parked` (B10); starts that fail one after the other are counted besides, however long each takes. The pause between
//! restarts grows and is reset by a stable run. The first restart is immediate.
//!
//! A parked child is tried again, slowly: a disk that was full, a network that was down may have come back. One death in
//! such a try parks it again, for twice as long, until it has had a stable run.

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
    /// How long it may take to end the work in hand before it is renewed; nought for one that has none.
    pub(crate) drain_max: Duration,
    /// How long it may still take once somebody has asked a second time.
    pub(crate) haste_max: Duration,
    /// A run this long is stable: the next restart is immediate again.
    pub(crate) stable_after: Duration,
    /// The pause before the second restart in a row; it doubles from there.
    pub(crate) pause_first: Duration,
    /// The longest pause.
    pub(crate) pause_max: Duration,
    /// How long a child is parked before it is tried again; it doubles from there.
    pub(crate) parked_first: Duration,
    /// The longest it is parked at a time.
    pub(crate) parked_max: Duration,
}

impl Policy {
    /// The policy with the restart intensity a person has set.
    pub(crate) fn of(config: &ipc::config::Supervisor) -> Self {
        Self {
            deaths_max: usize::try_from(config.deaths_max).unwrap_or(usize::MAX),
            deaths_window: config.deaths_window.unsigned_abs(),
            ready_max: config.ready_max.unsigned_abs(),
            stop_max: Duration::from_secs(8),
            drain_max: Duration::ZERO,
            haste_max: Duration::from_millis(500),
            stable_after: Duration::from_secs(10),
            pause_first: Duration::from_millis(50),
            pause_max: Duration::from_secs(10),
            parked_first: config.retry_first.unsigned_abs(),
            parked_max: config.retry_max.unsigned_abs(),
        }
    }
}

/// How long after its patience the count of work in hand may take to come.
const DRAIN_GRACE: Duration = Duration::from_secs(2);

/// How long a child that hangs may take to write down where it stands.
const TRACE_MAX: Duration = Duration::from_secs(2);

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
    /// It does not answer any more. It was asked to say where it stands, and has until `until` to write that down.
    Hung { life: Life, since: Instant, until: Instant },
    /// It serves, and ends the work in hand before it is renewed; it is asked to end at `until` at the latest.
    Draining { life: Life, since: Instant, until: Instant },
    /// It died, and will be started again.
    Waiting { until: Instant, why: String },
    /// It was asked to end, and has until `until`.
    Stopping { life: Life, until: Instant, then: Then },
    /// It took too long and was killed; its end is awaited.
    Killing { life: Life, since: Instant, then: Then },
    /// It was given up, and is tried again at `until`.
    Parked { until: Instant, why: String },
}

/// What follows the end of a process that we brought about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    /// Nothing: somebody wants it to rest.
    Rest,
    /// The next life at once, since this one only had to give way.
    Renewal,
    /// What follows a death: it had to be killed.
    Death,
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
    /// Somebody wants it to end, and will not wait for long.
    Hasten,
    /// It has not answered for so long that it is taken to hang.
    Silent { life: Life, silence: Duration },
    /// It has no work in hand any more, or is not going to end it: so many pieces of it will be cut off.
    Drained { life: Life, cut: u32 },
    /// There are new settings for it: it is to live on with them, and to try again where it had been given up.
    Renew,
}

/// What to do.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Action {
    /// Make the process.
    Spawn { life: Life },
    /// Ask it to write down where its threads stand.
    Trace { life: Life },
    /// Let it end the work in hand, and come back with [`Event::Drained`].
    Drain { life: Life, patience: Duration },
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
    /// It does not answer, and will be ended.
    Hung { life: Life, silence: Duration },
    /// It is to give way to a life with new settings, and ends the work in hand first.
    Draining { life: Life, patience: Duration },
    /// It is asked to give way to a life with new settings. So many pieces of work are cut off.
    Renewing { life: Life, cut: u32 },
    /// It gave way, and the next life begins.
    GaveWay { life: Life, how: How },
    /// It was given up, and is tried again after so long.
    Parked { why: String, retry_in: Duration },
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
    /// Starts since the last one that became ready, that one left out.
    unready_in_a_row: usize,
    /// How often it was parked since the last stable run.
    parked_in_a_row: u32,
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
            unready_in_a_row: 0,
            parked_in_a_row: 0,
            jitter: Jitter(seed),
        }
    }

    /// The life that serves, and is to answer when it is asked.
    pub(crate) fn serving(&self) -> Option<Life> {
        match self.phase {
            Phase::Ready { life, .. } | Phase::Draining { life, .. } => Some(life),
            Phase::Idle
            | Phase::Starting { .. }
            | Phase::Hung { .. }
            | Phase::Waiting { .. }
            | Phase::Stopping { .. }
            | Phase::Killing { .. }
            | Phase::Parked { .. } => None,
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

    /// From now on deaths and deadlines are judged by this; those that are set already stand.
    pub(crate) fn judge_by(&mut self, policy: Policy) {
        self.policy = policy;
    }

    /// Takes one step. Events that do not fit the phase are late news and change nothing.
    pub(crate) fn on(&mut self, event: Event, now: Instant) -> Vec<Action> {
        match event {
            Event::Start => self.started(now),
            Event::Ready { life } => self.ready(life, now),
            Event::Exited { life, how } => self.exited(life, how, now),
            Event::Clock => self.clock(now),
            Event::Stop => self.stop(now, self.policy.stop_max),
            Event::Hasten => self.stop(now, self.policy.haste_max),
            Event::Renew => self.renew(now),
            Event::Drained { life, cut } => self.drained(life, cut, now),
            Event::Silent { life, silence } => self.silent(life, silence, now),
        }
    }

    fn started(&mut self, now: Instant) -> Vec<Action> {
        match self.phase {
            Phase::Idle => self.start(now),
            // it runs, is about to, or was given up
            Phase::Starting { .. }
            | Phase::Ready { .. }
            | Phase::Hung { .. }
            | Phase::Draining { .. }
            | Phase::Waiting { .. }
            | Phase::Stopping { .. }
            | Phase::Killing { .. }
            | Phase::Parked { .. } => vec![],
        }
    }

    fn ready(&mut self, of: Life, now: Instant) -> Vec<Action> {
        match self.phase {
            Phase::Starting { life, since, .. } if life == of => {
                self.phase = Phase::Ready { life, since: now };
                self.unready_in_a_row = 0;
                vec![Action::Tell(News::Ready { life, took: now.saturating_duration_since(since) })]
            }
            // late news, and what is said on the way out
            Phase::Idle
            | Phase::Starting { .. }
            | Phase::Ready { .. }
            | Phase::Hung { .. }
            | Phase::Draining { .. }
            | Phase::Waiting { .. }
            | Phase::Stopping { .. }
            | Phase::Killing { .. }
            | Phase::Parked { .. } => vec![],
        }
    }

    fn exited(&mut self, of: Life, how: How, now: Instant) -> Vec<Action> {
        match self.phase {
            Phase::Starting { life, since, .. }
            | Phase::Ready { life, since }
            | Phase::Hung { life, since, .. }
            | Phase::Draining { life, since, .. }
            | Phase::Killing { life, since, then: Then::Death }
                if life == of =>
            {
                self.died(life, how, since, now)
            }
            Phase::Stopping { life, then, .. } | Phase::Killing { life, then, .. } if life == of => {
                match then {
                    Then::Renewal => {
                        // a start that was called off has not failed
                        self.unready_in_a_row = 0;
                        let mut actions = vec![Action::Tell(News::GaveWay { life, how })];
                        actions.extend(self.start(now));
                        actions
                    }
                    Then::Rest | Then::Death => {
                        self.phase = Phase::Idle;
                        vec![Action::Tell(News::Stopped { life: Some(life), how: Some(how) })]
                    }
                }
            }
            // late news
            Phase::Idle
            | Phase::Starting { .. }
            | Phase::Ready { .. }
            | Phase::Hung { .. }
            | Phase::Draining { .. }
            | Phase::Waiting { .. }
            | Phase::Stopping { .. }
            | Phase::Killing { .. }
            | Phase::Parked { .. } => vec![],
        }
    }

    fn clock(&mut self, now: Instant) -> Vec<Action> {
        match self.phase {
            Phase::Starting { life, since, until } | Phase::Hung { life, since, until } if now >= until => {
                self.phase = Phase::Killing { life, since, then: Then::Death };
                vec![Action::Kill { life }]
            }
            Phase::Waiting { until, .. } | Phase::Parked { until, .. } if now >= until => self.start(now),
            // what keeps count of the work does not answer
            Phase::Draining { life, until, .. } if now >= until => self.give_way(life, 0, now),
            Phase::Stopping { life, until, then } if now >= until => {
                self.phase = Phase::Killing { life, since: now, then };
                vec![Action::Kill { life }]
            }
            // a time that no longer matters
            Phase::Idle
            | Phase::Starting { .. }
            | Phase::Ready { .. }
            | Phase::Hung { .. }
            | Phase::Draining { .. }
            | Phase::Waiting { .. }
            | Phase::Stopping { .. }
            | Phase::Killing { .. }
            | Phase::Parked { .. } => vec![],
        }
    }

    /// Ends it within `patience`; who asks again shortens what is left, and never lengthens it.
    fn stop(&mut self, now: Instant, patience: Duration) -> Vec<Action> {
        let until = now + patience;
        match self.phase {
            Phase::Idle | Phase::Waiting { .. } | Phase::Parked { .. } => {
                self.phase = Phase::Idle;
                vec![Action::Tell(News::Stopped { life: None, how: None })]
            }
            Phase::Starting { life, .. }
            | Phase::Ready { life, .. }
            | Phase::Hung { life, .. }
            | Phase::Draining { life, .. } => {
                self.phase = Phase::Stopping { life, until, then: Then::Rest };
                vec![Action::Terminate { life }, Action::Wake { at: until }]
            }
            Phase::Stopping { life, until: so_far, .. } => {
                let until = until.min(so_far);
                self.phase = Phase::Stopping { life, until, then: Then::Rest };
                if until < so_far { vec![Action::Wake { at: until }] } else { vec![] }
            }
            Phase::Killing { life, since, .. } => {
                self.phase = Phase::Killing { life, since, then: Then::Rest };
                vec![]
            }
        }
    }

    fn renew(&mut self, now: Instant) -> Vec<Action> {
        match self.phase {
            Phase::Ready { life, since } if !self.policy.drain_max.is_zero() => {
                let patience = self.policy.drain_max;
                let until = now + patience + DRAIN_GRACE;
                self.phase = Phase::Draining { life, since, until };
                vec![
                    Action::Tell(News::Draining { life, patience }),
                    Action::Drain { life, patience },
                    Action::Wake { at: until },
                ]
            }
            Phase::Starting { life, .. } | Phase::Ready { life, .. } => self.give_way(life, 0, now),
            Phase::Waiting { .. } | Phase::Parked { .. } => {
                // what it died of may be what was changed
                self.forget_deaths();
                self.start(now)
            }
            // its next life, where there is one, has the new settings anyway
            Phase::Idle
            | Phase::Hung { .. }
            | Phase::Draining { .. }
            | Phase::Stopping { .. }
            | Phase::Killing { .. } => vec![],
        }
    }

    fn drained(&mut self, of: Life, cut: u32, now: Instant) -> Vec<Action> {
        match self.phase {
            Phase::Draining { life, .. } if life == of => self.give_way(life, cut, now),
            // late news
            Phase::Idle
            | Phase::Starting { .. }
            | Phase::Ready { .. }
            | Phase::Hung { .. }
            | Phase::Draining { .. }
            | Phase::Waiting { .. }
            | Phase::Stopping { .. }
            | Phase::Killing { .. }
            | Phase::Parked { .. } => vec![],
        }
    }

    fn silent(&mut self, of: Life, silence: Duration, now: Instant) -> Vec<Action> {
        match self.phase {
            Phase::Ready { life, since } | Phase::Draining { life, since, .. } if life == of => {
                let until = now + TRACE_MAX;
                self.phase = Phase::Hung { life, since, until };
                vec![
                    Action::Tell(News::Hung { life, silence }),
                    Action::Trace { life },
                    Action::Wake { at: until },
                ]
            }
            // late news, or somebody is waiting for its end already
            Phase::Idle
            | Phase::Starting { .. }
            | Phase::Ready { .. }
            | Phase::Hung { .. }
            | Phase::Draining { .. }
            | Phase::Waiting { .. }
            | Phase::Stopping { .. }
            | Phase::Killing { .. }
            | Phase::Parked { .. } => vec![],
        }
    }

    fn give_way(&mut self, life: Life, cut: u32, now: Instant) -> Vec<Action> {
        let until = now + self.policy.stop_max;
        self.phase = Phase::Stopping { life, until, then: Then::Renewal };
        vec![
            Action::Tell(News::Renewing { life, cut }),
            Action::Terminate { life },
            Action::Wake { at: until },
        ]
    }

    fn start(&mut self, now: Instant) -> Vec<Action> {
        self.life += 1;
        self.unready_in_a_row += 1;
        let until = now + self.policy.ready_max;
        self.phase = Phase::Starting { life: self.life, since: now, until };
        vec![Action::Spawn { life: self.life }, Action::Wake { at: until }]
    }

    fn forget_deaths(&mut self) {
        self.deaths.clear();
        (self.in_a_row, self.unready_in_a_row, self.parked_in_a_row) = (0, 0, 0);
    }

    fn died(&mut self, life: Life, how: How, since: Instant, now: Instant) -> Vec<Action> {
        // a start that took long and came to nothing is no run, however long it took
        let is_stable =
            self.unready_in_a_row == 0 && now.saturating_duration_since(since) >= self.policy.stable_after;
        if is_stable {
            (self.in_a_row, self.parked_in_a_row) = (0, 0);
        }
        self.deaths.push_back(now);
        while self
            .deaths
            .front()
            .is_some_and(|d| now.saturating_duration_since(*d) > self.policy.deaths_window)
        {
            self.deaths.pop_front();
        }
        let Some(why) = self.is_given_up(&how) else {
            let pause = self.pause();
            self.in_a_row = self.in_a_row.saturating_add(1);
            let until = now + pause;
            self.phase = Phase::Waiting { until, why: format!("it died by {how}") };
            let died = News::Died { life, how, restart_in: Some(pause) };
            return vec![Action::Tell(died), Action::Wake { at: until }];
        };
        let retry_in = self
            .policy
            .parked_first
            .saturating_mul(2u32.saturating_pow(self.parked_in_a_row))
            .min(self.policy.parked_max);
        self.parked_in_a_row = self.parked_in_a_row.saturating_add(1);
        let until = now + retry_in;
        self.phase = Phase::Parked { until, why: why.clone() };
        vec![
            Action::Tell(News::Died { life, how, restart_in: None }),
            Action::Tell(News::Parked { why, retry_in }),
            Action::Wake { at: until },
        ]
    }

    /// Why it is not to be restarted soon, where that is so.
    fn is_given_up(&self, how: &How) -> Option<String> {
        if how.is_hopeless() {
            return Some(format!("it ended with {how}, which starting it again will not mend"));
        }
        if self.parked_in_a_row > 0 {
            return Some(format!("it was tried again and died, by {how}"));
        }
        if self.deaths.len() > self.policy.deaths_max {
            return Some(format!(
                "it died {} times within {:?}, the last time by {how}",
                self.deaths.len(),
                self.policy.deaths_window
            ));
        }
        (self.unready_in_a_row > self.policy.deaths_max).then(|| {
            format!(
                "it was started {} times and never ready, the last time it ended by {how}",
                self.unready_in_a_row
            )
        })
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
mod tests;
