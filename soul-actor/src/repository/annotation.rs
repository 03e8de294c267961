//! Where the lines of a document come from, remembered: for its newest version the commit of every line.
//!
//! ```text
//!  quiet: annotation ─▶ next version ─▶ … ─▶ the newest      a question: annotation ─▶ the few versions since ─▶ work file
//! ```
//!
//! It lies in the side index and is a cache as that is. The thread behind carries it forward while nothing else is to do,
//! a few milliseconds at a time, oldest version first; whoever asks goes the rest of the way in memory. So an answer costs
//! the versions since the last quiet moment, and not those of a life. What is too large for a document is not annotated,
//! and the line is followed back instead.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use git2::{Oid, Repository as Git};
use rusqlite::{OptionalExtension as _, params};
use tracing::warn;

use super::{Repository, RepositoryError, Result, blob, history::entry, index::Index, seek::Touched, tree};
use crate::{
    blame::{Annotation, came_from, lines},
    rollback::parse,
};
use ipc::contract::soul::Entry;

/// The largest version that is annotated: far above what a prompt can show, and a comparison is still milliseconds.
const BYTES_MAX: usize = 1024 * 1024;
/// The most lines of a version that is annotated.
const LINES_MAX: usize = 20_000;
/// For how long versions are compared in one go: a write that comes meanwhile waits for as long at most.
const SLICE: Duration = Duration::from_millis(5);
/// How many versions one go takes at most.
const VERSIONS_MAX: usize = 256;
/// How many versions a question goes forward itself; with more, the line is followed back.
const FORWARD_MAX: usize = 256;
/// How many it goes forward for all lines at once, which nothing can follow back: far above a day's writes.
const ALL_FORWARD_MAX: usize = 2_000;

/// Where a line of a work file comes from.
pub(crate) enum Brought {
    /// A commit brought it.
    By(Box<Entry>),
    /// It is in no commit yet.
    ByNone,
}

/// An annotation on its way forward.
struct Reached {
    /// The number of the commit it is of; 0 before the first.
    sequence: i64,
    /// The file as of then.
    version: Vec<u8>,
    /// The commits of its lines; nothing where a version was too large to say.
    annotation: Option<Annotation>,
}

impl Reached {
    /// Goes on to what that commit made of the file.
    fn step(&mut self, git: &Git, path: &str, (sequence, id): Touched) -> Result<()> {
        self.sequence = sequence;
        let Some(annotation) = &mut self.annotation else { return Ok(()) };
        let version = version(git, id, path)?;
        if is_too_large(&version) {
            self.annotation = None;
            return Ok(());
        }
        annotation.step(&self.version, &version, sequence.cast_unsigned());
        self.version = version;
        Ok(())
    }
}

impl Index {
    /// Carries annotations forward for a moment; says whether there is more to do. What does not work is left to whoever
    /// asks, who follows the line back.
    pub(super) fn annotate(&mut self, git: &Git) -> bool {
        let annotated = match self.stale.take().map_or_else(|| self.behind(), Ok) {
            Ok(mut stale) => self.annotate_some(git, &mut stale).map(|()| stale),
            Err(error) => Err(error),
        };
        match annotated {
            Ok(stale) => {
                let more = !stale.is_empty();
                self.stale = Some(stale);
                more
            }
            Err(error) => {
                warn!(%error, "where lines come from could not be noted; whoever asks waits a little longer");
                self.stale = Some(BTreeSet::new());
                false
            }
        }
    }

    fn annotate_some(&self, git: &Git, stale: &mut BTreeSet<i64>) -> rusqlite::Result<()> {
        let end = Instant::now() + SLICE;
        let transaction = self.connection.unchecked_transaction()?;
        while Instant::now() < end
            && let Some(number) = stale.first().copied()
        {
            let sql = "SELECT path FROM paths WHERE number = ?1";
            let path: String = transaction.prepare_cached(sql)?.query_row([number], |row| row.get(0))?;
            if parse(&path).is_none() || !self.annotate_one(git, number, &path, end)? {
                stale.remove(&number);
            }
        }
        transaction.commit()
    }

    /// Carries one annotation forward; says whether it is still behind.
    fn annotate_one(&self, git: &Git, number: i64, path: &str, end: Instant) -> rusqlite::Result<bool> {
        let known = self.reached(git, number, path)?;
        let newer = self.touches_after(number, known.sequence, VERSIONS_MAX)?;
        let (mut reached, mut done) = (known, 0);
        for touched in &newer {
            if let Err(error) = reached.step(git, path, *touched) {
                let error = ipc::exit::chain(&error);
                warn!(path, error, "where the lines of a document come from could not be noted");
                return Ok(false);
            }
            done += 1;
            if Instant::now() > end {
                break;
            }
        }
        if done > 0 {
            let lines = reached.annotation.map(|annotation| annotation.pack());
            let sql = "INSERT OR REPLACE INTO annotations (path, sequence, lines) VALUES (?1, ?2, ?3)";
            self.connection.prepare_cached(sql)?.execute(params![number, reached.sequence, lines])?;
        }
        Ok(done < newer.len() || newer.len() == VERSIONS_MAX)
    }

    /// The paths that were touched after what their annotation is of.
    fn behind(&self) -> rusqlite::Result<BTreeSet<i64>> {
        let sql = "SELECT p.number FROM paths p LEFT JOIN annotations a ON a.path = p.number
                   WHERE (SELECT max(t.sequence) FROM touched t WHERE t.path = p.number) > coalesce(a.sequence, 0)";
        let mut statement = self.connection.prepare_cached(sql)?;
        statement.query_map([], |row| row.get(0))?.collect()
    }

