//! Grants: who may do what, decided here alone, from the caller's proven role and the run token we issued ourselves.
//!
//! | grant | from | may |
//! |---|---|---|
//! | chat | the agent, without a run | everything she may do in a conversation |
//! | heartbeat | agent or heartbeat, with the token of an open run | the same |
//! | examen | with the token of an examen | journal, progress, a new desire: a mirror changes nothing |
//! | dream | with the token of a dream | journal, `soul` and `memory`, and merge what qualified: what has settled, not who she is |
//! | reflect | the agent, with the token of a reflection | as in a conversation, and one of `identity`, `purpose`, `constitution` once a session |
//! | time | the heartbeat, without a run | read, and open runs |
//! | human | the supervisor, where it says that its peer is a person | write any document, rate, roll back, mend |
//! | watch | the supervisor | read |
//!
//! `birth`, `migration` and `manual` are no caller's: they are what this process itself does, or finds done.
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
    /// A run that was opened: her own time, or a look back.
    Run(RunKind),
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
    /// A run begins.
    OpenRun(RunKind),
    /// She is conceived or born.
    Birth,
    /// The journal grows.
    Journal,
    /// Something is noted.
    Note,
    /// A desire's progress grows.
    Progress,
    /// The progress of a desire is condensed.
    Condense,
    /// A desire comes to be.
    NewDesire,
    /// A desire that is there changes or ends.
    Desire,
    /// A value, an opinion or a page about a person is written.
    Entry,
    /// What she feels changes.
    Feel,
    /// She objects, or what became of that is noted.
    Object,
    /// What qualified is merged into her soul.
    Dream,
    /// One of the texts of the self is written.
    Text(Text),
    /// Something comes back as it was.
    Rollback,
    /// A document is written in a person's name.
    Edit,
    /// A reply of hers is rated.
    Rate,
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
            (Role::Agent | Role::Heartbeat, Some(run)) => key.verify(run, now).map(|run| Self::Run(run.kind)),
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
        use RunKind::{Dream, Examen, Heartbeat, Reflect};
        let may = match deed {
            Deed::Read => true,
            Deed::OpenRun(Reflect) | Deed::Birth => self == Self::Chat,
            Deed::OpenRun(Heartbeat | Examen | Dream) => self == Self::Time,
            Deed::Journal => matches!(self, Self::Chat | Self::Run(_)),
            Deed::Progress | Deed::NewDesire => {
                matches!(self, Self::Chat | Self::Run(Heartbeat | Examen | Reflect))
            }
            Deed::Desire | Deed::Entry | Deed::Feel | Deed::Note => {
                matches!(self, Self::Chat | Self::Run(Heartbeat | Reflect))
            }
            Deed::Condense => self == Self::Run(Reflect),
            Deed::Dream => matches!(self, Self::Chat | Self::Run(Dream)),
            Deed::Text(Text::Rules) => false,
            Deed::Text(Text::Soul | Text::Memory) => {
                matches!(self, Self::Chat | Self::Run(Heartbeat | Reflect | Dream))
            }
            Deed::Text(_) => matches!(self, Self::Chat | Self::Run(Heartbeat | Reflect)),
            Deed::Object => matches!(self, Self::Chat | Self::Run(Heartbeat)),
            Deed::Rollback => matches!(self, Self::Chat | Self::Run(Heartbeat) | Self::Human),
            Deed::Edit | Deed::Rate | Deed::Mend => self == Self::Human,
            Deed::Look => matches!(self, Self::Human | Self::Watch),
        };
        if may { Ok(()) } else { Err(self.refusal(deed)) }
    }

    /// Which rule is in the way, and what can be done instead.
    fn refusal(self, deed: Deed) -> String {
        let why = match (self, deed) {
            (_, Deed::OpenRun(RunKind::Reflect)) => "only the agent opens a reflection",
            (_, Deed::OpenRun(_)) => "only the heartbeat opens runs of her own time",
            (_, Deed::Birth) => "only the agent gives birth, and not in a run of her own time",
            (Self::Chat | Self::Run(_), Deed::Text(Text::Rules)) => {
                "`rules` are laid down by a person alone; say in your reply what you would change in them"
            }
            (Self::Run(RunKind::Examen), Deed::Desire) => {
                "an examen changes no desire that is there; add a new one that sets you right, or note in its progress what you saw"
            }
            (Self::Run(RunKind::Examen), _) => {
                "an examen is a mirror: it writes the journal, progress and new desires; write down what you saw, and a later reflection may change the rest"
            }
            (Self::Run(RunKind::Heartbeat | RunKind::Reflect), Deed::Dream) => {
                "what qualified is merged in a dream, or in a conversation when your person asks; `soul_candidates` shows what there is"
            }
            (Self::Run(RunKind::Dream), _) => {
                "a dream writes `soul`, `memory` and the journal alone; put the rest in the journal, for when you are awake"
            }
            (Self::Run(RunKind::Reflect), Deed::Rollback | Deed::Object) => {
                "a reflection looks back: it objects to nothing and brings nothing back; do that in a conversation"
            }
            (_, Deed::Condense) => "progress is condensed in a reflection alone; add an entry instead",
            (_, Deed::Rollback | Deed::Mend | Deed::Edit | Deed::Rate) => {
                "only a person may do this, from a program that Lisa did not start"
            }
            (Self::Time, _) => "the heartbeat writes only in a run; open one and show its token",
            _ => "this process may look at the self, not write it",
        };
        why.to_owned()
    }

    /// What a commit names as its caller and its origin: the tool in a conversation, else the kind of run.
    pub(crate) fn signature(self, tool: &str) -> (String, Origin) {
        match self {
            Self::Run(kind) => (kind.name().to_owned(), Origin::Run(kind)),
            Self::Time => ("heartbeat".to_owned(), Origin::Run(RunKind::Heartbeat)),
            Self::Human => ("human".to_owned(), Origin::Human),
            Self::Chat | Self::Watch => (tool.to_owned(), Origin::Chat),
        }
    }
}

