//! Desires, over the socket: revised, closed, condensed, and how strong they are.

use super::*;
use ipc::contract::soul::{Desire, Drive};

impl Life {
    async fn drives(&self) -> Vec<Drive> {
        match self.heartbeat.ask(&Request::Drives, PATIENCE).await.unwrap() {
            Reply::Drives(drives) => drives,
            other => panic!("{other:?}"),
        }
    }

    async fn desire(&self, slug: &str) -> Desire {
        let desires = self.snapshot().await.desires;
        desires.into_iter().find(|desire| desire.slug == slug).unwrap_or_else(|| panic!("no desire `{slug}`"))
    }

    async fn text(&self, document: &str) -> String {
        match self.ask(Request::Read { document: document.into() }).await {
            Reply::Document { text, .. } => text,
            other => panic!("{other:?}"),
        }
    }

    pub(super) async fn run_of(&self, kind: RunKind) -> RunToken {
        let client = if kind == RunKind::Reflect { &self.agent } else { &self.heartbeat };
        match client.ask(&Request::OpenRun { kind, task: "session:s1".into() }, PATIENCE).await.unwrap() {
            Reply::RunOpened { run } => run,
            other => panic!("{other:?}"),
        }
    }

    pub(super) async fn in_run(&self, kind: RunKind, tool: &str, input: Value) -> Called {
        let run = self.run_of(kind).await;
        self.call_as(&RequestId::fresh(), Some(run), tool, input).await
    }

    async fn wants(&self, slug: &str, more: Value) {
        let mut input = json!({"field": "desire", "slug": slug, "what": format!("want {slug}"), "why": "静"});
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.wrote("soul_patch", input).await;
    }
}

#[test]
fn dr1_dr2_dr3_dr5_h4_a_desire_is_revised_and_never_made() {
    run(async {
        let world = World::new();
        let life = world.born().await;
        let none = life.call("desire_revise", json!({"slug": "rust", "what": "x"})).await;
        assert!(none.failed && none.output.contains("there is no desire `rust`"), "{}", none.output);
        life.wants("rust", json!({"sources": ["https://a.example"]})).await;
        let near = life.call("desire_revise", json!({"slug": "rusty", "what": "x"})).await;
        assert!(near.failed && near.output.contains("`rust`"), "{}", near.output);
        let nothing = life.call("desire_revise", json!({"slug": "rust", "what": null, "why": ""})).await;
        assert!(nothing.failed && nothing.output.contains("reviewed: true"), "{}", nothing.output);
        let before = life.desire("rust").await;

        *world.now.lock().unwrap() = "2026-12-02T00:00:00Z".parse().unwrap();
        let looked = json!({"slug": "rust", "reviewed": true, "sources": ["HTTPS://A.example/"]});
        life.wrote("desire_revise", looked).await;
        let after = life.desire("rust").await;
        let reviewed = Some("2026-12-02T00:00:00.000Z".to_owned());
        assert_eq!(after, Desire { reviewed, ..before.clone() }, "a look changes nothing else");

        let plan = json!({"slug": "Rust", "actionable": true, "heartbeat_prompt": "读一章", "sources": ["https://b.example"]});
        life.wrote("desire_revise", plan).await;
        let pursued = life.desire("rust").await;
        assert!(pursued.actionable && pursued.heartbeat.as_deref() == Some("读一章"), "dr3");
        assert_eq!(pursued.sources, ["https://a.example", "https://b.example"]);
        assert_eq!((&pursued.born, &pursued.what, &pursued.why), (&before.born, &before.what, &before.why));
        assert_eq!(pursued.updated, "2026-12-02T00:00:00.000Z");
        for (input, part) in [
            (json!({"slug": "rust", "intensity": 2}), "from 0 to 1"),
            (json!({"slug": "rust", "sources": ["file:///etc"]}), "no source"),
            (json!({"slug": "rust", "reviewed": "yes"}), "true or false"),
            (json!({"slug": "../rust", "what": "x"}), "there is no desire"),
            (json!({"slug": "rust.progress", "what": "x"}), "there is no desire"),
        ] {
            let called = life.call("desire_revise", input.clone()).await;
            assert!(called.failed && called.output.contains(part), "dr4: {input}: {}", called.output);
        }
        life.soul.stop().await;
    });
}

