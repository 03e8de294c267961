//! A house that thinks with the model of this bench, and a client of its chat socket.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
    time::{Duration, Instant},
};

use ipc::home::{Home, Run};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::{Value, json};

use super::Series;

/// How long anything may take before the run is given up.
const PATIENCE: Duration = Duration::from_secs(30);

/// Nanoseconds of this process.
pub(crate) fn now_ns() -> u128 {
    static BEGAN: OnceLock<Instant> = OnceLock::new();
    BEGAN.get_or_init(Instant::now).elapsed().as_nanos()
}

/// How long ago a piece left that says when.
pub(crate) fn since_ns(piece: &str) -> Option<Duration> {
    let left: u128 = piece.trim().parse().ok()?;
    u64::try_from(now_ns().saturating_sub(left)).ok().map(Duration::from_nanos)
}

/// A home with a supervisor, which ends with the run however that ends.
pub(crate) struct House {
    home: PathBuf,
    bin: PathBuf,
}

impl House {
    /// Born without a model, so that no word of the birth is asked of it; then it thinks with the one at `port`.
    pub(crate) fn up(folder: &Path, port: u16) -> Self {
        let house = Self { home: folder.join("home"), bin: folder.join("bin") };
        fs::create_dir_all(&house.bin).unwrap();
        for (built, name) in [
            (env!("CARGO_BIN_EXE_it-lisa"), "lisa"),
            (env!("CARGO_BIN_EXE_it-supervisor"), "lisa-supervisor"),
            (env!("CARGO_BIN_EXE_it-agent"), "lisa-agent"),
            (env!("CARGO_BIN_EXE_it-soul"), "lisa-soul"),
            (env!("CARGO_BIN_EXE_it-heartbeat"), "lisa-heartbeat"),
        ] {
            fs::hard_link(built, house.bin.join(name)).unwrap();
        }
        house.lisa(&["up", "--detach"]);
        let mut chat = house.chat();
        let end = Instant::now() + PATIENCE;
        while !chat.ask("_lisa/status", &Value::Null)["soul"]["commit"].is_string() {
            assert!(Instant::now() < end, "she was not born in time");
            std::thread::park_timeout(Duration::from_millis(5));
        }
        house.lisa(&["down"]);
        let config = format!(
            "[model]\nprovider = \"openai\"\nname = \"play\"\nbase_url = \"http://127.0.0.1:{port}/v1\"\n"
        );
        fs::write(house.home.join("config.toml"), config).unwrap();
        house.lisa(&["up", "--detach"]);
        house
    }

    pub(crate) fn down(&self) {
        self.lisa(&["down"]);
    }

    pub(crate) fn chat(&self) -> Chat {
        let stream = UnixStream::connect(Run::find(&Home::at(&self.home)).chat_socket()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut chat = Chat { reader: BufReader::new(stream), asked: 0 };
        chat.ask("initialize", &json!({"protocolVersion": 1, "clientCapabilities": {}}));
        chat
    }

    #[expect(clippy::disallowed_methods, reason = "the one place where this measurement starts processes")]
    fn lisa(&self, arguments: &[&str]) {
        let mut lisa = Command::new(self.bin.join("lisa"));
        // nothing of this machine's decides which model thinks
        lisa.env_clear().env("HOME", &self.home).env("LISA_HOME", &self.home).args(arguments);
        let output = lisa.stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

impl Drop for House {
    fn drop(&mut self) {
        // where it was put down in order, nobody is there any more
        let pid =
            fs::read_to_string(Home::at(&self.home).lock()).ok().and_then(|pid| pid.trim().parse().ok());
        let is_ours =
            |pid: &i32| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe.starts_with(&self.bin));
        if let Some(pid) = pid.filter(is_ours) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}

/// A client of the chat socket, as anybody could write one.
pub(crate) struct Chat {
    reader: BufReader<UnixStream>,
    asked: u64,
}

impl Chat {
    pub(crate) fn new_session(&mut self) -> String {
        let begun = self.ask("session/new", &json!({"cwd": "/", "mcpServers": []}));
        begun["sessionId"].as_str().unwrap().to_owned()
    }

    /// Says something, hands on each piece of her answer, and returns when the turn is over.
    pub(crate) fn say(&mut self, session: &str, text: &str, hear: impl FnMut(&str)) {
        let prompt = json!([{"type": "text", "text": text}]);
        let params = json!({"sessionId": session, "prompt": prompt});
        let ended = self.ask_hearing("session/prompt", &params, hear);
        assert_eq!(ended["stopReason"], "end_turn", "{text}: {ended}");
    }

    /// How long each piece of a slow answer takes to arrive.
    pub(crate) fn pieces_on_their_way(&mut self, name: &str) -> Series {
        let session = self.new_session();
        let mut samples = Vec::new();
        self.say(&session, "slowly", |piece| samples.extend(since_ns(piece)));
        Series { name: name.to_owned(), samples }
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.ask_hearing(method, params, |_| {})
    }

    fn ask_hearing(&mut self, method: &str, params: &Value, mut hear: impl FnMut(&str)) -> Value {
        self.asked += 1;
        let request = json!({"jsonrpc": "2.0", "id": self.asked, "method": method, "params": params});
        self.reader.get_mut().write_all(format!("{request}\n").as_bytes()).unwrap();
        loop {
            let mut line = String::new();
            assert!(self.reader.read_line(&mut line).unwrap() > 0, "the supervisor is gone");
            let mut message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == self.asked {
                return message["result"].take();
            }
            let update = &message["params"]["update"];
            if update["sessionUpdate"] == "agent_message_chunk"
                && let Some(piece) = update["content"]["text"].as_str()
            {
                hear(piece);
            }
        }
    }
}
