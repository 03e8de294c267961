//! Notes at the desk: recalled, counted, and promoted into `memory` when they were needed often enough.
//!
//! What counts is a recall in a conversation, by herself, in a turn that no new words from outside came in. Her own time
//! and her looks back are led by prompts of the runtime, and what a page asks her to look for is the page's wish: neither
//! says that a person and she needed the note. So those only find.

use std::fmt::Write as _;

use ipc::{
    contract::soul::{self, Call, Called, Reply},
    id::RequestId,
};
use jiff::Timestamp;

use super::Desk;
use crate::{
    document::{self, Document, Folder, Record, Text},
    gate,
    grant::{Deed, Grant},
    hits::Hits,
    kept::{self, promoted},
    message::Message,
    neighbour,
    notes::{Address, Note},
    plan::{NotWritten, Plan},
    recall::{self, Query},
    repository::{
        Change,
        workfile::{Place as _, look},
    },
    sheet::trimmed,
};

/// The longest answer to a recall, in characters; what is not shown is not counted.
const RECALLED_CHARS_MAX: usize = 12_000;

/// The most notes that somebody else is shown at once.
const SHOWN_MAX: u32 = 1000;

/// How many notes are listed where she asks how her memory stands.
const LISTED_MAX: usize = 20;

/// How much of a note is shown in a list, in characters.
const LISTED_CHARS_MAX: usize = 160;

impl Desk {
    /// What `soul_recall` answers; the notes that are shown gain a hit, where it counts.
    pub(super) fn recall(
        &mut self,
        grant: Grant,
        id: &RequestId,
        call: &Call,
        query: &Query,
        now: Timestamp,
    ) -> Result<Called, NotWritten> {
        grant.permits(Deed::Read)?;
        let first = self.first_outcome(id)?;
        self.fill_shelf()?;
        let mut hits = self.hits()?;
        let found: Vec<Note> = shown(recall::find(self.shelf.notes(), query));
        if found.is_empty() {
            return Ok(Called::said("no note has that; try fewer or other words".to_owned()));
        }
        let counted = match (grant, &call.session) {
            _ if first.is_some() => Err("as it was answered before"),
            (Grant::Chat, _) if call.outside => {
                Err("words from outside came in, and what they ask for is no need of yours")
            }
            (Grant::Chat, Some(session)) => Ok(session.clone()),
            (Grant::Chat, None) => Err("it belongs to no conversation"),
            _ => Err("only a conversation counts"),
        };
        let (mut written, note) = match counted {
            Ok(session) => match self.count(&mut hits, &found, &session, (grant, id, call), now) {
                Ok(written) => (written, String::new()),
                // what was found is found, also where nothing can be written
                Err(why) => {
                    hits = self.hits()?;
                    (None, format!("\n[this gained no hits: {}]", why.sentence()))
                }
            },
            Err(_) if first.is_some() => (None, String::new()),
            Err(why) => (None, format!("\n[this gained no hits: {why}]")),
        };
        if let Some(first) = first {
            written = first.written;
        }
        let told: Vec<String> = found.iter().map(|note| told(note, hits.count(note))).collect();
        let output = format!("{}{note}", told.join("\n\n"));
        let called = match written {
            Some(written) => Called::wrote(output, written),
            None => Called::said(output),
        };
        if called.written.is_some() {
            self.keep(id, &called);
        }
        Ok(called)
    }

    /// Her notes, for whoever asks the process. No need of hers, so nothing is counted.
    pub(super) fn notes(
        &mut self,
        query: Option<&str>,
        limit: u32,
        now: Timestamp,
    ) -> Result<Reply, NotWritten> {
        self.catch_up();
        let (needed, kept) = (self.hits_needed(now)?, promoted(&self.memory()?));
        self.fill_shelf()?;
        let (hits, limit) = (self.hits()?, limit.min(SHOWN_MAX));
        let words = query.map(str::trim).filter(|words| !words.is_empty());
        let found: Vec<&Note> = if let Some(words) = words {
            let query = Query { words: words.to_owned(), limit, about: None, since: None };
            recall::find(self.shelf.notes(), &query)
        } else {
            let mut all: Vec<&Note> = self.shelf.notes().map(|indexed| &indexed.note).collect();
            all.sort_by_key(|note| std::cmp::Reverse(note.address));
            all.truncate(limit as usize);
            all
        };
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let told = |note: &&Note| soul::Note {
            address: note.address.to_string(),
            about: note.about.name().to_owned(),
            at: note.at,
            text: note.text.clone(),
            outside: note.outside,
            hits: number(hits.count(note)),
            kept: kept.contains(&note.address),
        };
        let all = number(self.shelf.notes().count());
        let notes = found.iter().map(told).collect();
        Ok(Reply::Notes(soul::Notes { all, hits_needed: number(needed), notes }))
    }

