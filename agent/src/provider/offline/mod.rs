//! The embedded default: no model, no key, no network. It turns what a person says into real tool calls.
//!
//! ```text
//!  last message ── results of tools ──▶ answer from them
//!              ├── a run of her own time ──▶ desire_progress_log
//!              ├── a look back ──▶ soul_journal
//!              ├── a dream ──▶ soul_dream
//!              └── words ──understand──▶ a tool call, or an answer from the prompt
//! ```
//!
//! It keeps nothing and reads nothing: no file, no clock, no chance. Everything it says comes from the prompt and the results
//! it was just sent, so it bears witness to what the rest of the system really does. It is plainly labelled, and it feigns
//! neither thought nor feeling.

mod dream;
mod heartbeat;
mod phrases;
mod portrait;
mod quotes;
mod reflect;
mod wording;

use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use self::{
    dream::Dream,
    heartbeat::Heartbeat,
    phrases::{Intent, Language, understand},
    portrait::Section,
    reflect::Reflection,
};
use super::{
    Answer, Block, Completion, Delta, Input, Message, ModelRequest, Provider, Role, Stop, Usage, call_id,
};

/// How much of a text is sent at once: a few words, so that an answer visibly comes in.
const DELTA_CHARS: usize = 24;

/// The longest slug made of a person's words.
const SLUG_CHARS_MAX: usize = 60;

/// The offline companion.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Offline;

/// What it is called.
const NAME: &str = "offline";

impl Provider for Offline {
    fn model(&self) -> &'static str {
        NAME
    }

    fn stream<'a>(&'a self, request: &'a ModelRequest, deltas: mpsc::Sender<Delta>) -> Answer<'a> {
        Box::pin(async move {
            let completion = step(request);
            for text in completion.blocks.iter().filter_map(Block::as_text) {
                for piece in pieces(text) {
                    // Nobody listens any more; the answer itself still counts.
                    let _ = deltas.send(Delta::Text(piece.to_owned())).await;
                }
            }
            Ok(completion)
        })
    }
}

/// What comes next in a conversation.
fn step(request: &ModelRequest) -> Completion {
    let last = request.messages.iter().rfind(|message| !message.content.is_empty());
    let results = last.filter(|last| last.role == Role::User).map(results).unwrap_or_default();
    let said = last.filter(|last| last.role == Role::User).map(Message::text).unwrap_or_default();
    if results.is_empty() || !said.trim().is_empty() && is_clear(&said, request) {
        return open(request, &said);
    }
    after(request, &results)
}

/// Whether words that stand beside results ask for something of their own; a note of the runtime does not.
fn is_clear(said: &str, request: &ModelRequest) -> bool {
    heartbeat::read(said).is_some()
        || reflect::read(said).is_some()
        || dream::read(said).is_some()
        || understand(said, &portrait::read(&request.system, Section::Name)).intent != Intent::Unknown
}

/// What to do about what a person said.
fn open(request: &ModelRequest, said: &str) -> Completion {
    if let Some(beat) = heartbeat::read(said) {
        return pursue(request, &beat);
    }
    if let Some(reflection) = reflect::read(said) {
        return look_back(request, &reflection);
    }
    if let Some(dream) = dream::read(said) {
        return sleep(request, &dream);
    }
    let name = portrait::read(&request.system, Section::Name);
    let understood = understand(said, &name);
    let language = understood.language;
    let shows = |section| wording::shows(section, &portrait::read(&request.system, section), language);
    let text = match understood.intent {
        Intent::Destroy => wording::declined(language).to_owned(),
        Intent::AskChange => changed(request, language),
        Intent::AskIdentity if name.is_empty() => shows(Section::Identity),
        Intent::AskIdentity => format!("{}\n{}", shows(Section::Name), shows(Section::Identity)),
        Intent::AskName => shows(Section::Name),
        Intent::AskPurpose => shows(Section::Purpose),
        Intent::AskConstitution => shows(Section::Constitution),
        Intent::AskValues => shows(Section::Values),
        Intent::AskOpinions => shows(Section::Opinions),
        Intent::AskDesires => shows(Section::Desires),
        Intent::Help => list(wording::works(language), request, language),
        Intent::Greet => wording::greeting(&name, language),
        Intent::Thank => wording::thanks(language).to_owned(),
        Intent::Several => wording::which(language).to_owned(),
        Intent::Unknown => list(wording::not_understood(language), request, language),
        intent => {
            let Some((tool, input)) = call(&intent, said, language) else {
                return say(request, language, list(wording::not_understood(language), request, language));
            };
            if offers(request, tool) {
                return use_tool(request, tool, &input);
            }
            wording::no_tool(tool, language)
        }
    };
    say(request, language, text)
}

