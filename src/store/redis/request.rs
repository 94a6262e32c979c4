//! A batch as the script reads it, and the answer as the script writes it.

use bytes::Bytes;

use super::key::Prefix;
use super::script::{Kind, Kinds, Verb};
use crate::batch::{Batch, Check, MAX_CHECKS};
use crate::clock::Timestamp;
use crate::quota::{Algorithm, MAX_COUNT, Quota};
use crate::usage::{Outcome, Usage, Usages};

/// What one batch asks of the script.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) kinds: Kinds,
    pub(super) keys: Vec<String>,
    pub(super) body: Vec<u8>,
}

/// How the answer is to be read: where in it each check of the batch is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reading {
    rows: [Row; MAX_CHECKS],
    len: usize,
}

/// One check of a batch.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    limit: u64,
    /// Its place in the answer. `None` if there is no counter behind it, so that nobody is asked.
    place: Option<usize>,
}

/// Stands for the server's clock where an instant is expected.
const SERVERS_CLOCK: f64 = -1.0;
const HEAD_BYTES: usize = 18;
/// Where in the head things are.
const COUNT_AT: usize = 1;
const CLOCK_AT: usize = 2;
const CHARGED_AT: usize = 10;
const CHECK_BYTES: usize = 51;
/// Where in a check the number of its key is.
const KEY_AT: usize = 8;
pub(super) const INSTANT_BYTES: usize = 7;
const USAGE_BYTES: usize = 15;

impl Request {
    /// What `verb` asks about a batch, at the instant `clock` or by the server's. Without a key,
    /// if there is no counter to be asked about.
    pub(super) fn new(
        verb: Verb,
        batch: &Batch<'_>,
        clock: Option<Timestamp>,
        charged_at: Timestamp,
        prefix: &Prefix,
    ) -> (Self, Reading) {
        let checks = batch.checks();
        let mut request = Self {
            kinds: Kinds::default(),
            keys: Vec::with_capacity(1),
            body: Vec::with_capacity(HEAD_BYTES + CHECK_BYTES * checks.len()),
        };
        let mut reading = Reading {
            len: checks.len(),
            ..Reading::default()
        };
        // Which key each check is about, counted from 1.
        let mut key_of = [0; MAX_CHECKS];
        let (mut asked, mut blocked) = (0, false);
        for (index, check) in checks.iter().enumerate() {
            reading.rows[index].limit = check.quota().burst();
            blocked |= check.quota().is_blocked();
            if !check.quota().counts_nothing() {
                key_of[index] = request.key_number(&checks[..index], &key_of, check, prefix);
                asked += 1;
            }
        }
        // Nobody is charged if somebody is blocked.
        let verb = match verb {
            Verb::Decide if blocked => Verb::Peek,
            other => other,
        };
        request.body.extend([verb as u8, asked]);
        request.number(clock.map_or(SERVERS_CLOCK, |now| exact(now.as_micros())));
        request.number(exact(charged_at.as_micros()));
        // Key by key, because that is how the script reads and writes.
        let mut place = 0;
        for key in 1..=request.keys.len() {
            for (index, check) in checks.iter().enumerate() {
                if key_of[index] == key {
                    request.check(check, key);
                    reading.rows[index].place = Some(place);
                    place += 1;
                }
            }
        }
        (request, reading)
    }

    /// How long the answer is.
    pub(super) fn answer_bytes(&self) -> usize {
        let usages = match self.verb() {
            Verb::Refund => 0,
            _ => (self.body.len() - HEAD_BYTES) / CHECK_BYTES,
        };
        INSTANT_BYTES + usages * USAGE_BYTES
    }

    pub(super) fn verb(&self) -> Verb {
        let all = [Verb::Decide, Verb::Peek, Verb::Record, Verb::Refund];
        let verb = all.into_iter().find(|verb| *verb as u8 == self.body[0]);
        verb.unwrap_or(Verb::Peek)
    }

