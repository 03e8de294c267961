//! `lisa status`: how everything is, in one screen.

use ipc::{
    contract::{
        agent::{ToolServer, ToolServerState},
        chat::{Process, STATUS, Status},
        sessions::{Spending, Spent, Usage},
    },
    exit::Fault,
    home::Home,
    text::{chars, one_line, prefix},
};

use crate::{
    link::{ANSWER_PATIENCE, Link, LinkError},
    output,
    sessions::cost,
};

/// The model that needs neither key nor network.
const OFFLINE: &str = "offline";

/// How many characters of a commit's id tell it from the others.
const COMMIT_CHARS: usize = 8;

/// The longest reason shown, in characters.
const WHY_CHARS_MAX: usize = 200;

/// The longest account of what tools are kept from, in characters.
const SANDBOX_CHARS_MAX: usize = 600;

/// Shows how everything is.
pub(crate) async fn status(home: &Home, json: bool) -> Result<(), Fault> {
    let status = ask(&mut Link::open(home).await?).await?;
    if json { output::json(&status) } else { output::lines(&screen(&status)) }
}

/// Asks how everything is.
pub(crate) async fn ask(link: &mut Link) -> Result<Status, LinkError> {
    link.ask(STATUS, (), ANSWER_PATIENCE).await
}

/// Whether nothing but the embedded default thinks.
pub(crate) fn is_offline(status: &Status) -> bool {
    status.model == OFFLINE
}

/// The pid of the supervisor, where it says one.
pub(crate) fn supervisor_pid(status: &Status) -> Option<u32> {
    status.processes.iter().find(|process| process.name == "supervisor").and_then(|process| process.pid)
}

/// The beginning of a commit's id, as people name it.
pub(crate) fn short(commit: &str) -> &str {
    prefix(commit, COMMIT_CHARS)
}

fn screen(status: &Status) -> String {
    let heads = ["process", "state", "pid", "restarts", "memory", "build"].map(str::to_owned);
    let rows: Vec<_> = std::iter::once(heads).chain(status.processes.iter().map(row)).collect();
    let mut lines = table(&rows);
    for process in &status.processes {
        if let Some(why) = &process.why {
            lines.push(format!("! {}: {}", process.name, one_line(why, WHY_CHARS_MAX)));
        }
    }
    lines.push(String::new());
    lines.push(format!("home     {}", status.home));
    if !status.run.starts_with(&status.home) {
        lines.push(format!("sockets  {}", status.run));
    }
    lines.push(format!("model    {}", model(status)));
    lines.push(format!("self     {}", oneself(status)));
    if !status.sandbox.is_empty() {
        lines.push(format!("sandbox  {}", one_line(&status.sandbox, SANDBOX_CHARS_MAX)));
    }
    lines.extend(status.servers.iter().map(|server| format!("server   {}", of_tools(server))));
    lines.push(format!("clients  {}", status.clients));
    lines.push(format!("epoch    {}", status.epoch));
    lines.extend(status.offer.iter().map(|offer| format!("! {}", one_line(offer, 400))));
    for server in &status.servers {
        let said =
            |notice: &String| format!("! server `{}`: {}", server.name, one_line(notice, WHY_CHARS_MAX));
        lines.extend(server.notices.iter().map(said));
    }
    if let Some(spent) = &status.spent {
        lines.push(format!("today    {}", spent_today(spent)));
        lines.extend(spent.tasks.iter().map(|task| spending("task", task)));
        lines.extend(spent.sessions.iter().map(|session| spending("session", session)));
    }
    lines.extend(status.notices.iter().map(|notice| format!("! {}", one_line(notice, WHY_CHARS_MAX))));
    lines.join("\n")
}

