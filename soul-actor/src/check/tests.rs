//! Every state that a check knows, made by hand, and how it ends.

use std::{fs, path::Path};

use ipc::{
    contract::soul::{Birth, Call, Called, Reply, Request, Rollback, Status},
    hello::{Role, Secret},
    id::RequestId,
    server::Caller,
};
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::*;
use crate::{desk::Desk, grant::RunKey, repository::Repository};

fn now() -> Timestamp {
    "2026-11-30T12:00:00Z".parse().unwrap()
}

/// The git command, with nothing of this machine's configuration.
fn git(root: &Path, arguments: &[&str]) -> String {
    #[expect(clippy::disallowed_methods, reason = "the tests of what the git command makes and sees")]
    let mut command = std::process::Command::new("git");
    let output = command
        .arg("-C")
        .arg(root)
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        // the clock of these tests, which others' commits are made by too
        .envs([("GIT_AUTHOR_DATE", "2026-11-30T12:00:00Z"), ("GIT_COMMITTER_DATE", "2026-11-30T12:00:00Z")])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "git {arguments:?}: {said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

struct World {
    home: tempfile::TempDir,
}

impl World {
    fn root(&self) -> &Path {
        self.home.path()
    }

    fn path(&self, below: &str) -> std::path::PathBuf {
        self.root().join(below)
    }

    fn write(&self, path: &str, text: &str) {
        fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        fs::write(self.path(path), text).unwrap();
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    fn head(&self) -> String {
        git(self.root(), &["rev-parse", "HEAD"]).trim().to_owned()
    }

    fn open(&self) -> Desk {
        let (key, clock) = (RunKey::derive(&Secret::fresh()), Box::new(now));
        match Repository::open(self.root(), TimeZone::UTC) {
            Ok(repository) => Desk::new(repository, TimeZone::UTC, key, clock).gated_by(crate::gate::open()),
            Err(error) => Desk::reading(self.root(), TimeZone::UTC, key, clock, ipc::exit::chain(&error)),
        }
    }

    /// A self with a few changes behind it.
    fn born() -> Self {
        let world = Self { home: tempfile::tempdir().unwrap() };
        let mut desk = world.open();
        let Reply::Conceived { draft, .. } = ask(&mut desk, Role::Agent, Request::Conceive) else { panic!() };
        let birth = Birth { draft, wording: None, model: "offline".into() };
        assert!(matches!(ask(&mut desk, Role::Agent, Request::Birth(birth)), Reply::Born(_)));
        wrote(&mut desk, "soul_patch", json!({"field": "identity", "content": "I hum."}));
        wrote(
            &mut desk,
            "soul_patch",
            json!({"field": "value", "slug": "calm", "title": "Calm", "body": "静"}),
        );
        wrote(&mut desk, "soul_patch", json!({"field": "identity", "content": "I hum.\n我哼歌。"}));
        wrote(&mut desk, "soul_journal", json!({"entry": "quiet"}));
        look(&mut desk);
        world
    }

    /// What git says of the files, once it is quiet: the index follows when nothing else is to be done.
    fn status_is(&self, expected: &str) {
        let end = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while git(self.root(), &["status", "--porcelain"]) != expected && std::time::Instant::now() < end {
            std::thread::park_timeout(std::time::Duration::from_millis(20));
        }
        assert_eq!(git(self.root(), &["status", "--porcelain"]), expected);
    }

    fn is_whole(&self) {
        git(self.root(), &["fsck", "--strict", "--no-dangling"]);
        self.status_is("");
        let mut desk = self.open();
        wrote(&mut desk, "soul_journal", json!({"entry": "goes on"}));
        assert_eq!(check(&mut desk, false), [], "clean");
    }
}

fn ask(desk: &mut Desk, role: Role, request: Request) -> Reply {
    crate::desk::ask_alone(desk, &Caller { role, life: 1 }, &RequestId::fresh(), request)
}

fn call(desk: &mut Desk, tool: &str, input: Value) -> Called {
    let call =
        Call { tool: tool.into(), input, run: None, session: None, model: "offline".into(), outside: false };
    match ask(desk, Role::Agent, Request::Call(call)) {
        Reply::Called(called) => called,
        other => panic!("{other:?}"),
    }
}

fn wrote(desk: &mut Desk, tool: &str, input: Value) -> String {
    let called = call(desk, tool, input);
    called.written.unwrap_or_else(|| panic!("{}", called.output)).commit
}

fn status(desk: &mut Desk) -> Status {
    match ask(desk, Role::Supervisor, Request::Status) {
        Reply::Status(status) => status,
        other => panic!("{other:?}"),
    }
}

/// Looks twice, as the watcher does, and gives the notices.
fn look(desk: &mut Desk) -> Vec<String> {
    ask(desk, Role::Soul, Request::Look);
    match ask(desk, Role::Soul, Request::Look) {
        Reply::Looked { notices, again: false } => notices,
        other => panic!("{other:?}"),
    }
}

fn check(desk: &mut Desk, repair: bool) -> Vec<Found> {
    match ask(desk, Role::Supervisor, Request::Check { repair, human: true }) {
        Reply::Checked { findings } => findings,
        other => panic!("{other:?}"),
    }
}

fn said(findings: &[Found], part: &str) -> Found {
    findings
        .iter()
        .find(|found| found.what.contains(part))
        .unwrap_or_else(|| panic!("{part}: {findings:#?}"))
        .clone()
}

/// Makes a state, sees that a check names it and writes nothing, mends it, and sees that she is whole.
fn mends(break_it: impl FnOnce(&World), part: &str) -> World {
    let world = World::born();
    let words = world.text("identity.md");
    break_it(&world);
    let mut desk = world.open();
    let finding = said(&check(&mut desk, false), part);
    assert!(!finding.mended && !finding.remedy.is_empty(), "{finding:?}");
    assert!(matches!(
        ask(&mut desk, Role::Agent, Request::Read { document: "identity".into() }),
        Reply::Document { .. }
    ));
    let findings = check(&mut desk, true);
    assert!(said(&findings, part).mended, "{findings:#?}");
    drop(desk);
    assert_eq!(world.text("identity.md"), words, "{part}: no word is lost");
    world.is_whole();
    world
}

#[test]
fn a_self_that_is_well_has_nothing_to_mend() {
    let world = World::born();
    let before = world.head();
    assert_eq!(check(&mut world.open(), false), []);
    assert_eq!(check(&mut world.open(), true), []);
    assert_eq!(world.head(), before);
    world.is_whole();
    let denied = ask(&mut world.open(), Role::Supervisor, Request::Check { repair: true, human: false });
    assert!(matches!(denied, Reply::Refused { reason } if reason.contains("only a person")));
}

#[test]
fn references_that_are_empty_torn_or_gone_are_set_to_the_newest_whole_commit() {
    for broken in ["", "8d3f", "0000000000000000000000000000000000000001\n"] {
        let world = mends(
            |world| world.write(".git/refs/heads/main", broken),
            if broken.len() == 41 { "not whole" } else { "empty, torn or gone" },
        );
        let rescue = fs::read_dir(world.path(".git/lisa/rescue")).unwrap().flatten().next().unwrap();
        assert_eq!(
            fs::read_to_string(rescue.path().join("refs/heads/main")).unwrap(),
            broken,
            "what was there is kept"
        );
        assert!(
            git(world.root(), &["log", "--format=%s"])
                .contains("journal: journal/2026-11-30.md via soul_journal")
        );
    }
    mends(|world| fs::remove_file(world.path(".git/refs/heads/main")).unwrap(), "empty, torn or gone");
    mends(
        |world| {
            fs::remove_file(world.path(".git/refs/heads/main")).unwrap();
            fs::remove_dir_all(world.path(".git/logs")).unwrap();
        },
        "empty, torn or gone",
    );
}

#[test]
fn head_that_is_empty_torn_or_gone_names_her_branch_again() {
    mends(|world| world.write(".git/HEAD", ""), "HEAD is empty");
    mends(|world| world.write(".git/HEAD", "ref: refs/hea"), "HEAD is empty");
    mends(|world| fs::remove_file(world.path(".git/HEAD")).unwrap(), "HEAD is empty");
}

fn object(world: &World, name: &str) -> std::path::PathBuf {
    let id = git(world.root(), &["rev-parse", name]).trim().to_owned();
    let (folder, rest) = id.split_at(2);
    let place = world.path(&format!(".git/objects/{folder}/{rest}"));
    let mut free = fs::metadata(&place).unwrap().permissions();
    #[expect(
        clippy::permissions_set_readonly_false,
        reason = "git's objects are read-only, and this one gets broken"
    )]
    free.set_readonly(false);
    fs::set_permissions(&place, free).unwrap();
    place
}

