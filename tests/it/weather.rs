//! Weather: a disk that fills up, is read-only, forbids or limits, under the real processes; what is refused says why, what
//! was stands, `lisa status` names it while it lasts, and afterwards it goes on without a restart.
//!
//! Whoever runs the tests as root needs other means than permissions, which do not bind root: then the processes run as
//! nobody. File systems of a test's own are mounted where that is allowed; where it is not, it is said what was skipped.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::stage::{Mount, World, eventually, said, say, secs};

/// A world in bad weather, and what is known of it.
struct Weather {
    world: World,
    pid: u32,
    number: u32,
    /// What she is, of all that was acknowledged.
    identity: String,
}

impl Weather {
    fn in_world(world: World) -> Self {
        world.up_and_born();
        let pid = world.pid("soul");
        let mut weather = Self { world, pid, number: 0, identity: String::new() };
        weather.writes();
        weather.world.soul_is_whole();
        weather
    }

    /// Stops her, has something done, and starts her again.
    fn between_lives(&mut self, what: impl FnOnce(&Self)) {
        self.world.lisa(&["down"]).ok();
        what(self);
        self.world.up();
        self.pid = self.world.pid("soul");
    }

    fn soul(&self) -> PathBuf {
        self.world.home().join("soul")
    }

    /// Has her change who she is; gives what the tool said where it refused.
    fn write(&mut self) -> Result<(), String> {
        self.number += 1;
        let identity = format!("heron number {}", self.number);
        let talk = format!("change your identity to {identity}");
        let told = self.world.lisa(&["chat", "--json", &talk]).json_lines();
        let ended =
            |status: &str| told.iter().find(|event| event["type"] == "tool" && event["status"] == status);
        if let Some(event) = ended("failed") {
            return Err(event["content"][0]["content"]["text"].as_str().unwrap().to_owned());
        }
        ended("completed").unwrap_or_else(|| panic!("{told:?}"));
        self.identity = identity;
        Ok(())
    }

    #[track_caller]
    fn writes(&mut self) {
        self.write().unwrap();
    }

    /// Writes until one is refused, as all are from then on; gives the reason.
    #[track_caller]
    fn refused(&mut self) -> String {
        for _ in 0..40 {
            if let Err(why) = self.write() {
                return why;
            }
        }
        panic!("nothing was refused\n{}", self.world.logs());
    }

    fn notices(&self) -> Vec<String> {
        let status = self.world.status();
        let notices = status["notices"].as_array().unwrap();
        notices.iter().map(|notice| notice.as_str().unwrap().to_owned()).collect()
    }

    /// The weather is bad: `reason` and `remedy` are said to who writes and in the status, and all that stood stands.
    #[track_caller]
    fn is_bad(&mut self, reason: &str, remedy: &str) {
        let why = self.refused();
        assert!(why.contains(reason) && why.contains(remedy), "{why}");
        eventually(secs(15), "the status names it", || {
            self.notices()
                .iter()
                .any(|notice| notice.contains(reason) && notice.contains(remedy))
                .then_some(())
        });
        let shown = self.world.lisa(&["status"]).ok();
        assert!(shown.contains(reason), "{shown}");
        let read = self.world.lisa(&["soul", "show", "identity"]).ok();
        assert!(read.contains(&self.identity), "what was acknowledged is read: {read}");
        let history = self.world.lisa(&["soul", "history", "--json"]).json_lines();
        assert!(history.len() >= 2, "{history:?}");
        assert!(self.write().is_err(), "and so is the next");
    }

    /// The weather is good again.
    #[track_caller]
    fn clears_up(mut self) {
        eventually(secs(15), "the status no longer names it", || {
            let notices = self.notices();
            notices.is_empty().then_some(())
        });
        self.writes();
        assert_eq!(self.world.pid("soul"), self.pid, "nobody had to start anything again");
        let read = self.world.lisa(&["soul", "show", "identity"]).ok();
        assert!(read.contains(&self.identity), "{read}");
        // one commit for each write that was acknowledged, none for one that was refused
        let history: Vec<Value> = self.world.lisa(&["soul", "history", "identity", "--json"]).json_lines();
        let requests: std::collections::BTreeSet<_> =
            history.iter().filter_map(|entry| entry["trailers"]["Request-Id"].as_str()).collect();
        assert_eq!(requests.len(), history.len(), "{history:#?}");
        let first = "heron number 1";
        let diff = self.world.lisa(&["soul", "diff", "identity"]).ok();
        assert!(diff.contains(first), "{diff}");
        self.world.soul_is_whole();
    }
}

