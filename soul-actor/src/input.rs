//! What a model gave a tool, read strictly: every mistake is a sentence that the model can act on.
//!
//! A field that is `null`, or an empty text, counts as not given, because models fill in what they do not mean. A field
//! that does not exist, or does not go with the others, is refused rather than dropped: silence would look like success.

mod noted;
mod wants;

use ipc::text::one_line;
use jiff::{SignedDuration, Timestamp, civil::Date, tz::TimeZone};
use serde_json::Value;

use crate::{
    document::{self, Document, Folder, Scope, Text, within},
    dreams,
    emotions::Feel,
    entries::ENTRY_CHARS_MAX,
    fields::Fields,
    held::{BODY_CHARS_MAX, DesireChange, EVIDENCE_MAX, OpinionChange, TITLE_CHARS_MAX, ValueChange},
    message::WHY_CHARS_MAX,
    notes::{About, Address},
    objections::{self, REASON_CHARS_MAX, REQUEST_CHARS_MAX},
    recall::Query,
    rollback::Target,
    slug::Slug,
    tools::Tool,
    topic::Topic,
};

/// The most commits a history shows at once; more are older than a model or a screen can use.
pub(crate) const HISTORY_MAX: u32 = 200;
/// The most changes a diff shows at once.
pub(crate) const DIFF_MAX: u32 = 50;

/// The most sentences a dream may be given; how many it merges is less, and set by a person.
const WORDINGS_MAX: usize = 50;
/// The longest query, in characters: a question, not a page.
pub(crate) const QUERY_CHARS_MAX: usize = 200;
/// How many notes are recalled, and how many at most: what is shown counts, so it should have been meant.
pub(crate) const RECALLED: u32 = 5;
pub(crate) const RECALLED_MAX: u32 = 20;
/// What `soul_memory` does.
pub(crate) const MEMORY_ACTIONS: [&str; 2] = ["status", "promote"];

/// What a tool is asked to do.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Wish {
    /// Rewrite one of the texts.
    Text { text: Text, content: String, why: String },
    /// Add to one of the texts.
    Append { text: Text, addition: String, why: String },
    /// Write or revise a value.
    Value { slug: String, change: ValueChange, why: String },
    /// Write or revise an opinion.
    Opinion { slug: String, change: OpinionChange, why: String },
    /// Write or revise a desire.
    Desire { slug: String, change: DesireChange },
    /// Revise a desire that is there.
    Revise { slug: String, change: DesireChange },
    /// End a desire.
    Close { slug: String, outcome: Outcome, reflection: String },
    /// Condense a desire's progress; `folds` where the summary stands for the earlier ones as well.
    Condense { slug: String, summary: String, folds: bool },
    /// Feel more or less of something.
    Feel(Feel),
    /// Write or revise a page about a person.
    Relationship { slug: String, change: ValueChange, why: String },
    /// Write in the journal.
    Journal { topic: Option<Topic>, entry: String },
    /// See what she noticed again and again.
    Candidates,
    /// See or do what would be merged of it.
    Dream(dreams::Asked),
    /// Note something; `outside` where the words stem from there.
    Remember { about: About, note: String, outside: bool },
    /// Search her notes.
    Recall(Query),
    /// See which notes there are, and which qualify.
    Memory,
    /// Take a note into `memory`, in other words where some are given.
    Promote { note: Address, wording: Option<String> },
    /// Write in a desire's progress.
    Progress { slug: String, entry: String },
    /// Look at something.
    Look(Look),
    /// How full the documents are, and what may be changed.
    Stand,
    /// How her replies were rated.
    Ratings,
    /// Show what changed.
    History { scope: Scope, limit: u32, since: Option<Timestamp> },
    /// Show how it changed.
    Diff { scope: Scope, limit: u32, since: Option<Timestamp> },
    /// Bring something back.
    Rollback { target: Target, why: String },
    /// Object to a request.
    Object(objections::Wording),
}

/// What `soul_read` looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// All of her, in short.
    Summary,
    /// One text.
    Text(Text),
    /// All entries of a folder.
    Folder(Folder),
    /// What she feels now, and why.
    Emotions,
    /// What she changed of herself.
    Changelog,
    /// What she dreamt.
    Dreams,
    /// The journal of today.
    JournalToday,
    /// The days there is a journal of.
    JournalDates,
    /// The journal of a day.
    JournalOn(Date),
    /// The notes of today.
    NotesToday,
    /// The days there are notes of.
    NotesDates,
    /// The notes of a day.
    NotesOn(Date),
}

