//! An attack, after which statistics, metrics, log and dashboard agree with what was sent.

use axum::body::Body;
use axum::http::Request;
use serde_json::Value;

use super::{Caller, Example, Gateway, OWN, SECRET};
use crate::support::http::Answer;

/// Token of the admin API.
pub(super) const TOKEN: &str = "the-admin-token-of-these-tests";

/// Requests of one caller: how many are sent and how many of them are admitted.
pub(super) struct Wave {
    line: &'static str,
    caller: Caller,
    pub(super) counter: &'static str,
    pub(super) policy: &'static str,
    sent: u64,
    admitted: u64,
}

impl Wave {
    pub(super) const fn denied(&self) -> u64 {
        self.sent - self.admitted
    }
}

/// A user name that is HTML.
pub(super) const TRAP: &str = "<img src=x onerror=alert(1)>";

pub(super) fn waves() -> Vec<Wave> {
    let wave = |line, caller, counter, policy, [sent, admitted]: [u64; 2]| Wave {
        line,
        caller,
        counter,
        policy,
        sent,
        admitted,
    };
    let user = |name| Caller::user(name, "free");
    let (login, research) = ("POST /auth/v1/token", "POST /v1/ai/research");
    vec![
        wave(
            login,
            Caller::anonymous(1),
            "ip=203.0.1.9",
            "ip:login:1h",
            [74, 10],
        ),
        wave(
            research,
            user("alice"),
            "user=alice",
            "user:ai-research:1h",
            [31, 10],
        ),
        wave(
            "POST /auth/v1/mfa/verify",
            user("bob"),
            "user=bob",
            "user:mfa-verify:1h",
            [23, 20],
        ),
        wave(
            login,
            user(TRAP),
            "user=<img src=x onerror=alert(1)>",
            "user:login:1h",
            [12, 10],
        ),
        wave(
            "GET /v1/secrets/42",
            Caller::user("dora", "team"),
            "",
            "user:secrets:1h",
            [40, 40],
        ),
    ]
}

/// Sends the requests in sequence and checks each status.
pub(super) async fn attack(gateway: &Gateway, waves: &[Wave]) {
    for wave in waves {
        for sent in 0..wave.sent {
            let expected = if sent < wave.admitted { 200 } else { 429 };
            let answer = gateway.send(wave.line, &wave.caller).await;
            assert_eq!(answer.status, expected, "{}: {sent}", wave.line);
        }
    }
}

pub(super) fn denied(waves: &[Wave]) -> u64 {
    waves.iter().map(Wave::denied).sum()
}

pub(super) fn admitted(waves: &[Wave]) -> u64 {
    waves.iter().map(|wave| wave.admitted).sum()
}

/// Waves with denied requests.
fn denied_waves(waves: &[Wave]) -> impl Iterator<Item = &Wave> {
    waves.iter().filter(|wave| wave.denied() > 0)
}

pub(super) async fn admin_get(gateway: &Gateway, path: &str) -> Answer {
    let token = format!("Bearer {TOKEN}");
    let line = format!("GET /admin/api/{path}");
    gateway
        .client
        .send(&line, &[("authorization", &token)])
        .await
}

/// Sends a POST request to the admin API.
pub(super) async fn admin_post(gateway: &Gateway, path: &str, body: &Value) -> Answer {
    let request = Request::post(format!("/admin/api/{path}"))
        .header("authorization", format!("Bearer {TOKEN}"))
        .header("content-type", "application/json")
        .body(Body::from(body.to_string()))
        .unwrap();
    gateway.client.send_request(request).await
}

/// Sum of a metric over all series with these labels.
fn metric(metrics: &str, name: &str, labels: &[&str]) -> u64 {
    let is_meant = |line: &&str| {
        let rest = line.strip_prefix(name);
        let is_of_name = rest.is_some_and(|rest| rest.starts_with(['{', ' ']));
        is_of_name && labels.iter().all(|label| line.contains(label))
    };
    let values = metrics.lines().filter(is_meant);
    let value = |line: &str| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap();
    values.map(value).sum()
}

#[tokio::test]
async fn statistics_metrics_and_log_agree_with_what_was_sent() {
    let variables = [&OWN[..], &[("ADMIN_TOKEN", TOKEN)]].concat();
    let gateway = Gateway::of(Example::start_with_stderr("gateway", &variables).await);
    let waves = waves();
    attack(&gateway, &waves).await;
    let status = gateway.send("GET /v1/rate-limits/status", &waves[1].caller);
    let status = status.await.json();
    let limits = status["limits"].as_array().unwrap();
    let research = limits
        .iter()
        .find(|limit| limit["policy"] == waves[1].policy);
    let research = research.unwrap();
    assert_eq!(research["used"], 10);
    assert_eq!(research["remaining"], 0);

    // Reading changes no metric.
    for _ in 0..3 {
        let statistics = admin_get(&gateway, "statistics").await.json();
        assert_statistics(&statistics, &waves);
    }
    let metrics = gateway.client.send("GET /metrics", &[]).await;
    assert_metrics(&metrics.body, &waves);
    assert_log(&gateway.example.into_stderr().await, &waves);
}

