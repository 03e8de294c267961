//! JSON as text: one member of an object is set, one element joins an array, and every other byte stays as it was.
//!
//! What others keep in a file of hers is theirs: their fields, the order of them, how they write their numbers. So a file
//! is not read and written anew; it is changed where it changes, in the style of what stands beside it.

use std::ops::Range;

use serde_json::Value;

/// Where a member of an object stands: the blanks before it, its name, the blanks behind its colon, its value.
struct Member {
    lead: Range<usize>,
    name: Vec<u8>,
    gap: Range<usize>,
    value: Range<usize>,
}

/// Where an element of an array stands: the blanks before it, and its value.
struct Element {
    lead: Range<usize>,
    value: Range<usize>,
}

impl Member {
    fn is_named(&self, name: &str) -> bool {
        serde_json::from_slice::<String>(&self.name).is_ok_and(|said| said == name)
    }
}

/// The object with that member set to `value`, itself JSON; a new one comes last. Nothing where it is no object. Of
/// members with one name the last counts, as for every reader.
pub(crate) fn set(object: &[u8], name: &str, value: &str) -> Option<Vec<u8>> {
    serde_json::from_slice::<Value>(object).ok()?.as_object()?;
    let mut all = members(object);
    let quoted = Value::from(name).to_string();
    let (place, text) = if let Some(at) = all.iter().rposition(|member| member.is_named(name)) {
        (all.swap_remove(at).value, value.to_owned())
    } else {
        let end = object.iter().rposition(|byte| *byte == b'}')?;
        let Some(last) = all.pop() else {
            let only = format!("{quoted}:{value}");
            return Some([object.get(..end)?, only.as_bytes(), object.get(end..)?].concat());
        };
        // as the last of the others is written: on a line of its own or not, with a space behind the colon or not
        let lead = String::from_utf8_lossy(object.get(last.lead)?).into_owned();
        let gap = String::from_utf8_lossy(object.get(last.gap)?).into_owned();
        (last.value.end..last.value.end, format!(",{lead}{quoted}:{gap}{value}"))
    };
    Some([object.get(..place.start)?, text.as_bytes(), object.get(place.end..)?].concat())
}

/// The value of the last member of that name in what is known to be an object.
pub(crate) fn get<'a>(object: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let member = members(object).into_iter().rfind(|member| member.is_named(name))?;
    object.get(member.value)
}

/// What stands before each member of what is known to be an object: how it is laid out.
pub(crate) fn layout(object: &[u8]) -> String {
    let lead = members(object).into_iter().next().map_or(0..0, |member| member.lead);
    String::from_utf8_lossy(object.get(lead).unwrap_or_default()).into_owned()
}

/// What is known to be an array with one more element, of which the last `elements_max` stay. Where it has none yet,
/// `lead` stands before this one and `end` behind it.
pub(crate) fn push(
    array: &[u8],
    element: &Value,
    elements_max: usize,
    (lead, end): (&str, &str),
) -> Option<Vec<u8>> {
    let all = elements(array);
    let Some(last) = all.last() else {
        return Some(format!("[{lead}{}{end}]", laid_out(element, lead)).into_bytes());
    };
    let surplus = (all.len() + 1).saturating_sub(elements_max).min(all.len() - 1);
    let (first, kept) = (all.first()?, all.get(surplus)?);
    let lead = String::from_utf8_lossy(array.get(last.lead.clone())?).into_owned();
    let added = format!(",{lead}{}", laid_out(element, &lead));
    Some(
        [
            array.get(..first.value.start)?,
            array.get(kept.value.start..last.value.end)?,
            added.as_bytes(),
            array.get(last.value.end..)?,
        ]
        .concat(),
    )
}

/// A value as it is written behind these blanks: over several lines where it begins one.
fn laid_out(value: &Value, lead: &str) -> String {
    match lead.rsplit_once('\n') {
        Some((_, indent)) => format!("{value:#}").replace('\n', &format!("\n{indent}")),
        None => value.to_string(),
    }
}

