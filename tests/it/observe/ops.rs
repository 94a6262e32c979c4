//! `examples/ops` agrees with the code.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tollgate::observe::{METRICS, MetricKind};

use crate::support::root;

pub(super) fn ops() -> PathBuf {
    root().join("examples/ops")
}

fn dashboard() -> Value {
    let text = std::fs::read_to_string(ops().join("grafana.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Runs Prometheus's own tool, and expects it to be content.
fn promtool(words: &[&str], dir: &Path) -> String {
    let output = Command::new("promtool")
        .args(words)
        .current_dir(dir)
        .output()
        .expect("promtool runs; it comes with the package `prometheus`");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "promtool {words:?}\n{out}\n{err}");
    out
}

#[test]
fn promtool_accepts_the_rules() {
    let checked = promtool(&["check", "rules", "alerts.yml"], &ops());
    assert!(checked.contains("6 rules found"), "{checked}");
    promtool(&["test", "rules", "alerts.test.yml"], &ops());
}

/// The names of our metrics in a text.
fn named_in(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| word.starts_with("tollgate_")).collect()
}

fn is_known(name: &str) -> bool {
    METRICS.iter().any(|metric| match metric.kind {
        MetricKind::Histogram => {
            let part = name.strip_prefix(metric.name);
            part.is_some_and(|part| ["", "_bucket", "_sum", "_count"].contains(&part))
        }
        _ => metric.name == name,
    })
}

#[test]
fn rules_and_dashboard_name_only_metrics_that_there_are() {
    for file in ["alerts.yml", "alerts.test.yml", "grafana.json"] {
        let text = std::fs::read_to_string(ops().join(file)).unwrap();
        let named = named_in(&text);
        assert!(named.len() >= 6, "{file}: {named:?}");
        for name in named {
            assert!(is_known(name), "{file} names {name}");
        }
    }
    let guide = root().join("src/docs/operations.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let named = named_in(&guide);
    for metric in METRICS {
        assert!(
            named.contains(metric.name),
            "the guide has no {}",
            metric.name
        );
    }
}

/// Returns every query of the dashboard, with values for its variables.
pub(super) fn dashboard_queries(label: &str, rate_interval: &str, range: &str) -> Vec<String> {
    let mut found = Vec::new();
    expressions(&dashboard(), &mut found);
    let replace = |query: String| {
        query
            .replace("$__rate_interval", rate_interval)
            .replace("$__range", range)
            .replace("$job", label)
            .replace("$instance", label)
    };
    found.into_iter().map(replace).collect()
}

fn expressions(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match field {
                    Value::String(text) if name == "expr" => found.push(text.clone()),
                    other => expressions(other, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| expressions(item, found)),
        _ => {}
    }
}

#[test]
fn every_query_of_the_dashboard_is_one_that_prometheus_understands() {
    let found = dashboard_queries("$job", "5m", "6h");
    assert!(found.len() > 20, "{}", found.len());
    let rules: Vec<Value> = found
        .iter()
        .enumerate()
        .map(
            |(number, expr)| serde_json::json!({"record": format!("panel:{number}"), "expr": expr}),
        )
        .collect();
    let rules = serde_json::json!({"groups": [{"name": "dashboard", "rules": rules}]});
    let dir = std::env::temp_dir().join(format!("tollgate-dashboard-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("rules.json"), rules.to_string()).unwrap();
    promtool(&["check", "rules", "rules.json"], &dir);
    std::fs::remove_dir_all(dir).unwrap();
}

/// What Grafana documents of a dashboard and of a panel; panels lie side by side.
#[test]
fn the_dashboard_can_be_imported() {
    let dashboard = dashboard();
    assert_eq!(
        dashboard["id"],
        Value::Null,
        "or an import would replace another"
    );
    for (field, is_right) in [
        ("uid", Value::is_string as fn(&Value) -> bool),
        ("title", Value::is_string),
        ("tags", Value::is_array),
        ("timezone", Value::is_string),
        ("editable", Value::is_boolean),
        ("time", Value::is_object),
        ("templating", Value::is_object),
        ("annotations", Value::is_object),
        ("schemaVersion", Value::is_u64),
        ("version", Value::is_u64),
        ("panels", Value::is_array),
        ("links", Value::is_array),
    ] {
        assert!(is_right(&dashboard[field]), "{field}: {}", dashboard[field]);
    }
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    let variables: BTreeSet<&str> = variables
        .iter()
        .map(|variable| variable["name"].as_str().unwrap())
        .collect();
    let (mut ids, mut taken) = (BTreeSet::new(), BTreeSet::new());
    for panel in dashboard["panels"].as_array().unwrap() {
        let title = panel["title"].as_str().unwrap();
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{title}: id");
        let side = |name: &str| panel["gridPos"][name].as_u64().unwrap();
        assert!(side("x") + side("w") <= 24, "{title} is too wide");
        for x in side("x")..side("x") + side("w") {
            for y in side("y")..side("y") + side("h") {
                assert!(taken.insert((x, y)), "{title} covers another");
            }
        }
        if panel["type"] == "row" {
            continue;
        }
        assert!(
            panel["description"].is_string(),
            "{title} has no description"
        );
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{title}");
        let targets = panel["targets"].as_array().unwrap();
        let refs: BTreeSet<&str> = targets
            .iter()
            .map(|target| target["refId"].as_str().unwrap())
            .collect();
        assert_eq!(refs.len(), targets.len(), "{title}: each has a letter");
        for target in targets {
            let expr = target["expr"].as_str().unwrap();
            for used in expr.split('$').skip(1) {
                let used: String = used
                    .chars()
                    .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
                    .collect();
                let is_known = variables.contains(used.as_str()) || used.starts_with("__");
                assert!(is_known, "{title}: ${used}");
            }
        }
    }
}
