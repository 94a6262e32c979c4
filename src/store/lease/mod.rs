//! Permits that are taken ahead, so that a hot counter costs a call per block.

mod bell;
mod builder;
mod desk;
mod request;
mod terms;

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

pub use self::builder::LeasedBuilder;
use self::desk::{Desk, Next};
use self::request::Request;
use self::terms::can_be_leased;
use super::by_print::ByPrint;
use super::fingerprint::{RequestPrint, Secret};
use super::{Answer, InMemory, Override, Overrides, Store, StoreHealth, only};
use crate::batch::{Batch, Check};
use crate::clock::Timestamp;
use crate::decision::{Usage, Verdict};
use crate::error::StoreError;
use crate::key::{OwnedSubject, Subject};
use crate::sync::{Mutex, lock};

/// Takes permits ahead in small blocks, so that a request that comes again and again costs the
/// store one call per block.
///
/// ```
/// use tollgate::store::Leased;
/// use tollgate::{Limiter, ManualClock, MemoryStore};
///
/// // Worth it around a store that is far away; memory is as quick by itself.
/// let store = Leased::builder(MemoryStore::new()).block(100).build()?;
/// let limiter = Limiter::builder()
///     .quota("100000/minute")
///     .store(store)
///     .clock(ManualClock::new())
///     .build()?;
/// for _ in 0..10_000 {
///     assert!(limiter.check("everybody").wait()?.is_allowed());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # How
///
/// Whoever asks first is asked about by itself. If the same request comes again (the same
/// counters, costs and limits), two are taken at once, then four, up to the
/// [block](LeasedBuilder::block); never more than a quarter of what is left, so near its end a
/// limit is counted one by one. While a block is on its way, those who need it wait for it.
///
/// # What is promised
///
/// **Never more than the limits.** What a lease has charged is spent while it makes no difference
/// to the counter when that was: a fixed or sliding window until it ends, sliding buckets until
/// the bucket ends. So everything that is admitted would have been admitted one by one, too, and
/// every bound of [the algorithms](crate::docs::algorithms) holds as it is. Token buckets and
/// sliding logs know the instant of each charge, and are passed on one by one; so is a request
/// that has one of them among its quotas.
///
/// **A little less, for a moment.** What one process has taken and not spent, no other can have:
/// at most a block for each kind of request in each process. It is not spent any more after
/// [a quarter of a second](LeasedBuilder::longest), and given back with the next call to the store,
/// whoever's that is; or by [`close`](Leased::close), or when the store is dropped, as far as a
/// runtime is left to do it on. A process that ends without a word takes its blocks with it until
/// their windows end, and one that has nothing more to do keeps them for as long.
///
/// # What is not
///
/// What was told with a lease holds for all of its permits: [`Usage::used`] does not know what
/// others have charged since. [`peek`](Store::peek) sees what is leased as used. A request whose
/// answer is dropped while it waits for a block is not charged.
///
/// If *another process* resets a counter, what this one has leased of it before does not know: up
/// to a block for each process is admitted on top of the new limit.
pub struct Leased {
    shared: Arc<Shared>,
}

struct Shared {
    store: Arc<dyn Store>,
    settings: Settings,
    secret: Secret,
    desks: ByPrint<Arc<Desk>>,
    /// Desks in the order in which they took a lease, to see to those that nobody comes to.
    taken: Mutex<VecDeque<(Timestamp, Weak<Desk>)>>,
    is_closed: AtomicBool,
}

#[derive(Debug)]
struct Settings {
    block: u64,
    longest: Duration,
}

impl Leased {
    /// Takes up to 16 permits at once.
    #[must_use]
    pub fn new(store: impl Store) -> Self {
        Self::builder(store).create()
    }

    /// The same, with settings.
    pub fn builder(store: impl Store) -> LeasedBuilder {
        LeasedBuilder::new(Arc::new(store))
    }

    /// Gives back everything that was taken and not spent, and takes nothing ahead from now on.
    /// For the end of a process.
    pub fn close(&self) -> Answer<()> {
        self.shared.is_closed.store(true, Ordering::Release);
        let store = &self.shared.store;
        Answer::all(self.shared.desks().iter().map(|desk| desk.close(store)))
    }