/// A server of tools: its name, its state, what it brings or why it does not.
fn of_tools(server: &ToolServer) -> String {
    let state = format!("{} · {}", one_line(&server.name, 64), server.state.as_str());
    match (&server.why, server.state) {
        (Some(why), _) => format!("{state} · {}", one_line(why, WHY_CHARS_MAX)),
        (None, ToolServerState::Ready) if server.tools == 1 => format!("{state} · 1 tool"),
        (None, ToolServerState::Ready) => format!("{state} · {} tools", server.tools),
        (None, _) => state,
    }
}

fn row(process: &Process) -> [String; 6] {
    [
        process.name.clone(),
        process.state.clone(),
        process.pid.map_or_else(|| "-".to_owned(), |pid| pid.to_string()),
        process.restarts.to_string(),
        process.rss_bytes.map_or_else(|| "-".to_owned(), mebibytes),
        process.build.clone(),
    ]
}

/// What thinking cost today, in one line.
fn spent_today(spent: &Spent) -> String {
    let Usage { answers, input, output, cache_read, cache_write, .. } = spent.total;
    if answers == 0 {
        return "no model was asked".to_owned();
    }
    format!(
        "{} tokens in {answers} answers: read {input}, from cache {cache_read}, into cache {cache_write}, written {output}",
        cost(&spent.total)
    )
}

fn spending(what: &str, of: &Spending) -> String {
    format!("  {what} {}: {} tokens, {} answers", one_line(&of.name, 60), cost(&of.usage), of.usage.answers)
}

fn model(status: &Status) -> String {
    match status.model.as_str() {
        "" => "unknown: the agent has not said".to_owned(),
        OFFLINE => "offline (no language model: offline companion)".to_owned(),
        model => one_line(model, 80),
    }
}

fn oneself(status: &Status) -> String {
    if status.soul.name.is_empty() {
        let soul_is_there =
            status.processes.iter().any(|process| process.name == "soul" && process.state == "ready");
        return if soul_is_there { "not born yet" } else { "unknown: the soul has not said" }.to_owned();
    }
    let commit = status.soul.commit.as_deref().map_or("none", short);
    let name = one_line(&status.soul.name, 80);
    format!("{name} · commit {commit} · prompt version {}", status.soul.prompt_version)
}

/// Bytes in mebibytes with one digit behind the point, by whole numbers.
fn mebibytes(bytes: u64) -> String {
    let tenths = u128::from(bytes) * 10 / (1024 * 1024);
    format!("{}.{} MiB", tenths / 10, tenths % 10)
}

