//! The examples as processes: started, called over a socket, stopped.

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

/// Those that serve, and all they have in common.
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

/// The answer to a request with a JSON body: `POST /path`, and headers.
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
async fn a_wrong_port_is_refused_by_name() {
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
async fn a_port_that_is_taken_is_refused_by_name() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for name in SERVERS {
        let end = ended(name, &[("PORT", &port)]).await;
        assert_eq!((end.code, end.stdout.as_str()), (Some(2), ""), "{name}");
        assert!(end.stderr.contains(&port), "{name}: {}", end.stderr);
    }
}

/// Those that tell little; the others have tests that look closer.
#[tokio::test]
async fn what_they_tell_people_to_try_works() {
    async fn works<const N: usize>(name: &str) {
        let mut example = Example::start(name, &[]).await;
        for command in quickstart::commands::<N>(&mut example).await {
            let answers = curl::replay(example.address(), &command).await;
            let status = answers[0].status;
            assert!((200..300).contains(&status), "{status}: {command}");
        }
    }
    works::<2>("group_agent").await;
    works::<1>("outbound_email").await;
    works::<1>("telegram_webhook").await;
}

/// Examples that use Redis if `REDIS_URL` is set. The quickstart counts in memory only.
#[tokio::test]
async fn a_wrong_redis_is_refused_by_name_and_without_its_password() {
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

/// A wrong choice of TLS and a wrong password look like an outage otherwise, and the program would run
/// without shared limits.
#[tokio::test]
async fn redis_that_rejects_the_configuration_ends_them_with_code_2() {
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
        for (url, advice) in &cases {
            let end = ended(name, &[("REDIS_URL", url)]).await;
            assert_eq!((end.code, end.stdout.as_str()), (Some(2), ""), "{name}");
            assert!(end.stderr.contains(advice), "{name}: {}", end.stderr);
            assert!(!end.stderr.contains("hush"), "{name}: {}", end.stderr);
        }
    }
}

/// Also while an idle connection is open.
#[cfg(unix)]
#[tokio::test]
async fn sigterm_ends_them_cleanly() {
    for name in SERVERS {
        let example = Example::start(name, &[]).await;
        let idle = tokio::net::TcpStream::connect(example.address()).await;
        assert_eq!(example.terminate().await, Some(0), "{name}");
        drop(idle);
        let example = Example::start(name, &[]).await;
        assert_eq!(example.terminate().await, Some(0), "{name}");
    }
}

/// Scripts read one line and close the pipe.
#[tokio::test]
async fn a_closed_stdout_does_not_stop_them() {
    for name in SERVERS {
        let mut example = Example::start(name, &[]).await;
        example.stop_reading();
        let client = Client::new(Version::Http2, example.address());
        assert!(client.send("GET /", &[]).await.status > 0, "{name} is gone");
    }
}

#[tokio::test]
async fn first_limit_counts_to_three() {
    let end = ended("first_limit", &[]).await;
    assert_eq!(end.code, Some(0));
    let lines: Vec<&str> = end.stdout.lines().collect();
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[2], "message 3: sent, 0 left");
    assert!(lines[3].starts_with("message 4: too many, try again in "));
}
