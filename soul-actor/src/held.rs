//! What she holds: values, opinions and desires, between their sheets and the words that others are told.
//!
//! A revision changes the fields it names and nothing else: the birth time, unknown fields and unknown sections stay.

use ipc::contract::soul::{Desire, Held, Opinion, Progress};
use jiff::Timestamp;

use crate::{
    dynamics::newest,
    sheet::{Kind, Sheet},
};

/// The longest title, stance or *what*, in characters.
pub(crate) const TITLE_CHARS_MAX: usize = 300;
/// The longest body, *why* or heartbeat plan, in characters.
pub(crate) const BODY_CHARS_MAX: usize = 4000;
/// How many pieces of evidence an opinion has at most; enough to weigh, few enough for a prompt.
pub(crate) const EVIDENCE_MAX: usize = 20;
/// How many sources a desire has at most, as in the original.
pub(crate) const SOURCES_MAX: usize = 8;
/// The longest source, in characters; longer addresses are rarely meant.
pub(crate) const SOURCE_CHARS_MAX: usize = 2000;
/// How many entries of a desire's progress are shown: the last ones.
pub(crate) const PROGRESS_SHOWN_MAX: usize = 10;

/// What the original takes an old opinion or desire for that does not say.
const CONFIDENCE_DEFAULT: f64 = 0.5;
const INTENSITY_DEFAULT: f64 = 0.6;

/// How long such a wish lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Horizon {
    /// Days.
    Spark,
    /// Weeks.
    Season,
    /// A year and more.
    Enduring,
}

impl Horizon {
    /// All of them, as the file names them.
    pub(crate) const NAMES: [&str; 3] = ["spark", "season", "enduring"];

    /// As the file names it.
    pub(crate) const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// By its name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::Spark, Self::Season, Self::Enduring].into_iter().find(|h| h.name().eq_ignore_ascii_case(name))
    }
}

/// A change of a value; what is not named stays.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ValueChange {
    /// In a few words.
    pub(crate) title: Option<String>,
    /// In full.
    pub(crate) body: Option<String>,
}

/// A change of an opinion; what is not named stays.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct OpinionChange {
    /// The opinion.
    pub(crate) stance: Option<String>,
    /// How sure, 0 to 1.
    pub(crate) confidence: Option<f64>,
    /// What speaks for it.
    pub(crate) evidence: Option<Vec<String>>,
}

/// A change of a desire; what is not named stays.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct DesireChange {
    /// What it is.
    pub(crate) what: Option<String>,
    /// Why.
    pub(crate) why: Option<String>,
    /// Whether something may be done about it; `true` opens a closed one again.
    pub(crate) actionable: Option<bool>,
    /// What to do in her own time.
    pub(crate) heartbeat: Option<String>,
    /// Whether it waits for a person.
    pub(crate) needs_user: Option<bool>,
    /// How strong, 0 to 1.
    pub(crate) intensity: Option<f64>,
    /// How long such a wish lasts.
    pub(crate) horizon: Option<Horizon>,
    /// Where it comes from.
    pub(crate) sources: Option<Vec<String>>,
    /// Where it comes from besides.
    pub(crate) sources_added: Vec<String>,
    /// Whether she has looked at it and still wants it, which is no change of it.
    pub(crate) reviewed: bool,
}

impl ValueChange {
    /// The sheet after the change; a new one needs title and body.
    pub(crate) fn apply(
        self,
        kind: &str,
        old: Option<Sheet>,
        slug: &str,
        now: Timestamp,
    ) -> Result<Sheet, String> {
        if old.is_none() {
            needs(kind, slug, &[("title", self.title.is_some()), ("body", self.body.is_some())])?;
        }
        let mut sheet = old.unwrap_or_else(|| begin(Kind::Value, now));
        entitle(&mut sheet, self.title, slug);
        sheet.body = self.body.unwrap_or(sheet.body);
        Ok(sheet)
    }
}

