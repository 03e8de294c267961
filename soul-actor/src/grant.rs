//! Grants: who may do what, decided here alone, from the caller's proven role and the run token we issued ourselves.
//!
//! | grant | from | may |
//! |---|---|---|
//! | chat | the agent, without a run | everything she may do in a conversation |
//! | heartbeat | agent or heartbeat, with the token of an open run | the same, for now; [`Grant::permits`] is the place to narrow it |
//! | time | the heartbeat, without a run | read, and open runs |
//! | human | the supervisor, where it says that its peer is a person | read, roll back, mend |
//! | watch | the supervisor | read |
//!
//! A run token is checked by its own contents (`HMAC-SHA256` under a key derived from this process's secret), so it
//! outlives a restart of the soul, and nobody else can make one.

use hmac::{Hmac, KeyInit as _, Mac as _};
use ipc::{
    contract::soul::{RunKind, RunToken},
    digest::hex,
    hello::{Role, Secret},
};
use jiff::{SignedDuration, Timestamp};
use sha2::Sha256;

use crate::{document::Text, message::Origin};

/// How long a run may last: longer than any turn, shorter than a token is worth stealing for.
const RUN_MAX: SignedDuration = SignedDuration::from_hours(24);

/// The longest name of a task, in characters.
const TASK_CHARS_MAX: usize = 200;

/// What somebody may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grant {
    /// Her part of a conversation.
    Chat,
    /// Her own time, in an open run.
    Heartbeat,
    /// The process that opens runs.
    Time,
    /// A person, whom the supervisor has seen to be none of ours.
    Human,
    /// A process that looks on.
    Watch,
}

/// Something that is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deed {
    /// Nothing changes.
    Read,
    /// A run of her own time begins.
    OpenRun,
    /// She is conceived or born.
    Birth,
    /// The journal grows.
    Journal,
    /// A desire's progress grows.
    Progress,
    /// A value, an opinion or a desire is written.
    Entry,
    /// One of the texts of the self is written.
    Text(Text),
    /// Something comes back as it was.
    Rollback,
    /// The repository is mended.
    Mend,
    /// It is looked for edits from outside.
    Look,
}

impl Grant {
    /// The grant of a call, or why it has none.
    pub(crate) fn of(
        role: Role,
        run: Option<&RunToken>,
        key: &RunKey,
        now: Timestamp,
    ) -> Result<Self, String> {
        match (role, run) {
            (Role::Agent, None) => Ok(Self::Chat),
            (Role::Agent | Role::Heartbeat, Some(run)) => match key.verify(run, now)? {
                RunKind::Heartbeat => Ok(Self::Heartbeat),
            },
            (Role::Heartbeat, None) => Ok(Self::Time),
            (Role::Supervisor | Role::Soul, _) => Ok(Self::Watch),
        }
    }

    /// The grant of what a person asks for: only the supervisor knows one, and says so.
    pub(crate) fn of_person(role: Role, human: bool) -> Self {
        match (role, human) {
            (Role::Supervisor, true) => Self::Human,
            (Role::Agent, _) => Self::Chat,
            (Role::Heartbeat, _) => Self::Time,
            (Role::Supervisor | Role::Soul, _) => Self::Watch,
        }
    }

