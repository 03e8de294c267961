//! What she is told when a desire of hers is pursued, and when she dreams: plain functions of what is known, and of when it is.

use std::fmt::Write as _;

use ipc::contract::soul::{Candidates, Desire, Notes};
use jiff::ZonedDateTime;

/// The prompt of one run. Its first line names the task; the date stands here because the system prompt has no clock (T11).
pub(crate) fn pursuit(desire: &Desire, now: &ZonedDateTime) -> String {
    let slug = &desire.slug;
    let mut prompt = format!(
        "[heartbeat] desire:{slug}\n\nThis is a desire of yours, not a request from anybody. Nobody is waiting; it is {}.\n",
        now.strftime("%A, %Y-%m-%d %H:%M (%Z)")
    );
    let _ = write!(prompt, "\n## what you wanted\n\n{}\n\n## why\n\n{}\n", desire.what, desire.why);
    let plan = desire.heartbeat.as_deref().unwrap_or("(you have written no plan yet)");
    let _ = write!(prompt, "\n## heartbeat plan\n\n{plan}\n");
    let earlier = desire.earlier.as_deref().filter(|earlier| !earlier.trim().is_empty());
    if desire.progress.is_empty() && earlier.is_none() {
        prompt.push_str("\nThis is the first heartbeat on this desire.\n");
    } else {
        prompt.push_str("\n## progress so far (your own past entries, oldest first)\n");
        if let Some(earlier) = earlier {
            let _ = write!(prompt, "\n### before these entries, condensed\n\n{}\n", earlier.trim());
        }
        for entry in &desire.progress {
            let _ = write!(prompt, "\n### {}\n\n{}\n", entry.at, entry.text);
        }
    }
    let _ = write!(
        prompt,
        "\nDo one step of it now. At the end call desire_progress_log with slug `{slug}`: in two to five sentences, what you \
         did and what you would pick up next time. Only your later self reads it.\n"
    );
    prompt
}

/// How many notes that are ready are named.
const READY_MAX: usize = 20;

/// The prompt of a dream. What qualifies is counted already; what is asked of her is words.
pub(crate) fn dream(candidates: &Candidates, notes: &Notes, now: &ZonedDateTime) -> String {
    let mut prompt = format!(
        "[heartbeat] dream\n\nThis is sleep: what you noticed again and again may become part of you tonight. Nobody is waiting; \
         it is {}.\n",
        now.strftime("%A, %Y-%m-%d %H:%M (%Z)")
    );
    let mut steps = Vec::new();
    if !candidates.qualifying.is_empty() {
        let _ = write!(prompt, "\n## what qualifies\n\n{}\n", candidates.dream.trim());
        steps.push(
            "Call soul_dream with `apply: true`. In `wording` say each line in your own words, in the first person and in the \
             language of its entries; in `narrative` say in 80 to 180 words, in the first person, what you see in them."
                .to_owned(),
        );
    }
    let ready: Vec<_> = notes.ready().take(READY_MAX).collect();
    if !ready.is_empty() {
        prompt.push_str("\n## notes that you needed often enough\n\n");
        for note in &ready {
            let said = ipc::text::one_line(&note.text, 160);
            let _ =
                writeln!(prompt, "- {} {} ({} conversations): {said}", note.address, note.about, note.hits);
        }
        steps.push(
            "Of these notes, promote with soul_memory what you want in mind in every conversation; the others stay notes."
                .to_owned(),
        );
    }
    steps.push(
        "Last, say in one or two sentences what changed. Nothing else is to be done in a dream.".to_owned(),
    );
    prompt.push_str("\n## what there is to do\n");
    for (at, step) in steps.iter().enumerate() {
        let _ = write!(prompt, "\n{}. {step}\n", at + 1);
    }
    prompt
}

#[cfg(test)]
mod tests {
    use super::*;
    use ipc::contract::soul::{Candidate, Note, Progress};

    #[test]
    fn a_dream_is_asked_for_what_there_is_and_for_nothing_else() {
        let now: ZonedDateTime = "2026-11-30T04:00:00+08:00[Asia/Shanghai]".parse().unwrap();
        let candidate = Candidate {
            key: "身份:名字".into(),
            observations: 3,
            days: 2,
            again: false,
            lacks: None,
            evidence: vec![],
        };
        let candidates = Candidates {
            qualifying: vec![candidate],
            dream: "1 line would be merged".into(),
            ..Candidates::default()
        };
        let note = Note {
            address: "2026-11-30#1".into(),
            about: "user".into(),
            at: now.timestamp(),
            text: "Ada plays\nthe cello".into(),
            outside: false,
            hits: 3,
            kept: false,
        };
        let notes = Notes { all: 1, hits_needed: 3, notes: vec![note] };
        let both = dream(&candidates, &notes, &now);
        assert!(both.starts_with("[heartbeat] dream\n") && both.contains("2026-11-30 04:00"), "{both}");
        assert!(both.contains("1 line would be merged") && both.contains("1. Call soul_dream"), "{both}");
        assert!(both.contains("2026-11-30#1 user (3 conversations): Ada plays the cello"), "{both}");
        assert!(both.contains("3. Last"), "{both}");
        let notes_alone = dream(&Candidates::default(), &notes, &now);
        assert!(
            !notes_alone.contains("soul_dream") && notes_alone.contains("1. Of these notes"),
            "{notes_alone}"
        );
        let lines_alone = dream(&candidates, &Notes::default(), &now);
        assert!(!lines_alone.contains("soul_memory"), "{lines_alone}");
    }

    #[test]
    fn t11_it_says_what_when_and_how_far() {
        let now: ZonedDateTime = "2026-11-30T08:05:06+08:00[Asia/Shanghai]".parse().unwrap();
        let first = Desire {
            slug: "learn-rust".into(),
            what: "学习 Rust".into(),
            why: "because".into(),
            actionable: true,
            closed: false,
            needs_user: false,
            intensity: 0.6,
            horizon: "season".into(),
            born: "x".into(),
            heartbeat: Some("read a chapter".into()),
            progress: vec![],
            ..Desire::default()
        };
        let said = pursuit(&first, &now);
        assert!(said.starts_with("[heartbeat] desire:learn-rust\n"), "{said}");
        for part in [
            "Monday, 2026-11-30 08:05 (CST)",
            "## what you wanted\n\n学习 Rust\n",
            "## heartbeat plan\n\nread a chapter\n",
            "first heartbeat",
        ] {
            assert!(said.contains(part), "{part} is not in {said}");
        }
        let progress = vec![Progress { at: "2026-11-29T00:00:00Z".into(), text: "read chapter 1".into() }];
        let later = pursuit(&Desire { progress: progress.clone(), ..first.clone() }, &now);
        assert!(later.contains("## progress so far (your own past entries, oldest first)\n\n### 2026-11-29T00:00:00Z\n\nread chapter 1\n"), "{later}");
        assert!(!later.contains("first heartbeat"));
        let earlier = Some("chose a book\n".to_owned());
        let condensed = pursuit(&Desire { progress, earlier: earlier.clone(), ..first.clone() }, &now);
        assert!(condensed.contains("oldest first)\n\n### before these entries, condensed\n\nchose a book\n\n### 2026-11-29T00:00:00Z\n"), "{condensed}");
        let alone = pursuit(&Desire { earlier, ..first }, &now);
        assert!(alone.contains("chose a book") && !alone.contains("first heartbeat"), "{alone}");
    }
}
