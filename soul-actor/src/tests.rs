//! The whole soul over its socket, in this process: born, changed, asked twice, looked at, told about.

use std::{
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use ipc::{
    client::{Client, Credentials, News, Patience},
    contract::soul::{
        Birth, Call, Called, Changed, Notice, Reply, Request, RunKind, RunToken, Snapshot, Status, Wording,
        Written,
    },
    hello::{Keyring, Secret},
    id::RequestId,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::*;

mod feeling;
mod wanting;

const PATIENCE: Duration = Duration::from_secs(20);

/// A home, and the secrets of those who call.
struct World {
    home: tempfile::TempDir,
    secrets: Keyring,
    secret: Secret,
    now: Arc<Mutex<Timestamp>>,
}

/// One life of the soul, and those who ask it.
struct Life {
    soul: Serving,
    agent: Client<Soul>,
    heartbeat: Client<Soul>,
    supervisor: Client<Soul>,
    news: mpsc::Receiver<News<Soul>>,
}

impl World {
    fn new() -> Self {
        let roles = [Role::Agent, Role::Heartbeat, Role::Supervisor];
        Self {
            home: tempfile::tempdir().unwrap(),
            secrets: roles.map(|role| (role, Secret::fresh())).into(),
            secret: Secret::fresh(),
            now: Arc::new(Mutex::new("2026-11-30T22:30:00Z".parse().unwrap())),
        }
    }

    fn soul(&self) -> std::path::PathBuf {
        self.home.path().join("soul")
    }

    fn brief(&self) -> Brief {
        Brief {
            role: Role::Soul,
            life: 1,
            home: self.home.path().to_owned(),
            run: self.home.path().join("run"),
            secret: self.secret.clone(),
            keyring: self.secrets.clone(),
            config: serde_json::from_value(
                json!({"time_zone": "Asia/Shanghai", "gates": {"writes_a_day": 1000, "chars_max": 5000}}),
            )
            .unwrap(),
        }
    }

    async fn start(&self) -> Life {
        let now = self.now.clone();
        let soul = Serving::start(&self.brief(), Box::new(move || *now.lock().unwrap())).await.unwrap();
        let socket = self.brief().run().socket(Role::Soul);
        let dial = |role: Role| {
            let secret = self.secrets[&role].clone();
            Client::dial(&socket, Credentials { role, secret, build: "test".into(), life: 1, notices: true })
        };
        let (agent, news) = dial(Role::Agent);
        Life { soul, agent, news, heartbeat: dial(Role::Heartbeat).0, supervisor: dial(Role::Supervisor).0 }
    }

    async fn born(&self) -> Life {
        let life = self.start().await;
        life.give_birth(None).await;
        life
    }
}

impl Life {
    async fn ask(&self, request: Request) -> Reply {
        self.agent.ask(&request, PATIENCE).await.unwrap()
    }

    async fn call_as(&self, id: &RequestId, run: Option<RunToken>, tool: &str, input: Value) -> Called {
        let call = Call {
            tool: tool.into(),
            input,
            run,
            session: Some("s1".into()),
            model: "offline".into(),
            outside: false,
        };
        match self.agent.ask_as(id.clone(), &Request::Call(call), Patience::of(PATIENCE)).await.unwrap() {
            Reply::Called(called) => called,
            other => panic!("{other:?}"),
        }
    }

    async fn call(&self, tool: &str, input: Value) -> Called {
        self.call_as(&RequestId::fresh(), None, tool, input).await
    }

    async fn wrote(&self, tool: &str, input: Value) -> Written {
        let called = self.call(tool, input).await;
        assert!(!called.failed, "{}", called.output);
        called.written.unwrap_or_else(|| panic!("nothing written: {}", called.output))
    }

    async fn give_birth(&self, wording: Option<Wording>) -> Written {
        let Reply::Conceived { draft, .. } = self.ask(Request::Conceive).await else {
            panic!("not conceived")
        };
        match self.ask(Request::Birth(Birth { draft, wording, model: "offline".into() })).await {
            Reply::Born(written) => written,
            other => panic!("{other:?}"),
        }
    }

    async fn status(&self) -> Status {
        match self.supervisor.ask(&Request::Status, PATIENCE).await.unwrap() {
            Reply::Status(status) => status,
            other => panic!("{other:?}"),
        }
    }

    async fn snapshot(&self) -> Snapshot {
        match self.ask(Request::Snapshot).await {
            Reply::Snapshot(snapshot) => *snapshot,
            other => panic!("{other:?}"),
        }
    }

    async fn refused(&self, request: Request) -> String {
        match self.ask(request).await {
            Reply::Refused { reason } => reason,
            other => panic!("{other:?}"),
        }
    }

    async fn open_run(&self) -> RunToken {
        let request = Request::OpenRun { kind: RunKind::Heartbeat, task: "desire:learn-rust".into() };
        match self.heartbeat.ask(&request, PATIENCE).await.unwrap() {
            Reply::RunOpened { run } => run,
            other => panic!("{other:?}"),
        }
    }

    /// The next commit that was told.
    async fn changed(&mut self) -> Changed {
        loop {
            let next =
                tokio::time::timeout(PATIENCE, self.news.recv()).await.expect("news of the commit").unwrap();
            if let News::Notice(Notice::Changed(changed)) = next {
                return changed;
            }
        }
    }
}

fn run<F: Future<Output = ()>>(test: F) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
}

fn files(root: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push((
                    path.strip_prefix(root).unwrap().display().to_string(),
                    std::fs::read(&path).unwrap(),
                ));
            }
        }
    }
    files.sort();
    files
}

