//! Calls: what a model asks for with a tool, from the wish to the receipt.
//!
//! ```text
//!  input read ─▶ grant ─▶ asked before? ─▶ what would change? ─▶ gates ─▶ edits from outside, alone ─▶ hers ─▶ receipt
//! ```

use std::collections::HashMap;

use ipc::{
    contract::soul::{Call, Called, Changed, Reply, Written},
    id::RequestId,
    reveal::untagged,
};
use jiff::Timestamp;

use super::{Desk, UNBORN, gating};
use crate::{
    grant::{Deed, Grant},
    input::{self, When, Wish},
    message::{Message, Origin},
    neighbour,
    plan::{self, NotWritten, Plan},
    portrait::{self, portrait},
    reading,
    repository::{Asked, Change, Receipt, RepositoryError, Wanted, short, workfile::look},
    seal,
    tools::Tool,
};

impl Desk {
    pub(super) fn call(&mut self, grant: Grant, id: &RequestId, call: &Call, now: Timestamp) -> Reply {
        let when = When { now, zone: self.zone.clone() };
        let done = Tool::named(&call.tool).map_err(NotWritten::Refused).and_then(|tool| {
            if tool == Tool::Recall {
                let Wish::Recall(query) = input::read(tool, &call.input, &when)? else {
                    unreachable!("a tool that recalls wishes to recall")
                };
                return self.recall(grant, id, call, &query, now);
            }
            // one tool does both, and what it only looks for needs no more than a look
            let looks = tool == Tool::Memory && input::read(tool, &call.input, &when) == Ok(Wish::Memory);
            if looks || !tool.writes() {
                grant.permits(Deed::Read)?;
                let output = self.look(input::read(tool, &call.input, &when)?, now)?;
                return Ok(Called::said(output));
            }
            if let Some(first) = self.first_outcome(id)? {
                return self.with_objection(tool, id, first);
            }
            let wish = input::read(tool, &call.input, &when)?;
            grant.permits(plan::deed(&wish))?;
            if plan::deed(&wish) == Deed::Read {
                // a tool that can write is asked what it would do
                return Ok(Called::said(self.look(wish, now)?));
            }
            let wish = if call.outside { gating::marked(wish) } else { wish };
            if !self.repository.is_born()? {
                return Err(UNBORN.to_owned().into());
            }
            self.unhindered()?;
            let session = self.session_of(grant, call, plan::deed(&wish), now)?;
            let _held = self.neighbour.make_way(self.repository.root(), neighbour::now())?;
            if matches!(plan::deed(&wish), Deed::Text(_) | Deed::Rollback | Deed::Dream) {
                // counted before anything is planned: counting may flush, and a plan stands on what a flush may refuse
                self.standing_today(now)?;
            }
            let mut objection = None;
            let mut plan = match wish {
                Wish::Object(wording) => {
                    let (plan, raised) = self.object(wording, id, call.session.as_deref(), now)?;
                    objection = Some(Box::new(raised));
                    plan
                }
                Wish::Promote { note, wording } => self.promotion(note, wording.as_deref(), now)?,
                Wish::Rollback { target, why } => {
                    // what was is read from git, so all of it must be there
                    self.catch_up();
                    self.undoing(&target, grant, &why)?.plan
                }
                Wish::Dream(asked) => {
                    let (caller, origin) = grant.signature(tool.name());
                    match self.dream(&asked, (&caller, origin.name()), now)? {
                        Ok(plan) => plan,
                        Err(nothing) => return Ok(Called::said(nothing)),
                    }
                }
                wish => plan::plan(self.repository.root(), wish, now, self.today(now))?,
            };
            grant.permits(plan.deed)?;
            let (signed, origin) = grant.signature(tool.name());
            let mut message = Message::of(plan.op, &plan.path, &signed, origin);
            message.why.clone_from(&plan.why);
            message.evidence.clone_from(&plan.evidence);
            (message.session, message.model) = (session, Some(call.model.clone()));
            message.request = Some(id.clone());
            if call.outside {
                message.origin = Origin::Outside;
            }
            if !self.repository.differs(&plan.changes)? {
                return Ok(Called::said(format!("no change: `{}` says this already", plan.path)));
            }
            let counts = self.pass(&mut plan, grant, &mut message, now)?;
            let mut called = self.write(plan, &message, now).inspect_err(|_| self.answered.doubt())?;
            if counts && called.written.is_some() {
                self.count_write(now);
            }
            called.objection = objection;
            self.keep(id, &called);
            Ok(called)
        });
        let refused = |why: NotWritten| Called::failed(why.sentence());
        let mut called = done.unwrap_or_else(refused);
        // what she once wrote must not pass for what she is told now
        called.output = untagged(&called.output).into_owned();
        if let Some(note) = self.outside.tell_her() {
            called.output.push_str(&note);
        }
        Reply::Called(called)
    }

