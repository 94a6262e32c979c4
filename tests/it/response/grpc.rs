//! gRPC.

use std::time::Duration;

use http::Request;
use tollgate::RequestHead;
use tollgate::headers::{HeaderSet, HeaderStyle};
use tollgate::response::{Auto, Denial, Grpc, Render, Template};

use super::{denied, limited, oversized, request};
use crate::headers::{NOW, later, name};

fn decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        rest = more;
        if *first == b'%' {
            let (digits, more) = rest.split_at(2);
            let digits = str::from_utf8(digits).unwrap();
            bytes.push(u8::from_str_radix(digits, 16).unwrap());
            rest = more;
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_denial_is_a_status_and_a_message() {
    let (request, name) = (request(), name("user", "api", "10/minute"));
    let template = Template::parse("100 % \u{fc}ber \u{1f6a6}\n\"{policy}\"\u{7f}").unwrap();
    let denial = limited(&request, denied(&name, later(1_500_000))).with_message(&template);
    let response = Grpc::new().respond(&denial, HeaderStyle::new(HeaderSet::Both));
    assert_eq!(response.status(), 200);
    assert!(response.body().is_empty());
    let headers = response.headers();
    assert_eq!(headers["content-type"], "application/grpc");
    assert_eq!(headers["grpc-status"], "8");
    assert_eq!(headers["retry-after"], "2");
    assert_eq!(headers["x-ratelimit-remaining"], "0");
    assert!(!headers.contains_key("grpc-retry-pushback-ms"));
    let message = headers["grpc-message"].to_str().unwrap();
    assert!(
        message.starts_with("100 %25 %C3%BCber %F0%9F%9A%A6%0A\"user"),
        "{message}"
    );
    assert_eq!(decode(message), denial.message());
}

#[test]
fn other_denials_have_other_codes() {
    let request = request();
    let head = RequestHead::of(&request);
    let code = |denial: &Denial<'_>| Grpc::new().render(denial).headers()["grpc-status"].clone();
    assert_eq!(
        code(&Denial::unavailable(head, Duration::from_secs(1), NOW)),
        "14"
    );
    assert_eq!(code(&Denial::unauthorized(head, NOW)), "16");
}

#[test]
fn pushback_is_sent_in_milliseconds() {
    let (request, name) = (request(), name("user", "api", "10/minute"));
    let pushback = |denial: &Denial<'_>| {
        let response = Grpc::new().with_retry_pushback().render(denial);
        response.headers()["grpc-retry-pushback-ms"].clone()
    };
    assert_eq!(
        pushback(&limited(&request, denied(&name, later(1_500_001)))),
        "1501"
    );
    assert_eq!(pushback(&limited(&request, denied(&name, NOW))), "1");
    assert_eq!(pushback(&limited(&request, oversized(&name))), "-1");
    // More milliseconds than clients can count.
    let month = later(31 * 86_400_000_000);
    assert_eq!(pushback(&limited(&request, denied(&name, month))), "-1");
}

#[test]
fn grpc_is_recognised_by_content_type() {
    for (sent, answered) in [
        ("application/grpc", "application/grpc"),
        ("application/grpc+proto", "application/grpc"),
        ("Application/GRPC;charset=x", "application/grpc"),
        ("application/grpc-web", "application/grpc-web+proto"),
        ("application/grpc-web+proto", "application/grpc-web+proto"),
        (
            "application/grpc-web-text",
            "application/grpc-web-text+proto",
        ),
        ("application/grpcfoo", "application/json"),
        ("application/grpc-websocket", "application/json"),
        ("application/json", "application/json"),
        ("", "application/json"),
    ] {
        let request = Request::post("/")
            .header("content-type", sent)
            .body(())
            .unwrap();
        let denial = Denial::unauthorized(RequestHead::of(&request), NOW);
        for response in [
            Auto::new().render(&denial),
            Auto::new().respond(&denial, HeaderStyle::default()),
        ] {
            assert_eq!(response.headers()["content-type"], answered, "{sent}");
        }
    }
}
