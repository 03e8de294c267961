//! What may be typed behind `lisa sessions`.

use clap::{Args, Subcommand};

/// What about conversations.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  lisa sessions                          the newest, with what each cost
  lisa sessions search 灯塔              where something was said
  lisa sessions show ID                  the newest page of one
  lisa sessions replay ID 3 --json       what the model was sent for its third answer
  lisa chat --session ID                 go on with one")]
pub(crate) struct Sessions {
    #[command(subcommand)]
    pub(crate) command: Option<SessionsCommand>,
}

/// Questions about conversations; without one, a list.
#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// The conversations last written to, the newest first
    List {
        /// At most so many
        #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=200))]
        limit: u32,
    },
    /// Where something was said, by a person or by her, the best match first
    #[command(after_long_help = "\
Examples:
  lisa sessions search lighthouse
  lisa sessions search 灯塔的看守人 --limit 3
  lisa sessions search rust --json | jq -r .excerpt")]
    Search {
        /// A few words, in any language
        #[arg(value_name = "QUERY", required = true)]
        query: Vec<String>,
        /// At most so many places
        #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=200))]
        limit: u32,
    },
    /// A page of what was said in one, the newest without --before
    #[command(after_long_help = "\
Examples:
  lisa sessions show ID
  lisa sessions show ID --before 41      the page that ends with message 40")]
    Show {
        /// Which
        #[arg(value_name = "ID")]
        session: String,
        /// Only messages before the one with this number
        #[arg(long, value_name = "NUMBER")]
        before: Option<u64>,
        /// At most so many messages
        #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=200))]
        limit: u32,
    },
    /// What the model was sent for one of its answers: the prompt in force and the messages before
    #[command(after_long_help = "\
Examples:
  lisa sessions replay ID                for the newest answer
  lisa sessions replay ID 3")]
    Replay {
        /// Which session
        #[arg(value_name = "ID")]
        session: String,
        /// Which answer, counted from 1; the newest without
        #[arg(value_name = "ANSWER", value_parser = clap::value_parser!(u64).range(1..))]
        answer: Option<u64>,
    },
}
