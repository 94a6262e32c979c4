//! Secrets are in no error message and no debug output.

use tollgate::config::{ConfigError, Source};

const SECRET: &str = "correct-horse-battery-staple";

fn assert_secret_is_not_shown(error: &ConfigError) {
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
fn secrets_in_the_file_are_not_shown() {
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
        assert_secret_is_not_shown(&source.read().unwrap_err());
    }
    for text in [
        format!(r#"{{"identity": {{"jwt": {{"secret": "{SECRET}"}}}}}}"#),
        format!("{{\"identity\": {{\"jwt\": {{\"secret\":\n\"{SECRET}\"}}}}"),
        format!(r#"{{"identity": {{"jwt": {{"secret_env": "{SECRET}"}}}}}}"#),
    ] {
        let source = Source::json(text).variables::<&str, &str>([]);
        assert_secret_is_not_shown(&source.read().unwrap_err());
    }
}

#[test]
fn secrets_in_variables_are_not_shown() {
    let text = "[identity.jwt]\nalgorithms = [\"RS256\"]\nsecret_env = \"JWT_SECRET\"\n";
    let source = Source::toml(text).variables([
        ("JWT_SECRET", SECRET),
        ("TOLLGATE_IDENTITY__JWT__SECRET", SECRET),
        ("TOLLGATE_SECRET", SECRET),
    ]);
    assert!(!format!("{source:?}").contains(SECRET));
    let error = source.read().unwrap_err();
    assert_secret_is_not_shown(&error);
}

#[test]
fn debug_output_of_config_and_layer_has_no_secrets() {
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

#[test]
fn file_can_be_checked_without_keys_only_on_request() {
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

/// Bug: the secret was masked in the file, but not in a variable.
#[test]
fn secret_in_place_of_a_variable_name_is_not_shown() {
    let text = "[global]\nauthenticated = '1/s'\n[identity.jwt]\nalgorithms = ['HS256']\n";
    let variables = [("TOLLGATE_IDENTITY__JWT__SECRET_ENV", SECRET)];
    let error = Source::toml(text).variables(variables).read().unwrap_err();
    let message = error.to_string();
    assert!(message.contains("not the name of a variable"), "{message}");
    assert_secret_is_not_shown(&error);
}