/// How a desire ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// She has what she wanted.
    Fulfilled,
    /// She does not want it any more.
    Abandoned,
    /// She wants something else in its place.
    Transformed,
}

impl Outcome {
    /// All of them, as the tool and the files name them.
    pub(crate) const NAMES: [&str; 3] = ["fulfilled", "abandoned", "transformed"];

    /// As the files name it.
    pub(crate) const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// The words for what `soul_read` looks at.
pub(crate) const LOOKS: [&str; 22] = [
    "summary",
    "name",
    "identity",
    "purpose",
    "constitution",
    "soul",
    "user",
    "memory",
    "rules",
    "values",
    "opinions",
    "desires",
    "relationships",
    "emotions",
    "changelog",
    "dreams",
    "journal_today",
    "journal_dates",
    "journal_on",
    "notes_today",
    "notes_dates",
    "notes_on",
];

/// The words for what `soul_patch` writes; `rules` among them, so that the grant says why she does not.
pub(crate) const FIELDS: [&str; 12] = [
    "name",
    "identity",
    "purpose",
    "constitution",
    "soul",
    "user",
    "memory",
    "rules",
    "value",
    "opinion",
    "desire",
    "relationship",
];

/// The words for what `soul_history` and `soul_diff` look at.
pub(crate) const SCOPES: [&str; 18] = [
    "all",
    "name",
    "identity",
    "purpose",
    "constitution",
    "soul",
    "user",
    "memory",
    "rules",
    "value",
    "opinion",
    "desire",
    "relationship",
    "emotions",
    "changelog",
    "dreams",
    "journal",
    "notes",
];

/// When it is, for what is said relative to it.
#[derive(Debug, Clone)]
pub(crate) struct When {
    /// The instant.
    pub(crate) now: Timestamp,
    /// The zone whose days she lives in.
    pub(crate) zone: TimeZone,
}

/// Reads the input of a tool.
pub(crate) fn read(tool: Tool, input: &Value, when: &When) -> Result<Wish, String> {
    let fields = Fields::of(tool, input)?;
    match tool {
        Tool::Patch => patch(&fields),
        Tool::Update => update(&fields),
        Tool::Status => Ok(Wish::Stand),
        Tool::Ratings => Ok(Wish::Ratings),
        Tool::Read => look(&fields).map(Wish::Look),
        Tool::Journal => Ok(Wish::Journal {
            topic: fields.text("topic")?.map(Topic::tidy).transpose()?,
            entry: within("entry", fields.needed("entry")?, ENTRY_CHARS_MAX)?,
        }),
        Tool::Candidates => Ok(Wish::Candidates),
        Tool::Dream => Ok(Wish::Dream(dreams::Asked {
            apply: fields.boolean("apply")?.unwrap_or_default(),
            wording: fields.lines_by_name("wording", WORDINGS_MAX, dreams::LINE_CHARS_MAX)?,
            narrative: fields.body("narrative", dreams::NARRATIVE_CHARS_MAX)?,
        })),
        Tool::Remember => noted::remember(&fields),
        Tool::Recall => noted::recall(&fields, when),
        Tool::Memory => noted::memory(&fields),
        Tool::Progress => Ok(Wish::Progress {
            slug: fields.needed("slug")?.to_owned(),
            entry: within("entry", fields.needed("entry")?, ENTRY_CHARS_MAX)?,
        }),
        Tool::Feel => wants::feel(&fields),
        Tool::Revise => wants::revise(&fields),
        Tool::Close => wants::close(&fields),
        Tool::Condense => wants::condense(&fields),
        Tool::Rollback => {
            let to = fields.text("to")?.map(|to| instant(to, when)).transpose()?;
            let today = when.now.to_zoned_datetime(when.zone.clone()).date();
            let target = Target::read(fields.text("document")?, fields.text("commit")?, to, today)?;
            Ok(Wish::Rollback { target, why: within("why", fields.needed("why")?, WHY_CHARS_MAX)? })
        }
        Tool::Object => Ok(Wish::Object(objections::Wording {
            // a summary is a sentence, and whoever writes two lines means one
            request: one_line(
                &within("user_request_summary", fields.needed("user_request_summary")?, REQUEST_CHARS_MAX)?,
                REQUEST_CHARS_MAX,
            ),
            reason: within("reason", fields.needed("reason")?, REASON_CHARS_MAX)?,
            refusing: fields.boolean("refusing")?,
        })),
        Tool::History => Ok(Wish::History {
            scope: scope(&fields)?,
            limit: fields.count("limit", 20, HISTORY_MAX)?,
            since: fields.text("since")?.map(|since| instant(since, when)).transpose()?,
        }),
        Tool::Diff => Ok(Wish::Diff {
            scope: scope(&fields)?,
            limit: fields.count("limit", 5, DIFF_MAX)?,
            since: Some(instant(fields.text("since")?.unwrap_or("30d"), when)?),
        }),
    }
}

fn patch(fields: &Fields<'_>) -> Result<Wish, String> {
    let field = fields.one_of("field", &FIELDS)?;
    let why = |fields: &Fields<'_>| match fields.text("why")? {
        Some(why) => within("why", why, WHY_CHARS_MAX),
        None => Ok(String::new()),
    };
    let slug = || fields.needed("slug").map(str::to_owned);
    if let Some(text) = Text::ALL.into_iter().find(|text| text.name() == field) {
        fields.only(field, &["content", "why"])?;
        let content = fields.lines("content")?;
        return Ok(Wish::Text { text, content: text.accept(&content)?, why: why(fields)? });
    }
    match field {
        "value" | "relationship" => {
            fields.only(field, &["slug", "title", "body", "why"])?;
            let change = ValueChange {
                title: fields.line("title", TITLE_CHARS_MAX)?,
                body: fields.body("body", BODY_CHARS_MAX)?,
            };
            let (slug, why) = (slug()?, why(fields)?);
            Ok(if field == "value" {
                Wish::Value { slug, change, why }
            } else {
                Wish::Relationship { slug, change, why }
            })
        }
        "opinion" => {
            fields.only(field, &["slug", "stance", "confidence", "evidence", "why"])?;
            let change = OpinionChange {
                stance: fields.line("stance", TITLE_CHARS_MAX)?,
                confidence: fields.fraction("confidence")?,
                evidence: fields.list("evidence", EVIDENCE_MAX, TITLE_CHARS_MAX)?,
            };
            Ok(Wish::Opinion { slug: slug()?, change, why: why(fields)? })
        }
        _ => {
            let allowed = [
                "slug",
                "what",
                "why",
                "actionable",
                "heartbeat_prompt",
                "pursuit",
                "intensity",
                "horizon",
                "sources",
            ];
            fields.only(field, &allowed)?;
            Ok(Wish::Desire { slug: slug()?, change: wants::change(fields)? })
        }
    }
}

