//! The tools of this process, beside those the soul offers: what one is, and which there are right now.
//!
//! | who offers it | where it runs | asked again by the life that takes a turn up |
//! |---|---|---|
//! | the soul | there, under an id that lasts | yes: it is the first outcome |
//! | this process | here, with a deadline and a cancel | only what changes nothing; of the rest it is said that it was interrupted |
//!
//! What a tool brings is words from outside (`outside`), unless the soul offers it.

mod bounds;
mod calling;
mod fetch;
mod files;
mod hands;
mod mcp;
mod permitting;
mod sandbox;
mod schema;
mod skill;
mod stages;
mod sub_turn;
mod todo;

use std::{
    collections::BTreeMap,
    fmt,
    path::Path,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use futures_util::future::BoxFuture;
use ipc::{config, contract::soul::ToolSpec, id::RequestId};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

pub(crate) use self::{
    calling::{Calling, call_id},
    mcp::Servers,
    sandbox::{Bench, Spawner, part},
};
use crate::{mind::Mind, session::Transcript, surroundings::Surroundings, think::Work, voice::Voice};

/// How long a tool may take that does not say otherwise.
pub(crate) const DEADLINE: Duration = Duration::from_mins(2);

/// How long a tool has to end in order once the turn was cancelled.
const END_MAX: Duration = Duration::from_secs(3);

/// A tool that runs in this process, or at its order.
pub(crate) trait Tool: Send + Sync {
    /// As a model is shown it. What is not sure to change nothing `writes`.
    fn spec(&self) -> ToolSpec;

    /// Whether a call of it is a change by itself, so that a person is asked. One that only has other tools do it is none:
    /// each of those is asked about.
    fn changes(&self) -> bool {
        self.spec().writes
    }

    /// How long this call may take. After it the tool is dropped, and whatever it started must end with it.
    fn deadline(&self, input: &Map<String, Value>) -> Duration {
        let _ = input;
        DEADLINE
    }

    /// How long it has to end in order once the turn was cancelled. After that it is dropped.
    fn ends_within(&self) -> Duration {
        END_MAX
    }

    /// Does it. The input has passed the tool's schema. It ends soon after `task.cancel`; what is dropped half done
    /// must leave nothing running.
    fn run<'a>(&'a self, task: Task<'a>, input: Map<String, Value>) -> BoxFuture<'a, Outcome>;
}

/// Whether what a tool of that name brings are her own words, and not somebody else's. What is neither says so line by line:
/// `skill` brings those of her home as they are, and quotes those of a project.
pub(crate) fn is_own(name: &str) -> bool {
    name.starts_with("soul_") || name.starts_with("desire_") || name == todo::NAME || name == skill::NAME
}

/// Whether a tool of that name keeps her plan.
pub(crate) fn is_plan(name: &str) -> bool {
    name == todo::NAME
}

/// Whether a tool of that name has others do the work, so that those are what was done.
pub(crate) fn is_delegate(name: &str) -> bool {
    name == sub_turn::NAME
}

/// What a call happens in.
#[derive(Clone, Copy)]
pub(crate) struct Task<'a> {
    /// What every turn shares.
    pub(crate) mind: &'a Mind,
    /// The conversation it is called in.
    pub(crate) session: &'a str,
    /// What was said there so far, the call included.
    pub(crate) transcript: &'a Transcript,
    /// What the turn is for.
    pub(crate) work: &'a Work,
    /// The tools it has.
    pub(crate) offer: &'a Offer,
    /// How often the model may still be asked in it.
    pub(crate) rounds_left: u32,
    /// What stood around her in the prompt that the call answers.
    pub(crate) around: &'a Arc<Surroundings>,
    /// The folder the conversation works in, where it has one: absolute, and possibly gone by now.
    pub(crate) folder: Option<&'a Path>,
    /// The request that asked for the turn.
    pub(crate) request: &'a RequestId,
    /// The id of the call, as the session names it.
    pub(crate) call: &'a str,
    /// Speaks to whoever is attached.
    pub(crate) voice: &'a Voice,
    /// Cancelled with the turn.
    pub(crate) cancel: &'a CancellationToken,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// What the model is told.
    pub(crate) output: String,
    /// Whether it failed, or was not done.
    pub(crate) failed: bool,
}

impl Outcome {
    /// It was done.
    pub(crate) fn done(output: impl Into<String>) -> Self {
        Self { output: output.into(), failed: false }
    }

    /// It was not done, and why.
    pub(crate) fn failed(why: impl Into<String>) -> Self {
        Self { output: why.into(), failed: true }
    }
}

/// The tools of this process, by who brings them. A group comes and goes as a whole, as a server of tools does.
#[derive(Default)]
pub(crate) struct Toolbox {
    groups: RwLock<BTreeMap<String, Vec<Arc<dyn Tool>>>>,
}

