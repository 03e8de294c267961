//! The task that tells the process manager how we are: when it changes, and as a sign of life.
//!
//! The sign of life is given for those who do the work: house and hub must both answer first, on the one thread that
//! runs everything here. If one of them hangs, or the thread does, it is not given, and the manager acts.

use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
    time::{MissedTickBehavior, interval, timeout},
};
use tracing::warn;

use super::{
    Port, ReadyPipe,
    words::{Outlook, Sight, Told, Word},
};
use crate::board::Board;

/// How often a slow start is told to go on.
const START_SIGN_EVERY: Duration = Duration::from_secs(2);
/// How long a reload may take until the manager is not made to wait for it any more.
const RELOAD_MAX: Duration = Duration::from_secs(40);
/// How long the manager may take to work through our last words.
const BARRIER_PATIENCE: Duration = Duration::from_millis(500);

/// What a manager wants of us.
pub(crate) struct Wants {
    pub(crate) port: Option<Port>,
    pub(crate) ready: Option<ReadyPipe>,
    /// Within what time it wants a sign of life again.
    pub(crate) watchdog: Option<Duration>,
}

/// Whoever tells the herald what cannot be seen on the board.
pub(crate) struct Herald {
    sights: mpsc::Sender<Sight>,
    task: JoinHandle<()>,
}

impl Herald {
    /// Begins to tell; `alive` answers when those who do the work have.
    pub(crate) fn begin<A, F>(wants: Wants, seen: watch::Receiver<Board>, alive: A) -> Self
    where
        A: Fn() -> F + Send + 'static,
        F: Future<Output = bool> + Send + 'static,
    {
        let (sights, told) = mpsc::channel(16);
        let Wants { port, ready, watchdog } = wants;
        let teller = Teller { port, ready, told: Told::nothing(std::process::id()), began: Instant::now() };
        Self { sights, task: tokio::spawn(teller.tell(seen, told, watchdog, alive)) }
    }

    /// The configuration is about to be read anew.
    pub(crate) async fn reloading(&self) {
        // a herald that is gone has failed, which is no reason not to reload
        let _ = self.sights.send(Sight::Reloading { at: monotonic_micros() }).await;
    }

    /// It was read and handed on.
    pub(crate) async fn reloaded(&self) {
        let _ = self.sights.send(Sight::Reloaded).await;
    }

    /// Ends when the manager has heard everything, or does not listen.
    pub(crate) async fn end(self) {
        drop(self.sights);
        if let Err(error) = self.task.await {
            warn!(%error, "the process manager may not have heard everything");
        }
    }
}

struct Teller {
    port: Option<Port>,
    ready: Option<ReadyPipe>,
    told: Told,
    began: Instant,
}

impl Teller {
    async fn tell<A, F>(
        mut self,
        mut seen: watch::Receiver<Board>,
        mut sights: mpsc::Receiver<Sight>,
        watchdog: Option<Duration>,
        alive: A,
    ) where
        A: Fn() -> F,
        F: Future<Output = bool>,
    {
        // half of the time that is wanted, as is the custom; without a wish a clock that never matters
        let every =
            watchdog.map_or(Duration::from_hours(1), |within| within / 2).max(Duration::from_millis(1));
        let mut signs = interval(every);
        signs.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut clock = interval(START_SIGN_EVERY);
        let mut reloaded = None::<Instant>;
        loop {
            self.look(&mut seen);
            tokio::select! {
                // the board is gone with the house; what is to be said still comes on the other way
                Ok(()) = seen.changed() => {}
                sight = sights.recv() => match sight {
                    Some(sight) => {
                        reloaded = (sight == Sight::Reloaded).then(Instant::now);
                        self.look(&mut seen);
                        self.say(sight);
                    }
                    None => break,
                },
                _ = clock.tick() => {
                    let sight = if reloaded.is_some_and(|at| at.elapsed() > RELOAD_MAX) {
                        Sight::Overdue
                    } else {
                        Sight::Starting { since: self.began.elapsed() }
                    };
                    self.say(sight);
                }
                _ = signs.tick(), if watchdog.is_some() => {
                    // one that hangs for so long is dead to the manager anyway
                    if timeout(every, alive()).await == Ok(true) && let Some(port) = &mut self.port {
                        port.say(&[Word::Watchdog]);
                    }
                }
            }
        }
        self.look(&mut seen);
        if let Some(port) = &mut self.port {
            port.barrier(BARRIER_PATIENCE).await;
        }
    }

