//! Rules that count a request, with the layer inside and outside of a router, for every spelling of the path.

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Uri};
use axum::routing::{any, get, post};
use tollgate::headers::HeaderSet;
use tollgate::policy::{Policy, Rule};
use tower::Layer;
use tower::util::MapRequestLayer;
use tower_http::normalize_path::NormalizePathLayer;

use super::routes::{named_handler, trim};

#[tokio::test]
async fn a_rule_can_cover_a_part_of_the_paths_of_a_handler() {
    let policy = Policy::builder()
        .endpoint(
            "POST /v1/{service}/{action}",
            Rule::new("100/hour").name("calls"),
        )
        .endpoint("POST /v1/auth/login", Rule::new("5/hour").name("login"));
    let (builder, _) = super::layer(policy);
    let layer = builder.build().unwrap();
    let router = || Router::new().route("/v1/{a}/{b}", post(named_handler("any")));
    for app in [
        router().layer(layer.clone()),
        Router::new().fallback_service(layer.layer(router())),
    ] {
        let login = super::send(&app, "POST /v1/auth/login", &[]).await;
        assert_eq!(login.header("x-ratelimit-policy"), Some("ip:login:1h"));
        let other = super::send(&app, "POST /v1/mail/send", &[]).await;
        assert_eq!(other.header("x-ratelimit-policy"), Some("ip:calls:1h"));
    }
}

/// A mount also serves its root path. A router with only the wildcard does not, so other rules that
/// match this path are charged as well.
#[tokio::test]
async fn the_root_of_a_mount_is_charged_to_the_rule_of_the_mount() {
    let policy = || {
        Policy::builder()
            .endpoint("/api/{*rest}", Rule::new("5/hour").name("api"))
            .endpoint("/one", Rule::new("5/hour").name("one"))
            .endpoint("/one/{*rest}", Rule::new("5/hour").name("under-one"))
            .endpoint("/{*rest}", Rule::new("1000/hour").name("rest"))
    };
    let mounted = || {
        Router::new()
            .nest_service("/api", any(named_handler("api")))
            .route("/one", any(named_handler("one")))
            .route("/{*rest}", any(named_handler("rest")))
    };
    for (path, rules) in [
        ("/api", &["ip:api:1h", "ip:rest:1h"][..]),
        ("/api/", &["ip:api:1h", "ip:rest:1h"]),
        ("/api/x", &["ip:api:1h"]),
        ("/one", &["ip:one:1h", "ip:under-one:1h"]),
        ("/apis", &["ip:rest:1h"]),
    ] {
        let counted = counted(policy(), mounted, &format!("GET {path}")).await;
        assert_eq!(counted, [rules, rules], "{path}");
    }
}

#[tokio::test]
async fn layers_that_change_slashes_do_not_evade_a_rule() {
    let policy = || {
        Policy::builder()
            .endpoint("/any/{a}/{b}", Rule::new("5/hour").name("any"))
            .endpoint("/api/{*rest}", Rule::new("5/hour").name("api"))
            .endpoint("/page/", Rule::new("5/hour").name("page"))
            .everyone("100/hour")
    };
    let trimming = || {
        let router = Router::new()
            .route("/any/{a}/{b}", any(named_handler("any")))
            .nest_service("/api", any(named_handler("api")));
        Router::new().fallback_service(NormalizePathLayer::trim_trailing_slash().layer(router))
    };
    let appending = || {
        let router = Router::new().route("/page/", any(named_handler("page")));
        Router::new().fallback_service(NormalizePathLayer::append_trailing_slash().layer(router))
    };
    for (path, rule, router) in [
        ("///any//y", "ip:any:1h", trimming as fn() -> Router),
        ("////any//y//", "ip:any:1h", trimming),
        ("//api", "ip:api:1h", trimming),
        ("///api//", "ip:api:1h", trimming),
        ("/page", "ip:page:1h", appending),
        ("/page/", "ip:page:1h", appending),
        ("//page", "ip:page:1h", appending),
    ] {
        for counted in counted(policy(), router, &format!("GET {path}")).await {
            assert_eq!(counted, [rule, "ip:global:1h"], "{path}");
        }
    }
}

/// A file server decodes paths, including `%2F`, and merges slashes.
#[tokio::test]
async fn decoded_and_merged_paths_are_charged_to_the_rule_of_the_file() {
    let policy = || {
        Policy::builder()
            .endpoint("GET /files/{name}", Rule::new("5/hour").name("file"))
            .endpoint("GET /files/sub/{name}", Rule::new("5/hour").name("sub"))
            .everyone("100/hour")
    };
    let router = || Router::new().nest_service("/files", any(named_handler("files")));
    for (path, rule) in [
        ("/files//big%2Eiso", "ip:file:1h"),
        ("/files//sub/big.iso", "ip:sub:1h"),
        ("/files/sub%2Fbig.iso", "ip:sub:1h"),
        ("/files/s%75b%2fbig.iso", "ip:sub:1h"),
    ] {
        let counted = counted(policy(), router, &format!("GET {path}")).await;
        for counted in counted {
            assert!(counted.contains(&rule.to_owned()), "{path}: {counted:?}");
        }
    }
}

