//! The bodies of requests: JSON, and little of it.

use axum::body::{Body, to_bytes};
use http::Request;
use http::header::CONTENT_TYPE;
use serde::de::DeserializeOwned;

use super::refusal::Refusal;

/// More than any request needs.
const MOST: usize = 16 * 1_024;

/// What a request says, and its head. A page of another origin cannot send this type of content without being
/// asked first, so it is insisted on.
pub(super) async fn read<T: DeserializeOwned>(
    request: Request<Body>,
) -> Result<(Request<()>, T), Refusal> {
    let (head, body) = request.into_parts();
    let head = Request::from_parts(head, ());
    let kind = head.headers().get(CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        return Err(Refusal::not_json());
    }
    // Also if it broke off; then nobody reads what is answered.
    let bytes = to_bytes(body, MOST).await;
    let bytes = bytes.map_err(|_| Refusal::too_large(MOST))?;
    let read = serde_json::from_slice(&bytes);
    Ok((head, read.map_err(Refusal::unreadable)?))
}
