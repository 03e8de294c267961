//! The process that thinks: turns, sessions, tools and the connection to a model.
//!
//! ```text
//!  agent.sock ─▶ service ─▶ acp (methods) ─▶ conversation (one actor a session) ─▶ think (one turn) ─▶ provider
//!                   │                             reflect (looking back, when it rests) ─────▲    │
//!                   └─────▶ pursue (her own time) ──────────────────────────────────▲    └─▶ soul.sock (tools, prompt)
//! ```
//!
//! It promises: a request asked twice is one turn; what a person said is on the disk before anything is done about it;
//! a truncated answer is never taken as an answer; a prompt is rebuilt when the soul changed, and only then.

mod acp;
mod approval;
mod birth;
mod claim;
mod conversation;
mod length;
mod mind;
mod models;
mod objection;
mod once;
mod outside;
mod portrait;
mod prompt;
mod provider;
mod pursue;
mod reflect;
mod rewrite;
mod session;
mod setup;
mod spent;
mod surroundings;
mod think;
mod tools;
mod turn;
mod under_way;
mod voice;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use ipc::{
    child::{Brief, Report, report, report_ready},
    client::Client,
    contract::{
        agent::{Agent, Reply, Request, Status, ToolServer},
        chat,
    },
    endpoint::Endpoint,
    exit::Fault,
    hello::Role,
    id::RequestId,
    server::{Caller, Notices, Service, serve},
};
use jiff::Timestamp;
use serde_json::{Map, json};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::{
    acp::Desk,
    approval::Approvals,
    mind::Mind,
    models::Models,
    once::Once,
    portrait::Portrait,
    provider::Budget,
    session::Catalog,
    spent::Spent,
    surroundings::Lookout,
    think::Work,
    tools::{Bench, Servers, Toolbox},
    under_way::Turns,
};

/// Starts the processes of tools; made before anything is given up.
#[derive(Debug)]
pub struct Spawner(tools::Spawner);

impl Spawner {
    /// Its thread keeps what it may do now.
    #[must_use]
    pub fn start() -> Self {
        Self(tools::Spawner::start())
    }
}

/// Plays the part of a tool's process, where the first argument says so: then that is all this process does.
pub fn part(arguments: impl IntoIterator<Item = std::ffi::OsString>) -> Option<std::process::ExitCode> {
    tools::part(arguments)
}

/// Thinks until it is told to stop.
pub async fn run(brief: Brief, spawner: Spawner, stop: CancellationToken) -> Result<(), Fault> {
    let home = brief.home();
    let budget = Budget::shared(brief.run().path());
    let models = Models::at(&home, &brief.config.model, budget, report_facts, spawner.0.clone())?;
    let (soul, news) = Client::dial(&brief.run().socket(Role::Soul), brief.credentials(true));
    let notices = Notices::default();
    let toolbox = Arc::new(Toolbox::with_own(&brief.config.tools));
    #[expect(clippy::disallowed_methods, reason = "the clock of the agent is read here, and passed in")]
    let mind = Arc::new(Mind {
        models,
        spent: Spent::default(),
        run_tokens_max: brief.config.heartbeat.tokens_max,
        soul,
        portrait: Portrait::unknown(),
        servers: Servers::start(&home.mcp(), &toolbox, &spawner.0, report_servers),
        lookout: Lookout::new(home.path(), setup::person_home()),
        approvals: Approvals::of(&brief.config.tools),
        toolbox,
        catalog: Catalog::at(home.sessions()),
        notices: notices.clone(),
        clock: Timestamp::now,
        zone: brief.config.zone(),
        begun: Timestamp::now(),
        person: brief.config.person.clone(),
        reflect: brief.config.reflect.clone(),
        objections_a_week: brief.config.gates.objections_a_week,
        born: Mutex::new(false),
    });
    let person_home = std::env::var_os("HOME").map(std::path::PathBuf::from);
    let bench = Arc::new(Bench::new(spawner.0, &home, &brief.run(), &brief.config.tools, person_home));
    mind.toolbox.bring_hands(&bench);
    let listening = mind.clone();
    tokio::spawn(async move { listening.listen(news).await });

    let endpoint = Endpoint::listen(&brief.run().socket(Role::Agent)).await.map_err(Fault::again)?;
    let desk = Arc::new(Desk::new(mind.clone()));
    let service =
        Arc::new(Agency { desk: desk.clone(), mind: mind.clone(), once: Once::new(), turns: Turns::none() });
    let serving = serve::<Agent, _>(endpoint, brief.door(), service, notices);
    report_ready();
    let servers = mind.clone();
    tokio::spawn(async move {
        let sandbox = bench.probe().await.unwrap_or_else(|why| format!("unknown: {why}"));
        report_facts(&[("sandbox", &sandbox)]);
    });
    tokio::spawn(async move {
        be_born(&mind).await;
        spent::begin(&mind).await;
        desk.wake().await;
        mind.models.look_around().await;
    });
    tokio::select! {
        () = serving => {}
        () = stop.cancelled() => {}
    }
    servers.servers.end().await;
    Ok(())
}

