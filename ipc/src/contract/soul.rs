//! What may be asked of the soul: the process that holds the self and alone may write it.
//!
//! Who may write what follows from the *grant* of a call, which the soul derives from the caller's role and from the
//! run token it issued itself; nothing a caller says about itself counts.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Contract;

/// The soul's contract.
#[derive(Debug)]
pub enum Soul {}

impl Contract for Soul {
    const NAME: &'static str = "soul";
    const VERSION: u32 = 1;
    type Request = Request;
    type Reply = Reply;
    type Notice = Notice;
}

/// A question to the soul. All may be asked again with the same request id; what writes then writes once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "method", content = "params", rename_all = "snake_case")]
pub enum Request {
    /// How she is: answered by [`Reply::Status`].
    Status,
    /// Everything a prompt is built from: answered by [`Reply::Snapshot`].
    Snapshot,
    /// How strong her desires are at this moment, which a snapshot, that has no clock, cannot say: answered by [`Reply::Drives`].
    Drives,
    /// The tools she may use on herself: answered by [`Reply::Tools`].
    Tools,
    /// Use one of them: answered by [`Reply::Called`], also when the tool refuses. Asked twice with one request id, it writes once.
    Call(Call),
    /// Draw the seed of a self that is not born yet: answered by [`Reply::Conceived`], or refused when she is born.
    Conceive,
    /// Give birth: answered by [`Reply::Born`], or refused when she is born or the draft is unknown. One commit.
    Birth(Birth),
    /// Open a run of her own time, which only the heartbeat may, or a reflection, which only the agent may. Answered by
    /// [`Reply::RunOpened`].
    OpenRun {
        /// What kind of time it is.
        kind: RunKind,
        /// What is done in it: `desire:learn-rust`.
        task: String,
    },
    /// One document as it stands: answered by [`Reply::Document`].
    Read {
        /// Its name or path: `identity`, `IDENTITY.md`, `desires/learn-rust`, `journal/2026-11-30`.
        document: String,
    },
    /// What changed, newest first: answered by [`Reply::History`].
    History {
        /// Of one document; of everything without.
        document: Option<String>,
        /// At most so many; the soul has an upper bound of its own.
        limit: u32,
        /// Nothing older.
        since: Option<Timestamp>,
    },
    /// How one document changed, newest first: answered by [`Reply::Diff`].
    Diff {
        /// The document.
        document: String,
        /// Nothing older.
        since: Option<Timestamp>,
        /// At most so many changes.
        limit: u32,
    },
    /// Bring something back as it was; only a person may. Answered by [`Reply::RolledBack`], which is a preview unless
    /// the request says `apply`. Asked twice with one request id, it writes once.
    Rollback(Rollback),
    /// Where a line of a document comes from: answered by [`Reply::Why`].
    Why {
        /// The document.
        document: String,
        /// Which line of it, counted from 1 as `Read` shows them.
        line: u32,
    },
    /// Look now for edits from outside, which is done by itself as well: answered by [`Reply::Looked`]. Only the soul
    /// itself and the supervisor may ask.
    Look,
    /// Look whether everything is as it should be: answered by [`Reply::Checked`].
    Check {
        /// Mend what can be mended; only a person may ask for that.
        repair: bool,
        /// Set by the supervisor alone, where the peer is a person.
        #[serde(default)]
        human: bool,
    },
    /// Write one document in a person's name; only a person may. Answered by [`Reply::Edited`].
    Edit(Edit),
    /// Rate one of her replies; only a person may. Answered by [`Reply::Rated`].
    Rate(Rate),
    /// The objections she raised, newest first: answered by [`Reply::Objections`].
    Objections {
        /// At most so many; the soul has an upper bound of its own.
        limit: u32,
        /// Only those that were not shown to anybody yet.
        open: bool,
    },
    /// What she noticed again and again in her journal, and what a dream would make of it now: answered by
    /// [`Reply::Candidates`].
    Candidates,
    /// Her notes, looked at by somebody else, which gains them no hit: answered by [`Reply::Notes`].
    Notes {
        /// Only those that have these words, the best first; without, all of them, the newest first.
        query: Option<String>,
        /// At most so many; the soul has an upper bound of its own.
        limit: u32,
    },
    /// What became of an objection in the turn it was raised in; only the agent may say so, and only the first word
    /// counts. Answered by [`Reply::Objections`] with that one.
    Surfaced(Surfaced),
}

