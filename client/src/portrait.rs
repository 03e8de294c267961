//! Who she is on one screen: what `lisa soul` shows of a snapshot.

use ipc::{
    contract::soul::{BigFive, Desire, Document, Feeling, Snapshot},
    text::{chars, one_line, prefix},
};

/// How much of one document is shown: a screen is shared by three of them.
const DOCUMENT_LINES_MAX: usize = 8;
const DOCUMENT_CHARS_MAX: usize = 600;

/// How many values, opinions or desires are shown, and how much of each.
const ITEMS_MAX: usize = 8;
const ITEM_CHARS_MAX: usize = 140;

/// From which value on, in either direction, a feeling is worth a word.
const FELT_MIN: f64 = 0.05;

/// Draws her.
pub(crate) fn portrait(snapshot: &Snapshot) -> String {
    let mut lines = vec![head(snapshot)];
    lines.extend(snapshot.big_five.as_ref().map(temperament));
    document(&mut lines, "identity", &snapshot.identity);
    document(&mut lines, "purpose", &snapshot.purpose);
    document(&mut lines, "constitution", &snapshot.constitution);
    for (name, text) in [
        ("soul", &snapshot.soul),
        ("user", &snapshot.user),
        ("memory", &snapshot.memory),
        ("rules", &snapshot.rules),
    ] {
        if !text.text.is_empty() || text.notice.is_some() {
            document(&mut lines, name, text);
        }
    }
    feelings(&mut lines, &snapshot.emotions);
    items(&mut lines, "values", &snapshot.values, |value| {
        let body = one_line(&value.body, ITEM_CHARS_MAX);
        // many values are their title and nothing more
        if body.is_empty() || body == value.title {
            value.title.clone()
        } else {
            format!("{}: {body}", value.title)
        }
    });
    items(&mut lines, "opinions", &snapshot.opinions, |opinion| {
        format!("{} ({:.0} % sure)", opinion.stance, opinion.confidence * 100.0)
    });
    items(&mut lines, "desires", &snapshot.desires, desire);
    items(&mut lines, "people", &snapshot.relationships, |person| {
        let body = one_line(&person.body, ITEM_CHARS_MAX);
        if body.is_empty() { person.title.clone() } else { format!("{}: {body}", person.title) }
    });
    lines.join("\n")
}

fn head(snapshot: &Snapshot) -> String {
    let name = if snapshot.name.is_empty() { "(no name yet)" } else { &snapshot.name };
    let born = match &snapshot.born_at {
        Some(born) => format!("born {}", one_line(born, 40)),
        None => "not born yet".to_owned(),
    };
    let changes = if snapshot.sequence == 1 { "change" } else { "changes" };
    format!(
        "{} · {born} · {} {changes} · prompt version {}",
        one_line(name, 80),
        snapshot.sequence,
        snapshot.prompt_version
    )
}

fn temperament(big_five: &BigFive) -> String {
    format!(
        "temperament: openness {:.2} · conscientiousness {:.2} · extraversion {:.2} · agreeableness {:.2} · \
         neuroticism {:.2}",
        big_five.openness,
        big_five.conscientiousness,
        big_five.extraversion,
        big_five.agreeableness,
        big_five.neuroticism
    )
}

fn document(lines: &mut Vec<String>, name: &str, document: &Document) {
    lines.push(String::new());
    lines.push(name.to_owned());
    let shown = prefix(&document.text, DOCUMENT_CHARS_MAX);
    let all: Vec<_> = shown.lines().collect();
    let kept = all.get(..DOCUMENT_LINES_MAX).unwrap_or(&all);
    lines.extend(kept.iter().map(|line| format!("  {line}").trim_end().to_owned()));
    if document.text.is_empty() {
        lines.push("  (nothing yet)".to_owned());
    }
    if kept.len() < all.len() || shown.len() < document.text.len() {
        lines.push(format!("  … `lisa soul show {name}` shows all {} characters", chars(&document.text)));
    }
    lines.extend(document.notice.iter().map(|notice| format!("  ! {}", one_line(notice, 200))));
}

fn items<T>(lines: &mut Vec<String>, name: &str, items: &[T], item: impl Fn(&T) -> String) {
    if items.is_empty() {
        return;
    }
    lines.push(String::new());
    lines.push(name.to_owned());
    lines.extend(
        items.iter().take(ITEMS_MAX).map(|it| format!("  · {}", one_line(&item(it), ITEM_CHARS_MAX))),
    );
    if let Some(more) = items.len().checked_sub(ITEMS_MAX)
        && more > 0
    {
        lines.push(format!("  … and {more} more"));
    }
}

/// The strongest first; what is as good as nothing is not felt.
fn feelings(lines: &mut Vec<String>, feelings: &[Feeling]) {
    let mut felt: Vec<_> = feelings.iter().filter(|feeling| feeling.value.abs() >= FELT_MIN).collect();
    felt.sort_by(|a, b| b.value.abs().total_cmp(&a.value.abs()));
    let shown: Vec<_> = felt
        .iter()
        .take(ITEMS_MAX)
        .map(|feeling| format!("{} {:+.2}", one_line(&feeling.name, 40), feeling.value))
        .collect();
    if !shown.is_empty() {
        lines.extend([String::new(), "feels".to_owned(), format!("  {}", shown.join(" · "))]);
    }
}

