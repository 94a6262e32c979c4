//! Alerts begin and end on their thresholds, once each, and no request waits for them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tollgate::Clock;
use tollgate::observe::{Alert, AlertKind, Alerts, Severity};
use tollgate::policy::Policy;

use super::Scene;

/// Denies all requests except to `/open`.
fn closed() -> Policy {
    Policy::builder()
        .everyone("blocked")
        .endpoint(
            "GET /open",
            tollgate::policy::Rule::new("1000/hour")
                .name("open")
                .global(false),
        )
        .build()
        .unwrap()
}

fn firing(scene: &Scene) -> Vec<AlertKind> {
    let statistics = scene.limits.statistics();
    statistics.alerts.iter().map(|alert| alert.kind).collect()
}

/// So many denials, ten for each user, which is no alert of its own.
async fn deny(scene: &Scene, count: u32) {
    for number in 0..count {
        let user = format!("user-{}", number / 10);
        assert_eq!(scene.user("GET /", &user).await, 429);
    }
}

#[tokio::test]
async fn more_than_a_hundred_denials_in_an_hour() {
    let scene = Scene::new(closed());
    deny(&scene, 100).await;
    assert_eq!(firing(&scene), []);
    assert_eq!(scene.user("GET /", "one-more").await, 429);
    let statistics = scene.limits.statistics();
    let [alert] = &*statistics.alerts else {
        panic!("{:?}", statistics.alerts);
    };
    assert_eq!(alert.kind, AlertKind::ManyDenials);
    assert_eq!(alert.severity(), Severity::Medium);
    assert_eq!((alert.value, alert.threshold), (101.0, 100.0));
    assert_eq!(alert.since, scene.clock.now());
    let text = alert.to_string();
    assert_eq!(
        text,
        "101 requests were denied within an hour, more than 100"
    );

    scene.clock.advance(Duration::from_mins(59));
    assert_eq!(firing(&scene), [AlertKind::ManyDenials]);
    scene.clock.advance(Duration::from_mins(1));
    assert_eq!(firing(&scene), [], "without any traffic");
}

#[tokio::test]
async fn more_than_fifty_denials_of_one_caller_in_an_hour() {
    let scene = Scene::new(closed());
    for user in ["alice", "bob"] {
        for _ in 0..50 {
            scene.user("GET /", user).await;
        }
    }
    assert_eq!(firing(&scene), []);
    scene.user("GET /", "alice").await;
    scene.user("GET /", "bob").await;
    let statistics = scene.limits.statistics();
    let offenders: Vec<_> = statistics
        .alerts
        .iter()
        .filter(|alert| alert.kind == AlertKind::Offender)
        .collect();
    assert_eq!(offenders.len(), 2, "one alert for each");
    for alert in offenders {
        assert_eq!((alert.value, alert.threshold), (51.0, 50.0));
        assert_eq!(alert.severity(), Severity::Low);
        let (name, _) = alert
            .subject
            .as_ref()
            .unwrap()
            .as_subject()
            .dimensions()
            .next()
            .unwrap();
        assert_eq!(name, "user");
        assert!(!format!("{alert:?} {alert}").contains("alice"));
    }
    scene.clock.advance(Duration::from_hours(1));
    assert_eq!(firing(&scene), []);
}

#[tokio::test]
async fn more_than_one_in_a_hundred_requests_of_ordinary_callers() {
    let scene = Scene::new(closed());
    for _ in 0..97 {
        assert_eq!(scene.user("GET /open", "alice").await, 200);
    }
    scene.user("GET /", "bob").await;
    scene.user("GET /", "carol").await;
    assert_eq!(firing(&scene), [], "two of 99 are too few for an alert");
    scene.user("GET /open", "alice").await;
    assert_eq!(
        firing(&scene),
        [AlertKind::OrdinaryCallersDenied],
        "two of a hundred"
    );
    for _ in 0..99 {
        scene.user("GET /open", "alice").await;
    }
    assert_eq!(
        firing(&scene),
        [AlertKind::OrdinaryCallersDenied],
        "two of 199"
    );
    scene.user("GET /open", "alice").await;
    assert_eq!(
        firing(&scene),
        [],
        "two of two hundred are one in a hundred, and not more"
    );
}

#[tokio::test]
async fn more_than_five_hundred_denials_from_more_than_fifty_addresses_in_ten_minutes() {
    let is_attack = |scene: &Scene| firing(scene).contains(&AlertKind::DistributedAttack);
    let scene = Scene::new(closed());
    for number in 0..501 {
        scene.address("GET /", number % 50).await;
    }
    assert!(!is_attack(&scene), "501 from 50");
    scene.clock.advance(Duration::from_mins(10));
    for number in 0..500 {
        scene.address("GET /", number % 51).await;
    }
    assert!(!is_attack(&scene), "500 from 51");
    scene.address("GET /", 0).await;
    assert!(is_attack(&scene), "501 from 51");
    let alert = scene.limits.statistics().alerts.swap_remove(0);
    assert_eq!(
        alert.severity(),
        Severity::Critical,
        "the worst comes first"
    );
    let text = "501 requests from 51 addresses were denied within ten minutes, more than 500";
    assert_eq!(alert.to_string(), text);
    let json = serde_json::to_value(&alert).unwrap();
    assert_eq!(
        json["addresses"],
        serde_json::json!({ "count": 51, "exact": true })
    );
    scene.clock.advance(Duration::from_mins(9));
    assert!(is_attack(&scene));
    scene.clock.advance(Duration::from_mins(1));
    assert!(!is_attack(&scene));
}

