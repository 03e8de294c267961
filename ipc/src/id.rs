//! The ids that tie a piece of work together across processes, restarts and repeated questions.

use serde::{Deserialize, Serialize};

use crate::digest::hex;

/// The id of one piece of work: the same in the question, in every repetition of it, in the answer, and in the commit it made.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RequestId(String);

/// The longest request id taken from a peer, in characters.
pub const REQUEST_ID_CHARS_MAX: usize = 64;

impl RequestId {
    /// A fresh id: 96 random bits, so that two processes never mint the same one.
    pub fn fresh() -> Self {
        Self(random_hex::<12>())
    }

    /// The id as it stands on the wire and in a commit's `Request-Id:` trailer.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Why a text is no request id.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("a request id is 1 to {REQUEST_ID_CHARS_MAX} letters, digits, `-`, `_` or `.`, which `{0}` is not")]
pub struct NotARequestId(String);

impl TryFrom<String> for RequestId {
    type Error = NotARequestId;

    fn try_from(text: String) -> Result<Self, NotARequestId> {
        let fits = (1..=REQUEST_ID_CHARS_MAX).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
        if fits { Ok(Self(text)) } else { Err(NotARequestId(crate::text::one_line(&text, 80))) }
    }
}

impl From<RequestId> for String {
    fn from(id: RequestId) -> String {
        id.0
    }
}

impl std::fmt::Display for RequestId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::fmt::Debug for RequestId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// `N` random bytes of the operating system, as hexadecimal digits.
pub fn random_hex<const N: usize>() -> String {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system has random bytes");
    hex(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_checked_where_they_come_in() {
        assert!(RequestId::try_from("heartbeat-2026-11-30.1".to_owned()).is_ok());
        for bad in ["", "a b", "a\nRequest-Id: b", "身份", &"x".repeat(65)] {
            assert!(RequestId::try_from(bad.to_owned()).is_err(), "{bad}");
        }
        assert_ne!(RequestId::fresh(), RequestId::fresh());
    }
}
