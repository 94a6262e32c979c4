//! What a request is called.

use std::collections::HashSet;

use http::{HeaderMap, HeaderValue};
use tollgate::response::RequestId;

fn of(headers: &[(&'static str, &[u8])]) -> String {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(*name, HeaderValue::from_bytes(value).unwrap());
    }
    RequestId::of(&map).as_str().to_owned()
}

fn is_new(id: &str) -> bool {
    let digits = id.strip_prefix("req_").unwrap_or_default();
    let hex = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    digits.len() == 16 && digits.bytes().all(hex)
}

#[test]
fn plain_names_are_kept() {
    let longest = "x".repeat(128);
    for name in [
        "a",
        "0-9._:/+=@-Z",
        "b6ad5ff2-4a1e-4a0e-9c69-0d5b3f0e7a11",
        &longest,
    ] {
        assert_eq!(of(&[("x-request-id", name.as_bytes())]), name);
        assert_eq!(RequestId::from_text(name).unwrap().as_str(), name);
    }
}

#[test]
fn hostile_names_are_not() {
    let long = [b'x'; 129];
    let names: [&[u8]; 11] = [
        b"",
        b"a b",
        b"\"}",
        b"a\\n",
        b"<script>",
        b"$(reboot)",
        b"a,b",
        b"a\tb",
        b"\xc3\xbc",
        b"\xff",
        &long,
    ];
    for name in names {
        assert!(is_new(&of(&[("x-request-id", name)])), "{name:?}");
    }
    // Two values are ambiguous.
    assert!(is_new(&of(&[
        ("x-request-id", b"a"),
        ("x-request-id", b"b")
    ])));
    assert!(RequestId::from_text("a b").is_none());
}

/// Few headers are walked past, many are not.
#[test]
fn a_name_is_found_among_however_many_headers() {
    for others in 0..40 {
        let mut map = HeaderMap::new();
        for other in 0..others {
            let name: http::HeaderName = format!("x-other-{other}").parse().unwrap();
            map.append(name, HeaderValue::from_static("b"));
        }
        assert!(is_new(RequestId::of(&map).as_str()), "{others}");
        map.append("x-request-id", HeaderValue::from_static("a"));
        assert_eq!(RequestId::of(&map).as_str(), "a", "{others}");
    }
}

#[test]
fn a_trace_names_its_requests() {
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let zeros = "0".repeat(32);
    let valid = [
        format!("00-{trace}-00f067aa0ba902b7-01"),
        format!("00-{trace}-00f067aa0ba902b7-ff"),
        format!("01-{trace}-00f067aa0ba902b7-01"),
        format!("cc-{trace}-00f067aa0ba902b7-01-what-comes-next"),
    ];
    for parent in &valid {
        assert_eq!(of(&[("traceparent", parent.as_bytes())]), trace);
    }
    for parent in [
        format!("ff-{trace}-00f067aa0ba902b7-01"),
        format!("00-{trace}-00f067aa0ba902b7-01-more"),
        format!("00-{trace}-00f067aa0ba902b7-01-"),
        format!("00-{trace}-00f067aa0ba902b7"),
        format!("00-{trace}-00f067aa0ba902b7-1"),
        format!("00-{trace}-0000000000000000-01"),
        format!("00-{zeros}-00f067aa0ba902b7-01"),
        format!("00-{}-00f067aa0ba902b7-01", trace.to_uppercase()),
        format!("0-{trace}-00f067aa0ba902b7-01"),
        format!("00-{}-00f067aa0ba902b7-01", &trace[1..]),
        String::new(),
        "-".repeat(55),
    ] {
        assert!(
            is_new(&of(&[("traceparent", parent.as_bytes())])),
            "{parent}"
        );
    }
    let twice = [("traceparent", valid[0].as_bytes()); 2];
    assert!(is_new(&of(&twice)));
    // A name comes first, but not any name.
    let parent = ("traceparent", valid[0].as_bytes());
    assert_eq!(of(&[parent, ("x-request-id", b"mine")]), "mine");
    assert_eq!(of(&[parent, ("x-request-id", b"not mine")]), trace);
}

#[test]
fn new_names_are_new_on_every_thread() {
    let threads: Vec<_> = (0..4)
        .map(|_| std::thread::spawn(|| (0..5_000).map(|_| of(&[])).collect::<Vec<_>>()))
        .collect();
    let all = threads
        .into_iter()
        .flat_map(|thread| thread.join().unwrap());
    let ids: HashSet<String> = all.inspect(|id| assert!(is_new(id))).collect();
    assert_eq!(ids.len(), 20_000);
}
