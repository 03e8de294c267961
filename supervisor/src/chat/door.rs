//! The door of the conversation: a Unix listener, one bounded reader and one bounded writer a client.

use std::{io, sync::Arc, time::Duration};

use futures_util::{SinkExt as _, StreamExt as _};
use ipc::{
    endpoint::our_uid,
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
    codec::{FramedRead, FramedWrite},
    sync::CancellationToken,
};
use tracing::{debug, warn};

use super::{
    authority::is_a_persons,
    desk::{Desk, Peer},
    hub::{ClientId, HubMsg},
};

/// How many clients may be attached at once; the next ones wait in the listener's backlog.
const CLIENTS_MAX: usize = 256;
/// How many requests of one client may be under way at once; the next ones wait on the wire.
const IN_FLIGHT_MAX: usize = 32;
/// How many messages may wait for one client before it counts as not reading.
const QUEUE_MAX: usize = 1024;
/// How long the last words to a client may take.
const FAREWELL_PATIENCE: Duration = Duration::from_secs(1);

/// Takes clients until the task is dropped.
pub(crate) async fn serve(listener: UnixListener, desk: Arc<Desk>, hub: ActorRef<HubMsg>) {
    let places = Arc::new(Semaphore::new(CLIENTS_MAX));
    let mut pause = Duration::from_millis(50);
    let mut next: ClientId = 1;
    loop {
        let place = places.clone().acquire_owned().await.expect("the semaphore is never closed");
        match accept(&listener).await {
            Ok(Some((stream, person))) => {
                pause = Duration::from_millis(50);
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
    let _ = hub.cast(HubMsg::Joined { client, queue: queue.clone(), gone: gone.clone() });
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
    while let Some(frame) = incoming.next().await {
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
            // we ask clients nothing yet, so an answer is to somebody else's question
            Ok(Incoming::Message(Message::Response(_))) => {}
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
}
