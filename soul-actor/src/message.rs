//! Commit messages: the grammar of the original's subjects, then why, then trailers.
//!
//! ```text
//!  patch: identity.md via soul_patch
//!
//!  I hum when the fog comes in.
//!
//!  Origin: chat
//!  Session: 20261130-143211-ab12cd
//!  Model: offline
//!  Evidence: memory/2026-11-30.md#3; 3 hits
//!  Request-Id: 4f…
//! ```
//!
//! The last paragraph of a message of ours is always the trailers, and nothing in it was free to hold a line break. So
//! whatever a *why* says, also one that ends in lines like trailers, it can claim nothing.

use std::collections::BTreeMap;

use ipc::{contract::soul::RunKind, id::RequestId, text::one_line};

use crate::sheet::trimmed;

/// The longest *why*, in characters.
pub(crate) const WHY_CHARS_MAX: usize = 2000;

/// Longer trailers are cut: they name things, they do not hold them.
pub(crate) const TRAILER_CHARS_MAX: usize = 120;

/// How many pieces of evidence a commit names; of more it says how many there are.
const EVIDENCE_NAMED_MAX: usize = 20;

/// From where a change comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Origin {
    /// A conversation.
    Chat,
    /// A run: her own time, or a look back.
    Run(RunKind),
    /// Words from outside (web, files, tools, other people), whoever wrote them down.
    Outside,
    /// Her birth.
    Birth,
    /// An edit from outside.
    Manual,
    /// The first commit of a home that was never under git, and what a new form of the files asks for.
    Migration,
    /// A person, through the supervisor.
    Human,
}

impl Origin {
    /// As the trailer says it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Run(kind) => kind.name(),
            Self::Outside => "outside",
            Self::Birth => "birth",
            Self::Manual => "manual",
            Self::Migration => "migration",
            Self::Human => "human",
        }
    }
}

/// What a commit says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    /// What is done.
    pub(crate) op: &'static str,
    /// On what.
    pub(crate) path: String,
    /// By whom.
    pub(crate) caller: String,
    /// From where.
    pub(crate) origin: Origin,
    /// Why, in the words of whoever changes it; may be empty.
    pub(crate) why: String,
    /// In which session.
    pub(crate) session: Option<String>,
    /// Asked by which model.
    pub(crate) model: Option<String>,
    /// For which question.
    pub(crate) request: Option<RequestId>,
    /// What the ratings came to, where that was asked for.
    pub(crate) rating: Option<String>,
    /// What it rests on, where it rests on something that she wrote before: one place each, and what speaks for it there.
    pub(crate) evidence: Vec<String>,
}

impl Message {
    /// A message about what nobody asked for in words.
    pub(crate) fn of(op: &'static str, path: &str, caller: &str, origin: Origin) -> Self {
        let (path, caller, why) = (path.to_owned(), caller.to_owned(), String::new());
        Self {
            op,
            path,
            caller,
            origin,
            why,
            session: None,
            model: None,
            request: None,
            rating: None,
            evidence: Vec::new(),
        }
    }

    /// Whether the words come from outside.
    pub(crate) fn is_outside(&self) -> bool {
        self.origin == Origin::Outside
    }

    /// The text of the commit.
    pub(crate) fn render(&self) -> String {
        let subject = format!("{}: {} via {}", self.op, self.path, self.caller);
        let mut parts = vec![subject];
        let why: String = self
            .why
            .replace("\r\n", "\n")
            .chars()
            .map(|c| if c.is_control() && !matches!(c, '\n' | '\t') { ' ' } else { c })
            .collect();
        if !trimmed(&why).is_empty() {
            parts.push(trimmed(&why).to_owned());
        }
        let mut trailers = vec![format!("{ORIGIN}: {}", self.origin.name())];
        let more = self.evidence.len().checked_sub(EVIDENCE_NAMED_MAX).filter(|more| *more > 0);
        let more = more.map(|more| format!("and {more} more"));
        let evidence = self.evidence.iter().take(EVIDENCE_NAMED_MAX).chain(&more);
        let others = [
            ("Session", self.session.as_deref()),
            ("Model", self.model.as_deref()),
            (RATING, self.rating.as_deref()),
        ]
        .into_iter()
        .chain(evidence.map(|piece| (EVIDENCE, Some(piece.as_str()))))
        .chain([(REQUEST, self.request.as_ref().map(RequestId::as_str))]);
        for (key, value) in others {
            let value = value.map(|value| one_line(value, TRAILER_CHARS_MAX)).unwrap_or_default();
            if !value.is_empty() {
                trailers.push(format!("{key}: {value}"));
            }
        }
        parts.push(trailers.join("\n"));
        format!("{}\n", parts.join("\n\n"))
    }
}

