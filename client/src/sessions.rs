//! `lisa sessions`: the conversations there are, what was said in them, and what a model was shown.

use std::fmt::Write as _;

use ipc::{
    contract::{
        chat::SESSIONS,
        sessions::{Found, Page, Place, Prompt, Replay, Reply, Request, Said, Session, Speaker, Usage},
    },
    exit::Fault,
    home::Home,
    text::one_line,
};
use jiff::{Timestamp, tz::TimeZone};
use serde_json::Value;

use crate::{
    arguments::SessionsCommand,
    link::{CHILD_PATIENCE, Link},
    output,
    status::table,
};

/// The longest title and name in a list, in characters.
const TITLE_CHARS_MAX: usize = 48;
const NAME_CHARS_MAX: usize = 24;
/// How many conversations a list has where nothing is said.
const LISTED: u32 = 20;

/// Answers a question about conversations.
pub(crate) async fn sessions(
    home: &Home,
    json: bool,
    command: Option<SessionsCommand>,
    zone: &TimeZone,
) -> Result<(), Fault> {
    let request = match command.unwrap_or(SessionsCommand::List { limit: LISTED }) {
        SessionsCommand::List { limit } => Request::List { limit },
        SessionsCommand::Search { query, limit } => Request::Search { query: query.join(" "), limit },
        SessionsCommand::Show { session, before, limit } => Request::Show { session, before, limit },
        SessionsCommand::Replay { session, answer } => Request::Replay { session, answer },
    };
    let reply: Reply = Link::open(home).await?.ask(SESSIONS, &request, CHILD_PATIENCE).await?;
    match reply {
        Reply::Listed(listed) if json => listed.iter().try_for_each(output::json),
        Reply::Listed(listed) if listed.is_empty() => {
            output::aside("no conversation yet; `lisa chat` begins one");
            Ok(())
        }
        Reply::Listed(listed) => output::lines(&list(&listed, zone)),
        Reply::Found(found) => {
            if found.left > 0 {
                output::aside(&format!(
                    "the {} oldest conversations were not looked into; there is more than one search reads",
                    found.left
                ));
            }
            match found.places.as_slice() {
                places if json => places.iter().try_for_each(output::json),
                [] => Err(Fault::failed("nothing like that was said; try fewer words, or others")),
                _ => output::lines(&places(&found, zone)),
            }
        }
        Reply::Page(page) if json => output::json(&page),
        Reply::Page(page) => {
            output::lines(&said(&page, zone))?;
            if let Some(oldest) = page.messages.first().filter(|_| page.more) {
                let (session, before) = (&page.session, oldest.number);
                output::aside(&format!("older: `lisa sessions show {session} --before {before}`"));
            }
            Ok(())
        }
        Reply::Replayed(shown) if json => output::json(&shown),
        Reply::Replayed(shown) => output::lines(&tape(&shown, zone)),
    }
}

fn list(listed: &[Session], zone: &TimeZone) -> String {
    let heads = ["session", "last", "turns", "tokens", "model", "with", "title"].map(str::to_owned);
    let row = |session: &Session| {
        let title = session.title.as_deref().unwrap_or("(nothing was said)");
        [
            session.id.clone(),
            when(session.updated, zone),
            session.turns.to_string(),
            cost(&session.usage),
            one_line(&session.model, NAME_CHARS_MAX),
            session.person.as_deref().map_or_else(|| "-".to_owned(), |name| one_line(name, NAME_CHARS_MAX)),
            one_line(title, TITLE_CHARS_MAX),
        ]
    };
    let rows: Vec<_> = std::iter::once(heads).chain(listed.iter().map(row)).collect();
    table(&rows).join("\n")
}

fn places(found: &Found, zone: &TimeZone) -> String {
    let place = |place: &Place| {
        let title = one_line(place.title.as_deref().unwrap_or_default(), TITLE_CHARS_MAX);
        let (session, message, time) = (&place.session, place.message, when(place.time, zone));
        format!(
            "{session} #{message} · {time} · {title}\n  {}: {}",
            who(place.by),
            one_line(&place.excerpt, 200)
        )
    };
    found.places.iter().map(place).collect::<Vec<_>>().join("\n")
}

fn said(page: &Page, zone: &TimeZone) -> String {
    if page.messages.is_empty() {
        return format!("no message there; the session has {}", page.total);
    }
    let said = |said: &Said| {
        let words: Vec<String> = said.text.lines().map(|line| format!("  {line}")).collect();
        format!("#{} {} · {}\n{}", said.number, when(said.time, zone), who(said.by), words.join("\n"))
    };
    page.messages.iter().map(said).collect::<Vec<_>>().join("\n")
}

