//! Warnings about settings that are valid and probably a mistake.

/// Logs a warning about the configuration.
///
/// `code` is stable API, documented in the operations guide. `description` names the fix. The caller logs
/// each code once.
pub(crate) fn configuration_warning(code: &'static str, description: &str) {
    tracing::warn!(target: "tollgate", code, description, "rate_limit_configuration_warning");
}
