//! What she notes, looks for among her notes, and keeps in mind, read from what a model gave.

use super::{MEMORY_ACTIONS, QUERY_CHARS_MAX, RECALLED, RECALLED_MAX, When, Wish, instant};
use crate::{
    document::within,
    fields::Fields,
    kept::KEPT_CHARS_MAX,
    notes::{About, Address, NOTE_CHARS_MAX},
    recall::Query,
};

/// `soul_remember`
pub(super) fn remember(fields: &Fields<'_>) -> Result<Wish, String> {
    let name = fields.one_of("kind", &About::NAMES)?;
    let about = About::named(name).ok_or_else(|| format!("there is no kind `{name}`"))?;
    let note = within("note", fields.needed("note")?, NOTE_CHARS_MAX)?;
    Ok(Wish::Remember { about, note, outside: false })
}

/// `soul_recall`
pub(super) fn recall(fields: &Fields<'_>, when: &When) -> Result<Wish, String> {
    Ok(Wish::Recall(Query {
        words: within("query", fields.needed("query")?, QUERY_CHARS_MAX)?,
        limit: fields.count("limit", RECALLED, RECALLED_MAX)?,
        about: fields.maybe_one_of("kind", &About::NAMES)?.and_then(About::named),
        since: fields.text("since")?.map(|since| instant(since, when)).transpose()?,
    }))
}

/// `soul_memory`
pub(super) fn memory(fields: &Fields<'_>) -> Result<Wish, String> {
    if fields.maybe_one_of("action", &MEMORY_ACTIONS)? == Some("promote") {
        let note = fields.text("note")?.ok_or(
            "`note` is missing; say which one, as in `memory/2026-11-30.md#3`; without `action` you see which qualify",
        )?;
        let wording = fields.line("text", KEPT_CHARS_MAX)?;
        return Ok(Wish::Promote { note: Address::parse(note)?, wording });
    }
    fields.only("action: status", &["action"])?;
    Ok(Wish::Memory)
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use serde_json::{Value, json};

    use super::*;
    use crate::{input, tools::Tool};

    fn read(tool: Tool, input: &Value) -> Result<Wish, String> {
        let when = When { now: "2026-11-30T12:00:00Z".parse().unwrap(), zone: TimeZone::UTC };
        input::read(tool, input, &when)
    }

    #[test]
    fn what_a_model_means_is_understood() {
        let check = |tool, input: Value, wish| assert_eq!(read(tool, &input), Ok(wish), "{input}");
        check(
            Tool::Remember,
            json!({"kind": "Pref", "note": " 乌龙茶，不加糖 "}),
            Wish::Remember { about: About::Pref, note: "乌龙茶，不加糖".into(), outside: false },
        );
        let query = Query { words: "cello".into(), limit: 5, about: None, since: None };
        check(Tool::Recall, json!({"query": "cello", "kind": ""}), Wish::Recall(query.clone()));
        let since = Some("2026-11-23T12:00:00Z".parse().unwrap());
        check(
            Tool::Recall,
            json!({"query": "cello", "kind": "self", "limit": 2, "since": "7d"}),
            Wish::Recall(Query { limit: 2, about: Some(About::Oneself), since, ..query }),
        );
        check(Tool::Memory, json!({}), Wish::Memory);
        check(Tool::Memory, json!({"action": "status", "note": null}), Wish::Memory);
        let note = Address { day: "2026-11-30".parse().unwrap(), number: 3 };
        check(
            Tool::Memory,
            json!({"action": "promote", "note": "2026-11-30#3"}),
            Wish::Promote { note, wording: None },
        );
    }

    #[test]
    fn a_mistake_is_a_sentence_that_names_it() {
        let check = |tool, input: Value, part: &str| {
            let said = read(tool, &input).expect_err(&input.to_string());
            assert!(said.contains(part), "{input}: {said}");
        };
        check(Tool::Remember, json!({"note": "x"}), "`kind` is missing");
        check(Tool::Remember, json!({"kind": "fact", "note": "x"}), "`lesson`");
        check(Tool::Remember, json!({"kind": "self", "note": " "}), "`note`");
        check(Tool::Remember, json!({"kind": "self", "note": "x".repeat(1001)}), "shorten it by 1");
        check(Tool::Recall, json!({"query": "x".repeat(201)}), "`query`");
        check(Tool::Recall, json!({"query": "x", "limit": 21}), "from 1 to 20");
        check(Tool::Recall, json!({"query": "x", "since": "soon"}), "`soon`");
        check(Tool::Memory, json!({"action": "promote"}), "`note` is missing");
        check(Tool::Memory, json!({"action": "promote", "note": "the third"}), "names no note");
        check(Tool::Memory, json!({"action": "promote", "note": "2026-11-30#3", "text": "a\nb"}), "one line");
        check(Tool::Memory, json!({"note": "2026-11-30#3"}), "`note` does not go");
        check(Tool::Memory, json!({"action": "forget"}), "`promote`");
    }
}
