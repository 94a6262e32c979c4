//! Explains how one request of a caller is counted.

use serde::Serialize;

use crate::error::ValidationError;
use crate::identity_types::Identity;
use crate::pipeline::RequestPipeline;
use crate::policy::{ExplainRequest, Explanation};

/// An explanation for programs, and the same for people.
#[derive(Serialize)]
pub(super) struct Explained {
    request: String,
    endpoint: Option<String>,
    exempt_because: Option<String>,
    counted_by: Vec<String>,
    not_counted_by: Vec<NotCounted>,
    text: String,
}

#[derive(Serialize)]
struct NotCounted {
    rule: String,
    because: String,
}

/// How a request such as `GET /v1/items` would be counted now.
pub(super) fn explained(
    pipeline: &RequestPipeline,
    request: &str,
    identity: Option<Identity>,
    ip: Option<std::net::IpAddr>,
) -> Result<Explained, ValidationError> {
    let mut explain_request = ExplainRequest::new(request)?.at(pipeline.wall_now());
    if let Some(identity) = identity {
        explain_request = explain_request.identity(identity);
    }
    if let Some(ip) = ip {
        let (ip, group) = pipeline.client_of(ip);
        explain_request = explain_request.ip(ip).counted_as(group);
    }
    Ok(pipeline.with_policy(|policy| Explained::from(&policy.explain(&explain_request))))
}

impl From<&Explanation> for Explained {
    fn from(explanation: &Explanation) -> Self {
        let counted_by = explanation.counted_by().map(|by| by.policy().to_owned());
        let not_counted_by = explanation.not_counted_by().map(|rule| NotCounted {
            rule: rule.rule().to_owned(),
            because: rule.why().to_string(),
        });
        Self {
            request: explanation.request().to_owned(),
            endpoint: explanation.endpoint().map(str::to_owned),
            exempt_because: explanation.exempt_because().map(str::to_owned),
            counted_by: counted_by.collect(),
            not_counted_by: not_counted_by.collect(),
            text: explanation.to_string(),
        }
    }
}
