//! The wire format of rate limit headers, written and read in one place.
