//! A call's way past a person's word: written down, asked, written down again, and only then run.

use futures_util::future::join_all;
use ipc::{
    contract::approval::{Ask, Decision},
    exit::chain,
};

use super::{Calling, Offered, call_id, calling::title, schema};
use crate::{
    approval::{self, Asked, Need, Stand, denied_before, needs},
    provider::Input,
    session::{Kind, Transcript},
    turn::Call,
};

/// Whether a call may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Permit {
    /// Nothing stands against it.
    Given,
    /// A person allowed it in this life; it has not run in any.
    Fresh,
    /// It may not; the model is told this.
    Refused(String),
}

/// What is to be found out about a call.
enum Open {
    Known(Permit),
    Asked(Box<Ask>),
}

impl Calling<'_> {
    /// Whether each of these calls may run. Those that need a word are asked about at once.
    pub(super) async fn permits(&self, transcript: &mut Transcript, calls: &[Call]) -> Vec<Permit> {
        let mut open = Vec::new();
        for call in calls {
            open.push(self.question(transcript, call).await);
        }
        let (mind, cancel) = (self.mind, self.cancel);
        let decisions = join_all(open.into_iter().map(|open| async move {
            match open {
                Open::Known(permit) => Err(permit),
                Open::Asked(ask) => Ok(mind.approvals.ask(&mind.notices, *ask, cancel).await),
            }
        }));
        let mut permits = Vec::new();
        for (call, decision) in calls.iter().zip(decisions.await) {
            permits.push(match decision {
                Err(known) => known,
                Ok(decision) => self.settled(transcript, call, &decision).await,
            });
        }
        permits
    }

    /// The question about a call, written down; or what is known without asking.
    async fn question(&self, transcript: &mut Transcript, call: &Call) -> Open {
        let given = Open::Known(Permit::Given);
        // what cannot run is refused by its own reasons, and nobody is troubled with it
        let Some(Offered { spec, here: Some(tool) }) = self.offer.find(&call.name) else { return given };
        let Input::Object(input) = &call.input else { return given };
        if schema::fits(&spec.input_schema, input).is_err() {
            return given;
        }
        let request = &self.work.request;
        let stand = transcript.stand(request, &call.id);
        match needs(self.mind.approvals.mode, tool.changes(), stand, self.is_taken_up) {
            Need::Nothing => return given,
            Need::Refusal => return Open::Known(Permit::Refused(denied_before(&call.name))),
            Need::Word => {}
        }
        if let Err(permit) = self.stands(transcript, call, Stand::Asked).await {
            return Open::Known(permit);
        }
        self.voice.tool_waits(&call.id);
        let shown = serde_json::Value::Object(input.clone());
        let title = title(&call.name, &shown);
        let (id, part) = (self.voice.call(&call.id), self.work.is_part);
        let asked = Asked { id: &id, tool: &call.name, title: &title, input, writes: spec.writes };
        let waits = self.work.run.is_none() && (part || transcript.header.kind.is_none_or(Kind::is_talk));
        // a piece of a turn is asked about where the person is: in the session of the whole
        let place = (self.voice.session(), transcript.header.cwd.as_str());
        let id = call_id(request.as_str(), &format!("approve:{}", call.id));
        Open::Asked(Box::new(approval::ask_for(id, self.voice.turn(), place, waits, asked)))
    }

    async fn settled(&self, transcript: &mut Transcript, call: &Call, decision: &Decision) -> Permit {
        let denial = approval::denial(&call.name, decision);
        // one that was cancelled, or that nobody answered, is asked about no more either: it has its result
        let stand = if denial.is_none() { Stand::Allowed } else { Stand::Refused };
        if let Err(permit) = self.stands(transcript, call, stand).await {
            return permit;
        }
        if let Some(denial) = denial {
            return Permit::Refused(denial);
        }
        self.voice.tool_goes_on(&call.id);
        Permit::Fresh
    }

    /// Writes down how far a call has come. One that cannot be written down does not run.
    async fn stands(&self, transcript: &mut Transcript, call: &Call, stand: Stand) -> Result<(), Permit> {
        let written = transcript.stands(&self.work.request, &call.id, stand, self.mind.now()).await;
        written.map_err(|error| {
            Permit::Refused(format!(
                "[denied] `{}` was not run: that it waits for a person's word could not be written down ({})",
                call.name,
                chain(&error)
            ))
        })
    }
}
