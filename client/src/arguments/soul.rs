//! What may be typed behind `lisa soul`.

use clap::{Args, Subcommand};

use crate::since::Since;

/// What of the self.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  lisa soul                             one screen
  lisa soul show identity
  lisa soul history --limit 5
  lisa soul diff identity --since 7d
  lisa soul why identity 3
  lisa soul rollback identity 0123456789
  lisa soul check")]
pub(crate) struct Soul {
    #[command(subcommand)]
    pub(crate) command: Option<SoulCommand>,
}

/// Questions about the self; without one, one screen of it.
#[derive(Debug, Subcommand)]
pub(crate) enum SoulCommand {
    /// One document as it stands
    #[command(after_long_help = "\
Examples:
  lisa soul show identity
  lisa soul show desires/learn-rust")]
    Show {
        /// Its name or path: `identity`, `desires/learn-rust`, `journal/2026-11-30`, `notes/2026-11-30`
        #[arg(value_name = "DOC")]
        document: String,
    },
    /// Write one document in your own words, in your editor or from stdin
    #[command(long_about = "\
Write one document in your own words: in the editor of VISUAL or EDITOR, or from stdin where that is no terminal.

It is refused where the document has changed since it was read; what you wrote is then kept in a file that is named.")]
    #[command(after_long_help = "\
Examples:
  lisa soul edit rules
  lisa soul edit user --why 'moved to Lisbon' < user.md")]
    Edit {
        /// Its name or path: `rules`, `user`, `relationships/ada`
        #[arg(value_name = "DOC")]
        document: String,
        /// Why, for the history
        #[arg(long, value_name = "TEXT", default_value = "")]
        why: String,
    },
    /// What changed, newest first: commit, time, what was done, by whom and why
    #[command(after_long_help = "\
Examples:
  lisa soul history
  lisa soul history identity --since 2026-11-01 --json")]
    History {
        /// Of one document; of everything without
        #[arg(value_name = "DOC")]
        document: Option<String>,
        /// At most so many
        #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
        /// Nothing older: `7d`, `2w`, `2026-11-30`
        #[arg(long, value_name = "WHEN")]
        since: Option<Since>,
    },
    /// How one document changed, newest first
    #[command(after_long_help = "\
Examples:
  lisa soul diff identity
  lisa soul diff values/honesty --since 2w")]
    Diff {
        /// The document
        #[arg(value_name = "DOC")]
        document: String,
        /// Nothing older: `7d`, `2w`, `2026-11-30`
        #[arg(long, value_name = "WHEN")]
        since: Option<Since>,
    },
    /// Where a line comes from: commit, time, by whom, from where and why
    #[command(after_long_help = "\
Examples:
  lisa soul why identity 3
  lisa soul why desires/learn-rust 11 --json")]
    Why {
        /// The document
        #[arg(value_name = "DOC")]
        document: String,
        /// Which line, counted from 1
        #[arg(value_name = "LINE", value_parser = clap::value_parser!(u32).range(1..))]
        line: u32,
    },
    /// Bring something back as it was; it says what it changes and asks
    #[command(long_about = "\
Bring something back as it was: one document, everything one commit changed, or everything shown as of a time.

Nothing is erased: it is a new commit that says what it undoes. It names what it changes and asks first, unless --yes is \
given.")]
    Rollback(Rollback),
    /// Whether everything is as it should be
    #[command(long_about = "\
Whether everything is as it should be: repository, files, seals, history. It also works while no supervisor is running.

With --repair it mends what can be mended safely; whatever it mends is kept first.")]
    #[command(after_long_help = "\
Examples:
  lisa soul check
  lisa soul check --repair
  lisa soul check --json | jq '.findings[] | select(.mended | not)'")]
    Check {
        /// Mend what can be mended
        #[arg(long)]
        repair: bool,
    },
}

/// What to bring back.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  lisa soul rollback identity 0123456789       as it was at that commit
  lisa soul rollback identity --to 7d          as it was a week ago
  lisa soul rollback --commit 0123456789       undo what that commit changed
  lisa soul rollback --to 2026-11-30 --yes     everything shown, without asking")]
pub(crate) struct Rollback {
    /// One document; needs COMMIT or --to
    #[arg(value_name = "DOC")]
    pub(crate) document: Option<String>,
    /// The commit to bring it back from, by at least four digits
    #[arg(value_name = "COMMIT", conflicts_with_all = ["commit", "to"])]
    pub(crate) of: Option<String>,
    /// Undo what this commit changed
    #[arg(long, value_name = "COMMIT", conflicts_with_all = ["document", "to"])]
    pub(crate) commit: Option<String>,
    /// As of then: `7d`, `2w`, `2026-11-30`
    #[arg(long, value_name = "WHEN")]
    pub(crate) to: Option<Since>,
    /// Why, for the history
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) why: String,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
}
