//! Answering: every connection opens with the handshake, has a bounded number of requests in flight and a bounded queue.
//!
//! ```text
//!  accept ─▶ hello (deadline) ─▶ reader: one task a connection, takes a place for each request, then a task a request
//!                               writer: one task a connection, drains a bounded queue
//! ```
//!
//! A peer that asks faster than it is answered waits for a place. A peer that does not read its notices loses the
//! connection and learns the state anew when it dials again: one slow reader costs the others nothing (B19).

use std::{
    fmt,
    marker::PhantomData,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::{SinkExt as _, StreamExt as _};
use interprocess::local_socket::tokio::Stream;
use serde::{Deserialize, Serialize};
use tokio::{
    io::{ReadHalf, WriteHalf},
    sync::{Semaphore, mpsc},
    time::{sleep, timeout},
};
use tokio_util::codec::{FramedRead, FramedWrite};
use tracing::{debug, warn};

use crate::{
    contract::{Contract, from_frame, to_frame},
    endpoint::{Accepted, Endpoint},
    hello::{self, Hello, Keyring, Role, Welcome},
    id::RequestId,
    standing,
    wire::{FrameCodec, Id, Incoming, Message, Request, RpcError, code},
};

/// How many requests of one connection may be answered at once; the next ones wait on the wire.
pub const IN_FLIGHT_MAX: usize = 64;
/// How many frames may wait to be written to one connection.
pub const QUEUE_FRAMES_MAX: usize = 1024;
/// How many connections may be open at once: every child and the supervisor need one, some two while they change lives.
pub const CONNECTIONS_MAX: usize = 32;
/// How long a caller may take to say who it is.
const HELLO_PATIENCE: Duration = Duration::from_secs(5);
/// How often it is looked whether the socket is still where callers look for it.
const MEND_EVERY: Duration = Duration::from_secs(2);

/// The method that asks for a sign of life; each contract has it, and answers it with a [`Pong`].
pub const PING: &str = "ping";

/// A sign of life, from the executor that answers everything else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pong {
    /// Whose it is.
    pub life: u64,
    /// For how long a thread beside the executor has been at one piece of work, where one does the work and has some.
    pub busy_ms: Option<u64>,
}

/// Who is asking.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Which process.
    pub role: Role,
    /// In which life.
    pub life: u64,
}

/// What answers the questions of a contract.
pub trait Service<C: Contract>: Send + Sync + 'static {
    /// Answers one question. It is asked concurrently, also twice with the same id.
    fn answer(
        &self,
        caller: Caller,
        id: RequestId,
        request: C::Request,
    ) -> impl Future<Output = C::Reply> + Send;

    /// For how long the thread that does the work has been at the piece in hand, where there are such a thread and such a
    /// piece.
    fn busy(&self) -> Option<Duration> {
        None
    }
}

/// How a process presents itself at its door.
#[derive(Debug, Clone)]
pub struct Door {
    /// Who may enter.
    pub keyring: Keyring,
    /// Our build.
    pub build: String,
    /// Our life.
    pub life: u64,
}

/// Tells everybody who asked to be told.
pub struct Notices<C> {
    listeners: Arc<Mutex<Vec<mpsc::Sender<Message>>>>,
    contract: PhantomData<fn(C)>,
}

impl<C> Clone for Notices<C> {
    fn clone(&self) -> Self {
        Self { listeners: self.listeners.clone(), contract: PhantomData }
    }
}

impl<C> fmt::Debug for Notices<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Notices")
    }
}

impl<C: Contract> Default for Notices<C> {
    fn default() -> Self {
        Self { listeners: Arc::default(), contract: PhantomData }
    }
}

impl<C: Contract> Notices<C> {
    /// Tells all listeners, without waiting. One whose queue is full is let go of, which ends its connection.
    pub fn tell(&self, notice: &C::Notice) {
        let (method, params) = to_frame(notice);
        let message = Message::notification(method, params);
        self.listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|listener| listener.try_send(message.clone()).is_ok());
    }

    fn add(&self, listener: mpsc::Sender<Message>) {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner).push(listener);
    }
}

