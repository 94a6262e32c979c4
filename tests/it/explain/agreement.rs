//! An explanation agrees with the layer, for random policies and requests.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use axum::body::Body;
use http::{Request, Response};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use tollgate::headers::HeaderSet;
use tollgate::identity::PeerAddr;
use tollgate::policy::{
    Count, ExplainRequest, Explanation, Policy, PolicyBuilder, Rule, RuleMode, Tiers,
};
use tollgate::store::StoreFuture;
use tollgate::{
    Batch, Identity, ManualClock, MemoryStore, RateLimitLayer, Store, StoreAdmin, Subject,
    Timestamp, Usages, Value,
};
use tower::{Layer, ServiceExt, service_fn};

use crate::properties::config;

/// Memory store that records the checks it charges.
#[derive(Clone, Debug, Default)]
struct RecordingStore {
    inner: Arc<MemoryStore>,
    charged: Arc<Mutex<Vec<Charged>>>,
}

/// Rule, subject, quota and cost of a check.
type Charged = (String, String, String, u64);

fn subject_label(subject: &Subject<'_>) -> String {
    let value = |value| match value {
        Value::Text(text) => text.to_owned(),
        Value::Address(address) => address.to_string(),
        other => panic!("{other:?} is not a value of an identity"),
    };
    let named: Vec<String> = subject
        .dimensions()
        .map(|(name, of)| format!("{name}={}", value(of)))
        .collect();
    match named.as_slice() {
        [] => "all callers".to_owned(),
        named => named.join(", "),
    }
}

impl Store for RecordingStore {
    fn decide(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        let mut charged = self.charged.lock().unwrap();
        charged.extend(batch.checks().iter().map(|check| {
            let rule = check.counter().rule().to_owned();
            let quota = check.quota().to_string();
            (rule, subject_label(check.subject()), quota, check.cost())
        }));
        self.inner.decide(batch, now)
    }

    fn peek(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        self.inner.peek(batch, now)
    }

    fn record(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        self.inner.record(batch, now)
    }

    fn refund(&self, batch: &Batch<'_>, charged_at: Timestamp, now: Timestamp) -> StoreFuture<()> {
        self.inner.refund(batch, charged_at, now)
    }

    fn admin(&self) -> Option<&dyn StoreAdmin> {
        self.inner.admin()
    }
}

const TIERS: [&str; 3] = ["free", "team", "gold"];
const CATEGORIES: [&str; 2] = ["red", "blue"];
const ROUTES: [&str; 8] = [
    "GET /a",
    "POST /a",
    "/a/{id}",
    "GET /a/{id}",
    "/a/{id}/{*rest}",
    "DELETE /b/{*rest}",
    "/b/{*rest}",
    "OPTIONS /c",
];
const REQUESTS: [&str; 22] = [
    "GET /a",
    "HEAD /a",
    "PUT /a",
    "POST /a/",
    "GET /a/1",
    "HEAD /a/%31",
    "DELETE /a/1",
    "GET /a/1/2/3",
    "DELETE /b/x",
    "PATCH /b",
    "OPTIONS /c",
    "OPTIONS /d",
    "GET /d",
    "GET //a",
    "GET /a/%31",
    "GET /a//1/",
    "GET /a%2F1",
    "GET /a/1/",
    "DELETE //b//x/",
    "GET /%64",
    "GET /a/../d",
    "PUT /a/%2e/1",
];

/// Settings that every kind of rule has.
#[derive(Clone, Debug)]
struct RuleSettings {
    quota: &'static str,
    per: Option<&'static [&'static str]>,
    own_tier: Option<&'static str>,
    count: Count,
    unscaled: bool,
    dry_run: bool,
    cost: u64,
}

fn rule_settings() -> impl Strategy<Value = RuleSettings> {
    let quotas = vec!["10/minute", "20/hour", "unlimited", "30/day, token-bucket"];
    let per: Vec<&[&str]> = vec![&[], &["ip"], &["user"], &["tenant"], &["tenant", "user"]];
    let numbers = (
        select(quotas),
        option::of(select(per)),
        option::of(select(&TIERS[..2])),
    );
    let count = select(vec![Count::all(), Count::failure()]);
    let flags = (any::<bool>(), prop::bool::weighted(0.2), 1..4_u64);
    (numbers, count, flags).prop_map(
        |((quota, per, own_tier), count, (unscaled, dry_run, cost))| RuleSettings {
            quota,
            per,
            own_tier,
            count,
            unscaled,
            dry_run,
            cost,
        },
    )
}

