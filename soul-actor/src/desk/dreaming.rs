//! Sleep: what the journal comes to, and what of it is merged into her soul, read and carried out.
//!
//! Who wrote an entry is asked of git, line by line: an entry counts when every line of it came with a commit that
//! counts. It costs one note a day's file and what was written since, and no more days are read than a person has set.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use ipc::contract::soul::{Candidate, Candidates, Reply};
use jiff::Timestamp;

use super::Desk;
use crate::{
    candidates::{self, Group, Observation, Place, Pool, many},
    document::{self, Document, Folder, Record, Text},
    dreams::{self, Asked, Dream, Dreamt},
    entries::{self, Log},
    gate,
    grant::Deed,
    held::iso,
    message::WHY_CHARS_MAX,
    plan::{NotWritten, Plan},
    reading,
    repository::{
        Change, Wanted,
        workfile::{Place as _, look},
    },
    sheet::trimmed,
};

/// How many candidates of a kind are shown, and how many entries of each, the newest.
const SHOWN_MAX: usize = 20;
const EVIDENCE_SHOWN_MAX: usize = 8;

/// What the journal says since it was last dreamt of.
struct Seen {
    pool: Pool,
    dreamt: Dreamt,
    /// The files of which nobody can say who wrote them.
    unsure: Vec<String>,
}

/// What a dream comes to, and what there was before.
struct Planned {
    dream: Dream,
    dreamt: Dreamt,
    before: String,
    unsure: Vec<String>,
}

impl Desk {
    /// What she noticed, for whoever asks the process: the heartbeat, which dreams where something qualifies, and a person.
    pub(super) fn candidates(&mut self, now: Timestamp) -> Result<Reply, NotWritten> {
        let Seen { pool, unsure, .. } = self.seen(now)?;
        let numbers = &self.dreams;
        let told =
            |groups: &[Group]| groups.iter().take(SHOWN_MAX).map(|group| told(group, numbers)).collect();
        let (qualifying, near) = (told(&pool.qualifying), told(&pool.near));
        let far = u32::try_from(pool.far.len()).unwrap_or(u32::MAX);
        let dream = self.told_of_dream(&Asked::default(), now)?;
        let unsure = unsure.into_iter().take(SHOWN_MAX).collect();
        Ok(Reply::Candidates(Box::new(Candidates { qualifying, near, far, unsure, dream })))
    }

    /// What is on its way into her, in one line: how much qualifies, and when she last dreamt, as the history says it.
    pub(super) fn how_it_settles(&mut self, now: Timestamp) -> Result<String, NotWritten> {
        let Seen { pool, .. } = self.seen(now)?;
        let wanted = Wanted { path: Some(Record::Dreams.path()), limit: 1, since: None };
        let last = self.repository.history(wanted)?.into_iter().next();
        let last =
            last.map_or_else(|| "no dream yet".to_owned(), |last| format!("last dream {}", iso(last.time)));
        let (qualifying, near) = (pool.qualifying.len(), pool.near.len());
        Ok(format!("settling: {qualifying} of what you noticed qualifies for a dream, {near} near; {last}"))
    }

    /// What `soul_candidates` answers.
    pub(super) fn told_of_candidates(&mut self, now: Timestamp) -> Result<String, NotWritten> {
        let Seen { pool, dreamt, unsure } = self.seen(now)?;
        let numbers = &self.dreams;
        let rule = format!(
            "at least {} on at least {}",
            many(numbers.observations_min as usize, "observation"),
            many(numbers.days_min as usize, "day")
        );
        let mut text = match pool.qualifying.len() {
            0 => format!("nothing qualifies yet ({rule})\n"),
            1 => format!("1 candidate qualifies ({rule}); `soul_dream` merges it:\n"),
            count => format!("{count} candidates qualify ({rule}); `soul_dream` merges them:\n"),
        };
        list(&mut text, &pool.qualifying, |_| String::new());
        if !pool.near.is_empty() {
            text.push_str("\nnear:\n");
            list(&mut text, &pool.near, |group| format!("; it lacks {}", group.lacks(numbers)));
        }
        let is_listed =
            |key: &String| pool.qualifying.iter().chain(&pool.near).any(|group| group.key == *key);
        let merged: Vec<_> = dreamt.all().filter(|(key, _)| !is_listed(key)).collect();
        if !merged.is_empty() {
            text.push_str("\nmerged already, and not noticed often enough since:\n");
            for (key, mark) in merged.iter().rev().take(SHOWN_MAX) {
                let _ = writeln!(text, "- {key}, through {}, as “{}”", mark.through, mark.line);
            }
        }
        if !pool.far.is_empty() {
            let _ = writeln!(text, "\n{} further away", many(pool.far.len(), "other"));
        }
        text.push_str(&told_unsure(&unsure));
        Ok(reading::head(text.trim_end()))
    }

