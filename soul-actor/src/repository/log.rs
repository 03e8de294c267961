//! The log: what was accepted and is not yet safe in git, one transaction and one flush a batch.
//!
//! It is SQLite, in `.git/lisa/log.sqlite`: measured beside one durable append to a preallocated file, in turn and on one
//! disk, it costs one and a half times that (the measurement is below), and it is tested as no log of our own would be.
//! The write-ahead file is given its length before the first record and keeps it, so that a flush does not also pay for
//! a file that grows. One connection, no shared memory; the journal is folded into the database when there is quiet.
//!
//! A record holds what cannot be computed again: the bytes of the commit and those of the files. Trees and blobs follow
//! from them, and so does every id, which a replay compares.

use std::{
    collections::HashMap,
    fs::DirBuilder,
    io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use git2::Oid;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension as _, params};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Change, RepositoryError, Result, Stranger, Versions, cause, workfile};

/// Which layout the database has, as `user_version`.
const LAYOUT: u32 = 2;

/// How many records one transaction removes: whoever wants to append waits no longer than that.
const RELEASED_MAX: u64 = 512;

/// How long the journal is from the beginning: some hundred batches.
const ROOM_BYTES: i64 = 2 * 1024 * 1024;

const TABLES: &str = "
    CREATE TABLE pending (position INTEGER PRIMARY KEY, id BLOB NOT NULL, parent BLOB, bytes BLOB NOT NULL,
        files BLOB NOT NULL, about TEXT NOT NULL);
    CREATE TABLE standing (answered BLOB PRIMARY KEY, stands BLOB NOT NULL) WITHOUT ROWID;
";

/// What the second layout added.
const ANCHOR: &str = "
    CREATE TABLE anchor (one INTEGER PRIMARY KEY CHECK (one = 1), branch TEXT NOT NULL, head BLOB NOT NULL);
    CREATE TABLE strangers (path TEXT PRIMARY KEY, id BLOB NOT NULL, before BLOB) WITHOUT ROWID;
";

/// The branch and the newest commit that are known to be hers.
///
/// It is written in the transaction that lets go of the records before it, so that this and what the log still has are
/// together exactly what was accepted here: a history that does not contain it is another one, and what is on top of it
/// somebody else has made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Anchor {
    /// The branch, by its short name.
    pub(crate) branch: String,
    /// The commit.
    pub(crate) head: Oid,
}

impl Anchor {
    /// At a commit of a branch, which may be named by its whole name.
    pub(crate) fn at(branch: &str, head: Oid) -> Self {
        Self { branch: branch.strip_prefix("refs/heads/").unwrap_or(branch).to_owned(), head }
    }
}

/// An accepted change.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Record {
    /// Where in the log.
    pub(super) position: u64,
    /// The commit.
    pub(super) id: Oid,
    /// The commit before.
    pub(super) parent: Option<Oid>,
    /// The commit's bytes.
    pub(super) bytes: Arc<[u8]>,
    /// The files as they will be.
    pub(super) files: Vec<Change>,
    /// What else there is to say.
    pub(super) about: About,
}

/// What a commit does not say about itself.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct About {
    /// The versions it makes.
    pub(super) versions: Versions,
    /// Its time, in seconds, as the commit has it.
    pub(super) time: i64,
    /// The branch it goes to.
    pub(super) branch: String,
    /// What changes.
    pub(super) paths: Vec<String>,
    /// The request that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) request: Option<String>,
    /// The answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) answer: Option<Value>,
}

/// An open log.
pub(super) struct Log {
    connection: Connection,
    place: PathBuf,
}

impl Log {
    /// Where the log of a repository lies.
    pub(super) fn place(git_dir: &Path) -> PathBuf {
        git_dir.join("lisa/log.sqlite")
    }

