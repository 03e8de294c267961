//! Exit codes, and the error a process ends with: they speak to whoever started us.

use std::{error::Error, fmt, process::ExitCode};

/// Why a process ends; its number is the exit code, after `sysexits.h` where that has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// 0: it was asked to stop, or it is done.
    Asked = 0,
    /// 1: it did not work; the sentence says why and what to do.
    Failed = 1,
    /// 64: it was called in a way that makes no sense.
    Usage = 64,
    /// 69: no supervisor is running.
    Unavailable = 69,
    /// 70: a bug of ours.
    Bug = 70,
    /// 75: start me again.
    Again = 75,
    /// 78: the configuration is wrong; starting again will not mend it.
    Configuration = 78,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// An error that ends a process, with the exit code that says what kind it is.
#[derive(Debug)]
pub struct Fault {
    /// What the process manager is told.
    pub exit: Exit,
    /// What a person is told.
    pub source: Box<dyn Error + Send + Sync>,
}

impl Fault {
    /// The configuration, or what the home looks like, is wrong: a person must change something first.
    pub fn configuration(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { exit: Exit::Configuration, source: source.into() }
    }

    /// Something outside failed; the same start may work later.
    pub fn again(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { exit: Exit::Again, source: source.into() }
    }

    /// It did not work, and what to do is in the sentence.
    pub fn failed(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { exit: Exit::Failed, source: source.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&chain(self.source.as_ref()))
    }
}

/// An error and its causes on one line, each cause behind a colon; one that only repeats its cause is said once.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !line.ends_with(&next) {
            line.push_str(": ");
            line.push_str(&next);
        }
        cause = error.source();
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("could not read `{path}`")]
    struct Outer {
        path: &'static str,
        source: std::io::Error,
    }

    #[test]
    fn the_chain_is_printed_once() {
        let error = Outer { path: "config.toml", source: std::io::Error::other("it is a folder") };
        assert_eq!(chain(&error), "could not read `config.toml`: it is a folder");
    }
}