/// Rows in columns as wide as their widest cell, counted in characters.
pub(crate) fn table<const N: usize>(rows: &[[String; N]]) -> Vec<String> {
    let width = |column: usize| rows.iter().map(|row| chars(&row[column])).max().unwrap_or_default();
    let widths: [usize; N] = std::array::from_fn(width);
    let line = |row: &[String; N]| {
        let cells =
            row.iter().zip(widths).map(|(cell, width)| format!("{cell}{}", " ".repeat(width - chars(cell))));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use ipc::contract::chat::SoulStatus;

    pub(crate) fn process(name: &str, state: &str, why: Option<&str>) -> Process {
        Process {
            name: name.into(),
            pid: (state == "ready").then_some(4711),
            state: state.into(),
            build: "0.1.0".into(),
            restarts: 0,
            rss_bytes: (state == "ready").then_some(3_355_443),
            why: why.map(Into::into),
            retry_in: None,
        }
    }

    pub(crate) fn sample(processes: Vec<Process>) -> Status {
        Status {
            processes,
            home: "/home/anna/.lisa".into(),
            run: "/home/anna/.lisa/run".into(),
            epoch: 3,
            model: "offline".into(),
            sandbox: "landlock ABI 7, seccomp; network allowed".into(),
            soul: SoulStatus {
                name: "灯塔".into(),
                commit: Some("0123456789abcdef".into()),
                prompt_version: 4,
                unborn: None,
            },
            spent: None,
            clients: 1,
            servers: vec![],
            offer: None,
            notices: vec!["the identity is over its budget;\nshorten it".into()],
        }
    }

    #[test]
    fn the_screen_says_what_is_and_why_anything_is_off() {
        let status = sample(vec![
            process("supervisor", "ready", None),
            process("soul", "ready", None),
            process("agent", "waiting", Some("it died (signal 9)")),
        ]);
        assert_eq!(
            screen(&status),
            "\
process     state    pid   restarts  memory   build
supervisor  ready    4711  0         3.1 MiB  0.1.0
soul        ready    4711  0         3.1 MiB  0.1.0
agent       waiting  -     0         -        0.1.0
! agent: it died (signal 9)

home     /home/anna/.lisa
model    offline (no language model: offline companion)
self     灯塔 · commit 01234567 · prompt version 4
sandbox  landlock ABI 7, seccomp; network allowed
clients  1
epoch    3
! the identity is over its budget; shorten it"
        );
    }

    #[test]
    fn before_birth_and_without_a_model_it_says_so() {
        let mut status = sample(vec![]);
        (status.model, status.soul, status.run) =
            (String::new(), SoulStatus::default(), "/tmp/lisa-0/x".into());
        let said = screen(&status);
        assert!(said.contains("the soul has not said") && said.contains("the agent has not said"), "{said}");
        assert!(said.contains("sockets  /tmp/lisa-0/x"), "{said}");
        let unborn = Status { processes: vec![process("soul", "ready", None)], ..status };
        assert!(screen(&unborn).contains("not born yet"), "{}", screen(&unborn));
    }

    #[test]
    fn each_server_of_tools_has_a_line() {
        let server = |name: &str, state, tools, why: Option<&str>| ToolServer {
            name: name.into(),
            state,
            tools,
            why: why.map(Into::into),
            notices: why.is_none().then(|| "mind\nthis".to_owned()).into_iter().collect(),
        };
        let servers = vec![
            server("文件", ToolServerState::Ready, 3, None),
            server("x", ToolServerState::Waiting, 0, Some("it ended with\nexit code 1")),
        ];
        let said = screen(&Status { servers, ..sample(vec![]) });
        assert!(said.contains("\nserver   文件 · ready · 3 tools\n"), "{said}");
        assert!(said.contains("\nserver   x · waiting · it ended with exit code 1\n"), "{said}");
        assert!(said.contains("\n! server `文件`: mind this\n"), "{said}");
    }

    #[test]
    fn columns_are_counted_in_characters() {
        let rows = [["灯塔".to_owned(), "a".to_owned()], ["x".to_owned(), "b".to_owned()]];
        assert_eq!(table(&rows), ["灯塔  a", "x   b"]);
        assert_eq!(mebibytes(0), "0.0 MiB");
        assert_eq!(mebibytes(u64::MAX), "17592186044415.9 MiB");
    }

    #[test]
    fn what_thinking_cost_today_is_shown_by_task_and_session() {
        let usage = Usage {
            answers: 2,
            input: 1000,
            output: 200,
            cache_read: 30,
            cost_micros: Some(9300),
            ..Usage::default()
        };
        let spending = |name: &str| Spending { name: name.into(), usage };
        let spent = Spent {
            day: "2026-12-02".into(),
            total: usage,
            tasks: vec![spending("desire:learn-rust")],
            sessions: vec![spending("20261202-1")],
        };
        let status = Status { spent: Some(spent), ..sample(vec![process("agent", "ready", None)]) };
        let shown = screen(&status);
        for part in [
            "today    1.2k (0.0093) tokens in 2 answers: read 1000, from cache 30, into cache 0, written 200",
            "  task desire:learn-rust: 1.2k (0.0093) tokens, 2 answers",
            "  session 20261202-1: ",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        let nothing = Status { spent: Some(Spent::default()), ..status };
        assert!(screen(&nothing).contains("today    no model was asked"));
    }
}
