//! Isolation: whatever git is told by the environment, by a person's configuration or by the repository itself, the real
//! soul writes the bytes it was given, where it writes them, under its own name, and runs nothing.

use std::{os::unix::fs::PermissionsExt as _, path::Path};

use ipc::{
    client::Patience,
    contract::soul::{Called, Reply, Request},
    hello::Role,
    id::RequestId,
};
use serde_json::json;

use crate::stage::{PATIENCE, Rack, call, eventually, run, said, secs};

/// Text that filters, line endings and keywords would change.
const PLAIN: &str = "one\r\n$Id$\r\ntwo\n\u{feff}three";

fn put(place: &Path, text: &str) {
    std::fs::create_dir_all(place.parent().unwrap()).unwrap();
    std::fs::write(place, text).unwrap();
}

fn put_program(place: &Path, text: &str) {
    put(place, text);
    std::fs::set_permissions(place, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// A rack with every trap there is around it; where a trap springs, the canary is made.
struct Traps {
    folder: tempfile::TempDir,
    rack: Rack,
}

impl Traps {
    fn set() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        let evil = format!("touch {}; cat", at("canary").display());
        put_program(&at("evil.sh"), &format!("#!/bin/sh\n{evil}\n"));
        let program = at("evil.sh").display().to_string();
        let config = format!(
            "[user]\n\tname = Mallory\n\temail = mallory@evil\n\tsigningKey = x\n[core]\n\thooksPath = {hooks}\n\tautocrlf = true\n\teol = crlf\n\tsafecrlf = true\n\tfsmonitor = {program}\n\tattributesFile = {attributes}\n\texcludesFile = {excludes}\n\tsshCommand = {program}\n\teditor = {program}\n\tpager = {program}\n\tworktree = {other}\n[commit]\n\tgpgSign = true\n[gpg]\n\tprogram = {program}\n[init]\n\ttemplateDir = {template}\n\tdefaultBranch = evil\n\tdefaultObjectFormat = sha256\n[filter \"evil\"]\n\tclean = {program}\n\tsmudge = {program}\n\tprocess = {program}\n\trequired = true\n[safe]\n\tbareRepository = explicit\n[gc]\n\tauto = 1\n[maintenance]\n\tauto = true\n",
            hooks = at("hooks").display(),
            attributes = at("attributes").display(),
            excludes = at("excludes").display(),
            other = at("other").display(),
            template = at("template").display(),
        );
        put(&at("user/.gitconfig"), &config);
        put(&at("user/git/config"), &config);
        put(&at("attributes"), "* text eol=crlf ident filter=evil working-tree-encoding=UTF-16\n");
        put(&at("excludes"), "*\n");
        put(&at("template/description"), "evil");
        put(&at("template/info/attributes"), "* filter=evil\n");
        for hook in HOOKS {
            put_program(&at("hooks").join(hook), &format!("#!/bin/sh\n{evil}\n"));
            put_program(&at("template/hooks").join(hook), &format!("#!/bin/sh\n{evil}\n"));
        }
        std::fs::create_dir(at("other")).unwrap();
        said("git", &["init", "-q", at("other").to_str().unwrap()]).unwrap();
        let mut rack = Rack::new(&at("home"));
        let name = |text: &str| text.to_owned().into();
        rack.environment = vec![
            ("HOME", at("user")),
            ("XDG_CONFIG_HOME", at("user")),
            ("GIT_CONFIG_GLOBAL", at("user/.gitconfig")),
            ("GIT_CONFIG_SYSTEM", at("user/.gitconfig")),
            ("GIT_CONFIG", at("user/.gitconfig")),
            ("GIT_CONFIG_COUNT", name("3")),
            ("GIT_CONFIG_KEY_0", name("core.hooksPath")),
            ("GIT_CONFIG_VALUE_0", at("hooks")),
            ("GIT_CONFIG_KEY_1", name("core.fsmonitor")),
            ("GIT_CONFIG_VALUE_1", at("evil.sh")),
            ("GIT_CONFIG_KEY_2", name("user.name")),
            ("GIT_CONFIG_VALUE_2", name("Mallory")),
            ("GIT_CONFIG_PARAMETERS", name("'core.autocrlf=true'")),
            ("GIT_DIR", at("other/.git")),
            ("GIT_WORK_TREE", at("other")),
            ("GIT_COMMON_DIR", at("other/.git")),
            ("GIT_INDEX_FILE", at("other/index")),
            ("GIT_OBJECT_DIRECTORY", at("other/objects")),
            ("GIT_ALTERNATE_OBJECT_DIRECTORIES", at("other/.git/objects")),
            ("GIT_NAMESPACE", name("evil")),
            ("GIT_CEILING_DIRECTORIES", at("home")),
            ("GIT_TEMPLATE_DIR", at("template")),
            ("GIT_ATTR_SOURCE", name("HEAD")),
            ("GIT_AUTHOR_NAME", name("Mallory")),
            ("GIT_AUTHOR_EMAIL", name("mallory@evil")),
            ("GIT_AUTHOR_DATE", name("2001-01-01T00:00:00Z")),
            ("GIT_COMMITTER_NAME", name("Mallory")),
            ("GIT_COMMITTER_EMAIL", name("mallory@evil")),
            ("GIT_COMMITTER_DATE", name("2001-01-01T00:00:00Z")),
            ("GIT_EDITOR", at("evil.sh")),
            ("GIT_SSH_COMMAND", at("evil.sh")),
            ("GIT_EXTERNAL_DIFF", at("evil.sh")),
            ("GIT_TRACE", at("trace")),
        ];
        Self { folder, rack }
    }

    /// Traps in the repository itself, laid there and committed by somebody with git.
    fn set_in_repository(&self) {
        let git_dir = self.rack.soul().join(".git");
        let (evil, canary) = (self.folder.path().join("evil.sh"), self.folder.path().join("canary"));
        for (key, value) in [
            ("filter.evil.clean", evil.to_str().unwrap()),
            ("filter.evil.smudge", evil.to_str().unwrap()),
            ("filter.evil.process", evil.to_str().unwrap()),
            ("filter.evil.required", "true"),
            ("core.autocrlf", "true"),
            ("core.eol", "crlf"),
            ("diff.evil.textconv", evil.to_str().unwrap()),
            ("diff.evil.command", evil.to_str().unwrap()),
        ] {
            self.rack.git(&["config", key, value]).unwrap();
        }
        for hook in HOOKS {
            put_program(
                &git_dir.join("hooks").join(hook),
                &format!("#!/bin/sh\ntouch {}\n", canary.display()),
            );
        }
        // committed piece by piece, so that the commit by hand springs no trap itself
        let attributes = "* text eol=crlf ident filter=evil diff=evil working-tree-encoding=UTF-16\n";
        put(&self.rack.soul().join(".gitattributes"), attributes);
        let git = |arguments: &[&str]| {
            let person = ["-c", "user.name=p", "-c", "user.email=p@q", "-c", "core.hooksPath=/dev/null"];
            self.rack.git(&[&person[..], arguments].concat()).unwrap().trim().to_owned()
        };
        let blob = git(&["hash-object", "-w", "--no-filters", ".gitattributes"]);
        git(&["read-tree", "HEAD"]);
        git(&["update-index", "--add", "--cacheinfo", &format!("100644,{blob},.gitattributes")]);
        let tree = git(&["write-tree"]);
        let commit = git(&["commit-tree", &tree, "-p", "HEAD", "-m", "attributes by hand"]);
        git(&["update-ref", "refs/heads/main", &commit]);
        put(&git_dir.join("info/attributes"), attributes);
        let _ = std::fs::remove_file(canary);
    }

    fn has_sprung(&self) -> bool {
        self.folder.path().join("canary").exists() || self.folder.path().join("trace").exists()
    }

    /// The bytes of a file as git has them, with nothing in between.
    fn blob(&self, path: &str) -> Vec<u8> {
        let id = self.rack.git(&["rev-parse", &format!("HEAD:{path}")]).unwrap();
        self.rack.git(&["cat-file", "blob", id.trim()]).unwrap().into_bytes()
    }
}

const HOOKS: [&str; 9] = [
    "pre-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "reference-transaction",
    "post-index-change",
    "post-checkout",
    "pre-auto-gc",
    "fsmonitor-watchman",
];

#[test]
fn no_variable_configuration_hook_filter_or_attribute_changes_what_is_written_or_runs_anything() {
    run(async {
        let traps = Traps::set();
        let rack = &traps.rack;
        let mut life = rack.start();
        rack.give_birth().await;
        for in_repository in [false, true] {
            if in_repository {
                life.end();
                traps.set_in_repository();
                life = rack.start();
            }
            let soul = rack.dial(Role::Agent);
            let write = async |input| {
                let request = call("soul_patch", input, None);
                let asked = soul.ask_as(RequestId::fresh(), &request, Patience::of(PATIENCE)).await.unwrap();
                let Reply::Called(Called { written: Some(written), .. }) = asked else { panic!("{asked:?}") };
                written.commit
            };
            let text = format!("{PLAIN} {in_repository}");
            write(json!({"field": "identity", "content": text})).await;
            // what a person edits goes the way of everything else
            let by_hand = format!("{PLAIN}\r\nby hand {in_repository}\r\n");
            put(&rack.soul().join("purpose.md"), &by_hand);
            let commit = write(json!({"field": "purpose", "content": format!("hers {in_repository}")})).await;
            soul.ask(&Request::Status, PATIENCE).await.unwrap();
            for request in [
                Request::History { document: None, limit: 50, since: None },
                Request::Diff { document: "identity".into(), since: None, limit: 5 },
                Request::Why { document: "identity".into(), line: 1 },
                Request::Check { repair: false, human: false },
            ] {
                soul.ask(&request, PATIENCE).await.unwrap();
            }
            assert_eq!(String::from_utf8(traps.blob("identity.md")).unwrap(), format!("{text}\n"));
            assert_eq!(
                std::fs::read_to_string(rack.soul().join("identity.md")).unwrap(),
                format!("{text}\n")
            );
            let edit = rack.git(&["rev-parse", &format!("{commit}~1:purpose.md")]).unwrap();
            assert_eq!(rack.git(&["cat-file", "blob", edit.trim()]).unwrap(), by_hand);
            assert!(!traps.has_sprung(), "nothing has run, nothing was traced");
        }
        // the index and the packs come when it is quiet
        let index = rack.soul().join(".git/index");
        eventually(secs(10), "the index follows", || index.exists().then_some(()));
        life.end();
        assert!(!traps.has_sprung());
        let people = rack.git(&["log", "--format=%an %ae %cn %ce"]).unwrap();
        for person in people.lines() {
            assert!(["Lisa lisa@self Lisa lisa@self", "p p@q p p@q"].contains(&person), "{person}");
        }
        assert!(!rack.git(&["log", "--format=%cI"]).unwrap().contains("2001-"));
        assert_eq!(rack.git(&["symbolic-ref", "HEAD"]).unwrap(), "refs/heads/main\n");
        assert_eq!(
            std::fs::read_dir(traps.folder.path().join("other")).unwrap().count(),
            1,
            "only its `.git`"
        );
        let made = said("git", &["-C", traps.folder.path().join("other").to_str().unwrap(), "count-objects"])
            .unwrap();
        assert!(made.starts_with("0 objects"), "{made}");
        rack.git(&["fsck", "--strict", "--no-dangling"]).unwrap();
        // and the traps were real: whoever asks the ordinary git steps into one
        let _ = rack.git(&["hash-object", "--path", "identity.md", "identity.md"]);
        assert!(traps.has_sprung());
    });
}

#[test]
fn what_she_tells_the_git_of_a_person_keeps_it_from_tidying_and_running_anything() {
    run(async {
        let home = tempfile::tempdir().unwrap();
        let rack = Rack::new(home.path());
        let life = rack.start();
        rack.give_birth().await;
        life.end();
        for (key, value) in [
            ("gc.auto", "0"),
            ("maintenance.auto", "false"),
            ("core.hooksPath", "/dev/null"),
            ("core.fsmonitor", "false"),
            ("commit.gpgsign", "false"),
        ] {
            assert_eq!(rack.git(&["config", "--local", key]).unwrap().trim(), value, "{key}");
        }
        // and where somebody has set them otherwise they are set again before the next write
        rack.git(&["config", "gc.auto", "1"]).unwrap();
        let life = rack.start();
        let written =
            rack.dial(Role::Agent).ask(&call("soul_journal", json!({"entry": "x"}), None), PATIENCE).await;
        assert!(matches!(written.unwrap(), Reply::Called(Called { failed: false, .. })));
        assert_eq!(rack.git(&["config", "--local", "gc.auto"]).unwrap().trim(), "0");
        life.end();
    });
}
