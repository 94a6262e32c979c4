//! Secrets are never shown.

use tollgate::config::{ConfigError, Source};

const SECRET: &str = "correct-horse-battery-staple";

fn is_not_shown(error: &ConfigError) {
    for shown in [
        error.to_string(),
        format!("{error:?}"),
        format!("{error:#?}"),
        error.to_ansi(),
        error.to_json(),
    ] {
        assert!(!shown.contains(SECRET), "{shown}");
    }
    for problem in error.problems() {
        assert!(!format!("{problem} {problem:?}").contains(SECRET));
    }
}

#[test]
fn those_that_somebody_wrote_into_the_file() {
    for line in [
        format!("secret = \"{SECRET}\""),
        format!("secret = \"{SECRET}"),
        format!("secret_env = \"{SECRET}\""),
        format!("secret_env = '{SECRET}'"),
        format!("client_secret = \"{SECRET}\""),
        format!("secret = \"\"\"\n{SECRET}\n\"\"\""),
        format!("password = {SECRET}"),
        format!("dimensions = {{ secret = {SECRET} }}"),
    ] {
        let text = format!("[identity.jwt]\nalgorithms = [\"HS256\"]\n{line}\n");
        let source = Source::toml(text).variables::<&str, &str>([]);
        is_not_shown(&source.read().unwrap_err());
    }
    for text in [
        format!(r#"{{"identity": {{"jwt": {{"secret": "{SECRET}"}}}}}}"#),
        format!("{{\"identity\": {{\"jwt\": {{\"secret\":\n\"{SECRET}\"}}}}"),
        format!(r#"{{"identity": {{"jwt": {{"secret_env": "{SECRET}"}}}}}}"#),
    ] {
        let source = Source::json(text).variables::<&str, &str>([]);
        is_not_shown(&source.read().unwrap_err());
    }
}

#[test]
fn those_in_variables() {
    let text = "[identity.jwt]\nalgorithms = [\"RS256\"]\nsecret_env = \"JWT_SECRET\"\n";
    let source = Source::toml(text).variables([
        ("JWT_SECRET", SECRET),
        ("TOLLGATE_IDENTITY__JWT__SECRET", SECRET),
        ("TOLLGATE_SECRET", SECRET),
    ]);
    assert!(!format!("{source:?}").contains(SECRET));
    let error = source.read().unwrap_err();
    is_not_shown(&error);
}

#[test]
fn those_that_a_config_knows() {
    let text = "
        global.authenticated = '1/s'
        [identity.jwt]
        algorithms = ['HS256']
        secret_env = 'JWT_SECRET'
    ";
    let config = Source::toml(text)
        .variables([("JWT_SECRET", SECRET)])
        .read()
        .unwrap();
    let shown = format!("{config:?} {:?}", config.source());
    assert!(!shown.contains(SECRET), "{shown}");
    let layer = config.into_layer();
    assert!(!format!("{layer:?}").contains(SECRET));
}

/// Where keys are not, a file can be checked all the same; and nobody gets in without one.
#[test]
fn keys_need_not_be_there_to_check_a_file() {
    let text = "
        global.authenticated = '1/s'
        [identity.jwt]
        algorithms = ['HS256']
        secret_env = 'JWT_SECRET'
    ";
    let source = Source::toml(text).variables::<&str, &str>([]);
    assert!(source.read().is_err());
    assert!(source.without_keys().read().is_ok());
}

/// In the file it was painted over, in a variable it was shown.
#[test]
fn a_secret_in_a_variable_for_its_name_is_not_shown() {
    let text = "[global]\nauthenticated = '1/s'\n[identity.jwt]\nalgorithms = ['HS256']\n";
    let variables = [("TOLLGATE_IDENTITY__JWT__SECRET_ENV", SECRET)];
    let error = Source::toml(text).variables(variables).read().unwrap_err();
    let told = error.to_string();
    assert!(told.contains("not the name of a variable"), "{told}");
    is_not_shown(&error);
}
