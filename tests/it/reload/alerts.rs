//! Thresholds of alerts in the policy file.

use axum::Router;
use tollgate::config::{Config, Source};
use tollgate::observe::{AlertKind, Alerts};
use tollgate::{ManualClock, RateLimitLayer};

use super::Directory;
use crate::support::http::{echo, send};

fn text(alerts: &str) -> String {
    format!("[global]\nanonymous = \"blocked\"\n{alerts}")
}

fn alerts_of(limits: &RateLimitLayer) -> Vec<(AlertKind, f64, f64)> {
    let alerts = limits.statistics().alerts;
    let alerts = alerts.iter();
    alerts
        .map(|alert| (alert.kind, alert.value, alert.threshold))
        .collect()
}

/// Returns a layer of this policy after so many denials of one caller.
async fn denied(config: Config, alerts: Option<Alerts>, denials: u32) -> RateLimitLayer {
    let builder = config.into_layer().clock(ManualClock::new());
    let builder = match alerts {
        Some(alerts) => builder.alerts(alerts),
        None => builder,
    };
    let limits = builder.build().unwrap();
    let app: Router = echo().layer(limits.clone());
    for _ in 0..denials {
        assert_eq!(send(&app, "GET /", &[]).await.status, 429);
    }
    limits
}

#[tokio::test]
async fn a_reload_changes_thresholds_and_keeps_the_denials() {
    const KIND: AlertKind = AlertKind::ManyDenials;
    let directory = Directory::new();
    let write = |alerts| directory.write("limits.toml", &text(alerts));
    let file = write("[alerts]\nmany_denials = 5\n");
    let limits = denied(Config::from_file(&file).unwrap(), None, 6).await;
    assert_eq!(alerts_of(&limits), [(KIND, 6.0, 5.0)]);

    write("[alerts]\nmany_denials = 4\n");
    limits.reload().unwrap();
    assert_eq!(alerts_of(&limits), [(KIND, 6.0, 4.0)], "it keeps firing");
    write("[alerts]\nmany_denials = 6\n");
    limits.reload().unwrap();
    assert_eq!(alerts_of(&limits), [], "resolved");
    write("[alerts]\noffender = 3\nmany_denials = 6\n");
    limits.reload().unwrap();
    let offender = (AlertKind::Offender, 6.0, 3.0);
    assert_eq!(alerts_of(&limits), [offender]);
    // Without the table, the defaults apply.
    write("");
    limits.reload().unwrap();
    assert_eq!(alerts_of(&limits), []);
}

#[tokio::test]
async fn every_threshold_of_the_file_takes_effect() {
    let read = |alerts: &str| {
        Source::toml(text(alerts))
            .variables([("", ""); 0])
            .read()
            .unwrap()
    };
    for (alerts, kind, threshold) in [
        ("[alerts]\nmany_denials = 9\n", AlertKind::ManyDenials, 9.0),
        ("[alerts]\noffender = 9\n", AlertKind::Offender, 9.0),
        (
            "[alerts]\ndistributed_attack = { denials = 9, addresses = 0 }\n",
            AlertKind::DistributedAttack,
            9.0,
        ),
    ] {
        let limits = denied(read(alerts), None, 9).await;
        assert_eq!(alerts_of(&limits), [], "{alerts}");
        let limits = denied(read(alerts), None, 10).await;
        assert_eq!(alerts_of(&limits), [(kind, 10.0, threshold)], "{alerts}");
    }
    let ordinary = "[alerts]\nordinary_callers_denied = { share = 0.5, of_at_least = 4 }\n";
    let kind = AlertKind::OrdinaryCallersDenied;
    assert_eq!(alerts_of(&denied(read(ordinary), None, 3).await), []);
    let limits = denied(read(ordinary), None, 4).await;
    assert_eq!(alerts_of(&limits), [(kind, 1.0, 0.5)]);
}

#[tokio::test]
async fn thresholds_in_code_win_over_the_file() {
    let config = Source::toml(text("[alerts]\nmany_denials = 1\n"));
    let config = config.variables([("", ""); 0]).read().unwrap();
    let limits = denied(config, Some(Alerts::default().offender(1)), 2).await;
    assert_eq!(alerts_of(&limits), [(AlertKind::Offender, 2.0, 1.0)]);
}

#[tokio::test]
async fn single_thresholds_come_from_the_environment() {
    let config = Source::toml(text(""));
    let config = config.variables([("TOLLGATE_ALERTS__MANY_DENIALS", "1")]);
    let limits = denied(config.read().unwrap(), None, 2).await;
    assert_eq!(alerts_of(&limits), [(AlertKind::ManyDenials, 2.0, 1.0)]);
}
