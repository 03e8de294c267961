//! `lisa chat`: a conversation with her, line by line, streamed as she speaks.
//!
//! ```text
//!  attach       which session, and how to get into it
//!  input        what is said: TEXT, stdin as a whole, or line by line
//!  transcript   what is heard → what is shown                (pure)
//!  permission   what a call that waits for a word looks like, and what an answer means (pure)
//!  ending       whether the reply is whole                   (pure)
//!  this file    one turn after another, Ctrl-C, the end
//! ```
//!
//! A turn has no deadline of its own, since a model may think as long as it likes; it ends with an answer, with a
//! plain statement that it was interrupted, or with the connection.

mod attach;
mod ending;
mod input;
mod permission;
mod transcript;

use std::{collections::VecDeque, io::IsTerminal as _};

use ipc::{
    acp,
    contract::chat::{EVENT, EventsSince, Status},
    exit::{Exit, Fault},
    home::Home,
    text::one_line,
    wire::{Id, Notification, Request, RpcError, code},
};
use serde_json::json;
use tokio::signal::unix::{Signal, SignalKind, signal};

pub(crate) use self::attach::last_reply;
use self::{
    attach::{Attached, Choice},
    ending::Ending,
    input::{Line, Lines},
    permission::{Question, Word, word},
    transcript::{Piece, Style, Transcript},
};
use crate::{
    arguments::{Approve, Chat},
    events,
    link::{Heard, Link},
    output, status,
};

/// Leaves a conversation when it is said alone on a line.
const QUIT: &str = "/quit";

/// Talks: one turn where there is something to say already, and a conversation on a terminal.
pub(crate) async fn chat(home: &Home, json: bool, asked: Chat) -> Result<(), Fault> {
    let choice = match asked.session {
        Some(id) => Choice::Named(id),
        None if asked.new => Choice::New,
        None => Choice::Latest,
    };
    if asked.text.is_empty() && std::io::stdin().is_terminal() {
        return converse(home, json, choice, asked.approve).await;
    }
    let text = if asked.text.is_empty() { input::whole()? } else { asked.text.join(" ") };
    if text.trim().is_empty() {
        let said = "there is nothing to say: give a TEXT, pipe one in, or call `lisa chat` on a terminal";
        return Err(Fault { exit: Exit::Usage, source: said.into() });
    }
    one_turn(home, json, choice, &text, asked.approve).await
}

/// Talks after `lisa up --chat`: a conversation on a terminal, and else each line of stdin is a turn.
pub(crate) async fn from_up(home: &Home, json: bool) -> Result<(), Fault> {
    let left = converse(home, json, Choice::Latest, Approve::Ask).await;
    if !matches!(&left, Err(Fault { exit: Exit::Unavailable, .. })) {
        output::aside("she keeps running: `lisa chat` talks to her again, `lisa down` stops her");
    }
    left
}

async fn one_turn(
    home: &Home,
    json: bool,
    choice: Choice,
    text: &str,
    approve: Approve,
) -> Result<(), Fault> {
    let style = if json { Style::Json } else { Style::Plain { shared: output::stdout_is_terminal() } };
    let (mut conversation, _) = Conversation::open(home, choice, style, approve).await?;
    let turn = conversation.turn(text, None).await?;
    match turn {
        Turn::Over(ending) => match ending.shortfall() {
            None => Ok(()),
            Some(why) => Err(Fault::failed(why)),
        },
        Turn::Left => Err(Fault::failed("left before the reply was whole")),
    }
}

