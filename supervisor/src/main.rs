//! `lisa-supervisor [--home DIR] [--ready-fd N]`: what `lisa up` executes.

use std::{ffi::OsString, path::PathBuf, process::ExitCode};

use ipc::{
    exit::{Exit, Fault},
    home::Home,
};
use supervisor::Above;

fn main() -> ExitCode {
    ipc::log::start();
    match start() {
        Ok(()) => Exit::Asked.into(),
        Err(fault) => {
            tracing::error!("{fault}");
            fault.exit.into()
        }
    }
}

fn start() -> Result<(), Fault> {
    let (home, ready) = arguments(std::env::args_os().skip(1))?;
    // before the runtime opens anything
    let above = Above::take(ready, |name| std::env::var_os(name))?;
    let home = Home::from_environment(home).map_err(|error| usage(&error.to_string()))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Fault::again)?;
    runtime.block_on(supervisor::run(home, above))
}

fn arguments(mut given: impl Iterator<Item = OsString>) -> Result<(Option<PathBuf>, Option<i32>), Fault> {
    const FORM: &str = "usage: lisa-supervisor [--home DIR] [--ready-fd N]";
    let (mut home, mut ready) = (None, None);
    while let Some(flag) = given.next() {
        match (flag.to_str(), given.next()) {
            (Some("--home"), Some(folder)) => home = Some(PathBuf::from(folder)),
            (Some("--ready-fd"), Some(number)) => {
                let number = number.to_str().and_then(|number| number.parse().ok());
                ready = Some(number.ok_or_else(|| usage("`--ready-fd` takes the number of a descriptor"))?);
            }
            _ => return Err(usage(FORM)),
        }
    }
    Ok((home, ready))
}

fn usage(why: &str) -> Fault {
    Fault { exit: Exit::Usage, source: why.into() }
}
