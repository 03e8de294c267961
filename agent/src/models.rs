//! Which model thinks, held for a life, looked at anew before each turn, and changed when a person says so.
//!
//! ```text
//!  config.toml, config.env ──read when a turn begins; changed?──▶ chosen anew ──▶ the turn, whole, and all after it
//!  lisa model use ──tried──▶ config.toml ──────────────────────────────┘
//!  nothing set, and a server on this machine calls a tool ──▶ an offer, which changes nothing
//! ```
//!
//! A configuration that cannot be used changes nothing: the one before goes on, and it is said why.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use ipc::{
    config::Model,
    contract::model::{Link, LocalModel, Models as Told, Reply, Request, Server, Tested, Used},
    exit::{Fault, chain},
    home::Home,
};
use tracing::{info, warn};

use crate::{
    provider::{
        Budget, Known, Provider, RemoteSettings, Settings,
        local::{Found, find},
        naming::{OFFLINE, Wanted, called, keys, local_name, wanted},
        prove, without_query,
    },
    rewrite::{rewrite, write},
    setup::{Chosen, Files, SetupError},
    tools::Spawner,
};

/// How many models are tried for an offer: each may have to be read from a disk first.
const OFFERS_TRIED_MAX: usize = 3;

/// Tells facts that stand in `lisa status`: name and value.
type Tell = fn(&[(&str, &str)]);

/// The model in force.
pub(crate) struct Models {
    home: Home,
    /// How often a server may be asked again.
    budget: Budget,
    held: Mutex<Held>,
    /// What was tried in this life, by name, and whether it called a tool.
    tried: Mutex<BTreeMap<String, bool>>,
    /// Held while the configuration is changed.
    changing: tokio::sync::Mutex<()>,
    tell: Tell,
    /// Writes the configuration, which is not the agent's to write but when a person says so.
    spawner: Spawner,
}

struct Held {
    files: Files,
    chosen: Chosen,
}

/// Who thinks in a turn, from its beginning to its end.
#[derive(Clone)]
pub(crate) struct Thinker {
    /// The model, or the chain of them.
    pub(crate) provider: Arc<dyn Provider>,
    /// What is known of the models in it.
    pub(crate) known: Known,
}

/// Why a model is not used or tried; with the test it did not stand.
struct Refusal {
    reason: String,
    test: Option<Tested>,
}

impl<E: std::error::Error + 'static> From<E> for Refusal {
    fn from(error: E) -> Self {
        Self { reason: chain(&error), test: None }
    }
}

impl Models {
    /// Chooses for the first time. A `config.toml` that broke since the supervisor read it is passed over for what it read.
    pub(crate) fn at(
        home: &Home,
        read_before: &Model,
        budget: Budget,
        tell: Tell,
        spawner: Spawner,
    ) -> Result<Self, Fault> {
        let files = Files::read(home).map_err(Fault::configuration)?;
        let (config, broken) = match files.model(home) {
            Ok(config) => (config, None),
            Err(fault) => (read_before.clone(), Some(fault.to_string())),
        };
        let mut chosen = files.choose(config, &budget)?;
        if let Some(why) = broken {
            chosen.notice = Some(format!("she goes on with the model that was set before: {why}"));
        }
        let models = Self {
            home: home.clone(),
            budget,
            held: Mutex::new(Held { files, chosen }),
            tried: Mutex::default(),
            changing: tokio::sync::Mutex::default(),
            tell,
            spawner,
        };
        models.tell_all();
        Ok(models)
    }

    /// The model as it was chosen last.
    pub(crate) fn current(&self) -> Arc<dyn Provider> {
        self.with(|held| held.chosen.provider.clone())
    }

    /// Its name.
    pub(crate) fn name(&self) -> String {
        self.current().model().to_owned()
    }

    /// What a person may want to know about the choice.
    pub(crate) fn notice(&self) -> Option<String> {
        self.with(|held| held.chosen.notice.clone())
    }

    /// The model for a turn that begins now: what a person has set since is read first.
    pub(crate) async fn for_a_turn(&self) -> Thinker {
        let home = self.home.clone();
        let read = tokio::task::spawn_blocking(move || Files::read(&home)).await;
        self.take(read.expect("reading two files does not panic"));
        self.with(|held| {
            let chosen = &held.chosen;
            Thinker { provider: chosen.provider.clone(), known: chosen.known.clone() }
        })
    }

