//! Dynamics: how strong a desire is now, which comes first, and whether it is time to look at it again.
//!
//! | horizon | halves in | looked at again after |
//! |---|---|---|
//! | spark | 3 days | 1 day |
//! | season | 30 days | 3 days |
//! | enduring | 365 days | 14 days |
//!
//! A desire fades from when it was last active: born, changed or pursued. Nothing is written for that, and pursuing it
//! brings all of it back. A stamp that cannot be read counts as long ago, and one of the future as now: neither makes a
//! desire stronger than it is.

use std::cmp::Ordering;

use ipc::contract::soul::{Desire, Drive};
use jiff::{Timestamp, civil::Date, tz::TimeZone};

use crate::held::Horizon;

/// Seconds of a day, as a number that days are counted with.
const DAY_SECONDS: f64 = 86_400.0;

/// How long a strength takes to halve, in days.
fn half_life(horizon: Horizon) -> f64 {
    match horizon {
        Horizon::Spark => 3.0,
        Horizon::Season => 30.0,
        Horizon::Enduring => 365.0,
    }
}

/// How long after a look at a desire the next one is due, in days.
fn review_every(horizon: Horizon) -> f64 {
    match horizon {
        Horizon::Spark => 1.0,
        Horizon::Season => 3.0,
        Horizon::Enduring => 14.0,
    }
}

/// How strong a desire is, 0 to 1.
pub(crate) fn strength(desire: &Desire, now: Timestamp) -> f64 {
    let days = since([&desire.active, &desire.updated, &desire.born], now);
    desire.intensity * 0.5_f64.powf(days / half_life(horizon(desire)))
}

/// Whether it is time to look whether she still wants it. Pursuing a desire is no such look; changing it is.
pub(crate) fn is_review_due(desire: &Desire, now: Timestamp) -> bool {
    let reviewed = desire.reviewed.clone().unwrap_or_default();
    let days = since([&reviewed, &desire.updated, &desire.born], now);
    !desire.closed && days >= review_every(horizon(desire))
}

/// The open desires in the order they come in: what she may do something about before what rests, the stronger first, of
/// equals the one that was active last.
pub(crate) fn in_order(desires: &[Desire], now: Timestamp) -> Vec<&Desire> {
    let mut open: Vec<_> = desires.iter().filter(|desire| !desire.closed).collect();
    let first = |a: &Desire, b: &Desire| -> Ordering {
        b.actionable
            .cmp(&a.actionable)
            .then_with(|| strength(b, now).total_cmp(&strength(a, now)))
            .then_with(|| instant(&b.active).cmp(&instant(&a.active)))
            .then_with(|| a.slug.cmp(&b.slug))
    };
    open.sort_by(|a, b| first(a, b));
    open
}

/// What others are told of them, in that order.
pub(crate) fn drives(desires: &[Desire], now: Timestamp) -> Vec<Drive> {
    let drive = |desire: &Desire| Drive {
        slug: desire.slug.clone(),
        strength: strength(desire, now),
        review_due: is_review_due(desire, now),
    };
    in_order(desires, now).into_iter().map(drive).collect()
}

/// The newest of several stamps.
pub(crate) fn newest<'a>(stamps: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    stamps
        .into_iter()
        .filter_map(|stamp| Some((instant(stamp)?, stamp)))
        .max_by_key(|(at, _)| *at)
        .map(|(_, stamp)| stamp)
}

/// An instant as a file says it; a day alone is its beginning in UTC, as in the original.
pub(crate) fn instant(stamp: &str) -> Option<Timestamp> {
    let day = || stamp.parse::<Date>().ok()?.to_zoned_datetime(TimeZone::UTC).ok();
    stamp.parse().ok().or_else(|| day().map(|day| day.timestamp()))
}

/// Days since `then`, never fewer than none.
pub(crate) fn days_between(then: Timestamp, now: Timestamp) -> f64 {
    (now.duration_since(then).as_secs_f64() / DAY_SECONDS).max(0.0)
}

/// Days since the newest of these stamps; since 1970 where none can be read.
fn since(stamps: [&String; 3], now: Timestamp) -> f64 {
    let last = newest(stamps.into_iter().map(String::as_str)).and_then(instant);
    days_between(last.unwrap_or(Timestamp::UNIX_EPOCH), now)
}

