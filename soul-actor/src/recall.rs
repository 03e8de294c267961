//! Recalling: which notes a few words mean. A plain function of the notes.
//!
//! Words and pairs of Chinese characters are compared as everywhere ([`ipc::text::gist`]); what few notes say weighs more
//! than what many say. A note that has the query in it as it stands comes first, then those that have most of it, the
//! newer first of equals. A note that has little of it is not shown at all, because what is shown counts.

use std::collections::{HashMap, HashSet};

use ipc::text::{gist, is_unspaced, plain};
use jiff::{Timestamp, civil::Date};

use crate::notes::{self, About, Note};

/// How much of a query a note must have, by weight, to be shown.
const SHARE_MIN: f64 = 0.4;

/// A note, made ready to be searched.
#[derive(Debug)]
pub(crate) struct Indexed {
    /// The note.
    pub(crate) note: Note,
    plain: String,
    gist: HashSet<String>,
}

impl Indexed {
    fn of(note: Note) -> Self {
        Self { plain: plain(&note.text), gist: gist(&note.text), note }
    }

    fn has(&self, token: &str) -> bool {
        let alone = token.chars().next().is_some_and(is_unspaced) && ipc::text::chars(token) == 1;
        self.gist.contains(token) || (alone && self.plain.contains(token))
    }
}

/// What is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Query {
    /// The words.
    pub(crate) words: String,
    /// At most so many.
    pub(crate) limit: u32,
    /// About this alone.
    pub(crate) about: Option<About>,
    /// Nothing older.
    pub(crate) since: Option<Timestamp>,
}

/// The notes that are meant, the best first.
pub(crate) fn find<'a>(notes: impl IntoIterator<Item = &'a Indexed>, query: &Query) -> Vec<&'a Note> {
    let fits = |found: &&Indexed| {
        query.about.is_none_or(|about| found.note.about == about)
            && query.since.is_none_or(|since| found.note.at >= since)
    };
    let notes: Vec<&Indexed> = notes.into_iter().filter(fits).collect();
    let (phrase, tokens) = (plain(&query.words), gist(&query.words));
    let weights: HashMap<&str, f64> = tokens
        .iter()
        .map(|token| {
            (token.as_str(), rarity(notes.iter().filter(|note| note.has(token)).count(), notes.len()))
        })
        .collect();
    let whole: f64 = weights.values().sum();
    let mut found: Vec<(f64, &Note)> = Vec::new();
    for indexed in notes {
        let share: f64 =
            weights.iter().filter(|(token, _)| indexed.has(token)).map(|(_, weight)| weight).sum();
        let share = if whole > 0.0 { share / whole } else { 0.0 };
        let as_it_stands = !phrase.is_empty() && indexed.plain.contains(&phrase);
        if as_it_stands || share >= SHARE_MIN {
            found.push((if as_it_stands { 2.0 } else { share }, &indexed.note));
        }
    }
    found.sort_by(|(one, note), (other, than)| other.total_cmp(one).then(than.address.cmp(&note.address)));
    found.into_iter().take(query.limit as usize).map(|(_, note)| note).collect()
}

/// How much a token says that so many of all notes have.
fn rarity(having: usize, all: usize) -> f64 {
    let count = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    (1.0 + count(all) / (1.0 + count(having))).ln()
}

/// The notes as they were last read, by day, so that a file is taken apart once for each time it changes.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
    days: HashMap<Date, (Vec<u8>, Vec<Indexed>)>,
}

impl Shelf {
    /// Takes in the files as they are now, each with its day.
    pub(crate) fn take_in(&mut self, files: Vec<(Date, Vec<u8>)>) {
        let there: HashSet<Date> = files.iter().map(|(day, _)| *day).collect();
        self.days.retain(|day, _| there.contains(day));
        for (day, bytes) in files {
            if self.days.get(&day).is_none_or(|(known, _)| *known != bytes) {
                let notes = notes::read(day, &String::from_utf8_lossy(&bytes));
                self.days.insert(day, (bytes, notes.into_iter().map(Indexed::of).collect()));
            }
        }
    }

