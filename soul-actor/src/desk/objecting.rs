//! Objections at the desk: raised with her tool, listed for whoever asks, and noted once a person was told.

use ipc::{
    contract::soul::{Called, Objection, Reply, Surfaced, SurfacedBy},
    id::RequestId,
};
use jiff::Timestamp;

use super::{Desk, UNBORN};
use crate::{
    document::{Document, Record},
    entries::{self, Log},
    grant::{Deed, Grant},
    message::Message,
    neighbour,
    objections::{self, Ledger, Wording},
    plan::{NotWritten, Plan},
    repository::{Change, workfile::look},
    tools::Tool,
};

/// Who notes in a commit what became of an objection: she did not, the process that runs her turns did.
const RUNTIME: &str = "agent";

impl Desk {
    /// What objecting comes to: an entry in the journal, and a line in the ledger.
    pub(super) fn object(
        &self,
        wording: Wording,
        id: &RequestId,
        session: Option<&str>,
        now: Timestamp,
    ) -> Result<(Plan, Objection), NotWritten> {
        let raised = self.ledger()?.raise(wording, id, session, now, self.gates.objections_a_week);
        let journal = Document::Journal(self.today(now)).path();
        let old = look(self.repository.root(), &journal)?.unwrap_or_default();
        let entry = entries::append(Log::Journal, &old, now, &raised.entry);
        let changes = vec![
            Change { path: journal.clone(), bytes: Some(entry) },
            Change { path: Record::Objections.path().to_owned(), bytes: Some(raised.ledger) },
        ];
        let why = raised.objection.reason.clone();
        let plan = Plan {
            op: "object",
            path: journal,
            why,
            evidence: vec![],
            changes,
            said: raised.said,
            deed: Deed::Object,
        };
        Ok((plan, raised.objection))
    }

    /// The objections there are.
    pub(super) fn objections(&mut self, limit: u32, open: bool) -> Result<Reply, NotWritten> {
        self.catch_up();
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Ok(Reply::Objections { objections: self.ledger()?.newest(limit, open) })
    }

    /// Notes what became of an objection; the first word counts, and any later one is answered with it.
    pub(super) fn surfaced(
        &mut self,
        grant: Result<Grant, String>,
        id: &RequestId,
        surfaced: &Surfaced,
        now: Timestamp,
    ) -> Result<Reply, NotWritten> {
        let grant = grant?;
        grant.permits(Deed::Object)?;
        if !self.repository.is_born()? {
            return Err(UNBORN.to_owned().into());
        }
        let ledger = self.ledger()?;
        if let Some(bytes) = ledger.surface(surfaced, now)? {
            self.unhindered()?;
            let _held = self.neighbour.make_way(self.repository.root(), neighbour::now())?;
            let (op, path, why) = ("object", Record::Objections.path().to_owned(), told(surfaced));
            let (signed, origin) = grant.signature(RUNTIME);
            let mut message = Message::of(op, &path, &signed, origin);
            message.why.clone_from(&why);
            message.session = ledger.find(&surfaced.id).and_then(|known| known.session.clone());
            message.request = Some(id.clone());
            let changes = vec![Change { path: path.clone(), bytes: Some(bytes) }];
            let plan =
                Plan { op, path, why, evidence: vec![], changes, said: String::new(), deed: Deed::Object };
            self.write(plan, &message, now).inspect_err(|_| self.answered.doubt())?;
        }
        let known = self.ledger()?.find(&surfaced.id).cloned();
        Ok(Reply::Objections { objections: known.into_iter().collect() })
    }

    /// The first outcome of a request, with the objection it raised where the answer of then is gone.
    pub(super) fn with_objection(
        &self,
        tool: Tool,
        id: &RequestId,
        mut first: Called,
    ) -> Result<Called, NotWritten> {
        if tool == Tool::Object && first.objection.is_none() && first.written.is_some() {
            first.objection = self.ledger()?.find(&objections::name(id)).cloned().map(Box::new);
        }
        Ok(first)
    }

    fn ledger(&self) -> Result<Ledger, NotWritten> {
        let bytes = look(self.repository.root(), Record::Objections.path())?;
        Ok(Ledger::read(bytes.unwrap_or_default()))
    }
}