    /// The same about each of its keys alone. The answers to these, one after the other, are the
    /// answer to the whole.
    pub(super) fn by_key(&self) -> Vec<Self> {
        let (head, checks) = self.body.split_at(HEAD_BYTES);
        let keys = self.keys.iter().zip(1_u16..);
        let part = |(key, number): (&String, u16)| {
            let mut body = head.to_vec();
            for check in checks.chunks_exact(CHECK_BYTES) {
                if check[KEY_AT..KEY_AT + 2] == number.to_le_bytes() {
                    let start = body.len();
                    body.extend(check);
                    body[start + KEY_AT..start + KEY_AT + 2].copy_from_slice(&1_u16.to_le_bytes());
                }
            }
            let count = (body.len() - HEAD_BYTES) / CHECK_BYTES;
            body[COUNT_AT] = u8::try_from(count).unwrap_or(u8::MAX);
            Self {
                kinds: self.kinds,
                keys: vec![key.clone()],
                body,
            }
        };
        keys.map(part).collect()
    }

    /// The same for another purpose.
    pub(super) fn with_verb(&self, verb: Verb) -> Self {
        let mut other = self.clone();
        other.body[0] = verb as u8;
        other
    }

    /// Goes by this clock.
    pub(super) fn set_clock(&mut self, now: Timestamp) {
        self.set_number(CLOCK_AT, now);
    }

    /// Gives back what was charged at this instant.
    pub(super) fn set_charged_at(&mut self, at: Timestamp) {
        self.set_number(CHARGED_AT, at);
    }

    fn set_number(&mut self, place: usize, instant: Timestamp) {
        let bytes = exact(instant.as_micros()).to_le_bytes();
        self.body[place..place + bytes.len()].copy_from_slice(&bytes);
    }

    /// The instant that an answer says.
    pub(super) fn instant(answer: &[u8]) -> Option<Timestamp> {
        let instant = whole_number(answer.get(..INSTANT_BYTES)?);
        Some(Timestamp::from_micros(instant))
    }

    /// Whether an answer says that all counters had room.
    pub(super) fn is_allowed(answer: &[u8]) -> bool {
        let usages = answer.get(INSTANT_BYTES..).unwrap_or_default();
        usages.chunks(USAGE_BYTES).all(|usage| usage[0] == 0)
    }

    /// What stands for an answer that does not come: nothing is known to be used.
    pub(super) fn unanswered(&self, at: Timestamp) -> Bytes {
        let at = at.as_micros().to_le_bytes();
        let mut answer = at[..INSTANT_BYTES].to_vec();
        for _ in self.body[HEAD_BYTES..].chunks_exact(CHECK_BYTES) {
            answer.extend([0; 1 + INSTANT_BYTES]);
            answer.extend(&at[..INSTANT_BYTES]);
        }
        answer.into()
    }

    /// One answer out of several. Their instants differ a little; the earliest is the one that
    /// promises nobody too much.
    pub(super) fn join_answers(answers: &[Bytes]) -> Bytes {
        let instants = answers
            .iter()
            .filter_map(|answer| answer.get(..INSTANT_BYTES));
        let earliest = instants.min_by_key(|instant| whole_number(instant));
        let mut joined = earliest.unwrap_or_default().to_vec();
        for answer in answers {
            joined.extend(answer.get(INSTANT_BYTES..).unwrap_or_default());
        }
        joined.into()
    }

