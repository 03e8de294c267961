//! The door of the conversation: a Unix listener, one bounded reader and one bounded writer a client.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use futures_util::{SinkExt as _, StreamExt as _};
use ipc::{
    endpoint::{Claim, EndpointError, Place, our_uid},
    wire::{FrameCodec, FrameError, Id, Incoming, Message, RpcError, code},
};
use ractor::ActorRef;
use tokio::{
    net::{
        UnixListener, UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{Semaphore, mpsc},
    time::{sleep, timeout},
};
use tokio_util::{
    codec::{Framed, FramedRead, FramedWrite},
    sync::CancellationToken,
};
use tracing::{debug, warn};

use super::{
    authority::is_a_persons,
    desk::{Desk, Peer},
    hub::{ClientId, HubMsg},
};
use crate::above::Chat;

/// How many clients may be attached at once; the next ones are told so and turned away.
const CLIENTS_MAX: usize = 256;
/// How many requests of one client may be under way at once; the next ones wait on the wire.
const IN_FLIGHT_MAX: usize = 32;
/// How many messages may wait for one client before it counts as not reading.
const QUEUE_MAX: usize = 1024;
/// How long a client may stay silent before its first request; one that never asks holds a place for nothing.
const FIRST_WORD_PATIENCE: Duration = Duration::from_secs(30);
/// How often it is looked whether the socket is still where clients look for it.
const MEND_EVERY: Duration = Duration::from_secs(2);
/// How long the last words to a client may take.
const FAREWELL_PATIENCE: Duration = Duration::from_secs(1);

/// The listener and the right to it.
pub(crate) struct Door {
    listener: UnixListener,
    claim: Claim,
    place: Option<Place>,
    /// Where the socket itself lies when it was handed over to us and `claim` names a link to it.
    elsewhere: Option<(PathBuf, Option<Place>)>,
}

impl Door {
    /// Listens where the claim says; with a socket that was handed over, on that one, found under the same name.
    pub(crate) async fn open(claim: Claim, handed: Option<Chat>) -> Result<Self, EndpointError> {
        let Some(Chat { listener, path }) = handed else {
            claim.clear()?;
            return Self::bound(claim);
        };
        let io = |attempt, path: &Path| {
            let path = path.to_owned();
            move |source| EndpointError::Io { attempt, path, source }
        };
        if !is_served(&path).await {
            warn!(socket = %path.display(), "the file of the chat socket that was handed over is gone; making one of our own");
            claim.clear()?;
            return Self::bound(claim);
        }
        let listener = UnixListener::from_std(listener).map_err(io("listen on", &path))?;
        let there = Place::of(&path);
        let mut elsewhere = None;
        if there != Place::of(claim.path()) {
            claim.clear()?;
            std::os::unix::fs::symlink(&path, claim.path())
                .map_err(io("make a link to the chat socket at", claim.path()))?;
            elsewhere = Some((path, there));
        }
        let place = Place::of(claim.path());
        Ok(Self { listener, claim, place, elsewhere })
    }

    fn bound(claim: Claim) -> Result<Self, EndpointError> {
        let path = claim.path();
        let listener = UnixListener::bind(path).map_err(|source| EndpointError::Io {
            attempt: "listen on",
            path: path.to_owned(),
            source,
        })?;
        let place = Place::of(path);
        Ok(Self { listener, claim, place, elsewhere: None })
    }

    fn stands(&self) -> bool {
        let there = |(path, place): &(PathBuf, Option<Place>)| Place::of(path) == *place;
        Place::of(self.claim.path()) == self.place && self.elsewhere.as_ref().is_none_or(there)
    }

    /// Listens again where the socket's file was taken away: without it nobody could even ask us to stop (B3).
    fn mend(&mut self) {
        if self.stands() {
            return;
        }
        warn!("the chat socket was taken away; making it again");
        let cleared = self.claim.clear().map_err(io::Error::other);
        match cleared.and_then(|()| UnixListener::bind(self.claim.path())) {
            Ok(listener) => {
                (self.listener, self.place) = (listener, Place::of(self.claim.path()));
                // whoever handed one over would have to make its file again; until then this one serves
                self.elsewhere = None;
            }
            Err(error) => warn!(%error, "the chat socket cannot be made again; trying later"),
        }
    }
}

/// Whether a connection to `path` comes to a socket that somebody has open, as we do with one that was handed over.
async fn is_served(path: &Path) -> bool {
    match UnixStream::connect(path).await {
        Ok(_) => true,
        // a full backlog is a served one
        Err(error) => !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused),
    }
}

/// Takes clients until the task is dropped.
pub(crate) async fn serve(mut door: Door, desk: Arc<Desk>, hub: ActorRef<HubMsg>) {
    let places = Arc::new(Semaphore::new(CLIENTS_MAX));
    let mut look = tokio::time::interval(MEND_EVERY);
    let mut pause = Duration::from_millis(50);
    let mut next: ClientId = 1;
    loop {
        let accepted = tokio::select! {
            accepted = accept(&door.listener) => accepted,
            _ = look.tick() => {
                door.mend();
                continue;
            }
        };
        match accepted {
            Ok(Some((stream, person))) => {
                pause = Duration::from_millis(50);
                let Ok(place) = places.clone().try_acquire_owned() else {
                    tokio::spawn(turn_away(stream));
                    continue;
                };
                let (peer, desk, hub) = (Peer { client: next, person }, desk.clone(), hub.clone());
                next += 1;
                tokio::spawn(async move {
                    attend(stream, peer, desk, &hub).await;
                    drop(place);
                });
            }
            Ok(None) => warn!("a client of another user was turned away"),
            Err(error) => {
                // descriptors have run out, most likely: what is attached goes on, newcomers wait (B24)
                warn!(%error, "could not accept a client; backing off");
                sleep(pause).await;
                pause = (pause * 2).min(Duration::from_secs(1));
            }
        }
    }
}

