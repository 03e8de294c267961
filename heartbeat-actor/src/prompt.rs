//! What she is told when a desire of hers is pursued: a plain function of the desire and of where and when it is.

use std::fmt::Write as _;

use ipc::contract::soul::Desire;
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
    if desire.progress.is_empty() {
        prompt.push_str("\nThis is the first heartbeat on this desire.\n");
    } else {
        if let Some(earlier) = &desire.earlier {
            let _ = write!(prompt, "\n## before that (condensed by you)\n\n{earlier}\n");
        }
        prompt.push_str("\n## progress so far (your own past entries, oldest first)\n");
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

#[cfg(test)]
mod tests {
    use super::*;
    use ipc::contract::soul::Progress;

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
        let later_desire = Desire { progress, ..first };
        let later = pursuit(&later_desire, &now);
        assert!(later.contains("## progress so far (your own past entries, oldest first)\n\n### 2026-11-29T00:00:00Z\n\nread chapter 1\n"), "{later}");
        assert!(!later.contains("first heartbeat") && !later.contains("before that"));
        let condensed = pursuit(&Desire { earlier: Some("read the foreword".into()), ..later_desire }, &now);
        assert!(
            condensed.contains("## before that (condensed by you)\n\nread the foreword\n\n## progress"),
            "{condensed}"
        );
    }
}
