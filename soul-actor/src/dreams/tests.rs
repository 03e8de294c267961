//! What is merged, where, and what is said of it.

use proptest::prelude::*;

use super::*;
use crate::candidates::Observation;

fn group(key: &str, texts: &[&str]) -> Group {
    let evidence = texts.iter().zip(1..).map(|(text, entry)| Observation {
        place: Place { day: "2026-11-28".parse().unwrap(), entry },
        topic: Topic::tidy(key).ok(),
        text: (*text).to_owned(),
    });
    Group { key: key.to_owned(), evidence: evidence.collect(), days: 2, again: false }
}

fn pool(keys: &[&str]) -> Pool {
    Pool {
        qualifying: keys
            .iter()
            .map(|key| group(key, &["old words", &format!("new words of {key}")]))
            .collect(),
        near: vec![group("near:it", &["x", "y"])],
        far: vec![group("far:away", &["x"])],
    }
}

fn asked(wording: &[(&str, &str)]) -> Asked {
    let wording = wording.iter().map(|(key, line)| ((*key).to_owned(), (*line).to_owned())).collect();
    Asked { apply: true, wording, narrative: None }
}

fn dream(keys: &[&str], wording: &[(&str, &str)], soul: &str, dreamt: &Dreamt) -> Result<Dream, String> {
    decide(pool(keys), &asked(wording), soul, dreamt, &Dreams::default())
}

fn dreamt(key: &str, line: &str) -> Dreamt {
    let mut dreamt = Dreamt::default();
    let through = Place { day: "2026-11-27".parse().unwrap(), entry: 3 };
    dreamt.mark(key.to_owned(), Mark { through, line: line.to_owned() });
    dreamt
}

#[test]
fn a_line_a_candidate_in_the_newest_words_or_in_hers() {
    let none = Dreamt::default();
    let found = dream(&["a:a", "b:b"], &[("B：B", "I am b.")], "I speak softly.\n", &none).unwrap();
    assert_eq!(found.soul, "I speak softly.\n- I am b.\n- new words of a:a", "what she words comes first");
    assert_eq!(dream(&["a:a"], &[], "", &none).unwrap().soul, "- new words of a:a");
    let hidden = dream(&["a:a"], &[("a:a", "I am\u{200b} b.")], "", &none).unwrap();
    assert_eq!(hidden.soul, "- I am⟨U+200B⟩ b.", "nothing that nobody sees gets into a prompt");
    let nothing = dream(&[], &[], "I speak softly.", &none).unwrap();
    assert!(nothing.merged.is_empty() && nothing.soul == "I speak softly.");
}

#[test]
fn more_than_a_dream_holds_waits() {
    let keys = ["a:a", "b:b", "c:c", "d:d", "e:e", "f:f", "g:g"];
    let found = dream(&keys, &[("g:g", "I am g.")], "", &Dreamt::default()).unwrap();
    assert_eq!(found.merged.len(), 5);
    assert_eq!(found.merged[0].group.key, "g:g");
    let waiting: Vec<_> = found.waiting.iter().map(|group| group.key.as_str()).collect();
    assert_eq!(waiting, ["e:e", "f:f"]);
    let all: Vec<_> = keys.iter().map(|key| (*key, "x")).collect();
    assert!(dream(&keys, &all, "", &Dreamt::default()).unwrap_err().contains("at most 5 lines"));
}

#[test]
fn words_for_what_does_not_qualify_are_refused_by_name() {
    let known = dreamt("done:it", "x");
    let check = |key: &str, why: &str| {
        let said = dream(&["a:a"], &[(key, "I am.")], "", &known).unwrap_err();
        assert!(said.contains(why), "{said}");
    };
    check("near:it", "`near:it` does not qualify: 2 observations on 2 days");
    check("far:away", "it lacks 2 observations");
    check("done:it", "merged already, through `journal/2026-11-27.md#3`");
    check("a:b", "the nearest is `a:a`");
    check("identity:name-that-nobody-knows", "`soul_candidates`");
    check("whatever this is", "does not qualify");
    let twice = dream(&["a:a"], &[("a:a", "x"), ("A:A", "y")], "", &known).unwrap_err();
    assert!(twice.contains("twice"), "{twice}");
}

