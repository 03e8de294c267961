//! Migrating: brings the files of an older form to the newest one, in a commit of its own before the first write.

use jiff::Timestamp;
use tracing::info;

use super::Desk;
use crate::{
    migrate::{self, STEPS},
    plan::NotWritten,
    repository::short,
};

impl Desk {
    /// Brings the files to the newest form, if they have an older one; a person's edits of the same files come first, alone.
    pub(super) fn migrate(&mut self, now: Timestamp) -> Result<(), NotWritten> {
        if self.is_newest_form {
            return Ok(());
        }
        let Some(seen) = migrate::plan(self.repository.root(), &STEPS)? else {
            self.is_newest_form = true;
            return Ok(());
        };
        for change in &seen.changes {
            self.take_edit(&change.path, now)?;
        }
        let Some(migration) = migrate::plan(self.repository.root(), &STEPS)? else { return Ok(()) };
        // what goes back must be there before there is something to go back from
        self.flush();
        self.repository.keep_newest_as(&migration.reference())?;
        let Some(receipt) = self.repository.accept(&migration.changes, &migration.message(), now)? else {
            return Ok(());
        };
        info!(
            from = migration.from,
            to = migration.to,
            commit = receipt.commit,
            "the files have a newer form"
        );
        self.tell(&receipt);
        for left in &migration.left {
            self.outside.note(format!(
                "{left} (when her files were brought to form {}, commit `{}`)",
                migration.to,
                short(&receipt.commit)
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::stage::{Stage, check, journal, notices, undo};
    use crate::repository::Step;

    const SEED: &str =
        "{\n  \"bornAt\": \"2025-05-10T00:00:00.000Z\",\n  \"gift\": {\n    \"a\": 1.50\n  }\n}\n";
    const NEW: &str = "{\n  \"bornAt\": \"2025-05-10T00:00:00.000Z\",\n  \"gift\": {\n    \"a\": 1.50\n  },\n  \"soulSchemaVersion\": 1\n}\n";
    const BEFORE: &str = "refs/lisa/before-schema-1";

    fn original(with_git: bool) -> Stage {
        let stage = Stage::with(&[
            ("seed.json", SEED),
            ("name.md", "Lisa\n"),
            ("identity.md", "old\n"),
            (".gitignore", "mine\n"),
        ]);
        if with_git {
            stage.git(&["init", "-q", "-b", "main"]);
            stage.git(&["add", "-A"]);
            stage.git(&[
                "-c",
                "user.name=Lisa",
                "-c",
                "user.email=lisa@self",
                "commit",
                "-qm",
                "birth: initial soul snapshot @ 2025-05-10T00:00:00.000Z",
            ]);
        }
        stage
    }

    #[test]
    fn the_first_write_brings_an_old_home_to_the_new_form_in_one_commit_and_one_command_goes_back() {
        for with_git in [true, false] {
            let stage = original(with_git);
            let mut desk = stage.open();
            assert_eq!(notices(&mut desk), Vec::<String>::new());
            assert_eq!(stage.text("seed.json"), SEED, "looking changes nothing");
            let first_write = journal(&mut desk, "first");
            assert!(first_write.written.is_some());
            let first = if with_git {
                "birth: initial soul snapshot @ 2025-05-10T00:00:00.000Z"
            } else {
                "migration: soul via migration"
            };
            let log = stage.git(&["log", "--format=%s"]);
            assert_eq!(
                log,
                format!(
                    "journal: journal/2026-11-30.md via soul_journal\nmigrate: soul via migration\n{first}\n"
                )
            );
            assert_eq!(
                stage.git(&["log", "-1", "HEAD~1", "--format=%(trailers:key=Origin,valueonly)"]).trim(),
                "migration"
            );
            assert_eq!(stage.git(&["show", "--format=", "--name-only", "HEAD~1"]), "seed.json\n");
            assert_eq!(stage.git(&["rev-parse", BEFORE]), stage.git(&["rev-parse", "HEAD~2"]));
            assert_eq!(
                (stage.git(&["show", &format!("{BEFORE}:seed.json")]), stage.text("seed.json")),
                (SEED.to_owned(), NEW.to_owned())
            );
            // what was there with something else in it stays, and it is said
            assert_eq!(stage.text(".gitignore"), "mine\n");
            assert!(
                stage.git(&["log", "-1", "HEAD~1", "--format=%b"]).contains("`.gitignore` was there already")
            );
            assert!(
                first_write.output.contains("[noticed] `.gitignore` was there already"),
                "{first_write:?}"
            );
            assert!(check(&mut desk, false).iter().any(|found| found.what.contains(BEFORE)));

            assert!(journal(&mut desk, "second").written.is_some(), "once");
            let migrated = stage.git(&["rev-parse", "HEAD~2"]);
            assert_eq!(undo(&mut desk, migrated.trim()), ["seed.json"]);
            drop(desk);
            assert_eq!(stage.text("seed.json"), SEED, "as it was, byte for byte");
            assert!(stage.text("journal/2026-11-30.md").contains("second"), "and what came after stays");
            let before = stage.git(&["rev-parse", "HEAD"]);
            let mut desk = stage.open();
            assert!(journal(&mut desk, "third").written.is_some());
            assert_eq!(stage.text("seed.json"), NEW, "who writes again migrates again");
            assert_eq!(stage.git(&["rev-parse", BEFORE]), before);
            stage.git(&["fsck", "--strict"]);
        }
    }

    #[test]
    fn killed_at_any_step_a_migration_is_done_or_not_done() {
        for step in [Step::Accepted, Step::Logged, Step::Objects, Step::Reference, Step::Files, Step::Indexed]
        {
            let stage = original(true);
            let mut desk = stage.open();
            desk.repository.cut(Some(step));
            let answered = journal(&mut desk, "cut").written.is_some();
            assert_eq!(answered, step != Step::Accepted, "{step:?}");
            drop(desk);
            let mut desk = stage.open();
            let log = stage.git(&["log", "--format=%s"]);
            let done = log.contains("migrate: soul via migration\n");
            assert_eq!((done, stage.text("seed.json") == NEW), (answered, answered), "{step:?}");
            assert!(journal(&mut desk, "after").written.is_some());
            let log = stage.git(&["log", "--format=%s"]);
            assert_eq!(log.matches("migrate: ").count(), 1, "{step:?}: once");
            assert_eq!(
                stage.git(&["rev-parse", BEFORE]),
                stage.git(&["rev-list", "--max-parents=0", "HEAD"])
            );
            assert_eq!(stage.text("seed.json"), NEW);
            drop(desk);
            stage.git(&["fsck", "--strict"]);
        }
    }

    #[test]
    fn what_a_person_did_to_the_seed_meanwhile_is_theirs_and_kept() {
        let stage = original(true);
        let edited = SEED.replace("1.50", "2");
        stage.put("seed.json", &edited);
        let mut desk = stage.open();
        assert!(journal(&mut desk, "x").written.is_some());
        let log = stage.git(&["log", "--format=%s", "--", "seed.json"]);
        assert!(log.starts_with("migrate: soul via migration\nedit: seed.json via manual\n"), "{log}");
        assert_eq!(stage.git(&["show", &format!("{BEFORE}:seed.json")]), edited);
        assert_eq!(stage.text("seed.json"), NEW.replace("1.50", "2"));
    }
}
