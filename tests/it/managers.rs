//! Under process managers: one that only listens, and the real ones where they are installed.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    os::unix::{net::UnixListener, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use crate::stage::{Manager, World, end, eventually, hang_up, installed, kill_outright, pause, resume, secs};

/// The files that are shipped.
fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("deploy")
}

fn supervisor(world: &World, notify: &str) -> Command {
    let mut command = world.command("lisa", &["up"]);
    command.env("NOTIFY_SOCKET", notify).stderr(Stdio::null());
    command
}

/// Waits for the end of a process that was asked to; its exit code.
#[track_caller]
fn code(child: &mut Child) -> Option<i32> {
    eventually(secs(15), "it ends", || child.try_wait().unwrap()).code()
}

#[test]
fn b13_a_manager_is_told_everything_in_order() {
    let world = World::new();
    let path = world.folder().join("灯 notify");
    let mut manager = Manager::at(&path);
    let mut child =
        supervisor(&world, path.to_str().unwrap()).env("WATCHDOG_USEC", "400000").spawn().unwrap();
    let ready = manager.hears("READY=1");
    assert_eq!(ready, format!("READY=1\nSTATUS=ready\nMAINPID={}", child.id()));
    manager.hears("WATCHDOG=1");
    // one that hangs gives no sign
    pause(child.id());
    manager.drain();
    std::thread::park_timeout(secs(1));
    assert_eq!(manager.listen(), None, "{:?}", manager.heard);
    resume(child.id());
    manager.hears("WATCHDOG=1");
    let heartbeat = world.kill("heartbeat");
    assert!(manager.hears("STATUS=heartbeat is").contains("signal 9"));
    world.back("heartbeat", heartbeat);
    manager.hears("STATUS=ready");
    std::fs::write(world.home().join("config.toml"), "[heartbeat]\nenabled = false\n").unwrap();
    hang_up(child.id());
    let reloading = manager.hears("RELOADING=1\nMONOTONIC_USEC=");
    let stamp: u64 = reloading.lines().nth(1).unwrap().split('=').nth(1).unwrap().parse().unwrap();
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).unwrap();
    let now = u64::try_from(std::time::Duration::from(now).as_micros()).unwrap();
    assert!(now - stamp < 30_000_000, "{stamp} is a moment ago, as seen at {now}");
    assert_eq!(manager.hears("READY=1"), "READY=1\nSTATUS=ready");
    // what is given to us is given to nobody below
    for name in ["soul", "agent", "heartbeat"] {
        let environment = std::fs::read(format!("/proc/{}/environ", world.pid(name))).unwrap();
        let environment = String::from_utf8_lossy(&environment).into_owned();
        assert!(
            !environment.contains("NOTIFY") && !environment.contains("WATCHDOG"),
            "{name}: {environment}"
        );
    }
    end(child.id());
    manager.hears("STOPPING=1\nSTATUS=stopping");
    manager.hears("BARRIER=1");
    assert_eq!(code(&mut child), Some(0));
    manager.drain();
    let last: Vec<_> = manager.heard.iter().rev().take(2).collect();
    assert_eq!(last, ["BARRIER=1", "STATUS=stopped"]);
    let count = |of: &str| manager.heard.iter().filter(|said| said.starts_with(of)).count();
    assert_eq!((count("READY=1"), count("STOPPING=1")), (2, 1), "{:?}", manager.heard);
}

#[test]
fn b13_a_manager_without_a_file_is_told_too_and_a_slow_start_asks_for_time() {
    let world = World::new();
    world.misbehave("lisa-heartbeat", "never-ready");
    let name = format!("lisa-test-{}", std::process::id());
    let mut manager = Manager::named(&name);
    let mut child = supervisor(&world, &format!("@{name}")).spawn().unwrap();
    assert!(manager.hears("STATUS=").contains("heartbeat is starting"), "{:?}", manager.heard);
    manager.hears("EXTEND_TIMEOUT_USEC=15000000");
    manager.hears("EXTEND_TIMEOUT_USEC=15000000");
    assert!(!manager.heard.iter().any(|said| said.contains("READY=1")), "{:?}", manager.heard);
    end(child.id());
    manager.hears("STOPPING=1");
    manager.hears("BARRIER=1");
    assert_eq!(code(&mut child), Some(0));
}

