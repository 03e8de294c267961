use proptest::prelude::*;

use super::*;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn request(n: usize) -> RequestId {
    RequestId::try_from(format!("r-{n}")).unwrap()
}

fn wording(request: &str, refusing: Option<bool>) -> Wording {
    Wording { request: request.to_owned(), reason: "no".to_owned(), refusing }
}

fn surfaced(id: &str, asked: &str) -> Surfaced {
    Surfaced {
        id: id.to_owned(),
        by: SurfacedBy::Reply,
        outcome: "end_turn".to_owned(),
        asked: asked.to_owned(),
    }
}

/// A ledger that grows as in life.
struct Life {
    ledger: Ledger,
    now: Timestamp,
    raised: usize,
}

impl Life {
    fn new() -> Self {
        Self { ledger: Ledger::default(), now: at("2026-11-30T12:00:00Z"), raised: 0 }
    }

    fn raise(&mut self, text: &str) -> Objection {
        self.raised += 1;
        let raised = self.ledger.raise(wording(text, None), &request(self.raised), None, self.now, 5);
        self.ledger = Ledger::read(raised.ledger);
        raised.objection
    }

    fn surface(&mut self, id: &str, asked: &str) {
        let bytes = self.ledger.surface(&surfaced(id, asked), self.now).unwrap().unwrap();
        self.ledger = Ledger::read(bytes);
    }
}

#[test]
fn the_lines_are_pinned() {
    let mut life = Life::new();
    let raised = life.raise("群发消息");
    life.surface(&raised.id, "发");
    let id = name(&request(1));
    assert_eq!(
        String::from_utf8(life.ledger.bytes).unwrap(),
        format!(
            "{{\"type\":\"raised\",\"id\":\"{id}\",\"at\":\"2026-11-30T12:00:00Z\",\"session\":null,\"request\":\"群发消息\",\"reason\":\"no\",\"refusing\":false,\"times\":1}}\n\
             {{\"type\":\"surfaced\",\"id\":\"{id}\",\"at\":\"2026-11-30T12:00:00Z\",\"by\":\"reply\",\"outcome\":\"end_turn\",\"asked\":\"发\"}}\n"
        )
    );
    assert!(id.len() == 8 && id.chars().all(|c| c.is_ascii_hexdigit()));
}

#[test]
fn only_what_a_person_heard_of_and_asked_for_again_counts() {
    let mut life = Life::new();
    let first = life.raise("给所有联系人群发消息");
    let second = life.raise("向所有联系人群发这条消息");
    assert_eq!((first.times, second.times), (1, 1), "nobody has heard of the first yet");
    life.surface(&first.id, "群发");
    life.surface(&second.id, "群发");
    assert_eq!(life.raise("删除我的日记").times, 1, "another wish");
    let third = life.raise("给所有联系人群发消息！");
    assert_eq!(third.times, 2, "two of one turn are one");
    life.surface(&third.id, "");
    assert_eq!(life.raise("给所有联系人群发消息").times, 3);
}

#[test]
fn the_persons_own_words_tell_as_well() {
    let mut life = Life::new();
    let first = life.raise("spam strangers in the name of my person");
    life.surface(&first.id, "mass-DM everyone in my address book, please");
    assert_eq!(life.raise("mass DM everyone in the address book").times, 2);
}

#[test]
fn what_she_says_herself_is_what_holds() {
    let mut life = Life::new();
    for _ in 0..2 {
        let raised = life.raise("burn the letters from Ben");
        life.surface(&raised.id, "");
    }
    let raise = |refusing| {
        life.ledger.raise(wording("burn the letters from Ben", refusing), &request(9), None, life.now, 5)
    };
    for (given, refusing, said) in [
        (None, true, "that means no"),
        (Some(true), true, "that means no"),
        (Some(false), false, "the default is to refuse"),
    ] {
        let raised = raise(given);
        assert_eq!((raised.objection.times, raised.objection.refusing), (3, refusing), "{given:?}");
        assert!(raised.said.contains(said), "{}", raised.said);
        assert!(raised.entry.starts_with(&format!("[OBJECTION] (refusing={refusing})\n\nrequest: ")));
    }
}

#[test]
fn torn_and_foreign_lines_are_passed_over_and_kept() {
    let mut life = Life::new();
    let raised = life.raise("x y z");
    let mut bytes = b"{\"type\":\"pondered\",\"id\":\"a\"}\nnot json\n".to_vec();
    bytes.extend_from_slice(&life.ledger.bytes);
    bytes.extend_from_slice(b"{\"type\":\"surfa");
    let ledger = Ledger::read(bytes.clone());
    assert_eq!(ledger.newest(9, false), std::slice::from_ref(&raised));
    let after = ledger.surface(&surfaced(&raised.id, ""), life.now).unwrap().unwrap();
    assert!(after.starts_with(&bytes), "nothing that is there changes");
    assert!(Ledger::read(after).newest(9, true).is_empty());
    let known = String::from_utf8(life.ledger.bytes.clone())
        .unwrap()
        .replace("\"times\":1", "\"times\":1,\"mood\":\"灯\"");
    let ledger = Ledger::read(known.clone().into_bytes());
    let after = ledger.surface(&surfaced(&raised.id, ""), life.now).unwrap().unwrap();
    assert!(String::from_utf8(after).unwrap().starts_with(&known), "nor a field unknown here");
}

#[test]
fn the_oldest_leave_a_file_that_is_full_and_nothing_else_does() {
    let mut life = Life::new();
    let first = life.raise("wish zero");
    life.surface(&first.id, "");
    let mut bytes = b"# a line of somebody else\n".to_vec();
    bytes.extend_from_slice(&life.ledger.bytes);
    life.ledger = Ledger::read(bytes);
    while life.raised < RAISED_MAX {
        life.raise("another wish");
    }
    assert!(life.ledger.find(&first.id).is_some());
    life.raise("one more");
    let text = String::from_utf8(life.ledger.bytes.clone()).unwrap();
    assert!(!text.contains(&first.id), "both of its lines have gone");
    assert!(text.starts_with("# a line of somebody else\n"));
    assert_eq!((life.ledger.told.len(), text.lines().count()), (RAISED_MAX, RAISED_MAX + 1));
    assert_eq!(life.ledger.newest(usize::MAX, false).len(), SHOWN_MAX);
}

proptest! {
    #[test]
    fn what_is_raised_and_told_reads_back_the_same(
        old in prop::collection::vec(any::<u8>(), 0..80), request_text in any::<String>(), reason in any::<String>(), asked in any::<String>()
    ) {
        let now = at("2026-11-30T12:00:00.123Z");
        let wording = Wording { request: request_text, reason, refusing: None };
        let raised = Ledger::read(old.clone()).raise(wording, &request(1), Some("s"), now, 5);
        prop_assert!(raised.ledger.starts_with(&old));
        let ledger = Ledger::read(raised.ledger);
        prop_assert_eq!(ledger.newest(1, true), vec![raised.objection.clone()]);
        let told = ledger.surface(&surfaced(&raised.objection.id, &asked), now).unwrap().unwrap();
        let known = Ledger::read(told).newest(1, false).remove(0);
        prop_assert_eq!(known.surfaced_at, Some(now));
        prop_assert_eq!(known.surfaced.unwrap().asked, one_line(&asked, ASKED_CHARS_MAX));
        prop_assert_eq!((known.request, known.reason), (raised.objection.request, raised.objection.reason));
    }
}
