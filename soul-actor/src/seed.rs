//! The seed: what is drawn at birth and never again, in the original's form.

use ipc::{
    contract::soul::BigFive,
    digest::{hex, sha256_hex},
};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::members;

/// Where it lies. That it is there means that she is born, so it is written last.
pub(crate) const PATH: &str = "seed.json";

/// The field that names the form.
const FORM: &str = "soulSchemaVersion";

/// Which form the files of a soul have.
pub(crate) const SCHEMA_VERSION: u32 = 1;

/// What was drawn.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Seed {
    randomness: [u8; 32],
}

impl Seed {
    /// A seed of the operating system's randomness.
    pub(crate) fn draw() -> Self {
        let mut randomness = [0; 32];
        getrandom::fill(&mut randomness).expect("the operating system has random bytes");
        Self { randomness }
    }

    /// A seed of known randomness.
    #[cfg(test)]
    pub(crate) fn of(randomness: [u8; 32]) -> Self {
        Self { randomness }
    }

    /// The temperament: each trait four bytes of the randomness, big-endian, as a part of the greatest there is.
    pub(crate) fn big_five(&self) -> BigFive {
        let (words, _) = self.randomness.as_chunks::<4>();
        let drawn = |n: usize| f64::from(u32::from_be_bytes(words[n])) / f64::from(u32::MAX);
        BigFive {
            openness: drawn(0),
            conscientiousness: drawn(1),
            extraversion: drawn(2),
            agreeableness: drawn(3),
            neuroticism: drawn(4),
        }
    }

    /// Some drawn number below `below`, for choices of wording; each `place` from 0 to 2 gives another.
    pub(crate) fn choice(&self, place: usize, below: usize) -> usize {
        let (words, _) = self.randomness.as_chunks::<4>();
        usize::try_from(u32::from_be_bytes(words[5 + place])).unwrap_or(0) % below
    }

    /// The file. `whereabouts` is host and user, of which only a digest is kept.
    pub(crate) fn render(&self, born_at: Timestamp, whereabouts: &str) -> Vec<u8> {
        let seed = json!({
            "bornAt": format!("{born_at:.3}"),
            "bornOn": sha256_hex(whereabouts.as_bytes()),
            "randomness": hex(&self.randomness),
            "bigFive": self.big_five(),
            "soulSchemaVersion": SCHEMA_VERSION,
        });
        serde_json::to_vec_pretty(&seed).expect("a seed is JSON")
    }
}

/// What a seed file says about when she was born and how she is; a file that is broken says nothing.
pub(crate) fn read(bytes: &[u8]) -> (Option<String>, Option<BigFive>) {
    let seed: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let born_at = seed["bornAt"].as_str().map(str::to_owned);
    (born_at, serde_json::from_value(seed["bigFive"].clone()).ok())
}

/// The version of the form of the files that a seed file names; the original's names none.
pub(crate) fn schema(bytes: &[u8]) -> Option<u64> {
    serde_json::from_slice::<Value>(bytes).ok()?[FORM].as_u64()
}

/// The form the files have, 0 where the seed names none; nothing where the seed is torn, or names what is no form.
pub(crate) fn form(bytes: &[u8]) -> Option<u64> {
    match serde_json::from_slice::<Value>(bytes).ok()?.as_object()?.get(FORM) {
        None => Some(0),
        Some(version) => version.as_u64(),
    }
}

/// Why a soul of this seed may only be read, if so.
pub(crate) fn too_new(bytes: &[u8]) -> Option<String> {
    let seed: Value = serde_json::from_slice(bytes).ok()?;
    let version = seed.get(FORM)?;
    if version.as_u64().is_some_and(|version| version <= u64::from(SCHEMA_VERSION)) {
        return None;
    }
    Some(format!(
        "her files have the form {version}, and this Lisa knows those up to {SCHEMA_VERSION}; install the newer one; she can be read, not changed"
    ))
}

/// The seed with the form it names from now on, and every other byte of it as it was: what others keep in it is theirs.
/// Nothing where it is no object.
pub(crate) fn stamp(bytes: &[u8], form: u64) -> Option<Vec<u8>> {
    members::set(bytes, FORM, &form.to_string())
}

