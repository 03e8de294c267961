//! Whether a request that failed is made again, and after how long.
//!
//! The server's wish (`Retry-After`) is the least that is waited; a wish that is longer than is borne ends the attempt
//! instead of being cut short, because asking earlier than asked to is what gets clients locked out (row C7.19).

use std::time::Duration;

use jiff::Timestamp;

/// How patient a request is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Patience {
    /// How often it is made in all.
    pub attempts_max: u32,
    /// The first wait without a wish of the server; each further one is twice as long.
    pub wait_first: Duration,
    /// The longest single wait.
    pub wait_max: Duration,
    /// The longest all waits may be together: a person sits in front of it.
    pub waits_max: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            attempts_max: 3,
            wait_first: Duration::from_secs(1),
            wait_max: Duration::from_secs(30),
            waits_max: Duration::from_mins(1),
        }
    }
}

impl Patience {
    /// How long to wait before the next attempt; nothing where there is none.
    ///
    /// `attempt` failed, counted from 1, after `waited` in all; `wish` is what the server asked for, `jitter` a number from
    /// 0 to 1 that keeps many clients from coming back at the same moment.
    pub(super) fn wait(
        self,
        attempt: u32,
        waited: Duration,
        wish: Option<Duration>,
        jitter: f64,
    ) -> Option<Duration> {
        if attempt >= self.attempts_max {
            return None;
        }
        let doubled = self.wait_first.saturating_mul(2_u32.saturating_pow(attempt.saturating_sub(1)));
        let jitter = if jitter.is_finite() { jitter.clamp(0.0, 1.0) } else { 0.0 };
        let own = doubled.min(self.wait_max).mul_f64(f64::midpoint(1.0, jitter));
        let wait = own.max(wish.unwrap_or_default());
        (wait <= self.wait_max && waited.saturating_add(wait) <= self.waits_max).then_some(wait)
    }
}

/// What a server wishes: `retry-after-ms`, or `retry-after` in seconds or as an HTTP date, of which `now` is taken away.
pub(super) fn wish(
    retry_after_ms: Option<&str>,
    retry_after: Option<&str>,
    now: Timestamp,
) -> Option<Duration> {
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
    if let Some(ms) = retry_after_ms.and_then(number) {
        return Some(Duration::try_from_secs_f64(ms / 1000.0).unwrap_or(Duration::MAX));
    }
    let text = retry_after?;
    if let Some(seconds) = number(text) {
        return Some(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX));
    }
    let at = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text.trim()).ok()?;
    Some(Duration::try_from(at.duration_since(now)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn c7_19_the_longer_of_wish_and_back_off_is_waited() {
        let check = |attempt, waited, wish, jitter, expected: Option<Duration>| {
            assert_eq!(
                Patience::default().wait(attempt, waited, wish, jitter),
                expected,
                "attempt {attempt} {wish:?}"
            );
        };
        check(1, ms(0), None, 1.0, Some(ms(1000)));
        check(1, ms(0), None, 0.0, Some(ms(500)));
        check(2, ms(0), None, 1.0, Some(ms(2000)));
        check(3, ms(0), None, 1.0, None);
        check(1, ms(0), Some(ms(7000)), 1.0, Some(ms(7000)));
        check(1, ms(0), Some(ms(0)), 1.0, Some(ms(1000)));
        check(1, ms(0), Some(ms(30_000)), 1.0, Some(ms(30_000)));
        check(1, ms(0), Some(ms(30_001)), 1.0, None);
        check(1, ms(0), Some(Duration::MAX), 1.0, None);
        check(2, ms(30_000), Some(ms(30_000)), 1.0, Some(ms(30_000)));
        check(2, ms(30_001), Some(ms(30_000)), 1.0, None);
        check(1, ms(0), None, f64::NAN, Some(ms(500)));
        check(1, ms(0), None, 7.0, Some(ms(1000)));
    }

    #[test]
    fn the_wait_has_a_bound_however_many_attempts_there_are() {
        let patient = Patience { attempts_max: 100, ..Patience::default() };
        assert_eq!(patient.wait(60, ms(0), None, 1.0), Some(ms(30_000)));
    }

    #[test]
    fn c7_19_every_spelling_of_a_wish() {
        let now: Timestamp = "2015-10-21T07:27:30Z".parse().unwrap();
        let check = |ms: Option<&str>, text: Option<&str>, expected: Option<Duration>| {
            assert_eq!(wish(ms, text, now), expected, "{ms:?} {text:?}");
        };
        check(None, None, None);
        check(None, Some("2"), Some(ms(2000)));
        check(None, Some(" 0.5 "), Some(ms(500)));
        check(Some("120"), Some("2"), Some(ms(120)));
        check(Some("soon"), Some("2"), Some(ms(2000)));
        check(None, Some("Wed, 21 Oct 2015 07:28:00 GMT"), Some(ms(30_000)));
        check(None, Some("Wed, 21 Oct 2015 07:00:00 GMT"), Some(ms(0)));
        check(None, Some("1e400"), None);
        check(None, Some("1e300"), Some(Duration::MAX));
        check(None, Some("-3"), None);
        check(None, Some("tomorrow"), None);
        check(None, Some(""), None);
    }
}
