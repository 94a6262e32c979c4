//! What a request that was turned away is told.
