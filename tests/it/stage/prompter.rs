//! One who stands between her and a server with a model that knows nothing, and puts the beginning of a call into its mouth.
//!
//! What she asks is passed on with that; what the server streams comes back byte for byte.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};

/// What the server is made to do with a question that no tool has answered yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prompt {
    /// Call this tool: the call is begun, and the server's grammar allows nothing but to end it.
    Call(&'static str),
    /// Begin to call this tool, and then go on as it likes, which its own grammar forbids.
    Babble(&'static str),
    /// Say whatever it likes, without tools: what it likes is not always well-formed, and with tools the server looks.
    Speak,
    /// Whatever it likes, with all tools.
    Anything,
}

/// The most tokens of an answer in words: a model that knows nothing does not know when to end.
const WORDS_MAX: u32 = 8;
/// The most of a call.
const CALL_MAX: u32 = 1500;

/// The one between.
pub(crate) struct Prompter {
    port: u16,
    seen: Arc<Mutex<Vec<Value>>>,
}

impl Prompter {
    /// Stands before the server at `port`.
    pub(crate) fn before(server: u16, prompt: Prompt) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen: Arc<Mutex<Vec<Value>>> = Arc::default();
        let requests = seen.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let requests = requests.clone();
                // one of the two went away, which the test sees by itself
                std::thread::spawn(move || pass(stream, server, prompt, &requests).unwrap_or_default());
            }
        });
        Self { port, seen }
    }

    /// Where it listens.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// What she asked, before anything was put in.
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.seen.lock().unwrap().clone()
    }
}

fn pass(
    mut asker: TcpStream,
    server: u16,
    prompt: Prompt,
    requests: &Mutex<Vec<Value>>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(asker.try_clone()?);
    let (mut path, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line == "\r\n" {
            break;
        }
        if let Some(rest) = line.strip_prefix("POST ") {
            rest.split(' ').next().unwrap_or_default().clone_into(&mut path);
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let mut request: Value = serde_json::from_slice(&body)?;
    requests.lock().unwrap().push(request.clone());
    prompted(&mut request, prompt, &path);
    let body = request.to_string();
    let mut there = TcpStream::connect(("127.0.0.1", server))?;
    write!(
        there,
        "POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )?;
    std::io::copy(&mut there, &mut asker)?;
    asker.shutdown(Shutdown::Both)
}

fn prompted(request: &mut Value, prompt: Prompt, path: &str) {
    let responses = path.ends_with("/responses");
    let most = if responses { "max_output_tokens" } else { "max_tokens" };
    let (tool, is_forced) = match prompt {
        Prompt::Call(tool) if !is_answered(request) => (tool, true),
        Prompt::Babble(tool) if !is_answered(request) => (tool, false),
        Prompt::Call(_) | Prompt::Babble(_) | Prompt::Speak => {
            request[most] = json!(WORDS_MAX);
            let members = request.as_object_mut().unwrap();
            members.retain(|name, _| name != "tools" && name != "tool_choice");
            return;
        }
        Prompt::Anything => {
            request[most] = json!(WORDS_MAX);
            return;
        }
    };
    request[most] = json!(CALL_MAX);
    let name = |offered: &Value| offered["function"]["name"] == tool || offered["name"] == tool;
    let tools = request["tools"].as_array_mut().unwrap();
    tools.retain(name);
    tools.iter_mut().for_each(only_what_is_required);
    if is_forced {
        request["tool_choice"] =
            if path.ends_with("/messages") { json!({"type": "any"}) } else { json!("required") };
    }
    let begun = format!("<tool_call>\n{{\"name\": \"{tool}\", \"arguments\": {{");
    request["messages"].as_array_mut().unwrap().push(json!({"role": "assistant", "content": begun}));
}

/// A tool without what may be left out: one who knows nothing does not know when a text ends either.
fn only_what_is_required(tool: &mut Value) {
    let schema = tool.pointer_mut("/function/parameters").map_or("/input_schema", |_| "/function/parameters");
    let Some(schema) = tool.pointer_mut(schema) else { return };
    let required = schema["required"].clone();
    let properties = schema["properties"].as_object_mut().unwrap();
    properties.retain(|name, _| required.as_array().is_some_and(|names| names.iter().any(|n| n == name)));
}

/// Whether what came last is what a tool answered.
fn is_answered(request: &Value) -> bool {
    let last =
        request["messages"].as_array().and_then(|messages| messages.last()).cloned().unwrap_or_default();
    last["role"] == "tool" || last["content"][0]["type"] == "tool_result"
}
