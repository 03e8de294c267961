//! What the tests are played on: a world (home, binaries, supervisor), a client of the chat socket, a model server.

mod acp;
mod model;
mod world;

pub(crate) use acp::{Chat, Reply};
pub(crate) use model::{Answer, Model, birth_words};
pub(crate) use world::{World, end, eventually, pause, resume, secs};
