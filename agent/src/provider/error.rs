//! What can go wrong with a model, each case one sentence for a person: what was asked, what came instead, what to do.

use std::{fmt, time::Duration};

/// A model did not answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("`{model}` at `{endpoint}` {fault}")]
pub(crate) struct ProviderError {
    /// Which model was asked: `openai/gpt-5`.
    pub model: String,
    /// Where, without anything secret.
    pub endpoint: String,
    /// What went wrong.
    pub fault: Fault,
    /// Whether a part of the answer was shown before; then asking again would show it twice.
    pub shown: bool,
}

/// What went wrong. Reads on after "the model at the address".
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Fault {
    /// No connection came about.
    Unreachable {
        /// The innermost cause.
        why: String,
    },
    /// Nothing came for longer than is borne (row C7.21).
    Silent {
        /// How long that is.
        silence: Duration,
    },
    /// The connection broke.
    Broken {
        /// The innermost cause.
        why: String,
    },
    /// The stream ended cleanly, but nothing said that the answer is whole (row C7.17).
    Incomplete,
    /// The answer has a status of failure.
    Status {
        /// The status.
        status: u16,
        /// The provider's own words, bounded.
        said: Option<String>,
        /// Whether it means that the money ran out, which waiting does not cure.
        spent: bool,
        /// How long the provider asks to wait.
        retry_after: Option<Duration>,
        /// The variable the key is taken from; empty where none is known.
        key_variable: Box<str>,
    },
    /// An error came inside a stream that had begun well (row C7.18).
    Reported {
        /// The provider's own words, bounded.
        said: String,
        /// Whether it is of the kind that passes.
        passing: bool,
    },
    /// The address answers with something else than a stream of events.
    NotAStream {
        /// What it says it is.
        content_type: String,
        /// How it begins, or the provider's own words.
        excerpt: String,
    },
    /// The answer is compressed although it was asked not to be (row C7.23).
    Compressed,
    /// An event is not what an event of this protocol is.
    Garbled {
        /// How it begins.
        excerpt: String,
    },
    /// More came than an answer can have.
    TooLarge {
        /// What was too large: `one event`, `the answer`.
        what: &'static str,
        /// What is borne, in bytes.
        bytes_max: usize,
    },
    /// The client could not be made: no certificates, say.
    Unusable {
        /// The innermost cause.
        why: String,
    },
}

impl Fault {
    /// Whether asking the same thing again later may go well.
    pub(crate) fn passes(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Silent { .. } | Self::Broken { .. } | Self::Incomplete => true,
            Self::Status { status, spent, .. } => !spent && passing_status(*status),
            Self::Reported { passing, .. } => *passing,
            Self::NotAStream { .. }
            | Self::Compressed
            | Self::Garbled { .. }
            | Self::TooLarge { .. }
            | Self::Unusable { .. } => false,
        }
    }

    /// Whether another model may well answer where this one does not: what passes, and what only this account lacks.
    pub(crate) fn is_of_this_model_alone(&self) -> bool {
        match self {
            Self::Status { status, spent, .. } => *spent || *status == 402 || passing_status(*status),
            Self::Unreachable { .. }
            | Self::Silent { .. }
            | Self::Broken { .. }
            | Self::Incomplete
            | Self::Reported { .. }
            | Self::NotAStream { .. }
            | Self::Compressed
            | Self::Garbled { .. }
            | Self::TooLarge { .. }
            | Self::Unusable { .. } => self.passes(),
        }
    }

    /// Whether it means that the conversation is longer than the model takes in (row C7.33). Servers have no common code for
    /// it, so that their words count; what asks for patience is never meant.
    pub(crate) fn is_too_long(&self) -> bool {
        match self {
            Self::Status { status: 413, .. } => true,
            Self::Status { status: 400 | 422 | 500, said: Some(said), spent: false, .. }
            | Self::Reported { said, .. } => says_too_long(said),
            Self::Status { .. }
            | Self::Unreachable { .. }
            | Self::Silent { .. }
            | Self::Broken { .. }
            | Self::Incomplete
            | Self::NotAStream { .. }
            | Self::Compressed
            | Self::Garbled { .. }
            | Self::TooLarge { .. }
            | Self::Unusable { .. } => false,
        }
    }

    /// How long the provider asks to wait before it is asked again.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

