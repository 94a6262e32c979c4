//! A server that tells nobody where requests come from.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use axum::serve;
use tollgate::policy::Policy;
use tracing::Dispatch;
use tracing::subscriber::NoSubscriber;
use tracing_subscriber::util::SubscriberInitExt;

use super::listener;
use crate::layer::{echo, layer};
use crate::wire::{Client, VERSIONS, addresses};

/// Everything that was logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// On one thread, which is the one that is listened to.
#[tokio::test]
async fn all_share_one_counter_and_one_warning_says_why() {
    // While there is only one subscriber, an event that first happens in another thread is
    // switched off for all of them.
    let _another = Dispatch::new(NoSubscriber::default());
    for version in VERSIONS {
        let log = Log::default();
        let writer = log.clone();
        let listening = tracing_subscriber::fmt()
            .with_max_level(tracing_subscriber::filter::LevelFilter::DEBUG)
            .with_writer(move || writer.clone())
            .finish()
            .set_default();

        let (builder, _) = layer(Policy::builder().everyone("5/hour"));
        let app = echo().layer(builder.build().unwrap());
        let (listener, server) = listener().await;
        // No `into_make_service_with_connect_info`.
        tokio::spawn(async move { serve(listener, app).await });

        // They come from several addresses, and nobody knows.
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
        let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        let warnings = log
            .lines()
            .filter(|line| line.contains("into_make_service_with_connect_info"));
        let warnings: Vec<&str> = warnings.collect();
        assert_eq!(warnings.len(), 1, "{log}");
        assert!(warnings[0].contains(" WARN "), "{}", warnings[0]);
        let denials = log.matches("rate_limit_exceeded").count();
        assert_eq!(denials, 4, "{log}");
    }
}
