//! What may be typed behind `lisa model`.

use clap::{Args, Subcommand};

/// What of the model.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  lisa model                            what thinks, why, and what could
  lisa model test ollama/qwen3:8b       a real exchange with a real call of a tool
  lisa model use ollama/qwen3:8b        the same, and then it thinks from the next turn on
  lisa model use openai/gpt-5           with its key in config.env
  lisa model use offline                no model, no key, no network")]
pub(crate) struct Model {
    #[command(subcommand)]
    pub(crate) command: Option<ModelCommand>,
}

/// Questions about the model; without one, the list.
#[derive(Debug, Subcommand)]
pub(crate) enum ModelCommand {
    /// What thinks and why, which keys are set, and the servers found on this machine
    #[command(after_long_help = "\
Examples:
  lisa model list
  lisa model list --json | jq '.local[].models[].name'")]
    List,
    /// Try one: whether it is reachable, answers, calls a tool, takes its result and streams
    #[command(after_long_help = "\
Examples:
  lisa model test                       what is in use, with what is asked after it
  lisa model test llama.cpp/qwen2.5")]
    Test {
        /// Which, as `lisa model list` names it; what is in use without
        #[arg(value_name = "NAME")]
        name: Option<String>,
    },
    /// Try one, and make it the one that thinks from the next turn on
    #[command(long_about = "\
Try one, and make it the one that thinks from the next turn on.

It sets `provider`, `name` and `base_url` under `[model]` in config.toml and leaves every other line as it is. What was \
about the one before becomes a comment there.")]
    #[command(after_long_help = "\
Examples:
  lisa model use ollama/qwen3:8b
  lisa model use deepseek/deepseek-chat
  lisa model use openai/gpt-5 --untested")]
    Use {
        /// Which, as `lisa model list` names it, or WHO/MODEL
        #[arg(value_name = "NAME")]
        name: String,
        /// Without trying it first
        #[arg(long)]
        untested: bool,
    },
}
