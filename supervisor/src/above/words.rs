//! What a process manager is told, and when: plain functions of how everything looks.
//!
//! ```text
//!   Starting ──all settled──▶ Ready ──SIGHUP──▶ Reloading ──taken, and all settled──▶ Ready
//!       └───────────────────────┴─────────────────────┴──asked to stop──▶ Stopping
//! ```
//!
//! All is settled when each child is ready, or parked for a reason that a start will not mend: the rest serves then, the
//! status says what does not, and a manager that went on waiting would in the end kill what serves.

use std::time::Duration;

use ipc::text::one_line;

use crate::board::{Board, CHILDREN};

/// The longest status, in characters; a manager shows it in one line.
const STATUS_CHARS_MAX: usize = 300;
/// A start that takes longer than this asks for no more time.
const START_MAX: Duration = Duration::from_mins(3);
/// How long after the last sign of a slow start the manager may give up on it.
const START_SIGN_LASTS: Duration = Duration::from_secs(15);

/// One line of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Word {
    Ready,
    /// With the monotonic clock in microseconds, in the same datagram or the manager waits for ever (B13).
    Reloading {
        at: u64,
    },
    Stopping,
    Status(String),
    MainPid(u32),
    Watchdog,
    Barrier,
    /// The start goes on; give up on it so long after this.
    Extend(Duration),
}