/// One document in a person's words.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    /// Its name or path.
    pub document: String,
    /// The whole new text.
    pub text: String,
    /// The text it was made from: where the document says something else by now, it is refused.
    pub before: Option<String>,
    /// Why.
    #[serde(default)]
    pub why: String,
    /// Set by the supervisor alone, where the peer is a person.
    #[serde(default)]
    pub human: bool,
}

/// What a person thinks of a reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    /// How good it was.
    pub score: Score,
    /// The session it was given in.
    pub session: Option<String>,
    /// Which reply: the `messageId` of the answer to its prompt. Rated again, the newest rating counts.
    pub message: String,
    /// Set by the supervisor alone, where the peer is a person.
    #[serde(default)]
    pub human: bool,
}

/// How good a reply was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Score {
    /// -1
    Down,
    /// 0
    Meh,
    /// +1
    Up,
}

/// What became of an objection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Surfaced {
    /// Which one: [`Objection::id`].
    pub id: String,
    /// Who told the person.
    pub by: SurfacedBy,
    /// How the turn ended: a stop reason of the protocol, `error`, or `interrupted`.
    pub outcome: String,
    /// What the person had asked for, in their words; cut by the soul.
    pub asked: String,
}

/// Who told the person of an objection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SurfacedBy {
    /// She did, in her reply.
    Reply,
    /// The runtime did, because she had not.
    Runtime,
}

/// What is to be brought back: a document as of a commit or a time, one commit undone, or everything shown as of a time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rollback {
    /// One document; without it everything a commit changed, or everything that is shown.
    pub document: Option<String>,
    /// The commit, by at least four digits of its id.
    pub commit: Option<String>,
    /// The time, where no commit is named.
    pub to: Option<Timestamp>,
    /// Why.
    #[serde(default)]
    pub why: String,
    /// Do it; without, only say what would be done.
    pub apply: bool,
    /// The newest commit when this was previewed: where another has come since, it is refused.
    #[serde(default)]
    pub seen: Option<String>,
    /// Set by the supervisor alone, where the peer is a person.
    #[serde(default)]
    pub human: bool,
}

/// The use of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Which tool.
    pub tool: String,
    /// What the model gave it.
    pub input: Value,
    /// The run it belongs to; without one it is her part of a conversation.
    pub run: Option<RunToken>,
    /// The session it happens in.
    pub session: Option<String>,
    /// The model that asked: `offline`, `openai/gpt-…`.
    pub model: String,
    /// Whether what it writes stems from outside (web, files, tools, other people), as far as the agent can tell.
    #[serde(default)]
    pub outside: bool,
}

/// A birth, worded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Birth {
    /// The draft that was conceived.
    pub draft: String,
    /// The words of a model; without them the deterministic wording of the offline case.
    pub wording: Option<Wording>,
    /// The model that gave the words.
    pub model: String,
}

/// The first documents, in a model's words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wording {
    /// What she is called.
    pub name: String,
    /// Who she is.
    pub identity: String,
    /// What she is for.
    pub purpose: String,
    /// What she holds to.
    pub constitution: String,
}

/// A kind of her own time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunKind {
    /// A desire is pursued.
    Heartbeat,
    /// The weekly mirror.
    Examen,
    /// What has settled goes into the documents.
    Dream,
    /// A session is looked back on; its task is `session:` and the session's id. The agent opens it.
    Reflect,
}

