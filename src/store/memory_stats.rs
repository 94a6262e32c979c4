//! Memory statistics of a store: [`MemoryStats`].

/// Counters that a store keeps in the memory of this process, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStats {
    counters: u64,
    evicted: u64,
    overflowed: u64,
}

impl MemoryStats {
    /// Returns statistics with these numbers; see the methods.
    #[must_use]
    pub const fn new(counters: u64, evicted: u64) -> Self {
        Self {
            counters,
            evicted,
            overflowed: 0,
        }
    }

    /// Sets the number of [overflowed](Self::overflowed) checks. Default: 0.
    #[must_use]
    pub const fn with_overflowed(mut self, overflowed: u64) -> Self {
        self.overflowed = overflowed;
        self
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

    /// Returns the number of checks that were counted in a counter which callers share, because the
    /// store had no room for a counter of their own.
    #[must_use]
    pub const fn overflowed(&self) -> u64 {
        self.overflowed
    }
}
