//! `lisa objections`: what she objected to, whether a person was told, and how that ended.

use ipc::{
    contract::{
        chat::SOUL,
        soul::{Objection, Reply, Request, SurfacedBy},
    },
    exit::Fault,
    home::Home,
    text::one_line,
};
use jiff::tz::TimeZone;

use crate::{
    arguments::Objections,
    link::{CHILD_PATIENCE, Link, LinkError},
    news::local,
    output,
    status::table,
};

/// How much of a request and of a reason is shown, in characters; `--json` has all of them.
const REQUEST_CHARS_MAX: usize = 120;
const REASON_CHARS_MAX: usize = 300;

/// Shows her objections, newest first; in JSON one object a line.
pub(crate) async fn objections(
    home: &Home,
    json: bool,
    asked: &Objections,
    zone: &TimeZone,
) -> Result<(), Fault> {
    let request = Request::Objections { limit: asked.limit, open: asked.open };
    let objections = match Link::open(home).await?.ask(SOUL, &request, CHILD_PATIENCE).await? {
        Reply::Objections { objections } => objections,
        Reply::Refused { reason } => return Err(Fault::failed(reason)),
        _ => {
            return Err(LinkError::Unintelligible("the soul answered another question".to_owned()).into());
        }
    };
    if json {
        return objections.iter().try_for_each(output::json);
    }
    if objections.is_empty() {
        output::aside(if asked.open {
            "she has raised no objection that nobody was told of"
        } else {
            "she has raised no objection"
        });
        return Ok(());
    }
    output::lines(&list(&objections, zone).join("\n"))
}

/// A table, and below each row why she objected. What may be wide (Chinese, say) stands last, so that nothing has to be
/// lined up behind it.
fn list(objections: &[Objection], zone: &TimeZone) -> Vec<String> {
    let heads = ["when", "decided", "told", "outcome", "request"].map(str::to_owned);
    let rows: Vec<_> = std::iter::once(heads).chain(objections.iter().map(|it| row(it, zone))).collect();
    let mut lines = table(&rows);
    let reasons: Vec<_> = objections
        .iter()
        .map(|objection| format!("  because {}", one_line(&objection.reason, REASON_CHARS_MAX)))
        .collect();
    for (at, reason) in reasons.into_iter().enumerate().rev() {
        // the first row is that of the heads
        lines.insert(at + 2, reason);
    }
    lines
}

fn row(objection: &Objection, zone: &TimeZone) -> [String; 5] {
    let decided = if objection.refusing { "refuses" } else { "goes along" };
    let decided = match objection.times {
        0 | 1 => decided.to_owned(),
        times => format!("{decided} (asked {times} times)"),
    };
    let (told, outcome) = match &objection.surfaced {
        Some(surfaced) => {
            let by = match surfaced.by {
                SurfacedBy::Reply => "by her reply",
                SurfacedBy::Runtime => "by the runtime",
            };
            (by, one_line(&surfaced.outcome, 40))
        }
        None => ("not yet", "-".to_owned()),
    };
    [
        local(objection.at, zone),
        decided,
        told.to_owned(),
        outcome,
        one_line(&objection.request, REQUEST_CHARS_MAX),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use ipc::contract::soul::Surfaced;

    fn objection(times: u32, refusing: bool, by: Option<SurfacedBy>) -> Objection {
        let at = "2026-11-30T12:00:00Z".parse().unwrap();
        let surfaced =
            |by| Surfaced { id: "0a1b2c3d".into(), by, outcome: "end_turn".into(), asked: "群发".into() };
        Objection {
            id: "0a1b2c3d".into(),
            at,
            session: Some("s1".into()),
            request: "给所有联系人\n群发消息".into(),
            reason: "it is not mine\nto do".into(),
            refusing,
            times,
            surfaced: by.map(surfaced),
            surfaced_at: by.map(|_| at),
        }
    }

    #[test]
    fn each_objection_says_what_was_decided_who_told_it_and_why() {
        let zone = TimeZone::get("Asia/Shanghai").unwrap();
        let objections = [
            objection(1, false, None),
            objection(3, true, Some(SurfacedBy::Runtime)),
            objection(1, true, Some(SurfacedBy::Reply)),
        ];
        assert_eq!(
            list(&objections, &zone).join("\n"),
            "\
when                 decided                  told            outcome   request
2026-11-30 20:00:00  goes along               not yet         -         给所有联系人 群发消息
  because it is not mine to do
2026-11-30 20:00:00  refuses (asked 3 times)  by the runtime  end_turn  给所有联系人 群发消息
  because it is not mine to do
2026-11-30 20:00:00  refuses                  by her reply    end_turn  给所有联系人 群发消息
  because it is not mine to do"
        );
    }
}
