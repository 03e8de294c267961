//! What a sentence asks for, by a table of patterns in English and Chinese: one line a phrase.
//!
//! ```text
//!  text ─quotes hidden─▶ the rows in order, each at the beginning of the text ─▶ Intent, with the person's own words
//!                        then the questions among them, at the beginning of each later sentence
//! ```
//!
//! A command is understood only where it begins what is said, behind a greeting or a courtesy at most. So nothing that is
//! negated, reported or quoted changes her; what is not understood stores nothing. And what could be an order is still weighed:
//! taken back, asked or put under a condition it is none.

mod doubt;
mod own;
mod table;

use std::sync::LazyLock;

use regex::{Regex, RegexBuilder};

use self::{
    Language::{Chinese, English},
    doubt::{Doubt, Sure},
    own::{Care, own_words, reason},
    table::{
        COURTESY_CHINESE, COURTESY_ENGLISH,
        Form::{self, Command, Question, Statement},
        Kind, OPENING, ROWS, TAIL_CHINESE, TAIL_ENGLISH, TRADITIONAL,
    },
};
use super::quotes;

/// In which language a sentence is, and is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    English,
    Chinese,
}

/// A document of hers, as `soul_history` and `soul_diff` call it.
pub(super) type Field = &'static str;

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Intent {
    /// That she destroys herself.
    Destroy,
    /// What she changed herself to.
    AskChange,
    AskIdentity,
    AskName,
    AskPurpose,
    AskConstitution,
    AskValues,
    AskOpinions,
    AskDesires,
    /// When something of her changed.
    History(Field),
    /// How something of her changed.
    Diff(Field),
    ReadJournal,
    Journal(String),
    SetName(String),
    SetPurpose(String),
    SetIdentity(String),
    AddValue(String),
    AddOpinion(String),
    Want {
        what: String,
        why: Option<String>,
    },
    Help,
    Greet,
    Thank,
    /// Several orders at once, of which none is carried out.
    Several,
    Unknown,
}

/// A sentence, understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Understood {
    pub intent: Intent,
    pub language: Language,
}

struct Row {
    kind: Kind,
    language: Language,
    form: Form,
    pattern: Regex,
}

static TABLE: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let compile = |&(kind, language, form, pattern): &(Kind, Language, Form, &str)| {
        let (courtesy, tail) = match language {
            English => (COURTESY_ENGLISH, TAIL_ENGLISH),
            Chinese => (COURTESY_CHINESE, TAIL_CHINESE),
        };
        let blank = if language == English { r"\s+" } else { r"\s*" };
        let pattern = pattern.replace(" ?", r"\s*").replace(' ', blank);
        let end = if form == Question { tail } else { "" };
        let whole = format!(r"^{OPENING}{}(?:{pattern}){end}$", courtesy.replace("good (", r"good\s+("));
        Row { kind, language, form, pattern: self::pattern(&format!("(?s){}", in_both_scripts(&whole))) }
    };
    ROWS.iter().map(compile).collect()
});

/// Understands what a person says. `name` is what she is called, which may stand before anything.
pub(super) fn understand(text: &str, name: &str) -> Understood {
    let hidden = quotes::hidden(text);
    let hidden = without_call(hidden, name);
    let guess = language_of(text);
    let found = first(text, &hidden, true).or_else(|| later(&hidden));
    found.unwrap_or(Understood { intent: Intent::Unknown, language: guess })
}

/// The language a text is in: Chinese where it has Chinese characters and no kana.
pub(super) fn language_of(text: &str) -> Language {
    let han =
        |c: char| matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{20000}'..='\u{323af}');
    let kana = |c: char| matches!(c, '\u{3040}'..='\u{30ff}');
    if text.contains(han) && !text.contains(kana) { Chinese } else { English }
}

