//! Asking: one connection that dials again by itself, and questions that survive it.
//!
//! ```text
//!            ┌────────── dial, hello ◀──────────┐
//!  ask ─▶ pending ─▶ written ─▶ answered        │ lost: back off, dial again,
//!            └─────────── written again ◀───────┘ ask what is pending again, with the same ids
//! ```
//!
//! A question has a deadline and a number of connections it may be asked on; past either it fails with a sentence. All
//! our contracts answer a repeated id with the first outcome, so asking again is safe.

use std::{
    collections::{BTreeMap, VecDeque},
    path::{Path, PathBuf},
    time::Duration,
};

use futures_util::{SinkExt as _, StreamExt as _};
use interprocess::local_socket::tokio::Stream;
use tokio::{
    io::{ReadHalf, WriteHalf},
    sync::{mpsc, oneshot},
    time::{Instant, sleep, timeout, timeout_at},
};
use tokio_util::codec::{FramedRead, FramedWrite};
use tracing::debug;

use crate::{
    contract::{Contract, from_frame, to_frame},
    endpoint,
    hello::{self, Hello, Role, Secret, Welcome},
    id::RequestId,
    server::{PING, Pong},
    wire::{FrameCodec, Id, Incoming, Message, Response, RpcError},
};

/// How many questions may be unanswered at once; the next ask fails at once rather than queue without bound.
pub const PENDING_MAX: usize = 256;
/// How long one attempt to connect and to be welcomed may take.
const DIAL_PATIENCE: Duration = Duration::from_secs(5);
/// The first and the longest pause between attempts to connect.
const PAUSES: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(250));
/// How many pieces of news wait for whoever owns the client.
const NEWS_MAX: usize = 1024;

/// Who we are to the process we ask.
#[derive(Debug, Clone)]
pub struct Credentials {
    /// Our role.
    pub role: Role,
    /// What proves it.
    pub secret: Secret,
    /// Our build.
    pub build: String,
    /// Our life.
    pub life: u64,
    /// Whether we want the contract's notices.
    pub notices: bool,
}

/// How long a question may wait.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// For how long, over all connections.
    pub deadline: Duration,
    /// On how many connections it may be asked.
    pub attempts_max: u32,
}

impl Patience {
    /// The usual: as often as the deadline allows.
    pub const fn of(deadline: Duration) -> Self {
        Self { deadline, attempts_max: u32::MAX }
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// It took too long.
    #[error("the {peer} did not answer within {deadline:?}")]
    Late {
        /// Who was asked.
        peer: &'static str,
        /// The deadline.
        deadline: Duration,
    },
    /// The peer went away each time it was asked.
    #[error("the {peer} went away before it answered")]
    Lost {
        /// Who was asked.
        peer: &'static str,
    },
    /// Too many questions are waiting.
    #[error("the {peer} has {PENDING_MAX} questions waiting; ask again later")]
    Overloaded {
        /// Who would have been asked.
        peer: &'static str,
    },
    /// The peer answered with an error, or with something that is not of the contract.
    #[error("the {peer} answered: {error}")]
    Failed {
        /// Who was asked.
        peer: &'static str,
        /// What it said.
        error: RpcError,
    },
}

/// What happens on the connection.
#[derive(Debug)]
pub enum News<C: Contract> {
    /// The peer is there, and who it is. Notices may have been missed before: fetch what you need to know.
    Up(Welcome),
    /// The peer is gone.
    Down,
    /// The peer told something.
    Notice(C::Notice),
}

struct Order {
    id: RequestId,
    method: String,
    params: serde_json::Value,
    attempts_left: u32,
    answer: oneshot::Sender<Result<serde_json::Value, Ended>>,
}

enum Ended {
    Lost,
    Overloaded,
    Failed(RpcError),
}

/// Asks one process. Clones ask over the same connection; it closes when the last one is gone.
pub struct Client<C> {
    orders: mpsc::Sender<Order>,
    contract: std::marker::PhantomData<fn() -> C>,
}

impl<C> Clone for Client<C> {
    fn clone(&self) -> Self {
        Self { orders: self.orders.clone(), contract: std::marker::PhantomData }
    }
}

impl<C> std::fmt::Debug for Client<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Client")
    }
}

