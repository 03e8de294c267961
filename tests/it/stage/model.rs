//! A model server on loopback that speaks whichever protocol it is asked in, well or badly, as the test says.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};

use super::dialect::Dialect;

/// How the server answers one request.
#[derive(Clone)]
pub(crate) enum Answer {
    /// With words, streamed.
    Says(String),
    /// With words, streamed a piece at a time with a pause before each.
    SaysSlowly { text: String, pause: Duration },
    /// With words, streamed, and then an end of this kind (`length`, `content_filter`).
    Ends(String, &'static str),
    /// With calls of tools: name and input.
    Calls(Vec<(&'static str, Value)>),
    /// With these events, word for word, and then the connection ends.
    Events(Vec<Value>),
    /// With the beginning of an answer, and then the connection ends.
    DiesAfter(String),
    /// With the beginning of an answer, and then nothing more.
    HangsAfter(String),
    /// With a body that is no stream of this protocol.
    Garbage,
    /// With a status of failure, and how long to wait.
    Status { code: u16, retry_after: Option<u64>, said: &'static str },
}

type Script = Arc<Mutex<dyn FnMut(&Value, usize) -> Answer + Send>>;

/// The server.
pub(crate) struct Model {
    port: u16,
    seen: Arc<Mutex<Vec<Value>>>,
}

impl Model {
    /// A server that gives good first words at a birth, and answers the n-th other request (from 0) as `script` says.
    pub(crate) fn start(script: impl FnMut(&Value, usize) -> Answer + Send + 'static) -> Self {
        Self::start_with(birth_words, script)
    }

    /// A server that answers every request as `script` says, those of a birth as well.
    pub(crate) fn start_unborn(script: impl FnMut(&Value, usize) -> Answer + Send + 'static) -> Self {
        Self::start_with(|_| None, script)
    }

    fn start_with(
        first_words: fn(&Value) -> Option<Answer>,
        script: impl FnMut(&Value, usize) -> Answer + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen: Arc<Mutex<Vec<Value>>> = Arc::default();
        let (script, requests): (Script, _) = (Arc::new(Mutex::new(script)), seen.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (script, requests) = (script.clone(), requests.clone());
                std::thread::spawn(move || serve(stream, first_words, &script, &requests));
            }
        });
        Self { port, seen }
    }

    /// The configuration that uses it.
    pub(crate) fn config(&self) -> String {
        format!("[model]\n{}", self.link(Dialect::Chat, "play"))
    }

    /// The configuration that uses it, with these keys below `[tools]`; nobody is asked before a call.
    pub(crate) fn config_with_tools(&self, keys: &str) -> String {
        format!("{}\n[tools]\napproval = \"auto\"\n{keys}\n", self.config())
    }

    /// The lines that use it, under `[model]` or as one of `[[model.fallback]]`.
    pub(crate) fn link(&self, dialect: Dialect, name: &str) -> String {
        let version = if dialect == Dialect::Ollama { "" } else { "/v1" };
        format!(
            "provider = \"{}\"\nname = \"{name}\"\nbase_url = \"http://127.0.0.1:{}{version}\"\nsilence_max = \"2s\"\n",
            dialect.provider(),
            self.port
        )
    }

    /// Where it answers: host and port.
    pub(crate) fn place(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The bodies of the requests so far.
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.seen.lock().unwrap().clone()
    }
}

/// The answer to the request for the first words of a new self.
pub(crate) fn birth_words(request: &Value) -> Option<Answer> {
    // some have it beside the messages
    let beside = request.get("system").or_else(|| request.get("instructions"));
    let system = beside.unwrap_or(&request["messages"][0]["content"]).to_string();
    system.contains("You give words to a new self").then(|| {
        let words = json!({"name": "Mira", "identity": "I am new.", "purpose": "To learn.", "constitution": "I do not lie."});
        Answer::Says(words.to_string())
    })
}

/// A script that does what it is told: a message that is a call of a tool as JSON (`{"tool": …, "input": …}`) becomes that
/// call, and everything else is answered with `done`.
pub(crate) fn puppet(request: &Value, _: usize) -> Answer {
    let last =
        request["messages"].as_array().and_then(|messages| messages.last()).cloned().unwrap_or_default();
    let text = match &last["content"] {
        Value::String(text) => text.clone(),
        parts => parts[0]["text"].as_str().unwrap_or_default().to_owned(),
    };
    let told: Value = serde_json::from_str(&text).unwrap_or_default();
    match (last["role"].as_str(), told["tool"].as_str()) {
        (Some("user"), Some(tool)) => {
            Answer::Calls(vec![(Box::leak(tool.to_owned().into_boxed_str()), told["input"].clone())])
        }
        _ => Answer::Says("done".into()),
    }
}

/// A script for a model that is tried out: it calls the tool `echo` with the words it is told to, and says what came of it.
pub(crate) fn calls_what_it_is_told(request: &Value, _: usize) -> Answer {
    let last =
        request["messages"].as_array().and_then(|messages| messages.last()).cloned().unwrap_or_default();
    let text = last["content"].as_str().unwrap_or_default();
    match text.split_once("with the text `").and_then(|(_, rest)| rest.split_once('`')) {
        Some((words, _)) if last["role"] == "user" => Answer::Calls(vec![("echo", json!({"text": words}))]),
        _ => Answer::Says("it was said 你好".into()),
    }
}

/// What it has, as Ollama tells it: a model of its own, and one that is elsewhere.
fn listing() -> String {
    let body = json!({"models": [{"name": "big:cloud"}, {"name": "play"}]}).to_string();
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

fn serve(
    stream: TcpStream,
    first_words: fn(&Value) -> Option<Answer>,
    script: &Script,
    requests: &Mutex<Vec<Value>>,
) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut length = 0;
    let mut dialect = None;
    let mut lists = false;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        lists |= line.starts_with("GET /api/tags ");
        dialect = dialect.or_else(|| Dialect::of(line.strip_prefix("POST ")?.split(' ').next()?));
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
    }
    if lists {
        let _ = reader.into_inner().write_all(listing().as_bytes());
        return;
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let request: Value = serde_json::from_slice(&body).unwrap();
    let scripted = || {
        let number = {
            let mut requests = requests.lock().unwrap();
            requests.push(request.clone());
            requests.len() - 1
        };
        let mut script = script.lock().unwrap();
        script(&request, number)
    };
    let dialect = dialect.unwrap_or_else(|| panic!("asked for something that no protocol has"));
    let answer = first_words(&request).unwrap_or_else(scripted);
    // a client that went away is what some tests are about
    let _ = write(stream, dialect, answer);
}

fn write(mut out: TcpStream, dialect: Dialect, answer: Answer) -> std::io::Result<()> {
    let stream =
        format!("HTTP/1.1 200 OK\r\ncontent-type: {}\r\nconnection: close\r\n\r\n", dialect.content_type());
    let mut say = |text: &str| out.write_all(text.as_bytes());
    match answer {
        Answer::Says(text) => {
            say(&stream)?;
            say(&dialect.begin())?;
            for piece in pieces(&text) {
                say(&dialect.words(&piece))?;
            }
            say(&dialect.end(&text, None))
        }
        Answer::SaysSlowly { text, pause } => {
            say(&stream)?;
            say(&dialect.begin())?;
            for piece in pieces(&text) {
                std::thread::park_timeout(pause);
                say(&dialect.words(&piece))?;
            }
            say(&dialect.end(&text, None))
        }
        Answer::Ends(text, finish) => {
            say(&stream)?;
            say(&dialect.begin())?;
            for piece in pieces(&text) {
                say(&dialect.words(&piece))?;
            }
            say(&dialect.end(&text, Some(finish)))
        }
        Answer::Calls(calls) => {
            say(&stream)?;
            say(&dialect.calls(&calls))
        }
        Answer::Events(events) => {
            say(&stream)?;
            events.iter().try_for_each(|said| say(&dialect.event(said)))
        }
        Answer::DiesAfter(text) => {
            say(&stream)?;
            say(&dialect.begin())?;
            pieces(&text).iter().try_for_each(|piece| say(&dialect.words(piece)))
        }
        Answer::HangsAfter(text) => {
            say(&stream)?;
            say(&dialect.begin())?;
            say(&dialect.words(&text))?;
            std::thread::park_timeout(Duration::from_mins(2));
            Ok(())
        }
        Answer::Garbage => {
            let body = "<html>\u{1f30d} not what you asked for</html>";
            let length = body.len();
            say(&format!("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {length}\r\n\r\n"))?;
            say(body)
        }
        Answer::Status { code, retry_after, said } => {
            let body = json!({"error": {"message": said, "type": "x"}}).to_string();
            let retry = retry_after.map(|wait| format!("retry-after: {wait}\r\n")).unwrap_or_default();
            let length = body.len();
            say(&format!(
                "HTTP/1.1 {code} No\r\ncontent-type: application/json\r\n{retry}content-length: {length}\r\n\r\n"
            ))?;
            say(&body)
        }
    }
}

fn pieces(text: &str) -> Vec<String> {
    text.split_inclusive(' ').map(str::to_owned).collect()
}
