//! Plain figures.

/// How many requests came to which end since the layer was built. Exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Totals {
    pub(in crate::observe) allowed: u64,
    pub(in crate::observe) denied: u64,
    pub(in crate::observe) exempt: u64,
    pub(in crate::observe) warned: u64,
    pub(in crate::observe) would_deny: u64,
    pub(in crate::observe) unavailable: u64,
    pub(in crate::observe) uncounted: u64,
    pub(in crate::observe) store_failures: u64,
    pub(in crate::observe) invalid_credentials: u64,
}

impl Totals {
    /// Counted, and let through.
    #[must_use]
    pub const fn allowed(&self) -> u64 {
        self.allowed
    }

    /// Turned away because a limit was reached.
    #[must_use]
    pub const fn denied(&self) -> u64 {
        self.denied
    }

    /// Not counted, because route, address, caller or a maintenance window are exempt.
    #[must_use]
    pub const fn exempt(&self) -> u64 {
        self.exempt
    }

    /// Of those that were allowed: how many were told that they come close to a limit.
    #[must_use]
    pub const fn warned(&self) -> u64 {
        self.warned
    }

    /// How often a rule that is only tried out would have turned a request away.
    #[must_use]
    pub const fn would_deny(&self) -> u64 {
        self.would_deny
    }

    /// Turned away because the store could not answer, and a rule wants that.
    #[must_use]
    pub const fn unavailable(&self) -> u64 {
        self.unavailable
    }

    /// Let through without being counted: no rule was for them, or the store could not answer
    /// and their rules want that.
    #[must_use]
    pub const fn uncounted(&self) -> u64 {
        self.uncounted
    }

    /// How often the store could not answer.
    #[must_use]
    pub const fn store_failures(&self) -> u64 {
        self.store_failures
    }

    /// How many requests showed credentials that were wrong.
    #[must_use]
    pub const fn invalid_credentials(&self) -> u64 {
        self.invalid_credentials
    }
}

/// One endpoint of the policy.
///
/// Endpoints of the first 1,024 routes that a layer has ever had are told apart; more, which
/// takes many reloads, are told of together as `(others)`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct EndpointStatistics {
    pub(in crate::observe) name: Box<str>,
    pub(in crate::observe) allowed: u64,
    pub(in crate::observe) denied: u64,
    pub(in crate::observe) denied_last_hour: u64,
    pub(in crate::observe) denied_last_day: u64,
    pub(in crate::observe) average_remaining: Option<f64>,
}

impl EndpointStatistics {
    /// The route as the policy says it, `GET /v1/secrets/{id}`; `*` is everything that no
    /// endpoint of the policy matches.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Allowed since the layer was built.
    #[must_use]
    pub const fn allowed(&self) -> u64 {
        self.allowed
    }

    /// Denied since the layer was built.
    #[must_use]
    pub const fn denied(&self) -> u64 {
        self.denied
    }

    /// Denied within the last hour, in steps of five minutes.
    #[must_use]
    pub const fn denied_last_hour(&self) -> u64 {
        self.denied_last_hour
    }

    /// Returns the denials of [the last day](crate::observe::Statistics::last_day).
    #[must_use]
    pub const fn denied_last_day(&self) -> u64 {
        self.denied_last_day
    }

    /// How much of its tightest quota a request found left on average over the last hour: 1 is
    /// all of it, 0 nothing. Over what was allowed and denied. `None` if there was nothing.
    #[must_use]
    pub const fn average_remaining(&self) -> Option<f64> {
        self.average_remaining
    }
}

/// One quota, by the name that callers see: `user:secrets:1h`.
///
/// A request is told of under the quota that speaks for it: the tightest one if it was allowed,
/// the one with the longest wait if it was denied.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PolicyStatistics {
    pub(in crate::observe) name: Box<str>,
    pub(in crate::observe) allowed: u64,
    pub(in crate::observe) denied: u64,
    pub(in crate::observe) warned: u64,
    pub(in crate::observe) would_deny: u64,
}

impl PolicyStatistics {
    /// The name: `user:secrets:1h`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Allowed since the layer was built.
    #[must_use]
    pub const fn allowed(&self) -> u64 {
        self.allowed
    }

    /// Denied since the layer was built.
    #[must_use]
    pub const fn denied(&self) -> u64 {
        self.denied
    }

    /// Allowed, with a warning.
    #[must_use]
    pub const fn warned(&self) -> u64 {
        self.warned
    }

    /// What it would have denied, were it not only tried out.
    #[must_use]
    pub const fn would_deny(&self) -> u64 {
        self.would_deny
    }
}

/// How many different ones there were.
///
/// Up to some two thousand are counted one by one. More are estimated, and the estimate is off
/// by about three in a hundred, however many there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Distinct {
    pub(in crate::observe) count: u64,
    pub(in crate::observe) is_exact: bool,
}

impl Distinct {
    /// How many.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Whether they were counted, and not estimated.
    #[must_use]
    pub const fn is_exact(&self) -> bool {
        self.is_exact
    }
}

/// What became of callers who were turned away, and told when to come back.
///
/// Of each caller the first denial is followed until a request is decided by the same quota
/// after the time that was told. Some four thousand callers are followed at a time; under an
/// attack of more, those that came first make way, and what is told is of a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retries {
    pub(in crate::observe) admitted: u64,
    pub(in crate::observe) denied_again: u64,
    pub(in crate::observe) too_soon: u64,
}

impl Retries {
    /// Came back after the time that they were told, and were let through.
    #[must_use]
    pub const fn admitted(&self) -> u64 {
        self.admitted
    }

    /// Came back after the time that they were told, and were denied again: others had used
    /// what they share.
    #[must_use]
    pub const fn denied_again(&self) -> u64 {
        self.denied_again
    }

    /// How many requests came before the time that was told, and were denied for it.
    #[must_use]
    pub const fn too_soon(&self) -> u64 {
        self.too_soon
    }

    /// The share of those who waited that were let through then, from 0 to 1; `None` if nobody
    /// has come back.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "it is a share")]
    pub fn success(&self) -> Option<f64> {
        let waited = self.admitted + self.denied_again;
        (waited > 0).then(|| self.admitted as f64 / waited as f64)
    }
}