impl RuleSettings {
    fn into_rule(self) -> Rule {
        self.apply_to(Rule::default())
    }

    fn apply_to(self, rule: Rule) -> Rule {
        let mut rule = rule.limit(self.quota).limit("1000/second");
        rule = rule.count(self.count).cost(self.cost);
        if let Some(per) = self.per {
            rule = rule.per(per.iter().copied());
        }
        if let Some(tier) = self.own_tier {
            rule = rule.tier(tier, ["unlimited", "999/second"]);
        }
        if self.unscaled {
            rule = rule.scale(false);
        }
        if self.dry_run {
            rule = rule.mode(RuleMode::DryRun);
        }
        rule
    }
}

fn rule() -> impl Strategy<Value = Rule> {
    rule_settings().prop_map(RuleSettings::into_rule)
}

/// An endpoint: with a rule of its own, in a category, or both.
fn endpoint(number: usize) -> impl Strategy<Value = Rule> {
    let category = option::of(select(&CATEGORIES[..]));
    let with = (category, rule_settings(), any::<bool>(), any::<bool>());
    with.prop_map(move |(category, settings, has_own, without_global)| {
        let rule = category.map_or_else(Rule::default, Rule::in_category);
        let rule = if has_own || category.is_none() {
            settings.apply_to(rule).name(format!("own-{number}"))
        } else {
            rule
        };
        if without_global {
            rule.global(false)
        } else {
            rule
        }
    })
}

fn policy() -> impl Strategy<Value = PolicyBuilder> {
    let globals = (option::of(rule()), option::of(rule()));
    let categories = [(); 2].map(|()| (rule(), any::<bool>()));
    let endpoints: Vec<_> = (0..ROUTES.len())
        .map(|number| option::of(endpoint(number)))
        .collect();
    let always_on = vec(rule(), 0..2);
    let exempt = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (globals, categories, endpoints, always_on, exempt).prop_map(
        |((authenticated, anonymous), categories, endpoints, always_on, exempt)| {
            let tiers = Tiers::new("free")
                .tier("team", 5)
                .assign("user", "ada", "team");
            let mut policy = Policy::builder().tiers(tiers);
            if let Some(rule) = authenticated {
                policy = policy.authenticated(rule);
            }
            if let Some(rule) = anonymous {
                policy = policy.anonymous(rule);
            }
            for (name, (rule, stacked)) in CATEGORIES.into_iter().zip(categories) {
                let rule = if stacked { rule.stack(true) } else { rule };
                policy = policy.category(name, rule);
            }
            for (route, rule) in ROUTES.into_iter().zip(endpoints) {
                policy = match rule {
                    Some(rule) => policy.endpoint(route, rule),
                    None => policy,
                };
            }
            for (index, rule) in always_on.into_iter().enumerate() {
                policy = policy.rule(format!("always-{index}"), rule);
            }
            let (role, subject, network, route) = exempt;
            if role {
                policy = policy.exempt_role("service");
            }
            if subject {
                policy = policy.exempt_subject("tenant", "acme");
            }
            if network {
                policy = policy.exempt_network("10.0.0.0/8");
            }
            if route {
                policy = policy.exempt_route("GET /d");
            }
            policy
        },
    )
}

#[derive(Clone, Debug)]
struct TestRequest {
    line: &'static str,
    identity: Option<Identity>,
    ip: Option<IpAddr>,
    is_preflight: bool,
    at: Timestamp,
}

fn test_request() -> impl Strategy<Value = TestRequest> {
    let caller = (
        select(vec!["alice", "ada"]),
        option::of(select(vec!["acme", "other"])),
        option::of(select(&TIERS[..])),
        prop::bool::weighted(0.2),
    );
    let identity = caller.prop_map(|(user, tenant, tier, is_service)| {
        let mut identity = Identity::user(user);
        if let Some(tenant) = tenant {
            identity = identity.tenant(tenant);
        }
        if let Some(tier) = tier {
            identity = identity.tier(tier);
        }
        if is_service {
            identity = identity.role("service");
        }
        identity
    });
    let ip = select(vec!["203.0.113.9", "10.1.2.3"]).prop_map(|ip| ip.parse().unwrap());
    let request = (select(&REQUESTS[..]), option::of(identity), option::of(ip));
    let at = (995..1_005_u64).prop_map(Timestamp::from_secs);
    (request, any::<bool>(), at).prop_map(|((line, identity, ip), is_preflight, at)| TestRequest {
        line,
        identity,
        ip,
        is_preflight,
        at,
    })
}