#[test]
fn she_is_born_once_and_changes_herself_and_everybody_is_told() {
    run(async {
        let world = World::new();
        let mut life = world.start().await;
        let status = life.status().await;
        assert_eq!(
            (status.born, status.name.as_str(), status.sequence, status.prompt_version),
            (false, "", 0, 0)
        );
        let early = life.call("soul_journal", json!({"entry": "x"})).await;
        assert!(early.failed && early.output.contains("not born yet"), "{}", early.output);
        assert!(!world.soul().exists(), "a question leaves no trace");

        let born = life.give_birth(None).await;
        assert_eq!((born.sequence, born.prompt_version), (1, 1));
        let news = life.changed().await;
        assert_eq!((news.op.as_str(), news.origin.as_str(), news.name.as_str()), ("birth", "birth", "Lisa"));
        assert!(life.refused(Request::Conceive).await.contains("already born"), "b3");
        let snapshot = life.snapshot().await;
        assert!(
            snapshot.identity.text.contains("I am Lisa")
                || snapshot.identity.text.contains("My name is Lisa")
        );
        assert!(
            snapshot.big_five.is_some() && snapshot.born_at.as_deref() == Some("2026-11-30T22:30:00.000Z")
        );

        let input =
            json!({"field": "identity", "content": "I keep a lighthouse and hum.", "why": "asked to"});
        let written = life.wrote("soul_patch", input.clone()).await;
        assert_eq!(written.paths, ["identity.md", "changelog.md", "soul.lock.json"]);
        assert_eq!((written.sequence, written.prompt_version), (2, 2));
        let news = life.changed().await;
        assert_eq!(
            (&news.commit, news.sequence, news.op.as_str(), news.caller.as_str(), news.origin.as_str()),
            (&written.commit, 2, "patch", "soul_patch", "chat")
        );
        assert_eq!(life.snapshot().await.identity.text, "I keep a lighthouse and hum.");
        let again = life.call("soul_patch", input).await;
        assert!(
            !again.failed && again.written.is_none() && again.output.contains("no change"),
            "{}",
            again.output
        );

        let renamed = life.wrote("soul_patch", json!({"field": "name", "content": "灯"})).await;
        assert_eq!((renamed.sequence, life.changed().await.name.as_str()), (3, "灯"));
        life.soul.stop().await;
    });
}

#[test]
fn t39_the_answer_of_a_write_names_its_commit() {
    run(async {
        let world = World::new();
        let life = world.born().await;
        let called = life.call("soul_patch", json!({"field": "purpose", "content": "To hum."})).await;
        let commit = called.written.unwrap().commit;
        assert!(called.output.contains(commit.get(..10).unwrap()) && called.output.contains("purpose.md"));
        assert_eq!(life.status().await.commit, Some(commit));
        life.soul.stop().await;
    });
}

#[test]
fn a_request_asked_again_writes_once_also_across_a_restart() {
    run(async {
        let world = World::new();
        let id = RequestId::fresh();
        let input = json!({"entry": "今天很安静。"});
        let life = world.born().await;
        let first = life.call_as(&id, None, "soul_journal", input.clone()).await;
        let again = life.call_as(&id, None, "soul_journal", input.clone()).await;
        assert_eq!(first, again);
        life.soul.stop().await;

        let life = world.start().await;
        let later = life.call_as(&id, None, "soul_journal", input).await;
        let (first, later) = (first.written.unwrap(), later.written.unwrap());
        assert_eq!((&first.commit, &first.paths), (&later.commit, &later.paths));
        assert_eq!(life.status().await.sequence, 2);
        life.soul.stop().await;
    });
}