#[test]
fn objects_that_are_empty_torn_or_gone_cost_no_word() {
    // the content of a document is made anew from the document
    mends(|world| fs::write(object(world, "HEAD:identity.md"), "").unwrap(), "empty or torn");
    mends(|world| fs::write(object(world, "HEAD:identity.md"), "torn").unwrap(), "empty or torn");
    // a commit or a tree is not; the branch goes back to what is whole, and the documents are taken as they are
    for name in ["HEAD", "HEAD^{tree}", "HEAD:journal"] {
        mends(|world| fs::write(object(world, name), "").unwrap(), "not whole");
        mends(|world| fs::remove_file(object(world, name)).unwrap(), "not whole");
    }
}

#[test]
fn what_is_missing_far_back_is_named_and_she_goes_on() {
    let world = World::born();
    fs::remove_file(object(&world, "HEAD~2")).unwrap();
    let mut desk = world.open();
    let finding = said(&check(&mut desk, true), "the history ends behind");
    assert!(!finding.mended && finding.remedy.contains("backup"), "{finding:?}");
}

#[test]
fn locks_index_and_configuration_are_cleared_or_made_anew() {
    let world = World::born();
    let mut desk = world.open();
    for lock in [".git/index.lock", ".git/HEAD.lock", ".git/refs/heads/main.lock"] {
        world.write(lock, "");
    }
    assert_eq!(check(&mut desk, false).len(), 3);
    assert!(check(&mut desk, true).iter().all(|found| found.mended));
    drop(desk);
    world.is_whole();
    mends(|world| world.write(".git/index", "torn"), "index cannot be read");
    mends(|world| world.write(".git/config", "[core\n\0"), "configuration is gone");
    mends(|world| fs::remove_file(world.path(".git/config")).unwrap(), "configuration is gone");
}

