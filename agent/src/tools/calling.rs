//! Calls that a model makes: checked, run at the soul or here, answered in the order they were made.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use ipc::{
    client::{AskError, Patience},
    contract::{
        agent::ToolRun,
        soul::{self, Called, Objection, Reply},
    },
    digest::sha256_hex,
    id::RequestId,
    reveal::reveal,
    text::one_line,
};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::{
    Offer, Offered, Outcome, Task, Tool, bounds::bounded, permitting::Permit, schema, stages::stages,
};
use crate::{
    mind::Mind,
    outside,
    provider::{Block, Input},
    session::Transcript,
    surroundings::Surroundings,
    think::Work,
    turn::Call,
    voice::Voice,
};

/// How long the soul may take. Longer than a restart of it, which the question outlives.
const SOUL_PATIENCE: Duration = Duration::from_secs(30);

/// What a call happens in: one answer of a model in one turn.
pub(crate) struct Calling<'a> {
    pub(crate) mind: &'a Mind,
    pub(crate) work: &'a Work,
    pub(crate) voice: &'a Voice,
    pub(crate) cancel: &'a CancellationToken,
    pub(crate) offer: &'a Offer,
    /// What stood around her in the prompt it answers.
    pub(crate) around: &'a Arc<Surroundings>,
    /// Which model calls.
    pub(crate) model: &'a str,
    /// Whether an earlier life may have run these already.
    pub(crate) is_taken_up: bool,
    /// How often the model may still be asked in the turn.
    pub(crate) rounds_left: u32,
}

/// What came of one call.
pub(crate) struct Done {
    /// For the model.
    pub(crate) block: Block,
    /// For whoever asks what was done.
    pub(crate) run: ToolRun,
    /// The objection it raised.
    pub(crate) objection: Option<Box<Objection>>,
}

impl Calling<'_> {
    /// The calls in the order they are run in.
    pub(crate) fn stages(&self, calls: Vec<Call>) -> Vec<Vec<Call>> {
        stages(calls, |name| self.offer.reads(name))
    }

    /// Runs the calls of one stage: those of them that nobody has anything against.
    pub(crate) async fn run(&self, transcript: &mut Transcript, stage: Vec<Call>) -> Vec<Done> {
        for call in &stage {
            self.begins(call);
        }
        let permits = self.permits(transcript, &stage).await;
        let transcript = &*transcript;
        let calls = stage.into_iter().zip(permits);
        join_all(calls.map(|(call, permit)| self.call(transcript, call, permit))).await
    }

    fn begins(&self, call: &Call) {
        let shown = match &call.input {
            Input::Object(input) => Value::Object(input.clone()),
            Input::Unusable { raw, .. } => Value::String(raw.clone()),
        };
        self.voice.tool_begins(&call.id, &title(&call.name, &shown), self.writes(&call.name), &shown);
    }

    /// Whether a call of that tool may change something; one that there is not does nothing.
    fn writes(&self, name: &str) -> bool {
        self.offer.find(name).is_some_and(|tool| tool.spec.writes)
    }

    async fn call(&self, transcript: &Transcript, call: Call, permit: Permit) -> Done {
        let Call { id, name, input } = call;
        let tool = self.offer.find(&name);
        let writes = self.writes(&name);
        let mut objection = None;
        let is_fresh = permit == Permit::Fresh;
        let outcome = match (tool, input) {
            _ if let Permit::Refused(why) = permit => Outcome::failed(why),
            (None, _) => Outcome::failed(format!("there is no tool `{}` here", one_line(&name, 80))),
            (Some(_), Input::Unusable { why, .. }) => {
                Outcome::failed(format!("`{name}` was not run: its input cannot be used, {why}"))
            }
            (Some(Offered { spec, here: None }), Input::Object(input)) => {
                let called = self.at_the_soul(transcript, (&id, spec.writes), name.clone(), input).await;
                if let Some(written) = &called.written {
                    self.mind.portrait.told(written.prompt_version);
                }
                objection = called.objection;
                Outcome { output: called.output, failed: called.failed }
            }
            (Some(Offered { spec, here: Some(_) }), _) if self.is_taken_up && spec.writes && !is_fresh => {
                Outcome::failed(format!(
                    "`{name}` was interrupted by a restart; whether it took effect is unknown, look before doing it again"
                ))
            }
            (Some(Offered { spec, here: Some(tool) }), Input::Object(input)) => {
                match schema::fits(&spec.input_schema, &input) {
                    Ok(()) => {
                        let done = self.here(transcript, (&id, &name), tool.as_ref(), input).await;
                        Outcome { output: bounded(done.output), ..done }
                    }
                    Err(why) => Outcome::failed(format!("`{name}` was not run: {why}")),
                }
            }
        };
        // what is in documents and files may be anybody's who had a hand on them
        let output = reveal(&outcome.output).into_owned();
        self.voice.tool_ends(&id, &output, outcome.failed);
        let run = ToolRun { tool: name, failed: outcome.failed, writes };
        Done { block: Block::result(id, output, outcome.failed), run, objection }
    }

    async fn at_the_soul(
        &self,
        transcript: &Transcript,
        (id, writes): (&str, bool),
        tool: String,
        input: Map<String, Value>,
    ) -> Called {
        let input = Value::Object(input);
        let (work, messages) = (self.work, &transcript.messages);
        // a turn whose beginning is not known is all of the conversation: too much is marked then, and nothing too little
        let begin = transcript.begin(&work.request).unwrap_or(0);
        let outside = writes
            && (outside::stems(messages, begin, &input)
                || outside::stems(&work.looks_back_on, work.looks_back_from, &input)
                || outside::repeats_any(&input, &self.around.foreign));
        let call = soul::Call {
            tool,
            outside,
            input,
            run: work.run.clone(),
            session: Some(transcript.header.id.clone()),
            model: self.model.to_owned(),
        };
        ask_the_soul(self.mind, call_id(work.request.as_str(), id), call).await
    }

    async fn here(
        &self,
        transcript: &Transcript,
        (id, name): (&str, &str),
        tool: &dyn Tool,
        input: Map<String, Value>,
    ) -> Outcome {
        let deadline = tool.deadline(&input);
        let task = Task {
            mind: self.mind,
            session: &transcript.header.id,
            transcript,
            work: self.work,
            offer: self.offer,
            rounds_left: self.rounds_left,
            around: self.around,
            folder: transcript.header.folder(),
            request: &self.work.request,
            call: id,
            voice: self.voice,
            cancel: self.cancel,
        };
        let ended = async {
            self.cancel.cancelled().await;
            tokio::time::sleep(tool.ends_within()).await;
        };
        tokio::select! {
            outcome = tool.run(task, input) => outcome,
            () = tokio::time::sleep(deadline) => Outcome::failed(format!(
                "`{name}` took longer than {} s and was ended; ask for less at once", deadline.as_secs()
            )),
            () = ended => Outcome::failed(format!("`{name}` was cancelled")),
        }
    }
}

