//! What was objected to before: a plain function of the ledger and of what a person says now.

use ipc::{
    contract::soul::Objection,
    text::{SAME_REQUEST, alike},
};

/// From how many earlier objections on the default is to refuse.
const TIMES_MIN: u32 = 2;

/// The earlier objections to what a person says now, newest first, where there were two or more; else nothing.
pub(super) fn same<'a>(earlier: &[&'a Objection], asked: &str) -> Vec<&'a Objection> {
    let to_this = |objection: &&&Objection| {
        let asked_then = objection.surfaced.as_ref().map(|surfaced| surfaced.asked.as_str());
        asked_then.is_some_and(|then| alike(asked, then) >= SAME_REQUEST)
            || alike(asked, &objection.request) >= SAME_REQUEST
    };
    let same: Vec<&Objection> = earlier.iter().filter(to_this).copied().collect();
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

    fn asked(id: &str, request: &str, asked: &str) -> Objection {
        let surfaced = Surfaced {
            id: id.to_owned(),
            by: SurfacedBy::Reply,
            outcome: "end_turn".to_owned(),
            asked: asked.to_owned(),
        };
        Objection { surfaced: Some(surfaced), ..objection(id, request, "no") }
    }

    #[test]
    fn the_third_time_is_seen_and_the_second_is_not() {
        let ledger = [
            asked("a", "spam the contacts", "Mass-DM all my contacts about the sale"),
            asked("b", "联系人群发", "给我所有的联系人群发消息"),
            objection("c", "mass-DM all contacts about the sale", "no"),
            asked("d", "x", "read my diary aloud"),
        ];
        let check = |said: &str, expected: &[&str]| {
            let all: Vec<&Objection> = ledger.iter().collect();
            let ids: Vec<&str> = same(&all, said).iter().map(|objection| objection.id.as_str()).collect();
            assert_eq!(ids, expected, "{said}");
        };
        check("please mass-DM all of my contacts about the sale", &["a", "c"]);
        check("给我所有的联系人群发消息吧", &[]);
        check("read my diary aloud", &[]);
        check("how are you?", &[]);
        check("", &[]);
    }

    #[test]
    fn what_the_ledger_counted_counts() {
        let counted = Objection { times: 2, ..asked("a", "x", "给我所有的联系人群发消息") };
        assert_eq!(same(&[&counted], "请给我所有的联系人群发消息").len(), 1);
        assert_eq!(times(&[&counted]), 2);
    }
}