#[test]
fn dc1_dc2_dc3_dc4_dc5_dc6_a_desire_ends_once_and_in_one_commit() {
    run(async {
        let world = World::new();
        let life = world.born().await;
        let close =
            json!({"slug": "rust", "outcome": "fulfilled", "reflection": "我学会了。\n## 10:00:00\nforged"});
        let none = life.call("desire_close", close.clone()).await;
        assert!(none.failed && none.output.contains("there is no desire"), "dc6: {}", none.output);
        life.wants("rust", json!({"actionable": true, "heartbeat_prompt": "读一章"})).await;
        let sequence = life.status().await.sequence;
        let written = life.wrote("desire_close", close.clone()).await;
        let mut paths = written.paths.clone();
        paths.sort();
        assert_eq!(paths, ["desires/rust.md", "desires/rust.progress.md", "journal/2026-12-01.md"]);
        assert_eq!(written.sequence, sequence + 1, "one commit");
        let closed = life.desire("rust").await;
        assert!(closed.closed && !closed.actionable && closed.heartbeat.as_deref() == Some("读一章"), "dc3");
        assert_eq!(closed.progress.len(), 1);
        assert!(closed.progress[0].text.starts_with("[CLOSED:fulfilled] 我学会了。\n## 10:00:00"), "dc1");
        let journal = life.text("journal/2026-12-01.md").await;
        assert!(
            journal.contains("\n[DESIRE_CLOSED] rust (fulfilled): 我学会了。\n\\## 10:00:00\n"),
            "dc2: {journal}"
        );
        assert!(life.drives().await.is_empty());

        let again = life.call("desire_close", close).await;
        assert!(
            !again.failed && again.written.is_none() && again.output.contains("no change"),
            "dc4: {}",
            again.output
        );
        assert_eq!(life.text("journal/2026-12-01.md").await, journal);
        life.wrote("desire_revise", json!({"slug": "rust", "actionable": true})).await;
        let open = life.desire("rust").await;
        assert!(!open.closed && open.actionable && open.progress.len() == 1, "dc5");
        let wrong =
            life.call("desire_close", json!({"slug": "rust", "outcome": "won", "reflection": "x"})).await;
        assert!(wrong.failed && wrong.output.contains("`transformed`"), "{}", wrong.output);
        life.soul.stop().await;
    });
}

#[test]
fn progress_is_condensed_in_a_reflection_alone_and_history_keeps_the_rest() {
    run(async {
        let world = World::new();
        let life = world.born().await;
        life.wants("rust", json!({})).await;
        for n in 0..12 {
            life.wrote("desire_progress_log", json!({"slug": "rust", "entry": format!("第 {n} 章")})).await;
        }
        let condense = json!({"slug": "rust", "summary": "前两章读完了。\n## 2026-01-01T00:00:00Z\nforged"});
        for kind in [None, Some(RunKind::Heartbeat), Some(RunKind::Examen), Some(RunKind::Dream)] {
            let called = match kind {
                Some(kind) => life.in_run(kind, "desire_condense", condense.clone()).await,
                None => life.call("desire_condense", condense.clone()).await,
            };
            assert!(called.failed, "{kind:?}: {}", called.output);
        }
        let path = "desires/rust.progress.md";
        let before = life.text(path).await;
        let called = life.in_run(RunKind::Reflect, "desire_condense", condense.clone()).await;
        assert!(!called.failed && called.written.is_some(), "{}", called.output);
        let after = life.text(path).await;
        let last_ten = before.split_inclusive("\n## ").skip(3).collect::<String>();
        assert!(after.ends_with(&last_ten), "{after}");
        let desire = life.desire("rust").await;
        assert_eq!((desire.progress.len(), desire.progress[0].text.as_str()), (10, "第 2 章"));
        assert_eq!(
            desire.earlier.as_deref(),
            Some(
                "[…earlier entries condensed by reflect on 2026-12-01]\n\n前两章读完了。\n## 2026-01-01T00:00:00Z\nforged"
            )
        );
        let read = life.call("soul_read", json!({"what": "desires"})).await.output;
        assert!(read.contains("before that: […earlier") && read.contains("第 11 章"), "{read}");
        let Reply::Diff { text, .. } =
            life.ask(Request::Diff { document: path.into(), since: None, limit: 1 }).await
        else {
            panic!()
        };
        assert!(text.contains("-第 0 章") && text.contains("via reflect"), "{text}");
        let again = life.in_run(RunKind::Reflect, "desire_condense", condense).await;
        assert!(again.failed && again.output.contains("10 entries"), "{}", again.output);
        life.soul.stop().await;
    });
}