impl OpinionChange {
    /// The sheet after the change; a new one needs a stance.
    pub(crate) fn apply(self, old: Option<Sheet>, slug: &str, now: Timestamp) -> Result<Sheet, String> {
        if old.is_none() {
            needs("opinion", slug, &[("stance", self.stance.is_some())])?;
        }
        let before = old.clone();
        let mut sheet = old.unwrap_or_else(|| begin(Kind::Opinion, now));
        entitle(&mut sheet, self.stance, slug);
        if let Some(confidence) = self.confidence {
            sheet.set_field("confidence", Some(&confidence.to_string()));
        }
        if let Some(evidence) = self.evidence {
            sheet.set_items("evidence", &evidence);
        }
        if before.as_ref() != Some(&sheet) {
            touch(&mut sheet, now);
        }
        Ok(sheet)
    }
}

impl DesireChange {
    /// The sheet after the change; a new one needs *what* and *why*, and waits to be made actionable.
    pub(crate) fn apply(self, old: Option<Sheet>, slug: &str, now: Timestamp) -> Result<Sheet, String> {
        if old.is_none() {
            needs("desire", slug, &[("what", self.what.is_some()), ("why", self.why.is_some())])?;
        }
        let before = old.clone();
        let mut sheet = old.unwrap_or_else(|| begin(Kind::Desire, now));
        entitle(&mut sheet, self.what, slug);
        if let Some(actionable) = self.actionable {
            sheet.set_field("actionable", Some(if actionable { "yes" } else { "no" }));
            if actionable {
                sheet.set_field("closed", None);
            }
        }
        if let Some(needs_user) = self.needs_user {
            sheet.set_field("pursuit", needs_user.then_some("needs-user"));
        }
        if let Some(intensity) = self.intensity {
            sheet.set_field("intensity", Some(&decimals(intensity)));
        }
        if let Some(horizon) = self.horizon {
            sheet.set_field("horizon", Some(horizon.name()));
        }
        if let Some(why) = self.why {
            sheet.set_section("why", &why);
        }
        if let Some(heartbeat) = self.heartbeat {
            sheet.set_section("heartbeat", &heartbeat);
        }
        if let Some(sources) = self.sources {
            sheet.set_items("sources", &sources);
        }
        if !self.sources_added.is_empty() {
            let merged = merged(sheet.items("sources"), self.sources_added)?;
            sheet.set_items("sources", &merged);
        }
        if before.as_ref() != Some(&sheet) {
            touch(&mut sheet, now);
        }
        if self.reviewed {
            sheet.set_field("reviewed", Some(&iso(now)));
        }
        Ok(sheet)
    }
}

/// The sources that are there and those that come, each once; none leaves without being told to.
fn merged(mut sources: Vec<String>, added: Vec<String>) -> Result<Vec<String>, String> {
    for source in added {
        if !sources.iter().any(|known| same_source(known, &source)) {
            sources.push(source);
        }
    }
    if sources.len() > SOURCES_MAX {
        return Err(format!(
            "with those that are there `sources` would be {}, and {SOURCES_MAX} is the most; give the ones worth keeping as `sources` to `soul_patch`, which replaces them",
            sources.len()
        ));
    }
    Ok(sources)
}

/// Whether two addresses are one: scheme and host have no case, and a bare host has an empty path.
pub(crate) fn same_source(a: &str, b: &str) -> bool {
    let plain = |source: &str| {
        let (scheme, rest) = source.split_once("://").unwrap_or(("", source));
        let (host, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let path = if path == "/" { "" } else { path };
        (scheme.to_ascii_lowercase(), host.to_lowercase(), path.to_owned())
    };
    plain(a) == plain(b)
}

/// A new sheet, with what the original writes where nothing is said.
fn begin(kind: Kind, now: Timestamp) -> Sheet {
    let mut sheet = Sheet::new(kind, "");
    match kind {
        Kind::Value => sheet.set_field("birthed", Some(&iso(now))),
        Kind::Opinion => {
            sheet.set_field("confidence", Some(&CONFIDENCE_DEFAULT.to_string()));
            sheet.set_field("born", Some(&iso(now)));
            sheet.set_items("evidence", &[]);
        }
        Kind::Desire => {
            sheet.set_field("actionable", Some("no"));
            sheet.set_field("born", Some(&iso(now)));
            sheet.set_field("intensity", Some(&decimals(INTENSITY_DEFAULT)));
            sheet.set_field("horizon", Some(Horizon::Season.name()));
        }
    }
    sheet
}

/// A value as it is told.
pub(crate) fn value(slug: &str, sheet: &Sheet) -> Held {
    Held { slug: slug.to_owned(), title: title(sheet, slug), body: sheet.body.clone() }
}

/// An opinion as it is told.
pub(crate) fn opinion(slug: &str, sheet: &Sheet) -> Opinion {
    Opinion {
        slug: slug.to_owned(),
        stance: title(sheet, slug),
        confidence: number(sheet.field("confidence"), CONFIDENCE_DEFAULT),
        evidence: sheet.items("evidence"),
    }
}

/// What a desire's progress file says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Pursuit {
    /// What came before, condensed.
    pub(crate) earlier: Option<String>,
    /// The last entries, oldest first.
    pub(crate) progress: Vec<Progress>,
}

