//! Which requests count, on which rule, and at which cost.

use axum::Router;
use axum::routing::post;
use tollgate::policy::{Count, Policy, Preflight, Rule};
use tollgate::{Charge, Decision, RateLimitLayer};

use super::{echo, layer, send};

#[tokio::test]
async fn a_response_that_does_not_count_is_refunded() {
    let login = Rule::new("3/hour").name("login").count(Count::failure());
    let (builder, _) = layer(Policy::builder().endpoint("POST /login", login));
    let app = echo().layer(builder.build().unwrap());

    for _ in 0..10 {
        let success = send(&app, "POST /login", &[]).await;
        assert_eq!(success.status, 200);
        assert_eq!(
            success.number("x-ratelimit-remaining"),
            3,
            "a successful login was charged"
        );
    }
    for left in [2, 1, 0] {
        let wrong = send(&app, "POST /login", &[("x-answer", "401")]).await;
        assert_eq!(
            (wrong.status, wrong.number("x-ratelimit-remaining")),
            (401, left)
        );
    }
    assert_eq!(send(&app, "POST /login", &[]).await.status, 429);
}

#[tokio::test]
async fn only_rules_that_do_not_count_the_response_refund() {
    let sends = Rule::new("5/hour")
        .name("sends")
        .count(Count::statuses(["202"]).unwrap())
        .cost(2);
    let policy = Policy::builder()
        .authenticated("100/hour")
        .endpoint("POST /send", sends);
    let (builder, _) = layer(policy);
    let app = echo().layer(builder.build().unwrap());
    let alice = [("x-user", "alice"), ("x-answer", "502")];
    for _ in 0..4 {
        let failed = send(&app, "POST /send", &alice).await;
        assert_eq!(failed.number("x-ratelimit-remaining"), 5);
    }
    let sent = send(
        &app,
        "POST /send",
        &[("x-user", "alice"), ("x-answer", "202")],
    )
    .await;
    assert_eq!(sent.number("x-ratelimit-remaining"), 3);
    let global = send(&app, "GET /", &[("x-user", "alice")]).await;
    assert_eq!(
        global.number("x-ratelimit-remaining"),
        100 - 6,
        "the global rule counts all requests"
    );
}

#[tokio::test]
async fn categories_share_and_stack() {
    let policy = Policy::builder()
        .category("reads", Rule::new("4/hour"))
        .category("writes", Rule::new("4/hour").stack(true))
        .endpoint("GET /a", Rule::in_category("reads"))
        .endpoint("GET /b", Rule::in_category("reads").cost(2))
        .endpoint("GET /c", Rule::in_category("reads").limit("9/hour"))
        .endpoint("PUT /d", Rule::in_category("writes").limit("9/hour"));
    let (builder, _) = layer(policy);
    let app = echo().layer(builder.build().unwrap());
    let left = |line: &'static str| {
        let app = app.clone();
        async move {
            let answer = send(&app, line, &[]).await;
            (
                answer.header("x-ratelimit-policy").unwrap().to_owned(),
                answer.number("x-ratelimit-remaining"),
            )
        }
    };
    assert_eq!(left("GET /a").await, ("ip:reads:1h".to_owned(), 3));
    assert_eq!(left("GET /b").await, ("ip:reads:1h".to_owned(), 1));
    assert_eq!(
        left("GET /c").await,
        ("ip:GET/c:1h".to_owned(), 8),
        "its own quota replaces the category's"
    );
    assert_eq!(
        left("PUT /d").await,
        ("ip:writes:1h".to_owned(), 3),
        "a stacked category counts as well"
    );
}

#[tokio::test]
async fn head_follows_get() {
    let policy = Policy::builder()
        .endpoint("GET /x", "3/hour")
        .endpoint("POST /x", "9/hour");
    let (builder, _) = layer(policy);
    let app = echo().layer(builder.build().unwrap());
    assert_eq!(
        send(&app, "GET /x", &[])
            .await
            .number("x-ratelimit-remaining"),
        2
    );
    assert_eq!(
        send(&app, "HEAD /x", &[])
            .await
            .number("x-ratelimit-remaining"),
        1
    );
    assert_eq!(
        send(&app, "POST /x", &[])
            .await
            .number("x-ratelimit-remaining"),
        8
    );
    assert_eq!(
        send(&app, "DELETE /x", &[])
            .await
            .header("x-ratelimit-remaining"),
        None
    );
}