    /// Counts that notes were recalled in a session: one commit, or none where all of them were before.
    fn count(
        &mut self,
        hits: &mut Hits,
        found: &[Note],
        session: &str,
        (grant, id, call): (Grant, &RequestId, &Call),
        now: Timestamp,
    ) -> Result<Option<soul::Written>, NotWritten> {
        let notes: Vec<&Note> = found.iter().collect();
        if !hits.add(&notes, session, now) {
            return Ok(None);
        }
        if !self.repository.is_born()? {
            return Err(super::UNBORN.to_owned().into());
        }
        self.unhindered()?;
        let _held = self.neighbour.make_way(self.repository.root(), neighbour::now())?;
        let path = Record::Hits.path().to_owned();
        let (signed, origin) = grant.signature(&call.tool);
        let mut message = Message::of("recall", &path, &signed, origin);
        message.why = notes.iter().map(|note| note.address.to_string()).collect::<Vec<_>>().join("\n");
        (message.session, message.model) = (Some(session.to_owned()), Some(call.model.clone()));
        message.request = Some(id.clone());
        let changes = vec![Change { path: path.clone(), bytes: Some(hits.clone().into_bytes()) }];
        let plan = Plan {
            deed: Deed::Read,
            op: message.op,
            path,
            why: message.why.clone(),
            evidence: vec![],
            changes,
            said: String::new(),
        };
        let called = self.write(plan, &message, now).inspect_err(|_| self.answered.doubt())?;
        Ok(called.written)
    }

    /// What taking a note into `memory` comes to.
    pub(super) fn promotion(
        &mut self,
        address: Address,
        wording: Option<&str>,
        now: Timestamp,
    ) -> Result<Plan, NotWritten> {
        let (needed, memory) = (self.hits_needed(now)?, self.memory()?);
        self.fill_shelf()?;
        let hits = self.hits()?;
        let note = self.shelf.notes().map(|indexed| &indexed.note).find(|note| note.address == address);
        let Some(note) = note else {
            return Err(format!("there is no note `{address}`; `soul_memory` shows which qualify").into());
        };
        let count = hits.count(note);
        if promoted(&memory).contains(&address) {
            return Err(format!("`{address}` is in `memory` already; `soul_patch` words it anew").into());
        }
        if note.outside {
            return Err(format!(
                "`{address}` stems from outside (a page, a file, a tool, somebody's message), so it stays a note, however often it is recalled"
            )
            .into());
        }
        if count < needed {
            return Err(format!(
                "`{address}` was recalled in {}, and {needed} are needed; one that you need will get there by itself",
                conversations(count)
            )
            .into());
        }
        let line = kept::line(note, wording, count)?;
        let content = Text::Memory.accept(&format!("{}\n{line}", trimmed(&memory)))?;
        let (chars, max) = (ipc::text::chars(&content), Text::Memory.chars_max());
        Ok(Plan {
            deed: Deed::Text(Text::Memory),
            op: "promote",
            path: Text::Memory.path().to_owned(),
            why: format!("{address} was recalled in {}", conversations(count)),
            evidence: vec![kept::source(note, count)],
            changes: vec![Change {
                path: Text::Memory.path().to_owned(),
                bytes: Some(format!("{content}\n").into_bytes()),
            }],
            said: format!("{line}\n{chars} of {max} characters; it holds from your next turn on"),
        })
    }

