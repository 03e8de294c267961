//! `config.env`: keys of model providers, one `KEY=VALUE` a line, as the original LISA writes them.
//!
//! A line may begin with `export `. A value in `"…"` knows the escapes `\\`, `\"` and `\n`, one in `'…'` is taken as it
//! stands, and in one without quotes ` #` begins a comment. The process environment comes first: a variable that is set and
//! not empty there is never overridden from here.

use std::{collections::BTreeMap, fmt};

/// What a `config.env` says. Its values are secrets, so showing it shows the names only.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct ConfigEnv {
    values: BTreeMap<String, String>,
    /// The lines, counted from 1, that are no `KEY=VALUE` and were left out.
    pub skipped: Vec<usize>,
}

impl fmt::Debug for ConfigEnv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfigEnv")
            .field("names", &self.values.keys().collect::<Vec<_>>())
            .field("skipped", &self.skipped)
            .finish()
    }
}

impl ConfigEnv {
    /// Reads what the file says. A later line overrides an earlier one.
    pub(crate) fn parse(text: &str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut read = Self::default();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match pair(line) {
                Some((key, value)) => {
                    read.values.insert(key.to_owned(), value);
                }
                None => read.skipped.push(index + 1),
            }
        }
        read
    }

    /// The value of `key`: the one of the process where it is set and not empty, else the one in the file.
    pub(crate) fn get(&self, key: &str, process: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        process(key).filter(|value| !value.is_empty()).or_else(|| self.values.get(key).cloned())
    }
}

fn pair(line: &str) -> Option<(&str, String)> {
    let line = match line.strip_prefix("export") {
        Some(rest) if rest.starts_with([' ', '\t']) => rest.trim_start(),
        Some(_) | None => line,
    };
    let (key, value) = line.split_once('=')?;
    let key = key.trim_end();
    let mut letters = key.chars();
    let first = letters.next()?;
    let named = (first.is_ascii_alphabetic() || first == '_')
        && letters.all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !named {
        return None;
    }
    Some((key, unquoted(value.trim_start())?))
}

/// The value without its quotes; nothing where the closing quote is missing.
fn unquoted(value: &str) -> Option<String> {
    if let Some(raw) = value.strip_prefix('\'') {
        return raw.split_once('\'').map(|(inside, _)| inside.to_owned());
    }
    let Some(quoted) = value.strip_prefix('"') else {
        // A `#` is a comment only after a blank: keys and addresses may contain one.
        let end = value
            .char_indices()
            .zip(std::iter::once(' ').chain(value.chars()))
            .find(|((_, c), before)| *c == '#' && before.is_whitespace())
            .map_or(value.len(), |((at, _), _)| at);
        return Some(value.get(..end).unwrap_or(value).trim_end().to_owned());
    };
    let mut inside = String::new();
    let mut letters = quoted.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => return Some(inside),
            '\\' => match letters.next()? {
                'n' => inside.push('\n'),
                escaped @ ('\\' | '"') => inside.push(escaped),
                other => inside.extend(['\\', other]),
            },
            other => inside.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(text: &str, key: &str) -> Option<String> {
        ConfigEnv::parse(text).get(key, &|_| None)
    }

    #[test]
    fn a_line_says_one_thing() {
        let check = |line: &str, expected: Option<&str>| {
            assert_eq!(get(line, "KEY").as_deref(), expected, "{line}");
        };
        check("KEY=value", Some("value"));
        check("  export KEY = value  ", Some("value"));
        check("export\tKEY=value", Some("value"));
        check("\u{feff}KEY=value\r\n", Some("value"));
        check("KEY=sk-a#b # a comment", Some("sk-a#b"));
        check("KEY=# only a comment", Some(""));
        check("KEY=\"a \\\"b\\\" \\\\ c\\nd\" # after", Some("a \"b\" \\ c\nd"));
        check("KEY=\"\\t\"", Some("\\t"));
        check("KEY='raw \\n \" # x'", Some("raw \\n \" # x"));
        check("KEY=a=b", Some("a=b"));
        check("KEY=", Some(""));
        check("KEY=钥匙 #注", Some("钥匙"));
        check("KEY=one\nKEY=two", Some("two"));
        check("#KEY=value", None);
        check("KEY=\"never closed", None);
        check("KEY='never closed", None);
        check("KEY", None);
    }

    #[test]
    fn what_is_no_pair_is_named_by_its_line() {
        let read = ConfigEnv::parse("A=1\n2B=2\nC D=3\n\nexport=4\nnonsense\n=5");
        assert_eq!(read.skipped, [2, 3, 6, 7]);
        assert_eq!(read.get("export", &|_| None).as_deref(), Some("4"));
    }

    #[test]
    fn the_process_comes_first_unless_it_is_empty() {
        let file = ConfigEnv::parse("KEY=file");
        assert_eq!(file.get("KEY", &|_| Some("process".into())).as_deref(), Some("process"));
        assert_eq!(file.get("KEY", &|_| Some(String::new())).as_deref(), Some("file"));
    }

    #[test]
    fn showing_it_shows_no_value() {
        let shown = format!("{:?}", ConfigEnv::parse("OPENAI_API_KEY=sk-secret"));
        assert!(shown.contains("OPENAI_API_KEY") && !shown.contains("sk-secret"), "{shown}");
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(?s).{0,200}") {
            ConfigEnv::parse(&text);
        }
    }
}
