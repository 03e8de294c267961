//! Where the newest commit is: at a start, after a commit of somebody else, and what becomes of what was accepted then.
//!
//! ```text
//!  log ─▶ each record computed again on the one before, ids compared ─▶ branch at one of them, or before? ─▶ applied
//!                                                                    └─ elsewhere: on top of that, under new ids
//! ```

use std::{collections::HashMap, sync::Arc};

use git2::{ErrorCode, Oid};
use tracing::{info, warn};

use super::{
    Accepted, Anchor, Batch, Head, Repository, RepositoryError, Result, hands,
    log::{self, Log, Record},
    mend, versions,
};

/// How far back a commit of somebody else is searched for what it stands on.
const SEARCH_MAX: usize = 20_000;

impl Repository {
    /// Reads the newest commit of git, and the branch.
    pub(super) fn load(&mut self) -> Result<()> {
        let (branch, id) = self.where_git_is()?;
        let known = self.head.id.map(|id| (id, self.head.versions));
        self.branch = branch;
        self.head = self.head_at(id, known)?;
        self.meet(id, self.position)
    }

    /// Looks whether what is at `here` goes on from what is known to be hers; what is new there is somebody else's, on top
    /// of what is `below` this position.
    fn meet(&mut self, here: Option<Oid>, below: u64) -> Result<()> {
        let Some(anchor) = &self.anchor else {
            // nothing is known yet, so this is hers
            if let (Some(writer), Some(branch), Some(here)) = (&self.writer, &self.branch, here) {
                let anchor = Anchor::at(branch, here);
                writer.log().drop_anchor(&anchor)?;
                self.anchor = Some(anchor);
            }
            return Ok(());
        };
        let known = anchor.head;
        self.is_lost = match here {
            Some(here) => !self.contains(here, known)?,
            None => true,
        };
        if let Some(here) = here.filter(|here| !self.is_lost && *here != known) {
            let anchor = Anchor { head: here, ..anchor.clone() };
            // first what they changed is kept, then the anchor moves over it: a kill in between tells of it once more
            self.notice_strangers(known, here)?;
            if let Some(writer) = &self.writer {
                // who lets go of what is below leaves the anchor where it is then
                self.progress.change(|state| state.anchored = below);
                writer.log().drop_anchor(&anchor)?;
            }
            self.strange.push((known, here));
            // theirs may name requests too
            *self.requests.get_mut() = None;
            self.anchor = Some(anchor);
        }
        Ok(())
    }

    /// Whether a commit is another one or stands on it.
    fn contains(&self, here: Oid, known: Oid) -> Result<bool> {
        let git = self.git()?;
        if here == known {
            return Ok(true);
        }
        // a commit that git does not have is in no history
        Ok(hands::has_commit(git, known)
            && git.graph_descendant_of(here, known).map_err(RepositoryError::git("walk the history"))?)
    }

    /// The branch that HEAD names, and the commit that it is at.
    fn where_git_is(&self) -> Result<(Option<String>, Option<Oid>)> {
        let git = self.git()?;
        let head = git.find_reference("HEAD").map_err(RepositoryError::git("read HEAD"))?;
        let branch = head.symbolic_target().ok().flatten().map(str::to_owned);
        let id = match &branch {
            Some(branch) => git.refname_to_id(branch),
            None => {
                head.target().ok_or_else(|| git2::Error::from_str("HEAD names neither a branch nor a commit"))
            }
        };
        match id {
            Ok(id) => Ok((branch, Some(id))),
            Err(error) if error.code() == ErrorCode::NotFound => Ok((branch, None)),
            Err(source) => Err(RepositoryError::Open { path: self.root.to_path_buf(), source }),
        }
    }

    fn head_at(&self, id: Option<Oid>, known: Option<(Oid, super::Versions)>) -> Result<Head> {
        let (git, Some(id)) = (self.git()?, id) else { return Ok(Head::unborn()) };
        let read = || {
            let indexed = super::Index::read(git.path()).and_then(|index| index.versions(id));
            let versions = match indexed {
                Some(versions) => versions,
                None => versions::count(git, id, known)?,
            };
            Head::load(git, id, versions)
        };
        let mut head =
            read().map_err(|source| RepositoryError::Open { path: self.root.to_path_buf(), source })?;
        if head.folder.file(crate::seed::PATH).is_some() {
            head.versions.prompt_version = head.versions.prompt_version.max(1);
        }
        Ok(head)
    }

