//! The soul as a process: in a hostile environment, killed in mid-write, told to stop.

#![expect(clippy::unwrap_used, reason = "all of this is test, also what is in no test function")]

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Output, Stdio},
    time::Duration,
};

use ipc::{
    child::Brief,
    client::{Client, Credentials, Patience},
    config::Config,
    contract::soul::{Birth, Call, Called, Reply, Request, Soul},
    hello::{Keyring, Role, Secret},
    id::RequestId,
};
use serde_json::json;

const PATIENCE: Duration = Duration::from_secs(20);

struct World {
    folder: tempfile::TempDir,
    agent: Secret,
    environment: Vec<(&'static str, PathBuf)>,
}

/// A running soul; it dies with the test.
struct Life {
    child: Child,
    _said: BufReader<ChildStdout>,
}

impl Drop for Life {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl World {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), agent: Secret::fresh(), environment: vec![] }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn brief(&self) -> Brief {
        Brief {
            role: Role::Soul,
            life: 1,
            home: self.at("home"),
            run: self.at("run"),
            secret: Secret::fresh(),
            keyring: Keyring::from([(Role::Agent, self.agent.clone())]),
            config: Config::default(),
        }
    }

    /// Starts the soul, and waits until it says that it is ready.
    fn start(&self) -> Life {
        let mut command = command(env!("CARGO_BIN_EXE_lisa-soul"));
        command
            .envs(self.environment.clone())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut brief = serde_json::to_vec(&self.brief()).unwrap();
        brief.push(b'\n');
        child.stdin.as_mut().unwrap().write_all(&brief).unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("\"ready\"") {
            line.clear();
            assert!(said.read_line(&mut line).unwrap() > 0, "the soul ended before it was ready");
        }
        Life { child, _said: said }
    }

    fn dial(&self) -> Client<Soul> {
        let socket = self.brief().run().socket(Role::Soul);
        let secret = self.agent.clone();
        let credentials =
            Credentials { role: Role::Agent, secret, build: "test".into(), life: 1, notices: false };
        Client::dial(&socket, credentials).0
    }

    /// The work tree is what HEAD says, a moment after the last write.
    fn is_tidy(&self) {
        let end = std::time::Instant::now() + PATIENCE;
        while !self.git(&["status", "--porcelain"]).is_empty() {
            assert!(std::time::Instant::now() < end, "{}", self.git(&["status", "--porcelain"]));
        }
    }

