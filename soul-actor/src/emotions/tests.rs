//! What she feels: how it fades, adds up and is written, and what is refused.

use super::*;
use crate::members::any_json;
use proptest::prelude::*;

const NOW: &str = "2026-11-30T12:00:00.000Z";

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// So many hours after [`NOW`].
fn after(hours: i64) -> Timestamp {
    at(NOW) + jiff::SignedDuration::from_hours(hours)
}

fn change(emotion: &str, delta: f64, trigger: &str) -> Feel {
    Feel { emotion: emotion.into(), delta, trigger: trigger.into(), decay: None }
}

fn felt(old: &str, emotion: &str, delta: f64, now: Timestamp) -> (String, Value) {
    let felt = feel(Some(old.as_bytes()), &change(emotion, delta, "I read"), now).unwrap();
    let text = String::from_utf8(felt.bytes).unwrap();
    let value = serde_json::from_str(&text).unwrap();
    (text, value)
}

fn file(value: f64, rate: Option<f64>) -> String {
    let decay = rate.map_or_else(|| json!({}), |rate| json!({"awe": rate}));
    json!({"values": {"awe": value}, "decay": decay, "events": [], "updatedAt": NOW}).to_string()
}

/// What `awe` has become after so many hours.
fn faded(value: f64, rate: Option<f64>, hours: i64) -> f64 {
    Emotions::read(file(value, rate).as_bytes()).unwrap().faded(after(hours))[0].1
}

fn near(a: f64, b: f64) {
    assert!((a - b).abs() < 1e-9, "{a} is not {b}");
}

#[test]
fn e1_no_time_changes_nothing() {
    near(faded(0.7, Some(0.2), 0), 0.7);
}

#[test]
fn e2_e3_e4_a_value_fades_by_its_rate_or_by_a_tenth() {
    near(faded(0.8, Some(0.3), 48), 0.8 * (-0.6_f64).exp());
    let halved = (std::f64::consts::LN_2 / 0.5 * 24.0 * 3600.0).round();
    let seconds = jiff::SignedDuration::try_from_secs_f64(halved).unwrap();
    let emotions = Emotions::read(file(0.8, Some(0.5)).as_bytes()).unwrap();
    assert!((emotions.faded(at(NOW) + seconds)[0].1 - 0.4).abs() < 1e-5);
    near(faded(0.8, None, 24), 0.8 * (-0.1_f64).exp());
}

#[test]
fn e5_what_is_negative_rises_towards_nothing() {
    let value = faded(-0.8, Some(0.5), 24);
    assert!(value > -0.8 && value < 0.0, "{value}");
}

#[test]
fn e6_failure_5_events_and_rates_outlive_the_fading() {
    let (once, _) = felt(&file(0.8, Some(0.25)), "awe", 0.1, after(1));
    let (_, twice) = felt(&once, "curiosity", 0.1, after(100));
    assert_eq!(twice["events"].as_array().unwrap().len(), 2);
    assert_eq!((&twice["decay"], &twice["events"][0]["emotion"]), (&json!({"awe": 0.25}), &json!("awe")));
}

#[test]
fn e7_failure_4_a_change_is_added_to_what_is_left_and_not_to_what_was() {
    let (_, read) = felt(&file(0.8, Some(0.5)), "awe", 0.1, after(24));
    near(read["values"]["awe"].as_f64().unwrap(), 0.8 * (-0.5_f64).exp() + 0.1);
    assert_eq!(read["updatedAt"], json!("2026-12-01T12:00:00.000Z"));
}

