//! Batches over several subjects in a cluster, whose keys are in different slots.
//!
//! No script can decide them at once. They are charged one after the other, always in the same order,
//! and refunded if a later one has no room. Meanwhile other requests see charges that are about to be
//! refunded, and may be denied because of them. No request is admitted beyond a limit.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{join, join_all};

use super::cluster::Cluster;
use super::error::RedisStoreError;
use super::queue::Reply;
use super::refunds::PendingRefunds;
use super::reply;
use super::request::{LIVE, Request};
use super::script::{UNCHARGED, Verb};
use super::slots::slot_of;
use crate::clock::Timestamp;

/// How long a refund may take. No request waits for it.
const REFUND_DEADLINE: Duration = Duration::from_secs(5);

/// Sends a request of any number of subjects. If it has one, it is queued when this returns.
pub(super) fn decide(
    cluster: &Arc<Cluster>,
    request: Request,
    due: Timestamp,
    refunds: &PendingRefunds,
) -> impl Future<Output = Reply> + Send + use<> {
    let whole = if request.subjects() == 1 {
        Ok(cluster.decision(request, due))
    } else {
        Err(Parts {
            cluster: Arc::clone(cluster),
            verb: request.verb(),
            requests: request.by_subject(),
            due,
            refunds: refunds.clone(),
        })
    };
    async move {
        match whole {
            Ok(reply) => reply.await,
            Err(parts) => parts.run().await,
        }
    }
}

/// A batch as one request per subject.
struct Parts {
    cluster: Arc<Cluster>,
    verb: Verb,
    /// In the order of the batch, which is that of the reply.
    requests: Vec<Request>,
    due: Timestamp,
    refunds: PendingRefunds,
}

/// Groups that had no room in one of the parts, as a set of bits.
#[derive(Clone, Copy, Default)]
struct DeniedGroups(u32);

impl DeniedGroups {
    const fn contains(self, group: u8) -> bool {
        group >= UNCHARGED || self.0 >> group & 1 == 1
    }

    /// Adds the groups that a part had no room for.
    fn add(&mut self, request: &Request, reply: &[u8]) {
        for (place, group) in request.groups().enumerate() {
            if group < UNCHARGED && !reply::is_allowed(reply, place) {
                self.0 |= 1 << group;
            }
        }
    }
}

impl Parts {
    async fn run(self) -> Reply {
        let replies = match self.verb {
            Verb::Decide => self.charge().await?,
            // Independent of each other: an error of one is no reason to leave out the others.
            Verb::Peek | Verb::Record | Verb::Refund => {
                let parts = self.requests.iter();
                let sent = parts.map(|part| self.cluster.decision(part.clone(), self.due));
                let replies = join_all(sent).await;
                replies.into_iter().collect::<Result<Vec<_>, _>>()?
            }
        };
        Ok(reply::join(&replies))
    }

    /// Charges one part after the other, all at the instant of the first, unless their counters have
    /// seen a later one or the server's clock differs by more than a second.
    async fn charge(&self) -> Result<Vec<Bytes>, RedisStoreError> {
        let mut replies = vec![Bytes::new(); self.requests.len()];
        // The groups that each part did not charge.
        let mut uncharged = vec![DeniedGroups::default(); self.requests.len()];
        let (order, mut at, mut denied) = (self.order(), None, DeniedGroups::default());
        for (turn, place) in order.iter().copied().enumerate() {
            let mut request = self.requests[place].clone();
            if let Some(at) = at {
                request.set_clock(at);
            }
            // A dry run that an earlier part denied is not charged by the later ones.
            request.set_uncharged(|group| denied.contains(group));
            let (earlier, later) = (&order[..turn], &order[turn + 1..]);
            match self.cluster.decision(request.clone(), self.due).await {
                Ok(reply) => {
                    at = at.or_else(|| reply::instant(&reply));
                    denied.add(&request, &reply);
                    uncharged[place] = denied;
                    replies[place] = reply;
                    if denied.contains(LIVE) {
                        self.deny(place, (earlier, later), &uncharged, &mut replies)
                            .await;
                        return Ok(replies);
                    }
                }
                Err(error) => {
                    for place in earlier.iter().copied() {
                        let is_charged = |group| !uncharged[place].contains(group);
                        self.refund(place, &replies[place], &is_charged);
                    }
                    return Err(error);
                }
            }
        }
        self.undo_dry_runs(denied, &uncharged, &mut replies).await;
        Ok(replies)
    }