#[test]
fn a_parked_child_is_no_reason_to_wait_for_ever_and_is_said() {
    let world = World::configured("[model]\nprovider = \"openai\"\n");
    let path = world.folder().join("notify");
    let mut manager = Manager::at(&path);
    let mut child = supervisor(&world, path.to_str().unwrap()).spawn().unwrap();
    let ready = manager.hears("READY=1");
    assert!(ready.contains("STATUS=agent is parked"), "{ready}");
    end(child.id());
    assert_eq!(code(&mut child), Some(0));
}

/// A command whose process is told that descriptor 3 is a socket for it, by way of a shell that knows its own pid.
fn activated(world: &World, listener: &UnixListener, pid: &str) -> Command {
    let Some(shell) = installed("sh") else { panic!("there is a shell") };
    let mut command = world.dress(shell);
    let script =
        format!("export LISTEN_PID={pid} LISTEN_FDS=1 LISTEN_FDNAMES=chat; exec lisa up 3<&0 0</dev/null");
    command
        .args(["-c", &script])
        .stdin(Stdio::from(std::os::fd::OwnedFd::from(listener.try_clone().unwrap())));
    command.stderr(Stdio::null());
    command
}

#[test]
fn a_chat_socket_that_was_handed_over_is_used_and_stays() {
    let world = World::new();
    let run = world.home().join("run");
    std::fs::create_dir_all(&run).unwrap();
    for (elsewhere, path) in [(false, run.join("chat.sock")), (true, world.folder().join("她.sock"))] {
        let _ = std::fs::remove_file(run.join("chat.sock"));
        let listener = UnixListener::bind(&path).unwrap();
        let inode = || {
            use std::os::unix::fs::MetadataExt as _;
            std::fs::symlink_metadata(&path).unwrap().ino()
        };
        let before = inode();
        // who calls before anybody is there is answered all the same
        let mut early = std::os::unix::net::UnixStream::connect(&path).unwrap();
        early.set_read_timeout(Some(secs(20))).unwrap();
        early.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"_lisa/status\"}\n").unwrap();
        let mut child = activated(&world, &listener, "$$").spawn().unwrap();
        let mut answer = String::new();
        BufReader::new(early).read_line(&mut answer).unwrap();
        assert!(answer.contains("\"id\":1") && answer.contains("\"result\""), "{answer}");
        eventually(secs(20), "she is ready", || (world.process("agent")["state"] == "ready").then_some(()));
        assert_eq!(run.join("chat.sock").is_symlink(), elsewhere);
        let pid = world.pid("heartbeat");
        let open = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
        let ours = std::fs::read_link(format!("/proc/{}/fd/3", child.id())).unwrap();
        let kept = open.filter_map(|fd| std::fs::read_link(fd.path()).ok()).any(|target| target == ours);
        assert!(!kept, "no child has it open");
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
        assert!(!String::from_utf8_lossy(&environment).contains("LISTEN_"));
        end(child.id());
        assert_eq!(code(&mut child), Some(0));
        assert_eq!(inode(), before, "b2: it is not ours to take away");
    }
}