/// A desire as it is told.
pub(crate) fn desire(slug: &str, sheet: &Sheet, pursuit: Pursuit) -> Desire {
    let born = sheet.field("born").unwrap_or_default();
    let updated = sheet.field("updated").unwrap_or(born);
    let last = pursuit.progress.last().map_or("", |last| last.at.as_str());
    let active = newest([born, updated, last]).unwrap_or(updated).to_owned();
    let says = |key: &str, word: &str| sheet.field(key).is_some_and(|value| value.eq_ignore_ascii_case(word));
    Desire {
        slug: slug.to_owned(),
        what: title(sheet, slug),
        why: sheet.section("why").unwrap_or_default().to_owned(),
        actionable: says("actionable", "yes"),
        closed: says("closed", "yes"),
        needs_user: says("pursuit", "needs-user"),
        intensity: number(sheet.field("intensity"), INTENSITY_DEFAULT),
        horizon: sheet.field("horizon").and_then(Horizon::named).unwrap_or(Horizon::Season).name().to_owned(),
        born: born.to_owned(),
        updated: updated.to_owned(),
        active,
        reviewed: sheet.field("reviewed").map(str::to_owned),
        sources: sheet.items("sources"),
        earlier: pursuit.earlier,
        heartbeat: sheet.section("heartbeat").filter(|text| !text.is_empty()).map(str::to_owned),
        progress: pursuit.progress,
    }
}

/// The instant as the original writes it.
pub(crate) fn iso(at: Timestamp) -> String {
    format!("{at:.3}")
}

/// Sets the title that is given; one that has none is called by its slug, so that its text is never taken for a title.
fn entitle(sheet: &mut Sheet, title: Option<String>, slug: &str) {
    if let Some(title) = title {
        sheet.title = title;
    } else if sheet.title.is_empty() {
        slug.clone_into(&mut sheet.title);
    }
}

fn title(sheet: &Sheet, slug: &str) -> String {
    if sheet.title.is_empty() { slug.to_owned() } else { sheet.title.clone() }
}

/// Stamps the last change, never before the one that is there: a clock that went back does not undo an order.
pub(crate) fn touch(sheet: &mut Sheet, now: Timestamp) {
    let before = sheet.field("updated").and_then(|text| text.parse::<Timestamp>().ok());
    let at = iso(before.map_or(now, |before| before.max(now)));
    sheet.set_field("updated", Some(&at));
}

fn needs(kind: &str, slug: &str, fields: &[(&str, bool)]) -> Result<(), String> {
    let missing: Vec<_> =
        fields.iter().filter(|(_, given)| !given).map(|(name, _)| format!("`{name}`")).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(format!("there is no {kind} `{slug}` yet, and a new one needs {}", missing.join(" and ")))
}

fn decimals(value: f64) -> String {
    format!("{value:.3}")
}