    /// Opens the log, and makes it where there is none.
    pub(super) fn open(git_dir: &Path) -> Result<Self> {
        let place = Self::place(git_dir);
        let folder = git_dir.join("lisa");
        match DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => workfile::sync_folder(git_dir)?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(workfile::failed("make the folder", &folder)(error)),
        }
        let open = || {
            let connection = Connection::open(&place)?;
            connection.execute_batch(
                "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
                 PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON; PRAGMA wal_autocheckpoint = 0;
                 PRAGMA temp_store = MEMORY;",
            )?;
            let missing = match layout(&connection)? {
                0 => format!("{TABLES} {ANCHOR}"),
                1 => ANCHOR.to_owned(),
                _ => String::new(),
            };
            if !missing.is_empty() {
                connection
                    .execute_batch(&format!("BEGIN; {missing} PRAGMA user_version = {LAYOUT}; COMMIT;"))?;
            }
            connection.set_prepared_statement_cache_capacity(16);
            let mut log = Self { connection, place: place.clone() };
            if let Err(error) = log.make_room() {
                // without its length a flush costs more, and a full disk must not keep what is there from being read
                tracing::warn!(%error, "the log could not be given its length");
            }
            Ok(log)
        };
        open().map_err(|error| cause::of_log("open the log", &place, error))
    }

    /// Gives the journal its length before anything is written: a flush of a file that grows also pays for its growing,
    /// and for whatever else the file system has to write down with that.
    fn make_room(&mut self) -> rusqlite::Result<()> {
        let journal = PathBuf::from(format!("{}-wal", self.place.display()));
        if journal.metadata().is_ok_and(|journal| journal.len() >= ROOM_BYTES.unsigned_abs()) {
            return Ok(());
        }
        // two transactions: what one writes and removes again is never written
        let sql = format!("CREATE TABLE room AS SELECT zeroblob({ROOM_BYTES}) AS bytes");
        self.connection.execute_batch(&sql)?;
        self.connection.execute_batch("DROP TABLE room")?;
        self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
    }

    /// Puts a log that cannot be read out of the way, and says where it is now.
    pub(super) fn put_aside(git_dir: &Path) -> Result<PathBuf> {
        let place = Self::place(git_dir);
        let mut aside = place.with_extension("broken");
        let mut number = 1;
        while aside.exists() {
            number += 1;
            aside = place.with_extension(format!("broken-{number}"));
        }
        std::fs::rename(&place, &aside).map_err(workfile::failed("put aside", &place))?;
        for ending in ["wal", "shm"] {
            let name = |path: &Path| PathBuf::from(format!("{}-{ending}", path.display()));
            // where there is none there is nothing to keep
            let _ = std::fs::rename(name(&place), name(&aside));
        }
        Ok(aside)
    }

    /// All records, oldest first.
    pub(super) fn records(&self) -> Result<Vec<Record>> {
        let read = || {
            let sql = "SELECT position, id, parent, bytes, files, about FROM pending ORDER BY position";
            let mut statement = self.connection.prepare(sql)?;
            let rows = statement.query_map([], |row| {
                let (position, about): (i64, String) = (row.get(0)?, row.get(5)?);
                let (id, parent): (Vec<u8>, Option<Vec<u8>>) = (row.get(1)?, row.get(2)?);
                let (bytes, files): (Vec<u8>, Vec<u8>) = (row.get(3)?, row.get(4)?);
                let record = || {
                    Some(Record {
                        position: position.cast_unsigned(),
                        id: Oid::from_bytes(&id).ok()?,
                        parent: parent.map(|parent| Oid::from_bytes(&parent)).transpose().ok()?,
                        bytes: bytes.into(),
                        files: unfold(&files)?,
                        about: serde_json::from_str(&about).ok()?,
                    })
                };
                Ok(record())
            })?;
            rows.collect::<rusqlite::Result<Option<Vec<_>>>>()
        };
        let records = read().map_err(RepositoryError::log("read the log"))?;
        records.ok_or_else(|| RepositoryError::Replay {
            path: self.place.clone(),
            what: "holds a record that is none",
        })
    }

    /// Appends the records of a batch: all of them are durable when this returns, or none is there.
    pub(super) fn append<'a>(&mut self, records: impl IntoIterator<Item = &'a Record>) -> Result<()> {
        let append = || {
            let transaction = self.connection.transaction()?;
            for record in records {
                insert(&transaction, record)?;
            }
            transaction.commit()
        };
        let appended: rusqlite::Result<()> = append();
        appended.map_err(|error| cause::of_log("write the log", &self.place, error))
    }

    /// Writes and flushes what changes nothing: whether the disk takes it.
    pub(super) fn touch(&mut self) -> Result<()> {
        let touched = self.connection.execute_batch(&format!("PRAGMA user_version = {LAYOUT}"));
        touched.map_err(|error| cause::of_log("write the log", &self.place, error))
    }

    /// Puts other records in the place of those that are there, which stand under other ids from now on.
    pub(super) fn rewrite(&mut self, records: &[&Record], standing: &[(Oid, Oid)]) -> Result<()> {
        let mut rewrite = || {
            let transaction = self.connection.transaction()?;
            transaction.execute("DELETE FROM pending", [])?;
            for record in records {
                insert(&transaction, record)?;
            }
            for (answered, stands) in standing {
                let sql = "INSERT OR REPLACE INTO standing (answered, stands) VALUES (?1, ?2)";
                transaction.prepare_cached(sql)?.execute([answered.as_bytes(), stands.as_bytes()])?;
            }
            transaction.commit()
        };
        rewrite().map_err(RepositoryError::log("write the log"))
    }

    /// Forgets a few of the records up to a position, which are safe in git; says whether there are more of them. With
    /// the last of them the anchor's commit becomes `head`.
    pub(super) fn release(&mut self, up_to: u64, anchor: Option<&Anchor>) -> Result<bool> {
        let mut release = || {
            let transaction = self.connection.transaction()?;
            let sql = "SELECT min(position) FROM pending";
            let first: Option<i64> = transaction.query_row(sql, [], |row| row.get(0))?;
            let first = first.map_or(up_to, i64::cast_unsigned);
            let last = up_to.min(first.saturating_add(RELEASED_MAX));
            let sql = "DELETE FROM pending WHERE position <= ?1";
            transaction.prepare_cached(sql)?.execute([last.cast_signed()])?;
            if let (true, Some(anchor)) = (last == up_to, anchor) {
                let sql = "INSERT INTO anchor (one, branch, head) VALUES (1, ?1, ?2)
                    ON CONFLICT (one) DO UPDATE SET head = excluded.head";
                transaction.prepare_cached(sql)?.execute(params![anchor.branch, anchor.head.as_bytes()])?;
            }
            transaction.commit()?;
            Ok(last < up_to)
        };
        release().map_err(RepositoryError::log("shorten the log"))
    }

    /// The anchor, where one is known.
    pub(super) fn anchor(&self) -> Result<Option<Anchor>> {
        read_anchor(&self.connection).map_err(RepositoryError::log("read the log"))
    }

    /// Puts the anchor elsewhere.
    pub(super) fn drop_anchor(&mut self, anchor: &Anchor) -> Result<()> {
        let sql = "INSERT OR REPLACE INTO anchor (one, branch, head) VALUES (1, ?1, ?2)";
        let dropped = self.connection.execute(sql, params![anchor.branch, anchor.head.as_bytes()]);
        dropped.map(drop).map_err(RepositoryError::log("write the log"))
    }

    /// Folds the journal into the database, so that it is written again from its beginning.
    pub(super) fn fold(&mut self) -> Result<()> {
        let fold = self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        fold.map_err(RepositoryError::log("fold the log"))
    }

    /// What others committed and nobody has said a word to yet.
    pub(super) fn strangers(&self) -> Result<Vec<Stranger>> {
        let read = || {
            let mut statement = self.connection.prepare("SELECT path, id, before FROM strangers")?;
            let rows = statement.query_map([], |row| {
                let (id, before): (Vec<u8>, Option<Vec<u8>>) = (row.get(1)?, row.get(2)?);
                let before = before.map(|before| Oid::from_bytes(&before)).transpose();
                let (path, ids) = (row.get(0)?, Oid::from_bytes(&id).and_then(|id| Ok((id, before?))));
                Ok(ids.ok().map(|(commit, before)| Stranger { path, commit, before }))
            })?;
            Ok(rows.collect::<rusqlite::Result<Vec<_>>>()?.into_iter().flatten().collect())
        };
        read().map_err(RepositoryError::log("read the log"))
    }

    /// Puts these in the place of what is known of others.
    pub(super) fn keep_strangers(&mut self, strangers: &[Stranger]) -> Result<()> {
        let mut keep = || {
            let transaction = self.connection.transaction()?;
            transaction.execute("DELETE FROM strangers", [])?;
            for Stranger { path, commit, before } in strangers {
                let sql = "INSERT INTO strangers (path, id, before) VALUES (?1, ?2, ?3)";
                let before = before.as_ref().map(Oid::as_bytes);
                transaction.execute(sql, params![path, commit.as_bytes(), before])?;
            }
            transaction.commit()
        };
        keep().map_err(RepositoryError::log("write the log"))
    }

    /// Under which ids commits stand that were answered with others.
    pub(super) fn standing(&self) -> Result<HashMap<Oid, Oid>> {
        let read = || {
            let mut statement = self.connection.prepare("SELECT answered, stands FROM standing")?;
            let rows = statement.query_map([], |row| {
                let (answered, stands): (Vec<u8>, Vec<u8>) = (row.get(0)?, row.get(1)?);
                Ok(Oid::from_bytes(&answered).ok().zip(Oid::from_bytes(&stands).ok()))
            })?;
            Ok(rows.collect::<rusqlite::Result<Vec<_>>>()?.into_iter().flatten().collect())
        };
        read().map_err(RepositoryError::log("read the log"))
    }
}

