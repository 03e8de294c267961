//! Tests against a server of raw bytes on loopback, each named after the row of the reports it answers.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    thread::JoinHandle,
};

use super::*;
use crate::provider::{
    Block, Message, Stop,
    anthropic::Anthropic,
    choose,
    openai::OpenAi,
    settings::{Settings, Speaks},
};

mod any_bytes;
mod spent_budget;

/// What the server does on one connection.
#[derive(Clone)]
enum Act {
    /// Writes, and hands the bytes over before going on.
    Write(Vec<u8>),
    /// Waits until the client lets go.
    Hold,
    /// Lets time pass.
    Pause(Duration),
}

struct Server {
    base_url: String,
    requests: JoinHandle<Vec<String>>,
}

impl Server {
    /// The requests it saw, when it is through with its scripts. The client's own connections need the runtime meanwhile.
    async fn requests(self) -> Vec<String> {
        tokio::task::spawn_blocking(move || self.requests.join().unwrap()).await.unwrap()
    }
}

/// Answers as many connections as there are scripts, one after the other.
fn serve(scripts: Vec<Vec<Act>>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
    let requests = std::thread::spawn(move || {
        scripts.into_iter().map(|script| answer(listener.accept().unwrap().0, script)).collect()
    });
    Server { base_url, requests }
}