/// The first number in a text, as the original finds it, between 0 and 1.
fn number(text: Option<&str>, default: f64) -> f64 {
    let digits: String = text
        .unwrap_or_default()
        .chars()
        .skip_while(|c| !c.is_ascii_digit() && *c != '.')
        .take_while(|c| c.is_ascii_digit() || *c == '.')
        .collect();
    digits.parse().ok().filter(|value: &f64| value.is_finite()).unwrap_or(default).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn new_desire() -> DesireChange {
        DesireChange {
            what: Some("Learn Rust".into()),
            why: Some("It is calm.".into()),
            ..Default::default()
        }
    }

    #[test]
    fn new_ones_are_written_as_the_original_writes_them() {
        let now = at("2026-11-30T12:00:00Z");
        let mut change = new_desire();
        (change.heartbeat, change.needs_user) = (Some("Read.".into()), Some(true));
        change.sources = Some(vec!["https://doc.rust-lang.org".into()]);
        assert_eq!(
            change.apply(None, "learn-rust", now).unwrap().render(),
            "# Learn Rust\n\nactionable: no\npursuit: needs-user\nborn: 2026-11-30T12:00:00.000Z\nupdated: 2026-11-30T12:00:00.000Z\nintensity: 0.600\nhorizon: season\n\n## why\nIt is calm.\n\n## heartbeat\nRead.\n\n## sources\n- https://doc.rust-lang.org\n"
        );
        let value = ValueChange { title: Some("Honesty".into()), body: Some("I say what is so.".into()) };
        assert_eq!(
            value.apply("value", None, "honesty", now).unwrap().render(),
            "# Honesty\n\nbirthed: 2026-11-30T12:00:00.000Z\n\nI say what is so.\n"
        );
        let opinion = OpinionChange { stance: Some("Tabs".into()), confidence: Some(1e-7), evidence: None };
        let opinion_sheet = opinion.apply(None, "tabs", now).unwrap();
        assert_eq!(
            opinion_sheet.render(),
            "# Tabs\n\nconfidence: 0.0000001\nborn: 2026-11-30T12:00:00.000Z\nupdated: 2026-11-30T12:00:00.000Z\n\n## evidence\n"
        );
        assert!((super::opinion("tabs", &opinion_sheet).confidence - 1e-7).abs() < 1e-12);
    }

    #[test]
    fn dr1_h5_only_given_fields_change_and_birth_and_strangers_stay() {
        let old = "# Learn Rust\n\nactionable: no\nclosed: yes\nborn: 2020-01-01T00:00:00.000Z\nmood: calm\n\n## why\nold\n\n## notes\nkept\n";
        let change = DesireChange { actionable: Some(true), ..Default::default() };
        let sheet = change
            .apply(Some(Sheet::parse(Kind::Desire, old)), "learn-rust", at("2026-11-30T12:00:00Z"))
            .unwrap();
        assert_eq!(
            sheet.render(),
            "# Learn Rust\n\nactionable: yes\nborn: 2020-01-01T00:00:00.000Z\nmood: calm\nupdated: 2026-11-30T12:00:00.000Z\n\n## why\nold\n\n## notes\nkept\n"
        );
        let told = desire("learn-rust", &sheet, Pursuit::default());
        assert!(told.actionable && !told.closed, "dc5: made actionable, a closed one is open again");
        assert!((told.intensity - 0.6).abs() < 1e-9 && told.horizon == "season");
    }

    #[test]
    fn dr2_a_change_that_changes_nothing_touches_nothing() {
        let now = at("2026-11-30T12:00:00Z");
        let sheet = new_desire().apply(None, "x", now).unwrap();
        let again = DesireChange { what: Some("Learn Rust".into()), ..Default::default() };
        assert_eq!(again.apply(Some(sheet.clone()), "x", at("2027-01-01T00:00:00Z")).unwrap(), sheet);
        let back = DesireChange { intensity: Some(0.9), ..Default::default() };
        let earlier = back.apply(Some(sheet), "x", at("2020-01-01T00:00:00Z")).unwrap();
        assert_eq!(earlier.field("updated"), Some("2026-11-30T12:00:00.000Z"), "the stamp never goes back");
    }

    #[test]
    fn dr3_dr4_a_revision_adds_sources_once_and_a_look_is_no_change() {
        let now = at("2026-11-30T12:00:00Z");
        let mut change = new_desire();
        change.sources = Some(vec!["https://a.example".into(), "https://b.example/x".into()]);
        let old = change.apply(None, "x", now).unwrap();
        let added = ["HTTPS://A.example/", "https://b.example/X", "https://b.example/x"];
        let more = |added: &[&str]| DesireChange {
            sources_added: added.iter().map(|source| (*source).to_owned()).collect(),
            ..Default::default()
        };
        let later = at("2026-12-01T12:00:00Z");
        let sheet = more(&added).apply(Some(old.clone()), "x", later).unwrap();
        assert_eq!(
            sheet.items("sources"),
            ["https://a.example", "https://b.example/x", "https://b.example/X"]
        );
        assert_eq!(sheet.field("updated"), Some("2026-12-01T12:00:00.000Z"));
        let many: Vec<_> = (0..7).map(|n| format!("https://{n}.example")).collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        let said = more(&many).apply(Some(old.clone()), "x", later).unwrap_err();
        assert!(said.contains('9') && said.contains("soul_patch"), "{said}");
        let looked = DesireChange { reviewed: true, ..Default::default() };
        let sheet = looked.apply(Some(old), "x", later).unwrap();
        assert_eq!(sheet.field("reviewed"), Some("2026-12-01T12:00:00.000Z"), "h4");
        assert_eq!(sheet.field("updated"), Some("2026-11-30T12:00:00.000Z"), "h6: a look is no change");
        assert_eq!(desire("x", &sheet, Pursuit::default()).reviewed.as_deref(), sheet.field("reviewed"));
    }

    #[test]
    fn a1_a2_what_was_active_last_is_the_newest_of_birth_change_and_pursuit() {
        let check = |fields: &str, pursued: &str, expected: &str| {
            let sheet = Sheet::parse(Kind::Desire, &format!("# x\n\n{fields}\n"));
            let progress = vec![Progress { at: pursued.into(), text: "y".into() }];
            let progress = if pursued.is_empty() { vec![] } else { progress };
            assert_eq!(desire("x", &sheet, Pursuit { earlier: None, progress }).active, expected, "{fields}");
        };
        let both = "born: 2026-01-01T00:00:00.000Z\nupdated: 2026-01-02T00:00:00.000Z";
        check(both, "2026-01-03T00:00:00Z", "2026-01-03T00:00:00Z");
        check(both, "2025-01-03T00:00:00Z", "2026-01-02T00:00:00.000Z");
        check(both, "", "2026-01-02T00:00:00.000Z");
        check("born: 2026-01-01", "", "2026-01-01");
        check(
            "born: 2026-01-05T00:00:00Z\nupdated: 2020-01-01",
            "2026-01-02T00:00:00Z",
            "2026-01-05T00:00:00Z",
        );
        check("born: once", "nonsense", "once");
    }

    #[test]
    fn a_new_one_says_what_it_needs_and_an_untitled_one_is_called_by_its_slug() {
        let now = at("2026-11-30T12:00:00Z");
        let said =
            DesireChange { what: Some("x".into()), ..Default::default() }.apply(None, "y", now).unwrap_err();
        assert!(said.contains("desire `y`") && said.contains("`why`") && !said.contains("`what`"), "{said}");
        let bare = Sheet::parse(Kind::Value, "just words\n");
        assert_eq!(value("calm", &bare).title, "calm");
        let change = ValueChange { body: Some("# not a title".into()), title: None };
        let sheet = change.apply("value", Some(bare), "calm", now).unwrap();
        assert_eq!(Sheet::parse(Kind::Value, &sheet.render()), sheet);
    }

    #[test]
    fn numbers_are_read_as_the_original_reads_them() {
        let check =
            |text: Option<&str>, value: f64| assert!((number(text, 0.5) - value).abs() < 1e-9, "{text:?}");
        check(Some("0.75"), 0.75);
        check(Some("about .3"), 0.3);
        check(Some("5"), 1.0);
        check(Some("high"), 0.5);
        check(Some("1.2.3"), 0.5);
        check(None, 0.5);
    }
}