    /// What `soul_dream` answers where it changes nothing.
    pub(super) fn told_of_dream(&mut self, asked: &Asked, now: Timestamp) -> Result<String, NotWritten> {
        let Planned { dream, before, unsure, .. } = self.planned(asked, now)?;
        if dream.merged.is_empty() {
            return Ok(format!("{}{}", nothing_qualifies(), told_unsure(&unsure)));
        }
        let (soul, max) = (Text::Soul, Text::Soul.chars_max());
        let inserted = gate::inserted(&before, &dream.soul);
        let mut text = format!(
            "{} would be merged into `{}`, which inserts {} and makes it {} of {max}:\n",
            many(dream.merged.len(), "line"),
            soul.path(),
            many(inserted, "character"),
            ipc::text::chars(&dream.soul)
        );
        for merged in &dream.merged {
            let _ = writeln!(text, "- {}: {}", merged.group.key, merged.line);
            if let Some(old) = &merged.replaces {
                let _ = writeln!(text, "  in the place of: {old}");
            }
            let _ = writeln!(text, "  because of {}:", merged.group.weight());
            tell_evidence(&mut text, &merged.group);
        }
        if !dream.waiting.is_empty() {
            let waiting: Vec<_> =
                dream.waiting.iter().take(SHOWN_MAX).map(|group| format!("`{}`", group.key)).collect();
            let _ = writeln!(text, "for another night: {}", waiting.join(", "));
        }
        match &asked.narrative {
            Some(narrative) => {
                let _ = writeln!(text, "`{}` would say besides: {narrative}", Record::Dreams.path());
            }
            None => {
                let _ = writeln!(text, "`{}` would name the lines and their entries", Record::Dreams.path());
            }
        }
        let standing = self.standing_today(now)?;
        let barred =
            soul.accept(&dream.soul).err().or_else(|| gate::pass(&self.gates, standing, inserted).err());
        match barred {
            Some(why) => {
                let _ = writeln!(text, "it would be refused as it is: {why}");
            }
            None => text.push_str(
                "nothing is written until `apply` is true; `wording` says the lines in your own words\n",
            ),
        }
        text.push_str(&told_unsure(&unsure));
        Ok(reading::head(text.trim_end()))
    }

    /// What a dream changes; a sentence where nothing qualifies, and then nothing does, the cursor included: what was
    /// noticed twice may be noticed a third time.
    pub(super) fn dream(
        &mut self,
        asked: &Asked,
        (caller, origin): (&str, &str),
        now: Timestamp,
    ) -> Result<Result<Plan, String>, NotWritten> {
        let Planned { dream, dreamt, before, unsure } = self.planned(asked, now)?;
        if dream.merged.is_empty() {
            return Ok(Err(format!("{}{}", nothing_qualifies(), told_unsure(&unsure))));
        }
        let (soul, record, cursor) = (Text::Soul, Record::Dreams.path(), Record::Dreamt.path());
        let content = soul
            .accept(&dream.soul)
            .map_err(|why| format!("{why}, or the lines of this dream (`wording`); nothing was merged"))?;
        let narrative = asked.narrative.as_deref();
        let said = dream.record(caller, origin, narrative);
        let old = look(self.repository.root(), record)?.unwrap_or_default();
        let mut changes = vec![
            Change { path: record.to_owned(), bytes: Some(Dream::recorded(&old, &said, now)) },
            Change {
                path: cursor.to_owned(),
                bytes: Some(dream.cursor(dreamt, dreams::first_day(self.today(now), &self.dreams))),
            },
        ];
        let mut path = record;
        if content != before {
            path = soul.path();
            changes.insert(
                0,
                Change { path: path.to_owned(), bytes: Some(format!("{content}\n").into_bytes()) },
            );
        }
        let waiting = match dream.waiting.len() {
            0 => String::new(),
            count => format!("; {} for another night", many(count, "more candidate")),
        };
        let said =
            format!("{} merged{waiting}; it holds from your next turn on", many(dream.merged.len(), "line"));
        let why = ipc::text::prefix(&dream.why(narrative), WHY_CHARS_MAX).to_owned();
        let evidence = dream.evidence();
        Ok(Ok(Plan { deed: Deed::Dream, op: "dream", path: path.to_owned(), why, evidence, changes, said }))
    }

    fn planned(&mut self, asked: &Asked, now: Timestamp) -> Result<Planned, NotWritten> {
        let Seen { pool, dreamt, unsure } = self.seen(now)?;
        let soul = look(self.repository.root(), Text::Soul.path())?.unwrap_or_default();
        let soul = String::from_utf8(soul).map_err(|_| {
            format!("`{}` is not UTF-8; a person must save it as UTF-8 first", Text::Soul.path())
        })?;
        let before = trimmed(&soul).to_owned();
        let dream = dreams::decide(pool, asked, &before, &dreamt, &self.dreams)?;
        Ok(Planned { dream, dreamt, before, unsure })
    }

