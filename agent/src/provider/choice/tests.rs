//! Tests of the choice: what is set, and what comes of it.

use super::*;
use ipc::config::Config;
use std::path::Path;

fn decide(toml: &str, env: &[(&str, &str)]) -> Result<Choice, ChoiceError> {
    let config = Config::parse(&format!("[model]\n{toml}"), Path::new("config.toml")).unwrap();
    choose(&config.model, &|key| env.iter().find(|(k, _)| *k == key).map(|(_, v)| (*v).to_owned()))
}

fn remote(toml: &str, env: &[(&str, &str)]) -> RemoteSettings {
    match decide(toml, env).unwrap().settings {
        Settings::Remote(settings) => *settings,
        Settings::Offline => panic!("offline: {toml} {env:?}"),
    }
}

#[test]
fn what_is_set_decides() {
    let found = remote("name = 'm'\nbase_url = 'http://127.0.0.1:8080/v1/'\nprovider = 'openai'", &[]);
    assert_eq!(found.base_url.as_str(), "http://127.0.0.1:8080/v1");
    assert_eq!((found.name.as_str(), &found.key, found.silence_max), ("m", &None, SILENCE_MAX));

    let env = [
        ("OPENAI_API_KEY", "sk"),
        ("LISA_MODEL", "env"),
        ("LISA_BASE_URL", "http://a/v1"),
        ("OPENAI_BASE_URL", "http://b"),
    ];
    let found = remote("", &env);
    assert_eq!((found.name.as_str(), found.base_url.as_str()), ("env", "http://a/v1"));
    let found = remote("name = 'mine'\nbase_url = 'https://c/x/chat/completions'\nsilence_max = '5s'", &env);
    assert_eq!((found.name.as_str(), found.base_url.as_str()), ("mine", "https://c/x"));
    assert_eq!(found.silence_max, Duration::from_secs(5));

    let found = remote("name = 'm'", &[("OPENAI_API_KEY", "sk")]);
    assert_eq!(found.base_url.as_str(), OPENAI.address);

    let offline = |because: &str| Choice {
        settings: Settings::Offline,
        fallback: vec![],
        notice: None,
        because: because.to_owned(),
    };
    let nothing = "neither config.toml nor the environment names another";
    assert_eq!(decide("provider = 'offline'", &env).unwrap(), offline(CONFIGURED));
    assert_eq!(decide("", &[]).unwrap(), offline(nothing));
    assert_eq!(decide("", &[("OPENAI_API_KEY", " ")]).unwrap(), offline(nothing));
}

#[test]
fn half_a_choice_stays_offline_and_names_the_missing_line() {
    let check = |toml: &str, env: &[(&str, &str)], named: &[&str]| {
        let choice = decide(toml, env).unwrap();
        assert_eq!(choice.settings, Settings::Offline);
        let notice = choice.notice.unwrap();
        assert!(named.iter().all(|word| notice.contains(word)), "{notice}");
    };
    check("", &[("OPENAI_API_KEY", "sk")], &["OPENAI_API_KEY", "name = ", "LISA_MODEL"]);
    check("", &[("LISA_BASE_URL", "http://127.0.0.1:1/v1")], &["address", "name = "]);
    check("name = 'm'", &[], &["OPENAI_API_KEY", "base_url"]);
    check("", &[("DEEPSEEK_API_KEY", "x")], &["DEEPSEEK_API_KEY", "name = "]);
    check("", &[("GEMINI_API_KEY", "x")], &["GEMINI_API_KEY", "LISA_MODEL"]);
    check("", &[("ANTHROPIC_API_KEY", "x")], &["ANTHROPIC_API_KEY", "name = "]);
}

#[test]
fn what_cannot_be_used_is_an_error_that_says_what_to_do() {
    let check = |toml: &str, env: &[(&str, &str)], named: &str| {
        let said = decide(toml, env).unwrap_err().to_string();
        assert!(said.contains(named), "{said}");
        assert!(!said.contains("geheim"), "{said}");
    };
    check("provider = 'openai'", &[], "name = ");
    check("provider = 'openai'\nname = 'm'", &[], "OPENAI_API_KEY");
    check("provider = 'openai'\nname = 'm'\nbase_url = '127.0.0.1:8080'", &[], "config.toml");
    check("name = 'm'\nbase_url = 'localhost:8080/v1'", &[], "http://");
    check("name = 'm'\nbase_url = 'ftp://x/v1'", &[], "ftp://x/v1");
    check("name = 'm'", &[("LISA_BASE_URL", "not an address")], "LISA_BASE_URL");
    check("name = 'm'\nbase_url = 'https://me:geheim@x/v1'", &[], "OPENAI_API_KEY");
    check("name = 'm'\nbase_url = 'https//me:geheim@x/v1'", &[], "config.toml");
    check("name = 'm'", &[("OPENAI_API_KEY", "ge\u{201c}heim")], "stray quote");
}