/// The anchor of a log that nobody has open, for a look at a repository that cannot be opened.
pub(crate) fn anchor_of(git_dir: &Path) -> Option<Anchor> {
    let place = Log::place(git_dir);
    if !place.exists() {
        return None;
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    read_anchor(&Connection::open_with_flags(place, flags).ok()?).ok()?
}

fn read_anchor(connection: &Connection) -> rusqlite::Result<Option<Anchor>> {
    let mut statement = connection.prepare_cached("SELECT branch, head FROM anchor")?;
    let row = statement.query_row([], |row| Ok((row.get(0)?, row.get::<_, Vec<u8>>(1)?))).optional()?;
    Ok(row.and_then(|(branch, head)| Some(Anchor { branch, head: Oid::from_bytes(&head).ok()? })))
}

/// Whether a database is no database any more, rather than one that cannot be reached.
pub(super) fn is_broken(error: &RepositoryError) -> bool {
    match error {
        RepositoryError::Replay { .. } => true,
        RepositoryError::Log { source, .. } => {
            matches!(source.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
        }
        _ => false,
    }
}

fn layout(connection: &Connection) -> rusqlite::Result<u32> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

fn insert(connection: &Connection, record: &Record) -> rusqlite::Result<()> {
    let about = serde_json::to_string(&record.about).expect("what is said about a record is JSON");
    let sql =
        "INSERT INTO pending (position, id, parent, bytes, files, about) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    connection.prepare_cached(sql)?.execute(params![
        record.position.cast_signed(),
        record.id.as_bytes(),
        record.parent.as_ref().map(Oid::as_bytes),
        &*record.bytes,
        fold(&record.files),
        about,
    ])?;
    Ok(())
}

