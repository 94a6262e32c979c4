//! The [`Status`] endpoint for callers, and the [`Admin`] API with its dashboard for operators. Both are
//! axum routers for a [`RateLimitLayer`](crate::RateLimitLayer).
//!
//! ```
//! use axum::{Router, routing::get};
//! use tollgate::RateLimitLayer;
//! use tollgate::admin::{Admin, Status};
//!
//! let limits = RateLimitLayer::new("100/minute")?;
//! let api: Router = Router::new().route("/", get(|| async { "hello" }));
//! let app: Router = Router::new()
//!     .merge(Status::new(&limits).router()?)
//!     .nest_service("/admin", Admin::new(&limits).shared_token("correct-horse-battery-staple").router()?)
//!     .merge(api.layer(limits));
//! # let _ = app;
//! # Ok::<(), tollgate::Error>(())
//! ```
//!
//! The layer wraps the API only, so that status and admin requests are not counted. The API is merged
//! last: axum keeps the fallback of the router that is merged last, and requests to unknown paths are
//! to be counted. If the layer wraps everything, [exempt](crate::policy::PolicyBuilder::exempt_route)
//! these routes.
//!
//! # Status endpoint for callers
//!
//! `GET /v1/rate-limits/status` returns every limit that applies to the caller:
//!
//! ```json
//! {"counted_by":"user","tier":"team","exempt":null,"degraded":false,
//!  "limits":[{"policy":"user:global:1h","limit":5000,"used":12,"remaining":4988,
//!             "reset_at":"2025-10-30T14:00:00.000Z"}],
//!  "timestamp":"2025-10-30T13:12:24.000Z"}
//! ```
//!
//! A limit that is used up also has `retry_after` in seconds, and its `reset_at` is when the next
//! request is admitted. A limit that blocks all requests has neither. Dry-run rules and unlimited
//! quotas are not listed. `degraded` means that the store is unavailable and the values are of one
//! process. A status request charges no quota of the policy. It has [a quota](Status::quota) of its
//! own in the memory of each process. Default: `60/minute`.
//!
//! # Admin API and dashboard
//!
//! The [`Admin`] router has the dashboard at its root and JSON below `api/`. Every request to the API
//! sends the token in the header `Authorization: Bearer …`. There are no cookies, so that a page of
//! another origin cannot send requests in the name of an operator. The page itself contains no data.
//!
//! | path | body | |
//! |---|---|---|
//! | `GET api/statistics` | | [`Statistics`](crate::observe::Statistics), maintenance and the status of the policy; at most 100 endpoints and policies |
//! | `GET api/policy` | | the policy, its version, the last reload |
//! | `POST api/reload` | `{}` | reloads the policy from its file |
//! | `POST api/lookup` | `{"subject":{"user":"alice"}}` | all counters of a caller and why it is blocked; optional `tier`, `roles`, and `request` (`"GET /v1/items"`), which explains how that request is counted. Without `tier`, it uses the tier of the last denial within the hour. `tier_assumed` is `true` if there was none and only a token of the caller names its tier: then pass `tier`. `blocked_since` is the first of a row of denials by this limit; requests of lower cost may have been admitted in between. Limits and overrides per IP are considered only with `ip`; otherwise `ip_limits_omitted` is the number of these limits |
//! | `POST api/reset` | `{"subject":{"user":"alice"}}` | resets the counters of a caller; with `rule`, only those of this rule |
//! | `GET api/overrides` | | all overrides |
//! | `POST api/overrides` | `{"subject":{"user":"alice"},"rule":"global","limit":"500/hour","until":"2026-12-01T06:00:00Z"}` | sets an override; `until` is optional. The subject `{}` is the counter of a rule with `per = []`, and rejected for other rules |
//! | `POST api/overrides/remove` | `{"subject":{"user":"alice"},"rule":"global"}` | removes it |
//! | `GET api/maintenance` | | whether all limits are off |
//! | `POST api/maintenance` | `{"until":"2026-12-01T06:00:00Z"}` | switches all limits off until then; `null` switches them on |
//!
//! Subjects are in bodies only, because URLs are logged. Overrides and maintenance are kept in the
//! store and apply to all processes that share it. Statistics and policy are those of the process that
//! responds. Names in `api/statistics` are cut at 256 bytes; the `subject` of a longer one is `null`.
//!
//! A subject has one or more dimensions: `user`, `ip`, `tenant`, … With several, the user is the caller
//! and the others are further facts about it. A reset clears the counters of the caller alone. Those of
//! its tenant are kept, unless `rule` names them.
//!
//! Every change logs an event `rate_limit_admin` (target `tollgate::audit`) with `action`, `rule`,
//! `request_id` and `actor`: the name of the [token](Admin::token), or the result of
//! [`actor_with`](Admin::actor_with); never with the subject. A wrong
//! token logs `rate_limit_admin_wrong_token`, at most [as often](Admin::failed_auth_quota) as wrong
//! tokens are allowed: per client IP, and in total for clients without a known address. Further ones
//! get 429 if the address is known, otherwise 401; the right token is accepted at any time.
//!
//! # Tokens
//!
//! [`Admin::token`] adds the token of one operator or program, with the role `read` or `write`. A
//! token with the role `read` gets 403 for every change. `role` in `GET api/statistics` is the role of
//! the token that was sent. [`Admin::shared_token`] adds one token without a name, which may change
//! everything. If operators have accounts, put the router behind your authentication and pass their
//! names with [`Admin::actor_with`]. Serve it over TLS: the token is in every request.

mod api;
mod api_error;
mod audit;
mod auth;
mod body;
mod builder;
mod dashboard_page;
mod json;
mod operator;
mod status;
mod subject_body;

use crate::clock::Timestamp;

pub use self::builder::Admin;
pub use self::operator::AdminRole;
pub use self::status::Status;

/// Rounds up to a whole second, as reset times in response headers are.
const fn rounded_up(time: Timestamp) -> Timestamp {
    Timestamp::from_secs(time.as_secs_rounded_up())
}
