//! pingora-limits: a rate estimated by a sketch.

use pingora_limits::rate::Rate;

use crate::work::Allowance;

/// Its estimator as it comes.
pub struct PingoraLimits {
    rate: Rate,
    most: isize,
}

impl PingoraLimits {
    pub const NAME: &'static str = "pingora-limits";
    pub const NOTE: &'static str = "\
pingora-limits: does less. It adds to four counters of a sketch that all keys share (4 × 1024 by \
default) and takes the least, so it keeps no keys, and its count is too high wherever keys \
collide: with 100 thousand keys, always. It reports neither the remaining quota nor when to retry.";

    pub fn new(allowance: Allowance) -> Self {
        Self {
            rate: Rate::new(allowance.window),
            most: allowance.amount.try_into().expect("a small number"),
        }
    }

    #[inline]
    pub fn decide(&self, key: &str) -> bool {
        self.rate.observe(&key, 1) <= self.most
    }
}
