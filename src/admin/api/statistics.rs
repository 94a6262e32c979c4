//! What has happened, and whether all is well, in one answer: pages ask for it every few seconds.

use axum::extract::State;
use serde::Serialize;

use super::{Answer, Shared, maintenance, policy};
use crate::admin::instant::Instant;
use crate::admin::reply;
use crate::admin::subject::Dimensions;
use crate::observe::{
    Alert, Distinct, EndpointStatistics, Offender, PolicyStatistics, Retries, Statistics,
    TimeBucket, Totals,
};
use crate::pipeline::RequestPipeline;
use crate::policy::dimensions;
use crate::store::StoreHealth;

/// More endpoints, or policies, than this are not listed: nobody reads on.
const MOST: usize = 100;

pub(super) async fn show(State(desk): State<Shared>) -> Answer {
    let statistics = desk.layer.statistics();
    Ok(reply::ok(&Told {
        figures: Figures::from(&statistics),
        store: ToldStore::new(desk.pipeline(), &statistics),
        maintenance: maintenance::Told::of(&desk),
        policy: (&desk.layer.policy_status()).into(),
    }))
}

#[derive(Serialize)]
struct Told {
    #[serde(flatten)]
    figures: Figures,
    store: ToldStore,
    maintenance: maintenance::Told,
    policy: policy::InForce,
}

#[derive(Serialize)]
struct Figures {
    at: Instant,
    since: Instant,
    totals: ToldTotals,
    denied_last_hour: u64,
    denied_last_day: u64,
    denied_the_day_before: Option<u64>,
    last_hour: Vec<ToldSpan>,
    last_day: Vec<ToldSpan>,
    endpoints: Vec<ToldEndpoint>,
    policies: Vec<ToldPolicy>,
    offenders: Vec<ToldOffender>,
    violators: ToldDistinct,
    violating_addresses: ToldDistinct,
    ordinary_denied: Option<f64>,
    retries: ToldRetries,
    alerts: Vec<ToldAlert>,
}

impl From<&Statistics> for Figures {
    fn from(of: &Statistics) -> Self {
        Self {
            at: Instant(of.at()),
            since: Instant(of.since()),
            totals: of.totals().into(),
            denied_last_hour: of.denied_last_hour(),
            denied_last_day: of.denied_last_day(),
            denied_the_day_before: of.denied_the_day_before(),
            last_hour: of.last_hour().iter().map(Into::into).collect(),
            last_day: of.last_day().iter().map(Into::into).collect(),
            endpoints: endpoints(of),
            policies: of.policies().iter().take(MOST).map(Into::into).collect(),
            offenders: of.offenders().iter().map(Into::into).collect(),
            violators: of.violators().into(),
            violating_addresses: of.violating_addresses().into(),
            ordinary_denied: of.ordinary_denied(),
            retries: of.retries().into(),
            alerts: of.alerts().iter().map(Into::into).collect(),
        }
    }
}

#[derive(Serialize)]
struct ToldTotals {
    allowed: u64,
    denied: u64,
    exempt: u64,
    warned: u64,
    would_deny: u64,
    unavailable: u64,
    uncounted: u64,
    store_failures: u64,
    invalid_credentials: u64,
}

impl From<&Totals> for ToldTotals {
    fn from(of: &Totals) -> Self {
        Self {
            allowed: of.allowed(),
            denied: of.denied(),
            exempt: of.exempt(),
            warned: of.warned(),
            would_deny: of.would_deny(),
            unavailable: of.unavailable(),
            uncounted: of.uncounted(),
            store_failures: of.store_failures(),
            invalid_credentials: of.invalid_credentials(),
        }
    }
}

#[derive(Serialize)]
struct ToldSpan {
    from: Instant,
    allowed: u64,
    denied: u64,
}

impl From<&TimeBucket> for ToldSpan {
    fn from(of: &TimeBucket) -> Self {
        Self {
            from: Instant(of.from()),
            allowed: of.allowed(),
            denied: of.denied(),
        }
    }
}

