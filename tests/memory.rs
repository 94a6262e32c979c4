//! What it costs in memory, counted by the allocator. A binary of its own, because it needs an
//! allocator of its own; one test at a time, because the counts are of the whole process.

use std::alloc::System;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, Stats, StatsAlloc};
use tollgate::store::{CircuitBreaker, DenyCache};
use tollgate::{
    Algorithm, Batch, Check, Counter, Limiter, ManualClock, MemoryStore, Quota, Store, StoreAdmin,
    StoreError, StoreFuture, Subject, Timestamp, Usages, Window,
};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn bytes_in_use(region: &Region<'_, System>) -> usize {
    let change = region.change();
    change.bytes_allocated - change.bytes_deallocated
}

/// The least that is allocated, or moved to a larger place, by doing the same again and again. The
/// thread that runs the tests allocates, too, when one of them ends; what does it every time is ours.
fn least_allocated(mut again: impl FnMut() -> Stats) -> (usize, usize) {
    (0..20)
        .map(|_| again())
        .map(|change| (change.allocations, change.reallocations))
        .min()
        .unwrap()
}

/// A request that is let through without headers costs the layer no allocation: by address, by a
/// token that was verified before, with one quota or several, also where the policy has ten
/// thousand endpoints.
#[test]
fn an_allowed_request_allocates_nothing() {
    use bytes::Bytes;
    use http::{Request, Response};
    use http_body_util::Full;
    use tollgate::RateLimitLayer;
    use tollgate::headers::HeaderSet;
    use tollgate::identity::{Jwt, PeerAddr};
    use tollgate::policy::{Policy, Rule};
    use tower::{Layer, Service, service_fn};

    /// `{"sub":"alice","exp":4102444800}`, signed with HS256 and `secret`.
    const TOKEN: &str = "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbGljZSIsImV4cCI6NDEwMjQ0NDgwMH0.\
                         P5ScZaGBjbJFJvIyAyATt-Eav0BkBHBCV_VAucsGu4s";

    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let mut policy = Policy::builder()
        .everyone("1000000/hour")
        .endpoint("GET /items/{id}", Rule::new("1000000/minute").name("items"))
        .rule("all", Rule::new("1000000/hour").per([]));
    // However many others there are.
    for other in 0..10_000 {
        policy = policy.endpoint(format!("GET /others/{other}/{{id}}"), "5/minute");
    }
    let layer = RateLimitLayer::builder(policy)
        .identify(Jwt::hs256("secret").build().unwrap())
        .headers(HeaderSet::None)
        .build()
        .unwrap();
    let inner = |_: Request<()>| {
        std::future::ready(Ok::<_, std::convert::Infallible>(Response::new(Full::<
            Bytes,
        >::default(
        ))))
    };
    let mut service = layer.layer(service_fn(inner));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    // Also if the router names the parameter differently than the policy.
    let patterns = [None, Some("/items/{id}"), Some("/items/{item_id}")];
    let patterns = patterns.map(|pattern| pattern.map(matched_path));
    let cases = patterns.iter().flat_map(|pattern| {
        let tokens = [None, Some(TOKEN)].into_iter();
        tokens.map(move |token| (pattern, token))
    });
    for (pattern, token) in cases {
        let requests = || {
            let request = |_| {
                let mut request = Request::get("/items/7");
                if let Some(token) = token {
                    request = request.header("authorization", token);
                }
                let mut request = request.body(()).unwrap();
                request
                    .extensions_mut()
                    .insert(PeerAddr(([192, 0, 2, 1], 80).into()));
                if let Some(pattern) = pattern {
                    request.extensions_mut().insert(pattern.clone());
                }
                request
            };
            (0..100).map(request).collect::<Vec<_>>()
        };
        let mut send = |requests: Vec<Request<()>>| {
            let region = Region::new(ALLOCATOR);
            for request in requests {
                let mut response = std::pin::pin!(service.call(request));
                let response = response.as_mut().poll(&mut context);
                assert!(
                    matches!(response, std::task::Poll::Ready(Ok(response)) if response.status() == 200)
                );
            }
            region.change()
        };
        send(requests());
        let (allocations, _) = least_allocated(|| send(requests()));
        let has_token = token.is_some();
        assert_eq!(allocations, 0, "{pattern:?}, with a token: {has_token}");
    }
}

