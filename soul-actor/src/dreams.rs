//! Dreams: what qualified is merged into `soul.md`, a line a candidate, and how far the journal has been dreamt of.
//!
//! ```text
//!  dreams.md                                     dreamt.json
//!
//!  # dreams                                      {
//!                                                  "merged": {
//!  ## 2026-12-01T03:00:00.000Z                       "identity:name": {
//!                                                      "through": { "day": "2026-11-30", "entry": 2 },
//!  1 line merged into soul.md via dream (dream)        "line": "I am called Lisa."
//!                                                    }
//!  - identity:name: I am called Lisa.              }
//!    3 observations on 2 days: journal/…         }
//!
//!  I dreamt of names.
//! ```
//!
//! `dreams.md` is a record and stays. `dreamt.json` is the cursor: for each topic the last entry of the journal that was
//! merged. What did not qualify keeps its entries for another night, so there is no one place where all begin. It comes
//! back with `soul.md`: a self that does not know of a dream may dream it again.

use std::{collections::BTreeMap, fmt::Write as _};

use ipc::{config::Dreams, reveal::reveal};
use jiff::{SignedDuration, Timestamp, civil::Date};
use serde::{Deserialize, Serialize};

use crate::{
    candidates::{Group, Place, Pool, many},
    document::{Record, Text},
    entries::{self, Log},
    sheet::trimmed,
    topic::Topic,
};

/// The longest line a dream may bring, in characters: a sentence, in every prompt from then on.
pub(crate) const LINE_CHARS_MAX: usize = 200;
/// The longest narrative, in characters. A commit's *why* has room for it and for what was merged.
pub(crate) const NARRATIVE_CHARS_MAX: usize = 1200;
/// How many entries are named for each line in the record, the newest.
const EVIDENCE_MAX: usize = 20;
/// How many are named for each line in the commit, the newest: with as many lines as a dream merges by default, all of
/// them are among what a commit names.
const EVIDENCE_NAMED_MAX: usize = 4;

/// From how many dreams on the oldest are let go of, and how many then stay: the history has the rest.
const ENTRIES_MAX: usize = 400;
const ENTRIES_KEPT: usize = 300;

/// How far one topic has been dreamt of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    /// The last entry that was merged.
    pub(crate) through: Place,
    /// The line it was merged as.
    pub(crate) line: String,
}

/// The cursor.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Dreamt {
    merged: BTreeMap<String, Mark>,
}

impl Dreamt {
    /// Reads the file; where there is none, nothing was dreamt of yet.
    pub(crate) fn read(bytes: Option<&[u8]>) -> Result<Self, String> {
        let Some(bytes) = bytes.filter(|bytes| !bytes.trim_ascii().is_empty()) else {
            return Ok(Self::default());
        };
        serde_json::from_slice(bytes).map_err(|error| {
            let path = Record::Dreamt.path();
            format!("`{path}`, which says how far the journal was dreamt of, does not parse: {error}; a person can bring it back with `lisa soul rollback {path} COMMIT`, or remove it to begin anew")
        })
    }

    /// The file's bytes.
    fn render(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec_pretty(self).expect("marks are JSON");
        bytes.push(b'\n');
        bytes
    }

    /// How far a topic was dreamt of.
    pub(crate) fn of(&self, key: &str) -> Option<&Mark> {
        self.merged.get(key)
    }

    /// All that was dreamt of, by topic.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&String, &Mark)> {
        self.merged.iter()
    }

    /// Notes how far a topic was dreamt of.
    pub(crate) fn mark(&mut self, key: String, mark: Mark) {
        self.merged.insert(key, mark);
    }
}

/// The first day that is looked at: older entries are no news of who she is, and reading all of a life has no bound.
pub(crate) fn first_day(today: Date, numbers: &Dreams) -> Date {
    today.saturating_sub(SignedDuration::from_hours(24 * i64::from(numbers.days_back)))
}

/// What `soul_dream` was asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    /// Whether to do it.
    pub(crate) apply: bool,
    /// For topics that qualify, the line in her words.
    pub(crate) wording: BTreeMap<String, String>,
    /// What she dreamt, for the record.
    pub(crate) narrative: Option<String>,
}

/// One line that is merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Merged {
    /// What qualified.
    pub(crate) group: Group,
    /// The line.
    pub(crate) line: String,
    /// The line of an earlier dream of the same topic that still stands there.
    pub(crate) replaces: Option<String>,
}

/// What a dream comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dream {
    /// The lines, in order.
    pub(crate) merged: Vec<Merged>,
    /// What qualifies as well and waits for another night.
    pub(crate) waiting: Vec<Group>,
    /// `soul.md` with the lines, whether or not it fits.
    pub(crate) soul: String,
}

/// Decides what is merged: what the model gave words to first, then what there is most of.
pub(crate) fn decide(
    pool: Pool,
    asked: &Asked,
    soul: &str,
    dreamt: &Dreamt,
    numbers: &Dreams,
) -> Result<Dream, String> {
    let mut wording = BTreeMap::new();
    for (named, line) in &asked.wording {
        let key = Topic::tidy(named).map_or_else(|_| trimmed(named).to_owned(), |topic| topic.to_string());
        if !pool.qualifying.iter().any(|group| group.key == key) {
            return Err(not_qualified(&key, &pool, dreamt, numbers));
        }
        if wording.insert(key, line.as_str()).is_some() {
            let shown = ipc::text::one_line(named, 80);
            return Err(format!("`wording` names `{shown}` twice; give one sentence for it"));
        }
    }
    let max = numbers.lines_max as usize;
    if wording.len() > max {
        let count = wording.len();
        return Err(format!(
            "a dream merges at most {}, and `wording` has {count}; leave some for another night",
            many(max, "line")
        ));
    }
    let (mut first, rest): (Vec<_>, Vec<_>) =
        pool.qualifying.into_iter().partition(|group| wording.contains_key(&group.key));
    first.extend(rest);
    let waiting = first.split_off(first.len().min(max));
    let mut soul = trimmed(soul).to_owned();
    let mut merged = Vec::new();
    for group in first {
        let line = match wording.get(&group.key) {
            Some(line) => reveal(line).into_owned(),
            None => group.newest().quote(LINE_CHARS_MAX),
        };
        let earlier = dreamt.of(&group.key).map(|mark| mark.line.clone());
        let replaces = merge(&mut soul, earlier.as_deref(), &line).then_some(earlier).flatten();
        merged.push(Merged { group, line, replaces });
    }
    Ok(Dream { merged, waiting, soul })
}

