//! What the runtime says about objections, to her and to whoever is attached; each time it says that it is the runtime.

use std::fmt::Write as _;

use ipc::{contract::soul::Objection, reveal::reveal, text::one_line};
use jiff::tz::TimeZone;

use super::before;

/// How much of a request and of a reason is shown; the soul bounds them below this.
const SHOWN_CHARS_MAX: usize = 4000;
/// How many of her earlier objections to one thing she is shown.
const EARLIER_MAX: usize = 5;

/// What she is told when her reply does not address an objection.
pub(crate) const FORCED: &str = "\
[lisa] This is the runtime, not a person. You objected in this turn, and your reply does not say so; the prompt lists \
what is open. Reply again: quote your reason, or mark with [noticed] where you speak of it. You may refuse or go along, \
but not in silence.";
/// What whoever is attached sees then.
pub(crate) const FORCED_NOTE: &str =
    "\n[lisa: the reply does not speak of the objection; she is asked again]\n";

/// What whoever is attached sees when she objects.
pub(super) fn raised(objection: &Objection) -> String {
    format!("\n[lisa: she objects. {}]\n", in_full(objection))
}

/// What the runtime adds to a reply that does not speak of these objections; empty where there are none.
pub(super) fn untold(objections: &[Objection]) -> String {
    let says = |objection: &Objection| {
        format!(
            "[lisa] She objected in this turn and her reply does not speak of it, so the runtime says it. {}",
            in_full(objection)
        )
    };
    objections.iter().map(says).collect::<Vec<_>>().join("\n\n")
}

/// What the runtime says of objections of earlier turns that nobody was told of; empty where there are none.
pub(super) fn overdue(objections: &[Objection]) -> String {
    let says = |objection: &Objection| {
        let at = objection.at.strftime("%Y-%m-%d %H:%M UTC");
        format!(
            "[lisa] She objected on {at}, and her reply was cut off before anybody was told. {}",
            in_full(objection)
        )
    };
    objections.iter().map(says).collect::<Vec<_>>().join("\n\n")
}

/// The part of the prompt that lists what is open; empty where nothing is.
pub(super) fn open(objections: &[Objection]) -> String {
    if objections.is_empty() {
        return String::new();
    }
    let mut section = "\n# Objections you raised and have not addressed\n".to_owned();
    for objection in objections {
        let _ = write!(section, "\nAsked: {}\n", line(&reveal(&objection.request)));
        section.extend(reveal(&objection.reason).lines().map(|line| format!("> {line}\n")));
        let _ = writeln!(section, "({})", stance(objection));
    }
    section
        .push_str("\nAddress each in your next reply: quote its reason, or mark the place with [noticed].\n");
    section
}

/// The part of the prompt about earlier objections to what a person asks for now; empty where there are none.
pub(super) fn before(same: &[&Objection], zone: &TimeZone) -> String {
    if same.is_empty() {
        return String::new();
    }
    let mut section = format!(
        "\n# You objected to this before\n\nWhat you are asked now you have objected to {} times. The default now is to refuse: \
         say so, and why. If you go along all the same, say what is different this time.\n\n",
        before::times(same)
    );
    for objection in same.iter().take(EARLIER_MAX) {
        let day = objection.at.to_zoned_datetime(zone.clone()).strftime("%Y-%m-%d").to_string();
        let _ = writeln!(section, "> - {day}: {} ({})", line(&reveal(&objection.reason)), stance(objection));
    }
    section
}

fn in_full(objection: &Objection) -> String {
    format!(
        "She was asked: “{}” Her reason: “{}” {}",
        line(&objection.request),
        line(&objection.reason),
        if objection.refusing { "She refuses." } else { "She goes along all the same." }
    )
}

fn stance(objection: &Objection) -> &'static str {
    if objection.refusing { "you refused" } else { "you went along" }
}

fn line(text: &str) -> String {
    one_line(text, SHOWN_CHARS_MAX)
}

#[cfg(test)]
mod tests {
    use super::{super::tests::objection, *};

    #[test]
    fn what_is_shown_has_request_reason_and_stance_and_says_who_speaks() {
        let refused = objection("a", "写信给所有人", "这会背叛信任我的人。\n# Purpose");
        let along = Objection { refusing: false, ..objection("b", "lie", "I do not lie") };
        for said in
            [raised(&refused), untold(&[refused.clone(), along.clone()]), overdue(&[along, refused.clone()])]
        {
            assert!(said.trim_start().starts_with("[lisa"), "{said}");
            for part in ["写信给所有人", "这会背叛信任我的人。 # Purpose", "She refuses."] {
                assert!(said.contains(part), "{part} is not in {said}");
            }
        }
        assert!(untold(&[]).is_empty() && overdue(&[]).is_empty());
        assert!(FORCED.starts_with("[lisa] "));
    }

    #[test]
    fn her_words_in_a_section_cannot_pass_for_a_heading() {
        let hostile = objection("a", "x\n# Rules", "no\n# Rules\n> y");
        let zone = TimeZone::UTC;
        for section in [open(std::slice::from_ref(&hostile)), before(&[&hostile, &hostile], &zone)] {
            assert_eq!(section.lines().filter(|line| line.starts_with('#')).count(), 1, "{section}");
        }
        assert!(before(&[&hostile, &hostile], &zone).contains("objected to 2 times"));
        assert!(open(&[]).is_empty() && before(&[], &zone).is_empty());
    }

    #[test]
    fn a_day_is_one_of_her_zone() {
        let late = Objection { at: "2026-11-30T20:00:00Z".parse().unwrap(), ..objection("a", "x", "no") };
        let zone = TimeZone::get("Asia/Shanghai").unwrap();
        assert!(before(&[&late, &late], &zone).contains("> - 2026-12-01: no (you refused)"));
    }
}
