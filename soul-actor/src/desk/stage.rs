//! What the tests of the desk's troubles are played on: a folder of the self, a desk over it, and a clock to be set.

use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use ipc::{
    contract::soul::{Birth, Call, Called, Finding, Reply, Request, Rollback},
    hello::{Role, Secret},
    id::RequestId,
    server::Caller,
};
use jiff::{Timestamp, tz::TimeZone};
use serde_json::{Value, json};

use super::Desk;
use crate::{grant::RunKey, repository::Repository};

/// The time on the stage when nobody has set the clock.
pub(super) const NOON: &str = "2026-11-30T12:00:00Z";

/// A folder of the self.
pub(super) struct Stage {
    home: tempfile::TempDir,
    clock: Arc<AtomicI64>,
}

impl Stage {
    /// A folder with these files.
    pub(super) fn with(files: &[(&str, &str)]) -> Self {
        let stage = Self { home: tempfile::tempdir().unwrap(), clock: Arc::default() };
        stage.set_clock(NOON);
        for (path, text) in files {
            stage.put(path, text);
        }
        stage
    }

    /// A self that was born here.
    pub(super) fn born() -> (Self, Desk) {
        let stage = Self::with(&[]);
        let mut desk = stage.open();
        let Reply::Conceived { draft, .. } = ask(&mut desk, Role::Agent, Request::Conceive) else { panic!() };
        let birth = Birth { draft, wording: None, model: "offline".into() };
        assert!(matches!(ask(&mut desk, Role::Agent, Request::Birth(birth)), Reply::Born(_)));
        (stage, desk)
    }

    /// Another folder with the same in it, and a desk over that.
    pub(super) fn copied(&self) -> (Self, Desk) {
        let copy = Self::with(&[]);
        let mut left = vec![self.root().to_owned()];
        while let Some(folder) = left.pop() {
            let place = copy.root().join(folder.strip_prefix(self.root()).unwrap());
            fs::create_dir_all(&place).unwrap();
            for file in fs::read_dir(&folder).unwrap().flatten() {
                if file.file_type().unwrap().is_dir() {
                    left.push(file.path());
                } else {
                    fs::copy(file.path(), place.join(file.file_name())).unwrap();
                }
            }
        }
        let desk = copy.open();
        (copy, desk)
    }

    pub(super) fn root(&self) -> &Path {
        self.home.path()
    }

    pub(super) fn put(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(super) fn text(&self, path: &str) -> String {
        fs::read_to_string(self.root().join(path)).unwrap()
    }

    pub(super) fn set_clock(&self, to: &str) {
        self.clock.store(to.parse::<Timestamp>().unwrap().as_second(), Ordering::Relaxed);
    }

    /// A desk over what is there.
    pub(super) fn open(&self) -> Desk {
        let (key, clock) = (RunKey::derive(&Secret::fresh()), self.clock.clone());
        let clock = Box::new(move || Timestamp::from_second(clock.load(Ordering::Relaxed)).unwrap());
        match Repository::open(self.root(), TimeZone::UTC) {
            Ok(repository) => Desk::new(repository, TimeZone::UTC, key, clock).gated_by(crate::gate::open()),
            Err(error) => Desk::reading(self.root(), TimeZone::UTC, key, clock, ipc::exit::chain(&error)),
        }
    }

    /// The git command, with nothing of this machine's configuration.
    pub(super) fn git(&self, arguments: &[&str]) -> String {
        #[expect(clippy::disallowed_methods, reason = "the ordinary git looks at what was written")]
        let mut command = std::process::Command::new("git");
        command.arg("-C").arg(self.root()).args(arguments);
        command.envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1")]);
        command.envs([("GIT_AUTHOR_DATE", NOON), ("GIT_COMMITTER_DATE", NOON)]);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success(),
            "git {arguments:?}: {said}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        said
    }
}

/// Asks one question.
pub(super) fn ask(desk: &mut Desk, role: Role, request: Request) -> Reply {
    super::ask_alone(desk, &Caller { role, life: 1 }, &RequestId::fresh(), request)
}

/// Uses a tool.
pub(super) fn call(desk: &mut Desk, tool: &str, input: Value) -> Called {
    let call =
        Call { tool: tool.into(), input, run: None, session: None, model: "offline".into(), outside: false };
    match ask(desk, Role::Agent, Request::Call(call)) {
        Reply::Called(called) => called,
        other => panic!("{other:?}"),
    }
}

/// Writes in the journal.
pub(super) fn journal(desk: &mut Desk, entry: &str) -> Called {
    call(desk, "soul_journal", json!({"entry": entry}))
}

/// What is said to a person.
pub(super) fn notices(desk: &mut Desk) -> Vec<String> {
    ask(desk, Role::Soul, Request::Look);
    match ask(desk, Role::Supervisor, Request::Status) {
        Reply::Status(status) => status.notices,
        other => panic!("{other:?}"),
    }
}

/// What a check finds.
pub(super) fn check(desk: &mut Desk, repair: bool) -> Vec<Finding> {
    match ask(desk, Role::Supervisor, Request::Check { repair, human: true }) {
        Reply::Checked { findings } => findings,
        other => panic!("{other:?}"),
    }
}

/// Undoes a commit for a person; the paths it brought back.
pub(super) fn undo(desk: &mut Desk, commit: &str) -> Vec<String> {
    let commit = Some(commit.to_owned());
    let asked = Rollback { commit, apply: true, human: true, ..Rollback::default() };
    match ask(desk, Role::Supervisor, Request::Rollback(asked)) {
        Reply::RolledBack(told) => told.changes.into_iter().map(|change| change.path).collect(),
        other => panic!("{other:?}"),
    }
}
