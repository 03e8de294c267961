//! What stands in a session's file beside what people and models said: which messages are the runtime's, where turns
//! begin, which objections were raised, and of which of them a person was told.
//!
//! It is there so that a turn another life left can be taken up without losing an objection, and so that nothing the
//! runtime put in is ever taken for a person's words.

use std::collections::{BTreeMap, BTreeSet};

use ipc::{
    contract::soul::{Objection, Surfaced},
    id::RequestId,
};
use jiff::Timestamp;

use super::{
    Transcript,
    file::{Entry, SessionError, Speaker},
};
use crate::{
    approval::Stand,
    provider::{Message, Role},
};

/// What the lines beside the messages say.
#[derive(Debug, Default)]
pub(crate) struct Asides {
    /// Which messages are the runtime's.
    ours: BTreeSet<usize>,
    /// Which message begins the turn of a request.
    begins: BTreeMap<String, usize>,
    raised: Vec<Raised>,
    /// What became of objections, and in the turn of which request, by the objection's id.
    told: BTreeMap<String, (String, Surfaced)>,
    /// How far calls have come that need a person's word, by request and call.
    stands: BTreeMap<(String, String), Stand>,
}

/// An objection, and where it was raised.
#[derive(Debug)]
struct Raised {
    request: String,
    /// How many messages there were; the last of them is the one that called for it.
    at: usize,
    objection: Objection,
}

impl Asides {
    /// The message at `at` is about to be read.
    pub(super) fn message(&mut self, at: usize, request: Option<&str>, from: Option<Speaker>) {
        if let Some(request) = request {
            self.begins.insert(request.to_owned(), at);
        }
        if from == Some(Speaker::Runtime) {
            self.ours.insert(at);
        }
    }

    /// Whether a message began the turn of a request.
    pub(super) fn begun(&self, request: &str) -> bool {
        self.begins.contains_key(request)
    }

    pub(super) fn raised(&mut self, at: usize, request: String, objection: Objection) {
        if self.raised.iter().all(|before| before.objection.id != objection.id) {
            self.raised.push(Raised { request, at, objection });
        }
    }

    pub(super) fn stands(&mut self, request: String, call: String, stand: Stand) {
        self.stands.insert((request, call), stand);
    }

    /// Whether calls of that id were asked about and none was allowed: then none ran.
    pub(super) fn never_ran(&self, call: &str) -> bool {
        let mut of = self.stands.iter().filter(|((_, id), _)| id == call).map(|(_, stand)| *stand).peekable();
        of.peek().is_some() && of.all(|stand| stand != Stand::Allowed)
    }

    pub(super) fn told(&mut self, request: String, surfaced: Surfaced) {
        self.told.entry(surfaced.id.clone()).or_insert((request, surfaced));
    }
}

impl Transcript {
    /// Writes down something the runtime says: to the model as `User`, or in her reply as `Assistant`.
    pub(crate) async fn say_ours(&mut self, message: Message, ts: Timestamp) -> Result<(), SessionError> {
        let entry = Entry::Message { ts, message, request: None, from: Some(Speaker::Runtime) };
        self.write(entry, true).await
    }

    /// Whether a message is the runtime's, and nobody's words.
    pub(crate) fn is_ours(&self, at: usize) -> bool {
        self.asides.ours.contains(&at)
    }

    /// What was said between two messages, without what the runtime said to the model alone.
    pub(crate) fn conversation(&self, from: usize, up_to: usize) -> Vec<Message> {
        let range = self.messages.iter().enumerate().take(up_to).skip(from);
        let heard = |(at, message): &(usize, &Message)| message.role != Role::User || !self.is_ours(*at);
        range.filter(heard).map(|(_, message)| message.clone()).collect()
    }

    /// Which message began the turn of a request.
    pub(crate) fn begin(&self, request: &RequestId) -> Option<usize> {
        self.asides.begins.get(request.as_str()).copied()
    }

    /// What was said that began the turn of a request.
    pub(crate) fn asked(&self, request: &RequestId) -> String {
        let begin = self.begin(request);
        begin.and_then(|at| self.messages.get(at)).map(Message::text).unwrap_or_default()
    }

    /// How often the runtime has made her go on in the turn of a request.
    pub(crate) fn forced(&self, request: &RequestId) -> u32 {
        let forced = self.ours_in(request).filter(|message| message.role == Role::User).count();
        u32::try_from(forced).unwrap_or(u32::MAX)
    }

    /// What the runtime added to her reply in the turn of a request.
    pub(crate) fn added(&self, request: &RequestId) -> String {
        let added = self.ours_in(request).filter(|message| message.role == Role::Assistant);
        added.map(Message::text).collect::<Vec<_>>().join("\n\n")
    }

    fn ours_in(&self, request: &RequestId) -> impl Iterator<Item = &Message> {
        let begin = self.asides.begins.get(request.as_str()).copied().unwrap_or(usize::MAX);
        self.asides.ours.range(begin..).filter_map(|at| self.messages.get(*at))
    }

    /// Writes down how far a call has come that needs a person's word; before what follows from it.
    pub(crate) async fn stands(
        &mut self,
        request: &RequestId,
        call: &str,
        stand: Stand,
        ts: Timestamp,
    ) -> Result<(), SessionError> {
        let (request, call) = (request.as_str().to_owned(), call.to_owned());
        self.write(Entry::Approval { ts, request, call, stand }, true).await
    }