    /// The number of the key of a check: that of an earlier one with the same subject, or a new
    /// one.
    fn key_number(
        &mut self,
        earlier: &[Check<'_>],
        key_of: &[usize; MAX_CHECKS],
        check: &Check<'_>,
        prefix: &Prefix,
    ) -> usize {
        let is_twin = |(other, key): &(&Check<'_>, &usize)| {
            let same = std::ptr::eq(other.subject(), check.subject());
            **key > 0 && (same || other.subject() == check.subject())
        };
        if let Some((_, key)) = earlier.iter().zip(key_of).find(is_twin) {
            return *key;
        }
        self.keys.push(prefix.key(check.subject()));
        self.keys.len()
    }

    fn check(&mut self, check: &Check<'_>, key: usize) {
        let quota = check.quota();
        let (kind, this, that) = numbers(quota);
        self.kinds = self.kinds.and(kind);
        self.body.extend(check.counter().id().to_le_bytes());
        self.body
            .extend(u16::try_from(key).unwrap_or(u16::MAX).to_le_bytes());
        self.body.push(kind as u8);
        // More than any limit is as good as a little more than the largest.
        self.number(exact(check.cost().min(MAX_COUNT + 1)));
        self.number(exact(quota.amount()));
        self.number(exact(quota.window_micros()));
        self.number(exact(this));
        self.number(exact(that));
    }

    fn number(&mut self, number: f64) {
        self.body.extend(number.to_le_bytes());
    }
}

/// The kind of counter that a quota has, and the two numbers that it needs besides the amount and
/// the window.
fn numbers(quota: &Quota) -> (Kind, u64, u64) {
    match quota.algorithm() {
        Algorithm::FixedWindow => (Kind::Fixed, u64::from(quota.window().in_months()), 0),
        Algorithm::SlidingWindow => (Kind::Sliding, quota.by_tick().value(), quota.most_counted()),
        Algorithm::TokenBucket => (Kind::Token, quota.by_tick().value(), quota.burst()),
        Algorithm::SlidingBuckets => (Kind::Queue, quota.bucket_micros(), 0),
        Algorithm::SlidingLog => (Kind::Queue, 0, 0),
    }
}

#[expect(clippy::cast_precision_loss, reason = "at most 2^53")]
fn exact(number: u64) -> f64 {
    debug_assert!(number <= MAX_COUNT + 1, "{number} is not exact in a double");
    number as f64
}

impl Reading {
    /// The verdict that an answer says. `None` if it is no such answer.
    pub(super) fn verdict(&self, answer: &[u8]) -> Option<Usages> {
        let at = Timestamp::from_micros(whole_number(answer.get(..INSTANT_BYTES)?));
        let usages = &answer[INSTANT_BYTES..];
        let mut verdict = Usages::with_live(self.len, at);
        for row in &self.rows[..self.len] {
            verdict.push(match row.place {
                Some(place) => usage(usages.chunks_exact(USAGE_BYTES).nth(place)?, row.limit)?,
                None => without_counter(row.limit, at),
            });
        }
        Some(verdict)
    }

    /// The verdict about checks without a counter.
    pub(super) fn without_asking(&self, now: Timestamp) -> Usages {
        let mut verdict = Usages::with_live(self.len, now);
        for row in &self.rows[..self.len] {
            verdict.push(without_counter(row.limit, now));
        }
        verdict
    }
}

fn usage(bytes: &[u8], limit: u64) -> Option<Usage> {
    let (outcome, numbers) = bytes.split_first()?;
    let (used, reset_at) = numbers.split_at_checked(INSTANT_BYTES)?;
    let outcome = match outcome {
        0 => Outcome::Allowed,
        1 => Outcome::Denied,
        2 => Outcome::Never,
        _ => return None,
    };
    let reset_at = Timestamp::end(whole_number(reset_at));
    Some(Usage::new(limit, whole_number(used), reset_at, outcome))
}

/// What quotas say that are `blocked`, with a limit of nothing, or `unlimited`.
const fn without_counter(limit: u64, now: Timestamp) -> Usage {
    if limit == 0 {
        Usage::blocked(now)
    } else {
        Usage::new(limit, 0, now, Outcome::Allowed)
    }
}

fn whole_number(little_endian: &[u8]) -> u64 {
    let digits = little_endian.iter().rev();
    digits.fold(0, |number, byte| number << 8 | u64::from(*byte))
}
