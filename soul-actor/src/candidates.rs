//! Candidates: what she noticed again and again, found in her journal by counting. A plain function of what it says.
//!
//! ```text
//!  entries since the cursor ─▶ by topic, or by the same sentence ─▶ often enough, on enough days? ─▶ qualifies · near · far
//! ```
//!
//! What qualifies is never a model's judgement. Only what she wrote in a conversation, or looking back on one, counts: a
//! dream that fed on dreams, or on what the runtime wrote for her, would make a self out of its own echo.

use std::collections::BTreeMap;

use ipc::{config::Dreams, contract::soul, digest::sha256_hex, reveal::reveal, text::one_line};
use jiff::civil::Date;
use unicode_normalization::{UnicodeNormalization as _, char::is_combining_mark};

use crate::{document::Document, dreams::Dreamt, topic::Topic};

/// How much of an entry is quoted where it is named as evidence, in characters.
const QUOTE_CHARS_MAX: usize = 80;

/// What a group lacks that qualifies.
pub(crate) const NOTHING: &str = "nothing";

/// What begins entries that the runtime words or asks for, in her journal or in the original's.
const SYSTEM: [&str; 10] = [
    "[objection]",
    "[fallback]",
    "[desire_closed]",
    "[closed:",
    "[examen]",
    "[review]",
    "[noticed]",
    "[redeploy]",
    "[lisa]",
    "[outside",
];

/// Whether entries that this commit brought count: hers, from a conversation or a look back, and of her own accord.
pub(crate) fn counts(commit: &soul::Entry) -> bool {
    let of_hers = match commit.origin.as_str() {
        "chat" | "reflect" => true,
        // the original names no origin, and its callers say as much
        "" => matches!(commit.caller.as_str(), "soul_journal" | "reflect"),
        _ => false,
    };
    of_hers && commit.op == "journal"
}

/// Whether an entry begins like what the runtime writes.
pub(crate) fn is_of_the_system(text: &str) -> bool {
    let begins = ipc::text::prefix(text, 20).to_lowercase();
    SYSTEM.iter().any(|mark| begins.starts_with(mark))
}

/// Where an entry stands: the day of its file, and which one it is in it, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub(crate) struct Place {
    /// The day.
    pub(crate) day: Date,
    /// Which entry of that day.
    pub(crate) entry: usize,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}#{}", Document::Journal(self.day).path(), self.entry)
    }
}

/// An entry that counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Observation {
    /// Where it stands.
    pub(crate) place: Place,
    /// What it is about.
    pub(crate) topic: Option<Topic>,
    /// What it says.
    pub(crate) text: String,
}

impl Observation {
    /// What it says, in short, with nothing hidden in it.
    pub(crate) fn quote(&self, chars_max: usize) -> String {
        one_line(&reveal(&one_line(&self.text, chars_max)), chars_max)
    }

    /// Where it stands, and its first words.
    pub(crate) fn told(&self) -> String {
        format!("{} “{}”", self.place, self.quote(QUOTE_CHARS_MAX))
    }

    /// What it is counted with: its topic, or a name for its sentence. Nothing where it says no word.
    fn key(&self) -> Option<String> {
        match &self.topic {
            Some(topic) => Some(topic.as_str().to_owned()),
            None => Some(normal(&self.text)).filter(|text| !text.is_empty()).map(|text| named(&text)),
        }
    }
}

/// How a sentence is named where its topic has no word: no topic begins like that.
fn named(normal: &str) -> String {
    let digest: String = sha256_hex(normal.as_bytes()).chars().take(12).collect();
    format!("#{digest}")
}

/// A sentence without what does not tell it from another: case, width, punctuation and white space. Words that blanks
/// separate stay apart; in scripts that have none, blanks say nothing.
fn normal(text: &str) -> String {
    let folded = text.nfkc().flat_map(char::to_uppercase).flat_map(char::to_lowercase);
    let (mut normal, mut last, mut gap) = (String::new(), None, false);
    for c in folded.nfc() {
        let is_selector = matches!(c, '\u{fe00}'..='\u{fe0f}');
        if is_selector || !(c.is_alphanumeric() || is_combining_mark(c)) {
            gap |= !is_selector;
            continue;
        }
        let dense = |c: char| ipc::text::is_unspaced(c);
        if gap && last.is_some_and(|last| !dense(last)) && !dense(c) {
            normal.push(' ');
        }
        normal.push(c);
        (last, gap) = (Some(c), false);
    }
    normal
}

/// Entries that are counted together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    /// The topic, or the name of the sentence.
    pub(crate) key: String,
    /// The entries since it was last dreamt of, oldest first; never empty.
    pub(crate) evidence: Vec<Observation>,
    /// On how many days they were written.
    pub(crate) days: usize,
    /// Whether it was dreamt of before.
    pub(crate) again: bool,
}

impl Group {
    /// The newest entry.
    pub(crate) fn newest(&self) -> &Observation {
        self.evidence.last().expect("a group has an entry")
    }

    /// How much there is of it: `4 observations on 3 days`.
    pub(crate) fn weight(&self) -> String {
        format!("{} on {}", many(self.evidence.len(), "observation"), many(self.days, "day"))
    }

    /// How many observations and days are missing.
    fn missing(&self, numbers: &Dreams) -> (usize, usize) {
        let (needed, days) = (numbers.observations_min as usize, numbers.days_min as usize);
        (needed.saturating_sub(self.evidence.len()), days.saturating_sub(self.days))
    }

    /// What is missing, in words.
    pub(crate) fn lacks(&self, numbers: &Dreams) -> String {
        match self.missing(numbers) {
            (0, 0) => NOTHING.to_owned(),
            (more, 0) => many(more, "observation"),
            (0, days) => format!("an observation on {}", many(days, "other day")),
            (more, days) => {
                format!("{}, on at least {}", many(more, "observation"), many(days, "other day"))
            }
        }
    }
}

/// `1 day`, `3 days`.
pub(crate) fn many(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// What the journal comes to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Pool {
    /// What qualifies, what there is most of first.
    pub(crate) qualifying: Vec<Group>,
    /// What lacks one observation, or days alone.
    pub(crate) near: Vec<Group>,
    /// What lacks more.
    pub(crate) far: Vec<Group>,
}

/// Counts what was written since the cursor.
pub(crate) fn pool(observations: Vec<Observation>, dreamt: &Dreamt, numbers: &Dreams) -> Pool {
    let mut groups: BTreeMap<String, Vec<Observation>> = BTreeMap::new();
    for seen in observations {
        let Some(key) = seen.key() else { continue };
        if dreamt.of(&key).is_none_or(|mark| seen.place > mark.through) {
            groups.entry(key).or_default().push(seen);
        }
    }
    let mut pool = Pool::default();
    for (key, mut evidence) in groups {
        evidence.sort_by_key(|seen| seen.place);
        evidence.dedup_by_key(|seen| seen.place);
        let days = evidence.chunk_by(|one, other| one.place.day == other.place.day).count();
        let again = dreamt.of(&key).is_some();
        let group = Group { key, evidence, days, again };
        match group.missing(numbers) {
            (0, 0) => pool.qualifying.push(group),
            (0 | 1, _) => pool.near.push(group),
            _ => pool.far.push(group),
        }
    }
    for groups in [&mut pool.qualifying, &mut pool.near, &mut pool.far] {
        // the keys were in order, and stay so among equals
        groups.sort_by_key(|group| std::cmp::Reverse((group.evidence.len(), group.days)));
    }
    pool
}

#[cfg(test)]
mod tests;