    fn look(&mut self, seen: &mut watch::Receiver<Board>) {
        let outlook = Outlook::of(&seen.borrow_and_update());
        self.say(Sight::Looks(outlook));
    }

    fn say(&mut self, sight: Sight) {
        let words = self.told.on(sight);
        if let Some(port) = &mut self.port {
            port.say(&words);
        }
        if self.told.is_up()
            && let Some(ready) = self.ready.take()
        {
            ready.say();
        }
    }
}

/// The clock that `MONOTONIC_USEC` means, in microseconds.
fn monotonic_micros() -> u64 {
    let Ok(time) = clock_gettime(ClockId::CLOCK_MONOTONIC) else { return 0 };
    u64::try_from(Duration::from(time).as_micros()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::above::invitation::Address;
    use ipc::home::{Home, Run};
    use std::{
        os::unix::net::UnixDatagram,
        sync::{
            Arc,
            atomic::{AtomicBool, Ordering},
        },
    };

    fn heard(manager: &UnixDatagram) -> Option<String> {
        let mut room = [0; 1024];
        let read = manager.recv(&mut room).ok()?;
        Some(String::from_utf8(room[..read].to_vec()).unwrap())
    }

    /// Everything said until it is silent for `silence`.
    async fn said(manager: &UnixDatagram, silence: Duration) -> Vec<String> {
        let mut all = Vec::new();
        let mut since = Instant::now();
        while since.elapsed() < silence {
            match heard(manager) {
                Some(one) => {
                    all.push(one);
                    if all.len() > 5 {
                        break;
                    }
                    since = Instant::now();
                }
                None => tokio::time::sleep(Duration::from_millis(2)).await,
            }
        }
        all
    }

    #[test]
    fn a_sign_of_life_is_given_for_those_who_work_and_for_nobody_else() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("notify");
            let manager = UnixDatagram::bind(&path).unwrap();
            manager.set_nonblocking(true).unwrap();
            let works = Arc::new(AtomicBool::new(true));
            let alive = {
                let works = works.clone();
                move || {
                    let works = works.clone();
                    async move {
                        if !works.load(Ordering::Relaxed) {
                            std::future::pending::<()>().await;
                        }
                        true
                    }
                }
            };
            let (board, seen) = watch::channel(Board::new(&Home::at("/h"), &Run::at("/h/run"), 1));
            let wants = Wants {
                port: Port::to(&Address::Path(path)),
                ready: None,
                watchdog: Some(Duration::from_millis(20)),
            };
            let herald = Herald::begin(wants, seen, alive);
            let signs = said(&manager, Duration::from_secs(5)).await;
            assert!(signs.iter().filter(|word| *word == "WATCHDOG=1").count() > 2, "{signs:?}");
            works.store(false, Ordering::Relaxed);
            // one may have been on its way
            said(&manager, Duration::from_millis(100)).await;
            let silent = said(&manager, Duration::from_millis(300)).await;
            assert!(!silent.iter().any(|word| word == "WATCHDOG=1"), "{silent:?}");
            board.send_modify(|board| board.stopping = true);
            let last = said(&manager, Duration::from_millis(200)).await;
            assert!(last.iter().any(|word| word.starts_with("STOPPING=1")), "it still tells: {last:?}");
            drop(board);
            herald.end().await;
        });
    }
}
