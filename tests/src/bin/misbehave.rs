//! `misbehave`: plays a child process that does what a child should not. Which it is stands in `misbehave.txt` beside it.
//!
//! - `crash-after MS`: says that it is ready, and dies with exit code 70 so long after.
//! - `never-ready`: says nothing, for ever.
//! - `run COMMAND…`: says that it is ready, runs a command, and leaves what it said in `misbehave.out` beside it.
//! - `ignore-term`: says that it is ready, ignores the wish to end, and has a grandchild that ignores it too.

use std::{
    io::{BufRead as _, Write as _},
    process::{Command, ExitCode},
    time::Duration,
};

fn main() -> ExitCode {
    let own = std::env::current_exe().expect("a process knows its own file");
    let script =
        std::fs::read_to_string(own.with_file_name("misbehave.txt")).expect("the test says how to misbehave");
    let mut brief = String::new();
    std::io::stdin().lock().read_line(&mut brief).expect("a brief comes on standard input");
    let mut words = script.split_whitespace();
    match words.next() {
        Some("crash-after") => {
            let pause: u64 = words.next().and_then(|ms| ms.parse().ok()).expect("a number of milliseconds");
            say_ready();
            std::thread::park_timeout(Duration::from_millis(pause));
            ExitCode::from(70)
        }
        Some("never-ready") => wait_for_ever(),
        Some("run") => {
            say_ready();
            let said = run(words);
            std::fs::write(own.with_file_name("misbehave.out"), said).expect("a file can be left");
            wait_for_ever()
        }
        Some("ignore-term") => {
            ignore_term();
            say_ready();
            wait_for_ever()
        }
        other => panic!("`{other:?}` is no way to misbehave"),
    }
}

fn say_ready() {
    let mut out = std::io::stdout().lock();
    out.write_all(b"{\"ready\":{\"build\":\"misbehave\"}}\n")
        .and_then(|()| out.flush())
        .expect("somebody listens");
}

fn run<'a>(mut words: impl Iterator<Item = &'a str>) -> Vec<u8> {
    #[expect(
        clippy::disallowed_methods,
        reason = "what a child of Lisa can start is what this double is about"
    )]
    let mut command = Command::new(words.next().expect("a command"));
    let done = command.args(words).output().expect("the command runs");
    [done.stdout, done.stderr].concat()
}

fn wait_for_ever() -> ! {
    loop {
        std::thread::park();
    }
}

fn ignore_term() {
    #[expect(clippy::disallowed_methods, reason = "a grandchild is what this double is about")]
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' TERM; while :; do sleep 1; done"]);
    // nobody waits for it here: that it is ended all the same is what the test looks at
    drop(shell.spawn().expect("a shell runs"));
    // installing a handler that does nothing is the safe way to ignore a signal
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    std::thread::spawn(move || {
        runtime.block_on(async {
            let kind = tokio::signal::unix::SignalKind::terminate();
            let mut term = tokio::signal::unix::signal(kind).expect("a handler");
            loop {
                term.recv().await;
            }
        });
    });
}
