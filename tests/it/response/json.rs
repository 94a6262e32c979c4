//! The JSON envelope.

use std::time::Duration;

use http::Response;
use proptest::prelude::*;
use serde_json::{Value, json};
use tollgate::headers::{HeaderSet, HeaderStyle, ResetStyle};
use tollgate::response::{Denial, JsonEnvelope, Render, RequestId, Template};
use tollgate::{Outcome, RequestHead, Timestamp, Usage};

use super::{denied, limited, oversized, request};
use crate::headers::{NOW, config, later, name};

fn text(response: &Response<bytes::Bytes>) -> &str {
    str::from_utf8(response.body()).unwrap()
}

fn parse(response: &Response<bytes::Bytes>) -> Value {
    serde_json::from_slice(response.body()).unwrap()
}

#[test]
fn the_envelope_to_the_letter() {
    let (request, name) = (request(), name("user", "global", "1000/hour"));
    let at = Timestamp::from_secs(1_761_829_944);
    let usage = denied(&name, Timestamp::from_secs(1_761_832_800));
    let id = RequestId::from_text("req_7f8e9d0c1b2a3456").unwrap();
    let denial = Denial::limited(RequestHead::of(&request), usage, at).with_request_id(id);
    let response = JsonEnvelope.render(&denial);
    assert_eq!(response.status(), 429);
    assert_eq!(response.headers()["content-type"], "application/json");
    let length = response.body().len().to_string();
    assert_eq!(response.headers()["content-length"], length);
    let expected = r#"{"error":{"code":"RATE_LIMIT_EXCEEDED","message":"Rate limit exceeded. Please try again in 48 minutes.","details":{"limit":1000,"remaining":0,"reset_at":"2025-10-30T14:00:00.000Z","retry_after":2856,"policy":"user:global:1h"},"request_id":"req_7f8e9d0c1b2a3456","timestamp":"2025-10-30T13:12:24.000Z"}}"#;
    assert_eq!(text(&response), expected);

    let suggested = denial.with_suggestion("Have a break");
    let response = JsonEnvelope.render(&suggested);
    let more = r#""policy":"user:global:1h","suggestion":"Have a break"},"#;
    assert_eq!(
        text(&response),
        expected.replace(r#""policy":"user:global:1h"},"#, more)
    );
}

#[test]
fn a_store_that_fails_is_no_fake_429() {
    let request = request();
    let denial = Denial::unavailable(RequestHead::of(&request), Duration::from_millis(1_500), NOW);
    let response = JsonEnvelope.respond(&denial, HeaderStyle::default());
    assert_eq!(response.status(), 503);
    assert_eq!(response.headers()["retry-after"], "2");
    let error = &parse(&response)["error"];
    assert_eq!(error["code"], "RATE_LIMIT_UNAVAILABLE");
    assert_eq!(
        error["details"],
        json!({"reset_at": "2025-10-30T13:12:26.000Z", "retry_after": 2})
    );
    assert!(!response.headers().contains_key("x-ratelimit-limit"));
}

#[test]
fn message_shows_that_waiting_does_not_help() {
    let request = request();
    for (quota, part, limit) in [
        ("500/hour", "more than the limit of 500 allows", 500),
        ("blocked", "blocked", 0),
    ] {
        let name = name("user", "secrets", quota);
        let template = Template::parse("Try again in {retry_in}.").unwrap();
        let denial = limited(&request, oversized(&name)).with_message(&template);
        let response = JsonEnvelope.respond(&denial, HeaderStyle::default());
        assert_eq!(response.status(), 429);
        assert!(!response.headers().contains_key("retry-after"));
        assert!(!response.headers().contains_key("x-ratelimit-reset"));
        assert_eq!(response.headers()["x-ratelimit-remaining"], "0");
        let error = &parse(&response)["error"];
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(part) && !message.contains("again in"));
        let details = json!({"limit": limit, "remaining": 0, "policy": name.as_str()});
        assert_eq!(error["details"], details);
    }
}

/// The short way and the long way to a whole response.
#[test]
fn constructor_and_setters_give_the_same_document() {
    let (request, name) = (request(), name("user", "secrets", "500/hour"));
    let denial = limited(&request, denied(&name, later(7)));
    let closure = tollgate::response::render_with(|denial| JsonEnvelope.render(denial));
    for set in [
        HeaderSet::Legacy,
        HeaderSet::Ietf,
        HeaderSet::Both,
        HeaderSet::None,
    ] {
        for reset in [ResetStyle::UnixSeconds, ResetStyle::DeltaSeconds] {
            let style = HeaderStyle::new(set).with_reset(reset);
            let (short, long) = (
                JsonEnvelope.respond(&denial, style),
                closure.respond(&denial, style),
            );
            assert_eq!(short.status(), long.status());
            assert_eq!(short.headers(), long.headers(), "{set}");
            assert_eq!(short.body(), long.body());
        }
    }
}