#[test]
fn a_key_is_never_shown_and_a_key_in_the_clear_is_said() {
    let choice =
        decide("name = 'm'", &[("OPENAI_API_KEY", "sk-geheim"), ("LISA_BASE_URL", "http://far.example/v1")])
            .unwrap();
    assert!(!format!("{choice:?}").contains("geheim"));
    assert!(choice.notice.unwrap().contains("without encryption"));
}

#[test]
fn a_key_decides_in_a_fixed_order_and_goes_to_its_own_vendor_only() {
    let check = |keys: &[&str], speaks: Speaks, address: &str, key: &str, noted: bool| {
        let mut env: Vec<(&str, &str)> = keys.iter().map(|name| (*name, *name)).collect();
        env.push(("LISA_MODEL", "m"));
        let choice = decide("", &env).unwrap();
        let Settings::Remote(found) = choice.settings else { panic!("offline") };
        assert_eq!((found.speaks, found.base_url.as_str()), (speaks, address));
        assert_eq!((found.key.as_ref().map(Key::reveal), found.key_variable.as_str()), (Some(key), key));
        assert_eq!(choice.notice.is_some_and(|said| said.contains("both set")), noted, "{keys:?}");
    };
    let (openai, anthropic) = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY");
    check(&[anthropic], Speaks::Anthropic, "https://api.anthropic.com/v1", anthropic, false);
    check(&[openai], Speaks::OpenAi, "https://api.openai.com/v1", openai, false);
    check(&[openai, anthropic], Speaks::Anthropic, "https://api.anthropic.com/v1", anthropic, true);
    check(&["DEEPSEEK_API_KEY"], Speaks::OpenAi, "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", false);
    let gemini = "https://generativelanguage.googleapis.com/v1beta/openai";
    check(&["GEMINI_API_KEY"], Speaks::OpenAi, gemini, "GEMINI_API_KEY", false);
    // an address that is set speaks chat completions, whatever other keys are there
    let found = remote("name = 'm'\nbase_url = 'http://127.0.0.1:1/v1'", &[(anthropic, "x")]);
    assert_eq!((found.speaks, found.key), (Speaks::OpenAi, None));
}

#[test]
fn anthropic_and_ollama_are_chosen_by_name_and_addressed_as_people_write_it() {
    let claude = "provider = 'anthropic'\nname = 'claude'\n";
    for (written, address) in [
        ("https://gw.example", "https://gw.example/v1"),
        ("https://gw.example/anthropic/", "https://gw.example/anthropic/v1"),
        ("https://gw.example/v1", "https://gw.example/v1"),
        ("https://gw.example/v1/messages", "https://gw.example/v1"),
    ] {
        let found = remote(&format!("{claude}base_url = '{written}'"), &[]);
        assert_eq!((found.speaks, found.base_url.as_str()), (Speaks::Anthropic, address));
    }
    let env = [
        ("ANTHROPIC_API_KEY", "a"),
        ("ANTHROPIC_BASE_URL", "http://127.0.0.1:9"),
        ("LISA_BASE_URL", "http://x/v1"),
    ];
    let found = remote(claude, &env);
    assert_eq!((found.base_url.as_str(), found.key.is_some()), ("http://127.0.0.1:9/v1", true));
    assert!(matches!(decide(claude, &[]), Err(ChoiceError::NoKey { variable: "ANTHROPIC_API_KEY", .. })));
    assert!(matches!(
        decide("provider = 'anthropic'", &[]),
        Err(ChoiceError::NoName { provider: "anthropic" })
    ));

    let ollama = "provider = 'ollama'\nname = 'q'\ncontext = 8192\n";
    let found = remote(ollama, &[("OPENAI_API_KEY", "not for it")]);
    assert_eq!(
        (found.base_url.as_str(), found.key, found.context),
        ("http://127.0.0.1:11434/", None, Some(8192))
    );
    let found = remote(&format!("{ollama}base_url = 'http://far:11434/v1'"), &[]);
    assert_eq!(found.base_url.as_str(), "http://far:11434/");
}

