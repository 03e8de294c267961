//! What may be typed: the commands, their options, their help, and the exit code of what makes no sense.

use std::{path::PathBuf, time::Duration};

use clap::{Args, ColorChoice, Parser, Subcommand, ValueEnum, error::ErrorKind};
use ipc::{contract::chat::Cursor, exit::Exit};

mod model;
mod sessions;
mod soul;

pub(crate) use self::{
    model::{Model, ModelCommand},
    sessions::{Sessions, SessionsCommand},
    soul::{Rollback, Soul, SoulCommand},
};
use crate::{service::Service, since::duration};

/// A self that a language model keeps: start her, talk to her, look at who she is.
#[derive(Debug, Parser)]
#[command(name = "lisa", version = ipc::BUILD, color = ColorChoice::Never, max_term_width = 100)]
#[command(after_long_help = "\
Examples:
  lisa up --chat                        start her where none is running, and talk
  lisa chat 'who are you?'              one turn: the reply on stdout
  git diff | lisa chat                  one turn with the text on stdin
  lisa soul history --since 7d          what changed of her, and why
  lisa status --json                    for scripts

Exit codes:
  0 done · 1 it did not work · 64 usage · 69 no supervisor is running · 78 the configuration is wrong")]
pub(crate) struct Arguments {
    /// The home to use; without it LISA_HOME, then `~/.lisa`
    #[arg(long, global = true, value_name = "DIR", display_order = 900)]
    pub(crate) home: Option<PathBuf>,
    /// Answer in JSON: one document, or one object a line for streams
    #[arg(long, global = true, display_order = 901)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start the supervisor; the first start gives birth
    #[command(long_about = "\
Start the supervisor; the first start gives birth.

Without options it stays in the foreground and becomes the supervisor itself, which is the form for a process manager. \
It stops in order on SIGTERM and Ctrl-C, and without a terminal SIGHUP has it read the configuration again.")]
    Up(Up),
    /// Stop the supervisor, in order, losing nothing
    Down(Down),
    /// Talk to her
    #[command(long_about = "\
Talk to her, in the most recent session where none is named.

With TEXT, or with text on stdin that is no terminal, it is one turn: the reply goes to stdout, and the exit code is 0 \
when the reply is whole. On a terminal it is a conversation: /quit or Ctrl-D leaves, Ctrl-C stops a reply.")]
    Chat(Chat),
    /// Processes, builds, restarts and the self in one screen
    #[command(after_long_help = "\
Examples:
  lisa status
  lisa status --json | jq '.processes[] | {name, state, restarts}'")]
    Status,
    /// What happened: restarts, changes of the self, interrupted prompts
    Events(Events),
    /// Who she is now, and how she came to be so
    Soul(Soul),
    /// The conversations there are, what was said in them, and what a model was shown
    Sessions(Sessions),
    /// Her own time
    Heartbeat(Heartbeat),
    /// What she objected to, who told it, and how that ended
    Objections(Objections),
    /// What she wishes of her tools
    #[command(long_about = "\
What she wishes of her tools: her desire `meta-wishlist` with its progress, and what follows `[WISHLIST]` at the \
beginning of a line in her journal.")]
    #[command(after_long_help = "\
Examples:
  lisa wishlist
  lisa wishlist --json | jq '.journal[].text'")]
    Wishlist,
    /// What a dream would make of what she noticed; with --apply she dreams
    Dream(Dream),
    /// What she noticed again and again, and what is near
    #[command(after_long_help = "\
Examples:
  lisa candidates
  lisa candidates --json | jq '.qualifying[].key'")]
    Candidates,
    /// Her notes, all of them or those that have these words
    Memory(Memory),
    /// Rate her last reply, or the one that is named
    Rate(Rate),
    /// Which model thinks and why; try another, choose another
    Model(Model),
    /// Have a process manager keep her running: a systemd user unit, or a launchd agent
    Service(Service),
}

/// How to start.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  lisa up                    in the foreground, its log on stderr
  lisa up --detach           in the background; returns when she is ready, or says why not
  lisa up --chat             start her where none is running, and talk
  lisa up --chat < lines     the same, with each line as one turn")]
pub(crate) struct Up {
    /// Return when she is ready, or say why she is not; the log goes to `logs/supervisor.log` in the home
    #[arg(long)]
    pub(crate) detach: bool,
    /// Start her in the background where none is running, and talk to her
    #[arg(long)]
    pub(crate) chat: bool,
    /// Write a newline to this descriptor when she is ready, for a process manager that waits for one (s6)
    #[arg(long, value_name = "N", conflicts_with_all = ["detach", "chat"], value_parser = clap::value_parser!(i32).range(3..))]
    pub(crate) ready_fd: Option<i32>,
}

impl Up {
    /// Whether this process is to become the supervisor.
    pub(crate) fn in_foreground(&self) -> bool {
        !self.detach && !self.chat
    }
}

