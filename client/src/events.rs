//! `lisa events`: what happened, and with `-f` what happens.

use ipc::{
    contract::chat::{EVENT, EVENTS, Event, Events, EventsSince},
    exit::Fault,
    home::Home,
};
use jiff::tz::TimeZone;
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    arguments::Events as Asked,
    link::{ANSWER_PATIENCE, Heard, Link, LinkError},
    news, output,
};

/// Shows the events that are kept, and those to come where they are to be followed.
pub(crate) async fn events(home: &Home, json: bool, asked: &Asked, zone: &TimeZone) -> Result<(), Fault> {
    // heard from the first line on: whoever sees one may press Ctrl-C
    let interrupt =
        asked.follow.then(|| signal(SignalKind::interrupt())).transpose().map_err(Fault::failed)?;
    let mut link = Link::open(home).await?;
    let kept = since(&mut link, EventsSince { after: asked.since, follow: asked.follow }).await?;
    if kept.gap {
        output::aside("· some events between the cursor and the first of these are no longer kept");
    }
    for event in &kept.events {
        show(event, json, zone)?;
    }
    let Some(mut interrupt) = interrupt else { return Ok(()) };
    loop {
        let heard = tokio::select! {
            heard = link.next() => heard,
            _ = interrupt.recv() => return Ok(()),
        };
        match heard {
            Ok(Heard::News(news)) if news.method == EVENT => show(&read(news.params)?, json, zone)?,
            Ok(_) => {}
            Err(error) => return Err(error.understood(home).await.into()),
        }
    }
}

/// Asks for events; with `follow`, each later one comes as a notification.
pub(crate) async fn since(link: &mut Link, since: EventsSince) -> Result<Events, LinkError> {
    link.ask(EVENTS, since, ANSWER_PATIENCE).await
}

/// Reads an event from a notification.
pub(crate) fn read(params: serde_json::Value) -> Result<Event, LinkError> {
    serde_json::from_value(params)
        .map_err(|error| LinkError::Unintelligible(format!("an event of it does not fit: {error}")))
}

fn show(event: &Event, json: bool, zone: &TimeZone) -> Result<(), Fault> {
    if json { output::json(event) } else { output::lines(&news::line(event, zone)) }
}
