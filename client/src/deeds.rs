//! What a person does to the self: asks where a line comes from, brings something back, has it checked.

use std::{
    io::{self, BufRead as _, IsTerminal as _},
    process::Stdio,
    time::Duration,
};

use ipc::{
    contract::{
        chat::SOUL,
        soul::{self, Finding, Reply, Request, Restored, RolledBack, Severity, Why},
    },
    exit::Fault,
    home::Home,
    text::one_line,
};
use jiff::{Timestamp, tz::TimeZone};
use serde_json::json;

use crate::{
    arguments::Rollback,
    link::{CHILD_PATIENCE, Link, LinkError},
    output,
    soul::line,
    status::short,
    up,
};

/// How long a check may take: it reads every file of the repository.
const CHECK_PATIENCE: Duration = Duration::from_secs(90);

/// How many of the commits that a roll-back undoes are shown.
const UNDOES_SHOWN_MAX: usize = 10;

/// Says where a line comes from.
pub(crate) async fn why(
    home: &Home,
    json: bool,
    document: String,
    number: u32,
    zone: &TimeZone,
) -> Result<(), Fault> {
    let reply =
        Link::open(home).await?.ask(SOUL, &Request::Why { document, line: number }, CHILD_PATIENCE).await?;
    match reply {
        Reply::Why(why) if json => output::json(&why),
        Reply::Why(why) => output::lines(&origin(&why, zone)),
        other => Err(unexpected(other)),
    }
}

fn origin(why: &Why, zone: &TimeZone) -> String {
    let mut lines = vec![format!("{}:{}: {}", why.path, why.line, why.text)];
    let Some(entry) = &why.entry else {
        lines.push(
            "in no commit yet: it was written by hand a moment ago, or before she had a history".to_owned(),
        );
        return lines.join("\n");
    };
    lines.push(line(entry, zone));
    if !entry.origin.is_empty() {
        lines.push(format!("  origin: {}", entry.origin));
    }
    lines.extend(entry.evidence.iter().map(|piece| format!("  evidence: {piece}")));
    lines.extend(entry.trailers.iter().map(|(key, value)| format!("  {}: {value}", key.to_lowercase())));
    lines.extend(entry.why.lines().map(|said| format!("  | {said}")));
    if why.older {
        lines.push("it is older than that; this is how far back was looked".to_owned());
    }
    lines.join("\n")
}

/// Brings something back, after saying what that changes and asking.
pub(crate) async fn rollback(
    home: &Home,
    json: bool,
    asked: Rollback,
    to: Option<Timestamp>,
    zone: &TimeZone,
) -> Result<(), Fault> {
    let mut request = soul::Rollback {
        document: asked.document,
        commit: asked.of.or(asked.commit),
        to,
        why: asked.why,
        apply: false,
        seen: None,
        human: false,
    };
    let mut link = Link::open(home).await?;
    let preview = ask(&mut link, &request).await?;
    if preview.changes.is_empty() {
        output::aside(&nothing(&preview));
        return if json { output::json(&preview) } else { Ok(()) };
    }
    output::aside(&plan(&preview, zone));
    if !asked.yes && !agreed()? {
        return Err(Fault::failed("nothing was changed; say yes, or `--yes`"));
    }
    (request.apply, request.seen) = (true, preview.seen);
    let done = ask(&mut link, &request).await?;
    match &done.written {
        _ if json => output::json(&done),
        Some(written) => output::lines(&format!("brought back, commit {}", short(&written.commit))),
        None => Err(Fault::failed("nothing was changed: it was so already")),
    }
}

async fn ask(link: &mut Link, request: &soul::Rollback) -> Result<RolledBack, Fault> {
    match link.ask(SOUL, &Request::Rollback(request.clone()), CHILD_PATIENCE).await? {
        Reply::RolledBack(told) => Ok(told),
        other => Err(unexpected(other)),
    }
}

fn nothing(told: &RolledBack) -> String {
    let mut said = vec!["nothing to bring back: it is so already".to_owned()];
    said.extend(told.left.iter().cloned());
    said.join("\n")
}

fn plan(told: &RolledBack, zone: &TimeZone) -> String {
    let file = |Restored { path, removed, lines_added, lines_removed }: &Restored| {
        if *removed {
            format!("  {path} goes away, {lines_removed} lines")
        } else {
            format!("  {path} +{lines_added} -{lines_removed} lines")
        }
    };
    let mut lines = vec!["this changes".to_owned()];
    lines.extend(told.changes.iter().map(file));
    if !told.undoes.is_empty() {
        lines.push("and undoes".to_owned());
        lines.extend(
            told.undoes.iter().take(UNDOES_SHOWN_MAX).map(|entry| format!("  {}", line(entry, zone))),
        );
        if let Some(more) = told.undoes.len().checked_sub(UNDOES_SHOWN_MAX).filter(|more| *more > 0) {
            lines.push(format!("  … and {more} more"));
        }
    }
    lines.extend(told.left.iter().cloned());
    lines.join("\n")
}

/// Asks on the terminal; where there is none, nobody has agreed.
fn agreed() -> Result<bool, Fault> {
    if !io::stdin().is_terminal() {
        return Ok(false);
    }
    output::aside_text("bring it back? [y/N] ");
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(Fault::failed)?;
    Ok(["y", "yes", "是", "好"].contains(&answer.trim().to_lowercase().as_str()))
}

