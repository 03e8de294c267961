//! What a write in a reflection is held to besides its grant: the session it belongs to, and one edit of who she is.

use ipc::contract::soul::{Call, RunKind};
use jiff::Timestamp;

use super::Desk;
use crate::{
    grant::{Deed, Grant},
    once_a_session::{CORE, LOOKED_THROUGH_MAX, permits, session},
    plan::NotWritten,
    repository::Wanted,
};

impl Desk {
    /// The session that a write belongs to: in a reflection that of the run, else what the call says. Refused where a
    /// reflection has changed who she is already.
    pub(super) fn session_of(
        &mut self,
        grant: Grant,
        call: &Call,
        deed: Deed,
        now: Timestamp,
    ) -> Result<Option<String>, NotWritten> {
        let (Grant::Run(RunKind::Reflect), Some(run)) = (grant, &call.run) else {
            return Ok(call.session.clone());
        };
        let run = self.key.verify(run, now)?;
        let session = session(&run.task)?;
        if matches!(deed, Deed::Text(text) if CORE.contains(&text)) {
            // what was accepted a moment ago counts as well, and it is read from git
            self.flush();
            self.repository.settle()?;
            for text in CORE {
                let wanted = Wanted { path: Some(text.path()), limit: LOOKED_THROUGH_MAX, since: None };
                permits(session, &self.repository.history(wanted)?)?;
            }
        }
        Ok(Some(session.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use ipc::{
        contract::soul::{Called, Reply, Request, RunToken},
        hello::Role,
        id::RequestId,
        server::Caller,
    };
    use serde_json::json;

    use super::*;
    use crate::desk::{
        ask_alone,
        stage::{Stage, ask},
    };

    const AGENT: Caller = Caller { role: Role::Agent, life: 1 };

    fn open(desk: &mut Desk, task: &str) -> RunToken {
        match ask(desk, Role::Agent, Request::OpenRun { kind: RunKind::Reflect, task: task.into() }) {
            Reply::RunOpened { run } => run,
            other => panic!("{other:?}"),
        }
    }

    fn patch(run: Option<&RunToken>, field: &str, content: &str) -> Request {
        let input = match field {
            "value" => json!({"field": field, "slug": content, "title": content, "body": content}),
            _ => json!({"field": field, "content": content, "why": "to see"}),
        };
        Request::Call(Call {
            tool: "soul_patch".into(),
            input,
            run: run.cloned(),
            session: Some("what-the-call-says".into()),
            model: "offline".into(),
            outside: false,
        })
    }

    fn called(reply: Reply) -> Called {
        match reply {
            Reply::Called(called) => called,
            other => panic!("{other:?}"),
        }
    }

    fn write(desk: &mut Desk, run: &RunToken, field: &str, content: &str) -> Called {
        called(ask(desk, Role::Agent, patch(Some(run), field, content)))
    }

    #[test]
    fn one_edit_of_who_she_is_a_session_across_fields_runs_and_restarts() {
        let (stage, mut desk) = Stage::born();
        let run = open(&mut desk, "session:s1");
        assert!(!write(&mut desk, &run, "identity", "I look back.").failed);
        let second = write(&mut desk, &run, "purpose", "To look back.");
        assert!(second.failed && second.output.contains("at most one of identity"), "{second:?}");
        // another run for the same session, and another life of the soul
        let again = open(&mut desk, "session:s1");
        assert!(write(&mut desk, &again, "constitution", "I look back.").failed);
        drop(desk);
        let mut desk = stage.open();
        let run = open(&mut desk, "session:s1");
        assert!(write(&mut desk, &run, "identity", "I look back again.").failed);
        // everything else is free, another session has an edit of its own, and a conversation is no reflection
        assert!(!write(&mut desk, &run, "value", "patience").failed);
        let other = open(&mut desk, "session:s2");
        assert!(!write(&mut desk, &other, "purpose", "To look back.").failed);
        assert!(!called(ask(&mut desk, Role::Agent, patch(None, "identity", "I talk."))).failed);
        let trailers =
            stage.git(&["log", "--format=%(trailers:key=Session,valueonly)", "-1", "--", "purpose.md"]);
        assert_eq!(trailers.trim(), "s2", "the session is the run's, whatever the call says");
    }

    #[test]
    fn one_edit_also_within_one_batch_and_the_same_question_twice_is_one_edit() {
        let (_stage, mut desk) = Stage::born();
        let run = open(&mut desk, "session:s1");
        let (first, second) = (RequestId::fresh(), RequestId::fresh());
        let identity = patch(Some(&run), "identity", "I look back.");
        let written = called(desk.answer(&AGENT, &first, identity.clone()));
        let refused = called(desk.answer(&AGENT, &second, patch(Some(&run), "purpose", "To look back.")));
        assert!(!written.failed && refused.failed, "{written:?} {refused:?}");
        desk.flush();
        desk.end_batch();
        assert_eq!(called(ask_alone(&mut desk, &AGENT, &first, identity)).written, written.written);
    }

    #[test]
    fn a_reflection_on_no_session_writes_nothing() {
        let (_stage, mut desk) = Stage::born();
        let run = open(&mut desk, "desire:x");
        let refused = write(&mut desk, &run, "value", "patience");
        assert!(refused.failed && refused.output.contains("session:"), "{refused:?}");
    }
}
