//! Roll-back: what brings an old content back, as a plan of changes like any other.
//!
//! History is never rewritten: a roll-back is a commit that says what it undoes. One document comes back as it was at a
//! commit or a time; of one commit everything it changed, unless a later change would be lost; or everything that is
//! shown, as of a time, and with it which notes were recalled. What only grows (journal, notes, progress) is a record of
//! what happened and stays, unless a person names it. How far the journal was dreamt of goes with `soul.md`, on whatever
//! way that comes back: a self that does not hold what a dream brought may dream it again. That it dreamt stays in the
//! record.

use std::{collections::BTreeMap, fmt::Write as _, path::Path};

use ipc::contract::soul::{Entry, Restored};
use jiff::{Timestamp, civil::Date};

use crate::{
    blame::counts,
    document::{Document, Record, Scope, Text},
    emotions::Emotions,
    grant::Deed,
    migrate,
    plan::{NotWritten, Plan},
    repository::{Change, Repository, short, subject, workfile::look},
    seal, seed,
};

/// How many commits are listed that a roll-back undoes.
pub(crate) const UNDOES_MAX: usize = 50;
/// How many of them the commit message names.
const NAMED_MAX: usize = 10;

/// What is to be brought back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// One document, as of then.
    Document(Document, Point),
    /// Everything a commit changed.
    Commit(String),
    /// Everything that is shown, as of a time.
    Shown(Timestamp),
}

/// Since when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Point {
    /// A commit, or the beginning of its id.
    Commit(String),
    /// A time.
    Time(Timestamp),
}

impl Target {
    /// Reads what was asked for.
    pub(crate) fn read(
        document: Option<&str>,
        commit: Option<&str>,
        to: Option<Timestamp>,
        today: Date,
    ) -> Result<Self, String> {
        let document = document.map(|name| Document::parse(name, today)).transpose()?;
        match (document, commit, to) {
            (_, Some(_), Some(_)) => Err("name a commit or a time, not both".to_owned()),
            (Some(document), Some(commit), None) => {
                Ok(Self::Document(document, Point::Commit(commit.to_owned())))
            }
            (Some(document), None, Some(to)) => Ok(Self::Document(document, Point::Time(to))),
            (None, Some(commit), None) => Ok(Self::Commit(commit.to_owned())),
            (None, None, Some(to)) => Ok(Self::Shown(to)),
            (Some(document), None, None) => {
                Err(format!("say to which commit or to what time `{document}` should go back"))
            }
            (None, None, None) => Err("say what to bring back: a document, a commit or a time".to_owned()),
        }
    }
}

/// Who rolls back, as far as it matters for what may be touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hand {
    /// She herself.
    Hers,
    /// A person.
    Persons,
}

/// What a roll-back comes to.
pub(crate) struct Undoing {
    /// The change, as any other; empty where everything is so already.
    pub(crate) plan: Plan,
    /// The files, for a person to see.
    pub(crate) changes: Vec<Restored>,
    /// What is undone, newest first.
    pub(crate) undoes: Vec<Entry>,
    /// What stays although it was meant.
    pub(crate) left: Vec<String>,
}

/// One file, and the bytes that should be in it.
type Wanted = BTreeMap<String, Option<Vec<u8>>>;

