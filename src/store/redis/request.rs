//! A batch in the encoding of the script. `lua/decide.lua` documents the layout.

use bytes::Bytes;

use super::key::Prefix;
use super::reply::{INSTANT_BYTES, Row, USAGE_BYTES};
use super::script::{Kind, Kinds, UNCHARGED, Verb};
use crate::batch::{Batch, Check, Group, MAX_BATCH};
use crate::clock::Timestamp;
use crate::quota::{Algorithm, MAX_COUNT, Quota};

pub(super) use super::reply::Reading;

/// One batch for the script: a template of the script's argument, and the keys it is about.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) kinds: Kinds,
    /// The key of each distinct subject, each followed by the keys of its logs. All keys of a subject
    /// have the same hash tag.
    pub(super) keys: Vec<String>,
    /// The template. Equal for requests that differ in their keys only.
    pub(super) body: Vec<u8>,
}

/// Stands for the server's clock where an instant is expected.
const SERVERS_CLOCK: f64 = -1.0;

// Template: verb, number of checks, number of keys, clock, instant of the charge; then the checks.
const COUNT_AT: usize = 1;
const KEYS_AT: usize = 2;
const CLOCK_AT: usize = 3;
const CHARGED_AT: usize = 11;
pub(super) const HEAD_BYTES: usize = 19;

// Check: id, shape, key, group, five numbers, key of the log, tick power, shape, reserved bytes. The shape
// is there twice, so that the script reads it both with the id and alone.
pub(super) const CHECK_BYTES: usize = 53;
const KEY_AT: usize = 6;
const GROUP_AT: usize = 7;
const COST_AT: usize = 8;
const LOG_AT: usize = 48;
const RESERVED_BYTES: usize = 2;

/// Number of the group [`Group::Live`].
pub(super) const LIVE: u8 = 0;

