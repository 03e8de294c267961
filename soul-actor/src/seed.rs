//! The seed: what is drawn at birth and never again, in the original's form.

use ipc::{
    contract::soul::BigFive,
    digest::{hex, sha256_hex},
};
use jiff::Timestamp;
use serde_json::{Value, json};

/// Where it lies. That it is there means that she is born, so it is written last.
pub(crate) const PATH: &str = "seed.json";

/// Which form the files of a soul have.
const SCHEMA_VERSION: u32 = 1;

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
    serde_json::from_slice::<Value>(bytes).ok()?["soulSchemaVersion"].as_u64()
}

/// Why a soul of this seed may only be read, if so.
pub(crate) fn too_new(bytes: &[u8]) -> Option<String> {
    let version = schema(bytes).filter(|version| *version > u64::from(SCHEMA_VERSION))?;
    Some(format!(
        "her files have the form {version}, and this Lisa knows those up to {SCHEMA_VERSION}; install the newer one; she can be read, not changed"
    ))
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
