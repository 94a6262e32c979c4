//! A server without connect info.

use axum::serve;
use tollgate::policy::Policy;

use super::listener;
use crate::support::http::{echo, layer};
use crate::support::log::Log;
use crate::support::sockets::{Client, VERSIONS, addresses};

/// On one thread, which is the one that is listened to.
#[tokio::test]
async fn all_share_one_counter_and_one_warning_is_logged() {
    for version in VERSIONS {
        let (log, listening) = Log::listen();
        let (builder, _) = layer(Policy::builder().everyone("5/hour"));
        let limits = builder.build().unwrap();
        let app = echo().layer(limits.clone());
        let (listener, server) = listener().await;
        // No `into_make_service_with_connect_info`.
        tokio::spawn(async move { serve(listener, app).await });

        // They come from several addresses, which the layer does not see.
        let clients = addresses()
            .into_iter()
            .map(|address| Client::from(address, version, server));
        let clients: Vec<Client> = clients.collect();
        let mut clients = clients.iter().cycle();
        for left in [4, 3, 2, 1, 0] {
            let answer = clients.next().unwrap().send("GET /", &[]).await;
            assert_eq!(
                (answer.status, answer.number("x-ratelimit-remaining")),
                (200, left)
            );
        }
        for _ in 0..4 {
            let answer = clients.next().unwrap().send("GET /", &[]).await;
            assert_eq!(answer.status, 429);
        }
        // Users are known by name as ever.
        let alice = clients
            .next()
            .unwrap()
            .send("GET /", &[("x-user", "alice")])
            .await;
        assert_eq!(
            (alice.status, alice.number("x-ratelimit-remaining")),
            (200, 4)
        );

        drop(listening);
        let warnings = log.about("into_make_service_with_connect_info");
        assert_eq!(warnings.len(), 1, "{}", log.text());
        assert!(warnings[0].contains(" WARN "), "{}", warnings[0]);
        // All count as one caller, with one warning.
        let denials = log.about("rate_limit_exceeded").len();
        assert_eq!(denials, 1, "{}", log.text());
        assert_eq!(limits.statistics().totals.denied, 4);
    }
}
