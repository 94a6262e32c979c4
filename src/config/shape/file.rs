//! The file as a whole, and what in it is no rule.

use super::rules::{ALGORITHMS, ALWAYS, CATEGORY, ENDPOINT, ON_STORE_FAILURE};
use super::{Field, Kind, Others, Table};

pub(super) const HEADERS: &[&str] = &["legacy", "ietf", "both", "none"];
pub(super) const PREFLIGHT: &[&str] = &["refund", "count"];
pub(super) const RESET: &[&str] = &["unix-seconds", "delta-seconds"];
pub(super) const FORWARDED: &[&str] = &[
    "x-forwarded-for",
    "forwarded",
    "x-real-ip",
    "cf-connecting-ip",
    "true-client-ip",
];
pub(super) const JWT_ALGORITHMS: &[&str] = &[
    "HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256",
    "ES384", "EdDSA",
];
const ON_INVALID: &[&str] = &["anonymous", "reject"];

const NETWORK: &str = "an address or a network such as `\"10.0.0.0/8\"`";
const CLAIM: &str = "the path of a claim such as `\"app_metadata.plan\"`";

/// The whole file.
pub(in super::super) static FILE: Table = Table::of(&[
    Field::new(
        "$schema",
        Kind::Text("the address of a schema"),
        "For editors; means nothing here.",
    ),
    Field::new(
        "defaults",
        Kind::Table(&DEFAULTS),
        "What goes for everything that does not say it itself.",
    )
    .called(&["default", "settings"]),
    Field::new(
        "tiers",
        Kind::Table(&TIERS),
        "Subscription tiers, and by how much they multiply limits.",
    )
    .called(&["tier", "plans"]),
    Field::new(
        "global",
        Kind::Table(&GLOBAL),
        "Rules that count every request.",
    ),
    Field::new(
        "categories",
        Kind::Table(&CATEGORIES),
        "Limits that endpoints share, one counter for all of them.",
    )
    .called(&["category"]),
    Field::new("endpoints", Kind::Tables(&ENDPOINT), "Rules for routes.")
        .called(&["endpoint", "routes"]),
    Field::new(
        "rules",
        Kind::Tables(&ALWAYS),
        "More rules that count every request.",
    )
    .called(&["rule"]),
    Field::new(
        "exempt",
        Kind::Table(&EXEMPT),
        "Who and what is not counted.",
    )
    .called(&["exemptions", "allowlist", "whitelist", "bypass"]),
    Field::new(
        "maintenance",
        Kind::Table(&MAINTENANCE),
        "A time without limits.",
    ),
    Field::new("identity", Kind::Table(&IDENTITY), "How callers are known.").called(&["auth"]),
]);

static DEFAULTS: Table = Table::of(&[
    Field::new(
        "algorithm",
        Kind::Choice(ALGORITHMS),
        "How quotas are counted.",
    )
    .or("\"sliding-window\""),
    Field::new(
        "warn_at",
        Kind::Number("a share of the limit such as `0.8`; above 1 for never"),
        "From which share of a limit on responses carry a warning.",
    )
    .or("0.8"),
    Field::new(
        "headers",
        Kind::Choice(HEADERS),
        "Which rate limit headers responses carry.",
    )
    .or("\"legacy\""),
    Field::new(
        "reset",
        Kind::Choice(RESET),
        "How `X-RateLimit-Reset` tells the time.",
    )
    .or("\"unix-seconds\""),
    Field::new(
        "on_store_failure",
        Kind::Choice(ON_STORE_FAILURE),
        "What happens while the store cannot answer.",
    )
    .or("\"local\""),
    Field::new(
        "local_share",
        Kind::Number("a share of the limit above 0 and up to 1, such as `0.25`"),
        "How much of each limit one process may admit on its own while the store cannot answer.",
    )
    .or("1"),
]);

static TIERS: Table = Table {
    fields: &[
        Field::new(
            "default",
            Kind::Text("the name of a tier"),
            "The tier of callers whose tier is not known.",
        )
        .required(),
        Field::new(
            "assign",
            Kind::Table(&ASSIGN),
            "Tiers for callers by name, whatever their token says.",
        ),
    ],
    others: Some(Others {
        noun: "tier",
        kind: Kind::Number("a multiplier such as `5`"),
        doc: "By how much the tier multiplies limits.",
    }),
};

static ASSIGN: Table = Table::named(
    "dimension",
    Kind::Table(&ASSIGNED),
    "Tiers by what callers are known by: `user`, `tenant`, …",
);

static ASSIGNED: Table = Table::named(
    "caller",
    Kind::Text("the name of a tier"),
    "The tier of this caller.",
);

static GLOBAL: Table = Table::of(&[
    Field::new(
        "authenticated",
        Kind::RuleOrQuotas,
        "For callers whose identity is verified, each of them.",
    )
    .called(&["users", "user"]),
    Field::new(
        "anonymous",
        Kind::RuleOrQuotas,
        "For unauthenticated callers, per client IP. Never scaled. Default: as `authenticated`.",
    )
    .called(&["unauthenticated", "ip"]),
    Field::new(
        "preflight",
        Kind::Choice(PREFLIGHT),
        "Whether CORS preflights are refunded if the response has CORS headers, or counted like other \
         requests.",
    )
    .called(&["preflights", "cors"])
    .or("\"refund\""),
    Field::new(
        "preflight_quota",
        Kind::Quota,
        "How many CORS preflights one client IP may send, in span of `anonymous`.",
    )
    .called(&["preflight_limit"])
    .or("\"600/minute\""),
]);

static CATEGORIES: Table = Table::named("category", Kind::Table(&CATEGORY), "A category.");

