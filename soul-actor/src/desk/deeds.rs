//! Deeds of people: what they ask for (why, roll-back, check), and what they did to the files and the history.

use ipc::contract::soul::{Changed, Reply, Rollback, RolledBack, Severity, Why};
use ipc::id::RequestId;
use jiff::Timestamp;
use tracing::error;

use super::Desk;
use crate::{
    blame::{Trace, VERSIONS_MAX, counts},
    check,
    document::Document,
    grant::{Deed, Grant},
    message::{Message, Origin, WHY_CHARS_MAX},
    neighbour, outside,
    plan::NotWritten,
    portrait,
    repository::{Brought, Change, Repository, anchor_of, cause, short, subject, workfile::look},
    rollback::{self, Hand, Target, Undoing},
    seal, seed,
};

/// How many documents that somebody else changed are named where she is asked how she is; a check names all.
const NOT_HERS_SHOWN: usize = 5;

impl Desk {
    /// Which commit a line comes from.
    pub(super) fn why(&mut self, name: &str, line: u32, now: Timestamp) -> Result<Reply, NotWritten> {
        self.catch_up();
        let document = Document::parse(name, self.today(now))?;
        let path = document.path();
        let Some(bytes) = look(self.repository.root(), &path)? else {
            return Err(self.missing(&document).into());
        };
        // a text is shown without the blank lines around it, and people count what they see
        let hidden = match &document {
            Document::Text(_) => {
                let text = String::from_utf8_lossy(&bytes);
                let shown = text.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
                text.strip_suffix(shown).map_or(0, |hidden| hidden.matches('\n').count())
            }
            _ => 0,
        };
        let at = usize::try_from(line).ok().and_then(|line| line.checked_sub(1));
        let trace = at.and_then(|at| Trace::new(bytes.clone(), at.saturating_add(hidden)));
        let Some(mut trace) = trace else {
            let lines = crate::blame::lines(&bytes).len().saturating_sub(hidden);
            return Err(format!("`{path}` has no line {line}; it has {lines}").into());
        };
        let text = trace.text();
        let (mut entry, mut older) = (None, false);
        match self.repository.brought(&path, &bytes, trace.at()) {
            Some(Brought::By(commit)) => entry = Some(*commit),
            Some(Brought::ByNone) => {}
            None => {
                for (seen, touch) in self.repository.commits_of(&path, VERSIONS_MAX + 1).enumerate() {
                    let touch = touch?;
                    if seen == VERSIONS_MAX {
                        older = true;
                        break;
                    }
                    // the first comparison is of the file as it lies there with the newest commit
                    if !trace.step(touch.bytes.as_deref().unwrap_or(b"")) {
                        break;
                    }
                    entry = Some(touch.entry);
                }
            }
        }
        Ok(Reply::Why(Why { path, line, text, entry, older }))
    }

    /// What bringing something back comes to for whoever has this grant.
    pub(super) fn undoing(
        &mut self,
        target: &Target,
        grant: Grant,
        why: &str,
    ) -> Result<Undoing, NotWritten> {
        let hand = if grant == Grant::Human { Hand::Persons } else { Hand::Hers };
        let mut undoing = rollback::decide(&self.repository, target, hand, why)?;
        let kept = ipc::text::prefix(&undoing.plan.why, WHY_CHARS_MAX).to_owned();
        undoing.plan.why = kept;
        Ok(undoing)
    }