impl Request {
    /// Encodes a batch, decided at the instant `clock`, or at the server's.
    ///
    /// The request has no keys if no check has a counter. Then there is nothing to send.
    pub(super) fn new(
        verb: Verb,
        batch: &Batch<'_>,
        clock: Option<Timestamp>,
        charged_at: Timestamp,
        prefix: &Prefix,
    ) -> (Self, Reading) {
        let checks = batch.checks();
        let groups = number_groups(batch);
        // A blocked live group admits nothing, so no group is charged.
        let is_blocked = groups.first() == Some(&(LIVE | UNCHARGED));
        let verb = match verb {
            Verb::Decide if is_blocked => Verb::Peek,
            other => other,
        };
        let mut request = Self {
            kinds: Kinds::default(),
            keys: Vec::with_capacity(1),
            body: Vec::with_capacity(HEAD_BYTES + CHECK_BYTES * checks.len()),
        };
        request.body.extend([verb as u8, 0, 0]);
        request.push_number(clock.map_or(SERVERS_CLOCK, |now| exact(now.as_micros())));
        request.push_number(exact(charged_at.as_micros()));
        let row = |check: &Check<'_>| Row {
            limit: check.quota().burst(),
            place: None,
        };
        let mut rows: Vec<Row> = checks.iter().map(row).collect();
        let mut count = 0;
        // The checks of one key follow each other: the script reads and writes key by key.
        for (index, first) in checks.iter().enumerate() {
            if first.quota().counts_nothing() || rows[index].place.is_some() {
                continue;
            }
            request.keys.push(prefix.key(first.subject()));
            let key = request.keys.len();
            for (index, check) in checks.iter().enumerate().skip(index) {
                let is_same = std::ptr::eq(check.subject(), first.subject())
                    || check.subject() == first.subject();
                if is_same && !check.quota().counts_nothing() {
                    request.push_check(check, key, groups[index]);
                    rows[index].place = Some(count);
                    count += 1;
                }
            }
        }
        request.body[COUNT_AT] = count;
        request.body[KEYS_AT] = byte(request.keys.len());
        let live = batch.live_len();
        (request, Reading { rows, live })
    }

    /// Length of the reply.
    pub(super) fn answer_bytes(&self) -> usize {
        let usages = match self.verb() {
            Verb::Refund => 0,
            _ => self.checks().len(),
        };
        INSTANT_BYTES + usages * USAGE_BYTES
    }

    pub(super) fn verb(&self) -> Verb {
        let all = [Verb::Decide, Verb::Peek, Verb::Record, Verb::Refund];
        let verb = all.into_iter().find(|verb| *verb as u8 == self.body[0]);
        verb.unwrap_or(Verb::Peek)
    }

    /// Splits the request into one per subject. The replies to these, one after the other, are the
    /// reply to the whole.
    pub(super) fn by_subject(&self) -> Vec<Self> {
        let head = &self.body[..HEAD_BYTES];
        let checks: Vec<&[u8]> = self.checks().collect();
        let subjects = checks.chunk_by(|one, next| one[KEY_AT] == next[KEY_AT]);
        let part = |checks: &[&[u8]]| {
            let first = checks[0][KEY_AT];
            let mut body = [head, &checks.concat()].concat();
            let mut last = first;
            for check in body[HEAD_BYTES..].chunks_exact_mut(CHECK_BYTES) {
                check[KEY_AT] = 1;
                if check[LOG_AT] > 0 {
                    last = check[LOG_AT];
                    check[LOG_AT] -= first - 1;
                }
            }
            let keys = &self.keys[usize::from(first) - 1..usize::from(last)];
            body[COUNT_AT] = byte(checks.len());
            body[KEYS_AT] = byte(keys.len());
            Self {
                kinds: self.kinds,
                keys: keys.to_vec(),
                body,
            }
        };
        subjects.map(part).collect()
    }

    /// Number of distinct subjects.
    pub(super) fn subjects(&self) -> usize {
        let numbers = self.checks().map(|check| check[KEY_AT]);
        let mut last = 0;
        numbers
            .filter(|key| std::mem::replace(&mut last, *key) != *key)
            .count()
    }

    /// The group of each check, in the order of the reply.
    pub(super) fn groups(&self) -> impl Iterator<Item = u8> {
        self.checks().map(|check| check[GROUP_AT])
    }

    /// Returns a copy with another verb.
    pub(super) fn with_verb(&self, verb: Verb) -> Self {
        let mut other = self.clone();
        other.body[0] = verb as u8;
        other
    }

    /// Returns a copy that refunds the checks of some groups, charged at this instant.
    pub(super) fn to_refund(&self, charged_at: Timestamp, is_charged: impl Fn(u8) -> bool) -> Self {
        let mut other = self.with_verb(Verb::Refund);
        other.set_instant(CHARGED_AT, charged_at);
        for check in other.body[HEAD_BYTES..].chunks_exact_mut(CHECK_BYTES) {
            if !is_charged(check[GROUP_AT]) {
                // Cost 0: the script refunds nothing.
                check[COST_AT..COST_AT + 8].fill(0);
            }
        }
        other
    }

    /// Decides at the instant at which another server has charged an earlier part. With the server's
    /// clock it is negative: the script uses it only if its own clock agrees to the second.
    pub(super) fn set_clock(&mut self, charged_at: Timestamp) {
        let clock = &mut self.body[CLOCK_AT..CHARGED_AT];
        let uses_server_clock = clock.last().is_some_and(|sign| sign & 0x80 != 0);
        let instant = exact(charged_at.as_micros());
        let instant = if uses_server_clock { -instant } else { instant };
        clock.copy_from_slice(&instant.to_le_bytes());
    }

    /// Keeps the script from charging these groups.
    pub(super) fn set_uncharged(&mut self, is_uncharged: impl Fn(u8) -> bool) {
        for check in self.body[HEAD_BYTES..].chunks_exact_mut(CHECK_BYTES) {
            if is_uncharged(check[GROUP_AT]) {
                check[GROUP_AT] |= UNCHARGED;
            }
        }
    }

    /// Returns a reply that stands for one that is missing: nothing is used.
    pub(super) fn empty_reply(&self, at: Timestamp) -> Bytes {
        let at = at.as_micros().to_le_bytes();
        let mut reply = at[..INSTANT_BYTES].to_vec();
        for _ in self.checks() {
            reply.extend([0; 1 + INSTANT_BYTES]);
            reply.extend(&at[..INSTANT_BYTES]);
        }
        reply.into()
    }

    fn checks(&self) -> std::slice::ChunksExact<'_, u8> {
        self.body[HEAD_BYTES..].chunks_exact(CHECK_BYTES)
    }

    fn set_instant(&mut self, at: usize, instant: Timestamp) {
        let bytes = exact(instant.as_micros()).to_le_bytes();
        self.body[at..at + bytes.len()].copy_from_slice(&bytes);
    }

    fn push_check(&mut self, check: &Check<'_>, key: usize, group: u8) {
        let quota = check.quota();
        let (kind, p, q) = parameters(quota);
        let id = check.counter().short_id();
        self.kinds = self.kinds.and(kind);
        let mut log = 0;
        if kind == Kind::Log {
            self.keys.push(Prefix::log_key(&self.keys[key - 1], &id));
            log = byte(self.keys.len());
        }
        self.body.extend(id);
        self.body.extend([kind.shape(), byte(key), group]);
        // No counter has room for more than MAX_COUNT, so all costs above it are denied.
        self.push_number(exact(check.cost().min(MAX_COUNT + 1)));
        self.push_number(exact(quota.amount()));
        self.push_number(exact(quota.window_micros()));
        self.push_number(exact(p));
        self.push_number(exact(q));
        self.body.extend([log, quota.tick_power()]);
        self.body.push(kind.shape());
        self.body.extend([0; RESERVED_BYTES]);
    }

    fn push_number(&mut self, number: f64) {
        self.body.extend(number.to_le_bytes());
    }
}