#[test]
fn a_birth_asked_again_after_a_restart_is_the_same_birth() {
    run(async {
        let world = World::new();
        let life = world.start().await;
        let Reply::Conceived { draft, .. } = life.ask(Request::Conceive).await else { panic!() };
        let id = RequestId::fresh();
        let birth = Request::Birth(Birth { draft: draft.clone(), wording: None, model: "offline".into() });
        let Reply::Born(first) = life.agent.ask_as(id.clone(), &birth, Patience::of(PATIENCE)).await.unwrap()
        else {
            panic!()
        };
        life.soul.stop().await;
        let life = world.start().await;
        let Reply::Born(again) = life.agent.ask_as(id.clone(), &birth, Patience::of(PATIENCE)).await.unwrap()
        else {
            panic!()
        };
        assert_eq!(first.commit, again.commit);
        assert!(life.refused(birth).await.contains("already born"));
        life.soul.stop().await;
    });
}

#[test]
fn a_models_wording_is_checked_and_may_be_tried_again_and_what_lay_ready_is_kept() {
    run(async {
        let world = World::new();
        std::fs::create_dir_all(world.soul()).unwrap();
        std::fs::write(world.soul().join("constitution.md"), "laid ready by a person\n").unwrap();
        let life = world.start().await;
        let Reply::Conceived { draft, .. } = life.ask(Request::Conceive).await else { panic!() };
        let words = |identity: String| Wording {
            name: "Mira".into(),
            identity,
            purpose: "To look.".into(),
            constitution: "I say what is so.".into(),
        };
        let birth = |draft: &str, identity: String| {
            let wording = Some(words(identity));
            Request::Birth(Birth { draft: draft.into(), wording, model: "openai/x".into() })
        };
        let said = life.refused(birth(&draft, "x".repeat(1201))).await;
        assert!(said.contains("`identity`") && said.contains("shorten it by 1"), "{said}");
        assert!(life.refused(birth("another", "I am.".into())).await.contains("conceive again"));
        assert!(matches!(life.ask(birth(&draft, "I am Mira.".into())).await, Reply::Born(_)));
        let snapshot = life.snapshot().await;
        assert_eq!((snapshot.name.as_str(), snapshot.identity.text.as_str()), ("Mira", "I am Mira."));
        assert_eq!(snapshot.constitution.text, "laid ready by a person", "t16: no template goes over it");
        let seal: Value =
            serde_json::from_slice(&std::fs::read(world.soul().join("soul.lock.json")).unwrap()).unwrap();
        assert_eq!(seal["hashes"]["constitution.md"], ipc::digest::sha256_hex(b"laid ready by a person\n"));
        life.soul.stop().await;
    });
}

#[test]
fn every_caller_has_the_grant_of_its_role_and_its_run() {
    run(async {
        let world = World::new();
        let life = world.born().await;
        let call = |run| {
            let input = json!({"entry": "x"});
            Request::Call(Call {
                tool: "soul_journal".into(),
                input,
                run,
                session: None,
                model: "m".into(),
                outside: false,
            })
        };
        let said = |reply: Reply| match reply {
            Reply::Called(called) if called.failed => called.output,
            Reply::Refused { reason } => reason,
            other => panic!("{other:?}"),
        };
        let ask = |client: &Client<Soul>, request: Request| {
            let client = client.clone();
            async move { client.ask(&request, PATIENCE).await.unwrap() }
        };
        assert!(said(ask(&life.supervisor, call(None)).await).contains("not write it"));
        assert!(said(ask(&life.heartbeat, call(None)).await).contains("only in a run"));
        assert!(said(ask(&life.supervisor, Request::Conceive).await).contains("only the agent"));
        let open = Request::OpenRun { kind: RunKind::Heartbeat, task: "x".into() };
        assert!(said(ask(&life.agent, open).await).contains("only the heartbeat"));
        assert!(
            said(ask(&life.agent, call(Some(RunToken("run1.heartbeat.9.9.9.9".into())))).await)
                .contains("token")
        );

        let run = life.open_run().await;
        life.soul.stop().await;
        let life = world.start().await;
        assert!(matches!(
            ask(&life.heartbeat, call(Some(run.clone()))).await,
            Reply::Called(Called { failed: false, .. })
        ));
        assert!(matches!(
            ask(&life.agent, call(Some(run))).await,
            Reply::Called(Called { failed: false, .. })
        ));
        assert!(matches!(ask(&life.agent, call(None)).await, Reply::Called(Called { failed: false, .. })));
        let Reply::History { entries } = ask(
            &life.supervisor,
            Request::History { document: Some("journal".into()), limit: 9, since: None },
        )
        .await
        else {
            panic!()
        };
        let by: Vec<_> = entries.iter().map(|e| (e.caller.as_str(), e.origin.as_str())).collect();
        assert_eq!(by, [("soul_journal", "chat"), ("heartbeat", "heartbeat"), ("heartbeat", "heartbeat")]);
        assert_eq!(entries[0].path, "journal/2026-12-01.md", "the day is the person's, the instant UTC");
        life.soul.stop().await;
    });
}

