//! Who she is changes at most once in the reflections on one session: a plain function of the run's task and of history.
//!
//! Looking back is when a self drifts most easily: one conversation, turned over again and again, must not rewrite her
//! identity, purpose and constitution one after the other. The count is taken from git, so that it holds across restarts,
//! across several reflections on the session, and whatever a call says about the session it belongs to.

use ipc::{
    contract::soul::{Entry, RunKind},
    text::one_line,
};

use crate::{document::Text, message::TRAILER_CHARS_MAX};

/// The texts of which one may change.
pub(crate) const CORE: [Text; 3] = [Text::Identity, Text::Purpose, Text::Constitution];

/// How many commits of one text are looked through, the newest: more than a year of them at the gates' pace.
pub(crate) const LOOKED_THROUGH_MAX: usize = 1000;

/// The session a reflection is about, by the task its run was opened for.
pub(crate) fn session(task: &str) -> Result<&str, String> {
    task.strip_prefix("session:").filter(|session| !session.trim().is_empty()).ok_or_else(|| {
        "this run is for no session, so it cannot write; open a reflection for `session:` and the session's id".to_owned()
    })
}

/// Refuses where one of `edits`, the commits of the [`CORE`], was made in a reflection on `session`.
pub(crate) fn permits(session: &str, edits: &[Entry]) -> Result<(), String> {
    // as the trailer says it
    let session = one_line(session, TRAILER_CHARS_MAX);
    let reflected = |entry: &&Entry| {
        let named = RunKind::Reflect.name();
        (entry.origin == named || entry.caller == named)
            && entry.trailers.get("Session").is_some_and(|of| *of == session)
    };
    let Some(first) = edits.iter().find(reflected) else { return Ok(()) };
    Err(format!(
        "the reflections on one session change at most one of identity, purpose and constitution, and `{}` was changed \
         already (commit `{}`); write in the journal what else you would change, and why",
        first.path,
        crate::repository::short(&first.commit)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;

    fn edit(origin: &str, caller: &str, session: &str) -> Entry {
        Entry {
            commit: "ab".repeat(20),
            time: Timestamp::UNIX_EPOCH,
            op: "patch".into(),
            path: "purpose.md".into(),
            caller: caller.into(),
            origin: origin.into(),
            why: String::new(),
            evidence: vec![],
            trailers: [("Session".to_owned(), session.to_owned())].into_iter().collect(),
        }
    }

    #[test]
    fn one_edit_in_the_reflections_on_a_session_is_all_there_is() {
        let long = "x".repeat(200);
        let check = |session: &str, edits: &[Entry], may: bool| {
            assert_eq!(permits(session, edits).is_ok(), may, "{session} {edits:?}");
        };
        check("s", &[], true);
        check("s", &[edit("reflect", "reflect", "s")], false);
        check("s", &[edit("chat", "soul_patch", "s"), edit("reflect", "reflect", "t")], true);
        check("s", &[edit("chat", "soul_patch", "s"), edit("reflect", "reflect", "s")], false);
        // words from outside, written down in a reflection, and a commit of the original's grammar
        check("s", &[edit("outside", "reflect", "s")], false);
        check(&long, &[edit("reflect", "reflect", &one_line(&long, TRAILER_CHARS_MAX))], false);
        let said = permits("s", &[edit("reflect", "reflect", "s")]).unwrap_err();
        assert!(said.contains("`purpose.md`") && said.contains("`ababababab`"), "{said}");
    }

    #[test]
    fn a_reflection_is_about_a_session() {
        assert_eq!(session("session:20261130-143211-ab12cd"), Ok("20261130-143211-ab12cd"));
        for task in ["", "session:", "session: ", "desire:x", "Session:x"] {
            assert!(session(task).is_err(), "{task}");
        }
    }
}
