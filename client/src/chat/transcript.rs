//! What is heard becomes what is shown: a pure core that knows where on the line the reply stands.
//!
//! ```text
//!            prompt            line entered           a chunk of the reply
//!  Margin ───────────▶ Prompt ──────────────▶ Margin ──────────────────────▶ Reply
//!     ▲                                                                       │
//!     └───────────────────────────── an aside, a tool, the end ───────────────┘
//! ```
//!
//! Three styles. *Talk* is for a terminal: `you> `, `lisa> `, asides on lines of their own. *Plain* puts nothing but
//! the reply on stdout. *Json* puts one object a line there. Asides go to stderr in the first two.

use std::collections::{HashMap, HashSet};

use ipc::{acp, contract::chat::Event, text::one_line};
use serde_json::{Map, Value, json};

use super::ending::Ending;
use crate::{news, output::json_line};

const PROMPT: &str = "you> ";
const REPLY: &str = "lisa> ";

/// The longest title of a tool call shown, in characters.
const TITLE_CHARS_MAX: usize = 120;

/// How many tool calls are remembered, so that one that fails is called by its name; a turn has a few.
const TOOLS_MAX: usize = 1000;

/// Something to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    /// To stdout, as it is.
    Out(String),
    /// To stderr, as it is.
    Aside(String),
}

/// How it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// For a person at a terminal.
    Talk,
    /// The reply alone on stdout.
    Plain {
        /// Whether stdout and stderr are one terminal, so that an aside in mid-line needs a new line.
        shared: bool,
    },
    /// One object a line.
    Json,
}

/// Where the next character would stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// At the beginning of a line.
    Margin,
    /// Behind `you> `.
    Prompt,
    /// In a reply, and whether in the middle of its line.
    Reply { mid_line: bool },
}

/// What has been shown so far.
#[derive(Debug)]
pub(super) struct Transcript {
    style: Style,
    session: String,
    place: Place,
    /// Which message of hers is being shown.
    message: Option<String>,
    /// Whether a turn of ours is under way; what others say is shown between our turns only.
    in_turn: bool,
    tools: HashMap<String, String>,
    lifecycle: HashSet<String>,
    /// The line that asks, while a question waits for an answer.
    asking: Option<String>,
}

impl Transcript {
    /// Nothing shown yet.
    pub(super) fn new(style: Style, session: &str) -> Self {
        Self {
            style,
            session: session.to_owned(),
            place: Place::Margin,
            message: None,
            in_turn: false,
            tools: HashMap::new(),
            lifecycle: HashSet::new(),
            asking: None,
        }
    }

    /// Asks the person to say something.
    pub(super) fn prompt(&mut self) -> Vec<Piece> {
        let mut pieces = self.go_to_margin();
        pieces.push(self.ask());
        pieces
    }

    /// The person has ended a line, which the terminal has shown.
    pub(super) fn line_entered(&mut self) -> Vec<Piece> {
        self.place = Place::Margin;
        Vec::new()
    }

    /// Asks a person about a call.
    pub(super) fn question(&mut self, shown: &str, prompt: &str) -> Vec<Piece> {
        let mut pieces = self.go_to_margin();
        pieces.push(self.to_the_person(shown));
        self.asking = Some(prompt.to_owned());
        pieces.push(self.ask());
        pieces
    }

    /// The question needs no answer any more.
    pub(super) fn question_over(&mut self) {
        self.asking = None;
    }

    /// A turn of ours begins.
    pub(super) fn begin_turn(&mut self) {
        (self.in_turn, self.message) = (true, None);
        self.tools.clear();
        self.lifecycle.clear();
    }

    /// A turn of ours is over.
    pub(super) fn end_turn(&mut self, ending: &Ending) -> Vec<Piece> {
        self.in_turn = false;
        match self.style {
            Style::Json => vec![Piece::Out(format!("{}\n", json_line(&ending.json())))],
            Style::Talk | Style::Plain { .. } => self.end_reply(),
        }
    }