/// The first start gives birth, before anybody has said anything.
async fn be_born(mind: &Mind) {
    if let Err(error) = birth::ensure(mind).await {
        warn!(error = ipc::exit::chain(&error), "not born yet; the next thing that is said tries again");
    }
}

/// Makes facts known, which stand in `lisa status` until they are replaced.
fn report_facts(facts: &[(&str, &str)]) {
    let facts: Map<_, _> = facts.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    report(&Report::Facts(facts));
}

/// Makes known how the servers of tools are.
fn report_servers(servers: &[ToolServer]) {
    report(&Report::Facts(Map::from_iter([("servers".to_owned(), json!(servers))])));
}

/// Answers the agent's contract.
struct Agency {
    desk: Arc<Desk>,
    mind: Arc<Mind>,
    once: Once<Reply>,
    turns: Turns,
}

impl Service<Agent> for Agency {
    async fn answer(&self, caller: Caller, id: RequestId, request: Request) -> Reply {
        match request {
            Request::Relay { acp, params } => {
                let (desk, turns, request) = (self.desk.clone(), self.turns.clone(), id.clone());
                let work = move || -> BoxFuture<'static, Reply> {
                    Box::pin(async move {
                        let is_turn = matches!(acp.as_str(), "session/prompt" | chat::REFLECT);
                        let _under_way = if is_turn { Some(turns.begin().await) } else { None };
                        desk.answer(request, &acp, params).await
                    })
                };
                self.once.outcome(&id, work).await
            }
            Request::Pursue { .. } if caller.role != Role::Heartbeat => {
                Reply::Refused { reason: "her own time is the heartbeat's to open".to_owned() }
            }
            Request::Pursue { run, task, prompt, tools, turn_max } => {
                let (mind, turns, request) = (self.mind.clone(), self.turns.clone(), id.clone());
                let work = move || -> BoxFuture<'static, Reply> {
                    Box::pin(async move {
                        let _under_way = turns.begin().await;
                        let work = Work {
                            request,
                            run: Some(run),
                            tools: Some(tools),
                            rounds_max: turn::ROUNDS_MAX,
                            tokens_max: mind.run_tokens_max,
                            looks_back_on: [].into(),
                            looks_back_from: 0,
                            is_part: false,
                            in_parts: Arc::default(),
                        };
                        pursue::pursue(&mind, &task, prompt, work, turn_max.unsigned_abs()).await
                    })
                };
                self.once.outcome(&id, work).await
            }
            Request::Decide { .. } if caller.role != Role::Supervisor => {
                Reply::Refused { reason: "a person's word comes through the supervisor alone".to_owned() }
            }
            Request::Decide { ask, decision } => {
                Reply::Decided { waited: self.mind.approvals.decided(&ask, decision) }
            }
            Request::Model(_) if caller.role != Role::Supervisor => {
                Reply::Refused { reason: "which model thinks is asked through the supervisor".to_owned() }
            }
            Request::Model(asked) => {
                let mind = self.mind.clone();
                let work = move || -> BoxFuture<'static, Reply> {
                    Box::pin(async move { Reply::Model(mind.models.answer(asked).await) })
                };
                self.once.outcome(&id, work).await
            }
            Request::Drain { .. } | Request::Resume if caller.role != Role::Supervisor => {
                Reply::Refused { reason: "when turns begin is the supervisor's to say".to_owned() }
            }
            Request::Drain { patience } => {
                Reply::Drained { under_way: self.turns.drain(patience.unsigned_abs()).await }
            }
            Request::Resume => {
                self.turns.resume();
                Reply::Drained { under_way: self.turns.count() }
            }
            Request::Status => Reply::Status(Status {
                model: self.mind.models.name(),
                notice: self.mind.models.notice(),
                turns: self.turns.count(),
                servers: self.mind.servers.states(),
            }),
        }
    }
}