/// Returns the extension that axum sets for layers inside of a router with this route.
fn matched_path(pattern: &str) -> axum::extract::MatchedPath {
    use axum::body::Body;
    use axum::extract::MatchedPath;
    use tower::ServiceExt;

    let handler = async |matched: MatchedPath| axum::Extension(matched);
    let router: axum::Router = axum::Router::new().route(pattern, axum::routing::get(handler));
    let request = http::Request::get("/items/7").body(Body::empty()).unwrap();
    let mut response = router.oneshot(request);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let response = Pin::new(&mut response).poll(&mut context);
    let std::task::Poll::Ready(Ok(response)) = response else {
        panic!("axum answers at once");
    };
    response.extensions().get::<MatchedPath>().unwrap().clone()
}

/// No allocation per decision once a key is known: allowed, denied, peeked at, recorded,
/// refunded; one quota or several; also for buckets. A log allocates only while it grows.
#[test]
fn a_decision_allocates_nothing() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let clock = ManualClock::new();
    for algorithm in [
        "sliding-window",
        "fixed-window",
        "token-bucket",
        "sliding-buckets",
        "sliding-log",
    ] {
        let limiter = Limiter::builder()
            .quota(format!("50/second, {algorithm}").as_str())
            .quota(format!("2000/hour, {algorithm}").as_str())
            .clock(clock.clone())
            .build()
            .unwrap();
        let keys: Vec<String> = (0..100).map(|number| format!("user-{number}")).collect();
        let everything = || {
            for _ in 0..60 {
                for key in &keys {
                    let decision = limiter.check(key).wait().unwrap();
                    let _ = limiter.peek(key).wait().unwrap();
                    if decision.is_denied() {
                        // What is over the limit is recorded all the same, and taken back.
                        let recorded = limiter.record(key).wait().unwrap();
                        limiter.refund(key, recorded).wait().unwrap();
                        continue;
                    }
                    if decision.used().is_multiple_of(5) {
                        limiter.refund(key, decision).wait().unwrap();
                    }
                }
                clock.advance(Duration::from_millis(10));
            }
        };
        everything();
        if algorithm == "sliding-log" {
            // Until the logs have grown to what their quotas hold.
            (0..60).for_each(|_| everything());
        }
        let allocated = least_allocated(|| {
            let region = Region::new(ALLOCATOR);
            everything();
            region.change()
        });
        assert_eq!(allocated, (0, 0), "{algorithm}");
    }
}

/// Ten million random keys into a store for a million, while a victim is blocked: memory stays
/// under the stated cap, and the victim stays blocked until its reset and not longer.
#[test]
fn ten_million_keys_stay_within_the_cap() {
    const CAPACITY: usize = 1_000_000;
    const STATED_BYTES_PER_KEY: usize = 48;
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let region = Region::new(ALLOCATOR);
    let store = MemoryStore::builder().capacity(CAPACITY).build().unwrap();
    let quota = Quota::builder(10, Window::HOUR)
        .algorithm(Algorithm::TokenBucket)
        .build()
        .unwrap();
    let counter = Counter::new("flood", quota).unwrap();
    let start = Timestamp::from_secs(1_735_689_600);
    let decide = |subject: Subject<'_>, cost: u64, now: Timestamp| {
        let checks = [Check::new(&subject, &counter).with_cost(cost)];
        let batch = Batch::new(&checks).unwrap();
        store.decide(&batch, now).wait().unwrap()
    };
    let victim = Subject::from([("user", "victim")]);
    assert!(decide(victim, 10, start).is_allowed());
    let reset = decide(victim, 10, start).usages()[0].reset_at();
    assert_eq!(reset, start.saturating_add(Duration::from_hours(1)));

    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    let mut most = 0;
    for number in 0..10_000_000_u64 {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        // The flood takes five minutes, in which the victim refills by less than one.
        let now = start.saturating_add(Duration::from_micros(number * 30));
        assert!(decide(Subject::from(random), 1, now).is_allowed());
        if number.is_multiple_of(1_000) {
            assert!(!decide(victim, 1, now).is_allowed());
            most = most.max(bytes_in_use(&region));
        }
    }
    assert!(store.len().wait().unwrap() <= CAPACITY);
    assert!(
        most <= CAPACITY * STATED_BYTES_PER_KEY,
        "{most} bytes for {CAPACITY} keys"
    );

    let just_before = Timestamp::from_micros(reset.as_micros() - 1);
    assert!(!decide(victim, 10, just_before).is_allowed());
    assert!(decide(victim, 10, reset).is_allowed());
}

