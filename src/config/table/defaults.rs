//! `[defaults]`

use super::quota::ALGORITHMS;
use super::rule::{ON_STORE_FAILURE, on_store_failure};
use super::{KeySpec, TableSpec, ValueKind, set_if};
use crate::config::tree::Setting;
use crate::headers::{HeaderStyle, ResetStyle};
use crate::policy::PolicyBuilder;
use crate::quota::Algorithm;

const HEADERS: &[&str] = &["legacy", "ietf", "both", "none"];
const RESET: &[&str] = &["unix-seconds", "delta-seconds"];

pub(super) static DEFAULTS: TableSpec = TableSpec::new(&[
    KeySpec::new(
        "algorithm",
        ValueKind::Choice(ALGORITHMS),
        "Algorithm of quotas that name none.",
    )
    .default("\"sliding-window\""),
    KeySpec::new(
        "warn_at",
        ValueKind::Number("a share of the limit such as `0.8`; above 1 for never"),
        "Share of a limit from which responses carry a warning.",
    )
    .default("0.8"),
    KeySpec::new(
        "headers",
        ValueKind::Choice(HEADERS),
        "Rate limit headers of responses.",
    )
    .default("\"legacy\""),
    KeySpec::new(
        "reset",
        ValueKind::Choice(RESET),
        "Format of `X-RateLimit-Reset`.",
    )
    .default("\"unix-seconds\""),
    KeySpec::new(
        "on_store_failure",
        ValueKind::Choice(ON_STORE_FAILURE),
        "What happens to requests while the store is unavailable.",
    )
    .default("\"local\""),
    KeySpec::new(
        "local_share",
        ValueKind::Number("a share of the limit above 0 and up to 1, such as `0.25`"),
        "Share of each limit that one process may admit while the store is unavailable.",
    )
    .default("1"),
]);

pub(super) fn algorithm(table: Option<&Setting<'_>>) -> Algorithm {
    let algorithm = table.and_then(|table| table.parse("algorithm"));
    algorithm.unwrap_or_default()
}

pub(super) fn read(table: &Setting<'_>, policy: PolicyBuilder) -> PolicyBuilder {
    let number = |key| table.get(key).and_then(|value| value.number());
    let policy = set_if(policy, number("warn_at"), PolicyBuilder::warn_at);
    let policy = set_if(policy, number("local_share"), PolicyBuilder::local_share);
    set_if(
        policy,
        on_store_failure(table),
        PolicyBuilder::on_store_failure,
    )
}

/// Returns the style of headers, if the table sets a part of it.
pub(super) fn header_style(table: &Setting<'_>) -> Option<HeaderStyle> {
    let set = table.parse("headers");
    let reset: Option<ResetStyle> = table.parse("reset");
    (set.is_some() || reset.is_some())
        .then(|| HeaderStyle::new(set.unwrap_or_default()).with_reset(reset.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headers::HeaderSet;

    #[test]
    fn every_choice_is_one_of_the_model() {
        for name in HEADERS {
            assert_eq!(name.parse::<HeaderSet>().unwrap().to_string(), *name);
        }
        for name in RESET {
            assert_eq!(name.parse::<ResetStyle>().unwrap().to_string(), *name);
        }
    }
}
