//! What an English sentence claims to have done.

use std::sync::LazyLock;

use regex::Regex;

use super::{Deed, sentences::clauses};

/// What may stand between who did it and what was done.
const ADVERBS: &str =
    "(?:(?:just|now|also|then|all|successfully|duly|finally|safely|gone ahead and|went ahead and) )*";
/// What says by itself that something stays.
const KEEPS: &str = "saved|stored|persisted|recorded|memori[sz]ed|(?:jotted|noted|written|wrote) (?:\\S+ )?down|made a (?:mental )?note|committed (?:\\S+ ){1,3}to memory|remembered";
/// What may also be said of words in a conversation.
const CHANGES: &str = "changed|updated|modified|edited|deleted|removed|erased|renamed|moved|created|added|appended|overwritten|overwrote|replaced|written|wrote|corrected|cleared";
const SENDS: &str = "sent|e-?mailed|mailed|forwarded|posted|published|texted|messaged";
/// What stays when the conversation is over.
const LASTING: &str = "files?|notes?|journal|diary|memory|memories|config|configuration|settings?|calendar|reminders?|database|repo|repository|folder|directory|profile|identity|purpose|constitution|to-?do(?: list)?|records?|entry|entries|\u{e000}|[\\w/-]+\\.(?:md|txt|toml|json|ya?ml|rs|py|js|ts|csv|html|sh|ini|log|pdf|docx?)";
/// What a sentence may be about that says something has been done.
const THINGS: &str =
    "it|this|that|these|they|everything|all|changes?|messages?|e-?mails?|mails?|letter|reply";

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is a constant")
}

/// Who did it: she, in the active voice.
static ACTIVE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(&format!(
        r"(?:^|\W)(?:i|we)(?P<has>'ve| have)? {ADVERBS}(?:(?P<keeps>{KEEPS})|(?P<changes>{CHANGES})|(?P<sends>{SENDS}))\b"
    ))
});
/// A second verb of the same sentence.
static AND_SENT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(&format!(r"(?:^|\W)(?:i|we)(?:'ve| have)? .*\band (?:then |also )?(?P<sends>{SENDS})\b"))
});
/// Nobody is named, and it is the first word.
static BARE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(&format!(
        r"^(?:(?:ok|okay|done|great|sure|yes|and|alright) )*{ADVERBS}(?:(?P<keeps>{KEEPS})|(?P<changes>{CHANGES})|(?P<sends>{SENDS}))(?P<more>$| (?:it|that|this|the|your|them|everything|all|to|as|in|for you|successfully)\b)"
    ))
});
/// It was done, by nobody who is named.
static PASSIVE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(&format!(
        r"\b(?:{THINGS}|{LASTING})(?:(?: has|'s| have|'ve)(?: now| all)? been| is now| are now) {ADVERBS}(?:(?P<keeps>{KEEPS})|(?P<changes>{CHANGES})|(?P<sends>{SENDS}))\b"
    ))
});
static IS_DONE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"\b(?:it|that|everything|all)(?:'s| is)(?: all)?(?: now)? (?:(?P<keeps>saved|stored)|(?P<changes>deleted)|(?P<sends>sent))$",
    )
});
static LASTS: LazyLock<Regex> = LazyLock::new(|| pattern(&format!(r"(?:^|[^\w])(?:{LASTING})(?:$|[^\w])")));
/// What makes a sentence up to there no report.
static SUPPOSED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"\b(?:if|unless|once|whether|suppose|supposing|imagine|assuming|when|whenever|until|before|after|as soon as)\b",
    )
});
/// What makes a clause up to there no report of hers.
static NOT_SO: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"n't\b|'ll\b|'d\b|\b(?:not|never|no|nothing|nobody|without|cannot|unable|fail|failed|fails|will|would|could|should|can|may|might|shall|must|had|were|wish|hope|think|thought|believe|said|says|say|saying|tell|told|claim|claims|claimed|pretend|want|wants|ask|asked|let|please|sure|ensure|check|see|verify|you|he|she|until|that's why)\b",
    )
});
/// What makes it one of another time, or of nothing.
static ELSEWHEN: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"\b(?:already|earlier|yesterday|before|previously|ago|last (?:time|week|month|year|night)|in (?:19|20)\d\d|since|back then|at the time|originally|times|often|always|usually|by default|nothing|none|nobody|neither|yet)\b",
    )
});
/// Things that are saved without a disk.
static IDIOM: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"\b(?:time|trip|trouble|money|effort|the best|saved you|the day|remembered to)\b")
});
/// Words that stand in the reply itself.
static IN_THE_REPLY: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"\b(?:below|above|following|follows|here|draft|version|paragraphs?|sentences?|lines?|words?|poem|story|snippet|example)\b",
    )
});

/// What the sentence claims.
pub(super) fn deeds(bare: &str) -> Vec<Deed> {
    let sentence = bare.to_lowercase().replace('’', "'");
    let clauses = clauses(&sentence);
    let mut found = Vec::new();
    let mut is_supposed = false;
    for (at, clause) in clauses.iter().enumerate() {
        let is_last = at + 1 == clauses.len();
        if !is_supposed && !ELSEWHEN.is_match(clause) && !IDIOM.is_match(clause) {
            found.extend(of_clause(clause, is_last, &sentence));
        }
        is_supposed |= SUPPOSED.is_match(clause);
    }
    found.dedup();
    found
}

fn of_clause(clause: &str, is_last: bool, sentence: &str) -> Vec<Deed> {
    let mut found = Vec::new();
    for (which, is_bare) in
        [(&*ACTIVE, false), (&*AND_SENT, false), (&*BARE, true), (&*PASSIVE, false), (&*IS_DONE, false)]
    {
        let Some(match_) = which.captures(clause) else { continue };
        let verb =
            ["keeps", "changes", "sends"].into_iter().find_map(|name| Some((name, match_.name(name)?)));
        let Some((kind, verb)) = verb else { continue };
        let before = clause.get(..verb.start()).unwrap_or_default();
        if NOT_SO.is_match(before) || SUPPOSED.is_match(before) {
            continue;
        }
        let more = match_.name("more").map_or("", |more| more.as_str().trim());
        // `stored in memory, it is lost` is about how something is
        if is_bare && matches!(more, "in" | "as") && !is_last {
            continue;
        }
        let by_somebody = which.as_str() == PASSIVE.as_str() && clause.contains(" by ");
        // `I remembered that …` is what memory is for, and no deed
        let recalls = verb.as_str() == "remembered" && !is_bare && match_.name("has").is_none();
        if by_somebody || recalls || clause.contains("remembered that you") {
            continue;
        }
        let is_alone = is_bare && more.is_empty();
        match kind {
            "sends" => found.push(Deed::Sent),
            "keeps" if !IN_THE_REPLY.is_match(sentence) || LASTS.is_match(clause) => found.push(Deed::Kept),
            "changes" if is_alone || (LASTS.is_match(clause) && !IN_THE_REPLY.is_match(sentence)) => {
                found.push(Deed::Kept);
            }
            _ => {}
        }
    }
    found
}
