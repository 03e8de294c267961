//! Conversations on disk: append-only files of one JSON object a line, readable after a kill at any byte.
//!
//! ```text
//!  {"type":"session", id, version, startedAt, cwd, model, …}      the first line
//!  {"type":"message", ts, message, request?}                      what was said, in the shape of the original
//!  {"type":"message", ts, message, from:"runtime"}                ours: what neither a person nor a model said
//!  {"type":"objection", ts, request, objection}                   ours: she objected in the turn of this request
//!  {"type":"surfaced", ts, request, surfaced}                     ours: a person was told of an objection
//!  {"type":"approval", ts, request, call, stand}                 ours: a call waits for a person's word, got it, or did not
//!  {"type":"prompt", ts, fingerprint, text, reason}               the system prompt, whenever it changed
//!  {"type":"reflecting", …}  {"type":"reflection", ts, summary, …}  ours and the original's: `reflection` says more
//!  {"type":"model_change", ts, model}                             another model answered
//!  {"type":"compaction", …}                                       ours: from here on it is sent shortened (`compaction`)
//!  {"type":"turn_end", ts, request, stop_reason, error?, usage?}  ours: the turn of this request is over
//! ```
//!
//! A line that is no JSON (a torn one) and a line of a type unknown here are passed over; an appended line never
//! continues a torn one.

mod archive;
mod aside;
mod catalog;
mod compaction;
mod file;
mod reflection;
mod replay;
mod search;
mod transcript;
mod writer;

pub(crate) use catalog::{Catalog, Listed};
#[cfg(test)]
pub(crate) use compaction::shown;
pub(crate) use compaction::{By, Compaction, as_sent};
pub(crate) use file::{Header, Kind, SessionError};
pub(crate) use reflection::{Begun, Record};
pub(crate) use search::SearchError;
pub(crate) use transcript::{Transcript, TurnState};
