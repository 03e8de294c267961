//! What she feels and wants, read from what a model gave.

use ipc::text::one_line;

use super::{Outcome, Wish};
use crate::{
    document::within,
    emotions::{self, Feel, RATE_MAX, TRIGGER_CHARS_MAX},
    entries::SUMMARIES_CHARS_MAX,
    fields::Fields,
    held::{
        BODY_CHARS_MAX, DesireChange, Horizon, SOURCE_CHARS_MAX, SOURCES_MAX, TITLE_CHARS_MAX, same_source,
    },
    message::WHY_CHARS_MAX,
};

/// `soul_feel`
pub(super) fn feel(fields: &Fields<'_>) -> Result<Wish, String> {
    let emotion = emotions::name(fields.needed("emotion")?)?;
    let delta = fields.number("delta", (-1.0, 1.0))?;
    let delta = delta.ok_or("`delta` is missing; say how much more you feel of it, from -1 to 1")?;
    let decay = fields.number("decay", (0.0, RATE_MAX))?;
    if delta == 0.0 && decay.is_none() {
        return Err(
            "a `delta` of 0 changes nothing; say how much more you feel of it, from -1 to 1".to_owned()
        );
    }
    let trigger = fields.line("trigger", TRIGGER_CHARS_MAX)?;
    let trigger =
        trigger.ok_or("`trigger` is missing; say in one line and in the first person what moved you")?;
    Ok(Wish::Feel(Feel { emotion, delta, trigger: emotions::trigger(trigger)?, decay }))
}

/// `desire_revise`
pub(super) fn revise(fields: &Fields<'_>) -> Result<Wish, String> {
    let mut change = change(fields)?;
    change.sources_added = change.sources.take().unwrap_or_default();
    change.reviewed = fields.boolean("reviewed")?.unwrap_or_default();
    if change == DesireChange::default() {
        return Err(
            "nothing is given to revise; give what changes, or `reviewed: true` if you still want it as it is"
                .to_owned(),
        );
    }
    Ok(Wish::Revise { slug: fields.needed("slug")?.to_owned(), change })
}

/// `desire_close`
pub(super) fn close(fields: &Fields<'_>) -> Result<Wish, String> {
    let outcome = match fields.one_of("outcome", &Outcome::NAMES)? {
        "fulfilled" => Outcome::Fulfilled,
        "abandoned" => Outcome::Abandoned,
        _ => Outcome::Transformed,
    };
    let reflection = within("reflection", fields.needed("reflection")?, WHY_CHARS_MAX)?;
    Ok(Wish::Close { slug: fields.needed("slug")?.to_owned(), outcome, reflection })
}

/// `desire_condense`
pub(super) fn condense(fields: &Fields<'_>) -> Result<Wish, String> {
    Ok(Wish::Condense {
        slug: fields.needed("slug")?.to_owned(),
        summary: within("summary", fields.needed("summary")?, SUMMARIES_CHARS_MAX / 2)?,
        folds: fields.boolean("folds_earlier")?.unwrap_or_default(),
    })
}

/// The fields of a desire.
pub(super) fn change(fields: &Fields<'_>) -> Result<DesireChange, String> {
    let pursuit = fields.maybe_one_of("pursuit", &["self", "needs-user"])?;
    Ok(DesireChange {
        what: fields.line("what", TITLE_CHARS_MAX)?,
        why: fields.body("why", BODY_CHARS_MAX)?,
        actionable: fields.boolean("actionable")?,
        heartbeat: fields.body("heartbeat_prompt", BODY_CHARS_MAX)?,
        needs_user: pursuit.map(|pursuit| pursuit == "needs-user"),
        intensity: fields.fraction("intensity")?,
        horizon: fields.maybe_one_of("horizon", &Horizon::NAMES)?.and_then(Horizon::named),
        sources: fields.list("sources", SOURCES_MAX, SOURCE_CHARS_MAX)?.map(sources).transpose()?,
        ..DesireChange::default()
    })
}

/// Addresses of the web alone, each once.
fn sources(given: Vec<String>) -> Result<Vec<String>, String> {
    let mut sources: Vec<String> = Vec::new();
    for source in given {
        let host = ["https://", "http://"].iter().find_map(|scheme| {
            let (start, rest) = source.split_at_checked(scheme.len())?;
            start.eq_ignore_ascii_case(scheme).then_some(rest)
        });
        let good = host.is_some_and(|host| !host.is_empty() && !host.starts_with('/'));
        if !good || source.contains(char::is_whitespace) {
            let shown = one_line(&source, 80);
            return Err(format!(
                "`{shown}` is no source; give addresses that begin with `https://` or `http://`"
            ));
        }
        if !sources.iter().any(|known| same_source(known, &source)) {
            sources.push(source);
        }
    }
    Ok(sources)
}
