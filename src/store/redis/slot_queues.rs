//! Who waits for a call, who waits for its answer, and until when. No network and no clock in here.

use std::collections::{BTreeMap, HashMap, VecDeque};

use bytes::Bytes;
use tokio::sync::oneshot;

use super::error::RedisStoreError;
use super::request::Request;
use crate::clock::Timestamp;

/// What comes back.
pub(super) type Reply = Result<Bytes, RedisStoreError>;

/// How many travel together, and how many calls are under way at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CoalescingLimits {
    /// Requests in one call.
    pub(super) per_call: usize,
    /// Calls of one slot. Without such a cap every request would find a free call, and none would
    /// ever travel together.
    pub(super) per_slot: usize,
    /// Calls of all queues.
    pub(super) in_all: usize,
}

/// How a request may travel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum SendMode {
    /// With others of its slot.
    #[default]
    Together,
    /// In a call of its own.
    Alone,
    /// The same, to a server that has the key before it has the slot.
    Asking,
}

/// A request that waits.
#[derive(Debug)]
pub(super) struct QueuedRequest {
    pub(super) request: Request,
    /// Requests of one slot may travel together, and keep their order.
    pub(super) slot: u16,
    pub(super) mode: SendMode,
    /// When nobody waits for it any more.
    pub(super) due: Timestamp,
    pub(super) reply: oneshot::Sender<Reply>,
}

/// Some requests that travel together.
#[derive(Debug)]
pub(super) struct CoalescedCall {
    pub(super) slot: u16,
    pub(super) mode: SendMode,
    pub(super) members: Vec<Member>,
}

#[derive(Debug)]
pub(super) struct Member {
    number: Number,
    pub(super) request: Request,
    mode: SendMode,
}

/// In the order in which they are due.
type Number = (Timestamp, u64);

/// Somebody who waits for an answer.
#[derive(Debug)]
struct Waiting {
    reply: oneshot::Sender<Reply>,
    slot: u16,
    sent: bool,
}

/// Somebody who has waited for too long.
#[derive(Debug)]
pub(super) struct Overdue {
    pub(super) reply: oneshot::Sender<Reply>,
    /// Whether it was on its way. If not, it never will be.
    pub(super) sent: bool,
}

#[derive(Debug, Default)]
struct SlotQueue {
    queue: VecDeque<Member>,
    /// How many in the queue have given up.
    gone: usize,
    in_flight: usize,
}

impl SlotQueue {
    /// Somebody in the queue has given up. They make room when they are half of it, and not only
    /// when the line moves again: somebody before them may have more patience.
    fn has_lost_one(&mut self, is_waited_for: impl Fn(&Member) -> bool) {
        self.gone += 1;
        if self.gone * 2 <= self.queue.len() {
            return;
        }
        // Never empty, or a slot that has its turn would be given another.
        let last = self.queue.pop_back();
        self.queue.retain(&is_waited_for);
        self.queue.extend(last);
        self.gone = usize::from(!self.queue.back().is_some_and(is_waited_for));
    }
}

/// All who wait.
#[derive(Debug)]
pub(super) struct SlotQueues {
    pace: CoalescingLimits,
    entered: u64,
    waiting: BTreeMap<Number, Waiting>,
    by_number: HashMap<u16, SlotQueue>,
    /// SlotQueues that may have a call now, in turn. Each at most once.
    ready: VecDeque<u16>,
    in_flight: usize,
}

impl SlotQueues {
    /// More than wait in any deadline that a server can keep. Memory is bounded by it.
    pub(super) const MOST: usize = 65_536;

    pub(super) fn new(pace: CoalescingLimits) -> Self {
        Self {
            pace,
            entered: 0,
            waiting: BTreeMap::new(),
            by_number: HashMap::new(),
            ready: VecDeque::new(),
            in_flight: 0,
        }
    }

    /// Whether there may be several requests in a call.
    pub(super) const fn travel_together(&self) -> bool {
        self.pace.per_call > 1
    }

