//! Looking for what was said, in all conversations: the newest files first, each read a line at a time, the best places kept.

use std::cmp::Reverse;

use ipc::{
    contract::sessions::{Found, LIMIT_MAX, Place, Speaker},
    text::{Sought, one_line},
};

use super::{
    Catalog,
    archive::by,
    file::{self, Entry, SessionError},
};
use crate::provider::Message;

/// How much one question reads: some seconds of work.
const READ_BYTES_MAX: u64 = 512 << 20;
/// The longest excerpt, in characters.
const EXCERPT_CHARS_MAX: usize = 160;

/// Why nothing can be looked for.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SearchError {
    /// There is nothing in it to look for.
    #[error("`{query}` has neither a letter nor a digit to look for; name a few words")]
    Empty {
        /// What was asked.
        query: String,
    },
    /// The sessions cannot be read.
    #[error(transparent)]
    Session(#[from] SessionError),
}

impl Catalog {
    /// Where something was said, by a person or by her, the best match first and the newest of equals.
    pub(crate) fn search(&self, query: &str, limit: u32) -> Result<Found, SearchError> {
        self.search_within(query, limit, READ_BYTES_MAX)
    }

    fn search_within(&self, query: &str, limit: u32, bytes_max: u64) -> Result<Found, SearchError> {
        let sought = Sought::of(query).ok_or_else(|| SearchError::Empty { query: one_line(query, 80) })?;
        let limit = limit.min(LIMIT_MAX) as usize;
        let (mut best, mut left, mut bytes) = (Vec::new(), 0, 0);
        for (listed, path) in self.conversations()? {
            bytes += std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
            // the newest is looked into whatever its size
            if bytes > bytes_max && !(best.is_empty() && left == 0) {
                left += 1;
                continue;
            }
            let Ok((header, entries)) = file::read(&path, &listed.header.id) else { continue };
            let mut number = 0;
            for entry in entries.flatten() {
                let Entry::Message { ts, message, from, .. } = entry else { continue };
                number += 1;
                let by = by(&message, from);
                if !matches!(by, Speaker::Person | Speaker::She) {
                    continue;
                }
                let text = Message::text(&message);
                let Some(fit) = sought.fit(&text) else { continue };
                let place = Place {
                    session: header.id.clone(),
                    title: listed.title.clone(),
                    message: number,
                    time: ts,
                    by,
                    excerpt: sought.excerpt(&text, EXCERPT_CHARS_MAX),
                };
                best.push((fit, place));
                if best.len() > 2 * limit {
                    keep(&mut best, limit);
                }
            }
        }
        keep(&mut best, limit);
        Ok(Found { places: best.into_iter().map(|(_, place)| place).collect(), left })
    }
}

fn keep(best: &mut Vec<(f64, Place)>, limit: usize) {
    best.sort_by(|(a, one), (b, other)| {
        b.total_cmp(a).then_with(|| Reverse(one.time).cmp(&Reverse(other.time)))
    });
    best.truncate(limit);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{provider::Role, session::Kind};
    use jiff::{Timestamp, ZonedDateTime};

    fn catalog(sessions: &[&[(Role, &str)]]) -> (tempfile::TempDir, Catalog, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let catalog = Catalog::at(folder.path());
        let now: ZonedDateTime = "2026-11-30T08:05:06+08:00[Asia/Shanghai]".parse().unwrap();
        let mut ids = Vec::new();
        for messages in sessions {
            let id = catalog.create(Kind::Chat, "/", "offline", &now).unwrap().id;
            for (at, (role, text)) in messages.iter().enumerate() {
                let message = Message { role: *role, content: vec![crate::provider::Block::text(*text)] };
                let ts = Timestamp::from_second(i64::try_from(at).unwrap()).unwrap();
                let entry = Entry::Message { ts, message, request: None, from: None };
                file::append(&catalog.path(&id).unwrap(), &entry, false).unwrap();
            }
            ids.push(id);
        }
        (folder, catalog, ids)
    }

    #[test]
    fn what_was_said_is_found_in_both_languages_and_nothing_else_is() {
        let (_folder, catalog, ids) = catalog(&[
            &[(Role::User, "Do you remember the old lighthouse?"), (Role::Assistant, "It stood by the sea.")],
            &[(Role::User, "我想再去看那座灯塔"), (Role::Assistant, "灯塔的看守人还在等你")],
        ]);
        let check = |query: &str, places: &[(usize, u64)]| {
            let found = catalog.search(query, 10).unwrap();
            let mut got: Vec<_> = found.places.iter().map(|p| (p.session.as_str(), p.message)).collect();
            let mut expected: Vec<_> = places.iter().map(|(at, n)| (ids[*at].as_str(), *n)).collect();
            got.sort_unstable();
            expected.sort_unstable();
            assert_eq!(got, expected, "{query}");
        };
        check("Lighthouse", &[(0, 1)]);
        check("灯塔", &[(1, 1), (1, 2)]);
        check("看守人", &[(1, 2)]);
        check("submarine", &[]);
        let error = catalog.search("!?", 10).unwrap_err();
        assert!(error.to_string().contains("neither a letter"), "{error}");
    }

    #[test]
    fn the_best_come_first_and_never_more_than_asked_for() {
        let many: Vec<(Role, String)> = (0..40).map(|at| (Role::User, format!("rust lesson {at}"))).collect();
        let mut many: Vec<(Role, &str)> = many.iter().map(|(role, text)| (*role, text.as_str())).collect();
        many.push((Role::User, "a lesson in rust"));
        let (_folder, catalog, _) = catalog(&[&many]);
        let found = catalog.search("rust lesson", 5).unwrap();
        let numbers: Vec<u64> = found.places.iter().map(|place| place.message).collect();
        assert_eq!(numbers, [40, 39, 38, 37, 36]);
        assert_eq!(catalog.search("lesson rust", 1).unwrap().places.len(), 1);
        assert_eq!(catalog.search("rust", 0).unwrap().places.len(), 0);
    }

    #[test]
    fn what_was_not_looked_into_is_said() {
        let (_folder, catalog, _) =
            catalog(&[&[(Role::User, "rust")], &[(Role::User, "rust")], &[(Role::User, "rust")]]);
        let found = catalog.search_within("rust", 10, 1).unwrap();
        assert_eq!((found.places.len(), found.left), (1, 2));
    }
}