/// Whether a server's words are about a conversation that does not fit: OpenAI and those like it, Anthropic, llama.cpp,
/// vLLM, Gemini, Ollama.
fn says_too_long(said: &str) -> bool {
    let said = said.to_lowercase();
    [
        "context length",
        "context_length",
        "context window",
        "context size",
        "maximum context",
        "prompt is too long",
        "input is too long",
        "input token count",
        "too many input tokens",
        "exceeds the available context",
        "exceed_context_size",
        "reduce the length of the messages",
    ]
    .iter()
    .any(|words| said.contains(words))
}

/// Whether a status is one that passes by itself.
pub(crate) fn passing_status(status: u16) -> bool {
    matches!(status, 408 | 409 | 425 | 429 | 500 | 502 | 503 | 504 | 529)
}

impl ProviderError {
    /// Whether asking another model is right: it may well answer, and nothing was shown yet.
    pub(crate) fn is_for_another(&self) -> bool {
        !self.shown && self.fault.is_of_this_model_alone()
    }

    /// Whether asking again with a shorter conversation is right.
    pub(crate) fn is_too_long(&self) -> bool {
        !self.shown && self.fault.is_too_long()
    }

    /// Whether asking again is right: it may go well, and nothing was shown yet.
    pub(crate) fn retryable(&self) -> bool {
        !self.shown && self.fault.passes()
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable { why } => write!(
                f,
                "could not be reached: {why}; start the server, or correct `base_url` under `[model]` in config.toml"
            ),
            Self::Silent { silence } => write!(
                f,
                "said nothing for {}; try again, or raise `silence_max` under `[model]` in config.toml",
                seconds(*silence)
            ),
            Self::Broken { why } => {
                write!(f, "broke off ({why}); what came before that is not an answer, try again")
            }
            Self::Incomplete => f.write_str(
                "stopped without saying that its answer is whole; what came before that is not an answer, try again",
            ),
            Self::Status { status, said, spent, retry_after, key_variable } => {
                status_sentence(f, *status, *spent, key_variable)?;
                if let Some(wait) = retry_after {
                    write!(f, "; it asks to wait {}", seconds(*wait))?;
                }
                match said {
                    Some(said) => write!(f, " (it says: {said})"),
                    None => Ok(()),
                }
            }
            Self::Reported { said, passing: true } => write!(f, "gave up on its answer: {said}; try again"),
            Self::Reported { said, passing: false } => write!(f, "gave up on its answer: {said}"),
            Self::NotAStream { content_type, excerpt } => write!(
                f,
                "answered with `{content_type}` where a stream of events was expected: {excerpt}; check that `base_url` \
                 under `[model]` in config.toml is the server's address, up to its version (`…/v1`), and that it speaks the \
                 protocol of `provider`"
            ),
            Self::Compressed => f.write_str(
                "sent a compressed stream although it was asked not to; look for a proxy on the way that compresses",
            ),
            Self::Garbled { excerpt } => write!(
                f,
                "sent an event that is not JSON: {excerpt}; check that the server at `base_url` under `[model]` in \
                 config.toml speaks the protocol of `provider`"
            ),
            Self::TooLarge { what, bytes_max } => {
                write!(f, "sent more than can be an answer: {what} has over {bytes_max} bytes")
            }
            Self::Unusable { why } => write!(
                f,
                "cannot be asked, because no client for it could be made: {why}; for an `https` address the system's \
                 certificates are needed (the package is often called `ca-certificates`)"
            ),
        }
    }
}

