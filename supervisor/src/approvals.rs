//! What a person has allowed, or refused, for good: `approvals/rules.json` in the home, written by the supervisor alone.
//!
//! A rule is one call and no other: a tool, its whole input, the folder it was asked for in. The file is a person's to read
//! and to edit; it is read anew for every question, so that a rule taken out counts no more. One that cannot be understood
//! allows nothing and is never written over.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use ipc::{contract::approval::Exactly, endpoint::private_folder};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The version of the file.
const VERSION: u32 = 1;
/// The most rules; more were not looked at one by one.
const RULES_MAX: usize = 1000;
/// The largest file that is read.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// The file, in its folder.
const FILE: &str = "rules.json";

/// The rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rules {
    version: u32,
    rules: Vec<Rule>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rule {
    /// Which call.
    pub(crate) call: Exactly,
    /// Whether it may run.
    pub(crate) allow: bool,
    /// What the person saw, for a person; it decides nothing.
    pub(crate) shown: String,
    /// When that was.
    pub(crate) at: Timestamp,
}

/// Why what was decided for good is not.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RulesError {
    #[error("could not {attempt} `{path}`")]
    Io { attempt: &'static str, path: PathBuf, source: io::Error },
    #[error("could not use the folder of what is allowed for good")]
    Folder(#[source] ipc::endpoint::EndpointError),
    #[error("`{path}` is no plain file of at most {} MiB; move it away", FILE_BYTES_MAX / 1024 / 1024)]
    NotAFile { path: PathBuf },
    #[error("`{path}` does not say what is allowed for good; correct it, or move it away")]
    Unreadable { path: PathBuf, source: serde_json::Error },
    #[error(
        "`{path}` is of version {version}, and this is version {VERSION}; use the newer `lisa`, or move it away"
    )]
    Version { path: PathBuf, version: u32 },
    #[error("{RULES_MAX} calls are decided for good already; take some out of `{path}`")]
    TooMany { path: PathBuf },
}

impl Default for Rules {
    fn default() -> Self {
        Self { version: VERSION, rules: Vec::new() }
    }
}

impl Rules {
    /// What is decided about a call: whether it may run.
    pub(crate) fn decide(&self, call: &Exactly) -> Option<bool> {
        self.rules.iter().rev().find(|rule| rule.call == *call).map(|rule| rule.allow)
    }

    /// Adds a rule; an older one about the same call gives way.
    fn add(&mut self, rule: Rule) -> bool {
        self.rules.retain(|known| known.call != rule.call);
        let fits = self.rules.len() < RULES_MAX;
        if fits {
            self.rules.push(rule);
        }
        fits
    }
}

/// Reads the rules in `folder`; where there are none, none.
pub(crate) fn read(folder: &Path) -> Result<Rules, RulesError> {
    let path = folder.join(FILE);
    let io = |attempt| {
        let path = path.clone();
        move |source| RulesError::Io { attempt, path, source }
    };
    // a link could lead to a file that somebody else writes
    let metadata = match fs::symlink_metadata(folder).and_then(|_| fs::symlink_metadata(&path)) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Rules::default()),
        Err(error) => return Err(io("look at")(error)),
    };
    let is_link = fs::symlink_metadata(folder).is_ok_and(|folder| folder.file_type().is_symlink());
    if is_link || !metadata.is_file() || metadata.len() > FILE_BYTES_MAX {
        return Err(RulesError::NotAFile { path });
    }
    let mut text = String::new();
    let file = File::open(&path).map_err(io("read"))?;
    file.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(io("read"))?;
    let unreadable = |source| RulesError::Unreadable { path: path.clone(), source };
    let value: serde_json::Value = serde_json::from_str(&text).map_err(unreadable)?;
    let version = value.get("version").and_then(serde_json::Value::as_u64);
    if let Some(version) = version.and_then(|version| u32::try_from(version).ok()).filter(|v| *v != VERSION) {
        return Err(RulesError::Version { path, version });
    }
    serde_json::from_value(value).map_err(unreadable)
}