    /// Notices what somebody else did to the branch, while nothing of ours is on its way; what is, notices by itself.
    pub(super) fn look_around(&mut self) -> Result<()> {
        if self.git.is_none() || self.is_looked || !self.batch.is_empty() {
            return Ok(());
        }
        self.forget_applied();
        if self.progress.now().moved {
            return self.rebase();
        }
        if self.is_unsettled() {
            return Ok(());
        }
        let (branch, id) = self.where_git_is()?;
        if branch != self.branch || id != self.head.id {
            self.load()?;
        }
        self.is_looked = true;
        Ok(())
    }

    /// Brings what an earlier life accepted into git.
    pub(super) fn replay(&mut self) -> Result<()> {
        let git_dir = self.git()?.path().to_owned();
        let read = || {
            let log = Log::open(&git_dir)?;
            let (records, standing) = (log.records()?, log.standing()?);
            let (anchor, strangers) = (log.anchor()?, log.strangers()?);
            Ok((log, records, standing, anchor, strangers))
        };
        let (log, records, standing, anchor, strangers) = match read() {
            Ok(read) => read,
            Err(error) if log::is_broken(&error) => {
                let aside = Log::put_aside(&git_dir)?;
                let (aside, error) = (aside.display(), ipc::exit::chain(&error));
                warn!(error, %aside, "the log could not be read, and was put aside");
                self.notice = Some(format!(
                    "the log of the last writes could not be read ({error}) and was put aside as `{aside}`; look with `git log` whether the last changes are there"
                ));
                (Log::open(&git_dir)?, vec![], HashMap::new(), None, vec![])
            }
            Err(error) => return Err(error),
        };
        (self.standing, self.anchor, self.strangers) = (standing, anchor, strangers);
        if records.is_empty() {
            self.begin(log)?;
            return self.load();
        }
        info!(records = records.len(), "bringing into git what was accepted before the last end");
        let place = Log::place(&git_dir);
        mend::remove_torn(&git_dir);
        let base = self.head_at(records.first().and_then(|record| record.parent), None)?;
        let accepted = chain(base, &records).ok_or(RepositoryError::Replay {
            path: place,
            what: "does not lead to the commits that it names",
        })?;
        self.position = records.last().map_or(0, |record| record.position);
        self.branch = records.last().map(|record| record.about.branch.clone());
        let base = records.first().and_then(|record| record.parent);
        // a branch that cannot be read, or names what is not there, counts as one that is not there
        let here = self.branch.as_ref().and_then(|branch| self.git().ok()?.refname_to_id(branch).ok());
        let here = here.filter(|id| self.git().is_ok_and(|git| hands::has_commit(git, *id)));
        let is_ours = here.is_none() || here == base || records.iter().any(|record| Some(record.id) == here);
        self.unapplied = accepted.iter().map(|(_, accepted)| accepted.clone()).collect();
        self.early = records
            .iter()
            .filter_map(|r| Some((r.about.request.clone()?, (r.id, r.about.answer.clone()))))
            .collect();
        for write in &self.unapplied {
            self.root.expect(write.record.position, &write.record.files);
        }
        self.begin(log)?;
        if is_ours {
            // they may have been accepted on top of what was not hers, which a start does not make hers
            if let (Some(anchor), Some(base)) = (&self.anchor, base) {
                self.is_lost = !self.contains(base, anchor.head)?;
            }
            if let (Some((head, _)), Some(branch)) = (accepted.last(), &self.branch) {
                self.head = head.clone();
                if let (Some(id), false) = (head.id, self.is_lost) {
                    let branch = self.anchor.as_ref().map_or(branch, |anchor| &anchor.branch);
                    self.anchor = Some(Anchor::at(branch, id));
                }
            }
            let writes = self.unapplied.iter().cloned().collect();
            self.send(writes, false, true);
        } else {
            self.rebase()?;
        }
        // if it does not work now it is tried again, and whoever asks is told
        match self.settle() {
            // a person may be on another branch by now
            Ok(()) => self.look_around(),
            Err(error) => {
                warn!(error = ipc::exit::chain(&error), "what was accepted cannot be brought into git yet");
                Ok(())
            }
        }
    }

