//! Which calls wait for a person's word, who was asked, and what came of it: a plain state without a wire or a clock.
//!
//! ```text
//!  asked ─▶ open ── the first word of a person ───────▶ decided ─▶ gone, when the agent says that it is settled
//!             │  ── nobody to ask, nobody who can answer ─▲          or its turn is over
//!             └─ who attaches meanwhile is asked too
//! ```
//!
//! Only persons are asked, and only who was asked is heard. A question whose clients have all gone stays open: somebody
//! may come back, and the agent knows how long it waits.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ipc::{
    acp::{PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionResponse},
    contract::approval::{Ask, By, Decision},
    id::RequestId,
    text::{one_line, prefix},
    wire::{Id, Response},
};

use super::hub::ClientId;

/// How many questions may be open at once; the oldest gives way. A turn has a few.
const OPEN_MAX: usize = 256;
/// Of how many questions it is remembered that they are over.
const OVER_MAX: usize = 256;
/// The longest reason that is passed on, in characters.
const REASON_CHARS_MAX: usize = 2000;

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Act {
    /// Ask this client.
    Put { client: ClientId, ask: Ask },
    /// Tell it that the question is over.
    Withdraw { client: ClientId, ask: RequestId },
    /// Tell the agent, and remember it where it is for good.
    Decide { ask: Ask, decision: Decision, remember: bool },
    /// Tell a client why its answer counts for nothing.
    Refuse { client: ClientId, why: String },
}

/// The questions.
#[derive(Debug, Default)]
pub(crate) struct Asks {
    open: BTreeMap<RequestId, Question>,
    over: VecDeque<RequestId>,
}

#[derive(Debug)]
struct Question {
    ask: Ask,
    /// Who was asked, and is attached.
    asked: BTreeSet<ClientId>,
    /// Who of them will not answer.
    declined: BTreeSet<ClientId>,
    /// Whether somebody who was asked has gone, and may come back.
    awaited: bool,
    decided: Option<Decision>,
}

impl Asks {
    /// The agent asks, or asks again; `persons` are attached to the session.
    pub(crate) fn asked(&mut self, ask: Ask, persons: &[ClientId]) -> Vec<Act> {
        if let Some(question) = self.open.get_mut(&ask.id) {
            return match &question.decided {
                // the decision was lost with a life of the agent
                Some(decision) => {
                    vec![Act::Decide { ask, decision: decision.clone(), remember: false }]
                }
                None => question.put(persons),
            };
        }
        if persons.is_empty() {
            let decision = nobody("no person is attached to this session");
            return vec![Act::Decide { ask, decision, remember: false }];
        }
        let mut acts = Vec::new();
        if self.open.len() >= OPEN_MAX
            && let Some(oldest) = self.open.keys().next().cloned()
        {
            acts.extend(self.end(&oldest));
        }
        let id = ask.id.clone();
        let mut question = Question {
            ask,
            asked: BTreeSet::new(),
            declined: BTreeSet::new(),
            awaited: false,
            decided: None,
        };
        acts.extend(question.put(persons));
        self.open.insert(id, question);
        acts
    }

    /// A person attached to a session.
    pub(crate) fn attached(&mut self, client: ClientId, session: &str) -> Vec<Act> {
        let of = self.open.values_mut().filter(|of| of.ask.session == session && of.decided.is_none());
        of.flat_map(|question| question.put(&[client])).collect()
    }

    /// A client is no longer attached to a session; to none where none is named.
    pub(crate) fn left(&mut self, client: ClientId, session: Option<&str>) {
        let of = self.open.values_mut().filter(|of| session.is_none_or(|session| of.ask.session == session));
        for question in of {
            if question.asked.remove(&client) && !question.declined.remove(&client) {
                question.awaited = true;
            }
        }
    }

    /// A client answers something.
    pub(crate) fn answered(&mut self, client: ClientId, person: bool, answer: Response) -> Vec<Act> {
        let refuse = |why: &str| vec![Act::Refuse { client, why: why.to_owned() }];
        let id = match answer.id {
            Id::Text(id) => RequestId::try_from(id).ok(),
            Id::Number(_) | Id::Null => None,
        };
        let Some(id) = id else {
            return refuse("nothing was asked under that id; answer with the id of the question");
        };
        let says_nothing = answer.outcome.is_err()
            || matches!(
                read(&answer.outcome),
                Ok(RequestPermissionResponse { outcome: RequestPermissionOutcome::Cancelled, .. })
            );
        let Some(question) = self.open.get_mut(&id) else {
            let over = self.over.contains(&id);
            // whoever was told that a question is over may say so
            return match (over, says_nothing) {
                (true, true) => Vec::new(),
                (true, false) => refuse("the question is over; this answer changes nothing"),
                (false, _) => refuse("nothing was asked under that id; answer with the id of the question"),
            };
        };
        if !person {
            return refuse("only a person may answer that; a process that Lisa started is not one");
        }
        if !question.asked.contains(&client) {
            return refuse("this was asked of others; attach to its session to be asked as well");
        }
        if question.decided.is_some() {
            return if says_nothing {
                Vec::new()
            } else {
                refuse("somebody has answered already; this answer changes nothing")
            };
        }
        let (kind, reason) = match chosen(&question.ask, &answer.outcome) {
            Ok(Some(chosen)) => chosen,
            Ok(None) => return self.declined(client, &id, answer.outcome.err().map(|error| error.message)),
            Err(why) => return vec![Act::Refuse { client, why }],
        };
        let by = By::Person;
        let (decision, remember) = match kind {
            PermissionOptionKind::AllowOnce => (Decision::Allowed { by }, false),
            PermissionOptionKind::AllowAlways => (Decision::Allowed { by }, true),
            PermissionOptionKind::RejectAlways => (Decision::Refused { by, reason }, true),
            // a kind of the future allows nothing
            _ => (Decision::Refused { by, reason }, false),
        };
        question.decide(decision, remember, Some(client))
    }

