//! Tests of the queues, on instants that the tests choose.

use super::*;
use crate::batch::{Batch, Check};
use crate::key::{Counter, Subject};
use crate::store::redis::error::ErrorCause;
use crate::store::redis::key::Prefix;
use crate::store::redis::queue::{PendingReply, Response};
use crate::store::redis::script::Verb;

const LIMITS: CoalescingLimits = CoalescingLimits {
    per_call: 3,
    per_slot: 2,
    in_all: 3,
};

fn key_of(name: u64) -> String {
    Prefix::new("app").expect("valid").key(&Subject::from(name))
}

/// A decision that its key identifies.
fn decision(name: u64, slot: u16, due: u64) -> (QueuedRequest, PendingReply) {
    let counter = Counter::new("rule", "5/minute".parse().expect("valid")).expect("valid");
    let subject = Subject::from(name);
    let checks = [Check::new(&subject, &counter)];
    let batch = Batch::new(&checks).expect("valid");
    let prefix = Prefix::new("app").expect("valid");
    let (request, _) = Request::new(Verb::Decide, &batch, None, Timestamp::EPOCH, &prefix);
    let due = (Timestamp::from_micros(due), Duration::from_millis(50));
    QueuedRequest::new(QueuedCommand::Decide(request), slot, due, &"host".into())
}

fn push(queues: &mut SlotQueues, name: u64, slot: u16, due: u64) -> PendingReply {
    let (request, reply) = decision(name, slot, due);
    queues.push(request);
    reply
}

/// The keys of a call.
fn keys(queues: &SlotQueues, call: &CoalescedCall) -> Vec<String> {
    let keys = queues.decisions(call).flat_map(|request| &request.keys);
    keys.cloned().collect()
}

fn expected(names: &[u64]) -> Vec<String> {
    names.iter().map(|name| key_of(*name)).collect()
}

fn slot(call: &CoalescedCall) -> usize {
    call.queue - 1
}

fn reply_of(reply: &mut PendingReply) -> Option<Result<Response, RedisStoreError>> {
    reply.try_reply()
}

/// Expires everything that is due, as a dispatcher would. Returns whether each was sent.
fn expire(queues: &mut SlotQueues, now: u64) -> Vec<bool> {
    let now = Timestamp::from_micros(now);
    std::iter::from_fn(|| queues.expire(now).map(|expired| expired.was_sent)).collect()
}

#[test]
fn requests_of_a_slot_share_calls_in_order() {
    let mut queues = SlotQueues::new(LIMITS);
    let _replies: Vec<_> = (1..=8).map(|name| push(&mut queues, name, 7, 9)).collect();
    let first = queues.next().expect("a free call");
    assert_eq!(keys(&queues, &first), expected(&[1, 2, 3]));
    let second = queues.next().expect("a free call");
    assert_eq!(keys(&queues, &second), expected(&[4, 5, 6]));
    assert!(queues.next().is_none(), "two calls per slot");
    queues.end(&first);
    let third = queues.next().expect("a free call");
    assert_eq!(keys(&queues, &third), expected(&[7, 8]));
}

#[test]
fn a_limit_of_one_turns_coalescing_off() {
    let mut queues = SlotQueues::new(CoalescingLimits {
        per_call: 1,
        ..LIMITS
    });
    assert!(!queues.is_coalescing());
    let _replies = [push(&mut queues, 1, 0, 9), push(&mut queues, 2, 0, 9)];
    for name in [1, 2] {
        let call = queues.next().expect("a free call");
        assert_eq!(keys(&queues, &call), expected(&[name]));
    }
}

#[test]
fn slots_take_turns_and_share_the_total() {
    let mut queues = SlotQueues::new(LIMITS);
    let slots = [7, 7, 7, 7, 8, 9];
    let _replies = slots.map(|slot| push(&mut queues, 1, slot, 9));
    let calls: Vec<_> = std::iter::from_fn(|| queues.next()).collect();
    let taken: Vec<_> = calls.iter().map(slot).collect();
    assert_eq!(taken, [7, 8, 9]);
    let _more = push(&mut queues, 1, 10, 9);
    assert!(queues.next().is_none(), "three calls in all");
    queues.end(&calls[1]);
    assert_eq!(slot(&queues.next().expect("a free call")), 7);
}

#[test]
fn unsent_requests_expire_uncharged() {
    let mut queues = SlotQueues::new(LIMITS);
    let _sent = [push(&mut queues, 1, 0, 10), push(&mut queues, 2, 0, 11)];
    let first = queues.next().expect("a free call");
    assert_eq!(first.members.len(), 2);
    let _other = push(&mut queues, 3, 0, 12);
    assert!(queues.next().is_some());
    let _unsent = [push(&mut queues, 4, 0, 13), push(&mut queues, 5, 0, 20)];
    assert_eq!(queues.next_due(), Some(Timestamp::from_micros(10)));
    assert_eq!(expire(&mut queues, 13), [true, true, true, false]);
    queues.end(&first);
    let next = queues.next().expect("a free call");
    assert_eq!(keys(&queues, &next), expected(&[5]));
}