async fn converse(home: &Home, json: bool, choice: Choice, approve: Approve) -> Result<(), Fault> {
    let typed = std::io::stdin().is_terminal();
    let style = match (json, output::stdout_is_terminal()) {
        (true, _) => Style::Json,
        (false, true) => Style::Talk,
        (false, false) => Style::Plain { shared: false },
    };
    let (mut conversation, status) = Conversation::open(home, choice, style, approve).await?;
    output::aside(&greeting(&status, &conversation.attached, typed));
    let mut lines = Lines::read();
    let mut short = None;
    loop {
        if typed {
            conversation.show(&|transcript| transcript.prompt())?;
        }
        let said = match conversation.listen(&mut lines, typed).await? {
            Some(Line::Said(said)) => said,
            Some(Line::Unreadable(why)) => {
                conversation.show(&|transcript| transcript.remark(&why))?;
                short = Some(why);
                continue;
            }
            None => break,
        };
        if typed {
            conversation.show(&|transcript| transcript.line_entered())?;
        }
        match said.trim() {
            "" => continue,
            QUIT => break,
            _ => {}
        }
        match conversation.turn(&said, typed.then_some(&mut lines)).await? {
            Turn::Over(ending) => {
                if let Some(why) = ending.shortfall() {
                    if !json {
                        conversation.show(&|transcript| transcript.remark(&why))?;
                    }
                    short = Some(why);
                }
            }
            Turn::Left => return Ok(()),
        }
    }
    match short {
        // a person saw it happen and went on; a script wants to know
        Some(why) if !typed => Err(Fault::failed(format!("not every turn came to its end: {why}"))),
        _ => Ok(()),
    }
}

/// What a turn came to.
enum Turn {
    /// It ended.
    Over(Ending),
    /// The person did not wait for its end.
    Left,
}

/// A session that is attached to, and what is shown of it.
struct Conversation {
    home: Home,
    link: Link,
    attached: Attached,
    transcript: Transcript,
    interrupts: Signal,
    approve: Approve,
    /// Calls that wait for a word, the first of them shown; those of others' turns wait until this one is over.
    questions: VecDeque<Question>,
}

impl Conversation {
    async fn open(
        home: &Home,
        choice: Choice,
        style: Style,
        approve: Approve,
    ) -> Result<(Self, Status), Fault> {
        let mut link = Link::open(home).await?;
        let status = status::ask(&mut link).await?;
        let attached = attach::attach(&mut link, choice).await?;
        // what came before is in `lisa events`; from here on everything is news
        events::since(&mut link, EventsSince { after: None, follow: true }).await?;
        let interrupts = signal(SignalKind::interrupt()).map_err(Fault::failed)?;
        let transcript = Transcript::new(style, &attached.session);
        let (home, questions) = (home.clone(), VecDeque::new());
        Ok((Self { home, link, attached, transcript, interrupts, approve, questions }, status))
    }

    /// Waits for something to be said, and shows what happens meanwhile; nothing when the person leaves. Who types is
    /// asked about calls of others' turns too: whoever asked for those may have gone.
    async fn listen(&mut self, lines: &mut Lines, typed: bool) -> Result<Option<Line>, Fault> {
        loop {
            let is_asking = !self.questions.is_empty();
            let said = async { if is_asking { lines.answer().await } else { lines.next().await } };
            let heard = tokio::select! {
                line = said => {
                    if is_asking {
                        self.word(line).await?;
                        self.ask_again_after(is_asking)?;
                        continue;
                    }
                    if line.is_none() {
                        self.show(&|transcript| transcript.leave())?;
                    }
                    return Ok(line);
                }
                _ = self.interrupts.recv() => {
                    self.show(&|transcript| transcript.leave())?;
                    return Ok(None);
                }
                heard = self.link.next() => heard,
            };
            match heard {
                Ok(Heard::News(news)) => {
                    self.news(&news)?;
                    self.ask_again_after(is_asking)?;
                }
                Ok(Heard::Question(request)) => {
                    self.asked(&request, typed.then_some(&mut *lines)).await?;
                }
                Ok(Heard::Answer(_)) => {}
                Err(error) => {
                    self.show(&|transcript| transcript.leave())?;
                    return Err(error.understood(&self.home).await.into());
                }
            }
        }
    }

    /// Asks for the next line where a question stood in its place and is gone.
    fn ask_again_after(&mut self, was_asking: bool) -> Result<(), Fault> {
        if was_asking && self.questions.is_empty() {
            return self.show(&|transcript| transcript.prompt());
        }
        Ok(())
    }