/// How to stop.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  lisa down
  lisa down --timeout 2m           where a turn may take long to end")]
pub(crate) struct Down {
    /// How long to wait for the end
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    pub(crate) timeout: Duration,
}

/// What to say and where.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  lisa chat                                talk
  lisa chat what did you change today      one turn
  lisa chat --new < letter.txt             one turn in a new session
  lisa chat --json hello | tail -n 1       how the turn ended")]
pub(crate) struct Chat {
    /// What to say, as one turn
    pub(crate) text: Vec<String>,
    /// The session to go on with, instead of the most recent one
    #[arg(long, value_name = "ID", conflicts_with = "new")]
    pub(crate) session: Option<String>,
    /// Begin a new session
    #[arg(long)]
    pub(crate) new: bool,
    /// What to say when she asks before she uses a tool: `ask` you, on a terminal, or yes to all of it, `auto`
    #[arg(long, value_name = "ask|auto", default_value = "ask", hide_possible_values = true)]
    pub(crate) approve: Approve,
}

/// What is said when she asks before she uses a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Approve {
    /// What the person says.
    Ask,
    /// Yes, once.
    Auto,
}

/// Which events.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  lisa events                      everything that is still kept
  lisa events -f                   and what happens from now on, until Ctrl-C
  lisa events --since 3:17 --json  for a script that remembers where it was")]
pub(crate) struct Events {
    /// Nothing up to and with this one: EPOCH:SEQ, as each line shows it
    #[arg(long, value_name = "CURSOR")]
    pub(crate) since: Option<Cursor>,
    /// Go on with what happens, until Ctrl-C
    #[arg(short, long)]
    pub(crate) follow: bool,
}

/// Which objections.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  lisa objections                  the newest
  lisa objections --open           those nobody was told of yet
  lisa objections --json | jq 'select(.refusing)'")]
pub(crate) struct Objections {
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) limit: u32,
    /// Only those nobody was told of yet
    #[arg(long)]
    pub(crate) open: bool,
}

/// Whether to dream.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  lisa dream               what would be merged now, and why
  lisa dream --apply       she dreams now, in time of her own; `lisa soul show dreams` is the record")]
pub(crate) struct Dream {
    /// Let her dream now, instead of at night (`[dreams] at` in config.toml)
    #[arg(long, alias = "now")]
    pub(crate) apply: bool,
}

/// Which notes.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  lisa memory                     the newest
  lisa memory cello on thursdays  those that have these words, the best first

Looking at a note is no need of hers: it gains the note no hit.")]
pub(crate) struct Memory {
    /// What to look for; all notes without
    pub(crate) query: Vec<String>,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) limit: u32,
}

/// What a reply was like.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  lisa rate up                     her last reply in the most recent session
  lisa rate down --message ID      the reply that `lisa chat --json` called so in its last line")]
pub(crate) struct Rate {
    /// What it was like
    #[arg(value_name = "up|meh|down", hide_possible_values = true)]
    pub(crate) mark: Mark,
    /// Which reply; her last one without
    #[arg(long, value_name = "ID", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) message: Option<String>,
}

/// What a person thinks of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mark {
    /// Good.
    Up,
    /// Neither.
    Meh,
    /// Bad.
    Down,
}

/// What of her own time.
#[derive(Debug, Args)]
pub(crate) struct Heartbeat {
    #[command(subcommand)]
    pub(crate) command: HeartbeatCommand,
}

/// What may be done with her own time.
#[derive(Debug, Subcommand)]
pub(crate) enum HeartbeatCommand {
    /// Run one task now, or whatever is due
    #[command(after_long_help = "\
Examples:
  lisa heartbeat run                    whatever is due
  lisa heartbeat run desire:learn-rust  one task, due or not")]
    Run {
        /// Which: `desire:learn-rust`; whatever is due without
        task: Option<String>,
    },
}