/// A message as it is sent.
pub(crate) fn datagram(words: &[Word]) -> String {
    let lines = words.iter().map(|word| match word {
        Word::Ready => "READY=1".to_owned(),
        Word::Reloading { at } => format!("RELOADING=1\nMONOTONIC_USEC={at}"),
        Word::Stopping => "STOPPING=1".to_owned(),
        // a line end in it would begin another word
        Word::Status(status) => format!("STATUS={}", one_line(status, STATUS_CHARS_MAX)),
        Word::MainPid(pid) => format!("MAINPID={pid}"),
        Word::Watchdog => "WATCHDOG=1".to_owned(),
        Word::Barrier => "BARRIER=1".to_owned(),
        Word::Extend(time) => format!("EXTEND_TIMEOUT_USEC={}", time.as_micros()),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// How everything looks from above.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outlook {
    pub(crate) settled: bool,
    pub(crate) stopping: bool,
    pub(crate) status: String,
}

impl Outlook {
    /// Looks at the board.
    pub(crate) fn of(board: &Board) -> Self {
        let children = || CHILDREN.iter().filter_map(|role| Some((role, board.children.get(role)?)));
        let off = children().filter(|(_, view)| view.state != "ready").map(|(role, view)| {
            let why = view.why.as_deref().map(|why| format!(" ({why})")).unwrap_or_default();
            // one that was never started is about to be
            let state = if view.state == "stopped" { "starting" } else { view.state };
            format!("{role} is {state}{why}")
        });
        let off = off.collect::<Vec<_>>().join(", ");
        let settled = children().all(|(_, view)| matches!(view.state, "ready" | "parked"));
        let up = || children().filter(|(_, view)| view.pid.is_some()).map(|(role, _)| role.to_string());
        let mut status = match (board.stopping, off.is_empty()) {
            (true, _) => match up().collect::<Vec<_>>().join(", ") {
                none if none.is_empty() => "stopped".to_owned(),
                some => format!("stopping; still up: {some}"),
            },
            (false, true) => "ready".to_owned(),
            (false, false) => off,
        };
        if board.refused.is_some() && !board.stopping {
            status.push_str("; the new configuration cannot be used, the one before still holds");
        }
        Self { settled, stopping: board.stopping, status }
    }
}

/// What happens that a manager may have to be told of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sight {
    /// Everything looks so.
    Looks(Outlook),
    /// The configuration is about to be read anew, at that time of the monotonic clock.
    Reloading { at: u64 },
    /// It was read and handed on.
    Reloaded,
    /// What was handed on takes too long; the manager is not to wait for it any more.
    Overdue,
    /// The start has taken so long.
    Starting { since: Duration },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Starting,
    Ready,
    Reloading { taken: bool },
    Stopping,
}

/// What the manager knows.
#[derive(Debug)]
pub(crate) struct Told {
    pid: u32,
    stage: Stage,
    status: String,
    latest: Option<Outlook>,
}

impl Told {
    /// It knows nothing yet about the process `pid`.
    pub(crate) fn nothing(pid: u32) -> Self {
        Self { pid, stage: Stage::Starting, status: String::new(), latest: None }
    }

    /// Whether it was ever told that we are ready.
    pub(crate) fn is_up(&self) -> bool {
        matches!(self.stage, Stage::Ready | Stage::Reloading { .. })
    }

    /// What to tell it now, in one datagram.
    pub(crate) fn on(&mut self, sight: Sight) -> Vec<Word> {
        match sight {
            Sight::Looks(outlook) => {
                self.latest = Some(outlook.clone());
                self.looks(outlook)
            }
            Sight::Reloading { at } => match self.stage {
                Stage::Ready | Stage::Reloading { .. } => {
                    self.stage = Stage::Reloading { taken: false };
                    vec![Word::Reloading { at }, self.states("reading the configuration anew")]
                }
                // it waits for the start, or for the end; neither is a reload
                Stage::Starting | Stage::Stopping => vec![],
            },
            Sight::Reloaded => match (self.stage, self.latest.clone()) {
                (Stage::Reloading { .. }, Some(outlook)) => {
                    self.stage = Stage::Reloading { taken: true };
                    self.looks(outlook)
                }
                (Stage::Starting | Stage::Ready | Stage::Stopping | Stage::Reloading { .. }, _) => vec![],
            },
            Sight::Overdue => match self.stage {
                Stage::Reloading { taken: true } => {
                    self.stage = Stage::Ready;
                    let status = self.latest.as_ref().map(|latest| latest.status.clone()).unwrap_or_default();
                    vec![Word::Ready, self.states(&status)]
                }
                Stage::Starting | Stage::Ready | Stage::Reloading { .. } | Stage::Stopping => vec![],
            },
            Sight::Starting { since } => match self.stage {
                Stage::Starting if since < START_MAX => vec![Word::Extend(START_SIGN_LASTS)],
                Stage::Starting | Stage::Ready | Stage::Reloading { .. } | Stage::Stopping => vec![],
            },
        }
    }

    fn looks(&mut self, outlook: Outlook) -> Vec<Word> {
        let Outlook { settled, stopping, status } = outlook;
        match self.stage {
            Stage::Starting | Stage::Ready | Stage::Reloading { .. } if stopping => {
                self.stage = Stage::Stopping;
                vec![Word::Stopping, self.states(&status)]
            }
            Stage::Starting if settled => {
                self.stage = Stage::Ready;
                vec![Word::Ready, self.states(&status), Word::MainPid(self.pid)]
            }
            Stage::Reloading { taken: true } if settled => {
                self.stage = Stage::Ready;
                vec![Word::Ready, self.states(&status)]
            }
            Stage::Starting | Stage::Ready | Stage::Stopping | Stage::Reloading { .. } => {
                if self.status == status { vec![] } else { vec![self.states(&status)] }
            }
        }
    }

    fn states(&mut self, status: &str) -> Word {
        status.clone_into(&mut self.status);
        Word::Status(self.status.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ipc::{
        hello::Role,
        home::{Home, Run},
    };

    fn looks(settled: bool, stopping: bool, status: &str) -> Sight {
        Sight::Looks(Outlook { settled, stopping, status: status.to_owned() })
    }

    /// What is told of each sight, as it is sent.
    fn check(steps: &[(Sight, &str)]) {
        let mut told = Told::nothing(7);
        for (sight, expected) in steps {
            assert_eq!(datagram(&told.on(sight.clone())), *expected, "{sight:?}");
        }
    }

    #[test]
    fn ready_is_said_once_with_status_and_pid_and_then_what_changes() {
        check(&[
            (looks(false, false, "soul is starting"), "STATUS=soul is starting"),
            (looks(false, false, "soul is starting"), ""),
            (Sight::Starting { since: Duration::from_secs(9) }, "EXTEND_TIMEOUT_USEC=15000000"),
            (Sight::Starting { since: START_MAX }, ""),
            (looks(true, false, "ready"), "READY=1\nSTATUS=ready\nMAINPID=7"),
            (Sight::Starting { since: Duration::from_secs(9) }, ""),
            (looks(false, false, "agent is waiting"), "STATUS=agent is waiting"),
            (looks(true, false, "ready"), "STATUS=ready"),
            (looks(true, false, "ready"), ""),
            (looks(true, true, "stopping"), "STOPPING=1\nSTATUS=stopping"),
            (looks(false, true, "stopped"), "STATUS=stopped"),
            (Sight::Reloading { at: 5 }, ""),
        ]);
    }

    #[test]
    fn b13_a_reload_is_one_datagram_with_its_time_and_ends_when_all_is_settled() {
        let reading = "RELOADING=1\nMONOTONIC_USEC=5\nSTATUS=reading the configuration anew";
        check(&[
            (Sight::Reloading { at: 4 }, ""),
            (looks(true, false, "ready"), "READY=1\nSTATUS=ready\nMAINPID=7"),
            (Sight::Reloaded, ""),
            (Sight::Reloading { at: 5 }, reading),
            (looks(false, false, "agent is starting"), "STATUS=agent is starting"),
            (Sight::Reloaded, ""),
            (looks(true, false, "ready"), "READY=1\nSTATUS=ready"),
            // nothing had changed
            (Sight::Reloading { at: 5 }, reading),
            (Sight::Reloaded, "READY=1\nSTATUS=ready"),
            // what it came to takes too long
            (Sight::Reloading { at: 5 }, reading),
            (looks(false, false, "agent is starting"), "STATUS=agent is starting"),
            (Sight::Overdue, ""),
            (Sight::Reloaded, ""),
            (Sight::Overdue, "READY=1\nSTATUS=agent is starting"),
            (Sight::Overdue, ""),
        ]);
    }

    #[test]
    fn a_stop_during_the_start_or_a_reload_is_a_stop() {
        check(&[(looks(false, true, "stopping"), "STOPPING=1\nSTATUS=stopping")]);
        check(&[
            (looks(true, false, "ready"), "READY=1\nSTATUS=ready\nMAINPID=7"),
            (
                Sight::Reloading { at: 1 },
                "RELOADING=1\nMONOTONIC_USEC=1\nSTATUS=reading the configuration anew",
            ),
            (looks(true, true, "stopping"), "STOPPING=1\nSTATUS=stopping"),
            (Sight::Reloaded, ""),
        ]);
    }

    #[test]
    fn a_status_is_one_line_whatever_is_in_it() {
        let said = datagram(&[Word::Status("it said\nREADY=1\r灯塔".repeat(100))]);
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(!said.contains('\r') && said.contains("灯塔") && said.chars().count() < 320);
    }

    #[test]
    fn what_is_parked_is_settled_and_said() {
        let mut board = Board::new(&Home::at("/h"), &Run::at("/h/run"), 1);
        assert_eq!(
            Outlook::of(&board),
            Outlook {
                settled: false,
                stopping: false,
                status: "soul is starting, agent is starting, heartbeat is starting".into()
            }
        );
        for view in board.children.values_mut() {
            (view.state, view.pid) = ("ready", Some(1));
        }
        let outlook = |board: &Board| Outlook::of(board);
        assert_eq!(outlook(&board), Outlook { settled: true, stopping: false, status: "ready".into() });
        let agent = board.children.get_mut(&Role::Agent).unwrap();
        (agent.state, agent.pid, agent.why) = ("parked", None, Some("no `name`".into()));
        assert!(outlook(&board).settled);
        assert_eq!(outlook(&board).status, "agent is parked (no `name`)");
        board.refused = Some("line 3".into());
        assert!(outlook(&board).status.contains("the one before still holds"));
        board.stopping = true;
        assert_eq!(outlook(&board).status, "stopping; still up: soul, heartbeat");
    }
}
