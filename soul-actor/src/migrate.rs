//! Migration: what an older form of the files asks for before the first write, step by step.
//!
//! ```text
//!  seed names form n ─▶ step n → n+1 ─▶ … ─▶ the newest ─▶ seed stamped ─▶ one commit, `migrate: soul via migration`
//! ```
//!
//! A step is a plain function of the files; what it wants goes into one record of the log with the stamp, so a kill
//! leaves all of it or nothing. It never overwrites: a file that it would make and that is there already, with something
//! else in it, stays, and the commit says so. The commit before is kept under a reference, and a person goes back with
//! one command, which brings back what the migration changed and keeps what came after.

use std::{collections::BTreeMap, path::Path};

use crate::{
    birth,
    message::{Message, Origin},
    repository::{Change, RepositoryError, Root, workfile::look},
    seed,
};

/// What a commit of a migration does.
pub(crate) const OP: &str = "migrate";

/// What brings the files from one form to the next: the first from form 0 to 1, and so on.
pub(crate) type Step = fn(&mut Files<'_>) -> Result<(), RepositoryError>;

/// The steps there are. A new form of the files is a new step, and the number of steps is the newest form.
pub(crate) const STEPS: [Step; seed::SCHEMA_VERSION as usize] = [of_the_original];

/// Form 0, the original's, which names no form: it is the same but for what git must not take, where that is not said.
fn of_the_original(files: &mut Files<'_>) -> Result<(), RepositoryError> {
    files.make(".gitignore", birth::IGNORED.as_bytes(), |there| {
        let there = String::from_utf8_lossy(there);
        birth::IGNORED.lines().all(|wanted| there.lines().any(|line| line.trim() == wanted))
    })
}

/// The files as a step finds them, and what it wants of them.
pub(crate) struct Files<'a> {
    root: &'a Root,
    changed: BTreeMap<String, Vec<u8>>,
    left: Vec<String>,
}

impl Files<'_> {
    /// What a file says, after the steps before.
    pub(crate) fn read(&self, path: &str) -> Result<Option<Vec<u8>>, RepositoryError> {
        match self.changed.get(path) {
            Some(bytes) => Ok(Some(bytes.clone())),
            None => look(self.root, path),
        }
    }

    /// Makes a file that is not there. One that is there stays; `serves` tells whether it does as well as it is.
    pub(crate) fn make(
        &mut self,
        path: &str,
        bytes: &[u8],
        serves: impl Fn(&[u8]) -> bool,
    ) -> Result<(), RepositoryError> {
        match self.read(path)? {
            None => {
                self.changed.insert(path.to_owned(), bytes.to_vec());
            }
            Some(there) if there == bytes || serves(&there) => {}
            Some(_) => {
                self.left.push(format!("`{path}` was there already, with something else in it, and stays"));
            }
        }
        Ok(())
    }

    /// Writes a file anew from what it says; where there is none, or `new` knows nothing better, nothing is done.
    pub(crate) fn rewrite(
        &mut self,
        path: &str,
        new: impl Fn(&[u8]) -> Option<Vec<u8>>,
    ) -> Result<(), RepositoryError> {
        if let Some(bytes) = self.read(path)?.as_deref().and_then(new) {
            self.changed.insert(path.to_owned(), bytes);
        }
        Ok(())
    }
}

/// What is to be done to bring the files to the newest form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Migration {
    /// The form they have.
    pub(crate) from: u64,
    /// The form they will have.
    pub(crate) to: u64,
    /// The files as they will be.
    pub(crate) changes: Vec<Change>,
    /// What was left as it was, each a sentence.
    pub(crate) left: Vec<String>,
}

impl Migration {
    /// The reference that keeps the commit before.
    pub(crate) fn reference(&self) -> String {
        reference(self.to)
    }

    /// What the commit says.
    pub(crate) fn message(&self) -> Message {
        let Self { from, to, left, .. } = self;
        let mut message = Message::of(OP, "soul", "migration", Origin::Migration);
        message.why = format!(
            "The files had the form {from} and have the form {to}. As they were before, `{}` keeps them; `lisa soul rollback --commit` with this commit goes back.",
            self.reference()
        );
        for left in left {
            message.why.push('\n');
            message.why.push_str(left);
        }
        message
    }
}

/// The reference that keeps the commit before the files had this form.
pub(crate) fn reference(to: u64) -> String {
    format!("refs/lisa/before-schema-{to}")
}

/// What brings the files to the newest form that `steps` lead to; nothing where they have it. A seed that is torn, or none,
/// says nothing of any form.
pub(crate) fn plan(root: &Root, steps: &[Step]) -> Result<Option<Migration>, RepositoryError> {
    let Some(bytes) = look(root, seed::PATH)? else { return Ok(None) };
    let Some(from) = seed::form(&bytes) else { return Ok(None) };
    let to = steps.len() as u64;
    let done = usize::try_from(from).unwrap_or(usize::MAX);
    let Some(steps) = steps.get(done..).filter(|steps| !steps.is_empty()) else { return Ok(None) };
    let mut files = Files { root, changed: BTreeMap::new(), left: Vec::new() };
    for step in steps {
        step(&mut files)?;
    }
    files.rewrite(seed::PATH, |seed| seed::stamp(seed, to))?;
    let changes =
        files.changed.into_iter().map(|(path, bytes)| Change { path, bytes: Some(bytes) }).collect();
    Ok(Some(Migration { from, to, changes, left: files.left }))
}

