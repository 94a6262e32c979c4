//! One layer over a hundred and fifty handlers is still one limit.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use axum::response::Response;
use axum::routing::{delete, get, post};
use tollgate::RateLimitLayer;
use tower::util::BoxCloneService;
use tower::{Layer, ServiceExt};

use super::{PLACES, Place, start};
use crate::support::http::{layer, request};
use crate::support::sockets::{Client, VERSIONS, Version, addresses};

const ROUTES: usize = 50;
const METHODS: [&str; 3] = ["GET", "POST", "DELETE"];

/// Fewer than the requests that are sent, and a prime.
const LIMIT: u64 = 257;

/// How callers are identified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Per {
    Address,
    User,
}

/// An API, and how often any of its handlers has run.
fn api() -> (Router, Arc<AtomicU64>) {
    let runs = Arc::new(AtomicU64::new(0));
    let handler = || {
        let runs = Arc::clone(&runs);
        move || async move {
            runs.fetch_add(1, Ordering::Relaxed);
            "ran"
        }
    };
    let app = (0..ROUTES).fold(Router::new(), |app, number| {
        let methods = get(handler())
            .merge(post(handler()))
            .merge(delete(handler()));
        app.route(&format!("/r{number}/{{id}}"), methods)
    });
    (app, runs)
}

/// A limit of the day that is counted on a clock which stands still.
fn limits() -> RateLimitLayer {
    let (builder, _) = layer(&*format!("{LIMIT}/day"));
    builder.build().unwrap()
}

/// The request line with this number: all methods of all routes, one after the other.
fn line(number: usize) -> String {
    let method = METHODS[number % METHODS.len()];
    let route = number / METHODS.len() % ROUTES;
    format!("{method} /r{route}/{number}")
}

/// Each caller sends 480 requests, over 8 connections with 60 each, spread over all handlers.
async fn admitted(version: Version, place: Place, per: Per) -> (Vec<u64>, u64) {
    const CONNECTIONS: usize = 8;
    const REQUESTS: usize = 60;
    let (app, runs) = api();
    let server = start(app, &limits(), place).await;
    let addresses = addresses();
    let callers: Vec<(&str, _)> = match per {
        Per::Address => addresses.into_iter().map(|address| ("", address)).collect(),
        // From one address, which must not matter.
        Per::User => ["alice", "bob"].map(|user| (user, addresses[0])).to_vec(),
    };
    let mut asking = Vec::new();
    for (caller, (user, address)) in callers.iter().copied().enumerate() {
        for connection in 0..CONNECTIONS {
            let client = Client::from(address, version, server);
            asking.push(tokio::spawn(async move {
                let mut admitted = 0;
                for number in 0..REQUESTS {
                    let line = line(number * CONNECTIONS + connection);
                    let headers = [("x-user", user)];
                    let headers = if user.is_empty() { &[][..] } else { &headers };
                    let answer = client.send(&line, headers).await;
                    match answer.status {
                        200 => admitted += 1,
                        429 => assert_eq!(answer.header("x-ratelimit-remaining"), Some("0")),
                        other => panic!("{line}: {other}"),
                    }
                }
                (caller, admitted)
            }));
        }
    }
    let mut admitted = vec![0; callers.len()];
    for task in asking {
        let (caller, more) = task.await.unwrap();
        admitted[caller] += more;
    }
    (admitted, runs.load(Ordering::Relaxed))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_limit_is_exact_over_all_routes_and_connections() {
    for version in VERSIONS {
        for place in PLACES {
            for per in [Per::Address, Per::User] {
                let (admitted, runs) = admitted(version, place, per).await;
                let case = format!("{version:?}, around {place:?}, per {per:?}");
                assert!(
                    admitted.iter().all(|count| *count == LIMIT),
                    "{case}: {admitted:?}"
                );
                assert_eq!(
                    runs,
                    admitted.iter().sum::<u64>(),
                    "{case}: handlers that ran"
                );
            }
        }
    }
}

/// Without sockets, where threads meet more often.
#[test]
fn the_limit_is_exact_over_all_routes_and_threads() {
    const THREADS: usize = 8;
    let peer: SocketAddr = "192.0.2.7:1234".parse().unwrap();
    for place in PLACES {
        for per in [Per::Address, Per::User] {
            let (app, runs) = api();
            let limits = limits();
            // Both are a service of the same kind, once they are boxed.
            let app = match place {
                Place::Routes => app.layer(limits).boxed_clone(),
                Place::Router => limits.layer(app).boxed_clone(),
            };
            let together = Barrier::new(THREADS);
            let send =
                |thread: usize, app: BoxCloneService<Request<Body>, Response, Infallible>| {
                    let runtime = tokio::runtime::Builder::new_current_thread()
                        .build()
                        .unwrap();
                    together.wait();
                    runtime.block_on(async {
                        let mut admitted = 0;
                        for number in 0..150 {
                            let line = line(number + 19 * thread);
                            let headers = [("x-user", "alice")];
                            let headers = if per == Per::User { &headers } else { &[][..] };
                            let mut request = request(&line, headers);
                            request.extensions_mut().insert(ConnectInfo(peer));
                            let answer = app.clone().oneshot(request).await.unwrap();
                            admitted += u64::from(answer.status() == 200);
                        }
                        admitted
                    })
                };
            let admitted: u64 = thread::scope(|scope| {
                let threads: Vec<_> = (0..THREADS)
                    .map(|thread| {
                        // A boxed service can be sent, and not shared.
                        let (send, app) = (&send, app.clone());
                        scope.spawn(move || send(thread, app))
                    })
                    .collect();
                threads
                    .into_iter()
                    .map(|thread| thread.join().unwrap())
                    .sum()
            });
            assert_eq!(admitted, LIMIT, "around {place:?}, per {per:?}");
            assert_eq!(runs.load(Ordering::Relaxed), LIMIT);
        }
    }
}
