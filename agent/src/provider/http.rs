//! The conversation with a server, in whichever dialect: one request, its stream, and the patience to ask again.
//!
//! There is no limit on how long an answer may take, only on how long nothing may come (rows C7.20, C7.21); any byte counts,
//! a comment too (row C7.15). A server on this machine is reached without proxies and without certificates (row C7.22).

use std::{
    hash::{BuildHasher, RandomState},
    marker::PhantomData,
    time::Duration,
};

use jiff::Timestamp;
use reqwest::{
    Client, Response, StatusCode, Url,
    header::{
        ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION,
    },
    redirect,
};
use serde_json::Value;
use tokio::sync::mpsc;
use tracing::{debug, warn};

use super::{
    Answer, Budget, Completion, Delta, Fault, ModelRequest, Provider, ProviderError, call_id,
    reading::{self, SAID_CHARS_MAX},
    retry::{Patience, wish},
    settings::{Key, RemoteSettings, is_loopback, without_query},
    sse::{Event, Framing, Parser},
};

pub(super) use self::glance::glance;

/// What one protocol has of its own: pure functions in both directions.
pub(super) trait Dialect: std::fmt::Debug + Send + Sync + 'static {
    /// The provider's name in opaque state, and before the model's where it is shown.
    const PROVIDER: &'static str;
    /// What is asked, behind the address: `/chat/completions`.
    const METHOD: &'static str;
    /// Headers that each request has besides those of all.
    const HEADERS: &'static [(&'static str, &'static str)];
    /// How an answer is cut into events.
    const FRAMING: Framing = Framing::Events;

    /// An answer that is coming in.
    type Assembly: Assemble;

    /// The header that carries the key.
    fn key_header(key: &str) -> (&'static str, String);

    /// The body of a request.
    fn body(request: &ModelRequest, settings: &RemoteSettings) -> Value;
}

/// An answer that is coming in.
pub(super) trait Assemble: Default + Send {
    /// Takes one event and returns what of it can be shown.
    fn take(&mut self, event: &Event) -> Result<Vec<Delta>, Fault>;

    /// Whether the last event came, after which nothing does.
    fn is_done(&self) -> bool;

    /// Whether something said that the answer is whole.
    fn is_whole(&self) -> bool;

    /// The answer. `call_id` gives a call its id by its place, `model` is whose opaque state it is.
    fn finish(self, model: &str, call_id: impl Fn(usize) -> String) -> Result<Completion, Fault>;
}

/// How long a connection may take; a server that is there answers within a round trip.
const CONNECT_MAX: Duration = Duration::from_secs(10);

/// The largest event: all arguments of a call may come in one.
const EVENT_BYTES_MAX: usize = 4 << 20;

/// The largest stream: 128 thousand tokens, each in an event of its own of about 400 bytes.
const STREAM_BYTES_MAX: usize = 64 << 20;

/// How much of an answer that is no stream is read; its first words are all that is shown.
const EXCERPT_BYTES_MAX: usize = 64 << 10;

/// How a gzip stream begins.
const GZIP: &[u8] = &[0x1f, 0x8b];

/// A server that speaks the dialect.
#[derive(Debug)]
pub(super) struct Remote<D> {
    client: Client,
    address: Url,
    settings: RemoteSettings,
    model: String,
    endpoint: String,
    patience: Patience,
    budget: Budget,
    dialect: PhantomData<D>,
}

impl<D: Dialect> Remote<D> {
    /// Makes a client for what is set. Nothing is asked yet.
    pub(super) fn new(settings: &RemoteSettings, budget: &Budget) -> Result<Self, ProviderError> {
        let endpoint = without_query(&settings.base_url);
        let model = settings.model();
        let client = client::<D>(settings).map_err(|error| ProviderError {
            model: model.clone(),
            endpoint: endpoint.clone(),
            fault: Fault::Unusable { why: innermost(&error) },
            shown: false,
        })?;
        let mut address = settings.base_url.clone();
        address.set_path(&format!("{}{}", address.path().trim_end_matches('/'), D::METHOD));
        Ok(Self {
            client,
            address,
            settings: settings.clone(),
            model,
            endpoint,
            patience: Patience::default(),
            budget: budget.clone(),
            dialect: PhantomData,
        })
    }

    async fn answer(
        &self,
        asked: &ModelRequest,
        deltas: &mpsc::Sender<Delta>,
    ) -> Result<Completion, ProviderError> {
        let body = D::body(asked, &self.settings).to_string();
        let mut attempt = 1;
        let mut waited = Duration::ZERO;
        loop {
            let mut shown = false;
            let fault = match self.attempt(asked, body.clone(), deltas, &mut shown).await {
                Ok(completion) => return Ok(completion),
                Err(fault) => fault,
            };
            let wish = fault.retry_after();
            let error =
                ProviderError { model: self.model.clone(), endpoint: self.endpoint.clone(), fault, shown };
            let wait =
                error.retryable().then(|| self.patience.wait(attempt, waited, wish, jitter())).flatten();
            let Some(wait) = wait else {
                warn!(model = %self.model, attempt, error = %error.fault, "the model did not answer");
                return Err(error);
            };
            if !self.budget.take(&self.address, now()) {
                warn!(model = %self.model, attempt, error = %error.fault, "the model did not answer, and was asked again often enough of late");
                return Err(error);
            }
            debug!(model = %self.model, attempt, ?wait, error = %error.fault, "the model did not answer; asking again");
            tokio::time::sleep(wait).await;
            waited += wait;
            attempt += 1;
        }
    }

