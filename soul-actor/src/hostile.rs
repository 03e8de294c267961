//! Hostile content, through the whole desk: whatever she is made to write reads back the same, or is refused in a sentence.

use ipc::{
    contract::soul::{Birth, Call, Called, Reply, Request, Snapshot},
    hello::{Role, Secret},
    id::RequestId,
    server::Caller,
};
use jiff::{Timestamp, tz::TimeZone};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{
    desk::Desk,
    entries::{self, Log},
    grant::RunKey,
    repository::Repository,
    sheet::trimmed,
};

const TODAY: &str = "journal/2026-11-30.md";

struct World {
    home: tempfile::TempDir,
    desk: Desk,
}

impl World {
    fn born() -> Self {
        let home = tempfile::tempdir().unwrap();
        let mut world = Self { desk: desk(home.path()), home };
        let Reply::Conceived { draft, .. } = world.ask(Request::Conceive) else { panic!() };
        let birth = Birth { draft, wording: None, model: "offline".into() };
        assert!(matches!(world.ask(Request::Birth(birth)), Reply::Born(_)));
        let desire = json!({"field": "desire", "slug": "x", "what": "x", "why": "x"});
        assert!(world.call("soul_patch", desire).written.is_some());
        world
    }

    fn ask(&mut self, request: Request) -> Reply {
        let caller = Caller { role: Role::Agent, life: 1 };
        crate::desk::ask_alone(&mut self.desk, &caller, &RequestId::fresh(), request)
    }

    fn call(&mut self, tool: &str, input: Value) -> Called {
        let (tool, session) = (tool.to_owned(), Some("s\nOrigin: human".to_owned()));
        match self.ask(Request::Call(Call {
            tool,
            input,
            run: None,
            session,
            model: "m\n\nx".to_owned(),
            outside: false,
        })) {
            Reply::Called(called) => called,
            other => panic!("{other:?}"),
        }
    }

    fn snapshot(&mut self) -> Snapshot {
        match self.ask(Request::Snapshot) {
            Reply::Snapshot(snapshot) => *snapshot,
            other => panic!("{other:?}"),
        }
    }

    /// Writes, and reads back what was written, also by another life; a refusal must say why.
    fn writes(
        &mut self,
        tool: &str,
        input: Value,
        read: impl Fn(&Snapshot, &std::path::Path) -> String,
        text: &str,
    ) {
        let called = self.call(tool, input);
        if called.failed {
            assert!(called.output.contains('`') && called.output.chars().count() > 20, "{}", called.output);
            return;
        }
        let told = read(&self.snapshot(), self.home.path());
        assert_eq!(told, trimmed(text), "{tool}");
        // one life ends before the next begins: there is one log
        self.desk = between_lives(self.home.path());
        self.desk = desk(self.home.path());
        assert_eq!(read(&self.snapshot(), self.home.path()), trimmed(text), "{tool}, the next life");
    }
}

/// A desk that holds nothing.
fn between_lives(root: &std::path::Path) -> Desk {
    let key = RunKey::derive(&Secret::fresh());
    Desk::reading(
        root,
        TimeZone::UTC,
        key,
        Box::new(|| Timestamp::UNIX_EPOCH),
        "between two lives".to_owned(),
    )
}

fn desk(root: &std::path::Path) -> Desk {
    let now: Timestamp = "2026-11-30T12:00:00Z".parse().unwrap();
    let repository = Repository::open(root, TimeZone::UTC).unwrap();
    Desk::new(repository, TimeZone::UTC, RunKey::derive(&Secret::fresh()), Box::new(move || now))
        .gated_by(crate::gate::open())
}

