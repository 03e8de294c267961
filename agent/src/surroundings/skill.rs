//! One skill: a folder with a `SKILL.md` that says what it is for and how the thing is done. Read by a plain function.
//!
//! The front matter is read the way people write it, not the way YAML is defined: with a byte order mark, with `\r\n`, with
//! colons in a description nobody quoted, with a text that goes on in indented lines (T36).

use ipc::text::{is_blank, one_line};

/// The longest name of a skill, in characters.
const NAME_CHARS_MAX: usize = 63;
/// The longest description that is kept, in characters: that of the common format.
const DESCRIPTION_CHARS_MAX: usize = 1024;

/// What a `SKILL.md` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Parsed {
    /// One line: what it is for.
    pub(super) description: String,
    /// How it is done.
    pub(super) body: String,
}

/// Reads the text of the `SKILL.md` in `folder`; else why it is no skill.
pub(super) fn parse(folder: &str, text: &str) -> Result<Parsed, String> {
    if !is_name(folder) {
        return Err(format!(
            "its folder's name is not made of a–z, 0–9 and `-` alone, or longer than {NAME_CHARS_MAX}"
        ));
    }
    let mut lines = text.trim_start_matches('\u{feff}').lines().skip_while(|line| line.trim().is_empty());
    if lines.next().map(str::trim_end) != Some("---") {
        return Err("it does not begin with a line `---` and its name and description".to_owned());
    }
    let (mut head, mut is_closed) = (Vec::new(), false);
    for line in lines.by_ref() {
        if matches!(line.trim_end(), "---" | "...") {
            is_closed = true;
            break;
        }
        head.push(line);
    }
    if !is_closed {
        return Err("what it says about itself has no end; close it with a line `---`".to_owned());
    }
    match field(&head, "name") {
        Some(name) if name != folder => {
            return Err(format!("it calls itself `{}`, which is not its folder's name", one_line(&name, 80)));
        }
        Some(_) | None => {}
    }
    let description = field(&head, "description").filter(|description| !is_blank(description));
    let description = description.ok_or("it has no `description`, which says what it is for")?;
    let body = lines.collect::<Vec<_>>().join("\n");
    Ok(Parsed {
        description: one_line(&description, DESCRIPTION_CHARS_MAX),
        body: body.trim_matches(['\n', '\r']).trim_end().to_owned(),
    })
}

/// Whether a folder may be called this, so that a model can name it and no path is meant by it.
fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !name.is_empty() && name.len() <= NAME_CHARS_MAX && !name.starts_with('-') && name.chars().all(fits)
}

/// The value of a key; the first where it is there twice.
fn field(head: &[&str], key: &str) -> Option<String> {
    let value_of = |line: &str| {
        let (name, value) = line.split_once(':')?;
        (name.trim_end() == key).then(|| value.trim().to_owned())
    };
    let (at, value) = head.iter().enumerate().find_map(|(at, line)| Some((at, value_of(line)?)))?;
    let indented = |line: &&&str| line.starts_with([' ', '\t']) || line.trim().is_empty();
    let more = head.iter().skip(at + 1).take_while(indented).map(|line| line.trim());
    let begins_a_block = matches!(value.as_str(), ">" | "|" | ">-" | "|-" | ">+" | "|+");
    let first = (!begins_a_block).then_some(value.as_str());
    let whole = first.into_iter().chain(more).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    Some(unquoted(&whole).to_owned())
}

fn unquoted(value: &str) -> &str {
    let inside = |mark: char| value.strip_prefix(mark)?.strip_suffix(mark);
    inside('"').or_else(|| inside('\'')).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn t36_front_matter_is_read_the_way_people_write_it() {
        let check = |text: &str, description: &str, body: &str| {
            let parsed = parse("tides", text).unwrap_or_else(|why| panic!("{text:?}: {why}"));
            assert_eq!((parsed.description.as_str(), parsed.body.as_str()), (description, body), "{text:?}");
        };
        check(
            "---\nname: tides\ndescription: reads tides\n---\n\n# How\n\nlook\n",
            "reads tides",
            "# How\n\nlook",
        );
        check("\u{feff}---\r\nname: tides\r\ndescription: 看潮\r\n---\r\nlook\r\nup\r\n", "看潮", "look\nup");
        check(
            "---\ndescription: use it so: first, then: go\nname: \"tides\"\n---\n",
            "use it so: first, then: go",
            "",
        );
        check("---\nname:\ttides\ndescription: 'a \"tide\"'\ntags: [a, b]\n---\nx", "a \"tide\"", "x");
        check("---\ndescription: >-\n  reads\n  tides\n\nversion: 1\n---\nx", "reads tides", "x");
        check("---\ndescription: reads\n\ttides\n# description: no\n---\n---\nx", "reads tides", "---\nx");
        check("---\ndescription: one\ndescription: two\n---\n", "one", "");
    }

    #[test]
    fn k5_k6_what_is_no_skill_is_said_to_be_none() {
        let check = |folder: &str, text: &str, part: &str| {
            let why = parse(folder, text).unwrap_err();
            assert!(why.contains(part), "{folder} {text:?}: {why}");
        };
        check("tides", "---\nname: winds\ndescription: x\n---\n", "calls itself `winds`");
        check("tides", "---\nname: tides\n---\nx", "no `description`");
        check("tides", "---\nname: tides\ndescription: \u{200b}\n---\nx", "no `description`");
        check("tides", "---\nname: tides\ndescription: x\n", "has no end");
        check("tides", "# tides\n\nx", "does not begin");
        check("tides", "", "does not begin");
        for folder in ["", "-a", "A", "潮", "a.b", "..", &"a".repeat(64)] {
            check(folder, "---\ndescription: x\n---\n", "folder's name");
        }
    }

    proptest! {
        #[test]
        fn whatever_a_file_holds_it_is_a_skill_or_a_sentence(text in "(---\n)?(\\PC|[\n:#>|'\" ])*(---\n)?\\PC*") {
            match parse("tides", &text) {
                Ok(parsed) => prop_assert!(!parsed.description.contains('\n') && !parsed.description.is_empty()),
                Err(why) => prop_assert!(!why.contains('\n')),
            }
        }
    }
}