/// What bringing `target` back comes to, on the files as they are.
pub(crate) fn decide(
    repository: &Repository,
    target: &Target,
    hand: Hand,
    why: &str,
) -> Result<Undoing, NotWritten> {
    let (mut left, undoes, wanted, head) = match target {
        Target::Document(document, point) => document_as_of(repository, document, point, hand)?,
        Target::Commit(commit) => commit_undone(repository, commit, hand)?,
        Target::Shown(time) => shown_as_of(repository, *time)?,
    };
    let (mut changes, mut restored, mut soul_stays) = (Vec::new(), Vec::new(), false);
    for (path, bytes) in wanted {
        let now = look(repository.root(), &path)?;
        if now == bytes {
            continue;
        }
        let feels = path == Record::Emotions.path() && hand == Hand::Hers;
        let kept = feels && now.as_deref().is_some_and(|now| Emotions::read(now).is_ok());
        let kept =
            kept.then(|| format!("`{path}` stays: what you feel changes with a cause, by `soul_feel`"));
        if let Some(why) = kept.or_else(|| unfit(&path, bytes.as_deref(), hand)) {
            if matches!(target, Target::Document(..)) {
                return Err(why.into());
            }
            soul_stays |= path == Text::Soul.path();
            left.push(why);
            continue;
        }
        let (lines_added, lines_removed) =
            counts(now.as_deref().unwrap_or(b""), bytes.as_deref().unwrap_or(b""));
        restored.push(Restored { path: path.clone(), removed: bytes.is_none(), lines_added, lines_removed });
        changes.push(Change { path, bytes });
    }
    if soul_stays {
        // with the lines of a dream stays that they were dreamt
        changes.retain(|change: &Change| change.path != Record::Dreamt.path());
        restored.retain(|restored: &Restored| restored.path != Record::Dreamt.path());
    }
    // what only follows is not what is brought back
    let named: Vec<_> = changes.iter().filter(|change| change.path != Record::Dreamt.path()).collect();
    let path = match (named.as_slice(), changes.as_slice()) {
        ([one], _) => one.path.clone(),
        ([], [one]) => one.path.clone(),
        _ => "soul".to_owned(),
    };
    let mut reason = head;
    for entry in undoes.iter().take(NAMED_MAX) {
        let _ =
            write!(reason, "\nundoes {} {}", short(&entry.commit), ipc::text::one_line(&subject(entry), 100));
    }
    if undoes.len() > NAMED_MAX {
        let _ = write!(reason, "\nand {} more", undoes.len() - NAMED_MAX);
    }
    if !why.trim().is_empty() {
        reason = format!("{}\n\n{reason}", why.trim());
    }
    let said = match left.as_slice() {
        [] => "as it was".to_owned(),
        left => format!("as it was; {}", left.join("; ")),
    };
    let plan =
        Plan { deed: Deed::Rollback, op: "rollback", path, why: reason, evidence: vec![], changes, said };
    Ok(Undoing { plan, changes: restored, undoes, left })
}

type Found = (Vec<String>, Vec<Entry>, Wanted, String);

fn document_as_of(
    repository: &Repository,
    document: &Document,
    point: &Point,
    hand: Hand,
) -> Result<Found, NotWritten> {
    let path = document.path();
    if (grows(&path) || path == Record::Hits.path()) && hand == Hand::Hers {
        return Err(format!(
            "`{path}` is only added to; a person can bring it back, with `lisa soul rollback`"
        )
        .into());
    }
    let commit = match point {
        Point::Commit(commit) => repository.find_commit(commit)??,
        Point::Time(time) => as_of(repository, *time)?,
    };
    let entry = repository.entry_of(&commit)?;
    let undoes = repository.touches_since(std::slice::from_ref(&path), &commit, UNDOES_MAX)?;
    let head =
        format!("`{path}` as it was at {} {}", short(&commit), ipc::text::one_line(&subject(&entry), 100));
    let bytes = repository.file_at(&commit, &path)?;
    if bytes.is_none() && undoes.is_empty() {
        return Err(format!("`{path}` did not exist at `{}`, and does not now", short(&commit)).into());
    }
    let mut wanted = Wanted::from([(path, bytes)]);
    follow(repository, &commit, &mut wanted)?;
    Ok((vec![], undoes, wanted, head))
}

/// Adds what depends on a file that comes back: with `soul.md` how far the journal was dreamt of.
fn follow(repository: &Repository, commit: &str, wanted: &mut Wanted) -> Result<(), NotWritten> {
    let cursor = Record::Dreamt.path();
    if wanted.contains_key(Text::Soul.path()) && !wanted.contains_key(cursor) {
        wanted.insert(cursor.to_owned(), repository.file_at(commit, cursor)?);
    }
    Ok(())
}

fn commit_undone(repository: &Repository, commit: &str, hand: Hand) -> Result<Found, NotWritten> {
    let commit = repository.find_commit(commit)??;
    let entry = repository.entry_of(&commit)?;
    let Some(changed) = repository.changed_by(&commit)? else {
        return Err(format!(
            "`{}` is where her history begins, and a beginning cannot be undone",
            short(&commit)
        )
        .into());
    };
    let (mut left, mut wanted) = (Vec::new(), Wanted::new());
    // of a migration the process's own files are what there is to bring back
    let is_migration = entry.op == migrate::OP && hand == Hand::Persons;
    for file in changed {
        if is_ours(&file.path) && !(is_migration && file.path != seal::PATH) {
            continue;
        }
        if (grows(&file.path) && hand == Hand::Hers) || is_what_happened(&file.path) {
            left.push(format!("`{}` is only added to and stays", file.path));
            continue;
        }
        let now = look(repository.root(), &file.path)?;
        if now == file.after || now == file.before {
            wanted.insert(file.path, file.before);
        } else if grows(&file.path) || file.path == Record::Hits.path() {
            left.push(format!("`{}` has later entries and stays", file.path));
        } else {
            let later = repository.touches_since(std::slice::from_ref(&file.path), &commit, 1)?;
            let by = later.first().map_or_else(
                || "by an edit that is not in the history yet".to_owned(),
                |later| {
                    format!("by `{}` ({})", short(&later.commit), ipc::text::one_line(&subject(later), 100))
                },
            );
            return Err(format!(
                "`{path}` was changed again since, {by}, and that would be lost; roll that back first, or name the document: `lisa soul rollback {path} COMMIT`",
                path = file.path
            )
            .into());
        }
    }
    let head = format!("what {} changed is undone", short(&commit));
    Ok((left, vec![entry], wanted, head))
}

