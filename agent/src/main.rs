//! `lisa-agent`: started by the supervisor.

use std::process::ExitCode;

fn main() -> ExitCode {
    ipc::child::main(ipc::hello::Role::Agent, agent::run)
}
