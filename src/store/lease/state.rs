//! What is known of one kind of request: what is left of its blocks, and whether it is hot.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::block::{Block, PendingBlock, room};
use super::prefetch::PrefetchPolicy;
use super::request::LeaseRequest;
use super::wait_queue::WaitQueue;
use super::waiter::{Grant, Waiter};
use super::{LeaseRegistry, Settings};
use crate::clock::Timestamp;
use crate::error::StoreError;
use crate::store::Store;
use crate::usage::{Usage, Usages};

pub(super) struct LeaseState {
    /// Always the same, once a block was asked for.
    request: Option<Arc<LeaseRequest>>,
    /// In the order in which they came.
    blocks: VecDeque<Block>,
    /// One at a time: what is missing meanwhile is asked for in one call, too.
    underway: Option<PendingBlock>,
    /// How many credits are left in all blocks, and on their way.
    ahead: u64,
    /// How many of them are to be there.
    demand: PrefetchPolicy,
    /// The last caller's instant.
    now: Timestamp,
    /// How many blocks were asked for.
    asked: u64,
    pub(super) bell: Arc<WaitQueue>,
    /// Who is to be woken when this is unlocked.
    pub(super) woken: Vec<Waker>,
}

/// What is to be done about a request.
pub(super) enum NextStep {
    /// It was served.
    Served(Usages),
    /// The same, and somebody has to have a turn to ask for the next block.
    ServedWithQuestion(Usages),
    /// A block is on its way.
    Wait(Arc<Waiter>),
    /// It is asked about by itself.
    Ask,
    /// The store could not answer.
    Fail(StoreError),
}

/// What has come of asking for a block.
enum Asked {
    /// It is on its way.
    PendingBlock,
    /// It is there, or will never be.
    Settled(Result<(), StoreError>),
    /// There is too little left to ask for more than one.
    Nothing,
}

