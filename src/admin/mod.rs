//! Where callers and operators look: the [`Status`] endpoint, and the [`Admin`] API with its
//! dashboard. Both are routers of axum that belong to a [`RateLimitLayer`](crate::RateLimitLayer).
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
//!     .nest_service("/admin", Admin::new(&limits).token("correct-horse-battery-staple").router()?)
//!     .merge(api.layer(limits));
//! # let _ = app;
//! # Ok::<(), tollgate::Error>(())
//! ```
//!
//! The layer is around the API only, so that looking is not counted on the limits that are looked
//! at. And the API comes last: of two routers that are merged, axum keeps the answer of the later
//! one to paths that are nowhere, and who scans for paths is to be counted. Where the layer is
//! around everything, [exempt](crate::policy::PolicyBuilder::exempt_route) these routes.
//!
//! # For callers
//!
//! `GET /v1/rate-limits/status` tells every limit that applies to whoever asks, found in the way
//! of all requests:
//!
//! ```json
//! {"counted_by":"user","tier":"team","exempt":null,"degraded":false,
//!  "limits":[{"policy":"user:global:1h","limit":5000,"used":12,"remaining":4988,
//!             "reset_at":"2025-10-30T14:00:00.000Z"}],
//!  "timestamp":"2025-10-30T13:12:24.000Z"}
//! ```
//!
//! A limit that is used up has `retry_after` as well, in seconds, and its `reset_at` is when the
//! next request is admitted; for one that is blocked for good there is neither. Rules that are
//! only tried out, and what is unlimited, are not told. `degraded` means that the store cannot be
//! asked, and that these are the counts of one process. Asking charges nothing, but is itself
//! limited, in the memory of each process: 60 times a minute, if
//! [nothing else is said](Status::quota).
//!
//! # For operators
//!
//! The [`Admin`] router has the dashboard at its root and JSON below `api/`. Every request to the
//! API shows the token in the header `Authorization: Bearer …`; there are no cookies, so no other
//! page can make an operator's browser do something. The page itself holds no figures and asks
//! for the token.
//!
//! | path | body | |
//! |---|---|---|
//! | `GET api/statistics` | | what has happened; see [`Statistics`](crate::observe::Statistics) |
//! | `GET api/policy` | | what is in force, its version, the last attempt to reload |
//! | `POST api/reload` | `{}` | reads the policy again from its file |
//! | `POST api/lookup` | `{"subject":{"user":"alice"}}` | every counter of somebody, and why they are blocked; also `tier`, `roles`, and `request` (`"GET /v1/items"`), which explains how that one is counted. A tier that only their token says is not known here (`tier_known` is `false`): say it |
//! | `POST api/reset` | `{"subject":{"user":"alice"}}` | forgets what was counted for them; with `rule`, only under that one |
//! | `GET api/overrides` | | limits that were set at run time |
//! | `POST api/overrides` | `{"subject":{"user":"alice"},"rule":"global","limit":"500/hour","until":"2026-12-01T06:00:00Z"}` | sets one; `until` can be left out |
//! | `POST api/overrides/remove` | `{"subject":{"user":"alice"},"rule":"global"}` | removes it |
//! | `GET api/maintenance` | | whether all limits are off |
//! | `POST api/maintenance` | `{"until":"2026-12-01T06:00:00Z"}` | switches them off until then; `null` switches them on again |
//!
//! Whose limits are meant is said in bodies only, because URLs are logged. Overrides and
//! maintenance are kept in the store, and so are for all processes that share it; statistics and
//! the policy are those of the process that answers.
//!
//! A subject is what callers are known by: `user`, `ip`, `tenant`, whatever identities have. If it
//! has several dimensions, the user is who is meant, and the others are what else is known of
//! them. A reset forgets the counters that are theirs alone; those of their tenant stay, unless a
//! `rule` names them.
//!
//! Everything that an operator changes leaves an event `rate_limit_admin` (target
//! `tollgate::audit`), with `action`, `rule`, `request_id` and, if
//! [somebody says it](Admin::actor_with), `actor`; never with whose limits they were. A wrong token
//! leaves `rate_limit_admin_wrong_token`, at most [as often](Admin::failed_auth_quota) as wrong
//! tokens are allowed: per client IP, and in all for clients without a known address. Further ones
//! get 429 if the address is known, otherwise 401; the right token is accepted at any time.
//!
//! # What is not promised
//!
//! The token is one secret for all operators. Where people have accounts, put the router behind
//! the authentication that you have, and tell who they are by [`Admin::actor_with`]. Serve it over
//! TLS: the token is in every request.

mod api;
mod audit;
mod body;
mod instant;
mod operator;
mod page;
mod refusal;
mod reply;
mod status;
mod subject;
mod token;

pub use self::operator::Admin;
pub use self::status::Status;
