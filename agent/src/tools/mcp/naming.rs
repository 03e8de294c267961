//! `mcp__server__tool`: what a server's tool is called here.
//!
//! A plain function of the two names, so that a tool has its name whatever else there is, in every life. Names that would
//! not fit what providers accept, or could be read as those of another tool, end in a digest of both names as they are.

use ipc::digest::sha256_hex;

/// The longest name that all providers accept, in characters, which are bytes here.
const NAME_CHARS_MAX: usize = 64;
/// How much of a digest tells two names apart that look the same otherwise.
const DIGEST_CHARS: usize = 10;

/// The name under which `tool` of `server` is offered: at most 64 of `a-z A-Z 0-9 _ -`.
pub(super) fn offered_name(server: &str, tool: &str) -> String {
    let name = format!("mcp__{}__{}", tidied(server), tidied(tool));
    // with one of these in the server's name the place where it ends could not be told
    let is_ambiguous = server.is_empty() || tool.is_empty() || server.contains("__") || server.ends_with('_');
    let is_plain =
        tidied(server) == server && tidied(tool) == tool && !is_ambiguous && !ends_in_a_digest(tool);
    if is_plain && name.len() <= NAME_CHARS_MAX {
        return name;
    }
    let digest: String =
        sha256_hex(format!("{server}\0{tool}").as_bytes()).chars().take(DIGEST_CHARS).collect();
    let kept: String = name.chars().take(NAME_CHARS_MAX - DIGEST_CHARS - 1).collect();
    format!("{kept}_{digest}")
}

fn tidied(name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    name.chars().map(|c| if fits(c) { c } else { '_' }).collect()
}

/// Whether a name looks as if it had been made unique here.
fn ends_in_a_digest(name: &str) -> bool {
    name.rsplit_once('_').is_some_and(|(_, end)| {
        end.len() == DIGEST_CHARS && end.chars().all(|c| c.is_ascii_digit() || ('a'..='f').contains(&c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_fits_is_kept_and_the_rest_is_told_apart() {
        let check =
            |server: &str, tool: &str, expected: &str| assert_eq!(offered_name(server, tool), expected);
        check("files", "read-file", "mcp__files__read-file");
        check("a", "b__c", "mcp__a__b__c");
        let hashed = |server: &str, tool: &str, begins: &str| {
            let name = offered_name(server, tool);
            assert!(name.starts_with(begins) && ends_in_a_digest(&name) && name.len() <= 64, "{name}");
        };
        hashed("a__b", "c", "mcp__a__b__c_");
        hashed("a_", "b", "mcp__a___b_");
        hashed("灯塔", "读", "mcp______");
        hashed("x", "read file", "mcp__x__read_file_");
        hashed("x", &"long".repeat(40), "mcp__x__longlong");
        hashed("x", "y_0123456789", "mcp__x__y_0123456789_");
        assert_ne!(offered_name("x", "read file"), offered_name("x", "read.file"));
        assert_ne!(offered_name("灯塔", "读"), offered_name("灯塔", "写"));
    }

    proptest! {
        #[test]
        fn every_name_fits_and_two_tools_never_share_one(
            one in (r"[ab_ 灯]{0,4}", r"[ab_\. 读]{0,5}"), other in (r"[ab_ 灯]{0,4}", r"[ab_\. 读]{0,5}"),
        ) {
            let (a, b) = (offered_name(&one.0, &one.1), offered_name(&other.0, &other.1));
            prop_assert!(a.len() <= 64 && a.starts_with("mcp__"));
            prop_assert!(a.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-'));
            prop_assert_eq!(a == b, one == other);
        }

        #[test]
        fn no_name_makes_it_fail(server in any::<String>(), tool in any::<String>()) {
            let name = offered_name(&server, &tool);
            prop_assert!(name.len() <= 64);
            prop_assert_eq!(name, offered_name(&server, &tool));
        }
    }
}