    /// Brings something back for a person, or says what that would change.
    pub(super) fn roll_back(
        &mut self,
        grant: Grant,
        id: &RequestId,
        asked: &Rollback,
        now: Timestamp,
    ) -> Result<Reply, NotWritten> {
        if asked.apply {
            grant.permits(Deed::Rollback)?;
            if grant != Grant::Human {
                return Err("she brings something back with her tool `soul_rollback`".to_owned().into());
            }
            if let Some(first) = self.first_outcome(id)? {
                let (changes, undoes, left, seen) = (vec![], vec![], vec![], None);
                return Ok(Reply::RolledBack(RolledBack {
                    changes,
                    undoes,
                    left,
                    seen,
                    written: first.written,
                }));
            }
            self.unhindered()?;
        }
        self.flush();
        self.repository.settle()?;
        let target =
            Target::read(asked.document.as_deref(), asked.commit.as_deref(), asked.to, self.today(now))?;
        let _held = if asked.apply {
            Some(self.neighbour.make_way(self.repository.root(), neighbour::now())?)
        } else {
            None
        };
        let undoing = self.undoing(&target, grant, &asked.why)?;
        let mut told = RolledBack {
            changes: undoing.changes,
            undoes: undoing.undoes,
            left: undoing.left,
            seen: self.repository.commit()?,
            written: None,
        };
        if !asked.apply || undoing.plan.changes.is_empty() {
            return Ok(Reply::RolledBack(told));
        }
        if asked.seen.is_some() && asked.seen != told.seen {
            return Err("something has changed since you were shown what this would do; look again"
                .to_owned()
                .into());
        }
        let mut message = Message::of(undoing.plan.op, &undoing.plan.path, "human", Origin::Human);
        message.why.clone_from(&undoing.plan.why);
        message.request = Some(id.clone());
        let called = self.write(undoing.plan, &message, now).inspect_err(|_| self.answered.doubt())?;
        self.keep(id, &called);
        told.written = called.written;
        Ok(Reply::RolledBack(told))
    }

    /// Looks for what others did to the files and the history.
    pub(super) fn look_outside(&mut self, grant: Grant, now: Timestamp) -> Result<Reply, NotWritten> {
        grant.permits(Deed::Look)?;
        let again = if self.is_adopted() {
            self.take_edits(now)?
        } else {
            // what was in the way of a first write may be gone
            let _ = self.unhindered();
            false
        };
        Ok(Reply::Looked { notices: self.notices(), again })
    }

    /// Commits what others have finished editing; whether something is still being edited.
    fn take_edits(&mut self, now: Timestamp) -> Result<bool, NotWritten> {
        if self.unhindered().is_err() {
            return Ok(false);
        }
        self.flush();
        self.repository.settle()?;
        let (finished, again) = self.outside.find(&self.repository)?;
        for path in finished {
            self.take_edit(&path, now)?;
        }
        Ok(again)
    }

    /// Commits what a person changed in one file, by itself and as theirs, with a seal that fits it.
    pub(super) fn take_edit(&mut self, path: &str, now: Timestamp) -> Result<(), NotWritten> {
        if path == seal::PATH {
            return Ok(());
        }
        let bytes = look(self.repository.root(), path)?;
        if self.repository.is_as_committed(path, bytes.as_deref())? {
            return Ok(());
        }
        self.flush();
        let committed = self.repository.committed(path)?;
        let bytes = look(self.repository.root(), path)?;
        if bytes == committed {
            return Ok(());
        }
        if let Some(why) = outside::unfit(self.repository.root(), path, bytes.as_deref()) {
            return Err(why.into());
        }
        let (added, removed) = counts(committed.as_deref().unwrap_or(b""), bytes.as_deref().unwrap_or(b""));
        let lines = |count: u32| format!("{count} {}", if count == 1 { "line" } else { "lines" });
        let what = match (&committed, &bytes) {
            (_, None) => format!("removed by hand, with {}", lines(removed)),
            (None, Some(_)) => format!("laid there by hand, with {}", lines(added)),
            (Some(_), Some(_)) => format!("edited by hand: {} added, {removed} removed", lines(added)),
        };
        let mut message = Message::of("edit", path, "manual", Origin::Manual);
        message.why.clone_from(&what);
        let mut changes = vec![Change { path: path.to_owned(), bytes }];
        changes.extend(self.renewed_seal(&changes, now)?);
        if let Some(receipt) = self.repository.accept(&changes, &message, now)? {
            self.tell(&receipt);
            self.outside.note(format!("`{path}` was {what} (commit `{}`)", short(&receipt.commit)));
        }
        Ok(())
    }

    /// Whether our writer has written here before; a home that was only looked at stays as it is.
    fn is_adopted(&self) -> bool {
        self.repository.root().join(".git/lisa").is_dir()
    }

    /// Whether anything may be written: the files have a form we know, and the history is hers. It is looked once a batch.
    pub(super) fn unhindered(&mut self) -> Result<(), NotWritten> {
        if self.is_clear {
            return Ok(());
        }
        self.reopen();
        if let Some(why) = &self.broken {
            return Err(format!("nothing is written while the repository is broken: {why}").into());
        }
        let seed = look(self.repository.root(), seed::PATH)?;
        self.outside.hindrance = seed.as_deref().and_then(seed::too_new);
        if self.outside.hindrance.is_none() && self.is_adopted() {
            self.outside.hindrance = self.look_at_history()?;
        }
        if self.outside.hindrance.is_none() {
            self.outside.hindrance = self.clock_is_wrong();
        }
        if let Some(why) = &self.outside.hindrance {
            return Err(why.clone().into());
        }
        self.is_clear = true;
        Ok(())
    }

