//! Server-sent events, read from bytes however they are cut; or lines of JSON, each an event of its own.
//!
//! ```text
//!  bytes ──▶ lines (LF, CR or CRLF; a leading BOM is dropped) ──▶ events (fields up to a blank line) ──▶ those with data
//! ```
//!
//! What servers really send decides here, not the standard alone: comments and keep-alives in a data field give no event
//! (row C7.14), bytes that are not UTF-8 harm their own event only, and the last event may lack its blank line.

/// One event that carries data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    /// What kind it says it is; empty where it says nothing.
    pub name: String,
    /// Its data, lines joined by a line feed; never empty.
    pub data: String,
    /// Whether the blank line that ends an event came. Without it the stream ended in the middle, maybe of the data.
    pub ended: bool,
}

/// How a stream is cut into events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// Server-sent events.
    Events,
    /// One JSON value a line.
    Lines,
}

impl Framing {
    /// What the stream says it is.
    pub(super) const fn content_type(self) -> &'static str {
        match self {
            Self::Events => "text/event-stream",
            Self::Lines => "application/x-ndjson",
        }
    }
}

/// The state between two pieces of a stream.
#[derive(Debug)]
pub(super) struct Parser {
    framing: Framing,
    line: Vec<u8>,
    name: Vec<u8>,
    data: Vec<u8>,
    data_lines: usize,
    first_line: bool,
    after_cr: bool,
    event_bytes_max: usize,
    overflowed: bool,
}

const BOM: &[u8] = b"\xef\xbb\xbf";

impl Parser {
    /// A parser at the beginning of a stream that bears events of up to `event_bytes_max` bytes.
    pub(super) fn new(framing: Framing, event_bytes_max: usize) -> Self {
        Self {
            framing,
            line: Vec::new(),
            name: Vec::new(),
            data: Vec::new(),
            data_lines: 0,
            first_line: true,
            after_cr: false,
            event_bytes_max,
            overflowed: false,
        }
    }