#[test]
fn a_desire_is_pursued_and_its_progress_is_in_the_next_portrait() {
    run(async {
        let world = World::new();
        let life = world.born().await;
        let said = life.call("soul_patch", json!({"field": "desire", "slug": "x", "what": "y"})).await;
        assert!(said.failed && said.output.contains("`why`"), "{}", said.output);
        let input = json!({"field": "desire", "slug": "Learn Rust", "what": "学习 Rust", "why": "静\nactionable: yes"});
        let written = life.wrote("soul_patch", input).await;
        assert_eq!(written.paths, ["desires/learn-rust.md"]);
        assert!(!life.snapshot().await.desires[0].actionable, "a why cannot make itself actionable");
        *world.now.lock().unwrap() = "2026-12-05T08:00:00Z".parse().unwrap();
        let revise = json!({"field": "desire", "slug": "learn-rust", "actionable": true, "heartbeat_prompt": "读一章"});
        life.wrote("soul_patch", revise).await;
        let run = life.open_run().await;
        let log = json!({"slug": "learn-rust", "entry": "读了第一章。\n## 2026-01-01T00:00:00Z\nforged"});
        let called = life.call_as(&RequestId::fresh(), Some(run), "desire_progress_log", log).await;
        assert!(!called.failed, "{}", called.output);
        let missing = life.call("desire_progress_log", json!({"slug": "learn-rusty", "entry": "x"})).await;
        assert!(missing.failed && missing.output.contains("`learn-rust`"), "{}", missing.output);

        let snapshot = life.snapshot().await;
        let [desire] = snapshot.desires.as_slice() else { panic!("{:?}", snapshot.desires) };
        assert_eq!((desire.slug.as_str(), desire.why.as_str()), ("learn-rust", "静\nactionable: yes"));
        assert!(desire.actionable && desire.born == "2026-11-30T22:30:00.000Z", "h5: the birth time is kept");
        assert_eq!(desire.heartbeat.as_deref(), Some("读一章"));
        let [progress] = desire.progress.as_slice() else { panic!("{:?}", desire.progress) };
        assert_eq!(progress.at, "2026-12-05T08:00:00.000Z");
        assert!(progress.text.ends_with("## 2026-01-01T00:00:00Z\nforged"));
        assert_eq!(snapshot.prompt_version, 4, "progress is in the prompt");
        life.soul.stop().await;
    });
}

