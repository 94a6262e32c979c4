//! The README shows the example, and what it answers.

use serde_json::Value;

use super::process::Example;
use super::quickstart::{commands, replay};

const README: &str = include_str!("../../../README.md");
const QUICKSTART: &str = include_str!("../../../examples/quickstart.rs");

/// The blocks of this language.
fn blocks(language: &str) -> impl Iterator<Item = &'static str> {
    let fence = format!("```{language}\n");
    let mut rest = README;
    std::iter::from_fn(move || {
        let (block, after) = rest.split_once(&fence)?.1.split_once("```")?;
        rest = after;
        Some(block)
    })
}

#[test]
fn its_program_is_the_example() {
    let shown = blocks("rust").next().unwrap();
    assert!(shown.len() > 500, "hardly a program:\n{shown}");
    assert!(QUICKSTART.contains(shown), "not in the example:\n{shown}");
}

/// A body without what changes from one minute to the next.
fn lasting(body: &str) -> Value {
    let Ok(mut body) = serde_json::from_str::<Value>(body) else {
        return body.trim().into();
    };
    let error = &mut body["error"];
    for passing in ["message", "request_id", "timestamp"] {
        assert!(error[passing].take().is_string(), "no {passing}");
    }
    for passing in ["reset_at", "retry_after"] {
        assert!(!error["details"][passing].take().is_null(), "no {passing}");
    }
    body
}

#[tokio::test]
async fn its_answers_are_those_of_the_example() {
    let mut example = Example::start("quickstart", &[]).await;
    let shown: Vec<&str> = blocks("http").collect();
    assert_eq!(shown.len(), 2);
    for (command, shown) in commands::<2>(&mut example).await.iter().zip(shown) {
        let answer = replay(&example, command).await.pop().unwrap();
        let (head, body) = shown.split_once("\n\n").unwrap();
        let (status, headers) = head.split_once('\n').unwrap();
        let expected = format!("HTTP/1.1 {} ", answer.status);
        assert!(status.starts_with(&expected), "{status}");
        for line in headers.lines() {
            let (name, value) = line.split_once(": ").unwrap();
            let told = answer.header(name).unwrap_or_else(|| panic!("no {name}"));
            let passing = ["x-ratelimit-reset", "retry-after", "x-request-id"];
            assert!(told == value || passing.contains(&name), "{line}: {told}");
        }
        assert_eq!(lasting(&answer.body), lasting(body));
    }
}
