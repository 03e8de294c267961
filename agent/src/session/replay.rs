//! What a model was sent for one of its answers: the prompt in force and the messages before it, as the file says.
//!
//! An answer is a message of the model's; what the runtime adds to a reply is none. A prompt counts from the next answer
//! behind it. Where the conversation had been shortened, its summary stands for what it stood for then.

use ipc::contract::sessions::{Prompt, Replay};
use serde_json::{Value, json};

use super::{
    Catalog, Compaction,
    aside::Asides,
    file::{self, Entry, SessionError},
    transcript::sent,
};
use crate::provider::{Message, Role};

/// How many bytes of messages one answer shows, the newest; well inside one frame.
const SHOWN_BYTES_MAX: usize = 4 << 20;

impl Catalog {
    /// What the model was sent for its `answer`-th answer, counted from 1, or for the newest; nothing where there is none
    /// of that number.
    pub(crate) fn replay(&self, id: &str, answer: Option<u64>) -> Result<Option<Replay>, SessionError> {
        let (header, entries) = file::read(&self.path(id)?, id)?;
        let mut tape = Tape::default();
        for entry in entries {
            tape.take(entry?, answer);
        }
        let answers = tape.answers;
        let Some(Frame { prompt, messages, compaction }) = tape.frame else { return Ok(None) };
        let messages = tape.messages.get(..messages).unwrap_or_default();
        let (messages, left) = bounded(&sent(messages, compaction.as_ref(), &tape.asides));
        let (fingerprint, prompt) = prompt.unzip();
        Ok(Some(Replay {
            session: header.id,
            answer: answer.unwrap_or(answers),
            answers,
            prompts_recorded: header.version >= 2,
            prompt,
            fingerprint,
            messages,
            left,
            prompts: tape.prompts,
        }))
    }
}

/// What a file says so far.
#[derive(Debug, Default)]
struct Tape {
    messages: Vec<Message>,
    asides: Asides,
    answers: u64,
    prompt: Option<(String, String)>,
    compaction: Option<Compaction>,
    prompts: Vec<Prompt>,
    frame: Option<Frame>,
}

/// What stood there when an answer came.
#[derive(Debug)]
struct Frame {
    prompt: Option<(String, String)>,
    messages: usize,
    compaction: Option<Compaction>,
}

impl Tape {
    fn take(&mut self, entry: Entry, wanted: Option<u64>) {
        match entry {
            Entry::Message { message, from, .. } => {
                if message.role == Role::Assistant && from.is_none() {
                    self.answers += 1;
                    for prompt in self.prompts.iter_mut().rev().take(1) {
                        prompt.first_answer.get_or_insert(self.answers);
                    }
                    if wanted.is_none_or(|wanted| wanted == self.answers) {
                        self.frame = Some(Frame {
                            prompt: self.prompt.clone(),
                            messages: self.messages.len(),
                            compaction: self.compaction.clone(),
                        });
                    }
                }
                // what comes behind the answer that is wanted was not seen
                if wanted.is_none_or(|wanted| self.answers < wanted) {
                    self.messages.push(message);
                }
            }
            Entry::Prompt { ts, fingerprint, text, reason } => {
                let prompt =
                    Prompt { time: ts, fingerprint: fingerprint.clone(), reason, first_answer: None };
                self.prompts.push(prompt);
                self.prompt = Some((fingerprint, text));
            }
            Entry::Approval { request, call, stand, .. } => {
                if wanted.is_none_or(|wanted| self.answers < wanted) {
                    self.asides.stands(request, call, stand);
                }
            }
            Entry::Compaction(compaction) => self.compaction = Some(compaction),
            Entry::Session(_)
            | Entry::Objection { .. }
            | Entry::Surfaced { .. }
            | Entry::Reflecting(_)
            | Entry::Reflection(_)
            | Entry::ModelChange { .. }
            | Entry::TurnEnd { .. } => {}
        }
    }
}

