//! What was answered: a request that is asked again, because its answer was lost, writes nothing a second time.
//!
//! Two memories. What this process answered, up to a bound; and, looked up once, the requests that the newest commits
//! name, for the writer that was killed between its commit and its answer.

use std::collections::{HashMap, VecDeque};

use ipc::{contract::soul::Called, id::RequestId};

/// How many answers are kept: far more than can be under way, which is what repetitions are about.
const KEPT_MAX: usize = 4096;

/// The two memories.
#[derive(Debug, Default)]
pub(crate) struct Answered {
    kept: HashMap<RequestId, Called>,
    order: VecDeque<RequestId>,
    committed: Option<HashMap<String, String>>,
}

impl Answered {
    /// Remembers an answer.
    pub(crate) fn keep(&mut self, id: &RequestId, called: &Called) {
        if self.order.len() == KEPT_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.kept.remove(&oldest);
        }
        if self.kept.insert(id.clone(), called.clone()).is_none() {
            self.order.push_back(id.clone());
        }
    }

    /// Forgets answers that were not given: what they say did not become durable.
    pub(crate) fn forget(&mut self, ids: &[RequestId]) {
        for id in ids {
            self.kept.remove(id);
        }
        self.order.retain(|id| !ids.contains(id));
    }

    /// Reads the history anew when it is next asked: a write that failed may have come further than it knew.
    pub(crate) fn doubt(&mut self) {
        self.committed = None;
    }

    /// The answer this process gave.
    pub(crate) fn get(&self, id: &RequestId) -> Option<Called> {
        self.kept.get(id).cloned()
    }

    /// The commit that an earlier process made for the request; `read` reads the history, the first time.
    pub(crate) fn committed<E>(
        &mut self,
        id: &RequestId,
        read: impl FnOnce() -> Result<HashMap<String, String>, E>,
    ) -> Result<Option<String>, E> {
        let committed = match &mut self.committed {
            Some(committed) => committed,
            none => none.insert(read()?),
        };
        Ok(committed.get(id.as_str()).cloned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_answer_stands_and_the_memory_is_bounded() {
        let id = |n: usize| RequestId::try_from(format!("r-{n}")).unwrap();
        let called = |n: usize| Called::said(n.to_string());
        let mut answered = Answered::default();
        for n in 0..=KEPT_MAX {
            answered.keep(&id(n), &called(n));
        }
        assert_eq!((answered.kept.len(), answered.order.len()), (KEPT_MAX, KEPT_MAX));
        assert_eq!((answered.get(&id(0)), answered.get(&id(1))), (None, Some(called(1))));

        let read = || Ok::<_, ()>(HashMap::from([("r-old".to_owned(), "c".to_owned())]));
        let old = RequestId::try_from("r-old".to_owned()).unwrap();
        assert_eq!(answered.committed(&old, read), Ok(Some("c".to_owned())));
        assert_eq!(answered.committed(&id(9), || Err(())), Ok(None), "the history is read once");
        answered.doubt();
        assert_eq!(answered.committed(&id(9), || Err(())), Err(()), "and again when in doubt");
    }
}
