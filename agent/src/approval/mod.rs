//! Which calls of tools wait for a person's word, how they are asked about, and what a refused one is answered with.
//!
//! ```text
//!  a call ─▶ needs ── nothing ──────────────────────────────────────────────────────────▶ it runs
//!                 └── a word ─▶ "asked" in the session ─▶ ask ── allowed ─▶ "allowed" ──▶ it runs
//!                                                            └── refused, late, cancelled ─▶ `[denied]`, and why
//! ```
//!
//! Both lines are on the disk before what follows them, so that a life that finds a call without a result knows whether
//! it ran: one that was asked about and not allowed did not, and is asked about again. What the soul offers is never asked
//! about: grants and gates govern it.

mod asking;
mod question;

use ipc::{
    config::Approval,
    contract::approval::{By, Decision},
    reveal::reveal,
    text::{is_blank, one_line},
};
use serde::{Deserialize, Serialize};

pub(crate) use self::{
    asking::Approvals,
    question::{Asked, ask_for},
};

/// The longest reason that is passed on to a model, in characters.
const REASON_CHARS_MAX: usize = 1000;

/// How far a call that needs a word has come, as the session keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Stand {
    /// A person is asked; it has not run.
    Asked,
    /// It may run; whether it did is another matter.
    Allowed,
    /// It may not, and did not.
    Refused,
}

/// What a call of a tool of this process needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// Nothing more.
    Nothing,
    /// A person's word.
    Word,
    /// To be told that it was refused already.
    Refusal,
}

/// Decides for a tool that this process runs, and that `writes` or not. `stand` is what the session says of this very call,
/// where another life left it without a result.
pub(crate) const fn needs(mode: Approval, writes: bool, stand: Option<Stand>, is_taken_up: bool) -> Need {
    match (stand, is_taken_up) {
        // what was asked about is asked about again, whatever the mode is by now: a person has seen the question
        (Some(Stand::Asked), true) => return Need::Word,
        (Some(Stand::Refused), true) => return Need::Refusal,
        (Some(Stand::Allowed), true) => return Need::Nothing,
        // an earlier life that asked nobody may have run it; what changes something will not run again
        (None, true) if writes => return Need::Nothing,
        (None, true) | (_, false) => {}
    }
    match (mode, writes) {
        (Approval::Auto, _) | (Approval::AskMutating, false) => Need::Nothing,
        (Approval::Ask, _) | (Approval::AskMutating, true) => Need::Word,
    }
}

/// What a call is answered with that may not run; nothing for one that may.
pub(crate) fn denial(tool: &str, decision: &Decision) -> Option<String> {
    let Decision::Refused { by, reason } = decision else { return None };
    // it is anybody's text, and a model reads it
    let reason = one_line(&reveal(reason), REASON_CHARS_MAX);
    let why = |none: &str| if is_blank(&reason) { none.to_owned() } else { format!(": {reason}") };
    Some(match by {
        By::Person => format!(
            "[denied] `{tool}` was not run, your person said no{}\nDo not try the same in another way; go on without it, or ask what to do instead.",
            why("")
        ),
        By::Rule => format!(
            "[denied] `{tool}` was not run: your person said no to exactly this call for good{}\nDo not try the same in another way; go on without it.",
            why("")
        ),
        By::Nobody => format!(
            "[denied] `{tool}` was not run: it needs a person's word, and nobody gave it{}\nGo on without it, and say what was left undone and why; a person can allow it in `lisa chat`, or set `[tools] approval` in config.toml.",
            why("")
        ),
    })
}

/// What a call is answered with whose refusal was written down by another life.
pub(crate) fn denied_before(tool: &str) -> String {
    format!("[denied] `{tool}` was not run: it was refused before a restart")
}

#[cfg(test)]
mod tests {
    use super::*;
    use Approval::{Ask, AskMutating, Auto};

    fn fresh(mode: Approval, writes: bool) -> Need {
        needs(mode, writes, None, false)
    }

    #[test]
    fn ap1_auto_asks_nobody() {
        assert_eq!((fresh(Auto, true), fresh(Auto, false)), (Need::Nothing, Need::Nothing));
    }

    #[test]
    fn ap2_ap3_ask_mutating_passes_reads_silently_and_asks_about_what_changes_something() {
        assert_eq!((fresh(AskMutating, false), fresh(AskMutating, true)), (Need::Nothing, Need::Word));
    }

    #[test]
    fn ap3_ask_asks_about_everything() {
        assert_eq!((fresh(Ask, false), fresh(Ask, true)), (Need::Word, Need::Word));
    }

    #[test]
    fn a_call_that_another_life_left_runs_only_where_it_is_sure_that_it_did_not() {
        let check = |mode, writes, stand, expected| assert_eq!(needs(mode, writes, stand, true), expected);
        for mode in [Auto, Ask, AskMutating] {
            for writes in [true, false] {
                check(mode, writes, Some(Stand::Asked), Need::Word);
                check(mode, writes, Some(Stand::Refused), Need::Refusal);
                check(mode, writes, Some(Stand::Allowed), Need::Nothing);
            }
            check(mode, true, None, Need::Nothing);
        }
        check(Ask, false, None, Need::Word);
        check(AskMutating, false, None, Need::Nothing);
        // a line of this life's own says nothing about another call
        assert_eq!(needs(AskMutating, true, Some(Stand::Allowed), false), Need::Word);
    }

    #[test]
    fn g17_ap8_a_refusal_says_who_and_why_and_what_to_do() {
        let check = |by, reason: &str, parts: &[&str]| {
            let said = denial("bash", &Decision::Refused { by, reason: reason.into() }).unwrap();
            assert!(said.starts_with("[denied] `bash` was not run"), "{said}");
            for part in parts {
                assert!(said.contains(part), "{said:?} has {part:?}");
            }
        };
        check(By::Person, "", &["your person said no\n"]);
        check(By::Person, "用\u{202e}副本\n\u{1b}[2J", &["said no: 用⟨U+202E⟩副本 ⟨U+001B⟩[2J\n"]);
        check(By::Rule, "", &["for good"]);
        check(By::Nobody, "nobody is attached", &["nobody gave it: nobody is attached\n", "config.toml"]);
        let long = denial("x", &Decision::Refused { by: By::Person, reason: "字".repeat(9000) }).unwrap();
        assert!(ipc::text::chars(&long) < REASON_CHARS_MAX + 300);
        assert_eq!(denial("x", &Decision::Allowed { by: By::Person }), None);
    }
}