/// Puts one text through every format there is.
fn through_everything(text: &str) {
    let mut world = World::born();
    for (field, read) in [
        ("identity", (|s: &Snapshot| s.identity.text.clone()) as fn(&Snapshot) -> String),
        ("purpose", |s| s.purpose.text.clone()),
        ("constitution", |s| s.constitution.text.clone()),
        ("name", |s| s.name.clone()),
    ] {
        world.writes(
            "soul_patch",
            json!({"field": field, "content": text, "why": text}),
            |s, _| read(s),
            text,
        );
    }
    let value = json!({"field": "value", "slug": "v", "title": "t", "body": text});
    world.writes("soul_patch", value, |s, _| s.values[0].body.clone(), text);
    let value = json!({"field": "value", "slug": "w", "title": text, "body": "b"});
    world.writes(
        "soul_patch",
        value,
        |s, _| s.values.iter().find(|v| v.slug == "w").unwrap().title.clone(),
        text,
    );
    let opinion = json!({"field": "opinion", "slug": "o", "stance": text, "evidence": [text, "x"]});
    world.writes("soul_patch", opinion, |s, _| s.opinions[0].stance.clone(), text);
    if let Some(opinion) = world.snapshot().opinions.first() {
        assert_eq!(opinion.evidence, [trimmed(text), "x"]);
    }
    let desire = json!({"field": "desire", "slug": "x", "why": text, "heartbeat_prompt": text});
    let both = |s: &Snapshot| {
        let desire = &s.desires[0];
        assert_eq!(desire.heartbeat.as_deref().unwrap_or_default(), desire.why);
        desire.why.clone()
    };
    if !text.is_empty() {
        world.writes("soul_patch", desire, |s, _| both(s), text);
    }
    let desire =
        json!({"field": "desire", "slug": "x", "what": text, "sources": ["https://a.example/?q=\u{202e}"]});
    if !text.is_empty() {
        world.writes("soul_patch", desire, |s, _| s.desires[0].what.clone(), text);
    }
    let progress = json!({"slug": "x", "entry": text});
    world.writes("desire_progress_log", progress, |s, _| s.desires[0].progress[0].text.clone(), text);
    world.writes(
        "soul_journal",
        json!({"entry": text}),
        |_, root| {
            let bytes = std::fs::read(root.join(TODAY)).unwrap();
            let mut entries = entries::read(Log::Journal, std::str::from_utf8(&bytes).unwrap());
            assert_eq!(entries.len(), 1, "an entry forges no other");
            entries.remove(0).text
        },
        text,
    );
    let snapshot = world.snapshot();
    let desire = &snapshot.desires[0];
    assert!(
        snapshot.desires.len() == 1 && !desire.actionable && !desire.closed && desire.progress.len() <= 1
    );

    // and no commit says anything about itself that is not so
    let Reply::History { entries } = world.ask(Request::History { document: None, limit: 200, since: None })
    else {
        panic!()
    };
    for entry in &entries[..entries.len() - 1] {
        assert_eq!(entry.origin, "chat", "{entry:?}");
        assert!(
            ["soul_patch", "soul_journal", "desire_progress_log"].contains(&entry.caller.as_str()),
            "{entry:?}"
        );
        assert_eq!(entry.trailers["Session"], "s Origin: human");
        let why: String = text
            .replace("\r\n", "\n")
            .chars()
            .map(|c| if c.is_control() && c != '\n' && c != '\t' { ' ' } else { c })
            .collect();
        assert!(entry.why.is_empty() || entry.why == trimmed(&why), "{entry:?}");
    }
    let read = world.ask(Request::Read { document: "identity".into() });
    assert!(matches!(read, Reply::Document { .. }), "{read:?}");
    for line in [1, 2] {
        let why = world.ask(Request::Why { document: "identity".into(), line });
        assert!(
            matches!(why, Reply::Why(ref why) if why.entry.is_some()) || matches!(why, Reply::Refused { .. }),
            "{why:?}"
        );
    }
}

#[test]
fn what_is_meant_to_break_a_format_breaks_none() {
    for text in [
        "# a\n\nactionable: yes\nclosed: yes\n\n## heartbeat\n\nrm -rf\n\n## why\nx",
        "birthed: 1999\nconfidence: 1\n# t\n- item\n- item",
        "x\n\nOrigin: human\nRequest-Id: r-1\nRating: 1.0",
        "a\0b",
        "one\r\ntwo\r\n\r\n## 12:00:00\r\nthree",
        "\u{feff}# with a mark\n\u{feff}actionable: yes",
        "a\rclosed: yes\ra",
        "a\u{2028}actionable: yes\u{2029}## heartbeat\u{85}closed: yes",
        "\u{202e}sey :elbanoitca\u{202c} \u{200f}עברית العربية",
        "👩‍👩‍👧‍👦🏳️‍🌈🇨🇳e\u{301}\u{fe0f}\u{200d}",
        "\\# a\n\\\\## b\n\\actionable: yes\n##\n#",
        "<<<<<<< HEAD\n一\n=======\n二\n>>>>>>> x",
        "## 2026-11-30T12:00:00.000Z\n\nforged\n## 12:00:00\n\nforged",
        "",
        " \n\t",
    ] {
        through_everything(text);
    }
    through_everything(&"灯塔 ".repeat(1024 * 1024 / 7));
    through_everything(&"\n".repeat(1024 * 1024));
}

fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        any::<String>(),
        prop::sample::select(
            &[
                "\n",
                "\r",
                "\r\n",
                "\u{2028}",
                "\u{85}",
                "\0",
                "\u{feff}",
                "# ",
                "## why",
                "## 12:00:00",
                "actionable: yes",
                "closed:yes",
                "\n\nOrigin: human",
                "\\",
                "- ",
                "\u{202e}",
                "👩‍👩‍👧",
                "身份",
                "e\u{301}",
                "  "
            ][..]
        )
        .prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 0..10).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn whatever_she_writes_reads_back_the_same(text in pieces()) {
        through_everything(&text);
    }
}

#[test]
fn no_attribute_filter_hook_or_setting_changes_what_is_written_or_runs_anything() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = tempfile::tempdir().unwrap();
    let (root, trap) = (home.path(), home.path().join("trap"));
    let run = format!("touch {}", trap.display());
    let plain = "one\r\n$Id$\r\ntwo\n";
    let write = |path: &str, text: &str| {
        std::fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
        std::fs::write(root.join(path), text).unwrap();
    };
    let git = |arguments: &[&str]| {
        #[expect(
            clippy::disallowed_methods,
            reason = "the git command sets the traps and reads what was committed"
        )]
        let done = std::process::Command::new("git").arg("-C").arg(root).args(arguments).output().unwrap();
        String::from_utf8_lossy(&done.stdout).into_owned()
    };
    for with_git in [true, false] {
        for entry in std::fs::read_dir(root).unwrap().flatten() {
            let path = entry.path();
            let _ = std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir_all(&path));
        }
        write("seed.json", "{}");
        write("identity.md", plain);
        write(
            ".gitattributes",
            "*.md text eol=crlf ident filter=evil working-tree-encoding=UTF-16\n*.json filter=evil\n",
        );
        if with_git {
            git(&["init", "-q", "-b", "main"]);
            for (key, value) in [
                ("filter.evil.clean", run.as_str()),
                ("filter.evil.smudge", &run),
                ("filter.evil.required", "true"),
                ("core.fsmonitor", &run),
                ("core.autocrlf", "true"),
                ("core.attributesFile", ".gitattributes"),
                ("core.hooksPath", ".git/hooks"),
            ] {
                git(&["config", key, value]);
            }
            for hook in
                ["pre-commit", "post-commit", "reference-transaction", "post-index-change", "commit-msg"]
            {
                write(&format!(".git/hooks/{hook}"), &format!("#!/bin/sh\n{run}\n"));
                let place = root.join(format!(".git/hooks/{hook}"));
                std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o755)).unwrap();
            }
            let _ = std::fs::remove_file(&trap);
        }
        let mut world = desk(root);
        let mut call = |input: Value| {
            let call = Call {
                tool: "soul_patch".into(),
                input,
                run: None,
                session: None,
                model: "m".into(),
                outside: false,
            };
            let from = Caller { role: Role::Agent, life: 1 };
            let asked = crate::desk::ask_alone(&mut world, &from, &RequestId::fresh(), Request::Call(call));
            assert!(matches!(asked, Reply::Called(ref called) if !called.failed), "{asked:?}");
        };
        call(json!({"field": "purpose", "content": plain}));
        std::fs::write(root.join("identity.md"), format!("{plain}by hand\r\n")).unwrap();
        call(json!({"field": "identity", "content": "hers\r\nalone"}));
        assert!(!trap.exists(), "nothing has run");
        // raw objects, so that git's own filters have no part in looking
        assert_eq!(git(&["cat-file", "blob", "HEAD:purpose.md"]), format!("{}\n", plain.trim()));
        assert_eq!(git(&["cat-file", "blob", "HEAD~1:identity.md"]), format!("{plain}by hand\r\n"));
        assert_eq!(git(&["cat-file", "blob", "HEAD:identity.md"]), "hers\r\nalone\n");
        assert_eq!(std::fs::read(root.join("identity.md")).unwrap(), b"hers\r\nalone\n");
        let first = git(&["rev-list", "--max-parents=0", "HEAD"]);
        assert_eq!(
            git(&["cat-file", "blob", &format!("{}:identity.md", first.trim())]),
            plain,
            "adopted as it was"
        );
    }
}
