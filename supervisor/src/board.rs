//! What is known about everything right now, for whoever asks: written by the house, read by the chat.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use ipc::{
    contract::{
        agent::ToolServer,
        chat::{Process, SoulStatus, Status},
        sessions::Spent,
    },
    hello::Role,
};
use jiff::SignedDuration;
use serde_json::Value;

use crate::child::View;

/// The children in the order in which people read them, and in the reverse of the order in which they end.
pub(crate) const CHILDREN: [Role; 3] = [Role::Soul, Role::Agent, Role::Heartbeat];

/// What is said of a configuration that was to be read anew.
const NOT_USED: &str = "the configuration has changed and cannot be used, so the one before still holds; mend it, then send SIGHUP again";

/// A picture of the house at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Board {
    pub(crate) home: String,
    pub(crate) run: String,
    pub(crate) epoch: u64,
    pub(crate) children: BTreeMap<Role, View>,
    pub(crate) soul: SoulStatus,
    pub(crate) stopping: bool,
    /// Why the newest configuration is not used, where that is so.
    pub(crate) refused: Option<String>,
}

impl Board {
    /// Before anything was started.
    pub(crate) fn new(home: &ipc::home::Home, run: &ipc::home::Run, epoch: u64) -> Self {
        Self {
            home: home.path().display().to_string(),
            run: run.path().display().to_string(),
            epoch,
            children: CHILDREN.map(|role| (role, View::never_started())).into(),
            soul: SoulStatus::default(),
            stopping: false,
            refused: None,
        }
    }

    /// Why nothing can be asked of a child any more, where that is so.
    pub(crate) fn no_use_asking(&self, role: Role) -> Option<String> {
        let child = self.children.get(&role)?;
        match child.state {
            _ if self.stopping => Some("Lisa is being stopped".to_owned()),
            "parked" => {
                Some(format!("the {role} is parked: {}", child.why.as_deref().unwrap_or("it kept dying")))
            }
            _ => None,
        }
    }

    /// How the agent says its servers of tools are.
    fn servers(&self) -> Vec<ToolServer> {
        let said = self.children.get(&Role::Agent).and_then(|agent| agent.facts.get("servers"));
        said.and_then(|said| serde_json::from_value(said.clone()).ok()).unwrap_or_default()
    }

    /// The whole status as of `now`; `rss` asks the system for a process's resident memory.
    pub(crate) fn status(&self, clients: u64, now: Instant, rss: impl Fn(u32) -> Option<u64>) -> Status {
        let retry_in = |view: &View| {
            let left = view.retry_at?.saturating_duration_since(now);
            // whole seconds are what a person reads
            SignedDuration::try_from(Duration::from_secs(left.as_secs() + u64::from(left.subsec_nanos() > 0)))
                .ok()
        };
        let own_pid = std::process::id();
        let supervisor = Process {
            name: Role::Supervisor.to_string(),
            pid: Some(own_pid),
            state: if self.stopping { "stopping" } else { "ready" }.to_owned(),
            build: ipc::BUILD.to_owned(),
            restarts: 0,
            rss_bytes: rss(own_pid),
            why: None,
            retry_in: None,
        };
        let children = CHILDREN.iter().filter_map(|role| {
            let view = self.children.get(role)?;
            Some(Process {
                name: role.to_string(),
                pid: view.pid,
                state: view.state.to_owned(),
                build: view.build.clone(),
                restarts: view.restarts,
                rss_bytes: view.pid.and_then(&rss),
                why: view.why.clone(),
                retry_in: retry_in(view),
            })
        });
        let fact = |role: Role, name: &str| {
            self.children
                .get(&role)?
                .facts
                .get(name)?
                .as_str()
                .filter(|fact| !fact.is_empty())
                .map(str::to_owned)
        };
        let parked = CHILDREN.iter().filter_map(|role| {
            let view = self.children.get(role).filter(|view| view.state == "parked")?;
            let why = view.why.as_deref().unwrap_or_default();
            let again =
                retry_in(view).map(|left| format!("; it is tried again in {left:#}")).unwrap_or_default();
            Some(format!(
                "the {role} is parked: {why}{again}; mend it, then `lisa down` and `lisa up`, or send SIGHUP"
            ))
        });
        let refused = self.refused.iter().map(|why| format!("{NOT_USED}: {why}"));
        let notices = CHILDREN.iter().filter_map(|role| fact(*role, "notice"));
        let offer = fact(Role::Agent, "offer");
        let unborn = fact(Role::Agent, "unborn");
        Status {
            processes: std::iter::once(supervisor).chain(children).collect(),
            home: self.home.clone(),
            run: self.run.clone(),
            epoch: self.epoch,
            model: fact(Role::Agent, "model").unwrap_or_default(),
            sandbox: fact(Role::Agent, "sandbox").unwrap_or_default(),
            offer,
            clients,
            servers: self.servers(),
            notices: refused.chain(parked).chain(notices).chain(unborn.clone()).collect(),
            soul: SoulStatus { unborn, ..self.soul.clone() },
            spent: self.spent(),
        }
    }
}

