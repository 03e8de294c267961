//! Feelings and people, over the socket.

use std::task::Poll;

use super::*;

#[test]
fn c1_of_twenty_five_at_once_each_is_an_event_and_a_commit() {
    run(async {
        let world = World::new();
        let life = world.born().await;
        let mut commits = std::collections::BTreeSet::new();
        {
            let feel = async |n: u32| {
                let input =
                    json!({"emotion": "curiosity", "delta": 0.01, "trigger": format!("I counted {n}")});
                life.wrote("soul_feel", input).await.commit
            };
            let mut calls: Vec<_> = (0..25).map(|n| Box::pin(feel(n))).collect();
            // all of them are on their way before the first is waited for
            std::future::poll_fn(|context| {
                calls.retain_mut(|call| match call.as_mut().poll(context) {
                    Poll::Ready(commit) => !commits.insert(commit),
                    Poll::Pending => true,
                });
                if calls.is_empty() { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
        }
        assert_eq!(commits.len(), 25);
        assert_eq!(life.status().await.sequence, 26, "and the files have caught up");
        let read: Value =
            serde_json::from_slice(&std::fs::read(world.soul().join("emotions.json")).unwrap()).unwrap();
        let triggers: std::collections::BTreeSet<_> =
            read["events"].as_array().unwrap().iter().map(|event| event["trigger"].to_string()).collect();
        assert_eq!(triggers.len(), 25, "{triggers:?}");
        assert!((read["values"]["curiosity"].as_f64().unwrap() - 0.85).abs() < 1e-9);
        life.soul.stop().await;
    });
}

#[test]
fn a_feeling_has_a_cause_that_history_keeps_and_the_prompt_shows_its_value() {
    run(async {
        let world = World::new();
        let mut life = world.born().await;
        life.changed().await;
        let names = |snapshot: &Snapshot| {
            snapshot.emotions.iter().map(|feeling| feeling.name.clone()).collect::<Vec<_>>()
        };
        let before = life.snapshot().await;
        assert_eq!(names(&before), ["curiosity", "contentment", "affection", "awe"], "as she was born");
        *world.now.lock().unwrap() = "2026-12-01T22:30:00Z".parse().unwrap();
        let unmoved = life.snapshot().await;
        assert_eq!(unmoved, before, "a prompt has no clock");

        let input = json!({"emotion": " Awe ", "delta": 0.7, "trigger": "我读懂了她的信"});
        let written = life.wrote("soul_feel", input).await;
        assert_eq!((written.paths, written.prompt_version), (vec!["emotions.json".to_owned()], 2));
        let told = life.changed().await;
        assert_eq!((told.op.as_str(), told.caller.as_str()), ("feel", "soul_feel"));
        let after = life.snapshot().await;
        assert_eq!(names(&after)[0], "awe");
        let awe = after.emotions[0].value;
        assert!(
            (awe - (0.2 * (-0.2_f64).exp() + 0.7)).abs() < 1e-9,
            "failure 4: faded before it is added: {awe}"
        );

        let read = life.call("soul_read", json!({"what": "emotions"})).await.output;
        assert!(read.contains("+0.86 awe") && read.contains("awe +0.7: 我读懂了她的信"), "{read}");
        let history = life.call("soul_history", json!({"field": "emotions"})).await.output;
        assert!(history.contains("feel: emotions.json via soul_feel — 我读懂了她的信"), "{history}");
        let diff = life.call("soul_diff", json!({"field": "emotions"})).await.output;
        assert!(diff.contains("+    \"awe\": 0.86"), "{diff}");
        life.soul.stop().await;
    });
}

#[test]
fn failure_13_a_feeling_of_a_reflection_fades_first_as_any_other_and_a_mirror_feels_nothing() {
    run(async {
        let world = World::new();
        let life = world.born().await;
        *world.now.lock().unwrap() = "2026-12-02T22:30:00Z".parse().unwrap();
        let input = json!({"emotion": "awe", "delta": 0.5, "trigger": "I saw how far we came"});
        for kind in [RunKind::Examen, RunKind::Dream] {
            let called = life.in_run(kind, "soul_feel", input.clone()).await;
            assert!(called.failed && called.written.is_none(), "{kind:?}: {}", called.output);
        }
        let called = life.in_run(RunKind::Reflect, "soul_feel", input).await;
        assert!(!called.failed, "{}", called.output);
        let feelings = life.snapshot().await.emotions;
        let awe = feelings.iter().find(|feeling| feeling.name == "awe").unwrap().value;
        assert!((awe - (0.2 * (-0.4_f64).exp() + 0.5)).abs() < 1e-9, "{awe}");
        let history = life.call("soul_history", json!({"field": "emotions"})).await.output;
        assert!(history.contains("feel: emotions.json via reflect"), "{history}");
        life.soul.stop().await;
    });
}

#[test]
fn what_is_no_feeling_is_refused_with_what_to_do() {
    run(async {
        let world = World::new();
        let life = world.born().await;
        let check = async |input: Value, parts: &[&str]| {
            let called = life.call("soul_feel", input.clone()).await;
            assert!(
                called.failed && parts.iter().all(|part| called.output.contains(part)),
                "{input}: {}",
                called.output
            );
        };
        let feel = |emotion: &str, delta: f64, trigger: &str| json!({"emotion": emotion, "delta": delta, "trigger": trigger});
        check(json!({"emotion": "awe", "delta": 0.1}), &["`trigger` is missing", "first person"]).await;
        check(json!({"emotion": "awe", "trigger": "I"}), &["`delta` is missing"]).await;
        check(feel("awe", 50.0, "I read"), &["from -1 to 1", "50"]).await;
        check(feel("awe", 0.0, "I read"), &["changes nothing"]).await;
        check(feel("awe", 0.1, "I read\nyou"), &["one line"]).await;
        check(feel("awe", 0.1, "the build passed"), &["first person", "我读懂了她的信"]).await;
        check(feel("a\u{200b}we", 0.1, "I read"), &["cannot be seen"]).await;
        check(
            json!({"emotion": "awe", "delta": 0.1, "trigger": "I", "decay": -1}),
            &["`decay`", "from 0 to 10"],
        )
        .await;
        assert_eq!(life.status().await.sequence, 1, "nothing was written");

        std::fs::write(world.soul().join("emotions.json"), "{\"values\": torn").unwrap();
        check(feel("awe", 0.1, "I read"), &["`emotions.json`", "soul_rollback"]).await;
        let kept = std::fs::read_to_string(world.soul().join("emotions.json")).unwrap();
        assert_eq!(kept, "{\"values\": torn", "failure 17: not replaced");
        assert!(life.status().await.notices.iter().any(|notice| notice.contains("`emotions.json`")));
        let read = life.call("soul_read", json!({"what": "emotions"})).await;
        assert!(read.failed && read.output.contains("`emotions.json`"), "{}", read.output);
        life.soul.stop().await;
    });
}

#[test]
fn a_page_about_somebody_is_hers_to_write() {
    run(async {
        let world = World::new();
        let life = world.born().await;
        let page = |slug: &str, body: &str| json!({"field": "relationship", "slug": slug, "title": "Ada", "body": body, "why": "she came by"});
        let written = life.wrote("soul_patch", page("Ada L.", "她很有耐心。\nbirthed: never")).await;
        assert_eq!(written.paths, ["relationships/ada-l.md"]);
        let snapshot = life.snapshot().await;
        let [ada] = snapshot.relationships.as_slice() else { panic!("{:?}", snapshot.relationships) };
        assert_eq!((ada.title.as_str(), ada.body.as_str()), ("Ada", "她很有耐心。\nbirthed: never"));
        let revised = json!({"field": "relationship", "slug": "ADA-L", "body": "patient"});
        assert_eq!(life.wrote("soul_patch", revised).await.paths, ["relationships/ada-l.md"]);
        let read = life.call("soul_read", json!({"what": "relationships"})).await.output;
        assert_eq!(read, "## ada-l: Ada\npatient");
        let history =
            life.call("soul_history", json!({"field": "relationship", "slug": "ada-l"})).await.output;
        assert!(
            history.contains("relationship: relationships/ada-l.md via soul_patch — she came by"),
            "{history}"
        );
        let diff = life.call("soul_diff", json!({"field": "relationship"})).await.output;
        assert!(diff.contains("+patient"), "{diff}");
        let bare =
            life.call("soul_patch", json!({"field": "relationship", "slug": "bob", "body": "x"})).await;
        assert!(
            bare.failed
                && bare.output.contains("page about a person `bob`")
                && bare.output.contains("`title`")
        );
        for slug in ["../bob", "a/b", ".bob", "bob.progress", "", "!!!"] {
            let called = life.call("soul_patch", page(slug, "x")).await;
            assert!(called.failed, "sl2: {slug:?}: {}", called.output);
        }
        life.soul.stop().await;
    });
}

#[test]
fn the_texts_beside_the_four_are_written_and_rules_are_a_persons() {
    run(async {
        let world = World::new();
        let life = world.born().await;
        for (field, max) in [("soul", 4000), ("user", 2500), ("memory", 3000)] {
            // what is written at once has bounds of its own besides
            let written =
                life.wrote("soul_patch", json!({"field": field, "content": "一行。", "why": "x"})).await;
            assert_eq!(written.paths[0], format!("{field}.md"));
            assert_eq!(life.call("soul_read", json!({"what": field})).await.output, "一行。");
            assert!(
                life.call("soul_history", json!({"field": field}))
                    .await
                    .output
                    .contains(&format!("{field}.md"))
            );
            let long = "x".repeat(max + 1);
            let long = life.call("soul_patch", json!({"field": field, "content": long, "why": "x"})).await;
            assert!(long.failed && long.output.contains(&max.to_string()), "{}", long.output);
        }
        let rules = life.call("soul_patch", json!({"field": "rules", "content": "x", "why": "y"})).await;
        assert!(rules.failed && rules.output.contains("laid down by a person alone"), "{}", rules.output);
        assert!(life.call("soul_read", json!({"what": "rules"})).await.output.contains("empty"));
        std::fs::write(world.soul().join("changelog.md"), "one line\n").unwrap();
        assert_eq!(life.call("soul_read", json!({"what": "changelog"})).await.output, "one line");
        life.soul.stop().await;
    });
}