#[test]
fn what_others_feel_fades_with_it_and_all_of_them_stay_within_bounds() {
    let (_, read) = felt(&file(0.9, Some(0.5)), "pride", -1.0, after(24));
    near(read["values"]["awe"].as_f64().unwrap(), 0.9 * (-0.5_f64).exp());
    assert_eq!(read["values"]["pride"], json!(-1));
    let (_, read) = felt(&file(0.9, Some(0.0)), "awe", 0.5, after(0));
    assert_eq!(
        (&read["values"]["awe"], &read["events"][0]["delta"]),
        (&json!(1), &json!(0.5)),
        "as it was asked"
    );
    let (_, wild) = felt(&file(50.0, Some(0.0)), "awe", -0.5, after(0));
    assert_eq!(wild["values"]["awe"], json!(0.5));
}

#[test]
fn a_clock_that_lies_makes_nothing_stronger() {
    near(faded(0.5, Some(0.5), -1000), 0.5);
    near(faded(0.5, Some(-3.0), 1000), 0.5);
    let (_, read) = felt(&file(0.5, Some(0.5)), "awe", 0.1, after(-1000));
    near(read["values"]["awe"].as_f64().unwrap(), 0.6);
    let unstamped = r#"{"values": {"awe": 0.5}}"#;
    near(Emotions::read(unstamped.as_bytes()).unwrap().faded(after(1000))[0].1, 0.5);
}

#[test]
fn failure_12_a_file_that_is_missing_begins_with_the_defaults_of_now() {
    let felt = feel(None, &change("curiosity", 0.1, "I read"), at(NOW)).unwrap();
    near(felt.before, 0.6);
    near(felt.after, 0.7);
    let text = String::from_utf8(felt.bytes).unwrap();
    let expected = String::from_utf8(defaults(at(NOW))).unwrap().replacen("0.6", "0.7", 1).replace(
        "\"events\": []",
        "\"events\": [\n    {\n      \"ts\": \"2026-11-30T12:00:00.000Z\",\n      \"emotion\": \"curiosity\",\n      \"delta\": 0.1,\n      \"trigger\": \"I read\"\n    }\n  ]",
    );
    assert_eq!(text, expected, "as JavaScript lays it out");
    assert!(text.starts_with(
        "{\n  \"values\": {\n    \"curiosity\": 0.7,\n    \"contentment\": 0.5,\n    \"weariness\": 0,\n"
    ));
}

