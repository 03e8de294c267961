//! Frames: one JSON object a line, ended by LF, at most [`FRAME_BYTES_MAX`] bytes, in UTF-8.
//!
//! A line that is not a message is handed on as [`Incoming::Malformed`]: the next line starts where it should, so the
//! peer can be told and the connection lives. A line that is too long, or that ends with the stream instead of with
//! LF, ends the connection: nobody can say where the next one starts.

use bytes::{Buf, BufMut, BytesMut};
use tokio_util::codec::{Decoder, Encoder};

use super::{Id, Message};

/// The longest line, its LF included. Sized for the largest thing we send, a whole snapshot or a long document, with room.
pub const FRAME_BYTES_MAX: usize = 8 * 1024 * 1024;

/// What one line held.
#[derive(Debug, Clone, PartialEq)]
pub enum Incoming {
    /// A message.
    Message(Message),
    /// No message: which id it seemed to carry, whether it was JSON at all, and what is wrong with it.
    Malformed {
        /// The id, where one could be read.
        id: Id,
        /// Whether the line was JSON.
        json: bool,
        /// What is wrong.
        why: String,
    },
}

/// Why a connection cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The line grew past the limit.
    #[error("a line is longer than {FRAME_BYTES_MAX} bytes; send less in one message")]
    TooLong,
    /// The peer went away in the middle of a line.
    #[error("the stream ended inside a line of {bytes} bytes, so the message is not whole")]
    EndInLine {
        /// How much of the line had come.
        bytes: usize,
    },
    /// The stream failed.
    #[error("the stream failed")]
    Io(#[from] std::io::Error),
}

/// Splits a stream into messages and writes messages as lines.
#[derive(Debug, Default)]
pub struct FrameCodec {
    /// How far the buffer has been searched for LF, so that a long line is searched once.
    searched: usize,
}

impl Decoder for FrameCodec {
    type Item = Incoming;
    type Error = FrameError;

    fn decode(&mut self, buffer: &mut BytesMut) -> Result<Option<Incoming>, FrameError> {
        loop {
            let Some(offset) = buffer.iter().skip(self.searched).position(|byte| *byte == b'\n') else {
                self.searched = buffer.len();
                return if buffer.len() >= FRAME_BYTES_MAX { Err(FrameError::TooLong) } else { Ok(None) };
            };
            let end = self.searched + offset;
            self.searched = 0;
            if end >= FRAME_BYTES_MAX {
                return Err(FrameError::TooLong);
            }
            let line = buffer.split_to(end);
            buffer.advance(1);
            if !line.iter().all(u8::is_ascii_whitespace) {
                return Ok(Some(read(&line)));
            }
        }
    }

    fn decode_eof(&mut self, buffer: &mut BytesMut) -> Result<Option<Incoming>, FrameError> {
        match self.decode(buffer)? {
            Some(incoming) => Ok(Some(incoming)),
            None if buffer.iter().all(u8::is_ascii_whitespace) => Ok(None),
            None => Err(FrameError::EndInLine { bytes: buffer.len() }),
        }
    }
}

impl Encoder<&Message> for FrameCodec {
    type Error = FrameError;

    fn encode(&mut self, message: &Message, buffer: &mut BytesMut) -> Result<(), FrameError> {
        let start = buffer.len();
        serde_json::to_writer(buffer.writer(), message).map_err(std::io::Error::from)?;
        if buffer.len() - start >= FRAME_BYTES_MAX {
            buffer.truncate(start);
            return Err(FrameError::TooLong);
        }
        buffer.put_u8(b'\n');
        Ok(())
    }
}

