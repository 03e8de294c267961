//! Birth: the soul draws a temperament and writes the first documents; a model words them where there is one.
//!
//! Without a model the soul's own plain wording is used. A model that fails twice leaves no self behind (B1): the next
//! thing a person says tries again, and says why it failed.

use std::time::Duration;

use ipc::{
    client::AskError,
    contract::soul::{BigFive, Birth, Reply, Request, Wording},
    exit::chain,
    text::one_line,
};
use serde_json::Value;
use tokio::sync::mpsc;
use tracing::info;

use crate::{
    mind::Mind,
    provider::{Message, ModelRequest, ProviderError, Stop},
    report_facts,
};

/// How long the soul may take for one step.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often a model is asked for the words.
const TRIES_MAX: u32 = 2;

const SYSTEM: &str = "\
You give words to a new self: an agent that will keep its own identity, purpose and constitution, and change them as it \
lives. Answer with one JSON object and nothing else, its four values plain text in the first person:
{\"name\": at most 80 characters, \"identity\": who I am, at most 1000 characters, \"purpose\": what I am for, at most 1000 \
characters, \"constitution\": what I hold to whatever happens, at most 1800 characters}
Claim no past and no person: nothing has happened yet.";

/// Why she is not born.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BirthError {
    #[error("whether she is born could not be asked")]
    Soul(#[from] AskError),
    #[error("she is not born yet: {0}")]
    Refused(String),
    #[error(
        "she is not born yet, because the model that should give the first words failed twice; mend it and say something, \
             or set `provider = \"offline\"` under `[model]` in config.toml"
    )]
    Model(#[source] ProviderError),
    #[error(
        "she is not born yet, because the model gave no usable words twice ({why}); say something to try again, or set \
             `provider = \"offline\"` under `[model]` in config.toml"
    )]
    Words { why: String },
}

/// Sees to it that she is born.
pub(crate) async fn ensure(mind: &Mind) -> Result<(), BirthError> {
    let mut born = mind.born.lock().await;
    if *born {
        return Ok(());
    }
    let tried = async { if is_born(mind).await? { Ok(()) } else { give(mind).await } };
    match tried.await {
        Ok(()) => {
            *born = true;
            report_facts(&[("unborn", "")]);
            Ok(())
        }
        // only the soul knows; where it did not answer there is nothing to make known
        Err(error @ BirthError::Soul(_)) => Err(error),
        Err(error) => {
            report_facts(&[("unborn", &chain(&error))]);
            Err(error)
        }
    }
}

async fn is_born(mind: &Mind) -> Result<bool, BirthError> {
    match mind.soul.ask(&Request::Status, PATIENCE).await? {
        Reply::Status(status) => Ok(status.born),
        other => Err(refusal(other)),
    }
}

async fn give(mind: &Mind) -> Result<(), BirthError> {
    let (draft, big_five) = match mind.soul.ask(&Request::Conceive, PATIENCE).await? {
        Reply::Conceived { draft, big_five } => (draft, big_five),
        other => return Err(refusal(other)),
    };
    let model = mind.models.for_a_turn().await.provider.model().to_owned();
    let birth = |wording| Request::Birth(Birth { draft: draft.clone(), wording, model: model.clone() });
    if model == "offline" {
        return match mind.soul.ask(&birth(None), PATIENCE).await? {
            Reply::Born(written) => {
                info!(commit = written.commit, "born, in the soul's own words");
                Ok(())
            }
            other => Err(refusal(other)),
        };
    }
    let mut why = String::new();
    for _ in 0..TRIES_MAX {
        match words(mind, big_five, &why).await {
            Ok(wording) => match mind.soul.ask(&birth(Some(wording)), PATIENCE).await? {
                Reply::Born(written) => {
                    info!(commit = written.commit, model, "born, in a model's words");
                    return Ok(());
                }
                Reply::Refused { reason } => why = reason,
                other => return Err(refusal(other)),
            },
            Err(NoWords::Unusable(reason)) => why = reason,
            // the provider has its own retries; what it gives up on will not be better in a moment
            Err(NoWords::Model(error)) => return Err(BirthError::Model(error)),
        }
    }
    Err(BirthError::Words { why })
}