/// Tells a client why it cannot stay, and waits a moment for it to hang up: silence would look like a hang.
async fn turn_away(stream: UnixStream) {
    let said =
        format!("{CLIENTS_MAX} clients are attached already; close some, or end the supervisor by its pid");
    let mut frames = Framed::new(stream, FrameCodec::default());
    let error = Message::response(Id::Null, Err(RpcError::new(code::OVERLOADED, said)));
    let farewell = async {
        if frames.send(&error).await.is_ok() {
            while let Some(Ok(_)) = frames.next().await {}
        }
    };
    let _ = timeout(FAREWELL_PATIENCE, farewell).await;
}

/// Waits for a client, and finds out whether a person started it; `None` when it is not of our user (B26).
async fn accept(listener: &UnixListener) -> io::Result<Option<(UnixStream, bool)>> {
    let (stream, _) = listener.accept().await?;
    let peer = stream.peer_cred()?;
    let ours = peer.uid() == our_uid();
    Ok(ours.then_some((stream, is_a_persons(peer.pid()))))
}

async fn attend(stream: UnixStream, peer: Peer, desk: Arc<Desk>, hub: &ActorRef<HubMsg>) {
    let client = peer.client;
    let (read, write) = stream.into_split();
    let (queue, queued) = mpsc::channel(QUEUE_MAX);
    let gone = CancellationToken::new();
    let person = peer.person;
    let _ = hub.cast(HubMsg::Joined { client, person, queue: queue.clone(), gone: gone.clone() });
    let mut writer = tokio::spawn(write_all(FramedWrite::new(write, FrameCodec::default()), queued));
    let reading = read_all(FramedRead::new(read, FrameCodec::default()), peer, desk, queue);
    let read_to_the_end = tokio::select! {
        () = reading => true,
        () = gone.cancelled() => false,
        _ = &mut writer => false,
    };
    let _ = hub.cast(HubMsg::Left { client });
    if read_to_the_end {
        // what is already queued, an error about the last line say, still goes out
        let _ = timeout(FAREWELL_PATIENCE, &mut writer).await;
    }
    writer.abort();
    debug!(client, "client left");
}

async fn write_all(mut out: FramedWrite<OwnedWriteHalf, FrameCodec>, mut queued: mpsc::Receiver<Message>) {
    while let Some(message) = queued.recv().await {
        let mut sent = out.feed(&message).await;
        while sent.is_ok()
            && let Ok(message) = queued.try_recv()
        {
            sent = out.feed(&message).await;
        }
        if sent.is_err() || out.flush().await.is_err() {
            return;
        }
    }
}

async fn read_all(
    mut incoming: FramedRead<OwnedReadHalf, FrameCodec>,
    peer: Peer,
    desk: Arc<Desk>,
    queue: mpsc::Sender<Message>,
) {
    let client = peer.client;
    let places = Arc::new(Semaphore::new(IN_FLIGHT_MAX));
    let mut first = true;
    loop {
        let frame = if first {
            timeout(FIRST_WORD_PATIENCE, incoming.next()).await.unwrap_or_default()
        } else {
            incoming.next().await
        };
        first = false;
        let Some(frame) = frame else { break };
        let place = places.clone().acquire_owned().await.expect("the semaphore is never closed");
        match frame {
            Ok(Incoming::Message(Message::Request(request))) => {
                let (desk, queue) = (desk.clone(), queue.clone());
                // the envelope is read in the order of the wire, so that a prompt is under way before the next line is read
                let answering = desk.take(peer, request, queue);
                tokio::spawn(async move {
                    answering.await;
                    drop(place);
                });
            }
            Ok(Incoming::Message(Message::Notification(note))) => {
                let telling = desk.hear(client, note);
                tokio::spawn(async move {
                    telling.await;
                    drop(place);
                });
            }
            Ok(Incoming::Message(Message::Response(answer))) => {
                let hearing = desk.clone().heard(client, answer);
                tokio::spawn(async move {
                    hearing.await;
                    drop(place);
                });
            }
            Ok(Incoming::Malformed { id, json, why }) => {
                let code = if json { code::INVALID_REQUEST } else { code::PARSE };
                if queue.send(Message::response(id, Err(RpcError::new(code, why)))).await.is_err() {
                    return;
                }
            }
            Err(error @ (FrameError::TooLong | FrameError::EndInLine { .. })) => {
                let error = RpcError::new(code::INVALID_REQUEST, error.to_string());
                let _ = queue.send(Message::response(Id::Null, Err(error))).await;
                return;
            }
            Err(FrameError::Io(error)) => {
                debug!(client, %error, "client lost");
                return;
            }
        }
    }
    // who only stopped sending, as a pipe does at its end, still hears what was asked for before that
    let in_flight = u32::try_from(IN_FLIGHT_MAX).expect("a small number");
    let _all_answered = places.acquire_many(in_flight).await;
}
