//! Rules and their quotas.

use super::{Field, Kind, Table};

pub(super) const ALGORITHMS: &[&str] = &[
    "sliding-window",
    "fixed-window",
    "sliding-buckets",
    "sliding-log",
    "token-bucket",
];
pub(super) const ON_STORE_FAILURE: &[&str] = &["local", "allow", "deny"];
const MODES: &[&str] = &["enforce", "dry-run"];

/// A quota, written as a table.
pub(in super::super) static QUOTA: Table = Table::of(&[
    Field::new(
        "limit",
        Kind::Whole("a whole number such as `500`"),
        "How many per window.",
    )
    .required()
    .called(&["amount", "max", "count"]),
    Field::new(
        "window",
        Kind::Text("a window such as `\"1m\"` or `\"15 minutes\"`"),
        "How long the window is.",
    )
    .required()
    .called(&["per", "period", "interval", "duration"]),
    Field::new(
        "burst",
        Kind::Whole("a whole number such as `20`"),
        "How much a token bucket holds; the limit, if not said.",
    ),
    Field::new(
        "buckets",
        Kind::Whole("a whole number such as `60`"),
        "Into how many buckets sliding buckets cut the window.",
    )
    .or("60"),
    Field::new(
        "algorithm",
        Kind::Choice(ALGORITHMS),
        "How it is counted; as in `defaults`, if not said.",
    ),
]);

const LIMIT: Field = Field::new(
    "limit",
    Kind::Quotas,
    "One quota or several, all of which must have room.",
)
.called(&["limits", "quota", "quotas", "rate"]);
const ALGORITHM: Field = Field::new(
    "algorithm",
    Kind::Choice(ALGORITHMS),
    "How quotas are counted that do not say it themselves.",
);
const PER: Field = Field::new(
    "per",
    Kind::Texts("the name of a dimension such as `ip`, `user` or `tenant`"),
    "What is counted per; an empty list is the whole instance, and if it is not said, the caller.",
)
.called(&["by", "key", "keys", "scope"]);
const SCALE: Field =
    Field::new("scale", Kind::Flag, "Whether tiers multiply the limit.").or("true");
const COUNT: Field = Field::new("count", Kind::Outcomes, "Which responses count.").or("\"all\"");
const COST: Field = Field::new(
    "cost",
    Kind::Whole("a whole number such as `1`"),
    "What a request costs.",
)
.or("1");
const MESSAGE: Field = Field::new(
    "message",
    Kind::Text("a text"),
    "What the denied are told, with `{limit} {used} {window} {retry_after} {retry_in} {policy} {tier}` filled in.",
);
const SUGGESTION: Field = Field::new(
    "suggestion",
    Kind::Text("a text"),
    "What the denied could do about it, shown beside the message.",
)
.called(&["hint"]);
const FAILURE: Field = Field::new(
    "on_store_failure",
    Kind::Choice(ON_STORE_FAILURE),
    "What happens while the store cannot answer; as in `defaults`, if not said.",
);
const MODE: Field = Field::new(
    "mode",
    Kind::Choice(MODES),
    "Whether it is enforced, or counts and logs without ever denying.",
)
.or("\"enforce\"");
const TIERS: Field = Field::new(
    "tiers",
    Kind::Table(&OWN_NUMBERS),
    "Numbers of its own for some tiers, instead of the multiplier.",
)
.called(&["tier"]);

static OWN_NUMBERS: Table = Table::named(
    "tier",
    Kind::Quotas,
    "As many quotas as the rule has, of the same windows.",
);

/// What every rule may say.
pub(in super::super) static RULE: Table = Table::of(&[
    LIMIT, ALGORITHM, PER, SCALE, TIERS, COUNT, COST, MESSAGE, SUGGESTION, FAILURE, MODE,
]);

pub(super) static CATEGORY: Table = Table::of(&[
    LIMIT.required(),
    ALGORITHM,
    PER,
    SCALE,
    TIERS,
    COUNT,
    COST,
    MESSAGE,
    SUGGESTION,
    FAILURE,
    MODE,
    Field::new(
        "stack",
        Kind::Flag,
        "Whether it also counts endpoints that have limits of their own.",
    )
    .or("false"),
]);

pub(super) static ENDPOINT: Table = Table::of(&[
    Field::new(
        "route",
        Kind::Text("a route such as `\"GET /v1/items/{id}\"`"),
        "Method and path; without a method it is for all of them.",
    )
    .required()
    .called(&["path", "url", "uri", "endpoint", "match"]),
    Field::new(
        "name",
        Kind::Text("a name such as `login`"),
        "The rule's name in policy strings; the route, if not said.",
    ),
    Field::new(
        "category",
        Kind::Text("the name of a category"),
        "The category whose limits and counters it shares.",
    )
    .called(&["group", "class"]),
    LIMIT,
    ALGORITHM,
    PER,
    SCALE,
    TIERS,
    COUNT,
    COST,
    MESSAGE,
    SUGGESTION,
    FAILURE,
    MODE,
    Field::new(
        "global",
        Kind::Flag,
        "Whether the global rule counts it as well.",
    )
    .or("true"),
]);

pub(super) static ALWAYS: Table = Table::of(&[
    Field::new(
        "name",
        Kind::Text("a name such as `outbound`"),
        "The rule's name in policy strings. Counters are found by it.",
    )
    .required(),
    LIMIT.required(),
    ALGORITHM,
    PER,
    SCALE,
    TIERS,
    COUNT,
    COST,
    MESSAGE,
    SUGGESTION,
    FAILURE,
    MODE,
]);
