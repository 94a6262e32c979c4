//! A path with several possible readings is charged to the rules of all of them.

use axum::Router;
use axum::routing::any;
use tollgate::RateLimitLayer;
use tollgate::headers::HeaderSet;
use tollgate::policy::{Count, OnStoreFailure, Policy, PolicyBuilder, Rule, RuleMode};
use tower::Layer;
use tower_http::normalize_path::NormalizePathLayer;

use super::Answer;
use super::routes::named_handler;

pub(super) fn limits(policy: PolicyBuilder) -> RateLimitLayer {
    let (builder, _) = super::layer(policy.everyone("1000/hour"));
    builder.headers(HeaderSet::Ietf).build().unwrap()
}

pub(super) fn rule(name: &str) -> Rule {
    Rule::new("100/hour").name(name)
}

/// Sends a request, and asserts that this handler runs and that its rule is charged.
pub(super) async fn charged(app: &Router, line: &str, ran: &str) -> Answer {
    let answer = super::send(app, line, &[]).await;
    assert_eq!(answer.header("x-ran"), Some(ran), "{line}");
    let expected = format!("ip:{ran}:1h");
    let counted = answer.charged();
    assert!(counted.contains(&expected), "{line}: {counted:?}");
    answer
}

/// Returns two routers: one with the layer inside, one with the layer outside.
fn both(policy: impl Fn() -> PolicyBuilder, router: impl Fn() -> Router) -> [Router; 2] {
    [
        router().layer(limits(policy())),
        Router::new().fallback_service(limits(policy()).layer(router())),
    ]
}

#[tokio::test]
async fn a_mount_with_a_parameter_is_charged_without_a_rest() {
    let policy = || {
        Policy::builder()
            .endpoint("/t/{t}/files/{*rest}", rule("files"))
            .endpoint("/t/{t}/{page}", rule("page"))
    };
    let router = || {
        Router::new()
            .nest_service("/t/{t}/files", any(named_handler("files")))
            .route("/t/{t}/{page}", any(named_handler("page")))
    };
    for app in both(policy, router) {
        for path in ["/t/1/files", "/t/1/files/", "/t/1/files/x", "/t//files"] {
            charged(&app, &format!("GET {path}"), "files").await;
        }
        charged(&app, "GET /t/1/other", "page").await;
    }
}

#[tokio::test]
async fn a_doubled_slash_does_not_choose_the_cheaper_of_two_wildcard_rules() {
    let policy = || {
        Policy::builder()
            .endpoint("/svc/{*rest}", rule("cheap"))
            .endpoint("/svc/export/{*rest}", rule("expensive"))
    };
    let router = || {
        let inner = Router::new()
            .route("/export/{*rest}", any(named_handler("expensive")))
            .fallback(named_handler("cheap"));
        Router::new().nest_service("/svc", inner)
    };
    for app in both(policy, router) {
        for path in ["/svc/export/x", "/svc//export/x", "/svc//export//x"] {
            charged(&app, &format!("GET {path}"), "expensive").await;
        }
        charged(&app, "GET /svc/other", "cheap").await;
    }
}

#[tokio::test]
async fn a_mount_inside_a_mount_is_charged_to_its_own_rule() {
    let policy = || {
        Policy::builder()
            .endpoint("/m/{*rest}", rule("outer"))
            .endpoint("/m/n/{*rest}", rule("inner"))
    };
    let router = || {
        let middle = Router::new()
            .nest_service("/n", any(named_handler("inner")))
            .fallback(named_handler("outer"));
        Router::new().nest_service("/m", middle)
    };
    for app in both(policy, router) {
        for path in ["/m/n", "/m/n/", "/m/n/x", "/m//n", "/m//n/x", "/m//n//"] {
            charged(&app, &format!("GET {path}"), "inner").await;
        }
        for path in ["/m", "/m/", "/m/x", "/m///n"] {
            charged(&app, &format!("GET {path}"), "outer").await;
        }
    }
}

#[tokio::test]
async fn a_layer_inside_of_a_mount_charges_the_mount_and_not_the_root() {
    let policy = || {
        Policy::builder()
            .endpoint("/", rule("root"))
            .endpoint("/m/{*rest}", rule("mount"))
    };
    let around =
        Router::new().nest_service("/m", limits(policy()).layer(any(named_handler("mount"))));
    let inner = Router::new().fallback(named_handler("mount"));
    let inside = Router::new().nest_service("/m", inner.layer(limits(policy())));
    for app in [around, inside] {
        for path in ["/m", "/m/", "/m/x", "/m//"] {
            let answer = charged(&app, &format!("GET {path}"), "mount").await;
            let counted = answer.charged();
            assert!(
                !counted.contains(&"ip:root:1h".to_owned()),
                "{path}: {counted:?}"
            );
        }
    }
}

