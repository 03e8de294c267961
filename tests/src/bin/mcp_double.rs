//! `mcp-double MODE`: plays a server of tools on standard input and output. What it notes goes to the file `$NOTES`.
//!
//! - `good`, `hostile`: serves, and ends when nobody speaks to it any more.
//! - `noisy`: prints what is no message before it serves.
//! - `dies`: says a last word, with its `$TOKEN`, and ends with 3.
//! - `hangs`: says nothing, for ever.
//! - `nonsense`: answers everything with a number.
//! - `forks`: serves, has a grandchild in its group and one that has left it, notes their pids, and never ends by itself.

use std::{
    io::{BufRead as _, Write as _},
    process::{Command, ExitCode},
};

use serde_json::{Value, json};

#[path = "../../it/stage/mcp.rs"]
mod words;
use words::{Deed, Words};

fn main() -> ExitCode {
    let mode = std::env::args().nth(1).expect("a mode");
    let token = std::env::var("TOKEN").unwrap_or_default();
    match mode.as_str() {
        "good" | "hostile" | "noisy" => {}
        "dies" => return die(&token),
        "hangs" => wait_for_ever(),
        "nonsense" => {
            for line in std::io::stdin().lock().lines().map_while(Result::ok) {
                let message: Value = serde_json::from_str(&line).expect("a message is JSON");
                say(&json!({"jsonrpc": "2.0", "id": message["id"], "result": 42}).to_string());
            }
            return ExitCode::SUCCESS;
        }
        "forks" => {
            have("sleep", &["1000"]);
            have("setsid", &["sleep", "1000"]);
        }
        other => panic!("`{other}` is no mode"),
    }
    if mode == "noisy" {
        say("Starting the server…\n\n{\"half\": ");
    }
    let mut words = Words::new(&token, mode == "hostile");
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let message: Value = serde_json::from_str(&line).expect("a message is JSON");
        let (said, deed) = words.answer(&message);
        for said in &said {
            say(&said.to_string());
        }
        match deed {
            Deed::None => {}
            Deed::Die => return die(&token),
            Deed::Cancelled => note(&format!("cancelled {}", message["params"]["requestId"])),
        }
    }
    if mode == "forks" {
        wait_for_ever();
    }
    ExitCode::SUCCESS
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // nobody may listen any more
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

fn note(line: &str) {
    let notes = std::env::var("NOTES").expect("a file for notes");
    let file = std::fs::OpenOptions::new().append(true).create(true).open(notes);
    writeln!(file.expect("notes can be taken"), "{line}").expect("notes can be taken");
}

fn die(token: &str) -> ExitCode {
    // what a shell prints on its way out
    let _ = writeln!(std::io::stderr(), "starting\nfatal: the token {token} is not known");
    ExitCode::from(3)
}

fn have(program: &str, arguments: &[&str]) {
    #[expect(clippy::disallowed_methods, reason = "grandchildren are what this double is about")]
    #[expect(clippy::zombie_processes, reason = "what it leaves behind is for those above it to end")]
    let child = Command::new(program).args(arguments).spawn().expect("it can be started");
    note(&child.id().to_string());
}

fn wait_for_ever() -> ! {
    loop {
        std::thread::park();
    }
}
