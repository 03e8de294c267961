//! Tests of the trial: how far each kind of model comes, and what a person is told.

use std::sync::Mutex;

use serde_json::Map;

use super::*;
use crate::provider::{Answer, Stop, Usage, settings::Speaks};

/// What a model does when it is asked.
#[derive(Clone, Copy)]
enum Does {
    /// Calls the tool with the words it is told to.
    Calls,
    /// Calls the tool with other words.
    CallsWith(&'static str),
    /// Calls something in a way that cannot be used.
    CallsBadly,
    /// Says words, streamed.
    Says(&'static str),
    /// Fails.
    Fails(fn() -> Fault),
}

struct Scripted(Mutex<Vec<Does>>);

impl Provider for Scripted {
    fn model(&self) -> &'static str {
        "m"
    }

    fn stream<'a>(&'a self, request: &'a ModelRequest, deltas: mpsc::Sender<Delta>) -> Answer<'a> {
        let does = self.0.lock().unwrap().remove(0);
        Box::pin(async move {
            let asked = request.messages.first().map(Message::text).unwrap_or_default();
            let word = asked.split('`').nth(3).unwrap_or_default().to_owned();
            let call = |text: &str| {
                let input: Map<_, _> = [("text".to_owned(), json!(text))].into_iter().collect();
                Block::ToolUse { id: "c".into(), name: ECHO.into(), input: Input::Object(input) }
            };
            let blocks = match does {
                Does::Calls => vec![call(&word)],
                Does::CallsWith(text) => vec![call(text)],
                Does::CallsBadly => vec![Block::ToolUse {
                    id: "c".into(),
                    name: ECHO.into(),
                    input: Input::Unusable { raw: "{".into(), why: "the input is not valid JSON".into() },
                }],
                Does::Says(text) => {
                    deltas.send(Delta::Text(text.into())).await.unwrap();
                    vec![Block::text(text)]
                }
                Does::Fails(fault) => {
                    return Err(ProviderError {
                        model: "m".into(),
                        endpoint: "http://h".into(),
                        fault: fault(),
                        shown: false,
                    });
                }
            };
            let calls = blocks.iter().any(|block| matches!(block, Block::ToolUse { .. }));
            let stop = if calls { Stop::ToolUse } else { Stop::EndTurn };
            Ok(Completion { model: "m".into(), blocks, stop, usage: Usage::default() })
        })
    }
}

#[tokio::test]
async fn a_model_comes_as_far_as_it_goes_and_what_stopped_it_is_said() {
    let check = async |does: &[Does], passed: &[&str], failed: Option<(&str, &str)>| {
        let provider = Scripted(Mutex::new(does.to_vec()));
        let mut trial = Trial { begun: Instant::now(), steps: Vec::new(), streamed: None };
        let outcome = trial.run(&provider).await;
        let steps: Vec<_> = trial.steps.iter().map(|step| step.what.as_str()).collect();
        assert_eq!(steps, passed);
        assert!(trial.steps.iter().all(|step| step.ok));
        match (outcome, failed) {
            (Ok(()), None) => {}
            (Err((step, why)), Some((expected, said))) => {
                assert!(step == expected && why.contains(said), "{step}: {why}");
            }
            (got, expected) => panic!("{got:?}, not {expected:?}"),
        }
    };
    let all = [REACHABLE, ANSWERED, CALLED, TOOK, STREAMED];
    check(&[Does::Calls, Does::Says("it was 你好")], &all, None).await;
    check(&[Does::Says("sure, echo!")], &all[..2], Some((CALLED, "without calling the tool"))).await;
    check(&[Does::CallsWith("lisa")], &all[..2], Some((CALLED, "with `lisa`"))).await;
    check(&[Does::CallsBadly], &all[..2], Some((CALLED, "not valid JSON"))).await;
    check(&[Does::Calls, Does::Calls], &all[..4], Some((STREAMED, "nothing in words"))).await;
    let away = || Fault::Unreachable { why: "refused".into() };
    check(&[Does::Fails(away)], &[], Some((REACHABLE, "start the server"))).await;
    check(&[Does::Fails(|| Fault::Incomplete)], &all[..1], Some((ANSWERED, "not an answer"))).await;
    check(&[Does::Calls, Does::Fails(|| Fault::Incomplete)], &all[..3], Some((TOOK, "not an answer"))).await;
}

#[tokio::test]
async fn what_nobody_serves_is_not_proved_and_says_where_it_was_asked() {
    let settings = RemoteSettings {
        base_url: reqwest::Url::parse("http://127.0.0.1:1/v1?key=geheim").unwrap(),
        ..RemoteSettings::of_test(Speaks::OpenAi)
    };
    let tested = prove(&settings, "vllm/m".into()).await;
    assert_eq!((tested.name.as_str(), tested.endpoint.as_str()), ("vllm/m", "http://127.0.0.1:1/v1"));
    let steps: Vec<_> = tested.steps.iter().map(|step| (step.what.as_str(), step.ok)).collect();
    assert_eq!((tested.proved, steps), (false, vec![(REACHABLE, false)]));
    let said = format!("{tested:?}");
    assert!(said.contains("could not be reached") && !said.contains("geheim"), "{said}");
}