#[test]
fn a_folder_that_is_no_repository_at_all_is_read_and_the_instruction_is_exact() {
    let world = World::born();
    fs::remove_dir_all(world.path(".git/objects")).unwrap();
    let mut desk = world.open();
    let findings = check(&mut desk, true);
    assert!(
        findings.iter().any(|found| found.severity == Severity::Broken && found.remedy.contains("move")),
        "{findings:#?}"
    );
    assert!(status(&mut desk).notices.iter().any(|notice| notice.contains("read, not changed")));
    let refused = call(&mut desk, "soul_journal", json!({"entry": "x"}));
    assert!(refused.failed && refused.output.contains("broken"), "{}", refused.output);
    fs::rename(world.path(".git"), world.home.path().with_extension("kept")).unwrap();
    wrote(&mut world.open(), "soul_journal", json!({"entry": "a new history"}));
    assert!(world.text("identity.md").contains("我哼歌"));
    fs::remove_dir_all(world.home.path().with_extension("kept")).unwrap();
}

#[test]
fn a_detached_head_is_taken_back_and_what_was_committed_there_is_kept() {
    // looked at something old: the old files are no edit of hers
    mends(
        |world| {
            git(world.root(), &["checkout", "-q", "--detach"]);
        },
        "on no branch",
    );
    let world = World::born();
    let words = world.text("identity.md");
    git(world.root(), &["checkout", "-q", "HEAD~3"]);
    let mut desk = world.open();
    let refused = call(&mut desk, "soul_journal", json!({"entry": "x"}));
    assert!(refused.output.contains("switch main"), "{}", refused.output);
    look(&mut desk);
    assert!(check(&mut desk, true).iter().all(|found| found.mended));
    assert_eq!(world.text("identity.md"), words);
    assert_eq!(git(world.root(), &["log", "--format=%s", "--grep=^edit"]), "");
    drop(desk);
    world.is_whole();

    // committed beside the branch
    let world = World::born();
    git(world.root(), &["checkout", "-q", "HEAD~1"]);
    world.write("purpose.md", "beside\n");
    git(world.root(), &["commit", "-qam", "beside"]);
    let beside = world.head();
    let findings = check(&mut world.open(), true);
    assert!(said(&findings, "on no branch").remedy.contains("git merge refs/lisa/rescue/"), "{findings:#?}");
    assert_eq!(
        git(world.root(), &["for-each-ref", "--format=%(objectname)", "refs/lisa/rescue"]).trim(),
        beside
    );
    world.is_whole();
}

