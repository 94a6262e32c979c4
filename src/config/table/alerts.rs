//! `[alerts]`

use super::{PolicyReader, TableSpec, ValueKind, keys};
use crate::config::tree::Setting;
use crate::observe::Alerts;

const DENIALS: ValueKind = ValueKind::Whole("a whole number of denials such as `100`");

pub(super) static ALERTS: TableSpec = TableSpec::new(keys! {
    /// An alert fires above this number of denials within an hour.
    "many_denials": DENIALS, default "100";
    /// An alert fires above this number of denials of one caller within an hour.
    "offender": DENIALS, default "50", aliases ["offenders"];
    /// An alert fires if too large a share of the requests of ordinary callers is denied within an
    /// hour.
    "ordinary_callers_denied": ValueKind::Table(&ORDINARY_CALLERS_DENIED),
        aliases ["ordinary_denied", "false_positives"];
    /// An alert fires if both thresholds are exceeded within ten minutes.
    "distributed_attack": ValueKind::Table(&DISTRIBUTED_ATTACK), aliases ["attack"];
});

static ORDINARY_CALLERS_DENIED: TableSpec = TableSpec::new(keys! {
    /// The alert fires above this share.
    "share": ValueKind::Number("a share from 0 to 1, such as `0.01` for one in a hundred"),
        default "0.01";
    /// Number of requests of ordinary callers below which the alert does not fire.
    "of_at_least": ValueKind::Whole("a whole number of requests such as `100`"), default "100";
});

static DISTRIBUTED_ATTACK: TableSpec = TableSpec::new(keys! {
    /// Number of denials.
    "denials": DENIALS, default "500";
    /// Number of addresses that were denied.
    "addresses": ValueKind::Whole("a whole number of addresses such as `50`"),
        default "50", aliases ["ips"];
});

impl PolicyReader<'_> {
    /// Reads the thresholds. What the table does not set keeps its default.
    pub(super) fn alerts(&mut self, table: &Setting<'_>) -> Alerts {
        let mut alerts = Alerts::default();
        set(&mut alerts.many_denials, whole(table, "many_denials"));
        set(&mut alerts.offender, whole(table, "offender"));
        if let Some(attack) = table.get("distributed_attack") {
            set(&mut alerts.attack_denials, whole(&attack, "denials"));
            set(&mut alerts.attack_addresses, whole(&attack, "addresses"));
        }
        if let Some(ordinary) = table.get("ordinary_callers_denied") {
            let requests = whole(&ordinary, "of_at_least");
            set(&mut alerts.ordinary_requests, requests);
            if let Some(share) = ordinary.get("share") {
                set(&mut alerts.ordinary_denied, share.number());
                return self
                    .report
                    .check(&share, alerts.checked())
                    .unwrap_or_default();
            }
        }
        alerts
    }
}

fn whole(table: &Setting<'_>, key: &str) -> Option<u64> {
    table.get(key)?.whole()
}

fn set<T>(threshold: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *threshold = value;
    }
}
