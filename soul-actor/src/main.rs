//! The soul's process: everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    ipc::child::main(ipc::hello::Role::Soul, soul_actor::run)
}
