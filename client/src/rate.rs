//! `lisa rate`: what a person thinks of one of her replies, and what that comes to.

use ipc::{
    contract::{
        chat::SOUL,
        soul::{self, Reply, Request, Score},
    },
    exit::Fault,
    home::Home,
};
use serde_json::{Value, json};

use crate::{
    arguments::{Mark, Rate},
    chat,
    link::{CHILD_PATIENCE, Link, LinkError},
    output,
    status::short,
};

/// Rates the reply that is named, or her last one in the most recent session.
pub(crate) async fn rate(home: &Home, json: bool, asked: Rate) -> Result<(), Fault> {
    let mut link = Link::open(home).await?;
    let (session, message) = if let Some(message) = asked.message {
        (None, message)
    } else {
        let last = chat::last_reply(&mut link).await?;
        let (session, message) = last.ok_or_else(|| {
            Fault::failed(
                "she has not replied yet; talk to her with `lisa chat`, or name a reply with `--message`",
            )
        })?;
        (Some(session), message)
    };
    let score = score(asked.mark);
    let rate = soul::Rate { score, session: session.clone(), message: message.clone(), human: false };
    match link.ask(SOUL, &Request::Rate(rate), CHILD_PATIENCE).await? {
        Reply::Rated { weight, gate, written } => {
            let written = written.map(|written| written.commit);
            let told = json!({
                "score": score, "session": session, "message": message, "weight": weight, "gate": gate, "commit": written,
            });
            if json { output::json(&told) } else { output::lines(&said(&told)) }
        }
        Reply::Refused { reason } => Err(Fault::failed(reason)),
        _ => Err(LinkError::Unintelligible("the soul answered another question".to_owned()).into()),
    }
}

fn score(mark: Mark) -> Score {
    match mark {
        Mark::Up => Score::Up,
        Mark::Meh => Score::Meh,
        Mark::Down => Score::Down,
    }
}

/// What a rating came to, in words: `told` is what `--json` prints.
fn said(told: &Value) -> String {
    let text = |field: &str| told.get(field).and_then(Value::as_str).unwrap_or_default();
    let rated = format!("`{}` of reply `{}`", text("score"), text("message"));
    let first = match text("commit") {
        "" => format!("{rated} was given already"),
        commit => format!("{rated}, commit {}", short(commit)),
    };
    let weight = match told.get("weight").and_then(Value::as_f64) {
        Some(weight) => format!("all ratings together: {weight:.2} of 1"),
        None => "there are too few ratings yet to weigh them".to_owned(),
    };
    let gate = text("gate");
    if gate.is_empty() { format!("{first}\n{weight}") } else { format!("{first}\n{weight}; {gate}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rating_says_what_all_of_them_come_to() {
        let mut told = json!({
            "score": Score::Down, "session": "s1", "message": "m1", "weight": 0.5, "gate": "she may insert 300 characters",
            "commit": "0123456789abcdef",
        });
        assert_eq!(
            said(&told),
            "`down` of reply `m1`, commit 01234567\nall ratings together: 0.50 of 1; she may insert 300 characters"
        );
        (told["weight"], told["gate"], told["commit"]) = (Value::Null, json!(""), Value::Null);
        assert_eq!(
            said(&told),
            "`down` of reply `m1` was given already\nthere are too few ratings yet to weigh them"
        );
    }
}