    /// What a tool that only looks answers.
    pub(super) fn look(&mut self, wish: Wish, now: Timestamp) -> Result<String, NotWritten> {
        match wish {
            Wish::Look(look) => {
                self.catch_up();
                let (versions, born, _) = self.standing();
                let root = self.repository.root();
                let soul = portrait(root, versions, born).snapshot;
                Ok(reading::look(root, look, &soul, now, self.today(now))?)
            }
            Wish::History { scope, limit, since } => {
                let path = scope.path();
                let wanted = Wanted { path: path.as_deref(), limit: limit as usize, since };
                Ok(reading::history(&self.repository.history(wanted)?))
            }
            Wish::Diff { scope, limit, since } => {
                let path = scope.path();
                let wanted = Wanted { path: path.as_deref(), limit: limit as usize, since };
                let text = self.repository.diff(wanted)?;
                Ok(if text.is_empty() { reading::NO_HISTORY.to_owned() } else { reading::head(&text) })
            }
            Wish::Stand => self.how_it_stands(now),
            Wish::Ratings => self.how_rated(now),
            Wish::Candidates => self.told_of_candidates(now),
            Wish::Dream(asked) => self.told_of_dream(&asked, now),
            Wish::Memory => self.how_memory_stands(now),
            Wish::Text { .. }
            | Wish::Append { .. }
            | Wish::Value { .. }
            | Wish::Opinion { .. }
            | Wish::Desire { .. }
            | Wish::Revise { .. }
            | Wish::Close { .. }
            | Wish::Condense { .. }
            | Wish::Feel(_)
            | Wish::Relationship { .. }
            | Wish::Journal { .. }
            | Wish::Progress { .. }
            | Wish::Remember { .. }
            | Wish::Recall(_)
            | Wish::Promote { .. }
            | Wish::Rollback { .. }
            | Wish::Object(_) => unreachable!("a tool that only looks wishes to look"),
        }
    }

    /// Carries a plan out: a person's edits of the same files first and alone, then hers, one commit.
    pub(super) fn write(
        &mut self,
        mut plan: Plan,
        message: &Message,
        now: Timestamp,
    ) -> Result<Called, NotWritten> {
        let path = &plan.path;
        if !self.repository.differs(&plan.changes)? {
            let output = format!("no change: `{path}` says this already");
            return Ok(Called::said(output));
        }
        if let Some(adopted) = self.repository.prepare(now)? {
            self.tell(&adopted);
        }
        self.migrate(now)?;
        for change in &plan.changes {
            self.take_edit(&change.path, now)?;
        }
        if let Some(renewed) = self.renewed_seal(&plan.changes, now)? {
            plan.changes.push(renewed);
        }
        let Some(receipt) = self.repository.accept(&plan.changes, message, now)? else {
            let output = format!("no change: `{}` says this already", plan.path);
            return Ok(Called::said(output));
        };
        let written = self.tell(&receipt);
        let output = format!("wrote `{}`, commit `{}`: {}", plan.path, short(&written.commit), plan.said);
        Ok(Called::wrote(output, written))
    }

    /// The seal with the hashes of the texts that change.
    pub(super) fn renewed_seal(
        &self,
        changes: &[Change],
        now: Timestamp,
    ) -> Result<Option<Change>, NotWritten> {
        let sealed = sealed(changes);
        if sealed.is_empty() {
            return Ok(None);
        }
        let old = look(self.repository.root(), seal::PATH)?;
        let bytes = seal::renew(old.as_deref(), &sealed, now);
        Ok(Some(Change { path: seal::PATH.to_owned(), bytes: Some(bytes) }))
    }

    /// Notes a commit for telling, and gives its receipt.
    pub(super) fn tell(&mut self, receipt: &Receipt) -> Written {
        self.coming.push(Changed {
            sequence: receipt.versions.sequence,
            prompt_version: receipt.versions.prompt_version,
            commit: receipt.commit.clone(),
            op: receipt.op.to_owned(),
            paths: receipt.paths.clone(),
            caller: receipt.caller.clone(),
            origin: receipt.origin.name().to_owned(),
            name: portrait::name(self.repository.root()),
        });
        Written {
            commit: receipt.commit.clone(),
            sequence: receipt.versions.sequence,
            prompt_version: receipt.versions.prompt_version,
            paths: receipt.paths.clone(),
        }
    }

    /// What came of a request the first time: as it is remembered, or as the newest commits say.
    pub(super) fn first_outcome(&mut self, id: &RequestId) -> Result<Option<Called>, NotWritten> {
        if let Some(called) = self.answered.get(id) {
            return Ok(Some(called));
        }
        match self.repository.asked(id.as_str()) {
            Asked::Never => return Ok(None),
            Asked::Answered(_, Some(answer)) if let Ok(called) = serde_json::from_value(answer.clone()) => {
                return Ok(Some(called));
            }
            Asked::Answered(commit, _) => return self.outcome(commit).map(Some),
            Asked::Unknown => {}
        }
        let repository = &self.repository;
        let Some(commit) = self.answered.committed(id, || {
            Ok::<HashMap<String, String>, RepositoryError>(
                repository.requests()?.into_iter().map(|(id, entry)| (id, entry.commit)).collect(),
            )
        })?
        else {
            return Ok(None);
        };
        self.outcome(commit).map(Some)
    }

    /// The answer of a request that made this commit, as far as the commit says it.
    fn outcome(&mut self, commit: String) -> Result<Called, NotWritten> {
        let versions = self.repository.versions()?;
        let paths = self.repository.paths_of(&commit)?;
        let output =
            format!("wrote `{}`, commit `{}`", paths.first().map_or("", String::as_str), short(&commit));
        let (sequence, prompt_version) = (versions.sequence, versions.prompt_version);
        let written = Written { commit, sequence, prompt_version, paths };
        Ok(Called::wrote(output, written))
    }
}

/// The changes of the texts that are sealed, as the seal takes them.
pub(super) fn sealed(changes: &[Change]) -> Vec<(&str, Option<&[u8]>)> {
    let sealed = changes.iter().filter(|change| seal::is_sealed(&change.path));
    sealed.map(|change| (change.path.as_str(), change.bytes.as_deref())).collect()
}