    /// All notes, in no order.
    pub(crate) fn notes(&self) -> impl Iterator<Item = &Indexed> {
        self.days.values().flat_map(|(_, notes)| notes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOTES: [(&str, About); 9] = [
        ("Ada plays the cello on Thursdays.", About::User),
        ("She keeps a cat called 米粒, grey and loud.", About::User),
        ("我们聊了灯塔和海边的旅行。", About::Talk),
        ("他喜欢喝乌龙茶，不加糖。", About::Pref),
        ("Ask before deleting anything.", About::Lesson),
        ("我说得太多的时候要停下来听。", About::Oneself),
        ("他养了一只猫。", About::User),
        ("The cello needs a new string, and Ada a new teacher.", About::Talk),
        ("🎂 on 4 May", About::User),
    ];

    fn shelf() -> Shelf {
        let mut shelf = Shelf::default();
        let mut files = Vec::new();
        for (n, (text, about)) in (1..).zip(NOTES) {
            let day: Date = format!("2026-11-{n:02}").parse().unwrap();
            let at = format!("2026-11-{n:02}T12:00:00Z").parse().unwrap();
            files.push((day, notes::append(day, b"", (about, false), at, text).0));
        }
        shelf.take_in(files);
        shelf
    }

    fn query(words: &str) -> Query {
        Query { words: words.into(), limit: 5, about: None, since: None }
    }

    fn days(shelf: &Shelf, query: &Query) -> Vec<i8> {
        find(shelf.notes(), query).iter().map(|note| note.address.day.day()).collect()
    }

    #[test]
    fn words_find_what_they_mean_in_english_and_in_chinese_alike() {
        let shelf = shelf();
        let check =
            |words: &str, expected: &[i8]| assert_eq!(days(&shelf, &query(words)), expected, "{words}");
        check("cello", &[8, 1]);
        check("the Cello, played on a Thursday", &[1]);
        check("deleted anything", &[5]);
        check("灯塔", &[3]);
        check("乌龙", &[4]);
        check("喝茶", &[]);
        check("海边旅行", &[3]);
        check("她的乌龙茶", &[4]);
        check("猫", &[7]);
        check("我说", &[6]);
        check("米粒", &[2]);
        check("ＣＥＬＬＯ", &[8, 1]);
        check("🎂", &[9]);
        check("on", &[9, 1]);
        check("trombone", &[]);
        check("长号", &[]);
        check(" \n", &[]);
    }

    #[test]
    fn kind_time_and_number_bound_what_is_shown() {
        let shelf = shelf();
        let talk = Query { about: Some(About::Talk), ..query("cello") };
        assert_eq!(days(&shelf, &talk), [8]);
        let since = Query { since: Some("2026-11-05T00:00:00Z".parse().unwrap()), ..query("cello") };
        assert_eq!(days(&shelf, &since), [8]);
        assert_eq!(days(&shelf, &Query { limit: 1, ..query("cello") }), [8]);
    }

    #[test]
    fn a_shelf_follows_the_files() {
        let mut shelf = shelf();
        let day: Date = "2026-11-01".parse().unwrap();
        let at = "2026-11-01T12:00:00Z".parse().unwrap();
        shelf.take_in(vec![(day, notes::append(day, b"", (About::Talk, false), at, "trombone").0)]);
        assert_eq!((days(&shelf, &query("cello")), days(&shelf, &query("trombone"))), (vec![], vec![1]));
    }

    #[test]
    fn thousands_of_notes_are_searched_within_a_blink() {
        let mut files = Vec::new();
        for day in 0..500_i64 {
            let day: Date = Date::constant(2025, 1, 1).checked_add(jiff::Span::new().days(day)).unwrap();
            let mut bytes = Vec::new();
            for n in 0..10 {
                let text = format!(
                    "{}，note {n} of {day}, {}",
                    "灯塔看守人今天唱歌".repeat(6),
                    "hummed in the fog ".repeat(6)
                );
                let at = "2026-11-01T12:00:00Z".parse().unwrap();
                bytes = notes::append(day, &bytes, (About::Talk, false), at, &text).0;
            }
            files.push((day, bytes));
        }
        let mut shelf = Shelf::default();
        shelf.take_in(files.clone());
        let begun = std::time::Instant::now();
        shelf.take_in(files);
        assert_eq!(find(shelf.notes(), &query("灯塔 fog 2025-06-01")).len(), 5);
        // far above what it takes: a machine under test is busy
        assert!(begun.elapsed() < std::time::Duration::from_secs(2), "{:?}", begun.elapsed());
    }

    proptest! {
        #[test]
        fn a_note_is_found_by_its_own_words(text in "[a-z灯塔海边猫 ]{1,40}") {
            prop_assume!(!text.trim().is_empty());
            let day: Date = "2026-11-01".parse().unwrap();
            let at = "2026-11-01T12:00:00Z".parse().unwrap();
            let mut shelf = Shelf::default();
            shelf.take_in(vec![(day, notes::append(day, b"", (About::Talk, false), at, &text).0)]);
            prop_assert_eq!(find(shelf.notes(), &query(&text)).len(), 1);
        }
    }
}
