//! A model server on loopback that speaks chat completions, well or badly, as the test says.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};

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
        format!(
            "[model]\nprovider = \"openai\"\nname = \"play\"\nbase_url = \"http://127.0.0.1:{}/v1\"\nsilence_max = \"2s\"\n",
            self.port
        )
    }

    /// The bodies of the requests so far.
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.seen.lock().unwrap().clone()
    }
}

/// The answer to the request for the first words of a new self.
pub(crate) fn birth_words(request: &Value) -> Option<Answer> {
    let system = request["messages"][0]["content"].as_str().unwrap_or_default();
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

fn serve(
    stream: TcpStream,
    first_words: fn(&Value) -> Option<Answer>,
    script: &Script,
    requests: &Mutex<Vec<Value>>,
) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
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
    let answer = first_words(&request).unwrap_or_else(scripted);
    // a client that went away is what some tests are about
    let _ = write(stream, answer);
}

fn write(mut out: TcpStream, answer: Answer) -> std::io::Result<()> {
    let stream = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    match answer {
        Answer::Says(text) => {
            out.write_all(stream.as_bytes())?;
            for piece in pieces(&text) {
                event(&mut out, json!({"content": piece}), None)?;
            }
            end(&mut out, "stop")
        }
        Answer::SaysSlowly { text, pause } => {
            out.write_all(stream.as_bytes())?;
            for piece in pieces(&text) {
                std::thread::park_timeout(pause);
                event(&mut out, json!({"content": piece}), None)?;
            }
            end(&mut out, "stop")
        }
        Answer::Ends(text, finish) => {
            out.write_all(stream.as_bytes())?;
            for piece in pieces(&text) {
                event(&mut out, json!({"content": piece}), None)?;
            }
            end(&mut out, finish)
        }
        Answer::Calls(calls) => {
            out.write_all(stream.as_bytes())?;
            for (index, (name, input)) in calls.into_iter().enumerate() {
                let call = json!({"index": index, "id": format!("c{index}"), "type": "function",
                    "function": {"name": name, "arguments": input.to_string()}});
                event(&mut out, json!({"tool_calls": [call]}), None)?;
            }
            end(&mut out, "tool_calls")
        }
        Answer::DiesAfter(text) => {
            out.write_all(stream.as_bytes())?;
            for piece in pieces(&text) {
                event(&mut out, json!({"content": piece}), None)?;
            }
            Ok(())
        }
        Answer::HangsAfter(text) => {
            out.write_all(stream.as_bytes())?;
            event(&mut out, json!({"content": text}), None)?;
            std::thread::park_timeout(Duration::from_mins(2));
            Ok(())
        }
        Answer::Garbage => {
            let body = "<html>\u{1f30d} not what you asked for</html>";
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            out.write_all(head.as_bytes())?;
            out.write_all(body.as_bytes())
        }
        Answer::Status { code, retry_after, said } => {
            let body = json!({"error": {"message": said, "type": "x"}}).to_string();
            let retry = retry_after.map(|wait| format!("retry-after: {wait}\r\n")).unwrap_or_default();
            let head = format!(
                "HTTP/1.1 {code} No\r\ncontent-type: application/json\r\n{retry}content-length: {}\r\n\r\n",
                body.len()
            );
            out.write_all(head.as_bytes())?;
            out.write_all(body.as_bytes())
        }
    }
}

fn pieces(text: &str) -> Vec<String> {
    text.split_inclusive(' ').map(str::to_owned).collect()
}

fn event(out: &mut TcpStream, delta: Value, finish: Option<&str>) -> std::io::Result<()> {
    let chunk = json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
    out.write_all(format!("data: {chunk}\n\n").as_bytes())
}

fn end(out: &mut TcpStream, finish: &str) -> std::io::Result<()> {
    event(out, json!({}), Some(finish))?;
    out.write_all(b"data: [DONE]\n\n")
}
