//! `lisa soul edit`: one document in a person's own words, through an editor, or from stdin where there is no terminal.
//!
//! ```text
//!  read ─▶ a file for us alone ─▶ the editor ─▶ unchanged: nothing
//!    └─ stdin, without a terminal ─┴─▶ asked of the soul ─▶ written, or refused: the text stays in the file
//! ```
//!
//! Nothing that was typed is lost: the file goes away only when the soul has the text, or when the text is the old one.

use std::{
    fs::OpenOptions,
    io::{self, IsTerminal as _, Read as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use ipc::{
    contract::{
        chat::SOUL,
        soul::{self, Reply, Request, Written},
    },
    exit::Fault,
    home::Home,
    id::random_hex,
};
use serde_json::json;

use crate::{
    link::{CHILD_PATIENCE, Link, LinkError},
    output,
    status::short,
};

/// The editor where nobody has named one, as POSIX has it.
const EDITOR: &str = "vi";

/// The most bytes that are read as a text: far more than any document may have, far less than a frame.
const TEXT_BYTES_MAX: u64 = 1024 * 1024;

/// Why a text could not be had.
#[derive(Debug, thiserror::Error)]
enum EditError {
    #[error("could not {attempt} `{path}`")]
    File { attempt: &'static str, path: PathBuf, source: io::Error },
    #[error(
        "could not start the editor `{editor}`; name another in VISUAL or EDITOR, or give the text on stdin"
    )]
    Start { editor: String, source: io::Error },
    #[error("the editor `{editor}` ended with {how}, so nothing was changed; what you wrote is in `{path}`")]
    Ended { editor: String, how: String, path: PathBuf },
    #[error("could not read the text from stdin; it must be UTF-8 of at most a mebibyte")]
    Stdin(#[source] io::Error),
}

/// The document as it was before.
struct Before {
    /// What it is called in the soul, or what was typed where it is not there yet.
    name: String,
    /// What it says; nothing where it is not there yet.
    text: Option<String>,
}

/// Has a document edited, and asks the soul to take it.
pub(crate) async fn edit(home: &Home, json: bool, document: String, why: String) -> Result<(), Fault> {
    let before = before(home, &document).await?;
    let old = before.text.clone().unwrap_or_default();
    let (text, file) = if io::stdin().is_terminal() {
        let path = scratch(&before.name);
        put(&path, &with_end(&old)).map_err(Fault::failed)?;
        have_edited(&path, editor(|name| std::env::var(name).ok())).await.map_err(Fault::failed)?;
        (take(&path).map_err(Fault::failed)?, Some(path))
    } else {
        (from_stdin().map_err(Fault::failed)?, None)
    };
    if before.text.is_some() && text.trim() == old.trim() || before.text.is_none() && text.trim().is_empty() {
        discard(file.as_deref());
        return told(json, &before.name, None);
    }
    let asked = soul::Edit { document, text: text.clone(), before: before.text, why, human: false };
    match offer(home, asked).await {
        Ok(written) => {
            discard(file.as_deref());
            told(json, &before.name, written.as_ref())
        }
        Err(fault) => {
            let kept = if let Some(path) = file {
                Ok(path)
            } else {
                let path = scratch(&before.name);
                put(&path, &text).map(|()| path)
            };
            output::aside(&match kept {
                Ok(path) => format!("what you wrote is in `{}`", path.display()),
                Err(error) => format!("what you wrote is kept nowhere: {error}"),
            });
            Err(fault)
        }
    }
}

async fn before(home: &Home, document: &str) -> Result<Before, Fault> {
    let mut link = Link::open(home).await?;
    let read = Request::Read { document: document.to_owned() };
    match link.ask(SOUL, &read, CHILD_PATIENCE).await? {
        Reply::Document { path, text } => Ok(Before { name: path, text: Some(text) }),
        Reply::Refused { reason } => {
            // a name that has a history, or could have one, is that of a document that is not there yet
            let named = Request::History { document: Some(document.to_owned()), limit: 1, since: None };
            match link.ask(SOUL, &named, CHILD_PATIENCE).await? {
                Reply::History { .. } => {
                    output::aside(&format!("{reason}; what you save makes it"));
                    Ok(Before { name: document.to_owned(), text: None })
                }
                _ => Err(Fault::failed(reason)),
            }
        }
        _ => Err(unexpected()),
    }
}

async fn offer(home: &Home, asked: soul::Edit) -> Result<Option<Written>, Fault> {
    // the editor may have been open for hours, so this is a connection of its own
    match Link::open(home).await?.ask(SOUL, &Request::Edit(asked), CHILD_PATIENCE).await? {
        Reply::Edited { written } => Ok(written),
        Reply::Refused { reason } => Err(Fault::failed(reason)),
        _ => Err(unexpected()),
    }
}

fn unexpected() -> Fault {
    LinkError::Unintelligible("the soul answered another question".to_owned()).into()
}

fn told(json: bool, name: &str, written: Option<&Written>) -> Result<(), Fault> {
    match written {
        _ if json => output::json(&json!({"document": name, "written": written})),
        Some(written) => output::lines(&format!("wrote `{name}`, commit {}", short(&written.commit))),
        None => {
            output::aside(&format!("unchanged: `{name}` says this already"));
            Ok(())
        }
    }
}

/// A name for a file that nobody else has, with what the document is called so that an editor knows its kind.
fn scratch(name: &str) -> PathBuf {
    let last = name.rsplit('/').next().unwrap_or(name);
    let tame: String =
        last.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.')).take(40).collect();
    let ending = if tame.contains('.') { "" } else { ".md" };
    std::env::temp_dir().join(format!("lisa-{}-{tame}{ending}", random_hex::<6>()))
}

/// What an editor expects of a file: that its last line ends.
fn with_end(text: &str) -> String {
    if text.is_empty() || text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") }
}

fn put(path: &Path, text: &str) -> Result<(), EditError> {
    let failed = |source| EditError::File { attempt: "write", path: path.to_owned(), source };
    // the self is nobody else's to read, and what lies there already is not ours
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)
}

fn take(path: &Path) -> Result<String, EditError> {
    let failed = |source| EditError::File { attempt: "read", path: path.to_owned(), source };
    text_of(std::fs::File::open(path).map_err(failed)?).map_err(failed)
}

fn from_stdin() -> Result<String, EditError> {
    text_of(io::stdin().lock()).map_err(EditError::Stdin)
}

fn text_of(from: impl io::Read) -> io::Result<String> {
    let mut text = String::new();
    if from.take(TEXT_BYTES_MAX + 1).read_to_string(&mut text)? as u64 > TEXT_BYTES_MAX {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(text)
}

fn discard(file: Option<&Path>) {
    if let Some(path) = file {
        // a file that is left over does no harm, and its text is in the soul
        let _ = std::fs::remove_file(path);
    }
}

/// Runs the person's editor on a file, and waits for its end.
async fn have_edited(path: &Path, editor: String) -> Result<(), EditError> {
    let start = |source| EditError::Start { editor: editor.clone(), source };
    // people write options behind their editor (`code --wait`), and quote them as for a shell
    #[expect(clippy::disallowed_methods, reason = "the one place that runs a program of the person's choice")]
    let mut command = tokio::process::Command::new("sh");
    command.arg("-c").arg(format!("{editor} \"$1\"")).arg("lisa").arg(path);
    let mut child = command.spawn().map_err(start)?;
    let status = loop {
        tokio::select! {
            status = child.wait() => break status.map_err(start)?,
            // on this terminal it is meant for the editor
            _ = tokio::signal::ctrl_c() => {}
        }
    };
    if status.success() {
        return Ok(());
    }
    Err(EditError::Ended { editor, how: status.to_string(), path: path.to_owned() })
}

/// The editor a person has chosen: the first of VISUAL and EDITOR that says something.
fn editor(variable: impl Fn(&str) -> Option<String>) -> String {
    let chosen = ["VISUAL", "EDITOR"].into_iter().filter_map(variable).find(|said| !said.trim().is_empty());
    chosen.unwrap_or_else(|| EDITOR.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_editor_is_the_persons() {
        let check = |visual: Option<&str>, editor_is: Option<&str>, expected: &str| {
            let said = |name: &str| if name == "VISUAL" { visual } else { editor_is }.map(str::to_owned);
            assert_eq!(editor(said), expected);
        };
        check(Some("code --wait"), Some("nano"), "code --wait");
        check(Some(" "), Some("nano"), "nano");
        check(None, None, "vi");
    }

    #[test]
    fn the_file_is_for_us_alone_and_named_after_the_document() {
        use std::os::unix::fs::MetadataExt as _;
        let name = |document: &str| scratch(document).file_name().unwrap().to_string_lossy().into_owned();
        assert!(name("desires/学习.progress.md").ends_with("-学习.progress.md"));
        assert!(name("rules").ends_with("-rules.md"));
        assert!(name("a/b c\n$(x)").ends_with("-bcx.md"));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.md");
        put(&path, "灯\n").unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert!(put(&path, "another").is_err(), "nothing is written over");
        assert_eq!(take(&path).unwrap(), "灯\n");
        std::fs::write(&path, b"\xff").unwrap();
        assert!(take(&path).is_err());
    }

    #[test]
    fn an_editor_is_run_as_a_shell_would_and_its_failure_keeps_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("with blanks.md");
        put(&path, "old\n").unwrap();
        let edited = |editor: &str| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(have_edited(&path, editor.to_owned()))
        };
        edited("printf '灯 %s' new >>").unwrap();
        assert_eq!(take(&path).unwrap(), "old\n灯 new");
        let said = edited("false").unwrap_err().to_string();
        assert!(said.contains("nothing was changed") && said.contains("with blanks.md"), "{said}");
        assert!(path.exists());
    }

    #[test]
    fn an_editor_is_given_whole_lines() {
        assert_eq!(
            (with_end(""), with_end("a"), with_end("a\n")),
            (String::new(), "a\n".into(), "a\n".into())
        );
    }

    #[test]
    fn what_is_too_long_to_be_a_text_is_none() {
        assert!(text_of(io::repeat(b'a')).is_err());
        assert_eq!(text_of("灯".as_bytes()).unwrap(), "灯");
    }
}
