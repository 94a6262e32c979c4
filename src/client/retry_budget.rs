//! How many requests may be sent again.

/// Retries are a share of requests, and a few to begin with: among `n` requests there are never
/// more than `n × share + 10` retries. A server in trouble then gets little more than its usual
/// load.
#[derive(Debug)]
pub(super) struct RetryBudget {
    /// In millionths of a retry.
    saved: u64,
    per_request: u64,
}

impl RetryBudget {
    const RETRY: u64 = 1_000_000;
    const MOST: u64 = 10 * Self::RETRY;

    /// `share` is from 0 to 1. Without any, there is no retry at all.
    pub(super) fn new(share: f64) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "from 0 to a million"
        )]
        let per_request = (share * 1e6).round() as u64;
        Self {
            saved: if per_request == 0 { 0 } else { Self::MOST },
            per_request,
        }
    }

    /// A request was sent for the first time.
    pub(super) fn deposit(&mut self) {
        self.saved = (self.saved + self.per_request).min(Self::MOST);
    }

    /// Whether one may be sent again.
    pub(super) fn withdraw(&mut self) -> bool {
        let rest = self.saved.checked_sub(Self::RETRY);
        self.saved = rest.unwrap_or(self.saved);
        rest.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_are_a_share_of_requests_and_ten() {
        let mut budget = RetryBudget::new(0.2);
        let mut retries = 0;
        for _ in 0..1_000 {
            budget.deposit();
            while budget.withdraw() {
                retries += 1;
            }
        }
        // The first request finds a full purse.
        assert_eq!(retries, 10 + 199);
    }

    #[test]
    fn quiet_times_are_not_saved_up() {
        let mut budget = RetryBudget::new(1.0);
        (0..1_000).for_each(|_| budget.deposit());
        let retries = (0..100).filter(|_| budget.withdraw()).count();
        assert_eq!(retries, 10);
        let mut none = RetryBudget::new(0.0);
        none.deposit();
        assert!(!none.withdraw());
    }
}
