//! Where one kind of request is served: what is left of its lease, and who waits for more.

use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::bell::Bell;
use super::request::Request;
use super::terms::span;
use super::{Settings, Shared};
use crate::clock::Timestamp;
use crate::decision::{Usage, Verdict};
use crate::error::StoreError;
use crate::key::Subject;
use crate::store::{Answer, Store};
use crate::sync::{Mutex, MutexGuard, lock};

/// Requests that are asked about at once do not come in the order of their instants. One that is
/// earlier than this comes from a clock that went back.
const AT_ONCE: Duration = Duration::from_millis(1);

pub(super) struct Desk {
    shared: Weak<Shared>,
    counter: Mutex<Counter>,
}

/// What a desk knows.
#[derive(Default)]
pub(super) struct Counter {
    lease: Option<Lease>,
    /// How many rounds the next lease is for. It doubles whenever one was used up in time, and is
    /// halved whenever one was not: only what is hot is leased.
    size: u64,
    /// How many more rounds there may have been when the store was last heard.
    room: u64,
    /// A lease that is on its way, and who waits for it.
    underway: Option<Underway>,
    bell: Arc<Bell>,
    /// How many leases have failed, and how the last one did.
    failures: u64,
    failure: Option<StoreError>,
}

/// Permits that were charged and not yet spent.
struct Lease {
    request: Request,
    rounds: u64,
    /// What the store said when it was charged.
    usages: Box<[Usage]>,
    at: Timestamp,
    /// The caller's instants: since when time has passed, and until when it can be spent.
    asked: Timestamp,
    until: Timestamp,
}

struct Underway {
    answer: Answer<Verdict>,
    request: Request,
    rounds: u64,
    asked: Timestamp,
}

/// What is to be done about a request.
pub(super) enum Next {
    /// It was served.
    Served(Verdict),
    /// A lease is on its way.
    Wait { failures: u64 },
    /// It is asked about by itself.
    Ask,
    /// The store could not answer.
    Fail(StoreError),
}

impl Lease {
    /// Spends a round, if it can be.
    fn spend(&mut self, now: Timestamp) -> Option<Verdict> {
        if self.rounds == 0 || now >= self.until {
            return None;
        }
        self.rounds -= 1;
        let passed = now.duration_since(self.asked);
        let mut verdict = Verdict::new(self.at.saturating_add(passed));
        for (usage, cost) in self.usages.iter().zip(self.request.costs()) {
            // What is left of the lease was charged, and is used by nobody.
            let used = usage
                .used()
                .saturating_sub(cost.saturating_mul(self.rounds));
            let (limit, reset_at) = (usage.limit(), usage.reset_at());
            verdict.push(Usage::new(limit, used, reset_at, usage.outcome()));
        }
        Some(verdict)
    }

    /// Whether the clock has gone back since, so that it does not say how old this is.
    fn is_to_come(&self, now: Timestamp) -> bool {
        now.saturating_add(AT_ONCE) < self.asked
    }

    /// Gives back what was not spent.
    fn end(self, store: &dyn Store, now: Timestamp) -> Answer<()> {
        match self.rounds {
            0 => Answer::ready(Ok(())),
            rounds => self.request.give_back(store, rounds, self.at, now),
        }
    }
}

impl Underway {
    /// Gives back what comes.
    async fn end(self, store: Arc<dyn Store>) -> Result<(), StoreError> {
        let verdict = self.answer.await?;
        if !verdict.is_allowed() {
            return Ok(());
        }
        let (rounds, asked) = (self.rounds, self.asked);
        let given_back = self.request.give_back(&*store, rounds, verdict.at(), asked);
        given_back.await
    }
}

