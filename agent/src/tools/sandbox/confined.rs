//! A process that takes an order, gives up what it must not do, and does it: one deed on files, or becoming bash.

use std::{
    io::{self, Read as _, Write as _},
    os::{fd::AsFd as _, unix::process::CommandExt as _},
    path::Path,
    process::{Command, ExitCode, Stdio},
};

use ipc::{
    config::Sandbox,
    confine::{self, Landlock},
    exit::{Exit, chain},
};

use super::{
    ground::{Disk, Ground},
    limits,
    order::{self, Deed, Order, Said, Word},
};
use crate::tools::files;

/// Below this version of Landlock a file can be emptied that may not be written.
const ENOUGH: Landlock = Landlock { abi: 3 };

/// Does what standard input says. The answer goes to standard output; the words of bash do, and what is to be said of it
/// goes to standard error, for its guard.
pub(super) fn confined() -> ExitCode {
    let mut stdin = io::stdin().lock();
    let order = match order::read(&mut stdin) {
        Ok((order, _)) => order,
        Err(error) => {
            let _ = writeln!(io::stderr(), "{error}");
            return Exit::Usage.into();
        }
    };
    drop(stdin);
    let is_bash = matches!(order.deed, Deed::Bash { .. });
    let why = match confine(&order) {
        Ok((ground, enforced)) => match order.deed {
            Deed::Bash { command } => become_bash(&ground, &command),
            deed => return answer(&done(deed, &ground, &enforced)),
        },
        Err(why) => why,
    };
    if is_bash {
        // its guard hears of it
        let _ = io::stderr().write_all(&Word::Refused(why).line());
        return Exit::Bug.into();
    }
    answer(&Said { output: why, failed: true })
}

fn answer(said: &Said) -> ExitCode {
    let mut line = serde_json::to_vec(said).expect("an answer is JSON");
    line.push(b'\n');
    let mut out = io::stdout().lock();
    // whoever asked may be gone
    let _ = out.write_all(&line).and_then(|()| out.flush());
    Exit::Asked.into()
}

fn done(deed: Deed, ground: &Ground, enforced: &str) -> Said {
    // a thread that is older than the confinement would be outside of it
    std::thread::spawn(end_with_the_asker);
    let said = match deed {
        Deed::Probe => {
            clear(&ground.scratch);
            Ok(enforced.to_owned())
        }
        Deed::Bash { .. } => unreachable!("that is another program by now"),
        Deed::Read(deed) => files::read(ground, &deed),
        Deed::Write(deed) => files::write(ground, &deed),
        Deed::Edit(deed) => files::edit(ground, &deed),
        Deed::Ls(deed) => files::ls(ground, &deed),
        Deed::Glob(deed) => files::glob(ground, &deed),
        Deed::Grep(deed) => files::grep(ground, &deed),
    };
    match said {
        Ok(output) => Said { output, failed: false },
        Err(output) => Said { output, failed: true },
    }
}

/// Waits until nobody asks any more.
fn end_with_the_asker() {
    let mut rest = [0; 64];
    while matches!(io::stdin().lock().read(&mut rest), Ok(read) if read > 0) {}
    std::process::exit(Exit::Again as i32);
}

fn clear(scratch: &Path) {
    for entry in std::fs::read_dir(scratch).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        // what cannot be removed stays, and is in nobody's way
        let _ = if is_folder { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    }
}

/// Gives up what the order does not need; says what is enforced from now on, or why nothing may be done.
fn confine(order: &Order) -> Result<(Ground, String), String> {
    let scratch = ipc::home::Home::at(confine::real(&order.home)).work().join("tmp");
    std::fs::create_dir_all(&scratch)
        .map_err(|error| format!("could not make the folder `{}` for tools: {error}", scratch.display()))?;
    let disk = Disk { real: &confine::real, list: &confine::listed, is_folder: &|path| path.is_dir() };
    let ground = Ground::of(order, &disk);
    let sandbox = order.tools.sandbox;
    if sandbox == Sandbox::Off {
        return Ok((ground, "off, as `[tools] sandbox` says".to_owned()));
    }
    limits::take().map_err(|error| format!("could not take limits: {error}"))?;
    let landlock = confine::enforce(&ground.rules()).map_err(|error| chain(&error));
    let calls = filter(order.tools.network);
    let required = sandbox == Sandbox::Required;
    let lacks = landlock.as_ref().err().or(calls.as_ref().err()).cloned();
    let lacks = lacks.or_else(|| landlock.as_ref().ok().filter(|is| **is < ENOUGH).map(ToString::to_string));
    match lacks {
        Some(lacks) if required => Err(format!(
            "no tool runs here: `[tools] sandbox = \"required\"` is set, and it cannot be had: {lacks}; use a newer kernel, or set \"best-effort\""
        )),
        _ => Ok((ground, words(&landlock, &calls, order.tools.network))),
    }
}

