//! `lisa-supervisor [--home DIR]`: what `lisa up` executes.

use std::{path::PathBuf, process::ExitCode};

use ipc::{
    exit::{Exit, Fault},
    home::Home,
};

fn main() -> ExitCode {
    ipc::log::start();
    match home().and_then(|home| {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Fault::again)?;
        runtime.block_on(supervisor::run(home))
    }) {
        Ok(()) => Exit::Asked.into(),
        Err(fault) => {
            tracing::error!("{fault}");
            fault.exit.into()
        }
    }
}

fn home() -> Result<Home, Fault> {
    let usage = || Fault { exit: Exit::Usage, source: "usage: lisa-supervisor [--home DIR]".into() };
    let mut arguments = std::env::args_os().skip(1);
    let flag = match (arguments.next(), arguments.next(), arguments.next()) {
        (None, _, _) => None,
        (Some(flag), Some(folder), None) if flag == "--home" => Some(PathBuf::from(folder)),
        _ => return Err(usage()),
    };
    Home::from_environment(flag).map_err(|error| Fault { exit: Exit::Usage, source: error.into() })
}
