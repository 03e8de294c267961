//! Documents: which there are, what they are called, where they lie, and how much they hold.

use std::fmt;

use jiff::civil::Date;

use crate::{
    sheet::{breaks_line, trimmed},
    slug::Slug,
};

/// The documents that are text alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Text {
    /// What she is called.
    Name,
    /// Who she is.
    Identity,
    /// What she is for.
    Purpose,
    /// What she holds to.
    Constitution,
    /// Her voice, her stance, her boundaries.
    Soul,
    /// Her model of the person.
    User,
    /// What she keeps in mind.
    Memory,
    /// What a person has laid down.
    Rules,
}

impl Text {
    /// All of them.
    pub(crate) const ALL: [Self; 8] = [
        Self::Name,
        Self::Identity,
        Self::Purpose,
        Self::Constitution,
        Self::Soul,
        Self::User,
        Self::Memory,
        Self::Rules,
    ];

    /// What it is called.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Identity => "identity",
            Self::Purpose => "purpose",
            Self::Constitution => "constitution",
            Self::Soul => "soul",
            Self::User => "user",
            Self::Memory => "memory",
            Self::Rules => "rules",
        }
    }

    /// Where it lies.
    pub(crate) const fn path(self) -> &'static str {
        match self {
            Self::Name => "name.md",
            Self::Identity => "identity.md",
            Self::Purpose => "purpose.md",
            Self::Constitution => "constitution.md",
            Self::Soul => "soul.md",
            Self::User => "user.md",
            Self::Memory => "memory.md",
            Self::Rules => "rules.md",
        }
    }

    /// The most characters it may have after a write: it is in every prompt.
    pub(crate) const fn chars_max(self) -> usize {
        match self {
            Self::Name => 80,
            Self::Identity | Self::Purpose => 1200,
            Self::Constitution | Self::Rules => 2000,
            Self::Soul => 4000,
            Self::User => 2500,
            Self::Memory => 3000,
        }
    }

    /// The content as it would be written, or why it is refused.
    pub(crate) fn accept(self, content: &str) -> Result<String, String> {
        let content = within(self.name(), content, self.chars_max())?;
        if self == Self::Name && breaks_line(&content) {
            return Err("`name` must be one line".to_owned());
        }
        Ok(content)
    }

    /// What a reader should know about a text that is there.
    pub(crate) fn notice(self, text: &str) -> Option<String> {
        let (chars, max) = (ipc::text::chars(text), self.chars_max());
        (chars > max).then(|| {
            let path = self.path();
            format!("`{path}` has {chars} characters, {} over its budget of {max}; it is shown whole, and the next write must shorten it", chars - max)
        })
    }
}

/// `text` trimmed, if it is neither blank nor longer than `chars_max`; the refusal names it as `what`.
pub(crate) fn within(what: &str, text: &str, chars_max: usize) -> Result<String, String> {
    let text = trimmed(text);
    if ipc::text::is_blank(text) {
        return Err(format!("`{what}` would be blank; give the words it should hold"));
    }
    let chars = ipc::text::chars(text);
    if chars > chars_max {
        return Err(format!(
            "`{what}` may have {chars_max} characters and this has {chars}; shorten it by {}",
            chars - chars_max
        ));
    }
    Ok(text.to_owned())
}

/// [`within`], on one line.
pub(crate) fn line_within(what: &str, text: &str, chars_max: usize) -> Result<String, String> {
    let text = within(what, text, chars_max)?;
    if breaks_line(&text) {
        return Err(format!("`{what}` must be one line, without line breaks or control characters"));
    }
    Ok(text)
}

/// The folders that hold one file an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Folder {
    /// What she values.
    Values,
    /// What she thinks.
    Opinions,
    /// What she wants.
    Desires,
    /// What she wrote, by day.
    Journal,
    /// What she wants to find again, by day; called `memory`, and by people `notes`.
    Notes,
    /// Whom she knows.
    Relationships,
}