#[test]
fn a_key_may_have_a_variable_of_its_own() {
    let groq = "provider = 'openai'\nname = 'm'\nbase_url = 'https://api.groq.example/v1'\nkey_variable = 'GROQ_API_KEY'";
    let found = remote(groq, &[("GROQ_API_KEY", "g"), ("OPENAI_API_KEY", "o")]);
    assert_eq!(found.key.as_ref().map(Key::reveal), Some("g"));
    let said = decide(groq, &[("OPENAI_API_KEY", "o")]).unwrap_err().to_string();
    assert!(said.contains("GROQ_API_KEY"), "{said}");
}

#[test]
fn pr4_each_link_has_its_own_model_address_and_key() {
    let chain = "provider = 'anthropic'\nname = 'claude'\n\
        [[model.fallback]]\nprovider = 'openai'\nname = 'gpt'\n\
        [[model.fallback]]\nprovider = 'openai'\nname = 'local'\nbase_url = 'http://127.0.0.1:8080/v1'\n\
        [[model.fallback]]\nprovider = 'ollama'\nname = 'q'\n\
        [[model.fallback]]\nprovider = 'offline'";
    let env = [
        ("ANTHROPIC_API_KEY", "a"),
        ("OPENAI_API_KEY", "o"),
        ("LISA_MODEL", "never"),
        ("OPENAI_BASE_URL", "http://never/v1"),
    ];
    let choice = decide(chain, &env).unwrap();
    let links = [choice.settings.clone()].into_iter().chain(choice.fallback.clone()).map(|link| match link {
        Settings::Offline => ("offline".to_owned(), String::new(), String::new()),
        Settings::Remote(link) => {
            let key = link.key.as_ref().map(Key::reveal).unwrap_or_default().to_owned();
            (link.name, link.base_url.host_str().unwrap_or_default().to_owned(), key)
        }
    });
    let expected = [
        ("claude", "api.anthropic.com", "a"),
        ("gpt", "api.openai.com", "o"),
        ("local", "127.0.0.1", ""),
        ("q", "127.0.0.1", ""),
        ("offline", "", ""),
    ];
    let owned = |(a, b, c): (&str, &str, &str)| (a.to_owned(), b.to_owned(), c.to_owned());
    assert_eq!(links.collect::<Vec<_>>(), expected.map(owned));

    let nameless = "provider = 'openai'\nname = 'm'\n[[model.fallback]]\nprovider = 'anthropic'";
    let error = decide(nameless, &[("OPENAI_API_KEY", "o"), ("LISA_MODEL", "never")]).unwrap_err();
    let said = ipc::exit::chain(&error);
    assert!(said.contains("number 1 of `fallback`") && said.contains("name = "), "{said}");
}

#[test]
fn b3_why_it_is_this_one_is_said() {
    let check = |toml: &str, env: &[(&str, &str)], named: &str| {
        let because = decide(toml, env).unwrap().because;
        assert!(because.contains(named), "{because}");
    };
    let key = ("OPENAI_API_KEY", "sk");
    check("provider = 'openai'\nname = 'm'", &[key], "config.toml says so");
    check("name = 'm'", &[key], "`OPENAI_API_KEY` is set");
    check("name = 'm'", &[key, ("LISA_BASE_URL", "http://127.0.0.1:1/v1")], "`LISA_BASE_URL` is set");
    check("", &[key], "no model's name");
    check("", &[], "neither config.toml nor the environment");
}

#[test]
fn keys_are_told_by_the_names_of_their_variables() {
    let config = Config::parse(
        "[model]\nprovider = 'openai'\nname = 'm'\nkey_variable = 'GROQ_API_KEY'",
        Path::new("config.toml"),
    );
    let env = |key: &str| ["GROQ_API_KEY", "GEMINI_API_KEY"].contains(&key).then(|| "sk-secret".to_owned());
    assert_eq!(key_variables(&config.unwrap().model, &env), ["GEMINI_API_KEY", "GROQ_API_KEY"]);
}

#[test]
fn b3_ollama_is_asked_where_its_own_programs_ask() {
    let found = remote("provider = 'ollama'\nname = 'm'", &[("OLLAMA_HOST", "0.0.0.0:11500")]);
    assert_eq!(found.base_url.as_str(), "http://127.0.0.1:11500/");
    let set = [("OLLAMA_HOST", "gpu.lan"), ("OLLAMA_BASE_URL", "http://127.0.0.1:1")];
    assert_eq!(
        remote("provider = 'ollama'\nname = 'm'", &set[..1]).base_url.as_str(),
        "http://gpu.lan:11434/"
    );
    assert_eq!(remote("provider = 'ollama'\nname = 'm'", &set).base_url.as_str(), "http://127.0.0.1:1/");
    // without a person's word no other machine is asked
    assert_eq!(decide("name = 'm'", &set[..1]).unwrap().settings, Settings::Offline);
}
