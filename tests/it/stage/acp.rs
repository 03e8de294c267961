//! A client of the chat socket that was written from the protocol alone: lines of JSON, nothing of ours.

use std::{
    collections::VecDeque,
    io::{BufRead as _, BufReader, Write as _},
    os::unix::net::UnixStream,
    path::Path,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::secs;

/// An attached client.
pub(crate) struct Chat {
    writer: UnixStream,
    reader: BufReader<UnixStream>,
    next: u64,
    /// What came and was not asked for yet.
    heard: VecDeque<Value>,
}

/// What came back for a prompt.
#[derive(Debug)]
pub(crate) struct Reply {
    /// The result, or the error.
    pub(crate) outcome: Result<Value, Value>,
    /// Her words, joined.
    pub(crate) text: String,
    /// What the runtime itself put in, joined.
    pub(crate) notes: String,
    /// Every update, in order.
    pub(crate) updates: Vec<Value>,
}

impl Reply {
    /// The titles of the tool calls that are hers, in order; a restart looks like one, and is none.
    pub(crate) fn tools(&self) -> Vec<&str> {
        let calls = self.updates.iter().filter(|update| update["sessionUpdate"] == "tool_call");
        let calls = calls.filter(|call| call["_meta"]["lisa"]["lifecycle"] != true);
        calls.filter_map(|call| call["title"].as_str()).collect()
    }
}

/// Has a [`puppet`](super::puppet) use a tool: whether it was done, and what the model was told came of it.
#[track_caller]
pub(crate) fn does(chat: &mut Chat, session: &str, tool: &str, input: &Value) -> (bool, String) {
    let reply = chat.say(session, &json!({"tool": tool, "input": input}).to_string());
    assert!(reply.outcome.is_ok(), "{reply:?}");
    // a death of a process is shown as a tool call as well, and says nothing
    let says = |update: &&Value| {
        update["sessionUpdate"] == "tool_call_update" && update["content"][0]["content"]["text"].is_string()
    };
    let ended = reply.updates.iter().find(says);
    let ended = ended.unwrap_or_else(|| panic!("the tool ran: {reply:?}"));
    let said = ended["content"][0]["content"]["text"].as_str().unwrap().to_owned();
    (ended["status"] == "completed", said)
}

impl Chat {
    /// Attaches and shakes hands.
    #[track_caller]
    pub(crate) fn attach(socket: &Path) -> Self {
        let writer =
            UnixStream::connect(socket).unwrap_or_else(|error| panic!("{}: {error}", socket.display()));
        let reader = BufReader::new(writer.try_clone().unwrap());
        let mut chat = Self { writer, reader, next: 1, heard: VecDeque::new() };
        let hello = chat.ask("initialize", json!({"protocolVersion": 1, "clientCapabilities": {}})).unwrap();
        assert_eq!(hello["protocolVersion"], 1);
        chat
    }

    /// Sends a raw line.
    pub(crate) fn send_line(&mut self, line: &[u8]) {
        self.writer.write_all(line).unwrap();
    }

    /// Sends bytes, as many as the other end still takes.
    pub(crate) fn send_some(&mut self, bytes: &[u8]) {
        let _ = self.writer.write_all(bytes);
    }

    /// Says that nothing more will come, as the end of a pipe does.
    pub(crate) fn stop_sending(&mut self) {
        self.writer.shutdown(std::net::Shutdown::Write).unwrap();
    }

    /// Sends a request and returns its id.
    pub(crate) fn send(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next;
        self.next += 1;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send_line(format!("{request}\n").as_bytes());
        id
    }

    /// Sends a notification.
    pub(crate) fn tell(&mut self, method: &str, params: Value) {
        let note = json!({"jsonrpc": "2.0", "method": method, "params": params});
        self.send_line(format!("{note}\n").as_bytes());
    }

    /// The next message, whatever it is; nothing when the connection is closed or nothing comes.
    pub(crate) fn hear(&mut self, longest: Duration) -> Option<Value> {
        if let Some(heard) = self.heard.pop_front() {
            return Some(heard);
        }
        self.read(longest)
    }

    fn read(&mut self, longest: Duration) -> Option<Value> {
        self.reader.get_ref().set_read_timeout(Some(longest.max(Duration::from_millis(1)))).unwrap();
        let mut line = String::new();
        match self.reader.read_line(&mut line) {
            Ok(read) if read > 0 => Some(serde_json::from_str(&line).unwrap()),
            Ok(_) | Err(_) => None,
        }
    }

    /// Asks, and waits for the answer; what comes meanwhile is kept for [`Chat::hear`].
    #[track_caller]
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.send(method, params);
        let end = Instant::now() + secs(30);
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let message = self.read(left).unwrap_or_else(|| panic!("`{method}` is answered"));
            if message["id"] == id {
                return outcome(message);
            }
            self.heard.push_back(message);
        }
    }

    /// Begins a session.
    #[track_caller]
    pub(crate) fn new_session(&mut self) -> String {
        let begun = self.ask("session/new", json!({"cwd": "/", "mcpServers": []})).unwrap();
        begun["sessionId"].as_str().unwrap().to_owned()
    }

    /// Says something, and returns what was answered when the turn is over.
    #[track_caller]
    pub(crate) fn say(&mut self, session: &str, text: &str) -> Reply {
        let id = self.begin(session, text);
        self.finish(id)
    }

    /// Says something without waiting.
    pub(crate) fn begin(&mut self, session: &str, text: &str) -> u64 {
        let prompt = json!([{"type": "text", "text": text}]);
        self.send("session/prompt", json!({"sessionId": session, "prompt": prompt}))
    }

    /// Waits for the first update of a kind.
    #[track_caller]
    pub(crate) fn update(&mut self, kind: &str) -> Value {
        let end = Instant::now() + secs(30);
        let mut passed = VecDeque::new();
        let found = loop {
            let left = end.saturating_duration_since(Instant::now());
            let message =
                self.hear(left).unwrap_or_else(|| panic!("an update `{kind}` comes; heard {passed:?}"));
            let found = message["params"]["update"]["sessionUpdate"] == kind;
            passed.push_back(message.clone());
            if found {
                break message["params"]["update"].clone();
            }
        };
        passed.append(&mut self.heard);
        self.heard = passed;
        found
    }

    /// Waits for the end of a turn that was begun.
    #[track_caller]
    pub(crate) fn finish(&mut self, id: u64) -> Reply {
        let end = Instant::now() + secs(60);
        let mut reply = Reply {
            outcome: Err(Value::Null),
            text: String::new(),
            notes: String::new(),
            updates: Vec::new(),
        };
        let mut events = VecDeque::new();
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let message = self.hear(left).unwrap_or_else(|| panic!("the turn ends; so far {reply:?}"));
            if message["id"] == id {
                reply.outcome = outcome(message);
                // whoever waits for one later must not have missed it
                events.append(&mut self.heard);
                self.heard = events;
                return reply;
            }
            if message["method"] == "_lisa/event" {
                events.push_back(message);
                continue;
            }
            let update = &message["params"]["update"];
            if update["sessionUpdate"] == "agent_message_chunk" {
                let text = update["content"]["text"].as_str().unwrap_or_default();
                let note = update["_meta"]["lisa"]["note"] == true;
                if note { &mut reply.notes } else { &mut reply.text }.push_str(text);
            }
            reply.updates.push(update.clone());
        }
    }

    /// Events as they happen.
    #[track_caller]
    pub(crate) fn follow(&mut self) {
        self.ask("_lisa/events", json!({"follow": true})).unwrap();
    }

    /// Waits for an event.
    #[track_caller]
    pub(crate) fn event(&mut self, sentence: &str, matches: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + secs(30);
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let message = self.hear(left).unwrap_or_else(|| panic!("an event comes: {sentence}"));
            if message["method"] == "_lisa/event" && matches(&message["params"]) {
                return message["params"].clone();
            }
        }
    }
}

fn outcome(message: Value) -> Result<Value, Value> {
    match message.get("error") {
        Some(error) => Err(error.clone()),
        None => Ok(message["result"].clone()),
    }
}