impl Counter {
    /// Serves a request, or starts what it takes.
    fn next(
        &mut self,
        store: &dyn Store,
        settings: &Settings,
        now: Timestamp,
        request: impl FnOnce() -> Request,
    ) -> Next {
        if self
            .lease
            .as_ref()
            .is_some_and(|lease| lease.is_to_come(now))
        {
            self.end_lease(store, now);
        }
        if let Some(served) = self.spend(now) {
            return Next::Served(served);
        }
        if self.underway.is_some() {
            return Next::Wait {
                failures: self.failures,
            };
        }
        self.end_lease(store, now);
        self.size = self.size.min(settings.block);
        // A quarter of what is left at most, so that there is something for the others.
        let rounds = self.size.min(self.room / 4);
        if rounds < 2 {
            return Next::Ask;
        }
        let request = request();
        let failures = self.failures;
        self.underway = Some(Underway {
            answer: request.decide(store, rounds, now),
            request,
            rounds,
            asked: now,
        });
        // It may be there already.
        match self.poll_underway(settings) {
            Poll::Pending => Next::Wait { failures },
            Poll::Ready(()) => self.after_lease(failures, now),
        }
    }

    fn spend(&mut self, now: Timestamp) -> Option<Verdict> {
        let lease = self.lease.as_mut()?;
        let served = lease.spend(now)?;
        if lease.rounds == 0 {
            self.lease = None;
            self.size = self.size.saturating_mul(2);
        }
        Some(served)
    }

    /// The lease that was on its way is there, or is not.
    fn after_lease(&mut self, failures: u64, now: Timestamp) -> Next {
        match (self.spend(now), &self.failure) {
            (Some(served), _) => Next::Served(served),
            (None, Some(error)) if self.failures > failures => Next::Fail(error.again()),
            (None, _) => Next::Ask,
        }
    }

    /// Looks whether the lease has come.
    fn poll_underway(&mut self, settings: &Settings) -> Poll<()> {
        let Some(underway) = &mut self.underway else {
            return Poll::Ready(());
        };
        let bell = Waker::from(Arc::clone(&self.bell));
        let mut context = Context::from_waker(&bell);
        let Poll::Ready(answer) = Pin::new(&mut underway.answer).poll(&mut context) else {
            return Poll::Pending;
        };
        if let Some(underway) = self.underway.take() {
            self.came(underway, answer, settings);
        }
        self.bell.ring();
        Poll::Ready(())
    }

    fn came(
        &mut self,
        underway: Underway,
        answer: Result<Verdict, StoreError>,
        settings: &Settings,
    ) {
        let Underway {
            request,
            rounds,
            asked,
            ..
        } = underway;
        match answer {
            Ok(verdict) if verdict.is_allowed() => {
                let usages = verdict.usages();
                let span = span(request.quotas(), usages, verdict.at(), settings.longest);
                self.room = room(usages, request.costs());
                self.lease = Some(Lease {
                    rounds,
                    usages: usages.into(),
                    at: verdict.at(),
                    asked,
                    until: asked.saturating_add(span),
                    request,
                });
            }
            Ok(_) => {
                // There is not as much any more. Whoever waits asks for what it needs.
                self.room = 0;
                self.size = 1;
            }
            Err(error) => {
                self.failures += 1;
                self.failure = Some(error);
                self.size = 1;
            }
        }
    }

    /// Gives back what was not spent in time.
    fn end_lease(&mut self, store: &dyn Store, now: Timestamp) {
        if let Some(lease) = self.lease.take() {
            self.size /= 2;
            // Nobody waits for it. If it is lost, somebody gets a little less.
            lease.end(store, now).detach();
        }
    }

    /// Notes what was said to a request that was asked about by itself.
    fn heard(&mut self, verdict: &Verdict, costs: impl Iterator<Item = u64>) {
        if verdict.is_allowed() {
            self.room = room(verdict.usages(), costs);
            self.size = self.size.max(1).saturating_mul(2);
        } else {
            (self.room, self.size) = (0, 1);
        }
    }
}

/// How many more rounds there are in what is left.
fn room(usages: &[Usage], costs: impl Iterator<Item = u64>) -> u64 {
    let rounds = usages.iter().zip(costs);
    let rounds = rounds.map(|(usage, cost)| usage.remaining() / cost.max(1));
    rounds.min().unwrap_or(0)
}

impl Desk {
    pub(super) fn new(shared: Weak<Shared>) -> Self {
        Self {
            shared,
            counter: Mutex::new(Counter::default()),
        }
    }