impl RunKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Heartbeat, Self::Examen, Self::Dream, Self::Reflect];

    /// As a caller and an origin name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Heartbeat => "heartbeat",
            Self::Examen => "examen",
            Self::Dream => "dream",
            Self::Reflect => "reflect",
        }
    }
}

/// The proof that a run was opened, made and checked by the soul alone; it outlives a restart of the soul.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunToken(pub String);

/// An answer of the soul.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// To [`Request::Status`].
    Status(Status),
    /// To [`Request::Snapshot`].
    Snapshot(Box<Snapshot>),
    /// To [`Request::Drives`]: the open desires, what she may do something about first, of those the strongest first.
    Drives(Vec<Drive>),
    /// To [`Request::Tools`].
    Tools(Vec<ToolSpec>),
    /// To [`Request::Call`].
    Called(Called),
    /// To [`Request::Conceive`].
    Conceived {
        /// Names this draft in [`Request::Birth`]; a restart of the soul forgets it.
        draft: String,
        /// The temperament that was drawn.
        big_five: BigFive,
    },
    /// To [`Request::Birth`].
    Born(Written),
    /// To [`Request::OpenRun`].
    RunOpened {
        /// To be shown with every call of this run.
        run: RunToken,
    },
    /// To [`Request::Read`].
    Document {
        /// Where it lies in the soul: `identity.md`.
        path: String,
        /// What it says.
        text: String,
    },
    /// To [`Request::History`].
    History {
        /// Newest first.
        entries: Vec<Entry>,
    },
    /// To [`Request::Diff`].
    Diff {
        /// Where the document lies in the soul.
        path: String,
        /// Unified diffs, each under the line of its commit.
        text: String,
    },
    /// To [`Request::Rollback`].
    RolledBack(RolledBack),
    /// To [`Request::Why`].
    Why(Why),
    /// To [`Request::Look`].
    Looked {
        /// What is not as it should be, each a sentence with what to do.
        notices: Vec<String>,
        /// Whether something is still being written, so that it is worth looking again soon.
        again: bool,
    },
    /// To [`Request::Check`].
    Checked {
        /// What was found, the worst first.
        findings: Vec<Finding>,
    },
    /// To [`Request::Edit`]: the receipt, or nothing where the document says this already.
    Edited {
        /// The receipt.
        written: Option<Written>,
    },
    /// To [`Request::Rate`].
    Rated {
        /// What all ratings together come to, from 0 to 1; nothing where there are too few to say.
        weight: Option<f64>,
        /// What that allows her, as a sentence.
        gate: String,
        /// The receipt; nothing where this was rated so already.
        written: Option<Written>,
    },
    /// To [`Request::Objections`] and [`Request::Surfaced`].
    Objections {
        /// Newest first.
        objections: Vec<Objection>,
    },
    /// To [`Request::Candidates`].
    Candidates(Box<Candidates>),
    /// To [`Request::Notes`].
    Notes(Notes),
    /// Not done: which rule, in one sentence that can be acted on.
    Refused {
        /// The sentence.
        reason: String,
    },
}

/// What she noticed again and again. `lisa candidates --json` prints this.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidates {
    /// What is enough for a dream, what there is most of first.
    pub qualifying: Vec<Candidate>,
    /// What lacks one observation, or days alone.
    pub near: Vec<Candidate>,
    /// How many lack more.
    pub far: u32,
    /// The files of her journal of which nobody can say who wrote which line; they do not count.
    pub unsure: Vec<String>,
    /// What a dream would make of it now, in words for whoever reads.
    pub dream: String,
}

/// One thing she noticed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// Its topic, or a name for its sentence.
    pub key: String,
    /// How often she wrote of it since it was last dreamt of.
    pub observations: u32,
    /// On how many days.
    pub days: u32,
    /// Whether it was dreamt of before.
    pub again: bool,
    /// What is missing, in words; nothing where it qualifies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacks: Option<String>,
    /// The newest entries that speak for it, oldest first: where each stands, and how it begins.
    pub evidence: Vec<String>,
}

