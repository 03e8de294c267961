//! `config.toml` with some keys below `[model]` changed, and every other byte as a person wrote it.
//!
//! What is to be taken out is made a comment, so that nothing a person wrote is lost. The text is cut only where the parser
//! says that a key or a value begins and ends.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    ops::Range,
    path::{Path, PathBuf},
};

use toml_edit::{Document, Item, Table, Value};

/// A text with changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rewritten {
    /// All of it.
    pub(crate) text: String,
    /// The keys that were made comments.
    pub(crate) removed: Vec<String>,
}

/// Why a text could not be changed or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RewriteError {
    /// It does not parse.
    #[error("config.toml does not parse; correct the line, nothing was written")]
    Parse(#[source] toml_edit::TomlError),
    /// `[model]` is not written as a table of lines.
    #[error(
        "`model` in config.toml is not written as a table with one key a line, so it is not changed here; write it below a line \
         `[model]`, or set {these} there yourself"
    )]
    Shape {
        /// What was to be set.
        these: String,
    },
    /// The file changed while the model was tried.
    #[error("config.toml was changed by somebody else meanwhile, and nothing was written; do it again")]
    Changed,
    /// The disk says no.
    #[error("could not write `{path}`; nothing in it was changed")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Sets keys below `[model]`, or makes them comments where there is no value.
pub(crate) fn rewrite(text: &str, keys: &[(&str, Option<String>)]) -> Result<Rewritten, RewriteError> {
    let (mark, body) = text.strip_prefix('\u{feff}').map_or(("", text), |body| ("\u{feff}", body));
    let document = Document::parse(body).map_err(RewriteError::Parse)?;
    let end_of_line = if body.contains("\r\n") { "\r\n" } else { "\n" };
    let (mut cuts, mut removed) = (Vec::new(), Vec::new());
    let mut added = String::new();
    let table = model_table(&document, keys)?;
    for (key, value) in keys {
        let held = table.and_then(|table| table.get_key_value(key));
        match (held, value) {
            (Some((_, Item::Value(held))), Some(value)) => {
                cuts.push((held.span().ok_or_else(|| shape(keys))?, quoted(value)));
            }
            (Some((held, Item::Value(old))), None) => {
                let from = held.span().ok_or_else(|| shape(keys))?.start;
                let to = old.span().ok_or_else(|| shape(keys))?.end;
                let lines = body.get(from..to).ok_or_else(|| shape(keys))?;
                cuts.push((from..to, format!("# {}", lines.replace('\n', "\n# "))));
                removed.push((*key).to_owned());
            }
            (Some(_), _) => return Err(shape(keys)),
            (None, Some(value)) => {
                added.extend([key, " = ", &quoted(value), end_of_line]);
            }
            (None, None) => {}
        }
    }
    if !added.is_empty() {
        let at = match table {
            Some(table) => end_of_own_lines(body, table).ok_or_else(|| shape(keys))?,
            None => body.len(),
        };
        let on_new_line = at == 0 || body.get(..at).is_some_and(|before| before.ends_with('\n'));
        let gap = if on_new_line { "" } else { end_of_line };
        let head = match table {
            Some(_) => String::new(),
            None if body.is_empty() => format!("[model]{end_of_line}"),
            None => format!("{end_of_line}[model]{end_of_line}"),
        };
        cuts.push((at..at, format!("{gap}{head}{added}")));
    }
    // from the end, so that what is before a cut stays where it was found
    cuts.sort_by_key(|(place, _)| std::cmp::Reverse((place.start, place.end)));
    let mut body = body.to_owned();
    for (place, new) in cuts {
        body.replace_range(place, &new);
    }
    Ok(Rewritten { text: format!("{mark}{body}"), removed })
}

/// The table `[model]`, where there is one; an error where it is written in another way.
fn model_table<'a>(
    document: &'a Document<&str>,
    keys: &[(&str, Option<String>)],
) -> Result<Option<&'a Table>, RewriteError> {
    match document.as_table().get("model") {
        None => Ok(None),
        Some(Item::Table(table)) if !table.is_dotted() && !table.is_implicit() => Ok(Some(table)),
        Some(Item::None | Item::Value(_) | Item::Table(_) | Item::ArrayOfTables(_)) => Err(shape(keys)),
    }
}

/// Where the lines of a table's own keys end: behind the last of them, or behind its head.
fn end_of_own_lines(body: &str, table: &Table) -> Option<usize> {
    let ends = table.iter().filter_map(|(_, item)| match item {
        Item::Value(value) => value.span().map(|span: Range<usize>| span.end),
        Item::Table(inner) if inner.is_dotted() => last_value(inner),
        Item::None | Item::Table(_) | Item::ArrayOfTables(_) => None,
    });
    let from = ends.max().or_else(|| {
        // the head itself: its line is the one the table's place begins with
        table.span().map(|span| span.start)
    })?;
    let rest = body.get(from..)?;
    Some(rest.find('\n').map_or(body.len(), |at| from + at + 1))
}

fn last_value(table: &Table) -> Option<usize> {
    let ends = table.iter().filter_map(|(_, item)| match item {
        Item::Value(value) => value.span().map(|span| span.end),
        Item::Table(inner) => last_value(inner),
        Item::None | Item::ArrayOfTables(_) => None,
    });
    ends.max()
}

fn quoted(value: &str) -> String {
    Value::from(value).to_string()
}

fn shape(keys: &[(&str, Option<String>)]) -> RewriteError {
    let these: Vec<_> = keys
        .iter()
        .filter_map(|(key, value)| Some(format!("`{key} = {}`", quoted(value.as_deref()?))))
        .collect();
    RewriteError::Shape { these: these.join(", ") }
}

/// Puts `text` into the file at `path`, whole or not at all, where it still says `before`. A link stays one, permissions stay
/// as they are; a new file is its owner's alone.
pub(crate) fn write(path: &Path, before: Option<&str>, text: &str) -> Result<(), RewriteError> {
    let failed = |source| RewriteError::Write { path: path.to_owned(), source };
    let real = match fs::canonicalize(path) {
        Ok(real) => real,
        Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
        Err(error) => return Err(failed(error)),
    };
    let folder = real.parent().ok_or_else(|| failed(io::Error::other("it lies in no folder")))?;
    let mut beside = tempfile::Builder::new().prefix(".config.toml.").tempfile_in(folder).map_err(failed)?;
    beside.write_all(text.as_bytes()).map_err(failed)?;
    let now = match fs::read_to_string(&real) {
        Ok(now) => Some(now),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(failed(error)),
    };
    if now.as_deref() != before {
        return Err(RewriteError::Changed);
    }
    if now.is_some() {
        let permissions = fs::metadata(&real).map_err(failed)?.permissions();
        beside.as_file().set_permissions(permissions).map_err(failed)?;
    }
    beside.as_file().sync_all().map_err(failed)?;
    beside.persist(&real).map_err(|error| failed(error.error))?;
    // the name itself; where a folder cannot be flushed the file is there all the same
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}

#[cfg(test)]
mod tests;
