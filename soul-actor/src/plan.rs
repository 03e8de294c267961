//! Plans: what a wish comes to, given what is in the files; nothing is written here.

use jiff::{Timestamp, civil::Date};
use tracing::error;

use crate::{
    desires,
    document::{Document, Folder, Record, Text},
    emotions,
    entries::{self, Log},
    grant::Deed,
    input::Wish,
    notes, portrait,
    repository::{Change, RepositoryError, Root, cause, workfile::look},
    sheet::{Kind, Sheet, trimmed},
    slug::Slug,
};

/// A change that was decided on: what will be, and how the commit speaks of it.
pub(crate) struct Plan {
    /// What is done, as grants name it, now that it is known what is there.
    pub(crate) deed: Deed,
    /// What is done, on what, and why.
    pub(crate) op: &'static str,
    pub(crate) path: String,
    pub(crate) why: String,
    /// What it rests on, as the commit names it; most rests on nothing but her word.
    pub(crate) evidence: Vec<String>,
    /// The files as they will be.
    pub(crate) changes: Vec<Change>,
    /// What the answer says besides.
    pub(crate) said: String,
}

/// Why something was not written.
pub(crate) enum NotWritten {
    /// By a rule: a sentence for whoever asked.
    Refused(String),
    /// The disk or git did not do it.
    Failed(RepositoryError),
}

impl From<RepositoryError> for NotWritten {
    fn from(error: RepositoryError) -> Self {
        Self::Failed(error)
    }
}

impl From<String> for NotWritten {
    fn from(reason: String) -> Self {
        Self::Refused(reason)
    }
}

impl NotWritten {
    /// The sentence for whoever asked; what the system did is logged besides.
    pub(crate) fn sentence(self) -> String {
        match self {
            Self::Refused(reason) => reason,
            Self::Failed(error) => {
                let error = cause::sentence(&error);
                error!(error, "the soul could not be written or read");
                format!("this was not done: {error}")
            }
        }
    }
}

/// What a wish comes to, given what is there.
pub(crate) fn plan(root: &Root, wish: Wish, now: Timestamp, today: Date) -> Result<Plan, NotWritten> {
    let deed = deed(&wish);
    let one = |op, path: &str, why: String, bytes: Vec<u8>, said: String| Plan {
        deed,
        op,
        path: path.to_owned(),
        why,
        evidence: vec![],
        changes: vec![Change { path: path.to_owned(), bytes: Some(bytes) }],
        said,
    };
    match wish {
        Wish::Text { text, content, why } => {
            let (chars, max) = (ipc::text::chars(&content), text.chars_max());
            let said = format!("{chars} of {max} characters; it holds from your next turn on");
            Ok(one("patch", text.path(), why, format!("{content}\n").into_bytes(), said))
        }
        Wish::Append { text, addition, why } => {
            let old = look(root, text.path())?.unwrap_or_default();
            let old = String::from_utf8(old).map_err(|_| {
                format!("`{}` is not UTF-8; a person must save it as UTF-8 first", text.path())
            })?;
            let content = text.accept(&format!("{}\n{addition}", trimmed(&old)))?;
            plan(root, Wish::Text { text, content, why }, now, today)
        }
        Wish::Value { slug, change, why } => {
            let (path, slug, old) = entry(root, Folder::Values, Kind::Value, Document::Value, &slug)?;
            let sheet = change.apply("value", old, slug.as_str(), now)?;
            Ok(one("value", &path, why, sheet.render().into_bytes(), format!("value `{slug}`")))
        }
        Wish::Opinion { slug, change, why } => {
            let (path, slug, old) = entry(root, Folder::Opinions, Kind::Opinion, Document::Opinion, &slug)?;
            let sheet = change.apply(old, slug.as_str(), now)?;
            Ok(one("opinion", &path, why, sheet.render().into_bytes(), format!("opinion `{slug}`")))
        }
        Wish::Desire { slug, change } => {
            let (path, slug, old) = entry(root, Folder::Desires, Kind::Desire, Document::Desire, &slug)?;
            desires::write(&path, &slug, old, change, now)
        }
        Wish::Revise { slug, change } => {
            let (path, slug, old) = desires::existing(root, &slug)?;
            desires::write(&path, &slug, Some(old), change, now)
        }
        Wish::Close { slug, outcome, reflection } => {
            desires::close(root, &slug, outcome, reflection, (now, today))
        }
        Wish::Condense { slug, summary, folds } => desires::condense(root, &slug, (&summary, folds), today),
        Wish::Feel(change) => {
            let path = Record::Emotions.path();
            let felt = emotions::feel(look(root, path)?.as_deref(), &change, now)?;
            let said = format!("{} was {:.2} and is {:.2}", felt.emotion, felt.before, felt.after);
            Ok(one("feel", path, change.trigger, felt.bytes, said))
        }
        Wish::Relationship { slug, change, why } => {
            let (path, slug, old) =
                entry(root, Folder::Relationships, Kind::Value, Document::Relationship, &slug)?;
            let sheet = change.apply("page about a person", old, slug.as_str(), now)?;
            Ok(one(
                "relationship",
                &path,
                why,
                sheet.render().into_bytes(),
                format!("your page about `{slug}`"),
            ))
        }
        Wish::Journal { topic, entry } => {
            let path = Document::Journal(today).path();
            let old = look(root, &path)?.unwrap_or_default();
            entries::full(&old, &path)?;
            let bytes = entries::append_about(Log::Journal, &old, now, (topic.as_ref(), &entry));
            let said = match topic {
                Some(topic) => format!("one entry added about `{topic}`"),
                None => "one entry added".to_owned(),
            };
            Ok(one("journal", &path, String::new(), bytes, said))
        }
        Wish::Remember { about, note, outside } => {
            let path = Document::Notes(today).path();
            let old = look(root, &path)?.unwrap_or_default();
            entries::full(&old, &path)?;
            let (bytes, address) = notes::append(today, &old, (about, outside), now, &note);
            Ok(one("remember", &path, String::new(), bytes, format!("noted as `{address}`")))
        }
        Wish::Progress { slug, entry } => {
            let known = portrait::slugs(root, Folder::Desires);
            let Some(slug) = find(&known, &slug) else {
                return Err(no_such("desire", &slug, &known).into());
            };
            let path = Document::Progress(slug.clone()).path();
            let old = look(root, &path)?.unwrap_or_default();
            entries::full(&old, &path)?;
            let bytes = entries::append(Log::Progress(slug.as_str()), &old, now, &entry);
            Ok(one("progress", &path, String::new(), bytes, format!("one entry added for desire `{slug}`")))
        }
        Wish::Look(_)
        | Wish::Stand
        | Wish::Ratings
        | Wish::History { .. }
        | Wish::Diff { .. }
        | Wish::Recall(_)
        | Wish::Memory
        | Wish::Promote { .. }
        | Wish::Rollback { .. }
        | Wish::Candidates
        | Wish::Dream(_)
        | Wish::Object(_) => {
            unreachable!(
                "a tool that writes wishes to write; what comes back, is dreamt of, promoted or objected to is decided elsewhere"
            )
        }
    }
}

