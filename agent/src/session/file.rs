//! One session file: its lines, reading them, appending one.

use std::{
    fs::{File, OpenOptions},
    io::{self, BufReader, Read as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use ipc::{
    contract::{sessions::Usage, soul},
    lines,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    compaction::Compaction,
    reflection::{Begun, Record},
};
use crate::{approval::Stand, provider::Message};

/// The longest line that is read: the longest answer of a model, each of its bytes escaped.
const LINE_BYTES_MAX: usize = 32 << 20;
/// How much of a file is read at once.
const READ_BYTES: usize = 64 << 10;

/// Why a session cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SessionError {
    /// There is none of that name.
    #[error("there is no session `{id}`")]
    Unknown { id: String },
    /// The name could be a path.
    #[error("`{id}` is no session's name: those have letters, digits, `-` and `_` only")]
    BadName { id: String },
    /// The file has no first line that says what it is.
    #[error("the session file `{path}` does not begin as one; move it away, or mend its first line")]
    NoHeader { path: PathBuf },
    /// Somebody else writes it.
    #[error("the session `{id}` is being written by another process; end that one, or begin a new session")]
    Busy { id: String },
    /// The system refused.
    #[error("could not {attempt} the session file `{path}`")]
    Io { attempt: &'static str, path: PathBuf, source: io::Error },
}

impl SessionError {
    pub(crate) fn io(attempt: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { attempt, path, source }
    }
}

/// The first line of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Header {
    /// Its name.
    pub(crate) id: String,
    /// The version of the format.
    pub(crate) version: u32,
    /// When it began.
    pub(crate) started_at: String,
    /// The folder it works in: where the person was when it began. Taken up from elsewhere it stays this one.
    #[serde(default)]
    pub(crate) cwd: String,
    /// The model it began with.
    #[serde(default)]
    pub(crate) model: String,
    /// What it is for. The original has no such field: its sessions are conversations, read here and continued when a
    /// person names them, but not taken for the newest one by themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<Kind>,
    /// Whom she talks with: the name of their page in `relationships/`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) person: Option<String>,
    /// The session whose turn this one is a part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) parent: Option<String>,
    /// Whatever else a first line says.
    #[serde(flatten)]
    pub(crate) rest: Map<String, Value>,
}

impl Header {
    /// The folder it works in. Her own time has none, and a relative path would mean another in each process.
    pub(crate) fn folder(&self) -> Option<&Path> {
        Some(Path::new(&self.cwd)).filter(|folder| folder.is_absolute())
    }
}

/// What a session is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// A conversation with a person.
    Chat,
    /// Her own time.
    Heartbeat,
    /// She looks back on another session.
    Reflect,
    /// A piece of another session's turn.
    Task,
}

impl Kind {
    /// Whether a person talks in it.
    pub(crate) const fn is_talk(self) -> bool {
        match self {
            Self::Chat => true,
            Self::Heartbeat | Self::Reflect | Self::Task => false,
        }
    }
}

/// Who else puts a message into a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Speaker {
    /// This process, in its own name: nobody's words.
    Runtime,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Entry {
    /// What the file is.
    Session(Header),
    /// Something was said.
    Message {
        /// When.
        ts: Timestamp,
        /// What.
        message: Message,
        /// The request that brought it, on the message that begins a turn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request: Option<String>,
        /// Who put it there, where that was neither a person nor a model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<Speaker>,
    },
    /// She objected; written behind the call that did it.
    Objection {
        /// When.
        ts: Timestamp,
        /// In whose turn.
        request: String,
        /// To what, and why.
        objection: Box<soul::Objection>,
    },
    /// A person was told of an objection.
    Surfaced {
        /// When.
        ts: Timestamp,
        /// In whose turn.
        request: String,
        /// Of which, and by whom.
        surfaced: soul::Surfaced,
    },
    /// The system prompt was another from here on.
    Prompt {
        /// When.
        ts: Timestamp,
        /// The first 16 digits of its SHA-256.
        fingerprint: String,
        /// The whole of it.
        text: String,
        /// `initial` or `rebuilt`.
        reason: String,
    },
    /// A call needs a person's word, and this is how far it has come.
    Approval {
        /// When.
        ts: Timestamp,
        /// In whose turn.
        request: String,
        /// Which call.
        call: String,
        /// How far.
        stand: Stand,
    },
    /// Looking back on the session begins, in a session of its own.
    Reflecting(Begun),
    /// Looking back on the session is over.
    Reflection(Record),
    /// From here on the conversation is sent with a summary in place of its older part.
    Compaction(Compaction),
    /// Another model answered, or will.
    ModelChange {
        /// When.
        ts: Timestamp,
        /// Which.
        model: String,
    },
    /// A turn is over.
    TurnEnd {
        /// When.
        ts: Timestamp,
        /// Whose.
        request: String,
        /// Why, in the protocol's words.
        stop_reason: String,
        /// What went wrong, where something did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// What it cost, where a model was asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
    },
}

