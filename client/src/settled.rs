//! `lisa candidates`, `dream` and `memory`: what she noticed again and again, what a dream makes of it, and what she noted.

use ipc::{
    contract::{
        chat::SOUL,
        soul::{Candidate, Candidates, Note, Notes, Reply, Request},
    },
    exit::Fault,
    home::Home,
    text::one_line,
};
use jiff::tz::TimeZone;

use crate::{
    arguments::{Dream, HeartbeatCommand, Memory},
    heartbeat,
    link::{CHILD_PATIENCE, Link, LinkError},
    news::local,
    output,
};

/// The task of the heartbeat that dreams.
const TASK: &str = "dream";

/// How much of a note is shown, in characters; `--json` has all of it.
const NOTE_CHARS_MAX: usize = 400;

/// Shows what she noticed again and again.
pub(crate) async fn candidates(home: &Home, json: bool) -> Result<(), Fault> {
    let found = ask_candidates(home).await?;
    if json { output::json(&found) } else { output::lines(&listed(&found)) }
}

/// Shows what a dream would merge now, or lets her dream.
pub(crate) async fn dream(home: &Home, json: bool, asked: &Dream) -> Result<(), Fault> {
    if asked.apply {
        let run = HeartbeatCommand::Run { task: Some(TASK.to_owned()) };
        return heartbeat::heartbeat(home, json, run).await;
    }
    let found = ask_candidates(home).await?;
    if json { output::json(&found) } else { output::lines(found.dream.trim_end()) }
}

/// Shows her notes.
pub(crate) async fn memory(home: &Home, json: bool, asked: &Memory, zone: &TimeZone) -> Result<(), Fault> {
    let query = Some(asked.query.join(" ")).filter(|query| !query.trim().is_empty());
    let request = Request::Notes { query: query.clone(), limit: asked.limit };
    let notes = match Link::open(home).await?.ask(SOUL, &request, CHILD_PATIENCE).await? {
        Reply::Notes(notes) => notes,
        other => return Err(unexpected(other)),
    };
    if json {
        return output::json(&notes);
    }
    if notes.notes.is_empty() {
        output::aside(match (&query, notes.all) {
            (_, 0) => "she has noted nothing yet",
            _ => "no note has that; try fewer or other words",
        });
        return Ok(());
    }
    output::lines(&noted(&notes, zone))
}

async fn ask_candidates(home: &Home) -> Result<Candidates, Fault> {
    match Link::open(home).await?.ask(SOUL, &Request::Candidates, CHILD_PATIENCE).await? {
        Reply::Candidates(found) => Ok(*found),
        other => Err(unexpected(other)),
    }
}

fn unexpected(reply: Reply) -> Fault {
    match reply {
        Reply::Refused { reason } => Fault::failed(reason),
        _ => LinkError::Unintelligible("the soul answered another question".to_owned()).into(),
    }
}

fn listed(found: &Candidates) -> String {
    let mut lines = Vec::new();
    for (title, candidates) in [("qualifies", &found.qualifying), ("near", &found.near)] {
        lines.push(format!("{title}:"));
        if candidates.is_empty() {
            lines.push("  nothing".to_owned());
        }
        lines.extend(candidates.iter().flat_map(told));
    }
    if found.far > 0 {
        lines.push(format!("further away: {}", found.far));
    }
    if !found.unsure.is_empty() {
        let files = found.unsure.join(", ");
        lines.push(format!("not counted, because it cannot be told who wrote which line: {files}"));
    }
    lines.join("\n")
}

fn told(candidate: &Candidate) -> Vec<String> {
    let again = if candidate.again { " since it was merged" } else { "" };
    let lacks = candidate.lacks.as_deref().map(|lacks| format!("; it lacks {lacks}")).unwrap_or_default();
    let head = format!(
        "  {}: seen {} times on {} days{again}{lacks}",
        one_line(&candidate.key, 80),
        candidate.observations,
        candidate.days
    );
    let evidence = candidate.evidence.iter().map(|entry| format!("    {}", one_line(entry, NOTE_CHARS_MAX)));
    std::iter::once(head).chain(evidence).collect()
}

fn noted(notes: &Notes, zone: &TimeZone) -> String {
    let line = |note: &Note| {
        let kept = if note.kept { ", in memory" } else { "" };
        let outside = if note.outside { ", from outside" } else { "" };
        format!(
            "{} {}, {}, recalled in {} of {} conversations{kept}{outside}\n  {}",
            note.address,
            note.about,
            local(note.at, zone),
            note.hits,
            notes.hits_needed,
            one_line(&note.text, NOTE_CHARS_MAX)
        )
    };
    notes.notes.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_qualifies_stands_before_what_is_near() {
        let candidate = |key: &str, lacks: Option<&str>| Candidate {
            key: key.into(),
            observations: 3,
            days: 2,
            again: lacks.is_none(),
            lacks: lacks.map(str::to_owned),
            evidence: vec!["journal/2026-11-30.md#1 “哼歌”".into()],
        };
        let found = Candidates {
            qualifying: vec![candidate("声音:歌", None)],
            near: vec![candidate("a", Some("1 observation"))],
            far: 2,
            ..Candidates::default()
        };
        assert_eq!(
            listed(&found),
            "qualifies:\n  声音:歌: seen 3 times on 2 days since it was merged\n    journal/2026-11-30.md#1 “哼歌”\n\
             near:\n  a: seen 3 times on 2 days; it lacks 1 observation\n    journal/2026-11-30.md#1 “哼歌”\nfurther away: 2"
        );
        assert_eq!(listed(&Candidates::default()), "qualifies:\n  nothing\nnear:\n  nothing");
    }

    #[test]
    fn a_note_says_how_often_it_was_needed() {
        let note = Note {
            address: "2026-11-30#1".into(),
            about: "user".into(),
            at: "2026-11-30T12:00:00Z".parse().unwrap(),
            text: "Ada plays\nthe cello".into(),
            outside: true,
            hits: 2,
            kept: false,
        };
        let notes = Notes { all: 1, hits_needed: 3, notes: vec![note] };
        assert_eq!(
            noted(&notes, &TimeZone::UTC),
            "2026-11-30#1 user, 2026-11-30 12:00:00, recalled in 2 of 3 conversations, from outside\n  Ada plays the cello"
        );
    }
}