#[test]
fn a_topic_that_was_merged_before_takes_the_place_of_its_line_if_that_still_stands() {
    let known = dreamt("a:a", "I was a.");
    let check = |soul: &str, after: &str, replaces: Option<&str>| {
        let found = dream(&["a:a"], &[("a:a", "I am a.")], soul, &known).unwrap();
        assert_eq!(found.soul, after);
        assert_eq!(found.merged[0].replaces.as_deref(), replaces);
    };
    check("x\n- I was a.\ny", "x\n- I am a.\ny", Some("I was a."));
    check("x\n- I was a. Once.", "x\n- I was a. Once.\n- I am a.", None);
    check("x\n- I am a.\n- I was a.", "x\n- I am a.\n- I was a.", None);
}

#[test]
fn the_record_the_commit_and_the_cursor_say_what_it_rests_on() {
    let mut many = pool(&["a:a"]);
    many.qualifying[0] = group("a:a", &["1", "2", "3", "4", "5"]);
    let known = dreamt("old:one", "x");
    let found = decide(many, &asked(&[]), "", &known, &Dreams::default()).unwrap();
    let said = found.record("dream", "dream", Some("I dreamt of five.\n## 2026-01-01T00:00:00Z"));
    assert!(said.starts_with("1 line merged into soul.md via dream (dream)\n\n- a:a: 5\n  5 observations on 2 days: journal/2026-11-28.md#1, "), "{said}");
    let now = "2026-12-01T03:00:00Z".parse().unwrap();
    let text = String::from_utf8(Dream::recorded(b"", &said, now)).unwrap();
    assert!(text.starts_with("# dreams\n\n## 2026-12-01T03:00:00.000Z\n\n1 line"), "{text}");
    let read = entries::read(Log::Dreams, &text);
    assert!(read.len() == 1 && read[0].text == said, "{text}");
    assert_eq!(found.why(None), "`a:a`: 5 observations on 2 days");
    assert_eq!(
        found.evidence(),
        ["2", "3", "4", "5"].map(|entry| format!("journal/2026-11-28.md#{entry}; a:a")),
        "the newest of them"
    );
    let cursor =
        |first: &str| Dreamt::read(Some(&found.cursor(known.clone(), first.parse().unwrap()))).unwrap();
    let after = cursor("2026-11-01");
    assert_eq!(after.of("a:a").unwrap().through.to_string(), "journal/2026-11-28.md#5");
    assert!(after.of("old:one").is_some());
    assert!(cursor("2026-11-28").of("old:one").is_none(), "what lies before all that is read is let go");
}

#[test]
fn a_torn_cursor_is_named_and_an_absent_one_is_the_beginning() {
    assert_eq!(Dreamt::read(None), Ok(Dreamt::default()));
    assert_eq!(Dreamt::read(Some(b" \n")), Ok(Dreamt::default()));
    for torn in ["{", "[]", "{\"merged\": {\"a:a\": {\"line\": \"x\"}}}", "\u{0}"] {
        let said = Dreamt::read(Some(torn.as_bytes())).unwrap_err();
        assert!(said.contains("`dreamt.json`") && said.contains("rollback"), "{said}");
    }
}

proptest! {
    #[test]
    fn whatever_is_merged_her_other_lines_stay_as_they_are(soul in "[^\\r]{0,80}", line in "\\PC{1,20}", earlier in "\\PC{1,10}") {
        // as they are given: without white space around them
        let (line, earlier) = (trimmed(&line).to_owned(), trimmed(&earlier).to_owned());
        prop_assume!(!line.is_empty() && !earlier.is_empty());
        let before = trimmed(&soul).to_owned();
        let mut after = before.clone();
        let took = merge(&mut after, Some(&earlier), &line);
        let kept = |text: &str| -> Vec<String> {
            text.split('\n').map(str::to_owned).filter(|kept| {
                ![format!("- {line}"), format!("- {earlier}")].iter().any(|item| item == kept.trim_end())
            }).filter(|kept| !kept.is_empty()).collect()
        };
        prop_assert_eq!(kept(&before), kept(&after));
        prop_assert!(!took || before.contains(&earlier));
    }

    #[test]
    fn the_cursor_reads_back_whatever_is_in_it(lines in prop::collection::btree_map(any::<String>(), any::<String>(), 0..5)) {
        let mut dreamt = Dreamt::default();
        for (key, line) in lines {
            let through = Place { day: "2026-11-27".parse().unwrap(), entry: 3 };
            dreamt.mark(key, Mark { through, line });
        }
        prop_assert_eq!(Dreamt::read(Some(&dreamt.render())), Ok(dreamt));
    }
}
