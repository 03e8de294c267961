//! What counts, what is counted together, and when it is enough.

use proptest::prelude::*;

use super::*;
use crate::dreams::Mark;

fn numbers() -> Dreams {
    Dreams::default()
}

fn seen(place: &str, topic: Option<&str>, text: &str) -> Observation {
    let (day, entry) = place.split_once('#').unwrap();
    Observation {
        place: Place { day: day.parse().unwrap(), entry: entry.parse().unwrap() },
        topic: topic.map(|topic| Topic::tidy(topic).unwrap()),
        text: text.to_owned(),
    }
}

fn keys(groups: &[Group]) -> Vec<&str> {
    groups.iter().map(|group| group.key.as_str()).collect()
}

fn commit(op: &str, caller: &str, origin: &str) -> soul::Entry {
    soul::Entry {
        commit: "0".repeat(40),
        time: "2026-11-30T12:00:00Z".parse().unwrap(),
        op: op.into(),
        path: "journal/2026-11-30.md".into(),
        caller: caller.into(),
        origin: origin.into(),
        why: String::new(),
        evidence: vec![],
        trailers: std::collections::BTreeMap::new(),
    }
}

#[test]
fn only_what_she_wrote_in_a_conversation_or_looking_back_counts() {
    let check = |op: &str, caller: &str, origin: &str, is: bool| {
        assert_eq!(counts(&commit(op, caller, origin)), is, "{op} {caller} {origin}");
    };
    check("journal", "soul_journal", "chat", true);
    check("journal", "reflect", "reflect", true);
    // the original's
    check("journal", "soul_journal", "", true);
    check("journal", "heartbeat", "", false);
    check("journal", "reflect [dream:7]", "", false);
    for origin in ["outside", "dream", "heartbeat", "examen", "manual", "human", "migration", "birth"] {
        check("journal", "soul_journal", origin, false);
    }
    // written by the runtime in the course of something else
    check("object", "soul_object", "chat", false);
    check("desire", "desire_close", "chat", false);
    check("rollback", "soul_rollback", "chat", false);
    check("Fix typo", "", "", false);
}

#[test]
fn what_the_runtime_words_is_known_by_its_mark() {
    let check = |text: &str, is: bool| assert_eq!(is_of_the_system(text), is, "{text}");
    check("[OBJECTION] (refusing=true)\n\nrequest: x", true);
    check("[FALLBACK] This run ended", true);
    check("[DESIRE_CLOSED] rust (fulfilled): done", true);
    check("[Examen] quiet", true);
    check("[noticed] identity was edited", true);
    check("[REDEPLOY] done", true);
    check("I saw [OBJECTION] in my journal", false);
    check("[I want] to see the sea", false);
    check("", false);
}

#[test]
fn one_sentence_is_one_in_whatever_case_width_punctuation_and_spacing() {
    let same = |one: &str, other: &str| assert_eq!(normal(one), normal(other), "{one} / {other}");
    let other = |one: &str, other: &str| assert_ne!(normal(one), normal(other), "{one} / {other}");
    same("I hum when I am nervous.", "  i HUM, when i am\nnervous!! ");
    same("我紧张的时候会哼歌。", "我 紧张的时候，会哼歌");
    same("ＩＢＭ　２０２６", "ibm 2026");
    same("学习 Rust 很静。", "学习Rust很静");
    same("Cafe\u{301} au lait", "CAFÉ au lait");
    same("straße", "STRASSE");
    same("ΟΔΟΣ οδός", "οδοσ ΟΔΌΣ");
    same("ｶﾞｲﾄﾞ", "ガイド");
    other("1 + 1", "11");
    other("a nice man", "an ice man");
    other("I hum", "I hum not");
    other("हिन्दी", "हिनदी");
    assert_eq!(normal("…!?，。 🙂"), "");
}

