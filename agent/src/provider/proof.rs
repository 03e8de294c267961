//! Trying a model: a real exchange with a real call of a tool, through the same adapter that turns go through.
//!
//! ```text
//!  "call `echo` with these words" ─▶ the call, with the words in it ─▶ its result ─▶ an answer in words, streamed
//! ```
//!
//! The tool does nothing but give its words back. What was looked at is told in order, up to and with what failed.

use std::time::{Duration, Instant};

use ipc::{
    contract::{
        model::{Step, Tested},
        soul::ToolSpec,
    },
    exit::chain,
    id::RequestId,
    text::one_line,
};
use serde_json::json;
use tokio::sync::mpsc;

use super::{
    Block, Budget, Completion, Delta, Fault, Input, Message, ModelRequest, Provider, ProviderError, Role,
    settings::{RemoteSettings, Settings, without_query},
};

/// How long trying may take in all: a large model is read from a slow disk first.
const PROOF_MAX: Duration = Duration::from_mins(4);

/// How many pieces of an answer may wait to be counted.
const DELTAS_MAX: usize = 64;

const ECHO: &str = "echo";

const SYSTEM: &str = "You are being tried out. When you are asked to call a tool, call it. After its result, say in one short \
     sentence what it was.";

/// What is said of a model that answers, but not with a call.
const NO_CALL: &str = "it answered without calling the tool it was asked to call; take a model that is made for tools (a \
     server of llama.cpp needs `--jinja`), or try again";

/// Tries the model behind `settings`, which a person calls `name`.
pub(crate) async fn prove(settings: &RemoteSettings, name: String) -> Tested {
    let mut trial = Trial { begun: Instant::now(), steps: Vec::new(), streamed: None };
    let outcome = match Settings::Remote(Box::new(settings.clone())).build(&Budget::default()) {
        Ok(provider) => {
            tokio::time::timeout(PROOF_MAX, trial.run(provider.as_ref())).await.unwrap_or_else(|_| {
                let why = format!(
                    "it was not through with it after {} s; try again, or take a smaller model",
                    PROOF_MAX.as_secs()
                );
                Err((next_step(&trial.steps), why))
            })
        }
        Err(error) => Err((REACHABLE, chain(&error))),
    };
    let why = outcome.err().map(|(what, why)| {
        trial.note(what, false);
        why
    });
    let endpoint = without_query(&settings.base_url);
    let took_ms = trial.elapsed();
    Tested { name, endpoint, proved: why.is_none(), steps: trial.steps, took_ms, why }
}

const REACHABLE: &str = "reachable";
const ANSWERED: &str = "answered";
const CALLED: &str = "called a tool";
const TOOK: &str = "took its result";
const STREAMED: &str = "streamed";

/// What would have been looked at next.
fn next_step(steps: &[Step]) -> &'static str {
    [REACHABLE, ANSWERED, CALLED, TOOK, STREAMED].get(steps.len()).copied().unwrap_or(STREAMED)
}

struct Trial {
    begun: Instant,
    steps: Vec<Step>,
    /// When the first words came.
    streamed: Option<u64>,
}

impl Trial {
    async fn run(&mut self, provider: &dyn Provider) -> Result<(), (&'static str, String)> {
        let word = words();
        let asked = Message::user(format!("Call the tool `{ECHO}` with the text `{word}`."));
        let mut request =
            ModelRequest { system: SYSTEM.to_owned(), messages: vec![asked], tools: vec![echo()], said: 1 };
        let first = match self.ask(provider, &request).await {
            Ok(first) => first,
            Err(error) => {
                let away = matches!(error.fault, Fault::Unreachable { .. } | Fault::Unusable { .. });
                if !away {
                    self.note(REACHABLE, true);
                }
                return Err((if away { REACHABLE } else { ANSWERED }, chain(&error)));
            }
        };
        self.note(REACHABLE, true);
        self.note(ANSWERED, true);
        let results = results(&first, &word).map_err(|why| (CALLED, why))?;
        self.note(CALLED, true);
        request.messages.push(Message { role: Role::Assistant, content: first.blocks });
        request.messages.push(Message { role: Role::User, content: results });
        self.ask(provider, &request).await.map_err(|error| (TOOK, chain(&error)))?;
        self.note(TOOK, true);
        let Some(after_ms) = self.streamed else {
            return Err((STREAMED, "it said nothing in words, neither with its call nor after the result; try again, or take another model".to_owned()));
        };
        self.steps.push(Step { what: STREAMED.to_owned(), ok: true, after_ms });
        Ok(())
    }

    async fn ask(
        &mut self,
        provider: &dyn Provider,
        request: &ModelRequest,
    ) -> Result<Completion, ProviderError> {
        let (deltas, mut shown) = mpsc::channel(DELTAS_MAX);
        let begun = self.begun;
        let watch = async {
            let mut first = None;
            while let Some(delta) = shown.recv().await {
                if matches!(delta, Delta::Text(_)) && first.is_none() {
                    first = Some(millis(begun));
                }
            }
            first
        };
        let (answer, first) = tokio::join!(provider.stream(request, deltas), watch);
        self.streamed = self.streamed.or(first);
        answer
    }

    fn note(&mut self, what: &str, ok: bool) {
        self.steps.push(Step { what: what.to_owned(), ok, after_ms: self.elapsed() });
    }

    fn elapsed(&self) -> u64 {
        millis(self.begun)
    }
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// Words that no model has learnt by heart.
fn words() -> String {
    format!("lisa-{}", ipc::text::prefix(RequestId::fresh().as_str(), 8))
}

/// The tool, which gives back what it is given.
fn echo() -> ToolSpec {
    ToolSpec {
        name: ECHO.to_owned(),
        description: "Gives back the text it is given.".to_owned(),
        input_schema: json!({
            "type": "object",
            "properties": {"text": {"type": "string", "description": "The text."}},
            "required": ["text"],
        }),
        writes: false,
    }
}

/// The results of the calls in an answer; why not, where the call that was asked for is not among them.
fn results(answer: &Completion, word: &str) -> Result<Vec<Block>, String> {
    let mut results = Vec::new();
    let mut wrong = NO_CALL.to_owned();
    let mut called = false;
    for block in &answer.blocks {
        let Block::ToolUse { id, name, input } = block else { continue };
        let text = match input {
            Input::Object(input) => input.get("text").and_then(|text| text.as_str()).unwrap_or_default(),
            Input::Unusable { why, .. } => {
                wrong = format!("it called `{}` in a way that cannot be used: {why}", one_line(name, 80));
                ""
            }
        };
        if name == ECHO && text.contains(word) {
            called = true;
        } else if let Input::Object(_) = input {
            wrong = format!(
                "it called `{}` with `{}`, and was asked to call `{ECHO}` with `{word}`; try again, or take a model that is \
                 made for tools",
                one_line(name, 80),
                one_line(text, 80)
            );
        }
        results.push(Block::result(id.clone(), text.to_owned(), false));
    }
    if called { Ok(results) } else { Err(wrong) }
}

#[cfg(test)]
mod tests;
