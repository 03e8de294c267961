//! What the side index answers, beside what a walk along the history finds: on histories as people leave them, with
//! times that go back, merges, deletions and files that are no documents.

use std::{collections::BTreeMap, path::Path};

use git2::{ObjectType, Oid, Repository as Git, Signature, Time};
use ipc::contract::soul::Entry;
use jiff::Timestamp;
use proptest::prelude::*;

use super::{
    index::Index,
    read::Touch,
    tests::{born, change, flushed, message, now, open, write},
    workfile::look,
    *,
};
use crate::blame::{self, Trace};

/// The files of these histories; the last two are no documents.
const PATHS: [&str; 6] =
    ["identity.md", "values/a.md", "values/b.md", "journal/2026-11-30.md", "notes.txt", "seed.json"];

/// One commit of a history.
#[derive(Debug, Clone)]
struct Made {
    /// How much later than the one before it, in seconds.
    later: i64,
    /// The file that it changes.
    path: usize,
    /// What the file then says; nothing removes it.
    says: Option<Vec<&'static str>>,
    /// It merges a commit that changes this file besides.
    merges: Option<usize>,
}

fn made() -> impl Strategy<Value = Made> {
    let line = prop::sample::select(vec!["a", "b", "c", "d", "e"]);
    let says = prop::option::weighted(0.85, prop::collection::vec(line, 0..8));
    (-3..4_i64, 0..PATHS.len(), says, prop::option::weighted(0.15, 0..PATHS.len()))
        .prop_map(|(later, path, says, merges)| Made { later, path, says, merges })
}

/// Makes a history; gives all its commits, those beside it too.
fn make(root: &Path, history: &[Made]) -> Vec<Oid> {
    let git = Git::init_opts(root, git2::RepositoryInitOptions::new().initial_head("main")).unwrap();
    let (mut files, mut all, mut newest) = (BTreeMap::new(), Vec::new(), None);
    let mut time = now().as_second();
    for (n, made) in history.iter().enumerate() {
        time += made.later;
        let first = newest.map(|id| git.find_commit(id).unwrap());
        let beside = made.merges.zip(first.as_ref()).map(|(path, first)| {
            files.insert(PATHS[path], format!("beside {n}\n"));
            let side = commit(&git, &files, &[first], time);
            all.push(side);
            git.find_commit(side).unwrap()
        });
        match &made.says {
            Some(says) => drop(files.insert(PATHS[made.path], format!("{}\n", says.join("\n")))),
            None => drop(files.remove(PATHS[made.path])),
        }
        let parents: Vec<_> = first.iter().chain(&beside).collect();
        let id = commit(&git, &files, &parents, time);
        all.push(id);
        newest = Some(id);
    }
    git.reference("refs/heads/main", newest.unwrap(), true, "made").unwrap();
    let mut checkout = git2::build::CheckoutBuilder::new();
    git.checkout_head(Some(checkout.force())).unwrap();
    all
}

