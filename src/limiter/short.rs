//! The short way: a text or an address, charged to the only quota there is, in memory.

use std::net::IpAddr;

use super::ask::{Ask, Verb, decided};
use super::{Inner, Limiter};
use crate::clock::Timestamp;
use crate::decision::{Decision, Usage};
use crate::error::Error;
use crate::key::{Counter, Subject, Value};
use crate::store::{MemoryStore, SharedStore};

impl Limiter {
    /// [`check`](Limiter::check) for a text, with nothing else said.
    pub(super) fn charge_text(&self, text: &str, cost: u64) -> Result<Decision, Error> {
        self.charge_value(Value::Text(text), cost, |memory, counter, now| {
            memory.charge_text(text, (counter, counter.quota(), cost), now)
        })
    }

    /// The same for an address.
    pub(super) fn charge_address(&self, address: IpAddr, cost: u64) -> Result<Decision, Error> {
        self.charge_value(Value::Address(address), cost, |memory, counter, now| {
            memory.charge_address("", address, (counter, counter.quota(), cost), now)
        })
    }

    #[inline(always)]
    fn charge_value(
        &self,
        value: Value<'_>,
        cost: u64,
        charge: impl FnOnce(&MemoryStore, &Counter, Timestamp) -> Option<(Usage, Timestamp)>,
    ) -> Result<Decision, Error> {
        let Inner {
            counters,
            store,
            clock,
            ..
        } = &*self.inner;
        if let ([counter], SharedStore::Memory(memory)) = (&**counters, store)
            && memory.has_no_overrides()
            && let Some((usage, at)) = charge(memory, counter, clock.now())
        {
            return Ok(decided(usage, at, cost).on_wall(self.inner.wall_offset()));
        }
        self.charge_at_length(value, cost)
    }

    #[cold]
    fn charge_at_length(&self, value: Value<'_>, cost: u64) -> Result<Decision, Error> {
        let ask = Ask::new(self, Subject::from(value), Verb::Check).cost(cost);
        ask.wait_at_length()
    }
}
