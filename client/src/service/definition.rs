//! What a process manager is given to read: a systemd user unit or a launchd agent, as text made of paths.
//!
//! Whatever stands in a path comes out as itself: each format's own marks (`%`, `$`, quotes, `&`) are escaped, and a path
//! that a format cannot say is refused.
//!
//! The unit is hardened with what the manager of a user can do without privileges. What needs capabilities
//! (`PrivateDevices`, `ProtectKernelModules`, `ProtectKernelLogs`, `ProtectClock`) fails there with 218 and is left out.

use std::{fmt::Write as _, path::Path};

use ipc::home::Home;
use serde_json::Value;

/// How long an end may take before the manager kills: three children, each with its own deadline, and some air.
const STOP_SECS: u32 = 45;

/// What is to be run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Service<'a> {
    /// The `lisa` program.
    pub(crate) program: &'a Path,
    /// The home.
    pub(crate) home: &'a Path,
}

/// Which manager reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manager {
    /// systemd, for a user.
    Systemd,
    /// launchd, as an agent.
    Launchd,
}

/// A path that cannot be said.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{path}` cannot be written into a service definition: {why}; use another place")]
pub(crate) struct Unspeakable {
    path: String,
    why: &'static str,
}

/// The text for this manager, under this name.
pub(crate) fn text(manager: Manager, name: &str, service: Service<'_>) -> Result<String, Unspeakable> {
    match manager {
        Manager::Systemd => unit(service),
        Manager::Launchd => agent(name, service),
    }
}

/// What every definition of ours begins or goes on with, so that it is known again.
const MARK: &str = "Written by `lisa service install` for the home ";

/// The home for which a text was written; nothing where somebody else wrote it.
pub(crate) fn home_of(text: &str) -> Option<String> {
    let (_, said) = text.lines().find_map(|line| line.split_once(MARK))?;
    let said = said.strip_suffix("-->").unwrap_or(said).trim();
    match serde_json::from_str(said) {
        Ok(Value::String(home)) => Some(home),
        Ok(_) | Err(_) => None,
    }
}

fn mark(home: &str) -> String {
    // two hyphens would end a comment of XML; JSON reads this one as itself
    format!("{MARK}{}", Value::from(home).to_string().replace('-', "\\u002d"))
}

fn said(path: &Path) -> Result<&str, Unspeakable> {
    let refuse = |why| Unspeakable { path: path.display().to_string(), why };
    let text = path.to_str().ok_or_else(|| refuse("it is not UTF-8"))?;
    if text.chars().any(char::is_control) { Err(refuse("it holds a control character")) } else { Ok(text) }
}

fn unit(Service { program, home }: Service<'_>) -> Result<String, Unspeakable> {
    let (program, home) = (said(program)?, said(home)?);
    let (mark, program, home) = (mark(home), quoted(program), quoted(home));
    // in an argument a `$` would be a variable; the program itself is not looked at so
    let argument = home.replace('$', "$$");
    Ok(format!(
        "\
# {mark}
# Change it with `systemctl --user edit`, which keeps your changes apart, or install it again.
[Unit]
Description=Lisa, a self that a language model keeps
StartLimitIntervalSec=300
StartLimitBurst=5

[Service]
Type=notify
NotifyAccess=main
ExecStart={program} --home {argument} up
ExecReload=/bin/kill -HUP $MAINPID
WatchdogSec=60
TimeoutStopSec={STOP_SECS}
KillMode=mixed
Restart=on-failure
RestartSec=1
RestartPreventExitStatus=1 64 78
UMask=0077
NoNewPrivileges=yes
ProtectSystem=strict
ReadWritePaths=-{home} -%t
PrivateTmp=yes
ProtectKernelTunables=yes
ProtectControlGroups=yes
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
SystemCallArchitectures=native
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK

[Install]
WantedBy=default.target
"
    ))
}

/// A word of a unit: in quotes, with nothing in it that systemd would read as its own.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            '%' => quoted.push_str("%%"),
            _ => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

