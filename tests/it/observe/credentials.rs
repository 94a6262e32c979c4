//! Metrics and events of requests whose credentials are not accepted.

use ::metrics::with_local_recorder;
use tollgate::identity::{ApiKey, Jwt};
use tollgate::policy::Policy;

use super::Scene;
use super::recorder::TestRecorder;
use crate::support::http::request;
use crate::support::log::Log;
use crate::support::tokens::NOW;
use crate::support::tokens::{SECRET, claims, hs256, tampered};

fn scene() -> Scene {
    Scene::with(Policy::builder().everyone("1000/hour"), |builder| {
        builder
            .identify(Jwt::hs256(SECRET).build().unwrap())
            .identify(ApiKey::known("x-api-key", ["good"]).unwrap())
    })
}

async fn send(scene: &Scene, headers: &[(&str, &str)]) -> u16 {
    scene.send(request("GET /", headers)).await
}

/// Runs a future, records its metrics.
fn recorded(future: impl Future<Output = ()>) -> TestRecorder {
    let recorder = TestRecorder::default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    with_local_recorder(&recorder, || runtime.block_on(future));
    recorder
}

#[test]
fn reasons_are_a_label_and_a_debug_event() {
    let (log, _listening) = Log::listen();
    let recorder = recorded(async {
        let scene = scene();
        let good = format!("Bearer {}", hs256(&claims("alice")));
        let expired = hs256(&format!(r#"{{"sub":"alice","exp":{}}}"#, NOW - 3_600));
        let expired = format!("Bearer {expired}");
        let forged = tampered(&good);
        for (headers, times) in [
            (vec![("authorization", good.as_str())], 3),
            (vec![("authorization", expired.as_str())], 2),
            (vec![("authorization", forged.as_str())], 4),
            (vec![("x-api-key", "bad")], 1),
            // A source accepts: nothing is reported.
            (
                vec![("authorization", forged.as_str()), ("x-api-key", "good")],
                5,
            ),
            (vec![("authorization", "Bearer opaque")], 1),
        ] {
            for _ in 0..times {
                assert_eq!(send(&scene, &headers).await, 200);
            }
        }
        assert_eq!(scene.limits.statistics().totals.invalid_credentials, 7);
    });
    for (reason, count) in [("expired", 2), ("signature", 4), ("api-key", 1)] {
        let name = format!("tollgate_invalid_credentials_total{{reason={reason}}}");
        assert_eq!(recorder.counter(&name), count, "{name}");
        let lines = log.about(&format!("reason=\"{reason}\""));
        assert_eq!(lines.len() as u64, count, "{lines:?}");
        for line in lines {
            assert!(
                line.contains("DEBUG tollgate: rate_limit_token_refused"),
                "{line}"
            );
        }
    }
    assert!(!log.text().contains("alice"), "{}", log.text());
}

#[test]
fn rejected_requests_have_a_metric_and_a_sampled_event() {
    let (log, _listening) = Log::listen();
    let recorder = recorded(async {
        let scene = scene();
        let (first, second) = ("Bearer opaque-1", "Bearer opaque-2");
        for _ in 0..50 {
            let headers = [("authorization", first), ("authorization", second)];
            assert_eq!(send(&scene, &headers).await, 401);
        }
        let large = format!("Bearer {}", "x".repeat(17 << 10));
        for _ in 0..3 {
            assert_eq!(send(&scene, &[("authorization", &large)]).await, 401);
        }
        scene.clock.advance(std::time::Duration::from_secs(10));
        let with_id = [
            ("authorization", first),
            ("authorization", second),
            ("x-request-id", "order-4711"),
        ];
        assert_eq!(send(&scene, &with_id).await, 401);
        // Neither counted nor reported as a wrong credential.
        let totals = scene.limits.statistics();
        assert_eq!(totals.totals.invalid_credentials, 0);
        assert_eq!(totals.totals.allowed + totals.totals.denied, 0);
    });
    let counter = |reason| {
        let name = format!("tollgate_rejected_requests_total{{reason={reason}}}");
        recorder.counter(&name)
    };
    assert_eq!(counter("ambiguous-credentials"), 51);
    assert_eq!(counter("token-too-large"), 3);
    let lines = log.about("rate_limit_rejected");
    let [first, large, last] = lines.as_slice() else {
        panic!("{lines:?}");
    };
    assert!(first.contains("WARN tollgate"), "{first}");
    assert!(
        first.contains(r#"reason="ambiguous-credentials""#),
        "{first}"
    );
    assert!(large.contains(r#"reason="token-too-large""#), "{large}");
    assert!(last.contains(r#"request_id="order-4711""#), "{last}");
    assert!(last.contains("suppressed=49"), "{last}");
    assert!(!log.text().contains("opaque"), "{}", log.text());
}