#[cfg(target_os = "linux")]
fn filter(network: bool) -> Result<(), String> {
    super::calls::apply(network)
}

#[cfg(not(target_os = "linux"))]
fn filter(_: bool) -> Result<(), String> {
    Err("this system has no filter of system calls".to_owned())
}

/// What is enforced, in one line for a person.
fn words(landlock: &Result<Landlock, String>, calls: &Result<(), String>, network: bool) -> String {
    let mut has = Vec::new();
    let mut lacks = Vec::new();
    match landlock {
        Ok(landlock) => {
            has.push(landlock.to_string());
            if *landlock < ENOUGH {
                lacks.push(
                    "a file can be emptied that may not be written (ABI 3 and later keep it)".to_owned(),
                );
            }
            if landlock.abi < 6 {
                lacks.push(
                    "commands can signal this user's processes (ABI 6 and later keep them from it)"
                        .to_owned(),
                );
            }
        }
        Err(why) => lacks.push(format!("files are not guarded: {why}")),
    }
    match calls {
        Ok(()) => has.push("seccomp".to_owned()),
        Err(why) => lacks.push(format!("sockets are not guarded: {why}")),
    }
    let closed = network || (landlock.is_err() && calls.is_err());
    let network = if closed { "network allowed" } else { "network closed" };
    let has = if has.is_empty() { "none".to_owned() } else { has.join(", ") };
    let lacks = if lacks.is_empty() { String::new() } else { format!("; missing: {}", lacks.join("; ")) };
    format!("{has}; {network}{lacks}")
}

/// Runs `command` in the place of this process; why not, where that did not work.
fn become_bash(ground: &Ground, command: &str) -> String {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
    {
        return format!("could not tie the command to its guard: {error}");
    }
    let output = match io::stdout().as_fd().try_clone_to_owned() {
        Ok(output) => output,
        Err(error) => return format!("could not prepare the output of the command: {error}"),
    };
    let home = &ground.scratch;
    let seen = std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(may_see));
    #[expect(clippy::disallowed_methods, reason = "the place where a confined process becomes bash")]
    let mut bash = Command::new("bash");
    let error = bash
        .args(["--noprofile", "--norc", "-c", command])
        .env_clear()
        .env("LANG", "C.UTF-8")
        .envs(seen)
        .env("HOME", home)
        .env("TMPDIR", home)
        .env("TERM", "dumb")
        .current_dir(&ground.work)
        .stdin(Stdio::null())
        .stderr(output)
        .exec();
    format!("could not start bash in `{}`: {error}", ground.work.display())
}

/// Whether a command may see a variable: how to find programs, and how to write text and dates.
fn may_see(name: &str) -> bool {
    matches!(name, "PATH" | "LANG" | "LANGUAGE" | "TZ" | "TZDIR") || name.starts_with("LC_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said_plainly() {
        let check = |landlock: Result<u32, &str>, calls: Result<(), &str>, network, said: &str| {
            let landlock = landlock.map(|abi| Landlock { abi }).map_err(str::to_owned);
            assert_eq!(words(&landlock, &calls.map_err(str::to_owned), network), said);
        };
        check(Ok(7), Ok(()), true, "landlock ABI 7, seccomp; network allowed");
        check(Ok(6), Ok(()), false, "landlock ABI 6, seccomp; network closed");
        let signal = "commands can signal this user's processes (ABI 6 and later keep them from it)";
        check(Ok(5), Ok(()), true, &format!("landlock ABI 5, seccomp; network allowed; missing: {signal}"));
        check(Err("x"), Ok(()), false, "seccomp; network closed; missing: files are not guarded: x");
        let both = "none; network allowed; missing: files are not guarded: x; sockets are not guarded: y";
        check(Err("x"), Err("y"), false, both);
    }

    #[test]
    fn b13_no_key_reaches_a_command() {
        for name in
            ["OPENAI_API_KEY", "NOTIFY_SOCKET", "LISA_HOME", "HOME", "BASH_ENV", "LD_PRELOAD", "GIT_DIR"]
        {
            assert!(!may_see(name), "{name}");
        }
        assert!(may_see("PATH") && may_see("LC_ALL"));
    }
}