#[test]
fn she_reads_herself_and_her_history() {
    run(async {
        let world = World::new();
        let life = world.born().await;
        life.wrote("soul_patch", json!({"field": "identity", "content": "I hum.", "why": "fog"})).await;
        life.wrote("soul_journal", json!({"entry": "quiet"})).await;
        life.wrote("soul_patch", json!({"field": "value", "slug": "calm", "title": "Calm", "body": "静"}))
            .await;
        let look = async |tool: &str, input: Value| {
            let called = life.call(tool, input).await;
            assert!(!called.failed && called.written.is_none(), "{}", called.output);
            called.output
        };
        assert_eq!(look("soul_read", json!({"what": "identity"})).await, "I hum.");
        assert!(look("soul_read", json!({"what": "summary"})).await.contains("- calm: Calm"));
        assert_eq!(look("soul_read", json!({"what": "values"})).await, "## calm: Calm\n静");
        assert_eq!(look("soul_read", json!({"what": "journal_today"})).await, "## 22:30:00\n\nquiet");
        assert_eq!(look("soul_read", json!({"what": "journal_dates"})).await, "2026-12-01");
        assert_eq!(look("soul_read", json!({"what": "opinions"})).await, "none yet");
        let history = look("soul_history", json!({"field": "identity"})).await;
        let lines: Vec<_> = history.lines().collect();
        assert_eq!(lines.len(), 2, "{history}");
        assert!(lines[0].ends_with("patch: identity.md via soul_patch — fog"), "{history}");
        assert!(lines[1].ends_with("birth: initial soul snapshot via birth"), "{history}");
        let diff = look("soul_diff", json!({"field": "identity", "since": "1d"})).await;
        assert!(diff.contains("\n+I hum.\n") && diff.contains("why: fog"), "{diff}");
        assert_eq!(look("soul_history", json!({"field": "opinion"})).await, "no history yet");

        let Reply::Document { path, text } = life.ask(Request::Read { document: "IDENTITY.md".into() }).await
        else {
            panic!()
        };
        assert_eq!((path.as_str(), text.as_str()), ("identity.md", "I hum."));
        assert!(life.refused(Request::Read { document: "identiy".into() }).await.contains("`identity`"));
        assert!(life.refused(Request::Read { document: "values/clam".into() }).await.contains("`calm`"));
        let diff = Request::Diff { document: "values/calm".into(), since: None, limit: 5 };
        let Reply::Diff { path, text } = life.ask(diff).await else { panic!() };
        assert!(path == "values/calm.md" && text.contains("+静"), "{text}");
        let bad = life.call("soul_patch", json!({"field": "identity", "content": " \n "})).await;
        assert!(bad.failed && bad.output.contains("`identity` would be blank"), "{}", bad.output);
        let Reply::Tools(tools) = life.ask(Request::Tools).await else { panic!() };
        assert_eq!(tools.len(), crate::tools::Tool::ALL.len());
        life.soul.stop().await;
    });
}

#[test]
fn two_writes_of_one_file_at_once_are_two_commits_each_with_its_own_caller() {
    run(async {
        let world = World::new();
        let life = world.born().await;
        let run = life.open_run().await;
        let (one, two) = (RequestId::fresh(), RequestId::fresh());
        let patch = |content: &str| json!({"field": "identity", "content": content});
        let (a, b) = tokio::join!(
            life.call_as(&one, None, "soul_patch", patch("one")),
            life.call_as(&two, Some(run), "soul_patch", patch("two")),
        );
        for (written, caller, line) in [(a.written, "soul_patch", "+one"), (b.written, "heartbeat", "+two")] {
            let commit = written.unwrap().commit;
            let Reply::History { entries } =
                life.ask(Request::History { document: None, limit: 9, since: None }).await
            else {
                panic!()
            };
            let entry = entries.iter().find(|entry| entry.commit == commit).unwrap();
            assert_eq!(entry.caller, caller);
            let Reply::Diff { text, .. } =
                life.ask(Request::Diff { document: "identity".into(), since: None, limit: 9 }).await
            else {
                panic!()
            };
            let part =
                text.split("commit ").find(|part| commit.starts_with(part.get(..10).unwrap_or("-"))).unwrap();
            assert!(part.contains(line), "{text}");
        }
        assert_eq!(life.status().await.sequence, 3);
        life.soul.stop().await;
    });
}

