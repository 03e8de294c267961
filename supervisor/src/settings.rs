//! What a person has set, and what becomes of it when it is set anew while everything runs (SIGHUP).
//!
//! A child takes its settings with its brief, so a change reaches it as a new life; nobody attached is let go for that.
//! A child whose settings are the same lives on. What is read but cannot be used changes nothing.

use ipc::{config::Config, digest::sha256_hex, exit::chain, hello::Role, home::Home};

use crate::board::CHILDREN;

/// What was read at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) config: Config,
    /// A digest of the keys' file, which the agent reads itself: the keys are no business of the supervisor.
    keys: Option<String>,
    /// A digest of the file of the servers of tools, which the agent reads itself too.
    servers: Option<String>,
}

impl Settings {
    /// Reads what is set in `home`; else the sentence that says what is wrong.
    pub(crate) fn read(home: &Home) -> Result<Self, ipc::config::ConfigError> {
        let config = Config::read(&home.config())?;
        Ok(Self { config, keys: digest(&home.config_env()), servers: digest(&home.mcp()) })
    }
}

/// What a new reading came to, as it is told.
pub(crate) type Reading = Result<Settings, String>;

/// Reads anew; the error in one sentence, with its causes.
pub(crate) fn read_anew(home: &Home) -> Reading {
    Settings::read(home).map_err(|error| chain(&error))
}

fn digest(path: &std::path::Path) -> Option<String> {
    // a pipe would be waited on for ever
    let is_file = std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    is_file.then(|| std::fs::read(path).ok()).flatten().map(|bytes| sha256_hex(&bytes))
}

/// Which parts differ, and whom that concerns.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// The parts by their names in the file.
    pub(crate) parts: Vec<&'static str>,
    /// The children that need a new life for them, in the order of [`CHILDREN`].
    pub(crate) children: Vec<Role>,
}

/// Compares two readings. Whoever adds a part to the configuration says here whom it concerns.
pub(crate) fn compare(before: &Settings, after: &Settings) -> Changes {
    let Config { time_zone, model, heartbeat, supervisor, person, gates, reflect, dreams, tools } =
        &before.config;
    let new = &after.config;
    // the heartbeat keeps to the sandbox as well; of tools it has none
    let of_tools: &[Role] =
        if tools.sandbox == new.tools.sandbox { &[Role::Agent] } else { &[Role::Agent, Role::Heartbeat] };
    let parts: [(&str, bool, &[Role]); 11] = [
        ("time_zone", *time_zone != new.time_zone, &CHILDREN),
        ("model", *model != new.model, &[Role::Agent]),
        ("heartbeat", *heartbeat != new.heartbeat, &[Role::Heartbeat]),
        // ours, and taken at once
        ("supervisor", *supervisor != new.supervisor, &[]),
        ("person", *person != new.person, &[Role::Agent]),
        ("gates", *gates != new.gates, &[Role::Soul, Role::Agent]),
        ("reflect", *reflect != new.reflect, &[Role::Agent]),
        ("dreams", *dreams != new.dreams, &[Role::Soul]),
        ("tools", *tools != new.tools, of_tools),
        ("config.env", before.keys != after.keys, &[Role::Agent]),
        ("mcp.json", before.servers != after.servers, &[Role::Agent]),
    ];
    let differ = || parts.iter().filter(|(_, differs, _)| *differs);
    let concerned = |role: &Role| differ().any(|(_, _, concerns)| concerns.contains(role));
    Changes {
        parts: differ().map(|(name, _, _)| *name).collect(),
        children: CHILDREN.into_iter().filter(concerned).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn set(text: &str) -> Settings {
        Settings { config: Config::parse(text, Path::new("config.toml")).unwrap(), keys: None, servers: None }
    }

    #[test]
    fn each_part_reaches_those_who_use_it_and_no_other() {
        let check = |text: &str, parts: &[&'static str], children: &[Role]| {
            let changes = Changes { parts: parts.to_vec(), children: children.to_vec() };
            assert_eq!(compare(&set(""), &set(text)), changes, "{text}");
            assert_eq!(compare(&set(text), &set("")), changes, "and back: {text}");
        };
        check("", &[], &[]);
        check("# a remark\n[supervisor]\ndeaths_max = 5\n", &[], &[]);
        check("[supervisor]\ndeaths_max = 9", &["supervisor"], &[]);
        check("person = \"anna\"", &["person"], &[Role::Agent]);
        check("[heartbeat]\nenabled = false", &["heartbeat"], &[Role::Heartbeat]);
        check("[gates]\nwrites_a_day = 1", &["gates"], &[Role::Soul, Role::Agent]);
        check("[dreams]\ndays_min = 9", &["dreams"], &[Role::Soul]);
        check("[tools]\nprivate_hosts = [\"wiki.local\"]", &["tools"], &[Role::Agent]);
        check("[tools]\nnetwork = false", &["tools"], &[Role::Agent]);
        check("[tools]\nsandbox = \"required\"", &["tools"], &[Role::Agent, Role::Heartbeat]);
        check("time_zone = \"Asia/Shanghai\"", &["time_zone"], &CHILDREN);
        check(
            "[model]\nprovider = \"offline\"\n[reflect]\nenabled = false",
            &["model", "reflect"],
            &[Role::Agent],
        );
    }

    #[test]
    fn new_keys_and_servers_are_seen_without_being_kept() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        let check = |file: std::path::PathBuf, part: &'static str| {
            let before = Settings::read(&home).unwrap();
            std::fs::write(file, "X_API_KEY=鑰匙").unwrap();
            let after = Settings::read(&home).unwrap();
            let changes = Changes { parts: vec![part], children: vec![Role::Agent] };
            assert_eq!(compare(&before, &after), changes);
            assert_eq!(compare(&after, &Settings::read(&home).unwrap()), Changes::default());
            assert!(!format!("{after:?}").contains("鑰匙"));
        };
        check(home.config_env(), "config.env");
        check(home.mcp(), "mcp.json");
    }

    #[test]
    fn what_does_not_parse_is_one_sentence() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        std::fs::write(home.config(), "[modle]\n").unwrap();
        let said = read_anew(&home).unwrap_err();
        assert!(said.contains("config.toml") && said.contains("modle"), "{said}");
    }
}
