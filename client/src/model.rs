//! `lisa model`: which model thinks and why, whether one does what a turn needs, and making it the one that thinks.

use std::time::Duration;

use ipc::{
    contract::{
        chat::MODEL,
        model::{Link as Configured, LocalModel, Models, Reply, Request, Tested, Used},
    },
    exit::Fault,
    home::Home,
    text::one_line,
};

use crate::{arguments::ModelCommand, link::Link, output, status::table};

/// How long trying may take: a model that has to be loaded first takes minutes, and a chain has several.
const TRIAL_PATIENCE: Duration = Duration::from_mins(16);

/// The longest explanation shown, in characters; `--json` has all of it.
const WHY_CHARS_MAX: usize = 600;

/// Does what is asked about the model.
pub(crate) async fn model(home: &Home, json: bool, command: Option<ModelCommand>) -> Result<(), Fault> {
    let request = match command.unwrap_or(ModelCommand::List) {
        ModelCommand::List => Request::List,
        ModelCommand::Test { name } => Request::Test { name },
        ModelCommand::Use { name, untested } => Request::Use { name, untested, human: false },
    };
    let mut link = Link::open(home).await?;
    if output::stderr_is_terminal()
        && let Some(doing) = doing(&request)
    {
        output::aside(&doing);
    }
    match link.ask(MODEL, &request, TRIAL_PATIENCE).await? {
        Reply::Models(models) => {
            if json {
                output::json(&models)
            } else {
                output::lines(&list(&models).join("\n"))
            }
        }
        Reply::Tested { tests } => {
            for test in &tests {
                if json { output::json(test)? } else { output::lines(&report(test).join("\n"))? }
            }
            match tests.iter().find(|test| !test.proved) {
                None => Ok(()),
                Some(test) => Err(failed(test)),
            }
        }
        Reply::Used(used) => {
            if json {
                output::json(&used)
            } else {
                output::lines(&taken(&used).join("\n"))
            }
        }
        Reply::Refused { reason, test } => {
            // data about what was tried goes where data goes, the refusal where words go
            if let Some(test) = test {
                if json { output::json(&test)? } else { output::lines(&report(&test).join("\n"))? }
            }
            Err(Fault::failed(reason))
        }
    }
}

/// What takes a while, for somebody who waits.
fn doing(request: &Request) -> Option<String> {
    match request {
        Request::List | Request::Use { untested: true, .. } => None,
        Request::Test { name: None } => Some("trying what is in use …".to_owned()),
        Request::Test { name: Some(name) } | Request::Use { name, .. } => {
            Some(format!("trying {} …", one_line(name, 80)))
        }
    }
}

fn failed(test: &Tested) -> Fault {
    let why = test.why.as_deref().unwrap_or("it did not do what a turn needs");
    Fault::failed(format!("`{}` did not stand the test: {}", test.name, one_line(why, WHY_CHARS_MAX)))
}

/// What thinks and what could. Names may be wide (Chinese, say) and stand last, so that nothing has to be lined up behind.
fn list(models: &Models) -> Vec<String> {
    let keys = if models.keys.is_empty() { "none is set".to_owned() } else { models.keys.join(", ") };
    let mut lines = vec![
        format!("model    {}", one_line(&models.model, 200)),
        format!("because  {}", one_line(&models.because, WHY_CHARS_MAX)),
        format!("keys     {keys}"),
    ];
    lines.extend(models.notice.iter().map(|notice| format!("! {}", one_line(notice, WHY_CHARS_MAX))));
    lines.push(String::new());
    let heads = ["", "where", "tools", "name"].map(str::to_owned);
    let chain = models.chain.iter().enumerate().map(|(at, link)| configured(at, link, models));
    let is_in_chain = |name: &str| models.chain.iter().any(|link| link.name == name);
    let local = models.local.iter().flat_map(|server| {
        let others = server.models.iter().filter(|model| !is_in_chain(&model.name));
        others.map(|model| {
            ["found".to_owned(), server.endpoint.clone(), tools(model).to_owned(), one_line(&model.name, 200)]
        })
    });
    let offline = (!is_in_chain("offline")).then(|| {
        ["always there".to_owned(), "-".to_owned(), "by fixed rules".to_owned(), "offline".to_owned()]
    });
    let rows: Vec<_> = std::iter::once(heads).chain(chain).chain(local).chain(offline).collect();
    lines.extend(table(&rows));
    lines
}

fn configured(at: usize, link: &Configured, models: &Models) -> [String; 4] {
    let known = models.local.iter().flat_map(|server| &server.models).find(|model| model.name == link.name);
    let tools = match (&link.endpoint, known) {
        (None, _) => "by fixed rules",
        (Some(_), Some(model)) => tools(model),
        (Some(_), None) => "-",
    };
    let state = if at == 0 { "in use" } else { "after it" };
    [
        state.to_owned(),
        link.endpoint.clone().unwrap_or_else(|| "-".to_owned()),
        tools.to_owned(),
        one_line(&link.name, 200),
    ]
}

fn tools(model: &LocalModel) -> &'static str {
    match (model.elsewhere, model.proved) {
        (true, _) => "leaves this machine",
        (false, Some(true)) => "called one",
        (false, Some(false)) => "failed a test",
        (false, None) => "not tried",
    }
}