impl Folder {
    /// All of them.
    pub(crate) const ALL: [Self; 6] =
        [Self::Values, Self::Opinions, Self::Desires, Self::Journal, Self::Notes, Self::Relationships];

    /// What it is called.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Values => "values",
            Self::Opinions => "opinions",
            Self::Desires => "desires",
            Self::Journal => "journal",
            Self::Notes => "memory",
            Self::Relationships => "relationships",
        }
    }
}

/// The files that are read as documents and written by tools of their own alone, or by the process itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Record {
    /// What she feels, and why.
    Emotions,
    /// What she changed of herself, and why.
    Changelog,
    /// What she objected to.
    Objections,
    /// What a person thinks of her replies.
    Ratings,
    /// What she dreamt, and what came of it.
    Dreams,
    /// How far the journal has been dreamt of.
    Dreamt,
    /// In which conversations her notes were recalled.
    Hits,
}

impl Record {
    /// All of them.
    pub(crate) const ALL: [Self; 7] = [
        Self::Emotions,
        Self::Changelog,
        Self::Objections,
        Self::Ratings,
        Self::Dreams,
        Self::Dreamt,
        Self::Hits,
    ];

    /// What it is called.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Emotions => "emotions",
            Self::Changelog => "changelog",
            Self::Objections => "objections",
            Self::Ratings => "ratings",
            Self::Dreams => "dreams",
            Self::Dreamt => "dreamt",
            Self::Hits => "hits",
        }
    }

    /// Where it lies.
    pub(crate) const fn path(self) -> &'static str {
        match self {
            Self::Emotions => "emotions.json",
            Self::Changelog => "changelog.md",
            Self::Objections => "objections.jsonl",
            Self::Ratings => "ratings.jsonl",
            Self::Dreams => "dreams.md",
            Self::Dreamt => "dreamt.json",
            Self::Hits => "memory/hits.jsonl",
        }
    }
}

/// What people call the folder of her notes, since `memory` is the text.
const NOTES: &str = "notes";

/// One document.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Document {
    /// A text.
    Text(Text),
    /// A value.
    Value(Slug),
    /// An opinion.
    Opinion(Slug),
    /// A desire.
    Desire(Slug),
    /// The progress of a desire.
    Progress(Slug),
    /// A day of the journal.
    Journal(Date),
    /// The notes of a day.
    Notes(Date),
    /// Her page about a person.
    Relationship(Slug),
    /// A record.
    Record(Record),
}

impl Document {
    /// Where it lies, relative to the soul.
    pub(crate) fn path(&self) -> String {
        match self {
            Self::Text(text) => text.path().to_owned(),
            Self::Value(slug) => format!("values/{slug}.md"),
            Self::Opinion(slug) => format!("opinions/{slug}.md"),
            Self::Desire(slug) => format!("desires/{slug}.md"),
            Self::Progress(slug) => format!("desires/{slug}.progress.md"),
            Self::Journal(day) => format!("journal/{day}.md"),
            Self::Notes(day) => format!("memory/{day}.md"),
            Self::Relationship(slug) => format!("relationships/{slug}.md"),
            Self::Record(record) => record.path().to_owned(),
        }
    }

    /// Reads a name as a person types it: `identity`, `IDENTITY.md`, `desires/learn-rust`, `journal` and
    /// `notes` for today's.
    pub(crate) fn parse(name: &str, today: Date) -> Result<Self, String> {
        match Scope::parse(name)? {
            Scope::One(document) => Ok(document),
            Scope::Folder(Folder::Journal) => Ok(Self::Journal(today)),
            Scope::Folder(Folder::Notes) => Ok(Self::Notes(today)),
            Scope::Folder(folder) => {
                let folder = folder.name();
                Err(format!("`{folder}` is a folder; name an entry of it, as in `{folder}/…`"))
            }
            Scope::All => Err("name one document, such as `identity`".to_owned()),
        }
    }
}

impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path())
    }
}

/// What a history is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Everything.
    All,
    /// One document.
    One(Document),
    /// Whatever is in a folder.
    Folder(Folder),
}

impl Scope {
    /// Reads a name as a person types it; a folder's name stands for all that is in it.
    pub(crate) fn parse(name: &str) -> Result<Self, String> {
        let name = trimmed(name);
        let bare = strip_md(name);
        if let Some(text) = Text::ALL.into_iter().find(|text| text.name().eq_ignore_ascii_case(bare)) {
            return Ok(Self::One(Document::Text(text)));
        }
        let is_record = |record: &Record| {
            record.name().eq_ignore_ascii_case(bare) || record.path().eq_ignore_ascii_case(name)
        };
        if let Some(record) = Record::ALL.into_iter().find(is_record) {
            return Ok(Self::One(Document::Record(record)));
        }
        let folder = |name: &str| {
            let called = |folder: &Folder| {
                let is_notes = *folder == Folder::Notes && name.eq_ignore_ascii_case(NOTES);
                is_notes || folder.name().eq_ignore_ascii_case(name)
            };
            Folder::ALL.into_iter().find(called)
        };
        if let Some(folder) = folder(bare.trim_end_matches('/')) {
            return Ok(Self::Folder(folder));
        }
        if bare.eq_ignore_ascii_case("all") {
            return Ok(Self::All);
        }
        let Some((folder, entry)) = bare.split_once('/').and_then(|(f, entry)| Some((folder(f)?, entry)))
        else {
            return Err(unknown(name));
        };
        let document = match folder {
            Folder::Values => Document::Value(Slug::of_file(entry)?),
            Folder::Opinions => Document::Opinion(Slug::of_file(entry)?),
            Folder::Desires => match entry.strip_suffix(".progress") {
                Some(slug) => Document::Progress(Slug::of_file(slug)?),
                None => Document::Desire(Slug::of_file(entry)?),
            },
            Folder::Journal => Document::Journal(day(entry)?),
            Folder::Notes => Document::Notes(day(entry)?),
            Folder::Relationships => Document::Relationship(Slug::of_file(entry)?),
        };
        Ok(Self::One(document))
    }

    /// Where it lies, relative to the soul; nothing for everything.
    pub(crate) fn path(&self) -> Option<String> {
        match self {
            Self::All => None,
            Self::One(document) => Some(document.path()),
            Self::Folder(folder) => Some(folder.name().to_owned()),
        }
    }
}

/// A day as a journal file is named after it.
pub(crate) fn day(text: &str) -> Result<Date, String> {
    let shown = ipc::text::one_line(text, 40);
    let shaped = text.len() == 10 && text.bytes().all(|b| b.is_ascii_digit() || b == b'-');
    text.parse()
        .ok()
        .filter(|_| shaped)
        .ok_or_else(|| format!("`{shown}` is no day; write it as in `2026-11-30`"))
}

/// `name` without the ending `.md` in whatever case.
fn strip_md(name: &str) -> &str {
    match name.len().checked_sub(3).and_then(|at| name.split_at_checked(at)) {
        Some((stem, ending)) if ending.eq_ignore_ascii_case(".md") => stem,
        _ => name,
    }
}

