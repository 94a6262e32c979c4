//! Bodies that a denial can have.

use std::convert::Infallible;
use std::io;

use bytes::Bytes;
use http_body_util::combinators::{BoxBody, UnsyncBoxBody};
use http_body_util::{BodyExt, Either, Empty, Full};
use tollgate::response::DenialBody;

const TEXT: Bytes = Bytes::from_static(b"denied");

macro_rules! holds {
    ($($body:ty),* $(,)?) => {$({
        let body = <$body as DenialBody>::from_bytes(TEXT);
        assert_eq!(body.collect().await.unwrap().to_bytes(), TEXT);
    })*};
}

#[tokio::test]
async fn the_usual_bodies_hold_what_was_rendered() {
    holds!(
        Full<Bytes>,
        BoxBody<Bytes, Infallible>,
        BoxBody<Bytes, io::Error>,
        UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>,
        Either<Full<Bytes>, Empty<Bytes>>,
    );
    holds!(axum::body::Body);
    holds!(tonic::body::Body);
    assert_eq!(Bytes::from_bytes(TEXT), TEXT);
    assert_eq!(Vec::from_bytes(TEXT), TEXT);
}
