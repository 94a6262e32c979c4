//! Callers, sources of their identity, and requests.

use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use tollgate::identity::{ApiKey, Authenticated, Jwt, PeerAddr, UserIdHeader};
use tollgate::tier::TierResolver;
use tollgate::{Identity, RateLimitLayerBuilder};

use crate::support::tokens::{self, NOW};

/// Source of the identity of a caller.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    PeerIp,
    ForwardedIp,
    Jwt,
    ApiKey,
    Extension,
    UserHeader,
    Closure,
    /// The user is in a header, and the tier comes from a look-up.
    TierLookup,
}

pub(super) fn source() -> impl Strategy<Value = Source> {
    select(vec![
        Source::PeerIp,
        Source::ForwardedIp,
        Source::Jwt,
        Source::ApiKey,
        Source::Extension,
        Source::UserHeader,
        Source::Closure,
        Source::TierLookup,
    ])
}

impl Source {
    pub(super) fn configure(self, builder: RateLimitLayerBuilder) -> RateLimitLayerBuilder {
        match self {
            Self::PeerIp => builder,
            Self::ForwardedIp => builder.trusted_proxies(["192.0.2.0/24"]),
            Self::Jwt => {
                let jwt = Jwt::hs256(tokens::SECRET).tier("plan").tenant("tenant");
                builder.identify(jwt.roles("roles").build().unwrap())
            }
            Self::ApiKey => builder.identify(
                ApiKey::header("x-api-key", |key| Caller::named(key)?.identity()).unwrap(),
            ),
            Self::Extension => builder.identify(Authenticated::extension(|caller: &Caller| {
                caller.identity()
            })),
            Self::UserHeader => builder.identify(UserIdHeader::trusted("x-user").unwrap()),
            Self::Closure => {
                builder.identify_with(|head| Caller::named(head.header("x-user")?)?.identity())
            }
            Self::TierLookup => builder
                .identify(UserIdHeader::trusted("x-user").unwrap())
                .tier_resolver(TierResolver::new(|identity: Identity| async move {
                    let is_alice = identity.primary().is_some_and(|(_, name)| name == "alice");
                    let tier = is_alice.then(|| "team".to_owned());
                    Ok::<_, std::io::Error>(tier)
                })),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Caller {
    Unauthenticated,
    /// Sends a wrong token or an unknown key.
    Wrong,
    Alice,
    Bob,
    Service,
}

impl Caller {
    const ALL: [Self; 5] = [
        Self::Alice,
        Self::Bob,
        Self::Unauthenticated,
        Self::Service,
        Self::Wrong,
    ];

    const fn name(self) -> Option<&'static str> {
        match self {
            Self::Unauthenticated => None,
            Self::Wrong => Some("mallory"),
            Self::Alice => Some("alice"),
            Self::Bob => Some("bob"),
            Self::Service => Some("service"),
        }
    }

    fn named(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|caller| *caller != Self::Wrong && caller.name() == Some(name))
    }

    fn identity(self) -> Option<Identity> {
        let identity = Identity::user(self.name()?);
        match self {
            Self::Unauthenticated | Self::Wrong => None,
            Self::Alice => Some(identity.tenant("acme").tier("team")),
            Self::Bob => Some(identity.tenant("acme")),
            Self::Service => Some(identity.role("service")),
        }
    }

    fn token(self) -> Option<String> {
        let name = self.name()?;
        // The test advances the clock by days at most.
        let exp = NOW + 400 * 86_400;
        let claims = format!(
            r#"{{"sub":"{name}","exp":{exp},"tenant":"acme","plan":"team","roles":["{name}"]}}"#
        );
        let token = tokens::hs256(&claims);
        Some(match self {
            Self::Wrong => format!("{token}AAAA"),
            _ => token,
        })
    }
}

/// A request, and steps of the clock before it.
#[derive(Clone, Debug)]
pub(super) struct TestRequest {
    /// Advance of the clock before the request.
    pub(super) wait: Duration,
    /// Step of the wall clock before the request, in seconds.
    pub(super) wall_step: i64,
    caller: Caller,
    line: (&'static str, &'static str),
    host: u8,
    cost: Option<u8>,
    /// Status that the handler returns.
    status: u16,
    /// Amount that the handler charges in addition.
    charge: Option<u8>,
}

pub(super) fn test_request() -> impl Strategy<Value = TestRequest> {
    let wait = prop_oneof![
        4 => Just(0),
        2 => 1..20_u64,
        1 => select(vec![59, 60, 61, 3_600, 86_400]),
    ];
    let wall_step = prop_oneof![
        12 => Just(0),
        1 => select(vec![-90_000, -3_600, -1, 1, 3_600, 90_000]),
    ];
    // `/a/` is read as `/a` and as `/a/{id}`: the rules of both apply.
    let path = prop_oneof![
        3 => select(vec!["/a", "/a", "/a/1", "/files/x/y", "/open", "/none"]),
        1 => select(vec!["/a/", "/a/", "/a//1", "/%61", "/files//x", "/files", "/open/"]),
    ];
    let line = (select(vec!["GET", "GET", "POST", "HEAD"]), path);
    (
        wait.prop_map(Duration::from_secs),
        wall_step,
        select(Caller::ALL.to_vec()),
        line,
        1..4_u8,
        option::weighted(0.2, 0..4_u8),
        select(vec![200, 200, 200, 404, 500]),
        option::weighted(0.1, 1..4_u8),
    )
        .prop_map(
            |(wait, wall_step, caller, line, host, cost, status, charge)| TestRequest {
                wait,
                wall_step,
                caller,
                line,
                host,
                cost,
                status,
                charge,
            },
        )
}

impl TestRequest {
    pub(super) fn request(&self, source: Source) -> Request<Body> {
        let (method, path) = self.line;
        let mut request = Request::builder()
            .method(Method::from_bytes(method.as_bytes()).unwrap())
            .uri(path)
            .header("x-request-id", "req-1")
            .header("x-status", self.status);
        let name = self.caller.name();
        request = match (source, name) {
            (Source::PeerIp | Source::Extension, _) | (_, None) => request,
            (Source::ForwardedIp, Some(_)) => {
                request.header("x-forwarded-for", format!("203.0.113.{}", self.host))
            }
            (Source::Jwt, Some(_)) => {
                let token = self.caller.token().unwrap();
                request.header("authorization", format!("Bearer {token}"))
            }
            (Source::ApiKey, Some(name)) => request.header("x-api-key", name),
            (_, Some(name)) => request.header("x-user", name),
        };
        if let Some(cost) = self.cost {
            request = request.header("x-cost", u16::from(cost));
        }
        if let Some(charge) = self.charge {
            request = request.header("x-charge", u16::from(charge));
        }
        let mut request = request.body(Body::empty()).unwrap();
        let peer = PeerAddr(([192, 0, 2, self.host], 4_000).into());
        request.extensions_mut().insert(peer);
        if let Source::Extension = source {
            request.extensions_mut().insert(self.caller);
        }
        request
    }
}
