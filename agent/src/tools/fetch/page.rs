//! What a page says, as text: decoded as it says it is, and without the markup.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8};

/// How wide text out of markup is set. Rules are drawn so wide, and nothing else depends on it.
const WIDTH: usize = 120;
/// The most markup that is turned into text; what is behind it is not looked at.
const MARKUP_BYTES_MAX: usize = 2 << 20;
/// How far into a page its encoding may be named, as browsers look for it.
const PRESCAN_BYTES: usize = 1024;

/// How deep markup may be nested, as browsers have it; to set what is deeper takes the square of the depth.
const DEPTH_MAX: usize = 512;
/// What is said where the rest of a page is nested deeper.
const TOO_DEEP: &str = "\n(from here on the page is nested too deeply to be read)";

/// What kind of content a server sent, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// HTML.
    Markup,
    /// Text, or what is written as text: JSON, XML, source.
    Text,
    /// Anything else; it is named, not shown.
    Other,
}

/// The kind that a `Content-Type` names; without one the first bytes tell.
pub(super) fn kind(content_type: Option<&str>, body: &[u8]) -> Kind {
    let essence = content_type.map(|value| value.split(';').next().unwrap_or_default().trim().to_lowercase());
    match essence.as_deref() {
        Some("text/html" | "application/xhtml+xml") => Kind::Markup,
        Some(text) if text.starts_with("text/") => Kind::Text,
        Some(
            "application/json"
            | "application/xml"
            | "application/javascript"
            | "application/yaml"
            | "application/toml",
        ) => Kind::Text,
        Some(essence) if essence.ends_with("+json") || essence.ends_with("+xml") => Kind::Text,
        Some(essence) if !essence.is_empty() && essence != "application/octet-stream" => Kind::Other,
        _ => sniffed(body),
    }
}

fn sniffed(body: &[u8]) -> Kind {
    let begin = body.get(..PRESCAN_BYTES.min(body.len())).unwrap_or_default();
    let lower = begin.trim_ascii_start().to_ascii_lowercase();
    if lower.starts_with(b"<!doctype html") || lower.starts_with(b"<html") {
        return Kind::Markup;
    }
    if begin.contains(&0) { Kind::Other } else { Kind::Text }
}

/// The text of a body. `content_type` may name its encoding; else the body does, or is guessed from.
pub(super) fn text(kind: Kind, content_type: Option<&str>, body: &[u8]) -> String {
    let decoded = decoded(kind, content_type, body);
    if kind != Kind::Markup {
        return decoded.into_owned();
    }
    let (markup, rest) = shallow(begin(&decoded, MARKUP_BYTES_MAX));
    let set = html2text::config::plain()
        .allow_width_overflow()
        .raw_mode(true)
        .string_from_read(markup.as_bytes(), WIDTH)
        // what cannot be set is shown as it came
        .unwrap_or_else(|_| markup.to_owned());
    if rest.is_empty() { set } else { set + TOO_DEEP }
}

/// Markup up to where it is nested too deeply, and the rest.
///
/// Tags are counted as they come, without the rules by which some end by themselves: those are not counted at all. So a
/// page that leaves much open may be cut too early, and none too late to be set in time.
fn shallow(markup: &str) -> (&str, &str) {
    let lower = markup.to_ascii_lowercase();
    let mut open: Vec<&str> = Vec::new();
    let mut at = 0;
    while let Some(begin) = lower.get(at..).and_then(|rest| rest.find('<')).map(|found| at + found) {
        let rest = lower.get(begin + 1..).unwrap_or_default();
        let (is_end, rest) = rest.strip_prefix('/').map_or((false, rest), |rest| (true, rest));
        let name = rest.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
        at = begin + 1;
        if is_end {
            let known = open.iter().rposition(|open| *open == name);
            open.truncate(known.unwrap_or(open.len()));
        } else if matches!(name, "script" | "style") {
            at += rest.find(&format!("</{name}")).unwrap_or(rest.len());
        } else if !name.is_empty() && !ENDS_BY_ITSELF.contains(&name) {
            open.push(name);
            if open.len() > DEPTH_MAX {
                return markup.split_at(begin);
            }
        }
    }
    (markup, "")
}

/// The tags that hold nothing, or end where the next of their kind begins.
const ENDS_BY_ITSELF: [&str; 19] = [
    "area", "base", "br", "col", "dd", "dt", "embed", "hr", "img", "input", "li", "link", "meta", "option",
    "p", "param", "source", "track", "wbr",
];

/// The longest beginning of `text` of at most so many bytes.
fn begin(text: &str, bytes_max: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes_max)).unwrap_or(text)
}

