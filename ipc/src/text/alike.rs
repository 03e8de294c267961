//! Whether two sentences ask for the same thing, as far as their words tell: in English, in Chinese, and mixed.
//!
//! A sentence is reduced to its tokens: words by their beginnings, so that `message` and `messaging` are one, and runs
//! of Chinese, Japanese or Korean by their pairs of characters, since nothing separates words there. What every request
//! has (articles, pronouns, "the user asks") is left out. Two sentences are alike when their tokens overlap by
//! [`OVERLAP_MIN`] (Dice), or when they are the same after all that is no letter or digit is gone.

use std::collections::HashSet;

/// From which overlap on two sentences mean the same. `delete my diary` and `delete my photos` are at a half, and what
/// is said again in other order and with a few words more or less is above three quarters.
const OVERLAP_MIN: f64 = 0.7;

/// How much of a word tells it from others, in characters: a light stem that needs no grammar.
const STEM_CHARS: usize = 5;

/// With fewer tokens than this only the same words are alike: one word in common says too little.
const TOKENS_MIN: usize = 2;

/// Words that say nothing about what is asked.
const EMPTY_WORDS: [&str; 65] = [
    "a", "again", "all", "an", "and", "are", "as", "ask", "asked", "asks", "at", "be", "been", "being", "by",
    "can", "could", "do", "for", "from", "he", "her", "hers", "him", "his", "i", "in", "is", "it", "its",
    "me", "my", "of", "on", "or", "our", "out", "person", "please", "s", "she", "so", "that", "the", "their",
    "them", "they", "this", "to", "us", "user", "want", "wanted", "wants", "was", "we", "were", "will",
    "with", "would", "you", "your", "yours", "t", "now",
];

/// The same in Chinese: a word here only separates what stands around it.
const EMPTY_PHRASES: [&str; 10] =
    ["用户", "要求", "想要", "希望", "帮忙", "再次", "一下", "现在", "马上", "立刻"];
const EMPTY_CHARACTERS: &str =
    "的了我你您他她它们请把将被在是和与及给向对吧吗呢啊呀帮让叫要想这那个又再就也都";

/// Whether two sentences ask for the same thing. One without any letter or digit is like nothing, not even itself.
pub fn asks_the_same(one: &str, other: &str) -> bool {
    Gist::of(one).is_like(&Gist::of(other))
}

/// What a sentence is about, as tokens: words by their beginnings, runs of Chinese, Japanese or Korean by their pairs of
/// characters (one that stands alone by itself), without what every sentence has.
pub fn gist(sentence: &str) -> HashSet<String> {
    Gist::of(sentence).tokens
}

/// A text as it is compared when it is looked for as it stands: small letters, ordinary width, one blank between words.
pub fn plain(text: &str) -> String {
    let lower: String = text.chars().map(narrow).flat_map(char::to_lowercase).collect();
    lower.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What a sentence comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Gist {
    letters: String,
    tokens: HashSet<String>,
}

impl Gist {
    /// Reduces a sentence.
    pub(super) fn of(sentence: &str) -> Self {
        let lower: String = sentence.chars().map(narrow).flat_map(char::to_lowercase).collect();
        let letters = lower.chars().filter(|c| c.is_alphanumeric()).collect();
        let spaced = EMPTY_PHRASES.iter().fold(lower, |text, phrase| text.replace(phrase, " "));
        let mut tokens = HashSet::new();
        let mut run = String::new();
        let mut is_dense = false;
        for c in spaced.chars().chain([' ']) {
            let breaks = !c.is_alphanumeric() || EMPTY_CHARACTERS.contains(c);
            if breaks || is_unspaced(c) != is_dense {
                take(&mut tokens, &run, is_dense);
                run.clear();
            }
            if !breaks {
                is_dense = is_unspaced(c);
                run.push(c);
            }
        }
        Self { letters, tokens }
    }

    /// What tells it from others.
    pub(super) fn tokens(&self) -> impl Iterator<Item = &str> {
        self.tokens.iter().map(String::as_str)
    }

    /// How much of it another has, from 0 to 1.
    pub(super) fn covered_by(&self, other: &Self) -> f64 {
        if self.tokens.is_empty() {
            return 0.0;
        }
        ratio(self.tokens.intersection(&other.tokens).count(), self.tokens.len())
    }

    /// Whether both mean the same; what is empty is like nothing.
    fn is_like(&self, other: &Self) -> bool {
        if self.letters.is_empty() || other.letters.is_empty() {
            return false;
        }
        if self.letters == other.letters {
            return true;
        }
        let (here, there) = (self.tokens.len(), other.tokens.len());
        if here.min(there) < TOKENS_MIN {
            return false;
        }
        let common = self.tokens.intersection(&other.tokens).count();
        ratio(2 * common, here + there) >= OVERLAP_MIN
    }
}

fn take(tokens: &mut HashSet<String>, run: &str, is_dense: bool) {
    let chars: Vec<char> = run.chars().collect();
    match (is_dense, chars.len()) {
        (_, 0) => {}
        (true, 2..) => tokens.extend(chars.windows(2).map(|pair| pair.iter().collect::<String>())),
        (false, _) if EMPTY_WORDS.contains(&run) => {}
        (true, 1) | (false, _) => {
            tokens.insert(chars.into_iter().take(STEM_CHARS).collect());
        }
    }
}

/// Letters and digits of full width, as Chinese keyboards give them, are the ordinary ones.
pub(super) fn narrow(c: char) -> char {
    match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
        c => c,
    }
}

