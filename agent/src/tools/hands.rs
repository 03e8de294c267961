//! The tools of files and commands, as a model is shown them. What they do is done elsewhere (`files`, `sandbox`).

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use ipc::contract::soul::ToolSpec;
use serde_json::{Map, Value, json};

use super::{
    DEADLINE, Outcome, Task, Tool,
    sandbox::{Bench, Command, Deed},
};

/// The longest a command may take.
const TIMEOUT_MAX: Duration = Duration::from_mins(10);
/// How much longer than the command the tool may take: its end is waited for.
const END_MAX: Duration = Duration::from_secs(10);

/// All of them.
pub(crate) fn all(bench: &Arc<Bench>) -> Vec<Arc<dyn Tool>> {
    let on_files =
        FILE_TOOLS.iter().map(|kind| Arc::new(OnFiles { kind, bench: bench.clone() }) as Arc<dyn Tool>);
    on_files.chain([Arc::new(Bash { bench: bench.clone() }) as Arc<dyn Tool>]).collect()
}

/// One of the tools that do something with files.
struct Kind {
    name: &'static str,
    writes: bool,
    description: &'static str,
    properties: fn() -> Value,
    required: &'static [&'static str],
}

const FILE_TOOLS: [Kind; 6] = [
    Kind {
        name: "read",
        writes: false,
        description: "Read a text file: its lines, numbered. A long file comes in windows; go on with `offset`. \
             Paths are absolute, or from the work folder on.",
        properties: || {
            json!({
                "path": path("the file"),
                "offset": {"type": "integer", "minimum": 1, "description": "the first line, from 1 on"},
                "limit": {"type": "integer", "minimum": 1, "maximum": 10_000, "description": "how many lines"},
            })
        },
        required: &["path"],
    },
    Kind {
        name: "write",
        writes: true,
        description: "Write a whole file below the work folder; folders on the way are made, a file that is there is replaced. \
             To change a part of one, use `edit`.",
        properties: || json!({"path": path("the file"), "content": {"type": "string", "description": "all of it"}}),
        required: &["path", "content"],
    },
    Kind {
        name: "edit",
        writes: true,
        description: "Replace a piece of a text file below the work folder. `old` must be in the file exactly once, letter for letter \
             (without the line numbers of `read`), or set `replace_all`.",
        properties: || {
            json!({
                "path": path("the file"),
                "old": {"type": "string", "minLength": 1, "description": "the piece as it stands"},
                "new": {"type": "string", "description": "what stands there afterwards"},
                "replace_all": {"type": "boolean", "description": "replace it wherever it stands"},
            })
        },
        required: &["path", "old", "new"],
    },
    Kind {
        name: "ls",
        writes: false,
        description: "List a folder; the work folder where none is named.",
        properties: || json!({"path": path("the folder")}),
        required: &[],
    },
    Kind {
        name: "glob",
        writes: false,
        description: "Find files by a pattern of their path, such as `*.rs` (at any depth) or `src/**/*.md`. What .gitignore leaves out is left out.",
        properties: || json!({"pattern": words("the pattern"), "path": path("the folder to look below")}),
        required: &["pattern"],
    },
    Kind {
        name: "grep",
        writes: false,
        description: "Find lines by a regular expression (Rust's syntax), in a folder or one file. What .gitignore leaves out and binary \
             files are left out.",
        properties: || {
            json!({
                "pattern": words("the regular expression"),
                "path": path("the folder or file"),
                "glob": words("only files whose path matches this, such as `*.rs`"),
                "ignore_case": {"type": "boolean"},
                "context": {"type": "integer", "minimum": 0, "maximum": 10, "description": "how many lines around each"},
                "limit": {"type": "integer", "minimum": 1, "maximum": 1000, "description": "how many matches"},
            })
        },
        required: &["pattern"],
    },
];

fn path(what: &str) -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": 4096, "description": what})
}

