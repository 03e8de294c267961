//! The portrait: what a prompt is built from, read from the files as they stand.
//!
//! What a person sees in the folder is what she is. Stray files, missing ones, and ones that are no text take nothing
//! else down with them: they are left out, and a notice says so.

use std::path::Path;

use ipc::contract::soul::{Document as Told, Feeling, Progress, Snapshot};

use crate::{
    document::{Document, Folder, Record, Text},
    emotions::Emotions,
    entries::{self, Log},
    held::{self, Pursuit},
    repository::{
        Versions,
        workfile::{Place, look},
    },
    seed,
    sheet::{Kind, Sheet, trimmed},
    slug::Slug,
};

/// How many entries of one folder are shown; a prompt holds fewer, and a frame must hold them all.
const ENTRIES_MAX: usize = 500;

/// How many bytes of one folder are shown, and of one text: together they fit into a frame several times.
const FOLDER_BYTES_MAX: usize = 512 * 1024;
const TEXT_BYTES_MAX: usize = 128 * 1024;

/// What is called nothing is called so, as in the original.
const NAME_DEFAULT: &str = "Lisa";

/// How she is, and what is not as it should be.
pub(crate) struct Portrait {
    /// What others are told.
    pub(crate) snapshot: Snapshot,
    /// Sentences for a person.
    pub(crate) notices: Vec<String>,
}

/// Reads everything.
pub(crate) fn portrait(root: &Path, versions: Versions, is_born: bool) -> Portrait {
    let mut reader = Reader { root, notices: Vec::new() };
    let (born_at, big_five) = reader.bytes(seed::PATH).map_or((None, None), |bytes| seed::read(&bytes));
    let name = reader.text(Text::Name).text;
    let name = if name.is_empty() && is_born { NAME_DEFAULT.to_owned() } else { name };
    let snapshot = Snapshot {
        sequence: versions.sequence,
        prompt_version: versions.prompt_version,
        born_at,
        big_five,
        name,
        identity: reader.text(Text::Identity),
        purpose: reader.text(Text::Purpose),
        constitution: reader.text(Text::Constitution),
        soul: reader.text(Text::Soul),
        user: reader.text(Text::User),
        memory: reader.text(Text::Memory),
        rules: reader.text(Text::Rules),
        emotions: reader.emotions(),
        relationships: reader
            .entries(Folder::Relationships, Kind::Value, |_, slug, sheet| held::value(slug.as_str(), sheet)),
        values: reader
            .entries(Folder::Values, Kind::Value, |_, slug, sheet| held::value(slug.as_str(), sheet)),
        opinions: reader
            .entries(Folder::Opinions, Kind::Opinion, |_, slug, sheet| held::opinion(slug.as_str(), sheet)),
        desires: reader.entries(Folder::Desires, Kind::Desire, |reader, slug, sheet| {
            held::desire(slug.as_str(), sheet, reader.pursuit(slug))
        }),
    };
    Portrait { snapshot, notices: reader.notices }
}

/// What she is called; nothing where that is not said.
pub(crate) fn name<P: Place + ?Sized>(root: &P) -> String {
    let name = look(root, Text::Name.path()).ok().flatten().unwrap_or_default();
    let name = trimmed(&String::from_utf8_lossy(&name)).to_owned();
    if name.is_empty() { NAME_DEFAULT.to_owned() } else { name }
}

/// The slugs of a folder, sorted; strays are none.
pub(crate) fn slugs<P: Place + ?Sized>(root: &P, folder: Folder) -> Vec<Slug> {
    let slug = |name: String| Slug::of_file(name.strip_suffix(".md")?).ok();
    let mut slugs: Vec<_> = root.names(folder.name()).into_iter().filter_map(slug).collect();
    slugs.sort();
    slugs
}

struct Reader<'a> {
    root: &'a Path,
    notices: Vec<String>,
}