/// Whether an original gave birth here, as far as a migration has kept it.
pub(crate) fn was_of_the_original(root: &Path) -> bool {
    let (git_dir, name) = (root.join(".git"), reference(1));
    git_dir.join(&name).exists()
        || std::fs::read_to_string(git_dir.join("packed-refs"))
            .is_ok_and(|packed| packed.lines().any(|line| line.ends_with(&format!(" {name}"))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::Repository;
    use jiff::tz::TimeZone;

    fn home(files: &[(&str, &str)]) -> (tempfile::TempDir, Repository) {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            std::fs::write(folder.path().join(path), text).unwrap();
        }
        let repository = Repository::open(folder.path(), TimeZone::UTC).unwrap();
        (folder, repository)
    }

    fn changes(files: &[(&str, &str)], steps: &[Step]) -> (Vec<(String, String)>, Vec<String>) {
        let (_folder, repository) = home(files);
        let migration = plan(repository.root(), steps).unwrap().unwrap();
        assert!(migration.message().render().contains(&format!("{}", migration.to)));
        let text = |change: Change| (change.path, String::from_utf8(change.bytes.unwrap()).unwrap());
        (migration.changes.into_iter().map(text).collect(), migration.left)
    }

    #[test]
    fn a_home_of_the_original_gets_its_stamp_and_what_is_missing_and_nothing_else() {
        let stamped = |seed: &str| ("seed.json".to_owned(), seed.to_owned());
        let ignored = || (".gitignore".to_owned(), birth::IGNORED.to_owned());
        let check = |files: &[(&str, &str)], expected: &[(String, String)], left: usize| {
            let (changes, said) = changes(files, &STEPS);
            assert_eq!((changes.as_slice(), said.len()), (expected, left), "{said:?}");
        };
        let seed = ("seed.json", "{\n  \"bornAt\": \"x\"\n}");
        let new = || stamped("{\n  \"bornAt\": \"x\",\n  \"soulSchemaVersion\": 1\n}");
        check(&[seed], &[ignored(), new()], 0);
        check(&[seed, (".gitignore", birth::IGNORED)], &[new()], 0);
        check(&[seed, (".gitignore", &format!("mine\n{}", birth::IGNORED))], &[new()], 0);
        check(&[seed, (".gitignore", "mine\n")], &[new()], 1);
    }

    #[test]
    fn what_has_the_newest_form_or_none_is_left_alone() {
        for seed in [
            "{\"soulSchemaVersion\": 1}",
            "{\"soulSchemaVersion\": 7}",
            "torn",
            "[]",
            "{\"soulSchemaVersion\": \"x\"}",
        ] {
            let (_folder, repository) = home(&[("seed.json", seed)]);
            assert_eq!(plan(repository.root(), &STEPS).unwrap(), None, "{seed}");
        }
        let (_folder, repository) = home(&[]);
        assert_eq!(plan(repository.root(), &STEPS).unwrap(), None, "she is not born");
    }

    #[test]
    fn steps_go_on_from_each_other_and_begin_where_the_files_are() {
        fn one(files: &mut Files<'_>) -> Result<(), RepositoryError> {
            files.make("a.md", b"one\n", |_| false)?;
            files.rewrite("name.md", |old| Some([old, b"1"].concat()))
        }
        fn two(files: &mut Files<'_>) -> Result<(), RepositoryError> {
            files.make("a.md", b"two\n", |_| false)?;
            files.rewrite("name.md", |old| Some([old, b"2"].concat()))?;
            files.rewrite("absent.md", |_| Some(vec![]))
        }
        let owned = |files: &[(&str, &str)]| -> Vec<(String, String)> {
            files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
        };
        let (all, left) = changes(&[("seed.json", "{}"), ("name.md", "L")], &[one, two]);
        let stamp = "{\"soulSchemaVersion\":2}";
        assert_eq!(all, owned(&[("a.md", "one\n"), ("name.md", "L12"), ("seed.json", stamp)]));
        assert_eq!(left.len(), 1, "what the first step made is there already for the second");
        let (some, left) = changes(
            &[("seed.json", "{\"soulSchemaVersion\": 1 }"), ("name.md", "L"), ("a.md", "x")],
            &[one, two],
        );
        assert_eq!(some, owned(&[("name.md", "L2"), ("seed.json", "{\"soulSchemaVersion\": 2 }")]));
        assert!(left[0].contains("`a.md`") && left[0].contains("stays"), "{left:?}");
    }
}
