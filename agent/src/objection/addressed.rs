//! Whether words address an objection: a plain function of the two texts.

use ipc::text::is_unspaced;

/// What she may mark the place with where she says what she objects to.
const MARK: &str = "[noticed]";
/// How much of a reason counts as quoting it: twelve characters, or six of a script that needs half as many.
const WEIGHT_MIN: usize = 12;

/// Whether `said` addresses an objection with this reason: it carries the mark, or quotes the reason or a sentence of
/// it. Case, white space and punctuation do not count.
pub(crate) fn addresses(said: &str, reason: &str) -> bool {
    if said.to_lowercase().contains(MARK) {
        return true;
    }
    let said = bare(said);
    let quotes = |part: &str| {
        let part = bare(part);
        weight(&part) >= WEIGHT_MIN && said.contains(&part)
    };
    quotes(reason) || sentences(reason).iter().any(|sentence| quotes(sentence))
}

/// The letters and digits of a text, in lower case.
fn bare(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

fn weight(bare: &str) -> usize {
    bare.chars().map(|c| if is_unspaced(c) { 2 } else { 1 }).sum()
}

/// The sentences of a text. A full stop ends one where white space follows, so that `3.5` is whole.
fn sentences(text: &str) -> Vec<String> {
    let mut sentences = vec![String::new()];
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let ends = match c {
            '.' | '!' | '?' | ';' => chars.peek().is_none_or(|next| next.is_whitespace()),
            '。' | '！' | '？' | '；' | '…' | '\n' | '\u{2028}' | '\u{2029}' => true,
            _ => false,
        };
        if ends {
            sentences.push(String::new());
        } else if let Some(sentence) = sentences.last_mut() {
            sentence.push(c);
        }
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_or_a_quote_addresses_an_objection_and_talk_beside_it_does_not() {
        const REASON: &str = "It would betray people who trust me. I hold to honesty, version 3.5 of it; no.";
        let check = |said: &str, reason: &str, expected: bool| {
            assert_eq!(addresses(said, reason), expected, "{said} / {reason}");
        };
        check("[noticed] I do it all the same", REASON, true);
        check("[NOTICED] fine", "x", true);
        check("noticed", REASON, false);
        check("No: it would betray\n  people who TRUST me!", REASON, true);
        check("… “I hold to honesty, version 3.5 of it” …", REASON, true);
        check("it would betray people", REASON, false);
        check("no", REASON, false);
        check("done", REASON, false);
        check("", REASON, false);
        check("no", "no", false);
        check("anything", "", false);
        check("我不能这样做：这会背叛 信任我的人。", "这会背叛信任我的人。我要诚实。", true);
        check("我要诚实。", "这会背叛信任我的人。我要诚实。", false);
        check("好的，已经发了", "这会背叛信任我的人。", false);
        check("我不会撒谎骗人", "不会撒谎骗人", true);
    }
}
