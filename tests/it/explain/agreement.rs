//! An explanation says what a layer does: of any policy, for any request.

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
use tollgate::policy::{Count, ExplainRequest, Explanation, Policy, PolicyBuilder, Rule, Tiers};
use tollgate::store::StoreFuture;
use tollgate::{
    Batch, Identity, ManualClock, MemoryStore, RateLimitLayer, Store, StoreAdmin, Subject,
    Timestamp, Usages, Value,
};
use tower::{Layer, ServiceExt, service_fn};

use crate::properties::config;

/// A store that keeps count of what it is asked to charge.
#[derive(Clone, Debug, Default)]
struct Watched {
    inner: Arc<MemoryStore>,
    charged: Arc<Mutex<Vec<Charged>>>,
}

/// Rule, whose counter, how much of it, at what cost.
type Charged = (String, String, String, u64);

fn whose(subject: &Subject<'_>) -> String {
    let value = |value| match value {
        Value::Text(text) => text.to_owned(),
        Value::Address(address) => address.to_string(),
        other => panic!("{other:?} is nothing that identities have"),
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

impl Store for Watched {
    fn decide(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        let mut charged = self.charged.lock().unwrap();
        charged.extend(batch.checks().iter().map(|check| {
            let rule = check.counter().rule().to_owned();
            let quota = check.quota().to_string();
            (rule, whose(check.subject()), quota, check.cost())
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

/// What a rule says, whatever it is for.
#[derive(Clone, Debug)]
struct Said {
    quota: &'static str,
    per: Option<&'static [&'static str]>,
    own_tier: Option<&'static str>,
    count: Count,
    unscaled: bool,
    dry_run: bool,
    cost: u64,
}

fn said() -> impl Strategy<Value = Said> {
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
        |((quota, per, own_tier), count, (unscaled, dry_run, cost))| Said {
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

impl Said {
    fn rule(self) -> Rule {
        self.within(Rule::default())
    }

    fn within(self, rule: Rule) -> Rule {
        let mut rule = rule.quota(self.quota).quota("1000/second");
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
            rule = rule.dry_run();
        }
        rule
    }
}

fn rule() -> impl Strategy<Value = Rule> {
    said().prop_map(Said::rule)
}

/// An endpoint: with a rule of its own, in a category, or both.
fn endpoint(number: usize) -> impl Strategy<Value = Rule> {
    let category = option::of(select(&CATEGORIES[..]));
    let with = (category, said(), any::<bool>(), any::<bool>());
    with.prop_map(move |(category, said, has_own, without_global)| {
        let rule = category.map_or_else(Rule::default, Rule::in_category);
        let rule = if has_own || category.is_none() {
            said.within(rule).name(format!("own-{number}"))
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
struct Asking {
    line: &'static str,
    identity: Option<Identity>,
    ip: Option<IpAddr>,
    is_preflight: bool,
    at: Timestamp,
}

fn asking() -> impl Strategy<Value = Asking> {
    let who = (
        select(vec!["alice", "ada"]),
        option::of(select(vec!["acme", "other"])),
        option::of(select(&TIERS[..])),
        prop::bool::weighted(0.2),
    );
    let identity = who.prop_map(|(user, tenant, tier, is_service)| {
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
    (request, any::<bool>(), at).prop_map(|((line, identity, ip), is_preflight, at)| Asking {
        line,
        identity,
        ip,
        is_preflight,
        at,
    })
}

impl Asking {
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

/// The status, what a layer charged, and the names that it told, each with its limit.
async fn asked_of_a_layer(
    policy: Policy,
    asking: &Asking,
) -> (u16, Vec<Charged>, Vec<(String, u64)>) {
    let store = Watched::default();
    let clock = ManualClock::new();
    clock.set(asking.at);
    let layer = RateLimitLayer::builder(policy)
        .store(store.clone())
        .clock(clock)
        .identify_with(|head| head.extension::<Identity>().cloned())
        .headers(HeaderSet::Ietf)
        .build()
        .unwrap();
    let handler = |_: Request<Body>| async { Ok::<_, Infallible>(Response::new(Body::empty())) };
    let response = layer.layer(service_fn(handler)).oneshot(asking.request());
    let response = response.await.unwrap();
    let status = response.status().as_u16();
    let told = response.headers().get("ratelimit-policy");
    let told = told.map_or("", |told| told.to_str().unwrap());
    let told = told
        .split(", ")
        .filter(|item| !item.is_empty())
        .map(|item| {
            let (name, rest) = item.strip_prefix('"').unwrap().split_once("\";q=").unwrap();
            let limit = rest.split(';').next().unwrap();
            (name.to_owned(), limit.parse().unwrap())
        });
    let told = told.collect();
    let charged = std::mem::take(&mut *store.charged.lock().unwrap());
    (status, charged, told)
}

/// What the explanation says that a layer charges, those in force before those tried out.
fn explained_charges(explanation: &Explanation) -> Vec<Charged> {
    let of = |dry_run| {
        let those = explanation.counted_by();
        those
            .filter(move |by| by.is_dry_run() == dry_run)
            .map(|by| {
                let (rule, counter) = (by.rule().to_owned(), by.counter().to_owned());
                (rule, counter, by.quota().to_string(), by.cost())
            })
    };
    of(false).chain(of(true)).collect()
}

fn explained_names(explanation: &Explanation) -> Vec<(String, u64)> {
    let counted = explanation.counted_by();
    let shown = counted.filter(|by| !by.is_dry_run() && !by.quota().is_unlimited());
    shown
        .map(|by| (by.policy().to_owned(), by.quota().burst()))
        .collect()
}

proptest! {
    #![proptest_config(config(500))]

    /// The same counters of the same subjects, by the same names, with the same numbers, in the
    /// same order.
    #[test]
    fn an_explanation_is_what_a_layer_does(
        policy in policy(),
        asking in asking(),
        maintenance in option::of((995..1_005_u64).prop_map(Timestamp::from_secs)),
    ) {
        let policy = || {
            let policy = policy.clone();
            let policy = match maintenance {
                Some(until) => policy.maintenance_until(until),
                None => policy,
            };
            policy.build()
        };
        // Some have more quotas for one request than there may be.
        let Ok(explained) = policy() else {
            return Ok(());
        };
        let explanation = explained.explain(&asking.explain_request());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (status, charged, told) = runtime.block_on(asked_of_a_layer(policy().unwrap(), &asking));
        prop_assert_eq!(&charged, &explained_charges(&explanation), "{}", explanation);
        prop_assert_eq!(&told, &explained_names(&explanation), "{}", explanation);
        prop_assert!(explanation.exemption().is_none() || charged.is_empty());
        let expected = if explanation.rejection().is_some() { 400 } else { 200 };
        prop_assert_eq!(status, expected, "{}", explanation);
    }
}
