//! The conversation: `chat.sock`, its clients, and the relay to the processes behind it.
//!
//! ```text
//!  client ──▶ door ──▶ desk ──ask, again after a death──▶ agent, soul, heartbeat
//!         ◀── queue ◀── hub ◀──── pump (updates before the answer they belong to) ◀────┘
//! ```
//!
//! A call that waits for a person's word goes the other way: agent ──▶ pump ──▶ clerk (what is decided for good) ──▶ hub
//! (`asks`: who is asked, whose answer counts) ──▶ clients.
//!
//! The supervisor understands the envelope alone: ids, sessions, who is attached, what is under way. What a method means
//! is known where it is answered. A client stays attached whatever dies behind the socket.

mod asks;
pub(crate) mod authority;
pub(crate) mod clerk;
pub(crate) mod desk;
pub(crate) mod door;
pub(crate) mod hub;
mod lifeline;
mod route;
