//! Problem details, as another crate reads them.

use axum::http::StatusCode;
use problem_details::ProblemDetails;
use serde_json::{Map, Value};
use tollgate::policy::Policy;
use tollgate::response::ProblemJson;

use super::{Place, start};
use crate::support::http::{echo, layer};
use crate::support::sockets::{Client, VERSIONS};

#[tokio::test]
async fn a_client_of_rfc_9457_understands_denials() {
    for version in VERSIONS {
        let (builder, _) = layer(Policy::builder().everyone("2/hour"));
        let limits = builder.render(ProblemJson).build().unwrap();
        let server = start(echo(), &limits, Place::Routes).await;
        let client = Client::new(version, server);
        for status in [200, 200] {
            assert_eq!(client.send("GET /", &[]).await.status, status);
        }
        let answer = client.send("GET /", &[]).await;
        assert_eq!(answer.status, 429);
        assert_eq!(
            answer.header("content-type"),
            Some("application/problem+json")
        );

        let problem: ProblemDetails<Map<String, Value>> =
            serde_json::from_str(&answer.body).unwrap();
        assert_eq!(problem.status, Some(StatusCode::TOO_MANY_REQUESTS));
        // That crate keeps types as URIs of HTTP, which end before the `#`.
        let kind = problem.r#type.unwrap().to_string();
        let fragment = answer.json()["type"]
            .as_str()
            .unwrap()
            .strip_prefix(&kind)
            .map(str::to_owned);
        assert_eq!(kind, "https://iana.org/assignments/http-problem-types");
        assert_eq!(fragment.as_deref(), Some("#quota-exceeded"));
        assert!(problem.title.is_some_and(|title| !title.is_empty()));
        assert!(
            problem
                .detail
                .is_some_and(|detail| detail.contains("try again"))
        );
        let violated = &problem.extensions["violated-policies"];
        assert_eq!(*violated, serde_json::json!(["ip:global:1h"]));
    }
}