/// The stated price of a key, also for stores that are only partly full.
#[test]
fn bytes_per_key_are_as_documented() {
    const STATED_BYTES_PER_KEY: [(&str, usize); 5] = [
        ("sliding-window", 50),
        ("fixed-window", 50),
        ("token-bucket", 50),
        ("sliding-log", 200),
        ("sliding-buckets", 640),
    ];
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    for (algorithm, stated) in STATED_BYTES_PER_KEY {
        for keys in [20_000_u64, 50_000, 100_000, 177_777] {
            let region = Region::new(ALLOCATOR);
            let limiter = Limiter::builder()
                .quota(format!("10/hour, {algorithm}"))
                .clock(ManualClock::new())
                .build()
                .unwrap();
            for key in 0..keys {
                assert!(limiter.check(key).wait().unwrap().is_allowed());
            }
            let each = bytes_in_use(&region) / usize::try_from(keys).unwrap();
            assert!(
                each <= stated,
                "{algorithm}: {each} bytes for each of {keys} keys"
            );
        }
    }
}

/// A log that was full once gives its memory back when the requests have left it.
#[test]
fn a_log_does_not_stay_as_long_as_it_was() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let clock = ManualClock::new();
    let region = Region::new(ALLOCATOR);
    let limiter = Limiter::builder()
        .quota("100000/minute, sliding-log")
        .clock(clock.clone())
        .build()
        .unwrap();
    for _ in 0..100_000 {
        assert!(limiter.check("alice").wait().unwrap().is_allowed());
        clock.advance(Duration::from_micros(1));
    }
    assert!(bytes_in_use(&region) > 1_600_000);
    clock.advance(Duration::from_mins(1));
    for _ in 0..2 {
        assert!(limiter.check("alice").wait().unwrap().is_allowed());
    }
    assert!(bytes_in_use(&region) < 100_000, "{}", bytes_in_use(&region));
}

/// Statistics use bounded memory: a million callers, half of them denied, need no more than the first
/// ten thousand. `cargo bench -p tollgate-bench --bench observe memory` measures ten million.
#[test]
fn statistics_use_bounded_memory() {
    use std::net::{Ipv4Addr, SocketAddr};

    use bytes::Bytes;
    use http::{Request, Response};
    use http_body_util::Full;
    use tollgate::RateLimitLayer;
    use tollgate::headers::HeaderSet;
    use tollgate::identity::PeerAddr;
    use tollgate::policy::{Policy, Rule};
    use tower::{Layer, Service, service_fn};

    const CALLERS: u32 = 100_000;
    const AT_FIRST: u32 = 10_000;

    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    // What is blocked and what is unlimited takes no place in the store.
    let policy = Policy::builder()
        .endpoint("GET /open", Rule::new("unlimited").global(false))
        .everyone("blocked");
    let clock = ManualClock::new();
    let layer = RateLimitLayer::builder(policy)
        .headers(HeaderSet::None)
        .clock(clock.clone())
        .render_with(|_| Response::new(Bytes::new()))
        .build()
        .unwrap();
    let inner = |_: Request<()>| {
        let response = Response::new(Full::<Bytes>::default());
        std::future::ready(Ok::<_, std::convert::Infallible>(response))
    };
    let mut service = layer.layer(service_fn(inner));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let mut send = |caller: u32| {
        // In no order, and from all over the net.
        let address = Ipv4Addr::from(caller.wrapping_mul(0x9e37_79b1));
        let path = if caller.is_multiple_of(2) {
            "/open"
        } else {
            "/closed"
        };
        let mut request = Request::get(path).body(()).unwrap();
        let peer = PeerAddr(SocketAddr::new(address.into(), 80));
        request.extensions_mut().insert(peer);
        let mut response = std::pin::pin!(service.call(request));
        assert!(response.as_mut().poll(&mut context).is_ready());
    };
    let region = Region::new(ALLOCATOR);
    (0..AT_FIRST).for_each(&mut send);
    let at_first = bytes_in_use(&region);
    for caller in AT_FIRST..CALLERS {
        if caller.is_multiple_of(1_000) {
            clock.advance(Duration::from_secs(20));
        }
        send(caller);
    }
    let in_the_end = bytes_in_use(&region);
    assert!(
        in_the_end < at_first + 64 * 1_024 && in_the_end < 1_024 * 1_024,
        "{at_first} bytes at first, {in_the_end} in the end"
    );
    let statistics = layer.statistics();
    assert_eq!(statistics.totals.denied, u64::from(CALLERS) / 2);
    assert_eq!(statistics.totals.allowed, u64::from(CALLERS) / 2);
}