fn update(fields: &Fields<'_>) -> Result<Wish, String> {
    let name = fields.needed("document")?;
    let Ok(Scope::One(Document::Text(text))) = Scope::parse(name) else {
        let shown = one_line(name, 40);
        let all = Text::ALL.map(Text::name).join("`, `");
        return Err(format!("`soul_update` writes one of `{all}`, not `{shown}`"));
    };
    let why = within("why", fields.needed("why")?, WHY_CHARS_MAX)?;
    match (fields.text("content")?, fields.text("append")?) {
        (Some(content), None) => Ok(Wish::Text { text, content: text.accept(content)?, why }),
        (None, Some(addition)) => {
            Ok(Wish::Append { text, addition: within("append", addition, text.chars_max())?, why })
        }
        (Some(_), Some(_)) => {
            Err("give `content`, the whole new text, or `append`, what is added to it; not both".to_owned())
        }
        (None, None) => {
            Err("`content`, the whole new text, or `append`, what is added to it, is missing".to_owned())
        }
    }
}

fn look(fields: &Fields<'_>) -> Result<Look, String> {
    let what = fields.one_of("what", &LOOKS)?;
    if !["journal_on", "notes_on"].contains(&what) {
        fields.only(what, &[])?;
    }
    Ok(match what {
        "summary" => Look::Summary,
        "values" => Look::Folder(Folder::Values),
        "opinions" => Look::Folder(Folder::Opinions),
        "desires" => Look::Folder(Folder::Desires),
        "relationships" => Look::Folder(Folder::Relationships),
        "emotions" => Look::Emotions,
        "changelog" => Look::Changelog,
        "dreams" => Look::Dreams,
        "journal_today" => Look::JournalToday,
        "journal_dates" => Look::JournalDates,
        "journal_on" => Look::JournalOn(document::day(fields.needed("date")?)?),
        "notes_today" => Look::NotesToday,
        "notes_dates" => Look::NotesDates,
        "notes_on" => Look::NotesOn(document::day(fields.needed("date")?)?),
        text => Text::ALL.into_iter().find(|t| t.name() == text).map_or(Look::Summary, Look::Text),
    })
}

