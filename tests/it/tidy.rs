//! The rules of the house, as tests: who may use which crate, how a file begins, how text is cut.

use std::path::{Path, PathBuf};

/// Each outside crate that has one home, and the home.
const HOMES: &[(&str, &str)] = &[
    ("interprocess", "ipc"),
    ("agent-client-protocol-schema", "ipc"),
    ("tracing-subscriber", "ipc"),
    ("toml", "ipc"),
    ("git2", "soul-actor"),
    ("rusqlite", "soul-actor"),
    ("sha1", "soul-actor"),
    ("flate2", "soul-actor"),
    ("hmac", "soul-actor"),
    ("notify", "soul-actor"),
    ("similar", "soul-actor"),
    ("unicode-normalization", "soul-actor"),
    ("reqwest", "agent"),
    ("rustls", "agent"),
    ("regex", "agent"),
    ("jsonschema", "agent"),
    ("globset", "agent"),
    ("grep-matcher", "agent"),
    ("grep-regex", "agent"),
    ("grep-searcher", "agent"),
    ("ignore", "agent"),
    ("seccompiler", "agent"),
    ("landlock", "ipc"),
    ("html2text", "agent"),
    ("encoding_rs", "agent"),
    ("chardetng", "agent"),
    ("toml_edit", "agent"),
    ("rmcp", "agent"),
    ("cap-std", "agent"),
    ("cap-fs-ext", "agent"),
    ("nix", "supervisor"),
    ("clap", "client"),
];
const CRATES: [&str; 6] = ["ipc", "soul-actor", "agent", "heartbeat-actor", "supervisor", "client"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn sources() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = CRATES.iter().chain(&["tests"]).map(|name| root().join(name)).collect();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    assert!(found.len() > 60, "the sources are found");
    found
}

fn dependencies(name: &str) -> Vec<String> {
    let manifest = std::fs::read_to_string(root().join(name).join("Cargo.toml")).unwrap();
    // those of one system alone as well
    let sections = manifest.split("\n[").filter(|section| {
        let head = section.lines().next().unwrap_or_default();
        head == "dependencies]" || (head.starts_with("target.") && head.ends_with(".dependencies]"))
    });
    let lines = sections.flat_map(|section| section.lines().skip(1));
    let names = lines.filter_map(|line| line.split(['.', ' ', '=']).next().map(str::to_owned));
    names.filter(|name| !name.is_empty() && !name.starts_with('#')).collect()
}

#[test]
fn each_outside_crate_has_one_home() {
    for name in CRATES {
        for dependency in dependencies(name) {
            let home = HOMES.iter().find(|(outside, _)| *outside == dependency).map(|(_, home)| *home);
            assert!(
                home.is_none_or(|home| home == name),
                "`{dependency}` is at home in {home:?}, not in `{name}`"
            );
        }
    }
}

#[test]
fn process_crates_meet_only_in_ipc() {
    let ours = ["soul-actor", "agent", "heartbeat-actor", "supervisor", "client"];
    for name in CRATES {
        let used: Vec<_> =
            dependencies(name).into_iter().filter(|used| ours.contains(&used.as_str())).collect();
        assert!(used.is_empty(), "`{name}` uses {used:?}");
    }
    assert!(!dependencies("ipc").contains(&"ractor".to_owned()), "ipc knows no actor");
}

#[test]
fn every_file_begins_with_what_it_is() {
    for (path, text) in sources() {
        let first = text.lines().next().unwrap_or_default();
        // a file of tests beside its module speaks for itself
        let tests = path.file_stem().is_some_and(|stem| stem == "tests");
        assert!(first.starts_with("//! ") || tests, "{} begins with `{first}`", path.display());
    }
}

#[test]
fn no_process_is_made_and_no_repository_committed_to_in_passing() {
    for (path, text) in sources() {
        let forks = text.contains(concat!("fork", "(")) || text.contains(concat!("pre_", "exec"));
        assert!(!forks, "b28: {} forks", path.display());
    }
}

#[test]
fn nothing_of_ours_aborts_on_panic() {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    assert!(!manifest.contains("panic = \"abort\"\n"), "a panic is an event of supervision");
    assert!(!root().join("rust-toolchain.toml").exists() && !root().join("rust-toolchain").exists());
    assert!(manifest.contains("rust-version = \"1.95\""));
}

#[test]
fn each_way_in_which_providers_break_in_the_field_has_a_test_with_its_number() {
    let sources = sources();
    let named = |row: u32| sources.iter().any(|(_, text)| text.contains(&format!("c7_{row:02}_")));
    let missing: Vec<u32> = (1..=34).filter(|row| !named(*row)).collect();
    assert!(missing.is_empty(), "no test is named after the rows {missing:?} of C7");
}