fn agent(name: &str, Service { program, home }: Service<'_>) -> Result<String, Unspeakable> {
    let log = Home::at(home).logs().join("supervisor.log");
    let (program, home, log) = (said(program)?, said(home)?, said(&log)?);
    let mark = mark(home);
    let arguments = [program, "--home", home, "up"].iter().fold(String::new(), |mut all, argument| {
        let _ = writeln!(all, "    <string>{}</string>", escaped(argument));
        all
    });
    let (name, log) = (escaped(name), escaped(log));
    Ok(format!(
        "\
<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<!-- {mark} -->
<!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">
<plist version=\"1.0\">
<dict>
  <key>Label</key>
  <string>{name}</string>
  <key>ProgramArguments</key>
  <array>
{arguments}  </array>
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
  <key>ThrottleInterval</key>
  <integer>10</integer>
  <key>ExitTimeOut</key>
  <integer>{STOP_SECS}</integer>
  <key>Umask</key>
  <integer>63</integer>
  <key>StandardErrorPath</key>
  <string>{log}</string>
</dict>
</plist>
"
    ))
}

/// Text of XML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt as _;

    fn of(manager: Manager, program: &str, home: &str) -> String {
        text(manager, "lisa", Service { program: Path::new(program), home: Path::new(home) }).unwrap()
    }

    #[test]
    fn the_unit_is_pinned() {
        assert_eq!(
            of(Manager::Systemd, "/usr/local/bin/lisa", "/home/anna/.lisa"),
            include_str!("golden/lisa.service")
        );
    }

    #[test]
    fn the_agent_is_pinned() {
        assert_eq!(
            of(Manager::Launchd, "/usr/local/bin/lisa", "/Users/anna/.lisa"),
            include_str!("golden/lisa.plist")
        );
    }

    #[test]
    fn whatever_a_path_holds_comes_out_as_itself() {
        let home = r#"/home/an na/100%/灯塔/"q"\$HOME"#;
        let unit = of(Manager::Systemd, "/opt/a b/$x/lisa", home);
        let start = unit.lines().find(|line| line.starts_with("ExecStart=")).unwrap();
        assert_eq!(start, r#"ExecStart="/opt/a b/$x/lisa" --home "/home/an na/100%%/灯塔/\"q\"\\$$HOME" up"#);
        let writes = unit.lines().find(|line| line.starts_with("ReadWritePaths=")).unwrap();
        assert_eq!(writes, r#"ReadWritePaths=-"/home/an na/100%%/灯塔/\"q\"\\$HOME" -%t"#);
        let agent = of(Manager::Launchd, "/opt/a&b/lisa", "/Users/<x> --y/灯塔");
        assert!(agent.contains("<string>/opt/a&amp;b/lisa</string>"), "{agent}");
        assert!(agent.contains("<string>/Users/&lt;x&gt; --y/灯塔</string>"), "{agent}");
    }

    #[test]
    fn ours_is_known_again_with_its_home() {
        for home in ["/home/anna/.lisa", "/home/a--b/\"灯 塔\"\\", "/home/\\u002d"] {
            for manager in [Manager::Systemd, Manager::Launchd] {
                assert_eq!(home_of(&of(manager, "/lisa", home)).as_deref(), Some(home), "{manager:?}");
            }
        }
        assert_eq!(home_of("[Unit]\nDescription=somebody's\n"), None);
        assert_eq!(home_of(&format!("# {MARK}nonsense")), None);
        let agent = of(Manager::Launchd, "/lisa", "/a--b");
        let comment = agent.lines().nth(1).unwrap();
        assert_eq!(comment.matches("--").count(), 2, "nothing in it ends it: {comment}");
    }

    #[test]
    fn a_path_that_cannot_be_said_is_refused() {
        let refused = |path: &Path| {
            let service = Service { program: Path::new("/lisa"), home: path };
            text(Manager::Systemd, "lisa", service).unwrap_err().to_string()
        };
        assert!(refused(Path::new("/a\nExecStart=/bin/x")).contains("control character"));
        assert!(refused(Path::new(std::ffi::OsStr::from_bytes(b"/\xff"))).contains("UTF-8"));
    }
}