#[tokio::test]
async fn the_root_handler_of_a_mounted_router_is_charged_for_every_spelling() {
    for pattern in ["/m", "/m/"] {
        let policy = || Policy::builder().endpoint(pattern, rule("start"));
        let inner = || Router::new().route("/", any(named_handler("start")));
        let inside = Router::new().nest_service("/m", inner().layer(limits(policy())));
        let around = Router::new().nest_service("/m", limits(policy()).layer(inner()));
        let [top, outside] = both(policy, || Router::new().nest_service("/m", inner()));
        for app in [inside, around, top, outside] {
            for path in ["/m", "/m/"] {
                charged(&app, &format!("GET {path}"), "start").await;
            }
        }
    }
}

#[tokio::test]
async fn normalized_paths_behind_a_wildcard_are_charged() {
    let policy = || {
        Policy::builder()
            .endpoint("/{*rest}", rule("rest"))
            .endpoint("/login", rule("login"))
            .endpoint("/", rule("root"))
    };
    let router = || {
        let inner = Router::new()
            .route("/", any(named_handler("root")))
            .route("/login", any(named_handler("login")));
        let normalized = NormalizePathLayer::trim_trailing_slash().layer(inner);
        Router::new().route_service("/{*rest}", normalized)
    };
    for app in both(policy, router) {
        for path in ["/login", "/login/", "//login", "///login//"] {
            charged(&app, &format!("GET {path}"), "login").await;
        }
        charged(&app, "GET //", "root").await;
    }
}

#[tokio::test]
async fn any_number_of_doubled_slashes_reaches_the_rule() {
    let pattern = "/p/{a}/q/{b}/r/{c}/s/{d}/svc/deep";
    let policy = || {
        Policy::builder()
            .endpoint(pattern, rule("deep"))
            .endpoint("/p/{a}", rule("other"))
    };
    let router = || {
        let inner = Router::new().route("/deep", any(named_handler("deep")));
        Router::new().nest_service("/p/{a}/q/{b}/r/{c}/s/{d}/svc", inner)
    };
    for app in both(policy, router) {
        for path in [
            "/p/1/q/2/r/3/s/4/svc/deep",
            "/p//q//r//s//svc/deep",
            "/p//q//r//s//svc//deep",
        ] {
            charged(&app, &format!("GET {path}"), "deep").await;
        }
    }
}

#[tokio::test]
async fn methods_do_not_hide_the_rules_of_each_other() {
    let policy = || {
        Policy::builder()
            .endpoint("POST /svc/deep/{id}", rule("post"))
            .endpoint("GET /svc/deep/{id}", rule("get"))
            .endpoint("/svc/{*rest}", rule("svc"))
    };
    let router = || Router::new().nest_service("/svc", any(named_handler("svc")));
    for app in both(policy, router) {
        for (line, expected) in [
            ("GET /svc//deep/1", &["ip:get:1h", "ip:svc:1h"][..]),
            ("HEAD /svc//deep/1", &["ip:get:1h", "ip:svc:1h"]),
            ("POST /svc//deep/1", &["ip:post:1h", "ip:svc:1h"]),
            ("PUT /svc//deep/1", &["ip:svc:1h"]),
        ] {
            let mut counted = super::send(&app, line, &[]).await.charged();
            counted.retain(|name| name != "ip:global:1h");
            counted.sort();
            assert_eq!(counted, expected, "{line}");
        }
    }
}

/// `/a//b` is read as `/a/b`, and as a path without a rule.
#[tokio::test]
async fn a_reading_that_reaches_no_route_is_charged_to_the_global_rule() {
    let policy = || Policy::builder().endpoint("/a/b", rule("own").global(false));
    for app in both(policy, || Router::new().fallback(named_handler("any"))) {
        let plain = super::send(&app, "GET /a/b", &[]).await.charged();
        assert_eq!(plain, ["ip:own:1h"]);
        let ambiguous = super::send(&app, "GET /a//b", &[]).await.charged();
        assert_eq!(ambiguous, ["ip:own:1h", "ip:global:1h"]);
    }
}