    /// Says something and shows the reply until the turn is over. Ctrl-C asks her to stop, a second one leaves.
    /// A call that waits for a person's word is asked about on `lines`.
    async fn turn(&mut self, text: &str, mut lines: Option<&mut Lines>) -> Result<Turn, Fault> {
        let session = self.attached.session.clone();
        let prompt = json!({"sessionId": session, "prompt": [acp::ContentBlock::from(text)]});
        let id = self.link.send("session/prompt", prompt).await?;
        self.transcript.begin_turn();
        let mut stopping = false;
        self.questions.clear();
        loop {
            let is_asking = !self.questions.is_empty();
            let answered = async {
                match lines.as_deref_mut() {
                    Some(lines) if is_asking => lines.answer().await,
                    _ => std::future::pending().await,
                }
            };
            let heard = tokio::select! {
                heard = self.link.next() => heard,
                line = answered => {
                    self.word(line).await?;
                    continue;
                }
                _ = self.interrupts.recv() => {
                    if stopping {
                        self.show(&|transcript| transcript.leave())?;
                        return Ok(Turn::Left);
                    }
                    stopping = true;
                    self.link.tell("session/cancel", json!({"sessionId": session})).await?;
                    self.show(&|transcript| transcript.remark("stopping; Ctrl-C again leaves"))?;
                    continue;
                }
            };
            match heard {
                Ok(Heard::News(news)) => self.news(&news)?,
                Ok(Heard::Question(request)) => self.asked(&request, lines.as_deref_mut()).await?,
                Ok(Heard::Answer(answer)) if answer.id == id => {
                    let ending = Ending::of(answer.outcome);
                    self.questions.clear();
                    self.transcript.question_over();
                    self.show(&|transcript| transcript.end_turn(&ending))?;
                    return Ok(Turn::Over(ending));
                }
                Ok(Heard::Answer(_)) => {}
                Err(error) => {
                    let error = error.understood(&self.home).await;
                    let ending = Ending::lost(&error);
                    self.show(&|transcript| transcript.end_turn(&ending))?;
                    return Err(error.into());
                }
            }
        }
    }

    fn news(&mut self, news: &Notification) -> Result<(), Fault> {
        match news.method.as_str() {
            "session/update" => self.show(&|transcript| transcript.update(&news.params)),
            EVENT => {
                let event = events::read(news.params.clone())?;
                self.show(&|transcript| transcript.event(&event))
            }
            "$/cancel_request" => self.settled(&news.params),
            _ => Ok(()),
        }
    }

    /// A call waits for a person's word.
    async fn asked(&mut self, request: &Request, lines: Option<&mut Lines>) -> Result<(), Fault> {
        let Some(question) = Question::read(request, &self.attached.session) else { return Ok(()) };
        // whoever asked for a turn answers for it, and others may where they sit before a terminal
        match (self.approve, lines) {
            (Approve::Auto, _) if !question.elsewhere => {
                let shown = question.shown();
                self.show(&|transcript| transcript.remark(&format!("allowed (--approve auto): {shown}")))?;
                Ok(self.link.answer(question.id.clone(), Ok(question.answer(&Word::Allow))).await?)
            }
            (Approve::Ask, Some(lines)) => {
                self.questions.push_back(question);
                if self.questions.len() == 1 {
                    lines.put_aside().await;
                    self.show_question()?;
                }
                Ok(())
            }
            (Approve::Ask, None) if !question.elsewhere => {
                let said = "there is no terminal to ask on; say yes beforehand with `lisa chat --approve auto`, or talk to her on a terminal";
                self.show(&|transcript| transcript.remark(&format!("denied: {said}")))?;
                let no = RpcError::new(code::METHOD_NOT_FOUND, said);
                Ok(self.link.answer(question.id, Err(no)).await?)
            }
            (Approve::Auto | Approve::Ask, _) => Ok(()),
        }
    }