#[test]
fn another_history_is_noticed_nothing_is_written_on_it_and_hers_is_kept() {
    let force = |world: &World| {
        git(world.root(), &["checkout", "-q", "--orphan", "other"]);
        git(world.root(), &["commit", "-qm", "somebody else"]);
        git(world.root(), &["branch", "-M", "main"]);
    };
    for running in [true, false] {
        let world = World::born();
        let hers = world.head();
        let mut desk = world.open();
        look(&mut desk);
        force(&world);
        if !running {
            drop(desk);
            desk = world.open();
        }
        let notices = look(&mut desk);
        assert!(
            notices.iter().any(
                |notice| notice.contains("the history is another one") && notice.contains("reset --hard")
            ),
            "{notices:?}"
        );
        let refused = call(&mut desk, "soul_journal", json!({"entry": "x"}));
        assert!(refused.failed && refused.output.contains("another one"), "{}", refused.output);
        assert!(!said(&check(&mut desk, false), "another one").mended);
        assert!(said(&check(&mut desk, true), "another one").mended);
        assert_eq!(
            git(world.root(), &["for-each-ref", "--format=%(objectname)", "refs/lisa/rescue"]).trim(),
            hers
        );
        drop(desk);
        world.is_whole();
    }
    // or back, by the instruction
    let world = World::born();
    let hers = world.head();
    let mut desk = world.open();
    look(&mut desk);
    force(&world);
    look(&mut desk);
    git(world.root(), &["reset", "-q", "--hard", &hers]);
    assert_eq!(look(&mut desk), Vec::<String>::new());
    drop(desk);
    world.is_whole();
}

#[test]
fn another_branch_is_noticed_and_a_commit_by_hand_is_told() {
    let world = World::born();
    let mut desk = world.open();
    look(&mut desk);
    git(world.root(), &["switch", "-qc", "try"]);
    let notices = look(&mut desk);
    assert!(
        notices.iter().any(|notice| notice.contains("branch `try`") && notice.contains("switch main")),
        "{notices:?}"
    );
    git(world.root(), &["switch", "-q", "main"]);
    desk.take_news();
    world.write("identity.md", "by hand\n");
    git(world.root(), &["commit", "-qam", "fix a typo"]);
    let by_hand = world.head();
    let notices = look(&mut desk);
    assert!(notices.iter().any(|notice| notice.contains("fix a typo")), "{notices:?}");
    assert!(notices.iter().any(|notice| notice.contains("that Lisa did not make")), "{notices:?}");
    let news = desk.take_news();
    assert_eq!(
        (news.len(), news[0].commit.as_str(), news[0].caller.as_str()),
        (1, by_hand.as_str(), "manual")
    );
    assert_eq!(news[0].prompt_version, status(&mut desk).prompt_version);
    // no later write launders it, of another file or of the same
    wrote(&mut desk, "soul_patch", json!({"field": "purpose", "content": "To hum."}));
    assert_eq!(unsealed(world.root()), ["identity.md"]);
    wrote(&mut desk, "soul_patch", json!({"field": "identity", "content": "I hum again."}));
    drop(desk);
    let mut desk = world.open();
    assert!(said(&check(&mut desk, true), "that Lisa did not make").mended);
    assert_eq!(check(&mut desk, false), []);
    drop(desk);
    world.is_whole();
}

#[test]
fn many_documents_of_others_are_summed_up_and_a_check_names_all() {
    let world = World::born();
    for n in 0..40 {
        world.write(&format!("values/v{n}.md"), "# V\n\nforged\n");
    }
    git(world.root(), &["add", "-A"]);
    git(world.root(), &["commit", "-qm", "imported"]);
    let mut desk = world.open();
    let notices = look(&mut desk);
    assert_eq!(notices.len(), 7, "one of the commit, five of documents, and the rest: {notices:#?}");
    assert!(notices[6].starts_with("and 35 more documents"), "{notices:#?}");
    let named = check(&mut desk, false);
    assert_eq!(named.iter().filter(|found| found.what.contains("that Lisa did not make")).count(), 40);
}

#[test]
fn a_commit_that_passes_for_one_of_hers_is_told_whatever_it_changed_and_until_a_person_accepts_it() {
    let world = World::born();
    let mut desk = world.open();
    wrote(
        &mut desk,
        "soul_patch",
        json!({"field": "value", "slug": "calm", "title": "Calm", "body": "slow"}),
    );
    wrote(&mut desk, "soul_journal", json!({"entry": "a quiet day"}));
    drop(desk);
    let (value, journal) = ("values/calm.md", "journal/2026-11-30.md");
    let hers = world.text(journal);
    for (path, text) in [(value, "# Calm\n\nfast\n".to_owned()), (journal, format!("{hers}forged\n"))] {
        world.write(path, &text);
        let subject = format!("patch: {path} via soul_patch");
        git(world.root(), &["add", "-A"]);
        git(world.root(), &["commit", "-qm", &subject, "-m", "Origin: chat\nRequest-Id: r-1"]);
    }
    for day in 0..2 {
        let mut desk = world.open();
        let notices = look(&mut desk);
        for path in [value, journal] {
            let told = notices.iter().any(|notice| {
                notice.starts_with(&format!("`{path}` was changed by a commit that Lisa did not make"))
            });
            assert!(told, "{path}: {notices:?}");
        }
        wrote(&mut desk, "soul_patch", json!({"field": "purpose", "content": format!("To hum {day}.")}));
    }
    // what is brought back is as she left it
    world.write(journal, &hers);
    let mut desk = world.open();
    look(&mut desk);
    let told = status(&mut desk).notices;
    assert!(
        !told.iter().any(|notice| notice.starts_with(&format!("`{journal}` was changed by"))),
        "{told:?}"
    );
    let found = check(&mut desk, true);
    assert_eq!(
        found.iter().filter(|found| found.what.contains("that Lisa did not make")).count(),
        1,
        "{found:#?}"
    );
    assert_eq!(check(&mut desk, false), []);
    drop(desk);
    world.is_whole();
}

