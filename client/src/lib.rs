//! The command people type: it starts and stops the supervisor, and says to it on the chat socket what a person says here.
//!
//! ```text
//!  arguments   what may be typed                      (clap)
//!  up · down   starting and stopping                  (the only place that makes a process of ours)
//!  link        one connection to the chat socket      (JSON-RPC, deadlines, peer checked)
//!  chat        a conversation: attach, turn, transcript
//!  status · events · soul · heartbeat                 one question each, and how its answer looks
//!  model       which one thinks, trying it, choosing it
//!  sessions    the conversations: list, search, page, replay
//!  deeds       why, roll-back and check: what a person does to the self
//!  edit        a document in a person's words        (the only place that runs a person's program)
//!  objections · wishlist · rate                       what she says no to, wishes for, and how she is liked
//!  settled     candidates, dreams, notes               (what she keeps of her days)
//!  service     what a process manager reads           (one file, and no manager called)
//!  output      data to stdout, words about it to stderr
//! ```
//!
//! Data goes to stdout and words about it to stderr, nothing needs a terminal, and no colour is used. Rendering is in
//! pure functions beside each command; the clock and the time zone are read in this file and passed on. The client owns
//! nothing on disk but the log of a start that it detaches from, the file an editor is opened on, and the definition of a service.

mod arguments;
mod chat;
mod deeds;
mod down;
mod edit;
mod events;
mod heartbeat;
mod link;
mod model;
mod news;
mod objections;
mod output;
mod portrait;
mod rate;
mod service;
mod sessions;
mod settled;
mod since;
mod soul;
mod status;
mod up;
mod wishlist;

use std::{ffi::OsString, process::ExitCode};

use clap::Parser as _;
use ipc::{
    exit::{Exit, Fault},
    home::Home,
};
use jiff::{ZonedDateTime, tz::TimeZone};

use crate::arguments::{Arguments, Command};

/// Does what the arguments say, the program's name first, and returns how the process should end.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            // help that nobody reads to its end is no failure
            let _ = error.print();
            return arguments::exit(&error).into();
        }
    };
    match obey(arguments) {
        Ok(()) => Exit::Asked.into(),
        Err(fault) => {
            if fault.exit != Exit::Asked {
                output::aside(&format!("lisa: {fault}"));
            }
            fault.exit.into()
        }
    }
}

fn obey(Arguments { home, json, command }: Arguments) -> Result<(), Fault> {
    let home = Home::from_environment(home).map_err(Fault::configuration)?;
    if let Command::Up(up) = &command
        && up.in_foreground()
    {
        return Err(up::become_the_supervisor(&home, up.ready_fd));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("the system gives a process its event queue");
    runtime.block_on(answer(&home, json, command))
}

async fn answer(home: &Home, json: bool, command: Command) -> Result<(), Fault> {
    match command {
        Command::Up(asked) => up::detached(home, json, &asked).await,
        Command::Down(asked) => down::down(home, json, &asked).await,
        Command::Chat(asked) => chat::chat(home, json, asked).await,
        Command::Status => status::status(home, json).await,
        Command::Events(asked) => events::events(home, json, &asked, &TimeZone::system()).await,
        Command::Soul(asked) => soul::soul(home, json, asked.command, &now()).await,
        Command::Sessions(asked) => sessions::sessions(home, json, asked.command, &TimeZone::system()).await,
        Command::Heartbeat(asked) => heartbeat::heartbeat(home, json, asked.command).await,
        Command::Objections(asked) => objections::objections(home, json, &asked, &TimeZone::system()).await,
        Command::Wishlist => wishlist::wishlist(home, json).await,
        Command::Candidates => settled::candidates(home, json).await,
        Command::Dream(asked) => settled::dream(home, json, &asked).await,
        Command::Memory(asked) => settled::memory(home, json, &asked, &TimeZone::system()).await,
        Command::Model(asked) => model::model(home, json, asked.command).await,
        Command::Service(asked) => service::service(home, json, asked.command),
        Command::Rate(asked) => rate::rate(home, json, asked).await,
    }
}

#[expect(clippy::disallowed_methods, reason = "the edge of this program: everything else is handed the time")]
fn now() -> ZonedDateTime {
    jiff::Timestamp::now().to_zoned_datetime(TimeZone::system())
}