/// How trying went, a line for each thing that was looked at.
fn report(test: &Tested) -> Vec<String> {
    let mut lines = vec![format!("{} at {}", one_line(&test.name, 200), test.endpoint)];
    let steps = test.steps.iter().map(|step| {
        [format!("  {}", step.what), if step.ok { "yes" } else { "NO" }.to_owned(), seconds(step.after_ms)]
    });
    lines.extend(table(&steps.collect::<Vec<_>>()));
    if test.proved {
        lines.push(format!("  does what a turn needs; it took {}", seconds(test.took_ms)));
    }
    lines
}

fn taken(used: &Used) -> Vec<String> {
    let mut lines: Vec<String> = used.test.iter().flat_map(report).collect();
    lines.push(if used.model == used.before {
        format!("{} thinks, as before", one_line(&used.model, 200))
    } else {
        let (model, before) = (one_line(&used.model, 200), one_line(&used.before, 200));
        format!("{model} thinks from the next turn on, after {before}; {} says so", used.path)
    });
    if !used.removed.is_empty() {
        lines.push(format!(
            "made a comment there, because it was about the one before: {}",
            used.removed.join(", ")
        ));
    }
    lines.extend(used.notice.iter().map(|notice| format!("! {}", one_line(notice, WHY_CHARS_MAX))));
    lines
}

/// Milliseconds in seconds with two digits behind the point, by whole numbers.
fn seconds(ms: u64) -> String {
    format!("{}.{:02} s", ms / 1000, ms % 1000 / 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ipc::contract::model::{Server, Step};

    fn test(proved: bool) -> Tested {
        let step = |what: &str, ok, after_ms| Step { what: what.into(), ok, after_ms };
        Tested {
            name: "ollama/千问:8b".into(),
            endpoint: "http://127.0.0.1:11434".into(),
            proved,
            steps: vec![step("reachable", true, 12), step("called a tool", proved, 2345)],
            took_ms: 2345,
            why: (!proved).then(|| "it answered without calling the tool".into()),
        }
    }

    #[test]
    fn the_list_says_what_is_in_use_why_and_what_could_be() {
        let model = |name: &str, elsewhere, proved| LocalModel { name: name.into(), elsewhere, proved };
        let configured = |name: &str, endpoint: &str| Configured {
            name: name.into(),
            endpoint: Some(endpoint.into()),
            key_variable: None,
        };
        let mut models = Models {
            model: "ollama/千问:8b".into(),
            because: "`provider` under `[model]` in config.toml says so".into(),
            notice: Some("mind\nthis".into()),
            chain: vec![
                configured("ollama/千问:8b", "http://127.0.0.1:11434"),
                configured("anthropic/c", "https://api.anthropic.com/v1"),
            ],
            keys: vec!["ANTHROPIC_API_KEY".into()],
            local: vec![Server {
                kind: "ollama".into(),
                endpoint: "http://127.0.0.1:11434".into(),
                models: vec![
                    model("ollama/千问:8b", false, Some(true)),
                    model("ollama/big:cloud", true, None),
                    model("ollama/tiny", false, Some(false)),
                ],
            }],
        };
        assert_eq!(
            list(&models).join("\n"),
            "\
model    ollama/千问:8b
because  `provider` under `[model]` in config.toml says so
keys     ANTHROPIC_API_KEY
! mind this

              where                         tools                name
in use        http://127.0.0.1:11434        called one           ollama/千问:8b
after it      https://api.anthropic.com/v1  -                    anthropic/c
found         http://127.0.0.1:11434        leaves this machine  ollama/big:cloud
found         http://127.0.0.1:11434        failed a test        ollama/tiny
always there  -                             by fixed rules       offline"
        );
        models.chain = vec![Configured { name: "offline".into(), endpoint: None, key_variable: None }];
        (models.keys, models.local) = (vec![], vec![]);
        let said = list(&models);
        assert!(said.contains(&"keys     none is set".to_owned()), "{said:?}");
        assert_eq!(said.last().map(String::as_str), Some("in use  -      by fixed rules  offline"));
    }

    #[test]
    fn a_test_says_how_far_it_came_and_what_to_do() {
        assert_eq!(
            report(&test(true)).join("\n"),
            "\
ollama/千问:8b at http://127.0.0.1:11434
  reachable      yes  0.01 s
  called a tool  yes  2.34 s
  does what a turn needs; it took 2.34 s"
        );
        assert_eq!(report(&test(false)).last().unwrap(), "  called a tool  NO   2.34 s");
        assert_eq!(
            failed(&test(false)).to_string(),
            "`ollama/千问:8b` did not stand the test: it answered without calling the tool"
        );
    }

    #[test]
    fn a_change_says_from_when_on_and_what_was_taken_out() {
        let mut used = Used {
            model: "ollama/q".into(),
            before: "offline".into(),
            path: "/h/config.toml".into(),
            removed: vec!["thinking".into()],
            test: None,
            notice: None,
        };
        assert_eq!(
            taken(&used).join("\n"),
            "\
ollama/q thinks from the next turn on, after offline; /h/config.toml says so
made a comment there, because it was about the one before: thinking"
        );
        (used.before, used.removed) = ("ollama/q".into(), vec![]);
        assert_eq!(taken(&used).join("\n"), "ollama/q thinks, as before");
    }
}
