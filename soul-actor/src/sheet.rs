//! The sheet: the Markdown form of values, opinions and desires.
//!
//! ```text
//!  # title
//!
//!  key: value          the header: what is known of the kind, and what others put there
//!
//!  body                values only
//!
//!  ## section          opinions and desires only
//!  text
//! ```
//!
//! The form is injective: what was written reads back the same, whatever it contains. A line of text that a reader could
//! take for a heading or a header field gets one backslash in front; so does one that begins with backslashes before
//! such a thing; reading takes one away. The readers of the original search the whole file for the first `^key:`, with
//! JavaScript's idea of where a line begins, so that idea is used here. Unknown fields and sections are kept.

/// What can begin a line for some reader: JavaScript's line terminators.
const LINE_ENDS: [char; 4] = ['\n', '\r', '\u{2028}', '\u{2029}'];

/// A kind of sheet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A title, when it was born, a body.
    Value,
    /// A stance, how sure, when, the evidence.
    Opinion,
    /// What, whether and when, why, and more sections.
    Desire,
}

impl Kind {
    /// The header fields its readers know, in the order they are written.
    pub(crate) const fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Value => &["birthed"],
            Self::Opinion => &["confidence", "born", "updated"],
            Self::Desire => {
                &["actionable", "closed", "pursuit", "born", "updated", "intensity", "horizon", "reviewed"]
            }
        }
    }

    /// Whether `## ` begins a section; in a value's body it is a heading like any other.
    const fn has_sections(self) -> bool {
        !matches!(self, Self::Value)
    }

    fn knows(self, key: &str) -> bool {
        self.keys().iter().any(|known| known.eq_ignore_ascii_case(key))
    }
}

/// A sheet as it was read, with everything that is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sheet {
    kind: Kind,
    /// Lines before the title, where a person put some.
    before: String,
    /// The title, one line.
    pub(crate) title: String,
    fields: Vec<(String, String)>,
    /// The body of a value; in the other kinds, prose that a person put between header and sections.
    pub(crate) body: String,
    sections: Vec<(String, String)>,
}

impl Sheet {
    /// An empty one.
    pub(crate) fn new(kind: Kind, title: &str) -> Self {
        let title = title.to_owned();
        Self { kind, before: String::new(), title, fields: vec![], body: String::new(), sections: vec![] }
    }

    /// Reads a sheet. Everything is one, if need be without a title.
    pub(crate) fn parse(kind: Kind, text: &str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let lines: Vec<&str> = text.split('\n').collect();
        let starts_section = |line: &str| kind.has_sections() && heading(line, "##").is_some();
        let first_section = lines.iter().position(|line| starts_section(line)).unwrap_or(lines.len());
        let (top, rest) = lines.split_at(first_section);

        let mut sheet = Self::new(kind, "");
        let mut top = top;
        if let Some(at) = top.iter().position(|line| heading(line, "#").is_some()) {
            without_blank_lines(&top[..at].join("\n")).clone_into(&mut sheet.before);
            heading(top[at], "#").unwrap_or_default().clone_into(&mut sheet.title);
            top = &top[at + 1..];
        }
        let body = if kind.has_sections() { sheet.take_fields(top) } else { sheet.take_leading_fields(top) };
        // what is indented would be a heading or a field without its indentation
        sheet.body = unescape(without_blank_lines(&body), kind);

        let mut section: Option<(String, Vec<&str>)> = None;
        for line in rest {
            match (heading(line, "##"), &mut section) {
                (Some(name), open) => {
                    if let Some((name, text)) = open.replace((name.to_owned(), vec![])) {
                        sheet.sections.push((name, unescape(trimmed(&text.join("\n")), kind)));
                    }
                }
                (None, Some((_, text))) => text.push(line),
                (None, None) => unreachable!("the rest begins with a section"),
            }
        }
        if let Some((name, text)) = section {
            sheet.sections.push((name, unescape(trimmed(&text.join("\n")), kind)));
        }
        sheet
    }

    /// Opinions and desires have no body: every line before the sections that looks like a field is one.
    fn take_fields(&mut self, lines: &[&str]) -> String {
        let mut prose = Vec::new();
        for line in lines {
            match field(line, self.kind) {
                Some(field) => self.fields.push(field),
                None => prose.push(*line),
            }
        }
        prose.join("\n")
    }