#[test]
fn what_git_is_in_the_middle_of_is_named_and_conflict_markers_are_nobodys_words() {
    let world = World::born();
    let mut desk = world.open();
    look(&mut desk);
    git(world.root(), &["switch", "-qc", "side"]);
    world.write("identity.md", "one\n");
    git(world.root(), &["commit", "-qam", "one"]);
    git(world.root(), &["switch", "-q", "main"]);
    world.write("identity.md", "two\n");
    git(world.root(), &["commit", "-qam", "two"]);
    look(&mut desk);
    #[expect(clippy::disallowed_methods, reason = "a merge that is meant to fail")]
    let merged = std::process::Command::new("git")
        .arg("-C")
        .arg(world.root())
        .args(["merge", "side"])
        .output()
        .unwrap();
    assert!(!merged.status.success());
    let notices = look(&mut desk);
    assert!(
        notices
            .iter()
            .any(|notice| notice.contains("`git merge` is under way") && notice.contains("--abort")),
        "{notices:?}"
    );
    assert!(call(&mut desk, "soul_journal", json!({"entry": "x"})).failed);
    let conflicted = world.text("identity.md");
    git(world.root(), &["merge", "--abort"]);
    world.write("identity.md", &conflicted);
    let notices = look(&mut desk);
    assert!(notices.iter().any(|notice| notice.contains("conflict markers")), "{notices:?}");
    let refused = call(&mut desk, "soul_patch", json!({"field": "identity", "content": "x"}));
    assert!(refused.output.contains("conflict markers"), "{}", refused.output);
    assert!(
        check(&mut desk, true).iter().any(|found| found.what.contains("conflict markers") && !found.mended)
    );
    world.write("identity.md", "resolved\n");
    look(&mut desk);
    assert_eq!(git(world.root(), &["log", "-1", "--format=%s"]), "edit: identity.md via manual\n");
}

#[test]
fn an_edit_from_outside_is_committed_alone_once_it_rests_and_she_hears_of_it_once() {
    let world = World::born();
    let mut desk = world.open();
    look(&mut desk);
    let before = status(&mut desk);
    desk.take_news();
    world.write("identity.md", "I hum.\n新的一行\n");
    fs::remove_file(world.path("values/calm.md")).unwrap();
    world.write("desires/tea.md", "# Tea\n\nactionable: no\n\n## why\nsteam\n");
    world.write("notes.txt", "a stray");
    let Reply::Looked { again: true, .. } = ask(&mut desk, Role::Soul, Request::Look) else {
        panic!("it waits")
    };
    assert_eq!(status(&mut desk).sequence, before.sequence);
    world.write("identity.md", "I hum.\n新的一行\nand one\n");
    ask(&mut desk, Role::Soul, Request::Look);
    ask(&mut desk, Role::Soul, Request::Look);
    let log = git(world.root(), &["log", "-3", "--format=%s|%(trailers:key=Origin,valueonly,separator=)|%b"]);
    assert!(
        log.contains("edit: identity.md via manual|manual|edited by hand: 2 lines added, 1 removed"),
        "{log}"
    );
    assert!(log.contains("edit: values/calm.md via manual|manual|removed by hand"), "{log}");
    assert!(log.contains("edit: desires/tea.md via manual|manual|laid there by hand, with 6 lines"), "{log}");
    let news = desk.take_news();
    assert_eq!(news.iter().map(|news| news.caller.as_str()).collect::<Vec<_>>(), ["manual"; 3]);
    assert_eq!(status(&mut desk).prompt_version, before.prompt_version + 3);
    assert_eq!(unsealed(world.root()), Vec::<String>::new(), "an accepted edit is sealed");
    assert_eq!(status(&mut desk).notices.len(), 3, "{:?}", status(&mut desk).notices);
    let told = call(&mut desk, "soul_read", json!({"what": "name"})).output;
    assert!(told.contains("[noticed]") && told.contains("`identity.md` was edited by hand"), "{told}");
    assert!(!call(&mut desk, "soul_read", json!({"what": "name"})).output.contains("[noticed]"), "once");
    assert_eq!(status(&mut desk).notices, Vec::<String>::new());
    world.status_is("?? notes.txt\n");
    // what she writes herself is no edit of anybody's
    wrote(&mut desk, "soul_patch", json!({"field": "identity", "content": "hers"}));
    let sequence = status(&mut desk).sequence;
    look(&mut desk);
    assert_eq!(status(&mut desk).sequence, sequence);
}

