//! Servers with wrong limits: no request waits longer than `max_wait`.

use std::time::Duration;

use http::{HeaderName, HeaderValue, Response};
use proptest::prelude::*;
use tollgate::{Clock, ManualClock};

use super::{Body, Server, get, limit_headers, pace, send_in_steps};
use crate::headers::config;

const MAX_WAIT: Duration = Duration::from_mins(1);

const STEP: Duration = Duration::from_millis(500);

/// Sends four requests, and asserts that none waits longer than [`MAX_WAIT`]. Returns their waits.
async fn assert_waits_bounded(server: impl Fn(&ManualClock) -> Server) -> Vec<Duration> {
    let clock = ManualClock::new();
    let server = server(&clock);
    let layer = pace(&clock).max_wait(MAX_WAIT).build().unwrap();
    let mut waits = Vec::new();
    for _ in 0..4 {
        let started = clock.now();
        send_in_steps(STEP, &layer, &server, get(), &clock).await;
        let wait = clock.now().duration_since(started);
        // Each sleep may end one step late, and there are at most four.
        assert!(wait <= MAX_WAIT + STEP * 4, "{wait:?}");
        waits.push(wait);
    }
    waits
}

#[tokio::test]
async fn no_malformed_limit_delays_a_request_beyond_max_wait() {
    let year_9999 = "253402300799";
    let malformed: &[&[(&str, &str)]] = &[
        &limit_headers("100", "0", year_9999),
        &limit_headers("100", "0", "253402300799000"),
        &limit_headers("100", "0", "Fri, 31 Dec 9999 23:59:59 GMT"),
        &limit_headers("100", "0", "18446744073709551615"),
        &limit_headers("100", "0", "99999999999999999999999999"),
        &limit_headers("100", "0", "-1"),
        &limit_headers("100", "-1", "60"),
        &limit_headers("100", "0", "soon"),
        &limit_headers("0", "0", "999999999"),
        &limit_headers("18446744073709551615", "1", year_9999),
        &limit_headers("10", "99999", year_9999),
        &[("ratelimit", r#""x";r=0;t=999999999999999"#)],
        &[
            ("ratelimit", r#""x";r=1;t=999999999999999"#),
            (
                "ratelimit-policy",
                r#""x";q=999999999999999;w=999999999999999"#,
            ),
        ],
        &[("retry-after", year_9999)],
        &[("retry-after", "18446744073709551615")],
        &[("retry-after", "Fri, 31 Dec 9999 23:59:59 GMT")],
        &[("retry-after", "0")],
        &[("retry-after", "-1")],
        &[("retry-after", "NaN")],
    ];
    for headers in malformed {
        for status in [200, 403, 429, 503] {
            assert_waits_bounded(|clock| {
                (0..100).fold(Server::new(clock), |server, _| server.then(status, headers))
            })
            .await;
        }
    }
}

/// A block far in the future ends with a served request.
#[tokio::test]
async fn a_long_block_ends_with_a_served_request() {
    let forever: &[_] = &[("retry-after", "9999999")];
    let waits = assert_waits_bounded(|clock| Server::new(clock).then(429, forever)).await;
    assert_eq!(
        waits[0],
        Duration::ZERO,
        "the response was not returned at once"
    );
    assert!(waits[1] >= MAX_WAIT, "the second request did not wait");
    assert_eq!(waits[2..], [Duration::ZERO; 2]);
}

/// Bug: a reset in the year 9999 delayed all later requests, also after the server had sent right limits.
#[tokio::test]
async fn a_far_reset_delays_no_later_request() {
    let far = limit_headers("100", "0", "253402300799");
    let near = limit_headers("1000", "400", "60");
    let waits =
        assert_waits_bounded(|clock| Server::new(clock).then(200, &far).then(200, &near)).await;
    assert!(waits[1] >= MAX_WAIT, "the second request did not wait");
    assert!(waits[2] < Duration::from_secs(5), "{waits:?}");
}

/// Limits that go up and down, and responses that contradict each other.
#[tokio::test]
async fn contradictory_limits_delay_no_request_beyond_max_wait() {
    let numbers = ["0", "1", "9", "10", "1000000", "18446744073709551615"];
    for limit in numbers {
        for remaining in numbers {
            assert_waits_bounded(|clock| {
                Server::new(clock)
                    .then(200, &limit_headers(limit, remaining, "60"))
                    .then(200, &limit_headers(remaining, limit, "3"))
                    .then(429, &limit_headers(limit, remaining, "1"))
                    .then(200, &limit_headers(limit, limit, "0"))
            })
            .await;
        }
    }
}

const NAMES: [&str; 8] = [
    "x-ratelimit-limit",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
    "ratelimit",
    "ratelimit-policy",
    "retry-after",
    "date",
    "stripe-should-retry",
];

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..30),
        "[0-9]{1,20}".prop_map(String::into_bytes),
        "[0-9]{1,2}".prop_map(String::into_bytes),
        "\"[a-z]\";[rq]=[0-9]{1,15};[tw]=[0-9]{1,15}".prop_map(String::into_bytes),
    ]
}

fn answer() -> impl Strategy<Value = (u16, Vec<(usize, Vec<u8>)>)> {
    let status = prop_oneof![Just(200_u16), Just(403), Just(429), Just(503)];
    let headers = prop::collection::vec((0..NAMES.len(), value()), 0..6);
    (status, headers)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn no_response_delays_a_request_for_long(
        answers in prop::collection::vec(answer(), 1..10),
    ) {
        let server = |clock: &ManualClock| {
            let server = Server::new(clock);
            for (status, headers) in &answers {
                let mut answer = Response::new(Body::default());
                *answer.status_mut() = (*status).try_into().unwrap();
                for (name, value) in headers {
                    if let Ok(value) = HeaderValue::from_bytes(value) {
                        let name = HeaderName::from_static(NAMES[*name]);
                        answer.headers_mut().append(name, value);
                    }
                }
                server.answers.lock().unwrap().push_back(answer);
            }
            server
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(assert_waits_bounded(server));
    }
}
