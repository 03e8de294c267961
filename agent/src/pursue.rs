//! Her own time: one turn in a session of its own, with the tools it was given and no others.

use std::{sync::Arc, time::Duration};

use ipc::{
    contract::agent::{Pursued, Reply},
    exit::chain,
};
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::{
    birth,
    conversation::stop_reason,
    mind::Mind,
    provider::Message,
    session::Transcript,
    think::{self, Ended, TurnError, Work},
    voice::Voice,
};

/// Runs the turn, and says how it ended. What fails inside of it is told in the answer: the ledger keeps it.
pub(crate) async fn pursue(
    mind: &Arc<Mind>,
    task: &str,
    prompt: String,
    work: Work,
    turn_max: Duration,
) -> Reply {
    if let Err(error) = birth::ensure(mind).await {
        return Reply::Refused { reason: chain(&error) };
    }
    let (making, of) = (mind.clone(), task.to_owned());
    let made = tokio::task::spawn_blocking(move || {
        let model = making.models.name();
        let header = making.catalog.create_for(&of, &model, &making.here_and_now())?;
        making.catalog.read(&header.id)
    });
    let mut transcript = match made.await.expect("making a session does not panic") {
        Ok(transcript) => transcript,
        Err(error) => return Reply::Refused { reason: chain(&error) },
    };
    let session = transcript.header.id.clone();
    info!(task, session, request = %work.request, "her own time begins");
    let cancel = CancellationToken::new();
    let turn = within(turn_max, &cancel, turn(mind, &mut transcript, prompt, &work, &cancel)).await;
    let late = cancel.is_cancelled().then(|| format!("it took longer than {turn_max:?} and was cut off"));
    let mut pursued = match turn {
        Ok(ended) => Pursued {
            session,
            text: ended.text,
            tools: ended.tools,
            stop_reason: stop_reason(ended.stop),
            error: late,
        },
        // what was added about an objection is said also where nothing else came of it
        Err(error) => Pursued {
            session,
            text: transcript.added(&work.request),
            tools: Vec::new(),
            stop_reason: "error".to_owned(),
            error: Some(chain(&error)),
        },
    };
    let (stop, error) = (&pursued.stop_reason, pursued.error.as_deref());
    mind.spent.turn(mind, &transcript);
    if let Err(error) = transcript.ended(&work.request, stop, error, mind.now()).await {
        pursued.error = Some(chain(&error));
    }
    Reply::Pursued(pursued)
}

async fn turn(
    mind: &Mind,
    transcript: &mut Transcript,
    prompt: String,
    work: &Work,
    cancel: &CancellationToken,
) -> Result<Ended, TurnError> {
    let voice = Voice::new(mind.notices.clone(), &transcript.header.id, &work.request);
    transcript.say(Message::user(prompt), Some(&work.request), mind.now()).await?;
    think::run(mind, transcript, work, &voice, cancel).await
}

/// Lets work go on for so long, and cancels it then; what it is doing at that moment it ends in order (T08).
pub(crate) async fn within<T>(
    longest: Duration,
    cancel: &CancellationToken,
    work: impl Future<Output = T>,
) -> T {
    let mut work = std::pin::pin!(work);
    tokio::select! {
        done = &mut work => done,
        () = tokio::time::sleep(longest) => {
            cancel.cancel();
            work.await
        }
    }
}
