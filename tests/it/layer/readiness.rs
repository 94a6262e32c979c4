//! The contract of tower: the service that was polled ready is the one that is called.

use std::task::{Context, Waker};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use tollgate::RateLimitLayer;
use tollgate::policy::{Count, Policy, Rule};
use tower_test::mock;

use crate::support::scripted_store::{Script, ScriptedStore};

type Mock = mock::Mock<Request<()>, Response<Full<Bytes>>>;
type Handle = mock::Handle<Request<()>, Response<Full<Bytes>>>;

fn layer(policy: impl tollgate::policy::IntoPolicy, polls: usize) -> RateLimitLayer {
    let store = ScriptedStore::new(Script::ReplyAfter(polls));
    RateLimitLayer::builder(policy)
        .store(store)
        .build()
        .unwrap()
}

fn spawn(layer: RateLimitLayer) -> (mock::Spawn<tollgate::RateLimit<Mock>>, Handle) {
    mock::spawn_with(move |service: Mock| tower::Layer::layer(&layer, service))
}

/// `Request` has no equality, so the URI is compared.
macro_rules! answer {
    ($handle:expr, $path:literal, $status:literal) => {{
        let (request, respond) = $handle.next_request().await.unwrap();
        assert_eq!(request.uri().path(), $path);
        respond.send_response(
            Response::builder()
                .status($status)
                .body(Full::default())
                .unwrap(),
        );
    }};
}

#[tokio::test]
async fn waits_until_the_inner_service_is_ready() {
    for polls in [0, 3] {
        let (mut service, mut handle) = spawn(layer("2/hour", polls));
        handle.allow(0);
        assert!(service.poll_ready().is_pending());
        handle.allow(1);
        assert!(service.poll_ready().is_ready());
        // A clone of the mock that was not polled ready would panic here.
        let response = tokio::spawn(service.call(Request::get("/one").body(()).unwrap()));
        answer!(handle, "/one", 200);
        assert_eq!(response.await.unwrap().unwrap().status(), 200);
        assert!(
            service.poll_ready().is_pending(),
            "the second call is ready without a permit"
        );
        handle.allow(1);
        assert!(service.poll_ready().is_ready());
    }
}

#[tokio::test]
async fn denied_requests_never_reach_the_inner_service() {
    for polls in [0, 3] {
        let (mut service, mut handle) = spawn(layer("1/hour", polls));
        handle.allow(5);
        assert!(service.poll_ready().is_ready());
        let first = tokio::spawn(service.call(Request::get("/one").body(()).unwrap()));
        answer!(handle, "/one", 200);
        assert_eq!(first.await.unwrap().unwrap().status(), 200);
        for _ in 0..3 {
            assert!(service.poll_ready().is_ready());
            let denied = service
                .call(Request::get("/two").body(()).unwrap())
                .await
                .unwrap();
            assert_eq!(denied.status(), 429);
        }
        let waited = std::pin::pin!(handle.next_request());
        let mut context = Context::from_waker(Waker::noop());
        assert!(
            waited.poll(&mut context).is_pending(),
            "a denied request reached the inner service"
        );
    }
}

#[tokio::test]
async fn errors_of_the_inner_service_are_unchanged() {
    let sends = Rule::new("5/hour").count(Count::success());
    let (mut service, mut handle) = spawn(layer(Policy::builder().everyone(sends), 0));
    handle.send_error("broken");
    let error = service.poll_ready();
    let std::task::Poll::Ready(Err(error)) = error else {
        panic!("{error:?}");
    };
    assert_eq!(error.to_string(), "broken");
}