#[tokio::test]
async fn a_rewritten_path_is_matched_by_its_route() {
    // A layer between two routers rewrites versions. The rate limit layer is on the inner router.
    let policy = Policy::builder()
        .endpoint("GET /{*rest}", Rule::new("100/hour").name("rest"))
        .endpoint("GET /v2/users", Rule::new("5/hour").name("users"));
    let (builder, _) = super::layer(policy);
    let inner = Router::new()
        .route("/v2/users", get(named_handler("users")))
        .layer(builder.build().unwrap());
    let rewrite = MapRequestLayer::new(|mut request: Request<Body>| {
        *request.uri_mut() = Uri::from_static("/v2/users");
        request
    });
    let app = Router::new().fallback_service(rewrite.layer(inner));
    let answer = super::send(&app, "GET /latest/users", &[]).await;
    assert_eq!(answer.header("x-ran"), Some("users"));
    assert_eq!(answer.header("x-ratelimit-policy"), Some("ip:users:1h"));
}

/// Returns the names of all quotas that counted a request, inside and outside of a router.
async fn counted(
    policy: tollgate::policy::PolicyBuilder,
    router: fn() -> Router,
    line: &str,
) -> [Vec<String>; 2] {
    let (builder, _) = super::layer(policy);
    let layer = builder.headers(HeaderSet::Ietf).build().unwrap();
    let inside = router().layer(layer.clone());
    let outside = Router::new().fallback_service(layer.layer(router()));
    [
        super::send(&inside, line, &[]).await.charged(),
        super::send(&outside, line, &[]).await.charged(),
    ]
}

#[tokio::test]
async fn an_encoded_letter_does_not_evade_a_rule() {
    let policy = || {
        Policy::builder()
            .endpoint("POST /login", Rule::new("5/hour").name("login"))
            .exempt_route("POST /ping")
            .everyone("100/hour")
    };
    // A server that decodes paths before routing.
    let router = || Router::new().fallback(named_handler("any"));
    for path in [
        "/login",
        "/%6cogin",
        "/%6C%6fg%69n",
        "/%6cogin/",
        "//%6cogin",
        "/%2Flogin",
    ] {
        for counted in counted(policy(), router, &format!("POST {path}")).await {
            assert_eq!(counted, ["ip:login:1h", "ip:global:1h"], "{path}");
        }
    }
    for path in ["/%zz", "/%", "/%ff", "/%70ing", "//ping"] {
        for counted in counted(policy(), router, &format!("POST {path}")).await {
            assert_eq!(counted, ["ip:global:1h"], "{path}");
        }
    }
}

#[tokio::test]
async fn slashes_neither_evade_a_rule_nor_exempt_a_request() {
    let policy = || {
        Policy::builder()
            .endpoint("/{*rest}", Rule::new("1000/hour").name("rest"))
            .endpoint("POST /login", Rule::new("5/hour").name("login"))
            .exempt_route("GET /health")
    };
    let (builder, _) = super::layer(policy());
    let router = Router::new().route("/login", post(named_handler("login")));
    let trimming = MapRequestLayer::new(trim).layer(router);
    let app = Router::new().fallback_service(builder.build().unwrap().layer(trimming));
    for path in ["/login", "/login/", "/login//"] {
        let answer = super::send(&app, &format!("POST {path}"), &[]).await;
        assert_eq!(answer.header("x-ran"), Some("login"));
        assert_eq!(
            answer.header("x-ratelimit-policy"),
            Some("ip:login:1h"),
            "{path}"
        );
    }
    // Paths that reach another handler are counted by the rule of that handler.
    let rest = || {
        Router::new()
            .route("/{*rest}", any(named_handler("rest")))
            .route("/health", get(named_handler("health")))
    };
    for path in ["/health/", "//health", "//health///", "/%68ealth"] {
        for counted in counted(policy(), rest, &format!("GET {path}")).await {
            assert_eq!(counted, ["ip:rest:1h"], "{path}");
        }
    }
    for counted in counted(policy(), rest, "GET /health").await {
        assert!(counted.is_empty(), "{counted:?}");
    }
}

#[tokio::test]
async fn a_wildcard_rule_also_counts_its_own_root() {
    let policy = || Policy::builder().endpoint("/api/{*rest}", Rule::new("5/hour").name("api"));
    let router = || Router::new().nest_service("/api", any(named_handler("api")));
    for path in ["/api", "/api/", "/api/x", "/api/x/y"] {
        for counted in counted(policy(), router, &format!("GET {path}")).await {
            assert_eq!(counted, ["ip:api:1h"], "{path}");
        }
    }
}

#[tokio::test]
async fn a_rewritten_path_counts_by_its_new_form() {
    // The rewrite is inside the outer router, the layer around the inner one.
    let policy = Policy::builder().endpoint("GET /v2/users", Rule::new("5/hour").name("users"));
    let (builder, _) = super::layer(policy);
    let inner = Router::new().route("/v2/users", get(named_handler("users")));
    let rewrite = MapRequestLayer::new(|mut request: Request<Body>| {
        *request.uri_mut() = Uri::from_static("/v2/users");
        request
    });
    let app = Router::new().fallback_service(rewrite.layer(builder.build().unwrap().layer(inner)));
    let answer = super::send(&app, "GET /latest/users", &[]).await;
    assert_eq!(answer.header("x-ran"), Some("users"));
    assert_eq!(answer.header("x-ratelimit-policy"), Some("ip:users:1h"));
}
