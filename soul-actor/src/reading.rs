//! Reading aloud: the portrait, the journal and the history as text for a model, bounded and cut at a line.

use std::{fmt::Write as _, path::Path};

use ipc::{
    contract::soul::{Desire, Entry, Held, Opinion, Snapshot},
    text::one_line,
};
use jiff::{Timestamp, civil::Date};

use crate::{
    birth::temperament,
    document::{self, Document, Folder, Record, Text},
    dynamics,
    emotions::{self, Emotions},
    held::iso,
    input::Look,
    repository::{short, subject, workfile},
};

/// The longest answer of a tool that looks, in characters, as in the original.
const CHARS_MAX: usize = 16_000;

/// What is said where there is no commit to show.
pub(crate) const NO_HISTORY: &str = "no history yet";

/// The beginning of a text, cut at a line; it says where.
pub(crate) fn head(text: &str) -> String {
    if ipc::text::chars(text) <= CHARS_MAX {
        return text.to_owned();
    }
    let kept = ipc::text::prefix(text, CHARS_MAX);
    let kept = kept.rsplit_once('\n').map_or(kept, |(lines, _)| lines);
    format!(
        "{kept}\n[cut here: {} of {} characters are shown]",
        ipc::text::chars(kept),
        ipc::text::chars(text)
    )
}

/// The end of a text, cut at a line; it says where.
fn tail(text: &str) -> String {
    let chars = ipc::text::chars(text);
    if chars <= CHARS_MAX {
        return text.to_owned();
    }
    let kept: String = text.chars().skip(chars - CHARS_MAX).collect();
    let kept = kept.split_once('\n').map_or(kept.as_str(), |(_, lines)| lines);
    format!("[cut here: the last {} of {chars} characters are shown]\n{kept}", ipc::text::chars(kept))
}

/// What `soul_read` answers.
pub(crate) fn look(
    root: &Path,
    look: Look,
    soul: &Snapshot,
    now: Timestamp,
    today: Date,
) -> Result<String, String> {
    Ok(match look {
        Look::Summary => head(&summary(soul)),
        Look::Text(text) => match words(text, soul) {
            "" => format!("`{}` is empty", text.name()),
            words => words.to_owned(),
        },
        Look::Folder(Folder::Values) => listed(&soul.values, value),
        Look::Folder(Folder::Opinions) => listed(&soul.opinions, opinion),
        Look::Folder(Folder::Desires) => listed(&soul.desires, |wanted| desire(wanted, now)),
        Look::Folder(Folder::Relationships) => listed(&soul.relationships, value),
        Look::Folder(Folder::Journal) | Look::JournalDates => dates(root, Folder::Journal),
        Look::Folder(Folder::Notes) | Look::NotesDates => dates(root, Folder::Notes),
        Look::Emotions => head(&emotions(root, now)?),
        Look::Changelog => record(root, Record::Changelog)?,
        Look::Dreams => record(root, Record::Dreams)?,
        Look::JournalToday => journal(root, today)?,
        Look::JournalOn(day) => journal(root, day)?,
        Look::NotesToday => notes(root, today)?,
        Look::NotesOn(day) => notes(root, day)?,
    })
}

/// What `soul_history` answers.
pub(crate) fn history(entries: &[Entry]) -> String {
    if entries.is_empty() {
        return NO_HISTORY.to_owned();
    }
    let mut text = String::new();
    for entry in entries {
        let _ = write!(text, "{} {} {}", short(&entry.commit), iso(entry.time), subject(entry));
        if !entry.why.is_empty() {
            let _ = write!(text, " — {}", one_line(&entry.why, 160));
        }
        text.push('\n');
    }
    head(text.trim_end())
}

fn words(text: Text, soul: &Snapshot) -> &str {
    match text {
        Text::Name => &soul.name,
        Text::Identity => &soul.identity.text,
        Text::Purpose => &soul.purpose.text,
        Text::Constitution => &soul.constitution.text,
        Text::Soul => &soul.soul.text,
        Text::User => &soul.user.text,
        Text::Memory => &soul.memory.text,
        Text::Rules => &soul.rules.text,
    }
}

fn summary(soul: &Snapshot) -> String {
    let mut text = format!("name: {}\n", soul.name);
    if let Some(born) = &soul.born_at {
        let _ = writeln!(text, "born: {born}");
    }
    if let Some(five) = &soul.big_five {
        let _ = writeln!(text, "temperament: {}", temperament(five));
    }
    let _ = writeln!(text, "changes: {}\n", soul.sequence);
    for part in Text::ALL.into_iter().filter(|part| *part != Text::Name) {
        let said = match words(part, soul) {
            "" => "(nothing yet)",
            said => said,
        };
        let _ = writeln!(text, "## {}\n{said}\n", part.name());
    }
    let titles = [
        ("values", soul.values.iter().map(|v| format!("- {}: {}", v.slug, v.title)).collect::<Vec<_>>()),
        ("opinions", soul.opinions.iter().map(|o| format!("- {}: {}", o.slug, o.stance)).collect()),
        ("desires", soul.desires.iter().map(|d| format!("- {}: {}{}", d.slug, d.what, marks(d))).collect()),
    ];
    for (name, lines) in titles {
        let lines = if lines.is_empty() { "(none)".to_owned() } else { lines.join("\n") };
        let _ = writeln!(text, "## {name}\n{lines}\n");
    }
    text.trim_end().to_owned()
}

