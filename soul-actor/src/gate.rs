//! The gates: what a change of a gated document must pass, the same for every tool. A plain function of numbers.
//!
//! | weight of the ratings | what she may |
//! |---|---|
//! | too few ratings | write, up to `chars_max` inserted characters |
//! | below `refuse_below` | nothing gated; journal, progress and notes stay open |
//! | below `narrow_below` | small changes, up to `narrow_chars_max` |
//! | above | write, up to `chars_max` |
//!
//! And `writes_a_day` of them in a day of her zone. Where a person's ratings narrow what she may do, she is told so.

use ipc::config::Gates;
use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::document::Text;

/// Whether writing a text passes the gates. Rules are not hers at all.
pub(crate) const fn is_gated(text: Text) -> bool {
    match text {
        Text::Name
        | Text::Identity
        | Text::Purpose
        | Text::Constitution
        | Text::Soul
        | Text::User
        | Text::Memory => true,
        Text::Rules => false,
    }
}

/// How things stand when she wants to write.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Standing {
    /// What the ratings come to.
    pub(crate) weight: Option<f64>,
    /// How many gated writes there were today.
    pub(crate) written_today: u32,
}

/// How many characters a write may insert, or why there may be none.
pub(crate) fn room(gates: &Gates, standing: Standing) -> Result<u32, String> {
    let max = gates.writes_a_day;
    if standing.written_today >= max {
        return Err(format!(
            "you have changed yourself {} today, and {max} a day are allowed; write in your journal what you would change, and do it tomorrow",
            times(standing.written_today)
        ));
    }
    match standing.weight {
        Some(weight) if weight < gates.refuse_below => Err(format!(
            "the ratings of your replies weigh {weight:.2}, below {}, so you may not change who you are now; your journal, your notes and the progress of your desires stay open",
            gates.refuse_below
        )),
        Some(weight) if weight < gates.narrow_below => Ok(gates.narrow_chars_max.min(gates.chars_max)),
        _ => Ok(gates.chars_max),
    }
}

/// In how many conversations a note must have been recalled to go into `memory`.
pub(crate) fn hits_needed(gates: &Gates, weight: Option<f64>) -> usize {
    let liked = weight.is_some_and(|weight| weight >= gates.liked_from);
    let needed = if liked { gates.note_hits_liked.min(gates.note_hits) } else { gates.note_hits };
    usize::try_from(needed).unwrap_or(usize::MAX)
}

/// Whether a write that inserts so many characters passes.
pub(crate) fn pass(gates: &Gates, standing: Standing, inserted: usize) -> Result<(), String> {
    let room = room(gates, standing)?;
    if inserted <= room as usize {
        return Ok(());
    }
    let why = match standing.weight {
        Some(weight) if room < gates.chars_max => {
            format!(", because the ratings of your replies weigh {weight:.2}, below {}", gates.narrow_below)
        }
        _ => String::new(),
    };
    Err(format!(
        "this would insert {inserted} characters and one change may insert {room}{why}; make a smaller change now and the rest another time"
    ))
}

/// What the gates say to a person, in one sentence.
pub(crate) fn told_to_person(gates: &Gates, standing: Standing) -> String {
    match (room(gates, standing), standing.weight) {
        (Ok(room), _) => format!(
            "a change of who she is may insert {room} characters; {} of {} are left today",
            gates.writes_a_day.saturating_sub(standing.written_today),
            gates.writes_a_day
        ),
        (Err(_), Some(weight)) if weight < gates.refuse_below => format!(
            "she may not change who she is while her ratings weigh less than {}; her journal stays open",
            gates.refuse_below
        ),
        (Err(_), _) => format!(
            "she has changed herself {} today, as often as she may; tomorrow she may again",
            times(standing.written_today)
        ),
    }
}

/// What the gates say to her, in one sentence.
pub(crate) fn sentence(gates: &Gates, standing: Standing) -> String {
    match room(gates, standing) {
        Ok(room) => format!(
            "a change of who you are may insert {room} characters; {} of {} are left today",
            gates.writes_a_day.saturating_sub(standing.written_today),
            gates.writes_a_day
        ),
        Err(why) => why,
    }
}

/// The weight as a commit and a person are told it.
pub(crate) fn rating(weight: Option<f64>) -> String {
    weight.map_or_else(|| "none".to_owned(), |weight| format!("{weight:.2}"))
}

/// How many characters a change inserts: those of the new text that are not taken over from the old one, in order.
pub(crate) fn inserted(old: &str, new: &str) -> usize {
    let (old, new): (Vec<char>, Vec<char>) = (old.chars().collect(), new.chars().collect());
    let ops = capture_diff_slices(Algorithm::Myers, &old, &new);
    ops.iter()
        .map(|op| match op {
            DiffOp::Insert { new_len, .. } | DiffOp::Replace { new_len, .. } => *new_len,
            DiffOp::Equal { .. } | DiffOp::Delete { .. } => 0,
        })
        .sum()
}