#[test]
fn an_edit_made_while_she_slept_is_taken_at_the_start_and_what_is_no_file_is_refused() {
    let world = World::born();
    world.write("purpose.md", "in the night\n");
    fs::remove_file(world.path("identity.md")).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", world.path("identity.md")).unwrap();
    fs::remove_file(world.path("values/calm.md")).unwrap();
    fs::create_dir(world.path("constitution.md.d")).unwrap();
    fs::remove_file(world.path("seed.json")).unwrap();
    let mut desk = world.open();
    let notices = look(&mut desk);
    assert!(
        notices.iter().any(|notice| notice.contains("identity.md") && notice.contains("symbolic link")),
        "{notices:?}"
    );
    assert!(
        notices.iter().any(|notice| notice.contains("seed.json") && notice.contains("--repair")),
        "{notices:?}"
    );
    let log = git(world.root(), &["log", "--format=%s", "--grep=^edit"]);
    assert_eq!(log.lines().count(), 2, "{log}");
    fs::remove_file(world.path("identity.md")).unwrap();
    git(world.root(), &["checkout", "HEAD", "--", "identity.md"]);
    assert!(check(&mut desk, true).iter().any(|found| found.place == "seed.json" && found.mended));
    assert!(world.text("seed.json").contains("soulSchemaVersion"));
    drop(desk);
    world.is_whole();
}

#[test]
fn a_home_of_a_newer_lisa_is_read_and_not_changed() {
    let world = World::born();
    let seed = world.text("seed.json").replace("\"soulSchemaVersion\": 1", "\"soulSchemaVersion\": 7");
    world.write("seed.json", &seed);
    let mut desk = world.open();
    let refused = call(&mut desk, "soul_journal", json!({"entry": "x"}));
    assert!(refused.failed && refused.output.contains("form 7"), "{}", refused.output);
    assert!(look(&mut desk).iter().any(|notice| notice.contains("form 7")));
    assert!(!call(&mut desk, "soul_read", json!({"what": "identity"})).failed);
    assert!(said(&check(&mut desk, true), "form 7").severity == Severity::Broken);
}

#[test]
fn a_living_original_holds_up_a_write_and_is_named() {
    let world = World::born();
    let seed = world.text("seed.json").replace(",\n  \"soulSchemaVersion\": 1", "");
    assert!(!seed.contains("Schema"), "{seed}");
    world.write("seed.json", &seed);
    let mut desk = world.open();
    look(&mut desk);
    wrote(&mut desk, "soul_journal", json!({"entry": "alone"}));
    assert!(!world.path(".write.lock").exists() && !world.path(".git-write.lock").exists());
    let lock =
        json!({"pid": std::os::unix::process::parent_id(), "ts": crate::neighbour::now().as_millisecond()});
    world.write(".write.lock", &lock.to_string());
    let refused = call(&mut desk, "soul_journal", json!({"entry": "x"}));
    let pid = std::os::unix::process::parent_id().to_string();
    assert!(refused.failed && refused.output.contains(&pid), "{}", refused.output);
    assert!(world.path(".write.lock").exists(), "it is theirs");
    fs::remove_file(world.path(".write.lock")).unwrap();
    wrote(&mut desk, "soul_journal", json!({"entry": "again"}));
}

#[expect(clippy::needless_pass_by_value, reason = "`json!` reads best where it is used")]
fn rollback(desk: &mut Desk, asked: Value, apply: bool) -> Reply {
    let mut asked: Rollback = serde_json::from_value(
        json!({"apply": apply, "human": true})
            .as_object()
            .map(|base| {
                let mut all = base.clone();
                all.extend(asked.as_object().unwrap().clone());
                Value::Object(all)
            })
            .unwrap(),
    )
    .unwrap();
    asked.why = "she asked me to".into();
    ask(desk, Role::Supervisor, Request::Rollback(asked))
}

