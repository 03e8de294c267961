//! `lisa service`: writes down for a process manager how she is kept running, looks at it, and takes it away.
//!
//! It writes one file and calls no manager: what is to be typed next is said. A file that it did not write is left alone
//! unless that is asked for.

mod definition;

use std::{
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand};
use ipc::{exit::Fault, home::Home};
use serde_json::json;

use self::definition::{Manager, home_of};
use crate::output;

/// What about the service.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  lisa service install --print     what would be written
  lisa service install
  lisa service status --json
  lisa service uninstall")]
pub(crate) struct Service {
    #[command(subcommand)]
    pub(crate) command: ServiceCommand,
}

/// What may be done about the service.
#[derive(Debug, Subcommand)]
pub(crate) enum ServiceCommand {
    /// Write the file, and say what to type next
    #[command(after_long_help = "\
Examples:
  lisa service install
  lisa service install --print
  lisa service install --home ~/other --name lisa-other")]
    Install {
        /// Show what would be written, and write nothing
        #[arg(long)]
        print: bool,
        /// Write over a file that is somebody else's, or another home's
        #[arg(long)]
        force: bool,
        /// The name of the service
        #[arg(long, value_name = "NAME", default_value = "lisa", value_parser = name)]
        name: String,
    },
    /// Take the file away
    #[command(after_long_help = "\
Examples:
  lisa service uninstall
  lisa service uninstall --name lisa-other")]
    Uninstall {
        /// The name of the service
        #[arg(long, value_name = "NAME", default_value = "lisa", value_parser = name)]
        name: String,
        /// Take it away even if it is somebody else's
        #[arg(long)]
        force: bool,
    },
    /// Whether the file is there, whose it is, and whether it is what would be written now
    #[command(after_long_help = "\
Examples:
  lisa service status
  lisa service status --json | jq -r .file")]
    Status {
        /// The name of the service
        #[arg(long, value_name = "NAME", default_value = "lisa", value_parser = name)]
        name: String,
    },
}

/// A name that is the same in a path, a unit and a label.
fn name(given: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if given.is_empty() || given.len() > 64 || given.starts_with('.') || !given.chars().all(fits) {
        return Err(
            "a name has up to 64 letters, digits, `-`, `_` and `.`, and begins with none of the last".into(),
        );
    }
    Ok(given.to_owned())
}

#[derive(Debug, thiserror::Error)]
enum ServiceError {
    #[error("could not {attempt} `{path}`; see that it is a place we may write to")]
    Io { attempt: &'static str, path: PathBuf, source: io::Error },
    #[error(
        "`{path}` was not written by `lisa service install`; move it away, choose another `--name`, or use `--force`"
    )]
    Foreign { path: PathBuf },
    #[error("`{path}` is for the home `{home}`; choose another `--name`, or use `--force`")]
    OtherHome { path: PathBuf, home: String },
    #[error("there is no service to take away: `{path}` does not exist")]
    Absent { path: PathBuf },
    #[error("where the service belongs cannot be found out, since HOME is not set")]
    Nowhere,
}

