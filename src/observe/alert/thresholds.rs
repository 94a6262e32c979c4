//! Thresholds of alerts: [`Alerts`].

use crate::error::ValidationError;

/// Thresholds of alerts. The defaults suit a service of moderate size.
///
/// The table `[alerts]` of a policy file has the same names. A reload of the file changes thresholds and
/// keeps the denials that were counted.
///
/// ```
/// use tollgate::RateLimitLayer;
/// use tollgate::observe::Alerts;
///
/// let limits = RateLimitLayer::builder("100/minute")
///     .alerts(Alerts::default().many_denials(5_000).offender(500))
///     .build()?;
/// # let _ = limits;
/// # Ok::<(), tollgate::ValidationErrors>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use]
pub struct Alerts {
    pub(crate) many_denials: u64,
    pub(crate) offender: u64,
    pub(crate) ordinary_denied: f64,
    pub(crate) ordinary_requests: u64,
    pub(crate) attack_denials: u64,
    pub(crate) attack_addresses: u64,
}

impl Default for Alerts {
    fn default() -> Self {
        Self {
            many_denials: 100,
            offender: 50,
            ordinary_denied: 0.01,
            ordinary_requests: 100,
            attack_denials: 500,
            attack_addresses: 50,
        }
    }
}

impl Alerts {
    /// Fires when more requests than this were denied within an hour. Default: 100.
    pub const fn many_denials(mut self, denials: u64) -> Self {
        self.many_denials = denials;
        self
    }

    /// Fires when more requests than this of one caller were denied within an hour. Default: 50.
    pub const fn offender(mut self, denials: u64) -> Self {
        self.offender = denials;
        self
    }

    /// Fires when more than this share of the requests of ordinary callers was denied within an
    /// hour, and there were at least `of_at_least` requests. Default: 0.01 of at least 100. See
    /// [`Statistics::ordinary_denied`](crate::observe::Statistics::ordinary_denied).
    pub const fn ordinary_callers_denied(mut self, share: f64, of_at_least: u64) -> Self {
        self.ordinary_denied = share;
        self.ordinary_requests = of_at_least;
        self
    }

    /// Fires when more requests than this, from more addresses than this, were denied within ten
    /// minutes. Default: 500 from 50.
    pub const fn distributed_attack(mut self, denials: u64, addresses: u64) -> Self {
        self.attack_denials = denials;
        self.attack_addresses = addresses;
        self
    }

    /// Rejects a share outside of 0 to 1.
    pub(crate) fn checked(self) -> Result<Self, ValidationError> {
        if (0.0..=1.0).contains(&self.ordinary_denied) {
            return Ok(self);
        }
        let expected = "a share from 0 to 1, such as 0.01 for one in a hundred";
        Err(ValidationError::new(
            "alerts.ordinary_callers_denied",
            self.ordinary_denied,
            expected,
        ))
    }
}
