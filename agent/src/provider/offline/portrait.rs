//! What the prompt shows of her: read back from the system prompt a request carries, and from nowhere else.
//!
//! That is what makes the offline companion a witness of hot reload: with an old prompt it answers with the old self.

/// A section of the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Section {
    Name,
    Identity,
    Purpose,
    Constitution,
    Values,
    Opinions,
    Desires,
}

impl Section {
    const fn heading(self) -> &'static str {
        match self {
            Self::Name => "# Name",
            Self::Identity => "# Identity",
            Self::Purpose => "# Purpose",
            Self::Constitution => "# Constitution",
            Self::Values => "# Values",
            Self::Opinions => "# Opinions",
            Self::Desires => "# Desires",
        }
    }

    /// The section that shows what `soul_patch` writes as `field`.
    pub(super) fn of_field(field: &str) -> Option<Self> {
        Some(match field {
            "name" => Self::Name,
            "identity" => Self::Identity,
            "purpose" => Self::Purpose,
            "constitution" => Self::Constitution,
            "value" => Self::Values,
            "opinion" => Self::Opinions,
            "desire" => Self::Desires,
            _ => return None,
        })
    }
}

/// Her own text in a section: the quoted lines, without their marks. Empty where the section is, or is not there.
pub(super) fn read(system: &str, section: Section) -> String {
    let mut lines = system.lines().skip_while(|line| line.trim_end() != section.heading());
    lines.next();
    let own = lines.take_while(|line| !line.starts_with("# ")).filter_map(|line| {
        let line = line.strip_prefix('>')?;
        Some(line.strip_prefix(' ').unwrap_or(line))
    });
    own.collect::<Vec<_>>().join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROMPT: &str = "You are.\n\n# Name\n\n> Mara\n\n# Identity\n\n> a lighthouse keeper\n> # Purpose\n>\n> who hums\n\n(over its budget)\n\n# Purpose\n\n> 守灯\n\n# Values\n\n(nothing yet)\n";

    #[test]
    fn a_section_is_her_text_and_nothing_else() {
        let check = |section: Section, expected: &str| assert_eq!(read(PROMPT, section), expected);
        check(Section::Name, "Mara");
        check(Section::Identity, "a lighthouse keeper\n# Purpose\n\nwho hums");
        check(Section::Purpose, "守灯");
        check(Section::Values, "");
        check(Section::Desires, "");
        assert_eq!(read("", Section::Name), "");
        assert_eq!(read("# Name", Section::Name), "");
    }
}