    /// The person has said something to the question that is shown; nothing more can be said where stdin has ended.
    async fn word(&mut self, line: Option<Line>) -> Result<(), Fault> {
        let Some(question) = self.questions.pop_front() else { return Ok(()) };
        let word = match line {
            Some(Line::Said(said)) => word(&said),
            Some(Line::Unreadable(_)) | None => Word::Deny(String::new()),
        };
        self.transcript.question_over();
        self.show(&|transcript| transcript.line_entered())?;
        self.link.answer(question.id.clone(), Ok(question.answer(&word))).await?;
        self.show_question()
    }

    /// Somebody else has answered, or nobody needs to any more.
    fn settled(&mut self, params: &serde_json::Value) -> Result<(), Fault> {
        let id = params.get("requestId").and_then(serde_json::Value::as_str);
        let is_it = |question: &Question| matches!(&question.id, Id::Text(of) if Some(of.as_str()) == id);
        let Some(at) = self.questions.iter().position(is_it) else { return Ok(()) };
        self.questions.remove(at);
        if at > 0 {
            return Ok(());
        }
        self.transcript.question_over();
        self.show(&|transcript| transcript.leave())?;
        self.show(&|transcript| transcript.remark("the question was settled elsewhere"))?;
        self.show_question()
    }

    fn show_question(&mut self) -> Result<(), Fault> {
        let Some(question) = self.questions.front().cloned() else { return Ok(()) };
        self.show(&|transcript| transcript.question(&question.shown(), &question.prompt()))
    }

    fn show(&mut self, what: &dyn Fn(&mut Transcript) -> Vec<Piece>) -> Result<(), Fault> {
        what(&mut self.transcript).into_iter().try_for_each(|piece| match piece {
            Piece::Out(text) => output::text(&text),
            Piece::Aside(text) => {
                output::aside_text(&text);
                Ok(())
            }
        })
    }
}

/// Who is there, in which session, and how to leave.
fn greeting(status: &Status, attached: &Attached, typed: bool) -> String {
    let name = if status.soul.name.is_empty() { "she has no name yet" } else { &status.soul.name };
    let mut lines = if status::is_offline(status) {
        let mut lines =
            vec![format!("{name} · no language model: offline companion, who answers by fixed rules")];
        match &status.offer {
            Some(offer) => lines.push(one_line(offer, 400)),
            None => lines.push(
                "for a model: `lisa model list` shows what there is, `lisa model use NAME` chooses"
                    .to_owned(),
            ),
        }
        lines
    } else if status.model.is_empty() {
        vec![format!("{name} · the agent has not said which model it uses")]
    } else {
        vec![format!("{name} · {}", status.model)]
    };
    let how = if attached.new { "new session" } else { "session" };
    let leave = if typed { " · /quit or Ctrl-D leaves, Ctrl-C stops a reply" } else { "" };
    lines.push(format!("{how} {}{}{leave}", attached.session, attached.titled()));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::tests::sample;

    #[test]
    fn the_greeting_says_who_where_and_how_to_leave() {
        let mut status = sample(vec![]);
        let attached = Attached { session: "s1".into(), new: false, title: Some("灯塔\n与海".into()) };
        let said = greeting(&status, &attached, true);
        assert!(said.starts_with("灯塔 · no language model: offline companion"), "{said}");
        assert!(said.contains("`lisa model use NAME`"), "{said}");
        status.offer = Some("found: `lisa model use ollama/q`".into());
        let said = greeting(&status, &attached, true);
        assert!(said.contains("found: `lisa model use ollama/q`") && !said.contains("NAME"), "{said}");
        assert!(
            said.ends_with("session s1 (灯塔 与海) · /quit or Ctrl-D leaves, Ctrl-C stops a reply"),
            "{said}"
        );
        status.model = "openai/gpt".into();
        let said = greeting(&status, &Attached { session: "s2".into(), new: true, title: None }, false);
        assert_eq!(said, "灯塔 · openai/gpt\nnew session s2");
    }
}
