//! What others fall into, each made by hand: torn objects, other people's commits, full disks, clocks, kills anywhere.

use std::{collections::BTreeMap, fs, path::Path};

use proptest::prelude::*;

use super::{
    tests::{born, change, flushed, git, is_whole, message, now, open, write},
    workfile::look,
    *,
};

fn loose(root: &Path) -> Vec<std::path::PathBuf> {
    let folders = fs::read_dir(root.join(".git/objects")).unwrap().flatten();
    let folders = folders.filter(|folder| folder.file_name().len() == 2);
    folders
        .flat_map(|folder| fs::read_dir(folder.path()).unwrap().flatten())
        .map(|file| file.path())
        .collect()
}

fn wait(repository: &Repository, is_wanted: impl Fn(&progress::State) -> bool) {
    repository.hand_over();
    let state = repository.progress.wait(Duration::from_secs(20), &is_wanted);
    assert!(is_wanted(&state), "{state:?}");
}

#[test]
fn trap_5_after_a_power_cut_torn_objects_branch_and_stale_files_are_those_of_the_log() {
    let root = tempfile::tempdir().unwrap();
    drop(born(root.path()));
    let before: Vec<_> = loose(root.path());
    let mut repository = open(root.path());
    repository.cut(Some(Step::Indexed));
    let first = write(&mut repository, "identity.md", "hums\n").unwrap().unwrap();
    drop(repository);
    // everything that was written without a flush is torn in its own way
    for (n, object) in loose(root.path()).into_iter().filter(|object| !before.contains(object)).enumerate() {
        let bytes = fs::read(&object).unwrap();
        fs::write(&object, if n % 2 == 0 { &[] } else { bytes.split_at(bytes.len() / 2).0 }).unwrap();
    }
    fs::write(root.path().join(".git/refs/heads/main"), "").unwrap();
    fs::write(root.path().join("identity.md"), "new\n").unwrap();

    let mut repository = open(root.path());
    assert_eq!(repository.commit().unwrap(), Some(first.commit));
    assert_eq!(repository.take_outside_edits(&["identity.md".to_owned()], now()).unwrap(), []);
    assert_eq!(fs::read_to_string(root.path().join("identity.md")).unwrap(), "hums\n");
    is_whole(root.path());
    // and a file of nothing but zeros is no edit of a person either
    repository.cut(Some(Step::Indexed));
    write(&mut repository, "identity.md", "sings\n").unwrap();
    drop(repository);
    fs::write(root.path().join("identity.md"), [0; 6]).unwrap();
    drop(open(root.path()));
    assert_eq!(fs::read_to_string(root.path().join("identity.md")).unwrap(), "sings\n");
    is_whole(root.path());
}

#[test]
fn trap_7_an_empty_object_that_a_write_needs_again_is_written_again() {
    let root = tempfile::tempdir().unwrap();
    let mut repository = born(root.path());
    let before = loose(root.path());
    write(&mut repository, "values/x.md", "again\n").unwrap();
    let blob = object::name(object::Kind::Blob, b"again\n").to_string();
    let torn: Vec<_> = loose(root.path())
        .into_iter()
        .filter(|o| !before.contains(o) && blob.ends_with(&*o.file_name().unwrap().to_string_lossy()))
        .collect();
    fs::write(&torn[0], "").unwrap();
    write(&mut repository, "values/y.md", "again\n").unwrap();
    drop(repository);
    is_whole(root.path());
}