/// Files as bytes: for each the length of its path, the path, whether it stays, and its length and bytes if it does.
fn fold(files: &[Change]) -> Vec<u8> {
    let mut folded = Vec::new();
    let mut push = |bytes: &[u8]| {
        folded.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        folded.extend_from_slice(bytes);
    };
    for file in files {
        push(file.path.as_bytes());
        push(if file.bytes.is_some() { b"+" } else { b"-" });
        push(file.bytes.as_deref().unwrap_or_default());
    }
    folded
}

fn unfold(mut folded: &[u8]) -> Option<Vec<Change>> {
    let mut files = Vec::new();
    let next = |folded: &mut &[u8]| -> Option<Vec<u8>> {
        let (length, rest) = folded.split_at_checked(8)?;
        let length = usize::try_from(u64::from_le_bytes(length.try_into().ok()?)).ok()?;
        let (bytes, rest) = rest.split_at_checked(length)?;
        *folded = rest;
        Some(bytes.to_vec())
    };
    while !folded.is_empty() {
        let path = String::from_utf8(next(&mut folded)?).ok()?;
        let stays = next(&mut folded)? == b"+";
        let bytes = next(&mut folded)?;
        files.push(Change { path, bytes: stays.then_some(bytes) });
    }
    Some(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(position: u64) -> Record {
        let bytes: Arc<[u8]> = position.to_string().into_bytes().into();
        Record {
            position,
            id: Oid::from_bytes(&[u8::try_from(position % 200).unwrap(); 20]).unwrap(),
            parent: (position > 1).then(|| Oid::from_bytes(&[7; 20]).unwrap()),
            bytes,
            files: vec![Change { path: "a/b.md".into(), bytes: Some(b"x\0y".to_vec()) }],
            about: About {
                request: Some("r".into()),
                answer: Some(serde_json::json!({"a": 1})),
                ..About::default()
            },
        }
    }

    #[test]
    fn what_was_appended_is_there_after_a_kill_until_it_is_released() {
        let folder = tempfile::tempdir().unwrap();
        let records: Vec<_> = (1..=1200).map(record).collect();
        let mut log = Log::open(folder.path()).unwrap();
        log.append(records.iter().take(2)).unwrap();
        log.append(records.iter().skip(2)).unwrap();
        drop(log);
        let mut log = Log::open(folder.path()).unwrap();
        assert_eq!(log.records().unwrap(), records);
        let anchor = Anchor { branch: "main".into(), head: record(1199).id };
        assert_eq!(log.anchor().unwrap(), None);
        let mut rounds = 1;
        while log.release(1199, Some(&anchor)).unwrap() {
            rounds += 1;
        }
        assert_eq!(rounds, 3, "no transaction is long");
        log.fold().unwrap();
        assert_eq!(log.records().unwrap(), [record(1200)]);
        assert_eq!(log.anchor().unwrap(), Some(anchor));
        let (answered, stands) = (record(1).id, record(2).id);
        log.rewrite(&[&record(7)], &[(answered, stands)]).unwrap();
        drop(log);
        let log = Log::open(folder.path()).unwrap();
        assert_eq!(log.records().unwrap(), [record(7)]);
        assert_eq!(log.standing().unwrap(), HashMap::from([(answered, stands)]));
    }

    #[test]
    fn a_log_that_is_none_is_told_and_put_aside() {
        let folder = tempfile::tempdir().unwrap();
        drop(Log::open(folder.path()).unwrap());
        std::fs::write(Log::place(folder.path()), "no database ".repeat(1000)).unwrap();
        let error = Log::open(folder.path()).and_then(|log| log.records()).err().unwrap();
        assert!(is_broken(&error), "{error:?}");
        assert!(Log::put_aside(folder.path()).unwrap().ends_with("log.broken"));
        assert_eq!(Log::open(folder.path()).unwrap().records().unwrap(), []);
    }

    /// What the log costs by itself, beside the floor: `cargo test -p lisa-soul --lib beside_the_floor -- --ignored --nocapture`.
    #[test]
    #[ignore = "a measurement, for whoever doubts that SQLite is quick enough"]
    fn one_append_beside_the_floor_of_the_disk() {
        use std::{os::unix::fs::FileExt as _, time::Instant};
        let folder = tempfile::tempdir().unwrap();
        let floor = std::fs::File::create(folder.path().join("floor")).unwrap();
        floor.write_all_at(&vec![0; 4 << 20], 0).unwrap();
        floor.sync_all().unwrap();
        let mut log = Log::open(folder.path()).unwrap();
        let (mut ours, mut least) = (Vec::new(), Vec::new());
        for n in 1..=600 {
            let mut record = record(n);
            record.files = vec![Change { path: "a/b.md".into(), bytes: Some(vec![b'x'; 500]) }];
            let began = Instant::now();
            floor.write_all_at(&[7; 1024], n * 1024).unwrap();
            floor.sync_data().unwrap();
            least.push(began.elapsed());
            let began = Instant::now();
            log.append([&record]).unwrap();
            ours.push(began.elapsed());
        }
        ours.sort();
        least.sort();
        let ratio = ours[300].as_secs_f64() / least[300].as_secs_f64();
        println!(
            "append {:?} p99 {:?}; floor {:?} p99 {:?}; {ratio:.2} times",
            ours[300], ours[594], least[300], least[594]
        );
    }

    proptest! {
        #[test]
        fn files_unfold_as_they_were(files in proptest::collection::vec((".{0,9}", proptest::option::of(proptest::collection::vec(any::<u8>(), 0..99))), 0..5)) {
            let files: Vec<_> = files.into_iter().map(|(path, bytes)| Change { path, bytes }).collect();
            let folded = fold(&files);
            prop_assert_eq!(unfold(&folded), Some(files));
            if let Some((_, torn)) = folded.split_last() {
                prop_assert_eq!(unfold(torn), None);
            }
        }
    }
}
