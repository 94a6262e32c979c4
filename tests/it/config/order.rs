//! The order of tables in a file has no effect.

use axum::Router;
use proptest::prelude::*;

use crate::support::http::{echo, send};

/// Parts of a file, which can be in any order.
const PARTS: [&str; 15] = [
    "[defaults]\nheaders = \"both\"\n",
    "[tiers]\ndefault = \"free\"\nfree = 1\nteam = 5\n",
    "[global]\nanonymous = \"5000/hour\"\n",
    "[categories.reads]\nlimit = \"300/hour\"\n",
    "[categories.writes]\nlimit = \"30/hour\"\nstack = true\n",
    "[[endpoints]]\nroute = \"GET /v1/{kind}/{id}\"\ncategory = \"reads\"\n",
    "[[endpoints]]\nroute = \"GET /v1/items/{id}\"\ncategory = \"reads\"\nlimit = \"250/hour\"\n",
    "[[endpoints]]\nroute = \"GET /v1/items/new\"\nlimit = \"20/hour\"\n",
    "[[endpoints]]\nroute = \"/v1/items/{id}\"\ncategory = \"writes\"\n",
    "[[endpoints]]\nroute = \"POST /v1/{*rest}\"\ncategory = \"writes\"\nlimit = \"10/minute\"\n",
    // Bug: at `/files` itself, the first of these two applied.
    "[[endpoints]]\nroute = \"/files/{*rest}\"\nlimit = \"15/hour\"\n",
    "[[endpoints]]\nroute = \"GET /files/{*rest}\"\nlimit = \"25/hour\"\n",
    "[[rules]]\nname = \"all\"\nper = []\nlimit = \"9000/day\"\n",
    "[[rules]]\nname = \"burst\"\nlimit = \"50/second\"\n",
    "[exempt]\nroutes = [\"GET /health\", \"GET /v1/items/free\"]\n",
];

const REQUESTS: [&str; 14] = [
    "GET /",
    "GET /health",
    "GET /v1/things/1",
    "GET /v1/items/1",
    "HEAD /v1/items/1",
    "GET /v1/items/new",
    "GET /v1/items/free",
    "DELETE /v1/items/1",
    "POST /v1/items/1",
    "POST /v1/a/b/c",
    "GET /v1/a/b/c",
    "GET /files",
    "HEAD /files",
    "PUT /files",
];

fn app(parts: &[&str]) -> Router {
    let config = super::toml(&parts.join("\n")).unwrap();
    let clock = tollgate::ManualClock::new();
    echo().layer(config.into_layer().clock(clock).build().unwrap())
}

/// Returns the quotas in the headers of each response, sorted because their order may differ.
async fn resolved(parts: &[&str]) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for line in REQUESTS {
        let answer = send(&app(parts), line, &[]).await;
        let header = answer.header("ratelimit-policy").unwrap_or_default();
        let mut quotas: Vec<String> = header.split(", ").map(str::to_owned).collect();
        quotas.sort();
        quotas.push(
            answer
                .header("x-ratelimit-policy")
                .unwrap_or("none")
                .to_owned(),
        );
        all.push(quotas);
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn order_of_tables_has_no_effect(parts in Just(PARTS.to_vec()).prop_shuffle()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (expected, shuffled) = runtime.block_on(async {
            (resolved(&PARTS).await, resolved(&parts).await)
        });
        prop_assert_eq!(expected, shuffled);
    }
}

/// Without different results, the property above would hold for every implementation.
#[tokio::test]
async fn requests_have_different_quotas() {
    let resolved = resolved(&PARTS).await;
    assert_eq!(resolved[1], ["", "none"]);
    let mut different: Vec<_> = resolved.iter().collect();
    different.sort();
    different.dedup();
    assert!(different.len() >= 7, "{resolved:#?}");
}
