//! The pictures in the guide to algorithms are those that the program draws.

use super::process::ended;

#[tokio::test]
async fn the_guide_has_the_pictures_that_are_drawn() {
    let end = ended("admitted_over_time", &[]).await;
    let (drawn, guide) = (
        end.stdout.trim_end(),
        include_str!("../../../src/docs/algorithms.md"),
    );
    assert!(drawn.lines().count() > 15, "hardly a picture:\n{drawn}");
    assert!(
        guide.contains(drawn),
        "the guide has others than these:\n{drawn}"
    );
}