    fn git(&self, arguments: &[&str]) -> String {
        git(&self.at("home/soul"), arguments)
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place where these tests start processes")]
fn command(program: &str) -> Command {
    Command::new(program)
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let output: Output = command("git")
        .arg("-C")
        .arg(folder)
        .args(arguments)
        .envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1")])
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn journal(n: usize) -> Request {
    let input = json!({"entry": format!("entry {n}")});
    Request::Call(Call {
        tool: "soul_journal".into(),
        input,
        run: None,
        session: None,
        model: "offline".into(),
        outside: false,
    })
}

async fn give_birth(soul: &Client<Soul>) {
    let Reply::Conceived { draft, .. } = soul.ask(&Request::Conceive, PATIENCE).await.unwrap() else {
        panic!()
    };
    let birth = Request::Birth(Birth { draft, wording: None, model: "offline".into() });
    assert!(matches!(soul.ask(&birth, PATIENCE).await.unwrap(), Reply::Born(_)));
}

fn run<F: Future<Output = ()>>(test: F) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
}

#[test]
fn no_configuration_and_no_environment_of_this_machine_reaches_her_repository() {
    run(async {
        let mut world = World::new();
        // a home of the original that was never under git, and somebody's own git all around it
        for (path, text) in [
            ("home/soul/seed.json", "{}"),
            ("home/soul/identity.md", "old\n"),
            ("home/soul/values/x.md", "# x\r\n"),
            (
                "user/.gitconfig",
                "[user]\nname = Mallory\n[core]\nautocrlf = true\nexcludesFile = ~/ignored\nfsmonitor = touch pwned\n[commit]\ngpgsign = true\n",
            ),
            ("user/ignored", "*.md\n"),
        ] {
            std::fs::create_dir_all(world.at(path).parent().unwrap()).unwrap();
            std::fs::write(world.at(path), text).unwrap();
        }
        std::fs::create_dir(world.at("other")).unwrap();
        git(&world.at("other"), &["init", "-q"]);
        world.environment = vec![
            ("HOME", world.at("user")),
            ("XDG_CONFIG_HOME", world.at("user")),
            ("GIT_CONFIG_GLOBAL", world.at("user/.gitconfig")),
            ("GIT_DIR", world.at("other/.git")),
            ("GIT_WORK_TREE", world.at("other")),
            ("GIT_INDEX_FILE", world.at("other/index")),
            ("GIT_OBJECT_DIRECTORY", world.at("other/objects")),
            ("GIT_AUTHOR_NAME", "Mallory".into()),
            ("GIT_COMMITTER_EMAIL", "mallory@evil".into()),
        ];
        let _life = world.start();
        let soul = world.dial();
        assert!(matches!(
            soul.ask(&journal(0), PATIENCE).await.unwrap(),
            Reply::Called(Called { failed: false, .. })
        ));
        soul.ask(&Request::Status, PATIENCE).await.unwrap();
        let log = world.git(&["log", "--format=%an %ae %cn %ce"]);
        assert_eq!(log, "Lisa lisa@self Lisa lisa@self\n".repeat(3));
        assert!(
            world.git(&["ls-tree", "-r", "--name-only", "HEAD"]).contains("values/x.md"),
            "nobody's excludes"
        );
        assert_eq!(world.git(&["show", "HEAD:values/x.md"]), "# x\r\n", "nobody's line endings");
        assert_eq!(std::fs::read_dir(world.at("other")).unwrap().count(), 1, "only its own `.git`");
        world.is_tidy();
    });
}

#[test]
fn killed_at_any_time_she_has_every_write_she_was_told_of_exactly_once() {
    run(async {
        let world = World::new();
        let mut life = world.start();
        give_birth(&world.dial()).await;
        let (mut asked, mut pauses) = (Vec::new(), 7_u64);
        for round in 0..6 {
            let soul = world.dial();
            let id = RequestId::fresh();
            let first = soul.ask_as(id.clone(), &journal(round), Patience::of(PATIENCE)).await.unwrap();
            asked.push((id, round, Some(first)));
            // one more, whose answer is cut off somewhere in its few milliseconds
            let (id, work) = (RequestId::fresh(), journal(100 + round));
            let cut = tokio::spawn({
                let (soul, id) = (soul.clone(), id.clone());
                async move { soul.ask_as(id, &work, Patience { deadline: PATIENCE, attempts_max: 1 }).await }
            });
            pauses = pauses.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            tokio::time::sleep(Duration::from_micros(pauses % 6000)).await;
            life.child.kill().unwrap();
            life.child.wait().unwrap();
            let _ = cut.await.unwrap();
            asked.push((id, 100 + round, None));
            life = world.start();
        }
        let soul = world.dial();
        for (id, n, first) in asked {
            let again = soul.ask_as(id.clone(), &journal(n), Patience::of(PATIENCE)).await.unwrap();
            let Reply::Called(Called { written: Some(again), .. }) = again else { panic!("{again:?}") };
            if let Some(Reply::Called(Called { written: Some(first), .. })) = first {
                assert_eq!(first.commit, again.commit);
            }
            soul.ask(&Request::Status, PATIENCE).await.unwrap();
            let named = world.git(&["log", "--format=%H", &format!("--grep=Request-Id: {id}")]);
            assert_eq!(named.trim(), again.commit, "one commit for request {n}");
        }
        assert_eq!(world.git(&["log", "--format=%s"]).lines().count(), 13);
        world.git(&["fsck", "--strict"]);
        world.is_tidy();
    });
}

#[test]
fn b5_when_her_supervisor_is_gone_she_ends_in_order_and_the_next_one_goes_on() {
    run(async {
        let world = World::new();
        let mut life = world.start();
        give_birth(&world.dial()).await;
        // the end of the lifeline is the end of the supervisor, however it came
        drop(life.child.stdin.take());
        let code = tokio::task::spawn_blocking(move || life.child.wait().unwrap().code()).await.unwrap();
        assert_eq!(code, Some(0));
        let _life = world.start();
        assert!(
            matches!(world.dial().ask(&Request::Status, PATIENCE).await.unwrap(), Reply::Status(status) if status.born)
        );
    });
}
