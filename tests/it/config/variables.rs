//! Environment variables override settings of a file.

use tollgate::config::{Config, ConfigError, Source};
use tollgate::policy::{Count, Policy, Rule};

use super::problems;

const FILE: &str = r#"
[global]
authenticated = "1000/hour"

[tiers]
default = "free"
free = 1
team = 5

[categories.top-secrets]
limit = "500/hour"

[[endpoints]]
route = "GET /"
limit = "10/hour"
category = "top-secrets"

[[endpoints]]
name = "log-in"
route = "POST /login"
limit = [{ limit = 5, window = "1m" }, "10/hour"]
"#;

fn read(variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
    Source::toml(FILE)
        .variables(variables.iter().copied())
        .read()
}

/// Asserts that the file with these variables equals the changed file without variables.
#[track_caller]
fn assert_same_policy(variables: &[(&str, &str)], changed: &str) {
    let config = read(variables).unwrap();
    let expected = super::toml(changed).unwrap();
    assert_eq!(
        format!("{:#?}", config.policy()),
        format!("{:#?}", expected.policy())
    );
    assert_eq!(config.headers(), expected.headers());
}

/// Variable, value, and the equivalent change of the file: text to replace, replacement.
const SCALARS: &[(&str, &str, &str, &str)] = &[
    (
        "GLOBAL__AUTHENTICATED",
        "2000/hour",
        "\"1000/hour\"",
        "\"2000/hour\"",
    ),
    (
        "GLOBAL__ANONYMOUS",
        "20/hour",
        "[tiers]",
        "anonymous = \"20/hour\"\n[tiers]",
    ),
    ("TIERS__TEAM", "7.5", "team = 5", "team = 7.5"),
    (
        "TIERS__DEFAULT",
        "team",
        "default = \"free\"",
        "default = \"team\"",
    ),
    (
        "CATEGORIES__TOP_SECRETS__LIMIT",
        "5/s",
        "\"500/hour\"",
        "\"5/s\"",
    ),
    (
        "CATEGORIES__TOP_SECRETS__STACK",
        "true",
        "limit = \"500/hour\"",
        "limit = \"500/hour\"\nstack = true",
    ),
    (
        "ENDPOINTS__0__LIMIT",
        "11/hour",
        "limit = \"10/hour\"",
        "limit = \"11/hour\"",
    ),
    (
        "ENDPOINTS__0__COST",
        "3",
        "limit = \"10/hour\"",
        "limit = \"10/hour\"\ncost = 3",
    ),
    (
        "ENDPOINTS__LOG_IN__COUNT",
        "failure",
        "\"POST /login\"",
        "\"POST /login\"\ncount = \"failure\"",
    ),
    (
        "ENDPOINTS__LOG_IN__LIMIT__0__LIMIT",
        "6",
        "limit = 5,",
        "limit = 6,",
    ),
    (
        "ENDPOINTS__LOG_IN__LIMIT__1",
        "12/hour",
        ", \"10/hour\"]",
        ", \"12/hour\"]",
    ),
    (
        "ENDPOINTS__1__PER",
        "ip, tenant",
        "\"POST /login\"",
        "\"POST /login\"\nper = [\"ip\", \"tenant\"]",
    ),
    (
        "ENDPOINTS__1__PER",
        "[]",
        "\"POST /login\"",
        "\"POST /login\"\nper = []",
    ),
    (
        "ENDPOINTS__0__LIMIT",
        "[\"1/s\", \"10/hour\"]",
        "limit = \"10/hour\"",
        "limit = [\"1/s\", \"10/hour\"]",
    ),
    (
        "DEFAULTS__HEADERS",
        "both",
        "[global]",
        "[defaults]\nheaders = \"both\"\n[global]",
    ),
    (
        "DEFAULTS__WARN_AT",
        "0.9",
        "[global]",
        "[defaults]\nwarn_at = 0.9\n[global]",
    ),
    (
        "MAINTENANCE__DISABLED_UNTIL",
        "2026-12-01T06:00:00Z",
        "[global]",
        "[maintenance]\ndisabled_until = 2026-12-01T06:00:00Z\n[global]",
    ),
    (
        "EXEMPT__NETWORKS",
        "10.0.0.0/8,127.0.0.1",
        "[global]",
        "[exempt]\nnetworks = [\"10.0.0.0/8\", \"127.0.0.1\"]\n[global]",
    ),
];

#[test]
fn variables_set_values_of_every_kind() {
    for (name, value, from, to) in SCALARS {
        assert!(FILE.contains(from), "{from}");
        let changed = FILE.replacen(from, to, 1);
        assert_same_policy(&[(&format!("TOLLGATE_{name}"), value)], &changed);
        assert_same_policy(
            &[(&format!("tollgate_{}", name.to_lowercase()), value)],
            &changed,
        );
    }
}

#[test]
fn variables_can_set_all_of_an_empty_file() {
    let config = Source::toml("")
        .variables([("TOLLGATE_GLOBAL__AUTHENTICATED", "5/s")])
        .read()
        .unwrap();
    let expected = Policy::builder().authenticated("5/s");
    assert_eq!(format!("{:?}", config.policy()), format!("{expected:?}"));
}

#[test]
fn reserved_and_other_variables_are_ignored() {
    assert_same_policy(
        &[
            ("TOLLGATE_CONFIG", "/etc/limits.toml"),
            ("TOLLGATE_SERVICE_HOST", "10.0.0.1"),
            ("TOLLGATE_PORT_80_TCP", "tcp://10.0.0.1:80"),
            ("TOLLGATES__X", "1"),
            ("PATH", "/bin"),
        ],
        FILE,
    );
}

