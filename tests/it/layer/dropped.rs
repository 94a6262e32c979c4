//! Requests that are dropped at each point at which they wait.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use tollgate::policy::{Count, Policy, Rule};
use tollgate::tier::TierResolver;
use tollgate::{Identity, ManualClock, RateLimitLayer};
use tower::{Layer, Service, service_fn};

use crate::support::scripted_store::{Script, ScriptedStore};

/// Is pending this many times, and wakes itself.
async fn pend(polls: usize) {
    let mut left = polls;
    poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(());
        }
        left -= 1;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Returns a layer whose tier look-up, decision and refund are all pending at first.
fn layer_that_waits_everywhere(count: Count) -> RateLimitLayer {
    let tiers = TierResolver::builder(|_| async {
        pend(2).await;
        Ok::<_, std::io::Error>(Some("team".to_owned()))
    });
    let policy = Policy::builder().everyone(Rule::new("1000/hour").count(count));
    RateLimitLayer::builder(policy)
        .identify_with(|head| head.header("x-user").map(Identity::user))
        .tier_resolver(tiers.cache_ttl(Duration::from_secs(1)).build().unwrap())
        .store(ScriptedStore::new(Script::ReplyAfter(2)))
        .clock(ManualClock::new())
        .build()
        .unwrap()
}

/// Maximum number of polls until a request completes.
const POLLS: usize = 12;

/// Polls a request this many times and drops it. Returns what remains, and whether it had completed.
fn drop_after(polls: usize, count: Count) -> (u64, bool) {
    let alive = Arc::new(());
    let layer = layer_that_waits_everywhere(count);
    let inner = {
        let alive = Arc::clone(&alive);
        service_fn(move |_: Request<()>| {
            let alive = Arc::clone(&alive);
            async move {
                pend(2).await;
                drop(alive);
                Ok::<_, std::convert::Infallible>(Response::new(Full::<Bytes>::default()))
            }
        })
    };
    let mut service = layer.layer(inner);
    let mut context = Context::from_waker(Waker::noop());
    let request = |user: &str| Request::get("/").header("x-user", user).body(()).unwrap();
    let mut completed = false;
    {
        let mut response = pin!(service.call(request("alice")));
        for _ in 0..polls {
            if response.as_mut().poll(&mut context).is_ready() {
                completed = true;
                break;
            }
        }
    }
    assert_eq!(
        Arc::strong_count(&alive),
        2,
        "a part of the dropped request was not dropped"
    );
    let mut second = pin!(service.call(request("alice")));
    let response = loop {
        if let Poll::Ready(response) = second.as_mut().poll(&mut context) {
            break response.unwrap();
        }
    };
    let left = response.headers()["x-ratelimit-remaining"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    (left, completed)
}

#[test]
fn a_dropped_request_is_charged_once_and_never_refunded() {
    let mut history = Vec::new();
    for polls in 0..=POLLS {
        let (left, completed) = drop_after(polls, Count::all());
        let charged = 1_000 - left - 1;
        assert!(
            charged <= 1,
            "charged {charged} times when dropped after {polls} polls"
        );
        assert!(!completed || charged == 1);
        history.push(charged);
    }
    assert_eq!(history[0], 0, "a request that was never polled is charged");
    assert_eq!(history[POLLS], 1);
    assert!(history.is_sorted(), "a charge was refunded: {history:?}");
}

#[test]
fn charges_by_outcome_are_refunded_only_by_a_response() {
    let mut history = Vec::new();
    for polls in 0..=POLLS {
        let (left, completed) = drop_after(polls, Count::failure());
        // The second request succeeds, so its own charge is refunded.
        let charged = 1_000 - left;
        assert!(
            charged <= 1,
            "charged {charged} times when dropped after {polls} polls"
        );
        assert!(!completed || charged == 0, "a success was charged");
        history.push(charged);
    }
    assert!(
        history.contains(&1),
        "no dropped request stays charged: {history:?}"
    );
}