    /// How far the annotation of a path has come, which is nowhere where there is none that can be read.
    fn reached(&self, git: &Git, number: i64, path: &str) -> rusqlite::Result<Reached> {
        let sql =
            "SELECT a.sequence, a.lines, c.id FROM annotations a JOIN commits c ON c.sequence = a.sequence
                   WHERE a.path = ?1";
        let noted = self.connection.prepare_cached(sql)?.query_row([number], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, Option<Vec<u8>>>(1)?, row.get::<_, Vec<u8>>(2)?))
        });
        let read = |(sequence, lines, id): (_, Option<Vec<u8>>, Vec<u8>)| {
            let Some(lines) = lines else {
                return Some(Reached { sequence, version: vec![], annotation: None });
            };
            let annotation = Annotation::unpack(&lines, LINES_MAX)?;
            let version = version(git, Oid::from_bytes(&id).ok()?, path).ok()?;
            let fits = annotation.fits(&version);
            fits.then_some(Reached { sequence, version, annotation: Some(annotation) })
        };
        let nowhere = || Reached { sequence: 0, version: vec![], annotation: Some(Annotation::default()) };
        Ok(noted.optional()?.and_then(read).unwrap_or_else(nowhere))
    }

    /// For each line of a work file the number of the commit that brought it, 0 where none did.
    fn all_brought(&self, git: &Git, path: &str, file: &[u8]) -> rusqlite::Result<Option<Annotation>> {
        let mut reached = match self.path_number(path)? {
            None => Reached { sequence: 0, version: vec![], annotation: Some(Annotation::default()) },
            Some(number) => {
                let mut reached = self.reached(git, number, path)?;
                let newer = self.touches_after(number, reached.sequence, ALL_FORWARD_MAX + 1)?;
                if newer.len() > ALL_FORWARD_MAX
                    || newer.into_iter().any(|touched| reached.step(git, path, touched).is_err())
                {
                    return Ok(None);
                }
                reached
            }
        };
        if let Some(annotation) = reached.annotation.as_mut().filter(|_| !is_too_large(file)) {
            annotation.step(&reached.version, file, 0);
            return Ok(reached.annotation);
        }
        Ok(None)
    }

    /// The commit that brought line `at` of a work file; the inner nothing where none did, the outer one where it cannot
    /// be told from here.
    fn brought(&self, git: &Git, path: &str, file: &[u8], at: usize) -> rusqlite::Result<Option<Line>> {
        let Some(number) = self.path_number(path)? else { return Ok(Some(Line::New)) };
        let mut reached = self.reached(git, number, path)?;
        let newer = self.touches_after(number, reached.sequence, FORWARD_MAX + 1)?;
        if newer.len() > FORWARD_MAX
            || newer.into_iter().any(|touched| reached.step(git, path, touched).is_err())
        {
            return Ok(None);
        }
        let Some(annotation) = reached.annotation else { return Ok(None) };
        let Some(then) = came_from(&reached.version, file, at) else { return Ok(Some(Line::New)) };
        let Some(sequence) = annotation.commit(then) else { return Ok(None) };
        Ok(self.id(sequence.cast_signed())?.map(Line::Of))
    }
}

/// Where all lines of a work file come from.
pub(crate) struct AllBrought {
    lines: Annotation,
    commits: BTreeMap<u64, Entry>,
}

impl AllBrought {
    /// The commit that brought line `at`, with its number; nothing where none did.
    pub(crate) fn commit(&self, at: usize) -> Option<(u64, &Entry)> {
        let number = self.lines.commit(at)?;
        Some((number, self.commits.get(&number)?))
    }
}

/// What is known of a line.
enum Line {
    /// That commit brought it.
    Of(Oid),
    /// It is in no commit.
    New,
}

impl Repository {
    /// Where the lines of a file come from, which holds `file` as it lies there; nothing where that cannot be told.
    pub(crate) fn all_brought(&self, path: &str, file: &[u8]) -> Option<AllBrought> {
        let git = self.git.as_ref()?;
        let (lines, ids) = self.indexed(|index| {
            let Some(lines) = index.all_brought(git, path, file)? else { return Ok(None) };
            let mut ids = BTreeMap::new();
            for number in lines.commits() {
                if let Some(id) = index.id(number.cast_signed())? {
                    ids.insert(number, id);
                }
            }
            Ok(Some((lines, ids)))
        })??;
        let commits = ids.into_iter().map(|(number, id)| Some((number, entry(&git.find_commit(id).ok()?))));
        Some(AllBrought { lines, commits: commits.collect::<Option<_>>()? })
    }

    /// Where line `at` of a file comes from, which holds `file` as it lies there; nothing where no annotation says so.
    pub(crate) fn brought(&self, path: &str, file: &[u8], at: usize) -> Option<Brought> {
        let git = self.git.as_ref()?;
        match self.indexed(|index| index.brought(git, path, file, at))?? {
            Line::Of(id) => Some(Brought::By(Box::new(entry(&git.find_commit(id).ok()?)))),
            Line::New => Some(Brought::ByNone),
        }
    }
}

/// A file as a commit has it; one that is not there has no lines.
fn version(git: &Git, id: Oid, path: &str) -> Result<Vec<u8>> {
    let commit = git.find_commit(id).map_err(RepositoryError::git("read a commit"))?;
    Ok(blob(git, &tree(&commit)?, path)?.unwrap_or_default())
}

fn is_too_large(version: &[u8]) -> bool {
    version.len() > BYTES_MAX || lines(version).len() > LINES_MAX
}
