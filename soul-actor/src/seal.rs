//! `soul.lock.json`: the hashes that show whether a document was changed behind her back.
//!
//! The original seals its texts in it, and so do we: the file has the length of their number. What else was changed behind
//! her back shows without it, since her history is known commit by commit (`repository/strangers.rs`). A write of ours
//! renews the hash of the file it wrote and of no other: renewing all would launder whatever was done to the rest (which
//! is what the original did). Everything else in the file is kept.

use ipc::digest::sha256_hex;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::{document::Document, rollback::parse};

/// Where it lies.
pub(crate) const PATH: &str = "soul.lock.json";

/// Whether a file is one of those that are sealed.
pub(crate) fn is_sealed(path: &str) -> bool {
    matches!(parse(path), Some(Document::Text(_)))
}

/// The file's new bytes, after `files` (path and bytes; none where it was removed) were written.
pub(crate) fn renew(old: Option<&[u8]>, files: &[(&str, Option<&[u8]>)], now: Timestamp) -> Vec<u8> {
    let read = old.and_then(|old| serde_json::from_slice(old).ok());
    let mut seal = match read {
        Some(Value::Object(seal)) => seal,
        _ => Map::new(),
    };
    if !seal.get("hashes").is_some_and(Value::is_object) {
        seal.insert("hashes".to_owned(), json!({}));
    }
    for (path, bytes) in files {
        match bytes {
            Some(bytes) => seal["hashes"][*path] = json!(sha256_hex(bytes)),
            None => {
                // the order of the others stays as it is
                seal["hashes"].as_object_mut().and_then(|hashes| hashes.shift_remove(*path));
            }
        }
    }
    seal.insert("savedAt".to_owned(), json!(format!("{now:.3}")));
    serde_json::to_vec_pretty(&seal).expect("a map of texts is JSON")
}

/// The sealed paths with their hashes; a file that is broken seals nothing.
pub(crate) fn sealed(bytes: &[u8]) -> Vec<(String, String)> {
    let seal: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let hashes = seal["hashes"].as_object().into_iter().flatten();
    hashes.filter_map(|(path, hash)| Some((path.clone(), hash.as_str()?.to_owned()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn whatever_lies_in_a_seal_besides_and_however_a_file_is_called_it_reads_back(
            (path, other) in (proptest::prelude::any::<String>(), proptest::prelude::any::<String>()),
            bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..40),
        ) {
            let now: Timestamp = "2026-11-30T12:00:00Z".parse().unwrap();
            let old = json!({"hashes": {&other: "kept"}, "more": &other}).to_string();
            let new = renew(Some(old.as_bytes()), &[(&path, Some(&bytes))], now);
            let sealed = sealed(&new);
            proptest::prop_assert!(sealed.contains(&(path.clone(), sha256_hex(&bytes))));
            proptest::prop_assert!(path == other || sealed.contains(&(other.clone(), "kept".to_owned())));
            let read: Value = serde_json::from_slice(&new).unwrap();
            proptest::prop_assert_eq!(&read["more"], &json!(other));
        }
    }

    #[test]
    fn only_the_hash_of_what_was_written_is_renewed() {
        let now: Timestamp = "2026-11-30T12:00:00Z".parse().unwrap();
        let old = br#"{"hashes":{"name.md":"a","purpose.md":"forged"},"savedAt":"x","more":1}"#;
        let new: Value = serde_json::from_slice(&renew(Some(old), &[("name.md", Some(b""))], now)).unwrap();
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(
            new,
            json!({"hashes": {"name.md": empty, "purpose.md": "forged"}, "savedAt": "2026-11-30T12:00:00.000Z", "more": 1})
        );
        for broken in [None, Some(&b"["[..]), Some(b"[1]"), Some(br#"{"hashes":7}"#)] {
            let new: Value = serde_json::from_slice(&renew(broken, &[("name.md", Some(b""))], now)).unwrap();
            assert_eq!(new["hashes"], json!({"name.md": empty}));
        }
        let old = br#"{"hashes":{"values/x.md":"a","name.md":"b"}}"#;
        let left = renew(Some(old), &[("values/x.md", None)], now);
        assert_eq!(sealed(&left), [("name.md".to_owned(), "b".to_owned())]);
        assert_eq!(sealed(b"["), []);
    }
}
