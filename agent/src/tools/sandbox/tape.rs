//! What a command prints, as much of it as is kept: the beginning and the end, however much it is.

use std::{collections::VecDeque, fmt::Write as _};

use crate::tools::bounds::OUTPUT_CHARS_MAX;

/// How much is kept at each end, in bytes: what is shown, if every character were the longest.
const END_BYTES_MAX: usize = OUTPUT_CHARS_MAX * 4;

/// Takes it all and keeps both ends.
#[derive(Debug, Default)]
pub(super) struct Tape {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    bytes: u64,
}

impl Tape {
    /// More of it.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        self.bytes += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let (head, rest) = bytes.split_at(bytes.len().min(END_BYTES_MAX - self.head.len()));
        self.head.extend(head);
        let rest = rest.get(rest.len().saturating_sub(END_BYTES_MAX)..).unwrap_or_default();
        self.tail.drain(..(self.tail.len() + rest.len()).saturating_sub(END_BYTES_MAX).min(self.tail.len()));
        self.tail.extend(rest);
    }

    /// How much there was.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// All that is kept, as text. What is no text is said to be none.
    pub(super) fn text(&self) -> String {
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        let kept = u64::try_from(self.head.len() + tail.len()).unwrap_or(u64::MAX);
        let left_out = self.bytes.saturating_sub(kept);
        let (mut text, strange) = if left_out == 0 {
            lossy(&[self.head.as_slice(), &tail].concat())
        } else {
            // both cuts may have gone through a character
            let ((head, in_head), (tail, in_tail)) =
                (lossy(whole_end(&self.head)), lossy(whole_begin(&tail)));
            (format!("{head}\n[… {left_out} bytes are left out here …]\n{tail}"), in_head + in_tail)
        };
        if strange > 0 {
            let _ = write!(text, "\n[{strange} pieces of this are no UTF-8 and stand as \u{fffd}]");
        }
        text
    }

    /// The end of it, for somebody who watches.
    pub(super) fn last(&self, bytes: usize) -> String {
        let from = if self.tail.is_empty() { self.head.clone() } else { self.tail.iter().copied().collect() };
        let last = from.get(from.len().saturating_sub(bytes)..).unwrap_or_default();
        lossy(whole_begin(last)).0
    }
}

fn lossy(bytes: &[u8]) -> (String, usize) {
    let mut text = String::with_capacity(bytes.len());
    let mut strange = 0;
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
            strange += 1;
        }
    }
    (text, strange)
}

/// Without the rest of a character at the beginning.
fn whole_begin(bytes: &[u8]) -> &[u8] {
    let rest = bytes.iter().take(3).take_while(|byte| (0x80..0xc0).contains(*byte)).count();
    bytes.get(rest..).unwrap_or_default()
}

/// Without the beginning of a character at the end.
fn whole_end(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => bytes.get(..error.valid_up_to()).unwrap_or_default(),
        Ok(_) | Err(_) => {
            // what is strange earlier on hides the end from that check; the last three bytes tell
            let open = (1..=3).find(|back| {
                bytes.len().checked_sub(*back).and_then(|at| bytes.get(at)).is_some_and(|byte| match byte {
                    0xc2..0xe0 => *back < 2,
                    0xe0..0xf0 => *back < 3,
                    0xf0..0xf5 => *back < 4,
                    _ => false,
                })
            });
            bytes.get(..bytes.len() - open.unwrap_or(0)).unwrap_or_default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn taped(pieces: &[&[u8]]) -> Tape {
        let mut tape = Tape::default();
        for piece in pieces {
            tape.take(piece);
        }
        tape
    }

    #[test]
    fn a_command_that_prints_for_ever_costs_no_more_than_both_ends() {
        let mut tape = taped(&["开始".as_bytes()]);
        for _ in 0..2000 {
            tape.take("一行\n".repeat(100).as_bytes());
        }
        tape.take("结束".as_bytes());
        assert!(tape.head.len() + tape.tail.len() <= 2 * END_BYTES_MAX);
        let text = tape.text();
        assert!(
            text.starts_with("开始一行") && text.ends_with("结束") && text.contains("bytes are left out")
        );
        assert!(!text.contains('\u{fffd}'), "no character is cut");
        assert!(tape.last(7).ends_with("结束"));
    }

    #[test]
    fn what_is_no_text_is_said() {
        assert_eq!(taped(&[b"a\0b"]).text(), "a\0b");
        let text = taped(&[b"\xff\xfe", "好".as_bytes()]).text();
        assert!(text.starts_with("\u{fffd}") && text.contains('好') && text.contains("no UTF-8"), "{text}");
        assert_eq!(taped(&[b"", "你".as_bytes().split_at(1).0, "你".as_bytes().split_at(1).1]).text(), "你");
    }

    proptest! {
        #[test]
        fn however_it_comes_it_is_the_same(bytes in prop::collection::vec(any::<u8>(), 0..300_000), piece in 1_usize..50_000) {
            let (whole, pieces) = (taped(&[&bytes]), taped(&bytes.chunks(piece).collect::<Vec<_>>()));
            prop_assert_eq!(whole.text(), pieces.text());
            prop_assert_eq!(pieces.bytes(), bytes.len() as u64);
        }
    }
}
