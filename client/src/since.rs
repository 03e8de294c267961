//! `--since` and `--timeout`: how long ago, from when, and how long, as a person types it.

use std::time::Duration;

use ipc::exit::{Exit, Fault};
use jiff::{SignedDuration, Span, Timestamp, ZonedDateTime, civil::DateTime};

/// From when on: an instant, a day of the local zone, or so long before now.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Since {
    /// `2026-11-30T12:00:00Z`.
    Instant(Timestamp),
    /// `2026-11-30`, or with a time.
    Local(DateTime),
    /// `7d`, `2w`, `36h`.
    Ago(Ago),
}

/// A length of time before now.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ago(Span);

impl PartialEq for Ago {
    fn eq(&self, other: &Self) -> bool {
        self.0.fieldwise() == other.0.fieldwise()
    }
}

impl std::str::FromStr for Since {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let ago = || text.parse::<Span>().map(|span| Self::Ago(Ago(span.abs())));
        let instant = || text.parse().map(Self::Instant);
        let local = || text.parse().map(Self::Local);
        ago().or_else(|_| instant()).or_else(|_| local()).map_err(|_| {
            format!("say how long ago (`7d`, `2w`, `36h`) or from when (`2026-11-30`), which `{text}` is not")
        })
    }
}

impl Since {
    /// The instant that is meant at `now`, in the zone of `now`.
    pub(crate) fn resolve(self, now: &ZonedDateTime) -> Result<Timestamp, Fault> {
        let resolved = match self {
            Self::Instant(instant) => Ok(instant),
            Self::Local(at) => at.to_zoned_datetime(now.time_zone().clone()).map(|at| at.timestamp()),
            Self::Ago(Ago(span)) => now.checked_sub(span).map(|at| at.timestamp()),
        };
        resolved.map_err(|source| Fault { exit: Exit::Usage, source: source.into() })
    }
}

/// Reads how long: `30s`, `2m`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let parsed = text.parse::<SignedDuration>().ok().and_then(|length| Duration::try_from(length).ok());
    parsed.ok_or_else(|| format!("a length of time is written `30s` or `2m`, which `{text}` is not"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_says_from_when_in_many_ways() {
        let now: ZonedDateTime = "2026-11-30T12:00:00+01:00[Europe/Berlin]".parse().unwrap();
        let check = |typed: &str, expected: &str| {
            let resolved = typed.parse::<Since>().unwrap().resolve(&now).unwrap();
            assert_eq!(resolved.to_string(), expected, "{typed}");
        };
        check("7d", "2026-11-23T11:00:00Z");
        check("7d ago", "2026-11-23T11:00:00Z");
        check("2w", "2026-11-16T11:00:00Z");
        check("1 month", "2026-10-30T11:00:00Z");
        check("36h", "2026-11-28T23:00:00Z");
        check("PT1H", "2026-11-30T10:00:00Z");
        check("2026-11-30T12:00:00Z", "2026-11-30T12:00:00Z");
        check("2026-11-30T12:00:00+02:00", "2026-11-30T10:00:00Z");
        check("2026-11-30", "2026-11-29T23:00:00Z");
        // across the change to winter time seven days are 169 hours
        let after: ZonedDateTime = "2026-10-26T12:00:00+01:00[Europe/Berlin]".parse().unwrap();
        let resolved = "7d".parse::<Since>().unwrap().resolve(&after).unwrap();
        assert_eq!(resolved.to_string(), "2026-10-19T10:00:00Z");
        for bad in ["", "yesterday", "7", "-", "2026-13-01", "昨天"] {
            assert!(bad.parse::<Since>().unwrap_err().contains("7d"), "{bad}");
        }
        let beyond = "19000 years".parse::<Since>().unwrap().resolve(&now).unwrap_err();
        assert_eq!(beyond.exit, Exit::Usage, "{beyond}");
    }

    #[test]
    fn a_length_of_time_is_not_negative_and_has_a_unit() {
        assert_eq!(duration("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(duration("1m 30s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        for bad in ["", "30", "-5s", "soon"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
