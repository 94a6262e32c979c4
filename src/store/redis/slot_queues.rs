//! Unsent requests per slot, requests in flight, and deadlines. Pure state: no network, no clock.

use std::collections::VecDeque;
use std::time::Duration;

use slab::Slab;

use super::error::RedisStoreError;
use super::queue::{QueuedCommand, QueuedRequest, ReplySender, SendMode};
use super::request::Request;
use crate::clock::Timestamp;

/// Sizes of calls, and how many run at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CoalescingLimits {
    /// Decisions in one call. 1 turns coalescing off.
    pub(super) per_call: usize,
    /// Calls in flight per slot. Without this limit every request would find a free call, and none
    /// would be coalesced.
    pub(super) per_slot: usize,
    /// Calls in flight in all.
    pub(super) in_all: usize,
}

/// Several decisions of one slot, or one other command.
#[derive(Debug)]
pub(super) struct CoalescedCall {
    queue: usize,
    pub(super) mode: SendMode,
    /// Keys in [`SlotQueues`], valid until [`complete`](SlotQueues::complete).
    pub(super) members: Vec<usize>,
}

/// A request, unsent or in flight. One that expires in flight stays until its call ends, because
/// the position of a reply depends on the requests before it.
#[derive(Debug)]
struct QueueEntry {
    request: QueuedRequest,
    number: u64,
    is_sent: bool,
}

/// Expiry of a request. `number` differs if the key has been reused.
#[derive(Clone, Copy, Debug)]
struct Deadline {
    due: Timestamp,
    key: usize,
    number: u64,
}

#[derive(Debug, Default)]
struct SlotQueue {
    unsent: VecDeque<usize>,
    in_flight: usize,
}

/// A request that fails because its time is over.
#[derive(Debug)]
pub(super) struct Expired {
    pub(super) reply: ReplySender,
    pub(super) within: Duration,
    pub(super) is_probe: bool,
    /// Whether the request was sent. An unsent one is dropped and not charged.
    pub(super) was_sent: bool,
}

/// All requests of one server.
#[derive(Debug)]
pub(super) struct SlotQueues {
    limits: CoalescingLimits,
    entries: Slab<QueueEntry>,
    pushed: u64,
    /// In the order of `due`. Completed requests stay until they reach the front, or until they are
    /// the larger part.
    deadlines: VecDeque<Deadline>,
    /// By [`QueuedRequest::queue_index`]. Grows to the highest index in use.
    by_slot: Vec<SlotQueue>,
    /// Slots that may send a call, in turn. Each at most once.
    ready: VecDeque<usize>,
    in_flight: usize,
}

impl SlotQueues {
    /// Bound on unsent requests and requests in flight, and so on memory.
    pub(super) const CAPACITY: usize = 65_536;

    pub(super) const fn new(limits: CoalescingLimits) -> Self {
        Self {
            limits,
            entries: Slab::new(),
            pushed: 0,
            deadlines: VecDeque::new(),
            by_slot: Vec::new(),
            ready: VecDeque::new(),
            in_flight: 0,
        }
    }

    /// Returns whether a call may have several decisions.
    pub(super) const fn is_coalescing(&self) -> bool {
        self.limits.per_call > 1
    }

    /// Returns whether no more requests should be queued.
    pub(super) fn is_full(&self) -> bool {
        self.entries.len() >= Self::CAPACITY
    }

    /// Queues a request.
    pub(super) fn push(&mut self, request: QueuedRequest) {
        let (due, index) = (request.due, request.queue_index());
        let number = self.pushed;
        self.pushed += 1;
        let key = self.entries.insert(QueueEntry {
            request,
            number,
            is_sent: false,
        });
        self.push_deadline(Deadline { due, key, number });
        if self.by_slot.len() <= index {
            self.by_slot.resize_with(index + 1, SlotQueue::default);
        }
        let slot = &mut self.by_slot[index];
        slot.unsent.push_back(key);
        if slot.unsent.len() == 1 && slot.in_flight < self.limits.per_slot {
            self.ready.push_back(index);
        }
    }

    /// Keeps the deadlines sorted. Most requests have the same time, so that theirs is the last.
    fn push_deadline(&mut self, new: Deadline) {
        if self.deadlines.len() > 2 * self.entries.len() + 64 {
            let entries = &self.entries;
            self.deadlines.retain(|old| is_pending(entries, old));
        }
        let after = self.deadlines.iter().rev();
        let after = after.take_while(|old| old.due > new.due).count();
        self.deadlines.insert(self.deadlines.len() - after, new);
    }

    /// Returns whether a call may be sent.
    pub(super) fn has_next(&self) -> bool {
        self.in_flight < self.limits.in_all && !self.ready.is_empty()
    }

