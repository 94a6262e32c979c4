//! The layer answers alike whatever store is behind it.
//!
//! The layer has shorter paths for a memory store, for policies with one quota, and for stores
//! without overrides. This property runs the same requests through all of them and compares
//! status, headers, body, decision and counters.

mod request;
mod shape;
mod store;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, Response};
use axum::routing;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use tollgate::headers::HeaderSet;
use tollgate::{
    Charge, Clock, Decision, ManualClock, MemoryStore, Override, RateLimitLayer, Timestamp,
};
use tower::{Layer, ServiceExt};

use self::request::{Sent, Source, sent, source};
use self::shape::PolicyShape;
use self::store::{Forwarding, Seen, usages};
use crate::properties::config;
use crate::support::store_ext::StoreExt as _;
use crate::support::tokens::NOW;

/// How the layer is set up, besides its policy.
#[derive(Clone, Debug)]
struct Setup {
    source: Source,
    headers: HeaderSet,
    insert_extensions: bool,
    is_inside_router: bool,
}

fn setup() -> impl Strategy<Value = Setup> {
    let headers = vec![
        HeaderSet::Legacy,
        HeaderSet::Ietf,
        HeaderSet::Both,
        HeaderSet::None,
    ];
    (source(), select(headers), any::<bool>(), any::<bool>()).prop_map(
        |(source, headers, insert_extensions, is_inside_router)| Setup {
            source,
            headers,
            insert_extensions,
            is_inside_router,
        },
    )
}

/// The four ways to the same counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Memory,
    Wrapped,
    Late,
    WithOverride,
}

const WAYS: [Way; 4] = [Way::Memory, Way::Wrapped, Way::Late, Way::WithOverride];

/// One application with its counters.
struct Subject {
    way: Way,
    app: Router,
    clock: ManualClock,
    memory: Arc<MemoryStore>,
    wrapped: Option<Forwarding>,
}

impl Subject {
    /// `None` if the policy is refused.
    fn new(way: Way, shape: &PolicyShape, setup: &Setup) -> Option<Self> {
        let clock = ManualClock::at(Timestamp::from_secs(NOW));
        let memory = Arc::new(MemoryStore::new());
        let builder = RateLimitLayer::builder(shape.build())
            .clock(clock.clone())
            .headers(setup.headers);
        let builder = setup.source.set(builder);
        let builder = if setup.insert_extensions {
            builder.insert_extensions()
        } else {
            builder
        };
        let wrapped = match way {
            Way::Memory | Way::WithOverride => None,
            Way::Wrapped => Some(Forwarding::new(Arc::clone(&memory), false)),
            Way::Late => Some(Forwarding::new(Arc::clone(&memory), true)),
        };
        let builder = match &wrapped {
            Some(wrapped) => builder.store(wrapped.clone()),
            None => builder.store(Arc::clone(&memory)),
        };
        let layer = builder.build().ok()?;
        if way == Way::WithOverride {
            let unrelated = Override::new([("user", "unrelated")], "global", "7/minute").unwrap();
            memory.set_override(unrelated).wait().unwrap();
        }
        let app = if setup.is_inside_router {
            router().layer(layer)
        } else {
            Router::new().fallback_service(layer.layer(router()))
        };
        Some(Self {
            way,
            app,
            clock,
            memory,
            wrapped,
        })
    }

    async fn send(&self, sent: &Sent, source: Source) -> Observed {
        self.clock.advance(sent.wait);
        let step = Duration::from_secs(sent.wall_step.unsigned_abs());
        if sent.wall_step < 0 {
            self.clock.step_wall_back(step);
        } else {
            self.clock.step_wall_forward(step);
        }
        let request = sent.request(source);
        let response = self.app.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = to_bytes(body, 1 << 20).await.unwrap();
        Observed {
            status: parts.status.as_u16(),
            headers: sorted(&parts.headers),
            body: String::from_utf8(body.to_vec()).unwrap(),
            decision: parts.extensions.get::<Decision>().cloned(),
        }
    }

    /// The number of counters that have not expired, and the state of each.
    fn usages(&self, seen: &Seen) -> (usize, Vec<String>) {
        let now = self.clock.now();
        // Expired counters are removed little by little, which depends on their hashes.
        self.memory.sweep(now).wait().unwrap();
        let len = self.memory.len().wait().unwrap();
        (len, usages(&self.memory, seen, now))
    }
}

/// Routes that rules name, and a fallback.
fn router() -> Router {
    Router::new()
        .route("/a", routing::any(handler))
        .route("/a/{id}", routing::any(handler))
        .route("/files/{*rest}", routing::any(handler))
        .fallback(handler)
}

/// Returns the status in the request, and what the handler gets.
async fn handler(request: Request<Body>) -> Response<Body> {
    let (request, _) = request.into_parts();
    let number = |name: &str| {
        let value = request.headers.get(name)?;
        Some(value.to_str().unwrap().parse::<u16>().unwrap())
    };
    let decision = request.extensions.get::<Decision>();
    let charge = request.extensions.get::<Charge>();
    let mut body = format!("{decision:?}");
    if let (Some(charge), Some(cost)) = (charge, number("x-charge")) {
        let charged = charge.charge(cost.into()).await;
        body = format!("{body}, {charged:?}");
    }
    Response::builder()
        .status(number("x-status").unwrap())
        .body(body.into())
        .unwrap()
}

/// Everything that a client, and a layer around ours, can see.
#[derive(Debug, PartialEq, Eq)]
struct Observed {
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
    decision: Option<Decision>,
}

fn sorted(headers: &HeaderMap) -> Vec<(String, String)> {
    let mut sorted: Vec<_> = headers
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
        .collect();
    sorted.sort();
    sorted
}

#[test]
fn every_store_gives_the_same_responses_and_counters() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let all = (shape::policy(), setup(), vec(sent(), 1..24));
    let mut statuses = std::collections::BTreeMap::<u16, u32>::new();
    let counted = std::cell::RefCell::new(&mut statuses);
    proptest!(config(400), |((shape, setup, requests) in all)| {
        let subjects: Option<Vec<_>> = WAYS
            .into_iter()
            .map(|way| Subject::new(way, &shape, &setup))
            .collect();
        let Some(subjects) = subjects else {
            return Err(TestCaseError::reject("the policy is refused"));
        };
        for (number, sent) in requests.iter().enumerate() {
            let expected = runtime.block_on(subjects[0].send(sent, setup.source));
            *counted.borrow_mut().entry(expected.status).or_default() += 1;
            for subject in &subjects[1..] {
                let observed = runtime.block_on(subject.send(sent, setup.source));
                prop_assert_eq!(
                    &observed, &expected,
                    "request {} {:?}: {:?} (left) is not as {:?} (right)",
                    number, sent, subject.way, WAYS[0]
                );
            }
            let seen = subjects.iter().find_map(|subject| subject.wrapped.as_ref());
            let seen = seen.unwrap().seen();
            let expected = subjects[0].usages(&seen);
            for subject in &subjects[1..] {
                prop_assert_eq!(
                    &subject.usages(&seen), &expected,
                    "counters after request {} {:?}: {:?} (left), {:?} (right)",
                    number, sent, subject.way, WAYS[0]
                );
            }
        }
    });
    // Otherwise the property would compare little.
    let of = |status| statuses.get(&status).copied().unwrap_or_default();
    assert!(of(200) > 500 && of(429) > 500, "{statuses:?}");
}