/// Adds a rule to those in `folder`. When it returns, the rule is on the disk; before that the old ones are.
pub(crate) fn remember(folder: &Path, rule: Rule) -> Result<(), RulesError> {
    let path = folder.join(FILE);
    let mut rules = read(folder)?;
    if !rules.add(rule) {
        return Err(RulesError::TooMany { path });
    }
    private_folder(folder).map_err(RulesError::Folder)?;
    let fresh = folder.join(format!("{FILE}.new"));
    let failed = |source| RulesError::Io { attempt: "write", path: path.clone(), source };
    write(&fresh, &rules).and_then(|()| fs::rename(&fresh, &path)).map_err(failed)?;
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)
}

fn write(path: &Path, rules: &Rules) -> io::Result<()> {
    // what a cut-off write left there is nobody's
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let mut text = serde_json::to_vec_pretty(rules)?;
    text.push(b'\n');
    file.write_all(&text)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(input: &str, allow: bool) -> Rule {
        let call = Exactly { tool: "bash".into(), folder: "/w".into(), input: input.into() };
        Rule { call, allow, shown: "列出 ls".into(), at: Timestamp::UNIX_EPOCH }
    }

    #[test]
    fn a_rule_counts_for_its_call_alone_until_a_person_takes_it_out() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("approvals");
        assert_eq!(read(&folder).unwrap(), Rules::default());
        remember(&folder, rule("a", true)).unwrap();
        remember(&folder, rule("b", false)).unwrap();
        let decide = |input: &str| read(&folder).unwrap().decide(&rule(input, true).call);
        assert_eq!((decide("a"), decide("b"), decide("c")), (Some(true), Some(false), None));
        let elsewhere = Exactly { folder: "/v".into(), ..rule("a", true).call };
        assert_eq!(read(&folder).unwrap().decide(&elsewhere), None);
        remember(&folder, rule("a", false)).unwrap();
        assert_eq!((decide("a"), read(&folder).unwrap().rules.len()), (Some(false), 2));
        fs::write(folder.join("rules.json.new"), "torn").unwrap();
        remember(&folder, rule("c", true)).unwrap();
        assert_eq!(decide("c"), Some(true));
        fs::remove_file(folder.join(FILE)).unwrap();
        assert_eq!(decide("c"), None);
    }

    #[test]
    fn a_file_that_is_not_understood_allows_nothing_and_is_not_written_over() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("approvals");
        remember(&folder, rule("a", true)).unwrap();
        let path = folder.join(FILE);
        let good = fs::read_to_string(&path).unwrap();
        let half: String = good.chars().take(good.chars().count() / 2).collect();
        let later = good.replace("\"version\": 1", "\"version\": 2");
        let wider = good.replace("\"tool\"", "\"tools\"");
        for bad in
            ["", "null", "[]", "{\"version\": 1}", "{\"version\": 1, \"rules\": [{}]}", &half, &later, &wider]
        {
            fs::write(&path, bad).unwrap();
            let why = read(&folder).unwrap_err();
            assert!(why.to_string().contains("rules.json"), "{why}");
            remember(&folder, rule("b", true)).unwrap_err();
            assert_eq!(fs::read_to_string(&path).unwrap(), bad);
        }
        // nor are links followed, to a file or to a folder
        fs::remove_file(&path).unwrap();
        let other = home.path().join("theirs.json");
        fs::write(&other, &good).unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        assert!(matches!(read(&folder), Err(RulesError::NotAFile { .. })));
        fs::rename(&folder, home.path().join("moved")).unwrap();
        fs::remove_file(home.path().join("moved").join(FILE)).unwrap();
        fs::rename(&other, home.path().join("moved").join(FILE)).unwrap();
        std::os::unix::fs::symlink(home.path().join("moved"), &folder).unwrap();
        assert!(matches!(read(&folder), Err(RulesError::NotAFile { .. })));
    }

    #[test]
    fn there_are_never_too_many() {
        let mut rules = Rules::default();
        for n in 0..RULES_MAX {
            assert!(rules.add(rule(&n.to_string(), true)));
        }
        assert!(!rules.add(rule("one more", true)) && rules.rules.len() == RULES_MAX);
    }
}
