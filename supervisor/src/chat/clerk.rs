//! The clerk: between the agent, which asks, and the hub, which knows who is attached. Looks first whether a person has
//! decided about exactly this call for good, and writes down what is decided so.

use std::path::PathBuf;

use ipc::{
    client::Client,
    contract::{
        agent::{self, Agent, Audience},
        approval::{Ask, By, Decision},
    },
    exit::chain,
    id::RequestId,
    reveal::reveal,
    text::one_line,
};
use jiff::Timestamp;
use ractor::ActorRef;
use tokio::sync::mpsc;
use tracing::{info, warn};

use super::{hub::HubMsg, lifeline};
use crate::approvals::{self, Rule, RulesError};

/// How many words may wait for the clerk; the agent asks again where one is lost.
pub(crate) const QUEUE_MAX: usize = 256;
/// How much of what a person saw is kept beside a rule.
const SHOWN_CHARS_MAX: usize = 2000;
/// How long the agent may take to hear a decision, which it asks for again.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(15);

/// What the clerk is told.
#[derive(Debug)]
pub(crate) enum ClerkMsg {
    /// The agent asks.
    Asked(Box<Ask>),
    /// The agent needs no answer any more.
    Settled(RequestId),
    /// A question was decided, for good or not.
    Decided { ask: Box<Ask>, decision: Decision, remember: bool },
}

/// Who is spoken with, and where the rules are.
#[derive(Debug)]
pub(crate) struct Clerk {
    pub(crate) agent: Client<Agent>,
    pub(crate) hub: ActorRef<HubMsg>,
    pub(crate) folder: PathBuf,
    pub(crate) now: fn() -> Timestamp,
}

impl Clerk {
    /// Works until nobody can tell it anything any more.
    pub(crate) async fn work(self, mut told: mpsc::Receiver<ClerkMsg>) {
        while let Some(msg) = told.recv().await {
            match msg {
                ClerkMsg::Asked(ask) => self.asked(*ask).await,
                // through the same door as the question, so that it never overtakes it
                ClerkMsg::Settled(ask) => {
                    let _ = self.hub.cast(HubMsg::Settled { ask });
                }
                ClerkMsg::Decided { ask, decision, remember } => {
                    if remember {
                        self.remember(&ask, &decision).await;
                    }
                    self.tell(&ask, decision);
                }
            }
        }
    }

    async fn asked(&self, ask: Ask) {
        let folder = self.folder.clone();
        let rules = on_disk(move || approvals::read(&folder)).await;
        let known = rules.as_ref().map_or_else(
            |error| {
                warn!(error = chain(error), "what is decided for good cannot be read; nothing is");
                None
            },
            |rules| rules.decide(&ask.call),
        );
        let (by, reason) = (By::Rule, String::new());
        match known {
            Some(true) => self.tell(&ask, Decision::Allowed { by }),
            Some(false) => self.tell(&ask, Decision::Refused { by, reason }),
            None if ask.waits => {
                let _ = self.hub.cast(HubMsg::Asked(Box::new(ask)));
            }
            None => {
                let reason = "this is her own time, and nobody is asked in it".to_owned();
                self.tell(&ask, Decision::Refused { by: By::Nobody, reason });
            }
        }
    }

    async fn remember(&self, ask: &Ask, decision: &Decision) {
        let call = &ask.params["toolCall"];
        let shown = call.pointer("/content/0/content/text").and_then(serde_json::Value::as_str);
        let rule = Rule {
            call: ask.call.clone(),
            allow: matches!(decision, Decision::Allowed { .. }),
            shown: one_line(&reveal(shown.unwrap_or_default()), SHOWN_CHARS_MAX),
            at: (self.now)(),
        };
        let folder = self.folder.clone();
        if let Err(error) = on_disk(move || approvals::remember(&folder, rule)).await {
            let error = chain(&error);
            warn!(error, "what was decided for good could not be kept");
            let said = format!("\n[what you decided counts for this once: {error}]\n");
            let _ = self.hub.cast(HubMsg::Update {
                session: ask.session.clone(),
                audience: Audience::Everybody,
                turn: Some(ask.turn.clone()),
                method: "session/update".to_owned(),
                params: lifeline::update(&ask.session, &lifeline::note(&said)),
            });
        }
    }

    /// Tells the agent. Whether it arrives is not waited for: a question that is still open is asked again.
    fn tell(&self, ask: &Ask, decision: Decision) {
        info!(ask = %ask.id, tool = ask.call.tool, ?decision, "a call was decided about");
        let (agent, request) = (self.agent.clone(), agent::Request::Decide { ask: ask.id.clone(), decision });
        tokio::spawn(async move {
            if let Err(error) = agent.ask(&request, PATIENCE).await {
                info!(%error, "a decision did not arrive; it is told again when the agent asks again");
            }
        });
    }
}

async fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RulesError> + Send + 'static,
) -> Result<T, RulesError> {
    tokio::task::spawn_blocking(work).await.expect("work on rules does not panic")
}
