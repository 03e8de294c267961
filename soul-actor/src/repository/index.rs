//! The side index: which commits touched which path, so that history costs what it shows.
//!
//! It is a cache beside the log, in `.git/lisa/index.sqlite`: where it is not of HEAD, it is brought there from git, and
//! where it cannot be read, it is made anew. It is written behind the log and flushed with everything else before the
//! log lets go of a record, so the answers of requests in it are as durable as the commits.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use git2::{Oid, Repository as Git, Tree};
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, params};

use super::{RepositoryError, Result, Versions, versions};
use crate::message::Said;

/// Which layout the database has, as `user_version`; another one is made anew.
const LAYOUT: u32 = 1;

/// How many requests are remembered with their answers: weeks of the most talkative life, and whoever asks again does
/// so within minutes. Older ones are still found by the trailers of git, by hand.
pub(super) const REQUESTS_MAX: usize = 20_000;

/// How many commits older than asked for end a look: clocks go back a little, not for long.
const OLDER_MAX: usize = 64;

/// How many commits one transaction brings in while the index is made.
const ROWS_MAX: usize = 2_000;

const TABLES: &str = "
    CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1), id BLOB NOT NULL, sequence INTEGER NOT NULL,
        prompt_version INTEGER NOT NULL);
    CREATE TABLE commits (sequence INTEGER PRIMARY KEY, id BLOB NOT NULL, time INTEGER NOT NULL);
    CREATE TABLE paths (number INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE);
    CREATE TABLE touched (path INTEGER NOT NULL, sequence INTEGER NOT NULL, PRIMARY KEY (path, sequence)) WITHOUT ROWID;
    CREATE TABLE requests (id TEXT PRIMARY KEY, sequence INTEGER NOT NULL, answer TEXT) WITHOUT ROWID;
    CREATE INDEX requests_by_age ON requests (sequence);
";

/// One commit, as the index keeps it.
#[derive(Debug, Clone)]
pub(super) struct Row {
    /// Its id.
    pub(super) id: Oid,
    /// The versions it made.
    pub(super) versions: Versions,
    /// Its time in seconds.
    pub(super) time: i64,
    /// The files it touched.
    pub(super) paths: Vec<String>,
    /// The request it answered.
    pub(super) request: Option<String>,
    /// The answer, as JSON.
    pub(super) answer: Option<String>,
}

/// What came of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct First {
    /// The commit.
    pub(super) commit: Oid,
    /// The answer as it was given, as JSON, where it is known.
    pub(super) answer: Option<String>,
}

/// The index, open.
pub(super) struct Index {
    connection: Connection,
}

impl Index {
    /// Where the index of a repository lies.
    pub(super) fn place(git_dir: &Path) -> PathBuf {
        git_dir.join("lisa/index.sqlite")
    }

    /// Opens it for writing; one that cannot be read, or is of another layout, is made anew.
    pub(super) fn open(git_dir: &Path) -> Result<Self> {
        let place = Self::place(git_dir);
        if let Ok(index) = Self::try_open(&place) {
            return Ok(index);
        }
        for ending in ["", "-wal", "-shm"] {
            // what is not there is not in the way
            let _ = std::fs::remove_file(format!("{}{ending}", place.display()));
        }
        Self::try_open(&place).map_err(RepositoryError::log("open the index"))
    }

