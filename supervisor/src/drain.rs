//! The agent brought to rest at the boundary of a turn, so that it can give way without cutting anybody off.
//!
//! New turns wait from the moment it is asked; those under way go on to their end, or to the end of the patience. What is
//! cut off then is not lost: it is asked again of the next life, which takes the turn up where the session's file ends,
//! and says so. An agent that cannot be asked (it hangs, or its build does not know the question) is as if cut off.

use std::time::Duration;

use ipc::{
    client::{AskError, Client, Patience},
    contract::agent::{Agent, Reply, Request},
    id::RequestId,
};
use jiff::SignedDuration;

/// How long after the patience the answer may take to arrive.
const GRACE: Duration = Duration::from_secs(1);

/// How it came to rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Drained {
    /// No turn is under way, and none begins.
    Quiet,
    /// The patience is at its end, and so many turns are still under way; none begins.
    Cut { turns: u32 },
    /// It could not be asked, for this reason.
    Unasked(String),
}

impl Drained {
    /// How many turns are known to be cut off when it ends now.
    pub(crate) fn turns_cut(&self) -> u32 {
        match self {
            Self::Quiet | Self::Unasked(_) => 0,
            Self::Cut { turns } => *turns,
        }
    }
}

/// Asks the agent to come to rest. It stays at rest, also when turns were still under way, until it has ended, it
/// is asked to `Resume`, or half a minute has passed.
pub(crate) async fn drain(agent: &Client<Agent>, patience: Duration) -> Drained {
    let request =
        Request::Drain { patience: SignedDuration::try_from(patience).unwrap_or(SignedDuration::MAX) };
    // one life alone: another one need not give way
    let within = Patience { deadline: patience.saturating_add(GRACE), attempts_max: 1 };
    judge(agent.ask_as(RequestId::fresh(), &request, within).await)
}

fn judge(answer: Result<Reply, AskError>) -> Drained {
    match answer {
        Ok(Reply::Drained { under_way: 0 }) => Drained::Quiet,
        Ok(Reply::Drained { under_way }) => Drained::Cut { turns: under_way },
        Ok(Reply::Refused { reason }) => Drained::Unasked(reason),
        Ok(other) => Drained::Unasked(format!("it answered another question: {other:?}")),
        Err(error) => Drained::Unasked(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_asked_is_no_rest() {
        let check = |answer: Result<Reply, AskError>, turns: u32, rests: bool| {
            let drained = judge(answer);
            assert_eq!((drained.turns_cut(), drained == Drained::Quiet), (turns, rests), "{drained:?}");
        };
        check(Ok(Reply::Drained { under_way: 0 }), 0, true);
        check(Ok(Reply::Drained { under_way: 3 }), 3, false);
        check(Ok(Reply::Refused { reason: "no".into() }), 0, false);
        check(Err(AskError::Lost { peer: "agent" }), 0, false);
        let Drained::Unasked(why) = judge(Err(AskError::Late { peer: "agent", deadline: GRACE })) else {
            panic!("silence is no rest")
        };
        assert!(why.contains("1s"), "{why}");
    }
}
