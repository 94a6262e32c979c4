//! `[defaults]`

use std::sync::Arc;

use super::{PolicyReader, TableSpec, ValueKind, keys, parse_duration, set_if};
use crate::config::tree::Setting;
use crate::headers::{HeaderSet, HeaderStyle, ResetStyle};
use crate::pipeline::LayerOverrides;
use crate::policy::{OnStoreFailure, PolicyBuilder};
use crate::quota::Algorithm;
use crate::response::{Auto, ProblemJson, Render};

const RENDER: &[&str] = &["json", "problem+json"];

pub(super) static DEFAULTS: TableSpec = TableSpec::new(keys! {
    /// Algorithm of quotas that name none.
    "algorithm": ValueKind::Choice(Algorithm::NAMES), default "\"sliding-window\"";
    /// Share of a limit from which responses carry a warning.
    "warn_at": ValueKind::Number("a share of the limit such as `0.8`; above 1 for never"),
        default "0.8";
    /// Rate limit headers of responses.
    "headers": ValueKind::Choice(HeaderSet::NAMES), default "\"legacy\"";
    /// Format of `X-RateLimit-Reset`.
    "reset": ValueKind::Choice(ResetStyle::NAMES), default "\"unix-seconds\"";
    /// Body of denials: the JSON envelope, or problem details (RFC 9457). gRPC requests get a gRPC
    /// status.
    "render": ValueKind::Choice(RENDER), default "\"json\"", aliases ["renderer", "body"];
    /// Longest random time that is added to `Retry-After`, so that clients that were denied
    /// together do not come back together. Does not change `X-RateLimit-Reset`.
    "retry_after_jitter": ValueKind::Text("a length of time such as `10s`"),
        default "\"0s\"", aliases ["jitter"];
    /// What happens to requests while the store is unavailable.
    "on_store_failure": ValueKind::Choice(OnStoreFailure::NAMES), default "\"local\"";
    /// Share of each limit that one process may admit while the store is unavailable.
    "local_share": ValueKind::Number("a share of the limit above 0 and up to 1, such as `0.25`"),
        default "1";
});
pub(super) fn read(table: &Setting<'_>, policy: PolicyBuilder) -> PolicyBuilder {
    let number = |key| table.get(key).and_then(|value| value.number());
    let policy = set_if(policy, number("warn_at"), PolicyBuilder::warn_at);
    let policy = set_if(policy, number("local_share"), PolicyBuilder::local_share);
    set_if(
        policy,
        table.parse("on_store_failure"),
        PolicyBuilder::on_store_failure,
    )
}

impl PolicyReader<'_> {
    /// Reads how responses look.
    pub(super) fn responses(&mut self, table: &Setting<'_>) -> LayerOverrides {
        let jitter = table
            .get("retry_after_jitter")
            .and_then(|value| self.report.check(&value, parse_duration(value.text()?)));
        LayerOverrides {
            style: header_style(table),
            renderer: table.text_of("render").and_then(renderer),
            retry_after_jitter: jitter,
            ..LayerOverrides::default()
        }
    }
}

fn renderer(name: &str) -> Option<Arc<dyn Render>> {
    match name {
        "json" => Some(Arc::new(Auto::new())),
        "problem+json" => Some(Arc::new(Auto::or(ProblemJson))),
        _ => None,
    }
}

/// Returns the style of headers, if the table sets a part of it.
fn header_style(table: &Setting<'_>) -> Option<HeaderStyle> {
    let set = table.parse("headers");
    let reset: Option<ResetStyle> = table.parse("reset");
    (set.is_some() || reset.is_some())
        .then(|| HeaderStyle::new(set.unwrap_or_default()).with_reset(reset.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_body_has_a_renderer() {
        for name in RENDER {
            assert!(renderer(name).is_some(), "{name}");
        }
    }
}