impl<C: Contract> Client<C> {
    /// Starts dialling `socket`, now and whenever the connection is lost. Needs a running tokio runtime.
    ///
    /// The receiver hears [`News`]; an owner that does not care drops it, one that falls behind by 1024 loses the
    /// connection and hears `Down` and `Up` again, as a sign that something was missed.
    pub fn dial(socket: &Path, credentials: Credentials) -> (Self, mpsc::Receiver<News<C>>) {
        let (orders, ordered) = mpsc::channel(PENDING_MAX);
        let (news, heard) = mpsc::channel(NEWS_MAX);
        let link = Link::<C> {
            socket: socket.to_owned(),
            credentials,
            orders: ordered,
            news,
            pending: BTreeMap::new(),
            unwritten: VecDeque::new(),
        };
        tokio::spawn(link.run());
        (Self { orders, contract: std::marker::PhantomData }, heard)
    }

    /// Asks with a fresh id, as often as the deadline allows.
    pub async fn ask(&self, request: &C::Request, deadline: Duration) -> Result<C::Reply, AskError> {
        self.ask_as(RequestId::fresh(), request, Patience::of(deadline)).await
    }

    /// Asks under an id of the caller's, so that the same work can be asked for again, also by a later life.
    pub async fn ask_as(
        &self,
        id: RequestId,
        request: &C::Request,
        patience: Patience,
    ) -> Result<C::Reply, AskError> {
        let (method, params) = to_frame(request);
        self.ask_raw(id, method, params, patience).await
    }

    /// Asks for a sign of life, on one connection; who asks for these has a client of its own for them, since a
    /// connection that is busy with other questions is no sign of death.
    pub async fn ping(&self, deadline: Duration) -> Result<Pong, AskError> {
        let patience = Patience { deadline, attempts_max: 1 };
        self.ask_raw(RequestId::fresh(), PING.to_owned(), serde_json::Value::Null, patience).await
    }

    async fn ask_raw<T: serde::de::DeserializeOwned>(
        &self,
        id: RequestId,
        method: String,
        params: serde_json::Value,
        patience: Patience,
    ) -> Result<T, AskError> {
        let peer = C::NAME;
        let late = || AskError::Late { peer, deadline: patience.deadline };
        let (answer, answered) = oneshot::channel();
        let order = Order { id, method, params, attempts_left: patience.attempts_max, answer };
        let deadline = Instant::now() + patience.deadline;
        match timeout_at(deadline, self.orders.send(order)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return Err(AskError::Lost { peer }),
            Err(_) => return Err(late()),
        }
        match timeout_at(deadline, answered).await {
            Err(_) => Err(late()),
            Ok(Err(_) | Ok(Err(Ended::Lost))) => Err(AskError::Lost { peer }),
            Ok(Ok(Err(Ended::Overloaded))) => Err(AskError::Overloaded { peer }),
            Ok(Ok(Err(Ended::Failed(error)))) => Err(AskError::Failed { peer, error }),
            Ok(Ok(Ok(value))) => serde_json::from_value(value).map_err(|error| AskError::Failed {
                peer,
                error: RpcError::new(
                    crate::wire::code::INTERNAL,
                    format!("it is not of the contract: {error}"),
                ),
            }),
        }
    }
}

/// The task behind a client: owns the connection and what is unanswered.
struct Link<C: Contract> {
    socket: PathBuf,
    credentials: Credentials,
    orders: mpsc::Receiver<Order>,
    news: mpsc::Sender<News<C>>,
    pending: BTreeMap<RequestId, Order>,
    unwritten: VecDeque<RequestId>,
}

/// Why a connection is over.
enum Over {
    /// It was lost.
    Lost,
    /// Nobody will ask any more.
    Unneeded,
}

type Reading = FramedRead<ReadHalf<Stream>, FrameCodec>;
type Writing = FramedWrite<WriteHalf<Stream>, FrameCodec>;

impl<C: Contract> Link<C> {
    async fn run(mut self) {
        let mut pause = PAUSES.0;
        loop {
            match self.connect().await {
                Ok((reading, writing, welcome)) => {
                    pause = PAUSES.0;
                    self.tell(News::Up(welcome));
                    let over = self.converse(reading, writing).await;
                    self.tell(News::Down);
                    if matches!(over, Over::Unneeded) {
                        return;
                    }
                    self.give_up_on_the_tired();
                }
                Err(why) => {
                    debug!(peer = C::NAME, why, "could not connect; trying again");
                    if !self.wait(pause).await {
                        return;
                    }
                    pause = (pause * 2).min(PAUSES.1);
                }
            }
        }
    }

