//! The side index: which commits touched which path, so that history costs what it shows.
//!
//! Here it is made and brought forward; what it is asked is in [`seek`](super::seek), and where the lines of documents
//! come from in [`annotation`](super::annotation).
//!
//! It is a cache beside the log, in `.git/lisa/index.sqlite`: where it is not of HEAD, it is brought there from git, and
//! where it cannot be read, it is made anew. It is written behind the log and flushed with everything else before the
//! log lets go of a record, so the answers of requests in it are as durable as the commits.

use std::{
    collections::{BTreeSet, HashMap},
    path::{Path, PathBuf},
};

use git2::{Oid, Repository as Git, Tree};
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, config::DbConfig, params};

use super::{RepositoryError, Result, Versions, seek, versions};
use crate::message::Said;

/// Which layout the database has, as `user_version`; another one is made anew.
const LAYOUT: u32 = 2;

/// How many requests are remembered with their answers: weeks of the most talkative life, and whoever asks again does
/// so within minutes. Older ones are still found by the trailers of git, by hand.
pub(super) const REQUESTS_MAX: usize = 20_000;

/// How many commits one transaction brings in while the index is made.
const ROWS_MAX: usize = 2_000;

/// How many statements are kept ready: all that there are.
const STATEMENTS_MAX: usize = 64;

const TABLES: &str = "
    CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1), id BLOB NOT NULL, sequence INTEGER NOT NULL,
        prompt_version INTEGER NOT NULL);
    CREATE TABLE commits (sequence INTEGER PRIMARY KEY, id BLOB NOT NULL, time INTEGER NOT NULL);
    CREATE INDEX commits_by_time ON commits (time, id);
    CREATE TABLE descents (sequence INTEGER PRIMARY KEY, time INTEGER NOT NULL);
    CREATE TABLE paths (number INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE);
    CREATE TABLE touched (path INTEGER NOT NULL, sequence INTEGER NOT NULL, PRIMARY KEY (path, sequence)) WITHOUT ROWID;
    CREATE TABLE annotations (path INTEGER PRIMARY KEY, sequence INTEGER NOT NULL, lines BLOB);
    CREATE TABLE requests (id TEXT PRIMARY KEY, sequence INTEGER NOT NULL, answer TEXT) WITHOUT ROWID;
    CREATE INDEX requests_by_age ON requests (sequence);
";

/// Forgets everything.
const CLEAR: &str = "
    BEGIN; DELETE FROM head; DELETE FROM commits; DELETE FROM descents; DELETE FROM touched; DELETE FROM annotations;
    DELETE FROM requests; COMMIT;
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
    pub(super) connection: Connection,
    /// The paths whose annotation is not of the newest version; nothing while nobody has looked.
    pub(super) stale: Option<BTreeSet<i64>>,
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
        keep_statements(&connection)?;
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
        let index = Self { connection, stale: None };
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
        let connection = Connection::open_with_flags(place, flags).ok()?;
        keep_statements(&connection).ok()?;
        let index = Self { connection, stale: None };
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
        let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return Ok(()) };
        let mut time = seek::time(&self.connection, first.versions.sequence.cast_signed() - 1)?;
        let mut stale = self.stale.take();
        let transaction = self.connection.transaction()?;
        for row in rows {
            let sequence = row.versions.sequence.cast_signed();
            if time.replace(row.time).is_none_or(|before| row.time < before) {
                let sql = "INSERT OR REPLACE INTO descents (sequence, time) VALUES (?1, ?2)";
                transaction.prepare_cached(sql)?.execute(params![sequence, row.time])?;
            }
            let sql = "INSERT OR REPLACE INTO commits (sequence, id, time) VALUES (?1, ?2, ?3)";
            transaction.prepare_cached(sql)?.execute(params![sequence, row.id.as_bytes(), row.time])?;
            for path in with_folders(&row.paths) {
                let number = number(&transaction, path)?;
                let sql = "INSERT OR IGNORE INTO touched (path, sequence) VALUES (?1, ?2)";
                transaction.prepare_cached(sql)?.execute(params![number, sequence])?;
                if let Some(stale) = &mut stale {
                    stale.insert(number);
                }
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
        transaction.commit()?;
        // where it fails on the way there it is looked for anew
        self.stale = stale;
        Ok(())
    }

    /// Folds its journal, so that it does not grow without bound.
    pub(super) fn fold(&self) {
        // a reader in the way is there for a moment; the next time will do
        let _ = self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
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
        let (missing, goes_on) = self.since(git, head)?;
        if !goes_on {
            self.stale = None;
            self.connection.execute_batch(CLEAR).map_err(RepositoryError::log("clear the index"))?;
        }
        Ok(missing)
    }

    /// The commits of `head` that it does not have, oldest first, and whether they go on from what it is of.
    pub(super) fn since(&self, git: &Git, head: Oid) -> Result<(Vec<Oid>, bool)> {
        let known = self.head().map_err(RepositoryError::log("read the index"))?.map(|(known, _)| known);
        let walk = || -> std::result::Result<_, git2::Error> {
            let (mut missing, mut next) = (Vec::new(), Some(head));
            while let Some(id) = next.filter(|id| Some(*id) != known) {
                missing.push(id);
                next = git.find_commit(id)?.parent_ids().next();
            }
            missing.reverse();
            Ok((missing, next.is_some() || known.is_none()))
        };
        walk().map_err(RepositoryError::git("walk the history"))
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

/// Has statements stay as they were prepared. SQLite would plan those that join tables anew whenever a value is bound, in
/// the hope of statistics that there are none of here, which takes longer than to answer them.
fn keep_statements(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(drop)
}

/// A commit of git as a row, given the versions before it.
fn row(git: &Git, id: Oid, before: Versions) -> std::result::Result<Row, git2::Error> {
    let commit = git.find_commit(id)?;
    let tree = commit.tree()?;
    let old = commit.parents().next().map(|parent| parent.tree()).transpose()?;
    let paths = differing(git, old.as_ref(), Some(&tree))?;
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

/// The files in which two trees differ, in order. It reads no tree that both have, which is nearly all of them.
pub(super) fn differing(
    git: &Git,
    old: Option<&Tree<'_>>,
    new: Option<&Tree<'_>>,
) -> std::result::Result<Vec<String>, git2::Error> {
    let mut paths = Vec::new();
    changed(git, old, new, &mut String::new(), &mut paths)?;
    paths.sort_unstable();
    paths.dedup();
    Ok(paths)
}

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
