//! The migration guide: the settings in its tables and its file are valid.

use tollgate::Quota;

const MIGRATING: &str = include_str!("../../../src/docs/migrating.md");

/// Returns the texts in backticks in a line.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

#[test]
fn quotas_in_tables_are_valid() {
    let rows = MIGRATING.lines().filter(|line| line.starts_with("| "));
    let here = rows.filter_map(|row| row.split(" | ").nth(1));
    let quotas: Vec<&str> = here
        .flat_map(quoted)
        .map(|text| text.trim_matches('"'))
        .filter(|text| text.contains('/') && text.starts_with(|first: char| first.is_numeric()))
        .collect();
    assert!(quotas.len() >= 9, "{quotas:?}");
    for text in quotas {
        if let Err(error) = text.parse::<Quota>() {
            panic!("{error}");
        }
    }
}

#[test]
fn file_and_program_define_the_same_policy() {
    use tollgate::config::Config;
    use tollgate::headers::HeaderSet;
    use tollgate::policy::ExplainRequest;

    let (_, file) = MIGRATING.split_once("```toml\n").unwrap();
    let (file, _) = file.split_once("```").unwrap();
    let config = Config::from_toml(file).unwrap();
    assert_eq!(config.headers().set(), HeaderSet::Ietf);
    assert!(config.client_ip().is_some());

    let policy = config.into_policy();
    let explain = |request| {
        let explain_request = ExplainRequest::new(request).unwrap().ip([203, 0, 113, 7]);
        policy.explain(&explain_request)
    };
    let login = explain("POST /login");
    let counted: Vec<_> = login.counted_by.iter().map(|by| &*by.policy).collect();
    assert_eq!(counted, ["ip:login:1h", "ip:global:15m"]);
    assert!(explain("GET /health").exemption.is_some());
}
