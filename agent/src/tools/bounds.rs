//! How much of what a tool brings a model is told: the beginning and the end, and how much is left out between.

use ipc::text::{chars, prefix};

/// The most characters of one result. More fills the window with what nobody reads to the end.
pub(super) const OUTPUT_CHARS_MAX: usize = 30_000;

/// `output`, shortened in its middle where it is too long. Errors stand at the end as often as at the beginning.
pub(super) fn bounded(output: String) -> String {
    bounded_to(output, OUTPUT_CHARS_MAX)
}

/// The same for another length.
pub(super) fn bounded_to(output: String, chars_max: usize) -> String {
    let total = chars(&output);
    if total <= chars_max {
        return output;
    }
    let (head, tail) = (chars_max * 2 / 3, chars_max / 3);
    let begin = prefix(&output, head);
    // counted from the start, so that no character is cut
    let rest =
        output.char_indices().nth(total - tail).map_or("", |(at, _)| output.get(at..).unwrap_or_default());
    let left_out = total - chars(begin) - chars(rest);
    format!("{begin}\n[… {left_out} characters are left out here; ask for less, or for a part …]\n{rest}")
}

/// The part of `text` of at most `chars_max` characters that begins with the `start`-th; how many characters there are,
/// and behind which the part ends.
pub(super) fn window(text: &str, start: usize, chars_max: usize) -> (&str, usize, usize) {
    let total = chars(text);
    let from = text.char_indices().nth(start).map_or(text.len(), |(at, _)| at);
    let part = prefix(text.get(from..).unwrap_or_default(), chars_max);
    (part, total, start.min(total) + chars(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_stay_and_what_is_left_out_is_counted() {
        assert_eq!(bounded("短".to_owned()), "短");
        let just = "字".repeat(OUTPUT_CHARS_MAX);
        assert_eq!(bounded(just.clone()), just);
        let shown = bounded(format!("begin{}错误 end", "行\n".repeat(OUTPUT_CHARS_MAX)));
        assert!(shown.starts_with("begin行") && shown.ends_with("错误 end"), "both ends");
        assert!(shown.contains(&format!("[… {} characters", 60_011 - OUTPUT_CHARS_MAX)), "what is left out");
        assert!(chars(&shown) < OUTPUT_CHARS_MAX + 120);
    }

    #[test]
    fn parts_follow_one_another() {
        assert_eq!(window("灯塔看守人", 0, 2), ("灯塔", 5, 2));
        assert_eq!(window("灯塔看守人", 2, 9), ("看守人", 5, 5));
        assert_eq!(window("灯塔", 9, 9), ("", 2, 2));
        assert_eq!(window("", 0, 9), ("", 0, 0));
    }
}