fn desire(desire: &Desire) -> String {
    let what = if desire.what.is_empty() { &desire.slug } else { &desire.what };
    let mut marks = Vec::new();
    if desire.closed {
        marks.push("closed");
    } else if desire.actionable {
        marks.push("actionable");
    }
    if desire.needs_user && !desire.closed {
        marks.push("needs you");
    }
    // the marks stand first: they must not be what a long desire loses
    if marks.is_empty() { what.clone() } else { format!("[{}] {what}", marks.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ipc::contract::soul::{Held, Opinion};

    fn wish(what: &str) -> Desire {
        Desire {
            slug: "learn-rust".into(),
            what: what.into(),
            actionable: true,
            intensity: 0.5,
            horizon: "season".into(),
            born: "2026-11-30".into(),
            ..Desire::default()
        }
    }

    fn sample() -> Snapshot {
        Snapshot {
            sequence: 12,
            prompt_version: 4,
            born_at: Some("2026-11-30".into()),
            big_five: Some(BigFive {
                openness: 0.72,
                conscientiousness: 0.4,
                extraversion: 0.3,
                agreeableness: 0.8,
                neuroticism: 0.25,
            }),
            name: "灯塔".into(),
            identity: Document { text: "我是哼歌的灯塔守护者。\n\nI hum.".into(), notice: None },
            purpose: Document::default(),
            constitution: Document {
                text: "Be honest.".into(),
                notice: Some("it is over its budget".into()),
            },
            values: vec![Held {
                slug: "honesty".into(),
                title: "Honesty".into(),
                body: "Say what\nis so.".into(),
            }],
            opinions: vec![Opinion {
                slug: "tests".into(),
                stance: "Tests are prose".into(),
                confidence: 0.7,
                evidence: vec![],
            }],
            desires: vec![
                wish("学会 Rust"),
                Desire { needs_user: true, ..wish("see the sea") },
                Desire { closed: true, ..wish("") },
            ],
            ..Snapshot::default()
        }
    }

    #[test]
    fn su1_su3_she_fits_on_one_screen() {
        assert_eq!(
            portrait(&sample()),
            "\
灯塔 · born 2026-11-30 · 12 changes · prompt version 4
temperament: openness 0.72 · conscientiousness 0.40 · extraversion 0.30 · agreeableness 0.80 · neuroticism 0.25

identity
  我是哼歌的灯塔守护者。

  I hum.

purpose
  (nothing yet)

constitution
  Be honest.
  ! it is over its budget

values
  · Honesty: Say what is so.

opinions
  · Tests are prose (70 % sure)

desires
  · [actionable] 学会 Rust
  · [actionable, needs you] see the sea
  · [closed] learn-rust"
        );
    }

    #[test]
    fn what_is_long_is_cut_and_says_where_the_rest_is() {
        let mut snapshot = sample();
        snapshot.identity.text = "灯".repeat(5000);
        snapshot.purpose.text = "line\n".repeat(50).trim().to_owned();
        snapshot.desires = (0..20).map(|n| wish(&format!("{n} {}", "长".repeat(500)))).collect();
        let portrait = portrait(&snapshot);
        assert!(portrait.contains("`lisa soul show identity` shows all 5000 characters"), "{portrait}");
        assert!(
            portrait.contains("`lisa soul show purpose`") && portrait.contains("… and 12 more"),
            "{portrait}"
        );
        assert!(portrait.lines().count() < 60 && chars(&portrait) < 4000, "{portrait}");
    }

    #[test]
    fn su2_what_she_has_besides_is_shown_where_there_is_something() {
        let feeling = |name: &str, value| Feeling { name: name.into(), value };
        let text = |text: &str| Document { text: text.into(), notice: None };
        let snapshot = Snapshot {
            soul: text("Dry, warm."),
            user: text("Ada 住在里斯本。"),
            rules: text("No mail."),
            emotions: vec![feeling("calm", 0.2), feeling("忧", -0.6), feeling("joy", 0.04)],
            relationships: vec![Held {
                slug: "ada".into(),
                title: "Ada".into(),
                body: "She sails\non Sundays.".into(),
            }],
            ..sample()
        };
        let portrait = portrait(&snapshot);
        for part in [
            "soul\n  Dry, warm.\n\nuser\n  Ada 住在里斯本。\n\nrules\n  No mail.\n\nfeels\n  忧 -0.60 · calm +0.20\n\nvalues\n",
            "people\n  · Ada: She sails on Sundays.",
        ] {
            assert!(portrait.contains(part), "{part}: {portrait}");
        }
        assert!(!portrait.contains("memory"), "{portrait}");
    }

    #[test]
    fn before_birth_there_is_little_to_say() {
        let unborn = Snapshot { born_at: None, big_five: None, name: String::new(), ..sample() };
        assert!(portrait(&unborn).starts_with("(no name yet) · not born yet"), "{}", portrait(&unborn));
    }
}
