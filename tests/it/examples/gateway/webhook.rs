//! Alerts that the gateway sends to a webhook.

mod order;

use std::collections::VecDeque;
use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::routing::any;
use serde_json::{Value, json};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::{Caller, Gateway, OWN, settings::file};
use crate::examples::process::{Example, PATIENCE, refuses};
use crate::support::root;

/// Part of the URL that is a password.
const SECRET: &str = "hush-hush";
const KEY: &str = "0123456789abcdefghijklmnopqrstuv";

/// How the webhook responds to a request.
#[derive(Clone, Copy)]
enum Step {
    Respond(u16),
    Hang,
}

#[derive(Default)]
struct Journal {
    script: VecDeque<Step>,
    calls: Vec<(String, Value)>,
}

/// An HTTP server that follows a script, and then accepts.
#[derive(Clone, Default)]
struct Webhook(Arc<Mutex<Journal>>);

impl Webhook {
    /// Returns the server and its URL.
    async fn start(script: &[Step]) -> (Self, String) {
        async fn respond(
            State(webhook): State<Webhook>,
            uri: Uri,
            Json(body): Json<Value>,
        ) -> StatusCode {
            let step = {
                let mut journal = webhook.0.lock().unwrap();
                journal.calls.push((uri.to_string(), body));
                journal.script.pop_front()
            };
            match step {
                None => StatusCode::ACCEPTED,
                Some(Step::Respond(status)) => StatusCode::from_u16(status).unwrap(),
                Some(Step::Hang) => pending().await,
            }
        }

        let webhook = Self::default();
        webhook.0.lock().unwrap().script = script.iter().copied().collect();
        let app = any(respond).with_state(webhook.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!(
            "http://{}/{SECRET}?key={SECRET}",
            listener.local_addr().unwrap()
        );
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        (webhook, url)
    }

    fn calls(&self) -> Vec<(String, Value)> {
        self.0.lock().unwrap().calls.clone()
    }

    /// Waits for so many calls, and returns their bodies.
    async fn bodies(&self, count: usize) -> Vec<Value> {
        let enough = async {
            while self.calls().len() < count {
                sleep(Duration::from_millis(10)).await;
            }
        };
        let waited = timeout(PATIENCE, enough).await;
        assert!(waited.is_ok(), "{count}: {:?}", self.calls());
        self.calls().into_iter().map(|(_, body)| body).collect()
    }
}

/// Variables of a gateway that denies everything and alerts at the second denial.
fn alerting(variables: &[(&'static str, &str)]) -> Vec<(String, String)> {
    let own = [
        ("TOLLGATE_GLOBAL__ANONYMOUS", "blocked"),
        ("TOLLGATE_ALERTS__MANY_DENIALS", "1"),
    ];
    let all = OWN.iter().chain(&own).chain(variables);
    all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

async fn start(variables: &[(String, String)]) -> Gateway {
    let variables = variables.iter();
    let variables: Vec<_> = variables.map(|(name, value)| (&**name, &**value)).collect();
    Gateway::of(Example::start_with_stderr("gateway", &variables).await)
}

async fn deny(gateway: &Gateway, requests: usize) {
    for _ in 0..requests {
        let answer = gateway.send("GET /nowhere", &Caller::anonymous(1)).await;
        assert_eq!(answer.status, 429);
    }
}

/// The webhook fails, then hangs, then accepts.
#[tokio::test]
async fn an_alert_is_repeated_until_it_is_accepted_and_no_request_waits() {
    let (webhook, url) = Webhook::start(&[Step::Respond(503), Step::Hang]).await;
    let gateway = start(&alerting(&[("ALERT_WEBHOOK_URL", &url)])).await;
    deny(&gateway, 2).await;
    webhook.bodies(2).await;
    deny(&gateway, 100).await;
    assert_eq!(webhook.calls().len(), 2, "the second call still hangs");

    let bodies = webhook.bodies(3).await;
    assert_eq!(bodies[0], bodies[2]);
    let alert = &bodies[2];
    assert_eq!(
        (&alert["status"], &alert["kind"], &alert["severity"]),
        (&json!("firing"), &json!("many_denials"), &json!("medium"))
    );
    assert_eq!(
        (&alert["value"], &alert["threshold"]),
        (&json!(2.0), &json!(1.0))
    );
    let path = format!("/{SECRET}?key={SECRET}");
    assert!(webhook.calls().iter().all(|(called, _)| *called == path));

    let log = gateway.example.into_stderr().await;
    let failed: Vec<_> = log
        .iter()
        .filter(|line| line.contains("alert_delivery_failed"))
        .collect();
    assert_eq!(failed.len(), 2, "{log:#?}");
    assert!(failed[0].contains("status 503"), "{}", failed[0]);
    assert!(failed[1].contains("no response in time"), "{}", failed[1]);
    assert!(
        failed[0].contains("webhook=http://127.0.0.1:"),
        "{}",
        failed[0]
    );
    assert!(log.iter().all(|line| !line.contains(SECRET)), "{log:#?}");
}

#[tokio::test]
async fn a_rejected_alert_is_not_repeated() {
    let (webhook, url) = Webhook::start(&[Step::Respond(404)]).await;
    let mut gateway = start(&alerting(&[("ALERT_WEBHOOK_URL", &url)])).await;
    deny(&gateway, 2).await;
    let line = gateway.example.stderr_line("alert_not_delivered").await;
    assert!(
        line.contains("status 404") && line.contains("attempts=1"),
        "{line}"
    );
    assert!(!line.contains(SECRET), "{line}");
    assert_eq!(webhook.calls().len(), 1);
}

/// Bug: the name of a caller could contain a line that looked like another alert.
#[tokio::test]
async fn slack_gets_a_text_in_which_names_are_neither_markup_nor_lines() {
    let (webhook, url) = Webhook::start(&[]).await;
    let variables = [
        ("ALERT_WEBHOOK_URL", &*url),
        ("ALERT_FORMAT", "slack"),
        ("TOLLGATE_ALERTS__OFFENDER", "1"),
        ("TOLLGATE_ALERTS__MANY_DENIALS", "1000"),
        ("TOLLGATE_GLOBAL__AUTHENTICATED", "blocked"),
    ];
    let gateway = start(&alerting(&variables)).await;
    // Each name, and how the message shows it.
    let names = [
        ("o'brien", "o'brien"),
        ("<!channel> & co", "&lt;!channel&gt; &amp; co"),
        (
            "alice\n*[P0] attack* https://evil.test/",
            "alice\\n*[P0] attack* https://evil.test/",
        ),
        ("a` *bold* `b", "a\\u{60} *bold* \\u{60}b"),
        (
            "\u{202e}ecila\u{2028}\u{200b}\0",
            "\\u{202e}ecila\\u{2028}\\u{200b}\\0",
        ),
        ("C:\\n", "C:\\\\n"),
    ];
    for (number, (name, shown)) in (1..).zip(names) {
        for _ in 0..2 {
            let caller = Caller::user(name, "free");
            assert_eq!(gateway.send("GET /nowhere", &caller).await.status, 429);
        }
        let text = format!(
            "*[P3] offender* (low)\n2 requests of one caller were denied within an hour, more \
             than 1\nCaller: `user={shown}`"
        );
        let body = json!({ "text": text, "unfurl_links": false, "unfurl_media": false });
        assert_eq!(webhook.bodies(number).await[number - 1], body);
    }
}

/// An incident is opened and, after a reload has raised the threshold, resolved.
#[tokio::test]
async fn pagerduty_incidents_are_opened_and_resolved() {
    let (webhook, url) = Webhook::start(&[]).await;
    let policy = |denials| {
        format!("[global]\nanonymous = \"blocked\"\n[alerts]\nmany_denials = {denials}\n")
    };
    let path = file("webhook.toml", &policy(1));
    let variables = [
        ("TOLLGATE_CONFIG", path.to_str().unwrap()),
        ("ALERT_WEBHOOK_URL", &url),
        ("ALERT_FORMAT", "pagerduty"),
        ("ALERT_PAGERDUTY_KEY", KEY),
        ("ALERT_MIN_SEVERITY", "medium"),
        ("HOSTNAME", "web-1"),
    ];
    let gateway =
        Gateway::of(Example::start_with_stderr("gateway", &[&OWN[..], &variables].concat()).await);
    let instance = format!("web-1:{}", gateway.example.address().port());
    let dedup_key = format!("tollgate:{instance}:many_denials");
    deny(&gateway, 2).await;
    let opened = &webhook.bodies(1).await[0];
    let since = opened["payload"]["timestamp"].clone();
    assert!(
        since.as_str().is_some_and(|since| since.ends_with('Z')),
        "{opened}"
    );
    let expected = json!({
        "routing_key": KEY,
        "event_action": "trigger",
        "dedup_key": dedup_key,
        "client": "tollgate",
        "payload": {
            "summary": "[P2] 2 requests were denied within an hour, more than 1",
            "source": instance,
            "severity": "warning",
            "timestamp": since,
            "class": "many_denials",
            "custom_details": { "value": 2.0, "threshold": 1.0, "addresses": null, "caller": null },
        },
    });
    assert_eq!(opened, &expected);
    std::fs::write(&path, policy(100)).unwrap();
    let resolved = &webhook.bodies(2).await[1];
    let expected = json!({
        "routing_key": KEY,
        "event_action": "resolve",
        "dedup_key": dedup_key,
    });
    assert_eq!(resolved, &expected);
    let log = gateway.example.into_stderr().await;
    assert!(log.iter().all(|line| !line.contains(KEY)), "{log:#?}");
}

/// Bug: the second instance closed the incident of the first, which still had the cause.
#[tokio::test]
async fn pagerduty_incidents_of_two_instances_are_separate() {
    let (webhook, url) = Webhook::start(&[]).await;
    let base = [
        ("ALERT_WEBHOOK_URL", &*url),
        ("ALERT_FORMAT", "pagerduty"),
        ("ALERT_PAGERDUTY_KEY", KEY),
        ("ALERT_MIN_SEVERITY", "medium"),
    ];
    let mut keys = Vec::new();
    // Another host, and two instances on one host.
    for (number, host) in (1..).zip(["web-1", "web-2", "web-2"]) {
        let variables = [&base[..], &[("HOSTNAME", host)]].concat();
        let gateway = start(&alerting(&variables)).await;
        deny(&gateway, 2).await;
        let body = &webhook.bodies(number).await[number - 1];
        let port = gateway.example.address().port();
        let instance = format!("{host}:{port}");
        assert_eq!(body["payload"]["source"], *instance);
        assert_eq!(
            body["dedup_key"],
            format!("tollgate:{instance}:many_denials")
        );
        // Kept, so that no port is used twice.
        keys.push((gateway, body["dedup_key"].clone()));
    }
    assert!(keys[1].1 != keys[2].1 && keys[0].1 != keys[1].1);
}

#[tokio::test]
async fn pagerduty_is_called_for_severe_alerts_only() {
    let (webhook, url) = Webhook::start(&[]).await;
    let variables = [
        ("ALERT_WEBHOOK_URL", &*url),
        ("ALERT_FORMAT", "pagerduty"),
        ("ALERT_PAGERDUTY_KEY", KEY),
        ("TOLLGATE_ALERTS__DISTRIBUTED_ATTACK__DENIALS", "4"),
        ("TOLLGATE_ALERTS__DISTRIBUTED_ATTACK__ADDRESSES", "0"),
    ];
    let mut gateway = start(&alerting(&variables)).await;
    deny(&gateway, 2).await;
    let line = gateway.example.stderr_line("rate_limit_alert").await;
    assert!(line.contains("many_denials"), "{line}");
    deny(&gateway, 3).await;
    let body = &webhook.bodies(1).await[0];
    assert_eq!(body["payload"]["class"], "distributed_attack");
    assert_eq!(body["payload"]["severity"], "critical");
}

/// Terminates TLS in front of the webhook.
async fn tls_in_front_of(url: &str) -> String {
    let path = |name: &str| root().join("tests/it/redis/certificates").join(name);
    let chain = CertificateDer::pem_file_iter(path("server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(path("server.key")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain.map(Result::unwrap).collect(), key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (host, rest) = url
        .strip_prefix("http://")
        .unwrap()
        .split_once('/')
        .unwrap();
    let host = host.to_owned();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, host) = (acceptor.clone(), host.clone());
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else {
                    return;
                };
                let mut server = TcpStream::connect(host).await.unwrap();
                let _ = copy_bidirectional(&mut stream, &mut server).await;
            });
        }
    });
    format!("https://localhost:{port}/{rest}")
}

