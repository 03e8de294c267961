//! The keeper: the actor in front of the thread that owns the repository.
//!
//! ```text
//!  service ─▶ keeper (mailbox) ─▶ channel ─▶ the desk's thread ─▶ commit ─▶ news to listeners ─▶ answer
//! ```
//!
//! It owns nothing that blocks and waits for nothing; the thread answers whoever asked. It lives as long as its desk: when
//! the thread dies, so does the keeper, and with it the process, which the supervisor starts again.

use std::{sync::mpsc, thread};

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
        Beginning { desk, notices }: Beginning,
    ) -> Result<KeeperState, ActorProcessingErr> {
        // bounded by the server: so many connections, each with so many requests in flight
        let (questions, asked) = mpsc::channel();
        let thread = thread::Builder::new().name("desk".to_owned()).spawn(move || {
            let _gone = TellWhenGone(myself);
            work(desk, &asked, &notices);
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

/// The desk's thread: one question after the other, until nobody can ask any more.
fn work(mut desk: Desk, asked: &mpsc::Receiver<Box<Question>>, notices: &Notices<Soul>) {
    while let Ok(question) = asked.recv() {
        let Question { caller, id, request, answer } = *question;
        let reply = desk.answer(&caller, &id, request);
        for changed in desk.take_news() {
            notices.tell(&Notice::Changed(changed));
        }
        // nobody waits any more: they ask again by the same id
        let _ = answer.send(reply);
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
