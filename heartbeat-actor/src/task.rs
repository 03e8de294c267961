//! What a run is for: a desire of hers, or the night's dream.

use ipc::contract::soul::Desire;
use jiff::SignedDuration;

use crate::{
    due::{self, task_of},
    ledger::Ledger,
    night,
};

/// What a run is for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Task {
    /// A desire is pursued.
    Desire(Box<Desire>),
    /// What has settled goes into the documents.
    Dream,
}

impl Task {
    /// As the ledger and a person name it.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Desire(desire) => task_of(&desire.slug),
            Self::Dream => night::TASK.to_owned(),
        }
    }

    /// The one a person asked for by name, or a sentence that says why it cannot be run.
    pub(crate) fn named(name: &str, desires: &[Desire]) -> Result<Self, String> {
        if name == night::TASK {
            return Ok(Self::Dream);
        }
        due::asked_for(desires, name).map(|desire| Self::Desire(Box::new(desire.clone())))
    }

    /// The desire that is due.
    pub(crate) fn due(
        desires: &[Desire],
        ledger: &Ledger,
        rest: SignedDuration,
        now: jiff::Timestamp,
    ) -> Option<Self> {
        due::due(desires, ledger, rest, now).map(|desire| Self::Desire(Box::new(desire.clone())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dream_is_asked_for_by_its_name_and_a_desire_of_that_name_by_its_own() {
        let dream = Desire { slug: "dream".into(), actionable: true, ..Desire::default() };
        let named = |name: &str| Task::named(name, std::slice::from_ref(&dream));
        assert_eq!(named("dream"), Ok(Task::Dream));
        let desire = Task::Desire(Box::new(dream.clone()));
        assert_eq!((named("desire:dream"), desire.name()), (Ok(desire.clone()), "desire:dream".to_owned()));
        assert!(named("draem").unwrap_err().contains("did you mean"));
    }
}