/// The members of what is known to be an object.
fn members(bytes: &[u8]) -> Vec<Member> {
    let mut found = Vec::new();
    let mut at = blank(bytes, 0) + 1;
    loop {
        let start = blank(bytes, at);
        if bytes.get(start) != Some(&b'"') {
            return found;
        }
        let named = behind_text(bytes, start);
        let colon = blank(bytes, named) + 1;
        let first = blank(bytes, colon);
        let (last, next) = behind_value(bytes, first);
        let name = bytes.get(start..named).unwrap_or_default().to_vec();
        found.push(Member { lead: at..start, name, gap: colon..first, value: first..last });
        at = next + 1;
    }
}

/// The elements of what is known to be an array.
fn elements(bytes: &[u8]) -> Vec<Element> {
    let mut found = Vec::new();
    let mut at = blank(bytes, 0) + 1;
    loop {
        let start = blank(bytes, at);
        if matches!(bytes.get(start), None | Some(b']')) {
            return found;
        }
        let (last, next) = behind_value(bytes, start);
        found.push(Element { lead: at..start, value: start..last });
        if bytes.get(next) != Some(&b',') {
            return found;
        }
        at = next + 1;
    }
}

/// The first place from `at` on that is no blank.
fn blank(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
        at += 1;
    }
    at
}

/// The place behind a text whose opening quote is at `at`.
fn behind_text(bytes: &[u8], mut at: usize) -> usize {
    at += 1;
    while let Some(byte) = bytes.get(at).filter(|byte| **byte != b'"') {
        at += if *byte == b'\\' { 2 } else { 1 };
    }
    at + 1
}

/// The place behind a value that begins at `at`, and the place where what it is in goes on or ends.
fn behind_value(bytes: &[u8], mut at: usize) -> (usize, usize) {
    let (mut depth, mut end) = (0_u32, at);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = behind_text(bytes, at) - 1,
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth > 0 => depth -= 1,
            b',' | b'}' | b']' if depth == 0 => break,
            _ => {}
        }
        at += 1;
        if !bytes.get(at - 1).is_some_and(u8::is_ascii_whitespace) {
            end = at;
        }
    }
    (end, at)
}

/// Whatever somebody may keep in a file of ours.
#[cfg(test)]
pub(crate) fn any_json() -> impl proptest::strategy::Strategy<Value = Value> {
    use proptest::prelude::*;
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_element_joins_an_array_as_its_neighbours_stand_and_the_oldest_leave() {
        let check = |array: &str, layout: (&str, &str), expected: &str| {
            let pushed = push(array.as_bytes(), &json!({"a": 1}), 3, layout).unwrap();
            assert_eq!(String::from_utf8(pushed).unwrap(), expected, "{array}");
        };
        check("[]", ("", ""), "[{\"a\":1}]");
        check("[ ]", ("\n    ", "\n  "), "[\n    {\n      \"a\": 1\n    }\n  ]");
        check("[1, [2,{}] ]", ("", ""), "[1, [2,{}], {\"a\":1} ]");
        check("[\n\t\"],\"\n]", ("", ""), "[\n\t\"],\",\n\t{\n\t  \"a\": 1\n\t}\n]");
        check("[1,2.50,3e0]", ("", ""), "[2.50,3e0,{\"a\":1}]");
        check("[1,2,3,4,5]", ("", ""), "[4,5,{\"a\":1}]");
    }

    #[test]
    fn a_member_is_found_by_what_its_name_means() {
        let object = br#" {"a": 1, "\u0062" : [ "}" ], "a": 2}"#;
        assert_eq!((get(object, "a"), get(object, "b")), (Some(&b"2"[..]), Some(&b"[ \"}\" ]"[..])));
        assert_eq!((get(object, "c"), layout(b"{\n  \"a\": 1}").as_str()), (None, "\n  "));
        assert_eq!(set(object, "a", "3").unwrap(), br#" {"a": 1, "\u0062" : [ "}" ], "a": 3}"#);
        assert_eq!(set(b"[1]", "a", "3"), None);
    }
}
