//! Two gateways that count together.

use super::{Caller, Example, Gateway, OWN, told};
use crate::redis::Server;

const LOGIN: &str = "POST /auth/v1/token";

async fn gateway(redis: &Server) -> Gateway {
    let url = redis.url();
    let variables = [&OWN[..], &[("REDIS_URL", url.as_str())]].concat();
    Gateway::of(Example::start("gateway", &variables).await)
}

/// The answer of the store: the first ones may come while it is still being connected to.
async fn shared(gateway: &Gateway, redis: &Server) {
    let probe = Caller::user("probe", "free");
    while redis.keys().is_empty() {
        assert_eq!(gateway.send("GET /v1/audit-logs", &probe).await.status, 200);
    }
}

#[tokio::test]
async fn two_gateways_share_one_limit_and_outlive_redis() {
    let mut redis = Server::start();
    let (one, other) = (gateway(&redis).await, gateway(&redis).await);
    shared(&one, &redis).await;
    redis.run::<()>(&["FLUSHALL"]);
    shared(&other, &redis).await;
    redis.run::<()>(&["FLUSHALL"]);

    let caller = Caller::anonymous(7);
    for left in (0..10).rev() {
        let gateway = if left % 2 == 0 { &one } else { &other };
        let answer = gateway.send(LOGIN, &caller).await;
        assert_eq!(
            (answer.status, told(&answer)),
            (200, ("ip:login:1h", 10, left))
        );
    }
    for gateway in [&one, &other] {
        assert_eq!(gateway.send(LOGIN, &caller).await.status, 429);
    }
    redis.assert_that_every_key_ends();

    // Without it each has its own limits; only logins, which must never go on uncounted, are
    // turned away. (Whoever was denied a moment ago still is.)
    redis.kill();
    for gateway in [&one, &other] {
        let alice = Caller::user("alice", "free");
        let answer = gateway.exhaust("POST /v1/ai/research", &alice, 10).await;
        assert_eq!(told(&answer), ("user:ai-research:1h", 10, 0));
        let login = gateway.send(LOGIN, &Caller::anonymous(8)).await;
        assert_eq!(login.status, 503);
        assert_eq!(login.json()["error"]["code"], "RATE_LIMIT_UNAVAILABLE");
    }
}

#[tokio::test]
async fn a_gateway_starts_without_redis() {
    let redis = Server::absent(&[]);
    let gateway = gateway(&redis).await;
    let answer = gateway.send("GET /health", &Caller::anonymous(9)).await;
    assert_eq!(told(&answer), ("ip:health:1h", 100, 99));
}