    fn counter(&self) -> MutexGuard<'_, Counter> {
        lock(&self.counter)
    }

    /// Serves a request, or starts what it takes. Says whether a lease was asked for.
    pub(super) fn next(
        &self,
        shared: &Shared,
        now: Timestamp,
        request: impl FnOnce() -> Request,
    ) -> (Next, bool) {
        let mut is_leased = false;
        let request = || {
            is_leased = true;
            request()
        };
        let mut counter = self.counter();
        // Looked at in here, so that whoever closes it finds every lease that was taken before.
        if shared.is_closed.load(Ordering::Acquire) {
            return (Next::Ask, false);
        }
        let next = counter.next(&*shared.store, &shared.settings, now, request);
        drop(counter);
        (next, is_leased)
    }

    /// Waits until the lease that is on its way is there. Says what follows for this request.
    pub(super) fn poll(
        &self,
        settings: &Settings,
        failures: u64,
        now: Timestamp,
        context: &mut Context<'_>,
    ) -> Poll<Next> {
        let mut counter = self.counter();
        if counter.underway.is_some() {
            // Before it is looked at: it may come meanwhile.
            counter.bell.wakes(context.waker());
        }
        if counter.poll_underway(settings).is_pending() {
            return Poll::Pending;
        }
        Poll::Ready(counter.after_lease(failures, now))
    }

    /// Somebody does not wait any more. Whoever still does says so again.
    pub(super) fn leave(&self) {
        let bell = Arc::clone(&self.counter().bell);
        bell.ring();
    }

    /// Notes what was said to a request that was asked about by itself.
    pub(super) fn heard(&self, verdict: &Verdict, costs: impl Iterator<Item = u64>) {
        self.counter().heard(verdict, costs);
    }

    /// Gives back what was not spent, if its time is over. Says whether it is to be seen to again:
    /// what nobody waits for any more may still come.
    pub(super) fn tidy(&self, shared: &Shared, now: Timestamp) -> bool {
        let mut counter = self.counter();
        if counter.poll_underway(&shared.settings).is_pending() {
            return true;
        }
        if counter
            .lease
            .as_ref()
            .is_some_and(|lease| lease.until <= now)
        {
            counter.end_lease(&*shared.store, now);
        }
        false
    }

    /// Gives back what was not spent, whether its time is over or not, and what is still on its way.
    /// Whoever waits for that asks by himself.
    pub(super) fn close(&self, store: &Arc<dyn Store>) -> Answer<()> {
        let mut counter = self.counter();
        let (lease, underway) = (counter.lease.take(), counter.underway.take());
        let bell = Arc::clone(&counter.bell);
        drop(counter);
        bell.ring();
        let lease = lease.map(|lease| {
            let now = lease.asked;
            lease.end(&**store, now)
        });
        let underway = underway.map(|underway| Answer::pending(underway.end(Arc::clone(store))));
        Answer::all(lease.into_iter().chain(underway))
    }

    /// Forgets what was not spent: the store has forgotten that it was charged.
    pub(super) fn forfeit(&self, subject: Option<&Subject<'_>>) {
        let mut counter = self.counter();
        let concerns = |request: &Request| subject.is_none_or(|subject| request.concerns(subject));
        if counter
            .lease
            .as_ref()
            .is_some_and(|lease| concerns(&lease.request))
        {
            counter.lease = None;
        }
        // What is on its way may have been charged before.
        if counter
            .underway
            .as_ref()
            .is_some_and(|underway| concerns(&underway.request))
        {
            counter.underway = None;
            counter.bell.ring();
        }
    }
}

/// A desk that is closed, since others are busier or the store is dropped, keeps nothing.
impl Drop for Desk {
    fn drop(&mut self) {
        let Some(shared) = self.shared.upgrade() else {
            return;
        };
        self.close(&shared.store).detach();
    }
}

impl Shared {
    /// All desks there are.
    pub(super) fn desks(&self) -> Vec<Arc<Desk>> {
        self.desks.iter().map(|(_, desk)| desk).collect()
    }
}
