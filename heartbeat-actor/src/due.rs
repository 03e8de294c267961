//! What is due: a plain function of her desires, the ledger and the time.

use ipc::{
    contract::soul::{Desire, Drive},
    text::nearest,
};
use jiff::{SignedDuration, Timestamp};

use crate::ledger::Ledger;

/// The name of the task that pursues a desire.
pub(crate) fn task_of(slug: &str) -> String {
    format!("desire:{slug}")
}

/// Whether a desire is pursued without anybody asking: she may do something about it, said what, and waits for no person (U1–U3).
pub(crate) fn is_pursued(desire: &Desire) -> bool {
    let planned = desire.heartbeat.as_deref().is_some_and(|plan| !plan.trim().is_empty());
    desire.actionable && planned && !desire.closed && !desire.needs_user
}

/// When a desire is due: one rest after it was last claimed, or after it was first seen (T03: both are on the disk, so
/// that no restart brings it nearer or pushes it away). Nothing when it was never seen.
pub(crate) fn due_at(slug: &str, ledger: &Ledger, rest: SignedDuration) -> Option<Timestamp> {
    ledger.anchor(&task_of(slug))?.checked_add(rest).ok()
}

/// The desires in the order of their drives, which the soul alone works out: the strongest first, and behind them those
/// that drive her to nothing.
pub(crate) fn in_order(mut desires: Vec<Desire>, drives: &[Drive]) -> Vec<Desire> {
    let place = |desire: &Desire| drives.iter().position(|drive| drive.slug == desire.slug);
    desires.sort_by_key(|desire| place(desire).unwrap_or(usize::MAX));
    desires
}

/// The desire to pursue now: of those that are due the first in the order they come in, which is the strongest;
/// occurrences that were missed meanwhile are this one (T13). None starves: what was claimed rests, and then the others
/// are all that is due.
pub(crate) fn due<'a>(
    desires: &'a [Desire],
    ledger: &Ledger,
    rest: SignedDuration,
    now: Timestamp,
) -> Option<&'a Desire> {
    let is_due = |desire: &Desire| due_at(&desire.slug, ledger, rest).is_some_and(|at| at <= now);
    desires.iter().find(|desire| is_pursued(desire) && is_due(desire))
}

/// When something is due next.
pub(crate) fn next(desires: &[Desire], ledger: &Ledger, rest: SignedDuration) -> Option<Timestamp> {
    let waiting = desires.iter().filter(|desire| is_pursued(desire));
    waiting.filter_map(|desire| due_at(&desire.slug, ledger, rest)).min()
}

/// The desire a person asked for by name, or a sentence that says why it cannot be run.
pub(crate) fn asked_for<'a>(desires: &'a [Desire], task: &str) -> Result<&'a Desire, String> {
    let slug = task.strip_prefix("desire:").unwrap_or(task);
    let Some(desire) = desires.iter().find(|desire| desire.slug == slug) else {
        let hint = match nearest(slug, desires.iter().map(|desire| desire.slug.as_str())) {
            Some(near) => format!("; did you mean `{}`?", task_of(near)),
            None => "; `lisa soul` shows what she wants".to_owned(),
        };
        return Err(format!("there is no desire `{slug}`{hint}"));
    };
    if desire.closed {
        return Err(format!(
            "the desire `{slug}` is closed; she can take it up again by making it actionable"
        ));
    }
    if !desire.actionable {
        return Err(format!("the desire `{slug}` is not actionable; she can make it so with soul_patch"));
    }
    Ok(desire)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn desire(slug: &str) -> Desire {
        Desire {
            slug: slug.into(),
            what: "w".into(),
            why: "y".into(),
            actionable: true,
            closed: false,
            needs_user: false,
            intensity: 0.6,
            horizon: "season".into(),
            born: "x".into(),
            heartbeat: Some("read".into()),
            progress: vec![],
            ..Desire::default()
        }
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    const REST: SignedDuration = SignedDuration::from_hours(6);

    #[test]
    fn u1_u2_u3_what_is_pursued_by_itself() {
        let check = |desire: Desire, pursued: bool| assert_eq!(is_pursued(&desire), pursued, "{desire:?}");
        check(desire("a"), true);
        check(Desire { needs_user: true, ..desire("a") }, false);
        check(Desire { actionable: false, ..desire("a") }, false);
        check(Desire { heartbeat: None, ..desire("a") }, false);
        check(Desire { heartbeat: Some(" \n".into()), ..desire("a") }, false);
        check(Desire { closed: true, ..desire("a") }, false);
    }

    #[test]
    fn t03_a_desire_rests_from_when_it_was_seen_and_from_when_it_was_claimed() {
        let told = vec![desire("a"), desire("b"), Desire { closed: true, ..desire("c") }];
        let drive = |slug: &str, strength| Drive { slug: slug.into(), strength, review_due: false };
        let desires = in_order(told, &[drive("b", 0.9), drive("a", 0.2)]);
        assert_eq!(desires.iter().map(|desire| desire.slug.as_str()).collect::<Vec<_>>(), ["b", "a", "c"]);
        let mut ledger = Ledger::default();
        let now = at("2026-11-30T12:00:00Z");
        assert!(due(&desires, &ledger, REST, now).is_none(), "what was never seen is not due");
        ledger.saw("desire:a", at("2026-11-30T05:00:00Z"));
        ledger.saw("desire:b", at("2026-11-30T04:00:00Z"));
        assert_eq!(
            due(&desires, &ledger, REST, now).unwrap().slug,
            "b",
            "the strongest of those that are due"
        );
        ledger.claimed("desire:b", at("2026-11-30T12:00:00Z"));
        assert_eq!(due(&desires, &ledger, REST, now).unwrap().slug, "a");
        ledger.claimed("desire:a", at("2026-11-30T12:00:00Z"));
        assert!(due(&desires, &ledger, REST, now).is_none());
        assert_eq!(next(&desires, &ledger, REST), Some(at("2026-11-30T18:00:00Z")));
        // t13: three days later it is due once, not twelve times
        let later = at("2026-12-03T12:00:00Z");
        assert_eq!(due(&desires, &ledger, REST, later).unwrap().slug, "b");
        ledger.claimed("desire:b", later);
        assert_eq!(due(&desires, &ledger, REST, later).unwrap().slug, "a", "the weaker is not starved");
        ledger.claimed("desire:a", later);
        assert!(due(&desires, &ledger, REST, later).is_none());
    }

    #[test]
    fn what_a_person_asks_for_is_run_or_refused_with_the_reason() {
        let desires = [
            desire("learn-rust"),
            Desire { closed: true, ..desire("done") },
            Desire { actionable: false, ..desire("dream") },
            Desire { heartbeat: None, ..desire("unplanned") },
        ];
        let check = |task: &str, expected: Result<&str, &str>| match (asked_for(&desires, task), expected) {
            (Ok(desire), Ok(slug)) => assert_eq!(desire.slug, slug),
            (Err(why), Err(part)) => assert!(why.contains(part), "{why}"),
            (got, expected) => panic!("{got:?}, not {expected:?}"),
        };
        check("desire:learn-rust", Ok("learn-rust"));
        check("learn-rust", Ok("learn-rust"));
        check("desire:unplanned", Ok("unplanned"));
        check("desire:lern-rust", Err("did you mean `desire:learn-rust`"));
        check("desire:done", Err("closed"));
        check("desire:dream", Err("not actionable"));
        check("zzz", Err("lisa soul"));
    }
}