fn unknown(name: &str) -> String {
    let known = Text::ALL.map(Text::name).into_iter().chain(Folder::ALL.map(Folder::name));
    let known = known.chain(Record::ALL.map(Record::name)).chain([NOTES]);
    let shown = ipc::text::one_line(name, 80);
    let folder = name.split_once('/').map_or(name, |(folder, _)| folder);
    match ipc::text::nearest(strip_md(folder), known) {
        Some(near) => format!("there is no document `{shown}`; the nearest is `{near}`"),
        None => format!(
            "there is no document `{shown}`; there are `{}`, and entries in `{}/…`",
            Text::ALL
                .map(Text::name)
                .into_iter()
                .chain(Record::ALL.map(Record::name))
                .collect::<Vec<_>>()
                .join("`, `"),
            Folder::ALL.map(Folder::name).join("/…`, `")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn today() -> Date {
        "2026-11-30".parse().unwrap()
    }

    #[test]
    fn documents_are_found_by_the_names_people_use() {
        let check = |name: &str, path: &str| assert_eq!(Document::parse(name, today()).unwrap().path(), path);
        check("identity", "identity.md");
        check("IDENTITY.md", "identity.md");
        check(" Constitution.MD ", "constitution.md");
        check("values/honesty", "values/honesty.md");
        check("desires/learn-rust.md", "desires/learn-rust.md");
        check("desires/learn-rust.progress", "desires/learn-rust.progress.md");
        check("desires/学习.progress.md", "desires/学习.progress.md");
        check("journal", "journal/2026-11-30.md");
        check("journal/2026-01-02", "journal/2026-01-02.md");
        check("notes", "memory/2026-11-30.md");
        check("Notes/2026-01-02.md", "memory/2026-01-02.md");
        check("memory/2026-01-02", "memory/2026-01-02.md");
        check("memory/hits.jsonl", "memory/hits.jsonl");
        check("hits", "memory/hits.jsonl");
        check("memory", "memory.md");
        check("SOUL.md", "soul.md");
        check("USER", "user.md");
        check("Memory.md", "memory.md");
        check("RULES.md", "rules.md");
        check("relationships/ada", "relationships/ada.md");
        check("emotions", "emotions.json");
        check("CHANGELOG.md", "changelog.md");
        check("ratings.jsonl", "ratings.jsonl");
        check("DREAMS.md", "dreams.md");
        check("dreamt.json", "dreamt.json");
    }

    #[test]
    fn an_unknown_one_is_refused_with_what_is_near() {
        let check = |name: &str, said: &str| {
            let why = Document::parse(name, today()).unwrap_err();
            assert!(why.contains(said), "{name}: {why}");
        };
        check("identty", "`identity`");
        check("desire/learn-rust", "`desires`");
        check("zzz", "`values/…`");
        check("values", "is a folder");
        check("values/../identity", "slash");
        check("values/.hidden", "dot");
        check("opinions/a.progress", "belong to the progress");
        check("journal/yesterday", "`2026-11-30`");
        check("memory/yesterday", "`2026-11-30`");
        check("journal/2026-13-01", "is no day");
        check("all", "name one document");
        check("", "there is no document");
    }

    #[test]
    fn budgets_count_characters_and_say_by_how_much() {
        assert_eq!(Text::Identity.accept(" 灯塔看守人 \n").unwrap(), "灯塔看守人");
        assert!(Text::Identity.accept(&"灯".repeat(1200)).is_ok());
        let said = Text::Identity.accept(&"灯".repeat(1207)).unwrap_err();
        assert!(said.contains("1200") && said.contains("shorten it by 7"), "{said}");
        let said = Text::Identity.accept(" \n\t\u{feff}").unwrap_err();
        assert!(said.contains("`identity`") && said.contains("give the words"), "{said}");
        assert!(Text::Name.accept("Li\nsa").unwrap_err().contains("one line"));
        assert_eq!(Text::Name.notice("Lisa"), None);
        assert!(Text::Name.notice(&"x".repeat(81)).unwrap().contains("1 over its budget of 80"));
    }

    proptest! {
        #[test]
        fn a_name_never_leads_out_of_the_soul(name in any::<String>(), folder in "values/|desires/|journal/|memory/|notes/|opinions/|relationships/|") {
            if let Ok(document) = Document::parse(&format!("{folder}{name}"), today()) {
                let path = document.path();
                prop_assert!(!path.starts_with('/') && path.split('/').all(|part| !part.starts_with('.') && !part.is_empty()));
                prop_assert!(path.split('/').count() <= 2 && path.rsplit_once('.').is_some());
            }
        }
    }
}
