//! Size of the blocks and when the next one is requested: [`PrefetchPolicy`].

/// A request charges at most this part of what remains, so that other processes get their share.
const MAX_PART_OF_REMAINING: u64 = 4;

/// Adapts to how fast the blocks of one kind of request are spent.
pub(super) struct PrefetchPolicy {
    max_block: u64,
    /// Credits of the next block. Doubles when a block was spent in time, halves when one expired.
    block: u64,
    /// Whether the last block was spent fast. If so, the next one is requested in advance.
    is_hot: bool,
    /// Credits that the counters had room for, by the last reply of the store.
    remaining: u64,
}

impl PrefetchPolicy {
    pub(super) const fn new(max_block: u64) -> Self {
        Self {
            max_block,
            block: 0,
            is_hot: false,
            remaining: 0,
        }
    }

    /// Returns whether the next block is requested in advance, with so many credits left.
    #[inline]
    pub(super) const fn wants_more(&self, credits: u64) -> bool {
        self.is_hot && credits <= self.block
    }

    /// Returns how many credits to request: up to one block, or two if it is hot, in all. Waiters
    /// can raise it to blocks of the maximum size.
    pub(super) fn shortfall(&self, credits: u64, waiters: u64) -> u64 {
        let blocks = if self.is_hot { 2 } else { 1 };
        let needed = waiters.min(self.max_block.saturating_mul(blocks));
        let wanted = self.block.saturating_mul(blocks).max(needed);
        let missing = wanted.saturating_sub(credits);
        missing.min(self.remaining / MAX_PART_OF_REMAINING)
    }

    pub(super) fn on_request(&mut self, credits: u64) {
        self.remaining = self.remaining.saturating_sub(credits);
    }

    pub(super) fn on_arrival(&mut self, remaining: u64) {
        self.remaining = remaining;
    }

    #[cold]
    pub(super) fn on_spent(&mut self, is_hot: bool) {
        self.is_hot = is_hot;
        self.grow();
    }

    pub(super) fn on_unspent(&mut self) {
        (self.block, self.is_hot) = (self.block / 2, false);
    }

    /// The store has denied a block, or failed.
    pub(super) fn on_refused(&mut self) {
        (self.remaining, self.block, self.is_hot) = (0, 1, false);
    }

    /// A request without a lease was allowed.
    pub(super) fn on_allowed(&mut self, remaining: u64) {
        self.remaining = remaining;
        self.block = self.block.max(1);
        self.grow();
    }

    /// A request without a lease was denied.
    pub(super) fn on_denied(&mut self) {
        (self.remaining, self.block) = (0, 1);
    }

    fn grow(&mut self) {
        self.block = self.block.saturating_mul(2).min(self.max_block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: u64 = 10;

    #[test]
    fn blocks_grow_while_they_are_spent_and_a_hot_one_is_requested_in_advance() {
        let mut policy = PrefetchPolicy::new(BLOCK);
        assert_eq!(policy.shortfall(0, 0), 0, "no request was seen");
        let mut sizes = Vec::new();
        policy.on_allowed(1_000);
        for _ in 0..4 {
            sizes.push(policy.shortfall(0, 0));
            policy.on_spent(false);
        }
        assert_eq!(sizes, [2, 4, 8, 10]);
        assert!(!policy.wants_more(0), "requested when needed");
        policy.on_spent(true);
        assert_eq!(policy.shortfall(10, 0), 10);
        assert!(policy.wants_more(10) && !policy.wants_more(11));
        policy.on_unspent();
        assert_eq!(policy.shortfall(0, 0), 5);
    }

    #[test]
    fn at_most_two_blocks_and_a_quarter_of_what_remains_are_requested() {
        let mut policy = PrefetchPolicy::new(BLOCK);
        policy.on_allowed(1_000_000);
        for _ in 0..5 {
            policy.on_spent(true);
        }
        for (remaining, requested) in [(1_000_000, 20), (80, 20), (79, 19), (8, 2)] {
            policy.on_arrival(remaining);
            assert_eq!(policy.shortfall(0, 1_000), requested, "{remaining} remain");
        }
        policy.on_refused();
        assert_eq!(policy.shortfall(0, 1_000), 0);
    }
}
