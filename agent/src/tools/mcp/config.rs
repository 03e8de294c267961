//! `mcp.json`: which servers of tools a person wants, in the common form.
//!
//! ```json
//! {"mcpServers": {
//!   "files":  {"command": "npx", "args": ["-y", "…"], "env": {"ROOT": "/srv"}, "cwd": "~/work", "readOnly": ["list"]},
//!   "search": {"type": "http", "url": "https://…/mcp", "headers": {"Authorization": "Bearer …"}}
//! }}
//! ```
//!
//! A mistake is named, with the server it is in, and the others serve on. What is not known here is ignored, which is said.
//! It is a person's file: nothing here writes it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::{Path, PathBuf},
};

use ipc::{reveal::reveal, text::one_line};
use reqwest::{
    Url,
    header::{HeaderMap, HeaderName, HeaderValue},
};
use serde_json::{Map, Value};

use super::secrets::Secrets;
use crate::provider::is_loopback;

/// The most servers: each is a process or a connection, and its tools go with every question to a model.
const SERVERS_MAX: usize = 16;
/// The longest name shown, in characters.
const NAME_CHARS_MAX: usize = 64;
/// What a server may have set.
const FIELDS: [&str; 10] =
    ["type", "command", "args", "env", "cwd", "url", "headers", "disabled", "enabled", "readOnly"];

/// What the file says.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Read {
    pub(super) servers: Vec<Server>,
    /// What cannot be used: the server (or `mcp.json`), and why.
    pub(super) wrong: Vec<(String, String)>,
}

/// A server a person wants.
#[derive(Debug, PartialEq)]
pub(super) struct Server {
    pub(super) name: String,
    pub(super) how: How,
    /// Whether it is there, but not to be used.
    pub(super) is_off: bool,
    /// The tools of which the person says that they change nothing. What the server says about that counts for nothing.
    pub(super) read_only: BTreeSet<String>,
    /// What the person should know of what is written.
    pub(super) notices: Vec<String>,
    pub(super) secrets: Secrets,
}

/// How it is reached.
#[derive(PartialEq)]
pub(super) enum How {
    /// A program that speaks on its standard input and output.
    Program { command: String, args: Vec<String>, env: BTreeMap<String, String>, cwd: Option<PathBuf> },
    /// An address.
    Http { url: Url, headers: HeaderMap },
}

impl fmt::Debug for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program { command, .. } => write!(f, "Program({command})"),
            Self::Http { url, .. } => write!(f, "Http({})", crate::provider::without_query(url)),
        }
    }
}

/// Reads the file; `~` in it is `person`, the home folder of whoever runs this.
pub(super) fn read(text: &str, person: Option<&Path>) -> Read {
    let mut read = Read::default();
    let mut is_wrong = |why: String| read.wrong.push(("mcp.json".to_owned(), why));
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut all = match serde_json::from_str(text) {
        Ok(Value::Object(all)) => all,
        Ok(_) => {
            is_wrong("it is no object: write `{\"mcpServers\": {…}}`".to_owned());
            return read;
        }
        Err(error) => {
            is_wrong(format!("it is no JSON, {error}; none of its servers is used"));
            return read;
        }
    };
    let servers = all.shift_remove("mcpServers");
    if !all.is_empty() {
        is_wrong(format!("{} is not known here and ignored", listed(all.keys())));
    }
    let servers = match servers {
        Some(Value::Object(servers)) => servers,
        Some(_) => {
            is_wrong("`mcpServers` is no object: write one server a name in it".to_owned());
            return read;
        }
        None => {
            is_wrong("it has no `mcpServers`, so there is no server".to_owned());
            return read;
        }
    };
    if servers.len() > SERVERS_MAX {
        is_wrong(format!("it has {} servers; the first {SERVERS_MAX} are used", servers.len()));
    }
    for (name, value) in servers.into_iter().take(SERVERS_MAX) {
        match server(&name, value, person) {
            Ok(server) => read.servers.push(server),
            Err(why) => read.wrong.push((shown(&name), why)),
        }
    }
    read
}