/// Her notes. `lisa memory --json` prints this.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notes {
    /// How many there are in all.
    pub all: u32,
    /// In how many conversations a note must be recalled before it may go into `memory`.
    pub hits_needed: u32,
    /// Those that were asked for.
    pub notes: Vec<Note>,
}

/// One note.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Which: `2026-11-30#1`.
    pub address: String,
    /// What it is about: `self`, `user`, `talk`, `lesson`, `pref`.
    pub about: String,
    /// When she wrote it.
    pub at: Timestamp,
    /// What it says.
    pub text: String,
    /// Whether its words are somebody else's.
    pub outside: bool,
    /// In how many conversations it was recalled.
    pub hits: u32,
    /// Whether it is in `memory`.
    pub kept: bool,
}

impl Notes {
    /// Those that were needed often enough for `memory` and are not in it.
    pub fn ready(&self) -> impl Iterator<Item = &Note> {
        self.notes.iter().filter(|note| note.hits >= self.hits_needed && !note.kept && !note.outside)
    }
}

/// What a roll-back does, or did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RolledBack {
    /// The files it changes, and how.
    pub changes: Vec<Restored>,
    /// The commits whose work it undoes, newest first, at most fifty.
    pub undoes: Vec<Entry>,
    /// What stays as it is although it was named, each a sentence.
    pub left: Vec<String>,
    /// The newest commit this is about; to be shown again with `apply`.
    pub seen: Option<String>,
    /// The receipt, where it was done.
    pub written: Option<Written>,
}

/// One file of a roll-back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restored {
    /// Where it lies in the soul.
    pub path: String,
    /// Whether it goes away: it did not exist then.
    pub removed: bool,
    /// How many lines come.
    pub lines_added: u32,
    /// How many lines go.
    pub lines_removed: u32,
}

/// Where a line comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Why {
    /// Where the document lies in the soul.
    pub path: String,
    /// Which line.
    pub line: u32,
    /// What it says, without its ending.
    pub text: String,
    /// The commit that brought it; none where it is in no commit yet.
    pub entry: Option<Entry>,
    /// Whether it is older than the part of the history that was looked through, whose oldest commit `entry` then is.
    pub older: bool,
}

/// Something a check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// Where: a path.
    pub place: String,
    /// What is wrong there, as a sentence.
    pub what: String,
    /// Whether it was mended just now.
    pub mended: bool,
    /// What to do, or what was done.
    pub remedy: String,
}

/// How bad a finding is; the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Nothing can be written, or something is lost.
    Broken,
    /// Something is wrong that does not stop her.
    Wrong,
    /// Worth knowing.
    Note,
}

/// What came of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Called {
    /// What the model is told.
    pub output: String,
    /// Whether it is bad news: a refusal, or input that does not fit.
    pub failed: bool,
    /// What was written, where something was.
    pub written: Option<Written>,
    /// The objection that was raised, where one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objection: Option<Box<Objection>>,
}

impl Called {
    /// What was told and nothing else.
    pub fn said(output: String) -> Self {
        Self { output, failed: false, written: None, objection: None }
    }

    /// Bad news.
    pub fn failed(output: String) -> Self {
        Self { failed: true, ..Self::said(output) }
    }

    /// A write.
    pub fn wrote(output: String, written: Written) -> Self {
        Self { written: Some(written), ..Self::said(output) }
    }
}

/// An objection she raised: her "no", which nobody can keep silent about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Objection {
    /// Names it: eight hexadecimal digits.
    pub id: String,
    /// When it was raised.
    pub at: Timestamp,
    /// In which session.
    pub session: Option<String>,
    /// What she was asked to do, in her words.
    pub request: String,
    /// Why she objects.
    pub reason: String,
    /// Whether she refuses; else she goes along, and says what she thinks of it.
    pub refusing: bool,
    /// How often she objected to the same thing, this time included.
    pub times: u32,
    /// What became of it; nothing while nobody was told.
    pub surfaced: Option<Surfaced>,
    /// When that was.
    pub surfaced_at: Option<Timestamp>,
}

