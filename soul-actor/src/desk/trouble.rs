//! Trouble: what keeps the desk from writing for a while, said while it lasts and looked at until it is over.
//!
//! ```text
//!  the disk takes no write ─▶ refused, told ─▶ tried again ─▶ it goes on        (repository/refusal.rs)
//!  the repository cannot be opened ─▶ she is read ─▶ opened again before the next write, and at every look
//!  the clock is far behind her newest change ─▶ refused, told ─▶ it is right again, or a person says that it is
//! ```

use ipc::contract::soul::{Finding, Severity};
use jiff::SignedDuration;

use super::Desk;
use crate::{
    check,
    held::iso,
    plan::NotWritten,
    repository::{Repository, cause},
};

/// How far the clock may be behind her newest change: one that is set right by a second or by minutes is taken as standing
/// still. Beyond, what she writes would stand under days that are not so.
const CLOCK_BEHIND_MAX: SignedDuration = SignedDuration::from_mins(15);

impl Desk {
    /// Why nothing can be written just now, if so.
    pub(crate) fn trouble(&self) -> Option<String> {
        let hindrance = self.outside.hindrance.clone();
        self.broken.clone().or_else(|| self.repository.notice()).or(hindrance)
    }

    /// Opens the repository again, where it could not be opened: the disk may have been away, or somebody has mended it.
    pub(super) fn reopen(&mut self) {
        if self.broken.is_none() {
            return;
        }
        let root = self.repository.root().to_path_buf();
        drop(std::mem::replace(&mut self.repository, Repository::closed(&root, self.zone.clone())));
        match Repository::open(&root, self.zone.clone()) {
            Ok(repository) => {
                tracing::info!("the repository can be opened again");
                (self.repository, self.broken) = (repository, None);
            }
            Err(error) => self.broken = Some(cause::sentence(&error)),
        }
    }

    /// Why nothing is written while the clock is as it is, if so. Before it is looked at, [`Self::reopen`].
    pub(super) fn clock_is_wrong(&self) -> Option<String> {
        let (newest, now) = (self.repository.newest_time()?, (self.clock)());
        let is_behind = newest.duration_since(now) > CLOCK_BEHIND_MAX;
        (is_behind && !self.repository.is_clock_accepted(newest)).then(|| {
            format!(
                "the clock says {}, and her newest change is of {}; set the clock right, or, if it is right, accept it with `lisa soul check --repair`",
                iso(now),
                iso(newest)
            )
        })
    }

    /// What a check says of the clock; with `repair` a person has said that it is right.
    pub(super) fn check_clock(&mut self, repair: bool) -> Result<Option<Finding>, NotWritten> {
        let (Some(what), Some(newest)) = (self.clock_is_wrong(), self.repository.newest_time()) else {
            return Ok(None);
        };
        if !repair {
            let remedy = "nothing is written until then";
            return Ok(Some(check::found(Severity::Broken, "", &what, remedy)));
        }
        self.repository.accept_clock(newest)?;
        let done = "the clock is taken for right, and she writes again";
        Ok(Some(check::mended(Severity::Broken, "", &what, done)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::stage::{Stage, check, journal, notices};

    #[test]
    fn a_clock_that_went_back_far_is_refused_and_named_until_it_is_right_again() {
        let (stage, mut desk) = Stage::born();
        assert!(journal(&mut desk, "noon").written.is_some());
        let head = stage.git(&["rev-parse", "HEAD"]);
        stage.set_clock("2026-11-30T11:50:00Z");
        assert!(journal(&mut desk, "a few minutes are taken as standing still").written.is_some());
        assert_eq!(
            stage.git(&["log", "-1", "--format=%cI %aI"]),
            "2026-11-30T12:00:00Z 2026-11-30T11:50:00Z\n"
        );

        let head = (head, stage.git(&["rev-parse", "HEAD"])).1;
        for again in [false, true] {
            if again {
                drop(desk);
                desk = stage.open();
            }
            stage.set_clock("2020-01-01T00:00:00Z");
            let refused = journal(&mut desk, "years ago");
            assert!(
                refused.failed
                    && refused.output.contains("2020-01-01")
                    && refused.output.contains("set the clock right"),
                "{refused:?}"
            );
            assert!(
                notices(&mut desk).iter().any(|notice| notice.contains("the clock says")),
                "{:?}",
                notices(&mut desk)
            );
            assert!(check(&mut desk, false).iter().any(|found| found.what.contains("the clock says")));
            assert!(!stage.root().join("journal/2020-01-01.md").exists());
            assert_eq!(stage.git(&["rev-parse", "HEAD"]), head, "the old state stands");

            stage.set_clock("2026-11-30T12:01:00Z");
            assert_eq!(notices(&mut desk), Vec::<String>::new(), "no longer");
        }
        assert!(journal(&mut desk, "right again").written.is_some());
        assert!(stage.text("journal/2026-11-30.md").contains("right again"));
    }

    #[test]
    fn a_clock_that_was_ahead_once_is_no_prison() {
        let (stage, mut desk) = Stage::born();
        stage.set_clock("2035-01-01T00:00:00Z");
        assert!(journal(&mut desk, "too early by years").written.is_some());
        stage.set_clock("2026-11-30T12:05:00Z");
        assert!(journal(&mut desk, "now").failed);
        let found = check(&mut desk, true);
        assert!(
            found.iter().any(|found| found.mended && found.what.contains("the clock says")),
            "{found:#?}"
        );
        assert!(journal(&mut desk, "now").written.is_some());
        drop(desk);
        let mut desk = stage.open();
        assert!(journal(&mut desk, "and in the next life").written.is_some());
        assert_eq!(notices(&mut desk), Vec::<String>::new());
        // what walks a history by time does not lose its way
        let times = stage.git(&["log", "--format=%ct"]);
        let times: Vec<i64> = times.lines().map(|time| time.parse().unwrap()).collect();
        assert!(times.is_sorted_by(|newer, older| newer >= older), "{times:?}");
        stage.set_clock("2026-11-29T12:00:00Z");
        assert!(
            journal(&mut desk, "yesterday").failed,
            "and a clock that goes back from here is noticed again"
        );
    }

    #[test]
    fn a_repository_that_could_not_be_opened_is_opened_before_the_next_write() {
        let (stage, mut desk) = Stage::born();
        assert!(journal(&mut desk, "one").written.is_some());
        drop(desk);
        // a folder where the log should be: nothing can be opened there, whoever looks
        let (log, aside) = (stage.root().join(".git/lisa/log.sqlite"), stage.root().join(".git/lisa/aside"));
        std::fs::rename(&log, &aside).unwrap();
        std::fs::create_dir(&log).unwrap();
        let mut desk = stage.open();
        assert!(journal(&mut desk, "two").failed);
        assert!(
            notices(&mut desk).iter().any(|notice| notice.contains("could not open the log")),
            "{:?}",
            notices(&mut desk)
        );
        assert!(desk.trouble().is_some());
        let history =
            super::super::stage::call(&mut desk, "soul_history", serde_json::json!({"field": "all"}));
        assert!(history.output.contains("journal/2026-11-30.md"), "what git has is read: {history:?}");
        std::fs::remove_dir(&log).unwrap();
        std::fs::rename(&aside, &log).unwrap();
        assert!(journal(&mut desk, "two").written.is_some());
        assert_eq!((notices(&mut desk), desk.trouble()), (vec![], None));
    }
}