#[test]
fn problem_of_a_variable_names_the_variable() {
    for (name, value, expected) in [
        (
            "GLOBAL__AUTHENTICATD",
            "1/s",
            "did you mean `AUTHENTICATED`?",
        ),
        ("GLOBL__AUTHENTICATED", "1/s", "did you mean `GLOBAL`?"),
        (
            "GLOBAL_AUTHENTICATED",
            "1/s",
            "did you mean `TOLLGATE_GLOBAL__AUTHENTICATED`?",
        ),
        ("LOG", "debug", "there is no key `LOG`"),
        ("TIERS__GOLD", "5", "there is no tier `GOLD`"),
        ("ENDPOINTS__2__LIMIT", "1/s", "`0` to `1`"),
        ("ENDPOINTS__LOGIN__LIMIT", "1/s", "did you mean `LOG_IN`?"),
        ("ENDPOINTS", "1/s", "a list of tables"),
        ("CATEGORIES__TOP_SECRETS", "1/s", "is a table"),
        (
            "CATEGORIES__TOP_SECRETS__LIMIT__0",
            "1/s",
            "the file has no list there",
        ),
        ("GLOBAL__AUTHENTICATED__X__Y", "1/s", "there is no item `X`"),
        ("DEFAULTS__HEADERS__0", "both", "has no parts"),
        ("GLOBAL__AUTHENTICATED", "", "the variable is empty"),
        ("GLOBAL__AUTHENTICATED", "[\"1/s\"", "unclosed array"),
        ("GLOBAL__AUTHENTICATED", "1/x", "invalid quota window `x`"),
        ("ENDPOINTS__0__SCALE", "no", "expected `true` or `false`"),
        ("", "x", "there is no key ``"),
    ] {
        let name = format!("TOLLGATE_{name}");
        let error = read(&[(&name, value)]).unwrap_err();
        let found: Vec<_> = error
            .problems()
            .filter(|problem| problem.variable() == Some(name.as_str()))
            .collect();
        assert!(!found.is_empty(), "{name} is not named in\n{error}");
        assert!(
            error.to_string().contains(expected),
            "{expected} is not in\n{error}"
        );
        assert!(
            error.problems().all(|problem| problem.line().is_none()),
            "{error}"
        );
    }
}

#[test]
fn conflict_of_a_variable_with_the_file_shows_both() {
    let error = read(&[("TOLLGATE_ENDPOINTS__0__ROUTE", "POST /login")]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "\
error: endpoints[1].route: invalid route `POST /login`
  --> policy.toml:20:9
   |
20 | route = \"POST /login\"
   |         ^^^^^^^^^^^^^ expected another route than `POST /login`, which matches the same requests
   |
  ::: the environment:1:30
   |
   | TOLLGATE_ENDPOINTS__0__ROUTE=POST /login
   |                              ----------- the other one"
    );
}

#[test]
fn two_variables_for_one_setting_are_rejected() {
    let error = read(&[
        ("TOLLGATE_ENDPOINTS__1__COST", "1"),
        ("TOLLGATE_ENDPOINTS__LOG_IN__COST", "2"),
    ])
    .unwrap_err();
    let found = problems(&error);
    assert_eq!(
        found,
        [
            "TOLLGATE_ENDPOINTS__LOG_IN__COST: endpoints[1].cost: two variables set the same key; expected one of them"
        ]
    );
}

/// Bug: the second variable was ignored silently.
#[test]
fn variable_for_a_part_of_another_variable_is_rejected() {
    let error = read(&[
        ("TOLLGATE_ENDPOINTS__LOG_IN__LIMIT", "100/hour"),
        ("TOLLGATE_ENDPOINTS__LOG_IN__LIMIT__1", "20/hour"),
    ])
    .unwrap_err();
    let found = problems(&error);
    assert_eq!(
        found,
        [
            "TOLLGATE_ENDPOINTS__LOG_IN__LIMIT__1: endpoints[1].limit[1]: two variables set the same key; expected one of them"
        ]
    );
}

/// Bug: the first of the two in the file was chosen.
#[test]
fn ambiguous_name_is_rejected() {
    let same_name =
        "[[endpoints]]\nname = \"log.in\"\nroute = \"PUT /login\"\nlimit = \"1/hour\"\n";
    let source = Source::toml(format!("{FILE}\n{same_name}"));
    let variables = [("TOLLGATE_ENDPOINTS__LOG_IN__COST", "2")];
    let error = source.variables(variables).read().unwrap_err();
    let found = error.to_string();
    assert!(
        found.contains("`LOG_IN` may be `log-in` or `log.in`"),
        "{found}"
    );
}

#[cfg(unix)]
#[test]
fn value_that_is_not_utf8_is_rejected() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let name = OsStr::new("TOLLGATE_GLOBAL__AUTHENTICATED");
    let source = Source::toml(FILE).variables([(name, OsStr::from_bytes(b"1\xff/s"))]);
    let found = problems(&source.read().unwrap_err());
    assert_eq!(
        found,
        ["TOLLGATE_GLOBAL__AUTHENTICATED: the value is not UTF-8; expected text in UTF-8"]
    );
}

#[test]
fn settings_without_a_variable_are_unchanged() {
    let config = read(&[("TOLLGATE_ENDPOINTS__0__COUNT", "404, 5xx")]).unwrap();
    let count = Count::statuses(["404", "5xx"]).unwrap();
    let rule = Rule::in_category("top-secrets")
        .limit("10/hour")
        .count(count);
    assert!(format!("{:?}", config.policy()).contains(&format!("{rule:?}")));
}