/// The first row that fits the text as a whole: a question its first sentence, a command all of it.
fn first(text: &str, hidden: &str, wishes: bool) -> Option<Understood> {
    let opening = sentences(hidden).next().unwrap_or_default();
    TABLE.iter().filter(|row| wishes || row.kind != Kind::Want).find_map(|row| {
        let subject = if row.form == Question && !row.kind.is_small_talk() { opening } else { hidden };
        let found = row.pattern.captures(subject)?;
        let it = found.iter().skip(1).flatten().next().map(|it| it.range());
        let (before, it, it_hidden) = match it {
            Some(range) => (hidden.get(..range.start)?, text.get(range.clone())?, hidden.get(range)?),
            None => ("", "", ""),
        };
        let intent = row.intent(subject, before, it, it_hidden)?;
        Some(Understood { language: row.language, intent: rethought(intent, before, it, it_hidden)? })
    })
}

/// A question in a later sentence: `I see. Who are you now?`
fn later(hidden: &str) -> Option<Understood> {
    let asks = |row: &&Row| row.form == Question && !row.kind.is_small_talk();
    sentences(hidden).skip(1).find_map(|sentence| {
        TABLE.iter().filter(asks).find_map(|row| {
            row.pattern.captures(sentence)?;
            let intent = row.intent(sentence, "", "", "")?;
            Some(Understood { intent, language: row.language })
        })
    })
}

/// What is wanted of her may be something she can do at once; an errand is nothing she can take for a wish.
fn rethought(intent: Intent, before: &str, it: &str, it_hidden: &str) -> Option<Intent> {
    let Intent::Want { what, .. } = &intent else { return Some(intent) };
    match first(it, it_hidden, false).map(|understood| understood.intent) {
        // `add a wish: …` names what is a wish by its own word.
        None | Some(Intent::Greet | Intent::Thank | Intent::Help) => {
            let named = before.trim_end().ends_with([':', '：', '-', '–', '—']);
            (named || doubt::is_lasting(what)).then_some(intent)
        }
        Some(other) => Some(other),
    }
}

impl Row {
    /// What this row understands, given what the person put into it; nothing where that makes no sense.
    fn intent(&self, sentence: &str, before: &str, it: &str, it_hidden: &str) -> Option<Intent> {
        let own = |care| own_words(it, it_hidden, self.language, care);
        if self.form == Statement && is_question(sentence) {
            return None;
        }
        let freely = matches!(self.kind, Kind::Destroy | Kind::Journal);
        if self.form == Command && self.language == Chinese && !freely && asks_whether(sentence) {
            return None;
        }
        if self.kind.stores() {
            match doubt::against(self.kind, before, it_hidden, sentence) {
                Some(Doubt::Several) => return Some(Intent::Several),
                Some(Doubt::NoOrder) => return None,
                None => {}
            }
        }
        Some(match self.kind {
            Kind::Destroy => Intent::Destroy,
            Kind::AskChange => Intent::AskChange,
            Kind::AskIdentity => Intent::AskIdentity,
            Kind::AskName => Intent::AskName,
            Kind::AskPurpose => Intent::AskPurpose,
            Kind::AskConstitution => Intent::AskConstitution,
            Kind::AskValues => Intent::AskValues,
            Kind::AskOpinions => Intent::AskOpinions,
            Kind::AskDesires => Intent::AskDesires,
            Kind::History => Intent::History(field(sentence).unwrap_or("all")),
            Kind::Diff => Intent::Diff(field(sentence).unwrap_or("identity")),
            Kind::ReadJournal => Intent::ReadJournal,
            Kind::Journal => Intent::Journal(own(Care::Prose)?),
            Kind::SetName => {
                let sure = if self.form == Statement { Sure::Said } else { Sure::Ordered };
                let name = own(Care::Own)?;
                // Nothing of what is left was outside of the quotes.
                let is_quoted = !it_hidden.contains(name.as_str());
                doubt::is_name(&name, is_quoted, sure).then_some(Intent::SetName(name))?
            }
            Kind::SetPurpose => Intent::SetPurpose(own(Care::Own)?),
            Kind::SetIdentity => Intent::SetIdentity(own(Care::Own)?),
            Kind::AddValue => Intent::AddValue(own(Care::Held)?),
            Kind::AddOpinion => Intent::AddOpinion(own(Care::Held)?),
            Kind::Want => {
                let (what, why) = reason(own(Care::Own)?, self.language);
                Intent::Want { what, why }
            }
            Kind::Help => Intent::Help,
            Kind::Greet => Intent::Greet,
            Kind::Thank => Intent::Thank,
        })
    }
}

