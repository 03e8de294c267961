//! The fields of a tool's input: typed, bounded, and refused by name.

use std::collections::BTreeMap;

use ipc::text::{nearest, one_line};
use serde_json::{Map, Value};

use crate::{
    document::{line_within, within},
    tools::Tool,
};

/// The fields of an input.
pub(crate) struct Fields<'a> {
    given: &'a Map<String, Value>,
}

impl<'a> Fields<'a> {
    pub(crate) fn of(tool: Tool, input: &'a Value) -> Result<Self, String> {
        let name = tool.name();
        let Value::Object(given) = input else {
            return Err(format!("the input of `{name}` must be an object"));
        };
        let known = tool.fields();
        for key in given.keys() {
            if !known.contains(&key.as_str()) {
                let shown = one_line(key, 40);
                return Err(match nearest(key, known.iter().copied()) {
                    Some(near) => format!("`{name}` has no field `{shown}`; the nearest is `{near}`"),
                    None => format!("`{name}` has no field `{shown}`; it has `{}`", known.join("`, `")),
                });
            }
        }
        Ok(Self { given })
    }

    /// What is given and is neither `null` nor an empty text.
    fn get(&self, key: &str) -> Option<&'a Value> {
        self.given.get(key).filter(|value| !value.is_null() && value.as_str() != Some(""))
    }

    /// Refuses whatever does not go with `field`.
    pub(crate) fn only(&self, field: &str, allowed: &[&str]) -> Result<(), String> {
        let stray = self.given.keys().find(|key| {
            !["field", "what"].contains(&key.as_str())
                && !allowed.contains(&key.as_str())
                && self.get(key).is_some()
        });
        let stray = stray.or_else(|| {
            // `what` is the selector of one tool and a field of another
            let what = self.given.get_key_value("what").map(|(key, _)| key);
            what.filter(|_| {
                self.given.contains_key("field") && !allowed.contains(&"what") && self.get("what").is_some()
            })
        });
        match (stray, allowed) {
            (None, _) => Ok(()),
            (Some(stray), []) => Err(format!("`{stray}` does not go with `{field}`")),
            (Some(stray), _) => {
                Err(format!("`{stray}` does not go with `{field}`; that has `{}`", allowed.join("`, `")))
            }
        }
    }

    pub(crate) fn text(&self, key: &str) -> Result<Option<&'a str>, String> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(format!("`{key}` must be a text, not {}", kind(other))),
        }
    }

    pub(crate) fn needed(&self, key: &str) -> Result<&'a str, String> {
        self.text(key)?.ok_or_else(|| match key {
            "slug" => "`slug` is missing; give a short name such as `learn-rust`".to_owned(),
            _ => format!("`{key}` is missing or empty; give the words it should hold"),
        })
    }

    /// A text, or its lines as a list: small models give a constitution so.
    pub(crate) fn lines(&self, key: &str) -> Result<String, String> {
        match self.get(key) {
            Some(Value::Array(lines)) => {
                let lines: Option<Vec<&str>> = lines.iter().map(Value::as_str).collect();
                lines.map(|lines| lines.join("\n")).ok_or_else(|| format!("`{key}` must be a text"))
            }
            _ => self.needed(key).map(str::to_owned),
        }
    }

    pub(crate) fn line(&self, key: &str, chars_max: usize) -> Result<Option<String>, String> {
        self.text(key)?.map(|text| line_within(key, text, chars_max)).transpose()
    }

    pub(crate) fn body(&self, key: &str, chars_max: usize) -> Result<Option<String>, String> {
        self.text(key)?.map(|text| within(key, text, chars_max)).transpose()
    }

    pub(crate) fn one_of(&self, key: &str, words: &[&'static str]) -> Result<&'static str, String> {
        self.maybe_one_of(key, words)?
            .ok_or_else(|| format!("`{key}` is missing; it is one of `{}`", words.join("`, `")))
    }

    pub(crate) fn maybe_one_of(
        &self,
        key: &str,
        words: &[&'static str],
    ) -> Result<Option<&'static str>, String> {
        let Some(given) = self.text(key)? else { return Ok(None) };
        let given = given.trim();
        let found = words.iter().copied().find(|word| word.eq_ignore_ascii_case(given));
        found.map(Some).ok_or_else(|| {
            let shown = one_line(given, 40);
            let near = nearest(given, words.iter().copied()).map(|near| format!("; the nearest is `{near}`"));
            format!(
                "`{key}` cannot be `{shown}`; it is one of `{}`{}",
                words.join("`, `"),
                near.unwrap_or_default()
            )
        })
    }

    pub(crate) fn boolean(&self, key: &str) -> Result<Option<bool>, String> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(*value)),
            Some(other) => Err(format!("`{key}` must be true or false, not {}", kind(other))),
        }
    }

    pub(crate) fn fraction(&self, key: &str) -> Result<Option<f64>, String> {
        self.number(key, (0.0, 1.0))
    }

    pub(crate) fn number(&self, key: &str, (min, max): (f64, f64)) -> Result<Option<f64>, String> {
        match self.get(key) {
            None => Ok(None),
            Some(value) => match value.as_f64() {
                Some(number) if (min..=max).contains(&number) => Ok(Some(number)),
                Some(number) => Err(format!("`{key}` must be from {min} to {max}, and this is {number}")),
                None => Err(format!("`{key}` must be a number from {min} to {max}, not {}", kind(value))),
            },
        }
    }

    pub(crate) fn count(&self, key: &str, default: u32, max: u32) -> Result<u32, String> {
        match self.get(key) {
            None => Ok(default),
            Some(value) => match value.as_u64().and_then(|count| u32::try_from(count).ok()) {
                Some(count) if (1..=max).contains(&count) => Ok(count),
                _ => Err(format!("`{key}` must be a whole number from 1 to {max}")),
            },
        }
    }

    /// An object of lines: for each name one.
    pub(crate) fn lines_by_name(
        &self,
        key: &str,
        items_max: usize,
        chars_max: usize,
    ) -> Result<BTreeMap<String, String>, String> {
        let given = match self.get(key) {
            None => return Ok(BTreeMap::new()),
            Some(Value::Object(given)) => given,
            Some(other) => {
                return Err(format!(
                    "`{key}` must be an object with a sentence for each name, not {}",
                    kind(other)
                ));
            }
        };
        if given.len() > items_max {
            return Err(format!("`{key}` may have {items_max} names and this has {}", given.len()));
        }
        let line = |(name, line): (&String, &Value)| match line {
            Value::String(text) => {
                Ok((name.clone(), line_within(&format!("{key}: {}", one_line(name, 80)), text, chars_max)?))
            }
            other => {
                Err(format!("`{key}` must have a sentence for `{}`, not {}", one_line(name, 80), kind(other)))
            }
        };
        given.iter().map(line).collect()
    }

    pub(crate) fn list(
        &self,
        key: &str,
        items_max: usize,
        chars_max: usize,
    ) -> Result<Option<Vec<String>>, String> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let Value::Array(items) = value else {
            return Err(format!("`{key}` must be a list of texts, not {}", kind(value)));
        };
        if items.len() > items_max {
            return Err(format!("`{key}` may have {items_max} items and this has {}", items.len()));
        }
        let text = |item: &Value| match item {
            Value::String(text) => line_within(key, text, chars_max),
            other => Err(format!("`{key}` must be a list of texts, not of {}", kind(other))),
        };
        items.iter().map(text).collect::<Result<_, _>>().map(Some)
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
