//! `lisa wishlist`: what she wishes of her tools, as her desire `meta-wishlist` and her journal say it.

use std::collections::BTreeSet;

use ipc::{
    contract::{
        chat::SOUL,
        soul::{Desire, Entry, Reply, Request},
    },
    exit::Fault,
    home::Home,
    text::one_line,
};
use serde::Serialize;

use crate::{
    link::{CHILD_PATIENCE, Link, LinkError},
    output,
};

/// The desire that is about her tools.
const DESIRE: &str = "meta-wishlist";

/// What begins a line of the journal that is about her tools.
const TAG: &str = "[WISHLIST]";

/// How many changes of the journal are looked through for its days, the newest; the soul's own bound.
const JOURNAL_CHANGES_MAX: u32 = 200;

/// How much of one wish is shown, in characters; `--json` has all of it.
const WISH_CHARS_MAX: usize = 400;

/// What she wishes of her tools. `lisa wishlist --json` prints this.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
struct Wishlist {
    /// Her desire about it, where she has one.
    desire: Option<Desire>,
    /// What her journal says, newest day first.
    journal: Vec<Wish>,
}

/// One wish in her journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Wish {
    /// The day whose journal it is in.
    day: String,
    /// What stands over the entry: its time in UTC; empty where the entry has none.
    time: String,
    /// What she wishes.
    text: String,
}

/// Shows what she wishes of her tools.
pub(crate) async fn wishlist(home: &Home, json: bool) -> Result<(), Fault> {
    let mut link = Link::open(home).await?;
    let desire = match ask(&mut link, &Request::Snapshot).await? {
        Reply::Snapshot(snapshot) => snapshot.desires.into_iter().find(|desire| desire.slug == DESIRE),
        other => return Err(unexpected(other)),
    };
    let asked =
        Request::History { document: Some("journal".to_owned()), limit: JOURNAL_CHANGES_MAX, since: None };
    let days = match ask(&mut link, &asked).await? {
        Reply::History { entries } => days(&entries),
        other => return Err(unexpected(other)),
    };
    let mut journal = Vec::new();
    for day in days {
        match ask(&mut link, &Request::Read { document: format!("journal/{day}") }).await? {
            Reply::Document { text, .. } => journal.extend(wishes(&day, &text)),
            // a day that somebody removed has nothing to say
            Reply::Refused { .. } => {}
            other => return Err(unexpected(other)),
        }
    }
    let wishlist = Wishlist { desire, journal };
    if json {
        return output::json(&wishlist);
    }
    if wishlist == Wishlist::default() {
        output::aside(&format!(
            "she has noted no wish about her tools: she has no desire `{DESIRE}`, and no line of her journal begins with `{TAG}`"
        ));
        return Ok(());
    }
    output::lines(&screen(&wishlist))
}

async fn ask(link: &mut Link, request: &Request) -> Result<Reply, LinkError> {
    link.ask(SOUL, request, CHILD_PATIENCE).await
}

fn unexpected(reply: Reply) -> Fault {
    match reply {
        Reply::Refused { reason } => Fault::failed(reason),
        _ => LinkError::Unintelligible("the soul answered another question".to_owned()).into(),
    }
}

/// The days whose journal changed, newest first.
fn days(entries: &[Entry]) -> Vec<String> {
    let day = |entry: &Entry| {
        let day = entry.path.strip_prefix("journal/")?.strip_suffix(".md")?;
        Some(day.to_owned())
    };
    let days: BTreeSet<String> = entries.iter().filter_map(day).collect();
    days.into_iter().rev().collect()
}

/// The wishes in the journal of a day: from a line that begins with the tag to the end of its entry.
fn wishes(day: &str, journal: &str) -> Vec<Wish> {
    let (mut wishes, mut time, mut open): (Vec<Wish>, _, _) = (Vec::new(), "", false);
    for line in journal.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            (time, open) = (heading, false);
        } else if let Some(text) = line.trim_start().strip_prefix(TAG) {
            let (day, time, text) = (day.to_owned(), time.to_owned(), text.trim().to_owned());
            wishes.push(Wish { day, time, text });
            open = true;
        } else if let (true, Some(wish)) = (open, wishes.last_mut()) {
            wish.text.push('\n');
            wish.text.push_str(line);
        }
    }
    for wish in &mut wishes {
        wish.text = wish.text.trim().to_owned();
    }
    wishes
}