/// Limits how large the files of a process may grow.
fn limit(pid: u32, bytes: &str) -> Result<String, String> {
    said("prlimit", &["--pid", &pid.to_string(), &format!("--fsize={bytes}:")])
}

#[test]
fn a_file_that_may_not_grow_is_a_refusal_and_kills_nobody() {
    let mut weather = Weather::in_world(World::new());
    if let Err(why) = limit(weather.pid, "1") {
        return say(&format!("skipped: no limit can be set here ({})", why.trim()));
    }
    weather.is_bad("File too large", "ulimit -f");
    limit(weather.pid, "unlimited").unwrap();
    weather.clears_up();
}

/// A file system of a test's own in the place of the soul.
fn mounted(kind: &[&str]) -> Result<(World, Mount), String> {
    let world = World::new();
    let soul = world.home().join("soul");
    std::fs::create_dir_all(&soul).unwrap();
    let mount = Mount::at(kind, &soul)?;
    Ok((world, mount))
}

#[test]
fn a_disk_that_is_full_refuses_and_goes_on_when_there_is_room() {
    let (world, mount) = match mounted(&["-t", "tmpfs", "-o", "size=24m", "tmpfs"]) {
        Ok(made) => made,
        Err(why) => return say(&format!("skipped: no tmpfs can be mounted here ({})", why.trim())),
    };
    let mut weather = Weather::in_world(world);
    let ballast = weather.soul().join("ballast");
    let mut file = std::fs::File::create(&ballast).unwrap();
    while std::io::Write::write_all(&mut file, &[7; 4096]).is_ok() {}
    weather.is_bad("No space left on device", "make room");
    // what is open still takes its room
    drop(file);
    std::fs::remove_file(ballast).unwrap();
    weather.clears_up();
    drop(mount);
}

#[test]
fn a_disk_that_was_mounted_read_only_is_read_and_written_once_it_is_not() {
    let (world, mount) = match mounted(&["-t", "tmpfs", "-o", "size=64m", "tmpfs"]) {
        Ok(made) => made,
        Err(why) => return say(&format!("skipped: no tmpfs can be mounted here ({})", why.trim())),
    };
    let mut weather = Weather::in_world(world);
    let soul = weather.soul().to_str().unwrap().to_owned();
    weather.between_lives(|_| drop(said("mount", &["-o", "remount,ro", &soul]).unwrap()));
    weather.is_bad("Read-only file system", "mount it writable");
    said("mount", &["-o", "remount,rw", &soul]).unwrap();
    weather.writes();
    weather.clears_up();
    drop(mount);
}

/// Sets the permissions of a folder and everything below it.
fn allow(place: &Path, mode: &str) {
    said("chmod", &["-R", mode, place.to_str().unwrap()]).unwrap();
}

#[test]
fn permissions_that_were_lost_refuse_and_when_they_are_back_it_goes_on() {
    let mut weather = Weather::in_world(World::of_nobody());
    allow(&weather.soul(), "a-w");
    weather.is_bad("Permission denied", "the right to write");
    allow(&weather.soul(), "u+w");
    weather.clears_up();
}

#[test]
fn while_git_cannot_follow_the_log_nothing_more_is_accepted_and_then_it_catches_up() {
    let mut weather = Weather::in_world(World::of_nobody());
    let objects = weather.soul().join(".git/objects");
    allow(&objects, "a-w");
    weather.writes();
    weather.is_bad("Permission denied", "nothing that was accepted is lost");
    let head = weather.world.git(&["show", "HEAD:identity.md"]);
    assert!(!head.contains(&weather.identity), "git is behind: {head}");
    allow(&objects, "u+w");
    weather.clears_up();
}

#[test]
fn a_soul_that_starts_without_permission_is_read_and_writes_when_it_has_it() {
    let mut weather = Weather::in_world(World::of_nobody());
    weather.between_lives(|weather| allow(&weather.soul().join(".git"), "a-w"));
    weather.is_bad("Permission denied", "the right to write");
    allow(&weather.soul(), "u+w");
    weather.writes();
    weather.clears_up();
}
