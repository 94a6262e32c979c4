//! Explains how one request of a caller is counted.

use std::net::IpAddr;

use serde::Serialize;

use crate::identity_types::Identity;
use crate::pipeline::RequestPipeline;
use crate::policy::{ExplainRequest, Explanation};

/// Explanation as JSON and as text.
#[derive(Serialize)]
pub(super) struct Explained {
    #[serde(flatten)]
    explanation: Explanation,
    text: String,
}

/// Explains how a request would be counted now.
pub(super) fn explained(
    pipeline: &RequestPipeline,
    request: ExplainRequest,
    identity: Option<Identity>,
    ip: Option<IpAddr>,
) -> Explained {
    let mut explain_request = request.at(pipeline.wall_now());
    if let Some(identity) = identity {
        explain_request = explain_request.identity(identity);
    }
    if let Some(ip) = ip {
        let (ip, group) = pipeline.client_of(ip);
        explain_request = explain_request.ip(ip).counted_as(group);
    }
    let explanation = pipeline.with_policy(|policy| policy.explain(&explain_request));
    let text = explanation.to_string();
    Explained { explanation, text }
}
