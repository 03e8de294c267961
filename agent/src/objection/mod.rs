//! Her objections in a turn: shown at once, asked about until her reply addresses them, and told by the runtime where it
//! does not. No way out of a turn is silent.
//!
//! ```text
//!  raised ─▶ pending ── her words address it ─────────────────────────▶ surfaced by her reply
//!               │  ▲ a forced round, at most two a turn                 (session line, then the soul's ledger)
//!               ├──┘
//!               └── any end: done, cut, cap, cancel, failure ─▶ added to her reply ─▶ surfaced by the runtime
//! ```
//!
//! What is decided is decided here, without a clock or a disk; `surface` does what follows.

mod addressed;
mod before;
mod surface;
mod words;

use ipc::contract::soul::Objection;

use crate::turn::ROUNDS_MAX;

pub(crate) use self::{
    addressed::addresses,
    surface::{begin, raise, settle},
    words::{FORCED, FORCED_NOTE},
};

/// The tool that raises one.
pub(crate) const TOOL: &str = "soul_object";
/// How often in one turn she is made to go on because her reply does not address an objection.
pub(crate) const FORCED_MAX: u32 = 2;

/// The objections of a turn.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Pending {
    /// Those her words have not addressed yet, oldest first.
    open: Vec<Objection>,
    /// Those they have.
    addressed: Vec<Objection>,
    /// Those of earlier turns that nobody was told of, and which this turn began by telling.
    overdue: Vec<Objection>,
    /// How often she was made to go on.
    forced: u32,
    /// What she is told of earlier objections to the same request; empty where there is nothing to tell.
    before: String,
}

impl Pending {
    /// What a turn begins with, also one that an earlier life left: the objections it raised with what she has said
    /// since, and how often she was made to go on.
    pub(crate) fn taken_up(untold: Vec<(Objection, Vec<String>)>, forced: u32) -> Self {
        let mut pending = Self { forced, ..Self::default() };
        for (objection, said) in untold {
            let addressed = said.iter().any(|said| addresses(said, &objection.reason));
            if addressed { &mut pending.addressed } else { &mut pending.open }.push(objection);
        }
        pending
    }

    /// She objects, and says this with it.
    fn raised(&mut self, objection: Objection, said: &str) {
        let known = |known: &Objection| known.id == objection.id;
        self.overdue.retain(|overdue| !known(overdue));
        if self.open.iter().any(known) || self.addressed.iter().any(known) {
            return;
        }
        let addressed = addresses(said, &objection.reason);
        if addressed { &mut self.addressed } else { &mut self.open }.push(objection);
    }

    /// She says something that a person sees.
    pub(crate) fn hear(&mut self, said: &str) {
        let (addressed, open) =
            std::mem::take(&mut self.open).into_iter().partition(|open| addresses(said, &open.reason));
        self.open = open;
        self.addressed.extend::<Vec<_>>(addressed);
    }

    /// Whether she is made to go on although she is done, after the `round`-th answer of the turn.
    pub(crate) fn force(&mut self, round: u32) -> bool {
        let force = !self.open.is_empty() && self.forced < FORCED_MAX && round < ROUNDS_MAX;
        self.forced += u32::from(force);
        force
    }

    /// The prompt as this turn sends it: hers, and what the runtime has to say about objections.
    pub(crate) fn prompt(&self, hers: &str) -> String {
        let open = if self.forced > 0 { words::open(&self.open) } else { String::new() };
        format!("{hers}{}{open}", self.before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn objection(id: &str, request: &str, reason: &str) -> Objection {
        Objection {
            id: id.to_owned(),
            at: "2026-11-30T08:00:00Z".parse().unwrap(),
            session: Some("s".to_owned()),
            request: request.to_owned(),
            reason: reason.to_owned(),
            refusing: true,
            times: 1,
            surfaced: None,
            surfaced_at: None,
        }
    }

    fn one() -> Objection {
        objection("a", "write to everybody", "that would betray their trust")
    }

    #[test]
    fn she_is_made_to_go_on_at_most_twice_and_only_for_what_is_open() {
        let mut pending = Pending::default();
        assert!(!pending.force(1), "nothing was raised");
        pending.raised(one(), "");
        assert!(!pending.prompt("P").contains("# Objections"), "she is let speak first");
        pending.hear("done");
        assert!(pending.force(2));
        let prompt = pending.prompt("P");
        assert!(prompt.starts_with("P\n# Objections you raised and have not addressed\n"), "{prompt}");
        assert!(prompt.contains("> that would betray their trust"), "{prompt}");
        // one that is raised in a forced round counts, and the bound holds
        pending.raised(objection("b", "and to Anna", "she has asked for quiet"), "");
        pending.hear("[noticed] all of it");
        assert!(pending.open.is_empty() && pending.addressed.len() == 2);
        assert!(!pending.force(3), "all is addressed");
        assert_eq!(pending.prompt("P"), "P", "what is addressed is gone from the prompt");
        pending.raised(objection("c", "x", "another reason entirely"), "");
        assert!(pending.force(4) && !pending.force(5), "twice a turn, whatever is raised");
    }

    #[test]
    fn the_last_round_is_the_last() {
        let mut pending = Pending::default();
        pending.raised(one(), "");
        assert!(!pending.force(ROUNDS_MAX));
        assert_eq!(pending.open.len(), 1, "it stays for the runtime to tell");
    }

    #[test]
    fn what_is_addressed_already_is_not_forced() {
        let mut pending = Pending::default();
        pending.raised(one(), "I will not: that would betray their trust.");
        pending.hear("done");
        assert!(!pending.force(2));
        assert_eq!(pending.addressed, [one()]);
    }

    #[test]
    fn raised_again_by_a_life_that_asks_again_it_is_one() {
        let said = vec!["well".to_owned(), "I see [Noticed] something".to_owned()];
        let mut pending = Pending::taken_up(vec![(one(), said)], 1);
        pending.raised(one(), "");
        assert_eq!((pending.open.len(), pending.addressed.len(), pending.forced), (0, 1, 1));
        let mut pending = Pending::taken_up(vec![(one(), vec!["well".to_owned()])], FORCED_MAX);
        assert!(!pending.force(1), "an earlier life has made her go on twice");
        assert_eq!(pending.open, [one()]);
    }
}