fn horizon(desire: &Desire) -> Horizon {
    Horizon::named(&desire.horizon).unwrap_or(Horizon::Season)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BIRTH: &str = "2026-11-01T00:00:00.000Z";

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    /// The time so many days after the birth of all of these.
    fn day(days: i64) -> Timestamp {
        at(BIRTH) + jiff::SignedDuration::from_hours(24 * days)
    }

    fn desire(slug: &str, horizon: &str, intensity: f64) -> Desire {
        Desire {
            slug: slug.into(),
            actionable: true,
            intensity,
            horizon: horizon.into(),
            born: BIRTH.into(),
            updated: BIRTH.into(),
            active: BIRTH.into(),
            ..Desire::default()
        }
    }

    fn active(desire: Desire, at: &str) -> Desire {
        Desire { active: at.into(), ..desire }
    }

    fn order(desires: &[Desire], now: Timestamp) -> Vec<&str> {
        in_order(desires, now).into_iter().map(|desire| desire.slug.as_str()).collect()
    }

    #[test]
    fn p1_of_none_there_is_none() {
        assert!(in_order(&[], day(0)).is_empty());
        assert!(in_order(&[Desire { closed: true, ..desire("a", "season", 1.0) }], day(0)).is_empty());
    }

    #[test]
    fn p2_p7_what_rests_comes_behind_and_alone_by_its_activity() {
        let rests = |slug: &str| Desire { actionable: false, ..desire(slug, "season", 0.9) };
        let weak = desire("weak", "season", 0.1);
        assert_eq!(order(&[rests("a"), weak], day(1)), ["weak", "a"]);
        let late = active(rests("late"), "2026-11-02T00:00:00Z");
        assert_eq!(order(&[rests("a"), late], day(3)), ["late", "a"]);
    }

    #[test]
    fn p3_p4_p5_p6_the_last_activity_decides_whatever_the_order_they_come_in() {
        let early = desire("early", "season", 0.6);
        let younger = Desire {
            born: "2026-11-02T00:00:00Z".into(),
            active: "2026-11-02T00:00:00Z".into(),
            ..desire("younger", "season", 0.6)
        };
        let pursued = active(desire("pursued", "season", 0.6), "2026-11-03T00:00:00Z");
        let bare = Desire { active: String::new(), updated: String::new(), ..desire("bare", "season", 0.6) };
        let expected = ["pursued", "younger", "bare", "early"];
        let all = [early, younger, pursued, bare];
        for turn in 0..all.len() {
            let mut turned = all.to_vec();
            turned.rotate_left(turn);
            let found = order(&turned, day(5));
            assert_eq!(found.get(..2), expected.get(..2), "{turn}");
            assert!((strength(&all[0], day(5)) - strength(&all[3], day(5))).abs() < 1e-12, "p5: since birth");
        }
    }

    #[test]
    fn p8_a_spark_wins_at_first_and_what_endures_in_the_end() {
        let desires = [desire("spark", "spark", 0.9), desire("enduring", "enduring", 0.6)];
        assert_eq!(order(&desires, day(0)), ["spark", "enduring"]);
        assert_eq!(order(&desires, day(7)), ["enduring", "spark"]);
    }

    #[test]
    fn p9_p10_a_spark_halves_in_three_days_and_activity_restores_it() {
        let check = |desire: &Desire, days: i64, expected: f64| {
            let found = strength(desire, day(days));
            assert!((found - expected).abs() < 1e-9, "{desire:?}: {found}");
        };
        let spark = desire("a", "spark", 0.8);
        check(&spark, 3, 0.4);
        check(&active(spark, "2026-11-04T00:00:00Z"), 3, 0.8);
        check(&desire("b", "season", 0.8), 30, 0.4);
        check(&desire("c", "enduring", 0.8), 365, 0.4);
        check(&desire("d", "some day", 0.8), 30, 0.4);
    }

    #[test]
    fn a_stamp_that_lies_makes_nothing_stronger() {
        let future = active(desire("a", "spark", 0.8), "2030-01-01T00:00:00Z");
        assert!((strength(&future, day(1)) - 0.8).abs() < 1e-12);
        let nonsense = |text: &str| Desire {
            born: text.into(),
            updated: text.into(),
            active: text.into(),
            ..desire("a", "spark", 0.8)
        };
        assert!(strength(&nonsense("soon"), day(1)) < 1e-9);
        assert!(is_review_due(&nonsense("soon"), day(1)));
        assert!((strength(&nonsense("2026-11-01"), day(3)) - 0.4).abs() < 1e-9, "a day is an instant too");
    }

    #[test]
    fn p11_when_a_desire_is_looked_at_again() {
        let check = |desire: &Desire, days: i64, due: bool| {
            assert_eq!(is_review_due(desire, day(days)), due, "{days}: {desire:?}");
        };
        check(&desire("a", "spark", 0.5), 2, true);
        check(&desire("a", "season", 0.5), 2, false);
        check(&desire("a", "season", 0.5), 3, true);
        check(&desire("a", "enduring", 0.5), 13, false);
        check(&desire("a", "enduring", 0.5), 14, true);
        check(&Desire { closed: true, ..desire("a", "spark", 0.5) }, 99, false);
        let reviewed = Some("2026-11-05T00:00:00Z".to_owned());
        check(&Desire { reviewed, ..desire("a", "season", 0.5) }, 6, false);
        check(&active(desire("a", "season", 0.5), "2026-11-05T00:00:00Z"), 6, true);
    }

    #[test]
    fn the_drives_are_told_in_order() {
        let desires = [desire("a", "spark", 0.8), Desire { actionable: false, ..desire("b", "season", 1.0) }];
        let told = drives(&desires, day(2));
        assert_eq!(told.iter().map(|drive| drive.slug.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!((told[0].review_due, told[1].review_due), (true, false));
        assert!((told[0].strength - 0.8 * 0.5_f64.powf(2.0 / 3.0)).abs() < 1e-9);
    }
}