#[test]
fn a_socket_for_another_process_is_ignored_and_one_that_does_not_fit_is_refused() {
    let world = World::new();
    let path = world.folder().join("other.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let mut child = activated(&world, &listener, "1").spawn().unwrap();
    eventually(secs(20), "she is up", || (world.lisa(&["status"]).code == 0).then_some(()));
    assert!(!world.home().join("run/chat.sock").is_symlink());
    end(child.id());
    assert_eq!(code(&mut child), Some(0));
    let datagram = std::os::unix::net::UnixDatagram::unbound().unwrap();
    let mut wrong = activated(&world, &listener, "$$");
    wrong.stdin(Stdio::from(std::os::fd::OwnedFd::from(datagram)));
    assert_eq!(wrong.status().unwrap().code(), Some(78));
}

#[test]
fn b9_as_process_one_it_reaps_stops_and_says_how() {
    let Some(mut probe) = installed("unshare") else { return };
    probe.args(["-pf", "--mount-proc", "true"]).stderr(Stdio::null());
    if !probe.status().unwrap().success() {
        eprintln!("skipped: a PID namespace is not permitted here");
        return;
    }
    let world = World::new();
    // a grandchild after the other that is left alone and ends
    world.misbehave("lisa-heartbeat", &format!("run sh {}", world.folder().join("orphans.sh").display()));
    std::fs::write(
        world.folder().join("orphans.sh"),
        "for i in $(seq 200); do (sleep 0.05 &) ; done; echo done",
    )
    .unwrap();
    let mut command = world.dress(installed("unshare").unwrap());
    command.args(["-pf", "--mount-proc", "lisa", "up"]).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    eventually(secs(20), "the orphans were made", || {
        let said = std::fs::read_to_string(world.bin().join("misbehave.out")).ok()?;
        said.contains("done").then_some(())
    });
    let supervisor = eventually(secs(20), "she is up", || {
        let status = world.lisa(&["status", "--json"]);
        assert!(child.try_wait().unwrap().is_none());
        (status.code == 0 && status.stdout.matches("\"ready\"").count() == 4).then_some(())?;
        assert_eq!(status.json()["processes"][0]["pid"], 1);
        let ours = |pid: &u32| {
            std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe.ends_with("lisa-supervisor"))
        };
        world.alive().into_iter().find(ours)
    });
    eventually(secs(10), "no zombie is left below it", || {
        let below =
            std::fs::read_to_string(format!("/proc/{supervisor}/task/{supervisor}/children")).unwrap();
        let is_zombie = |pid: &str| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('Z'))
        };
        let pids: Vec<_> = below.split_whitespace().collect();
        (!pids.iter().any(|pid| is_zombie(pid)) && pids.len() <= 4).then_some(())
    });
    end(supervisor);
    assert_eq!(code(&mut child), Some(0));
    std::fs::write(world.home().join("config.toml"), "[modle]\n").unwrap();
    let mut command = world.dress(installed("unshare").unwrap());
    command.args(["-pf", "--mount-proc", "lisa", "up"]).stderr(Stdio::null());
    assert_eq!(command.status().unwrap().code(), Some(78));
}