/// Serves `endpoint` until the task is dropped.
pub async fn serve<C: Contract, S: Service<C>>(
    mut endpoint: Endpoint,
    door: Door,
    service: Arc<S>,
    notices: Notices<C>,
) {
    let door = Arc::new(door);
    let mut look = tokio::time::interval(MEND_EVERY);
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut pause = Duration::from_millis(50);
    loop {
        let place = places.clone().acquire_owned().await.expect("the semaphore is never closed");
        let accepted = tokio::select! {
            accepted = endpoint.accept() => accepted,
            _ = look.tick() => {
                match endpoint.mend() {
                    Ok(false) => {}
                    Ok(true) => warn!(contract = C::NAME, "the socket had been taken away, and is there again"),
                    Err(error) => warn!(contract = C::NAME, %error, "the socket is gone and cannot be made again"),
                }
                continue;
            }
        };
        match accepted {
            Ok(Accepted::Peer(stream)) => {
                pause = Duration::from_millis(50);
                let (door, service, notices) = (door.clone(), service.clone(), notices.clone());
                tokio::spawn(async move {
                    if let Err(why) = converse(stream, &door, service, notices).await {
                        debug!(contract = C::NAME, why, "connection ended");
                    }
                    drop(place);
                });
            }
            Ok(Accepted::Refused(error)) => warn!(%error, "caller turned away"),
            Err(error) => {
                warn!(%error, "could not accept; backing off");
                sleep(pause).await;
                pause = (pause * 2).min(Duration::from_secs(1));
            }
        }
    }
}

async fn converse<C: Contract, S: Service<C>>(
    stream: Stream,
    door: &Door,
    service: Arc<S>,
    notices: Notices<C>,
) -> Result<(), String> {
    let (read, write) = tokio::io::split(stream);
    let mut incoming = FramedRead::new(read, FrameCodec::default());
    let mut outgoing = FramedWrite::new(write, FrameCodec::default());

    let first = timeout(HELLO_PATIENCE, incoming.next()).await.map_err(|_| "no hello in time")?;
    let (id, hello) = match admitted::<C>(first, door) {
        Ok(admitted) => admitted,
        Err(refusal) => {
            let (id, error) = *refusal;
            let why = error.message.clone();
            // the caller may already be gone; it was not let in either way
            let _ = outgoing.send(&Message::response(id, Err(error))).await;
            return Err(why);
        }
    };
    let welcome = Welcome {
        contract: C::NAME.to_owned(),
        version: C::VERSION,
        build: door.build.clone(),
        life: door.life,
    };
    let welcome = serde_json::to_value(welcome).expect("a welcome is JSON");
    outgoing.send(&Message::response(id, Ok(welcome))).await.map_err(|error| error.to_string())?;

    let (queue, queued) = mpsc::channel(QUEUE_FRAMES_MAX);
    if hello.notices {
        notices.add(queue.clone());
    }
    let mut writer = tokio::spawn(write_all(outgoing, queued));
    let caller = Caller { role: hello.role, life: hello.life };
    let ended = tokio::select! {
        ended = read_all(incoming, &caller, door.life, service, queue) => ended,
        _ = &mut writer => Err("the peer does not read, or is gone".to_owned()),
    };
    // the answers still under way have nobody to go to; what they wrote stays written
    writer.abort();
    ended
}

fn admitted<C: Contract>(
    first: Option<Result<Incoming, crate::wire::FrameError>>,
    door: &Door,
) -> Result<(Id, Hello), Box<(Id, RpcError)>> {
    let refuse = |id, code, why: String| Err(Box::new((id, RpcError::new(code, why))));
    match first {
        Some(Ok(Incoming::Message(Message::Request(Request { id, method, params }))))
            if method == hello::METHOD =>
        {
            match serde_json::from_value::<Hello>(params) {
                Ok(hello) => match hello::admit(&hello, C::NAME, C::VERSION, &door.keyring) {
                    Ok(()) => Ok((id, hello)),
                    Err(error) => Err(Box::new((id, error))),
                },
                Err(error) => refuse(id, code::INVALID_PARAMS, format!("the hello is not whole: {error}")),
            }
        }
        Some(Ok(Incoming::Message(Message::Request(Request { id, .. })))) => {
            refuse(id, code::REFUSED, "the first frame must be `hello`".to_owned())
        }
        Some(Ok(_)) => refuse(Id::Null, code::REFUSED, "the first frame must be `hello`".to_owned()),
        Some(Err(error)) => refuse(Id::Null, code::INVALID_REQUEST, error.to_string()),
        None => refuse(Id::Null, code::REFUSED, "the caller left before it said hello".to_owned()),
    }
}