    /// What `soul_memory` answers: what there is, what qualifies, and what is on the way.
    pub(super) fn how_memory_stands(&mut self, now: Timestamp) -> Result<String, NotWritten> {
        let (needed, memory) = (self.hits_needed(now)?, self.memory()?);
        self.fill_shelf()?;
        let (hits, kept) = (self.hits()?, promoted(&memory));
        let mut notes: Vec<(usize, &Note)> =
            self.shelf.notes().map(|indexed| (hits.count(&indexed.note), &indexed.note)).collect();
        let all = notes.len();
        let there = notes.iter().filter(|(_, note)| kept.contains(&note.address)).count();
        notes.retain(|(count, note)| *count > 0 && !note.outside && !kept.contains(&note.address));
        notes.sort_by(|(one, note), (other, than)| other.cmp(one).then(than.address.cmp(&note.address)));
        let (ready, coming): (Vec<_>, Vec<_>) = notes.into_iter().partition(|(count, _)| *count >= needed);
        let mut text = format!(
            "{all} {}, {there} of them in `memory`, which has {} of {} characters\na note qualifies once it was recalled in {}\n",
            if all == 1 { "note" } else { "notes" },
            ipc::text::chars(trimmed(&memory)),
            Text::Memory.chars_max(),
            conversations(needed)
        );
        for (title, notes) in
            [("ready to be promoted", ready), ("recalled, but not often enough yet", coming)]
        {
            let _ = writeln!(text, "\n{title}:");
            if notes.is_empty() {
                text.push_str("(none)\n");
            }
            for (count, note) in notes.iter().take(LISTED_MAX) {
                let said = ipc::text::one_line(&note.text, LISTED_CHARS_MAX);
                let _ = writeln!(text, "{} {}, {count} of {needed}: {said}", note.address, note.about.name());
            }
            if let Some(more) = notes.len().checked_sub(LISTED_MAX).filter(|more| *more > 0) {
                let _ = writeln!(text, "and {more} more");
            }
        }
        Ok(trimmed(&text).to_owned())
    }

    fn hits_needed(&mut self, now: Timestamp) -> Result<usize, NotWritten> {
        let standing = self.standing_today(now)?;
        Ok(gate::hits_needed(&self.gates, standing.weight))
    }

    fn memory(&self) -> Result<String, NotWritten> {
        let bytes = look(self.repository.root(), Text::Memory.path())?.unwrap_or_default();
        let text = String::from_utf8(bytes);
        Ok(text.map_err(|_| "`memory.md` is not UTF-8; a person must save it as UTF-8 first".to_owned())?)
    }

    fn hits(&self) -> Result<Hits, NotWritten> {
        Ok(Hits::read(look(self.repository.root(), Record::Hits.path())?.unwrap_or_default()))
    }

    /// Reads the notes as they will be once everything that was accepted is in the files.
    fn fill_shelf(&mut self) -> Result<(), NotWritten> {
        let root = self.repository.root();
        let mut files = Vec::new();
        for name in root.names(Folder::Notes.name()) {
            let Some(day) = name.strip_suffix(".md").and_then(|day| document::day(day).ok()) else {
                continue;
            };
            if let Some(bytes) = look(root, &Document::Notes(day).path())? {
                files.push((day, bytes));
            }
        }
        self.shelf.take_in(files);
        Ok(())
    }
}

/// As many of the notes as an answer holds.
fn shown(found: Vec<&Note>) -> Vec<Note> {
    let mut chars = 0;
    let fits = |note: &&Note| {
        chars += ipc::text::chars(&note.text) + LISTED_CHARS_MAX;
        chars <= RECALLED_CHARS_MAX
    };
    found.into_iter().take_while(fits).cloned().collect()
}

fn told(note: &Note, hits: usize) -> String {
    let outside = if note.outside { ", from outside" } else { "" };
    let hits = if hits == 1 { "1 hit".to_owned() } else { format!("{hits} hits") };
    format!("{} {}, {:.0}, {hits}{outside}\n{}", note.address, note.about.name(), note.at, note.text)
}

fn conversations(count: usize) -> String {
    match count {
        0 => "no conversation".to_owned(),
        1 => "1 conversation".to_owned(),
        count => format!("{count} conversations"),
    }
}

#[cfg(test)]
mod tests;