async fn ask_the_soul(mind: &Mind, id: RequestId, call: soul::Call) -> Called {
    let tool = call.tool.clone();
    match mind.soul.ask_as(id.clone(), &soul::Request::Call(call), Patience::of(SOUL_PATIENCE)).await {
        Ok(Reply::Called(called)) => called,
        Ok(Reply::Refused { reason }) => Called::failed(reason),
        Ok(_) => Called::failed("the soul answered another question".to_owned()),
        Err(error) => {
            warn!(request = %id, tool, %error, "tool has no outcome");
            let lost = matches!(error, AskError::Late { .. } | AskError::Lost { .. });
            let rest =
                if lost { "; whether it took effect is unknown, look before doing it again" } else { "" };
            Called::failed(format!("`{tool}` has no outcome: {error}{rest}"))
        }
    }
}

/// The id of a call in the soul, the same in every life that asks for it.
pub(crate) fn call_id(turn: &str, call: &str) -> RequestId {
    let digest = sha256_hex(format!("{turn}:{call}").as_bytes());
    let short: String = digest.chars().take(32).collect();
    RequestId::try_from(short).expect("hexadecimal digits are an id")
}

pub(super) fn title(name: &str, input: &Value) -> String {
    let keys = ["field", "slug", "what", "tool", "name", "command", "path", "pattern", "url", "query"];
    let about = keys.iter().find_map(|key| input.get(key)?.as_str());
    match about {
        Some(about) => format!("{name} {}", one_line(about, 60)),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_call_has_one_id_in_every_life() {
        assert_eq!(call_id("abc", "call_1_0"), call_id("abc", "call_1_0"));
        assert_ne!(call_id("abc", "call_1_0"), call_id("abc", "call_1_1"));
        assert_ne!(call_id("abc", "call_1_0"), call_id(RequestId::fresh().as_str(), "call_1_0"));
    }

    #[test]
    fn a_title_names_the_tool_and_what_it_is_about() {
        assert_eq!(title("soul_patch", &json!({"field": "identity", "content": "x"})), "soul_patch identity");
        assert_eq!(title("soul_journal", &json!({"entry": "x"})), "soul_journal");
    }
}
