//! The sessions of a home: naming a new one, finding one, listing them.

use std::{
    path::{Path, PathBuf},
    time::SystemTime,
};

use jiff::{Timestamp, ZonedDateTime};

use super::{
    Header, Kind, Transcript,
    file::{self, Entry, SessionError},
};
use crate::{
    prompt::title_of,
    provider::{Block, Role},
};

/// How many sessions a list shows, the newest first.
const LISTED_MAX: usize = 200;
/// How much of a file is read for its title.
const BEGINNING_BYTES_MAX: u64 = 256 * 1024;

/// The folder of sessions.
#[derive(Debug, Clone)]
pub(crate) struct Catalog(PathBuf);

/// One session in a list.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Listed {
    /// Its first line.
    pub(crate) header: Header,
    /// The first thing a person said in it.
    pub(crate) title: Option<String>,
    /// When it was last written.
    pub(crate) updated: Timestamp,
}

impl Catalog {
    /// The catalog of the folder at `path`, which need not be there yet.
    pub(crate) fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Makes a session with nobody in particular.
    #[cfg(test)]
    pub(crate) fn create(
        &self,
        kind: Kind,
        cwd: &str,
        model: &str,
        now: &ZonedDateTime,
    ) -> Result<Header, SessionError> {
        self.create_with(None, kind, cwd, model, now)
    }

    /// Makes a session for one task of her own time.
    pub(crate) fn create_for(
        &self,
        task: &str,
        model: &str,
        now: &ZonedDateTime,
    ) -> Result<Header, SessionError> {
        self.make(Kind::Heartbeat, now, |header| {
            model.clone_into(&mut header.model);
            header.rest.insert("task".to_owned(), task.into());
        })
    }

    /// Makes a session with a person.
    pub(crate) fn create_with(
        &self,
        person: Option<String>,
        kind: Kind,
        cwd: &str,
        model: &str,
        now: &ZonedDateTime,
    ) -> Result<Header, SessionError> {
        self.make(kind, now, |header| {
            cwd.clone_into(&mut header.cwd);
            model.clone_into(&mut header.model);
            header.person = person;
        })
    }

    /// Makes the session of a piece of another one's turn: with the same person, in the same folder.
    pub(crate) fn create_part(
        &self,
        of: &Header,
        person: Option<String>,
        model: &str,
        now: &ZonedDateTime,
    ) -> Result<Header, SessionError> {
        self.make(Kind::Task, now, |header| {
            of.cwd.clone_into(&mut header.cwd);
            model.clone_into(&mut header.model);
            header.person = person;
            header.parent = Some(of.id.clone());
        })
    }

    fn make(
        &self,
        kind: Kind,
        now: &ZonedDateTime,
        fill: impl FnOnce(&mut Header),
    ) -> Result<Header, SessionError> {
        ipc::endpoint::private_folder(&self.0).map_err(|error| {
            SessionError::io("make the folder for", &self.0)(std::io::Error::other(error))
        })?;
        let id = format!("{}-{}", now.strftime("%Y%m%d-%H%M%S"), ipc::id::random_hex::<3>());
        let mut header = Header {
            id: id.clone(),
            version: 2,
            started_at: now.timestamp().strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string(),
            cwd: String::new(),
            model: String::new(),
            kind: Some(kind),
            person: None,
            parent: None,
            rest: [("sandboxMode".to_owned(), "off".into())].into_iter().collect(),
        };
        fill(&mut header);
        file::create(&self.path(&id)?, header.clone())?;
        Ok(header)
    }

    /// Reads a session.
    pub(crate) fn read(&self, id: &str) -> Result<Transcript, SessionError> {
        Transcript::read(self.path(id)?, id)
    }

    /// Lists the conversations, the last written first; her own time is not among them.
    pub(crate) fn list(&self) -> Result<Vec<Listed>, SessionError> {
        let listed = self.files()?.into_iter().filter_map(|(modified, path)| listed(modified, &path));
        Ok(listed.take(LISTED_MAX).collect())
    }

    /// The files of all sessions, the last written first.
    pub(super) fn files(&self) -> Result<Vec<(SystemTime, PathBuf)>, SessionError> {
        let failed = |error| SessionError::io("list", &self.0)(error);
        let folder = match std::fs::read_dir(&self.0) {
            Ok(folder) => folder,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut files: Vec<(SystemTime, PathBuf)> = folder
            .filter_map(Result::ok)
            .filter(|entry| entry.path().extension().is_some_and(|extension| extension == "jsonl"))
            .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
            .collect();
        files.sort_by(|a, b| b.cmp(a));
        Ok(files)
    }

    pub(super) fn path(&self, id: &str) -> Result<PathBuf, SessionError> {
        let safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if id.is_empty() || id.len() > 128 || !id.chars().all(safe) {
            return Err(SessionError::BadName { id: ipc::text::one_line(id, 80) });
        }
        Ok(self.0.join(format!("{id}.jsonl")))
    }
}

pub(super) fn listed(modified: SystemTime, path: &Path) -> Option<Listed> {
    let mut entries = file::read_beginning(path, BEGINNING_BYTES_MAX).ok()?.into_iter();
    let Some(Entry::Session(header)) = entries.next() else { return None };
    // a file under another name than its own could not be found again
    if header.kind.is_some_and(|kind| !kind.is_talk()) || path.file_stem()?.to_str()? != header.id {
        return None;
    }
    let title = entries.find_map(|entry| match entry {
        Entry::Message { message, from: None, .. } if message.role == Role::User => {
            message.content.iter().find_map(Block::as_text).map(title_of)
        }
        _ => None,
    });
    Some(Listed { header, title, updated: Timestamp::try_from(modified).ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_named_by_their_local_start_found_and_listed() {
        let folder = tempfile::tempdir().unwrap();
        let catalog = Catalog::at(folder.path().join("sessions"));
        assert!(catalog.list().unwrap().is_empty());
        let now: ZonedDateTime = "2026-11-30T08:05:06+08:00[Asia/Shanghai]".parse().unwrap();
        let chat = catalog.create(Kind::Chat, "/home/anna", "offline", &now).unwrap();
        catalog.create(Kind::Reflect, "", "offline", &now).unwrap();
        let beat = catalog.create(Kind::Heartbeat, "/", "offline", &now).unwrap();
        assert!(chat.id.starts_with("20261130-080506-"), "{}", chat.id);
        assert_eq!(chat.started_at, "2026-11-30T00:05:06.000Z");
        let listed = catalog.list().unwrap();
        assert_eq!(listed.iter().map(|l| l.header.id.as_str()).collect::<Vec<_>>(), [chat.id.as_str()]);
        assert_eq!(catalog.read(&beat.id).unwrap().header.kind, Some(Kind::Heartbeat));
        assert!(matches!(catalog.read("../../etc/passwd"), Err(SessionError::BadName { .. })));
        assert!(matches!(catalog.read("20200101-000000-000000"), Err(SessionError::Unknown { .. })));
    }

    #[test]
    fn se10_files_are_for_us_alone() {
        use std::os::unix::fs::MetadataExt as _;
        let folder = tempfile::tempdir().unwrap();
        let catalog = Catalog::at(folder.path().join("sessions"));
        let now: ZonedDateTime = "2026-11-30T08:05:06+08:00[Asia/Shanghai]".parse().unwrap();
        let chat = catalog.create(Kind::Chat, "/", "offline", &now).unwrap();
        let mode = |path: PathBuf| std::fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!(mode(folder.path().join("sessions")), 0o700);
        assert_eq!(mode(folder.path().join(format!("sessions/{}.jsonl", chat.id))), 0o600);
    }
}
