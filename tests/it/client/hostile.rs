//! Servers with wrong limits: no request waits longer than `max_wait`.

use std::time::Duration;

use http::{HeaderName, HeaderValue, Response};
use proptest::prelude::*;
use tollgate::{Clock, ManualClock};

use super::{Body, Server, get, limit_headers, pace, send_in_steps};
use crate::headers::config;

const MOST: Duration = Duration::from_mins(1);

const STEP: Duration = Duration::from_millis(500);

/// How long each of four requests is held back: never longer than agreed.
async fn stays_bounded(server: impl Fn(&ManualClock) -> Server) -> Vec<Duration> {
    let clock = ManualClock::new();
    let server = server(&clock);
    let layer = pace(&clock).max_wait(MOST).build().unwrap();
    let mut waits = Vec::new();
    for _ in 0..4 {
        let began = clock.now();
        send_in_steps(STEP, &layer, &server, get(), &clock).await;
        let wait = clock.now().duration_since(began);
        // Each sleep may end a step late, and there are at most four.
        assert!(wait <= MOST + STEP * 4, "{wait:?}");
        waits.push(wait);
    }
    waits
}

#[tokio::test]
async fn no_lie_holds_a_request_longer_than_agreed() {
    let year_9999 = "253402300799";
    let lies: &[&[(&str, &str)]] = &[
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
    for lie in lies {
        for status in [200, 403, 429, 503] {
            stays_bounded(|clock| {
                (0..100).fold(Server::new(clock), |server, _| server.then(status, lie))
            })
            .await;
        }
    }
}

/// A block without meaning ends with a served request.
#[tokio::test]
async fn a_lie_is_forgotten() {
    let forever: &[_] = &[("retry-after", "9999999")];
    let waits = stays_bounded(|clock| Server::new(clock).then(429, forever)).await;
    assert_eq!(waits[0], Duration::ZERO, "it was returned at once");
    assert!(waits[1] >= MOST, "the server had requested it");
    assert_eq!(waits[2..], [Duration::ZERO; 2]);
}

/// A reserved instant in the year 9999 delayed all later requests: each of them was
/// held for as long as agreed, however honest the server was by then.
#[tokio::test]
async fn a_far_reservation_delays_no_later_request() {
    let far = limit_headers("100", "5", "253402300799");
    let near = limit_headers("1000", "40", "60");
    let waits = stays_bounded(|clock| Server::new(clock).then(200, &far).then(200, &near)).await;
    assert!(waits[1] >= MOST, "the server had requested it");
    assert!(waits[2] < Duration::from_secs(5), "{waits:?}");
}

/// A limit that goes up and down, and answers that contradict each other.
#[tokio::test]
async fn absurd_numbers_delay_no_request_for_long() {
    let numbers = ["0", "1", "9", "10", "1000000", "18446744073709551615"];
    for limit in numbers {
        for remaining in numbers {
            stays_bounded(|clock| {
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
        runtime.block_on(stays_bounded(server));
    }
}
