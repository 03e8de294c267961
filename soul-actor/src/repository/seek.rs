//! What the side index is asked: which commits touched a path, which was the newest at a time, which number one has.
//!
//! Nothing here costs more because the history is longer. Times of our commits never go back, so one that is sought by
//! time is found by halving. Those that others make may go back: each place where they do is noted as a descent, and
//! between two descents they rise.

use std::time::Duration;

use git2::Oid;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::{Repository, index::Index};

/// How long is waited for the side index before the history is walked instead.
const INDEXING: Duration = Duration::from_millis(50);

/// How many commits older than asked for end a look: clocks go back a little, not for long.
const OLDER_MAX: usize = 64;

/// A commit that touched a path: its number, and its id.
pub(super) type Touched = (i64, Oid);

impl Repository {
    /// Asks the side index about the history, where it is of git's newest commit; else the history is to be walked. The
    /// answer is of one state of it, however far it is brought meanwhile.
    pub(super) fn indexed<T>(&self, ask: impl FnOnce(&Index) -> rusqlite::Result<T>) -> Option<T> {
        let newest = self.head().ok()??.id();
        // what was missed a moment ago is being made, which takes longer than anybody waits here
        if self.missed.get() != Some(newest) {
            self.wait_indexed();
        }
        let answer = self.ask_index(|index| {
            let _one_state = index.connection.unchecked_transaction()?;
            let is_newest = index.head()?.is_some_and(|(head, _)| head == newest);
            is_newest.then(|| ask(index)).transpose()
        });
        let answer = answer.flatten();
        if answer.is_none() && self.missed.replace(Some(newest)) != Some(newest) {
            // no batch tells of what somebody else has committed: one without writes has the thread behind look for it
            self.send(vec![], false, false);
        }
        answer
    }

    /// Waits a moment until what was flushed is in the side index; it follows the files at once, but when it is made anew.
    fn wait_indexed(&self) {
        self.hand_over();
        let flushed = self.position - self.batch.len() as u64;
        self.progress.wait(INDEXING, |state| {
            state.indexed >= flushed || state.trouble.is_some() || state.moved || state.ended
        });
    }
}

impl Index {
    /// The commits that touched a file or folder, or all; newest first.
    pub(super) fn commits(
        &self,
        path: Option<&str>,
        limit: usize,
        since: Option<i64>,
    ) -> rusqlite::Result<Vec<Oid>> {
        let sql = match path {
            Some(_) => {
                "SELECT c.id, c.time FROM paths p JOIN touched t ON t.path = p.number JOIN commits c ON c.sequence = t.sequence
                 WHERE p.path = ?1 ORDER BY t.sequence DESC"
            }
            None => "SELECT id, time FROM commits WHERE ?1 IS NULL ORDER BY sequence DESC",
        };
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query([path])?;
        let (mut found, mut older) = (Vec::new(), 0);
        while found.len() < limit && older < OLDER_MAX {
            let Some(row) = rows.next()? else { break };
            if since.is_some_and(|since| row.get::<_, i64>(1).is_ok_and(|time| time < since)) {
                older += 1;
                continue;
            }
            found.extend(Oid::from_bytes(&row.get::<_, Vec<u8>>(0)?).ok());
        }
        Ok(found)
    }

    /// The commits that touched a file, newest first.
    pub(super) fn touches(&self, path: &str, max: usize) -> rusqlite::Result<Vec<Oid>> {
        let Some(number) = self.path_number(path)? else { return Ok(vec![]) };
        Ok(self.touches_between(number, 0, max, "DESC")?.into_iter().map(|(_, id)| id).collect())
    }

    /// The commits that touched a path after that one, oldest first.
    pub(super) fn touches_after(&self, path: i64, after: i64, max: usize) -> rusqlite::Result<Vec<Touched>> {
        self.touches_between(path, after, max, "ASC")
    }

