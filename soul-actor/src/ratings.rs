//! Ratings: what a person thinks of her replies, and what all of it together comes to.
//!
//! ```text
//!  {"ts":"2026-12-01T12:00:00.000Z","sessionId":"…","messageId":"…","score":1}        one line a rating, in ratings.jsonl
//!
//!  weight = Σ(score · 0.5^(age / half-life)) / Σ(0.5^(age / half-life)), from [-1, 1] to [0, 1]
//! ```
//!
//! Only a person writes it. A reply that is rated again counts once, with its newest rating. A line that is no rating is
//! kept and counts for nothing.

use std::collections::HashSet;

use ipc::{
    config::Gates,
    contract::soul::{Rate, Score},
};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::held::iso;

/// The longest name of a session or a message, in characters.
pub(crate) const NAME_CHARS_MAX: usize = 120;
/// How many lines the file keeps: many times what counts. Older ones are in the history.
const LINES_MAX: usize = 500;

/// One rating.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rating {
    /// When.
    pub(crate) at: Timestamp,
    /// Of which reply.
    pub(crate) message: String,
    /// How good it was: -1, 0 or 1.
    pub(crate) score: i8,
}

/// The ratings of a file, oldest first, each reply once.
pub(crate) fn read(bytes: &[u8]) -> Vec<Rating> {
    let rating = |line: &str| {
        let line: Value = serde_json::from_str(line).ok()?;
        let score = line["score"].as_i64().filter(|score| (-1..=1).contains(score))?;
        Some(Rating {
            at: line["ts"].as_str()?.parse().ok()?,
            message: line["messageId"].as_str()?.to_owned(),
            score: i8::try_from(score).ok()?,
        })
    };
    let text = String::from_utf8_lossy(bytes);
    let mut seen = HashSet::new();
    let mut ratings: Vec<_> =
        text.lines().rev().filter_map(rating).filter(|rating| seen.insert(rating.message.clone())).collect();
    ratings.reverse();
    ratings
}

/// The file's new bytes with one more rating; nothing where the reply is rated so already.
pub(crate) fn add(old: &[u8], rate: &Rate, now: Timestamp) -> Option<Vec<u8>> {
    let score: i8 = match rate.score {
        Score::Down => -1,
        Score::Meh => 0,
        Score::Up => 1,
    };
    if read(old).iter().any(|rating| rating.message == rate.message && rating.score == score) {
        return None;
    }
    let line = json!({"ts": iso(now), "sessionId": rate.session, "messageId": rate.message, "score": score});
    let mut lines: Vec<&[u8]> = old.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
    let line = line.to_string();
    lines.push(line.as_bytes());
    let kept = lines.len().saturating_sub(LINES_MAX);
    let mut bytes = lines[kept..].join(&b'\n');
    bytes.push(b'\n');
    Some(bytes)
}

