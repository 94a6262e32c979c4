//! Replacement for curl: sends the same method, headers and body.

use std::net::SocketAddr;

use axum::body::Body;
use axum::http::Request;
use serde_json::Value;

use crate::support::http::Answer;
use crate::support::sockets::{Client, Version};

/// Splits a command into words, as a shell does.
pub(crate) fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for letter in command.chars() {
        match (quote, letter) {
            (Some(open), _) if open == letter => quote = None,
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, ' ') => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    assert_eq!(quote, None, "unclosed quote: {command}");
    words.extend(word);
    words
}

/// A parsed command.
#[derive(Debug, PartialEq, Eq)]
struct Curl {
    method: String,
    headers: Vec<(String, String)>,
    body: String,
    url: String,
    times: usize,
    is_version_2: bool,
}

impl Curl {
    fn parse(command: &str) -> Self {
        let mut words = words(command).into_iter();
        assert_eq!(words.next().as_deref(), Some("curl"), "{command}");
        let (mut method, mut body, mut url) = (None, None, None);
        let mut headers = Vec::new();
        let mut is_version_2 = false;
        while let Some(word) = words.next() {
            let mut value = || {
                words
                    .next()
                    .unwrap_or_else(|| panic!("{word} needs a value"))
            };
            match &*word {
                "-i" | "-s" => {}
                "-X" => method = Some(value()),
                "-d" => body = Some(value()),
                "--http2-prior-knowledge" => is_version_2 = true,
                "-H" => {
                    let line = value();
                    let (name, value) = line.split_once(": ").expect("name: value");
                    headers.push((name.to_ascii_lowercase(), value.to_owned()));
                }
                _ if word.starts_with('-') => panic!("unknown option {word}: {command}"),
                _ => assert_eq!(url.replace(word), None, "two URLs: {command}"),
            }
        }
        let has_content_type = headers.iter().any(|(name, _)| name == "content-type");
        if body.is_some() && !has_content_type {
            let form = "application/x-www-form-urlencoded";
            headers.push(("content-type".to_owned(), form.to_owned()));
        }
        let implied = if body.is_some() { "POST" } else { "GET" };
        let url = url.expect("a URL");
        let (url, times) = match url.split_once("[1-") {
            Some((url, times)) => (url, times.strip_suffix(']').unwrap().parse().unwrap()),
            None => (&*url, 1),
        };
        Self {
            method: method.unwrap_or_else(|| implied.to_owned()),
            headers,
            body: body.unwrap_or_default(),
            url: url.to_owned(),
            times,
            is_version_2,
        }
    }
}

/// Sends the requests of a command, whose URL must name this server. Returns the responses.
pub(crate) async fn replay(server: SocketAddr, command: &str) -> Vec<Answer> {
    let curl = Curl::parse(command);
    let path = curl.url.strip_prefix(&format!("http://{server}"));
    let path = path.unwrap_or_else(|| panic!("not the address of {server}: {command}"));
    let version = if curl.is_version_2 {
        Version::Http2
    } else {
        Version::Http1
    };
    let client = Client::new(version, server);
    let mut answers = Vec::new();
    for number in 1..=curl.times {
        let path = match curl.times {
            1 => path.to_owned(),
            _ => format!("{path}{number}"),
        };
        let mut request = Request::builder().method(&*curl.method).uri(path);
        for (name, value) in &curl.headers {
            request = request.header(name, value);
        }
        let request = request.body(Body::from(curl.body.clone())).unwrap();
        answers.push(client.send_request(request).await);
    }
    answers
}

/// Compares a response with one that a page shows, except for values that change with time.
pub(crate) fn assert_is_shown(answer: &Answer, shown: &str) {
    let (head, body) = shown.split_once("\n\n").unwrap_or((shown, ""));
    let (status, headers) = head.split_once('\n').unwrap();
    let expected = format!("HTTP/1.1 {} ", answer.status);
    assert!(status.starts_with(&expected), "{status}");
    for line in headers.lines() {
        let (name, value) = line.split_once(": ").unwrap();
        let sent = answer.header(name).unwrap_or_else(|| panic!("no {name}"));
        let changing = ["x-ratelimit-reset", "retry-after", "x-request-id", "date"];
        assert!(sent == value || changing.contains(&name), "{line}: {sent}");
    }
    if !body.is_empty() {
        assert_eq!(
            without_changing_values(&answer.body),
            without_changing_values(body)
        );
    }
}

/// Returns a body without the values that change with time.
fn without_changing_values(body: &str) -> Value {
    let Ok(mut body) = serde_json::from_str::<Value>(body) else {
        return body.trim().into();
    };
    let error = &mut body["error"];
    for changing in ["message", "request_id", "timestamp"] {
        assert!(error[changing].take().is_string(), "no {changing}");
    }
    for changing in ["reset_at", "retry_after"] {
        assert!(
            !error["details"][changing].take().is_null(),
            "no {changing}"
        );
    }
    body
}

#[test]
fn commands_are_split_as_by_a_shell() {
    assert_eq!(
        words(r#"tollgate explain --request "GET /a b"  -d '{"a": 1}' ''"#),
        [
            "tollgate",
            "explain",
            "--request",
            "GET /a b",
            "-d",
            r#"{"a": 1}"#,
            ""
        ]
    );
}

#[test]
fn commands_are_parsed_as_by_curl() {
    let plain = Curl::parse("curl -i http://localhost/");
    assert_eq!(
        (&*plain.method, &*plain.url, plain.times),
        ("GET", "http://localhost/", 1)
    );
    let sent = Curl::parse("curl http://localhost/a?[1-3] -d 'x=1' -H 'X-User: me'");
    assert_eq!((&*sent.method, &*sent.body, sent.times), ("POST", "x=1", 3));
    let names: Vec<&str> = sent.headers.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["x-user", "content-type"]);
}