    /// The commits that touched any of these files after that one, newest first.
    pub(super) fn touches_since(
        &self,
        paths: &[String],
        after: i64,
        max: usize,
    ) -> rusqlite::Result<Vec<Oid>> {
        let (mut found, mut after): (Vec<Touched>, _) = (Vec::new(), after);
        for path in paths {
            let Some(number) = self.path_number(path)? else { continue };
            found.extend(self.touches_between(number, after, max, "DESC")?);
            found.sort_unstable_by_key(|(sequence, _)| std::cmp::Reverse(*sequence));
            found.dedup();
            found.truncate(max);
            // once there are enough, only newer ones count, so that many files cost little more than one
            if let Some((oldest, _)) = found.last().filter(|_| found.len() == max) {
                after = *oldest;
            }
        }
        Ok(found.into_iter().map(|(_, id)| id).collect())
    }

    fn touches_between(
        &self,
        path: i64,
        after: i64,
        max: usize,
        order: &str,
    ) -> rusqlite::Result<Vec<Touched>> {
        let sql = format!(
            "SELECT t.sequence, c.id FROM touched t CROSS JOIN commits c ON c.sequence = t.sequence
             WHERE t.path = ?1 AND t.sequence > ?2 ORDER BY t.sequence {order} LIMIT ?3"
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let max = i64::try_from(max).unwrap_or(i64::MAX);
        let rows = statement
            .query_map([path, after, max], |row| Ok((row.get(0)?, id(row.get_ref(1)?.as_blob()?)?)))?;
        rows.collect()
    }

    /// The newest commit that is not younger than `time`, in seconds.
    pub(super) fn newest_before(&self, time: i64) -> rusqlite::Result<Option<Oid>> {
        let sql = "SELECT sequence FROM descents WHERE time <= ?1 ORDER BY sequence DESC LIMIT 1";
        let start: Option<i64> =
            self.connection.prepare_cached(sql)?.query_row([time], |row| row.get(0)).optional()?;
        let Some(start) = start else { return Ok(None) };
        let sql = "SELECT coalesce((SELECT min(sequence) FROM descents WHERE sequence > ?1),
                                   (SELECT max(sequence) + 1 FROM commits))";
        let end: i64 = self.connection.prepare_cached(sql)?.query_row([start], |row| row.get(0))?;
        // the first of these is old enough, and they rise
        let (mut within, mut beyond) = (start, end);
        while beyond - within > 1 {
            let middle = within + (beyond - within) / 2;
            if self::time(&self.connection, middle)?.is_some_and(|then| then <= time) {
                within = middle;
            } else {
                beyond = middle;
            }
        }
        self.id(within)
    }

    /// The number of a commit, if it is one of hers; `time` is its own, in seconds.
    pub(super) fn sequence(&self, commit: Oid, time: i64) -> rusqlite::Result<Option<i64>> {
        let sql = "SELECT sequence FROM commits WHERE time = ?1 AND id = ?2";
        let mut statement = self.connection.prepare_cached(sql)?;
        statement.query_row(params![time, commit.as_bytes()], |row| row.get(0)).optional()
    }

    /// The commit of that number.
    pub(super) fn id(&self, sequence: i64) -> rusqlite::Result<Option<Oid>> {
        let mut statement = self.connection.prepare_cached("SELECT id FROM commits WHERE sequence = ?1")?;
        statement.query_row([sequence], |row| id(row.get_ref(0)?.as_blob()?)).optional()
    }

    /// How the index calls a file or folder, if it has seen it.
    pub(super) fn path_number(&self, path: &str) -> rusqlite::Result<Option<i64>> {
        let mut statement = self.connection.prepare_cached("SELECT number FROM paths WHERE path = ?1")?;
        statement.query_row([path], |row| row.get(0)).optional()
    }
}

/// The time of the commit of that number, in seconds.
pub(super) fn time(connection: &Connection, sequence: i64) -> rusqlite::Result<Option<i64>> {
    let mut statement = connection.prepare_cached("SELECT time FROM commits WHERE sequence = ?1")?;
    statement.query_row([sequence], |row| row.get(0)).optional()
}

fn id(bytes: &[u8]) -> rusqlite::Result<Oid> {
    Oid::from_bytes(bytes).map_err(|_| rusqlite::Error::InvalidQuery)
}