/// What the newest ratings come to, from 0 to 1; nothing where there are too few to say.
pub(crate) fn weight(ratings: &[Rating], now: Timestamp, gates: &Gates) -> Option<f64> {
    let newest = ratings.len().saturating_sub(gates.ratings_max as usize);
    let counted = &ratings[newest..];
    if counted.is_empty() || counted.len() < gates.ratings_min as usize {
        return None;
    }
    let half_life = gates.half_life.as_secs_f64();
    let (mut sum, mut all) = (0.0, 0.0);
    for rating in counted {
        // a clock that went back makes nothing heavier than new
        let age = now.duration_since(rating.at).as_secs_f64().max(0.0);
        let decay = 0.5_f64.powf(age / half_life);
        sum += f64::from(rating.score) * decay;
        all += decay;
    }
    // so old that nothing is left of any of them: as if there were none
    (all > f64::MIN_POSITIVE).then(|| f64::midpoint(sum / all, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::SignedDuration;
    use proptest::prelude::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn rate(message: &str, score: Score) -> Rate {
        Rate { score, session: Some("s".into()), message: message.into(), human: true }
    }

    fn rated(scores: &[(i8, i64)], now: Timestamp) -> Vec<Rating> {
        let rating = |(n, (score, days)): (usize, &(i8, i64))| Rating {
            at: now - SignedDuration::from_hours(24 * days),
            message: n.to_string(),
            score: *score,
        };
        scores.iter().enumerate().map(rating).collect()
    }

    #[test]
    fn the_weight_is_that_of_the_design() {
        let now = at("2026-12-01T12:00:00Z");
        let check = |scores: &[(i8, i64)], expected: Option<f64>| {
            let weight = weight(&rated(scores, now), now, &Gates::default());
            match (weight, expected) {
                (Some(weight), Some(expected)) => {
                    assert!((weight - expected).abs() < 1e-9, "{weight} {scores:?}");
                }
                (weight, expected) => assert_eq!(weight, expected, "{scores:?}"),
            }
        };
        check(&[], None);
        check(&[(-1, 0), (-1, 0)], None);
        check(&[(-1, 0), (-1, 0), (-1, 0)], Some(0.0));
        check(&[(1, 0), (1, 3), (1, 9)], Some(1.0));
        check(&[(0, 0), (0, 0), (0, 0)], Some(0.5));
        // a week old it weighs half: (-0.5 - 0.5 + 1) / 2
        check(&[(-1, 7), (-1, 7), (1, 0)], Some(0.5));
        check(&[(1, 14), (-1, 7), (-1, 0)], Some(f64::midpoint((0.25 - 0.5 - 1.0) / 1.75, 1.0)));
        // of more than twenty the newest twenty count
        let many: Vec<_> = (0..5).map(|_| (-1, 30)).chain((0..20).map(|_| (1, 0))).collect();
        check(&many, Some(1.0));
    }

    #[test]
    fn a_rating_in_the_future_weighs_no_more_than_a_new_one() {
        let now = at("2026-12-01T12:00:00Z");
        let ahead = rated(&[(1, -300), (-1, 0), (-1, 0), (-1, 0)], now);
        assert!((weight(&ahead, now, &Gates::default()).unwrap() - 0.25).abs() < 1e-9);
        let ancient = rated(&[(1, 9000), (1, 9000), (1, 9000)], now);
        assert_eq!(weight(&ancient, now, &Gates::default()), None);
    }

    #[test]
    fn a_reply_counts_once_with_its_newest_rating_and_stray_lines_stay() {
        let now = at("2026-12-01T12:00:00Z");
        let old = b"torn {\"score\n{\"ts\":\"2026-11-30T00:00:00Z\",\"messageId\":\"a\",\"score\":7,\"note\":\"x\"}".to_vec();
        assert_eq!(read(&old), []);
        let bytes = add(&old, &rate("a", Score::Up), now).unwrap();
        let bytes = add(&bytes, &rate("b", Score::Meh), now).unwrap();
        assert_eq!(add(&bytes, &rate("b", Score::Meh), now), None, "rated so already");
        let bytes = add(&bytes, &rate("a", Score::Down), now).unwrap();
        let ratings = read(&bytes);
        assert_eq!(
            ratings.iter().map(|rating| (rating.message.as_str(), rating.score)).collect::<Vec<_>>(),
            [("b", 0), ("a", -1)]
        );
        assert!(bytes.starts_with(&old));
    }

    proptest! {
        #[test]
        fn whatever_a_message_is_called_it_reads_back(
            names in prop::collection::vec(any::<String>(), 1..20), old in prop::collection::vec(any::<u8>(), 0..60),
        ) {
            let now = at("2026-12-01T12:00:00Z");
            let mut bytes = old;
            for name in &names {
                bytes = add(&bytes, &rate(name, Score::Up), now).unwrap_or(bytes);
            }
            let read = read(&bytes);
            prop_assert!(names.iter().all(|name| read.iter().any(|rating| rating.message == *name)));
            let weight = weight(&read, now, &Gates { ratings_min: 0, ..Gates::default() }).unwrap();
            prop_assert!((0.0..=1.0).contains(&weight));
        }
    }
}
