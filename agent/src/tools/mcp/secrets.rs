//! What a person's `mcp.json` holds that nobody else is to see, and how it is taken out of what servers say.
//!
//! A server may repeat what it was given: in an error, in its last words, in a result that goes into a session. All of
//! that passes through here before it goes anywhere.

use std::fmt;

/// What stands where a secret was.
const SHOWN: &str = "(a secret)";
/// Shorter values say nothing about what they keep, and would be found in every other text.
const SECRET_CHARS_MIN: usize = 6;
/// How long a value without a telling name must be to be taken for a key.
const KEY_CHARS_MIN: usize = 16;
/// What the names of secrets have in them.
const TELLING: [&str; 10] =
    ["KEY", "TOKEN", "SECRET", "PASS", "AUTH", "CRED", "COOKIE", "SESSION", "PRIVATE", "SIGN"];

/// The secrets of one server. Showing them does not show them.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Secrets(Vec<String>);

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.0.len())
    }
}

impl Secrets {
    /// Keeps the value of a header, and each word of it: a server may repeat the token without `Bearer`.
    pub(super) fn keep_header(&mut self, value: &str) {
        self.keep(value);
        value
            .split_whitespace()
            .filter(|word| *word != "Bearer" && *word != "Basic")
            .for_each(|word| self.keep(word));
    }

    /// Keeps the value of a variable, unless it plainly is none: a path, a word, a number under a name that tells nothing.
    pub(super) fn keep_variable(&mut self, name: &str, value: &str) {
        if is_secret(name, value) {
            self.keep(value);
        }
    }

    /// Keeps what is secret among the arguments of a program: `--token=…`, and `--token …`.
    pub(super) fn keep_arguments(&mut self, arguments: &[String]) {
        let mut before = "";
        for argument in arguments {
            let (name, value) = argument.split_once('=').unwrap_or((before, argument));
            if !value.starts_with('-') {
                self.keep_variable(name, value);
            }
            before = if argument.starts_with('-') && !argument.contains('=') { argument } else { "" };
        }
    }

    /// Keeps a value as it stands.
    pub(super) fn keep(&mut self, value: &str) {
        let value = value.trim();
        if ipc::text::chars(value) >= SECRET_CHARS_MIN && !self.0.iter().any(|kept| kept == value) {
            self.0.push(value.to_owned());
            // one that is part of another must not break that up
            self.0.sort_by_key(|kept| std::cmp::Reverse(kept.len()));
        }
    }

    /// `text` without them.
    pub(super) fn scrub(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| {
            if text.contains(secret.as_str()) { text.replace(secret.as_str(), SHOWN) } else { text }
        })
    }
}

fn is_secret(name: &str, value: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let is_path = value.starts_with(['/', '~', '.']);
    if TELLING.iter().any(|word| name.contains(word)) && !is_path {
        return true;
    }
    if let Some((_, rest)) = value.split_once("://") {
        // `postgres://name:password@host` and addresses with a key in their query
        return rest.contains(['@', '?']);
    }
    let has = |kind: fn(&char) -> bool| value.chars().any(|c| kind(&c));
    ipc::text::chars(value) >= KEY_CHARS_MIN
        && !is_path
        && !has(|c| c.is_whitespace())
        && has(char::is_ascii_digit)
        && has(char::is_ascii_alphabetic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_secret_is_told_by_its_name_or_its_looks() {
        let check = |name: &str, value: &str, secret: bool| {
            assert_eq!(is_secret(name, value), secret, "{name}={value}");
        };
        check("GITHUB_TOKEN", "hunter2!", true);
        check("api_key", "abcdef", true);
        check("KEY_FILE", "/home/anna/key.pem", false);
        check("NODE_ENV", "production", false);
        check("ROOT", "/home/anna/projects/2026", false);
        check("PORT", "8080", false);
        check("X", "ghp_0123456789abcdefghij", true);
        check("DATABASE", "postgres://anna:pw@db/x", true);
        check("BASE", "http://127.0.0.1:8080/v1", false);
    }

    #[test]
    fn arguments_are_told_by_what_stands_before_them() {
        let check = |arguments: &[&str], secret: &str, other: &str| {
            let mut secrets = Secrets::default();
            secrets.keep_arguments(&arguments.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>());
            assert_eq!(
                secrets.scrub(&format!("{secret} {other}")),
                format!("(a secret) {other}"),
                "{arguments:?}"
            );
        };
        check(&["-y", "package", "--api-key", "hunter2", "--verbose"], "hunter2", "package --verbose");
        check(&["--token=灯塔灯塔灯塔", "production"], "灯塔灯塔灯塔", "production");
        check(
            &["--auth", "--root", "/home/anna", "ghp_0123456789abcdefghij"],
            "ghp_0123456789abcdefghij",
            "--root /home/anna",
        );
    }

    #[test]
    fn they_are_taken_out_wherever_they_stand_and_shown_nowhere() {
        let mut secrets = Secrets::default();
        secrets.keep_header("Bearer sk-灯塔-123456");
        secrets.keep_variable("TOKEN", "sk-灯塔");
        secrets.keep_variable("LANG", "C");
        let said = secrets.scrub("no: Bearer sk-灯塔-123456 (sk-灯塔-123456, sk-灯塔) C");
        assert_eq!(said, "no: (a secret) ((a secret), sk-灯塔) C", "five characters are too few to be one");
        assert!(!format!("{secrets:?}").contains("sk-"));
    }
}