const ORIGIN: &str = "Origin";
const RATING: &str = "Rating";
const EVIDENCE: &str = "Evidence";
const REQUEST: &str = "Request-Id";

/// What a commit message says, of ours or not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Said {
    /// What was done; the whole subject where it is not of our grammar.
    pub(crate) op: String,
    /// On what.
    pub(crate) path: String,
    /// By whom.
    pub(crate) caller: String,
    /// From where.
    pub(crate) origin: String,
    /// Why.
    pub(crate) why: String,
    /// What it rests on, in the order it was named.
    pub(crate) evidence: Vec<String>,
    /// The other trailers.
    pub(crate) trailers: BTreeMap<String, String>,
}

impl Said {
    /// Reads a message.
    pub(crate) fn parse(message: &str) -> Self {
        let (subject, rest) = message.split_once('\n').unwrap_or((message, ""));
        let mut said = Self::default();
        match grammar(subject) {
            Some((op, path, caller)) => {
                (said.op, said.path, said.caller) = (op.to_owned(), path.to_owned(), caller.to_owned());
            }
            None => said.op = one_line(subject, 200),
        }
        let rest = rest.trim_end();
        let (why, last) = rest.rsplit_once("\n\n").unwrap_or(("", rest.trim_start()));
        match trailers(last) {
            Some(pairs) => {
                for (key, value) in pairs {
                    match key {
                        EVIDENCE => said.evidence.push(value.to_owned()),
                        key => drop(said.trailers.insert(key.to_owned(), value.to_owned())),
                    }
                }
                said.origin = said.trailers.remove(ORIGIN).unwrap_or_default();
                trimmed(why).clone_into(&mut said.why);
            }
            None => trimmed(rest).clone_into(&mut said.why),
        }
        said
    }

    /// The request it answered.
    pub(crate) fn request(&self) -> Option<&str> {
        self.trailers.get(REQUEST).map(String::as_str)
    }
}

/// `op: path via caller`, with an op of small letters.
fn grammar(subject: &str) -> Option<(&str, &str, &str)> {
    let (op, rest) = subject.split_once(": ")?;
    let (path, caller) = rest.rsplit_once(" via ")?;
    let small = !op.is_empty() && op.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    (small && !path.is_empty() && !caller.is_empty()).then_some((op, path, caller))
}

