//! Statistics of endpoints compared with those of all of them together.

use std::time::Duration;

use super::Scene;

/// Both count in the same steps. In steps of an hour, an endpoint forgot its denials up to 45
/// minutes before they left the total.
#[tokio::test]
async fn denials_of_endpoints_add_up_to_all_denials_of_the_day() {
    let scene = Scene::new("blocked");
    scene.clock.advance(Duration::from_mins(50));
    for _ in 0..4 {
        scene.user("GET /", "alice").await;
    }
    for _ in 0..100 {
        let statistics = scene.limits.statistics();
        let endpoints = statistics.endpoints.iter();
        let denied: u64 = endpoints.map(|endpoint| endpoint.denied_last_day).sum();
        assert_eq!(denied, statistics.denied_last_day);
        scene.clock.advance(Duration::from_mins(15));
    }
}