    async fn attempt(
        &self,
        asked: &ModelRequest,
        body: String,
        deltas: &mpsc::Sender<Delta>,
        shown: &mut bool,
    ) -> Result<Completion, Fault> {
        let sent = self.client.post(self.address.clone()).body(body).send().await;
        let mut response = sent.map_err(|error| self.fault(&error))?;
        self.check(&mut response).await?;

        let mut parser = Parser::new(D::FRAMING, EVENT_BYTES_MAX);
        let mut assembly = D::Assembly::default();
        let mut bytes = 0;
        let mut beginning: Vec<u8> = Vec::new();
        while !assembly.is_done() {
            let chunk = match response.chunk().await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => break,
                // The answer was already whole; only what it cost may be missing.
                Err(_) if assembly.is_whole() => break,
                Err(error) => return Err(self.fault(&error)),
            };
            if beginning.len() < GZIP.len() {
                beginning.extend(chunk.iter().take(GZIP.len() - beginning.len()));
                if beginning == GZIP {
                    return Err(Fault::Compressed);
                }
            }
            bytes += chunk.len();
            if bytes > STREAM_BYTES_MAX {
                return Err(Fault::TooLarge { what: "the answer", bytes_max: STREAM_BYTES_MAX });
            }
            for event in parser.push(&chunk) {
                show(assembly.take(&event).map_err(|fault| self.scrubbed(fault))?, deltas, shown).await;
            }
            if parser.overflowed() {
                return Err(Fault::TooLarge { what: "one event", bytes_max: EVENT_BYTES_MAX });
            }
        }
        if let Some(event) = parser.finish() {
            show(assembly.take(&event).map_err(|fault| self.scrubbed(fault))?, deltas, shown).await;
        }
        assembly.finish(&self.settings.name, |at| call_id(asked, at)).map_err(|fault| self.scrubbed(fault))
    }

    /// Whether what comes is a stream of events; otherwise its first words say why not.
    async fn check(&self, response: &mut Response) -> Result<(), Fault> {
        let status = response.status();
        let headers = response.headers().clone();
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let content_type = header(CONTENT_TYPE.as_str()).map(str::to_owned);
        let is_stream = content_type.as_deref().is_none_or(|t| {
            t.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(D::FRAMING.content_type())
        });
        if status == StatusCode::OK && is_stream {
            return match header(CONTENT_ENCODING.as_str()) {
                None | Some("" | "identity") => Ok(()),
                Some(_) => Err(Fault::Compressed),
            };
        }
        // A body that drips is not waited for: what came of it by then is thrown away with it, the status is not.
        let excerpt =
            tokio::time::timeout(self.settings.silence_max, excerpt(response)).await.unwrap_or_default();
        let (said, spent) = explanation(&excerpt);
        if status.is_success() {
            return Err(self.scrubbed(Fault::NotAStream {
                content_type: ipc::text::one_line(
                    content_type.as_deref().unwrap_or("nothing that is named"),
                    80,
                ),
                excerpt: said.unwrap_or_else(|| "(nothing)".to_owned()),
            }));
        }
        let said = if status.is_redirection() { header(LOCATION.as_str()).map(place) } else { said };
        let retry_after = wish(header("retry-after-ms"), header("retry-after"), server_time(&headers));
        let request_id = header("request-id").or_else(|| header("x-request-id"));
        debug!(model = %self.model, %status, request_id, "the server refused");
        let key_variable = self.settings.key_variable.as_str().into();
        Err(self.scrubbed(Fault::Status { status: status.as_u16(), said, spent, retry_after, key_variable }))
    }

    fn fault(&self, error: &reqwest::Error) -> Fault {
        if error.is_connect() || error.is_builder() {
            // Neither is about anything that was said, so that a connection that takes too long is here too.
            return Fault::Unreachable { why: innermost(error) };
        }
        if error.is_timeout() {
            return Fault::Silent { silence: self.settings.silence_max };
        }
        Fault::Broken { why: innermost(error) }
    }

    /// A fault without the key: some servers repeat what they were sent.
    fn scrubbed(&self, mut fault: Fault) -> Fault {
        let Some(key) = self.settings.key.as_ref().map(Key::reveal).filter(|key| !key.is_empty()) else {
            return fault;
        };
        let said = match &mut fault {
            Fault::Status { said: Some(said), .. } | Fault::Reported { said, .. } => said,
            Fault::NotAStream { excerpt, .. } | Fault::Garbled { excerpt } => excerpt,
            Fault::Unreachable { .. }
            | Fault::Silent { .. }
            | Fault::Broken { .. }
            | Fault::Incomplete
            | Fault::Status { said: None, .. }
            | Fault::Compressed
            | Fault::TooLarge { .. }
            | Fault::Unusable { .. } => return fault,
        };
        *said = without(said, key);
        fault
    }
}

