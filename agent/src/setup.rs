//! Which model thinks, from what the home and the environment say: the disk and the environment are read here.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use ipc::{
    config::{Config, Model},
    exit::Fault,
    home::Home,
};
use tracing::warn;

use crate::provider::{Budget, Choice, Known, Provider, choose, config_env::ConfigEnv, key_variables};

/// A provider, and how it was chosen.
pub(crate) struct Chosen {
    pub(crate) provider: Arc<dyn Provider>,
    pub(crate) choice: Choice,
    /// What the configuration says.
    pub(crate) config: Model,
    /// The variables of keys that are set, by name.
    pub(crate) keys: Vec<String>,
    pub(crate) known: Known,
    pub(crate) notice: Option<String>,
    /// Where Ollama's own programs would ask.
    pub(crate) ollama_host: Option<String>,
}

/// The files a choice is made from, as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Files {
    /// `config.toml`; nothing where there is none.
    pub(crate) config: Option<String>,
    /// `config.env`, which holds secrets.
    keys: Option<Secret>,
}

/// A text that is not shown.
#[derive(Clone, PartialEq, Eq)]
struct Secret(String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum SetupError {
    #[error("could not read `{path}`; see that it is a text file we may read")]
    Read { path: PathBuf, source: io::Error },
}

impl Files {
    /// Reads them.
    pub(crate) fn read(home: &Home) -> Result<Self, SetupError> {
        Ok(Self { config: text(&home.config())?, keys: text(&home.config_env())?.map(Secret) })
    }

    /// The same with another `config.toml`.
    pub(crate) fn with_config(&self, config: String) -> Self {
        Self { config: Some(config), ..self.clone() }
    }

    /// What `config.toml` says about the model.
    pub(crate) fn model(&self, home: &Home) -> Result<Model, Fault> {
        let text = self.config.as_deref().unwrap_or_default();
        Config::parse(text, &home.config()).map(|config| config.model).map_err(Fault::configuration)
    }

    /// Chooses and makes the provider. What is wrong with the settings is a person's to mend.
    pub(crate) fn choose(&self, config: Model, budget: &Budget) -> Result<Chosen, Fault> {
        let keys = self.keys.as_ref().map(|keys| ConfigEnv::parse(&keys.0)).unwrap_or_default();
        if !keys.skipped.is_empty() {
            warn!(lines = ?keys.skipped, "lines of config.env are no `KEY=VALUE` and were left out");
        }
        let process = |key: &str| std::env::var(key).ok();
        let env = |key: &str| keys.get(key, &process);
        let choice = choose(&config, &env).map_err(Fault::configuration)?;
        let provider = choice.build(budget).map_err(Fault::configuration)?;
        let (keys, ollama_host) = (key_variables(&config, &env), env("OLLAMA_HOST"));
        Ok(Chosen {
            provider,
            known: choice.known(),
            notice: choice.notice.clone(),
            choice,
            config,
            keys,
            ollama_host,
        })
    }
}

/// The folder of the person whose agent this is, where the environment knows it.
pub(crate) fn person_home() -> Option<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute())
}

fn text(path: &Path) -> Result<Option<String>, SetupError> {
    let unreadable = |source| Err(SetupError::Read { path: path.to_owned(), source });
    // a pipe would be waited on for ever
    if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return unreadable(io::Error::other("it is not a file"));
    }
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => unreadable(source),
    }
}