fn commit(git: &Git, files: &BTreeMap<&str, String>, parents: &[&Commit<'_>], time: i64) -> Oid {
    let mut index = git2::Index::new().unwrap();
    for (path, text) in files {
        let entry = git2::IndexEntry {
            ctime: git2::IndexTime::new(0, 0),
            mtime: git2::IndexTime::new(0, 0),
            dev: 0,
            ino: 0,
            mode: 0o100_644,
            uid: 0,
            gid: 0,
            file_size: 0,
            id: git.blob(text.as_bytes()).unwrap(),
            flags: 0,
            flags_extended: 0,
            path: path.as_bytes().to_vec(),
        };
        index.add(&entry).unwrap();
    }
    let tree = git.find_tree(index.write_tree_to(git).unwrap()).unwrap();
    let who = Signature::new("somebody", "x@y", &Time::new(time, 0)).unwrap();
    let bytes = git.commit_create_buffer(&who, &who, "by hand", &tree, parents).unwrap();
    git.odb().unwrap().write(ObjectType::Commit, &bytes).unwrap()
}

/// Makes the side index of what is there.
fn index(root: &Path) -> Index {
    let git = Git::open(root).unwrap();
    std::fs::create_dir_all(git.path().join("lisa")).unwrap();
    let mut index = Index::open(git.path()).unwrap();
    let head = git.head().unwrap().target().unwrap();
    let missing = index.missing(&git, head).unwrap();
    index.bring(&git, &missing, &HashMap::new()).unwrap();
    index
}

/// A repository that has a writer, and so asks its side index.
fn asking(root: &Path) -> Repository {
    let mut repository = open(root);
    repository.start_writing().unwrap();
    assert!(repository.indexed(|_| Ok(())).is_some(), "the side index is of the newest commit");
    repository
}

fn ids(entries: &[Entry]) -> Vec<String> {
    entries.iter().map(|entry| entry.commit.clone()).collect()
}

fn told(touches: impl Iterator<Item = Result<Touch>>) -> Vec<(String, Option<Vec<u8>>)> {
    touches.map(|touch| touch.map(|touch| (touch.entry.commit, touch.bytes)).unwrap()).collect()
}

/// The commit of each line of a work file, followed back along the history.
fn traced(repository: &Repository, path: &str, file: &[u8]) -> Vec<Option<String>> {
    let versions = told(repository.walk_of(path));
    let follow = |at| {
        let mut trace = Trace::new(file.to_vec(), at).unwrap();
        let met = versions.iter().take_while(|(_, bytes)| trace.step(bytes.as_deref().unwrap_or(b"")));
        met.last().map(|(commit, _)| commit.clone())
    };
    (0..blame::lines(file).len()).map(follow).collect()
}

/// The same by annotation.
fn annotated(repository: &Repository, path: &str, file: &[u8]) -> Vec<Option<String>> {
    let line = |at| match repository.brought(path, file, at).expect("the index can tell") {
        Brought::By(entry) => Some(entry.commit),
        Brought::ByNone => None,
    };
    (0..blame::lines(file).len()).map(line).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn the_index_answers_what_a_walk_finds(
        history in prop::collection::vec(made(), 1..24), annotated_up_to in 0..24_usize, edit in "[a-f\n]{0,12}"
    ) {
        let root = tempfile::tempdir().unwrap();
        let up_to = annotated_up_to.min(history.len());
        if up_to > 0 {
            // annotations that are behind, as after a busy hour
            make(root.path(), history.get(..up_to).unwrap());
            let mut index = index(root.path());
            let git = Git::open(root.path()).unwrap();
            while index.annotate(&git) {}
            std::fs::remove_file(root.path().join(".git/index")).unwrap();
        }
        let all = make(root.path(), &history);
        drop(index(root.path()));
        let repository = asking(root.path());
        for path in PATHS {
            prop_assert_eq!(told(repository.commits_of(path, 99)), told(repository.walk_of(path)), "{}", path);
            prop_assert_eq!(repository.commits_of(path, 2).count(), repository.walk_of(path).take(2).count());
            let wanted = Wanted { path: Some(path), limit: 99, since: None };
            let walked = repository.walk(wanted).unwrap();
            let walked: Vec<_> = walked.iter().map(|commit| commit.id().to_string()).collect();
            prop_assert_eq!(ids(&repository.history(wanted).unwrap()), walked);
            let file = look(repository.root(), path).unwrap().unwrap_or_default();
            for file in [file.as_slice(), edit.as_bytes(), &[edit.as_bytes(), &file].concat()] {
                prop_assert_eq!(annotated(&repository, path, file), traced(&repository, path, file), "{}", path);
            }
        }
        let paths = PATHS.map(str::to_owned);
        for id in all {
            let id = id.to_string();
            prop_assert_eq!(repository.find_commit(&id).unwrap(), Ok(id.clone()));
            for (paths, max) in [(&paths[..], 99), (&paths[..], 3), (&paths[1..2], 99)] {
                let walked = repository.walk_since(paths, Oid::from_str(&id).unwrap(), max).unwrap();
                prop_assert_eq!(repository.touches_since(paths, &id, max).unwrap(), walked);
            }
        }
        for later in -80..80 {
            let time = Timestamp::from_second(now().as_second() + later).unwrap();
            let walked = repository.walk_before(time).unwrap().map(|id| id.to_string());
            prop_assert_eq!(repository.newest_before(time).unwrap(), walked, "{}", later);
        }
    }
}

#[test]
fn commits_of_hers_and_of_somebody_else_are_both_annotated_behind_her_back() {
    let root = tempfile::tempdir().unwrap();
    let mut repository = born(root.path());
    write(&mut repository, "identity.md", "one\ntwo\n").unwrap();
    std::fs::write(root.path().join("identity.md"), "zero\none\ntwo\n").unwrap();
    let files = BTreeMap::from([("identity.md", "zero\none\ntwo\n".to_owned())]);
    let git = Git::open(root.path()).unwrap();
    let head = git.head().unwrap().peel_to_commit().unwrap();
    let by_hand = commit(&git, &files, &[&head], now().as_second());
    git.reference("refs/heads/main", by_hand, true, "by hand").unwrap();
    let file = b"zero\none\ntwo\nthree\n";
    // a question finds the commit of somebody else, and has it noted for the next one
    let told = at_last(&repository, || {
        let told = (0..4).map(|at| match repository.brought("identity.md", file, at)? {
            Brought::By(entry) => Some(entry.op),
            Brought::ByNone => Some("none".to_owned()),
        });
        told.collect::<Option<Vec<_>>>()
    });
    assert_eq!(told, ["by hand", "patch", "patch", "none"]);
    let receipt =
        repository.accept(&[change("identity.md", "one\n")], &message("patch", "x"), now()).unwrap();
    let repository = flushed(repository);
    assert_eq!(repository.commits_of("identity.md", 9).count(), 4);
    assert!(repository.find_commit(&receipt.unwrap().commit).unwrap().is_ok());
}

#[test]
fn what_is_too_large_for_a_document_is_followed_back_instead() {
    let root = tempfile::tempdir().unwrap();
    drop(born(root.path()));
    let large = "line\n".repeat(20_001);
    let mut repository = open(root.path());
    write(&mut repository, "identity.md", &large).unwrap();
    write(&mut repository, "identity.md", "line\n").unwrap();
    drop(repository);
    let repository = asking(root.path());
    assert!(repository.brought("identity.md", b"line\n", 0).is_none());
    assert!(repository.brought("name.md", b"Lisa\n", 0).is_some());
}

/// What comes of it at last.
fn at_last<T>(repository: &Repository, mut look: impl FnMut() -> Option<T>) -> T {
    let end = std::time::Instant::now() + Duration::from_secs(20);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(std::time::Instant::now() < end, "the side index follows");
        repository.progress.wait(Duration::from_millis(10), |_| false);
    }
}

#[test]
fn no_question_is_prepared_again_each_time_it_is_asked() {
    let root = tempfile::tempdir().unwrap();
    drop(born(root.path()));
    let index = Index::read(&root.path().join(".git")).unwrap();
    let sql =
        "SELECT t.sequence FROM touched t CROSS JOIN commits c ON c.sequence = t.sequence WHERE t.path = ?1";
    for path in 1..4_i64 {
        let mut statement = index.connection.prepare_cached(sql).unwrap();
        statement.query_map([path], |row| row.get::<_, i64>(0)).unwrap().for_each(drop);
        assert_eq!(statement.get_status(rusqlite::StatementStatus::RePrepare), 0);
    }
}