fn failed(attempt: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Fault {
    let path = path.to_owned();
    move |source| Fault::failed(ServiceError::Io { attempt, path, source })
}

/// Does what is asked about the service.
pub(crate) fn service(home: &Home, json: bool, asked: ServiceCommand) -> Result<(), Fault> {
    let manager = if cfg!(target_os = "macos") { Manager::Launchd } else { Manager::Systemd };
    let of = |name: &str| Whole::of(manager, name, home);
    match asked {
        ServiceCommand::Install { print: true, name, .. } => output::text(&of(&name)?.text),
        ServiceCommand::Install { print: false, force, name } => of(&name)?.install(home, json, force),
        ServiceCommand::Uninstall { name, force } => of(&name)?.uninstall(json, force),
        ServiceCommand::Status { name } => of(&name)?.status(json),
    }
}

/// A service with all that is to be known of it.
struct Whole {
    manager: Manager,
    name: String,
    home: String,
    file: PathBuf,
    text: String,
}

impl Whole {
    fn of(manager: Manager, name: &str, home: &Home) -> Result<Self, Fault> {
        let own = std::env::current_exe().map_err(Fault::failed)?;
        let service = definition::Service { program: &own.with_file_name("lisa"), home: home.path() };
        let text = definition::text(manager, name, service).map_err(Fault::failed)?;
        let variable =
            |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let file = place(manager, name, variable("XDG_CONFIG_HOME"), variable("HOME"));
        let file = file.ok_or_else(|| Fault::failed(ServiceError::Nowhere))?;
        Ok(Self { manager, name: name.to_owned(), home: home.path().display().to_string(), file, text })
    }

    /// What lies there now.
    fn there(&self) -> Result<Option<String>, Fault> {
        // a link or a device is somebody else's, and may be without end
        match std::fs::symlink_metadata(&self.file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed("look at", &self.file)(error)),
            Ok(metadata) if !metadata.is_file() => Ok(Some(String::new())),
            Ok(_) => {
                let bytes = std::fs::read(&self.file).map_err(failed("read", &self.file))?;
                Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
            }
        }
    }

    fn is_ours(&self, text: &str) -> Result<(), ServiceError> {
        match home_of(text) {
            None => Err(ServiceError::Foreign { path: self.file.clone() }),
            Some(home) if home != self.home => Err(ServiceError::OtherHome { path: self.file.clone(), home }),
            Some(_) => Ok(()),
        }
    }

    fn install(&self, home: &Home, json: bool, force: bool) -> Result<(), Fault> {
        let there = self.there()?;
        if let Some(text) = there.as_deref().filter(|_| !force) {
            self.is_ours(text).map_err(Fault::failed)?;
        }
        // the unit may write below it only if it is there
        home.make().map_err(Fault::configuration)?;
        // launchd makes no folder for a log
        std::fs::create_dir_all(home.logs()).map_err(failed("make the folder", &home.logs()))?;
        let changed = there.as_deref() != Some(&self.text);
        if changed {
            self.write()?;
        }
        if json {
            return output::json(&json!({"file": self.file, "changed": changed, "next": self.next()}));
        }
        let what = if changed { "wrote" } else { "nothing to do: it is what stands already in" };
        output::lines(&format!("{what} {}", self.file.display()))?;
        for step in self.next() {
            output::aside(&step);
        }
        Ok(())
    }

    fn write(&self) -> Result<(), Fault> {
        let folder = self.file.parent().unwrap_or(Path::new("/"));
        std::fs::create_dir_all(folder).map_err(failed("make the folder", folder))?;
        let fresh = folder.join(format!(".{}.{}", self.name, std::process::id()));
        let written = std::fs::File::create(&fresh).and_then(|mut file| {
            file.write_all(self.text.as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&fresh, &self.file)
        });
        if written.is_err() {
            let _ = std::fs::remove_file(&fresh);
        }
        written.map_err(failed("write", &self.file))
    }

    /// What to type next.
    fn next(&self) -> Vec<String> {
        let name = &self.name;
        match self.manager {
            Manager::Systemd if !Path::new("/run/systemd/system").exists() => vec![format!(
                "systemd does not run here; where it does: `systemctl --user daemon-reload && systemctl --user enable --now {name}`; \
                 for runit, s6, supervisord and containers see `deploy/`"
            )],
            Manager::Systemd => vec![
                format!(
                    "start her now and at each login: `systemctl --user daemon-reload && systemctl --user enable --now {name}`"
                ),
                "and without a login too: `loginctl enable-linger`".to_owned(),
            ],
            Manager::Launchd => {
                vec![format!(
                    "start her now and at each login: `launchctl bootstrap gui/$(id -u) '{}'`",
                    self.file.display()
                )]
            }
        }
    }

    fn uninstall(&self, json: bool, force: bool) -> Result<(), Fault> {
        let Some(text) = self.there()? else {
            return Err(Fault::failed(ServiceError::Absent { path: self.file.clone() }));
        };
        if !force {
            self.is_ours(&text).map_err(Fault::failed)?;
        }
        std::fs::remove_file(&self.file).map_err(failed("remove", &self.file))?;
        let enabled = self.enabled();
        if enabled.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink()) {
            std::fs::remove_file(&enabled).map_err(failed("remove", &enabled))?;
        }
        if json {
            return output::json(&json!({"file": self.file, "removed": true}));
        }
        output::lines(&format!("removed {}", self.file.display()))?;
        let name = &self.name;
        output::aside(&match self.manager {
            Manager::Systemd => {
                format!(
                    "what runs goes on running: `lisa down` stops it, or `systemctl --user stop {name}`; then `systemctl --user daemon-reload`"
                )
            }
            Manager::Launchd => {
                format!("what runs goes on running: `launchctl bootout gui/$(id -u)/{name}` ends it")
            }
        });
        Ok(())
    }

    fn status(&self, json: bool) -> Result<(), Fault> {
        let there = self.there()?;
        let written_for = there.as_deref().and_then(home_of);
        let current = there.as_deref() == Some(&self.text);
        let enabled = self.enabled().symlink_metadata().is_ok();
        if json {
            return output::json(&json!({
                "file": self.file,
                "installed": there.is_some(),
                "home": written_for,
                "current": current,
                "enabled": enabled,
            }));
        }
        let file = self.file.display();
        output::lines(&match (&there, &written_for) {
            (None, _) => format!("not installed: there is no {file}; `lisa service install` writes it"),
            (Some(_), None) => format!("{file} is there, and was not written by `lisa service install`"),
            (Some(_), Some(home)) if current => format!("installed in {file} for the home {home}"),
            (Some(_), Some(home)) => {
                format!(
                    "installed in {file} for the home {home}; it differs from what `lisa service install` would write now"
                )
            }
        })?;
        if there.is_some() && self.manager == Manager::Systemd {
            let said = if enabled {
                "it starts at each login"
            } else {
                "it does not start by itself: `systemctl --user enable`"
            };
            output::lines(said)?;
        }
        Ok(())
    }

    /// Where the link lies that starts it at each login.
    fn enabled(&self) -> PathBuf {
        match self.manager {
            Manager::Systemd => self
                .file
                .with_file_name("default.target.wants")
                .join(self.file.file_name().unwrap_or_default()),
            // the file itself is what launchd looks for
            Manager::Launchd => self.file.clone(),
        }
    }
}