fn assert_statistics(statistics: &Value, waves: &[Wave]) {
    assert_eq!(statistics["totals"]["denied"], denied(waves));
    assert_eq!(statistics["totals"]["allowed"], admitted(waves));
    for (period, spans) in [("last_hour", 60), ("last_day", 96)] {
        let over_time = statistics[period].as_array().unwrap();
        assert_eq!(over_time.len(), spans);
        let sum = |what: &str| -> u64 {
            let values = over_time.iter().map(|span| span[what].as_u64().unwrap());
            values.sum()
        };
        assert_eq!(sum("denied"), denied(waves));
        assert_eq!(sum("allowed"), admitted(waves));
    }
    let endpoints = statistics["endpoints"].as_array().unwrap();
    let of = |name: &str| endpoints.iter().find(|endpoint| endpoint["name"] == name);
    assert_eq!(of("POST /auth/v1/token").unwrap()["denied"], 64 + 2);
    assert_eq!(of("GET /v1/secrets/{id}").unwrap()["allowed"], 40);
    let offenders = statistics["offenders"].as_array().unwrap();
    assert_eq!(offenders.len(), denied_waves(waves).count());
    assert_eq!(statistics["violators"]["count"], offenders.len());
    for wave in denied_waves(waves) {
        let mut found = offenders.iter();
        let found = found.find(|found| found["counter"] == wave.counter);
        let found = found.unwrap_or_else(|| panic!("{}", wave.counter));
        assert_eq!(found["denied"], wave.denied(), "{found}");
        assert_eq!(found["policy"], wave.policy, "{found}");
    }
}

fn assert_metrics(metrics: &str, waves: &[Wave]) {
    const DECISIONS: &str = "tollgate_decisions_total";
    for wave in waves {
        let of = |outcome: &str| {
            let outcome = format!("outcome=\"{outcome}\"");
            let policy = format!("policy=\"{}\"", wave.policy);
            metric(metrics, DECISIONS, &[&outcome, &policy])
        };
        assert_eq!(of("denied"), wave.denied(), "{}", wave.policy);
        assert_eq!(of("allowed"), wave.admitted, "{}", wave.policy);
    }
    let of_all = metric(metrics, DECISIONS, &["outcome=\"denied\""]);
    assert_eq!(of_all, denied(waves));
    let of_logins = metric(
        metrics,
        "tollgate_endpoint_denied_total",
        &["/auth/v1/token"],
    );
    assert_eq!(of_logins, 66);
    let violators = metric(metrics, "tollgate_violators", &[]);
    assert_eq!(violators, denied_waves(waves).count() as u64);
}

/// The first denial of each kind is logged at once, none is logged twice, and no identity is plain.
fn assert_log(log: &[String], waves: &[Wave]) {
    let exceeded = log
        .iter()
        .filter(|line| line.contains("rate_limit_exceeded"));
    for wave in denied_waves(waves) {
        let of = exceeded.clone().filter(|line| line.contains(wave.policy));
        let logged = of.count() as u64;
        assert!(
            (1..=wave.denied()).contains(&logged),
            "{}: {log:#?}",
            wave.policy
        );
    }
    for line in log {
        for secret in ["alice", "203.0.1.9", TRAP, TOKEN, SECRET] {
            assert!(!line.contains(secret), "{line}");
        }
    }
}

/// A caller without quota can still read its status, and operators can use the admin API.
#[tokio::test]
async fn status_and_admin_requests_are_not_counted_and_need_a_token() {
    let variables = [
        ("ADMIN_TOKEN", TOKEN),
        ("TOLLGATE_GLOBAL__ANONYMOUS", "2/hour"),
    ];
    let gateway = Gateway::start_with(&variables).await;
    let caller = Caller::anonymous(1);
    gateway.exhaust("GET /v1/projects", &caller, 2).await;
    let status = gateway.send("GET /v1/rate-limits/status", &caller).await;
    assert_eq!(status.status, 200);
    let global = &status.json()["limits"][0];
    assert_eq!(
        (&global["policy"], &global["remaining"]),
        (&"ip:global:1h".into(), &0.into())
    );
    assert_eq!(gateway.send("GET /metrics", &caller).await.status, 200);
    for path in ["/admin", "/admin/"] {
        let page = gateway.send(&format!("GET {path}"), &caller).await;
        assert_eq!(page.status, 200, "{path}");
        assert!(page.body.contains("<title>tollgate</title>"));
    }
    assert_eq!(
        gateway.send("GET /admin/api/policy", &caller).await.status,
        401
    );
    assert_eq!(admin_get(&gateway, "policy").await.status, 200);
    // Unmatched paths count.
    assert_eq!(gateway.send("GET /nowhere", &caller).await.status, 429);
}

#[tokio::test]
async fn a_missing_admin_token_is_random_and_printed() {
    let mut tokens = Vec::new();
    for _ in 0..2 {
        let mut example = Example::start("gateway", &OWN).await;
        let token = loop {
            let line = example.line().await;
            if let Some((_, token)) = line.split_once("ADMIN_TOKEN is not set. Token of this run: ")
            {
                break token.to_owned();
            }
        };
        assert_eq!(token.len(), 32);
        let client = example.version_1();
        let shown = format!("Bearer {token}");
        let answer = client
            .send("GET /admin/api/policy", &[("authorization", &shown)])
            .await;
        assert_eq!(answer.status, 200);
        tokens.push(token);
    }
    assert_ne!(tokens[0], tokens[1]);
    // A configured token is not printed.
    let mut example = Example::start("gateway", &[("ADMIN_TOKEN", TOKEN)]).await;
    loop {
        let line = example.line().await;
        assert!(
            !line.contains(TOKEN) && !line.contains("ADMIN_TOKEN"),
            "{line}"
        );
        if line.contains("/v1/rate-limits/status") {
            break;
        }
    }
}
