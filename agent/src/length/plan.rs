//! Where a conversation is cut that has to become shorter: a plain function of the sizes of its messages.
//!
//! ```text
//!  summed up already │ older turns … │ the newest turn: what a person said, answer, results, answer, results …
//!                    └─── between complete turns ──┘ └──── else behind results, what was asked staying whole ────┘
//! ```
//!
//! A call and its results stay on one side. As much of the newest as there is room for is kept word for word. A cut that
//! would not make it shorter is none.

use crate::provider::{Block, Message, Role};

/// What there is to cut.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Whole<'a> {
    /// All messages.
    pub(crate) messages: &'a [Message],
    /// About how many tokens each has.
    pub(crate) sizes: &'a [u64],
    /// How many of them are summed up already.
    pub(crate) from: usize,
    /// Where the newest turn begins.
    pub(crate) begin: usize,
    /// About how many tokens all has that is sent of it now.
    pub(crate) load: u64,
}

/// How much room there is, in tokens, beside what stands before the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    /// What the summary may have.
    pub(crate) summary: u64,
    /// What it should come to, summary and all, so that it lasts for a while.
    pub(crate) good: u64,
    /// What it may come to.
    pub(crate) most: u64,
}

/// A cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cut {
    /// How many messages the summary stands for.
    pub(crate) up_to: usize,
    /// The one of them that stays.
    pub(crate) keep: Option<usize>,
    /// About how many tokens are sent behind it, the longest summary counted in.
    pub(crate) comes_to: u64,
}

/// The best cut; nothing where none makes it short enough.
pub(crate) fn cut(whole: &Whole<'_>, room: &Room) -> Option<Cut> {
    let cuts: Vec<Cut> = cuts(whole, room).filter(|cut| cut.comes_to < whole.load).collect();
    let turns = || cuts.iter().filter(|cut| cut.keep.is_none());
    let inside = || cuts.iter().filter(|cut| cut.keep.is_some());
    let good = |cut: &&Cut| cut.comes_to <= room.good;
    let most = |cut: &&Cut| cut.comes_to <= room.most;
    // the newest turn stays whole if that is possible at all
    let best = turns()
        .find(good)
        .or_else(|| turns().rfind(most))
        .or_else(|| inside().find(good))
        .or_else(|| inside().rfind(most));
    best.copied()
}

/// Every place where it may be cut, from the one that keeps most to the one that keeps least.
fn cuts(whole: &Whole<'_>, room: &Room) -> impl Iterator<Item = Cut> {
    let size = |at: usize| whole.sizes.get(at).copied().unwrap_or_default();
    let mut kept: u64 = (whole.from..whole.messages.len()).map(size).sum();
    (whole.from + 1..whole.messages.len()).filter_map(move |up_to| {
        kept -= size(up_to - 1);
        let message = &whole.messages[up_to];
        if holds_results(message) {
            return None;
        }
        let keep = (up_to > whole.begin).then_some(whole.begin);
        let may = if keep.is_some() { message.role == Role::Assistant } else { message.role == Role::User };
        let comes_to = room.summary + kept + keep.map_or(0, size);
        may.then_some(Cut { up_to, keep, comes_to })
    })
}

