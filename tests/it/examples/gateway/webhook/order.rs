//! The order in which alerts are delivered.

use std::time::Duration;

use tokio::time::sleep;

use super::super::Caller;
use super::{Step, Webhook, alerting, start};

/// Bug: the critical alert waited behind the others, and was dropped if these filled the queue.
#[tokio::test]
async fn most_severe_alert_is_delivered_first_and_the_least_severe_one_dropped() {
    let (webhook, url) = Webhook::start(&[Step::Hang, Step::Hang]).await;
    let variables = [
        ("ALERT_WEBHOOK_URL", &*url),
        ("TOLLGATE_ALERTS__OFFENDER", "1"),
        ("LOG_LEVEL", "error"),
        ("TOLLGATE_ALERTS__MANY_DENIALS", "250"),
        ("TOLLGATE_ALERTS__DISTRIBUTED_ATTACK__DENIALS", "250"),
        ("TOLLGATE_ALERTS__DISTRIBUTED_ATTACK__ADDRESSES", "0"),
        (
            "TOLLGATE_ALERTS__ORDINARY_CALLERS_DENIED__OF_AT_LEAST",
            "100000",
        ),
        ("TOLLGATE_GLOBAL__AUTHENTICATED", "blocked"),
    ];
    let mut gateway = start(&alerting(&variables)).await;
    let offend = async |name: &str, requests: usize| {
        for _ in 0..requests {
            let caller = Caller::user(name, "free");
            assert_eq!(gateway.send("GET /nowhere", &caller).await.status, 429);
        }
    };
    offend("first", 2).await;
    webhook.bodies(1).await;
    // With these, 99 alerts wait for the first delivery. Two more do not fit.
    for number in 1..100 {
        offend(&format!("user-{number}"), 2).await;
    }
    // Alerts are evaluated once a second, and those of one evaluation are sorted.
    sleep(Duration::from_secs(2)).await;
    offend("first", 60).await;
    let line = gateway.example.stderr_line("alert_not_delivered").await;
    assert!(
        line.contains("offender") && line.contains("the queue is full"),
        "{line}"
    );
    let bodies = webhook.bodies(103).await;
    let kinds: Vec<_> = bodies.iter().map(|body| &body["kind"]).collect();
    assert_eq!(kinds[..3], ["offender"; 3], "the first, repeated");
    assert_eq!(kinds[3..5], ["distributed_attack", "many_denials"]);
    assert_eq!(kinds[5..], ["offender"; 98]);
}