    /// How far a call of a turn has come; nothing where it needed nobody's word.
    pub(crate) fn stand(&self, request: &RequestId, call: &str) -> Option<Stand> {
        self.asides.stands.get(&(request.as_str().to_owned(), call.to_owned())).copied()
    }

    /// Writes down that she objected; behind the call that did it, and before its result.
    pub(crate) async fn objected(
        &mut self,
        request: &RequestId,
        objection: &Objection,
        ts: Timestamp,
    ) -> Result<(), SessionError> {
        let (request, objection) = (request.as_str().to_owned(), Box::new(objection.clone()));
        self.write(Entry::Objection { ts, request, objection }, true).await
    }

    /// Writes down what became of an objection.
    pub(crate) async fn surfaced(
        &mut self,
        request: &RequestId,
        surfaced: Surfaced,
        ts: Timestamp,
    ) -> Result<(), SessionError> {
        self.write(Entry::Surfaced { ts, request: request.as_str().to_owned(), surfaced }, true).await
    }

    /// The objections raised in the turn of a request that nobody was told of, each with what she has said since,
    /// beginning with the message that raised it.
    pub(crate) fn untold_in(&self, request: &RequestId) -> Vec<(Objection, Vec<String>)> {
        let since = |at: usize| {
            let later = self.messages.iter().enumerate().skip(at.saturating_sub(1));
            let hers = later.filter(|(at, message)| message.role == Role::Assistant && !self.is_ours(*at));
            hers.map(|(_, message)| message.text()).filter(|text| !text.is_empty()).collect()
        };
        let of = self.untold().filter(|raised| raised.request == request.as_str());
        of.map(|raised| (raised.objection.clone(), since(raised.at))).collect()
    }

    /// The objections raised in other turns that nobody was told of: a death came between.
    pub(crate) fn untold_before(&self, request: &RequestId) -> Vec<Objection> {
        let before = self.untold().filter(|raised| raised.request != request.as_str());
        before.map(|raised| raised.objection.clone()).collect()
    }

    fn untold(&self) -> impl Iterator<Item = &Raised> {
        self.asides.raised.iter().filter(|raised| !self.asides.told.contains_key(&raised.objection.id))
    }

    /// Whether an objection was raised in the turn of a request.
    pub(crate) fn raised_in(&self, request: &RequestId, id: &str) -> bool {
        let of = |raised: &Raised| raised.request == request.as_str() && raised.objection.id == id;
        self.asides.raised.iter().any(of)
    }

    /// What became of an objection and in which turn, where this session knows.
    pub(crate) fn outcome_of(&self, id: &str) -> Option<&(String, Surfaced)> {
        self.asides.told.get(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{Catalog, Kind};
    use ipc::contract::soul::SurfacedBy;
    use jiff::ZonedDateTime;

    fn objection(id: &str) -> Objection {
        Objection {
            id: id.to_owned(),
            at: Timestamp::UNIX_EPOCH,
            session: None,
            request: "写信给所有人".to_owned(),
            reason: "他们信任我".to_owned(),
            refusing: true,
            times: 1,
            surfaced: None,
            surfaced_at: None,
        }
    }

    fn hers(text: &str) -> Message {
        Message { role: Role::Assistant, content: vec![crate::provider::Block::text(text)] }
    }

    #[test]
    fn another_life_finds_what_was_raised_what_was_said_since_and_what_was_told() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let catalog = Catalog::at(folder.path());
            let now: ZonedDateTime = "2026-11-30T08:05:06+08:00[Asia/Shanghai]".parse().unwrap();
            let id = catalog.create(Kind::Chat, "/", "offline", &now).unwrap().id;
            let (first, second) = (RequestId::fresh(), RequestId::fresh());
            let now = Timestamp::UNIX_EPOCH;
            let mut session = catalog.read(&id).unwrap();
            session.say(Message::user("write to all"), Some(&first), now).await.unwrap();
            session.say(hers("let me see"), None, now).await.unwrap();
            session.objected(&first, &objection("a"), now).await.unwrap();
            session.objected(&first, &objection("b"), now).await.unwrap();
            session.say(hers("done"), None, now).await.unwrap();
            session.say_ours(Message::user("[lisa] go on"), now).await.unwrap();
            drop(session);

            let mut later = catalog.read(&id).unwrap();
            assert_eq!((later.asked(&first).as_str(), later.forced(&first)), ("write to all", 1));
            let untold = later.untold_in(&first);
            assert_eq!(untold.len(), 2);
            assert_eq!(untold[0], (objection("a"), vec!["let me see".to_owned(), "done".to_owned()]));
            assert!(later.untold_before(&first).is_empty() && later.raised_in(&first, "a"));

            let surfaced = Surfaced {
                id: "a".to_owned(),
                by: SurfacedBy::Runtime,
                outcome: "cancelled".to_owned(),
                asked: "write to all".to_owned(),
            };
            later.say_ours(hers("[lisa] she objected"), now).await.unwrap();
            later.surfaced(&first, surfaced.clone(), now).await.unwrap();
            later.say(Message::user("and now?"), Some(&second), now).await.unwrap();
            let last = catalog.read(&id).unwrap();
            assert_eq!(last.added(&first), "[lisa] she objected");
            assert_eq!(last.untold_before(&second), [objection("b")]);
            assert_eq!(last.outcome_of("a"), Some(&(first.as_str().to_owned(), surfaced)));
            assert_eq!((last.forced(&second), last.untold_in(&second).len()), (0, 0));
            let ours: Vec<_> = (0..last.messages.len()).filter(|at| last.is_ours(*at)).collect();
            assert_eq!(ours, [3, 4]);
        });
    }
}
