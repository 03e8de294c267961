//! The connection with one server: made, asked for its tools, called, and ended. The protocol itself is `rmcp`'s.
//!
//! Every question has a deadline, and one that is dropped is cancelled at the server. A server may ask nothing of us:
//! neither a model, nor folders, nor a person.

use std::{collections::HashMap, error::Error, fmt, sync::Arc, time::Duration};

use reqwest::{Url, header::HeaderMap, redirect};
use rmcp::{
    ClientHandler, RoleClient,
    model::{CallToolRequestParams, CallToolResponse, ClientConfig, Implementation, PaginatedRequestParams},
    service::{
        ClientInitializeError, NotificationContext, Peer, RunningService, ServiceError, serve_client_with_ct,
    },
    transport::{
        StreamableHttpClientTransport, async_rw::AsyncRwTransport,
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use serde_json::{Map, Value};
use tokio::sync::{Notify, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    config::How,
    process::{Process, Program},
    shelf::Said,
};
use crate::{provider::is_loopback, tools::Spawner};

/// How long a server may take to start and to greet; `npx` and its like fetch what they run first.
const GREETING_MAX: Duration = Duration::from_mins(1);
/// How long it may take to say which tools it has, over all pages.
const LIST_MAX: Duration = Duration::from_secs(30);
/// The most pages of a list.
const PAGES_MAX: usize = 20;
/// How long a connection may take.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// How long the end of a connection may take, and then that of the process behind it.
const CLOSING_MAX: Duration = Duration::from_millis(300);
const ENDING_MAX: Duration = Duration::from_millis(500);
/// The longest message: much more than a model is shown of it.
const MESSAGE_BYTES_MAX: usize = 4 << 20;
/// How long news of the end of a process may take, once its connection has ended.
const NEWS_MAX: Duration = Duration::from_millis(300);

/// Hears what a server tells.
struct Ear {
    list_changed: Arc<Notify>,
}

impl ClientHandler for Ear {
    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.list_changed.notify_one();
    }

    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(rmcp::model::ClientCapabilities::default(), Implementation::new("lisa", ipc::BUILD))
    }
}

/// A connection that stands.
pub(super) struct Link {
    peer: Peer<RoleClient>,
    process: Option<Process>,
    list_changed: Arc<Notify>,
    lost: Arc<Notify>,
    /// Closed when the connection has ended.
    closed: watch::Receiver<()>,
    /// Ends the connection when it is dropped.
    open: DropGuard,
}

/// What it is called with.
#[derive(Clone)]
pub(super) struct Line {
    peer: Peer<RoleClient>,
    lost: Arc<Notify>,
}

/// Why a call has no answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoAnswer {
    /// The server refused it, and why.
    Refused(String),
    /// The connection broke, and how.
    Lost(String),
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(why) => write!(f, "the server refused it: {why}"),
            Self::Lost(how) => {
                write!(
                    f,
                    "the server was lost ({how}); whether it took effect is unknown, look before doing it again"
                )
            }
        }
    }
}

impl Link {
    /// Makes the connection, or says why there is none.
    pub(super) async fn make(how: &How, spawner: &Spawner) -> Result<Self, String> {
        let made = async {
            match how {
                How::Program { command, args, env, cwd } => {
                    let program = Program {
                        command: command.clone(),
                        args: args.clone(),
                        env: env.clone(),
                        cwd: cwd.clone(),
                    };
                    Self::with_program(program, spawner).await
                }
                How::Http { url, headers } => Self::with_address(url, headers).await,
            }
        };
        let late = format!("it did not greet within {} s", GREETING_MAX.as_secs());
        tokio::time::timeout(GREETING_MAX, made).await.unwrap_or(Err(late))
    }

    /// With the rights of a person, whose program it is: what the agent gave up is no business of a server.
    async fn with_program(program: Program, spawner: &Spawner) -> Result<Self, String> {
        let (command, runtime) = (program.command.clone(), tokio::runtime::Handle::current());
        let started = spawner.as_before(move || {
            let _in = runtime.enter();
            Process::start(&program, std::env::vars_os())
        });
        let (process, pipes) = started
            .await
            .and_then(|started| started)
            .map_err(|error| format!("`{command}` could not be started: {error}"))?;
        let transport =
            AsyncRwTransport::new_client(pipes.output, pipes.input).with_max_line_length(MESSAGE_BYTES_MAX);
        let (ear, list_changed) = ear();
        let open = CancellationToken::new();
        let greeted = tokio::select! {
            biased;
            greeted = serve_client_with_ct(ear, transport, open.clone()) => greeted,
            ended = process.ended() => return Err(ended),
        };
        match greeted {
            Ok(service) => Ok(Self::standing(service, open, Some(process), list_changed)),
            // the end of a process says more than the end of its pipe, unless it was us who left
            Err(
                error @ (ClientInitializeError::ConnectionClosed(_)
                | ClientInitializeError::TransportError { .. }),
            ) => match tokio::time::timeout(NEWS_MAX, process.ended()).await {
                Ok(ended) => Err(ended),
                Err(_) => Err(no_greeting(&error)),
            },
            Err(error) => Err(no_greeting(&error)),
        }
    }

    async fn with_address(url: &Url, headers: &HeaderMap) -> Result<Self, String> {
        let client = client(url).map_err(|error| innermost(&error))?;
        let headers: HashMap<_, _> =
            headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        let config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
            .custom_headers(headers)
            .max_sse_event_size(MESSAGE_BYTES_MAX)
            .max_json_response_size(MESSAGE_BYTES_MAX)
            .max_error_response_size(4096);
        let (ear, list_changed) = ear();
        let (transport, open) =
            (StreamableHttpClientTransport::with_client(client, config), CancellationToken::new());
        let service =
            serve_client_with_ct(ear, transport, open.clone()).await.map_err(|error| no_greeting(&error))?;
        Ok(Self::standing(service, open, None, list_changed))
    }