    fn desk(&self, print: RequestPrint) -> Arc<Desk> {
        let new = || Arc::new(Desk::new(Arc::downgrade(&self.shared)));
        if let Some(desk) = self.shared.desks.get(&print) {
            return desk;
        }
        let desk = new();
        self.shared.desks.insert(print, Arc::clone(&desk));
        desk
    }

    /// Asks about a request by itself.
    fn ask(&self, desk: Arc<Desk>, batch: &Batch<'_>, now: Timestamp) -> Answer<Verdict> {
        let mut costs = [0; crate::batch::MAX_CHECKS];
        for (place, check) in costs.iter_mut().zip(batch.checks()) {
            *place = check.cost();
        }
        self.shared.store.decide(batch, now).map(move |answer| {
            let verdict = answer?;
            desk.heard(&verdict, costs.into_iter());
            Ok(verdict)
        })
    }
}

impl Shared {
    /// Waits for a lease, and goes on with what comes of it.
    async fn wait(
        self: Arc<Self>,
        desk: Arc<Desk>,
        request: Request,
        now: Timestamp,
        failures: u64,
    ) -> Result<Verdict, StoreError> {
        let mut waiting = Waiting {
            desk: &desk,
            is_over: false,
        };
        let next = poll_fn(|context| desk.poll(&self.settings, failures, now, context)).await;
        waiting.is_over = true;
        drop(waiting);
        match next {
            Next::Served(verdict) => Ok(verdict),
            Next::Fail(error) => Err(error),
            Next::Ask | Next::Wait { .. } => {
                let verdict = request.decide(&*self.store, 1, now).await?;
                desk.heard(&verdict, request.costs());
                Ok(verdict)
            }
        }
    }

    /// Notes that there is a lease to be seen to, when its time is over.
    fn see_to(&self, desk: &Arc<Desk>, now: Timestamp) {
        let until = now.saturating_add(self.settings.longest);
        lock(&self.taken).push_back((until, Arc::downgrade(desk)));
    }

    /// Sees to some leases whose time is over.
    fn tidy(&self, now: Timestamp) {
        const SOME: usize = 4;
        for _ in 0..SOME {
            let mut taken = lock(&self.taken);
            let is_due = taken.front().is_some_and(|(until, _)| *until <= now);
            let Some((_, desk)) = taken.pop_front_if(|_| is_due) else {
                return;
            };
            drop(taken);
            if let Some(desk) = desk.upgrade()
                && desk.tidy(self, now)
            {
                self.see_to(&desk, now);
            }
        }
    }
}

/// Counters that are forgotten. What was charged before must not be spent after, and what is
/// charged meanwhile may be either.
struct Forgotten {
    shared: Arc<Shared>,
    /// Whose; `None` for everybody's.
    subjects: Option<Box<[OwnedSubject]>>,
}

impl Forgotten {
    fn new(shared: &Arc<Shared>, subjects: Option<Vec<Subject<'_>>>) -> Self {
        let forgotten = Self {
            shared: Arc::clone(shared),
            subjects: subjects.map(|all| all.iter().map(OwnedSubject::from).collect()),
        };
        forgotten.forfeit();
        forgotten
    }

    fn forfeit(&self) {
        for desk in self.shared.desks() {
            match &self.subjects {
                Some(subjects) => subjects
                    .iter()
                    .for_each(|subject| desk.forfeit(Some(&subject.as_subject()))),
                None => desk.forfeit(None),
            }
        }
    }

    /// Once more, when it is done.
    fn after(self, answer: Answer<()>) -> Answer<()> {
        answer.map(move |done| {
            drop(self);
            done
        })
    }
}

/// Also if nobody waits for it.
impl Drop for Forgotten {
    fn drop(&mut self) {
        self.forfeit();
    }
}

/// Somebody who waits for a lease.
struct Waiting<'a> {
    desk: &'a Desk,
    is_over: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.desk.leave();
        }
    }
}

impl Store for Leased {
    fn decide(&self, batch: &Batch<'_>, now: Timestamp) -> Answer<Verdict> {
        let shared = &self.shared;
        if !can_be_leased(batch) || shared.is_closed.load(Ordering::Acquire) {
            return shared.store.decide(batch, now);
        }
        let prints = shared.secret.fingerprints(batch);
        let desk = self.desk(shared.secret.request(batch.checks(), &prints));
        let (next, is_leased) = desk.next(shared, now, || Request::new(batch));
        if is_leased {
            shared.see_to(&desk, now);
        }
        // Whenever the store is asked, also if it has answered at once: else those that are to be
        // seen to would add up.
        if is_leased || matches!(next, Next::Ask | Next::Wait { .. }) {
            shared.tidy(now);
        }
        match next {
            Next::Served(verdict) => Answer::ready(Ok(verdict)),
            Next::Fail(error) => Answer::ready(Err(error)),
            Next::Ask => self.ask(desk, batch, now),
            Next::Wait { failures } => {
                let (shared, request) = (Arc::clone(shared), Request::new(batch));
                Answer::pending(shared.wait(desk, request, now, failures))
            }
        }
    }