fn screen(wishlist: &Wishlist) -> String {
    let mut lines = Vec::new();
    if let Some(desire) = &wishlist.desire {
        let state = match (desire.closed, desire.actionable) {
            (true, _) => "closed",
            (false, true) => "actionable",
            (false, false) => "open",
        };
        lines.push(format!("{DESIRE} ({state}): {}", one_line(&desire.what, WISH_CHARS_MAX)));
        if !desire.why.is_empty() {
            lines.push(format!("  because {}", one_line(&desire.why, WISH_CHARS_MAX)));
        }
        if let Some(earlier) = &desire.earlier {
            lines.push(format!("  earlier: {}", one_line(earlier, WISH_CHARS_MAX)));
        }
        lines.extend(
            desire
                .progress
                .iter()
                .map(|entry| format!("  {}  {}", entry.at, one_line(&entry.text, WISH_CHARS_MAX))),
        );
    }
    if !wishlist.journal.is_empty() {
        if !lines.is_empty() {
            lines.push(String::new());
        }
        lines.push("journal".to_owned());
        lines.extend(wishlist.journal.iter().map(|wish| {
            let at = format!("{} {}", wish.day, wish.time);
            format!("  {}  {}", at.trim_end(), one_line(&wish.text, WISH_CHARS_MAX))
        }));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ipc::contract::soul::Progress;

    #[test]
    fn a_wish_goes_from_its_tag_to_the_end_of_its_entry() {
        let journal = "## 08:00:00\n\nquiet\n\n## 09:00:00\n\nfirst\n  [WISHLIST] a clock\nthat chimes\n\n[WISHLIST]\n一盏灯\n\n## 10:00:00\n\nno [WISHLIST] here\n";
        let wish = |text: &str| Wish { day: "2026-11-30".into(), time: "09:00:00".into(), text: text.into() };
        assert_eq!(wishes("2026-11-30", journal), [wish("a clock\nthat chimes"), wish("一盏灯")]);
        assert_eq!(wishes("2026-11-30", ""), []);
    }

    #[test]
    fn the_days_are_those_that_changed_each_once_newest_first() {
        let entry = |path: &str| Entry {
            commit: "c".into(),
            time: "2026-11-30T12:00:00Z".parse().unwrap(),
            op: "journal".into(),
            path: path.into(),
            caller: "soul_journal".into(),
            origin: "chat".into(),
            why: String::new(),
            evidence: vec![],
            trailers: std::collections::BTreeMap::new(),
        };
        let entries =
            ["journal/2026-11-29.md", "journal/2026-11-30.md", "journal/2026-11-29.md", "identity.md", ""];
        assert_eq!(days(&entries.map(entry)), ["2026-11-30", "2026-11-29"]);
    }

    #[test]
    fn the_desire_comes_with_its_progress_and_the_journal_behind_it() {
        let desire = Desire {
            slug: DESIRE.into(),
            what: "a tool that\nreads tides".into(),
            why: "潮汐".into(),
            actionable: true,
            progress: vec![Progress { at: "2026-11-30T12:00:00.000Z".into(), text: "asked\nAnna".into() }],
            ..Desire::default()
        };
        let day = || "2026-11-30".to_owned();
        let journal = vec![Wish { day: day(), time: "09:00:00".into(), text: "一盏灯".into() }];
        assert_eq!(
            screen(&Wishlist { desire: Some(desire), journal: journal.clone() }),
            "meta-wishlist (actionable): a tool that reads tides\n  because 潮汐\n  2026-11-30T12:00:00.000Z  asked Anna\n\njournal\n  2026-11-30 09:00:00  一盏灯"
        );
        assert_eq!(screen(&Wishlist { desire: None, journal }), "journal\n  2026-11-30 09:00:00  一盏灯");
    }
}