    /// Looks whether the history goes on from what was known of it; a sentence where it does not.
    fn look_at_history(&mut self) -> Result<Option<String>, NotWritten> {
        let hindrance = self.repository.hindrance();
        for (known, here) in self.repository.take_strange() {
            self.tell_of_foreign(&known, &here)?;
        }
        if hindrance.is_some() {
            return Ok(hindrance);
        }
        let was = self.repository.anchor().map(|anchor| &anchor.branch);
        self.outside.oddity = self.repository.other_branch().zip(was).map(|(branch, was)| {
            format!(
                "the repository is on the branch `{branch}`, and her history was on `{was}`; to go back: `git -C {root} switch {was}`; to stay: `lisa soul check --repair`",
                root = self.repository.root().display()
            )
        });
        Ok(None)
    }

    /// Tells of commits that somebody made by hand on top of ours.
    fn tell_of_foreign(&mut self, known: &str, here: &str) -> Result<(), NotWritten> {
        let entry = self.repository.entry_of(here)?;
        let versions = self.repository.versions()?;
        let paths = self.repository.changed_between(known, here)?;
        let said = ipc::text::one_line(&subject(&entry), 100);
        self.news.push(Changed {
            sequence: versions.sequence,
            prompt_version: versions.prompt_version,
            commit: entry.commit.clone(),
            op: ipc::text::one_line(&entry.op, 40),
            paths: paths.clone(),
            caller: "manual".to_owned(),
            origin: Origin::Manual.name().to_owned(),
            name: portrait::name(self.repository.root()),
        });
        let paths: Vec<_> = paths.iter().take(8).map(|path| format!("`{path}`")).collect();
        self.outside.note(format!(
            "somebody committed to {} by hand (`{}`: {said})",
            paths.join(", "),
            short(&entry.commit)
        ));
        Ok(())
    }

    /// What a person should know besides what the portrait found.
    pub(super) fn notices_besides(&self) -> Vec<String> {
        let mut notices = Vec::new();
        if let Some(why) = &self.broken {
            notices.push(format!("{why}; she can be read, not changed; `lisa soul check` says more"));
        }
        notices.extend(self.outside.notices());
        let not_hers = self.not_hers();
        notices.extend(not_hers.iter().take(NOT_HERS_SHOWN).map(|(_, what)| what.clone()));
        if let Some(more) = not_hers.len().checked_sub(NOT_HERS_SHOWN).filter(|more| *more > 0) {
            notices
                .push(format!("and {more} more documents like these; `lisa soul check` lists all of them"));
        }
        notices
    }

    /// The documents that somebody else changed without a word of hers or a person's, each with a sentence.
    fn not_hers(&self) -> Vec<(String, String)> {
        let strangers = self.repository.strangers();
        let mut found: Vec<_> = strangers
            .map(|stranger| {
                let what = check::stranger_sentence(&stranger.path, &stranger.commit.to_string());
                (stranger.path.clone(), what)
            })
            .collect();
        if self.is_adopted() {
            for path in check::unsealed(self.repository.root()) {
                if !found.iter().any(|(known, _)| *known == path) {
                    let what = check::unsealed_sentence(&path);
                    found.push((path, what));
                }
            }
        }
        found
    }

