//! `lisa soul`: who she is, document by document, and how she came to be so.

use ipc::{
    contract::{
        chat::SOUL,
        soul::{Entry, Reply, Request},
    },
    exit::Fault,
    home::Home,
    text::one_line,
};
use jiff::{Timestamp, ZonedDateTime, tz::TimeZone};
use serde_json::json;

use crate::{
    arguments::SoulCommand,
    deeds, edit,
    link::{CHILD_PATIENCE, Link, LinkError},
    news::local,
    output,
    portrait::portrait,
    since::Since,
    status::short,
};

/// How many changes a diff shows at most; the soul has a bound of its own.
const DIFFS_MAX: u32 = 50;

/// The longest reason on a line of history, in characters.
const WHY_CHARS_MAX: usize = 160;

/// Answers a question about the self, as of `now`.
pub(crate) async fn soul(
    home: &Home,
    json: bool,
    command: Option<SoulCommand>,
    now: &ZonedDateTime,
) -> Result<(), Fault> {
    let from = |since: Option<Since>| since.map(|since| since.resolve(now)).transpose();
    let command = match command {
        Some(SoulCommand::Why { document, line }) => {
            return deeds::why(home, json, document, line, now.time_zone()).await;
        }
        Some(SoulCommand::Rollback(asked)) => {
            let to = from(asked.to)?;
            return deeds::rollback(home, json, asked, to, now.time_zone()).await;
        }
        Some(SoulCommand::Edit { document, why }) => return edit::edit(home, json, document, why).await,
        Some(SoulCommand::Check { repair }) => return deeds::check(home, json, repair).await,
        other => other,
    };
    let request = match command {
        None => Request::Snapshot,
        Some(SoulCommand::Show { document }) => Request::Read { document },
        Some(SoulCommand::History { document, limit, since }) => {
            Request::History { document, limit, since: from(since)? }
        }
        Some(SoulCommand::Diff { document, since }) => {
            Request::Diff { document, since: from(since)?, limit: DIFFS_MAX }
        }
        Some(
            SoulCommand::Why { .. }
            | SoulCommand::Rollback(_)
            | SoulCommand::Edit { .. }
            | SoulCommand::Check { .. },
        ) => {
            unreachable!("they are done above")
        }
    };
    let reply = Link::open(home).await?.ask(SOUL, &request, CHILD_PATIENCE).await?;
    show(&request, reply, json, now.time_zone())
}

fn show(request: &Request, reply: Reply, json: bool, zone: &TimeZone) -> Result<(), Fault> {
    match (request, reply) {
        (_, Reply::Refused { reason }) => Err(Fault::failed(reason)),
        (Request::Snapshot, Reply::Snapshot(snapshot)) if json => output::json(&snapshot),
        (Request::Snapshot, Reply::Snapshot(snapshot)) => output::lines(&portrait(&snapshot)),
        (Request::Read { .. }, Reply::Document { path, text }) if json => {
            output::json(&json!({"path": path, "text": text}))
        }
        (Request::Read { .. }, Reply::Document { path, text }) => {
            if text.is_empty() {
                output::aside(&format!("`{path}` is empty"));
            }
            output::lines(&text)
        }
        (Request::History { .. }, Reply::History { entries }) => {
            if entries.is_empty() && !json {
                output::aside("nothing has changed");
            }
            entries.iter().try_for_each(|entry| {
                if json { output::json(entry) } else { output::lines(&line(entry, zone)) }
            })
        }
        (Request::Diff { .. }, Reply::Diff { path, text }) if json => {
            output::json(&json!({"path": path, "text": text}))
        }
        (Request::Diff { since, .. }, Reply::Diff { path, text }) => {
            if text.is_empty() {
                output::aside(&unchanged(&path, *since, zone));
            }
            output::lines(&text)
        }
        (request, _) => {
            let (asked, _) = ipc::contract::to_frame(request);
            Err(LinkError::Unintelligible(format!("the soul answered `{asked}` with something else")).into())
        }
    }
}

fn unchanged(path: &str, since: Option<Timestamp>, zone: &TimeZone) -> String {
    match since {
        Some(since) => format!("`{path}` has not changed since {}", local(since, zone)),
        None => format!("`{path}` has never changed"),
    }
}

/// One line of history: `<commit> <local time> <op> <path> via <caller> — why`.
pub(crate) fn line(entry: &Entry, zone: &TimeZone) -> String {
    let mut line =
        format!("{} {} {}", short(&entry.commit), local(entry.time, zone), one_line(&entry.op, 80));
    if !entry.path.is_empty() {
        line.push(' ');
        line.push_str(&entry.path);
    }
    if !entry.caller.is_empty() {
        line.push_str(" via ");
        line.push_str(&entry.caller);
    }
    let why = one_line(&entry.why, WHY_CHARS_MAX);
    if !why.is_empty() {
        line.push_str(" — ");
        line.push_str(&why);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn entry() -> Entry {
        Entry {
            commit: "0123456789abcdef0123456789abcdef01234567".into(),
            time: "2026-11-30T12:00:00Z".parse().unwrap(),
            op: "patch".into(),
            path: "identity.md".into(),
            caller: "soul_patch".into(),
            origin: "chat".into(),
            why: "我想成为\n灯塔守护者".into(),
            evidence: vec![],
            trailers: BTreeMap::new(),
        }
    }

    #[test]
    fn a_line_of_history_says_what_by_whom_and_why() {
        let zone = TimeZone::get("Asia/Shanghai").unwrap();
        let check = |entry: &Entry, expected: &str| assert_eq!(line(entry, &zone), expected);
        check(
            &entry(),
            "01234567 2026-11-30 20:00:00 patch identity.md via soul_patch — 我想成为 灯塔守护者",
        );
        let foreign = Entry {
            op: "Initial commit".into(),
            path: String::new(),
            caller: String::new(),
            why: String::new(),
            ..entry()
        };
        check(&foreign, "01234567 2026-11-30 20:00:00 Initial commit");
    }

    #[test]
    fn a_refusal_and_an_answer_to_another_question_are_said() {
        let said = |request: Request, reply: Reply| show(&request, reply, false, &TimeZone::UTC).unwrap_err();
        let read = || Request::Read { document: "identty".into() };
        let fault = said(read(), Reply::Refused { reason: "no document `identty`".into() });
        assert_eq!(
            (fault.exit, fault.to_string().as_str()),
            (ipc::exit::Exit::Failed, "no document `identty`")
        );
        let fault = said(read(), Reply::History { entries: vec![] });
        assert!(fault.to_string().contains("`read`"), "{fault}");
    }

    #[test]
    fn what_has_not_changed_says_since_when() {
        let since = "2026-11-30T12:00:00Z".parse().unwrap();
        assert_eq!(
            unchanged("name.md", Some(since), &TimeZone::UTC),
            "`name.md` has not changed since 2026-11-30 12:00:00"
        );
        assert_eq!(unchanged("name.md", None, &TimeZone::UTC), "`name.md` has never changed");
    }
}