    /// Takes the next piece and returns the events that end in it. Pieces may be cut anywhere.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        for &byte in bytes {
            if self.overflowed {
                break;
            }
            let after_cr = std::mem::replace(&mut self.after_cr, byte == b'\r');
            match byte {
                // The second half of a CRLF.
                b'\n' if after_cr => {}
                b'\n' | b'\r' => events.extend(self.end_line()),
                other => {
                    self.line.push(other);
                    self.overflowed =
                        self.line.len() + self.data.len() + self.name.len() > self.event_bytes_max;
                }
            }
        }
        events
    }

    /// Whether an event was larger than is borne. From there on nothing is read.
    pub(super) fn overflowed(&self) -> bool {
        self.overflowed
    }

    /// What stood at the end of the stream without the blank line that ends an event.
    pub(super) fn finish(mut self) -> Option<Event> {
        if self.overflowed {
            return None;
        }
        if !self.line.is_empty()
            && let Some(event) = self.end_line()
        {
            // A line that the end of the stream ended may be cut; an event that a blank line ended is not.
            return Some(Event { ended: self.framing == Framing::Events, ..event });
        }
        self.dispatch(false)
    }

    fn end_line(&mut self) -> Option<Event> {
        let line = std::mem::take(&mut self.line);
        let mut line = line.as_slice();
        if std::mem::replace(&mut self.first_line, false) {
            line = line.strip_prefix(BOM).unwrap_or(line);
        }
        if self.framing == Framing::Lines {
            self.data = line.to_vec();
            return self.dispatch(true);
        }
        if line.is_empty() {
            return self.dispatch(true);
        }
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            // A comment.
            Some(0) => return None,
            Some(colon) => {
                let (field, value) = line.split_at(colon);
                let value = value.get(1..).unwrap_or_default();
                (field, value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (line, &[][..]),
        };
        match field {
            b"data" => {
                if self.data_lines > 0 {
                    self.data.push(b'\n');
                }
                self.data_lines += 1;
                self.data.extend_from_slice(value);
            }
            b"event" => self.name = value.to_vec(),
            // `id` and `retry` serve reconnecting, which a model's answer cannot.
            _ => {}
        }
        None
    }

    fn dispatch(&mut self, ended: bool) -> Option<Event> {
        let data = std::mem::take(&mut self.data);
        let name = std::mem::take(&mut self.name);
        self.data_lines = 0;
        let blank = data.iter().all(u8::is_ascii_whitespace);
        // Some gateways send their keep-alive comment inside of a data field.
        if blank || data.starts_with(b":") {
            return None;
        }
        Some(Event {
            name: String::from_utf8_lossy(&name).into_owned(),
            data: String::from_utf8_lossy(&data).into_owned(),
            ended,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(pieces: &[&[u8]]) -> Vec<Event> {
        let mut parser = Parser::new(Framing::Events, 1 << 20);
        let mut events: Vec<Event> = pieces.iter().flat_map(|piece| parser.push(piece)).collect();
        events.extend(parser.finish());
        events
    }

    fn data(stream: &[u8]) -> Vec<String> {
        parse(&[stream]).into_iter().map(|event| event.data).collect()
    }

    const DIFFICULT: &str = "\u{feff}: hello\r\nevent: a\r\ndata: 你好🌍\r\n\r\n: ping\n\ndata:no blank\ndata: two\n\nid: 7\rdata: cr\r\rdata: : keepalive\n\ndata\n\ndata:\n\nevent: only a name\n\ndata: {\"x\":\"é\"}\n\ndata: [DONE]";

    #[test]
    fn a_difficult_stream() {
        let events = parse(&[DIFFICULT.as_bytes()]);
        let expected = [
            ("a", "你好🌍", true),
            ("", "no blank\ntwo", true),
            ("", "cr", true),
            ("", "{\"x\":\"é\"}", true),
            ("", "[DONE]", false),
        ];
        let event =
            |(name, data, ended): (&str, &str, bool)| Event { name: name.into(), data: data.into(), ended };
        assert_eq!(events, expected.map(event));
    }

    #[test]
    fn c7_12_c7_13_every_cut_gives_the_same_events() {
        let bytes = DIFFICULT.as_bytes();
        let whole = parse(&[bytes]);
        for at in 0..=bytes.len() {
            let (left, right) = bytes.split_at(at);
            assert_eq!(parse(&[left, right]), whole, "cut at {at}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(parse(&single), whole);
    }

    #[test]
    fn c7_14_comments_and_keepalives_give_no_event() {
        assert_eq!(
            data(b": ping\n\n:\n\ndata: : keepalive\n\ndata::ping\n\ndata: \n\n"),
            Vec::<String>::new()
        );
    }

    #[test]
    fn bytes_that_are_not_utf8_harm_their_own_event_only() {
        assert_eq!(data(b"data: a\xff\xfeb\n\ndata: \xe4\xbd\xa0\n\n"), ["a\u{fffd}\u{fffd}b", "你"]);
    }

    #[test]
    fn lines_of_json_are_events_of_their_own_however_they_are_cut() {
        let bytes = "\u{feff}{\"a\":\"你好\"}\r\n\n{\"b\":1}\n{\"cut\"".as_bytes();
        for size in 1..bytes.len() {
            let mut parser = Parser::new(Framing::Lines, 1 << 20);
            let mut events: Vec<Event> = bytes.chunks(size).flat_map(|piece| parser.push(piece)).collect();
            events.extend(parser.finish());
            let seen: Vec<_> = events.iter().map(|event| (event.data.as_str(), event.ended)).collect();
            assert_eq!(
                seen,
                [("{\"a\":\"你好\"}", true), ("{\"b\":1}", true), ("{\"cut\"", false)],
                "{size}"
            );
        }
    }

    #[test]
    fn an_event_has_a_bound() {
        let mut parser = Parser::new(Framing::Events, 16);
        assert_eq!(parser.push(b"data: 0123456789").len(), 0);
        assert!(!parser.overflowed());
        assert_eq!(parser.push(b"0123\n\ndata: x\n\n"), []);
        assert!(parser.overflowed());
        assert_eq!(parser.finish(), None);

        let mut parser = Parser::new(Framing::Events, 16);
        for _ in 0..100 {
            assert_eq!(parser.push(b"data: 0123456\n\n").len(), 1);
        }
        let many_lines = b"data: 012345\n".repeat(4);
        parser.push(&many_lines);
        assert!(parser.overflowed());
    }

    proptest! {
        #[test]
        fn any_bytes_in_any_pieces_give_the_same_events(
            bytes in prop::collection::vec(prop_oneof![
                Just(b"data: ".to_vec()), Just(b"\n".to_vec()), Just(b"\r".to_vec()), Just(b"\n\n".to_vec()),
                Just(b": c\n".to_vec()), Just(BOM.to_vec()), Just("好🌍".as_bytes().to_vec()),
                prop::collection::vec(any::<u8>(), 0..8),
            ], 0..40),
            cuts in prop::collection::vec(1_usize..9, 1..60),
        ) {
            let bytes = bytes.concat();
            let mut pieces = Vec::new();
            let mut rest = bytes.as_slice();
            let mut cuts = cuts.iter().cycle();
            while !rest.is_empty() {
                let (piece, next) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
                pieces.push(piece);
                rest = next;
            }
            prop_assert_eq!(parse(&pieces), parse(&[&bytes]));
        }
    }
}
