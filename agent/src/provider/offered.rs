//! What a server is told of a tool's input: its schema, without bounds that some cannot take.
//!
//! llama.cpp makes a grammar of each schema and refuses the whole request where a repetition in one is too long for it (seen
//! with build 10434, which fails at a `maxLength` of 2000). A model does not need to know such a bound, and input is checked
//! against all of the schema before a tool runs (`tools`), so what is large is left out for every server alike.

use serde_json::{Map, Value};

/// The largest bound that is told.
const BOUND_MAX: u64 = 1000;
/// The bounds of a schema that count repetitions.
const BOUNDS: [&str; 4] = ["minLength", "maxLength", "minItems", "maxItems"];
/// Members of a schema that are a schema.
const ONE: [&str; 5] = ["items", "additionalProperties", "contains", "not", "propertyNames"];
/// Members that are a list of schemas.
const LISTS: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];
/// Members that are schemas by name.
const NAMED: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];

/// The schema as it is told.
pub(super) fn offered(schema: &Value) -> Value {
    let Value::Object(members) = schema else { return schema.clone() };
    let is_told = |name: &str, value: &Value| {
        !BOUNDS.contains(&name) || value.as_u64().is_some_and(|bound| bound <= BOUND_MAX)
    };
    let told = members.iter().filter(|(name, value)| is_told(name, value));
    told.map(|(name, value)| (name.clone(), member(name, value))).collect::<Map<_, _>>().into()
}

fn member(name: &str, value: &Value) -> Value {
    match value {
        Value::Object(_) if ONE.contains(&name) => offered(value),
        Value::Array(schemas) if LISTS.contains(&name) => schemas.iter().map(offered).collect(),
        Value::Object(schemas) if NAMED.contains(&name) => {
            schemas.iter().map(|(name, schema)| (name.clone(), offered(schema))).collect::<Map<_, _>>().into()
        }
        _ => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn large_bounds_are_left_out_wherever_they_are_and_nothing_else() {
        let check = |schema: Value, told: Value| assert_eq!(offered(&schema), told, "{schema}");
        check(json!({"type": "object"}), json!({"type": "object"}));
        check(json!(true), json!(true));
        check(
            json!({"type": "string", "minLength": 1, "maxLength": 2000, "maximum": 5000}),
            json!({"type": "string", "minLength": 1, "maximum": 5000}),
        );
        check(json!({"maxLength": 1000, "maxItems": 1001}), json!({"maxLength": 1000}));
        check(json!({"maxLength": -1, "maxItems": "many"}), json!({}));
        check(
            json!({"properties": {"a": {"type": "array", "items": {"type": "string", "maxLength": 20_000}}}}),
            json!({"properties": {"a": {"type": "array", "items": {"type": "string"}}}}),
        );
        check(
            json!({"anyOf": [{"maxLength": 4000}, {"additionalProperties": {"maxLength": 4000}}]}),
            json!({"anyOf": [{}, {"additionalProperties": {}}]}),
        );
        // a property of that name is no bound, and what is an example is none either
        let named = json!({"properties": {"maxLength": {"type": "integer"}}, "default": {"maxLength": 9000}});
        check(named.clone(), named);
    }
}
