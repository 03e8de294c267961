//! What is known of the models that may answer, without asking them: how much each takes in, and what it costs.
//!
//! A person's own setting stands above everything. Without one the windows of well-known families are taken, rather too
//! small than too large: a conversation shortened early costs a little, one sent too long an answer. Of a model nobody knows,
//! nothing is assumed; its server says when it is too much.

use std::collections::BTreeMap;

use ipc::{config::Price, contract::sessions};

use super::{
    Usage,
    settings::{RemoteSettings, Settings, Speaks},
};

/// How much of a conversation the embedded default is shown. It needs little, and a session that goes on for years should
/// cost it no more than a young one.
const OFFLINE_WINDOW: u64 = 64_000;

/// How much families of models take in, in tokens, by how their names begin; the first that fits counts.
const FAMILIES: [(&str, u64); 11] = [
    ("claude", 200_000),
    ("gpt-4.1", 1_000_000),
    ("gpt-4", 128_000),
    ("gpt-5", 272_000),
    ("o1", 200_000),
    ("o3", 200_000),
    ("o4", 200_000),
    ("deepseek-chat", 64_000),
    ("deepseek-reasoner", 64_000),
    ("gemini-1", 1_000_000),
    ("gemini-2", 1_000_000),
];

/// What is known of each model, by its name as a provider gives it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Known(BTreeMap<String, Model>);

#[derive(Debug, Clone, Copy, PartialEq)]
struct Model {
    window: Option<u64>,
    price: Option<Price>,
}

impl Known {
    /// What the settings say and their names tell.
    pub(super) fn of<'a>(settings: impl Iterator<Item = &'a Settings>) -> Self {
        let models = settings.map(|settings| match settings {
            Settings::Offline => ("offline".to_owned(), Model { window: Some(OFFLINE_WINDOW), price: None }),
            Settings::Remote(remote) => {
                (remote.model(), Model { window: window(remote), price: remote.price })
            }
        });
        // the same model at two addresses: what stands first is asked first
        let mut known = Self::default();
        for (name, model) in models {
            known.0.entry(name).or_insert(model);
        }
        known
    }

    /// How many tokens a model takes in, where that is known.
    pub(crate) fn window(&self, model: &str) -> Option<u64> {
        self.0.get(model).and_then(|known| known.window)
    }

    /// What one answer of a model cost.
    pub(crate) fn cost(&self, model: &str, usage: &Usage) -> sessions::Usage {
        let tokens = |said: Option<u64>| said.unwrap_or_default();
        let mut cost = sessions::Usage {
            answers: 1,
            input: tokens(usage.input_tokens),
            output: tokens(usage.output_tokens),
            cache_read: tokens(usage.cache_read_tokens),
            cache_write: tokens(usage.cache_write_tokens),
            cost_micros: None,
        };
        cost.cost_micros = self.0.get(model).and_then(|known| known.price).map(|price| micros(&price, &cost));
        cost
    }
}

fn window(settings: &RemoteSettings) -> Option<u64> {
    if let Some(set) = settings.context {
        return Some(u64::from(set));
    }
    // Ollama runs models under names of their makers, in a window of its own
    if settings.speaks == Speaks::Ollama {
        return None;
    }
    let name = settings.name.rsplit('/').next().unwrap_or_default().to_lowercase();
    FAMILIES.iter().find(|(family, _)| name.starts_with(family)).map(|(_, window)| *window)
}

/// Millionths of the money: so many tokens at so much a million.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "tokens are far below 2^52, prices at least zero, and what is larger than a u64 stays at its end"
)]
fn micros(price: &Price, usage: &sessions::Usage) -> u64 {
    let parts = [
        (usage.input, price.input),
        (usage.output, price.output),
        (usage.cache_read, price.cache_read.unwrap_or(price.input)),
        (usage.cache_write, price.cache_write.unwrap_or(price.input)),
    ];
    parts.iter().map(|(tokens, price)| *tokens as f64 * price).sum::<f64>().round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(speaks: Speaks, name: &str, context: Option<u32>, price: Option<Price>) -> Known {
        let settings =
            RemoteSettings { name: name.into(), context, price, ..RemoteSettings::of_test(speaks) };
        Known::of(std::iter::once(&Settings::Remote(Box::new(settings))))
    }

    #[test]
    fn a_window_is_what_is_set_else_what_the_name_tells_else_unknown() {
        let check = |speaks, name: &str, context, shown: &str, window: Option<u64>| {
            assert_eq!(known(speaks, name, context, None).window(shown), window, "{shown}");
        };
        check(Speaks::Anthropic, "claude-sonnet-4-5", None, "anthropic/claude-sonnet-4-5", Some(200_000));
        check(Speaks::OpenAi, "anthropic/claude-3", None, "openai/anthropic/claude-3", Some(200_000));
        check(Speaks::OpenAi, "gpt-4.1-mini", None, "openai/gpt-4.1-mini", Some(1_000_000));
        check(Speaks::OpenAi, "gpt-4o", Some(9), "openai/gpt-4o", Some(9));
        check(Speaks::OpenAi, "qwen", None, "openai/qwen", None);
        check(Speaks::Ollama, "deepseek-chat", None, "ollama/deepseek-chat", None);
        check(Speaks::Ollama, "q", Some(8192), "ollama/q", Some(8192));
        check(Speaks::Ollama, "q", Some(8192), "ollama/other", None);
        assert_eq!(Known::of(std::iter::once(&Settings::Offline)).window("offline"), Some(OFFLINE_WINDOW));
    }

    #[test]
    fn an_answer_costs_what_its_tokens_cost() {
        let price = Price { input: 3.0, output: 15.0, cache_read: Some(0.3), cache_write: None };
        let usage = Usage {
            input_tokens: Some(1000),
            output_tokens: Some(200),
            cache_read_tokens: Some(10_000),
            cache_write_tokens: Some(100),
        };
        let cost = known(Speaks::OpenAi, "m", None, Some(price)).cost("openai/m", &usage);
        assert_eq!((cost.answers, cost.tokens(), cost.cost_micros), (1, 11_300, Some(9300)));
        let free = known(Speaks::OpenAi, "m", None, None).cost("openai/m", &Usage::default());
        assert_eq!((free.answers, free.tokens(), free.cost_micros), (1, 0, None));
    }
}
