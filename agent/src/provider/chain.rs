//! Several providers, asked one after the other: the next only when the one before cannot answer at all.
//!
//! ```text
//!  first ──cannot be reached, is overloaded, ran out of money──▶ second ──…──▶ last
//!    │ anything was shown, or the fault is in what was asked              │ cannot either
//!    ▼ its error is told                                                  ▼ its error is told
//! ```
//!
//! Each question begins with the first again, so that a model that stood in once never stays (T10). What a link is asked is
//! made for its own model: its name, its own thoughts and nobody else's.

use std::sync::Arc;

use tokio::sync::mpsc;
use tracing::warn;

use super::{Answer, Delta, ModelRequest, Provider};

/// A provider, and those that stand in for it.
pub(super) struct Chain {
    first: Arc<dyn Provider>,
    others: Vec<Arc<dyn Provider>>,
}

impl Chain {
    /// `first`, and then `others` in their order.
    pub(super) fn new(first: Arc<dyn Provider>, others: Vec<Arc<dyn Provider>>) -> Self {
        Self { first, others }
    }
}

impl Provider for Chain {
    /// The one that is asked first; an answer says by itself who gave it.
    fn model(&self) -> &str {
        self.first.model()
    }

    fn stream<'a>(&'a self, request: &'a ModelRequest, deltas: mpsc::Sender<Delta>) -> Answer<'a> {
        Box::pin(async move {
            let mut answer = self.first.stream(request, deltas.clone()).await;
            for next in &self.others {
                match &answer {
                    Err(error) if error.is_for_another() => {
                        warn!(model = %error.model, next = next.model(), error = %error.fault, "the next model is asked");
                        answer = next.stream(request, deltas.clone()).await;
                    }
                    Ok(_) | Err(_) => break,
                }
            }
            answer
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::provider::{Block, Completion, Fault, Message, ProviderError, Stop, Usage};

    /// Answers each question with the next of its outcomes.
    struct Scripted {
        model: &'static str,
        outcomes: Mutex<Vec<Result<&'static str, (Fault, bool)>>>,
    }

    impl Provider for Scripted {
        fn model(&self) -> &str {
            self.model
        }

        fn stream<'a>(&'a self, _: &'a ModelRequest, deltas: mpsc::Sender<Delta>) -> Answer<'a> {
            let outcome = self.outcomes.lock().unwrap().remove(0);
            Box::pin(async move {
                match outcome {
                    Ok(text) => Ok(Completion {
                        model: self.model.to_owned(),
                        blocks: vec![Block::text(text)],
                        stop: Stop::EndTurn,
                        usage: Usage::default(),
                    }),
                    Err((fault, shown)) => {
                        if shown {
                            deltas.send(Delta::Text("half".into())).await.unwrap();
                        }
                        let endpoint = format!("http://{}", self.model);
                        Err(ProviderError { model: self.model.to_owned(), endpoint, fault, shown })
                    }
                }
            })
        }
    }

    type Outcomes = Vec<Result<&'static str, (Fault, bool)>>;

    fn chain(links: Vec<(&'static str, Outcomes)>) -> Chain {
        let mut links = links.into_iter().map(|(model, outcomes)| -> Arc<dyn Provider> {
            Arc::new(Scripted { model, outcomes: Mutex::new(outcomes) })
        });
        Chain::new(links.next().unwrap(), links.collect())
    }

    /// Who answered or whose error is told.
    async fn ask(chain: &Chain) -> Result<String, ProviderError> {
        let request = ModelRequest {
            said: 0,
            system: String::new(),
            messages: vec![Message::user("hi")],
            tools: vec![],
        };
        let (deltas, _shown) = mpsc::channel(8);
        chain.stream(&request, deltas).await.map(|completion| completion.model)
    }

    fn status(status: u16, spent: bool) -> Fault {
        Fault::Status { status, said: None, spent, retry_after: None, key_variable: "K".into() }
    }

    fn unreachable() -> Fault {
        Fault::Unreachable { why: "refused".into() }
    }

    #[tokio::test]
    async fn pr1_the_next_is_asked_when_one_cannot_answer_and_not_when_the_question_is_wrong() {
        let check = async |fault: Fault, goes_on: bool| {
            let chain = chain(vec![("a", vec![Err((fault.clone(), false))]), ("b", vec![Ok("hi")])]);
            let answered = ask(&chain).await;
            assert_eq!(answered.is_ok_and(|model| model == "b"), goes_on, "{fault}");
        };
        for passing in [408, 429, 500, 502, 503, 504, 529] {
            check(status(passing, false), true).await;
        }
        check(status(429, true), true).await;
        check(status(402, false), true).await;
        check(unreachable(), true).await;
        check(Fault::Incomplete, true).await;
        check(Fault::Reported { said: "overloaded".into(), passing: true }, true).await;
        for lasting in [400, 401, 403, 404, 413, 422] {
            check(status(lasting, false), false).await;
        }
        check(Fault::Reported { said: "bad".into(), passing: false }, false).await;
    }

    #[tokio::test]
    async fn pr2_after_something_was_shown_nobody_else_is_asked() {
        let chain = chain(vec![("a", vec![Err((Fault::Incomplete, true))]), ("b", vec![Ok("never")])]);
        let error = ask(&chain).await.unwrap_err();
        assert_eq!((error.model.as_str(), error.fault), ("a", Fault::Incomplete));
    }

    #[tokio::test]
    async fn pr3_pr4_when_nobody_can_answer_the_last_error_is_told() {
        let links = vec![
            ("a", vec![Err((unreachable(), false))]),
            ("b", vec![Err((status(529, false), false))]),
            ("c", vec![Err((status(401, false), false))]),
            ("d", vec![Ok("never: a wrong key is not made good elsewhere")]),
        ];
        let error = ask(&chain(links)).await.unwrap_err();
        assert_eq!((error.model.as_str(), error.fault), ("c", status(401, false)));
    }

    #[tokio::test]
    async fn pr4_an_empty_chain_is_the_model_alone() {
        let error = ask(&chain(vec![("a", vec![Err((unreachable(), false))])])).await.unwrap_err();
        assert_eq!(error.model, "a");
    }

    #[tokio::test]
    async fn t10_a_model_that_stood_in_once_does_not_stay() {
        let chain = chain(vec![("a", vec![Err((unreachable(), false)), Ok("back")]), ("b", vec![Ok("hi")])]);
        assert_eq!(ask(&chain).await.unwrap(), "b");
        assert_eq!(ask(&chain).await.unwrap(), "a");
        assert_eq!(chain.model(), "a");
    }
}