static EXEMPT: Table = Table::of(&[
    Field::new(
        "roles",
        Kind::Texts("the name of a role"),
        "Callers with one of these roles.",
    )
    .called(&["role"]),
    Field::new(
        "networks",
        Kind::Texts(NETWORK),
        "Clients from one of these networks.",
    )
    .called(&["ips", "addresses", "network", "cidrs"]),
    Field::new(
        "routes",
        Kind::Texts("a route such as `\"GET /health\"`"),
        "Requests are not counted if every reader of their path takes one of these routes.",
    )
    .called(&["paths", "endpoints", "route"]),
    Field::new("subjects", Kind::Table(&SUBJECTS), "Callers by name.")
        .called(&["subject", "callers"]),
]);

static SUBJECTS: Table = Table::named(
    "dimension",
    Kind::Texts("the name of a caller"),
    "Names by what callers are known by: `user`, `tenant`, …",
);

static MAINTENANCE: Table = Table::of(&[Field::new(
    "disabled_until",
    Kind::Instant,
    "Nothing is limited until then; the limits come back by themselves.",
)
.called(&["until", "ends_at"])]);

static IDENTITY: Table = Table::of(&[
    Field::new("jwt", Kind::Table(&JWT), "Callers known by a JSON Web Token.").called(&["token", "bearer"]),
    Field::new("ip", Kind::Table(&IP), "How the address of a client is found.").called(&["client_ip"]),
    Field::new(
        "trusted_user_header",
        Kind::Text("the name of a header such as `\"x-user-id\"`"),
        "A header that names the user. A client that can send it can choose any user: use it only behind a gateway that sets it.",
    )
    .called(&["user_header"]),
    Field::new(
        "failed_auth_quota",
        Kind::Quota,
        "How many requests with wrong credentials one client IP may send. Further wrong ones get 429; valid ones are not affected.",
    )
    .or("\"60/minute\"")
    .called(&["invalid_credentials"]),
    Field::new("on_invalid", Kind::Choice(ON_INVALID), "Whether wrong credentials make a caller anonymous, or get a 401.")
        .or("\"anonymous\""),
]);

static JWT: Table = Table::of(&[
    Field::new(
        "algorithms",
        Kind::Choices(JWT_ALGORITHMS),
        "The algorithms that are accepted.",
    )
    .required()
    .called(&["algorithm", "alg"]),
    Field::new(
        "secret_env",
        Kind::Text("the name of a variable such as `\"JWT_SECRET\"`"),
        "The variable of the environment that holds the shared secret.",
    ),
    Field::new(
        "secret_file",
        Kind::Text("the path of a file"),
        "The file that holds the shared secret; white space at its end does not count.",
    ),
    Field::new(
        "public_key_file",
        Kind::Text("the path of a PEM file"),
        "The file that holds the public key.",
    ),
    Field::new(
        "jwks_file",
        Kind::Text("the path of a JSON file"),
        "The file that holds a JWK set.",
    ),
    Field::new(
        "issuer",
        Kind::TextOrTexts("the name of an issuer"),
        "The `iss` that are accepted; any, if not said.",
    )
    .called(&["iss", "issuers"]),
    Field::new(
        "audience",
        Kind::TextOrTexts("the name of an audience"),
        "The `aud` that are accepted; any, if not said.",
    )
    .called(&["aud", "audiences"]),
    Field::new(
        "leeway",
        Kind::Text("a length of time such as `\"30s\"`"),
        "How far clocks may differ. Set it to the leeway of the application.",
    )
    .or("\"60s\""),
    Field::new(
        "cookie",
        Kind::Text("the name of a cookie"),
        "The cookie that has the token, instead of `Authorization: Bearer`.",
    ),
    Field::new("user", Kind::Text(CLAIM), "The claim that names the user.")
        .or("\"sub\"")
        .called(&["subject", "sub"]),
    Field::new("tier", Kind::Text(CLAIM), "The claim that names the tier.").called(&["plan"]),
    Field::new(
        "tenant",
        Kind::Text(CLAIM),
        "The claim that names the tenant.",
    ),
    Field::new(
        "roles",
        Kind::Text(CLAIM),
        "The claim that lists the roles.",
    )
    .called(&["role"]),
    Field::new(
        "dimensions",
        Kind::Table(&DIMENSIONS),
        "More that rules can count per, each with its claim.",
    ),
    Field::new(
        "remember",
        Kind::Whole("a whole number such as `10000`"),
        "How many verified tokens are remembered.",
    )
    .or("10000"),
    Field::new(
        "max_token_bytes",
        Kind::Whole("1 to 1048576 bytes"),
        "The largest token that is verified. A request with a larger one gets 401.",
    )
    .or("16384"),
]);

static DIMENSIONS: Table = Table::named("dimension", Kind::Text(CLAIM), "The claim that names it.");

static IP: Table = Table::of(&[
    Field::new(
        "trusted_proxies",
        Kind::Texts(NETWORK),
        "Proxies whose word is believed about whom they have seen.",
    )
    .called(&["proxies", "trusted"]),
    Field::new(
        "header",
        Kind::Choice(FORWARDED),
        "The header in which proxies tell the client's address.",
    )
    .or("\"x-forwarded-for\""),
    Field::new(
        "ipv6_prefix",
        Kind::Whole("1 to 128 bits"),
        "How many bits of an IPv6 address make one client.",
    )
    .or("64"),
    Field::new(
        "nat64_prefixes",
        Kind::Texts("an IPv6 network of 96 bits such as `\"64:ff9b:1::/96\"`"),
        "Prefixes of NAT64 gateways besides `64:ff9b::/96`. Addresses in them are folded to IPv4.",
    )
    .called(&["nat64_prefix", "nat64"]),
]);
