//! Tests of the Redis store. Every test starts its own server and stops it at its end.

mod calls;
mod clock;
mod clock_skew;
mod cluster;
mod coalescing;
mod configuration_warnings;
mod contract;
mod failing_master;
mod faults;
mod fleet;
mod full;
mod keys;
mod logs;
mod many_overrides;
mod misconfiguration;
mod moving_slot;
mod nodes;
mod overrides;
mod proxy;
mod recovery;
mod sentinel;
mod sentinel_failover;
pub(crate) mod server;
mod shutdown;
mod slow;
mod tls;
mod values;

use std::time::Duration;

use tollgate::policy::{OnStoreFailure, Policy, PolicyBuilder, Rule};
use tollgate::{Batch, Check, Counter, RedisStore, Store, StoreError, Subject, Timestamp, Usage};

use crate::support::store_ext::StoreExt as _;

pub(crate) use self::server::Server;

/// Upper bound for any operation on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);
/// Maximum time between the return of a server and recovery, as documented.
const RECOVERY: Duration = Duration::from_secs(2);

/// Returns a policy with an endpoint per failure mode, each with this quota and without the global rule.
fn policy_per_failure_mode(quota: &str) -> PolicyBuilder {
    let rule = |name: &str, mode| {
        let rule = Rule::new(quota).name(name).global(false);
        rule.on_store_failure(mode)
    };
    Policy::builder()
        .everyone("1000000/day")
        .endpoint("GET /deny", rule("deny", OnStoreFailure::Deny))
        .endpoint("GET /allow", rule("allow", OnStoreFailure::Allow))
        .endpoint("GET /local", rule("local", OnStoreFailure::Local))
}

/// Returns a counter of this quota.
fn counter(rule: &str, quota: &str) -> Counter {
    Counter::new(rule, quota.parse().unwrap()).unwrap()
}

fn user(name: &str) -> Subject<'_> {
    Subject::from([("user", name)])
}

/// Charges one request of cost 1, at the time of the server.
async fn take(
    store: &RedisStore,
    subject: &Subject<'_>,
    counter: &Counter,
) -> Result<Usage, StoreError> {
    take_at(store, &Check::new(subject, counter), Timestamp::EPOCH).await
}

async fn take_at(
    store: &RedisStore,
    check: &Check<'_>,
    now: Timestamp,
) -> Result<Usage, StoreError> {
    Ok(store.decide_one(check, now).await?.0)
}

/// Returns the usage of a counter without charging it.
async fn look(store: &RedisStore, subject: &Subject<'_>, counter: &Counter) -> Usage {
    let checks = [Check::new(subject, counter)];
    let batch = Batch::new(&checks).unwrap();
    let usages = store.peek(&batch, Timestamp::EPOCH).await.unwrap();
    usages.usages()[0]
}
