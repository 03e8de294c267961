//! The soul's process: everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    match arguments.first() {
        Some(first) if first == "check" => soul_actor::check(&arguments[1..]),
        _ => ipc::child::main(ipc::hello::Role::Soul, soul_actor::run),
    }
}
