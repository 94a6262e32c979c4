//! Tiers that are looked up while the request waits.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use tollgate::ManualClock;
use tollgate::policy::{Policy, Rule, Tiers};
use tollgate::tier::TierResolver;

use super::{echo, layer, send};

/// Returns a router with a limit of 100, and five times as much for `team`; and a counter of look-ups.
fn app<L>(
    look_up: impl Fn(String) -> L + Send + Sync + 'static,
) -> (Router, Arc<AtomicUsize>, ManualClock)
where
    L: Future<Output = Result<Option<String>, io::Error>> + Send + 'static,
{
    let policy = Policy::builder()
        .tiers(
            Tiers::new("free")
                .tier("team", 5)
                .assign("user", "listed", "team"),
        )
        .authenticated("100/hour")
        .anonymous("10/hour");
    let (builder, clock) = layer(policy);
    let lookups = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&lookups);
    let resolver = TierResolver::new(move |identity| {
        counted.fetch_add(1, Ordering::Relaxed);
        look_up(identity.get("user").unwrap_or_default().to_owned())
    });
    let app = echo().layer(builder.tier_resolver(resolver).build().unwrap());
    (app, lookups, clock)
}

async fn limit(app: &Router, headers: &[(&str, &str)]) -> u64 {
    send(app, "GET /", headers)
        .await
        .number("x-ratelimit-limit")
}

#[tokio::test]
async fn a_tier_is_looked_up_once_and_only_if_no_claim_has_it() {
    let (app, lookups, _) = app(|user| async move {
        tokio::task::yield_now().await;
        Ok((user == "alice").then(|| "team".to_owned()))
    });
    assert_eq!(limit(&app, &[]).await, 10);
    assert_eq!(limit(&app, &[("x-user", "listed")]).await, 500);
    assert_eq!(
        limit(&app, &[("x-user", "bob"), ("x-tier", "team")]).await,
        500
    );
    assert_eq!(lookups.load(Ordering::Relaxed), 0);
    for _ in 0..3 {
        assert_eq!(limit(&app, &[("x-user", "alice")]).await, 500);
        assert_eq!(limit(&app, &[("x-user", "bob")]).await, 100);
    }
    assert_eq!(lookups.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn a_failed_or_hanging_lookup_causes_no_500() {
    let (app, _, _) = app(|_| async { Err(io::Error::other("the database is down")) });
    assert_eq!(limit(&app, &[("x-user", "alice")]).await, 100);

    let (app, _, clock) = self::app(|_| std::future::pending());
    let request = tokio::spawn(async move { limit(&app, &[("x-user", "alice")]).await });
    while !request.is_finished() {
        clock.advance(Duration::from_millis(50));
        tokio::task::yield_now().await;
    }
    assert_eq!(request.await.unwrap(), 100);
}

/// Bug: ten callers of the highest tier had ten times the limit of the whole instance.
#[tokio::test]
async fn a_limit_of_the_whole_instance_does_not_scale_with_tiers() {
    let policy = Policy::builder()
        .tiers(Tiers::new("free").tier("team", 5))
        .authenticated("100/hour")
        .rule("instance", Rule::new("2/minute").per([]));
    let (builder, _) = layer(policy);
    let app = echo().layer(builder.build().unwrap());
    let team = [("x-user", "alice"), ("x-tier", "team")];
    for status in [200, 200, 429] {
        let answer = send(&app, "GET /", &team).await;
        assert_eq!(
            (answer.status, answer.number("x-ratelimit-limit")),
            (status, 2)
        );
    }
}
