//! Which model thinks, from what the home and the environment say: the disk and the environment are read here.

use std::{io, path::Path, sync::Arc};

use ipc::{config::Model, exit::Fault, home::Home};
use tracing::warn;

use crate::provider::{Known, Provider, choose, config_env::ConfigEnv};

/// A provider, and what a person may want to know about the choice.
pub(crate) struct Chosen {
    pub(crate) provider: Arc<dyn Provider>,
    pub(crate) known: Known,
    pub(crate) notice: Option<String>,
}

#[derive(Debug, thiserror::Error)]
enum SetupError {
    #[error("could not read the keys at `{path}`; see that it is a text file we may read")]
    Read { path: std::path::PathBuf, source: io::Error },
}

/// Chooses and makes the provider. What is wrong with the settings is a person's to mend.
pub(crate) fn choose_model(home: &Home, config: &Model) -> Result<Chosen, Fault> {
    let keys = read_keys(&home.config_env()).map_err(Fault::configuration)?;
    if !keys.skipped.is_empty() {
        warn!(lines = ?keys.skipped, "lines of config.env are no `KEY=VALUE` and were left out");
    }
    let process = |key: &str| std::env::var(key).ok();
    let choice = choose(config, &|key| keys.get(key, &process)).map_err(Fault::configuration)?;
    let provider = choice.build().map_err(Fault::configuration)?;
    Ok(Chosen { provider, known: choice.known(), notice: choice.notice })
}

fn read_keys(path: &Path) -> Result<ConfigEnv, SetupError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(ConfigEnv::parse(&text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(ConfigEnv::default()),
        Err(source) => Err(SetupError::Read { path: path.to_owned(), source }),
    }
}