/// The receipt of a write. When it arrives, the commit stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// The commit's id, 40 hexadecimal digits.
    pub commit: String,
    /// The number of commits there are now.
    pub sequence: u64,
    /// The prompt version there is now.
    pub prompt_version: u64,
    /// What changed, relative to the soul.
    pub paths: Vec<String>,
}

/// How the soul is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Whether there is a self.
    pub born: bool,
    /// What she is called; empty before birth.
    pub name: String,
    /// The newest commit; none before the first, or in a home that was never under git.
    pub commit: Option<String>,
    /// The number of commits.
    pub sequence: u64,
    /// The version of what the prompt shows.
    pub prompt_version: u64,
    /// What is not as it should be, each a sentence with what to do.
    pub notices: Vec<String>,
}

/// Everything a prompt is built from, as of one version.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The number of commits.
    pub sequence: u64,
    /// The version of what is shown here; equal versions have equal snapshots.
    pub prompt_version: u64,
    /// When she was born; nothing before.
    pub born_at: Option<String>,
    /// Her temperament.
    pub big_five: Option<BigFive>,
    /// What she is called.
    pub name: String,
    /// Who she is.
    pub identity: Document,
    /// What she is for.
    pub purpose: Document,
    /// What she holds to.
    pub constitution: Document,
    /// Her voice, her stance, her boundaries.
    #[serde(default)]
    pub soul: Document,
    /// Her model of the person.
    #[serde(default)]
    pub user: Document,
    /// What she keeps in mind.
    #[serde(default)]
    pub memory: Document,
    /// What a person has laid down, and she cannot change.
    #[serde(default)]
    pub rules: Document,
    /// What she feels, by name, as of the last change.
    #[serde(default)]
    pub emotions: Vec<Feeling>,
    /// Her page about each person, by slug.
    #[serde(default)]
    pub relationships: Vec<Held>,
    /// What she values, by slug.
    pub values: Vec<Held>,
    /// What she thinks, by slug.
    pub opinions: Vec<Opinion>,
    /// What she wants, by slug, closed ones too.
    pub desires: Vec<Desire>,
}

/// One of the documents that are text alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    /// What it says, trimmed.
    pub text: String,
    /// What a reader should know about it (it is over its budget), as a sentence.
    pub notice: Option<String>,
}

/// Something she feels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Feeling {
    /// What: `curiosity`.
    pub name: String,
    /// How much, -1 to 1, as of the last change.
    pub value: f64,
}

/// Something she values, or her page about a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Its file's name without `.md`.
    pub slug: String,
    /// In a few words.
    pub title: String,
    /// In full.
    pub body: String,
}

/// Something she thinks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Opinion {
    /// Its file's name without `.md`.
    pub slug: String,
    /// The opinion.
    pub stance: String,
    /// How sure she is, 0 to 1.
    pub confidence: f64,
    /// What speaks for it.
    pub evidence: Vec<String>,
}

/// Something she wants.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Desire {
    /// Its file's name without `.md`.
    pub slug: String,
    /// What it is.
    pub what: String,
    /// Why she wants it.
    pub why: String,
    /// Whether she may do something about it.
    pub actionable: bool,
    /// Whether it has ended.
    pub closed: bool,
    /// Whether it waits for a person.
    pub needs_user: bool,
    /// How strong it is, 0 to 1.
    pub intensity: f64,
    /// How long such a wish lasts: `spark`, `season`, `enduring`.
    pub horizon: String,
    /// When it was born, as the file says it.
    pub born: String,
    /// When it last changed, as the file says it; when it was born where it says nothing.
    #[serde(default)]
    pub updated: String,
    /// When it last changed, or was last pursued, as the files say it.
    #[serde(default)]
    pub active: String,
    /// When she last looked whether she still wants it, as the file says it.
    #[serde(default)]
    pub reviewed: Option<String>,
    /// What she means to do about it in her own time.
    pub heartbeat: Option<String>,
    /// Where it comes from: addresses of the web.
    #[serde(default)]
    pub sources: Vec<String>,
    /// What came before the entries of `progress`, condensed.
    #[serde(default)]
    pub earlier: Option<String>,
    /// What she has written about pursuing it, oldest first, at most the last ten entries.
    pub progress: Vec<Progress>,
}

