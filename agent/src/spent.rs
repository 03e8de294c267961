//! What thinking cost today: counted turn by turn, found again in the sessions after a restart, and told to the supervisor.
//!
//! Counted are turns that ended. What a turn had cost when the process died in it is not known.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use ipc::{
    child::{Report, report},
    contract::sessions::{self, Spending, Usage},
};
use jiff::{Timestamp, civil::Date};
use serde_json::{Map, json};
use tracing::warn;

use crate::{
    mind::Mind,
    session::{Header, Kind, Transcript},
};

/// How many of the dearest tasks and sessions are told.
const TOLD_MAX: usize = 8;

/// What was spent on the newest day.
#[derive(Debug, Default)]
pub(crate) struct Spent(Mutex<Day>);

#[derive(Debug, Default, PartialEq)]
struct Day {
    date: Option<Date>,
    total: Usage,
    tasks: BTreeMap<String, Usage>,
    sessions: BTreeMap<String, Usage>,
}

impl Spent {
    /// Counts the turn that ends in a session, and tells.
    pub(crate) fn turn(&self, mind: &Mind, transcript: &Transcript) {
        let cost = transcript.turn_cost();
        if cost.answers > 0 {
            self.count(date(mind, mind.now()), &transcript.header, &cost);
            self.tell();
        }
    }

    fn count(&self, date: Date, header: &Header, cost: &Usage) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).count(date, header, cost);
    }

    fn tell(&self) {
        let told = self.0.lock().unwrap_or_else(PoisonError::into_inner).told();
        report(&Report::Facts(Map::from_iter([("spent".to_owned(), json!(told))])));
    }
}

/// Finds what was spent today in the sessions that were written to today, and tells.
pub(crate) async fn begin(mind: &Mind) {
    let (catalog, today, zone) = (mind.catalog.clone(), date(mind, mind.now()), mind.zone.clone());
    let midnight = today.to_zoned_datetime(zone.clone()).map(|midnight| midnight.timestamp());
    let looking = tokio::task::spawn_blocking(move || {
        let mut found: Vec<(Header, Usage)> = Vec::new();
        let since = midnight.unwrap_or(Timestamp::UNIX_EPOCH);
        let of_today = |ts: Timestamp| ts.to_zoned_datetime(zone.clone()).date() == today;
        catalog.spent_since(since, &of_today, |header, cost| found.push((header.clone(), cost)))?;
        Ok::<_, crate::session::SessionError>(found)
    });
    match looking.await.expect("reading sessions does not panic") {
        Ok(found) => found.iter().for_each(|(header, cost)| mind.spent.count(today, header, cost)),
        Err(error) => warn!(error = ipc::exit::chain(&error), "what was spent today before is not known"),
    }
    mind.spent.tell();
}

fn date(mind: &Mind, at: Timestamp) -> Date {
    at.to_zoned_datetime(mind.zone.clone()).date()
}

/// What a session is for, as it is shown.
fn task(header: &Header) -> &str {
    match header.kind {
        Some(Kind::Chat) | None => "conversation",
        Some(Kind::Reflect) => "reflection",
        Some(Kind::Task) => "piece of a turn",
        Some(Kind::Heartbeat) => {
            header.rest.get("task").and_then(serde_json::Value::as_str).unwrap_or("heartbeat")
        }
    }
}

impl Day {
    fn count(&mut self, date: Date, header: &Header, cost: &Usage) {
        if self.date != Some(date) {
            *self = Self { date: Some(date), ..Self::default() };
        }
        self.total.add(cost);
        self.tasks.entry(task(header).to_owned()).or_default().add(cost);
        self.sessions.entry(header.id.clone()).or_default().add(cost);
    }

    fn told(&self) -> sessions::Spent {
        sessions::Spent {
            day: self.date.map(|date| date.to_string()).unwrap_or_default(),
            total: self.total,
            tasks: dearest(&self.tasks),
            sessions: dearest(&self.sessions),
        }
    }
}

fn dearest(of: &BTreeMap<String, Usage>) -> Vec<Spending> {
    let mut all: Vec<_> =
        of.iter().map(|(name, usage)| Spending { name: name.clone(), usage: *usage }).collect();
    all.sort_by_key(|spending| std::cmp::Reverse((spending.usage.cost_micros, spending.usage.tokens())));
    all.truncate(TOLD_MAX);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::date;

    fn header(id: &str, kind: &str) -> Header {
        serde_json::from_value(
            json!({"id": id, "version": 2, "startedAt": "x", "kind": kind, "task": "desire:learn-rust"}),
        )
        .unwrap()
    }

    #[test]
    fn a_day_is_counted_by_task_and_session_and_ends() {
        let mut day = Day::default();
        let cost = |tokens: u64| Usage { answers: 1, output: tokens, ..Usage::default() };
        day.count(date(2026, 12, 1), &header("old", "chat"), &cost(5));
        for (id, kind, tokens) in
            [("a", "chat", 3), ("b", "heartbeat", 20), ("a", "chat", 4), ("c", "reflect", 1)]
        {
            day.count(date(2026, 12, 2), &header(id, kind), &cost(tokens));
        }
        let told = day.told();
        assert_eq!((told.day.as_str(), told.total.tokens(), told.total.answers), ("2026-12-02", 28, 4));
        let names = |of: &[Spending]| {
            of.iter().map(|one| format!("{} {}", one.name, one.usage.tokens())).collect::<Vec<_>>()
        };
        assert_eq!(names(&told.tasks), ["desire:learn-rust 20", "conversation 7", "reflection 1"]);
        assert_eq!(names(&told.sessions), ["b 20", "a 7", "c 1"]);
        for at in 0..50 {
            day.count(date(2026, 12, 2), &header(&format!("s{at}"), "chat"), &cost(100));
        }
        assert_eq!(day.told().sessions.len(), TOLD_MAX);
    }
}