/// Commits a file by hand, past every lock, as somebody does at the worst moment, on top of what is there or as another
/// history; gives the commit.
fn commit_by_hand(root: &Path, path: &str, text: &str, is_on_top: bool) -> String {
    let index = root.join(".git/by-hand");
    let index = index.to_str().unwrap();
    fs::write(root.join(path), text).unwrap();
    let blob = git(root, &["hash-object", "-w", path]);
    let run = |arguments: &[&str]| {
        #[expect(clippy::disallowed_methods, reason = "git with an index of its own")]
        let output = std::process::Command::new("git")
            .arg("-C")
            .arg(root)
            .args(arguments)
            .envs([("GIT_INDEX_FILE", index), ("GIT_AUTHOR_NAME", "p"), ("GIT_AUTHOR_EMAIL", "p@q")])
            .envs([("GIT_COMMITTER_NAME", "p"), ("GIT_COMMITTER_EMAIL", "p@q")])
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    run(&["read-tree", "HEAD"]);
    run(&["update-index", "--add", "--cacheinfo", &format!("100644,{},{path}", blob.trim())]);
    let tree = run(&["write-tree"]);
    let parent: &[&str] = if is_on_top { &["-p", "HEAD"] } else { &[] };
    let commit = run(&[&["commit-tree", &tree, "-m", "by hand"], parent].concat());
    // whole or not at all, as git does it
    fs::write(root.join(".git/main-by-hand"), format!("{commit}\n")).unwrap();
    fs::rename(root.join(".git/main-by-hand"), root.join(".git/refs/heads/main")).unwrap();
    fs::remove_file(index).unwrap();
    commit
}

#[test]
fn a_commit_by_hand_meanwhile_stays_below_and_what_was_answered_leads_to_what_stands() {
    for is_down in [true, false] {
        let root = tempfile::tempdir().unwrap();
        let mut repository = born(root.path());
        let lock = root.path().join(".git/refs/heads/main.lock");
        if is_down {
            repository.cut(Some(Step::Objects));
        } else {
            fs::write(&lock, "").unwrap();
        }
        let mut message = message("patch", "identity.md");
        message.request = Some("r-1".to_owned().try_into().unwrap());
        let answered =
            repository.accept(&[change("identity.md", "hers\n")], &message, now()).unwrap().unwrap();
        repository.flush(|request| Some(Value::String(format!("answer to {request}")))).unwrap();
        let running = if is_down {
            drop(repository);
            None
        } else {
            wait(&repository, |state| state.trouble.is_some());
            Some(repository)
        };
        let theirs = commit_by_hand(root.path(), "name.md", "theirs\n", true);
        // what is in the way of the thread goes, and it finds the branch elsewhere
        let _ = fs::remove_file(&lock);
        let mut repository = running.unwrap_or_else(|| open(root.path()));
        wait(&repository, |state| state.moved || is_down);
        repository.settle().unwrap();
        let strange = repository.take_strange();
        assert_eq!(strange.iter().map(|(_, here)| here.as_str()).collect::<Vec<_>>(), [theirs.as_str()]);
        let stands = repository.standing(Oid::from_str(&answered.commit).unwrap()).to_string();
        assert_ne!(stands, answered.commit);
        assert_eq!(repository.commit().unwrap(), Some(stands.clone()));
        assert_eq!(git(root.path(), &["rev-parse", "HEAD", "HEAD^"]), format!("{stands}\n{theirs}\n"));
        assert_eq!(repository.versions().unwrap().sequence, 3);
        assert_eq!(
            repository.paths_of(&answered.commit).unwrap(),
            ["identity.md"],
            "by the id that was answered"
        );
        let says = git(root.path(), &["log", "-1", "--format=%s|%(trailers:key=Answered-As,valueonly)"]);
        assert_eq!(says.trim(), format!("patch: identity.md via soul_patch|{}", answered.commit));
        assert!(write(&mut repository, "identity.md", "goes on\n").unwrap().is_some());
        drop(repository);
        let mut repository = open(root.path());
        assert_eq!(repository.take_strange(), [], "it is told once");
        let changed: Vec<_> = repository.strangers().map(|stranger| stranger.path.as_str()).collect();
        assert_eq!(changed, ["name.md"], "and known until a person says a word");
        assert_eq!(
            repository.asked("r-1"),
            Asked::Answered(stands.clone(), Some(Value::String("answer to r-1".into())))
        );
        assert_eq!(repository.standing(Oid::from_str(&answered.commit).unwrap()).to_string(), stands);
        assert_eq!(fs::read_to_string(root.path().join("name.md")).unwrap(), "theirs\n");
        is_whole(root.path());
    }
}

#[test]
fn a_commit_by_hand_on_what_is_not_let_go_of_yet_is_told_once() {
    let root = tempfile::tempdir().unwrap();
    let mut repository = born(root.path());
    write(&mut repository, "identity.md", "hers\n").unwrap();
    let theirs = commit_by_hand(root.path(), "name.md", "theirs\n", true);
    repository.end_batch();
    assert_eq!(repository.commit().unwrap(), Some(theirs.clone()));
    assert_eq!(repository.take_strange().len(), 1);
    drop(repository);
    let mut repository = open(root.path());
    assert_eq!(repository.anchor().unwrap().head.to_string(), theirs);
    assert_eq!(repository.take_strange(), []);
}

#[test]
fn another_history_put_in_place_meanwhile_costs_no_word_and_is_never_taken_for_hers() {
    for is_down in [true, false] {
        let root = tempfile::tempdir().unwrap();
        drop(born(root.path()));
        let mut repository = open(root.path());
        let hers = repository.commit().unwrap().unwrap();
        let lock = root.path().join(".git/refs/heads/main.lock");
        if is_down {
            repository.cut(Some(Step::Objects));
        } else {
            fs::write(&lock, "").unwrap();
        }
        repository
            .accept(&[change("identity.md", "hers\n")], &message("patch", "identity.md"), now())
            .unwrap();
        repository.flush(|_| None).unwrap();
        let running = if is_down {
            drop(repository);
            None
        } else {
            wait(&repository, |state| state.trouble.is_some());
            Some(repository)
        };
        let theirs = commit_by_hand(root.path(), "name.md", "theirs\n", false);
        let _ = fs::remove_file(&lock);
        let mut repository = running.unwrap_or_else(|| open(root.path()));
        wait(&repository, |state| state.moved || is_down);
        repository.settle().unwrap();
        assert_eq!(git(root.path(), &["rev-parse", "HEAD^"]).trim(), theirs);
        assert_eq!(fs::read_to_string(root.path().join("identity.md")).unwrap(), "hers\n");
        for _ in 0..2 {
            let why = repository.hindrance().unwrap();
            assert!(why.contains("another one") && why.contains(short(&hers)), "{why}");
            drop(repository);
            repository = open(root.path());
        }
        let head = Oid::from_str(&repository.commit().unwrap().unwrap()).unwrap();
        repository.settle_on(Anchor::at("main", head)).unwrap();
        assert_eq!(repository.hindrance(), None);
        drop(repository);
        assert_eq!(open(root.path()).hindrance(), None, "a person's word holds");
        is_whole(root.path());
    }
}

#[test]
fn trap_9_objects_are_packed_when_there_is_quiet_and_git_agrees() {
    let root = tempfile::tempdir().unwrap();
    let mut repository = born(root.path());
    for n in 0..520 {
        write(&mut repository, "values/x.md", &format!("{n}\n")).unwrap();
    }
    let packs = || fs::read_dir(root.path().join(".git/objects/pack")).unwrap().count();
    let end = std::time::Instant::now() + Duration::from_secs(30);
    while loose(root.path()).len() > 100 {
        assert!(std::time::Instant::now() < end, "{} loose, {} packs", loose(root.path()).len(), packs());
        std::thread::park_timeout(Duration::from_millis(20));
    }
    assert_eq!(packs(), 2, "one pack and its index");
    // what holds the repository open goes on, and so does a person's own tidying
    write(&mut repository, "values/x.md", "after\n").unwrap();
    git(root.path(), &["gc", "-q", "--prune=now"]);
    write(&mut repository, "values/x.md", "after gc\n").unwrap();
    let wanted = Wanted { path: Some("values/x.md"), limit: 1000, since: None };
    assert_eq!(repository.history(wanted).unwrap().len(), 522);
    assert_eq!(repository.diff(Wanted { limit: 500, ..wanted }).unwrap().matches("commit ").count(), 500);
    drop(repository);
    is_whole(root.path());
}

#[test]
fn trap_8_there_are_never_more_than_fifty_packs_when_it_is_quiet() {
    let root = tempfile::tempdir().unwrap();
    let mut repository = born(root.path());
    let packs = || {
        let files = fs::read_dir(root.path().join(".git/objects/pack")).unwrap().flatten();
        files.filter(|file| file.path().extension().is_some_and(|ending| ending == "pack")).count()
    };
    let mut most = 0;
    for batch in 0..70 {
        // so many at once that they are a pack
        for n in 0..16 {
            let path = format!("values/{n}.md");
            repository
                .accept(&[change(&path, &format!("{batch} {n}\n"))], &message("value", &path), now())
                .unwrap();
        }
        repository.flush(|_| None).unwrap();
        repository.settle().unwrap();
        most = most.max(packs());
    }
    let end = std::time::Instant::now() + Duration::from_secs(30);
    while packs() > 50 {
        assert!(std::time::Instant::now() < end, "{} packs", packs());
        std::thread::park_timeout(Duration::from_millis(20));
    }
    assert!(most > 50, "each batch was a pack: {most}");
    write(&mut repository, "values/x.md", "after\n").unwrap();
    drop(repository);
    is_whole(root.path());
    assert_eq!(git(root.path(), &["rev-list", "--count", "HEAD"]).trim(), (70 * 16 + 2).to_string());
}

#[test]
fn a_clock_that_goes_back_is_taken_as_standing_still() {
    let root = tempfile::tempdir().unwrap();
    let mut repository = born(root.path());
    let earlier = "2020-01-01T00:00:00Z".parse().unwrap();
    let receipt = repository.write(&[change("identity.md", "x\n")], &message("patch", "x"), earlier);
    assert!(receipt.unwrap().is_some());
    assert_eq!(git(root.path(), &["log", "-1", "--format=%cI"]).trim(), "2026-11-30T12:00:00Z");
}

#[test]
fn a_batch_that_cannot_be_flushed_is_refused_and_the_state_before_stands() {
    let root = tempfile::tempdir().unwrap();
    let mut repository = born(root.path());
    let before = repository.commit().unwrap();
    for text in ["one\n", "two\n"] {
        repository.accept(&[change("identity.md", text)], &message("patch", "x"), now()).unwrap();
    }
    let ticket = repository.ticket().unwrap();
    assert_eq!(look(repository.root(), "identity.md").unwrap().unwrap(), b"two\n");
    repository.cut(Some(Step::Accepted));
    repository.flush(|_| None).unwrap_err();
    repository.cut(None);
    assert_eq!(repository.why_not(ticket), Some("cut"));
    assert_eq!((repository.commit().unwrap(), repository.ticket()), (before, None));
    assert_eq!(look(repository.root(), "identity.md").unwrap().unwrap(), b"new\n");
    assert_eq!(write(&mut repository, "identity.md", "three\n").unwrap().unwrap().versions.sequence, 2);
    drop(repository);
    is_whole(root.path());
}

#[test]
fn a_log_that_cannot_be_read_is_put_aside_and_said() {
    let root = tempfile::tempdir().unwrap();
    drop(born(root.path()));
    fs::write(Log::place(&root.path().join(".git")), "no database ".repeat(1000)).unwrap();
    let mut repository = open(root.path());
    assert!(repository.notice().unwrap().contains("log.broken"), "{:?}", repository.notice());
    assert!(write(&mut repository, "identity.md", "x\n").unwrap().is_some());
    drop(flushed(repository));
    is_whole(root.path());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn whatever_batches_and_kills_the_history_is_what_was_answered(
        rounds in proptest::collection::vec((proptest::collection::vec((0..4_u8, any::<bool>()), 0..60), 0..7_usize), 1..5)
    ) {
        let root = tempfile::tempdir().unwrap();
        let mut repository = born(root.path());
        let (mut answered, mut files, mut number) = (Vec::new(), BTreeMap::new(), 0);
        for (batch, cut) in rounds {
            let step = tests::STEPS.get(cut).map(|(step, _)| *step);
            repository.cut(step);
            let mut accepted = Vec::new();
            for (file, is_last) in batch {
                number += 1;
                let (path, text) = (format!("values/{file}.md"), format!("{number}\n"));
                let receipt = repository.accept(&[change(&path, &text)], &message("value", &number.to_string()), now());
                accepted.push((receipt.unwrap().unwrap().commit, path, text));
                if is_last && repository.flush(|_| None).is_ok() {
                    for (commit, path, text) in accepted.drain(..) {
                        answered.push(commit);
                        files.insert(path, text);
                    }
                } else if is_last {
                    accepted.clear();
                }
            }
            // what was not flushed was not answered
            drop(repository);
            repository = open(root.path());
            let log = git(root.path(), &["log", "--reverse", "--format=%H"]);
            let log: Vec<_> = log.lines().skip(1).map(str::to_owned).collect();
            prop_assert_eq!(&log, &answered);
            for (path, text) in &files {
                prop_assert_eq!(&fs::read_to_string(root.path().join(path)).unwrap(), text);
            }
        }
        is_whole(root.path());
    }
}
