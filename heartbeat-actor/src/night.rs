//! When she dreams: a plain function of the ledger, the time of day a person has set, and the clock of her zone.
//!
//! A night that was missed is made up for once, however many there were. On a day whose clock leaves that time out or
//! has it twice, it is the instant that a clock on the wall would be said to mean.

use jiff::{Timestamp, ToSpan as _, ZonedDateTime, civil::Time};

/// The name of the task.
pub(crate) const TASK: &str = "dream";

/// The newest time of dreaming that is not in the future.
fn latest(at: Time, now: &ZonedDateTime) -> Option<Timestamp> {
    [0, 1].into_iter().find_map(|days| {
        let day = now.date().checked_sub(days.days()).ok()?;
        let then = day.to_datetime(at).to_zoned_datetime(now.time_zone().clone()).ok()?.timestamp();
        (then <= now.timestamp()).then_some(then)
    })
}

/// Whether it is time, where the last one was claimed, or the task was first seen, at `anchor`.
pub(crate) fn is_due(anchor: Option<Timestamp>, at: Time, now: &ZonedDateTime) -> bool {
    let latest = latest(at, now);
    anchor.zip(latest).is_some_and(|(anchor, latest)| anchor < latest)
}

/// When it is time next.
pub(crate) fn next(anchor: Option<Timestamp>, at: Time, now: &ZonedDateTime) -> Option<Timestamp> {
    if is_due(anchor, at, now) {
        return Some(now.timestamp());
    }
    [0, 1, 2].into_iter().find_map(|days| {
        let day = now.date().checked_add(days.days()).ok()?;
        let then = day.to_datetime(at).to_zoned_datetime(now.time_zone().clone()).ok()?.timestamp();
        (then > now.timestamp()).then_some(then)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zoned(text: &str) -> ZonedDateTime {
        text.parse().unwrap()
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn four() -> Time {
        Time::constant(4, 0, 0, 0)
    }

    #[test]
    fn she_dreams_once_a_night_on_the_clock_of_her_zone() {
        let check = |anchor: &str, now: &str, due: bool, next_at: &str| {
            let (anchor, now) = (Some(at(anchor)), zoned(now));
            assert_eq!(is_due(anchor, four(), &now), due, "{now}");
            assert_eq!(next(anchor, four(), &now), Some(at(next_at)), "{now}");
        };
        let (seen, first) = ("2026-11-30T10:00:00Z", "2026-11-30T20:00:00Z");
        check(seen, "2026-12-01T03:59:59+08:00[Asia/Shanghai]", false, first);
        check(seen, "2026-12-01T04:00:00+08:00[Asia/Shanghai]", true, first);
        check(first, "2026-12-01T04:00:30+08:00[Asia/Shanghai]", false, "2026-12-01T20:00:00Z");
        // t13: three nights later it is due once
        let later = "2026-12-04T02:00:00+08:00[Asia/Shanghai]";
        check(first, later, true, "2026-12-03T18:00:00Z");
        check("2026-12-03T18:00:00Z", later, false, "2026-12-03T20:00:00Z");
        assert!(!is_due(None, four(), &zoned(later)), "what was never seen is not due");
    }

    #[test]
    fn b29_a_night_whose_clock_jumps_has_one_dream() {
        let two = Time::constant(2, 30, 0, 0);
        // the clock in Berlin leaves half past two out in spring, and has it twice in autumn
        let spring = zoned("2026-03-29T03:30:00+02:00[Europe/Berlin]");
        assert!(is_due(Some(at("2026-03-28T12:00:00Z")), two, &spring));
        assert!(!is_due(Some(spring.timestamp()), two, &spring));
        let once = at("2026-10-25T00:30:00Z");
        assert!(is_due(
            Some(at("2026-10-24T12:00:00Z")),
            two,
            &zoned("2026-10-25T02:30:00+02:00[Europe/Berlin]")
        ));
        assert!(!is_due(Some(once), two, &zoned("2026-10-25T02:45:00+01:00[Europe/Berlin]")));
    }
}
