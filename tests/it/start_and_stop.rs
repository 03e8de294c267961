//! Exit codes as a contract, and a wish to end at any instant.

use std::{process::Stdio, time::Duration};

use crate::stage::{World, end, eventually, interrupt, secs};

#[test]
fn b12_asked_to_end_at_any_instant_of_the_start_it_ends_in_order() {
    let mut unheard = 0;
    let world = World::new();
    for (round, pause) in (0..200).step_by(5).enumerate() {
        let mut started = world.command("lisa-supervisor", &[]).stderr(Stdio::null()).spawn().unwrap();
        std::thread::park_timeout(Duration::from_millis(pause));
        if round % 2 == 0 {
            end(started.id());
        } else {
            interrupt(started.id());
        }
        let ended = eventually(secs(5), "it ends", || started.try_wait().unwrap());
        match ended.code() {
            Some(code) => assert_eq!(code, 0, "after {pause} ms: {ended:?}"),
            // before `main` runs the signal itself ends it, and there is nothing that could be left
            None => unheard += 1,
        }
        eventually(secs(2), "nothing is left", || world.alive().is_empty().then_some(()));
        assert!(ended.code().is_some() || pause < 50, "handlers stand after {pause} ms");
    }
    assert!(unheard < 15, "{unheard} of 40 were not heard");
    world.up();
    assert_eq!(world.lisa(&["down"]).code, 0, "the home is as good as before");
}

#[test]
fn a_second_wish_to_end_hastens_it() {
    let world = World::new();
    world.misbehave("lisa-heartbeat", "ignore-term");
    let mut started = world.command("lisa", &["up"]).stderr(Stdio::null()).spawn().unwrap();
    eventually(secs(20), "she is up", || {
        let status = world.lisa(&["status", "--json"]);
        (status.code == 0 && status.stdout.matches("\"ready\"").count() == 4).then_some(())
    });
    let began = std::time::Instant::now();
    end(started.id());
    eventually(secs(5), "the first wish is heard", || {
        std::fs::read_to_string(world.home().join("logs/events.jsonl"))
            .unwrap()
            .contains("supervisor_stopping")
            .then_some(())
    });
    end(started.id());
    let ended = eventually(secs(10), "it ends", || started.try_wait().unwrap());
    assert_eq!(ended.code(), Some(0));
    assert!(
        began.elapsed() < secs(5),
        "one child alone may take eight seconds otherwise: {:?}",
        began.elapsed()
    );
    assert!(world.alive().is_empty());
}

#[test]
fn b11_each_exit_code_says_what_it_promises() {
    let world = World::new();
    let code = |arguments: &[&str]| {
        let ended = world.run(world.command("lisa-supervisor", arguments), "");
        assert!(!ended.stderr.trim().is_empty(), "{ended:?}");
        (ended.code, ended.stderr)
    };
    for usage in
        [&["--backwards"][..], &["--home"], &["--ready-fd", "x"], &["--ready-fd", "2"], &["--ready-fd", "77"]]
    {
        assert_eq!(code(usage).0, 64, "{usage:?}");
    }
    std::fs::create_dir_all(world.home()).unwrap();
    std::fs::write(world.home().join("config.toml"), "[modle]\n").unwrap();
    let (wrong, said) = code(&[]);
    assert!(wrong == 78 && said.contains("modle"), "{said}");
    std::fs::remove_file(world.home().join("config.toml")).unwrap();
    world.up();
    let (taken, said) = code(&[]);
    assert!(taken == 1 && said.contains("another supervisor"), "{said}");
    world.lisa(&["down"]).ok();
    std::fs::remove_file(world.bin().join("lisa-agent")).unwrap();
    let (missing, said) = code(&[]);
    assert!(missing == 78 && said.contains("lisa-agent"), "{said}");
}