/// What a status means and what to do about it.
fn status_sentence(f: &mut fmt::Formatter<'_>, status: u16, spent: bool, key_variable: &str) -> fmt::Result {
    if spent {
        return write!(
            f,
            "will not go on because the account's credit is used up ({status}); add credit there"
        );
    }
    if status == 401 && key_variable.is_empty() {
        return f.write_str(
            "wants a key (401); name its variable as `key_variable` under `[model]` in config.toml",
        );
    }
    if status == 401 {
        return write!(f, "does not accept the key (401); correct `{key_variable}` in config.env");
    }
    let (meaning, remedy) = match status {
        300..=399 => ("points elsewhere", "put the address it moved to into `base_url` under `[model]`"),
        400 | 422 => ("does not accept the request", "what it says tells which part"),
        402 => ("wants to be paid first", "add credit to the account there"),
        403 => ("does not allow this", "check what the key in config.env may use"),
        404 => (
            "does not know this address or model",
            "check `base_url` (it ends with its version, as in `/v1`) and `name` under `[model]` in config.toml",
        ),
        408 | 504 => ("took too long", "try again"),
        413 => ("finds the conversation too long", "begin a new session"),
        429 => ("is asked too often", "try again later"),
        503 | 529 => ("is overloaded", "try again later"),
        500..=599 => ("has a fault of its own", "try again later"),
        _ => ("refused", "what it says tells why"),
    };
    write!(f, "{meaning} ({status}); {remedy}")
}

fn seconds(duration: Duration) -> String {
    if duration.subsec_millis() == 0 || duration.as_secs() >= 10 {
        format!("{} s", duration.as_secs())
    } else {
        format!("{:.1} s", duration.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(status: u16, spent: bool) -> Fault {
        Fault::Status {
            status,
            said: Some("no".into()),
            spent,
            retry_after: None,
            key_variable: "OPENAI_API_KEY".into(),
        }
    }

    #[test]
    fn what_passes_is_retried_only_before_anything_was_shown() {
        let check = |fault: Fault, retryable: bool| {
            let error = |shown| ProviderError {
                model: "openai/m".into(),
                endpoint: "http://x/v1".into(),
                fault: fault.clone(),
                shown,
            };
            assert_eq!(error(false).retryable(), retryable, "{}", error(false));
            assert!(!error(true).retryable());
        };
        for passing in [408, 409, 425, 429, 500, 502, 503, 504, 529] {
            check(status(passing, false), true);
            check(status(passing, true), false);
        }
        for lasting in [301, 400, 401, 402, 403, 404, 413, 422, 501] {
            check(status(lasting, false), false);
        }
        check(Fault::Unreachable { why: "connection refused".into() }, true);
        check(Fault::Silent { silence: Duration::from_mins(2) }, true);
        check(Fault::Incomplete, true);
        check(Fault::Reported { said: "overloaded".into(), passing: true }, true);
        check(Fault::Reported { said: "bad".into(), passing: false }, false);
        check(Fault::Compressed, false);
    }

    #[test]
    fn c7_33_a_conversation_that_does_not_fit_is_known_by_what_servers_say() {
        let check = |code: u16, said: &str, too_long: bool| {
            let Fault::Status { spent, retry_after, key_variable, .. } = status(code, false) else {
                panic!()
            };
            let fault =
                Fault::Status { status: code, said: Some(said.into()), spent, retry_after, key_variable };
            assert_eq!(fault.is_too_long(), too_long, "{code} {said}");
        };
        check(
            400,
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000",
            true,
        );
        check(400, "prompt is too long: 210000 tokens > 200000 maximum", true);
        check(400, "the request exceeds the available context size. try increasing the context size", true);
        check(400, "The input token count (1200000) exceeds the maximum number of tokens allowed", true);
        check(500, "Context size has been exceeded.", true);
        check(413, "no", true);
        check(400, "tools.0.name: invalid", false);
        check(429, "Request too large on tokens per min; context length", false);
        check(401, "context length", false);
        assert!(Fault::Reported { said: "context_length_exceeded".into(), passing: false }.is_too_long());
        assert!(!Fault::Incomplete.is_too_long());
    }

    #[test]
    fn each_fault_is_one_sentence_that_names_the_remedy() {
        let error = ProviderError {
            model: "openai/qwen".into(),
            endpoint: "http://127.0.0.1:8080/v1".into(),
            fault: status(404, false),
            shown: false,
        };
        assert_eq!(
            error.to_string(),
            "`openai/qwen` at `http://127.0.0.1:8080/v1` does not know this address or model (404); check `base_url` (it ends \
             with its version, as in `/v1`) and `name` under `[model]` in config.toml (it says: no)"
        );
        let silent = Fault::Silent { silence: Duration::from_millis(1500) };
        assert!(silent.to_string().contains("1.5 s"));
    }
}