#[tokio::test]
async fn exempt_requests_are_neither_counted_nor_denied() {
    let policy = Policy::builder()
        .everyone("1/hour")
        .exempt_route("GET /health")
        .exempt_subject("user", "root")
        .exempt_when(|head| head.path().starts_with("/static/"));
    let (builder, _) = layer(policy);
    let app = echo().layer(builder.build().unwrap());
    let preflight = [
        ("origin", "https://a.example"),
        ("access-control-request-method", "POST"),
    ];
    assert_eq!(send(&app, "GET /", &[]).await.status, 200);
    for _ in 0..3 {
        assert_eq!(send(&app, "GET /health", &[]).await.status, 200);
        assert_eq!(send(&app, "HEAD /health", &[]).await.status, 200);
        assert_eq!(send(&app, "GET /static/app.js", &[]).await.status, 200);
        assert_eq!(send(&app, "GET /", &[("x-user", "root")]).await.status, 200);
        assert_eq!(send(&app, "OPTIONS /", &preflight).await.status, 200);
        assert_eq!(
            send(&app, "OPTIONS /", &preflight[..1]).await.status,
            429,
            "a preflight has both headers"
        );
        assert_eq!(send(&app, "POST /health", &[]).await.status, 429);
        assert_eq!(send(&app, "GET /", &[]).await.status, 429);
    }
    let counted = RateLimitLayer::builder(
        Policy::builder()
            .everyone("1/hour")
            .preflight(Preflight::Count),
    );
    let app = echo().layer(counted.build().unwrap());
    assert_eq!(send(&app, "OPTIONS /", &preflight).await.status, 200);
    assert_eq!(send(&app, "OPTIONS /", &preflight).await.status, 429);
}

#[tokio::test]
async fn cost_with_sets_the_cost_and_handlers_can_charge_more() {
    let policy = Policy::builder()
        .authenticated("100/hour")
        .rule("tokens", Rule::new("1000/hour").per(["user"]).cost(0))
        .endpoint(
            "GET /export",
            Rule::new("10/hour")
                .name("export")
                .cost_with(|head| head.uri().query().map_or(1, |query| query.len() as u64)),
        );
    let (builder, _) = layer(policy);
    let handler = |decision: Decision, charge: Charge| async move {
        assert!(decision.is_allowed());
        charge.charge_rule("tokens", 1_200).await.unwrap();
        assert!(charge.charge_rule("no such rule", 1).await.is_err());
        decision.remaining().to_string()
    };
    let app = echo()
        .merge(Router::new().route("/complete/it", post(handler)))
        .layer(builder.insert_extensions().build().unwrap());
    let alice = [("x-user", "alice")];

    assert_eq!(
        send(&app, "GET /export?abc", &alice)
            .await
            .number("x-ratelimit-remaining"),
        7
    );
    assert_eq!(send(&app, "GET /export?abcdefgh", &alice).await.status, 429);

    let first = send(&app, "POST /complete/it", &alice).await;
    assert_eq!((first.status, first.body.as_str()), (200, "98"));
    // A later charge may exceed the limit. Then every request is denied, even at cost 0.
    let second = send(&app, "POST /complete/it", &alice).await;
    assert_eq!(second.status, 429);
    assert_eq!(second.header("x-ratelimit-policy"), Some("user:tokens:1h"));
}

#[tokio::test]
async fn an_extractor_without_extensions_names_the_option_to_set() {
    let (builder, _) = layer("5/hour");
    let app = Router::new()
        .route("/wants", post(|_: Decision| async { "" }))
        .route(
            "/may",
            post(|decision: Option<Decision>| async move { decision.is_none().to_string() }),
        )
        .layer(builder.build().unwrap());
    let wants = send(&app, "POST /wants", &[]).await;
    assert_eq!(wants.status, 500);
    assert!(wants.body.contains("insert_extensions"));
    assert_eq!(send(&app, "POST /may", &[]).await.body, "true");
}

#[tokio::test]
async fn leaving_out_the_token_does_not_evade_a_user_rule() {
    let policy = Policy::builder().endpoint("GET /x", Rule::new("2/hour").name("x").per(["user"]));
    let (builder, _) = layer(policy);
    let app = echo().layer(builder.build().unwrap());
    for status in [200, 200, 429] {
        assert_eq!(
            send(&app, "GET /x", &[("x-user", "alice")]).await.status,
            status
        );
    }
    for status in [200, 200, 429] {
        let anonymous = send(&app, "GET /x", &[]).await;
        assert_eq!(anonymous.status, status);
        assert_eq!(anonymous.header("x-ratelimit-policy"), Some("ip:x:1h"));
    }
}

