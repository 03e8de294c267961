//! The wire: JSON-RPC 2.0, one JSON object a line, the same on every socket and on standard input and output.

mod frame;
mod message;

pub use frame::{FRAME_BYTES_MAX, FrameCodec, FrameError, Incoming};
pub use message::{Id, Message, Notification, Request, Response, RpcError, code};