fn shown_as_of(repository: &Repository, time: Timestamp) -> Result<Found, NotWritten> {
    let commit = as_of(repository, time)?;
    let (then, now) = (repository.shown_at(Some(&commit))?, repository.shown_at(None)?);
    let mut wanted: Wanted = now.into_keys().map(|path| (path, None)).collect();
    for (path, id) in then {
        wanted.insert(path, Some(repository.content(id)?));
    }
    let paths: Vec<_> = wanted.keys().cloned().collect();
    follow(repository, &commit, &mut wanted)?;
    let undoes = repository.touches_since(&paths, &commit, UNDOES_MAX)?;
    // no prompt shows what her notes earned, but it depends on what is undone
    let hits = Record::Hits.path();
    wanted.insert(hits.to_owned(), repository.file_at(&commit, hits)?);
    let head = format!("everything shown as it was at {}, {}", crate::held::iso(time), short(&commit));
    Ok((vec![], undoes, wanted, head))
}

fn as_of(repository: &Repository, time: Timestamp) -> Result<String, NotWritten> {
    let found = repository.newest_before(time)?;
    found.ok_or_else(|| format!("her history begins after {}", crate::held::iso(time)).into())
}

/// Why a content may not come back, if so.
fn unfit(path: &str, bytes: Option<&[u8]>, hand: Hand) -> Option<String> {
    let document = parse(path);
    match (&document, bytes) {
        // the others were not there in the beginning, and she was
        (Some(Document::Text(Text::Name | Text::Identity | Text::Purpose | Text::Constitution)), None) => {
            Some(format!("`{path}` did not exist then, and she cannot be without it"))
        }
        (Some(Document::Text(text)), Some(bytes)) if hand == Hand::Hers => {
            let over = text.notice(crate::sheet::trimmed(&String::from_utf8_lossy(bytes)));
            over.map(|_| format!("`{path}` was over its budget then, so it stays; write a shorter one"))
        }
        (None, _) if hand == Hand::Hers => Some(format!("`{path}` is no document of hers and stays")),
        _ => None,
    }
}

/// The document a path is of.
pub(crate) fn parse(path: &str) -> Option<Document> {
    match Scope::parse(path) {
        Ok(Scope::One(document)) if document.path() == path => Some(document),
        _ => None,
    }
}

/// Whether a prompt shows the file, so that it is sealed and comes back with everything else.
pub(crate) fn is_shown(path: &str) -> bool {
    matches!(
        parse(path),
        Some(
            Document::Text(_)
                | Document::Value(_)
                | Document::Opinion(_)
                | Document::Desire(_)
                | Document::Relationship(_)
                | Document::Record(Record::Emotions)
        )
    )
}

/// Whether a file is only added to.
fn grows(path: &str) -> bool {
    matches!(
        parse(path),
        Some(
            Document::Journal(_)
                | Document::Notes(_)
                | Document::Progress(_)
                | Document::Record(Record::Changelog | Record::Objections | Record::Ratings | Record::Dreams)
        )
    )
}

/// Whether a file says what happened, so that undoing what came of it leaves it true.
fn is_what_happened(path: &str) -> bool {
    path == Record::Dreams.path()
}

/// Whether a file is the process's own and follows by itself.
fn is_ours(path: &str) -> bool {
    [seal::PATH, seed::PATH, ".gitignore"].contains(&path)
}

/// Whether anything of a soul is where it should be at all.
pub(crate) fn has_seed(root: &Path) -> bool {
    root.join(seed::PATH).symlink_metadata().is_ok()
}