/// Adds a line to the text, in the place of an earlier one that still stands there; says whether it took a place. One that
/// stands there already is not added again.
fn merge(soul: &mut String, earlier: Option<&str>, line: &str) -> bool {
    let item = |line: &str| format!("- {line}");
    let new = item(line);
    let has = |soul: &str, item: &str| soul.lines().any(|line| line.trim_end() == item);
    if has(soul, &new) {
        return false;
    }
    if let Some(old) = earlier.map(item).filter(|old| has(soul, old)) {
        let mut taken = false;
        let lines = soul.split('\n').map(|line| {
            let is_it = !taken && line.trim_end() == old;
            taken |= is_it;
            if is_it { new.as_str() } else { line }
        });
        *soul = lines.collect::<Vec<_>>().join("\n");
        return true;
    }
    if !soul.is_empty() {
        soul.push('\n');
    }
    soul.push_str(&new);
    false
}

/// Why something that was given words is not merged.
fn not_qualified(key: &str, pool: &Pool, dreamt: &Dreamt, numbers: &Dreams) -> String {
    let shown = ipc::text::one_line(key, 80);
    if let Some(group) = pool.near.iter().chain(&pool.far).find(|group| group.key == key) {
        return format!(
            "`{shown}` does not qualify: {} since it was last dreamt of; it lacks {}",
            group.weight(),
            group.lacks(numbers)
        );
    }
    if let Some(mark) = dreamt.of(key) {
        return format!(
            "`{shown}` was merged already, through `{}`, and nothing was noticed since",
            mark.through
        );
    }
    match ipc::text::nearest(key, pool.qualifying.iter().map(|group| group.key.as_str())) {
        Some(near) => format!(
            "`{shown}` does not qualify, for no entry that counts is about it; the nearest is `{near}`"
        ),
        None => format!(
            "`{shown}` does not qualify, for no entry that counts is about it; `soul_candidates` shows what does"
        ),
    }
}

impl Dream {
    /// Why, for the commit and the changelog.
    pub(crate) fn why(&self, narrative: Option<&str>) -> String {
        let mut why = String::new();
        for Merged { group, .. } in &self.merged {
            let _ = writeln!(why, "`{}`: {}", group.key, group.weight());
        }
        match narrative {
            Some(narrative) => format!("{}\n\n{narrative}", why.trim_end()),
            None => why.trim_end().to_owned(),
        }
    }

    /// What the commit names as evidence, a piece a trailer.
    pub(crate) fn evidence(&self) -> Vec<String> {
        let named = |group: &Group| {
            let from = group.evidence.len().saturating_sub(EVIDENCE_NAMED_MAX);
            let places = group.evidence.iter().skip(from);
            places.map(|seen| format!("{}; {}", seen.place, group.key)).collect::<Vec<_>>()
        };
        self.merged.iter().flat_map(|merged| named(&merged.group)).collect()
    }

    /// What the record says of it.
    pub(crate) fn record(&self, caller: &str, origin: &str, narrative: Option<&str>) -> String {
        let mut said = format!(
            "{} merged into {} via {caller} ({origin})\n",
            many(self.merged.len(), "line"),
            Text::Soul.path()
        );
        for Merged { group, line, replaces } in &self.merged {
            let _ = write!(said, "\n- {}: {line}\n  {}: {}", group.key, group.weight(), places(group));
            if let Some(old) = replaces {
                let _ = write!(said, "\n  in the place of: {old}");
            }
        }
        if let Some(narrative) = narrative {
            let _ = write!(said, "\n\n{}", trimmed(narrative));
        }
        said
    }

    /// The record's new bytes.
    pub(crate) fn recorded(old: &[u8], said: &str, now: Timestamp) -> Vec<u8> {
        let kept = entries::newest(Log::Dreams, old, ENTRIES_MAX, ENTRIES_KEPT);
        entries::append(Log::Dreams, &kept, now, said)
    }

    /// The cursor's new bytes. What lies before the first day that is looked at would hold back nothing, and is let go.
    pub(crate) fn cursor(&self, mut dreamt: Dreamt, first_day: Date) -> Vec<u8> {
        dreamt.merged.retain(|_, mark| mark.through.day >= first_day);
        for Merged { group, line, .. } in &self.merged {
            let mark = Mark { through: group.newest().place, line: line.clone() };
            dreamt.mark(group.key.clone(), mark);
        }
        dreamt.render()
    }
}

/// Where the entries of a group stand.
fn places(group: &Group) -> String {
    let more = group.evidence.len().saturating_sub(EVIDENCE_MAX);
    let shown: Vec<_> = group.evidence.iter().skip(more).map(|seen| seen.place.to_string()).collect();
    let more = if more > 0 { format!(" and {more} before") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

#[cfg(test)]
mod tests;