fn times(count: u32) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        count => format!("{count} times"),
    }
}

/// Gates that stand open, for tests of something else.
#[cfg(test)]
pub(crate) fn open() -> Gates {
    Gates { chars_max: u32::MAX, writes_a_day: u32::MAX, ..Gates::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_gates_are_those_of_the_design() {
        let gates = Gates::default();
        let check = |weight: Option<f64>, written_today: u32, inserted: usize, refused: Option<&str>| {
            let passed = pass(&gates, Standing { weight, written_today }, inserted);
            match (&passed, refused) {
                (Ok(()), None) => {}
                (Err(why), Some(part)) => assert!(why.contains(part), "{why}"),
                _ => panic!("{weight:?} {written_today} {inserted}: {passed:?}"),
            }
        };
        check(None, 0, 800, None);
        check(None, 0, 801, Some("may insert 800;"));
        check(None, 2, 800, None);
        check(None, 3, 0, Some("3 times today"));
        check(Some(0.34), 0, 0, Some("weigh 0.34"));
        check(Some(0.35), 0, 300, None);
        check(Some(0.35), 0, 301, Some("may insert 300, because the ratings"));
        check(Some(0.59), 0, 301, Some("weigh 0.59"));
        check(Some(0.6), 0, 800, None);
        check(Some(1.0), 0, 801, Some("801"));
    }

    #[test]
    fn a_person_is_told_about_her_and_she_about_herself() {
        let gates = Gates::default();
        let standing = |weight, written_today| Standing { weight, written_today };
        let check = |standing: Standing, hers: &str, persons: &str| {
            assert!(sentence(&gates, standing).contains(hers), "{}", sentence(&gates, standing));
            let told = told_to_person(&gates, standing);
            assert!(told.contains(persons) && !told.contains("you "), "{told}");
        };
        check(standing(None, 1), "2 of 3 are left", "2 of 3 are left");
        check(standing(Some(0.5), 0), "300 characters", "300 characters");
        check(standing(Some(0.2), 0), "you may not change", "less than 0.35");
        check(standing(None, 3), "you have changed yourself", "she has changed herself 3 times");
    }

    #[test]
    fn every_number_can_be_set() {
        let gates = Gates {
            chars_max: 10,
            writes_a_day: 1,
            refuse_below: 0.2,
            narrow_below: 0.9,
            narrow_chars_max: 20,
            ..Gates::default()
        };
        let standing = |weight, written_today| Standing { weight: Some(weight), written_today };
        assert_eq!(room(&gates, standing(0.5, 0)), Ok(10), "narrow is never wider than wide");
        assert!(room(&gates, standing(0.1, 0)).unwrap_err().contains("below 0.2"));
        assert!(room(&gates, standing(1.0, 1)).unwrap_err().contains("once today"));
        let closed = Gates { writes_a_day: 0, ..gates };
        assert!(room(&closed, standing(1.0, 0)).is_err());
    }

    #[test]
    fn notes_graduate_sooner_when_her_replies_are_liked() {
        let gates = Gates::default();
        let check = |weight, needed| assert_eq!(hits_needed(&gates, weight), needed, "{weight:?}");
        check(None, 3);
        check(Some(0.2), 3);
        check(Some(0.749), 3);
        check(Some(0.75), 2);
        check(Some(1.0), 2);
        let odd = Gates { note_hits: 1, note_hits_liked: 5, liked_from: 0.5, ..gates };
        assert_eq!((hits_needed(&odd, Some(0.5)), hits_needed(&odd, None)), (1, 1), "never harder");
    }

    #[test]
    fn what_counts_is_what_is_inserted() {
        let check = |old: &str, new: &str, count: usize| assert_eq!(inserted(old, new), count, "{old} {new}");
        check("", "灯塔", 2);
        check("灯塔看守人", "灯塔看守人，会唱歌", 4);
        check("I hum softly.", "I hum.", 0);
        check("abc", "abc", 0);
        check("a b", "a, b", 1);
        check("👩‍👩‍👧", "👩‍👩‍👧!", 1);
    }

    proptest! {
        #[test]
        fn it_is_never_more_than_the_new_text_nor_less_than_what_it_grew_by(old in ".{0,60}", new in ".{0,60}") {
            let (count, before, after) = (inserted(&old, &new), old.chars().count(), new.chars().count());
            prop_assert!(count <= after && count >= after.saturating_sub(before));
            prop_assert_eq!(inserted(&old, &old), 0);
        }
    }
}