async fn write_all(
    mut outgoing: FramedWrite<WriteHalf<Stream>, FrameCodec>,
    mut queued: mpsc::Receiver<Message>,
) {
    while let Some(message) = queued.recv().await {
        let mut ready = vec![message];
        while let Ok(message) = queued.try_recv() {
            ready.push(message);
        }
        for message in ready {
            if let Err(error) = outgoing.feed(&message).await {
                match too_large_to_say(&message, &error) {
                    Some(instead) if outgoing.feed(&instead).await.is_ok() => {}
                    _ => return,
                }
            }
        }
        if outgoing.flush().await.is_err() {
            return;
        }
    }
}

/// What is said instead of an answer that no frame can hold, so that its asker does not wait for ever.
fn too_large_to_say(message: &Message, error: &crate::wire::FrameError) -> Option<Message> {
    match (message, error) {
        (Message::Response(response), crate::wire::FrameError::TooLong) => Some(Message::response(
            response.id.clone(),
            Err(RpcError::new(code::INTERNAL, format!("the answer cannot be sent: {error}"))),
        )),
        _ => None,
    }
}

async fn read_all<C: Contract, S: Service<C>>(
    mut incoming: FramedRead<ReadHalf<Stream>, FrameCodec>,
    caller: &Caller,
    life: u64,
    service: Arc<S>,
    queue: mpsc::Sender<Message>,
) -> Result<(), String> {
    let places = Arc::new(Semaphore::new(IN_FLIGHT_MAX));
    while let Some(frame) = incoming.next().await {
        let request = match frame.map_err(|error| error.to_string())? {
            Incoming::Message(Message::Request(request)) => request,
            Incoming::Message(Message::Notification(_)) => continue,
            Incoming::Message(Message::Response(_)) => {
                return Err("an answer to no question of ours".to_owned());
            }
            Incoming::Malformed { why, .. } => return Err(why),
        };
        if request.method == PING {
            let busy_ms = service.busy().map(|busy| u64::try_from(busy.as_millis()).unwrap_or(u64::MAX));
            let pong = serde_json::to_value(Pong { life, busy_ms }).expect("a sign of life is JSON");
            // it takes no place and waits for none; a peer that does not read its answers gets none
            let _ = queue.try_send(Message::response(request.id, Ok(pong)));
            continue;
        }
        let place = places.clone().acquire_owned().await.expect("the semaphore is never closed");
        let (caller, service, queue) = (caller.clone(), service.clone(), queue.clone());
        let under_way = standing::under_way(format!(
            "{} {} {:?} for the {}",
            C::NAME,
            request.method,
            request.id,
            caller.role
        ));
        tokio::spawn(async move {
            let _under_way = under_way;
            let outcome = answer::<C, S>(&caller, &service, &request).await;
            // nobody to tell when the connection is gone: the asker asks again, by the same id
            let _ = queue.send(Message::response(request.id, outcome)).await;
            drop(place);
        });
    }
    Ok(())
}

async fn answer<C: Contract, S: Service<C>>(
    caller: &Caller,
    service: &S,
    request: &Request,
) -> Result<serde_json::Value, RpcError> {
    let Id::Text(id) = &request.id else {
        return Err(RpcError::new(code::INVALID_REQUEST, "a request id of ours is a text"));
    };
    let id =
        RequestId::try_from(id.clone()).map_err(|e| RpcError::new(code::INVALID_REQUEST, e.to_string()))?;
    let asked = from_frame::<C::Request>(&request.method, request.params.clone())?;
    let reply = service.answer(caller.clone(), id, asked).await;
    serde_json::to_value(reply).map_err(|error| RpcError::new(code::INTERNAL, error.to_string()))
}