    /// Whether a deed is granted; the refusal says which rule.
    pub(crate) fn permits(self, deed: Deed) -> Result<(), String> {
        let may = match (self, deed) {
            (_, Deed::Read)
            | (Self::Time, Deed::OpenRun)
            | (Self::Chat, Deed::Birth)
            | (Self::Human, Deed::Rollback | Deed::Mend | Deed::Look)
            | (Self::Watch, Deed::Look)
            | (
                Self::Chat | Self::Heartbeat,
                Deed::Journal | Deed::Progress | Deed::Entry | Deed::Text(_) | Deed::Rollback,
            ) => true,
            (Self::Chat | Self::Heartbeat | Self::Watch | Self::Human, Deed::OpenRun)
            | (Self::Heartbeat | Self::Time | Self::Watch | Self::Human, Deed::Birth)
            | (Self::Chat | Self::Heartbeat | Self::Time, Deed::Mend | Deed::Look)
            | (Self::Time | Self::Watch, Deed::Rollback)
            | (Self::Watch, Deed::Mend)
            | (
                Self::Time | Self::Watch | Self::Human,
                Deed::Journal | Deed::Progress | Deed::Entry | Deed::Text(_),
            ) => false,
        };
        if may {
            return Ok(());
        }
        Err(match (self, deed) {
            (_, Deed::OpenRun) => "only the heartbeat opens runs of her own time".to_owned(),
            (_, Deed::Birth) => "only the agent gives birth, and not in a run of her own time".to_owned(),
            (_, Deed::Rollback | Deed::Mend) => {
                "only a person may do this, from a program that Lisa did not start".to_owned()
            }
            (Self::Time, _) => "the heartbeat writes only in a run; open one and show its token".to_owned(),
            _ => "this process may look at the self, not write it".to_owned(),
        })
    }

    /// What a commit names as its caller and its origin; the tool in a conversation, the heartbeat in her own time.
    pub(crate) fn signature(self, tool: &str) -> (String, Origin) {
        match self {
            Self::Heartbeat | Self::Time => ("heartbeat".to_owned(), Origin::Heartbeat),
            Self::Human => ("human".to_owned(), Origin::Human),
            Self::Chat | Self::Watch => (tool.to_owned(), Origin::Chat),
        }
    }
}

/// The key that run tokens are made with.
pub(crate) struct RunKey(Vec<u8>);

impl RunKey {
    /// Derived from the secret this process was born with, which no other process knows.
    pub(crate) fn derive(secret: &Secret) -> Self {
        Self(tag(secret.as_bytes(), b"lisa soul: run tokens, version 1").finalize().into_bytes().to_vec())
    }

    /// Opens a run: `run1.<kind>.<expiry>.<nonce>.<task in hexadecimal>.<tag>`.
    pub(crate) fn open(
        &self,
        kind: RunKind,
        task: &str,
        nonce: &str,
        now: Timestamp,
    ) -> Result<RunToken, String> {
        if task.trim().is_empty() || ipc::text::chars(task) > TASK_CHARS_MAX {
            return Err(format!(
                "a run is for a task of 1 to {TASK_CHARS_MAX} characters, as `desire:learn-rust`"
            ));
        }
        let RunKind::Heartbeat = kind;
        let until = now.saturating_add(RUN_MAX).map_err(|error| error.to_string())?.as_second();
        let claim = format!("run1.heartbeat.{until}.{nonce}.{}", hex(task.as_bytes()));
        let tag = hex(&tag(&self.0, claim.as_bytes()).finalize().into_bytes());
        Ok(RunToken(format!("{claim}.{tag}")))
    }

    fn verify(&self, token: &RunToken, now: Timestamp) -> Result<RunKind, String> {
        let forged =
            || "the run token is not one of ours; open a run with the soul that is running now".to_owned();
        let (claim, tag_hex) = token.0.rsplit_once('.').ok_or_else(forged)?;
        tag(&self.0, claim.as_bytes())
            .verify_slice(&unhex(tag_hex).ok_or_else(forged)?)
            .map_err(|_| forged())?;
        let mut parts = claim.split('.');
        let (Some("run1"), Some("heartbeat"), Some(until)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(forged());
        };
        let until: i64 = until.parse().map_err(|_| forged())?;
        if now.as_second() >= until {
            return Err("the run has lasted more than a day and is over; open another".to_owned());
        }
        Ok(RunKind::Heartbeat)
    }
}

