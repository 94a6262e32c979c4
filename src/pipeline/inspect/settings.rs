//! Settings that apply besides the policy: [`SettingsView`].

use serde::Serialize;

use super::super::RequestPipeline;
use crate::identity::Identify;

/// Settings of a layer, from code and from the policy file, as the dashboard shows them.
#[derive(Debug, Serialize)]
pub(crate) struct SettingsView {
    /// The used share of a limit from which on responses have a warning.
    warn_at: f64,
    /// `legacy`, `ietf`, `both` or `none`.
    headers: String,
    /// Format of `X-RateLimit-Reset`: `unix-seconds` or `delta-seconds`.
    reset: String,
    /// Identity sources in their order: ``JWT in `Authorization: Bearer` (HS256)``.
    identity: Vec<String>,
    /// What happens to requests with wrong credentials: `anonymous` or `reject`.
    on_invalid_credentials: &'static str,
}

impl RequestPipeline {
    /// Returns the settings that apply.
    pub(crate) fn settings(&self) -> SettingsView {
        let snapshot = self.snapshot.load();
        let style = snapshot.style();
        let sources = snapshot.chain().sources();
        SettingsView {
            warn_at: snapshot.policy.warn_at(),
            headers: style.set().to_string(),
            reset: style.reset().to_string(),
            identity: sources.map(Identify::description).collect(),
            on_invalid_credentials: snapshot.on_invalid_credentials().name(),
        }
    }
}