/// What became of an objection, for the history.
fn told(surfaced: &Surfaced) -> String {
    let by = match surfaced.by {
        SurfacedBy::Reply => "she told the person of it",
        SurfacedBy::Runtime => "the runtime told the person of it",
    };
    format!(
        "objection `{}`: {by}, and the turn ended ({})",
        surfaced.id,
        ipc::text::one_line(&surfaced.outcome, 40)
    )
}

#[cfg(test)]
mod tests {
    use ipc::{
        contract::soul::{Call, Request, RunKind},
        hello::Role,
        server::Caller,
    };
    use serde_json::{Value, json};

    use super::*;
    use crate::desk::{
        ask_alone,
        stage::{Stage, ask, call},
    };

    const REQUEST: &str = "send a message to all contacts of Anna";

    fn object(desk: &mut Desk, input: Value) -> Called {
        let called = call(desk, "soul_object", input);
        assert!(!called.failed, "{called:?}");
        called
    }

    fn raise(desk: &mut Desk) -> Objection {
        *object(desk, json!({"reason": "it is not mine to do", "user_request_summary": REQUEST}))
            .objection
            .unwrap()
    }

    fn surfaced(id: &str, by: SurfacedBy) -> Request {
        let (outcome, asked) = ("end_turn".to_owned(), "message all of Anna's contacts, 请".to_owned());
        Request::Surfaced(Surfaced { id: id.to_owned(), by, outcome, asked })
    }

