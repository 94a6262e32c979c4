//! Limit of retries per host.

/// Retries are a share of requests plus ten: among `n` requests there are at most `n × share + 10`
/// retries, so that a failing server gets little more than its usual load.
#[derive(Debug)]
pub(super) struct RetryBudget {
    /// In millionths of a retry.
    balance: u64,
    per_request: u64,
}

impl RetryBudget {
    const RETRY: u64 = 1_000_000;
    const MAX: u64 = 10 * Self::RETRY;

    /// `share` is from 0 to 1. With 0 there are no retries.
    pub(super) fn new(share: f64) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "from 0 to 1,000,000"
        )]
        let per_request = (share * 1e6).round() as u64;
        Self {
            balance: if per_request == 0 { 0 } else { Self::MAX },
            per_request,
        }
    }

    /// Adds the share of a request that is sent for the first time.
    pub(super) fn deposit(&mut self) {
        self.balance = (self.balance + self.per_request).min(Self::MAX);
    }

    /// Takes one retry. Returns whether there was one.
    pub(super) fn withdraw(&mut self) -> bool {
        let rest = self.balance.checked_sub(Self::RETRY);
        self.balance = rest.unwrap_or(self.balance);
        rest.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_are_a_share_of_requests_plus_ten() {
        let mut budget = RetryBudget::new(0.2);
        let mut retries = 0;
        for _ in 0..1_000 {
            budget.deposit();
            while budget.withdraw() {
                retries += 1;
            }
        }
        // The first request finds a full budget.
        assert_eq!(retries, 10 + 199);
    }

    #[test]
    fn the_budget_is_capped() {
        let mut budget = RetryBudget::new(1.0);
        (0..1_000).for_each(|_| budget.deposit());
        let retries = (0..100).filter(|_| budget.withdraw()).count();
        assert_eq!(retries, 10);
        let mut none = RetryBudget::new(0.0);
        none.deposit();
        assert!(!none.withdraw());
    }
}