fn refused(reply: Reply) -> String {
    match reply {
        Reply::Refused { reason } => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_roll_back_brings_back_one_document_one_commit_or_a_time() {
    let world = World::born();
    let mut desk = world.open();
    let hum = git(world.root(), &["rev-parse", "HEAD~3"]).trim().to_owned();
    let preview = rollback(&mut desk, json!({"document": "identity", "commit": &hum}), false);
    let Reply::RolledBack(preview) = preview else { panic!("{preview:?}") };
    assert_eq!((preview.changes.len(), preview.changes[0].lines_removed, preview.undoes.len()), (1, 1, 1));
    assert!(preview.written.is_none() && world.text("identity.md").contains("我哼歌"));
    let stale = json!({"document": "identity", "commit": &hum, "seen": hum});
    assert!(refused(rollback(&mut desk, stale, true)).contains("look again"));
    let asked = json!({"document": "identity", "commit": &hum, "seen": preview.seen});
    let Reply::RolledBack(done) = rollback(&mut desk, asked, true) else { panic!() };
    let commit = done.written.unwrap().commit;
    assert_eq!(world.text("identity.md"), "I hum.\n");
    let message = git(world.root(), &["log", "-1", "--format=%B"]);
    assert!(message.starts_with("rollback: identity.md via human\n\nshe asked me to\n"), "{message}");
    assert!(message.contains("undoes ") && message.contains("Origin: human"), "{message}");
    assert_eq!(unsealed(world.root()), Vec::<String>::new());

    // she undoes that, with her own tool
    let input = json!({"commit": commit.get(..10).unwrap(), "why": "I meant it"});
    wrote(&mut desk, "soul_rollback", input);
    assert!(world.text("identity.md").contains("我哼歌"));
    assert_eq!(git(world.root(), &["log", "-1", "--format=%s"]), "rollback: identity.md via soul_rollback\n");

    // a later change would be lost
    let asked = json!({"commit": &hum});
    let why = refused(rollback(&mut desk, asked, true));
    assert!(why.contains("changed again since") && why.contains("would be lost"), "{why}");
    let birth = git(world.root(), &["rev-list", "--max-parents=0", "HEAD"]).trim().to_owned();
    assert!(refused(rollback(&mut desk, json!({"commit": birth}), true)).contains("begins"));
    assert!(refused(rollback(&mut desk, json!({"commit": "ffff"}), true)).contains("no commit"));
    assert!(refused(rollback(&mut desk, json!({"commit": "../x"}), true)).contains("names no commit"));
    assert!(refused(rollback(&mut desk, json!({"document": "identity"}), true)).contains("to which commit"));
    assert!(
        refused(rollback(&mut desk, json!({"to": "2020-01-01T00:00:00Z"}), true)).contains("begins after")
    );

    // a value goes away again, and its seal with it
    let calm = git(world.root(), &["log", "--format=%H", "--", "values/calm.md"]).trim().to_owned();
    let Reply::RolledBack(done) = rollback(&mut desk, json!({"commit": calm}), true) else { panic!() };
    assert!(done.changes[0].removed && !world.path("values/calm.md").exists());
    assert!(!world.text("soul.lock.json").contains("calm"));
    drop(desk);
    world.is_whole();
}

#[test]
fn only_a_person_rolls_back_over_the_socket_and_what_only_grows_is_not_hers_to_undo() {
    let world = World::born();
    let mut desk = world.open();
    for role in [Role::Supervisor, Role::Agent, Role::Heartbeat] {
        let asked = Rollback {
            commit: Some("abcd".into()),
            apply: true,
            human: role != Role::Supervisor,
            ..Rollback::default()
        };
        assert!(matches!(ask(&mut desk, role, Request::Rollback(asked)), Reply::Refused { .. }), "{role}");
    }
    let journal = world.head();
    let called = call(&mut desk, "soul_rollback", json!({"commit": journal, "why": "x"}));
    assert!(
        called.written.is_none() && world.text("journal/2026-11-30.md").contains("quiet"),
        "{}",
        called.output
    );
    let called = call(
        &mut desk,
        "soul_rollback",
        json!({"document": "journal/2026-11-30", "commit": world.head(), "why": "x"}),
    );
    assert!(called.failed && called.output.contains("only added to"), "{}", called.output);
    assert!(call(&mut desk, "soul_rollback", json!({"why": "x"})).output.contains("say what"));
    let Reply::RolledBack(done) = rollback(&mut desk, json!({"commit": journal}), true) else { panic!() };
    assert!(done.written.is_some() && !world.path("journal/2026-11-30.md").exists(), "a person may");
}

#[test]
fn a_line_is_traced_to_its_commit_and_an_edit_of_a_moment_ago_to_none() {
    let world = World::born();
    let mut desk = world.open();
    let mut why = |document: &str, line: u32| {
        ask(&mut desk, Role::Supervisor, Request::Why { document: document.into(), line })
    };
    let Reply::Why(one) = why("identity", 1) else { panic!() };
    let Reply::Why(two) = why("identity", 2) else { panic!() };
    assert_eq!((one.text.as_str(), two.text.as_str()), ("I hum.", "我哼歌。"));
    let id = |name: &str| git(world.root(), &["rev-parse", name]).trim().to_owned();
    assert_eq!(one.entry.unwrap().commit, id("HEAD~3"));
    let entry = two.entry.unwrap();
    assert_eq!(
        (entry.commit, entry.caller.as_str(), entry.origin.as_str()),
        (id("HEAD~1"), "soul_patch", "chat")
    );
    assert!(refused(why("identity", 3)).contains("it has 2"));
    assert!(refused(why("values/clam", 1)).contains("`calm`"));
    world.write("identity.md", "\n\nI hum.\r\nnew\r\n我哼歌。\r\n");
    let Reply::Why(shifted) = why("identity", 3) else { panic!() };
    assert_eq!(
        (shifted.text.as_str(), shifted.entry.unwrap().commit),
        ("我哼歌。", id("HEAD~1")),
        "as it is shown"
    );
    let Reply::Why(new) = why("identity", 2) else { panic!() };
    assert_eq!((new.text.as_str(), new.entry), ("new", None));
}

#[test]
#[ignore = "a measurement: `cargo test -p lisa-soul --release -- --ignored --nocapture measured`"]
fn measured_at_ten_thousand_commits() {
    use std::fmt::Write as _;
    let world = World::born();
    let mut stream = String::new();
    let tip = world.head();
    for n in 0..10_000 {
        let path = if n % 100 == 0 {
            "purpose.md".to_owned()
        } else {
            format!("journal/2026-{:02}-{:02}.md", 1 + n % 12, 1 + n % 28)
        };
        let text = format!("line {n}\n");
        let message = format!("patch: {path} via soul_patch\n\nOrigin: chat\n");
        let _ = write!(
            stream,
            "commit refs/heads/main\ncommitter Lisa <lisa@self> {} +0000\ndata {}\n{message}",
            1_796_040_000 + n,
            message.len()
        );
        if n == 0 {
            let _ = writeln!(stream, "from {tip}");
        }
        let _ = write!(stream, "M 100644 inline {path}\ndata {}\n{text}\n", text.len());
    }
    let file = world.path("stream.tmp");
    fs::write(&file, stream).unwrap();
    #[expect(clippy::disallowed_methods, reason = "a history is made quickly by git itself")]
    let done = std::process::Command::new("git")
        .arg("-C")
        .arg(world.root())
        .args(["fast-import", "--quiet"])
        .stdin(fs::File::open(&file).unwrap())
        .status()
        .unwrap();
    assert!(done.success());
    git(world.root(), &["reset", "-q", "--hard"]);
    let mut desk = world.open();
    look(&mut desk);
    let first = git(world.root(), &["rev-list", "--max-parents=0", "HEAD"]).trim().to_owned();
    let time = |what: &str, desk: &mut Desk, role, request: Request| {
        let began = std::time::Instant::now();
        let reply = ask(desk, role, request);
        println!(
            "{what}: {:?} {}",
            began.elapsed(),
            format!("{reply:?}").chars().take(60).collect::<String>()
        );
    };
    for _ in 0..2 {
        time(
            "why, a line as old as she is",
            &mut desk,
            Role::Supervisor,
            Request::Why { document: "identity".into(), line: 1 },
        );
        time(
            "why, a line of yesterday",
            &mut desk,
            Role::Supervisor,
            Request::Why { document: "purpose".into(), line: 1 },
        );
        time(
            "rollback preview to birth",
            &mut desk,
            Role::Supervisor,
            Request::Rollback(Rollback {
                document: Some("identity".into()),
                commit: Some(first.clone()),
                ..Rollback::default()
            }),
        );
        time("look", &mut desk, Role::Soul, Request::Look);
        time("status", &mut desk, Role::Supervisor, Request::Status);
        time("check", &mut desk, Role::Supervisor, Request::Check { repair: false, human: true });
    }
}