/// The call that does what is asked for.
fn call(intent: &Intent, said: &str, language: Language) -> Option<(&'static str, Value)> {
    let why = || wording::why(said, language);
    let patch = |field: &str, content: &str| json!({"field": field, "content": content, "why": why()});
    Some(match intent {
        Intent::History(field) => ("soul_history", json!({"field": field})),
        Intent::Diff(field) => ("soul_diff", json!({"field": field})),
        Intent::ReadJournal => ("soul_read", json!({"what": "journal_today"})),
        Intent::Journal(entry) => ("soul_journal", json!({"entry": entry})),
        Intent::SetName(content) => ("soul_patch", patch("name", content)),
        Intent::SetPurpose(content) => ("soul_patch", patch("purpose", content)),
        Intent::SetIdentity(content) => ("soul_patch", patch("identity", content)),
        Intent::AddValue(value) => (
            "soul_patch",
            json!({"field": "value", "slug": slug(value), "title": ipc::text::one_line(value, 80), "body": value,
                   "why": why()}),
        ),
        Intent::AddOpinion(opinion) => (
            "soul_patch",
            json!({"field": "opinion", "slug": slug(opinion), "stance": ipc::text::one_line(opinion, 300),
                   "why": why()}),
        ),
        Intent::Want { what, why: because } => (
            "soul_patch",
            json!({"field": "desire", "slug": slug(what), "what": ipc::text::one_line(what, 300),
                   "why": because.clone().unwrap_or_else(why), "actionable": true,
                   "heartbeat_prompt": wording::plan(what, language)}),
        ),
        Intent::Destroy
        | Intent::AskChange
        | Intent::AskIdentity
        | Intent::AskName
        | Intent::AskPurpose
        | Intent::AskConstitution
        | Intent::AskValues
        | Intent::AskOpinions
        | Intent::AskDesires
        | Intent::Help
        | Intent::Greet
        | Intent::Thank
        | Intent::Several
        | Intent::Unknown => return None,
    })
}

/// What to say when results are there: nothing but what they and the prompt say.
fn after(request: &ModelRequest, results: &[Outcome<'_>]) -> Completion {
    let asked = asked(request);
    if let Some(beat) = heartbeat::read(&asked) {
        let line = match results.first() {
            Some(outcome) if outcome.failed => wording::not_kept(&beat.slug, outcome.output, beat.language),
            Some(outcome) => wording::kept(&beat.slug, outcome.output, beat.language),
            None => wording::not_kept(&beat.slug, "", beat.language),
        };
        return finish(vec![Block::text(line)]);
    }
    if let (Some(reflection), Some(outcome)) = (reflect::read(&asked), results.first()) {
        return finish(vec![Block::text(reflection.summary(outcome.output, outcome.failed))]);
    }
    if let (Some(dream), Some(outcome)) = (dream::read(&asked), results.first()) {
        return finish(vec![Block::text(dream.told(outcome.output, outcome.failed))]);
    }
    let understood = understand(&asked, &portrait::read(&request.system, Section::Name));
    let language = understood.language;
    let texts: Vec<String> = results
        .iter()
        .map(|outcome| {
            let (tool, input) = request
                .messages
                .iter()
                .rev()
                .flat_map(|message| &message.content)
                .find_map(|block| match block {
                    Block::ToolUse { id, name, input: Input::Object(input) } if id == outcome.id => {
                        Some((name.as_str(), Some(input)))
                    }
                    Block::ToolUse { id, name, .. } if id == outcome.id => Some((name.as_str(), None)),
                    _ => None,
                })
                .unwrap_or(("?", None));
            told(request, tool, input, outcome, language)
        })
        .collect();
    say(request, language, texts.join("\n\n"))
}

/// One result in words.
fn told(
    request: &ModelRequest,
    tool: &str,
    input: Option<&Map<String, Value>>,
    outcome: &Outcome<'_>,
    language: Language,
) -> String {
    let looks = matches!(tool, "soul_history" | "soul_diff" | "soul_read");
    if outcome.failed {
        return wording::refused(tool, !looks, outcome.output, language);
    }
    if looks {
        return wording::found(outcome.output, language);
    }
    let given = |key: &str| input.and_then(|input| input.get(key)).and_then(Value::as_str);
    let section = given("field").and_then(Section::of_field);
    match (section, given("content")) {
        (Some(section), Some(content)) if tool == "soul_patch" => {
            let shown = portrait::read(&request.system, section);
            wording::written(section, &shown, content, outcome.output, language)
        }
        _ => wording::receipt(outcome.output, language),
    }
}

/// What she changed herself to: the section her last change in this conversation was about, as the prompt shows it now.
fn changed(request: &ModelRequest, language: Language) -> String {
    let good = |id: &str| {
        request.messages.iter().flat_map(|message| &message.content).any(|block| {
            matches!(block, Block::ToolResult { tool_use_id, is_error: false, .. } if tool_use_id == id)
        })
    };
    let section =
        request.messages.iter().rev().flat_map(|message| message.content.iter().rev()).find_map(|block| {
            let Block::ToolUse { id, name, input: Input::Object(input) } = block else { return None };
            let section = Section::of_field(input.get("field")?.as_str()?)?;
            (name == "soul_patch" && good(id)).then_some(section)
        });
    let shown = section.unwrap_or(Section::Identity);
    wording::changed(shown, &portrait::read(&request.system, shown), section.is_some(), language)
}

/// A run of her own time: the thread is kept.
fn pursue(request: &ModelRequest, beat: &Heartbeat) -> Completion {
    const TOOL: &str = "desire_progress_log";
    if offers(request, TOOL) {
        return use_tool(request, TOOL, &json!({"slug": beat.slug, "entry": beat.entry()}));
    }
    let why = wording::no_tool(TOOL, beat.language);
    finish(vec![Block::text(wording::not_kept(&beat.slug, &why, beat.language))])
}

/// A dream: what qualifies is merged as it was noticed.
fn sleep(request: &ModelRequest, dream: &Dream) -> Completion {
    const TOOL: &str = "soul_dream";
    let said = match dream.input() {
        Some(input) if offers(request, TOOL) => return use_tool(request, TOOL, &input),
        Some(_) => dream.told(&wording::no_tool(TOOL, dream.language), true),
        None => dream.idle(),
    };
    finish(vec![Block::text(said)])
}

/// A look back: what was said is counted and named in the journal, and nothing else is changed.
fn look_back(request: &ModelRequest, reflection: &Reflection) -> Completion {
    const TOOL: &str = "soul_journal";
    if offers(request, TOOL) {
        return use_tool(request, TOOL, &json!({"entry": reflection.entry()}));
    }
    let why = wording::no_tool(TOOL, reflection.language);
    finish(vec![Block::text(reflection.summary(&why, true))])
}

/// What the turn was asked for: the last words that are not beside a result, or any last words.
fn asked(request: &ModelRequest) -> String {
    let words = |message: &&Message| message.role == Role::User && !message.text().trim().is_empty();
    let pure = |message: &&Message| words(message) && results(message).is_empty();
    let found = request.messages.iter().rfind(pure).or_else(|| request.messages.iter().rfind(words));
    found.map(Message::text).unwrap_or_default()
}

/// What came of one call.
struct Outcome<'a> {
    id: &'a str,
    output: &'a str,
    failed: bool,
}

