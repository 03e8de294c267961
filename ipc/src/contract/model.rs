//! Which model thinks, as it is asked for on the chat socket and of the agent: looked at, tried, changed.
//!
//! No key is ever in these words, only the names of the variables that hold one.

use serde::{Deserialize, Serialize};

/// A question about the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "method", content = "params", rename_all = "snake_case")]
pub enum Request {
    /// What thinks, what could, and why it is this one: answered by [`Reply::Models`].
    List,
    /// Try a model with a real call of a tool: answered by [`Reply::Tested`]. Asked twice, it may try twice.
    Test {
        /// Which, as [`Request::List`] names one; without it the one in force, with those asked after it.
        name: Option<String>,
    },
    /// Make a model the one that thinks: answered by [`Reply::Used`]. Asked twice, the second changes nothing.
    Use {
        /// Which, as [`Request::List`] names one.
        name: String,
        /// Whether it is taken without having been tried.
        #[serde(default)]
        untested: bool,
        /// Whether a person asks. What a client says here counts for nothing: the supervisor sets it.
        #[serde(default)]
        human: bool,
    },
}

/// An answer about the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// What thinks, and what could.
    Models(Models),
    /// How trying went, one for each that was tried.
    Tested {
        /// In the order in which they are asked.
        tests: Vec<Tested>,
    },
    /// Another one thinks from the next turn on.
    Used(Used),
    /// Not done, and why; with what was tried, where that is why.
    Refused {
        /// The sentence.
        reason: String,
        /// The test that it did not stand.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        test: Option<Tested>,
    },
}

/// What thinks, and what could. `lisa model list --json` prints this.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Models {
    /// The model in use: `offline`, `openai/gpt-…`.
    pub model: String,
    /// Why it is this one.
    pub because: String,
    /// What a person may want to know besides.
    pub notice: Option<String>,
    /// What is asked, in order; the first is the one in use.
    pub chain: Vec<Link>,
    /// The variables of keys that are set, by name.
    pub keys: Vec<String>,
    /// The servers on this machine that were found now.
    pub local: Vec<Server>,
}

/// One of those that are asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// What `lisa model use` and `lisa model test` call it.
    pub name: String,
    /// Where it answers; nothing for the embedded default.
    pub endpoint: Option<String>,
    /// The variable its key is taken from, where it has one.
    pub key_variable: Option<String>,
}

/// A server on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    /// What it is: `ollama`, `llama.cpp`, `lmstudio`, `vllm`.
    pub kind: String,
    /// Where it answers.
    pub endpoint: String,
    /// What it has.
    pub models: Vec<LocalModel>,
}

/// A model of a server on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalModel {
    /// What `lisa model use` and `lisa model test` call it.
    pub name: String,
    /// Whether the server only passes the conversation on to another machine.
    pub elsewhere: bool,
    /// Whether it has called a tool when it was tried; nothing where it was not tried in this life of the agent.
    pub proved: Option<bool>,
}

/// How trying a model went. `lisa model test --json` prints these.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tested {
    /// What `lisa model use` calls it.
    pub name: String,
    /// Where it was asked.
    pub endpoint: String,
    /// Whether it does everything that a turn needs.
    pub proved: bool,
    /// What was looked at, in order, up to and with the first that failed.
    pub steps: Vec<Step>,
    /// How long it all took, in milliseconds.
    pub took_ms: u64,
    /// What went wrong and what to do, where something did.
    pub why: Option<String>,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// `reachable`, `answered`, `called a tool`, `took its result`, `streamed`.
    pub what: String,
    /// Whether it is so.
    pub ok: bool,
    /// When that was known, in milliseconds from the beginning.
    pub after_ms: u64,
}

/// A model was made the one that thinks. `lisa model use --json` prints this.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Used {
    /// The one in use now, from the next turn on.
    pub model: String,
    /// The one before.
    pub before: String,
    /// The file that says so.
    pub path: String,
    /// The keys below `[model]` that were about the one before, and were taken out.
    pub removed: Vec<String>,
    /// The test it stood; nothing where it was taken without, or needs none.
    pub test: Option<Tested>,
    /// What a person may want to know besides.
    pub notice: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{from_frame, to_frame};
    use serde_json::{Value, json};

    #[test]
    fn the_json_is_pinned() {
        let check = |request: Request, method: &str, params: Value| {
            assert_eq!(to_frame(&request), (method.to_owned(), params.clone()));
            assert_eq!(from_frame::<Request>(method, params).unwrap(), request);
        };
        check(Request::List, "list", Value::Null);
        check(Request::Test { name: None }, "test", json!({"name": null}));
        check(
            Request::Use { name: "ollama/qwen3".into(), untested: true, human: false },
            "use",
            json!({"name": "ollama/qwen3", "untested": true, "human": false}),
        );
        let asked: Request = from_frame("use", json!({"name": "m"})).unwrap();
        assert_eq!(asked, Request::Use { name: "m".into(), untested: false, human: false });
        let test = Tested {
            name: "ollama/qwen3".into(),
            endpoint: "http://127.0.0.1:11434".into(),
            proved: false,
            steps: vec![Step { what: "reachable".into(), ok: false, after_ms: 3 }],
            took_ms: 3,
            why: Some("start it".into()),
        };
        let tested = json!({
            "name": "ollama/qwen3", "endpoint": "http://127.0.0.1:11434", "proved": false,
            "steps": [{"what": "reachable", "ok": false, "after_ms": 3}], "took_ms": 3, "why": "start it",
        });
        assert_eq!(serde_json::to_value(&test).unwrap(), tested);
        assert_eq!(
            serde_json::to_value(Reply::Refused { reason: "no".into(), test: None }).unwrap(),
            json!({"refused": {"reason": "no"}})
        );
        assert_eq!(
            serde_json::to_value(Reply::Tested { tests: vec![test] }).unwrap(),
            json!({"tested": {"tests": [tested]}})
        );
    }
}