impl<D: Dialect> Provider for Remote<D> {
    fn model(&self) -> &str {
        &self.model
    }

    fn stream<'a>(&'a self, request: &'a ModelRequest, deltas: mpsc::Sender<Delta>) -> Answer<'a> {
        Box::pin(async move { self.answer(request, &deltas).await })
    }
}

async fn show(pieces: Vec<Delta>, deltas: &mpsc::Sender<Delta>, shown: &mut bool) {
    for piece in pieces {
        *shown = true;
        // Nobody listens any more; the answer itself still counts.
        let _ = deltas.send(piece).await;
    }
}

fn client<D: Dialect>(settings: &RemoteSettings) -> Result<Client, reqwest::Error> {
    // Only the first caller in a process installs it; for every later one it is there.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static(D::FRAMING.content_type()));
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    for (name, value) in D::HEADERS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    if let Some(key) = &settings.key {
        let (name, value) = D::key_header(key.reveal());
        let mut value = HeaderValue::from_str(&value)
            .expect("a key of printable ASCII makes a header: the choice checked it");
        value.set_sensitive(true);
        headers.insert(HeaderName::from_static(name), value);
    }
    let mut builder = Client::builder()
        .user_agent(concat!("lisa/", env!("CARGO_PKG_VERSION")))
        .default_headers(headers)
        .connect_timeout(CONNECT_MAX.min(settings.silence_max))
        .read_timeout(settings.silence_max)
        // A redirect would carry the conversation somewhere nobody named.
        .redirect(redirect::Policy::none());
    if is_loopback(&settings.base_url) {
        builder = builder.no_proxy();
    }
    if settings.base_url.scheme() == "http" {
        // No certificate is ever looked at, so none is loaded: machines without any are common.
        builder = builder.tls_certs_only([]);
    }
    builder.build()
}

/// The beginning of an answer that is no stream.
async fn excerpt(response: &mut Response) -> Vec<u8> {
    let mut excerpt = Vec::new();
    // What breaks here breaks an explanation; what came of it is better than nothing.
    while let Ok(Some(chunk)) = response.chunk().await {
        excerpt.extend(chunk.iter().take(EXCERPT_BYTES_MAX - excerpt.len()));
        if excerpt.len() == EXCERPT_BYTES_MAX {
            break;
        }
    }
    excerpt
}

/// What a failed answer says in words, and whether it means that the money ran out.
fn explanation(body: &[u8]) -> (Option<String>, bool) {
    let text = String::from_utf8_lossy(body);
    let Ok(json) = serde_json::from_slice::<Value>(body) else {
        let words = ipc::text::one_line(&text, SAID_CHARS_MAX);
        return ((!words.is_empty()).then_some(words), false);
    };
    // Gemini's compatible address wraps its errors in a list.
    let json = json.get(0).unwrap_or(&json);
    let error = json.get("error").filter(|error| !error.is_null()).unwrap_or(json);
    let said = reading::said(error).unwrap_or_else(|| ipc::text::one_line(&text, SAID_CHARS_MAX));
    ((!said.is_empty()).then_some(said), reading::is_spent(error))
}

/// A server's words without the key, also where they were cut in the middle of it.
fn without(said: &str, key: &str) -> String {
    const SHOWN: &str = "(the key)";
    let said = said.replace(key, SHOWN);
    let whole = said.trim_end_matches('…');
    // fewer of its letters than these say nothing about it
    let begun =
        (4..key.len()).rev().filter_map(|length| key.get(..length)).find(|begun| whole.ends_with(begun));
    match begun.and_then(|begun| whole.strip_suffix(begun)) {
        Some(before) => format!("{before}{SHOWN}…"),
        None => said,
    }
}

/// Where a redirect points, without a query.
fn place(location: &str) -> String {
    let place = location.split(['?', '#']).next().unwrap_or_default();
    format!("it moved to {}", ipc::text::one_line(place, SAID_CHARS_MAX))
}

/// The server's own clock where it tells it, because its dates are by that one.
fn server_time(headers: &HeaderMap) -> Timestamp {
    let date = headers.get("date").and_then(|date| date.to_str().ok());
    let parse = |date| jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(date).ok();
    date.and_then(parse).unwrap_or_else(now)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the edge: a date in a header is compared with the clock here and nowhere else"
)]
fn now() -> Timestamp {
    Timestamp::now()
}

/// A number from 0 to 1 that is another one in each process and at each call.
fn jitter() -> f64 {
    let random = RandomState::new().hash_one(()) >> 32;
    f64::from(u32::try_from(random).unwrap_or_default()) / f64::from(u32::MAX)
}

/// The innermost cause: the outer ones only repeat that a request failed, and where.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    ipc::text::one_line(&cause.to_string(), SAID_CHARS_MAX)
}

mod glance;

#[cfg(test)]
mod tests;