/// Host and user, as the original joins them.
pub(crate) fn whereabouts() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let user = ["USER", "LOGNAME"].into_iter().find_map(|name| std::env::var(name).ok());
    host + &user.unwrap_or_else(|| ipc::endpoint::our_uid().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::members::any_json;
    use proptest::prelude::*;

    #[test]
    fn a_stamp_is_written_as_the_rest_is_and_touches_nothing_else() {
        let check = |seed: &str, expected: &str| {
            let stamped = stamp(seed.as_bytes(), 1).map(|bytes| String::from_utf8(bytes).unwrap());
            assert_eq!(stamped.unwrap_or_default(), expected, "{seed}");
        };
        check("{\n  \"a\": 1\n}", "{\n  \"a\": 1,\n  \"soulSchemaVersion\": 1\n}");
        check(
            "{\r\n\t\"a\" : [1, {}]\r\n}\r\n",
            "{\r\n\t\"a\" : [1, {}],\r\n\t\"soulSchemaVersion\": 1\r\n}\r\n",
        );
        check("{\"a\":\"}\\\",\"}", "{\"a\":\"}\\\",\",\"soulSchemaVersion\":1}");
        check("{}", "{\"soulSchemaVersion\":1}");
        check(" { } ", " { \"soulSchemaVersion\":1} ");
        check("{\"soulSchemaVersion\": 0 , \"b\": 1e400000}", "");
        check(
            "{\"soul\\u0053chemaVersion\": 0 , \"b\": 1.50}",
            "{\"soul\\u0053chemaVersion\": 1 , \"b\": 1.50}",
        );
        check(
            "{\"x\":{\"soulSchemaVersion\":3}}",
            "{\"x\":{\"soulSchemaVersion\":3},\"soulSchemaVersion\":1}",
        );
        for none in ["", "torn", "[]", "7", "{\"a\":1", "\u{feff}{}"] {
            check(none, "");
        }
        assert_eq!(
            (form(b"{}"), form(b"{\"soulSchemaVersion\":3}"), form(b"torn")),
            (Some(0), Some(3), None)
        );
        assert!(
            too_new(b"{\"soulSchemaVersion\":\"2026-1\"}").unwrap().contains("2026-1"),
            "no form of ours"
        );
    }

    proptest! {
        #[test]
        fn whatever_others_keep_in_a_seed_survives_a_stamp_byte_for_byte(
            mut members in prop::collection::vec((any::<String>(), any_json()), 0..6),
            pretty in any::<bool>(),
            (before, behind) in ("[ \\n\\t\\r]{0,3}", "[ \\n\\t\\r]{0,3}"),
            known in prop::option::of((0..6_usize, 0..9_u64)),
        ) {
            if let Some((at, form)) = known {
                members.insert(at.min(members.len()), (FORM.to_owned(), form.into()));
            }
            let seed = Value::Object(members.into_iter().collect());
            let text = if pretty { serde_json::to_string_pretty(&seed) } else { serde_json::to_string(&seed) };
            let text = format!("{before}{}{behind}", text.unwrap());
            let stamped = String::from_utf8(stamp(text.as_bytes(), 10).unwrap()).unwrap();
            let mut expected = seed.clone();
            expected[FORM] = json!(10);
            let read: Value = serde_json::from_str(&stamped).unwrap();
            // the order of the fields counts
            prop_assert_eq!(read.to_string(), expected.to_string());
            // what is in common at the beginning and at the end is all there was, but for an old number
            let common = |a: &mut dyn Iterator<Item = (u8, u8)>| a.take_while(|(a, b)| a == b).count();
            let first = common(&mut text.bytes().zip(stamped.bytes()));
            let last = common(&mut text.bytes().rev().zip(stamped.bytes().rev()));
            prop_assert!(first + last + usize::from(known.is_some()) >= text.len(), "{} {}", text, stamped);
        }
    }

    #[test]
    fn the_temperament_follows_from_the_randomness_as_in_the_original() {
        let mut randomness = [0; 32];
        randomness[..8].copy_from_slice(&[0xff, 0xff, 0xff, 0xff, 0x80, 0, 0, 0]);
        let seed = Seed::of(randomness);
        let five = seed.big_five();
        assert!((five.openness - 1.0).abs() < f64::EPSILON && five.extraversion.abs() < f64::EPSILON);
        assert!((five.conscientiousness - 2_147_483_648.0 / 4_294_967_295.0).abs() < 1e-15);
        let bytes = seed.render("2026-11-30T12:00:00.1239Z".parse().unwrap(), "host\u{0}anna");
        let text = String::from_utf8(bytes.clone()).unwrap();
        assert!(
            text.starts_with("{\n  \"bornAt\": \"2026-11-30T12:00:00.123Z\",\n  \"bornOn\": \""),
            "{text}"
        );
        assert!(text.ends_with("\"soulSchemaVersion\": 1\n}"), "{text}");
        assert_eq!(read(&bytes), (Some("2026-11-30T12:00:00.123Z".into()), Some(five)));
        assert_eq!(read(b"torn"), (None, None));
        assert_eq!(
            (schema(&bytes), schema(b"{}"), too_new(&bytes), too_new(b"{}")),
            (Some(1), None, None, None)
        );
        assert!(too_new(br#"{"soulSchemaVersion": 2}"#).unwrap().contains("form 2"));
        assert_ne!(Seed::draw(), Seed::draw());
    }
}