    async fn connect(&self) -> Result<(Reading, Writing, Welcome), String> {
        let deadline = Instant::now() + DIAL_PATIENCE;
        let stream =
            endpoint::connect(&self.socket, deadline).await.map_err(|error| crate::exit::chain(&error))?;
        let (read, write) = tokio::io::split(stream);
        let mut reading = FramedRead::new(read, FrameCodec::default());
        let mut writing = FramedWrite::new(write, FrameCodec::default());
        let hello = Hello {
            contract: C::NAME.to_owned(),
            version: C::VERSION,
            role: self.credentials.role,
            build: self.credentials.build.clone(),
            life: self.credentials.life,
            secret: self.credentials.secret.clone(),
            notices: self.credentials.notices,
        };
        let hello = serde_json::to_value(hello).expect("a hello is JSON");
        let greeting = async {
            writing.send(&Message::request(Id::Number(0), hello::METHOD, hello)).await?;
            reading.next().await.transpose()
        };
        let answer = timeout(DIAL_PATIENCE, greeting).await.map_err(|_| "no welcome in time".to_owned())?;
        match answer.map_err(|error| error.to_string())? {
            Some(Incoming::Message(Message::Response(Response { outcome: Ok(welcome), .. }))) => {
                let welcome = serde_json::from_value(welcome).map_err(|error| error.to_string())?;
                Ok((reading, writing, welcome))
            }
            Some(Incoming::Message(Message::Response(Response { outcome: Err(error), .. }))) => {
                Err(error.message)
            }
            other => Err(format!("no welcome, but {other:?}")),
        }
    }

    /// Waits, taking orders meanwhile; false when nobody will ask any more.
    async fn wait(&mut self, pause: Duration) -> bool {
        let until = Instant::now() + pause;
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(until) => return true,
                order = self.orders.recv() => match order {
                    Some(order) => self.take(order),
                    None => return false,
                },
            }
        }
    }

    fn take(&mut self, order: Order) {
        self.pending.retain(|_, waiting| !waiting.answer.is_closed());
        if self.pending.len() >= PENDING_MAX {
            // nobody to tell when the asker has given up
            let _ = order.answer.send(Err(Ended::Overloaded));
            return;
        }
        self.unwritten.push_back(order.id.clone());
        self.pending.insert(order.id.clone(), order);
    }

    /// After a lost connection: what may be asked again will be, the rest is told that it is lost.
    fn give_up_on_the_tired(&mut self) {
        let (tired, rest): (BTreeMap<_, _>, BTreeMap<_, _>) =
            std::mem::take(&mut self.pending).into_iter().partition(|(_, order)| order.attempts_left == 0);
        for order in tired.into_values() {
            let _ = order.answer.send(Err(Ended::Lost));
        }
        self.pending = rest;
        self.unwritten = self.pending.keys().cloned().collect();
    }

    async fn converse(&mut self, mut reading: Reading, writing: Writing) -> Over {
        // a task of its own writes, so that a peer that is busy writing to us can never wait for us in a circle
        let (queue, queued) = mpsc::channel(64);
        let writer = tokio::spawn(write_all(writing, queued));
        let over = loop {
            tokio::select! {
                frame = reading.next() => match frame {
                    Some(Ok(Incoming::Message(message))) => {
                        if !self.hear(message) {
                            break Over::Lost;
                        }
                    }
                    Some(Ok(Incoming::Malformed { why, .. })) => {
                        debug!(peer = C::NAME, why, "the peer does not speak our wire");
                        break Over::Lost;
                    }
                    Some(Err(_)) | None => break Over::Lost,
                },
                permit = queue.reserve(), if !self.unwritten.is_empty() => match permit {
                    Ok(permit) => {
                        if let Some(message) = self.next_to_write() {
                            permit.send(message);
                        }
                    }
                    Err(_) => break Over::Lost,
                },
                order = self.orders.recv() => match order {
                    Some(order) => self.take(order),
                    None => break Over::Unneeded,
                },
            }
        };
        writer.abort();
        over
    }

    fn next_to_write(&mut self) -> Option<Message> {
        let id = self.unwritten.pop_front()?;
        let order = self.pending.get_mut(&id)?;
        if order.answer.is_closed() {
            self.pending.remove(&id);
            return None;
        }
        order.attempts_left = order.attempts_left.saturating_sub(1);
        Some(Message::request(Id::Text(id.into()), order.method.clone(), order.params.clone()))
    }

    /// Takes one message; false when the peer or we cannot go on.
    fn hear(&mut self, message: Message) -> bool {
        match message {
            Message::Response(Response { id: Id::Text(id), outcome }) => {
                let order = RequestId::try_from(id).ok().and_then(|id| self.pending.remove(&id));
                if let Some(order) = order {
                    let _ = order.answer.send(outcome.map_err(Ended::Failed));
                }
                // an answer nobody waits for any more is late news
                true
            }
            Message::Response(_) | Message::Request(_) => false,
            Message::Notification(note) => match from_frame::<C::Notice>(&note.method, note.params) {
                Ok(notice) => self.tell(News::Notice(notice)),
                Err(error) => {
                    debug!(peer = C::NAME, %error, "a notice of another version");
                    true
                }
            },
        }
    }

    /// Passes news on; false when the owner has fallen too far behind. An owner that listens to none is fine.
    fn tell(&self, news: News<C>) -> bool {
        !matches!(self.news.try_send(news), Err(mpsc::error::TrySendError::Full(_)))
    }
}

