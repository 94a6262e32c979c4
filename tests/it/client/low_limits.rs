//! The callback for limits of which little remains.

use std::sync::{Arc, Mutex, OnceLock};

use tollgate::ManualClock;
use tollgate::client::PaceLayer;

use super::{Server, get, limit_headers, pace, send};

/// Calls of the callback: host and remaining amount.
#[derive(Clone, Default)]
struct Calls(Arc<Mutex<Vec<(String, u64)>>>);

impl Calls {
    fn add(&self, host: &str, remaining: Option<u64>) {
        self.0
            .lock()
            .unwrap()
            .push((host.to_owned(), remaining.unwrap()));
    }

    fn all(&self) -> Vec<(String, u64)> {
        self.0.lock().unwrap().clone()
    }
}

#[tokio::test]
async fn the_callback_is_called_once_each_time_less_than_a_tenth_remains() {
    let (clock, calls) = (ManualClock::new(), Calls::default());
    let noted = calls.clone();
    let layer = pace(&clock)
        .on_low_limit(move |host, limits| noted.add(host, limits.remaining))
        .build()
        .unwrap();
    let mut server = Server::new(&clock);
    for remaining in ["101", "100", "99", "98", "500", "60", "55"] {
        server = server.then(200, &limit_headers("1000", remaining, "600"));
    }
    // A response without limits changes nothing.
    server = server.then(200, &[]);
    for _ in 0..8 {
        send(&layer, &server, get(), &clock).await;
    }
    let expected = [("api.test".to_owned(), 99), ("api.test".to_owned(), 60)];
    assert_eq!(calls.all(), expected);
}

#[tokio::test]
async fn the_callback_can_have_another_share_and_is_called_for_denials() {
    let (clock, calls) = (ManualClock::new(), Calls::default());
    let noted = calls.clone();
    let layer = pace(&clock)
        .low_below(0.0)
        .on_low_limit(move |host, limits| noted.add(host, limits.remaining));
    send_one(&layer.build().unwrap(), 429, "0", &clock).await;
    assert_eq!(calls.all(), [], "nothing is less than no share");

    let noted = calls.clone();
    let layer = pace(&clock)
        .low_below(0.5)
        .on_low_limit(move |host, limits| noted.add(host, limits.remaining));
    send_one(&layer.build().unwrap(), 429, "0", &clock).await;
    assert_eq!(calls.all(), [("api.test".to_owned(), 0)]);

    let error = pace(&clock).low_below(1.5).build().unwrap_err();
    assert!(error.to_string().contains("low_below"), "{error}");
}

async fn send_one(layer: &PaceLayer, status: u16, remaining: &str, clock: &ManualClock) {
    let server = Server::new(clock).then(status, &limit_headers("10", remaining, "1"));
    send(layer, &server, get(), clock).await;
}

/// The callback is called without a lock, and its panic does not reach the request.
#[tokio::test]
async fn the_callback_may_read_the_limits_and_panic() {
    let (clock, calls) = (ManualClock::new(), Calls::default());
    let (noted, own) = (calls.clone(), Arc::new(OnceLock::<PaceLayer>::new()));
    let known = Arc::clone(&own);
    let layer = pace(&clock)
        .on_low_limit(move |host, _| {
            let limits = known.get().unwrap().limits(host).unwrap();
            noted.add(host, limits.remaining);
            panic!("a callback that panics");
        })
        .build()
        .unwrap();
    own.set(layer.clone()).unwrap();
    let server = Server::new(&clock).then(200, &limit_headers("1000", "90", "600"));
    assert_eq!(send(&layer, &server, get(), &clock).await, 200);
    assert_eq!(calls.all(), [("api.test".to_owned(), 90)]);
}