/// What a wish does, as far as that is known before it is looked what is there.
pub(crate) fn deed(wish: &Wish) -> Deed {
    match wish {
        Wish::Text { text, .. } | Wish::Append { text, .. } => Deed::Text(*text),
        Wish::Value { .. } | Wish::Opinion { .. } | Wish::Relationship { .. } => Deed::Entry,
        // the least of what it may be
        Wish::Desire { .. } => Deed::NewDesire,
        Wish::Revise { .. } | Wish::Close { .. } => Deed::Desire,
        Wish::Condense { .. } => Deed::Condense,
        Wish::Feel(_) => Deed::Feel,
        Wish::Object(_) => Deed::Object,
        Wish::Journal { .. } => Deed::Journal,
        Wish::Remember { .. } => Deed::Note,
        Wish::Promote { .. } => Deed::Text(Text::Memory),
        Wish::Progress { .. } => Deed::Progress,
        Wish::Rollback { .. } => Deed::Rollback,
        Wish::Dream(asked) if asked.apply => Deed::Dream,
        Wish::Dream(_)
        | Wish::Candidates
        | Wish::Look(_)
        | Wish::Recall(_)
        | Wish::Memory
        | Wish::Stand
        | Wish::Ratings
        | Wish::History { .. }
        | Wish::Diff { .. } => Deed::Read,
    }
}

/// The entry a slug means, and what it says now: an existing one by its name, in whatever case, else a new one.
pub(crate) fn entry(
    root: &Root,
    folder: Folder,
    kind: Kind,
    document: fn(Slug) -> Document,
    name: &str,
) -> Result<(String, Slug, Option<Sheet>), NotWritten> {
    // the usual name is that of an entry as it is, and then there is no need to list the others
    let tidy = Slug::tidy(name).ok().filter(|slug| slug.as_str() == name);
    let there = match tidy {
        Some(slug) => look(root, &document(slug.clone()).path())?.map(|_| slug),
        None => None,
    };
    let slug = match there {
        Some(slug) => slug,
        None => match find(&portrait::slugs(root, folder), name) {
            Some(slug) => slug.clone(),
            None => Slug::tidy(name)?,
        },
    };
    let document = document(slug.clone());
    let sheet = match look(root, &document.path())? {
        None => None,
        Some(bytes) => {
            let text = String::from_utf8(bytes)
                .map_err(|_| format!("`{document}` is not UTF-8; a person must save it as UTF-8 first"))?;
            Some(Sheet::parse(kind, &text))
        }
    };
    Ok((document.path(), slug, sheet))
}

/// The known slug that a name means: itself, or one that differs from it in case or tidiness alone. So nothing new ever
/// gets a name that some file systems take for an old one.
pub(crate) fn find<'a>(known: &'a [Slug], name: &str) -> Option<&'a Slug> {
    let name = name.trim().trim_end_matches(".md");
    let like = |name: &str| {
        let lower = name.to_lowercase();
        known.iter().find(|slug| slug.as_str().to_lowercase() == lower)
    };
    let exact = known.iter().find(|slug| slug.as_str() == name);
    exact.or_else(|| like(name)).or_else(|| like(Slug::tidy(name).ok()?.as_str()))
}

/// Why there is nothing of that name, and what there is.
pub(crate) fn no_such(kind: &str, name: &str, known: &[Slug]) -> String {
    let shown = ipc::text::one_line(name, 60);
    match ipc::text::nearest(name, known.iter().map(Slug::as_str)) {
        Some(near) => format!("there is no {kind} `{shown}`; the nearest is `{near}`"),
        None if known.is_empty() => format!("there is no {kind} `{shown}`, and no other either"),
        None => {
            let some: Vec<_> = known.iter().take(10).map(|slug| format!("`{slug}`")).collect();
            format!("there is no {kind} `{shown}`; there are {}", some.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_means_the_entry_that_is_there() {
        let known = ["Learn-Rust", "learn-c", "a b"].map(|name| Slug::of_file(name).unwrap());
        let check =
            |name: &str, slug: Option<&str>| assert_eq!(find(&known, name).map(Slug::as_str), slug, "{name}");
        check("learn-c", Some("learn-c"));
        check("LEARN-C.md", Some("learn-c"));
        check("Learn Rust", Some("Learn-Rust"));
        check("A B", Some("a b"));
        check("learn", None);
        check("../learn-c", None);
    }
}
