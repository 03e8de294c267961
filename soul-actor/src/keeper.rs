//! The keeper: the actor in front of the thread that owns the repository.
//!
//! ```text
//!  service ─▶ keeper (mailbox) ─▶ channel ─▶ the desk's thread: all that is asked ─▶ one flush ─▶ news to listeners ─▶ answers
//! ```
//!
//! It owns nothing that blocks and waits for nothing; the thread answers whoever asked. It lives as long as its desk: when
//! the thread dies, so does the keeper, and with it the process, which the supervisor starts again.

use std::{
    iter,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

use ipc::{
    contract::soul::{Notice, Reply, Request, Soul},
    id::RequestId,
    server::{Caller, Notices},
};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::oneshot;
use tracing::info;

use crate::desk::Desk;

/// One question, and where its answer goes.
pub(crate) struct Question {
    /// Who asks.
    pub(crate) caller: Caller,
    /// Which question it is, also when it is asked again.
    pub(crate) id: RequestId,
    /// What is asked.
    pub(crate) request: Request,
    /// Where the answer goes.
    pub(crate) answer: oneshot::Sender<Reply>,
}

/// What the keeper is told.
pub(crate) enum KeeperMsg {
    /// A question, for the desk.
    Ask(Box<Question>),
    /// The desk's thread has ended.
    DeskGone,
}

/// Stands in front of the desk.
pub(crate) struct Keeper;

/// What it begins with.
pub(crate) struct Beginning {
    /// The desk, with an open repository.
    pub(crate) desk: Desk,
    /// Who is told of commits.
    pub(crate) notices: Notices<Soul>,
    /// Rung when there is something else to say of how the desk is.
    pub(crate) bell: mpsc::Sender<()>,
    /// Where the desk's thread says what it is at.
    pub(crate) in_hand: InHand,
}

/// Since when the desk's thread has been at what it does; nothing while it waits for a question.
#[derive(Debug, Clone, Default)]
pub(crate) struct InHand(Arc<Mutex<Option<Instant>>>);

impl InHand {
    /// For how long it has been at it.
    pub(crate) fn since(&self) -> Option<Duration> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).map(|began| began.elapsed())
    }

    fn is(&self, began: Option<Instant>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = began;
    }
}

/// The way to the desk.
pub(crate) struct KeeperState {
    questions: Option<mpsc::Sender<Box<Question>>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Actor for Keeper {
    type Msg = KeeperMsg;
    type State = KeeperState;
    type Arguments = Beginning;

    async fn pre_start(
        &self,
        myself: ActorRef<KeeperMsg>,
        Beginning { desk, notices, bell, in_hand }: Beginning,
    ) -> Result<KeeperState, ActorProcessingErr> {
        // bounded by the server: so many connections, each with so many requests in flight
        let (questions, asked) = mpsc::channel();
        let thread = thread::Builder::new().name("desk".to_owned()).spawn(move || {
            let _gone = TellWhenGone(myself);
            work(desk, &asked, &notices, &bell, &in_hand);
        })?;
        Ok(KeeperState { questions: Some(questions), thread: Some(thread) })
    }

    async fn handle(
        &self,
        _: ActorRef<KeeperMsg>,
        message: KeeperMsg,
        state: &mut KeeperState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            KeeperMsg::Ask(question) => ask(question, state),
            KeeperMsg::DeskGone => Err("the thread that owns the repository has died".into()),
        }
    }

    /// Waits for the write in hand, and those already taken, before the process may end.
    async fn post_stop(
        &self,
        _: ActorRef<KeeperMsg>,
        state: &mut KeeperState,
    ) -> Result<(), ActorProcessingErr> {
        state.questions = None;
        if let Some(thread) = state.thread.take() {
            let ended = tokio::task::spawn_blocking(move || thread.join()).await?;
            info!(in_order = ended.is_ok(), "the desk is closed");
        }
        Ok(())
    }
}

fn ask(question: Box<Question>, state: &KeeperState) -> Result<(), ActorProcessingErr> {
    let questions = state.questions.as_ref().ok_or("the keeper is stopping")?;
    questions.send(question).map_err(|_| "the thread that owns the repository has died")?;
    Ok(())
}

/// How many questions are answered together at most: enough that one flush is shared, few enough that none waits long.
const BATCH_MAX: usize = 256;
/// How often what is on its way to git is looked after while nobody asks.
const TENDING: Duration = Duration::from_millis(200);

/// The desk's thread: all questions that are there, one after the other, then one flush, then their answers; until nobody
/// can ask any more. Nobody is waited for: under load batches form by themselves.
fn work(
    mut desk: Desk,
    asked: &mpsc::Receiver<Box<Question>>,
    notices: &Notices<Soul>,
    bell: &mpsc::Sender<()>,
    in_hand: &InHand,
) {
    let (mut answers, mut trouble) = (Vec::new(), desk.trouble());
    loop {
        in_hand.is(None);
        let now = desk.trouble();
        if now != trouble {
            // where nobody watches nobody is told
            let _ = bell.send(());
            trouble = now;
        }
        let first = if desk.is_unsettled() {
            match asked.recv_timeout(TENDING) {
                Err(RecvTimeoutError::Timeout) => {
                    in_hand.is(Some(Instant::now()));
                    desk.tend();
                    continue;
                }
                first => first.ok(),
            }
        } else {
            asked.recv().ok()
        };
        let Some(first) = first else { return };
        for question in iter::once(first).chain(asked.try_iter().take(BATCH_MAX - 1)) {
            let Question { caller, id, request, answer } = *question;
            in_hand.is(Some(Instant::now()));
            let reply = desk.answer(&caller, &id, request);
            answers.push((answer, reply, desk.ticket()));
        }
        in_hand.is(Some(Instant::now()));
        desk.flush();
        for changed in desk.take_news() {
            notices.tell(&Notice::Changed(changed));
        }
        for (answer, reply, ticket) in answers.drain(..) {
            // nobody waits any more: they ask again by the same id
            let _ = answer.send(desk.settled(reply, ticket));
        }
        desk.end_batch();
    }
}

/// Says so when the thread ends, also when it ends in a panic.
struct TellWhenGone(ActorRef<KeeperMsg>);

impl Drop for TellWhenGone {
    fn drop(&mut self) {
        // a keeper that has stopped knows
        let _ = self.0.cast(KeeperMsg::DeskGone);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_hand_is_told_with_how_long() {
        let in_hand = InHand::default();
        assert_eq!(in_hand.since(), None);
        let began = Instant::now();
        in_hand.is(Some(began));
        assert!(in_hand.clone().since().is_some_and(|since| since <= began.elapsed()));
        in_hand.is(None);
        assert_eq!(in_hand.since(), None);
    }
}