fn tape(replay: &Replay, zone: &TimeZone) -> String {
    let mut told = format!("answer {} of {} in {}\n", replay.answer, replay.answers, replay.session);
    let prompts = replay.prompts.iter().map(|Prompt { time, fingerprint, reason, first_answer }| {
        let first = first_answer
            .map_or_else(|| "no answer yet".to_owned(), |first| format!("from answer {first} on"));
        format!("prompt {fingerprint} · {} · {reason} · {first}\n", when(*time, zone))
    });
    told.extend(prompts);
    match (&replay.prompt, replay.prompts_recorded) {
        (Some(prompt), _) => {
            let fingerprint = replay.fingerprint.as_deref().unwrap_or_default();
            let _ = write!(told, "\nsystem prompt {fingerprint}\n{}\n", indented(prompt));
        }
        (None, true) => told.push_str("\nno prompt was written down before this answer\n"),
        (None, false) => told.push_str("\nthis file is of version 1, which does not say the prompt\n"),
    }
    if replay.left > 0 {
        let _ = writeln!(told, "\n{} older messages were sent too; they are in the file", replay.left);
    }
    for message in &replay.messages {
        let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
        let blocks = message.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let block = |block: &Value| match block.get("text").and_then(Value::as_str) {
            Some(text) => indented(text),
            None => indented(&block.to_string()),
        };
        let _ = write!(told, "\n{role}\n{}\n", blocks.iter().map(block).collect::<Vec<_>>().join("\n"));
    }
    told
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

fn who(by: Speaker) -> &'static str {
    match by {
        Speaker::Person => "person",
        Speaker::She => "she",
        Speaker::Runtime => "lisa",
        Speaker::Tools => "tools",
    }
}

fn when(at: Timestamp, zone: &TimeZone) -> String {
    at.to_zoned_datetime(zone.clone()).strftime("%Y-%m-%d %H:%M").to_string()
}

/// What something cost, in one cell: tokens, and money where a price is set.
pub(crate) fn cost(usage: &Usage) -> String {
    let tokens = count(usage.tokens());
    match usage.cost_micros {
        Some(micros) => format!("{tokens} ({})", money(micros)),
        None => tokens,
    }
}

/// A number as it is read at a glance: 950, 12.3k, 4.5M.
fn count(number: u64) -> String {
    match number {
        0..1000 => number.to_string(),
        1000..1_000_000 => format!("{}.{}k", number / 1000, number % 1000 / 100),
        1_000_000.. => format!("{}.{}M", number / 1_000_000, number % 1_000_000 / 100_000),
    }
}

/// Millionths of money, to a hundredth of a cent.
fn money(micros: u64) -> String {
    format!("{}.{:04}", micros / 1_000_000, micros % 1_000_000 / 100)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const AT: &str = "2026-11-30T12:05:00Z";

    #[test]
    fn a_list_fits_its_columns_and_shows_what_it_cost() {
        let session = Session {
            id: "20261130-080506-abcdef".into(),
            title: Some("灯塔\u{1b}[2J".into()),
            person: None,
            updated: AT.parse().unwrap(),
            turns: 3,
            model: "openai/gpt".into(),
            usage: Usage {
                answers: 3,
                input: 12_000,
                output: 345,
                cost_micros: Some(41_234),
                ..Usage::default()
            },
            own: true,
        };
        let shown = list(&[session], &TimeZone::UTC);
        let last = shown.lines().last().unwrap();
        assert!(last.starts_with("20261130-080506-abcdef  2026-11-30 12:05  3"), "{shown}");
        assert!(last.contains("12.3k (0.0412)") && last.contains("灯塔"), "{shown}");
    }

    #[test]
    fn numbers_are_read_at_a_glance() {
        let check = |number: u64, expected: &str| assert_eq!(count(number), expected);
        check(0, "0");
        check(999, "999");
        check(12_345, "12.3k");
        check(4_560_000, "4.5M");
        assert_eq!(money(1_500_000), "1.5000");
    }

    #[test]
    fn a_replay_shows_the_prompt_and_every_message() {
        let replay = Replay {
            session: "s".into(),
            answer: 2,
            answers: 3,
            prompts_recorded: true,
            prompt: Some("You are Mira.\nRules".into()),
            fingerprint: Some("0123".into()),
            messages: vec![
                json!({"role": "user", "content": [{"type": "text", "text": "你好"}]}),
                json!({"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "t", "input": {}}]}),
            ],
            left: 4,
            prompts: vec![Prompt {
                time: AT.parse().unwrap(),
                fingerprint: "0123".into(),
                reason: "initial".into(),
                first_answer: Some(1),
            }],
        };
        let shown = tape(&replay, &TimeZone::UTC);
        for part in [
            "answer 2 of 3 in s",
            "from answer 1 on",
            "  You are Mira.\n  Rules",
            "user\n  你好",
            "4 older",
            "\"name\":\"t\"",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        let old = Replay { prompts_recorded: false, prompt: None, fingerprint: None, ..replay };
        assert!(tape(&old, &TimeZone::UTC).contains("version 1"));
    }

    #[test]
    fn an_empty_page_says_how_many_there_are() {
        let page = Page { session: "s".into(), messages: vec![], more: false, total: 7 };
        assert_eq!(said(&page, &TimeZone::UTC), "no message there; the session has 7");
    }
}
