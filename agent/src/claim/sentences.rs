//! A reply in sentences, with what is code or somebody's words taken out of them.

/// Stands for code that names a file.
pub(super) const FILE: char = '\u{e000}';
/// Stands for other code, and for what is quoted.
const OTHER: char = '\u{e001}';

/// One sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sentence {
    /// As it stands there.
    pub(super) whole: String,
    /// Without code and quotes, each of which is one character.
    pub(super) bare: String,
    pub(super) is_question: bool,
}

/// The sentences of a reply. Blocks of code, quoted lines and rows of tables are none.
pub(super) fn sentences(reply: &str) -> Vec<Sentence> {
    let mut found = Vec::new();
    let mut fence = None;
    for line in reply.lines() {
        let start = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
        match (fence, mark) {
            (None, Some(_)) => fence = mark,
            (Some(open), Some(close)) if open == close => fence = None,
            (Some(_), _) => {}
            (None, None) if start.starts_with('>') || start.starts_with('|') => {}
            (None, None) => found.extend(of_line(line)),
        }
    }
    found
}

fn of_line(line: &str) -> Vec<Sentence> {
    let (bare, taken) = masked(line);
    let mut taken = taken.into_iter();
    let mut found = Vec::new();
    for bare in split(&bare) {
        let mut whole = String::new();
        for c in bare.chars() {
            match c {
                FILE | OTHER => whole.push_str(&taken.next().unwrap_or_default()),
                c => whole.push(c),
            }
        }
        let is_question = bare.trim_end().ends_with(['?', '？']);
        found.push(Sentence { whole, bare, is_question });
    }
    found
}

/// A line with one character for each piece of code or quote, and those pieces.
fn masked(line: &str) -> (String, Vec<String>) {
    let chars: Vec<char> = line.chars().filter(|c| !matches!(*c, FILE | OTHER)).collect();
    let (mut bare, mut taken) = (String::new(), Vec::new());
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        let rest = chars.get(at + 1..).unwrap_or_default();
        let end = closing(c).and_then(|close| rest.iter().position(|c| *c == close));
        // emphasis hides no word
        if matches!(c, '*' | '#') {
            at += 1;
        } else if let Some(end) = end {
            let inside: String = rest.iter().take(end).collect();
            bare.push(if c == '`' && is_file(&inside) { FILE } else { OTHER });
            taken.push(chars.iter().skip(at).take(end + 2).collect());
            at += end + 2;
        } else {
            bare.push(c);
            at += 1;
        }
    }
    (bare, taken)
}

const fn closing(open: char) -> Option<char> {
    match open {
        '`' | '"' => Some(open),
        '“' => Some('”'),
        '「' => Some('」'),
        '『' => Some('』'),
        '«' => Some('»'),
        '„' => Some('“'),
        _ => None,
    }
}

/// Whether code names a file: a path, or a name with an ending.
fn is_file(code: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '/' | '_' | '-' | '~');
    let ending = code.rsplit_once('.').is_some_and(|(name, ending)| {
        !name.is_empty() && (1..=5).contains(&ending.len()) && ending.chars().all(|c| c.is_ascii_alphabetic())
    });
    code.chars().all(plain) && (ending || code.contains('/'))
}

/// Cuts behind every end of a sentence. A full stop is one where white space follows.
fn split(line: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        if let Some(sentence) = found.last_mut() {
            sentence.push(c);
        }
        let next = chars.peek();
        let ends = match c {
            '.' | '!' | '?' => next.is_none_or(|next| next.is_whitespace()),
            '。' | '！' | '？' | '；' | ';' | '…' => true,
            _ => false,
        };
        if ends {
            found.push(String::new());
        }
    }
    found.retain(|sentence| !sentence.trim().is_empty());
    found
}

/// The clauses of a sentence.
pub(super) fn clauses(bare: &str) -> Vec<&str> {
    let ends = |c: char| {
        matches!(
            c,
            ',' | '，'
                | ':'
                | '：'
                | ';'
                | '；'
                | '.'
                | '!'
                | '。'
                | '！'
                | '…'
                | '—'
                | '–'
                | '('
                | ')'
                | '（'
                | '）'
        )
    };
    // the full stop of a name like `a.md` is none
    let mut found = Vec::new();
    let mut begin = 0;
    let mut chars = bare.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let is_inside =
            matches!(c, '.' | ':') && chars.peek().is_some_and(|(_, next)| next.is_alphanumeric());
        if ends(c) && !is_inside {
            found.push(bare.get(begin..at).unwrap_or_default().trim());
            begin = at + c.len_utf8();
        }
    }
    found.push(bare.get(begin..).unwrap_or_default().trim());
    found.retain(|clause| !clause.is_empty());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_and_quotes_are_taken_out_and_the_words_stay_whole() {
        let reply = "I **saved** it to `a/b.md`. She said “saved” and \"sent\"!\n```\nsaved.\n```\n> saved\n已保存到「灯塔」。好了吗？";
        let found = sentences(reply);
        let whole: Vec<_> = found.iter().map(|of| of.whole.trim()).collect();
        assert_eq!(
            whole,
            ["I saved it to `a/b.md`.", "She said “saved” and \"sent\"!", "已保存到「灯塔」。", "好了吗？"]
        );
        assert_eq!(found[0].bare, format!("I saved it to {FILE}."));
        assert_eq!(found[1].bare.trim(), format!("She said {OTHER} and {OTHER}!"));
        assert!(found[3].is_question && !found[2].is_question);
        // what is never closed hides nothing, and a fence that is never closed hides the rest
        assert_eq!(sentences("a ` b \" c")[0].bare, "a ` b \" c");
        assert_eq!(sentences("```\nsaved"), []);
    }

    #[test]
    fn clauses_end_where_a_comma_stands_and_names_of_files_are_whole() {
        assert_eq!(clauses("Done, I saved a.md: all of it."), ["Done", "I saved a.md", "all of it"]);
        assert_eq!(clauses("好的，已保存。"), ["好的", "已保存"]);
    }
}
