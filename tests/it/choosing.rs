//! Choosing a model on the real binaries: what is found is offered and not adopted, what is chosen is tried first, and a
//! person's configuration keeps every line that is not about it.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::stage::{Answer, Dialect, Model, World, calls_what_it_is_told, eventually, secs};

/// Starts Lisa where Ollama's own programs would ask the model server.
fn up_beside(world: &World, model: &Model) {
    let mut up = world.command("lisa", &["up", "--detach"]);
    up.env("OLLAMA_HOST", model.place());
    let up = world.run(up, "");
    assert_eq!(up.code, 0, "{up:?}\n{}", world.logs());
    eventually(secs(20), "she is born", || {
        let name = world.status()["soul"]["name"].as_str().unwrap_or_default().to_owned();
        (!name.is_empty()).then_some(())
    });
}

fn config(world: &World) -> String {
    std::fs::read_to_string(world.home().join("config.toml")).unwrap_or_default()
}

fn steps(test: &Value) -> Vec<(&str, bool)> {
    let steps = test["steps"].as_array().unwrap().iter();
    steps.map(|step| (step["what"].as_str().unwrap(), step["ok"].as_bool().unwrap())).collect()
}

#[test]
fn b3_a_server_that_calls_a_tool_is_offered_not_adopted_and_then_chosen() {
    let model = Model::start(calls_what_it_is_told);
    let world = World::new();
    up_beside(&world, &model);
    let offer = eventually(secs(20), "it is offered", || world.status()["offer"].as_str().map(str::to_owned));
    assert!(offer.contains("`lisa model use ollama/play`") && offer.contains(&model.place()), "{offer}");
    assert!(world.lisa(&["status"]).ok().contains(&offer), "a person sees it");
    let asked = model.requests().len();
    assert_eq!(asked, 2, "one call and its result");
    let reply = world.lisa(&["chat", "who are you?"]);
    assert!(reply.ok().contains("offline companion"));
    assert_eq!((model.requests().len(), world.status()["model"].clone()), (asked, json!("offline")));

    let list = world.lisa(&["model", "list", "--json"]).json();
    assert_eq!((&list["model"], &list["chain"][0]["name"]), (&json!("offline"), &json!("offline")));
    assert!(list["because"].as_str().unwrap().contains("neither config.toml nor the environment"), "{list}");
    assert_eq!(
        list["local"][0]["models"],
        json!([
            {"name": "ollama/big:cloud", "elsewhere": true, "proved": null},
            {"name": "ollama/play", "elsewhere": false, "proved": true},
        ])
    );
    let shown = world.lisa(&["model"]).ok();
    assert!(
        shown.contains("leaves this machine  ollama/big:cloud") && shown.contains("called one"),
        "{shown}"
    );

    // chosen, it thinks from the next turn on, and a session says so
    let mut chat = world.chat();
    let session = chat.new_session();
    chat.say(&session, "who are you?");
    let used = world.lisa(&["model", "use", "play", "--json"]).json();
    assert_eq!((&used["model"], &used["before"]), (&json!("ollama/play"), &json!("offline")));
    let all = [
        ("reachable", true),
        ("answered", true),
        ("called a tool", true),
        ("took its result", true),
        ("streamed", true),
    ];
    assert_eq!(steps(&used["test"]), all);
    let expected =
        format!("[model]\nprovider = \"ollama\"\nname = \"play\"\nbase_url = \"http://{}\"\n", model.place());
    assert_eq!(config(&world), expected);
    let mode = std::fs::metadata(world.home().join("config.toml")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let status = world.status();
    assert_eq!((&status["model"], status.get("offer")), (&json!("ollama/play"), None));
    let reply = chat.say(&session, "hello");
    assert_eq!(reply.text, "it was said 你好", "{reply:?}");
    assert!(reply.notes.contains("[model] `ollama/play` thinks from here on, after `offline`"), "{reply:?}");
    assert!(!chat.say(&session, "hello?").notes.contains("[model]"));

    // a later life of the agent has it, and so has a later start
    let pid = world.kill("agent");
    world.back("agent", pid);
    assert_eq!(chat.say(&session, "and now?").text, "it was said 你好");
    assert_eq!(
        world.lisa(&["model", "use", "ollama/play", "--json", "--untested"]).json()["test"],
        Value::Null
    );
    assert_eq!(config(&world), expected, "a second time changes nothing");
    world.lisa(&["model", "use", "offline"]).ok();
    assert_eq!(world.status()["model"], "offline");
    assert!(config(&world).starts_with("[model]\nprovider = \"offline\"\nname = \"play\"\n"));
}

#[test]
fn a_model_that_does_not_call_a_tool_is_not_used_unless_a_person_insists() {
    let model = Model::start(|_, _| Answer::Says("I would rather talk.".into()));
    let before = "# 我的设置\nperson = \"ada\" # me\n\n[heartbeat]\nenabled = false\n";
    let world = World::configured(before);
    up_beside(&world, &model);
    let offer = eventually(secs(20), "it was tried", || world.status()["offer"].as_str().map(str::to_owned));
    assert!(
        offer.contains("did not stand a test") && offer.contains("`lisa model test ollama/play`"),
        "{offer}"
    );

    let test = world.lisa(&["model", "test", "ollama/play"]);
    assert_eq!(test.code, 1, "{test:?}");
    assert!(test.stdout.contains("answered") && test.stdout.contains("NO"), "{test:?}");
    assert!(test.stderr.contains("without calling the tool"), "{test:?}");
    let used = world.lisa(&["model", "use", "ollama/play"]);
    assert!(used.code == 1 && used.stderr.contains("--untested"), "{used:?}");
    assert_eq!((config(&world).as_str(), world.status()["model"].clone()), (before, json!("offline")));

    let used = world.lisa(&["model", "use", "ollama/play", "--untested"]).ok();
    assert!(used.contains("ollama/play thinks from the next turn on"), "{used}");
    assert!(config(&world).starts_with(before), "every line stays: {}", config(&world));
    assert_eq!(world.lisa(&["chat", "hello"]).ok().trim(), "I would rather talk.");
}

#[test]
fn what_is_wrong_is_said_with_its_line_and_nothing_is_written() {
    let model = Model::start(calls_what_it_is_told);
    let world = World::configured(&format!("{}# mine\n", model.config()));
    world.up_and_born();
    let refused = |arguments: &[&str], named: &[&str]| {
        let said = world.lisa(arguments);
        assert_eq!(said.code, 1, "{said:?}");
        assert!(named.iter().all(|word| said.stderr.contains(word)), "{said:?}");
    };
    let before = config(&world);
    refused(&["model", "use", "anthropic/claude"], &["nothing was changed", "ANTHROPIC_API_KEY"]);
    refused(&["model", "use", "antropic/claude"], &["did you mean `anthropic/claude`"]);
    refused(&["model", "use", "nobody-has-this"], &["lisa model list"]);
    refused(&["model", "test", "vllm/m"], &["could not be reached", "start the server"]);
    assert_eq!(config(&world), before);
    // what is in use is tried without a name
    let test = world.lisa(&["model", "test", "--json"]).json();
    assert_eq!((&test["name"], &test["proved"]), (&json!("openai/play"), &json!(true)), "{test}");

    let broken = format!("{before}\nperson = \n");
    std::fs::write(world.home().join("config.toml"), &broken).unwrap();
    refused(&["model", "use", "offline"], &["nothing was changed", "line 8"]);
    assert_eq!(config(&world), broken);
    // meanwhile she goes on as before, also in another life, and says why
    assert_eq!(world.lisa(&["chat", "hello"]).ok().trim(), "it was said 你好");
    assert!(world.status()["notices"].to_string().contains("goes on with"), "{}", world.status());
    let pid = world.kill("agent");
    world.back("agent", pid);
    assert_eq!(world.status()["model"], "openai/play");
    // mended by hand, it is taken with the next turn
    std::fs::write(world.home().join("config.toml"), before.replace("\"play\"", "\"other\"")).unwrap();
    world.lisa(&["chat", "hello"]).ok();
    assert_eq!((&world.status()["model"], &world.status()["notices"]), (&json!("openai/other"), &json!([])));
}

#[test]
fn keys_are_in_no_word_that_comes_out() {
    let key = "sk-geheim-0123456789";
    let said: &'static str = "the key sk-geheim-0123456789 is not one of ours";
    let model = Model::start(move |_, _| Answer::Status { code: 401, retry_after: None, said });
    let world = World::configured("");
    std::fs::write(
        world.home().join("config.env"),
        format!("OPENAI_API_KEY={key}\nLISA_BASE_URL=http://{}/v1\nLISA_MODEL=m\n", model.place()),
    )
    .unwrap();
    world.up();
    let mut told = String::new();
    for arguments in [
        &["model"][..],
        &["model", "list", "--json"],
        &["model", "test"],
        &["model", "test", "--json"],
        &["model", "use", "openai/n"],
        &["model", "use", "openai/n", "--json"],
        &["status", "--json"],
        &["events"],
        &["chat", "hello"],
    ] {
        let output = world.lisa(arguments);
        told = format!("{told}{}{}", output.stdout, output.stderr);
    }
    assert!(told.contains("OPENAI_API_KEY") && told.contains("`LISA_BASE_URL` is set"), "{told}");
    assert!(told.contains("(the key)"), "what a server repeats is taken out: {told}");
    let kept = format!("{}{:?}{}", world.logs(), world.sessions(), config(&world));
    assert!(!told.contains("sk-geheim") && !kept.contains("sk-geheim"), "{told}{kept}");
}

#[test]
fn only_a_person_chooses_and_without_a_supervisor_it_is_said() {
    let world = World::new();
    assert_eq!(world.lisa(&["model", "list"]).code, 69);
    let lisa = world.command("lisa", &[]).get_program().to_str().unwrap().to_owned();
    let script = format!("run {lisa} --home {} model use ollama/play --untested", world.home().display());
    world.misbehave("lisa-heartbeat", &script);
    world.up();
    let said = eventually(secs(20), "the command has been tried", || {
        std::fs::read_to_string(lisa.replace("/lisa", "/misbehave.out")).ok().filter(|said| !said.is_empty())
    });
    assert!(said.contains("a person's to say"), "{said}");
    assert!(!world.home().join("config.toml").exists());
    // and whatever a person's program says about that, it is one
    let asked = json!({"method": "use", "params": {"name": "ollama/play", "untested": true, "human": false}});
    let told = world.chat().ask("_lisa/model", asked).unwrap();
    assert_eq!(told["used"]["model"], "ollama/play", "{told}");
    assert_eq!(world.lisa(&["model", "test", "nonsense/"]).code, 1);
}

#[test]
fn c7_22_a_proxy_is_never_asked_for_what_is_on_this_machine() {
    let model = Model::start(|_, _| Answer::Says("hello".into()));
    let world = World::configured(&format!("[model]\n{}", model.link(Dialect::Chat, "play")));
    let mut up = world.command("lisa", &["up", "--detach"]);
    for proxy in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"] {
        up.env(proxy, "http://127.0.0.1:1");
    }
    let up = world.run(up, "");
    assert_eq!(up.code, 0, "{up:?}");
    assert_eq!(world.lisa(&["chat", "hello"]).ok().trim(), "hello");
    assert_eq!(world.status()["soul"]["name"], "Mira");
}