/// Where a manager looks for what belongs to a user.
fn place(manager: Manager, name: &str, config: Option<PathBuf>, user: Option<PathBuf>) -> Option<PathBuf> {
    match manager {
        Manager::Systemd => {
            let config =
                config.filter(|dir| dir.is_absolute()).or_else(|| user.map(|user| user.join(".config")))?;
            Some(config.join("systemd/user").join(format!("{name}.service")))
        }
        Manager::Launchd => Some(user?.join("Library/LaunchAgents").join(format!("{name}.plist"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_written_where_the_manager_looks() {
        let path = |text: &str| Some(PathBuf::from(text));
        let unit = |config: Option<&str>| place(Manager::Systemd, "lisa", config.map(Into::into), path("/h"));
        assert_eq!(unit(None), path("/h/.config/systemd/user/lisa.service"));
        assert_eq!(unit(Some("/c")), path("/c/systemd/user/lisa.service"));
        assert_eq!(unit(Some("c")), path("/h/.config/systemd/user/lisa.service"));
        let agent = place(Manager::Launchd, "lisa", path("/c"), path("/h"));
        assert_eq!(agent, path("/h/Library/LaunchAgents/lisa.plist"));
        assert_eq!(place(Manager::Launchd, "lisa", None, None), None);
    }

    #[test]
    fn a_name_is_a_plain_one() {
        assert!(name("lisa-2.x_y").is_ok());
        for bad in ["", ".lisa", "a/b", "灯塔", "a b", "a%b"] {
            assert!(name(bad).is_err(), "{bad}");
        }
    }
}