fn server(name: &str, value: Value, person: Option<&Path>) -> Result<Server, String> {
    if ipc::text::is_blank(name) {
        return Err("it has no name".to_owned());
    }
    let Value::Object(mut fields) = value else {
        return Err("it is no object: write `{\"command\": …}` or `{\"url\": …}`".to_owned());
    };
    let mut notices = Vec::new();
    let mut secrets = Secrets::default();
    let kind = text(&mut fields, "type")?;
    let command = text(&mut fields, "command")?;
    let url = text(&mut fields, "url")?;
    let args = texts(&mut fields, "args")?;
    let env = pairs(&mut fields, "env")?;
    let headers = pairs(&mut fields, "headers")?;
    let cwd = text(&mut fields, "cwd")?;
    let read_only = texts(&mut fields, "readOnly")?.into_iter().collect();
    let is_off =
        flag(&mut fields, "disabled")?.unwrap_or(false) || !flag(&mut fields, "enabled")?.unwrap_or(true);
    if !fields.is_empty() {
        let near = fields.keys().find_map(|name| {
            ipc::text::nearest(name, FIELDS).map(|near| format!("; did you mean `{near}`?"))
        });
        notices.push(format!(
            "{} is not known here and ignored{}",
            listed(fields.keys()),
            near.unwrap_or_default()
        ));
    }
    let with_dollars = env.iter().map(|(name, value)| (format!("env.{name}"), value));
    let with_dollars =
        with_dollars.chain(headers.iter().map(|(name, value)| (format!("headers.{name}"), value)));
    for (place, _) in with_dollars.filter(|(_, value)| value.contains("${")) {
        notices.push(format!("`{}` has `${{…}}` in it, which is not replaced here", one_line(&place, 80)));
    }
    let how = match (kind.as_deref(), command, url) {
        (_, Some(_), Some(_)) => return Err("it has both `command` and `url`: keep one of them".to_owned()),
        (None | Some("stdio"), Some(command), None) => {
            for (name, value) in &env {
                secrets.keep_variable(name, value);
            }
            secrets.keep_arguments(&args);
            let cwd = cwd.map(|cwd| place("cwd", &cwd, person)).transpose()?;
            let command = program(&command, person)?;
            How::Program { command, args, env, cwd }
        }
        (None | Some("http" | "streamable-http" | "streamableHttp" | "streamable_http"), None, Some(url)) => {
            let url = address(&url)?;
            let headers = header_map(&headers, &mut secrets)?;
            for (name, value) in url.query_pairs() {
                secrets.keep_variable(&name, &value);
            }
            if url.scheme() == "http" && !headers.is_empty() && !is_loopback(&url) {
                notices.push("its headers travel unencrypted: use `https`".to_owned());
            }
            How::Http { url, headers }
        }
        (Some("sse"), _, _) => {
            return Err(
                "`sse` is the transport of 2024, which is not spoken here: use the server's `http` address"
                    .to_owned(),
            );
        }
        (Some("stdio"), None, _) => return Err("it has no `command`".to_owned()),
        (Some("http" | "streamable-http" | "streamableHttp" | "streamable_http"), _, None) => {
            return Err("it has no `url`".to_owned());
        }
        (Some(other), _, _) => {
            return Err(format!(
                "its type `{}` is not known: use `stdio` or `http`",
                one_line(&reveal(other), 40)
            ));
        }
        (None, None, None) => return Err("it has neither `command` nor `url`".to_owned()),
    };
    Ok(Server { name: name.to_owned(), how, is_off, read_only, notices, secrets })
}

/// A name as it may be shown.
pub(super) fn shown(name: &str) -> String {
    one_line(&reveal(name), NAME_CHARS_MAX)
}

fn listed<'a>(names: impl Iterator<Item = &'a String>) -> String {
    let names: Vec<_> = names.take(4).map(|name| format!("`{}`", one_line(&reveal(name), 40))).collect();
    names.join(", ")
}

/// What is wrong never quotes a value: it may be a secret.
fn text(fields: &mut Map<String, Value>, name: &str) -> Result<Option<String>, String> {
    match fields.shift_remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if !ipc::text::is_blank(&text) => Ok(Some(text)),
        Some(Value::String(_)) => Err(format!("`{name}` is empty")),
        Some(other) => Err(format!("`{name}` is {}, not a text", kind(&other))),
    }
}

fn texts(fields: &mut Map<String, Value>, name: &str) -> Result<Vec<String>, String> {
    match fields.shift_remove(name) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) => items
            .into_iter()
            .map(|item| match item {
                Value::String(text) => Ok(text),
                other => Err(format!("`{name}` has {} in it: write it in quotes", kind(&other))),
            })
            .collect(),
        Some(other) => Err(format!("`{name}` is {}, not a list of texts", kind(&other))),
    }
}