async fn write_all(mut writing: Writing, mut queued: mpsc::Receiver<Message>) {
    while let Some(message) = queued.recv().await {
        if writing.send(&message).await.is_err() {
            return;
        }
    }
}

/// Asks until the answer satisfies `enough` or the deadline passes; for states that come by themselves.
pub async fn until<T, F: Future<Output = Option<T>>>(
    deadline: Duration,
    mut attempt: impl FnMut() -> F,
) -> Option<T> {
    let end = Instant::now() + deadline;
    loop {
        if let Some(found) = attempt().await {
            return Some(found);
        }
        if Instant::now() >= end {
            return None;
        }
        sleep(Duration::from_millis(10)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        contract::heartbeat::{Heartbeat, Reply, Request},
        endpoint::Endpoint,
        server::{Caller, Door, Notices, Service, serve},
    };
    use std::sync::{Arc, Mutex};

    #[derive(Default)]
    struct Echo {
        seen: Mutex<Vec<RequestId>>,
        hang_first: bool,
    }

    impl Service<Heartbeat> for Echo {
        async fn answer(&self, _: Caller, id: RequestId, request: Request) -> Reply {
            let first = {
                let mut seen = self.seen.lock().unwrap();
                seen.push(id);
                seen.len() == 1
            };
            if self.hang_first && first {
                std::future::pending::<()>().await;
            }
            match request {
                Request::Run { task } => Reply::Refused { reason: task.unwrap_or_default() },
                Request::Status => Reply::Ran { runs: vec![] },
            }
        }
    }

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
    }

    fn credentials(secret: &Secret) -> Credentials {
        Credentials {
            role: Role::Supervisor,
            secret: secret.clone(),
            build: "b".into(),
            life: 1,
            notices: true,
        }
    }

    async fn up(socket: &Path, secret: &Secret, echo: Arc<Echo>) -> tokio::task::JoinHandle<()> {
        let endpoint = Endpoint::listen(socket).await.unwrap();
        let keyring = [(Role::Supervisor, secret.clone())].into();
        let door = Door { keyring, build: "b".into(), life: 7 };
        tokio::spawn(serve::<Heartbeat, _>(endpoint, door, echo, Notices::default()))
    }

    fn run(task: &str) -> Request {
        Request::Run { task: Some(task.to_owned()) }
    }

    #[test]
    fn b22_many_questions_at_once_get_each_its_own_answer() {
        runtime().block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let (socket, secret) = (folder.path().join("h.sock"), Secret::fresh());
            let _server = up(&socket, &secret, Arc::default()).await;
            let (client, _news) = Client::<Heartbeat>::dial(&socket, credentials(&secret));
            let asked = (0..200).map(|n| {
                let client = client.clone();
                async move {
                    let reply = client.ask(&run(&n.to_string()), Duration::from_secs(10)).await.unwrap();
                    assert_eq!(reply, Reply::Refused { reason: n.to_string() });
                }
            });
            futures_util::future::join_all(asked).await;
        });
    }

    #[test]
    fn a_sign_of_life_comes_past_questions_that_hang() {
        runtime().block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let (socket, secret) = (folder.path().join("h.sock"), Secret::fresh());
            let echo = Arc::new(Echo { hang_first: true, ..Echo::default() });
            let _server = up(&socket, &secret, echo).await;
            let (client, _news) = Client::<Heartbeat>::dial(&socket, credentials(&secret));
            client.ask(&run("x"), Duration::from_millis(100)).await.unwrap_err();
            let pong = client.ping(Duration::from_secs(5)).await.unwrap();
            assert_eq!(pong, Pong { life: 7, busy_ms: None });
        });
    }

    /// A server with a runtime of its own, so that dropping it ends its connections as a death does.
    struct Process(Option<tokio::runtime::Runtime>);

    impl Process {
        fn start(socket: &Path, secret: &Secret, echo: Arc<Echo>) -> Self {
            let runtime =
                tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
            let (socket, secret) = (socket.to_owned(), secret.clone());
            let serving = async move { drop(up(&socket, &secret, echo).await) };
            // a thread of its own, since the test itself runs on a runtime
            std::thread::scope(|scope| {
                scope.spawn(|| runtime.block_on(serving));
            });
            Self(Some(runtime))
        }
    }

    impl Drop for Process {
        fn drop(&mut self) {
            self.0.take().unwrap().shutdown_background();
        }
    }

    #[test]
    fn a_question_outlives_the_process_that_was_asked_and_keeps_its_id() {
        let folder = tempfile::tempdir().unwrap();
        let (socket, secret) = (folder.path().join("h.sock"), Secret::fresh());
        let echo = Arc::new(Echo { hang_first: true, ..Echo::default() });
        let first = Process::start(&socket, &secret, echo.clone());
        runtime().block_on(async {
            let (client, mut news) = Client::<Heartbeat>::dial(&socket, credentials(&secret));
            let asking = tokio::spawn(async move { client.ask(&run("x"), Duration::from_secs(20)).await });
            until(Duration::from_secs(5), || async { echo.seen.lock().unwrap().first().cloned() })
                .await
                .unwrap();
            assert!(matches!(news.recv().await, Some(News::Up(Welcome { life: 7, .. }))));
            drop(first);
            assert!(matches!(news.recv().await, Some(News::Down)));
            let _second = Process::start(&socket, &secret, echo.clone());
            assert_eq!(asking.await.unwrap().unwrap(), Reply::Refused { reason: "x".into() });
            let seen = echo.seen.lock().unwrap().clone();
            assert_eq!((seen.len(), seen.first()), (2, seen.last()), "one id, asked twice: {seen:?}");
        });
    }

    #[test]
    fn no_answer_is_told_as_what_it_was() {
        runtime().block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let (socket, secret) = (folder.path().join("h.sock"), Secret::fresh());
            let (client, _news) = Client::<Heartbeat>::dial(&socket, credentials(&secret));
            let nobody = client.ask(&run("x"), Duration::from_millis(50)).await.unwrap_err();
            assert!(matches!(nobody, AskError::Late { .. }), "{nobody}");
            let echo = Arc::new(Echo { hang_first: true, ..Echo::default() });
            let _server = up(&socket, &secret, echo).await;
            let hung = client.ask(&run("x"), Duration::from_millis(300)).await.unwrap_err();
            assert_eq!(hung.to_string(), "the heartbeat did not answer within 300ms");
            assert_eq!(
                client.ask(&Request::Status, Duration::from_secs(5)).await.unwrap(),
                Reply::Ran { runs: vec![] }
            );
        });
    }

    #[test]
    fn a_stranger_is_not_answered() {
        runtime().block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let (socket, secret) = (folder.path().join("h.sock"), Secret::fresh());
            let echo = Arc::new(Echo::default());
            let _server = up(&socket, &secret, echo.clone()).await;
            let (client, _news) = Client::<Heartbeat>::dial(&socket, credentials(&Secret::fresh()));
            assert!(client.ask(&run("x"), Duration::from_millis(300)).await.is_err());
            assert!(echo.seen.lock().unwrap().is_empty());
        });
    }
}