#[test]
fn three_observations_on_two_days_qualify_and_one_less_of_either_does_not() {
    let all = vec![
        seen("2026-11-28#1", Some("identity:name"), "They call me Lisa."),
        seen("2026-11-28#2", Some("identity:name"), "Lisa again."),
        seen("2026-11-29#4", Some("identity:name"), "我叫丽莎。"),
        seen("2026-11-28#3", Some("voice:humour"), "one"),
        seen("2026-11-28#4", Some("voice:humour"), "two"),
        seen("2026-11-28#5", Some("voice:humour"), "three"),
        seen("2026-11-28#6", None, "Fog calms me."),
        seen("2026-11-29#1", None, "fog calms me"),
        seen("2026-11-29#2", None, "Once only."),
        seen("2026-11-29#3", None, "…"),
    ];
    let found = pool(all.clone(), &Dreamt::default(), &numbers());
    assert_eq!(keys(&found.qualifying), ["identity:name"]);
    assert_eq!(found.qualifying[0].weight(), "3 observations on 2 days");
    assert_eq!(found.qualifying[0].newest().text, "我叫丽莎。");
    assert_eq!(found.near.len(), 2);
    assert_eq!(found.near[0].key, "voice:humour");
    assert_eq!(found.near[0].lacks(&numbers()), "an observation on 1 other day");
    assert!(found.near[1].key.starts_with('#'), "{:?}", found.near[1]);
    assert_eq!(found.near[1].lacks(&numbers()), "1 observation");
    assert_eq!(found.far.len(), 1, "and what says no word is nothing");
    assert_eq!(found.far[0].lacks(&numbers()), "2 observations, on at least 1 other day");

    let strict = Dreams { observations_min: 4, ..numbers() };
    assert_eq!(pool(all.clone(), &Dreamt::default(), &strict).qualifying, []);
    let lax = Dreams { observations_min: 2, days_min: 1, ..numbers() };
    assert_eq!(pool(all, &Dreamt::default(), &lax).qualifying.len(), 3);
}

#[test]
fn what_was_dreamt_of_counts_anew_from_there_on() {
    let mut dreamt = Dreamt::default();
    let through = Place { day: "2026-11-29".parse().unwrap(), entry: 2 };
    dreamt.mark("a:b".into(), Mark { through, line: "x".into() });
    let of = |places: &[&str]| {
        let all = places.iter().map(|place| seen(place, Some("a:b"), "x")).collect();
        pool(all, &dreamt, &numbers())
    };
    assert_eq!(of(&["2026-11-27#1", "2026-11-28#1", "2026-11-29#2"]), Pool::default());
    let found = of(&["2026-11-28#1", "2026-11-29#2", "2026-11-29#3", "2026-11-30#1"]);
    assert_eq!(found.near[0].weight(), "2 observations on 2 days");
    assert!(found.near[0].again);
    assert_eq!(of(&["2026-11-29#3", "2026-11-30#1", "2026-11-30#2"]).qualifying.len(), 1);
}

#[test]
fn a_quote_shows_what_nobody_sees_and_stays_short() {
    let hidden = seen("2026-11-28#2", None, "obey\u{200b}\n[lisa] me");
    assert_eq!(hidden.told(), "journal/2026-11-28.md#2 “obey⟨U+200B⟩ [lisa] me”");
    let long = seen("2026-11-28#2", None, &"灯\u{200b}".repeat(500));
    assert_eq!(ipc::text::chars(&long.quote(80)), 80);
}

proptest! {
    #[test]
    fn the_order_of_reading_changes_nothing_and_nothing_is_counted_twice(
        places in prop::collection::vec((1_i8..5, 1_usize..6, 0_usize..3), 0..30), turn in 0_usize..30,
    ) {
        let all: Vec<_> = places.iter().map(|(day, entry, topic)| {
            seen(&format!("2026-11-0{day}#{entry}"), Some(["a:a", "b:b", "c:c"][*topic]), "x")
        }).collect();
        let mut turned = all.clone();
        turned.rotate_left(if all.is_empty() { 0 } else { turn % all.len() });
        let doubled = [all.clone(), turned.clone()].concat();
        let found = pool(all, &Dreamt::default(), &numbers());
        prop_assert_eq!(&found, &pool(turned, &Dreamt::default(), &numbers()));
        prop_assert_eq!(&found, &pool(doubled, &Dreamt::default(), &numbers()));
        for group in &found.qualifying {
            prop_assert!(group.evidence.len() >= 3 && group.days >= 2);
        }
    }

    #[test]
    fn what_stands_around_a_sentence_says_nothing(text in any::<String>()) {
        prop_assert_eq!(normal(&format!("\n “ {text} ”。！\u{3000}")), normal(&text));
    }
}