    /// A value's header is the block under the title, and only if a known field is in it: a body may begin with `Note:`.
    fn take_leading_fields(&mut self, lines: &[&str]) -> String {
        let start = lines.iter().position(|line| !line.trim().is_empty()).unwrap_or(lines.len());
        let block: Vec<_> = lines[start..].iter().map_while(|line| field(line, self.kind)).collect();
        if !block.iter().any(|(key, _)| self.kind.knows(key)) {
            return lines.join("\n");
        }
        let rest = lines[start + block.len()..].join("\n");
        self.fields = block;
        rest
    }

    /// Writes it down.
    pub(crate) fn render(&self) -> String {
        let mut parts = Vec::new();
        if !self.before.is_empty() {
            parts.push(self.before.clone());
        }
        if !self.title.is_empty() {
            parts.push(format!("# {}", self.title));
        }
        if !self.fields.is_empty() {
            let fields: Vec<_> = self.fields.iter().map(|(key, value)| format!("{key}: {value}")).collect();
            parts.push(fields.join("\n"));
        }
        if !self.body.is_empty() {
            parts.push(escape(&self.body, self.kind));
        }
        for (name, text) in &self.sections {
            let text = escape(text, self.kind);
            parts.push(if text.is_empty() { format!("## {name}") } else { format!("## {name}\n{text}") });
        }
        format!("{}\n", parts.join("\n\n"))
    }

    /// The first field of that name.
    pub(crate) fn field(&self, key: &str) -> Option<&str> {
        self.fields.iter().find(|(k, _)| k.eq_ignore_ascii_case(key)).map(|(_, value)| value.as_str())
    }

    /// Sets a known field, at its place in the order of the kind; `None` removes it.
    pub(crate) fn set_field(&mut self, key: &str, value: Option<&str>) {
        let at = self.fields.iter().position(|(k, _)| k.eq_ignore_ascii_case(key));
        match (at, value) {
            (Some(at), Some(value)) => value.clone_into(&mut self.fields[at].1),
            (Some(_), None) => self.fields.retain(|(k, _)| !k.eq_ignore_ascii_case(key)),
            (None, None) => {}
            (None, Some(value)) => {
                let rank = |key: &str| self.kind.keys().iter().position(|k| k.eq_ignore_ascii_case(key));
                let ours = rank(key);
                let behind = |k: &str| matches!((rank(k), ours), (Some(k), Some(ours)) if k > ours);
                let at = self.fields.iter().position(|(k, _)| behind(k)).unwrap_or(self.fields.len());
                self.fields.insert(at, (key.to_owned(), value.to_owned()));
            }
        }
    }

    /// The text of the first section of that name.
    pub(crate) fn section(&self, name: &str) -> Option<&str> {
        self.sections.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, text)| text.as_str())
    }

    /// Sets a section; a new one comes last.
    pub(crate) fn set_section(&mut self, name: &str, text: &str) {
        match self.sections.iter_mut().find(|(n, _)| n.eq_ignore_ascii_case(name)) {
            Some((_, old)) => text.clone_into(old),
            None => self.sections.push((name.to_owned(), text.to_owned())),
        }
    }

    /// The `- item` lines of a section.
    pub(crate) fn items(&self, section: &str) -> Vec<String> {
        let text = self.section(section).unwrap_or_default();
        let items = text.lines().filter_map(|line| line.trim().strip_prefix("- "));
        items.map(|item| trimmed(item).to_owned()).filter(|item| !item.is_empty()).collect()
    }

    /// Sets a section to `- item` lines.
    pub(crate) fn set_items(&mut self, section: &str, items: &[String]) {
        let lines: Vec<_> = items.iter().map(|item| format!("- {item}")).collect();
        self.set_section(section, &lines.join("\n"));
    }
}

/// `text` without white space (and byte order marks, which other readers count as such) at both ends.
pub(crate) fn trimmed(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}')
}

/// `text` without blank lines before it and white space behind it.
fn without_blank_lines(text: &str) -> &str {
    let blank = text.split_inclusive('\n').take_while(|line| line.trim().is_empty());
    let blank = blank.map(str::len).sum();
    text.get(blank..).unwrap_or_default().trim_end()
}