impl Reader<'_> {
    fn bytes(&mut self, path: &str) -> Option<Vec<u8>> {
        look(self.root, path).unwrap_or_else(|error| {
            self.notices.push(ipc::exit::chain(&error));
            None
        })
    }

    fn utf8(&mut self, path: &str) -> Option<String> {
        let read = String::from_utf8(self.bytes(path)?);
        if read.is_err() {
            self.notices.push(format!("`{path}` is left out, because it is not UTF-8; save it as UTF-8"));
        }
        read.ok()
    }

    fn text(&mut self, text: Text) -> Told {
        let path = text.path();
        let noticed = self.notices.len();
        let mut read = self.utf8(path).unwrap_or_default();
        if read.len() > TEXT_BYTES_MAX {
            self.notices
                .push(format!("`{path}` is left out, because it has {} KiB; shorten it", read.len() / 1024));
            read.clear();
        }
        let read = trimmed(&read).to_owned();
        if let Some(unread) = self.notices.get(noticed) {
            // an empty text must not pass for what she is
            return Told { text: read, notice: Some(unread.clone()) };
        }
        let notice = text.notice(&read);
        self.notices.extend(notice.clone());
        Told { text: read, notice }
    }

    fn entries<T>(
        &mut self,
        folder: Folder,
        kind: Kind,
        tell: impl Fn(&mut Self, &Slug, &Sheet) -> T,
    ) -> Vec<T> {
        let slugs = slugs(self.root, folder);
        if slugs.len() > ENTRIES_MAX {
            let (name, found) = (folder.name(), slugs.len());
            self.notices.push(format!(
                "`{name}/` has {found} entries, of which the first {ENTRIES_MAX} by name are shown"
            ));
        }
        let (mut told, mut left) = (Vec::new(), FOLDER_BYTES_MAX);
        for slug in slugs.into_iter().take(ENTRIES_MAX) {
            let path = format!("{}/{slug}.md", folder.name());
            let Some(text) = self.utf8(&path) else { continue };
            let Some(rest) = left.checked_sub(text.len()) else {
                let why = "because the entries before it are too long; shorten some";
                self.notices.push(format!("`{path}` is left out, {why}"));
                continue;
            };
            left = rest;
            told.push(tell(self, &slug, &Sheet::parse(kind, &text)));
        }
        told
    }

    fn pursuit(&mut self, slug: &Slug) -> Pursuit {
        let path = Document::Progress(slug.clone()).path();
        let Some(bytes) = self.bytes(&path) else { return Pursuit::default() };
        let text = String::from_utf8_lossy(&bytes);
        let mut entries = entries::read(Log::Progress(slug.as_str()), &text);
        let shown = entries.split_off(entries.len().saturating_sub(held::PROGRESS_SHOWN_MAX));
        let progress = shown.into_iter().map(|entry| Progress { at: entry.at, text: entry.text }).collect();
        // what she condenses is within this; what somebody wrote by hand need not be
        let within = |text: String| ipc::text::prefix(&text, entries::SUMMARIES_CHARS_MAX).to_owned();
        Pursuit { earlier: entries::earlier(&text).map(within), progress }
    }

    fn emotions(&mut self) -> Vec<Feeling> {
        let Some(bytes) = self.bytes(Record::Emotions.path()) else { return vec![] };
        let read = Emotions::read(&bytes);
        self.notices.extend(read.as_ref().err().cloned());
        read.map(|emotions| emotions.shown()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn soul(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, bytes) in files {
            let place = root.path().join(path);
            std::fs::create_dir_all(place.parent().unwrap()).unwrap();
            std::fs::write(place, bytes).unwrap();
        }
        root
    }

    #[test]
    fn a3_t32_strays_are_left_out_and_progress_is_no_desire() {
        let root = soul(&[
            ("desires/learn-rust.md", b"# Learn Rust\n\nactionable: yes\n\n## why\ncalm\n"),
            ("desires/learn-rust.progress.md", b"# progress: learn-rust\n\n## 2026-01-01T00:00:00Z\n\none\n"),
            ("desires/._learn-rust.md", b"\0\0"),
            ("desires/orphan.progress.md", b"x"),
            ("desires/.hidden.md", b"x"),
            ("desires/notes.txt", b"x"),
            ("desires/bad.md", b"\xff\xfe"),
            ("desires/folder.md/x", b""),
            ("desires/\u{5b66}\u{4e60}.md", "# 学习".as_bytes()),
        ]);
        let portrait = portrait(root.path(), Versions::default(), true);
        let desires = &portrait.snapshot.desires;
        let slugs: Vec<_> = desires.iter().map(|desire| desire.slug.as_str()).collect();
        assert_eq!(slugs, ["learn-rust", "学习"]);
        assert_eq!(desires[0].progress, [Progress { at: "2026-01-01T00:00:00Z".into(), text: "one".into() }]);
        assert_eq!(portrait.notices.len(), 1, "{:?}", portrait.notices);
        assert!(portrait.notices[0].contains("`desires/bad.md`"));
    }

    #[test]
    fn what_is_missing_is_empty_and_what_is_too_long_is_shown_with_a_notice() {
        let root = soul(&[("identity.md", "灯".repeat(1300).as_bytes()), ("name.md", b" \n")]);
        let portrait = portrait(root.path(), Versions::default(), true);
        assert_eq!(portrait.snapshot.name, "Lisa");
        assert_eq!(portrait.snapshot.identity.text.chars().count(), 1300);
        assert!(portrait.snapshot.identity.notice.as_ref().unwrap().contains("100 over its budget"));
        assert_eq!(portrait.snapshot.purpose, Told::default());
        assert_eq!(portrait.notices.len(), 1);
        let empty = super::portrait(&root.path().join("nowhere"), Versions::default(), false);
        assert_eq!((empty.snapshot.name.as_str(), empty.notices.len()), ("", 0));
    }

    #[test]
    fn su2_what_she_feels_is_shown_and_a_torn_file_is_named() {
        let feelings =
            |text: &[u8]| portrait(soul(&[("emotions.json", text)]).path(), Versions::default(), true);
        let shown = feelings(br#"{"values": {"awe": 0.2, "curiosity": -0.6, "pride": 0}}"#);
        let names: Vec<_> = shown.snapshot.emotions.iter().map(|feeling| feeling.name.as_str()).collect();
        assert_eq!((names, shown.notices.len()), (vec!["curiosity", "awe"], 0));
        let torn = feelings(b"{\"values\":");
        assert_eq!((torn.snapshot.emotions.len(), torn.notices.len()), (0, 1));
        assert!(torn.notices[0].contains("`emotions.json`"), "{:?}", torn.notices);
    }

    #[test]
    fn the_last_ten_entries_of_progress_are_shown() {
        let mut progress = Vec::new();
        for n in 0..12 {
            let at = format!("2026-01-01T00:00:{n:02}Z").parse().unwrap();
            progress = entries::append(Log::Progress("x"), &progress, at, &format!("entry {n}"));
        }
        let root = soul(&[("desires/x.md", b"# x\n"), ("desires/x.progress.md", &progress)]);
        let portrait = portrait(root.path(), Versions::default(), true);
        let shown = &portrait.snapshot.desires[0].progress;
        assert_eq!(
            (shown.len(), shown[0].text.as_str(), shown[9].text.as_str()),
            (10, "entry 2", "entry 11")
        );
    }
}
