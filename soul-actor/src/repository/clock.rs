//! The clock, as far as the history knows better: what it said at her newest write, and what a person has said of that.

use jiff::Timestamp;

use super::{Repository, Result, workfile};

/// Where it is kept that the clock is right and was not at one write: the seconds it said then.
const ACCEPTED: &str = "lisa/clock";

impl Repository {
    /// What the clock said at her newest write: of this life, or where none was yet, the one this life has found.
    pub(crate) fn newest_time(&self) -> Option<Timestamp> {
        Timestamp::from_second(self.clock_said?).ok()
    }

    /// Whether a person has said that the clock is right, though it said this at her newest write.
    pub(crate) fn is_clock_accepted(&self, newest: Timestamp) -> bool {
        let said = self.git.as_ref().and_then(|git| std::fs::read_to_string(git.path().join(ACCEPTED)).ok());
        said.and_then(|said| said.trim().parse::<i64>().ok()) == Some(newest.as_second())
    }

    /// Keeps that a person has said so.
    pub(crate) fn accept_clock(&self, newest: Timestamp) -> Result<()> {
        let place = self.git()?.path().join(ACCEPTED);
        let folder = place.parent().unwrap_or(&place);
        workfile::put(folder, "clock", Some(newest.as_second().to_string().as_bytes()))?;
        workfile::sync_folder(folder)
    }
}
