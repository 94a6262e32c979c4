//! The first program that people run.

use tokio::process::Command;

use super::process::{Example, refuses};
use crate::curl::replay;

/// The first commands that it tells people to try.
pub(super) async fn commands<const N: usize>(example: &mut Example) -> [String; N] {
    let mut commands = Vec::new();
    while commands.len() < N {
        let line = example.line().await;
        if line.trim_start().starts_with("curl ") {
            commands.push(line.trim().to_owned());
        }
    }
    commands.try_into().unwrap()
}

#[tokio::test]
async fn its_commands_do_what_it_says() {
    let mut example = Example::start("quickstart", &[]).await;
    let [alice, reports] = commands(&mut example).await;

    let answers = replay(example.address(), &alice).await;
    let [hello] = answers.as_slice() else {
        panic!("one request, not {}", answers.len());
    };
    assert_eq!((hello.status, hello.body.as_str()), (200, "hello\n"));
    assert_eq!(hello.header("x-ratelimit-policy"), Some("user:global:1h"));
    assert_eq!(hello.number("x-ratelimit-limit"), 500);
    assert_eq!(hello.number("x-ratelimit-remaining"), 499);

    let answers = replay(example.address(), &reports).await;
    let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    assert_eq!(statuses, [200, 200, 200, 429]);
    for (left, answer) in [2, 1, 0, 0].into_iter().zip(&answers) {
        assert_eq!(answer.header("x-ratelimit-policy"), Some("ip:reports:1m"));
        assert_eq!(answer.number("x-ratelimit-limit"), 3);
        assert_eq!(answer.number("x-ratelimit-remaining"), left);
    }
    let denied = &answers[3];
    let wait = denied.number("retry-after");
    assert!((1..=120).contains(&wait), "{wait} seconds");
    assert_eq!(denied.header("cache-control"), Some("no-store"));
    let error = &denied.json()["error"];
    assert_eq!(error["code"], "RATE_LIMIT_EXCEEDED");
    assert_eq!(error["details"]["retry_after"], wait);
    assert_eq!(denied.header("x-request-id"), error["request_id"].as_str());
}

/// With the program that it names, where there is one.
#[tokio::test]
async fn its_commands_work_in_a_shell() {
    let mut example = Example::start("quickstart", &[]).await;
    for (command, statuses) in commands::<2>(&mut example)
        .await
        .into_iter()
        .zip([&["200"][..], &["200", "200", "200", "429"]])
    {
        let shell = ["-c", &command];
        let Ok(output) = Command::new("sh")
            .args(shell)
            .env("NO_PROXY", "*")
            .output()
            .await
        else {
            return eprintln!("there is no shell");
        };
        if output.status.code() == Some(127) {
            return eprintln!("there is no curl");
        }
        let text = String::from_utf8(output.stdout).unwrap();
        let seen: Vec<&str> = text
            .lines()
            .filter_map(|line| line.split_once("HTTP/1.1 "))
            .map(|(_, status)| &status[..3])
            .collect();
        assert_eq!(seen, statuses, "{command}\n{text}");
    }
}

#[tokio::test]
async fn callers_are_who_their_token_says() {
    let secret = [("JWT_SECRET", "a secret of this test")];
    let mut example = Example::start("quickstart", &secret).await;
    let [alice, _] = commands(&mut example).await;
    assert_eq!(
        replay(example.address(), &alice).await[0].number("x-ratelimit-remaining"),
        499
    );

    // A token signed with another secret is nobody's.
    let mut other = Example::start("quickstart", &[]).await;
    let [forged, _] = commands(&mut other).await;
    let (from, to) = (other.address().to_string(), example.address().to_string());
    let forged = forged.replace(&from, &to);
    let answer = &replay(example.address(), &forged).await[0];
    assert_eq!(answer.header("x-ratelimit-policy"), Some("ip:global:1h"));
    assert_eq!(answer.number("x-ratelimit-remaining"), 19);
}

#[tokio::test]
async fn the_development_secret_is_told_and_no_other() {
    let mut example = Example::start("quickstart", &[]).await;
    let mut told = String::new();
    while !told.contains("curl") {
        told += &example.line().await;
    }
    assert!(told.contains("JWT_SECRET is not set"), "{told}");

    let mut example = Example::start("quickstart", &[("JWT_SECRET", "hush-hush")]).await;
    let mut told = String::new();
    while !told.contains("curl") {
        told += &example.line().await;
    }
    assert!(
        !told.contains("JWT_SECRET") && !told.contains("hush-hush"),
        "{told}"
    );
}

#[tokio::test]
async fn a_wrong_secret_is_refused_by_name() {
    const ALLOWED: &str = "neither empty nor a PEM text";
    let pem = "-----BEGIN PUBLIC KEY-----";
    let wrong = [("JWT_SECRET", "", ALLOWED), ("JWT_SECRET", pem, ALLOWED)];
    refuses("quickstart", &wrong).await;
}
