//! The script's reply to one request: the instant, then outcome, used and reset of each check.

use bytes::Bytes;

use crate::clock::Timestamp;
use crate::usage::{Outcome, Usage, Usages};

pub(super) const INSTANT_BYTES: usize = 7;
pub(super) const USAGE_BYTES: usize = 15;

/// Where the usages of a batch are in the reply.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    pub(super) rows: Vec<Row>,
    /// Number of checks in the live group, which come first.
    pub(super) live: usize,
}

/// One check of a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) limit: u64,
    /// Its index in the reply. `None` for quotas without a counter, which are not sent.
    pub(super) place: Option<u8>,
}

impl Reading {
    /// Decodes a reply. Returns `None` if it is malformed.
    pub(super) fn usages(&self, reply: &[u8]) -> Option<Usages> {
        let at = instant(reply)?;
        let mut usages = Usages::with_live(self.live, at);
        for row in &self.rows {
            usages.push(match row.place {
                Some(place) => decode(usage_bytes(reply, usize::from(place))?, row.limit)?,
                None => without_counter(row.limit, at),
            });
        }
        Some(usages)
    }

    /// Returns the usages of a batch in which no check has a counter.
    pub(super) fn usages_without_counters(&self, now: Timestamp) -> Usages {
        let mut usages = Usages::with_live(self.live, now);
        for row in &self.rows {
            usages.push(without_counter(row.limit, now));
        }
        usages
    }
}

/// The instant of the decision. `None` if the reply is malformed.
pub(super) fn instant(reply: &[u8]) -> Option<Timestamp> {
    Some(Timestamp::from_micros(decode_number(
        reply.get(..INSTANT_BYTES)?,
    )))
}

/// Whether the counter of this check had room. `false` if the reply is malformed.
pub(super) fn is_allowed(reply: &[u8], place: usize) -> bool {
    usage_bytes(reply, place).is_some_and(|usage| usage[0] == 0)
}

/// Replaces the usages of some checks by those of another reply to the same checks.
pub(super) fn replace(reply: &Bytes, other: &[u8], is_replaced: impl Fn(usize) -> bool) -> Bytes {
    let mut joined = reply.to_vec();
    let usages = joined.get_mut(INSTANT_BYTES..).unwrap_or_default();
    for (place, usage) in usages.chunks_exact_mut(USAGE_BYTES).enumerate() {
        if let Some(new) = usage_bytes(other, place).filter(|_| is_replaced(place)) {
            usage.copy_from_slice(new);
        }
    }
    joined.into()
}

/// Joins the replies to the parts of a request. Their instants differ a little. The earliest is
/// reported: a reset is then never taken to be nearer than it is.
pub(super) fn join(replies: &[Bytes]) -> Bytes {
    let instants = replies
        .iter()
        .filter_map(|reply| reply.get(..INSTANT_BYTES));
    let earliest = instants.min_by_key(|instant| decode_number(instant));
    let mut joined = earliest.unwrap_or_default().to_vec();
    for reply in replies {
        joined.extend(reply.get(INSTANT_BYTES..).unwrap_or_default());
    }
    joined.into()
}

fn usage_bytes(reply: &[u8], place: usize) -> Option<&[u8]> {
    let from = INSTANT_BYTES + place * USAGE_BYTES;
    reply.get(from..from + USAGE_BYTES)
}

fn decode(bytes: &[u8], limit: u64) -> Option<Usage> {
    let (outcome, numbers) = bytes.split_first()?;
    let (used, reset_at) = numbers.split_at_checked(INSTANT_BYTES)?;
    let outcome = match outcome {
        0 => Outcome::Allowed,
        1 => Outcome::Denied,
        2 => Outcome::ExceedsCapacity,
        _ => return None,
    };
    let reset_at = Timestamp::end(decode_number(reset_at));
    Some(Usage::new(limit, decode_number(used), reset_at, outcome))
}

/// Returns the usage of a quota that counts nothing: `blocked`, with the limit 0, or `unlimited`.
const fn without_counter(limit: u64, now: Timestamp) -> Usage {
    if limit == 0 {
        Usage::blocked(now)
    } else {
        Usage::new(limit, 0, now, Outcome::Allowed)
    }
}

fn decode_number(little_endian: &[u8]) -> u64 {
    let digits = little_endian.iter().rev();
    digits.fold(0, |number, byte| number << 8 | u64::from(*byte))
}
