//! The repository on real folders: killed between its steps, edited from outside, adopted, counted again.

use std::{fs, path::Path};

use jiff::Timestamp;

use super::*;
use crate::{
    birth,
    message::{Message, Origin},
};

/// The git command, with nothing of this machine's configuration.
pub(super) fn git(root: &Path, arguments: &[&str]) -> String {
    #[expect(clippy::disallowed_methods, reason = "the one place where tests ask the git command")]
    let output = std::process::Command::new("git")
        .arg("-C")
        .arg(root)
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "git {arguments:?}: {said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

pub(super) fn now() -> Timestamp {
    "2026-11-30T12:00:00Z".parse().unwrap()
}

pub(super) fn message(op: &'static str, path: &str) -> Message {
    Message {
        op,
        path: path.to_owned(),
        caller: "soul_patch".to_owned(),
        origin: Origin::Chat,
        why: "because".to_owned(),
        session: None,
        model: None,
        request: None,
        rating: None,
        evidence: vec![],
    }
}

pub(super) fn change(path: &str, text: &str) -> Change {
    Change { path: path.to_owned(), bytes: Some(text.as_bytes().to_vec()) }
}

pub(super) fn open(root: &Path) -> Repository {
    Repository::open(root, TimeZone::UTC).unwrap()
}

pub(super) fn born(root: &Path) -> Repository {
    let mut repository = open(root);
    repository.prepare(now()).unwrap();
    let changes = [
        change("seed.json", "{}"),
        change(".gitignore", birth::IGNORED),
        change("name.md", "Lisa\n"),
        change("identity.md", "new\n"),
    ];
    let receipt = repository.write(&changes, &message("birth", "x"), now()).unwrap().unwrap();
    assert_eq!(receipt.versions, Versions { sequence: 1, prompt_version: 1 });
    assert_eq!(receipt.paths.last().unwrap(), "seed.json");
    repository
}

pub(super) fn write(repository: &mut Repository, path: &str, text: &str) -> Result<Option<Receipt>> {
    repository.write(&[change(path, text)], &message("patch", path), now())
}

/// A repository whose batch is durable and in git.
pub(super) fn flushed(mut repository: Repository) -> Repository {
    repository.flush(|_| None).unwrap();
    repository.settle().unwrap();
    repository
}

pub(super) fn is_whole(root: &Path) {
    git(root, &["fsck", "--strict", "--no-dangling"]);
    assert_eq!(git(root, &["status", "--porcelain"]), "", "the work tree is what HEAD says");
}

#[test]
fn a_write_is_one_commit_and_the_files_follow() {
    let root = tempfile::tempdir().unwrap();
    let mut repository = born(root.path());
    let receipt = write(&mut repository, "identity.md", "I keep a lighthouse.\n").unwrap().unwrap();
    assert_eq!(receipt.versions, Versions { sequence: 2, prompt_version: 2 });
    assert_eq!(write(&mut repository, "identity.md", "I keep a lighthouse.\n").unwrap(), None);
    let receipt = write(&mut repository, "journal/2026-11-30.md", "x\n").unwrap().unwrap();
    assert_eq!(
        receipt.versions,
        Versions { sequence: 3, prompt_version: 2 },
        "the journal is not in the prompt"
    );
    assert_eq!(
        git(root.path(), &["log", "--format=%s|%an|%ae|%cI"]),
        "patch: journal/2026-11-30.md via soul_patch|Lisa|lisa@self|2026-11-30T12:00:00Z\n\
         patch: identity.md via soul_patch|Lisa|lisa@self|2026-11-30T12:00:00Z\n\
         birth: x via soul_patch|Lisa|lisa@self|2026-11-30T12:00:00Z\n"
    );
    assert_eq!(git(root.path(), &["log", "-1", "--format=%(trailers:key=Origin,valueonly)"]).trim(), "chat");
    assert_eq!(git(root.path(), &["symbolic-ref", "HEAD"]), "refs/heads/main\n");
    drop(repository);
    is_whole(root.path());
}

/// The steps at which a write is cut, and whether it was answered by then.
pub(super) const STEPS: [(Step, bool); 6] = [
    (Step::Accepted, false),
    (Step::Logged, true),
    (Step::Objects, true),
    (Step::Reference, true),
    (Step::Files, true),
    (Step::Indexed, true),
];

#[test]
fn killed_at_every_step_of_a_write_the_history_is_whole() {
    for (step, stands) in STEPS {
        let root = tempfile::tempdir().unwrap();
        let mut repository = born(root.path());
        repository.cut(Some(step));
        let cut = repository.write(
            &[change("identity.md", "hums\n"), change("values/x.md", "# x\n")],
            &message("patch", "identity.md"),
            now(),
        );
        assert_eq!(cut.is_ok(), stands, "{step:?}");
        let id = cut.ok().flatten().map(|receipt| receipt.commit);
        drop(repository);
        for lock in ["index.lock", "HEAD.lock", "refs/heads/main.lock", "packed-refs.lock", "config.lock"] {
            fs::write(root.path().join(".git").join(lock), "").unwrap();
        }
        fs::write(root.path().join(".lisa-torn.tmp"), "").unwrap();

        let mut repository = open(root.path());
        if let Some(id) = id {
            assert_eq!(repository.commit().unwrap(), Some(id), "{step:?}: the id that was answered");
        }
        let says = fs::read_to_string(root.path().join("identity.md")).unwrap();
        assert_eq!(says, if stands { "hums\n" } else { "new\n" }, "{step:?}");
        assert_eq!(repository.versions().unwrap().sequence, if stands { 2 } else { 1 });
        is_whole(root.path());
        let edits = repository.take_outside_edits(&["identity.md".to_owned()], now()).unwrap();
        assert_eq!(edits, [], "{step:?}: a stale file is no edit of a person");
        assert!(write(&mut repository, "identity.md", "still writes\n").unwrap().is_some());
        drop(repository);
        is_whole(root.path());
    }
}

#[test]
fn an_edit_made_after_a_kill_is_not_overwritten_by_the_start() {
    let root = tempfile::tempdir().unwrap();
    let mut repository = born(root.path());
    repository.cut(Some(Step::Files));
    assert!(write(&mut repository, "identity.md", "hums\n").is_ok());
    drop(repository);
    fs::write(root.path().join("identity.md"), "by hand\n").unwrap();
    let mut repository = open(root.path());
    assert_eq!(fs::read_to_string(root.path().join("identity.md")).unwrap(), "by hand\n");
    assert_eq!(repository.take_outside_edits(&["identity.md".to_owned()], now()).unwrap().len(), 1);
    drop(flushed(repository));
    is_whole(root.path());
}

#[test]
fn a_birth_that_is_cut_off_leaves_none_or_a_whole_one() {
    for (step, stands) in STEPS {
        let root = tempfile::tempdir().unwrap();
        let mut repository = open(root.path());
        repository.prepare(now()).unwrap();
        repository.cut(Some(step));
        let changes = [change("seed.json", "{}"), change("name.md", "Lisa\n")];
        assert_eq!(repository.write(&changes, &message("birth", "x"), now()).is_ok(), stands);
        drop(repository);
        let repository = open(root.path());
        assert_eq!(repository.is_born().unwrap(), stands, "{step:?}");
        assert_eq!(root.path().join("seed.json").exists(), stands);
        assert_eq!(root.path().join("name.md").exists(), stands);
    }
}

#[test]
fn an_edit_from_outside_is_committed_alone_and_as_theirs() {
    let root = tempfile::tempdir().unwrap();
    let mut repository = born(root.path());
    fs::write(root.path().join("identity.md"), "edited by hand\n").unwrap();
    fs::write(root.path().join("soul.lock.json"), "{}").unwrap();
    git(root.path(), &["add", "."]);
    let paths = ["identity.md".to_owned(), "soul.lock.json".to_owned(), "name.md".to_owned()];
    let edits = repository.take_outside_edits(&paths, now()).unwrap();
    assert_eq!(edits.len(), 1);
    write(&mut repository, "identity.md", "hers\n").unwrap().unwrap();
    let log = git(root.path(), &["log", "--format=%s", "--", "identity.md"]);
    assert_eq!(
        log,
        "patch: identity.md via soul_patch\nedit: identity.md via manual\nbirth: x via soul_patch\n"
    );
    let staged = git(root.path(), &["log", "--format=%s", "--", "soul.lock.json"]);
    assert_eq!(staged, "", "what somebody has staged is in no commit of hers");

    fs::remove_file(root.path().join("identity.md")).unwrap();
    let edits = repository.take_outside_edits(&paths, now()).unwrap();
    let mut repository = flushed(repository);
    assert_eq!(
        (edits.len(), repository.committed("identity.md").unwrap()),
        (1, None),
        "a deletion is an edit"
    );

    fs::remove_file(root.path().join("name.md")).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", root.path().join("name.md")).unwrap();
    let said = repository.take_outside_edits(&paths, now()).unwrap_err().to_string();
    assert!(said.contains("symbolic link"), "{said}");
}

#[test]
fn a_home_that_was_never_under_git_is_adopted_at_the_first_write_and_not_before() {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in
        [("seed.json", "{}"), ("identity.md", "old\n"), ("values/x.md", "# x\n"), (".write.lock", "{}")]
    {
        fs::create_dir_all(root.path().join(path).parent().unwrap()).unwrap();
        fs::write(root.path().join(path), text).unwrap();
    }
    let names = || fs::read_dir(root.path()).unwrap().count();
    let mut repository = open(root.path());
    assert!(repository.is_born().unwrap());
    assert_eq!(repository.versions().unwrap(), Versions { sequence: 0, prompt_version: 1 });
    assert_eq!((repository.commit().unwrap(), names()), (None, 4), "looking leaves no trace");

    let adopted = repository.prepare(now()).unwrap().unwrap();
    assert_eq!(
        adopted.versions,
        Versions { sequence: 1, prompt_version: 1 },
        "what is shown has not changed"
    );
    assert_eq!(repository.prepare(now()).unwrap(), None, "once");
    let receipt = write(&mut repository, "identity.md", "new\n").unwrap().unwrap();
    assert_eq!(receipt.versions, Versions { sequence: 2, prompt_version: 2 });
    assert_eq!(
        git(root.path(), &["ls-tree", "-r", "--name-only", "HEAD"]),
        ".gitignore\nidentity.md\nseed.json\nvalues/x.md\n"
    );
    assert!(git(root.path(), &["log", "--format=%s"]).ends_with("migration: soul via migration\n"));
    drop(repository);
    is_whole(root.path());
}

#[test]
fn a_repository_of_the_original_goes_on_under_its_own_branch() {
    let root = tempfile::tempdir().unwrap();
    git(root.path(), &["init", "-q", "-b", "trunk"]);
    git(root.path(), &["config", "user.name", "Lisa"]);
    git(root.path(), &["config", "user.email", "lisa@self"]);
    git(root.path(), &["config", "core.fsmonitor", "/bin/false"]);
    fs::write(root.path().join("seed.json"), "{}").unwrap();
    fs::write(root.path().join("identity.md"), "one\n").unwrap();
    git(root.path(), &["add", "."]);
    git(root.path(), &["commit", "-qm", "birth: initial soul snapshot @ 2026-01-01T00:00:00Z"]);
    fs::write(root.path().join("journal.md"), "x").unwrap();
    git(root.path(), &["add", "."]);
    git(root.path(), &["commit", "-qm", "journal: journal.md via soul_journal"]);
    let before = fs::read(root.path().join(".git/config")).unwrap();

    let mut repository = open(root.path());
    assert_eq!(repository.versions().unwrap(), Versions { sequence: 2, prompt_version: 1 });
    let entries = repository.history(Wanted { path: None, limit: 9, since: None }).unwrap();
    assert_eq!(
        (entries.len(), entries[0].caller.as_str(), entries[1].path.as_str()),
        (2, "soul_journal", "")
    );
    assert_eq!(fs::read(root.path().join(".git/config")).unwrap(), before);
    assert!(!root.path().join(".git/lisa").exists(), "looking leaves no trace");

    repository.prepare(now()).unwrap();
    write(&mut repository, "identity.md", "two\n").unwrap().unwrap();
    assert_eq!(git(root.path(), &["symbolic-ref", "HEAD"]), "refs/heads/trunk\n");
    assert_eq!(git(root.path(), &["config", "core.fsmonitor"]), "false\n");
    drop(repository);
    is_whole(root.path());
}

#[test]
fn the_versions_are_a_cache_and_counted_again_when_it_is_not_of_head() {
    let root = tempfile::tempdir().unwrap();
    let mut repository = born(root.path());
    for n in 0..5 {
        write(&mut repository, "identity.md", &format!("{n}\n")).unwrap();
        write(&mut repository, "journal/2026-11-30.md", &format!("{n}\n")).unwrap();
    }
    let versions = Versions { sequence: 11, prompt_version: 6 };
    assert_eq!(repository.versions().unwrap(), versions);
    drop(repository);
    let kept = root.path().join(".git/lisa/index.sqlite");
    for broken in ["", "no database at all, but long enough to be looked at as one"] {
        fs::write(&kept, broken).unwrap();
        assert_eq!(open(root.path()).versions().unwrap(), versions);
    }
    let mut repository = open(root.path());
    git(root.path(), &["commit", "-q", "--allow-empty", "-m", "by hand"]);
    assert_eq!(repository.versions().unwrap().sequence, 12, "a commit from outside is counted");
    let receipt = write(&mut repository, "identity.md", "after\n").unwrap().unwrap();
    assert_eq!(receipt.versions, Versions { sequence: 13, prompt_version: 7 });
}

#[test]
fn history_and_diff_show_what_touched_a_path() {
    let root = tempfile::tempdir().unwrap();
    let mut repository = born(root.path());
    write(&mut repository, "identity.md", "I hum.\n").unwrap();
    write(&mut repository, "values/x.md", "# x\n").unwrap();
    let later = "2026-12-24T12:00:00Z".parse().unwrap();
    repository
        .write(&[change("identity.md", "我哼歌。\n")], &message("patch", "identity.md"), later)
        .unwrap();
    let history = |path, since| {
        let entries = repository.history(Wanted { path, limit: 10, since }).unwrap();
        entries.iter().map(|entry| entry.op.clone()).collect::<Vec<_>>()
    };
    assert_eq!(history(Some("identity.md"), None), ["patch", "patch", "birth"]);
    assert_eq!(history(Some("values"), None), ["patch"]);
    assert_eq!(history(Some("opinions"), None), Vec::<String>::new());
    assert_eq!(history(None, None).len(), 4);
    assert_eq!(history(None, Some(later)), ["patch"]);

    let diff = repository.diff(Wanted { path: Some("identity.md"), limit: 1, since: None }).unwrap();
    let commit = repository.commit().unwrap().unwrap();
    assert_eq!(
        diff,
        format!(
            "commit {} 2026-12-24T12:00:00.000Z patch: identity.md via soul_patch\nwhy: because\n\
             --- a/identity.md\n+++ b/identity.md\n@@ -1 +1 @@\n-I hum.\n+我哼歌。\n",
            short(&commit)
        )
    );
    let all = repository.diff(Wanted { path: None, limit: 9, since: None }).unwrap();
    assert!(all.contains("--- /dev/null\n+++ b/seed.json"), "{all}");
}

#[test]
fn whoever_else_moves_the_branch_is_noticed() {
    let root = tempfile::tempdir().unwrap();
    let mut repository = born(root.path());
    let lock = root.path().join(".git/refs/heads/main.lock");
    fs::write(&lock, "").unwrap();
    let accepted = write(&mut repository, "identity.md", "x\n").unwrap().unwrap();
    let error = write(&mut repository, "identity.md", "y\n").unwrap_err().to_string();
    assert!(error.starts_with("could not move the branch") && error.contains("by itself"), "{error}");
    assert!(repository.notice().unwrap().starts_with("could not move the branch"));
    assert_eq!(fs::read_to_string(root.path().join("identity.md")).unwrap(), "new\n");
    fs::remove_file(&lock).unwrap();
    let progress = repository.progress.clone();
    progress.wait(Duration::from_secs(10), |state| state.trouble.is_none());
    assert_eq!((repository.commit().unwrap(), repository.notice()), (Some(accepted.commit), None));
    assert!(write(&mut repository, "identity.md", "y\n").unwrap().is_some());

    drop(flushed(repository));
    let mut repository = open(root.path());
    git(root.path(), &["checkout", "-q", "--detach"]);
    let error = write(&mut repository, "identity.md", "z\n").unwrap_err().to_string();
    assert!(error.contains("switch main"), "{error}");
}

#[test]
fn files_that_cannot_be_written_are_made_up_for_and_are_no_edit() {
    let root = tempfile::tempdir().unwrap();
    let mut repository = born(root.path());
    // the folder of the values is taken by a file until after the commit
    fs::write(root.path().join("values"), "").unwrap();
    let receipt =
        repository.write(&[change("values/x.md", "# x\n")], &message("value", "values/x.md"), now());
    assert!(receipt.unwrap().is_some(), "the commit stands");
    assert!(repository.notice().unwrap().contains("is no folder"), "{:?}", repository.notice());
    assert!(repository.settle().is_err());
    fs::remove_file(root.path().join("values")).unwrap();
    repository.progress.clone().wait(Duration::from_secs(10), |state| state.trouble.is_none());
    repository.settle().unwrap();
    assert_eq!(repository.notice(), None);
    drop(repository);
    is_whole(root.path());
}

#[test]
fn what_cannot_be_opened_is_named_with_the_remedy() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join(".git")).unwrap();
    let error = Repository::open(root.path(), TimeZone::UTC).err().unwrap().to_string();
    assert!(error.contains("fsck") && error.contains("move its `.git` away"), "{error}");
    let file = root.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(Repository::open(&file, TimeZone::UTC).err().unwrap().to_string().contains("no folder"));
}