    /// Chooses anew where the files are not what they were.
    fn take(&self, read: Result<Files, SetupError>) {
        let before = self.name();
        let changed = self.with(|held| {
            let keep = |held: &mut Held, why: String| {
                held.chosen.notice = Some(format!("she goes on with `{before}`: {why}"));
                Some(why)
            };
            let files = match read {
                Ok(files) if files == held.files => return None,
                Ok(files) => files,
                Err(error) => {
                    let why = chain(&error);
                    let known = held.chosen.notice.as_deref().is_some_and(|notice| notice.ends_with(&why));
                    return if known { None } else { Some(keep(held, why)) };
                }
            };
            let chosen = files.model(&self.home).and_then(|config| files.choose(config, &self.budget));
            held.files = files;
            match chosen {
                Ok(chosen) => {
                    held.chosen = chosen;
                    Some(None)
                }
                Err(fault) => Some(keep(held, fault.to_string())),
            }
        });
        match changed {
            None => return,
            Some(Some(error)) => {
                warn!(model = before, error, "what is set cannot be used; going on as before");
            }
            Some(None) => info!(model = self.name(), before, "the model was chosen anew"),
        }
        self.tell_all();
    }

    fn with<T>(&self, look: impl FnOnce(&mut Held) -> T) -> T {
        look(&mut self.held.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn tell_all(&self) {
        let (model, notice) = (self.name(), self.notice().unwrap_or_default());
        (self.tell)(&[("model", &model), ("notice", &notice)]);
        if model != OFFLINE {
            (self.tell)(&[("offer", "")]);
        }
    }

    /// Answers a question about the model.
    pub(crate) async fn answer(&self, request: Request) -> Reply {
        let answered = match request {
            Request::List => Ok(Reply::Models(self.list().await)),
            Request::Test { name } => self.test(name).await,
            Request::Use { human: false, .. } => Err(Refusal {
                reason: "which model thinks is a person's to say: type `lisa model use NAME` yourself"
                    .to_owned(),
                test: None,
            }),
            Request::Use { name, untested, human: true } => self.use_model(&name, untested).await,
        };
        answered.unwrap_or_else(|Refusal { reason, test }| Reply::Refused { reason, test })
    }

    async fn list(&self) -> Told {
        self.for_a_turn().await;
        let found = find(self.ollama_host().as_deref()).await;
        let tried = self.tried.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let local = found.iter().map(|server| Server {
            kind: server.kind.word().to_owned(),
            endpoint: server.address.clone(),
            models: server
                .models
                .iter()
                .map(|model| {
                    let name = local_name(server.kind, &model.name);
                    LocalModel { proved: tried.get(&name).copied(), elsewhere: model.elsewhere, name }
                })
                .collect(),
        });
        let local = local.collect();
        self.with(|held| {
            let chosen = &held.chosen;
            Told {
                model: chosen.provider.model().to_owned(),
                because: chosen.choice.because.clone(),
                notice: chosen.notice.clone(),
                chain: chosen.choice.all().iter().map(link).collect(),
                keys: chosen.keys.clone(),
                local,
            }
        })
    }

    fn ollama_host(&self) -> Option<String> {
        self.with(|held| held.chosen.ollama_host.clone())
    }

    async fn test(&self, name: Option<String>) -> Result<Reply, Refusal> {
        self.for_a_turn().await;
        let Some(name) = name else {
            let chain = self.with(|held| held.chosen.choice.all());
            let remote = |settings: &Settings| match settings {
                Settings::Offline => None,
                Settings::Remote(remote) => Some((remote.as_ref().clone(), called(settings))),
            };
            let remotes: Vec<_> = chain.iter().filter_map(remote).collect();
            if remotes.is_empty() {
                return Err(nothing_to_try());
            }
            let mut tests = Vec::new();
            for (settings, name) in remotes {
                tests.push(self.try_out(&settings, name).await);
            }
            return Ok(Reply::Tested { tests });
        };
        let plan = self.plan(&name).await?;
        match plan.first() {
            Some((settings, name)) => Ok(Reply::Tested { tests: vec![self.try_out(&settings, name).await] }),
            None => Err(nothing_to_try()),
        }
    }

    async fn use_model(&self, name: &str, untested: bool) -> Result<Reply, Refusal> {
        let _alone = self.changing.lock().await;
        self.for_a_turn().await;
        let before = self.name();
        let plan = self.plan(name).await?;
        let test = match plan.first() {
            Some((settings, name)) if !untested => Some(self.try_out(&settings, name).await),
            Some(_) | None => None,
        };
        if let Some(Tested { proved: false, name, .. }) = &test {
            let reason = format!(
                "`{name}` did not stand the test, and nothing was changed; mend what it says, or add `--untested` to use it all the \
                 same"
            );
            return Err(Refusal { reason, test });
        }
        let path = self.home.config();
        if plan.before.as_deref() != Some(plan.text.as_str()) && !plan.same {
            let (path, read, written) = (path.clone(), plan.before.clone(), plan.text.clone());
            self.spawner.as_before(move || write(&path, read.as_deref(), &written)).await??;
        }
        self.for_a_turn().await;
        let used = Used {
            model: self.name(),
            before,
            path: path.display().to_string(),
            removed: plan.removed,
            test,
            notice: self.notice(),
        };
        info!(model = used.model, before = used.before, "a person chose the model");
        Ok(Reply::Used(used))
    }

    /// What the configuration would be with the model of that name, and what would be chosen then.
    async fn plan(&self, name: &str) -> Result<Plan, Refusal> {
        let files = self.with(|held| held.files.clone());
        let config = files
            .model(&self.home)
            .map_err(|fault| Refusal { reason: format!("nothing was changed: {fault}"), test: None })?;
        let found = find(self.ollama_host().as_deref()).await;
        let chain = self.with(|held| held.chosen.choice.all());
        let wants = wanted(name, &chain, &config.fallback, &found)?;
        let before = files.config.clone();
        let rewritten = rewrite(before.as_deref().unwrap_or_default(), &keys(&wants, &config))?;
        let files = files.with_config(rewritten.text.clone());
        let config = files.model(&self.home);
        let chosen =
            config.and_then(|config| files.choose(config, &self.budget)).map_err(|fault| Refusal {
                reason: format!(
                    "`{}` is not used, and nothing was changed: {fault}",
                    ipc::text::one_line(name, 80)
                ),
                test: None,
            })?;
        let same = wants == Wanted::Same;
        Ok(Plan {
            before,
            text: rewritten.text,
            removed: rewritten.removed,
            settings: chosen.choice.settings,
            same,
        })
    }

    async fn try_out(&self, settings: &RemoteSettings, name: String) -> Tested {
        let tested = prove(settings, name).await;
        info!(model = tested.name, proved = tested.proved, took_ms = tested.took_ms, "a model was tried");
        self.tried.lock().unwrap_or_else(PoisonError::into_inner).insert(tested.name.clone(), tested.proved);
        tested
    }

    /// Where nobody has said which model thinks: looks for a server on this machine, tries it, and says what was found.
    pub(crate) async fn look_around(&self) {
        let nobody_chose = |models: &Self| {
            models
                .with(|held| held.chosen.config.provider.is_none() && held.chosen.provider.model() == OFFLINE)
        };
        if !nobody_chose(self) {
            return;
        }
        let found = find(self.ollama_host().as_deref()).await;
        let mut failed = None;
        for (server, model) in worth_trying(&found) {
            let name = local_name(server.kind, model);
            let Ok(plan) = self.plan(&name).await else { continue };
            let Some((settings, name)) = plan.first() else { continue };
            let tested = self.try_out(&settings, name).await;
            if !nobody_chose(self) {
                return;
            }
            if tested.proved {
                let offer = offered(&tested);
                info!(offer, "a server on this machine is offered");
                (self.tell)(&[("offer", &offer)]);
                return;
            }
            failed = failed.or(Some(tested));
        }
        if let Some(tested) = failed {
            (self.tell)(&[("offer", &not_offered(&tested))]);
        }
    }
}

/// A change of the configuration that was thought through, and not made yet.
struct Plan {
    before: Option<String>,
    text: String,
    removed: Vec<String>,
    settings: Settings,
    same: bool,
}

impl Plan {
    /// What would be asked first, and what it is called; nothing where that is the embedded default.
    fn first(&self) -> Option<(RemoteSettings, String)> {
        match &self.settings {
            Settings::Offline => None,
            Settings::Remote(settings) => Some((settings.as_ref().clone(), called(&self.settings))),
        }
    }
}

fn nothing_to_try() -> Refusal {
    let reason = format!(
        "`{OFFLINE}` is no language model, so there is nothing to try; name another, as in `lisa model test ollama/qwen3:8b`, and \
         see `lisa model list`"
    );
    Refusal { reason, test: None }
}

/// The models to try for an offer: of each server the first, then the second, never one that is on another machine.
fn worth_trying(found: &[Found]) -> Vec<(&Found, &str)> {
    let mut worth = Vec::new();
    for at in 0..OFFERS_TRIED_MAX {
        for server in found {
            if let Some(model) = server.models.iter().filter(|model| model.talks && !model.elsewhere).nth(at)
            {
                worth.push((server, model.name.as_str()));
            }
        }
    }
    worth.truncate(OFFERS_TRIED_MAX);
    worth
}

fn offered(tested: &Tested) -> String {
    format!(
        "a local server was found at `{}`, and its model called a tool: `lisa model use {}` makes it the one that thinks",
        tested.endpoint, tested.name
    )
}

fn not_offered(tested: &Tested) -> String {
    format!(
        "a local server was found at `{}`, but its model did not stand a test: `lisa model test {}` says why",
        tested.endpoint, tested.name
    )
}

fn link(settings: &Settings) -> Link {
    match settings {
        Settings::Offline => Link { name: OFFLINE.to_owned(), endpoint: None, key_variable: None },
        Settings::Remote(remote) => Link {
            name: called(settings),
            endpoint: Some(without_query(&remote.base_url)),
            key_variable: remote.key.is_some().then(|| remote.key_variable.clone()),
        },
    }
}