    fn decide_one(&self, check: &Check<'_>, now: Timestamp) -> Answer<(Usage, Timestamp)> {
        let batch = match Batch::new(std::slice::from_ref(check)) {
            Ok(batch) => batch,
            Err(invalid) => return Answer::ready(Err(StoreError::refused(invalid.to_string()))),
        };
        if !can_be_leased(&batch) {
            return self.shared.store.decide_one(check, now);
        }
        self.decide(&batch, now).map(|verdict| only(&verdict?))
    }

    fn peek(&self, batch: &Batch<'_>, now: Timestamp) -> Answer<Verdict> {
        self.shared.store.peek(batch, now)
    }

    fn record(&self, batch: &Batch<'_>, now: Timestamp) -> Answer<Verdict> {
        self.shared.store.record(batch, now)
    }

    fn give_back(&self, batch: &Batch<'_>, charged_at: Timestamp, now: Timestamp) -> Answer<()> {
        self.shared.store.give_back(batch, charged_at, now)
    }

    fn reset(&self, batch: &Batch<'_>) -> Answer<()> {
        let subjects = batch.checks().iter().map(|check| *check.subject());
        let forgotten = Forgotten::new(&self.shared, Some(subjects.collect()));
        forgotten.after(self.shared.store.reset(batch))
    }

    fn reset_subject(&self, subject: &Subject<'_>) -> Answer<()> {
        let forgotten = Forgotten::new(&self.shared, Some(vec![*subject]));
        forgotten.after(self.shared.store.reset_subject(subject))
    }

    fn clear(&self) -> Answer<()> {
        let forgotten = Forgotten::new(&self.shared, None);
        forgotten.after(self.shared.store.clear())
    }

    fn len(&self) -> Answer<usize> {
        self.shared.store.len()
    }

    fn sweep(&self, now: Timestamp) -> Answer<usize> {
        for desk in self.shared.desks() {
            desk.tidy(&self.shared, now);
        }
        self.shared.store.sweep(now)
    }

    #[inline]
    fn overrides(&self) -> Option<&Overrides> {
        self.shared.store.overrides()
    }

    fn set_override(&self, new: Override) -> Answer<()> {
        self.shared.store.set_override(new)
    }

    fn remove_override(&self, subject: &Subject<'_>, rule: &str) -> Answer<bool> {
        self.shared.store.remove_override(subject, rule)
    }

    fn health(&self) -> StoreHealth {
        self.shared.store.health()
    }

    fn in_memory(&self) -> Option<InMemory> {
        self.shared.store.in_memory()
    }
}

/// What was not spent is given back, as far as there is a runtime left to do it on.
impl Drop for Leased {
    fn drop(&mut self) {
        self.close().detach();
    }
}

impl fmt::Debug for Leased {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leased")
            .field("store", &self.shared.store)
            .field("settings", &self.shared.settings)
            .field("kinds_of_requests", &self.shared.desks.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Counter;
    use crate::store::MemoryStore;

    /// A store that answers at once is asked for one lease after the other, and nobody ever waits.
    #[test]
    fn leases_that_are_over_do_not_add_up() {
        let store = Leased::builder(MemoryStore::new()).block(2);
        let store = store.build().expect("valid");
        let quota = "1000000/hour".parse().expect("valid");
        let (subject, counter) = (
            Subject::from("hot"),
            Counter::new("rule", quota).expect("valid"),
        );
        for millis in 0..10_000 {
            let now = Timestamp::from_micros(millis * 1_000);
            let check = Check::new(&subject, &counter);
            let answer = store.decide_one(&check, now).wait().expect("memory");
            assert!(answer.0.is_allowed());
        }
        let kept = lock(&store.shared.taken).len();
        assert!(kept <= 130, "{kept} of a quarter of a second");
    }
}
