//! The connection to the chat socket: questions with deadlines, answers by id, news in the order they came.
//!
//! The stream is read in one place, and every message is taken from it whole: waiting for the next one may be given up
//! at any time without losing part of it (B21). News that come while an answer is awaited are kept for later, so a
//! reply and the answer that ends its turn are seen in the order they were sent.

use std::{
    collections::VecDeque,
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use futures_util::{SinkExt as _, StreamExt as _};
use ipc::{
    endpoint::our_uid,
    exit::{Exit, Fault},
    home::{Home, Run, SOCKET_PATH_BYTES_MAX},
    wire::{FrameCodec, FrameError, Id, Incoming, Message, Notification, Request, Response, RpcError, code},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::{
    net::UnixStream,
    time::{Instant, sleep, timeout, timeout_at},
};
use tokio_util::codec::Framed;

/// How long a full backlog is waited out (B25), and how long one message may take to be written.
const CONNECT_PATIENCE: Duration = Duration::from_secs(5);

/// How long it may take to find out whether a supervisor is still there.
const PROBE_PATIENCE: Duration = Duration::from_secs(1);

/// How long an answer may take that the supervisor gives itself.
pub(crate) const ANSWER_PATIENCE: Duration = Duration::from_secs(10);

/// How long an answer may take that a child gives, which may be restarting.
pub(crate) const CHILD_PATIENCE: Duration = Duration::from_secs(30);

/// How many news are kept while an answer is awaited: far more than a turn streams in that time, far less than memory.
const NEWS_MAX: usize = 10_000;

/// The one question that clients are asked.
const PERMISSION: &str = "session/request_permission";

/// One connection to a supervisor.
#[derive(Debug)]
pub(crate) struct Link {
    frames: Framed<UnixStream, FrameCodec>,
    asked: i64,
    news: VecDeque<Heard>,
}

/// What comes over the connection.
#[derive(Debug, PartialEq)]
pub(crate) enum Heard {
    /// The answer to something that was sent.
    Answer(Response),
    /// Something that was not asked for.
    News(Notification),
    /// A call that waits for a person's word; answered with [`Link::answer`], or left to others.
    Question(Request),
}

/// Why something could not be asked, or was not answered.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LinkError {
    /// Nobody listens.
    #[error("no supervisor is running for the home `{home}`; start one with `lisa up`")]
    NoSupervisor {
        /// The home.
        home: PathBuf,
    },
    /// Somebody else listens.
    #[error("the socket `{path}` is served by user {peer}, not by us ({us}); nothing was said to them")]
    Foreign {
        /// The socket.
        path: PathBuf,
        /// Who serves it.
        peer: u32,
        /// Who we are.
        us: u32,
    },
    /// The system refused.
    #[error("could not reach the supervisor at `{path}`")]
    Unreachable {
        /// The socket.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The connection ended.
    #[error("the supervisor is gone; what was said is kept on disk, and `lisa up` starts it again")]
    Gone,
    /// The connection ended, and a supervisor is there all the same.
    #[error(
        "the supervisor let this client go, as it does with one that does not read; what was said is kept, so attach again"
    )]
    LetGo,
    /// What comes over the connection makes no sense.
    #[error("the supervisor cannot be understood: {0}; `lisa` and `lisa-supervisor` must be of one build")]
    Unintelligible(String),
    /// What was to be said does not fit into one message.
    #[error("could not say that")]
    TooLong {
        /// The limit.
        source: FrameError,
    },
    /// No answer in time.
    #[error("no answer to `{method}` within {} s; `lisa status` shows how the processes are", patience.as_secs())]
    Late {
        /// What was asked.
        method: String,
        /// How long was waited.
        patience: Duration,
    },
    /// An answer that says no.
    #[error(transparent)]
    Refused(#[from] RpcError),
}

impl From<LinkError> for Fault {
    fn from(error: LinkError) -> Self {
        let exit = match error {
            LinkError::NoSupervisor { .. } | LinkError::Gone => Exit::Unavailable,
            LinkError::LetGo
            | LinkError::Foreign { .. }
            | LinkError::Unreachable { .. }
            | LinkError::Unintelligible(_)
            | LinkError::TooLong { .. }
            | LinkError::Late { .. }
            | LinkError::Refused(_) => Exit::Failed,
        };
        Self { exit, source: error.into() }
    }
}

impl Link {
    /// Connects to the supervisor of `home` and opens the conversation.
    pub(crate) async fn open(home: &Home) -> Result<Self, LinkError> {
        let stream = connect(home, &Run::find(home).chat_socket()).await?;
        let frames = Framed::new(stream, FrameCodec::default());
        let mut link = Self { frames, asked: 0, news: VecDeque::new() };
        let hello = json!({
            "protocolVersion": 1,
            "clientCapabilities": {},
            "clientInfo": {"name": "lisa", "version": ipc::BUILD},
        });
        let answer: Value = link.ask("initialize", hello, ANSWER_PATIENCE).await?;
        match answer.get("protocolVersion").and_then(Value::as_u64) {
            Some(1) => Ok(link),
            other => {
                Err(LinkError::Unintelligible(format!("it speaks version {other:?} of the protocol, not 1")))
            }
        }
    }

    /// Asks and waits for the answer. Answers to earlier questions that come meanwhile are dropped as late, so this is
    /// not for the middle of a turn.
    pub(crate) async fn ask<T: DeserializeOwned>(
        &mut self,
        method: &str,
        params: impl Serialize,
        patience: Duration,
    ) -> Result<T, LinkError> {
        let late = |_| LinkError::Late { method: method.to_owned(), patience };
        let answer = timeout(patience, async {
            match self.send(method, params).await {
                Ok(id) => self.answer_to(&id).await,
                Err(LinkError::Gone) => Err(self.last_words().await),
                Err(error) => Err(error),
            }
        });
        let value = answer.await.map_err(late)??;
        serde_json::from_value(value).map_err(|error| {
            LinkError::Unintelligible(format!("its answer to `{method}` does not fit: {error}"))
        })
    }

    /// Asks without waiting: the answer with this id comes out of [`Link::next`].
    pub(crate) async fn send(&mut self, method: &str, params: impl Serialize) -> Result<Id, LinkError> {
        self.asked += 1;
        let id = Id::Number(self.asked);
        self.write(method, &Message::request(id.clone(), method, to_value(params))).await?;
        Ok(id)
    }

    /// Tells something that is not answered.
    pub(crate) async fn tell(&mut self, method: &str, params: impl Serialize) -> Result<(), LinkError> {
        self.write(method, &Message::notification(method, to_value(params))).await
    }

    /// Answers a question.
    pub(crate) async fn answer(&mut self, id: Id, outcome: Result<Value, RpcError>) -> Result<(), LinkError> {
        self.write(PERMISSION, &Message::response(id, outcome)).await
    }

    /// Waits for whatever comes next; giving up the wait loses nothing.
    pub(crate) async fn next(&mut self) -> Result<Heard, LinkError> {
        match self.news.pop_front() {
            Some(kept) => Ok(kept),
            None => self.read().await,
        }
    }

    async fn answer_to(&mut self, id: &Id) -> Result<Value, LinkError> {
        loop {
            match self.read().await? {
                // an error without an id is about the connection itself
                Heard::Answer(answer)
                    if answer.id == *id || (answer.id == Id::Null && answer.outcome.is_err()) =>
                {
                    return Ok(answer.outcome?);
                }
                Heard::Answer(_) => {}
                Heard::News(_) | Heard::Question(_) if self.news.len() >= NEWS_MAX => {
                    return Err(LinkError::Unintelligible("it tells a lot and does not answer".to_owned()));
                }
                kept @ (Heard::News(_) | Heard::Question(_)) => self.news.push_back(kept),
            }
        }
    }

    /// What the other end said before it hung up: why it did, or nothing.
    async fn last_words(&mut self) -> LinkError {
        match self.read().await {
            Ok(Heard::Answer(Response { id: Id::Null, outcome: Err(error) })) => LinkError::Refused(error),
            Ok(_) | Err(_) => LinkError::Gone,
        }
    }

    async fn read(&mut self) -> Result<Heard, LinkError> {
        loop {
            match self.frames.next().await {
                Some(Ok(Incoming::Message(Message::Response(answer)))) => return Ok(Heard::Answer(answer)),
                Some(Ok(Incoming::Message(Message::Notification(news)))) => return Ok(Heard::News(news)),
                Some(Ok(Incoming::Message(Message::Request(question)))) if question.method == PERMISSION => {
                    return Ok(Heard::Question(question));
                }
                Some(Ok(Incoming::Message(Message::Request(question)))) => {
                    // we offered no capabilities; an unanswered question would hold up the turn
                    let said = format!("`{}` is not answered by this client", question.method);
                    let no = RpcError::new(code::METHOD_NOT_FOUND, said);
                    self.write(&question.method, &Message::response(question.id, Err(no))).await?;
                }
                Some(Ok(Incoming::Malformed { why, .. })) => return Err(LinkError::Unintelligible(why)),
                Some(Err(error @ FrameError::TooLong)) => {
                    return Err(LinkError::Unintelligible(error.to_string()));
                }
                // a supervisor that is killed may leave half a line behind
                Some(Err(FrameError::EndInLine { .. } | FrameError::Io(_))) | None => {
                    return Err(LinkError::Gone);
                }
            }
        }
    }

    async fn write(&mut self, method: &str, message: &Message) -> Result<(), LinkError> {
        match timeout(CONNECT_PATIENCE, self.frames.send(message)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(source @ FrameError::TooLong)) => Err(LinkError::TooLong { source }),
            Ok(Err(_)) => Err(LinkError::Gone),
            Err(_) => Err(LinkError::Late { method: method.to_owned(), patience: CONNECT_PATIENCE }),
        }
    }
}