fn pairs(fields: &mut Map<String, Value>, name: &str) -> Result<BTreeMap<String, String>, String> {
    match fields.shift_remove(name) {
        None | Some(Value::Null) => Ok(BTreeMap::new()),
        Some(Value::Object(items)) => items
            .into_iter()
            .map(|(key, value)| match value {
                _ if key.is_empty() || key.contains(['=', '\0']) => {
                    Err(format!("`{name}` has a name that cannot be one"))
                }
                Value::String(text) => Ok((key, text)),
                other => Err(format!(
                    "`{name}.{}` is {}: write it in quotes",
                    one_line(&reveal(&key), 60),
                    kind(&other)
                )),
            })
            .collect(),
        Some(other) => Err(format!("`{name}` is {}, not names with texts", kind(&other))),
    }
}

fn flag(fields: &mut Map<String, Value>, name: &str) -> Result<Option<bool>, String> {
    match fields.shift_remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(flag)),
        Some(other) => Err(format!("`{name}` is {}, not true or false", kind(&other))),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// A name that is looked up in `PATH`, or a path that means the same wherever it is read.
fn program(command: &str, person: Option<&Path>) -> Result<String, String> {
    if !command.contains('/') {
        return Ok(command.to_owned());
    }
    Ok(place("command", command, person)?.display().to_string())
}

fn place(name: &str, path: &str, person: Option<&Path>) -> Result<PathBuf, String> {
    let place = match (path.strip_prefix("~/"), person) {
        (Some(rest), Some(person)) => person.join(rest),
        (None, Some(person)) if path == "~" => person.to_owned(),
        _ => PathBuf::from(path),
    };
    if place.is_absolute() {
        Ok(place)
    } else {
        Err(format!("`{name}` is a path from nowhere: begin it with `/` or `~/`"))
    }
}

fn address(url: &str) -> Result<Url, String> {
    let url = Url::parse(url).map_err(|error| format!("`url` is no address: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("`url` begins neither with `http://` nor with `https://`".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(
            "`url` has a name or a password in it: put them into `headers`, as `Authorization`".to_owned()
        );
    }
    Ok(url)
}

