//! Which rules apply to a request, and with which numbers.
