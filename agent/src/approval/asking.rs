//! Waiting for a word: the questions of this process that nobody has decided yet.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use ipc::{
    config::{Approval, Tools},
    contract::{
        agent::{Agent, Notice},
        approval::{Ask, By, Decision},
    },
    id::RequestId,
    server::Notices,
};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// How soon a question is told again; each time it is twice as long, up to [`AGAIN_MAX`].
const AGAIN_FIRST: Duration = Duration::from_secs(1);
/// The longest between two times a question is told.
const AGAIN_MAX: Duration = Duration::from_secs(16);
/// How long it may take to hear what was remembered, where nobody can be asked.
const REMEMBERED_PATIENCE: Duration = Duration::from_secs(10);

/// When a person is asked, and what waits for an answer.
pub(crate) struct Approvals {
    /// Which calls wait for a word.
    pub(crate) mode: Approval,
    waits_max: Duration,
    open: Mutex<BTreeMap<RequestId, oneshot::Sender<Decision>>>,
}

impl fmt::Debug for Approvals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Approvals({:?})", self.mode)
    }
}

impl Approvals {
    /// As a person has set it.
    pub(crate) fn of(tools: &Tools) -> Self {
        Self { mode: tools.approval, waits_max: tools.approval_max.unsigned_abs(), open: Mutex::default() }
    }

    /// A question was decided; whether anybody still waited for that.
    pub(crate) fn decided(&self, ask: &RequestId, decision: Decision) -> bool {
        let waiting = self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(ask);
        waiting.is_some_and(|waiting| waiting.send(decision).is_ok())
    }

    /// Asks until it is decided, and always comes back with a decision.
    pub(crate) async fn ask(
        &self,
        notices: &Notices<Agent>,
        ask: Ask,
        cancel: &CancellationToken,
    ) -> Decision {
        let (decides, mut decision) = oneshot::channel();
        let id = ask.id.clone();
        self.open.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), decides);
        let _settled = Settled { open: &self.open, notices, id };
        let longest = if ask.waits { self.waits_max } else { REMEMBERED_PATIENCE };
        let late = if ask.waits {
            format!("there was no answer within {}", spoken(longest))
        } else {
            "nobody can be asked here".to_owned()
        };
        let nobody = |reason: String| Decision::Refused { by: By::Nobody, reason };
        let telling = async {
            let mut again = AGAIN_FIRST;
            loop {
                notices.tell(&Notice::Ask(ask.clone()));
                tokio::time::sleep(again).await;
                again = (again * 2).min(AGAIN_MAX);
            }
        };
        tokio::select! {
            biased;
            () = cancel.cancelled() => nobody("the turn was cancelled".to_owned()),
            told = &mut decision => told.unwrap_or_else(|_| nobody("the question was lost".to_owned())),
            () = tokio::time::sleep(longest) => nobody(late),
            never = telling => never,
        }
    }
}

/// Withdraws a question when nobody waits for its answer any more, however that came.
struct Settled<'a> {
    open: &'a Mutex<BTreeMap<RequestId, oneshot::Sender<Decision>>>,
    notices: &'a Notices<Agent>,
    id: RequestId,
}

impl Drop for Settled<'_> {
    fn drop(&mut self) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
        self.notices.tell(&Notice::Settled { ask: self.id.clone() });
    }
}

fn spoken(time: Duration) -> String {
    match time.as_secs() {
        secs if secs >= 120 && secs.is_multiple_of(60) => format!("{} minutes", secs / 60),
        _ => format!("{time:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ipc::contract::approval::Exactly;
    use jiff::SignedDuration;
    use serde_json::json;

    fn ask(waits: bool) -> Ask {
        let call = Exactly { tool: "t".into(), folder: "/".into(), input: "0".into() };
        let id = RequestId::fresh();
        Ask { turn: id.clone(), id, session: "s".into(), waits, call, params: json!({}) }
    }

    fn reason(decision: Decision) -> String {
        match decision {
            Decision::Refused { by: By::Nobody, reason } => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_first_decision_stands_and_silence_and_cancel_are_a_no() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let tools = Tools { approval_max: SignedDuration::from_millis(30), ..Tools::default() };
            let (approvals, notices) = (Approvals::of(&tools), Notices::default());
            let cancel = CancellationToken::new();
            let question = ask(true);
            let id = question.id.clone();
            let answer = async {
                tokio::task::yield_now().await;
                let yes = Decision::Allowed { by: By::Person };
                let no = Decision::Refused { by: By::Person, reason: String::new() };
                (
                    approvals.decided(&id, yes),
                    approvals.decided(&id, no),
                    approvals.decided(&RequestId::fresh(), Decision::Allowed { by: By::Rule }),
                )
            };
            let (decision, waited) = tokio::join!(approvals.ask(&notices, question, &cancel), answer);
            assert_eq!((decision, waited), (Decision::Allowed { by: By::Person }, (true, false, false)));

            let late = approvals.ask(&notices, ask(true), &cancel).await;
            assert_eq!(reason(late), "there was no answer within 30ms");
            cancel.cancel();
            let cancelled = approvals.ask(&notices, ask(true), &cancel).await;
            assert_eq!(reason(cancelled), "the turn was cancelled");
            assert!(approvals.open.lock().unwrap().is_empty());
        });
        assert_eq!(spoken(Duration::from_mins(10)), "10 minutes");
    }
}