fn answer(stream: TcpStream, script: Vec<Act>) -> String {
    stream.set_nodelay(true).unwrap();
    let mut reader = BufReader::new(stream);
    let mut request = String::new();
    let mut length = 0;
    while !request.ends_with("\r\n\r\n") {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        request.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    request.push_str(&String::from_utf8(body).unwrap());
    let mut stream = reader.into_inner();
    for act in script {
        match act {
            // A client that has seen enough may be gone.
            Act::Write(bytes) => drop(stream.write_all(&bytes)),
            Act::Hold => drop(stream.read(&mut [0])),
            Act::Pause(time) => {
                let (_sender, nothing) = std::sync::mpsc::channel::<()>();
                let _ = nothing.recv_timeout(time);
            }
        }
    }
    request
}

const STREAM: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\nconnection: close\r\n\r\n";

fn write(text: &str) -> Act {
    Act::Write(text.as_bytes().to_vec())
}

fn head(status: &str, headers: &str, body: &str) -> Vec<Act> {
    let head =
        format!("HTTP/1.1 {status}\r\n{headers}connection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    vec![write(&head), write(body)]
}

fn text(text: &str) -> String {
    format!("data: {}\n\n", serde_json::json!({"choices": [{"delta": {"content": text}}]}))
}

const STOP: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

fn provider(base_url: &str, env: &[(&str, &str)]) -> Remote<OpenAi> {
    let config = ipc::config::Model {
        name: Some("m".into()),
        base_url: Some(base_url.into()),
        silence_max: Some(jiff::SignedDuration::from_millis(500)),
        ..Default::default()
    };
    let choice =
        choose(&config, &|key| env.iter().find(|(k, _)| *k == key).map(|(_, v)| (*v).to_owned())).unwrap();
    let Settings::Remote(settings) = choice.settings else { panic!("offline") };
    let mut provider = Remote::<OpenAi>::new(&settings, &Budget::default()).unwrap();
    provider.patience.wait_first = Duration::from_millis(10);
    provider
}

fn hello() -> ModelRequest {
    ModelRequest { said: 0, system: "You are.".into(), messages: vec![Message::user("hi")], tools: vec![] }
}

async fn ask(provider: &dyn Provider) -> (Vec<Delta>, Result<Completion, ProviderError>) {
    let (sender, mut receiver) = mpsc::channel(1000);
    let result = provider.stream(&hello(), sender).await;
    let mut deltas = Vec::new();
    while let Ok(delta) = receiver.try_recv() {
        deltas.push(delta);
    }
    (deltas, result)
}

/// Asks a server that behaves as the script says, and gives what was shown, the result, and the requests it saw.
async fn asked(scripts: Vec<Vec<Act>>) -> (String, Result<Completion, ProviderError>, Vec<String>) {
    let server = serve(scripts);
    let (deltas, result) = ask(&provider(&server.base_url, &[])).await;
    let shown = deltas
        .into_iter()
        .map(|delta| match delta {
            Delta::Text(text) | Delta::Thinking(text) => text,
        })
        .collect();
    (shown, result, server.requests().await)
}

#[track_caller]
fn check_text(result: Result<Completion, ProviderError>, text: &str) {
    let completion = result.unwrap();
    assert_eq!((completion.blocks, completion.stop), (vec![Block::text(text)], Stop::EndTurn));
}

#[tokio::test]
async fn c7_12_c7_13_a_stream_written_byte_by_byte_is_read_whole() {
    let stream = format!(": ping\n\n{}{}{STOP}", text("你好"), text("🌍"));
    let mut script = vec![write(STREAM)];
    script.extend(stream.bytes().map(|byte| Act::Write(vec![byte])));
    let (shown, result, requests) = asked(vec![script]).await;
    assert_eq!(shown, "你好🌍");
    check_text(result, "你好🌍");
    let request = requests.concat().to_lowercase();
    assert!(request.starts_with("post /v1/chat/completions http/1.1\r\n"), "{request}");
    for header in ["accept: text/event-stream", "accept-encoding: identity", "content-type: application/json"]
    {
        assert!(request.contains(&format!("\r\n{header}\r\n")), "{header} in {request}");
    }
    assert!(!request.contains("authorization"), "a server without a key is sent none: {request}");
}

#[tokio::test]
async fn c7_12_every_cut_inside_of_a_character_is_borne() {
    let stream = format!("{}{STOP}", text("你🌍"));
    let at = stream.find('你').unwrap();
    for cut in at..at + 8 {
        let (left, right) = stream.as_bytes().split_at(cut);
        let script = vec![write(STREAM), Act::Write(left.to_vec()), Act::Write(right.to_vec())];
        check_text(asked(vec![script]).await.1, "你🌍");
    }
}

#[tokio::test]
async fn the_key_is_sent_and_never_said() {
    let body =
        r#"{"error":{"message":"Incorrect API key provided: sk-geheim","type":"invalid_request_error"}}"#;
    let server = serve(vec![head("401 Unauthorized", "content-type: application/json\r\n", body)]);
    let provider = provider(&server.base_url, &[("OPENAI_API_KEY", "sk-geheim")]);
    let error = ask(&provider).await.1.unwrap_err();
    let said = format!("{error} {error:?} {provider:?}");
    assert!(said.contains("Incorrect API key provided: (the key)") && !said.contains("geheim"), "{said}");
    assert!(server.requests().await.concat().contains("authorization: Bearer sk-geheim\r\n"));
}

#[tokio::test]
async fn c7_17_a_clean_end_without_finish_reason_is_incomplete() {
    let (shown, result, requests) = asked(vec![vec![write(STREAM), write(&text("half"))]]).await;
    let error = result.unwrap_err();
    assert_eq!(
        (shown.as_str(), error.fault, error.shown, requests.len()),
        ("half", Fault::Incomplete, true, 1)
    );
}

#[tokio::test]
async fn a_connection_that_breaks_in_the_middle_is_no_answer() {
    let chunked = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let piece = text("half");
    let script = vec![write(chunked), write(&format!("{:x}\r\n{piece}\r\n", piece.len()))];
    let error = asked(vec![script]).await.1.unwrap_err();
    assert!(matches!(error.fault, Fault::Broken { .. }) && error.shown, "{error}");
}

#[tokio::test]
async fn what_breaks_after_the_answer_is_whole_does_not_matter() {
    let headers = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 100000\r\n\r\n";
    let done = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n";
    check_text(asked(vec![vec![write(headers), write(done)]]).await.1, "a");
    // A server that keeps the connection open after its last word is not waited for.
    check_text(asked(vec![vec![write(headers), write(&text("a")), write(STOP), Act::Hold]]).await.1, "a");
}

#[tokio::test]
async fn c7_18_c7_19_what_passes_is_asked_again() {
    let busy = |status: &str| head(status, "retry-after: 0\r\n", "{\"error\":{\"message\":\"slow down\"}}");
    let good = vec![write(STREAM), write(&text("a")), write(STOP)];
    let scripts = vec![busy("429 Too Many Requests"), busy("529 Overloaded"), good.clone()];
    let (_, result, requests) = asked(scripts).await;
    check_text(result, "a");
    assert_eq!(requests.len(), 3);

    let overloaded = "data: {\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    let (_, result, requests) = asked(vec![vec![write(STREAM), write(overloaded)], good]).await;
    check_text(result, "a");
    assert_eq!(requests.len(), 2);
}

#[tokio::test]
async fn c7_19_a_wish_that_is_too_long_ends_it_and_is_said() {
    let (_, result, requests) = asked(vec![head("429 Too Many Requests", "retry-after: 3600\r\n", "")]).await;
    let said = result.unwrap_err().to_string();
    assert!(said.contains("3600 s"), "{said}");
    assert_eq!(requests.len(), 1);
}

#[tokio::test]
async fn a_fault_that_stays_is_told_after_three_attempts() {
    let broken = head("500 Internal Server Error", "", "<html>oops\n</html>");
    let (_, result, requests) = asked(vec![broken; 3]).await;
    let error = result.unwrap_err();
    assert!(error.to_string().contains("has a fault of its own (500)"), "{error}");
    assert!(error.to_string().contains("<html>oops </html>"), "{error}");
    assert_eq!(requests.len(), 3);
}

#[tokio::test]
async fn c7_18_after_something_was_shown_nothing_is_asked_again() {
    let error = "data: {\"error\":{\"code\":500,\"message\":\"no peg\"}}\n\n";
    let (shown, result, requests) =
        asked(vec![vec![write(STREAM), write(&text("half")), write(error)]]).await;
    let error = result.unwrap_err();
    assert_eq!((shown.as_str(), requests.len(), error.retryable()), ("half", 1, false));
    assert_eq!(error.fault, Fault::Reported { said: "no peg".into(), passing: true });
}

#[tokio::test]
async fn money_that_ran_out_is_not_asked_for_again() {
    let body = r#"{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}"#;
    let (_, result, requests) = asked(vec![head("429 Too Many Requests", "retry-after: 1\r\n", body)]).await;
    let said = result.unwrap_err().to_string();
    assert!(said.contains("credit") && said.contains("current quota"), "{said}");
    assert_eq!(requests.len(), 1);
}

#[tokio::test]
async fn each_refusal_says_what_to_do() {
    let check = async |status: &str, headers: &str, body: &str, named: &[&str]| {
        let said = asked(vec![head(status, headers, body)]).await.1.unwrap_err().to_string();
        assert!(named.iter().all(|word| said.contains(word)), "{said}");
        assert!(said.contains("`openai/m` at `http://127.0.0.1:"), "{said}");
    };
    check("400 Bad Request", "", r#"{"error":"no tools here"}"#, &["400", "no tools here"]).await;
    check("402 Payment Required", "", "", &["credit"]).await;
    check("403 Forbidden", "", "{\"detail\":\"region\"}", &["region"]).await;
    check("404 Not Found", "", "404 page not found", &["base_url", "name", "404 page not found"]).await;
    check("413 Payload Too Large", "", "", &["new session"]).await;
    check("400 Bad Request", "", "[{\"error\":{\"message\":\"gemini\"}}]", &["gemini"]).await;
    check(
        "308 Permanent Redirect",
        "location: https://else.example/v1?k=1\r\n",
        "",
        &["https://else.example/v1)"],
    )
    .await;
}

#[tokio::test]
async fn what_is_no_stream_is_named() {
    let check = async |content_type: &str, body: &str, named: &[&str]| {
        let (_, result, requests) = asked(vec![head("200 OK", content_type, body)]).await;
        let said = result.unwrap_err().to_string();
        assert!(named.iter().all(|word| said.contains(word)), "{said}");
        assert_eq!(requests.len(), 1);
    };
    check("content-type: text/html\r\n", "<html>Log in</html>", &["`text/html`", "Log in", "base_url"]).await;
    let refused = r#"{"error":{"message":"no such model"}}"#;
    check("content-type: application/json\r\n", refused, &["`application/json`", "no such model"]).await;
    check("content-type: text/event-stream\r\n", "data: <html>\n\n", &["not JSON", "<html>"]).await;
    check("content-type: text/event-stream\r\ncontent-encoding: br\r\n", "x", &["compressed"]).await;
}

#[tokio::test]
async fn c7_23_gzip_without_a_header_is_recognised() {
    let script =
        vec![write(STREAM), Act::Write(vec![0x1f]), Act::Write(vec![0x8b, 8, 0, 0, 0, 10, 13, 10, 10])];
    assert_eq!(asked(vec![script]).await.1.unwrap_err().fault, Fault::Compressed);
}

#[tokio::test]
async fn c7_21_a_silent_socket_does_not_hang() {
    let silent = |script: Vec<Act>| [script, vec![Act::Hold]].concat();
    let (_, result, requests) = asked(vec![silent(vec![]); 3]).await;
    let error = result.unwrap_err();
    assert_eq!(error.fault, Fault::Silent { silence: Duration::from_millis(500) });
    assert_eq!(requests.len(), 3);

    let (shown, result, _) = asked(vec![silent(vec![write(STREAM), write(&text("half"))])]).await;
    let error = result.unwrap_err();
    assert!(matches!(error.fault, Fault::Silent { .. }) && error.shown && shown == "half", "{error}");
}

#[tokio::test]
async fn c7_15_c7_20_any_byte_is_a_sign_of_life_and_there_is_no_other_limit() {
    // Longer in all than may be silent at once, and of comments alone.
    let mut script = vec![write(STREAM)];
    for _ in 0..8 {
        script.extend([Act::Pause(Duration::from_millis(100)), write(": still thinking\n")]);
    }
    script.extend([write(&text("a")), write(STOP)]);
    check_text(asked(vec![script]).await.1, "a");
}

#[tokio::test]
async fn nobody_there_is_said() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let said = ask(&provider(&base_url, &[])).await.1.unwrap_err().to_string();
    assert!(
        said.contains(&base_url) && said.contains("refused") && said.contains("start the server"),
        "{said}"
    );
}

#[tokio::test]
async fn dropping_the_answer_cancels_the_request() {
    let server = serve(vec![vec![write(STREAM), write(&text("half")), Act::Hold]]);
    let provider = provider(&server.base_url, &[]);
    let (sender, mut receiver) = mpsc::channel(8);
    let request = hello();
    tokio::select! {
        _ = provider.stream(&request, sender) => panic!("the server never ends its answer"),
        shown = receiver.recv() => assert_eq!(shown, Some(Delta::Text("half".into()))),
    }
    // The server's hold ends because the connection does.
    assert_eq!(server.requests().await.len(), 1);
}

#[test]
fn an_https_client_can_be_made_or_says_why() {
    let settings = RemoteSettings {
        base_url: Url::parse("https://api.openai.com/v1").unwrap(),
        ..RemoteSettings::of_test(Speaks::OpenAi)
    };
    if let Err(error) = Remote::<OpenAi>::new(&settings, &Budget::default()) {
        assert!(error.to_string().contains("ca-certificates"), "{error}");
    }
}

/// A server that speaks Messages.
fn anthropic(server: &Server, env: &[(&str, &str)]) -> Remote<Anthropic> {
    let config = ipc::config::Model {
        provider: Some(ipc::config::ProviderName::Anthropic),
        name: Some("claude".into()),
        base_url: Some(server.base_url.clone()),
        silence_max: Some(jiff::SignedDuration::from_millis(500)),
        ..Default::default()
    };
    let choice =
        choose(&config, &|key| env.iter().find(|(k, _)| *k == key).map(|(_, v)| (*v).to_owned())).unwrap();
    let Settings::Remote(settings) = choice.settings else { panic!("offline") };
    let mut provider = Remote::<Anthropic>::new(&settings, &Budget::default()).unwrap();
    provider.patience.wait_first = Duration::from_millis(10);
    provider
}

fn messages_event(kind: &str, rest: &str) -> Act {
    write(&format!("event: {kind}\ndata: {{\"type\":\"{kind}\"{rest}}}\n\n"))
}

fn messages_text(text: &str) -> Act {
    let rest = format!(r#","index":0,"delta":{{"type":"text_delta","text":"{text}"}}"#);
    messages_event("content_block_delta", &rest)
}

fn messages_end() -> Vec<Act> {
    vec![
        messages_event("message_delta", r#","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}"#),
        messages_event("message_stop", ""),
    ]
}

#[tokio::test]
async fn c7_18_anthropic_529_and_an_overload_in_the_stream_are_asked_again_with_key_and_version() {
    let overloaded = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let in_stream = write(&format!("event: error\ndata: {overloaded}\n\n"));
    let scripts = vec![
        head("529 Overloaded", "content-type: application/json\r\n", overloaded),
        vec![write(STREAM), messages_event("ping", ""), in_stream],
        [vec![write(STREAM), messages_text("你好")], messages_end()].concat(),
    ];
    let server = serve(scripts);
    let provider = anthropic(&server, &[("ANTHROPIC_API_KEY", "sk-ant")]);
    check_text(ask(&provider).await.1, "你好");
    let requests = server.requests().await;
    assert_eq!(requests.len(), 3);
    for request in &requests {
        assert!(request.starts_with("POST /v1/messages HTTP/1.1\r\n"), "{request}");
        assert!(
            request.contains("x-api-key: sk-ant\r\n")
                && request.contains("anthropic-version: 2023-06-01\r\n")
        );
        assert!(!request.to_lowercase().contains("authorization"), "{request}");
    }
}

#[tokio::test]
async fn c7_17_an_anthropic_stream_that_ends_in_the_middle_is_no_answer() {
    let server = serve(vec![vec![write(STREAM), messages_text("half")]]);
    let error = ask(&anthropic(&server, &[])).await.1.unwrap_err();
    assert_eq!(
        (error.fault, error.shown, error.model.as_str()),
        (Fault::Incomplete, true, "anthropic/claude")
    );
}

#[tokio::test]
async fn a_key_that_anthropic_does_not_accept_is_named_by_its_variable() {
    let body =
        r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key sk-geheim"}}"#;
    let server = serve(vec![head("401 Unauthorized", "request-id: req_1\r\n", body)]);
    let said =
        ask(&anthropic(&server, &[("ANTHROPIC_API_KEY", "sk-geheim")])).await.1.unwrap_err().to_string();
    assert!(said.contains("`ANTHROPIC_API_KEY`") && said.contains("invalid x-api-key (the key)"), "{said}");
}

#[test]
fn a_key_that_a_server_repeats_is_not_passed_on_also_where_its_words_were_cut() {
    let key = "sk-1234567890abcdef";
    let check = |said: &str, shown: &str| assert_eq!(super::without(said, key), shown);
    check("bad key sk-1234567890abcdef!", "bad key (the key)!");
    check("bad key sk-1234567890abcdef", "bad key (the key)");
    check("bad key sk-12345678…", "bad key (the key)…");
    check("bad key sk-12345678", "bad key (the key)…");
    check("钥匙不对：sk-1…", "钥匙不对：(the key)…");
    check("no such model", "no such model");
    check("a risk", "a risk");
}