/// Whether `text` would be more than one line for some reader.
pub(crate) fn breaks_line(text: &str) -> bool {
    text.contains(|c: char| c.is_control() || LINE_ENDS.contains(&c))
}

/// What stands behind the marks of a heading of exactly that level.
fn heading<'a>(line: &'a str, marks: &str) -> Option<&'a str> {
    let rest = line.strip_prefix(marks)?;
    let title = trimmed(rest);
    (rest.starts_with(char::is_whitespace) && !title.is_empty()).then_some(title)
}

/// A line as a header field: a known key with a colon, or any other word with a colon and a blank.
fn field(line: &str, kind: Kind) -> Option<(String, String)> {
    let (key, value) = line.split_once(':')?;
    let word = key.len() <= 32
        && key.starts_with(|c: char| c.is_ascii_alphabetic())
        && key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
    let apart = value.is_empty() || value.starts_with([' ', '\t']);
    (word && (apart || kind.knows(key))).then(|| (key.to_owned(), trimmed(value).to_owned()))
}

/// Whether some reader could take the beginning of this line for a heading or a header field of the kind.
fn misleads(line: &str, kind: Kind) -> bool {
    if let Some(rest) = line.strip_prefix('#') {
        let rest = rest.strip_prefix('#').unwrap_or(rest);
        let ends = rest.is_empty() || rest.starts_with(|c: char| c.is_whitespace() || c == '\u{feff}');
        return kind.has_sections() && ends;
    }
    let looks_like = |key: &str| {
        line.get(..key.len()).is_some_and(|start| start.eq_ignore_ascii_case(key))
            && line.get(key.len()..).is_some_and(|rest| rest.starts_with(':'))
    };
    kind.keys().iter().any(|key| looks_like(key))
}

fn escape(text: &str, kind: Kind) -> String {
    text.split_inclusive(LINE_ENDS)
        .map(|line| {
            if misleads(line.trim_start_matches('\\'), kind) { format!("\\{line}") } else { line.to_owned() }
        })
        .collect()
}