    /// Reads the journal as far back as it counts.
    fn seen(&mut self, now: Timestamp) -> Result<Seen, NotWritten> {
        // who wrote what is read from git, so all of it must be there
        self.catch_up();
        let root = self.repository.root();
        let dreamt = Dreamt::read(look(root, Record::Dreamt.path())?.as_deref())?;
        let first = dreams::first_day(self.today(now), &self.dreams);
        let day = |name: &String| document::day(name.strip_suffix(".md")?).ok();
        let days: BTreeSet<_> = root.names(Folder::Journal.name()).iter().filter_map(day).collect();
        let strangers: BTreeSet<_> =
            self.repository.strangers().map(|stranger| stranger.path.as_str()).collect();
        let (mut observations, mut unsure) = (Vec::new(), Vec::new());
        for day in days.range(first..) {
            let path = Document::Journal(*day).path();
            let bytes = look(root, &path).ok().flatten().filter(|_| !strangers.contains(path.as_str()));
            let counted = bytes.and_then(|bytes| {
                let brought = self.repository.all_brought(&path, &bytes)?;
                let text = String::from_utf8_lossy(&bytes);
                let lines: Vec<&str> = text.split('\n').collect();
                // a commit brings many lines, and says the same of all
                let mut known = BTreeMap::new();
                let mut is_hers = |at: usize| {
                    brought.commit(at).is_some_and(|(number, commit)| {
                        *known.entry(number).or_insert_with(|| candidates::counts(commit))
                    })
                };
                let entries = entries::placed(Log::Journal, &text).into_iter().zip(1..);
                let counted = entries.filter_map(|((mut own, entry), number)| {
                    let is_blank = |at: usize| lines.get(at).is_none_or(|line| trimmed(line).is_empty());
                    let counts = own.all(|at| is_blank(at) || is_hers(at));
                    (counts && !candidates::is_of_the_system(&entry.text)).then_some(Observation {
                        place: Place { day: *day, entry: number },
                        topic: entry.topic,
                        text: entry.text,
                    })
                });
                Some(counted.collect::<Vec<_>>())
            });
            match counted {
                Some(counted) => observations.extend(counted),
                None => unsure.push(path),
            }
        }
        Ok(Seen { pool: candidates::pool(observations, &dreamt, &self.dreams), dreamt, unsure })
    }
}

fn nothing_qualifies() -> String {
    "nothing qualifies, so nothing is merged, and all that was noticed counts on; `soul_candidates` shows what is near"
        .to_owned()
}

/// A group as others are told of it.
fn told(group: &Group, numbers: &ipc::config::Dreams) -> Candidate {
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let before = group.evidence.len().saturating_sub(EVIDENCE_SHOWN_MAX);
    Candidate {
        key: group.key.clone(),
        observations: count(group.evidence.len()),
        days: count(group.days),
        again: group.again,
        lacks: Some(group.lacks(numbers)).filter(|lacks| lacks != candidates::NOTHING),
        evidence: group.evidence.iter().skip(before).map(Observation::told).collect(),
    }
}

/// Tells of groups, a bounded number of them.
fn list(text: &mut String, groups: &[Group], besides: impl Fn(&Group) -> String) {
    for group in groups.iter().take(SHOWN_MAX) {
        let again = if group.again { " since it was merged" } else { "" };
        let _ = writeln!(text, "- {}: {}{again}{}", group.key, group.weight(), besides(group));
        tell_evidence(text, group);
    }
    if let Some(more) = groups.len().checked_sub(SHOWN_MAX).filter(|more| *more > 0) {
        let _ = writeln!(text, "and {more} more");
    }
}

fn tell_evidence(text: &mut String, group: &Group) {
    let before = group.evidence.len().saturating_sub(EVIDENCE_SHOWN_MAX);
    for seen in group.evidence.iter().skip(before) {
        let _ = writeln!(text, "  {}", seen.told());
    }
    if before > 0 {
        let _ = writeln!(text, "  and {before} before");
    }
}

/// A sentence about files that do not count, where there are any.
fn told_unsure(unsure: &[String]) -> String {
    if unsure.is_empty() {
        return String::new();
    }
    let shown: Vec<_> = unsure.iter().take(SHOWN_MAX).map(|path| format!("`{path}`")).collect();
    let more = unsure.len().saturating_sub(SHOWN_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!(
        "\nnot counted, because it cannot be told who wrote which line there (it is too large, its history cannot be read now, or somebody else committed to it): {}{more}",
        shown.join(", ")
    )
}

#[cfg(test)]
mod tests;
