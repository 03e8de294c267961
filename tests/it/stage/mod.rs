//! What the tests are played on: a world (home, binaries, supervisor), a client of the chat socket, a model server,
//! and servers that others made.

mod acp;
mod dialect;
mod disk;
mod manager;
pub(crate) mod mcp;
mod model;
mod peer;
mod prompter;
mod rack;
mod world;

pub(crate) use acp::{Chat, Reply, does};
pub(crate) use dialect::Dialect;
pub(crate) use disk::{Mount, Scratch, say};
pub(crate) use manager::{Manager, installed};
pub(crate) use model::{Answer, Model, birth_words, calls_what_it_is_told, puppet};
pub(crate) use peer::{Peer, answer_of, peer};
pub(crate) use prompter::{Prompt, Prompter};
pub(crate) use rack::{PATIENCE, Rack, call, run, said};
pub(crate) use world::{World, end, eventually, hang_up, interrupt, kill_outright, pause, resume, secs};
