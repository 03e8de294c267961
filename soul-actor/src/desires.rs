//! Desires: what revising one comes to, closing one, and condensing what was written about pursuing it.
//!
//! Closing is one change of three files: the desire rests and says so, its progress ends with the outcome, and the journal
//! has a line. Nothing is thrown away: a closed desire keeps its plan and can be opened again, and of condensed progress
//! the history has every entry.

use jiff::{Timestamp, civil::Date};

use crate::{
    document::{Document, Folder},
    entries::{self, Log, SUMMARIES_CHARS_MAX, Unfit},
    grant::Deed,
    held::{DesireChange, PROGRESS_SHOWN_MAX, touch},
    input::Outcome,
    plan::{NotWritten, Plan, entry, find, no_such},
    portrait,
    repository::{Change, Root, workfile::look},
    sheet::{Kind, Sheet},
    slug::Slug,
};

/// A desire written anew or revised.
pub(crate) fn write(
    path: &str,
    slug: &Slug,
    old: Option<Sheet>,
    change: DesireChange,
    now: Timestamp,
) -> Result<Plan, NotWritten> {
    let deed = if old.is_some() { Deed::Desire } else { Deed::NewDesire };
    let sheet = change.apply(old, slug.as_str(), now)?;
    let actionable = says(&sheet, "actionable");
    Ok(Plan {
        deed,
        op: "desire",
        path: path.to_owned(),
        why: String::new(),
        evidence: vec![],
        changes: vec![changed(path, sheet.render().into_bytes())],
        said: format!("desire `{slug}`, {}", if actionable { "actionable" } else { "not actionable" }),
    })
}

/// The desire that is there of that name, or a sentence with the nearest.
pub(crate) fn existing(root: &Root, name: &str) -> Result<(String, Slug, Sheet), NotWritten> {
    let slug = known(root, name)?;
    let (path, slug, sheet) = entry(root, Folder::Desires, Kind::Desire, Document::Desire, slug.as_str())?;
    let sheet = sheet.ok_or_else(|| no_such("desire", slug.as_str(), &[]))?;
    Ok((path, slug, sheet))
}

/// A desire that ends: it rests, its progress says how it ended, and the journal why.
pub(crate) fn close(
    root: &Root,
    name: &str,
    outcome: Outcome,
    reflection: String,
    (now, today): (Timestamp, Date),
) -> Result<Plan, NotWritten> {
    let (path, slug, mut sheet) = existing(root, name)?;
    let is_closed = says(&sheet, "closed");
    let before = sheet.clone();
    sheet.set_field("actionable", Some("no"));
    sheet.set_field("closed", Some("yes"));
    let mut changes = Vec::new();
    if sheet != before {
        touch(&mut sheet, now);
        changes.push(changed(&path, sheet.render().into_bytes()));
    }
    // what has ended ends once, whatever is said of it later
    if !is_closed {
        let progress = Document::Progress(slug.clone()).path();
        let journal = Document::Journal(today).path();
        let (ended, noted) = (look(root, &progress)?, look(root, &journal)?);
        let outcome = outcome.name();
        let entry = format!("[CLOSED:{outcome}] {reflection}");
        let log = Log::Progress(slug.as_str());
        changes.push(changed(&progress, entries::append(log, &ended.unwrap_or_default(), now, &entry)));
        let entry = format!("[DESIRE_CLOSED] {slug} ({outcome}): {reflection}");
        let bytes = entries::append(Log::Journal, &noted.unwrap_or_default(), now, &entry);
        changes.push(changed(&journal, bytes));
    }
    let said = format!("desire `{slug}` is closed ({}); `actionable: true` opens it again", outcome.name());
    Ok(Plan { deed: Deed::Desire, op: "desire", path, why: reflection, evidence: vec![], changes, said })
}

/// Progress of which the last entries stay and a summary stands for the others.
pub(crate) fn condense(
    root: &Root,
    name: &str,
    (summary, folds): (&str, bool),
    today: Date,
) -> Result<Plan, NotWritten> {
    let slug = known(root, name)?;
    let path = Document::Progress(slug.clone()).path();
    let old = look(root, &path)?.unwrap_or_default();
    let condensed = entries::condense(slug.as_str(), &old, PROGRESS_SHOWN_MAX, (summary, folds), today);
    let (bytes, gone) = condensed.map_err(|why| match why {
        Unfit::Few(count) => format!(
            "the progress of `{slug}` has {count} entries, and the last {PROGRESS_SHOWN_MAX} stay as they are, so there is nothing to condense yet"
        ),
        Unfit::Long(chars) => format!(
            "with the earlier summaries of `{slug}` this would be {chars} characters, and {SUMMARIES_CHARS_MAX} is the most; give one summary that says what they say as well, with `folds_earlier: true`"
        ),
    })?;
    let said = format!(
        "{gone} entries of desire `{slug}` are condensed, the last {PROGRESS_SHOWN_MAX} stay as they are; `soul_diff` has the others"
    );
    let changes = vec![changed(&path, bytes)];
    Ok(Plan {
        deed: Deed::Condense,
        op: "consolidate",
        path,
        why: String::new(),
        evidence: vec![],
        changes,
        said,
    })
}

fn known(root: &Root, name: &str) -> Result<Slug, NotWritten> {
    let known = portrait::slugs(root, Folder::Desires);
    find(&known, name).cloned().ok_or_else(|| no_such("desire", name, &known).into())
}

fn changed(path: &str, bytes: Vec<u8>) -> Change {
    Change { path: path.to_owned(), bytes: Some(bytes) }
}

fn says(sheet: &Sheet, key: &str) -> bool {
    sheet.field(key).is_some_and(|value| value.eq_ignore_ascii_case("yes"))
}