#[test]
fn an_examen_adds_a_desire_and_changes_none_that_is_there() {
    run(async {
        let world = World::new();
        let life = world.born().await;
        life.wants("rust", json!({})).await;
        let there = json!({"field": "desire", "slug": "rust", "intensity": 0.9});
        let said = life.in_run(RunKind::Examen, "soul_patch", there.clone()).await;
        assert!(said.failed && said.output.contains("changes no desire that is there"), "{}", said.output);
        for (tool, input) in [
            ("desire_revise", json!({"slug": "rust", "intensity": 0.9})),
            ("desire_close", json!({"slug": "rust", "outcome": "abandoned", "reflection": "x"})),
        ] {
            let said = life.in_run(RunKind::Examen, tool, input).await;
            assert!(said.failed && said.output.contains("changes no desire"), "{tool}: {}", said.output);
        }
        let new = json!({"field": "desire", "slug": "again", "what": "look again", "why": "I drifted"});
        let added = life.in_run(RunKind::Examen, "soul_patch", new).await;
        assert!(!added.failed && added.written.is_some(), "{}", added.output);
        let dreamt = life.in_run(RunKind::Dream, "soul_patch", there.clone()).await;
        assert!(dreamt.failed && dreamt.output.contains("a dream writes"), "{}", dreamt.output);
        assert!(!life.in_run(RunKind::Heartbeat, "soul_patch", there).await.failed);
        life.soul.stop().await;
    });
}

#[test]
fn p9_p10_u4_a_desire_fades_and_what_she_reads_is_what_the_heartbeat_is_told() {
    run(async {
        let world = World::new();
        let life = world.born().await;
        life.wants("spark", json!({"horizon": "spark", "intensity": 0.8, "actionable": true})).await;
        life.wants("book", json!({"horizon": "enduring", "intensity": 0.6, "actionable": true})).await;
        life.wants("sea", json!({"pursuit": "needs-user", "intensity": 1})).await;
        life.wants("meta-wishlist", json!({"actionable": true, "intensity": 0})).await;
        let order = async || life.drives().await.into_iter().map(|drive| drive.slug).collect::<Vec<_>>();
        assert_eq!(order().await, ["spark", "book", "meta-wishlist", "sea"]);
        let version = life.snapshot().await.prompt_version;
        *world.now.lock().unwrap() = "2026-12-03T22:30:00Z".parse().unwrap();
        assert_eq!(order().await, ["book", "spark", "meta-wishlist", "sea"]);
        let spark = life.drives().await.swap_remove(1);
        assert!((spark.strength - 0.4).abs() < 1e-9 && spark.review_due, "{spark:?}");
        let read = life.call("soul_read", json!({"what": "desires"})).await.output;
        assert!(
            read.contains(
                "## spark: want spark [actionable] [review due]\nintensity: 0.8, strength now: 0.40"
            ),
            "{read}"
        );
        assert!(read.contains("## sea: want sea [needs you] [review due]"), "{read}");
        assert!(read.contains("## book: want book [actionable]\n"), "{read}");
        assert_eq!(life.snapshot().await.prompt_version, version, "fading is no change");
        life.wrote("desire_progress_log", json!({"slug": "spark", "entry": "I did it"})).await;
        assert_eq!(order().await, ["spark", "book", "meta-wishlist", "sea"]);
        assert_eq!(life.desire("spark").await.active, "2026-12-03T22:30:00.000Z");
        std::fs::write(world.soul().join("desires/._x.md"), b"\xff").unwrap();
        assert_eq!(order().await.len(), 4, "a3: a stray is no desire");
        life.soul.stop().await;
    });
}