impl TestRequest {
    fn request(&self) -> Request<Body> {
        let headers = [
            ("origin", "https://app.example"),
            ("access-control-request-method", "PUT"),
        ];
        let headers: &[_] = if self.is_preflight { &headers } else { &[] };
        let mut request = crate::support::http::request(self.line, headers);
        if let Some(ip) = self.ip {
            let extensions = request.extensions_mut();
            extensions.insert(PeerAddr(SocketAddr::new(ip, 443)));
        }
        if let Some(identity) = &self.identity {
            request.extensions_mut().insert(identity.clone());
        }
        request
    }

    fn explain_request(&self) -> ExplainRequest {
        let explain_request = ExplainRequest::from(self.request()).at(self.at);
        let explain_request = match self.ip {
            Some(ip) => explain_request.ip(ip),
            None => explain_request,
        };
        match &self.identity {
            Some(identity) => explain_request.identity(identity.clone()),
            None => explain_request,
        }
    }
}

/// Sends a request through a layer. Returns the status, the charged checks, and the names and limits
/// in the header `RateLimit-Policy`.
async fn send_through_layer(
    policy: Policy,
    request: &TestRequest,
) -> (u16, Vec<Charged>, Vec<(String, u64)>) {
    let store = RecordingStore::default();
    let clock = ManualClock::new();
    clock.set(request.at);
    let layer = RateLimitLayer::builder(policy)
        .store(store.clone())
        .clock(clock)
        .identify_with(|head| head.extension::<Identity>().cloned())
        .headers(HeaderSet::Ietf)
        .build()
        .unwrap();
    let handler = |_: Request<Body>| async { Ok::<_, Infallible>(Response::new(Body::empty())) };
    let response = layer.layer(service_fn(handler)).oneshot(request.request());
    let response = response.await.unwrap();
    let status = response.status().as_u16();
    let header = response.headers().get("ratelimit-policy");
    let names = header
        .map_or("", |header| header.to_str().unwrap())
        .split(", ")
        .filter(|item| !item.is_empty())
        .map(|item| {
            let (name, rest) = item.strip_prefix('"').unwrap().split_once("\";q=").unwrap();
            let limit = rest.split(';').next().unwrap();
            (name.to_owned(), limit.parse().unwrap())
        })
        .collect();
    let charged = std::mem::take(&mut *store.charged.lock().unwrap());
    (status, charged, names)
}

/// Returns the charges that the explanation predicts: enforced rules first, then dry runs.
fn explained_charges(explanation: &Explanation) -> Vec<Charged> {
    let charges = |dry_run| {
        let applied = explanation.counted_by.iter();
        applied.filter(move |by| by.dry_run == dry_run).map(|by| {
            let (rule, counter) = (by.rule.clone(), by.counter.clone());
            (rule, counter, by.quota.to_string(), by.cost)
        })
    };
    charges(false).chain(charges(true)).collect()
}

/// Returns the names and limits that the explanation predicts for the header.
fn explained_names(explanation: &Explanation) -> Vec<(String, u64)> {
    let counted = explanation.counted_by.iter();
    let shown = counted.filter(|by| !by.dry_run && !by.quota.is_unlimited());
    shown
        .map(|by| (by.policy.clone(), by.quota.burst()))
        .collect()
}

proptest! {
    #![proptest_config(config(500))]

    /// Compares rules, subjects, quotas, costs, names and their order.
    #[test]
    fn explanation_agrees_with_the_layer(
        policy in policy(),
        request in test_request(),
        maintenance in option::of((995..1_005_u64).prop_map(Timestamp::from_secs)),
    ) {
        let policy = || {
            let policy = policy.clone();
            let policy = match maintenance {
                Some(until) => policy.disabled_until(until),
                None => policy,
            };
            policy.build()
        };
        // Some random policies exceed the number of quotas for one request.
        let Ok(explained) = policy() else {
            return Ok(());
        };
        let explanation = explained.explain(&request.explain_request());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (status, charged, names) = runtime.block_on(send_through_layer(policy().unwrap(), &request));
        prop_assert_eq!(&charged, &explained_charges(&explanation), "{}", explanation);
        prop_assert_eq!(&names, &explained_names(&explanation), "{}", explanation);
        prop_assert!(explanation.exemption.is_none() || charged.is_empty());
        let expected = if explanation.rejection.is_some() { 400 } else { 200 };
        prop_assert_eq!(status, expected, "{}", explanation);
    }
}