fn decoded<'a>(kind: Kind, content_type: Option<&str>, body: &'a [u8]) -> Cow<'a, str> {
    // a byte order mark outranks what anybody says
    if let Some((encoding, _)) = Encoding::for_bom(body) {
        return encoding.decode_with_bom_removal(body).0;
    }
    let said = content_type.and_then(charset).or_else(|| {
        let begin = body.get(..PRESCAN_BYTES.min(body.len())).unwrap_or_default();
        (kind == Kind::Markup).then(|| charset(&String::from_utf8_lossy(begin))).flatten()
    });
    if let Some(encoding) = said {
        return encoding.decode_without_bom_handling(body).0;
    }
    if let Ok(text) = std::str::from_utf8(body) {
        return text.into();
    }
    let mut detector = chardetng::EncodingDetector::new(chardetng::Iso2022JpDetection::Deny);
    detector.feed(body, true);
    let guessed = detector.guess(None, chardetng::Utf8Detection::Allow);
    if guessed == UTF_8 { String::from_utf8_lossy(body) } else { guessed.decode_without_bom_handling(body).0 }
}

/// The encoding behind `charset=`, in a header or in the beginning of a page.
fn charset(text: &str) -> Option<&'static Encoding> {
    let lower = text.to_ascii_lowercase();
    let (_, rest) = lower.split_once("charset=")?;
    let label: String = rest
        .trim_start_matches(['"', '\'', ' '])
        .chars()
        .take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':' | '.'))
        .collect();
    Encoding::for_label(label.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_kind_is_what_the_server_says_or_else_what_it_looks_like() {
        let check = |said: Option<&str>, body: &[u8], expected: Kind| {
            assert_eq!(kind(said, body), expected, "{said:?}");
        };
        check(Some("text/html; charset=utf-8"), b"", Kind::Markup);
        check(Some("Application/LD+JSON"), b"", Kind::Text);
        check(Some("text/plain"), b"<html>", Kind::Text);
        check(Some("image/png"), b"", Kind::Other);
        check(Some("application/pdf"), b"", Kind::Other);
        check(None, b"  <!DOCTYPE HTML><p>", Kind::Markup);
        check(Some("application/octet-stream"), b"\x7fELF\0", Kind::Other);
        check(Some(""), "灯塔".as_bytes(), Kind::Text);
    }

    #[test]
    fn markup_becomes_text_and_its_links_are_kept() {
        let page = "<html><head><title>t</title><script>evil()</script><style>p{}</style></head>\
                    <body><h1>灯塔</h1><p>one <b>two</b></p><ul><li>a<li>b</ul><a href='https://x.test/y'>see</a></body></html>";
        let shown = text(Kind::Markup, Some("text/html; charset=utf-8"), page.as_bytes());
        for part in ["灯塔", "one", "two", "see", "https://x.test/y"] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert!(!shown.contains("evil") && !shown.contains("p{}") && !shown.contains("<p>"), "{shown}");
    }

    #[test]
    fn chinese_pages_are_read_in_their_encodings() {
        let (gbk, _, _) = encoding_rs::GBK.encode("<meta charset=\"gb2312\"><p>灯塔看守人写日记</p>");
        assert!(text(Kind::Markup, Some("text/html"), &gbk).contains("灯塔看守人写日记"));
        let (big5, _, _) = encoding_rs::BIG5.encode("燈塔");
        assert_eq!(text(Kind::Text, Some("text/plain; charset=\"Big5\""), &big5), "燈塔");
        let (plain, _, _) =
            encoding_rs::GB18030.encode("今天天气很好，我们去看灯塔吧。灯塔在海边，很高很亮。");
        assert!(text(Kind::Text, None, &plain).contains("灯塔在海边"), "guessed");
        let bom =
            [&[0xff, 0xfe][..], &"灯".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>()].concat();
        assert_eq!(text(Kind::Text, Some("text/plain; charset=utf-8"), &bom), "灯");
    }

    #[test]
    fn a_page_that_is_nested_without_end_is_no_danger() {
        for tag in ["<div>", "<b>", "<blockquote>", "<ul><li>", "<table><tr><td>"] {
            let page = tag.repeat(20_000) + "deep";
            let shown = text(Kind::Markup, None, page.as_bytes());
            assert!(shown.ends_with(TOO_DEEP), "{tag}");
        }
    }

    #[test]
    fn only_what_is_too_deep_is_cut() {
        let check = |page: &str, kept: bool| assert_eq!(shallow(page).1.is_empty(), kept, "{page:.60}");
        check(&"<p>灯塔<br>".repeat(5000), true);
        check(&"<div><B>x</b></div>".repeat(5000), true);
        check(&format!("<script>{}</script><p>x", "'<div>'".repeat(5000)), true);
        check(&format!("<script>{}", "<div>".repeat(5000)), true);
        check(&"<SCRIPT></Script>".repeat(100_000), true);
        check(&"<div>".repeat(DEPTH_MAX), true);
        check(&"<div>".repeat(DEPTH_MAX + 1), false);
        check(&"<".repeat(5000), true);
        check("</div></p>", true);
        let page = format!("{}灯", "<i>".repeat(600));
        let (kept, rest) = shallow(&page);
        assert_eq!((kept.len(), kept.len() + rest.len()), (3 * DEPTH_MAX, page.len()));
    }

    proptest! {
        #[test]
        fn any_bytes_give_some_text(body in prop::collection::vec(any::<u8>(), 0..400), said in "(text/html|text/plain|)(; charset=[a-z0-9-]{0,8})?") {
            let kind = kind(Some(&said), &body);
            text(kind, Some(&said), &body);
        }
    }
}