/// Looks whether everything is as it should be; without a supervisor the soul's own program does it.
pub(crate) async fn check(home: &Home, json: bool, repair: bool) -> Result<(), Fault> {
    let findings = match Link::open(home).await {
        Ok(mut link) => {
            match link.ask(SOUL, &Request::Check { repair, human: false }, CHECK_PATIENCE).await? {
                Reply::Checked { findings } => findings,
                other => return Err(unexpected(other)),
            }
        }
        Err(LinkError::NoSupervisor { .. }) => by_itself(home, repair).await?,
        Err(error) => return Err(error.into()),
    };
    if json {
        output::json(&json!({"findings": findings}))?;
    } else if findings.is_empty() {
        output::lines("everything is as it should be")?;
    } else {
        output::lines(&findings.iter().map(finding).collect::<Vec<_>>().join("\n"))?;
    }
    let open = findings.iter().filter(|found| !found.mended && found.severity != Severity::Note).count();
    match open {
        0 => Ok(()),
        1 => Err(Fault::failed("one thing is not as it should be; what to do is beside it")),
        open => {
            Err(Fault::failed(format!("{open} things are not as they should be; what to do is beside each")))
        }
    }
}

async fn by_itself(home: &Home, repair: bool) -> Result<Vec<Finding>, Fault> {
    let mut command = tokio::process::Command::from(up::soul_check(home, repair).map_err(Fault::failed)?);
    let done = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output().await.map_err(Fault::failed)?;
    if !done.status.success() {
        return Err(Fault::failed("the check could not be made; the reason is above"));
    }
    match serde_json::from_slice(&done.stdout) {
        Ok(Reply::Checked { findings }) => Ok(findings),
        Ok(other) => Err(unexpected(other)),
        Err(error) => Err(LinkError::Unintelligible(format!("the check does not fit: {error}")).into()),
    }
}

fn finding(found: &Finding) -> String {
    let mark = match (found.mended, found.severity) {
        (true, _) => "mended",
        (false, Severity::Broken) => "broken",
        (false, Severity::Wrong) => "wrong",
        (false, Severity::Note) => "note",
    };
    let place = if found.place.is_empty() { String::new() } else { format!("{}: ", found.place) };
    let mut said = format!("{mark:<7} {place}{}", one_line(&found.what, 600));
    if !found.remedy.is_empty() {
        said.push_str("\n        ");
        said.push_str(&one_line(&found.remedy, 600));
    }
    said
}

fn unexpected(reply: Reply) -> Fault {
    match reply {
        Reply::Refused { reason } => Fault::failed(reason),
        _ => LinkError::Unintelligible("the soul answered another question".to_owned()).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ipc::contract::soul::Entry;

    fn entry() -> Entry {
        Entry {
            commit: "0123456789abcdef0123456789abcdef01234567".into(),
            time: "2026-11-30T12:00:00Z".parse().unwrap(),
            op: "patch".into(),
            path: "identity.md".into(),
            caller: "soul_patch".into(),
            origin: "chat".into(),
            why: "雾来了\nfog".into(),
            evidence: vec!["memory/2026-11-29.md#3; 3 hits".into(), "雾的记录".into()],
            trailers: [("Rating".to_owned(), "0.8".to_owned())].into(),
        }
    }

    #[test]
    fn a_line_is_told_with_everything_that_is_known_of_its_commit() {
        let mut why = Why {
            path: "identity.md".into(),
            line: 2,
            text: "I hum.".into(),
            entry: Some(entry()),
            older: false,
        };
        assert_eq!(
            origin(&why, &TimeZone::UTC),
            "identity.md:2: I hum.\n01234567 2026-11-30 12:00:00 patch identity.md via soul_patch — 雾来了 fog\n  origin: chat\n  evidence: memory/2026-11-29.md#3; 3 hits\n  evidence: 雾的记录\n  rating: 0.8\n  | 雾来了\n  | fog"
        );
        why.entry = None;
        assert!(origin(&why, &TimeZone::UTC).ends_with("before she had a history"));
    }

    #[test]
    fn a_roll_back_names_every_file_and_what_it_undoes() {
        let file =
            |path: &str, removed| Restored { path: path.into(), removed, lines_added: 2, lines_removed: 3 };
        let told = RolledBack {
            changes: vec![file("identity.md", false), file("values/x.md", true)],
            undoes: vec![entry()],
            left: vec!["`journal/2026-11-30.md` stays".into()],
            seen: None,
            written: None,
        };
        let said = plan(&told, &TimeZone::UTC);
        for part in
            ["identity.md +2 -3", "values/x.md goes away", "01234567", "`journal/2026-11-30.md` stays"]
        {
            assert!(said.contains(part), "{said}");
        }
    }

    #[test]
    fn a_finding_is_marked_and_says_what_to_do() {
        let mut found = Finding {
            severity: Severity::Broken,
            place: ".git/HEAD".into(),
            what: "HEAD is gone".into(),
            mended: false,
            remedy: "run it".into(),
        };
        assert_eq!(finding(&found), "broken  .git/HEAD: HEAD is gone\n        run it");
        found.mended = true;
        assert!(finding(&found).starts_with("mended  "));
    }
}