fn header_map(headers: &BTreeMap<String, String>, secrets: &mut Secrets) -> Result<HeaderMap, String> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let shown = one_line(&reveal(name), 60);
        let name =
            HeaderName::try_from(name).map_err(|_| format!("`headers.{shown}` is no name of a header"))?;
        let mut held = HeaderValue::try_from(value)
            .map_err(|_| format!("`headers.{shown}` has a character in it that no header may have"))?;
        held.set_sensitive(true);
        secrets.keep_header(value);
        map.insert(name, held);
    }
    Ok(map)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn one(value: &Value) -> Result<Server, String> {
        let read = read(&json!({"mcpServers": {"灯塔": value}}).to_string(), Some(Path::new("/home/anna")));
        match (read.servers.into_iter().next(), read.wrong.into_iter().next()) {
            (Some(server), None) => Ok(server),
            (None, Some((name, why))) => {
                assert_eq!(name, "灯塔");
                Err(why)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn both_forms_are_read() {
        let files = one(
            &json!({"command": "~/bin/files", "args": ["-x"], "env": {"ROOT": "/srv"}, "cwd": "~", "readOnly": ["list"]}),
        );
        let files = files.unwrap();
        assert_eq!(
            files.how,
            How::Program {
                command: "/home/anna/bin/files".into(),
                args: vec!["-x".into()],
                env: [("ROOT".to_owned(), "/srv".to_owned())].into(),
                cwd: Some("/home/anna".into()),
            }
        );
        assert!(files.read_only.contains("list") && files.notices.is_empty() && !files.is_off);
        let http =
            one(&json!({"type": "http", "url": "https://e.org/mcp", "headers": {"X-Key": "abcdefgh"}}))
                .unwrap();
        assert!(matches!(&http.how, How::Http { headers, .. } if headers["x-key"].is_sensitive()));
        assert_eq!(http.secrets.scrub("abcdefgh"), "(a secret)");
        assert!(one(&json!({"command": "x", "disabled": true})).unwrap().is_off);
        assert!(one(&json!({"url": "https://e.org/", "enabled": false})).unwrap().is_off);
    }

    #[test]
    fn a_mistake_is_named_and_no_value_is_quoted() {
        let check = |value: Value, said: &str| {
            let why = one(&value).unwrap_err();
            assert!(why.contains(said) && !why.contains("hunter2"), "{value}: {why}");
        };
        check(json!("hunter2"), "no object");
        check(json!({}), "neither `command` nor `url`");
        check(json!({"command": "x", "url": "https://e.org"}), "both");
        check(json!({"command": 7}), "`command` is a number");
        check(json!({"command": " "}), "`command` is empty");
        check(json!({"command": "./x"}), "begin it with `/`");
        check(json!({"command": "x", "cwd": "work"}), "`cwd` is a path from nowhere");
        check(json!({"command": "x", "args": "hunter2"}), "`args` is a text, not a list");
        check(json!({"command": "x", "args": [1]}), "`args` has a number");
        check(json!({"command": "x", "env": {"PIN": 1234}}), "`env.PIN` is a number");
        check(json!({"command": "x", "env": {"A=B": "hunter2"}}), "cannot be one");
        check(json!({"type": "sse", "url": "https://e.org"}), "transport of 2024");
        check(json!({"type": "carrier-pigeon", "url": "https://e.org"}), "`carrier-pigeon` is not known");
        check(json!({"type": "stdio", "url": "https://e.org"}), "no `command`");
        check(json!({"type": "http", "command": "x"}), "no `url`");
        check(json!({"url": "e.org"}), "no address");
        check(json!({"url": "file:///etc/passwd"}), "neither with `http://`");
        check(json!({"url": "https://anna:hunter2@e.org/"}), "a name or a password");
        check(json!({"url": "https://e.org", "headers": {"a b": "hunter2"}}), "no name of a header");
        check(json!({"url": "https://e.org", "headers": {"a": "hunter2\n"}}), "`headers.a` has a character");
        check(json!({"command": "x", "disabled": "yes"}), "not true or false");
    }

    #[test]
    fn what_is_not_known_is_said_and_the_rest_is_used() {
        let server = one(&json!({"command": "x", "comand": "y", "env": {"T": "${TOKEN}"}})).unwrap();
        assert!(
            server.notices[0].contains("`comand` is not known") && server.notices[0].contains("`command`")
        );
        assert!(server.notices[1].contains("`env.T`"), "{:?}", server.notices);
        let server = one(&json!({"url": "http://e.org/", "headers": {"a": "hunter2"}})).unwrap();
        assert!(server.notices[0].contains("unencrypted"));
        assert!(
            one(&json!({"url": "http://127.0.0.1:1/", "headers": {"a": "b"}})).unwrap().notices.is_empty()
        );
    }

    #[test]
    fn one_that_is_wrong_keeps_no_other_from_serving() {
        let read = read(r#"{"mcpServers": {"bad": 1, "good": {"command": "x"}}, "inputs": []}"#, None);
        assert_eq!(read.servers.len(), 1);
        assert_eq!(read.wrong.len(), 2, "{:?}", read.wrong);
        let many: Map<String, Value> = (0..40).map(|n| (format!("s{n}"), json!({"command": "x"}))).collect();
        let read = super::read(&json!({"mcpServers": many}).to_string(), None);
        assert_eq!((read.servers.len(), read.wrong.len()), (SERVERS_MAX, 1));
        for text in ["", "[]", "{", "{}", r#"{"mcpServers": []}"#, "\u{feff}{\"servers\": {}}"] {
            let read = super::read(text, None);
            assert!(read.servers.is_empty() && !read.wrong.is_empty(), "{text}");
        }
    }

    #[test]
    fn showing_it_shows_no_secret() {
        let server = one(&json!({"command": "x", "args": ["hunter2"], "env": {"TOKEN": "hunter2"}})).unwrap();
        assert!(!format!("{server:?}").contains("hunter2"));
        assert_eq!(server.secrets.scrub("who is hunter2?"), "who is (a secret)?");
        let server = one(&json!({"url": "https://e.org/?key=hunter2", "headers": {"A": "hunter2"}})).unwrap();
        assert!(!format!("{server:?}").contains("hunter2"));
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(?s).{0,200}") {
            read(&text, None);
        }
    }
}