fn tag(key: &[u8], message: &[u8]) -> Hmac<Sha256> {
    let mut tag = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length will do");
    tag.update(message);
    tag
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text.chars().map(|c| u8::try_from(c.to_digit(16)?).ok()).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    Some(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn the_grant_follows_from_role_and_token_alone() {
        let key = RunKey::derive(&Secret::fresh());
        let now = at("2026-11-30T12:00:00Z");
        let run = key.open(RunKind::Heartbeat, "desire:学习", "n", now).unwrap();
        let of = |role, run| Grant::of(role, run, &key, now);
        assert_eq!(of(Role::Agent, None), Ok(Grant::Chat));
        assert_eq!(of(Role::Agent, Some(&run)), Ok(Grant::Heartbeat));
        assert_eq!(of(Role::Heartbeat, Some(&run)), Ok(Grant::Heartbeat));
        assert_eq!(of(Role::Heartbeat, None), Ok(Grant::Time));
        assert_eq!(of(Role::Supervisor, Some(&run)), Ok(Grant::Watch));
    }

    #[test]
    fn a_token_outlives_a_restart_and_nothing_else() {
        let secret = Secret::fresh();
        let now = at("2026-11-30T12:00:00Z");
        let run = RunKey::derive(&secret).open(RunKind::Heartbeat, "desire:x", "n", now).unwrap();
        let verify = |run: &RunToken, now| RunKey::derive(&secret).verify(run, now);
        assert!(verify(&run, at("2026-12-01T11:59:59Z")).is_ok());
        assert!(verify(&run, at("2026-12-01T12:00:00Z")).unwrap_err().contains("over"));
        assert!(RunKey::derive(&Secret::fresh()).verify(&run, now).is_err(), "of another supervisor");
        for forged in [
            "",
            ".",
            "run1",
            &run.0.replace("heartbeat", "human"),
            &run.0.replace("run1", "run2"),
            &format!("{}0", run.0),
        ] {
            assert!(verify(&RunToken(forged.to_owned()), now).is_err(), "{forged}");
        }
        let (claim, tag) = run.0.rsplit_once('.').unwrap();
        let later = claim.replace(&(now.as_second() + 86400).to_string(), "99999999999");
        assert!(verify(&RunToken(format!("{later}.{tag}")), now).is_err());
        assert!(RunKey::derive(&secret).open(RunKind::Heartbeat, " ", "n", now).is_err());
    }

    #[test]
    fn who_may_what() {
        let deeds = [
            Deed::Read,
            Deed::OpenRun,
            Deed::Birth,
            Deed::Journal,
            Deed::Progress,
            Deed::Entry,
            Deed::Text(Text::Name),
            Deed::Rollback,
            Deed::Mend,
            Deed::Look,
        ];
        let check = |grant: Grant, may: [bool; 10]| {
            for (deed, may) in deeds.into_iter().zip(may) {
                assert_eq!(grant.permits(deed).is_ok(), may, "{grant:?} {deed:?}");
            }
        };
        check(Grant::Chat, [true, false, true, true, true, true, true, true, false, false]);
        check(Grant::Heartbeat, [true, false, false, true, true, true, true, true, false, false]);
        check(Grant::Time, [true, true, false, false, false, false, false, false, false, false]);
        check(Grant::Watch, [true, false, false, false, false, false, false, false, false, true]);
        check(Grant::Human, [true, false, false, false, false, false, false, true, true, true]);
        assert_eq!(Grant::of_person(Role::Supervisor, true), Grant::Human);
        assert_eq!(Grant::of_person(Role::Supervisor, false), Grant::Watch);
        assert_eq!(
            Grant::of_person(Role::Agent, true),
            Grant::Chat,
            "nobody else can say that somebody is a person"
        );
        assert_eq!(Grant::Human.signature("x"), ("human".to_owned(), Origin::Human));
        assert_eq!(Grant::Heartbeat.signature("soul_patch").0, "heartbeat");
        assert_eq!(Grant::Chat.signature("soul_patch").0, "soul_patch");
    }
}