fn holds_results(message: &Message) -> bool {
    message.content.iter().any(|block| matches!(block, Block::ToolResult { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        provider::Input,
        session::{By, Compaction, shown},
    };
    use proptest::prelude::*;

    fn hers(calls: &[String]) -> Message {
        let call = |id: &String| Block::ToolUse {
            id: id.clone(),
            name: "t".into(),
            input: Input::Object(serde_json::Map::new()),
        };
        let words = std::iter::once(Block::text("well"));
        Message { role: Role::Assistant, content: words.chain(calls.iter().map(call)).collect() }
    }

    fn results(calls: &[String]) -> Message {
        let content = calls.iter().map(|id| Block::result(id, "ok", false)).collect();
        Message { role: Role::User, content }
    }

    /// Turns of so many rounds of calls each, and where each begins.
    fn conversation(turns: &[usize]) -> (Vec<Message>, Vec<usize>) {
        let (mut messages, mut begins) = (Vec::new(), Vec::new());
        for rounds in turns {
            begins.push(messages.len());
            messages.push(Message::user("go"));
            for round in 0..*rounds {
                let calls: Vec<String> =
                    (0..=round % 2).map(|at| format!("c{}_{at}", messages.len())).collect();
                messages.push(hers(&calls));
                messages.push(results(&calls));
            }
            messages.push(hers(&[]));
        }
        (messages, begins)
    }

    fn plan(turns: &[usize], sizes: &[u64], room: Room, open: bool) -> (Vec<Message>, usize, Option<Cut>) {
        let (mut messages, begins) = conversation(turns);
        // in the middle of a turn the last thing is a person's word or a result
        if open {
            messages.pop();
        }
        let begin = begins.last().copied().unwrap_or_default();
        let load = sizes.iter().take(messages.len()).sum();
        let whole = Whole { messages: &messages, sizes, from: 0, begin, load };
        let found = cut(&whole, &room);
        (messages, begin, found)
    }

    #[test]
    fn as_much_as_there_is_room_for_stays_and_turns_stay_whole() {
        let check = |turns: &[usize], good: u64, most: u64, expected: Option<(usize, Option<usize>)>| {
            let sizes = vec![10; 40];
            let (_, _, found) = plan(turns, &sizes, Room { summary: 5, good, most }, true);
            assert_eq!(found.map(|cut| (cut.up_to, cut.keep)), expected, "{turns:?} {good} {most}");
        };
        // turns of two messages each: 0 2 4 6, the last without an answer
        check(&[0, 0, 0, 0], 65, 70, Some((2, None)));
        check(&[0, 0, 0, 0], 40, 70, Some((4, None)));
        check(&[0, 0, 0, 0], 15, 15, Some((6, None)));
        check(&[0, 0, 0, 0], 14, 14, None);
        // nothing is better than the newest turn whole, as long as it fits at all
        check(&[1, 3], 20, 90, Some((4, None)));
        // and inside it only behind results, with what was asked
        check(&[1, 3], 40, 60, Some((9, Some(4))));
        check(&[0, 4], 56, 60, Some((7, Some(2))));
        check(&[], 1, 1, None);
    }

    proptest! {
        #[test]
        fn pairs_never_split_it_always_shrinks_and_the_newest_stays(
            turns in prop::collection::vec(0_usize..6, 1..8),
            sizes in prop::collection::vec(1_u64..500, 120),
            summary in 1_u64..100,
            good in 0_u64..4000,
            more in 0_u64..4000,
            open: bool,
        ) {
            let room = Room { summary, good, most: good + more };
            let (messages, begin, found) = plan(&turns, &sizes, room, open);
            if let Some(cut) = found {
                prop_assert!(cut.up_to > 0 && cut.up_to < messages.len());
                let load: u64 = sizes.iter().take(messages.len()).sum();
                prop_assert!(cut.comes_to < load && cut.comes_to <= room.most);
                let compaction = Compaction {
                    ts: jiff::Timestamp::UNIX_EPOCH, request: "r".into(), up_to: cut.up_to, keep: cut.keep,
                    summary: "s".into(), by: By::Rule, before: 0, after: 0,
                };
                let sent = shown(&messages, Some(&compaction));
                // what was asked in the newest turn, and the newest message, are there word for word
                prop_assert!(sent.contains(&messages[begin]));
                prop_assert_eq!(sent.last(), messages.last());
                prop_assert_eq!(cut.keep.is_some(), cut.up_to > begin);
                // each result has its call before it, each call its result, as in what was cut off
                let mut called = Vec::new();
                for block in sent.iter().flat_map(|message| &message.content) {
                    match block {
                        Block::ToolUse { id, .. } => called.push(id.clone()),
                        Block::ToolResult { tool_use_id, .. } => {
                            prop_assert!(called.contains(tool_use_id));
                            called.retain(|id| id != tool_use_id);
                        }
                        _ => {}
                    }
                }
                prop_assert!(called.is_empty());
            }
        }
    }
}
