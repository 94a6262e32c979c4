//! The contract of tower: a service is polled ready before each call, also before a retry.

use std::time::Duration;

use http::{Request, Response};
use tollgate::ManualClock;
use tollgate::client::{PaceLayer, PaceService};
use tower_test::mock;

use super::pace;

type Mock = mock::Mock<Request<()>, Response<()>>;
type Handle = mock::Handle<Request<()>, Response<()>>;

fn spawn(layer: PaceLayer) -> (mock::Spawn<PaceService<Mock>>, Handle) {
    mock::spawn_with(move |service: Mock| tower::Layer::layer(&layer, service))
}

fn get() -> Request<()> {
    Request::get("http://api.test/").body(()).unwrap()
}

fn response(status: u16) -> Response<()> {
    let response = Response::builder().status(status);
    response.header("retry-after", "5").body(()).unwrap()
}

#[tokio::test]
async fn waits_until_the_inner_service_is_ready_and_again_before_a_retry() {
    let clock = ManualClock::new();
    let (mut service, mut handle) = spawn(pace(&clock).build().unwrap());
    handle.allow(0);
    assert!(service.poll_ready().is_pending());
    handle.allow(1);
    assert!(service.poll_ready().is_ready());
    // A clone of the mock that was not polled ready would panic.
    let sent = tokio::spawn(service.call(get()));
    let (_, respond) = handle.next_request().await.unwrap();
    respond.send_response(response(429));
    while clock.sleeping() == 0 {
        tokio::task::yield_now().await;
    }
    clock.advance(Duration::from_secs(10));
    tokio::task::yield_now().await;
    assert!(
        !sent.is_finished(),
        "the retry was sent before the service was ready"
    );
    handle.allow(1);
    let (_, respond) = handle.next_request().await.unwrap();
    respond.send_response(response(200));
    assert_eq!(sent.await.unwrap().unwrap().status(), 200);
}

/// A request that waits does not occupy the capacity of the inner service.
#[tokio::test]
async fn readiness_is_released_while_a_request_waits() {
    let clock = ManualClock::new();
    let (mut service, mut handle) = spawn(pace(&clock).max_retries(0).build().unwrap());
    handle.allow(1);
    assert!(service.poll_ready().is_ready());
    let denied = tokio::spawn(service.call(get()));
    let (_, respond) = handle.next_request().await.unwrap();
    respond.send_response(response(429));
    assert_eq!(denied.await.unwrap().unwrap().status(), 429);

    handle.allow(1);
    assert!(service.poll_ready().is_ready());
    let waiting = tokio::spawn(service.call(get()));
    while clock.sleeping() == 0 {
        tokio::task::yield_now().await;
    }
    let to_other_host = Request::get("http://other.test/").body(()).unwrap();
    assert!(
        service.poll_ready().is_ready(),
        "the capacity is not released"
    );
    let other = tokio::spawn(service.call(to_other_host));
    let (request, respond) = handle.next_request().await.unwrap();
    assert_eq!(request.uri().host(), Some("other.test"));
    respond.send_response(response(200));
    assert_eq!(other.await.unwrap().unwrap().status(), 200);

    clock.advance(Duration::from_secs(10));
    handle.allow(1);
    let (_, respond) = handle.next_request().await.unwrap();
    respond.send_response(response(200));
    assert_eq!(waiting.await.unwrap().unwrap().status(), 200);
}

#[tokio::test]
async fn errors_of_the_inner_service_are_unchanged() {
    let clock = ManualClock::new();
    let (mut service, mut handle) = spawn(pace(&clock).build().unwrap());
    handle.allow(1);
    assert!(service.poll_ready().is_ready());
    let sent = tokio::spawn(service.call(get()));
    let (_, respond) = handle.next_request().await.unwrap();
    respond.send_error("broken");
    assert_eq!(sent.await.unwrap().unwrap_err().to_string(), "broken");
}