    fn try_open(place: &Path) -> rusqlite::Result<Self> {
        let connection = Connection::open(place)?;
        // consistent after a crash in any case; the flush of everything, before the log lets go, makes it durable
        connection.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0; PRAGMA temp_store = MEMORY;",
        )?;
        let layout: u32 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        if layout == 0 {
            connection.execute_batch(&format!("BEGIN; {TABLES} PRAGMA user_version = {LAYOUT}; COMMIT;"))?;
        } else if layout != LAYOUT {
            return Err(rusqlite::Error::InvalidQuery);
        }
        let index = Self { connection };
        index.head()?;
        Ok(index)
    }

    /// Opens it for reading, where there is one.
    pub(super) fn read(git_dir: &Path) -> Option<Self> {
        let place = Self::place(git_dir);
        if !place.exists() {
            return None;
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let index = Self { connection: Connection::open_with_flags(place, flags).ok()? };
        index.head().ok()?;
        Some(index)
    }

    /// The commit it is of, with its versions.
    pub(super) fn head(&self) -> rusqlite::Result<Option<(Oid, Versions)>> {
        let sql = "SELECT id, sequence, prompt_version FROM head";
        let mut statement = self.connection.prepare_cached(sql)?;
        let row = statement.query_row([], |row| {
            let id: Vec<u8> = row.get(0)?;
            let versions = Versions {
                sequence: row.get::<_, i64>(1)?.cast_unsigned(),
                prompt_version: row.get::<_, i64>(2)?.cast_unsigned(),
            };
            Ok(Oid::from_bytes(&id).ok().map(|id| (id, versions)))
        });
        Ok(row.optional()?.flatten())
    }

    /// The versions of a commit, if the index is of that.
    pub(super) fn versions(&self, commit: Oid) -> Option<Versions> {
        let (head, versions) = self.head().ok()??;
        (head == commit).then_some(versions)
    }

    /// Adds commits on top of the one it is of.
    pub(super) fn add(&mut self, rows: &[Row]) -> rusqlite::Result<()> {
        let Some(last) = rows.last() else { return Ok(()) };
        let transaction = self.connection.transaction()?;
        for row in rows {
            let sequence = row.versions.sequence.cast_signed();
            let sql = "INSERT OR REPLACE INTO commits (sequence, id, time) VALUES (?1, ?2, ?3)";
            transaction.prepare_cached(sql)?.execute(params![sequence, row.id.as_bytes(), row.time])?;
            for path in with_folders(&row.paths) {
                let sql = "INSERT OR IGNORE INTO touched (path, sequence) VALUES (?1, ?2)";
                transaction.prepare_cached(sql)?.execute(params![number(&transaction, path)?, sequence])?;
            }
            if let Some(request) = &row.request {
                let sql = "INSERT OR IGNORE INTO requests (id, sequence, answer) VALUES (?1, ?2, ?3)";
                transaction.prepare_cached(sql)?.execute(params![request, sequence, row.answer])?;
            }
        }
        let oldest = last.versions.sequence.saturating_sub(REQUESTS_MAX as u64).cast_signed();
        transaction.prepare_cached("DELETE FROM requests WHERE sequence < ?1")?.execute([oldest])?;
        let sql = "INSERT OR REPLACE INTO head (one, id, sequence, prompt_version) VALUES (1, ?1, ?2, ?3)";
        transaction.prepare_cached(sql)?.execute(params![
            last.id.as_bytes(),
            last.versions.sequence.cast_signed(),
            last.versions.prompt_version.cast_signed(),
        ])?;
        transaction.commit()
    }

    /// Folds its journal, so that it does not grow without bound.
    pub(super) fn fold(&self) {
        // a reader in the way is there for a moment; the next time will do
        let _ = self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
    }

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

    /// All requests that are remembered.
    pub(super) fn requests(&self) -> rusqlite::Result<Vec<String>> {
        let mut statement = self.connection.prepare_cached("SELECT id FROM requests")?;
        statement.query_map([], |row| row.get(0))?.collect()
    }

    /// What came of a request.
    pub(super) fn first(&self, request: &str) -> rusqlite::Result<Option<First>> {
        let sql =
            "SELECT c.id, r.answer FROM requests r JOIN commits c ON c.sequence = r.sequence WHERE r.id = ?1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let row =
            statement.query_row([request], |row| Ok((row.get::<_, Vec<u8>>(0)?, row.get(1)?))).optional()?;
        Ok(row.and_then(|(id, answer)| Some(First { commit: Oid::from_bytes(&id).ok()?, answer })))
    }

    /// The commits between what it is of and `head`, oldest first. Where it is of another history it is emptied, and
    /// all commits are missing.
    pub(super) fn missing(&mut self, git: &Git, head: Oid) -> Result<Vec<Oid>> {
        let known = self.head().map_err(RepositoryError::log("read the index"))?.map(|(known, _)| known);
        let walk = || -> std::result::Result<_, git2::Error> {
            let (mut missing, mut next) = (Vec::new(), Some(head));
            while let Some(id) = next.filter(|id| Some(*id) != known) {
                missing.push(id);
                next = git.find_commit(id)?.parent_ids().next();
            }
            missing.reverse();
            Ok((missing, next.is_some()))
        };
        let (missing, goes_on) = walk().map_err(RepositoryError::git("walk the history"))?;
        if !goes_on && known.is_some() {
            let clear = "BEGIN; DELETE FROM head; DELETE FROM commits; DELETE FROM touched; DELETE FROM requests; COMMIT;";
            self.connection.execute_batch(clear).map_err(RepositoryError::log("clear the index"))?;
        }
        Ok(missing)
    }

    /// Adds the first of the missing commits, a bounded number of them; says how many.
    pub(super) fn bring(
        &mut self,
        git: &Git,
        missing: &[Oid],
        answers: &HashMap<Oid, String>,
    ) -> Result<usize> {
        let head = self.head().map_err(RepositoryError::log("read the index"))?;
        let mut versions = head.map_or_else(Versions::default, |(_, versions)| versions);
        let part = missing.get(..ROWS_MAX).unwrap_or(missing);
        let rows = part.iter().map(|id| {
            let mut row = row(git, *id, versions)?;
            row.answer = answers.get(id).cloned();
            versions = row.versions;
            Ok(row)
        });
        let rows = rows.collect::<std::result::Result<Vec<_>, git2::Error>>();
        self.add(&rows.map_err(RepositoryError::git("read the history"))?)
            .map_err(RepositoryError::log("write the index"))?;
        Ok(part.len())
    }
}