/// How strong a desire is at the moment it is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Drive {
    /// Which: [`Desire::slug`].
    pub slug: String,
    /// Its intensity, 0 to 1, less what has faded since it was last active.
    pub strength: f64,
    /// Whether it is time to look whether she still wants it.
    pub review_due: bool,
}

/// One entry of a desire's progress.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// When, as the file says it.
    pub at: String,
    /// What.
    pub text: String,
}

/// Five numbers from 0 to 1, drawn at birth.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BigFive {
    /// Openness to experience.
    pub openness: f64,
    /// Conscientiousness.
    pub conscientiousness: f64,
    /// Extraversion.
    pub extraversion: f64,
    /// Agreeableness.
    pub agreeableness: f64,
    /// Neuroticism.
    pub neuroticism: f64,
}

/// A tool as a model is shown it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// What it is for, in the model's words.
    pub description: String,
    /// The JSON Schema of its input, an object.
    pub input_schema: Value,
    /// Whether it writes.
    pub writes: bool,
}

/// One commit, as history shows it. `lisa soul history --json` prints these fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its id, 40 hexadecimal digits.
    pub commit: String,
    /// When.
    pub time: Timestamp,
    /// What was done: `patch`, `journal`, `birth`; the whole subject where it is not of our grammar.
    pub op: String,
    /// On what; empty where the subject is not of our grammar.
    pub path: String,
    /// By whom: `soul_patch`, `heartbeat`, `manual`.
    pub caller: String,
    /// From where: `chat`, `heartbeat`, `birth`; empty in commits of the original.
    pub origin: String,
    /// Why, in the words of whoever changed it.
    pub why: String,
    /// What it rests on, where it rests on something that she wrote before: one place each, and what speaks for it there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
    /// All other trailers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub trailers: BTreeMap<String, String>,
}

/// What the soul tells without being asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "method", content = "params", rename_all = "snake_case")]
pub enum Notice {
    /// A commit was made. Sent after the write was answered or together with it, once a commit, in order.
    Changed(Changed),
}