    /// The person leaves, wherever on the line that is.
    pub(super) fn leave(&mut self) -> Vec<Piece> {
        self.go_to_margin()
    }

    /// Something about the conversation that is not part of it.
    pub(super) fn remark(&mut self, text: &str) -> Vec<Piece> {
        let at_prompt = self.place == Place::Prompt;
        let mut pieces = match (self.place, self.style) {
            // asides do not break lines that are on their way to a file
            (Place::Reply { .. }, Style::Plain { shared: false } | Style::Json) => Vec::new(),
            _ => self.go_to_margin(),
        };
        pieces.push(Piece::Aside(format!("· {}\n", one_line(text, 400))));
        if at_prompt {
            pieces.push(self.ask());
        }
        pieces
    }

    /// Something happened to the processes or to the self.
    pub(super) fn event(&mut self, event: &Event) -> Vec<Piece> {
        match (self.style, news::in_conversation(event)) {
            (Style::Json, _) => vec![object(&json!({"type": "event", "event": event}))],
            (Style::Talk | Style::Plain { .. }, Some(sentence)) => self.remark(&sentence),
            (Style::Talk | Style::Plain { .. }, None) => Vec::new(),
        }
    }

    /// A `session/update`. One that is not of this session, or that we cannot read, shows nothing.
    pub(super) fn update(&mut self, params: &Value) -> Vec<Piece> {
        let Ok(acp::SessionNotification { session_id, update, .. }) = serde_json::from_value(params.clone())
        else {
            return Vec::new();
        };
        if session_id.to_string() != self.session {
            return Vec::new();
        }
        // while a turn of ours is under way, what belongs to another's would pass for ours
        if self.in_turn && params["update"]["_meta"]["lisa"]["elsewhere"] == true {
            return Vec::new();
        }
        match update {
            acp::SessionUpdate::AgentMessageChunk(chunk) => {
                self.reply(&text_of(&chunk.content), chunk.message_id.map(|id| id.to_string()))
            }
            acp::SessionUpdate::AgentThoughtChunk(chunk) => match self.style {
                Style::Json => vec![object(&json!({"type": "thought", "text": text_of(&chunk.content)}))],
                Style::Talk | Style::Plain { .. } => Vec::new(),
            },
            // our own words come back to us as they go to everybody else who is attached
            acp::SessionUpdate::UserMessageChunk(_) if self.in_turn => Vec::new(),
            acp::SessionUpdate::UserMessageChunk(chunk) => match self.style {
                Style::Json => vec![object(&json!({"type": "elsewhere", "text": text_of(&chunk.content)}))],
                Style::Talk | Style::Plain { .. } => {
                    self.remark(&format!("said elsewhere: {}", text_of(&chunk.content)))
                }
            },
            acp::SessionUpdate::ToolCall(call) => self.tool(&call),
            acp::SessionUpdate::ToolCallUpdate(update) => self.tool_update(&update),
            _ => Vec::new(),
        }
    }

    fn reply(&mut self, text: &str, message: Option<String>) -> Vec<Piece> {
        if text.is_empty() {
            return Vec::new();
        }
        if self.style == Style::Json {
            return vec![object(&json!({"type": "text", "text": text}))];
        }
        let another = message.is_some() && self.message.is_some() && message != self.message;
        let mut pieces = if another { self.end_reply() } else { Vec::new() };
        if message.is_some() {
            self.message = message;
        }
        match self.place {
            Place::Reply { .. } => {}
            Place::Margin | Place::Prompt => {
                pieces.extend(self.go_to_margin());
                if self.style == Style::Talk {
                    pieces.push(Piece::Out(REPLY.to_owned()));
                }
            }
        }
        self.place = Place::Reply { mid_line: !text.ends_with('\n') };
        pieces.push(Piece::Out(text.to_owned()));
        pieces
    }