/// Replies that come late are discarded, and the request stays known until then: the reply to the
/// next one follows it.
#[test]
fn requests_that_expire_in_flight_stay_until_their_call_ends() {
    let mut queues = SlotQueues::new(LIMITS);
    let (mut early, mut late) = (push(&mut queues, 1, 0, 10), push(&mut queues, 2, 0, 20));
    let call = queues.next().expect("a free call");
    for expired in std::iter::from_fn(|| queues.expire(Timestamp::from_micros(10))) {
        let error = RedisStoreError::new(&"host".into(), ErrorCause::Late(expired.within));
        expired.reply.send(Err(error));
    }
    assert!(reply_of(&mut early).is_some_and(|reply| reply.is_err()));
    assert_eq!(keys(&queues, &call), expected(&[1, 2]));
    queues.end(&call);
    assert!(queues.complete(call.members[0]).is_none());
    let mut second = queues.complete(call.members[1]).expect("not expired");
    second.complete(Ok(Response::Decision(bytes::Bytes::new())));
    assert!(reply_of(&mut late).is_some_and(|reply| reply.is_ok()));
    assert!(queues.is_empty() && queues.next_due().is_none());
}

#[test]
fn requests_that_must_be_sent_alone_are() {
    let mut queues = SlotQueues::new(CoalescingLimits {
        per_slot: 9,
        in_all: 9,
        ..LIMITS
    });
    for (name, mode) in [
        (1, SendMode::Coalesced),
        (2, SendMode::Coalesced),
        (3, SendMode::Alone),
        (4, SendMode::Asking),
        (5, SendMode::Coalesced),
    ] {
        let (mut request, _) = decision(name, 0, 9);
        request.mode = mode;
        queues.push(request);
    }
    let calls: Vec<_> = std::iter::from_fn(|| queues.next())
        .map(|call| (call.mode, call.members.len()))
        .collect();
    assert_eq!(
        calls,
        [
            (SendMode::Coalesced, 2),
            (SendMode::Alone, 1),
            (SendMode::Asking, 1),
            (SendMode::Coalesced, 1)
        ]
    );
}

#[test]
fn the_number_of_requests_is_bounded() {
    let mut queues = SlotQueues::new(LIMITS);
    let _replies: Vec<_> = (0..SlotQueues::CAPACITY as u64)
        .map(|name| push(&mut queues, name, 0, 9))
        .collect();
    assert!(queues.is_full());
    expire(&mut queues, 9);
    assert!(queues.is_empty() && !queues.has_next());
    assert!(queues.by_slot.iter().all(|slot| slot.unsent.is_empty()));
    let _reply = push(&mut queues, 1, 0, 10);
    let call = queues.next().expect("a free call");
    assert_eq!(keys(&queues, &call), expected(&[1]));
}

/// A request with a long deadline, such as a refund, must not keep the expired requests behind it in
/// memory.
#[test]
fn requests_behind_a_patient_one_expire_and_leave_nothing_behind() {
    let mut queues = SlotQueues::new(LIMITS);
    let _sent = [push(&mut queues, 1, 0, 9), push(&mut queues, 2, 0, 9)];
    let first = queues.next().expect("a free call");
    let _sent_too = push(&mut queues, 3, 0, 9);
    let second = queues.next().expect("a free call");
    let _patient = push(&mut queues, 4, 0, 5_000_000);
    for moment in 10..1_000 {
        let _urgent = [
            push(&mut queues, 5, 0, moment),
            push(&mut queues, 6, 0, moment),
        ];
        expire(&mut queues, moment);
        assert_eq!(queues.by_slot[1].unsent.len(), 1);
        assert!(queues.deadlines.len() <= 4);
    }
    queues.end(&first);
    let next = queues.next().expect("a free call");
    assert_eq!(keys(&queues, &next), expected(&[4]));
    let _last = push(&mut queues, 7, 0, 1_001);
    queues.end(&second);
    let next = queues.next().expect("a free call");
    assert_eq!(keys(&queues, &next), expected(&[7]));
}

/// Completed requests behind a patient one leave the list of deadlines, too.
#[test]
fn deadlines_of_completed_requests_are_bounded() {
    let mut queues = SlotQueues::new(LIMITS);
    let _patient = push(&mut queues, 0, 1, 5);
    let _sent = queues.next();
    for name in 0..1_000 {
        let _reply = push(&mut queues, name, 0, 10 + name);
        let call = queues.next().expect("a free call");
        queues.end(&call);
        assert!(queues.complete(call.members[0]).is_some());
        assert!(queues.deadlines.len() <= 70, "{}", queues.deadlines.len());
    }
}

#[test]
fn unsent_requests_can_be_rejected_by_deadline() {
    let mut queues = SlotQueues::new(LIMITS);
    let mut sent = push(&mut queues, 1, 0, 9);
    let call = queues.next().expect("a free call");
    let (mut urgent, mut patient) = (push(&mut queues, 2, 0, 9), push(&mut queues, 3, 0, 99));
    let error = RedisStoreError::new(&"host".into(), ErrorCause::ClosedByServer);
    queues.reject_unsent(&error, Timestamp::from_micros(10));
    assert!(reply_of(&mut urgent).is_some_and(|reply| reply.is_err()));
    assert!(reply_of(&mut patient).is_none());
    assert!(reply_of(&mut sent).is_none(), "it is in flight");
    queues.reject_unsent(&error, Timestamp::MAX);
    assert!(reply_of(&mut patient).is_some_and(|reply| reply.is_err()));
    assert!(!queues.has_next());
    queues.end(&call);
    assert!(queues.complete(call.members[0]).is_some());
    assert!(queues.is_empty());
}