/// A commit of git as a row, given the versions before it.
fn row(git: &Git, id: Oid, before: Versions) -> std::result::Result<Row, git2::Error> {
    let commit = git.find_commit(id)?;
    let tree = commit.tree()?;
    let old = commit.parents().next().map(|parent| parent.tree()).transpose()?;
    let mut paths = Vec::new();
    changed(git, old.as_ref(), Some(&tree), &mut String::new(), &mut paths)?;
    let said = Said::parse(&String::from_utf8_lossy(commit.message_bytes()));
    let touches_prompt = versions::shown(old.as_ref()) != versions::shown(Some(&tree));
    Ok(Row {
        id,
        versions: before.next(touches_prompt),
        time: commit.time().seconds(),
        paths,
        request: said.request().map(str::to_owned),
        answer: None,
    })
}

/// The files in which two trees differ. It reads no tree that both have, which is nearly all of them.
fn changed(
    git: &Git,
    old: Option<&Tree<'_>>,
    new: Option<&Tree<'_>>,
    folder: &mut String,
    paths: &mut Vec<String>,
) -> std::result::Result<(), git2::Error> {
    for (here, there, is_new) in [(new, old, true), (old, new, false)] {
        for entry in here.into_iter().flat_map(Tree::iter) {
            let other = there.and_then(|there| {
                let name = str::from_utf8(entry.name_bytes()).ok()?;
                there.get_name(name).filter(|other| other.kind() == entry.kind())
            });
            if other.as_ref().is_some_and(|other| !is_new || other.id() == entry.id()) {
                continue;
            }
            let length = folder.len();
            folder.push_str(&String::from_utf8_lossy(entry.name_bytes()));
            if entry.kind() == Some(git2::ObjectType::Tree) {
                folder.push('/');
                let (here, other) =
                    (git.find_tree(entry.id())?, other.map(|o| git.find_tree(o.id())).transpose()?);
                let (old, new) = if is_new { (other.as_ref(), Some(&here)) } else { (Some(&here), None) };
                changed(git, old, new, folder, paths)?;
            } else {
                paths.push(folder.clone());
            }
            folder.truncate(length);
        }
    }
    Ok(())
}

/// Each path, and each folder it lies in.
fn with_folders(paths: &[String]) -> impl Iterator<Item = &str> {
    paths.iter().flat_map(|path| {
        let folders = path.match_indices('/').filter_map(|(at, _)| path.get(..at));
        folders.chain([path.as_str()])
    })
}

fn number(connection: &Connection, path: &str) -> rusqlite::Result<i64> {
    let known = connection
        .prepare_cached("SELECT number FROM paths WHERE path = ?1")?
        .query_row([path], |row| row.get(0));
    if let Some(number) = known.optional()? {
        return Ok(number);
    }
    connection.prepare_cached("INSERT INTO paths (path) VALUES (?1)")?.insert([path])
}