    fn tool(&mut self, call: &acp::ToolCall) -> Vec<Piece> {
        let id = call.tool_call_id.to_string();
        if is_lifecycle(call.meta.as_ref()) {
            self.lifecycle.insert(id);
            return Vec::new();
        }
        let title = one_line(&call.title, TITLE_CHARS_MAX);
        if self.tools.len() < TOOLS_MAX {
            self.tools.insert(id, title.clone());
        }
        if self.style == Style::Json {
            return vec![tool_object(call)];
        }
        let mut pieces = self.end_reply();
        pieces.extend(self.remark(&title));
        pieces
    }

    fn tool_update(&mut self, update: &acp::ToolCallUpdate) -> Vec<Piece> {
        let id = update.tool_call_id.to_string();
        if is_lifecycle(update.meta.as_ref()) || self.lifecycle.contains(&id) {
            return Vec::new();
        }
        if self.style == Style::Json {
            return vec![tool_object(update)];
        }
        if update.fields.status != Some(acp::ToolCallStatus::Failed) {
            return Vec::new();
        }
        let title = self.tools.get(&id).cloned().or_else(|| update.fields.title.clone());
        let title = title.unwrap_or_else(|| "a tool".to_owned());
        self.remark(&format!("{} failed", one_line(&title, TITLE_CHARS_MAX)))
    }

    fn ask(&mut self) -> Piece {
        self.place = Place::Prompt;
        let prompt = self.asking.as_deref().unwrap_or(PROMPT);
        self.to_the_person(prompt)
    }

    /// Something for the eyes of the person who types, which is no data.
    fn to_the_person(&self, text: &str) -> Piece {
        match self.style {
            Style::Talk => Piece::Out(text.to_owned()),
            Style::Plain { .. } | Style::Json => Piece::Aside(text.to_owned()),
        }
    }

    /// Ends what is being said on stdout, with a line end where it has none.
    fn end_reply(&mut self) -> Vec<Piece> {
        match self.place {
            Place::Reply { mid_line } => {
                self.place = Place::Margin;
                if mid_line { vec![Piece::Out("\n".to_owned())] } else { Vec::new() }
            }
            Place::Margin | Place::Prompt => Vec::new(),
        }
    }

    /// Gets to the beginning of a line, from wherever.
    fn go_to_margin(&mut self) -> Vec<Piece> {
        if self.place == Place::Prompt {
            self.place = Place::Margin;
            return vec![self.to_the_person("\n")];
        }
        self.end_reply()
    }
}

fn object(value: &Value) -> Piece {
    Piece::Out(format!("{}\n", json_line(value)))
}

/// A tool call or its update as the protocol says it, under our type.
fn tool_object(call: &impl serde::Serialize) -> Piece {
    let mut fields = Map::from_iter([("type".to_owned(), json!("tool"))]);
    if let Ok(Value::Object(said)) = serde_json::to_value(call) {
        fields.extend(said.into_iter().filter(|(name, _)| name != "type"));
    }
    object(&Value::Object(fields))
}

fn is_lifecycle(meta: Option<&acp::Meta>) -> bool {
    let flag = meta.and_then(|meta| meta.get("lisa")).and_then(|ours| ours.get("lifecycle"));
    flag == Some(&Value::Bool(true))
}