#[test]
fn a_whole_denial_carries_every_header_once() {
    let (request, name) = (request(), name("user", "secrets", "500/hour"));
    let denial = limited(&request, denied(&name, later(2_855_876_544)));
    let mut response = JsonEnvelope.respond(&denial, HeaderStyle::default());
    let expected = [
        ("content-type", "application/json"),
        ("cache-control", "no-store"),
        ("x-request-id", "req_7f8e9d0c1b2a3456"),
        ("retry-after", "2856"),
        ("x-ratelimit-limit", "500"),
        ("x-ratelimit-remaining", "0"),
        ("x-ratelimit-reset", "1761832800"),
        ("x-ratelimit-policy", "user:secrets:1h"),
    ];
    assert_eq!(response.headers().len(), expected.len() + 1);
    for (name, value) in expected {
        assert_eq!(response.headers()[name], value, "{name}");
    }
    // The map is a copy: what one response gets the next one does not.
    response
        .headers_mut()
        .insert("x-more", "1".parse().unwrap());
    let next = JsonEnvelope.respond(&denial, HeaderStyle::default());
    assert!(!next.headers().contains_key("x-more"));
}

/// All fields with the wait have the same wait.
fn agree(response: &Response<bytes::Bytes>, at: Timestamp, reset: Timestamp) {
    let number =
        |name: &str| -> u64 { response.headers()[name].to_str().unwrap().parse().unwrap() };
    let details = &parse(response)["error"]["details"];
    let reset_at: jiff::Timestamp = details["reset_at"].as_str().unwrap().parse().unwrap();
    let reset_at = u64::try_from(reset_at.as_second()).unwrap();
    assert_eq!(reset_at, number("x-ratelimit-reset"));
    assert_eq!(reset_at, reset.as_micros().div_ceil(1_000_000));
    let retry_after = number("retry-after");
    assert_eq!(details["retry_after"], retry_after);
    let wait = reset.as_micros() - at.as_micros();
    assert_eq!(retry_after, wait.div_ceil(1_000_000).max(1));
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn times_never_contradict_each_other(
        at in 0_u64..Timestamp::MAX.as_micros() / 2,
        wait in prop_oneof![0_u64..3_000_000, 0..100_000_000_000_u64, 0..1_u64 << 51],
    ) {
        let (request, name) = (request(), name("user", "secrets", "500/hour"));
        let (at, reset) = (Timestamp::from_micros(at), Timestamp::from_micros(at + wait));
        let denial = Denial::limited(RequestHead::of(&request), denied(&name, reset), at);
        let response = JsonEnvelope.respond(&denial, HeaderStyle::default());
        agree(&response, at, reset);
        let written: jiff::Timestamp = parse(&response)["error"]["timestamp"]
            .as_str().unwrap().parse().unwrap();
        prop_assert_eq!(u64::try_from(written.as_millisecond()).unwrap(), at.as_micros() / 1_000);
    }

    /// Any text yields valid JSON with the same text.
    #[test]
    fn hostile_texts_come_back_as_they_were(
        message in "(\\PC|[\u{0}-\u{1f}\"\\\\<>/\u{7f}\u{2028}])*",
        suggestion in "(\\PC|[\u{0}-\u{1f}\"\\\\<>/\u{7f}\u{2028}])*",
        tier in "(\\PC|[\u{0}-\u{1f}\"\\\\<>/])*",
        limit in 1_u64..=u64::MAX - 1,
    ) {
        let (request, name) = (request(), name("user", "secrets", "500/hour"));
        let escaped = message.replace('{', "{{").replace('}', "}}");
        let template = Template::parse(&format!("{escaped}{{tier}}{{limit}}")).unwrap();
        let usage = Usage::new(limit, limit, later(1), Outcome::Denied);
        let usage = tollgate::headers::QuotaUsage::new(&name, usage);
        let denial = limited(&request, usage)
            .with_message(&template)
            .with_tier(&tier)
            .with_suggestion(&suggestion);
        let response = JsonEnvelope.respond(&denial, HeaderStyle::default());
        let error = &parse(&response)["error"];
        prop_assert_eq!(error["message"].as_str().unwrap(), format!("{message}{tier}{limit}"));
        prop_assert_eq!(error["message"].as_str().unwrap(), denial.message());
        prop_assert_eq!(error["details"]["suggestion"].as_str().unwrap(), suggestion);
        prop_assert_eq!(error["details"]["limit"].as_u64(), Some(limit));
        let raw = text(&response).contains(['<', '\u{0}', '\u{7f}', '\n']);
        prop_assert!(!raw);
        prop_assert!(!text(&response).contains("mallory"));
        let shown: Vec<&[u8]> = response.headers().values().map(http::HeaderValue::as_bytes).collect();
        prop_assert!(!shown.concat().windows(7).any(|window| window == b"mallory"));
    }
}

/// More than a thread keeps: the next document starts afresh all the same.
#[test]
fn long_and_short_documents_do_not_mix() {
    let (request, name) = (request(), name("user", "secrets", "500/hour"));
    let long = "so long ".repeat(2_000);
    for suggestion in ["short", &long, "short again"] {
        let denial = limited(&request, denied(&name, later(1))).with_suggestion(suggestion);
        let response = JsonEnvelope.render(&denial);
        let found = &parse(&response)["error"]["details"]["suggestion"];
        assert_eq!(found, suggestion);
    }
}
