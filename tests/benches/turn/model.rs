//! A model on loopback that answers at once, and a bare client of it.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
};

use serde_json::{Value, json};

use super::{PACE, PACED, PIECES};

/// The server.
pub(crate) struct Model {
    port: u16,
}

impl Model {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // a client that goes away ends its answer
                std::thread::spawn(move || answer(stream).unwrap_or_default());
            }
        });
        Self { port }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}

fn answer(stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    let body = body(&mut reader)?;
    let request: Value = serde_json::from_slice(&body)?;
    let mut out = reader.into_inner();
    out.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")?;
    let said = |piece: &str| {
        let delta = json!({"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": null}]});
        format!("data: {delta}\n\n")
    };
    let messages = request["messages"].as_array().cloned().unwrap_or_default();
    let last = messages.last().cloned().unwrap_or_default();
    let asked = last["content"].to_string();
    let mut finish = "stop";
    if asked.contains("a look") {
        let function = json!({"name": "soul_read", "arguments": "{\"what\":\"identity\"}"});
        let calls = json!([{"index": 0, "id": "c", "type": "function", "function": function}]);
        let delta = json!({"choices": [{"index": 0, "delta": {"tool_calls": calls}, "finish_reason": null}]});
        out.write_all(format!("data: {delta}\n\n").as_bytes())?;
        finish = "tool_calls";
    } else if asked.contains("at length") {
        for number in 0..PIECES {
            out.write_all(said(&format!("piece {number} ")).as_bytes())?;
        }
    } else if asked.contains("slowly") {
        for _ in 0..PACED {
            std::thread::park_timeout(PACE);
            // when it left, by the one clock of this process
            out.write_all(said(&format!("{} ", super::house::now_ns())).as_bytes())?;
        }
    } else {
        out.write_all(said("yes").as_bytes())?;
    }
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]});
    out.write_all(format!("data: {end}\n\ndata: [DONE]\n\n").as_bytes())
}

/// What comes behind the headers, as long as they say.
fn body(reader: &mut BufReader<TcpStream>) -> std::io::Result<Vec<u8>> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line == "\r\n" {
            break;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or_default();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(body)
}

/// Somebody who asks and reads, and nothing else.
pub(crate) mod bare {
    use std::{
        io::{BufRead as _, BufReader, Write as _},
        net::TcpStream,
    };

    use serde_json::{Value, json};

    use crate::{Series, house::since_ns};

    /// Asks, and hands on each piece as it comes in.
    pub(crate) fn ask(port: u16, text: &str, mut hear: impl FnMut(&str)) {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_nodelay(true).unwrap();
        let body = json!({"model": "play", "stream": true, "messages": [{"role": "user", "content": text}]});
        let body = body.to_string();
        write!(
            stream,
            "POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        for line in BufReader::new(stream).lines() {
            let line = line.unwrap();
            let said = line.strip_prefix("data: ").and_then(|data| serde_json::from_str::<Value>(data).ok());
            if let Some(piece) =
                said.as_ref().and_then(|said| said["choices"][0]["delta"]["content"].as_str())
            {
                hear(piece);
            }
        }
    }

    /// How long each piece of a slow answer takes to arrive.
    pub(crate) fn pieces_on_their_way(name: &str, port: u16) -> Series {
        let mut samples = Vec::new();
        ask(port, "slowly", |piece| samples.extend(since_ns(piece)));
        Series { name: name.to_owned(), samples }
    }
}