/// The exit code for what clap could not take: help and version that were asked for are done, the rest is usage.
pub(crate) fn exit(error: &clap::Error) -> Exit {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Exit::Asked,
        _ => Exit::Usage,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    fn parse(line: &str) -> Result<Arguments, clap::Error> {
        Arguments::try_parse_from(line.split_whitespace())
    }

    #[test]
    fn the_definition_holds_together() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn what_makes_no_sense_is_usage() {
        for line in [
            "lisa",
            "lisa frobnicate",
            "lisa up --backwards",
            "lisa up --ready-fd 2",
            "lisa up --detach --ready-fd 3",
            "lisa service",
            "lisa service install --name a/b",
            "lisa down --timeout soon",
            "lisa down --timeout -5s",
            "lisa chat --new --session s",
            "lisa events --since yesterday",
            "lisa soul show",
            "lisa soul history --limit 0",
            "lisa soul edit",
            "lisa rate",
            "lisa rate sideways",
            "lisa rate up --message=",
            "lisa objections --limit 0",
            "lisa wishlist all",
            "lisa sessions search",
            "lisa sessions show",
            "lisa sessions list --limit 0",
            "lisa sessions replay s 0",
            "lisa soul history --since yesterday",
            "lisa soul why identity",
            "lisa soul why identity 0",
            "lisa soul rollback identity abcd --to 7d",
            "lisa soul rollback identity --commit abcd",
            "lisa heartbeat",
            "lisa model use",
            "lisa model drop x",
        ] {
            assert_eq!(exit(&parse(line).unwrap_err()), Exit::Usage, "{line}");
        }
    }

    #[test]
    fn help_and_version_that_were_asked_for_are_done() {
        for line in ["lisa -h", "lisa --help", "lisa --version", "lisa soul diff --help", "lisa help chat"] {
            assert_eq!(exit(&parse(line).unwrap_err()), Exit::Asked, "{line}");
        }
    }

    #[test]
    fn a_slip_of_the_finger_is_answered_with_the_nearest() {
        let said = |line: &str| parse(line).unwrap_err().to_string();
        assert!(said("lisa statsu").contains("'status'"), "{}", said("lisa statsu"));
        assert!(said("lisa soul histroy").contains("'history'"));
        assert!(said("lisa up --detatch").contains("'--detach'"));
    }

    #[test]
    fn the_long_help_has_examples_and_the_short_one_is_short() {
        let mut command = Arguments::command();
        let (short, long) = (command.render_help().to_string(), command.render_long_help().to_string());
        assert!(long.contains("Examples:") && long.contains("69 no supervisor"), "{long}");
        let commands = command.get_subcommands().count();
        assert!(!short.contains("Examples:") && short.lines().count() < commands + 12, "{short}");
        for sub in Arguments::command().get_subcommands_mut() {
            let long = sub.render_long_help().to_string();
            assert!(long.contains("Examples:") || sub.has_subcommands(), "{long}");
        }
    }

    #[test]
    fn global_options_go_anywhere() {
        for line in ["lisa --home /h --json status", "lisa status --json --home /h"] {
            let arguments = parse(line).unwrap();
            assert!(arguments.json && arguments.home == Some("/h".into()), "{line}");
        }
    }

    #[test]
    fn what_is_typed_is_what_is_meant() {
        assert!(matches!(parse("lisa up").unwrap().command, Command::Up(up) if up.in_foreground()));
        assert!(matches!(parse("lisa up --chat").unwrap().command, Command::Up(up) if !up.in_foreground()));
        let Command::Chat(chat) = parse("lisa chat --session 身份 change 灯塔").unwrap().command else {
            panic!()
        };
        assert_eq!((chat.text.join(" ").as_str(), chat.session.as_deref()), ("change 灯塔", Some("身份")));
        let Command::Down(down) = parse("lisa down").unwrap().command else { panic!() };
        assert_eq!(down.timeout, Duration::from_secs(30));
        let Command::Events(events) = parse("lisa events -f --since 3:17").unwrap().command else { panic!() };
        assert_eq!((events.follow, events.since), (true, Some(Cursor { epoch: 3, seq: 17 })));
        assert!(matches!(
            parse("lisa sessions").unwrap().command,
            Command::Sessions(Sessions { command: None })
        ));
        let Command::Sessions(Sessions { command: Some(SessionsCommand::Search { query, limit }) }) =
            parse("lisa sessions search 灯塔 看守人").unwrap().command
        else {
            panic!()
        };
        assert_eq!((query.join(" ").as_str(), limit), ("灯塔 看守人", 10));
        assert!(matches!(parse("lisa soul").unwrap().command, Command::Soul(Soul { command: None })));
        let Command::Rate(rate) = parse("lisa rate down --message m1").unwrap().command else { panic!() };
        assert_eq!((rate.mark, rate.message.as_deref()), (Mark::Down, Some("m1")));
        assert!(matches!(parse("lisa model").unwrap().command, Command::Model(Model { command: None })));
        let Command::Model(Model { command: Some(ModelCommand::Use { name, untested }) }) =
            parse("lisa model use ollama/千问:8b --untested").unwrap().command
        else {
            panic!()
        };
        assert_eq!((name.as_str(), untested), ("ollama/千问:8b", true));
        let Command::Objections(asked) = parse("lisa objections --open").unwrap().command else { panic!() };
        assert_eq!((asked.limit, asked.open), (20, true));
        let Command::Soul(Soul { command: Some(SoulCommand::Edit { document, why }) }) =
            parse("lisa soul edit 规则 --why 因为").unwrap().command
        else {
            panic!()
        };
        assert_eq!((document.as_str(), why.as_str()), ("规则", "因为"));
    }
}
