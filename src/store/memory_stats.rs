//! Memory statistics of a store: [`MemoryStats`].

/// Counters that a store keeps in the memory of this process, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStats {
    counters: u64,
    evicted: u64,
}

impl MemoryStats {
    /// Returns statistics with these numbers; see the methods.
    #[must_use]
    pub const fn new(counters: u64, evicted: u64) -> Self {
        Self { counters, evicted }
    }

    /// Returns the number of counters, including expired ones that have not been swept.
    #[must_use]
    pub const fn counters(&self) -> u64 {
        self.counters
    }

    /// Returns the number of counters that were evicted before they had expired.
    #[must_use]
    pub const fn evicted(&self) -> u64 {
        self.evicted
    }
}
