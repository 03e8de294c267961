//! What a person writes: a document in their own words, and what they think of a reply.

use ipc::{
    contract::soul::{Edit, Rate, Reply},
    id::RequestId,
};
use jiff::Timestamp;

use super::{Desk, UNBORN};
use crate::{
    document::{Document, Record, within},
    gate,
    grant::{Deed, Grant},
    message::{Message, Origin, WHY_CHARS_MAX},
    neighbour,
    plan::{NotWritten, Plan},
    ratings,
    repository::{Change, workfile::look},
    sheet::trimmed,
};

/// The longest document a person writes, in bytes; the texts have budgets of their own besides.
const EDIT_BYTES_MAX: usize = 256 * 1024;

impl Desk {
    /// Writes a document as a person wants it.
    pub(super) fn edit(
        &mut self,
        grant: Grant,
        id: &RequestId,
        edit: &Edit,
        now: Timestamp,
    ) -> Result<Reply, NotWritten> {
        grant.permits(Deed::Edit)?;
        if let Some(first) = self.first_outcome(id)? {
            return Ok(Reply::Edited { written: first.written });
        }
        self.ready_for_person()?;
        let document = Document::parse(&edit.document, self.today(now))?;
        let path = document.path();
        let text = match &document {
            Document::Text(text) => format!("{}\n", text.accept(&edit.text)?),
            _ if edit.text.len() > EDIT_BYTES_MAX => {
                return Err(format!(
                    "`{path}` would have {} KiB; shorten it to {}",
                    edit.text.len() / 1024,
                    EDIT_BYTES_MAX / 1024
                )
                .into());
            }
            _ => edit.text.clone(),
        };
        let _held = self.neighbour.make_way(self.repository.root(), neighbour::now())?;
        let old = look(self.repository.root(), &path)?;
        let words = |text: &str| trimmed(text).to_owned();
        let stands = old.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
        if edit.before.as_ref().is_some_and(|before| words(before) != words(&stands)) {
            return Err(format!("`{path}` has changed since you opened it; read it again and make your change on what it says now").into());
        }
        let why = match edit.why.trim() {
            "" => String::new(),
            why => within("why", why, WHY_CHARS_MAX)?,
        };
        let written = self.write_for_person("edit", &path, text.into_bytes(), why, id, now)?;
        Ok(Reply::Edited { written })
    }

    /// Keeps what a person thinks of a reply.
    pub(super) fn rate(
        &mut self,
        grant: Grant,
        id: &RequestId,
        rate: &Rate,
        now: Timestamp,
    ) -> Result<Reply, NotWritten> {
        grant.permits(Deed::Rate)?;
        let written = if let Some(first) = self.first_outcome(id)? {
            first.written
        } else {
            self.ready_for_person()?;
            // before the write: counting may flush, and the answer must wait for the flush of what it says was written
            self.standing_today(now)?;
            for (what, name) in [("message", Some(&rate.message)), ("session", rate.session.as_ref())] {
                name.map(|name| crate::document::line_within(what, name, ratings::NAME_CHARS_MAX))
                    .transpose()?;
            }
            let path = Record::Ratings.path();
            let old = look(self.repository.root(), path)?.unwrap_or_default();
            match ratings::add(&old, rate, now) {
                Some(bytes) => self.write_for_person("rate", path, bytes, String::new(), id, now)?,
                None => None,
            }
        };
        let standing = self.standing_today(now)?;
        Ok(Reply::Rated {
            weight: standing.weight,
            gate: gate::told_to_person(&self.gates, standing),
            written,
        })
    }

    fn ready_for_person(&mut self) -> Result<(), NotWritten> {
        if !self.repository.is_born()? {
            return Err(UNBORN.to_owned().into());
        }
        self.unhindered()
    }

    fn write_for_person(
        &mut self,
        op: &'static str,
        path: &str,
        bytes: Vec<u8>,
        why: String,
        id: &RequestId,
        now: Timestamp,
    ) -> Result<Option<ipc::contract::soul::Written>, NotWritten> {
        let changes = vec![Change { path: path.to_owned(), bytes: Some(bytes) }];
        let mut message = Message::of(op, path, "human", Origin::Human);
        message.why.clone_from(&why);
        message.request = Some(id.clone());
        let deed = if op == "rate" { Deed::Rate } else { Deed::Edit };
        let plan =
            Plan { op, path: path.to_owned(), why, evidence: vec![], changes, said: String::new(), deed };
        let called = self.write(plan, &message, now).inspect_err(|_| self.answered.doubt())?;
        self.keep(id, &called);
        Ok(called.written)
    }
}