/// Reads a file: its first line, and those behind it that mean something here, one at a time.
pub(crate) fn read(
    path: &Path,
    id: &str,
) -> Result<(Header, impl Iterator<Item = Result<Entry, SessionError>> + use<>), SessionError> {
    let file = File::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => SessionError::Unknown { id: id.to_owned() },
        _ => SessionError::io("read", path)(error),
    })?;
    let failed = path.to_owned();
    let mut entries = lines::stream(BufReader::with_capacity(READ_BYTES, file), LINE_BYTES_MAX)
        .map(move |entry| entry.map_err(SessionError::io("read", &failed)));
    match entries.next() {
        Some(Ok(Entry::Session(header))) => Ok((header, entries)),
        Some(Err(error)) => Err(error),
        Some(Ok(_)) | None => Err(SessionError::NoHeader { path: path.to_owned() }),
    }
}

/// Reads at most `bytes_max` of the beginning, for a list of sessions.
pub(crate) fn read_beginning(path: &Path, bytes_max: u64) -> io::Result<Vec<Entry>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(lines::parse(&bytes))
}

/// Makes the file of a new session; one of that name must not be there.
pub(crate) fn create(path: &Path, header: Header) -> Result<(), SessionError> {
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    made.map_err(SessionError::io("make", path))?;
    append(path, &Entry::Session(header), false)
}

/// Appends one line; `durable` waits until it is on the disk.
pub(crate) fn append(path: &Path, entry: &Entry, durable: bool) -> Result<(), SessionError> {
    lines::append(path, entry, durable).map_err(SessionError::io("append to", path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn message(text: &str) -> Entry {
        Entry::Message { ts: Timestamp::UNIX_EPOCH, message: Message::user(text), request: None, from: None }
    }

    fn header() -> Header {
        serde_json::from_value(
            json!({"id": "s", "version": 2, "startedAt": "x", "cwd": "/", "model": "offline",
            "sandboxMode": "off", "kind": "chat"}),
        )
        .unwrap()
    }

    #[test]
    fn se1_se4_what_is_appended_is_read_back_also_behind_a_torn_line() {
        use std::io::Write as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        create(&path, header()).unwrap();
        assert!(create(&path, header()).is_err(), "a session is never made over another");
        append(&path, &message("你好"), true).unwrap();
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"type\":\"mess").unwrap();
        append(&path, &message("after"), false).unwrap();
        let (first, entries) = read(&path, "s").unwrap();
        assert_eq!((&first, first.version), (&header(), 2));
        assert_eq!(entries.map(Result::unwrap).collect::<Vec<_>>(), [message("你好"), message("after")]);
    }

    #[test]
    fn rp7_lines_of_another_kind_are_passed_over_and_unknown_fields_of_the_first_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        let lines = [
            json!({"type": "session", "id": "s", "version": 2, "startedAt": "x", "cwd": "/", "model": "m", "sandboxMode": "off"}),
            json!({"type": "invented_later", "ts": "2026-01-01T00:00:00Z", "model": "?"}),
            json!({"type": "message", "ts": "2026-01-01T00:00:00.000Z", "message": {"role": "user", "content": "hi"}}),
        ];
        std::fs::write(&path, lines.map(|line| line.to_string()).join("\n")).unwrap();
        let (header, entries) = read(&path, "s").unwrap();
        assert_eq!(entries.count(), 1);
        assert_eq!((header.kind, header.rest["sandboxMode"].as_str()), (None, Some("off")));
    }

    #[test]
    fn a_session_works_in_an_absolute_folder_or_in_none() {
        let check = |cwd: &str, folder: Option<&str>| {
            let header = Header { cwd: cwd.to_owned(), ..header() };
            assert_eq!(header.folder(), folder.map(Path::new), "{cwd:?}");
        };
        check("/home/anna/灯塔", Some("/home/anna/灯塔"));
        check("", None);
        check("project", None);
    }

    #[test]
    fn se2_what_is_no_session_is_said_to_be_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        assert!(matches!(read(&path, "s").err(), Some(SessionError::Unknown { .. })));
        std::fs::write(&path, "").unwrap();
        assert!(matches!(read(&path, "s").err(), Some(SessionError::NoHeader { .. })));
    }
}
