//! What a store keeps in this process.

/// What a store keeps in the memory of this process, for those who watch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStats {
    counters: u64,
    evicted: u64,
}

impl MemoryStats {
    /// So many counters, and so many that had to make way so far while they still counted.
    #[must_use]
    pub const fn new(counters: u64, evicted: u64) -> Self {
        Self { counters, evicted }
    }

    /// How many counters there are, those included that have expired but not been swept.
    #[must_use]
    pub const fn counters(&self) -> u64 {
        self.counters
    }

    /// How many had to make way so far while they still counted.
    #[must_use]
    pub const fn evicted(&self) -> u64 {
        self.evicted
    }
}