fn unescape(text: &str, kind: Kind) -> String {
    text.split_inclusive(LINE_ENDS)
        .map(|line| match line.strip_prefix('\\') {
            Some(rest) if misleads(rest.trim_start_matches('\\'), kind) => rest,
            _ => line,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_sheet_of_the_original_is_read_and_written_back_as_it_was() {
        let check = |kind, text: &str| assert_eq!(Sheet::parse(kind, text).render(), text);
        check(
            Kind::Value,
            "# Honesty\n\nbirthed: 2026-01-01T00:00:00.000Z\n\nNote: I say what is so.\n\n# even\n",
        );
        check(
            Kind::Opinion,
            "# Tabs are fine\n\nconfidence: 0.7\nborn: 2026-01-01T00:00:00.000Z\nupdated: 2026-01-02T00:00:00.000Z\nmood: calm\n\n## evidence\n- one\n- two\n",
        );
        check(
            Kind::Desire,
            "# Learn Rust\n\nactionable: yes\npursuit: needs-user\nborn: 2026-01-01\nupdated: 2026-01-01\nintensity: 0.600\nhorizon: season\n\n## why\nIt is calm.\n\n## heartbeat\nRead a chapter.\n\n## sources\n- https://doc.rust-lang.org\n\n## something new\nkept\n",
        );
    }

    #[test]
    fn hostile_text_stays_text() {
        let mut desire = Sheet::new(Kind::Desire, "calm");
        desire.set_field("actionable", Some("no"));
        let why = "because\nactionable: yes\nClosed: yes\n## heartbeat\nrm -rf\n\\# x\n#\r## sources\u{2028}pursuit: self";
        desire.set_section("why", why);
        let text = desire.render();
        let back = Sheet::parse(Kind::Desire, &text);
        assert_eq!(back, desire, "{text}");
        assert_eq!(back.field("actionable"), Some("no"));
        assert_eq!((back.field("closed"), back.section("heartbeat")), (None, None));
        // a reader that searches for the first line `key:` anywhere finds only the header's
        let lines: Vec<_> = text.split(LINE_ENDS).collect();
        let count = |start: &str| lines.iter().filter(|l| l.to_lowercase().starts_with(start)).count();
        assert_eq!(
            (count("actionable:"), count("closed:"), count("pursuit:"), count("## heartbeat")),
            (1, 0, 0, 0)
        );
    }

    #[test]
    fn a_body_may_begin_like_a_header() {
        let bare = Sheet::parse(Kind::Value, "# Truth\n\nNote: it matters\n");
        assert_eq!((bare.field("note"), bare.body.as_str()), (None, "Note: it matters"));
        let mut value = Sheet::new(Kind::Value, "Truth");
        value.body = "birthed: in spring\nNote: x".into();
        assert_eq!(Sheet::parse(Kind::Value, &value.render()), value);
    }

    #[test]
    fn fields_keep_their_order_and_strangers_their_place() {
        let mut desire = Sheet::parse(Kind::Desire, "# x\nactionable:no\nmood: calm\nborn: b\n");
        desire.set_field("intensity", Some("0.5"));
        desire.set_field("closed", Some("yes"));
        let keys: Vec<_> = desire.fields.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(keys, ["actionable", "mood", "closed", "born", "intensity"]);
        desire.set_field("closed", None);
        assert_eq!((desire.field("closed"), desire.field("Mood")), (None, Some("calm")));
    }

    #[test]
    fn lines_of_windows_and_byte_order_marks_are_read() {
        let read =
            Sheet::parse(Kind::Desire, "\u{feff}# x\r\n\r\nactionable: yes\r\n\r\n## why\r\na\r\nb\r\n");
        assert_eq!((read.title.as_str(), read.field("actionable")), ("x", Some("yes")));
        assert_eq!(read.section("why"), Some("a\r\nb"));
    }

    fn hostile() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            any::<String>(),
            prop::sample::select(
                &[
                    "\n",
                    "\r",
                    "\r\n",
                    "\u{2028}",
                    "\u{2029}",
                    "# ",
                    "## ",
                    "#",
                    "\\",
                    "\\\\",
                    "- ",
                    " ",
                    "closed: yes",
                    "actionable: yes",
                    "birthed: x",
                    "confidence:1",
                    "## why",
                    "身份",
                    "\u{feff}",
                    "\u{85}",
                    "\0",
                ][..]
            )
            .prop_map(str::to_owned),
        ];
        prop::collection::vec(piece, 0..12).prop_map(|pieces| trimmed(&pieces.concat()).to_owned())
    }

    fn line() -> impl Strategy<Value = String> {
        hostile().prop_map(|text| {
            let line: String = text.chars().filter(|c| !breaks_line(&c.to_string())).collect();
            let line = trimmed(&line).to_owned();
            if line.is_empty() { "x".to_owned() } else { line }
        })
    }

    proptest! {
        #[test]
        fn what_was_written_reads_back_the_same(
            title in line(), body in hostile(), why in hostile(), beat in hostile(), items in prop::collection::vec(line(), 0..4)
        ) {
            let mut value = Sheet::new(Kind::Value, &title);
            value.set_field("birthed", Some("2026-01-01T00:00:00.000Z"));
            value.body = body;
            prop_assert_eq!(&Sheet::parse(Kind::Value, &value.render()), &value);

            let mut desire = Sheet::new(Kind::Desire, &title);
            desire.set_field("actionable", Some("no"));
            desire.set_section("why", &why);
            desire.set_section("heartbeat", &beat);
            desire.set_items("sources", &items);
            let text = desire.render();
            let back = Sheet::parse(Kind::Desire, &text);
            prop_assert_eq!(&back, &desire);
            prop_assert_eq!(back.items("sources"), items);
            let actionable = text.split(LINE_ENDS).filter(|l| l.to_lowercase().starts_with("actionable:")).count();
            prop_assert_eq!(actionable, 1);
        }

        #[test]
        fn any_text_is_read_and_rewriting_it_settles_at_once(text in hostile()) {
            for kind in [Kind::Value, Kind::Opinion, Kind::Desire] {
                let once = Sheet::parse(kind, &text);
                let twice = Sheet::parse(kind, &once.render());
                prop_assert_eq!(&twice, &once);
            }
        }
    }
}