#[derive(Serialize)]
struct ToldEndpoint {
    name: String,
    allowed: u64,
    denied: u64,
    denied_last_hour: u64,
    denied_last_day: u64,
    /// Share of the denials of all endpoints in the last day, those included that are not listed;
    /// 0 if there were none.
    denied_share: f64,
    average_remaining: Option<f64>,
}

fn endpoints(of: &Statistics) -> Vec<ToldEndpoint> {
    let denied = of.denied_last_day();
    let listed = of.endpoints().iter().take(MOST);
    listed
        .map(|endpoint| ToldEndpoint::new(endpoint, denied))
        .collect()
}

impl ToldEndpoint {
    /// `all` is the number of denials of all endpoints in the last day.
    #[expect(clippy::cast_precision_loss, reason = "it is a share")]
    fn new(of: &EndpointStatistics, all: u64) -> Self {
        Self {
            name: of.name().to_owned(),
            allowed: of.allowed(),
            denied: of.denied(),
            denied_last_hour: of.denied_last_hour(),
            denied_last_day: of.denied_last_day(),
            denied_share: of.denied_last_day() as f64 / all.max(1) as f64,
            average_remaining: of.average_remaining(),
        }
    }
}

#[derive(Serialize)]
struct ToldPolicy {
    name: String,
    allowed: u64,
    denied: u64,
    warned: u64,
    would_deny: u64,
}

impl From<&PolicyStatistics> for ToldPolicy {
    fn from(of: &PolicyStatistics) -> Self {
        Self {
            name: of.name().to_owned(),
            allowed: of.allowed(),
            denied: of.denied(),
            warned: of.warned(),
            would_deny: of.would_deny(),
        }
    }
}

#[derive(Serialize)]
struct ToldOffender {
    subject: Dimensions,
    counter: String,
    denied: u64,
    at_least: u64,
    last_seen: Instant,
    policy: String,
}

impl From<&Offender> for ToldOffender {
    fn from(of: &Offender) -> Self {
        Self {
            subject: (&of.subject()).into(),
            counter: dimensions(&of.subject()),
            denied: of.denied(),
            at_least: of.at_least(),
            last_seen: Instant(of.last_seen()),
            policy: of.policy().to_owned(),
        }
    }
}

#[derive(Serialize)]
struct ToldDistinct {
    count: u64,
    exact: bool,
}

impl From<Distinct> for ToldDistinct {
    fn from(of: Distinct) -> Self {
        Self {
            count: of.count(),
            exact: of.is_exact(),
        }
    }
}

#[derive(Serialize)]
struct ToldRetries {
    admitted: u64,
    denied_again: u64,
    too_soon: u64,
    success: Option<f64>,
}

impl From<&Retries> for ToldRetries {
    fn from(of: &Retries) -> Self {
        Self {
            admitted: of.admitted(),
            denied_again: of.denied_again(),
            too_soon: of.too_soon(),
            success: of.success(),
        }
    }
}

#[derive(Serialize)]
struct ToldAlert {
    kind: &'static str,
    severity: &'static str,
    since: Instant,
    text: String,
    value: f64,
    threshold: f64,
    subject: Option<Dimensions>,
    counter: Option<String>,
}

impl From<&Alert> for ToldAlert {
    fn from(of: &Alert) -> Self {
        Self {
            kind: of.kind().name(),
            severity: of.severity().name(),
            since: Instant(of.since()),
            text: of.to_string(),
            value: of.value(),
            threshold: of.threshold(),
            subject: of.subject().as_ref().map(Into::into),
            counter: of.subject().as_ref().map(dimensions),
        }
    }
}

/// Whether the store answers: by its own word, or by what has become of the last requests.
#[derive(Serialize)]
struct ToldStore {
    healthy: bool,
    since: Option<Instant>,
    why: Option<String>,
}

impl ToldStore {
    fn new(pipeline: &RequestPipeline, statistics: &Statistics) -> Self {
        if let StoreHealth::Degraded { since, why, .. } = pipeline.store_health() {
            return Self {
                healthy: false,
                since: Some(Instant(since)),
                why: Some(why.to_string()),
            };
        }
        let since = statistics.store_failing_since();
        Self {
            healthy: since.is_none(),
            since: since.map(Instant),
            why: None,
        }
    }
}
