//! Slugs: the file names, without `.md`, of values, opinions and desires.
//!
//! Two doors. What lies in a home already is taken as the original took it ([`Slug::of_file`]), so that no old entry
//! is lost. What is new is tidied first ([`Slug::tidy`]): lower case, words joined by `-`, letters of every script kept.
//! Neither lets a name leave its folder, hide itself, or pass for a desire's progress file.

use std::fmt;

/// The longest slug in UTF-16 units, as the original counts; in UTF-8 with its suffix that fits every file system.
const UNITS_MAX: usize = 64;

/// What a desire's progress file is called by, behind the slug.
const PROGRESS: &str = ".progress";

/// A name that is safe inside its folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Slug(String);

impl Slug {
    /// The slug of a file that may already exist: the original's gate, and never a progress file's name.
    pub(crate) fn of_file(name: &str) -> Result<Self, String> {
        let shown = ipc::text::one_line(name, 80);
        let refuse = |why: &str| Err(format!("`{shown}` is no usable slug: {why}"));
        match name {
            "" => refuse("it is empty; give a short name such as `learn-rust`"),
            _ if name.encode_utf16().count() > UNITS_MAX => refuse("it is longer than 64 characters"),
            _ if name.contains(['/', '\\']) => refuse("it contains a slash"),
            _ if name.starts_with('.') => refuse("it begins with a dot"),
            _ if name.contains(char::is_control) => refuse("it contains a control character"),
            _ if name.to_lowercase().ends_with(PROGRESS) => {
                refuse("names that end in `.progress` belong to the progress of desires")
            }
            _ => Ok(Self(name.to_owned())),
        }
    }

    /// The slug of something new: lower case, runs of anything but letters and digits (of any script), `_` and signs
    /// above ASCII become one `-`. What leaves its folder or hides is refused rather than bent into shape.
    pub(crate) fn tidy(name: &str) -> Result<Self, String> {
        Self::of_file(name)?;
        let mut tidy = String::new();
        for c in name.to_lowercase().chars() {
            if kept(c) {
                tidy.push(c);
            } else if !tidy.is_empty() && !tidy.ends_with('-') {
                tidy.push('-');
            }
        }
        let mut units = 0;
        let tidy: String = tidy
            .chars()
            .take_while(|c| {
                units += c.len_utf16();
                units <= UNITS_MAX
            })
            .collect();
        let tidy = tidy.trim_end_matches('-');
        if tidy.is_empty() {
            let shown = ipc::text::one_line(name, 80);
            return Err(format!(
                "`{shown}` holds no letter or digit; give a short name such as `learn-rust`"
            ));
        }
        Self::of_file(tidy)
    }

    /// The name itself.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Slug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether a character of a new name is kept. Above ASCII everything is but white space, invisible characters and the
/// punctuation blocks, because combining signs are part of the words of many scripts.
fn kept(c: char) -> bool {
    match c {
        '_' => true,
        c if c.is_ascii() => c.is_ascii_alphanumeric(),
        c if c.is_whitespace() || c.is_control() => false,
        '\u{2000}'..='\u{206f}'
        | '\u{3000}'..='\u{3004}'
        | '\u{3008}'..='\u{3020}'
        | '\u{3030}'
        | '\u{fe10}'..='\u{fe1f}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{feff}'
        | '\u{ff00}'..='\u{ff0f}'
        | '\u{ff1a}'..='\u{ff20}'
        | '\u{ff3b}'..='\u{ff40}'
        | '\u{ff5b}'..='\u{ff65}'
        | '\u{fff0}'..='\u{ffff}'
        | '\u{e000}'..='\u{f8ff}'
        | '\u{e0000}'..='\u{10ffff}' => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sl1_names_of_old_homes_are_taken_as_they_are() {
        for name in [
            "learn-rust",
            "opinion_123",
            "2026-05-28",
            "a",
            "MixedCase",
            "a b",
            "学-rust",
            "x.md",
            "-x",
            "CON",
        ] {
            assert_eq!(Slug::of_file(name).unwrap().as_str(), name);
        }
    }

    #[test]
    fn sl2_names_that_leave_their_folder_or_hide_are_refused() {
        let long = "x".repeat(65);
        for name in [
            "../x",
            "../../../etc/passwd",
            "a/b",
            "a\\b",
            ".x",
            ".",
            "..",
            "",
            &long,
            "a\nb",
            "a\tb",
            "a\0b",
            "foo.progress",
            "foo.Progress",
        ] {
            assert!(Slug::of_file(name).is_err(), "{name:?}");
            assert!(Slug::tidy(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn sl3_sl4_new_names_are_tidied_and_every_script_is_equal() {
        let check = |name: &str, tidy: &str| assert_eq!(Slug::tidy(name).unwrap().as_str(), tidy);
        check("Learn Rust!", "learn-rust");
        check("  a  --  b  ", "a-b");
        check("opinion_123", "opinion_123");
        check("学习 Rust，今天。", "学习-rust-今天");
        check("灯塔看守人", "灯塔看守人");
        check("हिन्दी सीखना", "हिन्दी-सीखना");
        check("a.progress.b", "a-progress-b");
        check("İstanbul", "i\u{307}stanbul");
        assert!(Slug::tidy("!!! …。").is_err(), "sl4: punctuation alone is no name");
    }

    proptest! {
        #[test]
        fn sl5_a_tidied_name_always_passes_the_gate_and_is_its_own_tidy_form(name in any::<String>()) {
            if let Ok(slug) = Slug::tidy(&name) {
                prop_assert_eq!(&Slug::of_file(slug.as_str()).unwrap(), &slug);
                prop_assert_eq!(&Slug::tidy(slug.as_str()).unwrap(), &slug);
                prop_assert!(!slug.as_str().contains(['/', '\\', '.']));
            }
        }
    }
}