    /// Returns the order of the parts: by slot, then by key. If two batches compete for the last units of
    /// the same counters, one of them is admitted.
    fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.requests.len()).collect();
        order.sort_by_cached_key(|place| {
            let key = self.requests[*place].keys.first();
            let key = key.cloned().unwrap_or_default();
            (slot_of(&key), key)
        });
        order
    }

    /// Refunds what was charged, and peeks at all parts but the one that denied. The batch is denied
    /// whether these reply or not.
    async fn deny(
        &self,
        denying: usize,
        (earlier, later): (&[usize], &[usize]),
        uncharged: &[DeniedGroups],
        replies: &mut [Bytes],
    ) {
        let refunded = earlier.iter().copied().map(|place| {
            // Both are queued for the same slot: the second sees the effect of the first.
            let is_charged = |group| !uncharged[place].contains(group);
            self.refund(place, &replies[place], &is_charged);
            self.peek(place)
        });
        let refunded: Vec<_> = refunded.collect();
        let peeked = later.iter().map(|place| self.peek(*place));
        let (refunded, peeked) = join(join_all(refunded), join_all(peeked)).await;
        let at = reply::instant(&replies[denying]).unwrap_or(Timestamp::EPOCH);
        for (place, reply) in refunded.into_iter().chain(peeked) {
            match reply {
                Ok(reply) => replies[place] = reply,
                // The peek failed. The reply to the charge is kept.
                Err(_) if earlier.contains(&place) => {}
                Err(_) => replies[place] = self.requests[place].empty_reply(at),
            }
        }
    }

    /// Refunds the dry runs that one part denied and others had charged, and replaces their usages by
    /// those without the charge.
    async fn undo_dry_runs(
        &self,
        denied: DeniedGroups,
        uncharged: &[DeniedGroups],
        replies: &mut [Bytes],
    ) {
        let is_undone =
            |place: usize, group: u8| denied.contains(group) && !uncharged[place].contains(group);
        let places = (0..self.requests.len()).filter(|place| {
            let mut groups = self.requests[*place].groups();
            groups.any(|group| is_undone(*place, group))
        });
        let peeks: Vec<_> = places
            .map(|place| {
                let is_charged = |group| is_undone(place, group);
                self.refund(place, &replies[place], &is_charged);
                self.peek(place)
            })
            .collect();
        for (place, peeked) in join_all(peeks).await {
            if let Ok(peeked) = peeked {
                let groups: Vec<u8> = self.requests[place].groups().collect();
                replies[place] = reply::replace(&replies[place], &peeked, |check| {
                    is_undone(place, groups[check])
                });
            }
        }
    }

    fn peek(&self, place: usize) -> impl Future<Output = (usize, Reply)> + Send + use<> {
        let request = self.requests[place].with_verb(Verb::Peek);
        let sent = self.cluster.decision(request, self.due);
        async move { (place, sent.await) }
    }

    /// Queues a refund of the charges of a part, made at the instant of its reply. Nothing waits for it
    /// but a shutdown.
    fn refund(&self, place: usize, reply: &Bytes, is_charged: &dyn Fn(u8) -> bool) {
        let charged_at = reply::instant(reply).unwrap_or(Timestamp::EPOCH);
        let request = self.requests[place].to_refund(charged_at, is_charged);
        let due = self.cluster.now().saturating_add(REFUND_DEADLINE);
        let pending = self.refunds.begin();
        drop(self.cluster.decide(request, Some(pending), due));
    }
}