/// Store that decides in memory and replies on the second poll.
#[derive(Debug)]
struct PendingStore(MemoryStore);

impl PendingStore {
    fn later<T: Send + 'static>(result: Result<T, StoreError>) -> StoreFuture<T> {
        StoreFuture::pending(async move {
            let mut has_yielded = false;
            std::future::poll_fn(|_| {
                if std::mem::replace(&mut has_yielded, true) {
                    std::task::Poll::Ready(())
                } else {
                    std::task::Poll::Pending
                }
            })
            .await;
            result
        })
    }
}

impl Store for PendingStore {
    fn decide(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        Self::later(self.0.decide(batch, now).wait())
    }

    fn peek(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        Self::later(self.0.peek(batch, now).wait())
    }

    fn record(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        Self::later(self.0.record(batch, now).wait())
    }

    fn refund(&self, batch: &Batch<'_>, charged_at: Timestamp, now: Timestamp) -> StoreFuture<()> {
        Self::later(self.0.refund(batch, charged_at, now).wait())
    }
}

/// Decorators add completion hooks to the future of the store instead of futures of their own.
#[test]
fn decorators_allocate_no_future_for_a_pending_decision() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let breaker = || {
        let builder = CircuitBreaker::builder(PendingStore(MemoryStore::new()));
        builder.without_deadline().build().unwrap()
    };
    let stacks: [(&str, Box<dyn Store>); 3] = [
        ("store", Box::new(PendingStore(MemoryStore::new()))),
        ("circuit breaker", Box::new(breaker())),
        ("deny cache", Box::new(DenyCache::new(breaker()))),
    ];
    let counters: Vec<Counter> = (0..3)
        .map(|rule| Counter::new(&format!("rule-{rule}"), "1000000/hour".parse().unwrap()).unwrap())
        .collect();
    let subject = Subject::from("alice");
    let checks: Vec<Check<'_>> = counters
        .iter()
        .map(|counter| Check::new(&subject, counter))
        .collect();
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    for (name, store) in stacks {
        for count in 1..=checks.len() {
            let batch = Batch::new(&checks[..count]).unwrap();
            let mut decide = || {
                let mut future = store.decide(&batch, Timestamp::from_micros(1));
                assert!(Pin::new(&mut future).poll(&mut context).is_pending());
                let result = Pin::new(&mut future).poll(&mut context);
                assert!(
                    matches!(result, std::task::Poll::Ready(Ok(usages)) if usages.is_allowed())
                );
            };
            decide();
            let (allocations, reallocations) = least_allocated(|| {
                let region = Region::new(ALLOCATOR);
                decide();
                region.change()
            });
            assert_eq!(
                (allocations, reallocations),
                (1, 0),
                "{name}, {count} checks"
            );
        }
    }
}
