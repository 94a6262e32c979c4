//! What the examples share.

use std::sync::Arc;

use tollgate::{Override, Quota};

use self::program::LimiterWithFallback;
use crate::support::scripted_store::{Script, ScriptedStore};

#[path = "../../../examples/common/mod.rs"]
#[allow(
    unexpected_cfgs,
    clippy::duplicate_mod,
    reason = "it is a part of several programs, with other features"
)]
mod program;

/// Bug: an override that was removed after one failure of the store applied again in the next.
#[tokio::test]
async fn fallback_uses_the_overrides_that_are_set_now() {
    let store = ScriptedStore::default();
    let quota = Quota::per_hour(10).unwrap();
    let limiter = LimiterWithFallback::new("agent", quota, Arc::new(store.clone())).unwrap();
    let limit_of = async |user| {
        let member = [("group", "g"), ("user", user)];
        limiter.check(member).await.unwrap().limit()
    };
    let set = |limit| Override::new([("group", "g")], "agent", limit).unwrap();

    limiter.shared.set_override(set("5/hour")).await.unwrap();
    store.follow(Script::Unavailable);
    assert_eq!(limit_of("alice").await, 5);
    store.follow(Script::Reply);
    limiter.shared.set_override(set("7/hour")).await.unwrap();
    store.follow(Script::Unavailable);
    assert_eq!(limit_of("alice").await, 7);
    store.follow(Script::Reply);
    let removed = limiter.shared.remove_override([("group", "g")]).await;
    assert!(removed.unwrap());
    for script in [Script::Unavailable, Script::Reply] {
        store.follow(script);
        assert_eq!(limit_of("alice").await, 10, "{script:?}");
    }
}

/// Counts of the fallback are those of this process.
#[tokio::test]
async fn fallback_counts_while_the_store_is_unavailable() {
    let store = ScriptedStore::new(Script::Unavailable);
    let quota = Quota::per_hour(2).unwrap();
    let limiter = LimiterWithFallback::new("messages", quota, Arc::new(store.clone())).unwrap();
    for is_allowed in [true, true, false] {
        let decision = limiter.check("alice").await.unwrap();
        assert_eq!(decision.is_allowed(), is_allowed);
    }
    store.follow(Script::Reply);
    assert!(limiter.check("alice").await.unwrap().is_allowed());
}