fn words(what: &str) -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": 2000, "description": what})
}

struct OnFiles {
    kind: &'static Kind,
    bench: Arc<Bench>,
}

impl Tool for OnFiles {
    fn spec(&self) -> ToolSpec {
        let Kind { name, writes, description, properties, required } = self.kind;
        let mut schema = json!({"type": "object", "properties": properties(), "additionalProperties": false});
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        ToolSpec {
            name: (*name).to_owned(),
            description: (*description).to_owned(),
            input_schema: schema,
            writes: *writes,
        }
    }

    fn run<'a>(&'a self, task: Task<'a>, input: Map<String, Value>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            match deed(self.kind.name, &input) {
                Ok(deed) => self.bench.deed(task, deed).await,
                Err(why) => Outcome::failed(format!("`{}` was not run: {why}", self.kind.name)),
            }
        })
    }
}

/// The deed that a call of a tool is: named as the tool is.
fn deed(name: &str, input: &Map<String, Value>) -> Result<Deed, serde_json::Error> {
    serde_json::from_value(json!({name: input}))
}

struct Bash {
    bench: Arc<Bench>,
}

impl Tool for Bash {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "bash".to_owned(),
            description: "Run a command with bash in the work folder; what it prints comes back, with its exit status. It can write below the work \
                 folder and in $TMPDIR, not in /tmp, and has no input. Whatever it starts ends with the call. For files, `read`, `edit`, `glob` \
                 and `grep` say more."
                .to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "command": {"type": "string", "minLength": 1, "maxLength": 100_000},
                    "timeout": {
                        "type": "integer", "minimum": 1, "maximum": TIMEOUT_MAX.as_secs(),
                        "description": format!("seconds after which it is ended; {} where none is given", DEADLINE.as_secs()),
                    },
                    "description": {"type": "string", "maxLength": 300, "description": "what it is for, in a few words, for your person"},
                },
                "required": ["command"],
                "additionalProperties": false,
            }),
            writes: true,
        }
    }

    fn deadline(&self, input: &Map<String, Value>) -> Duration {
        longest(input) + END_MAX
    }

    fn run<'a>(&'a self, task: Task<'a>, input: Map<String, Value>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let command = input.get("command").and_then(Value::as_str).unwrap_or_default().to_owned();
            if command.contains('\0') {
                return Outcome::failed("`bash` was not run: no command holds a NUL");
            }
            self.bench.command(task, Command { command, timeout: longest(&input) }).await
        })
    }
}

/// How long a command may take.
fn longest(input: &Map<String, Value>) -> Duration {
    // some models write 5.0, which is an integer to a schema as well
    let asked = input.get("timeout").and_then(Value::as_f64);
    let asked = asked.and_then(|asked| Duration::try_from_secs_f64(asked).ok());
    asked.map_or(DEADLINE, |asked| asked.clamp(Duration::from_secs(1), TIMEOUT_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_the_deed_of_its_name() {
        let input = |value: Value| value.as_object().unwrap().clone();
        for (name, given) in [
            ("read", json!({"path": "a", "offset": 2})),
            ("write", json!({"path": "a", "content": "好"})),
            ("edit", json!({"path": "a", "old": "x", "new": "y"})),
            ("ls", json!({})),
            ("glob", json!({"pattern": "*.rs"})),
            ("grep", json!({"pattern": "x", "context": 2})),
        ] {
            deed(name, &input(given)).unwrap();
        }
        assert!(deed("read", &Map::new()).is_err());
    }

    #[test]
    fn a_command_has_the_time_it_asks_for_and_no_more_than_there_is() {
        let check = |timeout: Value, secs: u64| {
            let input = json!({"timeout": timeout});
            assert_eq!(longest(input.as_object().unwrap()), Duration::from_secs(secs));
        };
        check(Value::Null, 120);
        check(json!(5), 5);
        check(json!(5.0), 5);
        check(json!(100_000), 600);
    }
}
