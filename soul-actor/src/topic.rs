//! Topics: what an entry of the journal is about, so that what she notices again and again is found together.
//!
//! `identity:name`, `voice:humour`, `身份:名字`: an area and a name in it, both tidied like the slugs of new entries. What a
//! model writes in another width or case, or with the colon of another script, is the same topic.

use std::fmt;

use unicode_normalization::UnicodeNormalization as _;

use crate::slug::Slug;

/// An area and a name in it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Topic(String);

impl Topic {
    /// The topic that a model means.
    pub(crate) fn tidy(given: &str) -> Result<Self, String> {
        let wrong = |why: &str| {
            let shown = ipc::text::one_line(given, 80);
            Err(format!(
                "`{shown}` is no topic: {why}; it is an area and a name, as in `identity:name` or `voice:humour`"
            ))
        };
        let narrow: String = given.nfkc().collect();
        let Some((area, name)) = narrow.split_once(':') else { return wrong("it has no colon") };
        match (Slug::tidy(area.trim()), Slug::tidy(name.trim())) {
            (Ok(area), Ok(name)) => Ok(Self(format!("{area}:{name}"))),
            (Err(_), _) => wrong("its area cannot be used"),
            (_, Err(_)) => wrong("its name cannot be used"),
        }
    }

    /// The topic that stands here, which is one only if it is tidy already.
    pub(crate) fn read(written: &str) -> Option<Self> {
        let (area, name) = written.split_once(':')?;
        let is_tidy = |part: &str| Slug::tidy(part).is_ok_and(|slug| slug.as_str() == part);
        (is_tidy(area) && is_tidy(name)).then(|| Self(written.to_owned()))
    }

    /// The topic itself.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_topic_has_one_spelling_in_every_script() {
        let check = |given: &str, tidy: &str| assert_eq!(Topic::tidy(given).unwrap().as_str(), tidy);
        check("identity:name", "identity:name");
        check(" Identity : My Name! ", "identity:my-name");
        check("身份：名字", "身份:名字");
        check("ｖｏｉｃｅ：ｈｕｍｏｕｒ", "voice:humour");
        check("voice:humour:dry", "voice:humour-dry");
    }

    #[test]
    fn what_is_none_is_refused_with_what_would_be() {
        let check = |given: &str, why: &str| {
            let said = Topic::tidy(given).unwrap_err();
            assert!(said.contains(why) && said.contains("`identity:name`"), "{said}");
        };
        check("identity", "no colon");
        check(":name", "area");
        check("identity:…", "name");
        check("../x:name", "area");
        check("identity:a\nb", "name");
        check(&format!("identity:{}", "x".repeat(65)), "name");
    }

    proptest! {
        #[test]
        fn a_tidy_topic_reads_back_and_is_one_line(given in any::<String>(), area in "\\PC{1,8}", name in "\\PC{1,8}") {
            for given in [given, format!("{area}:{name}")] {
                if let Ok(topic) = Topic::tidy(&given) {
                    prop_assert!(!topic.as_str().contains(char::is_whitespace), "{:?}", topic);
                    prop_assert_eq!(Topic::read(topic.as_str()), Some(topic));
                }
            }
        }
    }
}
