//! Refusal: while the disk takes no write nothing is accepted, it is said why, and it is tried until it works again.

use std::sync::PoisonError;

use super::{Repository, RepositoryError, Result, cause, log::Log};

impl Repository {
    /// Why nothing can be written just now, if so: the last write could not be made durable, or what was accepted before
    /// cannot be brought into git.
    pub(super) fn trouble(&self) -> Option<String> {
        let state = self.progress.now();
        let stuck = state.trouble.map(|why| RepositoryError::Stuck { why }.to_string());
        let refusing = || {
            let why = state.refusing?;
            Some(format!("{why}; nothing is written until then, and it goes on by itself"))
        };
        stuck.or_else(refusing)
    }

    /// Whether the last write was refused by the disk, and none has worked since.
    pub(crate) fn is_refusing(&self) -> bool {
        self.progress.now().refusing.is_some()
    }

    /// Keeps why a write was refused, where the disk has refused it; gives what came of it as it is.
    pub(super) fn noting<T>(&self, done: Result<T>) -> Result<T> {
        if let Err(error) = &done
            && cause::is_of_the_disk(error)
        {
            let why = cause::sentence(error);
            self.progress.change(|state| state.refusing = Some(why));
        }
        done
    }

    /// Looks whether the disk takes writes again, by a write that says nothing.
    pub(crate) fn try_again(&mut self) {
        if !self.is_refusing() {
            return;
        }
        match self.write_nothing() {
            Ok(()) => {
                tracing::info!("the disk takes writes again");
                self.progress.change(|state| state.refusing = None);
            }
            Err(error) => {
                let why = cause::sentence(&error);
                self.progress.change(|state| state.refusing = Some(why));
            }
        }
    }

    fn write_nothing(&self) -> Result<()> {
        // where no folder of git is yet, one has to be made in the folder of the self, or that in the home
        let folder = match &self.git {
            Some(git) => git.path(),
            None if self.root.is_dir() => &self.root,
            None => self.root.parent().unwrap_or(&self.root),
        };
        cause::write_page(folder, 0).map_err(super::workfile::failed("write in", folder))?;
        match (&self.writer, &self.git) {
            (Some(writer), _) => writer.log.lock().unwrap_or_else(PoisonError::into_inner).touch(),
            (None, Some(git)) if Log::place(git.path()).exists() => Log::open(git.path()).map(drop),
            (None, _) => Ok(()),
        }
    }
}