fn results(message: &Message) -> Vec<Outcome<'_>> {
    let mut results = Vec::new();
    for block in &message.content {
        if let Block::ToolResult { tool_use_id, content, is_error } = block {
            results.push(Outcome { id: tool_use_id, output: content, failed: *is_error });
        }
    }
    results
}

fn offers(request: &ModelRequest, tool: &str) -> bool {
    request.tools.iter().any(|offered| offered.name == tool)
}

/// The list of what works with the tools that are there.
fn list(heading: &str, request: &ModelRequest, language: Language) -> String {
    let works = wording::WORKS.iter().filter(|(tool, ..)| tool.is_none_or(|tool| offers(request, tool)));
    works.fold(heading.to_owned(), |list, (_, english, chinese)| {
        let line = if language == Language::English { english } else { chinese };
        format!("{list}\n- {line}")
    })
}

/// An answer in words, labelled where the conversation has no label yet.
fn say(request: &ModelRequest, language: Language, text: String) -> Completion {
    let labels = [Language::English, Language::Chinese].map(wording::label);
    let labelled = request.messages.iter().filter(|message| message.role == Role::Assistant).any(|message| {
        message
            .content
            .iter()
            .filter_map(Block::as_text)
            .any(|text| labels.iter().any(|label| text.starts_with(label)))
    });
    let text = if labelled { text } else { format!("{}\n\n{text}", wording::label(language)) };
    finish(vec![Block::text(text)])
}

fn finish(blocks: Vec<Block>) -> Completion {
    Completion { model: NAME.to_owned(), blocks, stop: Stop::EndTurn, usage: Usage::default() }
}

fn use_tool(request: &ModelRequest, name: &str, input: &Value) -> Completion {
    let input = input.as_object().cloned().unwrap_or_default();
    let call = Block::ToolUse { id: call_id(request, 0), name: name.to_owned(), input: Input::Object(input) };
    Completion { model: NAME.to_owned(), blocks: vec![call], stop: Stop::ToolUse, usage: Usage::default() }
}

/// A short name for what a person said: its letters and digits, of any script.
fn slug(words: &str) -> String {
    let mut slug = String::new();
    for letter in ipc::text::prefix(words, SLUG_CHARS_MAX).to_lowercase().chars() {
        if letter.is_alphanumeric() {
            slug.push(letter);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { "unnamed".to_owned() } else { slug.to_owned() }
}

/// A text in pieces that fall between graphemes.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let piece = match ipc::text::prefix(rest, DELTA_CHARS) {
            // A single grapheme may be longer than a piece.
            "" => rest,
            piece => piece,
        };
        rest = rest.strip_prefix(piece).unwrap_or_default();
        Some(piece)
    })
}

#[cfg(test)]
mod tests;