/// A commit that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// The number of commits there are now.
    pub sequence: u64,
    /// The prompt version there is now.
    pub prompt_version: u64,
    /// The commit.
    pub commit: String,
    /// What was done.
    pub op: String,
    /// What changed.
    pub paths: Vec<String>,
    /// By whom.
    pub caller: String,
    /// From where.
    pub origin: String,
    /// What she is called now.
    pub name: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{from_frame, to_frame};
    use serde_json::json;

    #[test]
    fn the_questions_are_pinned() {
        let check = |request: Request, method: &str, params: Value| {
            assert_eq!(to_frame(&request), (method.to_owned(), params.clone()));
            assert_eq!(from_frame::<Request>(method, params).unwrap(), request);
        };
        check(Request::Status, "status", Value::Null);
        check(Request::Drives, "drives", Value::Null);
        check(Request::Candidates, "candidates", Value::Null);
        check(
            Request::Notes { query: Some("海".into()), limit: 5 },
            "notes",
            json!({"query": "海", "limit": 5}),
        );
        check(
            Request::Call(Call {
                tool: "soul_patch".into(),
                input: json!({"field": "name"}),
                run: Some(RunToken("t".into())),
                session: None,
                model: "offline".into(),
                outside: false,
            }),
            "call",
            json!({"tool": "soul_patch", "input": {"field": "name"}, "run": "t", "session": null, "model": "offline",
                "outside": false}),
        );
        check(
            Request::OpenRun { kind: RunKind::Heartbeat, task: "desire:x".into() },
            "open_run",
            json!({"kind": "heartbeat", "task": "desire:x"}),
        );
        check(
            Request::History { document: Some("identity".into()), limit: 20, since: None },
            "history",
            json!({"document": "identity", "limit": 20, "since": null}),
        );
        check(
            Request::Why { document: "identity".into(), line: 2 },
            "why",
            json!({"document": "identity", "line": 2}),
        );
        check(
            Request::Check { repair: true, human: false },
            "check",
            json!({"repair": true, "human": false}),
        );
        assert_eq!(
            from_frame::<Request>("rollback", json!({"commit": "abcd", "apply": false})).unwrap(),
            Request::Rollback(Rollback { commit: Some("abcd".into()), ..Rollback::default() })
        );
        assert_eq!(
            from_frame::<Request>("stauts", Value::Null).unwrap_err().code,
            crate::wire::code::METHOD_NOT_FOUND
        );
        assert_eq!(
            from_frame::<Request>("read", json!({})).unwrap_err().code,
            crate::wire::code::INVALID_PARAMS
        );
    }

    #[test]
    fn the_answers_and_the_news_are_pinned() {
        let written =
            Written { commit: "c".into(), sequence: 2, prompt_version: 2, paths: vec!["identity.md".into()] };
        assert_eq!(
            serde_json::to_value(Reply::Called(Called::wrote("ok".into(), written))).unwrap(),
            json!({"called": {"output": "ok", "failed": false, "written":
                {"commit": "c", "sequence": 2, "prompt_version": 2, "paths": ["identity.md"]}}})
        );
        let drive = Drive { slug: "a".into(), strength: 0.5, review_due: true };
        assert_eq!(
            serde_json::to_value(Reply::Drives(vec![drive])).unwrap(),
            json!({"drives": [{"slug": "a", "strength": 0.5, "review_due": true}]})
        );
        let candidate = Candidate {
            key: "identity:name".into(),
            observations: 2,
            days: 1,
            again: false,
            lacks: Some("1 observation".into()),
            evidence: vec!["journal/2026-11-30.md#1 “Lisa”".into()],
        };
        assert_eq!(
            serde_json::to_value(&candidate).unwrap(),
            json!({"key": "identity:name", "observations": 2, "days": 1, "again": false, "lacks": "1 observation",
                "evidence": ["journal/2026-11-30.md#1 “Lisa”"]})
        );
        let note = |hits, kept, outside| Note {
            address: "2026-11-30#1".into(),
            about: "user".into(),
            at: "2026-11-30T12:00:00Z".parse().unwrap(),
            text: "海".into(),
            outside,
            hits,
            kept,
        };
        let notes =
            vec![note(3, false, false), note(3, true, false), note(3, false, true), note(2, false, false)];
        let notes = Notes { all: 4, hits_needed: 3, notes };
        assert_eq!(notes.ready().count(), 1);
        assert_eq!(
            serde_json::to_value(&notes.notes[0]).unwrap(),
            json!({"address": "2026-11-30#1", "about": "user", "at": "2026-11-30T12:00:00Z", "text": "海",
                "outside": false, "hits": 3, "kept": false})
        );
        assert_eq!(
            serde_json::to_value(Reply::Refused { reason: "no".into() }).unwrap(),
            json!({"refused": {"reason": "no"}})
        );
        let changed = Notice::Changed(Changed {
            sequence: 2,
            prompt_version: 2,
            commit: "c".into(),
            op: "patch".into(),
            paths: vec!["identity.md".into()],
            caller: "soul_patch".into(),
            origin: "chat".into(),
            name: "Lisa".into(),
        });
        assert_eq!(
            to_frame(&changed),
            (
                "changed".to_owned(),
                json!({"sequence": 2, "prompt_version": 2, "commit": "c", "op": "patch", "paths": ["identity.md"],
                    "caller": "soul_patch", "origin": "chat", "name": "Lisa"})
            )
        );
    }
}