impl Board {
    /// What the agent says her thinking cost; what cannot be read is as if it had not said.
    fn spent(&self) -> Option<Spent> {
        let said = self.children.get(&Role::Agent)?.facts.get("spent")?;
        serde_json::from_value(said.clone()).ok()
    }
}

/// The resident memory of a process in bytes, as the kernel counts it.
pub(crate) fn resident_bytes(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Facts and status of the soul, folded into what the board says of her.
pub(crate) fn soul_status(name: &str, commit: Option<String>, prompt_version: u64) -> SoulStatus {
    SoulStatus { name: name.to_owned(), commit, prompt_version, unborn: None }
}

/// A map of event fields.
pub(crate) fn fields<const N: usize>(fields: [(&str, Value); N]) -> serde_json::Map<String, Value> {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ipc::home::{Home, Run};
    use serde_json::json;

    #[test]
    fn a_parked_child_is_said_with_the_remedy_and_nothing_is_asked_of_it() {
        let mut board = Board::new(&Home::at("/h"), &Run::at("/h/run"), 3);
        assert_eq!(board.no_use_asking(Role::Agent), None);
        let agent = board.children.get_mut(&Role::Agent).unwrap();
        (agent.state, agent.why) = ("parked", Some("it died 6 times".to_owned()));
        let now = Instant::now();
        agent.retry_at = Some(now + Duration::from_millis(290_500));
        agent.facts.insert("model".into(), json!("offline"));
        assert!(board.no_use_asking(Role::Agent).unwrap().contains("6 times"));
        assert_eq!(board.no_use_asking(Role::Soul), None);
        let status = board.status(2, now, |_| Some(7));
        let said = &status.notices[0];
        assert!(said.contains("lisa up") && said.contains("tried again in 4m 51s"), "{said}");
        assert_eq!(status.processes[2].retry_in, Some(SignedDuration::from_secs(291)));
        assert_eq!((status.model.as_str(), status.epoch, status.clients), ("offline", 3, 2));
        let names: Vec<_> = status.processes.iter().map(|process| process.name.as_str()).collect();
        assert_eq!(names, ["supervisor", "soul", "agent", "heartbeat"]);
        board.refused = Some("`x` is no zone".to_owned());
        let first = board.status(2, now, |_| None).notices.remove(0);
        assert!(first.contains("`x` is no zone") && first.contains("still holds"), "{first}");
        board.stopping = true;
        assert!(board.no_use_asking(Role::Soul).is_some());
    }

    #[test]
    fn our_own_memory_is_some() {
        assert!(resident_bytes(std::process::id()).unwrap() > 100_000);
        assert_eq!(resident_bytes(u32::MAX), None);
    }
}