    pub(super) fn send(&self, writes: Vec<Arc<Accepted>>, instead: bool, is_start: bool) {
        if let (Some(writer), Some(branch)) = (&self.writer, &self.branch) {
            let (branch, is_hers) = (branch.clone(), !self.is_lost);
            writer.applier.send(Batch { writes, branch, instead, is_start, is_hers });
        }
    }

    /// Puts what was accepted and is not in git on top of what somebody else has committed there.
    pub(super) fn rebase(&mut self) -> Result<()> {
        // the chain that was accepted must be in the log as a whole before it is written anew
        let _ = self.flush(|_| None);
        self.forget_applied();
        let here = self.branch.as_ref().and_then(|branch| self.git().ok()?.refname_to_id(branch).ok());
        let below = self.already_below(here)?;
        let ours = self.unapplied.iter().rfind(|write| below == Some(write.record.position));
        let ours = ours.map(|write| write.record.id);
        if let Some(base) = ours.or_else(|| self.unapplied.front().and_then(|write| write.record.parent)) {
            let branch = self.branch.clone().unwrap_or_default();
            let branch = self.anchor.take().map_or(branch, |anchor| anchor.branch);
            self.anchor = Some(Anchor::at(&branch, base));
            let first = self.unapplied.front().map_or(self.position, |write| write.record.position - 1);
            self.meet(here, below.unwrap_or(first))?;
        }
        let known = self.unapplied.iter().rfind(|write| below == Some(write.record.position));
        let known = known.map(|write| (write.record.id, write.record.about.versions));
        let mut head = self.head_at(here, known)?;
        let mut standing = Vec::new();
        let mut writes = Vec::new();
        for write in &self.unapplied {
            if below.is_some_and(|below| write.record.position <= below) {
                continue;
            }
            let (next, rebased) = head.rebase(&write.record);
            standing.push((write.record.id, rebased.record.id));
            writes.push(Arc::new(rebased));
            head = next;
        }
        info!(onto = ?here, writes = writes.len(), "somebody else has committed; what was accepted goes on top of that");
        if let Some(writer) = &self.writer {
            // the log lets go of what is in git already and below that commit, which nothing has flushed yet
            self.make_durable()?;
            let records: Vec<&Record> = writes.iter().map(|write| &write.record).collect();
            writer.log().rewrite(&records, &standing)?;
        }
        self.standing.extend(standing);
        if let (Some(anchor), Some(id), false) = (&mut self.anchor, head.id, self.is_lost) {
            anchor.head = id;
        }
        self.head = head;
        self.unapplied = writes.iter().cloned().collect();
        self.root.forget();
        for write in &self.unapplied {
            self.root.expect(write.record.position, &write.record.files);
        }
        if writes.is_empty() {
            self.progress.set_applied(self.position);
        }
        self.progress.change(|state| state.moved = false);
        self.send(writes, true, false);
        Ok(())
    }

    /// The last record that a commit of somebody else already stands on.
    fn already_below(&self, here: Option<Oid>) -> Result<Option<u64>> {
        let (git, Some(here)) = (self.git()?, here) else { return Ok(None) };
        let ours: HashMap<Oid, u64> =
            self.unapplied.iter().map(|write| (write.record.id, write.record.position)).collect();
        let base = self.unapplied.front().and_then(|write| write.record.parent);
        let search = || {
            let mut walk = git.revwalk()?;
            walk.push(here)?;
            for id in walk.take(SEARCH_MAX) {
                let id = id?;
                if let Some(position) = ours.get(&id) {
                    return Ok(Some(*position));
                }
                if Some(id) == base {
                    break;
                }
            }
            Ok(None)
        };
        search().map_err(RepositoryError::git("find what a commit stands on"))
    }
}

/// The records computed again, each on the one before; nothing if one does not come to the id it was answered with.
fn chain(base: Head, records: &[Record]) -> Option<Vec<(Head, Arc<Accepted>)>> {
    let mut head = base;
    let mut chain = Vec::new();
    for record in records {
        let (next, accepted) = head.replay(record)?;
        chain.push((next.clone(), Arc::new(accepted)));
        head = next;
    }
    Some(chain)
}