impl fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let groups = self.groups.read().unwrap_or_else(PoisonError::into_inner);
        f.debug_list().entries(groups.keys()).finish()
    }
}

impl Toolbox {
    /// The tools that need nothing but this process.
    pub(crate) fn with_own(settings: &config::Tools) -> Self {
        let toolbox = Self::default();
        toolbox.bring("own", vec![Arc::new(skill::Skill), Arc::new(sub_turn::SubTurn), Arc::new(todo::Todo)]);
        toolbox.bring("web", vec![Arc::new(fetch::Fetch::new(settings))]);
        toolbox
    }

    /// The tools of files and commands, done at that bench.
    pub(crate) fn bring_hands(&self, bench: &Arc<Bench>) {
        self.bring("files", hands::all(bench));
    }

    /// From now on `group` is these tools; none takes them away.
    pub(crate) fn bring(&self, group: &str, tools: Vec<Arc<dyn Tool>>) {
        let mut groups = self.groups.write().unwrap_or_else(PoisonError::into_inner);
        if tools.is_empty() {
            groups.remove(group);
        } else {
            groups.insert(group.to_owned(), tools);
        }
    }

    /// What a model is offered: the soul's tools first, then these, always in the same order. A name the soul has, or an
    /// earlier group, is not given twice.
    pub(crate) fn offer(&self, soul: &[ToolSpec], may: impl Fn(&str) -> bool) -> Offer {
        let mut specs: Vec<ToolSpec> = soul.iter().filter(|tool| may(&tool.name)).cloned().collect();
        let mut here: BTreeMap<String, Arc<dyn Tool>> = BTreeMap::new();
        let groups = self.groups.read().unwrap_or_else(PoisonError::into_inner);
        for tool in groups.values().flatten() {
            let spec = tool.spec();
            let is_taken = soul.iter().any(|tool| tool.name == spec.name) || here.contains_key(&spec.name);
            if !is_taken && may(&spec.name) {
                here.insert(spec.name.clone(), tool.clone());
                specs.push(spec);
            }
        }
        Offer { specs, here }
    }
}

/// What a model is offered in one answer.
pub(crate) struct Offer {
    specs: Vec<ToolSpec>,
    here: BTreeMap<String, Arc<dyn Tool>>,
}

impl Offer {
    /// All of it, as the model is shown it.
    pub(crate) fn specs(&self) -> &[ToolSpec] {
        &self.specs
    }

    /// The tool of that name, and who runs it.
    fn find(&self, name: &str) -> Option<Offered<'_>> {
        let spec = self.specs.iter().find(|spec| spec.name == name)?;
        Some(Offered { spec, here: self.here.get(name) })
    }

    /// Whether a call of it changes nothing, so that it may run beside others and again.
    fn reads(&self, name: &str) -> bool {
        self.find(name).is_none_or(|tool| !tool.spec.writes)
    }
}

/// One of the tools that are offered; the soul's where it is not `here`.
struct Offered<'a> {
    spec: &'a ToolSpec,
    here: Option<&'a Arc<dyn Tool>>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    struct Named(&'static str);

    impl Tool for Named {
        fn spec(&self) -> ToolSpec {
            spec(self.0)
        }

        fn run<'a>(&'a self, _: Task<'a>, _: Map<String, Value>) -> BoxFuture<'a, Outcome> {
            Box::pin(async { Outcome::done(self.0) })
        }
    }

    fn spec(name: &str) -> ToolSpec {
        ToolSpec {
            name: name.into(),
            description: String::new(),
            input_schema: json!({"type": "object"}),
            writes: false,
        }
    }

    #[test]
    fn the_soul_comes_first_and_no_name_twice() {
        let toolbox = Toolbox::default();
        toolbox.bring("web", vec![Arc::new(Named("fetch")), Arc::new(Named("soul_read"))]);
        toolbox.bring("files", vec![Arc::new(Named("read")), Arc::new(Named("fetch"))]);
        let names = |may: &dyn Fn(&str) -> bool| {
            let offer = toolbox.offer(&[spec("soul_read")], may);
            offer.specs().iter().map(|spec| spec.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(names(&|_| true), ["soul_read", "read", "fetch"]);
        assert_eq!(names(&|name| name != "read"), ["soul_read", "fetch"]);
        let offer = toolbox.offer(&[spec("soul_read")], |_| true);
        assert!(
            offer.find("soul_read").is_some_and(|tool| tool.here.is_none()),
            "nobody stands in for the soul"
        );
        assert!(offer.find("fetch").is_some_and(|tool| tool.here.is_some()) && offer.find("bash").is_none());
        toolbox.bring("files", Vec::new());
        assert_eq!(names(&|_| true), ["soul_read", "fetch"]);
    }
}