fn text_of(content: &acp::ContentBlock) -> String {
    match content {
        acp::ContentBlock::Text(text) => text.text.clone(),
        acp::ContentBlock::Image(_) => "[image]".to_owned(),
        acp::ContentBlock::Audio(_) => "[audio]".to_owned(),
        acp::ContentBlock::ResourceLink(link) => format!("[{}]", link.uri),
        _ => "[attachment]".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn say(kind: &str, text: &str, message: Option<&str>) -> Value {
        let content = json!({"type": "text", "text": text});
        json!({"sessionId": "s1", "update": {"sessionUpdate": kind, "content": content, "messageId": message}})
    }

    fn chunk(text: &str) -> Value {
        say("agent_message_chunk", text, None)
    }

    fn tool(update: &Value) -> Value {
        json!({"sessionId": "s1", "update": update})
    }

    fn event(fields: &Value) -> Event {
        let mut event = json!({"epoch": 1, "seq": 2, "time": "2026-11-30T12:00:00Z"});
        event.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        serde_json::from_value(event).unwrap()
    }

    fn died() -> Event {
        event(&json!({"type": "child_died", "process": "agent", "how": "signal 9", "restart_in_ms": 0}))
    }

    /// What a terminal shows: both streams in the order they are written.
    fn terminal(pieces: Vec<Piece>) -> String {
        let text = |piece| match piece {
            Piece::Out(text) | Piece::Aside(text) => text,
        };
        pieces.into_iter().map(text).collect()
    }

    fn stdout(pieces: Vec<Piece>) -> String {
        let text = |piece| match piece {
            Piece::Out(text) => Some(text),
            Piece::Aside(_) => None,
        };
        pieces.into_iter().filter_map(text).collect()
    }

    fn ended(reason: &str) -> Ending {
        Ending::of(Ok(json!({"stopReason": reason, "_meta": {"lisa": {"messageId": "m1"}}})))
    }

    #[test]
    fn a_conversation_on_a_terminal_reads_like_one() {
        let mut it = Transcript::new(Style::Talk, "s1");
        let mut shown = it.prompt();
        shown.extend(it.line_entered());
        it.begin_turn();
        shown.extend(it.update(&say("user_message_chunk", "改成灯塔", None)));
        shown.extend(it.update(&say("agent_thought_chunk", "hm", None)));
        shown.extend(it.update(&chunk("我会")));
        shown.extend(it.update(&chunk("改。")));
        shown.extend(it.update(&tool(
            &json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "soul_patch identity"}),
        )));
        shown.extend(it.event(&event(
            &json!({"type": "soul_changed", "paths": ["identity.md"], "caller": "soul_patch"}),
        )));
        shown.extend(it.update(&tool(
            &json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed"}),
        )));
        shown.extend(it.update(&chunk("Done.\n")));
        shown.extend(it.event(&died()));
        shown.extend(it.event(&event(&json!({"type": "child_ready", "process": "agent", "took_ms": 12}))));
        shown.extend(it.update(&chunk("Done,\nagain.")));
        shown.extend(it.end_turn(&ended("end_turn")));
        shown.extend(it.prompt());
        assert_eq!(
            terminal(shown),
            "\
you> lisa> 我会改。
· soul_patch identity
· soul changed: identity.md (soul_patch)
lisa> Done.
· agent died (signal 9); back in a moment
· agent is back (12 ms)
lisa> Done,
again.
you> "
        );
    }

    #[test]
    fn news_at_the_prompt_leave_the_prompt_standing() {
        let mut it = Transcript::new(Style::Talk, "s1");
        let mut shown = it.prompt();
        shown.extend(it.event(&died()));
        shown.extend(it.update(&say("user_message_chunk", "hello\nthere", None)));
        assert_eq!(
            terminal(shown),
            "you> \n· agent died (signal 9); back in a moment\nyou> \n· said elsewhere: hello there\nyou> "
        );
        assert_eq!(terminal(it.leave()), "\n");
        assert_eq!(terminal(it.leave()), "");
    }

    #[test]
    fn stdout_that_is_no_terminal_holds_the_reply_and_nothing_else() {
        let mut it = Transcript::new(Style::Plain { shared: false }, "s1");
        it.begin_turn();
        let mut shown = it.update(&chunk("Half"));
        shown.extend(it.event(&died()));
        shown.extend(it.update(&chunk(" and half\u{1b}[2J")));
        shown.extend(it.end_turn(&ended("end_turn")));
        assert_eq!(stdout(shown.clone()), "Half and half\u{1b}[2J\n");
        assert_eq!(shown[1], Piece::Aside("· agent died (signal 9); back in a moment\n".into()));
    }

    #[test]
    fn one_turn_on_a_terminal_keeps_asides_off_the_line_of_the_reply() {
        let mut it = Transcript::new(Style::Plain { shared: true }, "s1");
        it.begin_turn();
        let mut shown = it.update(&chunk("Half"));
        shown.extend(it.event(&died()));
        shown.extend(it.update(&chunk("whole")));
        shown.extend(it.end_turn(&ended("end_turn")));
        assert_eq!(terminal(shown), "Half\n· agent died (signal 9); back in a moment\nwhole\n");
    }

    #[test]
    fn another_message_or_a_tool_begins_another_line() {
        let mut it = Transcript::new(Style::Plain { shared: false }, "s1");
        it.begin_turn();
        let mut shown = it.update(&say("agent_message_chunk", "one", Some("a")));
        shown.extend(it.update(&say("agent_message_chunk", "…", Some("a"))));
        shown.extend(it.update(&say("agent_message_chunk", "two", Some("b"))));
        shown.extend(
            it.update(&tool(&json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "x"}))),
        );
        shown.extend(it.update(&say("agent_message_chunk", "three", Some("b"))));
        shown.extend(it.end_turn(&ended("end_turn")));
        assert_eq!(stdout(shown), "one…\ntwo\nthree\n");
    }

    #[test]
    fn a_tool_that_fails_is_named_and_lifecycle_items_are_not_shown_twice() {
        let mut it = Transcript::new(Style::Talk, "s1");
        it.begin_turn();
        it.update(&tool(&json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "soul_patch"})));
        let failed = json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "failed"});
        assert_eq!(terminal(it.update(&tool(&failed))), "· soul_patch failed\n");
        let meta = json!({"lisa": {"lifecycle": true}});
        let begin = json!({"sessionUpdate": "tool_call", "toolCallId": "l", "title": "agent restarts", "_meta": meta});
        let end = json!({"sessionUpdate": "tool_call_update", "toolCallId": "l", "status": "failed"});
        assert!(it.update(&tool(&begin)).is_empty() && it.update(&tool(&end)).is_empty());
    }

    #[test]
    fn what_is_not_ours_or_not_known_shows_nothing() {
        let mut it = Transcript::new(Style::Talk, "s1");
        for params in [
            json!(null),
            json!({"sessionId": "s1", "update": {"sessionUpdate": "of_the_future", "x": 1}}),
            json!({"sessionId": "s1", "update": {"sessionUpdate": "plan", "entries": []}}),
            json!({"sessionId": "s2", "update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x"}}}),
        ] {
            assert!(it.update(&params).is_empty(), "{params}");
        }
        assert!(it.event(&event(&json!({"type": "prompt_interrupted", "session": "s2"}))).is_empty());
    }

    #[test]
    fn json_is_one_object_a_line_and_the_end_comes_last() {
        let mut it = Transcript::new(Style::Json, "s1");
        it.begin_turn();
        let mut shown = it.update(&chunk("灯\u{9b}\n"));
        shown.extend(it.update(&tool(
            &json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "x", "status": "in_progress"}),
        )));
        shown.extend(it.event(&event(&json!({"type": "child_started", "process": "agent"}))));
        shown.extend(it.end_turn(&ended("end_turn")));
        let text = stdout(shown);
        assert!(text.contains("\\u009b"), "{text}");
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines[0], json!({"type": "text", "text": "灯\u{9b}\n"}));
        assert_eq!(
            (&lines[1]["type"], &lines[1]["toolCallId"], &lines[1]["title"]),
            (&json!("tool"), &json!("t"), &json!("x"))
        );
        assert_eq!(
            (&lines[2]["type"], &lines[2]["event"]["type"]),
            (&json!("event"), &json!("child_started"))
        );
        assert_eq!(lines[3], json!({"type": "end", "stop_reason": "end_turn", "message_id": "m1"}));
    }
}