    /// Queues a request; gives it back if there are too many.
    pub(super) fn enter(&mut self, ticket: QueuedRequest) -> Result<(), QueuedRequest> {
        if self.waiting.len() >= Self::MOST {
            return Err(ticket);
        }
        let number = (ticket.due, self.entered);
        self.entered += 1;
        let waiting = Waiting {
            reply: ticket.reply,
            slot: ticket.slot,
            sent: false,
        };
        self.waiting.insert(number, waiting);
        let slot = self.by_number.entry(ticket.slot).or_default();
        slot.queue.push_back(Member {
            number,
            request: ticket.request,
            mode: ticket.mode,
        });
        if slot.queue.len() == 1 && slot.in_flight < self.pace.per_slot {
            self.ready.push_back(ticket.slot);
        }
        Ok(())
    }

    /// Whether there is somebody to send.
    pub(super) fn has_next(&self) -> bool {
        self.in_flight < self.pace.in_all && !self.ready.is_empty()
    }

    /// The next call to make.
    pub(super) fn next(&mut self) -> Option<CoalescedCall> {
        while self.has_next() {
            let number = self.ready.pop_front()?;
            let Some(slot) = self.by_number.get_mut(&number) else {
                continue;
            };
            let mut call = CoalescedCall {
                slot: number,
                mode: SendMode::default(),
                members: Vec::new(),
            };
            while call.members.len() < self.pace.per_call
                && let Some(member) = slot.queue.pop_front()
            {
                let Some(waiting) = self.waiting.get_mut(&member.number) else {
                    // Nobody waits for it any more: it is not sent.
                    slot.gone -= 1;
                    continue;
                };
                let both = (call.mode, member.mode);
                if !call.members.is_empty() && both != (SendMode::Together, SendMode::Together) {
                    slot.queue.push_front(member);
                    break;
                }
                waiting.sent = true;
                call.mode = member.mode;
                call.members.push(member);
            }
            if !call.members.is_empty() {
                slot.in_flight += 1;
                self.in_flight += 1;
            }
            if !slot.queue.is_empty() && slot.in_flight < self.pace.per_slot {
                self.ready.push_back(number);
            } else if slot.queue.is_empty() && slot.in_flight == 0 {
                self.by_number.remove(&number);
            }
            if !call.members.is_empty() {
                return Some(call);
            }
        }
        None
    }

    /// A call has ended, one way or the other.
    pub(super) fn end(&mut self, number: u16) {
        self.in_flight -= 1;
        let Some(slot) = self.by_number.get_mut(&number) else {
            return;
        };
        slot.in_flight -= 1;
        if slot.queue.is_empty() {
            if slot.in_flight == 0 {
                self.by_number.remove(&number);
            }
        } else if slot.in_flight + 1 == self.pace.per_slot {
            self.ready.push_back(number);
        }
    }

    /// Whether somebody still waits for the answer.
    pub(super) fn is_waited_for(&self, member: &Member) -> bool {
        self.waiting.contains_key(&member.number)
    }

    /// Tells a request its answer, if somebody still waits for it.
    pub(super) fn answer(&mut self, member: &Member, reply: Reply) {
        if let Some(waiting) = self.waiting.remove(&member.number) {
            let _ = waiting.reply.send(reply);
        }
    }