#[tokio::test]
async fn thresholds_can_be_others() {
    let alerts = Alerts::default()
        .many_denials(2)
        .offender(1)
        .distributed_attack(1, 1)
        .ordinary_callers_denied(0.5, 3);
    let scene = Scene::with(closed(), |builder| builder.alerts(alerts));
    scene.address("GET /", 1).await;
    scene.address("GET /", 2).await;
    assert_eq!(firing(&scene), [AlertKind::DistributedAttack]);
    scene.address("GET /", 2).await;
    let mut all = firing(&scene);
    all.dedup();
    assert_eq!(all, AlertKind::ALL, "the most severe first");

    let wrong = Alerts::default().ordinary_callers_denied(1.5, 0);
    let (builder, _) = crate::support::http::layer("1/hour");
    let problem = builder.alerts(wrong).build().unwrap_err().to_string();
    assert!(problem.contains("a share from 0 to 1"), "{problem}");
}

/// Waits until the delivery of alerts sleeps again.
async fn at_rest(scene: &Scene) {
    while scene.clock.sleeping() == 0 {
        tokio::task::yield_now().await;
    }
}

async fn advance(scene: &Scene, by: Duration) {
    at_rest(scene).await;
    scene.clock.advance(by);
    tokio::task::yield_now().await;
    at_rest(scene).await;
}

#[tokio::test]
async fn an_alert_is_delivered_once_when_it_fires_and_once_when_it_is_resolved() {
    let scene = Scene::new(closed());
    let delivered: Arc<Mutex<Vec<Alert>>> = Arc::default();
    let kept = Arc::clone(&delivered);
    let task = tokio::spawn(scene.limits.on_alert(move |alert| {
        kept.lock().unwrap().push(alert);
        std::future::ready(())
    }));
    deny(&scene, 101).await;
    for _ in 0..5 {
        advance(&scene, Duration::from_secs(1)).await;
        deny(&scene, 1).await;
    }
    let fired = delivered.lock().unwrap().clone();
    assert_eq!(fired.len(), 1, "{fired:?}");
    assert!(fired[0].is_firing());

    // No further requests.
    for _ in 0..61 {
        advance(&scene, Duration::from_mins(1)).await;
    }
    let all = delivered.lock().unwrap().clone();
    assert_eq!(all.len(), 2, "{all:?}");
    assert_eq!(all[1].kind, AlertKind::ManyDenials);
    assert_eq!(all[1].since, fired[0].since);
    assert!(all[1].resolved_at.unwrap() <= scene.clock.now());
    assert!(all[1].to_string().starts_with("over: "), "{}", all[1]);

    // Without a layer, the task that delivers alerts ends.
    let Scene { limits, app, clock } = scene;
    drop((limits, app));
    clock.advance(Duration::from_secs(1));
    task.await.unwrap();
}

#[tokio::test]
async fn a_late_callback_gets_the_firing_alerts() {
    let scene = Scene::new(closed());
    deny(&scene, 101).await;
    assert_eq!(firing(&scene), [AlertKind::ManyDenials]);
    let delivered: Arc<Mutex<Vec<AlertKind>>> = Arc::default();
    let kept = Arc::clone(&delivered);
    tokio::spawn(scene.limits.on_alert(move |alert| {
        let kept = Arc::clone(&kept);
        async move { kept.lock().unwrap().push(alert.kind) }
    }));
    at_rest(&scene).await;
    assert_eq!(*delivered.lock().unwrap(), [AlertKind::ManyDenials]);
}

/// A callback that never ends blocks nothing; its alerts are kept. One that
/// panics, before or after it has begun, is called again.
#[tokio::test]
async fn a_callback_that_hangs_or_panics_blocks_nothing() {
    let alerts = Alerts::default().many_denials(0).offender(0);
    let scene = Scene::with(closed(), |builder| builder.alerts(alerts));
    let hangs = tokio::spawn(scene.limits.on_alert(|_| std::future::pending()));
    let delivered: Arc<Mutex<Vec<AlertKind>>> = Arc::default();
    let kept = Arc::clone(&delivered);
    tokio::spawn(scene.limits.on_alert(move |alert| {
        kept.lock().unwrap().push(alert.kind);
        assert!(alert.kind != AlertKind::ManyDenials, "at once");
        async move {
            tokio::task::yield_now().await;
            panic!("later");
        }
    }));
    at_rest(&scene).await;
    assert_eq!(scene.user("GET /", "alice").await, 429);
    scene.clock.advance(Duration::from_secs(1));
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    assert_eq!(scene.user("GET /", "alice").await, 429, "requests go on");
    assert!(!hangs.is_finished());
    let delivered = delivered.lock().unwrap().clone();
    assert_eq!(delivered, [AlertKind::ManyDenials, AlertKind::Offender]);
}
