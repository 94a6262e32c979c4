//! The mail service: two windows for the whole instance; only sent mail counts.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::process::{Example, PATIENCE, refuses};
use super::send_json;
use crate::support::http::Answer;
use crate::support::sockets::Client;

const PER_MINUTE: &str = "GLOBAL_SEND_RATE_LIMIT_PER_MINUTE";
const PER_HOUR: &str = "GLOBAL_SEND_RATE_LIMIT_PER_HOUR";

async fn started(variables: &[(&str, &str)]) -> (Example, Client) {
    let example = Example::start("outbound_email", variables).await;
    let client = example.version_1();
    (example, client)
}

fn mail(to: &str) -> Value {
    json!({ "to": to, "subject": "hello", "body": "how are you?" })
}

async fn send(client: &Client, to: &str) -> Answer {
    send_json(client, "POST /v1/messages", &[], &mail(to)).await
}

/// Number of messages that the provider accepted.
async fn sent(client: &Client) -> u64 {
    let answer = client.send("GET /v1/messages", &[]).await;
    answer.json()["sent"].as_u64().unwrap()
}

fn assert_denied(answer: &Answer, limit_name: &str, waits: std::ops::RangeInclusive<u64>) {
    assert_eq!(answer.status, 429);
    let wait = answer.number("retry-after");
    assert!(waits.contains(&wait), "{wait} seconds");
    let detail = answer.json()["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains(limit_name), "{detail}");
    assert!(detail.contains(&format!("in {wait} seconds")), "{detail}");
}

#[tokio::test]
async fn without_settings_and_with_zero_there_is_no_limit() {
    for variables in [&[][..], &[(PER_MINUTE, "0"), (PER_HOUR, "0")]] {
        let (_example, client) = started(variables).await;
        let all = join_all((0..100).map(|_| send(&client, "ada@example.com"))).await;
        assert!(all.iter().all(|answer| answer.status == 202));
        assert_eq!(sent(&client).await, 100);
    }
}

#[tokio::test]
async fn each_window_has_a_limit_of_its_own() {
    for (variable, limit_name, waits) in [
        (PER_MINUTE, "per-minute: 2", 1..=61),
        (PER_HOUR, "per-hour: 2", 3_000..=3_660),
    ] {
        let (_example, client) = started(&[(variable, "2")]).await;
        // All recipients together.
        for to in ["ada@example.com", "bob@example.org"] {
            assert_eq!(send(&client, to).await.status, 202);
        }
        for _ in 0..3 {
            assert_denied(
                &send(&client, "ada@example.com").await,
                limit_name,
                waits.clone(),
            );
        }
        assert_eq!(sent(&client).await, 2);
    }
}

#[tokio::test]
async fn retry_after_is_the_longer_wait_of_both_windows() {
    let (_example, client) = started(&[(PER_MINUTE, "2"), (PER_HOUR, "2")]).await;
    for _ in 0..2 {
        assert_eq!(send(&client, "ada@example.com").await.status, 202);
    }
    assert_denied(
        &send(&client, "ada@example.com").await,
        "per-hour: 2",
        3_000..=3_660,
    );
    let (_example, client) = started(&[(PER_MINUTE, "1"), (PER_HOUR, "2")]).await;
    assert_eq!(send(&client, "ada@example.com").await.status, 202);
    assert_denied(
        &send(&client, "ada@example.com").await,
        "per-minute: 1",
        1..=61,
    );
}

#[tokio::test]
async fn only_sent_mail_counts() {
    let (_example, client) = started(&[(PER_HOUR, "2")]).await;
    for round in 0..2 {
        for (to, status) in [
            ("ada@blocked.test", 403),
            ("ada@BLOCKED.Test", 403),
            ("ada@bounce.test", 502),
            ("no-at-sign", 422),
            ("no-domain@", 422),
            ("ada@not-blocked.test", 202),
        ] {
            let answer = send(&client, to).await;
            assert_eq!(answer.status, status, "{to} in round {round}");
            if status != 202 {
                assert!(answer.json()["detail"].is_string(), "{}", answer.body);
                assert_eq!(answer.header("retry-after"), None);
            }
        }
    }
    assert_eq!(sent(&client).await, 2);
    // The domain filter runs before the limit, the provider after it.
    assert_eq!(send(&client, "ada@blocked.test").await.status, 403);
    assert_eq!(send(&client, "ada@bounce.test").await.status, 429);
    for wrong in [json!({}), json!({ "to": "ada@example.com" }), json!("mail")] {
        let answer = send_json(&client, "POST /v1/messages", &[], &wrong).await;
        assert_eq!(answer.status, 422);
        assert!(answer.json()["detail"].is_string());
    }
}

/// A message in progress counts already, so that concurrent requests cannot exceed the limit.
#[tokio::test]
async fn concurrent_requests_never_send_more_than_the_limit() {
    let (_example, client) = started(&[(PER_MINUTE, "1000"), (PER_HOUR, "25")]).await;
    for _ in 0..3 {
        let to = |number: u32| match number % 3 {
            0 => "ada@bounce.test",
            _ => "ada@example.com",
        };
        let all = join_all((0..120).map(|number| send(&client, to(number)))).await;
        for answer in &all {
            assert!(
                [202, 429, 502].contains(&answer.status),
                "{}",
                answer.status
            );
        }
        assert!(sent(&client).await <= 25);
    }
    // Bounced messages were refunded, so there was room for all others.
    while send(&client, "ada@example.com").await.status == 202 {}
    assert_eq!(sent(&client).await, 25);
}

/// A client that disconnects at any moment causes no mail that does not count.
#[tokio::test]
async fn disconnecting_does_not_evade_the_limit() {
    let (example, client) = started(&[(PER_HOUR, "10")]).await;
    let body = mail("ada@example.com").to_string();
    let request = format!(
        "POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    // The provider takes about 20 ms: some clients disconnect before the call, some during it.
    let mut moments = (0..).map(Duration::from_millis);
    while sent(&client).await < 3 {
        let mut connection = TcpStream::connect(example.address()).await.unwrap();
        connection.write_all(request.as_bytes()).await.unwrap();
        sleep(moments.next().unwrap()).await;
    }
    let full = async {
        while sent(&client).await < 10 {
            let answer = send(&client, "ada@example.com").await;
            assert!([202, 429].contains(&answer.status), "{}", answer.status);
        }
    };
    timeout(PATIENCE, full).await.expect("room for all");
    assert_eq!(send(&client, "ada@example.com").await.status, 429);
    assert_eq!(sent(&client).await, 10);
}

#[tokio::test]
async fn denials_are_logged_and_sent_mail_with_debug_logging() {
    let variables = [(PER_MINUTE, "1"), ("LOG_LEVEL", "debug")];
    let mut example = Example::start_with_stderr("outbound_email", &variables).await;
    let client = example.version_1();
    assert_eq!(send(&client, "ada@example.com").await.status, 202);
    let debug = example.stderr_line("sent").await;
    assert!(
        debug.contains("DEBUG") && debug.contains("used=1"),
        "{debug}"
    );
    assert_eq!(send(&client, "ada@example.com").await.status, 429);
    let warning = example.stderr_line("send rate limit exceeded").await;
    for expected in ["WARN", "per-minute", "count=1", "limit=1"] {
        assert!(warning.contains(expected), "{warning}");
    }
}

#[tokio::test]
async fn invalid_values_are_rejected_by_name() {
    let allowed = "a whole number from 0 to 1000000000";
    let wrong = ["-1", "1.5", "ten", "", " 7", "1000000001"];
    let values = [PER_MINUTE, PER_HOUR].into_iter();
    let values: Vec<_> = values
        .flat_map(|name| wrong.map(|value| (name, value, allowed)))
        .collect();
    refuses("outbound_email", &values).await;
}

#[tokio::test]
async fn two_instances_share_one_limit() {
    let mut redis = crate::redis::Server::start();
    let url = redis.url();
    let variables = [("REDIS_URL", url.as_str()), (PER_HOUR, "20")];
    let (_one, first) = started(&variables).await;
    let (_other, second) = started(&variables).await;
    let both = (0..60).map(|number| {
        let client = if number % 2 == 0 { &first } else { &second };
        let to = ["ada@example.com", "ada@bounce.test"][usize::from(number % 3 == 0)];
        send(client, to)
    });
    for answer in join_all(both).await {
        assert!([202, 429, 502].contains(&answer.status), "{}", answer.body);
    }
    // Bounced messages are refunded in Redis as well.
    let filled = async {
        while sent(&first).await + sent(&second).await < 20 {
            let answer = send(&second, "ada@example.com").await;
            assert!([202, 429].contains(&answer.status), "{}", answer.body);
        }
    };
    timeout(PATIENCE, filled).await.expect("room for all");
    for client in [&first, &second] {
        assert_eq!(send(client, "ada@example.com").await.status, 429);
    }
    assert_eq!(sent(&first).await + sent(&second).await, 20);
    redis.assert_that_every_key_ends();

    // Without Redis, mail is counted locally. (A denial may be cached for up to a second.)
    redis.kill();
    let refused = async {
        loop {
            let answer = send(&first, "ada@example.com").await;
            if answer.status != 429 {
                break answer;
            }
        }
    };
    let answer = timeout(PATIENCE, refused).await.expect("an end to it");
    assert_eq!(answer.status, 503);
    assert!(answer.number("retry-after") > 0);
    assert!(answer.json()["detail"].is_string());
}