/// A service folder of ours, as it is shipped, where a manager may write beside it.
fn folder(world: &World, of: &str) -> PathBuf {
    let to = world.folder().join(of);
    std::fs::create_dir(&to).unwrap();
    for entry in std::fs::read_dir(deploy().join(of).join("lisa")).unwrap().flatten() {
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
    to
}

fn up(world: &World) {
    eventually(secs(30), "she is up", || {
        let status = world.lisa(&["status", "--json"]);
        (status.code == 0 && status.stdout.matches("\"ready\"").count() == 4).then_some(())
    });
}

fn gone(world: &World) {
    eventually(secs(30), "everything has ended", || world.alive().is_empty().then_some(()));
}

/// A manager that runs: when the test ends, so does it.
struct Runs(Child);

impl Drop for Runs {
    fn drop(&mut self) {
        end(self.0.id());
        let ended = (0..500).any(|_| {
            std::thread::park_timeout(secs(1) / 100);
            self.0.try_wait().is_ok_and(|ended| ended.is_some())
        });
        if !ended {
            kill_outright(self.0.id());
        }
    }
}

impl Runs {
    fn start(mut command: Command) -> Self {
        Self(command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn().unwrap())
    }
}

#[track_caller]
fn ask(world: &World, program: &str, arguments: &[&str]) -> String {
    let mut command = world.dress(installed(program).unwrap());
    command.args(arguments);
    let said = world.run(command, "");
    format!("{}{}", said.stdout, said.stderr)
}

/// Killed outright, she is started again by whoever keeps her, in the same home.
fn killed_and_back(world: &World) {
    let before = world.pid("supervisor");
    kill_outright(before);
    eventually(secs(30), "she is started again", || {
        let status = world.lisa(&["status", "--json"]);
        (status.code == 0 && status.json()["processes"][0]["pid"].as_u64() != Some(before.into()))
            .then_some(())
    });
    up(world);
}

#[test]
fn b11_under_runsv_she_starts_stops_comes_back_and_rests_when_a_start_mends_nothing() {
    let (Some(runsv), Some(_)) = (installed("runsv"), installed("sv")) else { return };
    let world = World::new();
    let folder = folder(&world, "runit");
    let mut command = world.dress(runsv);
    command.arg(&folder);
    let _runs = Runs::start(command);
    up(&world);
    killed_and_back(&world);
    let at = folder.to_str().unwrap();
    ask(&world, "sv", &["-w", "30", "down", at]);
    gone(&world);
    std::fs::write(world.home().join("config.toml"), "[modle]\n").unwrap();
    ask(&world, "sv", &["up", at]);
    eventually(secs(15), "it is put down", || {
        ask(&world, "sv", &["status", at]).starts_with("down").then_some(())
    });
    std::thread::park_timeout(secs(2));
    assert!(ask(&world, "sv", &["status", at]).starts_with("down"));
    std::fs::remove_file(world.home().join("config.toml")).unwrap();
    ask(&world, "sv", &["up", at]);
    up(&world);
}

#[test]
fn b11_under_s6_she_says_when_she_is_ready_and_comes_back() {
    let (Some(supervise), Some(_)) = (installed("s6-supervise"), installed("s6-svc")) else { return };
    let world = World::new();
    let folder = folder(&world, "s6");
    let at = folder.to_str().unwrap();
    let mut command = world.dress(supervise);
    command.arg(&folder);
    let _runs = Runs::start(command);
    eventually(secs(10), "s6-supervise runs", || folder.join("supervise/status").exists().then_some(()));
    ask(&world, "s6-svwait", &["-U", "-t", "30000", at]);
    assert!(ask(&world, "s6-svstat", &["-o", "ready", at]).starts_with("true"));
    for name in ["soul", "agent", "heartbeat"] {
        assert_eq!(world.process(name)["state"], "ready", "ready means that {name} is");
    }
    killed_and_back(&world);
    eventually(secs(20), "ready is said again", || {
        ask(&world, "s6-svstat", &["-o", "ready", at]).starts_with("true").then_some(())
    });
    ask(&world, "s6-svc", &["-wD", "-T", "30000", "-d", at]);
    gone(&world);
    assert!(ask(&world, "s6-svstat", &["-o", "exitcode", at]).starts_with('0'));
    std::fs::write(world.home().join("config.toml"), "[modle]\n").unwrap();
    ask(&world, "s6-svc", &["-u", at]);
    eventually(secs(15), "it is not tried again", || {
        let said = ask(&world, "s6-svstat", &["-o", "up,wantedup,exitcode", at]);
        (said.trim() == "false false 78").then_some(())
    });
    ask(&world, "s6-svc", &["-x", at]);
}

#[test]
fn b11_under_supervisord_she_starts_stops_and_comes_back() {
    let (Some(supervisord), Some(_)) = (installed("supervisord"), installed("supervisorctl")) else { return };
    let world = World::new();
    let program = std::fs::read_to_string(deploy().join("supervisord/lisa.conf")).unwrap();
    let at = |name: &str| world.folder().join(name).display().to_string();
    let config = format!(
        "[supervisord]\nnodaemon=true\nlogfile=/dev/null\nlogfile_maxbytes=0\npidfile={}\n\
         [unix_http_server]\nfile={}\n[supervisorctl]\nserverurl=unix://{}\n\
         [rpcinterface:supervisor]\nsupervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface\n\
         {program}stdout_logfile=/dev/null\nstdout_logfile_maxbytes=0\n",
        at("pid"),
        at("ctl"),
        at("ctl")
    );
    let file = at("supervisord.conf");
    std::fs::write(&file, config).unwrap();
    let mut command = world.dress(supervisord);
    command.args(["-n", "-c", &file]);
    let _runs = Runs::start(command);
    let control = |arguments: &[&str]| ask(&world, "supervisorctl", &[&["-c", &file], arguments].concat());
    up(&world);
    killed_and_back(&world);
    control(&["stop", "lisa"]);
    gone(&world);
    std::fs::write(world.home().join("config.toml"), "[modle]\n").unwrap();
    control(&["start", "lisa"]);
    std::thread::park_timeout(secs(3));
    let said = control(&["status", "lisa"]);
    assert!(!said.contains("RUNNING") && !said.contains("STARTING"), "{said}");
    std::fs::remove_file(world.home().join("config.toml")).unwrap();
    control(&["start", "lisa"]);
    up(&world);
    control(&["stop", "lisa"]);
    gone(&world);
}

#[test]
fn the_service_is_written_looked_at_and_taken_away_and_nobody_elses_is_touched() {
    let world = World::new();
    let home = world.folder().join("ho me/100%/灯塔");
    let world = world.with_home(home);
    let unit = world.folder().join(".config/systemd/user/lisa.service");
    let printed = world.lisa(&["service", "install", "--print"]).ok();
    assert!(!unit.exists() && !world.home().exists(), "printing writes nothing");
    assert!(world.lisa(&["service", "status"]).ok().contains("not installed"));
    assert!(world.lisa(&["service", "install"]).ok().starts_with("wrote "));
    assert_eq!(std::fs::read_to_string(&unit).unwrap(), printed);
    assert!(printed.contains(r#"ho me/100%%/灯塔" up"#), "{printed}");
    let status = world.lisa(&["service", "status", "--json"]).json();
    assert_eq!(
        (&status["installed"], &status["current"], &status["enabled"]),
        (&true.into(), &true.into(), &false.into())
    );
    assert_eq!(world.lisa(&["service", "install"]).code, 0, "asked twice, it stands");
    let other = world.lisa(&["--home", "/tmp/elsewhere", "service", "install"]);
    assert!(other.code == 1 && other.stderr.contains("--name"), "{other:?}");
    if let Some(mut verify) = installed("systemd-analyze") {
        verify.args(["verify", "--user"]).arg(&unit);
        let mut verify = world.dress(verify);
        verify.env("XDG_RUNTIME_DIR", world.folder());
        let verified = world.run(verify, "");
        assert_eq!(verified.code, 0, "{verified:?}");
        assert!(!verified.stderr.contains("lisa.service"), "{verified:?}");
    }
    assert!(world.lisa(&["service", "uninstall"]).ok().starts_with("removed "));
    assert!(!unit.exists());
    assert_eq!(world.lisa(&["service", "uninstall"]).code, 1, "there is none any more");
    std::fs::write(&unit, "[Unit]\nDescription=somebody's\n").unwrap();
    for command in ["install", "uninstall"] {
        let refused = world.lisa(&["service", command]);
        assert!(refused.code == 1 && refused.stderr.contains("--force"), "{refused:?}");
    }
    assert!(std::fs::read_to_string(&unit).unwrap().contains("somebody's"));
    assert_eq!(world.lisa(&["service", "install", "--force"]).code, 0);
    assert_eq!(std::fs::read_to_string(&unit).unwrap(), printed);
}
