//! Requests that are dropped at every point where they wait.

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

/// A future that is pending this many times, and wakes itself.
async fn dawdle(polls: usize) {
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

/// A layer whose tier look-up, decision and refund are all pending at first.
fn waiting_everywhere(count: Count) -> RateLimitLayer {
    let tiers = TierResolver::builder(|_| async {
        dawdle(2).await;
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

/// Maximum number of polls until a request is answered.
const POLLS: usize = 12;

/// Polls a request this many times and drops it. Returns what remains, and whether it was answered.
fn give_up_after(polls: usize, count: Count) -> (u64, bool) {
    let alive = Arc::new(());
    let layer = waiting_everywhere(count);
    let inner = {
        let alive = Arc::clone(&alive);
        service_fn(move |_: Request<()>| {
            let alive = Arc::clone(&alive);
            async move {
                dawdle(2).await;
                drop(alive);
                Ok::<_, std::convert::Infallible>(Response::new(Full::<Bytes>::default()))
            }
        })
    };
    let mut service = layer.layer(inner);
    let mut context = Context::from_waker(Waker::noop());
    let request = |user: &str| Request::get("/").header("x-user", user).body(()).unwrap();
    let mut answered = false;
    {
        let mut response = pin!(service.call(request("alice")));
        for _ in 0..polls {
            if response.as_mut().poll(&mut context).is_ready() {
                answered = true;
                break;
            }
        }
    }
    assert_eq!(
        Arc::strong_count(&alive),
        2,
        "something of a dropped request is still alive"
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
    (left, answered)
}

#[test]
fn a_dropped_request_is_charged_once_and_never_refunded() {
    let mut history = Vec::new();
    for polls in 0..=POLLS {
        let (left, answered) = give_up_after(polls, Count::all());
        let charged = 1_000 - left - 1;
        assert!(
            charged <= 1,
            "charged {charged} times when given up after {polls} polls"
        );
        assert!(!answered || charged == 1);
        history.push(charged);
    }
    assert_eq!(history[0], 0, "it was never polled");
    assert_eq!(history[POLLS], 1);
    assert!(history.is_sorted(), "a charge was refunded: {history:?}");
}

#[test]
fn charges_by_outcome_are_refunded_only_by_a_response() {
    let mut history = Vec::new();
    for polls in 0..=POLLS {
        let (left, answered) = give_up_after(polls, Count::failure());
        // The second request succeeded, and has nothing left of its own charge.
        let charged = 1_000 - left;
        assert!(
            charged <= 1,
            "charged {charged} times when given up after {polls} polls"
        );
        assert!(!answered || charged == 0, "a success was charged");
        history.push(charged);
    }
    assert!(
        history.contains(&1),
        "a request that was given up stays charged: {history:?}"
    );
}