    /// When the next of all who wait has waited for too long.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.waiting.first_key_value().map(|((due, _), _)| *due)
    }

    /// Somebody who has waited for too long at this instant.
    pub(super) fn overdue(&mut self, now: Timestamp) -> Option<Overdue> {
        let first = self.waiting.first_entry()?;
        if first.key().0 > now {
            return None;
        }
        let Waiting { reply, slot, sent } = first.remove();
        if let Some(slot) = self.by_number.get_mut(&slot).filter(|_| !sent) {
            let waiting = &self.waiting;
            slot.has_lost_one(|member| waiting.contains_key(&member.number));
        }
        Some(Overdue { reply, sent })
    }

    /// Sends everybody home who was not sent yet.
    pub(super) fn turn_away(&mut self, why: &RedisStoreError) {
        for slot in self.by_number.values_mut() {
            for member in slot.queue.drain(..) {
                if let Some(waiting) = self.waiting.remove(&member.number) {
                    let _ = waiting.reply.send(Err(why.clone()));
                }
            }
            slot.gone = 0;
        }
        self.ready.clear();
        self.by_number.retain(|_, slot| slot.in_flight > 0);
    }

    /// Whether nobody waits for anything.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn calls_in_flight(&self) -> usize {
        self.in_flight
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{Batch, Check};
    use crate::key::{Counter, Subject};
    use crate::store::redis::key::Prefix;
    use crate::store::redis::script::Verb;

    const PACE: CoalescingLimits = CoalescingLimits {
        per_call: 3,
        per_slot: 2,
        in_all: 3,
    };

    /// A request that can be told from others by its key.
    fn ticket(name: u64, slot: u16, due: u64) -> (QueuedRequest, oneshot::Receiver<Reply>) {
        let counter = Counter::new("rule", "5/minute".parse().expect("valid")).expect("valid");
        let subject = Subject::from(name);
        let checks = [Check::new(&subject, &counter)];
        let batch = Batch::new(&checks).expect("valid");
        let prefix = Prefix::new("app").expect("plain");
        let (reply, answer) = oneshot::channel();
        let (request, _) = Request::new(Verb::Decide, &batch, None, Timestamp::EPOCH, &prefix);
        let ticket = QueuedRequest {
            request,
            slot,
            mode: SendMode::Together,
            due: Timestamp::from_micros(due),
            reply,
        };
        (ticket, answer)
    }

    fn enter(queues: &mut SlotQueues, name: u64, slot: u16, due: u64) -> oneshot::Receiver<Reply> {
        let (ticket, answer) = ticket(name, slot, due);
        assert!(queues.enter(ticket).is_ok());
        answer
    }

    fn members(call: &CoalescedCall) -> Vec<String> {
        let keys = call.members.iter().flat_map(|member| &member.request.keys);
        keys.cloned().collect()
    }

    fn keys(names: &[u64]) -> Vec<String> {
        let prefix = Prefix::new("app").expect("plain");
        let key = |name: &u64| prefix.key(&Subject::from(*name));
        names.iter().map(key).collect()
    }

    #[test]
    fn nobody_waits_while_there_is_a_free_call_and_then_all_travel_together() {
        let mut queues = SlotQueues::new(PACE);
        let _answers: Vec<_> = (1..=6)
            .map(|name| {
                let answer = enter(&mut queues, name, 0, 9);
                if name <= 2 {
                    let call = queues.next().expect("a free call");
                    assert_eq!(members(&call), keys(&[name]));
                }
                answer
            })
            .collect();
        assert!(queues.next().is_none(), "both calls are under way");
        queues.end(0);
        let call = queues.next().expect("a free call");
        assert_eq!(members(&call), keys(&[3, 4, 5]), "in order, and no more");
        assert!(queues.next().is_none());
        queues.end(0);
        assert_eq!(members(&queues.next().expect("a free call")), keys(&[6]));
    }

    #[test]
    fn lanes_do_not_wait_for_each_other_but_for_the_server() {
        let mut queues = SlotQueues::new(PACE);
        let _answers: Vec<_> = [7, 7, 8, 9]
            .map(|slot| enter(&mut queues, u64::from(slot), slot, 9))
            .into();
        let taken: Vec<u16> = std::iter::from_fn(|| queues.next().map(|call| call.slot)).collect();
        assert_eq!(taken, [7, 8, 9]);
        let _more = enter(&mut queues, 1, 10, 9);
        assert!(queues.next().is_none(), "three calls are all there are");
        queues.end(8);
        assert_eq!(queues.next().expect("a free call").slot, 10);
    }

    /// Those who have given up are not charged later.
    #[test]
    fn who_has_waited_for_too_long_is_never_sent() {
        let mut queues = SlotQueues::new(PACE);
        let _sent = [enter(&mut queues, 1, 0, 10), enter(&mut queues, 2, 0, 11)];
        assert_eq!(queues.next().expect("a free call").members.len(), 2);
        let _other = enter(&mut queues, 3, 0, 12);
        assert!(queues.next().is_some());
        let _queued = [enter(&mut queues, 4, 0, 13), enter(&mut queues, 5, 0, 20)];
        assert_eq!(queues.next_due(), Some(Timestamp::from_micros(10)));
        let now = Timestamp::from_micros(13);
        let overdue: Vec<bool> =
            std::iter::from_fn(|| queues.overdue(now).map(|overdue| overdue.sent)).collect();
        assert_eq!(overdue, [true, true, true, false]);
        queues.end(0);
        assert_eq!(members(&queues.next().expect("a free call")), keys(&[5]));
    }

    #[test]
    fn whoever_must_travel_alone_does() {
        let mut queues = SlotQueues::new(CoalescingLimits {
            per_slot: 9,
            in_all: 9,
            ..PACE
        });
        for (name, mode) in [
            (1, SendMode::Together),
            (2, SendMode::Together),
            (3, SendMode::Alone),
            (4, SendMode::Asking),
            (5, SendMode::Together),
        ] {
            let (ticket, _) = ticket(name, 0, 9);
            assert!(queues.enter(QueuedRequest { mode, ..ticket }).is_ok());
        }
        let calls: Vec<_> = std::iter::from_fn(|| queues.next())
            .map(|call| (call.mode, call.members.len()))
            .collect();
        assert_eq!(
            calls,
            [
                (SendMode::Together, 2),
                (SendMode::Alone, 1),
                (SendMode::Asking, 1),
                (SendMode::Together, 1)
            ]
        );
    }

    #[test]
    fn there_is_a_bound_to_who_can_wait() {
        let mut queues = SlotQueues::new(PACE);
        let _answers: Vec<_> = (0..SlotQueues::MOST as u64)
            .map(|name| enter(&mut queues, name, 0, 9))
            .collect();
        assert!(queues.enter(ticket(0, 0, 9).0).is_err());
        while queues.overdue(Timestamp::from_micros(9)).is_some() {}
        assert!(queues.is_empty());
        assert!(
            queues.by_number[&0].queue.len() <= 1,
            "and none stays behind"
        );
        let _answer = enter(&mut queues, 1, 0, 10);
        assert_eq!(members(&queues.next().expect("a free call")), keys(&[1]));
    }

    /// What is given back may take its time. Those behind it in a line that stands still give up
    /// sooner, and must not add up.
    #[test]
    fn who_has_given_up_behind_somebody_patient_makes_room() {
        let mut queues = SlotQueues::new(PACE);
        let _sent = [enter(&mut queues, 1, 0, 9), enter(&mut queues, 2, 0, 9)];
        while queues.next().is_some() {}
        let _sent_too = enter(&mut queues, 3, 0, 9);
        while queues.next().is_some() {}
        let _patient = enter(&mut queues, 4, 0, 5_000_000);
        for moment in 10..1_000 {
            let _hasty = [
                enter(&mut queues, 5, 0, moment),
                enter(&mut queues, 6, 0, moment),
            ];
            while queues.overdue(Timestamp::from_micros(moment)).is_some() {}
            let queued = queues.by_number[&0].queue.len();
            assert!(queued <= 4, "{queued} in the queue");
        }
        queues.end(0);
        assert_eq!(members(&queues.next().expect("a free call")), keys(&[4]));
        let _last = enter(&mut queues, 7, 0, 1_001);
        queues.end(0);
        assert_eq!(members(&queues.next().expect("a free call")), keys(&[7]));
    }

    #[test]
    fn all_who_were_not_sent_can_be_turned_away() {
        let mut queues = SlotQueues::new(PACE);
        let mut sent = enter(&mut queues, 1, 0, 9);
        let call = queues.next().expect("a free call");
        let mut queued = enter(&mut queues, 2, 0, 9);
        queues.turn_away(&RedisStoreError::hung_up(&"somewhere".into()));
        assert!(queued.try_recv().is_ok_and(|reply| reply.is_err()));
        assert!(sent.try_recv().is_err(), "that one is still under way");
        queues.end(0);
        queues.answer(&call.members[0], Ok(Bytes::new()));
        assert!(sent.try_recv().is_ok_and(|reply| reply.is_ok()));
        assert!(queues.is_empty() && queues.by_number.is_empty());
    }
}