#[test]
fn failure_17_unknown_fields_survive_where_they_stand_and_old_files_grow_their_events() {
    let old = "{\n\t\"mood\" : {\"a\": 1.50e1},\n\t\"values\": { \"Awe\": 0.5, \"x y\":1e-1 },\n\t\"decay\": {\"x y\": 0},\n\t\"updatedAt\": \"2026-11-30T12:00:00.000Z\"\n}\n";
    let (text, _) = felt(old, "awe", 0.25, at(NOW));
    assert_eq!(
        text,
        "{\n\t\"mood\" : {\"a\": 1.50e1},\n\t\"values\": { \"Awe\": 0.75, \"x y\":1e-1 },\n\t\"decay\": {\"x y\": 0},\n\t\"updatedAt\": \"2026-11-30T12:00:00.000Z\",\n\t\"events\": [\n\t\t{\n\t\t  \"ts\": \"2026-11-30T12:00:00.000Z\",\n\t\t  \"emotion\": \"Awe\",\n\t\t  \"delta\": 0.25,\n\t\t  \"trigger\": \"I read\"\n\t\t}\n\t]\n}\n"
    );
    let event = r#"{"values":{},"events":[{"ts":"x","by":"somebody","delta":50}]}"#;
    let (text, _) = felt(event, "awe", 0.1, at(NOW));
    assert!(
        text.starts_with(r#"{"values":{"awe":0.1},"events":[{"ts":"x","by":"somebody","delta":50},{"ts":"#),
        "{text}"
    );
    let (_, read) = felt("{}", "awe", 0.1, at(NOW));
    assert_eq!((&read["values"], read["events"].as_array().unwrap().len()), (&json!({"awe": 0.1}), 1));
}

#[test]
fn the_last_fifty_events_are_kept() {
    let mut text = file(0.0, None);
    for n in 0..60_u32 {
        let mut change = change("awe", 0.01, "");
        change.trigger = format!("I counted {n}");
        text = String::from_utf8(feel(Some(text.as_bytes()), &change, at(NOW)).unwrap().bytes).unwrap();
    }
    let read: Value = serde_json::from_str(&text).unwrap();
    let triggers: Vec<_> = read["events"].as_array().unwrap().iter().map(|event| &event["trigger"]).collect();
    assert_eq!(
        (triggers.len(), triggers[0], triggers[49]),
        (50, &json!("I counted 10"), &json!("I counted 59"))
    );
}

#[test]
fn failure_17_a_file_that_cannot_be_read_is_named_and_not_replaced() {
    for broken in [
        "",
        "torn",
        "[]",
        "7",
        r#"{"values":[]}"#,
        r#"{"values":{"awe":"much"}}"#,
        r#"{"events":{}}"#,
        "{\"values\":{\"awe\":0.1}",
    ] {
        let said = feel(Some(broken.as_bytes()), &change("awe", 0.1, "I"), at(NOW)).err().unwrap();
        assert!(said.contains("`emotions.json`") && said.contains("soul_rollback"), "{broken}: {said}");
    }
}

#[test]
fn a_thirty_third_emotion_is_refused_with_the_list() {
    let values: Map<String, Value> = (0..32).map(|n| (format!("e{n}"), json!(0.1))).collect();
    let old = json!({"values": values}).to_string();
    let said = feel(Some(old.as_bytes()), &change("new", 0.1, "I"), at(NOW)).err().unwrap();
    assert!(said.contains("32") && said.contains("`e0`") && said.contains("`e31`"), "{said}");
    assert!(feel(Some(old.as_bytes()), &change("e31", 0.1, "I"), at(NOW)).is_ok());
}

#[test]
fn names_are_words() {
    let check = |given: &str, expected: &str| assert_eq!(name(given).unwrap(), expected);
    check(" Curiosity ", "curiosity");
    check("好奇", "好奇");
    check("quiet joy", "quiet joy");
    check("__proto__", "__proto__");
    check("constructor", "constructor");
    check(&"灯".repeat(40), &"灯".repeat(40));
    let long = "x".repeat(41);
    for wrong in ["", " ", "a\nb", "a\u{0}", "a\u{200b}b", "\u{202e}a", "\u{3164}", "a\tb", &long] {
        let said = name(wrong).unwrap_err();
        assert!(said.contains("is no name of an emotion"), "{wrong:?}: {said}");
    }
    for (given, other) in [("__proto__", "constructor"), ("constructor", "__proto__")] {
        let (text, read) = felt(&file(0.1, None), given, 0.2, at(NOW));
        assert_eq!((&read["values"][given], read["values"].get(other)), (&json!(0.2), None), "{text}");
    }
}

#[test]
fn a_trigger_speaks_in_the_first_person() {
    for hers in [
        "I read it twice",
        "it struck me",
        "She kept MY letter",
        "I\u{2019}m home",
        "we laughed",
        "我读懂了她的信",
        "她信任我",
        "咱们一起笑了",
        "私は読んだ",
        "Я прочитал",
    ] {
        assert_eq!(trigger(hers.to_owned()).as_deref(), Ok(hers));
    }
    for nobodys in ["the test passed", "mining is hard", "用户说了谢谢", "imminent", "", "42 — !", "她很高兴"]
    {
        let said = trigger(nobodys.to_owned()).unwrap_err();
        assert!(said.contains("first person") && said.contains("我读懂了她的信"), "{nobodys}: {said}");
    }
}

#[test]
fn a_new_rate_is_kept_beside_the_others() {
    let change = Feel { decay: Some(0.0), ..change("pride", 0.5, "I did it") };
    let felt = feel(Some(file(0.1, Some(0.2)).as_bytes()), &change, at(NOW)).unwrap();
    let read: Value = serde_json::from_slice(&felt.bytes).unwrap();
    assert_eq!(read["decay"], json!({"awe": 0.2, "pride": 0}));
    near(Emotions::read(&felt.bytes).unwrap().faded(after(9999))[1].1, 0.5);
}

#[test]
fn su2_a_prompt_shows_the_stored_values_the_strongest_first_and_no_whisper() {
    let old = r#"{"values": {"b": -0.5, "a": 0.5, "c": 0.9, "d": 0.049, "e": -0.05}, "updatedAt": "1999-01-01T00:00:00Z"}"#;
    let shown = Emotions::read(old.as_bytes()).unwrap().shown();
    let shown: Vec<_> = shown.iter().map(|feeling| (feeling.name.as_str(), feeling.value)).collect();
    assert_eq!(shown, [("c", 0.9), ("a", 0.5), ("b", -0.5), ("e", -0.05)]);
}

#[test]
fn she_reads_the_values_of_now_and_the_causes() {
    let (text, _) = felt(&file(0.8, Some(0.5)), "awe", 0.1, at(NOW));
    let told = Emotions::read(text.as_bytes()).unwrap().told(after(24));
    assert!(told.contains("█████····· +0.55 awe"), "{told}");
    assert!(told.contains("- 2026-11-30T12:00:00.000Z awe +0.1: I read"), "{told}");
    let nothing = Emotions::default().told(at(NOW));
    assert!(nothing.contains("(nothing yet)") && nothing.contains("(no change yet)"), "{nothing}");
}

proptest! {
    #[test]
    fn whatever_others_keep_survives_and_whatever_she_says_reads_back(
        strangers in prop::collection::vec((any::<String>(), any_json()), 0..5),
        known in prop::collection::vec((any::<String>(), -1.0..1.0_f64), 0..5),
        events in prop::collection::vec(any_json(), 0..4),
        (named, said) in (any::<String>(), any::<String>()),
        delta in -1.0..1.0_f64,
        pretty in any::<bool>(),
    ) {
        let ours = ["values", "decay", "events", "updatedAt"];
        let mut old: Map<String, Value> =
            strangers.into_iter().filter(|(name, _)| !ours.contains(&name.as_str())).collect();
        let strangers = old.clone();
        let values: Map<String, Value> = known.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        old.insert("values".into(), values.clone().into());
        old.insert("events".into(), events.clone().into());
        old.insert("updatedAt".into(), NOW.into());
        let old = Value::Object(old);
        let text = if pretty { format!("{old:#}") } else { old.to_string() };
        let name = name(&named).unwrap_or_else(|_| "awe".to_owned());
        let felt = feel(Some(text.as_bytes()), &change(&name, delta, &said), at(NOW)).unwrap();
        let read: Value = serde_json::from_slice(&felt.bytes).unwrap();
        for (name, value) in &strangers {
            prop_assert_eq!(&read[name.as_str()], value);
        }
        let order = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        prop_assert_eq!(order(&read), order(&old));
        let all = read["events"].as_array().unwrap();
        prop_assert_eq!(&all[..events.len()], &events[..]);
        prop_assert_eq!(all.len(), events.len() + 1);
        let last = &all[events.len()];
        prop_assert_eq!((&last["trigger"], &last["emotion"]), (&json!(said), &json!(felt.emotion)));
        for (name, value) in values.iter().filter(|(name, _)| **name != felt.emotion) {
            prop_assert!((read["values"][name.as_str()].as_f64().unwrap() - value.as_f64().unwrap()).abs() < 1e-9);
        }
        prop_assert!(felt.after.abs() <= 1.0);
        // a second change of nothing that was there touches the same places alone
        let again = feel(Some(&felt.bytes), &change(&name, delta, &said), at(NOW)).unwrap();
        prop_assert!(Emotions::read(&again.bytes).is_ok());
    }
}
