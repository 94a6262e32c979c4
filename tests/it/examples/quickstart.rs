//! The quickstart example.

use tokio::process::Command;

use super::process::Example;
use crate::curl::replay;

/// Returns the commands that the example prints.
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
async fn printed_commands_have_the_printed_results() {
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
async fn printed_commands_work_in_a_shell() {
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
async fn token_with_another_signature_is_limited_by_client_ip() {
    let mut example = Example::start("quickstart", &[]).await;
    let [alice, _] = commands(&mut example).await;
    let (head, signature) = alice.rsplit_once('.').unwrap();
    let signature: String = signature.chars().rev().collect();
    let forged = format!("{head}.{}'", signature.trim_matches('\''));
    let response = &replay(example.address(), &forged).await[0];
    assert_eq!(response.header("x-ratelimit-policy"), Some("ip:global:1h"));
    assert_eq!(response.number("x-ratelimit-remaining"), 19);
}

#[test]
fn is_one_file_of_at_most_60_lines() {
    let source = include_str!("../../../examples/quickstart.rs");
    assert!(source.lines().count() <= 60);
    let modules = source.lines().filter(|line| line.starts_with("mod "));
    assert_eq!(modules.count(), 0);
}