/// Numbers the group of each check: [`LIVE`], then one number per dry run. [`UNCHARGED`] is added to
/// groups with a blocked quota, because the script does not see it.
fn number_groups(batch: &Batch<'_>) -> [u8; MAX_BATCH] {
    let mut numbers = [LIVE; MAX_BATCH];
    let mut next = LIVE + 1;
    for (group, range) in batch.groups() {
        let mut number = LIVE;
        if group != Group::Live {
            number = next;
            next += 1;
        }
        let mut checks = batch.checks()[range.clone()].iter();
        if checks.any(|check| check.quota().is_blocked()) {
            number |= UNCHARGED;
        }
        numbers[range].fill(number);
    }
    numbers
}

/// The kind of counter of a quota, and the two numbers that it needs besides amount and window.
fn parameters(quota: &Quota) -> (Kind, u64, u64) {
    match quota.algorithm() {
        Algorithm::FixedWindow => (Kind::Fixed, u64::from(quota.window().in_months()), 0),
        Algorithm::SlidingWindow => (Kind::Sliding, quota.by_tick().value(), quota.most_counted()),
        Algorithm::TokenBucket => (Kind::Token, quota.by_tick().value(), quota.burst()),
        Algorithm::SlidingBuckets => (Kind::Log, quota.bucket_micros(), 0),
        Algorithm::SlidingLog => (Kind::Log, 0, 0),
    }
}

#[expect(clippy::cast_precision_loss, reason = "at most 2^53")]
fn exact(number: u64) -> f64 {
    debug_assert!(number <= MAX_COUNT + 1, "{number} is not exact in a double");
    number as f64
}

/// A number of keys or checks: a batch has at most 24 subjects and 24 logs.
fn byte(number: usize) -> u8 {
    debug_assert!(number <= 2 * MAX_BATCH, "{number} keys or checks");
    u8::try_from(number).unwrap_or(u8::MAX)
}
