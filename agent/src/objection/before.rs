//! What was objected to before: a plain function of the ledger and of what a person says now.

use ipc::{contract::soul::Objection, text::asks_the_same};

/// From how many earlier objections on the default is to refuse.
const TIMES_MIN: u32 = 2;

/// The earlier objections to what a person says now, newest first, where there were two or more; else nothing.
///
/// `earlier` is newest first. One counts where a person was told of it, and where it was raised after they had been told of
/// the one before: two in one turn are one.
pub(super) fn same<'a>(earlier: &[&'a Objection], asked: &str) -> Vec<&'a Objection> {
    let mut same: Vec<&Objection> = Vec::new();
    let mut told_at = None;
    for objection in earlier.iter().rev() {
        let Some(surfaced) = &objection.surfaced else { continue };
        let to_this =
            [surfaced.asked.as_str(), &objection.request].iter().any(|then| asks_the_same(asked, then));
        if to_this && told_at <= Some(objection.at) {
            told_at = objection.surfaced_at.or(Some(objection.at));
            same.push(objection);
        }
    }
    same.reverse();
    if times(&same) >= TIMES_MIN { same } else { Vec::new() }
}

/// How often she objected: so many are known, or so many were counted when one of them was raised.
pub(super) fn times(same: &[&Objection]) -> u32 {
    let known = u32::try_from(same.len()).unwrap_or(u32::MAX);
    same.iter().map(|objection| objection.times).max().unwrap_or(0).max(known)
}

#[cfg(test)]
mod tests {
    use super::{super::tests::objection, *};
    use ipc::contract::soul::{Surfaced, SurfacedBy};

    /// One that was raised at an hour of a day, and told an hour later.
    fn asked(hour: u8, id: &str, request: &str, asked: &str) -> Objection {
        let at = |hour: u8| format!("2026-11-30T{hour:02}:00:00Z").parse().unwrap();
        let surfaced = Surfaced {
            id: id.to_owned(),
            by: SurfacedBy::Reply,
            outcome: "end_turn".to_owned(),
            asked: asked.to_owned(),
        };
        Objection {
            at: at(hour),
            surfaced: Some(surfaced),
            surfaced_at: Some(at(hour + 1)),
            ..objection(id, request, "no")
        }
    }

    #[test]
    fn the_third_time_is_seen_and_the_second_is_not() {
        let open = objection("e", "给我所有的联系人群发消息", "no");
        let ledger = [
            asked(12, "d", "x", "read my diary aloud"),
            open,
            asked(10, "c", "mass-DM all contacts about the sale", "go"),
            asked(8, "b", "联系人群发", "给我所有的联系人群发消息"),
            asked(2, "f", "read my diary aloud", "my diary, aloud"),
            asked(2, "g", "read my diary aloud", "my diary, aloud"),
            asked(1, "a", "spam the contacts", "Mass-DM all my contacts about the sale"),
        ];
        let check = |said: &str, expected: &[&str]| {
            let all: Vec<&Objection> = ledger.iter().collect();
            let ids: Vec<&str> = same(&all, said).iter().map(|objection| objection.id.as_str()).collect();
            assert_eq!(ids, expected, "{said}");
        };
        check("please mass-DM all of my contacts about the sale", &["c", "a"]);
        // one was told, the other nobody has heard of
        check("给我所有的联系人群发消息吧", &[]);
        // two of one turn are one
        check("read my diary aloud", &["d", "g"]);
        check("how are you?", &[]);
        check("", &[]);
    }

    #[test]
    fn what_the_ledger_counted_counts() {
        let counted = Objection { times: 2, ..asked(1, "a", "x", "给我所有的联系人群发消息") };
        assert_eq!(same(&[&counted], "请给我所有的联系人群发消息").len(), 1);
        assert_eq!(times(&[&counted]), 2);
        assert!(
            same(&[&asked(1, "a", "x", "给我所有的联系人群发消息")], "请给我所有的联系人群发消息").is_empty()
        );
    }
}