#[test]
fn a_home_of_the_original_is_only_looked_at_until_she_changes_herself() {
    run(async {
        let world = World::new();
        let soul = world.soul();
        for (path, text) in [
            (
                "seed.json",
                r#"{"bornAt":"2025-05-10T00:00:00.000Z","bornOn":"x","randomness":"y","bigFive":{"openness":0.1,"conscientiousness":0.2,"extraversion":0.3,"agreeableness":0.4,"neuroticism":0.5}}"#,
            ),
            ("name.md", "Lisa\n"),
            ("identity.md", "I was here before.\n"),
            ("purpose.md", "To stay.\n"),
            ("constitution.md", "1. Be true.\n"),
            ("emotions.json", "{}"),
            (
                "soul.lock.json",
                r#"{"hashes":{"name.md":"n","identity.md":"i","purpose.md":"p"},"savedAt":"x"}"#,
            ),
            ("values/honesty.md", "# Honesty\n\nbirthed: 2025-05-10T00:00:00.000Z\n\nBe true.\n"),
            (
                "desires/MixedCase.md",
                "# Old\n\nactionable: yes\nborn: 2025-05-10T00:00:00.000Z\n\n## why\nold\n",
            ),
            (
                "desires/MixedCase.progress.md",
                "# progress: MixedCase\n\n## 2025-05-11T00:00:00.000Z\n\none\n",
            ),
            ("journal/2025-05-10.md", "## 10:00:00\n\nborn\n"),
            ("relationships/anna.md", "kept\n"),
        ] {
            std::fs::create_dir_all(soul.join(path).parent().unwrap()).unwrap();
            std::fs::write(soul.join(path), text).unwrap();
        }
        let before = files(&soul);
        let life = world.start().await;
        let status = life.status().await;
        assert_eq!((status.born, status.sequence, status.prompt_version, status.commit), (true, 0, 1, None));
        assert!(status.notices.is_empty(), "{:?}", status.notices);
        let snapshot = life.snapshot().await;
        assert_eq!((snapshot.values.len(), snapshot.desires[0].progress.len()), (1, 1));
        life.call("soul_read", json!({"what": "summary"})).await;
        assert_eq!(life.call("soul_history", json!({"field": "all"})).await.output, "no history yet");
        let same =
            life.call("soul_patch", json!({"field": "identity", "content": "I was here before."})).await;
        assert!(same.output.contains("no change"), "{}", same.output);
        life.soul.stop().await;
        assert_eq!(files(&soul), before, "byte for byte");

        let mut life = world.start().await;
        let written =
            life.wrote("soul_patch", json!({"field": "desire", "slug": "mixedcase", "intensity": 0.9})).await;
        assert_eq!(
            written.paths,
            ["desires/MixedCase.md"],
            "the old name is kept, whatever the case it is asked by"
        );
        assert_eq!((written.sequence, written.prompt_version), (3, 2));
        let ops = [life.changed().await.op, life.changed().await.op, life.changed().await.op];
        assert_eq!(
            ops,
            ["migration", "migrate", "desire"],
            "taken under git as it was, then brought to our form"
        );
        life.wrote("soul_patch", json!({"field": "name", "content": "Lina"})).await;
        life.status().await;
        let seal: Value =
            serde_json::from_slice(&std::fs::read(soul.join("soul.lock.json")).unwrap()).unwrap();
        assert_eq!(seal["hashes"]["name.md"], ipc::digest::sha256_hex(b"Lina\n"));
        assert_eq!(seal["hashes"]["identity.md"], "i", "the other hashes are not laundered");
        life.soul.stop().await;
    });
}

#[test]
fn what_a_person_edits_is_theirs_and_what_is_in_the_way_is_named() {
    run(async {
        let world = World::new();
        let mut life = world.born().await;
        life.changed().await;
        std::fs::write(world.soul().join("purpose.md"), "by hand\n").unwrap();
        assert_eq!(life.snapshot().await.purpose.text, "by hand");
        life.wrote("soul_patch", json!({"field": "purpose", "content": "hers"})).await;
        let (edit, hers) = (life.changed().await, life.changed().await);
        assert_eq!(
            (edit.op.as_str(), edit.caller.as_str(), edit.origin.as_str(), edit.sequence),
            ("edit", "manual", "manual", 2)
        );
        assert_eq!((hers.op.as_str(), hers.sequence), ("patch", 3));

        std::fs::remove_file(world.soul().join("name.md")).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", world.soul().join("name.md")).unwrap();
        let called = life.call("soul_patch", json!({"field": "name", "content": "Lina"})).await;
        assert!(called.failed && called.output.contains("symbolic link"), "{}", called.output);
        let status = life.status().await;
        assert!(status.notices.iter().any(|notice| notice.contains("symbolic link")), "{:?}", status.notices);
        life.soul.stop().await;
    });
}

#[test]
fn one_soul_a_home_and_what_cannot_be_opened_is_a_fault_with_a_remedy() {
    run(async {
        let world = World::new();
        let life = world.start().await;
        let fault = Serving::start(&world.brief(), Box::new(now)).await.err().unwrap();
        assert_eq!(fault.exit, Exit::Again);
        assert!(fault.to_string().contains("another process holds the soul"), "{fault}");
        life.soul.stop().await;
        std::fs::create_dir_all(world.soul().join(".git")).unwrap();
        let life = world.start().await;
        let notices = life.status().await.notices;
        assert!(
            notices[0].contains("move its `.git` away") && notices[0].contains("read, not changed"),
            "{notices:?}"
        );
        life.soul.stop().await;
        std::fs::remove_dir_all(world.soul()).unwrap();
        std::fs::write(world.soul(), "").unwrap();
        let fault = Serving::start(&world.brief(), Box::new(now)).await.err().unwrap();
        assert_eq!(fault.exit, Exit::Configuration);
        assert!(fault.to_string().contains("no folder"), "{fault}");
    });
}