impl LinkError {
    /// Finds out what the end of a connection to `home` means: that the supervisor is gone, or that it let us go.
    pub(crate) async fn understood(self, home: &Home) -> Self {
        if !matches!(self, Self::Gone) {
            return self;
        }
        // one that is on its way out may still take a call, and then does not answer it
        match timeout(PROBE_PATIENCE, Link::open(home)).await {
            Ok(Ok(_)) => Self::LetGo,
            Ok(Err(_)) | Err(_) => Self::Gone,
        }
    }
}

fn to_value(params: impl Serialize) -> Value {
    serde_json::to_value(params).expect("our own words are JSON")
}

async fn connect(home: &Home, path: &Path) -> Result<UnixStream, LinkError> {
    let nobody = || LinkError::NoSupervisor { home: home.path().to_owned() };
    let unreachable = |source| LinkError::Unreachable { path: path.to_owned(), source };
    if path.as_os_str().len() > SOCKET_PATH_BYTES_MAX {
        // a supervisor of such a home leaves a link to a shorter folder, and there is none
        return Err(nobody());
    }
    let deadline = Instant::now() + CONNECT_PATIENCE;
    let stream = loop {
        match timeout_at(deadline, UnixStream::connect(path)).await {
            Ok(Ok(stream)) => break stream,
            Ok(Err(error)) => match error.kind() {
                io::ErrorKind::NotFound
                | io::ErrorKind::ConnectionRefused
                | io::ErrorKind::ConnectionReset
                | io::ErrorKind::NotADirectory => {
                    return Err(nobody());
                }
                io::ErrorKind::WouldBlock if Instant::now() < deadline => {
                    sleep(Duration::from_millis(5)).await;
                }
                _ => return Err(unreachable(error)),
            },
            Err(late) => return Err(unreachable(late.into())),
        }
    };
    let peer = stream.peer_cred().map_err(unreachable)?.uid();
    let us = our_uid();
    if peer == us { Ok(stream) } else { Err(LinkError::Foreign { path: path.to_owned(), peer, us }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        io::{BufRead as _, BufReader, Write as _},
        os::unix::net::UnixListener,
        thread::JoinHandle,
    };

    const HELLO: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}"#;

    /// A supervisor that waits for a line and answers with lines, over and over, and then hangs up.
    fn fake(script: Vec<Vec<String>>) -> (tempfile::TempDir, Home, JoinHandle<Vec<Value>>) {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        std::fs::create_dir(home.run()).unwrap();
        let listener = UnixListener::bind(Run::find(&home).chat_socket()).unwrap();
        let served = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = BufReader::new(stream.try_clone().unwrap()).lines();
            let mut heard = Vec::new();
            for answers in script {
                let Some(Ok(line)) = asked.next() else { break };
                heard.push(serde_json::from_str(&line).unwrap());
                stream.write_all(answers.concat().as_bytes()).unwrap();
            }
            heard
        });
        (folder, home, served)
    }

    fn lines(lines: &[&str]) -> Vec<String> {
        lines.iter().map(|line| format!("{line}\n")).collect()
    }

    fn block<T>(work: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
    }

    #[test]
    fn nobody_there_is_its_own_sentence_and_exit_code() {
        let folder = tempfile::tempdir().unwrap();
        let check = |home: Home| {
            let fault = Fault::from(block(Link::open(&home)).unwrap_err());
            assert_eq!(fault.exit, Exit::Unavailable, "{fault}");
            assert!(fault.to_string().contains("lisa up"), "{fault}");
        };
        check(Home::at(folder.path().join("none")));
        check(Home::at(folder.path().join("x".repeat(150))));
        let stale = Home::at(folder.path());
        std::fs::create_dir(stale.run()).unwrap();
        drop(UnixListener::bind(Run::find(&stale).chat_socket()).unwrap());
        check(stale);
    }

    #[test]
    fn an_answer_is_told_from_the_news_before_it() {
        let (_folder, home, served) = fake(vec![
            lines(&[HELLO]),
            lines(&[
                r#"{"jsonrpc":"2.0","method":"_lisa/event","params":{"n":"灯塔"}}"#,
                r#"{"jsonrpc":"2.0","id":77,"result":"late"}"#,
                r#"{"jsonrpc":"2.0","id":"fs","method":"fs/read_text_file","params":{}}"#,
                r#"{"jsonrpc":"2.0","id":2,"result":{"clients":3}}"#,
                r#"{"jsonrpc":"2.0","method":"after"}"#,
            ]),
            Vec::new(),
        ]);
        block(async {
            let mut link = Link::open(&home).await.unwrap();
            let answer: Value = link.ask("_lisa/status", Value::Null, ANSWER_PATIENCE).await.unwrap();
            assert_eq!(answer, json!({"clients": 3}));
            let Heard::News(news) = link.next().await.unwrap() else { panic!("news were kept") };
            assert_eq!(news.params, json!({"n": "灯塔"}));
            assert!(matches!(link.next().await, Ok(Heard::News(news)) if news.method == "after"));
            assert!(matches!(link.next().await, Err(LinkError::Gone)));
        });
        let heard = served.join().unwrap();
        assert_eq!(heard[0]["method"], "initialize");
        assert_eq!(heard[0]["params"]["clientInfo"]["name"], "lisa");
        assert_eq!(heard[1], json!({"jsonrpc": "2.0", "id": 2, "method": "_lisa/status"}));
        assert_eq!((&heard[2]["id"], &heard[2]["error"]["code"]), (&json!("fs"), &json!(-32601)));
    }

    #[test]
    fn a_refusal_is_the_sentence_of_the_supervisor() {
        let no = r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32011,"message":"the soul is away"}}"#;
        let (_folder, home, _served) = fake(vec![lines(&[HELLO]), lines(&[no])]);
        block(async {
            let mut link = Link::open(&home).await.unwrap();
            let error = link.ask::<Value>("_lisa/soul", json!({}), ANSWER_PATIENCE).await.unwrap_err();
            let fault = Fault::from(error);
            assert_eq!((fault.exit, fault.to_string().as_str()), (Exit::Failed, "the soul is away"));
        });
    }

    #[test]
    fn a_supervisor_that_dies_in_mid_line_is_gone_and_one_that_babbles_is_named() {
        let check = |last: &str| {
            let (_folder, home, _served) = fake(vec![lines(&[HELLO]), vec![last.to_owned()]]);
            block(async {
                let mut link = Link::open(&home).await.unwrap();
                link.ask::<Value>("_lisa/status", Value::Null, ANSWER_PATIENCE).await.unwrap_err()
            })
        };
        assert!(matches!(check(r#"{"jsonrpc":"2.0","id":2,"resu"#), LinkError::Gone));
        assert!(matches!(check(""), LinkError::Gone));
        assert!(matches!(check("HTTP/1.1 400\n"), LinkError::Unintelligible(_)));
    }

    #[test]
    fn silence_has_a_deadline() {
        let (_folder, home, served) = fake(vec![lines(&[HELLO]), Vec::new(), Vec::new()]);
        block(async {
            let mut link = Link::open(&home).await.unwrap();
            let late = link.ask::<Value>("_lisa/status", Value::Null, Duration::from_millis(20)).await;
            assert!(matches!(late, Err(LinkError::Late { .. })), "{late:?}");
            drop(link);
        });
        served.join().unwrap();
    }

    #[test]
    fn another_version_of_the_protocol_is_refused() {
        let (_folder, home, _served) =
            fake(vec![lines(&[r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":2}}"#])]);
        let error = block(Link::open(&home)).unwrap_err();
        assert!(error.to_string().contains("not 1"), "{error}");
    }
}