enum NoWords {
    Model(ProviderError),
    Unusable(String),
}

async fn words(mind: &Mind, big_five: BigFive, complaint: &str) -> Result<Wording, NoWords> {
    let mut asked = format!(
        "The temperament that was drawn, each from 0 to 1: openness {:.2}, conscientiousness {:.2}, extraversion {:.2}, \
         agreeableness {:.2}, neuroticism {:.2}.",
        big_five.openness,
        big_five.conscientiousness,
        big_five.extraversion,
        big_five.agreeableness,
        big_five.neuroticism
    );
    if !complaint.is_empty() {
        asked = format!("{asked}\n\nYour first answer could not be used: {complaint}");
    }
    let request = ModelRequest::of_words(SYSTEM, asked);
    // nobody is shown a birth in the making
    let (deltas, _) = mpsc::channel(1);
    let answer = mind.models.current().stream(&request, deltas).await.map_err(NoWords::Model)?;
    if answer.stop != Stop::EndTurn {
        return Err(NoWords::Unusable("the answer was not whole".to_owned()));
    }
    let said = Message { role: crate::provider::Role::Assistant, content: answer.blocks }.text();
    wording(&said).map_err(NoWords::Unusable)
}

/// Reads the words out of a model's answer. Small models wrap the object in a fence, or give a list where text was asked for.
fn wording(said: &str) -> Result<Wording, String> {
    let object = said.find('{').zip(said.rfind('}')).and_then(|(from, to)| said.get(from..=to));
    let object = object.ok_or_else(|| format!("no JSON object in `{}`", one_line(said, 120)))?;
    let value: Value =
        serde_json::from_str(object).map_err(|error| format!("the JSON does not parse: {error}"))?;
    let text = |key: &str| -> Result<String, String> {
        let text = match value.get(key) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Array(lines)) => lines
                .iter()
                .filter_map(Value::as_str)
                .map(|line| format!("- {line}"))
                .collect::<Vec<_>>()
                .join("\n"),
            Some(_) | None => String::new(),
        };
        let text = text.trim();
        if text.is_empty() { Err(format!("`{key}` is missing or empty")) } else { Ok(text.to_owned()) }
    };
    Ok(Wording {
        name: text("name")?,
        identity: text("identity")?,
        purpose: text("purpose")?,
        constitution: text("constitution")?,
    })
}

fn refusal(reply: Reply) -> BirthError {
    BirthError::Refused(match reply {
        Reply::Refused { reason } => reason,
        _ => "the soul answered another question".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_what_models_say() {
        let check = |said: &str, expected: Result<&str, &str>| match (wording(said), expected) {
            (Ok(wording), Ok(constitution)) => assert_eq!(wording.constitution, constitution),
            (Err(why), Err(part)) => assert!(why.contains(part), "{why}"),
            (got, expected) => panic!("{got:?}, not {expected:?}"),
        };
        let three = "\"name\": \"Mira\", \"identity\": \"new\", \"purpose\": \"to learn\"";
        check(&format!("{{{three}, \"constitution\": \"honest\"}}"), Ok("honest"));
        // r2: a fence; failure 39: a list
        check(
            &format!("Here:\n```json\n{{{three}, \"constitution\": [\"honest\", \"诚实\"]}}\n```"),
            Ok("- honest\n- 诚实"),
        );
        check(&format!("{{{three}}}"), Err("constitution"));
        check(&format!("{{{three}, \"constitution\": \" \"}}"), Err("constitution"));
        check("I'd rather not.", Err("no JSON object"));
        check("{\"name\": }", Err("does not parse"));
        check("} {", Err("no JSON object"));
    }
}
