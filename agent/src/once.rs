//! Work that is asked for under an id: the first asking starts it, every other one waits for the same outcome.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use futures_util::{
    FutureExt as _,
    future::{BoxFuture, Shared},
};
use ipc::id::RequestId;

/// How many outcomes are remembered. What was asked longer ago than this is not asked again: the asker has its answer.
const REMEMBERED_MAX: usize = 256;

/// The work under way and the outcomes of late.
#[derive(Debug)]
pub(crate) struct Once<T: Clone>(Mutex<VecDeque<(RequestId, Shared<BoxFuture<'static, T>>)>>);

impl<T: Clone + Send + Sync + 'static> Once<T> {
    /// Nothing was asked yet.
    pub(crate) fn new() -> Self {
        Self(Mutex::default())
    }

    /// The outcome of the work under `id`, which is started when it was not before. Once started it goes on by itself,
    /// also when nobody waits for it any more.
    pub(crate) async fn outcome(&self, id: &RequestId, work: impl FnOnce() -> BoxFuture<'static, T>) -> T {
        let shared = {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let before = known.iter().find(|(of, _)| of == id).map(|(_, shared)| shared.clone());
            before.unwrap_or_else(|| {
                let shared = work().shared();
                tokio::spawn(shared.clone());
                if known.len() >= REMEMBERED_MAX
                    && let Some(over) = known.iter().position(|(_, work)| work.peek().is_some())
                {
                    known.remove(over);
                }
                known.push_back((id.clone(), shared.clone()));
                shared
            })
        };
        shared.await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    };

    #[test]
    fn it_runs_once_however_often_it_is_asked_for_and_also_when_nobody_waits() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (once, ran) = (Arc::new(Once::new()), Arc::new(AtomicU32::new(0)));
            let id = RequestId::fresh();
            let ask = || {
                let (once, ran, id) = (once.clone(), ran.clone(), id.clone());
                async move {
                    let work = move || -> BoxFuture<'static, u32> {
                        Box::pin(async move {
                            tokio::task::yield_now().await;
                            ran.fetch_add(1, Ordering::SeqCst) + 1
                        })
                    };
                    once.outcome(&id, work).await
                }
            };
            let impatient = tokio::spawn(ask());
            tokio::task::yield_now().await;
            impatient.abort();
            assert_eq!(futures_util::future::join(ask(), ask()).await, (1, 1));
            assert_eq!(ran.load(Ordering::SeqCst), 1);
        });
    }
}
