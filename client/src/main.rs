//! The `lisa` binary: hands its arguments to the library and ends with the exit code it is given.

use std::process::ExitCode;

fn main() -> ExitCode {
    client::run(std::env::args_os())
}