/// A run that is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Run {
    /// What kind of time it is.
    pub(crate) kind: RunKind,
    /// What is done in it.
    pub(crate) task: String,
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
        let until = now.saturating_add(RUN_MAX).map_err(|error| error.to_string())?.as_second();
        let claim = format!("run1.{}.{until}.{nonce}.{}", kind.name(), hex(task.as_bytes()));
        let tag = hex(&tag(&self.0, claim.as_bytes()).finalize().into_bytes());
        Ok(RunToken(format!("{claim}.{tag}")))
    }

    /// The run a token was made for, if it is one of ours and not over.
    pub(crate) fn verify(&self, token: &RunToken, now: Timestamp) -> Result<Run, String> {
        let forged =
            || "the run token is not one of ours; open a run with the soul that is running now".to_owned();
        let (claim, tag_hex) = token.0.rsplit_once('.').ok_or_else(forged)?;
        tag(&self.0, claim.as_bytes())
            .verify_slice(&unhex(tag_hex).ok_or_else(forged)?)
            .map_err(|_| forged())?;
        let parts: Vec<&str> = claim.split('.').collect();
        let ["run1", kind, until, _nonce, task] = parts.as_slice() else { return Err(forged()) };
        let kind = RunKind::ALL.into_iter().find(|known| known.name() == *kind).ok_or_else(forged)?;
        let until: i64 = until.parse().map_err(|_| forged())?;
        if now.as_second() >= until {
            return Err("the run has lasted more than a day and is over; open another".to_owned());
        }
        let task = unhex(task).and_then(|task| String::from_utf8(task).ok()).ok_or_else(forged)?;
        Ok(Run { kind, task })
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
        assert_eq!(of(Role::Agent, Some(&run)), Ok(Grant::Run(RunKind::Heartbeat)));
        assert_eq!(of(Role::Heartbeat, Some(&run)), Ok(Grant::Run(RunKind::Heartbeat)));
        for kind in RunKind::ALL {
            let run = key.open(kind, "session:x", "n", now).unwrap();
            assert_eq!(key.verify(&run, now), Ok(Run { kind, task: "session:x".into() }));
            assert_eq!(Grant::of(Role::Agent, Some(&run), &key, now), Ok(Grant::Run(kind)));
        }
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
        use RunKind::{Dream, Examen, Heartbeat, Reflect};
        let grants = [
            Grant::Chat,
            Grant::Run(Heartbeat),
            Grant::Run(Examen),
            Grant::Run(Dream),
            Grant::Run(Reflect),
            Grant::Time,
            Grant::Human,
            Grant::Watch,
        ];
        // in the order of the grants above
        let check = |deed: Deed, may: &str| {
            for (grant, may) in grants.into_iter().zip(may.chars()) {
                let permitted = grant.permits(deed);
                assert_eq!(permitted.is_ok(), may == '+', "{grant:?} {deed:?}");
                assert!(
                    permitted.is_ok() || permitted.unwrap_err().chars().count() > 30,
                    "{grant:?} {deed:?}"
                );
            }
        };
        check(Deed::Read, "++++++++");
        check(Deed::OpenRun(Heartbeat), "-----+--");
        check(Deed::OpenRun(Examen), "-----+--");
        check(Deed::OpenRun(Dream), "-----+--");
        check(Deed::OpenRun(Reflect), "+-------");
        check(Deed::Birth, "+-------");
        check(Deed::Journal, "+++++---");
        check(Deed::Progress, "+++-+---");
        check(Deed::NewDesire, "+++-+---");
        check(Deed::Desire, "++--+---");
        check(Deed::Entry, "++--+---");
        check(Deed::Feel, "++--+---");
        check(Deed::Note, "++--+---");
        check(Deed::Condense, "----+---");
        check(Deed::Dream, "+--+----");
        for text in [Text::Name, Text::Identity, Text::Purpose, Text::Constitution, Text::User] {
            check(Deed::Text(text), "++--+---");
        }
        check(Deed::Text(Text::Soul), "++-++---");
        check(Deed::Text(Text::Memory), "++-++---");
        check(Deed::Text(Text::Rules), "--------");
        check(Deed::Object, "++------");
        check(Deed::Rollback, "++----+-");
        check(Deed::Edit, "------+-");
        check(Deed::Rate, "------+-");
        check(Deed::Mend, "------+-");
        check(Deed::Look, "------++");
    }

    #[test]
    fn nobody_else_can_say_that_somebody_is_a_person() {
        assert_eq!(Grant::of_person(Role::Supervisor, true), Grant::Human);
        assert_eq!(Grant::of_person(Role::Supervisor, false), Grant::Watch);
        assert_eq!(Grant::of_person(Role::Agent, true), Grant::Chat);
        assert_eq!(Grant::of_person(Role::Heartbeat, true), Grant::Time);
        assert_eq!(Grant::Human.signature("x"), ("human".to_owned(), Origin::Human));
        assert_eq!(Grant::Run(RunKind::Examen).signature("soul_patch").0, "examen");
        assert_eq!(Grant::Chat.signature("soul_patch").0, "soul_patch");
    }
}
