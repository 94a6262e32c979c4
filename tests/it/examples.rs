//! The examples, started as processes and called over a socket.

mod common;
mod custom_store;
mod gateway;
mod group_agent;
mod grpc;
mod hyper_server;
mod outbound_email;
mod pictures;
mod polite_client;
pub(crate) mod process;
mod quickstart;
mod readme;
mod telegram_webhook;
mod tenant_chat;

use axum::body::Body;
use axum::http::Request;
use serde_json::Value;

use self::process::{Example, ended};
use crate::curl;
use crate::redis::Server;
use crate::support::http::Answer;
use crate::support::sockets::{Client, Version};

/// Examples that serve HTTP.
pub(crate) const SERVERS: &[&str] = &[
    "gateway",
    "grpc",
    "group_agent",
    "hyper_server",
    "outbound_email",
    "quickstart",
    "telegram_webhook",
    "tenant_chat",
];

/// Sends a request with a JSON body, for example `POST /path`. Returns the response.
async fn send_json(client: &Client, line: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
    let (method, path) = line.split_once(' ').unwrap();
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Body::from(body.to_string())).unwrap();
    client.send_request(request).await
}

#[tokio::test]
async fn an_invalid_port_is_reported() {
    for name in SERVERS {
        for port in ["70000", "-1", "http", ""] {
            let end = ended(name, &[("PORT", port)]).await;
            assert_eq!(end.code, Some(2), "{name} with port {port}");
            assert_eq!(end.stdout, "", "{name} listened on port {port}");
            let expected = format!("PORT={port:?}");
            for expected in [&expected, "from 0 to 65535"] {
                assert!(end.stderr.contains(expected), "{name}: {}", end.stderr);
            }
        }
    }
}

#[tokio::test]
async fn a_port_in_use_is_reported() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for name in SERVERS {
        let end = ended(name, &[("PORT", &port)]).await;
        assert_eq!((end.code, end.stdout.as_str()), (Some(2), ""), "{name}");
        assert!(end.stderr.contains(&port), "{name}: {}", end.stderr);
    }
}

/// Examples without tests of their commands in their own modules.
#[tokio::test]
async fn printed_commands_work() {
    async fn printed_commands_succeed<const N: usize>(name: &str) {
        let mut example = Example::start(name, &[]).await;
        for command in quickstart::commands::<N>(&mut example).await {
            let answers = curl::replay(example.address(), &command).await;
            let status = answers[0].status;
            assert!((200..300).contains(&status), "{status}: {command}");
        }
    }
    printed_commands_succeed::<2>("group_agent").await;
    printed_commands_succeed::<1>("outbound_email").await;
    printed_commands_succeed::<1>("telegram_webhook").await;
}

/// Every example except the quickstart uses Redis if `REDIS_URL` is set.
#[tokio::test]
async fn an_invalid_redis_url_is_reported_without_its_password() {
    for name in SERVERS.iter().filter(|name| **name != "quickstart") {
        for url in ["", "localhost", "http://127.0.0.1:6379", "redis://:6379x"] {
            process::refuses(name, &[("REDIS_URL", url, "redis://")]).await;
        }
        let url = ("REDIS_URL", "http://ada:hush@127.0.0.1");
        let end = ended(name, &[url]).await;
        assert_eq!((end.code, end.stdout.as_str()), (Some(2), ""), "{name}");
        assert!(!end.stderr.contains("hush"), "{name}: {}", end.stderr);
    }
}

/// Without this check, a wrong choice of TLS and a wrong password look like an outage. The program would
/// run without shared limits.
#[tokio::test]
async fn examples_end_with_code_2_if_redis_rejects_the_configuration() {
    let secure = Server::start_on_tls_with(&[]);
    let plain = Server::start_on_tcp_with(&["--requirepass", "word"]);
    let cases = [
        (format!("redis://{}", secure.address()), "use rediss://"),
        (
            format!("redis://:hush@{}", plain.address()),
            "check user and password",
        ),
    ];
    for name in SERVERS.iter().filter(|name| **name != "quickstart") {
        for (url, expected) in &cases {
            let end = ended(name, &[("REDIS_URL", url)]).await;
            assert_eq!((end.code, end.stdout.as_str()), (Some(2), ""), "{name}");
            assert!(end.stderr.contains(expected), "{name}: {}", end.stderr);
            assert!(!end.stderr.contains("hush"), "{name}: {}", end.stderr);
        }
    }
}

/// Also while an idle connection is open.
#[cfg(unix)]
#[tokio::test]
async fn sigterm_ends_examples_with_code_0() {
    for name in SERVERS {
        let example = Example::start(name, &[]).await;
        let idle = tokio::net::TcpStream::connect(example.address()).await;
        assert_eq!(example.terminate().await, Some(0), "{name}");
        drop(idle);
        let example = Example::start(name, &[]).await;
        assert_eq!(example.terminate().await, Some(0), "{name}");
    }
}

/// Also while the shutdown cannot send refunds.
#[cfg(unix)]
#[tokio::test]
async fn sigterm_ends_examples_while_redis_hangs() {
    let redis = Server::start();
    let url = redis.url();
    let mut examples = Vec::new();
    for name in SERVERS.iter().filter(|name| **name != "quickstart") {
        examples.push((name, Example::start(name, &[("REDIS_URL", &url)]).await));
    }
    redis.signal("STOP");
    for (name, example) in examples {
        assert_eq!(example.terminate().await, Some(0), "{name}");
    }
    redis.signal("CONT");
}

/// A script that reads one line and then closes the pipe.
#[tokio::test]
async fn examples_continue_after_stdout_is_closed() {
    for name in SERVERS {
        let mut example = Example::start(name, &[]).await;
        example.stop_reading();
        let client = Client::new(Version::Http2, example.address());
        assert!(
            client.send("GET /", &[]).await.status > 0,
            "{name} has stopped"
        );
    }
}

#[tokio::test]
async fn first_limit_admits_three_messages() {
    let end = ended("first_limit", &[]).await;
    assert_eq!(end.code, Some(0));
    let lines: Vec<&str> = end.stdout.lines().collect();
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[2], "message 3: sent, 0 left");
    assert!(lines[3].starts_with("message 4: too many, try again in "));
}
