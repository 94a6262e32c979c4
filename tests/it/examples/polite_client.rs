//! The pacing client, against its own server and against another example.

use super::process::{Example, ended};

#[tokio::test]
async fn client_without_settings_starts_its_own_server() {
    let end = ended("polite_client", &[("CALLS", "40"), ("CLIENTS", "3")]).await;
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let lines: Vec<&str> = end.stdout.lines().collect();
    assert!(
        lines[0].contains("30 requests per 3 seconds"),
        "{}",
        end.stdout
    );
    let last = lines[lines.len() - 1];
    assert!(last.starts_with("40 of 40 calls served in "), "{last}");
    assert!(last.ends_with(", 0 denied after retries"), "{last}");
}

#[tokio::test]
async fn client_calls_the_configured_url() {
    let server = Example::start("hyper_server", &[]).await;
    let url = format!("http://{}/", server.address());
    let settings = [
        ("TARGET_URL", url.as_str()),
        ("CALLS", "10"),
        ("CLIENTS", "2"),
    ];
    let end = ended("polite_client", &settings).await;
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    assert!(!end.stdout.contains("started a server"), "{}", end.stdout);
    assert!(
        end.stdout.contains("10 of 10 calls served"),
        "{}",
        end.stdout
    );
    let left = server.version_1().send("GET /", &[]).await;
    assert_eq!(left.number("x-ratelimit-remaining"), 20 - 11);
}

#[tokio::test]
async fn invalid_settings_are_rejected_by_name() {
    for (name, value) in [
        ("CALLS", "0"),
        ("CALLS", "many"),
        ("CLIENTS", "1001"),
        ("CLIENTS", ""),
        ("TARGET_URL", "https://example.com/"),
        ("TARGET_URL", ""),
    ] {
        let end = ended("polite_client", &[(name, value)]).await;
        assert_eq!(
            (end.code, end.stdout.as_str()),
            (Some(2), ""),
            "{name}={value}"
        );
        let expected = format!("{name}={value:?} cannot be used");
        assert!(end.stderr.contains(&expected), "{}", end.stderr);
    }
}