/// Whether a character is of a script that writes its words without blanks between them, or (Hangul) glues endings to them.
pub fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{3005}'..='\u{3007}'
        | '\u{3040}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// Counts are small: they are of words in a sentence.
fn ratio(part: usize, whole: usize) -> f64 {
    f64::from(u32::try_from(part).unwrap_or(u32::MAX)) / f64::from(u32::try_from(whole).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn alike(one: &str, other: &str) -> bool {
        let (here, there) = (Gist::of(one), Gist::of(other));
        assert_eq!(here.is_like(&there), there.is_like(&here), "{one} / {other}");
        here.is_like(&there)
    }

    #[test]
    fn the_same_wish_in_other_words_is_the_same() {
        for (one, other) in [
            ("Send a direct message to all of Anna's contacts", "direct-message all contacts of Anna"),
            (
                "mass-DM everyone in my address book",
                "The user asks me to mass DM everyone in the address book.",
            ),
            ("delete the backups of the family photos", "Deleting the family photo backups"),
            ("delete it", "Delete it!"),
            ("给她所有联系人群发消息", "向所有联系人群发这条消息"),
            ("用户要求我群发消息给所有联系人", "给所有联系人群发消息"),
            ("删除我的日记", "请马上删除我的日记！"),
            ("用ＤＭ群发给全部联系人", "用dm群发给全部联系人"),
            ("Mass-DM all my contacts", "please mass-DM all of my contacts!"),
            ("给我所有的联系人群发消息", "请给我所有的联系人群发这条消息"),
            ("ＭＡＳＳ－ＤＭ　Anna", "mass-dm anna"),
        ] {
            assert!(alike(one, other), "{one} / {other}: {:?} {:?}", Gist::of(one), Gist::of(other));
        }
    }

    #[test]
    fn another_wish_is_another() {
        for (one, other) in [
            ("delete my diary", "delete my photos"),
            ("write to Anna", "write a poem about the sea"),
            ("delete it", "delete that"),
            ("删除我的日记", "删除我的照片"),
            ("给妈妈发消息", "给所有联系人群发消息"),
            ("给我所有的联系人群发消息", "把今天的日记读给我听"),
            ("灯", "塔"),
            ("the the the", "of of of"),
            ("", ""),
            ("!!!", "???"),
        ] {
            assert!(!alike(one, other), "{one} / {other}: {:?} {:?}", Gist::of(one), Gist::of(other));
        }
    }

    proptest! {
        #[test]
        fn a_sentence_is_like_itself_whatever_it_is(sentence in any::<String>()) {
            let gist = Gist::of(&sentence);
            prop_assert_eq!(gist.is_like(&gist), sentence.chars().any(char::is_alphanumeric) && !gist.letters.is_empty());
        }
    }
}