    /// Looks whether everything is as it should be, and mends what can be mended.
    pub(crate) fn check(&mut self, grant: Grant, repair: bool, now: Timestamp) -> Result<Reply, NotWritten> {
        grant.permits(if repair { Deed::Mend } else { Deed::Read })?;
        self.catch_up();
        let root = self.repository.root().to_path_buf();
        let anchor = self.repository.anchor().cloned().or_else(|| anchor_of(&root.join(".git")));
        let (mut findings, anchor) = check::repository(&root, anchor, repair, now);
        if repair {
            // what was mended is read anew, by a repository that was opened after it
            drop(std::mem::replace(&mut self.repository, Repository::closed(&root, self.zone.clone())));
            (self.repository, self.broken) = match Repository::open(&root, self.zone.clone()) {
                Ok(repository) => (repository, None),
                Err(error) => (Repository::closed(&root, self.zone.clone()), Some(cause::sentence(&error))),
            };
            if let Some(anchor) = anchor.filter(|_| self.broken.is_none()) {
                self.repository.settle_on(anchor)?;
            }
            self.outside = outside::Outside::default();
            self.is_clear = false;
        }
        let writes = repair && self.broken.is_none() && self.is_adopted();
        match self.check_files(writes, now) {
            Ok(more) => findings.extend(more),
            Err(why) => {
                let why = why.sentence();
                let known =
                    findings.iter().any(|finding| finding.severity == Severity::Broken && !finding.mended);
                if !known {
                    findings.push(check::found(Severity::Broken, ".git", &why, "mend that, and check again"));
                }
            }
        }
        findings.sort_by_key(|finding| finding.severity);
        Ok(Reply::Checked { findings })
    }

    fn check_files(&mut self, repair: bool, now: Timestamp) -> Result<Vec<check::Found>, NotWritten> {
        let root = self.repository.root().to_path_buf();
        let mut findings: Vec<_> = self.check_clock(repair)?.into_iter().collect();
        if let Err(why) = self.unhindered() {
            let why = why.sentence();
            findings.push(check::found(Severity::Broken, ".git", &why, "nothing is written until then"));
            return Ok(findings);
        }
        self.flush();
        self.repository.settle()?;
        if repair
            && !rollback::has_seed(&root)
            && let Some(bytes) = self.repository.committed(seed::PATH)?
        {
            crate::repository::workfile::restore(&root, seed::PATH, &bytes)?;
            findings.push(check::mended(
                Severity::Broken,
                seed::PATH,
                "it was gone",
                "brought back from the history",
            ));
        }
        if self.is_adopted() {
            // twice, because what looks the same twice is finished
            self.outside.find(&self.repository)?;
            let (edited, _) = self.outside.find(&self.repository)?;
            for path in edited {
                let what = "it is not what the history says";
                findings.push(if repair {
                    self.take_edit(&path, now)?;
                    check::mended(Severity::Note, &path, what, "committed as an edit by hand")
                } else {
                    check::found(Severity::Note, &path, what, "it will be committed as an edit by hand")
                });
            }
            let not_hers = self.not_hers();
            if repair {
                self.repository.welcome()?;
                self.reseal(&check::unsealed(&root), now)?;
            }
            for (path, what) in not_hers {
                findings.push(if repair {
                    check::mended(Severity::Wrong, &path, &what, "accepted as it is")
                } else {
                    check::found(
                        Severity::Wrong,
                        &path,
                        &what,
                        "if it should stand, `lisa soul check --repair` accepts it",
                    )
                });
            }
        }
        let told: std::collections::HashSet<_> =
            findings.iter().map(|finding| finding.what.clone()).collect();
        let versions = self.repository.versions()?;
        let born = self.repository.is_born()?;
        let rest =
            portrait::portrait(&root, versions, born).notices.into_iter().chain(self.outside.notices());
        for what in rest.filter(|what| !told.contains(what)) {
            findings.push(check::found(Severity::Wrong, "", &what, ""));
        }
        Ok(findings)
    }

    /// Seals texts as they are, in a commit that says so.
    fn reseal(&mut self, paths: &[String], now: Timestamp) -> Result<(), NotWritten> {
        if paths.is_empty() {
            return Ok(());
        }
        let root = self.repository.root();
        let mut files = Vec::new();
        for path in paths {
            files.push((path.clone(), look(root, path)?));
        }
        let files: Vec<_> = files.iter().map(|(path, bytes)| (path.as_str(), bytes.as_deref())).collect();
        let bytes = seal::renew(look(root, seal::PATH)?.as_deref(), &files, now);
        let mut message = Message::of("seal", seal::PATH, "human", Origin::Human);
        message.why = format!("{} accepted as they are", paths.join(", "));
        let changes = [Change { path: seal::PATH.to_owned(), bytes: Some(bytes) }];
        if let Some(receipt) = self
            .repository
            .accept(&changes, &message, now)
            .inspect_err(|error| error!(error = ipc::exit::chain(error), "the seal could not be written"))?
        {
            self.tell(&receipt);
            self.flush();
        }
        Ok(())
    }
}
