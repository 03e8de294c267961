//! What comes after a model's answer: a plain function of the answer and of how often it was asked in this turn.

use ipc::acp::StopReason;

use crate::{
    objection::TOOL,
    provider::{Block, Completion, Input, Stop},
};

/// How often a model is asked in one turn. A turn that is not done by then is going in circles.
pub(crate) const ROUNDS_MAX: u32 = 32;

/// One call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) input: Input,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// Run these, in order, and ask again with their results.
    Run(Vec<Call>),
    /// The turn is over; the runtime adds this sentence where there is one.
    End(StopReason, Option<&'static str>),
}

/// Decides after the `round`-th answer of a turn, counted from 1, that may have `rounds_max` of them.
pub(crate) fn after(answer: &Completion, round: u32, rounds_max: u32) -> Step {
    match answer.stop {
        Stop::ToolUse if round >= rounds_max => Step::End(
            StopReason::MaxTurnRequests,
            Some("the turn was ended after as many steps as one may have; say \"go on\" to let it continue"),
        ),
        Stop::ToolUse => Step::Run(calls(&answer.blocks)),
        Stop::EndTurn if answer.blocks.is_empty() => {
            Step::End(StopReason::EndTurn, Some("the model answered nothing; ask again, or in other words"))
        }
        Stop::EndTurn => Step::End(StopReason::EndTurn, None),
        Stop::MaxTokens => Step::End(
            StopReason::MaxTokens,
            Some("the answer was cut at the model's limit and is not whole; say \"go on\" for the rest"),
        ),
        Stop::Refusal => Step::End(StopReason::Refusal, Some("the provider withheld the rest of the answer")),
    }
}

/// The calls of the last answer of a turn that is cut off for going in circles which are run all the same: what she
/// objects to is never dropped with the rest.
pub(crate) fn last_calls(answer: &Completion, round: u32, rounds_max: u32) -> Vec<Call> {
    if answer.stop != Stop::ToolUse || round < rounds_max {
        return Vec::new();
    }
    calls(&answer.blocks).into_iter().filter(|call| call.name == TOOL).collect()
}

/// The calls among blocks.
pub(crate) fn calls(blocks: &[Block]) -> Vec<Call> {
    let call = |block: &Block| match block {
        Block::ToolUse { id, name, input } => {
            Some(Call { id: id.clone(), name: name.clone(), input: input.clone() })
        }
        Block::Text { .. } | Block::Thinking { .. } | Block::ToolResult { .. } | Block::Other(_) => None,
    };
    blocks.iter().filter_map(call).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::Usage;

    #[test]
    fn g1_g2_g3_every_answer_leads_somewhere() {
        let call =
            Block::ToolUse { id: "a".into(), name: "t".into(), input: Input::Object(serde_json::Map::new()) };
        let check =
            |blocks: Vec<Block>, stop: Stop, round: u32, run: usize, end: Option<(StopReason, bool)>| {
                let answer = Completion { model: "m".into(), blocks, stop, usage: Usage::default() };
                match after(&answer, round, ROUNDS_MAX) {
                    Step::Run(calls) => assert_eq!((calls.len(), end), (run, None)),
                    Step::End(reason, said) => assert_eq!(Some((reason, said.is_some())), end),
                }
            };
        check(vec![Block::text("hi")], Stop::EndTurn, 1, 0, Some((StopReason::EndTurn, false)));
        check(vec![], Stop::EndTurn, 1, 0, Some((StopReason::EndTurn, true)));
        check(vec![call.clone(), call.clone()], Stop::ToolUse, 1, 2, None);
        check(vec![call.clone()], Stop::ToolUse, ROUNDS_MAX - 1, 1, None);
        // g1: the cap in the middle of tools is said aloud; g3: ending exactly at the cap is an ordinary end
        check(vec![call], Stop::ToolUse, ROUNDS_MAX, 0, Some((StopReason::MaxTurnRequests, true)));
        check(vec![Block::text("hi")], Stop::EndTurn, ROUNDS_MAX, 0, Some((StopReason::EndTurn, false)));
        check(vec![Block::text("hi")], Stop::MaxTokens, 1, 0, Some((StopReason::MaxTokens, true)));
        check(vec![], Stop::Refusal, 1, 0, Some((StopReason::Refusal, true)));
    }

    #[test]
    fn an_objection_in_the_last_answer_is_raised_although_nothing_else_runs() {
        let call = |name: &str| Block::ToolUse {
            id: name.into(),
            name: name.into(),
            input: Input::Object(serde_json::Map::new()),
        };
        let check = |stop: Stop, round: u32, expected: &[&str]| {
            let blocks = vec![call("soul_patch"), call(TOOL)];
            let last = last_calls(
                &Completion { model: "m".into(), blocks, stop, usage: Usage::default() },
                round,
                ROUNDS_MAX,
            );
            assert_eq!(last.iter().map(|call| call.name.as_str()).collect::<Vec<_>>(), expected);
        };
        check(Stop::ToolUse, ROUNDS_MAX, &[TOOL]);
        check(Stop::ToolUse, ROUNDS_MAX - 1, &[]);
        check(Stop::EndTurn, ROUNDS_MAX, &[]);
    }
}