impl LeaseState {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            request: None,
            blocks: VecDeque::new(),
            underway: None,
            ahead: 0,
            demand: PrefetchPolicy::new(settings.block),
            now: Timestamp::EPOCH,
            asked: 0,
            bell: Arc::default(),
            woken: Vec::new(),
        }
    }

    pub(super) const fn asked(&self) -> u64 {
        self.asked
    }

    pub(super) const fn now(&self) -> Timestamp {
        self.now
    }

    pub(super) const fn has_underway(&self) -> bool {
        self.underway.is_some()
    }

    /// Serves a request, or starts what it takes.
    #[inline]
    pub(super) fn next(
        &mut self,
        shared: &LeaseRegistry,
        now: Timestamp,
        request: impl FnOnce() -> LeaseRequest,
    ) -> NextStep {
        self.now = now;
        if self.has_underway() && self.bell.has_rung() {
            self.look(shared);
        }
        if let Some(block) = self.blocks.front() {
            if block.is_to_come(now) {
                self.end_blocks(&*shared.store, now);
            }
            if let Some(served) = self.spend(&*shared.store, now) {
                if self.demand.wants_more(self.ahead) && !self.has_underway() {
                    // Whatever comes of it: nobody waits for it yet.
                    if let Asked::PendingBlock = self.ask(shared) {
                        return NextStep::ServedWithQuestion(served);
                    }
                }
                return NextStep::Served(served);
            }
        }
        self.when_dry(shared, request)
    }

    #[cold]
    fn when_dry(
        &mut self,
        shared: &LeaseRegistry,
        request: impl FnOnce() -> LeaseRequest,
    ) -> NextStep {
        if self.request.is_none() && self.missing() >= 2 {
            self.request = Some(Arc::new(request()));
        }
        if self.has_underway() {
            self.demand.has_run_dry();
        } else {
            if let Asked::Settled(Err(error)) = self.ask(shared) {
                return NextStep::Fail(error);
            }
            if let Some(served) = self.spend(&*shared.store, self.now) {
                return NextStep::Served(served);
            }
        }
        match &self.request {
            Some(request) if self.has_underway() => {
                let seat = Arc::new(Waiter::new(Arc::clone(request), self.now));
                self.bell.enter(Arc::clone(&seat));
                NextStep::Wait(seat)
            }
            _ => NextStep::Ask,
        }
    }

    #[inline]
    fn spend(&mut self, store: &dyn Store, now: Timestamp) -> Option<Usages> {
        self.spend_by(store, now, |block| block.tell(now))
    }

    /// Spends a round, if there is one, and says of its block what is asked.
    #[inline]
    fn spend_by<T>(
        &mut self,
        store: &dyn Store,
        now: Timestamp,
        tell: impl Fn(&Block) -> T,
    ) -> Option<T> {
        loop {
            let block = self.blocks.front_mut()?;
            if block.take(now) {
                let served = tell(block);
                self.ahead -= 1;
                if block.credits() == 0 {
                    self.demand.was_spent(block.was_hot(now));
                    self.blocks.pop_front();
                }
                return Some(served);
            }
            self.end_block(store, now);
        }
    }

    /// How many credits would be asked for.
    fn missing(&self) -> u64 {
        self.demand.missing(self.ahead, self.bell.waiting() as u64)
    }

    /// Asks for another block, if there is enough left for one.
    #[cold]
    fn ask(&mut self, shared: &LeaseRegistry) -> Asked {
        let credits = self.missing();
        let request = match &self.request {
            Some(request) if credits >= 2 => request,
            _ => return Asked::Nothing,
        };
        let mut new = PendingBlock::new(request, credits, &*shared.store, self.now);
        self.asked += 1;
        self.demand.has_asked(credits, self.ahead);
        self.ahead += credits;
        self.bell.expect(credits);
        let bell = Waker::from(Arc::clone(&self.bell));
        match new.poll(&mut Context::from_waker(&bell)) {
            Poll::Pending => {
                self.underway = Some(new);
                Asked::PendingBlock
            }
            Poll::Ready(answer) => Asked::Settled(self.came(new, answer, &shared.settings)),
        }
    }

    /// Looks whether something has come, if the bell has rung, and calls those who wait for it.
    #[cold]
    pub(super) fn look(&mut self, shared: &LeaseRegistry) {
        if !self.bell.answer() {
            return;
        }
        let bell = Waker::from(Arc::clone(&self.bell));
        let mut context = Context::from_waker(&bell);
        let answer = match &mut self.underway {
            Some(underway) => underway.poll(&mut context),
            None => Poll::Pending,
        };
        let Poll::Ready(answer) = answer else {
            return;
        };
        let came = self.underway.take();
        let trouble = came.and_then(|came| self.came(came, answer, &shared.settings).err());
        self.hand_out(shared, trouble);
    }

    /// Calls those who wait, as far as there is something for them. If nothing is on its way any
    /// more, more is asked for; if there is not enough, everybody asks by himself.
    fn hand_out(&mut self, shared: &LeaseRegistry, mut trouble: Option<StoreError>) {
        let mut has_asked = false;
        while let Some(seat) = self.bell.first() {
            let mut place = seat.place();
            if place.is_waiting() {
                let now = seat.now();
                let permit = self.spend_by(&*shared.store, now, |block| block.permit(now));
                let Some(permit) = permit else {
                    drop(place);
                    if self.has_underway() {
                        return;
                    }
                    // For somebody who came later than the last one has said it is.
                    self.now = self.now.max(now);
                    let asked = if mem::replace(&mut has_asked, true) {
                        Asked::Nothing
                    } else {
                        self.ask(shared)
                    };
                    match asked {
                        Asked::PendingBlock => return,
                        Asked::Settled(Ok(())) => continue,
                        Asked::Settled(Err(error)) => trouble = Some(error),
                        Asked::Nothing => {}
                    }
                    return self.turn_away(trouble.as_ref());
                };
                self.woken.extend(place.call(Grant::Served(permit)));
            }
            drop(place);
            self.bell.remove_first();
        }
    }

    /// Tells everybody that there is nothing to wait for.
    fn turn_away(&mut self, trouble: Option<&StoreError>) {
        while let Some(seat) = self.bell.first() {
            let mut place = seat.place();
            if place.is_waiting() {
                let call = trouble.map_or(Grant::Ask, |error| Grant::Fail(error.again()));
                self.woken.extend(place.call(call));
            }
            drop(place);
            self.bell.remove_first();
        }
    }

    /// What was on its way is there, or is not.
    fn came(
        &mut self,
        underway: PendingBlock,
        answer: Result<Usages, StoreError>,
        settings: &Settings,
    ) -> Result<(), StoreError> {
        let credits = underway.credits();
        let came = answer.map(|verdict| underway.came(&verdict, settings.max_ttl));
        if let Ok(Some(block)) = came {
            self.demand.has_come(self.ahead - credits, block.room());
            self.blocks.push_back(block);
            return Ok(());
        }
        // There is not as much any more, or nobody knows how much. Whoever waits asks for what it
        // needs.
        self.ahead -= credits;
        self.demand.was_refused();
        came.map(drop)
    }

    /// Gives back what was not spent in time, of one block.
    #[cold]
    fn end_block(&mut self, store: &dyn Store, now: Timestamp) {
        if let Some(block) = self.blocks.pop_front() {
            self.ahead -= block.credits();
            self.demand.was_left_over();
            // Nobody waits for it. If it is lost, somebody gets a little less.
            block.end(store, now).detach();
        }
    }

    #[cold]
    fn end_blocks(&mut self, store: &dyn Store, now: Timestamp) {
        while !self.blocks.is_empty() {
            self.end_block(store, now);
        }
    }

    /// Gives back what was not spent in time.
    pub(super) fn tidy(&mut self, shared: &LeaseRegistry, now: Timestamp) {
        self.look(shared);
        while self.blocks.front().is_some_and(|block| block.is_over(now)) {
            self.end_block(&*shared.store, now);
        }
    }

    /// Keeps nothing: what there was, and what is on its way. Whoever waits for that asks by
    /// himself.
    pub(super) fn clear(&mut self) -> (VecDeque<Block>, Option<PendingBlock>) {
        let all = (mem::take(&mut self.blocks), mem::take(&mut self.underway));
        self.ahead = 0;
        self.demand.has_lost_all();
        self.turn_away(None);
        all
    }

    /// Notes what was said to a request that was asked about by itself.
    pub(super) fn heard(&mut self, usages: &[Usage], costs: impl Iterator<Item = u64>) {
        if usages.iter().all(Usage::is_allowed) {
            self.demand.was_admitted(room(usages.iter().zip(costs)));
        } else {
            self.demand.was_denied();
        }
    }
}