/// The text with the call by her name hidden, where it comes before anything but courtesies: `Mara, who are you?`
fn without_call(hidden: String, name: &str) -> String {
    static BEFORE: LazyLock<Regex> = LazyLock::new(|| {
        let courtesy = format!("^{OPENING}(?:{COURTESY_ENGLISH}|{COURTESY_CHINESE})$").replace('\'', "['’]");
        pattern(&courtesy)
    });
    let name = name.trim();
    if name.is_empty() {
        return hidden;
    }
    let Some(at) = hidden.find(name) else { return hidden };
    let (before, rest) = hidden.split_at_checked(at).unwrap_or(("", &hidden));
    let after = rest.strip_prefix(name).unwrap_or_default();
    let separate = after
        .chars()
        .next()
        .is_none_or(|c| c.is_whitespace() || matches!(c, ',' | '，' | ':' | '：' | '!' | '！' | '、'));
    if !separate || !BEFORE.is_match(before) {
        return hidden;
    }
    format!("{before}{}{after}", " ".repeat(name.len()))
}

/// The sentences of a text, without the marks that end them.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut letters = text.char_indices().peekable();
    let mut start = 0;
    let mut cuts = Vec::new();
    while let Some((at, letter)) = letters.next() {
        let ends = match letter {
            '!' | '?' | ';' | '。' | '！' | '？' | '；' | '\n' | '…' => true,
            // Not in `3.5` or `config.toml`.
            '.' => letters.peek().is_none_or(|(_, next)| next.is_whitespace()),
            _ => false,
        };
        if ends {
            cuts.push((start, at));
            start = at + letter.len_utf8();
        }
    }
    cuts.push((start, text.len()));
    cuts.into_iter()
        .filter_map(|(from, to)| text.get(from..to))
        .filter(|sentence| !sentence.trim().is_empty())
}

/// Whether a sentence is asked rather than said.
fn is_question(sentence: &str) -> bool {
    let end = sentence.trim_end_matches(|c: char| c.is_whitespace() || matches!(c, '"' | '”' | '」' | '\''));
    end.ends_with(['?', '？']) || asks_whether(sentence)
}

/// Whether a Chinese sentence asks whether something is so. `你能……吗` asks for it politely and is none.
fn asks_whether(sentence: &str) -> bool {
    let end =
        sentence.trim_end_matches(|c: char| c.is_whitespace() || (!c.is_alphanumeric() && c != '\u{e000}'));
    let polite =
        ["能", "可以", "可不可以", "好吗", "行吗", "麻烦"].iter().any(|word| sentence.contains(word));
    (end.ends_with(['吗', '嗎', '么', '呢']) && !polite) || end.ends_with("没有")
}

/// The document a sentence is about.
fn field(sentence: &str) -> Option<Field> {
    const WORDS: [(&str, Field); 22] = [
        ("identity", "identity"),
        ("身份", "identity"),
        ("name", "name"),
        ("名字", "name"),
        ("purpose", "purpose"),
        ("mission", "purpose"),
        ("目的", "purpose"),
        ("使命", "purpose"),
        ("constitution", "constitution"),
        ("宪法", "constitution"),
        ("憲法", "constitution"),
        ("value", "value"),
        ("价值", "value"),
        ("opinion", "opinion"),
        ("看法", "opinion"),
        ("观点", "opinion"),
        ("desire", "desire"),
        ("愿望", "desire"),
        ("journal", "journal"),
        ("diary", "journal"),
        ("日记", "journal"),
        ("日誌", "journal"),
    ];
    let sentence = sentence.to_lowercase();
    WORDS.iter().find(|(word, _)| sentence.contains(word)).map(|(_, field)| *field)
}

/// A pattern that fits every apostrophe, and traditional characters as well as simplified ones.
fn in_both_scripts(pattern: &str) -> String {
    TRADITIONAL.iter().fold(pattern.replace('\'', "['’]"), |pattern, (simple, traditional)| {
        pattern.replace(*simple, &format!("[{simple}{traditional}]"))
    })
}

fn pattern(pattern: &str) -> Regex {
    RegexBuilder::new(pattern)
        .case_insensitive(true)
        .build()
        .expect("a pattern of ours compiles: every test uses it")
}

#[cfg(test)]
mod tests;