    /// Takes the next call.
    pub(super) fn next(&mut self) -> Option<CoalescedCall> {
        if !self.has_next() {
            return None;
        }
        let index = self.ready.pop_front()?;
        let slot = &mut self.by_slot[index];
        let mut call = CoalescedCall {
            queue: index,
            mode: SendMode::default(),
            members: Vec::with_capacity(slot.unsent.len().min(self.limits.per_call)),
        };
        while call.members.len() < self.limits.per_call
            && let Some(key) = slot.unsent.front()
        {
            let entry = &mut self.entries[*key];
            let modes = (call.mode, entry.request.mode);
            if !call.members.is_empty() && modes != (SendMode::Coalesced, SendMode::Coalesced) {
                break;
            }
            entry.is_sent = true;
            call.mode = entry.request.mode;
            call.members.extend(slot.unsent.pop_front());
        }
        slot.in_flight += 1;
        self.in_flight += 1;
        if !slot.unsent.is_empty() && slot.in_flight < self.limits.per_slot {
            self.ready.push_back(index);
        }
        Some(call)
    }

    /// Ends a call, so that its slot may send the next one.
    pub(super) fn end(&mut self, call: &CoalescedCall) {
        self.in_flight -= 1;
        let slot = &mut self.by_slot[call.queue];
        slot.in_flight -= 1;
        if !slot.unsent.is_empty() && slot.in_flight + 1 == self.limits.per_slot {
            self.ready.push_back(call.queue);
        }
    }

    /// Returns the command of a member of a call.
    pub(super) fn command(&self, key: usize) -> &QueuedCommand {
        &self.entries[key].request.command
    }

    /// Returns the decisions of a call.
    pub(super) fn decisions<'a>(
        &'a self,
        call: &'a CoalescedCall,
    ) -> impl ExactSizeIterator<Item = &'a Request> + Clone {
        call.members.iter().map(|key| match self.command(*key) {
            QueuedCommand::Decide(request) => request,
            other => unreachable!("{other:?} is sent alone"),
        })
    }

    /// Returns whether a member of a call has not expired.
    pub(super) fn is_pending(&self, key: usize) -> bool {
        self.entries[key].request.is_pending()
    }

    /// Removes a member of a call. Returns it if it has not expired.
    pub(super) fn complete(&mut self, key: usize) -> Option<QueuedRequest> {
        let entry = self.entries.remove(key);
        while let Some(first) = self.deadlines.front()
            && !is_pending(&self.entries, first)
        {
            self.deadlines.pop_front();
        }
        entry.request.is_pending().then_some(entry.request)
    }

    /// Returns when the next request expires.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.deadlines.front().map(|deadline| deadline.due)
    }

    /// Takes the next request that has expired at `now`.
    pub(super) fn expire(&mut self, now: Timestamp) -> Option<Expired> {
        while let Some(first) = self.deadlines.front().copied()
            && first.due <= now
        {
            self.deadlines.pop_front();
            if !is_pending(&self.entries, &first) {
                continue;
            }
            let entry = &mut self.entries[first.key];
            let (was_sent, within) = (entry.is_sent, entry.request.within);
            let is_probe = matches!(entry.request.command, QueuedCommand::Probe);
            let (reply, index) = (entry.request.take_reply(), entry.request.queue_index());
            if !was_sent {
                self.entries.remove(first.key);
                self.remove_unsent(first.key, index);
            }
            if let Some(reply) = reply {
                return Some(Expired {
                    reply,
                    within,
                    is_probe,
                    was_sent,
                });
            }
        }
        None
    }

    /// Requests of one slot mostly expire in order, so that this one is at or near the front.
    fn remove_unsent(&mut self, key: usize, index: usize) {
        let slot = &mut self.by_slot[index];
        if let Some(position) = slot.unsent.iter().position(|unsent| *unsent == key) {
            slot.unsent.remove(position);
        }
        if slot.unsent.is_empty() {
            self.ready.retain(|ready| *ready != index);
        }
    }

    /// Fails all unsent requests that are due before `before`.
    pub(super) fn reject_unsent(&mut self, error: &RedisStoreError, before: Timestamp) {
        for slot in &mut self.by_slot {
            slot.unsent.retain(|key| {
                let is_kept = self.entries[*key].request.due >= before;
                if !is_kept {
                    let mut entry = self.entries.remove(*key);
                    entry.request.complete(Err(error.clone()));
                }
                is_kept
            });
        }
        let by_slot = &self.by_slot;
        self.ready
            .retain(|index| !by_slot[*index].unsent.is_empty());
    }

    /// Returns whether no request waits for a reply or is in flight.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) const fn calls_in_flight(&self) -> usize {
        self.in_flight
    }
}

fn is_pending(entries: &Slab<QueueEntry>, deadline: &Deadline) -> bool {
    let entry = entries.get(deadline.key);
    entry.is_some_and(|entry| entry.number == deadline.number && entry.request.is_pending())
}

#[cfg(test)]
mod tests;
