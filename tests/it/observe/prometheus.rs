//! Metrics, alert rules and dashboard queries, in a real Prometheus that scrapes this process.

use std::fmt::Write as _;
use std::net::TcpListener as StdListener;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use ::metrics::with_local_recorder;
use axum::Router;
use axum::routing::get;
use metrics_exporter_prometheus::PrometheusBuilder;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tollgate::RateLimitLayer;
use tollgate::config::Config;

use super::ops::{dashboard_queries, ops};
use crate::support::http::{echo, send};

/// How long a query is repeated until it has the expected result.
const PATIENCE: Duration = Duration::from_mins(1);

/// A Prometheus that scrapes one target every 200 ms and evaluates `alerts.yml`.
struct Prometheus {
    address: String,
    dir: PathBuf,
    _process: Child,
}

impl Prometheus {
    /// `name` is the name of its directory.
    fn start(name: &str, target: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("tollgate-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let rules = ops().join("alerts.yml");
        let config = serde_json::json!({
            "global": {"scrape_interval": "200ms", "evaluation_interval": "200ms"},
            "rule_files": [rules],
            "scrape_configs": [{"job_name": "api", "static_configs": [{"targets": [target]}]}],
        });
        let file = dir.join("prometheus.json");
        std::fs::write(&file, config.to_string()).unwrap();
        let free = StdListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap().to_string();
        drop(free);
        let process = Command::new("prometheus")
            .arg(format!("--config.file={}", file.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                dir.join("data").display()
            ))
            .arg(format!("--web.listen-address={address}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("prometheus runs; it is the package `prometheus`");
        Self {
            address,
            dir,
            _process: process,
        }
    }

    async fn get(&self, path: &str) -> Option<Value> {
        let response = reqwest::get(format!("http://{}{path}", self.address)).await;
        let text = response.ok()?.text().await.ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Returns the series of a query.
    async fn query(&self, query: &str) -> Vec<Value> {
        let mut path = "/api/v1/query?query=".to_owned();
        for byte in query.bytes() {
            write!(path, "%{byte:02X}").unwrap();
        }
        let answer = self.get(&path).await.unwrap_or_default();
        let series = answer["data"]["result"].as_array();
        series.cloned().unwrap_or_default()
    }

    /// Returns the names of the alerts that are firing.
    async fn firing(&self) -> Vec<String> {
        let answer = self.get("/api/v1/alerts").await.unwrap_or_default();
        let alerts = answer["data"]["alerts"].as_array();
        let alerts = alerts.into_iter().flatten();
        let firing = alerts.filter(|alert| alert["state"] == "firing");
        let name = |alert: &Value| alert["labels"]["alertname"].as_str().map(str::to_owned);
        firing.filter_map(name).collect()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // The process may still write; the directory is temporary.
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// Repeats a check until it holds.
async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let waited = tokio::time::timeout(PATIENCE, async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    assert!(waited.await.is_ok(), "{what}");
}

/// Serves `/metrics` of a layer with this policy file and scrapes it while `check` runs.
fn scraped(
    name: &str,
    policy: &str,
    check: impl AsyncFnOnce(&RateLimitLayer, &Prometheus, PathBuf),
) {
    let recorder = PrometheusBuilder::new().build_recorder();
    let rendered = recorder.handle();
    let file = std::env::temp_dir().join(format!("tollgate-{name}-{}.toml", std::process::id()));
    std::fs::write(&file, policy).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    with_local_recorder(&recorder, || {
        runtime.block_on(async {
            let config = Config::from_file(&file).unwrap();
            let limits = config
                .into_layer()
                .identify_with(|head| head.header("x-user").map(tollgate::Identity::user))
                .build()
                .unwrap();
            let layer = limits.clone();
            let metrics = async move || {
                layer.refresh_metrics();
                rendered.render()
            };
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let target = listener.local_addr().unwrap().to_string();
            let app = Router::new().route("/metrics", get(metrics));
            tokio::spawn(async move { axum::serve(listener, app).await });
            let prometheus = Prometheus::start(name, &target);
            check(&limits, &prometheus, file.clone()).await;
        });
    });
    std::fs::remove_file(file).unwrap();
}

/// A counter that appears with its first event has no increase, and its alert would not fire.
#[test]
fn the_first_broken_policy_file_fires_its_alert() {
    scraped(
        "first-broken-file",
        "[global]\nauthenticated = \"100/hour\"\n",
        async |limits, prometheus, file| {
            eventually("the counter is scraped with 0", async || {
                let failed = "tollgate_policy_reloads_total{outcome=\"failed\"}";
                let series = prometheus.query(failed).await;
                series.first().is_some_and(|one| one["value"][1] == "0")
            })
            .await;
            std::fs::write(&file, "[global\n").unwrap();
            limits.reload().unwrap_err();
            eventually("TollgatePolicyNotReloaded fires", async || {
                let firing = prometheus.firing().await;
                firing
                    .iter()
                    .any(|name| name == "TollgatePolicyNotReloaded")
            })
            .await;
        },
    );
}

/// A service without failures, exemptions and wrong credentials shows 0 in their panels, not "no
/// data".
#[test]
fn every_dashboard_query_has_data_without_failures() {
    /// Needs data of the day before.
    const DAY_BEFORE: &str = "offset 24h";
    /// Annotates changes of the policy version only.
    const ONLY_CHANGES: &str = "changes(tollgate_policy_version";
    scraped(
        "dashboard-data",
        "[global]\nauthenticated = \"2/hour\"\n",
        async |limits, prometheus, _| {
            let app = echo().layer(limits.clone());
            for _ in 0..3 {
                send(&app, "GET /", &[("x-user", "alice")]).await;
            }
            let queries = dashboard_queries(".*", "30s", "1h");
            let queries: Vec<String> = queries
                .into_iter()
                .filter(|query| !query.contains(DAY_BEFORE) && !query.contains(ONLY_CHANGES))
                .collect();
            assert!(queries.len() > 20, "{}", queries.len());
            for query in queries {
                eventually(&query, async || !prometheus.query(&query).await.is_empty()).await;
            }
        },
    );
}

/// The first denial by a quota is an increase, also of a quota that a reload has added.
#[test]
fn the_first_denial_by_a_quota_is_an_increase() {
    scraped(
        "first-denial",
        "[global]\nauthenticated = \"blocked\"\n",
        async |limits, prometheus, file| {
            let app = echo().layer(limits.clone());
            for (policy, reload) in [
                ("user:global:blocked", None),
                (
                    "user:late:1h",
                    Some("[[rules]]\nname = \"late\"\nlimit = \"1/hour\"\n"),
                ),
            ] {
                if let Some(text) = reload {
                    std::fs::write(&file, text).unwrap();
                    limits.reload().unwrap();
                }
                let series =
                    format!("tollgate_decisions_total{{policy=\"{policy}\",outcome=\"denied\"}}");
                eventually("the series is scraped with 0", async || {
                    let found = prometheus.query(&series).await;
                    found.first().is_some_and(|one| one["value"][1] == "0")
                })
                .await;
                while send(&app, "GET /", &[("x-user", "alice")]).await.status != 429 {}
                let increase = format!("increase({series}[1m]) > 0");
                eventually(&increase, async || {
                    !prometheus.query(&increase).await.is_empty()
                })
                .await;
            }
        },
    );
}
