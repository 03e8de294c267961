//! Tests of the rewriting: what is written, what is kept, what is refused.

use super::*;
use ipc::config::Config;
use proptest::prelude::*;

fn keys(keys: &[(&'static str, Option<&str>)]) -> Vec<(&'static str, Option<String>)> {
    keys.iter().map(|(key, value)| (*key, value.map(str::to_owned))).collect()
}

fn to_ollama() -> Vec<(&'static str, Option<String>)> {
    keys(&[("provider", Some("ollama")), ("name", Some("千问:8b")), ("base_url", None), ("thinking", None)])
}

#[track_caller]
fn check(before: &str, after: &str) {
    let rewritten = rewrite(before, &to_ollama()).unwrap();
    assert_eq!(rewritten.text, after);
    let read = Config::parse(&rewritten.text, Path::new("config.toml")).unwrap();
    assert_eq!(read.model.name.as_deref(), Some("千问:8b"));
    assert_eq!(
        rewrite(&rewritten.text, &to_ollama()).unwrap().text,
        rewritten.text,
        "a second time changes nothing"
    );
}

#[test]
fn what_is_there_is_replaced_and_what_is_not_is_added_where_it_belongs() {
    check("", "[model]\nprovider = \"ollama\"\nname = \"千问:8b\"\n");
    check(
        "person = 'ada' # me",
        "person = 'ada' # me\n\n[model]\nprovider = \"ollama\"\nname = \"千问:8b\"\n",
    );
    check(
        "# 我的\r\n[model] # which\r\nprovider = 'anthropic' # for now\r\n  thinking = 2048  # deep\r\nname='c'\r\n\r\n[heartbeat]\r\nenabled = false\r\n",
        "# 我的\r\n[model] # which\r\nprovider = \"ollama\" # for now\r\n  # thinking = 2048  # deep\r\nname=\"千问:8b\"\r\n\r\n[heartbeat]\r\nenabled = false\r\n",
    );
    check(
        "\u{feff}[model]\nsilence_max = \"5m\"\n\n[[model.fallback]]\nprovider = 'offline'\n",
        "\u{feff}[model]\nsilence_max = \"5m\"\nprovider = \"ollama\"\nname = \"千问:8b\"\n\n[[model.fallback]]\nprovider = 'offline'\n",
    );
    check("[model] # none yet", "[model] # none yet\nprovider = \"ollama\"\nname = \"千问:8b\"\n");
    check(
        "# x\n\n[model]\n\n[gates]\nchars_max = 5\n",
        "# x\n\n[model]\nprovider = \"ollama\"\nname = \"千问:8b\"\n\n[gates]\nchars_max = 5\n",
    );
}

#[test]
fn what_goes_stays_as_a_comment_and_is_named() {
    let rewritten =
        rewrite("[model]\nprovider = \"openai\"\nbase_url = \"http://a/v1\"\n", &to_ollama()).unwrap();
    assert_eq!(rewritten.removed, ["base_url"]);
    assert!(rewritten.text.contains("\n# base_url = \"http://a/v1\"\n"), "{}", rewritten.text);
}

#[test]
fn a_hostile_name_stays_a_value() {
    let name = "a\"\n[supervisor]\ndeaths_max = 0 # 'x' \\";
    let rewritten = rewrite("", &keys(&[("provider", Some("ollama")), ("name", Some(name))])).unwrap();
    let read = Config::parse(&rewritten.text, Path::new("config.toml")).unwrap();
    assert_eq!((read.model.name.as_deref(), read.supervisor), (Some(name), Config::default().supervisor));
}

#[test]
fn what_cannot_be_changed_without_guessing_is_refused() {
    for text in ["model = { provider = 'openai' }\n", "model.provider = 'openai'\n", "model = 3\n"] {
        let error = rewrite(text, &to_ollama()).unwrap_err();
        assert!(matches!(&error, RewriteError::Shape { .. }), "{error}");
        assert!(error.to_string().contains("`name = \"千问:8b\"`"), "{error}");
    }
    let broken = rewrite("person = 'a'\n[model\n", &to_ollama()).unwrap_err();
    let said = ipc::exit::chain(&broken);
    assert!(said.contains("line 2") && said.contains("nothing was written"), "{said}");
}

#[cfg(unix)]
#[test]
fn a_file_is_written_whole_under_its_own_permissions_and_through_its_link() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let path = folder.path().join("config.toml");
    write(&path, None, "person = 'a'\n").unwrap();
    assert_eq!((fs::read_to_string(&path).unwrap().as_str(), mode(&path)), ("person = 'a'\n", 0o600));

    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let link = folder.path().join("link.toml");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    write(&link, Some("person = 'a'\n"), "person = 'b'\n").unwrap();
    assert_eq!((fs::read_to_string(&path).unwrap().as_str(), mode(&path)), ("person = 'b'\n", 0o640));
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());

    let error = write(&path, Some("person = 'a'\n"), "x").unwrap_err();
    assert!(matches!(error, RewriteError::Changed), "{error}");
    assert!(matches!(write(&path, None, "x").unwrap_err(), RewriteError::Changed));
    assert_eq!(fs::read_to_string(&path).unwrap(), "person = 'b'\n");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left beside it");
}

proptest! {
    #[test]
    fn every_other_line_stays(
        above in prop::collection::vec(prop::sample::select(vec!["# 注 # ''", "", "person = 'a'", "time_zone = \"UTC\" # z"]), 0..3),
        inside in prop::collection::vec(prop::sample::select(vec!["# in", "", "max_tokens = 9 # 好", "silence_max = '5m'"]), 0..3),
        ends in prop::sample::select(vec!["\n", "\r\n"]),
        has_table: bool,
    ) {
        let mut lines = above.clone();
        if has_table {
            lines.push("[model]");
            lines.extend(&inside);
        }
        let text = lines.join(ends);
        prop_assume!(Config::parse(&text, Path::new("c")).is_ok());
        let after = rewrite(&text, &to_ollama()).unwrap().text;
        let read = Config::parse(&after, Path::new("c")).unwrap();
        prop_assert_eq!(read.model.name.as_deref(), Some("千问:8b"));
        let mut rest = after.lines();
        for line in text.lines() {
            prop_assert!(rest.any(|kept| kept == line), "{line:?} is gone from {after:?}");
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in "(?s)(\\[model\\]\n)?.{0,80}|[\\[\\]a-z=\"'#. \n\r{},]{0,60}") {
        if let Ok(rewritten) = rewrite(&text, &to_ollama()) {
            prop_assert!(Document::parse(rewritten.text.trim_start_matches('\u{feff}')).is_ok(), "{}", rewritten.text);
        }
    }
}
