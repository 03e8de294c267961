//! `lisa-agent`: started by the supervisor, and by itself as what its tools run in.

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(ended) = agent::part(std::env::args_os()) {
        return ended;
    }
    // before anything is given up: tools are started from outside of that
    let spawner = agent::Spawner::start();
    ipc::child::main(ipc::hello::Role::Agent, |brief, stop| agent::run(brief, spawner, stop))
}