    /// A client will not answer. Where nobody else may, that is a no.
    fn declined(&mut self, client: ClientId, id: &RequestId, why: Option<String>) -> Vec<Act> {
        let Some(question) = self.open.get_mut(id) else { return Vec::new() };
        question.declined.insert(client);
        if question.awaited || question.declined.len() < question.asked.len() {
            return Vec::new();
        }
        let why = why.map(|why| one_line(&why, REASON_CHARS_MAX));
        let decision = nobody(why.as_deref().unwrap_or("whoever is attached would not answer"));
        question.decide(decision, false, None)
    }

    /// The agent needs no answer any more.
    pub(crate) fn settled(&mut self, ask: &RequestId) -> Vec<Act> {
        self.end(ask)
    }

    /// A turn is over, in whatever way.
    pub(crate) fn turn_over(&mut self, turn: &RequestId) -> Vec<Act> {
        let of: Vec<_> =
            self.open.values().filter(|of| of.ask.turn == *turn).map(|of| of.ask.id.clone()).collect();
        of.iter().flat_map(|ask| self.end(ask)).collect()
    }

    fn end(&mut self, ask: &RequestId) -> Vec<Act> {
        let Some(question) = self.open.remove(ask) else { return Vec::new() };
        if self.over.len() >= OVER_MAX {
            self.over.pop_front();
        }
        self.over.push_back(ask.clone());
        if question.decided.is_some() { Vec::new() } else { question.withdraw(None) }
    }
}

impl Question {
    fn put(&mut self, persons: &[ClientId]) -> Vec<Act> {
        let fresh = persons.iter().filter(|person| self.asked.insert(**person)).collect::<Vec<_>>();
        fresh.into_iter().map(|client| Act::Put { client: *client, ask: self.ask.clone() }).collect()
    }

    fn decide(&mut self, decision: Decision, remember: bool, by: Option<ClientId>) -> Vec<Act> {
        self.decided = Some(decision.clone());
        let mut acts = vec![Act::Decide { ask: self.ask.clone(), decision, remember }];
        acts.extend(self.withdraw(by));
        acts
    }

    /// Tells everybody who was asked, and has not said anything, that it is over.
    fn withdraw(&self, but: Option<ClientId>) -> Vec<Act> {
        let of = self.asked.difference(&self.declined).filter(|client| Some(**client) != but);
        of.map(|client| Act::Withdraw { client: *client, ask: self.ask.id.clone() }).collect()
    }
}

fn nobody(reason: &str) -> Decision {
    Decision::Refused { by: By::Nobody, reason: reason.to_owned() }
}

fn read<E: Clone>(outcome: &Result<serde_json::Value, E>) -> Result<RequestPermissionResponse, String> {
    let Ok(result) = outcome else { return Err("it is an error".to_owned()) };
    serde_json::from_value(result.clone()).map_err(|error| error.to_string())
}

/// What was chosen, and why; nothing where the client will not say. An answer that cannot be understood is told so.
fn chosen<E: Clone>(
    ask: &Ask,
    outcome: &Result<serde_json::Value, E>,
) -> Result<Option<(PermissionOptionKind, String)>, String> {
    if outcome.is_err() {
        return Ok(None);
    }
    let again = "answer again with one of its options";
    let response =
        read(outcome).map_err(|why| format!("the answer does not fit ({}); {again}", one_line(&why, 200)))?;
    let selected = match response.outcome {
        RequestPermissionOutcome::Selected(selected) => selected,
        RequestPermissionOutcome::Cancelled => return Ok(None),
        _ => return Err(format!("the answer has an outcome that is unknown here; {again}")),
    };
    let options = ask.params.get("options").cloned().unwrap_or_default();
    let options: Vec<PermissionOption> = serde_json::from_value(options).unwrap_or_default();
    let id = selected.option_id;
    let option = options.into_iter().find(|option| option.option_id == id);
    let option = option
        .ok_or_else(|| format!("`{}` is none of its options; {again}", one_line(&id.to_string(), 80)))?;
    let reason = response.meta.as_ref().and_then(|meta| meta.get("lisa")?.get("reason")?.as_str());
    Ok(Some((option.kind, prefix(reason.unwrap_or_default(), REASON_CHARS_MAX).to_owned())))
}

#[cfg(test)]
mod tests;