/// The newest that fit, and how many do not.
fn bounded(messages: &[Message]) -> (Vec<Value>, u64) {
    let mut bytes = 0;
    let mut fitting: Vec<Value> = messages
        .iter()
        .rev()
        .map(|message| json!(message))
        .take_while(|message| {
            bytes += message.to_string().len();
            bytes <= SHOWN_BYTES_MAX
        })
        .collect();
    fitting.reverse();
    let left = u64::try_from(messages.len() - fitting.len()).unwrap_or(u64::MAX);
    (fitting, left)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TS: &str = "2026-01-01T00:00:00Z";

    fn first(version: u32) -> Value {
        json!({"type": "session", "id": "s", "version": version, "startedAt": "x"})
    }

    fn user(text: &str) -> Value {
        json!({"type": "message", "ts": TS, "message": {"role": "user", "content": text}})
    }

    fn hers(text: &str) -> Value {
        json!({"type": "message", "ts": TS, "message": {"role": "assistant", "content": text}})
    }

    fn prompt(text: &str) -> Value {
        json!({"type": "prompt", "ts": TS, "fingerprint": format!("#{text}"), "text": text, "reason": "rebuilt"})
    }

    fn kept(lines: &[Value], tail: &str) -> (tempfile::TempDir, Catalog) {
        let folder = tempfile::tempdir().unwrap();
        let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
        let whole = lines.join("\n");
        let text = if whole.is_empty() { tail.to_owned() } else { format!("{whole}\n{tail}") };
        std::fs::write(folder.path().join("s.jsonl"), text).unwrap();
        let catalog = Catalog::at(folder.path());
        (folder, catalog)
    }

    fn texts(replay: &Replay) -> Vec<String> {
        let text = |message: &Value| message["content"][0]["text"].as_str().unwrap().to_owned();
        replay.messages.iter().map(text).collect()
    }

    #[test]
    fn rp1_rp2_rp4_an_answer_saw_what_was_before_it_and_the_prompt_in_force() {
        let call = json!({"type": "message", "ts": TS, "message": {"role": "assistant", "content":
            [{"type": "text", "text": "let me see"}, {"type": "tool_use", "id": "a", "name": "t", "input": {}}]}});
        let result = json!({"type": "message", "ts": TS, "message": {"role": "user", "content":
            [{"type": "tool_result", "tool_use_id": "a", "content": "r"}, {"type": "text", "text": "and"}]}});
        let ours = json!({"type": "message", "ts": TS, "from": "runtime",
            "message": {"role": "assistant", "content": "[lisa] she objected"}});
        let lines = [
            first(2),
            prompt("A"),
            user("one"),
            call,
            prompt("B"),
            result,
            hers("done"),
            ours,
            user("two"),
            hers("yes"),
        ];
        let (_folder, catalog) = kept(&lines, "");
        let check = |answer: Option<u64>, prompt: &str, messages: usize| {
            let replay = catalog.replay("s", answer).unwrap().unwrap();
            assert_eq!(
                (replay.prompt.as_deref(), replay.messages.len()),
                (Some(prompt), messages),
                "{answer:?}"
            );
            assert_eq!((replay.answers, replay.prompts_recorded, replay.left), (3, true, 0));
        };
        check(Some(1), "A", 1);
        // the answer that called a tool is one, and what the runtime added is none
        check(Some(2), "B", 3);
        check(Some(3), "B", 6);
        check(None, "B", 6);
        assert!(catalog.replay("s", Some(4)).unwrap().is_none());
        assert!(catalog.replay("s", Some(0)).unwrap().is_none());
    }

    #[test]
    fn rp3_rp6_each_prompt_with_its_first_answer_and_answers_before_the_first_have_none() {
        let lines =
            [first(2), user("a"), hers("b"), prompt("A"), prompt("B"), user("c"), hers("d"), prompt("C")];
        let (_folder, catalog) = kept(&lines, "");
        let replay = catalog.replay("s", Some(1)).unwrap().unwrap();
        assert_eq!((&replay.prompt, &replay.fingerprint), (&None, &None));
        let timeline: Vec<_> =
            replay.prompts.iter().map(|prompt| (prompt.fingerprint.as_str(), prompt.first_answer)).collect();
        assert_eq!(timeline, [("#A", None), ("#B", Some(2)), ("#C", None)]);
    }

    #[test]
    fn rp5_rp7_rp8_version_one_has_no_prompts_others_lines_are_passed_over_and_nothing_is_no_session() {
        let lines = [first(1), json!({"type": "invented", "x": 1}), user("a"), hers("b")];
        let (_folder, catalog) = kept(&lines, "{\"type\":\"message\",\"ts\":\"2026");
        let replay = catalog.replay("s", None).unwrap().unwrap();
        assert_eq!(
            (replay.prompts_recorded, replay.answers, texts(&replay)),
            (false, 1, vec!["a".to_owned()])
        );
        let (_folder, catalog) = kept(&[], "");
        assert!(matches!(catalog.replay("s", None), Err(SessionError::NoHeader { .. })));
    }

    #[test]
    fn what_was_shortened_is_replayed_as_it_was_sent_then() {
        let compaction = json!({"type": "compaction", "ts": TS, "request": "r", "upTo": 2, "summary": "we met",
            "by": "rule", "before": 9, "after": 3});
        let lines = [first(2), user("a"), hers("b"), user("c"), compaction, hers("d"), user("e"), hers("f")];
        let (_folder, catalog) = kept(&lines, "");
        let replayed = |answer| texts(&catalog.replay("s", Some(answer)).unwrap().unwrap());
        assert_eq!(replayed(1), ["a"]);
        let second = replayed(2);
        assert!(second[0].ends_with("\n| we met") && second[1..] == ["c"], "{second:?}");
        assert_eq!(replayed(3)[1..], ["c", "d", "e"]);
    }

    #[test]
    fn what_does_not_fit_into_a_frame_is_counted() {
        let long = user(&"灯".repeat(1_000_000));
        let (_folder, catalog) =
            kept(&[first(2), long.clone(), hers("ok"), long, hers("b"), user("c"), hers("d")], "");
        let replay = catalog.replay("s", None).unwrap().unwrap();
        assert_eq!((replay.messages.len(), replay.left), (4, 1));
    }
}