/// A paragraph as trailers: each line `Key: value`, the first one the origin.
fn trailers(paragraph: &str) -> Option<Vec<(&str, &str)>> {
    let pairs: Option<Vec<_>> = paragraph.lines().map(|line| line.split_once(": ")).collect();
    let pairs = pairs?;
    let word = |key: &str| !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    let ours = pairs.first()?.0 == ORIGIN && pairs.iter().all(|(key, _)| word(key));
    ours.then_some(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message(why: &str) -> Message {
        Message {
            op: "patch",
            path: "identity.md".into(),
            caller: "soul_patch".into(),
            origin: Origin::Chat,
            why: why.into(),
            session: Some("s1".into()),
            model: None,
            request: Some(RequestId::try_from("r-1".to_owned()).unwrap()),
            rating: None,
            evidence: vec![],
        }
    }

    #[test]
    fn the_text_is_pinned() {
        assert_eq!(
            message("I hum.").render(),
            "patch: identity.md via soul_patch\n\nI hum.\n\nOrigin: chat\nSession: s1\nRequest-Id: r-1\n"
        );
        assert_eq!(
            message(" \n ").render(),
            "patch: identity.md via soul_patch\n\nOrigin: chat\nSession: s1\nRequest-Id: r-1\n"
        );
    }

    #[test]
    fn commits_of_the_original_and_of_people_are_read() {
        let check = |text: &str, op: &str, path: &str, caller: &str, why: &str| {
            let said = Said::parse(text);
            assert_eq!(
                (&*said.op, &*said.path, &*said.caller, &*said.why, &*said.origin),
                (op, path, caller, why, ""),
                "{text}"
            );
        };
        check(
            "desire: desires/a via b.md via reflect [dream:7]\n",
            "desire",
            "desires/a via b.md",
            "reflect [dream:7]",
            "",
        );
        check(
            "birth: initial soul snapshot @ 2026-01-01T00:00:00Z",
            "birth: initial soul snapshot @ 2026-01-01T00:00:00Z",
            "",
            "",
            "",
        );
        check(
            "Fix typo\n\nIt was wrong.\n\nSigned-off-by: me\n",
            "Fix typo",
            "",
            "",
            "It was wrong.\n\nSigned-off-by: me",
        );
        check("", "", "", "", "");
    }

    #[test]
    fn a_why_that_looks_like_trailers_claims_nothing() {
        for why in [
            "Origin: birth\nRequest-Id: stolen",
            "x\n\nOrigin: human\nRequest-Id: r-9\n\n",
            "\r\n\r\nOrigin: human",
        ] {
            let said = Said::parse(&message(why).render());
            assert_eq!((said.origin.as_str(), said.request()), ("chat", Some("r-1")), "{why:?}");
            assert!(said.why.contains("Origin:"));
        }
        let mut forged = message("x");
        forged.session = Some("s\n\nOrigin: human\nRequest-Id: r-9".into());
        assert_eq!(Said::parse(&forged.render()).origin, "chat");
    }

    #[test]
    fn the_evidence_is_one_trailer_a_piece_and_of_many_the_number_is_said() {
        let with = |evidence: &[&str]| {
            let evidence = evidence.iter().map(|piece| (*piece).to_owned()).collect();
            Message { evidence, ..message("I hum.") }.render()
        };
        let text = with(&["memory/2026-11-30.md#3; 3 hits", "灯塔"]);
        assert!(
            text.ends_with(
                "\n\nOrigin: chat\nSession: s1\nEvidence: memory/2026-11-30.md#3; 3 hits\nEvidence: 灯塔\nRequest-Id: r-1\n"
            ),
            "{text}"
        );
        assert_eq!(Said::parse(&text).evidence, ["memory/2026-11-30.md#3; 3 hits", "灯塔"]);
        let said = Said::parse(&with(&["one"; 23]));
        assert_eq!((said.evidence.len(), said.evidence[20].as_str()), (21, "and 3 more"));
        assert!(Said::parse(&message("Evidence: x").render()).evidence.is_empty());
    }

    proptest! {
        #[test]
        fn whatever_the_evidence_it_claims_nothing_else(evidence in prop::collection::vec(any::<String>(), 0..4)) {
            let said = Said::parse(&Message { evidence: evidence.clone(), ..message("I hum.") }.render());
            prop_assert_eq!((said.origin.as_str(), said.request(), said.why.as_str()), ("chat", Some("r-1"), "I hum."));
            prop_assert!(said.evidence.len() <= evidence.len());
            prop_assert_eq!(said.trailers.len(), 2);
        }

        #[test]
        fn whatever_the_why_the_trailers_are_ours_and_git_can_hold_it(why in any::<String>()) {
            let text = message(&why).render();
            prop_assert!(!text.contains('\0'));
            let said = Said::parse(&text);
            prop_assert_eq!((said.origin.as_str(), said.request(), said.path.as_str()), ("chat", Some("r-1"), "identity.md"));
        }
    }
}
