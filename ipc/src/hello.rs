//! The handshake that opens every connection between our processes.
//!
//! The caller says which contract and version it speaks, who it is, of which build and life, and proves it with the
//! secret of its role. Secrets are made anew by each supervisor and handed to a child through a pipe at its birth
//! ([`crate::child`]): they are never in an argument, an environment or a file, where a tool process could read them.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

use crate::{id::random_hex, wire::RpcError};

/// The method of the first frame on a connection.
pub const METHOD: &str = "hello";

/// Which of our processes is speaking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The one that keeps the others alive.
    Supervisor,
    /// The one that holds the self.
    Soul,
    /// The one that thinks.
    Agent,
    /// The one that wakes her.
    Heartbeat,
}

impl Role {
    /// The name people see, and the stem of socket and log names.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Supervisor => "supervisor",
            Self::Soul => "soul",
            Self::Agent => "agent",
            Self::Heartbeat => "heartbeat",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What proves a role. It prints as dots.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// A new one: 256 random bits.
    pub fn fresh() -> Self {
        Self(random_hex::<32>())
    }

    /// Whether both are the same, found out in a time that does not depend on where they differ.
    pub fn matches(&self, other: &Self) -> bool {
        let differing = self.0.bytes().zip(other.0.bytes()).fold(0, |seen, (a, b)| seen | (a ^ b));
        self.0.len() == other.0.len() && differing == 0
    }

    /// The bytes, for deriving keys from.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Who may call a process, and the secret that proves each of them.
pub type Keyring = BTreeMap<Role, Secret>;

/// The first frame of a connection, from the side that dialled.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Hello {
    /// The contract spoken, by name.
    pub contract: String,
    /// Its version.
    pub version: u32,
    /// Who is calling.
    pub role: Role,
    /// Of which build.
    pub build: String,
    /// In which life, counted by the supervisor.
    pub life: u64,
    /// The proof.
    pub secret: Secret,
    /// Whether the caller wants to be told what happens (the contract's notices).
    pub notices: bool,
}

/// The answer to a [`Hello`] that was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// The contract that will be spoken.
    pub contract: String,
    /// Its version.
    pub version: u32,
    /// The build of the process that answers.
    pub build: String,
    /// Its life.
    pub life: u64,
}

/// Whether a caller may stay. Pure: the rules of the handshake and nothing else.
pub fn admit(hello: &Hello, contract: &str, version: u32, keyring: &Keyring) -> Result<(), RpcError> {
    let refuse = |why: String| Err(RpcError::new(crate::wire::code::REFUSED, why));
    if hello.contract != contract || hello.version != version {
        return refuse(format!(
            "this socket speaks `{contract}` version {version}, the caller `{}` version {}; run both from one build",
            hello.contract, hello.version
        ));
    }
    match keyring.get(&hello.role) {
        Some(secret) if secret.matches(&hello.secret) => Ok(()),
        Some(_) => refuse(format!("the caller does not know the secret of the role `{}`", hello.role)),
        None => refuse(format!("the role `{}` has nothing to ask here", hello.role)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn hello(role: Role, secret: &Secret) -> Hello {
        Hello {
            contract: "soul".into(),
            version: 1,
            role,
            build: "0.1.0".into(),
            life: 3,
            secret: secret.clone(),
            notices: true,
        }
    }

    #[test]
    fn only_a_known_role_with_its_own_secret_and_the_same_words_may_stay() {
        let (agent, other) = (Secret::fresh(), Secret::fresh());
        let keyring = Keyring::from([(Role::Agent, agent.clone()), (Role::Heartbeat, other.clone())]);
        let admitted = |hello: &Hello| admit(hello, "soul", 1, &keyring).is_ok();
        assert!(admitted(&hello(Role::Agent, &agent)));
        assert!(!admitted(&hello(Role::Agent, &other)), "the secret of another role");
        assert!(!admitted(&hello(Role::Supervisor, &agent)), "a role without a key");
        assert!(!admitted(&Hello { version: 2, ..hello(Role::Agent, &agent) }));
        assert!(!admitted(&Hello { contract: "agent".into(), ..hello(Role::Agent, &agent) }));
        assert!(!admitted(&Hello { secret: Secret(String::new()), ..hello(Role::Agent, &agent) }));
    }

    #[test]
    fn the_json_is_pinned_and_the_secret_is_not_printed() {
        let hello = hello(Role::Agent, &Secret("s".into()));
        assert_eq!(
            serde_json::to_value(&hello).unwrap(),
            json!({"contract": "soul", "version": 1, "role": "agent", "build": "0.1.0", "life": 3, "secret": "s", "notices": true})
        );
        assert!(!format!("{hello:?}").contains("\"s\""));
    }
}