fn read(line: &[u8]) -> Incoming {
    let malformed = |id, json, why: String| Incoming::Malformed { id, json, why };
    let text = match std::str::from_utf8(line) {
        Ok(text) => text,
        Err(error) => return malformed(Id::Null, false, format!("the line is not UTF-8: {error}")),
    };
    match serde_json::from_str::<Message>(text) {
        Ok(message) => Incoming::Message(message),
        Err(error) => match serde_json::from_str::<serde_json::Value>(text) {
            Ok(value) => {
                let id = value.get("id").cloned().and_then(|id| serde_json::from_value(id).ok());
                malformed(id.unwrap_or(Id::Null), true, format!("no JSON-RPC 2.0 message: {error}"))
            }
            Err(error) => malformed(Id::Null, false, format!("the line is not JSON: {error}")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn sample() -> Vec<Message> {
        vec![
            Message::request(Id::Number(1), "session/prompt", json!({"text": "灯塔 👩‍👩‍👧 \u{2028} \n x"})),
            Message::notification("changed", json!({"sequence": 3})),
            Message::response(Id::Text("r".into()), Ok(json!(null))),
        ]
    }

    fn bytes_of(messages: &[Message]) -> Vec<u8> {
        let mut buffer = BytesMut::new();
        for message in messages {
            FrameCodec::default().encode(message, &mut buffer).unwrap();
        }
        buffer.to_vec()
    }

    fn decode_in_chunks(bytes: &[u8], cuts: &[usize]) -> Result<Vec<Incoming>, FrameError> {
        let mut codec = FrameCodec::default();
        let (mut buffer, mut seen, mut at) = (BytesMut::new(), Vec::new(), 0);
        for cut in cuts.iter().copied().chain([bytes.len()]) {
            buffer.extend_from_slice(&bytes[at..cut.max(at)]);
            at = cut.max(at);
            while let Some(incoming) = codec.decode(&mut buffer)? {
                seen.push(incoming);
            }
        }
        while let Some(incoming) = codec.decode_eof(&mut buffer)? {
            seen.push(incoming);
        }
        Ok(seen)
    }

    #[test]
    fn b21_every_split_of_the_stream_gives_the_same_messages() {
        let bytes = bytes_of(&sample());
        let expected: Vec<_> = sample().into_iter().map(Incoming::Message).collect();
        for cut in 0..bytes.len() {
            assert_eq!(decode_in_chunks(&bytes, &[cut]).unwrap(), expected, "cut at {cut}");
        }
        let every: Vec<_> = (0..bytes.len()).collect();
        assert_eq!(decode_in_chunks(&bytes, &every).unwrap(), expected);
    }

    #[test]
    fn a_bad_line_is_named_and_the_next_one_is_read() {
        let lines = b"{\"jsonrpc\":\"2.0\",\"id\":7}\nnonsense\n\xff\xfe\n\n\r\n{\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n";
        let seen = decode_in_chunks(lines, &[]).unwrap();
        assert_eq!(seen.len(), 4, "{seen:?}");
        assert!(matches!(&seen[0], Incoming::Malformed { id: Id::Number(7), json: true, .. }), "{seen:?}");
        assert!(matches!(&seen[1], Incoming::Malformed { json: false, .. }));
        assert!(matches!(&seen[2], Incoming::Malformed { why, .. } if why.contains("UTF-8")));
        assert_eq!(seen[3], Incoming::Message(Message::notification("x", json!(null))));
    }

    #[test]
    fn the_end_inside_a_line_is_an_error() {
        let bytes = bytes_of(&sample()[..1]);
        let cut = &bytes[..bytes.len() - 1];
        assert!(matches!(decode_in_chunks(cut, &[]), Err(FrameError::EndInLine { .. })));
        assert!(decode_in_chunks(b"", &[]).unwrap().is_empty());
    }

    #[test]
    fn a_line_without_end_is_refused_at_the_limit_and_not_kept() {
        let mut codec = FrameCodec::default();
        let mut buffer = BytesMut::from(&vec![b'x'; FRAME_BYTES_MAX][..]);
        assert!(matches!(codec.decode(&mut buffer), Err(FrameError::TooLong)));
        let big = Message::notification("x", json!("y".repeat(FRAME_BYTES_MAX)));
        let mut out = BytesMut::new();
        assert!(matches!(codec.encode(&big, &mut out), Err(FrameError::TooLong)));
        assert!(out.is_empty(), "nothing of a refused message is sent");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = decode_in_chunks(&bytes, &[]);
        }

        #[test]
        fn any_text_comes_back_as_it_was(text in any::<String>(), method in "[a-z/_]{1,20}") {
            let message = Message::request(Id::Text(text.clone()), method, json!({"text": text}));
            let seen = decode_in_chunks(&bytes_of(std::slice::from_ref(&message)), &[]).unwrap();
            prop_assert_eq!(seen, vec![Incoming::Message(message)]);
        }
    }
}