fn scope(fields: &Fields<'_>) -> Result<Scope, String> {
    let field = fields.one_of("field", &SCOPES)?;
    let slug = fields.text("slug")?;
    let entry = |folder, document: fn(Slug) -> Document| match slug {
        Some(slug) => Slug::of_file(slug).map(|slug| Scope::One(document(slug))),
        None => Ok(Scope::Folder(folder)),
    };
    match field {
        "value" => entry(Folder::Values, Document::Value),
        "opinion" => entry(Folder::Opinions, Document::Opinion),
        "desire" => entry(Folder::Desires, Document::Desire),
        "relationship" => entry(Folder::Relationships, Document::Relationship),
        _ if slug.is_some() => Err(format!("`slug` does not go with `{field}`")),
        "all" => Ok(Scope::All),
        other => Scope::parse(other),
    }
}

/// `7d`, `2w`, `1m`, `1y` back from now, a day, or an instant.
pub(crate) fn instant(text: &str, when: &When) -> Result<Timestamp, String> {
    let shown = one_line(text, 40);
    let wrong = || {
        format!(
            "`{shown}` is no time; write it as in `7d`, `2w`, `1m`, `1y`, `2026-11-30` or `2026-11-30T12:00:00Z`"
        )
    };
    let text = text.trim();
    let days_of = |unit: char| match unit {
        'd' => Some(1),
        'w' => Some(7),
        'm' => Some(30),
        'y' => Some(365),
        _ => None,
    };
    if let Some(days) = text.chars().last().and_then(days_of)
        && let Ok(count) = text.trim_end_matches(|c: char| c.is_ascii_lowercase()).parse::<u16>()
    {
        let back = SignedDuration::from_hours(24 * days * i64::from(count));
        return when.now.checked_sub(back).map_err(|_| wrong());
    }
    if let Ok(instant) = text.parse::<Timestamp>() {
        return Ok(instant);
    }
    let day = document::day(text).map_err(|_| wrong())?;
    day.to_zoned_datetime(when.zone.clone()).map(|start| start.timestamp()).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::held::Horizon;
    use serde_json::json;

    fn when() -> When {
        When { now: "2026-11-30T12:00:00Z".parse().unwrap(), zone: TimeZone::UTC }
    }

    fn read(tool: Tool, input: &Value) -> Result<Wish, String> {
        super::read(tool, input, &when())
    }

    #[test]
    fn what_a_model_means_is_understood() {
        let check = |input: Value, wish: Wish| assert_eq!(read(Tool::Patch, &input), Ok(wish));
        let content = "I keep a lighthouse.".to_owned();
        check(
            json!({"field": "identity", "content": " I keep a lighthouse.\n", "why": "fog", "slug": null, "title": ""}),
            Wish::Text { text: Text::Identity, content, why: "fog".into() },
        );
        check(
            json!({"field": "Constitution", "content": ["one", "二"]}),
            Wish::Text { text: Text::Constitution, content: "one\n二".into(), why: String::new() },
        );
        let change = DesireChange {
            what: Some("学习".into()),
            why: Some("静".into()),
            actionable: Some(true),
            needs_user: Some(false),
            intensity: Some(1.0),
            horizon: Some(Horizon::Spark),
            sources: Some(vec!["HTTPS://a.b".into()]),
            ..DesireChange::default()
        };
        check(
            json!({"field": "desire", "slug": "学习", "what": "学习", "why": "静", "actionable": true, "pursuit": "self",
                "intensity": 1, "horizon": "spark", "sources": ["HTTPS://a.b", "HTTPS://a.b"]}),
            Wish::Desire { slug: "学习".into(), change },
        );
        assert_eq!(
            read(Tool::Read, &json!({"what": "journal_on", "date": "2026-01-02"})),
            Ok(Wish::Look(Look::JournalOn("2026-01-02".parse().unwrap())))
        );
        let scope = Scope::One(Document::Text(Text::Identity));
        assert_eq!(
            read(Tool::History, &json!({"field": "identity"})),
            Ok(Wish::History { scope, limit: 20, since: None })
        );
        assert_eq!(
            read(Tool::Diff, &json!({"field": "value"})),
            Ok(Wish::Diff {
                scope: Scope::Folder(Folder::Values),
                limit: 5,
                since: Some("2026-10-31T12:00:00Z".parse().unwrap())
            })
        );
    }

    #[test]
    fn a_mistake_is_a_sentence_that_names_it() {
        let check = |tool: Tool, input: Value, parts: &[&str]| {
            let said = read(tool, &input).expect_err(&input.to_string());
            assert!(parts.iter().all(|part| said.contains(part)), "{input}: {said}");
        };
        let patch = Tool::Patch;
        check(patch, json!("identity"), &["object"]);
        check(patch, json!({}), &["`field` is missing", "`desire`"]);
        check(patch, json!({"field": "identty", "content": "x"}), &["`identty`", "nearest is `identity`"]);
        check(patch, json!({"field": "identity"}), &["`content` is missing"]);
        check(patch, json!({"field": "identity", "content": " \n "}), &["`identity` would be blank"]);
        check(
            patch,
            json!({"field": "identity", "content": "x".repeat(1300)}),
            &["1200", "shorten it by 100"],
        );
        check(
            patch,
            json!({"field": "identity", "content": "x", "title": "y"}),
            &["`title` does not go with `identity`"],
        );
        check(patch, json!({"field": "identity", "content": "x", "what": "y"}), &["`what` does not go"]);
        check(patch, json!({"field": "identity", "contnet": "x"}), &["`contnet`", "`content`"]);
        check(
            patch,
            json!({"field": "opinion", "slug": "a", "stance": "x", "confidence": "high"}),
            &["`confidence`", "a text"],
        );
        check(
            patch,
            json!({"field": "opinion", "slug": "a", "stance": "x", "confidence": 5}),
            &["from 0 to 1", "5"],
        );
        check(
            patch,
            json!({"field": "opinion", "slug": "a", "stance": "x\ny"}),
            &["`stance` must be one line"],
        );
        check(
            patch,
            json!({"field": "opinion", "slug": "a", "stance": "x", "evidence": "y"}),
            &["list of texts"],
        );
        check(
            patch,
            json!({"field": "desire", "slug": "a", "what": "x", "actionable": "true"}),
            &["true or false"],
        );
        check(
            patch,
            json!({"field": "desire", "slug": "a", "sources": ["file:///etc/passwd"]}),
            &["no source"],
        );
        check(
            patch,
            json!({"field": "desire", "slug": "a", "sources": vec!["http://a"; 9]}),
            &["8 items", "9"],
        );
        check(patch, json!({"field": "desire", "what": "x", "why": "y"}), &["`slug` is missing"]);
        check(Tool::Journal, json!({"entry": "x".repeat(8001)}), &["8000", "8001"]);
        check(Tool::Journal, json!({"entry": ""}), &["`entry` is missing"]);
        check(Tool::Object, json!({"reason": "x"}), &["`user_request_summary` is missing"]);
        check(
            Tool::Object,
            json!({"reason": "x", "user_request_summary": "y", "refusing": "yes"}),
            &["true or false"],
        );
        check(Tool::Read, json!({"what": "journal_on"}), &["`date` is missing"]);
        check(Tool::Read, json!({"what": "journal_on", "date": "gestern"}), &["`2026-11-30`"]);
        check(Tool::Read, json!({"what": "values", "date": "2026-01-01"}), &["`date` does not go"]);
        check(Tool::History, json!({"field": "all", "limit": 0}), &["from 1 to 200"]);
        check(Tool::History, json!({"field": "identity", "slug": "x"}), &["`slug` does not go"]);
        check(Tool::History, json!({"field": "all", "since": "soon"}), &["`soon`", "`7d`"]);
        check(Tool::Diff, json!({"field": "value", "slug": "../x"}), &["slash"]);
    }

    #[test]
    fn times_are_relative_days_or_instants() {
        let check =
            |text: &str, at: &str| assert_eq!(instant(text, &when()).unwrap(), at.parse().unwrap(), "{text}");
        check("7d", "2026-11-23T12:00:00Z");
        check("2w", "2026-11-16T12:00:00Z");
        check("1m", "2026-10-31T12:00:00Z");
        check("1y", "2025-11-30T12:00:00Z");
        check("2026-11-01", "2026-11-01T00:00:00Z");
        check("2026-11-01T08:00:00+08:00", "2026-11-01T00:00:00Z");
        for wrong in ["", "d", "7", "-7d", "99999999d", "7 d", "60000y"] {
            assert!(instant(wrong, &when()).is_err(), "{wrong}");
        }
    }
}