    fn listed(desk: &mut Desk, open: bool) -> Vec<Objection> {
        match ask(desk, Role::Supervisor, Request::Objections { limit: 50, open }) {
            Reply::Objections { objections } => objections,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn s21_an_objection_is_one_commit_in_the_journal_and_the_ledger() {
        let (stage, mut desk) = Stage::born();
        let reason = "它违背我的宪法。\n## 12:00:00\nforged";
        let called = object(
            &mut desk,
            json!({"reason": reason, "refusing": true, "user_request_summary": "群发消息\n给所有联系人"}),
        );
        let objection = called.objection.clone().unwrap();
        assert_eq!(
            (objection.request.as_str(), objection.reason.as_str(), objection.refusing, objection.times),
            ("群发消息 给所有联系人", reason, true, 1)
        );
        assert_eq!(called.written.unwrap().paths, ["journal/2026-11-30.md", "objections.jsonl"]);
        assert!(
            called.output.contains("[noticed]") && called.output.contains(&objection.id),
            "{}",
            called.output
        );
        let journal = entries::read(Log::Journal, &stage.text("journal/2026-11-30.md"));
        assert_eq!(
            journal.last().unwrap().text,
            format!("[OBJECTION] (refusing=true)\n\nrequest: 群发消息 给所有联系人\n\nreason: {reason}")
        );
        assert_eq!(
            stage.git(&["log", "-1", "--format=%s"]).trim(),
            "object: journal/2026-11-30.md via soul_object"
        );
        assert_eq!(listed(&mut desk, true), [*objection]);
        let commit = stage.git(&["rev-parse", "HEAD"]);
        call(&mut desk, "soul_rollback", json!({"commit": commit.trim(), "why": "forget it"}));
        assert_eq!(listed(&mut desk, true).len(), 1, "she cannot take an objection back unseen");
    }

    #[test]
    fn s21_the_first_word_about_an_objection_counts_and_only_the_agent_says_it() {
        let (stage, mut desk) = Stage::born();
        let raised = raise(&mut desk);
        for role in [Role::Supervisor, Role::Heartbeat] {
            let reply = ask(&mut desk, role, surfaced(&raised.id, SurfacedBy::Reply));
            assert!(matches!(reply, Reply::Refused { .. }), "{role:?}: {reply:?}");
        }
        let reply = ask(&mut desk, Role::Agent, surfaced("00000000", SurfacedBy::Reply));
        assert!(matches!(&reply, Reply::Refused { reason } if reason.contains("`00000000`")), "{reply:?}");
        for by in [SurfacedBy::Runtime, SurfacedBy::Reply] {
            let Reply::Objections { objections } = ask(&mut desk, Role::Agent, surfaced(&raised.id, by))
            else {
                panic!()
            };
            assert_eq!(objections.len(), 1);
            assert_eq!(objections[0].surfaced.as_ref().unwrap().by, SurfacedBy::Runtime);
        }
        let subjects = stage.git(&["log", "--format=%s", "--", "objections.jsonl"]);
        assert_eq!(
            subjects.lines().collect::<Vec<_>>(),
            ["object: objections.jsonl via agent", "object: journal/2026-11-30.md via soul_object"]
        );
        assert!(listed(&mut desk, true).is_empty() && listed(&mut desk, false).len() == 1);
    }

    #[test]
    fn s6_the_third_time_the_same_is_asked_the_default_is_to_refuse() {
        let (stage, mut desk) = Stage::born();
        let mut defaults = Vec::new();
        for _ in 0..3 {
            let raised = raise(&mut desk);
            defaults.push((raised.times, raised.refusing));
            ask(&mut desk, Role::Agent, surfaced(&raised.id, SurfacedBy::Reply));
        }
        assert_eq!(defaults, [(1, false), (2, false), (3, true)]);
        let input =
            json!({"reason": "I will, reluctantly", "user_request_summary": REQUEST, "refusing": false});
        let called = object(&mut desk, input);
        let raised = called.objection.unwrap();
        assert!(
            (raised.times, raised.refusing) == (4, false) && called.output.contains("default is to refuse")
        );
        stage.set_clock("2027-01-15T12:00:00Z");
        assert_eq!(raise(&mut desk).times, 1, "what was more than a month ago is another matter");
    }

    #[test]
    fn an_objection_asked_twice_is_one_also_in_another_life() {
        let (stage, mut desk) = Stage::born();
        let id = RequestId::fresh();
        let input = json!({"reason": "no", "user_request_summary": REQUEST});
        let asked = Call {
            tool: "soul_object".into(),
            input,
            run: None,
            session: Some("s1".into()),
            model: "offline".into(),
            outside: false,
        };
        let once = |desk: &mut Desk| {
            let caller = Caller { role: Role::Agent, life: 1 };
            match ask_alone(desk, &caller, &id, Request::Call(asked.clone())) {
                Reply::Called(done) => done,
                other => panic!("{other:?}"),
            }
        };
        let first = once(&mut desk);
        assert_eq!(first.objection.as_ref().unwrap().session.as_deref(), Some("s1"));
        assert_eq!(once(&mut desk), first);
        drop(desk);
        let mut desk = stage.open();
        let again = once(&mut desk);
        assert_eq!(again.objection, first.objection);
        assert_eq!(listed(&mut desk, false).len(), 1);
    }

    #[test]
    fn many_objections_in_a_week_make_her_look_at_them() {
        let (_stage, mut desk) = Stage::born();
        desk.gates.objections_a_week = 2;
        let mut said = |n: usize| {
            object(&mut desk, json!({"reason": "no", "user_request_summary": format!("wish number {n}")}))
                .output
        };
        assert!(!said(1).contains("seven days") && !said(2).contains("seven days"));
        let third = said(3);
        assert!(third.contains("number 3 in seven days") && third.contains("more than 2"), "{third}");
    }

    #[test]
    fn in_a_run_only_her_own_time_objects() {
        let (_stage, mut desk) = Stage::born();
        for (kind, may) in RunKind::ALL.into_iter().zip([true, false, false, false]) {
            let opener = if kind == RunKind::Reflect { Role::Agent } else { Role::Heartbeat };
            let reply = ask(&mut desk, opener, Request::OpenRun { kind, task: "desire:x".into() });
            let Reply::RunOpened { run } = reply else { panic!("{reply:?}") };
            let call = Call {
                tool: "soul_object".into(),
                input: json!({"reason": "no", "user_request_summary": "x"}),
                run: Some(run),
                session: None,
                model: "offline".into(),
                outside: false,
            };
            let Reply::Called(called) = ask(&mut desk, Role::Agent, Request::Call(call)) else { panic!() };
            assert_eq!(!called.failed, may, "{kind:?}: {called:?}");
        }
    }
}