#[tokio::test]
async fn a_missing_dimension_does_not_evade_a_rule() {
    let policy = Policy::builder()
        .endpoint(
            "GET /both",
            Rule::new("2/hour").name("both").per(["ip", "user"]),
        )
        .endpoint(
            "GET /tenant",
            Rule::new("2/hour")
                .name("tenant")
                .per(["tenant"])
                .global(false),
        );
    let (builder, _) = layer(policy);
    let app = echo().layer(builder.build().unwrap());
    for line in ["GET /both", "GET /tenant"] {
        for headers in [&[][..], &[("x-user", "alice")]] {
            for status in [200, 200, 429] {
                let answer = send(&app, line, headers).await;
                assert_eq!(answer.status, status, "{line} {headers:?}");
            }
        }
    }
}

#[tokio::test]
async fn requests_without_a_token_have_no_larger_quota() {
    let (builder, _) = layer(Policy::builder().authenticated("2/hour"));
    let app = echo().layer(builder.build().unwrap());
    for status in [200, 200, 429] {
        let answer = send(&app, "GET /", &[]).await;
        assert_eq!(answer.status, status);
        assert_eq!(answer.header("x-ratelimit-policy"), Some("ip:global:1h"));
    }
}

#[tokio::test]
async fn a_rule_for_every_method_counts_preflights() {
    let policy = Policy::builder().endpoint("/pay", Rule::new("1/hour").name("pay"));
    let (builder, _) = layer(policy);
    let app = echo().layer(builder.build().unwrap());
    let preflight = [
        ("origin", "https://a.example"),
        ("access-control-request-method", "POST"),
    ];
    for status in [200, 429, 429] {
        assert_eq!(send(&app, "OPTIONS /pay", &preflight).await.status, status);
    }
}

#[tokio::test]
async fn failed_grpc_responses_with_status_200_are_counted() {
    use axum::http::Response;

    let login = Rule::new("2/hour").name("login").count(Count::failure());
    let (builder, _) = layer(Policy::builder().endpoint("POST /Login", login));
    let handler = |request: axum::extract::Request| async move {
        let status = request.headers().get("x-status").cloned().unwrap();
        Response::builder()
            .header("content-type", "application/grpc")
            .header("grpc-status", status)
            .body(axum::body::Body::empty())
            .unwrap()
    };
    let app = Router::new()
        .route("/Login", post(handler))
        .layer(builder.build().unwrap());
    for _ in 0..5 {
        assert_eq!(
            send(&app, "POST /Login", &[("x-status", "0")])
                .await
                .number("x-ratelimit-remaining"),
            2
        );
    }
    for left in [1, 0] {
        assert_eq!(
            send(&app, "POST /Login", &[("x-status", "16")])
                .await
                .number("x-ratelimit-remaining"),
            left
        );
    }
    assert_eq!(
        send(&app, "POST /Login", &[("x-status", "0")]).await.status,
        429
    );
}

#[tokio::test]
async fn a_refund_restores_the_whole_quota() {
    let policy =
        Policy::builder().everyone(Rule::new("10/minute, token-bucket").count(Count::failure()));
    let (builder, _) = layer(policy);
    let app = echo().layer(builder.build().unwrap());
    let success = send(&app, "GET /", &[]).await;
    assert_eq!(success.number("x-ratelimit-remaining"), 10);
    assert_eq!(
        success.header("x-ratelimit-reset"),
        Some("1735689600"),
        "the quota is complete now"
    );
}

#[tokio::test]
async fn the_decision_has_the_charge_of_the_binding_quota() {
    let policy = Policy::builder()
        .endpoint("POST /x/y", Rule::new("1000/hour").name("x").cost(7))
        .rule("all", Rule::new("5/hour").per([]));
    let (builder, _) = layer(policy);
    let handler = |decision: Decision| async move { decision.charged().to_string() };
    let app = Router::new()
        .route("/x/y", post(handler))
        .layer(builder.insert_extensions().build().unwrap());
    assert_eq!(send(&app, "POST /x/y", &[]).await.body, "1");
}
