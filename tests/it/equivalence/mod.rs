//! The layer returns the same responses with every store.
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

use self::request::{Source, TestRequest, source, test_request};
use self::shape::PolicyShape;
use self::store::{Forwarding, Seen, usages};
use crate::properties::config;
use crate::support::store_ext::StoreExt as _;
use crate::support::tokens::NOW;

/// Settings of the layer, except its policy.
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

/// Stores with the same counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StoreKind {
    Memory,
    Wrapped,
    Late,
    WithOverride,
}

const STORE_KINDS: [StoreKind; 4] = [
    StoreKind::Memory,
    StoreKind::Wrapped,
    StoreKind::Late,
    StoreKind::WithOverride,
];

/// An application with its counters.
struct TestApp {
    kind: StoreKind,
    app: Router,
    clock: ManualClock,
    memory: Arc<MemoryStore>,
    wrapped: Option<Forwarding>,
}

impl TestApp {
    /// Returns `None` if the policy is rejected.
    fn new(kind: StoreKind, shape: &PolicyShape, setup: &Setup) -> Option<Self> {
        let clock = ManualClock::at(Timestamp::from_secs(NOW));
        let memory = Arc::new(MemoryStore::new());
        let builder = RateLimitLayer::builder(shape.build())
            .clock(clock.clone())
            .headers(setup.headers);
        let builder = setup.source.configure(builder);
        let builder = if setup.insert_extensions {
            builder.insert_extensions()
        } else {
            builder
        };
        let wrapped = match kind {
            StoreKind::Memory | StoreKind::WithOverride => None,
            StoreKind::Wrapped => Some(Forwarding::new(Arc::clone(&memory), false)),
            StoreKind::Late => Some(Forwarding::new(Arc::clone(&memory), true)),
        };
        let builder = match &wrapped {
            Some(wrapped) => builder.store(wrapped.clone()),
            None => builder.store(Arc::clone(&memory)),
        };
        let layer = builder.build().ok()?;
        if kind == StoreKind::WithOverride {
            let unrelated = Override::new([("user", "unrelated")], "global", "7/minute").unwrap();
            memory.set_override(unrelated).wait().unwrap();
        }
        let app = if setup.is_inside_router {
            router().layer(layer)
        } else {
            Router::new().fallback_service(layer.layer(router()))
        };
        Some(Self {
            kind,
            app,
            clock,
            memory,
            wrapped,
        })
    }

    async fn send(&self, test_request: &TestRequest, source: Source) -> Observed {
        self.clock.advance(test_request.wait);
        let step = Duration::from_secs(test_request.wall_step.unsigned_abs());
        if test_request.wall_step < 0 {
            self.clock.step_wall_back(step);
        } else {
            self.clock.step_wall_forward(step);
        }
        let request = test_request.request(source);
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

    /// Returns the number of counters that have not expired, and the state of each.
    fn usages(&self, seen: &Seen) -> (usize, Vec<String>) {
        let now = self.clock.now();
        // Expired counters are removed in an order that depends on their hashes. Remove all of them here.
        self.memory.sweep(now).wait().unwrap();
        let len = self.memory.len().wait().unwrap();
        (len, usages(&self.memory, seen, now))
    }
}

/// Returns a router with routes that rules name, and a fallback.
fn router() -> Router {
    Router::new()
        .route("/a", routing::any(handler))
        .route("/a/{id}", routing::any(handler))
        .route("/files/{*rest}", routing::any(handler))
        .fallback(handler)
}

/// Returns the status from the request, and the decision that the handler gets in the body.
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

/// Everything that a client or an outer layer can observe.
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
    let all = (shape::policy(), setup(), vec(test_request(), 1..24));
    let mut statuses = std::collections::BTreeMap::<u16, u32>::new();
    let counted = std::cell::RefCell::new(&mut statuses);
    proptest!(config(400), |((shape, setup, requests) in all)| {
        let apps: Option<Vec<_>> = STORE_KINDS
            .into_iter()
            .map(|kind| TestApp::new(kind, &shape, &setup))
            .collect();
        let Some(apps) = apps else {
            return Err(TestCaseError::reject("the policy is rejected"));
        };
        for (number, test_request) in requests.iter().enumerate() {
            let expected = runtime.block_on(apps[0].send(test_request, setup.source));
            *counted.borrow_mut().entry(expected.status).or_default() += 1;
            for app in &apps[1..] {
                let observed = runtime.block_on(app.send(test_request, setup.source));
                prop_assert_eq!(
                    &observed, &expected,
                    "request {} {:?}: {:?} (left) differs from {:?} (right)",
                    number, test_request, app.kind, STORE_KINDS[0]
                );
            }
            let seen = apps.iter().find_map(|app| app.wrapped.as_ref());
            let seen = seen.unwrap().seen();
            let expected = apps[0].usages(&seen);
            for app in &apps[1..] {
                prop_assert_eq!(
                    &app.usages(&seen), &expected,
                    "counters after request {} {:?}: {:?} (left), {:?} (right)",
                    number, test_request, app.kind, STORE_KINDS[0]
                );
            }
        }
    });
    // The property is meaningful only if many requests are allowed and many denied.
    let of = |status| statuses.get(&status).copied().unwrap_or_default();
    assert!(of(200) > 500 && of(429) > 500, "{statuses:?}");
}
