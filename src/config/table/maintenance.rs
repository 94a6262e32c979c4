//! `[maintenance]`

use super::{PolicyReader, TableSpec, ValueKind, keys, set_if};
use crate::config::tree::{ConfigValue, Setting};
use crate::policy::PolicyBuilder;

pub(super) static MAINTENANCE: TableSpec = TableSpec::new(keys! {
    /// No request is counted or denied before this time. The limits return by themselves.
    "disabled_until": ValueKind::Time, aliases ["until", "ends_at"];
});

impl PolicyReader<'_> {
    pub(super) fn maintenance(
        &mut self,
        table: &Setting<'_>,
        policy: PolicyBuilder,
    ) -> PolicyBuilder {
        let until = table.get("disabled_until").and_then(|value| {
            let (ConfigValue::Text(text) | ConfigValue::Time(text)) = &value.node.value else {
                return None;
            };
            self.report.check(&value, text.parse())
        });
        set_if(policy, until, PolicyBuilder::disabled_until)
    }
}
