//! Responses to rejected requests.
//!
//! A [`Denial`] has the data, a [`Render`]er turns it into a response, and [`finish`] adds the headers
//! that every denial has. Renderers neither read a clock nor wait, and they do not get the identity of
//! the caller.
//!
//! | renderer | response |
//! |---|---|
//! | [`Auto`] (the default) | [`Grpc`] to gRPC requests, else [`JsonEnvelope`] |
//! | [`JsonEnvelope`] | 429 and `{"error":{"code":"RATE_LIMIT_EXCEEDED",…}}` |
//! | [`ProblemJson`] | 429 and `application/problem+json` (RFC 9457) |
//! | [`Grpc`] | 200 and `grpc-status: 8` (`RESOURCE_EXHAUSTED`) |
//! | [`render_with`] | that of your closure |
//!
//! # Write a renderer
//!
//! A closure is enough. It can be tested without a server:
//!
//! ```
//! use http::{Request, Response};
//! use tollgate::headers::{QuotaName, QuotaUsage};
//! use tollgate::response::{Denial, Render, finish, render_with};
//! use tollgate::{Counter, RequestHead, Outcome, Quota, Timestamp, Usage};
//!
//! // The sender of a webhook retries until the status is 200.
//! let webhook = render_with(|_denial| Response::new(r#"{"ok":true}"#));
//!
//! let counter = Counter::new("updates", Quota::per_hour(20)?)?;
//! let name = QuotaName::new("user", &counter, counter.quota())?;
//! let at = Timestamp::from_secs(1_761_829_944);
//! let reset_at = Timestamp::from_secs(1_761_832_800);
//! let usage = QuotaUsage::new(&name, Usage::new(20, 20, reset_at, Outcome::Denied));
//! let request = Request::post("/webhook").body(()).unwrap();
//!
//! let denial = Denial::limited(RequestHead::of(&request), usage, at);
//! assert_eq!(denial.message(), "Rate limit exceeded. Please try again in 48 minutes.");
//! let mut response = webhook.render(&denial);
//! finish(&mut response, &denial);
//! assert_eq!(response.status(), 200);
//! assert!(!response.headers().contains_key("retry-after"));
//! # Ok::<(), tollgate::ValidationError>(())
//! ```

mod body;
mod denial;
mod denial_kind;
mod envelope;
mod finish;
mod grpc;
mod json;
mod message;
mod problem;
mod render;
mod request_id;
mod template;
pub(crate) mod words;

pub use self::body::DenialBody;
pub use self::denial::Denial;
pub(crate) use self::denial::DenialContext;
pub use self::denial_kind::DenialKind;
pub use self::envelope::JsonEnvelope;
pub use self::finish::finish;
pub use self::grpc::Grpc;
pub use self::problem::ProblemJson;
pub(crate) use self::render::respond;
pub use self::render::{Auto, Render, RenderFn, render_with};
pub use self::request_id::RequestId;
pub use self::template::Template;