fn listed<T>(all: &[T], tell: impl Fn(&T) -> String) -> String {
    if all.is_empty() {
        return "none yet".to_owned();
    }
    head(&all.iter().map(tell).collect::<Vec<_>>().join("\n\n"))
}

fn value(value: &Held) -> String {
    format!("## {}: {}\n{}", value.slug, value.title, value.body)
}

fn opinion(opinion: &Opinion) -> String {
    let mut text = format!("## {}: {}\nconfidence: {}", opinion.slug, opinion.stance, opinion.confidence);
    for item in &opinion.evidence {
        let _ = write!(text, "\n- {item}");
    }
    text
}

fn desire(desire: &Desire, now: Timestamp) -> String {
    let review = if dynamics::is_review_due(desire, now) { " [review due]" } else { "" };
    let mut text = format!("## {}: {}{}{review}", desire.slug, desire.what, marks(desire));
    let _ = write!(
        text,
        "\nintensity: {}, strength now: {:.2}, horizon: {}, born: {}, last active: {}",
        desire.intensity,
        dynamics::strength(desire, now),
        desire.horizon,
        desire.born,
        desire.active
    );
    if let Some(reviewed) = &desire.reviewed {
        let _ = write!(text, ", reviewed: {reviewed}");
    }
    let _ = write!(text, "\nwhy: {}", desire.why);
    if let Some(heartbeat) = &desire.heartbeat {
        let _ = write!(text, "\nin your own time: {heartbeat}");
    }
    for source in &desire.sources {
        let _ = write!(text, "\nsource: {source}");
    }
    if let Some(earlier) = &desire.earlier {
        let _ = write!(text, "\nbefore that: {earlier}");
    }
    for progress in &desire.progress {
        let _ = write!(text, "\n[{}] {}", progress.at, progress.text);
    }
    text
}

fn marks(desire: &Desire) -> &'static str {
    match desire {
        Desire { closed: true, .. } => " [closed]",
        Desire { needs_user: true, .. } => " [needs you]",
        Desire { actionable: true, .. } => " [actionable]",
        _ => "",
    }
}

fn dates(root: &Path, folder: Folder) -> String {
    let Ok(files) = std::fs::read_dir(root.join(folder.name())) else {
        return "no day yet".to_owned();
    };
    let day = |name: &str| document::day(name.strip_suffix(".md")?).ok();
    let mut days: Vec<_> = files.flatten().filter_map(|file| day(file.file_name().to_str()?)).collect();
    days.sort_unstable_by(|a, b| b.cmp(a));
    if days.is_empty() {
        return "no day yet".to_owned();
    }
    head(&days.iter().map(Date::to_string).collect::<Vec<_>>().join("\n"))
}

fn emotions(root: &Path, now: Timestamp) -> Result<String, String> {
    let path = Record::Emotions.path();
    let bytes = workfile::look(root, path).map_err(|error| ipc::exit::chain(&error))?;
    Ok(Emotions::read(&bytes.unwrap_or_else(|| emotions::defaults(now)))?.told(now))
}

fn record(root: &Path, record: Record) -> Result<String, String> {
    let bytes = workfile::look(root, record.path()).map_err(|error| ipc::exit::chain(&error))?;
    let text = String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned();
    Ok(if text.trim().is_empty() { "nothing is written there yet".to_owned() } else { tail(text.trim_end()) })
}

fn journal(root: &Path, day: Date) -> Result<String, String> {
    let bytes = workfile::look(root, &Document::Journal(day).path());
    match bytes.map_err(|error| ipc::exit::chain(&error))? {
        // the newest entries are what a day is asked for
        Some(bytes) => Ok(tail(String::from_utf8_lossy(&bytes).trim_end())),
        None => Ok(format!("the journal has no entry of {day}")),
    }
}

fn notes(root: &Path, day: Date) -> Result<String, String> {
    let bytes = workfile::look(root, &Document::Notes(day).path());
    match bytes.map_err(|error| ipc::exit::chain(&error))? {
        Some(bytes) => Ok(tail(String::from_utf8_lossy(&bytes).trim_end())),
        None => Ok(format!("there is no note of {day}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_answers_are_cut_at_a_line_and_say_so() {
        let lines = "一行\n".repeat(10_000);
        let cut = head(&lines);
        assert!(cut.lines().rev().skip(1).all(|line| line == "一行"), "whole lines only");
        assert!(cut.ends_with("of 30000 characters are shown]"), "{cut}");
        let cut = tail(&format!("{lines}last"));
        assert!(cut.starts_with("[cut here: the last ") && cut.ends_with("一行\nlast"));
        assert_eq!((head("short"), tail("short")), ("short".to_owned(), "short".to_owned()));
    }
}
