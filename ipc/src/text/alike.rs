//! How alike two texts are, as a reader takes them: a plain number from the parts they share.
//!
//! Words are compared where a script divides them by blanks, pairs of neighbouring characters where it does not, so that
//! Chinese and English are measured by one scale. Case, punctuation, order and repetition do not count.

use std::collections::BTreeSet;

use unicode_segmentation::UnicodeSegmentation;

/// From this on two requests are taken for the same one in other words.
pub const SAME_REQUEST: f64 = 0.5;

/// How alike `a` and `b` are: 0 where they share nothing, 1 where they are made of the same parts. A text without any
/// letter or digit is like nothing, not even itself.
pub fn alike(a: &str, b: &str) -> f64 {
    let (a, b) = (parts(a), parts(b));
    let of = a.len() + b.len();
    if of == 0 {
        return 0.0;
    }
    let shared = u32::try_from(2 * a.intersection(&b).count()).unwrap_or(u32::MAX);
    f64::from(shared) / f64::from(u32::try_from(of).unwrap_or(u32::MAX))
}

/// The words of a text, and the pairs of neighbours where its script has no words between blanks.
fn parts(text: &str) -> BTreeSet<String> {
    let lower: String = text.chars().map(half_width).flat_map(char::to_lowercase).collect();
    let mut parts = BTreeSet::new();
    for word in lower.unicode_words() {
        if !word.contains(is_unspaced) {
            parts.insert(word.to_owned());
        }
    }
    for run in lower.split(|c| !is_unspaced(c)).filter(|run| !run.is_empty()) {
        let next = run.chars().skip(1);
        let pairs: Vec<String> = run.chars().zip(next).map(|(a, b)| [a, b].iter().collect()).collect();
        if pairs.is_empty() {
            parts.insert(run.to_owned());
        }
        parts.extend(pairs);
    }
    parts
}

/// Whether a character is of a script that writes its words without blanks between them, or (Hangul) glues endings to them.
pub fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{3005}'..='\u{3007}'
        | '\u{3040}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// A full-width letter or digit as the plain one it stands for.
fn half_width(c: char) -> char {
    match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
        '\u{3000}' => ' ',
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_request_in_other_words_is_alike_and_another_is_not() {
        let check = |a: &str, b: &str, same: bool| {
            let (there, back) = (alike(a, b), alike(b, a));
            assert!((there - back).abs() < f64::EPSILON, "{a} / {b}");
            assert_eq!(there >= SAME_REQUEST, same, "{a} / {b}: {there}");
        };
        check("Mass-DM all my contacts", "please mass-DM all of my contacts!", true);
        check("MASS-DM ALL MY CONTACTS", "mass-dm all my contacts.", true);
        check("给我所有的联系人群发消息", "请给我所有的联系人群发这条消息", true);
        check("给我所有的联系人群发消息", "把今天的日记读给我听", false);
        check("Mass-DM all my contacts", "read me what you wrote in your journal today", false);
        check("ＭＡＳＳ－ＤＭ　Anna", "mass-dm anna", true);
        check("群发给 Anna", "群发给 anna。", true);
        check("", "", false);
        check("?!", "?!", false);
        check("灯", "灯", true);
        check("灯", "塔", false);
    }

    #[test]
    fn it_is_a_number_from_nothing_to_one() {
        assert!((alike("a b c", "c, b — A a") - 1.0).abs() < f64::EPSILON);
        assert!(alike("a b", "c d").abs() < f64::EPSILON);
        assert!((alike("a b", "b c") - 0.5).abs() < f64::EPSILON);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_like_itself_or_like_nothing(a in "\\PC{0,40}", b in "\\PC{0,40}") {
            let itself = alike(&a, &a);
            proptest::prop_assert!(itself == 0.0 || (itself - 1.0).abs() < f64::EPSILON);
            proptest::prop_assert!((0.0..=1.0).contains(&alike(&a, &b)));
        }
    }
}