/// The certificate is verified against those of the system.
#[tokio::test]
async fn alerts_are_sent_over_https_to_a_verified_server() {
    let (webhook, url) = Webhook::start(&[]).await;
    let url = tls_in_front_of(&url).await;
    let path = |name: &str| root().join("tests/it/redis/certificates").join(name);
    for (authority, is_delivered) in [("authority.pem", true), ("stranger.pem", false)] {
        let authority = path(authority);
        let variables = [
            ("ALERT_WEBHOOK_URL", &*url),
            ("SSL_CERT_FILE", authority.to_str().unwrap()),
        ];
        let mut gateway = start(&alerting(&variables)).await;
        deny(&gateway, 2).await;
        if is_delivered {
            assert_eq!(webhook.bodies(1).await[0]["kind"], "many_denials");
        } else {
            let line = gateway.example.stderr_line("alert_delivery_failed").await;
            let why = "no connection: invalid peer certificate: UnknownIssuer";
            assert!(line.contains(why), "{line}");
            assert!(!line.contains(SECRET), "{line}");
        }
    }
    assert_eq!(webhook.calls().len(), 1);
}

#[tokio::test]
async fn invalid_alert_settings_are_rejected_by_name() {
    const URL: &str = "an http:// or https:// URL with a host";
    let wrong = [
        ("ALERT_WEBHOOK_URL", "", URL),
        ("ALERT_WEBHOOK_URL", "hooks.example.com/hush-hush", URL),
        (
            "ALERT_WEBHOOK_URL",
            "ftp://hooks.example.com/hush-hush",
            URL,
        ),
        (
            "ALERT_WEBHOOK_URL",
            "https://ada:hush-hush@hooks.example.com",
            URL,
        ),
        ("ALERT_FORMAT", "teams", "slack, pagerduty or json"),
        ("ALERT_FORMAT", "", "slack, pagerduty or json"),
        ("ALERT_MIN_SEVERITY", "P1", "low, medium, high or critical"),
    ];
    refuses("gateway", &wrong).await;
    // What another setting requires.
    for (set, missing) in [
        (&[("ALERT_FORMAT", "slack")][..], "ALERT_WEBHOOK_URL"),
        (&[("ALERT_FORMAT", "pagerduty")], "ALERT_PAGERDUTY_KEY"),
        (
            &[
                ("ALERT_FORMAT", "pagerduty"),
                ("ALERT_PAGERDUTY_KEY", "hush-hush"),
            ],
            "ALERT_PAGERDUTY_KEY",
        ),
    ] {
        let end = crate::examples::process::ended("gateway", set).await;
        assert_eq!((end.code, &*end.stdout), (Some(2), ""));
        let expected = format!("{missing}=\"…\" cannot be used");
        assert!(end.stderr.contains(&expected), "{}", end.stderr);
        assert!(!end.stderr.contains(SECRET), "{}", end.stderr);
    }
}