    fn standing(
        service: RunningService<RoleClient, Ear>,
        open: CancellationToken,
        process: Option<Process>,
        list_changed: Arc<Notify>,
    ) -> Self {
        let peer = service.peer().clone();
        let (stands, closed) = watch::channel(());
        tokio::spawn(async move {
            let _ = service.waiting().await;
            drop(stands);
        });
        Self { peer, process, list_changed, lost: Arc::default(), closed, open: open.drop_guard() }
    }

    /// What it is called with, by as many as want to.
    pub(super) fn line(&self) -> Line {
        Line { peer: self.peer.clone(), lost: self.lost.clone() }
    }

    /// Waits until the server says that its list is another.
    pub(super) async fn list_changed(&self) {
        self.list_changed.notified().await;
    }

    /// Waits until the connection has ended, and says how.
    pub(super) async fn ended(&self) -> String {
        let mut closed = self.closed.clone();
        let process = async {
            match &self.process {
                Some(process) => process.ended().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            ended = process => ended,
            () = self.lost.notified() => "the connection broke".to_owned(),
            _ = closed.changed() => match &self.process {
                Some(process) => {
                    let news = tokio::time::timeout(NEWS_MAX, process.ended()).await;
                    news.unwrap_or_else(|_| "it closed its output".to_owned())
                }
                None => "it closed the connection".to_owned(),
            },
        }
    }

    /// Ends it in order, and the process behind it.
    pub(super) async fn end(self) {
        let Self { process, open, mut closed, .. } = self;
        drop(open);
        let _ = tokio::time::timeout(CLOSING_MAX, closed.changed()).await;
        if let Some(process) = process {
            process.end(ENDING_MAX).await;
        }
    }
}

impl Line {
    /// Which tools there are.
    pub(super) async fn list(&self) -> Result<Vec<Said>, String> {
        let late = format!("it did not say within {} s which tools it has", LIST_MAX.as_secs());
        tokio::time::timeout(LIST_MAX, self.pages()).await.unwrap_or(Err(late))
    }

    async fn pages(&self) -> Result<Vec<Said>, String> {
        let (mut found, mut cursor) = (Vec::new(), None);
        for _ in 0..PAGES_MAX {
            let asked = PaginatedRequestParams::default().with_cursor(cursor);
            let page = self.peer.list_tools(Some(asked)).await.map_err(|error| match no_answer(&error) {
                NoAnswer::Refused(why) | NoAnswer::Lost(why) => {
                    format!("it did not say which tools it has: {why}")
                }
            })?;
            found.extend(page.tools.into_iter().map(|tool| Said {
                name: tool.name.into_owned(),
                description: tool.description.or(tool.title.map(Into::into)).unwrap_or_default().into_owned(),
                schema: tool.input_schema.as_ref().clone(),
            }));
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(found);
            }
        }
        Err(format!("its list of tools has more than {PAGES_MAX} pages"))
    }

    /// Calls a tool. Dropped before it answers, the call is cancelled at the server.
    pub(super) async fn call(
        &self,
        tool: &str,
        input: Map<String, Value>,
    ) -> Result<CallToolResponse, NoAnswer> {
        let asked = CallToolRequestParams::new(tool.to_owned()).with_arguments(input);
        self.peer.call_tool_once(asked).await.map_err(|error| {
            let no_answer = no_answer(&error);
            if matches!(no_answer, NoAnswer::Lost(_)) {
                self.lost.notify_one();
            }
            no_answer
        })
    }
}

fn ear() -> (Ear, Arc<Notify>) {
    let list_changed = Arc::new(Notify::new());
    (Ear { list_changed: list_changed.clone() }, list_changed)
}

fn client(url: &Url) -> Result<reqwest::Client, reqwest::Error> {
    // Only the first caller in a process installs it; for every later one it is there.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("lisa/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_MAX)
        // A redirect would carry the headers somewhere nobody named.
        .redirect(redirect::Policy::none());
    if is_loopback(url) {
        builder = builder.no_proxy();
    }
    if url.scheme() == "http" {
        // No certificate is ever looked at, so none is loaded: machines without any are common.
        builder = builder.tls_certs_only([]);
    }
    builder.build()
}

fn no_greeting(error: &ClientInitializeError) -> String {
    if error.is_authorization_required() {
        return "it wants to know who calls: put its key into `headers`, as `Authorization`".to_owned();
    }
    match error {
        ClientInitializeError::ConnectionClosed(_) => {
            "it closed the connection instead of greeting".to_owned()
        }
        ClientInitializeError::JsonRpcError(error) => format!("it refused to greet: {}", error.message),
        ClientInitializeError::TransportError { error, .. } => {
            format!("it could not be reached: {}", innermost(error.error.as_ref()))
        }
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => {
            "it speaks no version of the protocol that is spoken here".to_owned()
        }
        // others quote the whole message
        _ => "what it greeted with is not the protocol".to_owned(),
    }
}

fn no_answer(error: &ServiceError) -> NoAnswer {
    match error {
        ServiceError::McpError(error) => NoAnswer::Refused(error.message.to_string()),
        ServiceError::TransportSend(error) => NoAnswer::Lost(innermost(error.error.as_ref())),
        ServiceError::UnexpectedResponse => {
            NoAnswer::Refused("what it answered is not the protocol".to_owned())
        }
        ServiceError::Cancelled { .. } => NoAnswer::Refused("it was cancelled".to_owned()),
        _ => NoAnswer::Lost("it ended".to_owned()),
    }
}

/// The innermost cause, which is the one that says what happened, and names no address.
fn innermost(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
