//! `todo`: the steps of a longer piece of work, shown to whoever is attached as the plan it is.
//!
//! The list is kept where everything said is kept, in the conversation: each call gives it as a whole.

use futures_util::future::BoxFuture;
use ipc::{
    acp::{Plan, PlanEntry, PlanEntryPriority, PlanEntryStatus},
    contract::soul::ToolSpec,
    text::one_line,
};
use serde_json::{Map, Value, json};

use super::{Outcome, Task, Tool};

/// Its name.
pub(crate) const NAME: &str = "todo";
/// The most steps of one list; more is a list nobody follows.
const STEPS_MAX: usize = 50;
/// The longest step, in characters.
const STEP_CHARS_MAX: usize = 300;
/// How far a step is, as the model says it.
const STATES: [&str; 3] = ["pending", "in_progress", "completed"];

/// The tool.
pub(super) struct Todo;

impl Tool for Todo {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: NAME.to_owned(),
            description: "Keep the steps of a longer piece of work: give the whole list each time, with how far each step is. \
                 Your person sees it. Use it where there are three steps or more, and keep one step in progress."
                .to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "steps": {
                        "type": "array", "maxItems": STEPS_MAX,
                        "items": {
                            "type": "object",
                            "properties": {
                                "step": {"type": "string", "minLength": 1, "maxLength": STEP_CHARS_MAX, "description": "what to do, one line"},
                                "status": {"type": "string", "enum": STATES},
                            },
                            "required": ["step", "status"],
                            "additionalProperties": false,
                        },
                    },
                },
                "required": ["steps"],
                "additionalProperties": false,
            }),
            writes: false,
        }
    }

    fn run<'a>(&'a self, task: Task<'a>, input: Map<String, Value>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let (plan, said) = plan(&input);
            task.voice.plan(plan);
            Outcome::done(said)
        })
    }
}

/// The plan a list is, and what the model is told of it.
fn plan(input: &Map<String, Value>) -> (Plan, String) {
    let mut entries = Vec::new();
    let mut done = 0;
    for step in input.get("steps").and_then(Value::as_array).into_iter().flatten() {
        let text = step.get("step").and_then(Value::as_str).unwrap_or_default();
        let status = match step.get("status").and_then(Value::as_str) {
            Some("completed") => PlanEntryStatus::Completed,
            Some("in_progress") => PlanEntryStatus::InProgress,
            _ => PlanEntryStatus::Pending,
        };
        done += usize::from(status == PlanEntryStatus::Completed);
        entries.push(PlanEntry::new(one_line(text, STEP_CHARS_MAX), PlanEntryPriority::Medium, status));
    }
    let said = format!("{done} of {} steps are done", entries.len());
    (Plan::new(entries), said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_a_plan() {
        let input = json!({"steps": [
            {"step": "读文件", "status": "completed"},
            {"step": "change\nit", "status": "in_progress"},
            {"step": "test", "status": "pending"},
        ]});
        let (plan, said) = plan(input.as_object().unwrap());
        assert_eq!(said, "1 of 3 steps are done");
        let shown: Vec<_> =
            plan.entries.iter().map(|entry| (entry.content.as_str(), &entry.status)).collect();
        assert_eq!(
            shown,
            [
                ("读文件", &PlanEntryStatus::Completed),
                ("change it", &PlanEntryStatus::InProgress),
                ("test", &PlanEntryStatus::Pending)
            ]
        );
    }
}
