//! Request bodies: JSON of at most 16 KiB.

use axum::body::{Body, to_bytes};
use http::Request;
use http::header::CONTENT_TYPE;
use serde::de::DeserializeOwned;

use super::api_error::ApiError;

const MAX_BODY: usize = 16 * 1_024;

/// Returns the head and the body of a request. The content type has to be JSON: a page of another
/// origin cannot send it without a preflight.
pub(super) async fn read<T: DeserializeOwned>(
    request: Request<Body>,
) -> Result<(Request<()>, T), ApiError> {
    let (head, body) = request.into_parts();
    let head = Request::from_parts(head, ());
    let kind = head.headers().get(CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        return Err(ApiError::not_json());
    }
    // An aborted body gets the same error, which is not read.
    let bytes = to_bytes(body, MAX_BODY).await;
    let bytes = bytes.map_err(|_| ApiError::too_large(MAX_BODY))?;
    let read = serde_json::from_slice(&bytes);
    Ok((head, read.map_err(ApiError::unreadable)?))
}
