//! The words Lisa's processes say to each other, the wire they travel on, and the endpoints they meet at.
//!
//! ```text
//!  contract   what may be asked of each process, and how it answers        (words)
//!  wire       JSON-RPC 2.0, one object a line, bounded                     (wire)
//!  hello      who is speaking, which version, with which secret            (handshake)
//!  endpoint   local sockets: claimed by a lock, private to one user        (where)
//!  server     bounded queues, bounded requests in flight                   (how to answer)
//!  client     reconnects by itself, asks again with the same request id    (how to ask)
//!  child      the brief a child is born with, the lifeline, the report     (the door of a process)
//!  lines      files of one object a line
//!  home       where things lie on disk · config  what a person may set
//! ```
//!
//! This crate knows no actor and takes no decision of any process; it promises that what was said arrives whole,
//! once or not at all, or that the asker is told.

pub mod child;
pub mod client;
pub mod config;
pub mod confine;
pub mod contract;
pub mod digest;
pub mod endpoint;
pub mod exit;
pub mod hello;
pub mod home;
pub mod id;
pub mod lines;
pub mod log;
pub mod person;
pub mod reveal;
pub mod server;
mod standing;
pub mod text;
pub mod wire;

/// The Agent Client Protocol's own message types, version 1: what clients and editors speak on the chat socket.
pub use agent_client_protocol_schema::v1 as acp;

/// Which build this is: the crate's version, and the commit it was built from where the build was told (`LISA_BUILD_ID`).
pub const BUILD: &str = match option_env!("LISA_BUILD_ID") {
    Some(id) => id,
    None => env!("CARGO_PKG_VERSION"),
};

/// The version of that protocol.
pub const ACP_VERSION: agent_client_protocol_schema::ProtocolVersion =
    agent_client_protocol_schema::ProtocolVersion::V1;