/// Two endpoints of one category have different settings. The counter is charged once, with the larger
/// cost, the count of more outcomes and the stricter failure mode.
#[tokio::test]
async fn one_counter_of_two_readings_is_charged_once_with_the_stricter_settings() {
    let policy = Policy::builder()
        .category("shared", Rule::new("100/hour"))
        .endpoint(
            "/a/{x}",
            Rule::in_category("shared")
                .cost(7)
                .count(Count::failure())
                .on_store_failure(OnStoreFailure::Allow),
        )
        .endpoint("/a/b/{y}", Rule::in_category("shared").cost(2));
    let (builder, _) = super::layer(policy);
    let app = super::echo().layer(builder.build().unwrap());
    // Read as `/a/b`, and as `/a/b/` with an empty parameter.
    let first = super::send(&app, "GET /a/b/", &[]).await;
    assert_eq!(first.header("x-ratelimit-policy"), Some("ip:shared:1h"));
    assert_eq!(
        first.number("x-ratelimit-remaining"),
        93,
        "a success counts"
    );
    let second = super::send(&app, "GET /a/b/", &[]).await;
    assert_eq!(second.number("x-ratelimit-remaining"), 86);
}

#[tokio::test]
async fn dry_runs_of_all_readings_stay_dry_runs() {
    let policy = || {
        Policy::builder().endpoint("/a/b", rule("live")).endpoint(
            "/a/{x}",
            Rule::new("blocked").name("tried").mode(RuleMode::DryRun),
        )
    };
    for app in both(policy, || Router::new().fallback(named_handler("any"))) {
        let answer = super::send(&app, "GET /a/%62", &[]).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.charged(), ["ip:live:1h", "ip:global:1h"]);
    }
}

/// The batch of all readings is charged completely or not at all.
#[tokio::test]
async fn a_denial_by_one_reading_charges_the_others_nothing() {
    let policy = Policy::builder()
        .endpoint("/a/b", Rule::new("1/hour").name("tight"))
        .endpoint("/a/{x}", rule("wide"));
    let app = Router::new()
        .fallback_service(limits(policy).layer(Router::new().fallback(named_handler("any"))));
    for status in [200, 429, 429, 429] {
        let answer = super::send(&app, "GET /a/%62", &[]).await;
        assert_eq!(answer.status, status);
    }
    let answer = super::send(&app, "GET /a/c", &[]).await;
    let wide = answer.header("ratelimit").unwrap();
    assert!(wide.contains("r=98"), "{wide}");
}

/// The matched pattern is that of the mount, and a rule with a literal also matches the path.
#[tokio::test]
async fn the_mount_that_matched_is_charged_beside_a_more_literal_route() {
    let policy = || {
        Policy::builder()
            .endpoint("/{p}/{r}/{*rest}", rule("mount"))
            .endpoint("/b/{*rest}", rule("literal"))
            .exempt_route("/a/{*open}")
    };
    let router = || Router::new().nest_service("/{p}/{r}", any(named_handler("mount")));
    let app = router().layer(limits(policy()));
    for path in ["/b/b", "/a/b"] {
        charged(&app, &format!("GET {path}"), "mount").await;
    }
}

#[tokio::test]
async fn a_matched_pattern_with_escaped_braces_is_charged() {
    let policy = Policy::builder()
        .endpoint("/{p}/{{x}}/login", rule("braces"))
        .endpoint("/v1/{*rest}", rule("rest"));
    let router = Router::new().route("/{p}/{{x}}/login", any(named_handler("braces")));
    let app = router.layer(limits(policy));
    charged(&app, "GET /v1/{x}/login", "braces").await;
}

/// The outer router does not match `///login`, and the inner one has only a parameter.
#[tokio::test]
async fn a_literal_of_one_router_does_not_hide_the_parameter_of_another() {
    let policy = || {
        Policy::builder()
            .endpoint("/login", rule("login"))
            .endpoint("/{p}", rule("parameter"))
    };
    let router = || {
        let inner = Router::new().route("/{p}", any(named_handler("parameter")));
        let trimmed = NormalizePathLayer::trim_trailing_slash().layer(inner);
        Router::new()
            .route("/login", any(named_handler("login")))
            .route_service("/{*rest}", trimmed)
    };
    for app in both(policy, router) {
        for path in ["///login", "//login", "/login/"] {
            charged(&app, &format!("GET {path}"), "parameter").await;
        }
        charged(&app, "GET /login", "login").await;
    }
}
