//! Whether a model's input fits a tool's schema, before anything runs.

use ipc::text::one_line;
use jsonschema::{PatternOptions, Validator};
use serde_json::{Map, Value};

/// How many things that are wrong are named at once.
const NAMED_MAX: usize = 5;
/// How deep an input may be nested: deeper than anybody means, and not so deep that walking through it is a danger.
const DEPTH_MAX: usize = 32;

/// Whether `input` fits `schema`; else what does not, so that a model can put it right.
pub(super) fn fits(schema: &Value, input: &Map<String, Value>) -> Result<(), String> {
    if input.values().any(|value| !is_within(value, DEPTH_MAX - 1)) {
        return Err(format!("it is nested deeper than {DEPTH_MAX} levels"));
    }
    let validator = validator(schema)?;
    let input = Value::Object(input.clone());
    let mut wrong: Vec<String> = Vec::new();
    for error in validator.iter_errors(&input).take(NAMED_MAX) {
        let place = error.instance_path().to_string();
        let place = if place.is_empty() { String::new() } else { format!("`{}`: ", one_line(&place, 80)) };
        wrong.push(format!("{place}{}", one_line(&error.to_string(), 200)));
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
}

/// Whether inputs can be checked against a schema at all; else why not.
pub(super) fn is_usable(schema: &Value) -> Result<(), String> {
    validator(schema).map(drop)
}

fn validator(schema: &Value) -> Result<Validator, String> {
    // a pattern comes from whoever made the tool: the engine that cannot go on for ever is asked to match it
    let options = jsonschema::options().with_pattern_options(PatternOptions::regex());
    options.build(schema).map_err(|error| {
        format!("the tool's own schema cannot be used: {}", one_line(&error.to_string(), 300))
    })
}

/// Whether a value is nested at most `depth` levels deep.
pub(super) fn is_within(value: &Value, depth: usize) -> bool {
    let inside = |value: &Value| depth > 0 && is_within(value, depth - 1);
    match value {
        Value::Array(items) => items.iter().all(inside),
        Value::Object(fields) => fields.values().all(inside),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fits(schema: &Value, input: &Value) -> Result<(), String> {
        super::fits(schema, input.as_object().unwrap())
    }

    #[test]
    fn bd7_what_does_not_fit_is_named() {
        let schema = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "maxLength": 3},
                "limit": {"type": "integer", "minimum": 1},
                "mode": {"enum": ["a", "b"]},
            },
            "required": ["path"],
        });
        let check = |input: Value, said: &[&str]| {
            let why = fits(&schema, &input).unwrap_err();
            for said in said {
                assert!(why.contains(said), "{input}: {why}");
            }
        };
        assert_eq!(
            fits(&schema, &json!({"path": "路径", "limit": 2, "other": true})),
            Ok(()),
            "more is no harm"
        );
        check(json!({}), &["path", "required"]);
        check(json!({"path": 3}), &["`/path`", "string"]);
        check(json!({"path": "x", "limit": 1.5}), &["`/limit`", "integer"]);
        check(json!({"path": "x", "limit": 0}), &["minimum"]);
        check(json!({"path": "长长长长", "mode": "c"}), &["`/path`", "`/mode`"]);
    }

    #[test]
    fn hostile_schemas_and_inputs_are_refused_in_words() {
        assert!(fits(&json!({"type": 7}), &json!({})).unwrap_err().contains("schema cannot be used"));
        let far = json!({"$ref": "http://127.0.0.1:1/x"});
        assert!(fits(&far, &json!({})).unwrap_err().contains("schema cannot be used"), "nothing is fetched");
        let mut deep = json!(1);
        for _ in 0..40 {
            deep = json!([deep]);
        }
        assert!(fits(&json!({}), &json!({"x": deep})).unwrap_err().contains("nested"));
        let pattern = json!({"properties": {"x": {"pattern": "^(a+)+$"}}});
        assert!(fits(&pattern, &json!({"x": format!("{}!", "a".repeat(5000))})).is_err());
    }
}
