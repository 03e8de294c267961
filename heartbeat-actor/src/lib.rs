//! The process that wakes her: it knows what is due, claims it in the ledger, and lets the agent think about it.
//!
//! ```text
//!  clock ─▶ pulse ─▶ due? ─▶ ledger (claimed) ─▶ soul (a run is opened) ─▶ agent (one turn) ─▶ ledger (ended)
//! ```
//!
//! It promises: an occurrence runs at most once, whatever dies in it; a restart neither brings a run nearer nor puts it
//! off; off means off; a run without an entry of hers leaves one that says so. At night it lets her dream, where something
//! qualifies. Chores, the examen and reviews are not here yet.

mod beat;
mod dreaming;
mod due;
mod ledger;
mod night;
mod prompt;
mod pulse;
mod task;

use std::sync::Arc;

use ipc::{
    child::{Brief, Report, report, report_ready},
    client::Client,
    contract::heartbeat::{Heartbeat, Reply, Request},
    endpoint::Endpoint,
    exit::Fault,
    hello::Role,
    id::RequestId,
    server::{Caller, Notices, Service, serve},
};
use jiff::Timestamp;
use ractor::{Actor, ActorRef, call};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{
    beat::Reach,
    ledger::Book,
    pulse::{Pulse, PulseMsg},
};

/// Beats until it is told to stop.
pub async fn run(brief: Brief, stop: CancellationToken) -> Result<(), Fault> {
    let book = Book::open(&brief.home().heartbeat().join("ledger.jsonl")).map_err(Fault::configuration)?;
    // the socket is taken first: whoever holds it is the one heartbeat of this home (T14)
    let endpoint = Endpoint::listen(&brief.run().socket(Role::Heartbeat)).await.map_err(Fault::again)?;
    let (soul, _) = Client::dial(&brief.run().socket(Role::Soul), brief.credentials(false));
    let (agent, _) = Client::dial(&brief.run().socket(Role::Agent), brief.credentials(false));
    let settings = &brief.config.heartbeat;
    #[expect(clippy::disallowed_methods, reason = "the clock of the heartbeat is read here, and passed in")]
    let pulse = Pulse {
        reach: Reach { soul, agent, turn_max: settings.turn_max },
        on: settings.is_on(),
        rest: settings.interval,
        night: brief.config.dreams.night().filter(|_| settings.is_on()),
        zone: brief.config.zone(),
        clock: Timestamp::now,
    };
    let (pulse, mut ended) = Actor::spawn(None, pulse, book).await.map_err(Fault::again)?;
    let service = Arc::new(Answering { pulse: pulse.clone() });
    let serving = serve::<Heartbeat, _>(endpoint, brief.door(), service, Notices::default());
    if !settings.is_on() {
        let notice = "the heartbeat is off (`[heartbeat]` in config.toml); runs asked for by name still work";
        report(&Report::Facts([("notice".to_owned(), json!(notice))].into_iter().collect()));
    }
    report_ready();
    tokio::select! {
        () = serving => Ok(()),
        () = stop.cancelled() => Ok(()),
        _ = &mut ended => Err(Fault::again("the pulse stopped; the log says why")),
    }
}

/// Answers the heartbeat's contract.
struct Answering {
    pulse: ActorRef<PulseMsg>,
}

impl Service<Heartbeat> for Answering {
    async fn answer(&self, _: Caller, id: RequestId, request: Request) -> Reply {
        let answered = match request {
            Request::Run { task } => {
                call!(self.pulse, |answer| PulseMsg::Ask { request: id, task, answer })
            }
            Request::Status => call!(self.pulse, |answer| PulseMsg::Status { answer }),
        };
        answered
            .unwrap_or_else(|error| Reply::Refused { reason: format!("the heartbeat is ending: {error}") })
    }
}
