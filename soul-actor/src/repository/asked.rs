//! Asked: what came of a request before, and what the side index may be asked.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use git2::Oid;

use super::{Asked, Index, Repository, SETTLING, index};

impl Repository {
    /// The id under which a commit stands that was answered with this one.
    pub(crate) fn standing(&self, answered: Oid) -> Oid {
        let mut id = answered;
        while let Some(next) = self.standing.get(&id) {
            id = *next;
        }
        id
    }

    /// What is known of a request of an earlier process, or of long ago.
    pub(crate) fn asked(&self, request: &str) -> Asked {
        if let Some((commit, answer)) = self.early.get(request) {
            return Asked::Answered(commit.to_string(), answer.clone());
        }
        if self.head.id.is_none() || self.is_new(request) {
            return Asked::Never;
        }
        self.with_index(|index| index.first(request)).map_or(Asked::Unknown, |first| match first {
            Some(first) => {
                let answer = first.answer.and_then(|answer| serde_json::from_str(&answer).ok());
                Asked::Answered(first.commit.to_string(), answer)
            }
            None => Asked::Never,
        })
    }

    /// Whether nothing is known of a request for certain, without asking the side index: nearly all are.
    fn is_new(&self, request: &str) -> bool {
        let mut requests = self.requests.borrow_mut();
        if requests.as_ref().is_none_or(|known| known.len() > 2 * index::REQUESTS_MAX) {
            *requests = self.with_index(Index::requests).map(|indexed| {
                let coming = self.unapplied.iter().map(|write| &write.record);
                let coming = coming.chain(self.batch.iter().map(|write| &write.record));
                let coming = coming.filter_map(|record| record.about.request.as_deref());
                indexed.iter().map(String::as_str).chain(coming).map(digest).collect()
            });
        }
        requests.as_ref().is_some_and(|known| !known.contains(&digest(request)))
    }

    /// Waits until what was flushed is in git, as far as that works.
    pub(super) fn wait_applied(&self) {
        self.hand_over();
        let flushed = self.position - self.batch.len() as u64;
        self.progress.wait(SETTLING, |state| {
            state.applied >= flushed || state.trouble.is_some() || state.moved || state.ended
        });
    }

    /// Asks the side index, if it is of a commit of the chain that is on its way to git, or of git's newest.
    pub(super) fn with_index<T>(&self, ask: impl FnOnce(&Index) -> rusqlite::Result<T>) -> Option<T> {
        let git = self.git.as_ref()?;
        self.ask_index(|open| {
            let Some((head, _)) = open.head()? else { return Ok(None) };
            // what is on its way is in memory besides; anything else than the chain of ours is not for the index to say
            let is_current = Some(head)
                == self.branch.as_ref().and_then(|branch| git.refname_to_id(branch).ok())
                || self
                    .unapplied
                    .iter()
                    .any(|write| write.record.id == head || write.record.parent == Some(head));
            is_current.then(|| ask(open)).transpose()
        })?
    }

    /// Asks the side index, whatever it is of.
    pub(super) fn ask_index<T>(&self, ask: impl FnOnce(&Index) -> rusqlite::Result<T>) -> Option<T> {
        let git = self.git.as_ref()?;
        self.writer.as_ref()?;
        let mut index = self.index.borrow_mut();
        if index.is_none() {
            *index = Index::read(git.path());
        }
        ask(index.as_ref()?).ok()
    }
}

/// What is kept of a request in memory.
pub(super) fn digest(request: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    request.hash(&mut hasher);
    hasher.finish()
}
